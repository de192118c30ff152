//! An expression with complex values → the expressions of its real and imaginary parts.

use super::parts::{Parts, Tests, Value};
use crate::arena::IndexVec;
use crate::ast::{self, BinaryOp, Expr, ExprId, ExprKind, Ident, UnaryOp};
use crate::check::names::subtree;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of nodes that functions expand to.
const MOST_NODES: usize = 250_000;

/// Largest exponent that is expanded to products.
const MOST_FACTORS: f64 = 64.0;

/// The names of a form that concern complex numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComplexNames {
    /// Complex fields.
    pub(super) fields: BTreeSet<String>,
    /// Complex data and parameters.
    pub(super) data: BTreeSet<String>,
    /// Test functions, with whether their field is complex.
    pub(super) tests: BTreeMap<String, bool>,
    /// Expressions that depend on something complex.
    pub(super) lets: BTreeMap<String, LetKind>,
    /// Functions whose bodies do.
    pub(super) functions: BTreeSet<String>,
    /// All names that the form declares.
    pub(super) declared: BTreeSet<String>,
}

/// The parts and test functions of a `let`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LetKind {
    pub(super) is_complex: bool,
    pub(super) tests: Tests,
}

impl ComplexNames {
    /// Returns whether a form has anything complex.
    pub(crate) fn any(&self) -> bool {
        !self.fields.is_empty() || !self.data.is_empty()
    }

    /// Returns whether a name is one of the words of complex numbers.
    pub(super) fn is_word(&self, word: &str, name: &str) -> bool {
        word == name && !self.declared.contains(name)
    }

    /// Returns whether a name has to do with complex numbers.
    pub(super) fn touches(&self, name: &str) -> bool {
        self.fields.contains(name)
            || self.data.contains(name)
            || self.tests.get(name) == Some(&true)
            || self.lets.contains_key(name)
            || self.functions.contains(name)
            || ["i", "re", "im", "conj"].iter().any(|word| self.is_word(word, name))
    }
}

/// Returns the names of the real and the imaginary part of what has this name.
pub(super) fn part_names(name: &str) -> [String; 2] {
    [format!("{name}_re"), format!("{name}_im")]
}

/// The expansion of the expressions of one file.
pub(super) struct Expander<'a> {
    pub(super) file: &'a ast::File,
    /// The expressions of the file, followed by new ones.
    pub(super) exprs: IndexVec<ExprId, Expr>,
    pub(super) names: ComplexNames,
    /// The functions of the form: arguments and body.
    pub(super) functions: BTreeMap<&'a str, (&'a [Ident], ExprId)>,
    pub(super) diagnostics: Vec<Diagnostic>,
    nodes: usize,
}

/// One expression in progress: an expanded tree, or the body of a function.
struct Frame<'a> {
    order: Vec<ExprId>,
    next: usize,
    values: BTreeMap<ExprId, Value>,
    parameters: &'a [Ident],
    arguments: Vec<Value>,
}

/// The next action for a node.
enum Step<'a> {
    Value(Value),
    Call(&'a [Ident], ExprId, Vec<Value>),
}

impl<'a> Expander<'a> {
    pub(super) fn new(file: &'a ast::File) -> Self {
        Self {
            file,
            exprs: file.exprs.clone(),
            names: ComplexNames::default(),
            functions: BTreeMap::new(),
            diagnostics: Vec::new(),
            nodes: 0,
        }
    }

