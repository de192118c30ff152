//! Polynomials from values at quadrature points: divergence, and flux through each facet.
//!
//! ```text
//! tensor cells   interpolation at the points, of degree q − 1 per direction: D, and its values at both ends of a line
//! simplices      projection onto P_k in the rule's inner product, V (Vᵀ W V)⁻¹ Vᵀ W, with k half of the rule's degree
//!                of exactness, so that Vᵀ W V is exact; a rule for simplices need not determine an interpolant
//! ```
//!
//! Both preserve the rule's integrals against gradients of basis functions.
//!
//! For the pulled-back flux σ = |det J| J⁻¹ f1, the divergence in reference coordinates is |det J| div f1. With N
//! scaled by the facet's parametrisation, σ · N on a facet is f1 · n ds per parameter: facets need no geometry map.

use crate::mesh::views::{FacetViews, reference_normal};
use kernels_gen::element::{Cell, Lagrange, LinePoints, LineTable, Rule, tabulate};

/// Maximum polynomial degree on simplices.
const LARGEST: usize = 8;

/// Operations on values at the points of a rule.
pub(super) struct PointOperations {
    dim: usize,
    /// Number of points per cell, and per facet.
    pub(super) count: usize,
    pub(super) on_facet: usize,
    pub(super) weights: Vec<f64>,
    shape: CellTables,
    /// Frames of the facets, `[facet][view]`.
    frames: Vec<Vec<FacetFrame>>,
}

/// Frame of a facet in the reference cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct FacetFrame {
    /// ∂ξ/∂s and ∂ξ/∂t.
    pub(super) tangents: [[f64; 3]; 2],
    /// 1 if ∂ξ/∂s × ∂ξ/∂t points out of the cell, else −1; in the plane 1 if ∂ξ/∂s is N rotated by a right angle.
    pub(super) orientation: f64,
}

impl FacetFrame {
    fn new(views: FacetViews, cell: Cell, local: usize, view: u8) -> Self {
        let places = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|[s, t]| ([0.0, s, t], 1.0));
        let frame = views.points(local, view, &places);
        let normal = cell.facet_normal(local);
        let along = |tip: usize| [0, 1, 2].map(|c| frame[tip][c] - frame[0][c]);
        let s = if cell.dim() == 1 { [0.0, 1.0, 0.0] } else { along(1) };
        let t = if cell.dim() == 3 { along(2) } else { [0.0, 0.0, 1.0] };
        let product = [0, 1, 2].map(|a| {
            let (b, c) = ((a + 1) % 3, (a + 2) % 3);
            normal[a] * (s[b] * t[c] - s[c] * t[b])
        });
        Self { tangents: [s, t], orientation: product.iter().sum::<f64>().signum() }
    }
}

enum CellTables {
    Tensor(TensorTables),
    Simplex(SimplexTables),
}

/// Tables of a tensor cell.
struct TensorTables {
    line: LinePoints,
    q: usize,
    /// D, `[point][node]`.
    derive: Vec<f64>,
    /// Values of the nodal basis at both ends of a line.
    ends: [Vec<f64>; 2],
    /// Its values at the points of the lower and upper halves of a line.
    halves: [Vec<f64>; 2],
    /// Permutation of facet points to the facet's own grid, for each view.
    grids: Vec<Vec<usize>>,
}

/// Tables of a simplex.
struct SimplexTables {
    /// Derivative of the projection along each axis, `[point][from]`.
    derive: Vec<Vec<f64>>,
    /// Projection at the points of each facet in each view: `[facet][view]`, `[point][from]`.
    traces: Vec<Vec<Vec<f64>>>,
    /// N of each facet.
    normals: Vec<[f64; 3]>,
    /// Derivatives of the projection on a facet along each axis of its frame, `[point][from]`.
    along_facet: Vec<Vec<f64>>,
}

impl PointOperations {
    /// Builds the tables of a rule.
    pub(super) fn new(rule: Rule, views: &FacetViews) -> Self {
        let cell = rule.cell();
        let (weights, on_facet) = (rule.weights(), rule.on_facet().len());
        let shape = match rule {
            Rule::Tensor { line, .. } => CellTables::Tensor(TensorTables::new(line, views)),
            Rule::Simplex { degree, .. } => {
                CellTables::Simplex(SimplexTables::new(rule, (degree / 2).min(LARGEST), views))
            }
            Rule::Nodes(element) => {
                CellTables::Simplex(SimplexTables::new(rule, element.degree().min(LARGEST), views))
            }
        };
        let frame = |local: usize, view: usize| FacetFrame::new(*views, cell, local, view as u8);
        let of_facet = |local: usize| (0..views.count()).map(|view| frame(local, view)).collect();
        let frames = (0..cell.facets().len()).map(of_facet).collect();
        Self { dim: cell.dim(), count: weights.len(), on_facet, weights, shape, frames }
    }

