//! Arguments of several subcommands, and parsers of their values.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use kernels_gen::plan::Scatter;
use runtime::device;
use runtime::kernels::compile::{Execution, Target};
use runtime::kernels::representation::{Assembly, Representation};
use weakform::{Cell, Quadrature};

use crate::report::Failure;

/// A problem of a file, and the statements that the command line replaces.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ProblemArguments {
    /// The file with forms and problems; `-` is standard input, and paths of meshes then start from the current folder.
    pub(crate) file: PathBuf,

    /// Only the problem of this name; a file's problems are taken in order without it.
    #[arg(long, value_name = "NAME")]
    pub(crate) problem: Option<String>,

    /// Another mesh: a file of Gmsh, VTK (.vtu, .vtk), Abaqus (.inp) or MFEM (.mesh), or a generator in quotes, 'box(dim: 3, cells: 8)'.
    #[arg(long, value_name = "MESH")]
    pub(crate) mesh: Option<String>,

    /// Divide each cell of the mesh so often, in 4 or 8 each time.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) refine: Option<u32>,

    /// Another polynomial degree.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) degree: Option<u32>,

    /// Another quadrature: tensor cells take D/2 + 1 Gauss points a direction, simplices a rule exact to degree D; `collocated`
    /// takes the nodes.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) quadrature: Option<Quadrature>,

    /// Another solver: --solver 'cg(preconditioner: multigrid)'.
    #[arg(long, value_name = "SOLVER")]
    pub(crate) solver: Option<String>,

    /// The value of a parameter: --param f=2 --param 'gravity=[0, 0, -9.81]'. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<Assignment>,

    /// The value of auxiliary data, as an expression in x: --aux 'kappa=1 + x[0]^2'. May be repeated.
    #[arg(long, value_name = "NAME=EXPR")]
    pub(crate) aux: Vec<Assignment>,

    /// Interpret the kernels instead of compiling them: slower, and right. So it is done without asking, with a
    /// warning, where there is no `rustc` and no C compiler.
    #[arg(long)]
    pub(crate) interpret: bool,

    /// Compile the kernels of small problems too. Without it, kernels are interpreted where that is predicted to end
    /// before the compiler would; the numbers agree up to rounding.
    #[arg(long, conflicts_with = "interpret")]
    pub(crate) compile: bool,
}

impl ProblemArguments {
    /// Returns the target of compilation.
    pub(crate) fn target(&self) -> Target {
        let target = Target::native();
        if self.interpret {
            return Target { execution: Execution::Interpreted, ..target };
        }
        target
    }

    /// Returns the number of runs by which kernels are compiled or interpreted, of so many that are begun.
    pub(crate) fn runs(&self, begun: usize) -> usize {
        if self.compile { usize::MAX } else { begun }
    }
}

/// Backend of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// Generated Rust with SIMD, on this machine's processor.
    #[default]
    Cpu,
    /// CUDA, on an NVIDIA GPU.
    Cuda,
    /// OpenCL.
    #[value(name = "opencl")]
    OpenCl,
}

impl Backend {
    /// Returns the device of a process by its number on its host, if each process has one.
    pub(crate) fn own(self, number: usize) -> Option<String> {
        let gpus = (number > 0 && self == Self::Cuda).then(device::gpus)??;
        Some((number % gpus.max(1)).to_string())
    }
}

impl From<Backend> for device::Backend {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Cpu => Self::Cpu,
            Backend::Cuda => Self::Cuda,
            Backend::OpenCl => Self::OpenCl,
        }
    }
}

/// Device of the kernels.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DeviceArguments {
    /// The backend of the kernels.
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    pub(crate) backend: Backend,

    /// The device: a part of its name, or for CUDA its number; the first that fits without it.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,

    /// On devices, how results come to their vector: atomic, coloured, owner, or block, where the cells of a batch sum
    /// first. Coloured and owner give the same bits at every run; chosen without it.
    #[arg(long, value_name = "NAME")]
    pub(crate) scatter: Option<Scatter>,
}

impl DeviceArguments {
    /// Opens the device of a problem's kernels for the process with this number on its host: its own one of a list of
    /// devices, or of all GPUs; `None` for the CPU.
    pub(crate) fn open_in(
        &self,
        problem: &ProblemArguments,
        list: &[String],
        number: usize,
    ) -> Result<Option<Arc<dyn device::Device>>, Failure> {
        if self.backend != Backend::Cuda && !list.is_empty() {
            return Err(Failure::input(
                "--devices is for CUDA\nhelp: add `--backend cuda`, or start several processes with `mpirun`",
            ));
        }
        let own = match list.get(number % list.len().max(1)) {
            Some(own) => Some(own.clone()),
            None => self.device.clone().or_else(|| self.backend.own(number)),
        };
        let device = Self { device: own, ..self.clone() }.open()?;
        if device.is_some() && problem.interpret {
            return Err(Failure::input(
                "--interpret is for the processor's kernels\nhelp: leave it or --backend out",
            ));
        }
        Ok(device)
    }

