//! Load steps ([`LoadableSystem`]) and parameter sweeps of a problem.

use super::{Context, values};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::solve::{
    Continue, LoadableSystem, NewtonOptions, NonlinearSystem, OperatorError, Progress, Report,
    Wrapper, join, newton, silent,
};
use crate::support::expression::Parameters;
use crate::support::progress::doing;

/// Quantity scaled by the load factor.
pub(super) enum LoadQuantity {
    /// The values of all conditions.
    Everything {
        /// Condition values at full load, 0 in free degrees of freedom.
        boundary: Vector,
    },
    /// A parameter, which conditions, sources and data may depend on.
    Param(usize),
}

/// A system with a load factor.
pub(super) struct LoadedSystem<'a> {
    pub(super) operator: &'a mut Operator,
    pub(super) context: &'a Context,
    pub(super) load: LoadQuantity,
    /// Load factor.
    pub(super) at: f64,
    /// Error of an evaluation at some load factor.
    pub(super) failed: Option<RunError>,
}

impl LoadedSystem<'_> {
    /// Returns the parameters at the load factor.
    pub(super) fn parameters(&self) -> Parameters {
        let mut parameters = self.context.parameters.clone();
        if let LoadQuantity::Param(param) = self.load {
            let grown = parameters.range(param);
            parameters.values[grown].iter_mut().for_each(|value| *value *= self.at);
        }
        parameters
    }

    /// Evaluates conditions and data that depend on a parameter.
    fn evaluate(&mut self, param: usize, boundary: &mut Vector) -> Result<(), RunError> {
        let (Context { on, prescribed, .. }, parameters) = (self.context, self.parameters());
        self.operator.set_params(&parameters.values)?;
        self.operator.set_conditions(&values(&prescribed.conditions(on, &parameters)?))?;
        if prescribed.aux_depends_on(param) {
            self.operator.set_aux(&prescribed.aux(on, &parameters)?)?;
        }
        boundary.fill(0.0);
        Ok(self.operator.impose(boundary)?)
    }
}

impl LoadableSystem for LoadedSystem<'_> {
    fn set_load(&mut self, s: f64, boundary: &mut Vector) -> Result<(), OperatorError> {
        self.at = s;
        match &self.load {
            LoadQuantity::Everything { boundary: full } => {
                boundary.copy_from(full);
                boundary.scale(s);
                Ok(())
            }
            &LoadQuantity::Param(param) => self.evaluate(param, boundary).map_err(|error| {
                let message = error.to_string();
                self.failed = Some(error);
                OperatorError::new(message)
            }),
        }
    }
}

impl Wrapper for LoadedSystem<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.operator
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.operator
    }
}

/// Factors of a switch's coefficient in a sweep.
const DECADES: [f64; 5] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0];
/// Maximum number of solves between a parameter value with a regular initial Jacobian and the parameter's own value.
const BETWEEN: f64 = 16.0;

/// A parameter sweep after a failed Newton solve; each solve starts from the last solution.
pub(super) struct ParameterSweep {
    /// Index of the parameter.
    param: usize,
    /// Factors of its value, in order.
    rungs: Vec<f64>,
    note: String,
}

impl ParameterSweep {
    /// Selects a sweep for an initial state. Its parameter is the coefficient of a switch, as the active set of a
    /// contact problem hardly depends on the stiffness. Otherwise it is a parameter with a value at which the initial
    /// Jacobian is regular.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied.
    pub(super) fn of(
        operator: &mut Operator,
        context: &Context,
        start: &Vector,
    ) -> Result<Option<Self>, RunError> {
        if let Some((param, _)) = context.param_of_switches() {
            let name = &context.form().params[param].name;
            let note = format!(
                "newton failed from the start: a sweep of `{name}` over five decades, each solve from the one before, led to the solution"
            );
            return Ok(Some(Self { param, rungs: DECADES.to_vec(), note }));
        }
        let degenerate = context.degenerate(operator, start)?;
        let Some((name, other, own)) = degenerate.and_then(|found| found.param) else {
            return Ok(None);
        };
        let param = context.form().params.iter().position(|param| param.name == name);
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

    /// Solves for one parameter factor after another. On entry `u` is the last iterate of the failed solve; it is kept
    /// if the sweep fails.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied.
    pub(super) fn solve(
        self,
        (operator, context, settings): (&mut Operator, &Context, NewtonOptions),
        (start, failed): (Vector, Report),
        u: &mut Vector,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        let (name, mut boundary) = (&context.form().params[self.param].name, u.like());
        let load = LoadQuantity::Param(self.param);
        let mut ramp = LoadedSystem { operator, context, load, at: 1.0, failed: None };
        let (mut at, mut all) = (start, failed.clone());
        let mut has_failed = false;
        for rung in self.rungs {
            let _said = doing(format!("sweep of `{name}`, {rung:.3e} of its value"));
            // An evaluation error at some factor ends the sweep.
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
