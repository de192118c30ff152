//! NVIDIA's GPUs: CUDA source → NVRTC → a module of kernels on one device.
//!
//! The driver and NVRTC are looked for while the program runs; what is missing is an error that says
//! so. Memory lives on the device: [`Cuda::upload`], [`Cuda::zeros`] and [`Cuda::download`] cross the
//! bus, nothing else does.

mod compile;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig,
    PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use kernels_gen::abi::Precision;
use kernels_gen::abi::{KernelAbi, Role};
use kernels_gen::dialect::SourceFile;
use std::ops::Range;
use std::sync::Arc;

pub use compile::{compile, find_nvrtc};

/// What went wrong on the way to a GPU or on it.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// There is no driver.
    #[error(
        "no CUDA driver: libcuda was not found\nhelp: install NVIDIA's driver, or use another backend"
    )]
    NoDriver,
    /// There is no NVRTC.
    #[error(
        "NVRTC was not found\nhelp: install CUDA's toolkit, or `pip install nvidia-cuda-nvrtc-cu12`, \
         and put the folder of libnvrtc on LD_LIBRARY_PATH"
    )]
    NoCompiler,
    /// There is no GPU of this number.
    #[error("there is no GPU number {0}")]
    NoDevice(usize),
    /// The driver refused something.
    #[error("CUDA: {what}: {error}")]
    Driver {
        /// What was tried.
        what: String,
        /// What the driver says.
        error: String,
    },
    /// The kernels do not compile.
    #[error("NVRTC does not compile the kernels for {arch}; the source is in {path}\n{log}")]
    Compile {
        /// The architecture.
        arch: String,
        /// Where the source lies.
        path: String,
        /// What NVRTC says.
        log: String,
    },
    /// A launch with arguments that the kernel does not take.
    #[error("`{kernel}`: {what}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        what: String,
    },
}

fn driver(what: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    move |error| CudaError::Driver { what: what.to_owned(), error: error.to_string() }
}

/// A GPU with one stream of work.
pub struct Cuda {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    arch: String,
}

/// An array on the device.
pub enum Array {
    /// Double precision.
    F64(CudaSlice<f64>),
    /// Single precision.
    F32(CudaSlice<f32>),
    /// Indices and counts.
    U32(CudaSlice<u32>),
}

impl Array {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(slice) => slice.len(),
            Self::F32(slice) => slice.len(),
            Self::U32(slice) => slice.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Kernels that are loaded on a device.
pub struct Module {
    functions: Vec<(KernelAbi, CudaFunction)>,
}

impl Cuda {
    /// The GPU of this number.
    pub fn new(number: usize) -> Result<Self, CudaError> {
        // SAFETY: looks for the library and loads it, no more.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        let count = CudaContext::device_count().map_err(driver("count the GPUs"))?;
        if number >= count as usize {
            return Err(CudaError::NoDevice(number));
        }
        let context = CudaContext::new(number).map_err(driver("open the GPU"))?;
        // SAFETY: one stream orders all work, so that no event has to.
        unsafe { context.disable_event_tracking() };
        let (major, minor) = context.compute_capability().map_err(driver("ask the GPU"))?;
        let stream = context.new_stream().map_err(driver("make a stream"))?;
        Ok(Self { context, stream, arch: format!("sm_{major}{minor}") })
    }

    /// The GPU's name.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "a GPU".to_owned())
    }

    /// The architecture to compile for, as `sm_90`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Compiles a source and loads its kernels.
    pub fn load(&self, source: &SourceFile) -> Result<Module, CudaError> {
        let image = compile(&source.text, &self.arch)?;
        let module = self
            .context
            .load_module(Ptx::from_binary(image))
            .map_err(driver("load the kernels"))?;
        let functions = source.kernels.iter().map(|abi| {
            let function = module.load_function(&abi.name).map_err(driver(&abi.name))?;
            Ok((abi.clone(), function))
        });
        Ok(Module { functions: functions.collect::<Result<_, CudaError>>()? })
    }

    /// Zeros on the device.
    pub fn zeros(&self, len: usize, precision: Precision) -> Result<Array, CudaError> {
        let fail = driver("reserve memory on the GPU");
        Ok(match precision {
            Precision::F64 => Array::F64(self.stream.alloc_zeros(len).map_err(fail)?),
            Precision::F32 => Array::F32(self.stream.alloc_zeros(len).map_err(fail)?),
        })
    }

    /// Sets every element to zero.
    pub fn clear(&self, array: &mut Array) -> Result<(), CudaError> {
        let fail = driver("clear memory on the GPU");
        match array {
            Array::F64(slice) => self.stream.memset_zeros(slice).map_err(fail),
            Array::F32(slice) => self.stream.memset_zeros(slice).map_err(fail),
            Array::U32(slice) => self.stream.memset_zeros(slice).map_err(fail),
        }
    }

