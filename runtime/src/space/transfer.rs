//! Transfer of solutions between meshes of one forest: interpolation of the old function at the nodes of the new mesh. In a
//! cell that consists of several old leaves, a discontinuous function is projected.
//!
//! A cell of the new mesh lies in one old leaf or consists of several. In each of them, the nodes of the cell form a
//! tensor product of one list per axis, and interpolation uses sum factorisation:
//!
//! ```text
//! v(i, j, k) = Σ_abc φ_a(x_i) φ_b(y_j) φ_c(z_k) u_abc      x_i = (h ξ_i + o − o') / h' where that is in [0, 1]
//! ```
//!
//! Components of vector-valued functions are such products, too. Along open axes the unknowns are integrals: the weights
//! are those over the part of [x_i, x_{i+1}] in the old leaf, and the parts of all leaves add up. No factor depends on
//! the size of a cell. Projections in L2 of the reference cell are products, too, with the mass M of a line:
//!
//! ```text
//! v_i = Σ_leaves Σ_j (M⁻¹ C)_ij u_j        C_kj = ∫ φ_k φ_j(x) dξ  over the leaf, x = (ξ − o) / h
//! ```
//!
//! They keep the integral of the function on cells that are parallelepipeds.
//!
//! On distributed meshes each process sends the values of its old leaves to the processes that have new leaves there.
//! All processes know all leaves, so both sides derive the same lists.

use crate::mesh::Mesh;
use crate::mesh::refine::forest::DistributedForest;
use crate::mesh::refine::forest::{CellKey, KeyLayout, UNITS};
use crate::mesh::refined::Descendants;
use crate::processes::{Parcel, ProcessGroup};
use crate::space::Space;
use crate::space::discretisation::{Discretisation, Field};
use crate::support::parallel::*;
use kernels_gen::element::{Element, LineBasis, LinePoints, LineTable};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Interpolates the vector `u` on `from` to `to`. `None` if the meshes do not belong to one forest, or if the elements
/// differ. Constrained entries get the values of the function. Collective on distributed meshes.
pub fn transfer(from: &Discretisation, u: &[f64], to: &Discretisation) -> Option<Vec<f64>> {
    let (there, here) = (CellLeaves::of(&from.mesh)?, CellLeaves::of(&to.mesh)?);
    let coarse = |mesh: &Mesh| mesh.refined_from().map(|refined| Arc::clone(&refined.coarse));
    let same = coarse(&from.mesh)
        .zip(coarse(&to.mesh))
        .is_some_and(|(a, b)| Arc::ptr_eq(&a, &b) || a == b);
    if !same || from.fields.len() != to.fields.len() {
        return None;
    }
    let alike = |field: &Field| (field.space.element(), field.space.components());
    if from.fields.iter().zip(&to.fields).any(|(old, new)| alike(old) != alike(new)) {
        return None;
    }
    let parts = dealt(&from.mesh).zip(dealt(&to.mesh));
    if from.mesh.cut().is_some() || to.mesh.cut().is_some() {
        let own = to.mesh.cut()?.group();
        let (old, new) = parts?;
        let beyond = LeafValues::new(&**own, [&old, &new], from, u);
        return Some(beyond.to(own, there, (to, &here)));
    }
    let mut all = Vec::with_capacity(to.n_dofs());
    for (number, (old, new)) in from.fields.iter().zip(&to.fields).enumerate() {
        let (space, values) = old.space.resolved(&u[from.dofs_of(number)]);
        let read = |cell: usize, node: usize, c: usize| space.seen(cell, node, c, &values);
        all.extend(field(&there, &read, (&here, &new.space)).0);
    }
    Some(all)
}

/// Returns the distributed forest of a mesh part, if it has one.
fn dealt(mesh: &Mesh) -> Option<Arc<DistributedForest>> {
    let (by, _) = mesh.cut()?.dealer()?;
    Arc::clone(by).as_any().downcast().ok()
}

/// Calls `tell` for each pair of leaves of two forests of which one contains the other.
fn along_both(layout: KeyLayout, [a, b]: [&[CellKey]; 2], mut tell: impl FnMut(usize, usize)) {
    let (mut i, mut j) = (0, 0);
    while let (Some(&own), Some(&other)) = (a.get(i), b.get(j)) {
        tell(i, j);
        let in_own = |key: Option<&CellKey>| key.is_some_and(|&key| layout.contains(own, key));
        let in_other = |key: Option<&CellKey>| key.is_some_and(|&key| layout.contains(other, key));
        match own.level().cmp(&other.level()) {
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
            std::cmp::Ordering::Less => {
                j += 1;
                i += usize::from(!in_own(b.get(j)));
            }
            std::cmp::Ordering::Greater => {
                i += 1;
                j += usize::from(!in_other(a.get(i)));
            }
        }
    }
}

