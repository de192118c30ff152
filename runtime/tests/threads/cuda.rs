//! CUDA as a device whose kernels are compared.

use super::device::{Device, Loaded};
use super::launch::Data;
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Words;
use kernels_gen::dialect::cuda::CUDA;
use runtime::device::cuda::Cuda;
use runtime::device::{Array, Device as Remote, DeviceError, Module};

/// A GPU.
pub(crate) struct Driver {
    pub(crate) device: Cuda,
}

struct Kernels<'d> {
    device: &'d dyn Remote,
    module: Module,
}

impl Device for Driver {
    fn name(&self) -> String {
        format!("{:?}", self.device)
    }

    fn words(&self) -> &'static Words {
        &CUDA
    }

    fn load(&self, source: &SourceFile) -> Result<Box<dyn Loaded + '_>, String> {
        let module = self.device.load(source).map_err(|error| error.to_string())?;
        Ok(Box::new(Kernels { device: &self.device, module }))
    }
}

impl Kernels<'_> {
    fn launch(&self, name: &str, batches: usize, data: &mut [Data]) -> Result<(), DeviceError> {
        let upload = |data: &Data| match data {
            Data::F64(values) => self.device.upload::<f64>(values),
            Data::F32(values) => self.device.upload::<f32>(values),
            Data::U32(values) => self.device.upload::<u32>(values),
        };
        let arrays: Vec<Array> = data.iter().map(upload).collect::<Result<_, _>>()?;
        let arguments: Vec<&Array> = arrays.iter().collect();
        let kernel = self.module.kernel(name).expect("a kernel of the source");
        self.device.launch(kernel, 0..batches, &arguments)?;
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

impl Loaded for Kernels<'_> {
    fn run(&self, kernel: &str, batches: usize, arrays: &mut [Data]) -> Result<(), String> {
        self.launch(kernel, batches, arrays).map_err(|error| error.to_string())
    }
}
