//! The kernel IR, which strategies generate, passes rewrite and dialects print.
//!
//! # Semantics
//!
//! A [`Kernel`] is SPMD: it is written for **one group of `lanes` cells** (a batch), and runs for every batch in a
//! range. A real or truth value is *uniform* (one for the group) or *varying* (one per lane); an operation is varying
//! if an operand is. Loop bounds are uniform, and so are branches if lanes are vector lanes. Values are in static
//! single assignment. [`Statement::Let`] evaluates a value at its position, and the value may be used after its `Let`
//! in the same or an inner block.
//!
//! Memory consists of arrays, each a sequence of reals or of `u32`:
//!
//! - [`Local`] arrays are private to a lane, one real per lane and entry, initially undefined.
//! - [`Table`]s are constants, uniform.
//! - [`Argument`]s are global. [`Op::LoadLanes`] and [`Statement::StoreLanes`] are contiguous over the lanes: entry `i`
//!   of lane `l` is the array's element `i · lanes + l`. [`Op::LoadUniform`] reads element `i` for the whole group.
//!   [`Op::Gather`] and [`Statement::Scatter`] access an element through an index array, [`IndirectIndex`];
//!   [`Statement::GatherRun`] and [`Statement::ScatterRun`] move consecutive elements, [`Run`].
//!
//! Lanes of one batch may share nodes: an accumulating scatter is *lane-serial*, lane 0 first. Lanes at or beyond the
//! value of [`Kernel::active`] write nothing.
//!
//! For nonzero [`Kernel::threads`], a *group of threads* works on [`Kernel::group`] batches of one cell. Every thread
//! runs the kernel for its batch, with variables that are digits of its index ([`Thread`]), and threads synchronise at
//! [`Statement::Barrier`]s. Between two barriers no thread accesses an entry of a shared array that another one writes.
//! The group processes [`Kernel::series`] such sets of batches in sequence. A batch may have several cells, which are
//! distributed over the threads ([`build::Builder::set_cells`]); [`Kernel::lanes`] is then also 1, and indices specify
//! the cell.
//!
//! Lanes that are threads of a GPU can also share arrays and synchronise at barriers. [`Thread::Member`] is the index
//! of the thread in its group or of the lane in its batch, by which entries are distributed.
//!
//! Indices are affine in variables ([`Index`]), so that bounds are decidable and the text is readable. A variable
//! counts a loop, is derived from the thread index, or is an integer that was loaded or computed and may differ between
//! lanes ([`Integer`]). Execution may depend on it ([`Condition`]).

pub mod build;
mod integer;
pub mod interpret;
mod number;
mod operands;
pub mod read;
mod show;
mod threads;
pub mod verify;

use fem_dsl::arena::IndexVec;
use fem_dsl::id_type;
pub use fem_dsl::point::{Binary, Comparison, Unary};
pub use integer::{Condition, Integer};
pub use number::Label;
pub use threads::Thread;

id_type!(
    /// A value. Texts call it by its [`Label`].
    ValueId, "%"
);
id_type!(
    /// A loop variable; prints as `i7`.
    VarId, "i"
);
id_type!(
    /// A local array.
    LocalId, "local"
);
id_type!(
    /// An array in shared memory of a group of threads.
    SharedId, "shared"
);
id_type!(
    /// A private array of integers.
    IntegersId, "integers"
);
id_type!(
    /// A constant table.
    TableId, "table"
);
id_type!(
    /// A global array, passed at launch.
    ArgumentId, "arg"
);

/// Floating-point precision of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Precision {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
}

impl Precision {
    /// Returns the size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
        }
    }
}

/// The element type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Reals in the kernel's precision.
    Real,
    /// Unsigned 32-bit integers.
    U32,
}

/// A global array.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Name in the generated source.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// True if the kernel writes it.
    pub written: bool,
}

/// A private array: one real per lane and entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// Name in the generated source.
    pub name: String,
    /// Number of entries.
    pub length: usize,
}

/// A constant table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name in the generated source.
    pub name: String,
    /// Its entries.
    pub entries: Entries,
    /// True if threads of a group read different entries at once, which is slow in constant memory.
    pub spread: bool,
}

impl Table {
    /// Returns the bytes of its entries in a precision.
    pub fn bytes(&self, precision: Precision) -> usize {
        match &self.entries {
            Entries::Real(entries) => entries.len() * precision.bytes(),
            Entries::Position(entries) => entries.len() * size_of::<u32>(),
        }
    }
}

