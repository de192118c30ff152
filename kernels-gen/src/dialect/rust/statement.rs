//! Statements and values of a kernel as Rust.

use super::number;
use crate::dialect::comment::comment;
use crate::dialect::fold::{Expression, FoldedKernel, Precedence, Style};
use crate::dialect::names::{RUST, rename};
use crate::kir::{
    ArgumentId, Binary, Cache, Comparison, Condition, Index, IndirectIndex, Integer, Kernel,
    LocalId, Op, Positions, Run, Statement, TableId, Unary, ValueId, VarId, WeightedLines,
    Write as Mode,
};
use std::fmt::Write;

pub(super) fn table_name(kernel: &Kernel, id: TableId) -> &str {
    &kernel.tables[id].name
}

pub(super) fn local_name(kernel: &Kernel, id: LocalId) -> &str {
    &kernel.locals[id].name
}

fn var_name(kernel: &Kernel, id: VarId) -> &str {
    &kernel.vars[id].name
}

/// Maximal number of statements between a value's position and the expression that contains it. LLVM preserves more of
/// the source order than necessary: without a bound BP1 of degrees 4 and 5 took 3 % longer, and with 24 the text is not
/// a line longer.
const WITHIN: usize = 24;

/// Returns the kernel in printable form: valid names, and values folded into the expressions that use them.
pub(super) fn folded(kernel: &Kernel) -> FoldedKernel {
    let length =
        |kernel: &FoldedKernel, id: ValueId| definition(kernel, id).map(|own| own.text.len());
    FoldedKernel::new(
        rename(kernel, &RUST),
        Style { listed: None, scatters: true, within: WITHIN },
        length,
    )
}

/// Returns the number of loops at any depth.
pub(super) fn loops(body: &[Statement]) -> usize {
    let mut count = 0;
    let mut one = |statement: &Statement| {
        count += usize::from(matches!(statement, Statement::For { .. }));
    };
    body.iter().for_each(|statement| statement.for_each(&mut one));
    count
}

/// Returns whether a statement writes through an index array.
pub(super) fn scatters(statement: &Statement) -> bool {
    statement.any(&mut |one| {
        matches!(
            one,
            Statement::Scatter { .. }
                | Statement::ScatterRun { .. }
                | Statement::ScatterEdge { .. }
        )
    })
}

fn index(kernel: &Kernel, index: &Index, factor: usize) -> String {
    let mut text = String::new();
    for &(var, by) in &index.terms {
        if !text.is_empty() {
            text.push_str(" + ");
        }
        let by = by * factor as i64;
        let name = var_name(kernel, var);
        let _ = if by == 1 { write!(text, "{name}") } else { write!(text, "{by} * {name}") };
    }
    let constant = index.constant * factor as i64;
    if text.is_empty() {
        return constant.to_string();
    }
    if constant != 0 {
        let _ = write!(text, " + {constant}");
    }
    text
}

/// Returns the expression of a value at its use: a number, its folded expression, or its name.
fn value(kernel: &FoldedKernel, id: ValueId) -> Expression {
    match &kernel.values[id].op {
        Op::Constant(constant) => literal(*constant),
        Op::Broadcast(operand) if matches!(kernel.values[*operand].op, Op::Constant(_)) => {
            Expression::primary(format!("V::splat({})", value(kernel, *operand).text))
        }
        _ if kernel.folds(id) => {
            definition(kernel, id).unwrap_or_else(|| Expression::primary(kernel.value_name(id)))
        }
        _ => Expression::primary(kernel.value_name(id)),
    }
}

fn literal(constant: f64) -> Expression {
    let text = number(constant);
    let binding = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Primary };
    Expression::new(binding, text)
}

fn argument(kernel: &Kernel, id: ArgumentId) -> &str {
    &kernel.arguments[id].name
}

