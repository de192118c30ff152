//! Schemes on equations with known solutions: convergence order, conservation.

use super::*;
use crate::algebra::vector::Precision;
use fem_dsl::problem::{Formula, Mass, Scheme};

/// c ü + d u̇ + k u = f(t), one degree of freedom, with u = cos ω t + t² by choice of f; no conditions.
struct Oscillator {
    inertia: f64,
    damping: f64,
    stiffness: f64,
}

const OMEGA: f64 = 2.0;

fn known(t: f64) -> [f64; 3] {
    let (sin, cos) = (OMEGA * t).sin_cos();
    [cos + t * t, -OMEGA * sin + 2.0 * t, -OMEGA * OMEGA * cos + 2.0]
}

impl StageSolver for Oscillator {
    type Error = std::convert::Infallible;

    fn solve(&mut self, stage: &Stage<'_>, x: &mut Vector) -> Result<(), Self::Error> {
        let Self { inertia, damping, stiffness } = *self;
        let [u, v, a] = known(stage.time);
        let load = inertia * a + damping * v + stiffness * u;
        let [s1, s2] = stage.factors;
        let [r1, r2] = stage.rates.map(|rate| rate.get(0));
        let factor = inertia * s2 + damping * s1 + stiffness;
        x.set_entry(0, (load - inertia * r2 - damping * r1) / factor);
        Ok(())
    }

    fn keep_algebraic(&self, _from: &Vector, _to: &mut Vector) {}

