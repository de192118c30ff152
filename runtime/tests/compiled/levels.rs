//! Levels of factors common to CPU kernels and kernels for thread groups.

use super::launch::Shape;
use fem_dsl::point::PointForm;
use fem_dsl::source::Source;
use fem_dsl::testing::{FieldShape, Options, SecondField, random_form};
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, LinePoints, Rule, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Geometry, Linearisation, Task, largest_degree};

/// Choice of the quadrature points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Points {
    /// The default: p + 1 Gauss points per direction, or exact to degree 2p.
    Default,
    /// One more per direction.
    Finer,
    /// Three more.
    Finest,
    /// p + 1 Gauss–Lobatto points per direction: the nodes.
    Collocated,
    /// p + 2 Gauss–Lobatto points per direction.
    Lobatto,
}

pub(crate) const POINTS: [Points; 5] =
    [Points::Default, Points::Finer, Points::Finest, Points::Collocated, Points::Lobatto];

pub(crate) const SHAPES: [Shape; 4] =
    [Shape::Affine, Shape::Multilinear, Shape::Curved(2), Shape::Curved(3)];

/// The tasks, and the origin of the u-dependent part.
pub(crate) const TASKS: [(Task, Linearisation); 5] = [
    (Task::Residual, Linearisation::Recompute),
    (Task::Action, Linearisation::Recompute),
    (Task::Action, Linearisation::Stored),
    (Task::Diagonal, Linearisation::Recompute),
    (Task::Flux, Linearisation::Recompute),
];

pub(crate) const PRECISIONS: [Precision; 2] = [Precision::F64, Precision::F32];

/// Origin of the cell map in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    /// Cell data.
    Direct,
    /// Data at the quadrature points.
    Stored,
    /// Gathered corner coordinates.
    Corners,
}

pub(crate) const MAPS: [Map; 3] = [Map::Direct, Map::Stored, Map::Corners];

impl Map {
    /// Returns the geometry for a cell shape.
    pub(crate) fn geometry(self, shape: Shape) -> Geometry {
        match self {
            Self::Direct => shape.direct(),
            Self::Stored => Geometry::Stored,
            Self::Corners => Geometry::Corners,
        }
    }
}

/// Returns the reason against a case for any plan.
pub(crate) fn against(
    rule: Option<Rule>,
    cell: Cell,
    geometry: Geometry,
    shape: Shape,
) -> Vec<String> {
    let straight = shape == Shape::Multilinear && !cell.is_tensor();
    let curved = geometry == Geometry::Corners && shape.order() > 1;
    let against = [
        (rule.is_none(), "Gauss-Lobatto points need a tensor cell"),
        (curved, "a curved cell is not its corners"),
        (straight, "a simplex with straight sides is affine: that shape stands for it"),
    ];
    against.into_iter().filter(|(holds, _)| *holds).map(|(_, why)| why.to_owned()).collect()
}

/// Cells with all degrees up to the largest, or with selected ones up to 8 on tensor cells.
pub(crate) fn cells(full: bool) -> Vec<(Cell, usize)> {
    let cells = [Cell::Triangle, Cell::Quadrilateral, Cell::Tetrahedron, Cell::Hexahedron];
    let cells = cells.into_iter().flat_map(|cell| {
        let most = if full { largest_degree(cell) } else { largest_degree(cell).min(8) };
        // Of the higher degrees, which differ by their tables, even and odd ones.
        let some = move |degree: &usize| full || !cell.is_tensor() || ![5, 7].contains(degree);
        (1..=most).filter(some).map(move |degree| (cell, degree))
    });
    cells.collect()
}

/// Forms in two and three dimensions, one with each of [`OTHERS`], for queries of support.
pub(crate) fn plain() -> [Vec<PointForm>; 2] {
    [2, 3].map(|dim| {
        let of = |&other: &Option<SecondField>| {
            let options = Options { dim, other, depth: 0, ..Options::default() };
            form(&random_form(0, &options), "random_0", dim)
        };
        OTHERS.iter().map(of).collect()
    })
}

pub(crate) const INDICES: [Indices; 3] = [Indices::Nodes, Indices::Runs, Indices::Dofs];

pub(crate) const FIELDS: [FieldShape; 4] =
    [FieldShape::Scalar, FieldShape::Vector, FieldShape::VectorOf(2), FieldShape::Tensor];

