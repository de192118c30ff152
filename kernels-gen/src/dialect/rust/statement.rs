//! Statements and expressions of kernels as Rust.

use super::number;
use crate::dialect::fold::{Expression, Precedence};
use crate::dialect::names::{RUST, ReservedNames};
use crate::dialect::vectors::{Function, Kind, Spelling, infix, product};
use crate::kir::{Binary, Comparison, Condition, Kernel, TableId, Unary};
use std::fmt::Write;

/// Rust with the vector types `V` and `M`.
pub(super) struct Rust;

impl Spelling for Rust {
    const RESERVED: &'static ReservedNames = &RUST;

    /// LLVM preserves more of the source order than necessary: without a bound BP1 of degrees 4 and 5 took 3 % longer,
    /// and with 24 the text is not a line longer.
    const WITHIN: usize = 24;

    fn literal(_: &Kernel, constant: f64) -> Expression {
        literal(constant)
    }

    fn splat(_: &Kernel, is_truth: bool, of: &Expression) -> Expression {
        let kind = if is_truth { "M" } else { "V" };
        Expression::primary(format!("{kind}::splat({})", of.text))
    }

    fn table(kernel: &Kernel, id: TableId) -> String {
        format!("{}.as_ptr()", kernel.tables[id].name)
    }

    fn element(array: &str, at: &str) -> Expression {
        Expression::new(Precedence::Prefix, format!("*{array}.add({at})"))
    }

    fn address(array: &str, at: &str) -> String {
        format!("{array}.add({at})")
    }

    fn integer(array: &str, at: &str) -> String {
        format!("*{array}.add({at}) as usize")
    }

    fn define(_: &Kernel, _: Kind, name: &str, value: &str) -> String {
        format!("let {name} = {value}")
    }

    fn repeat(var: &str, extent: usize) -> String {
        format!("for {var} in 0..{extent} {{")
    }

    fn when(condition: &str) -> String {
        format!("if {condition} {{")
    }

    fn condition(condition: &Condition, name: &str, other: &str) -> String {
        match condition {
            Condition::Below(_, bound) => format!("{name} < {bound}"),
            Condition::Something(_) => format!("{name} != u32::MAX as usize"),
            Condition::Equals(_, number) => format!("{name} == {number}"),
            Condition::Bit(_, bit) => format!("{name} >> {bit} & 1 == 1"),
            Condition::NoBit(_, bit) => format!("{name} >> {bit} & 1 == 0"),
            Condition::Meet(..) => format!("{name} & {other} != 0"),
            Condition::Active | Condition::ActiveCell(_) => {
                unreachable!("lanes of a vector differ in what is active")
            }
        }
    }

    fn unless_masked(map: &str, call: &str) -> String {
        format!("if *{map} != u32::MAX {{ {call} }}")
    }

    fn lesser(a: &str, b: &str) -> String {
        format!("({a}).min({b})")
    }

    fn pointers(_: &Kernel, arrays: &[&str], written: bool) -> String {
        let cast = if written { "" } else { ".cast_const()" };
        let arrays: Vec<String> = arrays.iter().map(|array| format!("{array}{cast}")).collect();
        format!("[{}]", arrays.join(", "))
    }

    fn call(_: &Kernel, function: &Function<'_>, arguments: &[String]) -> String {
        let Function { name, constants, adds } = function;
        let of = if *name == "gather" { "V::" } else { "" };
        let constants = constants.iter().map(ToString::to_string);
        let constants: Vec<String> = constants.chain(adds.map(|adds| adds.to_string())).collect();
        let mut text = format!("{of}{name}");
        if !constants.is_empty() {
            let _ = write!(text, "::<{}>", constants.join(", "));
        }
        format!("{text}({})", arguments.join(", "))
    }

    fn store(_: &Kernel, value: &Expression, target: &str, at: &str) -> String {
        format!("{}.store({target}.add({at}))", value.within(Precedence::Primary))
    }

    fn load(_: &Kernel, source: &str, at: &str) -> Expression {
        Expression::primary(format!("V::load({source}.add({at}))"))
    }

    fn prefetch(_: &Kernel, level: usize, array: &str, at: &str) -> String {
        format!("prefetch::<{level}>({array}.wrapping_add({at}).cast())")
    }

