//! Pictures of several commands: checks of their files, and their errors.

use std::path::Path;

use runtime::files::output::writable;
use weakform::picture::{Animation, PictureError};

use crate::arguments::{no_stream, written_as};
use crate::report::Failure;

/// Checks that the file of an animation is writable and its extension is that of its format.
pub(crate) fn animation(path: &Path) -> Result<(), Failure> {
    no_stream(path, "an animation goes to a file", "--animate a.png")?;
    Animation::check(path)?;
    writable(path)?;
    Ok(())
}

/// Checks that the file of a picture is writable and its extension is that of a supported format.
pub(crate) fn possible(path: &Path, option: &str) -> Result<(), Failure> {
    no_stream(path, "a picture goes to a file", &format!("{option} a.svg"))?;
    writable(path)?;
    written_as(path, &["png", "svg"], "a picture")?;
    match path.extension() {
        Some(_) => Ok(()),
        None => Err(PictureError::Ending(path.to_owned()).into()),
    }
}
