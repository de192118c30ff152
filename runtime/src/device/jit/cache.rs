//! Disk cache of compiled modules: [`CacheKey`] → the path of a shared object.
//!
//! An entry is a folder named by the key's hash. It contains the module and `key.txt`: the key in clear text, the
//! module's checksum, and a seal over both. Entries with another key or a wrong checksum are never run but rebuilt.
//! Entries are created in a separate folder and renamed into place, so that concurrent processes never see partial
//! ones. The cache is private to the user: data that others could have written is not trusted, and folders with foreign
//! files are left unchanged.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::warn_once;
use crate::support::scratch::{self, ScratchFolder};

/// The file name of a module in its entry.
pub(super) const MODULE: &str = "module.so";
/// The file name of a key, next to its module.
const KEY: &str = "key.txt";
/// The folders of a cache: entries, work folders, compiler information, rejected sources, and lock files for entries
/// under construction.
const FOLDERS: [&str; 5] = ["modules", "building", "compilers", "rejected", "turns"];
/// File that marks a folder as a cache, also for backup programs (<https://bford.info/cachedir/>).
const TAG: &str = "CACHEDIR.TAG";
/// The contents of that file; the first line is prescribed.
const TAG_TEXT: &str =
    "Signature: 8a477f597d28d172789f06886806bc55\n# Kernels compiled by weakform.\n";
/// Number of attempts to rename an entry into place.
const TRIES: usize = 4;

/// Error of the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// No folder is given and the user has no home.
    #[error("the user has no folder for caches\nhelp: name one with WF_CACHE_DIR")]
    Nowhere,
    /// A folder that belongs to another user, or that others may write to.
    #[error(
        "the cache {} is not trusted: {reason}\n\
         help: name another folder with WF_CACHE_DIR, or remove this one",
        folder.display()
    )]
    Untrusted {
        /// The folder of the cache.
        folder: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// A folder with foreign files; a cache must be private.
    #[error(
        "{} holds other files and is no cache\n\
         help: name a folder with WF_CACHE_DIR that is empty, or not there yet",
        folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// A failed file operation.
    #[error("cannot write the cache {}: {error}\nhelp: name another folder with WF_CACHE_DIR", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Everything that affects a module, as text, and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheKey {
    text: String,
    hash: String,
}

impl CacheKey {
    /// Creates a key from named parts. Lengths separate the parts unambiguously.
    pub(super) fn new(parts: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (name, value) in parts {
            let _ = write!(text, "{name} ({} bytes):\n{value}\n", value.len());
        }
        let hash = blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
        Self { text, hash }
    }

    /// Returns the first 128 bits of the hash, in hexadecimal.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the content of `key.txt` for `module`.
    fn label(&self, module: &[u8]) -> String {
        seal(&format!("{}module: {}\n", self.text, blake3::hash(module).to_hex()))
    }
}

/// Statistics of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatistics {
    /// The number of compiled modules.
    pub modules: usize,
    /// Their size in bytes, including keys.
    pub bytes: u64,
}

