//! Time integrators and step sizes of a problem, with their checks, for the language and for programs.

use crate::terms::Rate;
use std::ops::RangeInclusive;
use thiserror::Error;

/// Orders of backward differences.
pub(crate) const ORDERS_BDF: RangeInclusive<usize> = 1..=5;
/// Stages of an implicit Runge-Kutta formula.
pub(crate) const STAGES: RangeInclusive<usize> = 2..=4;
/// Orders of explicit Runge-Kutta formulas.
pub(crate) const ORDERS_RK: RangeInclusive<usize> = 1..=4;
/// Orders of explicit Runge-Kutta formulas that preserve strong stability; order 4 takes more than four stages.
const ORDERS_SSP: RangeInclusive<usize> = 1..=3;
/// Largest number of steps, and of output times: with more, two of them are equal up to rounding.
const MOST: f64 = 1e9;
/// The smallest step relative to |t|, 2⁻⁴⁰: a shorter one is lost in the rounding of t + Δt.
const LEAST: f64 = 1.0 / (1u64 << 40) as f64;
/// Length of the first step relative to the time interval, if only a tolerance controls the step size.
pub const FIRST: f64 = 1e-4;

/// Time integration of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepping {
    /// The scheme.
    pub scheme: Scheme,
    /// The start time.
    pub from: f64,
    /// The end time.
    pub to: f64,
    /// The length of a step, or of the first one for variable steps.
    pub step: Option<f64>,
    /// The error tolerance per step, relative to the solution, if it controls the step size.
    pub tolerance: Option<f64>,
    /// Time between outputs.
    pub every: Option<f64>,
    /// Output times.
    pub at: Vec<f64>,
}

/// A time integrator with its settings; [`Scheme::check`] checks that it can integrate a form.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scheme {
    /// F(t + θ Δt, u + θ Δu, Δu / Δt) = 0: backward Euler for θ = 1, the midpoint rule (Crank–Nicolson) for ½.
    Theta {
        /// θ.
        theta: f64,
    },
    /// Backward differentiation formulas (BDF).
    Bdf {
        /// The order, 1 to 5.
        order: usize,
    },
    /// Singly diagonally implicit Runge-Kutta, stiffly accurate.
    Sdirk {
        /// Stages, 2 to 4.
        stages: usize,
    },
    /// Explicit Runge-Kutta.
    RungeKutta {
        /// The order, 1 to 4.
        order: usize,
        /// The formula of the order.
        formula: Formula,
        /// The mass matrix to invert.
        mass: Mass,
    },
    /// The Newmark scheme.
    Newmark {
        /// β.
        beta: f64,
        /// γ.
        gamma: f64,
    },
    /// The generalised-α scheme of Chung and Hulbert.
    GeneralisedAlpha {
        /// The spectral radius for unresolved frequencies.
        rho: f64,
    },
    /// Explicit central differences.
    Leapfrog {
        /// The mass matrix to invert.
        mass: Mass,
    },
}