    /// Returns the frame of a facet in a view.
    pub(super) fn frame(&self, local: usize, view: u8) -> &FacetFrame {
        &self.frames[local][usize::from(view)]
    }

    /// Adds a multiple of the derivative of values along an axis.
    pub(super) fn add_derivative(
        &self,
        axis: usize,
        factor: f64,
        numbers: &[f64],
        into: &mut [f64],
    ) {
        let derivative = match &self.shape {
            CellTables::Simplex(own) => applied(&own.derive[axis], self.count, 0, numbers),
            CellTables::Tensor(own) => applied(&own.derive, own.q, axis, numbers),
        };
        into.iter_mut().zip(derivative).for_each(|(to, slope)| *to += factor * slope);
    }

    /// Evaluates values at the points of a facet in a view.
    pub(super) fn at_facet(&self, local: usize, view: u8, numbers: &[f64]) -> Vec<f64> {
        match &self.shape {
            CellTables::Tensor(own) => {
                let grid = own.at_end(local, numbers);
                own.grids[usize::from(view)].iter().map(|&from| grid[from]).collect()
            }
            CellTables::Simplex(own) => {
                applied(&own.traces[local][usize::from(view)], self.count, 0, numbers)
            }
        }
    }

    /// Returns the derivative of values at the points of a facet along an axis of its frame.
    pub(super) fn along_facet(&self, axis: usize, numbers: &[f64]) -> Vec<f64> {
        match &self.shape {
            CellTables::Tensor(own) => applied(&own.derive, own.q, axis, numbers),
            CellTables::Simplex(own) => applied(&own.along_facet[axis], self.on_facet, 0, numbers),
        }
    }

    /// Subtracts the divergence of a flux, `[axis][point]`.
    pub(super) fn less_divergence(&self, flux: &[f64], into: &mut [f64]) {
        for (axis, flux) in flux.chunks_exact(self.count).enumerate() {
            match &self.shape {
                CellTables::Simplex(own) => less(&own.derive[axis], flux, into),
                CellTables::Tensor(own) => own.less_derivative(flux, axis, into),
            }
        }
    }

    /// Computes the outward flux through a facet, at the points of a view.
    pub(super) fn through(&self, local: usize, view: u8, flux: &[f64], into: &mut [f64]) {
        match &self.shape {
            CellTables::Tensor(own) => own.through(local, view, flux, into),
            CellTables::Simplex(own) => {
                into.fill(0.0);
                let matrix = &own.traces[local][usize::from(view)];
                for (axis, flux) in flux.chunks_exact(self.count).enumerate() {
                    let factor = own.normals[local][axis];
                    if factor != 0.0 {
                        less_scaled(matrix, -factor, flux, into);
                    }
                }
            }
        }
    }

    /// Interpolates values at the points of a tensor cell's facet to those of a child facet, given by its halves of the
    /// frame (bits).
    pub(super) fn of_child(&self, child: u8, numbers: &mut Vec<f64>) {
        let CellTables::Tensor(own) = &self.shape else { return };
        for axis in 0..self.dim - 1 {
            let half = &own.halves[usize::from(child >> axis & 1)];
            *numbers = applied(half, own.q, axis, numbers);
        }
    }

    /// Returns the projection onto polynomials of a degree in the rule's inner product; `None` if it is the identity.
    pub(super) fn part(&self, rule: Rule, degree: usize) -> Option<Projection> {
        match (&self.shape, rule) {
            (CellTables::Tensor(own), _) => {
                (degree + 1 < own.q).then(|| Projection::Tensor(own.q, line_part(own.line, degree)))
            }
            (CellTables::Simplex(_), Rule::Simplex { degree: exact, .. }) => {
                let degree = degree.min(exact / 2).min(LARGEST);
                let values = basis(rule.cell(), degree, &rule.points()).0;
                let fit = fitted(&values, &self.weights);
                Some(Projection::Simplex(product(&values, &fit, self.weights.len())))
            }
            (CellTables::Simplex(_), Rule::Tensor { .. } | Rule::Nodes(_)) => None,
        }
    }

    /// Returns the dimension.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }
}

/// A projection onto polynomials of a degree.
pub(super) enum Projection {
    /// Along each axis, on q points.
    Tensor(usize, Vec<f64>),
    /// A full matrix over all points.
    Simplex(Vec<f64>),
}

impl Projection {
    /// Applies the projection to values at the points, `[point]`.
    pub(super) fn take(&self, dim: usize, numbers: &mut Vec<f64>) {
        let (q, matrix) = match self {
            Self::Simplex(matrix) => (numbers.len(), matrix),
            Self::Tensor(q, matrix) => (*q, matrix),
        };
        let axes = if matches!(self, Self::Simplex(_)) { 1 } else { dim };
        for axis in 0..axes {
            *numbers = applied(matrix, q, axis, numbers);
        }
    }
}

