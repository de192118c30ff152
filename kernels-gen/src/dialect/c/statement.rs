//! Statements and expressions of the C family.

use super::{Words, number};
use crate::dialect::comment::comment;
use crate::dialect::names::{C, Numbered, rename};
use crate::kir::{
    ArgumentId, Binary, Comparison, Condition, Index, Indexed, Integer, IntegersId, Kernel,
    LocalId, Op, Run, SharedId, Statement, TableId, Thread, Unary, ValueId, VarId, Write as Mode,
};
use crate::limits::{REGISTERS, WRITTEN_OUT};
use fem_dsl::arena::Id as _;
use std::fmt::Write;

pub(super) fn local_name(kernel: &Kernel, id: LocalId) -> String {
    unique(&kernel.locals[id].name, id.index())
}

pub(super) fn shared_name(kernel: &Kernel, id: SharedId) -> String {
    unique(&kernel.shared[id].name, id.index())
}

pub(super) fn integers_name(kernel: &Kernel, id: IntegersId) -> String {
    unique(&kernel.integers[id].name, id.index())
}

pub(super) fn table_name(kernel: &Kernel, id: TableId) -> String {
    unique(&format!("{}_{}", kernel.name, kernel.tables[id].name), id.index())
}

pub(super) fn unique(name: &str, number: usize) -> String {
    format!("{name}_{number}")
}

/// The kernel with names that can stand in its text.
pub(super) fn renamed(kernel: &Kernel) -> Kernel {
    let vars = kernel.vars.ids().map(|id| var_name(kernel, id)).flat_map(|name| {
        let of_batch = ["own", "writes"].map(|word| format!("{word}_{name}"));
        of_batch.into_iter().chain([name])
    });
    let shared = kernel.shared.ids().map(|id| shared_name(kernel, id));
    let integers = kernel.integers.ids().map(|id| integers_name(kernel, id));
    let tables = kernel.tables.ids().map(|id| table_name(kernel, id));
    let fixed = vars.chain(shared).chain(integers).chain(tables).collect();
    let value = |name: &str, id: ValueId| unique(name, id.index());
    rename(kernel, &C, &Numbered { fixed, local: &local_name, value: &value })
}

