//! Statements, values, conditions and indices of a kernel's text.

use super::line::{Line, one_of};
use super::{DEEPEST, ReadError, Reader};
use crate::kir::{
    ArgumentId, Binary, Cache, Comparison, Condition, Index, IndirectIndex, Integer, IntegersId,
    Label, LocalId, Op, Positions, Rule, Run, SharedId, Statement, TableId, Unary, Value, ValueId,
    Var, VarId, WeightedLines, Write,
};
use fem_dsl::arena::Id;

const UNARY: [Unary; 15] = [
    Unary::Neg,
    Unary::Sqrt,
    Unary::Exp,
    Unary::Log,
    Unary::Sin,
    Unary::Cos,
    Unary::Tan,
    Unary::Asin,
    Unary::Acos,
    Unary::Atan,
    Unary::Sinh,
    Unary::Cosh,
    Unary::Tanh,
    Unary::Abs,
    Unary::Sign,
];

const BINARY: [Binary; 8] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Div,
    Binary::Pow,
    Binary::Atan2,
    Binary::Min,
    Binary::Max,
];

const COMPARISONS: [Comparison; 6] = [
    Comparison::Lt,
    Comparison::Le,
    Comparison::Gt,
    Comparison::Ge,
    Comparison::Eq,
    Comparison::Ne,
];

/// The line that opens a block.
#[derive(Default)]
enum Opener {
    #[default]
    Kernel,
    For(VarId, usize),
    When(Vec<Condition>),
}

/// An open block.
#[derive(Default)]
pub(super) struct Block {
    opener: Opener,
    pub(super) body: Vec<Statement>,
}

/// A line of the body.
pub(super) enum Part {
    Statement(Statement),
    Block(Block),
}

/// Appends a statement to the innermost block.
pub(super) fn push(open: &mut [Block], statement: Statement) {
    if let Some(block) = open.last_mut() {
        block.body.push(statement);
    }
}

/// Closes blocks until a line of this depth belongs to the innermost one; `true` if there were any.
pub(super) fn nest(
    open: &mut Vec<Block>,
    depth: usize,
    line: &Line<'_>,
) -> Result<bool, ReadError> {
    let closes = open.len() > depth.max(1);
    while open.len() > depth.max(1) {
        let Some(Block { opener, body }) = open.pop() else { break };
        match opener {
            Opener::Kernel => {}
            Opener::For(var, extent) => push(open, Statement::For { var, extent, body }),
            Opener::When(conditions) => push(open, Statement::When { conditions, body }),
        }
    }
    if depth > DEEPEST {
        let help = "take the inner loops out of the outer ones";
        return Err(line.error(&format!("at most {DEEPEST} levels of blocks"), help));
    }
    if depth > open.len() {
        let help = "indent only the body of a `for` or a `when` further";
        return Err(line.error(&format!("a line indented by {} spaces", 2 * open.len()), help));
    }
    Ok(closes)
}

/// Reads the label of a value.
fn label(line: &mut Line<'_>) -> Result<Label, ReadError> {
    let start = *line;
    let section = line.id("%", ".");
    let number = line.id(".", "");
    let label = section.zip(number).map(|(section, number)| Label { section, number });
    label.ok_or_else(|| start.unexpected("a value such as `%3.7`"))
}

/// Arrays that a text calls by a prefix and a number.
pub(super) trait ArrayId: Id {
    const PREFIX: &str;
}

macro_rules! array_ids {
    ($($id:ident $prefix:literal),*) => {
        $(impl ArrayId for $id {
            const PREFIX: &str = $prefix;
        })*
    };
}

array_ids!(ArgumentId "arg", LocalId "local", SharedId "shared", IntegersId "integers", TableId "table");

impl Reader {
    /// Reads `NAME.N`, the name of a variable.
    pub(super) fn var_name(&mut self, line: &mut Line<'_>) -> Result<(VarId, String), ReadError> {
        let start = *line;
        let name = line.name()?;
        match line.id(".", "") {
            Some(number) => {
                let call = || (name.clone(), start.position());
                let (known, _) = self.called.entry(number).or_insert_with(call);
                if *known == name {
                    return Ok((VarId::from_index(number), name));
                }
                let help = "call a variable by the same name everywhere";
                Err(start.error(&format!("`{known}.{number}`"), help))
            }
            None => Err(start.unexpected("a variable such as `q.3`")),
        }
    }

