//! Essential conditions with different values at common nodes: the last one applies, and a note is printed.
//!
//! Two conditions are compared at the nodes of one that lie on facets of the other, except on facets with both
//! conditions. For example, a condition on part of the boundary overrides an earlier one on all of it; the two are
//! compared at the edge of that part only. A normal component and a Cartesian one are compared on common facets as
//! well. Values differ if they do so by more than [`ROUNDING`] times the largest value of both. A condition is also
//! compared with itself at nodes that lie on two periodic sides.

use super::{ConditionSupport, normals};
use crate::mesh::{Facet, Mesh};
use crate::problem::{RunError, shown};
use crate::processes::Reduction;
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::Trace;
use kernels_gen::element::{ElementError, Lagrange, tabulate};

/// Relative tolerance of equal values: files have coordinates of seven digits.
const ROUNDING: f64 = 1e-6;

/// The same for normal components: nodal normals of curved sides are averages over facets.
const OF_NORMALS: f64 = 0.02;

/// Minimum distance between the images of a node on two periodic sides, relative to the mesh size.
const APART: f64 = 1e-6;

/// A note on two conditions, by index; the indices are equal for periodic sides.
pub type ConditionConflict = ((usize, usize), String);

/// A condition with its values, `[node][component]`.
struct EvaluatedCondition<'h> {
    held: &'h ConditionSupport,
    values: Vec<f64>,
}

impl EvaluatedCondition<'_> {
    fn row(&self, place: usize) -> &[f64] {
        let count = self.values.len() / self.held.nodes.len().max(1);
        &self.values[place * count..][..count]
    }

    /// Returns the value of a component, if it is given.
    fn component(&self, place: usize, component: usize) -> Option<f64> {
        match self.held.trace {
            _ if self.held.functionals.is_some() => (component == 0).then(|| self.row(place)[0]),
            Trace::Whole => self.row(place).get(component).copied(),
            Trace::Component(own) => (own == component).then(|| self.row(place)[0]),
            Trace::Normal | Trace::Tangential => None,
        }
    }

    /// Returns the value along a unit normal.
    fn along(&self, place: usize, normal: &[f64; 3]) -> f64 {
        match self.row(place) {
            [value] => *value,
            several => several.iter().zip(normal).map(|(a, b)| a * b).sum(),
        }
    }
}

/// Returns notes on conditions that meet with different values; `values` is as for [`conditions`](super::conditions).
///
/// # Errors
///
/// Tags that the mesh lacks, an element without points, and errors of `values`.
pub fn meetings<E: From<RunError>>(
    on: &Discretisation,
    held: &[&ConditionSupport],
    mut values: impl FnMut(usize, &[[f64; 3]]) -> Result<Vec<f64>, E>,
) -> Result<Vec<ConditionConflict>, E> {
    let mut stated = Vec::with_capacity(held.len());
    for (index, held) in held.iter().enumerate() {
        let values = held.of_values(values(index, held.points())?);
        stated.push(EvaluatedCondition { held, values });
    }
    let mut notes = Vec::new();
    for (j, later) in stated.iter().enumerate() {
        for (i, earlier) in stated[..j].iter().enumerate() {
            if earlier.held.field == later.held.field {
                let found = meeting(on, earlier, later)?;
                notes.extend(found.map(|note| ((i, j), note)));
            }
        }
    }
    if on.mesh.is_periodic() {
        // Functionals of periodic images are those of one side.
        let nodal = stated.iter().enumerate().filter(|(_, own)| own.held.functionals.is_none());
        for (index, own) in nodal {
            let images = images(on, own.held)?;
            let places: Vec<[f64; 3]> = images.iter().map(|(_, place)| *place).collect();
            let there = values(index, &places)?;
            let note = beside_itself(on, own, &images, &there);
            notes.extend(note.map(|note| ((index, index), note)));
        }
    }
    Ok(notes)
}

/// Returns whether a condition is on the normal component at nodes.
fn is_normal(held: &ConditionSupport) -> bool {
    held.trace == Trace::Normal && held.functionals.is_none()
}

/// Returns the largest magnitude of some values over all processes.
fn size<'v>(mesh: &Mesh, values: impl Iterator<Item = &'v f64>) -> f64 {
    let mut largest = [values.fold(0.0f64, |all, value| all.max(value.abs()))];
    mesh.reduce_in_all(Reduction::Largest, &mut largest);
    largest[0]
}

