//! Runner that interprets legalised and verified kernels.

use super::launch::{Data, Runner};
use fem_dsl::point::PointForm;
use kernels_gen::abi::{KernelAbi, Precision};
use kernels_gen::kir::interpret::{Array, Interpreter};
use kernels_gen::pass::{for_threads, for_vectors};
use kernels_gen::plan::{Elements, Plan};

/// Interpreter of the kernels of a form.
pub(crate) struct Interpreted<'a> {
    pub(crate) form: &'a PointForm,
    pub(crate) elements: &'a Elements,
    /// True if the lanes of a batch are threads, as on a GPU; false for lanes of a vector.
    pub(crate) threads: bool,
}

impl Runner for Interpreted<'_> {
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String> {
        let lowered = kernels_gen::strategy::lower(self.form, self.elements, plan);
        let (kernel, _) = lowered.map_err(|error| error.to_string())?;
        let (kernel, tables) = match self.threads {
            true => {
                let mut kernels = [kernel];
                // As in OpenCL, which passes all large tables.
                let placed = for_threads(&mut kernels, false).map_err(|error| error.to_string())?;
                let [kernel] = kernels;
                (kernel, placed.into_iter().next().unwrap_or_default().tables)
            }
            false => (for_vectors(kernel).map_err(|error| error.to_string())?, Vec::new()),
        };
        let pairs = data.iter_mut().zip(&abi.arguments);
        let mut arrays: Vec<Array<'_>> = pairs
            .map(|(data, argument)| match (data, argument.written) {
                (Data::U32(values), _) => Array::U32(values),
                (Data::F64(values), false) => Array::F64(values),
                (Data::F64(values), true) => Array::from(&mut values[..]),
                (Data::F32(values), false) => Array::F32(values),
                (Data::F32(values), true) => Array::from(&mut values[..]),
            })
            .collect();
        let single: Vec<f32> = tables.iter().map(|&number| number as f32).collect();
        if !tables.is_empty() {
            arrays.push(match plan.precision {
                Precision::F64 => Array::F64(&tables),
                Precision::F32 => Array::F32(&single),
            });
        }
        let interpreter = Interpreter::new(kernel).expect("a verified kernel");
        let run = interpreter.run(0..batches, &arrays);
        run.map_err(|fault| format!("{fault}\n{}", interpreter.kernel()))
    }
}
