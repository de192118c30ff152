//! The text of a [`Form`], as printed by `wf emit --stage form`: one line per expression, operands first, only
//! expressions that the roots depend on.

use super::expr::{Expr, Terminal};
use super::{ExprId, Form, Row, rate_name};
use crate::terms::{Binary, Comparison, Location, Space, Unary};
use std::fmt;

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "form {} in {}D", self.name, self.dim)?;
        for field in &self.fields {
            let (name, space) = (&field.name, Notation(field.space));
            writeln!(f, "  field {name}: {:?} in {space}", super::Shape::from(field.shape))?;
        }
        for aux in &self.aux {
            write!(f, "  aux {}: {:?} on ", aux.name, super::Shape::from(aux.shape))?;
            match aux.location {
                Location::Nodes(space) => writeln!(f, "nodes in {}", Notation(space))?,
                Location::Cells => writeln!(f, "cells")?,
                Location::Points => writeln!(f, "points")?,
            }
        }
        for (param, default) in self.params.iter().zip(&self.defaults) {
            let shape = super::Shape::from(param.shape);
            writeln!(f, "  param {}: {shape:?} = {default} = {:?}", param.name, param.value)?;
        }
        for id in self.exprs.reachable_in_order(&self.roots()) {
            let expr = self.exprs.expr(id);
            write!(f, "  {id}: {:?} = {}", self.exprs.shape(id), Operation(self, expr))?;
            match self.names.get(&id) {
                Some(name) => writeln!(f, "  // {name}")?,
                None => writeln!(f)?,
            }
        }
        for integral in &self.integrals {
            writeln!(f, "  on {}", integral.region)?;
            let sided = integral.region.is_interior();
            print_rows(f, self, ("", sided), &integral.rows)?;
            print_rows(f, self, ("δ", sided), &integral.action)?;
            if let Some(energy) = integral.energy {
                writeln!(f, "    energy = {energy}")?;
            }
        }
        Ok(())
    }
}

fn print_rows(
    f: &mut fmt::Formatter<'_>,
    form: &Form,
    (mark, sided): (&str, bool),
    rows: &[Row],
) -> fmt::Result {
    for row in rows {
        for (name, value) in [("f0", row.f0), ("f1", row.f1), ("f2", row.f2)] {
            if let Some(value) = value {
                let field = &form.fields[row.field].name;
                match sided {
                    true => {
                        writeln!(f, "    {mark}{name}[{}({field})] = {value}", row.side.word())?
                    }
                    false => writeln!(f, "    {mark}{name}[{field}] = {value}")?,
                }
            }
        }
    }
    Ok(())
}

/// Prints a value of another module in the notation of the language.
struct Notation<T>(T);

impl fmt::Display for Notation<Space> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One operation with its operands' ids.
struct Operation<'a>(&'a Form, &'a Expr);

impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = |f: &mut fmt::Formatter<'_>, name: &str| {
            let operands: Vec<String> = self.1.operands().iter().map(ExprId::to_string).collect();
            write!(f, "{name}({})", operands.join(", "))
        };
        match self.1 {
            Expr::Constant(number) => write!(f, "{:?}", number.get()),
            Expr::Zero(_) => f.write_str("0"),
            Expr::Identity(_) => f.write_str("I"),
            Expr::Terminal(terminal) => f.write_str(&self.0.terminal_name(*terminal)),
            Expr::Literal(..) => call(f, "literal"),
            Expr::Component(a, flat) => {
                let mut rest = *flat;
                let mut indices = Vec::new();
                for extent in self.0.exprs.shape(*a).extents().into_iter().rev() {
                    indices.insert(0, (rest % extent).to_string());
                    rest /= extent;
                }
                write!(f, "{a}[{}]", indices.join(", "))
            }
            Expr::Neg(a) => write!(f, "-{a}"),
            Expr::Add(a, b) => write!(f, "{a} + {b}"),
            Expr::Sub(a, b) => write!(f, "{a} - {b}"),
            Expr::Mul(a, b) => write!(f, "{a} * {b}"),
            Expr::Div(a, b) => write!(f, "{a} / {b}"),
            Expr::Dot(..) => call(f, "dot"),
            Expr::Inner(..) => call(f, "inner"),
            Expr::Norm(_) => call(f, "norm"),
            Expr::Outer(..) => call(f, "outer"),
            Expr::Cross(..) => call(f, "cross"),
            Expr::TensorCross(..) => call(f, "tensor_cross"),
            Expr::Matrix(function, _) => call(f, function.name()),
            Expr::Unary(function, _) => call(f, unary_word(*function)),
            Expr::Binary(Binary::Pow, a, b) => write!(f, "{a} ^ {b}"),
            Expr::Binary(function, ..) => call(f, binary_word(*function)),
            Expr::Powi(a, n) => write!(f, "{a} ^ {n}"),
            Expr::Compare(comparison, a, b) => {
                write!(f, "{a} {} {b}", comparison_sign(*comparison))
            }
            Expr::And(a, b) => write!(f, "{a} && {b}"),
            Expr::Or(a, b) => write!(f, "{a} || {b}"),
            Expr::Not(a) => write!(f, "!{a}"),
            Expr::Select(c, a, b) => write!(f, "if {c} {{ {a} }} else {{ {b} }}"),
        }
    }
}

