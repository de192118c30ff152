//! Layout of a picture: the field, its axes, the colour bar, the title.

use runtime::files::output::surface::Triangles;

use super::{Range, Scene, Viewpoint};
use crate::picture::camera::Camera;
use crate::picture::colour::{BLACK, GREY, viridis};
use crate::picture::page::{Anchor, Mark, Page, Point, Stroke, Text, width};
use crate::picture::ticks::Ticks;

/// Default width of a picture, and its largest height, in pixels.
const WIDTH: f64 = 1200.0;
/// See [`WIDTH`].
const TALLEST: f64 = 1200.0;
/// Letters per width of a page.
const LETTERS: f64 = 52.0;
/// Smallest legible height of letters, in pixels.
const SMALLEST: f64 = 12.0;
/// Assumed extent of a body that is a single point.
const LEAST: f64 = 1e-300;
/// The longest name next to the colour bar, in letters.
const LONGEST_NAME: f64 = 10.0;

/// Positions of the elements.
pub(super) struct Layout {
    pub(super) page: Point,
    /// Height of letters.
    pub(super) letter: f64,
    /// The top left corner of the field's area, and its size.
    pub(super) area: Point,
    pub(super) size: Point,
    pub(super) camera: Camera,
    /// The smallest projected coordinates, and pixels per unit of length.
    origin: Point,
    scale: f64,
    /// The axes to the right and up, with their ends.
    ticks: Option<[Ticks; 2]>,
    /// The width of the colour bar with its labels.
    column: f64,
}

impl Layout {
    pub(super) fn new(scene: &Scene, range: &Range) -> Self {
        let (camera, flat) = match scene.view {
            Viewpoint::Body => (Camera::before(), false),
            Viewpoint::Along(axis) => (Camera::along(axis).0, true),
        };
        let ends = projected_ends(&scene.triangles, &camera);
        let extent = ends.map(|[low, high]| (high - low).max(LEAST));
        let letter = match scene.size {
            Some((w, h)) => (f64::from(w).min(1.4 * f64::from(h)) / LETTERS).max(SMALLEST),
            None => WIDTH / LETTERS,
        };
        let ticks = flat.then(|| ends.map(|[low, high]| Ticks::linear(low, high, 5)));
        let left = letter + ticks.as_ref().map_or(0.0, |[_, up]| 2.2 * letter + widest(up, letter));
        let below = letter * if flat { 3.9 } else { 2.6 };
        let above = 3.2 * letter;
        let column = column(scene, range, letter);
        let right = 2.6 * letter + column;
        let fixed = [left + right, above + below];
        let (page, room) = match scene.size {
            Some((w, h)) => {
                let page = [f64::from(w), f64::from(h)];
                (page, [0, 1].map(|c| (page[c] - fixed[c]).max(1.0)))
            }
            None => fitting(extent, fixed, letter, &scene.title),
        };
        let scale = (room[0] / extent[0]).min(room[1] / extent[1]);
        let drawn = [0, 1].map(|c| scale * extent[c]);
        // Centred in the available space.
        let area = [left + 0.5 * (room[0] - drawn[0]), above + 0.5 * (room[1] - drawn[1])];
        let (area, size) = (area.map(f64::round), drawn.map(|c| c.ceil().max(1.0)));
        let origin = [ends[0][0], ends[1][0]];
        Self { page, letter, area, size, camera, origin, scale, ticks, column }
    }

    /// Returns pixels from the area's top left corner, and depth in pixels.
    pub(super) fn within(&self, x: [f64; 3]) -> [f64; 3] {
        let [u, v, depth] = self.camera.project(x);
        let down = self.size[1] - self.scale * (v - self.origin[1]);
        [self.scale * (u - self.origin[0]), down, self.scale * depth]
    }

    fn stroke(&self) -> Stroke {
        Stroke::new(BLACK, 0.055 * self.letter)
    }

    pub(super) fn title(&self, page: &mut Page, scene: &Scene) {
        let at = [self.letter, 1.9 * self.letter];
        let room = self.page[0] - 2.0 * self.letter;
        let size = 1.15 * self.letter;
        let size = size * (room / width(&scene.title, size)).min(1.0);
        page.text(Text::new(scene.title.clone(), at, size, Anchor::Start));
    }

