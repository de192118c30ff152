//! Fields that are free up to a constant: null space of the operator, projection of residuals, and mean of the
//! solution.
//!
//! ```text
//! residual   R − w (eᵀ R)/(eᵀ w)        w_i = ∫ φ_i dx: the imbalance of the data is spread evenly over the domain
//! complete   u + e (m − wᵀ u / |Ω|)     mean m
//! ```
//!
//! Inexact quadrature, as on curved cells, makes J e and eᵀ J nonzero by its error. The Jacobian is then Q J Qᵀ with Q
//! = I − w eᵀ/(eᵀ w), which maps constants to 0.
//!
//! With affine constraints u = C u + g, e is 0 in dependent degrees of freedom, and the residual uses Cᵀ w.

use super::Operator;
use super::blocks::PassInputs;
use super::combinations::VectorKind;
use super::constraints::{ConstrainedRows, PassResult};
use crate::algebra::vector::Vector;
use crate::operator::functional::weights;
use crate::solve::{ConstantEntries, LinearOperator as _, NullSpace, OperatorError};
use crate::support::timers::step;
use kernels_gen::plan::Task;
use std::sync::OnceLock;

/// Constants of an operator, and means of its solutions.
pub(super) struct Constants {
    pub(super) null: NullSpace,
    /// Field, component and mean of each constant.
    of: Vec<(usize, usize, f64)>,
    /// True if J e and eᵀ J vanish only up to quadrature errors.
    pub(super) inexact: bool,
    /// Weights, computed on first use.
    weights: OnceLock<Vec<ConstantWeights>>,
}

/// Result of [`Operator::imbalance`].
pub(crate) type Imbalance = (Vec<(usize, [f64; 2])>, f64);

/// ∫ φ_i dx of a component.
struct ConstantWeights {
    own: Vector,
    /// Cᵀ w, with affine constraints.
    condensed: Option<Vector>,
    volume: f64,
}

impl ConstantWeights {
    fn of_rows(&self) -> &Vector {
        self.condensed.as_ref().unwrap_or(&self.own)
    }
}

impl Operator {
    /// Returns the constants of the fields with a mean-value constraint; `None` if there are no such fields.
    pub(super) fn find_constants(&self) -> Option<Constants> {
        let on = &self.blocks.on;
        let (mut of, mut all) = (Vec::new(), Vec::new());
        for (number, field) in on.fields.iter().enumerate() {
            let range = on.dofs_of(number);
            for (component, &mean) in field.constraints.mean().into_iter().flatten().enumerate() {
                let given = on.affine.unknowns().iter().copied();
                let without = given.filter(|unknown| range.contains(&(*unknown as usize)));
                of.push((number, component, mean));
                all.push(ConstantEntries {
                    first: range.start + component,
                    end: range.end,
                    step: field.space.components(),
                    without: without.collect(),
                });
            }
        }
        if of.is_empty() {
            return None;
        }
        let null = NullSpace::new(all, &self.zeros());
        Some(Constants { null, of, inexact: false, weights: OnceLock::new() })
    }

    /// Sets the equations to R(u) − l = 0; `load` has one entry per degree of freedom.
    pub fn set_load(&mut self, load: &[f64]) {
        let mut own = self.vector();
        own.set(load);
        self.load = Some(own);
    }

    /// Adds to l.
    pub(crate) fn add_load(&mut self, load: &Vector) {
        match &mut self.load {
            Some(own) => own.axpy(1.0, load),
            None => self.load = Some(load.clone()),
        }
    }

    /// Resets the equations to R(u) = 0.
    pub fn clear_load(&mut self) {
        self.load = None;
    }