/// Values of the cells of this part, and of old leaves of other processes that new leaves of this process intersect.
struct LeafValues {
    /// The keys of those leaves.
    keys: Vec<CellKey>,
    /// All values of each cell, those of the part first: `[cell][field][node][component]`.
    rows: Vec<f64>,
    /// The start of each field in a row, and the length of a row.
    starts: Vec<usize>,
    each: usize,
}

impl LeafValues {
    fn new(
        group: &dyn ProcessGroup,
        [old, new]: [&DistributedForest; 2],
        from: &Discretisation,
        u: &[f64],
    ) -> Self {
        let (mut starts, mut each) = (Vec::new(), 0);
        for field in &from.fields {
            starts.push(each);
            each += field.space.nodes_per_cell() * field.space.components();
        }
        let cells = from.mesh.n_cells();
        let mut rows = vec![0.0; cells * each];
        for (number, field) in from.fields.iter().enumerate() {
            let (space, values) = field.space.resolved(&u[from.dofs_of(number)]);
            let (components, start) = (space.components(), starts[number]);
            for (cell, row) in rows.chunks_exact_mut(each.max(1)).enumerate() {
                let into = row[start..].chunks_exact_mut(components).take(space.nodes_per_cell());
                for (node, into) in into.enumerate() {
                    (0..)
                        .zip(into)
                        .for_each(|(c, into)| *into = space.seen(cell, node, c, &values));
                }
            }
        }
        let rank = group.rank() as u32;
        // The old leaves to send to each process, and to receive from it.
        let mut lists_of: BTreeMap<u32, [Vec<u32>; 2]> = BTreeMap::new();
        let layout = old.forest().coarse().layout;
        along_both(layout, [old.forest().leaves(), new.forest().leaves()], |leaf, at| {
            let (has, wants) = (old.rank_of()[leaf], new.rank_of()[at]);
            if has == wants || has != rank && wants != rank {
                return;
            }
            let lists = lists_of.entry(if has == rank { wants } else { has }).or_default();
            let list = &mut lists[usize::from(has != rank)];
            if list.last() != Some(&(leaf as u32)) {
                list.push(leaf as u32);
            }
        });
        let mut cell_of = vec![u32::MAX; old.forest().n_leaves()];
        let numbers = from.mesh.leaves().unwrap_or_default();
        (0..).zip(&*numbers).for_each(|(cell, &leaf)| cell_of[leaf as usize] = cell);
        let parcel = |(&with, [sent, received]): (&u32, &[Vec<u32>; 2])| {
            let row = |&leaf: &u32| &rows[cell_of[leaf as usize] as usize * each..][..each];
            let sent = sent.iter().flat_map(row).copied().collect();
            Parcel { with: with as usize, sent, received: vec![0.0; received.len() * each] }
        };
        let mut parcels: Vec<Parcel> = lists_of.iter().map(parcel).collect();
        group.exchange(&mut parcels, &mut || {});
        let mut keys = Vec::new();
        for ([_, received], parcel) in lists_of.values().zip(&parcels) {
            keys.extend(received.iter().map(|&leaf| old.forest().leaves()[leaf as usize]));
            rows.extend_from_slice(&parcel.received);
        }
        Self { keys, rows, starts, each }
    }

