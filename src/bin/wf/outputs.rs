//! Input and output files of a command: [`Files`] → a check before any work that no file replaces another.
//!
//! Paths are compared by the files that they lead to, through links and independent of spelling. `{step}` in the name
//! of an output matches any number.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{MeshSource, Problem, ValueSource};
use fem_dsl::program::Program;
use runtime::files::output::STEP;

use crate::report::Failure;

/// Largest number of links in a path.
const LINKS: usize = 40;

/// An output file.
struct Output {
    what: String,
    /// The option that changes its name.
    remedy: &'static str,
    path: PathBuf,
}

/// The input and output files of a command.
#[derive(Default)]
pub(crate) struct Files {
    read: Vec<(String, PathBuf)>,
    written: Vec<Output>,
}

impl Files {
    /// Returns the files of a command that reads a file of the language.
    pub(crate) fn of(file: &Path) -> Self {
        let mut files = Self::default();
        if file != Path::new("-") {
            files.reads("the file that it is made of", file);
        }
        files
    }

    /// Adds an input file.
    pub(crate) fn reads(&mut self, what: impl Into<String>, path: impl Into<PathBuf>) {
        self.read.push((what.into(), path.into()));
    }

    /// Adds the mesh, the data and the states of a problem, and returns the problem if it is valid: errors are reported
    /// elsewhere.
    pub(crate) fn reads_problem(
        &mut self,
        program: &Program,
        name: &str,
        file: &Path,
        overrides: &Overrides,
    ) -> Option<Problem> {
        let folder = file.parent().unwrap_or(Path::new(""));
        let (mesh, dim) = program.mesh(name, overrides).ok()?;
        if let MeshSource::File(path) = &mesh {
            let folder = if overrides.mesh.is_some() { Path::new("") } else { folder };
            self.reads(format!("the mesh of the problem `{name}`"), folder.join(path));
        }
        let mut found = None;
        // The dimension of a mesh is unknown before the file is read.
        for dim in dim.map_or(1..=3, |dim| dim..=dim) {
            let Ok(mut problem) = program.problem(name, dim, overrides) else { continue };
            problem.start_paths_at(folder);
            self.reads_data(&problem);
            found = Some(problem);
        }
        found
    }

    fn reads_data(&mut self, problem: &Problem) {
        let name = &problem.name;
        let data = problem.aux.iter().map(|data| &data.value);
        let states = problem.initial.iter().chain(&problem.initial_rate).map(|(_, value)| value);
        for value in data.chain(states) {
            if let ValueSource::File(stored) = value {
                self.reads(format!("data of the problem `{name}`"), stored.path.clone());
            }
        }
    }

    /// Adds an output file; `remedy` is the option that changes its name.
    pub(crate) fn writes(
        &mut self,
        what: impl Into<String>,
        path: impl Into<PathBuf>,
        remedy: &'static str,
    ) {
        self.written.push(Output { what: what.into(), path: path.into(), remedy });
    }

    /// Rejects an output that would replace an input or another output.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let mut known: HashMap<PathBuf, (&str, bool)> = HashMap::new();
        for (what, path) in self.read.iter().filter(|(_, path)| !is_stream(path)) {
            known.insert(real(path), (what, true));
        }
        let mut patterns: Vec<(PathBuf, &Output)> = Vec::new();
        for output in self.written.iter().filter(|output| !is_stream(&output.path)) {
            let path = real(&output.path);
            if path.to_string_lossy().contains(STEP) {
                if let Some((_, other)) = patterns.iter().find(|(other, _)| *other == path) {
                    return Err(twice(output, &other.what));
                }
                patterns.push((path, output));
                continue;
            }
            match known.insert(path, (&output.what, false)) {
                Some((what, true)) => return Err(replaced(output, what, &output.path)),
                Some((what, false)) => return Err(twice(output, what)),
                None => {}
            }
        }
        for (pattern, output) in &patterns {
            let found = known.iter().find(|(path, _)| stands_for(pattern, path));
            match found {
                Some((path, (what, true))) => return Err(replaced(output, what, path)),
                Some((_, (what, false))) => return Err(twice(output, what)),
                None => {}
            }
        }
        Ok(())
    }
}

fn replaced(output: &Output, what: &str, path: &Path) -> Failure {
    let (own, remedy) = (&output.what, output.remedy);
    Failure::input(format!(
        "the output {}, {own}, would replace {what}\nhelp: name another file: {remedy}",
        path.display()
    ))
}

