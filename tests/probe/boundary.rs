//! Integrals over a curved domain by the divergence theorem: ∫_Ω p dx = ∮ P n₀ ds with ∂P/∂x₀ = p.
//!
//! The boundary is read from the Gmsh file (format 4.1, text) independently of the cells' geometry: each facet is a
//! polynomial patch through its nodes. On a patch s ↦ x(s), n₀ ds is ∂y/∂s in the plane and ∂y/∂s ∂z/∂t − ∂z/∂s ∂y/∂t
//! in space; all of it is polynomial, and a Gauss rule of the degree integrates it exactly. Cells only determine the
//! side of a facet on which the domain lies.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::polynomial::Polynomial;

/// Points of the Gauss rule in each direction of a patch: exact to degree 31.
const POINTS: usize = 16;

type Point = [f64; 3];

/// The boundary of a mesh.
pub(crate) struct Boundary {
    patches: Vec<Patch>,
}

/// A facet: its nodes in Gmsh's order, the side of the domain, and the functions of its nodes.
struct Patch {
    shape: Shape,
    nodes: Vec<Point>,
    sign: f64,
    basis: Rc<Basis>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Line,
    Triangle,
    Square,
}

/// Gmsh's type numbers of facets, with their order, and of cells.
const FACETS: [(u32, Shape, usize); 9] = [
    (1, Shape::Line, 1),
    (8, Shape::Line, 2),
    (26, Shape::Line, 3),
    (2, Shape::Triangle, 1),
    (9, Shape::Triangle, 2),
    (21, Shape::Triangle, 3),
    (3, Shape::Square, 1),
    (10, Shape::Square, 2),
    (36, Shape::Square, 3),
];
const CELLS: [(u32, usize); 12] = [
    (2, 3),
    (9, 3),
    (21, 3),
    (3, 4),
    (10, 4),
    (36, 4),
    (4, 4),
    (11, 4),
    (29, 4),
    (5, 8),
    (12, 8),
    (92, 8),
];

impl Boundary {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the mesh should be readable");
        let points = nodes(&text);
        let blocks = elements(&text);
        let dim = blocks.iter().map(|block| block.dim).max().expect("elements");
        let corners: Vec<Vec<usize>> = blocks
            .iter()
            .filter(|block| block.dim == dim)
            .flat_map(|block| {
                let of =
                    CELLS.iter().find(|(kind, _)| *kind == block.kind).expect("a kind of cell");
                block.nodes.iter().map(|nodes| nodes[..of.1].to_vec())
            })
            .collect();
        let mut patches = Vec::new();
        for block in blocks.iter().filter(|block| block.dim + 1 == dim) {
            let (_, shape, order) =
                *FACETS.iter().find(|(kind, ..)| *kind == block.kind).expect("a kind of facet");
            let basis = Rc::new(Basis::new(shape, order));
            for facet in &block.nodes {
                let nodes: Vec<Point> = facet.iter().map(|node| points[node]).collect();
                assert_eq!(nodes.len(), reference(shape, order).len());
                let own = &facet[..shape.corners()];
                let cell = corners.iter().find(|cell| own.iter().all(|node| cell.contains(node)));
                let inside =
                    mean(cell.expect("a cell at the facet").iter().map(|node| points[node]));
                let sign = side(shape, &nodes, inside);
                patches.push(Patch { shape, nodes, sign, basis: Rc::clone(&basis) });
            }
        }
        Self { patches }
    }

    /// Returns ∫ p over the domain, from P(x) = ∫ p from 0 to x₀; each coordinate has at most degree 8 in `p`.
    pub(crate) fn integral(&self, p: &Polynomial) -> f64 {
        let primitive = p.primitive();
        self.flux(|x| primitive.at(x))
    }

    /// ∮ f n₀ ds.
    pub(crate) fn flux(&self, f: impl Fn(Point) -> f64) -> f64 {
        let of = |patch: &Patch| patch.sign * patch.flux(&f);
        self.patches.iter().map(of).sum()
    }
}

impl Shape {
    fn corners(self) -> usize {
        match self {
            Self::Line => 2,
            Self::Triangle => 3,
            Self::Square => 4,
        }
    }
}

