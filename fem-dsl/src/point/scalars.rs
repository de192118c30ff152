//! The folding builder of scalar graphs.
//!
//! It maintains a canonical form, so that equal formulas become equal nodes. A constant factor is outermost and first,
//! and signs move outwards. The operands of `+`, `·` and commutative operations other than min and max are ordered by
//! id. Products of equal factors are integer powers, and a quotient's constants are outside it. Only 0·x and x − x
//! enlarge the set on which a formula is finite; only a reciprocal that overflows reduces it.

use super::{Binary, Comparison, Graph, Input, Node, NodeId, Number, Unary};
use crate::arithmetic;

/// A graph that folds added nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scalars {
    pub(crate) graph: Graph,
}

/// A node as constant · rest; a constant has no rest.
pub(super) type ScaledValue = (f64, Option<NodeId>);

impl Scalars {
    pub(crate) fn node(&self, a: NodeId) -> Node {
        self.graph.nodes()[a]
    }

    /// Returns a constant. Constants are finite: an overflow of constants is a quotient by 0, which is evaluated at run
    /// time.
    pub(crate) fn constant(&mut self, value: f64) -> NodeId {
        if value.is_finite() {
            return self.graph.intern(Node::Constant(Number::new(value)));
        }
        let sign = if value.is_nan() { 0.0 } else { value.signum() };
        let (sign, zero) = (self.constant(sign), self.constant(0.0));
        self.graph.intern(Node::Binary(Binary::Div, sign, zero))
    }

    pub(crate) fn input(&mut self, input: Input) -> NodeId {
        self.graph.intern(Node::Input(input))
    }

    pub(crate) fn value(&self, a: NodeId) -> Option<f64> {
        match self.node(a) {
            Node::Constant(number) => Some(number.get()),
            _ => None,
        }
    }

    pub(crate) fn is_zero(&self, a: NodeId) -> bool {
        self.value(a) == Some(0.0)
    }

    /// Splits off the constant factor.
    pub(super) fn split(&self, a: NodeId) -> ScaledValue {
        match self.node(a) {
            Node::Constant(number) => (number.get(), None),
            Node::Unary(Unary::Neg, b) => (-1.0, Some(b)),
            Node::Binary(Binary::Mul, c, b) => match self.value(c) {
                Some(c) => (c, Some(b)),
                None => (1.0, Some(a)),
            },
            _ => (1.0, Some(a)),
        }
    }

    /// Returns c · a for an `a` without a constant factor.
    pub(super) fn scale(&mut self, c: f64, a: Option<NodeId>) -> NodeId {
        let Some(a) = a else { return self.constant(c) };
        if c == 0.0 {
            return self.constant(0.0);
        }
        if c == 1.0 {
            return a;
        }
        if c == -1.0 {
            return match self.node(a) {
                Node::Binary(Binary::Sub, x, y) => {
                    self.graph.intern(Node::Binary(Binary::Sub, y, x))
                }
                _ => self.graph.intern(Node::Unary(Unary::Neg, a)),
            };
        }
        // A constant divisor is combined with the factor: 5 (x / 5) is x.
        if let Node::Binary(Binary::Div, x, d) = self.node(a)
            && let Some(factor) = self.value(d).map(|d| c / d)
            && factor.is_normal()
        {
            return self.scale(factor, Some(x));
        }
        let c = self.constant(c);
        self.graph.intern(Node::Binary(Binary::Mul, c, a))
    }

    pub(crate) fn neg(&mut self, a: NodeId) -> NodeId {
        let (c, rest) = self.split(a);
        self.scale(-c, rest)
    }

