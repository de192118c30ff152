//! Selection of a compiler: [`Environment`] → [`Candidate`]s, of which the first that works is used.
//!
//! The order is: a compiler that `WF_CC`, `WF_RUSTC` or `RUSTC` names, and no other; else `rustc`; `cc`, `clang` and `gcc`;
//! the Clang of the Python package `ziglang`. C compilers make the same kernels to the bit; `rustc` needs one of them as
//! its linker.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::compiler::{CompilerKind, answer, is_program, search};
use super::{Cache, Compiler, CompilerError, Environment};

/// A compiler that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name or command.
    pub name: String,
    /// The variable that names it.
    pub variable: Option<&'static str>,
    /// The compiler, or the reason against it; `None` if there is no such program.
    pub compiler: Option<Result<Compiler, CompilerError>>,
}

impl Candidate {
    /// Returns the compiler, if it works.
    pub fn usable(&self) -> Option<&Compiler> {
        self.compiler.as_ref()?.as_ref().ok()
    }
}

/// Names of C compilers on the search path, in their order.
const C_COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];

/// Names of Python on the search path.
const PYTHONS: [&str; 2] = ["python3", "python"];

/// The program that prints the path of the compiler in the Python package.
const ZIGLANG: &str =
    "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))";

/// Returns the compilers of an environment in their order, up to the first that works unless `all` are asked for.
pub(super) fn candidates(
    environment: &Environment,
    cache: Option<&Cache>,
    all: bool,
) -> Vec<Candidate> {
    let named = [(CompilerKind::C, &environment.cc), (CompilerKind::Rustc, &environment.rustc)];
    let mut found: Vec<Candidate> = Vec::new();
    for (kind, variable) in named {
        if let &Some((name, ref text)) = variable {
            found.push(of_variable(kind, name, text, environment, cache));
            if !all {
                return found;
            }
        }
    }
    let is_done = |found: &[Candidate]| !all && found.iter().any(|one| one.usable().is_some());
    let names = [(CompilerKind::Rustc, "rustc")].into_iter();
    for (kind, name) in names.chain(C_COMPILERS.map(|name| (CompilerKind::C, name))) {
        let path = environment.path.as_deref().and_then(|path| search(path, name));
        let compiler =
            path.map(|path| Compiler::known(kind, &path, &[], environment.bound(), cache));
        found.push(Candidate { name: name.to_owned(), variable: None, compiler });
        if is_done(&found) {
            return found;
        }
    }
    found.push(ziglang(environment, cache));
    found
}

/// Returns the compiler that an environment uses.
///
/// # Errors
///
/// The error of the first candidate that exists, or [`CompilerError::None`].
pub(super) fn find(
    environment: &Environment,
    cache: Option<&Cache>,
) -> Result<Compiler, CompilerError> {
    let found = candidates(environment, cache, false);
    let mut error = None;
    for candidate in found {
        match candidate.compiler {
            Some(Ok(compiler)) => return Ok(compiler),
            Some(Err(reason)) => {
                error.get_or_insert(reason);
            }
            None => {}
        }
    }
    Err(error.unwrap_or(CompilerError::None))
}

/// Returns the compiler that a variable names: a program, or a command such as `zig cc`.
fn of_variable(
    kind: CompilerKind,
    variable: &'static str,
    text: &OsStr,
    environment: &Environment,
    cache: Option<&Cache>,
) -> Candidate {
    let words = || text.to_str().into_iter().flat_map(str::split_whitespace);
    let whole = located(text, environment).map(|path| (path, Vec::new()));
    let command = || {
        let path = located(OsStr::new(words().next()?), environment)?;
        Some((path, words().skip(1).map(str::to_owned).collect::<Vec<String>>()))
    };
    let found = match kind {
        CompilerKind::Rustc => whole,
        CompilerKind::C => whole.or_else(command),
    };
    let compiler = match found {
        Some((path, leading)) => Compiler::known(kind, &path, &leading, environment.bound(), cache),
        None => Err(CompilerError::Missing { variable, path: text.into() }),
    };
    let name = text.display().to_string();
    Candidate { name, variable: Some(variable), compiler: Some(compiler) }
}

/// Returns the file of a named program.
fn located(named: &OsStr, environment: &Environment) -> Option<PathBuf> {
    let path = Path::new(named);
    // As in a shell: a bare name is searched for, a path with a separator is a file.
    if path.components().count() > 1 {
        std::path::absolute(path).ok().filter(|path| is_program(path))
    } else {
        search(environment.path.as_deref()?, named)
    }
}

