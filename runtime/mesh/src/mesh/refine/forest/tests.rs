//! Forests against brute force: exact points instead of tables, and all pairs of adjacent cells.
//!
//! Corners of trees have integer coordinates, so that those of all leaves are exact. Two leaves share a face or an edge
//! if they share its points.

use super::*;
use crate::mesh::{CellOrdering, EntityCounts, MeshData};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod coarsened;
pub(crate) mod samples;

use samples::{Random, around, grid, grow, mesh, meshes, turns};

type Point = [i64; 3];

/// Exact points of leaves.
struct Points<'a> {
    mesh: &'a Mesh,
    periods: [f64; 3],
}

/// Units per length 1; all points are integers.
const FINE: f64 = (1u64 << 30) as f64;

impl Points<'_> {
    /// Returns the point of a tree with coordinates in [0, 1].
    fn at(&self, tree: u32, s: [f64; 3]) -> Point {
        let at = [0, 1, 2].map(|c| {
            let corner = |v: usize| {
                let side = |a: usize| if v >> a & 1 == 1 { s[a] } else { 1.0 - s[a] };
                let weight: f64 = (0..self.mesh.dim()).map(side).product();
                weight * self.mesh.points()[self.mesh.vertices(tree as usize)[v] as usize][c]
            };
            (0..self.mesh.cell().vertex_count()).map(corner).sum::<f64>()
        });
        [0, 1, 2].map(|c| {
            let fine = at[c] * FINE;
            assert_eq!(fine.fract(), 0.0, "a point of a leaf should be exact");
            match self.periods[c] {
                0.0 => fine as i64,
                width => (fine as i64).rem_euclid((width * FINE) as i64),
            }
        })
    }

    /// Returns the points of a part of a leaf, whose corners have local coordinates in [0, 1]: sorted corners, and the
    /// centre.
    fn part(&self, forest: &Forest, leaf: CellKey, corners: &[[f64; 3]]) -> (Vec<Point>, Point) {
        let scale = f64::from(1u32 << leaf.level());
        let lower = forest.corner(leaf).map(|at| f64::from(at) / f64::from(1u32 << FINEST));
        let place = |s: &[f64; 3]| self.at(leaf.tree(), [0, 1, 2].map(|c| lower[c] + s[c] / scale));
        let mut all: Vec<Point> = corners.iter().map(place).collect();
        all.sort_unstable();
        let mean = |c: usize| corners.iter().map(|s| s[c]).sum::<f64>() / corners.len() as f64;
        (all, place(&[mean(0), mean(1), mean(2)]))
    }
}

/// Returns the corners of the parts of an entity after `times` bisections along each direction.
fn halves(corners: &[[f64; 3]], times: usize) -> Vec<Vec<[f64; 3]>> {
    if times == 0 {
        return vec![corners.to_vec()];
    }
    let mut all = Vec::new();
    for of in 0..corners.len() {
        let half: Vec<[f64; 3]> =
            corners.iter().map(|at| [0, 1, 2].map(|c| (at[c] + corners[of][c]) / 2.0)).collect();
        all.extend(halves(&half, times - 1));
    }
    all
}

/// Faces and edges of leaves; in two dimensions only edges.
struct Meeting {
    all: BTreeMap<(Vec<Point>, Point), Vec<usize>>,
}

fn corners(cell: Cell, dim: usize, local: usize) -> Vec<[f64; 3]> {
    cell.entities(dim)[local].iter().map(|&v| cell.vertex(v)).collect()
}

impl Meeting {
    fn new(forest: &Forest, points: &Points<'_>) -> Self {
        let cell = points.mesh.cell();
        let mut all: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, &leaf) in forest.leaves().iter().enumerate() {
            for dim in 1..cell.dim() {
                for local in 0..cell.entities(dim).len() {
                    let key = points.part(forest, leaf, &corners(cell, dim, local));
                    all.entry(key).or_default().push(number);
                }
            }
        }
        Self { all }
    }

    /// Returns the leaves that violate balance: another leaf has their face or edge refined at least twice.
    fn too_coarse(&self, forest: &Forest, points: &Points<'_>) -> BTreeSet<usize> {
        let cell = points.mesh.cell();
        let finest = forest.leaves().iter().map(|leaf| leaf.level()).max().unwrap_or(0);
        let mut found = BTreeSet::new();
        for (number, &leaf) in forest.leaves().iter().enumerate() {
            let deepest = (finest - leaf.level()) as usize;
            for dim in 1..cell.dim() {
                for local in 0..cell.entities(dim).len() {
                    let own = corners(cell, dim, local);
                    let seen = |part: &Vec<[f64; 3]>| {
                        self.all.contains_key(&points.part(forest, leaf, part))
                    };
                    if (2..=deepest).any(|times| halves(&own, times).iter().any(seen)) {
                        found.insert(number);
                    }
                }
            }
        }
        found
    }

    /// Returns the parts of faces and edges that hang on larger ones.
    fn hanging(&self, forest: &Forest, points: &Points<'_>) -> BTreeSet<(Vec<Point>, Point)> {
        let cell = points.mesh.cell();
        let mut found = BTreeSet::new();
        for &leaf in forest.leaves() {
            for dim in 1..cell.dim() {
                for local in 0..cell.entities(dim).len() {
                    let halves = halves(&corners(cell, dim, local), 1);
                    let parts = halves.iter().map(|part| points.part(forest, leaf, part));
                    found.extend(parts.filter(|part| self.all.contains_key(part)));
                }
            }
        }
        found
    }
}

