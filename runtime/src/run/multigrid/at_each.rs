//! Factors of the whole matrix at each of several processes: a system whose unknowns are in parts → an approximation of J⁻¹ that is as
//! good as its rounding.
//!
//! Small systems that iterations serve badly, saddle points above all, are factorised by each process as one alone would, to the
//! same bits. A product with J is still of the parts, so that what the two differ by (another quadrature, rounding) is made good
//! by iterations: one or two.

use super::super::RunError;
use super::super::kernels::compile_operator;
use super::Problem;
use crate::device::DeviceError;
use crate::discretisation::Discretisation;
use crate::factor::{Analysis, Factors};
use crate::operator::Operator;
use crate::sharing::Sharing;
use crate::solve::{Approximation, Figures, LinearOperator, NonlinearSystem, OperatorError};
use crate::vector::Vector;
use std::sync::Arc;

/// The factors, and how parts lie in the whole.
pub(in crate::run) struct AtEach {
    operator: Operator,
    part: Arc<Discretisation>,
    sharing: Arc<Sharing>,
    /// The place in the whole system of each unknown of this process.
    places: Vec<usize>,
    analysis: Analysis,
    factors: Option<Factors>,
    symmetric: bool,
    /// Whether the matrix is the same at every state.
    linear: bool,
}

impl Problem<'_> {
    /// What factorises the whole matrix at each process; none where data is not known on the whole mesh, or there is one process.
    ///
    /// # Errors
    ///
    /// An operator that cannot be made.
    pub(in crate::run) fn at_each(&self) -> Result<Option<AtEach>, RunError> {
        let Some(cut) = self.on.mesh.cut() else { return Ok(None) };
        let (whole, degree) = (Arc::clone(cut.whole()), self.elements.degree);
        let Some((elements, on)) =
            self.prescribed.at(self.form, whole, degree, self.parameters, None)?
        else {
            return Ok(None);
        };
        let (Some(places), Some(sharing)) = (self.on.places_in(&on), self.on.sharing()) else {
            return Ok(None);
        };
        let (params, on) = (&self.parameters.values, Arc::new(on));
        let (operator, _) = compile_operator(self.form, &elements, &on, params, self.target, None)?;
        Ok(Some(AtEach {
            operator,
            part: Arc::clone(self.on),
            sharing,
            places,
            analysis: Analysis::default(),
            factors: None,
            symmetric: self.is_symmetric(),
            linear: self.is_linear(),
        }))
    }
}

impl AtEach {
    /// What all processes have, on the whole mesh.
    fn gather(&self, own: &Vector) -> Vec<f64> {
        let all = self.operator.discretisation().n_dofs();
        self.sharing.gathered(&own.to_vec(), &self.places, all)
    }
}

impl LinearOperator for AtEach {
    fn size(&self) -> usize {
        self.part.n_dofs()
    }

    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let missing = || OperatorError::new("the processes have no factors");
        let factors = self.factors.as_ref().ok_or_else(missing)?;
        let mut all = self.gather(r);
        factors.solve(&mut all);
        z.set(&self.places.iter().map(|&place| all[place]).collect::<Vec<f64>>());
        Ok(())
    }
}

impl Approximation for AtEach {
    fn take_state(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        if self.linear && self.factors.is_some() {
            return Ok(Ok(()));
        }
        let mut state = self.operator.vector();
        state.set(&self.gather(u));
        self.operator.linearise(&state)?;
        let missing = || OperatorError::new("the matrix is too dense for factors");
        let coupling = NonlinearSystem::coupling(&self.operator).ok_or_else(missing)?;
        let matrix = coupling.matrix(&self.operator, &state)?;
        let made = self.analysis.factorise(&matrix, self.symmetric);
        Ok(match made {
            Ok(factors) => {
                self.factors = Some(factors);
                Ok(())
            }
            Err(error) => Err(format!("factors of the whole matrix: {error}")),
        })
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.factors = None;
        self.operator.set_params(params)
    }

    fn figures(&self) -> Vec<Figures> {
        Vec::new()
    }
}
