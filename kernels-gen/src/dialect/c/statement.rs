//! Statements and expressions of the C family.

use super::{Vocabulary, number};
use crate::dialect::comment::comment;
use crate::dialect::fold::{Expression, FoldedKernel, Precedence, Style};
use crate::dialect::maths::c_function;
use crate::dialect::names::{C, rename};
use crate::kir::{
    ArgumentId, Binary, Comparison, Condition, Index, IndirectIndex, Integer, IntegersId, Kernel,
    LocalId, Op, Positions, Run, SharedId, Statement, TableId, Thread, Unary, ValueId, VarId,
    Write as Mode,
};
use crate::limits::{REGISTERS, WRITTEN_OUT};
use std::fmt::Write;

pub(super) fn local_name(kernel: &Kernel, id: LocalId) -> &str {
    &kernel.locals[id].name
}

pub(super) fn shared_name(kernel: &Kernel, id: SharedId) -> &str {
    &kernel.shared[id].name
}

pub(super) fn integers_name(kernel: &Kernel, id: IntegersId) -> &str {
    &kernel.integers[id].name
}

pub(super) fn table_name(kernel: &Kernel, id: TableId) -> &str {
    &kernel.tables[id].name
}

pub(super) fn var_name(kernel: &Kernel, id: VarId) -> &str {
    &kernel.vars[id].name
}

/// Returns the kernel in printable form: valid names, and values folded into the expressions that use them.
pub(super) fn folded(kernel: &Kernel, words: &Vocabulary) -> FoldedKernel {
    let length =
        |kernel: &FoldedKernel, id: ValueId| definition(kernel, id).map(|own| own.text.len());
    let style = Style { listed: words.listed, scatters: false, within: 6 };
    FoldedKernel::new(rename(kernel, &C), style, length)
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

/// Returns element `i · lanes + lane`.
fn of_lane(kernel: &Kernel, at: &Index) -> String {
    if kernel.lanes == 1 {
        return index(kernel, at);
    }
    format!("({}) * {} + lane", index(kernel, at), kernel.lanes)
}

/// Returns the expression of a value at its use: a number, its folded expression, or its name.
fn value(kernel: &FoldedKernel, id: ValueId) -> Expression {
    match &kernel.values[id].op {
        Op::Constant(constant) => {
            let text = number(*constant, kernel.precision);
            let binding =
                if text.starts_with(['-', '(']) { Precedence::Prefix } else { Precedence::Primary };
            Expression::new(binding, text)
        }
        // Folded at its use, like a number.
        Op::LoadTable(table, at) if at.known().is_some() => {
            let (table, at) = (table_name(kernel, *table), index(kernel, at));
            Expression::primary(match kernel.style.listed {
                Some(listed) => format!("{listed}({table}[{at}])"),
                None => format!("{table}[{at}]"),
            })
        }
        _ if kernel.folds(id) => {
            definition(kernel, id).unwrap_or_else(|| Expression::primary(kernel.value_name(id)))
        }
        _ => Expression::primary(kernel.value_name(id)),
    }
}

fn argument(kernel: &Kernel, id: ArgumentId) -> &str {
    &kernel.arguments[id].name
}

/// Returns whether a variable is recomputed at its uses.
pub(super) fn recomputes(body: &[Statement], id: VarId) -> bool {
    body.iter().any(|statement| statement.any(&mut |one| *one == Statement::Recompute(id)))
}

/// Returns the test that a digit is 0 or the last.
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
    kernel: &FoldedKernel,
    words: &Vocabulary,
    body: &[Statement],
    depth: usize,
) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::For { var, extent, body } => {
                let var = var_name(kernel, *var);
                let small = extent * size(body) <= WRITTEN_OUT;
                let arrays = small && in_registers(kernel) && reaches_own(kernel, body);
                let unroll = if arrays || distributes(kernel, body) { "" } else { " 1" };
                let _ = writeln!(text, "{indent}#pragma unroll{unroll}");
                let _ = writeln!(text, "{indent}for (int {var} = 0; {var} < {extent}; ++{var}) {{");
                block(text, kernel, words, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::When { conditions, body } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|one| condition(kernel, one)).collect();
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
            other => {
                for line in lines(kernel, words, other) {
                    let _ = writeln!(text, "{indent}{line}");
                }
            }
        }
    }
}

