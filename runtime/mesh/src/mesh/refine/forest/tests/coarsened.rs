//! Coarser meshes: inverse of refinement in any numbering, and rejected cases.

use super::*;
use crate::mesh::shape::CellShape;
use crate::mesh::{CoarsenedMesh, CoarseningError, Facet, generate, stored};
use fem_dsl::problem::Argument;
use kernels_gen::element::{Lagrange, interpolation};

/// Generates a mesh.
fn generated(name: &str, arguments: &[(&str, Argument)]) -> Mesh {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    generate::generate(name, &arguments.collect()).expect("a mesh")
}

fn number(value: usize) -> Argument {
    Argument::Number(value as f64)
}

fn word(cell: Cell) -> Argument {
    Argument::Word(cell.name().to_owned())
}

/// Returns a box of unit cells.
fn boxed(cell: Cell, cells: [usize; 3]) -> Mesh {
    let cells = || Argument::Numbers(cells[..cell.dim()].iter().map(|&n| n as f64).collect());
    let from = Argument::Numbers(vec![0.0; cell.dim()]);
    generated("box", &[("cells", cells()), ("from", from), ("to", cells()), ("cell", word(cell))])
}

fn tensor(dim: usize) -> Cell {
    if dim == 2 { Cell::Quadrilateral } else { Cell::Hexahedron }
}

/// Returns the same mesh with permuted and randomly rotated cells.
fn turned(mesh: &Mesh, random: &mut Random) -> Mesh {
    let mut order: Vec<u32> = (0..mesh.n_cells() as u32).collect();
    (1..order.len()).for_each(|at| order.swap(at, random.below(at + 1)));
    let mut new = vec![0; order.len()];
    (0..).zip(&order).for_each(|(own, &old)| new[old as usize] = own);
    let mut nodes: Vec<u32> =
        order.iter().flat_map(|&cell| mesh.cell_nodes(cell as usize)).copied().collect();
    let (shape, turns) =
        (CellShape::new(mesh.cell(), mesh.order()).expect("a shape"), turns(mesh.dim()));
    let mirrored = mesh.mirrored();
    let choice: Vec<usize> = order.iter().map(|_| random.below(turns.len())).collect();
    shape.renumber(&mut nodes, |cell, _| {
        let mut turn = [0, 1, 2, 3, 4, 5, 6, 7];
        for (new, &old) in turn.iter_mut().zip(&turns[choice[cell]]) {
            // Sorted cells may be mirrored, given ones may not.
            *new = if mirrored[order[cell] as usize] { old as u8 ^ 1 } else { old as u8 };
        }
        turn
    });
    let facet = |facet: &Facet| {
        let all = mesh.vertices(facet.cell as usize);
        let mut vertices = [u32::MAX; 4];
        let local = mesh.cell().facets()[usize::from(facet.local)];
        vertices.iter_mut().zip(local).for_each(|(vertex, &v)| *vertex = all[v]);
        vertices
    };
    let facets = mesh.facet_tags().iter();
    let facets = facets.map(|(tag, all)| (tag.clone(), all.iter().map(facet).collect())).collect();
    let cells = mesh.cell_tags().iter();
    let moved = |all: &Vec<u32>| all.iter().map(|&cell| new[cell as usize]).collect();
    let cells = cells.map(|(tag, all)| (tag.clone(), moved(all))).collect();
    let points = mesh.points().to_vec();
    let parts = MeshData { points, nodes, facets, cells, ..MeshData::default() };
    let mut other =
        Mesh::new(mesh.cell(), mesh.order(), parts, CellOrdering::Original).expect("a mesh");
    other.make_periodic(mesh.periodic_sides()).expect("sides that fit");
    other
}

/// Returns the point of a cell at given reference coordinates.
fn place(mesh: &Mesh, cell: usize, at: [f64; 3]) -> [f64; 3] {
    let element = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    mesh.place_of(cell, &interpolation(element, &[at]))
}

/// Returns the distance of two points (maximum norm).
fn apart(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|c| (a[c] - b[c]).abs()).fold(0.0, f64::max)
}

