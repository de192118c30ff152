//! Arithmetic on complex numbers: expressions of the real and imaginary parts of operands → those of the result.

use crate::arena::IndexVec;
use crate::ast::{Argument, BinaryOp, Expr, ExprId, ExprKind, Ident, UnaryOp};
use crate::source::Span;

/// The test functions in a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tests(u8);

impl Tests {
    pub(super) const NONE: Self = Self(0);
    /// A test function of a complex field. Its conjugate is 2.
    pub(super) const PLAIN: Self = Self(1);
    /// A test function of a real field.
    pub(super) const REAL: Self = Self(4);
    /// A test function of a real field, times a complex number.
    pub(super) const REAL_TIMES_COMPLEX: Self = Self(8);

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns those of the conjugate value.
    fn conjugate(self) -> Self {
        let swapped = (self.0 & 1) << 1 | (self.0 & 2) >> 1;
        Self(self.0 & !3 | swapped)
    }

    /// Returns those of the real or imaginary part of a value, which is linear over real numbers only.
    fn of_part(self) -> Self {
        let complex = if self.0 & 3 == 0 { 0 } else { 3 };
        let real = if self.0 & 12 == 0 { 0 } else { 4 };
        Self(complex | real)
    }
}

/// The parts of a value; `None` is zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Value {
    pub(super) re: Option<ExprId>,
    pub(super) im: Option<ExprId>,
    pub(super) tests: Tests,
}

impl Value {
    pub(super) fn real(id: ExprId) -> Self {
        Self { re: Some(id), im: None, tests: Tests::NONE }
    }

    pub(super) fn is_real(self) -> bool {
        self.im.is_none()
    }

    pub(super) fn conjugate_tests(self) -> Self {
        Self { tests: self.tests.conjugate(), ..self }
    }
}

/// The expressions of a file, to which those of parts are added; all get the location of the value.
pub(super) struct Parts<'a> {
    pub(super) exprs: &'a mut IndexVec<ExprId, Expr>,
    pub(super) span: Span,
}

type Part = Option<ExprId>;

