//! Space-filling orders of cells: Hilbert order of cell centres, and bricks on grids.
//!
//! Cells that are near in memory should be near in space, because neighbouring cells share
//! unknowns. Unstructured cells are sorted by the Hilbert index of their centre. A grid is cut
//! into bricks of 4 cells a direction, sorted along a Hilbert curve too, and the cells within a brick
//! are in Morton order, so that aligned groups of 8 cells are 2×2×2 blocks and groups of 64 are
//! 4×4×4 blocks. What is left over where a side is no multiple of 4 comes last, largest bricks
//! first.
//!
//! The Hilbert index is computed bit by bit with the exchanges and inversions of Skilling,
//! "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004).

use rayon::prelude::*;

/// Bits a direction of a Hilbert index: three directions fit 64 bits.
const BITS: u32 = 21;

/// The order that sorts points along a Hilbert curve through their bounding box: entry i of the
/// result is the number of the point that comes i-th. Points in one place keep their order.
pub fn hilbert_order(dim: usize, points: &[[f64; 3]]) -> Vec<u32> {
    let mut lower = [f64::INFINITY; 3];
    let mut upper = [f64::NEG_INFINITY; 3];
    for point in points {
        for axis in 0..dim {
            lower[axis] = lower[axis].min(point[axis]);
            upper[axis] = upper[axis].max(point[axis]);
        }
    }
    let extent = (0..dim).map(|axis| upper[axis] - lower[axis]).fold(0.0, f64::max);
    let scale = if extent > 0.0 { f64::from((1u32 << BITS) - 1) / extent } else { 0.0 };
    let mut keys: Vec<(u64, u32)> = points
        .par_iter()
        .enumerate()
        .map(|(i, point)| {
            let mut place = [0u32; 3];
            for axis in 0..dim {
                place[axis] = ((point[axis] - lower[axis]) * scale) as u32;
            }
            (hilbert_index(dim, BITS, place), i as u32)
        })
        .collect();
    keys.par_sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

/// The position of a grid point along the Hilbert curve through `2^bits` points a direction.
pub fn hilbert_index(dim: usize, bits: u32, place: [u32; 3]) -> u64 {
    let mut x = place;
    let mut q = 1u32 << (bits - 1);
    while q > 1 {
        let below = q - 1;
        for i in 0..dim {
            if x[i] & q != 0 {
                x[0] ^= below;
            } else {
                let exchanged = (x[0] ^ x[i]) & below;
                x[0] ^= exchanged;
                x[i] ^= exchanged;
            }
        }
        q >>= 1;
    }
    for i in 1..dim {
        x[i] ^= x[i - 1];
    }
    let mut gray = 0;
    let mut q = 1u32 << (bits - 1);
    while q > 1 {
        if x[dim - 1] & q != 0 {
            gray ^= q - 1;
        }
        q >>= 1;
    }
    let mut index = 0u64;
    for bit in (0..bits).rev() {
        for x in &x[..dim] {
            index = index << 1 | u64::from((x ^ gray) >> bit & 1);
        }
    }
    index
}

/// The cells of a grid, each by its coordinates, brick by brick.
pub fn brick_order(cells: [usize; 3]) -> Vec<[u32; 3]> {
    let mut regions = regions(cells);
    // INVARIANT: a stable sort keeps regions of equal bricks in lexicographic order.
    regions.sort_by_key(|region| std::cmp::Reverse(region.brick.iter().product::<u32>()));
    let mut order = Vec::with_capacity(cells.iter().product());
    for region in regions {
        let inside = morton_order(region.brick);
        for brick in region.bricks_in_order() {
            order.extend(inside.iter().map(|&cell| {
                [0, 1, 2].map(|a| region.start[a] + brick[a] * region.brick[a] + cell[a])
            }));
        }
    }
    order
}

/// The cells of a brick, whose sides are 1, 2 or 4, in Morton order (x fastest).
fn morton_order(brick: [u32; 3]) -> Vec<[u32; 3]> {
    let mut cells = vec![[0; 3]];
    for bit in [1, 2] {
        for axis in 0..3 {
            if brick[axis] > bit {
                let shifted: Vec<[u32; 3]> = cells
                    .iter()
                    .map(|&cell| {
                        let mut cell = cell;
                        cell[axis] += bit;
                        cell
                    })
                    .collect();
                cells.extend(shifted);
            }
        }
    }
    cells
}

/// A part of a grid that consists of whole bricks of one shape.
struct Region {
    start: [u32; 3],
    bricks: [u32; 3],
    brick: [u32; 3],
}

impl Region {
    fn bricks_in_order(&self) -> Vec<[u32; 3]> {
        let largest = self.bricks.iter().copied().max().unwrap_or(1);
        let bits = (u32::BITS - (largest - 1).leading_zeros()).max(1);
        // A direction without extent is put last, so that the curve fills the others.
        let mut axes = [0, 1, 2];
        axes.sort_by_key(|&a| self.bricks[a] == 1);
        let dim = axes.iter().filter(|&&a| self.bricks[a] > 1).count().max(2);
        let mut keyed = Vec::new();
        for z in 0..self.bricks[2] {
            for y in 0..self.bricks[1] {
                for x in 0..self.bricks[0] {
                    let brick = [x, y, z];
                    let place = axes.map(|a| brick[a]);
                    keyed.push((hilbert_index(dim, bits, place), brick));
                }
            }
        }
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, brick)| brick).collect()
    }
}

