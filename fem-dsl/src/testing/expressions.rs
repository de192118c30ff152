//! Random expressions in the fields, data and parameters of a form.

use super::lines::Lines;
use super::{FieldShape, Options, Random};

/// Generator of expressions as text.
pub(super) struct Generator {
    pub(super) random: Random,
    pub(super) options: Options,
    /// The fields with their names.
    pub(super) fields: Vec<(&'static str, FieldShape)>,
    /// The field in vectors and matrices.
    pub(super) main: usize,
    /// True if the current expression may contain fields.
    pub(super) uses_u: bool,
    /// True if it may contain data at points.
    pub(super) points: bool,
    /// True if it may contain the normal.
    pub(super) normal: bool,
}

impl Generator {
    /// Declares data, parameters and a name for a number; `vector` is the declaration of the vector at nodes.
    pub(super) fn declare_data(&mut self, lines: &mut Lines, vector: &str) {
        lines.push(1, "aux a: scalar on nodes in H1(1);");
        lines.push(1, &format!("aux b: {vector};"));
        lines.push(1, "aux c: scalar on cells;");
        let number = self.number();
        lines.push(1, &format!("param p = {number};"));
        let components: Vec<String> = (0..self.options.dim).map(|_| self.number()).collect();
        lines.push(1, &format!("param r: vector = [{}];", components.join(", ")));
        let shared = self.scalar(1);
        lines.push(1, &format!("let w = {shared};"));
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    pub(super) fn pick<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.below(items.len())]
    }

    /// Returns a number from 0.25 to 2, short.
    pub(super) fn number(&mut self) -> String {
        let quarters = 1 + self.below(8);
        format!("{}", quarters as f64 / 4.0)
    }

    fn index(&mut self, n: usize) -> usize {
        self.below(n)
    }

    /// Returns a scalar of a field or its gradient.
    fn field_scalar(&mut self) -> String {
        let last = self.fields.len() - 1;
        let number = if last == 0 { 0 } else { last - self.below(last + 1) };
        let (name, shape) = self.fields[number];
        let dim = self.options.dim;
        let (i, j, k) = (self.index(dim), self.index(dim), self.index(dim));
        let gradient = self.below(2) == 0;
        match (shape, gradient) {
            (FieldShape::Scalar, false) => name.to_owned(),
            (FieldShape::Scalar, true) => format!("grad({name})[{i}]"),
            (FieldShape::Vector, false) => format!("{name}[{i}]"),
            (FieldShape::Vector, true) => format!("grad({name})[{i}, {j}]"),
            (FieldShape::VectorOf(n), false) => format!("{name}[{}]", self.index(n)),
            (FieldShape::VectorOf(n), true) => format!("grad({name})[{}, {j}]", self.index(n)),
            (FieldShape::Curl | FieldShape::Div, false) => format!("{name}[{i}]"),
            (FieldShape::Curl, true) if dim == 2 => format!("curl({name})"),
            (FieldShape::Curl, true) => format!("curl({name})[{i}]"),
            (FieldShape::Div, true) => format!("div({name})"),
            (FieldShape::Tensor, false) => format!("{name}[{i}, {j}]"),
            (FieldShape::Tensor, true) => format!("grad({name})[{i}, {j}, {k}]"),
        }
    }

    fn leaf(&mut self) -> String {
        let i = self.index(self.options.dim);
        if self.normal && self.below(4) == 0 {
            return format!("n[{i}]");
        }
        match self.below(8) {
            0..=2 if self.uses_u => self.field_scalar(),
            3 if self.options.params => {
                let r = format!("r[{i}]");
                self.pick(&["p", &r]).to_owned()
            }
            4 | 5 if self.options.aux => {
                let (b, gradient) = (format!("b[{i}]"), format!("grad(a)[{i}]"));
                let all = ["q", "a", "c", "div(b)", &b, &gradient];
                self.pick(if self.points { &all } else { &all[1..] }).to_owned()
            }
            6 => format!("x[{i}]"),
            7 => self.pick(&["h", "t", "1 / k"]).to_owned(),
            _ => self.number(),
        }
    }

    /// Returns a scalar.
    pub(super) fn scalar(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let next = depth - 1;
        let kinds = if self.options.kinks { 15 } else { 12 };
        match self.below(kinds) {
            0 | 1 => {
                let op = self.pick(&["+", "-"]);
                format!("({} {op} {})", self.scalar(next), self.scalar(next))
            }
            2 | 3 => format!("{} * {}", self.scalar(next), self.scalar(next)),
            4 => {
                let function = self.pick(&["sin", "cos", "tanh", "atan"]);
                format!("{function}({})", self.scalar(next))
            }
            5 => format!("sqrt(1 + ({})^2)", self.scalar(next)),
            6 => format!("{} / (2 + cos({}))", self.scalar(next), self.scalar(next)),
            7 => format!("log(2 + sin({}))", self.scalar(next)),
            8 => format!("exp(-({})^2)", self.scalar(next)),
            9 => format!("dot({}, {})", self.vector(next), self.vector(next)),
            10 => {
                let power = self.pick(&["2", "3", "-2", "1.5", "-0.5"]);
                format!("(2 + sin({}))^{power}", self.scalar(next))
            }
            11 => {
                let function = self.pick(&["tr", "det"]);
                format!("{function}({}) / 2", self.matrix(next))
            }
            12 => format!("abs({})", self.scalar(next)),
            13 => {
                let function = self.pick(&["min", "max"]);
                format!("{function}({}, {})", self.scalar(next), self.scalar(next))
            }
            _ => {
                let condition = format!("{} < {}", self.leaf(), self.leaf());
                let (a, b) = (self.scalar(next), self.scalar(next));
                format!("(if {condition} {{ {a} }} else {{ {b} }})")
            }
        }
    }

