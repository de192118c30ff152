//! Mean-value constraints of fields that are free up to a constant: `mean p = 0;`.
//!
//! The equations of such fields are singular but consistent: J e = 0 and eᵀ J = 0 for the constant e. An operator
//! solves all their rows, projects residuals onto the orthogonal complement of e, and sets the mean at the end
//! ([`crate::operator`]). Two conditions are checked before a solve:
//!
//! ```text
//! J e = 0,  eᵀ J = 0          the field is free up to a constant     relative to the response of random vectors
//! |eᵀ R| ≤ 0.05 Σ |R_i|       the data are compatible                R at 0 with the condition values
//! ```
//!
//! The sum eᵀ R does not depend on the free DoFs. Interpolated conditions and quadrature leave a small imbalance, which
//! is reported and spread evenly. If the rows cancel to rounding (an exact divergence-free solution), their sizes are
//! meaningless. The sum is then compared with the terms at the solution.

use super::{Context, IllPosedError, RunError};
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::Operator;
use crate::solve::{NonlinearSystem, Outcome, Report};
use crate::space::discretisation::Discretisation;
use fem_dsl::point::Part;

/// Relative imbalance from which a note is printed, and the one that is an error.
const NOTED: f64 = 1e-6;
const INCOMPATIBLE: f64 = 0.05;

/// Rows below this fraction of the rows of all fields may be rounding error.
const SMALL: f64 = 1e-8;

/// Bound of the rounding error of a sum, in multiples of eps.
const ROUNDING: f64 = 1e5;

/// Number of random vectors that estimate row sizes, so that none is small by accident.
const SEEDS: u64 = 4;

/// Relative row size from which a deviation is not a quadrature error.
const NOT_QUADRATURE: f64 = 0.2;

/// Returns the fields with a mean-value constraint.
pub(super) fn fields_with_mean(on: &Discretisation) -> impl Iterator<Item = usize> {
    (0..on.fields.len()).filter(|&field| on.fields[field].constraints.mean().is_some())
}

/// Compatibility of the data of fields with a mean-value constraint.
pub(super) struct Compatibility {
    /// For each such field: index, sum of its rows, and sum of their absolute values.
    found: Vec<(usize, [f64; 2])>,
    /// Sum of absolute values over the rows of all fields.
    all: f64,
}

impl Compatibility {
    /// Checks the data of a system.
    ///
    /// # Errors
    ///
    /// [`IllPosedError::Incompatible`].
    pub(super) fn of(operator: &Operator, context: &Context) -> Result<Self, RunError> {
        if fields_with_mean(&context.on).next().is_none() {
            return Ok(Self { found: Vec::new(), all: 0.0 });
        }
        let (found, all) = operator.imbalance(&operator.initial()?)?;
        let own = Self { found, all };
        // An inexact sum depends on the solution and is checked there.
        if operator.has_inexact_constants() {
            return Ok(own);
        }
        own.check(context, |of| of.is_known(own.all))?;
        Ok(own)
    }

    /// Checks the remaining data at a solution; returns notes on the imbalance.
    ///
    /// # Errors
    ///
    /// [`IllPosedError::Incompatible`].
    pub(super) fn settle(
        mut self,
        operator: &mut Operator,
        context: &Context,
        u: &Vector,
    ) -> Result<Vec<String>, RunError> {
        let all = self.all;
        let inexact = operator.has_inexact_constants();
        let solved = if inexact { operator.imbalance(u)?.0 } else { Vec::new() };
        for (number, (field, sums)) in self.found.iter_mut().enumerate() {
            if let Some((_, [sum, _])) = solved.get(number) {
                sums[0] = *sum;
            } else if RowSum(*sums).is_known(all) {
                continue;
            }
            operator.linearise(u)?;
            let mut turned = u.clone();
            turned.flip_signs();
            let terms = response(operator, &turned)?;
            sums[1] += terms.restricted_to(context.on.dofs_of(*field)).sum_of_sizes();
        }
        self.check(context, |_| true)?;
        let notes = self.found.iter().filter(|(_, sums)| RowSum(*sums).imbalance() > NOTED);
        let note = |(field, sums): &(usize, [f64; 2])| {
            let (name, part) = (&context.form().fields[*field].name, RowSum(*sums).imbalance());
            format!(
                "the right-hand side of `{name}` is not quite orthogonal to the constants (imbalance {part:.1e}, relative): the \
                 rest is spread evenly over the domain"
            )
        };
        Ok(notes.map(note).collect())
    }

    fn check(&self, context: &Context, which: impl Fn(RowSum) -> bool) -> Result<(), RunError> {
        let wrong = |sums: RowSum| which(sums) && sums.imbalance() > INCOMPATIBLE;
        match self.found.iter().find(|(_, sums)| wrong(RowSum(*sums))) {
            None => Ok(()),
            Some((field, sums)) => {
                let (name, imbalance) =
                    (context.form().fields[*field].name.clone(), RowSum(*sums).imbalance());
                Err(IllPosedError::Incompatible { field: name, imbalance }.into())
            }
        }
    }
}

