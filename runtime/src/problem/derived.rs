//! Evaluates the outputs of a problem, `output NAME = EXPR;`, at a state → data at nodes or on cells ([`DerivedField`]).
//!
//! An expression of derivatives jumps between cells. Its value at a node is the mean of the values in the cells there,
//! each weighted alike; at a hanging node it is interpolated from the larger cell. Means over cells are
//! ∫ f dx / ∫ dx with the quadrature of the form.

use super::RunError;
use super::bounds;
use super::evaluation_state::EvaluationState;
use super::platform::Platform;
use super::reports::PointwiseExpressions;
use crate::operator::TableCache;
use crate::operator::functional::{QuadratureValues, values_at_quadrature, values_in_cells};
use crate::space::Space;
use crate::space::discretisation::{AuxValues, Discretisation};
use fem_dsl::point::{Aux, Degree, Location, PointForm, Shape};
use fem_dsl::problem::{DerivedQuantity, OutputSampling, PointState, Problem, Reports};
use kernels_gen::element::{Element, Lagrange};
use std::sync::Arc;

/// Values of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedField {
    /// Name of the output.
    pub name: String,
    /// Shape of a value.
    pub shape: Shape,
    /// Location of the values.
    pub location: Location,
    /// The values, like those of data.
    pub values: AuxValues,
}

/// Returns the location of an output whose values at nodes have degree k.
fn location(sampling: OutputSampling, k: Degree) -> Location {
    match sampling {
        OutputSampling::Nodes => Location::Nodes(fem_dsl::point::Space::H1(k)),
        OutputSampling::Discontinuous => Location::Nodes(fem_dsl::point::Space::L2(k)),
        OutputSampling::Cells => Location::Cells,
    }
}

/// Returns the form of a problem with its outputs as data, which pictures and files show.
pub fn form_with_outputs(problem: &Problem) -> PointForm {
    let mut form = problem.form.clone();
    form.aux.extend(bounds::outputs(problem));
    form.aux.extend(problem.reports.outputs.iter().map(|output| Aux {
        name: output.name.clone(),
        shape: output.shape,
        location: location(output.sampling, Degree::Relative(0)),
    }));
    form
}

/// Returns a form and its discretisation with derived fields as data.
pub fn with_derived(
    form: &PointForm,
    on: &Discretisation,
    derived: &[DerivedField],
) -> (PointForm, Discretisation) {
    let (mut form, mut on) = (form.clone(), on.clone());
    for field in derived {
        let DerivedField { name, shape, location, values } = field.clone();
        form.aux.push(Aux { name, shape, location });
        on.aux.push(values);
    }
    (form, on)
}

/// Evaluates the outputs at a state.
///
/// # Errors
///
/// An element that does not exist; values at the nodes of periodic sides in several processes.
pub(super) fn derived(
    reports: &Reports,
    of: EvaluationState<'_>,
) -> Result<Vec<DerivedField>, RunError> {
    if reports.outputs.is_empty() {
        return Ok(Vec::new());
    }
    let evaluator = Evaluator { of, form: reports.derivation.as_ref() };
    reports.outputs.iter().map(|output| evaluator.field(output)).collect()
}

/// Evaluates the updates of the states at points, by index of the data. A state stays as it is where fields of its update do
/// not live.
///
/// # Errors
///
/// An element that does not exist.
pub(super) fn next_states(
    problem: &Problem,
    of: EvaluationState<'_>,
) -> Result<Vec<(usize, Vec<f64>)>, RunError> {
    let evaluator = Evaluator { of, form: problem.reports.derivation.as_ref() };
    let next = |state: &PointState| {
        let count = problem.form.aux[state.aux].shape.components();
        let mut values = evaluator.at_quadrature(state.first, count)?.values;
        let expressions = evaluator.form.map(|form| PointwiseExpressions::new(form, of));
        let living = expressions.and_then(|own| own.living_cells(of.on, state.first, count));
        let before = of.on.aux[state.aux].numbers();
        let each = of.elements.rule.count() * count;
        let cells = values.chunks_mut(each).zip(before.chunks(each));
        let outside = living.into_iter().flatten().zip(cells).filter(|(lives, _)| !lives);
        outside.for_each(|(_, (next, before))| next.copy_from_slice(before));
        Ok((state.aux, values))
    };
    problem.states.iter().map(next).collect()
}

/// Evaluates the densities of the multipliers of bounds at a state.
///
/// # Errors
///
/// Kernels that cannot be compiled.
pub(super) fn multipliers(
    problem: &Problem,
    of: EvaluationState<'_>,
    platform: &Platform,
    tables: &mut TableCache,
) -> Result<Vec<DerivedField>, RunError> {
    let found = bounds::densities(problem, of, platform, tables)?;
    let field =
        |(Aux { name, shape, location }, values)| DerivedField { name, shape, location, values };
    Ok(found.into_iter().map(field).collect())
}

/// Evaluation of outputs at one state.
struct Evaluator<'a> {
    of: EvaluationState<'a>,
    /// The form of their expressions; `None` if all are 0.
    form: Option<&'a PointForm>,
}