    pub(super) fn var(&mut self, line: &mut Line<'_>) -> Result<VarId, ReadError> {
        Ok(self.var_name(line)?.0)
    }

    /// Reads `argN[`, and so for other kinds of arrays of which `count` are declared, if it comes next.
    pub(super) fn array_id<I: ArrayId>(
        &self,
        line: &mut Line<'_>,
        count: usize,
    ) -> Result<Option<I>, ReadError> {
        let start = *line;
        match line.id(I::PREFIX, "[") {
            None => Ok(None),
            Some(number) if number < count => {
                line.expect("[")?;
                Ok(Some(I::from_index(number)))
            }
            Some(_) => {
                let help = "declare it in the head of the kernel";
                Err(start.error(&format!("an `{}` that is declared", I::PREFIX), help))
            }
        }
    }

    fn maybe_argument(&self, line: &mut Line<'_>) -> Result<Option<ArgumentId>, ReadError> {
        self.array_id(line, self.kernel.arguments.len())
    }

    /// Reads `argN[`.
    fn argument_id(&self, line: &mut Line<'_>) -> Result<ArgumentId, ReadError> {
        let start = *line;
        let found = self.maybe_argument(line)?;
        found.ok_or_else(|| start.unexpected("an argument such as `arg0[`"))
    }

    /// Reads `tableN[FIRST..+LENGTH]`, a part of a table of positions, or `argN[START][FIRST..+LENGTH]`.
    fn positions(
        &mut self,
        line: &mut Line<'_>,
    ) -> Result<(Positions, usize, usize, Option<WeightedLines>), ReadError> {
        let positions = match self.maybe_argument(line)? {
            Some(array) => {
                let start = self.index(line)?;
                line.expect("][")?;
                Positions::Row(array, start)
            }
            None => {
                let start = *line;
                let table = self.array_id(line, self.kernel.tables.len())?;
                let table = table.ok_or_else(|| start.unexpected("a table such as `table0[`"))?;
                Positions::Table(table)
            }
        };
        let first = line.natural()?;
        line.expect("..+")?;
        let length = line.natural()?;
        let lines = self.lines(line)?;
        line.expect("]")?;
        Ok((positions, first, length, lines))
    }

    /// Reads the weights of the lines of a run, if it has them: ` lines 4*1 by table2[local1 local2]`.
    fn lines(&self, line: &mut Line<'_>) -> Result<Option<WeightedLines>, ReadError> {
        if !line.eat(" lines ") {
            return Ok(None);
        }
        let n = line.natural()?;
        line.expect("*")?;
        let components = line.natural()?;
        line.expect(" by ")?;
        let start = *line;
        let weights = self.array_id(line, self.kernel.tables.len())?;
        let weights = weights.ok_or_else(|| start.unexpected("a table such as `table0[`"))?;
        let mut others = Vec::new();
        while !line.eat("]") {
            if !others.is_empty() {
                line.expect(" ")?;
            }
            let start = *line;
            let number = line.id(LocalId::PREFIX, "").filter(|&id| id < self.kernel.locals.len());
            let number = number.ok_or_else(|| start.unexpected("an array such as `local0`"))?;
            others.push(LocalId::from_index(number));
        }
        Ok(Some(WeightedLines { n, components, weights, others }))
    }

    /// Reads an affine integer: `2*batch.0 + q.3 + 1`.
    fn index(&mut self, line: &mut Line<'_>) -> Result<Index, ReadError> {
        let mut index = Index::default();
        loop {
            let mut ahead = *line;
            let factor = ahead.whole().ok();
            let factor = match factor {
                Some(number) if !ahead.rest().starts_with(['*', '.']) => {
                    index.constant = number;
                    *line = ahead;
                    return Ok(index);
                }
                Some(factor) if ahead.eat("*") => {
                    *line = ahead;
                    factor
                }
                _ => 1,
            };
            index.terms.push((self.var(line)?, factor));
            if !line.eat(" + ") {
                return Ok(index);
            }
        }
    }

