//! The textual form of a kernel, as `wf emit --stage kir` prints it.

use super::{
    Condition, Entries, Index, Indexed, Integer, Kernel, Op, Run, Statement, Thread, ValueId,
    VarId, Write,
};
use fem_dsl::arena::Id;
use std::fmt;

fn var_name(kernel: &Kernel, id: VarId) -> String {
    format!("{}.{}", kernel.vars[id].name, id.index())
}

struct Shown<'a>(&'a Kernel, &'a Index);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(kernel, index) = self;
        let mut first = true;
        for &(var, factor) in &index.terms {
            if !first {
                write!(f, " + ")?;
            }
            first = false;
            let name = var_name(kernel, var);
            if factor == 1 { write!(f, "{name}")? } else { write!(f, "{factor}*{name}")? }
        }
        match (first, index.constant) {
            (true, constant) => write!(f, "{constant}"),
            (false, 0) => Ok(()),
            (false, constant) => write!(f, " + {constant}"),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} : {:?} x {}", self.name, self.precision, self.lanes)?;
        if self.threads > 0 {
            write!(f, ", {} threads for {} batches", self.threads, self.group)?;
            if self.series > 1 {
                write!(f, ", {} times", self.series)?;
            }
        }
        if self.block > 1 {
            write!(f, ", {} batches a stage", self.block)?;
        }
        writeln!(f)?;
        for (id, argument) in self.arguments.iter_enumerated() {
            let access = if argument.written { "inout" } else { "in" };
            let mark = if self.active == Some(id) { " (active lanes)" } else { "" };
            writeln!(f, "  {access} {id} {}: {:?}{mark}", argument.name, argument.element)?;
        }
        for (id, local) in self.locals.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", local.name, local.length)?;
        }
        for (id, array) in self.integers.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", array.name, array.length)?;
        }
        for (id, shared) in self.shared.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", shared.name, shared.length)?;
        }
        for (id, var) in self.vars.iter_enumerated() {
            let name = var_name(self, id);
            match var.thread() {
                Some(Thread::Digit { divisor, modulus }) => {
                    writeln!(f, "  {name} = thread / {divisor} mod {modulus}")?;
                }
                Some(Thread::Member) => writeln!(f, "  {name} = thread or lane")?,
                Some(Thread::Listed(table)) => writeln!(f, "  {name} = {table}[thread]")?,
                Some(Thread::Border { digits: [a, b], last }) => {
                    writeln!(f, "  {name} = {a} or {b} is 0 or {last}")?;
                }
                Some(Thread::Batch { divisor }) => {
                    writeln!(f, "  {name} = the batch of cell thread / {divisor}")?;
                }
                None => {}
            }
        }
        for (id, table) in self.tables.iter_enumerated() {
            let (kind, length, hash) = match &table.entries {
                Entries::Real(entries) => {
                    ("real", entries.len(), digest(entries.iter().map(|entry| entry.to_bits())))
                }
                Entries::Position(entries) => {
                    let entries = entries.iter().map(|&entry| u64::from(entry));
                    ("position", entries.len(), digest(entries))
                }
            };
            writeln!(f, "  {id} {}: {kind}[{length}] hash={hash:016x}", table.name)?;
        }
        show_block(self, &self.body, 1, f)
    }
}