impl Scheme {
    /// Returns its name in the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::Theta { .. } => "theta",
            Self::Bdf { .. } => "bdf",
            Self::Sdirk { .. } => "sdirk",
            Self::RungeKutta { .. } => "rk",
            Self::Newmark { .. } => "newmark",
            Self::GeneralisedAlpha { .. } => "generalised_alpha",
            Self::Leapfrog { .. } => "leapfrog",
        }
    }

    /// Returns whether steps only solve with a mass matrix.
    pub fn is_explicit(self) -> bool {
        matches!(self, Self::RungeKutta { .. } | Self::Leapfrog { .. })
    }

    /// Checks the settings, and that the scheme integrates a form with these time derivatives and this number of
    /// fields. The language and programs share this check.
    ///
    /// # Errors
    ///
    /// A setting out of range, or a form that the scheme does not support.
    pub fn check(self, rates: &[Rate], fields: usize, has_states: bool) -> Result<(), SchemeError> {
        self.check_settings()?;
        let scheme = self.word();
        let of = |order: usize| rates.iter().any(|rate| rate.order == order && rate.read);
        let (first, second) = (of(1), of(2));
        let algebraic = (0..fields).any(|field| !rates.iter().any(|rate| rate.field == field));
        match self {
            // The fields follow the load step by step.
            Self::Theta { theta: 1.0 } | Self::Bdf { .. } if rates.is_empty() && has_states => {
                Ok(())
            }
            _ if rates.is_empty() && has_states => Err(SchemeError::LoadSteps { scheme }),
            _ if rates.is_empty() => Err(SchemeError::Steady { scheme }),
            Self::Newmark { .. } | Self::GeneralisedAlpha { .. } if !second => {
                Err(SchemeError::NoSecond { scheme })
            }
            Self::Leapfrog { .. } if !second || first => {
                Err(SchemeError::NotSecondAlone { scheme })
            }
            Self::RungeKutta { .. } if second => Err(SchemeError::Second { scheme }),
            _ if self.is_explicit() && algebraic => Err(SchemeError::Algebraic { scheme }),
            _ => Ok(()),
        }
    }

    fn check_settings(self) -> Result<(), SchemeError> {
        let scheme = self.word();
        let whole = |setting, found: usize, range: RangeInclusive<usize>, words| {
            let found = found as f64;
            match (*range.start() as f64..=*range.end() as f64).contains(&found) {
                true => Ok(()),
                false => Err(SchemeError::Setting { scheme, setting, found, range: words }),
            }
        };
        let share = |setting, found: f64| match found > 0.0 && found <= 1.0 {
            true => Ok(()),
            false => {
                let range = "a number above 0 and at most 1";
                Err(SchemeError::Setting { scheme, setting, found, range })
            }
        };
        match self {
            Self::Theta { theta } => share("theta", theta),
            Self::Bdf { order } => whole("order", order, ORDERS_BDF, "a whole number from 1 to 5"),
            Self::Sdirk { stages } => whole("stages", stages, STAGES, "a whole number from 2 to 4"),
            Self::RungeKutta { order, formula: Formula::Classical, .. } => {
                whole("order", order, ORDERS_RK, "a whole number from 1 to 4")
            }
            Self::RungeKutta { order, formula: Formula::Ssp, .. } => {
                let words = "a whole number from 1 to 3 with `formula: ssp`";
                whole("order", order, ORDERS_SSP, words)
            }
            Self::Newmark { beta, gamma } => share("beta", beta).and(share("gamma", gamma)),
            Self::GeneralisedAlpha { rho } if !(0.0..=1.0).contains(&rho) => {
                let range = "a number from 0 to 1";
                Err(SchemeError::Setting { scheme, setting: "rho", found: rho, range })
            }
            Self::GeneralisedAlpha { .. } | Self::Leapfrog { .. } => Ok(()),
        }
    }
}

/// An explicit Runge-Kutta formula; those of an order have the same polynomial, and so the same linear stability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Euler's, Heun's of order 2 and 3, and the classical formula of order 4.
    Classical,
    /// Strong stability preserving (Shu and Osher 1988): a step is a convex combination of Euler steps.
    Ssp,
}

/// The mass matrix that an explicit scheme inverts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mass {
    /// Lumped: row sums on the diagonal.
    Lumped,
    /// Consistent.
    Consistent,
}

/// A scheme that does not support a form, or has an invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// A setting out of its range.
    #[error("`{setting}` of `{scheme}` is {found}")]
    Setting {
        /// The scheme.
        scheme: &'static str,
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The valid range.
        range: &'static str,
    },
    /// A form without time derivatives.
    #[error("`{scheme}` goes through time, and this form has no `dt(u)`")]
    Steady {
        /// The scheme.
        scheme: &'static str,
    },
    /// A form with states but without time derivatives, whose steps this scheme does not take.
    #[error("`{scheme}` does not end its steps with a solve, which states without `dt(u)` need")]
    LoadSteps {
        /// The scheme.
        scheme: &'static str,
    },
    /// A scheme for second derivatives, of which the form has none.
    #[error("`{scheme}` is for second derivatives, `dt(dt(u))`, and this form has none")]
    NoSecond {
        /// The scheme.
        scheme: &'static str,
    },
    /// A scheme for second derivatives only.
    #[error("`{scheme}` is for `dt(dt(u))` alone")]
    NotSecondAlone {
        /// The scheme.
        scheme: &'static str,
    },
    /// A scheme for first derivatives, and a form with second ones.
    #[error("`{scheme}` is for first derivatives")]
    Second {
        /// The scheme.
        scheme: &'static str,
    },
    /// An explicit scheme, and a field without a time derivative.
    #[error("`{scheme}` is explicit, and some field has no time derivative")]
    Algebraic {
        /// The scheme.
        scheme: &'static str,
    },
}

