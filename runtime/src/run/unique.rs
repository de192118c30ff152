//! What a linear form and its conditions leave open, as its operator shows: null vectors J z = 0 with z = 0 where a
//! condition holds.
//!
//! ```text
//! an unknown with (J x)_i = 0 for vectors x without any order              its equation reads 0 = 0
//! z = 1 in a field that only other fields' equations read (a pressure)     a constant
//! z = a + b × x in a vector field, where conditions leave some             a rigid motion
//! ```
//!
//! Vectors z are one for each connected part of the mesh, and one product serves all parts. A row counts as 0 where it is
//! less than rounding leaves of the terms that are summed; they are as large as in a product with numbers without any
//! order. What a field has from elsewhere, be it weak, is left alone: where a term reads the value of a component in
//! its own equations, nothing is said of its constants and motions. What [`super::fixed`] sees has been looked at before.

use super::fixed::{Of, Parts, Terms, in_any, unfixed};
use super::mean::check_constants;
use super::{RunError, System};
use crate::discretisation::Discretisation;
use crate::mesh::Mesh;
use crate::operator::Operator;
use crate::processes::Reduce;
use crate::solve::NonlinearSystem;
use crate::vector::{Precision, Vector, noise};
use fem_dsl::point::{Coefficient, Part, Shape};
use fem_dsl::problem::Freedom;
use std::collections::BTreeMap;

/// What rounding may leave of a sum, as a part of the terms.
const ROUNDING: f64 = 1e-12;

/// What of a held unknown's motion is new beside those held before, at least: parts of the size of a mesh's diameter.
const NEW: f64 = 1e-7;

/// Rigid motions in three dimensions.
const MOST: usize = 6;

/// A linear form must have one solution, as far as its operator shows, up to the constants of fields with a mean.
///
/// # Errors
///
/// [`RunError::Unfixed`]; an operator that cannot be applied.
pub fn check_unique(operator: &mut Operator, system: System<'_>) -> Result<(), RunError> {
    let (form, on) = (system.form, system.on);
    let start = operator.initial()?;
    check_constants(operator, system, &start)?;
    if !system.is_linear() || operator.vector().precision() != Precision::F64 {
        return Ok(());
    }
    let terms = Terms::new(form, on, system.parameters);
    let all = || {
        let fields = form.fields.iter().enumerate();
        fields.flat_map(|(field, own)| {
            (0..own.shape.components()).map(move |component| Of { field, component })
        })
    };
    let itself = |of: Of| terms.constant_of_cells(|term| of.is(term.test) && of.is(term.trial));
    let elsewhere: Vec<Of> = all().filter(|&of| is_elsewhere(&terms, on, of)).collect();
    let vectors = (0..form.fields.len()).filter(|&field| {
        let shape = form.fields[field].shape;
        let reads =
            |term: &Coefficient| term.trial.field == field && term.trial.part == Part::Value;
        shape == Shape::Vector(form.dim)
            && on.fields[field].space.element().is_continuous()
            && !terms.of_cells(reads)
            && !terms.in_parts(on, reads)
    });
    let vectors: Vec<usize> = vectors.collect();
    let known = all().all(itself);
    if known && elsewhere.is_empty() && vectors.is_empty() {
        return Ok(());
    }
    let parts = Parts::new(&on.mesh);
    let motions = motions(on, &vectors, &parts)?;
    if known && elsewhere.is_empty() && motions.is_empty() {
        return Ok(());
    }
    let at = operator.vector();
    operator.linearise(&at)?;
    let mut tried = Tried { operator, on, free: free(on), parts: &parts };
    if !known && let Some((of, at)) = tried.empty_row()? {
        return Err(unfixed(form, of, Freedom::Everything { at }));
    }
    for of in elsewhere {
        let held = parts.held(on, of);
        let components = on.fields[of.field].space.components();
        let z = on_parts(on, &parts, of.field, |part, node| {
            [(node * components + of.component, if held[part] { 0.0 } else { 1.0 })]
        });
        let left: Vec<bool> = held.iter().map(|held| !held).collect();
        let null = tried.null(of.field, &z, left)?;
        let free = null.iter().filter(|null| **null).count();
        if let Some(first) = null.iter().position(|null| *null) {
            let (count, at) = (parts.count, parts.place(&on.mesh, first));
            let mean = on.fields[of.field].constraints.mean().is_some();
            let freedom = match count {
                1 => Freedom::Constant,
                _ => Freedom::Part { parts: count, free, at, mean },
            };
            return Err(unfixed(form, of, freedom));
        }
    }
    for Motion { field, z, of_parts } in motions {
        let null = tried.null(field, &z, of_parts)?;
        if let Some(first) = null.iter().position(|null| *null) {
            let at = parts.place(&on.mesh, first);
            return Err(unfixed(form, Of { field, component: 0 }, Freedom::Rotation { at }));
        }
    }
    Ok(())
}

