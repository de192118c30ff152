//! Vectors with interface entries: [`InterfaceExchange`].

use super::{Precision, Real, Vector, VectorData};
use crate::device::SharedEntries;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::processes::{Reduction, any, total};
use std::ops::Range;
use std::sync::Arc;

impl Vector {
    /// Attaches the interface degrees of freedom: sums extend over the entries of all processes. Copies and vectors
    /// like it inherit them.
    #[must_use]
    pub fn shared(mut self, sharing: Arc<InterfaceExchange>) -> Self {
        if let VectorData::Remote(remote) = &mut self.data {
            let shared = remote.arithmetic().shared_entries(&sharing, self.len);
            remote.share(shared);
        }
        Self { sharing: Some(sharing), ..self }
    }

    /// Detaches the interface: a vector of this process alone.
    #[must_use]
    pub fn unshared(mut self) -> Self {
        if let VectorData::Remote(remote) = &mut self.data {
            remote.unshare();
        }
        Self { sharing: None, ..self }
    }

    /// Returns the interface degrees of freedom.
    pub fn sharing(&self) -> Option<&Arc<InterfaceExchange>> {
        self.sharing.as_ref()
    }

    /// Sets interface entries to the value of their lowest rank.
    pub fn synchronise(&mut self) {
        let Some(sharing) = self.sharing.clone() else { return };
        let y = self;
        on_device!((y), (), y.synchronise());
        with_entries!((y), (), sharing.synchronise(y));
    }

    /// Sums interface entries over all processes.
    pub(crate) fn sum_shared(&mut self) {
        let Some(sharing) = self.sharing.clone() else { return };
        let y = self;
        on_device!((y), (), y.sum_shared());
        with_entries!((y), (), sharing.sum(y));
    }

    /// Sets interface entries to the value of their owner, which is given instead of the lowest rank.
    pub(crate) fn synchronise_with(&mut self, sharing: &Arc<InterfaceExchange>) {
        let (unknowns, y) = (self.len, self);
        on_device!((y), (), y.synchronise_with(y.arithmetic().shared_entries(sharing, unknowns)));
        with_entries!((y), (), sharing.synchronise(y));
    }

    /// Returns whether operations on vectors like it bypass the host: it has no interface entries, or devices exchange
    /// them directly.
    pub(crate) fn stays_on_devices(&self) -> bool {
        match (&self.data, &self.sharing) {
            (VectorData::Remote(own), Some(_)) => {
                own.shared_entries().is_some_and(|shared| shared.is_on_devices(own.arithmetic()))
            }
            (VectorData::Remote(_), None) => true,
            _ => false,
        }
    }

    /// Returns the interface entries on a device.
    pub(crate) fn shared_entries(&self) -> Option<&Arc<SharedEntries>> {
        match &self.data {
            VectorData::Remote(remote) => remote.shared_entries(),
            VectorData::Double(_) | VectorData::Single(_) => None,
        }
    }

    /// Returns the entries that other processes count.
    pub(super) fn others(&self) -> &[Range<usize>] {
        self.sharing.as_ref().map_or(&[], |sharing| sharing.others())
    }

    /// Returns the sums over all processes.
    pub(super) fn totals<const N: usize>(&self, mut sums: [f64; N]) -> [f64; N] {
        if let Some(sharing) = &self.sharing {
            sharing.total(&mut sums);
        }
        sums
    }

    /// Returns Σ |x_i| over all processes.
    pub(crate) fn sum_of_sizes(&self) -> f64 {
        let (mut sizes, mut ones) = (self.clone(), self.like());
        sizes.make_absolute();
        ones.fill(1.0);
        sizes.dot(&ones)
    }

    /// Returns the maximum over all processes.
    pub fn largest(&self, own: f64) -> f64 {
        let mut largest = [own];
        if let Some(sharing) = &self.sharing {
            sharing.group().reduce(Reduction::Largest, &mut largest);
        }
        largest[0]
    }

    /// Returns the logical or over all processes.
    pub(crate) fn any(&self, own: bool) -> bool {
        self.sharing.as_ref().map_or(own, |sharing| any(&**sharing.group(), own))
    }

