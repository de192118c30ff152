//! Processes by MPI: [`Group`] on the communicator of all that one `mpirun` has started.
//!
//! MPI is started only where a launcher has left its mark in the environment, so that a program alone asks nothing of it.
//! Messages are numbers of this machine's memory. Threads call it one after another.

use crate::processes::{Group, Parcel, Reduce};
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use mpi::{Count, Threading};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What launchers leave in the environment of each process.
const MARKS: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"];

/// MPI as long as it is in use.
pub struct Launched {
    /// Where processes tell that they have come to an end, apart from all other messages.
    ends: SimpleCommunicator,
    group: Arc<Mpi>,
    of_host: usize,
    /// Ends MPI when it goes, which is the last.
    _universe: Universe,
}

impl Launched {
    /// The processes.
    pub fn group(&self) -> Arc<dyn Group> {
        Arc::<Mpi>::clone(&self.group)
    }

    /// How many of them share this machine.
    pub fn of_host(&self) -> usize {
        self.of_host
    }

    /// Waits until all processes come here, so long at most: whether they did. Where they did not, nothing is left but
    /// [`Group::end_all`].
    pub fn meet(&self, within: Option<Duration>) -> bool {
        let (start, _turn) = (Instant::now(), self.group.turn());
        let mut request = self.ends.immediate_barrier();
        loop {
            request = match request.test() {
                Ok(_) => return true,
                Err(request) => request,
            };
            if within.is_some_and(|within| start.elapsed() > within) {
                // It may not be dropped before it is done, which it never will be.
                std::mem::forget(request);
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// All processes that were started together.
#[derive(Debug)]
struct Mpi {
    rank: usize,
    size: usize,
    /// Held by the thread that calls MPI.
    turn: Mutex<()>,
}

impl Mpi {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts MPI where a launcher has started this process; once a program.
pub fn open() -> Option<Launched> {
    let launched = MARKS.iter().any(|mark| std::env::var_os(mark).is_some());
    if !launched {
        return None;
    }
    let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
    let world = world();
    let (rank, size, turn) = (world.rank() as usize, world.size() as usize, Mutex::default());
    let (ends, of_host) = (world.duplicate(), world.split_shared(0).size() as usize);
    Some(Launched { ends, group: Arc::new(Mpi { rank, size, turn }), of_host, _universe: universe })
}

/// What the library says of itself: its name and version, and those of the standard.
pub fn version() -> String {
    let library = mpi::environment::library_version().unwrap_or_default();
    let first = library.split([',', '\n', '\0']).next().unwrap_or_default().trim().to_owned();
    let (major, minor) = mpi::environment::version();
    format!("{first} (MPI {major}.{minor})")
}

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl Group for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn reduce(&self, how: Reduce, numbers: &mut [f64]) {
        let operation = match how {
            Reduce::Sum => SystemOperation::sum(),
            Reduce::Least => SystemOperation::min(),
            Reduce::Largest => SystemOperation::max(),
        };
        let (own, _turn) = (numbers.to_vec(), self.turn());
        world().all_reduce_into(&own[..], numbers, operation);
    }

    fn exchange(&self, parcels: &mut [Parcel], meanwhile: &mut dyn FnMut()) {
        let (world, _turn) = (world(), self.turn());
        mpi::request::scope(|scope| {
            let mut open = Vec::with_capacity(2 * parcels.len());
            for Parcel { with, sent, received } in parcels.iter_mut() {
                let other = world.process_at_rank(*with as i32);
                open.push(other.immediate_receive_into(scope, &mut received[..]));
                open.push(other.immediate_send(scope, &sent[..]));
            }
            meanwhile();
            for request in open {
                request.wait();
            }
        });
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let (world, _turn) = (world(), self.turn());
        // The address of no bytes is one that means something else to Open MPI.
        let own = [own, &[0]].concat();
        let mut counts = vec![0 as Count; self.size];
        world.all_gather_into(&(own.len() as Count), &mut counts[..]);
        let mut next = 0;
        let starts: Vec<Count> = counts
            .iter()
            .map(|count| {
                next += count;
                next - count
            })
            .collect();
        let mut all = vec![0u8; next as usize];
        world.all_gather_varcount_into(
            &own[..],
            &mut PartitionMut::new(&mut all[..], &counts[..], &starts[..]),
        );
        let part = |(&start, &count): (&Count, &Count)| {
            all[start as usize..(start + count) as usize - 1].to_vec()
        };
        starts.iter().zip(&counts).map(part).collect()
    }

    fn end_all(&self, code: u8) -> ! {
        world().abort(i32::from(code))
    }
}