    fn constrain(&mut self, _state: &mut TimeState) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn implicit(scheme: Scheme) -> Box<dyn TimeScheme<std::convert::Infallible>> {
    time_scheme(scheme).expect("an implicit scheme")
}

fn number(value: f64) -> Vector {
    Vector::from_slice(&[value], Precision::F64)
}

fn begin(inertia: f64) -> TimeState {
    let [u, v, a] = known(0.0).map(number);
    TimeState { time: 0.0, u, v, a: (inertia > 0.0).then_some(a) }
}

/// Returns the error at t = 1 after a number of steps of alternating lengths.
fn error(scheme: Scheme, mut of: Oscillator, steps: usize, uneven: f64) -> f64 {
    let mut stepper = Stepper::new(implicit(scheme), of.inertia > 0.0, begin(of.inertia), true);
    for step in 0..steps {
        let even = 1.0 / steps as f64;
        let length = if step % 2 == 0 { even * (1.0 + uneven) } else { even * (1.0 - uneven) };
        let Ok(taken) = stepper.step(length, &mut of);
        stepper.accept(taken.state);
    }
    let state = stepper.state();
    assert!((state.time - 1.0).abs() < 1e-12, "{}", state.time);
    (state.u.get(0) - known(1.0)[0]).abs()
}

fn observed(scheme: Scheme, of: fn() -> Oscillator, uneven: f64) -> f64 {
    let [coarse, fine] = [80, 160].map(|steps| error(scheme, of(), steps, uneven));
    (coarse / fine).log2()
}

const SCHEMES: [(Scheme, f64); 10] = [
    (Scheme::Theta { theta: 1.0 }, 1.0),
    (Scheme::Theta { theta: 0.5 }, 2.0),
    (Scheme::Bdf { order: 1 }, 1.0),
    (Scheme::Bdf { order: 2 }, 2.0),
    (Scheme::Bdf { order: 3 }, 3.0),
    (Scheme::Bdf { order: 4 }, 4.0),
    (Scheme::Bdf { order: 5 }, 5.0),
    (Scheme::Sdirk { stages: 2 }, 2.0),
    (Scheme::Sdirk { stages: 3 }, 3.0),
    (Scheme::Sdirk { stages: 4 }, 3.0),
];

#[test]
fn errors_fall_with_the_order_of_the_scheme() {
    let first = || Oscillator { inertia: 0.0, damping: 1.0, stiffness: 1.0 };
    let second = || Oscillator { inertia: 1.0, damping: 0.2, stiffness: 3.0 };
    for (scheme, order) in SCHEMES {
        for uneven in [0.0, 0.2] {
            for of in [first, second] {
                let found = observed(scheme, of, uneven);
                let less = if order > 4.0 { 0.4 } else { 0.15 };
                assert!(found > order - less, "{scheme:?}, uneven by {uneven}: {found}");
            }
        }
    }
    for scheme in [
        Scheme::Newmark { beta: 0.25, gamma: 0.5 },
        Scheme::GeneralisedAlpha { rho: 0.8 },
        Scheme::GeneralisedAlpha { rho: 0.0 },
    ] {
        let found = observed(scheme, second, 0.0);
        assert!((found - 2.0).abs() < 0.1, "{scheme:?}: {found}");
    }
}

/// For ü + k u = 0 the average acceleration conserves ½ v² + ½ k u²; every other of these schemes dissipates.
#[test]
fn the_average_acceleration_keeps_the_energy() {
    struct Free;
    impl StageSolver for Free {
        type Error = std::convert::Infallible;

        fn solve(&mut self, stage: &Stage<'_>, x: &mut Vector) -> Result<(), Self::Error> {
            x.set_entry(0, -stage.rates[1].get(0) / (stage.factors[1] + STIFFNESS));
            Ok(())
        }

        fn keep_algebraic(&self, _from: &Vector, _to: &mut Vector) {}

        fn constrain(&mut self, _: &mut TimeState) -> Result<(), Self::Error> {
            Ok(())
        }
    }
    const STIFFNESS: f64 = 30.0;
    let energy =
        |state: &TimeState| 0.5 * state.v.get(0).powi(2) + 0.5 * STIFFNESS * state.u.get(0).powi(2);
    let last = |scheme: Scheme| {
        let begin =
            TimeState { time: 0.0, u: number(1.0), v: number(0.3), a: Some(number(-STIFFNESS)) };
        let before = energy(&begin);
        let mut stepper = Stepper::new(implicit(scheme), true, begin, true);
        for _ in 0..1000 {
            let Ok(taken) = stepper.step(0.1, &mut Free);
            stepper.accept(taken.state);
        }
        energy(stepper.state()) / before
    };
    let kept = last(Scheme::Newmark { beta: 0.25, gamma: 0.5 });
    assert!((kept - 1.0).abs() < 1e-11, "{kept}");
    let kept = last(Scheme::Theta { theta: 0.5 });
    assert!((kept - 1.0).abs() < 1e-11, "{kept}");
    for scheme in [
        Scheme::GeneralisedAlpha { rho: 0.5 },
        Scheme::Bdf { order: 2 },
        Scheme::Sdirk { stages: 2 },
    ] {
        let left = last(scheme);
        assert!(left < 0.9, "{scheme:?}: {left}");
    }
}

#[test]
fn estimates_are_of_the_size_of_errors() {
    let first = || Oscillator { inertia: 0.0, damping: 1.0, stiffness: 1.0 };
    for scheme in [Scheme::Bdf { order: 2 }, Scheme::Bdf { order: 4 }, Scheme::Sdirk { stages: 3 }]
    {
        let estimate = |length: f64| {
            let mut of = first();
            let mut stepper = Stepper::new(implicit(scheme), false, begin(0.0), true);
            let mut last = None;
            for _ in 0..(0.4 / length).round() as usize {
                let Ok(taken) = stepper.step(length, &mut of);
                last = taken.estimate;
                stepper.accept(taken.state);
            }
            last.expect("an estimate")
        };
        let (coarse, fine) = (estimate(0.04), estimate(0.02));
        let order = Stepper::new(implicit(scheme), false, begin(0.0), true).order() as f64 + 1.0;
        let found = (coarse / fine).log2();
        assert!((found - order).abs() < 0.5, "{scheme:?}: {found} of {order}, {coarse:e} {fine:e}");
    }
    let explicit = Scheme::RungeKutta { order: 3, formula: Formula::Classical, mass: Mass::Lumped };
    assert!(time_scheme::<std::convert::Infallible>(explicit).is_none());
}
