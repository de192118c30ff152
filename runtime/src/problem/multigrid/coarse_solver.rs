//! Coarse-grid solver: factors of the coarsest matrix, or smoothed aggregation if it is large.

use super::super::RunError;
use super::super::kernels::{compile_represented, product_tasks};
use super::super::plan::{INVERTED, LevelSettings, most_factorised};
use super::{HierarchyInput, matrices};
use crate::algebra::aggregation::{self, Aggregation, constants, rigid_body_modes};
use crate::algebra::factor::{AVAILABLE, Factors, SymbolicAnalysis};
use crate::algebra::sparse::Csr;
use crate::algebra::vector::{Precision, Vector};
use crate::device::DeviceError;
use crate::kernels::compile::Target;
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::Operator;
use crate::solve::{
    CoarseGridSolver, LinearOperator, Multigrid, NonlinearSystem, NullSpace, OperatorError, pinned,
    pinned_rows,
};
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use crate::support::timers::in_step;
use kernels_gen::plan::Elements;
use std::sync::{Arc, Mutex, PoisonError};

/// Cycles of levels of matrices for one of all levels, at most,
const CYCLES: usize = 4;
/// limited so that their degrees of freedom in sum stay below this fraction (1/8) of the finest level.
const PART: usize = 8;

/// Solution method.
enum CoarseMethod {
    Factors(Factors),
    /// Explicit inverse on a device, with its description.
    Inverse(Box<dyn LinearOperator + Send + Sync>, String),
    Aggregation(Box<Aggregation>),
    /// Aggregation hierarchy on a device, with its description.
    Levels(Box<Multigrid>, String),
}

/// Solver of the coarsest level.
pub(super) struct CoarseSolver {
    operator: Operator,
    on: Arc<Discretisation>,
    analysis: SymbolicAnalysis,
    by: Option<CoarseMethod>,
    /// Prototype of the solution vector.
    like: Vector,
    /// True if the matrix is the same at every state.
    linear: bool,
    symmetric: bool,
    /// True for factors, false for aggregation.
    factorised: bool,
    /// Number of aggregation cycles per solve.
    cycles: usize,
    /// True if each process solves the whole level redundantly.
    at_each: bool,
    work: Mutex<CycleVectors>,
}

/// Residual and correction of repeated cycles.
struct CycleVectors {
    r: Vector,
    z: Vector,
}

impl HierarchyInput<'_> {
    /// Returns whether a coarsest level with `n` degrees of freedom is factorised.
    pub(super) fn is_factorised(&self, n: usize, settings: LevelSettings) -> bool {
        // There are no other matrices of H(curl) and H(div).
        let is_inverted = self.platform.device.is_some() && !self.is_vector_valued();
        let most = most_factorised(is_inverted, self.is_symmetric());
        AVAILABLE && !settings.is_algebraic && n <= most
    }

    /// Returns the target of the coarsest level's kernels.
    pub(super) fn coarse_target(&self, factorised: bool) -> Target {
        // For so few degrees of freedom, reading the matrix off products takes less time than compiling an
        // element-matrix kernel.
        let how = match factorised {
            true => Representation::default(),
            // On a device, assembly without a precomputed pattern is fastest.
            false if self.platform.device.is_some() => Representation::Assembled(Assembly::Acoo),
            false => Representation::Assembled(Assembly::fitting(false)),
        };
        Target { precision: Precision::F64, ..self.platform.target }.representing(how)
    }
}

