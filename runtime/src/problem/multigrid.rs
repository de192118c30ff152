//! Builds the multigrid hierarchy ([`Multigrid`]) of a form from its discretisation and its prescribed data.
//!
//! ```text
//! degree k, k/2 (rounded up), …, 1 on the mesh itself, then degree 1 on coarser meshes
//! ```
//!
//! Below a discontinuous field of degree k are the continuous functions of degree k on the same mesh ([`first_continuous`]).
//!
//! Each level rediscretises the form with its coefficients, boundary terms and conditions; no matrix products are
//! formed. Levels compute in single precision. The coarse-grid solver is a sparse factorisation, or smoothed
//! aggregation for a large matrix ([`coarse_solver`]).

pub(super) mod auxiliary_space;
mod blocks;
mod coarse_solver;
mod coarser_levels;
mod first_continuous;
mod kernels;
pub mod matrices;
mod redundant_factors;
mod redundant_levels;
#[cfg(test)]
mod tests;
pub mod transfer;

use super::RunError;
use super::kernels::compile_for;
use super::plan::{HierarchySettings, LevelSettings};
use super::platform::Platform;
use super::prescribed::PrescribedData;
use super::structural_null_space::in_any;
use crate::algebra::vector::{Precision, Vector};
use crate::device::DeviceError;
use crate::kernels::compile::Target;
use crate::mesh::CoarsenedMesh;
use crate::operator::{Operator, TableCache};
use crate::solve::{
    CoarseGridSolver, GridTransfer, LevelOperator, Multigrid, MultigridLevel, OperatorError,
};
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use crate::support::progress::doing;
use crate::support::timers::{seconds_of_kernels, step};
use auxiliary_space::inclusion_between;
use coarse_solver::CoarseSolver;
use coarser_levels::{CoarserLevel, CoarserLevels};
use fem_dsl::point::{Node, PointForm};
use first_continuous::FirstContinuous;
use kernels_gen::generate::exceeds_single;
use kernels_gen::plan::{Elements, Task};
pub(super) use redundant_factors::RedundantFactors;
use redundant_levels::{RedundantCoarseSolver, is_small};
use std::sync::Arc;
use std::time::Instant;
use transfer::{KernelTransfer, LevelTransfer, StateInjection, TransferEnvironment, keep_axes};

/// Reason why a problem has no multigrid hierarchy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MultigridError {
    /// A field of several without levels for its block and without a mass as its Schur complement.
    #[error(
        "multigrid needs a term of each field with itself, or gradients of others that it is tested with: `{field}` has neither, \
         is discontinuous without terms between its cells, or has coefficients that follow another field"
    )]
    Block {
        /// Name of the field.
        field: String,
    },
    /// A field of H(curl) or H(div) among several without a definite block of its own.
    #[error(
        "multigrid in H(curl) and H(div) needs a term of `{field}` with itself, without terms between cells, whose coefficients \
         do not depend on other fields: take these as data (`aux`), or use `solver = direct`"
    )]
    VectorBlock {
        /// Name of the field.
        field: String,
    },
    /// A field without a block, for which levels are requested.
    #[error(
        "no multigrid hierarchy for `{field}`: it has no term with itself, or is discontinuous without terms between its cells"
    )]
    NoBlock {
        /// Name of the field.
        field: String,
    },
    /// A discontinuous field that has no continuous functions, or whose cells are not coupled.
    #[error(
        "multigrid of a discontinuous field needs terms on facets between its cells (`on interior`), and degree 1 or more"
    )]
    Discontinuous,
    /// A nonlinear form of a field of H(curl) or H(div) on a mesh without transfers of states.
    #[error(
        "multigrid of nonlinear forms in H(curl) and H(div) needs quadrilaterals or hexahedra that share whole facets and agree \
         on their directions: use `preconditioner: jacobi`"
    )]
    States,
    /// Such a field where cells of different size meet, in several processes.
    #[error(
        "multigrid in H(curl) and H(div) where cells of different size meet needs one process: use `preconditioner: jacobi`"
    )]
    Hanging,
    /// Such a field with values in terms that have no potential.
    #[error(
        "multigrid in H(curl) and H(div) needs terms of values whose coefficients do not depend on the state"
    )]
    Potential,
    /// Such a field with a coarsest level that is too large for factors.
    #[error(
        "multigrid in H(curl) and H(div) ends in factors of a coarse matrix, and the coarsest mesh gives {0} unknowns of \
         degree 1: take a mesh that is refined from a coarser one (`refine`)"
    )]
    Coarsest(usize),
    /// Conditions on combinations of degrees of freedom.
    #[error("multigrid does not support constraints between degrees of freedom")]
    Combined,
    /// Data known only on the problem's own mesh and for its own degree.
    #[error("the problem's data is defined on its own mesh and degree only")]
    Data,
    /// A constant outside the range of single precision.
    #[error("multigrid computes in single precision, and the form has the number {0:e}")]
    Range(f64),
}