/// Prints statements, each on its line.
pub(super) fn block(text: &mut String, kernel: &FoldedKernel, body: &[Statement], depth: usize) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::For { var, extent, body } => {
                let var = var_name(kernel, *var);
                let _ = writeln!(text, "{indent}for {var} in 0..{extent} {{");
                block(text, kernel, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::When { conditions, body } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|one| condition(kernel, one)).collect();
                let _ = writeln!(text, "{indent}if {} {{", conditions.join(" && "));
                block(text, kernel, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::Comment(words) => comment(text, &indent, words),
            other => {
                if let Some(line) = line(kernel, other) {
                    let _ = writeln!(text, "{indent}{line};");
                }
            }
        }
    }
}

/// Returns a statement without a body; `None` for a value that is folded into its use.
fn line(kernel: &FoldedKernel, statement: &Statement) -> Option<String> {
    let stored = |id: ValueId| value(kernel, id);
    let batch_index = |at: &Index| index(kernel, at, kernel.lanes);
    Some(match statement {
        Statement::Let(id) if kernel.folds(*id) => return None,
        Statement::Let(id) => {
            format!("let {} = {}", kernel.value_name(*id), definition(kernel, *id)?.text)
        }
        Statement::StoreLocal(local, at, id) => {
            let (name, at) = (local_name(kernel, *local), index(kernel, at, 1));
            format!("*{name}.add({at}) = {}", stored(*id).text)
        }
        Statement::StoreLanes(target, at, id) => {
            let (target, at) = (argument(kernel, *target), batch_index(at));
            format!("{}.store({target}.add({at}))", stored(*id).within(Precedence::Primary))
        }
        Statement::Scatter { target, to, value: id, .. } => {
            let IndirectIndex { map, at, scale, offset, masked } = to;
            let masked = if *masked { "_masked" } else { "" };
            let (target, map) = (argument(kernel, *target), argument(kernel, *map));
            let (stored, at) = (stored(*id).text, batch_index(at));
            format!(
                "scatter{masked}({stored}, {target}, {map}.add({at}), {scale}, {offset}, active_lanes)"
            )
        }
        Statement::GatherRun { source, run } => {
            let Run { scale, length, .. } = run;
            let [map, local, places] = run_arrays(kernel, run);
            let source = argument(kernel, *source);
            if let Some((kinds, locals, weights)) = line_arrays(kernel, run, "") {
                return Some(format!(
                    "gather_lines::<{kinds}>({source}, {map}, [{locals}], {places}, {weights})"
                ));
            }
            format!("gather_run::<{length}, {scale}>({source}, {map}, {local}, {places})")
        }
        Statement::ScatterRun { target, run, write } => {
            let (Run { scale, length, .. }, add) = (run, *write != Mode::Exclusive);
            let [map, local, places] = run_arrays(kernel, run);
            let target = argument(kernel, *target);
            let call = match line_arrays(kernel, run, ".cast_const()") {
                Some((kinds, locals, weights)) => format!(
                    "scatter_lines::<{kinds}, {add}>({target}, {map}, active_lanes, [{locals}], {places}, {weights})"
                ),
                None => format!(
                    "scatter_run::<{length}, {scale}, {add}>({target}, {map}, active_lanes, {local}, {places})"
                ),
            };
            if run.masked { format!("if *{map} != u32::MAX {{ {call} }}") } else { call }
        }
        Statement::Prefetch(from, at, cache) => {
            let level = match cache {
                Cache::First => 0,
                Cache::Second => 1,
            };
            let (from, at) = (argument(kernel, *from), batch_index(at));
            format!("prefetch::<{level}>({from}.wrapping_add({at}).cast())")
        }
        Statement::PrefetchIndexed { array, map, entries, entry, scale, batches } => {
            let (array, map) = (argument(kernel, *array), argument(kernel, *map));
            let later = format!("(batch + {batches}).min(end - 1)");
            let at = format!("{} * {later} + {}", entries * kernel.lanes, entry * kernel.lanes);
            format!("prefetch_indexed({array}, {map}.add({at}), {scale})")
        }
        Statement::Set(var) => {
            let from = match kernel.integer(*var)? {
                Integer::Element(map, at) => {
                    format!("*{}.add({}) as usize", argument(kernel, *map), index(kernel, at, 1))
                }
                Integer::Rest(of, by) => format!("{} % {by}", var_name(kernel, *of)),
                Integer::Entry(..) => return None,
            };
            format!("let {} = {from}", var_name(kernel, *var))
        }
        Statement::ScatterEdge { .. } => unreachable!("`legalise` takes edges apart"),
        // `block` prints what has a body, and comments. Kernels for groups of threads are not printed as Rust, and
        // neither are statements that differ between lanes.
        Statement::For { .. }
        | Statement::When { .. }
        | Statement::Comment(_)
        | Statement::Stage
        | Statement::StoreInteger(..)
        | Statement::StoreAt { .. }
        | Statement::Barrier
        | Statement::Fence
        | Statement::Recompute(_)
        | Statement::StoreShared(..) => return None,
    })
}

