//! The suite `multigrid`: whole solves with multigrid and with the diagonal preconditioner, over degree and size → rows
//! and a table.

use std::path::Path;
use std::sync::Arc;

use fem_bench::balls::Ball;
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::kernels::compile::Target;
use runtime::mesh::refine::forest::refined;
use runtime::mesh::{Mesh, gmsh, load};
use runtime::problem::{Platform, RunError, Solution, run};
use runtime::solve::{Continue, MultigridStatistics};
use serde_json::{Value, json};
use weakform::picture::write_charts;

use super::{Arguments, Degrees, named, named_in, plot};
use crate::console::Console;
use crate::report::{Failure, Report};

/// Largest number of DoFs for solves with the diagonal preconditioner.
const BY_THE_DIAGONAL: usize = 20_000_000;
/// The reduction of the residual.
const TOLERANCE: &str = "1e-8";

/// A problem of the suite.
#[derive(Clone, Copy)]
struct Problem {
    name: &'static str,
    /// Its fields, f0 and f1.
    form: &'static str,
    solver: &'static str,
    /// The lowest degree.
    least: usize,
    /// The components of its field.
    components: usize,
    mesh: Meshes,
    dim: u32,
    zero: &'static str,
    /// The facets with homogeneous Dirichlet conditions.
    held: &'static str,
}

