//! Measurements as lines over axes: charts → a page, one below the other, as PNG or SVG.
//!
//! Axes span the data exactly. Each line has its own colour and mark; its reference is dashed in the same colour. The
//! legend is next to the axes, where it covers nothing.

use std::path::Path;

use super::colour::{BLACK, GREY, LIGHT, of_line};
use super::page::{Anchor, Page, Point, Stroke, Text, width};
use super::ticks::{LogTicks, Ticks};
use super::{Format, PictureError, save};

/// Lines over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// The name of the dashed lines.
    pub dashed: String,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The name of the quantity.
    pub name: String,
    /// Its scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Integers, from the smallest to the largest.
    Whole,
    /// Linear, from the smallest to the largest number.
    Linear,
    /// Linear, from one number to another.
    Between(f64, f64),
    /// Linear, from zero to the largest number.
    FromZero,
    /// Logarithmic; only positive numbers are drawn.
    Logarithmic,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name; empty for a line without a legend.
    pub name: String,
    /// Its points, marked. The line has a gap where one is not finite.
    pub points: Vec<(f64, f64)>,
    /// True if its points have no marks.
    pub is_plain: bool,
    /// A dashed line in the same colour, clipped to the axes.
    pub dashed: Vec<(f64, f64)>,
    /// True if the axes include the dashed line.
    pub fits_dashed: bool,
}

/// Default width of a page and height of a chart.
const PANEL: Point = [1080.0, 460.0];
/// Height of letters.
const LETTER: f64 = 15.0;
/// Pixels of a PNG per unit of the page.
const FINE: f64 = 2.0;
/// Distance between the ends of an axis and the data.
const INSET: f64 = 0.8 * LETTER;
/// Lengths of a dash and of the following gap.
const DASH: [f64; 2] = [7.0, 4.5];

/// Draws charts one below the other, and writes the file: PNG for the extension `.png`, SVG for `.svg`.
///
/// # Errors
///
/// Another extension, or a file that cannot be written.
pub fn write_charts(path: &Path, title: &str, charts: &[Chart]) -> Result<(), PictureError> {
    let format = Format::of(path)?;
    save(path, format, &page(title, charts, PANEL), FINE)
}

/// Draws a chart on a page of a size in units, or of the default size, and returns it with its pixels per unit.
pub(super) fn of_size(title: &str, chart: Chart, size: Option<(u32, u32)>) -> (Page, f64) {
    let panel = size.map(|(width, height)| [f64::from(width), f64::from(height)]);
    let scale = if size.is_some() { 1.0 } else { FINE };
    (page(title, &[chart], panel.unwrap_or(PANEL)), scale)
}

/// Draws charts one below the other, each on a panel of a size.
fn page(title: &str, charts: &[Chart], panel: Point) -> Page {
    let names = charts.iter().map(|chart| legend_width(chart, panel)).fold(0.0, f64::max);
    let height = panel[1] * charts.len().max(1) as f64;
    let mut page = Page { width: panel[0], height, title: title.to_owned(), marks: Vec::new() };
    for (number, chart) in charts.iter().enumerate() {
        draw(&mut page, chart, number as f64 * panel[1], (names, panel));
    }
    page
}

/// Returns the width of the legend next to a chart.
fn legend_width(chart: &Chart, panel: Point) -> f64 {
    if !chart.has_legend() {
        return LETTER;
    }
    let names = chart.series.iter().map(|series| series.name.as_str());
    let dashed = chart.has_dashed().then_some(chart.dashed.as_str());
    let widest = names.chain(dashed).map(|name| width(name, LETTER)).fold(0.0, f64::max);
    (widest + 4.6 * LETTER).min(0.5 * panel[0])
}

impl Chart {
    /// Returns whether a line has a name.
    fn has_legend(&self) -> bool {
        self.has_dashed() || self.series.iter().any(|series| !series.name.is_empty())
    }

    fn has_dashed(&self) -> bool {
        self.series.iter().any(|series| !series.dashed.is_empty())
    }
}

/// An axis with its ends in pixels.
struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    labelled: Vec<(f64, String)>,
    between: Vec<f64>,
    name: String,
}

