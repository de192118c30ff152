//! Statements and values of a kernel on vectors, in the words of a language.

use super::{Function, Kind, Spelling};
use crate::dialect::comment::comment;
use crate::dialect::fold::{Expression, FoldedKernel, Precedence, Style};
use crate::dialect::names::rename;
use crate::kir::{
    ArgumentId, Binary, Cache, Index, IndirectIndex, Integer, Kernel, LocalId, Op, Positions, Run,
    Statement, ValueId, VarId, WeightedLines, Write as Mode,
};
use std::fmt::Write;

fn local_name(kernel: &Kernel, id: LocalId) -> &str {
    &kernel.locals[id].name
}

fn var_name(kernel: &Kernel, id: VarId) -> &str {
    &kernel.vars[id].name
}

fn argument(kernel: &Kernel, id: ArgumentId) -> &str {
    &kernel.arguments[id].name
}

/// Returns the kernel in printable form: valid names, and values folded into the expressions that use them.
pub(in crate::dialect) fn folded<S: Spelling>(kernel: &Kernel) -> FoldedKernel {
    let length =
        |kernel: &FoldedKernel, id: ValueId| definition::<S>(kernel, id).map(|own| own.text.len());
    let style = Style { listed: None, scatters: true, within: S::WITHIN };
    FoldedKernel::new(rename(kernel, S::RESERVED), style, length)
}

/// Returns the number of loops at any depth.
pub(in crate::dialect) fn loops(body: &[Statement]) -> usize {
    let mut count = 0;
    let mut one = |statement: &Statement| {
        count += usize::from(matches!(statement, Statement::For { .. }));
    };
    body.iter().for_each(|statement| statement.for_each(&mut one));
    count
}

/// Returns whether a statement writes through an index array.
pub(in crate::dialect) fn scatters(statement: &Statement) -> bool {
    statement.any(&mut |one| {
        matches!(
            one,
            Statement::Scatter { .. }
                | Statement::ScatterRun { .. }
                | Statement::ScatterEdge { .. }
        )
    })
}

/// Returns an index times a factor.
pub(in crate::dialect) fn index(kernel: &Kernel, index: &Index, factor: usize) -> String {
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
fn value<S: Spelling>(kernel: &FoldedKernel, id: ValueId) -> Expression {
    match &kernel.values[id].op {
        Op::Constant(constant) => S::literal(kernel, *constant),
        Op::Broadcast(operand) if matches!(kernel.values[*operand].op, Op::Constant(_)) => {
            S::splat(kernel, false, &value::<S>(kernel, *operand))
        }
        _ if kernel.folds(id) => definition::<S>(kernel, id)
            .unwrap_or_else(|| Expression::primary(kernel.value_name(id))),
        _ => Expression::primary(kernel.value_name(id)),
    }
}

/// Prints statements, each on its line.
pub(in crate::dialect) fn block<S: Spelling>(
    text: &mut String,
    kernel: &FoldedKernel,
    body: &[Statement],
    depth: usize,
) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::For { var, extent, body } => {
                let _ = writeln!(text, "{indent}{}", S::repeat(var_name(kernel, *var), *extent));
                block::<S>(text, kernel, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::When { conditions, body } => {
                let named = |id: Option<VarId>| id.map(|id| var_name(kernel, id));
                let conditions = conditions.iter().map(|one| {
                    let mut vars = one.vars();
                    let [name, other] =
                        [named(vars.next()), named(vars.next())].map(Option::unwrap_or_default);
                    S::condition(one, name, other)
                });
                let conditions: Vec<String> = conditions.collect();
                let _ = writeln!(text, "{indent}{}", S::when(&conditions.join(" && ")));
                block::<S>(text, kernel, body, depth + 1);
                let _ = writeln!(text, "{indent}}}");
            }
            Statement::Comment(words) => comment(text, &indent, words),
            other => {
                if let Some(line) = line::<S>(kernel, other) {
                    let _ = writeln!(text, "{indent}{line};");
                }
            }
        }
    }
}

