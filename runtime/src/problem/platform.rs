//! Processor and device of a solve.

use crate::device::Device;
use crate::kernels::compile::Target;
use std::sync::Arc;

/// Processor and device of a solve.
#[derive(Clone)]
pub struct Platform {
    /// Target of the kernels.
    pub target: Target,
    /// Device with the vectors and kernels; `None` for the host.
    pub device: Option<Arc<dyn Device>>,
    /// Runs that use the same kernels, as those of a sweep: the more, the smaller are the problems whose kernels are
    /// compiled.
    pub runs: usize,
}

impl Platform {
    /// Kernels for a target, on a device if there is one.
    pub fn new(target: Target, device: Option<Arc<dyn Device>>) -> Self {
        Self { target, device, runs: 1 }
    }

    /// The processor of this machine.
    pub fn native() -> Self {
        Self::from(Target::native())
    }

    /// The same device with another target.
    pub fn with_target(&self, target: Target) -> Self {
        Self { target, ..self.clone() }
    }
}

impl From<Target> for Platform {
    fn from(target: Target) -> Self {
        Self::new(target, None)
    }
}
