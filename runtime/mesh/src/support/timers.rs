//! Profile of a run: the wall-clock seconds of its steps ([`step`]), and those of kernel compilation.
//!
//! Steps nest. Each thread has its own profile; a step counts where [`Profile::begin`] was called before on the same
//! thread. Own seconds, without nested steps, add up to the wall clock.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Seconds of a step and of the steps nested in it, at all its occurrences in the same place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileStep {
    /// Name of the step.
    pub name: &'static str,
    /// Number of occurrences.
    pub count: usize,
    /// Wall-clock seconds, nested steps included.
    pub seconds: f64,
    /// Nested steps, by first occurrence.
    pub steps: Vec<ProfileStep>,
}

impl ProfileStep {
    /// Returns the seconds outside of nested steps.
    pub fn own_seconds(&self) -> f64 {
        self.seconds - self.steps.iter().map(|step| step.seconds).sum::<f64>()
    }
}

/// Steps of this thread: the profile, and the indices of the open steps among those of the step around.
#[derive(Default)]
struct OpenProfile {
    root: ProfileStep,
    path: Vec<usize>,
}

impl OpenProfile {
    /// Returns the innermost open step.
    fn innermost(&mut self) -> &mut ProfileStep {
        self.path.iter().fold(&mut self.root, |step, &at| &mut step.steps[at])
    }
}

thread_local! {
    static PROFILE: RefCell<Option<OpenProfile>> = const { RefCell::new(None) };
}

/// Profile of this thread until it ends.
pub struct Profile {
    start: Instant,
}

impl Profile {
    /// Begins the profile of this thread; an earlier one is dropped.
    pub fn begin() -> Self {
        PROFILE.with_borrow_mut(|open| *open = Some(OpenProfile::default()));
        Self { start: Instant::now() }
    }

    /// Ends the profile. Returns all steps, in a step named `total`.
    pub fn end(self) -> ProfileStep {
        let open = PROFILE.with_borrow_mut(Option::take).unwrap_or_default();
        let seconds = self.start.elapsed().as_secs_f64();
        ProfileStep { name: "total", count: 1, seconds, ..open.root }
    }
}

/// A step that runs until this value is dropped.
pub struct Step {
    name: &'static str,
    start: Instant,
    /// True if the step counts in a profile.
    is_profiled: bool,
}

/// Starts a step.
pub fn step(name: &'static str) -> Step {
    let is_profiled = PROFILE.with_borrow_mut(|open| {
        let Some(open) = open else { return false };
        let steps = &mut open.innermost().steps;
        let known = steps.iter().position(|step| step.name == name);
        let at = known.unwrap_or_else(|| {
            steps.push(ProfileStep { name, ..ProfileStep::default() });
            steps.len() - 1
        });
        open.path.push(at);
        true
    });
    Step { name, start: Instant::now(), is_profiled }
}

/// Runs `work` as a step.
pub fn in_step<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let _step = step(name);
    work()
}

impl Drop for Step {
    fn drop(&mut self) {
        let seconds = self.start.elapsed().as_secs_f64();
        tracing::debug!(seconds, "{}", self.name);
        if !self.is_profiled {
            return;
        }
        PROFILE.with_borrow_mut(|open| {
            // A profile may have ended in between.
            let Some(open) = open.as_mut().filter(|open| !open.path.is_empty()) else { return };
            let own = open.innermost();
            own.count += 1;
            own.seconds += seconds;
            open.path.pop();
        });
    }
}

/// The number of threads that build kernels, the start of the current phase, and the seconds of earlier phases.
static KERNELS: Mutex<(usize, Option<Instant>, f64)> = Mutex::new((0, None, 0.0));

/// Marks a thread as building kernels until dropped.
pub struct KernelBuildGuard(());

impl KernelBuildGuard {
    /// Starts the mark.
    pub fn begin() -> Self {
        let mut open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 += 1;
        open.1.get_or_insert_with(Instant::now);
        Self(())
    }
}

impl Drop for KernelBuildGuard {
    fn drop(&mut self) {
        let mut open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 -= 1;
        if open.0 == 0 {
            open.2 += open.1.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        }
    }
}

/// Returns the wall-clock seconds during which at least one thread built kernels.
pub fn seconds_of_kernels() -> f64 {
    let open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    open.2 + open.1.map_or(0.0, |begun| begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_seconds_of_nested_steps_add_up_to_the_wall_clock() {
        fn own(step: &ProfileStep) -> f64 {
            step.own_seconds() + step.steps.iter().map(own).sum::<f64>()
        }
        let wait = || std::thread::sleep(std::time::Duration::from_millis(1));
        drop(step("before"));
        let profile = Profile::begin();
        for _ in 0..2 {
            let _solve = step("solve");
            wait();
            in_step("product", wait);
            // Other threads have no profile.
            std::thread::scope(|scope| {
                scope.spawn(|| in_step("elsewhere", wait));
            });
        }
        in_step("write", wait);
        let all = profile.end();
        let names: Vec<&str> = all.steps.iter().map(|step| step.name).collect();
        assert_eq!(names, ["solve", "write"]);
        let solve = &all.steps[0];
        assert_eq!((solve.count, solve.steps.len(), solve.steps[0].count), (2, 1, 2));
        assert!(solve.seconds >= 6e-3 && solve.steps[0].seconds >= 2e-3, "{solve:?}");
        assert!(all.own_seconds() >= 0.0 && solve.own_seconds() >= 4e-3, "{all:?}");
        assert!((own(&all) - all.seconds).abs() < 1e-9 * all.seconds.max(1.0), "{all:?}");
    }
}
