//! Bisected meshes: conformity, tags, periodic sides, shapes, coarsening, and operation counts.

#[path = "bisect/meshes.rs"]
mod meshes;
#[path = "bisect/transfers.rs"]
mod transfers;

use fem_dsl::point::Shape;
use fem_dsl::problem::FileArray;
use kernels_gen::element::Lagrange;
use meshes::{Random, all, boxes, curved, round, tagged, turned};
use runtime::files::input::ArrayRequest;
use runtime::mesh::partition::Partition;
use runtime::mesh::refine::bisect::{BisectError, Bisection, CellPath, FINEST};
use runtime::mesh::{Cell, Facet, Mesh};
use runtime::space::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::PI;

/// Bisects random leaves a few times, always including those of the first cell.
fn grow(bisection: &mut Bisection, random: &mut Random, times: usize) {
    for _ in 0..times {
        let count = bisection.n_leaves();
        let chosen: BTreeSet<usize> = (0..1 + count / 20).map(|_| random.below(count)).collect();
        bisection.refine(|leaf| leaf == 0 || chosen.contains(&leaf)).expect("few leaves");
    }
}

/// Compares a sum up to the rounding of its terms.
fn assert_same(found: f64, expected: f64, terms: usize, what: &str) {
    let bound = 8.0 * terms as f64 * f64::EPSILON * expected.abs();
    assert!((found - expected).abs() <= bound, "{what}: {found} and {expected}");
}

/// Returns the lengths or areas of the plane facets of each tag, and the sizes of the cells.
fn sizes(mesh: &Mesh) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    let size = |points: Vec<[f64; 3]>| {
        let side = |to: usize| [0, 1, 2].map(|c| points[to][c] - points[0][c]);
        let (a, b) = (side(1), if points.len() == 3 { side(2) } else { [0.0, 0.0, 2.0] });
        let cross =
            [0, 1, 2].map(|c| a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3]);
        cross.iter().map(|x| x * x).sum::<f64>().sqrt() / 2.0
    };
    for (tag, facets) in mesh.facet_tags() {
        let of = |facet: &Facet| {
            let vertices = mesh.vertices(facet.cell as usize);
            let own = mesh.cell().facets()[usize::from(facet.local)];
            size(own.iter().map(|&vertex| mesh.points()[vertices[vertex] as usize]).collect())
        };
        all.insert(format!("facets {tag}"), facets.iter().map(of).sum());
    }
    for (tag, cells) in mesh.cell_tags() {
        let of = |&cell: &u32| {
            let corner = |v: usize| mesh.points()[mesh.vertices(cell as usize)[v] as usize];
            let side = |to: usize| [0, 1, 2].map(|c| corner(to)[c] - corner(0)[c]);
            let (a, b) = (side(1), side(2));
            let c = if mesh.dim() == 3 { side(3) } else { [0.0, 0.0, 1.0] };
            let cross =
                |i: usize| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
            (0..3).map(|i| cross(i) * c[i]).sum::<f64>().abs()
        };
        all.insert(format!("cells {tag}"), cells.iter().map(of).sum());
    }
    all
}

/// Asserts conformity: every facet of one cell is part of a boundary facet of the initial mesh, and vertices are
/// distinct. The boundary of the initial mesh has the tag `outside`.
fn assert_whole(mesh: &Mesh, what: &str) {
    let facets = mesh.topology().facets();
    let once = (0..facets.len()).filter(|&facet| facets.n_cells(facet) == 1).count();
    assert_eq!(once, mesh.facet_tags()["outside"].len(), "{what}");
    let mut vertices: Vec<[u64; 3]> = mesh.points()[..mesh.n_vertices()]
        .iter()
        .map(|at| at.map(|x| (x + 0.0).to_bits()))
        .collect();
    vertices.sort_unstable();
    assert!(vertices.windows(2).all(|two| two[0] != two[1]), "{what}: a vertex lies on another");
}

#[test]
fn leaves_meet_in_whole_facets_and_inherit_tags() {
    let mut random = Random(1);
    for (name, mesh) in all(&mut random) {
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        let before = sizes(&mesh);
        for _ in 0..3 {
            grow(&mut bisection, &mut random, 2);
            let fine = bisection.mesh(&mesh).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(fine.n_cells(), bisection.n_leaves());
            assert_whole(&fine, &name);
            assert_same(fine.size(), mesh.size(), fine.n_cells(), &name);
            let after = sizes(&fine);
            assert_eq!(after.len(), before.len());
            if mesh.order() == 1 {
                for ((tag, found), expected) in after.iter().zip(before.values()) {
                    assert_same(*found, *expected, fine.n_cells(), &format!("{name} {tag}"));
                }
            }
        }
    }
}