/// Returns the leaves of the smallest balanced refinement, by brute force.
fn balanced_slowly(mut forest: Forest, points: &Points<'_>) -> Vec<CellKey> {
    loop {
        let coarse = Meeting::new(&forest, points).too_coarse(&forest, points);
        if coarse.is_empty() {
            return forest.leaves;
        }
        forest.refine(|leaf| coarse.contains(&leaf)).expect("few leaves");
    }
}

#[test]
fn balance_is_what_all_faces_and_edges_ask_for() {
    let mut random = Random(1);
    for (number, (mesh, periods)) in meshes(&mut random).into_iter().enumerate() {
        let points = Points { mesh: &mesh, periods };
        let mut forest = Forest::new(&mesh).expect("a forest");
        grow(&mut forest, &mut random, if mesh.dim() == 2 { 4 } else { 3 });
        let expected = balanced_slowly(forest.clone(), &points);
        let changed = forest.balance().expect("few leaves");
        assert_eq!(forest.leaves, expected, "mesh {number}");
        assert!(changed || number > 0, "something should be out of balance");
        let before = forest.clone();
        assert!(!forest.balance().expect("few leaves"), "mesh {number} is balanced already");
        assert_eq!(forest, before);
    }
}

#[test]
fn masks_say_what_hangs() {
    let mut random = Random(2);
    let mut seen = BTreeSet::new();
    for (number, (mesh, periods)) in meshes(&mut random).into_iter().enumerate() {
        let points = Points { mesh: &mesh, periods };
        let cell = mesh.cell();
        let mut forest = Forest::new(&mesh).expect("a forest");
        grow(&mut forest, &mut random, if mesh.dim() == 2 { 4 } else { 3 });
        forest.balance().expect("few leaves");
        let hanging = Meeting::new(&forest, &points).hanging(&forest, &points);
        let layout = forest.coarse.layout;
        for (&leaf, mask) in forest.leaves().iter().zip(forest.masks()) {
            let child = layout.child_number(leaf);
            let hangs = |dim: usize, local: usize| {
                leaf.level() > 0
                    && hanging.contains(&points.part(&forest, leaf, &corners(cell, dim, local)))
            };
            let (mut expected, dim) = (0u16, cell.dim());
            let side = |axis: usize| child >> axis & 1;
            for local in (0..2 * dim).filter(|&local| hangs(dim - 1, local)) {
                assert_eq!(local % 2, side(local / 2), "only outer faces hang");
                expected |= 1 << (3 + local / 2);
            }
            for local in (0..12).filter(|&local| dim == 3 && hangs(1, local)) {
                let others = adjacency::OTHERS[local / 4];
                let at = side(others[0]) + 2 * side(others[1]);
                let in_face = others.iter().any(|other| expected >> (3 + other) & 1 == 1);
                assert!(in_face || local % 4 == at, "only outer edges hang");
                expected |= u16::from(!in_face) << (6 + local / 4);
            }
            let expected = if expected == 0 { 0 } else { expected | child as u16 };
            assert_eq!(mask.0, expected, "mesh {number}, {leaf:?}");
            assert!(is_legal(mask, dim), "{mask:?}");
            seen.insert((dim, mask));
        }
    }
    // In two dimensions all masks occur.
    assert_eq!(seen.iter().filter(|(dim, _)| *dim == 2).count(), 13);
    assert!(seen.len() > 80, "{}", seen.len());
}

/// Returns whether hanging faces and edges are consistent: only one kind, or a face and the edge along its normal.
fn is_legal(mask: HangingMask, dim: usize) -> bool {
    let (faces, edges) = (mask.0 >> 3 & 7, mask.0 >> 6);
    let together = faces == 0 || edges == 0 || (faces == edges && faces.count_ones() == 1);
    let flat = dim == 3 || (edges == 0 && faces < 4 && mask.0 & 7 < 4);
    together && flat && (faces | edges != 0 || mask.is_free())
}