impl CoarseSolver {
    /// Builds the operator of the coarsest level.
    pub(super) fn new(
        of: &HierarchyInput<'_>,
        elements: &Elements,
        on: Arc<Discretisation>,
        like: Vector,
        settings: LevelSettings,
    ) -> Result<Self, RunError> {
        let factorised = of.is_factorised(on.n_dofs(), settings);
        let cycles = (of.on.n_dofs() / (PART * on.n_dofs().max(1))).clamp(1, CYCLES);
        let (params, target) = (&of.parameters.values, of.coarse_target(factorised));
        let platform = of.platform.with_target(target);
        let tasks = product_tasks(&platform.target);
        let (operator, _) = compile_represented(of.form, elements, &on, params, &tasks, &platform)?;
        let (linear, symmetric) = (of.is_linear(), of.is_symmetric());
        let analysis = SymbolicAnalysis::default();
        let work = Mutex::new(CycleVectors { r: like.like(), z: like.like() });
        Ok(Self {
            operator,
            on,
            analysis,
            by: None,
            like,
            linear,
            symmetric,
            factorised,
            cycles,
            at_each: of.on.mesh.cut().is_some(),
            work,
        })
    }

    /// Factorises at a state; the inner error gives the reason of a failure.
    fn factors(&mut self, state: &Vector) -> Result<Result<CoarseMethod, String>, OperatorError> {
        let matrix = match LinearOperator::matrix(&self.operator)? {
            Some(matrix) => matrix,
            None => {
                let missing =
                    || OperatorError::new("the matrix of the coarsest level is too dense");
                let coupling = self.operator.coupling().ok_or_else(missing)?;
                coupling.matrix(&self.operator, state)?
            }
        };
        let null = self.operator.null_space();
        let pins = null.map_or_else(Vec::new, NullSpace::pins);
        let made = match self.analysis.factorise(&pinned(matrix, &pins), self.symmetric) {
            Ok(made) => made,
            Err(error) => return Ok(Err(format!("on the coarsest level {error}"))),
        };
        if self.like.len() > INVERTED {
            return Ok(Ok(CoarseMethod::Factors(made)));
        }
        let there = matrices::inverse_on_device(&self.like, &|x| {
            solve_without(null, x, |x| made.solve(x))
        })?;
        Ok(Ok(match there {
            Some(inverse) => CoarseMethod::Inverse(
                inverse,
                format!("direct ({}, inverted on the device)", made.word()),
            ),
            None => CoarseMethod::Factors(made),
        }))
    }

    /// Computes x = C b by an aggregation cycle, then x ← x + C (b − A x) for each further cycle.
    fn by_cycles(
        &self,
        b: &Vector,
        x: &mut Vector,
        cycle: &dyn Fn(&Vector, &mut Vector) -> Result<(), OperatorError>,
        product: &dyn Fn(&Vector, &mut Vector) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        cycle(b, x)?;
        let CycleVectors { r, z } = &mut *self.work.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 1..self.cycles {
            product(x, r)?;
            r.axpby(1.0, b, -1.0);
            cycle(r, z)?;
            x.axpy(1.0, z);
        }
        Ok(())
    }

    /// Builds smoothed aggregation, of the symmetric part of an unsymmetric matrix; the inner error gives the reason of
    /// a failure.
    fn aggregation(&mut self) -> Result<Result<CoarseMethod, String>, OperatorError> {
        let field = &self.on.fields[0];
        let (space, dim) = (&field.space, self.on.mesh.dim());
        let components = space.components();
        let held = |unknown| field.constraints.is_constrained(unknown);
        let fixed: Vec<bool> = (0..space.n_dofs()).map(held).collect();
        let mut matrix = in_step("download", || Csr::of(&self.operator))?;
        if !self.symmetric {
            matrix = matrix.symmetric_part();
        }
        // Uncoupled components are independent scalar problems, each with its constants.
        let (blocks, near_null) = if is_separate(&matrix, components) {
            (1, constants(matrix.size(), 1, &fixed))
        } else if components == dim {
            let points = space.points(&self.on.mesh, &self.on.partition);
            let points = points.map_err(|error| OperatorError::new(error.to_string()))?;
            (components, rigid_body_modes(dim, &points, &fixed))
        } else {
            (components, constants(space.n_nodes(), components, &fixed))
        };
        let pins = self.operator.null_space().map_or_else(Vec::new, NullSpace::pins);
        if !pins.is_empty() {
            matrix = pinned_rows(&matrix, &pins).0;
        }
        let settings = aggregation::Settings::default();
        let aggregating = || Aggregation::new(matrix, blocks, &near_null, &settings);
        let made = match in_step("aggregation", aggregating) {
            Ok(made) => made,
            Err(error) => return Ok(Err(format!("on the coarsest level {error}"))),
        };
        // A single level is factorised exactly: one cycle suffices.
        if made.levels().is_empty() {
            self.cycles = 1;
        }
        let there = in_step("upload", || matrices::on_device(&made, &self.like))?;
        Ok(Ok(match there {
            Some(levels) => CoarseMethod::Levels(Box::new(levels), words(&made)),
            None => CoarseMethod::Aggregation(Box::new(made)),
        }))
    }
}

