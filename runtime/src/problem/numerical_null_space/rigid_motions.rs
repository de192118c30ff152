//! Rigid motions of vector fields that conditions do not restrain: [`left`].
//!
//! Each condition at a node is a row in the coordinates of the motions a + b × x of a part. Pivoted orthogonalisation
//! takes the rows with the largest new component. The length of that component is the strength of the restraint: about
//! 1 for a proper restraint, 0 for a free motion. It is about the error of a curved wall's normals if the wall lets the
//! motion slide.

use super::on_parts;
use crate::mesh::Mesh;
use crate::problem::RunError;
use crate::problem::structural_null_space::ConnectedParts;
use crate::processes::Reduction;
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::RigidMotion as Named;
use std::collections::BTreeMap;

/// Strength below which a restraint is rounding error.
const NEW: f64 = 1e-7;
/// Strength below which a solve loses all digits to a motion: stiffness is proportional to its square.
const HELD: f64 = 1e-5;
/// Error of the normals of a wall that turns by an angle within a cell, relative to the square of the angle.
const OF_NORMALS: f64 = 0.1;
/// Strength of a restraint that more conditions need not confirm.
const WELL: f64 = 1e-2;
/// Number of conditions in a sample.
const SAMPLE: usize = 1 << 12;
/// Number of rigid motions in three dimensions.
const MOST: usize = 6;

/// A rigid motion of some parts of the mesh.
pub(super) struct RigidMotion {
    pub(super) field: usize,
    /// Nodal values of the motion.
    pub(super) z: Vec<f64>,
    /// Strength of its restraint.
    pub(super) strength: f64,
    /// Its coordinates in each part that has it, relative to that part's frame.
    weights: Vec<Option<[f64; MOST]>>,
    frames: Vec<PartFrame>,
}

impl RigidMotion {
    /// Returns whether errors of normals restrain it.
    pub(super) fn is_held(&self) -> bool {
        self.strength > 0.0
    }

    /// Returns whether the restraint is strong enough for a solve.
    pub(super) fn is_seen(&self) -> bool {
        self.strength > HELD
    }

    /// Returns the mask of parts that have it.
    pub(super) fn of_parts(&self) -> Vec<bool> {
        self.weights.iter().map(Option::is_some).collect()
    }

    /// Describes it in a part, with the vertex and component of largest displacement.
    pub(super) fn named(&self, on: &Discretisation, parts: &ConnectedParts, part: usize) -> Named {
        let (frame, dim) = (self.frames[part], on.mesh.dim());
        let weights = self.weights[part].unwrap_or_default();
        let value = |point: [f64; 3], c: usize| -> f64 {
            let motions = frame.motions(dim, point, c);
            weights.iter().zip(motions).map(|(weight, motion)| weight * motion).sum()
        };
        // Ties go to the first vertex.
        let mut best: Option<(f64, [f64; 3])> = None;
        for (cell, _) in parts.of.iter().enumerate().filter(|(_, own)| **own as usize == part) {
            for &vertex in on.mesh.vertices(cell) {
                let point = on.mesh.points()[vertex as usize];
                let most = (0..dim).map(|c| value(point, c).abs()).fold(0.0, f64::max);
                if best.is_none_or(|(known, _)| most > known * (1.0 + 1e-6)) {
                    best = Some((most, point));
                }
            }
        }
        let mut largest = [best.map_or(0.0, |(most, _)| most)];
        on.mesh.reduce_in_all(Reduction::Largest, &mut largest);
        let own = best.filter(|(most, _)| *most >= largest[0]).map(|(_, point)| point);
        let held_at = on.mesh.first_in_all(own).unwrap_or_default();
        let component = (0..dim).fold(0, |best, c| {
            if value(held_at, c).abs() > value(held_at, best).abs() * (1.0 + 1e-6) {
                c
            } else {
                best
            }
        });
        let (shift, turn) = match dim {
            1 => ([weights[0], 0.0, 0.0], [0.0; 3]),
            2 => ([weights[0], weights[1], 0.0], [0.0, 0.0, weights[2]]),
            _ => ([weights[0], weights[1], weights[2]], [weights[3], weights[4], weights[5]]),
        };
        let at = parts.place(&on.mesh, part);
        let unit = frame.unit;
        Named::new(
            dim,
            at,
            (shift, turn.map(|turn| turn / unit)),
            frame.centre,
            (component, held_at),
        )
    }
}

/// Origin and length unit of a part's coordinates.
#[derive(Clone, Copy)]
struct PartFrame {
    centre: [f64; 3],
    unit: f64,
}

