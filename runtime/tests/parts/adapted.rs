//! Parts of adaptive meshes, created from the leaves of each process: operators, levels and transferred functions agree
//! with the whole mesh.

use super::transfers::{self, Levels};
use super::{
    FORM, VECTORS, compare_parts, context, evenly, numbers, places, problem, random, text, text_of,
};
use fem_dsl::problem::Problem;
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::mesh::Mesh;
use runtime::problem::with_periodic_sides;
use runtime::processes::ProcessGroup;
use runtime::processes::threads::each;
use std::sync::Arc;

/// Meshes with rotated, periodic, curved, few and many trees.
const MESHES: [(&str, usize, [&str; 2], &str); 7] = [
    ("box(dim: 2, cells: 4, deform: 0.1)", 3, ["x1", "y0"], ""),
    ("box(dim: 2, cells: 1)", 2, ["x1", "y0"], ""),
    ("box(dim: 2, cells: 3)", 2, ["x1", "x0"], "periodic \"y0\" = \"y1\";"),
    ("box(dim: 3, cells: 2)", 2, ["x1", "y0"], ""),
    ("box(dim: 3, cells: [1, 2, 4])", 2, ["x1", "x0"], "periodic \"z0\" = \"z1\";"),
    ("ball(dim: 3, refine: 0, order: 2)", 2, ["surface", "surface"], ""),
    ("\"meshes/plate_hole_quad9.msh\"", 2, ["right", "left"], ""),
];

/// Randomly refines some cells, and coarsens some families.
fn adapt(adaptive: &mut AdaptiveMesh, times: usize, seed: u64) {
    let mut draw = random(seed);
    for _ in 0..times {
        let mesh = adaptive.mesh().expect("a mesh");
        let mut marks =
            |part: usize| -> Vec<bool> { (0..mesh.n_cells()).map(|_| draw(part) == 0).collect() };
        let (up, down) = (marks(4), marks(2));
        adaptive.adapt(&mesh, &up, &down).expect("few leaves");
    }
}

fn adaptive(problem: &Problem, mesh: Mesh) -> AdaptiveMesh {
    AdaptiveMesh::new(with_periodic_sides(problem, Arc::new(mesh)).expect("sides")).expect("cells")
}

#[test]
fn parts_of_leaves_add_up_to_the_whole() {
    for (seed, (mesh, degree, tags, more)) in (0..).zip(MESHES) {
        let (problem, mesh) = problem(&text(mesh, degree, tags, more));
        let mut adaptive = adaptive(&problem, mesh);
        adapt(&mut adaptive, 2, seed);
        let whole = adaptive.mesh().expect("a mesh");
        let part =
            |_: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| adaptive.part(group).expect("a part");
        compare_parts(
            None,
            &problem,
            whole.clone(),
            &[2, 3 + seed as usize % 3],
            &part,
            Some(&evenly),
        );
        for part in each(2, |group| adaptive.part(&group).expect("a part")) {
            // The whole mesh, built on demand, equals that of one process.
            assert_eq!(**part.cut().expect("a part").whole().expect("room"), whole);
        }
    }
}

/// More processes than leaves.
#[test]
fn a_process_may_have_no_leaf() {
    let (problem, mesh) = problem(&text("box(dim: 2, cells: 1)", 2, ["x1", "y0"], ""));
    let adaptive = adaptive(&problem, mesh);
    let part = |_: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| adaptive.part(group).expect("a part");
    compare_parts(None, &problem, adaptive.mesh().expect("a mesh"), &[2, 3], &part, None);
}

/// Hanging nodes, and processes without cells.
#[test]
fn a_process_may_have_no_leaf_where_nodes_hang() {
    let (problem, mesh) = problem(&text("box(dim: 2, cells: [2, 1])", 2, ["x1", "y0"], ""));
    let mut adaptive = adaptive(&problem, mesh);
    let mesh = adaptive.mesh().expect("a mesh");
    adaptive.adapt(&mesh, &[true, false], &[]).expect("few leaves");
    let mesh = adaptive.mesh().expect("a mesh");
    assert!(mesh.hanging().is_some() && mesh.n_cells() == 5);
    let part = |_: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| adaptive.part(group).expect("a part");
    compare_parts(None, &problem, mesh, &[4, 7], &part, None);
}

