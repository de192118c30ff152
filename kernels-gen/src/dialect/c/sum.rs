//! The kernel of the owners: what cells have stored for their unknowns → the sums, each in an order that never
//! changes.
//!
//! ```text
//! result[i] += cells[places[k]]  for k = starts[i] … starts[i + 1] − 1, one after another
//! ```
//!
//! One thread an unknown. The lists leave out what is constrained and what fills up a batch; those of the
//! threads behind the last unknown are empty.

use super::{Words, preamble};
use crate::abi::{Argument, KernelAbi, Precision, Reach, Role};
use crate::dialect::{Generated, SourceFile};

/// Unknowns of a batch, and threads of a group.
pub const UNKNOWNS: usize = 128;

/// The kernel's name.
pub const NAME: &str = "weakform_sum_of_cells";

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
    if (from == behind) return;
    T sum = result[unknown];
    for (uint32 k = from; k < behind; ++k) sum += cells[places[k]];
    result[unknown] = sum;
}
";

/// The kernel in the words of a dialect.
pub fn sum_of_cells(words: &Words, precision: Precision) -> Generated {
    let kernel = words.kernel.replace("$GROUPS", "1");
    let threads = UNKNOWNS.to_string();
    let replacements = [
        ("$KERNEL", kernel.as_str()),
        ("$NAME", NAME),
        ("$SIZE", words.size),
        ("$GLOBAL", words.global),
        ("$RESTRICT", words.restrict),
        ("$GROUP", words.group),
        ("$THREADS", &threads),
        ("$THREAD", words.thread),
    ];
    let text = replacements
        .into_iter()
        .fold(TEXT.to_owned(), |text, (mark, word)| text.replace(mark, word));
    let argument = |role: Role, name: &str, extent: usize| {
        let written = matches!(role, Role::Result(_));
        Argument { role, name: name.to_owned(), extent, written }
    };
    let arguments = vec![
        argument(Role::Starts, "starts", UNKNOWNS),
        argument(Role::Places, "places", 0),
        argument(Role::CellResult(0), "cells", 0),
        argument(Role::Result(0), "result", 0),
    ];
    let whole = Reach { map: 1, array: 2, scale: 1, last: 0, masked: false, part: None };
    let (ends, places) = (Reach { map: 0, array: 1, last: -1, ..whole.clone() }, whole);
    let head = format!("{}\n", preamble(words, precision, &text));
    let abi = KernelAbi {
        reaches: vec![ends, places],
        hash: crate::abi::hash(TEXT),
        ..KernelAbi::by_hand(NAME, precision, UNKNOWNS, arguments)
    };
    let (starts, kernels, language) = (vec![head.len()], vec![abi], words.language);
    let file = SourceFile { text: head + &text, language, kernels, starts };
    Generated::new(file, None)
}
