//! Checkpoints of the integrator: take and resume. Both discard factors and levels, so that the run goes on with
//! identical bits in either case.

use super::super::RunError;
use super::super::checkpoint::{Checkpoint, ProblemIdentity, WholeMeshMap, of_states, refused};
use super::stages::ProblemStages;
use super::stored_states::{StoredHistory, resumed, set_time};
use super::{Integrator, point_states};
use crate::algebra::vector::Vector;
use fem_dsl::problem::{Problem, Scheme};
use std::collections::VecDeque;

impl Checkpoint {
    /// Takes a checkpoint of the integrator, which discards all data that a restarted run would not have. Collective.
    pub(super) fn take(
        integrator: &mut Integrator,
        (problem, scheme): (&Problem, Scheme),
        (length, shown): (f64, usize),
        staged: &mut ProblemStages<'_>,
        whole: &WholeMeshMap,
    ) -> Result<Self, RunError> {
        let numbers = |vector: &Vector| whole.gathered(vector.to_vec());
        let StoredHistory { past, largest, begun } = StoredHistory::of(integrator, &numbers);
        let second = integrator.state().a.is_some();
        let largest = [largest, staged.largest()];
        let identity = of_states(scheme, &problem.form);
        let (mesh, of) =
            (Some(whole.mesh), Some(ProblemIdentity::of(problem, staged.parameters())));
        let points = point_states::gathered(staged, whole);
        let left = Self {
            identity,
            mesh,
            problem: of,
            begun,
            second,
            past,
            points,
            length,
            largest,
            shown,
        };
        forget(integrator, scheme, staged)?;
        Ok(left)
    }

    /// Restores the integrator; adds notes on differences from the problem that wrote the checkpoint.
    ///
    /// # Errors
    ///
    /// A checkpoint of another form, scheme or mesh.
    pub(super) fn resume(
        &self,
        (problem, scheme): (&Problem, Scheme),
        like: &Vector,
        staged: &mut ProblemStages<'_>,
        whole: &WholeMeshMap,
        notes: &mut Vec<String>,
    ) -> Result<Integrator, RunError> {
        self.check_mesh(whole)?;
        if self.identity != of_states(scheme, &problem.form) {
            return Err(refused("is of another scheme, or of a form with other fields"));
        }
        if let Some(left) = &self.problem {
            notes.extend(
                left.compare(&ProblemIdentity::of(problem, staged.parameters()), &problem.form)?,
            );
        }
        point_states::resume(staged, whole, &self.points)?;
        let part = |numbers: &[f64]| Ok::<_, RunError>(whole.part(numbers));
        let past = self.past.iter().map(|past| past.state(like, &part));
        let past = past.collect::<Result<VecDeque<_>, _>>()?;
        let [largest, begun] = self.largest;
        staged.set_largest(begun);
        resumed((scheme, self.second), past, (largest, self.begun), staged)
    }
}

/// Discards factors, levels and other data of earlier steps.
fn forget(
    integrator: &mut Integrator,
    scheme: Scheme,
    staged: &mut ProblemStages<'_>,
) -> Result<(), RunError> {
    staged.forget();
    if let Integrator::Explicit(explicit) = integrator {
        let state = explicit.state().clone();
        set_time(staged, state.time);
        *integrator = Integrator::new(scheme, state, None, staged)?;
        if let Integrator::Explicit(explicit) = integrator {
            explicit.quieten(staged)?;
        }
    }
    Ok(())
}
