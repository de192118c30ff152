//! [`DeviceGroup`]: devices of several processes that reach each other's memory, without the host between them.
//!
//! ```text
//! memory            a kernel of ours writes where another GPU of the host reads
//! NCCL              messages take their places on the streams of devices, and the host waits for none
//! device pointers   MPI reads and writes the memory of devices: the host waits for what is sent and what comes
//! host              a copy to pinned memory, messages of `Group`, and a copy back: then there is no `DeviceGroup`
//! ```

use super::{Array, DeviceError, Record};
use std::error::Error;
use std::fmt;
use std::ops::Range;

/// The environment variable that names the one [`Way`] to try.
pub const MESSAGES: &str = "WF_MESSAGES";

/// How devices of several processes reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each writes into the memory of the others.
    Peers,
    /// By NVIDIA's library.
    Nccl,
    /// By MPI, which takes device pointers.
    Mpi,
    /// By way of the host.
    Host,
}

impl Way {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 4] = [Self::Peers, Self::Nccl, Self::Mpi, Self::Host];

    /// Its word in [`MESSAGES`].
    pub fn word(self) -> &'static str {
        match self {
            Self::Peers => "peers",
            Self::Nccl => "nccl",
            Self::Mpi => "mpi",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peers => "each other's memory",
            Self::Nccl => "NCCL",
            Self::Mpi => "MPI, which takes device pointers",
            Self::Host => "way of the host",
        })
    }
}

/// How devices have come to reach each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The way.
    pub way: Way,
    /// Why it is not the one before.
    pub instead: Option<Apart>,
}

/// Why devices do not reach each other, although each process has one: by one way, or at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Apart {
    /// Devices of this kind do not.
    #[error("devices of this backend know of no other")]
    Backend,
    /// There are several hosts, or more GPUs than reach each other's memory.
    #[error(
        "not all processes are of one host, with 16 GPUs at most\nhelp: leave WF_MESSAGES unset, and they take a way between hosts"
    )]
    Far,
    /// The driver does not open the memory of one GPU to another, or the kernels that would write there do not compile.
    #[error(
        "GPUs do not reach each other's memory: {}\nhelp: leave WF_MESSAGES unset, and they take another way",
        .error.lines().next().unwrap_or_default()
    )]
    Closed {
        /// What it says.
        error: String,
    },
    /// A process has no library that carries messages.
    #[error(
        "NCCL was not found\nhelp: install it, or `pip install nvidia-nccl-cu12`, and put the folder of libnccl.so.2 on LD_LIBRARY_PATH"
    )]
    NoLibrary,
    /// Processes that have one and the same.
    #[error(
        "processes {first} and {second} share one GPU\nhelp: start as many processes as there are GPUs"
    )]
    Shared {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The library does not connect them.
    #[error("NCCL does not connect the GPUs: {error}\nhelp: NCCL_DEBUG=INFO has it say more")]
    Library {
        /// What it says.
        error: String,
    },
    /// No MPI has started the processes.
    #[error(
        "no MPI has started the processes\nhelp: start them by `mpirun`, with a build that has the feature `mpi`"
    )]
    NoMpi,
    /// MPI reads the memory of the host only.
    #[error(
        "{library} takes no device pointers\nhelp: start them by an MPI that is built with CUDA, as Open MPI is by `--with-cuda`"
    )]
    NoPointers {
        /// What the library calls itself.
        library: String,
    },
    /// MPI says that it takes device pointers, and does not carry what they point to.
    #[error(
        "MPI does not carry what device pointers point to: {error}\nhelp: WF_MESSAGES=host leaves them alone"
    )]
    Pointers {
        /// What went wrong.
        error: String,
    },
    /// It was asked for.
    #[error(
        "WF_MESSAGES asks for it\nhelp: leave it unset, and they take the first way that there is"
    )]
    Asked,
    /// No such way.
    #[error(
        "WF_MESSAGES is `{word}`, which names no way\nhelp: it is `peers`, `nccl`, `mpi` or `host`"
    )]
    Unknown {
        /// What was given.
        word: String,
    },
    /// Processes that were asked for different ways.
    #[error(
        "process {other} was given another WF_MESSAGES than process 0\nhelp: give all processes the same"
    )]
    Unlike {
        /// One that was given another one than the first.
        other: usize,
    },
    /// Neither of two ways is there.
    #[error("{}, and {}\nhelp: {}; or {}", split(.0)[0], split(.1)[0], split(.0)[1], split(.1)[1])]
    Neither(Box<Apart>, Box<Apart>),
}

/// What it says, and the remedy.
fn split(apart: &Apart) -> [String; 2] {
    let text = apart.to_string();
    let (why, help) = text.split_once("\nhelp: ").unwrap_or((&text, ""));
    [why.to_owned(), help.to_owned()]
}

/// Entries of vectors that several processes have, as tables on a device.
pub struct Common<'a> {
    /// The neighbours, and which of all that is sent is theirs, one behind the other.
    pub neighbours: &'a [(usize, Range<usize>)],
    /// The most that any two processes have in common; beyond all numbers where `sources` are not places at which the entry itself is
    /// sent.
    pub longest: usize,
    /// The entries.
    pub dofs: &'a Array,
    /// Where the sources of each begin, and the end of the last.
    pub starts: &'a Array,
    /// Places among all that is sent, at which the entry comes from the neighbour, too; `u32::MAX` for the entry itself.
    pub sources: &'a Array,
    /// Whether the entry becomes the sum of its sources, in their order, or the first.
    pub add: bool,
}

/// Devices of which each process has one. All ask for the same in one order; it takes its place in the order of a device's work,
/// beside other work where that is asked for.
pub trait DeviceGroup: fmt::Debug + Send + Sync {
    /// Whether all are of one host, between which a message takes less than to start kernels twice.
    fn is_near(&self) -> bool;

    /// Seconds of a short message, from where numbers lie to where they are added, as measured between large GPUs of one host; none
    /// where the host waits for messages.
    fn latency(&self) -> Option<f64>;

    /// Makes each of the first `n` numbers of an array the sum of those at all devices; the same bits at all.
    ///
    /// # Errors
    ///
    /// For this and all that follows: a library that fails, an array of another device or with too few numbers; while work is
    /// recorded, where the host waits for messages.
    fn sum(&self, array: &Array, n: usize) -> Result<(), DeviceError>;

    /// Entries of y that several processes have become what they say, without arrays between them, where devices do that; false
    /// where none of them does, and nothing has been done.
    ///
    /// # Safety
    ///
    /// The tables go together, entries lie in y, and all processes have the same of each other.
    unsafe fn meet(&self, _common: &Common<'_>, _y: &Array) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// Sends each neighbour its part of an array, and receives as many numbers at the same place of another.
    fn exchange(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
    ) -> Result<(), DeviceError>;

    /// The same while something else is done that touches neither array: kernels that this thread starts and arrays that it
    /// clears. What is asked for afterwards comes behind both.
    ///
    /// # Errors
    ///
    /// Also what `meanwhile` says.
    fn exchange_beside(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
        meanwhile: Record<'_>,
    ) -> Result<(), Box<dyn Error>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reasons_are_one_sentence_with_two_remedies() {
        let library = "Some MPI 1.0".to_owned();
        let [shared, pointers] =
            [Apart::Shared { first: 0, second: 1 }, Apart::NoPointers { library }].map(Box::new);
        let text = Apart::Neither(shared, pointers).to_string();
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
