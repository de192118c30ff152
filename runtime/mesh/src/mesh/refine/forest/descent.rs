//! Geometry of descendants: nodes of children from those of their parent, recursively.
//!
//! A child uses the map of its parent, x_child(ξ) = x(o + A ξ), at its own nodes. If an edge or a face lies on a sphere
//! of a generator, its new nodes are projected to the sphere, level by level. The nodes of an edge or face depend on
//! the parent's nodes on it only, so that cells on both sides agree. Meshes with a computational domain
//! ([`Mesh::world`]) are refined there.

use super::children::ChildMaps;
use crate::mesh::hanging::bits;
use crate::mesh::shape::vertex_function;
use crate::mesh::{Cell, Mesh};
use kernels_gen::element::{Lagrange, Node, interpolation};

/// Smaller weights are rounding errors.
const NOTHING: f64 = 1e-14;

/// The sphere of an entity: its number plus one; 0 for none.
type SphereNumber = u8;

/// Interpolation weights of a node: (parent node, weight).
type NodeWeights = Vec<(usize, f64)>;

/// Interpolation of a child's nodes from those of its parent.
struct ChildInterpolation {
    /// The weights of each node.
    weights: Vec<NodeWeights>,
    /// For each node, the edge or face of the parent that contains it: dimension and number.
    nodes: Vec<Option<(usize, usize)>>,
    /// The same for each edge and face of the child.
    entities: [Vec<Option<(usize, usize)>>; 2],
}

/// A cell on the current path.
#[derive(Clone)]
struct PathCell {
    nodes: Vec<[f64; 3]>,
    /// The spheres of its edges and faces.
    on: [Vec<SphereNumber>; 2],
}

/// Traversal of the descendants of a mesh's cells.
pub(super) struct Descent<'a> {
    mesh: &'a Mesh,
    steps: Vec<ChildInterpolation>,
    radii: Vec<f64>,
    /// For each node, the bits of a hanging word that mark it as hanging.
    bits: Vec<u32>,
    /// The spheres of the mesh's edges and faces.
    on: [Vec<SphereNumber>; 2],
    /// The current position: the tree, and the child at each level.
    tree: Option<u32>,
    path: Vec<usize>,
    places: Vec<PathCell>,
}

impl<'a> Descent<'a> {
    /// Creates a traversal for the geometry element and the children of the cells.
    pub(super) fn new(mesh: &'a Mesh, element: Lagrange, children: &ChildMaps) -> Self {
        let steps = (0..children.count()).map(|child| step(children, child, element)).collect();
        let radii = mesh.spheres().iter().map(|(_, radius)| *radius).collect();
        let (tree, path, places) = (None, Vec::new(), Vec::new());
        let end = |at: usize| match at {
            0 => Some(0),
            at if at == element.degree() => Some(1),
            _ => None,
        };
        let node = |node: &Node| bits(node.lattice.map(end), mesh.dim());
        let bits = match mesh.cell().is_tensor() {
            true => element.nodes().iter().map(node).collect(),
            false => Vec::new(),
        };
        Self { mesh, steps, radii, bits, on: spheres(mesh), tree, path, places }
    }

    /// Returns the nodes of a descendant, by the child numbers on its path.
    pub(super) fn nodes(&mut self, tree: u32, path: &[usize]) -> &[[f64; 3]] {
        let common = match self.tree == Some(tree) {
            true => self.path.iter().zip(path).take_while(|(a, b)| a == b).count(),
            false => {
                self.places.clear();
                self.places.push(self.root(tree));
                0
            }
        };
        self.tree = Some(tree);
        self.path.truncate(common);
        self.places.truncate(common + 1);
        for &child in &path[common..] {
            let below = self.child(&self.places[self.path.len()], child);
            self.path.push(child);
            self.places.push(below);
        }
        &self.places[path.len()].nodes
    }

    /// Returns the nodes of a leaf; hanging nodes, by the hanging word, lie on the faces and edges of its parent.
    pub(super) fn nodes_of_leaf(
        &mut self,
        tree: u32,
        path: &[usize],
        word: u32,
    ) -> std::borrow::Cow<'_, [[f64; 3]]> {
        let Some((&last, before)) = path.split_last().filter(|_| word != 0) else {
            return self.nodes(tree, path).into();
        };
        self.nodes(tree, before);
        let parent = &self.places[before.len()];
        let step = &self.steps[last];
        let node = |((place, weights), bits): ((&[f64; 3], &NodeWeights), &u32)| match word & bits {
            0 => *place,
            _ => mean(weights, &parent.nodes),
        };
        let ideal = self.child(parent, last).nodes;
        let all = ideal.iter().zip(&step.weights).zip(&self.bits);
        all.map(node).collect()
    }

    fn root(&self, tree: u32) -> PathCell {
        let cell = tree as usize;
        let points = self.mesh.plain_points();
        let nodes = self.mesh.cell_nodes(cell).iter().map(|&node| points[node as usize]);
        let topology = self.mesh.topology();
        let of = |all: &[SphereNumber], entities: &[u32]| -> Vec<SphereNumber> {
            if all.is_empty() {
                return Vec::new();
            }
            entities.iter().map(|&entity| all[entity as usize]).collect()
        };
        let edges = of(&self.on[0], topology.edges().of_cell(cell));
        let faces = match self.on[1].is_empty() {
            true => Vec::new(),
            false => of(&self.on[1], topology.faces().of_cell(cell)),
        };
        PathCell { nodes: nodes.collect(), on: [edges, faces] }
    }

    fn child(&self, parent: &PathCell, child: usize) -> PathCell {
        let step = &self.steps[child];
        let on = |entity: &Option<(usize, usize)>| -> SphereNumber {
            entity.and_then(|(dim, local)| parent.on[dim - 1].get(local).copied()).unwrap_or(0)
        };
        let node = |(weights, place): (&NodeWeights, &Option<(usize, usize)>)| {
            let at = mean(weights, &parent.nodes);
            let length = at.iter().map(|x| x * x).sum::<f64>().sqrt();
            match on(place) {
                // Nodes of the parent are unchanged.
                sphere if sphere > 0 && weights.len() > 1 && length > 0.0 => {
                    at.map(|x| x / length * self.radii[usize::from(sphere) - 1])
                }
                _ => at,
            }
        };
        let nodes = step.weights.iter().zip(&step.nodes).map(node).collect();
        let inherited = |dim: usize| match self.on[dim].is_empty() && self.on[1 - dim].is_empty() {
            true => Vec::new(),
            false => step.entities[dim].iter().map(on).collect(),
        };
        PathCell { nodes, on: [inherited(0), inherited(1)] }
    }
}