impl PartFrame {
    /// Computes the frame of each part: centre of the bounding box, and half its diagonal.
    fn of_parts(on: &Discretisation, parts: &ConnectedParts) -> Vec<Self> {
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
            on.mesh.reduce_in_all(Reduction::Least, &mut ends.0);
            on.mesh.reduce_in_all(Reduction::Largest, &mut ends.1);
        }
        let frame = |(lower, upper): ([f64; 3], [f64; 3])| Self {
            centre: [0, 1, 2].map(|c| (lower[c] + upper[c]) / 2.0),
            unit: (0..3).map(|c| (upper[c] - lower[c]).powi(2)).sum::<f64>().sqrt() / 2.0,
        };
        boxes.into_iter().map(frame).collect()
    }

    /// Returns component `c` of each rigid motion at a point: translations, then rotations.
    fn motions(self, dim: usize, point: [f64; 3], c: usize) -> [f64; MOST] {
        let x = [0, 1, 2].map(|c| (point[c] - self.centre[c]) / self.unit);
        let mut motions = [0.0; MOST];
        motions[c] = 1.0;
        if dim == 1 {
            return motions;
        }
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

/// Returns the rigid motions of vector fields that conditions do not restrain, or restrain weakly.
pub(super) fn left(
    on: &Discretisation,
    fields: &[usize],
    parts: &ConnectedParts,
) -> Result<Vec<RigidMotion>, RunError> {
    let dim = on.mesh.dim();
    let count = [1, 3, MOST][dim - 1];
    let frames = PartFrame::of_parts(on, parts);
    let mut found = Vec::new();
    for &field in fields {
        let strengths_of = |every: usize| -> Result<Vec<Vec<[f64; MOST]>>, RunError> {
            let rows = rows(on, (field, every), &frames, parts)?;
            Ok(rows.iter().map(|rows| strongest(rows, count)).collect())
        };
        // Some conditions suffice if they restrain all motions well.
        let every = sampled(on.fields[field].constraints.given().len());
        let mut held = strengths_of(every)?;
        let is_well_held = |own: &Vec<[f64; MOST]>| {
            own.len() == count && own.iter().all(|row| dot(row, row).sqrt() > WELL)
        };
        if every > 1 && !held.iter().all(is_well_held) {
            held = strengths_of(1)?;
        }
        let held: Vec<_> =
            held.iter().map(|held| strongest(&in_all(&on.mesh, held), count)).collect();
        let weak = weak(on, field, parts);
        let of_part = |(held, weak): (&Vec<[f64; MOST]>, &f64)| directions(held, count, *weak);
        let free: Vec<Vec<(f64, [f64; MOST])>> = held.iter().zip(&weak).map(of_part).collect();
        let most = free.iter().map(Vec::len).max().unwrap_or(0);
        if most == 0 {
            continue;
        }
        let points = on.fields[field].space.points(&on.mesh, &on.partition)?;
        for number in 0..most {
            // Free and weakly restrained motions are separate.
            for is_held in [false, true] {
                let own = |part: usize| {
                    free[part].get(number).filter(|(strength, _)| (*strength > 0.0) == is_held)
                };
                let weights: Vec<_> = (0..parts.count).map(|part| own(part).copied()).collect();
                if weights.iter().all(Option::is_none) {
                    continue;
                }
                let strength =
                    weights.iter().flatten().fold(0.0, |most: f64, (own, _)| most.max(*own));
                let z = on_parts(on, parts, field, |part, node| {
                    std::array::from_fn::<_, 3, _>(|c| {
                        let c = c.min(dim - 1);
                        let motions = frames[part].motions(dim, points[node], c);
                        let value = weights[part].map_or(0.0, |(_, weights)| {
                            weights
                                .iter()
                                .zip(motions)
                                .map(|(weight, motion)| weight * motion)
                                .sum()
                        });
                        (node * dim + c, value)
                    })
                });
                let weights = weights.into_iter().map(|own| own.map(|(_, weights)| weights));
                let (weights, frames) = (weights.collect(), frames.clone());
                found.push(RigidMotion { field, z, strength, weights, frames });
            }
        }
    }
    Ok(found)
}

/// Returns the step between the conditions of a sample; odd and no multiple of 3, so that it has all components.
fn sampled(conditions: usize) -> usize {
    let every = (conditions / SAMPLE) | 1;
    if every.is_multiple_of(3) { every + 2 } else { every }
}

/// Returns the rows of the conditions on a field in motion coordinates, for each part; of single degrees of freedom only
/// one in `every`.
fn rows(
    on: &Discretisation,
    (field, every): (usize, usize),
    frames: &[PartFrame],
    parts: &ConnectedParts,
) -> Result<Vec<Vec<[f64; MOST]>>, RunError> {
    let (dim, own) = (on.mesh.dim(), &on.fields[field]);
    // The nodes with conditions, ascending, and their points.
    let constrained = || own.constraints.given().step_by(every).map(|(dof, _)| dof);
    let mut nodes: Vec<u32> = constrained().map(|dof| (dof / dim) as u32).collect();
    nodes.extend(own.constraints.oblique().iter().map(|oblique| oblique.node));
    for number in 0..on.affine.len() {
        let unknowns = on.affine.equation(number).filter_map(|(unknown, _)| on.unknown(unknown));
        nodes.extend(unknowns.filter(|(of, ..)| *of == field).map(|(_, node, _)| node as u32));
    }
    nodes.sort_unstable();
    nodes.dedup();
    let points = own.space.points_at(&on.mesh, &on.partition, &nodes)?;
    let point_of = |node: usize| {
        nodes.binary_search(&(node as u32)).map_or([f64::NAN; 3], |place| points[place])
    };
    let part_of = parts.of_nodes(&own.space);
    let mut rows: Vec<Vec<[f64; MOST]>> = vec![Vec::new(); parts.count];
    // Row of a linear combination of a node's components.
    let row = |node: usize, weights: [f64; 3]| {
        let (mut row, frame) = ([0.0; MOST], frames[part_of[node] as usize]);
        let point = point_of(node);
        for (c, weight) in weights.into_iter().enumerate().take(dim) {
            let of_component = frame.motions(dim, point, c);
            row.iter_mut().zip(of_component).for_each(|(row, own)| *row += weight * own);
        }
        row
    };
    let unit = |c: usize| std::array::from_fn(|i| f64::from(u8::from(i == c)));
    // A mean-value constraint fixes the translations of the first part.
    if own.constraints.mean().is_some() {
        rows[0].extend((0..dim).map(|c| std::array::from_fn(|i| f64::from(u8::from(i == c)))));
    }
    for dof in constrained() {
        rows[part_of[dof / dim] as usize].push(row(dof / dim, unit(dof % dim)));
    }
    for oblique in own.constraints.oblique() {
        let node = oblique.node as usize;
        let given = oblique.normals.into_iter();
        let given = given.filter(|row| row.iter().any(|entry| entry.abs() > NEW));
        rows[part_of[node] as usize].extend(given.map(|weights| row(node, weights)));
    }
    for number in 0..on.affine.len() {
        let mut sums: BTreeMap<u32, ([f64; MOST], f64)> = BTreeMap::new();
        for (unknown, factor) in on.affine.equation(number) {
            let Some((of, node, c)) = on.unknown(unknown) else { continue };
            if of == field {
                let (sum, size) = sums.entry(part_of[node]).or_default();
                let own = row(node, unit(c));
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += factor * own);
                *size += factor.abs();
            }
        }
        for (part, (row, size)) in sums.into_iter().filter(|(_, (_, size))| *size > 0.0) {
            rows[part as usize].push(row.map(|entry| entry / size));
        }
    }
    Ok(rows)
}

