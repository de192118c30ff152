//! Evaluates the [`Reports`] of a problem at its solution.
//!
//! Integrals are kernels (`integrals`). Reactions are the residual of the problem's own form without its conditions.
//! With φ_i the basis functions of the nodes on part of the boundary,
//!
//! ```text
//! Σ_i R_i(u) = ∫ Σ_i φ_i f0 + ∇(Σ_i φ_i) : f1 dx,        Σ_i φ_i = 1 there,
//! ```
//!
//! is the reaction there: the force of a support, the flux f1 n through an inlet. It balances the sources to the
//! accuracy of the solve. An integral of f1 n does so only up to the discretisation error.

use super::RunError;
use super::bounds;
use super::evaluation_state::EvaluationState;
use super::integrals::Integrals;
use super::kernels::{SharedResources, residual_of};
use super::platform::Platform;
use super::prescribed::nodes_under;
use crate::algebra::vector::root_of_squares;
use crate::kernels::compile::{Execution, Target};
use crate::mesh::locate::{LocatedPoint, Locator};
use crate::operator::functional::{
    Extrema, QuadratureValues, extrema, living_cells, rule_of_data, values_at, values_at_quadrature,
};
use crate::operator::{CellIntegrals, Operator, TableCache};
use crate::processes::Reduction;
use crate::solve::NonlinearSystem;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use fem_dsl::eval::eval;
use fem_dsl::point::{Input, NodeId, PointForm, Region, Shape};
use fem_dsl::problem::{
    Expression, Functional, FunctionalKind, Report, ReportFormula, Reports, Support,
};
use kernels_gen::plan::Elements;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of quadrature points up to which kernels are interpreted: compiling takes longer.
const FEW: usize = 100_000;

/// Distance from the mesh beyond which a note is printed for a point, relative to the mesh size.
const BESIDE: f64 = 1e-9;

/// A report of a solution.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportResult {
    /// Name of the report.
    pub name: String,
    /// Its value.
    pub value: ReportValue,
}

/// Value of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportValue {
    /// A number, vector or matrix; components row-major.
    Value(Shape, Vec<f64>),
    /// Values of this shape along a line: coordinates with components.
    Line(Shape, Vec<([f64; 3], Vec<f64>)>),
}

impl ReportValue {
    /// Returns the number if it is scalar; `None` for a vector, a matrix or a line.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Value(Shape::Scalar, values) => values.first().copied(),
            Self::Value(..) | Self::Line(..) => None,
        }
    }
}

/// Tables and kernels of reports, kept from one evaluation to the next on the same discretisation.
#[derive(Default)]
pub struct ReportCache {
    /// Operator tables ([`Operator::table_cache`]).
    pub tables: TableCache,
    kept: Option<KeptKernels>,
}

/// Kernels of the integrals and of the residual without conditions, on a discretisation.
struct KeptKernels {
    on: Arc<Discretisation>,
    integrals: Option<CellIntegrals>,
    residual: Option<Operator>,
}

impl ReportCache {
    /// A cache that begins with tables of an operator.
    pub fn new(tables: TableCache) -> Self {
        Self { tables, kept: None }
    }

    /// Returns the kernels that were kept for a discretisation.
    fn of(&mut self, on: &Arc<Discretisation>) -> &mut KeptKernels {
        if !self.kept.as_ref().is_some_and(|kept| Arc::ptr_eq(&kept.on, on)) {
            self.kept = None;
        }
        let fresh = || KeptKernels { on: Arc::clone(on), integrals: None, residual: None };
        self.kept.get_or_insert_with(fresh)
    }
}

