//! Numerical null-space check of a linear form: searches for null vectors J z = 0 with z = 0 in constrained degrees of
//! freedom.
//!
//! ```text
//! row i with (J x)_i = 0 for random vectors x                              the equation reads 0 = 0
//! z = 1 in a field that occurs only in other fields' equations (pressure)  a constant
//! z = a + b × x in a vector field with insufficient conditions             a rigid motion
//! ```
//!
//! There is one vector z per connected part of the mesh; one product serves all parts. A row counts as 0 below the
//! rounding error of its terms, whose size follows from a product with random numbers. A curved wall with mesh normals
//! restrains a rotation slightly, as far as the mesh is not round. Such a motion counts as free as well, or yields a
//! note ([`rigid_motions`]). Constants and motions of a component are not checked if a term with its value occurs in
//! its own equations, even with a small coefficient. The structural check [`super::structural_null_space`] runs before.

mod rigid_motions;

use super::mean::check_constants;
use super::structural_null_space::{
    ConnectedParts, FieldComponent, NonzeroEntries, in_any, unfixed,
};
use super::{Context, Platform, RunError};
use crate::algebra::vector::{Precision, Vector};
use crate::operator::Operator;
use crate::processes::Reduction;
use crate::solve::NonlinearSystem;
use crate::space::discretisation::Discretisation;
use crate::support::timers::in_step;
use fem_dsl::point::{Coefficient, Part, Shape};
use fem_dsl::problem::NullSpaceKind;
use rigid_motions::RigidMotion;
use std::sync::Arc;

/// Bound of the rounding error of a sum, relative to its terms.
const ROUNDING: f64 = 1e-12;

/// Checks that a linear form has a unique solution, up to the constants of fields with a mean-value constraint. Returns
/// notes on weakly restrained motions.
///
/// # Errors
///
/// [`super::IllPosedError::Unfixed`]; an operator that cannot be applied.
pub fn check_unique(operator: &mut Operator, context: &Context) -> Result<Vec<String>, RunError> {
    let (form, on) = (context.form(), &context.on);
    let start = operator.initial()?;
    in_step("constants", || check_constants(operator, context, &start))?;
    if !context.is_linear() || operator.vector().precision() != Precision::F64 {
        return Ok(Vec::new());
    }
    let terms = NonzeroEntries::new(form, on, &context.undetermined_parameters());
    let all = || {
        let fields = form.fields.iter().enumerate();
        fields.flat_map(|(field, _)| {
            (0..on.fields[field].space.components())
                .map(move |component| FieldComponent { field, component })
        })
    };
    let itself =
        |of: FieldComponent| terms.constant_of_cells(|term| of.is(term.test) && of.is(term.trial));
    let elsewhere: Vec<FieldComponent> = all().filter(|&of| is_elsewhere(&terms, on, of)).collect();
    let vectors = (0..form.fields.len()).filter(|&field| {
        let shape = form.fields[field].shape;
        let reads =
            |term: &Coefficient| term.trial.field == field && term.trial.part == Part::Value;
        shape == Shape::Vector(form.dim)
            && on.fields[field].space.element().whitney().is_none()
            && on.fields[field].space.element().is_continuous()
            && !terms.of_cells(reads)
            && !terms.in_parts(on, reads)
    });
    let vectors: Vec<usize> = vectors.collect();
    let known = all().all(itself);
    if known && elsewhere.is_empty() && vectors.is_empty() {
        return Ok(Vec::new());
    }
    let parts = in_step("connected parts", || ConnectedParts::new(&on.mesh));
    let motions = in_step("rigid motions", || rigid_motions::left(on, &vectors, &parts))?;
    if known && elsewhere.is_empty() && motions.is_empty() {
        return Ok(Vec::new());
    }
    let at = operator.vector();
    operator.linearise(&at)?;
    let free = free(operator, on)?;
    let mut tried = TestedOperator { operator, on, free, parts: &parts };
    if !known && let Some((of, at)) = in_step("empty rows", || tried.empty_row())? {
        return Err(unfixed(form, of, NullSpaceKind::Everything { at }));
    }
    for of in elsewhere {
        let held = parts.held(on, of);
        let left: Vec<bool> = held.iter().map(|held| !held).collect();
        if !left.contains(&true) {
            continue;
        }
        let components = on.fields[of.field].space.components();
        let z = on_parts(on, &parts, of.field, |part, node| {
            [(node * components + of.component, if held[part] { 0.0 } else { 1.0 })]
        });
        let null = tried.null(of.field, &z, left)?;
        let free = null.iter().filter(|null| **null).count();
        if let Some(first) = null.iter().position(|null| *null) {
            let (count, at) = (parts.count, parts.place(&on.mesh, first));
            let mean = on.fields[of.field].constraints.mean().is_some();
            let freedom = match count {
                1 => NullSpaceKind::Constant,
                _ => NullSpaceKind::Part { parts: count, free, at, mean },
            };
            return Err(unfixed(form, of, freedom));
        }
    }
    let (held, left): (Vec<_>, Vec<_>) = motions.into_iter().partition(RigidMotion::is_held);
    for motion in left {
        let null = tried.null(motion.field, &motion.z, motion.of_parts())?;
        if let Some(first) = null.iter().position(|null| *null) {
            let freedom = NullSpaceKind::Motion(Box::new(motion.named(on, &parts, first)));
            return Err(unfixed(
                form,
                FieldComponent { field: motion.field, component: 0 },
                freedom,
            ));
        }
    }
    weakly_held(context, &parts, held)
}

