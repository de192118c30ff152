//! Integrands of the residual at quadrature points, w |det J| f0 and w |det J| J⁻¹ f1, for a given state.
//!
//! Kernels of [`Task::Flux`](kernels_gen::plan::Task::Flux) process ranges of cells with temporary tables, so that
//! memory does not grow with the mesh. Contributions of several integrals in a cell are summed; results on a device are
//! downloaded range by range.

use super::blocks::{AssignedKernel, kept};
use super::memory::MemoryArray;
use super::{BuildError, CellClass, Operator};
use crate::algebra::vector::Vector;
use crate::mesh::pairs::CellPair;
use crate::operator::batch::Batches;
use crate::support::parallel::*;
use fem_dsl::point::Side;
use kernels_gen::abi::Role;
use kernels_gen::plan::Target;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Number of batches per task.
const PART: usize = 8;

/// Selection of integrands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FluxSelection {
    /// Number of values per point.
    pub numbers: usize,
    /// For each integral of a form, the index of each of its tested values ([`kernels_gen::plan::tested_in_kernel`]) among these.
    pub places: Vec<Vec<usize>>,
    /// Values common to all integrals, e.g. the quadrature weight, which are set rather than summed.
    pub once: Vec<usize>,
}

/// Output of a kernel at the points of its cells.
struct KernelOutput<'a> {
    /// Values and points per cell.
    numbers: usize,
    points: usize,
    lanes: usize,
    target: Target,
    values: Cow<'a, [f64]>,
}

impl<'a> KernelOutput<'a> {
    /// Wraps the output of a kernel with a number of values per point.
    fn new(work: &AssignedKernel, numbers: usize, values: Cow<'a, [f64]>) -> Self {
        let extent = work.abi.arguments.iter().find(|argument| argument.role == Role::Stored);
        let (lanes, target) = (work.abi.lanes, work.kernel.target);
        let points = extent.map_or(0, |of| of.extent) / (lanes * numbers).max(1);
        Self { numbers, points, lanes, target, values }
    }

    /// Adds an integral's values in the cell of a lane to `[value][point]`.
    fn add(&self, lane: usize, asked: &FluxSelection, integral: usize, into: &mut [f64]) {
        let (of_number, of_point) = match self.target {
            Target::Vectors => (1, self.numbers),
            Target::Threads => (self.points, 1),
        };
        let cell = lane / self.lanes * self.numbers * self.points * self.lanes + lane % self.lanes;
        for (number, &place) in asked.places[integral].iter().enumerate() {
            let first = &self.values[cell + number * of_number * self.lanes..];
            let own = into[place * self.points..].iter_mut().take(self.points);
            let numbers = first.iter().step_by(of_point * self.lanes);
            if asked.once.contains(&place) {
                own.zip(numbers).for_each(|(sum, number)| *sum = *number);
            } else {
                own.zip(numbers).for_each(|(sum, number)| *sum += number);
            }
        }
    }
}