/// Returns a statement without a body; `None` for a value that is folded into its use.
fn line<S: Spelling>(kernel: &FoldedKernel, statement: &Statement) -> Option<String> {
    let stored = |id: ValueId| value::<S>(kernel, id);
    let batch_index = |at: &Index| index(kernel, at, kernel.lanes);
    Some(match statement {
        Statement::Let(id) if kernel.folds(*id) => return None,
        Statement::Let(id) => {
            let own = definition::<S>(kernel, *id)?;
            let (wide, name) = (kernel.values[*id].varying, kernel.value_name(*id));
            let of_truth = match kernel.values[*id].op {
                Op::Broadcast(of) => kernel.values[of].op.is_truth(),
                ref op => op.is_truth(),
            };
            let kind = if of_truth { Kind::Truth(wide) } else { Kind::Real(wide) };
            S::define(kernel, kind, &name, &own.text)
        }
        Statement::StoreLocal(local, at, id) => {
            let (name, at) = (local_name(kernel, *local), index(kernel, at, 1));
            format!("{} = {}", S::element(name, &at).text, stored(*id).text)
        }
        Statement::StoreLanes(target, at, id) => {
            S::store(kernel, &stored(*id), argument(kernel, *target), &batch_index(at))
        }
        Statement::Scatter { target, to, value: id, .. } => {
            let IndirectIndex { map, at, scale, offset, masked } = to;
            let name = if *masked { "scatter_masked" } else { "scatter" };
            let map = S::address(argument(kernel, *map), &batch_index(at));
            let arguments = [
                stored(*id).text,
                argument(kernel, *target).to_owned(),
                map,
                scale.to_string(),
                offset.to_string(),
                "active_lanes".to_owned(),
            ];
            S::call(kernel, &Function::plain(name), &arguments)
        }
        Statement::GatherRun { source, run } => {
            run_call::<S>(kernel, run, argument(kernel, *source), None)
        }
        Statement::ScatterRun { target, run, write } => {
            let adds = *write != Mode::Exclusive;
            run_call::<S>(kernel, run, argument(kernel, *target), Some(adds))
        }
        Statement::Prefetch(from, at, cache) => {
            let level = match cache {
                Cache::First => 0,
                Cache::Second => 1,
            };
            S::prefetch(kernel, level, argument(kernel, *from), &batch_index(at))
        }
        Statement::PrefetchIndexed { array, map, entries, entry, scale, batches } => {
            let later = S::lesser(&format!("batch + {batches}"), "end - 1");
            let at = format!("{} * {later} + {}", entries * kernel.lanes, entry * kernel.lanes);
            let map = S::address(argument(kernel, *map), &at);
            let arguments = [argument(kernel, *array).to_owned(), map, scale.to_string()];
            S::call(kernel, &Function::plain("prefetch_indexed"), &arguments)
        }
        Statement::Set(var) => {
            let from = match kernel.integer(*var)? {
                Integer::Element(map, at) => {
                    S::integer(argument(kernel, *map), &index(kernel, at, 1))
                }
                Integer::Rest(of, by) => format!("{} % {by}", var_name(kernel, *of)),
                Integer::Entry(..) => return None,
            };
            S::define(kernel, Kind::Integer, var_name(kernel, *var), &from)
        }
        Statement::ScatterEdge { .. } => unreachable!("`legalise` takes edges apart"),
        // `block` prints what has a body, and comments. Kernels for groups of threads have no vectors, and neither have
        // statements that differ between lanes.
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

/// Returns the call that gathers a run, or scatters it in a mode.
fn run_call<S: Spelling>(
    kernel: &FoldedKernel,
    run: &Run,
    array: &str,
    adds: Option<bool>,
) -> String {
    let Run { scale, length, map, at, positions, first, .. } = run;
    let map = S::address(argument(kernel, *map), &index(kernel, at, kernel.lanes));
    let positions = match positions {
        Positions::Table(table) => S::address(&S::table(kernel, *table), &first.to_string()),
        Positions::Row(array, start) => {
            let start = index(kernel, &start.plus(*first), 1);
            S::address(argument(kernel, *array), &start)
        }
    };
    let scatters = adds.is_some();
    let (mut arguments, mut constants) =
        (vec![array.to_owned(), map.clone()], vec![*length, *scale]);
    arguments.extend(scatters.then(|| "active_lanes".to_owned()));
    let mut name = if scatters { "scatter_run" } else { "gather_run" };
    match &run.lines {
        None => arguments.extend([local_name(kernel, run.local).to_owned(), positions]),
        Some(WeightedLines { n, components, weights, .. }) => {
            let locals: Vec<&str> = run.locals().map(|local| local_name(kernel, local)).collect();
            constants.extend([*n, *components, locals.len()]);
            let locals = S::pointers(kernel, &locals, !scatters);
            arguments.extend([locals, positions, S::table(kernel, *weights)]);
            name = if scatters { "scatter_lines" } else { "gather_lines" };
        }
    }
    let call = S::call(kernel, &Function { name, constants: &constants, adds }, &arguments);
    if run.masked && scatters { S::unless_masked(&map, &call) } else { call }
}

/// Returns the right-hand side of a value's definition; `None` for numbers, which are printed at their use.
fn definition<S: Spelling>(kernel: &FoldedKernel, id: ValueId) -> Option<Expression> {
    let wide = kernel.values[id].varying;
    let v = |id: ValueId| value::<S>(kernel, id);
    let element = |array: &str, at: &Index| Some(S::element(array, &index(kernel, at, 1)));
    Some(match &kernel.values[id].op {
        Op::Constant(_) | Op::LoadShared(..) | Op::LoadAt { .. } => return None,
        Op::Broadcast(operand) => match &kernel.values[*operand].op {
            Op::Constant(_) => return None,
            op => S::splat(kernel, op.is_truth(), &v(*operand)),
        },
        Op::Unary(function, a) => S::unary(kernel, *function, wide, &v(*a)),
        Op::Binary(function, a, b) => S::binary(kernel, *function, wide, &v(*a), &v(*b)),
        Op::Quotient(a, b) => S::binary(kernel, Binary::Div, wide, &v(*a), &v(*b)),
        Op::Fma(a, b, c) => S::fma(kernel, wide, false, [&v(*a), &v(*b), &v(*c)]),
        Op::FmaNeg(a, b, c) => S::fma(kernel, wide, true, [&v(*a), &v(*b), &v(*c)]),
        Op::Reciprocal(a) => S::reciprocal(kernel, wide, &v(*a)),
        Op::Compare(comparison, a, b) => S::compare(kernel, *comparison, wide, &v(*a), &v(*b)),
        Op::And(a, b) => S::join(true, wide, &v(*a), &v(*b)),
        Op::Or(a, b) => S::join(false, wide, &v(*a), &v(*b)),
        Op::Not(a) => S::not(wide, &v(*a)),
        Op::Select(c, a, b) => S::select(kernel, wide, &v(*c), &v(*a), &v(*b)),
        Op::LoadLocal(local, at) => return element(local_name(kernel, *local), at),
        Op::LoadTable(table, at) => return element(&S::table(kernel, *table), at),
        Op::LoadUniform(from, at) => return element(argument(kernel, *from), at),
        Op::LoadLanes(from, at) => {
            S::load(kernel, argument(kernel, *from), &index(kernel, at, kernel.lanes))
        }
        Op::Flag { masks, at, bit } => {
            let masks = S::address(argument(kernel, *masks), &index(kernel, at, kernel.lanes));
            let arguments = [masks, bit.to_string()];
            Expression::primary(S::call(kernel, &Function::plain("flags"), &arguments))
        }
        Op::Gather { source, from: IndirectIndex { map, at, scale, offset, masked } } => {
            let name = if *masked { "gather_masked" } else { "gather" };
            let map = S::address(argument(kernel, *map), &index(kernel, at, kernel.lanes));
            let source = argument(kernel, *source).to_owned();
            let arguments = [source, map, scale.to_string(), offset.to_string()];
            Expression::primary(S::call(kernel, &Function::plain(name), &arguments))
        }
    })
}

/// Returns the product of two scalars, for the sum of a fused operation.
pub(in crate::dialect) fn product(a: &Expression, b: &Expression) -> Expression {
    let binding = Precedence::Product;
    Expression::new(binding, format!("{} * {}", a.within(binding), b.behind(binding)))
}

/// Returns an infix operation.
pub(in crate::dialect) fn infix(
    binding: Precedence,
    a: &Expression,
    sign: &str,
    b: &Expression,
) -> Expression {
    Expression::new(binding, format!("{} {sign} {}", a.within(binding), b.behind(binding)))
}
