//! Communication between GPUs of this machine, one thread each: messages, sums over all GPUs, and shared entries, which
//! are also tested through the host. With fewer than two GPUs only the latter runs, with a notice.

use runtime::algebra::vector::Precision;
use runtime::device::{Arithmetic, Array, Backend, Device, SharedEntries, open};
use runtime::processes::ProcessGroup;
use runtime::processes::interface_exchange::SharedEntryLists;
use runtime::processes::threads::each;
use std::io::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the number of GPUs of this build and machine; 0 for a single one.
fn gpus() -> usize {
    let count = runtime::device::cuda::devices().map_or(0, |names| names.len());
    if count < 2 {
        let _ = writeln!(std::io::stderr(), "several GPUs are not tested: there are {count}");
        return 0;
    }
    count
}

/// Held by tests with several GPUs: a GPU takes part in one group at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `work` on one thread per GPU, if there are several.
fn each_gpu(work: impl Fn(Arc<dyn ProcessGroup>) + Sync) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    each(gpus(), work);
}

/// Returns the GPU of this thread, connected to the others.
fn joined(group: &Arc<dyn ProcessGroup>) -> Arc<dyn Device> {
    let device = open(Backend::Cuda, Some(&group.rank().to_string())).expect("a GPU");
    let joined = device.join(group).expect("GPUs of one machine");
    assert_eq!(joined.instead, None, "by {}", joined.transport);
    device
}

/// Integers below 1,000 that differ by process, position and time.
fn number(process: usize, place: usize, time: usize) -> f64 {
    ((process + 1) * 7919 + place * 104_729 + time * 31).rem_euclid(997) as f64
}

fn upload(device: &dyn Device, single: bool, numbers: &[f64]) -> Array {
    let made = match single {
        true => device.upload(&numbers.iter().map(|&x| x as f32).collect::<Vec<f32>>()),
        false => device.upload(numbers),
    };
    made.expect("an array")
}

/// Lengths below and above the number of threads of a kernel and the size of a message.
const LENGTHS: [usize; 9] = [1, 2, 3, 700, 65_537, 1, 131_073, 300_001, 5];

/// Returns a counter, the length, and whether single precision is used.
fn lengths() -> impl Iterator<Item = (usize, usize, bool)> {
    let cases = LENGTHS.into_iter().flat_map(|n| [(n, false), (n, true)]);
    cases.enumerate().map(|(time, (n, single))| (time, n, single))
}

#[test]
fn sums_of_all_gpus_are_the_same_everywhere() {
    each_gpu(|group| {
        let device = joined(&group);
        let (size, own) = (group.size(), group.rank());
        for (time, n, single) in lengths() {
            let numbers = |of: usize| (0..n + 1).map(move |i| number(of, i, time));
            let array = upload(&*device, single, &numbers(own).collect::<Vec<_>>());
            let devices = device.group().expect("GPUs that reach each other");
            devices.sum(&array, n).expect("sums");
            let found = device.download(&array).expect("numbers");
            for (i, (&found, own)) in found.iter().zip(numbers(own)).enumerate() {
                let all: f64 = (0..size).map(|of| number(of, i, time)).sum();
                assert_eq!(found, if i < n { all } else { own }, "{i} of {n}, single: {single}");
            }
        }
    });
}

#[test]
fn what_gpus_send_each_other_arrives_in_its_place() {
    each_gpu(|group| {
        let device = joined(&group);
        let (size, own) = (group.size(), group.rank());
        for (time, n, single) in lengths() {
            // Equal numbers for each pair of processes, consecutive, after three unsent entries.
            let of_pair = |a: usize, b: usize| n + 2 * (a + b);
            let mut neighbours: Vec<(usize, Range<usize>)> = Vec::new();
            for other in (0..size).filter(|&other| other != own) {
                let first = neighbours.last().map_or(3, |(_, range)| range.end);
                neighbours.push((other, first..first + of_pair(own, other)));
            }
            let end = neighbours.last().map_or(3, |(_, range)| range.end) + 1;
            let mut sent = vec![-1.0; end];
            for (other, range) in &neighbours {
                for (k, at) in range.clone().enumerate() {
                    sent[at] = number(own * size + other, k, time);
                }
            }
            let sent = upload(&*device, single, &sent);
            let received = upload(&*device, single, &vec![-2.0; end]);
            let devices = device.group().expect("GPUs that reach each other");
            devices.exchange(&neighbours, &sent, &received).expect("messages");
            let mut known = vec![-2.0; end];
            for (other, range) in &neighbours {
                for (k, at) in range.clone().enumerate() {
                    known[at] = number(other * size + own, k, time);
                }
            }
            assert!(device.download(&received).expect("numbers") == known, "{n}, {single}");
        }
    });
}

