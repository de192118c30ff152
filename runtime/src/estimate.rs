//! A-posteriori error estimate in the energy norm: error indicators of all cells from the form's own f0 and f1 at a
//! state.
//!
//! Let σ be the polynomial that interpolates the pulled-back f1 at the quadrature points ([`points`]). The discrete
//! equations are those of σ, and integration by parts of their residual gives
//!
//! ```text
//! R(φ) = Σ_K ∫ (f0 − div σ) φ dx + Σ_F ∫ [σ · n] φ ds + Σ_F on the boundary ∫ (σ · n + f0_tag) φ ds
//! η_K² = s_K a h_K² ‖f0 − div σ‖²_K + Σ_F s_F b h_F ‖[σ · n]‖²_F        a = 1 / 2p (p + 1) (2p + 1),  b = 1 / 8 (2p + 1)
//! ```
//!
//! with a halved for odd p, and with the rows of interior blocks in the facet terms ([`between`]) (R. Verfürth, "A Posteriori Error Estimation Techniques for Finite Element Methods", Oxford
//! 2013; jumps alone: D. W. Kelly, J. P. Gago, O. C. Zienkiewicz and I. Babuška, Int. J. for Numerical Methods in
//! Engineering 19 (1983)). With the constants a and b, η is exact for smooth solutions on cubes ([`scale`]). The
//! contribution of an interior facet is split equally between its cells. The weights s convert it to the energy ‖u‖² =
//! u · J u with the Jacobian J at the state:
//!
//! ```text
//! s_K = θ / κ_K        κ_K the mean coefficient of ∇u : G ∇u in K,  θ = ∫ ∇u : G ∇u / ∫ |G ∇u|² / κ
//! s_F = min s_K        of both sides (C. Bernardi and R. Verfürth, Numerische Mathematik 85 (2000), for coefficients that jump)
//! ```
//!
//! so that η is scaled by κ⁻¹ for diffusion with constant κ, in any units. A field with an equation without flux, such
//! as the Stokes pressure, uses the dual of L2: ‖f0‖², scaled by the ratio of the fluxes' energy to ∫ |∇u|². See
//! docs/design/estimate.md. Fields in H(curl) and H(div) have two residuals and two weights ([`vectors`]):
//!
//! ```text
//! η_K² = s_K (a h_K² ‖ρ‖²_K + Σ_F b h_F ‖[ρ]‖²_F) + s'_K (a h_K² ‖δ‖²_K + Σ_F b h_F ‖[δ]‖²_F)
//! ```
//!
//! with s from the coefficients of curl or div, and s' from those of values.
//!
//! With several processes, each estimates on its subdomain; facets between subdomains exchange data ([`interface`]).

pub mod adapt;
mod between;
mod boundary;
mod cells;
mod interface;
mod points;
mod required;
mod scale;
mod surface;
#[cfg(test)]
mod tests;
mod vectors;

use crate::algebra::vector::{Precision, powers};
use crate::device::{Device, DeviceError};
use crate::kernels::compile::{
    CompileError, Execution, Target, compile, compile_for_device, facts,
};
use crate::mesh::Facet;
use crate::mesh::pairs::{FacetConnectivity, FacetPair};
use crate::mesh::views::FacetViews;
use crate::operator::functional::fine_rule;
use crate::operator::{BuildError, Operator};
use crate::solve::OperatorError;
use crate::space::discretisation::{AuxValues, Discretisation, WithFieldsError};
use crate::support::parallel::*;
use between::{Frames, PairSources};
use boundary::{EssentialConditions, FacetSources, leave_free};
use cells::{CellContributions, PointReduction};
use fem_dsl::measures::estimator_form;
use fem_dsl::point::{Part, PointForm};
use interface::{InterfaceFacet, InterfaceFacets, RemoteSide, RemoteSides, SideSizes};
use kernels_gen::element::ElementError;
use kernels_gen::plan::{Elements, PlanError, Task};
use points::PointOperations;
use required::{RequiredValues, Trace, TraceKind};
use scale::ResidualWeights;
use std::sync::Arc;
use surface::{FacetGeometry, FacetMetric};

/// Number of quadrature points up to which kernels are interpreted: compiling takes longer.
const FEW: usize = 100_000;

/// Bytes of kernel output processed at once: cache-sized on the host; larger on a device, as each download
/// synchronises.
const PIECE: [usize; 2] = [4 << 20, 64 << 20];