    fn fma(_: &Kernel, wide: bool, negated: bool, [a, b, c]: [&Expression; 3]) -> Expression {
        match (wide, negated) {
            (true, false) => method(a, "fma", &[b, c]),
            (true, true) => method(a, "fma_neg", &[b, c]),
            (false, false) => infix(Precedence::Sum, &product(a, b), "+", c),
            (false, true) => infix(Precedence::Sum, c, "-", &product(a, b)),
        }
    }

    fn reciprocal(_: &Kernel, wide: bool, a: &Expression) -> Expression {
        match wide {
            true => method(a, "reciprocal", &[]),
            false => infix(Precedence::Product, &literal(1.0), "/", a),
        }
    }

    fn unary(_: &Kernel, function: Unary, wide: bool, a: &Expression) -> Expression {
        unary(function, wide, a)
    }

    fn binary(
        _: &Kernel,
        function: Binary,
        wide: bool,
        a: &Expression,
        b: &Expression,
    ) -> Expression {
        binary(function, wide, a, b)
    }

    fn compare(
        _: &Kernel,
        comparison: Comparison,
        wide: bool,
        a: &Expression,
        b: &Expression,
    ) -> Expression {
        compare(comparison, wide, a, b)
    }

    fn join(both: bool, wide: bool, a: &Expression, b: &Expression) -> Expression {
        match (wide, both) {
            (true, true) => method(a, "and", &[b]),
            (true, false) => method(a, "or", &[b]),
            (false, true) => infix(Precedence::And, a, "&", b),
            (false, false) => infix(Precedence::Or, a, "|", b),
        }
    }

    fn not(wide: bool, a: &Expression) -> Expression {
        match wide {
            true => method(a, "not", &[]),
            false => {
                let text = format!("!{}", a.within(Precedence::Primary));
                Expression::new(Precedence::Prefix, text)
            }
        }
    }

    fn select(
        _: &Kernel,
        wide: bool,
        condition: &Expression,
        yes: &Expression,
        no: &Expression,
    ) -> Expression {
        match wide {
            true => method(condition, "select", &[yes, no]),
            false => choice(&condition.text, yes, no),
        }
    }
}

fn literal(constant: f64) -> Expression {
    let text = number(constant);
    let binding = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Primary };
    Expression::new(binding, text)
}

fn method(own: &Expression, name: &str, others: &[&Expression]) -> Expression {
    let others: Vec<&str> = others.iter().map(|other| other.text.as_str()).collect();
    let own = own.within(Precedence::Primary);
    Expression::primary(format!("{own}.{name}({})", others.join(", ")))
}

fn choice(condition: &str, yes: &Expression, no: &Expression) -> Expression {
    let text = format!("if {condition} {{ {} }} else {{ {} }}", yes.text, no.text);
    Expression::new(Precedence::Choice, text)
}

fn unary(function: Unary, wide: bool, a: &Expression) -> Expression {
    let own = a.within(Precedence::Primary);
    let name = match function {
        Unary::Neg if wide => return Expression::primary(format!("{own}.neg()")),
        Unary::Neg => return Expression::new(Precedence::Prefix, format!("-{own}")),
        Unary::Sign if wide => {
            let a = &a.text;
            return Expression::primary(format!(
                "V::splat(0.0).lt({a}).select(V::splat(1.0), {own}.lt(V::splat(0.0)).select(V::splat(-1.0), V::splat(0.0)))"
            ));
        }
        Unary::Sign => {
            let below = choice(&format!("{own} < 0.0"), &literal(-1.0), &literal(0.0));
            let text = format!("if {own} > 0.0 {{ 1.0 }} else {{ {} }}", below.text);
            return Expression::new(Precedence::Choice, text);
        }
        Unary::Sqrt if wide => return Expression::primary(format!("{own}.sqrt()")),
        Unary::Sqrt => "sqrt",
        Unary::Abs if wide => return Expression::primary(format!("{own}.abs()")),
        Unary::Abs => "abs",
        Unary::Exp => "exp",
        Unary::Log => "ln",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Asin => "asin",
        Unary::Acos => "acos",
        Unary::Atan => "atan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Tanh => "tanh",
    };
    Expression::primary(match wide {
        true => format!("{own}.map(T::{name})"),
        false => format!("T::{name}({})", a.text),
    })
}

