//! Space-filling orders of cells: Hilbert order of cell centres, and bricks on grids.
//!
//! Cells that are near in memory should be near in space, because neighbouring cells share degrees of freedom.
//! Successive cells should also be neighbours through opposite facets: then the same local node has successive numbers.
//! In this order, 32 threads that read one node of 32 cells touch 9 sectors of 32 bytes, instead of 16.5 with 2×2×2
//! blocks. Unstructured cells are sorted by the Hilbert index of their centre. Quadrilaterals and hexahedra are then
//! gathered into chains through opposite facets ([`chain_order`]). Grids are split into bricks of 32×4×4 cells, which
//! follow a Hilbert curve; the cells of a brick are ordered row by row. Remainders of sides that are no multiple of the
//! brick follow at the end, largest bricks first.
//!
//! The Hilbert index is computed bit by bit with the exchanges and inversions of Skilling,
//! "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004).

use crate::support::parallel::*;
use kernels_gen::element::Cell;

/// Largest number of cells of a chain: a GPU warp, whose threads exchange the values of the facets between them. Four
/// parallel chains share most of their nodes.
const CHAIN: usize = 32;

/// Bits of a Hilbert index per direction: three directions fit 64 bits.
const BITS: u32 = 21;

/// Returns the order of points along a Hilbert curve through their bounding box: entry i is the number of the i-th
/// point. Coincident points keep their order.
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
        .listed();
    keys.par_sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

/// Returns the position of a grid point along the Hilbert curve through `2^bits` points per direction.
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

/// Gathers the cells of an order into chains. Each chain runs from the next free cell through opposite facets in both
/// directions. The axis with the longest chain of at most [`CHAIN`] cells is chosen. `vertices` lists those of each
/// cell. Simplices, whose facets have no opposite, keep their order.
pub(crate) fn chain_order(cell: Cell, vertices: &[u32], order: Vec<u32>) -> Vec<u32> {
    if !cell.is_tensor() {
        return order;
    }
    let chains = FacetNeighbours::new(cell, vertices);
    let mut used = vec![false; order.len()];
    let mut chained = Vec::with_capacity(order.len());
    for first in order {
        if used[first as usize] {
            continue;
        }
        let mut longest = Vec::new();
        for axis in 0..cell.dim() {
            let chain = chains.through(first, axis, &used);
            if chain.len() > longest.len() {
                longest = chain;
            }
        }
        longest.iter().for_each(|&cell| used[cell as usize] = true);
        chained.extend(longest);
    }
    chained
}

/// Facet neighbours of tensor cells.
struct FacetNeighbours {
    /// Facets of a cell: two per axis.
    facets: usize,
    /// `[cell][facet]`: the index in this array of the neighbour's facet; `u32::MAX` on the boundary.
    across: Vec<u32>,
}

impl FacetNeighbours {
    fn new(cell: Cell, vertices: &[u32]) -> Self {
        let facets = cell.facets();
        let mut all: Vec<([u32; 4], u32)> = Vec::new();
        for vertices in vertices.chunks_exact(cell.vertex_count()) {
            for local in facets {
                let mut key = [u32::MAX; 4];
                key.iter_mut().zip(*local).for_each(|(key, &v)| *key = vertices[v]);
                key.sort_unstable();
                all.push((key, all.len() as u32));
            }
        }
        all.par_sort_unstable();
        let mut across = vec![u32::MAX; all.len()];
        for pair in all.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            across[pair[0].1 as usize] = pair[1].1;
            across[pair[1].1 as usize] = pair[0].1;
        }
        Self { facets: facets.len(), across }
    }

    /// Returns the chain of unused cells through a cell along one of its axes.
    fn through(&self, cell: u32, axis: usize, used: &[bool]) -> Vec<u32> {
        let mut chain = vec![cell];
        for side in [0, 1] {
            let mut facet = cell as usize * self.facets + 2 * axis + side;
            while chain.len() < CHAIN && self.across[facet] != u32::MAX {
                let entered = self.across[facet] as usize;
                let next = (entered / self.facets) as u32;
                if used[next as usize] || chain.contains(&next) {
                    break;
                }
                chain.push(next);
                // Axis a has the facets 2a and 2a + 1.
                facet = entered / self.facets * self.facets + ((entered % self.facets) ^ 1);
            }
            if side == 0 {
                chain.reverse();
            }
        }
        chain
    }
}

/// Returns the cells of a grid by their coordinates, in brick order.
pub fn brick_order(cells: [usize; 3]) -> Vec<[u32; 3]> {
    let mut regions = regions(cells);
    // INVARIANT: a stable sort keeps regions of equal bricks in lexicographic order.
    regions.sort_by_key(|region| std::cmp::Reverse(region.brick.iter().product::<u32>()));
    let mut order = Vec::with_capacity(cells.iter().product());
    for region in regions {
        let inside = rows(region.brick);
        for brick in region.bricks_in_order() {
            order.extend(inside.iter().map(|&cell| {
                [0, 1, 2].map(|a| region.start[a] + brick[a] * region.brick[a] + cell[a])
            }));
        }
    }
    order
}

