//! Just-in-time compiler of the CPU: source → `rustc`, GCC or Clang → a shared object → [`Library`].
//!
//! The compiler is `$WF_CC`, `$WF_RUSTC` or `$RUSTC`, else the first of several on `$PATH` (`jit/search`). Its language is
//! that of the kernels, Rust or C. Without one, [`Jit::load`] returns an error and the caller falls back to the
//! interpreter. Compiled modules are cached in a private folder of the user (`$WF_CACHE_DIR`,
//! else `weakform` in the user's cache folder). Their key contains everything that affects the binary: source, flags,
//! compiler, processor and package version. `$WF_DUMP_DIR` names a folder for copies of all sources. A compiler that
//! exceeds `$WF_COMPILE_SECONDS`, or whose output cannot be loaded, is not used again in this process.

mod cache;
mod command;
mod compiler;
mod compiler_process;
mod environment;
mod foreign;
mod load;
mod notice;
mod search;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kernels_gen::dialect::Language;
use kernels_gen::dialect::rust::Isa;

use crate::device::cpu::{LaunchError, Library, LoadError, Machine};
use crate::support::atomic_file;
use crate::support::progress::doing;
use crate::support::scratch::ScratchFolder;

pub use cache::{Cache, CacheError, CacheStatistics};
pub use command::JitOptions;
pub use compiler::{Compiler, CompilerError, CompilerKind};
pub use environment::Environment;
pub use foreign::ForeignSource;
pub use search::Candidate;

use cache::{CacheKey, MODULE};
use notice::waiting;
pub(crate) use notice::warn_once;

/// A hand-written source in each language, with the same kernels.
pub(crate) struct HandWritten {
    /// Rust.
    pub(crate) rust: &'static str,
    /// C.
    pub(crate) c: &'static str,
}

impl HandWritten {
    /// Returns the text in a compiler's language.
    fn text(&self, kind: CompilerKind) -> &'static str {
        match kind {
            CompilerKind::Rustc => self.rust,
            CompilerKind::C => self.c,
        }
    }
}

/// Error of the just-in-time compiler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JitError {
    /// No usable compiler.
    #[error(transparent)]
    Compiler(#[from] CompilerError),
    /// A source that the compiler rejects.
    #[error("{} could not compile {name}; its source is {}\n{log}", compiler.display(), dump.display())]
    Rejected {
        /// The compiler.
        compiler: PathBuf,
        /// The name in the options.
        name: String,
        /// The output of the compiler.
        log: String,
        /// The saved source.
        dump: PathBuf,
    },
    /// A compiled module that does not match the request.
    #[error("{0}\nhelp: name another compiler with WF_RUSTC or WF_CC")]
    Load(#[from] LoadError),
    /// Kernels in another language.
    #[error("kernels in {language} are not for {compiler}")]
    OtherLanguage {
        /// The language.
        language: Language,
        /// The compiler.
        compiler: String,
    },
    /// Kernels with instructions that this processor lacks.
    #[error("the kernels are for {isa}, which this processor does not have")]
    OtherProcessor {
        /// The instruction set.
        isa: Isa,
    },
    /// A failed kernel launch.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A test kernel with a wrong result.
    #[error("a kernel that should give [1, 2, 3] gave {values:?}")]
    Wrong {
        /// The result.
        values: [f64; 3],
    },
    /// A failed file operation.
    #[error("cannot {doing} {}: {error}\nhelp: choose another folder with WF_CACHE_DIR or TMPDIR", path.display())]
    Files {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A failed write of the compiler.
    #[error(
        "the compiler could not write in {}: {reason}\n\
         help: make room there, or choose another folder with WF_CACHE_DIR or TMPDIR",
        folder.display()
    )]
    NoRoom {
        /// The working folder.
        folder: PathBuf,
        /// The message of the compiler or the system.
        reason: String,
    },
}

/// Messages of programs that cannot write a file, for any reason.
const CANNOT_WRITE: [&str; 6] = [
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "Read-only file system",
    "Permission denied",
    "Input/output error",
];

