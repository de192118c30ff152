//! Statements and values of a kernel as Rust.

use super::number;
use crate::dialect::comment::comment;
use crate::dialect::names::{Numbered, RUST, rename};
use crate::kir::{
    ArgumentId, Binary, Cache, Comparison, Condition, Index, Indexed, Integer, Kernel, LocalId, Op,
    Run, Statement, TableId, Unary, ValueId, VarId, Write as Mode,
};
use fem_dsl::arena::Id;
use std::fmt::Write;

/// The constant's name.
pub(super) fn table_name(kernel: &Kernel, id: TableId) -> String {
    let name = kernel.tables[id].name.to_uppercase();
    let twins = kernel.tables.iter().filter(|table| table.name == kernel.tables[id].name).count();
    if twins > 1 { format!("{name}_{}", id.index()) } else { name }
}

/// The private array's name.
pub(super) fn local_name(kernel: &Kernel, id: LocalId) -> String {
    let name = &kernel.locals[id].name;
    let twins = kernel.locals.iter().filter(|local| local.name == *name).count();
    let argument = kernel.arguments.iter().any(|argument| argument.name == *name);
    if twins > 1 || argument { format!("{name}_{}", id.index()) } else { name.clone() }
}

/// The name of a value that the form names.
fn unique(name: &str, id: ValueId) -> String {
    format!("{name}_{}", id.index())
}

/// The kernel with names that can stand in its text.
pub(super) fn renamed(kernel: &Kernel) -> Kernel {
    let vars = kernel.vars.ids().map(|id| var_name(kernel, id));
    let tables = kernel.tables.ids().map(|id| table_name(kernel, id));
    let fixed = vars.chain(tables).collect();
    rename(kernel, &RUST, &Numbered { fixed, local: &local_name, value: &unique })
}

/// How many loops there are, at any depth.
pub(super) fn loops(body: &[Statement]) -> usize {
    let mut count = 0;
    let mut one = |statement: &Statement| {
        count += usize::from(matches!(statement, Statement::For { .. }));
    };
    body.iter().for_each(|statement| statement.for_each(&mut one));
    count
}

/// Whether a statement writes by an index array.
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

