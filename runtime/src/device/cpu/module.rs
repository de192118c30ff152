//! Executable kernels: [`Library`] → [`Module`] → [`Kernel`] → [`Launch`]. Without a compiler, a module holds
//! interpreted kernels with the same interface.
//!
//! Every kernel has the signature `unsafe extern "C" fn(begin, end, args)`. It processes the batches `begin..end`;
//! `args` points to one pointer per argument, in the order of the kernel's ABI. A [`Launch`] holds these pointers while
//! the data is borrowed. One thread at a time runs it, or several threads run parts with disjoint results.
//! [`super::Schedule`] handles concurrent additions to one vector.
//!
//! Modules are created from text and interfaces printed together by `kernels-gen` (`Jit::load`), from kernels of the
//! program ([`LinkedKernels`]), or from interpreted kernels. Code outside this crate cannot create a module with other
//! code or another interface, so that launches can rely on interfaces.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use crate::support::parallel::*;
use kernels_gen::abi::KernelAbi;
use kernels_gen::interpreted::InterpretedKernel;

use super::argument::fit;
use super::interpreted::arrays;
use super::{Argument, KernelEntry, LaunchError, Library, LinkedKernels, LoadError};

/// Code of a kernel.
#[derive(Clone, Copy, Debug)]
enum KernelCode<'m> {
    Compiled(KernelEntry),
    Interpreted(&'m InterpretedKernel),
}

/// Kernels with their ABIs, accessible by name.
///
/// Code outside this crate cannot define the ABI of a kernel:
///
/// ```compile_fail,E0624
/// #![forbid(unsafe_code)]
/// use kernels_gen::abi::KernelAbi;
/// use runtime::device::cpu::{Library, Module};
///
/// fn forge(library: Library, abi: KernelAbi) {
///     let _ = Module::new(library, &[KernelAbi { arguments: Vec::new(), ..abi }]);
/// }
/// ```
///
/// ```compile_fail,E0451
/// #![forbid(unsafe_code)]
/// use kernels_gen::dialect::{GeneratedSource, Language, SourceFile};
///
/// let forged = GeneratedSource { file: SourceFile::empty(Language::Rust), isa: None };
/// ```
#[derive(Debug)]
pub struct Module {
    compiled: BTreeMap<String, (KernelEntry, KernelAbi)>,
    interpreted: BTreeMap<String, InterpretedKernel>,
    deferred: Vec<DeferredKernels>,
    // Owners of the code that `compiled` points to, unless it is part of the program.
    code: Vec<Library>,
}

impl Module {
    /// Creates a module without kernels.
    pub(crate) fn empty() -> Self {
        let (compiled, interpreted) = (BTreeMap::new(), BTreeMap::new());
        Self { compiled, interpreted, deferred: Vec::new(), code: Vec::new() }
    }

    /// Adds the kernels of another module.
    pub(crate) fn join(&mut self, other: Self) {
        self.compiled.extend(other.compiled);
        self.interpreted.extend(other.interpreted);
        self.deferred.extend(other.deferred);
        self.code.extend(other.code);
    }

    /// Looks up `kernels` in `library`.
    ///
    /// In the library's text, the functions with these names must match their interfaces exactly: launches trust them.
    /// [`crate::device::jit::Jit::load`] ensures this; so do the few hand-written texts of this crate.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] for a missing kernel.
    pub(crate) fn new(library: Library, kernels: &[KernelAbi]) -> Result<Self, LoadError> {
        let mut found = BTreeMap::new();
        for abi in kernels {
            found.insert(abi.name.clone(), (library.entry(&abi.name)?, abi.clone()));
        }
        Ok(Self { compiled: found, code: vec![library], ..Self::empty() })
    }

