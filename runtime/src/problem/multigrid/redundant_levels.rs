//! Redundant coarse levels: each process holds the whole of a small level and computes like a serial run.
//!
//! ```text
//! b of the whole level ← value of each degree of freedom from its lowest rank      one reduction over all processes
//! x of the subdomain   ← x of the whole
//! ```
//!
//! Messages of small levels take longer than their work. The transfer to the first small level therefore ends in the
//! whole level ([`RedundantTransfer`]), and coarser levels are serial. [`RedundantCoarseSolver`] is the coarse-grid
//! solver if the finest level is also the coarsest. Hosts compute identical bits on all processes. Devices add in
//! varying order; the lowest rank of each finer DoF determines its value. Devices with direct communication keep all
//! data in device memory.

use super::super::RunError;
use super::{CoarseSolver, HierarchyInput, UnlinkedLevel};
use crate::algebra::vector::Vector;
use crate::device::{Arithmetic, Device, DeviceError, EntryCopies};
use crate::problem::plan::LevelSettings;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::solve::{CoarseGridSolver, GridTransfer, OperatorError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of degrees of freedom over all processes up to which a level is redundant on hosts: a product with so many
/// takes as long as two messages.
const SMALL: usize = 2_000;
/// Degrees of freedom per second of a device product, in single precision.
const PASSED: f64 = 7.5e10;
/// Message latency in seconds through the host or MPI. Actual latencies may exceed it, but memory must not grow with
/// them.
const BY_THE_HOST: f64 = 27e-6;

/// Returns whether a level of so many total degrees of freedom is small; on devices, whether a message takes longer
/// than a product.
pub(super) fn is_small(unknowns: usize, device: Option<&Arc<dyn Device>>) -> bool {
    let Some(device) = device else { return unknowns <= SMALL };
    let latency = device.group().and_then(|devices| devices.latency()).unwrap_or(BY_THE_HOST);
    unknowns as f64 <= PASSED * latency
}

/// Gather and scatter between a subdomain and its whole level.
pub(super) struct GatherScatter {
    sharing: Arc<InterfaceExchange>,
    /// Index in the whole level of each local degree of freedom.
    places: Vec<usize>,
    /// Device version, for devices with direct communication.
    on_device: Option<DeviceGatherScatter>,
}

/// Gather and scatter in device memory.
struct DeviceGatherScatter {
    /// Vector arithmetic of the device.
    arithmetic: Arc<Arithmetic>,
    /// Copies the degrees of freedom whose lowest rank is this process.
    gather: EntryCopies,
    scatter: EntryCopies,
}

/// Returns the map from a degree of freedom to its position in a device vector.
fn lies(vector: &Vector) -> impl Fn(usize) -> usize + '_ {
    let layout = vector.array().map(|(arithmetic, _)| arithmetic.layout());
    let layout = layout.filter(|layout| layout.permutes(vector.len()));
    move |unknown| layout.map_or(unknown, |layout| layout.place(unknown))
}

