//! Expressions: from the syntax tree to typed tensor expressions.
//!
//! Operands come first in the tree's arena, so that an expression is one loop over its nodes in order. The body of a
//! called `fn` is another such loop, kept on an explicit stack. A node that is broken, or depends on one, has no value
//! and causes no message.

use super::names::{ExprContext, Meaning, Names, subtree};
use super::{functions, shapes};
use crate::ast::{self, BinaryOp, ExprKind, SideWord, UnaryOp};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{BuildError, ExprId, Form, Origin, Shape, Terminal, Type};
use crate::point::Comparison;
use crate::source::Span;
use crate::words;
use std::collections::{BTreeMap, BTreeSet};

/// The value of a node; `None` if broken.
pub(super) type Value = Option<ExprId>;

/// Largest work, in scalar operations, for the expansion of one form.
const MOST_WORK: usize = 250_000;

/// Checks the expressions of one form in one dimension.
pub(super) struct Checker<'a> {
    pub(super) file: &'a ast::File,
    pub(super) names: &'a Names<'a>,
    pub(super) form: Form,
    /// The values of `let`s, by definition.
    pub(super) lets: BTreeMap<usize, Value>,
    /// Parameters without a usable declaration.
    pub(super) broken_params: BTreeSet<usize>,
    /// The values of calls; the flag is true on facets between cells.
    calls: BTreeMap<(usize, bool, Vec<ExprId>), Value>,
    diagnostics: Vec<Diagnostic>,
    /// The diagnostics reported so far, by code and location.
    reported: BTreeSet<(Code, Option<Span>)>,
    work: usize,
    /// True if fields in Hcurl and Hdiv have gradients, in each cell: the form has terms between cells.
    pub(super) cellwise: bool,
}