fn var_name(kernel: &Kernel, id: VarId) -> String {
    if id == kernel.batch() {
        return "batch".to_owned();
    }
    format!("{}{}", kernel.vars[id].name, id.index())
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

fn value(kernel: &Kernel, id: ValueId) -> String {
    let value = &kernel.values[id];
    match &value.op {
        Op::Constant(constant) => {
            let text = number(*constant);
            if text.starts_with('-') { format!("({text})") } else { text }
        }
        Op::Broadcast(operand) if matches!(kernel.values[*operand].op, Op::Constant(_)) => {
            let Op::Constant(constant) = kernel.values[*operand].op else { return String::new() };
            format!("V::splat({})", number(constant))
        }
        _ => match &value.name {
            Some(name) => unique(name, id),
            None => format!("v{}", id.index()),
        },
    }
}

fn argument(kernel: &Kernel, id: ArgumentId) -> &str {
    &kernel.arguments[id].name
}

/// Prints statements, each on its line.
pub(super) fn block(text: &mut String, kernel: &Kernel, body: &[Statement], depth: usize) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::Let(id) => {
                if let Some(expression) = definition(kernel, *id) {
                    let name = value(kernel, *id);
                    let _ = writeln!(text, "{indent}let {name} = {expression};");
                }
            }
            Statement::ScatterEdge { .. } => unreachable!("`legalise` takes edges apart"),
            Statement::StoreLocal(local, at, stored) => {
                let name = local_name(kernel, *local);
                let at = index(kernel, at, 1);
                let stored = value(kernel, *stored);
                let _ = writeln!(text, "{indent}*{name}.add({at}) = {stored};");
            }
            Statement::StoreLanes(target, at, stored) => {
                let at = index(kernel, at, kernel.lanes);
                let (target, stored) = (argument(kernel, *target), value(kernel, *stored));
                let _ = writeln!(text, "{indent}{stored}.store({target}.add({at}));");
            }
            Statement::For { var, extent, body } => {
                let var = var_name(kernel, *var);
                let _ = writeln!(text, "{indent}for {var} in 0..{extent} {{");
                block(text, kernel, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::Scatter { target, to, value: stored, .. } => {
                let Indexed { map, at, scale, offset, masked } = to;
                let masked = if *masked { "_masked" } else { "" };
                let at = index(kernel, at, kernel.lanes);
                let _ = writeln!(
                    text,
                    "{indent}scatter{masked}({}, {}, {}.add({at}), {scale}, {offset}, active_lanes);",
                    value(kernel, *stored),
                    argument(kernel, *target),
                    argument(kernel, *map),
                );
            }
            Statement::GatherRun { source, run } => {
                let Run { map, at, scale, local, positions, first, length } = run;
                let at = index(kernel, at, kernel.lanes);
                let _ = writeln!(
                    text,
                    "{indent}gather_run::<{length}, {scale}>({}, {}.add({at}), {}, {}.as_ptr().add({first}));",
                    argument(kernel, *source),
                    argument(kernel, *map),
                    local_name(kernel, *local),
                    table_name(kernel, *positions),
                );
            }
            Statement::ScatterRun { target, run, write } => {
                let Run { map, at, scale, local, positions, first, length } = run;
                let at = index(kernel, at, kernel.lanes);
                let add = *write != Mode::Exclusive;
                let _ = writeln!(
                    text,
                    "{indent}scatter_run::<{length}, {scale}, {add}>({}, {}.add({at}), active_lanes, {}, {}.as_ptr().add({first}));",
                    argument(kernel, *target),
                    argument(kernel, *map),
                    local_name(kernel, *local),
                    table_name(kernel, *positions),
                );
            }
            Statement::Prefetch(from, at, cache) => {
                let level = match cache {
                    Cache::First => 0,
                    Cache::Second => 1,
                };
                let at = index(kernel, at, kernel.lanes);
                let _ = writeln!(
                    text,
                    "{indent}prefetch::<{level}>({}.wrapping_add({at}).cast());",
                    argument(kernel, *from)
                );
            }
            Statement::PrefetchIndexed { array, map, entries, entry, scale, batches } => {
                let lanes = kernel.lanes;
                let later = format!("(batch + {batches}).min(end - 1)");
                let at = format!("{} * {later} + {}", entries * lanes, entry * lanes);
                let _ = writeln!(
                    text,
                    "{indent}prefetch_indexed({}, {}.add({at}), {scale});",
                    argument(kernel, *array),
                    argument(kernel, *map),
                );
            }
            Statement::Set(var) => {
                let from = match kernel.integer(*var) {
                    Some(Integer::Element(map, at)) => {
                        format!(
                            "*{}.add({}) as usize",
                            argument(kernel, *map),
                            index(kernel, at, 1)
                        )
                    }
                    Some(Integer::Rest(of, by)) => format!("{} % {by}", var_name(kernel, *of)),
                    Some(Integer::Entry(..)) | None => continue,
                };
                let _ = writeln!(text, "{indent}let {} = {from};", var_name(kernel, *var));
            }
            Statement::When { conditions, body } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|one| condition(kernel, one)).collect();
                let _ = writeln!(text, "{indent}if {} {{", conditions.join(" && "));
                block(text, kernel, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            // Kernels for groups of threads are not printed as Rust, nor is what differs between lanes.
            Statement::Stage
            | Statement::StoreInteger(..)
            | Statement::StoreAt { .. }
            | Statement::Barrier
            | Statement::Fence
            | Statement::Recompute(_)
            | Statement::StoreShared(..) => {}
            Statement::Comment(words) => comment(text, &indent, words),
        }
    }
}

