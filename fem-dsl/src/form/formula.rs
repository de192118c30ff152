//! The rows of a [`Form`] as formulas in the notation of the language: `δf1[u] = kappa * grad(δu)`.
//!
//! Values that a `let` names, and long ones that occur more than once, are printed by name and listed after the rows.
//! So the text of a formula grows with the number of operations, whatever they share.

use super::expr::Expr;
use super::print::{binary_word, comparison_sign, unary_word};
use super::{ExprId, Form, Row};
use crate::arena::Id;
use crate::terms::Binary;
use std::collections::{BTreeMap, BTreeSet};

/// The longest text that is repeated.
const SHORT: usize = 24;
/// The longest text of a value without a name.
const LONG: usize = 160;

/// Precedence of the outermost operator of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Choice,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

/// A formula with its outermost operator.
#[derive(Clone, Debug)]
struct Text(String, Binding);

impl Text {
    fn atom(text: impl Into<String>) -> Self {
        Self(text.into(), Binding::Atom)
    }

    /// Returns the text as an operand of an operator, in brackets if it binds less tightly.
    fn inside(&self, least: Binding) -> String {
        if self.1 < least { format!("({})", self.0) } else { self.0.clone() }
    }
}

/// The formulas of one integral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formulas {
    /// The region: `cells`, `boundary "a"`.
    pub region: String,
    /// `f1[u] = …`
    pub rows: Vec<String>,
    /// `δf1[u] = …`, those of the Jacobian's action.
    pub action: Vec<String>,
    /// `e7 = …`, the values that the rows name, operands first; those of a `let` are left out.
    pub shared: Vec<String>,
}

impl Form {
    /// Returns the rows of each integral as formulas, with those of the Jacobian's action if the form has been
    /// differentiated.
    pub fn formulas(&self) -> Vec<Formulas> {
        self.integrals
            .iter()
            .map(|integral| {
                let mut printer = Printer::new(self, integral.rows.iter().chain(&integral.action));
                let sided = integral.region.is_interior();
                Formulas {
                    region: integral.region.to_string(),
                    rows: printer.rows("", sided, &integral.rows),
                    action: printer.rows("δ", sided, &integral.action),
                    shared: printer.shared(),
                }
            })
            .collect()
    }
}

/// The texts of the values of one integral.
struct Printer<'a> {
    form: &'a Form,
    /// Texts of the values themselves.
    texts: BTreeMap<ExprId, Text>,
    /// Values that are printed by a name.
    names: BTreeMap<ExprId, String>,
    /// The values of `let`s that a row has printed.
    printed: BTreeSet<ExprId>,
}

impl<'a> Printer<'a> {
    fn new(form: &'a Form, rows: impl Iterator<Item = &'a Row>) -> Self {
        let roots: Vec<ExprId> = rows.flat_map(|row| row.factors()).collect();
        let order = form.exprs.reachable_in_order(&roots);
        let mut uses: BTreeMap<ExprId, usize> = BTreeMap::new();
        for id in &order {
            for operand in form.exprs.expr(*id).operands() {
                *uses.entry(operand).or_default() += 1;
            }
        }
        let mut printer =
            Self { form, texts: BTreeMap::new(), names: BTreeMap::new(), printed: BTreeSet::new() };
        for id in order {
            let text = printer.operation(id);
            let length = text.0.chars().count();
            let repeated = uses.get(&id).is_some_and(|uses| *uses > 1) && length > SHORT;
            if let Some(name) = form.names.get(&id).filter(|_| length > 1) {
                printer.names.insert(id, name.clone());
            } else if repeated || length > LONG && uses.contains_key(&id) {
                printer.names.insert(id, format!("e{}", id.index()));
            }
            printer.texts.insert(id, text);
        }
        printer
    }

    /// Returns the text of an operand.
    fn text(&self, id: ExprId) -> Text {
        match self.names.get(&id) {
            Some(name) => Text::atom(name.clone()),
            None => self.texts.get(&id).cloned().unwrap_or_else(|| Text::atom(id.to_string())),
        }
    }

    fn rows(&mut self, mark: &str, sided: bool, rows: &[Row]) -> Vec<String> {
        let mut lines = Vec::new();
        for row in rows {
            for (name, value) in [("f0", row.f0), ("f1", row.f1), ("f2", row.f2)] {
                let Some(value) = value else { continue };
                let field = &self.form.fields[row.field].name;
                let tested = match sided {
                    true => format!("{}({field})", row.side.word()),
                    false => field.clone(),
                };
                // Of a row that is a `let`, its value: the name says nothing new.
                let text = match self.form.names.contains_key(&value) && self.printed.insert(value)
                {
                    true => self.texts[&value].0.clone(),
                    false => self.text(value).0,
                };
                lines.push(format!("{mark}{name}[{tested}] = {text}"));
            }
        }
        lines
    }

