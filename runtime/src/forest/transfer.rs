//! Solutions from one mesh of a forest to another: at each node of the new mesh the value that the old function has there.
//!
//! A cell of the new mesh lies in one leaf of the old or is made of several. For each that it meets, the places of its nodes
//! in that leaf are a product of one list an axis, so that values go axis by axis:
//!
//! ```text
//! v(i, j, k) = Σ_abc φ_a(x_i) φ_b(y_j) φ_c(z_k) u_abc      x_i = (h ξ_i + o − o') / h' where that is in [0, 1]
//! ```

use super::key::{Key, Layout, UNITS};
use crate::discretisation::{Discretisation, Field};
use crate::mesh::Mesh;
use crate::mesh::refined::Descendants;
use crate::parallel::*;
use crate::space::Space;
use kernels_gen::element::{LinePoints, LineTable};
use std::borrow::Cow;
use std::sync::Arc;

/// The unknowns on `to` of the function with the unknowns `u` on `from`; none where the meshes are not of one forest, or the
/// fields of other elements. Where conditions hold, they are the function's own values.
pub fn transfer(from: &Discretisation, u: &[f64], to: &Discretisation) -> Option<Vec<f64>> {
    let (there, here) = (Leaves::of(&from.mesh)?, Leaves::of(&to.mesh)?);
    let coarse = |mesh: &Mesh| mesh.refined_from().map(|refined| Arc::clone(&refined.coarse));
    let same = coarse(&from.mesh)
        .zip(coarse(&to.mesh))
        .is_some_and(|(a, b)| Arc::ptr_eq(&a, &b) || a == b);
    if !same || from.fields.len() != to.fields.len() {
        return None;
    }
    let mut all = Vec::with_capacity(to.n_dofs());
    for (number, (old, new)) in from.fields.iter().zip(&to.fields).enumerate() {
        let alike = |field: &Field| (field.space.element(), field.space.components());
        if alike(old) != alike(new) {
            return None;
        }
        let (space, values) = old.space.resolved(&u[from.dofs_of(number)]);
        all.extend(field((&there, &space, &values), (&here, &new.space)));
    }
    Some(all)
}

/// The leaves that the cells of a mesh are.
struct Leaves<'a> {
    layout: Layout,
    keys: &'a [Key],
    /// The cells along the leaves.
    sorted: Vec<u32>,
    dim: usize,
}

impl<'a> Leaves<'a> {
    fn of(mesh: &'a Mesh) -> Option<Self> {
        let Descendants::Forest { layout, keys, leaves } = &mesh.refined_from()?.cells else {
            return None;
        };
        let mut sorted = vec![0; leaves.len()];
        (0..).zip(leaves).for_each(|(cell, &leaf)| sorted[leaf as usize] = cell);
        Some(Self { layout: *layout, keys, sorted, dim: mesh.dim() })
    }

    /// The cells that a cell of another mesh is in or consists of.
    fn meeting(&self, key: Key) -> &[u32] {
        let own = |cell: &u32| self.keys[*cell as usize];
        // An ancestor comes before its descendants.
        let end = self.sorted.partition_point(|cell| !self.layout.is_behind(own(cell), key));
        let start = self.sorted.partition_point(|cell| own(cell) < key);
        match start < end && self.layout.contains(key, own(&self.sorted[start])) {
            true => &self.sorted[start..end],
            false => &self.sorted[start.saturating_sub(1)..start],
        }
    }
}