/// A private folder of compiled modules.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Opens the cache in `folder`, or creates it.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if it cannot be created, if others could have written to it, or if it contains foreign files.
    pub fn open(folder: &Path) -> Result<Self, CacheError> {
        let failed = |error| CacheError::Write { path: folder.into(), error };
        make_private(folder).map_err(failed)?;
        let found = fs::metadata(folder).map_err(failed)?;
        let names = names(folder).map_err(failed)?;
        let ours = |name: &OsString| name == TAG || FOLDERS.iter().any(|known| name == known);
        if !names.iter().all(ours) && !is_tagged(folder) {
            return Err(CacheError::Occupied { folder: folder.into() });
        }
        let untrusted =
            |folder: &Path, reason| CacheError::Untrusted { folder: folder.into(), reason };
        trust(&found, names.is_empty()).map_err(|reason| untrusted(folder, reason))?;
        for name in FOLDERS {
            let part = folder.join(name);
            trust_part(&part).map_err(|reason| untrusted(&part, reason))?;
        }
        close(folder, &found).map_err(|reason| untrusted(folder, reason))?;
        if !names.iter().any(|name| name == TAG) {
            // A cache without the tag file remains usable.
            let _ = fs::write(folder.join(TAG), TAG_TEXT);
        }
        let cache = Self { folder: folder.into() };
        scratch::sweep(&cache.building(), |_, _| true);
        Ok(cache)
    }

    /// Returns the folder of the cache.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Counts the entries.
    pub fn contents(&self) -> CacheStatistics {
        let entries = fs::read_dir(self.folder.join("modules")).into_iter().flatten().flatten();
        let length = |path: PathBuf| fs::metadata(path).ok().map(|file| file.len());
        let sizes = entries.filter_map(|entry| {
            let label = length(entry.path().join(KEY)).unwrap_or(0);
            Some(length(entry.path().join(MODULE))? + label)
        });
        sizes.fold(CacheStatistics { modules: 0, bytes: 0 }, |sum, bytes| CacheStatistics {
            modules: sum.modules + 1,
            bytes: sum.bytes + bytes,
        })
    }

    /// Finds the intact module of a key.
    pub(super) fn lookup(&self, key: &CacheKey) -> Option<PathBuf> {
        let entry = self.entry(key);
        if self.is_whole(key) {
            return Some(entry.join(MODULE));
        }
        if entry.exists() {
            warn_once(&format!(
                "the cached kernel {} is damaged or foreign: compiled again",
                entry.display()
            ));
        }
        None
    }

    /// Returns whether the cache has an entry for the key, intact or not.
    pub(super) fn contains(&self, key: &CacheKey) -> bool {
        self.entry(key).exists()
    }

    /// Returns whether the cache has an intact module for the key.
    pub(super) fn is_whole(&self, key: &CacheKey) -> bool {
        let entry = self.entry(key);
        let Ok(module) = fs::read(entry.join(MODULE)) else { return false };
        fs::read(entry.join(KEY)).is_ok_and(|label| label == key.label(&module).as_bytes())
    }

    /// Removes the module of a key by a single rename, so that nobody sees a partial entry.
    pub(super) fn discard(&self, key: &CacheKey) {
        if let Ok(aside) = self.workplace() {
            let _ = fs::rename(self.entry(key), aside.path().join("discarded"));
        }
    }

    /// Waits until no other process builds the module of this key, and blocks others while the file is held. Without
    /// file locks, several processes may build it, which only costs time.
    pub(super) fn turn(&self, key: &CacheKey) -> Option<fs::File> {
        let folder = self.folder.join("turns");
        make_private(&folder).ok()?;
        // A few permanent files: removing one would race with a process about to lock it.
        let file = fs::File::create(folder.join(&key.hash[..2])).ok()?;
        file.lock().ok()?;
        Some(file)
    }

    /// Creates a work folder on the file system of the entries.
    pub(super) fn workplace(&self) -> Result<ScratchFolder, CacheError> {
        let folder = self.building();
        let failed = |error| CacheError::Write { path: folder.clone(), error };
        make_private(&folder).map_err(failed)?;
        ScratchFolder::within(&folder).map_err(failed)
    }

    fn building(&self) -> PathBuf {
        self.folder.join("building")
    }

    /// Moves a work folder with a finished module into place; returns it on failure.
    ///
    /// An entry that another process created first takes precedence.
    pub(super) fn store(
        &self,
        key: &CacheKey,
        workplace: ScratchFolder,
    ) -> Result<PathBuf, (CacheError, ScratchFolder)> {
        match self.place(key, &workplace) {
            Ok(EntryCreator::ThisProcess) => {
                // The folder has moved: nothing is left to remove.
                workplace.keep();
                Ok(self.entry(key).join(MODULE))
            }
            Ok(EntryCreator::OtherProcess) => Ok(self.entry(key).join(MODULE)),
            Err(error) => Err((error, workplace)),
        }
    }

    fn place(&self, key: &CacheKey, workplace: &ScratchFolder) -> Result<EntryCreator, CacheError> {
        let failed = |path: &Path, error| CacheError::Write { path: path.into(), error };
        let module = workplace.path().join(MODULE);
        let bytes = fs::read(&module).map_err(|error| failed(&module, error))?;
        let label = workplace.path().join(KEY);
        fs::write(&label, key.label(&bytes)).map_err(|error| failed(&label, error))?;
        let entry = self.entry(key);
        let modules = self.folder.join("modules");
        make_private(&modules).map_err(|error| failed(&modules, error))?;
        let mut last = None;
        for _ in 0..TRIES {
            match fs::rename(workplace.path(), &entry) {
                Ok(()) => return Ok(EntryCreator::ThisProcess),
                Err(error) => last = Some(error),
            }
            if !entry.exists() {
                break;
            }
            if self.is_whole(key) {
                return Ok(EntryCreator::OtherProcess);
            }
            self.discard(key);
        }
        let error = last.unwrap_or_else(|| io::Error::other("others keep changing it"));
        Err(failed(&entry, error))
    }

    /// Saves a rejected source for the user.
    pub(super) fn keep_rejected(&self, file: &str, source: &str) -> Result<PathBuf, CacheError> {
        let path = self.folder.join("rejected").join(file);
        self.write(&path, source)
            .map_err(|error| CacheError::Write { path: path.clone(), error })?;
        Ok(path)
    }

    /// Finds the intact text stored under `key`.
    pub(crate) fn recall(&self, key: &str) -> Option<String> {
        let text = fs::read_to_string(self.memory(key)).ok()?;
        let body = unseal(&text)?;
        body.strip_prefix(key)?.strip_prefix("\n\n").map(str::to_owned)
    }

    /// Stores `text` under `key`. A failure only costs time.
    pub(crate) fn remember(&self, key: &str, text: &str) {
        let path = self.memory(key);
        if let Err(error) = self.write(&path, &seal(&format!("{key}\n\n{text}"))) {
            tracing::debug!("cannot write {}: {error}", path.display());
        }
    }

    /// Writes a file atomically, in a folder of the cache that is created if needed.
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        make_private(path.parent().unwrap_or(&self.folder))?;
        make_private(&self.building())?;
        let workplace = ScratchFolder::within(&self.building())?;
        let file = workplace.path().join("text");
        fs::write(&file, text)?;
        fs::rename(&file, path)
    }

    fn entry(&self, key: &CacheKey) -> PathBuf {
        self.folder.join("modules").join(&key.hash)
    }

    fn memory(&self, key: &str) -> PathBuf {
        let hash = &blake3::hash(key.as_bytes()).to_hex()[..32];
        self.folder.join("compilers").join(format!("{hash}.txt"))
    }
}