impl Ruler {
    /// Returns the ends and ticks of an axis for some numbers, before its pixels are known; `None` without numbers.
    fn new(axis: &Axis, values: &[f64], most: usize) -> Option<Self> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return None;
        }
        let (low, high) = match axis.scale {
            Scale::Linear if low == high => {
                let around = if low == 0.0 { 1.0 } else { 0.5 * low.abs() };
                (low - around, high + around)
            }
            Scale::Whole if low == high => (low - 1.0, high + 1.0),
            Scale::Between(low, high) => (low, high),
            Scale::FromZero if high > 0.0 => (0.0, high),
            Scale::FromZero => (0.0, 1.0),
            Scale::Logarithmic if low == high => (low / 2.0, high * 2.0),
            Scale::Whole | Scale::Linear | Scale::Logarithmic => (low, high),
        };
        let mut ruler = Self {
            scale: axis.scale,
            low,
            high,
            from: 0.0,
            to: 1.0,
            labelled: Vec::new(),
            between: Vec::new(),
            name: axis.name.clone(),
        };
        ruler.divide(most);
        Some(ruler)
    }

    fn divide(&mut self, most: usize) {
        if self.scale == Scale::Logarithmic {
            let LogTicks { labelled, between } = LogTicks::new(self.low, self.high, most);
            (self.labelled, self.between) = (labelled, between);
            return;
        }
        // Ticks of integers are integers.
        let whole = if self.scale == Scale::Whole { (self.high - self.low) as usize } else { most };
        let ticks = Ticks::linear(self.low, self.high, most.min(whole.max(1)));
        self.labelled = ticks.at.iter().map(|&value| (value, ticks.label(value))).collect();
        if let Some(factor) = ticks.factor() {
            self.name = format!("{}  {factor}", self.name);
        }
    }

    fn place(&self, value: f64) -> f64 {
        let (low, high, value) = match self.scale {
            Scale::Logarithmic => (self.low.ln(), self.high.ln(), value.ln()),
            _ => (self.low, self.high, value),
        };
        self.from + (self.to - self.from) * (value - low) / (high - low)
    }

    /// Returns whether an axis can represent a number.
    fn takes(&self, value: f64) -> bool {
        value.is_finite() && (self.scale != Scale::Logarithmic || value > 0.0)
    }
}

/// Returns all numbers that an axis must include.
fn numbers(chart: &Chart, scale: Scale, of: fn(&(f64, f64)) -> f64) -> Vec<f64> {
    let shown = |series: &Series| {
        let dashed = if series.fits_dashed { &series.dashed[..] } else { &[] };
        [&series.points[..], dashed].concat()
    };
    let values = chart.series.iter().flat_map(shown).map(|point| of(&point));
    values.filter(|v| v.is_finite() && (scale != Scale::Logarithmic || *v > 0.0)).collect()
}

fn draw(page: &mut Page, chart: &Chart, top: f64, (names, panel): (f64, Point)) {
    let x = Ruler::new(&chart.x, &numbers(chart, chart.x.scale, |point| point.0), 10);
    let y = Ruler::new(&chart.y, &numbers(chart, chart.y.scale, |point| point.1), 8);
    let (Some(mut x), Some(mut y)) = (x, y) else {
        let text = format!("{}: nothing to draw", chart.y.name);
        page.text(Text::new(text, [2.0 * LETTER, top + 3.0 * LETTER], LETTER, Anchor::Start));
        return;
    };
    let labels = y.labelled.iter().map(|(_, label)| width(label, LETTER)).fold(0.0, f64::max);
    let (left, right) = (3.4 * LETTER + labels, panel[0] - names);
    let (above, below) = (top + 1.6 * LETTER, top + panel[1] - 3.8 * LETTER);
    (x.from, x.to) = (left + INSET, right - INSET);
    (y.from, y.to) = (below - if y.scale == Scale::FromZero { 0.0 } else { INSET }, above + INSET);
    let frame = [[left, above], [right, below]];
    axes(page, &x, &y, frame);
    for (number, series) in chart.series.iter().enumerate() {
        lines(page, series, number, [&x, &y], frame);
    }
    // Marks are drawn over the lines.
    for (number, series) in chart.series.iter().enumerate() {
        marks(page, series, number, [&x, &y]);
    }
    if !chart.has_legend() {
        return;
    }
    legend(page, chart, [right + LETTER, above + 0.9 * LETTER], (below - above, panel[0]));
}

