//! The CPU's just-in-time compiler: Rust source text → `rustc` → a shared object → [`Library`].
//!
//! `rustc` is the one of `$WF_RUSTC`, else `$RUSTC`, else the first on `$PATH`; where there is none, [`compile`] says
//! so and the caller goes on with the interpreter. What was compiled once is kept in a folder that is the user's
//! alone (`$WF_CACHE_DIR`, else `weakform` in the user's cache folder) and found again by everything that can change
//! the binary: source, flags, compiler, processor and our version. With `$WF_DUMP_DIR` every source is also written
//! there, to read. A compiler that takes longer than `$WF_COMPILE_SECONDS`, or that makes what cannot be loaded, is not
//! asked again: from then on it is as if there were none.

mod cache;
mod child;
mod compiler;
mod environment;
mod foreign;
mod load;
mod notice;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kernels_gen::dialect::Language;
use kernels_gen::dialect::rust::Isa;

use crate::device::cpu::{LaunchError, Library, LoadError, Machine, limit};
use crate::support::atomic_file;
use crate::support::doing::doing;
use crate::support::scratch::Folder;

pub use cache::{Cache, CacheError, Contents};
pub use compiler::{Compiler, CompilerError};
pub use environment::Environment;
pub use foreign::Foreign;

use cache::{Key, MODULE};
use notice::waiting;
pub(crate) use notice::warn_once;

/// The name of the source while `rustc` reads it.
const SOURCE: &str = "kernels.rs";

/// How a source is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the source is about; names the files that are dumped.
    pub name: String,
    /// Flags for `rustc`, beside the edition, the crate type and the codegen units. They can change what code does, and
    /// are this crate's alone.
    pub(crate) flags: Vec<String>,
    /// Into how many units `rustc` splits the source: more compile in parallel, one optimises best.
    pub(crate) codegen_units: u32,
}

impl Default for Options {
    fn default() -> Self {
        let flags = ["opt-level=3", "target-cpu=native", "panic=abort", "strip=symbols"];
        let own = Self {
            name: "kernels".into(),
            flags: flags.iter().map(|flag| format!("-C{flag}")).collect(),
            codegen_units: 1,
        };
        match limit() {
            Some(isa) => own.tuned_for(isa),
            None => own,
        }
    }
}

/// Why there is no compiled module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JitError {
    /// There is no `rustc` that can be used.
    #[error(transparent)]
    Compiler(#[from] CompilerError),
    /// `rustc` refused the source.
    #[error("rustc could not compile {name}; its source is {}\n{log}", dump.display())]
    Rejected {
        /// The name of the options.
        name: String,
        /// What `rustc` wrote.
        log: String,
        /// Where the source can be read.
        dump: PathBuf,
    },
    /// The module was compiled but is not what was asked for.
    #[error("{0}\nhelp: name another compiler with WF_RUSTC")]
    Load(#[from] LoadError),
    /// Kernels of a language that is not this compiler's.
    #[error("kernels in {language} are not for `rustc`")]
    OtherLanguage {
        /// The language.
        language: Language,
    },
    /// Kernels for instructions that this processor does not have.
    #[error("the kernels are for {isa}, which this processor does not have")]
    OtherProcessor {
        /// The instruction set.
        isa: Isa,
    },
    /// A kernel was not launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A kernel gave something else than it should.
    #[error("a kernel that should give [1, 2, 3] gave {values:?}")]
    Wrong {
        /// What it gave.
        values: [f64; 3],
    },
    /// A file could not be written or read on the way.
    #[error("cannot {doing} {}: {error}\nhelp: choose another folder with WF_CACHE_DIR or TMPDIR", path.display())]
    Files {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The compiler could not write.
    #[error(
        "rustc could not write in {}: {reason}\n\
         help: make room there, or choose another folder with WF_CACHE_DIR or TMPDIR",
        folder.display()
    )]
    NoRoom {
        /// Where it worked.
        folder: PathBuf,
        /// What it said, or the system.
        reason: String,
    },
}

/// What programs print when they cannot write a file, whatever the reason.
const CANNOT_WRITE: [&str; 6] = [
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Read-only file system",
    "Permission denied",
    "Input/output error",
];