/// One expression in progress: the checked tree, or the body of a called function.
struct Frame<'a> {
    order: Vec<ast::ExprId>,
    next: usize,
    values: BTreeMap<ast::ExprId, Value>,
    parameters: &'a [ast::Ident],
    arguments: Vec<Value>,
    /// The function and the location of the call.
    call: Option<(usize, Span)>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        file: &'a ast::File,
        names: &'a Names<'a>,
        form: Form,
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        let place = |found: &Diagnostic| (found.code, found.primary().map(|label| label.span));
        Self {
            reported: diagnostics.iter().map(place).collect(),
            file,
            names,
            form,
            lets: BTreeMap::new(),
            broken_params: BTreeSet::new(),
            calls: BTreeMap::new(),
            diagnostics,
            work: 0,
            cellwise: false,
        }
    }

    /// Returns the types of parameters and `let`s, by the locations of their names.
    pub(super) fn types(&self) -> Vec<(Span, Type)> {
        let params = self.names.params.iter().zip(&self.form.params).enumerate();
        let params = params.filter(|(i, _)| !self.broken_params.contains(i));
        let params = params
            .map(|(_, (item, param))| (item.name.span, Type::Tensor(Shape::from(param.shape))));
        let lets = self.lets.iter().filter_map(|(&i, value)| {
            Some((self.names.definitions[i].name.span, self.form.exprs.ty((*value)?)))
        });
        params.chain(lets).collect()
    }

    pub(super) fn finish(self) -> (Form, Vec<Diagnostic>) {
        (self.form, self.diagnostics)
    }

    pub(super) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Reports a diagnostic, unless the same was reported for the same location: a function's body is checked at every
    /// call.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let place = diagnostic.primary().map(|label| label.span);
        if self.reported.insert((diagnostic.code, place)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports an error that concerns more than one location.
    pub(super) fn report_build(&mut self, error: &BuildError, span: Span) {
        let diagnostic = self.diagnose(error, span, &[]);
        self.report(diagnostic);
    }

    pub(super) fn span(&self, id: ast::ExprId) -> Span {
        self.file.exprs[id].span
    }

    /// Returns the value of an expression.
    pub(super) fn expression(&mut self, root: ast::ExprId, place: ExprContext<'a>) -> Value {
        self.values(root, place).get(&root).copied().flatten()
    }

    /// Returns the values of an expression and its parts; `None` for those beyond the work limit.
    pub(super) fn values(
        &mut self,
        root: ast::ExprId,
        place: ExprContext<'a>,
    ) -> BTreeMap<ast::ExprId, Value> {
        self.evaluate(root, place).unwrap_or_default()
    }

    fn evaluate(
        &mut self,
        root: ast::ExprId,
        place: ExprContext<'a>,
    ) -> Option<BTreeMap<ast::ExprId, Value>> {
        let mut frames = vec![self.frame(root, place.parameters, Vec::new(), None)];
        loop {
            let frame = frames.last_mut()?;
            let Some(&id) = frame.order.get(frame.next) else {
                let value = frame.order.last().and_then(|last| frame.values[last]);
                let frame = frames.pop()?;
                let Some(caller) = frames.last_mut() else { return Some(frame.values) };
                if let Some((definition, _)) = frame.call {
                    let arguments = frame.arguments.iter().copied().collect::<Option<Vec<_>>>();
                    if let Some(arguments) = arguments {
                        self.calls.insert((definition, place.is_interior(), arguments), value);
                    }
                }
                let call = caller.order[caller.next];
                caller.values.insert(call, value);
                caller.next += 1;
                continue;
            };
            if self.work > MOST_WORK {
                let span = frames[0].order.last().map(|&root| self.span(root));
                self.too_much(span);
                return None;
            }
            self.work += 1;
            self.form.exprs.begin(Some(Origin { span: self.span(id), derived: false }));
            match self.node(id, &frames, place.is_interior()) {
                Step::Value(value) => {
                    let frame = frames.last_mut()?;
                    frame.values.insert(id, value);
                    frame.next += 1;
                }
                Step::Call(definition, arguments) => {
                    let parameters = self.names.definitions[definition].parameters?;
                    let call = Some((definition, self.span(id)));
                    let body = self.names.definitions[definition].body;
                    frames.push(self.frame(body, parameters, arguments, call));
                }
            }
        }
    }

    fn frame(
        &self,
        root: ast::ExprId,
        parameters: &'a [ast::Ident],
        arguments: Vec<Value>,
        call: Option<(usize, Span)>,
    ) -> Frame<'a> {
        let order = subtree(self.file, root);
        Frame { order, next: 0, values: BTreeMap::new(), parameters, arguments, call }
    }

    fn too_much(&mut self, span: Option<Span>) {
        let message = "this form is too large: its functions expand to too much arithmetic";
        let mut diagnostic = Diagnostic::new(Code::TooLarge, message)
            .help("name parts that are used often with `let`, or use smaller matrices");
        if let Some(span) = span {
            diagnostic = diagnostic.label(span, "while this was expanded");
        }
        if self.reported.insert((Code::TooLarge, None)) {
            self.diagnostics.push(diagnostic);
        }
    }

    fn node(&mut self, id: ast::ExprId, frames: &[Frame<'a>], interior: bool) -> Step {
        let Some(frame) = frames.last() else { return Step::Value(None) };
        if self.names.broken.contains(&id) {
            return Step::Value(None);
        }
        let of = |id: &ast::ExprId| frame.values.get(id).copied().flatten();
        let expr = &self.file.exprs[id];
        let value = match &expr.kind {
            ExprKind::Error => None,
            ExprKind::Number(value) => Some(self.form.exprs.constant(*value)),
            ExprKind::Name(name) => self.name(name, frame),
            ExprKind::Array(items) => self.array(expr, items, frame, frames),
            // Reported by name resolution.
            ExprKind::Text(_) | ExprKind::Interior(..) => None,
            ExprKind::Call { function, arguments, .. } => {
                return self.call(id, &function.name, arguments, (frames, interior));
            }
            ExprKind::Index { base, indices } => self.index(*base, indices, frame, frames),
            ExprKind::Unary { op, op_span, operand } => of(operand).and_then(|a| {
                let built = match op {
                    UnaryOp::Neg => self.form.exprs.neg(a),
                    UnaryOp::Not => self.form.exprs.not(a),
                };
                self.built(built, *op_span, &[(*operand, a)], frames)
            }),
            ExprKind::Binary { op, op_span, left, right } => {
                of(left).zip(of(right)).and_then(|(a, b)| {
                    let built = self.binary(*op, a, b);
                    self.built(built, *op_span, &[(*left, a), (*right, b)], frames)
                })
            }
            ExprKind::If { condition, then, otherwise } => {
                of(condition).zip(of(then)).zip(of(otherwise)).and_then(|((c, a), b)| {
                    let built = self.form.exprs.select(c, a, b);
                    let operands = if self.form.exprs.ty(c) == Type::Truth {
                        [(*then, a), (*otherwise, b)].to_vec()
                    } else {
                        vec![(*condition, c)]
                    };
                    self.built(built, expr.span, &operands, frames)
                })
            }
        };
        Step::Value(value)
    }

    /// Returns the result of the builder, or reports its error.
    fn built(
        &mut self,
        built: Result<ExprId, BuildError>,
        span: Span,
        operands: &[(ast::ExprId, ExprId)],
        frames: &[Frame<'a>],
    ) -> Value {
        match built {
            Ok(value) => {
                let largest = |id: ExprId| self.form.exprs.shape(id).components();
                let operands = operands.iter().map(|&(_, id)| largest(id)).max().unwrap_or(1);
                self.work += largest(value).max(operands);
                Some(value)
            }
            Err(error) => {
                let places: Vec<(Span, Type)> = operands
                    .iter()
                    .map(|&(place, id)| (self.span(place), self.form.exprs.ty(id)))
                    .collect();
                let diagnostic = self.diagnose(&error, span, &places);
                self.report_in(diagnostic, frames);
                None
            }
        }
    }

    fn diagnose(&self, error: &BuildError, span: Span, operands: &[(Span, Type)]) -> Diagnostic {
        shapes::diagnose(&self.form, |field| self.test_name(field), error, span, operands)
    }

    /// Reports with the location of the call whose body this is.
    fn report_in(&mut self, mut diagnostic: Diagnostic, frames: &[Frame<'a>]) {
        if let Some((definition, span)) = frames.iter().find_map(|frame| frame.call) {
            let name = &self.names.definitions[definition].name.name;
            diagnostic = diagnostic.secondary(span, format!("in this call of `{name}`"));
        }
        self.report(diagnostic);
    }

    fn name(&mut self, name: &str, frame: &Frame<'a>) -> Value {
        if let Some(i) = frame.parameters.iter().position(|parameter| parameter.name == name) {
            return frame.arguments.get(i).copied().flatten();
        }
        let dim = self.form.dim;
        let terminal = match name {
            "x" => Terminal::Coordinates,
            "t" => Terminal::Time,
            "h" => Terminal::Diameter(None),
            "n" => Terminal::Normal,
            "k" => Terminal::Degree,
            #[expect(clippy::cast_precision_loss, reason = "1 to 3")]
            "dim" => return Some(self.form.exprs.constant(dim as f64)),
            "pi" => return Some(self.form.exprs.constant(std::f64::consts::PI)),
            "I" => return Some(self.form.exprs.identity(dim)),
            words::EXTENT if self.names.is_known(name) => Terminal::Extent(None),
            _ => match self.names.entries.get(name)?.meaning {
                Meaning::Field(i) => {
                    self.names.fields[i].shape?;
                    Terminal::Field(i, None)
                }
                Meaning::Aux(i) => {
                    self.names.aux[i].shape?;
                    Terminal::Aux(i, None)
                }
                Meaning::Param(i) if self.broken_params.contains(&i) => return None,
                Meaning::Param(i) => Terminal::Param(i),
                Meaning::Definition(i) => return self.lets.get(&i).copied().flatten(),
                Meaning::Test(i) => {
                    Terminal::Test(self.field(&self.names.tests.get(i)?.1.name)?, None)
                }
            },
        };
        let shape = self.form.shape_of(terminal)?;
        Some(self.form.exprs.terminal(terminal, shape))
    }

    /// Returns the field with this name.
    pub(super) fn field(&self, name: &str) -> Option<usize> {
        match self.names.entries.get(name)?.meaning {
            Meaning::Field(i) => Some(i),
            _ => None,
        }
    }

    /// Returns the declared name of a field's test function.
    pub(super) fn test_name(&self, field: usize) -> String {
        let of = self.form.fields.get(field).map(|field| field.name.as_str());
        let test = self.names.tests.iter().find(|(_, tested)| Some(tested.name.as_str()) == of);
        test.map_or("v", |(name, _)| name.name.as_str()).to_owned()
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Result<ExprId, BuildError> {
        let exprs = &mut self.form.exprs;
        match op {
            BinaryOp::Add => exprs.add(a, b),
            BinaryOp::Sub => exprs.sub(a, b),
            BinaryOp::Mul => exprs.mul(a, b),
            BinaryOp::Div => exprs.div(a, b),
            BinaryOp::Pow => exprs.pow(a, b),
            BinaryOp::Lt => exprs.compare(Comparison::Lt, a, b),
            BinaryOp::Le => exprs.compare(Comparison::Le, a, b),
            BinaryOp::Gt => exprs.compare(Comparison::Gt, a, b),
            BinaryOp::Ge => exprs.compare(Comparison::Ge, a, b),
            BinaryOp::Eq => exprs.compare(Comparison::Eq, a, b),
            BinaryOp::Ne => exprs.compare(Comparison::Ne, a, b),
            BinaryOp::And => exprs.and(a, b),
            BinaryOp::Or => exprs.or(a, b),
        }
    }

    fn call(
        &mut self,
        id: ast::ExprId,
        name: &str,
        arguments: &[ast::ExprId],
        (frames, interior): (&[Frame<'a>], bool),
    ) -> Step {
        let Some(frame) = frames.last() else { return Step::Value(None) };
        let values: Vec<Value> =
            arguments.iter().map(|id| frame.values.get(id).copied().flatten()).collect();
        let Some(known) = values.iter().copied().collect::<Option<Vec<ExprId>>>() else {
            return Step::Value(None);
        };
        if let Some(Meaning::Definition(i)) = self.names.entries.get(name).map(|e| e.meaning) {
            // A function in a cycle, or one that depends on a cycle, has no value.
            if !self.names.sound.contains(&i) {
                return Step::Value(None);
            }
            return match self.calls.get(&(i, interior, known)) {
                Some(&value) => Step::Value(value),
                None => Step::Call(i, values),
            };
        }
        // The chain rule visits all dependencies of the argument, once per direction; a word copies them.
        let visits = match name {
            "grad" | "div" | "curl" => self.form.dim,
            _ if interior && SideWord::of(name).is_some() => 1,
            _ => 0,
        };
        if visits > 0 {
            self.work += visits * self.form.exprs.reachable_in_order(&known).len();
        }
        let operands: Vec<_> = arguments.iter().copied().zip(known.iter().copied()).collect();
        let value = functions::apply(&mut self.form, name, &known, interior).and_then(|built| {
            let built = built.and_then(|value| self.with_gradients(name, &known, value));
            self.built(built, self.span(id), &operands, frames)
        });
        Step::Value(value)
    }

    /// Returns the value of a function, if gradients of fields in Hcurl and Hdiv that are new in it exist.
    fn with_gradients(
        &self,
        name: &str,
        arguments: &[ExprId],
        value: ExprId,
    ) -> Result<ExprId, BuildError> {
        let operation = match name {
            "div" => "div",
            "curl" => "curl",
            "grad" => "grad",
            _ => return Ok(value),
        };
        let found = |&terminal: &Terminal| self.form.is_cellwise_gradient(terminal);
        let Some(first) = self.form.terminals(&[value]).find(found).filter(|_| !self.cellwise)
        else {
            return Ok(value);
        };
        let own = |&terminal: &Terminal| self.form.space_of(terminal) == self.form.space_of(first);
        let terminal = self.form.terminals(arguments).find(own).unwrap_or(first);
        let rank = arguments.first().map_or(0, |&argument| self.form.exprs.shape(argument).rank());
        let operation = if rank == 1 { operation } else { "grad" };
        Err(BuildError::PartialDerivative { operation, terminal })
    }

    /// Returns `[a, b, c]` is a vector, `[[a, b], [c, d]]` a matrix.
    fn array(
        &mut self,
        expr: &ast::Expr,
        items: &[ast::ExprId],
        frame: &Frame<'a>,
        frames: &[Frame<'a>],
    ) -> Value {
        let of = |id: &ast::ExprId| frame.values.get(id).copied().flatten();
        let values = items.iter().map(of).collect::<Option<Vec<ExprId>>>()?;
        let ragged = |message: &str| Diagnostic::new(Code::RaggedArray, message.to_owned());
        let Some(&first) = values.first() else {
            self.report_in(ragged("an array has at least one item").label(expr.span, ""), frames);
            return None;
        };
        let expected = self.form.exprs.ty(first);
        let odd = values.iter().position(|&value| self.form.exprs.ty(value) != expected);
        if let Some(odd) = odd {
            let found = self.form.exprs.ty(values[odd]);
            let diagnostic = ragged("the items of an array have one shape")
                .label(self.span(items[odd]), format!("this is {found}"))
                .secondary(self.span(items[0]), format!("this is {expected}"));
            self.report_in(diagnostic, frames);
            return None;
        }
        let inner = match expected {
            Type::Tensor(shape) if shape.rank() <= 1 => shape,
            found => {
                let message = format!("an array holds numbers, or rows of numbers, not {found}");
                let diagnostic = ragged(&message).label(self.span(items[0]), "");
                self.report_in(diagnostic, frames);
                return None;
            }
        };
        let shape = if inner.is_scalar() {
            Shape::vector(items.len())
        } else {
            Shape::matrix(items.len(), inner.extent(0))
        };
        let components: Vec<ExprId> =
            values.iter().flat_map(|&value| self.form.exprs.components(value)).collect();
        self.work += components.len();
        if shape.extents().iter().any(|&n| n > super::declare::MOST_COMPONENTS) {
            let most = super::declare::MOST_COMPONENTS;
            let message = format!("a vector or a row has at most {most} components");
            let diagnostic = Diagnostic::new(Code::BadComponentCount, message)
                .label(expr.span, format!("this is {shape}"));
            self.report_in(diagnostic, frames);
            return None;
        }
        let built = self.form.exprs.literal(shape, components);
        self.built(built, expr.span, &[], frames)
    }

    fn index(
        &mut self,
        base: ast::ExprId,
        indices: &[ast::ExprId],
        frame: &Frame<'a>,
        frames: &[Frame<'a>],
    ) -> Value {
        let of = |id: &ast::ExprId| frame.values.get(id).copied().flatten();
        let mut places = Vec::with_capacity(indices.len());
        for index in indices {
            let value = of(index)?;
            let whole = self.form.exprs.value(value).filter(|number| {
                number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number)
            });
            let Some(number) = whole else {
                let diagnostic = Diagnostic::new(Code::BadIndex, "an index is a whole number")
                    .label(self.span(*index), "this is not a constant whole number from 0 up")
                    .help("indices are known when the form is compiled, and count from 0");
                self.report_in(diagnostic, frames);
                return None;
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and in range"
            )]
            places.push(number as usize);
        }
        let value = of(&base)?;
        let built = self.form.exprs.index(value, &places);
        let span = indices.iter().map(|&index| self.span(index)).reduce(Span::to);
        self.built(built, span.unwrap_or_else(|| self.span(base)), &[(base, value)], frames)
    }
}

/// The next action for a node.
enum Step {
    /// Its value is available.
    Value(Value),
    /// The body of a function with these arguments.
    Call(usize, Vec<Value>),
}
