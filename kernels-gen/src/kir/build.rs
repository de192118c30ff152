//! Builds a [`Kernel`] statement by statement, with constant folding.

use super::{
    Argument, ArgumentId, Binary, Comparison, Condition, Element, Entries, Index, IndirectIndex,
    Integer, IntegersId, Kernel, Local, LocalId, Op, Precision, Rule, SharedId, Statement, Table,
    TableId, Thread, Unary, Value, ValueId, Var, VarId, Write,
};
use fem_dsl::arena::IndexVec;
use std::collections::BTreeMap;

/// A kernel under construction.
pub struct Builder {
    kernel: Kernel,
    blocks: Vec<Vec<Statement>>,
    constants: BTreeMap<u64, ValueId>,
    /// Cells of a batch distributed over threads, and the current cell.
    cells: Option<(usize, Index)>,
    /// Private arrays in order of allocation, without the released ones.
    taken: Vec<LocalId>,
    released: Vec<LocalId>,
}

impl AsMut<Self> for Builder {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Builder {
    /// Returns an empty kernel for batches of `lanes` cells.
    pub fn new(name: &str, precision: Precision, lanes: usize) -> Self {
        let mut vars = IndexVec::new();
        vars.push(Var { name: "batch".to_owned(), rule: Rule::Counted });
        Self {
            kernel: Kernel {
                name: name.to_owned(),
                precision,
                lanes,
                arguments: IndexVec::new(),
                locals: IndexVec::new(),
                integers: IndexVec::new(),
                tables: IndexVec::new(),
                vars,
                values: IndexVec::new(),
                active: None,
                threads: 0,
                group: 1,
                series: 1,
                shared: IndexVec::new(),
                block: 1,
                body: Vec::new(),
            },
            blocks: vec![Vec::new()],
            constants: BTreeMap::new(),
            cells: None,
            taken: Vec::new(),
            released: Vec::new(),
        }
    }

    /// Returns the finished kernel.
    pub fn finish(mut self) -> Kernel {
        assert_eq!(self.blocks.len(), 1, "every loop should be closed");
        self.kernel.body = self.blocks.pop().unwrap_or_default();
        self.kernel
    }

    /// Returns the batch variable.
    pub fn batch(&self) -> VarId {
        self.kernel.batch()
    }

    /// Declares a global array.
    pub fn argument(&mut self, name: &str, element: Element, written: bool) -> ArgumentId {
        self.kernel.arguments.push(Argument { name: name.to_owned(), element, written })
    }

    /// Sets the argument with the number of lanes that write.
    pub fn set_active(&mut self, argument: ArgumentId) {
        self.kernel.active = Some(argument);
    }

    /// Declares a private array.
    pub fn local(&mut self, name: &str, length: usize) -> LocalId {
        let alike = |id: &LocalId| {
            let local = &self.kernel.locals[*id];
            local.name == name && local.length == length
        };
        let id = match self.released.iter().position(alike) {
            Some(at) => self.released.remove(at),
            None => self.kernel.locals.push(Local { name: name.to_owned(), length }),
        };
        self.taken.push(id);
        id
    }

    /// Returns the number of allocated private arrays, to which [`Builder::release`] can return.
    pub fn mark(&self) -> usize {
        self.taken.len()
    }

    /// Releases all private arrays allocated since `mark`; the next ones of the same name and length reuse them.
    pub fn release(&mut self, mark: usize) {
        self.released.extend(self.taken.drain(mark..));
    }

    /// Releases the private array allocated first since `mark`.
    pub fn release_one(&mut self, mark: usize) {
        self.released.push(self.taken.remove(mark));
    }

    /// Declares a constant table; an equal one is shared.
    pub fn table(&mut self, name: &str, entries: Entries) -> TableId {
        if let Some((id, _)) =
            self.kernel.tables.iter_enumerated().find(|(_, table)| table.entries == entries)
        {
            return id;
        }
        self.kernel.tables.push(Table { name: name.to_owned(), entries, spread: false })
    }

    /// Returns the same for a table of which threads read different entries at once.
    pub fn spread_table(&mut self, name: &str, entries: Entries) -> TableId {
        let table = self.table(name, entries);
        self.kernel.tables[table].spread = true;
        table
    }

