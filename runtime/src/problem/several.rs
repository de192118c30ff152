//! Errors of several processes: which are of all of them, and which one has alone.

use super::RunError;
use crate::estimate::EstimateError;
use crate::mesh::Mesh;
use crate::processes::any;
use crate::space::discretisation::WholeError;

impl RunError {
    /// Whether it is of values at some places, which may lie at one of several processes, not of a solve. Whoever asks for such values tells
    /// it to all, so that the others have what they heard of it, [`RunError::Elsewhere`].
    pub fn is_of_data(&self) -> bool {
        matches!(
            self,
            Self::Estimate(EstimateError::NotFinite { .. })
                | Self::Condition { .. }
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
                    | Self::Incompatible { .. }
                    | Self::Unfixed(_)
                    | Self::Setting(_)
                    | Self::Singular(_)
                    | Self::Unstable(_)
                    | Self::NotFinite { .. }
                    | Self::LoadStep { .. }
                    | Self::Difficult { .. }
                    | Self::Degenerate(_)
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
