//! What a kernel touches of its arguments: a verified [`Kernel`] and the extents of its arguments → [`Reach`]es.
//!
//! Where an index array is followed, the largest index decides how far a kernel reaches: whoever launches it compares
//! that with the array's length. What is accessed batch by batch must lie within the extent that the interface names,
//! which is proved here, once for all launches.

use super::{Argument, Reach, Role};
use crate::kir::{ArgumentId, Index, Kernel, Op, Slots, Statement, VarId};
use fem_dsl::arena::{Id, IndexVec};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is touched through index arrays, in a fixed order; or what leaves the extent of an argument.
pub fn reaches(kernel: &Kernel, arguments: &[Argument]) -> Result<Vec<Reach>, String> {
    let tops = kernel.vars.iter().map(|var| match var.thread {
        Some(thread) => kernel.thread_bound(thread) as i64 - 1,
        None => 0,
    });
    let mut finder = Finder { kernel, arguments, tops: tops.collect(), found: BTreeMap::new() };
    if let Some(active) = kernel.active {
        finder.rows(active, &Index::from(kernel.batch()), 1, 1)?;
    }
    finder.block(&kernel.body)?;
    let found = finder.found.into_iter();
    let reach = |((map, array, scale, masked, part), last): (Key, i64)| Reach {
        map,
        array,
        scale,
        last,
        masked,
        part: part.map(|(from, to)| from..to),
    };
    Ok(found.map(reach).collect())
}

/// Index array, array, scale, whether `u32::MAX` is nothing, and the part of a row if it is not all.
type Key = (usize, usize, usize, bool, Option<(usize, usize)>);

struct Finder<'k> {
    kernel: &'k Kernel,
    arguments: &'k [Argument],
    /// The largest value of each variable at this place.
    tops: IndexVec<VarId, i64>,
    /// The last element of each.
    found: BTreeMap<Key, i64>,
}

impl<'k> Finder<'k> {
    /// Recursive in the depth of loops, which strategies bound.
    fn block(&mut self, body: &'k [Statement]) -> Result<(), String> {
        for statement in body {
            match statement {
                Statement::For { var, extent, body } => {
                    self.tops[*var] = *extent as i64 - 1;
                    self.block(body)?;
                }
                Statement::When { below, body, .. } => {
                    let outer = self.tops.clone();
                    for &(var, bound) in below {
                        self.tops[var] = self.tops[var].min(bound as i64 - 1);
                    }
                    self.block(body)?;
                    self.tops = outer;
                }
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
            Statement::Scatter { target, map, at, scale, offset, masked, .. } => {
                self.indexed((*map, *target), at, (*scale, *offset), *masked)
            }
            Statement::ScatterEdge { target, map, at, scale, values } => {
                at.iter().try_for_each(|at| {
                    let mut offsets = values.iter().map(|(offset, _)| *offset);
                    offsets.try_for_each(|offset| {
                        self.indexed((*map, *target), at, (*scale, offset), false)
                    })
                })
            }
            Statement::GatherRun { source: array, map, at, scale, length, .. }
            | Statement::ScatterRun { target: array, map, at, scale, length, .. } => {
                // Rows of four numbers are taken whole where they begin at multiples of four.
                let length = if *scale == 4 { length.next_multiple_of(4) } else { *length };
                self.run((*map, *array), at, *scale, length)
            }
            Statement::GatherSlots { source: array, slots }
            | Statement::ScatterSlots { target: array, slots, .. } => self.slots(*array, slots),
            Statement::LoadTerms { terms, map, at, step } => {
                let length = self.kernel.terms[*terms].length;
                self.rows(*map, at, lanes, lanes + (length - 1) * step)
            }
            Statement::PrefetchIndexed { map, entries, .. } => {
                let declared = self.extent(*map);
                let fits = declared == entries * lanes;
                self.require(fits, *map, || format!("{entries} entries of {lanes} lanes"))
            }
            // Nothing of memory, or what may lie anywhere.
            Statement::For { .. }
            | Statement::When { .. }
            | Statement::StoreLocal(..)
            | Statement::StoreShared(..)
            | Statement::StoreTerm { .. }
            | Statement::Clear { .. }
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
            Op::Gather { source, map, at, scale, offset, masked } => {
                self.indexed((*map, *source), at, (*scale, *offset), *masked)
            }
            _ => Ok(()),
        }
    }

    /// `array[map[at] · scale + offset]`.
    fn indexed(
        &mut self,
        (map, array): (ArgumentId, ArgumentId),
        at: &Index,
        (scale, offset): (usize, usize),
        masked: bool,
    ) -> Result<(), String> {
        let lanes = self.kernel.lanes;
        self.rows(map, at, lanes, lanes)?;
        self.touch((map.index(), array.index(), scale, masked, None), offset as i64);
        Ok(())
    }

    /// `length` elements of `array` from `map[at] · scale` on.
    fn run(
        &mut self,
        (map, array): (ArgumentId, ArgumentId),
        at: &Index,
        scale: usize,
        length: usize,
    ) -> Result<(), String> {
        let lanes = self.kernel.lanes;
        self.rows(map, at, lanes, lanes)?;
        let (entries, _) = self.range(at);
        let part = (entries.start as usize * lanes, entries.end as usize * lanes);
        self.touch((map.index(), array.index(), scale, false, Some(part)), length as i64 - 1);
        Ok(())
    }

    fn slots(&mut self, array: ArgumentId, slots: &Slots) -> Result<(), String> {
        self.rows(slots.map, &slots.at.plus(slots.count - 1), 1, 1)?;
        for &(offset, _) in &slots.parts {
            let key = (slots.map.index(), array.index(), slots.scale, true, None);
            self.touch(key, offset as i64);
        }
        Ok(())
    }

    fn touch(&mut self, key: Key, last: i64) {
        let most = self.found.entry(key).or_insert(last);
        *most = last.max(*most);
    }

    /// Elements `at · factor` to `at · factor + width − 1` lie within the rows of their batch.
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
        holds: bool,
        array: ArgumentId,
        what: impl FnOnce() -> String,
    ) -> Result<(), String> {
        if holds {
            return Ok(());
        }
        let Argument { name, extent, .. } = &self.arguments[array.index()];
        Err(format!("`{name}` with {extent} elements a batch is accessed at {}", what()))
    }

    /// The values of an index within a batch, and the batch's factor.
    fn range(&self, index: &Index) -> (Range<i64>, i64) {
        let (mut low, mut high, mut batch) = (index.constant, index.constant, 0);
        for &(var, factor) in &index.terms {
            let rule = self.kernel.vars[var].thread;
            if var == self.kernel.batch() || matches!(rule, Some(crate::kir::Thread::Batch { .. }))
            {
                batch += factor;
                continue;
            }
            low += (factor * self.tops[var]).min(0);
            high += (factor * self.tops[var]).max(0);
        }
        (low..high + 1, batch)
    }
}
