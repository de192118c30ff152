//! Statements and expressions of the C family.

use super::{Words, number};
use crate::dialect::comment::comment;
use crate::dialect::fold::{Binding, Expression, Folded, Style};
use crate::dialect::names::{C, rename};
use crate::kir::{
    ArgumentId, Binary, Comparison, Index, Kernel, LocalId, Op, SharedId, Slots, Statement,
    TableId, TermsId, Thread, Unary, ValueId, VarId, Write as Mode,
};
use crate::limits::{REGISTERS, WRITTEN_OUT};
use fem_dsl::arena::Id as _;
use std::fmt::Write;

pub(super) fn local_name(kernel: &Kernel, id: LocalId) -> &str {
    &kernel.locals[id].name
}

pub(super) fn shared_name(kernel: &Kernel, id: SharedId) -> &str {
    &kernel.shared[id].name
}

pub(super) fn terms_name(kernel: &Kernel, id: TermsId) -> &str {
    &kernel.terms[id].name
}

pub(super) fn table_name(kernel: &Kernel, id: TableId) -> &str {
    &kernel.tables[id].name
}

pub(super) fn var_name(kernel: &Kernel, id: VarId) -> &str {
    &kernel.vars[id].name
}

/// The kernel as its text has it: with names that can stand there, and values that are written where they are used.
pub(super) fn folded(kernel: &Kernel, words: &Words) -> Folded {
    let length = |kernel: &Folded, id: ValueId| definition(kernel, id).map(|own| own.text.len());
    let style = Style { listed: words.listed, scatters: false, within: 6 };
    Folded::new(rename(kernel, &C), style, length)
}

/// Whether a local array is used by some statements.
pub(super) fn uses_local(kernel: &Kernel, body: &[Statement], id: LocalId) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Let(value) => {
            matches!(&kernel.values[*value].op, Op::LoadLocal(local, _) if *local == id)
        }
        Statement::StoreLocal(local, ..)
        | Statement::GatherRun { local, .. }
        | Statement::ScatterRun { local, .. } => *local == id,
        Statement::For { body, .. } | Statement::When { body, .. } => uses_local(kernel, body, id),
        _ => false,
    })
}

fn index(kernel: &Kernel, index: &Index) -> String {
    let mut text = String::new();
    for &(var, by) in &index.terms {
        if !text.is_empty() {
            text.push_str(" + ");
        }
        let name = var_name(kernel, var);
        let _ = if by == 1 { write!(text, "{name}") } else { write!(text, "{by} * {name}") };
    }
    if text.is_empty() {
        return index.constant.to_string();
    }
    if index.constant != 0 {
        let _ = write!(text, " + {}", index.constant);
    }
    text
}

/// Element `i · lanes + lane`.
fn of_lane(kernel: &Kernel, at: &Index) -> String {
    if kernel.lanes == 1 {
        return index(kernel, at);
    }
    format!("({}) * {} + lane", index(kernel, at), kernel.lanes)
}

/// A value where it is used: a number, its expression, or its name.
fn value(kernel: &Folded, id: ValueId) -> Expression {
    match &kernel.values[id].op {
        Op::Constant(constant) => {
            let text = number(*constant, kernel.precision);
            let binding =
                if text.starts_with(['-', '(']) { Binding::Prefix } else { Binding::Primary };
            Expression::new(binding, text)
        }
        // Written where it is used, as a number is.
        Op::LoadTable(table, at) if at.known().is_some() => {
            let (table, at) = (table_name(kernel, *table), index(kernel, at));
            Expression::primary(match kernel.style.listed {
                Some(listed) => format!("{listed}({table}[{at}])"),
                None => format!("{table}[{at}]"),
            })
        }
        _ if kernel.folds(id) => {
            definition(kernel, id).unwrap_or_else(|| Expression::primary(name(kernel, id)))
        }
        _ => Expression::primary(name(kernel, id)),
    }
}

/// What a value that has a line of its own is called.
fn name(kernel: &Kernel, id: ValueId) -> String {
    kernel.values[id].name.clone().unwrap_or_else(|| format!("v{}", id.index()))
}

fn argument(kernel: &Kernel, id: ArgumentId) -> &str {
    &kernel.arguments[id].name
}