/// The creator of an entry.
enum EntryCreator {
    ThisProcess,
    OtherProcess,
}

/// Appends a checksum line to a text.
fn seal(text: &str) -> String {
    format!("{text}seal: {}\n", blake3::hash(text.as_bytes()).to_hex())
}

/// Returns the text without its checksum line, if that is correct.
fn unseal(text: &str) -> Option<&str> {
    let (body, mark) = text.strip_suffix('\n')?.rsplit_once("seal: ")?;
    (mark == blake3::hash(body.as_bytes()).to_hex().as_str()).then_some(body)
}

/// Creates a folder and its parents, accessible only to the user.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Returns the names in a folder.
fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns whether a folder has the cache tag.
fn is_tagged(folder: &Path) -> bool {
    fs::read(folder.join(TAG)).is_ok_and(|text| text == TAG_TEXT.as_bytes())
}

/// Checks that only the user can have written to a folder. An empty one can still be closed to others, unless it is
/// sticky.
#[cfg(unix)]
fn trust(found: &Metadata, is_empty: bool) -> Result<(), &'static str> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user");
    }
    let mode = found.permissions().mode();
    if mode & 0o022 != 0 && (mode & 0o1000 != 0 || !is_empty) {
        return Err("others may write to it");
    }
    Ok(())
}

/// Checks that only the user can have written to an existing subfolder of the cache.
#[cfg(unix)]
fn trust_part(part: &Path) -> Result<(), &'static str> {
    let Ok(found) = fs::symlink_metadata(part) else { return Ok(()) };
    if !found.is_dir() {
        return Err("it is no folder");
    }
    trust(&found, false)
}

/// Makes the folder private.
#[cfg(unix)]
fn close(folder: &Path, found: &Metadata) -> Result<(), &'static str> {
    use std::os::unix::fs::PermissionsExt as _;
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder, private).map_err(|_| "it cannot be closed to others")
}

/// On systems without such owners, the user's own cache folder is trusted.
#[cfg(not(unix))]
fn trust(_: &Metadata, _: bool) -> Result<(), &'static str> {
    Ok(())
}

#[cfg(not(unix))]
fn trust_part(_: &Path) -> Result<(), &'static str> {
    Ok(())
}

#[cfg(not(unix))]
fn close(_: &Path, _: &Metadata) -> Result<(), &'static str> {
    Ok(())
}
