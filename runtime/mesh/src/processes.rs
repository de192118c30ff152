//! Processes that solve one problem, each on its own cells, and their communication ([`ProcessGroup`]).
//!
//! ```text
//! exchange   numbers with some neighbours, overlapped with other work
//! reduce     numbers of all processes to their sums, minima or maxima, for all
//! gather     bytes of each process, for all
//! ```
//!
//! Callers do not know the transport: none ([`SingleProcess`]), shared memory between threads of one program
//! ([`threads`]), or MPI (the crate `fem-mpi`). All functions are collective, in one order. As in MPI, a failed
//! message ends the program.

pub mod interface_exchange;
pub mod threads;

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

/// Reduction operation over all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum, with the same bits on all processes.
    Sum,
    /// The minimum.
    Least,
    /// The maximum.
    Largest,
}

/// Numbers exchanged with one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel {
    /// The rank of the other process.
    pub with: usize,
    /// The numbers to send.
    pub sent: Vec<f64>,
    /// The received numbers; the length is given.
    pub received: Vec<f64>,
}

/// A group of processes that contains this one.
pub trait ProcessGroup: Debug + Send + Sync {
    /// Returns the rank of this process, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of processes.
    fn size(&self) -> usize;

    /// Reduces each of the numbers over all processes, which pass equally many.
    fn reduce(&self, how: Reduction, numbers: &mut [f64]);

    /// Exchanges numbers with neighbours, at most one parcel each, overlapped with `meanwhile`.
    fn exchange(&self, parcels: &mut [Parcel], meanwhile: &mut dyn FnMut());

    /// Returns the bytes of each process, by rank.
    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>>;

    /// Waits for all processes, at most `within`; returns whether all arrived. Otherwise only [`ProcessGroup::end_all`]
    /// is possible.
    fn meet(&self, within: Option<Duration>) -> bool;

    /// Returns the number of processes on this host, and the index of this one among them.
    fn of_host(&self) -> (usize, usize) {
        (self.size(), self.rank())
    }

    /// Returns the messages between addresses of devices, an `AddressChannel` of the crate `runtime`, if the group
    /// offers them.
    fn address_messages(&self) -> Option<&dyn Any> {
        None
    }

    /// Ends all processes with an exit code, including those that wait for this one.
    fn end_all(&self, code: u8) -> !;
}

/// A single process.
#[derive(Clone, Copy, Debug)]
pub struct SingleProcess;

impl ProcessGroup for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn reduce(&self, _: Reduction, _: &mut [f64]) {}

    fn exchange(&self, _: &mut [Parcel], meanwhile: &mut dyn FnMut()) {
        meanwhile();
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        vec![own.to_vec()]
    }

    fn meet(&self, _: Option<Duration>) -> bool {
        true
    }

    fn end_all(&self, code: u8) -> ! {
        std::process::exit(i32::from(code))
    }
}

/// Returns the sum of a count over all processes.
pub fn total(group: &dyn ProcessGroup, own: usize) -> usize {
    let mut count = [own as f64];
    group.reduce(Reduction::Sum, &mut count);
    count[0] as usize
}

/// Returns whether a condition holds on any process.
pub fn any(group: &dyn ProcessGroup, own: bool) -> bool {
    let mut found = [f64::from(u8::from(own))];
    group.reduce(Reduction::Largest, &mut found);
    found[0] > 0.0
}
