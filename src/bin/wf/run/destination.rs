//! Destination of a solution: none, a file, or standard output.

use std::io::{self, BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};

use fem_dsl::problem::Problem;
use runtime::files::output::{OutputError, extensions, format_of, index_of, writable};
use runtime::problem::{LastState, Solution, side_by_side, with_derived};
use runtime::space::discretisation::Discretisation;
use serde_json::json;

use super::Arguments;
use crate::arguments::written_as;
use crate::console::Console;
use crate::report::Failure;

/// The destination of a solution.
pub(super) enum Destination {
    Nowhere,
    File(PathBuf),
    StandardOutput,
}

impl Destination {
    /// Returns the requested destination, if it is possible.
    pub(super) fn of(
        arguments: &Arguments,
        problem: &str,
        console: &Console,
    ) -> Result<Self, Failure> {
        match (&arguments.output, arguments.no_output) {
            (_, true) => Ok(Self::Nowhere),
            (None, false) => Ok(Self::File(PathBuf::from(format!("{problem}.vtu")))),
            (Some(path), false) if !is_standard_output(path) => Ok(Self::File(path.clone())),
            _ if console.json() => Err(Failure::usage(
                "`--output -` and --json both want standard output\nhelp: name a file for one of them",
            )),
            _ if io::stdout().is_terminal() => Err(Failure::input(
                "`--output -` writes numbers that no terminal can show\nhelp: pipe it into a program, or name a file",
            )),
            _ if is_nothing() => Err(Failure::input(
                "`--output -` writes to standard output, which is closed\nhelp: name a file, or add --no-output",
            )),
            _ => Ok(Self::StandardOutput),
        }
    }

    /// Returns the destination of one of several solves: `NAME-3.vtu` for the third.
    pub(super) fn numbered(self, number: Option<usize>) -> Self {
        match (self, number) {
            (Self::File(path), Some(number)) => Self::File(numbered(&path, number)),
            (destination, _) => destination,
        }
    }

    /// Returns whether the solution goes to standard output instead of the report.
    pub(super) fn is_standard_output(&self) -> bool {
        matches!(self, Self::StandardOutput)
    }

    /// Checks that it is writable, before hours of work.
    pub(super) fn try_out(&self) -> Result<(), Failure> {
        let Self::File(path) = self else { return Ok(()) };
        writable(path)?;
        written_as(path, &extensions(), "a solution")
    }

    pub(super) fn write(&self, problem: &Problem, solution: &Solution) -> Result<(), Failure> {
        let modes = match &solution.modes[..] {
            [] => None,
            modes => Some(side_by_side(&problem.form, &solution.context.on, modes)),
        };
        let own = with_derived(&problem.form, &solution.context.on, &solution.derived);
        let (form, on, u) = match &modes {
            None => (&own.0, &own.1, &solution.u),
            Some((form, on, u)) => (form, on, u),
        };
        match self {
            Self::Nowhere => Ok(()),
            Self::File(path) => Ok(weakform::write_solution(path, form, on, u)?),
            Self::StandardOutput => {
                let out = &mut BufWriter::with_capacity(1 << 20, io::stdout().lock());
                match weakform::write_vtu_to(out, form, on, u) {
                    // A closed pipe is no error.
                    Err(OutputError::Stream { error })
                        if error.kind() == io::ErrorKind::BrokenPipe =>
                    {
                        Ok(())
                    }
                    written => Ok(written?),
                }
            }
        }
    }

    /// Writes the unconverged state of a failed solve next to the file for its solution, and adds its path to the
    /// failure.
    pub(super) fn write_reached(
        &self,
        failure: Failure,
        problem: &Problem,
        reached: &LastState,
    ) -> Failure {
        let Self::File(path) = self else { return failure };
        // Some processes may not have reached this point.
        if reached.on.mesh.cut().is_some() {
            return failure;
        }
        let path = unconverged(path);
        match weakform::write_solution(&path, &problem.form, &reached.on, &reached.u) {
            Ok(()) => {
                let shown = path.display();
                let found = json!({ "problem": problem.name, "unconverged": path });
                let fact = format!("what it had reached, which is no solution, is in {shown}");
                failure.note(&fact).with(found)
            }
            Err(error) => failure.note(&format!("what it had reached is lost: {error}")),
        }
    }

    /// Writes the solution of the last successful step, and adds its path to the failure of the following step.
    pub(super) fn write_last(
        &self,
        failure: Failure,
        problem: &Problem,
        (step, last): (usize, &LastState),
    ) -> Failure {
        let Self::File(path) = self else { return failure };
        // Some processes may not have reached this point.
        if last.on.mesh.cut().is_some() {
            return failure;
        }
        match weakform::write_solution(path, &problem.form, &last.on, &last.u) {
            Ok(()) => {
                let found = json!({ "problem": problem.name, "step": step, "output": path });
                let fact = format!("the solution of step {step} is in {}", path.display());
                failure.note(&fact).with(found)
            }
            Err(error) => failure.note(&format!("the solution of step {step} is lost: {error}")),
        }
    }

    /// Returns the reported path of a solution on such a mesh.
    pub(super) fn path_of(&self, on: &Discretisation) -> Option<PathBuf> {
        match self {
            Self::Nowhere => None,
            Self::File(path) if on.mesh.cut().is_some() => Some(index_of(path)),
            Self::File(path) => Some(path.clone()),
            Self::StandardOutput => Some("standard output".into()),
        }
    }
}

/// Returns the file of one of several solves: `NAME-3.vtu` for the third.
pub(super) fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Returns the path of an unconverged state, next to the solution.
pub(super) fn unconverged(path: &Path) -> PathBuf {
    path.with_extension(format!("unconverged.{}", format_of(path).extension()))
}

/// Returns whether a path refers to standard output: creating that file would truncate the report.
pub(super) fn is_standard_output(path: &Path) -> bool {
    const NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    if NAMES.iter().any(|name| path == Path::new(name)) {
        return true;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
        let of = |path: &Path| std::fs::metadata(path).ok();
        let (Some(there), Some(out)) = (of(path), of(Path::new("/dev/stdout"))) else {
            return false;
        };
        let kept = out.is_file() || out.file_type().is_fifo();
        kept && (there.dev(), there.ino()) == (out.dev(), out.ino())
    }
    #[cfg(not(unix))]
    {
        false
    }
}

/// Returns whether standard output is closed: Rust's runtime then opens the null device for reading and writing in its
/// place.
fn is_nothing() -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;
        let device = |path: &str| std::fs::metadata(path).ok().map(|found| found.rdev());
        let null = device("/dev/null");
        let flags = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
        let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        let both_ways = flags.is_some_and(|flags| flags & 3 == 2);
        both_ways && null.is_some_and(|null| null != 0 && device("/proc/self/fd/1") == Some(null))
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
