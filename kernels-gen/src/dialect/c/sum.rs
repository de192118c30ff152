//! Summation kernel of [`Scatter::Owner`](crate::plan::Scatter::Owner): stored contributions of cells → their sums per
//! DoF, in a fixed order.
//!
//! ```text
//! result[i] += cells[places[k]]  for k = starts[i] … starts[i + 1] − 1, one after another
//! ```
//!
//! One thread per DoF. The lists contain neither constrained DoFs nor padding cells; threads beyond the last DoF have
//! empty lists.

use super::{Vocabulary, argument, by_hand};
use crate::abi::{IndirectAccess, Precision, Role};
use crate::dialect::GeneratedSource;

/// DoFs per batch, and threads per group.
pub const UNKNOWNS: usize = 128;

/// The kernel's name.
pub const NAME: &str = "weakform_sum_of_cells";

/// The name of the kernel that overwrites its results.
pub const ALONE: &str = "weakform_sum_of_cells_alone";

const TEXT: &str = "\
$KERNEL $NAME(
    const $SIZE first,
    const $SIZE end,
    $GLOBALconst uint32* $RESTRICT starts,
    $GLOBALconst uint32* $RESTRICT places,
    $GLOBALconst T* $RESTRICT cells,
    $GLOBALT* $RESTRICT result)
{
    const $SIZE batch = first + $GROUP;
    if (batch >= end) return;
    const $SIZE unknown = batch * $THREADS + $THREAD;
    const uint32 from = starts[unknown];
    const uint32 behind = starts[unknown + 1];
    $BEGIN
    for (uint32 k = from; k < behind; ++k) sum += cells[places[k]];
    result[unknown] = sum;
}
";

/// Returns the kernel in the vocabulary of a dialect.
pub fn sum_of_cells(words: &Vocabulary, precision: Precision) -> GeneratedSource {
    let begin = "if (from == behind) return;\n    T sum = result[unknown];";
    sum((NAME, begin, 0), words, precision)
}

/// Returns the kernel that overwrites its results, one per thread; an empty sum is 0.
pub fn sum_of_cells_alone(words: &Vocabulary, precision: Precision) -> GeneratedSource {
    sum((ALONE, "T sum = 0;", UNKNOWNS), words, precision)
}

fn sum(
    (name, begin, results): (&str, &str, usize),
    words: &Vocabulary,
    precision: Precision,
) -> GeneratedSource {
    let arguments = vec![
        argument(Role::Starts, "starts", UNKNOWNS),
        argument(Role::Places, "places", 0),
        argument(Role::CellResult(0), "cells", 0),
        argument(Role::Result(0), "result", results),
    ];
    let whole = IndirectAccess { map: 1, array: 2, scale: 1, last: 0, masked: false, part: None };
    let (ends, places) = (IndirectAccess { map: 0, array: 1, last: -1, ..whole.clone() }, whole);
    let text = TEXT.replace("$BEGIN", begin);
    by_hand(&text, (name, UNKNOWNS), &[], words, precision, (arguments, vec![ends, places]))
}
