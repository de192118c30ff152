//! Fields that are free up to a constant: `mean p = 0;`.
//!
//! The equations of such fields are singular and consistent: J e = 0 and eᵀ J = 0 with the constant e. An operator solves all
//! of their rows, makes residuals orthogonal to e, and sets the mean at the end ([`crate::operator`]). Two things are tested
//! before a solve:
//!
//! ```text
//! J e = 0,  eᵀ J = 0                    the field is free up to a constant          relative to what random vectors give
//! |eᵀ R| ≤ 0.05 Σ |R_i|                 the data are compatible                     R at 0 with the values of the conditions
//! ```
//!
//! The sum does not depend on the free unknowns. Conditions that are interpolated, and quadrature, leave some of it, which is
//! noted and spread evenly. Where the rows cancel to rounding (an exact solution without divergence), their sizes say
//! nothing, and the sum is compared with the terms at the solution.

use super::{RunError, System};
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::Operator;
use crate::solve::{NonlinearSystem, Outcome, Report};
use crate::space::discretisation::Discretisation;
use fem_dsl::point::Part;

/// The imbalance, as a part of the sizes, that is noted, and the one that is an error.
const NOTED: f64 = 1e-6;
const INCOMPATIBLE: f64 = 0.05;

/// Rows that are this part of the rows of all fields may be rounding.
const SMALL: f64 = 1e-8;

/// What rounding leaves of a sum, as multiples of eps.
const ROUNDING: f64 = 1e5;

/// Random vectors for the sizes of rows, so that none is small by accident.
const SEEDS: u64 = 4;

/// The part of the size of a row that is no error of quadrature.
const NOT_QUADRATURE: f64 = 0.2;

/// The fields with a mean.
pub(super) fn fields_with_mean(on: &Discretisation) -> impl Iterator<Item = usize> {
    (0..on.fields.len()).filter(|&field| on.fields[field].constraints.mean().is_some())
}

/// How compatible the data of fields with a mean are.
pub(super) struct Compatibility {
    /// For each field its number, the sum of its rows, and that of their sizes.
    found: Vec<(usize, [f64; 2])>,
    /// The sizes of the rows of all fields.
    all: f64,
}

impl Compatibility {
    /// Tests the data of a system.
    ///
    /// # Errors
    ///
    /// [`RunError::Incompatible`].
    pub(super) fn of(operator: &Operator, system: System<'_>) -> Result<Self, RunError> {
        if fields_with_mean(system.on).next().is_none() {
            return Ok(Self { found: Vec::new(), all: 0.0 });
        }
        let (found, all) = operator.imbalance(&operator.initial()?)?;
        let own = Self { found, all };
        // Where the sum depends on the solution, it is that of the solution.
        if operator.has_inexact_constants() {
            return Ok(own);
        }
        own.check(system, |of| of.is_known(own.all))?;
        Ok(own)
    }

    /// Tests the data that could not be tested before, by the terms at a solution; notes what is left over.
    ///
    /// # Errors
    ///
    /// [`RunError::Incompatible`].
    pub(super) fn settle(
        mut self,
        operator: &mut Operator,
        system: System<'_>,
        u: &Vector,
    ) -> Result<Vec<String>, RunError> {
        let all = self.all;
        let inexact = operator.has_inexact_constants();
        let solved = if inexact { operator.imbalance(u)?.0 } else { Vec::new() };
        for (number, (field, sums)) in self.found.iter_mut().enumerate() {
            if let Some((_, [sum, _])) = solved.get(number) {
                sums[0] = *sum;
            } else if Sums(*sums).is_known(all) {
                continue;
            }
            operator.linearise(u)?;
            let mut turned = u.clone();
            turned.turn();
            let terms = response(operator, &turned)?;
            sums[1] += terms.restricted_to(system.on.dofs_of(*field)).sum_of_sizes();
        }
        self.check(system, |_| true)?;
        let notes = self.found.iter().filter(|(_, sums)| Sums(*sums).imbalance() > NOTED);
        let note = |(field, sums): &(usize, [f64; 2])| {
            let (name, part) = (&system.form.fields[*field].name, Sums(*sums).imbalance());
            format!(
                "the right-hand side of `{name}` is not quite orthogonal to the constants (imbalance {part:.1e}, relative): the \
                 rest is spread evenly over the domain"
            )
        };
        Ok(notes.map(note).collect())
    }