/// The entries of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Entries {
    /// Reals.
    Real(Vec<f64>),
    /// Positions in a local array.
    Position(Vec<u32>),
}

/// An index variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// Name in the generated source.
    pub name: String,
    /// Its definition.
    pub rule: Rule,
}

impl Var {
    /// Returns its definition in terms of the thread index, if it has one.
    pub fn thread(&self) -> Option<Thread> {
        match self.rule {
            Rule::Thread(thread) => Some(thread),
            Rule::Counted | Rule::Integer(_) => None,
        }
    }
}

/// The definition of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Counted by a loop, or by the launch (the batch).
    Counted,
    /// Derived from the thread index.
    Thread(Thread),
    /// Computed by a statement: [`Statement::Set`].
    Integer(Integer),
}

/// An affine integer: `constant + Σ factor · variable`, terms sorted by variable, no zero factors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Index {
    /// The constant.
    pub constant: i64,
    /// Variables and factors.
    pub terms: Vec<(VarId, i64)>,
}

impl From<usize> for Index {
    fn from(value: usize) -> Self {
        Self { constant: value as i64, terms: Vec::new() }
    }
}

impl From<VarId> for Index {
    fn from(var: VarId) -> Self {
        Self { constant: 0, terms: vec![(var, 1)] }
    }
}

impl std::ops::Add<&Index> for &Index {
    type Output = Index;
    fn add(self, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.constant += other.constant;
        for &(var, factor) in &other.terms {
            match sum.terms.binary_search_by_key(&var, |term| term.0) {
                Ok(at) => sum.terms[at].1 += factor,
                Err(at) => sum.terms.insert(at, (var, factor)),
            }
        }
        sum.terms.retain(|term| term.1 != 0);
        sum
    }
}

impl Index {
    /// Returns `self + number`.
    pub fn plus(&self, number: usize) -> Self {
        self + &Self::from(number)
    }

    /// Returns `self · factor`.
    pub fn times(&self, factor: usize) -> Self {
        if factor == 0 {
            return Self::default();
        }
        let factor = factor as i64;
        Self {
            constant: self.constant * factor,
            terms: self.terms.iter().map(|&(var, f)| (var, f * factor)).collect(),
        }
    }

    /// Returns the constant, if there are no variables.
    pub fn known(&self) -> Option<usize> {
        if self.terms.is_empty() { usize::try_from(self.constant).ok() } else { None }
    }
}

/// An operation that defines a value. Operands precede their value.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A constant, uniform.
    Constant(f64),
    /// A function of one argument.
    Unary(Unary, ValueId),
    /// A function of two arguments.
    Binary(Binary, ValueId, ValueId),
    /// `a · b + c`, rounded once if the machine supports it.
    Fma(ValueId, ValueId, ValueId),
    /// `c − a · b`, rounded once if the machine supports it.
    FmaNeg(ValueId, ValueId, ValueId),
    /// `1 / a` within two units in the last place, for a whose reciprocal is a normal number.
    Reciprocal(ValueId),
    /// `a / b` within a few units in the last place, for b whose reciprocal is a normal number. Printed as a division
    /// or as a multiplication by the reciprocal, whichever is faster on the target.
    Quotient(ValueId, ValueId),
    /// A truth value.
    Compare(Comparison, ValueId, ValueId),
    /// Both truth values.
    And(ValueId, ValueId),
    /// Either truth value.
    Or(ValueId, ValueId),
    /// The opposite truth value.
    Not(ValueId),
    /// `.1` if `.0` is true, else `.2`.
    Select(ValueId, ValueId, ValueId),
    /// The same uniform value in every lane; inserted by `legalise`.
    Broadcast(ValueId),
    /// An entry of a local array.
    LoadLocal(LocalId, Index),
    /// An entry of a shared array.
    LoadShared(SharedId, Index),
    /// An entry of a table of reals, uniform.
    LoadTable(TableId, Index),
    /// Element `i` of a global array of reals, uniform.
    LoadUniform(ArgumentId, Index),
    /// Element `i · lanes + lane` of a global array of reals.
    LoadLanes(ArgumentId, Index),
    /// 1 if element `i · lanes + lane` of a global array of `u32` masks has a bit, else 0.
    Flag {
        /// The array of masks.
        masks: ArgumentId,
        /// The entry.
        at: Index,
        /// The bit.
        bit: u32,
    },
    /// The element of a global array of reals at an index from an index array; 0 if masked.
    Gather {
        /// The array read.
        source: ArgumentId,
        /// The element.
        from: IndirectIndex,
    },
    /// Element `var · scale + offset` of a global array of reals.
    LoadAt {
        /// The array read.
        source: ArgumentId,
        /// A loaded integer.
        var: VarId,
        /// Its factor.
        scale: usize,
        /// Added to it.
        offset: usize,
        /// True if the integer `u32::MAX` reads 0.
        masked: bool,
    },
}

