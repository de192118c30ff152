//! The kernel IR: what every strategy writes, every pass rewrites and every dialect prints.
//!
//! # Meaning
//!
//! A [`Kernel`] is SPMD: it is written for **one group of `lanes` cells** (a batch), and is run for
//! every batch in a range. A real or truth value is *uniform* (one for the group) or *varying* (one
//! a lane); an operation is varying if an operand is. Loop bounds are uniform, and so are branches
//! where lanes are those of a vector. Values are in static single assignment: [`Statement::Let`]
//! evaluates a value at that place, and a value may be used after its `Let` in the same or an inner
//! block.
//!
//! Memory is arrays, each a sequence of reals or of `u32`:
//!
//! - [`Local`] arrays are private to a lane, one real a lane an entry, uninitialised at first.
//! - [`Table`]s are constants, uniform.
//! - [`Argument`]s are global. [`Op::LoadLanes`] and [`Statement::StoreLanes`] are contiguous over
//!   the lanes: entry `i` of lane `l` is the array's element `i · lanes + l`. [`Op::LoadUniform`]
//!   reads element `i` for the whole group. [`Op::Gather`] and [`Statement::Scatter`] take the
//!   element that an index array says, [`Indexed`]; [`Statement::GatherRun`] and
//!   [`Statement::ScatterRun`] move several in a row, [`Run`].
//!
//! Lanes of one batch may share nodes: a scatter that accumulates is *lane-serial*, lane 0 first,
//! and lanes at or beyond the value of [`Kernel::active`] write nothing.
//!
//! Where [`Kernel::threads`] is not 0, a *group of threads* works on [`Kernel::group`] batches of one
//! cell: every thread runs the kernel for the batch that is its share, with variables that are digits
//! of its number ([`Thread`]), and threads meet at [`Statement::Barrier`]s. Between two barriers no
//! thread touches an entry of a shared array that another one writes. They do [`Kernel::series`] such
//! turns one after another. A batch may be several cells that the threads deal out among themselves
//! ([`build::Builder::set_cells`]); [`Kernel::lanes`] is 1 then too, and indices say which cell is meant.
//!
//! Lanes that are threads of a GPU can share arrays, too, and meet at barriers: [`Thread::Member`] is the number of the
//! thread in its group or of the lane in its batch, by which they deal entries out among themselves.
//!
//! Indices are affine in variables ([`Index`]); that keeps bounds decidable, and text readable. A variable counts a loop,
//! belongs to the thread, or is an integer that was loaded or computed, and differs from lane to lane then ([`Integer`]);
//! what is done may depend on it ([`Condition`]).

pub mod build;
mod integer;
pub mod interpret;
pub mod read;
mod show;
mod threads;
pub mod verify;

use fem_dsl::arena::IndexVec;
use fem_dsl::id_type;
pub use fem_dsl::point::{Binary, Comparison, Unary};
pub use integer::{Condition, Integer};
pub use threads::Thread;

id_type!(
    /// A value; prints as `%7`.
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
    /// An array that the threads of a group share.
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
    /// A global array, given at launch.
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
    /// Size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
        }
    }
}

/// What an argument's elements are.
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
    /// What it holds.
    pub element: Element,
    /// Whether the kernel writes it.
    pub written: bool,
}

/// A private array: one real a lane an entry.
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
    /// Whether threads of a group read different entries at once, for which the memory of constants is
    /// not made.
    pub spread: bool,
}

impl Table {
    /// Bytes of its entries where reals have a precision.
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

/// A variable of indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// Name in the generated source.
    pub name: String,
    /// What it is.
    pub rule: Rule,
}

impl Var {
    /// What it is of the thread's number, if it is that.
    pub fn thread(&self) -> Option<Thread> {
        match self.rule {
            Rule::Thread(thread) => Some(thread),
            Rule::Counted | Rule::Integer(_) => None,
        }
    }
}

/// Where the number of a variable comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// A loop counts it, or the launch: the batch.
    Counted,
    /// The number of the thread.
    Thread(Thread),
    /// A statement computes it: [`Statement::Set`].
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
    /// `self + number`.
    pub fn plus(&self, number: usize) -> Self {
        self + &Self::from(number)
    }

    /// `self · factor`.
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

    /// The number, where there are no variables.
    pub fn known(&self) -> Option<usize> {
        if self.terms.is_empty() { usize::try_from(self.constant).ok() } else { None }
    }
}

