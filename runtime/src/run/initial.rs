//! Where a solve begins: `initial u = EXPR;`, or an earlier solution; 0 without either. What a condition says differently
//! holds as the condition says.

use super::RunError;
use crate::discretisation::Discretisation;
use crate::expression::{Parameters, evaluate};
use crate::operator::Operator;
use crate::vector::Vector;
use fem_dsl::problem::Problem;

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
            let own = evaluate(value, &value.value, &points, parameters, |_| f64::NAN);
            let name = &problem.form.fields[*field].name;
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
            if differing > 0 {
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
