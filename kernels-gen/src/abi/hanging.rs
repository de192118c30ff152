//! Hanging-node constraints of a cell in the form that kernels read: one word per cell ([`super::Role::Hanging`]).
//!
//! A cell with hanging nodes reads the DoFs of its parent's face or edge, in the parent's frame, and interpolates them
//! along each axis in turn. The lines along an axis that lie in a hanging face or on a hanging edge are interpolated:
//! the value at node i becomes Σ_j φ_j(ξ_i / 2) u_j, or Σ_j φ_j((1 + ξ_i) / 2) u_j if the cell is the upper child along
//! that axis. The three axes commute, and an interpolated line reads only nodes of the parent.
//!
//! The lines along an axis are classified by the other axes (o₁ < o₂): a line lies on a side of one of them, or at a
//! corner of both. A bit of the word is set if all lines of a side, or the line at a corner, are interpolated:
//!
//! ```text
//! bit d                      the cell is the upper child along axis d
//! bit 3 + 8 d + 2 k + s      axis d: the lines on side s of axis o_k, but for those at corners
//! bit 7 + 8 d + s₁ + 2 s₂    axis d: the line at the corner of sides s₁ and s₂
//! ```
//!
//! In two dimensions there is one other axis, whose sides are single lines. The word of a batch
//! ([`Role::Hang`](super::Role::Hang)) is the union over its cells, with two differences: bit d is set if lines along
//! axis d hang in some upper child along it, and bit 27 + d if they do in some lower child.

use crate::element::Cell;

/// Returns the bit of an upper child along an axis.
pub fn upper(axis: usize) -> u32 {
    axis as u32
}

/// Returns the bit of a batch in which lines along an axis hang in some lower child along it.
pub fn lower(axis: usize) -> u32 {
    27 + axis as u32
}

/// Returns the bit of the lines along an axis on a side of the first or second other axis, without the lines at
/// corners.
pub fn side(axis: usize, other: usize, up: usize) -> u32 {
    (3 + 8 * axis + 2 * other + up) as u32
}

/// Returns the bit of the line along an axis at a corner of both other axes.
pub fn corner(axis: usize, first: usize, second: usize) -> u32 {
    (7 + 8 * axis + first + 2 * second) as u32
}

/// Returns the other axes, ascending, in `dim` dimensions.
pub fn others(axis: usize, dim: usize) -> impl Iterator<Item = usize> {
    (0..dim).filter(move |&other| other != axis)
}

/// Encodes a child of its parent. Hanging `faces` are given by their normals, hanging `edges` by their axes. The word
/// is 0 without hanging nodes.
pub fn word(child: usize, faces: [bool; 3], edges: [bool; 3], dim: usize) -> u32 {
    let up = |axis: usize| child >> axis & 1;
    let mut word = 0;
    for axis in 0..dim {
        for (number, other) in others(axis, dim).enumerate().filter(|&(_, other)| faces[other]) {
            word |= 1 << side(axis, number, up(other));
            if dim == 3 {
                let corner_at = |end: usize| match number {
                    0 => corner(axis, up(other), end),
                    _ => corner(axis, end, up(other)),
                };
                word |= 1 << corner_at(0) | 1 << corner_at(1);
            }
        }
        if dim == 3 && edges[axis] {
            let [first, second] = [0, 1].map(|k| others(axis, 3).nth(k).unwrap_or(0));
            word |= 1 << corner(axis, up(first), up(second));
        }
    }
    if word == 0 { 0 } else { word | child as u32 & ((1 << dim) - 1) }
}

/// Decodes a word: the child, the hanging faces, and the hanging edges that lie in none of them.
pub fn parts(word: u32, dim: usize) -> (usize, [bool; 3], [bool; 3]) {
    let has = |bit: u32| word >> bit & 1 == 1;
    let up = |axis: usize| usize::from(has(upper(axis)));
    let (mut faces, mut edges) = ([false; 3], [false; 3]);
    for axis in 0..dim {
        for (number, other) in others(axis, dim).enumerate() {
            faces[other] |= has(side(axis, number, up(other)));
        }
    }
    for axis in (0..dim).filter(|_| dim == 3) {
        let [first, second] = [0, 1].map(|k| others(axis, 3).nth(k).unwrap_or(0));
        edges[axis] = has(corner(axis, up(first), up(second))) && !faces[first] && !faces[second];
    }
    (word as usize & ((1 << dim) - 1), faces, edges)
}

