//! [`KernelAbi`]: all that the runtime knows of a kernel beside its text.
//!
//! A compiled kernel is `extern "C" fn(begin: usize, end: usize, arguments: *const *const u8)`: it
//! runs the batches `begin..end`, and takes one pointer an argument, in the order of
//! [`KernelAbi::arguments`]. Layouts, with W = `lanes` cells a batch (a batch is padded by repeating
//! its last cell):
//!
//! | role | layout |
//! | --- | --- |
//! | [`Role::Params`] | `[t, params…]`, in the kernel's precision |
//! | [`Role::Tables`] | [`KernelAbi::tables`], in the kernel's precision; always the last argument |
//! | [`Role::State`], [`Role::Direction`], [`Role::Result`], [`Role::AuxNodes`] | the whole vector, node-major, components interleaved |
//! | [`Role::CellResult`] | `[batch][node · components + component][lane]` |
//! | [`Role::CellMatrix`] | `[batch][entry][lane]`, entries as [`crate::plan::cell_matrix`] numbers them |
//! | [`Role::Matrix`] | the entries of a sparse matrix |
//! | [`Role::Entries`] | `u32 [batch][entry][lane]`: where each goes in [`Role::Matrix`]; `u32::MAX` is nowhere |
//! | [`Role::Starts`], [`Role::Places`] | `u32 [unknown]` and one more; `u32`, list after list |
//! | [`Role::Fine`] | a whole vector of a finer space |
//! | [`Role::Targets`] | `u32 [batch][component · points + point][lane]`: the unknown of that space which lies there; `u32::MAX` is none |
//! | [`Role::Map`] | `u32 [batch][entry][lane]`, entries as [`Indices`] says |
//! | [`Role::Lines`] | the same with the nodes of a cell in another order |
//! | [`Role::Slots`] | `u32 [batch][slot]`, or `[batch][component][slot]` of [`Indices::Dofs`], entries as [`Indices`] says; `u32::MAX` where there is nothing |
//! | [`Role::Terms`] | `u32 [batch][node][lane]`: `term · stride + slot`, with [`Slots::stride`] |
//! | [`Role::Hanging`] | `u32 [batch][lane]`: [`hanging::word`] |
//! | [`Role::Hang`] | `u32 [batch]`: [`hanging::of_batch`] |
//! | [`Role::Active`] | `u32 [batch]`: lanes that write |
//! | [`Role::Geometry`] | `[batch][value][lane]`, values as [`crate::plan::Geometry`] says |
//! | [`Role::Diameter`] | `[batch][lane]` |
//! | [`Role::AuxCells`] | `[batch][component][lane]` |
//! | [`Role::AuxPoints`] | `[batch][point][component][lane]` |
//! | [`Role::Stored`], and [`Role::Geometry`] from the points | `[batch][point][number][lane]`, or `[batch][number][point][lane]`: [`crate::plan::Target`] |

pub mod hanging;
pub mod reach;

pub use crate::kir::Precision;
use std::ops::Range;

/// How a cell's unknowns are addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Indices {
    /// One number a node: component c of node i is at `map[i] · components + c`.
    Nodes,
    /// One number a node of a vector in tiles: [`in_tiles`] of the node, where its component 0 lies; component c
    /// lies c · [`TILE`] behind.
    Tiles,
    /// One number for each of the 3^dim entities of a tensor cell, in lexicographic order: the
    /// position of its first unknown; its unknowns follow one another, nodes lexicographic,
    /// components interleaved.
    Runs,
    /// One number an unknown, `[node · components + c]`; `u32::MAX` is a constrained one, which
    /// reads 0 and is not written.
    Dofs,
}

/// Nodes of a tile.
pub const TILE: usize = 32;

/// Where component 0 of a node lies in a vector in tiles: [`TILE`] nodes follow one another, of which first all have
/// their component 0, then all their component 1, and so on. Threads that take one component of neighbouring nodes
/// so find it in few sectors of memory, and all components of a node still lie near each other.
pub fn in_tiles(node: usize, components: usize) -> usize {
    node / TILE * TILE * components + node % TILE
}

