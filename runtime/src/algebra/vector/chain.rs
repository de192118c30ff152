//! Iterations of the conjugate gradient method on vectors of a device, one after another without the host: see
//! [`Recurrence`]. What fails is given back at once, and [`Chain::read`] also says what failed before.

use super::{Step, Vector};
use crate::device::{
    Arithmetic, Array, DeviceError, Record, Recording, Recurrence, Summed, Toward,
};
use std::sync::Arc;

/// Steps and directions whose scalars stay on a device.
#[derive(Debug)]
pub struct Chain {
    arithmetic: Arc<Arithmetic>,
    recurrence: Recurrence,
}

fn array(vector: &Vector) -> Result<&Array, DeviceError> {
    vector.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)
}

fn array_mut(vector: &mut Vector) -> Result<&mut Array, DeviceError> {
    vector.array_mut().ok_or(DeviceError::Foreign)
}

impl Chain {
    /// Iterations that may be asked for before they are read.
    pub const MOST: usize = Recurrence::MOST;

    /// A chain for vectors as this one; none where the host has its entries, or carries what processes tell each other.
    ///
    /// # Errors
    ///
    /// A device that fails, for this and all that follows.
    pub fn new(like: &Vector) -> Result<Option<Self>, DeviceError> {
        let (Some((arithmetic, _)), true) = (like.array(), like.stays_on_devices()) else {
            return Ok(None);
        };
        let recurrence = Recurrence::new(arithmetic, like.joint())?;
        let arithmetic = Arc::clone(arithmetic);
        Ok(Some(Self { arithmetic, recurrence }))
    }

    /// Begins anew with r·z, up to ‖r‖ ≤ `target`.
    pub fn start(&mut self, rz: f64, target: f64) -> Result<(), DeviceError> {
        self.recurrence.start(rz, target)
    }

    /// p·q, where q = A p.
    pub fn product(&self, p: &Vector, q: &Vector) -> Result<(), DeviceError> {
        self.recurrence.product(array(p)?, array(q)?)
    }

    /// x = x + α p, r = r − α q: [`Vector::step`].
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

    /// p = z + β p, where z is M⁻¹r if it is given, and D⁻¹r otherwise; the identity where there is no diagonal D⁻¹.
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
                Toward::Preconditioned(z)
            }
            (None, Some(d)) => Toward::Scaled(r, array(d)?),
            (None, None) => Toward::Residual(r),
        };
        self.recurrence.advance(toward, array_mut(p)?)
    }

    /// What the iterations since the last reading have found, which is waited for.
    pub fn read(&mut self) -> Result<Vec<Step>, DeviceError> {
        self.arithmetic.check()?;
        let step = |Summed { first, second, curvature }| Step {
            curvature,
            square: first,
            weighted: second,
        };
        Ok(self.recurrence.read()?.into_iter().map(step).collect())
    }

    /// Records what the device is asked for: [`Device::record`](crate::device::Device::record).
    pub fn record(&self, work: Record<'_>) -> Result<Option<Recording>, DeviceError> {
        self.arithmetic.device().record(work)
    }

    /// Does what was recorded.
    pub fn replay(&self, recording: &Recording) -> Result<(), DeviceError> {
        self.arithmetic.device().replay(recording)
    }
}
