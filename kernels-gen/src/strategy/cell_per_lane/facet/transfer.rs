//! Gather and scatter of rotated cells whose DoFs are contiguous: a cell is moved as one run, whose lines along ξ₀ are
//! summed on the way. No rotated copy of the cell is stored; nodes on the facet alone are permuted.

use super::{ElementVector, Facet, Trace};
use crate::abi::{Owner, Role};
use crate::kir::{ArgumentId, Entries, Index, LocalId, Positions, Run, Statement, WeightedLines};
use crate::lower::facet_line::FacetLine;
use crate::lower::facts::Quantity;
use crate::lower::lowering::Lowering;
use crate::lower::restrict::NodalLocation;

/// Nodes of a line from which on lines are summed on the way to and from memory. Shorter ones have more transpositions
/// than the cell as a whole.
const SUMMED: usize = 4;

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
        let Owner::Field(trace) = s.facts.owner_of(quantity.source) else {
            unreachable!("whole cells are those of fields")
        };
        let (components, length) = (quantity.components, self.length(&line));
        if line.n >= SUMMED {
            let room = |s: &mut Lowering<'_>, what: &str| {
                s.b.local(&format!("{}_{what}", quantity.name), components * self.plane(&line))
            };
            let face = room(s, "face");
            let slope = quantity.gradient.then(|| room(s, "slope"));
            let bend = quantity.second.then(|| room(s, "bend"));
            let run = self.lines(s, &line, (trace, map, components), [Some(face), slope, bend]);
            let run = run.expect("values of a trace should be kept");
            s.b.statement(Statement::GatherRun { source, run });
            return Trace { line, face, slope, bend };
        }
        let mark = s.b.mark();
        let cell = s.b.local("cell", components * length);
        let run = self.turned(s, trace, (map, cell), components * length);
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
        let (masked, write) = (s.facts.plan.one_sided, nodal.write());
        if outcome.line.n >= SUMMED && outcome.diagonal.is_none() {
            let locals = self.onto_facet(s, outcome);
            s.comment_on("scatter", outcome.field);
            let owner = (outcome.field, map, components);
            // Without test functions nothing is added.
            let Some(run) = self.lines(s, &outcome.line, owner, locals) else { return };
            let run = Run { masked, ..run };
            return s.b.statement(Statement::ScatterRun { target, run, write });
        }
        let mark = s.b.mark();
        let cell = s.b.local("cell", components * length);
        self.integrate(s, outcome, true, &mut |b, node, c, value| {
            b.store(cell, node.plus(c * length), value);
        });
        let run = Run { masked, ..self.turned(s, outcome.field, (map, cell), components * length) };
        s.b.statement(Statement::ScatterRun { target, run, write });
        s.b.release_one(mark);
    }

    /// Returns the run of a cell whose lines along ξ₀ are summed to values, slopes and second derivatives on the facet;
    /// `None` if none of them is kept.
    fn lines(
        &self,
        s: &mut Lowering<'_>,
        line: &FacetLine,
        (trace, map, components): (usize, ArgumentId, usize),
        locals: [Option<LocalId>; 3],
    ) -> Option<Run> {
        let factors = [&line.ends, &line.slopes, &line.bends];
        let kept = || locals.iter().zip(factors).filter_map(|(&local, own)| Some((local?, own)));
        let arrays: Vec<LocalId> = kept().map(|(local, _)| local).collect();
        let (&first, others) = arrays.split_first()?;
        let entries = kept().flat_map(|(_, own)| own.iter().copied()).collect();
        let weights = s.b.table("line_weights", Entries::Real(entries));
        let lines = WeightedLines { n: line.n, components, weights, others: others.to_vec() };
        let run = self.turned(s, trace, (map, first), components * self.length(line));
        Some(Run { lines: Some(lines), ..run })
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
        Run {
            map,
            at: batch,
            scale: 1,
            local,
            positions,
            first: 0,
            length,
            masked: false,
            lines: None,
        }
    }
}