/// Whose map it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Field `i` of the form.
    Field(usize),
    /// Auxiliary data `i` of the form.
    Aux(usize),
}

/// How a batch sums what its cells add to a node before anything goes to memory: [`crate::plan::Scatter::Block`]. A node
/// of the batch has a slot in memory that threads share, which holds its value and adds up what the cells have for it,
/// each in a term of its own; one with more cells has several slots. A batch has as many cells as there are slots for
/// their nodes, and no more than lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slots {
    /// Slots of a batch.
    pub count: usize,
    /// Cells that one slot adds up.
    pub terms: usize,
}

impl Slots {
    /// How far the terms of a slot lie apart: an odd number, so that cells side by side that have terms of one slot write to
    /// different banks of shared memory.
    pub fn stride(self) -> usize {
        self.count | 1
    }
}

/// What an argument means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Time and parameters.
    Params,
    /// The state u of a field.
    State(usize),
    /// The direction δu of a field.
    Direction(usize),
    /// What is computed for a field.
    Result(usize),
    /// What each cell by itself contributes to the result of a field; constrained unknowns have theirs too, and
    /// so have the cells that fill up a batch.
    CellResult(usize),
    /// The element matrix of each cell, and of those that fill up a batch.
    CellMatrix,
    /// The entries of a sparse matrix, to which element matrices are added.
    Matrix,
    /// Where each entry of an element matrix goes.
    Entries,
    /// The unknowns of a finer space.
    Fine,
    /// Where each point of a cell has its number in [`Role::Fine`]: of all cells that see an unknown one alone names it.
    Targets,
    /// Auxiliary data at nodes.
    AuxNodes(usize),
    /// Auxiliary data, one value a cell.
    AuxCells(usize),
    /// Auxiliary data, one value a quadrature point.
    AuxPoints(usize),
    /// Where the list of each unknown begins in [`Role::Places`], and behind all of them where the last one ends.
    Starts,
    /// For each unknown, the elements of [`Role::CellResult`] whose sum it is.
    Places,
    /// An index array.
    Map(Owner, Indices),
    /// An index array of a tensor cell in which nodes that differ along this axis alone are farthest apart: threads that
    /// each take a line along it find their entries side by side.
    Lines(Owner, Indices, usize),
    /// The unknowns of a field that the slots of a batch are for: [`Slots`].
    Slots(usize, Indices),
    /// For each node of a cell, the slot of a field that it has, and the term of it that is the cell's: [`Slots`].
    Terms(usize),
    /// What hangs of each cell: [`hanging`].
    Hanging,
    /// What hangs of the cells of a batch together: [`hanging::of_batch`].
    Hang,
    /// The number of lanes that write.
    Active,
    /// Numbers that give the geometry of a cell.
    Geometry,
    /// The coordinates of the nodes of the first field, whose degree is 1: x at `node · stride`,
    /// with the stride of [`coordinate_stride`]; in tiles as an unknown of as many components.
    Coordinates,
    /// One coordinate of these nodes, at the number of the node.
    Axis(usize),
    /// Cell diameters.
    Diameter,
    /// Numbers at quadrature points that another kernel of the same operator has computed.
    Stored,
    /// Constants for which the memory of constants has no room: [`KernelAbi::tables`].
    Tables,
}

