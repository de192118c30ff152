//! `place`: assigns every constant of a file's kernels to a memory with sufficient space.
//!
//! GPUs have a small constant memory for all kernels of a file. First come positions, which threads read once, and
//! literals that would cost two additional instructions; then tables of reals, the smallest first. A table larger than
//! [`LARGE`], or beyond the available space, becomes part of an additional argument of its kernel:
//!
//! ```text
//! table[i]  →  tables[i + Σ lengths of the tables before it]
//! ```
//!
//! [`Table::spread`] tables stay in another memory if the language has one (CUDA). Otherwise (OpenCL) all but the
//! smallest become parts of that argument, because constant memory serialises reads of different entries.

use crate::abi::CONSTANT_BYTES;
use crate::kir::{
    Argument, Element, Entries, Index, Kernel, Op, Precision, Statement, Table, TableId, ValueId,
};
use fem_dsl::arena::IndexVec;

/// Bytes above which a table is not in constant memory. This is the size of its first-level cache on NVIDIA GPUs: a
/// larger table would evict itself and all others at each pass.
pub const LARGE: usize = 2 << 10;

/// The same for a table of which threads read different entries at once: below it, serialisation costs less than
/// another memory access.
pub const SPREAD: usize = 256;

/// The placement of a kernel's constants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    /// Bytes in constant memory.
    pub bytes: usize,
    /// The contents of the last argument, if it is the one for tables.
    pub tables: Vec<f64>,
}

/// Assigns a memory to all constants; `others` is true if there is another memory for spread tables.
pub(super) fn place(kernels: &mut [Kernel], others: bool) -> Vec<Constants> {
    let (mut placed, tables) = constants(kernels, others);
    let taken: usize = placed.iter().map(|constants| constants.bytes).sum();
    let mut room = CONSTANT_BYTES.saturating_sub(taken);
    for (kernel, constants) in kernels.iter_mut().zip(&mut placed) {
        if kernel.threads > 0 && kernel.precision == Precision::F64 {
            let bytes = long_literals(kernel, room.min(LARGE));
            constants.bytes += bytes;
            room -= bytes;
        }
    }
    let mut elsewhere = vec![Vec::new(); kernels.len()];
    for (bytes, number, table) in tables {
        let most = if kernels[number].tables[table].spread { SPREAD } else { LARGE };
        if bytes <= room.min(most) {
            placed[number].bytes += bytes;
            room -= bytes;
        } else {
            elsewhere[number].push(table);
        }
    }
    for ((kernel, constants), tables) in kernels.iter_mut().zip(&mut placed).zip(elsewhere) {
        constants.tables = to_argument(kernel, tables);
    }
    placed
}

/// Returns the positions in constant memory, and the candidate tables of reals, the smallest first: their bytes and the
/// index of their kernel.
fn constants(kernels: &[Kernel], others: bool) -> (Vec<Constants>, Vec<(usize, usize, TableId)>) {
    let mut placed = vec![Constants::default(); kernels.len()];
    let mut tables = Vec::new();
    for (number, kernel) in kernels.iter().enumerate() {
        let read = kernel.tables_read(false);
        for (id, table) in kernel.tables.iter_enumerated() {
            let bytes = table.bytes(kernel.precision);
            match table.entries {
                _ if !read[id] || (table.spread && others) => {}
                Entries::Position(_) => placed[number].bytes += bytes,
                Entries::Real(_) => tables.push((bytes, number, id)),
            }
        }
    }
    tables.sort_unstable();
    (placed, tables)
}

/// Merges tables into one argument, the last one, and returns its contents.
fn to_argument(kernel: &mut Kernel, mut tables: Vec<TableId>) -> Vec<f64> {
    let mut numbers = Vec::new();
    if tables.is_empty() {
        return numbers;
    }
    tables.sort_unstable();
    let (name, element) = ("tables".to_owned(), Element::Real);
    let argument = kernel.arguments.push(Argument { name, element, written: false });
    let mut first: IndexVec<TableId, Option<usize>> = kernel.tables.iter().map(|_| None).collect();
    for table in tables {
        first[table] = Some(numbers.len());
        if let Entries::Real(entries) = &mut kernel.tables[table].entries {
            numbers.append(entries);
        }
    }
    for value in kernel.values.ids() {
        if let Op::LoadTable(table, at) = &kernel.values[value].op
            && let Some(first) = first[*table]
        {
            kernel.values[value].op = Op::LoadUniform(argument, at.plus(first));
        }
    }
    numbers
}

/// Moves literals to a table in constant memory. GPUs read an operand from there at no cost, but need two instructions
/// to load a double with a full mantissa. Literals beyond the available `room` in bytes stay in the text. Returns the
/// bytes used.
fn long_literals(kernel: &mut Kernel, room: usize) -> usize {
    let long = |value: ValueId| match kernel.values[value].op {
        Op::Constant(number) if number.to_bits() & 0xffff_ffff != 0 => Some((value, number)),
        _ => None,
    };
    let most = room / kernel.precision.bytes();
    let long: Vec<(ValueId, f64)> = kernel.values.ids().filter_map(long).take(most).collect();
    if long.is_empty() {
        return 0;
    }
    let entries = Entries::Real(long.iter().map(|&(_, number)| number).collect());
    let table = Table { name: "numbers".to_owned(), entries, spread: false };
    let bytes = table.bytes(kernel.precision);
    let table = kernel.tables.push(table);
    for (place, &(value, _)) in long.iter().enumerate() {
        kernel.values[value].op = Op::LoadTable(table, Index::from(place));
    }
    // A constant needs no `Let`, a load does.
    kernel.body.splice(0..0, long.into_iter().map(|(value, _)| Statement::Let(value)));
    kernel.renumber();
    bytes
}

#[cfg(test)]
mod tests;
