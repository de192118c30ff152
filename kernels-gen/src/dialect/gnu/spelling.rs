//! Statements and expressions of kernels as C with GNU vector types.

use crate::dialect::fold::{Expression, Precedence};
use crate::dialect::maths::c_function;
use crate::dialect::names::{GNU_C, ReservedNames};
use crate::dialect::vectors::{Function, Kind, Spelling, infix, product, vector};
use crate::kir::{Binary, Comparison, Condition, Kernel, Precision, TableId, Unary};
use std::fmt::Write;

/// C with vector types such as `f64x4`, and their masks `m64x4`.
pub(super) struct GnuC;

/// Returns the scalar type of a precision.
pub(super) fn scalar(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => "double",
        Precision::F32 => "float",
    }
}

/// Returns the end of the names of functions and numbers in a precision.
pub(super) fn suffix(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => "",
        Precision::F32 => "f",
    }
}

/// Returns a literal that reads back as the same number.
pub(super) fn literal_text(number: f64, precision: Precision) -> String {
    let suffix = suffix(precision);
    if number.is_infinite() {
        let sign = if number > 0.0 { "" } else { "-" };
        return format!("{sign}__builtin_inf{suffix}()");
    }
    format!("{number:?}{suffix}")
}

/// Returns the name of a table, which is global.
pub(super) fn table_name(kernel: &Kernel, id: TableId) -> String {
    format!("{}_{}", kernel.name, kernel.tables[id].name)
}

/// Returns the name of a kernel's mask type.
fn mask(kernel: &Kernel) -> String {
    vector(kernel).replacen('f', "m", 1)
}

/// Returns the call of a function on vectors of the kernel's type.
fn on_vectors(kernel: &Kernel, name: &str, arguments: &[&Expression]) -> Expression {
    let arguments: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
    Expression::primary(format!("{name}_{}({})", vector(kernel), arguments.join(", ")))
}

fn literal(kernel: &Kernel, number: f64) -> Expression {
    let text = literal_text(number, kernel.precision);
    let binding = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Primary };
    Expression::new(binding, text)
}

fn splat(kernel: &Kernel, number: f64) -> Expression {
    on_vectors(kernel, "splat", &[&literal(kernel, number)])
}

/// Returns the call of a function of the compiler, for scalars.
fn on_scalars(kernel: &Kernel, name: &str, arguments: &[&Expression]) -> Expression {
    let arguments: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
    let suffix = suffix(kernel.precision);
    Expression::primary(format!("__builtin_{name}{suffix}({})", arguments.join(", ")))
}

fn choice(condition: &str, yes: &Expression, no: &Expression) -> Expression {
    let [yes, no] = [yes, no].map(|one| one.behind(Precedence::Choice));
    Expression::new(Precedence::Choice, format!("{condition} ? {yes} : {no}"))
}

impl Spelling for GnuC {
    const RESERVED: &'static ReservedNames = &GNU_C;
    const WITHIN: usize = 24;

    fn literal(kernel: &Kernel, number: f64) -> Expression {
        literal(kernel, number)
    }

    fn splat(kernel: &Kernel, is_truth: bool, of: &Expression) -> Expression {
        match is_truth {
            true => Expression::primary(format!("splat_{}({})", mask(kernel), of.text)),
            false => on_vectors(kernel, "splat", &[of]),
        }
    }

    fn table(kernel: &Kernel, id: TableId) -> String {
        table_name(kernel, id)
    }

    fn element(array: &str, at: &str) -> Expression {
        Expression::primary(format!("{array}[{at}]"))
    }

    fn address(array: &str, at: &str) -> String {
        format!("{array} + {at}")
    }

    fn integer(array: &str, at: &str) -> String {
        format!("{array}[{at}]")
    }

    fn define(kernel: &Kernel, kind: Kind, name: &str, value: &str) -> String {
        let kind = match kind {
            Kind::Real(true) => vector(kernel),
            Kind::Real(false) => scalar(kernel.precision).to_owned(),
            Kind::Truth(true) => mask(kernel),
            Kind::Truth(false) => "int".to_owned(),
            Kind::Integer => "size_t".to_owned(),
        };
        format!("const {kind} {name} = {value}")
    }

    fn repeat(var: &str, extent: usize) -> String {
        format!("for (size_t {var} = 0; {var} < {extent}; ++{var}) {{")
    }

    fn when(condition: &str) -> String {
        format!("if ({condition}) {{")
    }

    fn condition(condition: &Condition, name: &str, other: &str) -> String {
        match condition {
            Condition::Below(_, bound) => format!("{name} < {bound}"),
            Condition::Something(_) => format!("{name} != UINT32_MAX"),
            Condition::Equals(_, number) => format!("{name} == {number}"),
            Condition::Bit(_, bit) => format!("(({name} >> {bit}) & 1) == 1"),
            Condition::NoBit(_, bit) => format!("(({name} >> {bit}) & 1) == 0"),
            Condition::Meet(..) => format!("({name} & {other}) != 0"),
            Condition::Active | Condition::ActiveCell(_) => {
                unreachable!("lanes of a vector differ in what is active")
            }
        }
    }

    fn unless_masked(map: &str, call: &str) -> String {
        format!("if (*({map}) != UINT32_MAX) {call}")
    }

    fn lesser(a: &str, b: &str) -> String {
        format!("lesser({a}, {b})")
    }

    fn pointers(kernel: &Kernel, arrays: &[&str], written: bool) -> String {
        let (access, kind) = (if written { "" } else { "const " }, vector(kernel));
        format!("({access}{kind} *const[]){{{}}}", arrays.join(", "))
    }

