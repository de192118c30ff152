//! Where a solve begins: `initial u = EXPR;`, a state from a file, or an earlier solution; 0 without any. What a condition
//! says differently holds as the condition says.

use super::RunError;
use super::files::{Taker, failed};
use crate::discretisation::Discretisation;
use crate::expression::{Parameters, evaluate};
use crate::operator::Operator;
use crate::stored::Wanted;
use crate::vector::Vector;
use fem_dsl::problem::{Problem, Values};

/// A start that differs from a condition by more than this part of both is said to.
const SAME: f64 = 1e-9;

/// Puts the start into `u`, which holds the values of the conditions and 0 elsewhere; says what conditions replace.
///
/// # Errors
///
/// An earlier solution of other unknowns, a value that is no number, a device that fails.
pub(super) fn begin(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
    earlier: Option<&[f64]>,
    operator: &Operator,
    u: &mut Vector,
) -> Result<Vec<String>, RunError> {
    if earlier.is_none() && problem.initial.is_empty() {
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
        for (field, value) in &problem.initial {
            let space = &on.fields[*field].space;
            let points = space.points(&on.mesh, &on.partition)?;
            let of_form = &problem.form.fields[*field];
            let name = &of_form.name;
            let own = match value {
                Values::Formula(formula) => {
                    evaluate(formula, &formula.value, &points, parameters, |_| f64::NAN)
                }
                Values::File(stored) => {
                    let wanted = Wanted::new(stored, name, of_form.shape, &on.mesh);
                    let found = wanted.read();
                    let found = found.and_then(|found| found.at_nodes(space, &on.partition));
                    let found =
                        found.map_err(|error| failed(Taker::Initial, name, stored, error))?;
                    notes.extend(found.note.map(|note| format!("`initial {name}` {note}")));
                    found.values
                }
            };
            if let Some(at) = own.iter().position(|value| !value.is_finite()) {
                let point = points[at / space.components()];
                let (name, value) = (name.clone(), own[at]);
                return Err(RunError::InitialNotFinite { name, value, point });
            }
            let differs = |(unknown, held): (usize, f64)| {
                (own[unknown] - held).abs() > SAME * (own[unknown].abs() + held.abs())
            };
            let differing =
                on.fields[*field].constraints.iter().filter(|&one| differs(one)).count();
            // A state of other conditions is where solves go on.
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