/// Whether a variable is computed where it is needed.
pub(super) fn recomputes(body: &[Statement], id: VarId) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Recompute(var) => *var == id,
        // Loops nest a fixed few levels deep, whatever the user wrote.
        Statement::For { body, .. } | Statement::When { body, .. } => recomputes(body, id),
        _ => false,
    })
}

/// Whether a digit is 0 or the last.
pub(super) fn on_border(digits: [String; 2], last: usize) -> String {
    let [a, b] = digits.map(|digit| format!("{digit} % {last} == 0"));
    if a == b { a } else { format!("{a} || {b}") }
}

/// Adds to or sets an element.
fn write_to(kernel: &Kernel, mode: Mode, target: &str, place: &str, stored: &str) -> String {
    match mode {
        Mode::Exclusive => format!("{target}[{place}] = {stored};"),
        Mode::Atomic => format!("atomic_add(&{target}[{place}], {stored});"),
        Mode::LaneSerial | Mode::Alone => format!("{target}[{place}] += {stored};"),
        Mode::Inside(border) => {
            let border = var_name(kernel, border);
            let [adds, stores] = [Mode::Atomic, Mode::Exclusive]
                .map(|mode| write_to(kernel, mode, target, place, stored));
            format!("{{ if ({border}) {adds} else {stores} }}")
        }
    }
}

