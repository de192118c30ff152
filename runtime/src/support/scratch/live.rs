//! What must not outlive the program: temporary files and folders, and programs that were started.

use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often, and how far apart, something is removed in which a dying program may still write.
const REMOVALS: (usize, Duration) = (50, Duration::from_millis(10));

/// All of it.
static LIVE: Mutex<Live> = Mutex::new(Live { paths: Vec::new(), pipes: Vec::new(), next: 0 });

pub(super) struct Live {
    paths: Vec<PathBuf>,
    pipes: Vec<(u64, ChildStdin)>,
    next: u64,
}

/// What there is, for as long as nobody else looks.
pub(super) fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Notes that a file or folder is there.
    pub(super) fn note(&mut self, path: &Path) -> Noted {
        self.paths.push(path.to_owned());
        Noted(path.to_owned())
    }

    /// Ends the programs, then removes the files.
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

/// Ends the programs that were started and removes all temporary files and folders, before the program itself ends.
///
/// Whoever then starts a program or makes a file waits for ever, so that nothing comes after.
pub fn end() {
    let mut live = live();
    live.end();
    std::mem::forget(live);
}

/// A file or folder that is noted as long as this value lives.
#[derive(Debug)]
pub(super) struct Noted(PathBuf);

impl Drop for Noted {
    fn drop(&mut self) {
        live().paths.retain(|known| *known != self.0);
    }
}

/// The end of a pipe that is closed with this value, or with [`end`], or with the program.
#[derive(Debug)]
pub(crate) struct Pipe(u64);

impl Pipe {
    pub(crate) fn hold(end: ChildStdin) -> Self {
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
        let mut live = Live { paths: vec![file, sub], pipes: Vec::new(), next: 0 };
        live.end();
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
