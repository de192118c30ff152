//! A form in load steps: a problem's system with a load → [`Loaded`].

use super::{System, values};
use crate::doing::doing;
use crate::expression::Parameters;
use crate::operator::Operator;
use crate::run::RunError;
use crate::solve::{
    Continue, Loaded, NewtonSettings, NonlinearSystem, OperatorError, Progress, Report, Wrapper,
    join, newton, silent,
};
use crate::vector::Vector;

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

impl Wrapper for Ramp<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.operator
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.operator
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
