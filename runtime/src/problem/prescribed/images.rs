//! Affine constraints between nodes on periodic sides that are rotated or antiperiodic (`NodeImages`), next to the
//! essential conditions at these nodes.
//!
//! The equations u_b − s R u_a = 0 of a class of nodes are brought into reduced echelon form. A pivot is a degree of
//! freedom without a condition. What is left without a pivot holds by the conditions at both nodes, or contradicts them.

use super::super::RunError;
use super::normals;
use crate::mesh::Facet;
use crate::space::constraint::Constraints;
use crate::space::constraint::affine::{AffineConstraint, AffineConstraints};
use crate::space::discretisation::{Discretisation, Field};
use crate::space::images::{NodeLink, turned, turned_back};
use fem_dsl::point::{PointForm, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Size of an entry that is a rounding error.
const ROUNDING: f64 = 1e-12;
/// Largest difference of two conditions that are the same, relative to the largest value.
const EQUAL: f64 = 1e-9;

/// Returns the normals of facets at nodes; those at the image of a node are turned with it.
///
/// # Errors
///
/// Facets whose normals cannot be computed.
pub(super) fn normals_at(
    on: &Discretisation,
    field: usize,
    facets: &[Facet],
    nodes: &[u32],
) -> Result<Vec<Vec<[f64; 3]>>, RunError> {
    let Field { space, images, .. } = &on.fields[field];
    let own = normals::at_nodes(&on.mesh, space, facets, nodes)?;
    let mut all = normals::of_all(&on.mesh, space, nodes, own);
    for class in images.iter().flat_map(|images| images.turns()) {
        let members = class.iter().filter_map(|(node, turn)| {
            nodes.binary_search(node).ok().map(|at| (at, turn, all[at].clone()))
        });
        let members: Vec<_> = members.collect();
        for &(at, turn, _) in &members {
            for (_, back, normals) in members.iter().filter(|(other, ..)| *other != at) {
                // To the frame of the first node of the class, and to that of this node.
                all[at]
                    .extend(normals.iter().map(|normal| turned(turn, &turned_back(back, normal))));
            }
        }
    }
    Ok(all)
}

/// Removes conditions on combinations of components, except those of one node in each class, from which the others
/// follow.
pub(super) fn release(field: &Field, own: &mut Constraints) {
    let Some(images) = field.images.as_ref().filter(|_| !own.oblique().is_empty()) else { return };
    let oblique: BTreeSet<u32> = own.oblique().iter().map(|condition| condition.node).collect();
    let mut released = BTreeSet::new();
    for class in images.classes() {
        let nodes: BTreeSet<u32> = class.iter().flat_map(|link| link.nodes).collect();
        released.extend(nodes.into_iter().filter(|node| oblique.contains(node)).skip(1));
    }
    own.release_oblique(|node| released.contains(&node));
}

/// Relates the images of a discretisation with conditions by affine constraints. Returns notes on conditions that
/// contradict them.
///
/// # Errors
///
/// Constraints that cannot be resolved.
pub fn relate(form: &PointForm, on: &mut Discretisation) -> Result<Vec<String>, RunError> {
    if on.fields.iter().all(|field| field.images.is_none()) {
        return Ok(Vec::new());
    }
    let (rows, notes) = rows(form, on);
    let conditions = on.conditions().map(|(dof, _)| dof);
    let place = |dof: usize| match on.unknown(dof) {
        Some((field, node, component)) => {
            format!("component {component} of `{}` at node {node}", form.fields[field].name)
        }
        None => format!("unknown {dof}"),
    };
    let closed = AffineConstraints::close(on.n_dofs(), &rows, conditions, place);
    on.affine = Arc::new(closed.map_err(|error| RunError::Setting(error.to_string()))?);
    Ok(notes)
}

/// Returns the affine constraints between all images one by one, and notes on conditions that contradict them.
pub fn rows(form: &PointForm, on: &Discretisation) -> (Vec<AffineConstraint>, Vec<String>) {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for (number, field) in on.fields.iter().enumerate() {
        let (Some(images), Some(of)) = (&field.images, form.fields.get(number)) else { continue };
        let start = on.dofs_of(number).start;
        let values: BTreeMap<usize, f64> = field.constraints.iter().collect();
        let size = values.values().fold(0.0f64, |most, value| most.max(value.abs()));
        let oblique: BTreeMap<u32, [[f64; 3]; 3]> =
            field.constraints.oblique().iter().map(|own| (own.node, own.normals)).collect();
        let dim = on.mesh.dim();
        let shape = of.shape;
        let matrix = |link: &NodeLink| images.matrix(link.map, shape, dim);
        let mut contradictions = 0usize;
        for class in images.classes() {
            let system = ClassEquations::new(class, shape, matrix, &oblique, &values);
            let (own, contradicts) = system.solved(EQUAL * size);
            contradictions += usize::from(contradicts);
            rows.extend(own.into_iter().map(|row| AffineConstraint {
                unknown: start + row.unknown,
                terms: row.terms.into_iter().map(|(dof, c)| (start + dof, c)).collect(),
                value: row.value,
            }));
        }
        if contradictions > 0 {
            notes.push(format!(
                "conditions on `{}` differ on two periodic sides, rotated or with the factor, in {contradictions} \
                 node{}: those of each side hold there",
                of.name,
                if contradictions == 1 { "" } else { "s" }
            ));
        }
    }
    (rows, notes)
}

/// The equations of a class, in the degrees of freedom of its nodes.
struct ClassEquations<'a> {
    /// The degrees of freedom of the columns, numbered in the field.
    dofs: Vec<usize>,
    components: usize,
    rows: Vec<Vec<f64>>,
    oblique: &'a BTreeMap<u32, [[f64; 3]; 3]>,
    values: &'a BTreeMap<usize, f64>,
}

