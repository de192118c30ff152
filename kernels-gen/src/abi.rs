//! [`KernelAbi`]: everything that the runtime needs to know of a kernel except its source text.
//!
//! A compiled kernel is `extern "C" fn(begin: usize, end: usize, arguments: *const *const u8)`. It runs the batches
//! `begin..end` and takes one pointer per argument, in the order of [`KernelAbi::arguments`]. The table lists the
//! layouts, with W = `lanes` cells per batch; the last cell is repeated to fill a batch.
//!
//! | role | layout |
//! | --- | --- |
//! | [`Role::Params`] | `[t, params…]`, in the kernel's precision |
//! | [`Role::Tables`] | [`KernelAbi::tables`], in the kernel's precision; always the last argument |
//! | [`Role::State`], [`Role::Direction`], [`Role::Result`], [`Role::AuxNodes`] | the whole vector, node-major, components interleaved; with [`Indices::Batches`] that of [`Role::CellResult`] |
//! | [`Role::CellResult`] | `[batch][node · components + component][lane]` |
//! | [`Role::CellMatrix`] | `[batch][entry][lane]`, entries as [`crate::plan::cell_matrix`] numbers them |
//! | [`Role::Matrix`] | the entries of a sparse matrix |
//! | [`Role::Entries`] | `u32 [batch][entry][lane]`: position in [`Role::Matrix`]; `u32::MAX` for none |
//! | [`Role::Starts`], [`Role::Places`] | `u32 [DoF]` and one more; `u32`, all lists concatenated |
//! | [`Role::Fine`] | a whole vector of a finer space |
//! | [`Role::Targets`] | `u32 [batch][component · points + point][lane]`: DoF of that space at the point; `u32::MAX` for none |
//! | [`Role::Map`] | `u32 [batch][entry][lane]`, entries by [`Indices`] |
//! | [`Role::Turns`] | `u32 [batch][node · components + component]`: the entry of a cell's DoF in arrays `[component][node]` of the rotated cell, equal for all lanes |
//! | [`Role::Signs`] | `[batch][degree of freedom][lane]`: 1 or −1 |
//! | [`Role::Lines`], [`Role::Rows`] | the same as [`Role::Map`] with the nodes of a cell in another order |
//! | [`Role::FirstAxis`] | `u32 [batch][lane]` |
//! | [`Role::Slots`] | `u32 [batch][slot]`, or `[batch][component][slot]` for [`Indices::Dofs`], entries as in [`Indices`]; `u32::MAX` in empty slots |
//! | [`Role::Terms`] | `u32 [batch][node][lane]`: `term · stride + slot`, with [`Slots::stride`] |
//! | [`Role::Hanging`] | `u32 [batch][side][lane]`: [`hanging::word`]; of cells there is one side |
//! | [`Role::Hang`] | `u32 [batch][side]`: [`hanging::of_batch`] |
//! | [`Role::Active`] | `u32 [batch]`: lanes that write |
//! | [`Role::Geometry`] | `[batch][value][lane]`, values by [`crate::plan::Geometry`]; of pairs of cells `[batch][side][value][lane]` |
//! | [`Role::Diameter`] | `[batch][lane]`; of pairs of cells `[batch][side][lane]` |
//! | [`Role::AuxCells`] | `[batch][component][lane]` |
//! | [`Role::AuxPoints`] | `[batch][point][component][lane]` |
//! | [`Role::Stored`], and [`Role::Geometry`] stored at the points | `[batch][point][number][lane]`, or `[batch][number][point][lane]`: [`crate::plan::Target`] |

pub mod access;
pub mod hanging;
mod interface;

pub use crate::kir::Precision;
use fem_dsl::point::Side;
pub use interface::ArgumentText;
use std::ops::Range;

/// Addressing of a cell's degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Indices {
    /// One index per node: component c of node i is at `map[i] · components + c`.
    Nodes,
    /// One index per node of a tiled vector: [`in_tiles`] of the node is the position of component 0; component c
    /// follows at offset c · [`TILE`].
    Tiles,
    /// One index for each of the 3^dim entities of a tensor cell, in lexicographic order: the position of its first
    /// DoF. The DoFs of an entity are contiguous, nodes lexicographic, components interleaved.
    Runs,
    /// One index per cell: the position of its first DoF. DoFs are contiguous, nodes lexicographic, components
    /// interleaved. For discontinuous fields alone; other fields have [`Indices::Nodes`].
    Cells,
    /// One index per DoF, `[node · components + c]`; `u32::MAX` marks a constrained DoF, which reads 0 and is not
    /// written.
    Dofs,
    /// No index array: the DoFs of each cell are stored batch by batch, `[batch][node · components + c][lane]`. For
    /// callers with an assembly of their own.
    Batches,
}

/// Nodes per tile.
pub const TILE: usize = 32;

