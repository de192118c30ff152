//! Benchmark of matrix assembly and products, for a form on a mesh and a [`Representation`], on any machine.
//!
//! The problem is Poisson with unit coefficients on a box, with zero boundary values. Timed are the numeric assembly of
//! a matrix with a known pattern (`acoo` has none), and the product, each as the median of many.

use super::device::median;
use super::product::{Machine, held};
use super::{BenchError, form_of, input, median_seconds};
use kernels_gen::choose::PlanOverrides;
use kernels_gen::generate::elements;
use runtime::algebra::vector::Precision;
use runtime::kernels::compile::{compile, compile_for_device, facts};
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::Mesh;
use runtime::operator::{MatrixSize, Operator};
use runtime::solve::{LinearOperator, NonlinearSystem};
use std::sync::Arc;
use std::time::Instant;

const FORM: &str = "form poisson { field u: scalar; f1[u] = grad(u); }";

/// All representations; the first one is the reference.
pub const WAYS: [Representation; 7] = [
    Representation::MatrixFree,
    Representation::Assembled(Assembly::Pattern),
    Representation::Assembled(Assembly::Coloured),
    Representation::Assembled(Assembly::Owner),
    Representation::Assembled(Assembly::Acoo),
    Representation::Stored,
    Representation::Recomputed,
];

/// Sizes per cell of a mesh, known before assembly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellCounts {
    /// Degrees of freedom of a cell.
    pub unknowns: f64,
    /// Matrix rows.
    pub rows: f64,
    /// Matrix entries.
    pub entries: f64,
}

impl CellCounts {
    /// Degree 1 on many triangles: half as many vertices as triangles, with seven entries per row.
    pub const TRIANGLES: Self = Self { unknowns: 3.0, rows: 0.5, entries: 3.5 };

    fn elements(&self) -> f64 {
        self.unknowns * self.unknowns
    }

    /// Returns the peak bytes per cell of the paper's assembly (section V, figure 10). It uses linked lists of value,
    /// column and next element, with a head and a length per row, in addition to the resulting matrix:
    ///
    /// ```text
    /// (8 + 4 + 4) elements + (4 + 4) rows + 12 entries + 4 rows
    /// ```
    ///
    /// The paper states the sum only; the breakdown is an interpretation.
    pub fn paper_bytes(&self) -> f64 {
        16.0 * self.elements() + 8.0 * self.rows + self.matrix_bytes()
    }

    /// Returns the peak bytes per cell of [`Assembly::Acoo`] on devices: element matrices, degree of freedom and link
    /// of each of their rows, two numbers per matrix row, and the matrix.
    ///
    /// ```text
    /// 8 elements + (4 + 4) unknowns + 4 rows + 12 entries + 4 rows
    /// ```
    pub fn acoo_bytes(&self) -> f64 {
        8.0 * self.elements() + 8.0 * self.unknowns + 4.0 * self.rows + self.matrix_bytes()
    }

    /// Returns the bytes per cell of the matrix.
    pub fn matrix_bytes(&self) -> f64 {
        12.0 * self.entries + 4.0 * self.rows
    }

    /// Returns the bytes per cell of stored element matrices (EbE-V1).
    pub fn stored_bytes(&self) -> f64 {
        8.0 * self.elements()
    }
}

/// Bytes per triangle that the paper measures for EbE-V2, EbE-V1 and its own algorithm (section V).
pub const PAPER_BYTES: [u32; 3] = [79, 151, 192];

/// Measurements of one representation.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Number of degrees of freedom.
    pub dofs: usize,
    /// Seconds of the symbolic phase, once.
    pub set_up: f64,
    /// Seconds of an assembly, or of computing the element matrices; `None` if there is nothing to compute.
    pub assembly: Option<f64>,
    /// Seconds of a product.
    pub product: f64,
    /// Size of the matrix.
    pub size: MatrixSize,
    /// Product with [`input`].
    pub result: Vec<f64>,
}

/// Measures one representation.
///
/// # Errors
///
/// No plan, insufficient memory, a compiler or device failure.
pub fn measured(
    mesh: &Arc<Mesh>,
    degree: usize,
    how: Representation,
    machine: &Machine,
) -> Result<Measurement, BenchError> {
    let form = form_of("poisson", FORM, mesh.dim())?;
    let elements = elements(&form, mesh.cell(), degree, mesh.order(), None)?;
    let on = held(mesh, &elements)?;
    let (facts, tasks, on) = (facts(&on), how.tasks(), Arc::new(on));
    let scatter = Some(how.scatter());
    let mut operator = match machine {
        Machine::Processor(target) => {
            let mut target = *target;
            target.wishes.matrix = scatter;
            let compiled = compile(&form, &elements, &facts, tasks, &target)?;
            let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
            Operator::on_host(on, module, kernels, target.precision, &[0.0], true)?
        }
        Machine::Device(device, wishes) => {
            let (device, wishes) =
                (Arc::clone(device), PlanOverrides { matrix: scatter, ..*wishes });
            let precision = Precision::F64;
            let compiled =
                compile_for_device(&form, &elements, &facts, tasks, device, precision, &wishes)?;
            Operator::on_device(on, Arc::new(compiled), &[0.0], true)?
        }
    };
    operator.finish()?;
    let start = Instant::now();
    operator.represent(how)?;
    operator.finish()?;
    let set_up = start.elapsed().as_secs_f64();
    let state = operator.vector();
    operator.linearise(&state)?;
    let makes = !matches!(how, Representation::MatrixFree | Representation::Recomputed);
    let device = match machine {
        Machine::Device(device, _) => Some(&**device),
        Machine::Processor(_) => None,
    };
    let assembly = match device {
        _ if !makes => None,
        None => Some(median_seconds(|| operator.assemble())?),
        Some(device) => Some(median(device, 2, || Ok(operator.assemble()?))?),
    };
    let (mut x, mut y) = (operator.vector(), operator.vector());
    let dofs = x.len();
    x.set(&input(dofs));
    let product = match device {
        None => median_seconds(|| operator.apply(&x, &mut y))?,
        Some(device) => median(device, 3, || Ok(operator.apply(&x, &mut y)?))?,
    };
    operator.finish()?;
    let size = operator.matrix_size();
    Ok(Measurement { dofs, set_up, assembly, product, size, result: y.to_vec() })
}
