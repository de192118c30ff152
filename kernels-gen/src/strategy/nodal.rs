//! Gather and scatter of one component at one node, however the unknowns are addressed.
//!
//! Runs of unknowns move many at once and belong to the strategy that has a place for them
//! (`cell_per_lane/tensor/transfer.rs`).

use super::setting::{Quantity, Setting, Source};
use crate::abi::{Indices, Role};
use crate::kir::build::Builder;
use crate::kir::{ArgumentId, Index, ValueId};

/// Where the nodal values of a quantity, or of the result, lie.
#[derive(Clone, Copy)]
pub(super) struct Nodal {
    /// The vector; the coordinates of curved cells lie cell by cell and need no map.
    array: ArgumentId,
    /// The index array, and what it holds.
    map: Option<(ArgumentId, Indices)>,
    components: usize,
}

impl Nodal {
    /// Of a quantity that is gathered.
    pub(super) fn of(s: &Setting<'_>, quantity: &Quantity) -> Self {
        let array = s.arguments[&quantity.source.role()];
        let map = (quantity.source != Source::Position).then(|| map_of(s, quantity.source));
        Self { array, map, components: quantity.components }
    }

    /// Of the result.
    pub(super) fn result(s: &Setting<'_>) -> Self {
        let map = Some(map_of(s, Source::Direction(0)));
        Self { array: s.arguments[&Role::Result(0)], map, components: s.components(0) }
    }

    /// Component `c` of a node, whose number goes through the nodes of all batches.
    pub(super) fn gather(self, b: &mut Builder, node: &Index, c: usize) -> ValueId {
        let unknown = || node.times(self.components).plus(c);
        match self.map {
            None => b.load_lanes(self.array, unknown()),
            Some((map, Indices::Dofs)) => b.gather(self.array, map, unknown(), (1, 0), true),
            Some((map, Indices::Nodes | Indices::Runs)) => {
                b.gather(self.array, map, node.clone(), (self.components, c), false)
            }
        }
    }

    /// Adds to component `c` of a node.
    pub(super) fn scatter(self, b: &mut Builder, node: &Index, c: usize, value: ValueId) {
        match self.map {
            None => unreachable!("what is given cell by cell is not written"),
            Some((map, Indices::Dofs)) => {
                let unknown = node.times(self.components).plus(c);
                b.scatter(self.array, map, unknown, (1, 0), true, value);
            }
            Some((map, Indices::Nodes | Indices::Runs)) => {
                b.scatter(self.array, map, node.clone(), (self.components, c), false, value);
            }
        }
    }

    /// The vector and the starts of its runs, where that is how it is addressed.
    pub(super) fn runs(self) -> Option<(ArgumentId, ArgumentId)> {
        match self.map {
            Some((map, Indices::Runs)) => Some((self.array, map)),
            _ => None,
        }
    }
}

/// The index array through which a source is addressed, and what it holds.
fn map_of(s: &Setting<'_>, source: Source) -> (ArgumentId, Indices) {
    let indices = s.indices_of(source);
    (s.arguments[&Role::Map(source.owner(), indices)], indices)
}