    /// Reads a variable if one comes next and `after` follows, which is read too.
    fn var_before(&mut self, line: &mut Line<'_>, after: &str) -> Option<VarId> {
        let mut ahead = *line;
        ahead.name().ok()?;
        ahead.id(".", after)?;
        let var = self.var(line).ok()?;
        line.eat(after);
        Some(var)
    }

    /// Reads an operand: the label of a value, or the number of a constant.
    fn operand(&mut self, line: &mut Line<'_>) -> Result<ValueId, ReadError> {
        let start = *line;
        if line.is_at_number() {
            let number = line.real()?;
            let values = &mut self.kernel.values;
            let constant = Value { op: Op::Constant(number), varying: false, name: None };
            let known = self.constants.entry(number.to_bits());
            return Ok(*known.or_insert_with(|| values.push(constant)));
        }
        let label = label(line)?;
        let help = "define it above by a line `%SECTION.N = …`, in the same or an outer block";
        let known = self.values.get(&label).copied();
        known.ok_or_else(|| start.error("a value that is defined", help))
    }

    fn operands<const N: usize>(&mut self, line: &mut Line<'_>) -> Result<[ValueId; N], ReadError> {
        let mut operands = [ValueId::from_index(0); N];
        for operand in &mut operands {
            line.expect(" ")?;
            *operand = self.operand(line)?;
        }
        Ok(operands)
    }

    /// Reads `%SECTION.N = OPERATION`, the definition of a value.
    fn value(&mut self, line: &mut Line<'_>) -> Result<ValueId, ReadError> {
        let (start, next) = (*line, self.labels.next());
        if label(line)? != next {
            let help = "number sections through the kernel, and values through their section";
            return Err(start.error(&format!("`%{next}`"), help));
        }
        let varying = !line.eat(" uniform");
        line.expect(" = ")?;
        let op = self.operation(line)?;
        let name = if line.eat("  // ") { Some(line.remark()?) } else { None };
        line.end()?;
        let id = self.kernel.values.push(Value { op, varying, name });
        self.values.insert(next, id);
        Ok(id)
    }

    fn operation(&mut self, line: &mut Line<'_>) -> Result<Op, ReadError> {
        let kernel = &self.kernel;
        if let Some(local) = self.array_id(line, kernel.locals.len())? {
            return Ok(Op::LoadLocal(local, self.only_index(line)?));
        }
        if let Some(shared) = self.array_id(line, kernel.shared.len())? {
            return Ok(Op::LoadShared(shared, self.only_index(line)?));
        }
        if let Some(table) = self.array_id(line, kernel.tables.len())? {
            return Ok(Op::LoadTable(table, self.only_index(line)?));
        }
        if let Some(argument) = self.maybe_argument(line)? {
            return self.load(argument, line);
        }
        let start = *line;
        let word = line.word();
        let is = |function: &dyn std::fmt::Debug| format!("{function:?}") == word;
        if let Some(&function) = UNARY.iter().find(|function| is(function)) {
            let [a] = self.operands(line)?;
            return Ok(Op::Unary(function, a));
        }
        if let Some(&function) = BINARY.iter().find(|function| is(function)) {
            let [a, b] = self.operands(line)?;
            return Ok(Op::Binary(function, a, b));
        }
        if let Some(&comparison) = COMPARISONS.iter().find(|comparison| is(comparison)) {
            let [a, b] = self.operands(line)?;
            return Ok(Op::Compare(comparison, a, b));
        }
        Ok(match word {
            "Fma" | "FmaNeg" | "Select" => {
                let [a, b, c] = self.operands(line)?;
                match word {
                    "Fma" => Op::Fma(a, b, c),
                    "FmaNeg" => Op::FmaNeg(a, b, c),
                    _ => Op::Select(a, b, c),
                }
            }
            "Quotient" | "And" | "Or" => {
                let [a, b] = self.operands(line)?;
                match word {
                    "Quotient" => Op::Quotient(a, b),
                    "And" => Op::And(a, b),
                    _ => Op::Or(a, b),
                }
            }
            "Reciprocal" | "Not" | "Broadcast" => {
                let [a] = self.operands(line)?;
                match word {
                    "Reciprocal" => Op::Reciprocal(a),
                    "Not" => Op::Not(a),
                    _ => Op::Broadcast(a),
                }
            }
            _ => return Err(start.unexpected("an operation or an array such as `arg0[`")),
        })
    }

