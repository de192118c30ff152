//! Assembly of a sparse matrix from element matrices on a device, without a given sparsity pattern.
//!
//! ```text
//! link     next[l] = swap(heads[row of l], l)             all rows of element matrices at once
//! count    number of columns of each row, by a hash table
//! scan     start of each row
//! emit     columns and entries, row by row: the table again, with values, in ascending order
//! ```
//!
//! In addition to the element matrices, this needs 4 bytes per element-matrix row and 8 per matrix row, all temporary.
//! (A-FEM: "GPU finite element method computation strategy without mesh coloring", a-COO format; there each element has
//! its own place in a list.)

use super::arithmetic::groups;
use super::{Array, Device, DeviceError, ElementKind, Kernel, KernelArgument, Module};
use crate::support::memory::Bytes;
use kernels_gen::abi::{KernelAbi, Precision};
use kernels_gen::dialect::c::Vocabulary;
use kernels_gen::dialect::{Language, SourceFile};
use std::sync::Arc;

const TEXT: &str = include_str!("acoo.c.txt");

const NAMES: [&str; 8] = [
    "acoo_append",
    "acoo_fill",
    "acoo_link",
    "acoo_count",
    "acoo_longest",
    "acoo_scan",
    "acoo_shift",
    "acoo_emit",
];

/// Threads per group.
const THREADS: usize = 128;

/// Counts that a group scans: `EACH_SCANS` per thread.
const SCANNED: usize = 8 * THREADS;

/// Slots of the column tables per thread.
const EACH_HAS: usize = 8;

/// The largest number of groups with tables in device memory.
const MOST: usize = 512;

/// Assignment of matrix rows to thread groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAssignment {
    /// Slots per row, a power of two.
    slots: usize,
    /// Threads per link, a power of two.
    width: usize,
}

impl RowAssignment {
    /// Creates the assignment for rows with at most `columns` columns and links with at most `of_link` elements.
    pub fn new(columns: usize, of_link: usize) -> Self {
        let slots = Self::slots_for(columns).max(4 * EACH_HAS).next_power_of_two();
        let lanes = (slots / EACH_HAS).min(THREADS);
        Self { slots, width: of_link.max(1).next_power_of_two().min(lanes) }
    }

    /// Returns the least number of slots for a number of columns; searches in a full table would be long.
    fn slots_for(columns: usize) -> usize {
        columns + columns / 8
    }

    /// Returns whether rows with so many columns fit.
    fn holds(self, columns: usize) -> bool {
        Self::slots_for(columns) <= self.slots
    }

    /// Threads per row.
    fn lanes(self) -> usize {
        (self.slots / EACH_HAS).min(THREADS)
    }

    /// Returns whether tables fit into the group's shared memory; larger ones are in device memory.
    fn shared(self) -> bool {
        self.slots <= THREADS * EACH_HAS
    }

    /// Returns the number of thread groups for `rows` rows.
    fn groups(self, rows: usize) -> usize {
        let groups = rows.div_ceil(THREADS / self.lanes()).max(1);
        groups.min(if self.shared() { 1 << 20 } else { MOST })
    }

    /// Returns the number of table entries of all groups in device memory.
    fn scratch(self, rows: usize) -> usize {
        if self.shared() { 0 } else { self.groups(rows) * self.slots }
    }

    /// Bytes of these tables: two column arrays and one of sums.
    pub(crate) fn bytes(self, rows: usize, real: usize) -> usize {
        self.scratch(rows) * (8 + real)
    }
}

/// Facts that are compiled into the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedRows {
    /// Entries per cell of the first stored element matrices.
    pub entries: usize,
    /// Cells per batch of these.
    pub lanes: usize,
    /// Degrees of freedom per cell of these.
    pub unknowns: usize,
    /// Set if all pairs of degrees of freedom have an entry, stored column by column.
    pub dense: bool,
    /// Rows of a thread group.
    pub rows: RowAssignment,
}