fn sorted(mut vertices: Vec<u32>) -> Vec<u32> {
    vertices.sort_unstable();
    vertices
}

/// Checks invariants of any coarser mesh by geometry alone; on tensor cells all nodes must lie on the maps of the
/// children.
fn check(fine: &Mesh, coarser: &CoarsenedMesh) {
    let (mesh, cell, each) = (&*coarser.mesh, fine.cell(), coarser.each());
    assert_eq!(sorted(coarser.children.clone()), (0..fine.n_cells() as u32).collect::<Vec<_>>());
    assert_eq!(coarser.places.len(), fine.n_cells());
    assert_eq!((mesh.cell(), mesh.order()), (cell, fine.order()));
    // These numbers of vertices, edges and faces require that all neighbours agree.
    assert_eq!(EntityCounts::of(mesh).refined(1), EntityCounts::of(fine));
    let joined = |mesh: &Mesh| {
        let all = mesh.connectivity();
        let mut entities = [all.n_vertices(), all.edges().len(), all.faces().len(), 0];
        entities[mesh.dim()] = mesh.n_cells();
        entities.map(|n| n as u64)
    };
    let counts = EntityCounts { entities: joined(mesh), ..EntityCounts::of(mesh) };
    assert_eq!(counts.refined(1).entities, joined(fine));
    let element = Lagrange::continuous(cell, mesh.order()).expect("an element");
    for own in 0..mesh.n_cells() {
        let mut known: BTreeMap<[i64; 3], u32> = BTreeMap::new();
        let mut nodes = BTreeSet::new();
        for (number, &child) in coarser.children_of(own).iter().enumerate() {
            let map = coarser.map(own, number);
            for (corner, &vertex) in fine.vertices(child as usize).iter().enumerate() {
                let at = map.at(&cell.vertex(corner));
                let halves = at.map(|x| (2.0 * x) as i64);
                // Each point is one vertex.
                assert_eq!(*known.entry(halves).or_insert(vertex), vertex);
                let whole = (0..cell.vertex_count()).find(|&v| cell.vertex(v) == at);
                if let Some(whole) = whole {
                    let there = mesh.points()[mesh.vertices(own)[whole] as usize];
                    assert_eq!(there, fine.points()[vertex as usize]);
                }
            }
            if cell.is_tensor() {
                let lower = [0, 1, 2].map(|axis| (number >> axis & 1) as f64 / 2.0);
                let centre = map.at(&cell.centre());
                assert_eq!(
                    centre,
                    [0, 1, 2].map(|a| if a < mesh.dim() { lower[a] + 0.25 } else { 0.0 })
                );
                nodes.extend(check_nodes(fine, coarser, (own, number, child), &element));
            }
        }
        let vertices: BTreeSet<u32> = known.values().copied().collect();
        assert_eq!(vertices.len(), known.len(), "one vertex, one place");
        assert!(!cell.is_tensor() || nodes.len() == element.count(), "each node is in a child");
        assert!(coarser.children_of(own).len() == each);
    }
    check_tags(fine, mesh);
}

/// Checks the nodes of a coarse cell that lie in a child.
fn check_nodes(
    fine: &Mesh,
    coarser: &CoarsenedMesh,
    (own, number, child): (usize, usize, u32),
    element: &Lagrange,
) -> Vec<usize> {
    let (mesh, map) = (&coarser.mesh, coarser.map(own, number));
    let (origin, axes) = (map.origin(), map.axes());
    let mut found = Vec::new();
    for (local, node) in element.nodes().iter().enumerate() {
        // The axes of a child are halves of unit vectors.
        let along = |axis: usize| {
            (0..3).map(|c| 4.0 * axes[axis][c] * (node.point[c] - origin[c])).sum::<f64>()
        };
        let at = [0, 1, 2].map(|axis| if axis < mesh.dim() { along(axis) } else { 0.0 });
        if at.iter().all(|x| (0.0..=1.0).contains(x)) {
            let here = mesh.points()[mesh.cell_nodes(own)[local] as usize];
            let size = fine.diameter(child as usize) + here.iter().map(|x| x.abs()).sum::<f64>();
            let rounding = 256.0 * f64::EPSILON * size;
            assert!(apart(place(fine, child as usize, at), here) <= rounding, "node {local}");
            found.push(local);
        }
    }
    found
}