/// Reason why there is no estimate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// Elements or kernels that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An element that does not exist.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// Kernels that cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Input tables that cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Kernels that cannot be run.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// Fields or facets that cannot be numbered.
    #[error(transparent)]
    Fields(#[from] WithFieldsError),
    /// A device failure.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A state of the wrong length.
    #[error("a state of {found} unknowns does not fit a discretisation of {expected}")]
    Length {
        /// Actual number of degrees of freedom.
        found: usize,
        /// Expected number.
        expected: usize,
    },
    /// An indicator that is not finite.
    #[error(
        "the estimate of `{field}` is {value} in cell {cell}, at ({}, {}, {})\n\
         help: f0, f1 or their derivatives are not finite there for this state",
        .centre[0], .centre[1], .centre[2]
    )]
    NotFinite {
        /// The field.
        field: String,
        /// The cell.
        cell: usize,
        /// Its centre.
        centre: [f64; 3],
        /// η_K² of the field.
        value: f64,
    },
}

/// Error estimate of a solution. If squares of residuals would underflow or overflow, all numbers belong to residuals
/// scaled by a power of two.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorEstimate {
    /// η_K² summed over the fields, for the cells of the mesh or of this subdomain.
    pub squares: Vec<f64>,
    /// η², summed over all processes like the following numbers.
    pub total: f64,
    /// ‖u‖², the reference of η².
    pub energy: f64,
    /// Contributions of the fields.
    pub fields: Vec<FieldEstimate>,
}

/// Contribution of a field to an estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldEstimate {
    /// Its name.
    pub name: String,
    /// Its part of η² from cell residuals.
    pub residual: f64,
    /// Its part of η² from facet jumps.
    pub jumps: f64,
    /// Its part of ‖u‖².
    pub energy: f64,
}

impl ErrorEstimate {
    /// Returns η / ‖u‖; `None` without an energy for comparison.
    pub fn relative(&self) -> Option<f64> {
        let comparable = self.energy > 0.0 && self.energy.is_finite();
        comparable.then(|| (self.total / self.energy).sqrt())
    }
}

/// Error estimator of a form on a mesh.
pub struct Estimator {
    on: Arc<Discretisation>,
    elements: Elements,
    wanted: RequiredValues,
    operator: Operator,
    views: FacetViews,
    faces: FacetConnectivity,
    across: InterfaceFacets,
    points: PointOperations,
}

impl Estimator {
    /// Compiles the estimator's kernels, for a device if one is given; `params` are the time and the form's parameters.
    /// They compute in double precision, since the error of a single-precision solution is only visible in it.
    /// Collective on a subdomain, like all its methods.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, tables that cannot be filled.
    pub fn new(
        form: &PointForm,
        elements: &Elements,
        on: &Arc<Discretisation>,
        params: &[f64],
        target: &Target,
        device: Option<&Arc<dyn Device>>,
    ) -> Result<Self, EstimateError> {
        let read = estimator_form(form);
        // Without a flux the residual vanishes at the points of the solve's rule: use a finer one, unless data exists
        // at those points only.
        let rows = || form.integrals.iter().flat_map(|integral| &integral.residual);
        let has_flux = rows().any(|(slot, _)| slot.part != Part::Value);
        let at_points = on.aux.iter().any(|aux| matches!(aux, AuxValues::Points(_)));
        let rule = if has_flux || at_points { elements.rule } else { fine_rule(on) };
        let elements = Elements::new(&read.form, elements.cell, elements.degree, rule)?;
        let wanted = RequiredValues::new(form, &read, &elements);
        let has_pairs = wanted.of_pairs.iter().any(Option::is_some);
        let all = match has_pairs {
            // The numbers of traces count the additional field.
            true => {
                let further = elements.spaces().into_iter().skip(on.fields.len());
                let further: Vec<_> = further.map(|(element, _)| (element, 1)).collect();
                Arc::new(on.with_fields(&read.form, &further)?)
            }
            false => Arc::clone(on),
        };
        let operator = operator(&read.form, &elements, &all, params, target, device)?;
        let views = FacetViews::new(on.mesh.cell());
        let points = PointOperations::new(rule, &views);
        let mut faces = FacetConnectivity::new(&on.mesh, &views);
        faces.rotate_boundary(views);
        let trace = wanted.traced * points.on_facet;
        let sizes = SideSizes { scales: wanted.scales, points: points.on_facet, trace, has_pairs };
        let across = InterfaceFacets::new(&on.mesh, &faces, sizes);
        let on = Arc::clone(on);
        Ok(Self { on, elements, wanted, operator, views, faces, across, points })
    }