/// Returns the processes that share each entry: at least two, in some cases all.
fn owners(entries: usize, size: usize) -> Vec<Vec<usize>> {
    let of = |entry: usize| {
        let (a, b) = (entry % size, (entry / size + 1 + entry) % size);
        let third = entry.is_multiple_of(5);
        (0..size).filter(move |&process| process == a || process == b || third).collect::<Vec<_>>()
    };
    (0..entries).map(of).filter(|own| own.len() > 1).collect()
}

/// Returns the index of an entry in a vector with gaps.
fn place(entry: usize) -> u32 {
    3 * entry as u32 + 1
}

fn lists(owners: &[Vec<usize>], own: usize, size: usize) -> SharedEntryLists {
    let mut lists = SharedEntryLists::default();
    // The position of each entry in the data sent to each neighbour.
    let mut places = vec![Vec::new(); owners.len()];
    let mut next = 0u32;
    for other in (0..size).filter(|&other| other != own) {
        let both = |entry: &usize| owners[*entry].contains(&own) && owners[*entry].contains(&other);
        let common: Vec<usize> = (0..owners.len()).filter(both).collect();
        if common.is_empty() {
            continue;
        }
        for &entry in &common {
            places[entry].push((other, next));
            next += 1;
        }
        lists.sent.push((other, common.into_iter().map(place).collect()));
    }
    lists.starts.push(0);
    for (entry, having) in owners.iter().enumerate().filter(|(_, having)| having.contains(&own)) {
        lists.dofs.push(place(entry));
        for &process in having {
            let there = places[entry].iter().find(|(other, _)| *other == process);
            lists.sources.push(there.map_or(u32::MAX, |&(_, at)| at));
        }
        lists.starts.push(lists.sources.len() as u32);
        if having[0] < own {
            lists.others.push(place(entry));
        }
    }
    lists
}

/// Compares the shared entries of several processes, one thread each, with the expected values.
fn compare(device: &Arc<dyn Device>, group: &Arc<dyn ProcessGroup>, most: usize) {
    let (size, own) = (group.size(), group.rank());
    let of_lengths = [9, 1000, 90_000, 300_000].into_iter().filter(|&entries| entries <= most);
    let cases = of_lengths.flat_map(|n| [(n, Precision::F64), (n, Precision::F32)]);
    for (time, (entries, precision)) in cases.enumerate() {
        let owners = owners(entries, size);
        let len = 3 * owners.len() + 2;
        let arithmetic = Arithmetic::new(Arc::clone(device), precision).expect("operations");
        let lists = lists(&owners, own, size);
        let shared = SharedEntries::new(&arithmetic, len, group, &lists).expect("entries");
        for add in [true, false, true, true] {
            let numbers = |of: usize| (0..len).map(move |i| number(of, i, time));
            let single = precision == Precision::F32;
            let y = upload(&**device, single, &numbers(own).collect::<Vec<_>>());
            shared.exchange(&arithmetic, &y, add, &mut || Ok(())).expect("messages");
            let mut known: Vec<f64> = numbers(own).collect();
            for (entry, having) in owners.iter().enumerate().filter(|(_, all)| all.contains(&own)) {
                let at = place(entry) as usize;
                let all = having.iter().map(|&of| number(of, at, time));
                known[at] = if add { all.sum() } else { number(having[0], at, time) };
            }
            assert!(device.download(&y).expect("numbers") == known, "{entries}, {add}");
        }
    }
}

#[test]
fn entries_that_several_have_become_one() {
    each_gpu(|group| compare(&joined(&group), &group, usize::MAX));
    for device in super::devices::devices() {
        each(3, |group| compare(&device, &group, 1000));
    }
}