/// Returns the cells of a brick, row by row.
fn rows(brick: [u32; 3]) -> Vec<[u32; 3]> {
    let mut cells = Vec::new();
    for z in 0..brick[2] {
        for y in 0..brick[1] {
            cells.extend((0..brick[0]).map(|x| [x, y, z]));
        }
    }
    cells
}

/// A part of a grid made of whole bricks of one shape.
struct BrickRegion {
    start: [u32; 3],
    bricks: [u32; 3],
    brick: [u32; 3],
}

impl BrickRegion {
    fn bricks_in_order(&self) -> Vec<[u32; 3]> {
        let largest = self.bricks.iter().copied().max().unwrap_or(1);
        let bits = (u32::BITS - (largest - 1).leading_zeros()).max(1);
        // Directions without extent are last, so that the curve fills the others.
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

/// The sides of bricks per direction, each half of the previous one.
const SIDES: [&[u32]; 3] = [&[32, 16, 8, 4, 2, 1], &[4, 2, 1], &[4, 2, 1]];

fn regions(cells: [usize; 3]) -> Vec<BrickRegion> {
    let segments = [0, 1, 2].map(|axis| {
        // (first cell, bricks, cells per brick)
        let (mut segments, mut start, n) = (Vec::new(), 0, cells[axis] as u32);
        for &side in SIDES[axis] {
            let count = (n - start) / side;
            if count > 0 {
                segments.push((start, count, side));
                start += count * side;
            }
        }
        segments
    });
    let mut regions = Vec::new();
    for &z in &segments[2] {
        for &y in &segments[1] {
            for &x in &segments[0] {
                regions.push(BrickRegion {
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

    /// Returns whether two cells of a grid of squares or cubes are adjacent along an axis.
    fn follow(a: u32, b: u32, n: u32) -> bool {
        let place = |cell: u32| [cell % n, cell / n % n, cell / (n * n)];
        distance(place(a), place(b)) == 1
    }

    #[test]
    fn cells_are_chained_through_opposite_facets() {
        for (cell, n) in [(Cell::Quadrilateral, 40u32), (Cell::Hexahedron, 20)] {
            let layers = if cell.dim() == 3 { n } else { 1 };
            let (mut vertices, mut centres) = (Vec::new(), Vec::new());
            for number in 0..n * n * layers {
                let place = [number % n, number / n % n, number / (n * n)];
                for v in 0..cell.vertex_count() as u32 {
                    let at = [0, 1, 2].map(|a| place[a] + (v >> a & 1));
                    vertices.push(at[0] + (n + 1) * (at[1] + (n + 1) * at[2]));
                }
                centres.push(place.map(f64::from));
            }
            let hilbert = hilbert_order(cell.dim(), &centres);
            let chained = chain_order(cell, &vertices, hilbert);
            let mut sorted = chained.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().enumerate().all(|(i, &cell)| i as u32 == cell));
            let steps = chained.windows(2).filter(|pair| follow(pair[0], pair[1], n)).count();
            assert!(steps * 10 > chained.len() * 8, "{cell}: {steps} of {}", chained.len());
        }
        let order = vec![2, 0, 1];
        assert_eq!(chain_order(Cell::Triangle, &[0, 1, 2, 1, 2, 3, 2, 3, 4], order.clone()), order);
    }

    #[test]
    fn closed_chains_end() {
        // Four squares around a hole form a closed ring of neighbours.
        let vertices = [0, 1, 4, 5, 1, 2, 5, 6, 2, 3, 6, 7, 3, 0, 7, 4];
        assert_eq!(chain_order(Cell::Quadrilateral, &vertices, vec![0, 1, 2, 3]).len(), 4);
    }

    #[test]
    fn grids_come_in_bricks_of_rows() {
        for cells in [[72, 9, 7], [4, 4, 1], [1, 1, 1], [33, 1, 5]] {
            let order = brick_order(cells);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), cells.iter().product());
        }
        let order = brick_order([72, 9, 7]);
        for brick in order[..2 * 2 * 512].chunks(512) {
            let side = [0, 1, 2].map(|a| {
                let values = brick.iter().map(|c| c[a]);
                values.clone().max().unwrap_or(0) - values.min().unwrap_or(0) + 1
            });
            assert_eq!(side, [32, 4, 4]);
            for row in brick.chunks(32) {
                assert!(row.windows(2).all(|w| [w[0][0] + 1, w[0][1], w[0][2]] == w[1]));
            }
        }
    }
}