/// Evaluates the reports at a state; returns results and notes. A point outside the mesh has the value NaN. Every value
/// that is not finite is reported as a warning. A `cache` belongs to one set of reports, and may be empty.
///
/// # Errors
///
/// Kernels that cannot be compiled, tags that the mesh lacks.
pub fn report(
    reports: &Reports,
    of: EvaluationState<'_>,
    platform: &Platform,
    cache: &mut ReportCache,
) -> Result<(Vec<ReportResult>, Vec<String>), RunError> {
    if reports.items.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let integrals = reports.integrals.as_ref().map(|form| resolved(form, of.on)).transpose()?;
    let mut reporter = Reporter {
        of,
        platform,
        cache,
        integrals: Vec::new(),
        pointwise: reports.pointwise.as_ref().map(|form| PointwiseExpressions::new(form, of)),
        extrema: Vec::new(),
        locator: None,
        residual: None,
        gaps: 0,
        notes: Vec::new(),
    };
    if let Some(form) = &integrals {
        reporter.integrals = reporter.integrate(form, &norms(reports))?;
    }
    if reports.items.iter().any(asks_for_extrema) {
        reporter.search()?;
    }
    let outcome = |report: &Report| {
        let gaps = reporter.gaps;
        let value = reporter.figure(report)?;
        if reporter.gaps == gaps {
            warn_of_infinity(&report.name, &value);
        }
        Ok(ReportResult { name: report.name.clone(), value })
    };
    let outcomes: Vec<ReportResult> =
        reports.items.iter().map(outcome).collect::<Result<_, RunError>>()?;
    Ok((outcomes, reporter.notes))
}

/// Evaluates a pointwise expression, f0 of a form's additional field with some components, at the points of the form's
/// quadrature.
///
/// # Errors
///
/// An element that does not exist.
pub fn at_quadrature_points(
    form: &PointForm,
    components: usize,
    of: EvaluationState<'_>,
) -> Result<QuadratureValues, RunError> {
    let pointwise = PointwiseExpressions::new(form, of);
    let Some(integral) = form.integrals.first() else { return Ok(QuadratureValues::default()) };
    let pick = |roots: &[f64]| pointwise.pick(roots, 0, components, |value| *value);
    let (rule, of_form) = (of.elements.rule, (integral, &pointwise.roots[..]));
    Ok(values_at_quadrature(of.on, rule, of_form, of.u, of.parameters, pick)?)
}

/// Warns about a report that is not finite.
fn warn_of_infinity(name: &str, value: &ReportValue) {
    let found = match value {
        ReportValue::Value(_, values) => values.iter().find(|value| !value.is_finite()),
        ReportValue::Line(_, points) => {
            points.iter().flat_map(|(_, values)| values).find(|value| !value.is_finite())
        }
    };
    if let Some(value) = found {
        tracing::warn!(
            "the report `{name}` is {value}\n\
             help: look for a division by 0, or a root or logarithm of what is below 0"
        );
    }
}

/// Returns the integrals that are squared norms.
fn norms(reports: &Reports) -> Vec<usize> {
    let measures = reports.items.iter().flat_map(|report| match &report.value {
        ReportFormula::Value { of, .. } => of.as_slice(),
        ReportFormula::Line { .. } => &[],
    });
    let norm = |measure: &Functional| match measure.kind {
        FunctionalKind::Norm { first, .. } => Some(first),
        _ => None,
    };
    measures.filter_map(norm).collect()
}

fn asks_for_extrema(report: &Report) -> bool {
    let ReportFormula::Value { of, .. } = &report.value else { return false };
    let extremum = |measure: &Functional| {
        matches!(measure.kind, FunctionalKind::Minimum { .. } | FunctionalKind::Maximum { .. })
    };
    of.iter().any(extremum)
}

/// Expressions evaluated at points: f0 of a form's additional fields.
pub(super) struct PointwiseExpressions<'a> {
    form: &'a PointForm,
    pub(super) roots: Vec<NodeId>,
    /// Index of each component among the roots; a missing one is 0.
    places: BTreeMap<usize, usize>,
}