fn axes(page: &mut Page, x: &Ruler, y: &Ruler, [[left, above], [right, below]]: [Point; 2]) {
    let (thin, pen) = (Stroke::new(LIGHT, 1.0), Stroke::new(BLACK, 1.0));
    let (long, short) = (0.4 * LETTER, 0.22 * LETTER);
    let within =
        |value: f64, from: f64, to: f64| from.min(to) - 0.5 <= value && value <= from.max(to) + 0.5;
    for (value, _) in x.labelled.iter().filter(|(value, _)| within(x.place(*value), left, right)) {
        page.line(&[[x.place(*value), above], [x.place(*value), below]], thin);
    }
    for (value, _) in y.labelled.iter().filter(|(value, _)| within(y.place(*value), above, below)) {
        page.line(&[[left, y.place(*value)], [right, y.place(*value)]], thin);
    }
    for at in x.between.iter().map(|&value| x.place(value)) {
        page.line(&[[at, below], [at, below - short]], pen);
    }
    for at in y.between.iter().map(|&value| y.place(value)) {
        page.line(&[[left, at], [left + short, at]], pen);
    }
    for (value, label) in &x.labelled {
        let at = x.place(*value);
        page.line(&[[at, below], [at, below - long]], pen);
        page.text(Text::new(label, [at, below + 1.35 * LETTER], LETTER, Anchor::Middle));
    }
    for (value, label) in &y.labelled {
        let at = y.place(*value);
        page.line(&[[left, at], [left + long, at]], pen);
        page.text(Text::new(label, [left - 0.5 * LETTER, at + 0.36 * LETTER], LETTER, Anchor::End));
    }
    page.frame([left, above], [right - left, below - above], pen);
    let middle = [0.5 * (left + right), below + 2.9 * LETTER];
    page.text(Text::new(x.name.clone(), middle, LETTER, Anchor::Middle));
    let middle = [1.6 * LETTER, 0.5 * (above + below)];
    page.text(Text::new(y.name.clone(), middle, LETTER, Anchor::Middle).turned());
}

fn lines(page: &mut Page, series: &Series, number: usize, [x, y]: [&Ruler; 2], frame: [Point; 2]) {
    let stroke = Stroke::new(of_line(number), 2.0);
    let places = |points: &[(f64, f64)]| -> Vec<Point> {
        let known = points.iter().filter(|point| x.takes(point.0) && y.takes(point.1));
        known.map(|&(a, b)| [x.place(a), y.place(b)]).collect()
    };
    let gap = |point: &(f64, f64)| !(x.takes(point.0) && y.takes(point.1));
    for points in series.points.split(gap).filter(|points| points.len() > 1) {
        page.line(&places(points), stroke);
    }
    for ends in places(&series.dashed).windows(2) {
        if let Some(ends) = clipped([ends[0], ends[1]], frame) {
            page.line(&ends, Stroke { width: 1.6, ..stroke }.dashed(DASH));
        }
    }
}

/// Returns the part of a line within a frame (Y.-D. Liang and B. A. Barsky, ACM Transactions on Graphics 3, 1984).
fn clipped([start, end]: [Point; 2], [least, most]: [Point; 2]) -> Option<[Point; 2]> {
    let (mut first, mut last) = (0.0f64, 1.0f64);
    for c in 0..2 {
        let along = end[c] - start[c];
        for (towards, room) in [(-along, start[c] - least[c]), (along, most[c] - start[c])] {
            if towards == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if towards < 0.0 {
                first = first.max(room / towards);
            } else {
                last = last.min(room / towards);
            }
        }
    }
    let at = |t: f64| [0, 1].map(|c| start[c] + t * (end[c] - start[c]));
    (first < last).then(|| [at(first), at(last)])
}

fn marks(page: &mut Page, series: &Series, number: usize, [x, y]: [&Ruler; 2]) {
    if series.is_plain {
        return;
    }
    for &(a, b) in series.points.iter().filter(|point| x.takes(point.0) && y.takes(point.1)) {
        page.area(mark(number, [x.place(a), y.place(b)]), of_line(number));
    }
}