impl Parts<'_> {
    pub(super) fn push(&mut self, kind: ExprKind) -> ExprId {
        self.exprs.push(Expr { kind, span: self.span })
    }

    pub(super) fn number(&mut self, value: f64) -> ExprId {
        self.push(ExprKind::Number(value))
    }

    fn negative(&mut self, a: Part) -> Part {
        let kind = ExprKind::Unary { op: UnaryOp::Neg, op_span: self.span, operand: a? };
        Some(self.push(kind))
    }

    fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) -> ExprId {
        self.push(ExprKind::Binary { op, op_span: self.span, left, right })
    }

    fn sum(&mut self, a: Part, b: Part) -> Part {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.binary(BinaryOp::Add, a, b)),
            (one, None) | (None, one) => one,
        }
    }

    fn difference(&mut self, a: Part, b: Part) -> Part {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.binary(BinaryOp::Sub, a, b)),
            (one, None) => one,
            (None, one) => self.negative(one),
        }
    }

    /// Returns f(arguments).
    pub(super) fn call(&mut self, name: &str, arguments: Vec<ExprId>) -> ExprId {
        self.call_with(name, arguments, Vec::new())
    }

    fn call_with(&mut self, name: &str, arguments: Vec<ExprId>, named: Vec<Argument>) -> ExprId {
        let function = Ident { name: name.to_owned(), span: self.span };
        self.push(ExprKind::Call { function, arguments, named })
    }

    /// Returns a part as an expression; one that is zero has the shape of the other.
    pub(super) fn whole(&mut self, part: Part, other: Part) -> ExprId {
        match (part, other) {
            (Some(part), _) => part,
            (None, Some(other)) => {
                let zero = self.number(0.0);
                self.binary(BinaryOp::Mul, zero, other)
            }
            (None, None) => self.number(0.0),
        }
    }

    /// Returns both parts as expressions.
    pub(super) fn both(&mut self, a: Value) -> [ExprId; 2] {
        [self.whole(a.re, a.im), self.whole(a.im, a.re)]
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        let (re, im) = (self.sum(a.re, b.re), self.sum(a.im, b.im));
        Value { re, im, tests: a.tests.with(b.tests) }
    }

    pub(super) fn subtract(&mut self, a: Value, b: Value) -> Value {
        let (re, im) = (self.difference(a.re, b.re), self.difference(a.im, b.im));
        Value { re, im, tests: a.tests.with(b.tests) }
    }

    pub(super) fn negate(&mut self, a: Value) -> Value {
        Value { re: self.negative(a.re), im: self.negative(a.im), ..a }
    }

    pub(super) fn conjugate(&mut self, a: Value) -> Value {
        Value { im: self.negative(a.im), ..a.conjugate_tests() }
    }

    /// Returns the real part of a part: the value of `re` and `im`.
    pub(super) fn part(&mut self, part: Part, of: Value) -> Value {
        let re = Some(self.whole(part, of.re.or(of.im)));
        Value { re, im: None, tests: of.tests.of_part() }
    }

    /// Returns a product that is linear in both factors over the complex numbers.
    pub(super) fn product(
        &mut self,
        a: Value,
        b: Value,
        of: impl Fn(&mut Self, ExprId, ExprId) -> ExprId,
    ) -> Value {
        let mut times = |x: Part, y: Part| Some(of(self, x?, y?));
        let [rr, ii, ri, ir] =
            [times(a.re, b.re), times(a.im, b.im), times(a.re, b.im), times(a.im, b.re)];
        let mut tests = a.tests.with(b.tests);
        let mixed = |x: Value, y: Value| x.tests.contains(Tests::REAL) && !y.is_real();
        if mixed(a, b) || mixed(b, a) {
            tests = tests.with(Tests::REAL_TIMES_COMPLEX);
        }
        Value { re: self.difference(rr, ii), im: self.sum(ri, ir), tests }
    }

    pub(super) fn multiply(&mut self, a: Value, b: Value) -> Value {
        self.product(a, b, |parts, x, y| parts.binary(BinaryOp::Mul, x, y))
    }

    /// Returns Σ aᵢ conj(bᵢ), of one and the same expression without an imaginary part.
    pub(super) fn inner(&mut self, a: Value, b: Value, same: bool) -> Value {
        let conjugate = self.conjugate(b);
        let product = self.product(a, conjugate, |parts, x, y| parts.call("inner", vec![x, y]));
        Value { im: product.im.filter(|_| !same), ..product }
    }

    /// Returns |a|², the sum of the squares of all components.
    fn square(&mut self, a: Value) -> ExprId {
        let mut square = |part: Part| Some(self.call("inner", vec![part?, part?]));
        let [re, im] = [square(a.re), square(a.im)];
        let sum = self.sum(re, im);
        self.whole(sum, None)
    }

    /// Returns |a|.
    pub(super) fn modulus(&mut self, a: Value) -> ExprId {
        let square = self.square(a);
        self.call("sqrt", vec![square])
    }

    pub(super) fn divide(&mut self, a: Value, b: Value) -> Value {
        let (a, by) = if b.is_real() {
            (a, self.whole(b.re, None))
        } else {
            let conjugate = self.conjugate(b);
            (self.multiply(a, conjugate), self.square(b))
        };
        let mut over = |part: Part| Some(self.binary(BinaryOp::Div, part?, by));
        let [re, im] = [over(a.re), over(a.im)];
        Value { re, im, tests: a.tests.with(b.tests) }
    }

    /// Returns aⁿ by repeated multiplication.
    pub(super) fn integer_power(&mut self, a: Value, n: u32) -> Value {
        let mut result: Option<Value> = None;
        for bit in (0..32).rev() {
            if let Some(so_far) = result {
                result = Some(self.multiply(so_far, so_far));
            }
            if n >> bit & 1 == 1 {
                result = Some(result.map_or(a, |so_far| self.multiply(so_far, a)));
            }
        }
        match result {
            Some(result) => result,
            None => Value::real(self.number(1.0)),
        }
    }

    /// Returns a linear function of both parts.
    pub(super) fn linear(&mut self, name: &str, a: Value, named: &[Argument]) -> Value {
        let mut of = |part: Part| Some(self.call_with(name, vec![part?], named.to_vec()));
        let [re, im] = [of(a.re), of(a.im)];
        Value { re, im, tests: a.tests }
    }

    /// Returns a function of one complex number; `None` if the language does not have it for them.
    pub(super) fn function(&mut self, name: &str, a: Value) -> Option<Value> {
        let [x, y] = self.both(a);
        let of = |parts: &mut Self, name: &str, x: ExprId| parts.call(name, vec![x]);
        let times = |parts: &mut Self, x: ExprId, y: ExprId| parts.binary(BinaryOp::Mul, x, y);
        // The parts of functions of x, times functions of y: f(x) g(y) and p(x) q(y).
        let mut products = |[f, g]: [&str; 2], [p, q]: [&str; 2]| {
            let mut product = |[f, g]: [&str; 2]| {
                let (f, g) = (of(self, f, x), of(self, g, y));
                times(self, f, g)
            };
            let (re, im) = (product([f, g]), product([p, q]));
            Value { re: Some(re), im: Some(im), tests: a.tests }
        };
        Some(match name {
            "exp" => products(["exp", "cos"], ["exp", "sin"]),
            "sin" => products(["sin", "cosh"], ["cos", "sinh"]),
            "cos" => {
                let value = products(["cos", "cosh"], ["sin", "sinh"]);
                Value { im: self.negative(value.im), ..value }
            }
            "sinh" => products(["sinh", "cos"], ["cosh", "sin"]),
            "cosh" => products(["cosh", "cos"], ["sinh", "sin"]),
            "log" => {
                let modulus = self.modulus(a);
                let re = of(self, "log", modulus);
                let im = self.call("atan2", vec![y, x]);
                Value { re: Some(re), im: Some(im), tests: a.tests }
            }
            "sqrt" => self.root(a, [x, y]),
            _ => return None,
        })
    }

    /// Returns the square root with a real part that is not negative: √((|z| ± x)/2), the imaginary part with the sign of
    /// y.
    fn root(&mut self, a: Value, [x, y]: [ExprId; 2]) -> Value {
        let modulus = self.modulus(a);
        let zero = self.number(0.0);
        let mut half = |op: BinaryOp| {
            let sum = self.binary(op, modulus, x);
            // Rounding may leave a number below zero.
            let sum = self.call("max", vec![sum, zero]);
            let two = self.number(2.0);
            let half = self.binary(BinaryOp::Div, sum, two);
            self.call("sqrt", vec![half])
        };
        let (re, size) = (half(BinaryOp::Add), half(BinaryOp::Sub));
        let condition = self.binary(BinaryOp::Lt, y, zero);
        let negative = self.whole(None, None);
        let negative = self.binary(BinaryOp::Sub, negative, size);
        let im = self.push(ExprKind::If { condition, then: negative, otherwise: size });
        Value { re: Some(re), im: Some(im), tests: a.tests }
    }
}
