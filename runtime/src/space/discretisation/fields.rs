//! Fields of a discretisation, and the parts of the mesh on which they live: their cells, and the nodes outside of them.

use super::Discretisation;
use crate::mesh::MeshError;
use crate::mesh::pairs::members;
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::space::images::{ImageError, NodeImages};
use fem_dsl::point::{Input, Node, PointForm, Region};
use std::sync::Arc;

/// An unknown field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The degrees of freedom.
    pub space: Arc<Space>,
    /// The essential boundary conditions.
    pub constraints: Constraints,
    /// The part of the mesh on which it lives; `None` for all cells.
    pub support: Option<Arc<FieldSupport>>,
    /// Nodes on periodic sides that have numbers of their own.
    pub images: Option<Arc<NodeImages>>,
}

impl Field {
    /// A field on all cells, without conditions.
    pub fn new(space: Arc<Space>) -> Self {
        Self { constraints: Constraints::none(&space), space, support: None, images: None }
    }

    /// The same without the conditions that are given; what lies outside of its cells stays 0.
    #[must_use]
    pub fn unconstrained(&self) -> Self {
        Self { constraints: self.without_conditions(), ..self.clone() }
    }

    /// Returns its constraints without conditions: what lies outside of its cells is 0.
    pub fn without_conditions(&self) -> Constraints {
        let outside = self.support.as_ref().map_or(&[][..], |support| &support.outside);
        Constraints::outside(&self.space, outside)
    }

    /// Returns whether it lives on a cell.
    pub fn lives_on(&self, cell: usize) -> bool {
        self.support.as_ref().is_none_or(|support| support.cells[cell])
    }
}

/// The part of a mesh on which a field lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSupport {
    /// True for each cell that belongs to it.
    pub cells: Vec<bool>,
    /// The nodes of other cells alone, ascending.
    pub outside: Vec<u32>,
}

impl Discretisation {
    /// Finds the nodes on periodic sides that are related to their images by affine constraints.
    ///
    /// # Errors
    ///
    /// Sides that are no images of each other.
    pub fn find_images(&mut self) -> Result<(), ImageError> {
        for field in &mut self.fields {
            let images = NodeImages::find(&self.mesh, &self.partition, &field.space)?;
            field.images = images.map(Arc::new);
        }
        Ok(())
    }

    /// Finds the parts of the mesh on which fields of the form live.
    pub(super) fn find_supports(&mut self, form: &PointForm) -> Result<(), MeshError> {
        for (field, of) in self.fields.iter_mut().zip(&form.fields) {
            if of.cells.is_empty() {
                continue;
            }
            let all = members(&self.mesh, &self.mesh.cells_under(&of.cells)?);
            let space = &field.space;
            let mut lives = vec![0.0_f64; space.n_nodes()];
            let nodes = space.all_nodes().collect::<Vec<u32>>();
            let of_cells = nodes.chunks_exact(space.nodes_per_cell()).zip(&all);
            for (nodes, _) in of_cells.filter(|(_, is_in)| **is_in) {
                nodes.iter().for_each(|&node| lives[node as usize] = 1.0);
            }
            if let Some(cut) = self.mesh.cut() {
                space.sharing(cut.group()).largest(&mut lives);
            }
            let outside = (0..).zip(&lives).filter(|(_, lives)| **lives == 0.0);
            let outside = outside.map(|(node, _)| node).collect();
            let cells = all[..self.mesh.n_cells()].to_vec();
            field.support = Some(Arc::new(FieldSupport { cells, outside }));
            field.constraints = field.without_conditions();
        }
        self.check_supports(form)
    }

    /// Checks that the integrals over cells and the boundary have terms only of fields that live there.
    fn check_supports(&self, form: &PointForm) -> Result<(), MeshError> {
        for (number, integral) in form.integrals.iter().enumerate() {
            let rows = integral.residual.iter().map(|(slot, _)| slot.field);
            let read = integral.graph.nodes().iter().filter_map(|node| match node {
                Node::Input(Input::State(slot)) => Some(slot.field),
                _ => None,
            });
            for field in rows.chain(read) {
                let Some(own) = self.fields.get(field).filter(|own| own.support.is_some()) else {
                    continue;
                };
                let of_facets = self.facets[number].iter().map(|facet| facet.cell as usize);
                let mut of_cells = self.cells_of(number).into_iter().flatten();
                let is_elsewhere = of_facets.into_iter().any(|cell| !own.lives_on(cell))
                    || of_cells.any(|&cell| !own.lives_on(cell as usize));
                // All processes have the same answer.
                if self.mesh.in_all(usize::from(is_elsewhere)) > 0 {
                    let region = match &integral.region {
                        Region::CellsUnder(tags) => {
                            format!("the part {} of the mesh", quoted(tags))
                        }
                        Region::Facets(tags) => format!("the boundary {}", quoted(tags)),
                        region => format!("`{region}`"),
                    };
                    let fem_dsl::point::Field { name, cells, .. } = &form.fields[field];
                    let (field, cells) = (name.clone(), quoted(cells));
                    return Err(MeshError::Elsewhere { region, field, cells });
                }
            }
        }
        Ok(())
    }

    /// Returns the entries outside of the cells on which their fields live.
    pub fn outside(&self) -> impl Iterator<Item = usize> {
        self.fields.iter().enumerate().flat_map(|(number, field)| {
            let (start, components) = (self.dofs_of(number).start, field.space.components());
            let nodes = field.support.iter().flat_map(|support| &support.outside);
            nodes.flat_map(move |&node| {
                let first = start + node as usize * components;
                first..first + components
            })
        })
    }
}

/// Returns tags as the language writes them.
fn quoted(tags: &[String]) -> String {
    let tags: Vec<String> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
    tags.join(", ")
}
