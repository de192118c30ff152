//! From a loaded library and its ABIs to kernels that run: [`Library`] → [`Module`] → [`Kernel`] → [`Launch`].
//! Where there is no compiler, a module holds kernels to be interpreted instead; whoever launches them sees no
//! difference.
//!
//! Every kernel has one signature, `unsafe extern "C" fn(begin, end, args)`: it works on the batches `begin..end`,
//! and `args` points to one pointer for each argument, in the order that the kernel's ABI lists. A [`Launch`] holds
//! those pointers for as long as the data is lent. It is run by one thread at a time, or by many in parts whose results lie
//! apart; what several threads add to one vector is for [`super::Schedule`].
//!
//! Modules are made of text and interfaces that `kernels-gen` has printed together (`Jit::load`), of kernels that are
//! part of the program ([`Linked`]), or of interpreted ones. Nobody outside of this crate can put other code or another
//! interface into one: what a launch compares with its arguments is what the code does.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::support::parallel::*;
use kernels_gen::abi::KernelAbi;
use kernels_gen::interpreted::{Fault, Interpreted};

use super::argument::fit;
use super::interpreted::arrays;
use super::{Argument, Entry, Library, Linked, LoadError};

/// Why a kernel was not launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The module was made without this kernel.
    #[error("the module holds no kernel named `{0}`")]
    UnknownKernel(String),
    /// Too many or too few arguments.
    #[error("the kernel `{kernel}` takes {expected} arguments, not {found}")]
    WrongCount {
        /// The kernel.
        kernel: String,
        /// The number of arguments in its ABI.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// Elements of another type.
    #[error("the argument `{argument}` of `{kernel}` holds {expected}, not {found}")]
    WrongType {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// The type in the ABI.
        expected: &'static str,
        /// The type given.
        found: &'static str,
    },
    /// Lent for reading only, though the kernel writes it.
    #[error("the kernel `{kernel}` writes its argument `{argument}`, which was lent for reading")]
    ReadOnly {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
    },
    /// Indices that go beyond the array that they are for.
    #[error(
        "the indices `{argument}` of `{kernel}` go up to {expected} elements of `{array}`, not {found}"
    )]
    OutOfRange {
        /// The kernel.
        kernel: String,
        /// The index array.
        argument: String,
        /// What it points into.
        array: String,
        /// The elements that there would have to be.
        expected: usize,
        /// The elements that there are.
        found: usize,
    },
    /// Indices that were changed since they came to a device, or made there.
    #[error("nobody knows how large the indices `{argument}` of `{kernel}` are; upload them anew")]
    UnknownIndices {
        /// The kernel.
        kernel: String,
        /// The index array.
        argument: String,
    },
    /// Batches that some argument has no data for.
    #[error("`{kernel}` was asked for batches {wanted:?}; its arguments hold {batches}")]
    NoSuchBatches {
        /// The kernel.
        kernel: String,
        /// The batches.
        wanted: Range<usize>,
        /// How many there are.
        batches: usize,
    },
    /// Parts of a launch that would write what others write, too.
    #[error("parts of `{kernel}` cannot run at once: they write to the same places")]
    NotApart {
        /// The kernel.
        kernel: String,
    },
    /// One array that is written, and given a second time.
    #[error("`{kernel}` writes its argument `{argument}`, which it is given twice")]
    Aliased {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
    },
    /// An interpreted kernel that does what no kernel may.
    #[error("the kernel `{kernel}`: {fault}; this is a bug in weakform, please report it")]
    Fault {
        /// The kernel.
        kernel: String,
        /// What it did.
        fault: Fault,
    },
    /// Fewer elements than the kernel reads in any case.
    #[error("the argument `{argument}` of `{kernel}` needs {expected} elements, not {found}")]
    TooShort {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// The least number of elements.
        expected: usize,
        /// The number given.
        found: usize,
    },
}

/// What runs when a kernel is launched.
#[derive(Clone, Copy, Debug)]
enum Code<'m> {
    Compiled(Entry),
    Interpreted(&'m Interpreted),
}

