//! `wf residual`: the residual norm of a solution of a linear system from any code.

use std::path::{Path, PathBuf};

use clap::Args;
use fem_dsl::source::seen;
use runtime::files::input::system::{ResidualNorms, SystemError, read_matrix, read_vector};
use serde_json::json;

use crate::console::Console;
use crate::report::{Failure, Report};

/// Read a matrix, a right-hand side and a solution back, of `wf assemble` or of any other code, and say what is left of the system.
///
/// With r = b - A x: ‖r‖₂, ‖r‖₂ / ‖b‖₂, and the backward error ‖r‖_∞ / (‖A‖_∞ ‖x‖_∞ + ‖b‖_∞), which is some 1e-16 where x is as
/// good as double precision lets it be. Matrices are Matrix Market's coordinates (real, integer or pattern; general, symmetric
/// or skew-symmetric); vectors NumPy's arrays, Matrix Market's arrays, or a number a line.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf assemble examples/poisson.wf -o poisson
  wf residual poisson
  wf residual poisson --solution theirs.npy --at-most 1e-8     fails where more is left
  wf residual . --matrix a.mtx --rhs b.mtx --solution x.txt --json")]
pub(crate) struct Arguments {
    /// The folder of the files that are not named otherwise: `matrix.mtx`, `rhs.npy` and `solution.npy`.
    pub(crate) folder: PathBuf,

    /// The matrix.
    #[arg(long, value_name = "FILE")]
    pub(crate) matrix: Option<PathBuf>,

    /// The right-hand side.
    #[arg(long, value_name = "FILE")]
    pub(crate) rhs: Option<PathBuf>,

    /// The solution.
    #[arg(long, value_name = "FILE")]
    pub(crate) solution: Option<PathBuf>,

    /// Fail where the relative residual ‖r‖₂ / ‖b‖₂ is above this number.
    #[arg(long, value_name = "R", value_parser = bound)]
    pub(crate) at_most: Option<f64>,
}

/// Parses a nonnegative number.
fn bound(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| format!("`{text}` is no number from 0 on"))
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let file = |own: &Option<PathBuf>, name: &str| {
        own.clone().unwrap_or_else(|| arguments.folder.join(name))
    };
    let files = [
        file(&arguments.matrix, "matrix.mtx"),
        file(&arguments.rhs, "rhs.npy"),
        file(&arguments.solution, "solution.npy"),
    ];
    let name = |path: &Path| seen(&path.display().to_string()).into_owned();
    let [a, b, x] = files.each_ref().map(|path| name(path));
    console.progress().say(format!("reading {a}"));
    let matrix = read_matrix(&files[0]).map_err(refused)?;
    let n = matrix.size();
    console.progress().say(format!("reading {b} and {x}"));
    let [rhs, solution] = [&files[1], &files[2]].map(|path| read_vector(path, n));
    let (rhs, solution) = (rhs.map_err(refused)?, solution.map_err(refused)?);
    let left = ResidualNorms::new(&matrix, &solution, &rhs);
    let ResidualNorms { absolute, relative, backward, worst } = left;
    let entries = matrix.values.len();
    let text = format!(
        "{a}: {n} × {n}, {entries} entries\n  residual    {absolute:.3e}\n  relative    {relative:.3e} of {b}\n  backward    {backward:.3e}\n  worst row   {worst}\n"
    );
    let value = json!({
        "matrix": a, "rhs": b, "solution": x, "unknowns": n, "entries": entries, "residual": absolute,
        "relative": relative, "backward": backward, "worst_row": worst,
    });
    let report = Report::new(text, value);
    // A NaN residual exceeds any bound.
    match arguments.at_most {
        Some(most) if !(relative <= most || absolute == 0.0) => {
            let what = format!("the relative residual is {relative:.3e}, above {most:e}");
            Err(Failure::input(what).after(report))
        }
        _ => Ok(report),
    }
}

fn refused(error: SystemError) -> Failure {
    let help = match &error {
        SystemError::Read { .. } => {
            "\nhelp: `wf assemble` writes all of them; --matrix, --rhs and --solution name others"
        }
        SystemError::Length { .. } => "\nhelp: take vectors of the same system",
        _ => "",
    };
    Failure::input(format!("{error}{help}"))
}
