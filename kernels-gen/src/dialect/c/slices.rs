//! Product of a matrix in slices of rows (sliced ELLPACK) with a vector, for devices.
//!
//! ```text
//! y[i] = Σ_k values[a] x[columns[a]]  with a = starts[i / 32] + 32 k + i mod 32, as long as there is a column
//! ```
//!
//! One thread per row: the threads of a warp share a slice, whose entries are contiguous. The largest index marks an
//! absent column and ends a row.

use super::{Vocabulary, argument, by_hand};
use crate::abi::{IndirectAccess, Precision, Role};
use crate::dialect::GeneratedSource;

/// Rows per slice.
pub const SLICE: usize = 32;

/// Slices per group of threads.
pub const SLICES: usize = 4;

/// The kernel's name.
pub const NAME: &str = "weakform_slices_times_vector";

const TEXT: &str = "\
$KERNEL $NAME(
    const $SIZE first,
    const $SIZE end,
    $GLOBALconst uint32* $RESTRICT starts,
    $GLOBALconst uint32* $RESTRICT columns,
    $GLOBALconst T* $RESTRICT values,
    $GLOBALconst T* $RESTRICT x,
    $GLOBALT* $RESTRICT y)
{
    const $SIZE batch = first + $GROUP;
    if (batch >= end) return;
    const $SIZE slice = batch * $COUNT + $THREAD / $SLICE;
    const uint32 from = starts[slice] + $THREAD % $SLICE;
    const uint32 behind = starts[slice + 1];
    if (from >= behind) return;
    uint32 column = columns[from];
    if (column == 0xffffffffu) return;
    T sum = 0;
    for (uint32 k = from; column != 0xffffffffu;) {
        sum += values[k] * x[column];
        k += $SLICE;
        column = k < behind ? columns[k] : 0xffffffffu;
    }
    y[batch * $THREADS + $THREAD] = sum;
}
";

/// Returns the kernel in the vocabulary of a dialect.
pub fn slices_times_vector(words: &Vocabulary, precision: Precision) -> GeneratedSource {
    let arguments = vec![
        argument(Role::Starts, "starts", SLICES),
        argument(Role::Places, "columns", 0),
        argument(Role::Matrix, "values", 0),
        argument(Role::Direction(0), "x", 0),
        argument(Role::Result(0), "y", 0),
    ];
    let column = IndirectAccess { map: 1, array: 3, scale: 1, last: 0, masked: true, part: None };
    let ends =
        |array: usize| IndirectAccess { map: 0, array, last: -1, masked: false, ..column.clone() };
    let reaches = vec![ends(1), ends(2), column.clone()];
    let further = [("$COUNT", SLICES), ("$SLICE", SLICE)];
    let text = TEXT;
    by_hand(text, (NAME, SLICES * SLICE), &further, words, precision, (arguments, reaches))
}
