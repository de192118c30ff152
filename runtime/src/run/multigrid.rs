//! The levels of a problem: a form, what it is discretised on, and what is prescribed elsewhere too → [`Multigrid`].
//!
//! ```text
//! degree k, k/2, …, 1 on the mesh itself, then degree 1 on coarser meshes
//! ```
//!
//! Each level discretises the form anew: coefficients, boundary terms and conditions are those of the problem there, and no
//! product of matrices is formed. Levels compute in single precision where the numbers of the diagonal let them.

mod bottom;
pub mod transfer;

use super::RunError;
use super::kernels::compile_for;
use super::prescribed::Prescribed;
use crate::compile::Target;
use crate::device::{Device, DeviceError};
use crate::discretisation::Discretisation;
use crate::expression::Parameters;
use crate::mesh::Coarsened;
use crate::operator::{Operator, Shelf};
use crate::solve::{Level, Multigrid, Smoothed};
use crate::vector::{Precision, Vector};
use bottom::Bottom;
use fem_dsl::point::PointForm;
use kernels_gen::plan::{Elements, Task};
use std::sync::Arc;
use std::time::Instant;
use transfer::{Between, Path, Place, State};

/// Unknowns from which on a coarser mesh is looked for.
const FEW: usize = 1_000;
/// Steps of the smoother before and behind a correction.
const STEPS: usize = 3;

/// Why a problem has no levels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unsuited {
    /// Several fields.
    #[error("multigrid is for one field, and the form has {fields}")]
    Fields {
        /// How many.
        fields: usize,
    },
    /// A field without continuity.
    #[error("multigrid is for continuous fields")]
    Discontinuous,
    /// A Jacobian that is not symmetric.
    #[error("multigrid is for symmetric forms")]
    Unsymmetric,
    /// Conditions on combinations of unknowns.
    #[error("multigrid does not know conditions on combinations of unknowns")]
    Combined,
    /// Data that is known on the problem's own mesh and for its own degree alone.
    #[error("the problem's data is not known elsewhere")]
    Data,
    /// What is left below the levels is too large.
    #[error("the coarsest level has {unknowns} unknowns, too many for what ends the levels")]
    Coarsest {
        /// How many.
        unknowns: usize,
    },
}

/// What levels are made of.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The form.
    pub form: &'a PointForm,
    /// Its elements on the finest level.
    pub elements: &'a Elements,
    /// What it is discretised on there.
    pub on: &'a Arc<Discretisation>,
    /// Time and parameters.
    pub parameters: &'a Parameters,
    /// Conditions and data, also on other levels.
    pub prescribed: &'a dyn Prescribed,
    /// What kernels are compiled for.
    pub target: &'a Target,
    /// The device, if it is not the processor.
    pub device: Option<&'a Arc<dyn Device>>,
}

impl Smoothed for Operator {
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        Self::set_params(self, params)
    }
}

/// A level before it has a way to the next.
struct Made {
    operator: Operator,
    on: Arc<Discretisation>,
    elements: Elements,
}

