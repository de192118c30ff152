//! Stored states of a motion: [`TimeIntegrator::snapshot`] → [`Snapshot`], [`System::between`] two of them, and
//! [`System::steps`] one after each step.

use super::System;
use super::time::TimeIntegrator;
use crate::{Error, Vector};
use fem_dsl::problem::SolverSettings;
use fem_dsl::problem::stepping::check_steps;
use runtime::problem::RunError;

/// Fraction of a step below which times are considered equal.
const SAME: f64 = 1e-9;

/// The state at a time, and its rate.
#[derive(Clone)]
pub struct Snapshot {
    /// t.
    pub time: f64,
    /// u.
    pub u: Vector,
    /// u̇, if the scheme has it at this time.
    pub rate: Option<Vector>,
    /// The error estimate of the last step, relative to u, if the scheme provides one.
    pub estimate: Option<f64>,
}

impl TimeIntegrator {
    /// Stores the current state.
    pub fn snapshot(&self) -> Snapshot {
        let rate = self.rates_are_known().then(|| self.rate().clone());
        Snapshot { time: self.time(), u: self.u().clone(), rate, estimate: None }
    }
}

/// Returns the factors of u₀, u₁, h u̇₀ and h u̇₁ at the fraction s of a step of length h.
fn hermite(s: f64, rates: [bool; 2]) -> [f64; 4] {
    let r = 1.0 - s;
    match rates {
        [true, true] => [r * r * (1.0 + 2.0 * s), s * s * (3.0 - 2.0 * s), s * r * r, -s * s * r],
        [true, false] => [1.0 - s * s, s * s, s * r, 0.0],
        [false, true] => [r * r, s * (2.0 - s), 0.0, -s * r],
        [false, false] => [r, s, 0.0, 0.0],
    }
}

impl System {
    /// Interpolates the state at a time between two snapshots of one or few steps: by the cubic polynomial through
    /// values and rates at both, whose error is of order h⁴; by the parabola if one rate is unknown, and by the line if
    /// both are. Fields without time derivatives are interpolated linearly, too.
    ///
    /// ```
    /// use weakform::{ALL, Scheme, mesh, weak_form};
    ///
    /// weak_form! { form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); } }
    ///
    /// let square = mesh("box(dim: 2, cells: 2)")?;
    /// let setup = heat::form().on(square).degree(2).dirichlet_of(heat::field::u, ALL, ["t"], |x, [t]| x[0] * t);
    /// let mut system = setup.build()?;
    /// let mut motion = system.begin(Scheme::Sdirk { stages: 2 }, 0.0, &system.vector(), None)?;
    /// let mut before = motion.snapshot();
    /// for step in system.steps(&mut motion, 0.25, 1.0, None) {
    ///     before = step?;
    /// }
    /// assert!((before.time - 1.0).abs() < 1e-12);
    /// system.advance(&mut motion, 0.5, None)?;
    /// let u = system.between(&before, &motion.snapshot(), 1.2)?;
    /// let most = u.to_vec().into_iter().fold(0.0, f64::max);
    /// assert!((most - 1.2).abs() < 1e-9, "{most}");
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A time that is not between them, or vectors of another system.
    pub fn between(&self, from: &Snapshot, to: &Snapshot, time: f64) -> Result<Vector, Error> {
        for end in [from, to] {
            self.fits(&end.u)?;
            end.rate.as_ref().map_or(Ok(()), |rate| self.fits(rate))?;
        }
        let length = to.time - from.time;
        let part = (time - from.time) / length;
        if !(length > 0.0 && (-SAME..=1.0 + SAME).contains(&part)) {
            return Err(Error::NotBetween { time, from: from.time, to: to.time });
        }
        let ends = [from, to];
        let factors = hermite(part, ends.map(|end| end.rate.is_some()));
        let mut u = self.vector();
        for (end, factor) in ends.iter().zip(factors) {
            u.axpy(factor, &end.u);
        }
        for (end, factor) in ends.iter().zip(&factors[2..]) {
            end.rate.iter().for_each(|rate| u.axpy(length * factor, rate));
        }
        self.follow_a_line(&mut u, ends, part);
        Ok(u)
    }

    /// Interpolates fields without time derivatives linearly between two snapshots.
    fn follow_a_line(&self, u: &mut Vector, [from, to]: [&Snapshot; 2], part: f64) {
        let moved = |field: usize| self.context.form().rates.iter().any(|rate| rate.field == field);
        let still: Vec<usize> =
            (0..self.context.form().fields.len()).filter(|&field| !moved(field)).collect();
        if still.is_empty() {
            return;
        }
        let (mut numbers, from, to) = (u.to_vec(), from.u.to_vec(), to.u.to_vec());
        for i in still.into_iter().flat_map(|field| self.context.on.dofs_of(field)) {
            numbers[i] = from[i] + part * (to[i] - from[i]);
        }
        u.set(&numbers);
    }

    /// Returns an iterator over steps of equal length up to a time, with a shorter last one; each item is the state
    /// after a step. [`System::advance`] avoids the copies if the states are not needed.
    pub fn steps<'a>(
        &'a mut self,
        motion: &'a mut TimeIntegrator,
        step: f64,
        to: f64,
        solver: Option<&'a SolverSettings>,
    ) -> Steps<'a> {
        Steps { system: self, motion, step, to, solver, failed: false }
    }
}

/// An iterator over steps; it ends after an error.
pub struct Steps<'a> {
    system: &'a mut System,
    motion: &'a mut TimeIntegrator,
    step: f64,
    to: f64,
    solver: Option<&'a SolverSettings>,
    failed: bool,
}

impl Iterator for Steps<'_> {
    type Item = Result<Snapshot, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.to - self.motion.time();
        if left.is_nan() && !self.failed {
            self.failed = true;
            return Some(Err(Error::NoTime { time: self.to }));
        }
        if self.failed || left <= SAME * self.step.abs() {
            return None;
        }
        // Avoids a tiny last step.
        let length = if left <= self.step * (1.0 + SAME) { left } else { self.step };
        let fit = check_steps("step", self.step, (self.motion.time(), self.to));
        let fit = fit.map_err(|error| Error::from(RunError::from(error)));
        let taken = fit.and_then(|()| self.system.advance(self.motion, length, self.solver));
        self.failed = taken.is_err();
        Some(taken.map(|estimate| Snapshot { estimate, ..self.motion.snapshot() }))
    }
}

#[cfg(test)]
mod tests {
    use super::hermite;

    #[test]
    fn polynomials_are_met_as_far_as_rates_are_known() {
        let (from, to) = (0.3, 1.1);
        let h: f64 = to - from;
        for (rates, degree) in
            [([true, true], 3), ([true, false], 2), ([false, true], 2), ([false, false], 1)]
        {
            let value = |t: f64| t.powi(degree) - 2.0 * t;
            let rate = |t: f64| f64::from(degree) * t.powi(degree - 1) - 2.0;
            for s in [0.0, 0.2, 0.7, 1.0] {
                let [a, b, c, d] = hermite(s, rates);
                let found = a * value(from) + b * value(to) + h * (c * rate(from) + d * rate(to));
                let wanted = value(from + s * h);
                assert!((found - wanted).abs() < 1e-14, "{rates:?}: {found} for {wanted}");
            }
        }
    }
}
