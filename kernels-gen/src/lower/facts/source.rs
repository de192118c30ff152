//! Sources of a kernel's quantities: fields, their traces and components, data, and the map of a cell.

use super::{KernelFacts, QuantitySource, geometry_element};
use crate::abi::{Owner, Role};
use crate::element::Element;
use crate::plan::{Geometry, Origin, Task};
use fem_dsl::point::Side;

impl KernelFacts<'_> {
    /// Returns the index of a field among those of the form: of a trace, or of a component of its functions.
    pub(crate) fn field_of(&self, trace: usize) -> usize {
        self.index_on_side(&self.elements.origins, trace)
    }

    /// Returns the index of a field or of data among those of the form.
    fn index_on_side(&self, origins: &[Origin], trace: usize) -> usize {
        let all = origins.last().map_or(1, |last| last.index + 1);
        origins[trace].index % (all / self.sides()).max(1)
    }

    /// Returns the place of a source among the form's fields or data; `None` for the map of a cell.
    pub(crate) fn origin_of(&self, source: QuantitySource) -> Option<&Origin> {
        match source {
            QuantitySource::State(field) | QuantitySource::Direction(field) => {
                Some(&self.elements.origins[field])
            }
            QuantitySource::Aux(aux) => Some(&self.elements.aux_origins[aux]),
            QuantitySource::Position(_) => None,
        }
    }

    /// Returns the element of a source.
    pub(crate) fn element_of(&self, source: QuantitySource) -> Element {
        match source {
            QuantitySource::State(field) | QuantitySource::Direction(field) => {
                self.elements.fields[field]
            }
            QuantitySource::Aux(aux) => {
                self.elements.aux[aux].expect("a nodal aux should have an element")
            }
            QuantitySource::Position(_) => {
                let order = match self.plan.geometry {
                    Geometry::Nodes(order) => order,
                    _ => 1,
                };
                geometry_element(self.elements, order).into()
            }
        }
    }

    /// Returns the owner of the index array of a source.
    pub(crate) fn owner_of(&self, source: QuantitySource) -> Owner {
        let origin = self.origin_of(source).expect("coordinates should be stored cell by cell");
        match source {
            QuantitySource::Aux(_) => Owner::Aux(origin.index),
            _ => Owner::Field(origin.index),
        }
    }

    /// Returns the first of a cell's nodes that belong to a source, and the number of all.
    pub(crate) fn span_of(&self, source: QuantitySource) -> (usize, usize) {
        let order = match self.plan.geometry {
            Geometry::Nodes(order) => order,
            _ => 1,
        };
        let of_map = || (0, geometry_element(self.elements, order).count());
        self.origin_of(source).map_or_else(of_map, |origin| (origin.first, origin.total))
    }

    /// Returns whether the degrees of freedom of a source have a sign in each cell.
    pub(crate) fn has_signs(&self, source: QuantitySource) -> bool {
        let element = match source {
            QuantitySource::State(field) | QuantitySource::Direction(field) => {
                Some(self.elements.fields[field])
            }
            QuantitySource::Aux(aux) => self.elements.aux[aux],
            QuantitySource::Position(_) => None,
        };
        // Stored matrices contain the signs.
        let stored = self.plan.task == Task::StoredProduct;
        let component = element.is_some_and(Element::is_referenced);
        component && !stored && (self.on_facets() || self.plan.signs)
    }

    /// Returns the side of a component, given by its row.
    pub(crate) fn side_of_row(&self, row: usize) -> Side {
        let inside = row < self.rows() / self.sides();
        if inside { Side::Inside } else { Side::Outside }
    }

    /// Returns the side of a quantity.
    pub(crate) fn side_of(&self, source: QuantitySource) -> Side {
        let half = |count: usize| count / self.sides();
        let inside = match source {
            QuantitySource::State(field) | QuantitySource::Direction(field) => {
                field < half(self.form.fields.len())
            }
            QuantitySource::Aux(aux) => aux < half(self.form.aux.len()),
            QuantitySource::Position(side) => return side,
        };
        if inside { Side::Inside } else { Side::Outside }
    }

    /// Returns the role of a source's argument: both traces of a field are in one vector.
    pub(crate) fn role_of(&self, source: QuantitySource) -> Role {
        match source {
            QuantitySource::State(trace) => Role::State(self.field_of(trace)),
            QuantitySource::Direction(trace) => Role::Direction(self.field_of(trace)),
            QuantitySource::Aux(aux) => {
                Role::AuxNodes(self.index_on_side(&self.elements.aux_origins, aux))
            }
            QuantitySource::Position(_) => Role::Geometry,
        }
    }
}
