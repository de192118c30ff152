//! Runs: the entries of a cell that lie together in a global array, and sums over its lines on the way.

use super::super::Fault;
use super::Machine;
use crate::kir::{ArgumentId, Entries, LocalId, Positions, Run, WeightedLines, Write};
use fem_dsl::arena::Id;
use std::collections::BTreeMap;

impl Machine<'_, '_, '_> {
    /// Returns the first element of the run at an entry of the array of starts.
    fn start(&self, run: &Run, entry: i64) -> Result<Option<i64>, Fault> {
        Ok(self.element(i64::from(self.index(run.map, entry)?), (run.scale, 0), run.masked))
    }

    pub(super) fn gather_run(&mut self, source: ArgumentId, run: &Run) -> Result<(), Fault> {
        let first = self.at(&run.at) * self.lanes as i64;
        for lane in 0..self.lanes {
            if !self.on[lane] {
                continue;
            }
            let Some(start) = self.start(run, first + lane as i64)? else { continue };
            if let Some(lines) = &run.lines {
                self.gather_lines((source, start), run, lines, lane)?;
                continue;
            }
            for j in 0..run.length {
                let number = self.read(source, start + j as i64)?;
                let position = self.position(&run.positions, run.first + j)?;
                let entry = self.local_entry(run.local, position)?;
                let private = &mut self.locals[run.local.index()];
                private.values[entry * self.lanes + lane] = number;
                private.written[entry] |= self.everywhere;
            }
        }
        Ok(())
    }

    /// Sums the lines of a run of a lane.
    fn gather_lines(
        &mut self,
        (source, start): (ArgumentId, i64),
        run: &Run,
        lines: &WeightedLines,
        lane: usize,
    ) -> Result<(), Fault> {
        let mut sums = BTreeMap::<(usize, i64), f64>::new();
        for j in 0..run.length {
            let number = self.read(source, start + j as i64)?;
            let position = self.position(&run.positions, run.first + j)?;
            let (a, i) = (position / lines.n as i64, position as usize % lines.n);
            for k in 0..=lines.others.len() {
                *sums.entry((k, a)).or_default() += self.weight(lines, k, i) * number;
            }
        }
        let locals: Vec<LocalId> = run.locals().collect();
        for ((k, a), sum) in sums {
            let entry = self.local_entry(locals[k], a)?;
            let private = &mut self.locals[locals[k].index()];
            private.values[entry * self.lanes + lane] = sum;
            private.written[entry] |= self.everywhere;
        }
        Ok(())
    }

    /// Returns the weight of entry `i` of a line in array k.
    fn weight(&self, lines: &WeightedLines, k: usize, i: usize) -> f64 {
        match &self.kernel.tables[lines.weights].entries {
            Entries::Real(weights) => weights[k * lines.n + i],
            Entries::Position(_) => unreachable!("a verified kernel's weights should be real"),
        }
    }

    pub(super) fn scatter_run(
        &mut self,
        target: ArgumentId,
        run: &Run,
        write: Write,
    ) -> Result<(), Fault> {
        self.places.clear();
        let first = self.at(&run.at) * self.lanes as i64;
        for lane in 0..self.active.min(self.lanes) {
            if !self.on[lane] {
                continue;
            }
            let Some(start) = self.start(run, first + lane as i64)? else { continue };
            let near = |&&other: &&i64| (other - start).unsigned_abs() < run.length as u64;
            if let (Write::Exclusive, Some(&other)) = (write, self.places.iter().find(near)) {
                let index = start.max(other);
                return Err(Fault::Race { array: self.argument(target), index });
            }
            self.places.push(start);
            for j in 0..run.length {
                let position = self.position(&run.positions, run.first + j)?;
                let mut number = 0.0;
                let (a, i) = (position / run.line() as i64, position as usize % run.line());
                for (k, local) in run.locals().enumerate() {
                    let entry = self.written_entry(local, a)?;
                    let own = self.locals[local.index()].values[entry * self.lanes + lane];
                    number +=
                        run.lines.as_ref().map_or(1.0, |lines| self.weight(lines, k, i)) * own;
                }
                self.put(target, start + j as i64, number, write)?;
            }
        }
        Ok(())
    }

    /// Returns a position of a run, which is within its table.
    fn position(&self, positions: &Positions, entry: usize) -> Result<i64, Fault> {
        let table = match positions {
            Positions::Table(table) => *table,
            Positions::Row(array, start) => {
                return self.index(*array, self.at(start) + entry as i64).map(i64::from);
            }
        };
        match &self.kernel.tables[table].entries {
            Entries::Position(entries) => Ok(i64::from(entries[entry])),
            Entries::Real(_) => unreachable!("a verified kernel's runs should list positions"),
        }
    }
}