/// Returns a digest that replaces a table's entries in the output: FNV-1a of their bits.
fn digest(entries: impl Iterator<Item = u64>) -> u64 {
    entries.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn show_block(
    kernel: &Kernel,
    body: &[Statement],
    depth: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let at = |index| Shown(kernel, index);
    let indent = "  ".repeat(depth);
    for statement in body {
        write!(f, "{indent}")?;
        match statement {
            Statement::Let(value) => show_let(kernel, *value, f)?,
            Statement::StoreLocal(local, index, value) => {
                writeln!(f, "{local}[{}] = {value}", at(index))?;
            }
            Statement::StoreLanes(argument, index, value) => {
                writeln!(f, "{argument}[{}, lane] = {value}", at(index))?;
            }
            Statement::For { var, extent, body } => {
                writeln!(f, "for {} < {extent}", var_name(kernel, *var))?;
                show_block(kernel, body, depth + 1, f)?;
            }
            Statement::Scatter { target, to, value, write } => {
                let Indexed { map, scale, offset, masked, .. } = to;
                let (place, verb) = (at(&to.at), verb(*write));
                let mask = if *masked { " masked" } else { "" };
                writeln!(
                    f,
                    "{target}[{map}[{place}, lane] * {scale} + {offset}] {verb} {value}{mask}"
                )?;
            }
            Statement::ScatterEdge { target, map, at: [near, far], scale, values } => {
                let (near, far) = (at(near), at(far));
                for (offset, [a, b]) in values {
                    writeln!(
                        f,
                        "{target}[{map}[{near}|{far}, lane] * {scale} + {offset}] += {a}|{b} along an edge"
                    )?;
                }
            }
            Statement::GatherRun { source, run } => {
                let Run { map, scale, local, positions, first, length, .. } = run;
                let place = at(&run.at);
                writeln!(
                    f,
                    "{local}[{positions}[{first}..+{length}]] = {source}[{map}[{place}, lane] * {scale}..]"
                )?;
            }
            Statement::ScatterRun { target, run, write } => {
                let Run { map, scale, local, positions, first, length, .. } = run;
                let (place, verb) = (at(&run.at), verb(*write));
                writeln!(
                    f,
                    "{target}[{map}[{place}, lane] * {scale}..] {verb} {local}[{positions}[{first}..+{length}]]"
                )?;
            }
            Statement::Set(var) => {
                let name = var_name(kernel, *var);
                match kernel.integer(*var) {
                    Some(Integer::Element(map, index)) => {
                        writeln!(f, "{name} = {map}[{}]", at(index))?;
                    }
                    Some(Integer::Entry(array, index)) => {
                        writeln!(f, "{name} = {array}[{}]", at(index))?;
                    }
                    Some(Integer::Rest(of, by)) => {
                        writeln!(f, "{name} = {} mod {by}", var_name(kernel, *of))?;
                    }
                    None => writeln!(f, "{name} = ?")?,
                }
            }
            Statement::StoreInteger(array, index, var) => {
                writeln!(f, "{array}[{}] = {}", at(index), var_name(kernel, *var))?;
            }
            Statement::StoreAt { target, var, scale, offset, value, write } => {
                let (var, verb) = (var_name(kernel, *var), verb(*write));
                writeln!(f, "{target}[{var} * {scale} + {offset}] {verb} {value}")?;
            }
            Statement::Prefetch(argument, index, cache) => {
                writeln!(f, "prefetch {argument}[{}] to {cache:?}", at(index))?;
            }
            Statement::PrefetchIndexed { array, map, entries, entry, scale, batches } => {
                let place = format!("(batch + {batches}) * {entries} + {entry}");
                writeln!(f, "prefetch {array}[{map}[{place}, lane] * {scale}]")?;
            }
            Statement::Barrier => writeln!(f, "barrier")?,
            Statement::Fence => writeln!(f, "fence")?,
            Statement::Recompute(var) => writeln!(f, "recompute {var}")?,
            Statement::StoreShared(shared, index, value) => {
                writeln!(f, "{shared}[{}] = {value}", at(index))?;
            }
            Statement::When { conditions, body } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|condition| show_condition(kernel, condition)).collect();
                writeln!(f, "when {}:", conditions.join(" and "))?;
                show_block(kernel, body, depth + 1, f)?;
            }
            Statement::Stage => writeln!(f, "stage")?,
            Statement::Comment(text) => writeln!(f, "// {text}")?,
        }
    }
    Ok(())
}

