//! Errors of parallel runs: classification into collective errors and errors of one process.

use super::{AdaptivityError, DataError, RunError, SetupError, TimeError};
use crate::estimate::EstimateError;
use crate::mesh::Mesh;
use crate::processes::any;
use crate::space::discretisation::WholeError;

impl RunError {
    /// Returns whether the error concerns values at points, which may lie on one process only. Evaluations of such
    /// values broadcast the error, so that the other processes return [`RunError::Elsewhere`].
    pub fn is_of_data(&self) -> bool {
        use DataError::{
            AuxNotFinite, BoundNotFinite, BoundsCross, Condition, ExactNotFinite, InitialNotFinite,
            NoAuxInRegion, StateNotFinite,
        };
        match self {
            Self::Adaptivity(error) => {
                matches!(**error, AdaptivityError::Estimate(EstimateError::NotFinite { .. }))
            }
            Self::Data(error) => matches!(
                error,
                Condition { .. }
                    | StateNotFinite { .. }
                    | BoundNotFinite { .. }
                    | BoundsCross { .. }
                    | NoAuxInRegion { .. }
                    | AuxNotFinite { .. }
                    | InitialNotFinite { .. }
                    | ExactNotFinite { .. }
            ),
            Self::Elsewhere { .. } => true,
            _ => false,
        }
    }

    /// Returns whether all processes return this error together: it concerns global quantities, or values whose
    /// evaluation broadcasts errors.
    pub fn is_of_all(&self) -> bool {
        match self {
            Self::Time(TimeError::Step { source, .. }) | Self::Unconverged { source, .. } => {
                source.is_of_all()
            }
            Self::Setup(error) => matches!(**error, SetupError::Plan(_) | SetupError::Element(_)),
            _ if self.is_of_data() => true,
            _ => matches!(
                self,
                Self::Data(DataError::ParamNotFinite { .. })
                    | Self::IllPosed(_)
                    | Self::Convergence(_)
                    | Self::Setting(_)
            ),
        }
    }
}

/// Makes a data error on any process an error on all: the one of the lowest rank. Other errors are collective already,
/// or abort the run.
pub(crate) fn together<T>(mesh: &Mesh, own: Result<T, RunError>) -> Result<T, RunError> {
    match own {
        Err(error) if !error.is_of_data() => Err(error),
        own => agree_on_error(mesh, own),
    }
}

/// Makes an error on any process an error on all: the one of the lowest rank.
pub(super) fn agree_on_error<T>(mesh: &Mesh, own: Result<T, RunError>) -> Result<T, RunError> {
    let Some(cut) = mesh.cut() else { return own };
    let group = &**cut.group();
    // In the usual case without errors, one reduction suffices.
    if !any(group, own.is_err()) {
        return own;
    }
    // A process with an error from another process contributes none.
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
