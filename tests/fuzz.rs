//! Fuzzing with stable Rust: mutations of our own files against each target, ten seconds in all. `WF_FUZZ_SECONDS=30`
//! sets half a minute, as in CI, and `WF_FUZZ=600` ten minutes each. The seed is printed; `WF_SEED=7` sets another. The
//! current input is always in a file, whose name is printed, so that it is available after a crash or a hang.
//! `fuzz/README.md` describes the same with coverage.

#[path = "fuzz/meshes.rs"]
mod meshes;
#[path = "fuzz/mutate.rs"]
mod mutate;
#[path = "fuzz/targets.rs"]
mod targets;
#[path = "fuzz/text.rs"]
mod text;
#[path = "fuzz/volume.rs"]
mod volume;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fem_dsl::testing::{FieldShape, Options, random_form};
use mutate::{Mutator, Random};

/// Time limit of an input: longer ones are hangs.
const LONGEST: Duration = Duration::from_secs(60);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns an integer from the environment.
fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Returns the files of a folder with this extension, no longer than `most` bytes.
fn files(folder: &str, extension: &str, most: usize) -> Vec<Vec<u8>> {
    let folder = root().join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    let read = |path: PathBuf| std::fs::read(path).expect("a file");
    paths.into_iter().map(read).filter(|bytes| bytes.len() <= most).collect()
}

/// Returns our texts of the language.
fn texts() -> Vec<Vec<u8>> {
    let folders = ["examples", "tests/forms", "tests/errors"];
    let mut texts: Vec<_> =
        folders.iter().flat_map(|folder| files(folder, "wf", 1 << 16)).collect();
    texts.extend((0..8).map(|seed| form(&mut Random(seed))));
    texts
}

/// Returns a form without errors.
fn form(random: &mut Random) -> Vec<u8> {
    let shapes =
        [FieldShape::Scalar, FieldShape::Vector, FieldShape::VectorOf(3), FieldShape::Tensor];
    let options = Options {
        dim: 2 + random.below(2),
        shape: shapes[random.below(4)],
        linear: random.below(4) == 0,
        kinks: random.below(2) == 0,
        depth: random.below(3),
        ..Options::default()
    };
    random_form(random.below(1 << 30) as u64, &options).into_bytes()
}

/// Returns a choice of kernel followed by a text.
fn chosen(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let choice: [u8; 4] = std::array::from_fn(|_| random.below(256) as u8);
    [&choice[..], text].concat()
}

/// Returns the initial inputs of a target's mutations.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = files(&format!("fuzz/seeds/{target}"), "bin", usize::MAX);
    match target {
        "parse" | "check" => seeds.extend(texts()),
        "emit" => {
            let mut random = Random(11);
            seeds.extend(texts().iter().map(|text| chosen(&mut random, text)));
        }
        "mesh" => {
            seeds.extend(files("meshes", "msh", 20_000));
            for extension in ["msh", "vtu", "vtk", "inp"] {
                seeds.extend(files("runtime/tests/meshes", extension, 20_000));
            }
            seeds.extend(meshes::small());
        }
        "data" => seeds.extend(meshes::data()),
        _ => seeds.extend((0..8_u8).map(|file| vec![file, 90, 0, 3, 0, b'x'])),
    }
    assert!(seeds.len() >= 8, "only {} seeds", seeds.len());
    seeds
}

/// Returns the time of a target: meshes have two shares of the total, each other target one.
fn time(target: &str) -> Duration {
    let all = number("WF_FUZZ_SECONDS", 10) * 1000;
    let parts = 1 + targets::TARGETS.len() as u64;
    let own = all * if target == "mesh" { 2 } else { 1 } / parts;
    let each = std::env::var("WF_FUZZ").ok().map(|_| number("WF_FUZZ", 0) * 1000);
    Duration::from_millis(each.unwrap_or(own))
}

/// Ends the program if an input takes too long; the channel receives the start of each input.
fn watch(target: &'static str, input: PathBuf) -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        while receiver.recv().is_ok() {
            let begun = Instant::now();
            while let Err(mpsc::RecvTimeoutError::Timeout) = receiver.recv_timeout(LONGEST) {
                if begun.elapsed() >= LONGEST {
                    eprintln!("{target} takes more than {LONGEST:?} for {}", input.display());
                    std::process::abort();
                }
            }
        }
    });
    sender
}

/// Runs one target for its time.
fn drive(target: &'static str) {
    let (_, run) =
        targets::TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target");
    let seed = number("WF_SEED", 1);
    let time = time(target);
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}.bin"));
    println!("{target}: seed {seed}, {time:?}, input in {}", input.display());
    let watched = watch(target, input.clone());
    let (mut count, mut slowest) = (0_u64, (Duration::ZERO, Vec::new()));
    let mut try_one = |bytes: &[u8]| {
        std::fs::write(&input, bytes).expect("the input can be kept");
        watched.send(()).expect("the watch goes on");
        let begun = Instant::now();
        run(bytes);
        watched.send(()).expect("the watch goes on");
        if begun.elapsed() > slowest.0 {
            slowest = (begun.elapsed(), bytes.to_vec());
        }
        count += 1;
    };
    let seeds = seeds(target);
    let begun = Instant::now();
    seeds.iter().for_each(|seed| try_one(seed));
    let mut mutator = Mutator::new(seed, &seeds);
    let mut random = Random(!seed);
    while begun.elapsed() < time {
        try_one(&mutator.next());
        // Mutated files are usually rejected; those with changed numbers are read more often.
        if matches!(target, "mesh" | "data") {
            let mut bytes = seeds[random.below(seeds.len())].clone();
            meshes::change(&mut random, &mut bytes);
            try_one(&bytes);
        }
        // Mutated forms usually have errors, and then nothing is emitted.
        if target == "emit" {
            let text = form(&mut random);
            try_one(&chosen(&mut random, &text));
        }
    }
    std::fs::write(input.with_extension("slowest.bin"), slowest.1).expect("the input can be kept");
    println!("{target}: {count} inputs, the slowest in {:?}", slowest.0);
}

#[test]
fn parse() {
    drive("parse");
}

#[test]
fn check() {
    drive("check");
}

#[test]
fn emit() {
    drive("emit");
}

#[test]
fn mesh() {
    drive("mesh");
}

#[test]
fn data() {
    drive("data");
}

#[test]
fn cache() {
    drive("cache");
}