    pub(super) fn parts(&mut self, span: Span) -> Parts<'_> {
        Parts { exprs: &mut self.exprs, span }
    }

    pub(super) fn span(&self, id: ExprId) -> Span {
        self.exprs[id].span
    }

    /// Returns the value of an expression.
    pub(super) fn value(&mut self, root: ExprId) -> Value {
        self.values(root).get(&root).copied().unwrap_or_default()
    }

    /// Returns a real value; reports one that is complex.
    pub(super) fn real(&mut self, root: ExprId, what: &str) -> ExprId {
        let value = self.value(root);
        if !value.is_real() {
            self.not_real(root, what);
        }
        self.parts(Span::default()).whole(value.re, value.im)
    }

    pub(super) fn not_real(&mut self, id: ExprId, what: &str) {
        let diagnostic = Diagnostic::new(Code::ComplexValue, format!("{what} is a real number"))
            .label(self.span(id), "this is complex")
            .help("take a part of it, `re(…)` or `im(…)`, or its absolute value, `abs(…)`");
        self.diagnostics.push(diagnostic);
    }

    /// Returns the values of an expression and of its parts.
    pub(super) fn values(&mut self, root: ExprId) -> BTreeMap<ExprId, Value> {
        let file = self.file;
        let frame = |root, parameters, arguments| Frame {
            order: subtree(file, root),
            next: 0,
            values: BTreeMap::new(),
            parameters,
            arguments,
        };
        let mut frames: Vec<Frame<'a>> = vec![frame(root, &[], Vec::new())];
        loop {
            let Some(frame_of) = frames.last() else { return BTreeMap::new() };
            let Some(&id) = frame_of.order.get(frame_of.next) else {
                let Some(done) = frames.pop() else { return BTreeMap::new() };
                let value = done.order.last().map(|last| done.values[last]).unwrap_or_default();
                let Some(caller) = frames.last_mut() else { return done.values };
                let call = caller.order[caller.next];
                caller.values.insert(call, value);
                caller.next += 1;
                continue;
            };
            self.nodes += 1;
            if self.nodes > MOST_NODES {
                if self.nodes == MOST_NODES + 1 {
                    let message = "the functions of this form expand to too much arithmetic";
                    let diagnostic = Diagnostic::new(Code::TooLarge, message)
                        .label(self.span(root), "while this was expanded")
                        .help("name parts that are used often with `let`");
                    self.diagnostics.push(diagnostic);
                }
                return BTreeMap::new();
            }
            match self.node(id, frame_of) {
                Step::Value(value) => {
                    if let Some(frame) = frames.last_mut() {
                        frame.values.insert(id, value);
                        frame.next += 1;
                    }
                }
                Step::Call(parameters, body, arguments) => {
                    frames.push(frame(body, parameters, arguments));
                }
            }
        }
    }

    fn node(&mut self, id: ExprId, frame: &Frame<'a>) -> Step<'a> {
        let file = self.file;
        let expr = &file.exprs[id];
        let of = |id: &ExprId| frame.values.get(id).copied().unwrap_or_default();
        match &expr.kind {
            ExprKind::Name(name) => return Step::Value(self.name(id, name, frame)),
            ExprKind::Call { function, arguments, named } => {
                let values: Vec<Value> = arguments.iter().map(of).collect();
                return self.call(id, &function.name, (arguments, &values), named);
            }
            _ => {}
        }
        let operands = crate::check::names::operands(&expr.kind);
        let is_same = |operand: &ExprId| of(operand).re == Some(*operand) && of(operand).is_real();
        if operands.iter().all(is_same) {
            let tests = operands.iter().map(|id| of(id).tests);
            return Step::Value(Value {
                tests: tests.fold(Tests::NONE, Tests::with),
                ..Value::real(id)
            });
        }
        let parts = &mut Parts { exprs: &mut self.exprs, span: expr.span };
        let value = match &expr.kind {
            ExprKind::Array(items) => {
                let values: Vec<Value> = items.iter().map(of).collect();
                let tests = values.iter().fold(Tests::NONE, |all, value| all.with(value.tests));
                let complex = values.iter().any(|value| !value.is_real());
                let [re, im]: [Vec<ExprId>; 2] = [
                    values.iter().map(|value| parts.both(*value)[0]).collect(),
                    values.iter().map(|value| parts.both(*value)[1]).collect(),
                ];
                let re = Some(parts.push(ExprKind::Array(re)));
                let im = complex.then(|| parts.push(ExprKind::Array(im)));
                Value { re, im, tests }
            }
            ExprKind::Index { base, indices } => {
                let base = of(base);
                let mut index = |part: Option<ExprId>| {
                    let indices = indices.clone();
                    Some(parts.push(ExprKind::Index { base: part?, indices }))
                };
                Value { re: index(base.re), im: index(base.im), ..base }
            }
            ExprKind::Unary { op: UnaryOp::Neg, operand, .. } => parts.negate(of(operand)),
            ExprKind::Unary { op: UnaryOp::Not, op_span, operand } => {
                let value = of(operand);
                let operand = parts.whole(value.re, value.im);
                let kind = ExprKind::Unary { op: UnaryOp::Not, op_span: *op_span, operand };
                Value::real(parts.push(kind))
            }
            ExprKind::Binary { op, op_span, left, right } => {
                self.binary(*op, *op_span, [*left, *right], [of(left), of(right)], expr.span)
            }
            ExprKind::If { condition, then, otherwise } => {
                let (on, a, b) = (of(condition), of(then), of(otherwise));
                let condition = parts.whole(on.re, None);
                let ([a_re, a_im], [b_re, b_im]) = (parts.both(a), parts.both(b));
                let mut choose =
                    |then, otherwise| Some(parts.push(ExprKind::If { condition, then, otherwise }));
                let re = choose(a_re, b_re);
                let im = if a.is_real() && b.is_real() { None } else { choose(a_im, b_im) };
                Value { re, im, tests: a.tests.with(b.tests).with(on.tests) }
            }
            _ => Value::real(id),
        };
        Step::Value(value)
    }

    fn name(&mut self, id: ExprId, name: &str, frame: &Frame<'a>) -> Value {
        if let Some(at) = frame.parameters.iter().position(|parameter| parameter.name == name) {
            return frame.arguments.get(at).copied().unwrap_or_default();
        }
        let names = &self.names;
        let tests = match names.tests.get(name) {
            Some(true) => Tests::PLAIN,
            Some(false) => Tests::REAL,
            None => names.lets.get(name).map_or(Tests::NONE, |known| known.tests),
        };
        let is_complex = names.fields.contains(name)
            || names.data.contains(name)
            || names.tests.get(name) == Some(&true)
            || names.lets.get(name).is_some_and(|known| known.is_complex);
        let is_unit = names.is_word("i", name) && names.any();
        let mut parts = self.parts(self.file.exprs[id].span);
        if is_complex {
            let [re, im] = part_names(name).map(|name| Some(parts.push(ExprKind::Name(name))));
            return Value { re, im, tests };
        }
        if is_unit {
            return Value { re: None, im: Some(parts.number(1.0)), tests };
        }
        Value { tests, ..Value::real(id) }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        [left, right]: [ExprId; 2],
        [a, b]: [Value; 2],
        span: Span,
    ) -> Value {
        let parts = &mut Parts { exprs: &mut self.exprs, span };
        match op {
            BinaryOp::Add => parts.add(a, b),
            BinaryOp::Sub => parts.subtract(a, b),
            BinaryOp::Mul => parts.multiply(a, b),
            BinaryOp::Div => parts.divide(a, b),
            BinaryOp::Pow if !(a.is_real() && b.is_real()) => {
                let whole = match self.file.exprs[right].kind {
                    ExprKind::Number(n) if n.fract() == 0.0 && n <= MOST_FACTORS => Some(n as u32),
                    _ => None,
                };
                if let Some(n) = whole {
                    return parts.integer_power(a, n);
                }
                let power = parts.function("log", a).map(|log| parts.multiply(b, log));
                power.and_then(|power| parts.function("exp", power)).unwrap_or_default()
            }
            _ => {
                let [x, y] = [a, b].map(|value| parts.whole(value.re, value.im));
                let kind = ExprKind::Binary { op, op_span, left: x, right: y };
                let value = Value { tests: a.tests.with(b.tests), ..Value::real(parts.push(kind)) };
                for (id, operand) in [(left, a), (right, b)] {
                    if !operand.is_real() {
                        self.not_real(id, &format!("an operand of `{}`", op.symbol()));
                    }
                }
                value
            }
        }
    }

    fn call(
        &mut self,
        id: ExprId,
        name: &str,
        (arguments, values): (&[ExprId], &[Value]),
        named: &[ast::Argument],
    ) -> Step<'a> {
        let complex = values.iter().any(|value| !value.is_real());
        if let Some(&(parameters, body)) = self.functions.get(name)
            && (complex || self.names.functions.contains(name))
            && parameters.len() == values.len()
        {
            return Step::Call(parameters, body, values.to_vec());
        }
        let is_own = self.names.declared.contains(name) && !self.names.fields.contains(name);
        let parts = &mut Parts { exprs: &mut self.exprs, span: self.file.exprs[id].span };
        let value = match (name, values) {
            _ if is_own => None,
            ("re", &[a]) => Some(parts.part(a.re, a)),
            ("im", &[a]) => Some(parts.part(a.im, a)),
            ("conj", &[a]) => Some(parts.conjugate(a)),
            // The value of a field at a point, in a report.
            _ if self.names.fields.contains(name) => {
                let kind = |name: String| ExprKind::Call {
                    function: Ident { name, span: parts.span },
                    arguments: arguments.to_vec(),
                    named: named.to_vec(),
                };
                let [re, im] = part_names(name).map(kind).map(|kind| Some(parts.push(kind)));
                Some(Value { re, im, tests: Tests::NONE })
            }
            _ if !complex => None,
            ("dot" | "outer" | "cross", &[a, b]) => {
                Some(parts.product(a, b, |parts, x, y| parts.call(name, vec![x, y])))
            }
            ("inner", &[a, b]) => {
                let same = same(self.file, arguments[0], arguments[1]);
                Some(parts.inner(a, b, same))
            }
            ("abs" | "norm", &[a]) => {
                let re = Some(parts.modulus(a));
                Some(Value { re, im: None, tests: a.tests })
            }
            ("l2", &[a]) => {
                let mut norm = |part: Option<ExprId>| Some(parts.call("l2", vec![part?]));
                let [re, im] = [norm(a.re), norm(a.im)];
                let norms = Value { re, im, tests: a.tests };
                Some(Value { re: Some(parts.modulus(norms)), im: None, tests: a.tests })
            }
            ("at", &[a, place]) if place.is_real() => {
                let place = place.re;
                let mut at = |part: Option<ExprId>| Some(parts.call("at", vec![part?, place?]));
                let [re, im] = [at(a.re), at(a.im)];
                Some(Value { re, im, tests: a.tests })
            }
            ("penalty", &[a]) => Some(parts.linear(name, Value { im: None, ..a }, named)),
            (
                "grad" | "div" | "curl" | "dt" | "tr" | "sym" | "skew" | "dev" | "transpose"
                | "inside" | "outside" | "jump" | "avg" | "tangential" | "integral" | "line"
                | "reaction" | "multiplier",
                &[a],
            ) => Some(parts.linear(name, a, named)),
            (_, &[a]) => parts.function(name, a),
            _ => None,
        };
        Step::Value(match value {
            Some(value) => value,
            None => self.real_call(id, name, (arguments, values), named),
        })
    }

    /// Returns a call of a function of real numbers.
    fn real_call(
        &mut self,
        id: ExprId,
        name: &str,
        (arguments, values): (&[ExprId], &[Value]),
        named: &[ast::Argument],
    ) -> Value {
        let tests = values.iter().fold(Tests::NONE, |all, value| all.with(value.tests));
        for (&argument, value) in arguments.iter().zip(values) {
            if !value.is_real() {
                self.not_real(argument, &format!("an argument of `{name}`"));
            }
        }
        let same = |(value, &id): (&Value, &ExprId)| value.re == Some(id);
        if values.iter().zip(arguments).all(same) {
            return Value { tests, ..Value::real(id) };
        }
        let ExprKind::Call { function, .. } = &self.file.exprs[id].kind else {
            return Value::real(id);
        };
        let mut parts = self.parts(self.file.exprs[id].span);
        let arguments = values.iter().map(|value| parts.whole(value.re, value.im)).collect();
        let (function, named) = (function.clone(), named.to_vec());
        let call = parts.push(ExprKind::Call { function, arguments, named });
        Value { tests, ..Value::real(call) }
    }

    /// Returns the innermost part of an expression with such test functions.
    pub(super) fn innermost(&mut self, root: ExprId, tests: Tests) -> ExprId {
        let values = self.values(root);
        let mut found = root;
        loop {
            let operands = crate::check::names::operands(&self.file.exprs[found].kind);
            let inner = operands.into_iter().find(|operand| {
                values.get(operand).is_some_and(|value| value.tests.contains(tests))
            });
            match inner {
                Some(inner) => found = inner,
                None => return found,
            }
        }
    }
}