    /// Finds `kernels` among those compiled into the program. The interfaces must be those of `kernels-gen` for these
    /// hashes.
    ///
    /// # Errors
    ///
    /// The first missing kernel.
    pub(crate) fn linked<'k>(
        linked: &[LinkedKernels],
        kernels: &'k [KernelAbi],
    ) -> Result<Self, &'k KernelAbi> {
        let mut found = BTreeMap::new();
        for abi in kernels {
            let entry = linked.iter().find_map(|linked| linked.entry(abi.hash)).ok_or(abi)?;
            found.insert(abi.name.clone(), (entry, abi.clone()));
        }
        Ok(Self { compiled: found, ..Self::empty() })
    }

    /// Creates a module of interpreted kernels.
    pub fn interpreted(kernels: Vec<InterpretedKernel>) -> Self {
        let named = kernels.into_iter().map(|kernel| (kernel.abi().name.clone(), kernel));
        Self { interpreted: named.collect(), ..Self::empty() }
    }

    /// Adds kernels that `make` compiles when one of them is needed first.
    pub(crate) fn defer(
        &mut self,
        abis: Vec<KernelAbi>,
        make: impl Fn() -> Result<Self, String> + Send + Sync + 'static,
    ) {
        let (make, made) = (Box::new(make), OnceLock::new());
        self.deferred.push(DeferredKernels { abis, make, made });
    }

    /// Returns whether the kernels are interpreted.
    pub fn is_interpreted(&self) -> bool {
        !self.interpreted.is_empty()
    }

    /// Returns the interface of a kernel, also of a deferred one, which is not compiled for it.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`] if the module does not contain it.
    pub fn abi(&self, name: &str) -> Result<&KernelAbi, LaunchError> {
        let mut deferred = self.deferred.iter().flat_map(|later| &later.abis);
        match deferred.find(|abi| abi.name == name) {
            Some(abi) => Ok(abi),
            None => Ok(self.kernel(name)?.abi()),
        }
    }

    /// Finds a kernel by name; compiles it if it is deferred.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`] if the module does not contain it; [`LaunchError::NotCompiled`].
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>, LaunchError> {
        if let Some((entry, abi)) = self.compiled.get(name) {
            return Ok(Kernel { code: KernelCode::Compiled(*entry), abi });
        }
        let of = |later: &&DeferredKernels| later.abis.iter().any(|abi| abi.name == name);
        if let Some(later) = self.deferred.iter().find(of) {
            return match later.made.get_or_init(&later.make) {
                Ok(module) => module.kernel(name),
                Err(reason) => {
                    let (kernel, reason) = (name.to_owned(), reason.clone());
                    Err(LaunchError::NotCompiled { kernel, reason })
                }
            };
        }
        let found = self.interpreted.get(name);
        let kernel = found.ok_or_else(|| LaunchError::UnknownKernel(name.to_owned()))?;
        Ok(Kernel { code: KernelCode::Interpreted(kernel), abi: kernel.abi() })
    }

    /// Runs batches `begin..end` of kernel `name` on this thread.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if there is no such kernel or its arguments do not fit.
    pub fn launch<'a>(
        &'a self,
        name: &str,
        begin: usize,
        end: usize,
        arguments: impl Into<Vec<Argument<'a>>>,
    ) -> Result<(), LaunchError> {
        self.kernel(name)?.bind(arguments)?.run(begin..end)
    }
}

/// Kernels that are compiled when one of them is needed first.
struct DeferredKernels {
    abis: Vec<KernelAbi>,
    make: Box<dyn Fn() -> Result<Module, String> + Send + Sync>,
    made: OnceLock<Result<Module, String>>,
}

impl fmt::Debug for DeferredKernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.abis.iter().map(|abi| abi.name.as_str()).collect();
        f.debug_tuple("DeferredKernels").field(&names).finish()
    }
}

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m> {
    code: KernelCode<'m>,
    abi: &'m KernelAbi,
}

impl<'m> Kernel<'m> {
    /// Returns the kernel's interface.
    pub fn abi(&self) -> &'m KernelAbi {
        self.abi
    }

    /// Binds arguments, in the order of the ABI.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if the number, types, access or lengths of the arguments do not fit the ABI, or if an index is
    /// out of range.
    pub fn bind<'a>(
        self,
        arguments: impl Into<Vec<Argument<'a>>>,
    ) -> Result<Launch<'a>, LaunchError>
    where
        'm: 'a,
    {
        let arguments = arguments.into();
        let batches = fit(self.abi, &arguments)?;
        let pointers = arguments.iter().map(|argument| Pointer(argument.pointer())).collect();
        Ok(Launch { code: self.code, abi: self.abi, pointers, arguments, batches })
    }
}

/// A pointer to borrowed data; a separate type, so that launches can be shared between threads.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Pointer(*const u8);

// SAFETY: see `Argument`: borrowed plain numbers.
unsafe impl Send for Pointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pointer {}