#[test]
fn what_was_refined_is_taken_back() {
    let mut random = Random(2);
    for (name, mesh) in all(&mut random) {
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        let first = bisection.mesh(&mesh).expect("the same");
        grow(&mut bisection, &mut random, 5);
        let (mut before, mut rounds) = (bisection.n_leaves(), 0);
        loop {
            let taken = bisection.coarsen(|_| true);
            assert_eq!(bisection.n_leaves() + taken, before, "{name}");
            if taken == 0 {
                break;
            }
            (before, rounds) = (bisection.n_leaves(), rounds + 1);
            if rounds % 3 == 0 {
                assert_whole(&bisection.mesh(&mesh).expect("room"), &name);
            }
        }
        assert_eq!(bisection.n_leaves(), mesh.n_cells(), "{name}");
        let again = bisection.mesh(&mesh).expect("the same");
        assert_eq!(again, first, "{name}");
        if mesh.order() == 1 {
            assert_eq!((again.nodes(), again.points()), (mesh.nodes(), mesh.points()), "{name}");
        }
        assert_eq!((again.facet_tags(), again.cell_tags()), (mesh.facet_tags(), mesh.cell_tags()));
    }
}

/// An exact point.
type Point = [u64; 3];

/// Returns the pairs of sibling leaves by the vertex of their bisection, the midpoint of their two distinct vertices;
/// and the number of leaves at each vertex.
fn pairs(
    bisection: &Bisection,
    fine: &Mesh,
) -> (BTreeMap<Point, Vec<usize>>, BTreeMap<Point, usize>) {
    let corners = |leaf: usize| fine.vertices(leaf).iter().map(|&v| fine.points()[v as usize]);
    let (mut made, mut around) = (BTreeMap::<Point, Vec<usize>>::new(), BTreeMap::new());
    for leaf in 0..fine.n_cells() {
        for at in corners(leaf) {
            *around.entry(at.map(f64::to_bits)).or_default() += 1;
        }
        let of = |leaf: usize| Some((bisection.leaf(leaf).0, bisection.leaf(leaf).1.parent()?));
        // Siblings are consecutive.
        if leaf + 1 < fine.n_cells() && of(leaf).is_some() && of(leaf) == of(leaf + 1) {
            let apart = |a: usize, b: usize| {
                corners(a).find(|at| corners(b).all(|other| other != *at)).expect("another vertex")
            };
            let (a, b) = (apart(leaf, leaf + 1), apart(leaf + 1, leaf));
            let middle = [0, 1, 2].map(|c| (0.5 * a[c] + 0.5 * b[c]).to_bits());
            made.entry(middle).or_default().extend([leaf, leaf + 1]);
        }
    }
    (made, around)
}

#[test]
fn a_vertex_goes_where_all_leaves_at_it_may() {
    let mut random = Random(3);
    let mut went = 0;
    for (name, mesh) in all(&mut random) {
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        grow(&mut bisection, &mut random, 4);
        for round in 0..4 {
            let count = bisection.n_leaves();
            // In some rounds nearly all leaves are marked.
            let marked: Vec<bool> =
                (0..count).map(|_| random.below(10 + 90 * (round % 2)) > 3).collect();
            let before: Vec<(usize, CellPath)> =
                (0..count).map(|leaf| bisection.leaf(leaf)).collect();
            let (made, around) = pairs(&bisection, &bisection.mesh(&mesh).expect("room"));
            let goes = |at: &Point, leaves: &[usize]| {
                around.get(at) == Some(&leaves.len()) && leaves.iter().all(|&leaf| marked[leaf])
            };
            let going: Vec<usize> = made
                .iter()
                .filter(|(at, leaves)| mesh.order() == 1 && goes(at, leaves))
                .flat_map(|(_, leaves)| leaves.iter().copied().step_by(2))
                .collect();
            let taken = bisection.coarsen(|leaf| marked[leaf]);
            went += going.len();
            let after: BTreeSet<(usize, CellPath)> =
                (0..bisection.n_leaves()).map(|leaf| bisection.leaf(leaf)).collect();
            assert_eq!(after.len() + taken, count);
            // Edges in a waiting cycle are removed as well.
            assert!(taken >= going.len(), "{name}: {taken} of {}", going.len());
            for leaf in going {
                let (tree, path) = before[leaf];
                assert!(after.contains(&(tree, path.parent().expect("a child"))), "{name}");
            }
            for (leaf, _) in before.iter().zip(&marked).filter(|(_, marked)| !**marked) {
                assert!(after.contains(leaf), "{name}");
            }
            assert_whole(&bisection.mesh(&mesh).expect("room"), &name);
        }
    }
    assert!(went > 1000, "{went}");
}

