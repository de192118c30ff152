//! Shared degrees of freedom: lists of them → sums and synchronisation between processes ([`InterfaceExchange`]).
//!
//! Each process stores the degrees of freedom of its cells. Those on the interface are stored on several processes, in
//! one common order, with equal values in all vectors. Sums over cells are complete only with the contributions of
//! other processes:
//!
//! ```text
//! y_i ← Σ of the values of all processes that store i, in rank order     bitwise equal on all processes
//! x·y = Σ over all processes of Σ x_i y_i over the unknowns that no lower rank stores
//! ```
//!
//! An operator application therefore takes one message to and from each neighbour; entrywise operations take none.

use crate::processes::{Parcel, ProcessGroup, Reduction};
use std::ops::Range;
use std::sync::Arc;

/// Marks the local value among the sources of a sum.
const OWN: usize = usize::MAX;

/// A number type for messages: `f64` or `f32`.
pub trait MessageNumber: Copy + Into<f64> {
    /// Rounds to this type.
    fn nearest(value: f64) -> Self;
}

impl MessageNumber for f64 {
    fn nearest(value: f64) -> Self {
        value
    }
}

impl MessageNumber for f32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to single precision is the purpose"
    )]
    fn nearest(value: f64) -> Self {
        value as Self
    }
}

/// A degree of freedom shared with other processes.
#[derive(Clone, Copy, Debug)]
pub struct SharedDof<'a> {
    /// Its index in vectors.
    pub unknown: usize,
    /// All processes that share it, including this one: first the owner, usually the smallest rank, then the others,
    /// ascending.
    pub ranks: &'a [u32],
}

/// The degrees of freedom shared with other processes.
#[derive(Debug)]
pub struct InterfaceExchange {
    group: Arc<dyn ProcessGroup>,
    neighbours: Vec<Neighbour>,
    /// The shared degrees of freedom.
    shared: Vec<usize>,
    /// The start of the sources of each.
    starts: Vec<usize>,
    /// [`OWN`], or an index into the values received from all neighbours, by rank.
    sources: Vec<usize>,
    /// Ranges of degrees of freedom owned by another process, usually one with a smaller rank.
    others: Vec<Range<usize>>,
}

/// A process with common degrees of freedom.
#[derive(Debug)]
struct Neighbour {
    rank: usize,
    /// The degrees of freedom in the common order.
    unknowns: Vec<usize>,
}

/// Shared entries of vectors, by index.
#[derive(Clone, Debug, Default)]
pub struct SharedEntryLists {
    /// The entries to send to each neighbour, in the common order.
    pub sent: Vec<(usize, Vec<u32>)>,
    /// The shared entries.
    pub dofs: Vec<u32>,
    /// The start of the sources of each, and the end of the last.
    pub starts: Vec<u32>,
    /// `u32::MAX` for the local entry, or an index into the values received from all neighbours, by rank.
    pub sources: Vec<u32>,
    /// The entries owned by another process.
    pub others: Vec<u32>,
}

