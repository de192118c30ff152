//! What each place of a matrix adds up of what cells have stored: places of elements → [`Lists`].

use crate::device::DeviceError;
use crate::operator::engine::{Array, Engine};
use crate::operator::matrix::sparsity::each_somewhere;
use crate::support::parallel::*;
use kernels_gen::dialect::c::sum::UNKNOWNS;
use std::sync::atomic::{AtomicU32, Ordering};

/// Elements or places that are worth a thread.
const GRAIN: usize = 1 << 12;

/// What each place of a matrix adds up of what the cells of a block have stored.
pub(in crate::operator) struct Lists {
    /// Where the list of each place begins, and the end of the last; places that fill up a group of threads have none.
    pub(in crate::operator) starts: Array,
    /// Elements of what is stored.
    pub(in crate::operator) elements: Array,
}

impl Lists {
    /// The lists of `n` places, from the place of each element.
    pub(super) fn new(engine: &dyn Engine, n: usize, places: &[u32]) -> Result<Self, DeviceError> {
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
        // Whoever came first, lists are in the order of the elements.
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
        let array = |indices| engine.indices(indices, 1, 1);
        Ok(Self { starts: array(starts)?, elements: array(elements)? })
    }
}
