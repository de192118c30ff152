//! A sparse matrix from element matrices without a pattern, on a device: elements of stored matrices → rows.
//!
//! ```text
//! link     next[e] = swap(heads[row of e], e)             all elements at once
//! merge    the list of each row sorted by columns, equal ones added up; how many are left
//! scan     where each row begins
//! emit     columns and entries, row by row
//! ```
//!
//! Beside the element matrices that takes 4 bytes an element and 8 a row, all of which is given back (A-FEM: "GPU finite
//! element method computation strategy without mesh coloring", its a-COO format).

use super::arithmetic::{THREADS, groups};
use super::{Array, Device, DeviceError, Given, Kernel, Kind, Module};
use kernels_gen::abi::{KernelAbi, Precision};
use kernels_gen::dialect::c::Words;
use kernels_gen::dialect::{Language, SourceFile};
use std::sync::Arc;

const TEXT: &str = include_str!("acoo.c.txt");

const NAMES: [&str; 7] =
    ["acoo_append", "acoo_fill", "acoo_link", "acoo_merge", "acoo_scan", "acoo_shift", "acoo_emit"];

/// Counts that a group scans: `EACH_SCANS` a thread.
const SCANNED: usize = 8 * THREADS;

/// The kernels in the words of a dialect.
pub fn linked_rows(words: &Words, precision: Precision) -> SourceFile {
    let threads = THREADS.to_string();
    let kernel = words.kernel.replace("$THREADS", &threads).replace("$GROUPS", "4");
    let scalar = match precision {
        Precision::F64 => "double",
        Precision::F32 => "float",
    };
    let (function, swap) = match words.language {
        Language::Cuda => ("static __device__", "atomicExch"),
        _ => ("static", "atomic_xchg"),
    };
    let thread = format!("({})", words.thread);
    let replacements = [
        ("$KERNEL", kernel.as_str()),
        ("$FUNCTION", function),
        ("$SWAP", swap),
        ("$GLOBAL", words.global.trim_end()),
        ("$SHARED", words.shared),
        ("$BARRIER", words.barrier),
        ("$RESTRICT", words.restrict),
        ("$THREADS", &threads),
        ("$THREAD", &thread),
        ("$GROUP", words.group),
        ("$SIZE", words.size),
        ("$T", scalar),
    ];
    let mut text = TEXT.to_owned();
    for (word, with) in replacements {
        text = text.replace(word, with);
    }
    let abi = |name: &str| KernelAbi::by_hand(name, precision, THREADS, Vec::new());
    SourceFile { text, kernels: NAMES.map(abi).into(), ..SourceFile::empty(words.language) }
}

/// Stored element matrices of one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Its first element among those of all.
    pub(crate) first: usize,
    /// Entries of a cell.
    pub(crate) entries: usize,
    /// Cells of a batch.
    pub(crate) lanes: usize,
    /// Unknowns of a cell.
    pub(crate) unknowns: usize,
    /// Where the unknowns of its cells begin, `[batch][unknown][lane]`.
    pub(crate) dofs: usize,
    /// Where the local unknowns of its entries begin: those of rows, then those of columns.
    pub(crate) table: usize,
}

/// Where the elements of stored element matrices go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements {
    pub(crate) works: Vec<Work>,
    pub(crate) tables: Vec<u32>,
    pub(crate) dofs: Vec<u32>,
    /// How many elements there are.
    pub(crate) count: usize,
}

impl Elements {
    /// The row, or the column, of each element of a work, if it has one.
    pub(crate) fn place(&self, work: &Work, own: usize, column: bool) -> u32 {
        let (lane, rest) = (own % work.lanes, own / work.lanes);
        let entry = rest % work.entries + if column { work.entries } else { 0 };
        let local = self.tables[work.table + entry] as usize;
        self.dofs[work.dofs + (rest / work.entries * work.unknowns + local) * work.lanes + lane]
    }

    /// The work of an element.
    pub(crate) fn work(&self, element: usize) -> &Work {
        &self.works[self.works.partition_point(|work| work.first <= element) - 1]
    }
}

/// The kernels of a device with what they read of all elements.
pub(crate) struct Acoo {
    device: Arc<dyn Device>,
    precision: Precision,
    module: Module,
    works: Array,
    tables: Array,
    dofs: Array,
    count: usize,
    elements: usize,
    len: usize,
    rows: usize,
}

/// Compressed rows on a device.
pub(crate) struct Rows {
    pub(crate) starts: Array,
    pub(crate) columns: Array,
    pub(crate) entries: Array,
}

