//! Plain worlds: where a generator's points lie before its map takes them to the domain.
//!
//! In its plain world the finer mesh of a generator is the coarser one with each cell halved, to the bit: blocks have corners at
//! multiples of 1/2, and a box is counted in cells of its finest grid. So what is refined there and mapped then is the mesh that
//! the generator makes at once.

use super::grid::Grid;
use crate::mesh::Mesh;
use std::f64::consts::FRAC_PI_4;

/// A plain world, by its map.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum World {
    /// Cells of a grid, counted.
    Box(Box<Grid>),
    /// The cube [−1, 1]^d of the unit ball.
    Ball { dim: usize },
    /// Its outer blocks, between two radii.
    Shell { dim: usize, inner: f64, outer: f64 },
    /// What is there already.
    Corner,
}

/// The points of a mesh in its plain world, by the same numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) points: Vec<[f64; 3]>,
    pub(crate) world: World,
}

impl Mesh {
    /// Takes the points of a mesh of a plain world to the domain, and keeps where they were.
    pub(super) fn place_by(&mut self, world: World) {
        let placed = self.points.iter().map(|&q| world.place(q)).collect();
        let points = std::mem::replace(&mut self.points, placed);
        self.plain = Some(Box::new(Plain { points, world }));
    }
}

impl World {
    /// Where a point goes.
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

/// The largest coordinate: the radius of the cube through a point.
fn largest(q: [f64; 3]) -> f64 {
    q.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// The point of the unit sphere in the direction of q, whose largest coordinate is `radius`.
fn on_sphere(dim: usize, q: [f64; 3], radius: f64) -> [f64; 3] {
    let mut direction = [0.0; 3];
    for i in 0..dim {
        direction[i] = (FRAC_PI_4 * (q[i] / radius)).tan();
    }
    let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    direction.map(|x| x / length)
}
