//! A form in load steps: a problem's system with a load → [`Loaded`].

use super::{System, values};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::solve::{
    Continue, Loaded, NewtonSettings, NonlinearSystem, OperatorError, Progress, Report, Wrapper,
    join, newton, silent,
};
use crate::support::doing::doing;
use crate::support::expression::Parameters;

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

/// The parts of a parameter that multiplies a switch with which a sweep solves, one after another.
const DECADES: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// Solves at most between a parameter for which the Jacobian is regular at the start and its own value.
const BETWEEN: f64 = 16.0;

/// A sweep of a parameter, each solve from the one before, where Newton's method has failed from the start.
pub(super) struct Sweep {
    /// Its number.
    param: usize,
    /// The parts of its value, in order.
    rungs: Vec<f64>,
    note: String,
}

impl Sweep {
    /// The sweep that may help from a start: of a parameter that multiplies a switch, since the active set of a contact hardly changes
    /// with the stiffness; or from a value of a parameter for which the Jacobian is regular there.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied.
    pub(super) fn of(
        operator: &mut Operator,
        system: System<'_>,
        start: &Vector,
    ) -> Result<Option<Self>, RunError> {
        if let Some((param, _)) = system.param_of_switches() {
            let name = &system.form.params[param].name;
            let note = format!(
                "newton failed from the start: a sweep of `{name}` over five decades, each solve from the one before, led to the solution"
            );
            return Ok(Some(Self { param, rungs: DECADES.to_vec(), note }));
        }
        let degenerate = system.degenerate(operator, start)?;
        let Some((name, other, own)) = degenerate.and_then(|found| found.param) else {
            return Ok(None);
        };
        let param = system.form.params.iter().position(|param| param.name == name);
        let Some(param) = param.filter(|_| own != 0.0) else { return Ok(None) };
        let count = (own - other).abs().ceil().clamp(1.0, BETWEEN);
        let value = |step: usize| other + (own - other) * step as f64 / count;
        let rungs = (0..count as usize).map(|step| value(step) / own).chain([1.0]);
        let note = format!(
            "the Jacobian is singular at the start: a sweep of `{name}` from {other} to {own}, each solve from the one before, led to \
             the solution"
        );
        Ok(Some(Self { param, rungs: rungs.collect(), note }))
    }

    /// Solves with one part of the parameter after another. `u` is where the solve with all of it has stopped, and stays so if the sweep
    /// fails, too.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied.
    pub(super) fn solve(
        self,
        (operator, system, settings): (&mut Operator, System<'_>, NewtonSettings),
        (start, failed): (Vector, Report),
        u: &mut Vector,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        let (name, mut boundary) = (&system.form.params[self.param].name, u.like());
        let load = Load::Param(self.param);
        let mut ramp = Ramp { operator, system, load, at: 1.0, failed: None };
        let (mut at, mut all) = (start, failed.clone());
        let mut has_failed = false;
        for rung in self.rungs {
            let _said = doing(format!("sweep of `{name}`, {rung:.3e} of its value"));
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
        all.notes.push(self.note);
        Ok(all)
    }
}