impl Op {
    /// Returns whether it differs between lanes for any operands.
    pub fn is_of_lane(&self) -> bool {
        matches!(
            self,
            Self::LoadLocal(..)
                | Self::LoadShared(..)
                | Self::LoadLanes(..)
                | Self::Flag { .. }
                | Self::Gather { .. }
                | Self::LoadAt { .. }
                | Self::Broadcast(_)
        )
    }

    /// Returns whether the operation yields a truth value.
    pub fn is_truth(&self) -> bool {
        matches!(self, Self::Compare(..) | Self::And(..) | Self::Or(..) | Self::Not(_))
    }
}

/// A value with its uniformity and its optional name from the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The operation that defines it.
    pub op: Op,
    /// True if it differs between lanes.
    pub varying: bool,
    /// A name for the generated source.
    pub name: Option<String>,
}

/// Write mode of a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Adds, one lane after another.
    LaneSerial,
    /// Stores exclusively: no other lane or thread writes these elements.
    Exclusive,
    /// Adds atomically, in arbitrary order.
    Atomic,
    /// Adds without atomics: no other lane or thread adds to these elements in the same launch.
    Alone,
    /// Stores exclusively if the variable, a [`Thread::Border`], is 0, that is inside the cell. Otherwise adds
    /// atomically, in arbitrary order.
    Inside(VarId),
}

/// An element for each lane: `map[at · lanes + lane] · scale + offset`.
#[derive(Clone, Debug, PartialEq)]
pub struct IndirectIndex {
    /// The index array.
    pub map: ArgumentId,
    /// The entry of the index array.
    pub at: Index,
    /// Factor of the index.
    pub scale: usize,
    /// Added to the scaled index.
    pub offset: usize,
    /// True if the index `u32::MAX` is masked.
    pub masked: bool,
}

/// The positions of a run's entries in a private array.
#[derive(Clone, Debug, PartialEq)]
pub enum Positions {
    /// A table.
    Table(TableId),
    /// An array of integers from this element on.
    Row(ArgumentId, Index),
}

/// Lines of a run that are summed with weights. The run is a tensor cell with `n` nodes a direction, node by node and the
/// first axis fastest; the positions are those of the components of its rotated copy, `[component][node]`. Line a of the
/// copy has the positions n · a + i. Array k, of the run and its followers, has Σ_i weights[n · k + i] · entry i at a if
/// the run is gathered; a scattered run has Σ_k weights[n · k + i] · array k at a in entry i.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedLines {
    /// Nodes of a line.
    pub n: usize,
    /// Components of a node.
    pub components: usize,
    /// The weights, `[array][n]`.
    pub weights: TableId,
    /// The private arrays after that of the run.
    pub others: Vec<LocalId>,
}

/// A run of `length` consecutive elements for each lane, from `map[at · lanes + lane] · scale` on, and the entries of a
/// private array that they belong to: element j to `local[positions[first + j]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The array of starts.
    pub map: ArgumentId,
    /// The entry of the array of starts.
    pub at: Index,
    /// Factor of the start.
    pub scale: usize,
    /// The private array.
    pub local: LocalId,
    /// The positions.
    pub positions: Positions,
    /// The run's first entry among them.
    pub first: usize,
    /// The length of the run.
    pub length: usize,
    /// True if nothing is moved where the starts are `u32::MAX`: then all lanes have it, or none.
    pub masked: bool,
    /// Weights, if lines are summed.
    pub lines: Option<WeightedLines>,
}

