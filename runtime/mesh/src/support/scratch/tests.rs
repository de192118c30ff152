//! Temporary files and folders of living and dead programs.

use super::*;

#[test]
fn what_dead_programs_left_is_swept_and_what_the_living_hold_is_not() {
    let parent = tempfile::tempdir().expect("a folder");
    let living = ScratchFolder::within(parent.path()).expect("a folder");
    let dead = parent.path().join("weakform-abcdefghijkl.tmp");
    let other = parent.path().join("weakform-master");
    for folder in [&dead, &other] {
        fs::create_dir_all(folder.join("inside")).expect("made");
    }
    sweep(parent.path(), |name, is_folder| is_folder && is_named(name, FOLDER));
    assert!(living.path().is_dir(), "swept from under a living program");
    assert!(!dead.exists(), "left behind");
    assert!(other.is_dir(), "not ours");
    drop(living);
    assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 1);
}

#[test]
fn a_part_that_a_killed_program_left_goes_when_the_folder_is_written_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let part = folder.path().join(".wf-a1B2c3.part");
    fs::write(&part, "half of it").expect("written");
    let held = ScratchFile::beside(&folder.path().join("u.vtu")).expect("a file");
    assert!(!part.exists(), "left behind");
    let second = ScratchFile::beside(&folder.path().join("v.vtu")).expect("a file");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "both are held");
    second.persist(&folder.path().join("v.vtu")).expect("in place");
    drop(held);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name(), "v.vtu");
}

#[test]
fn many_at_once_do_not_sweep_each_other() {
    let parent = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let folder = ScratchFolder::within(parent.path()).expect("a folder");
                    sweep(parent.path(), |_, _| true);
                    assert!(folder.path().is_dir());
                }
            });
        }
    });
    assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 0);
}

/// Another program may remove a new file before it is locked, and create another one in its place.
#[test]
fn what_vanishes_before_it_is_locked_is_made_again() {
    let parent = tempfile::tempdir().expect("a folder");
    for replaced in [false, true] {
        let tries = std::cell::Cell::new(0);
        let (made, _noted, lock) = locked(
            || tempfile::tempdir_in(parent.path()),
            |folder: &TempDir| folder.path(),
            |folder| {
                tries.set(tries.get() + 1);
                if tries.get() > 2 {
                    return fs::File::open(folder.path()).ok();
                }
                let early = replaced.then(|| fs::File::open(folder.path()).expect("there"));
                fs::remove_dir(folder.path()).expect("removed");
                if replaced {
                    // A permanent folder, so that its inode is not reused.
                    fs::create_dir(folder.path().with_extension("other")).expect("made");
                    fs::create_dir(folder.path()).expect("made");
                }
                early
            },
        )
        .expect("a folder");
        assert!(made.path().is_dir() && lock.is_some());
        assert_eq!(tries.get(), 3);
    }
}