fn show_condition(kernel: &Kernel, condition: &Condition) -> String {
    let name = condition.vars().next().map(|var| var_name(kernel, var)).unwrap_or_default();
    match condition {
        Condition::Below(_, bound) => format!("{name} < {bound}"),
        Condition::Something(_) => format!("{name} is something"),
        Condition::Equals(_, number) => format!("{name} is {number}"),
        Condition::Bit(_, bit) => format!("{name} has bit {bit}"),
        Condition::NoBit(_, bit) => format!("{name} has no bit {bit}"),
        Condition::Meet(_, other) => format!("{name} meets {}", var_name(kernel, *other)),
        Condition::Active => "active".to_owned(),
        Condition::ActiveCell(cell) => format!("{} < active", Shown(kernel, cell)),
    }
}

fn verb(write: Write) -> String {
    match write {
        Write::LaneSerial => "+= (lane-serial)".to_owned(),
        Write::Exclusive => "= (exclusive)".to_owned(),
        Write::Atomic => "+= (atomic)".to_owned(),
        Write::Alone => "+= (alone)".to_owned(),
        Write::Inside(border) => format!("= (exclusive) where {border} is 0, else += (atomic)"),
    }
}

fn show_let(kernel: &Kernel, id: ValueId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = &kernel.values[id];
    let kind = if value.varying { "" } else { " uniform" };
    let operand = |operand: ValueId| match kernel.values[operand].op {
        Op::Constant(number) => format!("{number}"),
        _ => operand.to_string(),
    };
    write!(f, "{id}{kind} = ")?;
    match &value.op {
        Op::LoadShared(shared, index) => write!(f, "{shared}[{}]", Shown(kernel, index))?,
        Op::LoadLocal(local, index) => write!(f, "{local}[{}]", Shown(kernel, index))?,
        Op::LoadTable(table, index) => write!(f, "{table}[{}]", Shown(kernel, index))?,
        Op::LoadUniform(argument, index) => write!(f, "{argument}[{}]", Shown(kernel, index))?,
        Op::LoadLanes(argument, index) => write!(f, "{argument}[{}, lane]", Shown(kernel, index))?,
        Op::Flag { masks, at, bit } => {
            write!(f, "{masks}[{}, lane] bit {bit}", Shown(kernel, at))?;
        }
        Op::Gather { source, from: Indexed { map, at, scale, offset, masked } } => {
            let mask = if *masked { " masked" } else { "" };
            let place = Shown(kernel, at);
            write!(f, "{source}[{map}[{place}, lane] * {scale} + {offset}]{mask}")?;
        }
        Op::LoadAt { source, var, scale, offset, masked } => {
            let (mask, var) = (if *masked { " masked" } else { "" }, var_name(kernel, *var));
            write!(f, "{source}[{var} * {scale} + {offset}]{mask}")?;
        }
        Op::Unary(function, _) => write!(f, "{function:?}")?,
        Op::Binary(function, ..) => write!(f, "{function:?}")?,
        Op::Compare(comparison, ..) => write!(f, "{comparison:?}")?,
        Op::Constant(number) => write!(f, "{number}")?,
        Op::Fma(..) => write!(f, "Fma")?,
        Op::FmaNeg(..) => write!(f, "FmaNeg")?,
        Op::Reciprocal(_) => write!(f, "Reciprocal")?,
        Op::Quotient(..) => write!(f, "Quotient")?,
        Op::And(..) => write!(f, "And")?,
        Op::Or(..) => write!(f, "Or")?,
        Op::Not(_) => write!(f, "Not")?,
        Op::Select(..) => write!(f, "Select")?,
        Op::Broadcast(_) => write!(f, "Broadcast")?,
    }
    for item in value.op.operands() {
        write!(f, " {}", operand(item))?;
    }
    match &value.name {
        Some(name) => writeln!(f, "  // {name}"),
        None => writeln!(f),
    }
}
