//! Forms that together use every input and every kind of coupling.

use fem_dsl::differentiate::differentiate;
use fem_dsl::form::{ExprId, Exprs, Form, Integral, MatrixFunction, Row, Shape, Terminal};
use fem_dsl::point::{
    self, Aux, Degree, Field, Location, Param, PointForm, Region, Side, Space, Unary,
};
use fem_dsl::source::Source;
use std::collections::BTreeMap;

const SCALAR: point::Shape = point::Shape::Scalar;

/// Expression builder with short names; all shapes are correct by construction.
struct Maker {
    dim: usize,
    field: point::Shape,
    exprs: Exprs,
    aux: Vec<Aux>,
    params: Vec<Param>,
    defaults: Vec<ExprId>,
}

impl Maker {
    fn new(dim: usize, field: point::Shape) -> Self {
        let (exprs, aux) = (Exprs::new(), Vec::new());
        Self { dim, field, exprs, aux, params: Vec::new(), defaults: Vec::new() }
    }

    fn u(&mut self) -> ExprId {
        self.exprs.terminal(Terminal::Field(0, None), self.field.into())
    }

    fn grad_u(&mut self) -> ExprId {
        let shape = Shape::from(self.field).raised(self.dim).expect("a gradient");
        self.exprs.terminal(Terminal::FieldGradient(0, None), shape)
    }

    fn x(&mut self) -> ExprId {
        self.exprs.terminal(Terminal::Coordinates, Shape::vector(self.dim))
    }

    fn number(&mut self, value: f64) -> ExprId {
        self.exprs.constant(value)
    }

    fn scalar(&mut self, terminal: Terminal) -> ExprId {
        self.exprs.terminal(terminal, Shape::SCALAR)
    }

    fn param(&mut self, name: &str, shape: point::Shape) -> ExprId {
        let value: Vec<f64> = (0..shape.components()).map(|i| 0.7 + 0.4 * i as f64).collect();
        let entries: Vec<ExprId> = value.iter().map(|&v| self.exprs.constant(v)).collect();
        let default = match shape {
            point::Shape::Scalar => entries[0],
            _ => self.exprs.literal(shape.into(), entries).expect("one entry a component"),
        };
        self.params.push(Param { name: name.to_owned(), shape, value });
        self.defaults.push(default);
        self.exprs.terminal(Terminal::Param(self.params.len() - 1), shape.into())
    }

    fn aux(&mut self, name: &str, shape: point::Shape, location: Location) -> ExprId {
        self.aux.push(Aux { name: name.to_owned(), shape, location });
        self.exprs.terminal(Terminal::Aux(self.aux.len() - 1, None), shape.into())
    }

    fn add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.exprs.add(a, b).expect("equal shapes")
    }

    fn mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.exprs.mul(a, b).expect("shapes that multiply")
    }

    fn div(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.exprs.div(a, b).expect("a scalar divisor")
    }

    fn dot(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.exprs.dot(a, b).expect("vectors")
    }

    fn unary(&mut self, function: Unary, a: ExprId) -> ExprId {
        self.exprs.unary(function, a).expect("a scalar")
    }

    fn matrix(&mut self, function: MatrixFunction, a: ExprId) -> ExprId {
        self.exprs.matrix(function, a).expect("a square matrix")
    }

    fn finish(self, name: &str, f0: Option<ExprId>, f1: Option<ExprId>) -> PointForm {
        let rows = vec![Row { f0, f1, ..Row::empty(0, Side::Inside) }];
        let (action, energy) = (Vec::new(), None);
        let form = Form {
            name: name.to_owned(),
            doc: String::new(),
            source: format!("form {name}"),
            dim: self.dim,
            fields: vec![Field {
                name: "u".to_owned(),
                shape: self.field,
                space: Space::H1(Degree::Relative(0)),
                cells: Vec::new(),
            }],
            aux: self.aux,
            params: self.params,
            rates: Vec::new(),
            defaults: self.defaults,
            exprs: self.exprs,
            names: BTreeMap::new(),
            integrals: vec![Integral { region: Region::Cells, rows, action, energy }],
        };
        point::point(&differentiate(&form))
    }
}

/// Returns the form f0 = u.
fn mass(dim: usize) -> PointForm {
    let mut m = Maker::new(dim, SCALAR);
    let u = m.u();
    m.finish("mass", Some(u), None)
}