/// A condition on integers that are the same in all lanes.
fn condition(kernel: &Kernel, condition: &Condition) -> String {
    let name = condition.var().map(|var| var_name(kernel, var)).unwrap_or_default();
    match condition {
        Condition::Below(_, bound) => format!("{name} < {bound}"),
        Condition::Something(_) => format!("{name} != u32::MAX as usize"),
        Condition::Equals(_, number) => format!("{name} == {number}"),
        Condition::Bit(_, bit) => format!("{name} >> {bit} & 1 == 1"),
        Condition::Active | Condition::ActiveCell(_) => {
            unreachable!("lanes of a vector differ in what is active")
        }
    }
}

/// What stands behind the `=` of a value; nothing for what is written where it is used.
fn definition(kernel: &Kernel, id: ValueId) -> Option<String> {
    let wide = kernel.values[id].varying;
    let v = |id: ValueId| value(kernel, id);
    Some(match &kernel.values[id].op {
        Op::Constant(_) => return None,
        Op::Broadcast(operand) => match kernel.values[*operand].op {
            Op::Constant(_) => return None,
            _ if kernel.values[*operand].op.is_truth() => format!("M::splat({})", v(*operand)),
            _ => format!("V::splat({})", v(*operand)),
        },
        Op::Unary(function, a) => unary(*function, wide, &v(*a)),
        Op::Binary(function, a, b) => binary(*function, wide, &v(*a), &v(*b)),
        Op::Fma(a, b, c) if wide => format!("{}.fma({}, {})", v(*a), v(*b), v(*c)),
        Op::Fma(a, b, c) => format!("{} * {} + {}", v(*a), v(*b), v(*c)),
        Op::FmaNeg(a, b, c) if wide => format!("{}.fma_neg({}, {})", v(*a), v(*b), v(*c)),
        Op::FmaNeg(a, b, c) => format!("{} - {} * {}", v(*c), v(*a), v(*b)),
        Op::Quotient(a, b) => binary(Binary::Div, wide, &v(*a), &v(*b)),
        Op::Reciprocal(a) if wide => format!("{}.reciprocal()", v(*a)),
        Op::Reciprocal(a) => format!("1.0 / {}", v(*a)),
        Op::Compare(comparison, a, b) => compare(*comparison, wide, &v(*a), &v(*b)),
        Op::And(a, b) if wide => format!("{}.and({})", v(*a), v(*b)),
        Op::And(a, b) => format!("{} & {}", v(*a), v(*b)),
        Op::Or(a, b) if wide => format!("{}.or({})", v(*a), v(*b)),
        Op::Or(a, b) => format!("{} | {}", v(*a), v(*b)),
        Op::Not(a) if wide => format!("{}.not()", v(*a)),
        Op::Not(a) => format!("!{}", v(*a)),
        Op::Select(c, a, b) if wide => format!("{}.select({}, {})", v(*c), v(*a), v(*b)),
        Op::Select(c, a, b) => format!("if {} {{ {} }} else {{ {} }}", v(*c), v(*a), v(*b)),
        Op::LoadShared(..) | Op::LoadAt { .. } => return None,
        Op::LoadLocal(local, at) => {
            format!("*{}.add({})", local_name(kernel, *local), index(kernel, at, 1))
        }
        Op::LoadTable(table, at) => {
            format!("*{}.as_ptr().add({})", table_name(kernel, *table), index(kernel, at, 1))
        }
        Op::LoadUniform(from, at) => {
            format!("*{}.add({})", argument(kernel, *from), index(kernel, at, 1))
        }
        Op::LoadLanes(from, at) => {
            let at = index(kernel, at, kernel.lanes);
            format!("V::load({}.add({at}))", argument(kernel, *from))
        }
        Op::Gather { source, from: Indexed { map, at, scale, offset, masked } } => {
            let function = if *masked { "gather_masked" } else { "V::gather" };
            let at = index(kernel, at, kernel.lanes);
            let (source, map) = (argument(kernel, *source), argument(kernel, *map));
            format!("{function}({source}, {map}.add({at}), {scale}, {offset})")
        }
    })
}

