//! Terms over facets between cells: the integrands tested against the values of both cells.
//!
//! ```text
//! R(φ) = Σ_K ∫ (f0 − div σ) φ dx + Σ_F ∫ r_in φ_in + r_out φ_out ds,     r_in = σ_in · n + q_in,  r_out = −σ_out · n + q_out
//! ```
//!
//! with q the rows of an interior block on the value of a side. For a continuous φ only r_in + r_out counts.

use super::EstimateError;
use super::required::{PairIntegrands, RequiredValues};
use crate::algebra::vector::Vector;
use crate::mesh::pairs::{CellPair, FacetConnectivity, FacetSide};
use crate::mesh::views::FacetViews;
use crate::operator::Operator;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::Side;
use kernels_gen::element::Rule;
use std::collections::HashMap;

/// Rows of interior blocks at the points of facets, and shares of the energy.
#[derive(Debug, Default)]
pub(super) struct PairSources {
    /// The pair of a side, and whether the side is the pair's second one. A larger cell is always the second one, and is
    /// absent.
    of_side: HashMap<(u32, u8), (usize, bool)>,
    /// Densities per parameter of the first side's facet in its own frame, `[pair][side][component][point]`.
    rows: Vec<f64>,
    /// Components and points of a side.
    each: usize,
    /// Integrals of shares of the energy, `[field][share]`.
    energies: Vec<[f64; 3]>,
}

/// Frames of the facets of a mesh, or of a part with a number of cells.
pub(super) struct Frames<'a> {
    faces: &'a FacetConnectivity,
    views: FacetViews,
    cells: usize,
    /// Place in the frame of each point of a rotated tensor cell, `[orientation][view]`; empty on simplices.
    grids: Vec<Vec<Vec<usize>>>,
}

impl PairSources {
    /// Evaluates the interior blocks of a form at a state, for residuals scaled by `factor`.
    pub(super) fn new(
        operator: &Operator,
        on: &Discretisation,
        state: &Vector,
        (wanted, factor): (&RequiredValues, f64),
        (frames, weights): (&Frames<'_>, &[f64]),
    ) -> Result<Self, EstimateError> {
        let each = wanted.traced * weights.len();
        let energies = vec![[0.0; 3]; wanted.fields.len()];
        let mut all = Self { each, energies, ..Self::default() };
        for (integral, own) in wanted.of_pairs.iter().enumerate() {
            let (Some(own), Some(pairs)) = (own, on.pairs_of(integral)) else { continue };
            for larger in [None, Some(Side::Inside), Some(Side::Outside)] {
                let some = pairs.iter().filter(|pair| pair.larger == larger);
                let some: Vec<CellPair> = some.map(|pair| frames.facing(pair)).collect();
                let each = |pair: &CellPair, numbers: &[f64]| {
                    all.add(pair, (own, numbers, factor), frames, weights);
                };
                operator.fluxes_on_pairs(state, (integral, own.numbers), larger, &some, each)?;
            }
        }
        Ok(all)
    }

    /// Adds the values of a pair.
    fn add(
        &mut self,
        pair: &CellPair,
        (own, numbers, factor): (&PairIntegrands, &[f64], f64),
        frames: &Frames<'_>,
        weights: &[f64],
    ) {
        let points = weights.len();
        for &(place, field, share) in &own.energies {
            let sum: f64 = numbers[place * points..][..points].iter().sum();
            self.energies[field][share] += factor * (factor * sum);
        }
        // The smaller cell comes first.
        let first = usize::from(pair.larger == Some(Side::Inside));
        let key = |side: usize| (pair.sides[side].cell, pair.sides[side].local);
        let next = self.rows.len() / (2 * self.each).max(1);
        let (at, exchanged) = *self.of_side.entry(key(first)).or_insert((next, false));
        if at == next {
            self.rows.resize((next + 1) * 2 * self.each, 0.0);
            if pair.larger.is_none() {
                self.of_side.insert(key(1 - first), (next, true));
            }
        }
        // Cells beyond a part have no views. They are equal or larger.
        let is_beyond = pair.sides[first].cell as usize >= frames.cells;
        let known = if is_beyond { 1 - first } else { first };
        let grid = frames.grid(pair.sides[known], pair.orientations[known]);
        for &(place, side, component) in &own.rows {
            let second = (side as usize != first) != exchanged;
            let start = (2 * at + usize::from(second)) * self.each + component * points;
            let values = numbers[place * points..][..points].iter().zip(weights);
            for (q, (value, weight)) in values.enumerate() {
                let to = grid.map_or(q, |grid| grid[q]);
                self.rows[start + to] += factor * (value / weight);
            }
        }
    }

    /// Returns the rows of a side and of the one opposite, in the frame of the facet; `None` if there are none, or if it
    /// is a larger cell's.
    pub(super) fn of(&self, side: FacetSide) -> Option<[&[f64]; 2]> {
        let &(at, exchanged) = self.of_side.get(&(side.cell, side.local))?;
        let (first, second) = self.rows[2 * at * self.each..][..2 * self.each].split_at(self.each);
        Some(if exchanged { [second, first] } else { [first, second] })
    }

    /// Returns the integral of a field's share of the energy over the facets of this process.
    pub(super) fn energy(&self, field: usize, share: usize) -> f64 {
        self.energies[field][share]
    }
}

impl<'a> Frames<'a> {
    pub(super) fn new(
        faces: &'a FacetConnectivity,
        views: FacetViews,
        rule: Rule,
        cells: usize,
    ) -> Self {
        let line = if let Rule::Tensor { line, .. } = rule { Some(line) } else { None };
        let grids = line.into_iter().flat_map(|line| {
            let all = 0..views.count() as u8;
            let grids: Vec<Vec<usize>> = all.map(|view| views.grid(view, line.count())).collect();
            let between = |own: &[usize], frame: &[usize]| -> Vec<usize> {
                let place = |at: &usize| frame.iter().position(|own| own == at).unwrap_or(0);
                own.iter().map(place).collect()
            };
            let to_all = |own: &Vec<usize>| grids.iter().map(|frame| between(own, frame)).collect();
            grids.iter().map(to_all).collect::<Vec<_>>()
        });
        let grids = grids.collect();
        Self { faces, views, cells, grids }
    }

    /// Returns a pair of simplices with the coordinates of the facet's own frame: their points are not symmetric.
    fn facing(&self, pair: &CellPair) -> CellPair {
        if !self.grids.is_empty() {
            return *pair;
        }
        let own = usize::from(pair.sides[0].cell as usize >= self.cells);
        let FacetSide { cell, local } = pair.sides[own];
        let view = self.faces.view(cell as usize, usize::from(local));
        let turn = self.views.rotated(usize::from(local), view);
        let shift = self.views.composed(turn, self.views.inverse(pair.orientations[own]));
        let orientations = pair.orientations.map(|then| self.views.composed(shift, then));
        CellPair { orientations, ..*pair }
    }

    /// Returns the place in the facet's frame of each point of a rotated tensor cell in an orientation.
    fn grid(&self, side: FacetSide, orientation: u8) -> Option<&[usize]> {
        let of_views = self.grids.get(usize::from(orientation))?;
        let view = self.faces.view(side.cell as usize, usize::from(side.local));
        Some(&of_views[usize::from(view)])
    }
}