/// Returns the mark of a line: a circle, a square, a triangle, a diamond, or an inverted triangle, each of about the
/// same area.
fn mark(number: usize, [x, y]: Point) -> Vec<Point> {
    let radius = 0.32 * LETTER;
    let (corners, first, size): (u32, f64, f64) = match number % 5 {
        0 => (24, 0.0, 1.0),
        1 => (4, 45.0, 1.25),
        2 => (3, -90.0, 1.5),
        3 => (4, 0.0, 1.35),
        _ => (3, 90.0, 1.5),
    };
    let corner = |i: u32| {
        let angle = (first + 360.0 * f64::from(i) / f64::from(corners)).to_radians();
        [x + size * radius * angle.cos(), y + size * radius * angle.sin()]
    };
    (0..corners).map(corner).collect()
}

/// Draws the legend, with closer lines if there are many.
fn legend(page: &mut Page, chart: &Chart, [x, top]: Point, (room, right): (f64, f64)) {
    let count = chart.series.len() + usize::from(chart.has_dashed());
    let step = (1.55 * LETTER).min((room - LETTER) / count.saturating_sub(1).max(1) as f64);
    let size = LETTER.min(1.1 * step);
    let place = |number: usize| [x, top + step * number as f64];
    let end = x + 2.6 * LETTER;
    let name = |page: &mut Page, name: &str, y: f64| {
        let room = right - end - LETTER;
        let fit = size * (room / width(name, size)).min(1.0);
        page.text(Text::new(name, [end + 0.6 * LETTER, y + 0.36 * size], fit, Anchor::Start));
    };
    for (number, series) in chart.series.iter().enumerate() {
        let [x, y] = place(number);
        page.line(&[[x, y], [end, y]], Stroke::new(of_line(number), 2.0));
        if !series.is_plain {
            page.area(mark(number, [0.5 * (x + end), y]), of_line(number));
        }
        name(page, &series.name, y);
    }
    if chart.has_dashed() {
        let [x, y] = place(chart.series.len());
        page.line(&[[x, y], [end, y]], Stroke::new(GREY, 1.6).dashed(DASH));
        name(page, &chart.dashed, y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)], scale: Scale) -> Chart {
        let axis = |name: &str| Axis { name: name.to_owned(), scale };
        let series = Series { name: "u".into(), points: points.to_vec(), ..Series::default() };
        Chart { x: axis("h"), y: axis("error"), series: vec![series], dashed: "expected".into() }
    }

    #[test]
    fn nothing_and_one_point_are_drawn_too() {
        for points in [&[][..], &[(1.0, 1.0)], &[(0.0, 0.0)], &[(1.0, f64::NAN)], &[(1.0, 0.0)]] {
            for scale in [Scale::Whole, Scale::Linear, Scale::FromZero, Scale::Logarithmic] {
                let page = page("errors", &[chart(points, scale)], PANEL);
                assert!(!page.svg().expect("SVG").contains("NaN"), "{points:?} {scale:?}");
            }
        }
    }

    #[test]
    fn axes_span_what_is_drawn() {
        let points = [(0.05, 1e-6), (0.1, 1e-4), (0.2, 1e-2)];
        let log = chart(&points, Scale::Logarithmic);
        let ruler = Ruler::new(&log.y, &numbers(&log, Scale::Logarithmic, |p| p.1), 8);
        let ruler = ruler.expect("numbers");
        assert_eq!((ruler.low, ruler.high), (1e-6, 1e-2));
        let labels: Vec<&str> = ruler.labelled.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]);
        assert_eq!((ruler.place(1e-6), ruler.place(1e-2)), (0.0, 1.0));
        assert!((ruler.place(1e-4) - 0.5).abs() < 1e-12);
        assert!(!ruler.takes(0.0));
    }

    #[test]
    fn dashes_end_at_the_frame_with_their_slope() {
        let frame = [[0.0, 0.0], [10.0, 10.0]];
        assert_eq!(clipped([[5.0, 5.0], [15.0, 15.0]], frame), Some([[5.0, 5.0], [10.0, 10.0]]));
        assert_eq!(clipped([[1.0, 2.0], [3.0, 4.0]], frame), Some([[1.0, 2.0], [3.0, 4.0]]));
        assert_eq!(clipped([[11.0, 0.0], [11.0, 5.0]], frame), None);
    }
}
