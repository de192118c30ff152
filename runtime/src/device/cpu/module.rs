//! From a loaded library and its ABIs to kernels that run: [`Library`] → [`Module`] → [`Kernel`] → [`Launch`].
//! Where there is no compiler, a module holds kernels to be interpreted instead; whoever launches them sees no
//! difference.
//!
//! Every kernel has one signature, `unsafe extern "C" fn(begin, end, args)`: it works on the batches `begin..end`,
//! and `args` points to one pointer for each argument, in the order that the kernel's ABI lists. A [`Launch`] holds
//! those pointers for as long as the borrowed data lives, so that many threads can run ranges of one launch.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;

use kernels_gen::abi::{self, KernelAbi, Precision, Role};
use kernels_gen::interpreted::Interpreted;

use super::interpreted::arrays;
use super::{Entry, Library, Linked, LoadError, Plain};

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

    pub(super) fn new(
        pointer: *const u8,
        elements: usize,
        kind: &'static str,
        writable: bool,
    ) -> Self {
        Self { pointer, elements, kind, writable, borrows: PhantomData }
    }

    /// Where the data lies.
    pub(super) fn pointer(&self) -> *const u8 {
        self.pointer
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
#[derive(Debug)]
pub struct Module {
    compiled: BTreeMap<String, (Entry, KernelAbi)>,
    interpreted: BTreeMap<String, Interpreted>,
    // Owns the code that `compiled` points into, unless that is part of the program.
    code: Option<Library>,
}

impl Module {
    /// Looks up each of `kernels` in `library`, which must be compiled from the text printed with them.
    ///
    /// # Errors
    ///
    /// [`LoadError::Missing`] if one is not there.
    pub fn new(library: Library, kernels: &[KernelAbi]) -> Result<Self, LoadError> {
        let mut found = BTreeMap::new();
        for abi in kernels {
            found.insert(abi.name.clone(), (library.entry(&abi.name)?, abi.clone()));
        }
        Ok(Self { compiled: found, interpreted: BTreeMap::new(), code: Some(library) })
    }

    /// The `kernels` among those that were compiled together with the program.
    ///
    /// # Errors
    ///
    /// The first of `kernels` that is not there.
    pub fn linked<'k>(linked: &[Linked], kernels: &'k [KernelAbi]) -> Result<Self, &'k KernelAbi> {
        let mut found = BTreeMap::new();
        for abi in kernels {
            let entry = linked.iter().find_map(|linked| linked.entry(abi.hash)).ok_or(abi)?;
            found.insert(abi.name.clone(), (entry, abi.clone()));
        }
        Ok(Self { compiled: found, interpreted: BTreeMap::new(), code: None })
    }

    /// Kernels that are interpreted.
    pub fn interpreted(kernels: Vec<Interpreted>) -> Self {
        let named = kernels.into_iter().map(|kernel| (kernel.abi().name.clone(), kernel));
        Self { compiled: BTreeMap::new(), interpreted: named.collect(), code: None }
    }

    /// The library that holds the code; none where kernels are interpreted or part of the program.
    pub fn library(&self) -> Option<&Library> {
        self.code.as_ref()
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
    ///
    /// # Panics
    ///
    /// As [`Launch::run`].
    pub fn launch(
        &self,
        name: &str,
        begin: usize,
        end: usize,
        arguments: &[Argument<'_>],
    ) -> Result<(), LaunchError> {
        self.kernel(name)?.bind(arguments)?.run(begin..end);
        Ok(())
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
    /// [`LaunchError`] if their number, types, access or lengths do not fit the ABI.
    pub fn bind<'a>(self, arguments: &[Argument<'a>]) -> Result<Launch<'a>, LaunchError>
    where
        'm: 'a,
    {
        let expected = self.abi.arguments.len();
        if arguments.len() != expected {
            let kernel = self.abi.name.clone();
            return Err(LaunchError::WrongCount { kernel, expected, found: arguments.len() });
        }
        let mut batches = usize::MAX;
        for (given, wanted) in arguments.iter().zip(&self.abi.arguments) {
            batches = batches.min(self.check(given, wanted)?);
        }
        let pointers = arguments.iter().map(|argument| Pointer(argument.pointer)).collect();
        let arguments = arguments.to_vec();
        Ok(Launch { code: self.code, abi: self.abi, pointers, arguments, batches })
    }

    /// Compares an argument with what the ABI says; the number of batches that it has data for.
    fn check(&self, given: &Argument<'_>, wanted: &abi::Argument) -> Result<usize, LaunchError> {
        let names = || (self.abi.name.clone(), wanted.name.clone());
        let expected = element(wanted.role, self.abi.precision);
        if given.kind != expected {
            let ((kernel, argument), found) = (names(), given.kind);
            return Err(LaunchError::WrongType { kernel, argument, expected, found });
        }
        if wanted.written && !given.writable {
            let (kernel, argument) = names();
            return Err(LaunchError::ReadOnly { kernel, argument });
        }
        match wanted.role {
            Role::Params if given.elements < wanted.extent => {
                let ((kernel, argument), expected) = (names(), wanted.extent);
                Err(LaunchError::TooShort { kernel, argument, expected, found: given.elements })
            }
            Role::Params => Ok(usize::MAX),
            _ => Ok(given.elements.checked_div(wanted.extent).unwrap_or(usize::MAX)),
        }
    }
}

/// The Rust type of an argument's elements.
fn element(role: Role, precision: Precision) -> &'static str {
    match precision {
        _ if role.is_integer() => u32::NAME,
        Precision::F64 => f64::NAME,
        Precision::F32 => f32::NAME,
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
    code: Code<'a>,
    abi: &'a KernelAbi,
    pointers: Vec<Pointer>,
    arguments: Vec<Argument<'a>>,
    batches: usize,
}

impl Launch<'_> {
    /// Up to which batch every argument holds data.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// Runs the given batches on this thread.
    ///
    /// Ranges that run at the same time must be ones whose scatters the kernel's plan allows at the same time:
    /// of one colour, with disjoint results, or with atomic additions.
    ///
    /// # Panics
    ///
    /// If the range ends behind the data of some argument; an interpreted kernel also if it leaves its arrays, where
    /// a compiled one would not notice.
    pub fn run(&self, batches: Range<usize>) {
        assert!(batches.end <= self.batches, "batch {} of {}", batches.end, self.batches);
        if batches.is_empty() {
            return;
        }
        match self.code {
            Code::Compiled(entry) => {
                // SAFETY: the code is loaded as long as the module that outlives 'a, and the arguments are lent for
                // 'a. `bind` compared their number, types, access and extents with the ABI that was printed together
                // with the code, and the range ends within them; the maps of an operator point into its vectors.
                // `Pointer` is transparent.
                unsafe { entry(batches.start, batches.end, self.pointers.as_ptr().cast()) };
            }
            Code::Interpreted(kernel) => {
                if let Err(fault) = kernel.run(batches, &arrays(&self.arguments)) {
                    let name = &self.abi.name;
                    panic!(
                        "the kernel {name}: {fault}; this is a bug in weakform, please report it"
                    );
                }
            }
        }
    }
}