/// Returns the source of the kernels in a dialect.
pub fn linked_rows(words: &Vocabulary, precision: Precision, known: LinkedRows) -> SourceFile {
    let LinkedRows { entries, lanes, unknowns, dense, rows } = known;
    let shares = rows.shared();
    let threads = THREADS.to_string();
    let kernel = words.kernel.replace("$THREADS", &threads).replace("$GROUPS", "4");
    let (scalar, bits) = match precision {
        Precision::F64 => ("double", "ulong"),
        Precision::F32 => ("float", "uint"),
    };
    let cuda = words.language == Language::Cuda;
    let shared = if cuda { "" } else { "__local" };
    let barrier = match (cuda, shares) {
        (false, false) => "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
        _ => words.barrier,
    };
    let exchange_bits = match precision {
        Precision::F64 => "atom_cmpxchg",
        Precision::F32 => "atomic_cmpxchg",
    };
    let add = match cuda {
        true => "#define add_to_slot(at, value) atomicAdd(at, value)".to_owned(),
        false => ADD.replace("$EXCHANGE_BITS", exchange_bits),
    };
    let (keys, lists) = match shares {
        true => (
            "$SHARED uint32 all_keys_of_group[$TABLES];",
            "$SHARED uint32 all_lists_of_group[$TABLES];\n    $SHARED T all_sums_of_group[$TABLES];",
        ),
        false => (
            "$GLOBAL uint32* all_keys_of_group = all_keys + ($SIZE)$GROUP * 2 * $SLOTS;",
            "$GLOBAL uint32* all_lists_of_group = all_keys_of_group + $SLOTS;\n    $GLOBAL T* all_sums_of_group = all_sums + ($SIZE)$GROUP * $SLOTS;",
        ),
    };
    let number = |n: usize| n.to_string();
    let thread = format!("({})", words.thread);
    let [entries, lanes, unknowns] = [entries, lanes, unknowns].map(|n| format!("{n}u"));
    let [slots, row_lanes, width] = [rows.slots, rows.lanes(), rows.width].map(number);
    let shift = number(32 - rows.slots.trailing_zeros() as usize);
    let tables = number(THREADS * (EACH_HAS + 1));
    let replacements = [
        ("$OWN_KEYS", keys),
        ("$OWN_LISTS", lists),
        ("$TABLES", &tables),
        ("$FIRST_ENTRIES", &entries),
        ("$FIRST_LANES", &lanes),
        ("$FIRST_UNKNOWNS", &unknowns),
        ("$DENSE", if dense { "1" } else { "0" }),
        ("$ADD", &add),
        ("$KERNEL", kernel.as_str()),
        ("$EXCHANGE", if cuda { "atomicCAS" } else { "atomic_cmpxchg" }),
        ("$COUNT", if cuda { "atomicAdd" } else { "atomic_add" }),
        ("$SWAP", if cuda { "atomicExch" } else { "atomic_xchg" }),
        ("$LARGER", if cuda { "atomicMax" } else { "atomic_max" }),
        ("$TABLE", if shares { shared } else { words.global.trim_end() }),
        ("$GLOBAL", words.global.trim_end()),
        ("$SHARED", words.shared),
        ("$SHIFT", &shift),
        ("$SLOTS", &slots),
        ("$LANES", &row_lanes),
        ("$WIDTH", &width),
        ("$BARRIER", barrier),
        ("$RESTRICT", words.restrict),
        ("$THREADS", &threads),
        ("$THREAD", &thread),
        ("$GROUP", words.group),
        ("$SIZE", words.size),
        ("$T", scalar),
        ("$U", if cuda { scalar } else { bits }),
    ];
    let mut text = TEXT.to_owned();
    for (word, with) in replacements {
        text = text.replace(word, with);
    }
    let abi = |name: &str| KernelAbi::by_hand(name, precision, THREADS, Vec::new());
    SourceFile { text, kernels: NAMES.map(abi).into(), ..SourceFile::empty(words.language) }
}

/// Atomic addition, for languages without it.
const ADD: &str = "\
static void add_to_slot(volatile $TABLE T* at, const T value)
{
    union { U bits; T real; } old, sum;
    old.real = *at;
    for (;;) {
        sum.real = old.real + value;
        const U seen = $EXCHANGE_BITS((volatile $TABLE U*)at, old.bits, sum.bits);
        if (seen == old.bits) return;
        old.bits = seen;
    }
}";

/// Stored element matrices of one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredElements {
    /// The index of its first element.
    pub(crate) first: usize,
    /// Entries per cell.
    pub(crate) entries: usize,
    /// Cells per batch.
    pub(crate) lanes: usize,
    /// Degrees of freedom per cell.
    pub(crate) unknowns: usize,
    /// The start of its degrees of freedom, `[batch][unknown][lane]`: the row of each link.
    pub(crate) dofs: usize,
    /// The start of its part of the tables. For each degree of freedom of a cell: the start of its entries, and the end
    /// of the last; then for each entry in that order its number and the degree of freedom of its column.
    pub(crate) table: usize,
}

