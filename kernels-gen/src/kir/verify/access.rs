//! Invariants 7 to 9: reads and writes of memory.

use super::{CheckedKernel, Phase, Verifier, require};
use crate::kir::{
    Argument, ArgumentId, Element, Entries, Index, Integer, IntegersId, Op, Positions, Run,
    SharedId, Statement, Thread, VarId, WeightedLines, Write,
};

/// The kind of access to an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Load,
    Gather,
    Write,
}

impl<'k> Verifier<'k> {
    /// Checks the memory that an operation reads.
    pub(super) fn loads(&self, op: &Op) -> CheckedKernel {
        match op {
            Op::LoadLocal(local, index) => self.local(*local, index),
            Op::LoadShared(shared, index) => self.shared(*shared, index),
            Op::LoadTable(table, index) => {
                let table = self.table(*table)?;
                let Entries::Real(entries) = &table.entries else {
                    return Err(format!("{} holds positions and is loaded from", table.name));
                };
                let finite = entries.iter().all(|entry| entry.is_finite());
                require(finite, || format!("{} has an entry that is not finite", table.name))?;
                self.within_own(index, entries.len(), &table.name)
            }
            Op::LoadUniform(argument, index) | Op::LoadLanes(argument, index) => {
                let array = self.real(*argument, Use::Load)?;
                self.positive(index, &array.name)
            }
            Op::Flag { masks, at, bit } => {
                require(*bit < u32::BITS, || format!("a mask has no bit {bit}"))?;
                self.map(*masks, at)
            }
            Op::Gather { source, from } => {
                self.real(*source, Use::Gather)?;
                self.map(from.map, &from.at)
            }
            Op::LoadAt { source, var, .. } => {
                self.real(*source, Use::Gather)?;
                self.loaded(*var)
            }
            _ => Ok(()),
        }
    }

    /// Requires a variable that indicates the border of a cell.
    fn border(&self, var: VarId) -> CheckedKernel {
        let known = matches!(self.kernel.thread_of(var), Some(Thread::Border { .. }));
        require(known, || format!("{var} does not say what lies on a border"))
    }

    /// Requires a variable that addresses an element of an array.
    fn loaded(&self, var: VarId) -> CheckedKernel {
        let loaded = matches!(self.kernel.integer(var), Some(Integer::Element(..)));
        require(loaded && self.is_open(var), || format!("{var} was not loaded"))?;
        self.by_itself(|| format!("the element of {var}"))
    }

    /// Requires the phase before vectors, for operations that differ between threads or lanes.
    fn by_itself(&self, what: impl FnOnce() -> String) -> CheckedKernel {
        require(self.phase == Phase::Lowered, || format!("a vector cannot go to {}", what()))
    }

    /// Checks the invariants of a statement that is neither a `Let` nor a loop.
    pub(super) fn statement(&self, statement: &Statement) -> CheckedKernel {
        match statement {
            Statement::StoreLocal(local, index, value) => {
                self.stored(*value)?;
                self.local(*local, index)
            }
            Statement::StoreShared(shared, index, value) => {
                self.stored(*value)?;
                self.shared(*shared, index)
            }
            Statement::StoreLanes(argument, index, value) => {
                self.stored(*value)?;
                let array = self.real(*argument, Use::Write)?;
                self.positive(index, &array.name)
            }
            Statement::Scatter { target, to, value, write } => {
                if let Write::Inside(border) = write {
                    self.border(*border)?;
                }
                self.stored(*value)?;
                self.real(*target, Use::Write)?;
                self.map(to.map, &to.at)
            }
            Statement::ScatterEdge { target, map, at, values, .. } => {
                let values = values.iter().flat_map(|(_, ends)| ends);
                values.copied().try_for_each(|value| self.stored(value))?;
                self.real(*target, Use::Write)?;
                at.iter().try_for_each(|at| self.map(*map, at))
            }
            Statement::GatherRun { source, run } => {
                self.real(*source, Use::Gather)?;
                self.run(run)
            }
            Statement::ScatterRun { target, run, write } => {
                node_by_node(*write)?;
                self.real(*target, Use::Write)?;
                self.run(run)
            }
            Statement::StoreAt { target, var, value, write, .. } => {
                node_by_node(*write)?;
                self.stored(*value)?;
                self.real(*target, Use::Write)?;
                self.loaded(*var)
            }
            Statement::StoreInteger(array, index, var) => {
                require(self.is_open(*var), || format!("{var} is stored outside its block"))?;
                self.integers(*array, index)
            }
            // Prefetching out of bounds is harmless, and usual in the last batch.
            Statement::Prefetch(argument, ..) => self.argument(*argument).map(|_| ()),
            Statement::PrefetchIndexed { array, map, entries, entry, .. } => {
                self.argument(*array)?;
                let at = Index { constant: *entry as i64, terms: Vec::new() };
                require(entry < entries, || format!("entry {entry} of {entries}"))?;
                self.map(*map, &at)
            }
            Statement::Recompute(border) => self.border(*border),
            Statement::Let(_)
            | Statement::For { .. }
            | Statement::When { .. }
            | Statement::Set(_)
            | Statement::Barrier
            | Statement::Fence
            | Statement::Stage
            | Statement::Comment(_) => Ok(()),
        }
    }