    /// Returns the definitions of the values that this printer named.
    fn shared(&self) -> Vec<String> {
        let own = self.names.iter().filter(|(id, _)| !self.form.names.contains_key(id));
        own.map(|(id, name)| format!("{name} = {}", self.texts[id].0)).collect()
    }

    fn operation(&self, id: ExprId) -> Text {
        let infix = |a: &ExprId, sign: &str, b: &ExprId, own: Binding, right: Binding| {
            let (a, b) = (self.text(*a).inside(own), self.text(*b).inside(right));
            Text(format!("{a} {sign} {b}"), own)
        };
        let call = |name: &str, operands: &[ExprId]| {
            let operands: Vec<String> = operands.iter().map(|id| self.text(*id).0).collect();
            Text::atom(format!("{name}({})", operands.join(", ")))
        };
        let expr = self.form.exprs.expr(id);
        match expr {
            Expr::Constant(number) => {
                let value = number.get();
                let binding = if value < 0.0 { Binding::Sign } else { Binding::Atom };
                Text(format!("{value}"), binding)
            }
            Expr::Zero(_) => Text::atom("0"),
            Expr::Identity(_) => Text::atom("I"),
            Expr::Terminal(terminal) => Text::atom(self.form.terminal_name(*terminal)),
            Expr::Literal(_, components) => self.literal(id, components),
            Expr::Component(a, flat) => {
                let mut rest = *flat;
                let mut indices = Vec::new();
                for extent in self.form.exprs.shape(*a).extents().into_iter().rev() {
                    indices.insert(0, (rest % extent).to_string());
                    rest /= extent;
                }
                let base = self.text(*a).inside(Binding::Atom);
                Text::atom(format!("{base}[{}]", indices.join(", ")))
            }
            Expr::Neg(a) => {
                Text(format!("-{}", self.text(*a).inside(Binding::Sign)), Binding::Sign)
            }
            Expr::Add(a, b) => infix(a, "+", b, Binding::Sum, Binding::Sum),
            Expr::Sub(a, b) => infix(a, "-", b, Binding::Sum, Binding::Product),
            Expr::Mul(a, b) => infix(a, "*", b, Binding::Product, Binding::Product),
            Expr::Div(a, b) => infix(a, "/", b, Binding::Product, Binding::Sign),
            Expr::Dot(a, b) => call("dot", &[*a, *b]),
            Expr::Inner(a, b) => call("inner", &[*a, *b]),
            Expr::Norm(a) => call("norm", &[*a]),
            Expr::Outer(a, b) => call("outer", &[*a, *b]),
            Expr::Cross(a, b) => call("cross", &[*a, *b]),
            Expr::TensorCross(a, b) => call("tensor_cross", &[*a, *b]),
            Expr::Matrix(function, a) => call(function.name(), &[*a]),
            Expr::Unary(function, a) => call(unary_word(*function), &[*a]),
            Expr::Binary(Binary::Pow, a, b) => self.power(*a, self.text(*b).inside(Binding::Sign)),
            Expr::Binary(function, a, b) => call(binary_word(*function), &[*a, *b]),
            Expr::Powi(a, n) => self.power(*a, n.to_string()),
            Expr::Compare(comparison, a, b) => {
                infix(a, comparison_sign(*comparison), b, Binding::Comparison, Binding::Sum)
            }
            Expr::And(a, b) => infix(a, "&&", b, Binding::And, Binding::And),
            Expr::Or(a, b) => infix(a, "||", b, Binding::Or, Binding::Or),
            Expr::Not(a) => Text(format!("!{}", self.text(*a).inside(Binding::Atom)), Binding::And),
            Expr::Select(c, a, b) => {
                let [c, a, b] = [c, a, b].map(|id| self.text(*id).0);
                Text(format!("if {c} {{ {a} }} else {{ {b} }}"), Binding::Choice)
            }
        }
    }

    fn power(&self, base: ExprId, exponent: String) -> Text {
        Text(format!("{}^{exponent}", self.text(base).inside(Binding::Atom)), Binding::Power)
    }

    /// Returns `[a, b]`, a matrix by rows.
    fn literal(&self, id: ExprId, components: &[ExprId]) -> Text {
        let mut items: Vec<String> = components.iter().map(|id| self.text(*id).0).collect();
        for extent in self.form.exprs.shape(id).extents().into_iter().rev() {
            let rows = items.chunks(extent.max(1)).map(|row| format!("[{}]", row.join(", ")));
            items = rows.collect();
        }
        Text::atom(items.concat())
    }
}
