//! Product of a matrix in compressed sparse rows with a vector, for devices without a library that provides it.
//!
//! ```text
//! y[i] = Σ_k values[k] x[columns[k]]  for k = starts[i] … starts[i + 1] − 1
//! ```
//!
//! [`LANES`] threads share a row and reduce by halving, so that they read consecutive values and columns. The matrix
//! may be rectangular, and the product may be added to y; this serves as prolongation and restriction between multigrid
//! levels.

use super::{Vocabulary, argument, by_hand};
use crate::abi::{IndirectAccess, Precision, Role};
use crate::dialect::GeneratedSource;

/// Rows per group of threads.
pub const ROWS: usize = 16;

/// Threads per row.
pub const LANES: usize = 16;

/// The kernel's name.
pub const NAME: &str = "weakform_rows_times_vector";

/// The name of the kernel that adds the product to y.
pub const NAME_OF_ADDED: &str = "weakform_rows_times_vector_added";

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
    $SHARED T sums[$THREADS];
    const $SIZE batch = first + $GROUP;
    const $SIZE row = batch * $ROWS + $THREAD / $LANES;
    const uint32 lane = $THREAD % $LANES;
    const uint32 from = starts[row];
    const uint32 behind = starts[row + 1];
    T sum = 0;
    for (uint32 k = from + lane; k < behind; k += $LANES) sum += values[k] * x[columns[k]];
    sums[$THREAD] = sum;
    $BARRIER;
    for (uint32 width = $LANES / 2; width > 0; width /= 2) {
        if (lane < width) sums[$THREAD] += sums[$THREAD + width];
        $BARRIER;
    }
    if (lane == 0 && from != behind) y[row] $SETS sums[$THREAD];
}
";

/// Returns the kernel in the vocabulary of a dialect.
pub fn rows_times_vector(words: &Vocabulary, precision: Precision) -> GeneratedSource {
    written((NAME, "="), words, precision)
}

/// Returns the kernel that adds the product to y, in the vocabulary of a dialect.
pub fn rows_times_vector_added(words: &Vocabulary, precision: Precision) -> GeneratedSource {
    written((NAME_OF_ADDED, "+="), words, precision)
}

fn written(
    (name, sets): (&str, &str),
    words: &Vocabulary,
    precision: Precision,
) -> GeneratedSource {
    let arguments = vec![
        argument(Role::Starts, "starts", ROWS),
        argument(Role::Places, "columns", 0),
        argument(Role::Matrix, "values", 0),
        argument(Role::Direction(0), "x", 0),
        argument(Role::Result(0), "y", 0),
    ];
    let column = IndirectAccess { map: 1, array: 3, scale: 1, last: 0, masked: false, part: None };
    let ends = |array: usize| IndirectAccess { map: 0, array, last: -1, ..column.clone() };
    let reaches = vec![ends(1), ends(2), column.clone()];
    let further = [("$ROWS", ROWS), ("$LANES", LANES)];
    let text = TEXT.replace("$SETS", sets);
    by_hand(&text, (name, ROWS * LANES), &further, words, precision, (arguments, reaches))
}