impl Patch {
    fn flux(&self, f: &impl Fn(Point) -> f64) -> f64 {
        let of = |(weight, basis): &(f64, Vec<[f64; 3]>)| {
            let mut map = [[0.0; 3]; 3];
            for (node, values) in self.nodes.iter().zip(basis) {
                for (row, value) in map.iter_mut().zip(values) {
                    row.iter_mut().zip(node).for_each(|(sum, x)| *sum += value * x);
                }
            }
            let [x, ds, dt] = map;
            let normal = match self.shape {
                Shape::Line => ds[1],
                _ => ds[1] * dt[2] - ds[2] * dt[1],
            };
            weight * f(x) * normal
        };
        self.basis.points.iter().map(of).sum()
    }
}

/// Returns the points of the reference facet, with their weights.
fn rule(shape: Shape) -> Vec<(f64, [f64; 2])> {
    let line = gauss(POINTS);
    let across = |&(s, w): &(f64, f64)| -> Vec<(f64, [f64; 2])> {
        let of = |&(t, v): &(f64, f64)| match shape {
            Shape::Line => unreachable!("it has no second direction"),
            // Collapsed onto the triangle s + t ≤ 1.
            Shape::Triangle => (w * v * (1.0 - s), [s, t * (1.0 - s)]),
            Shape::Square => (w * v, [s, t]),
        };
        line.iter().map(of).collect()
    };
    match shape {
        Shape::Line => line.iter().map(|&(s, w)| (w, [s, 0.0])).collect(),
        _ => line.iter().flat_map(across).collect(),
    }
}

/// Returns 1 if the patch's own normal (∂y/∂s, −∂x/∂s), or ∂x/∂s × ∂x/∂t, points away from `inside`, else −1.
fn side(shape: Shape, nodes: &[Point], inside: Point) -> f64 {
    let [a, b] = [nodes[0], nodes[1]];
    let minus = |p: Point, q: Point| [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
    let s = minus(b, a);
    let normal = match shape {
        Shape::Line => [s[1], -s[0], 0.0],
        _ => {
            let t = minus(nodes[shape.corners() - 1], a);
            [s[1] * t[2] - s[2] * t[1], s[2] * t[0] - s[0] * t[2], s[0] * t[1] - s[1] * t[0]]
        }
    };
    let away = minus(mean(nodes[..shape.corners()].iter().copied()), inside);
    (0..3).map(|i| normal[i] * away[i]).sum::<f64>().signum()
}

fn mean(points: impl Iterator<Item = Point>) -> Point {
    let (sum, count) = points.fold(([0.0; 3], 0.0), |(sum, count), p| {
        ([sum[0] + p[0], sum[1] + p[1], sum[2] + p[2]], count + 1.0)
    });
    sum.map(|c| c / count)
}

/// Returns Gmsh's reference nodes on [0, 1]: corners, then side by side, then interior.
fn reference(shape: Shape, order: usize) -> Vec<[f64; 2]> {
    let h = 1.0 / order as f64;
    let corners: &[[f64; 2]] = match shape {
        Shape::Line => &[[0.0, 0.0], [1.0, 0.0]],
        Shape::Triangle => &[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        Shape::Square => &[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]],
    };
    let mut nodes = corners.to_vec();
    let sides = if shape == Shape::Line { 1 } else { corners.len() };
    for side in 0..sides {
        let (a, b) = (corners[side], corners[(side + 1) % corners.len()]);
        nodes.extend((1..order).map(|i| {
            let t = i as f64 * h;
            [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])]
        }));
    }
    match (shape, order) {
        (Shape::Triangle, 3) => nodes.push([h, h]),
        (Shape::Square, 2) => nodes.push([h, h]),
        (Shape::Square, 3) => {
            nodes.extend([[h, h], [2.0 * h, h], [2.0 * h, 2.0 * h], [h, 2.0 * h]]);
        }
        _ => {}
    }
    nodes
}

/// The Lagrange basis on the reference nodes, by the inverse of its Vandermonde matrix.
struct Basis {
    /// Each point's weight, and the value, ∂/∂s and ∂/∂t of each node's function at the point.
    points: Vec<(f64, Vec<[f64; 3]>)>,
}