    /// Sets the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), EstimateError> {
        Ok(self.operator.set_params(params)?)
    }

    /// Estimates the error of a state, given as the degrees of freedom of all fields.
    ///
    /// # Errors
    ///
    /// A state of the wrong length, indicators that are not finite, a device failure. An indicator that is not finite
    /// is an error of its own process; the totals of the others are then not finite either.
    pub fn estimate(&self, u: &[f64]) -> Result<ErrorEstimate, EstimateError> {
        let expected = self.on.n_dofs();
        if u.len() != expected {
            return Err(EstimateError::Length { found: u.len(), expected });
        }
        let mut found = self.scaled(u, 1.0);
        let sum = match &found {
            Ok(estimate) => estimate.total,
            Err(EstimateError::NotFinite { value, .. }) => *value,
            Err(_) => 1.0,
        };
        for &power in powers(sum) {
            found = self.scaled(u, 2f64.powi(power));
            if found.as_ref().is_ok_and(|estimate| powers(estimate.total).is_empty()) {
                break;
            }
        }
        found
    }

    /// Estimates the error with residuals scaled by `factor`.
    fn scaled(&self, u: &[f64], factor: f64) -> Result<ErrorEstimate, EstimateError> {
        let mut state = self.operator.vector();
        let further = vec![0.0; state.len() - u.len()];
        state.set(&[u, &further].concat());
        let rule = self.elements.rule;
        let reduction = PointReduction::new(&self.wanted, &self.points, &self.faces, rule);
        let mut cells = reduction.begin(self.on.mesh.n_cells());
        let asked = &self.wanted.asked;
        let piece = PIECE[usize::from(self.operator.is_on_device())];
        let most = piece / (8 * asked.numbers * self.points.count).max(1);
        self.operator.fluxes(&state, asked, most.max(64), |range, numbers| {
            if factor == 1.0 {
                reduction.take(range, numbers, &mut cells);
            } else {
                let mut scaled = numbers.to_vec();
                self.wanted.scale(factor, self.points.count, &mut scaled);
                reduction.take(range, &scaled, &mut cells);
            }
            Ok::<_, EstimateError>(())
        })?;
        let surface = FacetGeometry::new(&self.on.mesh, rule, &self.views)?;
        let mut of_facets = Vec::new();
        let is_of_pairs = |integral: &usize| self.on.pairs_of(*integral).is_some();
        for integral in (0..self.on.facets.len()).filter(|integral| !is_of_pairs(integral)) {
            let mut numbers = self.operator.fluxes_on_facets(&state, asked, integral)?;
            if !numbers.is_empty() {
                self.wanted.scale(factor, self.points.on_facet, &mut numbers);
                of_facets.push((integral, numbers));
            }
        }
        let sources = FacetSources::new(&self.on, &self.wanted, &surface.weights, of_facets);
        let frames = Frames::new(&self.faces, self.views, rule, self.on.mesh.n_cells());
        let (wanted, weights) = ((&self.wanted, factor), &surface.weights[..]);
        let pairs = PairSources::new(&self.operator, &self.on, &state, wanted, (&frames, weights))?;
        let scales = ResidualWeights::new(&self.wanted, &cells, &sources, &pairs, &self.on.mesh);
        self.gather((&cells, &pairs), &surface, &sources, &scales)
    }

    /// Sums the contributions of cells and facets.
    fn gather(
        &self,
        (cells, pairs): (&CellContributions, &PairSources),
        surface: &FacetGeometry<'_>,
        sources: &FacetSources<'_>,
        scales: &ResidualWeights,
    ) -> Result<ErrorEstimate, EstimateError> {
        let n = self.on.mesh.n_cells();
        let beyond = self.across.beyond(&self.faces, (cells, pairs), surface, scales);
        let (mut squares, mut sums) = (vec![0.0; n], Vec::new());
        let mut error = None;
        for (field, of) in self.wanted.fields.iter().enumerate() {
            let inside = |cell: usize| {
                let weight = scale::residual(of, self.on.mesh.diameter(cell), self.on.mesh.dim());
                let share = cells.share(cell, field);
                let own = scales.of(cell, field) * (weight * share.residual);
                let mass = of.vector.as_ref().and_then(|vector| vector.mass.as_ref());
                own + mass.map_or(0.0, |mass| scales.of(cell, mass.scale) * weight * share.derived)
            };
            let inside: Vec<f64> = (0..n).into_par_iter().with_min_len(1024).map(inside).listed();
            let jumps = self.jumps(field, (cells, pairs, &beyond), surface, sources, scales)?;
            for (cell, (inside, jump)) in inside.iter().zip(&jumps).enumerate() {
                let value = inside + jump;
                if !value.is_finite() && error.is_none() {
                    let (field, centre) = (of.name.clone(), self.on.mesh.centre(cell));
                    // On a subdomain, the cell's number in the whole mesh if it is known.
                    let leaves = self.on.mesh.cut().and_then(|_| self.on.mesh.leaves());
                    let cell = leaves.map_or(cell, |leaves| leaves[cell] as usize);
                    error = Some(EstimateError::NotFinite { field, cell, centre, value });
                }
                squares[cell] += value;
            }
            sums.extend([sum(&inside), sum(&jumps)]);
        }
        sums.push(sum(&squares));
        // A failure on one process makes all totals NaN.
        self.on.mesh.sum_in_all(&mut sums);
        if let Some(error) = error {
            return Err(error);
        }
        let own = self.wanted.fields.iter().zip(sums.chunks_exact(2)).zip(&scales.energies);
        let of = |((of, sums), &energy): ((&required::FieldValues, &[f64]), &f64)| FieldEstimate {
            name: of.name.clone(),
            residual: sums[0],
            jumps: sums[1],
            energy,
        };
        let fields: Vec<FieldEstimate> = own.map(of).collect();
        let energy = fields.iter().map(|field| field.energy).sum();
        Ok(ErrorEstimate { total: sums.last().copied().unwrap_or(0.0), squares, energy, fields })
    }

    /// Returns the facet contributions of each cell to a field's part of η_K².
    fn jumps(
        &self,
        field: usize,
        values: (&CellContributions, &PairSources, &RemoteSides<'_>),
        surface: &FacetGeometry<'_>,
        sources: &FacetSources<'_>,
        scales: &ResidualWeights,
    ) -> Result<Vec<f64>, EstimateError> {
        let mut all = vec![0.0; self.on.mesh.n_cells()];
        let traces = &self.wanted.fields[field].traces;
        if traces.is_empty() {
            return Ok(all);
        }
        let conditions = EssentialConditions::new(&self.on, &self.on.fields[field])?;
        for trace in traces {
            let (cells, pairs, beyond) = values;
            self.jumps_inside((field, trace), (cells, pairs), surface, scales, &mut all);
            let on_met = |met: &InterfaceFacet| {
                let data = (cells, pairs);
                self.across((field, trace), met, data, surface, scales, beyond.of(met))
            };
            let met: Vec<f64> = self.across.met.par_iter().with_min_len(256).map(on_met).listed();
            for (met, value) in self.across.met.iter().zip(&met) {
                all[met.own.cell as usize] += value;
            }
            let on_boundary = |&facet: &Facet| {
                let of = (surface, sources);
                let square = self.beyond((field, trace), facet, cells, of, &conditions);
                scales.of(facet.cell as usize, trace.scale) * square
            };
            let boundary = self.faces.boundary.par_iter().with_min_len(256);
            let boundary: Vec<f64> = boundary.map(on_boundary).listed();
            for (facet, value) in self.faces.boundary.iter().zip(&boundary) {
                all[facet.cell as usize] += value;
            }
        }
        Ok(all)
    }

    /// Adds the contributions of a trace on facets between two cells of this process.
    fn jumps_inside(
        &self,
        (field, trace): (usize, &Trace),
        (cells, pairs): (&CellContributions, &PairSources),
        surface: &FacetGeometry<'_>,
        scales: &ResidualWeights,
        all: &mut [f64],
    ) {
        let on_pair = |pair: &FacetPair| {
            let [first, second] =
                pair.sides.map(|side| (side.cell as usize, usize::from(side.local)));
            let traces = [first, second].map(|(cell, local)| cells.trace(cell, local));
            let residuals = self.residuals(trace, traces, pair.child, pairs.of(pair.sides[0]));
            let square = |residual: &[f64]| {
                self.square((field, trace), first, self.view(first), surface, residual)
            };
            let both = [first, second].map(|(cell, _)| scales.of(cell, trace.scale));
            self.shares(field, both, &residuals, square)
        };
        let pairs_of = self.faces.pairs.par_iter().with_min_len(256);
        let values: Vec<[f64; 2]> = pairs_of.map(on_pair).listed();
        for (pair, values) in self.faces.pairs.iter().zip(&values) {
            for (side, value) in pair.sides.iter().zip(values) {
                all[side.cell as usize] += value;
            }
        }
    }

    /// Returns the components of a trace in those of a facet.
    fn own<'n>(&self, trace: &Trace, numbers: &'n [f64]) -> &'n [f64] {
        let points = self.points.on_facet;
        &numbers[trace.first * points..][..trace.count * points]
    }

    /// Returns the residuals of two cells on the facet of the first, which may be a child of the second one's, from their
    /// outward fluxes and the rows of interior blocks.
    fn residuals(
        &self,
        trace: &Trace,
        [first, second]: [&[f64]; 2],
        child: Option<u8>,
        rows: Option<[&[f64]; 2]>,
    ) -> [Vec<f64>; 2] {
        let (points, dim) = (self.points.on_facet, self.points.dim());
        let mut residuals = [first, second].map(|numbers| self.own(trace, numbers).to_vec());
        if let Some(child) = child {
            // A parameter of the child's facet is half of the parent's.
            let share = match trace.kind {
                TraceKind::Value => 0.5f64.powi(dim as i32 - 1),
                TraceKind::Tangential => 0.5f64.powi(dim as i32 - 2),
                TraceKind::Flux => 1.0,
            };
            for own in residuals[1].chunks_exact_mut(points) {
                let mut part = own.to_vec();
                self.points.of_child(child, &mut part);
                own.iter_mut().zip(&part).for_each(|(own, part)| *own = share * part);
            }
        }
        for (residual, rows) in residuals.iter_mut().zip(rows.into_iter().flatten()) {
            let rows = self.own(trace, rows);
            residual.iter_mut().zip(rows).for_each(|(residual, row)| *residual += row);
        }
        residuals
    }

    /// Returns the shares of two cells in the facet term, from b h_F ∫ r² ds of a residual and the cells' scales.
    fn shares(
        &self,
        field: usize,
        [a, b]: [f64; 2],
        [first, second]: &[Vec<f64>; 2],
        square: impl Fn(&[f64]) -> f64,
    ) -> [f64; 2] {
        if self.wanted.fields[field].continuous {
            let sum: Vec<f64> = first.iter().zip(second).map(|(a, b)| a + b).collect();
            let half = 0.5 * a.min(b) * square(&sum);
            return [half, half];
        }
        // Discontinuous: each cell has its own test functions.
        [a * scale::ALONE * square(first), b * scale::ALONE * square(second)]
    }

    /// Computes the share of a cell of this subdomain in the term of a facet to one of another. The facet is that of the
    /// child, if there is one.
    fn across(
        &self,
        (field, trace): (usize, &Trace),
        met: &InterfaceFacet,
        (cells, pairs): (&CellContributions, &PairSources),
        surface: &FacetGeometry<'_>,
        scales: &ResidualWeights,
        other: RemoteSide<'_>,
    ) -> f64 {
        let place = (met.own.cell as usize, usize::from(met.own.local));
        let own = cells.trace(place.0, place.1);
        let both = [scales.of(place.0, trace.scale), other.scales[trace.scale]];
        // One of the processes has the rows.
        let of_pair = pairs.of(met.own);
        let rows = of_pair.or_else(|| other.rows.map(|[own, opposite]| [opposite, own]));
        if met.is_parent {
            let rows = rows.map(|[own, opposite]| [opposite, own]);
            let residuals = self.residuals(trace, [other.trace, own], met.child, rows);
            let square = |residual: &[f64]| {
                let metric = |q| other.metric(q);
                self.square_of((field, trace), surface, other.diameter, residual, metric)
            };
            return self.shares(field, [both[1], both[0]], &residuals, square)[1];
        }
        let residuals = self.residuals(trace, [own, other.trace], met.child, rows);
        let square = |residual: &[f64]| {
            self.square((field, trace), place, self.view(place), surface, residual)
        };
        self.shares(field, both, &residuals, square)[0]
    }

    /// Computes the facet term on the boundary, with essential conditions and facet integrals.
    fn beyond(
        &self,
        (field, trace): (usize, &Trace),
        facet: Facet,
        cells: &CellContributions,
        (surface, sources): (&FacetGeometry<'_>, &FacetSources<'_>),
        conditions: &EssentialConditions<'_>,
    ) -> f64 {
        let held = conditions.on(facet);
        if held.components.iter().all(|held| *held) {
            return 0.0;
        }
        let place = (facet.cell as usize, usize::from(facet.local));
        let mut residual = self.own(trace, cells.trace(place.0, place.1)).to_vec();
        let (of, view) = (&self.wanted.fields[field], self.view(place));
        if let Some(vector) = &of.vector {
            let from = (sources, &self.points);
            vectors::add_sources((of, vector), trace, facet, from, &mut residual);
            let square = self.square((field, trace), place, view, surface, &residual);
            return scale::ALONE * square;
        }
        let own = residual.chunks_exact_mut(self.points.on_facet);
        for (component, tested) in own.zip(&of.components) {
            tested.value.iter().for_each(|&number| sources.add(facet, number, component));
        }
        let area = |q: usize| surface.area(place.0, place.1, view, q);
        leave_free(&held, &self.points, &mut residual, area);
        scale::ALONE * self.square((field, trace), place, view, surface, &residual)
    }

    fn view(&self, (cell, local): (usize, usize)) -> u8 {
        self.faces.view(cell, local)
    }

    /// Computes b h_F ∫ r² ds of a residual, `[component][point]`, in the view of a cell's facet.
    fn square(
        &self,
        of: (usize, &Trace),
        (cell, local): (usize, usize),
        view: u8,
        surface: &FacetGeometry<'_>,
        residual: &[f64],
    ) -> f64 {
        let metric = |q: usize| surface.metric(cell, local, view, q);
        self.square_of(of, surface, surface.diameter(cell, local), residual, metric)
    }

    /// Computes b h_F ∫ r² ds on a facet of a diameter, with the metric at a point.
    fn square_of(
        &self,
        (field, trace): (usize, &Trace),
        surface: &FacetGeometry<'_>,
        diameter: f64,
        residual: &[f64],
        metric: impl Fn(usize) -> FacetMetric,
    ) -> f64 {
        let points = self.points.on_facet;
        let sum: f64 = (0..points)
            .map(|q| {
                let values = || residual.iter().skip(q).step_by(points).copied();
                if values().all(|r| r == 0.0) {
                    return 0.0;
                }
                surface.weights[q] * metric(q).square(trace.kind, values())
            })
            .sum();
        scale::jump(&self.wanted.fields[field], diameter, self.on.mesh.dim()) * sum
    }
}

