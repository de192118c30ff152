//! From what the generator has printed to kernels that can be launched: [`Generated`] → [`Module`].
//!
//! Text and interfaces come from one printer and nobody can change either on the way, so that a module's launches may
//! trust its interfaces. Text from elsewhere is compiled for this crate alone.

use std::panic::resume_unwind;
use std::thread;

use kernels_gen::abi::{Argument as Wanted, KernelAbi, Precision, Role};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::dialect::{Generated, Language};

use super::{Jit, JitError, Options};
use crate::device::cpu::{Argument, Module};

/// Bytes of kernels for which another compiler is started: for fewer it takes longer to begin than to compile.
const LEAST: usize = 32 << 10;

/// A kernel that is written by hand, with the interface [`probe`].
const PROBE: &str = "#[unsafe(no_mangle)]
    pub unsafe extern \"C\" fn probe(begin: usize, end: usize, args: *const *const u8) { unsafe {
        let values = *args as *mut f64;
        for i in begin..end { *values.add(i) = 1.0 + i as f64; }
    } }";

fn probe() -> KernelAbi {
    let values = Wanted { role: Role::Stored, name: "values".into(), extent: 1, written: true };
    KernelAbi::by_hand("probe", Precision::F64, 1, vec![values])
}

impl Options {
    /// Those of a source that is about this.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Code that takes the compiler the least time: for kernels that do little, or once.
    #[must_use]
    pub fn unoptimised(mut self) -> Self {
        for flag in self.flags.iter_mut().filter(|flag| flag.starts_with("-Copt-level=")) {
            *flag = "-Copt-level=0".to_owned();
        }
        self
    }

    /// Code for any processor with an instruction set, not for this one alone.
    #[must_use]
    pub fn tuned_for(mut self, isa: Isa) -> Self {
        let processor = match isa {
            _ if !cfg!(target_arch = "x86_64") => "native",
            Isa::Avx512 => "native",
            Isa::Avx2 => "x86-64-v3",
            Isa::Portable => "x86-64",
        };
        for flag in self.flags.iter_mut().filter(|flag| flag.starts_with("-Ctarget-cpu=")) {
            *flag = format!("-Ctarget-cpu={processor}");
        }
        self
    }
}

impl Jit {
    /// Compiles generated kernels, by as many compilers at once as there are processors, or finds them in the cache; and
    /// whether all were there.
    ///
    /// # Errors
    ///
    /// [`JitError`]; [`JitError::OtherProcessor`] for kernels that this processor cannot run.
    pub fn load(&self, source: &Generated, options: &Options) -> Result<(Module, bool), JitError> {
        let (language, isa) = (source.language, source.isa());
        if language != Language::Rust {
            return Err(JitError::OtherLanguage { language });
        }
        if let Some(isa) = isa.filter(|isa| !isa.runs_on(self.machine.simd.isa())) {
            return Err(JitError::OtherProcessor { isa });
        }
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        let parts = source.dealt(jobs, LEAST);
        let (mut module, mut cached) = (Module::empty(), true);
        for part in self.load_all(&parts, options) {
            let (part, known) = part?;
            module.join(part);
            cached &= known;
        }
        Ok((module, cached))
    }

    /// Compiles sources at once, each by a compiler of its own.
    fn load_all(
        &self,
        parts: &[Generated],
        options: &Options,
    ) -> Vec<Result<(Module, bool), JitError>> {
        let one = |part: &Generated| {
            let library = self.compile(&part.text, options)?;
            let cached = library.is_cached();
            Ok((Module::new(library, &part.kernels)?, cached))
        };
        let Some((own, others)) = parts.split_first() else { return Vec::new() };
        thread::scope(|scope| {
            let begin = |part| thread::Builder::new().spawn_scoped(scope, move || one(part));
            let others: Vec<_> = others.iter().map(|part| (part, begin(part))).collect();
            let mut made = vec![one(own)];
            made.extend(others.into_iter().map(|(part, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // No thread was to be had.
                Err(_) => one(part),
            }));
            made
        })
    }

    /// Compiles, loads and runs a small kernel, to see whether that works.
    ///
    /// # Errors
    ///
    /// [`JitError`], also where the kernel does not give what it should.
    pub fn try_kernel(&self) -> Result<(), JitError> {
        let library = self.compile(PROBE, &Options::new("doctor"))?;
        let module = Module::new(library, &[probe()])?;
        let mut values = [0.0; 3];
        module.launch("probe", 0, 3, [Argument::write(&mut values)])?;
        if values == [1.0, 2.0, 3.0] { Ok(()) } else { Err(JitError::Wrong { values }) }
    }
}
