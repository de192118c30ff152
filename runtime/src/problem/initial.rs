//! Initial state of a solve: `initial u = EXPR;`, a state from a file, an earlier solution, or 0. Essential conditions
//! override it.

use super::collective_errors::together;
use super::files::{FileStatement, at_nodes, failed, of_solution, unsolved, whole};
use super::{DataError, RunError};
use crate::algebra::vector::Vector;
use crate::files::input::{ArrayRequest, cells};
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::operator::Operator;
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use crate::support::expression::{Parameters, evaluate};
use fem_dsl::problem::{Problem, ValueSource};
use kernels_gen::element::ElementError;

/// Relative difference between initial value and condition from which a note is printed.
const SAME: f64 = 1e-9;

/// Returns the initial first time derivative of the fields that state one; 0 for the others.
///
/// # Errors
///
/// A value that is not finite.
pub(super) fn rates(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
) -> Result<Option<Vec<f64>>, RunError> {
    let moves = |field: usize| problem.form.rates.iter().any(|rate| rate.field == field);
    let known =
        problem.exact.iter().filter(|(field, known)| moves(*field) && !known.rates[0].is_empty());
    let known: Vec<_> = known.collect();
    if problem.initial_rate.is_empty() && known.is_empty() {
        return Ok(None);
    }
    let mut values = vec![0.0; on.n_dofs()];
    for (field, known) in known {
        let own = interpolant(on, *field, |points| {
            evaluate(known, &known.rates[0], points, parameters, |_| f64::NAN)
        })?;
        values[on.dofs_of(*field)].copy_from_slice(&own);
    }
    for (field, value) in &problem.initial_rate {
        let own = of_field(problem, on, parameters, (*field, value), &mut Vec::new())?;
        values[on.dofs_of(*field)].copy_from_slice(&own);
    }
    Ok(Some(values))
}

/// Returns the degrees of freedom of the interpolant of a function in the space of a field; `values` evaluates it at
/// points.
///
/// # Errors
///
/// The geometry has no element.
pub fn interpolant(
    on: &Discretisation,
    field: usize,
    values: impl Fn(&[[f64; 3]]) -> Vec<f64>,
) -> Result<Vec<f64>, ElementError> {
    let space = &on.fields[field].space;
    match space.element().whitney() {
        None => Ok(values(&space.points(&on.mesh, &on.partition)?)),
        Some(_) => space.interpolate_vectors(&on.mesh, |points| Ok(values(points)))?,
    }
}

/// Evaluates the initial value of a field at its nodes. Collective: an error on one process becomes one on all.
fn of_field(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
    given: (usize, &ValueSource),
    notes: &mut Vec<String>,
) -> Result<Vec<f64>, RunError> {
    together(&on.mesh, of_field_here(problem, on, parameters, given, notes))
}

/// Evaluates the initial value on this process alone.
fn of_field_here(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
    (field, value): (usize, &ValueSource),
    notes: &mut Vec<String>,
) -> Result<Vec<f64>, RunError> {
    let space = &on.fields[field].space;
    let of_form = &problem.form.fields[field];
    let name = &of_form.name;
    let own = match value {
        ValueSource::Formula(formula) => interpolant(on, field, |points| {
            evaluate(formula, &formula.value, points, parameters, |_| f64::NAN)
        })?,
        ValueSource::File(stored) => {
            let wanted = ArrayRequest::new(stored, name, of_form.shape, whole(on)?);
            let unreadable = |error| failed(FileStatement::Initial, name, stored, error);
            let of_whole = |mesh: &Mesh, partition: &Partition| {
                Space::new(mesh, partition, space.element(), space.components())
            };
            let found =
                at_nodes(on, space, of_whole, &wanted.read().map_err(unreadable)?, unreadable)?;
            notes.extend(found.note.map(|note| format!("`initial {name}` {note}")));
            found.values
        }
        ValueSource::Cells(given) => cells::at_nodes(given, &on.mesh, space)
            .map_err(|error| of_solution(FileStatement::Initial, name, given, error))?,
        ValueSource::Solution(taken) => return Err(unsolved("initial", name, taken)),
    };
    if let Some(at) = own.iter().position(|value| !value.is_finite()) {
        let point = space.points(&on.mesh, &on.partition)?[at / space.components()];
        let (name, value) = (name.clone(), own[at]);
        return Err(DataError::InitialNotFinite { name, value, point }.into());
    }
    Ok(own)
}

/// Adds the initial state to `u`, which holds the condition values and 0 elsewhere; returns notes on overridden values.
///
/// # Errors
///
/// An earlier solution of another size, a value that is not finite, a device failure.
pub(super) fn begin(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
    earlier: Option<&[f64]>,
    operator: &Operator,
    u: &mut Vector,
) -> Result<Vec<String>, RunError> {
    // Time integration starts from a known solution, if there is one.
    let known: &[_] = if problem.stepping.is_some() { &problem.exact } else { &[] };
    let given = |field: usize| problem.initial.iter().any(|(own, _)| *own == field);
    let known: Vec<_> = known.iter().filter(|(field, _)| !given(*field)).collect();
    if earlier.is_none() && problem.initial.is_empty() && known.is_empty() {
        return Ok(Vec::new());
    }
    let mut values = match earlier {
        Some(earlier) if earlier.len() == on.n_dofs() => earlier.to_vec(),
        Some(earlier) => {
            return Err(RunError::Setting(format!(
                "an earlier solution of {} unknowns is no start for {}\n\
                 help: keep the mesh and the degree",
                earlier.len(),
                on.n_dofs()
            )));
        }
        None => u.to_vec(),
    };
    let mut notes = Vec::new();
    if earlier.is_none() {
        for (field, formula) in known {
            let own = interpolant(on, *field, |points| {
                evaluate(formula, &formula.value, points, parameters, |_| f64::NAN)
            })?;
            values[on.dofs_of(*field)].copy_from_slice(&own);
        }
        for (field, value) in &problem.initial {
            let name = &problem.form.fields[*field].name;
            let own = of_field(problem, on, parameters, (*field, value), &mut notes)?;
            let largest = own.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let differs = |(unknown, held): (usize, f64)| {
                (own[unknown] - held).abs() > SAME * largest.max(held.abs())
            };
            let differing =
                on.fields[*field].constraints.iter().filter(|&one| differs(one)).count();
            // A state from a file may have other conditions: continuation changes them.
            if differing > 0 && value.formula().is_some() {
                notes.push(format!(
                    "`initial {name}` differs from the conditions in {differing} unknowns, where these hold"
                ));
            }
            values[on.dofs_of(*field)].copy_from_slice(&own);
        }
    }
    u.set(&values);
    operator.impose(u)?;
    operator.finish()?;
    Ok(notes)
}
