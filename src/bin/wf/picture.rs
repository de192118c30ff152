//! A picture as an SVG file: what `--plot` of several commands have in common.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::report::Failure;

/// Where is drawn.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What comes of drawing.
pub(crate) type Drawn = Result<(), Box<dyn std::error::Error>>;

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
    let written = std::fs::write(path, text);
    written
        .map_err(|error| Failure::input(format!("{} cannot be written: {error}", path.display())))
}
