//! Gather and scatter of rotated cells whose DoFs are contiguous: a cell is moved as one run, and its permutation takes
//! place in private memory.

use super::{ElementVector, Facet, Trace};
use crate::abi::{Owner, Role};
use crate::kir::{ArgumentId, Index, LocalId, Positions, Run, Statement};
use crate::lower::facet_line::FacetLine;
use crate::lower::facts::Quantity;
use crate::lower::lowering::Lowering;
use crate::lower::restrict::NodalLocation;

impl Facet {
    /// Returns the trace of a field whose cells are gathered whole.
    pub(super) fn gather_cell(
        &self,
        s: &mut Lowering<'_>,
        quantity: &Quantity,
        line: FacetLine,
        nodal: NodalLocation,
    ) -> Trace {
        let (source, map) = nodal.cells().expect("cells should be addressed");
        let Owner::Field(trace) = quantity.source.owner() else {
            unreachable!("whole cells are those of fields")
        };
        let (mark, length) = (s.b.mark(), self.length(&line));
        let cell = s.b.local("cell", quantity.components * length);
        let run = self.turned(s, trace, (map, cell), quantity.components * length);
        s.b.statement(Statement::GatherRun { source, run });
        let trace =
            self.gather(s, quantity, line, &mut |b, node, c| b.load(cell, node.plus(c * length)));
        s.b.release_one(mark);
        trace
    }

    /// Integrates back to the nodes and adds to cells as a whole.
    pub(super) fn integrate_cell(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        nodal: NodalLocation,
    ) {
        let (target, map) = nodal.cells().expect("cells should be addressed");
        let (components, length) = (outcome.rows.len(), self.length(&outcome.line));
        let mark = s.b.mark();
        let cell = s.b.local("cell", components * length);
        self.integrate(s, outcome, true, &mut |b, node, c, value| {
            b.store(cell, node.plus(c * length), value);
        });
        let masked = s.facts.plan.one_sided;
        let run = Run { masked, ..self.turned(s, outcome.field, (map, cell), components * length) };
        s.b.statement(Statement::ScatterRun { target, run, write: nodal.write() });
        s.b.release_one(mark);
    }

    /// Returns n^d.
    fn length(&self, line: &FacetLine) -> usize {
        line.n * self.plane(line)
    }

    /// Returns the run of a cell's DoFs, with their places in the rotated cell.
    fn turned(
        &self,
        s: &Lowering<'_>,
        trace: usize,
        (map, local): (ArgumentId, LocalId),
        length: usize,
    ) -> Run {
        let batch = Index::from(s.b.batch());
        let positions = Positions::Row(s.arguments[&Role::Turns(trace)], batch.times(length));
        Run { map, at: batch, scale: 1, local, positions, first: 0, length, masked: false }
    }
}
