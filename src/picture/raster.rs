//! Triangles → pixels: each pixel has the colour of the value on the nearest triangle.
//!
//! Values and depths are linear on a triangle, and under parallel projection also on paper. Each pixel is the mean of
//! several samples, so that outlines are smooth.

use super::colour::{Rgb, viridis};
use super::page::Image;

/// A corner of a triangle, in samples from the top left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Corner {
    /// Coordinates to the right, down, and towards the camera.
    pub(crate) at: [f64; 3],
    /// The value, from 0 to 1.
    pub(crate) value: f64,
    /// Brightness, from 0 to 1.
    pub(crate) light: f64,
}

/// Samples of pixels with the depth of the nearest triangle.
pub(crate) struct Raster {
    width: usize,
    height: usize,
    samples: usize,
    depth: Vec<f32>,
    colour: Vec<Rgb>,
    palette: Vec<Rgb>,
}

/// Colours of the palette.
const COLOURS: usize = 1024;

impl Raster {
    /// Creates a raster of pixels, each of `samples` by `samples`.
    pub(crate) fn new(width: usize, height: usize, samples: usize) -> Self {
        let count = width * height * samples * samples;
        let palette = (0..COLOURS).map(|i| viridis(i as f64 / (COLOURS - 1) as f64)).collect();
        let (depth, colour) = (vec![f32::NEG_INFINITY; count], vec![[0; 3]; count]);
        Self { width, height, samples, depth, colour, palette }
    }

    fn row(&self) -> usize {
        self.width * self.samples
    }

    /// Draws a triangle with depth test.
    pub(crate) fn draw(&mut self, corners: [Corner; 3]) {
        let [a, b, c] = corners.map(|corner| corner.at);
        // Twice the signed area.
        let area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        if !area.is_finite() || area == 0.0 {
            return;
        }
        let ends = |axis: usize, count: usize| {
            let (low, high) =
                (a[axis].min(b[axis]).min(c[axis]), a[axis].max(b[axis]).max(c[axis]));
            // Samples are at the centres.
            let first = (low - 0.5).ceil().max(0.0) as usize;
            first..((high - 0.5).floor() + 1.0).clamp(0.0, count as f64) as usize
        };
        let (columns, rows) = (ends(0, self.row()), ends(1, self.height * self.samples));
        if columns.is_empty() {
            return;
        }
        // Barycentric coordinates of the first sample of a row, and their increments along it.
        let weights = |x: f64, y: f64| {
            let at =
                |p: [f64; 3], q: [f64; 3]| (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0]);
            [at(b, c) / area, at(c, a) / area, at(a, b) / area]
        };
        let step = [(b[1] - c[1]) / area, (c[1] - a[1]) / area, (a[1] - b[1]) / area];
        for y in rows {
            let start = weights(columns.start as f64 + 0.5, y as f64 + 0.5);
            for x in columns.clone() {
                let along = (x - columns.start) as f64;
                let w = [0, 1, 2].map(|i| start[i] + along * step[i]);
                if w.iter().all(|&w| w >= -INSIDE) {
                    self.sample(x + y * self.row(), w, &corners);
                }
            }
        }
    }

    fn sample(&mut self, at: usize, w: [f64; 3], corners: &[Corner; 3]) {
        let mean = |of: fn(&Corner) -> f64| (0..3).map(|i| w[i] * of(&corners[i])).sum::<f64>();
        let depth = mean(|corner| corner.at[2]) as f32;
        if depth >= self.depth[at] {
            self.depth[at] = depth;
            let (value, light) = (mean(|corner| corner.value), mean(|corner| corner.light));
            let colour = match value.is_nan() {
                true => viridis(value),
                false => {
                    self.palette[(value.clamp(0.0, 1.0) * (COLOURS - 1) as f64).round() as usize]
                }
            };
            self.colour[at] = colour.map(|c| (f64::from(c) * light.clamp(0.0, 1.0)).round() as u8);
        }
    }

    /// Returns whether a point of a surface is visible, given its position in pixels: whether some sample around it has
    /// no nearer triangle.
    pub(crate) fn shows(&self, at: [f64; 3]) -> bool {
        let [x, y, depth] = at.map(|c| c * self.samples as f64);
        let (columns, rows) = (self.row() as i64, (self.height * self.samples) as i64);
        let (x, y) = (x.floor() as i64, y.floor() as i64);
        let hides = |x: i64, y: i64| {
            let inside = (0..columns).contains(&x) && (0..rows).contains(&y);
            inside && self.depth[(x + y * columns) as usize] > depth as f32 + SLACK
        };
        (-1..=1).any(|i| (-1..=1).any(|j| !hides(x + i, y + j)))
    }

    /// Returns the pixels.
    pub(crate) fn image(&self) -> Image {
        let (samples, row) = (self.samples, self.row());
        let mut rgba = Vec::with_capacity(4 * self.width * self.height);
        for y in 0..self.height {
            for x in 0..self.width {
                let (mut sum, mut count) = ([0u32; 3], 0u32);
                for s in 0..samples * samples {
                    let at = x * samples + s % samples + (y * samples + s / samples) * row;
                    if self.depth[at] > f32::NEG_INFINITY {
                        count += 1;
                        (0..3).for_each(|c| sum[c] += u32::from(self.colour[at][c]));
                    }
                }
                let all = (samples * samples) as u32;
                rgba.extend(
                    sum.map(|sum| (sum + count / 2).checked_div(count).unwrap_or(255) as u8),
                );
                rgba.push((255 * count / all) as u8);
            }
        }
        Image { width: self.width, height: self.height, rgba }
    }
}

