//! Atomic replacement of files.
//!
//! Data is written to a temporary file in the same folder, flushed to disk, and renamed. On any earlier failure the old
//! file is kept and the temporary one removed. Pipes, terminals and devices are written directly: they cannot be
//! replaced. Links are followed, so that they remain links.

use crate::support::scratch::ScratchFile;
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Writes the output of `fill` to `path`.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    match place(path)? {
        OutputTarget::Stream => {
            let file = std::fs::OpenOptions::new().write(true).open(path)?;
            let mut out = BufWriter::with_capacity(1 << 20, file);
            fill(&mut out)?;
            out.flush()
        }
        OutputTarget::File(path) => whole(&path, fill).map_err(plain),
    }
}

fn whole(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = ScratchFile::beside(path)?;
    // The new file has the permissions of the old one.
    if let Ok(before) = std::fs::metadata(path) {
        #[cfg(unix)]
        give_to_owner(file.file(), &before)?;
        file.file().set_permissions(before.permissions())?;
    }
    let mut out = BufWriter::with_capacity(1 << 20, file);
    fill(&mut out)?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.file().sync_all()?;
    file.persist(path)
}

/// Gives a file the owner and the group of another, as far as the system permits.
#[cfg(unix)]
fn give_to_owner(file: &std::fs::File, before: &std::fs::Metadata) -> Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        let _ = fchown(file, Some(before.uid()), Some(before.gid()))
            .or_else(|_| fchown(file, None, Some(before.gid())));
    }
    Ok(())
}

/// Returns the system's message without the name of the temporary file.
fn plain(error: Error) -> Error {
    let text = error.to_string();
    let words = text.split(" at path ").next().unwrap_or_default();
    Error::new(error.kind(), words)
}

/// Checks that a file can be written at `path`, without leaving a trace. Nothing is checked for streams.
pub fn probe(path: &Path) -> Result<()> {
    match place(path)? {
        // Opening and closing a pipe would signal its end to the reader.
        OutputTarget::Stream => Ok(()),
        OutputTarget::File(path) => ScratchFile::beside(&path).map(drop).map_err(plain),
    }
}

/// Target of a path.
enum OutputTarget {
    /// A stream.
    Stream,
    /// A file, existing or not, after resolving links.
    File(PathBuf),
}

fn place(path: &Path) -> Result<OutputTarget> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::new(ErrorKind::IsADirectory, "it is a folder")),
        Ok(found) if found.is_file() => {
            permit(path, &found)?;
            Ok(OutputTarget::File(std::fs::canonicalize(path)?))
        }
        Ok(_) => Ok(OutputTarget::Stream),
        Err(error) if error.kind() == ErrorKind::NotFound => match std::fs::read_link(path) {
            // A link to a missing target; a link to itself is another error.
            Ok(target) => place(&path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) if names_a_folder(path) => {
                Err(Error::new(ErrorKind::IsADirectory, "it names a folder, which is not there"))
            }
            Err(_) => Ok(OutputTarget::File(path.to_owned())),
        },
        Err(error) => Err(error),
    }
}

/// Returns whether a path ends like that of a folder.
fn names_a_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.last().is_some_and(|&last| std::path::is_separator(char::from(last)))
}

/// Checks that an existing file may be replaced: it must be writable, although the system only requires this of its
/// folder. Read-only files are also protected from root.
fn permit(path: &Path, found: &std::fs::Metadata) -> Result<()> {
    if found.permissions().readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it may only be read"));
    }
    // Opened and not changed.
    std::fs::OpenOptions::new().append(true).open(path).map(drop)
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

    #[cfg(unix)]
    #[test]
    fn what_is_replaced_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wf");
        std::fs::write(&path, b"old").expect("written");
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, private.clone()).expect("set");
        write(&path, |out| out.write_all(b"new")).expect("written");
        let found = std::fs::metadata(&path).expect("there").permissions();
        assert_eq!(found.mode() & 0o777, private.mode());
    }

    #[cfg(unix)]
    #[test]
    fn what_may_only_be_read_is_not_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("u.vtu"), folder.path().join("link"));
        std::fs::write(&path, b"old").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).expect("set");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        for path in [&path, &link] {
            for refused in [probe(path), write(path, |out| out.write_all(b"new"))] {
                let error = refused.expect_err("read-only");
                assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                assert!(error.to_string().contains("only be read"), "{error}");
            }
        }
        assert_eq!(std::fs::read(&path).expect("there"), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 2);
    }

    /// Requires the right to change owners, which only root has.
    #[cfg(unix)]
    #[test]
    fn what_is_replaced_keeps_its_owner() {
        use std::os::unix::fs::{MetadataExt, chown};
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("u.vtu");
        std::fs::write(&path, b"old").expect("written");
        if chown(&path, Some(12345), Some(54321)).is_err() {
            return;
        }
        write(&path, |out| out.write_all(b"new")).expect("written");
        let found = std::fs::metadata(&path).expect("there");
        assert_eq!((found.uid(), found.gid()), (12345, 54321));
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_streams_stay_streams() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, b"old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        write(&link, |out| out.write_all(b"new")).expect("written");
        assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(std::fs::read(&target).expect("there"), b"new");

        // A chain of links through another folder with a missing target.
        let below = folder.path().join("below");
        std::fs::create_dir(&below).expect("a folder");
        let (first, second) = (folder.path().join("first"), below.join("second"));
        std::os::unix::fs::symlink("below/second", &first).expect("linked");
        std::os::unix::fs::symlink("u.vtu", &second).expect("linked");
        probe(&first).expect("it can be written");
        write(&first, |out| out.write_all(b"through")).expect("written");
        assert_eq!(std::fs::read(below.join("u.vtu")).expect("there"), b"through");
        assert!([first, second].iter().all(|link| link.is_symlink()));
        let itself = folder.path().join("itself");
        std::os::unix::fs::symlink("itself", &itself).expect("linked");
        assert!(probe(&itself).is_err());

        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        use std::os::fd::AsRawFd as _;
        let path = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
        write(&path, |out| out.write_all(b"streamed")).expect("written");
        drop(writer);
        probe(&PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()))).expect("not opened");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut reader, &mut text).expect("read");
        assert_eq!(text, "streamed");
    }

    #[test]
    fn a_place_is_tried_without_a_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("u.vtu");
        probe(&path).expect("it can be written");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0);
        assert_eq!(probe(folder.path()).expect_err("a folder").kind(), ErrorKind::IsADirectory);
        let below = probe(&folder.path().join("no/")).expect_err("a folder that is not there");
        assert_eq!(below.kind(), ErrorKind::IsADirectory);
        let missing = probe(&folder.path().join("no/such/u.vtu")).expect_err("no folder");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(!missing.to_string().contains(".part"), "{missing}");
    }
}
