//! Local nodes of a reference cell, entity by entity: from an element to its entities and their orders.

use kernels_gen::element::{Cell, Element, entity_permutation};

/// A sub-entity of the reference cell that owns nodes.
pub struct NodeEntity {
    /// Its dimension.
    pub dim: usize,
    /// Its index among those of that dimension.
    pub local: usize,
    /// The local nodes inside it, lexicographic along its vertices.
    pub nodes: Vec<u32>,
}

/// The nodes of a reference cell, entity by entity.
pub struct NodeLayout {
    nodes_per_cell: usize,
    nodes_of: [usize; 4],
    entities: Vec<NodeEntity>,
    /// `[dim][orientation]`: local order → own order.
    permutations: [Vec<Vec<u32>>; 4],
    /// `[dim][orientation]`: the nodes in local order whose sign is reversed; empty if nodes have none.
    reversals: [Vec<Vec<bool>>; 4],
    lexicographic: Option<Vec<(usize, usize)>>,
}

impl NodeLayout {
    /// Returns the layout of an element's nodes.
    pub fn new(element: impl Into<Element>) -> Self {
        let element = element.into();
        let cell = element.cell();
        let owners = owners(element);
        let mut entities = Vec::new();
        for dim in 0..=cell.dim() {
            for local in 0..cell.entities(dim).len() {
                let inside = owners.iter().enumerate();
                let mut inside: Vec<(usize, u32)> = inside
                    .filter(|(_, owner)| (owner.0, owner.1) == (dim, local))
                    .map(|(i, owner)| (owner.2, i as u32))
                    .collect();
                inside.sort_unstable();
                if !inside.is_empty() {
                    let nodes = inside.into_iter().map(|(_, i)| i).collect();
                    entities.push(NodeEntity { dim, local, nodes });
                }
            }
        }
        let mut nodes_of = [0; 4];
        for (dim, count) in nodes_of.iter_mut().enumerate() {
            *count = element.entity_count(dim);
        }
        let is_shared = element.lagrange().is_some_and(|element| element.is_continuous());
        let lexicographic = (cell.is_tensor() && is_shared).then(|| lexicographic(cell));
        Self {
            nodes_per_cell: owners.len(),
            nodes_of,
            entities,
            permutations: std::array::from_fn(|dim| permutations(element, dim)),
            reversals: std::array::from_fn(|dim| reversals(element, dim)),
            lexicographic,
        }
    }

    /// Returns the number of nodes of a cell.
    pub fn nodes_per_cell(&self) -> usize {
        self.nodes_per_cell
    }

    /// Returns the number of nodes inside an entity of dimension `dim`.
    pub fn nodes_of(&self, dim: usize) -> usize {
        self.nodes_of[dim]
    }

    /// Returns the entities that own nodes: vertices, edges, faces, the interior.
    pub fn entities(&self) -> &[NodeEntity] {
        &self.entities
    }

    /// Returns for each node of an entity in the cell's order its index in the entity's own order.
    pub(crate) fn permutation(&self, dim: usize, orientation: u8) -> &[u32] {
        &self.permutations[dim][orientation as usize]
    }

