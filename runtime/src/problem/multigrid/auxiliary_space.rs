//! Builds the preconditioner of a field of H(curl) or H(div) ([`AuxiliarySpace`]): its own hierarchy with a multiple of
//! the mass, and that of its potential.

use super::matrices::transfer_between;
use super::{HierarchyInput, MultigridError, has_matrix};
use crate::algebra::sparse::{Csr, RowBuilder};
use crate::algebra::vector::Vector;
use crate::device::{Arithmetic, DeviceError};
use crate::kernels::compile::facts;
use crate::kernels::compile::prefetch::KernelRequest;
use crate::mesh::CoarsenedMesh;
use crate::operator::{Operator, TableCache};
use crate::problem::RunError;
use crate::problem::kernels::compile_for;
use crate::problem::plan::LevelSettings;
use crate::problem::platform::Platform;
use crate::problem::prescribed::FinerLevel;
use crate::problem::vector_fields::has_kernel;
use crate::solve::{
    AuxiliaryBlock, AuxiliarySpace, GridTransfer, NonlinearSystem, OperatorError, Potential,
    PotentialLevels, ShiftedLevels,
};
use crate::space::derivative::DiscreteDerivative;
use crate::space::discretisation::{Discretisation, Field};
use crate::space::inclusion::Inclusion;
use crate::support::timers::step;
use fem_dsl::point::{IdentityOf, Input, PointForm, identity, potential, shifted};
use kernels_gen::choose::MeshFacts;
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, Task};
use std::sync::Arc;

/// Initial σ, before it is known.
const UNKNOWN: f64 = 1.0;
/// Ratio of the gradient term that is added to a scalar potential's form to its least coefficient.
const ADDED: f64 = 1e-3;

/// Returns whether the coefficients of a form may be 0 in a part of the mesh.
fn may_vanish(form: &PointForm) -> bool {
    let is_local = |input| matches!(input, Input::Aux(_) | Input::Coordinate(_));
    form.integrals.iter().any(|integral| {
        let depends = integral.depends_on(is_local);
        integral.jacobian.iter().any(|entry| depends[entry.value])
    })
}