    /// Returns the new vector of this part; nodes that only cells of other processes know get their values.
    fn to(
        &self,
        group: &Arc<dyn ProcessGroup>,
        there: CellLeaves<'_>,
        (to, here): (&Discretisation, &CellLeaves<'_>),
    ) -> Vec<f64> {
        let keys: Vec<CellKey> = there.keys.iter().chain(&self.keys).copied().collect();
        let mut sorted: Vec<u32> = (0..keys.len() as u32).collect();
        sorted.sort_unstable_by_key(|&cell| keys[cell as usize]);
        let there = CellLeaves { keys: &keys, sorted, ..there };
        let mut all = Vec::with_capacity(to.n_dofs());
        for (field, &start) in to.fields.iter().zip(&self.starts) {
            let (space, components) = (&*field.space, field.space.components());
            let read = |cell: usize, node: usize, c: usize| {
                self.rows[cell * self.each + start + node * components + c]
            };
            let (mut values, known) = self::field(&there, &read, (here, space));
            synchronise(group, space, &known, &mut values);
            all.extend(values);
        }
        all
    }
}

/// Sets shared nodes to the value of the smallest rank that knows one.
fn synchronise(group: &Arc<dyn ProcessGroup>, space: &Space, known: &[bool], values: &mut [f64]) {
    let (sharing, rank) = (space.sharing(group), group.rank() as f64);
    let mut rank_of: Vec<f64> =
        known.iter().map(|known| if *known { rank } else { f64::INFINITY }).collect();
    sharing.least(&mut rank_of);
    let components = space.components();
    for c in 0..components {
        let own =
            |node: usize| if rank_of[node] == rank { values[node * components + c] } else { 0.0 };
        let mut column: Vec<f64> = (0..space.n_nodes()).map(own).collect();
        sharing.sum(&mut column);
        (0..).zip(column).for_each(|(node, value): (usize, f64)| {
            values[node * components + c] = value;
        });
    }
}

/// The leaves of the cells of a mesh.
struct CellLeaves<'a> {
    layout: KeyLayout,
    keys: &'a [CellKey],
    /// The cells in leaf order.
    sorted: Vec<u32>,
    dim: usize,
}

impl<'a> CellLeaves<'a> {
    fn of(mesh: &'a Mesh) -> Option<Self> {
        let Descendants::Forest { layout, keys, leaves } = &mesh.refined_from()?.cells else {
            return None;
        };
        let mut sorted: Vec<u32> = (0..leaves.len() as u32).collect();
        match leaves.iter().max() {
            // All leaves of a forest, or some of them.
            Some(&last) if last as usize + 1 == leaves.len() => {
                (0..).zip(leaves).for_each(|(cell, &leaf)| sorted[leaf as usize] = cell);
            }
            _ => sorted.sort_unstable_by_key(|&cell| leaves[cell as usize]),
        }
        Some(Self { layout: *layout, keys, sorted, dim: mesh.dim() })
    }

    /// Returns the cells that contain a cell of another mesh or that it contains.
    fn meeting(&self, key: CellKey) -> &[u32] {
        let own = |cell: &u32| self.keys[*cell as usize];
        // Ancestors precede their descendants.
        let end = self.sorted.partition_point(|cell| !self.layout.is_behind(own(cell), key));
        let start = self.sorted.partition_point(|cell| own(cell) < key);
        match start < end && self.layout.contains(key, own(&self.sorted[start])) {
            true => &self.sorted[start..end],
            false => &self.sorted[start.saturating_sub(1)..start],
        }
    }
}

impl Space {
    /// Returns a value of a cell, with the sign that the cell sees.
    fn seen(&self, cell: usize, node: usize, c: usize, values: &[f64]) -> f64 {
        let value = values[self.cell_nodes(cell)[node] as usize * self.components() + c];
        if self.cell_signs(cell).get(node) == Some(&true) { -value } else { value }
    }
}