/// Returns the first lines of the output, with advice, if the compiler failed for another reason than the source: a
/// missing or failing linker, a kill, missing libraries.
fn failure(compiler: &Compiler, log: &str, status: std::process::ExitStatus) -> Option<String> {
    if compiler.kind() == CompilerKind::C {
        return failure_of_c(compiler, log);
    }
    // Errors in a source have a line number, and usually a code; E0463 and E0786 concern libraries.
    let code = |line: &&str| line.starts_with("error[E");
    let libraries = ["error[E0463]", "error[E0786]"];
    let own =
        log.lines().find(code).is_none_or(|line| libraries.iter().any(|l| line.starts_with(l)));
    let in_source = log
        .lines()
        .any(|line| line.trim_start().starts_with(&format!("--> {}", compiler.source())));
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

/// Returns the same for a C compiler: its errors in a source have a line number.
fn failure_of_c(compiler: &Compiler, log: &str) -> Option<String> {
    let place = format!("{}:", compiler.source());
    let in_source = |line: &str| {
        let after = line.split_once(&place).map_or("", |(_, after)| after);
        after.starts_with(|c: char| c.is_ascii_digit()) && after.contains("error:")
    };
    if log.lines().any(in_source) {
        return None;
    }
    let first = log.lines().find(|line| line.contains("error")).or(log.lines().next());
    let first = first.unwrap_or_default();
    Some(format!("{first}\nhelp: reinstall it, or name another compiler with WF_CC or WF_RUSTC"))
}

/// Minimal free disk space for a module, in bytes.
const ROOM: usize = 1 << 20;

/// Compiles the text of a Rust `cdylib`, or finds it in the cache, with the settings of the process environment.
#[cfg(test)]
pub(crate) fn compile(source: &str, options: &JitOptions) -> Result<Library, JitError> {
    Jit::global().compile(source, options)
}

/// Starts to look for a compiler on another thread: a new cache does not know it, and asking takes a tenth of a second.
pub fn search() {
    // Without a thread, the first compilation looks for it.
    drop(std::thread::Builder::new().spawn(|| Jit::global().compiler().is_ok()));
}

/// Returns whether a usable compiler exists.
pub fn available() -> bool {
    Jit::global().compiler().is_ok()
}

/// The compiler, the cache and the dump folder of one environment.
#[derive(Debug)]
pub struct Jit {
    environment: Environment,
    cache: Result<Cache, CacheError>,
    compiler: OnceLock<Result<Compiler, CompilerError>>,
    /// The error after which the compiler is not used again.
    given_up: OnceLock<CompilerError>,
    /// Compilations whose delay has been reported; the parts of a source share a name.
    waited_for: Mutex<BTreeSet<String>>,
    machine: Machine,
}

impl Jit {
    /// Returns the instance for the process environment, created on first use.
    pub fn global() -> &'static Self {
        static JIT: LazyLock<Jit> = LazyLock::new(|| Jit::new(Environment::from_process()));
        &JIT
    }

    /// Creates an instance for a custom environment.
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

    /// Returns the compiler; searched for once.
    ///
    /// # Errors
    ///
    /// [`CompilerError`] if there is none, it does not run, it is too old, or it failed earlier for another reason than
    /// a source.
    pub fn compiler(&self) -> Result<&Compiler, &CompilerError> {
        if let Some(error) = self.given_up.get() {
            return Err(error);
        }
        let find = || search::find(&self.environment, self.cache.as_ref().ok());
        self.compiler.get_or_init(find).as_ref()
    }

    /// Returns all compilers that are looked for, in their order; the first usable one compiles.
    pub fn candidates(&self) -> Vec<Candidate> {
        search::candidates(&self.environment, self.cache.as_ref().ok(), true)
    }

    /// Returns the language of kernels for the processor; Rust without a compiler.
    pub fn language(&self) -> Language {
        self.compiler().map_or(Language::Rust, Compiler::language)
    }

    /// Returns the cache.
    ///
    /// # Errors
    ///
    /// [`CacheError`] if its folder cannot be created or is not trusted.
    pub fn cache(&self) -> Result<&Cache, &CacheError> {
        self.cache.as_ref()
    }

    /// Returns the time limit of the compiler.
    pub fn bound(&self) -> Duration {
        self.environment.bound()
    }

    /// Compiles `source` or finds it in the cache. Loading runs its initialisers: generated sources have none, and
    /// others must not have any.
    ///
    /// # Errors
    ///
    /// [`JitError`].
    pub(crate) fn compile(&self, source: &str, options: &JitOptions) -> Result<Library, JitError> {
        let compiler = self.compiler().map_err(Clone::clone)?;
        let made = self.find_or_make(compiler, source, options);
        if let Err(JitError::Compiler(error)) = &made {
            // The first of several simultaneous errors is kept.
            let _ = self.given_up.set(error.clone());
        }
        made
    }

    /// Compiles a hand-written source, or finds it in the cache.
    ///
    /// # Errors
    ///
    /// [`JitError`].
    pub(crate) fn compile_by_hand(
        &self,
        source: &HandWritten,
        options: &JitOptions,
    ) -> Result<Library, JitError> {
        let kind = self.compiler().map_err(Clone::clone)?.kind();
        self.compile(source.text(kind), options)
    }

    fn find_or_make(
        &self,
        compiler: &Compiler,
        source: &str,
        options: &JitOptions,
    ) -> Result<Library, JitError> {
        let key = self.key(compiler, source, options);
        let extension = compiler.kind().extension();
        self.dump(&dump_name(&key, &options.name, extension), source);
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
        // Of several processes or threads that want a module, only one compiles it.
        let _turn = cache.turn(&key);
        if let Some(error) = self.given_up.get() {
            return Err(error.clone().into());
        }
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
            // Known before others have their turn.
            Err(JitError::Compiler(error)) => {
                let _ = self.given_up.set(error.clone());
                return Err(error.into());
            }
            // The cache may be on a full disk while the temporary folder is not.
            Err(error @ (JitError::NoRoom { .. } | JitError::Files { .. })) => {
                warn_unkept(&error);
                drop(folder);
                return self.compile_aside(compiler, &key, source, options);
            }
            Err(error) => return Err(error),
        }
        match cache.store(&key, folder) {
            // Modules that cannot be loaded are removed.
            Ok(path) => open(compiler, &path).inspect_err(|_| cache.discard(&key)),
            Err((error, folder)) => {
                warn_unkept(&error);
                Ok(open(compiler, &folder.path().join(MODULE))?.keep(folder))
            }
        }
    }

    /// Returns everything that affects the binary.
    fn key(&self, compiler: &Compiler, source: &str, options: &JitOptions) -> CacheKey {
        let flags = options.flags(compiler.kind()).join("\n");
        CacheKey::new(&[
            ("weakform", env!("CARGO_PKG_VERSION")),
            ("compiler", &compiler.identity()),
            ("processor", &self.machine.identity),
            ("flags", &flags),
            ("codegen units", &options.codegen_units.to_string()),
            ("source", source),
        ])
    }

    /// Compiles in a temporary folder, which is removed with the library.
    fn compile_aside(
        &self,
        compiler: &Compiler,
        key: &CacheKey,
        source: &str,
        options: &JitOptions,
    ) -> Result<Library, JitError> {
        let folder = temporary()?;
        self.run(compiler, &folder, key, source, options)?;
        Ok(open(compiler, &folder.path().join(MODULE))?.keep(folder))
    }

    /// Runs the compiler in `folder`, from its source to [`MODULE`].
    fn run(
        &self,
        compiler: &Compiler,
        folder: &ScratchFolder,
        key: &CacheKey,
        source: &str,
        options: &JitOptions,
    ) -> Result<(), JitError> {
        let path = folder.path().join(compiler.source());
        fs::write(&path, source).map_err(|error| JitError::Files {
            doing: "write",
            path,
            error,
        })?;
        let _said = doing("compiling kernels");
        let started = std::time::Instant::now();
        let mut command = compiler.command(folder.path(), options);
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
        let output = compiler_process::run(&mut command, bound, slow);
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
            // A failure without errors in the source is the compiler's own.
            if let Some(reason) = failure(compiler, &log, output.status) {
                return Err(broken(reason).into());
            }
            let extension = compiler.kind().extension();
            let dump = self.dump_rejected(&dump_name(key, &options.name, extension), source)?;
            let (compiler, name) = (compiler.path().into(), options.name.clone());
            return Err(JitError::Rejected { compiler, name, log, dump });
        }
        if !folder.path().join(MODULE).is_file() {
            return Err(broken("it ends well and has written nothing".into()).into());
        }
        tracing::debug!(seconds = started.elapsed().as_secs_f64(), "compiled {}", options.name);
        Ok(())
    }

    /// Writes the source to the user's dump folder, if any.
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

    /// Saves a rejected source for the user.
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

