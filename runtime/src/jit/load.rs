//! From what the generator has printed to kernels that can be launched: [`Generated`] → [`Module`].
//!
//! Text and interfaces come from one printer and nobody can change either on the way, so that a module's launches may
//! trust its interfaces. Text from elsewhere is compiled for this crate alone.

use kernels_gen::abi::{Argument as Wanted, KernelAbi, Precision, Role};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::dialect::{Generated, Language};

use super::{Jit, JitError, Options};
use crate::device::cpu::{Argument, Module};

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
    /// Compiles generated kernels, or finds them in the cache; and whether they were there.
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
        let library = self.compile(&source.text, options)?;
        let cached = library.is_cached();
        Ok((Module::new(library, &source.kernels)?, cached))
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
