//! Explicit schemes, and initial rates of all schemes, which follow from the form by the inverse of its mass.
//!
//! ```text
//! M w = −F(t, u, u̇, 0)        Δt λ ≤ c    for the largest eigenvalue λ of M⁻¹ ∂F/∂u
//! ```
//!
//! Power iteration bounds λ for each new step length, and regularly if ∂F/∂u depends on t or the solution. If the rate
//! itself has grown, iteration starts from it: the fastest growing mode dominates it, so that the bound is sharp.
//! Powers of the step itself bound the steps of Runge-Kutta formulas where ∂F/∂u is not symmetric.

mod amplification;
mod leapfrog;
mod runge_kutta;

use super::super::context::Context;
use super::super::{RunError, kernels};
use super::mass::{FormMass, highest, scattered};
use super::recorded_steps::RecordedSteps;
use super::stability::{ConjugatePair, KrylovProducts};
use super::stages::ProblemStages;
use crate::algebra::vector::Vector;
use crate::problem::TimeError;
use crate::solve::time::{TimeState, time_scheme};
use crate::solve::{LinearOperator, NonlinearSystem};
use amplification::Amplification;
use fem_dsl::point::{Input, masses_follow, stationary};
use fem_dsl::problem::{Mass as Kind, Scheme};
use kernels_gen::plan::Task;
use leapfrog::Leapfrog;
use runge_kutta::RungeKutta;

/// Power iterations for the largest eigenvalue.
const POWERS: usize = 30;
/// Power iterations for an update, from the last eigenvector.
const FEWER: usize = 6;
/// Power iterations before powers of the step: they leave out slow modes, which neither grow nor decay.
const FILTERED: usize = 4;
/// Growth factor of the rate that triggers a stability check.
const GROWN: f64 = 10.0;
/// Relative tolerance of equal step lengths.
const SAME: f64 = 1e-9;

/// Interval of checks that the solution is finite, in steps.
const CHECKED: usize = 64;

/// Computes initial rates from the form, with the mass that yields them; adds notes on unknown rates.
pub(super) fn begin(
    scheme: Scheme,
    mut state: TimeState,
    staged: &mut ProblemStages<'_>,
    notes: &mut Vec<String>,
) -> Result<(TimeState, Option<FormMass>), RunError> {
    let rates = &staged.context().form().rates;
    let read = |order: usize| rates.iter().any(|rate| rate.order == order && rate.read);
    let implicit = time_scheme::<RunError>(scheme);
    let needs = implicit.as_ref().is_none_or(|scheme| scheme.needs_initial_rates());
    if !(needs || staged.is_reported()) || rates.is_empty() {
        return Ok((state, None));
    }
    if staged.is_algebraic() {
        let of_middle = match implicit {
            Some(scheme) if !scheme.gives_rates_at_end() => {
                ", and after the first step as those inside of it"
            }
            _ => "",
        };
        notes.push(format!(
            "time derivatives at the start are reported as 0: they follow from fields that are not known there{of_middle}"
        ));
        return Ok((state, None));
    }
    let form = staged.context().form();
    let start = [Some(&state.v), state.a.as_ref()];
    let mut mass = FormMass::new(&state.u, start, staged)?;
    if implicit.is_none() && explicit_scheme(scheme).mass() == Kind::Lumped {
        mass = mass.lumped(&state.u, staged)?;
    }
    // The velocity of a first-order field is the unknown of this solve.
    let of_order =
        |order: usize| (0..form.fields.len()).filter(move |&field| highest(form, field) == order);
    let mut first = state.u.like();
    for field in of_order(1) {
        first.axpy(1.0, &mass.free.restricted_to(staged.on().dofs_of(field)));
    }
    let mut known = state.v.clone();
    known.multiply(&first);
    known.scale(-1.0);
    known.axpy(1.0, &state.v);
    // A diagonal mass does not couple free DoFs with the rates of constrained ones.
    let lumped = mass.kind == Kind::Lumped;
    let second = read(2) && !lumped;
    let held = if second { staged.held_rate(2, state.time)? } else { None };
    let mut u = state.u.clone();
    let mut r = state.u.like();
    let velocities = if lumped && !read(2) { None } else { Some(&known) };
    staged.residual_at(state.time, &mut u, [velocities, held.as_ref()], &mut r)?;
    let mut w = r.clone();
    w.multiply(&mass.free);
    let largest = w.norm();
    if let Err(error) = mass.solve(&mut r, &mut w) {
        if needs {
            return Err(error);
        }
        notes.push(
            "time derivatives at the start are reported as 0: their factors do not determine them there"
                .to_owned(),
        );
        return Ok((state, None));
    }
    let mut a = w.clone();
    w.multiply(&first);
    if read(2) {
        a.axpy(-1.0, &w);
        staged.hold_rate(2, state.time, &mut a)?;
        state.a = Some(a);
    }
    state.v = known;
    state.v.axpy(1.0, &w);
    staged.hold_rate(1, state.time, &mut state.v)?;
    let of_rates = |input| matches!(input, Input::Aux(own) if form.rates.iter().any(|rate| rate.aux == own.field));
    if implicit.is_some() && masses_follow(form, of_rates) {
        let start = (state.v.clone(), state.a.clone());
        if let Err(error) = correct_rates(&mut state, [&first, &mass.free], largest, staged) {
            if needs {
                return Err(error);
            }
            notes
                .push(format!("time derivatives at the start are those of a linear form: {error}"));
            (state.v, state.a) = start;
        }
    }
    Ok((state, Some(mass)))
}

