//! Numbers that lie in an order of their own: entries of a matrix in slices of rows → in rows.
//!
//! ```text
//! result[i] = numbers[places[i]]
//! ```
//!
//! One thread a number; the largest index stands for none.

use super::{Words, preamble};
use crate::abi::{Argument, KernelAbi, Precision, Reach, Role};
use crate::dialect::{Generated, SourceFile};

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
    let (kernel, threads) = (words.kernel.replace("$GROUPS", "1"), NUMBERS.to_string());
    let text = [
        ("$KERNEL", kernel.as_str()),
        ("$NAME", NAME),
        ("$SIZE", words.size),
        ("$GLOBAL", words.global),
        ("$RESTRICT", words.restrict),
        ("$GROUP", words.group),
        ("$THREADS", &threads),
        ("$THREAD", words.thread),
    ]
    .into_iter()
    .fold(TEXT.to_owned(), |text, (mark, word)| text.replace(mark, word));
    let argument = |role: Role, name: &str, extent: usize, written: bool| Argument {
        role,
        name: name.to_owned(),
        extent,
        written,
    };
    let arguments = vec![
        argument(Role::Places, "places", NUMBERS, false),
        argument(Role::CellResult(0), "numbers", 0, false),
        argument(Role::Result(0), "result", 0, true),
    ];
    let reach = Reach { map: 0, array: 1, scale: 1, last: 0, masked: true, part: None };
    let head = format!("{}\n", preamble(words, precision, &text));
    let abi = KernelAbi {
        reaches: vec![reach],
        hash: crate::abi::hash(TEXT),
        ..KernelAbi::by_hand(NAME, precision, NUMBERS, arguments)
    };
    let (starts, kernels, language) = (vec![head.len()], vec![abi], words.language);
    Generated::new(SourceFile { text: head + &text, language, kernels, starts }, None)
}
