//! Pictures of several commands: whether their files can be written, and how failures are said.

use std::path::Path;

use runtime::files::output::writable;
use weakform::picture::PictureError;

use crate::arguments::{no_stream, written_as};
use crate::report::Failure;

/// Whether the file of a picture can be written, and is what its name says.
pub(crate) fn possible(path: &Path, option: &str) -> Result<(), Failure> {
    no_stream(path, "a picture goes to a file", &format!("{option} a.svg"))?;
    writable(path)?;
    written_as(path, &["png", "svg"], "a picture")?;
    match path.extension() {
        Some(_) => Ok(()),
        None => Err(PictureError::Ending(path.to_owned()).into()),
    }
}