/// Input of the hierarchy.
#[derive(Clone, Copy)]
pub struct HierarchyInput<'a> {
    /// The form.
    pub form: &'a PointForm,
    /// Elements of the finest level.
    pub elements: &'a Elements,
    /// Discretisation of the finest level.
    pub on: &'a Arc<Discretisation>,
    /// Time and parameters.
    pub parameters: &'a Parameters,
    /// Conditions and data, evaluated on every level.
    pub prescribed: &'a dyn PrescribedData,
    /// Processor and device.
    pub platform: &'a Platform,
    /// Settings of the hierarchies.
    pub settings: &'a HierarchySettings,
}

/// Tasks of a level's kernels.
const SMOOTHED: [Task; 2] = [Task::Action, Task::Diagonal];

impl LevelOperator for Operator {
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        Self::set_params(self, params)
    }
}

/// Returns whether the transfers of the only field to coarser spaces are sparse matrices: for vector-valued functions on
/// cells that have no common axes.
fn has_matrix(on: &Discretisation) -> bool {
    let space = &on.fields[0].space;
    let has_axes = on.mesh.cell().is_tensor() && on.mesh.hanging().is_none() && !space.has_signs();
    space.element().whitney().is_some() && !has_axes
}

/// A level before it has a transfer to the next.
struct UnlinkedLevel {
    operator: Operator,
    on: Arc<Discretisation>,
    elements: Elements,
}

impl UnlinkedLevel {
    fn degree(&self) -> usize {
        self.elements.fields[0].degree()
    }

    fn is_vector_valued(&self) -> bool {
        self.elements.fields[0].whitney().is_some()
    }
}

