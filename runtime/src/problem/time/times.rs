//! Output times of a run from its [`Stepping`].

use fem_dsl::problem::Stepping;

/// Tolerance of equal times, relative to the time interval.
const SAME: f64 = 1e-10;

/// Selection of output times.
enum OutputTimes {
    /// Every step.
    All,
    /// Multiples of a length, and the end time.
    Every(f64),
    /// A list, ascending.
    List(Vec<f64>),
}

/// Output times of a run.
pub(super) struct Times {
    given: OutputTimes,
    from: f64,
    to: f64,
}

impl Times {
    pub(super) fn new(stepping: &Stepping) -> Self {
        let Stepping { from, to, every, ref at, .. } = *stepping;
        let given = match every {
            Some(every) => OutputTimes::Every(every),
            None if !at.is_empty() => OutputTimes::List(at.clone()),
            None => OutputTimes::All,
        };
        Self { given, from, to }
    }

    /// Returns the initial time plus a multiple of a length, at most the end time.
    fn multiple(&self, every: f64, count: f64) -> f64 {
        let time = self.from + count * every;
        if time >= self.to || self.is_same(time, self.to) { self.to } else { time }
    }

    fn is_same(&self, a: f64, b: f64) -> bool {
        (a - b).abs() <= SAME * (self.to - self.from)
    }

    /// Returns whether a time is an output time.
    pub(super) fn shows(&self, time: f64) -> bool {
        match &self.given {
            OutputTimes::All => true,
            OutputTimes::Every(every) => {
                let near = self.multiple(*every, ((time - self.from) / every).round());
                self.is_same(near, time) || self.is_same(self.to, time)
            }
            OutputTimes::List(all) => all.iter().any(|&own| self.is_same(own, time)),
        }
    }

    /// Returns whether the initial state is output.
    pub(super) fn shows_start(&self) -> bool {
        self.shows(self.from)
    }

    /// Returns the next mandatory time after `now`; `None` at the end.
    pub(super) fn next(&self, now: f64) -> Option<f64> {
        if now >= self.to || self.is_same(now, self.to) {
            return None;
        }
        let behind = |own: f64| own > now && !self.is_same(own, now);
        let next = match &self.given {
            OutputTimes::All => None,
            OutputTimes::Every(every) => {
                let count = ((now - self.from) / every).floor();
                let next = [1.0, 2.0].map(|more| self.multiple(*every, count + more));
                next.into_iter().find(|&own| behind(own))
            }
            OutputTimes::List(all) => all.iter().copied().find(|&own| behind(own)),
        };
        Some(next.unwrap_or(self.to).min(self.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fem_dsl::problem::Scheme;

    fn times(every: Option<f64>, at: &[f64]) -> Times {
        let scheme = Scheme::Bdf { order: 2 };
        let (from, to, step, tolerance) = (0.0, 1.0, Some(0.1), None);
        Times::new(&Stepping { scheme, from, to, step, tolerance, every, at: at.to_vec() })
    }

    #[test]
    fn times_are_met_and_shown() {
        let all = times(None, &[]);
        assert!(all.shows_start() && all.shows(0.37) && all.next(0.4) == Some(1.0));
        assert_eq!(all.next(1.0), None);
        let some = times(Some(0.3), &[]);
        assert!(some.shows_start() && some.shows(0.9) && some.shows(1.0) && !some.shows(0.5));
        for (now, next) in [(0.0, 0.3), (0.6, 0.9), (0.95, 1.0)] {
            let found = some.next(now).expect("a time");
            assert!((found - next).abs() < 1e-12, "{found}");
        }
        // Three thirds make one.
        let thirds = times(Some(1.0 / 3.0), &[]);
        assert_eq!(thirds.next(2.0 / 3.0), Some(1.0));
        let listed = times(None, &[0.25, 0.5]);
        assert!(!listed.shows_start() && listed.shows(0.5) && !listed.shows(1.0));
        assert_eq!([listed.next(0.3), listed.next(0.5)], [0.5, 1.0].map(Some));
    }
}