/// Source of the meshes of a problem.
#[derive(Clone, Copy)]
enum Meshes {
    /// A generator: the text with this approximate number of cells along an edge.
    Text(fn(f64) -> String),
    /// Balls refined near some spheres, with hanging nodes.
    Shells,
    /// A Gmsh mesh, refined.
    Gmsh(&'static [u8]),
}

/// The bracket with a hole, 470 curved tetrahedra, and the quarter of a ring, 128 curved hexahedra.
const BRACKET: &[u8] = include_bytes!("../../../../meshes/bracket_tet10.msh");
const ELBOW: &[u8] = include_bytes!("../../../../meshes/elbow_hex27.msh");

const POISSON: &str = "field u: scalar; f0[u] = -1; f1[u] = grad(u);";
const VARYING: &str = "field u: scalar; f0[u] = -1; f1[u] = grad(u) / (0.05 + 2 * dot(x, x));";
const ELASTIC: &str = "field u: vector; f0[u] = -[0, 0, 1]; \
     f1[u] = 2 * 0.3846 * sym(grad(u)) + 0.5769 * tr(grad(u)) * I;";
const STOKES: &str = "field u: vector in H1(k); field p: scalar in H1(k - 1); \
     f0[u] = -[sin(7 * x[1]), cos(5 * x[0])]; f1[u] = grad(u) - p * I; f0[p] = -div(u);";

/// Returns the cells along an edge: a power of two, or three times one, so that there are coarser levels.
fn halved(cells: f64) -> usize {
    let powers = (0..12).flat_map(|power| [1usize << power, 3 << power]);
    powers.min_by_key(|&n| (1e6 * (n as f64 / cells).ln().abs()) as u64).unwrap_or(1)
}

const PROBLEMS: [Problem; 11] = [
    Problem {
        name: "square",
        form: POISSON,
        solver: "cg",
        least: 1,
        held: "all",
        components: 1,
        mesh: Meshes::Text(|cells| format!("box(dim: 2, cells: {})", halved(cells))),
        dim: 2,
        zero: "0",
    },
    Problem {
        name: "cube",
        form: POISSON,
        solver: "cg",
        least: 1,
        held: "all",
        components: 1,
        mesh: Meshes::Text(|cells| format!("box(dim: 3, cells: {})", halved(cells))),
        dim: 3,
        zero: "0",
    },
    Problem {
        name: "deformed",
        form: POISSON,
        solver: "cg",
        least: 1,
        held: "all",
        components: 1,
        mesh: Meshes::Text(|cells| format!("box(dim: 3, cells: {}, deform: 0.05)", halved(cells))),
        dim: 3,
        zero: "0",
    },
    Problem {
        name: "ball",
        form: VARYING,
        solver: "cg",
        least: 1,
        held: "all",
        components: 1,
        // Seven blocks, of 2^r cells along each edge.
        mesh: Meshes::Text(|cells| {
            let refine = (cells / 7f64.cbrt()).log2().round().max(1.0);
            format!("ball(dim: 3, refine: {refine})")
        }),
        dim: 3,
        zero: "0",
    },
    Problem {
        name: "elasticity",
        form: ELASTIC,
        solver: "cg",
        least: 1,
        held: "all",
        components: 3,
        mesh: Meshes::Text(|cells| format!("box(dim: 3, cells: {})", halved(cells))),
        dim: 3,
        zero: "[0, 0, 0]",
    },
    Problem {
        name: "tetrahedra",
        form: POISSON,
        solver: "cg",
        least: 1,
        held: "all",
        components: 1,
        // Refined meshes use their ancestors as levels.
        mesh: Meshes::Text(|cells| {
            let refine = (cells / 4.0).log2().round().max(0.0);
            format!("box(dim: 3, cell: tet, cells: 4); refine = {refine}")
        }),
        dim: 3,
        zero: "0",
    },
    Problem {
        name: "unrefined",
        form: ELASTIC,
        solver: "cg",
        least: 1,
        held: "\"x0\"",
        components: 3,
        // An odd number of cells: an unrefined mesh, like that of a mesh generator.
        mesh: Meshes::Text(|cells| {
            format!("box(dim: 3, cell: tet, cells: {})", 2 * (cells / 2.0) as usize + 1)
        }),
        dim: 3,
        zero: "[0, 0, 0]",
    },
    Problem {
        name: "stokes",
        form: STOKES,
        solver: "fgmres",
        least: 2,
        held: "\"x0\", \"y0\", \"y1\"",
        components: 2,
        mesh: Meshes::Text(|cells| format!("box(dim: 2, cells: {})", halved(cells))),
        dim: 2,
        zero: "[0, 0]",
    },
    Problem {
        name: "adaptive",
        form: POISSON,
        solver: "cg",
        least: 1,
        held: "all",
        components: 1,
        mesh: Meshes::Shells,
        dim: 3,
        zero: "0",
    },
    Problem {
        name: "elbow",
        form: POISSON,
        solver: "cg",
        least: 1,
        held: "\"inlet\", \"outlet\"",
        components: 1,
        mesh: Meshes::Gmsh(ELBOW),
        dim: 3,
        zero: "0",
    },
    Problem {
        name: "bracket",
        form: ELASTIC,
        solver: "cg",
        least: 1,
        held: "\"fixed\"",
        components: 3,
        mesh: Meshes::Gmsh(BRACKET),
        dim: 3,
        zero: "[0, 0, 0]",
    },
];

impl Problem {
    /// Returns its text for this approximate number of DoFs.
    fn text(&self, degree: usize, dofs: usize, preconditioner: &str) -> String {
        let nodes = dofs as f64 / self.components as f64;
        let cells = nodes.powf(1.0 / f64::from(self.dim)) / degree as f64;
        let mesh = match self.mesh {
            Meshes::Text(text) => text(cells),
            // The text is not read: the mesh exists already.
            Meshes::Shells | Meshes::Gmsh(_) => "\"made.msh\"".to_owned(),
        };
        // GMRES with the diagonal would need thousands of basis vectors; MINRES does not.
        let solver = match (self.solver, preconditioner) {
            ("fgmres", "jacobi") => "minres",
            (own, _) => own,
        };
        format!(
            "form f {{ {} }}\n\
             problem p solves f {{ mesh = {mesh}; degree = {degree}; dirichlet u = {} on {}; \
             solver = {solver}(rtol: {TOLERANCE}, preconditioner: {preconditioner}); }}",
            self.form, self.zero, self.held,
        )
    }
}

impl Problem {
    /// Creates the mesh for this approximate number of DoFs, unless a text defines it.
    fn made(&self, degree: usize, dofs: usize) -> Result<Option<Arc<Mesh>>, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::input(error.to_string());
        let nodes = dofs as f64 / self.components as f64;
        let of_degree = (degree as f64).powf(f64::from(self.dim));
        let mesh = match self.mesh {
            Meshes::Text(_) => return Ok(None),
            Meshes::Shells => {
                let ball = Ball::new(self.dim as usize).map_err(|error| failed(&error))?;
                let mut forest = ball.adapted(0).map_err(|error| failed(&error))?;
                for level in 1.. {
                    let finer = ball.adapted(level).map_err(|error| failed(&error))?;
                    if finer.n_leaves() as f64 * of_degree > 2.0 * nodes {
                        break;
                    }
                    forest = finer;
                }
                ball.mesh(&forest).map_err(|error| failed(&error))?
            }
            Meshes::Gmsh(bytes) => {
                let coarse = gmsh::parse(bytes).map_err(|error| failed(&error))?;
                // Six tetrahedra have about as many nodes as a hexahedron.
                let each = if coarse.cell().is_tensor() { 1.0 } else { 1.0 / 6.0 };
                let own = each * coarse.n_cells() as f64 * of_degree;
                let times = ((nodes / own).log2() / f64::from(self.dim)).round().max(0.0);
                coarse.refined(times as usize).map_err(|error| failed(&error))?
            }
        };
        Ok(Some(Arc::new(mesh)))
    }
}

