//! Concurrent additions of chunks to one vector. A [`Schedule`] is a proof that unordered chunks of a partition write
//! to disjoint places.
//!
//! The proof visits every written index once. Index arrays are immutable ([`IndexArray`]), so it remains valid for all
//! passes. Each launch is only checked to use the same arrays. The result does not depend on the number of threads.

use super::{IndexArray, Launch, LaunchError, PlainNumber, SharedSlice};
use crate::mesh::partition::Partition;
use kernels_gen::abi::{IndirectAccess, KernelAbi};
use rayon::Scope;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Two unordered chunks that write to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the chunks {} and {} of the cells write to one place, and neither waits for the other; are mesh, spaces and partition \
     of one discretisation?",
    chunks[0], chunks[1]
)]
pub struct UnorderedChunks {
    /// The chunks.
    pub chunks: [usize; 2],
}

/// Writes of batches through an index array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchWrites<'a> {
    /// The kernel's interface.
    pub(crate) abi: &'a KernelAbi,
    /// The position of the index array among the arguments.
    pub(crate) map: usize,
    /// The position of the written array.
    pub(crate) array: usize,
    /// The indices.
    pub(crate) indices: &'a IndexArray,
    /// The batches of each chunk.
    pub(crate) parts: &'a [Range<usize>],
    /// The start of the part of the vector to which the indices refer.
    pub(crate) first: usize,
}

/// Proof for an index array: the batches of each chunk may write through it to a part of the vector.
#[derive(Debug)]
struct WriteProof {
    id: u64,
    /// The start of that part.
    first: usize,
    reaches: Vec<IndirectAccess>,
    parts: Vec<Range<usize>>,
}

/// Returns whether two accesses are equal up to the positions of their arguments.
fn alike(a: &IndirectAccess, b: &IndirectAccess) -> bool {
    (a.scale, a.last, a.masked, &a.part) == (b.scale, b.last, b.masked, &b.part)
}

/// Returns the accesses of a kernel to one argument through another.
fn through(abi: &KernelAbi, map: usize, array: usize) -> impl Iterator<Item = &IndirectAccess> {
    abi.reaches.iter().filter(move |reach| (reach.map, reach.array) == (map, array))
}

/// The order of chunks and their permitted writes.
#[derive(Debug)]
pub(crate) struct Schedule {
    len: usize,
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    /// The ranges that each chunk clears before its batches run.
    clears: Vec<Vec<Range<usize>>>,
    proved: Vec<WriteProof>,
}