    /// Reads `INDEX]`.
    fn only_index(&mut self, line: &mut Line<'_>) -> Result<Index, ReadError> {
        let index = self.index(line)?;
        line.expect("]")?;
        Ok(index)
    }

    /// Reads a load from an argument, behind `argN[`.
    fn load(&mut self, source: ArgumentId, line: &mut Line<'_>) -> Result<Op, ReadError> {
        if let Some(map) = self.maybe_argument(line)? {
            let (at, scale) = (self.index(line)?, lane_scale(line)?);
            let offset = offset(line)?;
            let masked = line.eat(" masked");
            return Ok(Op::Gather {
                source,
                from: IndirectIndex { map, at, scale, offset, masked },
            });
        }
        if let Some(var) = self.var_before(line, " * ") {
            let (scale, offset) = (line.natural()?, offset(line)?);
            let masked = line.eat(" masked");
            return Ok(Op::LoadAt { source, var, scale, offset, masked });
        }
        let at = self.index(line)?;
        if line.eat("]") {
            return Ok(Op::LoadUniform(source, at));
        }
        line.expect(", lane]")?;
        if line.eat(" bit ") {
            return Ok(Op::Flag { masks: source, at, bit: line.natural()? });
        }
        Ok(Op::LoadLanes(source, at))
    }

    /// Reads the definition of an integer.
    pub(super) fn integer(&mut self, line: &mut Line<'_>) -> Result<Integer, ReadError> {
        if let Some(map) = self.maybe_argument(line)? {
            return Ok(Integer::Element(map, self.only_index(line)?));
        }
        if let Some(array) = self.array_id(line, self.kernel.integers.len())? {
            return Ok(Integer::Entry(array, self.only_index(line)?));
        }
        let of = self.var(line)?;
        line.expect(" mod ")?;
        Ok(Integer::Rest(of, line.natural()?))
    }

    fn conditions(&mut self, line: &mut Line<'_>) -> Result<Vec<Condition>, ReadError> {
        let mut conditions = Vec::new();
        if line.eat(":") {
            return Ok(conditions);
        }
        loop {
            conditions.push(self.condition(line)?);
            if line.eat(":") {
                return Ok(conditions);
            }
            let start = *line;
            if !line.eat(" and ") {
                return Err(start.unexpected(&one_of(&[":", " and "])));
            }
        }
    }

    fn condition(&mut self, line: &mut Line<'_>) -> Result<Condition, ReadError> {
        if line.rest().starts_with("active:") || line.rest().starts_with("active and ") {
            line.eat("active");
            return Ok(Condition::Active);
        }
        if let Some(var) = self.var_before(line, " is something") {
            return Ok(Condition::Something(var));
        }
        if let Some(var) = self.var_before(line, " is ") {
            return Ok(Condition::Equals(var, line.natural()?));
        }
        if let Some(var) = self.var_before(line, " has bit ") {
            return Ok(Condition::Bit(var, line.natural()?));
        }
        if let Some(var) = self.var_before(line, " has no bit ") {
            return Ok(Condition::NoBit(var, line.natural()?));
        }
        if let Some(var) = self.var_before(line, " meets ") {
            return Ok(Condition::Meet(var, self.var(line)?));
        }
        let mut ahead = *line;
        if let Some(var) = self.var_before(&mut ahead, " < ")
            && ahead.is_at_number()
        {
            *line = ahead;
            return Ok(Condition::Below(var, line.natural()?));
        }
        let cell = self.index(line)?;
        line.expect(" < active")?;
        Ok(Condition::ActiveCell(cell))
    }

