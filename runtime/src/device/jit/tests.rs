//! The JIT under faults: damaged entries, concurrent processes, missing compiler, unwritable folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernels_gen::abi::{self, KernelAbi, Precision, Role};

use super::*;
use crate::device::cpu::{Argument, LaunchError, Module};

/// Returns a kernel that adds `factor` times the first argument to the second.
fn source(factor: f64) -> String {
    format!(
        "#[unsafe(no_mangle)]
         pub unsafe extern \"C\" fn axpy(begin: usize, end: usize, args: *const *const u8) {{ unsafe {{
             let x = *args as *const f64;
             let y = *args.add(1) as *mut f64;
             for i in begin..end {{ *y.add(i) += {factor:?} * *x.add(i); }}
         }} }}"
    )
}

/// Returns the interface of [`source`].
fn axpy() -> KernelAbi {
    let argument =
        |name: &str, role, written| abi::Argument { role, name: name.into(), extent: 1, written };
    let arguments = vec![argument("x", Role::Diameter, false), argument("y", Role::Stored, true)];
    KernelAbi::by_hand("axpy", Precision::F64, 1, arguments)
}

fn jit(cache: &Path) -> Jit {
    Jit::new(Environment { cache_dir: Some(cache.into()), ..Environment::from_process() })
}

/// Returns the result of the compiled kernel for y = 10 and x = 1.
fn run(library: Library) -> f64 {
    let module = Module::new(library, &[axpy()]).expect("a kernel");
    let (x, mut y) = ([1.0; 4], [10.0; 4]);
    module.launch("axpy", 1, 3, [Argument::read(&x), Argument::write(&mut y)]).expect("a launch");
    assert_eq!((y[0], y[3]), (10.0, 10.0), "only the batches of the range");
    assert_eq!(y[1], y[2]);
    y[1]
}

/// Returns the folder of the only entry of a cache.
fn only_entry(cache: &Path) -> PathBuf {
    let mut entries = fs::read_dir(cache.join("modules")).expect("modules");
    let entry = entries.next().expect("an entry").expect("readable").path();
    assert!(entries.next().is_none(), "one entry");
    entry
}

#[test]
fn the_second_time_comes_from_the_cache() {
    let cache = tempfile::tempdir().expect("a folder");
    let (source, options) = (source(2.0), JitOptions::default());
    let first = jit(cache.path()).compile(&source, &options).expect("compiles");
    assert!(!first.is_cached() && !first.is_temporary());
    assert_eq!(run(first), 12.0);
    let second = jit(cache.path()).compile(&source, &options).expect("found");
    assert!(second.is_cached());
    assert_eq!(run(second), 12.0);
    assert_eq!(fs::read_dir(cache.path().join("building")).expect("workplace").count(), 0);
    let contents = jit(cache.path()).cache().expect("a cache").contents();
    assert_eq!(contents.modules, 1);
    assert!(contents.bytes > 0);
}

#[test]
fn source_flags_and_units_each_make_another_entry() {
    let cache = tempfile::tempdir().expect("a folder");
    let jit = jit(cache.path());
    let base = JitOptions::default();
    let mut flags = base.clone();
    flags.further.push("-Cno-vectorize-loops".into());
    let units = JitOptions { codegen_units: 2, ..base.clone() };
    for (factor, options) in [(2.0, &base), (3.0, &base), (2.0, &flags), (2.0, &units)] {
        let library = jit.compile(&source(factor), options).expect("compiles");
        assert!(!library.is_cached());
        assert_eq!(run(library), 10.0 + factor);
    }
}