/// The values of a field.
fn field(
    (there, old, values): (&Leaves<'_>, &Space, &[f64]),
    (here, new): (&Leaves<'_>, &Space),
) -> Vec<f64> {
    let components = new.components();
    let Some(line) = new.element().line() else { return vec![0.0; new.n_dofs()] };
    let (per_cell, tables) = (new.nodes_per_cell(), Tables::new(line));
    let mut own = vec![f64::NAN; here.keys.len() * per_cell * components];
    let cells = own.par_chunks_mut(per_cell * components).zip(here.keys).with_min_len(64);
    cells.each(|(into, &key)| {
        for &cell in there.meeting(key) {
            let (nodes, other) = (old.cell_nodes(cell as usize), there.keys[cell as usize]);
            if other == key {
                for (into, &node) in into.chunks_exact_mut(components).zip(nodes) {
                    let first = node as usize * components;
                    into.copy_from_slice(&values[first..first + components]);
                }
                continue;
            }
            let read = |node: usize, c: usize| values[nodes[node] as usize * components + c];
            let axes = tables.axes(here, key, other);
            put(&axes[..here.dim], line.count(), components, &read, into);
        }
    });
    let mut all = vec![0.0; new.n_dofs()];
    let hangs = new.hanging_nodes();
    for (cell, own) in own.chunks_exact(per_cell * components).enumerate() {
        for (local, &node) in new.cell_nodes(cell).iter().enumerate() {
            if hangs.as_ref().is_none_or(|hangs| !hangs(cell, local)) {
                let row = &own[local * components..][..components];
                all[node as usize * components..][..components].copy_from_slice(row);
            }
        }
    }
    all
}

/// The nodes of a cell along an axis that lie in another with the functions there.
type Axis = Vec<(usize, Vec<f64>)>;

/// Where h ξ + o lies in [0, 1].
fn axis(line: LinePoints, scale: f64, shift: f64) -> Axis {
    let points: Vec<f64> = line.points().iter().map(|xi| scale * xi + shift).collect();
    let inside = (0..points.len()).filter(|&i| (0.0..=1.0).contains(&points[i]));
    let row = |i: usize| {
        let table = LineTable::at(line, &points[i..=i]);
        (i, (0..line.count()).map(|j| table.value(0, j)).collect())
    };
    inside.map(row).collect()
}

/// What is the same for many cells.
struct Tables {
    line: LinePoints,
    /// Of the lower and the upper child in its parent.
    children: [Axis; 2],
    /// Of a parent in its lower and its upper child.
    parents: [Axis; 2],
}

impl Tables {
    fn new(line: LinePoints) -> Self {
        let children = [0.0, 0.5].map(|shift| axis(line, 0.5, shift));
        let parents = [0.0, -1.0].map(|shift| axis(line, 2.0, shift));
        Self { line, children, parents }
    }

    /// For each axis, the nodes of a cell that lie in another.
    fn axes(&self, here: &Leaves<'_>, key: Key, other: Key) -> [Cow<'_, [(usize, Vec<f64>)]>; 3] {
        let (own, theirs) = (here.layout.corner(key), here.layout.corner(other));
        let (size, whole) = (UNITS >> key.level(), UNITS >> other.level());
        [0, 1, 2].map(|axis| match (key.level(), other.level()) {
            (level, above) if level == above + 1 => {
                Cow::from(&self.children[usize::from(own[axis] > theirs[axis])])
            }
            (level, below) if level + 1 == below => {
                Cow::from(&self.parents[usize::from(own[axis] < theirs[axis])])
            }
            _ => {
                let shift = f64::from(own[axis]) - f64::from(theirs[axis]);
                let whole = f64::from(whole);
                Cow::from(self::axis(self.line, f64::from(size) / whole, shift / whole))
            }
        })
    }
}

/// The values at the nodes inside, axis by axis: nodes of a cell are lexicographic, x fastest.
fn put(
    axes: &[Cow<'_, [(usize, Vec<f64>)]>],
    n: usize,
    components: usize,
    read: &dyn Fn(usize, usize) -> f64,
    into: &mut [f64],
) {
    for c in 0..components {
        let mut all: Vec<f64> = (0..n.pow(axes.len() as u32)).map(|node| read(node, c)).collect();
        // What is done is behind: [axis to do … ][axes done], the first axis fastest at the start.
        for axis in axes {
            let rest = all.len() / n;
            let mut next = Vec::with_capacity(rest * axis.len());
            for (_, row) in &**axis {
                for line in all.chunks_exact(n) {
                    next.push(row.iter().zip(line).map(|(a, u)| a * u).sum());
                }
            }
            // Now the next axis is fastest, and this one slowest.
            all = next;
        }
        let mut value = all.iter();
        let mut at = vec![0; axes.len()];
        // The first axis is fastest again, once all have been done.
        let total: usize = axes.iter().map(|axis| axis.len()).product();
        for number in 0..total {
            let mut rest = number;
            for (place, axis) in at.iter_mut().zip(axes) {
                *place = axis[rest % axis.len()].0;
                rest /= axis.len();
            }
            let node = at.iter().rev().fold(0, |node, &i| node * n + i);
            if let Some(&value) = value.next() {
                into[node * components + c] = value;
            }
        }
    }
}