/// Kernels with their ABIs, found by name.
///
/// Nobody outside of this crate says what the ABI of a kernel is:
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
/// use kernels_gen::dialect::{Generated, Language, SourceFile};
///
/// let forged = Generated { file: SourceFile::empty(Language::Rust), isa: None };
/// ```
#[derive(Debug)]
pub struct Module {
    compiled: BTreeMap<String, (Entry, KernelAbi)>,
    interpreted: BTreeMap<String, Interpreted>,
    // Own the code that `compiled` points into, unless that is part of the program.
    code: Vec<Library>,
}

impl Module {
    /// One without kernels.
    pub(crate) fn empty() -> Self {
        Self { compiled: BTreeMap::new(), interpreted: BTreeMap::new(), code: Vec::new() }
    }

    /// Takes the kernels of another module, too.
    pub(crate) fn join(&mut self, other: Self) {
        self.compiled.extend(other.compiled);
        self.interpreted.extend(other.interpreted);
        self.code.extend(other.code);
    }

    /// Looks up each of `kernels` in `library`.
    ///
    /// The library must be compiled from a text whose functions of these names do what the interfaces say, and no more:
    /// launches trust them. [`crate::device::jit::Jit::load`] sees to that, and the few texts of this crate that are written by hand.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] if one is not there.
    pub(crate) fn new(library: Library, kernels: &[KernelAbi]) -> Result<Self, LoadError> {
        let mut found = BTreeMap::new();
        for abi in kernels {
            found.insert(abi.name.clone(), (library.entry(&abi.name)?, abi.clone()));
        }
        Ok(Self { compiled: found, interpreted: BTreeMap::new(), code: vec![library] })
    }

    /// The `kernels` among those that were compiled together with the program. The interfaces must be those that
    /// `kernels-gen` gives for these hashes.
    ///
    /// # Errors
    ///
    /// The first of `kernels` that is not there.
    pub(crate) fn linked<'k>(
        linked: &[Linked],
        kernels: &'k [KernelAbi],
    ) -> Result<Self, &'k KernelAbi> {
        let mut found = BTreeMap::new();
        for abi in kernels {
            let entry = linked.iter().find_map(|linked| linked.entry(abi.hash)).ok_or(abi)?;
            found.insert(abi.name.clone(), (entry, abi.clone()));
        }
        Ok(Self { compiled: found, interpreted: BTreeMap::new(), code: Vec::new() })
    }

    /// Kernels that are interpreted.
    pub fn interpreted(kernels: Vec<Interpreted>) -> Self {
        let named = kernels.into_iter().map(|kernel| (kernel.abi().name.clone(), kernel));
        Self { compiled: BTreeMap::new(), interpreted: named.collect(), code: Vec::new() }
    }

    /// Whether the kernels are interpreted.
    pub fn is_interpreted(&self) -> bool {
        !self.interpreted.is_empty()
    }

    /// The kernel `name`.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`] if the module was made without it.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>, LaunchError> {
        if let Some((entry, abi)) = self.compiled.get(name) {
            return Ok(Kernel { code: Code::Compiled(*entry), abi });
        }
        let found = self.interpreted.get(name);
        let kernel = found.ok_or_else(|| LaunchError::UnknownKernel(name.to_owned()))?;
        Ok(Kernel { code: Code::Interpreted(kernel), abi: kernel.abi() })
    }

    /// Runs the batches `begin..end` of kernel `name` on this thread.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if there is no such kernel, or the arguments do not fit it.
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

/// One kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m> {
    code: Code<'m>,
    abi: &'m KernelAbi,
}

impl<'m> Kernel<'m> {
    /// What the kernel takes.
    pub fn abi(&self) -> &'m KernelAbi {
        self.abi
    }

    /// Ties the kernel to its arguments, in the order that its ABI lists.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if their number, types, access or lengths do not fit the ABI, or the largest index of an index
    /// array goes beyond the array that it is for.
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

/// A pointer into lent data; as a type of its own, so that a launch can be shared between threads.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Pointer(*const u8);

// SAFETY: see `Argument`: lent plain numbers.
unsafe impl Send for Pointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pointer {}