#[test]
fn there_are_136_masks_in_space_and_12_in_the_plane() {
    for (dim, count) in [(2, 12), (3, 136)] {
        let all =
            (0..1 << 9).map(HangingMask).filter(|&mask| !mask.is_free() && is_legal(mask, dim));
        assert_eq!(all.count(), count);
    }
}

#[test]
fn coarsening_takes_back_what_refining_did() {
    let mut random = Random(3);
    for (mesh, _) in meshes(&mut random) {
        let mut forest = Forest::new(&mesh).expect("a forest");
        grow(&mut forest, &mut random, 2);
        forest.balance().expect("few leaves");
        let before = forest.clone();
        let old: BTreeSet<CellKey> = before.leaves().iter().copied().collect();
        let families = forest.refine(|leaf| leaf % 3 == 0).expect("few leaves");
        let fine = forest.clone();
        let taken = forest.coarsen(|leaf| !old.contains(&fine.leaves()[leaf]));
        assert_eq!(taken, families);
        assert_eq!(forest, before);
        // Balancing restores forbidden families.
        forest.coarsen(|_| true);
        forest.balance().expect("few leaves");
        let layout = forest.coarse.layout;
        let finer = |key: &CellKey| old.contains(key) || old.contains(&layout.child(*key, 0));
        let coarser = forest.leaves().iter().all(finer);
        assert!(coarser, "no leaf is more than one level coarser");
    }
}

#[test]
fn one_corner_is_divided_thirty_times_and_not_more() {
    let mut random = Random(4);
    for dim in [2, 3] {
        let mesh = grid(dim, [2, 1, 1], &mut random);
        let mut forest = Forest::new(&mesh).expect("a forest");
        for _ in 0..FINEST {
            forest.refine(|leaf| leaf == 0).expect("few leaves");
        }
        forest.balance().expect("few leaves");
        assert!(!forest.balance().expect("few leaves"));
        let error = forest.refine(|leaf| leaf == 0).expect_err("as fine as keys are");
        assert_eq!(error, ForestError::TooFine { tree: 0 });
    }
}

#[test]
fn lists_hold_all_trees_around_edges_and_corners() {
    let mut random = Random(5);
    for count in [3, 5, 6] {
        let mesh = around(3, count, &mut random);
        let forest = Forest::new(&mesh).expect("a forest");
        let most = (0..12).map(|edge| forest.coarse().around_edge(0, edge).len()).max();
        // The edges in the middle plane have two trees on each side.
        assert_eq!(most, Some(count.max(4)));
        let most = (0..8).map(|corner| forest.coarse().around_vertex(0, corner).len()).max();
        assert_eq!(most, Some(2 * count));
    }
}

#[test]
fn refined_meshes_are_joined_as_whole_cells_are() {
    let mut random = Random(6);
    for (number, (mesh, _)) in meshes(&mut random).into_iter().enumerate() {
        let (counts, sides) = (EntityCounts::of(&mesh), mesh.periodic_sides().to_vec());
        let (volume, vertices) = (mesh.size(), mesh.connectivity().n_vertices());
        let times = 1 + number % 2;
        let fine = mesh.refined(times).expect("room");
        // These numbers of vertices, edges and faces require that all neighbours agree.
        assert_eq!(EntityCounts::of(&fine), counts.refined(times), "mesh {number}");
        assert!((fine.size() - volume).abs() < 1e-12 * volume, "mesh {number}");
        assert_eq!(fine.periodic_sides(), sides);
        assert!(fine.connectivity().n_vertices() > vertices, "mesh {number}");
    }
}

#[test]
fn leaves_of_three_levels_at_one_face_are_no_mesh() {
    let mut random = Random(10);
    let coarse = Arc::new(grid(2, [2, 1, 0], &mut random));
    let mut forest = Forest::new(&coarse).expect("a forest");
    for _ in 0..3 {
        let last = forest.n_leaves() - 1;
        forest.refine(|leaf| leaf > 0 && leaf <= last).expect("few leaves");
    }
    let error = forest.mesh(&coarse).expect_err("levels 0 and 3");
    assert_eq!(error, ForestError::Unbalanced { tree: 0 });
    forest.balance().expect("few leaves");
    forest.mesh(&coarse).expect("balanced");
    let other = Arc::new(grid(2, [1, 1, 0], &mut random));
    let error = forest.mesh(&other).expect_err("another mesh");
    assert!(matches!(error, ForestError::Another { expected: 2, found: 1, .. }), "{error}");
}
