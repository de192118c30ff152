//! Making matrices and multiplying with them: a form on a mesh and a [`Representation`] → [`Measured`], on any machine.
//!
//! Poisson with unit coefficients on a box, unknowns on the whole surface 0. What is timed is the assembly of a matrix whose
//! pattern is there (but for `acoo`, which has none), and the product, each the median of many.

use super::device::median;
use super::product::{Machine, held};
use super::{BenchError, form_of, input, median_seconds};
use crate::algebra::vector::Precision;
use crate::kernels::compile::{compile, compile_for_device, facts};
use crate::kernels::representation::{Assembly, Representation};
use crate::mesh::Mesh;
use crate::operator::{MatrixSize, Operator};
use crate::solve::{LinearOperator, NonlinearSystem};
use kernels_gen::choose::Wishes;
use kernels_gen::generate::elements;
use std::sync::Arc;
use std::time::Instant;

const FORM: &str = "form poisson { field u: scalar; f1[u] = grad(u); }";

/// All ways, the first that with which results are compared.
pub const WAYS: [Representation; 7] = [
    Representation::MatrixFree,
    Representation::Assembled(Assembly::Pattern),
    Representation::Assembled(Assembly::Coloured),
    Representation::Assembled(Assembly::Owner),
    Representation::Assembled(Assembly::Acoo),
    Representation::Stored,
    Representation::Recomputed,
];

/// What is known of a mesh before its matrix is made, all a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Unknowns of a cell.
    pub unknowns: f64,
    /// Rows.
    pub rows: f64,
    /// Entries of the matrix.
    pub entries: f64,
}

impl Counts {
    /// Of degree 1 on many triangles: half as many vertices, of which each sees seven.
    pub const TRIANGLES: Self = Self { unknowns: 3.0, rows: 0.5, entries: 3.5 };

    fn elements(&self) -> f64 {
        self.unknowns * self.unknowns
    }

    /// Bytes a cell at the peak of the paper's assembly (section V, figure 10), as lists take them that are made of value, column and
    /// the next element, with a head and a length a row, beside the matrix that they become:
    ///
    /// ```text
    /// (8 + 4 + 4) elements + (4 + 4) rows + 12 entries + 4 rows
    /// ```
    ///
    /// The paper has the sum alone; its parts are our reading.
    pub fn paper_bytes(&self) -> f64 {
        16.0 * self.elements() + 8.0 * self.rows + self.matrix_bytes()
    }

    /// Bytes a cell at the peak of [`Assembly::Acoo`] on devices: element matrices, unknowns and a link for each of their rows, two
    /// numbers a row and the matrix.
    ///
    /// ```text
    /// 8 elements + (4 + 4) unknowns + 4 rows + 12 entries + 4 rows
    /// ```
    pub fn acoo_bytes(&self) -> f64 {
        8.0 * self.elements() + 8.0 * self.unknowns + 4.0 * self.rows + self.matrix_bytes()
    }

    /// Bytes a cell of the matrix.
    pub fn matrix_bytes(&self) -> f64 {
        12.0 * self.entries + 4.0 * self.rows
    }

    /// Bytes a cell of stored element matrices (EbE-V1).
    pub fn stored_bytes(&self) -> f64 {
        8.0 * self.elements()
    }
}

/// Bytes a triangle that the paper measures of EbE-V2, EbE-V1 and its own way (section V).
pub const PAPER_BYTES: [u32; 3] = [79, 151, 192];

/// What was measured of one way.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Unknowns.
    pub dofs: usize,
    /// Seconds to find places and lists, once.
    pub set_up: f64,
    /// Seconds of an assembly, or of making the element matrices; none where nothing is made.
    pub assembly: Option<f64>,
    /// Seconds of a product.
    pub product: f64,
    /// What the matrix has.
    pub size: MatrixSize,
    /// The product with [`input`].
    pub result: Vec<f64>,
}

/// Measures one way.
///
/// # Errors
///
/// No plan, too little memory, a compiler or a device that fails.
pub fn measured(
    mesh: &Arc<Mesh>,
    degree: usize,
    how: Representation,
    machine: &Machine,
) -> Result<Measured, BenchError> {
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
            let (device, wishes) = (Arc::clone(device), Wishes { matrix: scatter, ..*wishes });
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
    Ok(Measured { dofs, set_up, assembly, product, size, result: y.to_vec() })
}
