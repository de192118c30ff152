//! Computational domains of the generators, and their maps to the physical domain.
//!
//! In the computational domain, the finer mesh of a generator is the bisected coarser one, to the bit. Block corners
//! are multiples of 1/2, and boxes are measured in cells of the finest grid. Refinement there, followed by the map,
//! therefore gives the mesh of the generator itself.

use crate::mesh::Mesh;
use crate::mesh::measure::Affinity;
use std::f64::consts::{FRAC_PI_4, PI};

/// A grid of cells in a box.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(super) dim: usize,
    pub(super) cells: [usize; 3],
    pub(super) from: [f64; 3],
    pub(super) to: [f64; 3],
    pub(super) deform: f64,
}

impl Grid {
    /// Maps a point of the computational domain, which is measured in cells.
    pub(super) fn point(&self, place: [f64; 3]) -> [f64; 3] {
        let mut point = [0.0; 3];
        let mut bump = self.deform;
        for a in 0..self.dim {
            let n = self.cells[a] as f64;
            let s = place[a] / n;
            // Points of the walls are exact.
            point[a] = match place[a] {
                0.0 => self.from[a],
                i if i == n => self.to[a],
                _ => self.from[a] + s * (self.to[a] - self.from[a]),
            };
            bump *=
                if bump == 0.0 || place[a] == 0.0 || place[a] == n { 0.0 } else { (PI * s).sin() };
        }
        if bump != 0.0 {
            for a in 0..self.dim {
                let sign = if a == 1 { -1.0 } else { 1.0 };
                point[a] += sign * bump * (self.to[a] - self.from[a]);
            }
        }
        point
    }
}

/// Map from the computational to the physical domain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DomainMap {
    /// A grid, measured in cells.
    Box(Box<Grid>),
    /// The cube [−1, 1]^d of the unit ball.
    Ball { dim: usize },
    /// The outer blocks of that cube, between two radii.
    Shell { dim: usize, inner: f64, outer: f64 },
    /// The identity (`lshape`).
    Corner,
}

/// The points of a mesh in its computational domain, in the mesh's numbering.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ComputationalPoints {
    pub(crate) points: Vec<[f64; 3]>,
    pub(crate) world: DomainMap,
}

impl Mesh {
    /// Maps the points of a mesh from the computational to the physical domain, and keeps the original coordinates.
    pub(super) fn place_by(&mut self, world: DomainMap) {
        let placed = self.points.iter().map(|&q| world.place(q)).collect();
        let points = std::mem::replace(&mut self.points, placed);
        self.affine = Affinity::default();
        self.plain = Some(Box::new(ComputationalPoints { points, world }));
    }
}

impl DomainMap {
    /// Maps a point to the physical domain.
    pub(crate) fn place(&self, q: [f64; 3]) -> [f64; 3] {
        match self {
            Self::Box(grid) => grid.point(q),
            Self::Corner => q,
            Self::Ball { dim } => {
                let (root, radius) = ((*dim as f64).sqrt(), largest(q));
                let inner = 1.0 / (1.0 + root) / root;
                if radius <= 0.5 {
                    return q.map(|x| 2.0 * inner * x);
                }
                let s = 2.0 * radius - 1.0;
                let (flat, round) = (q.map(|x| x / radius * inner), on_sphere(*dim, q, radius));
                [0, 1, 2].map(|i| (1.0 - s) * flat[i] + s * round[i])
            }
            Self::Shell { dim, inner, outer } => {
                let radius = largest(q);
                let s = 2.0 * radius - 1.0;
                on_sphere(*dim, q, radius).map(|x| ((1.0 - s) * inner + s * outer) * x)
            }
        }
    }
}

/// Returns the largest absolute coordinate: half the width of the cube through a point.
fn largest(q: [f64; 3]) -> f64 {
    q.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Returns the point of the unit sphere in the direction of q, whose largest coordinate is `radius`.
fn on_sphere(dim: usize, q: [f64; 3], radius: f64) -> [f64; 3] {
    let mut direction = [0.0; 3];
    for i in 0..dim {
        direction[i] = (FRAC_PI_4 * (q[i] / radius)).tan();
    }
    let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    direction.map(|x| x / length)
}