#[test]
fn transfers_between_parts_of_forests_are_those_of_the_whole() {
    for (mesh, seed) in [
        ("box(dim: 2, cells: 8)", 1),
        ("box(dim: 3, cells: 4)", 2),
        ("ball(dim: 2, refine: 1)", 3),
        ("box(dim: 2, cells: 1)", 4),
    ] {
        let tag = if mesh.starts_with("ball") { "surface" } else { "x0" };
        let text = transfers::FORM.replace("MESH", mesh).replace("x0", tag);
        let (problem, mesh) = problem(&text);
        let mut adaptive = adaptive(&problem, mesh);
        while adaptive.n_cells() < 32 {
            let mesh = adaptive.mesh().expect("a mesh");
            adaptive.adapt(&mesh, &vec![true; mesh.n_cells()], &[]).expect("few leaves");
        }
        adapt(&mut adaptive, 2, seed);
        for size in [2, 3] {
            let part = |group: &Arc<dyn ProcessGroup>| adaptive.part(group).expect("a part");
            let depths = each(size, |group| {
                let (mut part, mut depth) = (part(&group), 0);
                while let Ok(coarser) = part.coarsened() {
                    (part, depth) = (coarser.mesh, depth + 1);
                }
                depth
            });
            assert!(depths.iter().all(|&depth| depth == depths[0] && depth > 0), "{depths:?}");
            let mut fine = Arc::new(adaptive.mesh().expect("a mesh"));
            for times in 0..depths[0] {
                let coarser = fine.coarsened().expect("a coarser forest");
                let all = Levels::of_meshes(&problem, &fine, &coarser);
                transfers::compare(&format!("{seed}, {times}"), &all, size, |group| {
                    Levels::below(&problem, part(group), times)
                });
                fine = coarser.mesh;
            }
        }
    }
}

/// A function on two consecutive adaptive meshes with different distributions.
#[test]
fn functions_move_from_parts_to_parts() {
    let simplices = ("box(dim: 2, cells: 2, cell: tri)", 2, ["x1", "y0"], "");
    let nodes = MESHES.into_iter().chain([simplices]).map(|case| (FORM, case));
    let vectors = [MESHES[0], MESHES[2], MESHES[4], simplices].map(|case| (VECTORS, case));
    for (seed, (form, (mesh, degree, tags, more))) in (0..).zip(nodes.chain(vectors)) {
        let (problem, mesh) = problem(&text_of(form, mesh, degree, tags, more));
        let mut before = adaptive(&problem, mesh);
        adapt(&mut before, 2, seed);
        let mut behind = before.clone();
        adapt(&mut behind, 1, 100 + seed);
        let on = [&before, &behind]
            .map(|adaptive| context(&problem, adaptive.mesh().expect("a mesh")).on);
        let u = numbers(on[0].n_dofs(), 0.3);
        let known = AdaptiveMesh::transfer(&on[0], &u, &on[1]).expect("one forest");
        for size in [2, 3] {
            let found = each(size, |group| {
                let own = [&before, &behind].map(|adaptive| {
                    let part = adaptive.part(&group).expect("a part");
                    context(&problem, part).on
                });
                let u: Vec<f64> = places(&own[0], &on[0]).iter().map(|&at| u[at]).collect();
                let moved = AdaptiveMesh::transfer(&own[0], &u, &own[1]).expect("one forest");
                (moved, places(&own[1], &on[1]))
            });
            let mut seen = vec![None; known.len()];
            for (moved, places) in &found {
                for (&value, &at) in moved.iter().zip(places) {
                    let off = (value - known[at]).abs();
                    assert!(off < 1e-13, "{seed}, {size} parts, {at}: {value}, not {}", known[at]);
                    let bits = *seen[at].get_or_insert(value.to_bits());
                    assert_eq!(bits, value.to_bits(), "{seed}, {size} parts, {at}");
                }
            }
            assert!(seen.iter().all(Option::is_some), "an unknown is nowhere");
        }
    }
}