impl HierarchyInput<'_> {
    /// Returns whether the only field is of H(curl) or H(div).
    pub(super) fn is_vector_valued(&self) -> bool {
        matches!(&self.elements.fields[..], [field] if field.whitney().is_some())
    }

    /// Builds the sum for the block of a field among several, whose form this is; `tables` are those of the whole operator.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure; the inner error is the reason why there is none.
    pub(super) fn auxiliary_block(
        &self,
        tables: TableCache,
        settings: LevelSettings,
    ) -> Result<Result<AuxiliaryBlock, MultigridError>, RunError> {
        if let Err(unsuited) = self.suited() {
            return Ok(Err(unsuited));
        }
        let operator = self.diagonal_of(self.form, tables)?;
        let like = operator.zeros();
        let sum = self.auxiliary_space(&operator, settings)?;
        Ok(sum.map(|sum| AuxiliaryBlock::new(sum, Box::new(operator), &like)))
    }

    /// Builds the preconditioner; `operator` is the solve's own operator.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure; the inner error is the reason why there is none.
    pub(super) fn auxiliary_space(
        &self,
        operator: &Operator,
        settings: LevelSettings,
    ) -> Result<Result<AuxiliarySpace, MultigridError>, RunError> {
        if let Err(unsuited) = self.suited() {
            return Ok(Err(unsuited));
        }
        let name = self.form.fields[0].name.clone();
        let own = match self.shifted_levels(operator, settings)? {
            Ok(own) => own,
            Err(unsuited) => return Ok(Err(unsuited)),
        };
        let potential = match self.potential(operator, settings)? {
            Some(Err(unsuited)) => return Ok(Err(unsuited)),
            Some(Ok(potential)) => Some(potential),
            None => None,
        };
        Ok(Ok(AuxiliarySpace::new(name, own, potential)))
    }

    /// Calls `then` with the input of the hierarchy of A + σM, where M is the mass or the product of gradients.
    fn with_shift<T>(
        &self,
        of: IdentityOf,
        then: impl FnOnce(HierarchyInput<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mass = identity(self.form, of);
        let form = &shifted(self.form, &mass, UNKNOWN);
        let parameters = &self.parameters.with(UNKNOWN);
        let on = &self.restricted(form, self.on.fields.clone())?;
        then(HierarchyInput { form, parameters, on, ..*self })
    }

    /// The term that is added to the form: a mass for curl·curl and div·div, gradients for a scalar potential.
    fn added(&self) -> IdentityOf {
        if self.is_vector_valued() { IdentityOf::Values } else { IdentityOf::Exterior }
    }

    /// Builds the hierarchy of A + σM.
    fn shifted_levels(
        &self,
        operator: &Operator,
        settings: LevelSettings,
    ) -> Result<Result<ShiftedLevels, MultigridError>, RunError> {
        let added = self.added();
        let levels = self.with_shift(added, |own| own.levels(operator, settings))?;
        let levels = match levels {
            Ok(levels) => levels,
            Err(unsuited) => return Ok(Err(unsuited)),
        };
        let unit = identity(self.form, IdentityOf::Exterior);
        let mut of_unit = self.diagonal_of(&unit, operator.table_cache())?;
        of_unit.linearise(&of_unit.zeros())?;
        let mut diagonal = of_unit.zeros();
        of_unit.diagonal(&mut diagonal)?;
        let (from, to) = self.on.mesh.bounding_box_of_all();
        let extent = (0..3).map(|c| to[c] - from[c]).fold(0.0, f64::max);
        let scale = if added == IdentityOf::Values { extent.powi(-2) } else { ADDED };
        let params = self.parameters.values.clone();
        Ok(Ok(ShiftedLevels::new(levels, diagonal, scale, params)))
    }

    /// Builds the operator of a form of the same field for its diagonal.
    fn diagonal_of(&self, form: &PointForm, tables: TableCache) -> Result<Operator, RunError> {
        let on = self.restricted(form, self.on.fields.clone())?;
        let (params, tasks) = (&self.parameters.values, [Task::Diagonal]);
        let (operator, _) =
            compile_for(form, self.elements, &on, params, &tasks, self.platform, tables)?;
        Ok(operator)
    }

    /// Discretises the potential; `None` without a formula of the data for it.
    pub(in super::super) fn potential_on(
        &self,
        form: &PointForm,
    ) -> Result<Option<(Elements, Arc<Discretisation>)>, RunError> {
        let (mesh, on) = (Arc::clone(&self.on.mesh), self.on);
        let above = Some(FinerLevel { on, coarser: None });
        let found = self.prescribed.at(form, mesh, self.elements.degree, self.parameters, above)?;
        Ok(found.map(|(elements, on)| (elements, Arc::new(on))))
    }

    /// Builds the potential's part; `None` where no term is left of the form.
    fn potential(
        &self,
        operator: &Operator,
        settings: LevelSettings,
    ) -> Result<Option<Result<Potential, MultigridError>>, RunError> {
        let Some(form) = potential(self.form) else {
            let has_values = has_kernel(self.form).is_none();
            return Ok(has_values.then_some(Err(MultigridError::Potential)));
        };
        let Some((elements, on)) = self.potential_on(&form)? else {
            return Ok(Some(Err(MultigridError::Data)));
        };
        let own = HierarchyInput { form: &form, elements: &elements, on: &on, ..*self };
        let field = operator.zeros();
        let made = match own.is_vector_valued() || may_vanish(&form) {
            false => match own.levels_with(TableCache::default(), settings)? {
                Ok(levels) => {
                    let like = like_in_precision(&levels.zeros(), &field);
                    let like = like.map_err(OperatorError::from)?;
                    Ok((PotentialLevels::Definite(Box::new(levels)), like))
                }
                Err(unsuited) => Err(unsuited),
            },
            true => {
                let mut of_form = own.diagonal_of(&form, TableCache::default())?;
                let like = of_form.zeros();
                of_form.linearise(&like)?;
                let levels = own.shifted_levels(&of_form, settings)?;
                levels.map(|levels| {
                    (PotentialLevels::Shifted(Box::new(levels), Box::new(of_form)), like)
                })
            }
        };
        let (levels, like) = match made {
            Ok(made) => made,
            Err(unsuited) => return Ok(Some(Err(unsuited))),
        };
        let _deriving = step("discrete derivative");
        let Some(derivative) = derivative_between(&on, self.on, &like, &field)? else {
            return Ok(Some(Err(MultigridError::Data)));
        };
        Ok(Some(Ok(Potential::new(levels, derivative, &like))))
    }

    /// Returns the kernels of [`Self::auxiliary_space`], or of [`Self::auxiliary_block`].
    ///
    /// # Errors
    ///
    /// Elements that cannot be made.
    pub(super) fn auxiliary_requests(
        &self,
        settings: LevelSettings,
        is_block: bool,
    ) -> Result<Vec<KernelRequest>, RunError> {
        let mut all = self.with_shift(IdentityOf::Values, |own| own.level_requests(settings))?;
        let Platform { target, device, .. } = self.platform.clone();
        // A block among several has an operator for its diagonal.
        let own = is_block.then(|| self.form.clone());
        all.extend(own.into_iter().chain([identity(self.form, IdentityOf::Exterior)]).map(
            |form| KernelRequest {
                form,
                elements: self.elements.clone(),
                facts: facts(self.on),
                tasks: vec![Task::Diagonal],
                deferred: Vec::new(),
                needs_deferred: false,
                target,
                device: device.clone(),
            },
        ));
        let Some(form) = potential(self.form) else { return Ok(all) };
        let (mesh, facts) = (&self.on.mesh, facts(self.on));
        let elements = elements(&form, mesh.cell(), self.elements.degree, mesh.order(), None)?;
        let own = HierarchyInput { form: &form, elements: &elements, ..*self };
        // Cells without signs see all entities in their own frames.
        let facts = match own.is_vector_valued() {
            true => facts,
            false => MeshFacts { runs: facts.runs || !has_matrix(self.on), ..facts },
        };
        all.extend(match own.is_vector_valued() || may_vanish(&form) {
            true => own.with_shift(own.added(), |own| own.level_requests_with(settings, facts))?,
            false => own.level_requests_with(settings, facts)?,
        });
        Ok(all)
    }
}