impl Problem<'_> {
    /// Whether it can have levels, as far as the form says.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn suited(&self) -> Result<(), Unsuited> {
        let [field] = &self.on.fields[..] else {
            return Err(Unsuited::Fields { fields: self.on.fields.len() });
        };
        if !field.space.element().is_continuous() {
            return Err(Unsuited::Discontinuous);
        }
        if !self.form.integrals.iter().all(|integral| integral.symmetric) {
            return Err(Unsuited::Unsymmetric);
        }
        if !self.on.affine.is_empty() || !field.constraints.oblique().is_empty() {
            return Err(Unsuited::Combined);
        }
        Ok(())
    }

    fn is_linear(&self) -> bool {
        self.form.integrals.iter().all(|integral| integral.linear)
    }

    fn level(
        &self,
        (elements, on): (Elements, Arc<Discretisation>),
        precision: Precision,
        shelf: Shelf,
    ) -> Result<Made, RunError> {
        let target = Target { precision, ..*self.target };
        let (tasks, params) = ([Task::Action, Task::Diagonal], &self.parameters.values);
        let device = self.device.cloned();
        let (operator, _) =
            compile_for(self.form, &elements, &on, params, &tasks, &target, device, shelf)?;
        Ok(Made { operator, on, elements })
    }

    /// The levels; `operator` is the finest one, which has the unknowns of the solve.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, a device that fails; within, why the problem has no levels.
    pub fn levels(&self, operator: &Operator) -> Result<Result<Multigrid, Unsuited>, RunError> {
        if let Err(unsuited) = self.suited() {
            return Ok(Err(unsuited));
        }
        let start = Instant::now();
        let precision = Precision::F32;
        let shelf = operator.shelf().without_reals();
        let own = (self.elements.clone(), Arc::clone(self.on));
        let mut made = self.level(own, precision, shelf)?;
        let mut levels = Vec::new();
        while made.elements.fields[0].degree() > 1 {
            let degree = made.elements.fields[0].degree();
            let k = made.elements.degree - (degree - degree / 2);
            let mesh = Arc::clone(&self.on.mesh);
            let Some((elements, on)) = self.prescribed.at(self.form, mesh, k, self.parameters)?
            else {
                return Ok(Err(Unsuited::Data));
            };
            let next = self.level((elements, Arc::new(on)), precision, Shelf::default())?;
            let path = self.path(&made, &next, precision)?;
            let like = made.operator.zeros();
            levels.push(Level::new(Box::new(made.operator), &like, Box::new(path)));
            made = next;
        }
        // A mesh of as few cells as this is solved at once.
        while made.on.n_dofs() > FEW {
            let Ok(coarser) = made.on.mesh.coarsened() else { break };
            let (k, mesh) = (made.elements.degree, Arc::clone(&coarser.mesh));
            let Some((elements, on)) = self.prescribed.at(self.form, mesh, k, self.parameters)?
            else {
                break;
            };
            let next = self.level((elements, Arc::new(on)), precision, Shelf::default())?;
            let path = self.path_between(&made, &next, &coarser, precision)?;
            let like = made.operator.zeros();
            levels.push(Level::new(Box::new(made.operator), &like, Box::new(path)));
            made = next;
        }
        let like: Vector = made.operator.zeros();
        match Bottom::new(self, made.elements, made.on)? {
            Ok(bottom) => {
                let levels = Multigrid::new(levels, Box::new(bottom), &like, STEPS);
                Ok(Ok(levels.made_in(start.elapsed().as_secs_f64())))
            }
            Err(unknowns) => Ok(Err(Unsuited::Coarsest { unknowns })),
        }
    }

    /// Where kernels between two levels run, with the cells of the first.
    fn place(&self, own: &Made, other: &Made, precision: Precision) -> Place {
        Place {
            target: Target { precision, ..*self.target },
            device: self.device.cloned(),
            shelf: own.operator.shelf(),
            fine: other.operator.arithmetic().map(|own| own.layout().clone()),
        }
    }

    /// The way from a level to one on a coarser mesh.
    fn path_between(
        &self,
        fine: &Made,
        coarse: &Made,
        coarser: &Coarsened,
        precision: Precision,
    ) -> Result<Path, RunError> {
        let place = self.place(coarse, fine, precision);
        let between = Between::children(&coarse.on, &fine.on, coarser, &place)?;
        let state = (!self.is_linear()).then(|| State::at_vertices(&coarse.on, &fine.on, coarser));
        Ok(Path { between, state })
    }

    /// The way from a level to one of lower degree.
    fn path(&self, fine: &Made, coarse: &Made, precision: Precision) -> Result<Path, RunError> {
        let place = |own: &Made, other: &Made| self.place(own, other, precision);
        let between = Between::degrees(&coarse.on, &fine.on, &place(coarse, fine))?;
        let state = match self.is_linear() {
            true => None,
            false => {
                let by = Between::states(&coarse.on, &fine.on, &place(fine, coarse))?;
                Some(State::Interpolated(Box::new(by)))
            }
        };
        Ok(Path { between, state })
    }
}