/// How a value comes about. Operands precede their value.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A constant, uniform.
    Constant(f64),
    /// A function of one argument.
    Unary(Unary, ValueId),
    /// A function of two arguments.
    Binary(Binary, ValueId, ValueId),
    /// `a · b + c`, rounded once where the machine can.
    Fma(ValueId, ValueId, ValueId),
    /// `c − a · b`, rounded once where the machine can.
    FmaNeg(ValueId, ValueId, ValueId),
    /// `1 / a` to within two units in the last place, for a whose reciprocal is a normal number.
    Reciprocal(ValueId),
    /// `a / b` to within a few units in the last place, for b whose reciprocal is a normal number: a language
    /// divides or multiplies by the reciprocal, whichever is faster where it runs.
    Quotient(ValueId, ValueId),
    /// A truth value.
    Compare(Comparison, ValueId, ValueId),
    /// Both truth values.
    And(ValueId, ValueId),
    /// Either truth value.
    Or(ValueId, ValueId),
    /// The opposite truth value.
    Not(ValueId),
    /// `.1` where `.0` holds, else `.2`.
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
    /// 1 where element `i · lanes + lane` of a global array of `u32`, as a mask, has a bit, else 0.
    Flag {
        /// The array of masks.
        masks: ArgumentId,
        /// The entry.
        at: Index,
        /// The bit.
        bit: u32,
    },
    /// The element of a global array of reals that an index array says; 0 where nothing is meant.
    Gather {
        /// The array read.
        source: ArgumentId,
        /// Where.
        from: Indexed,
    },
    /// Element `var · scale + offset` of a global array of reals.
    LoadAt {
        /// The array read.
        source: ArgumentId,
        /// An integer that was loaded.
        var: VarId,
        /// Its factor.
        scale: usize,
        /// Added to it.
        offset: usize,
        /// Whether the integer `u32::MAX` reads 0.
        masked: bool,
    },
}

impl Op {
    /// The operands that are values.
    pub fn operands(&self) -> impl Iterator<Item = ValueId> {
        let (a, b, c) = match *self {
            Self::Unary(_, a) | Self::Reciprocal(a) | Self::Not(a) | Self::Broadcast(a) => {
                (Some(a), None, None)
            }
            Self::Binary(_, a, b)
            | Self::Quotient(a, b)
            | Self::Compare(_, a, b)
            | Self::And(a, b)
            | Self::Or(a, b) => (Some(a), Some(b), None),
            Self::Fma(a, b, c) | Self::FmaNeg(a, b, c) | Self::Select(a, b, c) => {
                (Some(a), Some(b), Some(c))
            }
            Self::Constant(_)
            | Self::LoadLocal(..)
            | Self::LoadShared(..)
            | Self::LoadTable(..)
            | Self::LoadUniform(..)
            | Self::LoadLanes(..)
            | Self::Flag { .. }
            | Self::Gather { .. }
            | Self::LoadAt { .. } => (None, None, None),
        };
        [a, b, c].into_iter().flatten()
    }

    /// Whether it has a value of its own for each lane, whatever its operands.
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

    /// Whether the operation is a truth value.
    pub fn is_truth(&self) -> bool {
        matches!(self, Self::Compare(..) | Self::And(..) | Self::Or(..) | Self::Not(_))
    }
}

/// A value with its uniformity and, where it has one, a name from the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// How it comes about.
    pub op: Op,
    /// Whether it differs between lanes.
    pub varying: bool,
    /// A name for the generated source.
    pub name: Option<String>,
}

/// How a scatter writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Adds, one lane after another.
    LaneSerial,
    /// Stores: nobody else writes these elements.
    Exclusive,
    /// Adds, in whatever order threads come to it.
    Atomic,
    /// Adds, and nobody else adds to these elements in the same launch.
    Alone,
    /// Stores where the variable, of [`Thread::Border`], is 0: that lies inside the cell, and nobody else writes it in the
    /// same launch. Adds where it is not, in whatever order threads come to it.
    Inside(VarId),
}

/// An element for each lane: `map[at · lanes + lane] · scale + offset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Indexed {
    /// The index array.
    pub map: ArgumentId,
    /// The entry of the index array.
    pub at: Index,
    /// Factor of the index.
    pub scale: usize,
    /// Added to the scaled index.
    pub offset: usize,
    /// Whether the index `u32::MAX` means nothing.
    pub masked: bool,
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
    /// A table of positions.
    pub positions: TableId,
    /// The run's first entry in the table.
    pub first: usize,
    /// The length of the run.
    pub length: usize,
}