/// The second field: none, a pressure, one of the same space, and one of higher degree.
pub(crate) const OTHERS: [Option<SecondField>; 4] = [
    None,
    Some(SecondField { shape: FieldShape::Scalar, offset: -1 }),
    Some(SecondField { shape: FieldShape::Vector, offset: 0 }),
    Some(SecondField { shape: FieldShape::Scalar, offset: 1 }),
];

/// Returns the number of components of all fields.
pub(crate) fn components(options: &Options) -> usize {
    let of = |shape: FieldShape| match shape {
        FieldShape::Scalar => 1,
        FieldShape::Vector | FieldShape::Curl | FieldShape::Div => options.dim,
        FieldShape::VectorOf(n) => n,
        FieldShape::Tensor => options.dim * options.dim,
    };
    of(options.shape) + options.other.map_or(0, |other| of(other.shape))
}

/// Functions and operators that random forms may lack; `s` is at most 1/2, and away from kinks.
pub(crate) const FUNCTIONS: &str = "form functions_NUMBER {
    field u: scalar;
    aux a: scalar on nodes;
    aux c: scalar on cells;
    param p = 1.5;
    let s = 0.5 * tanh(u + a);
    fn blend(b, d) = if b < d && !(b == p) || d >= 2 * p { b * d } else { (b - d) / p };
    f0[u] = sqrt(2 + s) + exp(s) + log(2 + s) + sin(s) + cos(u) + tan(s) + asin(s) + acos(s)
        + atan(u) + atan2(s, 2 + u^2) + sinh(s) + cosh(s) + abs(s) + sign(s) + min(s, c)
        + max(u, p) + (2 + s)^p + 2^-s + (1 + u^2)^-1.5 + u^5 + s^-2 + blend(u, a) * blend(c, u);
    f1[u] = norm(grad(u)) * grad(u) + (if u <= a || u != c { s } else { c }) * grad(a)
        + (if u > a { 1 / (3 + u) } else { exp(-c * u) }) * grad(u);
}";

/// Options with smaller expressions for more components, so that compilation takes seconds instead of minutes.
pub(crate) fn options(
    dim: usize,
    shape: FieldShape,
    other: Option<SecondField>,
    [linear, aux, params, kinks]: [bool; 4],
) -> Options {
    let depth: usize = match (shape, dim) {
        (FieldShape::Scalar, 2) => 3,
        (FieldShape::Scalar, _) => 2,
        (FieldShape::Tensor, 3) => 0,
        _ => 1,
    };
    let shape = match shape {
        FieldShape::VectorOf(_) => FieldShape::VectorOf(5 - dim),
        other => other,
    };
    let depth = depth.saturating_sub(usize::from(other.is_some()));
    Options { dim, shape, other, linear, aux, params, kinks, depth }
}

/// Returns the rule; `None` if there are no such points.
pub(crate) fn rule(cell: Cell, degree: usize, shape: Shape, points: Points) -> Option<Rule> {
    if cell.is_tensor() {
        let line = match points {
            Points::Default => LinePoints::Gauss(degree + 1),
            Points::Finer => LinePoints::Gauss(degree + 2),
            Points::Finest => LinePoints::Gauss(degree + 4),
            Points::Collocated => LinePoints::GaussLobatto(degree + 1),
            Points::Lobatto => LinePoints::GaussLobatto(degree + 2),
        };
        return Some(Rule::Tensor { cell, line });
    }
    let more = match points {
        Points::Default => 0,
        Points::Finer => 1,
        Points::Finest => 5,
        Points::Collocated | Points::Lobatto => return None,
    };
    match default_rule(cell, degree, shape.order(), None) {
        Rule::Simplex { cell, degree } => Some(Rule::Simplex { cell, degree: degree + more }),
        other => Some(other),
    }
}

/// Parses a form.
pub(crate) fn form(text: &str, name: &str, dim: usize) -> PointForm {
    let (program, found) = fem_dsl::program::compile(&Source::new(name, text));
    let program = program.unwrap_or_else(|| panic!("{text}\n{found:?}"));
    program.point_form(name, dim).unwrap_or_else(|found| panic!("{text}\n{found:?}"))
}