/// Returns the word of the same cell, rotated so that a facet is ξ₀ = 0. The axis of the facet becomes the first,
/// reversed if the facet is at its upper end, and the others follow.
pub fn turned(word: u32, facet: usize, dim: usize) -> u32 {
    if word == 0 {
        return 0;
    }
    let (child, faces, edges) = parts(word, dim);
    let (axis, far) = (facet / 2, facet % 2);
    let (mut number, mut faces_there, mut edges_there) = (0, [false; 3], [false; 3]);
    for (there, here) in std::iter::once(axis).chain(others(axis, dim)).enumerate() {
        let flipped = if here == axis { far } else { 0 };
        number |= ((child >> here & 1) ^ flipped) << there;
        (faces_there[there], edges_there[there]) = (faces[here], edges[here]);
    }
    self::word(number, faces_there, edges_there, dim)
}

/// Returns the word of a rotated cell whose facet ξ₀ = 0 has its coordinates in an orientation ([`Cell::oriented`]).
pub fn oriented(word: u32, cell: Cell, orientation: u8) -> u32 {
    if word == 0 || orientation == 0 {
        return word;
    }
    let (dim, (child, faces, edges)) = (cell.dim(), parts(word, cell.dim()));
    let (mut number, mut faces_there, mut edges_there) = (child & 1, faces, edges);
    let origin = cell.oriented(orientation, [0.0; 2]);
    for there in 1..dim {
        let tip =
            cell.oriented(orientation, [0, 1].map(|a| if a + 1 == there { 1.0 } else { 0.0 }));
        let here = if tip[0] == origin[0] { 2 } else { 1 };
        let flipped = usize::from(origin[here - 1] == 1.0);
        number |= ((child >> here & 1) ^ flipped) << there;
        (faces_there[there], edges_there[there]) = (faces[here], edges[here]);
    }
    self::word(number, faces_there, edges_there, dim)
}

/// Returns a sort key for cells with hanging nodes. A batch skips the interpolations that none of its cells needs, so
/// that cells with similar constraints should be neighbours. The child comes first, because lower and upper children
/// use different tables; then the hanging entities.
pub fn class(word: u32) -> u32 {
    // In two dimensions axes are numbered alike, and there are no bits of a third.
    let (child, faces, edges) = parts(word, 3);
    let hangs = faces.into_iter().chain(edges).fold(0, |all, hangs| all << 1 | u32::from(hangs));
    (child as u32) << 6 | hangs
}