/// Returns the lines of a statement without a body; none for a value that is folded into its use.
fn lines(kernel: &FoldedKernel, words: &Vocabulary, statement: &Statement) -> Vec<String> {
    let stored = |id: ValueId| value(kernel, id).text;
    let line = match statement {
        Statement::Let(id) if kernel.folds(*id) => None,
        Statement::Let(id) => definition(kernel, *id).map(|own| {
            let kind = if kernel.values[*id].op.is_truth() { "bool" } else { "T" };
            format!("const {kind} {} = {};", kernel.value_name(*id), own.text)
        }),
        Statement::StoreLocal(local, at, id) => {
            let (name, at) = (local_name(kernel, *local), index(kernel, at));
            Some(format!("{name}[{at}] = {};", stored(*id)))
        }
        Statement::StoreShared(shared, at, id) => {
            let (name, at) = (shared_name(kernel, *shared), index(kernel, at));
            Some(format!("{name}[{at}] = {};", stored(*id)))
        }
        Statement::StoreLanes(target, at, id) => {
            let (target, at) = (argument(kernel, *target), of_lane(kernel, at));
            Some(format!("{target}[{at}] = {};", stored(*id)))
        }
        Statement::StoreInteger(array, at, var) => {
            let (array, at) = (integers_name(kernel, *array), index(kernel, at));
            Some(format!("{array}[{at}] = {};", var_name(kernel, *var)))
        }
        Statement::StoreAt { target, var, scale, offset, value: id, write: mode } => {
            let place = element(var_name(kernel, *var), *scale, *offset);
            Some(write_to(kernel, *mode, argument(kernel, *target), &place, &stored(*id)))
        }
        Statement::Scatter { target, to, value: id, write: mode } => {
            Some(scatter(kernel, *target, to, *mode, &stored(*id)))
        }
        Statement::ScatterEdge { target, map, at, scale, values } => {
            return scatter_edge(kernel, (*target, *map), at, *scale, values);
        }
        Statement::GatherRun { source, run } => return gather_run(kernel, *source, run),
        Statement::ScatterRun { target, run, write: mode } => {
            return scatter_run(kernel, *target, run, *mode);
        }
        Statement::Set(var) => set(kernel, *var),
        Statement::Recompute(var) => recompute(kernel, *var),
        Statement::Barrier => Some(format!("{};", words.barrier)),
        Statement::Fence => Some(format!("{};", words.fence)),
        // `block` prints what has a body, and comments; `legalise` drops the others.
        Statement::For { .. }
        | Statement::When { .. }
        | Statement::Comment(_)
        | Statement::Prefetch(..)
        | Statement::PrefetchIndexed { .. }
        | Statement::Stage => None,
    };
    line.into_iter().collect()
}

fn scatter(
    kernel: &Kernel,
    target: ArgumentId,
    to: &IndirectIndex,
    mode: Mode,
    stored: &str,
) -> String {
    let IndirectIndex { map, at, scale, offset, masked } = to;
    let map = argument(kernel, *map);
    let place = element("to", *scale, *offset);
    let write = write_to(kernel, mode, argument(kernel, target), &place, stored);
    let mask = if *masked { " && to != 0xffffffffu" } else { "" };
    let (at, batch) = (of_lane(kernel, at), kernel.batch_of(at));
    // Registers are scarce in groups of threads: the index is read again instead of kept.
    let index = match kernel.threads {
        0 => format!("{map}[{at}]"),
        _ => format!("again(&{map}[{at}])"),
    };
    let writes = match batch {
        Some(var) => format!("writes_{}", var_name(kernel, var)),
        None => "writes".to_owned(),
    };
    format!("{{ const uint32 to = {index}; if ({writes}{mask}) {write} }}")
}

fn scatter_edge(
    kernel: &FoldedKernel,
    (target, map): (ArgumentId, ArgumentId),
    at: &[Index; 2],
    scale: usize,
    values: &[(usize, [ValueId; 2])],
) -> Vec<String> {
    let (target, map) = (argument(kernel, target), argument(kernel, map));
    let [near, far] =
        [&at[0], &at[1]].map(|at| format!("writes ? {map}[{}] : 0xffffffffu", of_lane(kernel, at)));
    let mut lines = vec!["{".to_owned(), format!("    const Edge edge = edge_of({near}, {far});")];
    lines.extend(values.iter().map(|(offset, ends)| {
        let [a, b] = ends.map(|end| value(kernel, end).text);
        format!("    add_edge({target}, edge, {scale}, {offset}, {a}, {b});")
    }));
    lines.push("}".to_owned());
    lines
}

