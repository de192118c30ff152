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
    places: Vec<u32>,
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
        let Some(sharing) = like.sharing() else { return Ok(None) };
        let (own, all) = (&made.on.fields[0].space, &on.fields[0].space);
        let components = own.components();
        let mut places = vec![0; own.n_dofs()];
        for (here, &there) in cut.cells().iter().enumerate() {
            let nodes = own.cell_nodes(here).iter().zip(all.cell_nodes(there as usize));
            for (&here, &there) in nodes {
                for component in 0..components {
                    places[here as usize * components + component] =
                        there * components as u32 + component as u32;
                }
            }
        }
        let n = on.n_dofs();
        let vector = || Vector::zeros(n, like.precision());
        let work = Mutex::new([vector(), vector()]);
        let (sharing, on) = (Arc::clone(sharing), Arc::new(on));
        let bottom = Bottom::new(of, &elements, on, vector(), manner)?;
        Ok(Some(Self { bottom, sharing, places, work }))
    }

    /// A vector of the whole level.
    fn gather(&self, own: &Vector, all: &mut Vector) {
        let mut numbers = vec![0.0; all.len()];
        for (at, number) in own.to_vec().into_iter().enumerate() {
            if !self.sharing.is_of_others(at) {
                numbers[self.places[at] as usize] = number;
            }
        }
        self.sharing.total(&mut numbers);
        all.set(&numbers);
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
        let own: Vec<f64> = self.places.iter().map(|&place| found[place as usize]).collect();
        x.set(&own);
        Ok(())
    }

    fn words(&self) -> String {
        format!("{} at each process", self.bottom.words())
    }
}
