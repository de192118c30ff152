//! Memory model of a problem: an [`Estimate`] from a form, its elements and the entity counts of its mesh, before
//! anything is allocated.
//!
//! The model counts memory held during a solve. It includes the mesh, numbering and conditions of each field, a lower
//! bound of the cell data of kernels, and the solver's vectors. Direct solves add the matrix and its factors. Fill-in
//! follows from the largest separator ([`super::factors`]): n log₂ n entries for n degrees of freedom in two
//! dimensions, n^(4/3) in three. Measured and estimated MiB of Poisson problems with Cholesky factors:
//!
//! ```text
//!                                      unknowns   measured   estimated
//! square of 400², quadrilaterals, 1     160,801        223         224
//! square of 200², quadrilaterals, 2     160,801        243         239
//! square of 100², triangles, 3           90,601        147         119
//! cube of 20³, hexahedra, 1               9,261         34          35
//! cube of 20³, hexahedra, 2              68,921        555         464
//! cube of 10³, hexahedra, 3              29,791        228         230
//! cube of 16³, tetrahedra, 2             35,937        219         176
//! cube of 14³, hexahedra, 6, by CG      614,125         67          64
//! ```

use super::RunError;
use super::factors::{self, Facts, Size};
use super::solver::is_saddle;
use crate::device::Device;
use crate::mesh::{Counts, Mesh};
use crate::solve::Factors;
use crate::support::memory::{Estimate, TooMuch};
use fem_dsl::point::{Location, PointForm};
use fem_dsl::problem::{Argument, Solver};
use kernels_gen::element::Lagrange;
use kernels_gen::plan::Elements;

/// Bytes per entry of pattern, matrix and factors: rows, values, and both again without zeros.
const ENTRY: f64 = 4.0 + 8.0 + 12.0 + 12.0;

/// Bytes of fill-in per n log₂ n (2D) or n^(4/3) (3D), measured, with workspace.
const FILL: [f64; 2] = [48.0, 112.0];

/// Lower bound of set-up memory per degree of freedom: node coordinates and the condition mask, in bytes.
const SET_UP: f64 = 40.0;

/// Estimates the memory of a problem on a mesh with these counts: of one process, or with `several` the sum over all
/// processes without replicated data.
pub fn estimate(
    form: &PointForm,
    elements: &Elements,
    counts: &Counts,
    solver: Option<&Solver>,
    several: bool,
) -> Estimate {
    let cells = counts.cells() as f64;
    let fields = || elements.fields.iter().copied().zip(elements.components.iter().copied());
    let unknowns: f64 =
        fields().map(|(element, components)| components as f64 * counts.nodes(element)).sum();
    let spaces: f64 = fields()
        .map(|(element, components)| {
            let starts =
                if has_runs(element) { 3usize.pow(element.cell().dim() as u32) } else { 0 };
            4.0 * cells * (element.count() + starts) as f64
                + 4.0 * components as f64 * counts.nodes(element)
        })
        .sum();
    let maps: usize = fields()
        .map(|(element, _)| {
            if has_runs(element) {
                3usize.pow(element.cell().dim() as u32)
            } else {
                element.count()
            }
        })
        .sum();
    let tables = cells * (4 * maps) as f64 + cells * (8 * geometry(counts)) as f64;
    let aux: f64 = form
        .aux
        .iter()
        .enumerate()
        .map(|(index, aux)| {
            let places = match (aux.location, elements.aux.get(index)) {
                (Location::Nodes(_), Some(Some(element))) => counts.nodes(*element),
                (Location::Points, _) => cells * elements.rule.points().len() as f64,
                _ => cells,
            };
            8.0 * places * aux.shape.components() as f64
        })
        .sum();
    let mut parts = vec![
        ("mesh", counts.bytes()),
        ("spaces", spaces),
        ("tables", tables),
        ("setting up", SET_UP * unknowns),
        ("vectors", 8.0 * unknowns * vectors(form, solver)),
    ];
    if aux > 0.0 {
        parts.push(("data", aux));
    }
    let degree = elements.fields.iter().map(|element| element.degree()).max().unwrap_or(1);
    let size = Size {
        dim: counts.cell.dim(),
        unknowns,
        components: elements.components.iter().sum::<usize>() as f64,
        degree: degree as f64,
    };
    let of_factors = factors_of(form, elements, size);
    let when = match named(solver) {
        "direct" => Factors::First,
        "" if solver.is_none() => {
            let linear = form.integrals.iter().all(|integral| integral.linear);
            let facts = Facts { linear, saddle: is_saddle(form), device: false };
            factors::foretold(size, facts, several)
        }
        _ => Factors::Never,
    };
    let mut perhaps = 0.0;
    match when {
        Factors::First => parts.push(("matrix and factors", of_factors)),
        Factors::After { .. } => perhaps = of_factors,
        Factors::Never => {}
    }
    Estimate { cells: counts.cells(), unknowns, parts, perhaps }
}