impl<'a> PointwiseExpressions<'a> {
    pub(super) fn new(form: &'a PointForm, of: EvaluationState<'_>) -> Self {
        let own = of.form.fields.len();
        let (mut roots, mut places) = (Vec::new(), BTreeMap::new());
        for (slot, node) in form.integrals.iter().flat_map(|integral| &integral.residual) {
            let number = form.row(slot.field, slot.component) - form.row(own, 0);
            places.insert(number, roots.len());
            roots.push(*node);
        }
        Self { form, roots, places }
    }

    /// Returns whether each cell has values of some components; `None` if all cells have.
    pub(super) fn living_cells(
        &self,
        on: &Discretisation,
        first: usize,
        count: usize,
    ) -> Option<Vec<bool>> {
        let places = (first..first + count).filter_map(|at| self.places.get(&at));
        let roots: Vec<NodeId> = places.map(|&at| self.roots[at]).collect();
        living_cells(on, (self.form.integrals.first()?, &roots))
    }

    /// Extracts components from root values.
    pub(super) fn pick<T>(
        &self,
        of: &[T],
        first: usize,
        count: usize,
        value: impl Fn(&T) -> f64,
    ) -> Vec<f64> {
        let of_component = |at: usize| self.places.get(&at).map_or(0.0, |&at| value(&of[at]));
        (first..first + count).map(of_component).collect()
    }
}

struct Reporter<'a> {
    of: EvaluationState<'a>,
    platform: &'a Platform,
    cache: &'a mut ReportCache,
    /// Integrated components.
    integrals: Vec<f64>,
    pointwise: Option<PointwiseExpressions<'a>>,
    /// Extrema of the roots, if any are requested.
    extrema: Vec<Extrema>,
    locator: Option<Locator<'a>>,
    /// R(u) without any condition.
    residual: Option<Vec<f64>>,
    /// Number of points outside the mesh so far.
    gaps: usize,
    notes: Vec<String>,
}

impl<'a> Reporter<'a> {
    /// Integrates a form's additional fields, concatenated; takes the square root of the integrals `norms`.
    fn integrate(&mut self, form: &PointForm, norms: &[usize]) -> Result<Vec<f64>, RunError> {
        let EvaluationState { on, elements, .. } = self.of;
        let rule = rule_of_data(on, elements.rule);
        let own = Elements::new(form, elements.cell, elements.degree, rule)?;
        if form.integrals.is_empty() {
            // All integrands are 0.
            let further = own.spaces().split_off(on.fields.len());
            return Ok(vec![0.0; further.iter().map(|(_, components)| components).sum()]);
        }
        let platform = &self.platform_of(&own);
        // The form of norms has an additional parameter, which scales the squared quantity.
        let scalable = form.params.len() > self.of.form.params.len();
        let params = |scale: f64| -> Vec<f64> {
            let more = scalable.then_some(scale);
            self.of.parameters.values.iter().copied().chain(more).collect()
        };
        let mut integrals = match self.cache.of(on).integrals.take() {
            Some(kernels) => {
                let mut integrals = Integrals::of(kernels, self.of);
                integrals.set_params(&params(1.0))?;
                integrals
            }
            None => {
                let beside = SharedResources { platform, table_cache: &mut self.cache.tables };
                Integrals::new(form, &own, self.of, &params(1.0), beside)?
            }
        };
        let mut found = integrals.evaluate()?;
        for &at in norms {
            let sum = found[at];
            found[at] = root_of_squares(sum, |factor| {
                integrals.set_params(&params(factor))?;
                Ok::<_, RunError>(integrals.evaluate()?[at])
            })?;
        }
        self.cache.of(on).integrals = Some(integrals.kernels);
        Ok(found)
    }

    /// Returns the platform of kernels; few points are interpreted.
    fn platform_of(&self, elements: &Elements) -> Platform {
        let points = self.of.on.mesh.n_cells() * elements.rule.count();
        let target = self.platform.target;
        match target.execution {
            Execution::Automatic if points < FEW => {
                self.platform.with_target(Target { execution: Execution::Interpreted, ..target })
            }
            _ => self.platform.clone(),
        }
    }