impl Basis {
    fn new(shape: Shape, order: usize) -> Self {
        let nodes = reference(shape, order);
        let order = order as i32;
        let exponents: Vec<[i32; 2]> = match shape {
            Shape::Line => (0..=order).map(|a| [a, 0]).collect(),
            Shape::Triangle => {
                (0..=order).flat_map(|a| (0..=order - a).map(move |b| [a, b])).collect()
            }
            Shape::Square => (0..=order).flat_map(|a| (0..=order).map(move |b| [a, b])).collect(),
        };
        let matrix = nodes.iter().map(|node| {
            exponents.iter().map(|e| node[0].powi(e[0]) * node[1].powi(e[1])).collect()
        });
        // Column m of the inverse maps nodal values to the coefficient of a monomial.
        let coefficients: Vec<Vec<f64>> = inverse(matrix.collect());
        let slope = |e: i32, x: f64| if e == 0 { 0.0 } else { f64::from(e) * x.powi(e - 1) };
        let at = |(weight, [s, t]): (f64, [f64; 2])| {
            let mut values = vec![[0.0; 3]; nodes.len()];
            for (e, coefficients) in exponents.iter().zip(&coefficients) {
                let monomial = [
                    s.powi(e[0]) * t.powi(e[1]),
                    slope(e[0], s) * t.powi(e[1]),
                    s.powi(e[0]) * slope(e[1], t),
                ];
                for (values, coefficient) in values.iter_mut().zip(coefficients) {
                    values.iter_mut().zip(monomial).for_each(|(sum, m)| *sum += coefficient * m);
                }
            }
            (weight, values)
        };
        Self { points: rule(shape).into_iter().map(at).collect() }
    }
}

/// Computes A⁻¹ by elimination with pivoting.
fn inverse(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
    }
    for column in 0..n {
        let size = |row: &usize| a[*row][column].abs();
        let pivot = (column..n).max_by(|i, j| size(i).total_cmp(&size(j))).expect("a row");
        a.swap(column, pivot);
        let scale = a[column][column];
        a[column].iter_mut().for_each(|value| *value /= scale);
        let pivot = a[column].clone();
        for (_, row) in a.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = row[column];
            row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}

/// Gauss points and weights on [0, 1], by Newton's method on the Legendre polynomial.
pub(crate) fn gauss(n: usize) -> Vec<(f64, f64)> {
    let legendre = |x: f64| {
        let (mut p, mut q) = (1.0, x);
        for k in 2..=n {
            let k = k as f64;
            (p, q) = (q, ((2.0 * k - 1.0) * x * q - (k - 1.0) * p) / k);
        }
        (q, n as f64 * (x * q - p) / (x * x - 1.0))
    };
    let point = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        for _ in 0..100 {
            let (value, slope) = legendre(x);
            x -= value / slope;
        }
        let slope = legendre(x).1;
        ((1.0 + x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..n).map(point).collect()
}

/// Elements of one kind.
struct Block {
    dim: usize,
    kind: u32,
    nodes: Vec<Vec<usize>>,
}

fn section<'a>(text: &'a str, name: &str) -> impl Iterator<Item = Vec<f64>> + 'a {
    let begin = text.find(&format!("${name}\n")).expect("a section") + name.len() + 2;
    let end = begin + text[begin..].find("$End").expect("the section's end");
    text[begin..end]
        .lines()
        .map(|line| line.split_whitespace().map(|word| word.parse().expect("a number")).collect())
}

fn nodes(text: &str) -> BTreeMap<usize, Point> {
    let mut lines = section(text, "Nodes");
    let blocks = lines.next().expect("a head")[0] as usize;
    let mut points = BTreeMap::new();
    for _ in 0..blocks {
        let head = lines.next().expect("a block");
        let tags: Vec<usize> =
            (0..head[3] as usize).map(|_| lines.next().expect("a tag")[0] as usize).collect();
        for tag in tags {
            let x = lines.next().expect("a point");
            points.insert(tag, [x[0], x[1], x[2]]);
        }
    }
    points
}

fn elements(text: &str) -> Vec<Block> {
    let mut lines = section(text, "Elements");
    let blocks = lines.next().expect("a head")[0] as usize;
    let block = |_| {
        let head = lines.next().expect("a block");
        let nodes = (0..head[3] as usize)
            .map(|_| lines.next().expect("an element")[1..].iter().map(|&n| n as usize).collect())
            .collect();
        Block { dim: head[0] as usize, kind: head[2] as u32, nodes }
    };
    (0..blocks).map(block).collect()
}