    /// Computes R(u) − l, without projection.
    pub(crate) fn raw_residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        let at = |u: &Vector, r: &mut Vector| {
            let inputs = PassInputs { state: Some(u), ..PassInputs::default() };
            self.pass(Task::Residual, inputs, ConstrainedRows::Zero, r)?;
            let points = self.points.iter().map(|points| &points.vector);
            self.load.iter().chain(points).for_each(|load| r.axpy(-1.0, load));
            Ok(())
        };
        let Some(combined) = &self.combined else { return at(u, r) };
        if self.blocks.on.affine.is_empty() {
            at(u, r)?;
        } else {
            at(&*self.constrained_copy(combined, u, VectorKind::State)?, r)?;
        }
        Ok(self.engine.constraints().condense(PassResult::Residual, r)?)
    }

    fn weights_of<'a>(
        &self,
        constants: &'a Constants,
    ) -> Result<&'a [ConstantWeights], OperatorError> {
        if let Some(known) = constants.weights.get() {
            return Ok(known);
        }
        let _weighing = step("weights of mean values");
        let on = &self.blocks.on;
        let mut all = Vec::new();
        for (constant, &(field, component, _)) in
            constants.null.constants().iter().zip(&constants.of)
        {
            let of_nodes = weights(on, field);
            let of_nodes = of_nodes.map_err(|error| OperatorError::new(error.to_string()))?;
            let (start, components) =
                (on.dofs_of(field).start, on.fields[field].space.components());
            let mut entries = vec![0.0; on.n_dofs()];
            for (node, weight) in of_nodes.into_iter().enumerate() {
                entries[start + node * components + component] = weight;
            }
            let mut own = constant.ones.like();
            own.set(&entries);
            let condensed = match on.affine.is_empty() {
                true => None,
                false => {
                    let mut condensed = own.clone();
                    let constraints = self.engine.constraints();
                    constraints.condense(PassResult::Functional, &mut condensed)?;
                    Some(condensed)
                }
            };
            let mut all_ones = constant.ones.like();
            all_ones.fill(1.0);
            let volume = own.dot(&all_ones);
            all.push(ConstantWeights { own, condensed, volume });
        }
        Ok(constants.weights.get_or_init(|| all))
    }

    /// Projects a residual onto the orthogonal complement of the constants.
    pub(super) fn balance(&self, r: &mut Vector) -> Result<(), OperatorError> {
        self.each_constant(|ones, rows, all| r.axpy(-r.dot(ones) / all, rows))
    }

    /// Does so for the constants of all fields but some.
    pub(super) fn balance_all_but(
        &self,
        fields: &[usize],
        r: &mut Vector,
    ) -> Result<(), OperatorError> {
        let Some(constants) = &self.constants else { return Ok(()) };
        if constants.of.iter().all(|(field, ..)| fields.contains(field)) {
            return Ok(());
        }
        let weights = self.weights_of(constants)?;
        let all = constants.null.constants().iter().zip(weights).zip(&constants.of);
        for ((constant, weights), _) in all.filter(|(_, (field, ..))| !fields.contains(field)) {
            let rows = weights.of_rows();
            let all = rows.dot(&constant.ones);
            if all != 0.0 {
                r.axpy(-r.dot(&constant.ones) / all, rows);
            }
        }
        Ok(())
    }

    /// Computes the dependent degrees of freedom of a solution and the means of all fields but some.
    pub(super) fn complete_all_but(
        &self,
        fields: &[usize],
        u: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.engine.constraints().distribute(u)?;
        self.set_means(fields, u)
    }

    /// Calls a function with each constant e, its w and eᵀ w, unless that is 0.
    fn each_constant(&self, mut f: impl FnMut(&Vector, &Vector, f64)) -> Result<(), OperatorError> {
        let Some(constants) = &self.constants else { return Ok(()) };
        let weights = self.weights_of(constants)?;
        for (constant, weights) in constants.null.constants().iter().zip(weights) {
            let rows = weights.of_rows();
            let all = rows.dot(&constant.ones);
            if all != 0.0 {
                f(&constant.ones, rows, all);
            }
        }
        Ok(())
    }

    /// Returns the constants of a field with a mean-value constraint: the indicator vector of each component.
    pub(crate) fn constants_of(&self, field: usize) -> impl Iterator<Item = &Vector> {
        let known = self.constants.iter();
        let all = known.flat_map(|own| own.null.constants().iter().zip(&own.of));
        all.filter(move |(_, of)| of.0 == field).map(|(constant, _)| &constant.ones)
    }

    /// Returns whether J maps constants to 0 only up to quadrature errors.
    pub(crate) fn has_inexact_constants(&self) -> bool {
        self.constants.as_ref().is_some_and(|own| own.inexact)
    }

    pub(crate) fn set_inexact_constants(&mut self, inexact: bool) {
        self.constants.iter_mut().for_each(|own| own.inexact = inexact);
    }

    /// Computes y = Q J Qᵀ x.
    pub(super) fn apply_balanced(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut free = x.clone();
        self.each_constant(|ones, rows, all| free.axpy(-free.dot(rows) / all, ones))?;
        self.apply_sparse(&free, y)?;
        self.balance(y)
    }

    /// Sets the means of a solution's fields, of all but some.
    pub(super) fn set_means(&self, but: &[usize], u: &mut Vector) -> Result<(), OperatorError> {
        let Some(constants) = &self.constants else { return Ok(()) };
        if constants.of.iter().all(|(field, ..)| but.contains(field)) {
            return Ok(());
        }
        let weights = self.weights_of(constants)?;
        let all = constants.null.constants().iter().zip(weights).zip(&constants.of);
        for ((constant, weights), &(.., mean)) in all.filter(|(_, of)| !but.contains(&of.0)) {
            let found = weights.own.dot(u) / weights.volume;
            u.axpy(mean - found, &constant.ones);
        }
        Ok(self.engine.constraints().distribute(u)?)
    }

    /// Returns for each field with a mean-value constraint: its index, the sum eᵀ R(u) of its residual rows, and the
    /// sum of their absolute values, of the component with the largest ratio. The last number is the sum of absolute
    /// values over all fields.
    pub(crate) fn imbalance(&self, u: &Vector) -> Result<Imbalance, OperatorError> {
        let Some(constants) = &self.constants else { return Ok((Vec::new(), 0.0)) };
        let mut r = u.like();
        self.raw_residual(u, &mut r)?;
        let all = r.sum_of_sizes();
        let mut sizes = r.clone();
        sizes.make_absolute();
        let mut found: Vec<(usize, [f64; 2])> = Vec::new();
        for (constant, &(field, ..)) in constants.null.constants().iter().zip(&constants.of) {
            let sums = [r.dot(&constant.ones).abs(), sizes.dot(&constant.ones)];
            match found.last_mut().filter(|(last, _)| *last == field) {
                Some((_, known)) if known[0] * sums[1] >= sums[0] * known[1] => {}
                Some((_, known)) => *known = sums,
                None => found.push((field, sums)),
            }
        }
        Ok((found, all))
    }
}
