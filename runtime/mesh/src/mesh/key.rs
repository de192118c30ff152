//! Morton keys: a cell of a forest as one integer. Sorting follows the Morton curve, and arithmetic finds neighbours.
//!
//! ```text
//! bit 96 …   the tree
//! bit 6 …    the coordinates of the lower corner in units of 2⁻³⁰, their bits interleaved, x lowest
//! bit 0 …    the level
//! ```
//!
//! Ancestors precede their descendants, which precede all later cells. A step along an axis adds to the bits of that
//! axis. The other bits are set, so that carries pass over them (Schrack, "Finding neighbors of equal size in linear
//! quadtrees and octrees in constant time", CVGIP 55, 1992).

/// The finest level: the largest number of bisections of a mesh cell.
pub const FINEST: u32 = 30;

/// Units per edge of a tree.
pub const UNITS: u32 = 1 << FINEST;

/// The first bits of the tree number and of the coordinates.
const TREE: u32 = 96;
const PLACE: u32 = 6;

/// A cell of a forest: tree, position and level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey(u128);

/// Bit layout of keys of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    dim: u32,
    /// The bits of each axis.
    axes: [u128; 3],
}

impl KeyLayout {
    pub(crate) fn new(dim: usize) -> Self {
        let dim = dim as u32;
        let bits = |axis: u32| {
            let own = (0..FINEST).map(|bit| 1 << (PLACE + dim * bit + axis));
            if axis < dim { own.fold(0u128, |all, bit| all | bit) } else { 0 }
        };
        Self { dim, axes: [bits(0), bits(1), bits(2)] }
    }

    /// Returns the number of children of a cell.
    pub(crate) fn children(self) -> usize {
        1 << self.dim
    }

    /// Returns the first bit of the child number of a cell of this level.
    fn place(self, level: u32) -> u32 {
        PLACE + self.dim * (FINEST - level)
    }

    /// Returns the child number of a cell; 0 for a whole tree.
    pub(crate) fn child_number(self, key: CellKey) -> usize {
        match key.level() {
            0 => 0,
            level => (key.0 >> self.place(level)) as usize & (self.children() - 1),
        }
    }

    /// Returns the child of a cell that is not on the finest level.
    pub(crate) fn child(self, key: CellKey, number: usize) -> CellKey {
        CellKey(key.0 + ((number as u128) << self.place(key.level() + 1)) + 1)
    }

    /// Returns the parent of a cell that is not a whole tree.
    pub(crate) fn parent(self, key: CellKey) -> CellKey {
        let place = self.place(key.level());
        let own = (self.children() as u128 - 1) << place;
        CellKey((key.0 & !own) - 1)
    }

    /// Returns the neighbour of the same level along an axis, in either direction; `None` outside the tree.
    pub(crate) fn step(self, key: CellKey, axis: usize, up: bool) -> Option<CellKey> {
        let bits = self.axes[axis];
        let unit = 1u128 << (self.place(key.level()) + axis as u32);
        let (own, others) = (key.0 & bits, key.0 & !bits);
        let moved = if up {
            let last = bits & !(unit - 1);
            (own != last).then(|| (own | !bits).wrapping_add(unit) & bits)?
        } else {
            (own != 0).then(|| own.wrapping_sub(unit) & bits)?
        };
        Some(CellKey(others | moved))
    }

    /// Returns whether `part` is the cell or one of its descendants.
    pub fn contains(self, key: CellKey, part: CellKey) -> bool {
        let place = self.place(key.level());
        key.level() <= part.level() && key.0 >> place == part.0 >> place
    }

    /// Returns whether a cell follows another and all its descendants.
    pub fn is_behind(self, key: CellKey, other: CellKey) -> bool {
        let place = self.place(other.level());
        key.0 >> place > other.0 >> place
    }

    /// Returns the child numbers on the path from the tree to a cell.
    pub fn path(self, key: CellKey) -> impl Iterator<Item = usize> {
        let number =
            move |level: u32| (key.0 >> self.place(level)) as usize & (self.children() - 1);
        (1..=key.level()).map(number)
    }

    /// Returns the lower corner of a cell, in units of 2⁻³⁰.
    pub fn corner(self, key: CellKey) -> [u32; 3] {
        let place = (key.0 >> PLACE) & ((1 << (self.dim * FINEST)) - 1);
        let mut at = [0; 3];
        for (axis, at) in at.iter_mut().enumerate().take(self.dim as usize) {
            let bits = place >> axis;
            *at = match self.dim {
                1 => bits as u32,
                2 => gathered_2(bits as u64),
                _ => {
                    let half = 1u128 << 45;
                    gathered_3((bits & (half - 1)) as u64) | gathered_3((bits >> 45) as u64) << 15
                }
            };
        }
        at
    }

