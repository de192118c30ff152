//! Threads as process group: for several devices in one program, and for tests of parallel code.

use super::{Parcel, ProcessGroup, Reduction};
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Barrier between threads, which is released if one of them ends.
#[derive(Debug)]
struct Barrier {
    size: usize,
    /// The number of waiting threads, the number of completed rounds, and whether a thread has ended.
    state: Mutex<(usize, usize, bool)>,
    changed: Condvar,
}

impl Barrier {
    fn new(size: usize) -> Self {
        Self { size, state: Mutex::new((0, 0, false)), changed: Condvar::new() }
    }

    fn wait(&self) {
        self.wait_for(None);
    }

    /// Waits for at most `within`; returns whether all arrived.
    fn wait_for(&self, within: Option<Duration>) -> bool {
        let start = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let times = state.1;
        state.0 += 1;
        if state.0 == self.size {
            (state.0, state.1) = (0, times + 1);
            self.changed.notify_all();
        }
        while state.1 == times {
            assert!(!state.2, "another thread of the group has panicked");
            state = match within.map(|within| within.saturating_sub(start.elapsed())) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    state.0 -= 1;
                    return false;
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    fn give_up(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).2 = true;
        self.changed.notify_all();
    }
}

/// Releases the barriers if a thread panics.
struct PanicGuard<'a>(&'a SharedState);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.barrier.give_up();
            self.0.ends.give_up();
        }
    }
}

/// State shared by the members of a group.
#[derive(Debug)]
struct SharedState {
    barrier: Barrier,
    /// Barrier at the end.
    ends: Barrier,
    /// The contributions of each member, as numbers or as bytes.
    numbers: Mutex<Vec<Vec<f64>>>,
    bytes: Mutex<Vec<Vec<u8>>>,
    /// Numbers from one member to another.
    sent: Mutex<BTreeMap<(usize, usize), Vec<f64>>>,
}

/// A thread of a group.
#[derive(Clone, Debug)]
struct ThreadMember {
    rank: usize,
    size: usize,
    common: Arc<SharedState>,
}

/// Stack size of the threads of a member; only touched pages take memory.
const STACK: usize = 64 << 20;

/// Runs `work` on `size` threads that form a group; returns the results by rank. Each has a pool of its own for parallel
/// loops: members that wait for each other would fill a common one.
pub fn each<T: Send>(size: usize, work: impl Fn(Arc<dyn ProcessGroup>) -> T + Sync) -> Vec<T> {
    let common = Arc::new(SharedState {
        barrier: Barrier::new(size),
        ends: Barrier::new(size),
        numbers: Mutex::new(vec![Vec::new(); size]),
        bytes: Mutex::new(vec![Vec::new(); size]),
        sent: Mutex::default(),
    });
    let cores = rayon::current_num_threads();
    std::thread::scope(|scope| {
        let start = |rank: usize| {
            let member = ThreadMember { rank, size, common: Arc::clone(&common) };
            let work = &work;
            scope.spawn(move || {
                let common = Arc::clone(&member.common);
                let _guard = PanicGuard(&common);
                match ThreadPoolBuilder::new().num_threads(cores).stack_size(STACK).build() {
                    Ok(pool) => pool.install(|| work(Arc::new(member))),
                    Err(_) => work(Arc::new(member)),
                }
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

impl ThreadMember {
    /// Collective: every member stores a value, and all inspect all values.
    fn together<P: Clone, T>(
        &self,
        places: &Mutex<Vec<P>>,
        own: P,
        look: impl FnOnce(&[P]) -> T,
    ) -> T {
        places.lock().unwrap_or_else(PoisonError::into_inner)[self.rank] = own;
        self.common.barrier.wait();
        let found = look(&places.lock().unwrap_or_else(PoisonError::into_inner));
        self.common.barrier.wait();
        found
    }
}

impl ProcessGroup for ThreadMember {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn reduce(&self, how: Reduction, numbers: &mut [f64]) {
        let both = |a: f64, b: f64| match how {
            Reduction::Sum => a + b,
            Reduction::Least => a.min(b),
            Reduction::Largest => a.max(b),
        };
        let reduced = self.together(&self.common.numbers, numbers.to_vec(), |all| {
            let column = |at: usize| all.iter().map(|own| own[at]).reduce(both);
            (0..all[0].len()).filter_map(column).collect::<Vec<f64>>()
        });
        numbers.copy_from_slice(&reduced);
    }

    fn exchange(&self, parcels: &mut [Parcel], meanwhile: &mut dyn FnMut()) {
        let sent = || self.common.sent.lock().unwrap_or_else(PoisonError::into_inner);
        for parcel in parcels.iter() {
            sent().insert((self.rank, parcel.with), parcel.sent.clone());
        }
        meanwhile();
        self.common.barrier.wait();
        for parcel in parcels.iter_mut() {
            let found = sent().remove(&(parcel.with, self.rank)).unwrap_or_default();
            parcel.received.copy_from_slice(&found);
        }
        self.common.barrier.wait();
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.together(&self.common.bytes, own.to_vec(), <[Vec<u8>]>::to_vec)
    }

    fn meet(&self, within: Option<Duration>) -> bool {
        self.common.ends.wait_for(within)
    }

    fn end_all(&self, code: u8) -> ! {
        std::process::exit(i32::from(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_hear_of_each_other() {
        let found = each(3, |group| {
            let (own, size) = (group.rank(), group.size());
            let mut numbers = [own as f64 + 1.0, -(own as f64)];
            group.reduce(Reduction::Sum, &mut numbers);
            let mut most = [own as f64];
            group.reduce(Reduction::Largest, &mut most);
            let others = (0..size).filter(|&other| other != own);
            let parcel = |with: usize| Parcel {
                with,
                sent: vec![(10 * own + with) as f64],
                received: vec![0.0],
            };
            let mut parcels: Vec<Parcel> = others.map(parcel).collect();
            let mut done = false;
            group.exchange(&mut parcels, &mut || done = true);
            let received: Vec<f64> = parcels.iter().map(|parcel| parcel.received[0]).collect();
            (numbers, most, received, done, group.gather(&[own as u8; 2]))
        });
        for (own, (numbers, most, received, done, gathered)) in found.into_iter().enumerate() {
            assert_eq!((numbers, most, done), ([6.0, -3.0], [2.0], true));
            let others = (0..3).filter(|&other| other != own);
            let expected: Vec<f64> = others.map(|other| (10 * other + own) as f64).collect();
            assert_eq!(received, expected);
            assert_eq!(gathered, [[0, 0], [1, 1], [2, 2]]);
        }
    }
}
