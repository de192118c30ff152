//! Memory accesses of a kernel: a verified [`Kernel`] and the extents of its arguments → [`IndirectAccess`]es.
//!
//! For indirect accesses, the largest index bounds the accessed range; the caller compares it with the length of the
//! array. Accesses batch by batch must lie within the extent that the interface states. This is proved here, once for
//! all launches.

use super::{Argument, IndirectAccess, Role};
use crate::kir::{
    ArgumentId, Condition, Index, IndirectIndex, Integer, Kernel, Op, Positions, Run, Statement,
    VarId,
};
use fem_dsl::arena::{Id, IndexVec};
use std::collections::BTreeMap;
use std::ops::Range;

/// Returns the accesses through index arrays, in a fixed order, or an error for an access beyond the extent of an
/// argument.
pub fn indirect_accesses(
    kernel: &Kernel,
    arguments: &[Argument],
) -> Result<Vec<IndirectAccess>, String> {
    let tops = kernel.vars.iter().map(|var| match var.thread() {
        Some(thread) => kernel.thread_bound(thread) as i64 - 1,
        None => 0,
    });
    let (tops, found) = (tops.collect(), BTreeMap::new());
    let mut finder = Finder { kernel, arguments, tops, something: Vec::new(), found };
    if let Some(active) = kernel.active {
        finder.rows(active, &Index::from(kernel.batch()), 1, 1)?;
    }
    finder.block(&kernel.body)?;
    let found = finder.found.into_iter();
    let reach = |((map, array, scale, masked, part), last): (Key, i64)| IndirectAccess {
        map,
        array,
        scale,
        last,
        masked,
        part: part.map(|(from, to)| from..to),
    };
    Ok(found.map(reach).collect())
}

/// Index array, array, scale, whether `u32::MAX` is skipped, and the range of a row unless it is the whole row.
type Key = (usize, usize, usize, bool, Option<(usize, usize)>);

struct Finder<'k> {
    kernel: &'k Kernel,
    arguments: &'k [Argument],
    /// The largest value of each variable at this point of the kernel.
    tops: IndexVec<VarId, i64>,
    /// The variables that are known to differ from `u32::MAX`.
    something: Vec<VarId>,
    /// The last element of each.
    found: BTreeMap<Key, i64>,
}