fn gather_run(kernel: &Kernel, source: ArgumentId, run: &Run) -> Vec<String> {
    let Run { map, at, scale, local, positions, first, length, .. } = run;
    let (source, map) = (argument(kernel, source), argument(kernel, *map));
    let Positions::Table(table) = positions else {
        unreachable!("threads address no rotated cells by runs")
    };
    let places = &kernel.tables[*table].entries;
    let (local, at) = (local_name(kernel, *local), of_lane(kernel, at));
    let start = format!("    const size_t from = (size_t){map}[{at}] * {scale};");
    let mut lines = vec!["{".to_owned(), start];
    // A run that begins at an even element and is padded can be read in pairs.
    let pairs = scale % 2 == 0 && length.next_multiple_of(2) <= *scale;
    lines.extend((0..*length).map(|j| {
        let (place, half) = (position(places, first + j), ["x", "y"][j % 2]);
        match pairs {
            true => {
                format!("    {local}[{place}] = pair({source} + from + {}).{half};", j / 2 * 2)
            }
            false => format!("    {local}[{place}] = {source}[from + {j}];"),
        }
    }));
    lines.push("}".to_owned());
    lines
}

fn scatter_run(kernel: &Kernel, target: ArgumentId, run: &Run, mode: Mode) -> Vec<String> {
    let Run { map, at, scale, local, positions, first, length, .. } = run;
    let (target, map) = (argument(kernel, target), argument(kernel, *map));
    let Positions::Table(table) = positions else {
        unreachable!("threads address no rotated cells by runs")
    };
    let places = &kernel.tables[*table].entries;
    let (local, at) = (local_name(kernel, *local), of_lane(kernel, at));
    let start = format!("    const size_t to = (size_t){map}[{at}] * {scale};");
    let mut lines = vec!["if (writes) {".to_owned(), start];
    lines.extend((0..*length).map(|j| {
        let stored = format!("{local}[{}]", position(places, first + j));
        format!("    {}", write_to(kernel, mode, target, &format!("to + {j}"), &stored))
    }));
    lines.push("}".to_owned());
    lines
}

/// Returns the definition of an integer.
fn set(kernel: &Kernel, var: VarId) -> Option<String> {
    let from = match kernel.integer(var)? {
        Integer::Element(map, at) => format!("{}[{}]", argument(kernel, *map), index(kernel, at)),
        Integer::Entry(array, at) => {
            format!("{}[{}]", integers_name(kernel, *array), index(kernel, at))
        }
        Integer::Rest(of, by) => format!("{} % {by}u", var_name(kernel, *of)),
    };
    Some(format!("const uint32 {} = {from};", var_name(kernel, var)))
}

/// Returns the assignment of a border variable from the thread's index, which is read again.
fn recompute(kernel: &Kernel, var: VarId) -> Option<String> {
    let Some(Thread::Border { digits, last }) = kernel.thread_of(var) else { return None };
    let on = digits.map(|digit| match kernel.thread_of(digit) {
        Some(Thread::Digit { divisor, modulus }) => format!("number / {divisor} % {modulus}"),
        _ => var_name(kernel, digit).to_owned(),
    });
    let (var, on) = (var_name(kernel, var), on_border(on, last));
    Some(format!("{{ const int number = thread_again(); {var} = {on}; }}"))
}