/// Returns whether two expressions are written alike.
fn same(file: &ast::File, a: ExprId, b: ExprId) -> bool {
    let mut open = vec![(a, b)];
    while let Some((a, b)) = open.pop() {
        if a == b {
            continue;
        }
        let [x, y] = [a, b].map(|id| &file.exprs[id].kind);
        let alike = match (x, y) {
            (ExprKind::Number(x), ExprKind::Number(y)) => x == y,
            (ExprKind::Name(x), ExprKind::Name(y)) => x == y,
            (ExprKind::Call { function: x, .. }, ExprKind::Call { function: y, .. }) => {
                x.name == y.name
            }
            (ExprKind::Unary { op: x, .. }, ExprKind::Unary { op: y, .. }) => x == y,
            (ExprKind::Binary { op: x, .. }, ExprKind::Binary { op: y, .. }) => x == y,
            (ExprKind::Array(_), ExprKind::Array(_))
            | (ExprKind::Index { .. }, ExprKind::Index { .. })
            | (ExprKind::If { .. }, ExprKind::If { .. }) => true,
            _ => false,
        };
        let [x, y] = [x, y].map(crate::check::names::operands);
        if !alike || x.len() != y.len() {
            return false;
        }
        open.extend(x.into_iter().zip(y));
    }
    true
}