impl Evaluator<'_> {
    fn field(&self, output: &DerivedQuantity) -> Result<DerivedField, RunError> {
        let on = self.of.on;
        let degrees = on.fields.iter().map(|field| field.space.element().degree());
        let degree = degrees.max().unwrap_or(1).max(1);
        let cell = on.mesh.cell();
        let values = match output.sampling {
            OutputSampling::Nodes => {
                self.continuous(output, Lagrange::continuous(cell, degree)?)?
            }
            OutputSampling::Discontinuous => {
                let element = Lagrange::discontinuous(cell, degree)?;
                let count = output.shape.components();
                let values = self.in_cells(output, &element.points())?;
                let space = on.aux_space(element, count)?;
                let mut numbers = vec![0.0; space.n_dofs()];
                for (&node, value) in space.nodes().iter().zip(values.chunks(count)) {
                    numbers[node as usize * count..][..count].copy_from_slice(value);
                }
                AuxValues::at_nodes(space, numbers)
            }
            OutputSampling::Cells => AuxValues::on_cells(self.means(output)?),
        };
        Ok(DerivedField {
            name: output.name.clone(),
            shape: output.shape,
            location: location(output.sampling, Degree::Fixed(degree)),
            values,
        })
    }

    /// Evaluates an output at points of all cells, `[cell][point][component]`.
    fn in_cells(
        &self,
        output: &DerivedQuantity,
        points: &[[f64; 3]],
    ) -> Result<Vec<f64>, RunError> {
        let (of, count) = (self.of, output.shape.components());
        let integral = self.form.and_then(|form| Some((form, form.integrals.first()?)));
        let Some((form, integral)) = integral else {
            return Ok(vec![0.0; of.on.mesh.n_cells() * points.len() * count]);
        };
        let expressions = PointwiseExpressions::new(form, of);
        let pick = |roots: &[f64]| expressions.pick(roots, output.first, count, |value| *value);
        let roots = (integral, &expressions.roots[..]);
        Ok(values_in_cells(of.on, points, roots, of.u, of.parameters, pick)?)
    }

    /// Evaluates components at the quadrature points; without weights if all expressions are 0.
    fn at_quadrature(&self, first: usize, count: usize) -> Result<QuadratureValues, RunError> {
        let of = self.of;
        let integral = self.form.and_then(|form| Some((form, form.integrals.first()?)));
        let Some((form, integral)) = integral else {
            let points = of.on.mesh.n_cells() * of.elements.rule.count();
            return Ok(QuadratureValues {
                values: vec![0.0; points * count],
                ..Default::default()
            });
        };
        let expressions = PointwiseExpressions::new(form, of);
        let pick = |roots: &[f64]| expressions.pick(roots, first, count, |value| *value);
        let (rule, roots) = (of.elements.rule, (integral, &expressions.roots[..]));
        Ok(values_at_quadrature(of.on, rule, roots, of.u, of.parameters, pick)?)
    }

    /// Returns the means over the cells.
    fn means(&self, output: &DerivedQuantity) -> Result<Vec<f64>, RunError> {
        let (of, count) = (self.of, output.shape.components());
        let found = self.at_quadrature(output.first, count)?;
        if found.weights.is_empty() {
            return Ok(vec![0.0; of.on.mesh.n_cells() * count]);
        }
        let points = of.elements.rule.count();
        let cells = found.weights.chunks(points).zip(found.values.chunks(points * count));
        let mean = |(weights, values): (&[f64], &[f64])| {
            let mut sums = vec![0.0; count];
            for (weight, values) in weights.iter().zip(values.chunks(count)) {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
            }
            let volume: f64 = weights.iter().sum();
            sums.into_iter().map(move |sum| sum / volume)
        };
        Ok(cells.flat_map(mean).collect())
    }

    /// Returns the means of the cells at each node.
    fn continuous(
        &self,
        output: &DerivedQuantity,
        element: Lagrange,
    ) -> Result<AuxValues, RunError> {
        let (on, count) = (self.of.on, output.shape.components());
        let mesh = &on.mesh;
        let (element, is_periodic) = (Element::from(element), !mesh.periodic_sides().is_empty());
        if is_periodic && mesh.cut().is_some() {
            return Err(RunError::Setting(format!(
                "the output `{0}` has values at nodes of periodic sides, which several processes do not average\n\
                 help: write `output {0} = … discontinuous;` or `output {0} = … on cells;`",
                output.name
            )));
        }
        // Data need not be periodic.
        let space = match is_periodic {
            true => on.aux_space(element, count)?,
            false => Space::new(mesh, &on.partition, element, count)?,
        };
        let values = self.in_cells(output, &space.nodal().points())?;
        let expressions = self.form.map(|form| PointwiseExpressions::new(form, self.of));
        let living = expressions.and_then(|own| own.living_cells(on, output.first, count));
        let hangs = space.hanging_nodes();
        let mut sums = vec![0.0; space.n_dofs()];
        let mut cells = vec![0.0_f64; space.n_nodes()];
        let per_cell = space.nodes_per_cell();
        for (at, values) in values.chunks(count).enumerate() {
            let (cell, node) = (at / per_cell, at % per_cell);
            if living.as_ref().is_some_and(|living| !living[cell]) {
                continue;
            }
            if hangs.as_ref().is_some_and(|hangs| hangs(cell, node)) {
                continue;
            }
            let number = space.cell_nodes(cell)[node] as usize;
            cells[number] += 1.0;
            let sums = &mut sums[number * count..][..count];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        if let Some(cut) = mesh.cut() {
            let exchange = space.sharing(cut.group());
            exchange.sum(&mut cells);
            for component in 0..count {
                let mut one: Vec<f64> =
                    sums.iter().skip(component).step_by(count).copied().collect();
                exchange.sum(&mut one);
                let own = sums.iter_mut().skip(component).step_by(count);
                own.zip(one).for_each(|(sum, total)| *sum = total);
            }
        }
        for (sums, cells) in sums.chunks_mut(count).zip(&cells) {
            // Fields that it reads live in other cells alone.
            let cells = if living.is_some() { *cells } else { cells.max(1.0) };
            sums.iter_mut().for_each(|sum| *sum /= cells);
        }
        let (space, values) = {
            let (space, values) = space.resolved(&sums);
            (space.into_owned(), values.into_owned())
        };
        Ok(AuxValues::Nodes(Arc::new(space), Arc::new(values)))
    }
}
