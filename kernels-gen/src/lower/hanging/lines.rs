//! Hanging nodes of cells with a thread per line or node: the bit of a line in a cell's word ([`crate::abi::hanging`]),
//! and a thread's work if its line hangs.

use super::of_parent;
use crate::abi::Role;
use crate::abi::hanging::{corner, side, upper};
use crate::element::LinePoints;
use crate::kir::{Condition, Index, Integer, VarId};
use crate::lower::contract::Matrix;
use crate::lower::lowering::Lowering;

/// Returns the bit of the lines along an axis at the given ends of the others, which ascend; `None` inside of a cell.
pub(crate) fn bit_of(axis: usize, ends: &[Option<usize>]) -> Option<u32> {
    match *ends {
        [Some(a), Some(b)] => Some(corner(axis, a, b)),
        [Some(a), None] | [Some(a)] => Some(side(axis, 0, a)),
        [None, Some(b)] => Some(side(axis, 1, b)),
        _ => None,
    }
}

/// Returns the same as a mask for the line at some positions among `n` along the other axes; 0 inside.
pub(crate) fn mask_of(axis: usize, n: usize, places: &[usize]) -> u32 {
    let end = |&place: &usize| match place {
        0 => Some(0),
        _ => (place + 1 == n).then_some(1),
    };
    bit_of(axis, &places.iter().map(end).collect::<Vec<_>>()).map_or(0, |bit| 1 << bit)
}

/// Returns A⁻ and A⁺ of a line, or their transposes.
pub(crate) fn matrices(nodes: LinePoints, back: bool) -> [Matrix; 2] {
    [false, true].map(|up| {
        let matrix = of_parent(nodes.into(), up);
        if back { matrix.transposed() } else { matrix }
    })
}

/// Runs `body` for the lower and for the upper child along an axis, if the line of a mask hangs in the cell of a word.
pub(crate) fn where_hangs(
    s: &mut Lowering<'_>,
    (word, mask): (VarId, VarId),
    axis: usize,
    body: &mut dyn FnMut(&mut Lowering<'_>, bool),
) {
    s.b.open_when();
    for up in [false, true] {
        s.b.open_when();
        body(s, up);
        let child = if up { Condition::Bit } else { Condition::NoBit };
        s.b.close_when(vec![child(word, upper(axis))]);
    }
    s.b.close_when(vec![Condition::Meet(word, mask)]);
}

/// Returns the word of the cell of a single-cell batch.
pub(crate) fn word_of(s: &mut Lowering<'_>, batch: VarId) -> VarId {
    let words = s.arguments[&Role::Hanging];
    s.b.integer("word", Integer::Element(words, Index::from(batch)))
}
