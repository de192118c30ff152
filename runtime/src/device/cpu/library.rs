//! Loading of shared objects: a path → [`Library`] → [`KernelEntry`].

use std::error::Error as _;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::support::scratch::ScratchFolder;

/// Signature of a kernel: the batches `begin..end`, and one pointer per argument.
pub type KernelEntry = unsafe extern "C" fn(begin: usize, end: usize, args: *const *const u8);

/// Error of a shared object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file that the system's loader rejects.
    #[error("cannot load the compiled kernels {}: {reason}", path.display())]
    Open {
        /// The shared object.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// A missing kernel.
    #[error("{} holds no kernel named `{name}`", path.display())]
    Missing {
        /// The shared object.
        path: PathBuf,
        /// The kernel's name.
        name: String,
    },
}

impl LoadError {
    /// Returns the message, without the file name if it starts with it.
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

/// Shared object, loaded until this value is dropped.
///
/// Loading runs code, so only the JIT can do it:
///
/// ```compile_fail,E0624
/// #![forbid(unsafe_code)]
/// let library = runtime::device::cpu::Library::open("libanything.so".as_ref());
/// ```
pub struct Library {
    // Fields are dropped in this order: the library is unloaded before its folder is removed.
    inner: libloading::Library,
    path: PathBuf,
    folder: Option<ScratchFolder>,
    cached: bool,
}

impl Library {
    /// Loads the shared object at `path`, which the JIT must have compiled: its initialisers run, and its exports are
    /// called as kernels. Private to this crate.
    ///
    /// # Errors
    ///
    /// [`LoadError::Open`] if the system's loader rejects it.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: loading runs the object's initialisers. The JIT passes only files that it compiled itself or found
        // intact (by key and checksum) in a private cache. Their text was printed by `kernels-gen` and has no
        // initialisers.
        let inner = unsafe { libloading::Library::new(path) }
            .map_err(|error| LoadError::Open { path: path.into(), reason: said(&error) })?;
        Ok(Self { inner, path: path.into(), folder: None, cached: false })
    }

    /// Keeps the temporary folder of the file as long as the library.
    pub(crate) fn keep(mut self, folder: ScratchFolder) -> Self {
        // An existing folder contains the loaded file.
        self.folder.get_or_insert(folder);
        self
    }

    /// Marks the library as cached.
    pub(crate) fn mark_cached(mut self) -> Self {
        self.cached = true;
        self
    }

    /// Returns whether the library was cached, so that nothing was compiled.
    pub fn is_cached(&self) -> bool {
        self.cached
    }

    /// Returns the loaded file; it may no longer exist without a cache.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file is in a temporary folder.
    pub fn is_temporary(&self) -> bool {
        self.folder.is_some()
    }

    /// Returns the kernel exported as `name`.
    ///
    /// The pointer must not be called after the library is dropped; [`super::Module`] and [`super::Launch`] ensure
    /// this.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] if it does not exist.
    pub(super) fn entry(&self, name: &str) -> Result<KernelEntry, LoadError> {
        let missing = || LoadError::Missing { path: self.path.clone(), name: name.into() };
        if name.is_empty() || name.contains('\0') {
            return Err(missing());
        }
        // SAFETY: every symbol exported by a printed module is a kernel with the signature of `KernelEntry`.
        let symbol = unsafe { self.inner.get::<KernelEntry>(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| missing())
    }
}

/// Returns the message of the system's loader.
fn said(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl fmt::Debug for Library {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Library").field("path", &self.path).finish_non_exhaustive()
    }
}