/// Why a compiler has failed, where it found no fault in the source: its linker is missing or fails, it was ended, it does
/// not have what it needs. The first lines of what it said, and what to do.
fn failure(log: &str, status: std::process::ExitStatus) -> Option<String> {
    // Faults of a source come with its line, and as a rule with a code; E0463 and E0786 are those of its libraries.
    let code = |line: &&str| line.starts_with("error[E");
    let libraries = ["error[E0463]", "error[E0786]"];
    let own =
        log.lines().find(code).is_none_or(|line| libraries.iter().any(|l| line.starts_with(l)));
    let in_source = log.lines().any(|line| line.trim_start().starts_with(&format!("--> {SOURCE}")));
    let linking = log.contains("linker `") || log.contains("linking with `");
    if !own || (in_source && !linking && !log.contains("E0463")) {
        return None;
    }
    let first = log.lines().find(|line| line.starts_with("error")).or(log.lines().next());
    let first = first.unwrap_or_default().trim_start_matches("error: ");
    let how = match (linking, status.code()) {
        (true, _) => "\nhelp: install a linker, as gcc or clang bring one",
        (false, None) => "\nhelp: name another compiler with WF_RUSTC",
        (false, Some(_)) => "\nhelp: reinstall Rust, or name another compiler with WF_RUSTC",
    };
    Some(format!("{first}{how}"))
}

/// Room that a module needs at least, in bytes.
const ROOM: usize = 1 << 20;

/// Compiles `source`, the text of a Rust `cdylib`, or finds it in the cache, as the process's environment says.
///
/// # Errors
///
/// [`JitError`]; with [`JitError::Compiler`] the caller can go on without compiled kernels.
pub(crate) fn compile(source: &str, options: &Options) -> Result<Library, JitError> {
    Jit::global().compile(source, options)
}

/// Whether there is a `rustc` to compile with.
pub fn available() -> bool {
    Jit::global().compiler().is_ok()
}

/// The compiler, the cache and the folder for dumps that one environment names.
#[derive(Debug)]
pub struct Jit {
    environment: Environment,
    cache: Result<Cache, CacheError>,
    compiler: OnceLock<Result<Compiler, CompilerError>>,
    /// Why the compiler is not asked again.
    given_up: OnceLock<CompilerError>,
    /// What compilers are waited for, and it was said. The parts of a source have one name.
    waited_for: Mutex<BTreeSet<String>>,
    machine: Machine,
}

