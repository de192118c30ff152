//! The textual form of a kernel, which `wf emit --stage lower` prints and [`read`](super::read) reads back.
//!
//! The grammar is in `docs/design/kir.md`. The text is complete: it contains every field of a [`Kernel`], numbers bit by
//! bit. [`Kernel::fingerprint`] is the same text with digests of tables; the hash of a kernel is its hash.

use super::{
    Condition, Entries, Index, IndirectIndex, Integer, Kernel, Label, LocalId, Op, Positions, Rule,
    Run, Statement, Table, Thread, ValueId, VarId, WeightedLines, Write,
};
use fem_dsl::arena::{Id, IndexVec};
use std::collections::BTreeSet;
use std::fmt;

/// Reals and positions of a table in a row; a table with no more of them stands on one line.
const ROWS: [usize; 2] = [4, 16];

/// Digits of a number beyond which it is written with an exponent.
const DIGITS: usize = 24;

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { kernel: self, labels: self.labels(), print_table: entries }.kernel(f)
    }
}

impl Kernel {
    /// Returns the text that identifies a kernel.
    pub fn fingerprint(&self) -> String {
        Fingerprint(self).to_string()
    }
}

struct Fingerprint<'k>(&'k Kernel);

impl fmt::Display for Fingerprint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { kernel: self.0, labels: self.0.labels(), print_table: summary }.kernel(f)
    }
}

/// Writes a number so that it reads back bit by bit: the shortest decimal, or the bits where it is not finite.
pub(super) fn number(number: f64) -> String {
    if !number.is_finite() {
        return format!("0x{:016x}", number.to_bits());
    }
    let text = number.to_string();
    if text.len() > DIGITS { format!("{number:e}") } else { text }
}

/// Returns whether a name needs no quotes.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quoted(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { format!("{name:?}") }
}

/// The text of a comment, quoted where it would not read back as it is.
fn remark(text: &str) -> String {
    let plain = !text.starts_with('"') && !text.chars().any(char::is_control);
    if plain { text.to_owned() } else { format!("{text:?}") }
}

