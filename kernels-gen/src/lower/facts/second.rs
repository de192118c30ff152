//! Second derivatives of a kernel's quantities and test functions.

use super::{KernelFacts, QuantitySource};
use crate::plan::{Elements, Geometry, Linearisation, Plan, Task};
use fem_dsl::point::{Input, Side, Slot};

impl KernelFacts<'_> {
    /// Returns whether second derivatives in a cell are read or tested, so that its map of them is needed.
    pub(crate) fn needs_second(&self, side: Side) -> bool {
        let reads = |source: QuantitySource, slot: &Slot| {
            slot.part.order() == 2 && self.side_of(source) == side
        };
        let read = self.inputs.iter().any(|input| match input {
            Input::State(slot) => reads(QuantitySource::State(slot.field), slot),
            Input::Direction(slot) => reads(QuantitySource::Direction(slot.field), slot),
            _ => false,
        });
        let of_side = |row: usize| self.side_of_row(row) == side;
        let tested = (0..self.rows()).any(|row| of_side(row) && self.tests_second(row));
        let blocks = self.blocks.pairs.iter().any(|&(test, trial, block)| {
            let block = &self.blocks.blocks[block].0;
            of_side(test) && block.has_second(0) || of_side(trial) && block.has_second(1)
        });
        read || tested || blocks
    }

    /// Returns whether second derivatives of a cell's map are read.
    pub(crate) fn needs_bends(&self, side: Side) -> bool {
        let reads = |input: &Input| matches!(input, Input::Bend(of, ..) if *of == side);
        self.needs_second(side) || self.inputs.iter().any(reads)
    }

    /// Returns whether the map of a cell has second derivatives, so that those of a function contain its gradient.
    pub(super) fn is_bent(&self) -> bool {
        is_bent(self.elements, self.plan)
    }

    /// Returns whether any output is tested against second derivatives of a component, given by its row.
    pub(crate) fn tests_second(&self, row: usize) -> bool {
        if matches!(self.plan.task, Task::Flux | Task::Prolong) {
            return false;
        }
        if self.plan.task == Task::Action && self.plan.linearisation == Linearisation::Stored {
            let mut own = self.blocks.pairs.iter().filter(|(test, _, _)| *test == row);
            return own.any(|&(_, _, block)| self.blocks.blocks[block].0.has_second(0));
        }
        let is_own = |slot: &Slot| self.row(slot.field, slot.component) == row;
        self.outputs.iter().any(|(slot, _)| is_own(slot) && slot.part.order() == 2)
    }
}

/// Returns the side of an entry of a cell's map.
pub(super) fn side_of_map(input: Input) -> Option<Side> {
    match input {
        Input::Inverse(side, ..)
        | Input::Tangent(side, ..)
        | Input::Bend(side, ..)
        | Input::Density(side) => Some(side),
        _ => None,
    }
}

/// Returns whether the map of a cell has second derivatives: it is given by nodes, and not affine.
pub(super) fn is_bent(elements: &Elements, plan: &Plan) -> bool {
    match plan.geometry {
        Geometry::Nodes(order) => order > 1 || elements.cell.is_factorised(),
        _ => false,
    }
}
