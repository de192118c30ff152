//! A picture as an SVG file: what `--plot` of several commands have in common.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use runtime::output::{writable, write_text};

use crate::arguments::written_as;
use crate::report::Failure;

/// Where is drawn.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What comes of drawing.
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Whether the file of a picture can be written, and is what its name says.
pub(crate) fn possible(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(Failure::input(
            "a picture goes to a file: standard output takes the result\nhelp: name one, `--plot a.svg`",
        ));
    }
    writable(path)?;
    written_as(path, &["svg"], "a picture")
}

/// Draws on white, and writes the file.
pub(crate) fn save(
    path: &Path,
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<(), Failure> {
    let mut text = String::new();
    let drawn = (|| -> Drawn {
        let whole = SVGBackend::with_string(&mut text, size).into_drawing_area();
        whole.fill(&WHITE)?;
        draw(&whole)?;
        whole.present()?;
        Ok(())
    })();
    drawn.map_err(|error| Failure::input(format!("the picture cannot be drawn: {error}")))?;
    Ok(write_text(path, &text)?)
}
