//! Mesh of the leaves of a bisection.
//!
//! Vertices are numbered by first touch, and the vertices of each leaf are sorted, so that leaves agree on the
//! direction of edges and faces. Periodic sides are identified in the trees. The copies of a vertex are distinguished
//! by the vertex, edge or face of the initial mesh that contains them. Facets inherit the tags of the facets that
//! contain them. Leaves use the map of their parent ([`crate::mesh::refine::forest::placed`]). Cells are in traversal
//! order.

use super::path::CellPath;
use super::rule::{MIDDLE, local, orders, vertices};
use super::{BisectError, Bisection};
use crate::mesh::refine::forest::placed;
use crate::mesh::refined::{Descendants, RefinedMesh};
use crate::mesh::{Cell, EntityCounts, Facet, Mesh, MeshData, Topology};
use std::collections::{BTreeMap, HashMap};

/// The leaves, with the vertex numbers of the mesh.
struct NumberedLeaves {
    /// The initial cell of each leaf.
    parents: Vec<u32>,
    paths: Vec<u128>,
    /// Vertices in ascending order, cell by cell.
    vertices: Vec<u32>,
    n_vertices: usize,
    /// The position of each of them in the leaf.
    seen: Vec<[u8; 4]>,
    /// The tagged facets, by tag.
    facets: Vec<Vec<[u32; 4]>>,
}

impl Bisection {
    /// Builds the mesh of the leaves from the initial mesh. Leaves inherit tags, and the map of their parent. On
    /// generated balls and shells, new boundary nodes lie on the spheres. Periodic sides are kept.
    ///
    /// # Errors
    ///
    /// `coarse` is not the initial mesh, or the mesh is too large.
    pub fn mesh(&self, coarse: &Mesh) -> Result<Mesh, BisectError> {
        self.expect(coarse)?;
        let (cell, entities) = (coarse.cell(), self.tree.entities());
        let counts = EntityCounts { cell, order: coarse.order(), entities };
        counts.check_indices()?;
        counts.check_room()?;
        let steps = &self.steps;
        let leaves = NumberedLeaves::new(self, coarse);
        let topology = Topology::new(cell, leaves.n_vertices, leaves.vertices)?;
        let ranks: BTreeMap<Vec<usize>, usize> =
            (0..).zip(orders(cell)).map(|(rank, order)| (order, rank)).collect();
        let last = |leaf: usize| {
            let seen = leaves.seen[leaf].iter().take(cell.vertex_count());
            let order: Vec<usize> = seen.map(|&vertex| usize::from(vertex)).collect();
            steps.to_order(ranks[&order])
        };
        let path = |leaf: usize, way: &mut Vec<usize>| {
            way.extend(steps.along(CellPath::from_bits(leaves.paths[leaf])));
            way.push(last(leaf));
            leaves.parents[leaf] as usize
        };
        let (points, nodes) = placed(coarse, steps.maps(), &topology, path)?;
        let facets = coarse.facet_tags().keys().cloned().zip(leaves.facets).collect();
        let cells = coarse.inherited_tags(leaves.parents.iter().map(|&parent| parent as usize));
        let parts = MeshData { points, nodes, facets, cells, ..MeshData::default() };
        let mirrored = coarse.mirrored();
        let mut way = Vec::new();
        let is_negative = |leaf: usize| {
            way.clear();
            let parent = path(leaf, &mut way);
            let turns = way.iter().filter(|&&step| steps.maps().child(step).is_negative());
            mirrored[parent] != (turns.count() % 2 == 1)
        };
        let negative: Vec<bool> = (0..self.n_leaves()).map(is_negative).collect();
        let cells = Descendants::Leaves { parents: leaves.parents, places: leaves.paths };
        let refined = RefinedMesh { coarse: coarse.clone().into(), cells, seen: leaves.seen };
        let mut mesh = Mesh::of_descendants(parts, &negative, refined)?;
        let sides = coarse.periodic_sides();
        if !sides.is_empty() {
            mesh.make_periodic(sides)
                .map_err(crate::mesh::refine::forest::RefineError::Periodic)?;
        }
        Ok(mesh)
    }

    /// Checks that the cells of a mesh are those of the initial mesh.
    fn expect(&self, coarse: &Mesh) -> Result<(), BisectError> {
        let (expected, found) = (self.tree.n_roots, coarse.n_cells());
        let sorted = |vertices: &[u32]| {
            let mut all = [u32::MAX; 4];
            all[..vertices.len()].copy_from_slice(vertices);
            all.sort_unstable();
            all
        };
        let same = |cell: usize| {
            let own = self.tree.vertices(cell as u32);
            sorted(own) == sorted(coarse.connectivity().vertices(cell))
        };
        match coarse.cell() == self.tree.cell && found == expected && (0..found).all(same) {
            true => Ok(()),
            false => Err(BisectError::Another { expected, found }),
        }
    }
}

