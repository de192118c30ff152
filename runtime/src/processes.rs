//! Processes that work on one problem, each on cells of its own: what they tell each other ([`Group`]).
//!
//! ```text
//! exchange   numbers with some neighbours, while something else is done
//! reduce     numbers of all processes to their sums, or to the least or largest of them, for all
//! gather     bytes of each process, for all
//! ```
//!
//! Nothing above knows what carries the messages: nothing at all ([`Alone`]), memory between threads of one program ([`threads`]), or MPI
//! ([`crate::device::mpi`]). All processes call these in one order. A message that cannot be carried ends the program, as MPI
//! has it.

pub mod sharing;
pub mod threads;

use std::fmt::Debug;
use std::time::Duration;

/// How the numbers of all processes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum; the same bits for all.
    Sum,
    /// The least.
    Least,
    /// The largest.
    Largest,
}

/// What is sent to a process, and what has come from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel {
    /// The other process.
    pub with: usize,
    /// What it gets.
    pub sent: Vec<f64>,
    /// What it sends: as many numbers as there are.
    pub received: Vec<f64>,
}

/// Processes, of which this is one.
pub trait Group: Debug + Send + Sync {
    /// The number of this process, from 0 on.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Makes each of the numbers, of which all processes give as many, what they come to together.
    fn reduce(&self, how: Reduce, numbers: &mut [f64]);

    /// Sends and receives, each neighbour at most once; does something else meanwhile.
    fn exchange(&self, parcels: &mut [Parcel], meanwhile: &mut dyn FnMut());

    /// What each process gives, in the order of their numbers.
    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>>;

    /// Waits until all processes come here, so long at most: whether they did. Where they did not, nothing is left but
    /// [`Group::end_all`].
    fn meet(&self, within: Option<Duration>) -> bool;

    /// How many of them share this machine, and the number of this one among those.
    fn of_host(&self) -> (usize, usize) {
        (self.size(), self.rank())
    }

    /// Ends all processes with an exit code, also those that wait for this one.
    fn end_all(&self, code: u8) -> !;
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Group for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn reduce(&self, _: Reduce, _: &mut [f64]) {}

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

/// What all processes together have of something that is counted.
pub fn total(group: &dyn Group, own: usize) -> usize {
    let mut count = [own as f64];
    group.reduce(Reduce::Sum, &mut count);
    count[0] as usize
}

/// Whether something holds for any process.
pub fn any(group: &dyn Group, own: bool) -> bool {
    let mut found = [f64::from(u8::from(own))];
    group.reduce(Reduce::Largest, &mut found);
    found[0] > 0.0
}
