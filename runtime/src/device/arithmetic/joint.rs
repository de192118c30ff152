//! Entries of vectors that several processes have, on a device: what neighbours are sent and what comes from them, and sums that
//! count each of them once.
//!
//! ```text
//! exchange   pack what is for each neighbour → send and receive, while something else runs → y_i ← Σ over all that have i;
//!            one kernel where devices write into each other's memory
//! settle     what each group summed, less what others count there → the same of all processes, group by group
//! ```
//!
//! Between devices that reach each other ([`DeviceGroup`]) nothing passes by the host. Otherwise it carries the messages:
//! entries of the cut come back, to memory that is pinned where the device's driver can do that, go to the others as any numbers
//! do, and theirs are written; sums are those of one process until the host reads them and asks the others.

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, Common, DeviceError, DeviceGroup, Given, Kind, Record, Staging};
use crate::processes::sharing::{Lists, Number, Sharing};
use crate::processes::{Group, Parcel, Reduce};
use std::error::Error;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Which entries several processes have.
pub struct Joint {
    group: Arc<dyn Group>,
    /// The neighbours, and what is theirs of what is sent and received.
    neighbours: Vec<(usize, Range<usize>)>,
    sent: Array,
    dofs: Array,
    starts: Array,
    sources: Array,
    others: Array,
    /// The length of vectors.
    len: usize,
    /// Groups that form a sum.
    groups: usize,
    /// As [`Common`] has it.
    longest: usize,
    /// What is sent, and what is received.
    messages: Mutex<[Array; 2]>,
    /// What carries them by way of the host.
    host: Option<Mutex<Host>>,
}

/// Messages on their way by the host.
struct Host {
    /// What the device copies to, and then from.
    staging: Box<dyn Staging>,
    parcels: Vec<Parcel>,
}

/// The numbers of an array's bytes.
fn numbers(bytes: &[u8], kind: Kind) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(kind.width()).map(move |own| match kind {
        Kind::F32 => f64::from(f32::from_ne_bytes(own.try_into().unwrap_or_default())),
        _ => f64::from_ne_bytes(own.try_into().unwrap_or_default()),
    })
}

/// Puts numbers into an array's bytes.
fn put(bytes: &mut [u8], kind: Kind, numbers: impl Iterator<Item = f64>) {
    for (own, number) in bytes.chunks_exact_mut(kind.width()).zip(numbers) {
        match kind {
            Kind::F32 => own.copy_from_slice(&f32::nearest(number).to_ne_bytes()),
            _ => own.copy_from_slice(&number.to_ne_bytes()),
        }
    }
}

impl std::fmt::Debug for Joint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries in common with {} processes", self.dofs.len(), self.neighbours.len())
    }
}

impl Joint {
    /// Of vectors of length `len`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for lists that do not go together, or with entries that such vectors do not have; a driver that
    /// fails.
    pub fn new(
        arithmetic: &Arithmetic,
        len: usize,
        group: &Arc<dyn Group>,
        lists: &Lists,
    ) -> Result<Self, DeviceError> {
        let Lists { sent, dofs, starts, sources, others } = lists;
        let (mut all, mut neighbours) = (Vec::new(), Vec::with_capacity(sent.len()));
        for (rank, entries) in sent {
            neighbours.push((*rank, all.len()..all.len() + entries.len()));
            all.extend_from_slice(entries);
        }
        let known = |dof: &u32| (*dof as usize) < len;
        let come = |source: &u32| *source == u32::MAX || (*source as usize) < all.len();
        let sound = all.iter().chain(dofs).chain(others).all(known)
            && sources.iter().all(come)
            && starts.len() == dofs.len() + 1
            && starts.windows(2).all(|pair| pair[0] < pair[1])
            && starts.last().is_some_and(|&end| end as usize == sources.len());
        if !sound {
            return Err(DeviceError::Mismatch { operation: "list what others have" });
        }
        let device = &arithmetic.device;
        // What comes at a place is of the entry that is sent there, and each place comes once.
        let mut seen = vec![false; all.len()];
        let of = |i: usize| &sources[starts[i] as usize..starts[i + 1] as usize];
        let alike = (0..dofs.len()).all(|i| {
            let mut own = of(i).iter().filter(|&&source| source != u32::MAX);
            own.all(|&source| {
                let before = std::mem::replace(&mut seen[source as usize], true);
                !before && all[source as usize] == dofs[i]
            })
        });
        let alike = alike && seen.iter().all(|&seen| seen);
        let longest = neighbours.iter().map(|(_, range)| range.len()).max().unwrap_or(0);
        let longest = if alike { longest as f64 } else { f64::INFINITY };
        let mut most = [groups(len) as f64, longest];
        group.reduce(Reduce::Largest, &mut most);
        let messages = [arithmetic.zeros(all.len())?, arithmetic.zeros(all.len())?];
        let host = if let Some(devices) = Self::devices(arithmetic) {
            // The ways to neighbours are made when they are first taken.
            devices.exchange(&neighbours, &messages[0], &messages[1])?;
            None
        } else {
            let parcel = |(with, range): &(usize, Range<usize>)| Parcel {
                with: *with,
                sent: vec![0.0; range.len()],
                received: vec![0.0; range.len()],
            };
            let parcels = neighbours.iter().map(parcel).collect();
            Some(Mutex::new(Host { staging: device.staging(messages[0].bytes()), parcels }))
        };
        Ok(Self {
            group: Arc::clone(group),
            neighbours,
            sent: device.upload(&all)?,
            dofs: device.upload(dofs)?,
            starts: device.upload(starts)?,
            sources: device.upload(sources)?,
            others: device.upload(others)?,
            len,
            groups: most[0] as usize,
            longest: most[1] as usize,
            messages: Mutex::new(messages),
            host,
        })
    }