impl HierarchyInput<'_> {
    /// Checks that the form allows multigrid levels.
    ///
    /// # Errors
    ///
    /// The reason if it does not.
    pub fn suited(&self) -> Result<(), MultigridError> {
        let nodes = self.form.integrals.iter().flat_map(|integral| integral.graph.nodes());
        let numbers = nodes.filter_map(|node| match node {
            Node::Constant(number) => Some(number.get()),
            _ => None,
        });
        if let Some(number) = numbers.into_iter().find(|&number| exceeds_single(number)) {
            return Err(MultigridError::Range(number));
        }
        let [field] = &self.on.fields[..] else {
            let field = self.form.fields[0].name.clone();
            return Err(MultigridError::Block { field });
        };
        if !field.space.element().is_continuous() && self.first_continuous_form().is_none() {
            return Err(MultigridError::Discontinuous);
        }
        if has_matrix(self.on) && !self.is_linear() {
            return Err(MultigridError::States);
        }
        let mut hangs = [self.is_vector_valued() && self.on.mesh.hanging().is_some()];
        in_any(&self.on.mesh, &mut hangs);
        if hangs[0] && self.on.mesh.cut().is_some() {
            return Err(MultigridError::Hanging);
        }
        let mut combined = [!self.on.affine.is_empty() || !field.constraints.oblique().is_empty()];
        in_any(&self.on.mesh, &mut combined);
        if combined[0] {
            return Err(MultigridError::Combined);
        }
        Ok(())
    }

    /// Returns the target of level kernels: single precision.
    fn target(&self) -> Target {
        Target { precision: Precision::F32, ..self.platform.target }
    }

    fn is_symmetric(&self) -> bool {
        self.form.integrals.iter().all(|integral| integral.symmetric)
    }

    fn is_linear(&self) -> bool {
        self.form.integrals.iter().all(|integral| integral.linear)
    }

    fn level(
        &self,
        (elements, on): (Elements, Arc<Discretisation>),
        table_cache: TableCache,
    ) -> Result<UnlinkedLevel, RunError> {
        let platform = self.platform.with_target(self.target());
        let params = &self.parameters.values;
        let (operator, _) =
            compile_for(self.form, &elements, &on, params, &SMOOTHED, &platform, table_cache)?;
        Ok(UnlinkedLevel { operator, on, elements })
    }

    /// Builds the levels of the only field; `operator` is the solve's own operator.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure; the inner error is the reason why the problem has no levels.
    fn levels(
        &self,
        operator: &Operator,
        settings: LevelSettings,
    ) -> Result<Result<Multigrid, MultigridError>, RunError> {
        self.levels_with(operator.table_cache().without_reals(), settings)
    }

    /// Builds the levels with tables of another operator on the same space.
    fn levels_with(
        &self,
        tables: TableCache,
        settings: LevelSettings,
    ) -> Result<Result<Multigrid, MultigridError>, RunError> {
        if let Err(unsuited) = self.suited() {
            return Ok(Err(unsuited));
        }
        let (start, before) = (Instant::now(), seconds_of_kernels());
        let _said = doing("setting up multigrid levels");
        let own = (self.elements.clone(), Arc::clone(self.on));
        let finest = self.level(own, tables)?;
        let levels = match self.first_continuous()? {
            None => self.linked(Vec::new(), finest, settings)?,
            Some(FirstContinuous { form, elements, on }) => {
                let below = HierarchyInput { form: &form, elements: &elements, on: &on, ..*self };
                let next =
                    below.level((elements.clone(), Arc::clone(&on)), TableCache::default())?;
                let path = below.path(&finest, &next)?;
                let like = finest.operator.zeros();
                let first = MultigridLevel::new(Box::new(finest.operator), &like, path);
                below.linked(vec![first], next, settings)?
            }
        };
        // Kernels have a phase of their own.
        let kernels = seconds_of_kernels() - before;
        let seconds = (start.elapsed().as_secs_f64() - kernels).max(0.0);
        Ok(levels.map(|levels| levels.recorded().made_in(seconds)))
    }

    /// Adds the levels from `made`, of the input's own space, to those above it.
    fn linked(
        &self,
        above: Vec<MultigridLevel>,
        made: UnlinkedLevel,
        settings: LevelSettings,
    ) -> Result<Result<Multigrid, MultigridError>, RunError> {
        rayon::in_place_scope(|scope| {
            let coarser = CoarserLevels::begin(self, settings, scope);
            self.link_levels(above, made, settings, &coarser)
        })
    }

    /// Builds the operators of the levels and their transfers.
    fn link_levels(
        &self,
        mut levels: Vec<MultigridLevel>,
        mut made: UnlinkedLevel,
        settings: LevelSettings,
        coarser: &CoarserLevels<'_>,
    ) -> Result<Result<Multigrid, MultigridError>, RunError> {
        let mut under = coarser.next(&made)?;
        while let Some(CoarserLevel { elements, on, coarsened }) = under.take() {
            let mut next = self.level((elements, on), TableCache::default())?;
            let linking = step("transfers");
            let path = match &coarsened {
                Some(coarsened) => self.path_between(&made, &next, coarsened)?,
                None => self.path(&made, &next)?,
            };
            drop(linking);
            let part = next.on.mesh.cut().is_some();
            let small = part && is_small(next.on.dofs_in_all(), self.platform.device.as_ref());
            if !small {
                under = coarser.next(&next)?;
            }
            let like = made.operator.zeros();
            let path: Box<dyn GridTransfer> = if part && under.is_none() {
                let Some(whole) = self.whole(&next)? else { return Ok(Err(MultigridError::Data)) };
                let Some(path) = self.gathered(path, &next, &whole)? else {
                    return Ok(Err(MultigridError::Data));
                };
                next = whole;
                under = coarser.next(&next)?;
                Box::new(path)
            } else {
                path
            };
            levels.push(MultigridLevel::new(Box::new(made.operator), &like, path));
            made = next;
        }
        if made.degree() > 1 && !settings.is_algebraic {
            return Ok(Err(MultigridError::Data));
        }
        let unknowns = made.on.dofs_in_all();
        if made.is_vector_valued() && !self.is_factorised(unknowns, settings) {
            return Ok(Err(MultigridError::Coarsest(unknowns)));
        }
        let _ending = step("coarse-grid solver");
        let like: Vector = made.operator.zeros();
        let bottom: Box<dyn CoarseGridSolver> = match made.on.mesh.cut() {
            None => {
                Box::new(CoarseSolver::new(self, &made.elements, made.on, like.like(), settings)?)
            }
            Some(_) => match RedundantCoarseSolver::new(self, &made, &like, settings)? {
                Some(gathered) => Box::new(gathered),
                None => return Ok(Err(MultigridError::Data)),
            },
        };
        let levels = Multigrid::new(levels, bottom, &like, settings.steps);
        Ok(Ok(levels.smoothed_by(settings.smoother)))
    }

    /// Returns the target, device and shared tables of transfer kernels, which run on the cells of `own`.
    fn place(&self, own: &UnlinkedLevel, other: &UnlinkedLevel) -> TransferEnvironment {
        TransferEnvironment {
            platform: self.platform.with_target(self.target()),
            table_cache: own.operator.table_cache(),
            fine: other.operator.arithmetic().map(|own| own.layout().clone()),
        }
    }

    /// Builds the transfer from a level to one on a coarser mesh.
    fn path_between(
        &self,
        fine: &UnlinkedLevel,
        coarse: &UnlinkedLevel,
        coarser: &CoarsenedMesh,
    ) -> Result<Box<dyn GridTransfer>, RunError> {
        let has_axes = keep_axes(&coarser.maps, coarser.mesh.dim());
        if has_matrix(&fine.on) || has_matrix(&coarse.on) || fine.is_vector_valued() && !has_axes {
            return self.path_by_matrix(fine, coarse, Some(coarser));
        }
        let place = self.place(coarse, fine);
        let between = KernelTransfer::children(&coarse.on, &fine.on, coarser, &place)?;
        let inject = || {
            let integrated = StateInjection::integrated(&coarse.on, &fine.on, Some(coarser));
            integrated.unwrap_or_else(|| StateInjection::at_vertices(&coarse.on, &fine.on, coarser))
        };
        let state = (!self.is_linear()).then(inject);
        Ok(Box::new(LevelTransfer { between, state }))
    }

    /// Builds the transfer between levels of a vector-valued field as a sparse matrix.
    fn path_by_matrix(
        &self,
        fine: &UnlinkedLevel,
        coarse: &UnlinkedLevel,
        coarser: Option<&CoarsenedMesh>,
    ) -> Result<Box<dyn GridTransfer>, RunError> {
        let (like, field) = (coarse.operator.zeros(), fine.operator.zeros());
        let between = inclusion_between(&coarse.on, &fine.on, coarser, &like, &field)?;
        let missing = || {
            OperatorError::new("a cell of another process would have to interpolate for a level")
        };
        Ok(between.ok_or_else(missing)?)
    }

    /// Builds the transfer from a level to one of lower degree.
    fn path(
        &self,
        fine: &UnlinkedLevel,
        coarse: &UnlinkedLevel,
    ) -> Result<Box<dyn GridTransfer>, RunError> {
        if has_matrix(&fine.on) {
            return self.path_by_matrix(fine, coarse, None);
        }
        let between = KernelTransfer::degrees(&coarse.on, &fine.on, &self.place(coarse, fine))?;
        let state = match self.is_linear() {
            true => None,
            false if fine.is_vector_valued() => {
                StateInjection::integrated(&coarse.on, &fine.on, None)
            }
            false => {
                let by = KernelTransfer::states(&coarse.on, &fine.on, &self.place(fine, coarse))?;
                Some(StateInjection::Interpolated(Box::new(by)))
            }
        };
        Ok(Box::new(LevelTransfer { between, state }))
    }
}