    /// Returns the number of entries over all processes.
    pub(crate) fn entries_in_all(&self) -> usize {
        let count = |sharing: &Arc<InterfaceExchange>| {
            total(&**sharing.group(), sharing.counted(self.len()))
        };
        self.sharing.as_ref().map_or(self.len(), count)
    }

    /// Returns the value of largest magnitude over all processes; ties go to the lowest rank.
    pub(crate) fn of_largest_size(&self, own: f64) -> f64 {
        let Some(sharing) = &self.sharing else { return own };
        let all = sharing.group().gather(&own.to_le_bytes());
        let all = all.iter().map(|own| f64::from_le_bytes(own[..].try_into().unwrap_or_default()));
        all.fold(
            0.0,
            |most: f64, own| {
                if own.abs() > most.abs() * (1.0 + 1e-6) { own } else { most }
            },
        )
    }

    /// Sets one entry to 1 and the others to 0, by its index among the entries of all processes, counted rank by rank.
    pub(crate) fn set_unit(&mut self, number: usize) {
        let Some(sharing) = self.sharing.clone() else {
            self.fill(0.0);
            return self.set_entry(number, 1.0);
        };
        let counts = sharing.group().gather(&(sharing.counted(self.len) as u64).to_le_bytes());
        let count = |bytes: &Vec<u8>| u64::from_le_bytes(bytes[..].try_into().unwrap_or_default());
        let before: u64 = counts[..sharing.group().rank()].iter().map(count).sum();
        let mut entries = vec![0.0; self.len];
        let own = number.checked_sub(before as usize);
        let mut counted = (0..self.len).filter(|&at| !sharing.is_of_others(at));
        if let Some(at) = own.and_then(|own| counted.nth(own)) {
            entries[at] = 1.0;
        }
        sharing.largest(&mut entries);
        self.set(&entries);
    }
}

#[cfg(test)]
mod tests {
    use crate::algebra::vector::{Precision, ScalarProduct, Vector};
    use crate::processes::ProcessGroup;
    use crate::processes::interface_exchange::{InterfaceExchange, SharedDof};
    use crate::processes::threads::each;
    use std::sync::Arc;

    /// Returns the sharing of three processes in a row: entry 2 of each is entry 0 of the next, and entry 1 is on all.
    fn sharing(group: Arc<dyn ProcessGroup>) -> InterfaceExchange {
        let own = group.rank();
        let pairs: [&[u32]; 2] = [&[0, 1], &[1, 2]];
        let mut all = vec![SharedDof { unknown: 1, ranks: &[0, 1, 2] }];
        if own > 0 {
            all.push(SharedDof { unknown: 0, ranks: pairs[own - 1] });
        }
        if own < 2 {
            all.push(SharedDof { unknown: 2, ranks: pairs[own] });
        }
        InterfaceExchange::new(group, all.into_iter())
    }

    #[test]
    fn sums_and_products_are_those_of_one_vector() {
        // As one vector: a, c, d, f, h with c everywhere; processes (a, c, d), (d, c, f), (f, c, h).
        let found = each(3, |group| {
            let own = group.rank();
            let sharing = Arc::new(sharing(group));
            let mut y = [[1.0, 0.1, 2.0], [3.0, 0.2, 4.0], [5.0, 0.4, 6.0]][own];
            sharing.sum(&mut y);
            let mut agreed = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]][own];
            sharing.synchronise(&mut agreed);
            let vector = Vector::from_slice(&y, Precision::F64).shared(Arc::clone(&sharing));
            let ones = Vector::from_slice(&[1.0; 3], Precision::F64).shared(sharing);
            let product = ones.dot(&vector);
            let (mut x, mut r) = (ones.clone(), vector.clone());
            let step = x.step(1.0, &ScalarProduct::known(-1.0), &ones, &mut r, &ones, Some(&ones));
            (y, agreed, product, (step.square, step.weighted), r.axpy_dot(0.0, &ones).value())
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
