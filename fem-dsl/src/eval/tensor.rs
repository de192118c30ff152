//! A form's tensor expressions at one point, component by component.

use crate::arithmetic;
use crate::form::{Expr, ExprId, Exprs, MatrixFunction, Terminal};
use std::collections::BTreeMap;

/// The components of expressions, row-major.
pub type TensorValues = BTreeMap<ExprId, Vec<f64>>;

/// Evaluates the expressions on which `roots` depend, at one point; `terminal` supplies the components of a terminal. A
/// truth value counts as 1 or 0.
pub fn tensors(
    exprs: &Exprs,
    roots: &[ExprId],
    mut terminal: impl FnMut(Terminal) -> Vec<f64>,
) -> TensorValues {
    let mut values = TensorValues::new();
    for id in exprs.reachable_in_order(roots) {
        let value = match *exprs.expr(id) {
            Expr::Terminal(which) => terminal(which),
            ref expr => operation(exprs, &values, expr),
        };
        debug_assert_eq!(value.len(), exprs.shape(id).components(), "{id} in its shape");
        values.insert(id, value);
    }
    values
}

fn truth(value: bool) -> Vec<f64> {
    vec![f64::from(u8::from(value))]
}

fn operation(exprs: &Exprs, values: &TensorValues, expr: &Expr) -> Vec<f64> {
    let v = |a: ExprId| values[&a].as_slice();
    let map = |a: ExprId, f: &dyn Fn(f64) -> f64| v(a).iter().map(|&a| f(a)).collect();
    let zip = |a: ExprId, b: ExprId, f: &dyn Fn(f64, f64) -> f64| {
        v(a).iter().zip(v(b)).map(|(&a, &b)| f(a, b)).collect()
    };
    match *expr {
        Expr::Constant(number) => vec![number.get()],
        Expr::Zero(shape) => vec![0.0; shape.components()],
        Expr::Identity(n) => identity(n),
        Expr::Terminal(_) => unreachable!("terminals are given by the caller"),
        Expr::Literal(_, ref components) => components.iter().map(|&c| v(c)[0]).collect(),
        Expr::Component(a, flat) => vec![v(a)[flat]],
        Expr::Neg(a) => map(a, &|a| -a),
        Expr::Add(a, b) => zip(a, b, &|a, b| a + b),
        Expr::Sub(a, b) => zip(a, b, &|a, b| a - b),
        Expr::Mul(s, a) => map(a, &|a| v(s)[0] * a),
        Expr::Div(a, s) => map(a, &|a| a / v(s)[0]),
        Expr::Dot(a, b) => {
            let inner = exprs.shape(b).extent(0);
            product(v(a), v(b), inner)
        }
        Expr::Inner(a, b) => vec![inner(v(a), v(b))],
        Expr::Norm(a) => vec![inner(v(a), v(a)).sqrt()],
        Expr::Outer(a, b) => product(v(a), v(b), 1),
        Expr::Cross(a, b) => cross(v(a), v(b)).to_vec(),
        Expr::TensorCross(a, b) => tensor_cross(v(a), v(b)),
        Expr::Matrix(function, a) => {
            let shape = exprs.shape(a);
            matrix(function, v(a), shape.extent(0), shape.extent(1))
        }
        Expr::Unary(function, a) => vec![arithmetic::unary(function, v(a)[0])],
        Expr::Binary(function, a, b) => vec![arithmetic::binary(function, v(a)[0], v(b)[0])],
        Expr::Powi(a, n) => vec![arithmetic::powi(v(a)[0], n)],
        Expr::Compare(comparison, a, b) => truth(arithmetic::compare(comparison, v(a)[0], v(b)[0])),
        Expr::And(a, b) => truth(v(a)[0] != 0.0 && v(b)[0] != 0.0),
        Expr::Or(a, b) => truth(v(a)[0] != 0.0 || v(b)[0] != 0.0),
        Expr::Not(a) => truth(v(a)[0] == 0.0),
        Expr::Select(c, a, b) => if v(c)[0] == 0.0 { v(b) } else { v(a) }.to_vec(),
    }
}

fn identity(n: usize) -> Vec<f64> {
    (0..n * n).map(|flat| if flat / n == flat % n { 1.0 } else { 0.0 }).collect()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes a (rows × n) times b (n × columns).
fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let (rows, columns) = (a.len() / n, b.len() / n);
    let entry = |i: usize, j: usize| (0..n).map(|m| a[i * n + m] * b[m * columns + j]).sum();
    (0..rows * columns).map(|flat| entry(flat / columns, flat % columns)).collect()
}

fn cross(a: &[f64], b: &[f64]) -> [f64; 3] {
    [0, 1, 2].map(|i| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        a[j] * b[k] - a[k] * b[j]
    })
}

/// Computes ε_ikl ε_jmn A_km B_ln.
fn tensor_cross(a: &[f64], b: &[f64]) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        let ((k, l), (m, n)) = (((i + 1) % 3, (i + 2) % 3), ((j + 1) % 3, (j + 2) % 3));
        let minor = |k: usize, l: usize, m: usize, n: usize| {
            a[3 * k + m] * b[3 * l + n] - a[3 * k + n] * b[3 * l + m]
        };
        minor(k, l, m, n) - minor(l, k, m, n)
    };
    (0..9).map(|flat| entry(flat / 3, flat % 3)).collect()
}

fn transpose(a: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..a.len()).map(|flat| a[(flat % rows) * columns + flat / rows]).collect()
}

fn cofactor(a: &[f64], n: usize) -> Vec<f64> {
    match n {
        1 => vec![1.0],
        2 => vec![a[3], -a[2], -a[1], a[0]],
        _ => tensor_cross(a, a).into_iter().map(|entry| entry / 2.0).collect(),
    }
}

fn matrix(function: MatrixFunction, a: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let n = rows;
    let trace = || (0..n).map(|i| a[i * n + i]).sum::<f64>();
    // Along the first row.
    let determinant = || inner(&a[..n], &cofactor(a, n)[..n]);
    let combine =
        |sign: f64| a.iter().zip(transpose(a, n, n)).map(|(a, b)| (a + sign * b) / 2.0).collect();
    match function {
        MatrixFunction::Trace => vec![trace()],
        MatrixFunction::Determinant => vec![determinant()],
        MatrixFunction::Inverse => {
            let adjugate = transpose(&cofactor(a, n), n, n);
            adjugate.into_iter().map(|entry| entry / determinant()).collect()
        }
        MatrixFunction::Cofactor => cofactor(a, n),
        MatrixFunction::Sym => combine(1.0),
        MatrixFunction::Skew => combine(-1.0),
        #[expect(clippy::cast_precision_loss, reason = "a matrix size")]
        MatrixFunction::Dev => {
            let mean = trace() / n as f64;
            a.iter().zip(identity(n)).map(|(a, one)| a - mean * one).collect()
        }
        MatrixFunction::Transpose => transpose(a, rows, columns),
    }
}