    /// The devices, where they reach each other.
    fn devices(arithmetic: &Arithmetic) -> Option<&dyn DeviceGroup> {
        arithmetic.device.group()
    }

    /// y_i ← what all that have i have there, added up in the order of the processes, or what the first of them has. What is
    /// there when this is called is sent while `meanwhile` is done, which leaves those entries alone.
    ///
    /// # Errors
    ///
    /// What `meanwhile` says; vectors of another length, a driver that fails.
    pub fn exchange(
        &self,
        arithmetic: &Arithmetic,
        y: &Array,
        add: bool,
        meanwhile: Record<'_>,
    ) -> Result<(), Box<dyn Error>> {
        arithmetic.same("exchange", &[y], self.len)?;
        if self.meet(arithmetic, y, add)? {
            return meanwhile();
        }
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let [out, come] = &mut *messages;
        let n = self.sent.len();
        // SAFETY: the kernel takes n places, a vector that has them all, which has just been compared, and room for n numbers.
        unsafe {
            self.start(arithmetic, "get_at", n, &[&self.sent, y, out], None)?;
        }
        match Self::devices(arithmetic) {
            Some(devices) => devices.exchange_beside(&self.neighbours, out, come, meanwhile)?,
            None => self.by_the_host(arithmetic, out, come, meanwhile)?,
        }
        let all = Given::Size(u64::from(add));
        // SAFETY: lists and their places were compared with each other and with the length of vectors when they were made, and
        // what is received has as many numbers as sources name.
        unsafe {
            let tables = [&self.dofs, &self.starts, &self.sources, come, y];
            self.start(arithmetic, "meet", self.dofs.len(), &tables, Some(all))?;
        }
        Ok(())
    }

    /// The same in one go, where devices do that.
    fn meet(&self, arithmetic: &Arithmetic, y: &Array, add: bool) -> Result<bool, DeviceError> {
        let Some(devices) = Self::devices(arithmetic) else { return Ok(false) };
        let Self { neighbours, longest, dofs, starts, sources, .. } = self;
        let common = Common { neighbours, longest: *longest, dofs, starts, sources, add };
        // SAFETY: the lists were compared with each other and with the length of vectors when they were made.
        unsafe { devices.meet(&common, y) }
    }

    /// The same messages by way of the host.
    fn by_the_host(
        &self,
        arithmetic: &Arithmetic,
        out: &Array,
        come: &mut Array,
        meanwhile: Record<'_>,
    ) -> Result<(), Box<dyn Error>> {
        let host = self.host.as_ref().ok_or(DeviceError::Foreign)?;
        let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
        let (Host { staging, parcels }, kind) = (&mut *host, out.kind());
        let bytes = staging.bytes()?;
        arithmetic.device.read(out, 0, bytes)?;
        let sent = parcels.iter_mut().flat_map(|own| &mut own.sent);
        sent.zip(numbers(bytes, kind)).for_each(|(to, number)| *to = number);
        let mut done = Ok(());
        self.group.exchange(parcels, &mut || done = meanwhile());
        done?;
        put(bytes, kind, parcels.iter().flat_map(|own| &own.received).copied());
        Ok(arithmetic.device.write(come, 0, bytes)?)
    }