    /// Returns a constant.
    pub fn constant(&mut self, value: f64) -> ValueId {
        let value = if value == 0.0 { 0.0 } else { value };
        if let Some(&id) = self.constants.get(&value.to_bits()) {
            return id;
        }
        let id =
            self.kernel.values.push(Value { op: Op::Constant(value), varying: false, name: None });
        self.constants.insert(value.to_bits(), id);
        id
    }

    /// Returns the number of a constant value.
    pub fn known(&self, value: ValueId) -> Option<f64> {
        match self.kernel.values[value].op {
            Op::Constant(number) => Some(number),
            _ => None,
        }
    }

    /// Names an unnamed value in the generated source. Constants stay unnamed.
    pub fn name(&mut self, value: ValueId, name: &str) -> ValueId {
        let Value { op, name: slot, .. } = &mut self.kernel.values[value];
        if slot.is_none() && !matches!(op, Op::Constant(_)) {
            *slot = Some(name.to_owned());
        }
        value
    }

    fn push(&mut self, mut statement: Statement) {
        match &mut statement {
            Statement::StoreLanes(_, at, _) => self.of_cell(at),
            Statement::Scatter { to, .. } => self.of_cell(&mut to.at),
            Statement::GatherRun { run, .. } | Statement::ScatterRun { run, .. } => {
                self.of_cell(&mut run.at);
            }
            Statement::ScatterEdge { at, .. } => at.iter_mut().for_each(|at| self.of_cell(at)),
            _ => {}
        }
        self.blocks.last_mut().expect("a block should be open").push(statement);
    }

    /// Adjusts entry `at` to the current cell, with cells distributed over threads.
    fn of_cell(&self, at: &mut Index) {
        if let Some((cells, cell)) = &self.cells {
            *at = &at.times(*cells) + cell;
        }
    }

    fn define(&mut self, mut op: Op) -> ValueId {
        if let Op::LoadLanes(_, at)
        | Op::Flag { at, .. }
        | Op::Gather { from: IndirectIndex { at, .. }, .. } = &mut op
        {
            self.of_cell(at);
        }
        let varying =
            op.is_of_lane() || op.operands().any(|operand| self.kernel.values[operand].varying);
        let id = self.kernel.values.push(Value { op, varying, name: None });
        self.push(Statement::Let(id));
        id
    }