fn meeting(
    on: &Discretisation,
    earlier: &EvaluatedCondition<'_>,
    later: &EvaluatedCondition<'_>,
) -> Result<Option<String>, RunError> {
    let (mesh, space) = (&on.mesh, &on.fields[later.held.field].space);
    let [first, second] = [&earlier.held.facets, &later.held.facets];
    // A normal component does not override a Cartesian one, nor vice versa.
    let is_normal = |own: &EvaluatedCondition<'_>| is_normal(own.held);
    let both = first == second && is_normal(earlier) != is_normal(later);
    let is_alone = |facet: &&Facet| both || second.binary_search(facet).is_err();
    let alone: Vec<Facet> = first.iter().filter(is_alone).copied().collect();
    let mut nodes = super::held_by_any(mesh, space, space.nodes_on(&alone));
    // Nodes of curves and points have no facet.
    let on_sides = super::held_by_any(mesh, space, space.nodes_on(first));
    let others = earlier.held.nodes.iter().filter(|node| on_sides.binary_search(node).is_err());
    nodes.extend(others);
    nodes.sort_unstable();
    nodes.dedup();
    let size = size(mesh, earlier.values.iter().chain(&later.values));
    let differs = |node: &u32| {
        let place = |own: &EvaluatedCondition<'_>| own.held.nodes.binary_search(node).ok();
        let (Some(a), Some(b)) = (place(earlier), place(later)) else { return false };
        differ(mesh, (earlier, a), (later, b), size)
    };
    let found: Vec<u32> = nodes.into_iter().filter(differs).collect();
    let at = |node: u32| {
        let place = later.held.nodes.binary_search(&node).unwrap_or(0);
        [later.held.places[place]]
    };
    let found = counted(on, space, &found, at);
    Ok(found.map(|(count, [place])| {
        let (own, other) = (later.held.place(), earlier.held.place());
        format!(
            "the conditions `{}` {other} and `{}` {own} meet with different values in {}, such as {}: the later \
             one, {own}, holds there",
            earlier.held.what(),
            later.held.what(),
            nodes_in_words(count),
            shown(&place),
        )
    }))
}

fn nodes_in_words(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

/// Returns whether two conditions give different values at a node, whose index in each of them is given.
fn differ(
    mesh: &Mesh,
    (a, at_a): (&EvaluatedCondition<'_>, usize),
    (b, at_b): (&EvaluatedCondition<'_>, usize),
    size: f64,
) -> bool {
    let of_normal = |own: &EvaluatedCondition<'_>| is_normal(own.held);
    let beyond = |a: f64, b: f64, part: f64| (a - b).abs() > part * size;
    let walls = |own: &EvaluatedCondition<'_>, at: usize| {
        normals::walls_at(mesh.order(), &own.held.normals[at])
    };
    match (of_normal(a), of_normal(b)) {
        (false, false) => {
            (0..3).any(|c| {
                let both = a.component(at_a, c).zip(b.component(at_b, c));
                both.is_some_and(|(a, b)| beyond(a, b, ROUNDING))
            }) || tensors_differ(a.row(at_a), b.row(at_b), |a, b| beyond(a, b, ROUNDING))
        }
        (true, true) => {
            let others = walls(b, at_b);
            walls(a, at_a).iter().any(|own| {
                let same =
                    others.iter().find(|other| normals::are_smooth(mesh.order(), own, other));
                same.is_some_and(|other| {
                    beyond(a.along(at_a, own), b.along(at_b, other), OF_NORMALS)
                })
            })
        }
        (normal, _) => {
            let ((wall, at), (fixed, at_fixed)) = match normal {
                true => ((a, at_a), (b, at_b)),
                false => ((b, at_b), (a, at_a)),
            };
            walls(wall, at).iter().any(|normal| {
                // The comparison needs all components along the normal.
                let given = (0..3)
                    .filter(|&c| normal[c].abs() > OF_NORMALS)
                    .map(|c| fixed.component(at_fixed, c).map(|value| value * normal[c]));
                let along: Option<f64> = given.sum();
                along.is_some_and(|along| beyond(along, wall.along(at, normal), OF_NORMALS))
            })
        }
    }
}

/// Returns whether tensor values differ beyond the first three components.
fn tensors_differ(a: &[f64], b: &[f64], beyond: impl Fn(f64, f64) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).skip(3).any(|(a, b)| beyond(*a, *b))
}

/// Returns the images of a condition's nodes on other periodic sides: the node's index in the condition, and the
/// coordinates of the image.
fn images(
    on: &Discretisation,
    held: &ConditionSupport,
) -> Result<Vec<(usize, [f64; 3])>, RunError> {
    let (mesh, space) = (&on.mesh, &on.fields[held.field].space);
    let element = space.nodal();
    let table = geometry_at_nodes(mesh, element)?;
    let far = APART * mesh.size();
    let mut images = Vec::new();
    for facet in &held.facets {
        let nodes = space.cell_nodes(facet.cell as usize);
        for &local in space.facet_nodes(usize::from(facet.local)) {
            let Ok(at) = held.nodes.binary_search(&nodes[local as usize]) else { continue };
            let place = mesh.place_of(facet.cell as usize, &table[local as usize]);
            let known = held.places[at];
            if (0..3).any(|axis| (place[axis] - known[axis]).abs() > far) {
                images.push((at, place));
            }
        }
    }
    Ok(images)
}

/// Tabulates the geometry basis at the nodes of an element, `[node][function]`.
fn geometry_at_nodes(mesh: &Mesh, element: Lagrange) -> Result<Vec<Vec<f64>>, ElementError> {
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order())?;
    let table = tabulate(geometry, &element.points());
    Ok(table.values.chunks(table.nodes).map(<[f64]>::to_vec).collect())
}

