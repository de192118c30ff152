//! Unknowns that several processes have: from lists of them to sums and agreement between processes ([`Sharing`]).
//!
//! Each process has the unknowns of its cells, so that those on a cut are at several, in one order at all. A vector has the
//! same number there at each of them. What cells add up to is only complete with what the others' cells have:
//!
//! ```text
//! y_i ← Σ over the processes that have i, in the order of their numbers, of what each has     the same bits at all
//! x·y = Σ over all processes of Σ x_i y_i over the unknowns that no process before has
//! ```
//!
//! So a product with an operator takes one message to and from each neighbour, and everything else that is done entry by
//! entry takes none.

use crate::processes::{Group, Parcel, Reduce};
use std::ops::Range;
use std::sync::Arc;

/// Stands for what this process has among the sources of a sum.
const OWN: usize = usize::MAX;

/// A number that can be sent: `f64` or `f32`.
pub trait Number: Copy + Into<f64> {
    /// The nearest number of this type.
    fn nearest(value: f64) -> Self;
}

impl Number for f64 {
    fn nearest(value: f64) -> Self {
        value
    }
}

impl Number for f32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to single precision is the purpose"
    )]
    fn nearest(value: f64) -> Self {
        value as Self
    }
}

/// An unknown that other processes have too.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a> {
    /// Its place in vectors.
    pub unknown: usize,
    /// All processes that have it, this one too: the one that speaks for it, then the others, ascending. As a rule the first speaks.
    pub ranks: &'a [u32],
}

/// Which unknowns are at which other processes.
#[derive(Debug)]
pub struct Sharing {
    group: Arc<dyn Group>,
    neighbours: Vec<Neighbour>,
    /// The unknowns that others have too.
    shared: Vec<usize>,
    /// Where the sources of each of them begin.
    starts: Vec<usize>,
    /// [`OWN`], or a place among what is received from all neighbours, in the order of the processes.
    sources: Vec<usize>,
    /// The unknowns that another process speaks for, one before this one as a rule, in ranges.
    others: Vec<Range<usize>>,
}

/// A process with which unknowns are shared.
#[derive(Debug)]
struct Neighbour {
    rank: usize,
    /// In the order that both have.
    unknowns: Vec<usize>,
}

/// Which entries of vectors several processes have, by their places there.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// What goes to each neighbour, in the order that both have.
    pub sent: Vec<(usize, Vec<u32>)>,
    /// The entries that others have too.
    pub dofs: Vec<u32>,
    /// Where the sources of each begin, and the end of the last.
    pub starts: Vec<u32>,
    /// `u32::MAX` for the own entry, or a place among what comes from all neighbours, in the order of the processes.
    pub sources: Vec<u32>,
    /// The entries that another process speaks for.
    pub others: Vec<u32>,
}

