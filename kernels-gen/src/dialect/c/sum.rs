//! The kernel of the owners: what cells have stored for their unknowns → the sums, each in an order that never
//! changes.
//!
//! ```text
//! result[i] += cells[places[k]]  for k = starts[i] … starts[i + 1] − 1, one after another
//! ```
//!
//! One thread an unknown. The lists leave out what is constrained and what fills up a batch; those of the
//! threads behind the last unknown are empty.

use super::{Words, argument, by_hand};
use crate::abi::{Precision, Reach, Role};
use crate::dialect::Generated;

/// Unknowns of a batch, and threads of a group.
pub const UNKNOWNS: usize = 128;

/// The kernel's name.
pub const NAME: &str = "weakform_sum_of_cells";

/// The name of the kernel whose results have nothing before.
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

/// The kernel in the words of a dialect.
pub fn sum_of_cells(words: &Words, precision: Precision) -> Generated {
    let begin = "if (from == behind) return;\n    T sum = result[unknown];";
    sum((NAME, begin, 0), words, precision)
}

/// The same for results that have nothing before, of which there is one for each thread: a sum of nothing is 0.
pub fn sum_of_cells_alone(words: &Words, precision: Precision) -> Generated {
    sum((ALONE, "T sum = 0;", UNKNOWNS), words, precision)
}

fn sum(
    (name, begin, results): (&str, &str, usize),
    words: &Words,
    precision: Precision,
) -> Generated {
    let arguments = vec![
        argument(Role::Starts, "starts", UNKNOWNS),
        argument(Role::Places, "places", 0),
        argument(Role::CellResult(0), "cells", 0),
        argument(Role::Result(0), "result", results),
    ];
    let whole = Reach { map: 1, array: 2, scale: 1, last: 0, masked: false, part: None };
    let (ends, places) = (Reach { map: 0, array: 1, last: -1, ..whole.clone() }, whole);
    let text = TEXT.replace("$BEGIN", begin);
    by_hand(&text, (name, UNKNOWNS), &[], words, precision, (arguments, vec![ends, places]))
}