impl Jit {
    /// The one of this process's environment, read at the first use.
    pub fn global() -> &'static Self {
        static JIT: LazyLock<Jit> = LazyLock::new(|| Jit::new(Environment::from_process()));
        &JIT
    }

    /// One for an environment of its own.
    pub fn new(environment: Environment) -> Self {
        let cache = match &environment.cache_dir {
            Some(folder) => Cache::open(folder),
            None => Err(CacheError::Nowhere),
        };
        Self {
            environment,
            cache,
            compiler: OnceLock::new(),
            given_up: OnceLock::new(),
            waited_for: Mutex::default(),
            machine: Machine::detect(),
        }
    }

    /// The compiler; looked for once.
    ///
    /// # Errors
    ///
    /// [`CompilerError`] if there is none, it does not run, it is too old, or it failed before at more than a source.
    pub fn compiler(&self) -> Result<&Compiler, &CompilerError> {
        if let Some(error) = self.given_up.get() {
            return Err(error);
        }
        let find = || Compiler::find(&self.environment, self.cache.as_ref().ok());
        self.compiler.get_or_init(find).as_ref()
    }

    /// The cache, or why there is none.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if its folder cannot be made or cannot be trusted.
    pub fn cache(&self) -> Result<&Cache, &CacheError> {
        self.cache.as_ref()
    }

    /// How long a compiler may take.
    pub fn bound(&self) -> Duration {
        self.environment.bound()
    }

    /// Compiles `source` or finds it in the cache. Loading it runs its initialisers, whatever they are: generated sources
    /// have none, and others must not.
    ///
    /// # Errors
    ///
    /// [`JitError`].
    pub(crate) fn compile(&self, source: &str, options: &Options) -> Result<Library, JitError> {
        let compiler = self.compiler().map_err(Clone::clone)?;
        let made = self.find_or_make(compiler, source, options);
        if let Err(JitError::Compiler(error)) = &made {
            // Where several find it out at once, the first is as good as the others.
            let _ = self.given_up.set(error.clone());
        }
        made
    }

    fn find_or_make(
        &self,
        compiler: &Compiler,
        source: &str,
        options: &Options,
    ) -> Result<Library, JitError> {
        let key = self.key(compiler, source, options);
        self.dump(&dump_name(&key, &options.name, "rs"), source);
        let cache = match &self.cache {
            Ok(cache) => cache,
            Err(error) => {
                warn_unkept(error);
                return self.compile_aside(compiler, &key, source, options);
            }
        };
        if let Some(path) = cache.lookup(&key)
            && let Ok(library) = open(compiler, &path)
        {
            tracing::debug!(path = %path.display(), "found {} in the cache", options.name);
            return Ok(library.mark_cached());
        }
        // Processes that are started together want the same: one makes it.
        let _turn = cache.turn(&key);
        if cache.is_whole(&key)
            && let Some(path) = cache.lookup(&key)
            && let Ok(library) = open(compiler, &path)
        {
            return Ok(library.mark_cached());
        }
        let folder = match cache.workplace() {
            Ok(folder) => folder,
            Err(error) => {
                warn_unkept(&error);
                return self.compile_aside(compiler, &key, source, options);
            }
        };
        match self.run(compiler, &folder, &key, source, options) {
            Ok(()) => {}
            // The cache may lie on a full disk where the temporary folder does not.
            Err(error @ (JitError::NoRoom { .. } | JitError::Files { .. })) => {
                warn_unkept(&error);
                drop(folder);
                return self.compile_aside(compiler, &key, source, options);
            }
            Err(error) => return Err(error),
        }
        match cache.store(&key, folder) {
            // What cannot be loaded is not kept.
            Ok(path) => open(compiler, &path).inspect_err(|_| cache.discard(&key)),
            Err((error, folder)) => {
                warn_unkept(&error);
                Ok(open(compiler, &folder.path().join(MODULE))?.keep(folder))
            }
        }
    }

    /// Everything that can change the binary.
    fn key(&self, compiler: &Compiler, source: &str, options: &Options) -> Key {
        let flags = options.flags.join("\n");
        Key::new(&[
            ("weakform", env!("CARGO_PKG_VERSION")),
            ("compiler", &compiler.identity()),
            ("processor", &self.machine.identity),
            ("flags", &flags),
            ("codegen units", &options.codegen_units.to_string()),
            ("source", source),
        ])
    }

    /// Compiles in a temporary folder of the system, which goes away with the library.
    fn compile_aside(
        &self,
        compiler: &Compiler,
        key: &Key,
        source: &str,
        options: &Options,
    ) -> Result<Library, JitError> {
        let folder = temporary()?;
        self.run(compiler, &folder, key, source, options)?;
        Ok(open(compiler, &folder.path().join(MODULE))?.keep(folder))
    }

    /// Runs `rustc` in `folder`: [`SOURCE`] → [`MODULE`].
    ///
    /// Names are relative to the folder, so that the module does not depend on where it was compiled.
    fn run(
        &self,
        compiler: &Compiler,
        folder: &Folder,
        key: &Key,
        source: &str,
        options: &Options,
    ) -> Result<(), JitError> {
        let path = folder.path().join(SOURCE);
        fs::write(&path, source).map_err(|error| JitError::Files {
            doing: "write",
            path,
            error,
        })?;
        let _said = doing("compiling kernels");
        let started = std::time::Instant::now();
        let mut command = Command::new(compiler.path());
        command
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=kernels"])
            .args(["--cap-lints=allow", "--color=never"])
            .arg(format!("-Ccodegen-units={}", options.codegen_units.max(1)))
            .args(&options.flags)
            .args(["-o", MODULE, SOURCE])
            .current_dir(folder.path())
            // What the compiler and the linker leave behind when they die goes away with the folder.
            .env("TMPDIR", folder.path())
            .env_remove("RUSTC_BOOTSTRAP")
            .env_remove("RUSTC_LOG");
        let broken =
            |reason: String| CompilerError::Broken { path: compiler.path().into(), reason };
        let (task, bound) = (task(source, &options.name), self.bound());
        let waited_for = || self.waited_for.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = false;
        let slow = || {
            own = waited_for().insert(options.name.clone());
            if own {
                waiting(compiler.path(), &task, bound);
            }
        };
        let output = child::run(&mut command, bound, slow);
        if own {
            waited_for().remove(&options.name);
        }
        let output = output.map_err(|e| broken(e.to_string()))?;
        let Some(output) = output else {
            return Err(CompilerError::Late { path: compiler.path().into(), task, bound }.into());
        };
        if !output.status.success() {
            let mut log = String::from_utf8_lossy(&output.stderr).into_owned();
            if log.trim().is_empty() {
                log = output.status.to_string();
            }
            if let Some(reason) = without_room(folder.path(), &log) {
                return Err(JitError::NoRoom { folder: folder.path().into(), reason });
            }
            // A compiler that says nothing of the source has failed for reasons of its own.
            if let Some(reason) = failure(&log, output.status) {
                return Err(broken(reason).into());
            }
            let dump = self.dump_rejected(&dump_name(key, &options.name, "rs"), source)?;
            return Err(JitError::Rejected { name: options.name.clone(), log, dump });
        }
        if !folder.path().join(MODULE).is_file() {
            return Err(broken("it ends well and has written nothing".into()).into());
        }
        tracing::debug!(seconds = started.elapsed().as_secs_f64(), "compiled {}", options.name);
        Ok(())
    }

    /// Writes the source to the folder that the user named for that, if any.
    fn dump(&self, file: &str, source: &str) {
        let Some(folder) = &self.environment.dump_dir else { return };
        let path = folder.join(file);
        if let Err(error) = fs::create_dir_all(folder) {
            warn_once(&format!("cannot make {} (WF_DUMP_DIR): {error}", folder.display()));
        } else if let Err(error) = atomic_file::write(&path, |out| out.write_all(source.as_bytes()))
        {
            warn_once(&format!("cannot write {} (WF_DUMP_DIR): {error}", path.display()));
        }
    }

    /// Keeps a source that a compiler refused where the user can read it.
    fn dump_rejected(&self, file: &str, source: &str) -> Result<PathBuf, JitError> {
        let dumped = self.environment.dump_dir.as_ref().map(|folder| folder.join(file));
        if let Some(path) = dumped.filter(|path| path.is_file()) {
            return Ok(path);
        }
        if let Ok(cache) = &self.cache
            && let Ok(path) = cache.keep_rejected(file, source)
        {
            return Ok(path);
        }
        let folder = std::env::temp_dir();
        let keep = || -> std::io::Result<PathBuf> {
            let mut builder = tempfile::Builder::new();
            let suffix = format!("-{file}");
            let kept = builder.prefix("weakform-").suffix(&suffix).tempfile_in(&folder)?;
            fs::write(kept.path(), source)?;
            Ok(kept.keep()?.1)
        };
        keep().map_err(|error| JitError::Files {
            doing: "write a file in",
            path: folder.clone(),
            error,
        })
    }
}