/// Returns for each part the strength below which errors of normals explain a restraint.
fn weak(on: &Discretisation, field: usize, parts: &ConnectedParts) -> Vec<f64> {
    let own = &on.fields[field];
    let mut squares = vec![0.0f64; parts.count];
    let oblique = own.constraints.oblique();
    // Single walls only; corners restrain sliding.
    let trace = |given: &[[f64; 3]; 3]| (0..3).map(|c| given[c][c]).sum::<f64>();
    let walls: BTreeMap<u32, &[[f64; 3]; 3]> = oblique
        .iter()
        .filter(|own| trace(&own.normals) < 1.5)
        .map(|own| (own.node, &own.normals))
        .collect();
    if !walls.is_empty() {
        for (cell, &part) in parts.of.iter().enumerate() {
            let nodes = own.space.cell_nodes(cell).iter();
            let of_cell: Vec<_> = nodes.filter_map(|node| walls.get(node)).collect();
            for (i, a) in of_cell.iter().enumerate() {
                for b in &of_cell[..i] {
                    // |N_a − N_b|² is twice the square of the sine of the angle.
                    let pairs = a.as_flattened().iter().zip(b.as_flattened());
                    let square = 0.5 * pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                    squares[part as usize] = squares[part as usize].max(square);
                }
            }
        }
    }
    on.mesh.reduce_in_all(Reduction::Largest, &mut squares);
    squares.into_iter().map(|square| (OF_NORMALS * square).max(HELD)).collect()
}