/// Returns the form f0 = −f, f1 = grad(u) / (0.05 + 2 x·x).
pub(crate) fn poisson(dim: usize) -> PointForm {
    let mut m = Maker::new(dim, SCALAR);
    let (x, grad_u, f) = (m.x(), m.grad_u(), m.param("f", SCALAR));
    let (small, two) = (m.number(0.05), m.number(2.0));
    let square = m.dot(x, x);
    let square = m.mul(two, square);
    let denominator = m.add(small, square);
    let f1 = m.div(grad_u, denominator);
    let f0 = m.exprs.neg(f).expect("a scalar");
    m.finish("poisson", Some(f0), Some(f1))
}

/// Returns the form f0 = u + a·grad(u), f1 = (1 + u²) grad(u), with a parameter a.
pub(crate) fn nonlinear_diffusion(dim: usize) -> PointForm {
    let mut m = Maker::new(dim, SCALAR);
    let (u, grad_u, a) = (m.u(), m.grad_u(), m.param("a", point::Shape::Vector(dim)));
    let advection = m.dot(a, grad_u);
    let f0 = m.add(u, advection);
    let (one, square) = (m.number(1.0), m.mul(u, u));
    let kappa = m.add(one, square);
    let f1 = m.mul(kappa, grad_u);
    m.finish("nonlinear_diffusion", Some(f0), Some(f1))
}

/// Returns the form f1 = grad(u) / sqrt(1 + |grad(u)|²).
fn minimal_surface(dim: usize) -> PointForm {
    let mut m = Maker::new(dim, SCALAR);
    let (grad_u, one) = (m.grad_u(), m.number(1.0));
    let square = m.dot(grad_u, grad_u);
    let sum = m.add(one, square);
    let root = m.unary(Unary::Sqrt, sum);
    let f1 = m.div(grad_u, root);
    m.finish("minimal_surface", None, Some(f1))
}

/// Returns the form f0 = −g, f1 = λ tr(ε) I + 2 μ ε, with λ and μ on cells.
fn elasticity(dim: usize) -> PointForm {
    let vector = point::Shape::Vector(dim);
    let mut m = Maker::new(dim, vector);
    let lambda = m.aux("lambda", SCALAR, Location::Cells);
    let mu = m.aux("mu", SCALAR, Location::Cells);
    let gravity = m.param("gravity", vector);
    let grad_u = m.grad_u();
    let eps = m.matrix(MatrixFunction::Sym, grad_u);
    let trace = m.matrix(MatrixFunction::Trace, eps);
    let identity = m.exprs.identity(dim);
    let volumetric = m.mul(lambda, trace);
    let volumetric = m.mul(volumetric, identity);
    let two = m.number(2.0);
    let two_mu = m.mul(two, mu);
    let deviatoric = m.mul(two_mu, eps);
    let f1 = m.add(volumetric, deviatoric);
    let f0 = m.exprs.neg(gravity).expect("a vector");
    m.finish("elasticity", Some(f0), Some(f1))
}

/// Returns a form with all other inputs: data on nodes with its gradient, data at points, t, h and k.
fn everything(dim: usize) -> PointForm {
    let mut m = Maker::new(dim, SCALAR);
    let a = m.aux("a", SCALAR, Location::Nodes(Space::H1(Degree::Fixed(1))));
    let b = m.aux("b", SCALAR, Location::Points);
    let v = m.aux("v", point::Shape::Vector(dim), Location::Nodes(Space::H1(Degree::Relative(0))));
    let grad_a = m.exprs.terminal(Terminal::AuxGradient(0, None), Shape::vector(dim));
    let (t, h, k) =
        (m.scalar(Terminal::Time), m.scalar(Terminal::Diameter(None)), m.scalar(Terminal::Degree));
    let (u, grad_u) = (m.u(), m.grad_u());
    let exp = m.unary(Unary::Exp, a);
    let sin = m.unary(Unary::Sin, u);
    let f0 = [m.mul(exp, u), m.mul(b, sin), m.mul(t, h), m.dot(v, grad_u), k]
        .into_iter()
        .reduce(|sum, term| m.exprs.add(sum, term).expect("scalars"));
    let flow = m.mul(u, grad_a);
    let flux = m.mul(b, grad_u);
    let f1 = m.add(flow, flux);
    m.finish("everything", f0, Some(f1))
}

/// Returns a tensor field with a conditional: f0 = u − uᵀ where u₀₀ < 0.3, else u; f1 absent.
fn tensor(dim: usize) -> PointForm {
    let mut m = Maker::new(dim, point::Shape::Matrix(dim, dim));
    let u = m.u();
    let transposed = m.matrix(MatrixFunction::Transpose, u);
    let two = m.number(2.0);
    let double = m.mul(two, transposed);
    let sum = m.add(u, double);
    m.finish("tensor", Some(sum), None)
}

