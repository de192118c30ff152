//! Comparison of kernels with the reference: residual, action and diagonal at the known solution, on any target.

use super::{VerificationProblem, free, vector};
use crate::algebra::vector::epsilon;
use crate::operator::Operator;
use crate::problem::{Kernels, Platform, RunError};
use crate::reference::{AuxData, BoundedValue, FormInputs, NodalValues, Reference, functions};
use crate::solve::NonlinearSystem;
use crate::space::discretisation::AuxValues;
use crate::support::random::random_entries;

/// Quantities computed by kernels.
pub const QUANTITIES: [&str; 3] = ["residual", "action", "diagonal"];

/// Reference results with error bounds, and the direction of the action.
pub struct ReferenceResults {
    /// Residual, action, diagonal; `None` in the rows of constrained degrees of freedom.
    quantities: [Vec<Option<BoundedValue>>; 3],
    direction: Vec<f64>,
}

/// Distance of kernels from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceDistance {
    /// For each of [`QUANTITIES`], the largest difference in multiples of the rounding-error bound.
    pub worst: [f64; 3],
}

impl ReferenceDistance {
    /// Returns whether all differences are within rounding error.
    pub fn holds(&self) -> bool {
        self.worst.iter().all(|worst| *worst <= 1.0)
    }
}

impl VerificationProblem {
    /// Evaluates the reference: dense and slow, for small meshes.
    ///
    /// # Errors
    ///
    /// Elements that do not exist.
    pub fn expected(&self) -> Result<ReferenceResults, RunError> {
        let (on, elements) = (&self.context.on, &self.context.elements);
        let (form, mesh) = (self.context.form(), &on.mesh);
        let mut reference =
            Reference::with_rule(form, self.context.problem.degree, mesh.order(), elements.rule)?;
        for (number, field) in on.fields.iter().enumerate() {
            let words = mesh.hanging().unwrap_or_default().iter();
            let of_cells = words.map(|&word| functions(field.space.element(), word)).collect();
            reference = reference.with_functions(number, of_cells);
            reference = reference.with_signs(number, field.space.signs().to_vec());
        }
        for (number, data) in on.aux.iter().enumerate() {
            if let AuxValues::Nodes(space, _) = data {
                reference = reference.with_data_signs(number, space.signs().to_vec());
            }
        }
        let dim = mesh.dim();
        let coordinates: Vec<f64> = mesh
            .nodes()
            .iter()
            .flat_map(|&node| mesh.points()[node as usize][..dim].to_vec())
            .collect();
        let mut direction = random_entries(on.n_dofs(), 7);
        free(on, &mut direction);
        let part = |values: &'_ [f64], field: usize| values[on.dofs_of(field)].to_vec();
        let fields = 0..on.fields.len();
        let states: Vec<Vec<f64>> = fields.clone().map(|i| part(&self.known, i)).collect();
        let directions: Vec<Vec<f64>> = fields.map(|i| part(&direction, i)).collect();
        let nodal =
            |(i, values): (usize, _)| NodalValues { map: on.fields[i].space.nodes(), values };
        let aux = on.aux.iter().map(|aux| match aux {
            AuxValues::Nodes(space, values) => {
                AuxData::Nodes(NodalValues { map: space.nodes(), values })
            }
            AuxValues::Cells(values) => AuxData::Cells(values),
            AuxValues::Points(values) => AuxData::Points(values),
        });
        let inputs = FormInputs {
            coordinates: &coordinates,
            state: states.iter().map(Vec::as_slice).enumerate().map(nodal).collect(),
            aux: aux.collect(),
            params: &self.context.parameters.values[1..],
            time: self.context.parameters.values[0],
            facets: on.numbered_facets(),
            pairs: on.matched_pairs(form)?,
            cells: on.cells.clone(),
        };
        let along: Vec<&[f64]> = directions.iter().map(Vec::as_slice).collect();
        let found = [
            reference.residual(&inputs),
            reference.action(&inputs, &along),
            reference.diagonal(&inputs),
        ];
        let quantities = found.map(|fields| {
            let mut all: Vec<Option<BoundedValue>> =
                fields.into_iter().flatten().map(Some).collect();
            on.conditions().for_each(|(dof, _)| all[dof] = None);
            all
        });
        Ok(ReferenceResults { quantities, direction })
    }

    /// Compiles kernels and compares their results.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure.
    pub fn compare(
        &self,
        expected: &ReferenceResults,
        platform: &Platform,
    ) -> Result<(ReferenceDistance, Kernels), RunError> {
        let (mut operator, kernels) = self.context.operator_on(platform)?;
        let distance = self.distance(expected, &mut operator)?;
        Ok((distance, kernels))
    }

    fn distance(
        &self,
        expected: &ReferenceResults,
        operator: &mut Operator,
    ) -> Result<ReferenceDistance, RunError> {
        let u = self.state(operator);
        let w = vector(&u, &expected.direction);
        let [mut residual, mut action, mut diagonal] = [u.like(), u.like(), u.like()];
        // Raw kernel output, without the projection of a mean-value constraint.
        operator.raw_residual(&u, &mut residual)?;
        operator.linearise(&u)?;
        operator.jacobian().apply_sparse(&w, &mut action)?;
        operator.diagonal(&mut diagonal)?;
        let found = [residual, action, diagonal].map(|vector| vector.to_vec());
        operator.finish()?;
        let epsilon = epsilon(u.precision());
        let mut worst = [0.0; 3];
        for ((worst, found), wanted) in worst.iter_mut().zip(&found).zip(&expected.quantities) {
            for (&found, wanted) in found.iter().zip(wanted) {
                let Some(wanted) = wanted else { continue };
                let difference = (found - wanted.value).abs();
                let ratio = match difference == 0.0 {
                    true => 0.0,
                    false => difference / wanted.tolerance(epsilon),
                };
                *worst = if ratio.is_nan() { f64::INFINITY } else { f64::max(*worst, ratio) };
            }
        }
        Ok(ReferenceDistance { worst })
    }
}
