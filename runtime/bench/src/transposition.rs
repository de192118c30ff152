//! `wf bench --suite transposition`: blocks per batch and batches per group of thread transposition.
//!
//! The residuals of M. G. Knepley, K. Rupp, A. R. Terrel, "Finite element integration with quadrature on the GPU"
//! (2016), section 6: Poisson and elasticity of degree 1 on triangles and tetrahedra, with one point. For each number
//! of blocks and batches of their table 2, the time of a whole residual is compared with three others: the prediction
//! of their equations 3 to 9, the roofline bound of our own kernels, and one thread per cell.

use super::device::median;
use super::{BenchError, form_of, input};
use fem_dsl::point::PointForm;
use fem_dsl::problem::Argument;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::cost::count;
use kernels_gen::cost::transposition::Model;
use kernels_gen::element::{Cell, Lagrange, default_rule};
use kernels_gen::plan::{Elements, Strategy, Task};
use runtime::algebra::vector::Precision;
use runtime::device::Device;
use runtime::kernels::compile::{compile_for_device, facts};
use runtime::kernels::rates::Rates;
use runtime::mesh::generate::generate;
use runtime::operator::Operator;
use runtime::solve::NonlinearSystem;
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Problems: names and forms.
pub const PROBLEMS: [(&str, &str); 2] = [
    ("poisson", "form poisson { field u: scalar; f1[u] = grad(u); }"),
    ("elasticity", "form elasticity { field u: vector; f1[u] = sym(grad(u)); }"),
];

/// Cell types.
pub const CELLS: [Cell; 2] = [Cell::Triangle, Cell::Tetrahedron];

/// Blocks per batch, as in the paper's table 2.
pub const BLOCKS: [usize; 6] = [16, 20, 24, 28, 32, 36];

/// Consecutive batches, as in the paper's table 2.
pub const BATCHES: [usize; 4] = [4, 8, 12, 16];

/// A problem on a mesh.
pub struct PreparedProblem {
    device: Arc<dyn Device>,
    form: PointForm,
    elements: Elements,
    precision: Precision,
    wishes: PlanOverrides,
    on: Arc<Discretisation>,
    /// Result of one thread per cell.
    wanted: Vec<f64>,
    /// Measurement of one thread per cell.
    pub cell_per_lane: PlanMeasurement,
}

/// Measurement of one plan.
#[derive(Clone, Debug)]
pub struct PlanMeasurement {
    /// Cells per batch.
    pub cells: usize,
    /// Threads per group.
    pub threads: usize,
    /// Bytes of shared memory per group.
    pub shared_bytes: usize,
    /// Geometry that the kernel reads.
    pub geometry: String,
    /// Median seconds of one residual.
    pub seconds: f64,
    /// Bytes streamed by a residual, by our own count.
    pub bytes: f64,
    /// Operations of a residual, by our own count.
    pub flops: f64,
    /// Largest difference from one thread per cell, relative to the largest entry.
    pub error: f64,
}

impl PlanMeasurement {
    /// Returns the ratio of the roofline bound of our own counts to the measured time. In single precision the bound
    /// uses twice the measured multiply-add rate.
    pub fn floor_fraction(&self, rates: &Rates, precision: Precision) -> f64 {
        (self.bytes / rates.copy).max(self.flops / peak(rates, precision)) / self.seconds
    }
}

/// Returns the peak operations per second; in single precision twice the measured double-precision rate.
fn peak(rates: &Rates, precision: Precision) -> f64 {
    match precision {
        Precision::F64 => rates.flops,
        Precision::F32 => 2.0 * rates.flops,
    }
}

