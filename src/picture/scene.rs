//! Triangles with values → a page: the field in its colours, edges of cells, a colour bar, axes, a title.

mod layout;

use runtime::files::output::surface::Triangles;

use super::colour::BLACK;
use super::page::{Mark, Page, Point, Stroke};
use super::raster::{Corner, Raster};
use layout::Layout;

/// The contents of a picture.
pub(crate) struct Scene {
    pub(crate) triangles: Triangles,
    pub(crate) view: Viewpoint,
    /// Description of the picture.
    pub(crate) title: String,
    /// The label of the colour bar.
    pub(crate) label: String,
    /// The largest absolute value of the field anywhere: differences below its rounding error are ignored.
    pub(crate) scale: f64,
    /// Width and height in pixels; chosen automatically if `None`.
    pub(crate) size: Option<(u32, u32)>,
    /// The values of the first and the last colour; those of the field if `None`.
    pub(crate) fixed: Option<(f64, f64)>,
}

/// The viewpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Viewpoint {
    /// A body from the front.
    Body,
    /// A plane mesh or slice, along the axis with this index.
    Along(usize),
}

/// Number of pixels up to which each has several samples.
const FINE: usize = 4 << 20;
/// Spacings of cell edges, in letters, at which edges begin to be drawn and are drawn in full.
const EDGES: [f64; 2] = [0.15, 0.9];

/// Draws a scene, and returns its range of values; `None` without finite values.
pub(crate) fn draw(scene: &Scene) -> (Page, Option<(f64, f64)>) {
    let range = Range::of(scene);
    let layout = Layout::new(scene, &range);
    let [width, height] = layout.page;
    let mut page = Page { width, height, title: scene.title.clone(), marks: Vec::new() };
    let raster = raster(scene, &layout, &range);
    page.marks.push(Mark::Image { at: layout.area, image: raster.image() });
    edges(&mut page, scene, &layout, &raster);
    layout.title(&mut page, scene);
    layout.bar(&mut page, scene, &range);
    match scene.view {
        Viewpoint::Along(axis) => layout.axes(&mut page, axis),
        Viewpoint::Body => {
            layout.triad(&mut page);
            layout.extents(&mut page, scene);
        }
    }
    (page, range.found)
}

/// The range of the colours.
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
    /// The value, if there is only one.
    pub(super) only: Option<f64>,
    /// The range of the values.
    found: Option<(f64, f64)>,
}

impl Range {
    fn of(scene: &Scene) -> Self {
        let values = scene.triangles.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let found = (low <= high).then_some((low, high));
        if let Some((low, high)) = scene.fixed {
            return Self { low, high, only: None, found };
        }
        if low > high {
            return Self { low: 0.0, high: 1.0, only: None, found: None };
        }
        let noise = 1e-12 * scene.scale.max(low.abs()).max(high.abs());
        if high - low > noise {
            return Self { low, high, only: None, found: Some((low, high)) };
        }
        let middle = low + 0.5 * (high - low);
        let only = if middle.abs() <= noise { 0.0 } else { middle };
        let around = if only == 0.0 { 1.0 } else { 0.5 * only.abs() };
        let (low, high) = (only - around, only + around);
        Self { low, high, only: Some(only), found: Some((only, only)) }
    }

    /// Returns the fraction of the range, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        match self.only {
            Some(_) if value.is_finite() => 0.5,
            _ if value == f64::INFINITY => 1.0,
            _ if value == f64::NEG_INFINITY => 0.0,
            // Halves, so that the largest numbers do not overflow.
            _ => {
                let share = (0.5 * value - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low);
                // A chosen range may leave values out.
                share.clamp(0.0, 1.0)
            }
        }
    }
}

/// Rasterises all triangles.
fn raster(scene: &Scene, layout: &Layout, range: &Range) -> Raster {
    let (width, height) = (layout.size[0] as usize, layout.size[1] as usize);
    let samples = if width * height > FINE { 1 } else { 2 };
    let mut raster = Raster::new(width, height, samples);
    let Triangles { points, normals, values, corners, .. } = &scene.triangles;
    let is_body = scene.view == Viewpoint::Body;
    let corner = |point: u32| {
        let point = point as usize;
        let light = if is_body { layout.camera.light(normals[point]) } else { 1.0 };
        let at = layout.within(points[point]).map(|c| c * samples as f64);
        Corner { at, value: range.share(values[point]), light }
    };
    corners.iter().for_each(|of| raster.draw(of.map(corner)));
    raster
}

