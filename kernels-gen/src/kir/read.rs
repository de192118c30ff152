//! `read`: the text of kernels → [`Kernel`]s; the inverse of their `Display`.
//!
//! The grammar is in `docs/design/kir.md`. A text is read line by line: the head declares arrays, tables and variables;
//! then come statements, each indented by its depth. The reader checks labels of values and that every name is declared. [`verify`](super::verify) checks the rest.
//!
//! Loops and conditions nest at most [`DEEPEST`] levels, and the stack of open ones is explicit: no text overflows the
//! stack, and none panics.

mod body;
mod line;
#[cfg(test)]
mod tests;

use super::number::Labeller;
use super::{
    Argument, Element, Entries, Kernel, Label, Local, Precision, Rule, Statement, Table, TableId,
    Thread, ValueId, Var, VarId,
};
use body::{Block, Part, nest, push};
use fem_dsl::arena::{Id, IndexVec};
use line::{Line, Position};
use std::collections::BTreeMap;

/// Levels of loops and conditions in each other.
pub const DEEPEST: usize = 64;

/// The first mistake in the text of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}\nhelp: {help}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text that the grammar allows there.
    pub expected: String,
    /// The text that was found there.
    pub found: String,
    /// A remedy.
    pub help: String,
}

/// Reads the text of one kernel.
///
/// # Errors
///
/// Texts that are not in the form that a kernel is printed in, or name what they do not declare.
pub fn read(text: &str) -> Result<Kernel, ReadError> {
    let mut lines = Lines::new(text);
    let kernel = Reader::kernel(&mut lines)?;
    match lines.peek() {
        None => Ok(kernel),
        Some(line) => {
            Err(line.error("the end of the text", "read several kernels with `read_all`"))
        }
    }
}

/// Reads the texts of any number of kernels, one after another.
///
/// # Errors
///
/// As [`read`].
pub fn read_all(text: &str) -> Result<Vec<Kernel>, ReadError> {
    let (mut lines, mut kernels) = (Lines::new(text), Vec::new());
    while lines.peek().is_some() {
        kernels.push(Reader::kernel(&mut lines)?);
    }
    Ok(kernels)
}

/// The lines of a text that are not blank.
struct Lines<'t> {
    lines: std::iter::Peekable<std::vec::IntoIter<Line<'t>>>,
    /// The end of the text.
    end: Line<'t>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let numbered = || text.split('\n').enumerate();
        let lines: Vec<Line<'t>> = numbered()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| Line::new(number + 1, line))
            .collect();
        Self { lines: lines.into_iter().peekable(), end: Line::new(numbered().count(), "") }
    }

    fn peek(&mut self) -> Option<Line<'t>> {
        self.lines.peek().copied()
    }

    fn next(&mut self) -> Option<Line<'t>> {
        self.lines.next()
    }

    /// The next line of a kernel, if it has one.
    fn of_kernel(&mut self) -> Option<Line<'t>> {
        self.peek().filter(|line| line.rest().starts_with(' '))
    }
}

/// A kernel under construction.
struct Reader {
    kernel: Kernel,
    vars: BTreeMap<usize, Var>,
    /// The values that are defined, by their labels.
    values: BTreeMap<Label, ValueId>,
    labels: Labeller,
    /// The constant of each number, by the number's bits.
    constants: BTreeMap<u64, ValueId>,
    /// The name by which a variable is called first, and where.
    called: BTreeMap<usize, (String, Position)>,
}

impl Reader {
    fn kernel(lines: &mut Lines<'_>) -> Result<Kernel, ReadError> {
        let Some(mut line) = lines.next() else {
            return Err(lines.end.unexpected("`kernel NAME : F64 x LANES`"));
        };
        let start = line.position();
        let mut reader = Self::first_line(&mut line)?;
        while let Some(mut line) = lines.of_kernel() {
            if line.depth()? != 1 || !reader.declaration(line, lines)? {
                break;
            }
        }
        let mut open = vec![Block::default()];
        while let Some(mut line) = lines.of_kernel() {
            lines.next();
            let depth = line.depth()?;
            if nest(&mut open, depth, &line)? {
                reader.labels.end_section();
            }
            let part = reader.statement(&mut line)?;
            if !matches!(part, Part::Statement(Statement::Let(_))) {
                reader.labels.end_section();
            }
            match part {
                Part::Statement(statement) => push(&mut open, statement),
                Part::Block(block) => open.push(block),
            }
        }
        nest(&mut open, 1, &lines.end)?;
        let body = open.pop().unwrap_or_default().body;
        reader.finish(body, start)
    }

