//! Random forests and the coarse meshes below them, for tests.

use fem_mesh::mesh::refine::forest::Forest;
use fem_mesh::mesh::{CellOrdering, Mesh, MeshData};
use kernels_gen::element::Cell;
use std::collections::BTreeSet;

/// The random number generator SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % most as u64) as usize
    }
}

/// Returns the rotations of a cell: for each new vertex the old one.
pub(crate) fn turns(dim: usize) -> Vec<Vec<usize>> {
    let axes: &[[usize; 3]] = match dim {
        2 => &[[0, 1, 2], [1, 0, 2]],
        _ => &[[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]],
    };
    let mut all = Vec::new();
    for (number, order) in axes.iter().enumerate() {
        for flips in 0..1usize << dim {
            let odd = number >= axes.len() / 2;
            if (flips.count_ones() % 2 == 1) == odd {
                let old = |v: usize| (0..dim).fold(flips, |old, a| old ^ (v >> a & 1) << order[a]);
                all.push((0..1 << dim).map(old).collect());
            }
        }
    }
    all
}

/// Returns a mesh of cells given by their corners, each rotated at random.
pub(crate) fn mesh(
    cell: Cell,
    points: Vec<[f64; 3]>,
    cells: &[Vec<u32>],
    random: &mut Random,
) -> Mesh {
    let turns = turns(cell.dim());
    let mut nodes = Vec::new();
    for cell in cells {
        let turn = &turns[random.below(turns.len())];
        nodes.extend(turn.iter().map(|&old| cell[old]));
    }
    let parts = MeshData { points, nodes, ..MeshData::default() };
    Mesh::new(cell, 1, parts, CellOrdering::Original).expect("a mesh")
}

/// Returns a grid of cells of width 64.
pub(crate) fn grid(dim: usize, cells: [usize; 3], random: &mut Random) -> Mesh {
    let n = [0, 1, 2].map(|a| if a < dim { cells[a] } else { 0 });
    let number = |at: [usize; 3]| (at[0] + (n[0] + 1) * (at[1] + (n[1] + 1) * at[2])) as u32;
    let (mut points, mut all) = (Vec::new(), Vec::new());
    for z in 0..=n[2] {
        for y in 0..=n[1] {
            for x in 0..=n[0] {
                points.push([x, y, z].map(|at| 64.0 * at as f64));
                let inside = [x, y, z].iter().zip(n).take(dim).all(|(at, n)| *at < n);
                if inside {
                    let corner = |v: usize| number([x + (v & 1), y + (v >> 1 & 1), z + (v >> 2)]);
                    all.push((0..1 << dim).map(corner).collect::<Vec<u32>>());
                }
            }
        }
    }
    let cell = if dim == 2 { Cell::Quadrilateral } else { Cell::Hexahedron };
    let mut mesh = mesh(cell, points, &all, random);
    for axis in 0..dim {
        for side in 0..2 {
            let wall = (64 * cells[axis] * side) as f64;
            let tag = format!("{}{side}", ["x", "y", "z"][axis]);
            mesh.tag_boundary(&tag, |at| at.iter().all(|at| at[axis] == wall));
        }
    }
    mesh
}

/// Returns a mesh of `count` cells around one edge (in two dimensions, one vertex), in two layers.
pub(crate) fn around(dim: usize, count: usize, random: &mut Random) -> Mesh {
    let at = |radius: f64, step: usize| {
        let angle = std::f64::consts::PI * step as f64 / count as f64;
        [(radius * angle.cos()).round(), (radius * angle.sin()).round()]
    };
    let layers = if dim == 3 { 3 } else { 1 };
    let (mut points, mut cells) = (Vec::new(), Vec::new());
    for layer in 0..layers {
        points.push([0.0, 0.0, 64.0 * layer as f64]);
        for step in 0..2 * count {
            let [x, y] = at(if step % 2 == 0 { 512.0 } else { 768.0 }, step);
            points.push([x, y, 64.0 * layer as f64]);
        }
    }
    let each = 2 * count + 1;
    for layer in 0..(layers - 1).max(1) {
        for sector in 0..count {
            let ring = |step: usize| 1 + step % (2 * count);
            let flat = [0, ring(2 * sector), ring(2 * sector + 2), ring(2 * sector + 1)];
            let level = |up: usize| flat.map(|v| (v + (layer + up) * each) as u32);
            let own: Vec<u32> = match dim {
                2 => level(0).to_vec(),
                _ => level(0).into_iter().chain(level(1)).collect(),
            };
            cells.push(own);
        }
    }
    let cell = if dim == 2 { Cell::Quadrilateral } else { Cell::Hexahedron };
    mesh(cell, points, &cells, random)
}

/// Returns all test meshes, with their periods; 0 for none.
pub(crate) fn meshes(random: &mut Random) -> Vec<(Mesh, [f64; 3])> {
    let mut all = Vec::new();
    for dim in [2, 3] {
        all.push((grid(dim, [2, 3, 2], random), [0.0; 3]));
        for count in [3, 5, 6] {
            all.push((around(dim, count, random), [0.0; 3]));
        }
        for cells in [[1, 1, 1], [1, 2, 2], [3, 2, 1]] {
            for pairs in 1..=dim {
                let mut mesh = grid(dim, cells, random);
                let sides = [["x0", "x1"], ["y0", "y1"], ["z0", "z1"]];
                mesh.make_periodic(&sides[..pairs]).expect("sides that fit");
                let width = |a: usize| if a < pairs { 64.0 * cells[a] as f64 } else { 0.0 };
                all.push((mesh, [0, 1, 2].map(width)));
            }
        }
    }
    all
}

/// Refines some random leaves a few times, close to each other.
pub(crate) fn grow(forest: &mut Forest, random: &mut Random, times: usize) {
    for _ in 0..times {
        let count = forest.n_leaves();
        let chosen: BTreeSet<usize> = (0..1 + count / 40).map(|_| random.below(count)).collect();
        forest.refine(|leaf| chosen.contains(&leaf)).expect("few leaves");
        // One corner is always refined.
        let last = forest.n_leaves() - 1;
        forest.refine(|leaf| leaf == last).expect("few leaves");
    }
}
