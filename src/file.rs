//! Files of the library: text with any number of forms and problems → [`ProblemFile`].

use crate::form::checked;
use crate::{Error, Form, Problem};
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::program::Program;
use fem_dsl::source::{MAX_BYTES, Source};
use runtime::files::input::tables_in;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The forms and problems of a text, checked.
///
/// ```
/// let text = "form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
///     problem square solves poisson { mesh = box(dim: 2, cells: 4); dirichlet u = 0; }";
/// let file = weakform::ProblemFile::parse(text)?;
/// assert_eq!((file.forms(), file.problems()), (vec!["poisson"], vec!["square"]));
/// assert!(file.problem("square")?.run()?.energy().is_some());
/// # Ok::<(), weakform::Error>(())
/// ```
#[derive(Clone)]
pub struct ProblemFile {
    program: Arc<Program>,
    folder: PathBuf,
}

impl ProblemFile {
    /// Compiles text of the language. Paths in it are relative to the current folder.
    ///
    /// # Errors
    ///
    /// All mistakes of the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::of(Source::new("text", text), Path::new(""))
    }

    /// Reads and compiles a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    ///
    /// The file cannot be read; all mistakes of its text.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        // Some files have no end; a byte order mark does not count.
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES as u64 + 4).read_to_end(&mut bytes))
            .map_err(|error| Error::Unreadable { path: path.to_owned(), error })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of(Source::from_bytes(path.display().to_string(), &bytes), folder)
    }

    fn of(source: Source, folder: &Path) -> Result<Self, Error> {
        let tables = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let program = checked(&source.in_folder(Some(tables_in(tables))))?;
        Ok(Self { program: Arc::new(program), folder: folder.to_owned() })
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.program.source().text()
    }

    /// Returns the text with its name, for [`render`](crate::render::render).
    pub fn source(&self) -> &Source {
        self.program.source()
    }

    /// Returns the names of the forms, in order.
    pub fn forms(&self) -> Vec<&str> {
        self.program.forms().iter().map(|form| form.name.as_str()).collect()
    }

    /// Returns the names of the problems, in order.
    pub fn problems(&self) -> Vec<&str> {
        self.program.problems().map(|head| head.name).collect()
    }

    /// Returns warnings about valid but probably unintended text; see [`Form::warnings`].
    pub fn warnings(&self) -> &[Diagnostic] {
        self.program.warnings()
    }

    /// Returns the form of this name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn form(&self, name: &str) -> Result<Form, Error> {
        match self.program.form(name) {
            Some(_) => Ok(Form::of(Arc::clone(&self.program), name)),
            None => Err(Error::unknown("form", name, self.forms())),
        }
    }

    /// Returns the problem of this name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn problem(&self, name: &str) -> Result<Problem, Error> {
        let head = self.program.problems().find(|head| head.name == name);
        let head = head.ok_or_else(|| Error::unknown("problem", name, self.problems()))?;
        Ok(self.form(head.form)?.known_problem(name).folder(&self.folder))
    }
}

impl std::fmt::Debug for ProblemFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (forms, problems) = (self.forms(), self.problems());
        f.debug_struct("ProblemFile").field("forms", &forms).field("problems", &problems).finish()
    }
}
