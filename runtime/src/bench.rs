//! `wf bench`: the operators of the CEED bake-off problems beside their floor and a sparse matrix.
//!
//! ```text
//! BP1, BP2  mass                p + 2 Gauss points        1, 3 components
//! BP3, BP4  Poisson             p + 2 Gauss points        1, 3
//! BP5, BP6  Poisson             p + 1 Gauss-Lobatto       1, 3
//! poisson-gauss, elasticity     p + 1 Gauss               1, 3
//! stokes                        p + 1 Gauss               3 of degree p and 1 of degree p − 1
//! ```
//!
//! y = A x for the whole operator on a deformed, non-affine box of hexahedra, without conditions.
//! The floor is max(bytes / copy bandwidth, flops / rate of multiply-adds), both measured in the same
//! run; bytes are what the kernel streams: its tables, x once, y read and written.
//!
//! Several processes have a part of the box each. Unknowns, cells, bytes, flops and rates are of all together, seconds those of the one
//! that takes longest, from where all begin to where all have ended.

pub mod assembly;
pub mod balls;
pub mod candidate;
pub mod device;
pub mod kronbichler;
pub mod ljungkvist;
pub mod low_order;
pub mod product;
pub mod scaling;
#[cfg(test)]
mod tests;
pub mod transposition;

use crate::algebra::vector::{Precision, Vector};
use crate::kernels::compile::{CompileError, Compiled, Target, compile, facts};
use crate::kernels::rates::Rates;
use crate::mesh::generate::GenerateError;
use crate::mesh::parted::{PartError, begin};
use crate::mesh::refine::forest::{ForestError, RefineError};
use crate::mesh::{LoadError, Mesh};
use crate::operator::assemble::Csr;
use crate::operator::{BuildError, Operator};
use crate::problem::RunError;
use crate::processes::{Alone, Group};
use crate::solve::{LinearOperator, NonlinearSystem, OperatorError};
use crate::space::SpaceError;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Argument, MeshSource};
use kernels_gen::cost::{Cost, Machine, Weights, count, stored_inside};
use kernels_gen::element::{Cell, ElementError, Lagrange, LinePoints, Rule};
use kernels_gen::plan::{Elements, Linearisation, Plan, PlanError, Task};
use kernels_gen::strategy::lower;
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
    /// The rule at degree p.
    pub rule: fn(usize) -> LinePoints,
    /// The smallest p.
    pub least: usize,
}

const MASS: &str = "form mass { field u: scalar; f0[u] = u; }";
const MASS_3: &str = "form mass { field u: vector; f0[u] = u; }";
const POISSON: &str = "form poisson { field u: scalar; f1[u] = grad(u); }";
const POISSON_3: &str = "form poisson { field u: vector; f1[u] = grad(u); }";
const ELASTICITY: &str = "form elasticity { field u: vector; param lambda = 1; param mu = 1; \
     let eps = sym(grad(u)); f1[u] = lambda * tr(eps) * I + 2 * mu * eps; }";