/// Returns the index array from a run's start on, the private array, and the positions of the run's entries in it.
fn run_arrays(kernel: &Kernel, run: &Run) -> [String; 3] {
    let Run { map, at, local, positions, first, .. } = run;
    let map = format!("{}.add({})", argument(kernel, *map), index(kernel, at, kernel.lanes));
    let positions = match positions {
        Positions::Table(table) => format!("{}.as_ptr().add({first})", table_name(kernel, *table)),
        Positions::Row(array, start) => {
            let start = index(kernel, &start.plus(*first), 1);
            format!("{}.add({start})", argument(kernel, *array))
        }
    };
    [map, local_name(kernel, *local).to_owned(), positions]
}

/// Returns the constants, the private arrays and the weights of a run whose lines are summed.
fn line_arrays(kernel: &Kernel, run: &Run, cast: &str) -> Option<(String, String, String)> {
    let WeightedLines { n, components, weights, .. } = run.lines.as_ref()?;
    let locals: Vec<String> =
        run.locals().map(|local| format!("{}{cast}", local_name(kernel, local))).collect();
    let kinds = format!("{}, {}, {n}, {components}, {}", run.length, run.scale, locals.len());
    let weights = format!("{}.as_ptr()", table_name(kernel, *weights));
    Some((kinds, locals.join(", "), weights))
}

/// Prints a condition on integers that are equal in all lanes.
fn condition(kernel: &Kernel, condition: &Condition) -> String {
    let name = condition.vars().next().map(|var| var_name(kernel, var)).unwrap_or_default();
    match condition {
        Condition::Below(_, bound) => format!("{name} < {bound}"),
        Condition::Something(_) => format!("{name} != u32::MAX as usize"),
        Condition::Equals(_, number) => format!("{name} == {number}"),
        Condition::Bit(_, bit) => format!("{name} >> {bit} & 1 == 1"),
        Condition::NoBit(_, bit) => format!("{name} >> {bit} & 1 == 0"),
        Condition::Meet(_, other) => format!("{name} & {} != 0", var_name(kernel, *other)),
        Condition::Active | Condition::ActiveCell(_) => {
            unreachable!("lanes of a vector differ in what is active")
        }
    }
}

