//! What cells have by themselves: numbers at their points → residuals, fluxes through their facets, shares of the energy.
//!
//! ```text
//! ‖f0 − div σ‖² = Σ_q w_q ρ_q² / |det J|_q,    ρ = |det J| (f0 − div σ)
//! ```
//!
//! Of ρ counts what is a polynomial of the largest degree of the fields: functions that it is tested against are no more than
//! that, so that of a source with a singularity, of which the points see more the more of them there are, its moments count. With
//! p + 1 points a direction, that is all of it. Where there is no flux f0 is the residual itself, and counts as it is.

use super::faces::Faces;
use super::points::{Part, Points};
use super::wanted::{OfField, Wanted};
use crate::support::parallel::*;
use kernels_gen::element::Rule;
use std::ops::Range;

/// What is known of one field in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    /// ‖f0 − div f1‖².
    pub(super) residual: f64,
    /// The mean coefficient of the linear problem.
    pub(super) coefficient: f64,
    /// ∫ |G ∇u|², or ∫ |G u|².
    pub(super) tangent: f64,
    /// Shares of the energy.
    pub(super) energy: [f64; 3],
    /// ∫ |∇u|².
    pub(super) slope: f64,
}

/// What is known of all cells.
pub(super) struct Cells {
    /// `[cell][field]`.
    pub(super) shares: Vec<Share>,
    /// What flows out through the facets, at their points: `[cell][facet][component][point]`, components of fields with a flux.
    pub(super) traces: Vec<f64>,
    fields: usize,
    /// Numbers of a cell's traces, and of one facet's.
    each: usize,
    pub(super) on_facet: usize,
}

/// What numbers at the points become.
pub(super) struct Reduction<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) points: &'a Points,
    pub(super) faces: &'a Faces,
    /// The part of a residual that counts, field by field.
    parts: Vec<Option<Part>>,
    facets: usize,
}

impl<'a> Reduction<'a> {
    pub(super) fn new(
        wanted: &'a Wanted,
        points: &'a Points,
        faces: &'a Faces,
        rule: Rule,
    ) -> Self {
        let degree = wanted.fields.iter().map(|field| field.degree).max().unwrap_or(1);
        let of = |field: &OfField| field.has_flux.then(|| points.part(rule, degree)).flatten();
        let parts = wanted.fields.iter().map(of).collect();
        Self { wanted, points, faces, parts, facets: rule.cell().facets().len() }
    }

    /// Numbers of the traces of a facet.
    pub(super) fn on_facet(&self) -> usize {
        self.wanted.traced * self.points.on_facet
    }

    /// Nothing of so many cells yet.
    pub(super) fn begin(&self, cells: usize) -> Cells {
        let (fields, on_facet) = (self.wanted.fields.len(), self.on_facet());
        let each = self.facets * on_facet;
        let shares = vec![Share::default(); cells * fields];
        Cells { shares, traces: vec![0.0; cells * each], fields, each, on_facet }
    }

    /// Takes the numbers of some cells, `[cell][number][point]`.
    pub(super) fn take(&self, cells: Range<usize>, numbers: &[f64], into: &mut Cells) {
        let (fields, each) = (into.fields, into.each);
        // There may be no integral over any of them.
        if numbers.is_empty() {
            return;
        }
        let shares = &mut into.shares[cells.start * fields..cells.end * fields];
        let length = self.wanted.asked.numbers * self.points.count;
        let own = numbers.par_chunks_exact(length).zip(shares.par_chunks_exact_mut(fields));
        if each == 0 {
            own.with_min_len(64).enumerate().each(|(at, (numbers, shares))| {
                self.one(cells.start + at, numbers, shares, &mut []);
            });
            return;
        }
        let traces = &mut into.traces[cells.start * each..cells.end * each];
        let all = own.zip(traces.par_chunks_exact_mut(each)).with_min_len(64).enumerate();
        all.each(|(at, ((numbers, shares), traces))| {
            self.one(cells.start + at, numbers, shares, traces);
        });
    }

    /// Takes the numbers of one cell.
    fn one(&self, cell: usize, numbers: &[f64], shares: &mut [Share], traces: &mut [f64]) {
        let of = |place: usize| &numbers[place * self.points.count..][..self.points.count];
        let measures = of(self.wanted.one);
        let volume: f64 = measures.iter().sum();
        if volume == 0.0 {
            return;
        }
        let sum = |place: Option<usize>| place.map_or(0.0, |place| of(place).iter().sum());
        for ((field, share), part) in self.wanted.fields.iter().zip(shares).zip(&self.parts) {
            share.energy = field.energy.map(sum);
            share.coefficient = sum(field.coefficient) / volume;
            share.slope = sum(field.slope);
            let squares = |&place: &usize| -> f64 {
                of(place)
                    .iter()
                    .zip(measures)
                    .map(|(number, measure)| number * number / measure)
                    .sum()
            };
            share.tangent = field.tangent.iter().map(squares).sum();
            share.residual = self.residual(cell, (field, part.as_ref()), &of, measures, traces);
        }
    }

    /// ‖f0 − div f1‖² of a field; what its flux is on the facets goes to the traces.
    fn residual<'n>(
        &self,
        cell: usize,
        (field, part): (&OfField, Option<&Part>),
        of: &impl Fn(usize) -> &'n [f64],
        measures: &[f64],
        traces: &mut [f64],
    ) -> f64 {
        let (n, dim) = (self.points.count, self.points.dim());
        let weights = &self.points.weights;
        let mut sum = 0.0;
        for (component, tested) in field.components.iter().enumerate() {
            let mut density = match tested.value {
                Some(place) => of(place).iter().zip(weights).map(|(f, w)| f / w).collect(),
                None => vec![0.0; n],
            };
            if let Some(places) = &tested.gradient {
                let mut flux = Vec::with_capacity(dim * n);
                for &place in places {
                    flux.extend(of(place).iter().zip(weights).map(|(f, w)| f / w));
                }
                self.points.less_divergence(&flux, &mut density);
                self.trace(cell, field.first_trace + component, &flux, traces);
            }
            if let Some(part) = part {
                part.take(dim, &mut density);
            }
            let squares = density.iter().zip(weights).zip(measures);
            sum += squares.map(|((r, w), measure)| w * r * (w * r) / measure).sum::<f64>();
        }
        sum
    }

    /// What goes through the facets of a cell.
    fn trace(&self, cell: usize, number: usize, flux: &[f64], traces: &mut [f64]) {
        let on_facet = self.on_facet();
        for (local, traces) in traces.chunks_exact_mut(on_facet).enumerate() {
            let view = self.faces.views[cell * self.facets + local];
            let own = &mut traces[number * self.points.on_facet..][..self.points.on_facet];
            self.points.through(local, view, flux, own);
        }
    }
}

impl Cells {
    /// What flows out of a cell through a facet, `[component][point]`.
    pub(super) fn trace(&self, cell: usize, local: usize) -> &[f64] {
        &self.traces[cell * self.each + local * self.on_facet..][..self.on_facet]
    }

    /// What is known of a field in a cell.
    pub(super) fn share(&self, cell: usize, field: usize) -> &Share {
        &self.shares[cell * self.fields + field]
    }
}