/// Whether the value of a component is read, but in no equation of its own field.
fn is_elsewhere(terms: &Terms, on: &Discretisation, of: Of) -> bool {
    let own = |term: &Coefficient| of.is_value(term.trial) && term.test.field == of.field;
    terms.of_cells(|term| of.is_value(term.trial))
        && !terms.of_cells(own)
        && !terms.in_parts(on, own)
}

/// Which unknowns no condition holds.
fn free(on: &Discretisation) -> Vec<bool> {
    let mut free = vec![true; on.n_dofs()];
    on.conditions().for_each(|(dof, _)| free[dof] = false);
    on.affine.unknowns().iter().for_each(|&dof| free[dof as usize] = false);
    free
}

/// A vector with entries of one field, given for the nodes of each part.
fn on_parts<const N: usize>(
    on: &Discretisation,
    parts: &Parts,
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

/// An operator at a state.
struct Tried<'a> {
    operator: &'a mut Operator,
    on: &'a Discretisation,
    free: Vec<bool>,
    parts: &'a Parts,
}

impl Tried<'_> {
    fn apply(&mut self, x: &[f64]) -> Result<Vec<f64>, RunError> {
        let mut direction: Vector = self.operator.vector();
        direction.set(x);
        direction.agree();
        let mut y = direction.like();
        self.operator.jacobian().apply(&direction, &mut y)?;
        Ok(y.to_vec())
    }

    /// Numbers without any order, other ones at each process: a cell may have the same unknown of each of several, and a constant is
    /// what many rows do not see.
    fn noise(&self, seed: u64) -> Vec<f64> {
        let own = self.on.mesh.cut().map_or(0, |cut| cut.group().rank() as u64);
        noise(self.on.n_dofs(), seed + 1000 * own)
    }

    /// A free unknown whose row has no entry in a free column.
    fn empty_row(&mut self) -> Result<Option<(Of, [f64; 3])>, RunError> {
        let on = self.on;
        let products = [self.apply(&self.noise(1))?, self.apply(&self.noise(2))?];
        let empty = |i: usize| self.free[i] && products.iter().all(|y| y[i] == 0.0);
        let row = (0..on.n_dofs()).find(|&i| empty(i));
        let row = match on.mesh.cut() {
            None => row,
            Some(cut) => {
                let none = f64::INFINITY;
                let mut first = [row.map_or(none, |_| cut.group().rank() as f64)];
                on.mesh.reduce_in_all(Reduce::Least, &mut first);
                if first[0] == none {
                    None
                } else {
                    return self
                        .empty_row_of(row.filter(|_| first[0] == cut.group().rank() as f64));
                }
            }
        };
        let Some(row) = row else { return Ok(None) };
        self.row_at(row).map(Some)
    }

    /// The same where one process alone has found it.
    fn empty_row_of(&self, own: Option<usize>) -> Result<Option<(Of, [f64; 3])>, RunError> {
        let found = own.map(|row| self.row_at(row)).transpose()?;
        let at = self.on.mesh.first_in_all(found.map(|(_, at)| at)).unwrap_or_default();
        let mut of = found.map_or([0.0; 2], |(of, _)| [of.field as f64, of.component as f64]);
        self.on.mesh.sum_in_all(&mut of);
        Ok(Some((Of { field: of[0] as usize, component: of[1] as usize }, at)))
    }

    /// The component of a row, and where it is.
    fn row_at(&self, row: usize) -> Result<(Of, [f64; 3]), RunError> {
        let on = self.on;
        let field = (0..on.fields.len()).find(|&field| on.dofs_of(field).contains(&row));
        let field = field.unwrap_or(0);
        let (space, own) = (&on.fields[field].space, row - on.dofs_of(field).start);
        let node = own / space.components();
        let at = space.points_here(&on.mesh, &on.partition)?[node];
        Ok((Of { field, component: own % space.components() }, at))
    }

    /// For each of some parts whether J z = 0 in its free rows, where `z` is of one field.
    fn null(
        &mut self,
        field: usize,
        z: &[f64],
        mut parts: Vec<bool>,
    ) -> Result<Vec<bool>, RunError> {
        let product = self.apply(z)?;
        // Components that z has not are not among the terms.
        let mut largest = [z.iter().fold(0.0f64, |largest, z| largest.max(z.abs()))];
        self.on.mesh.reduce_in_all(Reduce::Largest, &mut largest);
        let [largest] = largest;
        let components = self.on.fields[field].space.components();
        let range = self.on.dofs_of(field);
        let mut has: Vec<bool> = (0..components)
            .map(|c| z[range.clone()].iter().skip(c).step_by(components).any(|z| *z != 0.0))
            .collect();
        in_any(&self.on.mesh, &mut has);
        let mut sizes = vec![0.0f64; z.len()];
        for seed in [3, 4] {
            let mut x = self.noise(seed);
            for (i, x) in x.iter_mut().enumerate() {
                let own = range.contains(&i) && has[(i - range.start) % components];
                *x *= if own { largest } else { 0.0 };
            }
            for (size, y) in sizes.iter_mut().zip(self.apply(&x)?) {
                *size = size.max(y.abs());
            }
        }
        for (cell, &part) in self.parts.of.iter().enumerate() {
            if !parts[part as usize] {
                continue;
            }
            let rows = self.on.fields.iter().enumerate().flat_map(|(number, own)| {
                let (start, components) = (self.on.dofs_of(number).start, own.space.components());
                let nodes = own.space.cell_nodes(cell).iter();
                nodes.flat_map(move |&node| {
                    let first = start + node as usize * components;
                    first..first + components
                })
            });
            // Written so that what is not a number is no null vector.
            let mut rows = rows;
            parts[part as usize] =
                rows.all(|i| !self.free[i] || product[i].abs() <= ROUNDING * sizes[i]);
        }
        // Those that are none at any process.
        parts.iter_mut().for_each(|part| *part = !*part);
        in_any(&self.on.mesh, &mut parts);
        parts.iter_mut().for_each(|part| *part = !*part);
        Ok(parts)
    }
}