pub(super) fn var_name(kernel: &Kernel, id: VarId) -> String {
    if id == kernel.batch() {
        return "batch".to_owned();
    }
    if kernel.thread_of(id) == Some(Thread::Member) {
        return if kernel.threads == 0 { "lane" } else { "thread" }.to_owned();
    }
    unique(&kernel.vars[id].name, id.index())
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

fn value(kernel: &Kernel, id: ValueId) -> String {
    let value = &kernel.values[id];
    match (&value.op, &value.name) {
        (Op::Constant(constant), _) => {
            let text = number(*constant, kernel.precision);
            if text.starts_with('-') { format!("({text})") } else { text }
        }
        // Written where it is used, as a number is.
        (Op::LoadTable(table, at), _) if at.known().is_some() => {
            format!("listed({}[{}])", table_name(kernel, *table), index(kernel, at))
        }
        (_, Some(name)) => unique(name, id.index()),
        (_, None) => format!("v{}", id.index()),
    }
}

fn argument(kernel: &Kernel, id: ArgumentId) -> &str {
    &kernel.arguments[id].name
}

/// Whether a variable is computed where it is needed.
pub(super) fn recomputes(body: &[Statement], id: VarId) -> bool {
    body.iter().any(|statement| statement.any(&mut |one| *one == Statement::Recompute(id)))
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
    kernel: &Kernel,
    words: &Words,
    body: &[Statement],
    depth: usize,
) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::Let(id) => {
                if let Some(expression) = definition(kernel, *id) {
                    let kind = if kernel.values[*id].op.is_truth() { "bool" } else { "T" };
                    let name = value(kernel, *id);
                    let _ = writeln!(text, "{indent}const {kind} {name} = {expression};");
                }
            }
            Statement::StoreLocal(local, at, stored) => {
                let (name, at) = (local_name(kernel, *local), index(kernel, at));
                let _ = writeln!(text, "{indent}{name}[{at}] = {};", value(kernel, *stored));
            }
            Statement::StoreLanes(target, at, stored) => {
                let (at, stored) = (of_lane(kernel, at), value(kernel, *stored));
                let target = argument(kernel, *target);
                let _ = writeln!(text, "{indent}{target}[{at}] = {stored};");
            }
            Statement::For { var, extent, body } => {
                let var = var_name(kernel, *var);
                let small = extent * size(body) <= WRITTEN_OUT;
                let arrays = small && in_registers(kernel) && reaches_own(kernel, body);
                let unroll = if arrays || deals_out(kernel, body) { "" } else { " 1" };
                let _ = writeln!(text, "{indent}#pragma unroll{unroll}");
                let _ = writeln!(text, "{indent}for (int {var} = 0; {var} < {extent}; ++{var}) {{");
                block(text, kernel, words, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::Scatter { target, to, value: stored, write: mode } => {
                let Indexed { map, at, scale, offset, masked } = to;
                let (target, map) = (argument(kernel, *target), argument(kernel, *map));
                let place = format!("(size_t)to * {scale} + {offset}");
                let write = write_to(kernel, *mode, target, &place, &value(kernel, *stored));
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
                    let [a, b] = ends.map(|end| value(kernel, end));
                    let _ = writeln!(
                        text,
                        "{indent}    add_edge({target}, edge, {scale}, {offset}, {a}, {b});"
                    );
                }
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::GatherRun { source, run } => {
                let Run { map, at, scale, local, positions, first, length } = run;
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
            Statement::ScatterRun { target, run, write: mode } => {
                let Run { map, at, scale, local, positions, first, length } = run;
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
            Statement::Set(var) => {
                let from = match kernel.integer(*var) {
                    Some(Integer::Element(map, at)) => {
                        format!("{}[{}]", argument(kernel, *map), index(kernel, at))
                    }
                    Some(Integer::Entry(array, at)) => {
                        format!("{}[{}]", integers_name(kernel, *array), index(kernel, at))
                    }
                    Some(Integer::Rest(of, by)) => format!("{} % {by}u", var_name(kernel, *of)),
                    None => continue,
                };
                let name = var_name(kernel, *var);
                let _ = writeln!(text, "{indent}const uint32 {name} = {from};");
            }
            Statement::StoreInteger(array, at, var) => {
                let (array, at) = (integers_name(kernel, *array), index(kernel, at));
                let _ = writeln!(text, "{indent}{array}[{at}] = {};", var_name(kernel, *var));
            }
            Statement::StoreAt { target, var, scale, offset, value: stored, write: mode } => {
                let place = format!("(size_t){} * {scale} + {offset}", var_name(kernel, *var));
                let (target, stored) = (argument(kernel, *target), value(kernel, *stored));
                let write = write_to(kernel, *mode, target, &place, &stored);
                let _ = writeln!(text, "{indent}{write}");
            }
            Statement::StoreShared(shared, at, stored) => {
                let (name, at) = (shared_name(kernel, *shared), index(kernel, at));
                let _ = writeln!(text, "{indent}{name}[{at}] = {};", value(kernel, *stored));
            }
            Statement::Barrier => {
                let _ = writeln!(text, "{indent}{};", words.barrier);
            }
            Statement::Fence => {
                let _ = writeln!(text, "{indent}{};", words.fence);
            }
            Statement::Recompute(var) => {
                let Some(Thread::Border { digits, last }) = kernel.thread_of(*var) else {
                    continue;
                };
                let on = digits.map(|digit| match kernel.thread_of(digit) {
                    Some(Thread::Digit { divisor, modulus }) => {
                        format!("number / {divisor} % {modulus}")
                    }
                    _ => var_name(kernel, digit),
                });
                let (var, on) = (var_name(kernel, *var), on_border(on, last));
                let number = "const int number = thread_again();";
                let _ = writeln!(text, "{indent}{{ {number} {var} = {on}; }}");
            }
            Statement::When { conditions, body } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|one| condition(kernel, one)).collect();
                let _ = writeln!(text, "{indent}if ({}) {{", conditions.join(" && "));
                block(text, kernel, words, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::Comment(words) => comment(text, &indent, words),
            // Dropped by `legalise`.
            Statement::Prefetch(..) | Statement::PrefetchIndexed { .. } | Statement::Stage => {}
        }
    }
}

fn condition(kernel: &Kernel, condition: &Condition) -> String {
    let name = condition.var().map(|var| var_name(kernel, var)).unwrap_or_default();
    match (condition, kernel.active) {
        (Condition::Below(_, bound), _) => format!("{name} < {bound}"),
        (Condition::Something(_), _) => format!("{name} != 0xffffffffu"),
        (Condition::Equals(_, number), _) => format!("{name} == {number}u"),
        (Condition::Bit(_, bit), _) => format!("({name} >> {bit} & 1)"),
        (Condition::ActiveCell(cell), Some(active)) => {
            format!("{} < (int){}[batch]", index(kernel, cell), argument(kernel, active))
        }
        (Condition::Active | Condition::ActiveCell(_), _) => "writes".to_owned(),
    }
}

fn position(entries: &crate::kir::Entries, at: usize) -> u32 {
    match entries {
        crate::kir::Entries::Position(places) => places[at],
        crate::kir::Entries::Real(_) => unreachable!("a run's places should be positions"),
    }
}

/// What stands behind the `=` of a value; nothing for what is written where it is used.
fn definition(kernel: &Kernel, id: ValueId) -> Option<String> {
    let v = |id: ValueId| value(kernel, id);
    Some(match &kernel.values[id].op {
        Op::Constant(_) => return None,
        Op::LoadTable(_, at) if at.known().is_some() => return None,
        Op::Broadcast(operand) => v(*operand),
        Op::Unary(function, a) => unary(*function, &v(*a)),
        Op::Binary(function, a, b) => binary(*function, &v(*a), &v(*b)),
        Op::Fma(a, b, c) => format!("fma({}, {}, {})", v(*a), v(*b), v(*c)),
        Op::FmaNeg(a, b, c) => format!("fma(-{}, {}, {})", v(*a), v(*b), v(*c)),
        // A division has branches there.
        Op::Quotient(a, b) => format!("{} * reciprocal({})", v(*a), v(*b)),
        Op::Reciprocal(a) => format!("reciprocal({})", v(*a)),
        Op::Compare(comparison, a, b) => format!("{} {} {}", v(*a), sign(*comparison), v(*b)),
        Op::And(a, b) => format!("{} && {}", v(*a), v(*b)),
        Op::Or(a, b) => format!("{} || {}", v(*a), v(*b)),
        Op::Not(a) => format!("!{}", v(*a)),
        Op::Select(c, a, b) => format!("{} ? {} : {}", v(*c), v(*a), v(*b)),
        Op::LoadShared(shared, at) => {
            format!("{}[{}]", shared_name(kernel, *shared), index(kernel, at))
        }
        Op::LoadLocal(local, at) => {
            format!("{}[{}]", local_name(kernel, *local), index(kernel, at))
        }
        Op::LoadTable(table, at) => {
            format!("{}[{}]", table_name(kernel, *table), index(kernel, at))
        }
        Op::LoadUniform(from, at) => {
            format!("{}[{}]", argument(kernel, *from), index(kernel, at))
        }
        Op::LoadLanes(from, at) => {
            format!("{}[{}]", argument(kernel, *from), of_lane(kernel, at))
        }
        Op::LoadAt { source, var, scale, offset, masked } => {
            let (source, var) = (argument(kernel, *source), var_name(kernel, *var));
            match masked {
                true => format!("gather_masked({source}, {var}, {scale}, {offset})"),
                false => format!("{source}[(size_t){var} * {scale} + {offset}]"),
            }
        }
        Op::Gather { source, from: Indexed { map, at, scale, offset, masked } } => {
            let (source, map) = (argument(kernel, *source), argument(kernel, *map));
            let at = of_lane(kernel, at);
            if *masked {
                format!("gather_masked({source}, {map}[{at}], {scale}, {offset})")
            } else {
                format!("{source}[(size_t){map}[{at}] * {scale} + {offset}]")
            }
        }
    })
}

fn unary(function: Unary, a: &str) -> String {
    let name = match function {
        Unary::Neg => return format!("-{a}"),
        Unary::Sign => return format!("(T)(({a} > 0) - ({a} < 0))"),
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
    format!("{name}({a})")
}

fn binary(function: Binary, a: &str, b: &str) -> String {
    match function {
        Binary::Add => format!("{a} + {b}"),
        Binary::Sub => format!("{a} - {b}"),
        Binary::Mul => format!("{a} * {b}"),
        Binary::Div => format!("{a} / {b}"),
        Binary::Pow => format!("pow({a}, {b})"),
        Binary::Atan2 => format!("atan2({a}, {b})"),
        Binary::Min => format!("{b} < {a} ? {b} : {a}"),
        Binary::Max => format!("{a} < {b} ? {b} : {a}"),
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
    let mut reaches = |statement: &Statement| match statement {
        Statement::Let(id) => matches!(kernel.values[*id].op, Op::LoadLocal(..)),
        Statement::Set(var) => matches!(kernel.integer(*var), Some(Integer::Entry(..))),
        Statement::StoreLocal(..)
        | Statement::StoreInteger(..)
        | Statement::GatherRun { .. }
        | Statement::ScatterRun { .. } => true,
        _ => false,
    };
    body.iter().any(|statement| statement.any(&mut reaches))
}

/// Whether a body does what threads or lanes deal out among themselves: a few rounds, none of which waits for another.
fn deals_out(kernel: &Kernel, body: &[Statement]) -> bool {
    let by_member =
        |at: &Index| at.terms.iter().any(|&(var, _)| kernel.thread_of(var) == Some(Thread::Member));
    body.iter().any(|statement| match statement {
        Statement::Set(var) => {
            matches!(kernel.integer(*var), Some(Integer::Element(_, at)) if by_member(at))
        }
        Statement::StoreShared(_, at, _) => by_member(at),
        _ => false,
    })
}

/// Whether a thread's own arrays can become registers if all loops over them are written out.
fn in_registers(kernel: &Kernel) -> bool {
    kernel.locals.iter().map(|local| local.length).sum::<usize>() <= REGISTERS
}

#[cfg(test)]
mod tests {
    use super::{block, renamed};
    use crate::dialect::cuda::CUDA;
    use crate::kir::build::Builder;
    use crate::kir::{Condition, Element, Index, Integer, Precision, Statement, Write};

    #[test]
    fn each_lane_does_what_its_mask_says() {
        let mut b = Builder::new("f", Precision::F64, 4);
        let (masks, y) =
            (b.argument("masks", Element::U32, false), b.argument("y", Element::Real, true));
        let x = b.argument("x", Element::Real, false);
        let (batch, kept) = (Index::from(b.batch()), b.integers("kept", 1));
        let var = b.load_index("mask", masks, &batch);
        b.statement(Statement::StoreInteger(kept, Index::from(0), var));
        b.open_when();
        let again = b.integer("again", Integer::Entry(kept, Index::from(0)));
        let rest = b.integer("rest", Integer::Rest(again, 8));
        b.open_when();
        let value = b.load_at(x, var, (3, 1), false);
        let (scale, offset, write) = (2, 0, Write::Exclusive);
        b.statement(Statement::StoreAt { target: y, var, scale, offset, value, write });
        b.close_when(vec![Condition::Equals(rest, 5), Condition::Active]);
        b.close_when(vec![Condition::Something(var), Condition::Bit(var, 2)]);
        let kernel = b.finish();
        let mut text = String::new();
        block(&mut text, &kernel, &CUDA, &kernel.body, 0);
        let want = "\
const uint32 mask_2 = masks[4 * batch + lane];
kept_0[0] = mask_2;
if (mask_2 != 0xffffffffu && (mask_2 >> 2 & 1)) {
    const uint32 again_3 = kept_0[0];
    const uint32 rest_4 = again_3 % 8u;
    if (rest_4 == 5u && writes) {
        const T v0 = x[(size_t)mask_2 * 3 + 1];
        y[(size_t)mask_2 * 2 + 0] = v0;
    }
}
";
        assert_eq!(text, want);
    }

    #[test]
    fn a_value_is_not_called_as_a_variable() {
        let mut b = Builder::new("f", Precision::F64, 1);
        let params = b.argument("params", Element::Real, false);
        b.set_threads(4, 1);
        let (cell, t) = (b.thread_var("cell", 4, 1), b.thread_var("t", 1, 4));
        assert!(cell < t);
        for (at, name) in ["time", "cell", "t", "t"].into_iter().enumerate() {
            let value = b.load_uniform(params, Index::from(at));
            b.name(value, name);
        }
        let kernel = renamed(&b.finish());
        let names: Vec<&str> = kernel.values.iter().filter_map(|v| v.name.as_deref()).collect();
        assert_eq!(names, ["time", "cell_", "t_", "t"]);
    }
}