#[test]
fn numbers_that_are_used_again_change_nothing() {
    let mut random = Random(4);
    for (name, mesh) in all(&mut random).into_iter().skip(5) {
        let (mut fresh, mut used) =
            (Bisection::new(&mesh).expect("simplices"), Bisection::new(&mesh).expect("simplices"));
        grow(&mut used, &mut random, 5);
        while used.coarsen(|_| true) > 0 {}
        let seed = random.below(1 << 20) as u64;
        for bisection in [&mut fresh, &mut used] {
            grow(bisection, &mut Random(seed), 4);
        }
        let [a, b] = [&fresh, &used].map(|bisection| bisection.mesh(&mesh).expect("room"));
        assert_eq!(a, b, "{name}");
    }
}

#[test]
fn one_corner_is_refined_by_25_levels() {
    let mut random = Random(5);
    for cell in [Cell::Triangle, Cell::Tetrahedron] {
        let coarse = boxes(cell, 2);
        let mesh = tagged(turned(&coarse, 0.1, &mut random), &mut random);
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        let (corner, small) = (mesh.points()[0], 0.5f64.powi(25));
        let mut rounds = 0;
        loop {
            let fine = bisection.mesh(&mesh).expect("room");
            let at = |&vertex: &u32| fine.points()[vertex as usize] == corner;
            let near: Vec<bool> = (0..fine.n_cells())
                .map(|leaf| fine.vertices(leaf).iter().any(at) && fine.diameter(leaf) > small)
                .collect();
            if !near.contains(&true) {
                break;
            }
            bisection.refine(|leaf| near[leaf]).expect("few leaves");
            rounds += 1;
        }
        assert!(rounds <= 25 * cell.dim(), "{cell}: {rounds}");
        assert!(bisection.n_leaves() < 10_000, "{cell}: {} leaves", bisection.n_leaves());
        let fine = bisection.mesh(&mesh).expect("room");
        assert_whole(&fine, "a corner");
        assert_same(fine.size(), mesh.size(), fine.n_cells(), "a corner");
        let smallest = (0..fine.n_cells()).map(|leaf| fine.diameter(leaf)).fold(1.0, f64::min);
        assert!(smallest <= small && smallest > small / 32.0, "{smallest}");
    }
}

#[test]
fn what_cannot_be_is_said_and_changes_nothing() {
    let mesh = boxes(Cell::Quadrilateral, 2);
    let error = Bisection::new(&mesh).expect_err("no simplices");
    assert!(error.to_string().starts_with("tri and tet cells are bisected, not quad"), "{error}");
    for cell in [Cell::Triangle, Cell::Tetrahedron] {
        let mesh = boxes(cell, 2);
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        for _ in 0..FINEST {
            bisection.refine(|leaf| leaf == 0).expect("few leaves");
        }
        let leaves = |bisection: &Bisection| -> Vec<(usize, CellPath)> {
            (0..bisection.n_leaves()).map(|leaf| bisection.leaf(leaf)).collect()
        };
        let before = leaves(&bisection);
        // The others are bisected first.
        let error = bisection.refine(|leaf| leaf % 2 == 0).expect_err("too fine");
        assert_eq!(error, BisectError::TooFine { cell: 0 });
        assert_eq!(leaves(&bisection), before);
        assert!(bisection.refine(|leaf| leaf + 1 == before.len()).expect("few leaves") > 0);
        while bisection.coarsen(|_| true) > 0 {}
        assert_eq!(bisection.n_leaves(), mesh.n_cells());

        let other = boxes(cell, 3);
        let error = bisection.mesh(&other).expect_err("another mesh");
        assert!(matches!(error, BisectError::Another { .. }), "{error}");
        let other = turned(&mesh, 0.0, &mut Random(6));
        assert!(matches!(bisection.mesh(&other), Err(BisectError::Another { .. })));
    }
}

