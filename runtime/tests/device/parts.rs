//! Distribution of test cases to as many processes as there are processors.
//!
//! PoCL compiles one kernel at a time per process, so threads would wait for each other. Other devices are slowed down
//! by several processes, and their tests run in one.

use std::env::{current_exe, var};
use std::process::{Command, Stdio};

use runtime::device::Device;

/// Environment variable of a part: its number, and the number of parts.
const PART: &str = "WF_TEST_PART";

/// The part of the cases that this process runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// Returns whether a case belongs to this part.
    pub(crate) fn has(self, number: usize) -> bool {
        number % self.of == self.number
    }

    /// Returns the part given in the environment.
    fn told() -> Option<Self> {
        let text = var(PART).ok()?;
        let (own, all) = text.split_once(" of ").expect("a part");
        let number = |text: &str| text.parse().expect("a number");
        Some(Self { number: number(own), of: number(all) })
    }
}

/// Returns whether a device compiles one kernel at a time: PoCL.
pub(crate) fn is_slow(device: &dyn Device) -> bool {
    device.name().contains("Portable Computing Language")
}

/// Returns the part of `test` for this process: all cases, unless one of its devices is PoCL. Then the test process has
/// no part itself: it starts this program once per part and checks the results.
pub(crate) fn part<'d>(
    test: &str,
    devices: impl IntoIterator<Item = &'d dyn Device>,
) -> Option<Part> {
    if let Some(part) = Part::told() {
        return Some(part);
    }
    let of = std::thread::available_parallelism().map_or(1, usize::from);
    if of == 1 || !devices.into_iter().any(is_slow) {
        return Some(Part { number: 0, of: 1 });
    }
    let start = |number: usize| {
        let mut command = Command::new(current_exe().expect("this program"));
        command.args(["--exact", test, "--nocapture"]).env(PART, format!("{number} of {of}"));
        command.stdin(Stdio::null()).spawn().expect("this program should start")
    };
    let mut parts: Vec<_> = (0..of).map(start).collect();
    let ends = parts.iter_mut().map(|part| part.wait().expect("it was started"));
    let failed = ends.filter(|status| !status.success()).count();
    assert_eq!(failed, 0, "{failed} of {of} parts of {test} failed; what they said is above");
    None
}