/// Positions of stored element-matrix elements in the sparse matrix.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElementPositions {
    /// Sorted by first element and by start of the degrees of freedom.
    pub(crate) works: Vec<StoredElements>,
    pub(crate) tables: Vec<u32>,
    pub(crate) dofs: Vec<u32>,
    /// The number of elements.
    pub(crate) count: usize,
    /// An upper bound of the elements per row.
    pub(crate) of_row: usize,
    /// The number of columns of a row with so many elements: the most in usual meshes.
    pub(crate) columns: usize,
}

/// The elements of a row of an element matrix.
#[derive(Clone, Copy)]
pub(crate) struct ElementRow<'a> {
    dofs: &'a [u32],
    pairs: &'a [u32],
    /// The first element of its batch and lane, and the number of lanes.
    first: usize,
    lanes: usize,
}

impl ElementRow<'_> {
    /// Returns the column and the number of each element; columns may be `u32::MAX`.
    pub(crate) fn each(self) -> impl Iterator<Item = (u32, usize)> {
        let Self { dofs, first, lanes, .. } = self;
        self.pairs
            .chunks_exact(2)
            .map(move |pair| (dofs[pair[1] as usize * lanes], first + pair[0] as usize * lanes))
    }
}

impl ElementPositions {
    /// Returns the link with a number: its index among all degrees of freedom.
    pub(crate) fn link(&self, link: usize) -> ElementRow<'_> {
        let number = self.works.partition_point(|work| work.dofs <= link) - 1;
        let StoredElements { first, entries, lanes, unknowns, dofs, table } = self.works[number];
        let own = link - dofs;
        let (lane, rest) = (own % lanes, own / lanes);
        let (batch, local) = (rest / unknowns, rest % unknowns);
        let pairs = table + unknowns + 1;
        let [from, behind] =
            [local, local + 1].map(|local| pairs + 2 * self.tables[table + local] as usize);
        ElementRow {
            dofs: &self.dofs[dofs + batch * unknowns * lanes + lane..],
            pairs: &self.tables[from..behind],
            first: first + batch * entries * lanes + lane,
            lanes,
        }
    }

    /// Returns the number of elements of the largest element-matrix row.
    pub(crate) fn of_link(&self) -> usize {
        let lengths = self.works.iter().flat_map(|work| {
            let ends = &self.tables[work.table..=work.table + work.unknowns];
            ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize)
        });
        lengths.max().unwrap_or(0)
    }

    /// Returns a row assignment for devices that has room for every row.
    pub(crate) fn on_devices(&self) -> RowAssignment {
        RowAssignment::new(self.of_row, self.of_link())
    }

    /// Returns what kernels know of these elements.
    fn known(&self, rows: RowAssignment) -> LinkedRows {
        let (entries, lanes, unknowns, table) = self
            .works
            .first()
            .map_or((1, 1, 1, 0), |work| (work.entries, work.lanes, work.unknowns, work.table));
        let pairs = (0..unknowns).flat_map(|test| {
            (0..unknowns).flat_map(move |trial| [(trial * unknowns + test) as u32, trial as u32])
        });
        let starts = (0..=unknowns).map(|test| (test * unknowns) as u32);
        let dense = entries == unknowns * unknowns
            && starts
                .chain(pairs)
                .eq(self.tables[table..].iter().copied().take(unknowns + 1 + 2 * entries));
        LinkedRows { entries, lanes, unknowns, dense, rows }
    }

    /// Checks that all indices are in range; rows and columns must be below `len`.
    fn sound(&self, len: usize) -> bool {
        let ends = self.works.iter().map(|work| (work.first, work.dofs)).skip(1);
        let mut ends = ends.chain([(self.count, self.dofs.len())]);
        let works = self.works.iter().all(|work| {
            let StoredElements { first, entries, lanes, unknowns, dofs, table } = *work;
            let Some((end, links)) = ends.next() else { return false };
            let batch = (entries * lanes).max(1);
            let Some(own) = end.checked_sub(first).filter(|own| own.is_multiple_of(batch)) else {
                return false;
            };
            let batches = own / batch;
            let Some(starts) = self.tables.get(table..=table + unknowns) else { return false };
            let pairs = table + unknowns + 1;
            let Some(pairs) = self.tables.get(pairs..pairs + 2 * entries) else { return false };
            starts.is_sorted()
                && starts.last().is_some_and(|&end| end as usize <= entries)
                && pairs
                    .chunks_exact(2)
                    .all(|pair| (pair[0] as usize) < entries && (pair[1] as usize) < unknowns)
                && Some(batches * unknowns * lanes) == links.checked_sub(dofs)
        });
        works && self.dofs.iter().all(|&dof| dof == u32::MAX || (dof as usize) < len)
    }
}

