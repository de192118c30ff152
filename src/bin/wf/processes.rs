//! The processes of one command, started by `mpirun`, or the threads of one process with several devices. One of them
//! prints, and an error in any ends all.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use runtime::device::{Device, Transport};
use runtime::processes::{ProcessGroup, SingleProcess};

use crate::console::Console;
use crate::report::{self, Failure, Report};

/// Time that a process with an error waits for the others to report theirs.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time that each waits for lower ranks to report their errors.
const EACH: Duration = Duration::from_millis(100);

/// Environment variables of launchers: number of processes, and rank of this one.
#[cfg(not(feature = "mpi"))]
const MARKS: [[&str; 2]; 2] =
    [["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"], ["PMI_SIZE", "PMI_RANK"]];

/// All processes of a command.
pub(crate) struct Processes {
    group: Arc<dyn ProcessGroup>,
    /// Finalises MPI when dropped.
    #[cfg(feature = "mpi")]
    _launched: Option<fem_mpi::MpiEnvironment>,
}

impl Processes {
    /// Returns the processes that were started together with this one.
    #[cfg(feature = "mpi")]
    pub(crate) fn open() -> Self {
        let launched = fem_mpi::open();
        let group = launched.as_ref().map_or_else(alone, fem_mpi::MpiEnvironment::group);
        Self { group, _launched: launched }
    }

    /// Returns this process alone.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn open() -> Self {
        Self::alone()
    }

    /// Returns this process alone, regardless of others.
    pub(crate) fn alone() -> Self {
        Self::of(alone())
    }

    /// Returns the processes of a group.
    fn of(group: Arc<dyn ProcessGroup>) -> Self {
        Self {
            group,
            #[cfg(feature = "mpi")]
            _launched: None,
        }
    }

    /// Runs `work` in several threads, each of which acts as one of several processes.
    pub(crate) fn in_threads<T: Send>(count: usize, work: impl Fn(&Self) -> T + Sync) -> Vec<T> {
        runtime::processes::threads::each(count, |group| work(&Self::of(group)))
    }

    /// Returns the processes.
    pub(crate) fn group(&self) -> &Arc<dyn ProcessGroup> {
        &self.group
    }

    /// Returns whether there are several.
    pub(crate) fn are_several(&self) -> bool {
        self.group.size() > 1
    }

    /// Returns whether this process prints the common results.
    pub(crate) fn speaks(&self) -> bool {
        self.group.rank() == 0
    }

    /// Returns the number of processes on this host.
    pub(crate) fn of_host(&self) -> usize {
        self.group.of_host().0
    }

    /// Returns the index of this process among those of its host.
    pub(crate) fn number_of_host(&self) -> usize {
        self.group.of_host().1
    }

    /// Returns the default number of threads of this process: its share of the host's cores.
    pub(crate) fn threads(&self, asked: Option<u16>) -> Option<u16> {
        if asked.is_some() || !self.are_several() {
            return asked;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = (cores / self.group.of_host().0).max(1);
        Some(u16::try_from(share).unwrap_or(u16::MAX))
    }

    /// Rejects commands for a single process, and builds without support for several.
    pub(crate) fn check(&self, several: bool) -> Result<(), Failure> {
        #[cfg(not(feature = "mpi"))]
        if let Some(count) = launched() {
            return Err(Failure::usage(format!(
                "it was started as {count} processes, but this build of wf knows of one\n\
                 help: build it with MPI, `cargo build --release --features mpi`, or start one process"
            )));
        }
        match self.are_several() && !several {
            true => Err(Failure::usage(
                "only `wf assemble`, `wf bench`, `wf probe`, `wf run` and `wf verify` are for several processes\nhelp: start one process",
            )),
            false => Ok(()),
        }
    }

    /// Rejects a requested option that requires a single process.
    pub(crate) fn alone_for(&self, wanted: bool, what: &str, help: &str) -> Result<(), Failure> {
        match wanted && self.are_several() {
            true => Err(Failure::usage(format!(
                "only one process {what}, and there are {}\nhelp: {help}",
                self.group.size()
            ))),
            false => Ok(()),
        }
    }

    /// Rejects standard input, which only one process has.
    pub(crate) fn reads(&self, file: &Path) -> Result<(), Failure> {
        self.alone_for(file == Path::new("-"), "reads from standard input", "name a file")
    }

    /// Rejects processes with a different text, build or command line.
    pub(crate) fn given(&self, text: &str) -> Result<(), Failure> {
        self.agree_on("file, build or command line", &given(text))
    }

    /// Returns the device of this process, with direct access to those of the others if possible.
    pub(crate) fn join(
        &self,
        own: Result<Option<Arc<dyn Device>>, Failure>,
        console: &Console,
    ) -> Result<Option<Arc<dyn Device>>, Failure> {
        let Some(device) = self.settle(own, console)? else { return Ok(None) };
        if self.are_several() {
            let (way, instead) = match device.join(&self.group) {
                Ok(joined) => (joined.transport, joined.instead),
                Err(apart) => (Transport::Host, Some(apart)),
            };
            if let Some(apart) = instead {
                let apart = apart.to_string();
                let (why, help) = apart.split_once('\n').unwrap_or((&apart, ""));
                tracing::warn!("what devices tell each other goes by {way}: {why}\n{help}");
            }
        }
        Ok(Some(device))
    }

    /// Rejects processes with different data.
    pub(crate) fn agree_on(&self, what: &str, own: &[u8]) -> Result<(), Failure> {
        agree_on(&*self.group, what, own)
    }

    /// Combines the results of all processes: a failure if any has one. A failure that the others do not reach ends all
    /// of them.
    pub(crate) fn settle<T>(
        &self,
        own: Result<T, Failure>,
        console: &Console,
    ) -> Result<T, Failure> {
        if !self.are_several() {
            return own;
        }
        let (rank, size) = (self.group.rank(), self.group.size());
        let patience = own.is_err().then(|| PATIENCE + EACH * rank as u32);
        if !self.group.meet(patience) {
            let named =
                |failure: Failure| failure.note(&format!("this was process {rank} of {size}"));
            let own = own.map(|_| Report::default()).map_err(named);
            console.speak_up();
            report::finish(own, console);
            self.group.end_all(1);
        }
        together(&*self.group, own)
    }

    /// Prints the result of a subcommand once.
    pub(crate) fn finish(&self, result: Result<Report, Failure>, console: &Console) -> ExitCode {
        let code = report::finish(self.settle(result, console), console);
        // A launcher ends all processes once one exits with an error, which must be printed before.
        self.group.meet(Some(PATIENCE));
        code
    }
}