/// Prints statements, each on its line.
pub(super) fn block(
    text: &mut String,
    kernel: &Folded,
    words: &Words,
    body: &[Statement],
    depth: usize,
) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::Let(id) => {
                if !kernel.folds(*id)
                    && let Some(expression) = definition(kernel, *id)
                {
                    let kind = if kernel.values[*id].op.is_truth() { "bool" } else { "T" };
                    let (name, expression) = (name(kernel, *id), expression.text);
                    let _ = writeln!(text, "{indent}const {kind} {name} = {expression};");
                }
            }
            Statement::StoreLocal(local, at, stored) => {
                let (name, at) = (local_name(kernel, *local), index(kernel, at));
                let _ = writeln!(text, "{indent}{name}[{at}] = {};", value(kernel, *stored).text);
            }
            Statement::StoreLanes(target, at, stored) => {
                let (at, stored) = (of_lane(kernel, at), value(kernel, *stored).text);
                let target = argument(kernel, *target);
                let _ = writeln!(text, "{indent}{target}[{at}] = {stored};");
            }
            Statement::For { var, extent, body } => {
                let var = var_name(kernel, *var);
                let small = extent * size(body) <= WRITTEN_OUT;
                let arrays = small && in_registers(kernel) && reaches_own(kernel, body);
                let unroll = if arrays { "" } else { " 1" };
                let _ = writeln!(text, "{indent}#pragma unroll{unroll}");
                let _ = writeln!(text, "{indent}for (int {var} = 0; {var} < {extent}; ++{var}) {{");
                block(text, kernel, words, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::Scatter {
                target,
                map,
                at,
                scale,
                offset,
                masked,
                value: stored,
                write: mode,
            } => {
                let (target, map) = (argument(kernel, *target), argument(kernel, *map));
                let place = element("to", *scale, *offset);
                let write = write_to(kernel, *mode, target, &place, &value(kernel, *stored).text);
                let mask = if *masked { " && to != 0xffffffffu" } else { "" };
                let (at, batch) = (of_lane(kernel, at), kernel.batch_of(at));
                // Groups of threads are short of registers: rather than keep an index, read it again.
                let index = match kernel.threads {
                    0 => format!("{map}[{at}]"),
                    _ => format!("again(&{map}[{at}])"),
                };
                let writes = match batch {
                    Some(var) => format!("writes_{}", var_name(kernel, var)),
                    None => "writes".to_owned(),
                };
                let _ = writeln!(
                    text,
                    "{indent}{{ const uint32 to = {index}; if ({writes}{mask}) {write} }}"
                );
            }
            Statement::ScatterEdge { target, map, at, scale, values } => {
                let (target, map) = (argument(kernel, *target), argument(kernel, *map));
                let ends = [of_lane(kernel, &at[0]), of_lane(kernel, &at[1])];
                let [near, far] = ends.map(|at| format!("writes ? {map}[{at}] : 0xffffffffu"));
                let _ = writeln!(text, "{indent}{{");
                let _ = writeln!(text, "{indent}    const Edge edge = edge_of({near}, {far});");
                for (offset, ends) in values {
                    let [a, b] = ends.map(|end| value(kernel, end).text);
                    let _ = writeln!(
                        text,
                        "{indent}    add_edge({target}, edge, {scale}, {offset}, {a}, {b});"
                    );
                }
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::GatherRun { source, map, at, scale, local, positions, first, length } => {
                let (source, map) = (argument(kernel, *source), argument(kernel, *map));
                let places = &kernel.tables[*positions].entries;
                let local = local_name(kernel, *local);
                let at = of_lane(kernel, at);
                let _ = writeln!(text, "{indent}{{");
                let _ = writeln!(
                    text,
                    "{indent}    const size_t from = (size_t){map}[{at}] * {scale};"
                );
                let mut store = |j: usize, from: &str| {
                    let place = position(places, first + j);
                    let _ = writeln!(text, "{indent}    {local}[{place}] = {from};");
                };
                // A run that begins at an even element and is padded can be read two by two.
                let pairs = scale % 2 == 0 && length.next_multiple_of(2) <= *scale;
                for j in 0..*length {
                    let half = ["x", "y"][j % 2];
                    match pairs {
                        true => store(j, &format!("pair({source} + from + {}).{half}", j / 2 * 2)),
                        false => store(j, &format!("{source}[from + {j}]")),
                    }
                }
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::ScatterRun {
                target,
                map,
                at,
                scale,
                local,
                positions,
                first,
                length,
                write: mode,
            } => {
                let (target, map) = (argument(kernel, *target), argument(kernel, *map));
                let places = &kernel.tables[*positions].entries;
                let local = local_name(kernel, *local);
                let at = of_lane(kernel, at);
                let _ = writeln!(text, "{indent}if (writes) {{");
                let _ =
                    writeln!(text, "{indent}    const size_t to = (size_t){map}[{at}] * {scale};");
                for j in 0..*length {
                    let stored = format!("{local}[{}]", position(places, first + j));
                    let write = write_to(kernel, *mode, target, &format!("to + {j}"), &stored);
                    let _ = writeln!(text, "{indent}    {write}");
                }
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::GatherSlots { source, slots } => {
                let source = argument(kernel, *source);
                let shared = shared_name(kernel, slots.shared);
                let of = format!("const uint32 of = {};", of_slot(kernel, slots));
                let body = |conditions: &[&str]| {
                    let parts = slots.parts.iter().map(|(offset, first)| {
                        let from =
                            format!("gather_masked({source}, of, {}, {offset})", slots.scale);
                        when(conditions, &format!("{shared}[slot + {first}] = {from};"))
                    });
                    [of.clone()].into_iter().chain(parts).collect()
                };
                deal_out(text, kernel, &indent, slots.count, &body);
            }
            Statement::ScatterSlots { target, slots, terms, write: mode } => {
                let target = argument(kernel, *target);
                let shared = shared_name(kernel, slots.shared);
                let of = format!("const uint32 of = {};", of_slot(kernel, slots));
                let body = |conditions: &[&str]| {
                    let conditions = [conditions, &["of != 0xffffffffu"]].concat();
                    let parts = slots.parts.iter().map(|(offset, first)| {
                        let term = |term: usize| {
                            format!("{shared}[slot + {}]", first + term * slots.stride)
                        };
                        let sum: Vec<String> = (0..*terms).map(term).collect();
                        let place = element("of", slots.scale, *offset);
                        when(
                            &conditions,
                            &write_to(kernel, *mode, target, &place, &sum.join(" + ")),
                        )
                    });
                    [of.clone()].into_iter().chain(parts).collect()
                };
                deal_out(text, kernel, &indent, slots.count, &body);
            }
            Statement::Clear { shared, length } => {
                let shared = shared_name(kernel, *shared);
                let body =
                    |conditions: &[&str]| vec![when(conditions, &format!("{shared}[slot] = 0;"))];
                deal_out(text, kernel, &indent, *length, &body);
            }
            Statement::LoadTerms { terms, map, at, step } => {
                let length = kernel.terms[*terms].length;
                let (terms, map) = (terms_name(kernel, *terms), argument(kernel, *map));
                let at = of_lane(kernel, at);
                for j in 0..length {
                    let _ = writeln!(text, "{indent}{terms}[{j}] = {map}[{at} + {}];", j * step);
                }
            }
            Statement::StoreTerm { shared, terms, entry, first, value: stored } => {
                let (shared, terms) = (shared_name(kernel, *shared), terms_name(kernel, *terms));
                let (entry, stored) = (index(kernel, entry), value(kernel, *stored).text);
                let _ = writeln!(
                    text,
                    "{indent}if (writes) {shared}[{terms}[{entry}] + {first}] = {stored};"
                );
            }
            Statement::StoreShared(shared, at, stored) => {
                let (name, at) = (shared_name(kernel, *shared), index(kernel, at));
                let _ = writeln!(text, "{indent}{name}[{at}] = {};", value(kernel, *stored).text);
            }
            Statement::Barrier => {
                let _ = writeln!(text, "{indent}{};", words.barrier);
            }
            Statement::Fence => {
                let _ = writeln!(text, "{indent}{};", words.fence);
            }
            Statement::Recompute(var) => {
                let Some(Thread::Border { digits, last }) = kernel.vars[*var].thread else {
                    continue;
                };
                let on = digits.map(|digit| match kernel.vars[digit].thread {
                    Some(Thread::Digit { divisor, modulus }) => {
                        format!("number / {divisor} % {modulus}")
                    }
                    _ => var_name(kernel, digit).to_owned(),
                });
                let (var, on) = (var_name(kernel, *var), on_border(on, last));
                let number = "const int number = thread_again();";
                let _ = writeln!(text, "{indent}{{ {number} {var} = {on}; }}");
            }
            Statement::When { below, cell, body } => {
                let mut conditions: Vec<String> = below
                    .iter()
                    .map(|&(var, bound)| format!("{} < {bound}", var_name(kernel, var)))
                    .collect();
                if let (Some(cell), Some(active)) = (cell, kernel.active) {
                    let (cell, active) = (index(kernel, cell), argument(kernel, active));
                    conditions.push(format!("{cell} < (int){active}[batch]"));
                }
                let conditions = conditions.join(" && ");
                let mut inner = String::new();
                block(&mut inner, kernel, words, body, depth + 1);
                let _ = match inner.trim() {
                    line if line.lines().count() == 1 && line.ends_with(';') => {
                        writeln!(text, "{indent}if ({conditions}) {line}")
                    }
                    _ => writeln!(text, "{indent}if ({conditions}) {{\n{inner}{indent}}}"),
                };
            }
            Statement::Comment(words) => comment(text, &indent, words),
            // Dropped by `legalise`.
            Statement::Prefetch(..) | Statement::PrefetchIndexed { .. } | Statement::Stage => {}
        }
    }
}

/// Prints what is done for each of `count` slots that the threads of a group, or the lanes, deal out among themselves:
/// full rounds, then those that are left, of which each `mine` at most. `body` reads what any slot has, and writes under
/// its condition: where the reading stood under it too, PoCL read beyond the end of arrays.
fn deal_out(
    text: &mut String,
    kernel: &Kernel,
    indent: &str,
    count: usize,
    body: &dyn Fn(&[&str]) -> Vec<String>,
) {
    let (who, all) = match kernel.threads {
        0 => ("lane", kernel.lanes),
        threads => ("thread", threads),
    };
    let (full, rest) = (count / all * all, count % all);
    let mut block = |head: &[String], lines: Vec<String>| {
        for line in head {
            let _ = writeln!(text, "{indent}{line}");
        }
        for line in lines {
            let _ = writeln!(text, "{indent}    {line}");
        }
        let _ = writeln!(text, "{indent}}}");
    };
    if full > 0 {
        let head = format!("for (int slot = {who}; slot < {who} + {full}; slot += {all}) {{");
        block(&["#pragma unroll".to_owned(), head], body(&[]));
    }
    if rest > 0 {
        let mut lines = vec![
            format!("const bool mine = {who} < {rest};"),
            format!("const int slot = mine ? {who} + {full} : {full};"),
        ];
        lines.extend(body(&["mine"]));
        block(&["{".to_owned()], lines);
    }
}

/// A statement under conditions.
fn when(conditions: &[&str], statement: &str) -> String {
    match conditions {
        [] => statement.to_owned(),
        _ => format!("if ({}) {statement}", conditions.join(" && ")),
    }
}

/// The index of what a slot is for.
fn of_slot(kernel: &Kernel, slots: &Slots) -> String {
    format!("{}[{} + slot]", argument(kernel, slots.map), index(kernel, &slots.at))
}

fn position(entries: &crate::kir::Entries, at: usize) -> u32 {
    match entries {
        crate::kir::Entries::Position(places) => places[at],
        crate::kir::Entries::Real(_) => unreachable!("a run's places should be positions"),
    }
}

/// What stands behind the `=` of a value; nothing for numbers, which stand where they are used.
fn definition(kernel: &Folded, id: ValueId) -> Option<Expression> {
    let v = |id: ValueId| value(kernel, id).text;
    let primary = |text: String| Some(Expression::primary(text));
    match &kernel.values[id].op {
        Op::Constant(_) => None,
        Op::LoadTable(_, at) if at.known().is_some() => None,
        Op::Broadcast(operand) => Some(value(kernel, *operand)),
        Op::Unary(function, a) => Some(unary(*function, &value(kernel, *a))),
        Op::Binary(function, a, b) => {
            Some(binary(*function, &value(kernel, *a), &value(kernel, *b)))
        }
        Op::Fma(a, b, c) => primary(format!("fma({}, {}, {})", v(*a), v(*b), v(*c))),
        Op::FmaNeg(a, b, c) => {
            let a = value(kernel, *a).within(Binding::Primary);
            primary(format!("fma(-{a}, {}, {})", v(*b), v(*c)))
        }
        // A division has branches there.
        Op::Quotient(a, b) => {
            let a = value(kernel, *a).within(Binding::Product);
            Some(Expression::new(Binding::Product, format!("{a} * reciprocal({})", v(*b))))
        }
        Op::Reciprocal(a) => primary(format!("reciprocal({})", v(*a))),
        Op::Compare(comparison, a, b) => {
            let [a, b] = [a, b].map(|id| value(kernel, *id).within(Binding::Sum));
            let text = format!("{a} {} {b}", sign(*comparison));
            Some(Expression::new(Binding::Compare, text))
        }
        Op::And(a, b) => {
            let [a, b] = [a, b].map(|id| value(kernel, *id).within(Binding::Compare));
            Some(Expression::new(Binding::And, format!("{a} && {b}")))
        }
        Op::Or(a, b) => {
            let [a, b] = [a, b].map(|id| value(kernel, *id).within(Binding::Compare));
            Some(Expression::new(Binding::Or, format!("{a} || {b}")))
        }
        Op::Not(a) => {
            let a = value(kernel, *a).within(Binding::Primary);
            Some(Expression::new(Binding::Prefix, format!("!{a}")))
        }
        Op::Select(c, a, b) => {
            let [c, a, b] = [c, a, b].map(|id| value(kernel, *id).within(Binding::Or));
            Some(Expression::new(Binding::Choice, format!("{c} ? {a} : {b}")))
        }
        Op::LoadShared(shared, at) => {
            primary(format!("{}[{}]", shared_name(kernel, *shared), index(kernel, at)))
        }
        Op::LoadLocal(local, at) => {
            primary(format!("{}[{}]", local_name(kernel, *local), index(kernel, at)))
        }
        Op::LoadTable(table, at) => {
            primary(format!("{}[{}]", table_name(kernel, *table), index(kernel, at)))
        }
        Op::LoadUniform(from, at) => {
            primary(format!("{}[{}]", argument(kernel, *from), index(kernel, at)))
        }
        Op::LoadLanes(from, at) => {
            primary(format!("{}[{}]", argument(kernel, *from), of_lane(kernel, at)))
        }
        Op::LoadSlot { shared, terms, entry, stride, first } => {
            let (shared, terms) = (shared_name(kernel, *shared), terms_name(kernel, *terms));
            primary(format!("{shared}[{terms}[{}] % {stride}u + {first}]", index(kernel, entry)))
        }
        Op::Gather { source, map, at, scale, offset, masked } => {
            let (source, map) = (argument(kernel, *source), argument(kernel, *map));
            let at = of_lane(kernel, at);
            primary(if *masked {
                format!("gather_masked({source}, {map}[{at}], {scale}, {offset})")
            } else {
                format!("{source}[{}]", element(&format!("{map}[{at}]"), *scale, *offset))
            })
        }
    }
}

/// Element `index · scale + offset`, where an index alone might not have room for it.
fn element(index: &str, scale: usize, offset: usize) -> String {
    let wide = if scale == 1 { String::new() } else { format!(" * {scale}") };
    match (scale, offset) {
        (1, 0) => index.to_owned(),
        (_, 0) => format!("(size_t){index}{wide}"),
        _ => format!("(size_t){index}{wide} + {offset}"),
    }
}

fn unary(function: Unary, a: &Expression) -> Expression {
    let name = match function {
        Unary::Neg => {
            return Expression::new(Binding::Prefix, format!("-{}", a.within(Binding::Primary)));
        }
        Unary::Sign => {
            let a = a.within(Binding::Sum);
            return Expression::new(Binding::Prefix, format!("(T)(({a} > 0) - ({a} < 0))"));
        }
        Unary::Sqrt => "sqrt",
        Unary::Abs => "fabs",
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
    };
    Expression::primary(format!("{name}({})", a.text))
}

fn binary(function: Binary, a: &Expression, b: &Expression) -> Expression {
    let infix = |binding: Binding, sign: &str| {
        let text = format!("{} {sign} {}", a.within(binding), b.behind(binding));
        Expression::new(binding, text)
    };
    let call = |name: &str| Expression::primary(format!("{name}({}, {})", a.text, b.text));
    // As the interpreter compares: what is no number loses.
    let lesser = |a: &Expression, b: &Expression, of: [&Expression; 2]| {
        let [a, b] = [a, b].map(|side| side.within(Binding::Sum));
        let [yes, no] = of.map(|side| side.within(Binding::Or));
        Expression::new(Binding::Choice, format!("{a} < {b} ? {yes} : {no}"))
    };
    match function {
        Binary::Add => infix(Binding::Sum, "+"),
        Binary::Sub => infix(Binding::Sum, "-"),
        Binary::Mul => infix(Binding::Product, "*"),
        Binary::Div => infix(Binding::Product, "/"),
        Binary::Pow => call("pow"),
        Binary::Atan2 => call("atan2"),
        Binary::Min => lesser(b, a, [b, a]),
        Binary::Max => lesser(a, b, [b, a]),
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
        Comparison::Eq => "==",
        Comparison::Ne => "!=",
    }
}

/// Statements of a body with its loops written out.
fn size(body: &[Statement]) -> usize {
    let each = body.iter().map(|statement| match statement {
        // Loops nest a fixed few levels deep, whatever the user wrote.
        Statement::For { extent, body, .. } => extent * size(body),
        Statement::When { body, .. } => size(body),
        _ => 1,
    });
    each.sum()
}

/// Whether a body reads or writes arrays of the thread's own: they become registers where its loop is written out.
fn reaches_own(kernel: &Kernel, body: &[Statement]) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Let(id) => {
            matches!(kernel.values[*id].op, Op::LoadLocal(..) | Op::LoadSlot { .. })
        }
        Statement::StoreLocal(..)
        | Statement::StoreTerm { .. }
        | Statement::GatherRun { .. }
        | Statement::ScatterRun { .. } => true,
        // Loops nest a fixed few levels deep, whatever the user wrote.
        Statement::For { body, .. } | Statement::When { body, .. } => reaches_own(kernel, body),
        _ => false,
    })
}

/// Whether a thread's own arrays can become registers if all loops over them are written out.
fn in_registers(kernel: &Kernel) -> bool {
    kernel.locals.iter().map(|local| local.length).sum::<usize>() <= REGISTERS
}