#[test]
fn damaged_and_foreign_entries_are_built_again_and_never_run() {
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).expect("written");
    };
    let damages: [(&str, &dyn Fn(&Path)); 6] = [
        ("a flipped bit in the module", &|entry| flip(&entry.join("module.so"))),
        ("a flipped bit in the key", &|entry| flip(&entry.join("key.txt"))),
        ("an empty module", &|entry| fs::write(entry.join("module.so"), "").expect("written")),
        ("a key that is not there", &|entry| fs::remove_file(entry.join("key.txt")).expect("gone")),
        ("a module that is not there", &|entry| {
            fs::remove_file(entry.join("module.so")).expect("gone");
        }),
        ("another key's entry", &|entry| {
            let other = tempfile::tempdir().expect("a folder");
            jit(other.path()).compile(&source(7.0), &JitOptions::default()).expect("compiles");
            for name in ["module.so", "key.txt"] {
                fs::copy(only_entry(other.path()).join(name), entry.join(name)).expect("copied");
            }
        }),
    ];
    for (what, damage) in damages {
        let cache = tempfile::tempdir().expect("a folder");
        let (source, options) = (source(2.0), JitOptions::default());
        jit(cache.path()).compile(&source, &options).expect("compiles");
        let entry = only_entry(cache.path());
        // A new file each time: writing into a mapped file would crash.
        damage(&entry);
        let library = jit(cache.path()).compile(&source, &options).expect("compiles again");
        assert!(!library.is_cached(), "{what} was used");
        assert_eq!(run(library), 12.0, "{what}");
        let library = jit(cache.path()).compile(&source, &options).expect("found");
        assert!(library.is_cached(), "{what} was not mended");
        assert_eq!(fs::read_dir(cache.path().join("building")).expect("workplace").count(), 0);
    }
}

#[test]
fn many_at_once_agree_on_one_entry() {
    let cache = tempfile::tempdir().expect("a folder");
    std::thread::scope(|scope| {
        let build = || {
            let library = jit(cache.path()).compile(&source(5.0), &JitOptions::default());
            assert_eq!(run(library.expect("compiles")), 15.0);
        };
        for _ in 0..6 {
            scope.spawn(build);
        }
    });
    only_entry(cache.path());
    assert_eq!(fs::read_dir(cache.path().join("building")).expect("workplace").count(), 0);
}

#[test]
fn no_compiler_is_an_error_that_says_what_to_do() {
    let environment = Environment {
        rustc: Some(("WF_RUSTC", "/nowhere/rustc".into())),
        ..Environment::default()
    };
    let jit = Jit::new(environment);
    let error = jit.compile(&source(2.0), &JitOptions::default()).expect_err("no compiler");
    assert!(matches!(error, JitError::Compiler(CompilerError::Missing { .. })), "{error}");
    assert!(error.to_string().contains("WF_RUSTC"), "{error}");

    let error = Jit::new(Environment::default()).compiler().expect_err("no search path").clone();
    assert_eq!(error, CompilerError::None);
}

#[cfg(unix)]
#[test]
fn a_compiler_that_is_old_or_none_at_all_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let fake = |name: &str, script: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("runnable");
        let rustc = Some(("RUSTC", path.into_os_string()));
        Jit::new(Environment { rustc, ..Environment::default() })
    };
    let old = fake("old", "echo rustc 1.70.0; echo release: 1.70.0");
    assert!(matches!(old.compiler(), Err(CompilerError::Old { .. })));
    let other = fake("other", "echo hello");
    assert!(matches!(other.compiler(), Err(CompilerError::Broken { .. })));
    let failing = fake("failing", "echo no licence >&2; exit 3");
    let error = failing.compiler().expect_err("broken").to_string();
    assert!(error.contains("no licence"), "{error}");
}

#[cfg(unix)]
#[test]
fn another_compiler_in_the_same_place_is_noticed() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rustc");
    let version = |release: &str| {
        let script = format!("#!/bin/sh\necho rustc {release}; echo release: {release}\n");
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("runnable");
        let rustc = Some(("RUSTC", path.clone().into_os_string()));
        let cache_dir = Some(folder.path().join("cache"));
        let jit = Jit::new(Environment { rustc, cache_dir, ..Environment::default() });
        jit.compiler().expect("a compiler").version().to_owned()
    };
    assert_eq!(version("1.95.0"), "rustc 1.95.0");
    assert_eq!(version("1.95.0"), "rustc 1.95.0");
    assert_eq!(version("1.100.10"), "rustc 1.100.10");
}

