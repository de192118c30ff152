//! `wf bench`: operators of the CEED bake-off problems, compared with a roofline bound and a sparse matrix.
//!
//! ```text
//! BP1, BP2  mass                p + 2 Gauss points        1, 3 components
//! BP3, BP4  Poisson             p + 2 Gauss points        1, 3
//! BP5, BP6  Poisson             p + 1 Gauss-Lobatto       1, 3
//! poisson-gauss, elasticity     p + 1 Gauss               1, 3
//! stokes                        p + 1 Gauss               3 of degree p and 1 of degree p − 1
//! ```
//!
//! The benchmark measures y = A x on a deformed, non-affine box of hexahedra, without conditions. The bound is
//! max(bytes / copy bandwidth, flops / multiply-add rate), both measured in the same run; bytes are those streamed by
//! the kernel: its tables, x once, y read and written.
//!
//! With several processes, each has a subdomain of the box. Degrees of freedom, cells, bytes, flops and rates are
//! totals; seconds are those of the slowest process, from a common start to the last end.

pub mod assembly;
pub mod balls;
pub mod candidate;
pub mod device;
pub mod dg;
pub mod kronbichler;
pub mod ljungkvist;
pub mod low_order;
pub mod low_order_model;
pub mod maxwell;
pub mod product;
pub mod scaling;
#[cfg(test)]
mod tests;
pub mod transposition;

use fem_dsl::point::PointForm;
use fem_dsl::problem::{Argument, MeshSource};
use kernels_gen::cost::{Cost, Machine, Weights, count, stored_inside};
use kernels_gen::element::{Cell, Element, ElementError, LinePoints, Rule};
use kernels_gen::plan::{Elements, Linearisation, Plan, PlanError, Task};
use kernels_gen::strategy::lower;
use runtime::algebra::vector::{Precision, Vector};
use runtime::kernels::compile::{CompileError, CompiledKernels, Target, compile, facts};
use runtime::kernels::rates::Rates;
use runtime::mesh::generate::{GenerateError, generate};
use runtime::mesh::initial::{PartError, begin};
use runtime::mesh::refine::forest::{ForestError, RefineError};
use runtime::mesh::{LoadError, Mesh, MeshError};
use runtime::operator::assemble::Csr;
use runtime::operator::{BuildError, Operator};
use runtime::problem::RunError;
use runtime::processes::{ProcessGroup, SingleProcess};
use runtime::solve::{LinearOperator, NonlinearSystem, OperatorError};
use runtime::space::SpaceError;
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A problem of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Its form, in the language.
    pub form: &'static str,
    /// Quadrature rule at degree p.
    pub rule: fn(usize) -> LinePoints,
    /// Smallest p.
    pub least: usize,
}

const MASS: &str = "form mass { field u: scalar; f0[u] = u; }";
const MASS_3: &str = "form mass { field u: vector; f0[u] = u; }";
const POISSON: &str = "form poisson { field u: scalar; f1[u] = grad(u); }";
const POISSON_3: &str = "form poisson { field u: vector; f1[u] = grad(u); }";
const ELASTICITY: &str = "form elasticity { field u: vector; param lambda = 1; param mu = 1; \
     let eps = sym(grad(u)); f1[u] = lambda * tr(eps) * I + 2 * mu * eps; }";

/// Taylor-Hood element: velocity and pressure of degrees p and p − 1.
const STOKES: &str = "form stokes { field u: vector in H1(k); field p: scalar in H1(k - 1); \
     param nu = 1; f1[u] = nu * grad(u) - p * I; f0[p] = -div(u); }";

fn gauss_1(degree: usize) -> LinePoints {
    LinePoints::Gauss(degree + 1)
}

fn gauss_2(degree: usize) -> LinePoints {
    LinePoints::Gauss(degree + 2)
}

fn lobatto(degree: usize) -> LinePoints {
    LinePoints::GaussLobatto(degree + 1)
}

/// The suite `bp`.
pub const CASES: [Case; 9] = [
    Case { name: "BP1", form: MASS, rule: gauss_2, least: 1 },
    Case { name: "BP2", form: MASS_3, rule: gauss_2, least: 1 },
    Case { name: "BP3", form: POISSON, rule: gauss_2, least: 1 },
    Case { name: "BP4", form: POISSON_3, rule: gauss_2, least: 1 },
    Case { name: "BP5", form: POISSON, rule: lobatto, least: 1 },
    Case { name: "BP6", form: POISSON_3, rule: lobatto, least: 1 },
    Case { name: "poisson-gauss", form: POISSON, rule: gauss_1, least: 1 },
    Case { name: "elasticity", form: ELASTICITY, rule: gauss_1, least: 1 },
    Case { name: "stokes", form: STOKES, rule: gauss_1, least: 2 },
];

