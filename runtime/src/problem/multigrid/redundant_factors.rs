//! Redundant factorisation: each process factorises the whole matrix and applies J⁻¹ to rounding.
//!
//! Small systems on which iterations converge slowly, above all saddle points, are factorised by each process like in a
//! serial run. Products with J remain distributed. One or two iterations correct the difference between the two (other
//! quadrature, rounding).
//!
//! Factors of one state serve nearby states. They are recomputed, even within a solve, after so many applications that
//! new ones would have been cheaper. The solver must allow a variable preconditioner, as FGMRES does. All processes
//! count alike.
//!
//! Kernels assemble the matrix on the host or device of the solve. Devices add in varying order, so results differ by
//! rounding between processes; the lowest rank of each DoF determines its value.

use super::super::RunError;
use super::super::kernels::{compile_represented, product_tasks};
use super::super::plan::cost::worth_matrices;
use super::HierarchyInput;
use crate::algebra::coupling::Coupling;
use crate::algebra::factor::{FactorError, Factors, SymbolicAnalysis};
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::Operator;
use crate::processes::any;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::solve::{
    Approximation, LinearOperator, NonlinearSystem, NullSpace, OperatorError, pinned,
};
use crate::space::discretisation::Discretisation;
use std::sync::{Arc, Mutex, PoisonError};

/// Applications of outdated factors before new ones are computed: a factorisation costs as much as a few tens.
const KEPT: usize = 10;

/// Applications at one state from which outdated factors are not reused for the next.
const SLOW: usize = 8;

/// Redundant factors, with the map of this subdomain into the whole system.
pub(in crate::problem) struct RedundantFactors {
    part: Arc<Discretisation>,
    whole: Arc<Discretisation>,
    sharing: Arc<InterfaceExchange>,
    /// Index in the whole system of each local degree of freedom.
    places: Vec<usize>,
    symmetric: bool,
    /// True if the matrix is the same at every state.
    linear: bool,
    /// State that a refactorisation within a solve replaces.
    inner: Mutex<WholeSystem>,
}

/// The whole system on one process.
struct WholeSystem {
    operator: Operator,
    coupling: Coupling,
    analysis: SymbolicAnalysis,
    factors: Option<Factors>,
    /// Last state of the whole system.
    state: Vector,
    /// Applications of outdated factors since the last state; `None` if the factors are current.
    stale: Option<usize>,
}

impl HierarchyInput<'_> {
    /// Builds the redundant factorisation; `None` in a serial run or if data is unknown on the whole mesh.
    ///
    /// # Errors
    ///
    /// An operator that cannot be built.
    pub(in crate::problem) fn at_each(&self) -> Result<Option<RedundantFactors>, RunError> {
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
        let matrices = Representation::Assembled(Assembly::fitting(self.platform.device.is_some()));
        let target = match on.affine.is_empty() && worth_matrices(&on) {
            true => self.platform.target.representing(matrices),
            false => self.platform.target,
        };
        let platform = self.platform.with_target(target);
        let tasks = product_tasks(&platform.target);
        let (operator, _) =
            compile_represented(self.form, &elements, &on, params, &tasks, &platform)?;
        let missing = || OperatorError::new("the matrix is too dense for factors");
        let coupling = NonlinearSystem::coupling(&operator).ok_or_else(missing)?;
        let (analysis, state) = (SymbolicAnalysis::default(), operator.zeros());
        let inner = WholeSystem { operator, coupling, analysis, factors: None, state, stale: None };
        Ok(Some(RedundantFactors {
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

impl WholeSystem {
    /// Factorises at the last state; the inner error gives the reason of a failure.
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

/// Formats the reason of a failed factorisation.
fn reason(error: &FactorError) -> String {
    format!("factors of the whole matrix: {error}")
}

impl RedundantFactors {
    /// Returns the discretisation of the whole problem.
    pub(in crate::problem) fn whole(&self) -> &Arc<Discretisation> {
        &self.whole
    }

    /// Returns whether the factorised matrix is positive definite to working precision on all processes.
    pub(in crate::problem) fn is_definite(&mut self) -> bool {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        let definite = inner.factors.as_ref().is_some_and(Factors::is_definite);
        !any(&**self.sharing.group(), !definite)
    }

    /// Sets a state and factorises if there are no factors yet; the inner error gives the reason of a failure.
    pub(in crate::problem) fn take(
        &mut self,
        u: &Vector,
    ) -> Result<Result<(), FactorError>, OperatorError> {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.linear && inner.factors.is_some() {
            return Ok(Ok(()));
        }
        let all = self.sharing.gathered(&u.to_vec(), &self.places, inner.state.len());
        // A repeated state means that the last solve failed; many applications mean slow convergence.
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

impl LinearOperator for RedundantFactors {
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
                .map_err(|error| OperatorError::new(reason(&error)))?,
        };
        factors.solve(&mut all);
        z.set(&self.places.iter().map(|&place| all[place]).collect::<Vec<f64>>());
        if z.array().is_some() {
            z.synchronise();
        }
        Ok(())
    }
}

impl Approximation for RedundantFactors {
    fn name(&self) -> &'static str {
        "factorisation"
    }

    fn take_state(
        &mut self,
        _system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        Ok(self.take(u)?.map_err(|error| reason(&error)))
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.linear {
            inner.factors = None;
        }
        inner.operator.set_params(params)
    }

    fn apply_inverse(
        &self,
        _j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.apply(r, z)
    }
}
