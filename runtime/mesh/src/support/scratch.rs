//! Temporary files and folders with guaranteed removal.
//!
//! Each is removed with its value, by [`end`], which a program calls on a signal, or by the next [`sweep`] after a
//! kill. A [`ScratchFolder`] or a [`ScratchFile`] is locked while its program lives. The system releases the locks of
//! dead programs, so unlocked ones are stale. Without file locks, anything unchanged for a day counts as stale.

mod registry;

use std::fs::{self, TryLockError};
use std::io::{Error, Result, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::{Builder, NamedTempFile, TempDir};

pub use registry::Pipe;
pub use registry::end;
use registry::{Registration, live};

/// Prefix and suffix of folder names, and the number of random characters between them.
const FOLDER: (&str, &str, usize) = ("weakform-", ".tmp", 12);
/// The same for files next to their targets.
const FILE: (&str, &str, usize) = (".wf-", ".part", 6);
/// The age of stale files on systems without locks.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of attempts to create something that others remove.
const TRIES: usize = 8;

/// A temporary folder, accessible only to the user.
#[derive(Debug)]
pub struct ScratchFolder {
    inner: TempDir,
    _noted: Registration,
    _lock: Option<fs::File>,
}

impl ScratchFolder {
    /// Creates a folder in the system's temporary folder, after removing stale ones.
    pub fn new() -> Result<Self> {
        let parent = std::env::temp_dir();
        sweep(&parent, |name, is_folder| is_folder && is_named(name, FOLDER));
        Self::within(&parent)
    }

    /// Creates a folder in `parent`.
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

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.inner.path()
    }

    /// Keeps the folder, which has been renamed.
    pub fn keep(self) {
        let _ = self.inner.keep();
    }
}

/// A temporary file in the folder of its target.
#[derive(Debug)]
pub(crate) struct ScratchFile {
    inner: NamedTempFile,
    _noted: Registration,
}

impl ScratchFile {
    /// Creates a file in the folder of `path`, after removing stale ones.
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
            // The usual permissions of a new file, reduced by the user's mask.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        // A lock belongs to the open file, and lasts as long as any handle to it.
        let (inner, noted, _) = locked(
            || builder.tempfile_in(folder),
            |file| file.path(),
            |file| file.as_file().try_clone().ok(),
        )?;
        Ok(Self { inner, _noted: noted })
    }

    /// Returns the file, for writing and for changing permissions.
    pub(crate) fn file(&self) -> &fs::File {
        self.inner.as_file()
    }

    /// Renames the file to its target.
    pub(crate) fn persist(self, path: &Path) -> Result<()> {
        self.inner.persist(path).map(drop).map_err(|error| error.error)
    }
}

impl Write for ScratchFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

/// Creates something, locks it and registers it.
fn locked<T>(
    make: impl Fn() -> Result<T>,
    path: impl Fn(&T) -> &Path,
    handle: impl Fn(&T) -> Option<fs::File>,
) -> Result<(T, Registration, Option<fs::File>)> {
    let mut live = live();
    for _ in 0..TRIES {
        let made = make()?;
        let lock = handle(&made);
        // Another program may remove it before it is locked.
        let taken = match lock.as_ref().map(fs::File::try_lock) {
            Some(Err(TryLockError::WouldBlock)) => true,
            // The locked file may not be the existing one.
            Some(Ok(())) => !lock.as_ref().is_some_and(|lock| is_at(lock, path(&made))),
            // A file that could not be opened or locked may no longer exist.
            Some(Err(TryLockError::Error(_))) | None => !path(&made).exists(),
        };
        if !taken {
            let noted = live.note(path(&made));
            return Ok((made, noted, lock));
        }
    }
    Err(Error::other("other programs keep removing what is made there"))
}

/// Returns whether an open file or folder is the one at a path.
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

/// Removes stale files and folders in `folder`; `ours` selects them by name and kind.
pub fn sweep(folder: &Path, ours: impl Fn(&str, bool) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else { continue };
        if (kind.is_file() || kind.is_dir()) && ours(name, kind.is_dir()) {
            let _ = remove_stale(&path);
        }
    }
}

/// Removes a file or folder whose lock no living program holds; it is locked meanwhile.
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

/// Returns whether a name has this pattern.
fn is_named(name: &str, (prefix, suffix, random): (&str, &str, usize)) -> bool {
    let middle = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    middle.is_some_and(|middle| {
        middle.len() == random && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests;