impl Form {
    /// Returns the terminal in the notation of the language.
    pub fn terminal_name(&self, terminal: Terminal) -> String {
        let field = |i: usize| self.fields[i].name.as_str();
        let first = self.space_of(terminal).map_or("grad", Space::derivative);
        let second = |name: String| match self.is_cellwise_gradient(terminal) {
            true => format!("grad({name})"),
            false => format!("grad(grad({name}))"),
        };
        let name = match terminal {
            Terminal::Field(i, _) => field(i).to_owned(),
            Terminal::FieldGradient(i, _) => format!("{first}({})", field(i)),
            Terminal::FieldHessian(i, _) => second(field(i).to_owned()),
            Terminal::Test(i, _) => format!("test_{}", field(i)),
            Terminal::TestGradient(i, _) => format!("{first}(test_{})", field(i)),
            Terminal::TestHessian(i, _) => second(format!("test_{}", field(i))),
            Terminal::Direction(i, _) => format!("δ{}", field(i)),
            Terminal::DirectionGradient(i, _) => format!("{first}(δ{})", field(i)),
            Terminal::DirectionHessian(i, _) => second(format!("δ{}", field(i))),
            Terminal::Aux(i, _) => self.aux[i].name.clone(),
            Terminal::AuxGradient(i, _) => format!("{first}({})", self.aux[i].name),
            Terminal::Rate(i, order, _) => rate_name(field(i), order),
            Terminal::RateGradient(i, order, _) => {
                format!("{first}({})", rate_name(field(i), order))
            }
            Terminal::Param(i) => self.params[i].name.clone(),
            Terminal::Coordinates => "x".to_owned(),
            Terminal::Normal => "n".to_owned(),
            Terminal::Time => "t".to_owned(),
            Terminal::Diameter(_) => "h".to_owned(),
            Terminal::Extent(_) => "hn".to_owned(),
            Terminal::Penalty(i, _) => format!("penalty({})", field(i)),
            Terminal::Degree => "k".to_owned(),
        };
        match terminal.side() {
            Some(side) => format!("{}({name})", side.word()),
            None => name,
        }
    }
}

/// Returns a scalar function's name in the language.
pub(super) fn unary_word(function: Unary) -> &'static str {
    match function {
        Unary::Neg => "-",
        Unary::Sqrt => "sqrt",
        Unary::Exp => "exp",
        Unary::Log => "log",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Asin => "asin",
        Unary::Acos => "acos",
        Unary::Atan => "atan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Tanh => "tanh",
        Unary::Abs => "abs",
        Unary::Sign => "sign",
    }
}

/// Returns a function of two numbers, or an operator, in the language.
pub(super) fn binary_word(function: Binary) -> &'static str {
    match function {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Pow => "^",
        Binary::Atan2 => "atan2",
        Binary::Min => "min",
        Binary::Max => "max",
    }
}

/// Returns a comparison in the language.
pub(super) fn comparison_sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
        Comparison::Eq => "==",
        Comparison::Ne => "!=",
    }
}