    pub(crate) fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.sum(self.split(a), self.split(b))
    }

    pub(crate) fn sub(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let (c, rest) = self.split(b);
        self.sum(self.split(a), (-c, rest))
    }

    fn sum(&mut self, (c, a): ScaledValue, (d, b): ScaledValue) -> NodeId {
        match (a, b) {
            (None, None) if (c + d).is_finite() => self.constant(c + d),
            (None, _) if c == 0.0 => self.scale(d, b),
            (_, None) if d == 0.0 => self.scale(c, a),
            (Some(x), None) => self.shifted(d, (c, x)),
            (None, Some(y)) => self.shifted(c, (d, y)),
            (Some(x), Some(y)) if x == y && (c + d).is_finite() => self.scale(c + d, a),
            (Some(x), Some(y)) if c == d => {
                let inside = self.plain_add(x, y);
                self.scale(c, Some(inside))
            }
            (Some(x), Some(y)) if c == -d => {
                let (c, x, y) = if c < 0.0 { (d, y, x) } else { (c, x, y) };
                let inside = self.graph.intern(Node::Binary(Binary::Sub, x, y));
                self.scale(c, Some(inside))
            }
            _ if d < 0.0 => {
                let (left, right) = (self.scale(c, a), self.scale(-d, b));
                self.graph.intern(Node::Binary(Binary::Sub, left, right))
            }
            _ if c < 0.0 => {
                let (left, right) = (self.scale(d, b), self.scale(-c, a));
                self.graph.intern(Node::Binary(Binary::Sub, left, right))
            }
            _ => {
                let (left, right) = (self.scale(c, a), self.scale(d, b));
                self.plain_add(left, right)
            }
        }
    }

    /// Returns shift + c · x, combined with a shift of x.
    fn shifted(&mut self, shift: f64, (c, x): (f64, NodeId)) -> NodeId {
        if let Node::Binary(op @ (Binary::Add | Binary::Sub), s, y) = self.node(x)
            && let Some(s) = self.value(s)
            && (shift + c * s).is_finite()
        {
            let sign = if op == Binary::Add { c } else { -c };
            let (d, y) = self.split(y);
            if (sign * d).is_finite() {
                let shift = (shift + c * s, None);
                return self.sum(shift, (sign * d, y));
            }
        }
        let shift = self.constant(shift);
        if c < 0.0 {
            let x = self.scale(-c, Some(x));
            self.graph.intern(Node::Binary(Binary::Sub, shift, x))
        } else {
            let x = self.scale(c, Some(x));
            self.graph.intern(Node::Binary(Binary::Add, shift, x))
        }
    }

    fn plain_add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.graph.intern(Node::Binary(Binary::Add, a.min(b), a.max(b)))
    }

    pub(crate) fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let ((c, x), (d, y)) = (self.split(a), self.split(b));
        if c == 0.0 || d == 0.0 {
            return self.constant(0.0);
        }
        if !(c * d).is_finite() || c * d == 0.0 {
            return self.graph.intern(Node::Binary(Binary::Mul, a.min(b), a.max(b)));
        }
        let (Some(x), Some(y)) = (x, y) else {
            return self.scale(c * d, x.or(y));
        };
        // Constant divisors move outside, where they are combined with constant factors.
        let ((x, by_x), (y, by_y)) = (self.divided(x), self.divided(y));
        let product = self.product(x, y);
        // A folded product may contain a constant.
        let (e, rest) = self.split(product);
        let product = self.scale(c * d * e, rest);
        let divisor = by_x * by_y;
        if divisor == 1.0 {
            return product;
        }
        let divisor = self.constant(divisor);
        self.div(product, divisor)
    }

    /// Returns a node as x / constant.
    fn divided(&self, a: NodeId) -> (NodeId, f64) {
        match self.node(a) {
            Node::Binary(Binary::Div, x, d) => match self.value(d) {
                // Its square is finite, too.
                Some(d) if (1e-100..1e100).contains(&d.abs()) => (x, d),
                _ => (a, 1.0),
            },
            _ => (a, 1.0),
        }
    }

    /// Returns x · y without constants.
    fn product(&mut self, x: NodeId, y: NodeId) -> NodeId {
        let (base_x, m) = self.power(x);
        let (base_y, n) = self.power(y);
        if base_x == base_y
            && let Some(exponent) = m.checked_add(n)
        {
            return self.graph.intern(Node::Powi(base_x, exponent));
        }
        self.graph.intern(Node::Binary(Binary::Mul, x.min(y), x.max(y)))
    }

    pub(super) fn power(&self, a: NodeId) -> (NodeId, i32) {
        match self.node(a) {
            Node::Powi(base, n) => (base, n),
            _ => (a, 1),
        }
    }

    pub(crate) fn div(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let ((c, x), (d, y)) = (self.split(a), self.split(b));
        if d == 0.0 || !(c / d).is_finite() || (c / d == 0.0 && c != 0.0) {
            return self.graph.intern(Node::Binary(Binary::Div, a, b));
        }
        if c == 0.0 {
            return self.constant(0.0);
        }
        let Some(y) = y else {
            // Division by a constant: an exact product, or combined with an existing constant.
            return match arithmetic::exact_reciprocal(d) {
                Some(reciprocal) => self.scale(c * reciprocal, x),
                None if x.is_none() || c.abs() != 1.0 => self.scale(c / d, x),
                None => {
                    let (x, sign, d) = (x.unwrap_or(a), d.signum(), self.constant(d.abs()));
                    let quotient = self.graph.intern(Node::Binary(Binary::Div, x, d));
                    self.scale(c * sign, Some(quotient))
                }
            };
        };
        let x = x.unwrap_or_else(|| self.constant(1.0));
        let quotient = self.graph.intern(Node::Binary(Binary::Div, x, y));
        self.scale(c / d, Some(quotient))
    }

    pub(crate) fn powi(&mut self, a: NodeId, n: i32) -> NodeId {
        if n < 0 {
            // |i32::MIN| is no i32; the square root of such a power does not occur.
            let power = self.powi(a, n.checked_neg().unwrap_or(i32::MAX));
            let one = self.constant(1.0);
            return self.div(one, power);
        }
        let (c, rest) = self.split(a);
        let scale = arithmetic::powi(c, n);
        match (n, rest) {
            (0, _) => self.constant(1.0),
            (1, _) => a,
            (_, None) if scale.is_finite() => self.constant(scale),
            (_, Some(x)) if scale.is_finite() && scale != 0.0 => {
                let (base, m) = self.power(x);
                let power = match m.checked_mul(n) {
                    Some(exponent) => Node::Powi(base, exponent),
                    None => Node::Powi(x, n),
                };
                let power = self.graph.intern(power);
                self.scale(scale, Some(power))
            }
            _ => self.graph.intern(Node::Powi(a, n)),
        }
    }

    pub(crate) fn unary(&mut self, function: Unary, a: NodeId) -> NodeId {
        if function == Unary::Neg {
            return self.neg(a);
        }
        if let Some(x) = self.value(a) {
            let value = arithmetic::unary(function, x);
            if value.is_finite() {
                return self.constant(value);
            }
        }
        let (c, rest) = self.split(a);
        match (function, rest) {
            (Unary::Abs, Some(x)) => {
                let abs = self.graph.intern(Node::Unary(Unary::Abs, x));
                self.scale(c.abs(), Some(abs))
            }
            (Unary::Sign, Some(x)) => {
                let sign = self.graph.intern(Node::Unary(Unary::Sign, x));
                self.scale(c.signum(), Some(sign))
            }
            (Unary::Cos | Unary::Cosh, Some(x)) if c < 0.0 => {
                let argument = self.scale(-c, Some(x));
                self.graph.intern(Node::Unary(function, argument))
            }
            (
                Unary::Sin | Unary::Tan | Unary::Asin | Unary::Atan | Unary::Sinh | Unary::Tanh,
                Some(x),
            ) if c < 0.0 => {
                let argument = self.scale(-c, Some(x));
                let value = self.graph.intern(Node::Unary(function, argument));
                self.scale(-1.0, Some(value))
            }
            _ => self.graph.intern(Node::Unary(function, a)),
        }
    }

    pub(crate) fn binary(&mut self, function: Binary, a: NodeId, b: NodeId) -> NodeId {
        match function {
            Binary::Add => return self.add(a, b),
            Binary::Sub => return self.sub(a, b),
            Binary::Mul => return self.mul(a, b),
            Binary::Div => return self.div(a, b),
            Binary::Pow | Binary::Atan2 | Binary::Min | Binary::Max => {}
        }
        if let (Some(x), Some(y)) = (self.value(a), self.value(b)) {
            let value = arithmetic::binary(function, x, y);
            if value.is_finite() {
                return self.constant(value);
            }
        }
        match function {
            Binary::Pow => self.pow(a, b),
            Binary::Min | Binary::Max if a == b => a,
            _ => self.graph.intern(Node::Binary(function, a, b)),
        }
    }

    /// Returns aᵇ for a > 0; a half-integer exponent is a square root and products.
    fn pow(&mut self, a: NodeId, b: NodeId) -> NodeId {
        const LARGEST: f64 = 8.0;
        if let Some(exponent) = self.value(b)
            && exponent.abs() <= LARGEST
            && (2.0 * exponent).fract() == 0.0
        {
            let root = self.unary(Unary::Sqrt, a);
            let magnitude = exponent.abs();
            #[expect(clippy::cast_possible_truncation, reason = "at most 8")]
            let whole = self.powi(a, magnitude as i32);
            let power = if magnitude.fract() == 0.0 { whole } else { self.mul(whole, root) };
            if exponent > 0.0 {
                return power;
            }
            let one = self.constant(1.0);
            return self.div(one, power);
        }
        self.graph.intern(Node::Binary(Binary::Pow, a, b))
    }

    pub(crate) fn compare(&mut self, comparison: Comparison, a: NodeId, b: NodeId) -> NodeId {
        self.graph.intern(Node::Compare(comparison, a, b))
    }

    /// Returns the truth of a comparison of constants.
    fn known(&self, condition: NodeId) -> Option<bool> {
        match self.node(condition) {
            Node::Compare(comparison, a, b) => {
                Some(arithmetic::compare(comparison, self.value(a)?, self.value(b)?))
            }
            _ => None,
        }
    }

    pub(crate) fn and(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.known(a), self.known(b)) {
            (Some(true), _) | (_, Some(false)) => b,
            (Some(false), _) | (_, Some(true)) => a,
            _ if a == b => a,
            _ => self.graph.intern(Node::And(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn or(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.known(a), self.known(b)) {
            (Some(false), _) | (_, Some(true)) => b,
            (Some(true), _) | (_, Some(false)) => a,
            _ if a == b => a,
            _ => self.graph.intern(Node::Or(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn not(&mut self, a: NodeId) -> NodeId {
        if let Node::Not(b) = self.node(a) {
            return b;
        }
        match self.known(a) {
            Some(truth) => {
                let (zero, one) = (self.constant(0.0), self.constant(1.0));
                self.compare(Comparison::Eq, zero, if truth { one } else { zero })
            }
            None => self.graph.intern(Node::Not(a)),
        }
    }

    pub(crate) fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> NodeId {
        match (self.known(condition), self.node(condition)) {
            (Some(true), _) => a,
            (Some(false), _) => b,
            (None, _) if a == b => a,
            (None, Node::Not(opposite)) => self.graph.intern(Node::Select(opposite, b, a)),
            (None, _) => self.graph.intern(Node::Select(condition, a, b)),
        }
    }

    /// Adds a node of another canonical graph, with its operands mapped.
    pub(super) fn rebuild(&mut self, node: Node, map: impl Fn(NodeId) -> NodeId) -> NodeId {
        match node {
            Node::Constant(_) | Node::Input(_) => self.graph.intern(node),
            Node::Unary(function, a) => self.unary(function, map(a)),
            Node::Binary(function, a, b) => self.binary(function, map(a), map(b)),
            Node::Powi(a, n) => self.powi(map(a), n),
            Node::Compare(comparison, a, b) => self.compare(comparison, map(a), map(b)),
            Node::And(a, b) => self.and(map(a), map(b)),
            Node::Or(a, b) => self.or(map(a), map(b)),
            Node::Not(a) => self.not(map(a)),
            Node::Select(c, a, b) => self.select(map(c), map(a), map(b)),
        }
    }
}