impl Operator {
    /// Calls `each` with consecutive ranges of at most `most` cells, and the summed integrands of all cell integrals at
    /// their points, `[cell][value][point]`.
    ///
    /// # Errors
    ///
    /// Tables that cannot be built, a device failure, errors of `each`.
    pub fn fluxes<E: From<BuildError>>(
        &self,
        state: &Vector,
        asked: &FluxSelection,
        most: usize,
        mut each: impl FnMut(Range<usize>, &[f64]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.fits(state).map_err(BuildError::from)?;
        let on = &*self.blocks.on;
        let works = self.blocks.fluxes().iter();
        let of_cells = works.filter_map(|work| match work.kernel.class {
            class @ CellClass::Cells(_, integral) => Some((work, integral, kept(on, class))),
            CellClass::Facets(_) | CellClass::FacetsAt(..) | CellClass::HangingFacets(..) => None,
        });
        let of_cells: Vec<_> = of_cells.collect();
        let (n, mut numbers) = (on.mesh.n_cells(), Vec::new());
        for start in (0..n).step_by(most.max(1)) {
            let range = start..(start + most.max(1)).min(n);
            numbers.clear();
            for (work, integral, own) in &of_cells {
                let cells = range.clone().filter(|&cell| own(cell));
                let cells = cells.map(|cell| (cell as u32, None));
                let batches = Batches::listed(work.abi.lanes, PART, cells);
                if batches.is_empty() {
                    continue;
                }
                let (batches, array) = self.stored(work, batches, state)?;
                let values = self.engine.memory().read_reals(&array).map_err(BuildError::from)?;
                let stored = KernelOutput::new(work, asked.places[*integral].len(), values);
                let length = asked.numbers * stored.points;
                numbers.resize(range.len() * length, 0.0);
                let mut lane_of = vec![usize::MAX; range.len()];
                for lane in lanes(&batches) {
                    lane_of[batches.cells()[lane] as usize - start] = lane;
                }
                let cells = numbers.par_chunks_mut(length).zip(&lane_of).with_min_len(64);
                cells.each(|(numbers, &lane)| {
                    if lane != usize::MAX {
                        stored.add(lane, asked, *integral, numbers);
                    }
                });
            }
            each(range, &numbers)?;
        }
        Ok(())
    }

    /// Returns the integrands of a facet integral, `[facet][value][point]`, in the order of its facets
    /// ([`crate::space::discretisation::Discretisation::facets_of`]). Points are those of the facet rule, in a cell
    /// rotated so that the facet is ξ₀ = 0. The result is empty if the integral tests nothing.
    ///
    /// # Errors
    ///
    /// As for [`Operator::fluxes`].
    pub fn fluxes_on_facets(
        &self,
        state: &Vector,
        asked: &FluxSelection,
        integral: usize,
    ) -> Result<Vec<f64>, BuildError> {
        self.fits(state)?;
        let all = self.blocks.on.facets_of(integral);
        let (count, mut numbers) = (asked.places[integral].len(), Vec::new());
        for work in self.blocks.fluxes() {
            let local = match work.kernel.class {
                CellClass::Facets(own) if own == integral => None,
                CellClass::FacetsAt(local, own) if own == integral => Some(local),
                _ => continue,
            };
            let is_own = |at: &usize| local.is_none_or(|local| u16::from(all[*at].local) == local);
            let places: Vec<usize> = (0..all.len()).filter(is_own).collect();
            if places.is_empty() {
                continue;
            }
            let facets = places.iter().map(|&at| (all[at].cell, Some(all[at].local)));
            let batches = Batches::listed(work.abi.lanes, PART, facets);
            let (batches, array) = self.stored(work, batches, state)?;
            let stored = KernelOutput::new(work, count, self.engine.memory().read_reals(&array)?);
            let each = asked.numbers * stored.points;
            numbers.resize(each * all.len(), 0.0);
            for (lane, &at) in lanes(&batches).zip(&places) {
                stored.add(lane, asked, integral, &mut numbers[at * each..][..each]);
            }
        }
        Ok(numbers)
    }

    /// Calls `each` with every pair of cells that `pairs` yields for an integral, and its integrands at the points of the
    /// facet, `[value][point]`, for each of its tested values ([`kernels_gen::plan::tested_in_kernel`]). All pairs have
    /// the same larger side.
    ///
    /// # Errors
    ///
    /// As for [`Operator::fluxes`].
    pub fn fluxes_on_pairs(
        &self,
        state: &Vector,
        (integral, numbers): (usize, usize),
        larger: Option<Side>,
        pairs: &[CellPair],
        mut each: impl FnMut(&CellPair, &[f64]),
    ) -> Result<(), BuildError> {
        self.fits(state)?;
        let class = larger
            .map_or(CellClass::Facets(integral), |side| CellClass::HangingFacets(side, integral));
        let mut works = self.blocks.fluxes().iter();
        let Some(work) = works.find(|work| work.kernel.class == class) else { return Ok(()) };
        let mut all: Vec<&CellPair> = pairs.iter().collect();
        let batches = Batches::pairs_listed(work.abi.lanes, PART, &mut all);
        let (batches, array) = self.stored(work, batches, state)?;
        let stored = KernelOutput::new(work, numbers, self.engine.memory().read_reals(&array)?);
        let places = vec![(0..numbers).collect()];
        let asked = FluxSelection { numbers, places, once: Vec::new() };
        let mut own = vec![0.0; numbers * stored.points];
        for (lane, pair) in lanes(&batches).zip(all) {
            own.fill(0.0);
            stored.add(lane, &asked, 0, &mut own);
            each(pair, &own);
        }
        Ok(())
    }

    /// Runs a kernel on some batches and returns its output.
    fn stored(
        &self,
        work: &AssignedKernel,
        batches: Batches,
        state: &Vector,
    ) -> Result<(Arc<Batches>, MemoryArray), BuildError> {
        let done = self.blocks.flux(&*self.engine, work, batches, state)?;
        self.finish()?;
        Ok(done)
    }
}

/// Iterates over the lanes that are not padding.
fn lanes(batches: &Batches) -> impl Iterator<Item = usize> {
    let lanes = batches.lanes();
    let active = batches.active().iter().enumerate();
    active.flat_map(move |(batch, &active)| batch * lanes..batch * lanes + active as usize)
}