/// Applies a matrix along an axis of a grid with q points per direction. With q numbers and axis 0 the matrix may have any
/// number of rows.
fn applied(matrix: &[f64], q: usize, axis: usize, numbers: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; numbers.len() / q * (matrix.len() / q)];
    each_line(q, axis, numbers.len(), |first, stride| {
        for (at, row) in matrix.chunks_exact(q).enumerate() {
            all[first + at * stride] = along(row, numbers, first, stride);
        }
    });
    all
}

impl TensorTables {
    fn new(line: LinePoints, views: &FacetViews) -> Self {
        let (own, ends) = (LineTable::new(line, line), LineTable::at(line, &[0.0, 1.0]));
        let q = line.count();
        let ends = [ends.values[..q].to_vec(), ends.values[q..].to_vec()];
        let half = |shift: f64| {
            let points: Vec<f64> = line.points().iter().map(|x| shift + x / 2.0).collect();
            LineTable::at(line, &points).values
        };
        let grids = (0..views.count()).map(|view| views.grid(view as u8, q)).collect();
        Self { line, q, derive: own.derivatives, ends, halves: [0.0, 0.5].map(half), grids }
    }

    fn less_derivative(&self, numbers: &[f64], axis: usize, into: &mut [f64]) {
        each_line(self.q, axis, numbers.len(), |first, stride| {
            for (at, row) in self.derive.chunks_exact(self.q).enumerate() {
                into[first + at * stride] -= along(row, numbers, first, stride);
            }
        });
    }

    fn through(&self, local: usize, view: u8, flux: &[f64], into: &mut [f64]) {
        let count = into.len() * self.q;
        let own = &flux[local / 2 * count..][..count];
        let (sign, grid) =
            (if local.is_multiple_of(2) { -1.0 } else { 1.0 }, self.at_end(local, own));
        for (to, &from) in into.iter_mut().zip(&self.grids[usize::from(view)]) {
            *to = sign * grid[from];
        }
    }

    /// Evaluates values on a facet, on the cell's own grid.
    fn at_end(&self, local: usize, numbers: &[f64]) -> Vec<f64> {
        let (axis, end) = (local / 2, &self.ends[local % 2]);
        let mut grid = Vec::with_capacity(numbers.len() / self.q);
        each_line(self.q, axis, numbers.len(), |first, stride| {
            grid.push(along(end, numbers, first, stride));
        });
        grid
    }
}

/// Calls `line` for each line of points along an axis, in the order of the other axes. The arguments are the index of
/// its first point and the stride.
fn each_line(q: usize, axis: usize, count: usize, mut line: impl FnMut(usize, usize)) {
    let stride = q.pow(axis as u32);
    for start in (0..count).step_by(stride * q) {
        (start..start + stride).for_each(|first| line(first, stride));
    }
}

/// Computes Σ factor · number along a line.
fn along(factors: &[f64], numbers: &[f64], first: usize, stride: usize) -> f64 {
    let own = numbers[first..].iter().step_by(stride);
    factors.iter().zip(own).map(|(factor, number)| factor * number).sum()
}

impl SimplexTables {
    fn new(rule: Rule, degree: usize, views: &FacetViews) -> Self {
        let (cell, weights) = (rule.cell(), rule.weights());
        let n = weights.len();
        let (values, gradients) = basis(cell, degree, &rule.points());
        let fit = fitted(&values, &weights);
        let derive = gradients.iter().map(|derivatives| product(derivatives, &fit, n)).collect();
        let locals = 0..cell.facets().len();
        let facet = rule.on_facet();
        let traces = locals.clone().map(|local| {
            let of_view = |view: usize| {
                let points = views.points(local, view as u8, &facet);
                product(&basis(cell, degree, &points).0, &fit, n)
            };
            (0..views.count()).map(of_view).collect()
        });
        let normals = locals.clone().map(|local| reference_normal(cell, local)).collect();
        let along_facet = along_facet(cell, degree, &facet);
        Self { derive, traces: traces.collect(), normals, along_facet }
    }
}

/// Returns the derivatives along the axes of a facet's frame of the projection of values at the points of its rule.
fn along_facet(cell: Cell, degree: usize, rule: &[([f64; 3], f64)]) -> Vec<Vec<f64>> {
    let facet = if cell.dim() == 3 { Cell::Triangle } else { Cell::Interval };
    let points: Vec<[f64; 3]> = rule.iter().map(|([_, s, t], _)| [*s, *t, 0.0]).collect();
    let weights: Vec<f64> = rule.iter().map(|(_, weight)| *weight).collect();
    let (values, gradients) = basis(facet, degree, &points);
    let fit = fitted(&values, &weights);
    gradients.iter().map(|derivatives| product(derivatives, &fit, weights.len())).collect()
}

