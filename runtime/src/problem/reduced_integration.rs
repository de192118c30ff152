//! Rank check of reduced integration: is a problem regular on its mesh, with its conditions, although the quadrature
//! loses rank in a cell?
//!
//! For a random vector z, the system J x = J z is solved. If J is regular, x is z up to the solver's tolerance. A
//! second solve with z − x in place of z then reduces it further. If J is singular, z − x is a null vector, which
//! remains.

use super::RunError;
use super::context::Context;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::solve::{
    CgSettings, NonlinearSystem, OperatorError, Outcome, Wrapper, silent, solve_affine,
};
use kernels_gen::plan::PlanError;

/// Fraction of a vector that remains after a solve if it is a null vector.
const STAYS: f64 = 0.5;

/// Checks that a problem with rank-deficient quadrature is regular at the state `u`; returns a note if the check is
/// inconclusive.
///
/// # Errors
///
/// The matrix is singular; an operator that cannot be applied.
pub(super) fn check_rank(
    operator: &mut Operator,
    context: &Context,
    u: &Vector,
) -> Result<Option<String>, RunError> {
    let Some(lost) = context.elements.lost.clone() else { return Ok(None) };
    operator.linearise(u)?;
    let singular = || Err(PlanError::Quadrature(lost.clone()).into());
    let mut z = u.like();
    z.randomise(context.on.seed(7));
    z.synchronise();
    let mut sizes = Vec::new();
    for _ in 0..2 {
        let mut b = u.like();
        operator.jacobian().apply(&z, &mut b)?;
        let linear = context.default_linear();
        let mut x = u.like();
        let mut fixed = LinearisedSystem { operator: &mut *operator, b };
        let report = solve_affine(&mut fixed, &mut x, CgSettings::default(), linear, &mut silent)?;
        match report.outcome {
            Outcome::Singular { .. } => return singular(),
            outcome if !outcome.is_success() => {
                let note = "the quadrature may make the matrix singular on this mesh: the solve that checks this has not converged";
                return Ok(Some(note.to_owned()));
            }
            _ => {}
        }
        sizes.push(z.norm());
        z.axpy(-1.0, &x);
        // Constants of fields with a mean-value constraint are legitimate null vectors.
        operator.null_space().iter().for_each(|null| null.project(&mut z));
    }
    sizes.push(z.norm());
    // Norms after the first and the second solve.
    if sizes[1] > 0.0 && sizes[2] > STAYS * sizes[1] {
        return singular();
    }
    tracing::warn!("{}", lost.note());
    Ok(None)
}

/// J x = b with the Jacobian at one state.
struct LinearisedSystem<'a> {
    operator: &'a mut Operator,
    b: Vector,
}

impl Wrapper for LinearisedSystem<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.operator
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.operator
    }

    fn residual(&self, x: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.operator.jacobian().apply(x, r)?;
        r.axpy(-1.0, &self.b);
        Ok(())
    }

    fn linearise(&mut self, _: &Vector) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Increments have neither means nor constraint constants.
    fn complete(&self, _: &mut Vector) -> Result<(), OperatorError> {
        Ok(())
    }
}