impl Sharing {
    /// Of unknowns that are listed in one order at all processes that have them.
    pub fn new<'a>(group: Arc<dyn Group>, all: impl Iterator<Item = Shared<'a>> + Clone) -> Self {
        let own = group.rank();
        let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); group.size()];
        for Shared { unknown, ranks } in all.clone() {
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
        for Shared { unknown, ranks } in all {
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

    /// The same by the places that unknowns have in vectors which lie otherwise.
    pub fn lists(&self, place: impl Fn(usize) -> u32) -> Lists {
        let places = |unknowns: &[usize]| unknowns.iter().map(|&own| place(own)).collect();
        let source = |&at: &usize| if at == OWN { u32::MAX } else { at as u32 };
        Lists {
            sent: self.neighbours.iter().map(|own| (own.rank, places(&own.unknowns))).collect(),
            dofs: places(&self.shared),
            starts: self.starts.iter().map(|&start| start as u32).collect(),
            sources: self.sources.iter().map(source).collect(),
            others: self.others.iter().cloned().flatten().map(place).collect(),
        }
    }

    /// The processes.
    pub fn group(&self) -> &Arc<dyn Group> {
        &self.group
    }

    /// The unknowns that another process speaks for, in ascending ranges: sums over all unknowns leave them out here.
    pub fn others(&self) -> &[Range<usize>] {
        &self.others
    }

    /// How many unknowns this process counts as its own, of so many that it has.
    pub fn counted(&self, unknowns: usize) -> usize {
        unknowns - self.others.iter().map(Range::len).sum::<usize>()
    }

    /// Whether another process speaks for an unknown: as a rule one before this one that has it.
    pub fn is_of_others(&self, unknown: usize) -> bool {
        let at = self.others.partition_point(|range| range.end <= unknown);
        self.others.get(at).is_some_and(|range| range.contains(&unknown))
    }

    /// What is for each neighbour, with room for what it has.
    pub fn parcels<T: Number>(&self, y: &[T]) -> Vec<Parcel> {
        let parcel = |neighbour: &Neighbour| Parcel {
            with: neighbour.rank,
            sent: neighbour.unknowns.iter().map(|&unknown| y[unknown].into()).collect(),
            received: vec![0.0; neighbour.unknowns.len()],
        };
        self.neighbours.iter().map(parcel).collect()
    }

    /// For each shared unknown what the processes that have it have there, in the order of their numbers.
    fn combine<T: Number>(
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

    /// The same at once.
    fn exchanged<T: Number>(&self, y: &mut [T], of: impl Fn(&mut dyn Iterator<Item = f64>) -> f64) {
        let mut parcels = self.parcels(y);
        self.group.exchange(&mut parcels, &mut || ());
        self.combine(&parcels, y, of);
    }

    /// y_i ← Σ of what all that have i have there, of which parcels have come.
    pub fn add<T: Number>(&self, parcels: &[Parcel], y: &mut [T]) {
        self.combine(parcels, y, |values| values.sum());
    }

    /// y_i ← Σ of what all that have i have there.
    pub fn sum<T: Number>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.sum());
    }

    /// y_i ← what the process that speaks for i has there: as a rule the first that has it.
    pub fn agree<T: Number>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.next().unwrap_or_default());
    }

    /// y_i ← the largest of what all that have i have there.
    pub fn largest<T: Number>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.fold(f64::NEG_INFINITY, f64::max));
    }

    /// y_i ← the least of what all that have i have there.
    pub fn least<T: Number>(&self, y: &mut [T]) {
        self.exchanged(y, |values| values.fold(f64::INFINITY, f64::min));
    }

    /// Of each shared unknown what all processes that have it have there, in the order of their numbers.
    pub fn all<T: Number>(&self, y: &[T]) -> Vec<(usize, Vec<f64>)> {
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

    /// Numbers of the whole from those that each process has of it, at their places there: of each the number of the first process that
    /// has it, to the bit: -0 is what changes no number, zeros of both signs among them, that it is added to.
    pub fn gathered(&self, own: &[f64], places: &[usize], all: usize) -> Vec<f64> {
        let mut numbers = vec![-0.0; all];
        let first = (0..own.len()).filter(|&at| !self.is_of_others(at));
        first.for_each(|at| numbers[places[at]] = own[at]);
        self.total(&mut numbers);
        numbers
    }

    /// Makes sums over the unknowns of this process sums over those of all.
    pub fn total(&self, sums: &mut [f64]) {
        self.group.reduce(Reduce::Sum, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::vector::{Precision, Vector};
    use crate::processes::threads::each;

    /// Three processes in a row, with entry 2 of each the first of the next, and entry 1 at all of them.
    fn sharing(group: Arc<dyn Group>) -> Sharing {
        let own = group.rank();
        let pairs: [&[u32]; 2] = [&[0, 1], &[1, 2]];
        let mut all = vec![Shared { unknown: 1, ranks: &[0, 1, 2] }];
        if own > 0 {
            all.push(Shared { unknown: 0, ranks: pairs[own - 1] });
        }
        if own < 2 {
            all.push(Shared { unknown: 2, ranks: pairs[own] });
        }
        Sharing::new(group, all.into_iter())
    }

    #[test]
    fn sums_and_products_are_those_of_one_vector() {
        // As one vector: a, c, d, f, h with c at all; processes (a, c, d), (d, c, f), (f, c, h).
        let found = each(3, |group| {
            let own = group.rank();
            let sharing = Arc::new(sharing(group));
            let mut y = [[1.0, 0.1, 2.0], [3.0, 0.2, 4.0], [5.0, 0.4, 6.0]][own];
            sharing.sum(&mut y);
            let mut agreed = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]][own];
            sharing.agree(&mut agreed);
            let vector = Vector::from_slice(&y, Precision::F64).shared(Arc::clone(&sharing));
            let ones = Vector::from_slice(&[1.0; 3], Precision::F64).shared(sharing);
            let product = ones.dot(&vector);
            let (mut x, mut r) = (ones.clone(), vector.clone());
            let step = x.step(
                1.0,
                &crate::algebra::vector::Product::known(-1.0),
                &ones,
                &mut r,
                &ones,
                Some(&ones),
            );
            (y, agreed, product, (step.square, step.weighted), r.axpy_dot(0.0, &ones))
        });
        let c = 0.1 + 0.2 + 0.4;
        let squares = 1.0 + c * c + 25.0 + 81.0 + 36.0;
        for (own, (y, agreed, product, step, square)) in found.into_iter().enumerate() {
            assert_eq!(y, [[1.0, c, 5.0], [5.0, c, 9.0], [9.0, c, 6.0]][own]);
            assert_eq!(agreed, [[1.0, 2.0, 3.0], [3.0, 2.0, 6.0], [6.0, 2.0, 9.0]][own]);
            assert!((product - (1.0 + c + 5.0 + 9.0 + 6.0)).abs() < 1e-14, "{product}");
            assert!((step.0 - squares).abs() < 1e-12 && (step.1 - squares).abs() < 1e-12);
            assert!((square - squares).abs() < 1e-12);
        }
    }
}
