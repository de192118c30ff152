//! Shared entries of vectors on a device: exchange with neighbours, and sums that count each entry once.
//!
//! ```text
//! exchange   pack entries per neighbour → send and receive during other work → y_i ← Σ over the processes of i;
//!            a single kernel if devices write into each other's memory
//! settle     group sums, less the entries that other processes count → group sums over all processes
//! ```
//!
//! Connected devices ([`DeviceGroup`]) do not involve the host. Otherwise the host carries the messages. Interface
//! entries are copied to host memory (pinned, if the driver supports it), sent as ordinary numbers, and the received
//! ones are copied back. Sums are local until the host reads them and reduces over all processes.

use super::{Arithmetic, THREADS, groups};
use crate::device::{
    Array, DeviceError, DeviceGroup, ElementKind, KernelArgument, RecordedWork, SharedEntryTables,
    StagingBuffer,
};
use crate::processes::interface_exchange::{InterfaceExchange, MessageNumber, SharedEntryLists};
use crate::processes::{Parcel, ProcessGroup, Reduction};
use std::error::Error;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The shared entries of vectors.
pub struct SharedEntries {
    group: Arc<dyn ProcessGroup>,
    /// The neighbours, each with its range of the message buffers.
    neighbours: Vec<(usize, Range<usize>)>,
    sent: Array,
    dofs: Array,
    starts: Array,
    sources: Array,
    others: Array,
    /// The length of vectors.
    len: usize,
    /// The number of thread groups of a sum.
    groups: usize,
    /// See [`SharedEntryTables::longest`].
    longest: usize,
    /// The send and the receive buffer.
    messages: Mutex<[Array; 2]>,
    /// Buffers for messages through the host.
    host: Option<Mutex<HostMessages>>,
}

/// Messages through the host.
struct HostMessages {
    /// Host memory for copies from and to the device.
    staging: Box<dyn StagingBuffer>,
    parcels: Vec<Parcel>,
}

/// Reads numbers from the bytes of an array.
fn numbers(bytes: &[u8], kind: ElementKind) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(kind.width()).map(move |own| match kind {
        ElementKind::F32 => f64::from(f32::from_ne_bytes(own.try_into().unwrap_or_default())),
        _ => f64::from_ne_bytes(own.try_into().unwrap_or_default()),
    })
}

/// Writes numbers to the bytes of an array.
fn put(bytes: &mut [u8], kind: ElementKind, numbers: impl Iterator<Item = f64>) {
    for (own, number) in bytes.chunks_exact_mut(kind.width()).zip(numbers) {
        match kind {
            ElementKind::F32 => own.copy_from_slice(&f32::nearest(number).to_ne_bytes()),
            _ => own.copy_from_slice(&number.to_ne_bytes()),
        }
    }
}

impl std::fmt::Debug for SharedEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries in common with {} processes", self.dofs.len(), self.neighbours.len())
    }
}

