//! Summation lists of matrix entries over stored cell contributions ([`SummationLists`]).

use crate::device::DeviceError;
use crate::operator::matrix::sparsity::each_somewhere;
use crate::operator::memory::{Memory, MemoryArray};
use crate::support::parallel::*;
use kernels_gen::dialect::c::sum::UNKNOWNS;
use std::sync::atomic::{AtomicU32, Ordering};

/// Minimum number of elements or entries per task.
const GRAIN: usize = 1 << 12;

/// Summation lists of all matrix entries over the stored elements of a block.
pub(in crate::operator) struct SummationLists {
    /// Offset of each entry's list, and the end of the last; padding entries have empty lists.
    pub(in crate::operator) starts: MemoryArray,
    /// Indices of stored elements.
    pub(in crate::operator) elements: MemoryArray,
}

impl SummationLists {
    /// Builds the lists of `n` entries from the position of each element.
    pub(super) fn new(memory: &dyn Memory, n: usize, places: &[u32]) -> Result<Self, DeviceError> {
        let number = |_| AtomicU32::new(0);
        let numbers = |n: usize| (0..n).into_par_iter().with_min_len(GRAIN).map(number).listed();
        let counts = numbers(n.next_multiple_of(UNKNOWNS) + 1);
        each_somewhere(places, &|_, place| {
            counts[place as usize + 1].fetch_add(1, Ordering::Relaxed);
        });
        let mut starts: Vec<u32> = counts.into_iter().map(AtomicU32::into_inner).collect();
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let next: Vec<AtomicU32> =
            starts.par_iter().with_min_len(GRAIN).map(|&start| AtomicU32::new(start)).listed();
        let elements = numbers(starts[n] as usize);
        each_somewhere(places, &|element, place| {
            let at = next[place as usize].fetch_add(1, Ordering::Relaxed);
            elements[at as usize].store(element as u32, Ordering::Relaxed);
        });
        let mut elements: Vec<u32> = elements.into_iter().map(AtomicU32::into_inner).collect();
        // Sorting restores the element order after concurrent insertion.
        let mut lists = Vec::with_capacity(n.div_ceil(GRAIN));
        let mut rest = &mut elements[..];
        for first in (0..n).step_by(GRAIN) {
            let range = first..n.min(first + GRAIN);
            let length = (starts[range.end] - starts[range.start]) as usize;
            let (part, behind) = rest.split_at_mut(length);
            lists.push((range, part));
            rest = behind;
        }
        lists.into_par_iter().each(|(range, part)| {
            let before = starts[range.start];
            for place in range {
                let list = starts[place] - before..starts[place + 1] - before;
                part[list.start as usize..list.end as usize].sort_unstable();
            }
        });
        let array = |indices| memory.indices(indices, 1, 1);
        Ok(Self { starts: array(starts)?, elements: array(elements)? })
    }
}