/// The cache that a prefetch aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cache {
    /// The smallest and nearest.
    First,
    /// The next.
    Second,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Evaluates a value here.
    Let(ValueId),
    /// Writes an entry of a local array.
    StoreLocal(LocalId, Index, ValueId),
    /// Writes an entry of a shared array.
    StoreShared(SharedId, Index, ValueId),
    /// All threads of the group have come here before any goes on, and see what the others have
    /// written to shared arrays. Only outside of loops and conditions.
    Barrier,
    /// Accesses to memory stay on their side of this place: a compiler that moved all loads to the
    /// front would need a register for each. No effect on results.
    Fence,
    /// Computes a variable of [`Thread::Border`] for what follows, so that it is not kept from the beginning.
    Recompute(VarId),
    /// Runs the body in the threads or lanes where all conditions hold.
    When {
        /// The conditions.
        conditions: Vec<Condition>,
        /// The body.
        body: Vec<Statement>,
    },
    /// Computes a variable here, of [`Rule::Integer`].
    Set(VarId),
    /// Writes an entry of a private array of integers.
    StoreInteger(IntegersId, Index, VarId),
    /// Writes to element `var · scale + offset`.
    StoreAt {
        /// The array written.
        target: ArgumentId,
        /// An integer that was loaded.
        var: VarId,
        /// Its factor.
        scale: usize,
        /// Added to it.
        offset: usize,
        /// What is written.
        value: ValueId,
        /// How.
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
    /// Writes to the elements that an index array says.
    Scatter {
        /// The array written.
        target: ArgumentId,
        /// Where; where nothing is meant, nothing is written.
        to: Indexed,
        /// What is written.
        value: ValueId,
        /// How.
        write: Write,
    },
    /// Adds to elements `map[at · lanes + lane] · scale + offset` at both ends of an edge, of which the
    /// next lane's may go on from the far one: then one addition may do for both.
    ScatterEdge {
        /// The array written.
        target: ArgumentId,
        /// The index array.
        map: ArgumentId,
        /// The entries of the index array: the near end, the far end.
        at: [Index; 2],
        /// Factor of the index.
        scale: usize,
        /// What is added to the scaled index, and to the elements there at the near and the far end.
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
        /// How.
        write: Write,
    },
    /// Asks for the cache line of element `i · lanes` of the array, which may lie beyond its end;
    /// no effect on results.
    Prefetch(ArgumentId, Index, Cache),
    /// Asks, for each lane, for the cache line of element
    /// `map[(later · entries + entry) · lanes + lane] · scale`, where `later` is the batch that many
    /// `batches` further on, or the last one; no effect on results.
    PrefetchIndexed {
        /// The array whose lines are asked for.
        array: ArgumentId,
        /// The index array.
        map: ArgumentId,
        /// Entries a batch of the index array.
        entries: usize,
        /// The entry.
        entry: usize,
        /// Factor of the index.
        scale: usize,
        /// How far ahead.
        batches: usize,
    },
    /// The border of two stages. A target may run the stages one after another for
    /// [`Kernel::block`] batches at a time, so that batches overlap in the processor: what goes from
    /// stage to stage lies in local arrays, never in values. Only outside of loops.
    Stage,
    /// A comment for the reader.
    Comment(String),
}

impl Statement {
    /// The statements that it runs several times, or under conditions.
    pub fn body(&self) -> &[Statement] {
        match self {
            Self::For { body, .. } | Self::When { body, .. } => body,
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub fn body_mut(&mut self) -> Option<&mut Vec<Statement>> {
        match self {
            Self::For { body, .. } | Self::When { body, .. } => Some(body),
            _ => None,
        }
    }

    /// Whether something holds of it, or of one in its body. Recursive in the depth of loops and conditions, which
    /// strategies bound.
    pub fn any(&self, holds: &mut dyn FnMut(&Self) -> bool) -> bool {
        holds(self) || self.body().iter().any(|inner| inner.any(holds))
    }

    /// Calls a function with it and all in its body.
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
    /// Cells a group.
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
    /// The `u32` array with the number of lanes that write, one a batch.
    pub active: Option<ArgumentId>,
    /// Threads of a group that work on its batches together, with [`Kernel::lanes`] 1; 0 where each
    /// lane works for itself.
    pub threads: usize,
    /// Batches of a group; each has `threads / group` threads in a row.
    pub group: usize,
    /// How many such groups of batches the threads do one after another.
    pub series: usize,
    /// Arrays that the threads of a group share.
    pub shared: IndexVec<SharedId, Local>,
    /// How many batches go through a stage together; 1 where there are no stages.
    pub block: usize,
    /// What is done for one batch.
    pub body: Vec<Statement>,
}

impl Kernel {
    /// Whether a table lists a variable of the threads.
    pub fn lists_threads(&self, table: TableId) -> bool {
        self.vars.iter().any(|var| var.thread() == Some(Thread::Listed(table)))
    }

    /// Which tables are read while the kernel runs: loaded from, or listing a variable of the threads; and, in languages
    /// that loop over runs, those with the positions of `runs`, which are known elsewhere when a kernel is printed.
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
                read[run.positions] |= runs;
            }
            _ => {}
        };
        self.body.iter().for_each(|statement| statement.for_each(&mut mark));
        read
    }

    /// Whether statements read or write a private array.
    pub fn uses_local(&self, body: &[Statement], id: LocalId) -> bool {
        let mut uses = |statement: &Statement| match statement {
            Statement::Let(value) => {
                matches!(&self.values[*value].op, Op::LoadLocal(local, _) if *local == id)
            }
            Statement::StoreLocal(local, ..) => *local == id,
            Statement::GatherRun { run, .. } | Statement::ScatterRun { run, .. } => run.local == id,
            _ => false,
        };
        body.iter().any(|statement| statement.any(&mut uses))
    }

    /// The variable that counts batches.
    pub fn batch(&self) -> VarId {
        self.vars.ids().next().expect("a kernel should have its batch variable")
    }
}