    /// Opens the selected device; `None` for the CPU.
    pub(crate) fn open(&self) -> Result<Option<Arc<dyn device::Device>>, Failure> {
        if self.backend == Backend::Cpu {
            if self.scatter.is_some() {
                return Err(Failure::input(
                    "--scatter is for devices; the processor colours chunks of cells, and its results can be repeated\n\
                     help: leave it out, or add `--backend cuda` or `--backend opencl`",
                ));
            }
            return match &self.device {
                None => Ok(None),
                Some(_) => Err(Failure::input(
                    "--device names no processor\nhelp: add `--backend cuda` or `--backend opencl`",
                )),
            };
        }
        let opened = device::open(self.backend.into(), self.device.as_deref());
        opened.map(Some).map_err(|error| Failure::input(error.to_string()))
    }
}

/// Representation of the Jacobian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OperatorArgument {
    /// From the form, cell by cell: no matrix is made.
    MatrixFree,
    /// As a sparse matrix, made at each linearisation.
    Assembled,
    /// Element by element, with element matrices that are stored.
    EbeV1,
    /// Element by element, with element matrices that are made in each product.
    EbeV2,
}

/// Representation and assembly of the Jacobian of a solve.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OperatorArguments {
    /// The representation of the Jacobian: from the form, as a sparse matrix, or with element matrices. Without it matrix-free,
    /// which is fastest, except for `solver = direct`, which takes a matrix anyway.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) operator: Option<OperatorArgument>,

    /// The assembly algorithm of `--operator assembled`: pattern (cells add to places that are known), coloured (the same,
    /// colour by colour), owner (places add up what cells have stored) or acoo (lists of the rows, sorted and merged). Without it
    /// pattern on the processor, and owner on devices, which give the same bits at every run, as coloured does.
    #[arg(long, value_name = "WAY")]
    pub(crate) assembly: Option<Assembly>,
}

impl OperatorArguments {
    /// Returns the operator representation, if one is requested.
    pub(crate) fn representation(
        &self,
        on_a_device: bool,
    ) -> Result<Option<Representation>, Failure> {
        let fitting = || Assembly::fitting(on_a_device);
        let assembled = Representation::Assembled(self.assembly.unwrap_or_else(fitting));
        Ok(match (self.operator, self.assembly) {
            (None, None) => None,
            (None | Some(OperatorArgument::Assembled), _) => Some(assembled),
            (Some(_), Some(assembly)) => {
                return Err(Failure::input(format!(
                    "--assembly {assembly} makes a matrix, which that --operator has no use for\n\
                     help: add `--operator assembled`, or leave --assembly out"
                )));
            }
            (Some(OperatorArgument::MatrixFree), _) => Some(Representation::MatrixFree),
            (Some(OperatorArgument::EbeV1), _) => Some(Representation::Stored),
            (Some(OperatorArgument::EbeV2), _) => Some(Representation::Recomputed),
        })
    }
}

/// Rejects `-` for an output that must be a file or a folder.
pub(crate) fn no_stream(path: &Path, what: &str, remedy: &str) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => Err(Failure::input(format!(
            "{what}: standard output takes the result\nhelp: name one, `{remedy}`"
        ))),
        false => Ok(()),
    }
}

/// Checks that a file name has an extension of its format: another extension promises another format.
pub(crate) fn written_as(path: &Path, formats: &[&str], what: &str) -> Result<(), Failure> {
    let streams = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let Some(extension) = path.extension().filter(|_| !streams) else { return Ok(()) };
    if formats.iter().any(|format| extension.eq_ignore_ascii_case(format)) {
        return Ok(());
    }
    let known: Vec<String> = formats.iter().map(|format| format!("`.{format}`")).collect();
    Err(Failure::input(format!(
        "{what} is not written as `.{}`, only as {}\nhelp: name it {}",
        extension.display(),
        known.join(" or "),
        renamed(path, formats[0]).display()
    )))
}