/// Forms with several fields: one or two degrees, rows of values and of gradients, and a field with a zero diagonal
/// block.
const MIXED: [&str; 6] = [
    "form stokes {
        field u: vector in H1(k);
        field p: scalar in H1(k - 1);
        param nu = 0.8;
        f1[u] = nu * grad(u) - p * I;
        f0[p] = -div(u);
    }",
    "form phases {
        field c: scalar;
        field w: scalar;
        aux old: scalar on nodes;
        param rate = 0.3;
        f0[c] = c^3 - c - w;
        f1[c] = 0.1 * grad(c);
        f0[w] = c - old;
        f1[w] = rate * (1 + c^2) * grad(w);
    }",
    "form flow {
        field s: scalar in H1(k + 1);
        field v: vector;
        field q: vector(2) in H1(1);
        f0[v] = grad(v) * v + s * grad(s) + q[0] * v;
        f1[v] = outer(v, grad(s)) + grad(v);
        f0[q] = [dot(v, v), q[1] + s];
        f1[s] = (2 + sin(q[0])) * grad(s) + v;
    }",
    // Discontinuous pressures; for k = 1 they are constant in each cell, without gradients.
    "form flow_jumps {
        field u: vector in H1(k);
        field p: scalar in L2(k - 1);
        aux a: scalar on nodes in L2(k - 1);
        f0[u] = a * u + grad(p) + grad(a);
        f1[u] = (1 + p^2) * grad(u) - p * I;
        f0[p] = p^3 - div(u);
        f1[p] = u + (2 + a) * grad(p);
    }",
    "form jumps_first {
        field s: scalar in L2(k + 1);
        field v: vector in H1(k);
        field c: vector(2) in L2(0);
        f0[s] = s + dot(grad(s), v) - c[0];
        f1[s] = (1 + s^2) * grad(s) + v;
        f0[v] = grad(s) + c[1] * v;
        f0[c] = [c[0] + s, c[1]^3 + div(v)];
        f1[c] = outer(c, v);
    }",
    "form alone { field u: vector in L2(k); aux a: scalar; f0[u] = a * u; f1[u] = dot(u, x) * grad(u) + sym(grad(u)) + grad(a)[0] * I; }",
];

/// Forms with a discontinuous field and discontinuous data.
const PROJECTIONS: [&str; 2] = [
    "form constants { field u: scalar in L2(k - 1); aux a: scalar on nodes in H1(k); f0[u] = u - a; f1[u] = grad(u) + grad(a); }",
    "form project { field u: scalar in L2(k); aux a: scalar on nodes in L2(0); f0[u] = u^3 - a; f1[u] = a * grad(u); }",
];

fn from_text(text: &str, dim: usize) -> PointForm {
    let (program, found) = fem_dsl::program::compile(&Source::new("form", text));
    let program = program.unwrap_or_else(|| panic!("{text}\n{found:?}"));
    let name = text.split(' ').nth(1).expect("a name");
    program.point_form(name, dim).unwrap_or_else(|found| panic!("{text}\n{found:?}"))
}

/// Returns a boundary integral with two fields, one of them discontinuous, and data.
pub(crate) fn on_boundary(dim: usize) -> PointForm {
    let text = "form wall {
        field u: scalar;
        field p: scalar in L2(k - 1);
        aux a: scalar on nodes;
        on boundary \"wall\" {
            f0[u] = u^3 + a * dot(grad(u), n) + p + penalty(u) * u / 10;
            f1[u] = (1 + u^2) * grad(u) + x;
            f0[p] = p / hn + u * a + penalty(p) * hn;
        }
    }";
    let mut form = from_text(text, dim);
    form.integrals.retain(|integral| !integral.region.is_of_cells());
    assert_eq!(form.integrals.len(), 1, "an integral over the boundary alone");
    form
}

/// Returns the forms with several fields.
pub(crate) fn mixed(dim: usize) -> Vec<PointForm> {
    MIXED.iter().map(|text| from_text(text, dim)).collect()
}

/// Returns all forms.
pub(crate) fn all(dim: usize) -> Vec<PointForm> {
    let makers =
        [mass, poisson, nonlinear_diffusion, minimal_surface, elasticity, everything, tensor];
    let alone = PROJECTIONS.iter().map(|text| from_text(text, dim));
    makers.into_iter().map(|make| make(dim)).chain(mixed(dim)).chain(alone).collect()
}