/// Returns the geometry nodes on facets of exactly one cell.
fn nodes_on_boundary(mesh: &Mesh) -> BTreeSet<u32> {
    let element = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let space = Space::new(mesh, &Partition::new(mesh, 1.0), element, 1).expect("a space");
    let of = |facet: Facet| {
        let own = mesh.cell_nodes(facet.cell as usize);
        let local = space.facet_nodes(usize::from(facet.local)).iter();
        local.map(|&local| own[local as usize]).collect::<Vec<u32>>()
    };
    mesh.boundary().into_iter().flat_map(of).collect()
}

#[test]
fn new_nodes_of_round_boundaries_lie_on_them() {
    let mut random = Random(7);
    for (name, mesh) in round() {
        let dim = mesh.dim();
        let size = |radius: f64| match dim {
            2 => PI * radius * radius,
            _ => 4.0 / 3.0 * PI * radius.powi(3),
        };
        let radii: &[f64] = if name.starts_with("ball") { &[1.0] } else { &[0.4, 1.5] };
        let exact = radii.iter().map(|&radius| size(radius)).fold(0.0, |a, b| (b - a).abs());
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        let off = |mesh: &Mesh| (mesh.size() - exact).abs();
        let before = off(&mesh);
        for _ in 0..dim {
            bisection.refine(|_| true).expect("few leaves");
        }
        let after = off(&bisection.mesh(&mesh).unwrap_or_else(|error| panic!("{name}: {error}")));
        // With h halved: h² for straight cells, h⁴ or less for curved ones, down to rounding.
        let factor = if mesh.order() == 1 { 0.3 } else { 0.1 };
        assert!(after < factor * before + 1e-11 * exact, "{name}: {before}, {after}");
        grow(&mut bisection, &mut random, 3);
        let fine = bisection.mesh(&mesh).expect("room");
        let tagged: usize = fine.facet_tags().values().map(Vec::len).sum();
        assert_eq!(fine.boundary().len(), tagged, "{name}");
        for node in nodes_on_boundary(&fine) {
            let radius = fine.points()[node as usize].iter().map(|x| x * x).sum::<f64>().sqrt();
            let on = |wanted: &f64| (radius - wanted).abs() < 4.0 * f64::EPSILON * wanted;
            assert!(radii.iter().any(on), "{name}: {radius}");
        }
    }
}

/// Returns the Euler characteristic (vertices − edges + faces − cells), with periodic entities counted once.
fn euler(mesh: &Mesh) -> i64 {
    let topology = mesh.connectivity();
    let [v, e, f] = [topology.n_vertices(), topology.edges().len(), topology.faces().len()];
    match mesh.dim() {
        2 => v as i64 - e as i64 + mesh.n_cells() as i64,
        _ => v as i64 - e as i64 + f as i64 - mesh.n_cells() as i64,
    }
}

#[test]
fn periodic_sides_stay_so() {
    let mut random = Random(8);
    for cell in [Cell::Triangle, Cell::Tetrahedron] {
        for (count, pairs, is_turned) in
            (1..4).flat_map(|n| (1..=cell.dim()).flat_map(move |p| [(n, p, false), (n, p, true)]))
        {
            let name = format!("{count} {cell}, {pairs} pairs, turned: {is_turned}");
            let mut mesh = boxes(cell, count);
            if is_turned {
                mesh = turned(&mesh, 0.0, &mut random);
                for axis in 0..cell.dim() {
                    for side in 0..2 {
                        let tag = format!("{}{side}", ["x", "y", "z"][axis]);
                        mesh.tag_boundary(&tag, |at| at.iter().all(|at| at[axis] == side as f64));
                    }
                }
            }
            let sides = [["x0", "x1"], ["y0", "y1"], ["z0", "z1"]];
            mesh.make_periodic(&sides[..pairs]).expect("sides that fit");
            mesh.tag_boundary("outside", |_| true);
            let mut bisection = Bisection::new(&mesh).expect("simplices");
            for _ in 0..3 {
                grow(&mut bisection, &mut random, 2);
                let fine = bisection.mesh(&mesh).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(fine.periodic_sides(), mesh.periodic_sides());
                // The mesh conforms, and periodic sides are identified.
                assert_eq!(fine.boundary().len(), fine.facet_tags()["outside"].len(), "{name}");
                assert_eq!(euler(&fine), euler(&mesh), "{name}");
                assert_same(fine.size(), mesh.size(), fine.n_cells(), &name);
            }
            while bisection.coarsen(|_| true) > 0 {}
            let again = bisection.mesh(&mesh).expect("the same");
            assert_eq!((again.nodes(), again.points()), (mesh.nodes(), mesh.points()), "{name}");
        }
    }
}

