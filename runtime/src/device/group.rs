//! [`DeviceGroup`]: communication between the devices of several processes without the host.
//!
//! ```text
//! memory            a kernel writes into the memory of another GPU of the host
//! NCCL              messages are enqueued on the streams of devices, and the host does not wait
//! device pointers   MPI reads and writes device memory, and the host waits for each message
//! host              a copy to pinned memory, messages of `Group`, and a copy back, without a `DeviceGroup`
//! ```

use super::{Array, DeviceError};
use std::error::Error;
use std::fmt;
use std::ops::Range;

/// Work to be recorded: a function that enqueues it on a device.
pub type RecordedWork<'a> = &'a mut dyn FnMut() -> Result<(), Box<dyn Error>>;

/// The environment variable that selects a single [`Transport`].
pub const MESSAGES: &str = "WF_MESSAGES";

/// Transport between devices of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Direct writes into the memory of peers.
    Peers,
    /// NCCL.
    Nccl,
    /// CUDA-aware MPI.
    Mpi,
    /// Copies through the host.
    Host,
}

impl Transport {
    /// All transports, in the order in which they are tried.
    pub const ALL: [Self; 4] = [Self::Peers, Self::Nccl, Self::Mpi, Self::Host];

    /// Returns the name in [`MESSAGES`].
    pub fn word(self) -> &'static str {
        match self {
            Self::Peers => "peers",
            Self::Nccl => "nccl",
            Self::Mpi => "mpi",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peers => "each other's memory",
            Self::Nccl => "NCCL",
            Self::Mpi => "MPI, which takes device pointers",
            Self::Host => "way of the host",
        })
    }
}

/// The selected transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedTransport {
    /// The transport.
    pub transport: Transport,
    /// The reason against the previous transport.
    pub instead: Option<TransportError>,
}

/// Reason against a transport, or against all of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Devices of this backend do not support it.
    #[error("devices of this backend know of no other")]
    Backend,
    /// Several hosts, or too many GPUs for peer access.
    #[error(
        "not all processes are of one host, with 16 GPUs at most\nhelp: leave WF_MESSAGES unset, and they take a way between hosts"
    )]
    Far,
    /// No peer access by the driver, or kernels for it that do not compile.
    #[error(
        "GPUs do not reach each other's memory: {}\nhelp: leave WF_MESSAGES unset, and they take another way",
        .error.lines().next().unwrap_or_default()
    )]
    Closed {
        /// The error message.
        error: String,
    },
    /// No NCCL library on a process.
    #[error(
        "NCCL was not found\nhelp: install it, or `pip install nvidia-nccl-cu12`, and put the folder of libnccl.so.2 on LD_LIBRARY_PATH"
    )]
    NoLibrary,
    /// Processes that share one GPU.
    #[error(
        "processes {first} and {second} share one GPU\nhelp: start as many processes as there are GPUs"
    )]
    Shared {
        /// The first process.
        first: usize,
        /// The second process.
        second: usize,
    },
    /// NCCL fails to connect the devices.
    #[error("NCCL does not connect the GPUs: {error}\nhelp: NCCL_DEBUG=INFO has it say more")]
    Library {
        /// The error message.
        error: String,
    },
    /// Processes that were not started by MPI.
    #[error(
        "no MPI has started the processes\nhelp: start them by `mpirun`, with a build that has the feature `mpi`"
    )]
    NoMpi,
    /// An MPI that is not CUDA-aware.
    #[error(
        "{library} takes no device pointers\nhelp: start them by an MPI that is built with CUDA, as Open MPI is by `--with-cuda`"
    )]
    NoPointers {
        /// The name of the library.
        library: String,
    },
    /// An MPI that reports CUDA support but does not transfer device memory.
    #[error(
        "MPI does not carry what device pointers point to: {error}\nhelp: WF_MESSAGES=host leaves them alone"
    )]
    Pointers {
        /// The error message.
        error: String,
    },
    /// The user selected another transport.
    #[error(
        "WF_MESSAGES asks for it\nhelp: leave it unset, and they take the first way that there is"
    )]
    Asked,
    /// An unknown transport.
    #[error(
        "WF_MESSAGES is `{word}`, which names no way\nhelp: it is `peers`, `nccl`, `mpi` or `host`"
    )]
    Unknown {
        /// The given name.
        word: String,
    },
    /// Different selections on different processes.
    #[error(
        "process {other} was given another WF_MESSAGES than process 0\nhelp: give all processes the same"
    )]
    Unlike {
        /// A process whose selection differs from that of process 0.
        other: usize,
    },
    /// Two transports, neither of which is available.
    #[error("{}, and {}\nhelp: {}; or {}", split(.0)[0], split(.1)[0], split(.0)[1], split(.1)[1])]
    Neither(Box<TransportError>, Box<TransportError>),
}

