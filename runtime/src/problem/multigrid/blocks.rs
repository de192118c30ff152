//! Block preconditioner ([`BlockPreconditioner`]) of several fields: multigrid for each field with a diagonal block, a
//! mass as Schur complement for the others.

use super::super::RunError;
use super::super::kernels::compile_for;
use super::{HierarchyInput, MultigridError};
use crate::operator::Operator;
use crate::problem::plan::{FieldPreconditioner, HierarchySettings};
use crate::solve::{Approximation, BlockPreconditioner, FieldBlock, SchurMass};
use crate::space::discretisation::{Discretisation, Field};
use fem_dsl::point::{Degree, PointForm, Space, block, complement, eliminated};
use kernels_gen::plan::{Elements, Task};
use std::sync::Arc;

/// Condition number of D⁻¹M for a mass M in one dimension; largest for linear elements.
const MASS: f64 = 3.0;

impl HierarchyInput<'_> {
    /// Builds an approximation of J⁻¹; `operator` applies J.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure; the inner error is the reason why there is none.
    pub fn approximation(
        &self,
        operator: &Operator,
    ) -> Result<Result<Box<dyn Approximation>, MultigridError>, RunError> {
        let HierarchySettings { fields, .. } = self.settings;
        if self.on.fields.len() == 1 {
            let made = self.levels(operator, self.settings.of_field(&self.form.fields[0].name))?;
            return Ok(made.map(|levels| Box::new(levels) as Box<dyn Approximation>));
        }
        if !self.on.affine.is_empty() {
            return Ok(Err(MultigridError::Combined));
        }
        let (mut blocks, mut masses) = (Vec::new(), Vec::new());
        let eliminated = eliminated(self.form);
        for (number, field) in self.form.fields.iter().enumerate() {
            if eliminated.contains(&number) {
                continue;
            }
            let name = field.name.clone();
            let asked = fields.get(&name);
            let fits = self.on.fields[number].space.element().is_continuous()
                && asked != Some(&FieldPreconditioner::Mass);
            if let Some(form) = block(self.form, number).filter(|_| fits) {
                match self.block(&form, number, operator)? {
                    Ok(levels) => {
                        blocks.push(FieldBlock { name, part: self.on.dofs_of(number), levels });
                    }
                    Err(unsuited) => return Ok(Err(unsuited)),
                }
            } else if let Some(FieldPreconditioner::Multigrid(_)) = asked {
                return Ok(Err(MultigridError::NoBlock { field: name }));
            } else if let Some(form) = complement(self.form, number) {
                masses.push(self.mass(&form, number, operator)?);
            } else {
                return Ok(Err(MultigridError::Block { field: name }));
            }
        }
        if blocks.is_empty() {
            return Ok(Err(MultigridError::Block { field: self.form.fields[0].name.clone() }));
        }
        Ok(Ok(Box::new(BlockPreconditioner::new(blocks, masses))))
    }

    /// Builds the levels of one field's diagonal block.
    fn block(
        &self,
        form: &PointForm,
        number: usize,
        operator: &Operator,
    ) -> Result<Result<crate::solve::Multigrid, MultigridError>, RunError> {
        let mut form = form.clone();
        // A relative degree lets each level choose its own.
        form.fields[0].space = Space::H1(Degree::Relative(0));
        let elements = self.elements_of(number);
        let on = self.restricted(&form, vec![self.on.fields[number].clone()])?;
        HierarchyInput { form: &form, elements: &elements, on: &on, ..*self }
            .levels(operator, self.settings.of_field(&self.form.fields[number].name))
    }

    /// Returns the elements of one field.
    fn elements_of(&self, number: usize) -> Elements {
        let element = self.elements.fields[number];
        Elements {
            degree: element.degree(),
            fields: vec![element],
            components: vec![self.elements.components[number]],
            notes: Vec::new(),
            lost: None,
            ..self.elements.clone()
        }
    }

    /// Builds the mass that stands for a field's Schur complement: on this field, unless its weight depends on the state
    /// of other fields.
    fn mass(
        &self,
        form: &PointForm,
        number: usize,
        operator: &Operator,
    ) -> Result<SchurMass, RunError> {
        let (own, all) = (block(form, number), self.elements);
        let (form, elements, fields) = match &own {
            Some(own) => (own, self.elements_of(number), vec![self.on.fields[number].clone()]),
            None => (form, all.clone(), self.on.fields.clone()),
        };
        let on = self.restricted(form, fields)?;
        let (tasks, params) = ([Task::Action, Task::Diagonal], &self.parameters.values);
        let table_cache = operator.table_cache();
        let (mass, _) =
            compile_for(form, &elements, &on, params, &tasks, self.platform, table_cache)?;
        let like = mass.zeros();
        let condition = match all.fields[number].degree() {
            0 => 1.0,
            _ => MASS.powi(self.on.mesh.dim() as i32),
        };
        let part = self.on.dofs_of(number);
        Ok(SchurMass::new(Box::new(mass), &like, part, condition))
    }

    /// Returns the discretisation restricted to some fields, with the regions of another form.
    pub(in crate::problem) fn restricted(
        &self,
        form: &PointForm,
        fields: Vec<Field>,
    ) -> Result<Arc<Discretisation>, RunError> {
        let mut on = self.on.of_fields(fields);
        on.find_regions(form)?;
        Ok(Arc::new(on))
    }
}
