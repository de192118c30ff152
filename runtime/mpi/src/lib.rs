//! MPI processes: a [`ProcessGroup`] on the world communicator of an `mpirun`.
//!
//! MPI is initialised only if a launcher has set environment variables, so that serial programs do not need it.
//! Messages are in host memory, or in device memory if the library supports device pointers (`direct`). Threads call
//! MPI one at a time.
#![cfg(feature = "mpi")]

mod direct;

use direct::DirectMessages;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use mpi::{Count, Threading};
use runtime::device::AddressChannel;
use runtime::processes::{Parcel, ProcessGroup, Reduction};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Environment variables that launchers set.
const MARKS: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"];

/// MPI environment while in use.
pub struct MpiEnvironment {
    group: Arc<MpiProcesses>,
    /// Finalises MPI when dropped; it is the last field.
    _universe: Universe,
}

impl MpiEnvironment {
    /// Returns the process group.
    pub fn group(&self) -> Arc<dyn ProcessGroup> {
        Arc::<MpiProcesses>::clone(&self.group)
    }
}

/// The processes of the world communicator.
struct MpiProcesses {
    rank: usize,
    size: usize,
    /// The number of processes on this host, and the index of this one among them.
    of_host: (usize, usize),
    /// Communicator for termination messages, separate from all others.
    ends: Mutex<TerminationCommunicator>,
    /// Held by the thread that calls MPI.
    turn: Arc<Mutex<()>>,
    addresses: AddressChannel,
}

/// A duplicated communicator that threads use one at a time.
struct TerminationCommunicator(SimpleCommunicator);

// SAFETY: initialised as `Serialized`, MPI accepts its handles from any thread, one at a time; a mutex ensures this.
unsafe impl Send for TerminationCommunicator {}

impl fmt::Debug for MpiProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank, self.size)
    }
}

/// Waits until no other thread calls MPI.
fn take(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MpiProcesses {
    fn turn(&self) -> MutexGuard<'_, ()> {
        take(&self.turn)
    }
}

/// Returns whether a launcher started this process.
fn launched() -> bool {
    MARKS.iter().any(|mark| std::env::var_os(mark).is_some())
}

/// Initialises MPI if a launcher started this process; at most once per program.
pub fn open() -> Option<MpiEnvironment> {
    if !launched() {
        return None;
    }
    let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
    let world = world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    let turn = Arc::<Mutex<()>>::default();
    let addresses = AddressChannel(Arc::new(DirectMessages::new(Arc::clone(&turn))));
    let (ends, host) = (world.duplicate(), world.split_shared(rank as i32));
    let of_host = (host.size() as usize, host.rank() as usize);
    let group = Arc::new(MpiProcesses {
        rank,
        size,
        of_host,
        ends: Mutex::new(TerminationCommunicator(ends)),
        turn,
        addresses,
    });
    Some(MpiEnvironment { group, _universe: universe })
}

/// Returns the name and version of the library, and the version of the standard.
pub fn version() -> String {
    let library = mpi::environment::library_version().unwrap_or_default();
    let first = library.split([',', '\n', '\0']).next().unwrap_or_default().trim().to_owned();
    let (major, minor) = mpi::environment::version();
    format!("{first} (MPI {major}.{minor})")
}

/// Returns whether the library is CUDA-aware, by its own report. The query functions of Open MPI and MPICH are looked
/// up at run time. `None` if the library cannot answer before initialisation.
#[cfg(unix)]
pub fn takes_device_pointers() -> Option<bool> {
    use libloading::os::unix::Library;
    use std::ffi::c_int;
    /// `MPIX_GPU_SUPPORT_CUDA`.
    const CUDA: c_int = 0;
    let (program, mut started) = (Library::this(), 0);
    // SAFETY: writes one integer and may be called at any time.
    let known = unsafe { mpi::ffi::MPI_Initialized(&raw mut started) } == 0 && started != 0;
    // SAFETY: functions of the linked library, with these types in the headers of Open MPI and MPICH; MPICH answers the
    // second only after initialisation.
    let says = unsafe {
        let plain = program.get::<unsafe extern "C" fn() -> c_int>(b"MPIX_Query_cuda_support\0");
        let of_gpus = program
            .get::<unsafe extern "C" fn(c_int, *mut c_int) -> c_int>(b"MPIX_GPU_query_support\0");
        match (plain, of_gpus) {
            (_, Ok(query)) if known => {
                let mut yes = 0;
                query(CUDA, &raw mut yes) == 0 && yes != 0
            }
            (_, Ok(_)) => false,
            (Ok(query), Err(_)) => query() == 1,
            (Err(_), Err(_)) => return Some(false),
        }
    };
    // Open MPI 4 reports how it was built. A variable tells if support is off, by a parameter or for lack of a driver.
    // SAFETY: a C `bool`, set during initialisation.
    let off = unsafe {
        let on = program.get::<*const u8>(b"opal_cuda_support\0");
        on.is_ok_and(|on| known && on.read() == 0)
    };
    (known || says).then_some(says && !off)
}

/// CUDA-aware MPI is not supported on this platform.
#[cfg(not(unix))]
pub fn takes_device_pointers() -> Option<bool> {
    Some(false)
}

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl ProcessGroup for MpiProcesses {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn reduce(&self, how: Reduction, numbers: &mut [f64]) {
        let operation = match how {
            Reduction::Sum => SystemOperation::sum(),
            Reduction::Least => SystemOperation::min(),
            Reduction::Largest => SystemOperation::max(),
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
        let mut lens = vec![0u64; self.size];
        world.all_gather_into(&(own.len() as u64), &mut lens[..]);
        // The total length is counted by an `int`.
        let piece = (Count::MAX as usize / self.size).saturating_sub(1).max(1);
        let longest = lens.iter().max().map_or(0, |&len| len as usize);
        let mut found: Vec<Vec<u8>> = vec![Vec::new(); self.size];
        for first in (0..longest.max(1)).step_by(piece) {
            let of = |len: usize| len.min(first + piece).saturating_sub(first);
            // The address of an empty message has a special meaning in Open MPI.
            let own = [&own[first.min(own.len())..][..of(own.len())], &[0]].concat();
            let counts: Vec<Count> =
                lens.iter().map(|&len| of(len as usize) as Count + 1).collect();
            let mut next = 0;
            let start = |count: &Count| {
                next += count;
                next - count
            };
            let starts: Vec<Count> = counts.iter().map(start).collect();
            let mut all = vec![0u8; next as usize];
            world.all_gather_varcount_into(
                &own[..],
                &mut PartitionMut::new(&mut all[..], &counts[..], &starts[..]),
            );
            for ((found, &start), &count) in found.iter_mut().zip(&starts).zip(&counts) {
                found.extend_from_slice(&all[start as usize..][..count as usize - 1]);
            }
        }
        found
    }

    fn meet(&self, within: Option<Duration>) -> bool {
        let (start, _turn) = (Instant::now(), self.turn());
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut request = ends.0.immediate_barrier();
        loop {
            request = match request.test() {
                Ok(_) => return true,
                Err(request) => request,
            };
            if within.is_some_and(|within| start.elapsed() > within) {
                // The request must not be dropped before completion, which never comes.
                std::mem::forget(request);
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn of_host(&self) -> (usize, usize) {
        self.of_host
    }

    fn address_messages(&self) -> Option<&dyn Any> {
        Some(&self.addresses)
    }

    fn end_all(&self, code: u8) -> ! {
        world().abort(i32::from(code))
    }
}