fn unary(function: Unary, wide: bool, a: &str) -> String {
    let name = match function {
        Unary::Neg if wide => return format!("{a}.neg()"),
        Unary::Neg => return format!("-{a}"),
        Unary::Sign if wide => {
            return format!(
                "V::splat(0.0).lt({a}).select(V::splat(1.0), {a}.lt(V::splat(0.0)).select(V::splat(-1.0), V::splat(0.0)))"
            );
        }
        Unary::Sign => {
            return format!("if {a} > 0.0 {{ 1.0 }} else if {a} < 0.0 {{ -1.0 }} else {{ 0.0 }}");
        }
        Unary::Sqrt if wide => return format!("{a}.sqrt()"),
        Unary::Sqrt => "sqrt",
        Unary::Abs if wide => return format!("{a}.abs()"),
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
    if wide { format!("{a}.map(T::{name})") } else { format!("T::{name}({a})") }
}

fn binary(function: Binary, wide: bool, a: &str, b: &str) -> String {
    match function {
        Binary::Add if wide => format!("{a}.add({b})"),
        Binary::Sub if wide => format!("{a}.sub({b})"),
        Binary::Mul if wide => format!("{a}.mul({b})"),
        Binary::Div if wide => format!("{a}.div({b})"),
        Binary::Add => format!("{a} + {b}"),
        Binary::Sub => format!("{a} - {b}"),
        Binary::Mul => format!("{a} * {b}"),
        Binary::Div => format!("{a} / {b}"),
        Binary::Pow if wide => format!("{a}.zip({b}, T::powf)"),
        Binary::Pow => format!("T::powf({a}, {b})"),
        Binary::Atan2 if wide => format!("{a}.zip({b}, T::atan2)"),
        Binary::Atan2 => format!("T::atan2({a}, {b})"),
        Binary::Min if wide => format!("{b}.lt({a}).select({b}, {a})"),
        Binary::Min => format!("if {b} < {a} {{ {b} }} else {{ {a} }}"),
        Binary::Max if wide => format!("{a}.lt({b}).select({b}, {a})"),
        Binary::Max => format!("if {a} < {b} {{ {b} }} else {{ {a} }}"),
    }
}

fn compare(comparison: Comparison, wide: bool, a: &str, b: &str) -> String {
    if !wide {
        let sign = match comparison {
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
            Comparison::Eq => "==",
            Comparison::Ne => "!=",
        };
        return format!("{a} {sign} {b}");
    }
    match comparison {
        Comparison::Lt => format!("{a}.lt({b})"),
        Comparison::Le => format!("{a}.le({b})"),
        Comparison::Gt => format!("{b}.lt({a})"),
        Comparison::Ge => format!("{b}.le({a})"),
        Comparison::Eq => format!("{a}.eq({b})"),
        Comparison::Ne => format!("{a}.eq({b}).not()"),
    }
}

#[cfg(test)]
mod tests {
    use super::block;
    use crate::kir::build::Builder;
    use crate::kir::{Condition, Element, Index, Integer, Precision};
    use crate::pass::for_vectors;

    #[test]
    fn all_lanes_do_what_a_mask_says() {
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
        let kernel = for_vectors(b.finish()).expect("a legal kernel");
        let mut text = String::new();
        block(&mut text, &kernel, &kernel.body, 0);
        let want = "\
let mask1 = *masks.add(batch) as usize;
let low2 = mask1 % 8;
if mask1 != u32::MAX as usize && low2 >> 2 & 1 == 1 {
    V::splat(1.0).store(y.add(4 * batch));
}
";
        assert_eq!(text, want);
    }
}
