//! Files that appear whole or not at all.
//!
//! Everything goes to a temporary file in the same folder, reaches the disk, and then takes the
//! name. Whatever fails before, the old file stays and the temporary one is removed.

use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::path::Path;

pub(super) fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    if path.is_dir() {
        return Err(Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wf-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What any program gives a new file; the user's mask takes away from it.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    fill(&mut out)?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("u.vtu");
        write(&path, |out| out.write_all(b"first")).expect("written");
        let full = |out: &mut dyn Write| {
            out.write_all(&[7; 1 << 21])?;
            Err(Error::new(ErrorKind::StorageFull, "no space left"))
        };
        assert_eq!(write(&path, full).expect_err("full").kind(), ErrorKind::StorageFull);
        assert_eq!(std::fs::read(&path).expect("still there"), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
        assert!(write(folder.path(), |_| Ok(())).is_err());
        assert!(write(&folder.path().join("no/such/u.vtu"), |_| Ok(())).is_err());
    }
}