impl Role {
    /// Whether the array holds indices or counts, and not reals.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Map(..)
                | Self::Lines(..)
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

/// Numbers a node in [`Role::Coordinates`]: in three dimensions a fourth, unused one keeps a node's
/// within one cache line.
pub fn coordinate_stride(dim: usize) -> usize {
    dim.next_power_of_two()
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// What it means.
    pub role: Role,
    /// Its name in the source.
    pub name: String,
    /// Elements a batch (or in all, for [`Role::Params`] and [`Role::Tables`]); 0 where the array is a whole vector.
    pub extent: usize,
    /// Whether the kernel writes it.
    pub written: bool,
}

/// What a kernel touches through an index array: the elements `index · scale` to `index · scale + last` of an array, for
/// each index that the array holds. Read off the kernel itself ([`reach`]), so that a launch can be compared with
/// its arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The index array, by its place among the arguments.
    pub map: usize,
    /// The array that is indexed, in the same way.
    pub array: usize,
    /// Factor of the index.
    pub scale: usize,
    /// The last element from there; −1 where the index is an end.
    pub last: i64,
    /// Whether `u32::MAX` touches nothing.
    pub masked: bool,
    /// The elements of a batch's row of the index array that are meant, where others reach further; all without it.
    pub part: Option<Range<usize>>,
}

impl Reach {
    /// Elements that an array needs whose largest index is this one.
    pub fn elements(&self, largest: u32) -> usize {
        let last = i128::from(largest) * self.scale as i128 + i128::from(self.last);
        usize::try_from(last + 1).unwrap_or(if last < 0 { 0 } else { usize::MAX })
    }
}

/// What the runtime needs to launch a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelAbi {
    /// The symbol.
    pub name: String,
    /// Cells a batch.
    pub lanes: usize,
    /// Threads of a group; 1 where the lanes are those of a vector.
    pub threads: usize,
    /// Batches that a group of threads does.
    pub group: usize,
    /// Groups of threads that a multiprocessor is to hold at once, which bounds their registers.
    pub residency: usize,
    /// Whether the assembler should keep about to the order of the text: it then needs fewer registers.
    pub in_order: bool,
    /// The slots that a batch has for the nodes of each field; nothing where cells do not sum batch by batch.
    pub slots: Vec<Slots>,
    /// Whether results at nodes inside of cells are stored, and only the others added to. Who launches such a kernel
    /// clears those others, and lets what else adds to the result, as facets do, come after all cells.
    pub stores_inside: bool,
    /// Precision of every real array.
    pub precision: Precision,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// What is touched through index arrays.
    pub reaches: Vec<Reach>,
    /// What [`Role::Tables`] holds, the same at every launch; nothing where there is no such argument.
    pub tables: Vec<f64>,
    /// Bytes of its tables in the memory of constants: all kernels of a file together may have [`CONSTANT_BYTES`].
    pub constant_bytes: usize,
    /// Bytes of private arrays, all lanes together: they live on the stack.
    pub private_bytes: usize,
    /// Bytes of the arrays that a group of threads shares.
    pub shared_bytes: usize,
    /// Hash of the kernel before its dialect: its text and the entries of its tables. Two kernels
    /// of one hash compute the same on any instruction set.
    pub hash: u64,
}

impl KernelAbi {
    /// The interface of a kernel that is written by hand, with one batch a group of `lanes` threads: it reaches nothing
    /// through index arrays, and shares and stores nothing of its own.
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

    /// Registers that a thread may have where a multiprocessor is to hold [`KernelAbi::residency`] groups.
    pub fn registers(&self) -> usize {
        registers(self.threads, self.residency)
    }
}

/// Registers that a thread may have where a multiprocessor is to hold `groups` groups of `threads`. A multiprocessor, as NVIDIA's
/// are, has four parts of 16,384 registers, which take whole warps and give them registers 8 a thread at a time; no
/// thread has more than 255.
pub fn registers(threads: usize, groups: usize) -> usize {
    let warps = groups.max(1) * threads.max(1).div_ceil(32);
    let each = 16_384 / (32 * warps.div_ceil(4));
    (each / 8 * 8).clamp(24, 255)
}

/// Shared memory of a group that every GPU has, in bytes; more has to be asked for.
pub const SHARED_BYTES: usize = 48 << 10;

/// Bytes of constants that the kernels of one file may have together. NVIDIA's GPUs have 64 KiB, of which
/// some is left for what a compiler adds.
pub const CONSTANT_BYTES: usize = 60 << 10;

/// Threads of a group that every device allows.
pub const THREADS: usize = 1024;

/// A stable 64-bit hash (FNV-1a) of a text.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
