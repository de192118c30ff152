//! A page as pixels, drawn by `tiny_skia`, and pixels as PNG.

use png::{BitDepth, ColorType, Encoder};
use tiny_skia::{
    Color, FillRule, GradientStop, IntSize, LineCap, LineJoin, LinearGradient, Paint, Path,
    PathBuilder, Pixmap, PixmapPaint, Rect, SpreadMode, Stroke as Pen, StrokeDash, Transform,
};

use super::font::{outline, width};
use super::{Anchor, Image, Ink, Mark, Page, PageError, Point, Stroke, Text};

/// Number of lines that are drawn as one path.
const GROUP: usize = 1000;

/// Returns the bytes of a PNG file of a page.
pub(super) fn drawn(page: &Page, scale: f64) -> Result<Vec<u8>, PageError> {
    let (width, height) = ((page.width * scale).round(), (page.height * scale).round());
    let pixels = (width <= f64::from(u16::MAX) && height <= f64::from(u16::MAX))
        .then(|| Pixmap::new(width as u32, height as u32))
        .flatten();
    let mut canvas = Canvas {
        pixels: pixels.ok_or(PageError::Size(width, height))?,
        to: Transform::from_scale(scale as f32, scale as f32),
    };
    canvas.pixels.fill(Color::WHITE);
    page.marks.iter().for_each(|mark| canvas.mark(mark));
    // The background is white, so that opacity is not needed.
    let rgb = canvas.pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied();
    let rgb: Vec<u8> = rgb.collect();
    encoded(canvas.pixels.width(), canvas.pixels.height(), ColorType::Rgb, &rgb)
}

/// Returns the bytes of a PNG file of an image.
pub(super) fn of_image(image: &Image) -> Result<Vec<u8>, PageError> {
    encoded(image.width as u32, image.height as u32, ColorType::Rgba, &image.rgba)
}

fn encoded(width: u32, height: u32, kind: ColorType, bytes: &[u8]) -> Result<Vec<u8>, PageError> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(kind);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(bytes)?;
    writer.finish()?;
    Ok(file)
}

struct Canvas {
    pixels: Pixmap,
    to: Transform,
}

impl Canvas {
    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Area { points, ink } => {
                let mut path = PathBuilder::new();
                chain(&mut path, points);
                path.close();
                self.fill(path, &paint(*ink), self.to);
            }
            Mark::Lines { chains, stroke } => {
                chains.chunks(GROUP).for_each(|chains| self.lines(chains, stroke));
            }
            Mark::Text(text) => self.text(text),
            Mark::Image { at, image } => self.image(*at, image),
            Mark::Ramp { at, size, colours } => self.ramp(*at, *size, colours),
        }
    }

    fn fill(&mut self, path: PathBuilder, paint: &Paint<'_>, to: Transform) {
        if let Some(path) = path.finish() {
            self.pixels.fill_path(&path, paint, FillRule::Winding, to, None);
        }
    }

    fn lines(&mut self, chains: &[Vec<Point>], stroke: &Stroke) {
        let mut path = PathBuilder::new();
        chains.iter().for_each(|points| chain(&mut path, points));
        let dash = stroke.dash.map(|dash| dash.map(|length| length as f32).to_vec());
        let pen = Pen {
            width: stroke.width as f32,
            line_cap: if dash.is_some() { LineCap::Butt } else { LineCap::Round },
            line_join: LineJoin::Round,
            dash: dash.and_then(|dash| StrokeDash::new(dash, 0.0)),
            ..Pen::default()
        };
        let path: Option<Path> = path.finish();
        if let Some(path) = path {
            self.pixels.stroke_path(&path, &paint(stroke.ink), &pen, self.to, None);
        }
    }

    fn text(&mut self, text: &Text) {
        let mut path = PathBuilder::new();
        outline(&text.text, text.size, &mut path);
        let back = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5,
            Anchor::End => 1.0,
        };
        let back = back * width(&text.text, text.size) as f32;
        let turn = if text.turned { -90.0 } else { 0.0 };
        let [x, y] = text.at.map(|c| c as f32);
        let to = self.to.pre_translate(x, y).pre_rotate(turn).pre_translate(-back, 0.0);
        self.fill(path, &paint(Ink::new(text.rgb)), to);
    }

    fn image(&mut self, at: Point, image: &Image) {
        let mut premultiplied = image.rgba.clone();
        for pixel in premultiplied.chunks_exact_mut(4) {
            let opacity = u16::from(pixel[3]);
            for colour in &mut pixel[..3] {
                *colour = ((u16::from(*colour) * opacity + 127) / 255) as u8;
            }
        }
        let size = IntSize::from_wh(image.width as u32, image.height as u32);
        let Some(pixels) = size.and_then(|size| Pixmap::from_vec(premultiplied, size)) else {
            return;
        };
        let [x, y] = at.map(|c| c.round() as i32);
        self.pixels.draw_pixmap(x, y, pixels.as_ref(), &PixmapPaint::default(), self.to, None);
    }

    fn ramp(&mut self, [x, y]: Point, [width, height]: Point, colours: &[[u8; 3]]) {
        let last = colours.len().saturating_sub(1).max(1) as f32;
        let stop = |(number, &rgb): (usize, &[u8; 3])| {
            GradientStop::new(number as f32 / last, colour(Ink::new(rgb)))
        };
        let stops = colours.iter().enumerate().map(stop).collect();
        let at = |y: f64| tiny_skia::Point::from_xy(0.0, y as f32);
        let (below, above) = (at(y + height), at(y));
        let shader =
            LinearGradient::new(below, above, stops, SpreadMode::Pad, Transform::identity());
        let area = Rect::from_xywh(x as f32, y as f32, width as f32, height as f32);
        if let (Some(shader), Some(area)) = (shader, area) {
            let paint = Paint { shader, ..Paint::default() };
            self.pixels.fill_rect(area, &paint, self.to, None);
        }
    }
}

fn chain(path: &mut PathBuilder, points: &[Point]) {
    for (number, point) in points.iter().enumerate() {
        let [x, y] = point.map(|c| c as f32);
        match number {
            0 => path.move_to(x, y),
            _ => path.line_to(x, y),
        }
    }
}

fn colour(Ink { rgb: [red, green, blue], opacity }: Ink) -> Color {
    Color::from_rgba8(red, green, blue, (255.0 * opacity.clamp(0.0, 1.0)).round() as u8)
}

fn paint(ink: Ink) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(colour(ink));
    paint
}