    /// Checks a private array of integers at an entry.
    pub(super) fn integers(&self, id: IntegersId, entry: &Index) -> CheckedKernel {
        let array = self.kernel.integers.get(id).ok_or_else(|| format!("{id} does not exist"))?;
        self.by_itself(|| array.name.clone())?;
        self.within_own(entry, array.length, &array.name)
    }

    fn shared(&self, id: SharedId, index: &Index) -> CheckedKernel {
        let array = self.kernel.shared.get(id).ok_or_else(|| format!("{id} does not exist"))?;
        self.within(index, array.length, &array.name)
    }

    /// Checks the array of the counts of active lanes.
    pub(super) fn counts(&self, id: ArgumentId) -> CheckedKernel {
        let array = self.argument(id)?;
        let right = array.element == Element::U32 && !array.written;
        require(right, || format!("{} cannot count active lanes", array.name))
    }

    fn argument(&self, id: ArgumentId) -> Result<&'k Argument, String> {
        self.kernel.arguments.get(id).ok_or_else(|| format!("{id} does not exist"))
    }

    /// Checks an array of reals for a kind of access.
    fn real(&self, id: ArgumentId, how: Use) -> Result<&'k Argument, String> {
        let array = self.argument(id)?;
        require(array.element == Element::Real, || format!("{} holds no reals", array.name))?;
        let allowed = match how {
            Use::Load => true,
            Use::Gather => !array.written,
            Use::Write => array.written,
        };
        require(allowed, || match how {
            Use::Write => format!("{} is written and not declared so", array.name),
            Use::Load | Use::Gather => format!("{} is both gathered and written", array.name),
        })?;
        Ok(array)
    }

    /// Checks an index array at an entry.
    fn map(&self, id: ArgumentId, at: &Index) -> CheckedKernel {
        self.elements(id, at)?;
        self.together(at, &self.argument(id)?.name)
    }

    /// Checks the same with an entry per lane.
    pub(super) fn elements(&self, id: ArgumentId, at: &Index) -> CheckedKernel {
        let array = self.argument(id)?;
        let right = array.element == Element::U32 && !array.written;
        require(right, || format!("{} is no index array", array.name))?;
        let loaded = at.terms.iter().find(|(var, _)| self.kernel.is_loaded(*var));
        require(loaded.is_none(), || format!("{} is accessed by what was loaded", array.name))?;
        let (low, _, batch) = self.range(at)?;
        require(low >= 0 && batch >= 0, || format!("{} is accessed below its start", array.name))
    }

    /// Checks the starts and the positions of a run.
    fn run(&self, run: &Run) -> CheckedKernel {
        let Run { map, at, local, first, length, .. } = run;
        self.map(*map, at)?;
        if let Some(lines) = &run.lines {
            return self.lines(run, lines);
        }
        let array = self.kernel.locals.get(*local).ok_or_else(|| format!("{local} is missing"))?;
        let table = match &run.positions {
            Positions::Table(table) => self.table(*table)?,
            Positions::Row(positions, start) => return self.elements(*positions, start),
        };
        let Entries::Position(entries) = &table.entries else {
            return Err(format!("{} lists no positions", table.name));
        };
        let end = first.checked_add(*length).filter(|&end| *length > 0 && end <= entries.len());
        let end = end.ok_or_else(|| format!("a run is not within {}", table.name))?;
        let mut positions = entries[*first..end].to_vec();
        positions.sort_unstable();
        let distinct = positions.windows(2).all(|pair| pair[0] < pair[1]);
        require(distinct, || format!("a run names an entry of {} twice", array.name))?;
        let inside = positions.last().is_some_and(|&last| (last as usize) < array.length);
        require(inside, || format!("a run leaves {}", array.name))
    }

    /// Checks the weights and the arrays of the lines of a run.
    fn lines(&self, run: &Run, lines: &WeightedLines) -> CheckedKernel {
        let WeightedLines { n, components, weights, .. } = lines;
        let Positions::Row(positions, start) = &run.positions else {
            return Err("lines are summed of rotated cells alone".to_owned());
        };
        let table = self.table(*weights)?;
        let Entries::Real(entries) = &table.entries else {
            return Err(format!("{} has no weights", table.name));
        };
        let arrays = run.locals().count();
        require(entries.len() == n * arrays, || format!("{} has other weights", table.name))?;
        let whole = *n > 1 && *components > 0 && run.length.is_multiple_of(n * n * components);
        require(whole && run.first == 0, || format!("a run of {} is no cell", run.length))?;
        for local in run.locals() {
            let array = self.kernel.locals.get(local);
            let array = array.ok_or_else(|| format!("{local} is missing"))?;
            require(n * array.length >= run.length, || format!("a run leaves {}", array.name))?;
        }
        self.elements(*positions, start)
    }
}

/// Requires node-by-node writes: runs and computed positions do not distinguish nodes inside a cell.
fn node_by_node(write: Write) -> CheckedKernel {
    let inside = matches!(write, Write::Inside(_));
    require(!inside, || "runs and computed places do not say what lies inside a cell".to_owned())
}
