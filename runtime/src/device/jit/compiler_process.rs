//! Compiler processes with a time limit, which never outlive this program.
//!
//! The compiler and its children (usually a linker) form a process group. The group leader reads from a pipe whose
//! other end only this program holds, and kills the group when the pipe is closed: when the compiler is done or late,
//! or when this program ends for any reason.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The default time limit of a compiler.
pub(super) const BOUND: Duration = Duration::from_secs(600);
/// The delay before the first progress message; half the limit if that is less.
const NOTICE: Duration = Duration::from_secs(5);
/// The polling interval for a silent compiler.
const TICK: Duration = Duration::from_millis(50);
/// The largest number of bytes kept per stream.
const MOST: usize = 4 << 20;

/// Runs a program to completion; `None` if it exceeds `bound`. `slow` is called once if it takes long.
pub(super) fn run(
    command: &mut Command,
    bound: Duration,
    slow: impl FnOnce(),
) -> io::Result<Option<Output>> {
    let group = CompilerGroup::start();
    group.take(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let pieces = listen(&mut child)?;
    let mut streams = Streams::default();
    let status = wait(&mut child, &pieces, &mut streams, bound, slow);
    drop(group);
    if !matches!(status, Ok(Some(_))) {
        // The group, if any, is already killed.
        let _ = child.kill();
        let _ = child.wait();
    }
    // Processes that left the group and keep the streams open are not waited for.
    while let Ok((stream, bytes)) = pieces.recv_timeout(TICK) {
        streams.keep(stream, &bytes);
    }
    let Streams([stdout, stderr]) = streams;
    Ok(status?.map(|status| Output { status, stdout, stderr }))
}

fn wait(
    child: &mut Child,
    pieces: &Receiver<OutputPiece>,
    streams: &mut Streams,
    bound: Duration,
    slow: impl FnOnce(),
) -> io::Result<Option<ExitStatus>> {
    let (started, notice) = (Instant::now(), NOTICE.min(bound / 2));
    let (mut slow, mut pause) = (Some(slow), Duration::from_micros(100));
    loop {
        let elapsed = started.elapsed();
        if elapsed >= bound {
            return Ok(None);
        }
        if elapsed >= notice
            && let Some(slow) = slow.take()
        {
            slow();
        }
        match pieces.recv_timeout(TICK.min(bound - elapsed)) {
            Ok((stream, bytes)) => {
                streams.keep(stream, &bytes);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Both streams are closed, usually because the process ends.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(pause);
                pause = TICK.min(2 * pause);
            }
        }
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
    }
}

/// Output of a process: stream number and bytes.
type OutputPiece = (usize, Vec<u8>);

/// The standard output and the standard error so far.
#[derive(Default)]
struct Streams([Vec<u8>; 2]);

impl Streams {
    fn keep(&mut self, stream: usize, bytes: &[u8]) {
        let kept = &mut self.0[stream];
        let room = MOST.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Reads both streams, each on its own thread.
fn listen(child: &mut Child) -> io::Result<Receiver<OutputPiece>> {
    let (sender, pieces) = sync_channel(16);
    if let Some(stream) = child.stdout.take() {
        read(0, stream, sender.clone())?;
    }
    if let Some(stream) = child.stderr.take() {
        read(1, stream, sender)?;
    }
    Ok(pieces)
}

fn read(
    number: usize,
    mut stream: impl Read + Send + 'static,
    to: SyncSender<OutputPiece>,
) -> io::Result<()> {
    let copy = move || {
        let mut buffer = [0; 8192];
        loop {
            match stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    if to.send((number, buffer[..n].to_vec())).is_err() {
                        return;
                    }
                }
            }
        }
    };
    thread::Builder::new().spawn(copy).map(drop)
}

/// A process group that ends with this value and with this program.
#[cfg(unix)]
struct CompilerGroup(Option<(crate::support::scratch::Pipe, Child)>);

#[cfg(unix)]
impl CompilerGroup {
    /// Starts the leader. Without a shell there is no group, and only the compiler itself is killed when late.
    fn start() -> Self {
        use std::os::unix::process::CommandExt as _;
        let mut leader = Command::new("/bin/sh");
        leader.args(["-c", "read -r _; kill -9 0"]).env_clear().current_dir("/").process_group(0);
        leader.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut leader) = leader.spawn() else { return Self(None) };
        Self(leader.stdin.take().map(|pipe| (crate::support::scratch::Pipe::hold(pipe), leader)))
    }

    /// Adds the process of a command to the group.
    fn take(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt as _;
        if let Some((_, leader)) = &self.0 {
            command.process_group(leader.id() as i32);
        }
    }
}

#[cfg(unix)]
impl Drop for CompilerGroup {
    fn drop(&mut self) {
        let Some((pipe, mut leader)) = self.0.take() else { return };
        drop(pipe);
        let _ = leader.wait();
    }
}

/// Without process groups, only the compiler itself is killed when late.
#[cfg(not(unix))]
struct CompilerGroup;

#[cfg(not(unix))]
impl CompilerGroup {
    fn start() -> Self {
        Self
    }

    fn take(&self, _: &mut Command) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::path::Path;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    /// Returns whether a process is running (zombies are not).
    fn is_alive(process: &str) -> bool {
        let status = std::fs::read_to_string(Path::new("/proc").join(process).join("status"));
        status.is_ok_and(|status| !status.contains("State:\tZ"))
    }

    #[test]
    fn what_ends_in_time_is_heard_in_full() {
        let mut long = shell("echo out; seq 20000 >&2; exit 3");
        let output = run(&mut long, BOUND, || panic!("in time")).expect("runs").expect("in time");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stdout, b"out\n");
        assert!(output.stderr.ends_with(b"\n20000\n"));
    }

    #[test]
    fn a_compiler_that_never_answers_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut hung = shell("sleep 60 & echo $! > linker; echo begun; exec sleep 60");
        let (mut reported, started) = (false, Instant::now());
        let bound = Duration::from_millis(400);
        let output = run(hung.current_dir(folder.path()), bound, || reported = true).expect("runs");
        assert!(output.is_none() && reported);
        assert!(started.elapsed() < Duration::from_secs(20));
        let linker = std::fs::read_to_string(folder.path().join("linker")).expect("a number");
        // The process has been killed and ends when scheduled.
        let ends = Instant::now() + Duration::from_secs(20);
        while is_alive(linker.trim()) {
            assert!(Instant::now() < ends, "the linker lives on");
            thread::sleep(TICK);
        }
    }

    #[test]
    fn what_a_compiler_leaves_running_is_not_waited_for() {
        let started = Instant::now();
        let output = run(&mut shell("sleep 60 & echo done"), BOUND, || {}).expect("runs");
        assert_eq!(output.expect("in time").stdout, b"done\n");
        assert!(started.elapsed() < Duration::from_secs(20));
        // The same for a process that closes its streams and continues.
        let bound = Duration::from_millis(200);
        let closed = &mut shell("exec >&- 2>&-; sleep 60");
        assert!(run(closed, bound, || {}).expect("runs").is_none());
    }
}