/// Solves a text, on its mesh or on an existing one.
pub(super) fn solved(
    text: &str,
    known: &mut Option<Arc<Mesh>>,
    device: Option<&Arc<dyn Device>>,
) -> Result<Solution, Failure> {
    let (program, found) = compile(&Source::new("bench", text));
    let program = program.ok_or_else(|| Failure::input(format!("{found:?}")))?;
    let failed = |found| Failure::input(format!("{found:?}"));
    let (source, dim) = program.mesh("p", &Overrides::default()).map_err(failed)?;
    let problem = program.problem("p", dim.unwrap_or(3), &Overrides::default()).map_err(failed)?;
    let mesh = match known {
        Some(mesh) => Arc::clone(mesh),
        None => {
            let mesh = load(&source, Path::new(""));
            let mesh = mesh.and_then(|mesh| refined(mesh, problem.refine));
            let mesh = mesh.map_err(|error| Failure::input(error.to_string()))?;
            Arc::clone(known.insert(Arc::new(mesh)))
        }
    };
    let platform = Platform::new(Target::native(), device.cloned());
    let done = run(&problem, mesh, &platform, &mut |_| Continue::Yes);
    done.map_err(|error: RunError| Failure::input(error.to_string()))
}

pub(super) fn suite(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let problems = named_in(&arguments.problem, &PROBLEMS, |problem| problem.name)?;
    let threads = rayon::current_num_threads();
    report.text.push_str(&format!(
        "{}, {threads} threads of the processor: solves to {TOLERANCE} by CG, Stokes by FGMRES, with levels; and with the diagonal\n\
         (Stokes by MINRES).\n\
         applications: of the finest operator, those in single precision too; set up: of the levels; rate: million unknowns that are\n\
         solved for a second without it\n\
         problem       p  unknowns levels | iterations applications  set up   solve     rate | diagonal: iterations   solve | ratio\n",
        named(device)
    ));
    let degrees = arguments.degree.unwrap_or(Degrees { first: 1, last: 6 });
    for problem in problems {
        let first = (degrees.first as usize).max(problem.least);
        for degree in first..=degrees.last as usize {
            for dofs in arguments.sizes().each() {
                let shown = format!("{}, degree {degree}, {dofs} unknowns", problem.name);
                let row = row(&problem, (degree, dofs), device, &shown, console)?;
                let text = line(problem.name, degree, &row);
                report.row(&text, console);
                report.json.push(value(problem.name, degree, &row, device));
            }
        }
    }
    Ok(())
}

/// A solve with multigrid, and one with the diagonal preconditioner.
struct Row {
    dofs: usize,
    cells: usize,
    iterations: usize,
    applications: usize,
    levels: MultigridStatistics,
    /// Seconds without the multigrid setup.
    seconds: f64,
    diagonal: Diagonal,
}

