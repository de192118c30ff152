//! The textual form of a kernel, as `wf emit --stage kir` prints it.

use super::{Entries, Index, Kernel, Op, Slots, Statement, Thread, ValueId, Write};
use fem_dsl::arena::Id;
use std::fmt;

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
            let name = format!("{}.{}", kernel.vars[var].name, var.index());
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
        for (id, shared) in self.shared.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", shared.name, shared.length)?;
        }
        for (id, var) in self.vars.iter_enumerated() {
            let name = format!("{}.{}", var.name, id.index());
            match var.thread {
                Some(Thread::Digit { divisor, modulus }) => {
                    writeln!(f, "  {name} = thread / {divisor} mod {modulus}")?;
                }
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

/// Stands for a table's entries, which nobody reads digit by digit: FNV-1a of their bits.
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
                writeln!(f, "for {}.{} < {extent}", kernel.vars[*var].name, var.index())?;
                show_block(kernel, body, depth + 1, f)?;
            }
            Statement::Scatter { target, map, at: place, scale, offset, masked, value, write } => {
                let place = at(place);
                let verb = verb(*write);
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
            Statement::GatherRun {
                source,
                map,
                at: place,
                scale,
                local,
                positions,
                first,
                length,
            } => {
                let place = at(place);
                writeln!(
                    f,
                    "{local}[{positions}[{first}..+{length}]] = {source}[{map}[{place}, lane] * {scale}..]"
                )?;
            }
            Statement::ScatterRun {
                target,
                map,
                at: place,
                scale,
                local,
                positions,
                first,
                length,
                write,
            } => {
                let place = at(place);
                let verb = verb(*write);
                writeln!(
                    f,
                    "{target}[{map}[{place}, lane] * {scale}..] {verb} {local}[{positions}[{first}..+{length}]]"
                )?;
            }
            Statement::GatherSlots { source, slots } => {
                for (offset, first) in &slots.parts {
                    let (shared, element) = (slots.shared, element_of(kernel, slots, *offset));
                    writeln!(f, "{shared}[{first} + s] = {source}[{element}]")?;
                }
            }
            Statement::ScatterSlots { target, slots, terms, write } => {
                let (verb, shared, stride) = (verb(*write), slots.shared, slots.stride);
                for (offset, first) in &slots.parts {
                    let element = element_of(kernel, slots, *offset);
                    writeln!(
                        f,
                        "{target}[{element}] {verb} sum of {shared}[{first} + k * {stride} + s], k < {terms}"
                    )?;
                }
            }
            Statement::Clear { shared, length } => writeln!(f, "{shared}[..{length}] = 0")?,
            Statement::LoadTerms { terms, map, at: place, step } => {
                let (place, length) = (at(place), kernel.terms[*terms].length);
                writeln!(f, "{terms}[j < {length}] = {map}[{place}, lane + j * {step}]")?;
            }
            Statement::StoreTerm { shared, terms, entry, first, value } => {
                writeln!(f, "{shared}[{first} + {terms}[{}]] = {value}", at(entry))?;
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
            Statement::When { below, cell, body } => {
                let mut conditions: Vec<String> = below
                    .iter()
                    .map(|&(var, bound)| {
                        format!("{}.{} < {bound}", kernel.vars[var].name, var.index())
                    })
                    .collect();
                if let Some(cell) = cell {
                    conditions.push(format!("{} < active", at(cell)));
                }
                writeln!(f, "when {}:", conditions.join(" and "))?;
                show_block(kernel, body, depth + 1, f)?;
            }
            Statement::Stage => writeln!(f, "stage")?,
            Statement::Comment(text) => writeln!(f, "// {text}")?,
        }
    }
    Ok(())
}

/// The element that slot s is for.
fn element_of(kernel: &Kernel, slots: &Slots, offset: usize) -> String {
    let Slots { map, count, scale, .. } = slots;
    format!("{map}[{} + s < {count}] * {scale} + {offset}", Shown(kernel, &slots.at))
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
        Op::Gather { source, map, at, scale, offset, masked } => {
            let mask = if *masked { " masked" } else { "" };
            let place = Shown(kernel, at);
            write!(f, "{source}[{map}[{place}, lane] * {scale} + {offset}]{mask}")?;
        }
        Op::LoadSlot { shared, terms, entry, stride, first } => {
            let entry = Shown(kernel, entry);
            write!(f, "{shared}[{first} + {terms}[{entry}] mod {stride}]")?;
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
