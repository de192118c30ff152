//! Cell contributions: residuals, facet fluxes and shares of the energy, from values at quadrature points.
//!
//! ```text
//! ‖f0 − div σ‖² = Σ_q w_q ρ_q² / |det J|_q,    ρ = |det J| (f0 − div σ)
//! ```
//!
//! ρ is projected onto polynomials of the largest degree of the fields, the degree of its test functions. For a
//! singular source, finer rules would otherwise see ever more of the singularity; only its moments should count. With p
//! + 1 points per direction the projection is the identity. Without a flux, the residual is f0 and is not projected.

use super::points::{PointOperations, Projection};
use super::required::{FieldValues, RequiredValues};
use crate::mesh::pairs::FacetConnectivity;
use crate::support::parallel::*;
use kernels_gen::element::Rule;
use std::ops::Range;

/// Contribution of a cell to one field.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CellContribution {
    /// ‖f0 − div f1‖², or ‖ρ‖² of a field in H(curl) or H(div).
    pub(super) residual: f64,
    /// ‖δ‖² of such a field.
    pub(super) derived: f64,
    /// Mean coefficient of the linearised problem.
    pub(super) coefficient: f64,
    /// ∫ |G ∇u|², or ∫ |G u|².
    pub(super) tangent: f64,
    /// The same of the values of such a field.
    pub(super) mass: [f64; 2],
    /// Shares of the energy.
    pub(super) energy: [f64; 3],
    /// ∫ |∇u|².
    pub(super) slope: f64,
}

/// Contributions of all cells.
pub(super) struct CellContributions {
    /// `[cell][field]`.
    pub(super) shares: Vec<CellContribution>,
    /// Traces at the points of facets, such as outward fluxes: `[cell][facet][component][point]`.
    pub(super) traces: Vec<f64>,
    fields: usize,
    /// Number of trace values per cell, and per facet.
    each: usize,
    pub(super) on_facet: usize,
}

/// Reduction of values at points to cell contributions.
pub(super) struct PointReduction<'a> {
    pub(super) wanted: &'a RequiredValues,
    pub(super) points: &'a PointOperations,
    pub(super) faces: &'a FacetConnectivity,
    /// Residual projection of each field.
    parts: Vec<Option<Projection>>,
    facets: usize,
}

impl<'a> PointReduction<'a> {
    pub(super) fn new(
        wanted: &'a RequiredValues,
        points: &'a PointOperations,
        faces: &'a FacetConnectivity,
        rule: Rule,
    ) -> Self {
        let degree = wanted.fields.iter().map(|field| field.degree).max().unwrap_or(1);
        let of = |field: &FieldValues| field.has_flux.then(|| points.part(rule, degree)).flatten();
        let parts = wanted.fields.iter().map(of).collect();
        Self { wanted, points, faces, parts, facets: rule.cell().facets().len() }
    }

    /// Returns the number of trace values per facet.
    pub(super) fn on_facet(&self) -> usize {
        self.wanted.traced * self.points.on_facet
    }

    /// Creates zero contributions of a number of cells.
    pub(super) fn begin(&self, cells: usize) -> CellContributions {
        let (fields, on_facet) = (self.wanted.fields.len(), self.on_facet());
        let each = self.facets * on_facet;
        let shares = vec![CellContribution::default(); cells * fields];
        CellContributions { shares, traces: vec![0.0; cells * each], fields, each, on_facet }
    }

    /// Adds the values of some cells, `[cell][value][point]`.
    pub(super) fn take(&self, cells: Range<usize>, numbers: &[f64], into: &mut CellContributions) {
        let (fields, each) = (into.fields, into.each);
        // There may be no integral over these cells.
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

    /// Adds the values of one cell.
    fn one(
        &self,
        cell: usize,
        numbers: &[f64],
        shares: &mut [CellContribution],
        traces: &mut [f64],
    ) {
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
            let Some(vector) = &field.vector else {
                share.residual = self.residual(cell, (field, part.as_ref()), &of, measures, traces);
                continue;
            };
            if let Some(mass) = &vector.mass {
                let tangent = mass.tangent.iter().map(squares).sum();
                share.mass = [sum(mass.coefficient) / volume, tangent];
            }
            let into = (&mut *share, &mut *traces);
            self.vector_residual(cell, (field, vector), part.as_ref(), &of, into);
        }
    }

    /// Computes ‖f0 − div f1‖² of a field; stores its facet fluxes in the traces.
    fn residual<'n>(
        &self,
        cell: usize,
        (field, part): (&FieldValues, Option<&Projection>),
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
                self.trace(cell, field.traces[0].first + component, &flux, traces);
            }
            if let Some(part) = part {
                part.take(dim, &mut density);
            }
            let squares = density.iter().zip(weights).zip(measures);
            sum += squares.map(|((r, w), measure)| w * r * (w * r) / measure).sum::<f64>();
        }
        sum
    }

    /// Computes the facet fluxes of a cell.
    fn trace(&self, cell: usize, number: usize, flux: &[f64], traces: &mut [f64]) {
        let on_facet = self.on_facet();
        for (local, traces) in traces.chunks_exact_mut(on_facet).enumerate() {
            let view = self.faces.view(cell, local);
            let own = &mut traces[number * self.points.on_facet..][..self.points.on_facet];
            self.points.through(local, view, flux, own);
        }
    }
}

impl CellContributions {
    /// Returns the traces of a cell on a facet, `[component][point]`.
    pub(super) fn trace(&self, cell: usize, local: usize) -> &[f64] {
        &self.traces[cell * self.each + local * self.on_facet..][..self.on_facet]
    }

    /// Returns the contribution of a cell to a field.
    pub(super) fn share(&self, cell: usize, field: usize) -> &CellContribution {
        &self.shares[cell * self.fields + field]
    }
}
