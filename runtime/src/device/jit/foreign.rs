//! Sources for driver compilers (CUDA, OpenCL): dumped, cached and, if rejected, saved, like those for `rustc`.
//!
//! The device compiles; `Jit::recall_code` and `Jit::keep_code` access the cache.

use std::fs;
use std::path::PathBuf;

use super::cache::{CacheKey, MODULE};
use super::{Jit, JitError, dump_name, warn_unkept};

/// A source, with everything that affects the compiled code.
#[derive(Clone, Copy, Debug)]
pub struct ForeignSource<'a> {
    /// A description, used in names of dumped files.
    pub name: &'a str,
    /// The extension of those files.
    pub extension: &'a str,
    /// The compiler, the driver and the device, with their versions.
    pub compiler: &'a str,
    /// The compiler's options.
    pub flags: &'a str,
    /// The text.
    pub source: &'a str,
}

/// Kind of a cache entry. Only code compiled by this crate's devices is ever run.
#[derive(Clone, Copy, Debug)]
enum EntryKind {
    Code,
    Bytes,
}

impl ForeignSource<'_> {
    fn key(&self, kind: EntryKind) -> CacheKey {
        let kind = match kind {
            EntryKind::Code => "code",
            EntryKind::Bytes => "bytes",
        };
        CacheKey::new(&[
            ("weakform", env!("CARGO_PKG_VERSION")),
            ("kind", kind),
            ("compiler", self.compiler),
            ("flags", self.flags),
            ("source", self.source),
        ])
    }
}

impl Jit {
    /// Returns the intact bytes stored by [`Jit::keep`], if any.
    pub fn recall(&self, foreign: &ForeignSource<'_>) -> Option<Vec<u8>> {
        self.find(foreign, EntryKind::Bytes)
    }

    /// The intact compiled code of this source in the cache, if any. The source is also dumped on request.
    pub(crate) fn recall_code(&self, foreign: &ForeignSource<'_>) -> Option<Vec<u8>> {
        self.find(foreign, EntryKind::Code)
    }

    /// Waits until no other process or thread compiles a source, and blocks others while the file is held.
    pub(crate) fn turn_to_compile(&self, foreign: &ForeignSource<'_>) -> Option<fs::File> {
        self.cache.as_ref().ok()?.turn(&foreign.key(EntryKind::Code))
    }

    fn find(&self, foreign: &ForeignSource<'_>, kind: EntryKind) -> Option<Vec<u8>> {
        let key = foreign.key(kind);
        self.dump(&dump_name(&key, foreign.name, foreign.extension), foreign.source);
        let path = self.cache.as_ref().ok()?.lookup(&key)?;
        let binary = fs::read(path).ok()?;
        tracing::debug!("found {} in the cache", foreign.name);
        Some(binary)
    }

    /// Returns the answer to a question, which must contain everything that affects the answer: from the cache, or from
    /// `ask`.
    ///
    /// # Errors
    ///
    /// Those of `ask`.
    pub fn remembered<E>(
        &self,
        question: &str,
        ask: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        let cache = self.cache.as_ref().ok();
        if let Some(answer) = cache.and_then(|cache| cache.recall(question)) {
            return Ok(answer);
        }
        let answer = ask()?;
        if let Some(cache) = cache {
            cache.remember(question, &answer);
        }
        Ok(answer)
    }

    /// Stores bytes next to the code, equally protected; no device uses them as code.
    pub fn keep(&self, foreign: &ForeignSource<'_>, bytes: &[u8]) {
        self.store(foreign, EntryKind::Bytes, bytes);
    }

    /// Stores compiled code. A failure only costs time in the next run.
    pub(crate) fn keep_code(&self, foreign: &ForeignSource<'_>, binary: &[u8]) {
        self.store(foreign, EntryKind::Code, binary);
    }

    fn store(&self, foreign: &ForeignSource<'_>, kind: EntryKind, binary: &[u8]) {
        let cache = match &self.cache {
            Ok(cache) => cache,
            Err(error) => return warn_unkept(error),
        };
        let folder = match cache.workplace() {
            Ok(folder) => folder,
            Err(error) => return warn_unkept(&error),
        };
        if let Err(error) = fs::write(folder.path().join(MODULE), binary) {
            tracing::debug!("cannot keep {}: {error}", foreign.name);
        } else if let Err((error, _)) = cache.store(&foreign.key(kind), folder) {
            warn_unkept(&error);
        }
    }

    /// Saves a rejected source for the user and returns its path.
    ///
    /// # Errors
    ///
    /// [`JitError::Files`] if it cannot be written.
    pub fn keep_rejected(&self, foreign: &ForeignSource<'_>) -> Result<PathBuf, JitError> {
        let file = dump_name(&foreign.key(EntryKind::Code), foreign.name, foreign.extension);
        self.dump_rejected(&file, foreign.source)
    }
}
