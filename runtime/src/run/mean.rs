//! Fields that conditions leave free up to a constant: `mean p = 0;`.
//!
//! The first node of such a field is held while the equations are solved, which takes the constant out of them, and
//! the constant that gives the field its mean is added afterwards:
//!
//! ```text
//! p ← p + m − (1/|Ω|) ∫ p dx
//! ```
//!
//! The rows of such a field add up to what its conditions and sources leave over, s = Σ_i R_i(u), whatever the unknowns
//! are. Where that is not 0, there is no solution; and where conditions are interpolated, it is of the size of the
//! error of that. If it were left to the row that is held, it would be a source in one point, which spoils the order
//! of convergence. So it is spread evenly, as the multiplier of the condition on the mean does:
//!
//! ```text
//! R_i(u) − λ ∫ φ_i dx = 0,        λ = s / |Ω|
//! ```
//!
//! That a residual does not change with the constant, and that the row that was held is fulfilled too, is looked at.

use super::prescribed::held_by_any;
use super::{RunError, compile_operator};
use crate::compile::Target;
use crate::constraint::Constraints;
use crate::discretisation::Discretisation;
use crate::functional::{set_mean, weights};
use crate::operator::Operator;
use crate::solve::NonlinearSystem;
use crate::vector::{Precision, Vector};
use fem_dsl::point::PointForm;
use fem_dsl::problem::Problem;
use kernels_gen::plan::Elements;
use std::sync::Arc;

/// What a row may be off by, as a part of what was there before the solve: more than a solver leaves.
const SOLVED: f64 = 1e-6;

/// Conditions that are interpolated balance up to the error of that, which is noted; more is no solution.
const INTERPOLATED: f64 = 0.05;

/// The node that is held of each field with a mean, at all processes that have it: the first one of the first process.
pub(super) fn held(
    problem: &Problem,
    form: &PointForm,
    on: &Discretisation,
) -> Vec<(usize, Vec<u32>)> {
    let of = |(field, _): &(usize, _)| {
        let name = &problem.form.fields[*field].name;
        let own = form.fields.iter().position(|own| own.name == *name)?;
        let first = if has_first(on) { vec![0] } else { Vec::new() };
        Some((own, held_by_any(&on.mesh, &on.fields[own].space, first)))
    };
    problem.mean.iter().filter_map(of).collect()
}

/// Whether the first node is one of this process.
fn has_first(on: &Discretisation) -> bool {
    on.mesh.cut().is_none_or(|cut| cut.group().rank() == 0)
}

/// What keeps the equations of fields with a mean in balance.
pub(crate) struct Balance<'a> {
    problem: &'a Problem,
    on: &'a Discretisation,
    /// The equations in which no row of these fields is held.
    free: Operator,
    /// Zero, with the values of the conditions, and R there.
    initial: (Vec<f64>, Vec<f64>),
    /// λ ∫ φ_i dx in the rows of these fields.
    load: Vec<f64>,
    /// What is left over of each of these fields, and what there was.
    shares: Vec<(f64, f64)>,
}

impl<'a> Balance<'a> {
    /// Nothing where no field has a mean.
    pub(crate) fn new(
        problem: &'a Problem,
        elements: &Elements,
        on: &'a Discretisation,
        params: &[f64],
        target: &Target,
    ) -> Result<Option<Self>, RunError> {
        if problem.mean.is_empty() {
            return Ok(None);
        }
        let mut free = on.clone();
        for (field, _) in &problem.mean {
            free.fields[*field].constraints = Constraints::none(&free.fields[*field].space);
        }
        let free = Arc::new(free);
        let (mut operator, _) =
            compile_operator(&problem.form, elements, &free, params, target, None)?;
        let mut initial = vec![0.0; on.n_dofs()];
        free.conditions().for_each(|(dof, value)| initial[dof] = value);
        let before = residual(&mut operator, &initial)?;
        let mut load = vec![0.0; on.n_dofs()];
        let mut shares = Vec::new();
        for (field, _) in &problem.mean {
            let (range, weights) = (on.dofs_of(*field), weights(on, *field)?);
            let components = on.fields[*field].space.components();
            let nodes = own_nodes(on, *field);
            let volume = in_all(on, nodes.iter().map(|&node| weights[node]).sum());
            let mut left = 0.0;
            for c in 0..components {
                let row = |node: &usize| before[range.start + node * components + c];
                let sum = in_all(on, nodes.iter().map(row).sum());
                left += sum.abs();
                let own = load[range.clone()].iter_mut().skip(c).step_by(components);
                own.zip(&weights).for_each(|(entry, weight)| *entry = sum / volume * weight);
            }
            let rows = nodes.iter().flat_map(|node| {
                let first = range.start + node * components;
                &before[first..first + components]
            });
            let all = in_all(on, rows.map(|row| row.abs()).sum());
            let all = all.max(SOLVED * norm(on, &before).max(1.0));
            shares.push((left, all));
        }
        Ok(Some(Self { problem, on, free: operator, initial: (initial, before), load, shares }))
    }