/// Checks that tags agree, with the right numbers of cells and facets and the same centre.
fn check_tags(fine: &Mesh, coarse: &Mesh) {
    let parts = 1 << fine.dim();
    let names = |mesh: &Mesh| -> Vec<String> {
        mesh.facet_tags().keys().chain(mesh.cell_tags().keys()).cloned().collect()
    };
    assert_eq!(names(fine), names(coarse));
    assert_eq!(fine.periodic_sides(), coarse.periodic_sides());
    assert_eq!(fine.boundary().len(), coarse.boundary().len() * parts / 2);
    for (tag, cells) in coarse.cell_tags() {
        assert_eq!(fine.cell_tags()[tag].len(), parts * cells.len(), "{tag}");
        assert!(cells.is_sorted());
    }
    for (tag, facets) in coarse.facet_tags() {
        assert_eq!(fine.facet_tags()[tag].len(), parts / 2 * facets.len(), "{tag}");
        let vertices = |mesh: &Mesh| -> BTreeSet<[u64; 3]> {
            let of = |facet: &Facet| mesh.facet_vertices_of(*facet);
            let all = mesh.facet_tags()[tag].iter().flat_map(of);
            all.map(|v| mesh.points()[v as usize].map(f64::to_bits)).collect()
        };
        assert!(vertices(coarse).is_subset(&vertices(fine)), "{tag}");
    }
}

impl Mesh {
    fn facet_vertices_of(&self, facet: Facet) -> Vec<u32> {
        let all = self.vertices(facet.cell as usize);
        self.cell().facets()[usize::from(facet.local)].iter().map(|&v| all[v]).collect()
    }
}

/// Coarsens a mesh and checks the result.
fn coarsened(fine: &Mesh) -> CoarsenedMesh {
    let coarser = fine.coarsened().unwrap_or_else(|error| panic!("{error}"));
    check(fine, &coarser);
    if !fine.cell().is_tensor() {
        return coarser;
    }
    let first = |cell: usize| {
        let children = coarser.children_of(cell).iter().enumerate();
        children.map(|(number, &child)| (child, number)).min().unwrap_or_default()
    };
    let firsts: Vec<(u32, usize)> = (0..coarser.mesh.n_cells()).map(first).collect();
    assert!(firsts.is_sorted());
    for (cell, (_, number)) in firsts.into_iter().enumerate() {
        let axes = coarser.map(cell, number).axes();
        let halves = |axis: usize| [0, 1, 2].map(|c| if c == axis { 0.5 } else { 0.0 });
        assert!((0..fine.dim()).all(|axis| axes[axis] == halves(axis)), "{axes:?}");
    }
    coarser
}

#[test]
fn what_was_refined_comes_back_in_any_numbering() {
    let mut random = Random(7);
    for (number, (mut mesh, _)) in meshes(&mut random).into_iter().enumerate() {
        mesh.tag_cells("half", |at| at[0] < 64.0);
        let (counts, volume) = (EntityCounts::of(&mesh), mesh.size());
        let joined = mesh.connectivity().n_vertices();
        let refined = mesh.refined(1).expect("room");
        for fine in [turned(&refined, &mut random), turned(&refined, &mut random), refined] {
            let coarser = coarsened(&fine);
            assert_eq!(EntityCounts::of(&coarser.mesh), counts, "mesh {number}");
            assert!((coarser.mesh.size() - volume).abs() < 1e-12 * volume, "mesh {number}");
            assert_eq!(coarser.mesh.connectivity().n_vertices(), joined, "mesh {number}");
        }
    }
}

