//! What ends the levels: the matrix of the coarsest one → its factors.

use super::super::RunError;
use super::super::kernels::compile_operator;
use super::Problem;
use crate::assembly::{Assembly, Representation};
use crate::compile::Target;
use crate::device::DeviceError;
use crate::discretisation::Discretisation;
use crate::factor::{AVAILABLE, Analysis, Factors};
use crate::operator::Operator;
use crate::solve::{Coarsest, LinearOperator, NonlinearSystem, OperatorError};
use crate::vector::{Precision, Vector};
use kernels_gen::plan::Elements;
use std::sync::Arc;

/// Unknowns up to which a matrix is factorised.
const FACTORISED: usize = 20_000;

/// The coarsest level.
pub(super) struct Bottom {
    operator: Operator,
    analysis: Analysis,
    factors: Option<Factors>,
    /// Whether the matrix is the same at every state.
    linear: bool,
}

impl Bottom {
    /// Of what is below all levels; within, how many unknowns that has where they are too many.
    pub(super) fn new(
        of: &Problem<'_>,
        elements: Elements,
        on: Arc<Discretisation>,
    ) -> Result<Result<Self, usize>, RunError> {
        let n = on.n_dofs();
        if !AVAILABLE || n > FACTORISED {
            return Ok(Err(n));
        }
        let how = Representation::Assembled(Assembly::fitting(of.device.is_some()));
        let target = Target { precision: Precision::F64, ..*of.target }.representing(how);
        let (params, device) = (&of.parameters.values, of.device.cloned());
        let (operator, _) = compile_operator(of.form, &elements, &on, params, &target, device)?;
        let (analysis, factors, linear) = (Analysis::default(), None, of.is_linear());
        Ok(Ok(Self { operator, analysis, factors, linear }))
    }
}

impl Coarsest for Bottom {
    fn linearise(&mut self, u: &Vector) -> Result<bool, OperatorError> {
        if self.linear && self.factors.is_some() {
            return Ok(true);
        }
        let mut state = self.operator.vector();
        state.convert_from(u);
        self.operator.linearise(&state)?;
        let matrix = match LinearOperator::matrix(&self.operator)? {
            Some(matrix) => matrix,
            None => {
                let missing =
                    || OperatorError::new("the matrix of the coarsest level is too dense");
                let coupling = self.operator.coupling().ok_or_else(missing)?;
                coupling.matrix(&self.operator, &state)?
            }
        };
        match self.analysis.factorise(&matrix, true) {
            Ok(factors) => self.factors = Some(factors),
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.factors = None;
        self.operator.set_params(params)
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        let mut numbers = b.to_vec();
        match &self.factors {
            Some(factors) => factors.solve(&mut numbers),
            None => return Err(OperatorError::new("the coarsest level has no factors")),
        }
        x.set(&numbers);
        Ok(())
    }

    fn words(&self) -> String {
        match &self.factors {
            Some(factors) => format!("direct ({})", factors.word()),
            None => "direct".to_owned(),
        }
    }
}