/// Returns the position of component 0 of a node in a tiled vector. A tile has [`TILE`] consecutive nodes and stores
/// component 0 of all of them, then component 1, and so on. Threads that read one component of neighbouring nodes then
/// touch few memory sectors, and the components of a node stay close together.
pub fn in_tiles(node: usize, components: usize) -> usize {
    node / TILE * TILE * components + node % TILE
}

/// The owner of an index map. In kernels of pairs of cells, fields and data are those of the inside and then those of the
/// outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Field `i` of the form.
    Field(usize),
    /// Auxiliary data `i` of the form.
    Aux(usize),
    /// The result for field `i` of the form, or for a trace: the DoFs that a batch of pairs writes.
    Result(usize),
}

/// Slots in which a batch sums the contributions of its cells to a node before it writes to global memory:
/// [`crate::plan::Scatter::Block`]. A slot in shared memory holds the nodal value and collects the contributions of the
/// cells, each in its own term. A node with more cells takes several slots. A batch takes cells as long as their nodes
/// fit into the slots, and no more cells than lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slots {
    /// Slots of a batch.
    pub count: usize,
    /// Cells per slot.
    pub terms: usize,
}

impl Slots {
    /// Returns the distance between the terms of a slot. It is odd, so that neighbouring cells with terms of the same
    /// slot write to different banks of shared memory.
    pub fn stride(self) -> usize {
        self.count | 1
    }
}

/// The meaning of a kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Time and parameters.
    Params,
    /// The state u of a field.
    State(usize),
    /// The direction δu of a field.
    Direction(usize),
    /// The result for a field.
    Result(usize),
    /// The contribution of each cell to the result of a field, not summed; it includes constrained DoFs and the cells
    /// that pad a batch.
    CellResult(usize),
    /// The element matrix of each cell, including the cells that pad a batch.
    CellMatrix,
    /// The entries of a sparse matrix, to which element matrices are added.
    Matrix,
    /// The position in the sparse matrix of each entry of an element matrix.
    Entries,
    /// The degrees of freedom of a finer space.
    Fine,
    /// The position in [`Role::Fine`] of each point of a cell. Exactly one of the cells that share a DoF refers to it.
    Targets,
    /// Auxiliary data at nodes.
    AuxNodes(usize),
    /// Auxiliary data, one value per cell.
    AuxCells(usize),
    /// Auxiliary data, one value per quadrature point.
    AuxPoints(usize),
    /// The offset in [`Role::Places`] of the list of each DoF, followed by the end of the last list.
    Starts,
    /// For each DoF, the elements of [`Role::CellResult`] that sum to it.
    Places,
    /// An index array.
    Map(Owner, Indices),
    /// An index array of a tensor cell in which this axis varies slowest. Threads that each process a line along it
    /// read consecutive entries.
    Lines(Owner, Indices, usize),
    /// An index array of a rotated tensor cell, with the nodes i of its lines along ξ₀ at the points a of the facet. The
    /// axis of [`Role::FirstAxis`] varies fastest, so that consecutive entries are nodes that follow one another in the
    /// cell: with q points, entry i + n a for axis 0, q i + a for axis 1, and for axis 2 the same with the axes of the
    /// facet exchanged.
    Rows(Owner, Indices),
    /// The axis of the rotated cell on a side that is the first axis of the cell itself.
    FirstAxis(Side),
    /// For kernels of pairs with [`Indices::Cells`], the entries of a trace's DoFs in the rotated cell.
    Turns(usize),
    /// The sign of each degree of freedom of a vector-valued function in its cell.
    Signs(Owner),
    /// The degrees of freedom of a field that a batch's slots represent: [`Slots`].
    Slots(usize, Indices),
    /// For each node of a cell, its slot in a field and the cell's term of that slot: [`Slots`].
    Terms(usize),
    /// The hanging-node constraints of each cell: [`hanging`].
    Hanging,
    /// The union of the hanging-node constraints of a batch: [`hanging::of_batch`].
    Hang,
    /// The number of lanes that write.
    Active,
    /// The geometry values of a cell.
    Geometry,
    /// The node coordinates of the first field, whose degree is 1: x at `node · stride`, with the stride of
    /// [`coordinate_stride`]; tiled like a field with as many components.
    Coordinates,
    /// One coordinate of these nodes, indexed by the node.
    Axis(usize),
    /// Cell diameters.
    Diameter,
    /// Values at quadrature points, computed by another kernel of the same operator.
    Stored,
    /// Constants that exceed the constant memory: [`KernelAbi::tables`].
    Tables,
}

impl Role {
    /// Returns whether the array holds indices or counts rather than reals.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Map(..)
                | Self::Lines(..)
                | Self::Rows(..)
                | Self::FirstAxis(_)
                | Self::Turns(_)
                | Self::Slots(..)
                | Self::Terms(_)
                | Self::Hanging
                | Self::Hang
                | Self::Active
                | Self::Entries
                | Self::Targets
                | Self::Starts
                | Self::Places
        )
    }
}