    /// Draws the colour bar on the right, with its ends and round numbers between them.
    pub(super) fn bar(&self, page: &mut Page, scene: &Scene, range: &Range) {
        let letter = self.letter;
        let x = self.page[0] - letter - self.column;
        let triad = if scene.view == Viewpoint::Body { 6.5 * letter } else { 0.0 };
        let (top, bottom) = (5.4 * letter, self.page[1] - 3.9 * letter);
        let bottom = (bottom - triad).max(top + 4.0 * letter).min(self.page[1] - letter);
        let (size, at) = ([1.2 * letter, bottom - top], [x, top]);
        let colours = (0..=32).map(|i| viridis(f64::from(i) / 32.0)).collect();
        page.marks.push(Mark::Ramp { at, size, colours });
        page.frame(at, size, self.stroke());
        let most = ((bottom - top) / (2.2 * letter)) as usize;
        let ticks = Ticks::linear(range.low, range.high, most.clamp(2, 8));
        let name = with_factor(&scene.label, &ticks);
        let fit = letter * (self.column / width(&name, letter)).min(1.0);
        page.text(Text::new(name, [x, top - 0.8 * letter], fit, Anchor::Start));
        let place = |value: f64| bottom - (bottom - top) * range.share(value).clamp(0.0, 1.0);
        let mut written: Vec<(f64, String)> = match range.only {
            Some(only) => vec![(only, ticks.alone(only))],
            None => [range.low, range.high]
                .map(|end| (end, ticks.exact(end, range.high - range.low)))
                .to_vec(),
        };
        let ends: Vec<f64> = written.iter().map(|(value, _)| place(*value)).collect();
        let clear =
            |value: &f64| ends.iter().all(|end| (place(*value) - end).abs() > 1.15 * letter);
        if range.only.is_none() {
            let round = ticks.at.iter().copied().filter(clear);
            written.extend(round.map(|value| (value, ticks.label(value))));
        }
        let right = x + size[0];
        for (value, label) in written {
            let y = place(value);
            page.line(&[[right, y], [right + 0.3 * letter, y]], self.stroke());
            let at = [right + 0.55 * letter, y + 0.36 * letter];
            page.text(Text::new(label, at, letter, Anchor::Start));
        }
    }

    /// Draws a frame with ticks around a plane mesh or slice.
    pub(super) fn axes(&self, page: &mut Page, axis: usize) {
        let Some([across, upward]) = &self.ticks else { return };
        let letter = self.letter;
        let [x, y] = self.area;
        let (right, bottom) = (x + self.size[0], y + self.size[1]);
        page.frame(self.area, self.size, self.stroke());
        let mark = 0.35 * letter;
        let mut free = f64::NEG_INFINITY;
        for &value in &across.at {
            let at = x + self.scale * (value - self.origin[0]);
            let (label, own) = (across.label(value), 0.5 * width(&across.label(value), letter));
            page.line(&[[at, bottom], [at, bottom + mark]], self.stroke());
            if at - own > free {
                page.text(Text::new(label, [at, bottom + 1.45 * letter], letter, Anchor::Middle));
                free = at + own + 0.5 * letter;
            }
        }
        let mut free = f64::INFINITY;
        for &value in &upward.at {
            let at = bottom - self.scale * (value - self.origin[1]);
            page.line(&[[x - mark, at], [x, at]], self.stroke());
            if at < free {
                let place = [x - 1.6 * mark, at + 0.36 * letter];
                page.text(Text::new(upward.label(value), place, letter, Anchor::End));
                free = at - 1.2 * letter;
            }
        }
        let [first, second] = Camera::along(axis).1;
        let middle = [0.5 * (x + right), bottom + 2.8 * letter];
        page.text(Text::new(with_factor(AXES[first], across), middle, letter, Anchor::Middle));
        let middle = [x - 1.3 * letter - widest(upward, letter), 0.5 * (y + bottom)];
        page.text(
            Text::new(with_factor(AXES[second], upward), middle, letter, Anchor::Middle).turned(),
        );
    }