/// Largest number of Newton steps for rates at the start.
const RATE_STEPS: usize = 30;

/// Residual of rates at the start, relative to that without them.
const RATE_RTOL: f64 = 1e-9;

/// Solves F(t, u, u̇, ü) = 0 for the highest derivatives by Newton's method, for forms that are not linear in them.
/// `first` is 1 for free degrees of freedom of fields of first order, `free` for all free ones, and `largest` the residual
/// norm without these derivatives.
fn correct_rates(
    state: &mut TimeState,
    [first, free]: [&Vector; 2],
    largest: f64,
    staged: &mut ProblemStages<'_>,
) -> Result<(), RunError> {
    let (mut u, mut r) = (state.u.clone(), state.u.like());
    let mut before = f64::INFINITY;
    for _ in 0..RATE_STEPS {
        staged.residual_at(state.time, &mut u, [Some(&state.v), state.a.as_ref()], &mut r)?;
        r.multiply(free);
        let norm = r.norm();
        // Rounding is not worth another step.
        let is_rounding = norm < 1e-6 * largest && norm > before / 2.0;
        if norm <= RATE_RTOL * largest || is_rounding {
            return Ok(());
        }
        before = norm;
        let mut w = r.like();
        let mass = FormMass::new(&u, [Some(&state.v), state.a.as_ref()], staged)?;
        mass.solve(&mut r, &mut w)?;
        let mut of_first = w.clone();
        of_first.multiply(first);
        state.v.axpy(1.0, &of_first);
        if let Some(a) = &mut state.a {
            w.axpy(-1.0, &of_first);
            a.axpy(1.0, &w);
        }
    }
    Err(RunError::Setting(
        "Newton's method does not find the time derivatives at the start\n\
         help: take a scheme that does not need them, such as `bdf` or `sdirk`, without reports of `dt`"
            .to_owned(),
    ))
}

/// A scheme whose steps evaluate F and solve with the mass. A new one is a file of this folder, a line in
/// [`explicit_scheme`], and its words in the language.
pub(super) trait ExplicitScheme: Send {
    /// Returns the mass to invert.
    fn mass(&self) -> Kind;

