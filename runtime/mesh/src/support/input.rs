//! Reading of user files within the available memory. Streams without known length (pipes, devices) are read only if
//! their beginning has the expected format.

use crate::support::memory::{Bytes, InsufficientMemory, MemoryBudget};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest number of bytes read from a stream.
const MOST: u64 = 16 << 30;

/// The number of bytes that suffices to detect a format.
pub const BEGINNING: u64 = 1 << 12;

/// Error of reading.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A system error.
    #[error(transparent)]
    Open(#[from] io::Error),
    /// Insufficient memory.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
}

/// Reads a file, if memory suffices for `times` times its length. Of a stream, only the beginning is read unless it
/// satisfies `fits`.
///
/// # Errors
///
/// [`InputError`].
pub fn read(path: &Path, times: f64, fits: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, InputError> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if found.is_file() {
        drop(file);
        let length = found.len() as f64;
        room(|| format!("reading a file of {}", Bytes(length)), times * length)?;
        return Ok(std::fs::read(path)?);
    }
    // The length is unknown: only memory limits it.
    let room = MemoryBudget::now().map_or(f64::INFINITY, |room| room.bytes / times);
    Ok(stream(file, MOST.min(room as u64).max(BEGINNING), fits)?)
}

/// Checks that memory suffices for the announced contents of a file.
///
/// # Errors
///
/// Insufficient memory.
pub fn room(what: impl FnOnce() -> String, bytes: f64) -> Result<(), InsufficientMemory> {
    MemoryBudget::check(what, bytes)
        .map_err(|error| InsufficientMemory { remedy: "a smaller file", ..error })
}

/// Reads a stream completely, or only its beginning if that does not fit.
fn stream(mut from: impl io::Read, most: u64, fits: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
    if fits(&bytes) {
        from.take(most.saturating_add(1).saturating_sub(BEGINNING)).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > most {
        let text = format!("it gives more than {}; save it to a file", Bytes(most as f64));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Returns whether bytes can be the beginning of a text.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_without_an_end_are_not_read_for_ever() {
        let zeros = stream(io::repeat(0), u64::MAX, is_text).expect("no text");
        assert_eq!(zeros.len() as u64, BEGINNING);
        let text = || io::Cursor::new("$MeshFormat").chain(io::repeat(b' '));
        let error = stream(text(), 1 << 20, is_text).expect_err("too much");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(stream(text().take(1 << 16), 1 << 20, is_text).expect("an end").len(), 1 << 16);
        assert_eq!(stream(io::empty(), 1, is_text).expect("nothing"), []);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_no_text() {
        let zeros = read(Path::new("/dev/zero"), 2.0, is_text).expect("zeros");
        assert_eq!(zeros.len() as u64, BEGINNING);
        assert!(matches!(read(Path::new("/no/such"), 2.0, is_text), Err(InputError::Open(_))));
    }
}
