//! Processes by MPI: [`Group`] on the communicator of all that one `mpirun` has started.
//!
//! MPI is started only where a launcher has left its mark in the environment, so that a program alone asks nothing of it.
//! Messages are numbers of this machine's memory, or of devices' where the library takes device pointers ([`direct`]). Threads call
//! it one after another.

#[cfg(feature = "cuda")]
pub(super) mod direct;

use crate::processes::{Group, Parcel, Reduce};
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use mpi::{Count, Threading};
use std::fmt;
#[cfg(feature = "cuda")]
use std::sync::Weak;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What launchers leave in the environment of each process.
const MARKS: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"];

/// The group of all processes, as long as there is one.
#[cfg(feature = "cuda")]
static STARTED: Mutex<Weak<Mpi>> = Mutex::new(Weak::new());

/// MPI as long as it is in use.
pub struct Launched {
    group: Arc<Mpi>,
    /// Ends MPI when it goes, which is the last.
    _universe: Universe,
}

impl Launched {
    /// The processes.
    pub fn group(&self) -> Arc<dyn Group> {
        Arc::<Mpi>::clone(&self.group)
    }
}

/// All processes that were started together.
struct Mpi {
    rank: usize,
    size: usize,
    /// How many share this machine, and the number of this one among them.
    of_host: (usize, usize),
    /// Where processes tell that they have come to an end, apart from all other messages.
    ends: Mutex<Ends>,
    /// Held by the thread that calls MPI.
    turn: Mutex<()>,
}

/// A communicator of its own, for all threads one after another.
struct Ends(SimpleCommunicator);

// SAFETY: started as `Serialized`, MPI takes its handles from any thread, one at a time; here a mutex lets in one at a time.
unsafe impl Send for Ends {}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank, self.size)
    }
}

impl Mpi {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a launcher has started this process.
fn launched() -> bool {
    MARKS.iter().any(|mark| std::env::var_os(mark).is_some())
}

/// Starts MPI where a launcher has started this process; once a program.
pub fn open() -> Option<Launched> {
    if !launched() {
        return None;
    }
    let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
    let world = world();
    let (rank, size, turn) = (world.rank() as usize, world.size() as usize, Mutex::default());
    let (ends, here) = (world.duplicate(), world.split_shared(rank as i32));
    let of_host = (here.size() as usize, here.rank() as usize);
    let group = Arc::new(Mpi { rank, size, of_host, ends: Mutex::new(Ends(ends)), turn });
    #[cfg(feature = "cuda")]
    {
        *STARTED.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&group);
    }
    Some(Launched { group, _universe: universe })
}

/// What the library says of itself: its name and version, and those of the standard.
pub fn version() -> String {
    let library = mpi::environment::library_version().unwrap_or_default();
    let first = library.split([',', '\n', '\0']).next().unwrap_or_default().trim().to_owned();
    let (major, minor) = mpi::environment::version();
    format!("{first} (MPI {major}.{minor})")
}

/// Whether the library reads and writes the memory of NVIDIA's GPUs ("CUDA-aware"), as it says itself: by what Open MPI and MPICH
/// have beside the standard, which is looked for while the program runs. None where it cannot know before it has started.
#[cfg(unix)]
pub fn takes_device_pointers() -> Option<bool> {
    use libloading::os::unix::Library;
    use std::ffi::c_int;
    /// `MPIX_GPU_SUPPORT_CUDA`.
    const CUDA: c_int = 0;
    let (program, mut started) = (Library::this(), 0);
    // SAFETY: writes a number; it may be asked at any time.
    let known = unsafe { mpi::ffi::MPI_Initialized(&raw mut started) } == 0 && started != 0;
    // SAFETY: functions of the library that this program is linked with, which have these types in the headers of Open MPI and of
    // MPICH; the second is one that MPICH answers after its start only.
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
    // Open MPI 4 says what it was built with. Whether that is turned off, by a parameter or for want of a driver, stands beside it.
    // SAFETY: a `bool` of C, which is set while MPI starts.
    let off = unsafe {
        let on = program.get::<*const u8>(b"opal_cuda_support\0");
        on.is_ok_and(|on| known && on.read() == 0)
    };
    (known || says).then_some(says && !off)
}

/// Whether the library takes device pointers: nobody is asked here.
#[cfg(not(unix))]
pub fn takes_device_pointers() -> Option<bool> {
    Some(false)
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
        let mut lens = vec![0u64; self.size];
        world.all_gather_into(&(own.len() as u64), &mut lens[..]);
        // All that comes at once is counted by an `int`.
        let piece = (Count::MAX as usize / self.size).saturating_sub(1).max(1);
        let longest = lens.iter().max().map_or(0, |&len| len as usize);
        let mut found: Vec<Vec<u8>> = vec![Vec::new(); self.size];
        for first in (0..longest.max(1)).step_by(piece) {
            let of = |len: usize| len.min(first + piece).saturating_sub(first);
            // The address of no bytes is one that means something else to Open MPI.
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
                // It may not be dropped before it is done, which it never will be.
                std::mem::forget(request);
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn of_host(&self) -> (usize, usize) {
        self.of_host
    }

    fn end_all(&self, code: u8) -> ! {
        world().abort(i32::from(code))
    }
}
