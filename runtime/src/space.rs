//! Spaces: the numbering of a field's unknowns.
//!
//! From a mesh, its [`Partition`] and an element to the maps from cells to unknowns. A field's
//! vector is node-major with its components interleaved: component c of node i is unknown
//! `i · components + c`.
//!
//! Nodes are numbered by first touch in execution order: chunks colour by colour, in a chunk cell by
//! cell, in a cell entity by entity (vertices, edges, faces, the interior, each kind in the order of
//! [`Cell::entities`](kernels_gen::element::Cell::entities)). The nodes of an entity follow one
//! another, lexicographic in the entity's own frame, the one that its first cell in the mesh gives
//! it. So the nodes that a chunk touches first are one range ([`Space::new_nodes`]), and a cell that
//! sees all its entities in their own frames is described by one start for each of them
//! ([`Space::runs`]).

pub mod constraint;
pub mod discretisation;
pub(crate) mod hanging;
mod points;
#[cfg(test)]
mod tests;
pub mod transfer;

use crate::mesh::cut::{self, Cut};
use crate::mesh::nodes::{FirstNodes, NodeLayout, count_nodes};
use crate::mesh::partition::Partition;
use crate::mesh::{Facet, Mesh, Topology};
use crate::processes::Group;
use crate::processes::sharing::{Shared, Sharing};
use kernels_gen::element::Lagrange;
use std::ops::Range;
use std::sync::Arc;

/// Why a space cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// More unknowns than a 32-bit index can number.
    #[error(
        "degree {degree} on {cells} cells gives {unknowns} unknowns, more than the {} that \
         32-bit indices can number; take a coarser mesh or a lower degree", u32::MAX - 1
    )]
    TooLarge {
        /// The degree.
        degree: usize,
        /// Cells of the mesh.
        cells: usize,
        /// Unknowns.
        unknowns: usize,
    },
    /// The element belongs to another kind of cell.
    #[error("an element on {element} cells does not fit a mesh of {mesh} cells")]
    Cell {
        /// The element's cell.
        element: kernels_gen::element::Cell,
        /// The mesh's cell.
        mesh: kernels_gen::element::Cell,
    },
}

/// A field's unknowns on a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    element: Lagrange,
    components: usize,
    nodes_per_cell: usize,
    n_nodes: usize,
    /// `[cell][local node]`.
    nodes: Vec<u32>,
    /// `[cell][entity]`, where every cell sees its entities in their own frames.
    runs: Option<Vec<u32>>,
    /// The nodes that each chunk touches first, in execution order.
    new_nodes: Vec<Range<usize>>,
    /// The local nodes on each facet of the cell, ascending.
    facet_nodes: Vec<Vec<u32>>,
    /// What hangs of each cell, where anything of this space does.
    hanging: Option<Arc<Vec<u32>>>,
    /// The nodes that other processes have too, in one order for all.
    shared: Vec<SharedNodes>,
}

/// Nodes of an entity that several processes have, one after another and in one order at all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedNodes {
    /// Their numbers here.
    pub nodes: Range<u32>,
    /// The processes, ascending.
    pub ranks: Box<[u32]>,
}

impl Space {
    /// Numbers the unknowns of a field with `components` components; those of periodic sides are the same.
    pub fn new(
        mesh: &Mesh,
        partition: &Partition,
        element: Lagrange,
        components: usize,
    ) -> Result<Self, SpaceError> {
        let mut space = Self::on(mesh, mesh.connectivity(), partition, element, components)?;
        space.shared = mesh.cut().map_or_else(Vec::new, |cut| space.shared(mesh, cut));
        let words = mesh.hanging().filter(|_| element.is_continuous());
        space.hanging = words.map(|words| Arc::new(words.to_vec()));
        Ok(space)
    }

    /// Numbers the values of data, which is not periodic where sides are.
    pub fn of_data(
        mesh: &Mesh,
        partition: &Partition,
        element: Lagrange,
        components: usize,
    ) -> Result<Self, SpaceError> {
        Self::on(mesh, mesh.topology(), partition, element, components)
    }

    fn on(
        mesh: &Mesh,
        topology: &Topology,
        partition: &Partition,
        element: Lagrange,
        components: usize,
    ) -> Result<Self, SpaceError> {
        if element.cell() != mesh.cell() {
            return Err(SpaceError::Cell { element: element.cell(), mesh: mesh.cell() });
        }
        let layout = NodeLayout::new(element);
        let n_nodes = count_nodes(topology, &layout);
        let unknowns = n_nodes.saturating_mul(components);
        if unknowns >= u32::MAX as usize {
            let (degree, cells) = (element.degree(), mesh.n_cells());
            return Err(SpaceError::TooLarge { degree, cells, unknowns });
        }
        let starts = FirstNodes::new(topology, partition, &layout, n_nodes);
        let runs = (layout.lexicographic_entities().is_some() && topology.is_oriented())
            .then(|| starts.runs(topology, &layout));
        Ok(Self {
            element,
            components,
            nodes_per_cell: layout.nodes_per_cell(),
            n_nodes,
            nodes: starts.nodes(topology, &layout),
            runs,
            new_nodes: starts.new_nodes,
            facet_nodes: layout.facet_nodes(mesh.cell()),
            hanging: None,
            shared: Vec::new(),
        })
    }