#[test]
fn a_cache_that_cannot_be_written_is_no_obstacle() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "in the way").expect("written");
    let jit = jit(&file.join("cache"));
    assert!(matches!(jit.cache(), Err(CacheError::Write { .. })));
    let library = jit.compile(&source(4.0), &JitOptions::default()).expect("compiles aside");
    assert!(library.is_temporary());
    let path = library.path().to_owned();
    assert_eq!(run(library), 14.0);
    assert!(!path.exists(), "the folder goes with the library");
}

#[test]
fn an_entry_that_cannot_be_placed_is_no_obstacle() {
    let cache = tempfile::tempdir().expect("a folder");
    fs::write(cache.path().join("modules"), "in the way").expect("written");
    let library =
        jit(cache.path()).compile(&source(4.0), &JitOptions::default()).expect("compiles");
    assert!(library.is_temporary());
    assert_eq!(run(library), 14.0);
}

#[cfg(unix)]
#[test]
fn the_cache_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    let mode = |path: &Path| fs::metadata(path).expect("a folder").permissions().mode() & 0o7777;

    let fresh = folder.path().join("made/by/us");
    Cache::open(&fresh).expect("made");
    assert_eq!(mode(&fresh), 0o700);

    let readable = folder.path().join("readable");
    fs::create_dir(&readable).expect("made");
    set(&readable, 0o755);
    Cache::open(&readable).expect("closed to the others");
    assert_eq!(mode(&readable), 0o700);

    let shared = folder.path().join("shared");
    fs::create_dir_all(shared.join("modules")).expect("made");
    set(&shared, 0o777);
    let error = Cache::open(&shared).expect_err("others may have written there");
    assert!(matches!(error, CacheError::Untrusted { .. }), "{error}");
    assert_eq!(mode(&shared), 0o777, "a folder that is not trusted is left alone");
}

/// A folder such as `$HOME` must not be closed to others.
#[cfg(unix)]
#[test]
fn a_folder_that_holds_something_else_is_no_cache_and_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).expect("a folder").permissions().mode() & 0o7777;
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("letter.txt"), "dear").expect("written");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("rights");
    for _ in 0..2 {
        let error = Cache::open(home.path()).expect_err("not ours");
        assert!(matches!(error, CacheError::Occupied { .. }), "{error}");
        assert!(error.to_string().contains("help: name a folder with WF_CACHE_DIR"), "{error}");
        assert_eq!(mode(home.path()), 0o755);
        assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 1);
    }
    // An empty folder becomes a cache, even if other files are added later.
    let cache = home.path().join("cache");
    fs::create_dir(&cache).expect("made");
    Cache::open(&cache).expect("ours");
    fs::write(cache.join("note.txt"), "text").expect("written");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).expect("rights");
    Cache::open(&cache).expect("still ours");
    assert_eq!(mode(&cache), 0o700);
    // A cache without the tag file.
    fs::remove_file(cache.join("note.txt")).expect("removed");
    fs::remove_file(cache.join("CACHEDIR.TAG")).expect("removed");
    fs::create_dir(cache.join("modules")).expect("made");
    Cache::open(&cache).expect("known by its folders");
}

