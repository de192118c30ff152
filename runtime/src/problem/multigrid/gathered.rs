//! Small levels of several processes: each has all of them, and does there what one would alone.
//!
//! ```text
//! b of the whole level ← of each unknown the number of the first process that has it      one sum over all processes
//! x of the part        ← x of the whole
//! ```
//!
//! Of levels that are small the messages take longer than the work. So the way to the first of them ends in all of it
//! ([`GatheredPath`]), and those below it are as one process has them; where the finest level is the coarsest, too, what solves it is
//! the same ([`Gathered`]). On processors all find the same bits. Devices add up in an order of their own; what they find goes to
//! finer unknowns, and of each of those what the first process has counts. Devices that reach each other do all of it.

use super::super::RunError;
use super::transfer::Path;
use super::{Bottom, Made, Problem};
use crate::algebra::vector::Vector;
use crate::device::{Arithmetic, Device, DeviceError, Moved};
use crate::problem::plan::LevelSettings;
use crate::processes::sharing::Sharing;
use crate::solve::{Coarsest, OperatorError, Transfer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Unknowns of all processes up to which each has all of a level on processors: two messages take as long as a product with so many.
const SMALL: usize = 2_000;
/// Unknowns with which a device passes through a product in a second, in single precision.
const PASSED: f64 = 7.5e10;
/// Seconds of a message by way of the host, or by MPI: what is told by these takes longer, but memory must not grow with it.
const BY_THE_HOST: f64 = 27e-6;

/// Whether a level of so many unknowns in all is small: on devices, whether a message takes longer than a product.
pub(super) fn is_small(unknowns: usize, device: Option<&Arc<dyn Device>>) -> bool {
    let Some(device) = device else { return unknowns <= SMALL };
    let latency = device.group().and_then(|devices| devices.latency()).unwrap_or(BY_THE_HOST);
    unknowns as f64 <= PASSED * latency
}

/// The ways to a whole level and back.
pub(super) struct Ways {
    sharing: Arc<Sharing>,
    /// The place in the whole level of each unknown of this process.
    places: Vec<usize>,
    /// The same where devices reach each other.
    there: Option<There>,
}

/// The same on a device.
struct There {
    /// What the vectors need.
    arithmetic: Arc<Arithmetic>,
    /// Of the unknowns that no process before has.
    gather: Moved,
    scatter: Moved,
}

/// Where an unknown of a vector on a device lies.
fn lies(vector: &Vector) -> impl Fn(usize) -> usize + '_ {
    let layout = vector.array().map(|(arithmetic, _)| arithmetic.layout());
    let layout = layout.filter(|layout| layout.permutes(vector.len()));
    move |unknown| layout.map_or(unknown, |layout| layout.place(unknown))
}

impl There {
    /// Between vectors of a part and of the whole level; none where the host carries what processes tell each other.
    fn new(
        part: &Vector,
        whole: &Vector,
        sharing: &Sharing,
        places: &[usize],
    ) -> Result<Option<Self>, DeviceError> {
        let (Some((_, own)), Some((arithmetic, all)), true) =
            (part.array(), whole.array(), part.stays_on_devices())
        else {
            return Ok(None);
        };
        let (here, there, lens) = (lies(part), lies(whole), [own.len(), all.len()]);
        let pairs = || places.iter().enumerate().map(|(own, &all)| (own, here(own), there(all)));
        let first = pairs().filter(|(own, ..)| !sharing.is_of_others(*own));
        let gather = Moved::new(arithmetic, lens, first.map(|(_, i, j)| (i, j)))?;
        let back = pairs().map(|(_, i, j)| (j, i));
        let scatter = Moved::new(arithmetic, [lens[1], lens[0]], back)?;
        Ok(Some(Self { arithmetic: Arc::clone(arithmetic), gather, scatter }))
    }

    fn gather(&self, own: &Vector, all: &mut Vector) -> Result<(), DeviceError> {
        let own = own.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)?;
        let all = all.array_mut().ok_or(DeviceError::Foreign)?;
        let n = all.len();
        self.arithmetic.clear(all, n)?;
        self.gather.apply(&self.arithmetic, own, all)?;
        self.arithmetic.device().group().ok_or(DeviceError::Foreign)?.sum(all, n)
    }

    fn scatter(&self, all: &Vector, own: &mut Vector) -> Result<(), DeviceError> {
        let all = all.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)?;
        let own = own.array_mut().ok_or(DeviceError::Foreign)?;
        self.scatter.apply(&self.arithmetic, all, own)
    }
}