    /// Returns `a + b`. Here and below, constants whose result is not finite are not folded.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.known(a), self.known(b)) {
            (Some(x), Some(y)) if (x + y).is_finite() => self.constant(x + y),
            (Some(0.0), _) => b,
            (_, Some(0.0)) => a,
            _ => self.define(Op::Binary(Binary::Add, a, b)),
        }
    }

    /// Returns `a − b`.
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.known(a), self.known(b)) {
            (Some(x), Some(y)) if (x - y).is_finite() => self.constant(x - y),
            (Some(0.0), _) => self.unary(Unary::Neg, b),
            (_, Some(0.0)) => a,
            _ => self.define(Op::Binary(Binary::Sub, a, b)),
        }
    }

    /// Returns `a · b`.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.known(a), self.known(b)) {
            (Some(x), Some(y)) if (x * y).is_finite() => self.constant(x * y),
            (Some(0.0), _) | (_, Some(0.0)) => self.constant(0.0),
            (Some(1.0), _) => b,
            (_, Some(1.0)) => a,
            (Some(-1.0), _) => self.unary(Unary::Neg, b),
            (_, Some(-1.0)) => self.unary(Unary::Neg, a),
            _ => self.define(Op::Binary(Binary::Mul, a, b)),
        }
    }

    /// Returns `a · b + c`.
    pub fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        match (self.known(a), self.known(b), self.known(c)) {
            (Some(_), Some(_), _) => {
                let product = self.mul(a, b);
                self.add(product, c)
            }
            (Some(0.0), _, _) | (_, Some(0.0), _) => c,
            (_, _, Some(0.0)) => self.mul(a, b),
            (Some(1.0), _, _) => self.add(b, c),
            (_, Some(1.0), _) => self.add(a, c),
            (Some(-1.0), _, _) => self.sub(c, b),
            (_, Some(-1.0), _) => self.sub(c, a),
            _ => self.define(Op::Fma(a, b, c)),
        }
    }

    /// Returns `c − a · b`.
    pub fn fma_neg(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        match (self.known(a), self.known(b), self.known(c)) {
            (Some(_), Some(_), _) => {
                let product = self.mul(a, b);
                self.sub(c, product)
            }
            (Some(0.0), _, _) | (_, Some(0.0), _) => c,
            (_, _, Some(0.0)) => {
                let product = self.mul(a, b);
                self.unary(Unary::Neg, product)
            }
            (Some(1.0), _, _) => self.sub(c, b),
            (_, Some(1.0), _) => self.sub(c, a),
            _ => self.define(Op::FmaNeg(a, b, c)),
        }
    }

    /// Returns a function of one argument.
    pub fn unary(&mut self, function: Unary, a: ValueId) -> ValueId {
        match (function, self.known(a)) {
            (Unary::Neg, Some(x)) => self.constant(-x),
            (Unary::Abs, Some(x)) => self.constant(x.abs()),
            (Unary::Sqrt, Some(x)) if x >= 0.0 => self.constant(x.sqrt()),
            _ => self.define(Op::Unary(function, a)),
        }
    }

    /// Returns a function of two arguments.
    pub fn binary(&mut self, function: Binary, a: ValueId, b: ValueId) -> ValueId {
        match function {
            Binary::Add => self.add(a, b),
            Binary::Sub => self.sub(a, b),
            Binary::Mul => self.mul(a, b),
            Binary::Div => match (self.known(a), self.known(b)) {
                (Some(x), Some(y)) if (x / y).is_finite() => self.constant(x / y),
                (_, Some(1.0)) => a,
                _ => match self.reciprocal_of(b) {
                    Some(b) => self.mul(a, b),
                    None => self.define(Op::Binary(Binary::Div, a, b)),
                },
            },
            Binary::Pow | Binary::Atan2 | Binary::Min | Binary::Max => {
                self.define(Op::Binary(function, a, b))
            }
        }
    }

    /// Returns `1 / a`.
    pub fn reciprocal(&mut self, a: ValueId) -> ValueId {
        match self.known(a) {
            Some(x) if (1.0 / x).is_finite() => self.constant(1.0 / x),
            _ => self.define(Op::Reciprocal(a)),
        }
    }

    /// Returns the number of which a value is the reciprocal.
    fn reciprocal_of(&self, value: ValueId) -> Option<ValueId> {
        match self.kernel.values[value].op {
            Op::Reciprocal(of) => Some(of),
            _ => None,
        }
    }

    /// Returns `a / b`, or `a` times the reciprocal of `b`, whichever suits the target.
    pub fn quotient(&mut self, a: ValueId, b: ValueId) -> ValueId {
        match (self.known(a), self.known(b)) {
            (Some(x), Some(y)) if (x / y).is_finite() => self.constant(x / y),
            (_, Some(1.0)) => a,
            _ => match self.reciprocal_of(b) {
                Some(b) => self.mul(a, b),
                None => self.define(Op::Quotient(a, b)),
            },
        }
    }

    /// Returns a whole power by repeated squaring.
    pub fn powi(&mut self, base: ValueId, exponent: i32) -> ValueId {
        let mut result = None;
        let mut square = base;
        let mut rest = exponent.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                result = Some(match result {
                    None => square,
                    Some(value) => self.mul(value, square),
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.mul(square, square);
            }
        }
        let one = self.constant(1.0);
        let power = result.unwrap_or(one);
        if exponent < 0 { self.binary(Binary::Div, one, power) } else { power }
    }

    /// Returns a comparison.
    pub fn compare(&mut self, comparison: Comparison, a: ValueId, b: ValueId) -> ValueId {
        self.define(Op::Compare(comparison, a, b))
    }

    /// Returns both truth values.
    pub fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.define(Op::And(a, b))
    }

    /// Returns either truth value.
    pub fn or(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.define(Op::Or(a, b))
    }

    /// Returns the opposite truth value.
    pub fn not(&mut self, a: ValueId) -> ValueId {
        self.define(Op::Not(a))
    }

    /// Returns `a` if `condition` is true, else `b`.
    pub fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> ValueId {
        self.define(Op::Select(condition, a, b))
    }

    /// Returns an entry of a local array.
    pub fn load(&mut self, local: LocalId, index: Index) -> ValueId {
        self.define(Op::LoadLocal(local, index))
    }

    /// Returns an entry of a table; a known entry is a constant.
    pub fn load_table(&mut self, table: TableId, index: Index) -> ValueId {
        if let (Entries::Real(entries), Some(at)) =
            (&self.kernel.tables[table].entries, index.known())
        {
            let number = entries[at];
            return self.constant(number);
        }
        self.define(Op::LoadTable(table, index))
    }

    /// Returns element `index` of a global array, uniform.
    pub fn load_uniform(&mut self, argument: ArgumentId, index: Index) -> ValueId {
        self.define(Op::LoadUniform(argument, index))
    }

    /// Returns element `index · lanes + lane` of a global array.
    pub fn load_lanes(&mut self, argument: ArgumentId, index: Index) -> ValueId {
        self.define(Op::LoadLanes(argument, index))
    }

    /// Returns a bit of entry `at` of an array of masks, as 1 or 0; see [`Op::Flag`].
    pub fn flag(&mut self, masks: ArgumentId, at: Index, bit: u32) -> ValueId {
        self.define(Op::Flag { masks, at, bit })
    }

    /// Returns an indexed read; see [`Op::Gather`].
    pub fn gather(
        &mut self,
        source: ArgumentId,
        map: ArgumentId,
        at: Index,
        (scale, offset): (usize, usize),
        masked: bool,
    ) -> ValueId {
        self.define(Op::Gather { source, from: IndirectIndex { map, at, scale, offset, masked } })
    }

    /// Returns the variable of an integer: a new one, or an equal one of this block.
    pub fn integer(&mut self, name: &str, integer: Integer) -> VarId {
        let block = self.blocks.last().expect("a block should be open");
        // Values of an earlier stage are not available.
        let mut stage = block.iter().rev().take_while(|own| !matches!(own, Statement::Stage));
        let equal = stage.find_map(|statement| match *statement {
            Statement::Set(var) if self.kernel.integer(var) == Some(&integer) => Some(var),
            _ => None,
        });
        equal.unwrap_or_else(|| {
            let var = self.var(name, Rule::Integer(integer));
            self.push(Statement::Set(var));
            var
        })
    }

    /// Loads entry `at` of an index array for the current lane or cell.
    pub fn load_index(&mut self, name: &str, map: ArgumentId, at: &Index) -> VarId {
        let mut at = at.clone();
        self.of_cell(&mut at);
        if self.kernel.lanes > 1 {
            at = &at.times(self.kernel.lanes) + &Index::from(self.member());
        }
        self.integer(name, Integer::Element(map, at))
    }

    /// Declares a private array of integers.
    pub fn integers(&mut self, name: &str, length: usize) -> IntegersId {
        self.kernel.integers.push(Local { name: name.to_owned(), length })
    }

    /// Loads the element at a computed index; see [`Op::LoadAt`].
    pub fn load_at(
        &mut self,
        source: ArgumentId,
        var: VarId,
        (scale, offset): (usize, usize),
        masked: bool,
    ) -> ValueId {
        self.define(Op::LoadAt { source, var, scale, offset, masked })
    }

    /// Writes an entry of a local array.
    pub fn store(&mut self, local: LocalId, index: Index, value: ValueId) {
        self.push(Statement::StoreLocal(local, index, value));
    }

    /// Loads `count` entries of a local array with this stride.
    pub fn load_line(
        &mut self,
        local: LocalId,
        start: &Index,
        stride: usize,
        count: usize,
    ) -> Vec<ValueId> {
        (0..count).map(|i| self.load(local, start.plus(i * stride))).collect()
    }

    /// Reverses [`Builder::load_line`].
    pub fn store_line(&mut self, local: LocalId, start: &Index, stride: usize, values: &[ValueId]) {
        for (i, &value) in values.iter().enumerate() {
            self.store(local, start.plus(i * stride), value);
        }
    }

    /// Sets `length` entries of a local array from `start` on to 0.
    pub fn clear(&mut self, local: LocalId, start: usize, length: usize) {
        let zero = self.constant(0.0);
        self.repeat("b", length, false, |b, i| b.store(local, i.plus(start), zero));
    }

    /// Writes element `index · lanes + lane` of a global array.
    pub fn store_lanes(&mut self, argument: ArgumentId, index: Index, value: ValueId) {
        self.push(Statement::StoreLanes(argument, index, value));
    }

    /// Adds an indexed write; see [`Statement::Scatter`].
    pub fn scatter(
        &mut self,
        target: ArgumentId,
        map: ArgumentId,
        at: Index,
        (scale, offset): (usize, usize),
        masked: bool,
        value: ValueId,
    ) {
        let to = IndirectIndex { map, at, scale, offset, masked };
        self.push(Statement::Scatter { target, to, value, write: Write::LaneSerial });
    }

    /// Appends any other statement.
    pub fn statement(&mut self, statement: Statement) {
        self.push(statement);
    }

    /// Makes the kernel one for groups of `threads` threads that work on `group` batches.
    pub fn set_threads(&mut self, threads: usize, group: usize) {
        self.kernel.threads = threads;
        self.kernel.group = group;
    }

    /// Returns whether the kernel is for groups of threads.
    pub fn has_threads(&self) -> bool {
        self.kernel.threads > 0
    }

    /// Lets each group process `series` sets of batches in sequence.
    pub fn set_series(&mut self, series: usize) {
        self.kernel.series = series;
    }

    /// Distributes the `cells` cells of a batch over the threads. Memory that is contiguous over lanes is then
    /// contiguous over cells, and [`Builder::at_cell`] replaces the lane.
    pub fn set_cells(&mut self, cells: usize) {
        self.kernel.lanes = 1;
        self.cells = Some((cells, Index::default()));
    }

    /// Sets the cell of the batch for subsequent accesses.
    pub fn at_cell(&mut self, cell: Index) {
        if let Some((_, meant)) = &mut self.cells {
            *meant = cell;
        }
    }

    fn var(&mut self, name: &str, rule: Rule) -> VarId {
        self.kernel.vars.push(Var { name: name.to_owned(), rule })
    }

    /// Returns the first existing variable with this definition that satisfies `like`, or a new one.
    fn known_var(&mut self, name: &str, thread: Thread, like: impl Fn(&Var) -> bool) -> VarId {
        let rule = Rule::Thread(thread);
        let vars = &self.kernel.vars;
        let known = vars.ids().find(|&var| vars[var].rule == rule && like(&vars[var]));
        known.unwrap_or_else(|| self.var(name, rule))
    }

    /// Returns the index of the thread in its group, or of the lane in its batch.
    pub fn member(&mut self) -> VarId {
        self.known_var("member", Thread::Member, |_| true)
    }

    /// Returns the number of threads or lanes.
    pub fn members(&self) -> usize {
        self.kernel.members()
    }

    /// Returns a variable that is a digit of the thread index; the existing one with this name, if any.
    pub fn thread_var(&mut self, name: &str, divisor: usize, modulus: usize) -> VarId {
        self.known_var(name, Thread::Digit { divisor, modulus }, |var| var.name == name)
    }

    /// Returns the batch of cell `t / divisor` of the group.
    pub fn batch_var(&mut self, name: &str, divisor: usize) -> VarId {
        self.var(name, Rule::Thread(Thread::Batch { divisor }))
    }

    /// Returns a variable that indicates that one of these digits, at most `last`, is the first or the last.
    pub fn border_var(&mut self, name: &str, digits: [VarId; 2], last: usize) -> VarId {
        self.known_var(name, Thread::Border { digits, last }, |_| true)
    }

    /// Returns a variable that is tabulated per thread.
    pub fn listed_var(&mut self, name: &str, positions: Vec<u32>) -> VarId {
        let table = self.spread_table(name, Entries::Position(positions));
        self.var(name, Rule::Thread(Thread::Listed(table)))
    }

    /// Declares a shared array of a group of threads.
    pub fn shared(&mut self, name: &str, length: usize) -> SharedId {
        self.kernel.shared.push(Local { name: name.to_owned(), length })
    }

    /// Returns the shared arrays so far.
    pub fn shared_arrays(&self) -> impl Iterator<Item = &Local> {
        self.kernel.shared.iter()
    }

    /// Writes an entry of a shared array.
    pub fn store_shared(&mut self, shared: SharedId, at: Index, value: ValueId) {
        self.push(Statement::StoreShared(shared, at, value));
    }

    /// Adds a barrier of all threads or lanes of a group; see [`Statement::Barrier`].
    pub fn barrier(&mut self) {
        self.push(Statement::Barrier);
    }

    /// Returns an entry of a shared array.
    pub fn load_shared(&mut self, shared: SharedId, at: Index) -> ValueId {
        self.define(Op::LoadShared(shared, at))
    }

    /// Begins a conditional block, until [`Builder::close_when`].
    pub fn open_when(&mut self) {
        self.blocks.push(Vec::new());
    }

    /// Ends the conditional block with its conditions; without any, it is unconditional.
    pub fn close_when(&mut self, conditions: Vec<Condition>) {
        let body = self.blocks.pop().expect("the condition's block should be open");
        if conditions.is_empty() {
            self.blocks.last_mut().expect("a block should be open").extend(body);
        } else {
            self.push(Statement::When { conditions, body });
        }
    }

    /// Ends a block that only runs if the current cell writes; unconditional if all cells do.
    pub fn close_when_written(&mut self) {
        let cell = self.cells.as_ref().filter(|_| self.kernel.active.is_some());
        let active = cell.map(|(_, cell)| Condition::ActiveCell(cell.clone()));
        self.close_when(active.into_iter().collect());
    }

    /// Ends a stage, if batches pass through stages `block` at a time.
    pub fn stage(&mut self, block: usize) {
        assert_eq!(self.blocks.len(), 1, "stages should not end in a loop");
        if block > 1 {
            self.kernel.block = block;
            self.push(Statement::Stage);
        }
    }

    /// Adds a comment to the generated source.
    pub fn comment(&mut self, text: &str) {
        self.push(Statement::Comment(text.to_owned()));
    }

    /// Repeats a body that uses the builder only, like [`repeat`].
    pub fn repeat(
        &mut self,
        name: &str,
        extent: usize,
        unroll: bool,
        body: impl FnMut(&mut Self, Index),
    ) {
        repeat(self, name, extent, unroll, body);
    }

    /// Distributes `count` entries over the threads or lanes: full rounds, then the remainder. `body` reads the data of
    /// an entry and writes it under the given conditions. In the last round, reads are unconditional, because PoCL
    /// reads out of bounds even under a condition.
    pub fn distribute(
        &mut self,
        count: usize,
        body: &mut dyn FnMut(&mut Self, &Index, Vec<Condition>),
    ) {
        let (member, all) = (self.member(), self.members());
        let (rounds, rest) = (count / all, count % all);
        if rounds > 0 {
            self.repeat("round", rounds, false, |b, round| {
                body(b, &(&round.times(all) + &Index::from(member)), Vec::new());
            });
        }
        if rest > 0 {
            let own = self.integer("own", Integer::Rest(member, rest));
            let mine = vec![Condition::Below(member, rest)];
            body(self, &Index::from(own).plus(count - rest), mine);
        }
    }

    /// Begins a loop, whose body ends at [`Builder::close_loop`].
    pub fn open_loop(&mut self, name: &str) -> VarId {
        self.blocks.push(Vec::new());
        self.var(name, Rule::Counted)
    }

    /// Ends the innermost loop.
    pub fn close_loop(&mut self, var: VarId, extent: usize) {
        let body = self.blocks.pop().expect("the loop's block should be open");
        self.push(Statement::For { var, extent, body });
    }
}

/// Runs `body` for 0 … extent − 1: as a loop, or unrolled if `unroll` is set or there is a single iteration.
pub fn repeat<H: AsMut<Builder>>(
    host: &mut H,
    name: &str,
    extent: usize,
    unroll: bool,
    mut body: impl FnMut(&mut H, Index),
) {
    if unroll || extent == 1 {
        for number in 0..extent {
            body(host, Index::from(number));
        }
        return;
    }
    let var = host.as_mut().open_loop(name);
    body(host, Index::from(var));
    host.as_mut().close_loop(var, extent);
}