/// Warns that kernels are not cached.
fn warn_unkept(error: &dyn std::error::Error) {
    warn_once(&format!("compiled kernels are not kept for the next run: {error}"));
}

/// Loads a compiled module; from a copy in the temporary folder if its own folder forbids execution.
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

/// Creates a temporary folder.
fn temporary() -> Result<ScratchFolder, JitError> {
    ScratchFolder::new().map_err(|error| JitError::Files {
        doing: "make a folder in",
        path: std::env::temp_dir(),
        error,
    })
}

/// Returns a description of the compilation, for progress messages.
fn task(source: &str, name: &str) -> String {
    let entry = |mark: &str| source.matches(mark).count();
    let kernels = entry("extern \"C\" fn") + entry("const void *const *arguments)");
    let plural = if kernels == 1 { "" } else { "s" };
    format!("compiling {kernels} kernel{plural} of `{name}`")
}

/// Returns the reason for a failed write in `folder`, if that made the compiler fail.
fn without_room(folder: &Path, log: &str) -> Option<String> {
    let line = log.lines().find(|line| CANNOT_WRITE.iter().any(|text| line.contains(text)));
    if let Some(line) = line {
        return Some(line.trim().trim_start_matches("error: ").to_owned());
    }
    // A linker that maps its output may die without a message.
    let file = tempfile::NamedTempFile::new_in(folder);
    let written = file.and_then(|file| fs::write(file.path(), vec![1; ROOM]));
    written.err().map(|error| error.to_string())
}

/// Returns the file name of a dumped source: its description and the hash of the key.
fn dump_name(key: &CacheKey, name: &str, extension: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!("{name}-{}.{extension}", &key.hash()[..16])
}

#[cfg(test)]
mod tests;