/// Says that kernels are not kept.
fn warn_unkept(error: &dyn std::error::Error) {
    warn_once(&format!("compiled kernels are not kept for the next run: {error}"));
}

/// Loads what a compiler made: from a copy in the system's folder for temporary files where nothing may be run in its own.
fn open(compiler: &Compiler, path: &Path) -> Result<Library, JitError> {
    let first = match Library::open(path) {
        Ok(library) => return Ok(library),
        Err(error) => error,
    };
    let unloadable = |error: LoadError| CompilerError::Unloadable {
        path: compiler.path().into(),
        reason: error.reason(),
    };
    let folder = temporary()?;
    let copy = folder.path().join(MODULE);
    fs::copy(path, &copy).map_err(|error| JitError::Files {
        doing: "write",
        path: copy.clone(),
        error,
    })?;
    let library = Library::open(&copy).map_err(unloadable)?;
    warn_once(&format!(
        "kernels are loaded from a temporary folder: nothing in {} can be run ({})\n\
         help: is it mounted `noexec`? name another folder with WF_CACHE_DIR",
        path.ancestors().nth(2).unwrap_or(path).display(),
        first.reason()
    ));
    Ok(library.keep(folder))
}

/// A temporary folder of the system.
fn temporary() -> Result<Folder, JitError> {
    Folder::new().map_err(|error| JitError::Files {
        doing: "make a folder in",
        path: std::env::temp_dir(),
        error,
    })
}

/// What a compiler does with a source, for those who wait.
fn task(source: &str, name: &str) -> String {
    let kernels = source.matches("extern \"C\" fn").count();
    let plural = if kernels == 1 { "" } else { "s" };
    format!("compiling {kernels} kernel{plural} of `{name}`")
}

/// Why the compiler could not write in `folder`, if that is why it failed.
fn without_room(folder: &Path, log: &str) -> Option<String> {
    let line = log.lines().find(|line| CANNOT_WRITE.iter().any(|text| line.contains(text)));
    if let Some(line) = line {
        return Some(line.trim().trim_start_matches("error: ").to_owned());
    }
    // A linker that maps its output may die without a word.
    let file = tempfile::NamedTempFile::new_in(folder);
    let written = file.and_then(|file| fs::write(file.path(), vec![1; ROOM]));
    written.err().map(|error| error.to_string())
}

/// The file name of a dumped source: what it is about, and the key's hash.
fn dump_name(key: &Key, name: &str, extension: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!("{name}-{}.{extension}", &key.hash()[..16])
}

#[cfg(test)]
mod tests;