impl<'k> Finder<'k> {
    /// Visits a block. The recursion is as deep as the loop nest, which strategies bound.
    fn block(&mut self, body: &'k [Statement]) -> Result<(), String> {
        for statement in body {
            match statement {
                Statement::For { var, extent, body } => {
                    self.tops[*var] = *extent as i64 - 1;
                    self.block(body)?;
                }
                Statement::When { conditions, body } => {
                    let (outer, known) = (self.tops.clone(), self.something.len());
                    for condition in conditions {
                        match *condition {
                            Condition::Below(var, bound) => {
                                self.tops[var] = self.tops[var].min(bound as i64 - 1);
                            }
                            Condition::Something(var) => self.something.push(var),
                            _ => {}
                        }
                    }
                    self.block(body)?;
                    self.tops = outer;
                    self.something.truncate(known);
                }
                Statement::Set(var) => self.set(*var)?,
                other => self.statement(other)?,
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), String> {
        let lanes = self.kernel.lanes;
        match statement {
            Statement::Let(value) => self.load(&self.kernel.values[*value].op),
            Statement::StoreLanes(array, at, _) => self.rows(*array, at, lanes, lanes),
            Statement::Scatter { target, to, .. } => self.indexed(*target, to),
            Statement::ScatterEdge { target, map, at, scale, values } => {
                at.iter().try_for_each(|at| {
                    let mut offsets = values.iter().map(|(offset, _)| *offset);
                    offsets.try_for_each(|offset| {
                        let (map, scale, masked) = (*map, *scale, false);
                        let to = IndirectIndex { map, at: at.clone(), scale, offset, masked };
                        self.indexed(*target, &to)
                    })
                })
            }
            Statement::GatherRun { source: array, run }
            | Statement::ScatterRun { target: array, run, .. } => self.run(*array, run),
            Statement::StoreAt { target, var, scale, offset, .. } => {
                self.element(*target, *var, (*scale, *offset), self.something.contains(var));
                Ok(())
            }
            Statement::PrefetchIndexed { map, entries, .. } => {
                let declared = self.extent(*map);
                let fits = declared == entries * lanes;
                self.require(fits, *map, || format!("{entries} entries of {lanes} lanes"))
            }
            // No memory access, or one without a bound to prove.
            Statement::For { .. }
            | Statement::When { .. }
            | Statement::StoreLocal(..)
            | Statement::StoreShared(..)
            | Statement::StoreInteger(..)
            | Statement::Set(_)
            | Statement::Barrier
            | Statement::Fence
            | Statement::Stage
            | Statement::Prefetch(..)
            | Statement::Recompute(_)
            | Statement::Comment(_) => Ok(()),
        }
    }

    fn load(&mut self, op: &Op) -> Result<(), String> {
        let lanes = self.kernel.lanes;
        match op {
            Op::LoadLanes(array, at) => self.rows(*array, at, lanes, lanes),
            Op::LoadUniform(array, at) => self.rows(*array, at, 1, 1),
            Op::Flag { masks, at, .. } => self.rows(*masks, at, lanes, lanes),
            Op::Gather { source, from } => self.indexed(*source, from),
            Op::LoadAt { source, var, scale, offset, masked } => {
                self.element(*source, *var, (*scale, *offset), *masked);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Records `array[map[at] · scale + offset]`.
    fn indexed(&mut self, array: ArgumentId, place: &IndirectIndex) -> Result<(), String> {
        let lanes = self.kernel.lanes;
        let &IndirectIndex { map, scale, offset, masked, .. } = place;
        self.rows(map, &place.at, lanes, lanes)?;
        self.touch((map.index(), array.index(), scale, masked, None), offset as i64);
        Ok(())
    }

    /// Records `length` elements of `array` from `map[at] · scale` on.
    fn run(&mut self, array: ArgumentId, run: &Run) -> Result<(), String> {
        let lanes = self.kernel.lanes;
        let &Run { map, scale, length, masked, .. } = run;
        if let Positions::Row(positions, start) = &run.positions {
            self.rows(*positions, start, 1, run.first + length)?;
            // Entries are compared with the extent at a launch.
            let of_lines = |local| run.line() * self.kernel.locals[local].length;
            let fits = run.locals().all(|local| self.extent(*positions) <= of_lines(local));
            self.require(fits, *positions, || run.local.to_string())?;
        }
        // Rows of four reals that begin at multiples of four are read whole.
        let length = if scale == 4 { length.next_multiple_of(4) } else { length };
        self.rows(map, &run.at, lanes, lanes)?;
        let (entries, _) = self.range(&run.at);
        let part = (entries.start as usize * lanes, entries.end as usize * lanes);
        self.touch((map.index(), array.index(), scale, masked, Some(part)), length as i64 - 1);
        Ok(())
    }

    fn set(&mut self, var: VarId) -> Result<(), String> {
        let Some(integer) = self.kernel.integer(var) else { return Ok(()) };
        self.tops[var] = self.kernel.top_of(integer, |of| self.tops[of]);
        match integer {
            Integer::Element(map, at) => self.rows(*map, at, 1, 1),
            Integer::Entry(..) | Integer::Rest(..) => Ok(()),
        }
    }

    /// Records `array[var · scale + offset]`.
    fn element(
        &mut self,
        array: ArgumentId,
        var: VarId,
        (scale, offset): (usize, usize),
        masked: bool,
    ) {
        if let Some(Integer::Element(map, _)) = self.kernel.integer(var) {
            self.touch((map.index(), array.index(), scale, masked, None), offset as i64);
        }
    }

    fn touch(&mut self, key: Key, last: i64) {
        let most = self.found.entry(key).or_insert(last);
        *most = last.max(*most);
    }

    /// Checks that elements `at · factor` to `at · factor + width − 1` lie within the rows of their batch.
    fn rows(
        &self,
        array: ArgumentId,
        at: &Index,
        factor: usize,
        width: usize,
    ) -> Result<(), String> {
        let (range, batch) = self.range(at);
        let (argument, extent) = (&self.arguments[array.index()], self.extent(array));
        let wanted = match argument.role {
            Role::Params | Role::Tables => 0,
            _ => extent as i64,
        };
        let last = (range.end - 1) * factor as i64 + width as i64 - 1;
        let fits = extent > 0 && batch * factor as i64 == wanted && last < extent as i64;
        self.require(fits && range.start >= 0, array, || format!("{at:?} times {factor}"))
    }

    fn extent(&self, array: ArgumentId) -> usize {
        self.arguments[array.index()].extent
    }

    fn require(
        &self,
        is_true: bool,
        array: ArgumentId,
        what: impl FnOnce() -> String,
    ) -> Result<(), String> {
        if is_true {
            return Ok(());
        }
        let Argument { name, extent, .. } = &self.arguments[array.index()];
        Err(format!("`{name}` with {extent} elements a batch is accessed at {}", what()))
    }

    /// Returns the range of an index within a batch, and its factor of the batch.
    fn range(&self, index: &Index) -> (Range<i64>, i64) {
        let (low, high, batch) = self.kernel.range(index, |var| self.tops[var]);
        (low..high + 1, batch)
    }
}
