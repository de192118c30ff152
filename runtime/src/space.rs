//! Finite-element spaces: the numbering of a field's degrees of freedom.
//!
//! The input is a mesh, its [`Partition`] and an element; the output is the cell-to-node connectivity. Vectors of a
//! field are node-major with interleaved components: component c of node i is entry `i · components + c`.
//!
//! Nodes are numbered by first touch in execution order: chunks colour by colour, cell by cell within a chunk, and
//! entity by entity within a cell (vertices, edges, faces, the interior, each in the order of
//! [`Cell::entities`](kernels_gen::element::Cell::entities)). The nodes of an entity are consecutive, and lexicographic
//! in the entity's own frame, which its first cell defines. The nodes that a chunk touches first therefore form one
//! range ([`Space::new_nodes`]). If a cell sees all its entities in their own frames, one start per entity describes it
//! ([`Space::runs`]).

mod beyond;
pub mod constraint;
pub mod derivative;
pub mod discretisation;
pub mod evaluate;
pub mod functionals;
pub(crate) mod hanging;
pub mod images;
pub mod inclusion;
mod points;
pub mod prolongation;
#[cfg(test)]
mod tests;
pub mod transfer;

use crate::mesh::distributed::{self, PartInterface};
use crate::mesh::nodes::{FirstNodes, NodeLayout, count_nodes, reversed_signs};
use crate::mesh::partition::Partition;
use crate::mesh::periodic::PeriodicSides;
use crate::mesh::{Facet, Mesh, Topology};
use crate::processes::ProcessGroup;
use crate::processes::interface_exchange::{InterfaceExchange, SharedDof};
use crate::support::parallel::ParallelSliceMut;
use beyond::NodesBeyond;
use kernels_gen::element::{Element, Lagrange, Whitney};
use std::ops::Range;
use std::sync::Arc;

/// Error of the construction of a space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// More degrees of freedom than 32-bit indices can number.
    #[error(
        "degree {degree} on {cells} cells gives {unknowns} unknowns, more than the {} that \
         32-bit indices can number; take a coarser mesh or a lower degree", u32::MAX - 1
    )]
    TooLarge {
        /// The degree.
        degree: usize,
        /// The number of cells.
        cells: usize,
        /// The number of degrees of freedom.
        unknowns: usize,
    },
    /// An element whose functions on faces depend on the frame, on a mesh whose cells see a face in several.
    #[error(
        "{element} needs a mesh whose cells see each face in one frame, which periodic sides \
         with one or two cells between them prevent; take degree 1, more cells, or hexahedra"
    )]
    Frames {
        /// The element.
        element: Element,
    },
    /// An element of another cell type.
    #[error("an element on {element} cells does not fit a mesh of {mesh} cells")]
    Cell {
        /// The element's cell.
        element: kernels_gen::element::Cell,
        /// The mesh's cell.
        mesh: kernels_gen::element::Cell,
    },
}

/// The degrees of freedom of a field on a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    element: Element,
    components: usize,
    nodes_per_cell: usize,
    n_nodes: usize,
    /// `[cell][local node]`.
    nodes: Vec<u32>,
    /// The first local node of each entity, or `None` without nodes, if every cell sees its entities in their own frames.
    runs: Option<Vec<Option<u32>>>,
    /// True for each degree of freedom of a cell whose sign is reversed, `[cell][local node]`, if any is.
    signs: Option<Vec<bool>>,
    /// The nodes that each chunk is the first to touch, in execution order.
    new_nodes: Vec<Range<usize>>,
    /// The local nodes on each facet of the cell, ascending.
    facet_nodes: Vec<Vec<u32>>,
    /// The hanging word of each cell, if any node of this space hangs.
    hanging: Option<Arc<Vec<u32>>>,
    /// The nodes shared with other processes, in one order for all.
    shared: Vec<SharedNodes>,
    /// The nodes of cells beyond a part, if the space reaches them.
    beyond: Option<NodesBeyond>,
}

/// Consecutive nodes of a shared entity, in the same order on all its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedNodes {
    /// The local node numbers.
    pub nodes: Range<u32>,
    /// The ranks of the processes: the owner, then the others, ascending.
    pub ranks: Box<[u32]>,
}

impl Space {
    /// Numbers the degrees of freedom of a field with `components` components; periodic ones are identified, except
    /// where their values are not equal ([`Space::is_identified`]).
    pub fn new(
        mesh: &Mesh,
        partition: &Partition,
        element: impl Into<Element>,
        components: usize,
    ) -> Result<Self, SpaceError> {
        let element = element.into();
        let topology = Self::topology(mesh, element, components);
        let mut space = Self::on(mesh, topology, partition, element, components)?;
        space.shared = mesh.cut().map_or_else(Vec::new, |cut| space.shared(mesh, cut));
        let words = mesh.hanging().filter(|_| element.is_continuous());
        space.hanging = words.map(|words| Arc::new(words.to_vec()));
        Ok(space)
    }

