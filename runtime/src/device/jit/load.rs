//! Loading of generated kernels: [`GeneratedSource`] → [`Module`].
//!
//! One printer produces text and interfaces, and neither can be changed afterwards. Launches may therefore trust the
//! interfaces. Only this crate can compile other text.

use std::panic::resume_unwind;
use std::thread;

use kernels_gen::abi::{Argument as Wanted, KernelAbi, Precision, Role};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::dialect::{GeneratedSource, Language};

use super::{Jit, JitError, JitOptions};
use crate::device::cpu::{Argument, Module};

/// Bytes of source per compiler process: for less, starting another one takes longer than compiling.
const LEAST: usize = 32 << 10;

/// A hand-written kernel with the interface [`probe`].
const PROBE: &str = "#[unsafe(no_mangle)]
    pub unsafe extern \"C\" fn probe(begin: usize, end: usize, args: *const *const u8) { unsafe {
        let values = *args as *mut f64;
        for i in begin..end { *values.add(i) = 1.0 + i as f64; }
    } }";

fn probe() -> KernelAbi {
    let values = Wanted { role: Role::Stored, name: "values".into(), extent: 1, written: true };
    KernelAbi::by_hand("probe", Precision::F64, 1, vec![values])
}

impl JitOptions {
    /// Creates the options of a source with this description.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Disables optimisation: for kernels that do little, or run once.
    #[must_use]
    pub fn unoptimised(mut self) -> Self {
        for flag in self.flags.iter_mut().filter(|flag| flag.starts_with("-Copt-level=")) {
            *flag = "-Copt-level=0".to_owned();
        }
        self
    }

    /// Generates code for any processor with an instruction set, instead of this one.
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
    /// Compiles generated kernels, in parallel on all processors, or finds them in the cache. Also returns whether all
    /// were cached.
    ///
    /// # Errors
    ///
    /// [`JitError`]; [`JitError::OtherProcessor`] for kernels that this processor cannot run.
    pub fn load(
        &self,
        source: &GeneratedSource,
        options: &JitOptions,
    ) -> Result<(Module, bool), JitError> {
        let (language, isa) = (source.language, source.isa());
        if language != Language::Rust {
            return Err(JitError::OtherLanguage { language });
        }
        if let Some(isa) = isa.filter(|isa| !isa.runs_on(self.machine.simd.isa())) {
            return Err(JitError::OtherProcessor { isa });
        }
        let (mut module, mut cached) = (Module::empty(), true);
        for part in self.load_all(&Self::parts(source), options) {
            let (part, known) = part?;
            module.join(part);
            cached &= known;
        }
        Ok((module, cached))
    }

    /// Distributes kernels over modules, which are compiled in parallel.
    pub(crate) fn parts(source: &GeneratedSource) -> Vec<GeneratedSource> {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        source.distribute(jobs, LEAST)
    }

    /// Compiles one of the [parts](Self::parts) into the cache. Errors occur again in [`Jit::load`].
    pub(crate) fn prepare(&self, part: &GeneratedSource, options: &JitOptions) {
        let known = |compiler| {
            let key = self.key(compiler, &part.text, options);
            self.cache.as_ref().is_ok_and(|cache| cache.contains(&key))
        };
        if self.compiler().is_ok_and(known) {
            return;
        }
        if let Err(error) = self.compile(&part.text, options) {
            tracing::debug!("{} is not compiled in advance: {error}", options.name);
        }
    }

    /// Compiles sources in parallel, each with its own compiler process.
    fn load_all(
        &self,
        parts: &[GeneratedSource],
        options: &JitOptions,
    ) -> Vec<Result<(Module, bool), JitError>> {
        let one = |part: &GeneratedSource| {
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
                // No thread was available.
                Err(_) => one(part),
            }));
            made
        })
    }

    /// Compiles, loads and runs a small kernel as a test.
    ///
    /// # Errors
    ///
    /// [`JitError`], also for a wrong result.
    pub fn try_kernel(&self) -> Result<(), JitError> {
        let library = self.compile(PROBE, &JitOptions::new("doctor"))?;
        let module = Module::new(library, &[probe()])?;
        let mut values = [0.0; 3];
        module.launch("probe", 0, 3, [Argument::write(&mut values)])?;
        if values == [1.0, 2.0, 3.0] { Ok(()) } else { Err(JitError::Wrong { values }) }
    }
}