    /// Reads the mode in which a value is written, up to the value.
    fn write(&mut self, line: &mut Line<'_>) -> Result<Write, ReadError> {
        let start = *line;
        let write = if line.eat(" += (lane-serial)") {
            Write::LaneSerial
        } else if line.eat(" += (atomic)") {
            Write::Atomic
        } else if line.eat(" += (alone)") {
            Write::Alone
        } else if line.eat(" = (exclusive) where ") {
            let border = self.var(line)?;
            line.expect(" is 0, else += (atomic)")?;
            Write::Inside(border)
        } else if line.eat(" = (exclusive)") {
            Write::Exclusive
        } else {
            let ways = ["+= (lane-serial)", "+= (atomic)", "+= (alone)", "= (exclusive)"];
            return Err(start.unexpected(&one_of(&ways)));
        };
        line.expect(" ")?;
        Ok(write)
    }

    /// Reads ` = VALUE`.
    fn stored(&mut self, line: &mut Line<'_>) -> Result<ValueId, ReadError> {
        line.expect(" = ")?;
        self.operand(line)
    }

    /// Reads a line of the body.
    pub(super) fn statement(&mut self, line: &mut Line<'_>) -> Result<Part, ReadError> {
        if line.eat("for ") {
            let var = self.var(line)?;
            line.expect(" < ")?;
            let opener = Opener::For(var, line.natural()?);
            line.end()?;
            return Ok(Part::Block(Block { opener, body: Vec::new() }));
        }
        if line.eat("when ") {
            let opener = Opener::When(self.conditions(line)?);
            line.end()?;
            return Ok(Part::Block(Block { opener, body: Vec::new() }));
        }
        let statement = self.simple(line)?;
        line.end()?;
        Ok(Part::Statement(statement))
    }

    /// Reads a statement without a body.
    fn simple(&mut self, line: &mut Line<'_>) -> Result<Statement, ReadError> {
        let kernel = &self.kernel;
        match line.rest() {
            "barrier" | "fence" | "stage" => {
                return Ok(match line.word() {
                    "barrier" => Statement::Barrier,
                    "fence" => Statement::Fence,
                    _ => Statement::Stage,
                });
            }
            rest if rest.starts_with('%') => return Ok(Statement::Let(self.value(line)?)),
            _ => {}
        }
        if line.eat("//") {
            line.eat(" ");
            return Ok(Statement::Comment(line.remark()?));
        }
        if line.eat("prefetch ") {
            return self.prefetch(line);
        }
        if line.eat("recompute ") {
            return Ok(Statement::Recompute(self.var(line)?));
        }
        if let Some(argument) = self.maybe_argument(line)? {
            return self.store(argument, line);
        }
        if let Some(local) = self.array_id::<LocalId>(line, kernel.locals.len())? {
            if ["table", "arg"].iter().any(|array| line.clone().id(array, "[").is_some()) {
                return self.gather_run(local, line);
            }
            let at = self.only_index(line)?;
            return Ok(Statement::StoreLocal(local, at, self.stored(line)?));
        }
        if let Some(shared) = self.array_id(line, kernel.shared.len())? {
            let at = self.only_index(line)?;
            return Ok(Statement::StoreShared(shared, at, self.stored(line)?));
        }
        if let Some(array) = self.array_id(line, kernel.integers.len())? {
            let at = self.only_index(line)?;
            line.expect(" = ")?;
            return Ok(Statement::StoreInteger(array, at, self.var(line)?));
        }
        let start = *line;
        let Ok((var, name)) = self.var_name(line) else {
            let help =
                "declarations stand before the first statement; docs/design/kir.md lists both";
            return Err(start.error("a statement", help));
        };
        line.expect(" = ")?;
        let rule = Rule::Integer(self.integer(line)?);
        self.declare(&start, var, Var { name, rule })?;
        Ok(Statement::Set(var))
    }