/// Returns the right-hand side of a value's definition; `None` for numbers, which are printed at their use.
fn definition(kernel: &FoldedKernel, id: ValueId) -> Option<Expression> {
    let wide = kernel.values[id].varying;
    let v = |id: ValueId| value(kernel, id);
    let primary = |text: String| Some(Expression::primary(text));
    let method = |name: &str, own: ValueId, others: &[ValueId]| {
        let others: Vec<String> = others.iter().map(|&id| v(id).text).collect();
        primary(format!("{}.{name}({})", v(own).within(Precedence::Primary), others.join(", ")))
    };
    let infix = |binding: Precedence, a: Expression, sign: &str, b: Expression| {
        let text = format!("{} {sign} {}", a.within(binding), b.behind(binding));
        Some(Expression::new(binding, text))
    };
    let product = |a: ValueId, b: ValueId| {
        let text =
            format!("{} * {}", v(a).within(Precedence::Product), v(b).behind(Precedence::Product));
        Expression::new(Precedence::Product, text)
    };
    let element = |array: &str, at: String| {
        Some(Expression::new(Precedence::Prefix, format!("*{array}.add({at})")))
    };
    match &kernel.values[id].op {
        Op::Constant(_) => None,
        Op::Broadcast(operand) => match kernel.values[*operand].op {
            Op::Constant(_) => None,
            _ if kernel.values[*operand].op.is_truth() => {
                primary(format!("M::splat({})", v(*operand).text))
            }
            _ => primary(format!("V::splat({})", v(*operand).text)),
        },
        Op::Unary(function, a) => Some(unary(*function, wide, &v(*a))),
        Op::Binary(function, a, b) => Some(binary(*function, wide, &v(*a), &v(*b))),
        Op::Quotient(a, b) => Some(binary(Binary::Div, wide, &v(*a), &v(*b))),
        Op::Fma(a, b, c) if wide => method("fma", *a, &[*b, *c]),
        Op::Fma(a, b, c) => infix(Precedence::Sum, product(*a, *b), "+", v(*c)),
        Op::FmaNeg(a, b, c) if wide => method("fma_neg", *a, &[*b, *c]),
        Op::FmaNeg(a, b, c) => infix(Precedence::Sum, v(*c), "-", product(*a, *b)),
        Op::Reciprocal(a) if wide => method("reciprocal", *a, &[]),
        Op::Reciprocal(a) => infix(Precedence::Product, literal(1.0), "/", v(*a)),
        Op::Compare(comparison, a, b) => Some(compare(*comparison, wide, &v(*a), &v(*b))),
        Op::And(a, b) if wide => method("and", *a, &[*b]),
        Op::And(a, b) => infix(Precedence::And, v(*a), "&", v(*b)),
        Op::Or(a, b) if wide => method("or", *a, &[*b]),
        Op::Or(a, b) => infix(Precedence::Or, v(*a), "|", v(*b)),
        Op::Not(a) if wide => method("not", *a, &[]),
        Op::Not(a) => Some(Expression::new(
            Precedence::Prefix,
            format!("!{}", v(*a).within(Precedence::Primary)),
        )),
        Op::Select(c, a, b) if wide => method("select", *c, &[*a, *b]),
        Op::Select(c, a, b) => Some(choice(&v(*c).text, &v(*a), &v(*b))),
        Op::LoadShared(..) | Op::LoadAt { .. } => None,
        Op::LoadLocal(local, at) => element(local_name(kernel, *local), index(kernel, at, 1)),
        Op::LoadTable(table, at) => {
            let table = format!("{}.as_ptr()", table_name(kernel, *table));
            element(&table, index(kernel, at, 1))
        }
        Op::LoadUniform(from, at) => element(argument(kernel, *from), index(kernel, at, 1)),
        Op::LoadLanes(from, at) => {
            let at = index(kernel, at, kernel.lanes);
            primary(format!("V::load({}.add({at}))", argument(kernel, *from)))
        }
        Op::Flag { masks, at, bit } => {
            let (masks, at) = (argument(kernel, *masks), index(kernel, at, kernel.lanes));
            primary(format!("flags({masks}.add({at}), {bit})"))
        }
        Op::Gather { source, from: IndirectIndex { map, at, scale, offset, masked } } => {
            let function = if *masked { "gather_masked" } else { "V::gather" };
            let at = index(kernel, at, kernel.lanes);
            let (source, map) = (argument(kernel, *source), argument(kernel, *map));
            primary(format!("{function}({source}, {map}.add({at}), {scale}, {offset})"))
        }
    }
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
    use super::{block, folded};
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
        let kernel = folded(&for_vectors(b.finish()).expect("a legal kernel"));
        let mut text = String::new();
        block(&mut text, &kernel, &kernel.body, 0);
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