/// Draws the visible edges of cells.
fn edges(page: &mut Page, scene: &Scene, layout: &Layout, raster: &Raster) {
    let triangles = &scene.triangles;
    let place = |chain: &Vec<[f64; 3]>| chain.iter().map(|&x| layout.within(x)).collect();
    let chains: Vec<Vec<[f64; 3]>> = triangles.edges.iter().map(place).collect();
    let spacing = spacing(triangles, layout, &chains) / layout.letter;
    let fade = ((spacing - EDGES[0]) / (EDGES[1] - EDGES[0])).clamp(0.0, 1.0);
    if fade == 0.0 {
        return;
    }
    let hides = scene.view == Viewpoint::Body;
    let seen: Vec<Vec<Point>> = chains
        .iter()
        .flat_map(
            |chain| if hides { visible(chain, raster) } else { vec![straightened(&flat(chain))] },
        )
        .map(|chain| chain.iter().map(|p| [p[0] + layout.area[0], p[1] + layout.area[1]]).collect())
        .collect();
    let stroke = Stroke::new(BLACK, 0.05 * layout.letter).faded(0.25 + 0.45 * fade);
    page.marks.push(Mark::Lines { chains: seen, stroke });
}

/// Returns the spacing of edges: that of squares with the same edge length per area, 2 A / L.
fn spacing(triangles: &Triangles, layout: &Layout, chains: &[Vec<[f64; 3]>]) -> f64 {
    let area = |corners: &[u32; 3]| {
        let [a, b, c] = corners.map(|corner| layout.within(triangles.points[corner as usize]));
        0.5 * ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])).abs()
    };
    let length = |ends: &[[f64; 3]]| (ends[1][0] - ends[0][0]).hypot(ends[1][1] - ends[0][1]);
    let length: f64 = chains.iter().flat_map(|chain| chain.windows(2)).map(length).sum();
    2.0 * triangles.corners.iter().map(area).sum::<f64>() / length.max(1.0)
}

/// Returns a chain without the points that lie on the line between the last retained point and the next.
fn straightened(chain: &[Point]) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for (number, &point) in chain.iter().enumerate() {
        let between = kept.last().zip(chain.get(number + 1)).is_some_and(|(last, next)| {
            let (along, to) =
                ([next[0] - last[0], next[1] - last[1]], [point[0] - last[0], point[1] - last[1]]);
            let off = along[0] * to[1] - along[1] * to[0];
            off.abs() <= OFF * along[0].hypot(along[1])
        });
        if !between {
            kept.push(point);
        }
    }
    kept
}

/// Distance from a line, in pixels, below which a point is omitted.
const OFF: f64 = 0.02;

fn flat(chain: &[[f64; 3]]) -> Vec<Point> {
    chain.iter().map(|&[x, y, _]| [x, y]).collect()
}

/// Returns the visible parts of a chain, tested at every pixel.
fn visible(chain: &[[f64; 3]], raster: &Raster) -> Vec<Vec<Point>> {
    let (mut parts, mut part): (Vec<Vec<Point>>, Vec<Point>) = (Vec::new(), Vec::new());
    for ends in chain.windows(2) {
        let [start, end] = [ends[0], ends[1]];
        let length = (end[0] - start[0]).hypot(end[1] - start[1]);
        let steps = length.ceil().clamp(1.0, MOST_STEPS) as usize;
        let at = |step: usize| {
            let t = step as f64 / steps as f64;
            [0, 1, 2].map(|c| start[c] + t * (end[c] - start[c]))
        };
        let seen: Vec<bool> = (0..=steps).map(|step| raster.shows(at(step))).collect();
        let mut step = 0;
        while step <= steps {
            if !seen[step] {
                parts.extend((part.len() > 1).then(|| std::mem::take(&mut part)));
                part.clear();
                step += 1;
                continue;
            }
            let first = step;
            step += seen[first..].iter().take_while(|seen| **seen).count();
            if part.is_empty() {
                part.extend(flat(&[at(first)]));
            }
            // A straight line needs no points between its ends.
            part.extend(flat(&[at(step - 1)]));
        }
    }
    parts.extend((part.len() > 1).then_some(part));
    parts
}

/// Largest number of visibility tests per line.
const MOST_STEPS: f64 = 4096.0;