    /// Computes R(u) without any condition.
    fn residual(&mut self) -> Result<Vec<f64>, RunError> {
        let EvaluationState { form, on, elements, .. } = self.of;
        let (params, platform) = (&self.of.parameters.values, &self.platform_of(elements));
        let operator = match self.cache.of(on).residual.take() {
            Some(mut operator) => {
                operator.set_params(params)?;
                operator
            }
            None => {
                let beside = SharedResources { platform, table_cache: &mut self.cache.tables };
                let free = on.with_fields(form, &[])?;
                let operator = residual_of(form, elements, free, params, beside)?;
                operator.of_first(on.fields.len())
            }
        };
        let (state, mut r) = (self.of.vector_for(&operator), operator.zeros());
        operator.residual(&state, &mut r)?;
        operator.finish()?;
        self.cache.of(on).residual = Some(operator);
        Ok(r.to_vec())
    }

    /// Searches for extrema over the mesh.
    fn search(&mut self) -> Result<(), RunError> {
        let (Some(pointwise), of) = (&self.pointwise, self.of) else { return Ok(()) };
        if let Some(integral) = pointwise.form.integrals.first() {
            self.extrema = extrema(of.on, (integral, &pointwise.roots), of.u, of.parameters)?;
            let mut least: Vec<f64> = self.extrema.iter().map(|found| found.least.0).collect();
            let mut most: Vec<f64> = self.extrema.iter().map(|found| found.most.0).collect();
            of.on.mesh.reduce_in_all(Reduction::Least, &mut least);
            of.on.mesh.reduce_in_all(Reduction::Largest, &mut most);
            for (found, (least, most)) in self.extrema.iter_mut().zip(least.into_iter().zip(most)) {
                (found.least.0, found.most.0) = (least, most);
            }
        }
        Ok(())
    }

    fn figure(&mut self, report: &Report) -> Result<ReportValue, RunError> {
        match &report.value {
            ReportFormula::Value { value, of } => {
                let mut measured = Vec::new();
                for measure in of {
                    measured.push(self.measure(&report.name, measure)?);
                }
                Ok(ReportValue::Value(value.shape, self.arithmetic(value, &measured)))
            }
            ReportFormula::Line { shape, first, ends: [from, to], points } => {
                let last = (points - 1).max(1) as f64;
                let at = |i: usize| {
                    let s = i as f64 / last;
                    let mut x = *from;
                    (0..3).for_each(|axis| x[axis] = (1.0 - s) * from[axis] + s * to[axis]);
                    x
                };
                let places: Vec<[f64; 3]> = (0..*points).map(at).collect();
                let values = self.values(&report.name, &places, *first, shape.components())?;
                Ok(ReportValue::Line(*shape, places.into_iter().zip(values).collect()))
            }
        }
    }

    /// Evaluates an expression whose parameters after the form's own ones are measured values.
    fn arithmetic(&self, value: &Expression, measured: &[Vec<f64>]) -> Vec<f64> {
        let own = self.of.form.params.len();
        let all = eval(&value.graph, |input| match input {
            Input::Param(at, component) if at >= own => measured[at - own][component],
            input => self.of.parameters.constant(input).unwrap_or(f64::NAN),
        });
        value.value.iter().map(|&node| all[node]).collect()
    }

    fn measure(&mut self, report: &str, measure: &Functional) -> Result<Vec<f64>, RunError> {
        let count = measure.shape.components();
        let extremum = |own: &Self, first: usize, value: fn(&Extrema) -> f64| {
            own.pointwise
                .as_ref()
                .map_or_else(Vec::new, |of| of.pick(&own.extrema, first, 1, value))
        };
        Ok(match &measure.kind {
            FunctionalKind::Integral { first } => self.integrals[*first..first + count].to_vec(),
            FunctionalKind::Norm { first, .. } => vec![self.integrals[*first]],
            FunctionalKind::Minimum { first } => extremum(self, *first, |found| found.least.0),
            FunctionalKind::Maximum { first } => extremum(self, *first, |found| found.most.0),
            FunctionalKind::Value { first, at } => {
                let mut values = self.values(report, &[*at], *first, count)?;
                values.pop().unwrap_or_default()
            }
            FunctionalKind::Reaction { field, tags } => {
                let rows = self.rows_of_conditions()?;
                let nodes = match tags.as_deref() {
                    None => self.held(*field)?,
                    some => self.nodes_of(*field, some)?,
                };
                self.sum_of_rows(&rows, *field, nodes)?
            }
            FunctionalKind::Multiplier { field, tags } => {
                let rows = bounds::multiplier(self.of, self.rows()?)?;
                let nodes = self.nodes_of(*field, tags.as_deref())?;
                self.sum_of_rows(&rows, *field, nodes)?
            }
        })
    }