/// Returns the message and the remedy.
fn split(apart: &TransportError) -> [String; 2] {
    let text = apart.to_string();
    let (why, help) = text.split_once("\nhelp: ").unwrap_or((&text, ""));
    [why.to_owned(), help.to_owned()]
}

/// Tables on a device of the shared entries of vectors.
pub struct SharedEntryTables<'a> {
    /// The neighbours, each with its range of the send buffer; ranges are consecutive.
    pub neighbours: &'a [(usize, Range<usize>)],
    /// The largest number of entries that two processes share; `usize::MAX` if `sources` are not the positions at which
    /// the entries are sent.
    pub longest: usize,
    /// The shared entries.
    pub dofs: &'a Array,
    /// The start of each entry's sources, and the end of the last.
    pub starts: &'a Array,
    /// Positions in the buffer of values from neighbours; `u32::MAX` for the local entry.
    pub sources: &'a Array,
    /// True if an entry becomes the sum of its sources, in their order; else the first of them.
    pub add: bool,
}

/// Devices of a process group, one per process. Operations are collective, in the same order on all processes. They are
/// enqueued in the device's work queue, overlapped with other work on request.
pub trait DeviceGroup: fmt::Debug + Send + Sync {
    /// Returns whether all devices are on one host, where a message takes less than two kernel starts.
    fn is_near(&self) -> bool;

    /// Returns the message latency in seconds, from source to sum, measured between large GPUs of one host; `None` if
    /// the host waits for messages.
    fn latency(&self) -> Option<f64>;

    /// Sums each of the first `n` entries of an array over all devices; the result has the same bits on all.
    ///
    /// # Errors
    ///
    /// For this and all following functions: the library fails; an array belongs to another device or is too short;
    /// work is recorded, but the host waits for messages.
    fn sum(&self, array: &Array, n: usize) -> Result<(), DeviceError>;

    /// Updates the shared entries of y as the tables define, without intermediate arrays. Returns false, with nothing
    /// done, if the devices do not support it.
    ///
    /// # Safety
    ///
    /// The tables are consistent with each other and across processes, and all entries lie in y.
    unsafe fn meet(
        &self,
        _common: &SharedEntryTables<'_>,
        _y: &Array,
    ) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// Sends each neighbour its range of one array, and receives the same range of another.
    fn exchange(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
    ) -> Result<(), DeviceError>;

    /// Like [`DeviceGroup::exchange`], overlapped with `meanwhile`, which may start kernels and clear arrays on this
    /// thread but not touch the two arrays. Later work follows both.
    ///
    /// # Errors
    ///
    /// Also the errors of `meanwhile`.
    fn exchange_beside(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
        meanwhile: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reasons_are_one_sentence_with_two_remedies() {
        let library = "Some MPI 1.0".to_owned();
        let [shared, pointers] = [
            TransportError::Shared { first: 0, second: 1 },
            TransportError::NoPointers { library },
        ]
        .map(Box::new);
        let text = TransportError::Neither(shared, pointers).to_string();
        let (why, help) = text.split_once('\n').expect("a remedy");
        assert_eq!(
            why,
            "processes 0 and 1 share one GPU, and Some MPI 1.0 takes no device pointers"
        );
        assert!(
            help.starts_with("help: start as many processes as there are GPUs; or start them by")
        );
        assert_eq!(text.matches("help: ").count(), 1, "{text}");
    }
}