impl SharedEntries {
    /// Creates the exchange for vectors of length `len`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for inconsistent lists or entries out of range; a driver error.
    pub fn new(
        arithmetic: &Arithmetic,
        len: usize,
        group: &Arc<dyn ProcessGroup>,
        lists: &SharedEntryLists,
    ) -> Result<Self, DeviceError> {
        let SharedEntryLists { sent, dofs, starts, sources, others } = lists;
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
        // A received value belongs to the entry that is sent at the same position; each position occurs once.
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
        group.reduce(Reduction::Largest, &mut most);
        let messages = [arithmetic.zeros(all.len())?, arithmetic.zeros(all.len())?];
        let host = if let Some(devices) = Self::devices(arithmetic) {
            // The first exchange establishes the connections.
            devices.exchange(&neighbours, &messages[0], &messages[1])?;
            None
        } else {
            let parcel = |(with, range): &(usize, Range<usize>)| Parcel {
                with: *with,
                sent: vec![0.0; range.len()],
                received: vec![0.0; range.len()],
            };
            let parcels = neighbours.iter().map(parcel).collect();
            Some(Mutex::new(HostMessages { staging: device.staging(messages[0].bytes()), parcels }))
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

    /// Returns the connected devices, if any.
    fn devices(arithmetic: &Arithmetic) -> Option<&dyn DeviceGroup> {
        arithmetic.device.group()
    }

    /// Sets shared entries y_i to the sum over their processes, in rank order, or to the value of the first process.
    /// The current values are sent during `meanwhile`, which must not change these entries.
    ///
    /// # Errors
    ///
    /// Those of `meanwhile`; vectors of another length, or a driver error.
    pub fn exchange(
        &self,
        arithmetic: &Arithmetic,
        y: &Array,
        add: bool,
        meanwhile: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        arithmetic.same("exchange", &[y], self.len)?;
        if self.meet(arithmetic, y, add)? {
            return meanwhile();
        }
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let [out, come] = &mut *messages;
        let n = self.sent.len();
        // SAFETY: the kernel takes n positions, a vector that contains them all (just checked), and space for n
        // numbers.
        unsafe {
            self.start(arithmetic, "get_at", n, &[&self.sent, y, out], None)?;
        }
        match Self::devices(arithmetic) {
            Some(devices) => devices.exchange_beside(&self.neighbours, out, come, meanwhile)?,
            None => self.by_the_host(arithmetic, out, come, meanwhile)?,
        }
        let all = KernelArgument::Size(u64::from(add));
        // SAFETY: lists and positions were compared with each other and with the vector length at creation, and the
        // receive buffer has as many numbers as the sources address.
        unsafe {
            let tables = [&self.dofs, &self.starts, &self.sources, come, y];
            self.start(arithmetic, "meet", self.dofs.len(), &tables, Some(all))?;
        }
        Ok(())
    }

    /// Does the same in one kernel, if the devices support it.
    fn meet(&self, arithmetic: &Arithmetic, y: &Array, add: bool) -> Result<bool, DeviceError> {
        let Some(devices) = Self::devices(arithmetic) else { return Ok(false) };
        let Self { neighbours, longest, dofs, starts, sources, .. } = self;
        let common =
            SharedEntryTables { neighbours, longest: *longest, dofs, starts, sources, add };
        // SAFETY: the lists were compared with each other and with the vector length at creation.
        unsafe { devices.meet(&common, y) }
    }

    /// Exchanges the same messages through the host.
    fn by_the_host(
        &self,
        arithmetic: &Arithmetic,
        out: &Array,
        come: &mut Array,
        meanwhile: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        let host = self.host.as_ref().ok_or(DeviceError::Foreign)?;
        let mut host = host.lock().unwrap_or_else(PoisonError::into_inner);
        let (HostMessages { staging, parcels }, kind) = (&mut *host, out.kind());
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

    /// Starts a kernel on n list entries.
    ///
    /// # Safety
    ///
    /// The arrays are the kernel's arguments after n and the stride, with the data that it reads.
    unsafe fn start(
        &self,
        arithmetic: &Arithmetic,
        name: &'static str,
        n: usize,
        arrays: &[&Array],
        after: Option<KernelArgument<'_>>,
    ) -> Result<(), DeviceError> {
        if n == 0 {
            return Ok(());
        }
        let groups = groups(n);
        let mut given =
            vec![KernelArgument::Size(n as u64), KernelArgument::Size((groups * THREADS) as u64)];
        given.extend(arrays.iter().map(|array| KernelArgument::Array(array)));
        given.extend(after);
        // SAFETY: guaranteed by the caller.
        unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
    }

    /// Returns the number of thread groups of a sum: equal on all processes, so that group sums can be added one by
    /// one.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Converts group sums over all entries, of a·b, of a·(c b), or of both, to sums over the entries that this process
    /// owns; with connected devices, over all processes.
    ///
    /// # Errors
    ///
    /// Vectors of another length, or a driver error.
    pub(super) fn settle(
        &self,
        arithmetic: &Arithmetic,
        partials: &Array,
        wanted: SumSelection,
        [a, b, c]: [&Array; 3],
    ) -> Result<(), DeviceError> {
        arithmetic.same("settle", &[a, b, c], self.len)?;
        let n = self.others.len();
        let which = match wanted {
            SumSelection::First => 0,
            SumSelection::Second => 1,
            SumSelection::Both => 2,
        };
        let given = [
            KernelArgument::Size(n as u64),
            KernelArgument::Size((groups(n).min(self.groups) * THREADS) as u64),
            KernelArgument::Array(&self.others),
            KernelArgument::Array(a),
            KernelArgument::Array(b),
            KernelArgument::Array(c),
            KernelArgument::Array(partials),
            KernelArgument::Size(self.groups as u64),
            KernelArgument::Size(which),
        ];
        if n > 0 {
            let groups = groups(n).min(self.groups);
            // SAFETY: the entries are below the vector length (just checked); there is space for two sums of the
            // largest number of groups, and each group has its own entry.
            unsafe { arithmetic.device.start(arithmetic.kernel("without")?, groups, &given)? };
        }
        match Self::devices(arithmetic) {
            Some(devices) if wanted == SumSelection::Both => devices.sum(partials, 2 * self.groups),
            Some(devices) => devices.sum(partials, self.groups),
            None => Ok(()),
        }
    }

    /// Returns the entries that other processes count.
    pub(super) fn others(&self) -> &Array {
        &self.others
    }

    /// Reduces local sums that the host has read over all processes.
    pub(super) fn reduce(&self, sums: &mut [f64]) {
        self.group.reduce(Reduction::Sum, sums);
    }

    /// Reduces sums that the host has read over all processes, unless devices have done so.
    pub(super) fn total(&self, arithmetic: &Arithmetic, sums: &mut [f64]) {
        if Self::devices(arithmetic).is_none() {
            self.reduce(sums);
        }
    }

    /// Returns whether sums over all processes are formed without the host.
    pub fn is_on_devices(&self, arithmetic: &Arithmetic) -> bool {
        Self::devices(arithmetic).is_some()
    }
}

impl Arithmetic {
    /// Returns the shared entries of vectors with this number of degrees of freedom; created once.
    ///
    /// # Errors
    ///
    /// Those of [`SharedEntries::new`].
    pub fn shared_entries(
        &self,
        sharing: &Arc<InterfaceExchange>,
        unknowns: usize,
    ) -> Result<Arc<SharedEntries>, DeviceError> {
        let mut known = self.shared_cache.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| of.strong_count() > 0);
        let of = Arc::as_ptr(sharing);
        if let Some((_, shared)) = known.iter().find(|(known, _)| known.as_ptr() == of) {
            return Ok(Arc::clone(shared));
        }
        let permutes = self.layout.permutes(unknowns);
        let place = |unknown: usize| match permutes {
            true => self.layout.place(unknown) as u32,
            false => unknown as u32,
        };
        let (len, lists) = (self.layout.len(unknowns), sharing.lists(place));
        let made = Arc::new(SharedEntries::new(self, len, sharing.group(), &lists)?);
        known.push((Arc::downgrade(sharing), Arc::clone(&made)));
        Ok(made)
    }
}

/// Selection of the sums a·b and a·(c b).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumSelection {
    /// Only the first.
    First,
    /// Only the second.
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
        for kind in [ElementKind::F64, ElementKind::F32] {
            let mut bytes = vec![1; known.len() * kind.width()];
            put(&mut bytes, kind, known.into_iter());
            let found: Vec<u64> = numbers(&bytes, kind).map(f64::to_bits).collect();
            let nearest = |number: f64| match kind {
                ElementKind::F32 => f64::from(f32::nearest(number)),
                _ => number,
            };
            assert_eq!(found, known.map(|number| nearest(number).to_bits()));
        }
    }
}
