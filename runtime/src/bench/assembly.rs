//! Making matrices and multiplying with them: a form on a mesh and a [`Representation`] → [`Measured`], on any machine.
//!
//! Poisson with unit coefficients on a box, unknowns on the whole surface 0. What is timed is the assembly of a matrix whose
//! pattern is there (but for `acoo`, which has none), and the product, each the median of many.

use super::device::median;
use super::product::{Machine, held};
use super::{BenchError, form_of, input, median_seconds};
use crate::assembly::{Assembly, Representation};
use crate::compile::{compile, compile_for_device, facts};
use crate::mesh::Mesh;
use crate::operator::{MatrixSize, Operator};
use crate::solve::{LinearOperator, NonlinearSystem};
use crate::vector::Precision;
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