    /// Copies doubles to the device.
    pub fn upload(&self, values: &[f64]) -> Result<Array, CudaError> {
        Ok(Array::F64(self.stream.clone_htod(values).map_err(driver("copy to the GPU"))?))
    }

    /// Copies singles to the device.
    pub fn upload_f32(&self, values: &[f32]) -> Result<Array, CudaError> {
        Ok(Array::F32(self.stream.clone_htod(values).map_err(driver("copy to the GPU"))?))
    }

    /// Copies indices to the device.
    pub fn upload_u32(&self, values: &[u32]) -> Result<Array, CudaError> {
        Ok(Array::U32(self.stream.clone_htod(values).map_err(driver("copy to the GPU"))?))
    }

    /// Copies an array back, as doubles.
    pub fn download(&self, array: &Array) -> Result<Vec<f64>, CudaError> {
        let fail = driver("copy from the GPU");
        Ok(match array {
            Array::F64(slice) => self.stream.clone_dtoh(slice).map_err(fail)?,
            Array::F32(slice) => {
                let values = self.stream.clone_dtoh(slice).map_err(fail)?;
                values.into_iter().map(f64::from).collect()
            }
            Array::U32(slice) => {
                let values = self.stream.clone_dtoh(slice).map_err(fail)?;
                values.into_iter().map(f64::from).collect()
            }
        })
    }

    /// Waits for all work.
    pub fn synchronise(&self) -> Result<(), CudaError> {
        self.stream.synchronize().map_err(driver("wait for the GPU"))
    }

    /// Marks this place in the stream of work.
    pub fn mark(&self) -> Result<Mark, CudaError> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let event = self.stream.record_event(flags).map_err(driver("record an event"))?;
        Ok(Mark(event))
    }

    /// Runs a range of batches of a kernel; `arguments` are in the order of its interface.
    pub fn launch(
        &self,
        kernel: &Kernel<'_>,
        batches: Range<usize>,
        arguments: &[&Array],
    ) -> Result<(), CudaError> {
        let abi = kernel.abi;
        let wrong = |what: String| CudaError::Launch { kernel: abi.name.clone(), what };
        if arguments.len() != abi.arguments.len() {
            let (expected, found) = (abi.arguments.len(), arguments.len());
            return Err(wrong(format!("it takes {expected} arrays, not {found}")));
        }
        for (wanted, given) in abi.arguments.iter().zip(arguments) {
            let indices = matches!(wanted.role, Role::Map(..) | Role::Active);
            let fits = match given {
                Array::U32(_) => indices,
                Array::F64(_) => !indices && abi.precision == Precision::F64,
                Array::F32(_) => !indices && abi.precision == Precision::F32,
            };
            if !fits {
                return Err(wrong(format!("`{}` has another type of elements", wanted.name)));
            }
            let least = match wanted.role {
                Role::Params => wanted.extent,
                _ => wanted.extent * batches.end,
            };
            if given.len() < least {
                let found = given.len();
                return Err(wrong(format!("`{}` has {found} of {least} elements", wanted.name)));
            }
        }
        if batches.is_empty() {
            return Ok(());
        }
        let (first, end) = (batches.start as u64, batches.end as u64);
        let mut builder = self.stream.launch_builder(kernel.function);
        builder.arg(&first).arg(&end);
        for array in arguments {
            match array {
                Array::F64(slice) => builder.arg(slice),
                Array::F32(slice) => builder.arg(slice),
                Array::U32(slice) => builder.arg(slice),
            };
        }
        let groups = batches.len().div_ceil(abi.group) as u32;
        let shape = LaunchConfig {
            grid_dim: (groups, 1, 1),
            block_dim: (abi.threads as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: number, types and lengths of the arguments have just been compared with the
        // interface that was printed with the code; the maps point into the vectors that go with
        // them, as on the CPU.
        unsafe { builder.launch(shape) }.map_err(driver(&abi.name))?;
        Ok(())
    }
}

/// A place in the stream of work.
pub struct Mark(CudaEvent);

impl Mark {
    /// Seconds from this mark to a later one, which is waited for.
    pub fn seconds_to(&self, later: &Self) -> Result<f64, CudaError> {
        let time = self.0.elapsed_ms(&later.0).map_err(driver("read the clock"))?;
        Ok(f64::from(time) / 1e3)
    }
}

/// A loaded kernel.
pub struct Kernel<'m> {
    abi: &'m KernelAbi,
    function: &'m CudaFunction,
}

impl Kernel<'_> {
    /// Its interface.
    pub fn abi(&self) -> &KernelAbi {
        self.abi
    }
}

impl Module {
    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<Kernel<'_>> {
        let found = self.functions.iter().find(|(abi, _)| abi.name == name);
        found.map(|(abi, function)| Kernel { abi, function })
    }
}