fn regions(cells: [usize; 3]) -> Vec<Region> {
    let segments = cells.map(|n| {
        let n = n as u32;
        let main = n / 4 * 4;
        let mut segments = vec![(0, main / 4, 4)];
        segments.push((main, n % 4 / 2, 2));
        segments.push((n / 2 * 2, n % 2, 1));
        segments.retain(|&(_, count, _)| count > 0);
        segments
    });
    let mut regions = Vec::new();
    for &z in &segments[2] {
        for &y in &segments[1] {
            for &x in &segments[0] {
                regions.push(Region {
                    start: [x.0, y.0, z.0],
                    bricks: [x.1, y.1, z.1],
                    brick: [x.2, y.2, z.2],
                });
            }
        }
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: [u32; 3], b: [u32; 3]) -> u32 {
        (0..3).map(|i| a[i].abs_diff(b[i])).sum()
    }

    #[test]
    fn hilbert_steps_to_neighbours_and_visits_all() {
        for (dim, bits) in [(2usize, 4u32), (3, 3)] {
            let n = 1u32 << bits;
            let mut cells = Vec::new();
            for z in 0..if dim == 3 { n } else { 1 } {
                for y in 0..n {
                    for x in 0..n {
                        cells.push((hilbert_index(dim, bits, [x, y, z]), [x, y, z]));
                    }
                }
            }
            cells.sort_unstable();
            assert!(cells.iter().enumerate().all(|(i, c)| c.0 == i as u64));
            assert!(cells.windows(2).all(|w| distance(w[0].1, w[1].1) == 1));
        }
    }

    #[test]
    fn groups_of_eight_and_sixty_four_are_blocks() {
        let side = |group: &[[u32; 3]]| {
            [0, 1, 2].map(|a| {
                let values = group.iter().map(|c| c[a]);
                values.clone().max().unwrap_or(0) - values.min().unwrap_or(0) + 1
            })
        };
        let order = brick_order([10, 9, 7]);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 10 * 9 * 7);
        for group in order[..8 * 8 * 4].chunks(64) {
            assert_eq!(side(group), [4, 4, 4]);
        }
        for group in order[..8 * 8 * 4].chunks(8) {
            assert_eq!(side(group), [2, 2, 2]);
        }
        // Even beside the main bricks, a group of 8 stays together as long as bricks hold 8.
        for group in order.chunks_exact(8).take(64) {
            assert!(side(group).iter().product::<u32>() == 8, "{group:?}");
        }
        assert_eq!(brick_order([4, 4, 1])[..8].iter().map(|c| c[1]).max(), Some(1));
        assert_eq!(brick_order([1, 1, 1]), [[0, 0, 0]]);
    }
}