impl Ways {
    /// From vectors like `part`, whose unknowns have these places in vectors like `whole`.
    fn new(part: &Vector, whole: &Vector, places: Vec<usize>) -> Result<Option<Self>, DeviceError> {
        let Some(sharing) = part.sharing().cloned() else { return Ok(None) };
        let there = There::new(part, whole, &sharing, &places)?;
        Ok(Some(Self { sharing, places, there }))
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

    /// What a part has of it.
    fn scatter(&self, all: &Vector, own: &mut Vector) -> Result<(), DeviceError> {
        match &self.there {
            Some(there) => there.scatter(all, own),
            None => {
                let all = all.to_vec();
                own.set(&self.places.iter().map(|&place| all[place]).collect::<Vec<f64>>());
                Ok(())
            }
        }
    }
}

impl Problem<'_> {
    /// All of a level of which this process has a part; none where data is not known on its whole mesh.
    pub(super) fn whole(&self, part: &Made) -> Result<Option<Made>, RunError> {
        let Some(cut) = part.on.mesh.cut() else { return Ok(None) };
        let (whole, degree) = (Arc::clone(cut.whole()?), part.elements.degree);
        let found = self.prescribed.at(self.form, whole, degree, self.parameters, None)?;
        let made = |(elements, on)| self.level((elements, Arc::new(on)), Default::default());
        found.map(made).transpose()
    }

    /// A way that ends in all of the level to which it leads a part.
    pub(super) fn gathered(
        &self,
        path: Path,
        part: &Made,
        whole: &Made,
    ) -> Result<Option<GatheredPath>, RunError> {
        let (own, all) = (part.operator.zeros(), whole.operator.zeros());
        let Some(places) = part.on.places_in(&whole.on) else { return Ok(None) };
        let ways = Ways::new(&own, &all, places).map_err(OperatorError::from)?;
        Ok(ways.map(|ways| GatheredPath { path, ways, part: Mutex::new(own) }))
    }
}

/// The way from a level in parts to one that each process has.
pub(super) struct GatheredPath {
    path: Path,
    ways: Ways,
    /// What this process has of vectors of the coarser level.
    part: Mutex<Vector>,
}

impl GatheredPath {
    fn part(&self) -> MutexGuard<'_, Vector> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transfer for GatheredPath {
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        let mut part = self.part();
        self.ways.scatter(coarse, &mut part)?;
        self.path.prolong(&part, fine)
    }

    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        let mut part = self.part();
        self.path.restrict(fine, &mut part)?;
        Ok(self.ways.gather(&part, coarse)?)
    }

    fn inject(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        let mut part = self.part();
        self.path.inject(fine, &mut part)?;
        Ok(self.ways.gather(&part, coarse)?)
    }
}

/// A level that is the finest and the coarsest.
pub(super) struct Gathered {
    bottom: Bottom,
    ways: Ways,
    /// b and x of the whole level.
    work: Mutex<[Vector; 2]>,
}

impl Gathered {
    /// Of the part `made`, with vectors like `like`; none where data is not known on its whole mesh.
    pub(super) fn new(
        of: &Problem<'_>,
        made: &Made,
        like: &Vector,
        settings: LevelSettings,
    ) -> Result<Option<Self>, RunError> {
        let Some(Made { operator, on, elements }) = of.whole(made)? else { return Ok(None) };
        let Some(places) = made.on.places_in(&on) else { return Ok(None) };
        let whole = operator.zeros();
        let Some(ways) = Ways::new(like, &whole, places).map_err(OperatorError::from)? else {
            return Ok(None);
        };
        let work = Mutex::new([whole.like(), whole.like()]);
        let bottom = Bottom::new(of, &elements, on, whole, settings)?;
        Ok(Some(Self { bottom, ways, work }))
    }
}

impl Coarsest for Gathered {
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.ways.gather(u, &mut work[0])?;
        self.bottom.linearise(&work[0])
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.bottom.set_params(params)
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [all, found] = &mut *work;
        self.ways.gather(b, all)?;
        self.bottom.solve(all, found)?;
        self.ways.scatter(found, x)?;
        if x.array().is_some() {
            x.agree();
        }
        Ok(())
    }

    fn replayable(&self) -> bool {
        self.ways.there.is_some() && self.bottom.replayable()
    }

    fn words(&self) -> String {
        self.bottom.words()
    }
}
