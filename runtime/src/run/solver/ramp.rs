//! A form in load steps: a problem's system with a load → [`Loaded`].

use super::{System, values};
use crate::coupling::Coupling;
use crate::doing::doing;
use crate::expression::Parameters;
use crate::operator::Operator;
use crate::run::RunError;
use crate::solve::{
    Approximation, Continue, FieldDofs, LinearOperator, Loaded, Local, NewtonSettings,
    NonlinearSystem, NullSpace, OperatorError, Progress, Report, join, newton, silent,
};
use crate::vector::Vector;
use std::sync::Arc;

/// What grows with the load.
pub(super) enum Load {
    /// The values of all conditions, in proportion.
    Everything {
        /// At full load, 0 in free unknowns.
        boundary: Vector,
    },
    /// A parameter; conditions, sources and data follow it.
    Param(usize),
}

/// A form in load steps.
pub(super) struct Ramp<'a> {
    pub(super) operator: &'a mut Operator,
    pub(super) system: System<'a>,
    pub(super) load: Load,
    /// The load.
    pub(super) at: f64,
    /// What has no value at some load.
    pub(super) failed: Option<RunError>,
}

impl Ramp<'_> {
    /// The parameters at the load.
    pub(super) fn parameters(&self) -> Parameters {
        let mut parameters = self.system.parameters.clone();
        if let Load::Param(param) = self.load {
            let grown = parameters.range(param);
            parameters.values[grown].iter_mut().for_each(|value| *value *= self.at);
        }
        parameters
    }

    /// Evaluates anew what depends on a parameter.
    fn evaluate(&mut self, param: usize, boundary: &mut Vector) -> Result<(), RunError> {
        let (System { on, prescribed, .. }, parameters) = (self.system, self.parameters());
        self.operator.set_params(&parameters.values)?;
        self.operator.set_conditions(&values(&prescribed.conditions(on, &parameters)?))?;
        if prescribed.aux_depends_on(param) {
            self.operator.set_aux(&prescribed.aux(on, &parameters)?)?;
        }
        boundary.fill(0.0);
        Ok(self.operator.impose(boundary)?)
    }
}

impl Loaded for Ramp<'_> {
    fn set_load(&mut self, s: f64, boundary: &mut Vector) -> Result<(), OperatorError> {
        self.at = s;
        match &self.load {
            Load::Everything { boundary: full } => {
                boundary.copy_from(full);
                boundary.scale(s);
                Ok(())
            }
            &Load::Param(param) => self.evaluate(param, boundary).map_err(|error| {
                let message = error.to_string();
                self.failed = Some(error);
                OperatorError::new(message)
            }),
        }
    }
}

impl NonlinearSystem for Ramp<'_> {
    fn size(&self) -> usize {
        NonlinearSystem::size(self.operator)
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.operator.residual(u, r)
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.operator.linearise(u)
    }

    fn complete(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.operator.complete(u)
    }

    fn null_space(&self) -> Option<&NullSpace> {
        self.operator.null_space()
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self.operator.jacobian()
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.operator.diagonal(diagonal)
    }

    fn symmetric(&self) -> bool {
        self.operator.symmetric()
    }

    fn fields(&self) -> Vec<FieldDofs> {
        self.operator.fields()
    }

    fn local(&self) -> Option<Arc<Local>> {
        self.operator.local()
    }

    fn coupling(&self) -> Option<Coupling> {
        self.operator.coupling()
    }

    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        self.operator.precondition()
    }

    fn preconditioner(&self) -> Option<&dyn Approximation> {
        self.operator.preconditioner()
    }

    fn forget_preconditioner(&mut self) {
        self.operator.forget_preconditioner();
    }
}

/// The parts of a parameter with which a sweep solves, one after another.
const RUNGS: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// Solves from a start with a tenth of a parameter four times over, each from the solution before, where the solve from there with all
/// of it has failed: the active set of a contact hardly changes with the stiffness. `u` is where that solve stopped, and stays so if
/// the sweep fails, too.
///
/// # Errors
///
/// The operator cannot be applied.
pub(super) fn sweep(
    (operator, system, settings): (&mut Operator, System<'_>, NewtonSettings),
    param: usize,
    (start, failed): (Vector, Report),
    u: &mut Vector,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Report, RunError> {
    let (name, mut boundary) = (&system.form.params[param].name, u.like());
    let mut ramp = Ramp { operator, system, load: Load::Param(param), at: 1.0, failed: None };
    let (mut at, mut all) = (start, failed.clone());
    let mut has_failed = false;
    for rung in RUNGS {
        let _said = doing(format!("sweep of `{name}`, {rung:e} of its value"));
        // What has no value at a part of the parameter ends the sweep.
        has_failed = ramp.set_load(rung, &mut boundary).is_err();
        if !has_failed {
            ramp.operator.impose(&mut at)?;
            let report = newton(&mut ramp, &mut at, settings, observe, &mut silent)?;
            has_failed = !report.outcome.is_success();
            all = join(all, report);
        }
        if has_failed {
            break;
        }
    }
    ramp.set_load(1.0, &mut boundary)?;
    if has_failed {
        return Ok(failed);
    }
    u.copy_from(&at);
    all.notes.push(format!(
        "newton failed from the start: a sweep of `{name}` over five decades, each solve from the one before, led to the solution"
    ));
    Ok(all)
}
