//! Nodal normals of conditions u·n = g, from the facets of a tag.
//!
//! ```text
//! n_i ∥ Σ ∫ φ_i n  over the facets at node i that belong to one smooth surface
//! ```
//!
//! With these normals no flow passes through the wall: Σ_i u_i · ∫ φ_i n = 0 (Engelman, Sani and Gresho 1982). On
//! curved cells they are more accurate than the normal at the node. If φ_i has a zero integral (vertices of quadratic
//! triangles), the normal at the node is used. Facets at a node are separate walls if their normals differ by more than
//! an angle; the conditions of all walls apply. The angle is 40 degrees on straight cells, as in mesh generators for
//! triangulated surfaces. It is 20 degrees on curved cells, which bend within a facet.

use super::ConditionSupport;
use crate::mesh::measure::Gradients;
use crate::mesh::{Facet, Mesh};
use crate::processes::Reduction;
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::space::constraint::oblique::{NodeConditions, dot};
use fem_dsl::problem::Trace;
use kernels_gen::element::{ElementError, Lagrange, default_rule, tabulate};

/// Minimum angle between two walls in degrees: on straight and on curved cells.
const EDGE: [f64; 2] = [40.0, 20.0];

/// Minimum integral of a nodal basis function, relative to the mean, for a consistent normal.
const SHARE: f64 = 0.1;

/// Computes ∫ φ_i n over each facet, for the facet's nodes.
pub(super) fn at_nodes(
    mesh: &Mesh,
    space: &Space,
    facets: &[Facet],
    nodes: &[u32],
) -> Result<Vec<Vec<[f64; 3]>>, ElementError> {
    let (cell, element) = (mesh.cell(), space.nodal());
    let of_local: Vec<ReferenceFacet> = (0..cell.facets().len())
        .map(|local| ReferenceFacet::new(mesh, element, space.facet_nodes(local), local))
        .collect::<Result<_, _>>()?;
    let mut normals = vec![Vec::new(); nodes.len()];
    for &facet in facets {
        let own = &of_local[usize::from(facet.local)];
        let all = space.cell_nodes(facet.cell as usize);
        let at_points = own.area_vectors(mesh, facet);
        for (&local, weights) in
            space.facet_nodes(usize::from(facet.local)).iter().zip(&own.weights)
        {
            let Ok(at) = nodes.binary_search(&all[local as usize]) else { continue };
            let mut sum = [0.0; 3];
            for (weight, vector) in weights.iter().zip(&at_points) {
                (0..3).for_each(|c| sum[c] += weight * vector[c]);
            }
            normals[at].push(sum);
        }
    }
    Ok(normals)
}

/// Adds the contributions of other processes at interface nodes, in rank order on all processes.
pub(super) fn of_all(
    mesh: &Mesh,
    space: &Space,
    nodes: &[u32],
    mut own: Vec<Vec<[f64; 3]>>,
) -> Vec<Vec<[f64; 3]>> {
    let Some(cut) = mesh.cut() else { return own };
    let sharing = space.sharing(cut.group());
    let mut most = [own.iter().map(Vec::len).max().unwrap_or(0) as f64];
    mesh.reduce_in_all(Reduction::Largest, &mut most);
    let mut all: Vec<Vec<Vec<[f64; 3]>>> = vec![Vec::new(); nodes.len()];
    let mut numbers = vec![0.0; space.n_nodes()];
    // The k-th facet of each node, and a flag if it exists.
    for k in 0..most[0] as usize {
        let mut of_axes = Vec::with_capacity(4);
        for axis in 0..4 {
            for (&node, own) in nodes.iter().zip(&own) {
                let number = match axis {
                    3 => own.get(k).map(|_| 1.0),
                    axis => own.get(k).map(|normal| normal[axis]),
                };
                numbers[node as usize] = number.unwrap_or(0.0);
            }
            of_axes.push(sharing.all(&numbers));
        }
        for (at, (node, there)) in of_axes[3].iter().enumerate() {
            let Ok(place) = nodes.binary_search(&(*node as u32)) else { continue };
            let lists = &mut all[place];
            lists.resize(there.len(), Vec::new());
            for (rank, list) in lists.iter_mut().enumerate().filter(|(rank, _)| there[*rank] > 0.0)
            {
                list.push([0, 1, 2].map(|axis| of_axes[axis][at].1[rank]));
            }
        }
    }
    for (own, all) in own.iter_mut().zip(all).filter(|(_, all)| !all.is_empty()) {
        *own = all.concat();
    }
    own
}

