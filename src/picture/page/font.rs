//! Text as outlines: the letters of DejaVu Sans are embedded, so that no fonts need to be installed.

use ttf_parser::{Face, OutlineBuilder};

/// DejaVu Sans 2.37 (<https://dejavu-fonts.github.io>), reduced to the letters that pictures use; see LICENSE-DejaVu.
static DEJAVU: &[u8] = include_bytes!("DejaVuSans.ttf");

fn face() -> Face<'static> {
    Face::parse(DEJAVU, 0).expect("the font of the program should be one")
}

/// Returns the advance width of a letter, in em. A missing letter is as wide as a box.
fn advance(face: &Face<'_>, letter: char) -> f64 {
    let glyph = face.glyph_index(letter).unwrap_or_default();
    let advance = face.glyph_hor_advance(glyph).unwrap_or(face.units_per_em());
    f64::from(advance) / f64::from(face.units_per_em())
}

/// Returns the width of a text of a size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let face = face();
    text.chars().map(|letter| advance(&face, letter) * size).sum()
}

/// Appends the outlines of a text of a size from its baseline's start to `path`, with the y axis downwards.
pub(super) fn outline(text: &str, size: f64, path: &mut tiny_skia::PathBuilder) {
    let face = face();
    let scale = size / f64::from(face.units_per_em());
    let mut x = 0.0;
    for letter in text.chars() {
        let glyph = face.glyph_index(letter).unwrap_or_default();
        face.outline_glyph(glyph, &mut Pen { path, x: x as f32, scale: scale as f32 });
        x += advance(&face, letter) * size;
    }
}

/// Transforms outlines from the font's units to the page's.
struct Pen<'a> {
    path: &'a mut tiny_skia::PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.scale * x, -self.scale * y)
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_letters_of_pictures_are_there() {
        let face = face();
        let letters = (' '..='~').chain("äöüéßαβγλμνρσφψωΔΣΩ−×·…∇∂≤∞⁰¹²³⁴⁵⁶⁷⁸⁹⁻|".chars());
        for letter in letters {
            assert!(face.glyph_index(letter).is_some(), "{letter}");
        }
        let wide = width("mm", 10.0);
        assert!(wide > 2.0 * width("ii", 10.0) && wide < 25.0, "{wide}");
        assert!(width("語", 10.0) > 3.0);
    }
}