impl CoarseGridSolver for CoarseSolver {
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        if self.linear && self.by.is_some() {
            return Ok(Ok(()));
        }
        let mut state = self.operator.vector();
        state.convert_from(u);
        in_step("assembly", || self.operator.linearise(&state))?;
        let made = match self.factorised {
            true => self.factors(&state)?,
            false => self.aggregation()?,
        };
        Ok(made.map(|by| self.by = Some(by)))
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.by = None;
        self.operator.set_params(params)
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        match &self.by {
            Some(CoarseMethod::Factors(factors)) => {
                let mut numbers = b.to_vec();
                solve_without(self.operator.null_space(), &mut numbers, |x| factors.solve(x));
                x.set(&numbers);
                Ok(())
            }
            Some(CoarseMethod::Inverse(inverse, _)) => inverse.apply(b, x),
            Some(CoarseMethod::Aggregation(levels)) => {
                let cycle = |b: &Vector, x: &mut Vector| LinearOperator::apply(&**levels, b, x);
                self.by_cycles(b, x, &cycle, &|x, y| levels.product(x, y))
            }
            Some(CoarseMethod::Levels(levels, _)) => {
                let cycle = |b: &Vector, x: &mut Vector| levels.apply_part(b, x, 0..b.len(), 1.0);
                self.by_cycles(b, x, &cycle, &|x, y| levels.finest(x, y))
            }
            None => Err(OperatorError::new("the coarsest level has no factors")),
        }
    }

    fn replayable(&self) -> bool {
        match &self.by {
            Some(CoarseMethod::Inverse(inverse, _)) => inverse.replayable(),
            Some(CoarseMethod::Levels(levels, _)) => levels.replayable(),
            _ => false,
        }
    }

    fn words(&self) -> String {
        let words = match &self.by {
            Some(CoarseMethod::Factors(factors)) => format!("direct ({})", factors.word()),
            Some(CoarseMethod::Inverse(_, words)) => words.clone(),
            Some(CoarseMethod::Aggregation(levels)) => {
                format!("{}{}", words(levels), times(self.cycles))
            }
            Some(CoarseMethod::Levels(_, words)) => {
                format!("{words} on the device{}", times(self.cycles))
            }
            None => "nothing".to_owned(),
        };
        if self.at_each { format!("{words} at each process") } else { words }
    }
}

/// Solves in the orthogonal complement of the constants.
fn solve_without(null: Option<&NullSpace>, x: &mut [f64], solve: impl FnOnce(&mut [f64])) {
    null.iter().for_each(|null| null.project_entries(x));
    solve(x);
    null.iter().for_each(|null| null.project_entries(x));
}

/// Formats the number of cycles if there are several.
fn times(cycles: usize) -> String {
    if cycles > 1 { format!(", {cycles} cycles") } else { String::new() }
}

fn words(levels: &Aggregation) -> String {
    let figures = levels.figures();
    let (count, complexity) = (figures.levels.len(), figures.operator_complexity());
    format!("smoothed aggregation ({count} matrices of {complexity:.2} × the entries)")
}

/// Returns whether a matrix couples only equal components.
fn is_separate(matrix: &Csr, components: usize) -> bool {
    let own =
        |i: usize| matrix.row(i).all(|(j, value)| i % components == j % components || value == 0.0);
    (0..matrix.size()).into_par_iter().holds(own)
}