    /// Evaluates components of pointwise expressions at some points.
    fn values(
        &mut self,
        report: &str,
        places: &[[f64; 3]],
        first: usize,
        count: usize,
    ) -> Result<Vec<Vec<f64>>, RunError> {
        let living =
            self.pointwise.as_ref().and_then(|own| own.living_cells(self.of.on, first, count));
        let (located, gaps) = self.locate(report, places, living.as_deref())?;
        let (Some(pointwise), of) = (&self.pointwise, self.of) else { return Ok(Vec::new()) };
        let Some(integral) = pointwise.form.integrals.first() else {
            return Ok(gaps
                .iter()
                .map(|gap| vec![if *gap { f64::NAN } else { 0.0 }; count])
                .collect());
        };
        let roots = (integral, &pointwise.roots[..]);
        let own: Vec<LocatedPoint> = located.iter().flatten().copied().collect();
        let values = values_at(of.on, roots, of.u, of.parameters, &own)?;
        let mut values = values.into_iter();
        // Exactly one process evaluates each point.
        let mut all = vec![0.0; places.len() * count];
        for (row, _) in all.chunks_mut(count).zip(&located).filter(|(_, own)| own.is_some()) {
            let own = values.next().unwrap_or_default();
            row.copy_from_slice(&pointwise.pick(&own, first, count, |value| *value));
        }
        of.on.mesh.sum_in_all(&mut all);
        all.chunks_mut(count)
            .zip(gaps)
            .filter(|(_, gap)| *gap)
            .for_each(|(row, _)| row.fill(f64::NAN));
        Ok(all.chunks(count).map(<[f64]>::to_vec).collect())
    }

    /// Locates points, among the `living` cells: each on the nearest process; also returns the mask of points outside.
    fn locate(
        &mut self,
        report: &str,
        places: &[[f64; 3]],
        living: Option<&[bool]>,
    ) -> Result<(Vec<Option<LocatedPoint>>, Vec<bool>), RunError> {
        let mesh = &self.of.on.mesh;
        if self.locator.is_none() {
            self.locator = Some(Locator::new(mesh)?);
        }
        let (Some(locator), size) = (&self.locator, mesh.size()) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let mut located = Vec::with_capacity(places.len());
        let mut gaps = Vec::with_capacity(places.len());
        let (mut beside, mut first): (Option<([f64; 3], f64)>, Option<[f64; 3]>) = (None, None);
        let is_in = |cell: usize| living.is_none_or(|living| living[cell]);
        let found: Vec<Option<LocatedPoint>> =
            places.iter().map(|place| locator.find_among(place, is_in)).collect();
        let far =
            |found: &Option<LocatedPoint>| found.map_or(f64::INFINITY, |found| found.distance);
        let mut least: Vec<f64> = found.iter().map(far).collect();
        mesh.reduce_in_all(Reduction::Least, &mut least);
        let rank = mesh.cut().map_or(0.0, |cut| cut.group().rank() as f64);
        let nearest = |(found, least): (&Option<LocatedPoint>, &f64)| match far(found) <= *least {
            true => rank,
            false => f64::INFINITY,
        };
        let mut nearest: Vec<f64> = found.iter().zip(&least).map(nearest).collect();
        mesh.reduce_in_all(Reduction::Least, &mut nearest);
        for (((place, found), distance), nearest) in
            places.iter().zip(found).zip(least).zip(nearest)
        {
            let outside = distance.is_infinite();
            if outside {
                first = first.or(Some(*place));
            }
            gaps.push(outside);
            if !outside && distance > BESIDE * size && beside.is_none_or(|(_, d)| d < distance) {
                beside = Some((*place, distance));
            }
            located.push(found.filter(|_| nearest == rank));
        }
        if let Some((place, distance)) = beside {
            let place = super::shown(&place);
            self.notes.push(format!(
                "`{report}`: {place} lies {distance:.1e} beside the mesh, and has the value of its nearest point"
            ));
        }
        if let Some(first) = first {
            let (count, all) = (gaps.iter().filter(|gap| **gap).count(), places.len());
            self.gaps += count;
            let which = match all {
                1 => format!("{} lies", super::shown(&first)),
                _ => format!("{count} of {all} points, {} the first, lie", super::shown(&first)),
            };
            tracing::warn!(
                "the report `{report}` has a gap: {which} outside of {}\n\
                 help: name a place inside; a gap is NaN, empty in CSV and null in JSON",
                if living.is_some() { "the cells of its fields" } else { "the mesh" }
            );
        }
        Ok((located, gaps))
    }

