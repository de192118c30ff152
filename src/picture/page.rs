//! A page: marks at positions in pixels, with the origin at the top left → SVG or PNG.

mod font;
mod frames;
mod png;
mod svg;

pub(crate) use font::width;
pub(crate) use frames::animated;

use super::colour::{BLACK, Rgb};

/// A position on the page.
pub(crate) type Point = [f64; 2];

/// Marks, in the order in which they are drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Description of the page for people who cannot see it.
    pub(crate) title: String,
    pub(crate) marks: Vec<Mark>,
}

/// One thing on a page.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// A polygon.
    Area { points: Vec<Point>, ink: Ink },
    /// Lines through points, all alike.
    Lines { chains: Vec<Vec<Point>>, stroke: Stroke },
    /// A line of text.
    Text(Text),
    /// Pixels.
    Image { at: Point, image: Image },
    /// A rectangle from its top left corner, with colours from bottom to top.
    Ramp { at: Point, size: Point, colours: Vec<Rgb> },
}

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ink {
    pub(crate) rgb: Rgb,
    pub(crate) opacity: f64,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) ink: Ink,
    pub(crate) width: f64,
    /// Lengths of a dash and of the following gap.
    pub(crate) dash: Option<[f64; 2]>,
}

/// A line of text; `at` is on its baseline.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) at: Point,
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    /// True if it is rotated, reading upwards.
    pub(crate) turned: bool,
    pub(crate) rgb: Rgb,
}

/// The point of a text at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Pixels with opacity, row by row from the top: red, green, blue, opacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) rgba: Vec<u8>,
}

/// A page that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// It is too large, or empty.
    #[error("a picture of {0} × {1} pixels cannot be drawn")]
    Size(f64, f64),
    /// It cannot be written as PNG.
    #[error(transparent)]
    Png(#[from] ::png::EncodingError),
}

impl Ink {
    pub(crate) fn new(rgb: Rgb) -> Self {
        Self { rgb, opacity: 1.0 }
    }
}

impl Stroke {
    pub(crate) fn new(rgb: Rgb, width: f64) -> Self {
        Self { ink: Ink::new(rgb), width, dash: None }
    }

    pub(crate) fn dashed(self, dash: [f64; 2]) -> Self {
        Self { dash: Some(dash), ..self }
    }

    pub(crate) fn faded(self, opacity: f64) -> Self {
        Self { ink: Ink { opacity, ..self.ink }, ..self }
    }
}

impl Text {
    pub(crate) fn new(text: impl Into<String>, at: Point, size: f64, anchor: Anchor) -> Self {
        Self { text: text.into(), at, size, anchor, turned: false, rgb: BLACK }
    }

    pub(crate) fn turned(self) -> Self {
        Self { turned: true, ..self }
    }

    pub(crate) fn coloured(self, rgb: Rgb) -> Self {
        Self { rgb, ..self }
    }
}

impl Page {
    pub(crate) fn line(&mut self, points: &[Point], stroke: Stroke) {
        self.marks.push(Mark::Lines { chains: vec![points.to_vec()], stroke });
    }

    pub(crate) fn text(&mut self, text: Text) {
        self.marks.push(Mark::Text(text));
    }

    pub(crate) fn area(&mut self, points: Vec<Point>, rgb: Rgb) {
        self.marks.push(Mark::Area { points, ink: Ink::new(rgb) });
    }

    /// Draws the outline of a rectangle.
    pub(crate) fn frame(&mut self, [x, y]: Point, [width, height]: Point, stroke: Stroke) {
        let (right, below) = (x + width, y + height);
        let corners = [[x, y], [right, y], [right, below], [x, below], [x, y]];
        self.line(&corners, stroke);
    }

    /// Returns the page as SVG.
    pub(crate) fn svg(&self) -> Result<String, PageError> {
        svg::written(self)
    }

    /// Returns the page as PNG, with `scale` pixels per unit of the page.
    pub(crate) fn pixels(&self, scale: f64) -> Result<Vec<u8>, PageError> {
        png::drawn(self, scale)
    }
}