impl InterfaceExchange {
    /// Creates the exchange from shared degrees of freedom, listed in one common order on all processes.
    pub fn new<'a>(
        group: Arc<dyn ProcessGroup>,
        all: impl Iterator<Item = SharedDof<'a>> + Clone,
    ) -> Self {
        let own = group.rank();
        let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); group.size()];
        for SharedDof { unknown, ranks } in all.clone() {
            let others = ranks.iter().filter(|&&rank| rank as usize != own);
            others.for_each(|&rank| of_rank[rank as usize].push(unknown));
        }
        let (mut first, mut next) = (vec![0; group.size()], 0);
        for (first, unknowns) in first.iter_mut().zip(&of_rank) {
            *first = next;
            next += unknowns.len();
        }
        let (mut shared, mut starts, mut sources) = (Vec::new(), vec![0], Vec::new());
        let mut of_others = Vec::new();
        for SharedDof { unknown, ranks } in all {
            shared.push(unknown);
            for &rank in ranks {
                if rank as usize == own {
                    sources.push(OWN);
                } else {
                    let place = &mut first[rank as usize];
                    sources.push(*place);
                    *place += 1;
                }
            }
            starts.push(sources.len());
            if ranks.first().is_some_and(|&rank| rank as usize != own) {
                of_others.push(unknown);
            }
        }
        of_others.sort_unstable();
        let mut others: Vec<Range<usize>> = Vec::new();
        for unknown in of_others {
            match others.last_mut() {
                Some(last) if last.end == unknown => last.end += 1,
                _ => others.push(unknown..unknown + 1),
            }
        }
        let neighbours = of_rank.into_iter().enumerate();
        let neighbours = neighbours.filter(|(_, unknowns)| !unknowns.is_empty());
        let neighbours = neighbours.map(|(rank, unknowns)| Neighbour { rank, unknowns }).collect();
        Self { group, neighbours, shared, starts, sources, others }
    }

    /// Returns the exchange in terms of indices in vectors with another layout.
    pub fn lists(&self, place: impl Fn(usize) -> u32) -> SharedEntryLists {
        let places = |unknowns: &[usize]| unknowns.iter().map(|&own| place(own)).collect();
        let source = |&at: &usize| if at == OWN { u32::MAX } else { at as u32 };
        SharedEntryLists {
            sent: self.neighbours.iter().map(|own| (own.rank, places(&own.unknowns))).collect(),
            dofs: places(&self.shared),
            starts: self.starts.iter().map(|&start| start as u32).collect(),
            sources: self.sources.iter().map(source).collect(),
            others: self.others.iter().cloned().flatten().map(place).collect(),
        }
    }

    /// Returns the process group.
    pub fn group(&self) -> &Arc<dyn ProcessGroup> {
        &self.group
    }

    /// Degrees of freedom owned by other processes, in ascending ranges; global sums skip them here.
    pub fn others(&self) -> &[Range<usize>] {
        &self.others
    }

    /// Returns the number of degrees of freedom owned by this process, out of `unknowns` local ones.
    pub fn counted(&self, unknowns: usize) -> usize {
        unknowns - self.others.iter().map(Range::len).sum::<usize>()
    }

    /// Returns whether another process owns a degree of freedom, usually one with a smaller rank.
    pub fn is_of_others(&self, unknown: usize) -> bool {
        let at = self.others.partition_point(|range| range.end <= unknown);
        self.others.get(at).is_some_and(|range| range.contains(&unknown))
    }

    /// Packs the values for each neighbour, with space for the received ones.
    pub fn parcels<T: MessageNumber>(&self, y: &[T]) -> Vec<Parcel> {
        let parcel = |neighbour: &Neighbour| Parcel {
            with: neighbour.rank,
            sent: neighbour.unknowns.iter().map(|&unknown| y[unknown].into()).collect(),
            received: vec![0.0; neighbour.unknowns.len()],
        };
        self.neighbours.iter().map(parcel).collect()
    }

    /// Combines the values of all processes for each shared degree of freedom, by rank.
    fn combine<T: MessageNumber>(
        &self,
        parcels: &[Parcel],
        y: &mut [T],
        of: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
    ) {
        let received: Vec<f64> =
            parcels.iter().flat_map(|parcel| &parcel.received).copied().collect();
        for (&unknown, range) in self.shared.iter().zip(self.starts.windows(2)) {
            let own: f64 = y[unknown].into();
            let sources = self.sources[range[0]..range[1]].iter();
            let mut values = sources.map(|&at| if at == OWN { own } else { received[at] });
            y[unknown] = T::nearest(of(&mut values));
        }
    }

    /// Exchanges and combines.
    fn exchanged<T: MessageNumber>(
        &self,
        y: &mut [T],
        of: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
    ) {
        let mut parcels = self.parcels(y);
        self.group.exchange(&mut parcels, &mut || ());
        self.combine(&parcels, y, of);
    }

    /// Sums shared entries over all their processes, from received parcels.
    pub fn add<T: MessageNumber>(&self, parcels: &[Parcel], y: &mut [T]) {
        self.combine(parcels, y, |values| values.sum());
    }

    /// Sums shared entries over all their processes.
    pub fn sum<T: MessageNumber>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.sum());
    }

    /// Sets shared entries to the value of their owner.
    pub fn synchronise<T: MessageNumber>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.next().unwrap_or_default());
    }

    /// Sets shared entries to their maximum over all processes.
    pub fn largest<T: MessageNumber>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.fold(f64::NEG_INFINITY, f64::max));
    }

    /// Sets shared entries to their minimum over all processes.
    pub fn least<T: MessageNumber>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.fold(f64::INFINITY, f64::min));
    }

    /// Returns the values of each shared degree of freedom on all its processes, by rank.
    pub fn all<T: MessageNumber>(&self, y: &[T]) -> Vec<(usize, Vec<f64>)> {
        let mut parcels = self.parcels(y);
        self.group.exchange(&mut parcels, &mut || ());
        let received: Vec<f64> = parcels.into_iter().flat_map(|parcel| parcel.received).collect();
        let of = |(&unknown, range): (&usize, &[usize])| {
            let own: f64 = y[unknown].into();
            let sources = self.sources[range[0]..range[1]].iter();
            (unknown, sources.map(|&at| if at == OWN { own } else { received[at] }).collect())
        };
        self.shared.iter().zip(self.starts.windows(2)).map(of).collect()
    }

    /// Gathers a global vector from local ones, given the global index of each entry. Each entry is that of its owner,
    /// to the bit: −0 is neutral in sums, even of signed zeros.
    pub fn gathered(&self, own: &[f64], places: &[usize], all: usize) -> Vec<f64> {
        let mut numbers = vec![-0.0; all];
        let first = (0..own.len()).filter(|&at| !self.is_of_others(at));
        first.for_each(|at| numbers[places[at]] = own[at]);
        self.total(&mut numbers);
        numbers
    }

    /// Sums over all processes.
    pub fn total(&self, sums: &mut [f64]) {
        self.group.reduce(Reduction::Sum, sums);
    }
}
