//! Where a solution goes: nowhere, to a file, to standard output.

use std::io::{self, BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};

use fem_dsl::problem::Problem;
use runtime::output::{OutputError, writable};
use runtime::run::{Reached, Solution};
use serde_json::json;

use super::Arguments;
use crate::arguments::written_as;
use crate::console::Console;
use crate::problem::spare;
use crate::report::Failure;

/// Where a solution goes.
pub(super) enum Goal {
    Nowhere,
    File(PathBuf),
    StandardOutput,
}

impl Goal {
    /// What is asked for, if it can be had.
    pub(super) fn of(
        arguments: &Arguments,
        problem: &str,
        console: &Console,
    ) -> Result<Self, Failure> {
        match (&arguments.output, arguments.no_output) {
            (_, true) => Ok(Self::Nowhere),
            (None, false) => Ok(Self::File(PathBuf::from(format!("{problem}.vtu")))),
            (Some(path), false) if path != Path::new("-") => Ok(Self::File(path.clone())),
            _ if console.json() => Err(Failure::usage(
                "`--output -` and --json both want standard output\nhelp: name a file for one of them",
            )),
            _ if io::stdout().is_terminal() => Err(Failure::input(
                "`--output -` writes numbers that no terminal can show\nhelp: pipe it into a program, or name a file",
            )),
            _ => Ok(Self::StandardOutput),
        }
    }

    /// Whether it could be written: worth asking before hours of work.
    pub(super) fn try_out(&self, file: &Path) -> Result<(), Failure> {
        let Self::File(path) = self else { return Ok(()) };
        spare(path, file)?;
        writable(path)?;
        written_as(path, &["vtu"], "a solution")
    }

    pub(super) fn write(&self, problem: &Problem, solution: &Solution) -> Result<(), Failure> {
        let (form, on, u) = (&problem.form, &solution.on, &solution.u);
        match self {
            Self::Nowhere => Ok(()),
            Self::File(path) => Ok(weakform::write_vtu(path, form, on, u)?),
            Self::StandardOutput => {
                let out = &mut BufWriter::with_capacity(1 << 20, io::stdout().lock());
                match weakform::write_vtu_to(out, form, on, u) {
                    // A reader that has gone has read what it wanted.
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

    /// Writes what a solve that failed has reached beside the file for its solution, and adds where to the failure.
    pub(super) fn write_reached(
        &self,
        failure: Failure,
        file: &Path,
        problem: &Problem,
        reached: &Reached,
    ) -> Failure {
        let Self::File(path) = self else { return failure };
        let path = path.with_extension("unconverged.vtu");
        let write = || {
            spare(&path, file)?;
            Ok::<_, Failure>(weakform::write_vtu(&path, &problem.form, &reached.on, &reached.u)?)
        };
        match write() {
            Ok(()) => {
                let shown = path.display();
                let found = json!({ "problem": problem.name, "unconverged": path });
                let fact = format!("what it had reached, which is no solution, is in {shown}");
                failure.note(&fact).with(found)
            }
            Err(error) => {
                failure.note(&format!("what it had reached is lost: {}", error.message()))
            }
        }
    }

    /// As it is reported.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Nowhere => None,
            Self::File(path) => Some(path),
            Self::StandardOutput => Some(Path::new("standard output")),
        }
    }
}