/// Returns the Clang in the Python package `ziglang`.
fn ziglang(environment: &Environment, cache: Option<&Cache>) -> Candidate {
    let python = || {
        let path = environment.path.as_deref()?;
        PYTHONS.iter().find_map(|name| search(path, name))
    };
    let zig = || {
        let answer = answer(&python()?, &["-c", ZIGLANG], environment.bound()).ok()?;
        let path = PathBuf::from(answer.trim());
        [path.with_extension("exe"), path].into_iter().find(|path| is_program(path))
    };
    let leading = ["cc".to_owned()];
    let known = |path: PathBuf| {
        Compiler::known(CompilerKind::C, &path, &leading, environment.bound(), cache)
    };
    Candidate { name: "ziglang".to_owned(), variable: None, compiler: zig().map(known) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::JitOptions;
    use super::*;
    use kernels_gen::dialect::rust::Isa;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// A search path with programs that only know their version.
    struct Stand(tempfile::TempDir);

    impl Stand {
        fn new(programs: &[(&str, &str)]) -> Self {
            let own = Self(tempfile::tempdir().expect("a folder"));
            programs.iter().for_each(|(name, script)| own.add(name, script));
            own
        }

        fn add(&self, name: &str, script: &str) {
            let path = self.0.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("runnable");
        }

        fn environment(&self) -> Environment {
            Environment { path: Some(self.0.path().into()), ..Environment::default() }
        }

        /// Returns the name of the compiler of an environment.
        fn found(&self, environment: &Environment) -> String {
            let compiler = find(environment, None).expect("a compiler");
            let path = compiler.path().strip_prefix(self.0.path()).expect("of the stand");
            [&[path.display().to_string()], compiler.leading()].concat().join(" ")
        }
    }

    const RUSTC: &str = "echo rustc 1.999.0; echo release: 1.999.0";
    const OLD: &str = "echo rustc 1.70.0; echo release: 1.70.0";
    const GCC: &str = "echo 'cc (Debian 12.2.0-14) 12.2.0'; echo Free Software Foundation";
    const CLANG: &str = "echo 'Debian clang version 19.1.7'";

    #[test]
    fn rustc_comes_first_and_ziglang_last() {
        let zig = |stand: &Stand| format!("echo {}/zig", stand.0.path().display());
        let stand = Stand::new(&[("zig", CLANG)]);
        stand.add("python3", &zig(&stand));
        assert_eq!(stand.found(&stand.environment()), "zig cc");
        for (name, version) in [("gcc", GCC), ("clang", CLANG), ("cc", GCC), ("rustc", RUSTC)] {
            stand.add(name, version);
            assert_eq!(stand.found(&stand.environment()), name);
        }
        let all = candidates(&stand.environment(), None, true);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["rustc", "cc", "clang", "gcc", "ziglang"]);
        let titles = all.iter().map(|one| one.usable().expect("works").title());
        let titles: Vec<String> = titles.collect();
        let want = ["rustc 1.999.0", "gcc 12.2.0", "clang 19.1.7", "gcc 12.2.0", "clang 19.1.7"];
        assert_eq!(titles, want);
    }

    #[test]
    fn an_unusable_rustc_leaves_the_kernels_to_c() {
        let stand = Stand::new(&[("rustc", OLD), ("gcc", GCC)]);
        assert_eq!(stand.found(&stand.environment()), "gcc");
        let stand = Stand::new(&[("rustc", OLD)]);
        let error = find(&stand.environment(), None).expect_err("none works");
        assert!(matches!(error, CompilerError::Old { .. }), "{error}");
    }

    #[test]
    fn a_named_compiler_is_the_only_one() {
        let stand = Stand::new(&[("rustc", RUSTC), ("gcc", GCC), ("tool", CLANG)]);
        let cc = |command: &str| Environment {
            cc: Some(("WF_CC", command.into())),
            rustc: Some(("WF_RUSTC", "rustc".into())),
            ..stand.environment()
        };
        assert_eq!(stand.found(&cc("gcc")), "gcc");
        assert_eq!(stand.found(&cc("tool cc -flto")), "tool cc -flto");
        let error = find(&cc("absent"), None).expect_err("there is none");
        assert!(error.to_string().contains("WF_CC"), "{error}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn zig_names_processors_in_its_own_way() {
        let stand = Stand::new(&[("zig", CLANG), ("gcc", GCC)]);
        let is_of_zig = |command: &str| {
            let cc = Some(("WF_CC", command.into()));
            let compiler = find(&Environment { cc, ..stand.environment() }, None).expect("works");
            let options = JitOptions::new("f").tuned_for(Isa::Avx2);
            let command = compiler.command(stand.0.path(), &options);
            command.get_args().any(|flag| flag == "-march=x86_64")
        };
        assert!(is_of_zig("zig cc") && !is_of_zig("gcc"));
    }

    #[test]
    fn compilers_without_vector_types_are_refused_with_the_remedy() {
        let stand = Stand::new(&[("cl", "exit 0"), ("tcc", "echo tcc version 0.9.27")]);
        for name in ["cl", "tcc"] {
            let cc = Some(("WF_CC", name.into()));
            let error = find(&Environment { cc, ..stand.environment() }, None).expect_err(name);
            assert!(matches!(error, CompilerError::WithoutVectors { .. }), "{error}");
            assert!(error.to_string().contains("install clang"), "{error}");
        }
    }
}