impl Run {
    /// Returns the private arrays.
    pub fn locals(&self) -> impl Iterator<Item = LocalId> + '_ {
        let others = self.lines.iter().flat_map(|lines| lines.others.iter().copied());
        std::iter::once(self.local).chain(others)
    }

    /// Returns the entries of a line, 1 without weights.
    pub fn line(&self) -> usize {
        self.lines.as_ref().map_or(1, |lines| lines.n)
    }
}

/// The cache level of a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cache {
    /// The smallest and fastest.
    First,
    /// The next.
    Second,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Evaluates a value.
    Let(ValueId),
    /// Writes an entry of a local array.
    StoreLocal(LocalId, Index, ValueId),
    /// Writes an entry of a shared array.
    StoreShared(SharedId, Index, ValueId),
    /// Group barrier: all threads arrive before any continues, and each sees the others' writes to shared arrays. Only
    /// outside of loops and conditions.
    Barrier,
    /// Memory accesses are not moved across this position: a compiler that hoists all loads needs a register for each.
    /// No effect on results.
    Fence,
    /// Recomputes a variable of [`Thread::Border`] for the following statements, so that it need not stay in a
    /// register.
    Recompute(VarId),
    /// Runs the body in the threads or lanes that satisfy all conditions.
    When {
        /// The conditions.
        conditions: Vec<Condition>,
        /// The body.
        body: Vec<Statement>,
    },
    /// Computes a variable of [`Rule::Integer`].
    Set(VarId),
    /// Writes an entry of a private array of integers.
    StoreInteger(IntegersId, Index, VarId),
    /// Writes to element `var · scale + offset`.
    StoreAt {
        /// The array written.
        target: ArgumentId,
        /// A loaded integer.
        var: VarId,
        /// Its factor.
        scale: usize,
        /// Added to it.
        offset: usize,
        /// The value written.
        value: ValueId,
        /// The write mode.
        write: Write,
    },
    /// Writes element `i · lanes + lane` of a global array (all lanes).
    StoreLanes(ArgumentId, Index, ValueId),
    /// Runs the body for `var = 0, 1, …, extent − 1`.
    For {
        /// The loop variable.
        var: VarId,
        /// The number of iterations.
        extent: usize,
        /// The body.
        body: Vec<Statement>,
    },
    /// Writes to elements at indices from an index array.
    Scatter {
        /// The array written.
        target: ArgumentId,
        /// The elements; masked ones are not written.
        to: IndirectIndex,
        /// The value written.
        value: ValueId,
        /// The write mode.
        write: Write,
    },
    /// Adds to elements `map[at · lanes + lane] · scale + offset` at both ends of an edge. If the far end is the next
    /// lane's near end, one addition may serve both.
    ScatterEdge {
        /// The array written.
        target: ArgumentId,
        /// The index array.
        map: ArgumentId,
        /// The entries of the index array: the near end, the far end.
        at: [Index; 2],
        /// Factor of the index.
        scale: usize,
        /// Per component: the offset added to the scaled index, and the values added at the near and the far end.
        values: Vec<(usize, [ValueId; 2])>,
    },
    /// Copies runs of an array to private entries.
    GatherRun {
        /// The array read.
        source: ArgumentId,
        /// Its runs.
        run: Run,
    },
    /// The reverse of [`Statement::GatherRun`].
    ScatterRun {
        /// The array written.
        target: ArgumentId,
        /// Its runs.
        run: Run,
        /// The write mode.
        write: Write,
    },
    /// Prefetches the cache line of element `i · lanes` of the array, which may be out of bounds; no effect on results.
    Prefetch(ArgumentId, Index, Cache),
    /// Prefetches, for each lane, the cache line of element `map[(later · entries + entry) · lanes + lane] · scale`.
    /// `later` is the batch `batches` after this one, clamped to the last. No effect on results.
    PrefetchIndexed {
        /// The prefetched array.
        array: ArgumentId,
        /// The index array.
        map: ArgumentId,
        /// Entries per batch of the index array.
        entries: usize,
        /// The entry.
        entry: usize,
        /// Factor of the index.
        scale: usize,
        /// The prefetch distance in batches.
        batches: usize,
    },
    /// Boundary between two stages. A target may run each stage for [`Kernel::block`] batches in turn, so that batches
    /// overlap in the CPU. Data passes between stages in local arrays, never in values. Only outside of loops.
    Stage,
    /// A comment in the generated source.
    Comment(String),
}