/// The result of a solve with the diagonal preconditioner.
enum Diagonal {
    /// Iterations and seconds.
    Solved(usize, f64),
    /// No solution.
    Failed,
    /// It would have taken too long.
    Skipped,
}

fn row(
    problem: &Problem,
    (degree, dofs): (usize, usize),
    device: Option<&Arc<dyn Device>>,
    shown: &str,
    console: &Console,
) -> Result<Row, Failure> {
    let text = |by: &str| problem.text(degree, dofs, by);
    console.progress().say(format!("{shown}: mesh"));
    let mut mesh = problem.made(degree, dofs)?;
    console.progress().say(format!("{shown}: kernels"));
    // The first solve compiles, and touches new memory pages.
    solved(&text("multigrid"), &mut mesh, device)?;
    console.progress().say(format!("{shown}: by levels"));
    let by_levels = solved(&text("multigrid"), &mut mesh, device)?;
    let Some(levels) = by_levels.multigrid.first().cloned() else {
        return Err(Failure::input(format!("{shown}: no levels")));
    };
    let n = by_levels.context.on.n_dofs();
    let diagonal = if n <= BY_THE_DIAGONAL {
        console.progress().say(format!("{shown}: by the diagonal"));
        match solved(&text("jacobi"), &mut mesh, device) {
            Ok(solution) => Diagonal::Solved(solution.linear_iterations, solution.seconds.solve),
            Err(_) => Diagonal::Failed,
        }
    } else {
        Diagonal::Skipped
    };
    Ok(Row {
        dofs: n,
        cells: by_levels.context.on.mesh.n_cells(),
        iterations: by_levels.linear_iterations,
        applications: by_levels.linear_iterations + 1 + levels.applications,
        seconds: by_levels.seconds.solve - levels.seconds,
        levels,
        diagonal,
    })
}

fn line(name: &str, degree: usize, row: &Row) -> String {
    let Row { dofs, iterations, applications, levels, seconds, .. } = row;
    let rate = *dofs as f64 / seconds / 1e6;
    let start = format!(
        "{name:<12} {degree:>2} {dofs:>9} {:>6} | {iterations:>10} {applications:>12} {:>7.3} {seconds:>7.3} {rate:>8.2} |",
        levels.levels.len(),
        levels.seconds,
    );
    match row.diagonal {
        Diagonal::Skipped => format!("{start} not waited for\n"),
        Diagonal::Failed => format!("{start} no solution\n"),
        Diagonal::Solved(iterations, by) => {
            format!("{start} {iterations:>20} {by:>7.3} | {:>5.2}\n", by / seconds)
        }
    }
}

fn value(name: &str, degree: usize, row: &Row, device: Option<&Arc<dyn Device>>) -> Value {
    let (iterations, seconds) = match row.diagonal {
        Diagonal::Solved(iterations, seconds) => (Some(iterations), Some(seconds)),
        Diagonal::Failed | Diagonal::Skipped => (None, None),
    };
    let sizes: Vec<usize> = row.levels.levels.iter().map(|level| level.unknowns).collect();
    json!({
        "suite": "multigrid",
        "problem": name,
        "degree": degree,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "cells": row.cells,
        "dofs": row.dofs,
        "levels": sizes,
        "coarsest": row.levels.coarsest,
        "iterations": row.iterations,
        "applications": row.applications,
        "set_up_seconds": row.levels.seconds,
        "seconds": row.seconds,
        "dofs_per_second": row.dofs as f64 / row.seconds,
        "jacobi_iterations": iterations,
        "jacobi_seconds": seconds,
    })
}

/// Draws the DoFs solved per second over degree and size.
pub(super) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    Ok(write_charts(path, "Unknowns solved for a second", &plot::throughput(rows))?)
}

#[cfg(test)]
mod tests {
    use super::halved;

    #[test]
    fn meshes_have_levels() {
        let found: Vec<usize> = [1.0, 5.0, 7.0, 23.0, 60.0].into_iter().map(halved).collect();
        assert_eq!(found, [1, 6, 8, 24, 64]);
    }
}
