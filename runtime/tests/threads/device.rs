//! Runs kernels on a device, in arrays with guard elements after them.

use super::launch::{Data, Runner};
use kernels_gen::abi::{KernelAbi, Role};
use kernels_gen::plan::Plan;
use runtime::device::{Array, Device, DeviceError, Module};

/// Number of guard elements after every array. Kernels must neither write nor use them.
const GUARD: usize = 64;

/// Kernels of one source on a device, with the interfaces from their generation.
pub(crate) struct Running<'l> {
    pub(crate) device: &'l dyn Device,
    pub(crate) module: &'l Module,
}

impl Running<'_> {
    /// Runs all batches of a kernel and copies the arrays that it may write back to `data`.
    fn launch(&self, name: &str, batches: usize, data: &mut [Data]) -> Result<(), DeviceError> {
        let upload = |data: &Data| match data {
            Data::F64(values) => self.device.upload::<f64>(values),
            Data::F32(values) => self.device.upload::<f32>(values),
            Data::U32(values) => self.device.upload::<u32>(values),
        };
        let arrays: Vec<Array> = data.iter().map(upload).collect::<Result<_, _>>()?;
        let arguments: Vec<&Array> = arrays.iter().collect();
        self.device.launch(self.module.kernel(name)?, 0..batches, &arguments)?;
        for (data, array) in data.iter_mut().zip(&arrays) {
            let values = self.device.download(array)?;
            match data {
                Data::F64(old) => *old = values,
                Data::F32(old) => *old = values.into_iter().map(|value| value as f32).collect(),
                Data::U32(_) => {}
            }
        }
        Ok(())
    }
}

impl Runner for Running<'_> {
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String> {
        let known = self.module.kernel(&abi.name).map_err(|error| error.to_string())?.abi();
        // The generator adds the thread count and the tables, which depend on the language.
        let given = known.arguments.iter().filter(|argument| argument.role != Role::Tables);
        let same = given.eq(&abi.arguments);
        if !same || (known.lanes, known.hash) != (abi.lanes, abi.hash) {
            return Err(format!("{:?}: the compiled kernel has another interface", plan.task));
        }
        let mut guarded: Vec<Data> = data.iter().map(guard).collect();
        let launched = self.launch(&abi.name, batches, &mut guarded);
        launched.map_err(|error| error.to_string())?;
        for ((data, guarded), argument) in data.iter_mut().zip(guarded).zip(&abi.arguments) {
            let whole = give_back(data, &guarded, argument.written);
            whole.map_err(|what| format!("`{}` {what}", argument.name))?;
        }
        Ok(())
    }
}

/// Returns the data with a guard after them.
fn guard(data: &Data) -> Data {
    match data {
        Data::F64(values) => Data::F64([values, &[f64::NAN; GUARD][..]].concat()),
        Data::F32(values) => Data::F32([values, &[f32::NAN; GUARD][..]].concat()),
        Data::U32(values) => Data::U32([values, &[0; GUARD][..]].concat()),
    }
}

/// Copies the elements that a kernel may have written. Returns an error after a write outside of them.
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
