//! Numbers that lie in an order of their own: entries of a matrix in slices of rows → in rows.
//!
//! ```text
//! result[i] = numbers[places[i]]
//! ```
//!
//! One thread a number; the largest index stands for none.

use super::{Words, argument, by_hand};
use crate::abi::{Precision, Reach, Role};
use crate::dialect::Generated;

/// Numbers of a group of threads.
pub const NUMBERS: usize = 128;

/// The kernel's name.
pub const NAME: &str = "weakform_numbers_at_places";

const TEXT: &str = "\
$KERNEL $NAME(
    const $SIZE first,
    const $SIZE end,
    $GLOBALconst uint32* $RESTRICT places,
    $GLOBALconst T* $RESTRICT numbers,
    $GLOBALT* $RESTRICT result)
{
    const $SIZE batch = first + $GROUP;
    if (batch >= end) return;
    const $SIZE i = batch * $THREADS + $THREAD;
    const uint32 place = places[i];
    if (place != 0xffffffffu) result[i] = numbers[place];
}
";

/// The kernel in the words of a dialect.
pub fn numbers_at_places(words: &Words, precision: Precision) -> Generated {
    let arguments = vec![
        argument(Role::Places, "places", NUMBERS),
        argument(Role::CellResult(0), "numbers", 0),
        argument(Role::Result(0), "result", 0),
    ];
    let reach = Reach { map: 0, array: 1, scale: 1, last: 0, masked: true, part: None };
    by_hand(TEXT, (NAME, NUMBERS), &[], words, precision, (arguments, vec![reach]))
}