    /// Returns R(u) − l without conditions.
    fn rows(&mut self) -> Result<&[f64], RunError> {
        if self.residual.is_none() {
            let mut residual = self.residual()?;
            let load = self.of.load.into_iter().flatten();
            residual.iter_mut().zip(load).for_each(|(row, load)| *row -= load);
            self.residual = Some(residual);
        }
        Ok(self.residual.as_deref().unwrap_or_default())
    }

    /// Returns R(u) − l without the forces of bounds: the reactions of conditions, and what a solve has left.
    fn rows_of_conditions(&mut self) -> Result<Vec<f64>, RunError> {
        let mut rows = self.rows()?.to_vec();
        if !self.of.bounds.is_empty() {
            let mut of_bounds = bounds::multiplier(self.of, &rows)?;
            self.of.on.conditions().for_each(|(dof, _)| of_bounds[dof] = 0.0);
            rows.iter_mut().zip(of_bounds).for_each(|(row, force)| *row -= force);
        }
        Ok(rows)
    }

    fn has_nodes(&self, field: usize) -> Result<(), RunError> {
        if self.of.on.fields[field].space.element().whitney().is_none() {
            return Ok(());
        }
        let name = &self.of.form.fields[field].name;
        Err(RunError::Setting(format!(
            "`reaction` sums the rows of nodes, and `{name}` in H(curl) or H(div) has none\n\
             help: integrate its flux over the boundary"
        )))
    }