#[test]
fn curved_cells_keep_their_map() {
    let mut random = Random(11);
    for (cell, orders) in [(Cell::Triangle, [2, 3, 8]), (Cell::Tetrahedron, [2, 3, 5])] {
        for order in orders {
            let mesh = tagged(curved(cell, order), &mut random);
            let mut bisection = Bisection::new(&mesh).expect("simplices");
            grow(&mut bisection, &mut random, 2);
            let fine = bisection.mesh(&mesh).expect("room");
            assert_eq!(fine.order(), order);
            assert_whole(&fine, "curved cells");
            let terms = fine.n_cells() * fine.nodes_per_cell();
            assert_same(fine.size(), mesh.size(), terms, &format!("{cell} {order}"));
        }
    }
}

/// Returns a `.npy` file with these numbers.
fn npy(values: &[f64]) -> Vec<u8> {
    let shape = values.len();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape},), }}\n");
    let length = (header.len() as u16).to_le_bytes();
    let numbers = values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &numbers].concat()
}

/// A linear function at the nodes of a box, numbers on its cells, and numbers on the leaves.
#[test]
fn data_of_the_first_mesh_is_inherited() {
    let mut random = Random(12);
    let stored = FileArray { path: "data.npy".into(), array: None, from_text: true };
    for (cell, dim, splits) in [(Cell::Triangle, 2, 2), (Cell::Tetrahedron, 3, 6)] {
        let mesh = boxes(cell, 2);
        let linear = |at: [f64; 3]| at[0] + 10.0 * at[1] + 100.0 * at[2];
        let layers = if dim == 3 { 3 } else { 1 };
        let nodes = (0..layers).flat_map(|k| (0..9).map(move |n| [n % 3, n / 3, k]));
        let nodes: Vec<f64> = nodes.map(|at| linear(at.map(|i| f64::from(i) / 2.0))).collect();
        let cells: Vec<f64> = (0..splits << dim).map(f64::from).collect();
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        grow(&mut bisection, &mut random, 4);
        let fine = bisection.mesh(&mesh).expect("room");
        let wanted = |mesh| ArrayRequest::new(&stored, "data", Shape::Scalar, mesh);
        let on_cells = |mesh, values: &[f64]| {
            let bytes = npy(values);
            let found = wanted(mesh).read_bytes(&bytes).expect("an array").on_cells();
            found.unwrap_or_else(|error| panic!("{error}"))
        };
        let (coarse, inherited) = (on_cells(&mesh, &cells), on_cells(&fine, &cells));
        for (leaf, value) in inherited.iter().enumerate() {
            assert_eq!(*value, coarse[bisection.leaf(leaf).0], "{cell} {leaf}");
        }
        // Leaves in the order of the box's cells.
        let mut order: Vec<usize> = (0..fine.n_cells()).collect();
        order.sort_by_key(|&leaf| coarse[bisection.leaf(leaf).0] as usize);
        let numbers: Vec<f64> = (0..fine.n_cells()).map(|n| n as f64).collect();
        let own = on_cells(&fine, &numbers);
        assert!(order.iter().zip(&numbers).all(|(&leaf, number)| own[leaf] == *number), "{cell}");
        let partition = Partition::new(&fine, 1.0);
        let element = Lagrange::continuous(cell, 1).expect("an element");
        let space = Space::new(&fine, &partition, element, 1).expect("a space");
        let bytes = npy(&nodes);
        let found = wanted(&fine).read_bytes(&bytes).expect("an array");
        let values = found.at_nodes(&space, &partition).expect("values").values;
        for leaf in 0..fine.n_cells() {
            for (&vertex, &node) in fine.vertices(leaf).iter().zip(space.cell_nodes(leaf)) {
                let expected = linear(fine.points()[vertex as usize]);
                let bound = 16.0 * f64::EPSILON * 222.0;
                assert!((values[node as usize] - expected).abs() <= bound, "{cell} {leaf}");
            }
        }
    }
}