/// Returns the values of a field at the nodes of the new space, from its old values per cell; and for each node whether
/// its value is known: it must not hang in some cell.
fn field(
    there: &CellLeaves<'_>,
    read: &(dyn Fn(usize, usize, usize) -> f64 + Sync),
    (here, new): (&CellLeaves<'_>, &Space),
) -> (Vec<f64>, Vec<bool>) {
    let (components, mut known) = (new.components(), vec![false; new.n_nodes()]);
    let Some(products) = TensorProduct::of(new.element()) else {
        return (vec![0.0; new.n_dofs()], known);
    };
    let per_cell = new.nodes_per_cell();
    // Integrals and projections are sums over the old leaves; values have one.
    let adds = new.element().whitney().is_some() || !new.element().is_continuous();
    let start = if adds { 0.0 } else { f64::NAN };
    let mut own = vec![start; here.keys.len() * per_cell * components];
    let cells = own.par_chunks_mut(per_cell * components).zip(here.keys).with_min_len(64);
    cells.each(|(into, &key)| {
        for &cell in there.meeting(key) {
            let (cell, other) = (cell as usize, there.keys[cell as usize]);
            if other == key {
                for (node, into) in into.chunks_exact_mut(components).enumerate() {
                    (0..).zip(into).for_each(|(c, into)| *into = read(cell, node, c));
                }
                continue;
            }
            for product in &products {
                let read = |node: usize, c: usize| read(cell, product.first + node, c);
                let axes = product.axes(here, key, other);
                let into = &mut into[product.first * components..];
                let adds = product.adds(key.level() < other.level());
                product.put((&axes[..here.dim], adds), components, &read, into);
            }
        }
    });
    let mut all = vec![0.0; new.n_dofs()];
    let hangs = new.hanging_nodes();
    for (cell, own) in own.chunks_exact(per_cell * components).enumerate() {
        let signs = new.cell_signs(cell);
        for (local, &node) in new.cell_nodes(cell).iter().enumerate() {
            if hangs.as_ref().is_none_or(|hangs| !hangs(cell, local)) {
                let factor = if signs.get(local) == Some(&true) { -1.0 } else { 1.0 };
                let row = own[local * components..][..components].iter();
                let into = &mut all[node as usize * components..][..components];
                into.iter_mut().zip(row).for_each(|(into, value)| *into = factor * value);
                known[node as usize] = true;
            }
        }
    }
    (all, known)
}

/// The functions of a cell along an axis that another cell determines, with the weights of the functions there.
type AxisWeights = Vec<(usize, Vec<f64>)>;

/// The place of a cell along an axis of another one: x = scale · ξ + shift.
#[derive(Clone, Copy)]
struct AxisPlace {
    scale: f64,
    shift: f64,
    /// True if the upper end of the other cell belongs to it: common ends of old leaves belong to one of them.
    is_closed: bool,
}

/// Returns the weights of the projection of a part of a cell, all nodes of the part in all nodes of the cell.
fn projection(basis: LineBasis, AxisPlace { scale, shift, .. }: AxisPlace) -> AxisWeights {
    let gauss = LinePoints::Gauss(basis.count());
    let (points, weights) = (gauss.points(), gauss.weights());
    // In the Lagrange polynomials of Gauss points, M is diagonal.
    let places: Vec<f64> = points.iter().map(|x| (x - shift) / scale).collect();
    let (there, here) = (LineTable::at(gauss, &places), basis.table(gauss));
    let back = LineTable::at(gauss, &basis.points().points());
    let count = 0..basis.count();
    let entry = |q: usize, j: usize| -> f64 {
        let terms = count.clone().map(|r| weights[r] * there.value(r, q) * here.value(r, j));
        terms.sum::<f64>() / (scale * weights[q])
    };
    let row = |i: usize| {
        let of = |j: usize| count.clone().map(|q| back.value(i, q) * entry(q, j)).sum();
        (i, count.clone().map(of).collect())
    };
    count.clone().map(row).collect()
}

/// Returns the weights of the nodes ξ with x in [0, 1], or of the intervals between nodes that meet it.
fn axis(basis: LineBasis, place: AxisPlace) -> AxisWeights {
    let AxisPlace { scale, shift, is_closed } = place;
    let points: Vec<f64> = basis.points().points().iter().map(|xi| scale * xi + shift).collect();
    if basis.is_closed() {
        let is_inside = |x: f64| (0.0..=1.0).contains(&x) && (is_closed || x < 1.0);
        let inside = (0..points.len()).filter(|&i| is_inside(points[i]));
        let row = |i: usize| {
            let table = basis.table_at(&points[i..=i]);
            (i, (0..basis.count()).map(|j| table.value(0, j)).collect())
        };
        return inside.map(row).collect();
    }
    let row = |i: usize| {
        let ends = [points[i], points[i + 1]].map(|x| x.clamp(0.0, 1.0));
        if ends[1] - ends[0] < 1e-12 {
            return None;
        }
        // ∫ of e_j = −Σ_{l ≤ j} ℓ_l between the ends.
        let table = LineTable::at(basis.points(), &ends);
        let mut sum = 0.0;
        let weights = (0..basis.count()).map(|j| {
            sum -= table.value(1, j) - table.value(0, j);
            sum
        });
        Some((i, weights.collect()))
    };
    (0..basis.count()).filter_map(row).collect()
}

/// Transfer from several old leaves to the cell that consists of them.
#[derive(Clone, Copy, PartialEq)]
enum PartSum {
    /// Each node takes the value of one leaf.
    Nodes,
    /// Integrals of leaves add up.
    Integrals,
    /// Projections of the functions of leaves add up.
    Projections,
}

/// Functions of an element, or of a component of a vector-valued one, as products of functions along the axes.
struct TensorProduct {
    /// Its first node, and the functions of each axis.
    first: usize,
    lines: [LineBasis; 3],
    /// The transfer from several old leaves.
    of_parts: PartSum,
    /// Weights of the lower and the upper child in the parent, of each axis.
    children: [[AxisWeights; 2]; 3],
    /// Weights of the parent in its lower and its upper child.
    parents: [[AxisWeights; 2]; 3],
}

impl TensorProduct {
    /// Returns the products of an element, if it has any.
    fn of(element: Element) -> Option<Vec<Self>> {
        let Some(whitney) = element.whitney() else {
            let of_parts = match element.is_continuous() {
                true => PartSum::Nodes,
                false => PartSum::Projections,
            };
            return Some(vec![Self::new(0, element.lines()?, of_parts)]);
        };
        let component = |a: usize| {
            let lines = Element::Component(whitney, a).lines()?;
            Some(Self::new(whitney.first(a), lines, PartSum::Integrals))
        };
        (0..whitney.cell().dim()).map(component).collect()
    }

    fn new(first: usize, lines: [LineBasis; 3], of_parts: PartSum) -> Self {
        let children = lines.map(|line| {
            [0.0, 0.5].map(|shift| axis(line, AxisPlace { scale: 0.5, shift, is_closed: true }))
        });
        let has_integrals = of_parts == PartSum::Integrals;
        let parents = lines.map(|line| {
            [0.0, -1.0].map(|shift| {
                let is_closed = !has_integrals || shift < 0.0;
                let place = AxisPlace { scale: 2.0, shift, is_closed };
                match of_parts {
                    PartSum::Projections => projection(line, place),
                    _ => axis(line, place),
                }
            })
        });
        Self { first, lines, of_parts, children, parents }
    }

    /// Returns whether the values of old cells add up, of parts or of one cell.
    fn adds(&self, are_parts: bool) -> bool {
        match self.of_parts {
            PartSum::Nodes => false,
            PartSum::Integrals => true,
            PartSum::Projections => are_parts,
        }
    }

    /// Returns for each axis the functions of a cell that another one determines.
    fn axes(
        &self,
        here: &CellLeaves<'_>,
        key: CellKey,
        other: CellKey,
    ) -> [Cow<'_, [(usize, Vec<f64>)]>; 3] {
        let (own, theirs) = (here.layout.corner(key), here.layout.corner(other));
        let (size, whole) = (UNITS >> key.level(), UNITS >> other.level());
        [0, 1, 2].map(|axis| match (key.level(), other.level()) {
            (level, above) if level == above + 1 => {
                Cow::from(&self.children[axis][usize::from(own[axis] > theirs[axis])])
            }
            (level, below) if level + 1 == below => {
                Cow::from(&self.parents[axis][usize::from(own[axis] < theirs[axis])])
            }
            _ => {
                let shift = f64::from(own[axis]) - f64::from(theirs[axis]);
                let ends = [own[axis] + size, theirs[axis] + whole];
                let (size, whole) = (f64::from(size), f64::from(whole));
                let has_integrals = self.of_parts == PartSum::Integrals;
                let is_closed = !has_integrals || size <= whole || ends[0] == ends[1];
                let place = AxisPlace { scale: size / whole, shift: shift / whole, is_closed };
                let is_projected = self.of_parts == PartSum::Projections && size > whole;
                Cow::from(match is_projected {
                    true => projection(self.lines[axis], place),
                    false => self::axis(self.lines[axis], place),
                })
            }
        })
    }

    /// Interpolates the functions that another cell determines by sum factorisation; those of a cell are lexicographic, x
    /// fastest.
    fn put(
        &self,
        (axes, adds): (&[Cow<'_, [(usize, Vec<f64>)]>], bool),
        components: usize,
        read: &dyn Fn(usize, usize) -> f64,
        into: &mut [f64],
    ) {
        let extents: Vec<usize> =
            self.lines[..axes.len()].iter().map(|line| line.count()).collect();
        for c in 0..components {
            let mut all: Vec<f64> =
                (0..extents.iter().product()).map(|node| read(node, c)).collect();
            // Layout: [remaining axes …][processed axes], initially with the first axis fastest.
            for (axis, &n) in axes.iter().zip(&extents) {
                let mut next = Vec::with_capacity(all.len() / n * axis.len());
                for (_, row) in &**axis {
                    for line in all.chunks_exact(n) {
                        next.push(row.iter().zip(line).map(|(a, u)| a * u).sum());
                    }
                }
                // The next axis is fastest, and this one slowest.
                all = next;
            }
            // After all axes the first one is fastest again.
            for (number, value) in all.into_iter().enumerate() {
                let (mut rest, mut node, mut stride) = (number, 0, 1);
                for (axis, n) in axes.iter().zip(&extents) {
                    node += stride * axis[rest % axis.len()].0;
                    rest /= axis.len();
                    stride *= n;
                }
                let into = &mut into[node * components + c];
                *into = if adds { *into + value } else { value };
            }
        }
    }
}