/// Taylor and Hood's: velocity and pressure of degrees p and p − 1.
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

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The mesh.
    #[error(transparent)]
    Mesh(#[from] GenerateError),
    /// The mesh of all processes.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A part of it.
    #[error(transparent)]
    Part(#[from] PartError),
    /// A finer mesh.
    #[error(transparent)]
    Refine(#[from] RefineError),
    /// A forest.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// The elements.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An element.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The numbering.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The kernels.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The operator.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The problem.
    #[error(transparent)]
    Run(Box<RunError>),
    /// A launch.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device.
    #[error("{0}")]
    Device(String),
    /// The suite's own form does not compile.
    #[error("the form of {0} does not compile")]
    Form(&'static str),
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The problem.
    pub problem: &'static str,
    /// p.
    pub degree: usize,
    /// The rule, in words.
    pub quadrature: String,
    /// Components of all fields.
    pub components: usize,
    /// Cells a batch.
    pub lanes: usize,
    /// The geometry that the kernel reads.
    pub geometry: String,
    /// Processes, each with a part of the box.
    pub processes: usize,
    /// Threads of each.
    pub threads: usize,
    /// Unknowns, of all processes.
    pub dofs: usize,
    /// Seconds of one y = A x, the median, of the process that takes longest.
    pub seconds: f64,
    /// Seconds that the model predicts, of a machine that copies and multiplies as fast as this one.
    pub predicted_seconds: f64,
    /// Bytes streamed an unknown.
    pub bytes_per_dof: f64,
    /// Flops an unknown.
    pub flops_per_dof: f64,
    /// Operations an unknown, as the cost model weighs them: whole vectors' multiply-adds.
    pub operations_per_dof: f64,
    /// Floor over measured time.
    pub floor_fraction: f64,
    /// Cells, of all processes.
    pub cells: usize,
    /// What a cell is counted to cost.
    pub cost: Cost,
    /// Seconds of the product with the assembled matrix, where it was asked for.
    pub csr_seconds: Option<f64>,
}

impl Row {
    /// With the time that was measured, beside the floor of a machine.
    ///
    /// `like` is a machine of the same kind, and `share` that of its widest vectors which the kernel uses.
    fn timed(self, seconds: f64, rates: &Rates, like: &Machine, share: f64) -> Self {
        let floor = (self.bytes_per_dof / rates.copy).max(self.flops_per_dof / rates.flops);
        let floor_fraction = floor * self.dofs as f64 / seconds;
        let machine = rates.machine(like);
        let predicted_seconds =
            self.cost.time(&machine, share) * self.cells as f64 + machine.launch;
        Self { seconds, floor_fraction, predicted_seconds, ..self }
    }

    /// Unknowns a second.
    pub fn dofs_per_second(&self) -> f64 {
        self.dofs as f64 / self.seconds
    }

    /// Floating-point operations a second.
    pub fn flops_per_second(&self) -> f64 {
        self.flops_per_dof * self.dofs_per_second()
    }

    /// Unknowns a second of the assembled matrix.
    pub fn csr_dofs_per_second(&self) -> Option<f64> {
        self.csr_seconds.map(|seconds| self.dofs as f64 / seconds)
    }
}

/// A case at a degree, compiled and ready.
pub struct Prepared {
    /// The operator, linearised.
    pub operator: Operator,
    /// Its kernels.
    pub compiled: Compiled,
    /// Its elements.
    pub elements: Elements,
    /// Its form.
    pub form: PointForm,
    /// For what its kernels are compiled.
    pub target: Target,
}

impl Prepared {
    /// Whether other processes have parts of it too.
    fn is_part(&self) -> bool {
        self.operator.discretisation().mesh.cut().is_some()
    }
}

/// Sets a case up with at least `dofs` unknowns.
pub fn prepare(
    case: &Case,
    degree: usize,
    dofs: usize,
    target: &Target,
) -> Result<Prepared, BenchError> {
    prepare_part(case, degree, dofs, target, &alone())
}

/// The part that this process has of a case with at least `dofs` unknowns; all processes call it.
pub fn prepare_part(
    case: &Case,
    degree: usize,
    dofs: usize,
    target: &Target,
    group: &Arc<dyn Group>,
) -> Result<Prepared, BenchError> {
    let Setting { form, elements, on, params } = set_up(case, degree, dofs, group)?;
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
    Ok(Prepared { operator, compiled, elements, form, target })
}

fn alone() -> Arc<dyn Group> {
    Arc::new(Alone)
}

/// The part that this process has of a deformed box on which the fields have at least `dofs` unknowns.
fn mesh(elements: &Elements, dofs: usize, group: &Arc<dyn Group>) -> Result<Arc<Mesh>, BenchError> {
    let fields = elements.spaces();
    let nodes = |element: Lagrange, cells: usize| match element.is_continuous() {
        true => (element.degree() * cells + 1).pow(3),
        false => ((element.degree() + 1) * cells).pow(3),
    };
    let unknowns = |cells: usize| -> usize {
        fields.iter().map(|&(element, components)| components * nodes(element, cells)).sum()
    };
    let cells = (1..).find(|&cells| unknowns(cells) >= dofs).unwrap_or(1);
    let arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(3.0)),
        ("cells".to_owned(), Argument::Number(cells as f64)),
        ("deform".to_owned(), Argument::Number(0.1)),
    ]);
    let source = MeshSource::Generator { name: "box".to_owned(), arguments };
    Ok(begin(&source, Path::new(""), group.size())?.part(0, &[], group)?)
}

/// A case at a degree, before its kernels.
struct Setting {
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
    group: &Arc<dyn Group>,
) -> Result<Setting, BenchError> {
    let cell = Cell::Hexahedron;
    let form = form_of(case.name, case.form, cell.dim())?;
    let rule = Rule::Tensor { cell, line: (case.rule)(degree) };
    let elements = Elements::new(&form, cell, degree, rule)?;
    let on = Arc::new(Discretisation::new(mesh(&elements, dofs, group)?, &elements.spaces())?);
    let own = form.params.iter().flat_map(|param| param.value.clone());
    let params = [0.0].into_iter().chain(own).collect();
    Ok(Setting { form, elements, on, params })
}

/// The form of a text that holds one.
fn form_of(name: &'static str, text: &str, dim: usize) -> Result<PointForm, BenchError> {
    let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new(name, text));
    let form = program.and_then(|program| {
        let form = program.forms().first()?.name.clone();
        program.point_form(&form, dim).ok()
    });
    form.ok_or(BenchError::Form(name))
}

/// A vector that is the same everywhere.
pub fn input(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.5).collect()
}

/// An input of an operator: that of the first process where several have an unknown.
fn input_of(operator: &Operator) -> Vector {
    let mut x = operator.vector();
    x.set(&input(x.len()));
    x.agree();
    x
}

/// Measures y = A x in the current thread pool; all processes call it, with the rates of all.
pub fn measure(case: &Case, prepared: &Prepared, rates: &Rates) -> Result<Row, BenchError> {
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
    let row = Row { threads: rayon::current_num_threads(), ..row };
    let widest = prepared.target.isa.widest(Precision::F64) as f64;
    let share = (row.lanes as f64 / widest).max(1.0 / 8.0);
    Ok(row.timed(seconds, rates, &Machine::SERVER_CORE, share))
}

/// What is known of y = A x without running it.
fn describe(
    case: &Case,
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    on: &Discretisation,
    table_bytes: usize,
) -> Result<Row, BenchError> {
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
    Ok(Row {
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

/// The median time of a call, after three warm-ups, over at least half a second and five calls.
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

/// The median time of the product with the assembled matrix of a prepared case. Of several processes each has the matrix of its own
/// cells, and what they give to rows that several have is added up, as that of cells is.
pub fn csr_seconds(prepared: &Prepared) -> Result<f64, BenchError> {
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