    /// Starts a kernel on n entries of a list.
    ///
    /// # Safety
    ///
    /// The arrays must be those that the kernel takes behind n and the stride, with what it reads of them.
    unsafe fn start(
        &self,
        arithmetic: &Arithmetic,
        name: &'static str,
        n: usize,
        arrays: &[&Array],
        after: Option<Given<'_>>,
    ) -> Result<(), DeviceError> {
        if n == 0 {
            return Ok(());
        }
        let groups = groups(n);
        let mut given = vec![Given::Size(n as u64), Given::Size((groups * THREADS) as u64)];
        given.extend(arrays.iter().map(|array| Given::Array(array)));
        given.extend(after);
        // SAFETY: as the caller says.
        unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
    }

    /// How many groups form a sum: as many at each process, so that their sums can be added up one by one.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Makes what groups summed over all entries, a·b, or a·(c b), or both one after the other, sums over those that this process
    /// counts; of all processes where devices reach each other.
    ///
    /// # Errors
    ///
    /// Vectors of another length, a driver that fails.
    pub(super) fn settle(
        &self,
        arithmetic: &Arithmetic,
        partials: &Array,
        wanted: Wanted,
        [a, b, c]: [&Array; 3],
    ) -> Result<(), DeviceError> {
        arithmetic.same("settle", &[a, b, c], self.len)?;
        let n = self.others.len();
        let which = match wanted {
            Wanted::First => 0,
            Wanted::Second => 1,
            Wanted::Both => 2,
        };
        let given = [
            Given::Size(n as u64),
            Given::Size((groups(n).min(self.groups) * THREADS) as u64),
            Given::Array(&self.others),
            Given::Array(a),
            Given::Array(b),
            Given::Array(c),
            Given::Array(partials),
            Given::Size(self.groups as u64),
            Given::Size(which),
        ];
        if n > 0 {
            let groups = groups(n).min(self.groups);
            // SAFETY: the entries are below the length of vectors, which has just been compared; there is room for two sums of as many
            // groups as there can be, and each of these groups has its own.
            unsafe { arithmetic.device.start(arithmetic.kernel("without")?, groups, &given)? };
        }
        match Self::devices(arithmetic) {
            Some(devices) if wanted == Wanted::Both => devices.sum(partials, 2 * self.groups),
            Some(devices) => devices.sum(partials, self.groups),
            None => Ok(()),
        }
    }

    /// Makes sums that the host has read those of all processes, where devices have not done so.
    pub(super) fn total(&self, arithmetic: &Arithmetic, sums: &mut [f64]) {
        if Self::devices(arithmetic).is_none() {
            self.group.reduce(Reduce::Sum, sums);
        }
    }

    /// Whether sums of all processes come about without the host.
    pub fn is_on_devices(&self, arithmetic: &Arithmetic) -> bool {
        Self::devices(arithmetic).is_some()
    }
}

impl Arithmetic {
    /// What vectors of so many unknowns have in common with those of other processes; made once.
    ///
    /// # Errors
    ///
    /// As [`Joint::new`].
    pub fn joint(
        &self,
        sharing: &Arc<Sharing>,
        unknowns: usize,
    ) -> Result<Arc<Joint>, DeviceError> {
        let mut known = self.joints.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| of.strong_count() > 0);
        let of = Arc::as_ptr(sharing);
        if let Some((_, joint)) = known.iter().find(|(known, _)| known.as_ptr() == of) {
            return Ok(Arc::clone(joint));
        }
        let permutes = self.layout.permutes(unknowns);
        let place = |unknown: usize| match permutes {
            true => self.layout.place(unknown) as u32,
            false => unknown as u32,
        };
        let (len, lists) = (self.layout.len(unknowns), sharing.lists(place));
        let made = Arc::new(Joint::new(self, len, sharing.group(), &lists)?);
        known.push((Arc::downgrade(sharing), Arc::clone(&made)));
        Ok(made)
    }
}

/// Which of the sums a·b and a·(c b) groups have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The first.
    First,
    /// The second alone.
    Second,
    /// Both.
    Both,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_pass_through_the_bytes_of_either_precision() {
        let known = [0.1, -0.0, 3.0, f64::MAX];
        for kind in [Kind::F64, Kind::F32] {
            let mut bytes = vec![1; known.len() * kind.width()];
            put(&mut bytes, kind, known.into_iter());
            let found: Vec<u64> = numbers(&bytes, kind).map(f64::to_bits).collect();
            let nearest = |number: f64| match kind {
                Kind::F32 => f64::from(f32::nearest(number)),
                _ => number,
            };
            assert_eq!(found, known.map(|number| nearest(number).to_bits()));
        }
    }
}