    /// Returns the cell of a tree with a lower corner and a level.
    pub(crate) fn key(self, tree: u32, corner: [u32; 3], level: u32) -> CellKey {
        let mut place = 0u128;
        for (axis, &at) in corner.iter().enumerate().take(self.dim as usize) {
            let spread = match self.dim {
                1 => u128::from(at),
                2 => u128::from(spread_2(at)),
                _ => u128::from(spread_3(at & 0x7fff)) | u128::from(spread_3(at >> 15)) << 45,
            };
            place |= spread << axis;
        }
        CellKey(u128::from(tree) << TREE | place << PLACE | u128::from(level))
    }
}

impl CellKey {
    /// Returns the key of a whole tree.
    pub(crate) fn of_tree(tree: u32) -> Self {
        Self(u128::from(tree) << TREE)
    }

    /// Returns the position and level within the tree, ordered as the leaves.
    pub(crate) fn place(self) -> u128 {
        self.0 & ((1 << TREE) - 1)
    }

    /// Returns the key in the first tree with this position and level.
    pub fn of_place(place: u128) -> Self {
        Self(place)
    }

    /// Returns the tree: the number of a mesh cell.
    pub fn tree(self) -> u32 {
        (self.0 >> TREE) as u32
    }

    /// Returns the number of bisections of the tree.
    pub fn level(self) -> u32 {
        self.0 as u32 & ((1 << PLACE) - 1)
    }
}

/// Spreads the bits of a number to every second bit.
fn spread_2(x: u32) -> u64 {
    let mut x = u64::from(x);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

fn gathered_2(x: u64) -> u32 {
    let mut x = x & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

/// Spreads the lowest 21 bits of a number to every third bit.
fn spread_3(x: u32) -> u64 {
    let mut x = u64::from(x) & 0x1f_ffff;
    x = (x | x << 32) & 0x001f_0000_0000_ffff;
    x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

fn gathered_3(x: u64) -> u32 {
    let mut x = x & 0x1249_2492_4924_9249;
    x = (x | x >> 2) & 0x10c3_0c30_c30c_30c3;
    x = (x | x >> 4) & 0x100f_00f0_0f00_f00f;
    x = (x | x >> 8) & 0x001f_0000_ff00_00ff;
    x = (x | x >> 16) & 0x001f_0000_0000_ffff;
    (x | x >> 32) as u32 & 0x1f_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_thirty_levels_of_the_last_tree() {
        for dim in 1..=3 {
            let layout = KeyLayout::new(dim);
            let mut key = CellKey::of_tree(u32::MAX);
            for level in 1..=FINEST {
                let number = (level as usize * 5 + 3) % layout.children();
                let child = layout.child(key, number);
                assert!(child > key && child.level() == level && child.tree() == u32::MAX);
                assert_eq!((layout.parent(child), layout.child_number(child)), (key, number));
                assert_eq!(layout.key(child.tree(), layout.corner(child), level), child);
                key = child;
            }
        }
    }

    #[test]
    fn steps_move_the_corner_and_end_at_the_sides_of_the_tree() {
        for dim in 1..=3 {
            let layout = KeyLayout::new(dim);
            for (level, seed) in [(1, 0u32), (3, 5), (12, 77_777), (30, 987_654_321)] {
                let size = UNITS >> level;
                let place = |axis: u32| (seed.rotate_left(axis * 7) % UNITS) / size * size;
                for base in [[0; 3], [UNITS - size; 3], [place(0), place(1), place(2)]] {
                    let base = [0, 1, 2].map(|axis| if axis < dim { base[axis] } else { 0 });
                    let key = layout.key(9, base, level);
                    for axis in 0..dim {
                        for up in [false, true] {
                            let there = i64::from(base[axis])
                                + if up { i64::from(size) } else { -i64::from(size) };
                            let mut corner = base;
                            let expected = u32::try_from(there).ok().filter(|&at| at < UNITS);
                            let expected = expected.map(|at| {
                                corner[axis] = at;
                                layout.key(9, corner, level)
                            });
                            assert_eq!(layout.step(key, axis, up), expected);
                        }
                    }
                }
            }
        }
    }
}