impl<'a> ClassEquations<'a> {
    fn new(
        class: &[NodeLink],
        shape: Shape,
        matrix: impl Fn(&NodeLink) -> Vec<f64>,
        oblique: &'a BTreeMap<u32, [[f64; 3]; 3]>,
        values: &'a BTreeMap<usize, f64>,
    ) -> Self {
        let n = shape.components();
        let nodes: BTreeSet<u32> = class.iter().flat_map(|link| link.nodes).collect();
        let nodes: Vec<u32> = nodes.into_iter().collect();
        let dofs: Vec<usize> =
            nodes.iter().flat_map(|&node| (0..n).map(move |c| node as usize * n + c)).collect();
        let column = |node: u32| n * nodes.partition_point(|&other| other < node);
        let mut rows = Vec::with_capacity(class.len() * n);
        for link in class {
            let (matrix, [from, to]) = (matrix(link), link.nodes.map(column));
            for i in 0..n {
                let mut row = vec![0.0; dofs.len()];
                row[to + i] += 1.0;
                (0..n).for_each(|j| row[from + j] -= matrix[i * n + j]);
                rows.push(row);
            }
        }
        Self { dofs, components: n, rows, oblique, values }
    }

    /// Returns whether a column may depend on others.
    fn may_depend(&self, column: usize) -> bool {
        let dof = self.dofs[column];
        let node = (dof / self.components) as u32;
        !self.values.contains_key(&dof) && !self.oblique.contains_key(&node)
    }

    /// Returns the constraints, and whether some equation contradicts the conditions.
    fn solved(mut self, equal: f64) -> (Vec<AffineConstraint>, bool) {
        let (mut pivots, mut done) = (Vec::new(), 0);
        loop {
            let candidates = (done..self.rows.len()).flat_map(|row| {
                let columns = (0..self.dofs.len()).filter(|&column| self.may_depend(column));
                columns.map(move |column| (row, column))
            });
            let size = |&(row, column): &(usize, usize)| self.rows[row][column].abs();
            let largest = candidates.max_by(|a, b| size(a).total_cmp(&size(b)));
            let Some((row, column)) = largest.filter(|at| size(at) > ROUNDING) else { break };
            self.rows.swap(done, row);
            let pivot = self.rows[done][column];
            self.rows[done].iter_mut().for_each(|entry| *entry /= pivot);
            let own = self.rows[done].clone();
            for (_, other) in self.rows.iter_mut().enumerate().filter(|(other, _)| *other != done) {
                let factor = other[column];
                if factor != 0.0 {
                    other.iter_mut().zip(&own).for_each(|(entry, own)| *entry -= factor * own);
                    other[column] = 0.0;
                }
            }
            pivots.push(column);
            done += 1;
        }
        let contradicts = self.rows[done..].iter().any(|row| self.contradicts(row, equal));
        let rows = pivots.iter().zip(&self.rows).map(|(&pivot, row)| {
            let others = row.iter().enumerate().filter(|(column, _)| *column != pivot);
            let terms = others.filter(|(_, entry)| entry.abs() > ROUNDING);
            AffineConstraint {
                unknown: self.dofs[pivot],
                terms: terms.map(|(column, entry)| (self.dofs[column], -entry)).collect(),
                value: 0.0,
            }
        });
        (rows.collect(), contradicts)
    }

    /// Returns whether an equation without a pivot does not follow from the conditions.
    fn contradicts(&self, row: &[f64], equal: f64) -> bool {
        let (mut sum, mut along) = (0.0, BTreeMap::<u32, [f64; 3]>::new());
        for (&dof, &entry) in self.dofs.iter().zip(row) {
            let node = (dof / self.components) as u32;
            match self.values.get(&dof) {
                Some(value) => sum += entry * value,
                None => along.entry(node).or_default()[dof % self.components] += entry,
            }
        }
        let leaves = |(node, w): (&u32, &[f64; 3])| {
            let Some(normals) = self.oblique.get(node) else { return false };
            (0..3).any(|i| {
                let inside: f64 = (0..3).map(|j| normals[i][j] * w[j]).sum();
                (w[i] - inside).abs() > EQUAL
            })
        };
        let is_alone = along.iter().any(leaves);
        let is_oblique = along.values().any(|w| w.iter().any(|entry| entry.abs() > ROUNDING));
        is_alone || !is_oblique && sum.abs() > equal
    }
}
