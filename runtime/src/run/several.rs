//! What several processes cannot do together yet, each with its error: rather none than a wrong number; and errors that one of them has.

use super::RunError;
use crate::discretisation::WholeError;
use crate::mesh::Mesh;
use crate::processes::any;
use fem_dsl::problem::{Argument, Problem};

/// Whether a problem can be solved on a mesh that is cut; where it is not cut, it can.
///
/// # Errors
///
/// What cannot be done, with what can be done instead.
pub(super) fn check_several(problem: &Problem, mesh: &Mesh) -> Result<(), RunError> {
    if mesh.cut().is_none() {
        return Ok(());
    }
    let refused = |what: &str, help: &str| {
        Err(RunError::Setting(format!("several processes cannot {what} yet\nhelp: {help}")))
    };
    if problem.eigen.as_ref().is_some_and(|own| own.preconditioner.as_deref() == Some("direct")) {
        return refused("solve by factors", "leave `preconditioner` out, or start one process");
    }
    let Some(solver) = &problem.solver else { return Ok(()) };
    let word = |key: &str| match solver.arguments.get(key) {
        Some(Argument::Word(word) | Argument::Made { name: word, .. }) => word.as_str(),
        _ => "",
    };
    match word("preconditioner") {
        by @ "algebraic" => refused(
            &format!("precondition by `{by}`"),
            "write `preconditioner: jacobi`, leave it out, or start one process",
        ),
        _ => Ok(()),
    }
}

impl RunError {
    /// Whether it is of values at some places, which may lie at one of several processes, not of a solve. Whoever asks for such values tells
    /// it to all, so that the others have what they heard of it, [`RunError::Elsewhere`].
    pub fn is_of_data(&self) -> bool {
        matches!(
            self,
            Self::Condition { .. }
                | Self::NoAuxInRegion { .. }
                | Self::AuxNotFinite { .. }
                | Self::InitialNotFinite { .. }
                | Self::ExactNotFinite { .. }
                | Self::Elsewhere { .. }
        )
    }

    /// Whether all of several processes have come to it together: it is of numbers that all have, wherever their cells lie, or of values that
    /// one lacks, which it has told the others.
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::TimeStep { source, .. } | Self::Unconverged { source, .. } => source.is_of_all(),
            _ if self.is_of_data() => true,
            _ => matches!(
                self,
                Self::Plan(_)
                    | Self::Element(_)
                    | Self::ParamNotFinite { .. }
                    | Self::NotUpToAConstant { .. }
                    | Self::Unbalanced { .. }
                    | Self::Unfixed(_)
                    | Self::Setting(_)
                    | Self::Singular(_)
                    | Self::Unstable(_)
                    | Self::NotFinite { .. }
                    | Self::LoadStep { .. }
                    | Self::Solve(_)
            ),
        }
    }
}

/// What processes have come to that did something which ends in data: where any has no value somewhere, all have the error of the
/// first. Any other error is one of all, or ends all.
pub(crate) fn together<T>(mesh: &Mesh, own: Result<T, RunError>) -> Result<T, RunError> {
    match own {
        Err(error) if !error.is_of_data() => Err(error),
        own => told(mesh, own),
    }
}

/// What all processes have come to: where any has an error, all have that of the first.
pub(super) fn told<T>(mesh: &Mesh, own: Result<T, RunError>) -> Result<T, RunError> {
    let Some(cut) = mesh.cut() else { return own };
    let group = &**cut.group();
    // As a rule there is none, and one number says so.
    if !any(group, own.is_err()) {
        return own;
    }
    // Who was told something before says nothing.
    let said = match &own {
        Ok(_) | Err(RunError::Elsewhere { .. }) => String::new(),
        Err(error) => error.to_string(),
    };
    let all = group.gather(said.as_bytes());
    match (all.iter().position(|said| !said.is_empty()), own) {
        (_, Err(known @ RunError::Elsewhere { .. })) => Err(known),
        (Some(rank), _) if rank != group.rank() => {
            let text = String::from_utf8_lossy(&all[rank]).into_owned();
            Err(RunError::Elsewhere { rank, size: group.size(), text })
        }
        (_, own) => own,
    }
}

impl From<WholeError> for RunError {
    fn from(error: WholeError) -> Self {
        match error {
            WholeError::Mesh(error) => error.into(),
            WholeError::Space(error) => error.into(),
        }
    }
}