/// A kernel with its arguments, ready to run.
///
/// It is run by one thread at a time, whose additions nobody overwrites:
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
    code: Code<'a>,
    abi: &'a KernelAbi,
    pointers: Vec<Pointer>,
    arguments: Vec<Argument<'a>>,
    batches: usize,
}

impl<'a> Launch<'a> {
    /// Up to which batch every argument holds data.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// The interface and the arguments.
    pub(super) fn parts(&self) -> (&'a KernelAbi, &[Argument<'a>]) {
        (self.abi, &self.arguments)
    }

    /// Runs the given batches on this thread.
    ///
    /// # Errors
    ///
    /// [`LaunchError::NoSuchBatches`] if the range ends behind the data of some argument.
    pub fn run(&mut self, batches: Range<usize>) -> Result<(), LaunchError> {
        self.holds(&batches)?;
        if self.arguments.iter().any(Argument::is_shared) {
            return Err(self.not_apart());
        }
        // SAFETY: what is written was lent to this launch alone, which this call has for itself.
        unsafe { self.run_beside_others(batches) }
    }

    /// Runs ranges of batches, in ascending order and each behind the one before, on the threads of the pool: for
    /// kernels that write nothing but the rows of their batches.
    ///
    /// # Errors
    ///
    /// As [`Launch::run`]; [`LaunchError::NotApart`] if the ranges overlap or the kernel writes elsewhere.
    pub fn run_apart(&mut self, parts: &[Range<usize>]) -> Result<(), LaunchError> {
        parts.iter().try_for_each(|part| self.holds(part))?;
        let filled = || parts.iter().filter(|part| !part.is_empty());
        let ordered = filled().zip(filled().skip(1)).all(|(a, b)| a.end <= b.start);
        // What is not indexed is accessed within the rows of a batch, and not at all where these are empty.
        let rows = |(at, argument): (usize, &kernels_gen::abi::Argument)| {
            !argument.written || self.abi.reaches.iter().all(|reach| reach.array != at)
        };
        let own = self.abi.arguments.iter().enumerate().all(rows);
        if !ordered || !own || self.arguments.iter().any(Argument::is_shared) {
            return Err(self.not_apart());
        }
        let launch = &*self;
        // SAFETY: as in `run`; and the parts write rows of different batches, which lie apart.
        let run = |part: &Range<usize>| unsafe { launch.run_beside_others(part.clone()) };
        parts.par_iter().first(|part| run(part).err()).map_or(Ok(()), Err)
    }

    /// Whether all arguments have data for these batches.
    pub(super) fn holds(&self, batches: &Range<usize>) -> Result<(), LaunchError> {
        if batches.end <= self.batches {
            return Ok(());
        }
        let (kernel, wanted) = (self.abi.name.clone(), batches.clone());
        Err(LaunchError::NoSuchBatches { kernel, wanted, batches: self.batches })
    }

    /// That it cannot run as it was asked to.
    pub(super) fn not_apart(&self) -> LaunchError {
        LaunchError::NotApart { kernel: self.abi.name.clone() }
    }

    /// Runs batches on this thread while others may run others.
    ///
    /// # Safety
    ///
    /// All arguments hold data for the batches ([`Launch::holds`]), and nobody touches meanwhile what these batches write.
    pub(super) unsafe fn run_beside_others(
        &self,
        batches: Range<usize>,
    ) -> Result<(), LaunchError> {
        if batches.is_empty() {
            return Ok(());
        }
        match self.code {
            Code::Compiled(entry) => {
                // SAFETY: the code is loaded as long as the module that outlives 'a, and the arguments are lent for
                // 'a. `bind` compared their number, types, access, extents and largest indices with the ABI that was
                // printed together with the code, and the range ends within them. `Pointer` is transparent. That
                // nobody else touches what is written is the caller's promise.
                unsafe { entry(batches.start, batches.end, self.pointers.as_ptr().cast()) };
                Ok(())
            }
            Code::Interpreted(kernel) => {
                let run = kernel.run(batches, &arrays(&self.arguments));
                let name = || self.abi.name.clone();
                run.map_err(|fault| LaunchError::Fault { kernel: name(), fault })
            }
        }
    }
}