fn binary(function: Binary, wide: bool, a: &Expression, b: &Expression) -> Expression {
    let infix = |binding: Precedence, sign: &str| {
        let text = format!("{} {sign} {}", a.within(binding), b.behind(binding));
        Expression::new(binding, text)
    };
    let method = |name: &str| {
        let own = a.within(Precedence::Primary);
        Expression::primary(format!("{own}.{name}({})", b.text))
    };
    let call = |name: &str| {
        Expression::primary(match wide {
            true => format!("{}.zip({}, T::{name})", a.within(Precedence::Primary), b.text),
            false => format!("T::{name}({}, {})", a.text, b.text),
        })
    };
    // A NaN operand loses.
    let lesser = |less: &Expression, more: &Expression| {
        let [own, other] = [less, more].map(|side| side.within(Precedence::Sum));
        match wide {
            true => Expression::primary(format!(
                "{}.lt({}).select({}, {})",
                less.within(Precedence::Primary),
                more.text,
                b.text,
                a.text
            )),
            false => choice(&format!("{own} < {other}"), b, a),
        }
    };
    match function {
        Binary::Add if wide => method("add"),
        Binary::Sub if wide => method("sub"),
        Binary::Mul if wide => method("mul"),
        Binary::Div if wide => method("div"),
        Binary::Add => infix(Precedence::Sum, "+"),
        Binary::Sub => infix(Precedence::Sum, "-"),
        Binary::Mul => infix(Precedence::Product, "*"),
        Binary::Div => infix(Precedence::Product, "/"),
        Binary::Pow => call("powf"),
        Binary::Atan2 => call("atan2"),
        Binary::Min => lesser(b, a),
        Binary::Max => lesser(a, b),
    }
}

fn compare(comparison: Comparison, wide: bool, a: &Expression, b: &Expression) -> Expression {
    if !wide {
        let sign = match comparison {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
        };
        let [a, b] = [a, b].map(|side| side.within(Precedence::Sum));
        return Expression::new(Precedence::Compare, format!("{a} {sign} {b}"));
    }
    let method = |a: &Expression, name: &str, b: &Expression| {
        Expression::primary(format!("{}.{name}({})", a.within(Precedence::Primary), b.text))
    };
    match comparison {
        Comparison::Lt => method(a, "lt", b),
        Comparison::Le => method(a, "le", b),
        Comparison::Gt => method(b, "lt", a),
        Comparison::Ge => method(b, "le", a),
        Comparison::Eq => method(a, "eq", b),
        Comparison::Ne => Expression::primary(format!("{}.not()", method(a, "eq", b).text)),
    }
}

#[cfg(test)]
mod tests {
    use super::Rust;
    use crate::dialect::vectors::{block, folded};
    use crate::kir::build::Builder;
    use crate::kir::{Condition, Element, Index, Integer, Precision};
    use crate::pass::for_vectors;

    #[test]
    fn a_mask_decides_for_all_lanes() {
        let mut b = Builder::new("f", Precision::F64, 4);
        let (masks, y) =
            (b.argument("masks", Element::U32, false), b.argument("y", Element::Real, true));
        let batch = Index::from(b.batch());
        let mask = b.integer("mask", Integer::Element(masks, batch.clone()));
        let low = b.integer("low", Integer::Rest(mask, 8));
        b.open_when();
        let one = b.constant(1.0);
        b.store_lanes(y, batch, one);
        b.close_when(vec![Condition::Something(mask), Condition::Bit(low, 2)]);
        let kernel = folded::<Rust>(&for_vectors(b.finish()).expect("a legal kernel"));
        let mut text = String::new();
        block::<Rust>(&mut text, &kernel, &kernel.body, 0);
        let want = "\
let mask = *masks.add(batch) as usize;
let low = mask % 8;
if mask != u32::MAX as usize && low >> 2 & 1 == 1 {
    V::splat(1.0).store(y.add(4 * batch));
}
";
        assert_eq!(text, want);
    }
}