/// Sum of the rows of a field, and sum of their absolute values.
#[derive(Clone, Copy)]
struct RowSum([f64; 2]);

impl RowSum {
    /// Returns the relative imbalance; 0 if it is not finite.
    fn imbalance(self) -> f64 {
        let [sum, sizes] = self.0;
        let part = sum / sizes;
        if sizes > 0.0 && part.is_finite() { part } else { 0.0 }
    }

    /// Returns whether the row sizes exceed rounding error, relative to those of all fields.
    fn is_known(self, all: f64) -> bool {
        self.0[1] > SMALL * all
    }
}

/// Names the field with a mean-value constraint whose inexact equations made a direct solve stagnate.
pub(super) fn not_constant(
    operator: &Operator,
    context: &Context,
    report: &Report,
) -> Option<RunError> {
    let failed = report.solver == "direct" && report.outcome == Outcome::Stagnated;
    if !failed || !operator.has_inexact_constants() {
        return None;
    }
    let field = fields_with_mean(&context.on).next()?;
    let field = context.form().fields[field].name.clone();
    Some(IllPosedError::NotUpToAConstant { field }.into())
}

/// Applies J at the last linearisation, without projection.
fn response(operator: &Operator, x: &Vector) -> Result<Vector, RunError> {
    let mut y = x.like();
    operator.jacobian().apply_sparse(x, &mut y)?;
    Ok(y)
}

/// Checks that each field with a mean-value constraint is free up to a constant: J e = 0 and eᵀ J = 0 at a state.
/// Deviations by quadrature are allowed and marked in the operator.
///
/// # Errors
///
/// [`IllPosedError::NotUpToAConstant`].
pub(super) fn check_constants(
    operator: &mut Operator,
    context: &Context,
    u: &Vector,
) -> Result<(), RunError> {
    let on = &context.on;
    if fields_with_mean(on).next().is_none() {
        return Ok(());
    }
    operator.linearise(u)?;
    let mut inexact = operator.has_inexact_constants();
    for field in fields_with_mean(on) {
        let found = ConstantAction::of(operator, on, field)?;
        let reads_itself =
            context.form().integrals.iter().flat_map(|own| &own.jacobian).any(|term| {
                (term.test.field, term.trial.field) == (field, field)
                    && term.trial.part == Part::Value
            });
        if found.moves && (reads_itself || found.ratio > NOT_QUADRATURE) {
            let field = context.form().fields[field].name.clone();
            return Err(IllPosedError::NotUpToAConstant { field }.into());
        }
        inexact |= found.moves || found.leaks;
    }
    operator.set_inexact_constants(inexact);
    Ok(())
}

/// Action of J on the constants of a field.
struct ConstantAction {
    /// True if J e exceeds rounding error.
    moves: bool,
    /// Largest |J e| entry relative to the response of random entries of the field in the same row.
    ratio: f64,
    /// True if eᵀ J exceeds rounding error.
    leaks: bool,
}

impl ConstantAction {
    fn of(operator: &Operator, on: &Discretisation, field: usize) -> Result<Self, RunError> {
        let x = operator.random_direction(5)?;
        let bound = ROUNDING * epsilon(x.precision());
        let rows = response(operator, &x)?.restricted_to(on.dofs_of(field));
        let own = response(operator, &x.restricted_to(on.dofs_of(field)))?;
        let (of_rows, of_own) = (rows.sum_of_sizes(), own.sum_of_sizes());
        let mut found = Self { moves: false, ratio: 0.0, leaks: false };
        for ones in operator.constants_of(field) {
            // The comparisons are false for NaN.
            found.moves |= response(operator, ones)?.sum_of_sizes() > bound * of_own;
            found.leaks |= rows.dot(ones).abs() > bound * of_rows;
        }
        if found.moves {
            found.ratio = largest_ratio(operator, on, field)?;
        }
        Ok(found)
    }
}

/// Returns the largest |J e| entry relative to the response of random entries of the field in the same row.
fn largest_ratio(operator: &Operator, on: &Discretisation, field: usize) -> Result<f64, RunError> {
    let mut rows = vec![0.0f64; on.n_dofs()];
    for seed in 0..SEEDS {
        let x = operator.random_direction(7 + seed)?.restricted_to(on.dofs_of(field));
        let y = response(operator, &x)?.to_vec();
        rows.iter_mut().zip(y).for_each(|(most, y)| *most = most.max(y.abs()));
    }
    let mut largest = 0.0;
    for ones in operator.constants_of(field) {
        let left = response(operator, ones)?;
        let ratios = left.to_vec().into_iter().zip(&rows);
        let ratios = ratios.filter(|(_, size)| **size > 0.0).map(|(y, size)| y.abs() / size);
        largest = left.largest(ratios.fold(largest, f64::max));
    }
    Ok(largest)
}