    /// Returns whether degrees of freedom on periodic sides are identical: not the components of vectors that are
    /// rotated, nor antiperiodic values. Those are related by affine constraints.
    pub fn is_identified(mesh: &Mesh, element: Element, components: usize) -> bool {
        let is_equal =
            |pair: &PeriodicSides| pair.has_equal_values() || components == 1 && pair.factor == 1.0;
        let is_nodal = element.is_continuous() && element.whitney().is_none();
        !is_nodal || mesh.periodic_sides().iter().all(is_equal)
    }

    /// Numbers the values of data, which is not periodic even if sides are.
    pub fn of_data(
        mesh: &Mesh,
        partition: &Partition,
        element: impl Into<Element>,
        components: usize,
    ) -> Result<Self, SpaceError> {
        Self::on(mesh, mesh.topology(), partition, element.into(), components)
    }

    fn on(
        mesh: &Mesh,
        topology: &Topology,
        partition: &Partition,
        element: Element,
        components: usize,
    ) -> Result<Self, SpaceError> {
        if element.cell() != mesh.cell() {
            return Err(SpaceError::Cell { element: element.cell(), mesh: mesh.cell() });
        }
        let needs_frames =
            |own: Whitney| (1..own.cell().dim()).any(|dim| own.needs_orientation(dim));
        if element.whitney().is_some_and(needs_frames) && !topology.is_oriented() {
            return Err(SpaceError::Frames { element });
        }
        let layout = NodeLayout::new(element);
        let n_nodes = count_nodes(topology, &layout);
        let unknowns = n_nodes.saturating_mul(components);
        if unknowns >= u32::MAX as usize {
            let (degree, cells) = (element.degree(), mesh.n_cells());
            return Err(SpaceError::TooLarge { degree, cells, unknowns });
        }
        let starts = FirstNodes::new(topology, partition, &layout, n_nodes);
        let first_of_runs = || match element.whitney() {
            None => layout.lexicographic_entities().map(|_| layout.first_nodes_of_entities()),
            Some(_) => {
                let first = |run: &Vec<usize>| run.first().map(|&node| node as u32);
                element.cell().is_tensor().then(|| element.runs().iter().map(first).collect())
            }
        };
        let runs = if topology.is_oriented() { first_of_runs() } else { None };
        Ok(Self {
            element,
            components,
            nodes_per_cell: layout.nodes_per_cell(),
            n_nodes,
            nodes: starts.nodes(topology, &layout),
            runs,
            signs: reversed_signs(topology, &layout),
            new_nodes: starts.new_nodes,
            facet_nodes: layout.facet_nodes(mesh.cell()),
            hanging: None,
            shared: Vec::new(),
            beyond: None,
        })
    }