/// A kernel with bound arguments.
///
/// Only one thread at a time can run it, so additions do not race:
///
/// ```compile_fail,E0499
/// #![forbid(unsafe_code)]
/// fn race(launch: &mut runtime::device::cpu::Launch<'_>) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| launch.run(0..1));
///         scope.spawn(|| launch.run(0..1));
///     });
/// }
/// ```
///
/// ```compile_fail,E0596
/// #![forbid(unsafe_code)]
/// fn share(launch: &runtime::device::cpu::Launch<'_>) {
///     let _ = launch.run(0..1);
/// }
/// ```
#[derive(Debug)]
pub struct Launch<'a> {
    code: KernelCode<'a>,
    abi: &'a KernelAbi,
    pointers: Vec<Pointer>,
    arguments: Vec<Argument<'a>>,
    batches: usize,
}

impl<'a> Launch<'a> {
    /// Returns the number of batches for which every argument has data.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// Returns the interface and the arguments.
    pub(super) fn parts(&self) -> (&'a KernelAbi, &[Argument<'a>]) {
        (self.abi, &self.arguments)
    }

    /// Runs the given batches on this thread.
    ///
    /// # Errors
    ///
    /// [`LaunchError::NoSuchBatches`] if an argument has no data for the end of the range.
    pub fn run(&mut self, batches: Range<usize>) -> Result<(), LaunchError> {
        self.holds(&batches)?;
        if self.arguments.iter().any(Argument::is_shared) {
            return Err(self.overlapping());
        }
        // SAFETY: written data is borrowed exclusively by this launch, which this call borrows exclusively.
        unsafe { self.run_beside_others(batches) }
    }

    /// Runs ascending, disjoint ranges of batches on the thread pool, for kernels that write only rows of their
    /// batches.
    ///
    /// # Errors
    ///
    /// Those of [`Launch::run`]; [`LaunchError::Overlapping`] if ranges overlap or the kernel writes elsewhere.
    pub fn run_disjoint(&mut self, parts: &[Range<usize>]) -> Result<(), LaunchError> {
        parts.iter().try_for_each(|part| self.holds(part))?;
        let filled = || parts.iter().filter(|part| !part.is_empty());
        let ordered = filled().zip(filled().skip(1)).all(|(a, b)| a.end <= b.start);
        // Arguments without index array are accessed in the rows of the batch only.
        let rows = |(at, argument): (usize, &kernels_gen::abi::Argument)| {
            !argument.written || self.abi.reaches.iter().all(|reach| reach.array != at)
        };
        let own = self.abi.arguments.iter().enumerate().all(rows);
        if !ordered || !own || self.arguments.iter().any(Argument::is_shared) {
            return Err(self.overlapping());
        }
        let launch = &*self;
        // SAFETY: as in `run`; and the parts write disjoint rows of different batches.
        let run = |part: &Range<usize>| unsafe { launch.run_beside_others(part.clone()) };
        parts.par_iter().first(|part| run(part).err()).map_or(Ok(()), Err)
    }

    /// Checks that all arguments have data for these batches.
    pub(super) fn holds(&self, batches: &Range<usize>) -> Result<(), LaunchError> {
        if batches.end <= self.batches {
            return Ok(());
        }
        let (kernel, wanted) = (self.abi.name.clone(), batches.clone());
        Err(LaunchError::NoSuchBatches { kernel, wanted, batches: self.batches })
    }

    /// Returns the error for parts that cannot run concurrently.
    pub(super) fn overlapping(&self) -> LaunchError {
        LaunchError::Overlapping { kernel: self.abi.name.clone() }
    }

    /// Runs batches on this thread, possibly concurrently with others.
    ///
    /// # Safety
    ///
    /// All arguments have data for the batches ([`Launch::holds`]), and nobody else accesses the data that these
    /// batches write.
    pub(super) unsafe fn run_beside_others(
        &self,
        batches: Range<usize>,
    ) -> Result<(), LaunchError> {
        if batches.is_empty() {
            return Ok(());
        }
        match self.code {
            KernelCode::Compiled(entry) => {
                // SAFETY: the code is loaded as long as the module, which outlives 'a, and the arguments are borrowed
                // for 'a. `bind` compared their number, types, access, extents and largest indices with the ABI printed
                // with the code, and the range is within them. `Pointer` is transparent. The caller guarantees
                // exclusive access to written data.
                unsafe { entry(batches.start, batches.end, self.pointers.as_ptr().cast()) };
                Ok(())
            }
            KernelCode::Interpreted(kernel) => {
                let run = kernel.run(batches, &arrays(&self.arguments));
                let name = || self.abi.name.clone();
                run.map_err(|fault| LaunchError::Fault { kernel: name(), fault })
            }
        }
    }
}
