//! Central differences in time for ü = M⁻¹ (−F).

use super::{ExplicitData, ExplicitScheme};
use crate::problem::RunError;
use crate::problem::time::stability::ConjugatePair;
use crate::problem::time::stages::ProblemStages;
use crate::solve::time::TimeState;
use fem_dsl::problem::Mass as Kind;
use std::sync::Arc;

/// Leapfrog scheme.
pub(super) struct Leapfrog {
    pub(super) mass: Kind,
    /// Length of the last step while its F is not yet applied to the velocity, which lags half a step behind; only with
    /// a diagonal mass.
    pub(super) pending: Option<f64>,
}

impl ExplicitScheme for Leapfrog {
    fn mass(&self) -> Kind {
        self.mass
    }

    fn longest_step(&self, largest: f64, _: Option<ConjugatePair>, _: (f64, f64)) -> f64 {
        2.0 / f64::sqrt(largest)
    }

    fn confirm(
        &mut self,
        data: &mut ExplicitData,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        let Some(length) = self.pending.take() else { return Ok(()) };
        let TimeState { time, u, v, a } = &mut data.state;
        let a = a.get_or_insert_with(|| u.like());
        v.kick(0.5 * length, a, &data.r, &data.mass.inverse);
        if staged.settings.timed[0] {
            staged.hold_rate(1, *time, v)?;
            staged.hold_rate(2, *time, a)?;
        }
        Ok(())
    }

    /// Takes a leapfrog step: v ← v + c ü, with c from the middle of the last step to that of this one, then u ← u + Δt
    /// v. With a diagonal mass, ü is fused into one pass over the vectors, and a device replays steps of equal length.
    fn step(
        &mut self,
        data: &mut ExplicitData,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        let TimeState { time, u, v, a } = &mut data.state;
        let on = data.next.array().map(|(on, _)| Arc::clone(on));
        if let Some(on) = on.filter(|_| self.pending == Some(length) && staged.is_repeatable()) {
            *time += length;
            staged.arrive(*time, [None; 2])?;
            let (next, r, inverse) = (&mut data.next, &mut data.r, &data.mass.inverse);
            data.alike.step(length, &on, || {
                next.leap((length, length), v, u, r, inverse);
                staged.residual_here(next, r)
            })?;
            std::mem::swap(u, &mut data.next);
            data.alike.swapped();
            return Ok(());
        }
        let (next, r, inverse) = (&mut data.next, &mut data.r, &data.mass.inverse);
        match (self.pending, &a) {
            (Some(before), _) => next.leap((length, 0.5 * (before + length)), v, u, r, inverse),
            (None, Some(a)) => next.drift((length, 0.5 * length), v, u, a),
            (None, None) => next.drift((length, 0.0), v, u, u),
        }
        *time += length;
        let lumped = data.mass.kind == Kind::Lumped;
        // A diagonal mass does not couple free DoFs with the rates of constrained ones.
        let held = if lumped { None } else { staged.held_rate(2, *time)? };
        staged.residual_at(*time, next, [None, held.as_ref()], r)?;
        std::mem::swap(u, next);
        data.alike.swapped();
        if lumped {
            self.pending = Some(length);
        } else {
            let rate = a.get_or_insert_with(|| u.like());
            data.mass.solve(r, rate)?;
            if held.is_some() {
                staged.hold_rate(2, *time, rate)?;
            }
            v.axpy(0.5 * length, rate);
            if held.is_some() {
                staged.hold_rate(1, *time, v)?;
            }
        }
        Ok(())
    }
}
