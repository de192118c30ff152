//! Completion of serendipity elements: 8 → 9 nodes of a quadrilateral, 20 → 27 of a hexahedron.
//!
//! The element's map uses the serendipity functions on [−1, 1]^d, for a vertex v and for the midpoint e of an edge
//! along axis a (Zienkiewicz and Taylor, The Finite Element Method, "serendipity family"):
//!
//! ```text
//! N_v = 2^-d       Π_b (1 + ξ_b v_b) (Σ_b ξ_b v_b − d + 1)
//! N_e = 2^-(d − 1) (1 − ξ_a²) Π_{b ≠ a} (1 + ξ_b e_b)
//! ```
//!
//! A missing node is placed by that map. The 9 functions of a quadrilateral span its 8, so its map and that of every
//! hexahedron face are unchanged. The 20 functions of a hexahedron contain terms of degree 4 such as ξ² η ζ, which the
//! 27 triquadratic functions span: its map is unchanged, too.
//!
//! Hexahedra share the node of their common face; a complete neighbour provides its own.

use super::ReadError;
use super::contents::{Contents, ElementKind};
use super::node_map::NodeMap;
use crate::mesh::{Cell, MeshError};
use std::collections::HashMap;

/// Completes the cells; facets need only their vertices.
pub(super) fn complete(contents: &mut Contents) -> Result<(), ReadError> {
    let dim = contents.dim();
    let partial =
        |kind: ElementKind| matches!(kind, ElementKind::Serendipity(cell) if cell.dim() == dim);
    if dim < 2 || !contents.blocks.iter().any(|block| partial(block.kind)) {
        return Ok(());
    }
    let numbers = NodeMap::new(&contents.node_numbers);
    let mut added = AddedNodes::new(contents)?;
    for block in contents.blocks_of(dim) {
        if let ElementKind::Cell(cell @ Cell::Hexahedron, 2) = block.kind {
            let table = NodeTable::new(cell)?;
            block.elements().for_each(|(_, nodes)| added.know(&table, nodes));
        }
    }
    let mut blocks = std::mem::take(&mut contents.blocks);
    for block in &mut blocks {
        let (true, ElementKind::Serendipity(cell)) = (partial(block.kind), block.kind) else {
            continue;
        };
        let table = NodeTable::new(cell)?;
        let mut nodes = Vec::with_capacity(block.numbers.len() * table.sites.len());
        for (element, own) in block.elements() {
            let places = own.iter().map(|&node| numbers.index(element, node));
            let places: Vec<u32> = places.collect::<Result<_, _>>()?;
            let at = |i: usize| contents.points[places[i] as usize];
            for site in &table.sites {
                nodes.push(match site {
                    NodeSource::Existing(place) => own[*place],
                    NodeSource::New { vertices, weights } => added
                        .node(key(vertices.iter().map(|&vertex| own[vertex])), |axis| {
                            weights.iter().enumerate().map(|(i, w)| w * at(i)[axis]).sum()
                        })?,
                });
            }
        }
        block.kind = ElementKind::Cell(cell, 2);
        block.nodes = nodes;
    }
    contents.blocks = blocks;
    contents.node_numbers.extend(added.numbers);
    contents.points.extend(added.points);
    Ok(())
}

/// The sorted vertices of a face, or of a whole cell.
type FaceKey = [u64; 8];

fn key(vertices: impl Iterator<Item = u64>) -> FaceKey {
    let mut key = [u64::MAX; 8];
    for (slot, vertex) in key.iter_mut().zip(vertices) {
        *slot = vertex;
    }
    key.sort_unstable();
    key
}

/// Origin of a node of the complete element.
enum NodeSource {
    /// The index of an existing node.
    Existing(usize),
    New {
        /// The indices of the vertices of the face or the cell.
        vertices: Vec<usize>,
        /// The serendipity functions at the node.
        weights: Vec<f64>,
    },
}

/// The nodes of the complete element, in its order.
struct NodeTable {
    sites: Vec<NodeSource>,
    /// Each node inside a face, with the indices of the face's vertices in the complete element.
    faces: Vec<(usize, Vec<usize>)>,
}