/// Error of a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A mesh that cannot be generated.
    #[error(transparent)]
    Mesh(#[from] GenerateError),
    /// Cells or facets of an integral that the mesh lacks.
    #[error(transparent)]
    Regions(#[from] MeshError),
    /// A whole mesh that cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A subdomain that cannot be built.
    #[error(transparent)]
    Part(#[from] PartError),
    /// A mesh that cannot be refined.
    #[error(transparent)]
    Refine(#[from] RefineError),
    /// A forest that cannot be built.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// Elements or kernels that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An element that does not exist.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// Degrees of freedom that cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Kernels that cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An operator that cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A failed run of a problem.
    #[error(transparent)]
    Run(Box<RunError>),
    /// An operator application that failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device failure.
    #[error("{0}")]
    Device(String),
    /// A form of the suite that does not compile.
    #[error("the form of {0} does not compile")]
    Form(&'static str),
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchRow {
    /// The problem.
    pub problem: &'static str,
    /// p.
    pub degree: usize,
    /// Name of the rule.
    pub quadrature: String,
    /// Number of components of all fields.
    pub components: usize,
    /// Cells per batch.
    pub lanes: usize,
    /// Geometry that the kernel reads.
    pub geometry: String,
    /// Number of processes, each with a subdomain of the box.
    pub processes: usize,
    /// Threads per process.
    pub threads: usize,
    /// Number of degrees of freedom over all processes.
    pub dofs: usize,
    /// Median seconds of y = A x, on the slowest process.
    pub seconds: f64,
    /// Seconds predicted by the cost model with the measured rates of this machine.
    pub predicted_seconds: f64,
    /// Bytes streamed per degree of freedom.
    pub bytes_per_dof: f64,
    /// Flops per degree of freedom.
    pub flops_per_dof: f64,
    /// Operations per degree of freedom, weighted by the cost model in full-vector multiply-adds.
    pub operations_per_dof: f64,
    /// Ratio of the roofline bound to the measured time.
    pub floor_fraction: f64,
    /// Number of cells over all processes.
    pub cells: usize,
    /// Cost of a cell by the cost model.
    pub cost: Cost,
    /// Seconds of the product with the assembled matrix, if requested.
    pub csr_seconds: Option<f64>,
}

impl BenchRow {
    /// Adds the measured time, the bound and the prediction.
    ///
    /// `like` is a machine of the same kind, and `share` the fraction of its widest vectors that the kernel uses.
    fn timed(self, seconds: f64, rates: &Rates, like: &Machine, share: f64) -> Self {
        let floor = (self.bytes_per_dof / rates.copy).max(self.flops_per_dof / rates.flops);
        let floor_fraction = floor * self.dofs as f64 / seconds;
        let machine = rates.machine(like);
        let predicted_seconds =
            self.cost.time(&machine, share) * self.cells as f64 + machine.launch;
        Self { seconds, floor_fraction, predicted_seconds, ..self }
    }

    /// Returns the degrees of freedom per second.
    pub fn dofs_per_second(&self) -> f64 {
        self.dofs as f64 / self.seconds
    }

    /// Returns the floating-point operations per second.
    pub fn flops_per_second(&self) -> f64 {
        self.flops_per_dof * self.dofs_per_second()
    }

    /// Returns the degrees of freedom per second of the assembled matrix.
    pub fn csr_dofs_per_second(&self) -> Option<f64> {
        self.csr_seconds.map(|seconds| self.dofs as f64 / seconds)
    }
}

/// A compiled case at a degree.
pub struct PreparedCase {
    /// Linearised operator.
    pub operator: Operator,
    /// Its kernels.
    pub compiled: CompiledKernels,
    /// Its elements.
    pub elements: Elements,
    /// Its form.
    pub form: PointForm,
    /// Target of its kernels.
    pub target: Target,
}

impl PreparedCase {
    /// Returns whether it is a subdomain.
    fn is_part(&self) -> bool {
        self.operator.discretisation().mesh.cut().is_some()
    }
}

/// Sets up a case with at least `dofs` degrees of freedom.
pub fn prepare(
    case: &Case,
    degree: usize,
    dofs: usize,
    target: &Target,
) -> Result<PreparedCase, BenchError> {
    prepare_part(case, degree, dofs, target, &alone())
}

/// Sets up this process's subdomain of a case with at least `dofs` degrees of freedom. Collective.
pub fn prepare_part(
    case: &Case,
    degree: usize,
    dofs: usize,
    target: &Target,
    group: &Arc<dyn ProcessGroup>,
) -> Result<PreparedCase, BenchError> {
    let UncompiledCase { form, elements, on, params } = set_up(case, degree, dofs, group)?;
    let compiled = compile(&form, &elements, &facts(&on), &[Task::Action], target)?;
    let mut operator = Operator::on_host(
        on,
        compiled.module.clone(),
        &compiled.kernels,
        target.precision,
        &params,
        true,
    )?;
    let state = operator.vector();
    operator.linearise(&state)?;
    let target = *target;
    Ok(PreparedCase { operator, compiled, elements, form, target })
}

fn alone() -> Arc<dyn ProcessGroup> {
    Arc::new(SingleProcess)
}

/// The deformation of the boxes of all suites.
const DEFORMATION: f64 = 0.1;

/// Returns the arguments of a box with so many cells in each direction.
fn box_arguments(dim: usize, cells: usize, deform: f64) -> BTreeMap<String, Argument> {
    let numbers = [("dim", dim as f64), ("cells", cells as f64), ("deform", deform)];
    numbers.map(|(name, value)| (name.to_owned(), Argument::Number(value))).into()
}

/// Builds such a box.
///
/// # Errors
///
/// More cells than indices can address.
fn box_mesh(dim: usize, cells: usize, deform: f64) -> Result<Arc<Mesh>, BenchError> {
    Ok(Arc::new(generate("box", &box_arguments(dim, cells, deform))?))
}

/// Builds this process's subdomain of a deformed box on which the fields have at least `dofs` degrees of freedom.
fn mesh(
    elements: &Elements,
    dofs: usize,
    group: &Arc<dyn ProcessGroup>,
) -> Result<Arc<Mesh>, BenchError> {
    let fields = elements.spaces();
    let nodes = |element: Element, cells: usize| match element {
        Element::Lagrange(own) if !own.is_continuous() => ((own.degree() + 1) * cells).pow(3),
        // Each of three components lacks the last layer along one or two axes.
        Element::Whitney(own) => 3 * (own.degree() * cells).pow(3),
        own => (own.degree() * cells + 1).pow(3),
    };
    let unknowns = |cells: usize| -> usize {
        fields.iter().map(|&(element, components)| components * nodes(element, cells)).sum()
    };
    let cells = (1..).find(|&cells| unknowns(cells) >= dofs).unwrap_or(1);
    let arguments = box_arguments(3, cells, DEFORMATION);
    let source = MeshSource::Generator { name: "box".to_owned(), arguments };
    Ok(begin(&source, Path::new(""), group.size())?.part(0, &[], group)?)
}

/// A case at a degree, before compilation.
struct UncompiledCase {
    form: PointForm,
    elements: Elements,
    on: Arc<Discretisation>,
    /// Time and parameters.
    params: Vec<f64>,
}

fn set_up(
    case: &Case,
    degree: usize,
    dofs: usize,
    group: &Arc<dyn ProcessGroup>,
) -> Result<UncompiledCase, BenchError> {
    let cell = Cell::Hexahedron;
    let form = form_of(case.name, case.form, cell.dim())?;
    let rule = Rule::Tensor { cell, line: (case.rule)(degree) };
    let elements = Elements::new(&form, cell, degree, rule)?;
    let on = Arc::new(Discretisation::new(mesh(&elements, dofs, group)?, &elements.spaces())?);
    let own = form.params.iter().flat_map(|param| param.value.clone());
    let params = [0.0].into_iter().chain(own).collect();
    Ok(UncompiledCase { form, elements, on, params })
}

/// Compiles the only form of a text.
fn form_of(name: &'static str, text: &str, dim: usize) -> Result<PointForm, BenchError> {
    let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new(name, text));
    let form = program.and_then(|program| {
        let form = program.forms().first()?.name.clone();
        program.point_form(&form, dim).ok()
    });
    form.ok_or(BenchError::Form(name))
}

/// Returns a vector that is the same on every machine.
pub fn input(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.5).collect()
}

/// Returns an input vector of an operator; interface entries have the value of their lowest rank.
fn input_of(operator: &Operator) -> Vector {
    let mut x = operator.vector();
    x.set(&input(x.len()));
    x.synchronise();
    x
}

/// Measures y = A x in the current thread pool. Collective, with the total rates of all processes.
pub fn measure(
    case: &Case,
    prepared: &PreparedCase,
    rates: &Rates,
) -> Result<BenchRow, BenchError> {
    let operator = &prepared.operator;
    let (x, mut y) = (input_of(operator), operator.vector());
    let mut work = || operator.apply(&x, &mut y);
    let seconds = match prepared.is_part() {
        true => scaling::median(operator, &x, &mut work)?,
        false => median_seconds(work)?,
    };
    let row = describe(
        case,
        &prepared.form,
        &prepared.elements,
        &prepared.compiled.plans,
        operator.discretisation(),
        operator.table_bytes(Task::Action),
    )?;
    let row = BenchRow { threads: rayon::current_num_threads(), ..row };
    let widest = prepared.target.isa.widest(Precision::F64) as f64;
    let share = (row.lanes as f64 / widest).max(1.0 / 8.0);
    Ok(row.timed(seconds, rates, &Machine::SERVER_CORE, share))
}

/// Describes y = A x without running it.
fn describe(
    case: &Case,
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    on: &Discretisation,
    table_bytes: usize,
) -> Result<BenchRow, BenchError> {
    let plan = plans.iter().find(|plan| plan.task == Task::Action);
    let plan = plan.ok_or(BenchError::Form(case.name))?;
    let (kernel, abi) = lower(form, elements, plan)?;
    let cost = count(&kernel, &abi, elements);
    let cells = on.mesh.n_cells() as f64;
    let stored: usize =
        (0..elements.fields.len()).map(|field| stored_inside(&abi, elements, field)).sum();
    let numbers = 3.0 * on.n_dofs() as f64 - cells * stored as f64;
    let mut sums = [cells, table_bytes as f64 + numbers * abi.precision.bytes() as f64];
    on.mesh.sum_in_all(&mut sums);
    let ([cells, bytes], dofs) = (sums, on.dofs_in_all());
    let per_dof = |all: f64| all / dofs as f64;
    let geometry = match plan.linearisation {
        Linearisation::Stored => "coefficients".to_owned(),
        Linearisation::Recompute => plan.geometry.to_string(),
    };
    Ok(BenchRow {
        problem: case.name,
        degree: elements.degree,
        quadrature: elements.rule.to_string(),
        components: elements.components.iter().sum(),
        lanes: plan.lanes,
        geometry,
        processes: on.mesh.cut().map_or(1, |cut| cut.group().size()),
        threads: 0,
        dofs,
        seconds: 0.0,
        predicted_seconds: 0.0,
        bytes_per_dof: per_dof(bytes),
        flops_per_dof: per_dof(cost.flops() * cells),
        operations_per_dof: per_dof(cost.operations(&Weights::LANES) * cells),
        floor_fraction: 0.0,
        csr_seconds: None,
        cells: cells as usize,
        cost,
    })
}

/// Returns the median time of a call after three warm-ups, over at least half a second and five calls.
pub fn median_seconds(
    mut call: impl FnMut() -> Result<(), OperatorError>,
) -> Result<f64, OperatorError> {
    for _ in 0..3 {
        call()?;
    }
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < 5 || (begin.elapsed().as_secs_f64() < 0.5 && times.len() < 200) {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Returns the median time of the product with the assembled matrix. With several processes, each has the matrix of its
/// own cells, and interface rows are summed, like those of cells.
pub fn csr_seconds(prepared: &PreparedCase) -> Result<f64, BenchError> {
    let operator = &prepared.operator;
    let matrix = Csr::assemble(operator)?;
    let n = matrix.size();
    let x = input(n);
    let mut y = vec![0.0; n];
    let Some(sharing) = operator.discretisation().sharing() else {
        return Ok(median_seconds(|| {
            matrix.apply(&x, &mut y);
            Ok(())
        })?);
    };
    Ok(scaling::median(operator, &operator.vector(), &mut || {
        matrix.apply(&x, &mut y);
        sharing.sum(&mut y);
        Ok(())
    })?)
}