/// Returns the spheres of a mesh's edges and faces; empty if it has none.
fn spheres(mesh: &Mesh) -> [Vec<SphereNumber>; 2] {
    let topology = mesh.topology();
    let (cell, mut on) = (mesh.cell(), [Vec::new(), Vec::new()]);
    // In the computational domain there are no spheres.
    if mesh.spheres().is_empty() || mesh.world().is_some() {
        return on;
    }
    on[0].resize(topology.edges().len(), 0);
    on[1].resize(topology.faces().len(), 0);
    for (number, (tag, _)) in mesh.spheres().iter().enumerate() {
        for facet in mesh.facet_tags().get(tag).into_iter().flatten() {
            let (of, local) = (facet.cell as usize, usize::from(facet.local));
            on[cell.dim() - 2][topology.facet_entity(*facet) as usize] = number as SphereNumber + 1;
            let corners = cell.facets()[local];
            let edges = cell.entities(1).iter().zip(topology.edges().of_cell(of));
            for (_, &edge) in edges.filter(|(edge, _)| edge.iter().all(|v| corners.contains(v))) {
                on[0][edge as usize] = number as SphereNumber + 1;
            }
        }
    }
    on
}

/// Returns the weighted sum of nodes.
fn mean(weights: &NodeWeights, nodes: &[[f64; 3]]) -> [f64; 3] {
    let mut at = [0.0; 3];
    for &(node, weight) in weights {
        (0..3).for_each(|c| at[c] += weight * nodes[node][c]);
    }
    at
}

fn step(children: &ChildMaps, child: usize, element: Lagrange) -> ChildInterpolation {
    let (cell, map) = (element.cell(), children.child(child));
    let points: Vec<[f64; 3]> = element.points().iter().map(|point| map.at(point)).collect();
    let weights = weights(element, &points);
    let on = |at: &[[f64; 3]]| {
        let mut dims = 1..cell.dim();
        dims.find_map(|dim| {
            let entities = cell.entities(dim);
            let local = entities.iter().position(|own| at.iter().all(|at| lies_on(cell, own, at)));
            local.map(|local| (dim, local))
        })
    };
    let nodes = points.iter().map(|point| on(&[*point])).collect();
    let entities = [1, 2].map(|dim| {
        let below = if dim < cell.dim() { cell.entities(dim) } else { &[] };
        let of = |own: &&[usize]| {
            let corners: Vec<[f64; 3]> = own.iter().map(|&v| map.at(&cell.vertex(v))).collect();
            on(&corners)
        };
        below.iter().map(of).collect()
    });
    ChildInterpolation { weights, nodes, entities }
}

/// Returns the interpolation weights of some points. Points that are nodes need no tabulation, which is expensive for
/// high orders.
fn weights(element: Lagrange, points: &[[f64; 3]]) -> Vec<Vec<(usize, f64)>> {
    let own = element.points();
    let is_near = |a: &[f64; 3], b: &[f64; 3]| (0..3).all(|c| (a[c] - b[c]).abs() < NOTHING);
    let same = |point: &[f64; 3]| own.iter().position(|node| is_near(node, point));
    let known: Vec<Option<usize>> = points.iter().map(same).collect();
    let others = points.iter().zip(&known).filter(|(_, node)| node.is_none());
    let others: Vec<[f64; 3]> = others.map(|(point, _)| *point).collect();
    let table = match others.is_empty() {
        true => Vec::new(),
        false => interpolation(element, &others),
    };
    let mut rows = table.chunks_exact(own.len());
    let row = |node: &Option<usize>| match node {
        Some(node) => vec![(*node, 1.0)],
        None => {
            let row = rows.next().into_iter().flatten().copied().enumerate();
            row.filter(|(_, weight)| weight.abs() > NOTHING).collect()
        }
    };
    known.iter().map(row).collect()
}

/// Returns whether a point lies on the entity with these vertices: the functions of all other vertices vanish.
fn lies_on(cell: Cell, vertices: &[usize], at: &[f64; 3]) -> bool {
    let others = (0..cell.vertex_count()).filter(|vertex| !vertices.contains(vertex));
    others.into_iter().all(|vertex| vertex_function(cell, vertex, *at).abs() < NOTHING)
}