/// Selects the motions that are restrained only by errors of mesh normals and have no energy without conditions.
/// Returns notes, or an error if a solve would lose all digits.
///
/// # Errors
///
/// [`super::IllPosedError::Unfixed`]; an operator that cannot be built.
fn weakly_held(
    context: &Context,
    parts: &ConnectedParts,
    weak: Vec<RigidMotion>,
) -> Result<Vec<String>, RunError> {
    if weak.is_empty() {
        return Ok(Vec::new());
    }
    let mut on = (*context.on).clone();
    for motion in &weak {
        let field = &mut on.fields[motion.field];
        *field = field.unconstrained();
    }
    let unheld = Context { on: Arc::new(on), ..context.clone() };
    let (mut operator, _) = unheld.operator_on(&Platform::from(context.platform.target))?;
    let at = operator.vector();
    operator.linearise(&at)?;
    let on = &*unheld.on;
    let free = free(&operator, on)?;
    let mut tried = TestedOperator { operator: &mut operator, on, free, parts };
    let mut notes = Vec::new();
    for motion in weak {
        let null = tried.null(motion.field, &motion.z, motion.of_parts())?;
        let Some(first) = null.iter().position(|null| *null) else { continue };
        let (name, named) =
            (&context.form().fields[motion.field].name, motion.named(on, parts, first));
        if !motion.is_seen() {
            let of = FieldComponent { field: motion.field, component: 0 };
            return Err(unfixed(context.form(), of, NullSpaceKind::Motion(Box::new(named))));
        }
        let digit = 10f64.powf((1.0 / motion.strength).log10().floor());
        let part = (1.0 / motion.strength / digit).round() * digit;
        notes.push(format!(
            "the conditions on `{name}` let it {named} but for the error of the mesh's normals, 1 in {part:.0}: loads that \
             drive this motion give a wrong solution; add `{}`",
            named.condition(name)
        ));
    }
    Ok(notes)
}

/// Finds a free degree of freedom whose row of the linearised Jacobian has no entry in a free column; returns its
/// component and coordinates.
pub(super) fn empty_row(
    operator: &mut Operator,
    on: &Discretisation,
) -> Result<Option<(FieldComponent, [f64; 3])>, RunError> {
    let (parts, free) = (ConnectedParts::new(&on.mesh), free(operator, on)?);
    TestedOperator { operator, on, free, parts: &parts }.empty_row()
}

/// Returns whether the value of a component occurs in equations, but not in those of its own field.
fn is_elsewhere(terms: &NonzeroEntries, on: &Discretisation, of: FieldComponent) -> bool {
    let own = |term: &Coefficient| of.is_value(term.trial) && term.test.field == of.field;
    on.fields[of.field].space.element().whitney().is_none()
        && terms.of_cells(|term| of.is_value(term.trial))
        && !terms.of_cells(own)
        && !terms.in_parts(on, own)
}

/// Returns a vector with 1 in unconstrained degrees of freedom and 0 in the others.
fn free(operator: &Operator, on: &Discretisation) -> Result<Vector, RunError> {
    let mut free = operator.vector();
    let has_oblique = on.fields.iter().any(|field| !field.constraints.oblique().is_empty());
    if on.affine.is_empty() && !has_oblique {
        free.fill(1.0);
        return Ok(operator.without_conditions(free)?);
    }
    let mut entries = vec![1.0; on.n_dofs()];
    on.conditions().for_each(|(dof, _)| entries[dof] = 0.0);
    on.affine.unknowns().iter().for_each(|&dof| entries[dof as usize] = 0.0);
    free.set(&entries);
    Ok(free)
}

/// Returns the component of a degree of freedom, and its coordinates.
pub(super) fn row_at(
    on: &Discretisation,
    row: usize,
) -> Result<(FieldComponent, [f64; 3]), RunError> {
    let field = (0..on.fields.len()).find(|&field| on.dofs_of(field).contains(&row));
    let field = field.unwrap_or(0);
    let (space, own) = (&on.fields[field].space, row - on.dofs_of(field).start);
    let node = own / space.components();
    let at = space.points_here(&on.mesh, &on.partition)?[node];
    Ok((FieldComponent { field, component: own % space.components() }, at))
}

/// Builds a vector with entries in one field, given for the nodes of each part.
fn on_parts<const N: usize>(
    on: &Discretisation,
    parts: &ConnectedParts,
    field: usize,
    entries: impl Fn(usize, usize) -> [(usize, f64); N],
) -> Vec<f64> {
    let (start, space) = (on.dofs_of(field).start, &on.fields[field].space);
    let mut z = vec![0.0; on.n_dofs()];
    for (cell, &part) in parts.of.iter().enumerate() {
        for &node in space.cell_nodes(cell) {
            for (dof, value) in entries(part as usize, node as usize) {
                z[start + dof] = value;
            }
        }
    }
    z
}