fn twice(output: &Output, other: &str) -> Failure {
    let Output { what, path, remedy } = output;
    Failure::input(format!(
        "{what} and {other} would both be written to {}\nhelp: name another file for one of them: {remedy}",
        path.display()
    ))
}

/// Returns whether a path is that of a pipe, a terminal or a device, which cannot be overwritten.
fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Returns the file to which a path leads, existing or not.
fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Ok(found) = std::fs::canonicalize(&path) {
            return found;
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let Ok(target) = std::fs::read_link(&path) else {
            let folder = std::fs::canonicalize(folder);
            return match (folder, path.file_name()) {
                (Ok(folder), Some(name)) => folder.join(name),
                _ => path,
            };
        };
        path = folder.join(target);
    }
    path
}

/// Returns whether a name with [`STEP`] matches this path, for some number.
fn stands_for(pattern: &Path, path: &Path) -> bool {
    let [pattern, path] = [pattern, path].map(|path| path.to_string_lossy());
    let Some(at) = pattern.find(STEP) else { return false };
    let Some(rest) = path.get(..at).filter(|begin| *begin == &pattern[..at]) else { return false };
    let rest = &path[rest.len()..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (1..=digits).any(|count| pattern.replace(STEP, &rest[..count]) == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(files: &Files) -> String {
        files.check().expect_err("refused").message().to_owned()
    }

    #[test]
    fn numbers_stand_where_the_step_is() {
        for (pattern, path, is) in [
            ("u-{step}.vtu", "u-0.vtu", true),
            ("u-{step}.vtu", "u-120.vtu", true),
            ("u-{step}.vtu", "u-.vtu", false),
            ("u-{step}.vtu", "u-1a.vtu", false),
            ("u{step}0.vtu", "u10.vtu", true),
            ("{step}/{step}.vtu", "7/7.vtu", true),
            ("{step}/{step}.vtu", "7/8.vtu", false),
            ("u.vtu", "u.vtu", false),
        ] {
            assert_eq!(stands_for(Path::new(pattern), Path::new(path)), is, "{pattern} {path}");
        }
    }

    #[test]
    fn an_output_replaces_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("below")).expect("a folder");
        std::fs::write(at("part.vtu"), "a mesh").expect("a file");
        let of = |written: &[&str]| {
            let mut files = Files::default();
            files.reads("the mesh", at("part.vtu"));
            written.iter().for_each(|name| files.writes("a solution", at(name), "--output"));
            files
        };
        assert!(of(&["a.vtu", "b.vtu", "u-{step}.vtu"]).check().is_ok());
        assert!(message(&of(&["part.vtu"])).contains("would replace the mesh"));
        assert!(message(&of(&["below/../part.vtu"])).contains("would replace the mesh"));
        assert!(message(&of(&["a.vtu", "below/../a.vtu"])).contains("would both be written"));
        assert!(message(&of(&["u-{step}.vtu", "u-3.vtu"])).contains("would both be written"));
        assert!(message(&of(&["u-{step}.vtu", "u-{step}.vtu"])).contains("would both be written"));
        std::fs::write(at("u-2.vtu"), "data").expect("a file");
        let mut files = of(&["u-{step}.vtu"]);
        files.reads("data", at("u-2.vtu"));
        assert!(message(&files).contains("u-2.vtu"));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_same_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("part.vtu"), "a mesh").expect("a file");
        for (target, link) in
            [("part.vtu", "link.vtu"), ("new.vtu", "to-new.vtu"), ("loop", "loop")]
        {
            std::os::unix::fs::symlink(target, at(link)).expect("linked");
        }
        let mut files = Files::default();
        files.reads("the mesh", at("part.vtu"));
        files.writes("a solution", at("link.vtu"), "--output");
        assert!(message(&files).contains("would replace the mesh"));
        let mut files = Files::default();
        files.writes("a solution", at("new.vtu"), "--output");
        files.writes("a picture", at("to-new.vtu"), "--picture");
        files.writes("a loop", at("loop"), "--report");
        assert!(message(&files).contains("would both be written"));
    }

    #[test]
    fn what_keeps_nothing_is_no_file() {
        let mut files = Files::default();
        for what in ["a solution", "a table"] {
            files.writes(what, "/dev/null", "--output");
        }
        assert!(!Path::new("/dev/null").exists() || files.check().is_ok());
    }
}