    /// Makes an operator's equations those in balance.
    pub(crate) fn put(&self, operator: &mut Operator) {
        let mut load = self.load.clone();
        self.on.conditions().for_each(|(dof, _)| load[dof] = 0.0);
        operator.set_load(&load);
    }

    /// An error where a field is not free up to a constant, or where its data do not balance at all.
    pub(super) fn check(&mut self) -> Result<(), RunError> {
        let (initial, before) = self.initial.clone();
        self.check_free(&initial, &before)?;
        for ((field, _), &(left, all)) in self.problem.mean.iter().zip(&self.shares) {
            if left > INTERPOLATED * all {
                let field = self.problem.form.fields[*field].name.clone();
                return Err(RunError::Unbalanced { field, left, all });
            }
        }
        Ok(())
    }

    /// R must not change with the constants; `r` is R(u).
    fn check_free(&mut self, u: &[f64], r: &[f64]) -> Result<(), RunError> {
        for (field, _) in &self.problem.mean {
            let mut moved = u.to_vec();
            moved[self.on.dofs_of(*field)].iter_mut().for_each(|entry| *entry += 1.0);
            let moved = residual(&mut self.free, &moved)?;
            let difference: Vec<f64> = moved.iter().zip(r).map(|(a, b)| a - b).collect();
            let on = self.on;
            let size = norm(on, u).max(norm(on, &self.initial.1)).max(1.0);
            if norm(on, &difference) > SOLVED * size {
                let field = self.problem.form.fields[*field].name.clone();
                return Err(RunError::NotUpToAConstant { field });
            }
        }
        Ok(())
    }

    /// Gives each field of a solution its mean, and notes what does not quite balance; an error where a field is not free
    /// up to a constant, or where what was held is not fulfilled.
    pub(super) fn settle(mut self, u: &mut [f64]) -> Result<Vec<String>, RunError> {
        let mut notes = Vec::new();
        let solved = residual(&mut self.free, u)?;
        self.check_free(u, &solved)?;
        for ((field, wanted), &(spread, all)) in self.problem.mean.iter().zip(&self.shares) {
            let (range, name) = (self.on.dofs_of(*field), &self.problem.form.fields[*field].name);
            let components = self.on.fields[*field].space.components();
            // Others may have no node at all.
            let held = if has_first(self.on) { components } else { 0 };
            let rows = range.start..range.start + held;
            let held = solved[rows.clone()].iter().zip(&self.load[rows]);
            let left = in_all(self.on, held.map(|(row, load)| (row - load).abs()).sum());
            if left > INTERPOLATED * all {
                return Err(RunError::Unbalanced { field: name.clone(), left, all });
            }
            if left > SOLVED * all {
                notes.push(format!(
                    "the equations of `{name}` leave {left:.1e} over, which its first node takes"
                ));
            }
            if spread > SOLVED * all {
                notes.push(format!(
                    "what enters and leaves by `{name}` differs by {spread:.1e}, which is spread evenly"
                ));
            }
            set_mean(self.on, *field, u, wanted)?;
        }
        Ok(notes)
    }
}

fn residual(operator: &mut Operator, u: &[f64]) -> Result<Vec<f64>, RunError> {
    let mut state: Vector = operator.vector();
    state.set(u);
    let mut r = state.like();
    operator.residual(&state, &mut r)?;
    Ok(r.to_vec())
}

/// The nodes of a field that no process before this one has.
fn own_nodes(on: &Discretisation, field: usize) -> Vec<usize> {
    let space = &on.fields[field].space;
    let sharing = on.mesh.cut().map(|cut| space.sharing(cut.group()));
    let own = |node: &usize| !sharing.as_ref().is_some_and(|all| all.is_of_others(*node));
    (0..space.n_nodes()).filter(own).collect()
}

/// The sum over all processes.
fn in_all(on: &Discretisation, own: f64) -> f64 {
    let mut sum = [own];
    on.mesh.sum_in_all(&mut sum);
    sum[0]
}

fn norm(on: &Discretisation, r: &[f64]) -> f64 {
    let vector = Vector::from_slice(r, Precision::F64);
    match on.sharing() {
        Some(sharing) => vector.shared(sharing).norm(),
        None => r.iter().map(|r| r * r).sum::<f64>().sqrt(),
    }
}