#[cfg(unix)]
#[test]
fn folders_of_a_cache_that_others_could_have_written_are_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let cache = tempfile::tempdir().expect("a folder");
    Cache::open(cache.path()).expect("ours");
    let modules = cache.path().join("modules");
    let refused = |reason: &str| {
        let error = Cache::open(cache.path()).expect_err(reason).to_string();
        assert!(error.contains("modules is not trusted") && error.contains(reason), "{error}");
    };
    fs::create_dir(&modules).expect("made");
    fs::set_permissions(&modules, fs::Permissions::from_mode(0o777)).expect("rights");
    refused("others may write to it");
    fs::set_permissions(&modules, fs::Permissions::from_mode(0o755)).expect("rights");
    Cache::open(cache.path()).expect("ours again");
    // Only root can change the owner of a folder.
    if std::os::unix::fs::chown(&modules, Some(12345), None).is_ok() {
        refused("it belongs to another user");
    }
    fs::remove_dir(&modules).expect("removed");
    let elsewhere = tempfile::tempdir().expect("a folder");
    symlink(elsewhere.path(), &modules).expect("linked");
    refused("it is no folder");
}

/// Counts the warnings that contain some text.
struct Warnings(&'static str, Arc<AtomicUsize>);

impl tracing::field::Visit for Warnings {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if format!("{value:?}").contains(self.0) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Warnings(self.0, self.1.clone()));
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_damaged_entry_is_warned_of_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::open(folder.path()).expect("a cache");
    let key = CacheKey::new(&[("source", "some text")]);
    let store = || {
        let workplace = cache.workplace().expect("a folder");
        fs::write(workplace.path().join(MODULE), "a library").expect("written");
        cache.store(&key, workplace).expect("stored")
    };
    let module = store();
    assert_eq!(cache.lookup(&key), Some(module.clone()));
    let entry = module.parent().expect("an entry");
    let damages: [&dyn Fn(); 2] =
        [&|| fs::write(entry.join(MODULE), "a librarx").expect("written"), &|| {
            fs::remove_file(entry.join(MODULE)).expect("removed")
        }];
    let count = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Warnings("is damaged", count.clone()), || {
        for damage in damages {
            // A concurrent test may have met the warning first, without a subscriber.
            tracing::callsite::rebuild_interest_cache();
            damage();
            assert_eq!(cache.lookup(&key), None);
            assert_eq!(cache.lookup(&key), None);
            store();
            assert!(cache.lookup(&key).is_some(), "mended");
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn a_source_that_does_not_compile_can_be_read() {
    let cache = tempfile::tempdir().expect("a folder");
    let source = "pub fn broken() -> u32 { \"text\" }";
    let error = jit(cache.path()).compile(source, &JitOptions::default()).expect_err("ill-typed");
    let JitError::Rejected { log, dump, .. } = error else { panic!("{error}") };
    assert!(log.contains("mismatched types"), "{log}");
    assert_eq!(fs::read_to_string(dump).expect("dumped"), source);
}

#[test]
fn dumps_go_where_the_user_says_under_harmless_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("dump");
    let jit = Jit::new(Environment {
        cache_dir: Some(folder.path().join("cache")),
        dump_dir: Some(dump.clone()),
        ..Environment::from_process()
    });
    let options = JitOptions { name: "../a form".into(), ..JitOptions::default() };
    jit.compile(&source(2.0), &options).expect("compiles");
    let files: Vec<_> = fs::read_dir(&dump).expect("dumps").flatten().collect();
    assert_eq!(files.len(), 1);
    assert!(files[0].file_name().to_string_lossy().starts_with("___a_form-"));
    assert_eq!(fs::read_to_string(files[0].path()).expect("a dump"), source(2.0));
}

#[test]
fn kernels_that_are_not_there_are_errors() {
    let cache = tempfile::tempdir().expect("a folder");
    let compile =
        || jit(cache.path()).compile(&source(2.0), &JitOptions::default()).expect("compiles");
    for name in ["missing", "", "a\0b"] {
        assert!(matches!(
            Module::new(compile(), &[KernelAbi { name: name.into(), ..axpy() }]),
            Err(LoadError::Missing { .. })
        ));
    }
    let module = Module::new(compile(), &[axpy()]).expect("a module");
    let error = module.launch("other", 0, 1, []).expect_err("unknown");
    assert_eq!(error, LaunchError::UnknownKernel("other".into()));
}

#[test]
fn arguments_that_do_not_fit_the_abi_never_reach_the_kernel() {
    let cache = tempfile::tempdir().expect("a folder");
    let library =
        jit(cache.path()).compile(&source(2.0), &JitOptions::default()).expect("compiles");
    let module = Module::new(library, &[axpy()]).expect("a module");
    let kernel = module.kernel("axpy").expect("a kernel");
    let (x, single, mut y) = ([1.0; 4], [1.0_f32; 4], [0.0; 3]);
    let refusals = [
        kernel.bind([Argument::read(&x)]).err(),
        kernel.bind([Argument::read(&single), Argument::write(&mut y)]).err(),
        kernel.bind([Argument::read(&x), Argument::read(&x)]).err(),
    ];
    assert!(matches!(refusals[0], Some(LaunchError::WrongCount { expected: 2, found: 1, .. })));
    assert!(matches!(refusals[1], Some(LaunchError::WrongType { expected: "f64", .. })));
    assert!(matches!(refusals[2], Some(LaunchError::ReadOnly { .. })));
    let mut launch = kernel.bind([Argument::read(&x), Argument::write(&mut y)]).expect("fits");
    assert_eq!(launch.batches(), 3);
    assert!(matches!(launch.run(0..4), Err(LaunchError::NoSuchBatches { batches: 3, .. })));
}

#[test]
fn many_threads_run_ranges_of_one_launch() {
    let cache = tempfile::tempdir().expect("a folder");
    let library =
        jit(cache.path()).compile(&source(2.0), &JitOptions::default()).expect("compiles");
    let module = Module::new(library, &[axpy()]).expect("a module");
    let (x, mut y) = (vec![1.0; 64], vec![0.0; 64]);
    let arguments = [Argument::read(&x), Argument::write(&mut y)];
    let mut launch = module.kernel("axpy").expect("a kernel").bind(arguments).expect("fits");
    let parts: Vec<_> = (0..4).map(|chunk| 16 * chunk..16 * (chunk + 1)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
    pool.install(|| launch.run_disjoint(&parts)).expect("parts that lie apart");
    let overlapping = [0..2, 1..3];
    let refused = launch.run_disjoint(&overlapping);
    assert!(matches!(refused, Err(LaunchError::Overlapping { .. })), "{refused:?}");
    assert!(y.iter().all(|&value| value == 2.0));
}

#[test]
fn deferred_kernels_are_compiled_at_the_first_launch_and_once() {
    let cache = tempfile::tempdir().expect("a folder");
    let (jit, made) = (jit(cache.path()), Arc::new(AtomicUsize::new(0)));
    let mut module = Module::empty();
    let count = Arc::clone(&made);
    module.defer(vec![axpy()], move || {
        count.fetch_add(1, Ordering::Relaxed);
        let library = jit.compile(&source(2.0), &JitOptions::default());
        Module::new(library.expect("compiles"), &[axpy()]).map_err(|error| error.to_string())
    });
    module.defer(vec![KernelAbi { name: "broken".into(), ..axpy() }], || Err("no disk".into()));
    assert_eq!(module.abi("axpy").expect("an interface").arguments.len(), 2);
    assert_eq!(made.load(Ordering::Relaxed), 0, "an interface needs no kernel");
    let (x, mut y) = ([1.0; 2], [0.0; 2]);
    for _ in 0..2 {
        let arguments = [Argument::read(&x), Argument::write(&mut y)];
        module.launch("axpy", 0, 2, arguments).expect("a launch");
    }
    assert_eq!((y, made.load(Ordering::Relaxed)), ([4.0; 2], 1));
    let error = module.kernel("broken").expect_err("a reason");
    assert_eq!(error.to_string(), "the kernel `broken` could not be compiled: no disk");
    assert!(module.abi("broken").is_ok() && module.abi("other").is_err());
}
