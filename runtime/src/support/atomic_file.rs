//! Files that appear whole or not at all.
//!
//! Everything goes to a temporary file in the same folder, reaches the disk, and then takes the
//! name. Whatever fails before, the old file stays and the temporary one is removed. What is no
//! file on a disk (a pipe, a terminal, a device) is written directly: it has no whole that could be
//! kept, and must not be replaced by a file. A link is followed, so that it stays one.

use crate::support::scratch::File;
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Writes what `fill` says to `path`.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    match place(path)? {
        Place::Stream => {
            let file = std::fs::OpenOptions::new().write(true).open(path)?;
            let mut out = BufWriter::with_capacity(1 << 20, file);
            fill(&mut out)?;
            out.flush()
        }
        Place::File(path) => whole(&path, fill).map_err(plain),
    }
}

fn whole(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let file = File::beside(path)?;
    // Who may read or write what was there may do so with what takes its place, and nobody else.
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

/// Gives a file the owner and the group of another, as far as the system lets us: who may write a file of somebody else
/// does not take it from him unasked if that can be helped.
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

/// The system's own words, without the temporary file's name, which nobody knows.
fn plain(error: Error) -> Error {
    let text = error.to_string();
    let words = text.split(" at path ").next().unwrap_or_default();
    Error::new(error.kind(), words)
}

/// Whether a file could be written at `path`, tried without leaving anything there. Of what is no file, nothing can be
/// said before it is written to.
pub(crate) fn probe(path: &Path) -> Result<()> {
    match place(path)? {
        // Opened and closed, a pipe would tell its reader that there is nothing more.
        Place::Stream => Ok(()),
        Place::File(path) => File::beside(&path).map(drop).map_err(plain),
    }
}

/// What a path leads to.
enum Place {
    /// Something that takes bytes and keeps none.
    Stream,
    /// A file, there or not yet, behind all links.
    File(PathBuf),
}

fn place(path: &Path) -> Result<Place> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::new(ErrorKind::IsADirectory, "it is a folder")),
        Ok(found) if found.is_file() => {
            permit(path, &found)?;
            Ok(Place::File(std::fs::canonicalize(path)?))
        }
        Ok(_) => Ok(Place::Stream),
        Err(error) if error.kind() == ErrorKind::NotFound => match std::fs::read_link(path) {
            // A link to nothing yet; one that leads to itself is another error.
            Ok(target) => place(&path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) if names_a_folder(path) => {
                Err(Error::new(ErrorKind::IsADirectory, "it names a folder, which is not there"))
            }
            Err(_) => Ok(Place::File(path.to_owned())),
        },
        Err(error) => Err(error),
    }
}

/// Whether a path ends as only those of folders do.
fn names_a_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.last().is_some_and(|&last| std::path::is_separator(char::from(last)))
}

/// Whether a file that is there may be replaced: only what may be written, although its folder alone decides for the
/// system. A file that nobody may write is refused to the system's own user, too, who may do all.
fn permit(path: &Path, found: &std::fs::Metadata) -> Result<()> {
    if found.permissions().readonly() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it may only be read"));
    }
    // Opened and left as it is.
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

    /// Only where files can be given away: that is for the system's own user.
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

        // Of a chain of links in another folder, whose end is not there yet.
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