/// Returns zeros in the layout of a level's vector and in the precision of another vector.
fn like_in_precision(level: &Vector, other: &Vector) -> Result<Vector, DeviceError> {
    let zeros = match level.array() {
        None => Vector::zeros(level.len(), other.precision()),
        Some((own, _)) => {
            let (device, layout) = (Arc::clone(own.device()), own.layout().clone());
            let arithmetic = Arithmetic::with_layout(device, other.precision(), layout)?;
            Vector::on_device(level.len(), &arithmetic)
        }
    };
    Ok(match level.sharing() {
        Some(sharing) => zeros.shared(Arc::clone(sharing)),
        None => zeros,
    })
}

/// Returns the discrete derivative between free degrees of freedom, as a transfer from the potential to the field; `None`
/// between spaces that have none.
pub(in super::super) fn derivative_between(
    potential: &Discretisation,
    of: &Discretisation,
    like: &Vector,
    field: &Vector,
) -> Result<Option<Box<dyn GridTransfer>>, OperatorError> {
    let (from, to) = (&potential.fields[0], &of.fields[0]);
    let Some(entries) = DiscreteDerivative::new(&from.space, &to.space) else { return Ok(None) };
    let row = |row: usize| {
        let mut found: Vec<(u32, f64)> = entries.row(row).collect();
        found.sort_unstable_by_key(|(column, _)| *column);
        found
    };
    Ok(Some(transfer_by_rows([from, to], &row, like, field)?))
}

/// Returns the inclusion of a coarser space of H(curl) or H(div) in a finer one as a transfer; `None` between other spaces.
pub(super) fn inclusion_between(
    coarse: &Discretisation,
    fine: &Discretisation,
    coarser: Option<&CoarsenedMesh>,
    like: &Vector,
    field: &Vector,
) -> Result<Option<Box<dyn GridTransfer>>, OperatorError> {
    let (from, to) = (&coarse.fields[0], &fine.fields[0]);
    let Some(inclusion) = Inclusion::new(&from.space, &to.space, coarser) else { return Ok(None) };
    Ok(Some(transfer_by_rows([from, to], &|row| inclusion.row(row), like, field)?))
}

/// Returns the transfer between free degrees of freedom whose matrix has these rows, with ascending columns. `like` and `field`
/// are vectors of the first and of the second field.
fn transfer_by_rows(
    [from, to]: [&Field; 2],
    entries: &(dyn Fn(usize) -> Vec<(u32, f64)> + Sync),
    like: &Vector,
    field: &Vector,
) -> Result<Box<dyn GridTransfer>, OperatorError> {
    let is_free = |column: u32| !from.constraints.is_constrained(column as usize);
    let matrix = |is_row: &(dyn Fn(usize) -> bool + Sync)| {
        let fill = |row: usize, _: &mut (), own: &mut RowBuilder| {
            if to.constraints.is_constrained(row) || !is_row(row) {
                return;
            }
            let found = entries(row).into_iter().filter(|&(column, _)| is_free(column));
            found.for_each(|(column, value)| own.push(column, value));
        };
        Csr::by_rows((to.space.n_dofs(), from.space.n_dofs()), || (), fill)
    };
    // One process adds the row of a shared degree of freedom.
    let sharing = field.sharing();
    let transposed = matrix(&|row| sharing.is_none_or(|own| !own.is_of_others(row))).transposed();
    transfer_between(matrix(&|_| true), transposed, field, like)
}