#[test]
fn boxes_are_halved_until_one_cell_is_left() {
    let mut random = Random(8);
    for (cells, times) in [([64, 64, 1], 6), ([8, 4, 1], 2)] {
        let mut mesh = boxed(Cell::Quadrilateral, cells);
        for _ in 0..times {
            let coarser = coarsened(&mesh);
            assert_eq!(coarser.maps.len(), 4, "all cells have the axes of their parents");
            mesh = Mesh::clone(&coarser.mesh);
        }
        assert_eq!(mesh.n_cells(), (cells[0] >> times) * (cells[1] >> times));
        assert_eq!(mesh.facets_tagged("x0").map(<[_]>::len), Ok(cells[1] >> times));
    }
    let mesh = boxed(Cell::Hexahedron, [8, 4, 4]);
    let other = turned(&mesh, &mut random);
    for mesh in [mesh, other] {
        let coarser = coarsened(&coarsened(&mesh).mesh);
        assert_eq!(coarser.mesh.n_cells(), 2);
        assert_eq!(coarser.mesh.facets_tagged("y1").map(<[_]>::len), Ok(2));
    }
}

#[test]
fn children_lie_where_the_coarse_map_has_them() {
    let mut random = Random(9);
    for dim in [2, 3] {
        let fine = grid(dim, [4, 6, 2], &mut random);
        let coarser = coarsened(&fine);
        assert!(coarser.maps.len() > 1 << dim, "cells are turned");
        for cell in 0..coarser.mesh.n_cells() {
            for (number, &child) in coarser.children_of(cell).iter().enumerate() {
                for (corner, &vertex) in fine.vertices(child as usize).iter().enumerate() {
                    let at = coarser.map(cell, number).at(&fine.cell().vertex(corner));
                    assert_eq!(place(&coarser.mesh, cell, at), fine.points()[vertex as usize]);
                }
            }
        }
    }
}