/// A facet of the reference cell with its quadrature points.
struct ReferenceFacet {
    /// N, scaled by the facet's area relative to an axis-aligned facet.
    reference: [f64; 3],
    /// Geometry gradients at the points.
    gradients: Gradients,
    /// Weights of the points for each node of the facet.
    weights: Vec<Vec<f64>>,
}

impl ReferenceFacet {
    /// Tabulates the points of a rule, then the nodes, which serve basis functions without an integral.
    fn new(
        mesh: &Mesh,
        element: Lagrange,
        nodes: &[u32],
        local: usize,
    ) -> Result<Self, ElementError> {
        let (cell, order) = (mesh.cell(), mesh.order());
        let geometry = Lagrange::continuous(cell, order)?;
        let degree = element.degree() + order * (cell.dim() - 1);
        let rule = default_rule(cell, element.degree(), order, Some(degree)).on_facet();
        let all = element.points();
        // A rule is given on the facet where the first coordinate is 0.
        let place = |[_, y, z]: [f64; 3]| cell.entity_point(cell.dim() - 1, local, [y, z, 0.0]);
        let points: Vec<[f64; 3]> = rule.iter().map(|&(point, _)| place(point)).collect();
        let table = tabulate(element, &points);
        let area: f64 = rule.iter().map(|(_, weight)| weight).sum();
        let weights = nodes.iter().enumerate().map(|(number, &node)| {
            let each = rule.iter().enumerate();
            let mut own: Vec<f64> =
                each.map(|(q, (_, weight))| weight * table.value(q, node as usize)).collect();
            let mean = area / nodes.len() as f64;
            let few = own.iter().sum::<f64>() < SHARE * mean;
            if few {
                own.fill(0.0);
            }
            let at_nodes = (0..nodes.len()).map(|other| match few && other == number {
                true => mean,
                false => 0.0,
            });
            own.extend(at_nodes);
            own
        });
        let weights = weights.collect();
        let at_nodes = nodes.iter().map(|&node| all[node as usize]);
        let points: Vec<[f64; 3]> = points.into_iter().chain(at_nodes).collect();
        let normal = cell.facet_normal(local);
        // The facet opposite a simplex's origin is larger in reference coordinates.
        let scale: f64 = normal.iter().map(|x| x.abs()).sum();
        let reference = normal.map(|x| x * scale);
        Ok(Self { reference, gradients: Gradients::of_element(geometry, &points), weights })
    }

    /// Returns cof(J) N at the points, pointing outwards: neighbours of a simplex may be mirrored, with det J < 0.
    fn area_vectors(&self, mesh: &Mesh, facet: Facet) -> Vec<[f64; 3]> {
        let nodes = || {
            mesh.cell_nodes(facet.cell as usize).iter().map(|&node| mesh.points()[node as usize])
        };
        let at = |point: usize| {
            let (determinant, cofactor) = self.gradients.cofactor(point, nodes());
            cofactor.map(|row| determinant.signum() * dot(&row, &self.reference))
        };
        (0..self.gradients.n_points()).map(at).collect()
    }
}

/// A wall at a node: the sum of its normals, and the last condition on it.
struct NodeWall {
    sum: [f64; 3],
    condition: usize,
}

