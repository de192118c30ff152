//! Random well-typed forms as text, for comparing kernels with the reference.
//!
//! The same seed and options always give the same text. Values stay finite and moderate where
//! fields, gradients, data and coordinates do (magnitudes up to about 2): roots, logarithms and
//! denominators are kept away from zero.
//!
//! ```
//! use fem_dsl::testing::{Options, random_form};
//!
//! let text = random_form(7, &Options { dim: 2, ..Options::default() });
//! assert!(text.starts_with("form random_7 {"));
//! assert_eq!(text, random_form(7, &Options { dim: 2, ..Options::default() }));
//! ```

use crate::format::{format, same_pieces};
use crate::source::Source;
use std::fmt::Write;

/// The formatted text, which is what formatting it again gives.
///
/// # Panics
///
/// If the text has errors, or formatting changes its tokens or its own result.
pub fn formatted(text: &str) -> String {
    let source = Source::new("test.wf", text);
    let once = format(&source).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    assert!(same_pieces(text, &once), "{text}\n{once}");
    assert_eq!(format(&Source::new("test.wf", once.as_str())).as_ref(), Ok(&once), "{text}");
    once
}

/// The shape of the random form's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// One number.
    Scalar,
    /// dim numbers.
    Vector,
    /// n numbers, 1 to 64.
    VectorOf(usize),
    /// dim × dim numbers.
    Tensor,
}

/// A second field of a random form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its shape.
    pub shape: FieldShape,
    /// Its degree: that of the form and so much more.
    pub offset: i32,
}

/// What a random form may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Space dimension, 2 or 3.
    pub dim: usize,
    /// The field.
    pub shape: FieldShape,
    /// A second field, `v`.
    pub other: Option<Other>,
    /// Whether the form is affine in the field.
    pub linear: bool,
    /// Auxiliary data on nodes, cells and points.
    pub aux: bool,
    /// Parameters.
    pub params: bool,
    /// |a|, min, max and `if`, at whose kinks derivatives jump: rounding can decide on the side.
    pub kinks: bool,
    /// How deep expressions nest, 0 and up; 3 gives a few dozen operations.
    pub depth: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dim: 3,
            shape: FieldShape::Scalar,
            other: None,
            linear: false,
            aux: true,
            params: true,
            kinks: false,
            depth: 3,
        }
    }
}

/// The text of a form `random_SEED` with a field `u`, both rows, and what `options` allow: a second field `v`, aux
/// `a` (scalar on nodes), `b` (vector on nodes), `c` (scalar on cells), `q` (scalar on points),
/// params `p` (scalar) and `r` (vector).
pub fn random_form(seed: u64, options: &Options) -> String {
    let mut generator = Generator { random: Random(seed), options: *options, uses_u: true };
    let mut text = format!("form random_{seed} {{\n");
    let mut line = |content: &str| writeln!(text, "    {content}").expect("a string takes text");
    line(&format!("field u: {};", options.shape.text()));
    if let Some(Other { shape, offset }) = options.other {
        let degree = match offset {
            0 => "k".to_owned(),
            1.. => format!("k + {offset}"),
            _ => format!("k - {}", -offset),
        };
        line(&format!("field v: {} in H1({degree});", shape.text()));
    }
    if options.aux {
        line("aux a: scalar on nodes;");
        line("aux b: vector on nodes;");
        line("aux c: scalar on cells;");
        line("aux q: scalar on points;");
    }
    if options.params {
        line(&format!("param p = {};", generator.number()));
        let components: Vec<String> = (0..options.dim).map(|_| generator.number()).collect();
        line(&format!("param r: vector = [{}];", components.join(", ")));
    }
    generator.uses_u = !options.linear;
    let shared = generator.scalar(options.depth);
    line(&format!("let w = {shared};"));
    line(&format!("f0[u] = {};", generator.row0("u", options.shape)));
    line(&format!("f1[u] = {};", generator.row1("u", options.shape)));
    if let Some(Other { shape, .. }) = options.other {
        line(&format!("f0[v] = {};", generator.row0("v", shape)));
        line(&format!("f1[v] = {};", generator.row1("v", shape)));
    }
    text.push_str("}\n");
    text
}

