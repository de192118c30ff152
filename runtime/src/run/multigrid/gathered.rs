//! The coarsest level of several processes: each has all of it, and solves it as one would alone ([`Bottom`]).
//!
//! ```text
//! b of the whole level ← of each unknown the number of the first process that has it      one sum over all processes
//! x of the part        ← x of the whole
//! ```
//!
//! On processors all find the same bits, so that nothing need be sent back; devices, which add up their matrices in an order of
//! their own, take what the first process has. It takes as long as one process takes, and is short where the level is small. Devices
//! that reach each other do all of it.

use super::super::RunError;
use super::{Bottom, Made, Manner, Problem};
use crate::device::{Arithmetic, DeviceError, Moved};
use crate::mesh::cut::Cut;
use crate::sharing::Sharing;
use crate::solve::{Coarsest, OperatorError};
use crate::vector::Vector;
use std::sync::{Arc, Mutex, PoisonError};

/// The coarsest level.
pub(super) struct Gathered {
    bottom: Bottom,
    sharing: Arc<Sharing>,
    /// The place in the whole level of each unknown of this process.
    places: Vec<usize>,
    /// b and x of the whole level.
    work: Mutex<[Vector; 2]>,
    /// The same ways where devices reach each other.
    there: Option<There>,
}

/// The ways to the whole level and back on a device.
struct There {
    /// What vectors of the whole level need.
    whole: Arc<Arithmetic>,
    /// Of the unknowns that no process before has.
    gather: Moved,
    scatter: Moved,
}

impl There {
    /// For vectors like one of a part; none where the host carries what processes tell each other.
    fn new(
        like: &Vector,
        sharing: &Sharing,
        places: &[usize],
        all: usize,
    ) -> Result<Option<Self>, DeviceError> {
        let Some((own, array)) = like.array().filter(|_| like.stays_on_devices()) else {
            return Ok(None);
        };
        let whole = Arithmetic::new(Arc::clone(own.device()), own.precision())?;
        let (layout, permutes) = (own.layout(), own.layout().permutes(like.len()));
        let lies = |unknown: usize| if permutes { layout.place(unknown) } else { unknown };
        let pairs = || places.iter().enumerate().map(|(own, &place)| (own, lies(own), place));
        let first = pairs().filter(|(own, ..)| !sharing.is_of_others(*own));
        let gather = Moved::new(&whole, [array.len(), all], first.map(|(_, i, j)| (i, j)))?;
        let scatter = Moved::new(&whole, [all, array.len()], pairs().map(|(_, i, j)| (j, i)))?;
        Ok(Some(Self { whole, gather, scatter }))
    }

    /// A vector of the whole level.
    fn gather(&self, own: &Vector, all: &mut Vector) -> Result<(), DeviceError> {
        all.fill(0.0);
        let own = own.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)?;
        let n = all.len();
        let all = all.array_mut().ok_or(DeviceError::Foreign)?;
        self.gather.apply(&self.whole, own, all)?;
        self.whole.device().group().ok_or(DeviceError::Foreign)?.sum(all, n)
    }

    /// What a part has of it.
    fn scatter(&self, all: &Vector, own: &mut Vector) -> Result<(), DeviceError> {
        let all = all.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)?;
        let own = own.array_mut().ok_or(DeviceError::Foreign)?;
        self.scatter.apply(&self.whole, all, own)
    }
}

impl Gathered {
    /// Of the level `made`, with vectors like `like`; none where data is not known on its whole mesh.
    pub(super) fn new(
        of: &Problem<'_>,
        made: &Made,
        cut: &Cut,
        like: &Vector,
        manner: Manner,
    ) -> Result<Option<Self>, RunError> {
        let (whole, degree) = (Arc::clone(cut.whole()), made.elements.degree);
        let Some((elements, on)) = of.prescribed.at(of.form, whole, degree, of.parameters, None)?
        else {
            return Ok(None);
        };
        let (Some(sharing), Some(places)) = (like.sharing(), made.on.places_in(&on)) else {
            return Ok(None);
        };
        let n = on.n_dofs();
        let there = There::new(like, sharing, &places, n).map_err(OperatorError::from)?;
        let vector = || match &there {
            Some(there) => Vector::on_device(n, &there.whole),
            None => Vector::zeros(n, like.precision()),
        };
        let work = Mutex::new([vector(), vector()]);
        let (sharing, on) = (Arc::clone(sharing), Arc::new(on));
        let bottom = Bottom::new(of, &elements, on, vector(), manner)?;
        Ok(Some(Self { bottom, sharing, places, work, there }))
    }

    /// A vector of the whole level.
    fn gather(&self, own: &Vector, all: &mut Vector) -> Result<(), DeviceError> {
        match &self.there {
            Some(there) => there.gather(own, all),
            None => {
                all.set(&self.sharing.gathered(&own.to_vec(), &self.places, all.len()));
                Ok(())
            }
        }
    }
}

impl Coarsest for Gathered {
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.gather(u, &mut work[0])?;
        self.bottom.linearise(&work[0])
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.bottom.set_params(params)
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [all, found] = &mut *work;
        self.gather(b, all)?;
        self.bottom.solve(all, found)?;
        match &self.there {
            Some(there) => there.scatter(found, x)?,
            None => {
                let found = found.to_vec();
                let own: Vec<f64> = self.places.iter().map(|&place| found[place]).collect();
                x.set(&own);
            }
        }
        if x.array().is_some() {
            x.agree();
        }
        Ok(())
    }

    fn replayable(&self) -> bool {
        self.there.is_some() && self.bottom.replayable()
    }

    fn words(&self) -> String {
        format!("{} at each process", self.bottom.words())
    }
}