#[test]
fn odd_numbers_of_cells_are_refused() {
    for cells in [[3, 4, 2], [4, 3, 2], [4, 6, 5], [5, 5, 5], [1, 4, 4], [2, 4, 1]] {
        for dim in [2, 3] {
            let mesh = boxed(tensor(dim), cells);
            let is_even = cells[..dim].iter().all(|n| n % 2 == 0);
            match mesh.coarsened() {
                Ok(_) => assert!(is_even, "{cells:?}"),
                Err(CoarseningError::Count { cells, each }) => {
                    assert!(!is_even && cells % each > 0)
                }
                Err(CoarseningError::Patches { each, .. }) => assert!(!is_even && each == 1 << dim),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn eight_cells_around_a_line_are_no_patch() {
    let mut random = Random(10);
    for dim in [2, 3] {
        assert_eq!(coarsened(&around(dim, 4, &mut random)).mesh.n_cells(), 1);
        // Their corners agree: boundary facets are even.
        let error = around(dim, 8, &mut random).coarsened().expect_err("eight around a line");
        assert!(matches!(error, CoarseningError::Patches { .. }), "{error}");
    }
}

#[test]
fn what_touches_at_a_corner_must_agree_on_it() {
    let mut random = Random(11);
    let mut points = Vec::new();
    let mut cells = Vec::new();
    let mut square = |corner: &dyn Fn(usize, usize) -> [f64; 3]| {
        let start = points.len() as u32;
        points.extend((0..9).map(|n| corner(n % 3, n / 3)));
        cells.extend([0, 1, 3, 4].map(|n| [n, n + 1, n + 3, n + 4].map(|n| n + start).to_vec()));
    };
    square(&|x, y| [x as f64, y as f64, 0.0]);
    // A square whose lower side is a V; its tip is the corner (2, 2) of the first square.
    square(&|x, y| [1.0 + x as f64, 2.0 + (x as f64 - 1.0).abs() + y as f64, 0.0]);
    let error = |points: &[[f64; 3]], cells: &[Vec<u32>], random: &mut Random| {
        mesh(Cell::Quadrilateral, points.to_vec(), cells, random).coarsened()
    };
    for cell in cells.iter_mut().flatten() {
        // The tip.
        *cell = if *cell == 10 { 8 } else { *cell };
    }
    assert_eq!(error(&points, &cells, &mut random), Err(CoarseningError::Contact));
    // Each alone is a patch.
    for half in [&cells[..4], &cells[4..]] {
        assert!(error(&points, half, &mut random).is_ok());
    }
}

#[test]
fn balls_and_shells_of_all_orders() {
    let mut random = Random(12);
    for dim in [2, 3] {
        for (name, order, refine) in
            [("ball", 1, 2), ("ball", 2, 1), ("ball", 3, 1), ("shell", 2, 2), ("shell", 4, 1)]
        {
            let arguments =
                [("refine", number(refine)), ("order", number(order)), ("cell", word(tensor(dim)))];
            let mesh = generated(name, &arguments);
            let size = mesh.size();
            for fine in [turned(&mesh, &mut random), mesh] {
                let coarser = coarsened(&fine);
                assert_eq!(coarser.mesh.n_cells() << dim, fine.n_cells());
                assert_eq!(coarser.mesh.spheres(), fine.spheres());
                // Chords of order 1 cut off more if they are longer.
                let lost = (coarser.mesh.size() / size - 1.0).abs();
                assert!(lost < [0.5, 0.05, 0.02, 0.01][order - 1], "{name} {dim} {order}: {lost}");
            }
        }
    }
}

#[test]
fn meshes_of_gmsh_come_back() {
    let mut random = Random(13);
    for name in
        ["plate_hole_quad", "plate_hole_quad9", "cylinder_quad9", "elbow_hex", "elbow_hex27"]
    {
        let mesh = stored(name);
        let (counts, size) = (EntityCounts::of(&mesh), mesh.size());
        let fine = mesh.refined(1).expect("room");
        for fine in [turned(&fine, &mut random), fine] {
            let coarser = coarsened(&fine);
            assert_eq!(EntityCounts::of(&coarser.mesh), counts, "{name}");
            assert!((coarser.mesh.size() - size).abs() < 1e-12 * size, "{name}");
        }
    }
}

#[test]
fn meshes_with_a_structure_of_their_own_have_coarser_ones() {
    for (name, times) in [("plate_hole_quad", 0), ("elbow_hex", 2), ("elbow_hex27", 2)] {
        let mut mesh = stored(name);
        for _ in 0..times {
            mesh = Mesh::clone(&coarsened(&mesh).mesh);
        }
        assert!(mesh.coarsened().is_err(), "{name}: {}", mesh.n_cells());
    }
}

#[test]
fn periodic_boxes_stay_periodic() {
    let mut random = Random(14);
    for dim in [2, 3] {
        for pairs in 1..=dim {
            let mut mesh = grid(dim, [4, 4, 4], &mut random);
            let sides = [["x0", "x1"], ["y0", "y1"], ["z0", "z1"]];
            mesh.make_periodic(&sides[..pairs]).expect("sides that fit");
            let coarser = coarsened(&coarsened(&mesh).mesh).mesh;
            assert_eq!((coarser.n_cells(), coarser.periodic_sides().len()), (1, pairs));
            assert_eq!(coarser.boundary().len(), 2 * (dim - pairs));
            // Odd numbers of cells still have no patches.
            let mut mesh = grid(dim, [3, 4, 4], &mut random);
            mesh.make_periodic(&sides[..pairs]).expect("sides that fit");
            assert!(matches!(mesh.coarsened(), Err(CoarseningError::Patches { .. })));
        }
    }
}

/// Returns a ring of `count` cells, two cells wide.
fn ring(count: usize, random: &mut Random) -> Mesh {
    let at = |n: usize| {
        let (radius, angle) =
            (2.0 + (n / count) as f64, std::f64::consts::TAU * (n % count) as f64);
        let angle = angle / count as f64;
        [radius * angle.cos(), radius * angle.sin(), 0.0]
    };
    let cell = |n: usize| {
        let (row, here) = (n / count * count, n % count);
        let next = (here + 1) % count;
        [row + here, row + count + here, row + next, row + count + next].map(|n| n as u32).to_vec()
    };
    let cells: Vec<Vec<u32>> = (0..2 * count).map(cell).collect();
    mesh(Cell::Quadrilateral, (0..3 * count).map(at).collect(), &cells, random)
}

#[test]
fn tags_say_which_cells_go_together() {
    let mut random = Random(15);
    // Both pairings around the ring are valid.
    for start in 0..4 {
        let mut mesh = ring(12, &mut random);
        assert_eq!(coarsened(&mesh).mesh.n_cells(), 6);
        let angle =
            |at: &[f64; 3]| (at[1].atan2(at[0]) / std::f64::consts::TAU * 12.0 + 12.0) % 12.0;
        let within = |x: f64, count: usize| x > start as f64 && x < (start + count) as f64;
        mesh.tag_cells("sector", |at| within(angle(at), 4));
        let tagged = coarsened(&mesh).mesh;
        assert_eq!(tagged.cells_tagged("sector").map(<[_]>::len), Ok(2));
        let mut other = mesh.clone();
        let middle = |at: &[[f64; 3]]| [0, 1, 2].map(|c| (at[0][c] + at[1][c]) / 2.0);
        other.tag_boundary("arc", |at| within(angle(&middle(at)), 4));
        assert_eq!(coarsened(&other).mesh.facets_tagged("arc").map(<[_]>::len), Ok(4));
        // One cell and one facet more.
        mesh.tag_cells("five", |at| within(angle(at), 5));
        assert!(matches!(mesh.coarsened(), Err(CoarseningError::Tags { .. })));
        other.tag_boundary("five", |at| within(angle(&middle(at)), 5));
        assert!(matches!(other.coarsened(), Err(CoarseningError::Tags { .. })));
        // An odd ring has no patches, with any tags.
        let mut odd = ring(10, &mut random);
        odd.tag_cells("one", |at| at[0] > 2.0 && at[1] > 0.0 && at[1] < 1.5);
        assert_eq!(odd.coarsened().map(|coarser| coarser.mesh.n_cells()).ok(), None);
    }
}

#[test]
fn tags_that_end_inside_of_a_patch_are_refused() {
    for dim in [2, 3] {
        for (wall, is_right) in [(2.0, true), (1.0, false), (3.0, false)] {
            let mut mesh = boxed(tensor(dim), [4, 4, 4]);
            mesh.tag_cells("left", |at| at[0] < wall);
            assert_eq!(mesh.coarsened().is_ok(), is_right);
            let mut mesh = boxed(tensor(dim), [4, 4, 4]);
            mesh.tag_boundary("part", |at| at.iter().all(|at| at[1] == 0.0 && at[0] <= wall));
            let result = mesh.coarsened();
            assert_eq!(result.is_ok(), is_right);
            match result {
                Ok(_) => check(&mesh, &coarsened(&mesh)),
                Err(error) => assert!(matches!(error, CoarseningError::Tags { .. }), "{error}"),
            }
        }
        let mut mesh = boxed(tensor(dim), [3, 4, 4]);
        mesh.tag_cells("left", |at| at[0] < 1.0);
        let error = mesh.coarsened().expect_err("an odd number of cells");
        assert!(matches!(error, CoarseningError::Patches { .. }), "{error}");
    }
}

#[test]
fn cells_that_are_folded_when_they_are_coarse_are_refused() {
    // Two cells of 100° each are valid, one of 200° is not.
    let at = |n: usize| {
        let (radius, angle) = (1.0 + 0.5 * (n % 3) as f64, (100.0 * (n / 3) as f64).to_radians());
        [radius * angle.cos(), radius * angle.sin(), 0.0]
    };
    let cells = [0, 1, 3, 4].map(|n: u32| vec![n, n + 1, n + 3, n + 4]);
    let fine = mesh(Cell::Quadrilateral, (0..9).map(at).collect(), &cells, &mut Random(16));
    let error = fine.coarsened().expect_err("a folded cell");
    assert!(matches!(error, CoarseningError::Mesh(MeshError::Inverted { .. })), "{error}");
}

#[test]
fn whole_families_become_one() {
    let mesh = Arc::new(boxed(Cell::Quadrilateral, [2, 2, 1]));
    let mut forest = Forest::new(&mesh).expect("a forest");
    forest.refine(|_| true).expect("few leaves");
    forest.refine(|leaf| leaf < 4).expect("few leaves");
    let fine = forest.mesh(&mesh).expect("a mesh");
    // Of 28 cells, 16 form four families, whose parents become a family only afterwards, and 12 form three.
    let coarser = fine.coarsened().expect("families");
    assert_eq!((fine.n_cells(), coarser.mesh.n_cells()), (28, 7));
    for cell in 0..7 {
        let own = coarser.children_of(cell);
        assert_eq!(own.len(), 4);
        let area: f64 = own.iter().map(|&child| area(&fine, child as usize)).sum();
        assert!((area - self::area(&coarser.mesh, cell)).abs() < 1e-15);
    }
    let coarsest = coarser.mesh.coarsened().expect("one family");
    assert_eq!(coarsest.mesh.n_cells(), 4);
    let stays = (0..4).filter(|&cell| coarsest.children_of(cell).len() == 1).count();
    assert_eq!(stays, 3);
    // Level 0 again: patches of the mesh of the trees.
    assert_eq!(coarsest.mesh.coarsened().map(|coarser| coarser.mesh.n_cells()), Ok(1));
}

#[test]
fn a_chain_of_cells_has_too_few_families() {
    let mesh = Arc::new(boxed(Cell::Quadrilateral, [1, 1, 1]));
    let mut forest = Forest::new(&mesh).expect("a forest");
    for _ in 0..6 {
        forest.refine(|leaf| leaf == 0).expect("few leaves");
    }
    let fine = forest.mesh(&mesh).expect("a mesh");
    assert_eq!(fine.coarsened(), Err(CoarseningError::Families { cells: 19, coarser: 16 }));
}

/// Returns the area of a square cell.
fn area(mesh: &Mesh, cell: usize) -> f64 {
    let [a, b] = [0, 3].map(|at| mesh.points()[mesh.vertices(cell)[at] as usize]);
    ((b[0] - a[0]) * (b[1] - a[1])).abs()
}

#[test]
fn simplices_have_what_they_were_refined_from() {
    for cell in [Cell::Triangle, Cell::Tetrahedron] {
        for order in [1, 2] {
            let arguments = [("refine", number(0)), ("order", number(order)), ("cell", word(cell))];
            let ball = generated("ball", &arguments);
            let mut mesh = boxed(cell, [2, 3, 1]);
            mesh.tag_cells("half", |at| at[0] < 1.0);
            mesh.make_periodic(&[["x0", "x1"]]).expect("sides that fit");
            for mesh in if order == 1 { vec![mesh, ball] } else { vec![ball] } {
                assert_eq!(mesh.coarsened(), Err(CoarseningError::Simplices));
                let mut fine = mesh.clone().refined(2).expect("room");
                fine.tag_cells("later", |_| true);
                let middle = coarsened(&fine);
                straight(&fine, &middle);
                let last = coarsened(&middle.mesh);
                straight(&middle.mesh, &last);
                assert_eq!(last.mesh.points(), mesh.points());
                assert_eq!(last.mesh.nodes(), mesh.nodes());
                let first = fine.centre(0);
                fine.tag_cells("some", |at| *at == first);
                assert!(matches!(fine.coarsened(), Err(CoarseningError::Tags { .. })));
            }
        }
    }
}

/// Checks that children of straight cells lie on the coarse map.
fn straight(fine: &Mesh, coarser: &CoarsenedMesh) {
    let mut found = 0;
    for cell in 0..coarser.mesh.n_cells() {
        for (number, &child) in coarser.children_of(cell).iter().enumerate() {
            for (corner, &vertex) in fine.vertices(child as usize).iter().enumerate() {
                let at = coarser.map(cell, number).at(&fine.cell().vertex(corner));
                let there = fine.points()[vertex as usize];
                found += usize::from(apart(place(&coarser.mesh, cell, at), there) < 1e-14);
            }
        }
    }
    let all = fine.n_cells() * fine.cell().vertex_count();
    let is_round = !fine.spheres().is_empty();
    assert!(if is_round { 2 * found > all } else { found == all }, "{found} of {all}");
}