/// Gathers the rows of all processes.
fn in_all(mesh: &Mesh, own: &[[f64; MOST]]) -> Vec<[f64; MOST]> {
    let Some(cut) = mesh.cut() else { return own.to_vec() };
    let bytes: Vec<u8> = own.as_flattened().iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let mut all = Vec::new();
    for bytes in cut.group().gather(&bytes) {
        for row in bytes.chunks(8 * MOST) {
            let mut entries = [0.0; MOST];
            for (entry, bytes) in entries.iter_mut().zip(row.chunks(8)) {
                *entry = f64::from_le_bytes(bytes.try_into().unwrap_or_default());
            }
            all.push(entries);
        }
    }
    all
}

fn dot(a: &[f64; MOST], b: &[f64; MOST]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Orthogonalises a row against an orthonormal basis.
fn beside(basis: &[[f64; MOST]], mut row: [f64; MOST]) -> [f64; MOST] {
    for _ in 0..2 {
        for own in basis {
            let share = dot(&row, own);
            row.iter_mut().zip(own).for_each(|(entry, own)| *entry -= share * own);
        }
    }
    row
}

fn unit(row: &[f64; MOST]) -> [f64; MOST] {
    let norm = dot(row, row).sqrt();
    row.map(|entry| entry / norm)
}

/// Orthogonalises rows with pivoting: each result is the largest remaining component, with its length.
fn strongest(rows: &[[f64; MOST]], count: usize) -> Vec<[f64; MOST]> {
    let (mut basis, mut found): (Vec<[f64; MOST]>, Vec<[f64; MOST]>) = (Vec::new(), Vec::new());
    while found.len() < count {
        let left = rows.iter().map(|row| beside(&basis, *row));
        let best = left.max_by(|a, b| dot(a, a).total_cmp(&dot(b, b)));
        let Some(best) = best.filter(|best| dot(best, best).sqrt() > NEW) else { break };
        basis.push(unit(&best));
        found.push(best);
    }
    found
}

/// Returns unit directions with a restraint of at most a strength, and the strength, from orthogonal rows.
fn directions(held: &[[f64; MOST]], count: usize, weak: f64) -> Vec<(f64, [f64; MOST])> {
    let mut basis: Vec<[f64; MOST]> = held.iter().map(unit).collect();
    let weakly = held.iter().zip(&basis).map(|(row, unit)| (dot(row, row).sqrt(), *unit));
    let weakly: Vec<_> = weakly.filter(|(strength, _)| *strength <= weak).collect();
    let before = basis.len();
    while basis.len() < count {
        // The unit vector with the largest remainder.
        let units = (0..count).map(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
        let left = units.map(|unit| beside(&basis, unit));
        let best = left.max_by(|a, b| dot(a, a).total_cmp(&dot(b, b)));
        let Some(best) = best else { break };
        basis.push(unit(&best));
    }
    let left = basis.split_off(before).into_iter().map(|unit| (0.0, unit));
    left.chain(weakly).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn motions_are_those_of_rigid_bodies() {
        let frame = PartFrame { centre: [1.0, 0.0, 0.0], unit: 2.0 };
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
        let rows = [
            [1.0, 2.0, 0.0, 0.0, 0.5, 0.0],
            [2.0, 4.0, 0.0, 0.0, 1.0, 0.0],
            [0.0, 1.0, 1.0, 0.0, 0.0, 3.0],
            [0.0, 0.0, 1e-6, 0.0, 0.0, 0.0],
        ];
        let held = strongest(&rows, MOST);
        assert_eq!(held.len(), 3);
        let left = directions(&held, MOST, HELD);
        // Three free directions, and a weakly restrained one.
        assert_eq!(
            left.iter().map(|(strength, _)| *strength > 0.0).collect::<Vec<_>>(),
            [false, false, false, true]
        );
        for (i, (_, a)) in left.iter().enumerate() {
            for (j, b) in held[..2].iter().chain(left.iter().map(|(_, b)| b)).enumerate() {
                let one = if j == i + 2 { 1.0 } else { 0.0 };
                assert!((dot(a, b) - one).abs() < 1e-13, "{i} {j}");
            }
        }
    }
}