fn cosine(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

/// Groups the normals at a node into walls, in arbitrary order.
fn walls(normals: impl Iterator<Item = (usize, [f64; 3])>, smooth: f64) -> Vec<NodeWall> {
    let mut walls: Vec<NodeWall> = Vec::new();
    for (condition, normal) in normals {
        let near = walls.iter().position(|wall| cosine(&wall.sum, &normal) > smooth);
        match near {
            None => walls.push(NodeWall { sum: normal, condition }),
            Some(at) => {
                let wall = &mut walls[at];
                wall.sum = std::array::from_fn(|c| wall.sum[c] + normal[c]);
                wall.condition = wall.condition.max(condition);
            }
        }
    }
    // Later normals may have brought two walls below the angle: merge them.
    let mut at = 0;
    while at < walls.len() {
        let other = (0..at).find(|&other| cosine(&walls[other].sum, &walls[at].sum) > smooth);
        let Some(other) = other else {
            at += 1;
            continue;
        };
        let wall = walls.swap_remove(at);
        let kept = &mut walls[other];
        kept.sum = std::array::from_fn(|c| kept.sum[c] + wall.sum[c]);
        kept.condition = kept.condition.max(wall.condition);
        at = 0;
    }
    walls
}

/// Returns the unit normals of the walls at a node, from the normals of one condition.
pub(super) fn walls_at(order: usize, normals: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let (_, smooth) = EDGE[usize::from(order > 1)].to_radians().sin_cos();
    let walls = walls(normals.iter().map(|&normal| (0, normal)), smooth);
    let unit = |wall: NodeWall| {
        let length = dot(&wall.sum, &wall.sum).sqrt().max(f64::MIN_POSITIVE);
        wall.sum.map(|x| x / length)
    };
    walls.into_iter().map(unit).collect()
}

/// Returns whether two directions belong to one smooth wall.
pub(super) fn are_smooth(order: usize, a: &[f64; 3], b: &[f64; 3]) -> bool {
    cosine(a, b) > EDGE[usize::from(order > 1)].to_radians().cos()
}

/// Applies the conditions of one field, in order, if some of them constrain a normal component.
pub(super) fn hold(order: usize, stated: &[&(&ConditionSupport, Vec<f64>)], all: &mut Constraints) {
    let of_normals = || stated.iter().filter(|(held, _)| held.trace == Trace::Normal);
    let mut nodes: Vec<u32> =
        of_normals().flat_map(|(held, _)| held.nodes.iter().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let (sine, smooth) = EDGE[usize::from(order > 1)].to_radians().sin_cos();
    for node in nodes {
        let places = stated.iter().enumerate().filter_map(|(condition, (held, _))| {
            held.nodes.binary_search(&node).ok().map(|place| (condition, place))
        });
        let places: Vec<(usize, usize)> = places.collect();
        let normals = places.iter().flat_map(|&(condition, place)| {
            let own = stated[condition].0.normals.get(place);
            own.into_iter().flatten().map(move |&normal| (condition, normal))
        });
        let walls = walls(normals, smooth);
        let mut rows = NodeConditions::default();
        for &(condition, place) in &places {
            let (held, values) = stated[condition];
            let count = values.len() / held.nodes.len().max(1);
            let own = &values[place * count..][..count];
            let unit = |c: usize| std::array::from_fn(|i| f64::from(u8::from(i == c)));
            match held.trace {
                Trace::Whole => {
                    own.iter().enumerate().for_each(|(c, &value)| rows.add(unit(c), value, sine));
                }
                Trace::Component(c) => rows.add(unit(c), own[0], sine),
                Trace::Tangential => unreachable!("fields in Hcurl have no nodes"),
                Trace::Normal => {
                    for wall in walls.iter().filter(|wall| wall.condition == condition) {
                        let length = dot(&wall.sum, &wall.sum).sqrt();
                        let normal = wall.sum.map(|x| x / length);
                        let value = match own {
                            [value] => *value,
                            several => several.iter().zip(&normal).map(|(a, b)| a * b).sum(),
                        };
                        rows.add(normal, value, sine);
                    }
                }
            }
        }
        all.hold_rows(node, &rows);
    }
}