impl DeviceGatherScatter {
    /// Builds the maps between a subdomain and the whole level; `None` if messages pass through the host.
    fn new(
        part: &Vector,
        whole: &Vector,
        sharing: &InterfaceExchange,
        places: &[usize],
    ) -> Result<Option<Self>, DeviceError> {
        let (Some((_, own)), Some((arithmetic, all)), true) =
            (part.array(), whole.array(), part.stays_on_devices())
        else {
            return Ok(None);
        };
        let (in_part, in_whole, lens) = (lies(part), lies(whole), [own.len(), all.len()]);
        let pairs =
            || places.iter().enumerate().map(|(own, &all)| (own, in_part(own), in_whole(all)));
        let first = pairs().filter(|(own, ..)| !sharing.is_of_others(*own));
        let gather = EntryCopies::new(arithmetic, lens, first.map(|(_, i, j)| (i, j)))?;
        let back = pairs().map(|(_, i, j)| (j, i));
        let scatter = EntryCopies::new(arithmetic, [lens[1], lens[0]], back)?;
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

impl GatherScatter {
    /// Builds the maps from vectors like `part` into vectors like `whole`, at the indices `places`.
    fn new(part: &Vector, whole: &Vector, places: Vec<usize>) -> Result<Option<Self>, DeviceError> {
        let Some(sharing) = part.sharing().cloned() else { return Ok(None) };
        let on_device = DeviceGatherScatter::new(part, whole, &sharing, &places)?;
        Ok(Some(Self { sharing, places, on_device }))
    }

    /// Gathers a vector of the whole level.
    fn gather(&self, own: &Vector, all: &mut Vector) -> Result<(), DeviceError> {
        match &self.on_device {
            Some(on_device) => on_device.gather(own, all),
            None => {
                all.set(&self.sharing.gathered(&own.to_vec(), &self.places, all.len()));
                Ok(())
            }
        }
    }

    /// Scatters a whole vector to the subdomain.
    fn scatter(&self, all: &Vector, own: &mut Vector) -> Result<(), DeviceError> {
        match &self.on_device {
            Some(on_device) => on_device.scatter(all, own),
            None => {
                let all = all.to_vec();
                own.set(&self.places.iter().map(|&place| all[place]).collect::<Vec<f64>>());
                Ok(())
            }
        }
    }
}

impl HierarchyInput<'_> {
    /// Builds the whole level of a subdomain; `None` if data is unknown on the whole mesh.
    pub(super) fn whole(&self, part: &UnlinkedLevel) -> Result<Option<UnlinkedLevel>, RunError> {
        let Some(cut) = part.on.mesh.cut() else { return Ok(None) };
        let (whole, degree) = (Arc::clone(cut.whole()?), part.elements.degree);
        let found = self.prescribed.at(self.form, whole, degree, self.parameters, None)?;
        let made = |(elements, on)| self.level((elements, Arc::new(on)), Default::default());
        found.map(made).transpose()
    }

    /// Extends a transfer so that it ends in the whole level.
    pub(super) fn gathered(
        &self,
        path: Box<dyn GridTransfer>,
        part: &UnlinkedLevel,
        whole: &UnlinkedLevel,
    ) -> Result<Option<RedundantTransfer>, RunError> {
        let (own, all) = (part.operator.zeros(), whole.operator.zeros());
        let Some(places) = part.on.places_in(&whole.on) else { return Ok(None) };
        let maps = GatherScatter::new(&own, &all, places).map_err(OperatorError::from)?;
        Ok(maps.map(|maps| RedundantTransfer { path, maps, part: Mutex::new(own) }))
    }
}

/// Transfer from a distributed level to a redundant one.
pub(super) struct RedundantTransfer {
    path: Box<dyn GridTransfer>,
    maps: GatherScatter,
    /// Coarse vector of the subdomain.
    part: Mutex<Vector>,
}

impl RedundantTransfer {
    fn part(&self) -> MutexGuard<'_, Vector> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GridTransfer for RedundantTransfer {
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        let mut part = self.part();
        self.maps.scatter(coarse, &mut part)?;
        self.path.prolong(&part, fine)
    }

    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        let mut part = self.part();
        self.path.restrict(fine, &mut part)?;
        Ok(self.maps.gather(&part, coarse)?)
    }

    fn inject(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        let mut part = self.part();
        self.path.inject(fine, &mut part)?;
        Ok(self.maps.gather(&part, coarse)?)
    }
}

/// Redundant coarse-grid solver of a one-level hierarchy.
pub(super) struct RedundantCoarseSolver {
    bottom: CoarseSolver,
    maps: GatherScatter,
    /// b and x of the whole level.
    work: Mutex<[Vector; 2]>,
}

impl RedundantCoarseSolver {
    /// Builds the solver of the subdomain level `made`, with vectors like `like`; `None` if data is unknown on the
    /// whole mesh.
    pub(super) fn new(
        of: &HierarchyInput<'_>,
        made: &UnlinkedLevel,
        like: &Vector,
        settings: LevelSettings,
    ) -> Result<Option<Self>, RunError> {
        let Some(UnlinkedLevel { operator, on, elements }) = of.whole(made)? else {
            return Ok(None);
        };
        let Some(places) = made.on.places_in(&on) else { return Ok(None) };
        let whole = operator.zeros();
        let Some(maps) = GatherScatter::new(like, &whole, places).map_err(OperatorError::from)?
        else {
            return Ok(None);
        };
        let work = Mutex::new([whole.like(), whole.like()]);
        let bottom = CoarseSolver::new(of, &elements, on, whole, settings)?;
        Ok(Some(Self { bottom, maps, work }))
    }
}

impl CoarseGridSolver for RedundantCoarseSolver {
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.maps.gather(u, &mut work[0])?;
        self.bottom.linearise(&work[0])
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.bottom.set_params(params)
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [all, found] = &mut *work;
        self.maps.gather(b, all)?;
        self.bottom.solve(all, found)?;
        self.maps.scatter(found, x)?;
        if x.array().is_some() {
            x.synchronise();
        }
        Ok(())
    }

    fn replayable(&self) -> bool {
        self.maps.on_device.is_some() && self.bottom.replayable()
    }

    fn words(&self) -> String {
        self.bottom.words()
    }
}