    fn check(&self, system: System<'_>, which: impl Fn(Sums) -> bool) -> Result<(), RunError> {
        let wrong = |sums: Sums| which(sums) && sums.imbalance() > INCOMPATIBLE;
        match self.found.iter().find(|(_, sums)| wrong(Sums(*sums))) {
            None => Ok(()),
            Some((field, sums)) => {
                let (name, imbalance) =
                    (system.form.fields[*field].name.clone(), Sums(*sums).imbalance());
                Err(RunError::Incompatible { field: name, imbalance })
            }
        }
    }
}

/// The sum of the rows of a field, and that of their sizes.
#[derive(Clone, Copy)]
struct Sums([f64; 2]);

impl Sums {
    /// The first as a part of the second; 0 where they are no numbers.
    fn imbalance(self) -> f64 {
        let [sum, sizes] = self.0;
        let part = sum / sizes;
        if sizes > 0.0 && part.is_finite() { part } else { 0.0 }
    }

    /// Whether the sizes are more than rounding, where those of all fields are known.
    fn is_known(self, all: f64) -> bool {
        self.0[1] > SMALL * all
    }
}

/// The error of factors that do not serve, where the equations of a field with a mean do not add up to 0: its name.
pub(super) fn not_constant(
    operator: &Operator,
    system: System<'_>,
    report: &Report,
) -> Option<RunError> {
    let failed = report.solver == "direct" && report.outcome == Outcome::Stagnated;
    if !failed || !operator.has_inexact_constants() {
        return None;
    }
    let field = fields_with_mean(system.on).next()?;
    let field = system.form.fields[field].name.clone();
    Some(RunError::NotUpToAConstant { field })
}

/// J x at the last linearisation, before anything is made orthogonal to constants.
fn response(operator: &Operator, x: &Vector) -> Result<Vector, RunError> {
    let mut y = x.like();
    operator.jacobian().apply_sparse(x, &mut y)?;
    Ok(y)
}

/// Each field with a mean must be free up to a constant: J e = 0 and eᵀ J = 0 at a state, but for quadrature, which the operator
/// is told.
///
/// # Errors
///
/// [`RunError::NotUpToAConstant`].
pub(super) fn check_constants(
    operator: &mut Operator,
    system: System<'_>,
    u: &Vector,
) -> Result<(), RunError> {
    let on = system.on;
    if fields_with_mean(on).next().is_none() {
        return Ok(());
    }
    operator.linearise(u)?;
    let mut inexact = operator.has_inexact_constants();
    for field in fields_with_mean(on) {
        let found = Freedom::of(operator, on, field)?;
        let reads_itself = system.form.integrals.iter().flat_map(|own| &own.jacobian).any(|term| {
            (term.test.field, term.trial.field) == (field, field) && term.trial.part == Part::Value
        });
        if found.moves && (reads_itself || found.ratio > NOT_QUADRATURE) {
            let field = system.form.fields[field].name.clone();
            return Err(RunError::NotUpToAConstant { field });
        }
        inexact |= found.moves || found.leaks;
    }
    operator.set_inexact_constants(inexact);
    Ok(())
}

/// What J does with the constants of a field.
struct Freedom {
    /// Whether J e is more than rounding.
    moves: bool,
    /// The largest entry of J e over what random entries of the field give in its row.
    ratio: f64,
    /// Whether eᵀ J is more than rounding.
    leaks: bool,
}

impl Freedom {
    fn of(operator: &Operator, on: &Discretisation, field: usize) -> Result<Self, RunError> {
        let x = operator.random_direction(5)?;
        let bound = ROUNDING * epsilon(x.precision());
        let rows = response(operator, &x)?.restricted_to(on.dofs_of(field));
        let own = response(operator, &x.restricted_to(on.dofs_of(field)))?;
        let (of_rows, of_own) = (rows.sum_of_sizes(), own.sum_of_sizes());
        let mut found = Self { moves: false, ratio: 0.0, leaks: false };
        for ones in operator.constants_of(field) {
            // Written so that what is no number is no reason.
            found.moves |= response(operator, ones)?.sum_of_sizes() > bound * of_own;
            found.leaks |= rows.dot(ones).abs() > bound * of_rows;
        }
        if found.moves {
            found.ratio = largest_ratio(operator, on, field)?;
        }
        Ok(found)
    }
}

/// The largest entry of J e over what random entries of the field give in its row.
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