impl SchemeError {
    /// Returns the suggested correction.
    pub fn remedy(&self) -> String {
        match self {
            Self::Setting { setting, range, .. } => format!("let `{setting}` be {range}"),
            Self::LoadSteps { .. } => {
                "write `theta(theta: 1, …)` or `bdf(…)`, or `dt(u)` in the form".to_owned()
            }
            Self::Steady { .. } => {
                "solve it without `time`, or write `dt(u)` in the form".to_owned()
            }
            Self::NoSecond { .. } => "write `bdf`, `sdirk` or `theta`".to_owned(),
            Self::NotSecondAlone { .. } => {
                "write `rk` for first derivatives, `newmark` where both are there".to_owned()
            }
            Self::Second { .. } => "write `leapfrog`, or an implicit scheme".to_owned(),
            Self::Algebraic { .. } => {
                "write an implicit scheme: `bdf`, `sdirk`, `theta`".to_owned()
            }
        }
    }
}

/// Invalid times or steps.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SteppingError {
    /// A time interval that is not positive, or not finite.
    #[error("time goes from {} to {}", shown(*.from), shown(*.to))]
    Span {
        /// The start time.
        from: f64,
        /// The end time.
        to: f64,
    },
    /// A length that is not positive and finite.
    #[error("`{setting}`: a step of length {length}; time goes forwards, by finite steps")]
    Length {
        /// The setting.
        setting: &'static str,
        /// Its value.
        length: f64,
    },
    /// A length below rounding.
    #[error("`{setting}` is {length:e}, which is lost in rounding where t = {time:e}")]
    Lost {
        /// The setting.
        setting: &'static str,
        /// Its value.
        length: f64,
        /// The largest |t|.
        time: f64,
    },
    /// More steps or times than floating-point numbers distinguish.
    #[error(
        "`{setting}` is {length:e}: {count:.0e} of them lead to the end, where at most 1e9 can be told apart"
    )]
    TooMany {
        /// The setting.
        setting: &'static str,
        /// Its value.
        length: f64,
        /// Their number.
        count: f64,
    },
}

/// Formats a time, without hundreds of digits.
fn shown(time: f64) -> String {
    if time.abs() < 1e7 { time.to_string() } else { format!("{time:e}") }
}

impl SteppingError {
    /// Returns the suggested correction.
    pub fn remedy(&self) -> String {
        match *self {
            Self::Span { .. } => {
                "let `to` be later than `from`, both of a size whose difference is a number"
                    .to_owned()
            }
            Self::Length { setting, .. } => {
                format!("write a positive number, such as `{setting}: 0.01`")
            }
            Self::Lost { setting, time, .. } => {
                format!(
                    "write `{setting}: {:.0e}` or more, or let time begin at 0",
                    LEAST * time * 2.0
                )
            }
            Self::TooMany { setting, length, count } => {
                format!("write `{setting}: {:.0e}` or more", length * count / MOST * 2.0)
            }
        }
    }
}

impl Stepping {
    /// Returns the length of the first step.
    pub fn first(&self) -> f64 {
        let all = self.to - self.from;
        self.step.unwrap_or(FIRST * all).min(all)
    }

    /// Checks that the requested steps and times are possible, before anything is counted by them.
    ///
    /// # Errors
    ///
    /// A time interval that is not positive, invalid lengths or lengths below rounding, more steps or times than can be
    /// distinguished.
    pub fn check(&self) -> Result<(), SteppingError> {
        let &Self { from, to, step, every, .. } = self;
        let all = to - from;
        if !(all > 0.0 && all.is_finite()) {
            return Err(SteppingError::Span { from, to });
        }
        let lengths = [("step", step), ("every", every)];
        for (setting, length) in
            lengths.into_iter().filter_map(|(setting, of)| of.map(|of| (setting, of)))
        {
            check_steps(setting, length, (from, to))?;
        }
        check_step("step", self.first(), from.abs().max(to.abs()))
    }
}

/// Checks that steps of some length lead from a time to a later one.
///
/// # Errors
///
/// An invalid length or one below rounding, or more steps than can be distinguished.
pub fn check_steps(
    setting: &'static str,
    length: f64,
    (from, to): (f64, f64),
) -> Result<(), SteppingError> {
    let count = (to - from) / length;
    if length > 0.0 && count > MOST {
        return Err(SteppingError::TooMany { setting, length, count });
    }
    check_step(setting, length, from.abs().max(to.abs()))
}

/// Checks that a step of some length leads from a time to another one.
///
/// # Errors
///
/// A length that is not positive and finite, or is below rounding.
pub fn check_step(setting: &'static str, length: f64, time: f64) -> Result<(), SteppingError> {
    match length > 0.0 && length.is_finite() {
        false => Err(SteppingError::Length { setting, length }),
        true if length < LEAST * time.abs() => {
            Err(SteppingError::Lost { setting, length, time: time.abs() })
        }
        true => Ok(()),
    }
}