    /// Reads the line that begins a kernel.
    fn first_line(line: &mut Line<'_>) -> Result<Self, ReadError> {
        line.expect("kernel ")?;
        let name = line.name()?;
        line.expect(" : ")?;
        let start = *line;
        let precision = match line.word() {
            "F64" => Precision::F64,
            "F32" => Precision::F32,
            _ => return Err(start.unexpected("`F64` or `F32`")),
        };
        line.expect(" x ")?;
        let mut kernel = Kernel {
            name,
            precision,
            lanes: line.natural()?,
            arguments: IndexVec::new(),
            locals: IndexVec::new(),
            integers: IndexVec::new(),
            tables: IndexVec::new(),
            vars: IndexVec::new(),
            values: IndexVec::new(),
            active: None,
            threads: 0,
            group: 1,
            series: 1,
            shared: IndexVec::new(),
            block: 1,
            body: Vec::new(),
        };
        while line.eat(", ") {
            let start = *line;
            let number = line.natural()?;
            if line.eat(" threads for ") {
                (kernel.threads, kernel.group) = (number, line.natural()?);
                line.expect(" batches")?;
            } else if line.eat(" times") {
                kernel.series = number;
            } else if line.eat(" batches a stage") {
                kernel.block = number;
            } else {
                let ways = "`N threads for N batches`, `N times` or `N batches a stage`";
                return Err(start.unexpected(ways));
            }
        }
        line.end()?;
        Ok(Self {
            kernel,
            vars: BTreeMap::new(),
            values: BTreeMap::new(),
            labels: Labeller::default(),
            constants: BTreeMap::new(),
            called: BTreeMap::new(),
        })
    }

    /// Reads a line of the head, and those that continue it; `false` where it is a statement.
    fn declaration<'t>(
        &mut self,
        mut line: Line<'t>,
        lines: &mut Lines<'t>,
    ) -> Result<bool, ReadError> {
        let kernel = &mut self.kernel;
        let written = line.rest().starts_with("inout arg");
        if line.eat("inout ") || line.eat("in ") {
            lines.next();
            return self.argument(&mut line, written).map(|()| true);
        }
        if is_next(&mut line, "local", kernel.locals.len())? {
            kernel.locals.push(array(&mut line)?);
        } else if is_next(&mut line, "integers", kernel.integers.len())? {
            kernel.integers.push(array(&mut line)?);
        } else if is_next(&mut line, "shared", kernel.shared.len())? {
            kernel.shared.push(array(&mut line)?);
        } else if is_next(&mut line, "table", kernel.tables.len())? {
            lines.next();
            let table = table(&mut line, lines)?;
            self.kernel.tables.push(table);
            return line.end().map(|()| true);
        } else if line.rest().starts_with("counted ") {
            line.eat("counted");
            while line.eat(" ") {
                let (id, name) = self.var_name(&mut line)?;
                self.declare(&line, id, Var { name, rule: Rule::Counted })?;
            }
        } else if line.eat("thread ") {
            let (id, name) = self.var_name(&mut line)?;
            line.expect(" = ")?;
            let rule = Rule::Thread(self.thread(&mut line)?);
            self.declare(&line, id, Var { name, rule })?;
        } else if line.eat("unset ") {
            let (id, name) = self.var_name(&mut line)?;
            line.expect(" = ")?;
            let rule = Rule::Integer(self.integer(&mut line)?);
            self.declare(&line, id, Var { name, rule })?;
        } else {
            return Ok(false);
        }
        lines.next();
        line.end().map(|()| true)
    }

    fn argument(&mut self, line: &mut Line<'_>, written: bool) -> Result<(), ReadError> {
        let next = self.kernel.arguments.len();
        if !is_next(line, "arg", next)? {
            return Err(line.unexpected(&format!("`arg{next}`")));
        }
        let name = line.name()?;
        line.expect(": ")?;
        let start = *line;
        let element = match line.word() {
            "Real" => Element::Real,
            "U32" => Element::U32,
            _ => return Err(start.unexpected("`Real` or `U32`")),
        };
        let id = self.kernel.arguments.push(Argument { name, element, written });
        let start = *line;
        if line.eat(" (active lanes)") && self.kernel.active.replace(id).is_some() {
            return Err(start.error("the end of the line", "mark one argument as active lanes"));
        }
        line.end()
    }

    /// Reads the rule by which a variable follows from the thread's number.
    fn thread(&mut self, line: &mut Line<'_>) -> Result<Thread, ReadError> {
        if line.eat("thread or lane") {
            return Ok(Thread::Member);
        }
        if line.eat("thread / ") {
            let divisor = line.natural()?;
            line.expect(" mod ")?;
            return Ok(Thread::Digit { divisor, modulus: line.natural()? });
        }
        if line.eat("the batch of cell thread / ") {
            return Ok(Thread::Batch { divisor: line.natural()? });
        }
        if let Some(table) = self.array_id::<TableId>(line, self.kernel.tables.len())? {
            line.expect("thread]")?;
            return Ok(Thread::Listed(table));
        }
        let one = self.var(line)?;
        line.expect(" or ")?;
        let digits = [one, self.var(line)?];
        line.expect(" is 0 or ")?;
        Ok(Thread::Border { digits, last: line.natural()? })
    }

    /// Declares a variable; one that is declared in the same way again stays.
    fn declare(&mut self, line: &Line<'_>, id: VarId, var: Var) -> Result<(), ReadError> {
        match self.vars.get(&id.index()) {
            Some(known) if *known != var => {
                let expected = format!("one declaration of {}.{}", known.name, id.index());
                Err(line.error(&expected, "give each variable a number of its own"))
            }
            Some(_) => Ok(()),
            None => {
                self.vars.insert(id.index(), var);
                Ok(())
            }
        }
    }

    /// The kernel, if everything that is named is declared and numbers leave no gap.
    fn finish(self, body: Vec<Statement>, start: Position) -> Result<Kernel, ReadError> {
        let Self { mut kernel, vars, called, .. } = self;
        for (id, (name, position)) in called {
            let (found, help) =
                (format!("`{name}.{id}`"), "declare it by `counted`, `thread` or `=`");
            match vars.get(&id) {
                Some(var) if var.name == name => {}
                Some(var) => {
                    let help = "call a variable by its name and number";
                    return Err(position.error(&format!("`{}.{id}`", var.name), &found, help));
                }
                None => return Err(position.error("a variable that is declared", &found, help)),
            }
        }
        if let Some(gap) = vars.keys().enumerate().find_map(|(id, &key)| (id != key).then_some(id))
        {
            let help = "number variables 0, 1, 2, … without gaps";
            return Err(start.error(&format!("a kernel with variable {gap}"), "none", help));
        }
        kernel.vars = vars.into_values().collect();
        kernel.body = body;
        Ok(kernel)
    }
}