    /// Reads a prefetch, behind `prefetch `.
    fn prefetch(&mut self, line: &mut Line<'_>) -> Result<Statement, ReadError> {
        let array = self.argument_id(line)?;
        let Some(map) = self.maybe_argument(line)? else {
            let at = self.only_index(line)?;
            line.expect(" to ")?;
            let start = *line;
            let cache = match line.word() {
                "First" => Cache::First,
                "Second" => Cache::Second,
                _ => return Err(start.unexpected("`First` or `Second`")),
            };
            return Ok(Statement::Prefetch(array, at, cache));
        };
        line.expect("(batch + ")?;
        let batches = line.natural()?;
        line.expect(") * ")?;
        let entries = line.natural()?;
        line.expect(" + ")?;
        let entry = line.natural()?;
        let scale = lane_scale(line)?;
        line.expect("]")?;
        Ok(Statement::PrefetchIndexed { array, map, entries, entry, scale, batches })
    }

    /// Reads a store to an argument, behind `argN[`.
    fn store(&mut self, target: ArgumentId, line: &mut Line<'_>) -> Result<Statement, ReadError> {
        if let Some(map) = self.maybe_argument(line)? {
            let at = self.index(line)?;
            if line.eat("|") {
                return self.edge((target, map), at, line);
            }
            let scale = lane_scale(line)?;
            if line.eat("..") {
                let masked = line.eat(" masked");
                line.expect("]")?;
                let write = self.write(line)?;
                let start = *line;
                let local = self.array_id(line, self.kernel.locals.len())?;
                let local = local.ok_or_else(|| start.unexpected("an array such as `local0[`"))?;
                let (positions, first, length, lines) = self.positions(line)?;
                line.expect("]")?;
                let run = Run { map, at, scale, local, positions, first, length, masked, lines };
                return Ok(Statement::ScatterRun { target, run, write });
            }
            let offset = offset(line)?;
            let (write, value) = (self.write(line)?, self.operand(line)?);
            let masked = line.eat(" masked");
            let to = IndirectIndex { map, at, scale, offset, masked };
            return Ok(Statement::Scatter { target, to, value, write });
        }
        if let Some(var) = self.var_before(line, " * ") {
            let (scale, offset) = (line.natural()?, offset(line)?);
            let (write, value) = (self.write(line)?, self.operand(line)?);
            return Ok(Statement::StoreAt { target, var, scale, offset, value, write });
        }
        let at = self.index(line)?;
        line.expect(", lane]")?;
        Ok(Statement::StoreLanes(target, at, self.stored(line)?))
    }

    /// Reads the rest of an addition along an edge, behind its near end.
    fn edge(
        &mut self,
        (target, map): (ArgumentId, ArgumentId),
        near: Index,
        line: &mut Line<'_>,
    ) -> Result<Statement, ReadError> {
        let at = [near, self.index(line)?];
        let scale = lane_scale(line)?;
        line.expect("] += (")?;
        let mut values = Vec::new();
        while !line.eat(")") {
            if !values.is_empty() {
                line.expect(", ")?;
            }
            let offset = line.natural()?;
            line.expect(": ")?;
            let near = self.operand(line)?;
            line.expect("|")?;
            values.push((offset, [near, self.operand(line)?]));
        }
        line.expect(" along an edge")?;
        Ok(Statement::ScatterEdge { target, map, at, scale, values })
    }

    /// Reads a run that is copied to a private array, behind `localN[`.
    fn gather_run(&mut self, local: LocalId, line: &mut Line<'_>) -> Result<Statement, ReadError> {
        let (positions, first, length, lines) = self.positions(line)?;
        line.expect("] = ")?;
        let source = self.argument_id(line)?;
        let map = self.argument_id(line)?;
        let (at, scale) = (self.index(line)?, lane_scale(line)?);
        line.expect("..")?;
        let masked = line.eat(" masked");
        line.expect("]")?;
        let run = Run { map, at, scale, local, positions, first, length, masked, lines };
        Ok(Statement::GatherRun { source, run })
    }
}

/// Reads `, lane] * SCALE`, behind the entry of an index array.
fn lane_scale(line: &mut Line<'_>) -> Result<usize, ReadError> {
    line.expect(", lane] * ")?;
    line.natural()
}

/// Reads ` + OFFSET]`.
fn offset(line: &mut Line<'_>) -> Result<usize, ReadError> {
    line.expect(" + ")?;
    let offset = line.natural()?;
    line.expect("]")?;
    Ok(offset)
}