impl Acoo {
    /// Moves to a device what it takes to assemble elements; all their rows and columns are below `len`, and there are
    /// `rows` for groups of threads.
    ///
    /// # Errors
    ///
    /// Elements that go beyond; too little memory, a driver that fails.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        precision: Precision,
        elements: &Elements,
        (len, rows): (usize, usize),
    ) -> Result<Self, DeviceError> {
        let mut ends = elements.works.iter().map(|work| work.first).skip(1).chain([elements.count]);
        let sound = elements.works.iter().all(|work| {
            let own = ends.next().and_then(|end| end.checked_sub(work.first)).unwrap_or(usize::MAX);
            let batches = own / (work.entries * work.lanes).max(1);
            let (rows, columns) = (work.table, work.table + work.entries);
            let table = elements.tables.get(rows..columns + work.entries);
            own.is_multiple_of((work.entries * work.lanes).max(1))
                && table.is_some_and(|table| table.iter().all(|&u| (u as usize) < work.unknowns))
                && work.dofs + batches * work.unknowns * work.lanes <= elements.dofs.len()
        });
        let inside = elements.dofs.iter().all(|&dof| dof == u32::MAX || (dof as usize) < len);
        if !sound || !inside || len > rows || elements.count >= u32::MAX as usize {
            return Err(DeviceError::Mismatch { operation: "assemble rows" });
        }
        let words: Vec<u32> = elements
            .works
            .iter()
            .flat_map(|work| {
                let Work { first, entries, lanes, unknowns, dofs, table } = *work;
                [first, entries, lanes, unknowns, dofs, table].map(|word| word as u32)
            })
            .collect();
        let module = device.load_written(&linked_rows(device.words(), precision))?;
        Ok(Self {
            module,
            works: device.upload(&words)?,
            tables: device.upload(&elements.tables)?,
            dofs: device.upload(&elements.dofs)?,
            count: elements.works.len(),
            elements: elements.count,
            len,
            rows,
            precision,
            device: Arc::clone(device),
        })
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
        let mut given = vec![Given::Size(n as u64), Given::Size((groups * THREADS) as u64)];
        given.extend(arrays.iter().map(|array| Given::Array(array)));
        given.extend(after.iter().map(|&size| Given::Size(size as u64)));
        // SAFETY: the callers give each kernel of `TEXT` its arrays, whose lengths they have made or compared; what they
        // index was compared with them in `new`.
        unsafe { self.device.start(self.kernel(name)?, groups, &given) }
    }

    /// Puts other elements behind the first of `cells`, from `first` on.
    pub(crate) fn append(
        &self,
        own: &Array,
        cells: &mut Array,
        first: usize,
    ) -> Result<(), DeviceError> {
        let (n, kind) = (own.len(), Kind::from(self.precision));
        if own.kind() != kind || cells.kind() != kind || first + n > cells.len() {
            return Err(DeviceError::Mismatch { operation: "append element matrices" });
        }
        self.start("acoo_append", (n, groups(n)), &[own, cells], &[first])
    }

    /// Sets the elements from `first` on to 1.
    pub(crate) fn ones(&self, cells: &mut Array, first: usize) -> Result<(), DeviceError> {
        if cells.kind() != Kind::from(self.precision) || first > cells.len() {
            return Err(DeviceError::Mismatch { operation: "append element matrices" });
        }
        let n = cells.len() - first;
        self.start("acoo_fill", (n, groups(n)), &[cells], &[first])
    }

    /// The matrix whose elements these are.
    ///
    /// # Errors
    ///
    /// More entries than 32-bit indices number, as [`DeviceError::Mismatch`]; too little memory, a driver that fails.
    pub(crate) fn assemble(&self, cells: Array) -> Result<Rows, DeviceError> {
        let (device, rows) = (&*self.device, self.rows);
        if cells.kind() != Kind::from(self.precision) || cells.len() < self.elements {
            return Err(DeviceError::Mismatch { operation: "assemble rows" });
        }
        let heads = device.zeros(Kind::U32, rows)?;
        let next = device.zeros(Kind::U32, self.elements)?;
        // And where the last row ends.
        let mut starts = device.zeros(Kind::U32, rows + 1)?;
        let [works, table, dofs] = [&self.works, &self.tables, &self.dofs];
        let all = (self.elements, groups(self.elements));
        let lists = [works, table, dofs, &heads, &next];
        self.start("acoo_link", all, &lists, &[self.count])?;
        let merged = [works, table, dofs, &heads, &next, &cells, &starts];
        let every_row = (rows, rows.div_ceil(THREADS).clamp(1, 1 << 20));
        self.start("acoo_merge", every_row, &merged, &[self.count])?;
        let scanning = rows.div_ceil(SCANNED).max(1);
        let mut sums = device.zeros(Kind::U32, scanning)?;
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
        device.write(&mut sums, 0, super::interface::bytes(&before))?;
        self.start("acoo_shift", (rows, groups(rows)), &[&starts, &sums], &[])?;
        device.write(&mut starts, rows * 4, super::interface::bytes(&[end]))?;
        let columns = device.zeros(Kind::U32, end as usize)?;
        let entries = device.zeros(self.precision.into(), end as usize)?;
        let emitted = [works, table, dofs, &heads, &next, &cells, &starts, &columns, &entries];
        self.start("acoo_emit", every_row, &emitted, &[self.count])?;
        let largest = (self.len.max(1) - 1) as u32;
        let starts = starts.with_indices(end, self.len);
        let columns = columns.with_indices(largest, end as usize);
        Ok(Rows { starts, columns, entries })
    }
}
