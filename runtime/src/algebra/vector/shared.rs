//! Vectors of which other processes have some entries too: [`Sharing`].

use super::{Data, Precision, Real, Vector};
use crate::device::Joint;
use crate::processes::sharing::Sharing;
use crate::processes::{Reduce, any, total};
use std::ops::Range;
use std::sync::Arc;

impl Vector {
    /// The same as a vector of unknowns of which other processes have some: sums over its entries are over those of all
    /// processes. Copies of it and vectors like it are shared alike.
    #[must_use]
    pub fn shared(mut self, sharing: Arc<Sharing>) -> Self {
        if let Data::Remote(remote) = &mut self.data {
            let joint = remote.arithmetic().joint(&sharing, self.len);
            remote.join(joint);
        }
        Self { sharing: Some(sharing), ..self }
    }

    /// The same as a vector of this process alone.
    #[must_use]
    pub fn unshared(mut self) -> Self {
        if let Data::Remote(remote) = &mut self.data {
            remote.unshare();
        }
        Self { sharing: None, ..self }
    }

    /// Where other processes have some of its unknowns too.
    pub fn sharing(&self) -> Option<&Arc<Sharing>> {
        self.sharing.as_ref()
    }

    /// Gives entries that several processes have the number that the first of them has.
    pub fn agree(&mut self) {
        let Some(sharing) = self.sharing.clone() else { return };
        let y = self;
        on_device!((y), (), y.agree());
        with_entries!((y), (), sharing.agree(y));
    }

    /// Gives entries that several processes have the sum of what each has there.
    pub(crate) fn add_up(&mut self) {
        let Some(sharing) = self.sharing.clone() else { return };
        let y = self;
        on_device!((y), (), y.add_up());
        with_entries!((y), (), sharing.sum(y));
    }

    /// The same where others than the first that have an entry may speak for it.
    pub(crate) fn agree_by(&mut self, sharing: &Arc<Sharing>) {
        let (unknowns, y) = (self.len, self);
        on_device!((y), (), y.agree_by(y.arithmetic().joint(sharing, unknowns)));
        with_entries!((y), (), sharing.agree(y));
    }

    /// Whether nothing that is done with vectors like it takes the host: other processes have none of its entries, or devices
    /// that reach each other do.
    pub(crate) fn stays_on_devices(&self) -> bool {
        match (&self.data, &self.sharing) {
            (Data::Remote(own), Some(_)) => {
                own.joint().is_some_and(|joint| joint.is_on_devices(own.arithmetic()))
            }
            (Data::Remote(_), None) => true,
            _ => false,
        }
    }

    /// The entries that other processes have too, where a device has them.
    pub(crate) fn joint(&self) -> Option<&Arc<Joint>> {
        match &self.data {
            Data::Remote(remote) => remote.joint(),
            Data::Double(_) | Data::Single(_) => None,
        }
    }

    /// The entries that others count.
    pub(super) fn others(&self) -> &[Range<usize>] {
        self.sharing.as_ref().map_or(&[], |sharing| sharing.others())
    }

    /// A sum over own entries → that over the entries of all processes.
    pub(super) fn total(&self, sum: f64) -> f64 {
        self.totals([sum])[0]
    }

    pub(super) fn totals<const N: usize>(&self, mut sums: [f64; N]) -> [f64; N] {
        if let Some(sharing) = &self.sharing {
            sharing.total(&mut sums);
        }
        sums
    }

    /// Σ |x_i| over the entries of all processes.
    pub(crate) fn sum_of_sizes(&self) -> f64 {
        let (mut sizes, mut ones) = (self.clone(), self.like());
        sizes.make_absolute();
        ones.fill(1.0);
        sizes.dot(&ones)
    }

    /// The largest of what all processes have found.
    pub(crate) fn largest(&self, own: f64) -> f64 {
        let mut largest = [own];
        if let Some(sharing) = &self.sharing {
            sharing.group().reduce(Reduce::Largest, &mut largest);
        }
        largest[0]
    }

    /// Whether something holds for any process.
    pub(crate) fn any(&self, own: bool) -> bool {
        self.sharing.as_ref().map_or(own, |sharing| any(&**sharing.group(), own))
    }

    /// How many entries there are, those of other processes too.
    pub(crate) fn entries_in_all(&self) -> usize {
        let count = |sharing: &Arc<Sharing>| total(&**sharing.group(), sharing.counted(self.len()));
        self.sharing.as_ref().map_or(self.len(), count)
    }

    /// Of what all processes have found, the number of the largest size; where two have one, that of the first.
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

    /// Makes one entry 1 and the others 0: that of a number among those of all processes, which are counted process by process.
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