    /// Returns the nodes of a field that conditions hold: those of the boundary, where slip has directions of its own, and
    /// those inside with values.
    fn held(&self, field: usize) -> Result<Vec<u32>, RunError> {
        let (on, range) = (self.of.on, self.of.on.dofs_of(field));
        self.has_nodes(field)?;
        let space = &on.fields[field].space;
        let components = space.components();
        let dofs = on.conditions().map(|(dof, _)| dof).filter(|dof| range.contains(dof));
        let inside = dofs.map(|dof| ((dof - range.start) / components) as u32);
        let mut nodes: Vec<u32> =
            nodes_under(&on.mesh, space, &Support::Boundary)?.into_iter().chain(inside).collect();
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    /// Returns the nodes of a field under tags; all of them without tags.
    fn nodes_of(&self, field: usize, tags: Option<&[String]>) -> Result<Vec<u32>, RunError> {
        self.has_nodes(field)?;
        let (mesh, space) = (&self.of.on.mesh, &self.of.on.fields[field].space);
        match tags {
            None => Ok((0..space.n_nodes() as u32).collect()),
            Some(tags) => Ok(nodes_under(mesh, space, &Support::Tags(tags.to_vec()))?),
        }
    }

    /// Sums rows of a field over nodes.
    fn sum_of_rows(
        &self,
        rows: &[f64],
        field: usize,
        nodes: Vec<u32>,
    ) -> Result<Vec<f64>, RunError> {
        let on = self.of.on;
        let space = &on.fields[field].space;
        let (components, range) = (space.components(), on.dofs_of(field));
        let own = &rows[range];
        let mut sums = vec![0.0; components];
        let sharing = on.mesh.cut().map(|cut| space.sharing(cut.group()));
        let counted =
            |node: &u32| !sharing.as_ref().is_some_and(|own| own.is_of_others(*node as usize));
        for node in nodes.into_iter().filter(counted) {
            let rows = &own[node as usize * components..][..components];
            sums.iter_mut().zip(rows).for_each(|(sum, row)| *sum += row);
        }
        on.mesh.sum_in_all(&mut sums);
        Ok(sums)
    }
}

/// Returns the smallest and largest nodal value of each component of a field.
pub(super) fn ranges(on: &Discretisation, field: usize, u: &[f64]) -> Vec<[f64; 2]> {
    // Degrees of freedom of vector-valued functions are integrals.
    if on.fields[field].space.element().whitney().is_some() {
        return Vec::new();
    }
    let components = on.fields[field].space.components();
    let none = || vec![[f64::INFINITY, f64::NEG_INFINITY]; components];
    let outside = on.fields[field].support.as_ref().map_or(&[][..], |support| &support.outside);
    let of_some = |(part, own): (usize, &[f64])| {
        let mut ranges = none();
        let nodes = ((part << 14) as u32..).zip(own.chunks(components));
        for (_, node) in nodes.filter(|(node, _)| outside.binary_search(node).is_err()) {
            for (range, &value) in ranges.iter_mut().zip(node) {
                *range = [range[0].min(value), range[1].max(value)];
            }
        }
        ranges
    };
    let parts: Vec<Vec<[f64; 2]>> =
        u[on.dofs_of(field)].par_chunks(components << 14).enumerate().map(of_some).listed();
    let both = |(a, b): (&[f64; 2], &[f64; 2])| [a[0].min(b[0]), a[1].max(b[1])];
    let all: Vec<[f64; 2]> =
        parts.iter().fold(none(), |all, part| all.iter().zip(part).map(both).collect());
    let [mut least, mut most] =
        [0, 1].map(|end| all.iter().map(|range| range[end]).collect::<Vec<f64>>());
    on.mesh.reduce_in_all(Reduction::Least, &mut least);
    on.mesh.reduce_in_all(Reduction::Largest, &mut most);
    least.into_iter().zip(most).map(|(least, most)| [least, most]).collect()
}

/// Resolves tags of a form's integrals: a tag may denote cells, or facets if the integrand depends on the normal.
fn resolved(form: &PointForm, on: &Discretisation) -> Result<PointForm, RunError> {
    let (mut form, mesh) = (form.clone(), &on.mesh);
    for integral in &mut form.integrals {
        let Region::Facets(tags) = &integral.region else { continue };
        let normal = integral.depends_on(|input| matches!(input, Input::Normal(_)));
        let mut asked = integral.residual.iter().map(|(_, node)| normal[*node]);
        let (sides, any) = (asked.clone().any(|normal| normal), asked.any(|normal| !normal));
        let of_cells = |tag: &String| mesh.cell_tags().contains_key(tag);
        // A tag must have the same meaning in all reports.
        if any && tags.iter().all(of_cells) {
            if let Some(tag) = tags.iter().find(|tag| mesh.facet_tags().contains_key(*tag)) {
                return Err(RunError::Setting(format!(
                    "\"{tag}\" is a tag of cells and of facets, and a report does not say which it integrates over\n\
                     help: give them different names in the mesh"
                )));
            }
            if !sides {
                integral.region = Region::CellsUnder(tags.clone());
            }
        }
    }
    Ok(form)
}