/// Returns the reals per node in [`Role::Coordinates`]. In three dimensions a fourth, unused one keeps each node within
/// one cache line.
pub fn coordinate_stride(dim: usize) -> usize {
    dim.next_power_of_two()
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its meaning.
    pub role: Role,
    /// Its name in the source.
    pub name: String,
    /// Elements per batch (in total, for [`Role::Params`] and [`Role::Tables`]); 0 for a whole vector.
    pub extent: usize,
    /// True if the kernel writes it.
    pub written: bool,
}

/// Elements that a kernel accesses through an index array: `index · scale` to `index · scale + last` of an array, for
/// each stored index. It is derived from the kernel ([`access`]), so that a launch can be checked against its arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectAccess {
    /// The position of the index array among the arguments.
    pub map: usize,
    /// The position of the indexed array among the arguments.
    pub array: usize,
    /// Factor of the index.
    pub scale: usize,
    /// The last element relative to it; −1 if the index is an exclusive end.
    pub last: i64,
    /// True if the kernel skips `u32::MAX`.
    pub masked: bool,
    /// The range of elements of a batch's row of the index array, if other ranges reach further; `None` for the whole
    /// row.
    pub part: Option<Range<usize>>,
}

impl IndirectAccess {
    /// Returns the length that an array needs if its largest index is `largest`.
    pub fn elements(&self, largest: u32) -> usize {
        let last = i128::from(largest) * self.scale as i128 + i128::from(self.last);
        usize::try_from(last + 1).unwrap_or(if last < 0 { 0 } else { usize::MAX })
    }
}

/// The description of a kernel that the runtime needs for a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelAbi {
    /// The symbol.
    pub name: String,
    /// Cells per batch.
    pub lanes: usize,
    /// Threads per group; 1 if lanes are vector lanes.
    pub threads: usize,
    /// Batches per group of threads.
    pub group: usize,
    /// Target number of resident groups per multiprocessor, which bounds their registers.
    pub residency: usize,
    /// True if the assembler should roughly keep the order of the source, which takes fewer registers.
    pub in_order: bool,
    /// The slots of a batch for the nodes of each field; empty if cells are not summed batch by batch.
    pub slots: Vec<Slots>,
    /// True if results at nodes inside of cells are stored and only the others are added. The caller of such a kernel
    /// clears the others first and runs all other contributions (facets, for example) after the cells.
    pub stores_inside: bool,
    /// Precision of every real array.
    pub precision: Precision,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// Accesses through index arrays.
    pub reaches: Vec<IndirectAccess>,
    /// The contents of [`Role::Tables`], the same at every launch; empty without this argument.
    pub tables: Vec<f64>,
    /// Bytes of its tables in constant memory; the kernels of a file share [`CONSTANT_BYTES`].
    pub constant_bytes: usize,
    /// Bytes of private arrays, summed over the lanes; they live on the stack.
    pub private_bytes: usize,
    /// Bytes of the arrays in shared memory per group of threads.
    pub shared_bytes: usize,
    /// Hash of the kernel before printing: its text and the entries of its tables. Kernels of equal hash compute the
    /// same on any instruction set.
    pub hash: u64,
}

impl KernelAbi {
    /// Returns the interface of a hand-written kernel with one batch per group of `lanes` threads. It has no access
    /// through index arrays, no shared memory and no stored data.
    pub fn by_hand(
        name: impl Into<String>,
        precision: Precision,
        lanes: usize,
        arguments: Vec<Argument>,
    ) -> Self {
        Self {
            name: name.into(),
            lanes,
            threads: lanes,
            group: 1,
            residency: 1,
            in_order: false,
            slots: Vec::new(),
            stores_inside: false,
            precision,
            arguments,
            reaches: Vec::new(),
            tables: Vec::new(),
            constant_bytes: 0,
            private_bytes: 0,
            shared_bytes: 0,
            hash: 0,
        }
    }

    /// Returns the register limit per thread for [`KernelAbi::residency`] groups per multiprocessor.
    pub fn registers(&self) -> usize {
        registers(self.threads, self.residency)
    }
}

/// Returns the register limit per thread for `groups` groups of `threads` per multiprocessor. An NVIDIA multiprocessor
/// has four partitions of 16,384 registers. Registers are allocated per warp in units of 8 per thread; the limit per
/// thread is 255.
pub fn registers(threads: usize, groups: usize) -> usize {
    let warps = groups.max(1) * threads.max(1).div_ceil(32);
    let each = 16_384 / (32 * warps.div_ceil(4));
    (each / 8 * 8).clamp(24, 255)
}

/// Shared memory per group that every GPU provides without a request, in bytes.
pub const SHARED_BYTES: usize = 48 << 10;

/// Constant memory for all kernels of a file, in bytes. NVIDIA GPUs have 64 KiB, and compilers need some of it for
/// their own constants.
pub const CONSTANT_BYTES: usize = 60 << 10;

/// Threads per group that every device supports.
pub const THREADS: usize = 1024;

/// Returns a stable 64-bit hash (FNV-1a) of a text.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