/// Returns the values of a polynomial basis of a degree at some points, and its derivatives along each axis,
/// `[point][function]`.
fn basis(cell: Cell, degree: usize, points: &[[f64; 3]]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let element = Lagrange::discontinuous(cell, degree).expect("a degree that simplices have");
    let (table, dim) = (tabulate(element, points), cell.dim());
    let derivatives = (0..dim).map(|axis| {
        let entry = |at: usize| table.gradient(at / table.nodes, at % table.nodes)[axis];
        (0..points.len() * table.nodes).map(entry).collect()
    });
    (table.values.clone(), derivatives.collect())
}

/// Computes (Vᵀ W V)⁻¹ Vᵀ W, `[function][point]`, from values `[point][function]`.
fn fitted(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let (n, m) = (weights.len(), values.len() / weights.len());
    let v = |q: usize, i: usize| values[q * m + i];
    let sum = |i: usize, j: usize| (0..n).map(|q| weights[q] * v(q, i) * v(q, j)).sum::<f64>();
    let mut gram: Vec<f64> = (0..m * m).map(|at| sum(at / m, at % m)).collect();
    let mut fit: Vec<f64> = (0..m * n).map(|at| weights[at % n] * v(at % n, at / n)).collect();
    // Cholesky factorisation, and both substitutions for all columns at once.
    for j in 0..m {
        for i in j..m {
            let dot: f64 = (0..j).map(|k| gram[i * m + k] * gram[j * m + k]).sum();
            let rest = gram[i * m + j] - dot;
            gram[i * m + j] = if i == j { rest.sqrt() } else { rest / gram[j * m + j] };
        }
    }
    for q in 0..n {
        for i in 0..m {
            let dot: f64 = (0..i).map(|k| gram[i * m + k] * fit[k * n + q]).sum();
            fit[i * n + q] = (fit[i * n + q] - dot) / gram[i * m + i];
        }
        for i in (0..m).rev() {
            let dot: f64 = (i + 1..m).map(|k| gram[k * m + i] * fit[k * n + q]).sum();
            fit[i * n + q] = (fit[i * n + q] - dot) / gram[i * m + i];
        }
    }
    fit
}

/// Multiplies `[row][inner]` and `[inner][column]`.
fn product(a: &[f64], b: &[f64], columns: usize) -> Vec<f64> {
    let inner = b.len() / columns;
    let rows = a.chunks_exact(inner);
    let entry = |row: &[f64], column: usize| -> f64 {
        row.iter().enumerate().map(|(k, factor)| factor * b[k * columns + column]).sum()
    };
    rows.flat_map(|row| (0..columns).map(move |column| entry(row, column))).collect()
}

/// Computes into −= matrix · numbers.
fn less(matrix: &[f64], numbers: &[f64], into: &mut [f64]) {
    less_scaled(matrix, 1.0, numbers, into);
}

fn less_scaled(matrix: &[f64], factor: f64, numbers: &[f64], into: &mut [f64]) {
    for (to, row) in into.iter_mut().zip(matrix.chunks_exact(numbers.len())) {
        *to -= factor * row.iter().zip(numbers).map(|(a, b)| a * b).sum::<f64>();
    }
}

/// Returns the projection of values at the points of a line onto polynomials of a degree. It is orthogonal in the
/// rule's inner product and uses orthonormal polynomials (Stieltjes recurrence).
fn line_part(line: LinePoints, degree: usize) -> Vec<f64> {
    let (points, weights) = (line.points(), line.weights());
    let n = points.len();
    let dot = |a: &[f64], b: &[f64]| -> f64 { (0..n).map(|q| weights[q] * a[q] * b[q]).sum() };
    let mut all: Vec<Vec<f64>> = Vec::new();
    for power in 0..=degree.min(n - 1) {
        let mut next: Vec<f64> = match all.last() {
            None => vec![1.0; n],
            Some(last) => last.iter().zip(&points).map(|(p, x)| p * (x - 0.5)).collect(),
        };
        // Twice: rounding error grows with the degree.
        for _ in 0..2 {
            for known in &all[..power] {
                let share = dot(known, &next);
                next.iter_mut().zip(known).for_each(|(p, k)| *p -= share * k);
            }
        }
        let length = dot(&next, &next).sqrt();
        all.push(next.into_iter().map(|p| p / length).collect());
    }
    let entry = |at: usize, from: usize| -> f64 {
        all.iter().map(|p| p[at] * p[from] * weights[from]).sum()
    };
    (0..n * n).map(|at| entry(at / n, at % n)).collect()
}