/// Returns whether a declaration of this kind of array comes next; it must have the next number.
fn is_next(line: &mut Line<'_>, prefix: &str, next: usize) -> Result<bool, ReadError> {
    let start = *line;
    match line.id(prefix, " ") {
        None => Ok(false),
        Some(number) if number == next => Ok(line.eat(" ")),
        Some(_) => {
            let help = "number declarations 0, 1, 2, … in the order of the text";
            Err(start.error(&format!("`{prefix}{next}`"), help))
        }
    }
}

/// Reads `NAME[LENGTH]`.
fn array(line: &mut Line<'_>) -> Result<Local, ReadError> {
    let name = line.name()?;
    line.expect("[")?;
    let length = line.natural()?;
    line.expect("]")?;
    Ok(Local { name, length })
}

/// Reads `NAME: real[N] = …` or `NAME: position[N] = …`; a row that ends with a comma goes on in the next line.
fn table<'t>(line: &mut Line<'t>, lines: &mut Lines<'t>) -> Result<Table, ReadError> {
    let name = line.name()?;
    line.expect(": ")?;
    let start = *line;
    let mut entries = match line.word() {
        "real" => Entries::Real(Vec::new()),
        "position" => Entries::Position(Vec::new()),
        _ => return Err(start.unexpected("`real` or `position`")),
    };
    line.expect("[")?;
    let length: usize = line.natural()?;
    line.expect("]")?;
    let spread = line.eat(" spread");
    line.expect(" =")?;
    for number in 0..length {
        if number > 0 {
            line.expect(",")?;
        }
        if line.rest().is_empty() {
            let Some(mut next) = lines.of_kernel() else {
                let help = format!("a table of {length} entries lists them all");
                return Err(line.error(&format!("entry {number} of the table"), &help));
            };
            lines.next();
            next.depth()?;
            *line = next;
        } else {
            line.expect(" ")?;
        }
        match &mut entries {
            Entries::Real(entries) => entries.push(line.real()?),
            Entries::Position(entries) => entries.push(line.natural()?),
        }
    }
    Ok(Table { name, entries, spread })
}