/// Builds the operator of the estimator's kernels.
fn operator(
    form: &PointForm,
    elements: &Elements,
    on: &Arc<Discretisation>,
    params: &[f64],
    target: &Target,
    device: Option<&Arc<dyn Device>>,
) -> Result<Operator, EstimateError> {
    let (precision, facts) = (Precision::F64, facts(on));
    // Errors below single precision need double precision.
    let device = device.filter(|_| target.precision == Precision::F64);
    let tasks = [Task::Flux];
    if let Some(device) = device {
        let (device, wishes) = (Arc::clone(device), &target.wishes);
        let compiled =
            compile_for_device(form, elements, &facts, &tasks, device, precision, wishes)?;
        return Ok(Operator::on_device(Arc::clone(on), Arc::new(compiled), params, false)?);
    }
    let few = on.mesh.n_cells() * elements.rule.count() < FEW;
    let execution = match target.execution {
        Execution::Automatic if few => Execution::Interpreted,
        other => other,
    };
    let target = Target { precision, execution, linked: &[], ..*target };
    let compiled = compile(form, elements, &facts, &tasks, &target)?;
    let (module, kernels) = (compiled.module, &compiled.kernels);
    Ok(Operator::on_host(Arc::clone(on), module, kernels, precision, params, false)?)
}

/// Sums pairwise: rounding grows with the logarithm of the count, independently of threads.
fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() <= 64 {
        return numbers.iter().sum();
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    sum(left) + sum(right)
}