impl NumberedLeaves {
    fn new(bisection: &Bisection, coarse: &Mesh) -> Self {
        let (cell, n_leaves) = (coarse.cell(), bisection.n_leaves());
        let (facets, orders) = (TaggedFacets::new(coarse), orders(cell));
        let mut numbers = VertexNumbering::new(coarse);
        let mut all = Self {
            parents: Vec::with_capacity(n_leaves),
            paths: Vec::with_capacity(n_leaves),
            vertices: Vec::with_capacity(n_leaves * cell.vertex_count()),
            n_vertices: 0,
            seen: Vec::with_capacity(n_leaves),
            facets: vec![Vec::new(); coarse.facet_tags().len()],
        };
        for number in 0..n_leaves {
            let (parent, path) = bisection.leaf(number);
            let carriers = carriers(cell, &orders[path.order()], path);
            let vertices = bisection.tree.vertices(bisection.leaves[number]);
            let leaf = numbers.leaf(parent, vertices, &carriers);
            facets.inherit(parent, &leaf, &carriers, &mut all.facets);
            let mut seen = [0, 1, 2, 3];
            seen[..vertices.len()].sort_unstable_by_key(|&vertex| leaf[usize::from(vertex)]);
            let ascending = seen[..vertices.len()].iter().map(|&vertex| leaf[usize::from(vertex)]);
            all.vertices.extend(ascending);
            all.parents.push(parent as u32);
            all.paths.push(path.bits());
            all.seen.push(seen);
        }
        all.n_vertices = numbers.count as usize;
        all
    }
}

/// Returns for each vertex of a descendant the vertices of the initial cell that span its carrier, as a bit set.
fn carriers(cell: Cell, order: &[usize], path: CellPath) -> Vec<u8> {
    let mut all: Vec<u8> = order.iter().map(|&vertex| 1 << vertex).collect();
    for child in path.below(0) {
        let of = |&vertex: &usize| match vertex {
            MIDDLE => all[0] | all[1],
            vertex => all[vertex],
        };
        all = vertices(cell)[child].iter().map(of).collect();
    }
    all
}

/// Vertex numbering by first touch.
struct VertexNumbering<'a> {
    coarse: &'a Mesh,
    /// The numbers of tree vertices.
    own: Vec<u32>,
    /// On periodic sides: numbers by tree vertex and carrier in the initial mesh.
    copies: HashMap<(u32, u32), u32>,
    count: u32,
}

impl<'a> VertexNumbering<'a> {
    fn new(coarse: &'a Mesh) -> Self {
        Self { coarse, own: Vec::new(), copies: HashMap::new(), count: 0 }
    }

    /// Returns the numbers of a leaf's vertices. New vertices of the initial mesh come first, in their order there, so
    /// that unrefined cells are unchanged.
    fn leaf(&mut self, parent: usize, vertices: &[u32], carriers: &[u8]) -> Vec<u32> {
        let mut order: Vec<usize> = (0..vertices.len()).collect();
        order.sort_by_key(|&vertex| match carriers[vertex].is_power_of_two() {
            true => (0, self.inside_of(parent, carriers[vertex])),
            false => (1, 0),
        });
        let mut all = vec![0; vertices.len()];
        for vertex in order {
            all[vertex] = self.number(parent, vertices[vertex], carriers[vertex]);
        }
        all
    }

    fn number(&mut self, parent: usize, vertex: u32, carrier: u8) -> u32 {
        let whole = carrier.count_ones() as usize == self.coarse.cell().vertex_count();
        let number = if self.coarse.is_periodic() && !whole {
            let inside_of = self.inside_of(parent, carrier);
            self.copies.entry((vertex, inside_of)).or_insert(u32::MAX)
        } else {
            let most = self.own.len().max(vertex as usize + 1);
            self.own.resize(most, u32::MAX);
            &mut self.own[vertex as usize]
        };
        if *number == u32::MAX {
            *number = self.count;
            self.count += 1;
        }
        *number
    }

    /// Returns the vertex, edge or face of the initial mesh with these vertices of a cell.
    fn inside_of(&self, parent: usize, carrier: u8) -> u32 {
        let (cell, topology) = (self.coarse.cell(), self.coarse.topology());
        let all: Vec<usize> =
            (0..cell.vertex_count()).filter(|vertex| carrier >> vertex & 1 == 1).collect();
        match all.len() {
            1 => topology.vertices(parent)[all[0]],
            2 => topology.edges().of_cell(parent)[local(cell, &all)],
            _ => topology.faces().of_cell(parent)[local(cell, &all)],
        }
    }
}

/// The tagged facets of the initial mesh.
struct TaggedFacets {
    cell: Cell,
    /// Facets in cell order, with their tag numbers.
    all: Vec<(Facet, usize)>,
}

impl TaggedFacets {
    fn new(coarse: &Mesh) -> Self {
        let of = |(tag, facets): (usize, &'_ Vec<Facet>)| {
            facets.iter().map(|&facet| (facet, tag)).collect::<Vec<_>>()
        };
        let mut all: Vec<(Facet, usize)> =
            coarse.facet_tags().values().enumerate().flat_map(of).collect();
        all.sort_unstable();
        Self { cell: coarse.cell(), all }
    }

    /// Adds the facets of a leaf that lie on tagged ones.
    fn inherit(&self, parent: usize, leaf: &[u32], carriers: &[u8], found: &mut [Vec<[u32; 4]>]) {
        let first = self.all.partition_point(|(facet, _)| (facet.cell as usize) < parent);
        let of_parent =
            self.all[first..].iter().take_while(|(facet, _)| facet.cell as usize == parent);
        for &(facet, tag) in of_parent {
            let corners = self.cell.facets()[usize::from(facet.local)];
            let outside = corners.iter().fold(u8::MAX, |outside, corner| outside & !(1 << corner));
            for own in self.cell.facets() {
                if own.iter().all(|&vertex| carriers[vertex] & outside == 0) {
                    let mut vertices = [u32::MAX; 4];
                    vertices.iter_mut().zip(*own).for_each(|(to, &vertex)| *to = leaf[vertex]);
                    found[tag].push(vertices);
                }
            }
        }
    }
}