impl Statement {
    /// Returns the nested statements of a loop or condition.
    pub fn body(&self) -> &[Statement] {
        match self {
            Self::For { body, .. } | Self::When { body, .. } => body,
            _ => &[],
        }
    }

    /// Returns the nested statements, mutably.
    pub fn body_mut(&mut self) -> Option<&mut Vec<Statement>> {
        match self {
            Self::For { body, .. } | Self::When { body, .. } => Some(body),
            _ => None,
        }
    }

    /// Returns whether a predicate is true for it or a nested statement. Recursive in the depth of loops and
    /// conditions, which strategies bound.
    pub fn any(&self, is_true: &mut dyn FnMut(&Self) -> bool) -> bool {
        is_true(self) || self.body().iter().any(|inner| inner.any(is_true))
    }

    /// Calls a function with it and all nested statements.
    pub fn for_each(&self, each: &mut dyn FnMut(&Self)) {
        self.any(&mut |statement| {
            each(statement);
            false
        });
    }
}

/// One kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name in the generated source.
    pub name: String,
    /// Precision of reals.
    pub precision: Precision,
    /// Cells per group.
    pub lanes: usize,
    /// Global arrays, in the order of the call.
    pub arguments: IndexVec<ArgumentId, Argument>,
    /// Private arrays.
    pub locals: IndexVec<LocalId, Local>,
    /// Private arrays of integers.
    pub integers: IndexVec<IntegersId, Local>,
    /// Constant tables.
    pub tables: IndexVec<TableId, Table>,
    /// Variables; the first is the batch.
    pub vars: IndexVec<VarId, Var>,
    /// Values.
    pub values: IndexVec<ValueId, Value>,
    /// The `u32` array with the number of lanes that write, one entry per batch.
    pub active: Option<ArgumentId>,
    /// Threads per group that cooperate on its batches, with [`Kernel::lanes`] 1; 0 if lanes are independent.
    pub threads: usize,
    /// Batches per group; each has `threads / group` consecutive threads.
    pub group: usize,
    /// Number of such sets of batches that a group processes in sequence.
    pub series: usize,
    /// Arrays in shared memory of a group of threads.
    pub shared: IndexVec<SharedId, Local>,
    /// Batches that pass a stage together; 1 without stages.
    pub block: usize,
    /// The statements for one batch.
    pub body: Vec<Statement>,
}

impl Kernel {
    /// Returns whether a table lists a variable of the threads.
    pub fn lists_threads(&self, table: TableId) -> bool {
        self.vars.iter().any(|var| var.thread() == Some(Thread::Listed(table)))
    }

    /// Returns the tables that the running kernel reads: loaded from, or listing a variable of the threads. With
    /// `runs`, for languages with loops over runs, also the positions of runs; other languages resolve these when
    /// printing.
    pub fn tables_read(&self, runs: bool) -> IndexVec<TableId, bool> {
        let mut read: IndexVec<TableId, bool> =
            self.tables.ids().map(|id| self.lists_threads(id)).collect();
        let mut mark = |statement: &Statement| match statement {
            Statement::Let(value) => {
                if let Op::LoadTable(table, _) = self.values[*value].op {
                    read[table] = true;
                }
            }
            Statement::GatherRun { run, .. } | Statement::ScatterRun { run, .. } => {
                if let Positions::Table(table) = run.positions {
                    read[table] |= runs;
                }
                if let Some(lines) = &run.lines {
                    read[lines.weights] |= runs;
                }
            }
            _ => {}
        };
        self.body.iter().for_each(|statement| statement.for_each(&mut mark));
        read
    }

    /// Returns whether statements access a private array.
    pub fn uses_local(&self, body: &[Statement], id: LocalId) -> bool {
        let mut uses = |statement: &Statement| match statement {
            Statement::Let(value) => {
                matches!(&self.values[*value].op, Op::LoadLocal(local, _) if *local == id)
            }
            Statement::StoreLocal(local, ..) => *local == id,
            Statement::GatherRun { run, .. } | Statement::ScatterRun { run, .. } => {
                run.locals().any(|local| local == id)
            }
            _ => false,
        };
        body.iter().any(|statement| statement.any(&mut uses))
    }

    /// Returns the variable that counts batches.
    pub fn batch(&self) -> VarId {
        self.vars.ids().next().expect("a kernel should have its batch variable")
    }
}