/// Sets up a problem with at least `dofs` degrees of freedom; `wishes` apply to all kernels, except for the cells per
/// batch, which apply to thread transposition only.
pub fn prepare(
    device: &Arc<dyn Device>,
    (name, text): (&'static str, &'static str),
    cell: Cell,
    precision: Precision,
    dofs: usize,
    wishes: PlanOverrides,
) -> Result<PreparedProblem, BenchError> {
    let dim = cell.dim();
    let form = form_of(name, text, dim)?;
    let components = form.fields.first().map_or(1, |field| field.shape.components());
    let nodes = dofs as f64 / components as f64;
    let along = (nodes.powf(1.0 / dim as f64) - 1.0).ceil().max(1.0);
    let arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(dim as f64)),
        ("cells".to_owned(), Argument::Number(along)),
        ("cell".to_owned(), Argument::Word(cell.to_string())),
    ]);
    let mesh = generate("box", &arguments)?;
    // Exact to degree 1: one point, regardless of the form.
    let elements = Elements::new(&form, cell, 1, default_rule(cell, 1, 1, Some(1)))?;
    let element = Lagrange::continuous(cell, 1)?;
    let on = Arc::new(Discretisation::new(mesh, &[(element, components)])?);
    let mut prepared = PreparedProblem {
        device: Arc::clone(device),
        form,
        elements,
        precision,
        wishes,
        on,
        wanted: Vec::new(),
        cell_per_lane: PlanMeasurement {
            cells: 1,
            threads: 0,
            shared_bytes: 0,
            geometry: String::new(),
            seconds: 0.0,
            bytes: 0.0,
            flops: 0.0,
            error: 0.0,
        },
    };
    let (run, wanted) = prepared.run(Strategy::CellPerLane)?;
    prepared.wanted = wanted;
    prepared.cell_per_lane = run;
    Ok(prepared)
}

impl PreparedProblem {
    /// Returns the number of degrees of freedom.
    pub fn dofs(&self) -> usize {
        self.on.n_dofs()
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.on.mesh.n_cells()
    }

    /// Returns the number of quadrature points.
    pub fn points(&self) -> usize {
        self.elements.rule.count()
    }

    /// Returns the paper's model for a number of blocks.
    pub fn model(&self, blocks: usize) -> Model {
        Model::new(&self.form, &self.elements, blocks, self.precision.bytes())
    }

    /// Returns the operations of a residual by equation 7.
    pub fn model_flops(&self) -> f64 {
        let model = self.model(1);
        model.flops() as f64 / model.batch() as f64 * self.n_cells() as f64
    }

    /// Returns the operations per second predicted by equations 6 to 8.
    pub fn predicted(&self, rates: &Rates) -> f64 {
        self.model(1).flop_rate(rates.copy, peak(rates, self.precision))
    }

    /// Measures a residual with numbers of blocks per batch and consecutive batches.
    pub fn measure(&self, blocks: usize, batches: usize) -> Result<PlanMeasurement, BenchError> {
        let (run, found) = self.run(Strategy::ThreadTransposition { blocks, batches })?;
        let most = self.wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let off = found.iter().zip(&self.wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        Ok(PlanMeasurement { error: off / most, ..run })
    }

    /// Measures a residual with a strategy; returns the residual as well.
    fn run(&self, strategy: Strategy) -> Result<(PlanMeasurement, Vec<f64>), BenchError> {
        let lanes = self.wishes.lanes.filter(|_| strategy != Strategy::CellPerLane);
        let wishes = PlanOverrides { strategy: Some(strategy), lanes, ..self.wishes };
        let (facts, device) = (facts(&self.on), Arc::clone(&self.device));
        let (form, elements, precision) = (&self.form, &self.elements, self.precision);
        let tasks = [Task::Residual];
        let compiled =
            compile_for_device(form, elements, &facts, &tasks, device, precision, &wishes)?;
        let plan = compiled.plans.first().cloned().ok_or(BenchError::Form("residual"))?;
        let operator = Operator::on_device(Arc::clone(&self.on), Arc::new(compiled), &[0.0], true)?;
        let (kernel, abi) = kernels_gen::strategy::lower(form, elements, &plan)?;
        let cost = count(&kernel, &abi, elements);
        let (mut u, mut r) = (operator.vector(), operator.vector());
        u.set(&input(self.dofs()));
        NonlinearSystem::residual(&operator, &u, &mut r)?;
        let found = r.to_vec();
        operator.finish()?;
        let seconds =
            median(&*self.device, 2, || Ok(NonlinearSystem::residual(&operator, &u, &mut r)?))?;
        let vectors = 3 * self.dofs() * precision.bytes();
        let run = PlanMeasurement {
            cells: plan.lanes,
            threads: abi.threads.max(plan.lanes),
            shared_bytes: abi.shared_bytes,
            geometry: plan.geometry.to_string(),
            seconds,
            bytes: (operator.table_bytes(Task::Residual) + vectors) as f64,
            flops: cost.flops() * self.n_cells() as f64,
            error: 0.0,
        };
        Ok((run, found))
    }
}
