//! From a shared object on disk to kernels that can be launched: [`Library`] → [`Module`] → [`Kernel`] → [`Launch`].
//!
//! Every kernel has one signature, `unsafe extern "C" fn(begin, end, args)`: it works on the batches `begin..end`,
//! and `args` points to one pointer for each argument, in the order that the kernel's ABI lists. A [`Launch`] holds
//! those pointers for as long as the borrowed data lives, so that many threads can run ranges of one launch.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Plain;

/// What a kernel looks like from outside: the batches `begin..end`, and one pointer for each argument.
pub type Entry = unsafe extern "C" fn(begin: usize, end: usize, args: *const *const u8);

/// Why a shared object cannot be used.
#[derive(Debug, thiserror::Error)]
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

/// A shared object, loaded until this value is dropped.
pub struct Library {
    // Unloaded before the folder that holds its file goes: fields are dropped in this order.
    inner: libloading::Library,
    path: PathBuf,
    folder: Option<TempDir>,
    cached: bool,
}

impl Library {
    /// Loads the shared object at `path`, which must be one that the JIT compiled.
    ///
    /// # Errors
    ///
    /// [`LoadError::Open`] if the system's loader refuses it.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: loading runs the object's initialisers. The JIT hands over only files that it compiled itself or
        // found intact (by key and checksum) in a cache that nobody else can write, from text that `kernels-gen`
        // printed, which has no initialisers.
        let inner = unsafe { libloading::Library::new(path) }
            .map_err(|error| LoadError::Open { path: path.into(), reason: error.to_string() })?;
        Ok(Self { inner, path: path.into(), folder: None, cached: false })
    }

    /// Ties the life of the temporary folder that holds the file to this library.
    pub(crate) fn keep(mut self, folder: TempDir) -> Self {
        self.folder = Some(folder);
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
    /// The pointer must not be called after the library has been dropped; [`Module`] and [`Launch`] see to that.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] if there is none.
    pub fn entry(&self, name: &str) -> Result<Entry, LoadError> {
        let missing = || LoadError::Missing { path: self.path.clone(), name: name.into() };
        if name.is_empty() || name.contains('\0') {
            return Err(missing());
        }
        // SAFETY: every symbol that a printed module exports is a kernel with the signature of `Entry`.
        let symbol = unsafe { self.inner.get::<Entry>(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| missing())
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Library").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Data lent to a kernel: where it lies, how much there is, and whether the kernel may write.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    pointer: *const u8,
    elements: usize,
    kind: &'static str,
    writable: bool,
    borrows: PhantomData<&'a ()>,
}

// SAFETY: an argument is a lent slice of plain numbers, and those may be read and written from any thread; that two
// threads do not write one element at once is the kernel's duty (see `Launch::run`).
unsafe impl Send for Argument<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Argument<'_> {}

impl<'a> Argument<'a> {
    /// Data that the kernel only reads.
    pub fn read<T: Plain>(values: &'a [T]) -> Self {
        Self::new(values.as_ptr().cast(), values.len(), T::NAME, false)
    }

    /// Data that the kernel reads and writes.
    pub fn write<T: Plain>(values: &'a mut [T]) -> Self {
        Self::new(values.as_mut_ptr().cast(), values.len(), T::NAME, true)
    }

    fn new(pointer: *const u8, elements: usize, kind: &'static str, writable: bool) -> Self {
        Self { pointer, elements, kind, writable, borrows: PhantomData }
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The name of the elements' type in Rust.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Whether the kernel may write it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

/// Why a kernel was not launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The module was made without this kernel.
    #[error("the module holds no kernel named `{0}`")]
    UnknownKernel(String),
}

/// Compiled kernels, found by name.
#[derive(Debug)]
pub struct Module {
    entries: BTreeMap<String, Entry>,
    // Owns the code that `entries` points into.
    library: Library,
}

impl Module {
    /// Looks up each of `names` in `library`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] if one is not there.
    pub fn new<'n>(
        library: Library,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, LoadError> {
        let entries = names.into_iter().map(|name| Ok((name.to_owned(), library.entry(name)?)));
        Ok(Self { entries: entries.collect::<Result<_, LoadError>>()?, library })
    }

    /// The library that holds the code.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The kernel `name`.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`] if the module was made without it.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>, LaunchError> {
        let entry = self.entries.get(name);
        let entry = *entry.ok_or_else(|| LaunchError::UnknownKernel(name.to_owned()))?;
        Ok(Kernel { entry, borrows: PhantomData })
    }

    /// Runs the batches `begin..end` of kernel `name` on this thread.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`] if the module was made without it.
    pub fn launch(
        &self,
        name: &str,
        begin: usize,
        end: usize,
        arguments: &[Argument<'_>],
    ) -> Result<(), LaunchError> {
        self.kernel(name)?.bind(arguments).run(begin..end);
        Ok(())
    }
}

/// One kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m> {
    entry: Entry,
    borrows: PhantomData<&'m Module>,
}

impl<'m> Kernel<'m> {
    /// Ties the kernel to its arguments, in the order that its ABI lists.
    pub fn bind<'a>(self, arguments: &[Argument<'a>]) -> Launch<'a>
    where
        'm: 'a,
    {
        let pointers = arguments.iter().map(|argument| Pointer(argument.pointer)).collect();
        Launch { entry: self.entry, pointers, borrows: PhantomData }
    }
}

/// A pointer into lent data; as a type of its own, so that a launch can be shared between threads.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Pointer(*const u8);

// SAFETY: see `Argument`: lent plain numbers.
unsafe impl Send for Pointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pointer {}

/// A kernel with its arguments, ready to run; many threads may run ranges of it at once.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    entry: Entry,
    pointers: Vec<Pointer>,
    borrows: PhantomData<&'a ()>,
}

impl Launch<'_> {
    /// Runs the given batches on this thread.
    ///
    /// Ranges that run at the same time must be ones whose scatters the kernel's plan allows at the same time:
    /// of one colour, with disjoint results, or with atomic additions.
    pub fn run(&self, batches: Range<usize>) {
        if batches.is_empty() {
            return;
        }
        // SAFETY: the code is loaded as long as the module that 'a outlives; the arguments are lent as long, and are
        // those that the kernel's ABI lists, in its order and extents; the module's code was printed together with
        // that ABI, and its accesses were verified to stay within those extents. `Pointer` is transparent.
        unsafe { (self.entry)(batches.start, batches.end, self.pointers.as_ptr().cast()) };
    }
}
