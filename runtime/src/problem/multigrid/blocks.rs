//! Block preconditioner ([`BlockPreconditioner`]) of several fields: multigrid for each field with a diagonal block, a
//! mass as Schur complement for the others.

use super::super::RunError;
use super::super::kernels::compile_for;
use super::{HierarchyInput, MultigridError};
use crate::kernels::compile::facts;
use crate::kernels::compile::prefetch::KernelRequest;
use crate::operator::Operator;
use crate::problem::plan::{FieldPreconditioner, LevelSettings};
use crate::problem::platform::Platform;
use crate::solve::{Approximation, BlockPreconditioner, FieldBlock, FieldInverse, SchurMass};
use crate::space::discretisation::{Discretisation, Field};
use fem_dsl::point::{
    Degree, PointForm, Space, block, complement, continuous, eliminated, magnitude,
};
use kernels_gen::plan::{Elements, Task};
use std::sync::Arc;

/// Condition number of D⁻¹M for a mass M in one dimension; largest for linear elements.
const MASS: f64 = 3.0;

/// Tasks of the kernels of a mass.
const MASS_TASKS: [Task; 2] = [Task::Action, Task::Diagonal];

/// The form of a diagonal block of the preconditioner.
enum BlockForm {
    /// The field's own block of J, whose inverse multigrid approximates.
    Multigrid(PointForm),
    /// A mass in place of the Schur complement.
    Mass(PointForm),
}

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
        if self.is_vector_valued() {
            let settings = self.settings.of_field(&self.form.fields[0].name);
            let made = self.auxiliary_space(operator, settings)?;
            return Ok(made.map(|made| Box::new(made) as Box<dyn Approximation>));
        }
        if self.on.fields.len() == 1 {
            let made = self.levels(operator, self.settings.of_field(&self.form.fields[0].name))?;
            return Ok(made.map(|levels| Box::new(levels) as Box<dyn Approximation>));
        }
        if !self.on.affine.is_empty() {
            return Ok(Err(MultigridError::Combined));
        }
        let forms = match self.block_forms() {
            Ok(forms) => forms,
            Err(unsuited) => return Ok(Err(unsuited)),
        };
        let (mut blocks, mut masses) = (Vec::new(), Vec::new());
        for (numbers, form) in self.shared(forms) {
            let number = numbers[0];
            let form = match form {
                BlockForm::Mass(form) => {
                    masses.push(self.mass(form, number, operator)?);
                    continue;
                }
                BlockForm::Multigrid(form) => form,
            };
            let name = self.form.fields[number].name.clone();
            let parts = numbers.into_iter().map(|number| self.on.dofs_of(number)).collect();
            let (elements, on, settings) = self.block(&form, number)?;
            let own = HierarchyInput { form: &form, elements: &elements, on: &on, ..*self };
            let made = match own.is_vector_valued() {
                true => {
                    let made = own.auxiliary_block(operator.table_cache(), settings)?;
                    made.map(|made| FieldInverse::Sum(Box::new(made)))
                }
                false => own
                    .levels(operator, settings)?
                    .map(|levels| FieldInverse::Levels(Box::new(levels))),
            };
            match made {
                Ok(inverse) => blocks.push(FieldBlock { name, parts, inverse }),
                Err(unsuited) => return Ok(Err(unsuited)),
            }
        }
        Ok(Ok(Box::new(BlockPreconditioner::new(blocks, masses))))
    }

    /// Returns the kernels of [`Self::approximation`].
    ///
    /// # Errors
    ///
    /// Elements that cannot be made.
    pub(in crate::problem) fn requests(&self) -> Result<Vec<KernelRequest>, RunError> {
        let settings = self.settings.of_field(&self.form.fields[0].name);
        if self.is_vector_valued() {
            return self.auxiliary_requests(settings, false);
        }
        if self.on.fields.len() == 1 {
            return self.level_requests(settings);
        }
        let mut all = Vec::new();
        for (numbers, form) in self.shared(self.block_forms().unwrap_or_default()) {
            let number = numbers[0];
            match form {
                BlockForm::Multigrid(form) => {
                    let (elements, on, settings) = self.block(&form, number)?;
                    let own = HierarchyInput { form: &form, elements: &elements, on: &on, ..*self };
                    all.extend(match own.is_vector_valued() {
                        true => own.auxiliary_requests(settings, true)?,
                        false => own.level_requests(settings)?,
                    });
                }
                BlockForm::Mass(form) => {
                    let (form, elements, on) = self.mass_form(form, number)?;
                    let Platform { target, device, .. } = self.platform.clone();
                    all.push(KernelRequest {
                        facts: facts(&on),
                        form,
                        elements,
                        tasks: MASS_TASKS.to_vec(),
                        deferred: Vec::new(),
                        needs_deferred: false,
                        target,
                        device,
                    });
                }
            }
        }
        Ok(all)
    }

    /// Returns the forms of the diagonal blocks of all fields that are not eliminated.
    fn block_forms(&self) -> Result<Vec<(usize, BlockForm)>, MultigridError> {
        let eliminated = eliminated(self.form);
        let mut all = Vec::new();
        for (number, field) in self.form.fields.iter().enumerate() {
            if eliminated.contains(&number) {
                continue;
            }
            let name = field.name.clone();
            let asked = self.settings.fields.get(&name);
            let is_continuous = self.on.fields[number].space.element().is_continuous();
            let is_piola = field.space.is_piola();
            let couples_cells = |form: &PointForm| {
                form.integrals.iter().any(|integral| integral.region.is_interior())
            };
            let fits = |form: &PointForm| {
                asked != Some(&FieldPreconditioner::Mass)
                    && !(is_piola && couples_cells(form))
                    && (is_continuous || continuous(form).is_some())
            };
            let definite = magnitude(self.form, number);
            let own = if let Some(mut form) =
                definite.or_else(|| block(self.form, number)).filter(fits)
            {
                // A relative degree lets each level choose its own.
                let degree = Degree::Relative(0);
                form.fields[0].space = match field.space {
                    Space::Hcurl(_) => Space::Hcurl(degree),
                    Space::Hdiv(_) => Space::Hdiv(degree),
                    _ if is_continuous => Space::H1(degree),
                    _ => Space::L2(degree),
                };
                BlockForm::Multigrid(form)
            } else if is_piola {
                return Err(MultigridError::VectorBlock { field: name });
            } else if let Some(FieldPreconditioner::Multigrid(_)) = asked {
                return Err(MultigridError::NoBlock { field: name });
            } else if let Some(form) = complement(self.form, number) {
                BlockForm::Mass(form)
            } else {
                return Err(MultigridError::Block { field: name });
            };
            all.push((number, own));
        }
        let has_levels = all.iter().any(|(_, form)| matches!(form, BlockForm::Multigrid(_)));
        match has_levels {
            true => Ok(all),
            false => Err(MultigridError::Block { field: self.form.fields[0].name.clone() }),
        }
    }

    /// Joins the fields with equal blocks, conditions and settings, such as the parts of a complex one.
    fn shared(&self, forms: Vec<(usize, BlockForm)>) -> Vec<(Vec<usize>, BlockForm)> {
        let mut all: Vec<(Vec<usize>, BlockForm)> = Vec::new();
        for (number, form) in forms {
            let is_same = |(numbers, other): &&mut (Vec<usize>, BlockForm)| match (&form, other) {
                (BlockForm::Multigrid(own), BlockForm::Multigrid(other)) => {
                    own.fields[0].space.is_piola()
                        && own.integrals == other.integrals
                        && self.are_alike(numbers[0], number)
                }
                _ => false,
            };
            match all.iter_mut().find(is_same) {
                Some((numbers, _)) => numbers.push(number),
                None => all.push((vec![number], form)),
            }
        }
        all
    }

    /// Returns whether two fields have equal elements, constrained degrees of freedom and settings.
    fn are_alike(&self, first: usize, second: usize) -> bool {
        let [one, other] = [first, second].map(|number| &self.on.fields[number]);
        let [name, of_other] = [first, second].map(|number| &self.form.fields[number].name);
        let constrained = |field: &Field| -> Vec<usize> {
            field.constraints.iter().map(|(dof, _)| dof).collect()
        };
        one.space.element() == other.space.element()
            && constrained(one) == constrained(other)
            && self.settings.of_field(name) == self.settings.of_field(of_other)
    }

    /// Returns the elements, the discretisation and the settings of the levels of one field's diagonal block.
    fn block(
        &self,
        form: &PointForm,
        number: usize,
    ) -> Result<(Elements, Arc<Discretisation>, LevelSettings), RunError> {
        let on = self.restricted(form, vec![self.on.fields[number].clone()])?;
        let settings = self.settings.of_field(&self.form.fields[number].name);
        Ok((self.elements_of(number), on, settings))
    }

    /// Returns the elements of one field.
    fn elements_of(&self, number: usize) -> Elements {
        self.elements.of_one(number)
    }

    /// Returns the form, the elements and the discretisation of a mass: on its own field, unless its weight depends on the
    /// state of other fields.
    fn mass_form(
        &self,
        form: PointForm,
        number: usize,
    ) -> Result<(PointForm, Elements, Arc<Discretisation>), RunError> {
        let (form, elements, fields) = match block(&form, number) {
            Some(own) => (own, self.elements_of(number), vec![self.on.fields[number].clone()]),
            None => (form, self.elements.clone(), self.on.fields.clone()),
        };
        let on = self.restricted(&form, fields)?;
        Ok((form, elements, on))
    }

    /// Builds the mass that stands for a field's Schur complement.
    fn mass(
        &self,
        form: PointForm,
        number: usize,
        operator: &Operator,
    ) -> Result<SchurMass, RunError> {
        let (form, elements, on) = self.mass_form(form, number)?;
        let (params, table_cache) = (&self.parameters.values, operator.table_cache());
        let (mass, _) =
            compile_for(&form, &elements, &on, params, &MASS_TASKS, self.platform, table_cache)?;
        let like = mass.zeros();
        let condition = match self.elements.fields[number].degree() {
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
