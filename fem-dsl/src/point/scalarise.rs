//! Tensors to scalars: each expression of a [`Form`] as one node per component.

use super::scalars::Scalars;
use super::{Input, NodeId, Part, Slot, Unary};
use crate::form::{Expr, ExprId, Form, MatrixFunction, Shape, Terminal};
use std::collections::BTreeMap;

/// Returns the components of the expressions on which `roots` depend, row-major.
pub(crate) fn scalarise(
    scalars: &mut Scalars,
    form: &Form,
    roots: &[ExprId],
) -> BTreeMap<ExprId, Vec<NodeId>> {
    let mut nodes: BTreeMap<ExprId, Vec<NodeId>> = BTreeMap::new();
    for id in form.exprs.reachable_in_order(roots) {
        let components = match *form.exprs.expr(id) {
            Expr::Terminal(terminal) => terminal_nodes(scalars, form, terminal),
            ref expr => operation(scalars, form, &nodes, expr),
        };
        nodes.insert(id, components);
    }
    nodes
}

fn terminal_nodes(scalars: &mut Scalars, form: &Form, terminal: Terminal) -> Vec<NodeId> {
    // s u + r
    let sum = |scalars: &mut Scalars, (field, order, side), gradient: bool| {
        let rate = form.rate(field, order).expect("checked forms declare their time derivatives");
        let (u, r) = match gradient {
            false => (Terminal::Field(field, side), Terminal::Aux(rate.aux, side)),
            true => (Terminal::FieldGradient(field, side), Terminal::AuxGradient(rate.aux, side)),
        };
        let [u, r] = [u, r].map(|terminal| terminal_nodes(scalars, form, terminal));
        let s = scalars.input(Input::Param(rate.param, 0));
        let pairs: Vec<(NodeId, NodeId)> = u.into_iter().zip(r).collect();
        let of = |(u, r)| {
            let change = scalars.mul(s, u);
            scalars.add(change, r)
        };
        pairs.into_iter().map(of).collect::<Vec<_>>()
    };
    match terminal {
        Terminal::Rate(field, order, side) => return sum(scalars, (field, order, side), false),
        Terminal::RateGradient(field, order, side) => {
            return sum(scalars, (field, order, side), true);
        }
        Terminal::Penalty(field, side) => {
            let factor = scalars.input(Input::PenaltyFactor(field));
            let extent = scalars.input(Input::Extent(side.unwrap_or_default()));
            return vec![scalars.div(factor, extent)];
        }
        _ => {}
    }
    let shape = form.shape_of(terminal).unwrap_or(Shape::SCALAR);
    let side = terminal.side().unwrap_or_default();
    let input = |flat: usize| {
        let slot = |field, order| {
            let (component, part) = Part::of_flat(form.space_of(terminal), flat, order, form.dim);
            Slot { field, side, component, part }
        };
        let value = |field| slot(field, 0);
        let derivative = |field| slot(field, 1);
        let second = |field| slot(field, 2);
        match terminal {
            Terminal::Field(i, _) => Input::State(value(i)),
            Terminal::FieldGradient(i, _) => Input::State(derivative(i)),
            Terminal::FieldHessian(i, _) => Input::State(second(i)),
            Terminal::Rate(..) | Terminal::RateGradient(..) | Terminal::Penalty(..) => {
                unreachable!("a function of others")
            }
            // Test functions do not occur in f0, f1 and f2.
            Terminal::Test(..) | Terminal::TestGradient(..) | Terminal::TestHessian(..) => {
                unreachable!("verified forms have no test functions")
            }
            Terminal::Direction(i, _) => Input::Direction(value(i)),
            Terminal::DirectionGradient(i, _) => Input::Direction(derivative(i)),
            Terminal::DirectionHessian(i, _) => Input::Direction(second(i)),
            Terminal::Aux(i, _) => Input::Aux(value(i)),
            Terminal::AuxGradient(i, _) => Input::Aux(derivative(i)),
            Terminal::Param(i) => Input::Param(i, flat),
            Terminal::Coordinates => Input::Coordinate(flat),
            Terminal::Normal => Input::Normal(flat),
            Terminal::Time => Input::Time,
            Terminal::Diameter(_) => Input::Diameter(side),
            Terminal::Extent(_) => Input::Extent(side),
            Terminal::Degree => Input::Degree,
        }
    };
    (0..shape.components()).map(|flat| scalars.input(input(flat))).collect()
}