/// Returns a path with another extension, which also replaces that of a compressed file.
fn renamed(path: &Path, format: &str) -> PathBuf {
    let packed = ["gz", "bz2", "xz", "zst", "zip"];
    let is_packed = path
        .extension()
        .is_some_and(|last| packed.iter().any(|end| last.eq_ignore_ascii_case(end)));
    let plain = if is_packed { path.with_extension("") } else { path.to_owned() };
    plain.with_extension(format)
}

/// `name=expression`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The name to which the value is assigned.
    pub(crate) name: String,
    /// The value, an expression of the language; it is parsed with the form at hand.
    pub(crate) value: String,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
        let (name, value) = (name.trim(), value.trim());
        let named = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !named {
            return Err(format!("`{name}` is not a name; expected NAME=VALUE"));
        }
        if value.is_empty() {
            return Err(format!("the value of `{name}` is missing; expected NAME=VALUE"));
        }
        Ok(Self { name: name.into(), value: value.into() })
    }
}

/// Parses both ends of `1..8`, or of a single `3`.
fn ends<T: PartialOrd + Display>(
    what: &str,
    text: &str,
    number: impl Fn(&str) -> Result<T, String>,
) -> Result<(T, T), String> {
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first > last {
        return Err(format!("the {what} {first}..{last} are in the wrong order"));
    }
    Ok((first, last))
}

/// One degree, `3`, or several, `1..8`, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Degrees {
    /// The first.
    pub(crate) first: u32,
    /// The last.
    pub(crate) last: u32,
}

impl FromStr for Degrees {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let text = text.trim();
            text.parse().map_err(|_| format!("`{text}` is not a degree; expected 3, or 1..8"))
        };
        let (first, last) = ends("degrees", text, number)?;
        Ok(Self { first, last })
    }
}

/// One size, `1e6`, or several, `1e4..3e7`, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// The smallest.
    pub(crate) first: f64,
    /// The largest.
    pub(crate) last: f64,
}

impl Sizes {
    /// Returns two sizes per decade from the smallest, and the largest.
    pub(crate) fn each(self) -> Vec<usize> {
        let steps = (2.0 * (self.last / self.first).log10() - 1e-6).ceil().max(0.0) as i32;
        let sizes = (0..steps).map(|step| self.first * 10f64.powf(f64::from(step) / 2.0));
        sizes.chain([self.last]).map(|size| size as usize).collect()
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse::<f64>() {
            Ok(size) if (1.0..=4e9).contains(&size) => Ok(size),
            _ => Err(format!("`{text}` is not a size; expected 1e6, or 1e4..3e7")),
        };
        let (first, last) = ends("sizes", text, number)?;
        Ok(Self { first, last })
    }
}

/// The shape of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CellArgument {
    /// Line.
    Interval,
    /// Quadrilateral.
    Quad,
    /// Triangle.
    Tri,
    /// Hexahedron.
    Hex,
    /// Tetrahedron.
    Tet,
}

impl From<CellArgument> for Cell {
    fn from(cell: CellArgument) -> Self {
        match cell {
            CellArgument::Interval => Self::Interval,
            CellArgument::Quad => Self::Quadrilateral,
            CellArgument::Tri => Self::Triangle,
            CellArgument::Hex => Self::Hexahedron,
            CellArgument::Tet => Self::Tetrahedron,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_split_at_the_first_sign() {
        let parse = |text: &str| text.parse::<Assignment>();
        let found = parse("u = if x[0] == 0 { 1 } else { 2 }").expect("an assignment");
        assert_eq!(
            (found.name.as_str(), found.value.as_str()),
            ("u", "if x[0] == 0 { 1 } else { 2 }")
        );
        for wrong in ["u", "=1", "u=", "2u=1", "u v=1", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_of_sizes_have_two_a_decade() {
        let parse = |text: &str| text.parse::<Sizes>().map(Sizes::each);
        assert_eq!(parse("1e6"), Ok(vec![1_000_000]));
        assert_eq!(parse("30000"), Ok(vec![30_000]));
        assert_eq!(parse("1e4..1e5"), Ok(vec![10_000, 31_622, 100_000]));
        assert_eq!(parse("1e4..=2e4"), Ok(vec![10_000, 20_000]));
        for wrong in ["", "0", "-5", "1e12", "2e4..1e4", "x", "1.."] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_of_degrees_include_both_ends() {
        let parse = |text: &str| text.parse().map(|Degrees { first, last }| (first, last));
        assert_eq!(parse("3"), Ok((3, 3)));
        assert_eq!(parse("1..4"), Ok((1, 4)));
        assert_eq!(parse("1..=2"), Ok((1, 2)));
        for wrong in ["", "..", "1..", "4..1", "-1", "1..x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
