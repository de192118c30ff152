//! Assembled matrix of an operator, in compressed sparse rows.

pub use crate::algebra::sparse::Csr;
use crate::algebra::vector::Precision;
use crate::operator::Operator;
use crate::solve::{NonlinearSystem, OperatorError};
use crate::space::Space;
use crate::support::parallel::*;

impl Csr {
    /// Assembles the Jacobian at the last linearisation, as in [`Csr::assemble`]. An operator without a matrix uses
    /// element matrices, or products if its vectors live on a device or are in single precision, or if it couples pairs
    /// of cells.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied; the matrix exceeds the memory budget.
    pub fn of(operator: &Operator) -> Result<Self, OperatorError> {
        if let Some(mut matrix) = operator.assembled()? {
            matrix.drop_zeros();
            return Ok(matrix);
        }
        let is_on_host = !operator.is_on_device() && operator.precision() == Precision::F64;
        match is_on_host && !operator.discretisation().has_pairs() {
            true => Self::assemble(operator),
            false => Self::of_products(operator),
        }
    }

    fn of_products(operator: &Operator) -> Result<Self, OperatorError> {
        let dense = || OperatorError::new("the matrix of this operator is too dense, or too large");
        let coupling = NonlinearSystem::coupling(operator).ok_or_else(dense)?;
        Ok(Self::from(&coupling.matrix(operator, &operator.vector())?))
    }

    /// Assembles the Jacobian at the last linearisation, without exact zeros. Rows and columns of constrained degrees
    /// of freedom are the identity. Oblique conditions and affine constraints are included: the matrix is P A P + D N,
    /// or Cᵀ A C. The operator must be in double precision. On a subdomain the result is the contribution of this
    /// process, to be summed over all: its own cells, and the constraint rows that it owns.
    pub fn assemble(operator: &Operator) -> Result<Self, OperatorError> {
        let on = operator.discretisation();
        let fields: Vec<(&Space, usize)> = (0..on.fields.len())
            .map(|field| (&*on.fields[field].space, on.dofs_of(field).start))
            .collect();
        let cells: Vec<Vec<u32>> = (0..on.mesh.n_cells())
            .into_par_iter()
            .map(|cell| {
                let dofs = fields.iter().flat_map(|&(space, start)| {
                    let components = space.components();
                    space.cell_nodes(cell).iter().flat_map(move |&node| {
                        let first = start + node as usize * components;
                        (first..first + components).map(|dof| dof as u32)
                    })
                });
                dofs.collect()
            })
            .listed();
        let mut fixed = vec![false; on.n_dofs()];
        on.conditions().for_each(|(dof, _)| fixed[dof] = true);
        let mut matrix = Self::pattern(on.n_dofs(), &cells);
        operator.element_matrices(|range, matrices| {
            let n = cells.first().map_or(0, Vec::len);
            for (dofs, entries) in cells[range].iter().zip(matrices.chunks_exact((n * n).max(1))) {
                matrix.add(dofs, entries, &fixed);
            }
        })?;
        for dof in on.counted_conditions() {
            let row = matrix.starts[dof]..matrix.starts[dof + 1];
            if let Ok(at) = matrix.columns[row.clone()].binary_search(&(dof as u32)) {
                matrix.values[row.start + at] = 1.0;
            }
        }
        matrix.drop_zeros();
        operator.condensed(matrix)
    }
}
