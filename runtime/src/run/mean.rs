//! Fields that conditions leave free up to a constant: `mean p = 0;`.
//!
//! The first node of such a field is held while the equations are solved, which takes the constant out of them, and
//! the constant that gives the field its mean is added afterwards:
//!
//! ```text
//! p ← p + m − (1/|Ω|) ∫ p dx
//! ```
//!
//! That is right where the residual does not change with the constant, and where the row that was held is fulfilled
//! too: without sources that do not balance (a flow that enters and does not leave). Both are looked at.

use super::{Place, RunError};
use crate::compile::Target;
use crate::constraint::Constraints;
use crate::discretisation::Discretisation;
use crate::functional::mean;
use crate::vector::Vector;
use fem_dsl::problem::Problem;
use kernels_gen::plan::Elements;
use std::sync::Arc;

/// What a row may be off by, as a part of what was there before the solve: more than a solver leaves.
const SOLVED: f64 = 1e-6;

/// Conditions that are interpolated balance up to the error of that, which is noted; more is no solution.
const INTERPOLATED: f64 = 0.05;

/// Holds the first node of each field with a mean.
pub(super) fn hold(problem: &Problem, on: &mut Discretisation) {
    for (field, _) in &problem.mean {
        on.fields[*field].constraints.hold(0);
    }
}

/// Gives each field its mean, and notes what does not quite balance; an error where a field is not free up to a
/// constant, or where what was held does not balance at all.
pub(super) fn settle(
    problem: &Problem,
    elements: &Elements,
    on: &Discretisation,
    params: &[f64],
    target: &Target,
    u: &mut [f64],
) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    if problem.mean.is_empty() {
        return Ok(notes);
    }
    let mut free = on.clone();
    for (field, _) in &problem.mean {
        free.fields[*field].constraints = Constraints::none(&free.fields[*field].space);
    }
    let free = Arc::new(free);
    let (mut place, _) = Place::new(&problem.form, elements, &free, params, target, None)?;
    let mut residual = |u: &[f64]| -> Result<Vec<f64>, RunError> {
        let mut state: Vector = place.vector();
        state.set(u);
        let mut r = state.like();
        place.system().residual(&state, &mut r)?;
        Ok(r.to_vec())
    };
    let norm = |r: &[f64]| r.iter().map(|r| r * r).sum::<f64>().sqrt();
    let mut initial = vec![0.0; u.len()];
    free.conditions().for_each(|(dof, value)| initial[dof] = value);
    let before = residual(&initial)?;
    let solved = residual(u)?;
    for (field, wanted) in &problem.mean {
        let (range, name) = (on.dofs_of(*field), &problem.form.fields[*field].name);
        let components = on.fields[*field].space.components();
        let rows = &solved[range.start..range.start + components];
        let mut moved = u.to_vec();
        moved[range.clone()].iter_mut().for_each(|entry| *entry += 1.0);
        let difference: Vec<f64> =
            residual(&moved)?.iter().zip(&solved).map(|(a, b)| a - b).collect();
        let size = norm(u).max(norm(&before)).max(1.0);
        if norm(&difference) > SOLVED * size {
            return Err(RunError::NotUpToAConstant { field: name.clone() });
        }
        let sum = |rows: &[f64]| rows.iter().map(|row| row.abs()).sum::<f64>();
        let (left, all) = (sum(rows), sum(&before[range.clone()]));
        let share = left / all.max(SOLVED * size);
        if share > INTERPOLATED {
            return Err(RunError::Unbalanced { field: name.clone(), left, all });
        }
        if share > SOLVED {
            notes.push(format!(
                "what enters and leaves by `{name}` differs by {left:.1e}, which its first node takes"
            ));
        }
        let found = mean(on, *field, u)?;
        for node in u[range].chunks_mut(components) {
            for ((entry, found), wanted) in node.iter_mut().zip(&found).zip(wanted) {
                *entry += wanted - found;
            }
        }
    }
    Ok(notes)
}
