//! Factors of the whole matrix at each of several processes: a system whose unknowns are in parts → an approximation of J⁻¹ that is as
//! good as its rounding.
//!
//! Small systems that iterations serve badly, saddle points above all, are factorised by each process as one alone would. A product
//! with J is still of the parts, so that what the two differ by (another quadrature, rounding) is made good
//! by iterations: one or two.
//!
//! Factors of one state serve others that are near: they are made anew once they have been applied so often that new ones would
//! have been cheaper, in the middle of a solve, too, which must allow that (FGMRES does). All processes count the same.
//!
//! The matrix is that of the kernels where the unknowns are. Devices add up in an order of their own, so that what processes find
//! there differs by rounding: of each unknown what the first process has counts.

use super::super::RunError;
use super::super::kernels::compile_operator;
use super::super::plan::cost::worth_matrices;
use super::Problem;
use crate::algebra::coupling::Coupling;
use crate::algebra::factor::{Analysis, FactorError, Factors};
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::Operator;
use crate::processes::any;
use crate::processes::sharing::Sharing;
use crate::solve::{
    Approximation, Figures, LinearOperator, NonlinearSystem, NullSpace, OperatorError, pinned,
};
use crate::space::discretisation::Discretisation;
use std::sync::{Arc, Mutex, PoisonError};

/// Products with the factors of another state after which those of this one are made: making them takes as long as some tens.
const KEPT: usize = 10;

/// Products at one state from which on those of another are not near enough for the next.
const SLOW: usize = 8;

/// The factors, and how parts lie in the whole.
pub(in crate::problem) struct AtEach {
    part: Arc<Discretisation>,
    whole: Arc<Discretisation>,
    sharing: Arc<Sharing>,
    /// The place in the whole system of each unknown of this process.
    places: Vec<usize>,
    symmetric: bool,
    /// Whether the matrix is the same at every state.
    linear: bool,
    /// What is made when factors are, in the middle of a solve, too.
    inner: Mutex<Inner>,
}

/// The whole system at one process.
struct Inner {
    operator: Operator,
    coupling: Coupling,
    analysis: Analysis,
    factors: Option<Factors>,
    /// The last state, of the whole.
    state: Vector,
    /// Products since the last state came, where the factors are those of one before.
    stale: Option<usize>,
}

impl Problem<'_> {
    /// What factorises the whole matrix at each process; none where data is not known on the whole mesh, or there is one process.
    ///
    /// # Errors
    ///
    /// An operator that cannot be made.
    pub(in crate::problem) fn at_each(&self) -> Result<Option<AtEach>, RunError> {
        let Some(cut) = self.on.mesh.cut() else { return Ok(None) };
        let (whole, degree) = (Arc::clone(cut.whole()?), self.elements.degree);
        let Some((elements, on)) =
            self.prescribed.at(self.form, whole, degree, self.parameters, None)?
        else {
            return Ok(None);
        };
        let (Some(places), Some(sharing)) = (self.on.places_in(&on), self.on.sharing()) else {
            return Ok(None);
        };
        let (params, on) = (&self.parameters.values, Arc::new(on));
        let matrices = Representation::Assembled(Assembly::fitting(self.device.is_some()));
        let target = match on.affine.is_empty() && worth_matrices(&on) {
            true => self.target.representing(matrices),
            false => *self.target,
        };
        let device = self.device.cloned();
        let (operator, _) = compile_operator(self.form, &elements, &on, params, &target, device)?;
        let missing = || OperatorError::new("the matrix is too dense for factors");
        let coupling = NonlinearSystem::coupling(&operator).ok_or_else(missing)?;
        let (analysis, state) = (Analysis::default(), operator.zeros());
        let inner = Inner { operator, coupling, analysis, factors: None, state, stale: None };
        Ok(Some(AtEach {
            part: Arc::clone(self.on),
            whole: on,
            sharing,
            places,
            symmetric: self.is_symmetric(),
            linear: self.is_linear(),
            inner: Mutex::new(inner),
        }))
    }
}

impl Inner {
    /// The factors at the last state; within, why there are none.
    fn factorise(
        &mut self,
        symmetric: bool,
    ) -> Result<Result<&Factors, FactorError>, OperatorError> {
        self.stale = None;
        self.operator.linearise(&self.state)?;
        let matrix = self.coupling.matrix(&self.operator, &self.state)?;
        let pins = self.operator.null_space().map_or_else(Vec::new, NullSpace::pins);
        let made = self.analysis.factorise(&pinned(matrix, &pins), symmetric);
        Ok(made.map(|factors| &*self.factors.insert(factors)))
    }
}

/// Why there are no factors, in words.
fn told(error: &FactorError) -> String {
    format!("factors of the whole matrix: {error}")
}

impl AtEach {
    /// What the whole is discretised on.
    pub(in crate::problem) fn whole(&self) -> &Arc<Discretisation> {
        &self.whole
    }

    /// Whether the matrix of the factors is positive definite to working precision, at all processes.
    pub(in crate::problem) fn is_definite(&mut self) -> bool {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        let definite = inner.factors.as_ref().is_some_and(Factors::is_definite);
        !any(&**self.sharing.group(), !definite)
    }

    /// Takes a state, with the factors there where there are none yet; within, why there are none.
    pub(in crate::problem) fn take(
        &mut self,
        u: &Vector,
    ) -> Result<Result<(), FactorError>, OperatorError> {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.linear && inner.factors.is_some() {
            return Ok(Ok(()));
        }
        let all = self.sharing.gathered(&u.to_vec(), &self.places, inner.state.len());
        // Who comes with one state again was not served; nor well who had to apply them so often before.
        let again = inner.state.to_vec() == all;
        let served = !again && inner.stale.is_none_or(|applied| applied < SLOW);
        inner.state.set(&all);
        if inner.factors.is_some() && served {
            inner.stale = Some(0);
            return Ok(Ok(()));
        }
        Ok(inner.factorise(self.symmetric)?.map(|_| ()))
    }
}

impl LinearOperator for AtEach {
    fn size(&self) -> usize {
        self.part.n_dofs()
    }

    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.sharing.gathered(&r.to_vec(), &self.places, inner.state.len());
        let late = inner.stale.as_mut().is_some_and(|applied| {
            *applied += 1;
            *applied > KEPT
        });
        let null = inner.operator.null_space();
        null.iter().for_each(|null| null.project_entries(&mut all));
        let factors = match &inner.factors {
            Some(factors) if !late => factors,
            _ => inner
                .factorise(self.symmetric)?
                .map_err(|error| OperatorError::new(told(&error)))?,
        };
        factors.solve(&mut all);
        z.set(&self.places.iter().map(|&place| all[place]).collect::<Vec<f64>>());
        if z.array().is_some() {
            z.agree();
        }
        Ok(())
    }
}

impl Approximation for AtEach {
    fn take_state(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        Ok(self.take(u)?.map_err(|error| told(&error)))
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.linear {
            inner.factors = None;
        }
        inner.operator.set_params(params)
    }

    fn figures(&self) -> Vec<Figures> {
        Vec::new()
    }
}