impl Schedule {
    /// Proves that the chunks of a partition may perform these writes to a vector of `len` elements.
    pub(crate) fn new(
        partition: &Partition,
        len: usize,
        clears: Vec<Vec<Range<usize>>>,
        writes: &[BatchWrites<'_>],
    ) -> Result<Self, UnorderedChunks> {
        let chunks = 0..partition.chunks().len();
        let mut proved: Vec<WriteProof> = Vec::new();
        let mut fresh: Vec<&BatchWrites<'_>> = Vec::new();
        for of in writes {
            let reaches: Vec<IndirectAccess> = through(of.abi, of.map, of.array).cloned().collect();
            let one = WriteProof {
                id: of.indices.id(),
                first: of.first,
                reaches,
                parts: of.parts.to_vec(),
            };
            if !proved.iter().any(|known| known.covers(&one)) {
                fresh.push(of);
                proved.push(one);
            }
        }
        // The last chunk that accesses each element. Chunks wait for their predecessors, so comparison with the last
        // one suffices.
        let mut touched =
            LastAccesses { partition, last: vec![NOBODY; len], known: (NOBODY, NOBODY) };
        for chunk in chunks.clone() {
            for range in clears.get(chunk).into_iter().flatten() {
                touched.touch(chunk as u32, range.clone())?;
            }
            for (of, proved) in fresh.iter().zip(&proved) {
                let extent = of.abi.arguments[of.map].extent;
                for batch in of.parts.get(chunk).cloned().into_iter().flatten() {
                    let row = &of.indices[batch * extent..(batch + 1) * extent];
                    for reach in &proved.reaches {
                        let part = reach.part.clone().and_then(|part| row.get(part));
                        let touches = |index: &&u32| !(reach.masked && **index == u32::MAX);
                        for &index in part.unwrap_or(row).iter().filter(touches) {
                            let place = of.first + index as usize * reach.scale;
                            let elements = place..place + (reach.last + 1) as usize;
                            touched.touch(chunk as u32, elements)?;
                        }
                    }
                }
            }
        }
        let before = chunks.clone().map(|chunk| partition.before(chunk).to_vec());
        let after = chunks.map(|chunk| partition.after(chunk).to_vec());
        Ok(Self { len, before: before.collect(), after: after.collect(), clears, proved })
    }

    /// Borrows a vector for the launches of one pass.
    pub(crate) fn lend<'a, T: PlainNumber>(&self, vector: &'a mut [T]) -> SharedSlice<'a, T> {
        SharedSlice::new(vector)
    }

    /// Returns the number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.before.len()
    }

    /// Clears the vector and runs all batches of the launches, which add to it, chunk by chunk.
    pub(crate) fn run<T: PlainNumber>(
        &self,
        vector: &SharedSlice<'_, T>,
        launches: &[Launch<'_>],
    ) -> Result<(), LaunchError> {
        self.run_some(0..self.chunks(), vector, launches)
    }

    /// Like [`run`](Self::run), for some chunks. Their ranges are not written otherwise, and their predecessors have
    /// run.
    pub(crate) fn run_some<T: PlainNumber>(
        &self,
        chunks: Range<usize>,
        vector: &SharedSlice<'_, T>,
        launches: &[Launch<'_>],
    ) -> Result<(), LaunchError> {
        assert_eq!(vector.len(), self.len, "a schedule is for vectors of one length");
        let parts = launches.iter().map(|launch| {
            let parts = self.parts(vector, launch).ok_or_else(|| launch.overlapping())?;
            parts.iter().try_for_each(|part| launch.holds(part))?;
            Ok((launch, parts))
        });
        let parts: Vec<(&Launch<'_>, &[Range<usize>])> = parts.collect::<Result<_, _>>()?;
        let failed = OnceLock::new();
        self.execute(chunks, &|chunk| {
            for range in self.clears.get(chunk).into_iter().flatten() {
                // SAFETY: chunks that clear or write these elements are ordered, as proved.
                unsafe { vector.fill(range.clone(), T::default()) };
            }
            for (launch, parts) in &parts {
                let Some(batches) = parts.get(chunk) else { continue };
                // SAFETY: the arguments have data for all parts. The launch writes elements of the vector through index
                // arrays for which `new` proved that no two concurrent chunks write one element. The vector is borrowed
                // exclusively, and nobody writes the data that the launch reads.
                if let Err(error) = unsafe { launch.run_beside_others(batches.clone()) } {
                    let _ = failed.set(error);
                }
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Returns the batches of each chunk, if all writes of a launch are proved parts of the vector; `None` otherwise or
    /// without writes.
    fn parts<T: PlainNumber>(
        &self,
        vector: &SharedSlice<'_, T>,
        launch: &Launch<'_>,
    ) -> Option<&[Range<usize>]> {
        let (abi, arguments) = launch.parts();
        let mut parts: Option<&[Range<usize>]> = None;
        for (array, wanted) in abi.arguments.iter().enumerate().filter(|(_, wanted)| wanted.written)
        {
            let first = vector.place_of(&arguments[array])?;
            // Kernels of pairs of cells write an array through the index arrays of both.
            let reaches = || abi.reaches.iter().filter(|reach| reach.array == array);
            // No access at all, for instance gradients of constant test functions.
            if reaches().next().is_none() && wanted.extent > 0 {
                return None;
            }
            for map in reaches().map(|reach| reach.map).collect::<BTreeSet<usize>>() {
                let id = arguments[map].id()?;
                let known = self.proved.iter().find(|proved| {
                    let same = (proved.id, proved.first) == (id, first);
                    same && proved.is_of(through(abi, map, array))
                        && parts.is_none_or(|parts| parts == proved.parts)
                })?;
                parts = Some(&known.parts);
            }
        }
        Some(parts.unwrap_or_default())
    }

    /// Calls `run` for each chunk after its neighbours that precede it. On one thread this is the execution order
    /// itself.
    fn execute(&self, chunks: Range<usize>, run: &(impl Fn(usize) + Sync)) {
        if chunks.len() <= 1 || rayon::current_num_threads() == 1 {
            chunks.for_each(run);
            return;
        }
        let within = |chunk: &&u32| chunks.contains(&(**chunk as usize));
        let count = |chunk: usize| match chunks.contains(&chunk) {
            true => self.before[chunk].iter().filter(within).count() as u32,
            // Not run same.
            false => u32::MAX,
        };
        let waiting: Vec<AtomicU32> =
            (0..self.before.len()).map(|chunk| AtomicU32::new(count(chunk))).collect();
        let state = TaskState { after: &self.after, waiting: &waiting, run };
        rayon::scope(|scope| {
            // The last spawned task is the first that this thread takes.
            for chunk in chunks.clone().rev().filter(|&chunk| count(chunk) == 0) {
                scope.spawn(move |scope| state.visit(scope, chunk));
            }
        });
    }
}

impl WriteProof {
    /// Returns whether these are the accesses of a kernel.
    fn is_of<'a>(&self, mut reaches: impl Iterator<Item = &'a IndirectAccess>) -> bool {
        let mut own = self.reaches.iter();
        reaches.all(|reach| own.next().is_some_and(|own| alike(own, reach))) && own.next().is_none()
    }

    /// Returns whether this proof implies another one.
    fn covers(&self, other: &Self) -> bool {
        let same = (self.id, self.first) == (other.id, other.first) && self.parts == other.parts;
        same && self.is_of(other.reaches.iter())
    }
}

/// No chunk.
const NOBODY: u32 = u32::MAX;

/// The last chunk that accesses each element.
struct LastAccesses<'p> {
    partition: &'p Partition,
    last: Vec<u32>,
    /// The last pair of chunks known to be ordered.
    known: (u32, u32),
}

impl LastAccesses<'_> {
    /// Records the elements that a chunk accesses; chunks come in ascending order.
    fn touch(&mut self, chunk: u32, elements: Range<usize>) -> Result<(), UnorderedChunks> {
        // Launches with indices beyond the vector are rejected.
        let end = elements.end.min(self.last.len());
        for last in self.last.get_mut(elements.start..end).unwrap_or_default() {
            if *last == chunk {
                continue;
            }
            if *last != NOBODY && self.known != (*last, chunk) {
                if self.partition.before(chunk as usize).binary_search(last).is_err() {
                    return Err(UnorderedChunks { chunks: [*last as usize, chunk as usize] });
                }
                self.known = (*last, chunk);
            }
            *last = chunk;
        }
        Ok(())
    }
}

/// State shared by all tasks.
struct TaskState<'s, F> {
    after: &'s [Vec<u32>],
    /// For each chunk, the number of neighbours to wait for.
    waiting: &'s [AtomicU32],
    run: &'s F,
}

impl<F> Clone for TaskState<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for TaskState<'_, F> {}

impl<'s, F: Fn(usize) + Sync> TaskState<'s, F> {
    fn visit(self, scope: &Scope<'s>, chunk: usize) {
        (self.run)(chunk);
        for &next in self.after[chunk].iter().rev() {
            // The last neighbour sees the writes of all others.
            if self.waiting[next as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                scope.spawn(move |scope| self.visit(scope, next as usize));
            }
        }
    }
}