/// Returns the FNV-1a hash of the bits of a table's entries.
fn digest(entries: impl Iterator<Item = u64>) -> u64 {
    entries.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

struct Printer<'k> {
    kernel: &'k Kernel,
    labels: IndexVec<ValueId, Option<Label>>,
    print_table: fn(&Table, &mut fmt::Formatter<'_>) -> fmt::Result,
}

impl Printer<'_> {
    fn var(&self, id: VarId) -> String {
        let name = self.kernel.vars.get(id).map_or("?".to_owned(), |var| quoted(&var.name));
        format!("{name}.{}", id.index())
    }

    fn index(&self, index: &Index) -> String {
        let terms = index.terms.iter().map(|&(var, factor)| match factor {
            1 => self.var(var),
            _ => format!("{factor}*{}", self.var(var)),
        });
        let mut parts: Vec<String> = terms.collect();
        if parts.is_empty() || index.constant != 0 {
            parts.push(index.constant.to_string());
        }
        parts.join(" + ")
    }

    /// An operand: a constant by its number, any other value by its label.
    fn operand(&self, id: ValueId) -> String {
        match self.kernel.values.get(id).map(|value| &value.op) {
            Some(Op::Constant(constant)) => number(*constant),
            _ => self.label(id),
        }
    }

    /// The label of a value; the id of one that has none, which no valid kernel refers to.
    fn label(&self, id: ValueId) -> String {
        let label = self.labels.get(id).copied().flatten();
        label.map_or_else(|| id.to_string(), |label| format!("%{label}"))
    }

    fn kernel(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel { name, precision, lanes, threads, group, series, block, .. } = self.kernel;
        write!(f, "kernel {} : {precision:?} x {lanes}", quoted(name))?;
        if *threads > 0 || *group != 1 {
            write!(f, ", {threads} threads for {group} batches")?;
        }
        if *series != 1 {
            write!(f, ", {series} times")?;
        }
        if *block != 1 {
            write!(f, ", {block} batches a stage")?;
        }
        writeln!(f)?;
        self.arrays(f)?;
        for (id, table) in self.kernel.tables.iter_enumerated() {
            write!(f, "  {id} {}: ", quoted(&table.name))?;
            (self.print_table)(table, f)?;
        }
        self.vars(f)?;
        self.block(&self.kernel.body, 1, f)
    }

    fn arrays(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel;
        for (id, argument) in kernel.arguments.iter_enumerated() {
            let access = if argument.written { "inout" } else { "in" };
            let mark = if kernel.active == Some(id) { " (active lanes)" } else { "" };
            let name = quoted(&argument.name);
            writeln!(f, "  {access} {id} {name}: {:?}{mark}", argument.element)?;
        }
        for (id, local) in kernel.locals.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", quoted(&local.name), local.length)?;
        }
        for (id, array) in kernel.integers.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", quoted(&array.name), array.length)?;
        }
        for (id, shared) in kernel.shared.iter_enumerated() {
            writeln!(f, "  {id} {}[{}]", quoted(&shared.name), shared.length)?;
        }
        Ok(())
    }

    /// Variables that no statement declares.
    fn vars(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted =
            self.kernel.vars.iter_enumerated().filter(|(_, var)| var.rule == Rule::Counted);
        let names: Vec<String> = counted.map(|(id, _)| self.var(id)).collect();
        if !names.is_empty() {
            writeln!(f, "  counted {}", names.join(" "))?;
        }
        let mut set = BTreeSet::new();
        let mut mark = |statement: &Statement| {
            if let Statement::Set(var) = statement {
                set.insert(*var);
            }
        };
        self.kernel.body.iter().for_each(|statement| statement.for_each(&mut mark));
        for (id, var) in self.kernel.vars.iter_enumerated() {
            let name = self.var(id);
            match &var.rule {
                Rule::Counted => {}
                Rule::Integer(integer) if !set.contains(&id) => {
                    writeln!(f, "  unset {name} = {}", self.integer(integer))?;
                }
                Rule::Integer(_) => {}
                Rule::Thread(thread) => match *thread {
                    Thread::Digit { divisor, modulus } => {
                        writeln!(f, "  thread {name} = thread / {divisor} mod {modulus}")?;
                    }
                    Thread::Member => writeln!(f, "  thread {name} = thread or lane")?,
                    Thread::Listed(table) => writeln!(f, "  thread {name} = {table}[thread]")?,
                    Thread::Border { digits: [a, b], last } => {
                        let (a, b) = (self.var(a), self.var(b));
                        writeln!(f, "  thread {name} = {a} or {b} is 0 or {last}")?;
                    }
                    Thread::Batch { divisor } => {
                        writeln!(f, "  thread {name} = the batch of cell thread / {divisor}")?;
                    }
                },
            }
        }
        Ok(())
    }

    /// Recursive in the depth of loops and conditions, which strategies and [`read`](super::read) bound.
    fn block(&self, body: &[Statement], depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for statement in body {
            write!(f, "{}", "  ".repeat(depth))?;
            self.statement(statement, f)?;
            self.block(statement.body(), depth + 1, f)?;
        }
        Ok(())
    }

    fn statement(&self, statement: &Statement, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match statement {
            Statement::Let(id) => self.value(*id, f),
            Statement::StoreLocal(local, at, value) => {
                writeln!(f, "{local}[{}] = {}", self.index(at), self.operand(*value))
            }
            Statement::StoreShared(shared, at, value) => {
                writeln!(f, "{shared}[{}] = {}", self.index(at), self.operand(*value))
            }
            Statement::StoreLanes(argument, at, value) => {
                writeln!(f, "{argument}[{}, lane] = {}", self.index(at), self.operand(*value))
            }
            Statement::StoreInteger(array, at, var) => {
                writeln!(f, "{array}[{}] = {}", self.index(at), self.var(*var))
            }
            Statement::StoreAt { target, var, scale, offset, value, write } => {
                let (var, verb, value) = (self.var(*var), self.verb(*write), self.operand(*value));
                writeln!(f, "{target}[{var} * {scale} + {offset}] {verb} {value}")
            }
            Statement::For { var, extent, .. } => writeln!(f, "for {} < {extent}", self.var(*var)),
            Statement::When { conditions, .. } => {
                let conditions: Vec<String> =
                    conditions.iter().map(|condition| self.condition(condition)).collect();
                writeln!(f, "when {}:", conditions.join(" and "))
            }
            Statement::Set(var) => {
                let integer = self.kernel.integer(*var).map(|integer| self.integer(integer));
                writeln!(f, "{} = {}", self.var(*var), integer.unwrap_or_else(|| "?".to_owned()))
            }
            Statement::Scatter { target, to, value, write } => {
                let (verb, value) = (self.verb(*write), self.operand(*value));
                let mask = if to.masked { " masked" } else { "" };
                writeln!(f, "{target}[{}] {verb} {value}{mask}", self.indexed(to))
            }
            Statement::ScatterEdge { target, map, at: [near, far], scale, values } => {
                let (near, far) = (self.index(near), self.index(far));
                let ends = values.iter().map(|(offset, [a, b])| {
                    format!("{offset}: {}|{}", self.operand(*a), self.operand(*b))
                });
                let ends = ends.collect::<Vec<String>>().join(", ");
                let place = format!("{target}[{map}[{near}|{far}, lane] * {scale}]");
                writeln!(f, "{place} += ({ends}) along an edge")
            }
            Statement::GatherRun { source, run } => {
                let (run, entries) = self.run(run);
                writeln!(f, "{entries} = {source}[{run}]")
            }
            Statement::ScatterRun { target, run, write } => {
                let (run, entries) = self.run(run);
                writeln!(f, "{target}[{run}] {} {entries}", self.verb(*write))
            }
            Statement::Prefetch(argument, at, cache) => {
                writeln!(f, "prefetch {argument}[{}] to {cache:?}", self.index(at))
            }
            Statement::PrefetchIndexed { array, map, entries, entry, scale, batches } => {
                let place = format!("(batch + {batches}) * {entries} + {entry}");
                writeln!(f, "prefetch {array}[{map}[{place}, lane] * {scale}]")
            }
            Statement::Barrier => writeln!(f, "barrier"),
            Statement::Fence => writeln!(f, "fence"),
            Statement::Recompute(var) => writeln!(f, "recompute {}", self.var(*var)),
            Statement::Stage => writeln!(f, "stage"),
            Statement::Comment(text) => writeln!(f, "// {}", remark(text)),
        }
    }

    fn indexed(&self, place: &IndirectIndex) -> String {
        let IndirectIndex { map, at, scale, offset, .. } = place;
        format!("{map}[{}, lane] * {scale} + {offset}", self.index(at))
    }

    /// The elements of a run, and the entries that they belong to.
    fn run(&self, run: &Run) -> (String, String) {
        let Run { map, at, scale, local, positions, first, length, masked, lines } = run;
        let mask = if *masked { " masked" } else { "" };
        let elements = format!("{map}[{}, lane] * {scale}..{mask}", self.index(at));
        let positions = match positions {
            Positions::Table(table) => table.to_string(),
            Positions::Row(array, start) => format!("{array}[{}]", self.index(start)),
        };
        let lines = lines.as_ref().map_or_else(String::new, |lines| {
            let WeightedLines { n, components, weights, others } = lines;
            let others: Vec<String> = others.iter().map(LocalId::to_string).collect();
            format!(" lines {n}*{components} by {weights}[{}]", others.join(" "))
        });
        (elements, format!("{local}[{positions}[{first}..+{length}{lines}]]"))
    }

    fn integer(&self, integer: &Integer) -> String {
        match integer {
            Integer::Element(map, at) => format!("{map}[{}]", self.index(at)),
            Integer::Entry(array, at) => format!("{array}[{}]", self.index(at)),
            Integer::Rest(of, by) => format!("{} mod {by}", self.var(*of)),
        }
    }

    fn condition(&self, condition: &Condition) -> String {
        match condition {
            Condition::Below(var, bound) => format!("{} < {bound}", self.var(*var)),
            Condition::Something(var) => format!("{} is something", self.var(*var)),
            Condition::Equals(var, number) => format!("{} is {number}", self.var(*var)),
            Condition::Bit(var, bit) => format!("{} has bit {bit}", self.var(*var)),
            Condition::NoBit(var, bit) => format!("{} has no bit {bit}", self.var(*var)),
            Condition::Meet(one, other) => format!("{} meets {}", self.var(*one), self.var(*other)),
            Condition::Active => "active".to_owned(),
            Condition::ActiveCell(cell) => format!("{} < active", self.index(cell)),
        }
    }

    fn verb(&self, write: Write) -> String {
        match write {
            Write::LaneSerial => "+= (lane-serial)".to_owned(),
            Write::Exclusive => "= (exclusive)".to_owned(),
            Write::Atomic => "+= (atomic)".to_owned(),
            Write::Alone => "+= (alone)".to_owned(),
            Write::Inside(border) => {
                format!("= (exclusive) where {} is 0, else += (atomic)", self.var(border))
            }
        }
    }

    fn value(&self, id: ValueId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label(id);
        let Some(value) = self.kernel.values.get(id) else {
            return writeln!(f, "{label} = ?");
        };
        let kind = if value.varying { "" } else { " uniform" };
        write!(f, "{label}{kind} = {}", self.operation(&value.op))?;
        match &value.name {
            Some(name) => writeln!(f, "  // {}", remark(name)),
            None => writeln!(f),
        }
    }

    fn operation(&self, op: &Op) -> String {
        let mut text = match op {
            Op::LoadShared(shared, at) => format!("{shared}[{}]", self.index(at)),
            Op::LoadLocal(local, at) => format!("{local}[{}]", self.index(at)),
            Op::LoadTable(table, at) => format!("{table}[{}]", self.index(at)),
            Op::LoadUniform(argument, at) => format!("{argument}[{}]", self.index(at)),
            Op::LoadLanes(argument, at) => format!("{argument}[{}, lane]", self.index(at)),
            Op::Flag { masks, at, bit } => format!("{masks}[{}, lane] bit {bit}", self.index(at)),
            Op::Gather { source, from } => {
                let mask = if from.masked { " masked" } else { "" };
                format!("{source}[{}]{mask}", self.indexed(from))
            }
            Op::LoadAt { source, var, scale, offset, masked } => {
                let (mask, var) = (if *masked { " masked" } else { "" }, self.var(*var));
                format!("{source}[{var} * {scale} + {offset}]{mask}")
            }
            Op::Unary(function, _) => format!("{function:?}"),
            Op::Binary(function, ..) => format!("{function:?}"),
            Op::Compare(comparison, ..) => format!("{comparison:?}"),
            Op::Constant(constant) => number(*constant),
            Op::Fma(..) => "Fma".to_owned(),
            Op::FmaNeg(..) => "FmaNeg".to_owned(),
            Op::Reciprocal(_) => "Reciprocal".to_owned(),
            Op::Quotient(..) => "Quotient".to_owned(),
            Op::And(..) => "And".to_owned(),
            Op::Or(..) => "Or".to_owned(),
            Op::Not(_) => "Not".to_owned(),
            Op::Select(..) => "Select".to_owned(),
            Op::Broadcast(_) => "Broadcast".to_owned(),
        };
        for item in op.operands() {
            text.push(' ');
            text.push_str(&self.operand(item));
        }
        text
    }
}

