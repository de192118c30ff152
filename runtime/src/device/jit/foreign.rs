//! Sources for compilers that are part of a driver (CUDA's, OpenCL's): dumped, cached and, where they are refused,
//! kept to be read, as those for `rustc` are.
//!
//! The device compiles; `Jit::recall_code` and `Jit::keep_code` find and keep what its compiler made.

use std::fs;
use std::path::PathBuf;

use super::cache::{Key, MODULE};
use super::{Jit, JitError, dump_name, warn_unkept};

/// A source, and everything that decides what a driver's compiler makes of it.
#[derive(Clone, Copy, Debug)]
pub struct Foreign<'a> {
    /// What it is about; names the files that are dumped.
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

/// What is kept. Only what this crate's devices have had compiled is ever run.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Code,
    Bytes,
}

impl Foreign<'_> {
    fn key(&self, kind: Kind) -> Key {
        let kind = match kind {
            Kind::Code => "code",
            Kind::Bytes => "bytes",
        };
        Key::new(&[
            ("weakform", env!("CARGO_PKG_VERSION")),
            ("kind", kind),
            ("compiler", self.compiler),
            ("flags", self.flags),
            ("source", self.source),
        ])
    }
}

impl Jit {
    /// What [`Jit::keep`] has kept, if it is whole.
    pub fn recall(&self, foreign: &Foreign<'_>) -> Option<Vec<u8>> {
        self.find(foreign, Kind::Bytes)
    }

    /// What the compiler made of this source before, if that is in the cache and whole. The source is dumped where the
    /// user wants that.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "opencl")),
        allow(dead_code, reason = "without these features no driver compiles")
    )]
    pub(crate) fn recall_code(&self, foreign: &Foreign<'_>) -> Option<Vec<u8>> {
        self.find(foreign, Kind::Code)
    }

    fn find(&self, foreign: &Foreign<'_>, kind: Kind) -> Option<Vec<u8>> {
        let key = foreign.key(kind);
        self.dump(&dump_name(&key, foreign.name, foreign.extension), foreign.source);
        let path = self.cache.as_ref().ok()?.lookup(&key)?;
        let binary = fs::read(path).ok()?;
        tracing::debug!("found {} in the cache", foreign.name);
        Some(binary)
    }

    /// The answer to a question that holds everything that can change it: from the cache, or from `ask`.
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

    /// Keeps bytes beside the code, as safely, which no device ever takes for code.
    pub fn keep(&self, foreign: &Foreign<'_>, bytes: &[u8]) {
        self.store(foreign, Kind::Bytes, bytes);
    }

    /// Keeps what the compiler made of this source. A failure costs time at the next run, nothing else.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "opencl")),
        allow(dead_code, reason = "without these features no driver compiles")
    )]
    pub(crate) fn keep_code(&self, foreign: &Foreign<'_>, binary: &[u8]) {
        self.store(foreign, Kind::Code, binary);
    }

    fn store(&self, foreign: &Foreign<'_>, kind: Kind, binary: &[u8]) {
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

    /// Where a source that the compiler refused can be read.
    ///
    /// # Errors
    ///
    /// [`JitError::Files`] if it can be written nowhere.
    pub fn keep_rejected(&self, foreign: &Foreign<'_>) -> Result<PathBuf, JitError> {
        let file = dump_name(&foreign.key(Kind::Code), foreign.name, foreign.extension);
        self.dump_rejected(&file, foreign.source)
    }
}