impl FieldShape {
    fn text(self) -> String {
        match self {
            Self::Scalar => "scalar".to_owned(),
            Self::Vector => "vector".to_owned(),
            Self::VectorOf(n) => format!("vector({n})"),
            Self::Tensor => "tensor".to_owned(),
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

struct Generator {
    random: Random,
    options: Options,
    /// Whether the field may stand in the expression that is being made.
    uses_u: bool,
}

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn pick<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.below(items.len())]
    }

    /// A number from 0.25 to 2, short.
    fn number(&mut self) -> String {
        let quarters = 1 + self.below(8);
        format!("{}", quarters as f64 / 4.0)
    }

    fn index(&mut self, n: usize) -> usize {
        self.below(n)
    }

    /// A scalar of a field or its gradient.
    fn field_scalar(&mut self) -> String {
        let other = self.options.other.filter(|_| self.below(2) == 0);
        let (name, shape) = other.map_or(("u", self.options.shape), |other| ("v", other.shape));
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
            (FieldShape::Tensor, false) => format!("{name}[{i}, {j}]"),
            (FieldShape::Tensor, true) => format!("grad({name})[{i}, {j}, {k}]"),
        }
    }

    fn leaf(&mut self) -> String {
        let i = self.index(self.options.dim);
        match self.below(8) {
            0..=2 if self.uses_u => self.field_scalar(),
            3 if self.options.params => {
                let r = format!("r[{i}]");
                self.pick(&["p", &r]).to_owned()
            }
            4 | 5 if self.options.aux => {
                let (b, gradient) = (format!("b[{i}]"), format!("grad(a)[{i}]"));
                self.pick(&["a", "c", "q", "div(b)", &b, &gradient]).to_owned()
            }
            6 => format!("x[{i}]"),
            7 => self.pick(&["h", "t", "1 / k"]).to_owned(),
            _ => self.number(),
        }
    }

    /// A scalar.
    fn scalar(&mut self, depth: usize) -> String {
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

    /// A vector of dim components.
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
        match self.below(5) {
            0 | 1 if self.uses_u && self.options.shape == FieldShape::Scalar => {
                "grad(u)".to_owned()
            }
            0 | 1 if self.uses_u && self.options.shape == FieldShape::Vector => "u".to_owned(),
            2 if self.options.aux => self.pick(&["b", "grad(a)"]).to_owned(),
            3 if self.options.params => "r".to_owned(),
            4 => {
                let items: Vec<String> = (0..dim).map(|_| self.leaf()).collect();
                format!("[{}]", items.join(", "))
            }
            _ => "x".to_owned(),
        }
    }

    /// A dim × dim matrix.
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
                    // Diagonally dominant, so that it can be inverted.
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
        match (self.options.shape, self.below(3)) {
            (FieldShape::Vector, 0 | 1) if self.uses_u => "grad(u)".to_owned(),
            (FieldShape::Tensor, 0 | 1) if self.uses_u => "u".to_owned(),
            (_, 2) if self.options.aux => "grad(b)".to_owned(),
            _ => "I".to_owned(),
        }
    }

    /// Components of at most 1/2.
    fn bounded(&mut self) -> String {
        let items: Vec<String> =
            (0..self.options.dim).map(|_| format!("sin({}) / 2", self.leaf())).collect();
        items.join(", ")
    }

    /// Of the shape of a field.
    fn row0(&mut self, name: &str, shape: FieldShape) -> String {
        let depth = self.options.depth;
        let free = match shape {
            FieldShape::Scalar => self.scalar(depth),
            FieldShape::Vector => self.vector(depth),
            FieldShape::VectorOf(n) => {
                let items: Vec<String> = (0..n).map(|_| self.scalar(depth.min(2))).collect();
                format!("[{}]", items.join(", "))
            }
            FieldShape::Tensor => self.matrix(depth),
        };
        let factor = self.scalar(depth);
        format!("{free} + w * {factor} * {name}")
    }

    /// Of the shape of a field's gradient.
    fn row1(&mut self, name: &str, shape: FieldShape) -> String {
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
            FieldShape::Tensor => {
                format!(
                    "{} * grad({name}) + outer({}, {})",
                    self.number(),
                    self.matrix(1),
                    self.vector(1)
                )
            }
        };
        format!("{free} + (w + {factor}) * grad({name})")
    }

    /// A matrix that may stand before the gradient in an affine form too.
    fn matrix_without_u(&mut self, depth: usize) -> String {
        let before = std::mem::replace(&mut self.uses_u, false);
        let matrix = self.matrix(depth);
        self.uses_u = before;
        format!("({matrix})")
    }
}
