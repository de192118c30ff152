//! Registry of resources that must not outlive the program: temporary files and folders, and child processes.

use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of removal attempts, and the time between them: a dying program may still write.
const REMOVALS: (usize, Duration) = (50, Duration::from_millis(10));

/// The registry.
static LIVE: Mutex<LiveResources> =
    Mutex::new(LiveResources { paths: Vec::new(), pipes: Vec::new(), next: 0 });

pub(super) struct LiveResources {
    paths: Vec<PathBuf>,
    pipes: Vec<(u64, ChildStdin)>,
    next: u64,
}

/// Locks the registry.
pub(super) fn live() -> MutexGuard<'static, LiveResources> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveResources {
    /// Registers a file or folder.
    pub(super) fn note(&mut self, path: &Path) -> Registration {
        self.paths.push(path.to_owned());
        Registration(path.to_owned())
    }

    /// Ends the child processes, then removes the files.
    fn end(&mut self) {
        self.pipes.clear();
        for path in self.paths.drain(..) {
            for _ in 0..REMOVALS.0 {
                let _ = super::remove(&path);
                if path.symlink_metadata().is_err() {
                    break;
                }
                std::thread::sleep(REMOVALS.1);
            }
        }
    }
}

/// Ends the child processes and removes all temporary files and folders, before the program ends.
///
/// Afterwards, creating a file or a child process blocks forever.
pub fn end() {
    let mut live = live();
    live.end();
    std::mem::forget(live);
}

/// Registration of a file or folder while this value lives.
#[derive(Debug)]
pub(super) struct Registration(PathBuf);

impl Drop for Registration {
    fn drop(&mut self) {
        live().paths.retain(|known| *known != self.0);
    }
}

/// A pipe that is closed with this value, by [`end`], or with the program.
#[derive(Debug)]
pub struct Pipe(u64);

impl Pipe {
    /// Keeps the end of a pipe open.
    pub fn hold(end: ChildStdin) -> Self {
        let mut live = live();
        live.next += 1;
        let number = live.next;
        live.pipes.push((number, end));
        Self(number)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        live().pipes.retain(|(number, _)| *number != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_end_files_and_folders_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, sub) = (folder.path().join("file"), folder.path().join("sub"));
        std::fs::write(&file, "text").expect("written");
        std::fs::create_dir_all(sub.join("deeper")).expect("made");
        let mut live = LiveResources { paths: vec![file, sub], pipes: Vec::new(), next: 0 };
        live.end();
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