/// A linearised operator under test.
struct TestedOperator<'a> {
    operator: &'a mut Operator,
    on: &'a Discretisation,
    /// 1 in unconstrained degrees of freedom, 0 in others.
    free: Vector,
    parts: &'a ConnectedParts,
}

impl TestedOperator<'_> {
    fn apply(&mut self, x: &Vector) -> Result<Vector, RunError> {
        let mut y = x.like();
        self.operator.jacobian().apply(x, &mut y)?;
        Ok(y)
    }

    /// Finds a free degree of freedom whose row has no entry in a free column.
    fn empty_row(&mut self) -> Result<Option<(FieldComponent, [f64; 3])>, RunError> {
        let on = self.on;
        let mut sizes = self.apply(&self.operator.random_direction(1)?)?;
        let mut others = self.apply(&self.operator.random_direction(2)?)?;
        sizes.make_absolute();
        others.make_absolute();
        sizes.axpy(1.0, &others);
        // Sums of ones are exact.
        let mut filled = self.free.clone();
        filled.mask_by(&sizes);
        if filled.dot(&filled) == self.free.dot(&self.free) {
            return Ok(None);
        }
        let (free, filled) = (self.free.to_vec(), filled.to_vec());
        let row = (0..on.n_dofs()).find(|&i| free[i] != filled[i]);
        let row = match on.mesh.cut() {
            None => row,
            Some(cut) => {
                let none = f64::INFINITY;
                let mut first = [row.map_or(none, |_| cut.group().rank() as f64)];
                on.mesh.reduce_in_all(Reduction::Least, &mut first);
                if first[0] == none {
                    None
                } else {
                    return self
                        .empty_row_of(row.filter(|_| first[0] == cut.group().rank() as f64));
                }
            }
        };
        let Some(row) = row else { return Ok(None) };
        row_at(self.on, row).map(Some)
    }

    /// Broadcasts the result of the process that found it.
    fn empty_row_of(
        &self,
        own: Option<usize>,
    ) -> Result<Option<(FieldComponent, [f64; 3])>, RunError> {
        let found = own.map(|row| row_at(self.on, row)).transpose()?;
        let at = self.on.mesh.first_in_all(found.map(|(_, at)| at)).unwrap_or_default();
        let mut of = found.map_or([0.0; 2], |(of, _)| [of.field as f64, of.component as f64]);
        self.on.mesh.sum_in_all(&mut of);
        Ok(Some((FieldComponent { field: of[0] as usize, component: of[1] as usize }, at)))
    }

    /// Restricts a mask of parts to those with J z = 0 in their free rows; `z` is nonzero in one field only.
    fn null(
        &mut self,
        field: usize,
        z: &[f64],
        mut parts: Vec<bool>,
    ) -> Result<Vec<bool>, RunError> {
        let mut direction = self.operator.vector();
        direction.set(z);
        direction.synchronise();
        let mut rows = self.apply(&direction)?;
        // Components that are zero in z do not contribute terms.
        let mut largest = [z.iter().fold(0.0f64, |largest, z| largest.max(z.abs()))];
        self.on.mesh.reduce_in_all(Reduction::Largest, &mut largest);
        let components = self.on.fields[field].space.components();
        let range = self.on.dofs_of(field);
        let mut has: Vec<bool> = (0..components)
            .map(|c| z[range.clone()].iter().skip(c).step_by(components).any(|z| *z != 0.0))
            .collect();
        in_any(&self.on.mesh, &mut has);
        let weights: Vec<f64> = has.iter().map(|&has| if has { largest[0] } else { 0.0 }).collect();
        let mut response = |seed| {
            let mut x = self.operator.random_direction(seed)?.restricted_to(range.clone());
            x.weigh(range.clone(), &weights);
            self.apply(&x)
        };
        let (first, second) = (response(3)?, response(4)?);
        // NaN is no null vector.
        rows.mark_beyond(ROUNDING, &first, &second);
        rows.multiply(&self.free);
        if rows.dot(&rows) == 0.0 {
            return Ok(parts);
        }
        let rows = rows.to_vec();
        for (cell, &part) in self.parts.of.iter().enumerate() {
            if !parts[part as usize] {
                continue;
            }
            let of_cell = self.on.fields.iter().enumerate().flat_map(|(number, own)| {
                let (start, components) = (self.on.dofs_of(number).start, own.space.components());
                let nodes = own.space.cell_nodes(cell).iter();
                nodes.flat_map(move |&node| {
                    let first = start + node as usize * components;
                    first..first + components
                })
            });
            let mut of_cell = of_cell;
            parts[part as usize] = of_cell.all(|i| rows[i] == 0.0);
        }
        // A part remains only if it passes on all processes.
        parts.iter_mut().for_each(|part| *part = !*part);
        in_any(&self.on.mesh, &mut parts);
        parts.iter_mut().for_each(|part| *part = !*part);
        Ok(parts)
    }
}