/// A rigid motion of some parts of the mesh.
struct Motion {
    field: usize,
    z: Vec<f64>,
    of_parts: Vec<bool>,
}

/// Where the coordinates of a part begin, and their unit.
#[derive(Clone, Copy)]
struct Frame {
    centre: [f64; 3],
    unit: f64,
}

impl Frame {
    /// Of each part: the middle of the box around it, and half the diagonal.
    fn of_parts(on: &Discretisation, parts: &Parts) -> Vec<Self> {
        let mut boxes = vec![([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]); parts.count];
        for (cell, &part) in parts.of.iter().enumerate() {
            let (lower, upper) = &mut boxes[part as usize];
            for &vertex in on.mesh.vertices(cell) {
                let point = on.mesh.points()[vertex as usize];
                for c in 0..3 {
                    (lower[c], upper[c]) = (lower[c].min(point[c]), upper[c].max(point[c]));
                }
            }
        }
        for ends in &mut boxes {
            on.mesh.reduce_in_all(Reduce::Least, &mut ends.0);
            on.mesh.reduce_in_all(Reduce::Largest, &mut ends.1);
        }
        let frame = |(lower, upper): ([f64; 3], [f64; 3])| Self {
            centre: [0, 1, 2].map(|c| (lower[c] + upper[c]) / 2.0),
            unit: (0..3).map(|c| (upper[c] - lower[c]).powi(2)).sum::<f64>().sqrt() / 2.0,
        };
        boxes.into_iter().map(frame).collect()
    }