    /// Draws the directions of the axes.
    pub(super) fn triad(&self, page: &mut Page) {
        let letter = self.letter;
        let origin = [self.page[0] - 6.2 * letter, self.page[1] - 4.2 * letter];
        for axis in 0..3 {
            let mut unit = [0.0; 3];
            unit[axis] = 1.0;
            let [u, v, _] = self.camera.project(unit);
            let at = |length: f64| [origin[0] + length * u, origin[1] - length * v];
            let (tip, name) = (at(2.6 * letter), at(3.3 * letter));
            page.line(&[origin, tip], Stroke::new(BLACK, 0.08 * letter));
            let across = |side: f64| {
                let [x, y] = at(2.1 * letter);
                [x + side * 0.22 * letter * v, y + side * 0.22 * letter * u]
            };
            page.area(vec![tip, across(1.0), across(-1.0)], BLACK);
            let place = [name[0], name[1] + 0.3 * letter];
            page.text(Text::new(AXES[axis], place, letter, Anchor::Middle));
        }
    }

    /// Prints the extent of the body along each axis.
    pub(super) fn extents(&self, page: &mut Page, scene: &Scene) {
        let along = |axis: usize| {
            let values = scene.triangles.points.iter().map(|x| x[axis]);
            let [low, high] = ends(values);
            let ticks = Ticks::linear(low, high, 5);
            let range = (high - low).max(LEAST);
            let exact = [low, high].map(|end| ticks.exact(end, range));
            let factor = ticks.factor().map_or_else(String::new, |factor| format!(" {factor}"));
            format!("{} {} … {}{factor}", AXES[axis], exact[0], exact[1])
        };
        let text = [0, 1, 2].map(along).join("     ");
        let at = [self.letter, self.page[1] - 0.9 * self.letter];
        page.text(Text::new(text, at, 0.8 * self.letter, Anchor::Start).coloured(GREY));
    }
}

const AXES: [&str; 3] = ["x", "y", "z"];

/// Returns the name of an axis with the power of ten omitted from its labels.
fn with_factor(name: &str, ticks: &Ticks) -> String {
    ticks.factor().map_or_else(|| name.to_owned(), |factor| format!("{name}  {factor}"))
}

/// Returns the width of the colour bar with its labels and its name; a long name becomes smaller.
fn column(scene: &Scene, range: &Range, letter: f64) -> f64 {
    let ticks = Ticks::linear(range.low, range.high, 8);
    let span = range.high - range.low;
    let exact = [range.low, range.high].map(|end| width(&ticks.exact(end, span), letter));
    let labels = exact.into_iter().fold(widest(&ticks, letter), f64::max);
    let name = width(&with_factor(&scene.label, &ticks), letter).min(LONGEST_NAME * letter);
    let triad = if scene.view == Viewpoint::Body { 6.0 * letter } else { 0.0 };
    (1.75 * letter + labels).max(name).max(triad)
}

/// Returns the page around the field without unused space: as wide as possible, unless it would become too high.
fn fitting(extent: Point, fixed: Point, letter: f64, title: &str) -> (Point, Point) {
    let room = [WIDTH - fixed[0], TALLEST - fixed[1]];
    let scale = (room[0] / extent[0]).min(room[1] / extent[1]);
    // The bar and the title need a minimum of space, too.
    let least = [width(title, 1.15 * letter) + 2.0 * letter - fixed[0], 13.0 * letter];
    let room = [0, 1].map(|c| (scale * extent[c]).max(least[c]).min(room[c].max(least[c])));
    let page = [0, 1].map(|c| (room[c] + fixed[c]).round().min(2.0 * WIDTH));
    (page, room)
}

/// Returns the width of the widest label of an axis.
fn widest(ticks: &Ticks, letter: f64) -> f64 {
    ticks.at.iter().map(|&value| width(&ticks.label(value), letter)).fold(0.0, f64::max)
}

fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let finite = values.filter(|value| value.is_finite());
    let found = finite.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
    if found[0] > found[1] { [0.0, 1.0] } else { found }
}

/// Returns the extents of the scene, to the right and up.
fn projected_ends(triangles: &Triangles, camera: &Camera) -> [[f64; 2]; 2] {
    [0, 1].map(|axis| ends(triangles.points.iter().map(|&x| camera.project(x)[axis])))
}