fn operation(
    s: &mut Scalars,
    form: &Form,
    nodes: &BTreeMap<ExprId, Vec<NodeId>>,
    expr: &Expr,
) -> Vec<NodeId> {
    let of = |a: ExprId| nodes[&a].as_slice();
    let pairs = |a: ExprId, b: ExprId| of(a).iter().copied().zip(of(b).iter().copied());
    let shape = |a: ExprId| form.exprs.shape(a);
    match *expr {
        Expr::Constant(number) => vec![s.constant(number.get())],
        Expr::Zero(shape) => vec![s.constant(0.0); shape.components()],
        Expr::Identity(n) => (0..n * n)
            .map(|flat| s.constant(if flat / n == flat % n { 1.0 } else { 0.0 }))
            .collect(),
        Expr::Terminal(_) => unreachable!("terminals have inputs of their own"),
        Expr::Literal(_, ref components) => components.iter().map(|&c| of(c)[0]).collect(),
        Expr::Component(a, flat) => vec![of(a)[flat]],
        Expr::Neg(a) => of(a).iter().map(|&a| s.neg(a)).collect(),
        Expr::Add(a, b) => pairs(a, b).map(|(a, b)| s.add(a, b)).collect(),
        Expr::Sub(a, b) => pairs(a, b).map(|(a, b)| s.sub(a, b)).collect(),
        Expr::Mul(factor, a) => of(a).iter().map(|&a| s.mul(of(factor)[0], a)).collect(),
        Expr::Div(a, divisor) => of(a).iter().map(|&a| s.div(a, of(divisor)[0])).collect(),
        Expr::Dot(a, b) => product(s, of(a), of(b), shape(b).extent(0)),
        Expr::Inner(a, b) => vec![inner(s, of(a), of(b))],
        Expr::Norm(a) => {
            let square = inner(s, of(a), of(a));
            vec![s.unary(Unary::Sqrt, square)]
        }
        Expr::Outer(a, b) => product(s, of(a), of(b), 1),
        Expr::Cross(a, b) => {
            (0..3).map(|i| minor(s, of(a), of(b), 1, [0, 0], [(i + 1) % 3, (i + 2) % 3])).collect()
        }
        Expr::TensorCross(a, b) => (0..9).map(|flat| tensor_cross(s, of(a), of(b), flat)).collect(),
        Expr::Matrix(function, a) => matrix(s, function, of(a), shape(a)),
        Expr::Unary(function, a) => vec![s.unary(function, of(a)[0])],
        Expr::Binary(function, a, b) => vec![s.binary(function, of(a)[0], of(b)[0])],
        Expr::Powi(a, n) => vec![s.powi(of(a)[0], n)],
        Expr::Compare(comparison, a, b) => vec![s.compare(comparison, of(a)[0], of(b)[0])],
        Expr::And(a, b) => vec![s.and(of(a)[0], of(b)[0])],
        Expr::Or(a, b) => vec![s.or(of(a)[0], of(b)[0])],
        Expr::Not(a) => vec![s.not(of(a)[0])],
        Expr::Select(c, a, b) => pairs(a, b).map(|(a, b)| s.select(of(c)[0], a, b)).collect(),
    }
}

fn inner(s: &mut Scalars, a: &[NodeId], b: &[NodeId]) -> NodeId {
    let terms: Vec<NodeId> = a.iter().zip(b).map(|(&a, &b)| s.mul(a, b)).collect();
    sum(s, &terms)
}

/// Computes Σ terms; equal terms are counted, not added.
fn sum(s: &mut Scalars, terms: &[NodeId]) -> NodeId {
    let mut counted: Vec<(NodeId, f64)> = Vec::with_capacity(terms.len());
    for &term in terms {
        match counted.iter_mut().find(|(other, _)| *other == term) {
            Some((_, count)) => *count += 1.0,
            None => counted.push((term, 1.0)),
        }
    }
    let zero = s.constant(0.0);
    counted.into_iter().fold(zero, |sum, (term, count)| {
        let count = s.constant(count);
        let term = s.mul(count, term);
        s.add(sum, term)
    })
}