impl NodeTable {
    fn new(cell: Cell) -> Result<NodeTable, MeshError> {
        let own = ElementKind::Serendipity(cell).lattice()?;
        let all = ElementKind::Cell(cell, 2).lattice()?;
        let (mut sites, mut faces) = (Vec::new(), Vec::new());
        for (place, node) in all.iter().enumerate() {
            if let Some(place) = own.iter().position(|other| other == node) {
                sites.push(NodeSource::Existing(place));
                continue;
            }
            // A vertex of the face has the node's coordinates wherever these are 0 or 2.
            let near = |other: &[usize; 3]| {
                (0..3).all(|c| other[c] != 1 && (node[c] == 1 || other[c] == node[c]))
            };
            let of = |nodes: &[[usize; 3]]| -> Vec<usize> {
                (0..nodes.len()).filter(|&i| near(&nodes[i])).collect()
            };
            let weights = own.iter().map(|&other| function(cell, other, *node)).collect();
            sites.push(NodeSource::New { vertices: of(&own), weights });
            if of(&all).len() < cell.vertex_count() {
                faces.push((place, of(&all)));
            }
        }
        Ok(NodeTable { sites, faces })
    }
}

/// Evaluates a node's function at a lattice point, both with coordinates 0 to 2.
fn function(cell: Cell, node: [usize; 3], at: [usize; 3]) -> f64 {
    let dim = cell.dim();
    let centred = |x: usize| x as f64 - 1.0;
    let (mut product, mut sum, mut middle) = (1.0, 0.0, false);
    for c in 0..dim {
        let (x, n) = (centred(at[c]), centred(node[c]));
        if node[c] == 1 {
            middle = true;
            product *= 1.0 - x * x;
        } else {
            product *= (1.0 + x * n) / 2.0;
            sum += x * n;
        }
    }
    if middle { product } else { product * (sum - dim as f64 + 1.0) }
}

/// The added nodes.
struct AddedNodes {
    first: u64,
    known: HashMap<FaceKey, u64>,
    numbers: Vec<u64>,
    points: Vec<[f64; 3]>,
}

impl AddedNodes {
    fn new(contents: &Contents) -> Result<AddedNodes, MeshError> {
        let last = contents.node_numbers.iter().copied().max().unwrap_or(0);
        let count = contents.node_numbers.len();
        let first = last.checked_add(1).ok_or(MeshError::TooLarge { what: "nodes", count })?;
        Ok(AddedNodes { first, known: HashMap::new(), numbers: Vec::new(), points: Vec::new() })
    }

    /// Records the face nodes of a complete cell.
    fn know(&mut self, table: &NodeTable, nodes: &[u64]) {
        for (node, vertices) in &table.faces {
            let key = key(vertices.iter().map(|&vertex| nodes[vertex]));
            self.known.insert(key, nodes[*node]);
        }
    }

    /// Finds or adds the node of a face or of a cell.
    fn node(&mut self, key: FaceKey, position: impl Fn(usize) -> f64) -> Result<u64, MeshError> {
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let count = self.numbers.len();
        let number = self.first.checked_add(count as u64);
        let number = number.ok_or(MeshError::TooLarge { what: "nodes", count })?;
        self.numbers.push(number);
        self.points.push([0, 1, 2].map(position));
        self.known.insert(key, number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions are 1 at their node and 0 at the others, and sum up to 1 everywhere.
    #[test]
    fn functions_belong_to_their_nodes() {
        for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
            let own = ElementKind::Serendipity(cell).lattice().expect("a lattice");
            assert_eq!(own.len(), ElementKind::Serendipity(cell).nodes());
            for &at in &own {
                for &node in &own {
                    let expected = if at == node { 1.0 } else { 0.0 };
                    assert_eq!(function(cell, node, at), expected, "{node:?} at {at:?}");
                }
            }
            for at in ElementKind::Cell(cell, 2).lattice().expect("a lattice") {
                assert_eq!(own.iter().map(|&node| function(cell, node, at)).sum::<f64>(), 1.0);
            }
        }
    }
}