    /// Takes a step; it cannot be undone.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied, a condition without a value.
    fn step(
        &mut self,
        data: &mut ExplicitData,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError>;

    /// Advances rates that lag behind to the state's time.
    ///
    /// # Errors
    ///
    /// A condition without a value.
    fn confirm(
        &mut self,
        _data: &mut ExplicitData,
        _staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        Ok(())
    }

    /// Returns the degree of the polynomial of Δt L that a step is, if it is one: the stable step then depends on complex
    /// eigenvalues.
    fn degree(&self) -> Option<usize> {
        None
    }

    /// Returns the longest stable step for the largest eigenvalue of M⁻¹ ∂F/∂u, or a complex pair, where a step of this
    /// length is to be taken over the time that is left.
    fn longest_step(
        &self,
        largest: f64,
        pair: Option<ConjugatePair>,
        length_and_left: (f64, f64),
    ) -> f64;
}

/// Returns an explicit scheme.
fn explicit_scheme(scheme: Scheme) -> Box<dyn ExplicitScheme> {
    match scheme {
        Scheme::RungeKutta { order, formula, mass } => {
            Box::new(RungeKutta { order, formula, mass, stages: None })
        }
        Scheme::Leapfrog { mass } => Box::new(Leapfrog { mass, pending: None }),
        _ => unreachable!("the scheme is explicit"),
    }
}

/// Data of explicit steps.
pub(super) struct ExplicitData {
    state: TimeState,
    mass: FormMass,
    /// F at the state.
    r: Vector,
    /// Buffer of the next u.
    next: Vector,
    alike: RecordedSteps,
}

/// Explicit time integrator.
pub(super) struct ExplicitIntegrator {
    scheme: Box<dyn ExplicitScheme>,
    /// Name of the scheme in the language.
    word: &'static str,
    data: ExplicitData,
    steps: usize,
    /// True after the solution became infinite: the run cannot continue.
    lost: bool,
    /// Longest step checked for stability.
    checked: f64,
    /// Largest ‖u̇‖ at which no instability was found.
    calm: f64,
    /// True if ∂F/∂u depends on t or the solution.
    varies: bool,
    /// Last vector of the power iteration.
    fastest: Option<Vector>,
    /// Last vector of the powers of a step if ∂F/∂u varies, and the number of steps after which they are computed again.
    amplified: Option<(Vector, usize)>,
}

impl ExplicitIntegrator {
    /// Creates the integrator from a state, and a mass if it is known.
    pub(super) fn new(
        scheme: Scheme,
        state: TimeState,
        mass: Option<FormMass>,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Self, RunError> {
        let (word, scheme) = (scheme.word(), explicit_scheme(scheme));
        let kind = scheme.mass();
        let data = staged.data_follows_time();
        let changes = |input| match input {
            Input::State(_) | Input::Time => true,
            Input::Aux(_) => data,
            _ => false,
        };
        if masses_follow(staged.context().form(), changes) {
            return Err(RunError::Setting(format!(
                "`{}` takes the inverse of a mass that stays the same, and what `dt` is multiplied with here follows the solution or t\n\
                 help: take an implicit scheme, such as `bdf` or `newmark`",
                word
            )));
        }
        let mass = mass.map_or_else(|| FormMass::new(&state.u, [None; 2], staged), Ok)?;
        let mass = if kind == Kind::Lumped { mass.lumped(&state.u, staged)? } else { mass };
        let (r, next) = (state.u.like(), state.u.like());
        let (calm, varies) = (state.v.norm(), !staged.is_steady());
        let data = ExplicitData { state, mass, r, next, alike: RecordedSteps::default() };
        Ok(Self {
            scheme,
            word,
            data,
            steps: 0,
            lost: false,
            checked: 0.0,
            calm,
            varies,
            fastest: None,
            amplified: None,
        })
    }

    /// Replaces the system's operator by one of F(t, u, 0, 0), which reads no history, if the mass is lumped.
    pub(super) fn quieten(&self, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        let form = stationary(staged.context().form());
        if self.data.mass.kind != Kind::Lumped {
            return Ok(());
        }
        let Context { elements, on, platform, .. } = staged.context();
        let (params, table_cache) = (&staged.parameters().values, staged.operator.table_cache());
        let tasks = [Task::Residual, Task::Action];
        let made = kernels::compile_for(&form, elements, on, params, &tasks, platform, table_cache);
        let points = staged.operator.take_point_loads();
        *staged.operator = made?.0;
        staged.operator.set_point_loads(points);
        Ok(())
    }

    /// Returns the state; before [`Self::confirm`] only its t and u are up to date.
    pub(super) fn state(&self) -> &TimeState {
        &self.data.state
    }

    /// Replaces the rounded time of the state.
    pub(super) fn arrive(&mut self, time: f64) {
        self.data.state.time = time;
    }

    /// Advances velocity and acceleration to the state's time, and checks that the state is finite.
    pub(super) fn confirm(&mut self, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        self.scheme.confirm(&mut self.data, staged)?;
        self.lost |= !self.data.state.u.norm().is_finite();
        match self.lost {
            true => Err(RunError::Setting("the solution has no finite value any more".to_owned())),
            false => Ok(()),
        }
    }

    /// Checks that steps of a length are stable at the state.
    ///
    /// # Errors
    ///
    /// Steps beyond the stability limit.
    pub(super) fn check(&mut self, length: f64, ends: f64) -> Result<(), RunError> {
        let mut x = self.data.state.u.like();
        x.set(&scattered(x.len()));
        x.synchronise();
        self.bound((length, ends), x, POWERS)?;
        self.checked = self.checked.max(length);
        Ok(())
    }

    /// Compares a length with the stability limit of λ of M⁻¹ ∂F/∂u over the rest of a run, after some power iterations
    /// from a vector.
    fn bound(
        &mut self,
        (length, ends): (f64, f64),
        mut x: Vector,
        powers: usize,
    ) -> Result<(), RunError> {
        let (mut y, mut next, mut largest) = (x.like(), x.like(), 0.0);
        let mut filtered = None;
        for power in 0..powers {
            let norm = x.norm();
            if norm == 0.0 || !norm.is_finite() {
                break;
            }
            if power == FILTERED && powers == POWERS {
                filtered = Some(x.clone());
            }
            x.scale(1.0 / norm);
            self.data.mass.without.apply(&x, &mut y)?;
            y.scale(-1.0);
            self.data.mass.solve(&mut y, &mut next)?;
            largest = next.norm();
            std::mem::swap(&mut x, &mut next);
        }
        if largest.is_nan() || largest <= 0.0 {
            self.fastest = None;
            return Ok(());
        }
        let pair = if self.scheme.degree().is_some() { self.pair(&x)? } else { None };
        self.fastest = Some(x);
        let left = ends - self.data.state.time;
        let by_eigenvalues = self.scheme.longest_step(largest, pair, (length, left));
        let longest = by_eigenvalues.min(length);
        let most = self.amplify(longest, left, filtered)?.unwrap_or(by_eigenvalues);
        if length > most * (1.0 + SAME) {
            let (scheme, time) = (self.word, self.data.state.time);
            return Err(TimeError::Unstable { scheme, time, length, most }.into());
        }
        Ok(())
    }

    /// Checks a length by powers of the step from a vector, by default from that of the last powers if enough steps have
    /// been taken since; returns the longest stable length if it is shorter.
    fn amplify(
        &mut self,
        length: f64,
        left: f64,
        from: Option<Vector>,
    ) -> Result<Option<f64>, RunError> {
        let Some(degree) = self.scheme.degree().filter(|_| !self.data.mass.without.symmetric())
        else {
            return Ok(None);
        };
        let steps = self.steps;
        let last = || self.amplified.take_if(|(_, due)| steps >= *due).map(|(last, _)| last);
        let Some(first) = from.or_else(last) else { return Ok(None) };
        let mut powers = Amplification::new(&self.data.mass, degree, left);
        let mut last = first.clone();
        let most = match powers.is_stable(length, &mut last)? {
            true => None,
            false => Some(powers.longest(length, &first)?),
        };
        let due = self.steps + powers.interval(length);
        self.amplified = self.varies.then_some((last, due));
        Ok(most)
    }

    /// Returns the complex eigenvalue pair of M⁻¹ ∂F/∂u in the space of x and its image; `None` if the eigenvalue is
    /// real.
    fn pair(&self, x: &Vector) -> Result<Option<ConjugatePair>, RunError> {
        let (mut r, mut y, mut z) = (x.like(), x.like(), x.like());
        let mut times = |x: &Vector, y: &mut Vector| -> Result<(), RunError> {
            self.data.mass.without.apply(x, &mut r)?;
            r.scale(-1.0);
            self.data.mass.solve(&mut r, y)
        };
        times(x, &mut y)?;
        times(&y, &mut z)?;
        let products = KrylovProducts {
            of_two: [x.dot(x), x.dot(&y), y.dot(&y)],
            with_last: [x.dot(&z), y.dot(&z)],
            last: z.dot(&z),
        };
        Ok(products.pair())
    }

    /// Monitors ‖u̇‖ for instability, and regularly updates λ if ∂F/∂u varies.
    fn watch(&mut self, length: f64, staged: &ProblemStages<'_>) -> Result<(), RunError> {
        let (looks, at) = (self.steps.is_multiple_of(CHECKED), (length, staged.ends));
        if !looks && !self.varies {
            return Ok(());
        }
        let size = self.data.state.v.norm();
        let has_grown = size.is_finite() && size > GROWN * self.calm;
        let renews = looks && self.varies;
        if !has_grown && !renews {
            return Ok(());
        }
        if self.varies {
            self.data.mass.renew(self.data.state.time, &self.data.state.u, staged)?;
        }
        match self.fastest.take().filter(|_| !has_grown) {
            Some(x) => self.bound(at, x, FEWER)?,
            None => self.bound(at, self.data.state.v.clone(), POWERS)?,
        }
        self.calm = self.calm.max(size);
        Ok(())
    }

    /// Takes a step; it cannot be undone.
    pub(super) fn step(
        &mut self,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        if self.lost {
            return self.confirm(staged);
        }
        if length > self.checked * (1.0 + SAME) {
            self.check(length, staged.ends)?;
        }
        self.steps += 1;
        let taken = self.scheme.step(&mut self.data, length, staged);
        self.lost |= taken.is_err();
        taken?;
        let stable = self.watch(length, staged);
        self.lost |= stable.is_err();
        stable?;
        if self.steps.is_multiple_of(CHECKED) { self.confirm(staged) } else { Ok(()) }
    }
}
