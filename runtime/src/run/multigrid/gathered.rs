//! The coarsest level of several processes: each has all of it, and solves it as one would alone ([`Bottom`]).
//!
//! ```text
//! b of the whole level ← of each unknown the number of the first process that has it      one sum over all processes
//! x of the part        ← x of the whole
//! ```
//!
//! All find the same bits, so that nothing need be sent back. It takes as long as one process takes, and is short where the level
//! is small.

use super::super::RunError;
use super::{Bottom, Made, Manner, Problem};
use crate::device::DeviceError;
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
        let vector = || Vector::zeros(n, like.precision());
        let work = Mutex::new([vector(), vector()]);
        let (sharing, on) = (Arc::clone(sharing), Arc::new(on));
        let bottom = Bottom::new(of, &elements, on, vector(), manner)?;
        Ok(Some(Self { bottom, sharing, places, work }))
    }

    /// A vector of the whole level.
    fn gather(&self, own: &Vector, all: &mut Vector) {
        all.set(&self.sharing.gathered(&own.to_vec(), &self.places, all.len()));
    }
}

impl Coarsest for Gathered {
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.gather(u, &mut work[0]);
        self.bottom.linearise(&work[0])
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.bottom.set_params(params)
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [all, found] = &mut *work;
        self.gather(b, all);
        self.bottom.solve(all, found)?;
        let found = found.to_vec();
        let own: Vec<f64> = self.places.iter().map(|&place| found[place]).collect();
        x.set(&own);
        Ok(())
    }

    fn words(&self) -> String {
        format!("{} at each process", self.bottom.words())
    }
}