    /// Returns the nodes of shared entities.
    fn shared(&self, mesh: &Mesh, cut: &PartInterface) -> Vec<SharedNodes> {
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
            let nodes = |of: &distributed::SharedEntity| SharedNodes {
                nodes: first[of.number as usize]..first[of.number as usize] + count,
                ranks: of.ranks.clone(),
            };
            found.extend(cut.shared(dim).iter().map(nodes));
        }
        found
    }

    /// Returns the number of nodes of a space with this element on a mesh.
    pub fn count(mesh: &Mesh, element: impl Into<Element>) -> usize {
        count_nodes(mesh.connectivity(), &NodeLayout::new(element))
    }

    /// Returns the same for a field with these components, whose nodes on periodic sides may not be identical.
    pub fn count_of(mesh: &Mesh, element: impl Into<Element>, components: usize) -> usize {
        let element = element.into();
        count_nodes(Self::topology(mesh, element, components), &NodeLayout::new(element))
    }

    /// Returns the connectivity of the nodes of a field.
    fn topology(mesh: &Mesh, element: Element, components: usize) -> &Topology {
        match Self::is_identified(mesh, element, components) {
            true => mesh.connectivity(),
            false => mesh.topology(),
        }
    }

    /// Returns the number of nodes on all parts of a mesh. Collective.
    pub fn count_in_all(mesh: &Mesh, element: impl Into<Element>) -> usize {
        let element = element.into();
        let (own, layout) = (Self::count(mesh, element), NodeLayout::new(element));
        let Some(cut) = mesh.cut() else { return own };
        let is_of_others = |entity: &&distributed::SharedEntity| {
            entity.ranks.first().is_some_and(|&first| (first as usize) < cut.group().rank())
        };
        let of_others = (0..mesh.dim())
            .map(|dim| layout.nodes_of(dim) * cut.shared(dim).iter().filter(is_of_others).count());
        mesh.in_all(own - of_others.sum::<usize>())
    }

    /// Returns the exchange of shared nodes between processes.
    pub fn sharing(&self, group: &Arc<dyn ProcessGroup>) -> InterfaceExchange {
        let all = self.shared.iter().flat_map(|shared| {
            shared
                .nodes
                .clone()
                .map(|node| SharedDof { unknown: node as usize, ranks: &shared.ranks })
        });
        InterfaceExchange::new(Arc::clone(group), all)
    }

    /// Returns the nodes shared with other processes, in one order for all processes.
    pub fn shared_nodes(&self) -> &[SharedNodes] {
        &self.shared
    }

    /// Returns the element.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Returns the element, whose degrees of freedom are values at nodes.
    ///
    /// # Panics
    ///
    /// If the functions are vectors.
    pub fn nodal(&self) -> Lagrange {
        self.element.lagrange().expect("the degrees of freedom should be values at nodes")
    }

    /// Returns the number of components of the field.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Returns the number of components of the field's values: those of vectors if its functions are vectors.
    pub fn value_components(&self) -> usize {
        self.element.whitney().map_or(self.components, |element| element.cell().dim())
    }

    /// Returns the number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Returns the number of degrees of freedom: nodes times components.
    pub fn n_dofs(&self) -> usize {
        self.n_nodes * self.components
    }

    /// Returns the number of nodes of a cell.
    pub fn nodes_per_cell(&self) -> usize {
        self.nodes_per_cell
    }

    /// Returns the nodes of a cell, of the mesh or beyond it, in the element's order.
    pub fn cell_nodes(&self, cell: usize) -> &[u32] {
        let own = cell * self.nodes_per_cell..(cell + 1) * self.nodes_per_cell;
        match self.nodes.get(own.clone()) {
            Some(nodes) => nodes,
            None => {
                let beyond = self.beyond.as_ref().map_or(&[][..], |beyond| &beyond.nodes);
                &beyond[own.start - self.nodes.len()..own.end - self.nodes.len()]
            }
        }
    }

    /// Returns whether degrees of freedom have signs that differ between cells.
    pub fn has_signs(&self) -> bool {
        self.signs.is_some()
    }

    /// Returns whether the sign of each degree of freedom of a cell is reversed; empty if none is.
    pub fn cell_signs(&self, cell: usize) -> &[bool] {
        if let Some(beyond) = self.signs_beyond(cell) {
            return beyond;
        }
        let own = cell * self.nodes_per_cell..(cell + 1) * self.nodes_per_cell;
        self.signs.as_ref().map_or(&[], |signs| &signs[own])
    }

    /// Returns the same of all cells, `[cell][local node]`; empty if none is.
    pub fn signs(&self) -> &[bool] {
        self.signs.as_deref().unwrap_or_default()
    }

    /// Returns the nodes of all cells, `[cell][local node]`.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns the first local node of each run of a cell ([`Element::runs`]): of each of the 3^dim entities of a tensor
    /// cell. Its nodes follow one another in every cell. `None` on simplices, and if some cell sees an entity in a frame
    /// other than the entity's own.
    pub fn runs(&self) -> Option<&[Option<u32>]> {
        self.runs.as_deref()
    }

    /// Returns the nodes that a chunk touches first. In execution order these ranges follow one another.
    pub fn new_nodes(&self, chunk: usize) -> Range<usize> {
        self.new_nodes[chunk].clone()
    }

    /// Returns the unknowns that a chunk touches first.
    pub fn new_dofs(&self, chunk: usize) -> Range<usize> {
        let nodes = self.new_nodes(chunk);
        nodes.start * self.components..nodes.end * self.components
    }

    /// Returns the local nodes on a facet of the cell and on its edges, ascending.
    pub fn facet_nodes(&self, local: usize) -> &[u32] {
        &self.facet_nodes[local]
    }

    /// Returns the nodes on some facets, ascending, without duplicates.
    pub fn nodes_on(&self, facets: &[Facet]) -> Vec<u32> {
        let mut nodes: Vec<u32> = facets
            .iter()
            .flat_map(|facet| {
                let cell = self.cell_nodes(facet.cell as usize);
                self.facet_nodes[facet.local as usize].iter().map(|&local| cell[local as usize])
            })
            .collect();
        nodes.par_sort_unstable();
        nodes.dedup();
        nodes
    }
}