/// Returns the union of the words of a batch's cells.
pub fn of_batch(words: impl IntoIterator<Item = u32>, dim: usize) -> u32 {
    words.into_iter().fold(0, |all, word| {
        let hanging = (0..dim).filter(|&axis| word >> side(axis, 0, 0) & 0xff != 0);
        let halves = hanging.map(|axis| match word >> upper(axis) & 1 {
            0 => 1 << lower(axis),
            _ => 1 << upper(axis),
        });
        halves.fold(all | word >> 3 << 3, |all, half| all | half)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bits that are set along an axis, without that of the child.
    fn along(word: u32, axis: usize) -> u32 {
        word >> (3 + 8 * axis) & 0xff
    }

    #[test]
    fn lines_of_a_hanging_face_lie_along_both_of_its_axes() {
        // Child 5 is the upper one along x and z.
        let word = word(5, [true, false, false], [false; 3], 3);
        assert_eq!(word & 7, 5);
        assert_eq!(along(word, 0), 0);
        // Along y: side 1 of x, which is the first other axis, with corners at both ends of z.
        assert_eq!(along(word, 1), 1 << 1 | 1 << (4 + 1) | 1 << (4 + 1 + 2));
        // Along z: side 1 of x, with corners at both ends of y.
        assert_eq!(along(word, 2), 1 << 1 | 1 << (4 + 1) | 1 << (4 + 1 + 2));
    }

    #[test]
    fn an_edge_is_one_line_and_a_square_has_no_corners() {
        let edge = word(4, [false; 3], [false, true, false], 3);
        // Others of y are x, at side 0, and z, at side 1.
        assert_eq!((along(edge, 0), along(edge, 1), along(edge, 2)), (0, 1 << (4 + 2), 0));
        let square = word(1, [true, false, false], [false; 3], 2);
        assert_eq!((along(square, 0), along(square, 1)), (0, 1 << 1));
        assert_eq!(word(3, [false; 3], [false; 3], 3), 0);
    }

    #[test]
    fn words_split_and_cells_rotate() {
        for dim in [2, 3] {
            let mut classes = std::collections::BTreeMap::new();
            for child in 0..1 << dim {
                for bits in 0..64 {
                    let faces = [0, 1, 2].map(|axis| axis < dim && bits >> axis & 1 == 1);
                    let edges = [0, 1, 2].map(|axis| {
                        let free = others(axis, dim).all(|other| !faces[other]);
                        dim == 3 && free && bits >> (3 + axis) & 1 == 1
                    });
                    let word = word(child, faces, edges, dim);
                    if word == 0 {
                        continue;
                    }
                    assert_eq!(parts(word, dim), (child, faces, edges));
                    assert_eq!(parts(word, 3), (child, faces, edges));
                    assert!(class(word) > 0);
                    assert_eq!(*classes.entry(class(word)).or_insert(word), word);
                    assert_eq!(turned(word, 0, dim), word);
                    for facet in 0..2 * dim {
                        let ones = turned(word, facet, dim) >> 3;
                        assert_eq!(ones.count_ones(), (word >> 3).count_ones());
                    }
                }
            }
        }
    }

    #[test]
    fn orientations_rotate_words_and_their_inverses_rotate_them_back() {
        for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
            let (dim, all) = (cell.dim(), cell.facet_orientations() as u8);
            let at = [0.25, 0.125];
            let is_inverse = |own: u8, other: u8| {
                let [s, t] = cell.oriented(own, cell.oriented(other, at));
                (s, t) == (at[0], if dim == 3 { at[1] } else { 0.0 })
            };
            for child in 0..1 << dim {
                let [faces, edges] = [[false, true, false], [true, false, false]];
                let word = word(child, faces, edges, dim);
                for own in 0..all {
                    let back = (0..all).find(|&other| is_inverse(own, other)).expect("an inverse");
                    assert_eq!(oriented(oriented(word, cell, own), cell, back), word);
                }
            }
        }
        // Exchanged axes: the face across y of an upper child along z is then the one across z of an upper child along y.
        let own = word(4, [false, true, false], [false; 3], 3);
        let other = word(2, [false, false, true], [false; 3], 3);
        assert_eq!(oriented(own, Cell::Hexahedron, 1), other);
        // Reversed: the lower child becomes the upper one.
        let [low, high] = [0, 2].map(|child| word(child, [true, false, false], [false; 3], 2));
        assert_eq!(oriented(low, Cell::Quadrilateral, 1), high);
    }

    #[test]
    fn a_batch_knows_both_kinds_of_children() {
        let words = [word(5, [true; 3], [false; 3], 3), 0, word(4, [true; 3], [false; 3], 3)];
        let all = of_batch(words, 3);
        assert_eq!([0, 1, 2].map(|axis| all >> lower(axis) & 1), [1, 1, 0]);
        assert_eq!([0, 1, 2].map(|axis| all >> upper(axis) & 1), [1, 0, 1]);
        assert_eq!(of_batch([0, 0], 3), 0);
        // Nothing hangs along x.
        let face = of_batch([word(5, [true, false, false], [false; 3], 3)], 3);
        assert_eq!([0, 1, 2].map(|axis| face >> lower(axis) & 1), [0, 1, 0]);
        assert_eq!([0, 1, 2].map(|axis| face >> upper(axis) & 1), [0, 0, 1]);
    }
}
