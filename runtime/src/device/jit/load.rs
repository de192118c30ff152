//! Loading of generated kernels: [`GeneratedSource`] → [`Module`].
//!
//! One printer produces text and interfaces, and neither can be changed afterwards. Launches may therefore trust the
//! interfaces. Only this crate can compile other text.

use std::panic::resume_unwind;
use std::thread;

use kernels_gen::abi::{Argument as Wanted, KernelAbi, Precision, Role};
use kernels_gen::dialect::GeneratedSource;

use super::{HandWritten, Jit, JitError, JitOptions};
use crate::device::cpu::{Argument, Module};

/// Bytes of source per compiler process: for less, starting another one takes longer than compiling.
const LEAST: usize = 32 << 10;

/// A hand-written kernel with the interface [`probe`].
const PROBE: HandWritten = HandWritten {
    rust: "#[unsafe(no_mangle)]
        pub unsafe extern \"C\" fn probe(begin: usize, end: usize, args: *const *const u8) { unsafe {
            let values = *args as *mut f64;
            for i in begin..end { *values.add(i) = 1.0 + i as f64; }
        } }",
    c: "#include <stddef.h>
        void probe(size_t begin, size_t end, const void *const *arguments)
        {
            double *values = (double *)arguments[0];
            for (size_t i = begin; i < end; ++i) values[i] = 1.0 + (double)i;
        }
",
};

fn probe() -> KernelAbi {
    let values = Wanted { role: Role::Stored, name: "values".into(), extent: 1, written: true };
    KernelAbi::by_hand("probe", Precision::F64, 1, vec![values])
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
        let compiler = self.compiler().map_err(Clone::clone)?;
        if language != compiler.language() {
            return Err(JitError::OtherLanguage { language, compiler: compiler.title() });
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
        let library = self.compile_by_hand(&PROBE, &JitOptions::new("doctor"))?;
        let module = Module::new(library, &[probe()])?;
        let mut values = [0.0; 3];
        module.launch("probe", 0, 3, [Argument::write(&mut values)])?;
        if values == [1.0, 2.0, 3.0] { Ok(()) } else { Err(JitError::Wrong { values }) }
    }
}
