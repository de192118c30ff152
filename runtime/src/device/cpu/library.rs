//! From a shared object on disk to code in memory: a path → [`Library`] → [`Entry`].

use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::support::scratch::Folder;

/// What a kernel looks like from outside: the batches `begin..end`, and one pointer for each argument.
pub type Entry = unsafe extern "C" fn(begin: usize, end: usize, args: *const *const u8);

/// Why a shared object cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The system's loader refused the file.
    #[error("cannot load the compiled kernels {}: {reason}", path.display())]
    Open {
        /// The shared object.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// The module holds no kernel of that name.
    #[error("{} holds no kernel named `{name}`", path.display())]
    Missing {
        /// The shared object.
        path: PathBuf,
        /// The kernel looked for.
        name: String,
    },
}

impl LoadError {
    /// What is wrong, without the file's name where the system's loader said it.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Open { path, reason } => {
                let named = format!("{}: ", path.display());
                reason.strip_prefix(&named).unwrap_or(reason).to_owned()
            }
            Self::Missing { .. } => self.to_string(),
        }
    }
}

/// A shared object, loaded until this value is dropped.
///
/// Loading code runs it, so nobody but the JIT does that:
///
/// ```compile_fail,E0624
/// #![forbid(unsafe_code)]
/// let library = runtime::device::cpu::Library::open("libanything.so".as_ref());
/// ```
pub struct Library {
    // Unloaded before the folder that holds its file goes: fields are dropped in this order.
    inner: libloading::Library,
    path: PathBuf,
    folder: Option<Folder>,
    cached: bool,
}

impl Library {
    /// Loads the shared object at `path`, which must be one that the JIT compiled: whatever its initialisers do is done,
    /// and what it exports is taken for kernels. For this crate alone.
    ///
    /// # Errors
    ///
    /// [`LoadError::Open`] if the system's loader refuses it.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: loading runs the object's initialisers. The JIT hands over only files that it compiled itself or
        // found intact (by key and checksum) in a cache that nobody else can write, from text that `kernels-gen`
        // printed, which has no initialisers.
        let inner = unsafe { libloading::Library::new(path) }
            .map_err(|error| LoadError::Open { path: path.into(), reason: said(&error) })?;
        Ok(Self { inner, path: path.into(), folder: None, cached: false })
    }

    /// Ties the life of the temporary folder that holds the file to this library.
    pub(crate) fn keep(mut self, folder: Folder) -> Self {
        // One that it has already holds the file that was loaded.
        self.folder.get_or_insert(folder);
        self
    }

    /// Marks the library as one that did not have to be compiled.
    pub(crate) fn mark_cached(mut self) -> Self {
        self.cached = true;
        self
    }

    /// Whether it was found ready, so that nothing was compiled for it.
    pub fn is_cached(&self) -> bool {
        self.cached
    }

    /// The file that was loaded; it may be gone where the JIT had no cache.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file lies in a folder that goes away with this library.
    pub fn is_temporary(&self) -> bool {
        self.folder.is_some()
    }

    /// The kernel that the library exports under `name`.
    ///
    /// The pointer must not be called after the library has been dropped; [`super::Module`] and [`super::Launch`] see to that.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] if there is none.
    pub(super) fn entry(&self, name: &str) -> Result<Entry, LoadError> {
        let missing = || LoadError::Missing { path: self.path.clone(), name: name.into() };
        if name.is_empty() || name.contains('\0') {
            return Err(missing());
        }
        // SAFETY: every symbol that a printed module exports is a kernel with the signature of `Entry`.
        let symbol = unsafe { self.inner.get::<Entry>(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| missing())
    }
}

/// What the system's loader said.
fn said(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl fmt::Debug for Library {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Library").field("path", &self.path).finish_non_exhaustive()
    }
}
