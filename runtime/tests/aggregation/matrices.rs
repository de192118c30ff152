//! Test matrices for aggregation: grids and simplices → [`Csr`], with nodes and constrained degrees of freedom.

use runtime::algebra::sparse::Csr;

/// Returns pseudo-random numbers between −1 and 1.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Accumulated entries.
struct Sum {
    rows: Vec<Vec<(u32, f64)>>,
}

impl Sum {
    fn new(n: usize) -> Self {
        Self { rows: vec![Vec::new(); n] }
    }

    fn add(&mut self, i: usize, j: usize, value: f64) {
        self.rows[i].push((j as u32, value));
    }

    fn matrix(mut self) -> Csr {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in &mut self.rows {
            row.sort_by_key(|entry| entry.0);
            for same in row.chunk_by(|a, b| a.0 == b.0) {
                columns.push(same[0].0);
                values.push(same.iter().map(|entry| entry.1).sum());
            }
            starts.push(columns.len());
        }
        Csr::square(starts, columns, values)
    }
}

/// Returns finite differences on a grid with n nodes per direction. `k(axis, middle)` is the coefficient of an edge;
/// with `held`, nodes outside are 0.
pub(crate) fn grid(dim: usize, n: usize, held: bool, k: impl Fn(usize, [usize; 3]) -> f64) -> Csr {
    let total = n.pow(dim as u32);
    let strides = [1, n, n * n];
    let mut sum = Sum::new(total);
    for i in 0..total {
        let place: [usize; 3] = std::array::from_fn(|axis| i / strides[axis] % n);
        for axis in 0..dim {
            let own = k(axis, place);
            if place[axis] + 1 < n {
                let j = i + strides[axis];
                [(i, i), (j, j)].into_iter().for_each(|(a, b)| sum.add(a, b, own));
                [(i, j), (j, i)].into_iter().for_each(|(a, b)| sum.add(a, b, -own));
            } else if held {
                sum.add(i, i, own);
            }
            if place[axis] == 0 && held {
                sum.add(i, i, own);
            }
        }
    }
    sum.matrix()
}

/// A matrix of degree 1 on simplices.
pub(crate) struct Simplices {
    pub(crate) matrix: Csr,
    pub(crate) points: Vec<[f64; 3]>,
    pub(crate) fixed: Vec<bool>,
}

/// The discretised equation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Physics {
    Diffusion,
    /// Young's modulus 1 and Poisson's ratio 0.3.
    Elasticity,
}

/// Returns a box with n cells per unit length, each split into dim! simplices, with perturbed nodes; constrained at x
/// = 0.
pub(crate) fn simplices(dim: usize, n: usize, size: [usize; 3], physics: Physics) -> Simplices {
    let cells: [usize; 3] = std::array::from_fn(|axis| if axis < dim { n * size[axis] } else { 0 });
    let points = points(dim, n, cells);
    let components = if physics == Physics::Diffusion { 1 } else { dim };
    let fixed: Vec<bool> =
        (0..points.len() * components).map(|i| points[i / components][0] == 0.0).collect();
    let strides = [1, cells[0] + 1, (cells[0] + 1) * (cells[1] + 1)];
    let orders: &[&[usize]] = match dim {
        2 => &[&[0, 1], &[1, 0]],
        _ => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
    };
    let mut sum = Sum::new(fixed.len());
    for first in 0..points.len() {
        let place = |axis: usize| first / strides[axis] % (cells[axis] + 1);
        if (0..dim).any(|axis| place(axis) == cells[axis]) {
            continue;
        }
        for order in orders {
            let mut corners = vec![first];
            order.iter().for_each(|&axis| corners.push(corners[corners.len() - 1] + strides[axis]));
            add(&mut sum, &corners, &points, &fixed, physics);
        }
    }
    (0..fixed.len()).filter(|&i| fixed[i]).for_each(|i| sum.add(i, i, 1.0));
    Simplices { matrix: sum.matrix(), points, fixed }
}

fn points(dim: usize, n: usize, cells: [usize; 3]) -> Vec<[f64; 3]> {
    let counts = cells.map(|cells| cells + 1);
    let total = counts.iter().product::<usize>();
    let moved = noise(3 * total, 5);
    let strides = [1, counts[0], counts[0] * counts[1]];
    let point = |i: usize| {
        std::array::from_fn(|axis| {
            let place = i / strides[axis] % counts[axis];
            let inside = axis < dim && place > 0 && place < cells[axis];
            (place as f64 + if inside { 0.15 * moved[3 * i + axis] } else { 0.0 }) / n as f64
        })
    };
    (0..total).map(point).collect()
}

fn add(sum: &mut Sum, corners: &[usize], points: &[[f64; 3]], fixed: &[bool], physics: Physics) {
    let dim = corners.len() - 1;
    let components = if physics == Physics::Diffusion { 1 } else { dim };
    let (mu, lambda) = (1.0 / 2.6, 0.3 / (1.3 * 0.4));
    let (gradients, volume) = gradients(corners, points);
    for (i, g) in gradients.iter().enumerate() {
        for (j, h) in gradients.iter().enumerate() {
            let both: f64 = g.iter().zip(h).map(|(g, h)| g * h).sum();
            for a in 0..components {
                for b in 0..components {
                    let same = if a == b { both } else { 0.0 };
                    let value = match physics {
                        Physics::Diffusion => both,
                        Physics::Elasticity => mu * same + mu * g[b] * h[a] + lambda * g[a] * h[b],
                    };
                    let (row, column) = (corners[i] * components + a, corners[j] * components + b);
                    if !fixed[row] && !fixed[column] {
                        sum.add(row, column, volume * value);
                    }
                }
            }
        }
    }
}

/// Returns the gradients ∇φ of the corners of a simplex, by Cramer's rule, and its volume.
fn gradients(corners: &[usize], points: &[[f64; 3]]) -> (Vec<[f64; 3]>, f64) {
    let dim = corners.len() - 1;
    let mut m = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
    for j in 0..dim {
        for axis in 0..dim {
            m[j][axis] = points[corners[j + 1]][axis] - points[corners[0]][axis];
        }
    }
    let cross = |a: [f64; 3], b: [f64; 3]| -> [f64; 3] {
        std::array::from_fn(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            a[j] * b[k] - a[k] * b[j]
        })
    };
    let normals: [[f64; 3]; 3] = std::array::from_fn(|j| cross(m[(j + 1) % 3], m[(j + 2) % 3]));
    let determinant: f64 = m[0].iter().zip(normals[0]).map(|(m, n)| m * n).sum();
    let mut gradients = vec![[0.0; 3]; dim + 1];
    for j in 0..dim {
        for axis in 0..dim {
            gradients[j + 1][axis] = normals[j][axis] / determinant;
            gradients[0][axis] -= normals[j][axis] / determinant;
        }
    }
    (gradients, determinant.abs() / if dim == 2 { 2.0 } else { 6.0 })
}