/// Returns a note if a condition has different values at the images of its nodes.
fn beside_itself(
    on: &Discretisation,
    own: &EvaluatedCondition<'_>,
    images: &[(usize, [f64; 3])],
    there: &[f64],
) -> Option<String> {
    let space = &on.fields[own.held.field].space;
    let size = size(&on.mesh, own.values.iter().chain(there));
    let count = there.len() / images.len().max(1);
    let mut found: Vec<(u32, [f64; 3])> = Vec::new();
    for ((at, place), row) in images.iter().zip(there.chunks(count.max(1))) {
        let differs = own.row(*at).iter().zip(row).any(|(a, b)| (a - b).abs() > ROUNDING * size);
        if differs {
            found.push((own.held.nodes[*at], *place));
        }
    }
    found.sort_by_key(|(node, _)| *node);
    found.dedup_by_key(|(node, _)| *node);
    let nodes: Vec<u32> = found.iter().map(|(node, _)| *node).collect();
    let at = |node: u32| {
        let own = &own.held;
        let taken = own.places[own.nodes.binary_search(&node).unwrap_or(0)];
        let other = found.iter().find(|(of, _)| *of == node).map_or(taken, |(_, place)| *place);
        [taken, other]
    };
    let (count, [taken, other]) = counted(on, space, &nodes, at)?;
    Some(format!(
        "the condition `{}` {} has different values on two periodic sides, in {}: that at {} holds, not that at {}",
        own.held.what(),
        own.held.place(),
        nodes_in_words(count),
        shown(&taken),
        shown(&other),
    ))
}

/// Returns the number of nodes over all processes, each counted once, and the coordinates of one of them; `None` if
/// there are none.
fn counted<const N: usize>(
    on: &Discretisation,
    space: &Space,
    nodes: &[u32],
    at: impl Fn(u32) -> [[f64; 3]; N],
) -> Option<(usize, [[f64; 3]; N])> {
    let mesh = &on.mesh;
    let sharing = mesh.cut().map(|cut| space.sharing(cut.group()));
    let own = |node: &&u32| !sharing.as_ref().is_some_and(|own| own.is_of_others(**node as usize));
    let mut count = [nodes.iter().filter(own).count() as f64];
    let first = nodes.iter().find(own).map(|&node| at(node));
    let rank = mesh.cut().map_or(0.0, |cut| cut.group().rank() as f64);
    let mut least = [first.map_or(f64::INFINITY, |_| rank)];
    mesh.sum_in_all(&mut count);
    mesh.reduce_in_all(Reduction::Least, &mut least);
    let shown = first.filter(|_| least[0] == rank).unwrap_or([[0.0; 3]; N]);
    let mut numbers = shown.concat();
    mesh.sum_in_all(&mut numbers);
    let place = |i: usize| std::array::from_fn(|c| numbers[3 * i + c]);
    (count[0] > 0.0).then(|| (count[0] as usize, std::array::from_fn(place)))
}