/// The kernels of a device with their tables of all elements.
pub(crate) struct AcooAssembly {
    device: Arc<dyn Device>,
    precision: Precision,
    module: Module,
    works: Array,
    tables: Array,
    dofs: Array,
    own: RowAssignment,
    count: usize,
    elements: usize,
    len: usize,
    rows: usize,
}

/// A CSR matrix on a device.
pub(crate) struct DeviceCsr {
    pub(crate) starts: Array,
    pub(crate) columns: Array,
    pub(crate) entries: Array,
}

impl AcooAssembly {
    /// Uploads the tables for assembly. All rows and columns are below `len`, and thread groups exist for `rows` rows.
    ///
    /// # Errors
    ///
    /// Elements out of range; insufficient memory, or a driver error.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        precision: Precision,
        elements: &ElementPositions,
        (len, rows): (usize, usize),
    ) -> Result<Self, DeviceError> {
        let many = elements.count.max(elements.dofs.len()) >= u32::MAX as usize;
        if many || len > rows || !elements.sound(len) {
            return Err(DeviceError::Mismatch { operation: "assemble rows" });
        }
        let words: Vec<u32> = elements
            .works
            .iter()
            .flat_map(|work| {
                let StoredElements { first, entries, lanes, unknowns, dofs, table } = *work;
                [first, entries, lanes, unknowns, dofs, table].map(|word| word as u32)
            })
            .collect();
        let own = RowAssignment::new(elements.columns, elements.of_link());
        let load =
            |own| device.load_written(&linked_rows(device.words(), precision, elements.known(own)));
        let mut all = Self {
            module: load(own)?,
            works: device.upload(&words)?,
            tables: device.upload(&elements.tables)?,
            dofs: device.upload(&elements.dofs)?,
            own,
            count: elements.works.len(),
            elements: elements.count,
            len,
            rows,
            precision,
            device: Arc::clone(device),
        };
        while !all.own.holds(all.longest_row()?) && all.own.slots < elements.of_row {
            all.own = RowAssignment::new(all.own.slots, elements.of_link());
            all.module = load(all.own)?;
        }
        Ok(all)
    }

    fn kernel(&self, name: &'static str) -> Result<&Kernel, DeviceError> {
        self.module.kernel(name).map_err(DeviceError::from)
    }

    fn start(
        &self,
        name: &'static str,
        (n, groups): (usize, usize),
        arrays: &[&Array],
        after: &[usize],
    ) -> Result<(), DeviceError> {
        let mut given =
            vec![KernelArgument::Size(n as u64), KernelArgument::Size((groups * THREADS) as u64)];
        given.extend(arrays.iter().map(|array| KernelArgument::Array(array)));
        given.extend(after.iter().map(|&size| KernelArgument::Size(size as u64)));
        // SAFETY: callers pass each kernel of `TEXT` arrays whose lengths they created or compared; `new` compared
        // their indices.
        unsafe { self.device.start(self.kernel(name)?, groups, &given) }
    }

    /// Copies further elements into `cells`, from `first` on.
    pub(crate) fn append(
        &self,
        own: &Array,
        cells: &mut Array,
        first: usize,
    ) -> Result<(), DeviceError> {
        let (n, kind) = (own.len(), ElementKind::from(self.precision));
        if own.kind() != kind || cells.kind() != kind || first + n > cells.len() {
            return Err(DeviceError::Mismatch { operation: "append element matrices" });
        }
        self.start("acoo_append", (n, groups(n)), &[own, cells], &[first])
    }

    /// Sets the elements from `first` on to 1.
    pub(crate) fn ones(&self, cells: &mut Array, first: usize) -> Result<(), DeviceError> {
        if cells.kind() != ElementKind::from(self.precision) || first > cells.len() {
            return Err(DeviceError::Mismatch { operation: "append element matrices" });
        }
        let n = cells.len() - first;
        self.start("acoo_fill", (n, groups(n)), &[cells], &[first])
    }

    /// Chains the links of each row, and counts its columns: first links, next links and counts, which have one more for
    /// the end of the last row.
    fn count(&self) -> Result<[Array; 3], DeviceError> {
        let (device, rows, links) = (&*self.device, self.rows, self.dofs.len());
        let heads = device.zeros(ElementKind::U32, rows)?;
        let next = device.zeros(ElementKind::U32, links)?;
        let counts = device.zeros(ElementKind::U32, rows + 1)?;
        self.start("acoo_link", (links, groups(links)), &[&self.dofs, &heads, &next], &[])?;
        let keys = device.zeros(ElementKind::U32, 2 * self.own.scratch(rows))?;
        let arrays = [&self.works, &self.tables, &self.dofs, &heads, &next, &counts, &keys];
        self.start("acoo_count", (rows, self.own.groups(rows)), &arrays, &[self.count])?;
        Ok([heads, next, counts])
    }

    /// Returns the largest number of columns of a row.
    fn longest_row(&self) -> Result<usize, DeviceError> {
        let [_, _, counts] = self.count()?;
        let longest = self.device.zeros(ElementKind::U32, 1)?;
        self.start("acoo_longest", (self.rows, groups(self.rows)), &[&counts, &longest], &[])?;
        Ok(self.device.download(&longest)?.into_iter().map(|most| most as usize).sum())
    }

    /// Assembles the matrix of these elements.
    ///
    /// # Errors
    ///
    /// More entries than 32-bit indices can number ([`DeviceError::Mismatch`]); insufficient memory, or a driver error.
    pub(crate) fn assemble(&self, cells: Array) -> Result<DeviceCsr, DeviceError> {
        let (device, rows) = (&*self.device, self.rows);
        if cells.kind() != ElementKind::from(self.precision) || cells.len() < self.elements {
            return Err(DeviceError::Mismatch { operation: "assemble rows" });
        }
        let [heads, next, mut starts] = self.count()?;
        let scanning = rows.div_ceil(SCANNED).max(1);
        let mut sums = device.zeros(ElementKind::U32, scanning)?;
        self.start("acoo_scan", (rows, scanning), &[&starts, &sums], &[])?;
        let mut total = 0_u64;
        let before: Vec<u32> = device
            .download(&sums)?
            .into_iter()
            .map(|sum| {
                let before = total;
                total += sum as u64;
                before as u32
            })
            .collect();
        let Ok(end) = u32::try_from(total) else {
            return Err(DeviceError::Mismatch { operation: "number the entries of a matrix" });
        };
        device.write(&mut sums, 0, super::array::bytes(&before))?;
        self.start("acoo_shift", (rows, groups(rows)), &[&starts, &sums], &[])?;
        device.write(&mut starts, rows * 4, super::array::bytes(&[end]))?;
        let scratch = self.own.scratch(rows);
        let real = ElementKind::from(self.precision).width();
        let wanted = end as usize * (ElementKind::U32.width() + real) + scratch * real;
        if let Some(left) = device.free_bytes().filter(|&left| wanted as f64 > left) {
            let (wanted, left) = (Bytes(wanted as f64), Bytes(left));
            return Err(DeviceError::Full { device: device.name(), wanted, left });
        }
        let columns = device.zeros(ElementKind::U32, end as usize)?;
        let entries = device.zeros(self.precision.into(), end as usize)?;
        let added = device.zeros(self.precision.into(), scratch)?;
        let keys = device.zeros(ElementKind::U32, 2 * scratch)?;
        let arrays = [&self.works, &self.tables, &self.dofs, &heads, &next, &cells, &starts];
        let made = [&columns, &entries, &keys, &added];
        let every_row = (rows, self.own.groups(rows));
        self.start("acoo_emit", every_row, &[&arrays[..], &made].concat(), &[self.count])?;
        let largest = (self.len.max(1) - 1) as u32;
        let starts = starts.with_indices(end, self.len);
        let columns = columns.with_indices(largest, end as usize);
        Ok(DeviceCsr { starts, columns, entries })
    }
}