fn condition(kernel: &Kernel, condition: &Condition) -> String {
    let name = condition.vars().next().map(|var| var_name(kernel, var)).unwrap_or_default();
    match (condition, kernel.active) {
        (Condition::Below(_, bound), _) => format!("{name} < {bound}"),
        (Condition::Something(_), _) => format!("{name} != 0xffffffffu"),
        (Condition::Equals(_, number), _) => format!("{name} == {number}u"),
        (Condition::Bit(_, bit), _) => format!("({name} >> {bit} & 1)"),
        (Condition::NoBit(_, bit), _) => format!("!({name} >> {bit} & 1)"),
        (Condition::Meet(_, other), _) => format!("({name} & {})", var_name(kernel, *other)),
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

/// Returns the right-hand side of a value's definition; `None` for numbers, which are printed at their use.
fn definition(kernel: &FoldedKernel, id: ValueId) -> Option<Expression> {
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
            let a = value(kernel, *a).within(Precedence::Primary);
            primary(format!("fma(-{a}, {}, {})", v(*b), v(*c)))
        }
        // Division compiles to branches in this language.
        Op::Quotient(a, b) => {
            let a = value(kernel, *a).within(Precedence::Product);
            Some(Expression::new(Precedence::Product, format!("{a} * reciprocal({})", v(*b))))
        }
        Op::Reciprocal(a) => primary(format!("reciprocal({})", v(*a))),
        Op::Compare(comparison, a, b) => {
            let [a, b] = [a, b].map(|id| value(kernel, *id).within(Precedence::Sum));
            let text = format!("{a} {} {b}", sign(*comparison));
            Some(Expression::new(Precedence::Compare, text))
        }
        Op::And(a, b) => {
            let [a, b] = [a, b].map(|id| value(kernel, *id).within(Precedence::Compare));
            Some(Expression::new(Precedence::And, format!("{a} && {b}")))
        }
        Op::Or(a, b) => {
            let [a, b] = [a, b].map(|id| value(kernel, *id).within(Precedence::Compare));
            Some(Expression::new(Precedence::Or, format!("{a} || {b}")))
        }
        Op::Not(a) => {
            let a = value(kernel, *a).within(Precedence::Primary);
            Some(Expression::new(Precedence::Prefix, format!("!{a}")))
        }
        Op::Select(c, a, b) => {
            let [c, a, b] = [c, a, b].map(|id| value(kernel, *id).within(Precedence::Or));
            Some(Expression::new(Precedence::Choice, format!("{c} ? {a} : {b}")))
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
        Op::Flag { masks, at, bit } => {
            let masks = format!("{}[{}]", argument(kernel, *masks), of_lane(kernel, at));
            primary(format!("(T)({masks} >> {bit} & 1)"))
        }
        Op::LoadAt { source, var, scale, offset, masked } => {
            let (source, var) = (argument(kernel, *source), var_name(kernel, *var));
            primary(match masked {
                true => format!("gather_masked({source}, {var}, {scale}, {offset})"),
                false => format!("{source}[{}]", element(var, *scale, *offset)),
            })
        }
        Op::Gather { source, from: IndirectIndex { map, at, scale, offset, masked } } => {
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

/// Prints element `index · scale + offset`, in a wider type if the index type could overflow.
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
            return Expression::new(
                Precedence::Prefix,
                format!("-{}", a.within(Precedence::Primary)),
            );
        }
        Unary::Sign => {
            let a = a.within(Precedence::Sum);
            return Expression::new(Precedence::Prefix, format!("(T)(({a} > 0) - ({a} < 0))"));
        }
        function => c_function(function),
    };
    Expression::primary(format!("{name}({})", a.text))
}

fn binary(function: Binary, a: &Expression, b: &Expression) -> Expression {
    let infix = |binding: Precedence, sign: &str| {
        let text = format!("{} {sign} {}", a.within(binding), b.behind(binding));
        Expression::new(binding, text)
    };
    let call = |name: &str| Expression::primary(format!("{name}({}, {})", a.text, b.text));
    // Same comparison as in the interpreter: a NaN operand loses.
    let lesser = |a: &Expression, b: &Expression, of: [&Expression; 2]| {
        let [a, b] = [a, b].map(|side| side.within(Precedence::Sum));
        let [yes, no] = of.map(|side| side.within(Precedence::Or));
        Expression::new(Precedence::Choice, format!("{a} < {b} ? {yes} : {no}"))
    };
    match function {
        Binary::Add => infix(Precedence::Sum, "+"),
        Binary::Sub => infix(Precedence::Sum, "-"),
        Binary::Mul => infix(Precedence::Product, "*"),
        Binary::Div => infix(Precedence::Product, "/"),
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

/// Returns the number of statements of a body with its loops unrolled.
fn size(body: &[Statement]) -> usize {
    let each = body.iter().map(|statement| match statement {
        // The depth of loop nests is bounded by the strategies, for any input.
        Statement::For { extent, body, .. } => extent * size(body),
        Statement::When { body, .. } => size(body),
        _ => 1,
    });
    each.sum()
}

/// Returns whether a body accesses private arrays, which become registers if its loop is unrolled.
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

/// Returns whether a body distributes work over threads or lanes: few iterations, independent of one another.
fn distributes(kernel: &Kernel, body: &[Statement]) -> bool {
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

/// Returns whether a thread's private arrays can become registers with all loops over them unrolled.
fn in_registers(kernel: &Kernel) -> bool {
    kernel.locals.iter().map(|local| local.length).sum::<usize>() <= REGISTERS
}

#[cfg(test)]
mod tests {
    use super::{block, folded};
    use crate::dialect::cuda::CUDA;
    use crate::kir::build::Builder;
    use crate::kir::{Condition, Element, Index, Integer, Precision, Statement, Write};

    #[test]
    fn a_mask_decides_for_each_lane() {
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
        let kernel = folded(&b.finish(), &CUDA);
        let mut text = String::new();
        block(&mut text, &kernel, &CUDA, &kernel.body, 0);
        let want = "\
const uint32 mask = masks[4 * batch + lane];
kept[0] = mask;
if (mask != 0xffffffffu && (mask >> 2 & 1)) {
    const uint32 again_1 = kept[0];
    const uint32 rest = again_1 % 8u;
    if (rest == 5u && writes) y[(size_t)mask * 2] = x[(size_t)mask * 3 + 1];
}
";
        assert_eq!(text, want);
    }
}
