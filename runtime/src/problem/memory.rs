//! Memory model of a problem, from counts alone: a form, its elements, the numbers of its mesh's entities and its
//! [`SolvePlan`] → [`MemoryEstimate`], before anything is made.
//!
//! Counted is the memory held while a problem is solved: the mesh, the numbering and constraints of each field, at least
//! the tables of the kernels, the vectors of the solver, and of a factorisation the matrix and its factors. Their fill
//! follows from the largest separator ([`super::plan::cost`]): n log₂ n entries of n unknowns in two dimensions and n^(4/3) in
//! three. MiB of Poisson problems with Cholesky's factors, as measured and as estimated:
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
use super::plan::{ProblemProperties, SolvePlan, SolveResources, SystemSize, plan_solve};
use crate::device::Device;
use crate::mesh::{EntityCounts, Mesh};
use crate::solve::{DirectFallback, InnerSolver};
use crate::support::memory::{InsufficientMemory, MemoryEstimate};
use fem_dsl::point::{Location, PointForm};
use fem_dsl::problem::SolverSettings;
use kernels_gen::element::{Element, Lagrange};
use kernels_gen::plan::Elements;

/// Bytes per entry of pattern, matrix and factors: rows, values, and both again without zeros.
const ENTRY: f64 = 4.0 + 8.0 + 12.0 + 12.0;

/// Bytes of fill-in per n log₂ n (2D) or n^(4/3) (3D), measured, with workspace.
const FILL: [f64; 2] = [48.0, 112.0];

/// Lower bound of set-up memory per degree of freedom: node coordinates and the condition mask, in bytes.
const SET_UP: f64 = 40.0;

/// Estimates the least memory of a problem on a mesh with these counts: of one process, or of several together without the
/// copies that each has.
pub fn estimate(
    form: &PointForm,
    elements: &Elements,
    counts: &EntityCounts,
    plan: &SolvePlan,
) -> MemoryEstimate {
    let cells = counts.cells() as f64;
    let fields = || elements.fields.iter().copied().zip(elements.components.iter().copied());
    let unknowns: f64 =
        fields().map(|(element, components)| components as f64 * counts.nodes(element)).sum();
    let spaces: f64 = fields()
        .map(|(element, components)| {
            4.0 * cells * element.count() as f64 + 4.0 * components as f64 * counts.nodes(element)
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
        ("vectors", 8.0 * unknowns * vectors(plan)),
    ];
    if aux > 0.0 {
        parts.push(("data", aux));
    }
    let of_factors = factors_of(form, elements, plan.properties.size);
    let mut perhaps = 0.0;
    match plan.linear.factors {
        _ if plan.linear.is_direct() => parts.push(("matrix and factors", of_factors)),
        DirectFallback::After { .. } => perhaps = of_factors,
        DirectFallback::First | DirectFallback::Never => {}
    }
    MemoryEstimate { cells: counts.cells(), unknowns, parts, perhaps }
}

/// Estimates the bytes of the matrix and its factors; each degree of freedom couples with those of all adjacent cells.
fn factors_of(form: &PointForm, elements: &Elements, size: SystemSize) -> f64 {
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
        1 => FILL[0] * size.unknowns * size.components,
        2 => FILL[0] * size.unknowns * size.components * nodes.log2(),
        _ => FILL[1] * (size.components * nodes.powf(2.0 / 3.0)).powi(2),
    };
    // L and U differ.
    let symmetric = form.integrals.iter().all(|integral| integral.symmetric);
    ENTRY * size.unknowns * around + if symmetric { fill } else { 2.0 * fill }
}

/// Checks that there is memory for a problem on a mesh: on this machine, and on the device for tables and vectors.
///
/// # Errors
///
/// [`RunError::Memory`]; a solver that does not fit the form.
pub fn check_room(
    form: &PointForm,
    elements: &Elements,
    mesh: &Mesh,
    solver: Option<&SolverSettings>,
    device: Option<&dyn Device>,
) -> Result<(), RunError> {
    let counts = EntityCounts::of(mesh);
    let processes = mesh.cut().map_or(1, |cut| cut.group().size());
    let resources = SolveResources::cores(processes * rayon::current_num_threads())
        .in_processes(processes)
        .with_device(device.is_some());
    let plan = plan_solve(&ProblemProperties::counted(form, elements, &counts, resources), solver)?;
    let estimate = estimate(form, elements, &counts, &plan);
    let there: &[&str] = match device {
        Some(_) => &["mesh", "tables", "vectors"],
        None => &["mesh"],
    };
    let checked = match device.and_then(Device::free_bytes) {
        Some(free) => estimate.check_device(free).and_then(|()| estimate.check(there)),
        None => estimate.check(there),
    };
    Ok(checked.map_err(|error| match plan.linear.restart {
        restart if restart > LONG => InsufficientMemory { remedy: "a smaller `restart`", ..error },
        _ => error,
    })?)
}

/// Cycles of GMRES longer than this take most of the memory.
const LONG: usize = 1000;

/// Returns whether the node map stores one number per entity.
fn has_runs(element: Element) -> bool {
    element.cell().is_tensor() && element.is_continuous()
}

/// Returns a lower bound of the numbers stored for the geometry of a cell.
fn geometry(counts: &EntityCounts) -> usize {
    let dim = counts.cell.dim();
    match Lagrange::continuous(counts.cell, counts.order) {
        Ok(element) if counts.order > 1 => dim * element.count(),
        _ => dim * dim,
    }
}

/// The least number of vectors that a solve holds.
fn vectors(plan: &SolvePlan) -> f64 {
    let ProblemProperties { is_linear, is_symmetric, .. } = plan.properties;
    // The state, the residual, a step and the diagonal; Newton's method tries another state.
    let own = if is_linear { 4.0 } else { 6.0 };
    own + match plan.linear.solver {
        InnerSolver::Direct => 2.0,
        InnerSolver::Minres => 7.0,
        InnerSolver::Bicgstab => 8.0,
        InnerSolver::Cg => 3.0,
        InnerSolver::Automatic | InnerSolver::Indefinite if is_symmetric => 3.0,
        // They are made as iterations come to them; half of a cycle is rarely enough.
        _ => plan.linear.restart as f64 / 2.0,
    }
}