    /// Returns a vector of dim components.
    fn vector(&mut self, depth: usize) -> String {
        let dim = self.options.dim;
        if depth > 0 {
            let next = depth - 1;
            match self.below(6) {
                0 | 1 => return format!("{} * {}", self.scalar(next), self.vector(next)),
                2 => return format!("({} - {})", self.vector(next), self.vector(next)),
                3 => return format!("{} * {}", self.matrix(next), self.vector(next)),
                4 if dim == 3 => {
                    return format!("cross({}, {})", self.vector(next), self.vector(next));
                }
                _ => {}
            }
        }
        if self.normal && self.below(3) == 0 {
            return "n".to_owned();
        }
        let (name, shape) = self.fields[self.main];
        match self.below(5) {
            0 | 1 if self.uses_u && shape == FieldShape::Scalar => format!("grad({name})"),
            0 | 1 if self.uses_u && shape == FieldShape::Vector => name.to_owned(),
            0 | 1 if self.uses_u && shape.is_mapped() => name.to_owned(),
            2 if self.options.aux => self.pick(&["b", "grad(a)"]).to_owned(),
            3 if self.options.params => "r".to_owned(),
            4 => {
                let items: Vec<String> = (0..dim).map(|_| self.leaf()).collect();
                format!("[{}]", items.join(", "))
            }
            _ => "x".to_owned(),
        }
    }

    /// Returns a dim × dim matrix.
    fn matrix(&mut self, depth: usize) -> String {
        if depth > 0 {
            let next = depth - 1;
            match self.below(7) {
                0 => return format!("{} * {}", self.scalar(next), self.matrix(next)),
                1 => return format!("({} + {})", self.matrix(next), self.matrix(next)),
                2 => {
                    let function = self.pick(&["sym", "skew", "dev", "transpose", "cof"]);
                    return format!("{function}({})", self.matrix(next));
                }
                3 => return format!("outer({}, {})", self.vector(next), self.vector(next)),
                4 => return format!("{} * {}", self.matrix(next), self.matrix(next)),
                5 => {
                    // Diagonally dominant, so that it is invertible.
                    let part = self.scalar(next);
                    return format!(
                        "inv(3 * I + tanh({part}) * outer([{}], [{}]))",
                        self.bounded(),
                        self.bounded()
                    );
                }
                _ => {}
            }
        }
        let (name, shape) = self.fields[self.main];
        match (shape, self.below(3)) {
            (FieldShape::Vector, 0 | 1) if self.uses_u => format!("grad({name})"),
            (FieldShape::Tensor, 0 | 1) if self.uses_u => name.to_owned(),
            (_, 2) if self.options.aux => "grad(b)".to_owned(),
            _ => "I".to_owned(),
        }
    }

    /// Returns an expression with components of at most 1/2.
    fn bounded(&mut self) -> String {
        let items: Vec<String> =
            (0..self.options.dim).map(|_| format!("sin({}) / 2", self.leaf())).collect();
        items.join(", ")
    }

    /// Returns an expression with the shape of a field.
    pub(super) fn row0(&mut self, name: &str, shape: FieldShape) -> String {
        let depth = self.options.depth;
        let free = match shape {
            FieldShape::Scalar => self.scalar(depth),
            FieldShape::Vector | FieldShape::Curl | FieldShape::Div => self.vector(depth),
            FieldShape::VectorOf(n) => {
                let items: Vec<String> = (0..n).map(|_| self.scalar(depth.min(2))).collect();
                format!("[{}]", items.join(", "))
            }
            FieldShape::Tensor => self.matrix(depth),
        };
        let factor = self.scalar(depth);
        format!("{free} + w * {factor} * {name}")
    }

    /// Returns an expression with the shape of a field's gradient, or of the curl or divergence that a space has instead.
    pub(super) fn row1(&mut self, name: &str, shape: FieldShape) -> String {
        let depth = self.options.depth;
        let factor = self.scalar(depth);
        let dim = self.options.dim;
        let free = match shape {
            FieldShape::Scalar => {
                format!("{} + {} * grad({name})", self.vector(depth), self.matrix_without_u(depth))
            }
            FieldShape::Vector => format!(
                "{} + {} * tr(grad({name})) * I + {} * sym(grad({name}))",
                self.matrix(depth),
                self.scalar(1),
                self.number()
            ),
            FieldShape::VectorOf(n) => {
                let rows: Vec<String> = (0..n)
                    .map(|_| {
                        let row: Vec<String> = (0..dim).map(|_| self.leaf()).collect();
                        format!("[{}]", row.join(", "))
                    })
                    .collect();
                format!("[{}] + grad({name}) * {}", rows.join(", "), self.matrix_without_u(1))
            }
            FieldShape::Curl if dim == 3 => self.vector(depth),
            FieldShape::Curl | FieldShape::Div => self.scalar(depth),
            FieldShape::Tensor => {
                format!(
                    "{} * grad({name}) + outer({}, {})",
                    self.number(),
                    self.matrix(1),
                    self.vector(1)
                )
            }
        };
        let derivative = match shape {
            FieldShape::Curl => "curl",
            FieldShape::Div => "div",
            _ => "grad",
        };
        format!("{free} + (w + {factor}) * {derivative}({name})")
    }

    /// Returns a matrix that may multiply the gradient in an affine form, too.
    fn matrix_without_u(&mut self, depth: usize) -> String {
        let before = std::mem::replace(&mut self.uses_u, false);
        let matrix = self.matrix(depth);
        self.uses_u = before;
        format!("({matrix})")
    }
}