impl Drop for Processes {
    /// Ends all processes on a panic, because they would otherwise wait for this one.
    fn drop(&mut self) {
        if self.are_several() && std::thread::panicking() {
            self.group.end_all(101);
        }
    }
}

/// Combines the results of processes that all call it: a failure if any has one, namely the first original one.
pub(crate) fn together<T>(group: &dyn ProcessGroup, own: Result<T, Failure>) -> Result<T, Failure> {
    let (rank, size) = (group.rank(), group.size());
    if size == 1 {
        return own;
    }
    let said = own.as_ref().err().map_or_else(Vec::new, Failure::to_bytes);
    let all = group.gather(&said);
    let mut failed = (0..size).filter(|&rank| !all[rank].is_empty());
    let Some(first) = failed.clone().next() else { return own };
    let first = failed.find(|&rank| !Failure::from_bytes(&all[rank]).is_heard()).unwrap_or(first);
    let note = format!("this was process {first} of {size}");
    match own {
        Err(own) if first == rank => Err(own),
        own => {
            let failure = Failure::from_bytes(&all[first]).note(&note);
            Err(match own {
                Err(mut own) => failure.after(own.take_done()),
                Ok(_) => failure,
            })
        }
    }
}

/// Rejects processes with different data.
pub(crate) fn agree_on(group: &dyn ProcessGroup, what: &str, own: &[u8]) -> Result<(), Failure> {
    if group.size() == 1 {
        return Ok(());
    }
    let all = group.gather(own);
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(other) => Err(Failure::input(format!(
            "process {other} of {} was given another {what} than process 0\n\
             help: give all processes the same",
            group.size()
        ))),
    }
}

/// Returns the data that must be equal in all processes: the text, the build, the command line.
fn given(text: &str) -> Vec<u8> {
    let mut all = Vec::from(text);
    all.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
    let build = std::env::current_exe().and_then(std::fs::metadata).map_or(0, |file| file.len());
    all.extend_from_slice(&build.to_le_bytes());
    for argument in std::env::args_os().skip(1) {
        all.extend_from_slice(argument.as_encoded_bytes());
        all.push(0);
    }
    all
}

fn alone() -> Arc<dyn ProcessGroup> {
    Arc::new(SingleProcess)
}

/// Returns the number of processes according to a launcher, if there are several. All but the first exit here.
#[cfg(not(feature = "mpi"))]
fn launched() -> Option<usize> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let [count, rank] =
        MARKS.iter().map(|marks| marks.map(number)).find(|[count, _]| count.is_some())?;
    if rank.is_some_and(|rank| rank > 0) {
        std::process::exit(2);
    }
    count.filter(|&count| count > 1)
}