    /// What component `c` has of each rigid motion at a point: translations, then rotations.
    fn motions(self, dim: usize, point: [f64; 3], c: usize) -> [f64; MOST] {
        let x = [0, 1, 2].map(|c| (point[c] - self.centre[c]) / self.unit);
        let mut motions = [0.0; MOST];
        motions[c] = 1.0;
        if dim == 2 {
            motions[2] = if c == 0 { -x[1] } else { x[0] };
            return motions;
        }
        // Component c of e_a × x.
        for a in (0..3).filter(|&a| a != c) {
            let b = 3 - a - c;
            motions[3 + a] = if (a + 1) % 3 == b { x[b] } else { -x[b] };
        }
        motions
    }
}

/// The rigid motions that conditions leave to vector fields.
fn motions(on: &Discretisation, fields: &[usize], parts: &Parts) -> Result<Vec<Motion>, RunError> {
    let dim = on.mesh.dim();
    let count = if dim == 2 { 3 } else { MOST };
    let frames = Frame::of_parts(on, parts);
    let mut found = Vec::new();
    for &field in fields {
        let own = &on.fields[field];
        let points = own.space.points(&on.mesh, &on.partition)?;
        let part_of = parts.of_nodes(&own.space);
        let mut held: Vec<Vec<[f64; MOST]>> = vec![Vec::new(); parts.count];
        // What a combination of a node's components has of each motion.
        let row = |node: usize, weights: [f64; 3]| {
            let (mut row, frame) = ([0.0; MOST], frames[part_of[node] as usize]);
            for (c, weight) in weights.into_iter().enumerate().take(dim) {
                let of_component = frame.motions(dim, points[node], c);
                row.iter_mut().zip(of_component).for_each(|(row, own)| *row += weight * own);
            }
            row
        };
        let mut hold = |part: u32, row: [f64; MOST]| {
            let held = &mut held[part as usize];
            if held.len() < count {
                let new = beside(held, row);
                held.extend(new);
            }
        };
        let unit = |c: usize| std::array::from_fn(|i| f64::from(u8::from(i == c)));
        // A mean fixes the translations of one part, the first.
        if own.constraints.mean().is_some() {
            (0..dim).for_each(|c| hold(0, std::array::from_fn(|i| f64::from(u8::from(i == c)))));
        }
        for (dof, _) in own.constraints.iter() {
            hold(part_of[dof / dim], row(dof / dim, unit(dof % dim)));
        }
        for oblique in own.constraints.oblique() {
            let rows = oblique.given.into_iter();
            let rows = rows.filter(|row| row.iter().any(|entry| entry.abs() > NEW));
            let (node, part) = (oblique.node as usize, part_of[oblique.node as usize]);
            rows.for_each(|weights| hold(part, row(node, weights)));
        }
        for number in 0..on.affine.len() {
            let mut rows: BTreeMap<u32, ([f64; MOST], f64)> = BTreeMap::new();
            for (unknown, factor) in on.affine.equation(number) {
                let Some((of, node, c)) = on.unknown(unknown) else { continue };
                if of == field {
                    let (sum, size) = rows.entry(part_of[node]).or_default();
                    let own = row(node, unit(c));
                    sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += factor * own);
                    *size += factor.abs();
                }
            }
            let left = |row: &[f64; MOST]| row.iter().fold(0.0f64, |most, own| most.max(own.abs()));
            let rows = rows.into_iter().filter(|(_, (row, size))| left(row) > NEW * size);
            rows.for_each(|(part, (row, _))| hold(part, row));
        }
        held.iter_mut().for_each(|held| *held = held_by_all(&on.mesh, held, count));
        let free: Vec<Vec<[f64; MOST]>> = held.iter().map(|held| others(held, count)).collect();
        let most = free.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..most {
            let z = on_parts(on, parts, field, |part, node| {
                let weights = free[part].get(number);
                std::array::from_fn::<_, 3, _>(|c| {
                    let c = c.min(dim - 1);
                    let motions = frames[part].motions(dim, points[node], c);
                    let value = weights.map_or(0.0, |weights| {
                        weights.iter().zip(motions).map(|(weight, motion)| weight * motion).sum()
                    });
                    (node * dim + c, value)
                })
            });
            let of_parts = free.iter().map(|free| number < free.len()).collect();
            found.push(Motion { field, z, of_parts });
        }
    }
    Ok(found)
}

