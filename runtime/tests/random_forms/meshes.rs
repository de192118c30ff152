//! Meshes of random forms: boxes and balls of few cells of every type, turned, periodic or with hanging nodes.

use super::rotations::rotations;
use fem_dsl::problem::Argument;
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::mesh::generate::generate;
use runtime::mesh::pairs::cell_pairs;
use runtime::mesh::{CellOrdering, Mesh, MeshData};
use std::collections::BTreeMap;

/// Cell types with the numbers of cells along the axes: the smallest counts at which neighbours share unknowns.
pub(super) const CELLS: [(&str, [f64; 3]); 4] = [
    ("tri", [2.0, 2.0, 0.0]),
    ("quad", [3.0, 2.0, 0.0]),
    ("tet", [1.0, 1.0, 1.0]),
    ("hex", [2.0, 1.0, 1.0]),
];

/// Pairs of periodic sides. Some boxes have only one cell between the two sides.
pub(super) const PERIODIC: [&[[&str; 2]]; 6] =
    [&[], &[], &[], &[["x0", "x1"]], &[["y0", "y1"]], &[["x0", "x1"], ["y1", "y0"]]];

/// Returns number `number` of the SplitMix64 sequence of `seed`.
pub(super) fn mix(seed: u64, number: u64) -> u64 {
    let z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number ^ 0xD1B5_4A32_D192_ED03);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns `n` pseudorandom numbers between −1 and 1.
pub(super) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let number = |i: usize| mix(seed, i as u64) as f64 / u64::MAX as f64;
    (0..n).map(|i| 2.0 * number(i) - 1.0).collect()
}

/// Returns a box mesh whose coordinates all differ from the constants that forms compare with.
pub(super) fn boxed(cell: &str, counts: &[f64]) -> Mesh {
    let dim = counts.len();
    let mut arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(dim as f64)),
        ("cells".to_owned(), Argument::Numbers(counts.to_vec())),
        ("cell".to_owned(), Argument::Word(cell.to_owned())),
        ("from".to_owned(), Argument::Numbers(vec![0.013, -0.317, 0.071][..dim].to_vec())),
        ("to".to_owned(), Argument::Numbers(vec![1.117, 0.841, 0.963][..dim].to_vec())),
    ]);
    if matches!(cell, "quad" | "hex") {
        arguments.insert("deform".to_owned(), Argument::Number(0.1));
    }
    generate("box", &arguments).expect("a box")
}

/// Returns a ball of curved cells. None of the facets between them has the tag "inner".
pub(super) fn ball(cell: &str, order: usize) -> Mesh {
    let dim = if matches!(cell, "quad" | "tri") { 2.0 } else { 3.0 };
    let arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(dim)),
        ("order".to_owned(), Argument::Number(order as f64)),
        ("refine".to_owned(), Argument::Number(0.0)),
        ("cell".to_owned(), Argument::Word(cell.to_owned())),
    ]);
    let mut mesh = generate("ball", &arguments).expect("a ball");
    mesh.tag_like("surface", "inner");
    mesh
}

/// Tags cells on the left, on the right, and between them both.
pub(super) fn tag_halves(mesh: &mut Mesh) {
    let middle = |x: &[f64; 3]| x[0] + 0.2 * x[1];
    mesh.tag_cells("left", |x| middle(x) < 0.6);
    mesh.tag_cells("right", |x| middle(x) > 0.5);
}

/// Returns the mesh with its vertices in another order and its cells turned, so that facets between them have all
/// orientations. Some of these facets get the tag "inner".
pub(super) fn scrambled(mesh: &Mesh, seed: u64) -> Mesh {
    let (cell, n) = (mesh.cell(), mesh.n_vertices());
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&old| mix(seed, 200 + old as u64));
    let mut numbers = vec![0; n];
    order.iter().enumerate().for_each(|(new, &old)| numbers[old] = new as u32);
    let rotations = rotations(cell.dim(), cell.is_tensor());
    let mut nodes = Vec::new();
    for number in 0..mesh.n_cells() {
        let chosen = mix(seed, 300 + number as u64) as usize % rotations.len();
        let vertices = mesh.vertices(number);
        nodes.extend(rotations[chosen].iter().map(|&v| numbers[vertices[v] as usize]));
    }
    let vertices = |side: (u32, u8)| {
        let mut facet = [u32::MAX; 4];
        let own = mesh.vertices(side.0 as usize);
        for (entry, &v) in facet.iter_mut().zip(cell.facets()[usize::from(side.1)]) {
            *entry = numbers[own[v] as usize];
        }
        facet
    };
    let tags = mesh.facet_tags().iter().map(|(tag, facets)| {
        let facets = facets.iter().map(|facet| vertices((facet.cell, facet.local)));
        (tag.clone(), facets.collect())
    });
    let mut facets: BTreeMap<String, Vec<[u32; 4]>> = tags.collect();
    let pairs = cell_pairs(mesh).into_iter().map(|pair| pair.sides[0]);
    let mut inner: Vec<[u32; 4]> = pairs.map(|side| vertices((side.cell, side.local))).collect();
    let mut number = 400;
    inner.retain(|_| {
        number += 1;
        number == 401 || mix(seed, number).is_multiple_of(3)
    });
    facets.insert("inner".to_owned(), inner);
    let points = order.into_iter().map(|old| mesh.points()[old]).collect();
    let data = MeshData { points, nodes, facets, ..MeshData::default() };
    Mesh::new(cell, 1, data, CellOrdering::Original).expect("a mesh")
}

/// Returns meshes of all cells, periodic and curved ones, and with hanging nodes.
pub(super) fn all_meshes() -> Vec<(String, Mesh)> {
    let mut all = Vec::new();
    for (number, (cell, counts)) in (0..).zip(CELLS) {
        let dim = if matches!(cell, "quad" | "tri") { 2 } else { 3 };
        for (pairs, sides) in PERIODIC[2..].iter().enumerate() {
            let mut mesh = scrambled(&boxed(cell, &counts[..dim]), number);
            mesh.make_periodic(sides).expect("sides of the box");
            if mesh.cell().is_tensor() {
                for seed in [1, 2] {
                    let hanging = adapted(mesh.clone(), 10 * number + seed);
                    all.push((format!("{cell} {pairs} that hangs {seed}"), hanging));
                }
            }
            all.push((format!("{cell} {pairs}"), mesh));
        }
    }
    for (cell, order) in [("quad", 2), ("quad", 3), ("hex", 2), ("tri", 2), ("tet", 2)] {
        let ball = ball(cell, order);
        if ball.cell().is_tensor() {
            all.push((format!("ball of {cell} {order} that hangs"), adapted(ball.clone(), 3)));
        }
        all.push((format!("ball of {cell} {order}"), ball));
    }
    all
}

/// Returns the mesh with some of its cells refined, so that it has hanging nodes.
pub(super) fn adapted(mesh: Mesh, seed: u64) -> Mesh {
    let mut adaptive = AdaptiveMesh::new(mesh).expect("squares or cubes");
    for step in 0..2 {
        let mesh = adaptive.mesh().expect("a mesh");
        let chosen = mix(seed, 30 + step) as usize % mesh.n_cells();
        let marked: Vec<bool> = (0..mesh.n_cells()).map(|cell| cell == chosen).collect();
        adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
    }
    adaptive.mesh().expect("a mesh")
}
