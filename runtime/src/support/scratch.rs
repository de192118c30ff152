//! Temporary files and folders, none of which is left behind.
//!
//! Each goes away with its value; with [`end`], which a program calls when a signal ends it; or, where it was killed and
//! called nothing, with the next [`sweep`]. A [`Folder`] or a [`File`] is locked as long as its program lives. The system
//! takes the locks of the dead away, so what is found without one belongs to nobody. Where a file system knows no locks,
//! what has not changed for a day is taken for left behind.

mod live;

use std::fs::{self, TryLockError};
use std::io::{Error, Result, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile, TempDir};

pub(crate) use live::Pipe;
pub use live::end;
use live::{Noted, live};

/// How the names of folders begin and end; twelve characters at random stand between.
const FOLDER: (&str, &str, usize) = ("weakform-", ".tmp", 12);
/// The same of files beside what they become.
const FILE: (&str, &str, usize) = (".wf-", ".part", 6);
/// How long something is left alone where there are no locks.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often something new is made while others sweep it away.
const TRIES: usize = 8;

/// A temporary folder that only the user can enter.
#[derive(Debug)]
pub struct Folder {
    inner: TempDir,
    _noted: Noted,
    _lock: Option<fs::File>,
}

impl Folder {
    /// One in the system's folder for such; what was left there is removed first.
    pub fn new() -> Result<Self> {
        let parent = std::env::temp_dir();
        sweep(&parent, |name, is_folder| is_folder && is_named(name, FOLDER));
        Self::within(&parent)
    }

    /// One in `parent`.
    pub fn within(parent: &Path) -> Result<Self> {
        let (prefix, suffix, random) = FOLDER;
        let mut builder = Builder::new();
        builder.prefix(prefix).suffix(suffix).rand_bytes(random);
        let (inner, noted, lock) = locked(
            || builder.tempdir_in(parent),
            |folder| folder.path(),
            |folder| fs::File::open(folder.path()).ok(),
        )?;
        Ok(Self { inner, _noted: noted, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.inner.path()
    }

    /// It was renamed and stays: nothing is removed.
    pub(crate) fn keep(self) {
        let _ = self.inner.keep();
    }
}

/// A temporary file beside the one that it becomes.
#[derive(Debug)]
pub(crate) struct File {
    inner: NamedTempFile,
    _noted: Noted,
}

impl File {
    /// One in the folder of `path`; what was left there is removed first.
    pub(crate) fn beside(path: &Path) -> Result<Self> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        sweep(folder, |name, is_folder| !is_folder && is_named(name, FILE));
        let (prefix, suffix, random) = FILE;
        let mut builder = Builder::new();
        builder.prefix(prefix).suffix(suffix).rand_bytes(random);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // What any program gives a new file; the user's mask takes away from it.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        // A lock belongs to the open file, and stays while any handle to it does.
        let (inner, noted, _) = locked(
            || builder.tempfile_in(folder),
            |file| file.path(),
            |file| file.as_file().try_clone().ok(),
        )?;
        Ok(Self { inner, _noted: noted })
    }

    /// The file, to be written and to have its rights changed.
    pub(crate) fn file(&self) -> &fs::File {
        self.inner.as_file()
    }

    /// Gives it the name that it is for.
    pub(crate) fn persist(self, path: &Path) -> Result<()> {
        self.inner.persist(path).map(drop).map_err(|error| error.error)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

/// Makes something, locks it, and notes that it is there.
fn locked<T>(
    make: impl Fn() -> Result<T>,
    path: impl Fn(&T) -> &Path,
    handle: impl Fn(&T) -> Option<fs::File>,
) -> Result<(T, Noted, Option<fs::File>)> {
    let mut live = live();
    for _ in 0..TRIES {
        let made = make()?;
        let lock = handle(&made);
        // Between the making and the lock another program may have swept it away, or be about to.
        let taken = match lock.as_ref().map(fs::File::try_lock) {
            Some(Err(TryLockError::WouldBlock)) => true,
            // What the lock is of need no longer be what is there.
            Some(Ok(())) => !lock.as_ref().is_some_and(|lock| is_at(lock, path(&made))),
            // Nor need what could not be opened or locked be there at all.
            Some(Err(TryLockError::Error(_))) | None => !path(&made).exists(),
        };
        if !taken {
            let noted = live.note(path(&made));
            return Ok((made, noted, lock));
        }
    }
    Err(Error::other("other programs keep removing what is made there"))
}

/// Whether an open file or folder is the one at a path.
fn is_at(open: &fs::File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (open.metadata(), fs::symlink_metadata(path)) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (open.dev(), open.ino()) == (there.dev(), there.ino())
    }
    #[cfg(not(unix))]
    {
        open.file_type() == there.file_type()
    }
}

/// Removes what programs left behind in `folder`, as far as `ours` says of a name, and whether it is that of a folder,
/// that it is one of those.
pub(crate) fn sweep(folder: &Path, ours: impl Fn(&str, bool) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { continue };
        if (kind.is_file() || kind.is_dir()) && ours(name, kind.is_dir()) {
            let _ = remove_stale(&path);
        }
    }
}

/// Removes what is there if no living program holds its lock, which is held meanwhile.
fn remove_stale(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
    }
    let lock = fs::File::open(path);
    let stale = match lock.as_ref().map(fs::File::try_lock) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock)) => false,
        Ok(Err(TryLockError::Error(_))) | Err(_) => {
            let limit = SystemTime::now().checked_sub(STALE);
            limit.is_some_and(|limit| found.modified().is_ok_and(|changed| changed < limit))
        }
    };
    if stale { remove(path) } else { Ok(()) }
}

fn remove(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Whether a name is one that we give.
fn is_named(name: &str, (prefix, suffix, random): (&str, &str, usize)) -> bool {
    let middle = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    middle.is_some_and(|middle| {
        middle.len() == random && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests;