    fn call(kernel: &Kernel, function: &Function<'_>, arguments: &[String]) -> String {
        let Function { name, constants, adds } = function;
        let mut text = (*name).to_owned();
        for constant in *constants {
            let _ = write!(text, "_{constant}");
        }
        text.push_str(match adds {
            None => "",
            Some(true) => "_add",
            Some(false) => "_set",
        });
        format!("{text}_{}({})", vector(kernel), arguments.join(", "))
    }

    fn store(kernel: &Kernel, value: &Expression, target: &str, at: &str) -> String {
        format!("store_{}({}, {target} + {at})", vector(kernel), value.text)
    }

    fn load(kernel: &Kernel, source: &str, at: &str) -> Expression {
        Expression::primary(format!("load_{}({source} + {at})", vector(kernel)))
    }

    fn prefetch(_: &Kernel, level: usize, array: &str, at: &str) -> String {
        format!("prefetch_{level}((uintptr_t){array} + sizeof *{array} * ({at}))")
    }

    fn fma(kernel: &Kernel, wide: bool, negated: bool, of: [&Expression; 3]) -> Expression {
        let [a, b, c] = of;
        match (wide, negated) {
            (true, false) => on_vectors(kernel, "fma", &of),
            (true, true) => {
                let a = format!("-{}", a.within(Precedence::Primary));
                on_vectors(kernel, "fma", &[&Expression::new(Precedence::Prefix, a), b, c])
            }
            (false, false) => infix(Precedence::Sum, &product(a, b), "+", c),
            (false, true) => infix(Precedence::Sum, c, "-", &product(a, b)),
        }
    }

    fn reciprocal(kernel: &Kernel, wide: bool, a: &Expression) -> Expression {
        let one = if wide { splat(kernel, 1.0) } else { literal(kernel, 1.0) };
        infix(Precedence::Product, &one, "/", a)
    }

    fn unary(kernel: &Kernel, function: Unary, wide: bool, a: &Expression) -> Expression {
        let [zero, one, minus] = [0.0, 1.0, -1.0].map(|number| match wide {
            true => splat(kernel, number),
            false => literal(kernel, number),
        });
        let less =
            |a: &Expression, b: &Expression| Self::compare(kernel, Comparison::Lt, wide, a, b);
        match function {
            Unary::Neg => {
                Expression::new(Precedence::Prefix, format!("-{}", a.within(Precedence::Primary)))
            }
            Unary::Sign => {
                let below = Self::select(kernel, wide, &less(a, &zero), &minus, &zero);
                Self::select(kernel, wide, &less(&zero, a), &one, &below)
            }
            other if wide => on_vectors(kernel, c_function(other), &[a]),
            other => on_scalars(kernel, c_function(other), &[a]),
        }
    }

    fn binary(
        kernel: &Kernel,
        function: Binary,
        wide: bool,
        a: &Expression,
        b: &Expression,
    ) -> Expression {
        let call = |name: &str| match wide {
            true => on_vectors(kernel, name, &[a, b]),
            false => on_scalars(kernel, name, &[a, b]),
        };
        // A NaN operand loses.
        let lesser = |less: &Expression, more: &Expression| {
            let condition = Self::compare(kernel, Comparison::Lt, wide, less, more);
            Self::select(kernel, wide, &condition, b, a)
        };
        match function {
            Binary::Add => infix(Precedence::Sum, a, "+", b),
            Binary::Sub => infix(Precedence::Sum, a, "-", b),
            Binary::Mul => infix(Precedence::Product, a, "*", b),
            Binary::Div => infix(Precedence::Product, a, "/", b),
            Binary::Pow => call("pow"),
            Binary::Atan2 => call("atan2"),
            Binary::Min => lesser(b, a),
            Binary::Max => lesser(a, b),
        }
    }

    fn compare(
        kernel: &Kernel,
        comparison: Comparison,
        wide: bool,
        a: &Expression,
        b: &Expression,
    ) -> Expression {
        let sign = match comparison {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
        };
        let [a, b] = [a, b].map(|side| side.within(Precedence::Sum));
        match wide {
            true => {
                let text = format!("({})({a} {sign} {b})", mask(kernel));
                Expression::new(Precedence::Prefix, text)
            }
            false => Expression::new(Precedence::Compare, format!("{a} {sign} {b}")),
        }
    }

    fn join(both: bool, wide: bool, a: &Expression, b: &Expression) -> Expression {
        let (binding, sign) = match (both, wide) {
            (true, true) => (Precedence::Choice, "&"),
            (false, true) => (Precedence::Choice, "|"),
            (true, false) => (Precedence::And, "&&"),
            (false, false) => (Precedence::Or, "||"),
        };
        let [a, b] = [a, b].map(|side| side.within(Precedence::Compare));
        Expression::new(binding, format!("{a} {sign} {b}"))
    }

    fn not(wide: bool, a: &Expression) -> Expression {
        let sign = if wide { "~" } else { "!" };
        Expression::new(Precedence::Prefix, format!("{sign}{}", a.within(Precedence::Primary)))
    }

    fn select(
        kernel: &Kernel,
        wide: bool,
        condition: &Expression,
        yes: &Expression,
        no: &Expression,
    ) -> Expression {
        match wide {
            true => on_vectors(kernel, "select", &[condition, yes, no]),
            false => choice(&condition.within(Precedence::Or), yes, no),
        }
    }
}
