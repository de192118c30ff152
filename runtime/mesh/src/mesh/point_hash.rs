//! Spatial hash of points: finds a point near a position in constant time.

use std::collections::HashMap;

/// Points of an array, hashed into cubes of the search radius.
pub(super) struct PointHash<'a> {
    points: &'a [[f64; 3]],
    within: f64,
    cubes: HashMap<[i64; 3], Vec<u32>>,
}

impl<'a> PointHash<'a> {
    /// Creates an empty hash.
    pub(super) fn new(points: &'a [[f64; 3]], within: f64) -> Self {
        Self { points, within, cubes: HashMap::new() }
    }

    fn cube(&self, at: [f64; 3]) -> [i64; 3] {
        at.map(|x| (x / self.within).floor() as i64)
    }

    /// Inserts a point by number.
    pub(super) fn insert(&mut self, number: u32) {
        let cube = self.cube(self.points[number as usize]);
        self.cubes.entry(cube).or_default().push(number);
    }

    /// Returns the nearest inserted point within the radius; the first of several.
    pub(super) fn find(&self, at: [f64; 3]) -> Option<u32> {
        let cube = self.cube(at);
        let distance = |number: u32| -> f64 {
            let point = self.points[number as usize];
            (0..3).map(|c| (point[c] - at[c]).powi(2)).sum::<f64>().sqrt()
        };
        let around = (0..27).map(|i| {
            let beside = [i % 3, i / 3 % 3, i / 9];
            [0, 1, 2].map(|c| cube[c].saturating_add(beside[c] - 1))
        });
        let near = around.filter_map(|cube| self.cubes.get(&cube)).flatten().copied();
        near.filter(|&number| distance(number) <= self.within)
            .min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)))
    }
}