/// All entries of a table, in rows where there are many.
fn entries(table: &Table, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [of_reals, of_positions] = ROWS;
    let (kind, row, texts): (_, _, Vec<String>) = match &table.entries {
        Entries::Real(entries) => {
            ("real", of_reals, entries.iter().map(|&entry| number(entry)).collect())
        }
        Entries::Position(entries) => {
            ("position", of_positions, entries.iter().map(u32::to_string).collect())
        }
    };
    let spread = if table.spread { " spread" } else { "" };
    write!(f, "{kind}[{}]{spread} =", texts.len())?;
    if texts.len() <= row {
        let space = if texts.is_empty() { "" } else { " " };
        return writeln!(f, "{space}{}", texts.join(", "));
    }
    let rows: Vec<String> = texts.chunks(row).map(|row| row.join(", ")).collect();
    writeln!(f, "\n    {}", rows.join(",\n    "))
}

/// The length of a table and a digest of its entries.
fn summary(table: &Table, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (kind, length, hash) = match &table.entries {
        Entries::Real(entries) => {
            ("real", entries.len(), digest(entries.iter().map(|entry| entry.to_bits())))
        }
        Entries::Position(entries) => {
            let entries = entries.iter().map(|&entry| u64::from(entry));
            ("position", entries.len(), digest(entries))
        }
    };
    writeln!(f, "{kind}[{length}] hash={hash:016x}")
}
