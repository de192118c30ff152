//! Step-size controller: computes the next step length from the requested one, output times, failed solves and error
//! estimates.

use super::super::RunError;
use fem_dsl::problem::{Scheme, Stepping};

/// Maximum number of consecutive halvings.
const HALVINGS: usize = 12;
/// Minimum step, relative to the time interval.
const SHORTEST: f64 = 1e-12;

/// Step-size controller with statistics.
pub(super) struct StepSizeController {
    /// Maximum length of the next step.
    length: f64,
    /// Requested step length.
    first: f64,
    /// Length of the time interval.
    all: f64,
    tolerance: Option<f64>,
    /// Number of consecutive halvings.
    halvings: usize,
    counters: StepCounters,
}

/// Step statistics.
struct StepCounters {
    steps: usize,
    halved: usize,
    rejected: usize,
    shortest: f64,
    longest: f64,
}

impl StepSizeController {
    /// Creates the controller with a first step length; `length` is that of a restarted run.
    pub(super) fn new(stepping: &Stepping, first: f64, length: Option<f64>) -> Self {
        let counters = StepCounters {
            steps: 0,
            halved: 0,
            rejected: 0,
            shortest: f64::INFINITY,
            longest: 0.0,
        };
        let (all, tolerance) = (stepping.to - stepping.from, stepping.tolerance);
        let length = match (length, tolerance) {
            (None, _) => first,
            (Some(length), Some(_)) => length,
            // A restart may request shorter steps.
            (Some(length), None) => length.min(first),
        };
        Self { length, first, all, tolerance, halvings: 0, counters }
    }

    /// Returns the maximum length of the next step.
    pub(super) fn length(&self) -> f64 {
        self.length
    }

    /// Returns the next step towards a mandatory time, and whether it reaches it; equal steps lead there. Differences
    /// of rounding size are ignored, so that steps are bitwise equal.
    pub(super) fn towards(&self, left: f64) -> (f64, bool) {
        let count = (left / self.length - 1e-9).ceil().max(1.0);
        let own = left / count;
        let same = (own - self.length).abs() <= 1e-9 * self.length;
        (if same { self.length } else { own }, count <= 1.0)
    }

    /// Records a failed step; returns whether a shorter one is allowed.
    pub(super) fn halve(&mut self, own: f64) -> bool {
        (self.halvings, self.length) = (self.halvings + 1, own / 2.0);
        self.counters.halved += 1;
        self.halvings <= HALVINGS && !self.is_none()
    }

    fn is_none(&self) -> bool {
        self.length < SHORTEST * self.all
    }

    /// Accepts or rejects a step by its error estimate relative to u, for a scheme of some order; sets the length of
    /// the next step.
    ///
    /// # Errors
    ///
    /// The minimum step is reached.
    pub(super) fn judge(
        &mut self,
        own: f64,
        order: usize,
        estimate: Option<f64>,
    ) -> Result<bool, RunError> {
        let (tolerance, estimate) = match (self.tolerance, estimate) {
            (Some(tolerance), Some(estimate)) => (tolerance, estimate),
            (Some(_), None) => return Ok(true),
            // Returns gradually to the requested length.
            (None, _) => {
                self.length = (2.0 * self.length).min(self.first);
                return Ok(true);
            }
        };
        let power = 1.0 / (order + 1) as f64;
        let factor = 0.9 * (tolerance / estimate.max(1e-300)).powf(power);
        if estimate > tolerance {
            self.length = own * factor.clamp(0.2, 0.9);
            self.counters.rejected += 1;
            return match self.is_none() {
                true => Err(RunError::Setting(format!(
                    "a step of {own:.3e} adds {estimate:.2e} to the error, where {tolerance:.2e} is allowed"
                ))),
                false => Ok(false),
            };
        }
        // Slightly longer steps do not pay for a new Jacobian.
        let worth = !(0.9..1.3).contains(&factor);
        self.length = if worth { own * factor.clamp(0.5, 2.0) } else { own };
        Ok(true)
    }

    /// Records an accepted step.
    pub(super) fn take(&mut self, own: f64) {
        self.halvings = 0;
        let counters = &mut self.counters;
        counters.steps += 1;
        (counters.shortest, counters.longest) =
            (counters.shortest.min(own), counters.longest.max(own));
    }

    /// Returns a summary line.
    pub(super) fn summary(&self, scheme: Scheme) -> String {
        let StepCounters { steps, halved, rejected, shortest, longest } = self.counters;
        let same = longest - shortest <= 1e-9 * longest;
        let lengths = match (steps, same) {
            (0, _) => String::new(),
            (_, true) => format!(" of {}", rounded(longest)),
            (_, false) => format!(" of {} to {}", rounded(shortest), rounded(longest)),
        };
        let mut text = format!("{steps} steps of {}{lengths}", scheme.word());
        if rejected > 0 {
            text.push_str(&format!(", {rejected} taken again for the tolerance"));
        }
        if halved > 0 {
            text.push_str(&format!(", {halved} halved because they could not be solved"));
        }
        text
    }
}

/// Rounds a length to four digits.
fn rounded(length: f64) -> f64 {
    format!("{length:.3e}").parse().unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(tolerance: Option<f64>) -> StepSizeController {
        let scheme = Scheme::Bdf { order: 2 };
        let step = Some(0.1);
        let stepping =
            Stepping { scheme, from: 0.0, to: 1.0, step, tolerance, every: None, at: Vec::new() };
        StepSizeController::new(&stepping, 0.1, None)
    }

    #[test]
    fn a_halved_step_comes_back_to_its_length() {
        let mut controller = controller(None);
        assert!(controller.halve(0.1) && controller.halve(0.05));
        assert_eq!(controller.length(), 0.025);
        for length in [0.05, 0.1, 0.1] {
            assert!(matches!(controller.judge(controller.length(), 2, None), Ok(true)));
            controller.take(0.025);
            assert_eq!(controller.length(), length);
        }
        let given_up = (0..HALVINGS + 1).position(|_| !controller.halve(controller.length()));
        assert_eq!(given_up, Some(HALVINGS));
    }

    #[test]
    fn steps_follow_what_they_add_to_the_error() {
        let mut controller = controller(Some(1e-4));
        assert!(matches!(controller.judge(0.1, 2, Some(1e-3)), Ok(false)));
        assert!((0.02..0.09).contains(&controller.length()), "{}", controller.length());
        assert!(matches!(controller.judge(0.05, 2, Some(8e-5)), Ok(true)));
        assert_eq!(controller.length(), 0.05);
        assert!(matches!(controller.judge(0.05, 2, Some(1e-9)), Ok(true)));
        assert_eq!(controller.length(), 0.1);
        assert!(controller.judge(1e-12, 2, Some(1.0)).is_err());
    }

    #[test]
    fn steps_of_one_length_lead_to_a_time() {
        let controller = controller(None);
        assert_eq!(controller.towards(0.25), (0.25 / 3.0, false));
        assert_eq!(controller.towards(0.1), (0.1, true));
        assert_eq!(controller.towards(0.3 + 1e-15), (0.1, false));
        assert_eq!(controller.towards(0.04), (0.04, true));
    }
}