    /// The nodes of the entities that others have too.
    fn shared(&self, mesh: &Mesh, cut: &Cut) -> Vec<SharedNodes> {
        let (layout, topology) = (NodeLayout::new(self.element), mesh.connectivity());
        let mut found = Vec::new();
        for dim in (0..topology.cell().dim()).filter(|&dim| layout.nodes_of(dim) > 0) {
            let count = layout.nodes_of(dim) as u32;
            let mut first = vec![u32::MAX; topology.count(dim)];
            for cell in 0..topology.n_cells() {
                let nodes = self.cell_nodes(cell);
                for entity in layout.entities().iter().filter(|entity| entity.dim == dim) {
                    let number = topology.of_cell(dim, cell)[entity.local];
                    let own = entity.nodes.iter().map(|&local| nodes[local as usize]);
                    let first = &mut first[number as usize];
                    *first = (*first).min(own.min().unwrap_or(u32::MAX));
                }
            }
            let nodes = |of: &cut::Entity| SharedNodes {
                nodes: first[of.number as usize]..first[of.number as usize] + count,
                ranks: of.ranks.clone(),
            };
            found.extend(cut.shared(dim).iter().map(nodes));
        }
        found
    }

    /// The number of nodes that a space of this element has on a mesh.
    pub fn count(mesh: &Mesh, element: Lagrange) -> usize {
        count_nodes(mesh.connectivity(), &NodeLayout::new(element))
    }

    /// The number that it has on all parts of a mesh. All processes call it.
    pub fn count_in_all(mesh: &Mesh, element: Lagrange) -> usize {
        let (own, layout) = (Self::count(mesh, element), NodeLayout::new(element));
        let Some(cut) = mesh.cut() else { return own };
        let is_of_others = |entity: &&cut::Entity| {
            entity.ranks.first().is_some_and(|&first| (first as usize) < cut.group().rank())
        };
        let of_others = (0..mesh.dim())
            .map(|dim| layout.nodes_of(dim) * cut.shared(dim).iter().filter(is_of_others).count());
        mesh.in_all(own - of_others.sum::<usize>())
    }

    /// Which nodes are at which other processes.
    pub fn sharing(&self, group: &Arc<dyn Group>) -> Sharing {
        let all = self.shared.iter().flat_map(|shared| {
            shared.nodes.clone().map(|node| Shared { unknown: node as usize, ranks: &shared.ranks })
        });
        Sharing::new(Arc::clone(group), all)
    }

    /// The nodes that other processes have too, in one order for all processes.
    pub fn shared_nodes(&self) -> &[SharedNodes] {
        &self.shared
    }

    /// The element.
    pub fn element(&self) -> Lagrange {
        self.element
    }

    /// Components of the field.
    pub fn components(&self) -> usize {
        self.components
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// The number of unknowns: nodes times components.
    pub fn n_dofs(&self) -> usize {
        self.n_nodes * self.components
    }

    /// Nodes of a cell.
    pub fn nodes_per_cell(&self) -> usize {
        self.nodes_per_cell
    }

    /// The nodes of a cell in the element's order.
    pub fn cell_nodes(&self, cell: usize) -> &[u32] {
        &self.nodes[cell * self.nodes_per_cell..(cell + 1) * self.nodes_per_cell]
    }

    /// The nodes of all cells, `[cell][local node]`.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The first node of each entity of each cell, `[cell][entity]`: a tensor cell has 3^dim of
    /// them, lexicographic, number i + 3 j + 9 k with 0 the first layer of nodes, 1 the inner ones
    /// and 2 the last. Entities without nodes (degree 1) have the start 0. `None` where some cell
    /// sees an entity in another frame than the entity's own, and on simplices.
    pub fn runs(&self) -> Option<&[u32]> {
        self.runs.as_deref()
    }

    /// The nodes that a chunk touches first. In execution order these ranges follow one another.
    pub fn new_nodes(&self, chunk: usize) -> Range<usize> {
        self.new_nodes[chunk].clone()
    }

    /// The unknowns that a chunk touches first.
    pub fn new_dofs(&self, chunk: usize) -> Range<usize> {
        let nodes = self.new_nodes(chunk);
        nodes.start * self.components..nodes.end * self.components
    }

    /// The local nodes on a facet of the cell and on its edges, ascending.
    pub fn facet_nodes(&self, local: usize) -> &[u32] {
        &self.facet_nodes[local]
    }

    /// The nodes on some facets, ascending, each once.
    pub fn nodes_on(&self, facets: &[Facet]) -> Vec<u32> {
        let mut nodes: Vec<u32> = facets
            .iter()
            .flat_map(|facet| {
                let cell = self.cell_nodes(facet.cell as usize);
                self.facet_nodes[facet.local as usize].iter().map(|&local| cell[local as usize])
            })
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
