//! Conjugate gradient iterations on device vectors without host synchronisation: see [`CgRecurrence`]. Failures are
//! returned at once; [`DeviceIterations::read`] also returns earlier failures.

use super::{CgStep, Vector};
use crate::device::{
    Arithmetic, Array, CgRecurrence, DeviceError, RecordedWork, Recording, SearchDirection,
    SumValues,
};
use std::sync::Arc;

/// Steps and directions with scalars in device memory.
#[derive(Debug)]
pub struct DeviceIterations {
    arithmetic: Arc<Arithmetic>,
    recurrence: CgRecurrence,
}

fn array(vector: &Vector) -> Result<&Array, DeviceError> {
    vector.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)
}

fn array_mut(vector: &mut Vector) -> Result<&mut Array, DeviceError> {
    vector.array_mut().ok_or(DeviceError::Foreign)
}

impl DeviceIterations {
    /// Maximum number of iterations before a read.
    pub const MOST: usize = CgRecurrence::MOST;

    /// Creates a chain for vectors like this one; `None` for host vectors, or if messages pass through the host.
    ///
    /// # Errors
    ///
    /// A device failure, for this and all later calls.
    pub fn new(like: &Vector) -> Result<Option<Self>, DeviceError> {
        let (Some((arithmetic, _)), true) = (like.array(), like.stays_on_devices()) else {
            return Ok(None);
        };
        let recurrence = CgRecurrence::new(arithmetic, like.shared_entries())?;
        let arithmetic = Arc::clone(arithmetic);
        Ok(Some(Self { arithmetic, recurrence }))
    }

    /// Restarts with r·z, to be run until ‖r‖ ≤ `target`.
    pub fn start(&mut self, rz: f64, target: f64) -> Result<(), DeviceError> {
        self.recurrence.start(rz, target)
    }

    /// Computes p·q with q = A p.
    pub fn product(&self, p: &Vector, q: &Vector) -> Result<(), DeviceError> {
        self.recurrence.product(array(p)?, array(q)?)
    }

    /// Computes x = x + α p, r = r − α q: [`Vector::step`].
    pub fn step(
        &self,
        x: &mut Vector,
        p: &Vector,
        r: &mut Vector,
        q: &Vector,
        inverse: Option<&Vector>,
    ) -> Result<(), DeviceError> {
        let d = inverse.map(array).transpose()?;
        self.recurrence.step(array(p)?, array(q)?, d, array_mut(x)?, array_mut(r)?)
    }

    /// Computes p = z + β p with z = M⁻¹r if it is given, otherwise D⁻¹r; D⁻¹ is the identity by default.
    pub fn advance(
        &self,
        p: &mut Vector,
        r: &Vector,
        z: Option<&Vector>,
        inverse: Option<&Vector>,
    ) -> Result<(), DeviceError> {
        let r = array(r)?;
        let toward = match (z, inverse) {
            (Some(z), _) => {
                let z = array(z)?;
                self.recurrence.weigh(r, z)?;
                SearchDirection::Preconditioned(z)
            }
            (None, Some(d)) => SearchDirection::Scaled(r, array(d)?),
            (None, None) => SearchDirection::Residual(r),
        };
        self.recurrence.advance(toward, array_mut(p)?)
    }

    /// Waits for the results of the iterations since the last read.
    pub fn read(&mut self) -> Result<Vec<CgStep>, DeviceError> {
        self.arithmetic.check()?;
        let step = |SumValues { first, second, curvature }| CgStep {
            curvature,
            square: first,
            weighted: second,
        };
        Ok(self.recurrence.read()?.into_iter().map(step).collect())
    }

    /// Records device work: [`Device::record`](crate::device::Device::record).
    pub fn record(&self, work: RecordedWork<'_>) -> Result<Option<Recording>, DeviceError> {
        self.arithmetic.device().record(work)
    }

    /// Replays a recording.
    pub fn replay(&self, recording: &Recording) -> Result<(), DeviceError> {
        self.arithmetic.device().replay(recording)
    }
}