    /// Returns for each node of an entity in the cell's order whether its sign is reversed; empty if none is.
    pub(crate) fn reversals(&self, dim: usize, orientation: u8) -> &[bool] {
        self.reversals[dim].get(orientation as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns (dimension, number) of the 3^dim entities of a tensor cell in lexicographic order; `None` if nodes are
    /// not grouped so.
    pub fn lexicographic_entities(&self) -> Option<&[(usize, usize)]> {
        self.lexicographic.as_deref()
    }

    /// Returns the first local node of each of these entities, or `None` without nodes; empty if nodes are not grouped so.
    pub fn first_nodes_of_entities(&self) -> Vec<Option<u32>> {
        let first = |&(dim, local): &(usize, usize)| {
            let entity = self.entities.iter().find(|own| (own.dim, own.local) == (dim, local));
            entity.and_then(|entity| entity.nodes.first().copied())
        };
        self.lexicographic.iter().flatten().map(first).collect()
    }

    /// Returns for each facet of the cell the local nodes on it and on its boundary, ascending.
    pub fn facet_nodes(&self, cell: Cell) -> Vec<Vec<u32>> {
        let on = |facet: &[usize]| {
            let inside = |entity: &&NodeEntity| {
                let vertices = cell.entities(entity.dim)[entity.local];
                entity.dim < cell.dim() && vertices.iter().all(|vertex| facet.contains(vertex))
            };
            let mut nodes: Vec<u32> =
                self.entities.iter().filter(inside).flat_map(|e| e.nodes.clone()).collect();
            nodes.sort_unstable();
            nodes
        };
        cell.facets().iter().map(|facet| on(facet)).collect()
    }
}

/// Returns dimension and number of the sub-entity that owns each node, and the node's index in it.
fn owners(element: Element) -> Vec<(usize, usize, usize)> {
    match (element.lagrange(), element.whitney()) {
        (Some(element), _) => {
            element.nodes().iter().map(|node| (node.dim, node.entity, node.index)).collect()
        }
        (None, Some(element)) => {
            element.dofs().iter().map(|dof| (dof.dim, dof.entity, dof.index)).collect()
        }
        (None, None) => unreachable!("a component of an element should not be numbered alone"),
    }
}

/// Returns the node orders inside entities of dimension `dim`, one per orientation ([`crate::mesh::Topology`]).
fn permutations(element: Element, dim: usize) -> Vec<Vec<u32>> {
    let count = element.entity_count(dim);
    let cell = element.cell();
    let shape = match cell.entity_cell(dim) {
        Some(shape) if dim < cell.dim() && count > 0 => shape,
        _ => return vec![(0..count as u32).collect()],
    };
    let orders = frames(shape);
    let permutation = |order: &Vec<usize>| {
        if let Some(element) = element.whitney() {
            // Other frames are refused before.
            if element.needs_orientation(dim) && order[0] != 0 {
                return Vec::new();
            }
            let places = element.entity_permutation(dim, order).into_iter();
            return places.map(|(place, _)| place as u32).collect();
        }
        let places = entity_permutation(shape, element.degree(), order);
        places.into_iter().map(|place| place as u32).collect()
    };
    orders.iter().map(permutation).collect()
}

/// Returns whether the signs of the nodes inside entities of dimension `dim` are reversed, one list per orientation.
fn reversals(element: Element, dim: usize) -> Vec<Vec<bool>> {
    let (cell, own) = (element.cell(), element.whitney());
    match (own, cell.entity_cell(dim)) {
        (Some(element), Some(shape)) if dim < cell.dim() && element.entity_count(dim) > 0 => {
            let of = |order: &Vec<usize>| {
                if element.needs_orientation(dim) && order[0] != 0 {
                    return Vec::new();
                }
                let places = element.entity_permutation(dim, order).into_iter();
                places.map(|(_, reversed)| reversed).collect()
            };
            frames(shape).iter().map(of).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the index of each vertex of an entity in its own frame, in a cell's order, for each orientation.
fn frames(shape: Cell) -> Vec<Vec<usize>> {
    match shape {
        Cell::Interval => vec![vec![0, 1], vec![1, 0]],
        Cell::Quadrilateral => (0..8).map(square).collect(),
        _ => triangles(),
    }
}

/// Indices of the vertices (a, b) of a square in its own frame: swapped if bit 0 of `orientation` is set, then mirrored
/// by bits 1 and 2.
fn square(orientation: usize) -> Vec<usize> {
    (0..4)
        .map(|vertex| {
            let (a, b) = (vertex & 1, vertex >> 1);
            let (s, t) = if orientation & 1 == 1 { (b, a) } else { (a, b) };
            (s ^ (orientation >> 1 & 1)) | (t ^ (orientation >> 2 & 1)) << 1
        })
        .collect()
}

/// Returns the permutations of three vertices in lexicographic order.
fn triangles() -> Vec<Vec<usize>> {
    let mut orders = Vec::with_capacity(6);
    for a in 0..3 {
        for b in (0..3).filter(|&b| b != a) {
            orders.push(vec![a, b, 3 - a - b]);
        }
    }
    orders
}

/// Returns the entities of a tensor cell by layer in each direction: 0 first, 1 between, 2 last.
fn lexicographic(cell: Cell) -> Vec<(usize, usize)> {
    let dim = cell.dim();
    (0..3usize.pow(dim as u32))
        .map(|code| {
            let layers: Vec<usize> =
                (0..dim).map(|axis| code / 3usize.pow(axis as u32) % 3).collect();
            let corner = |between: usize| -> usize {
                let far = |axis: usize| layers[axis] == 2 || layers[axis] == between;
                (0..dim).filter(|&axis| far(axis)).map(|axis| 1 << axis).sum()
            };
            let (first, last) = (corner(2), corner(1));
            let entity_dim = layers.iter().filter(|&&layer| layer == 1).count();
            let owns = |v: &&[usize]| v.first() == Some(&first) && v.last() == Some(&last);
            let local = cell.entities(entity_dim).iter().position(owns).unwrap_or(0);
            (entity_dim, local)
        })
        .collect()
}