/// Tolerance for rounding errors in the coordinates of a sample on the edge of two triangles.
const INSIDE: f64 = 1e-9;
/// Depth difference that hides a line, in samples.
const SLACK: f32 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn square(depth: f64, value: f64, ends: [f64; 2]) -> [[Corner; 3]; 2] {
        let [low, high] = ends;
        let at = |x, y| Corner { at: [x, y, depth], value, light: 1.0 };
        let (a, b, c, d) = (at(low, low), at(high, low), at(low, high), at(high, high));
        [[a, b, c], [b, d, c]]
    }

    #[test]
    fn triangles_cover_their_pixels_and_the_nearest_is_seen() {
        let mut raster = Raster::new(8, 8, 2);
        square(1.0, 1.0, [4.0, 12.0]).into_iter().for_each(|triangle| raster.draw(triangle));
        square(0.0, 0.0, [0.0, 16.0]).into_iter().for_each(|triangle| raster.draw(triangle));
        let image = raster.image();
        let pixel = |x: usize, y: usize| &image.rgba[4 * (x + 8 * y)..][..3];
        assert!(image.rgba.chunks_exact(4).all(|pixel| pixel[3] == 255));
        assert_eq!((pixel(3, 4), pixel(0, 7)), (&viridis(1.0)[..], &viridis(0.0)[..]));
        assert!(raster.shows([4.0, 4.0, 0.5]) && !raster.shows([4.0, 4.0, 0.0]));
        assert!(raster.shows([-5.0, 8.0, 0.0]));
    }

    #[test]
    fn what_is_no_number_is_grey_and_what_has_no_place_is_not_drawn() {
        let mut raster = Raster::new(4, 4, 1);
        let [first, second] = square(0.0, f64::NAN, [0.0, 4.0]);
        raster.draw(first);
        raster.draw(second.map(|corner| Corner { at: [f64::NAN, 1e300, 0.0], ..corner }));
        let image = raster.image();
        assert_eq!(image.rgba[..4], [0xB4, 0xB4, 0xB4, 255]);
        assert_eq!(image.rgba[image.rgba.len() - 4..], [255, 255, 255, 0]);
    }
}
