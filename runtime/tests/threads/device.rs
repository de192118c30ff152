//! What a device must do for its kernels to be compared: compile a source, and run a kernel of it.

use super::launch::{Data, Runner};
use kernels_gen::abi::KernelAbi;
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Words;
use kernels_gen::plan::Plan;

/// Elements behind every array that no kernel may write, and none may use.
const GUARD: usize = 64;

/// A device whose kernels are those of groups of threads.
pub(crate) trait Device: Sync {
    /// What it is called.
    fn name(&self) -> String;

    /// Its language.
    fn words(&self) -> &'static Words;

    /// Compiles a source and loads its kernels.
    fn load(&self, source: &SourceFile) -> Result<Box<dyn Loaded + '_>, String>;
}

/// Kernels of one source on a device.
pub(crate) trait Loaded {
    /// Runs all batches of a kernel; whatever it writes is then in the arrays.
    fn run(&self, kernel: &str, batches: usize, arrays: &mut [Data]) -> Result<(), String>;
}

/// Kernels that are loaded, with the interfaces that were printed with them.
pub(crate) struct Running<'l> {
    pub(crate) loaded: &'l dyn Loaded,
    pub(crate) kernels: &'l [KernelAbi],
}

impl Runner for Running<'_> {
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String> {
        let known = self.kernels.iter().find(|known| known.name == abi.name);
        let known = known.ok_or("there is no such kernel")?;
        // The number of threads is added where the language is known.
        if (&known.arguments, known.lanes, known.hash) != (&abi.arguments, abi.lanes, abi.hash) {
            return Err(format!("{:?}: the compiled kernel has another interface", plan.task));
        }
        let mut guarded: Vec<Data> = data.iter().map(guard).collect();
        self.loaded.run(&abi.name, batches, &mut guarded)?;
        for ((data, guarded), argument) in data.iter_mut().zip(guarded).zip(&abi.arguments) {
            let whole = give_back(data, &guarded, argument.written);
            whole.map_err(|what| format!("`{}` {what}", argument.name))?;
        }
        Ok(())
    }
}

/// The same with a guard behind it.
fn guard(data: &Data) -> Data {
    match data {
        Data::F64(values) => Data::F64([values, &[f64::NAN; GUARD][..]].concat()),
        Data::F32(values) => Data::F32([values, &[f32::NAN; GUARD][..]].concat()),
        Data::U32(values) => Data::U32([values, &[0; GUARD][..]].concat()),
    }
}

/// Copies what a kernel may have written; an error if it wrote what it may not.
fn give_back(data: &mut Data, guarded: &Data, written: bool) -> Result<(), &'static str> {
    let (inside, whole) = match (&mut *data, guarded) {
        (Data::F64(values), Data::F64(all)) => {
            let (inside, guard) = all.split_at(values.len());
            (Data::F64(inside.to_vec()), guard.iter().all(|value| value.is_nan()))
        }
        (Data::F32(values), Data::F32(all)) => {
            let (inside, guard) = all.split_at(values.len());
            (Data::F32(inside.to_vec()), guard.iter().all(|value| value.is_nan()))
        }
        _ => return Ok(()),
    };
    if written {
        *data = inside;
    }
    if whole { Ok(()) } else { Err("is written behind its end") }
}
