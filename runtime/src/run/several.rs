//! Errors of several processes: which are of all of them, and which one has alone.

use super::RunError;
use crate::discretisation::WholeError;
use crate::estimate::EstimateError;
use crate::mesh::Mesh;

impl RunError {
    /// Whether it is of values at some places, which may lie at one of several processes, not of a solve.
    pub fn is_of_data(&self) -> bool {
        matches!(
            self,
            Self::Estimate(EstimateError::NotFinite { .. })
                | Self::Condition { .. }
                | Self::AuxNotFinite { .. }
                | Self::InitialNotFinite { .. }
                | Self::ExactNotFinite { .. }
                | Self::Elsewhere { .. }
        )
    }

    /// Whether all of several processes have come to it together: it is of numbers that all have, wherever their cells lie.
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::TimeStep { source, .. } | Self::Unconverged { source, .. } => source.is_of_all(),
            _ => matches!(
                self,
                Self::Elsewhere { .. }
                    | Self::Plan(_)
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
    let (Some(cut), true) = (mesh.cut(), own.as_ref().err().is_none_or(RunError::is_of_data))
    else {
        return own;
    };
    let group = cut.group();
    let said = own.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let all = group.gather(said.as_bytes());
    match all.iter().position(|said| !said.is_empty()) {
        Some(rank) if rank != group.rank() => {
            let text = String::from_utf8_lossy(&all[rank]).into_owned();
            Err(RunError::Elsewhere { rank, size: group.size(), text })
        }
        _ => own,
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
