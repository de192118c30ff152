//! Triangles with values → a page: the field in its colours, edges of cells, a colour bar, axes, a title.

mod layout;

use runtime::files::output::surface::Triangles;

use super::colour::BLACK;
use super::page::{Mark, Page, Point, Stroke};
use super::raster::{Corner, Raster};
use layout::Layout;

/// All that is drawn.
pub(crate) struct Scene {
    pub(crate) triangles: Triangles,
    pub(crate) view: Viewpoint,
    /// What the picture shows.
    pub(crate) title: String,
    /// What the colours mean.
    pub(crate) label: String,
    /// The largest absolute value of the field anywhere: what differs by less than its rounding is one value.
    pub(crate) scale: f64,
    /// Width and height in pixels; what fits without them.
    pub(crate) size: Option<(u32, u32)>,
}

/// From where it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Viewpoint {
    /// A body from before it.
    Body,
    /// What is flat, along the axis of this number.
    Along(usize),
}

/// Pixels of which each has several samples.
const FINE: usize = 4 << 20;
/// Edges of cells are drawn where they are so far apart, in letters, and in full from the second on.
const EDGES: [f64; 2] = [0.15, 0.9];

/// Draws a scene, and says what values it has: from the least to the largest, none where there are no numbers.
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

/// The values that the colours span.
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
    /// The one value that there is.
    pub(super) only: Option<f64>,
    /// The values that there are.
    found: Option<(f64, f64)>,
}

impl Range {
    fn of(scene: &Scene) -> Self {
        let values = scene.triangles.values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
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

    /// From 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        match self.only {
            Some(_) if value.is_finite() => 0.5,
            _ if value == f64::INFINITY => 1.0,
            _ if value == f64::NEG_INFINITY => 0.0,
            // Halves, so that the largest numbers do not overflow.
            _ => (0.5 * value - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low),
        }
    }
}

/// All triangles.
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

/// The edges of cells, as far as nothing hides them.
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

/// How far edges are apart, as those of squares are that have as much edge on as much paper: 2 A / L.
fn spacing(triangles: &Triangles, layout: &Layout, chains: &[Vec<[f64; 3]>]) -> f64 {
    let area = |corners: &[u32; 3]| {
        let [a, b, c] = corners.map(|corner| layout.within(triangles.points[corner as usize]));
        0.5 * ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])).abs()
    };
    let length = |ends: &[[f64; 3]]| (ends[1][0] - ends[0][0]).hypot(ends[1][1] - ends[0][1]);
    let length: f64 = chains.iter().flat_map(|chain| chain.windows(2)).map(length).sum();
    2.0 * triangles.corners.iter().map(area).sum::<f64>() / length.max(1.0)
}

/// A chain without the points that lie on the line between the last that is kept and the next.
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

/// How far a point may be from a line on which it is not drawn, in pixels.
const OFF: f64 = 0.02;

fn flat(chain: &[[f64; 3]]) -> Vec<Point> {
    chain.iter().map(|&[x, y, _]| [x, y]).collect()
}

/// The parts of a chain that are seen, tried at every pixel.
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
            // Between its ends a straight line needs no points.
            part.extend(flat(&[at(step - 1)]));
        }
    }
    parts.extend((part.len() > 1).then_some(part));
    parts
}

/// How often it is asked whether a line is seen.
const MOST_STEPS: f64 = 4096.0;