/// Computes a (rows × n) times b (n × columns).
fn product(s: &mut Scalars, a: &[NodeId], b: &[NodeId], n: usize) -> Vec<NodeId> {
    let (rows, columns) = (a.len() / n, b.len() / n);
    let mut entries = Vec::with_capacity(rows * columns);
    for flat in 0..rows * columns {
        let (i, j) = (flat / columns, flat % columns);
        let terms: Vec<NodeId> = (0..n).map(|m| s.mul(a[i * n + m], b[m * columns + j])).collect();
        entries.push(sum(s, &terms));
    }
    entries
}

/// Computes `a[k] b[l] − a[l] b[k]` for the rows k, l of two arrays of rows of length `width`, at the columns m of a's
/// and n of b's first product.
fn minor(
    s: &mut Scalars,
    a: &[NodeId],
    b: &[NodeId],
    width: usize,
    [m, n]: [usize; 2],
    [k, l]: [usize; 2],
) -> NodeId {
    let left = s.mul(a[width * k + m], b[width * l + n]);
    let right = s.mul(a[width * l + m], b[width * k + n]);
    s.sub(left, right)
}

/// Computes a component of ε_ikl ε_jmn A_km B_ln.
fn tensor_cross(s: &mut Scalars, a: &[NodeId], b: &[NodeId], flat: usize) -> NodeId {
    let (i, j) = (flat / 3, flat % 3);
    let (rows, [m, n]) = ([(i + 1) % 3, (i + 2) % 3], [(j + 1) % 3, (j + 2) % 3]);
    let left = minor(s, a, b, 3, [m, n], rows);
    let right = minor(s, a, b, 3, [n, m], rows);
    s.sub(left, right)
}

fn cofactor(s: &mut Scalars, a: &[NodeId], n: usize) -> Vec<NodeId> {
    match n {
        1 => vec![s.constant(1.0)],
        2 => {
            let (b, c) = (s.neg(a[2]), s.neg(a[1]));
            vec![a[3], b, c, a[0]]
        }
        _ => (0..9)
            .map(|flat| {
                let (i, j) = (flat / 3, flat % 3);
                let (rows, columns) = ([(i + 1) % 3, (i + 2) % 3], [(j + 1) % 3, (j + 2) % 3]);
                minor(s, a, a, 3, columns, rows)
            })
            .collect(),
    }
}

fn transpose(a: &[NodeId], rows: usize, columns: usize) -> Vec<NodeId> {
    (0..a.len()).map(|flat| a[(flat % rows) * columns + flat / rows]).collect()
}

fn matrix(s: &mut Scalars, function: MatrixFunction, a: &[NodeId], shape: Shape) -> Vec<NodeId> {
    let n = shape.extent(0);
    let transposed = transpose(a, n, shape.extent(1));
    let trace = |s: &mut Scalars| {
        let diagonal: Vec<NodeId> = (0..n).map(|i| a[i * n + i]).collect();
        sum(s, &diagonal)
    };
    let half = |s: &mut Scalars, a: NodeId| {
        let half = s.constant(0.5);
        s.mul(half, a)
    };
    match function {
        MatrixFunction::Transpose => transposed,
        MatrixFunction::Trace => vec![trace(s)],
        // Expansion along the first row, whose cofactors `cof` and `inv` share.
        MatrixFunction::Determinant => {
            let cofactor = cofactor(s, a, n);
            vec![inner(s, &a[..n], &cofactor[..n])]
        }
        MatrixFunction::Cofactor => cofactor(s, a, n),
        MatrixFunction::Inverse => {
            let cofactor = cofactor(s, a, n);
            let determinant = inner(s, &a[..n], &cofactor[..n]);
            let adjugate = transpose(&cofactor, n, n);
            adjugate.into_iter().map(|entry| s.div(entry, determinant)).collect()
        }
        MatrixFunction::Sym => a
            .iter()
            .zip(transposed)
            .map(|(&a, b)| {
                let sum = s.add(a, b);
                half(s, sum)
            })
            .collect(),
        MatrixFunction::Skew => a
            .iter()
            .zip(transposed)
            .map(|(&a, b)| {
                let difference = s.sub(a, b);
                half(s, difference)
            })
            .collect(),
        MatrixFunction::Dev => {
            #[expect(clippy::cast_precision_loss, reason = "a matrix size")]
            let part = s.constant(1.0 / n as f64);
            let trace = trace(s);
            let mean = s.mul(part, trace);
            (0..n * n)
                .map(|flat| if flat / n == flat % n { s.sub(a[flat], mean) } else { a[flat] })
                .collect()
        }
    }
}