/// Estimates the bytes of the matrix and its factors; each degree of freedom couples with those of all adjacent cells.
fn factors_of(form: &PointForm, elements: &Elements, size: Size) -> f64 {
    let fields = elements.fields.iter().copied().zip(elements.components.iter().copied());
    let around: f64 = fields
        .map(|(element, components)| {
            let along = (element.degree() + 2) as f64;
            let box_like = along.powi(element.cell().dim() as i32);
            let nodes = if element.cell().is_tensor() { box_like } else { box_like / 2.0 };
            components as f64 * nodes.max(element.count() as f64)
        })
        .sum();
    let nodes = (size.unknowns / size.components.max(1.0)).max(1.0);
    let fill = match size.dim {
        2 => FILL[0] * size.unknowns * size.components * nodes.log2(),
        _ => FILL[1] * (size.components * nodes.powf(2.0 / 3.0)).powi(2),
    };
    // L and U differ.
    let symmetric = form.integrals.iter().all(|integral| integral.symmetric);
    ENTRY * size.unknowns * around + if symmetric { fill } else { 2.0 * fill }
}

/// Checks that host and device memory suffice for a problem on an existing mesh.
///
/// # Errors
///
/// [`RunError::Memory`].
pub fn check_room(
    form: &PointForm,
    elements: &Elements,
    mesh: &Mesh,
    solver: Option<&Solver>,
    device: Option<&dyn Device>,
) -> Result<(), RunError> {
    let estimate = estimate(form, elements, &Counts::of(mesh), solver, mesh.cut().is_some());
    let there: &[&str] = match device {
        Some(_) => &["mesh", "tables", "vectors"],
        None => &["mesh"],
    };
    let checked = match device.and_then(Device::free_bytes) {
        Some(free) => estimate.check_device(free).and_then(|()| estimate.check(there)),
        None => estimate.check(there),
    };
    Ok(checked.map_err(|error| match restart(solver) {
        Some(restart) if restart > LONG => TooMuch { remedy: "a smaller `restart`", ..error },
        _ => error,
    })?)
}

/// GMRES cycle length from which its basis dominates the memory.
const LONG: f64 = 1000.0;

/// Returns the restart length set for the solver.
fn restart(solver: Option<&Solver>) -> Option<f64> {
    match solver?.arguments.get("restart")? {
        Argument::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns whether the node map stores one number per entity.
fn has_runs(element: Lagrange) -> bool {
    element.cell().is_tensor() && element.is_continuous()
}

/// Returns a lower bound of the numbers stored for the geometry of a cell.
fn geometry(counts: &Counts) -> usize {
    let dim = counts.cell.dim();
    match Lagrange::continuous(counts.cell, counts.order) {
        Ok(element) if counts.order > 1 => dim * element.count(),
        _ => dim * dim,
    }
}

/// Returns the solver's name, or that of the linear solver within Newton's method.
fn named(solver: Option<&Solver>) -> &str {
    let Some(solver) = solver else { return "" };
    let linear = solver.arguments.get("linear").and_then(Argument::word);
    if solver.name == "newton" { linear.unwrap_or("") } else { &solver.name }
}

/// Returns a lower bound of the number of vectors that a solve holds.
fn vectors(form: &PointForm, solver: Option<&Solver>) -> f64 {
    let linear = form.integrals.iter().all(|integral| integral.linear);
    let symmetric = form.integrals.iter().all(|integral| integral.symmetric);
    // State, residual, step and diagonal; Newton's method adds a trial state.
    let own = if linear { 4.0 } else { 6.0 };
    own + match named(solver) {
        "direct" => 2.0,
        "minres" => 7.0,
        "bicgstab" => 8.0,
        "cg" => 3.0,
        "" if symmetric => 3.0,
        // Basis vectors are allocated on demand; half a cycle is a typical use.
        _ => restart(solver).unwrap_or(if linear { 100.0 } else { 30.0 }) / 2.0,
    }
}