/// What all processes together hold of a part's motions, from what each does.
fn held_by_all(mesh: &Mesh, own: &[[f64; MOST]], count: usize) -> Vec<[f64; MOST]> {
    let Some(cut) = mesh.cut() else { return own.to_vec() };
    let bytes: Vec<u8> = own.as_flattened().iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let mut held: Vec<[f64; MOST]> = Vec::new();
    for bytes in cut.group().gather(&bytes) {
        for row in bytes.chunks(8 * MOST) {
            let mut entries = [0.0; MOST];
            for (entry, bytes) in entries.iter_mut().zip(row.chunks(8)) {
                *entry = f64::from_le_bytes(bytes.try_into().unwrap_or_default());
            }
            if held.len() < count {
                let new = beside(&held, entries);
                held.extend(new);
            }
        }
    }
    held
}

/// The direction of what is left of a row beside orthonormal ones, unless nothing new is.
fn beside(basis: &[[f64; MOST]], mut row: [f64; MOST]) -> Option<[f64; MOST]> {
    let dot = |a: &[f64; MOST], b: &[f64; MOST]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let before = dot(&row, &row).sqrt();
    for _ in 0..2 {
        for own in basis {
            let share = dot(&row, own);
            row.iter_mut().zip(own).for_each(|(entry, own)| *entry -= share * own);
        }
    }
    let norm = dot(&row, &row).sqrt();
    (norm > NEW * before).then(|| row.map(|entry| entry / norm))
}

/// An orthonormal basis of what is orthogonal to some orthonormal rows, in the first `count` coordinates.
fn others(held: &[[f64; MOST]], count: usize) -> Vec<[f64; MOST]> {
    let mut basis = held.to_vec();
    while basis.len() < count {
        // The unit vector of which most is left.
        let units = (0..count).map(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
        let left = |unit: &[f64; MOST]| {
            let shares = basis.iter().map(|own| -> f64 {
                own.iter().zip(unit).map(|(own, unit)| own * unit).sum::<f64>().powi(2)
            });
            1.0 - shares.sum::<f64>()
        };
        let best = units.max_by(|a, b| left(a).total_cmp(&left(b)));
        let Some(next) = best.and_then(|unit| beside(&basis, unit)) else { break };
        basis.push(next);
    }
    basis.split_off(held.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn motions_are_those_of_rigid_bodies() {
        let frame = Frame { centre: [1.0, 0.0, 0.0], unit: 2.0 };
        let at = |point, a: usize| [0, 1, 2].map(|c| frame.motions(3, point, c)[3 + a]);
        let point = [3.0, 4.0, 6.0];
        // e_a × (1, 2, 3).
        assert_eq!(at(point, 0), [0.0, -3.0, 2.0]);
        assert_eq!(at(point, 1), [3.0, 0.0, -1.0]);
        assert_eq!(at(point, 2), [-2.0, 1.0, 0.0]);
        assert_eq!([0, 1].map(|c| frame.motions(2, point, c)[2]), [-2.0, 1.0]);
    }

    #[test]
    fn what_is_left_is_orthogonal_to_what_is_held() {
        let mut held: Vec<[f64; MOST]> = Vec::new();
        for row in [
            [1.0, 2.0, 0.0, 0.0, 0.5, 0.0],
            [2.0, 4.0, 0.0, 0.0, 1.0, 0.0],
            [0.0, 1.0, 1.0, 0.0, 0.0, 3.0],
        ] {
            held.extend(beside(&held, row));
        }
        assert_eq!(held.len(), 2);
        let left = others(&held, MOST);
        assert_eq!(left.len(), 4);
        for (i, a) in left.iter().enumerate() {
            for (j, b) in held.iter().chain(&left).enumerate() {
                let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                let one = if j == i + 2 { 1.0 } else { 0.0 };
                assert!((dot - one).abs() < 1e-14, "{i} {j} {dot}");
            }
        }
    }
}
