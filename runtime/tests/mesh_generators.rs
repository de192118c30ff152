//! Mesh generators: sizes, tags, orientation, cell order, and messages for wrong arguments.

use fem_dsl::problem::Argument;
use runtime::mesh::generate::{counts, generate};
use runtime::mesh::{Cell, CellOrdering, EntityCounts, Mesh, MeshData, Statistics};
use std::collections::BTreeMap;
use std::f64::consts::PI;

fn arguments(text: &str) -> BTreeMap<String, Argument> {
    let mut arguments = BTreeMap::new();
    for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let (name, value) = item.split_once('=').expect("name=value");
        let argument = if let Some(list) = value.strip_prefix('[') {
            let list = list.trim_end_matches(']');
            Argument::Numbers(list.split(',').map(|x| x.trim().parse().expect("number")).collect())
        } else {
            value.parse().map_or_else(|_| Argument::Word(value.to_owned()), Argument::Number)
        };
        arguments.insert(name.to_owned(), argument);
    }
    arguments
}

fn mesh(name: &str, text: &str) -> Mesh {
    generate(name, &arguments(text)).unwrap_or_else(|error| panic!("{name}({text}): {error}"))
}

fn message(name: &str, text: &str) -> String {
    generate(name, &arguments(text)).expect_err("wrong arguments").to_string()
}

/// Compares up to the rounding of a sum over a mesh.
fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e3 * f64::EPSILON * expected.abs().max(1.0)
}

/// Returns the Euler characteristic: vertices − edges + faces − cells.
fn euler(mesh: &Mesh) -> i64 {
    let t = mesh.topology();
    let last = if mesh.dim() == 2 { t.n_cells() as i64 } else { 0 };
    let three = if mesh.dim() == 3 { t.faces().len() as i64 - t.n_cells() as i64 } else { 0 };
    t.n_vertices() as i64 - t.edges().len() as i64 + last + three
}

#[test]
fn boxes_of_all_cells() {
    for (cell, count, dim) in [("tri", 2, 2), ("quad", 1, 2), ("tet", 6, 3), ("hex", 1, 3)] {
        let cells = if dim == 2 { "[5,3]" } else { "[5,3,2]" };
        let (from, to) = if dim == 2 { ("[-1,0]", "[1,3]") } else { ("[-1,0,2]", "[1,3,4]") };
        for deform in ["0", "0.1"] {
            let text =
                format!("dim={dim};cell={cell};cells={cells};from={from};to={to};deform={deform}");
            let mesh = mesh("box", &text);
            let boxes = if dim == 2 { 15 } else { 30 };
            assert_eq!(mesh.n_cells(), boxes * count, "{text}");
            assert_eq!(euler(&mesh), 1, "{text}");
            assert!(mesh.topology().is_oriented(), "{text}");
            assert_eq!(mesh.is_affine(), deform == "0" || cell.starts_with('t'), "{text}");
            let volume = if dim == 2 { 6.0 } else { 12.0 };
            assert!(close(mesh.size(), volume), "{text}: {}", mesh.size());
            let tagged: usize = mesh.facet_tags().values().map(Vec::len).sum();
            assert_eq!(tagged, mesh.boundary().len(), "{text}");
            let split = if cell == "tet" { 2 } else { 1 };
            let expected = if dim == 2 { 3 } else { 6 * split };
            assert_eq!(mesh.facets_tagged("x0").map(<[_]>::len), Ok(expected), "{text}");
        }
    }
}

#[test]
fn deformed_cells_are_nowhere_affine() {
    let mesh = mesh("box", "cells=6;deform=0.1");
    for cell in 0..mesh.n_cells() {
        let x = |v: usize| mesh.points()[mesh.vertices(cell)[v] as usize];
        let twist: f64 = (0..3)
            .map(|c| {
                ((x(0)[c] + x(7)[c] + x(3)[c] + x(4)[c]) - (x(1)[c] + x(2)[c] + x(5)[c] + x(6)[c]))
                    .abs()
            })
            .sum();
        let shear: f64 = [[0, 3, 1, 2], [0, 5, 1, 4], [0, 6, 2, 4]]
            .iter()
            .map(|v| (x(v[0])[0] + x(v[1])[0] - x(v[2])[0] - x(v[3])[0]).abs())
            .sum();
        assert!(twist + shear > 1e-4, "cell {cell} is affine");
    }
}

#[test]
fn box_cells_come_in_rows() {
    let mesh = mesh("box", "cells=[9,8,6]");
    let h = [1.0 / 9.0, 1.0 / 8.0, 1.0 / 6.0];
    for first in (0..256).step_by(8) {
        let centres: Vec<_> = (first..first + 8).map(|cell| mesh.centre(cell)).collect();
        for axis in 0..3 {
            let values = centres.iter().map(|c| c[axis]);
            let (low, high) = (values.clone().fold(9.0, f64::min), values.fold(-9.0, f64::max));
            let steps = if axis == 0 { 7.0 } else { 0.0 };
            assert!(close(high - low, steps * h[axis]), "cells from {first}");
        }
    }
}

#[test]
fn balls_fill_the_sphere() {
    for (dim, cell, blocks) in [(2, "quad", 5), (3, "hex", 7), (2, "tri", 10), (3, "tet", 42)] {
        let exact = if dim == 2 { PI } else { 4.0 * PI / 3.0 };
        let mut errors = Vec::new();
        for refine in 0..4 {
            let mesh = mesh("ball", &format!("dim={dim};cell={cell};refine={refine}"));
            assert_eq!(mesh.n_cells(), blocks << (dim * refine));
            assert_eq!(euler(&mesh), 1);
            assert!(mesh.topology().is_oriented());
            let surface = mesh.facets_tagged("surface").expect("tag");
            assert_eq!(surface, mesh.boundary());
            for facet in surface {
                for &v in mesh.cell().facets()[facet.local as usize] {
                    let x = mesh.points()[mesh.vertices(facet.cell as usize)[v] as usize];
                    assert!(close(x.iter().map(|c| c * c).sum::<f64>(), 1.0));
                }
            }
            errors.push(exact - mesh.size());
        }
        assert!(errors.iter().all(|&e| e > 0.0), "{cell}: a polyhedron inside the ball");
        assert!(errors[2] / errors[3] > 3.5, "{cell}: {errors:?}");
    }
}

#[test]
fn curved_balls_converge_with_their_order() {
    for (dim, cell, orders) in [(2, "quad", 5), (3, "hex", 4), (2, "tri", 4), (3, "tet", 3)] {
        let exact = if dim == 2 { PI } else { 4.0 * PI / 3.0 };
        for order in 2..=orders {
            let error = |refine| {
                let text = format!("dim={dim};cell={cell};refine={refine};order={order}");
                let mesh = mesh("ball", &text);
                assert!(!mesh.is_affine());
                assert_eq!(mesh.order(), order);
                (exact - mesh.size()).abs() / exact
            };
            let (coarse, fine) =
                if cell == "hex" { (error(1), error(2)) } else { (error(2), error(3)) };
            let rate = (coarse / fine).log2();
            assert!(
                rate > order as f64 + 0.6 || fine < 1e-12,
                "{cell} order {order}: {coarse:e} {fine:e}, rate {rate}"
            );
        }
    }
}

#[test]
fn shells_and_corners() {
    for (dim, cell) in [(2, "quad"), (3, "hex"), (2, "tri"), (3, "tet")] {
        let text = format!("dim={dim};cell={cell};inner=0.5;outer=2;refine=3");
        let mesh = mesh("shell", &text);
        assert!(mesh.topology().is_oriented());
        assert_eq!(euler(&mesh), if dim == 2 { 0 } else { 2 });
        let exact = if dim == 2 { PI * 3.75 } else { 4.0 * PI / 3.0 * 7.875 };
        assert!((mesh.size() / exact - 1.0).abs() < 0.03, "{}", mesh.size() / exact);
        let count = |tag| mesh.facets_tagged(tag).map_or(0, <[_]>::len);
        assert_eq!(count("inner"), count("outer"));
        assert_eq!(count("inner") + count("outer"), mesh.boundary().len());

        let corner = self::mesh("lshape", &format!("dim={dim};cell={cell};refine=2"));
        assert!(close(corner.size(), if dim == 2 { 3.0 } else { 7.0 }));
        assert!(corner.is_affine());
        assert_eq!(corner.facets_tagged("boundary").map(<[_]>::len), Ok(corner.boundary().len()));
        assert_eq!(euler(&corner), 1);
        let centres = (0..corner.n_cells()).map(|cell| corner.centre(cell));
        assert!(centres.into_iter().all(|c| c[..dim].iter().any(|&x| x < 0.0)));
    }
}

#[test]
fn interior_facets_are_in_two_cells_and_faces_agree() {
    let mesh = mesh("ball", "refine=2;cell=tet");
    let t = mesh.topology();
    let once = (0..t.facets().len()).filter(|&f| t.facets().n_cells(f) == 1).count();
    assert_eq!(4 * t.n_cells(), 2 * t.facets().len() - once);
    for cell in 0..t.n_cells() {
        assert!(t.vertices(cell).is_sorted());
        assert!((0..6).all(|edge| !t.edge_reversed(cell, edge)));
        assert!((0..4).all(|face| t.face_orientation(cell, face) == 0));
    }
}

#[test]
fn scrambled_hexahedra_are_oriented_again() {
    // Every cell of a box gets one of the 24 rotations of the cube, in random order.
    let tidy = mesh("box", "cells=[4,3,5];deform=0.1");
    let rotations = rotations();
    let mut nodes = Vec::new();
    for i in 0..tidy.n_cells() {
        let cell = i * 37 % tidy.n_cells();
        let rotation = rotations[(i * 7 + 3) % rotations.len()];
        nodes.extend(rotation.iter().map(|&v| tidy.vertices(cell)[v]));
    }
    let parts = MeshData { points: tidy.points().to_vec(), nodes, ..MeshData::default() };
    let kept =
        Mesh::new(Cell::Hexahedron, 1, parts.clone(), CellOrdering::Original).expect("valid");
    assert!(!kept.topology().is_oriented());
    let sorted = Mesh::new(Cell::Hexahedron, 1, parts, CellOrdering::Sorted).expect("valid");
    assert!(sorted.topology().is_oriented());
    assert!(close(sorted.size(), 1.0) && close(kept.size(), 1.0));
    assert_eq!(sorted.n_vertices(), tidy.n_vertices());
    // The orientation codes of the unoriented mesh map each face's own vertices to those of the cell.
    let t = kept.topology();
    for cell in 0..t.n_cells() {
        for face in 0..6 {
            let code = t.face_orientation(cell, face);
            let own = t.faces().vertices(t.faces().of_cell(cell)[face] as usize);
            for (i, &v) in Cell::Hexahedron.entities(2)[face].iter().enumerate() {
                let (a, b) = (i & 1, i >> 1);
                let (s, t_) = if code & 1 == 1 { (b, a) } else { (a, b) };
                let (s, t_) = (s ^ usize::from(code >> 1 & 1), t_ ^ usize::from(code >> 2 & 1));
                assert_eq!(own[s + 2 * t_], t.vertices(cell)[v]);
            }
        }
    }
}

fn rotations() -> Vec<[usize; 8]> {
    let mut rotations = Vec::new();
    let axes = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
    for (i, axes) in axes.iter().enumerate() {
        for flips in 0..8usize {
            if (i >= 3) == (flips.count_ones() % 2 == 1) {
                let image = |v: usize| (0..3).fold(0, |w, a| w | (v >> a & 1) << axes[a]) ^ flips;
                rotations.push([0, 1, 2, 3, 4, 5, 6, 7].map(image));
            }
        }
    }
    assert_eq!(rotations.len(), 24);
    rotations
}

#[test]
fn wrong_arguments_are_named() {
    let cases = [
        ("bax", "", "unknown mesh generator `bax`; did you mean `box`?"),
        ("box", "", "`box` needs the argument `cells`"),
        ("box", "cells=0", "`cells` should be a whole number from 1 to"),
        ("box", "cells=2.5", "but it is 2.5"),
        ("box", "cells=[2,2]", "or 3 of them in brackets, but it is [2.0, 2.0]"),
        ("box", "cels=3", "`box` has no argument `cels`; did you mean `cells`?"),
        ("box", "cells=2;dim=4", "`dim` should be a whole number from 2 to 3, but it is 4"),
        ("box", "cells=2;dim=2;cell=hex", "`tri` or `quad` in two dimensions, but it is `hex`"),
        ("box", "cells=2;cell=prism", "`tri`, `quad`, `tet` or `hex`, but it is `prism`"),
        ("box", "cells=2;from=[0,0,1]", "such that `from` is less than `to`"),
        ("box", "cells=2;deform=0.9", "`deform` should be from -0.25 to 0.25"),
        ("box", "cells=[5,3,2];cell=tet;deform=0.25", "`deform` should be from 0 to 0."),
        ("box", "cells=1000000", "more than 32-bit indices can number"),
        ("ball", "refine=14", "more than 32-bit indices can number"),
        ("ball", "refine=-1", "`refine` should be a whole number from 0 to 14, but it is -1"),
        ("ball", "refine=soft", "but it is `soft`"),
        ("ball", "cell=tet;order=7", "`order` should be a whole number from 1 to 4"),
        ("shell", "inner=2;outer=1", "greater than the inner one, 2, but it is 1"),
        ("shell", "inner=0", "a radius greater than 0"),
    ];
    for (name, text, expected) in cases {
        let message = message(name, text);
        assert!(message.contains(expected), "{name}({text}): {message}");
    }
}

#[test]
fn statistics_and_unknown_tags() {
    let mesh = mesh("box", "dim=2;cells=[4,2];to=[2,1]");
    let statistics = Statistics::of(&mesh);
    assert_eq!((statistics.cells, statistics.vertices, statistics.boundary_facets), (8, 15, 12));
    assert_eq!(statistics.boundary_tags.len(), 4);
    assert!(close(statistics.h_max, 0.5f64.sqrt()) && close(statistics.h_min, 0.5f64.sqrt()));
    assert_eq!(statistics.bounding_box, [vec![0.0, 0.0], vec![2.0, 1.0]]);
    assert_eq!(statistics.cell, "quad");
    let message = mesh.facets_tagged("x2").expect_err("no such tag").to_string();
    assert!(message.contains("no boundary tag \"x2\"; did you mean \"x0\"?"), "{message}");
    assert!(message.contains("\"x0\", \"x1\", \"y0\", \"y1\""), "{message}");
}

#[test]
fn bad_cells_are_named_with_their_place() {
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [3.0, 1.0, 0.0]];
    let build = |nodes: Vec<u32>| {
        let cells = BTreeMap::from([("steel".to_owned(), vec![0])]);
        let parts = MeshData { points: points.clone(), nodes, cells, ..MeshData::default() };
        Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Sorted).map_err(|e| e.to_string())
    };
    assert!(build(vec![0, 1, 2, 3]).is_ok() && build(vec![1, 0, 3, 2]).is_ok());
    let cases = [
        (
            vec![0, 1, 3, 2],
            "cell 0 of \"steel\" with centre (0.500000, 0.500000, 0.000000) is inverted in a part of it",
        ),
        (vec![0, 1, 2, 9], "cell 0 refers to point 9, but there are only 5"),
        (vec![0, 1, 2, 2], "uses the point 2 twice"),
        (vec![0, 1, 2], "no multiple of the 4 nodes"),
        (vec![], "the mesh has no cells"),
        (vec![0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3], "belongs to"),
    ];
    for (nodes, expected) in cases {
        let message = build(nodes.clone()).expect_err("bad cells");
        assert!(
            message.contains(expected) || (expected == "belongs to" && message.contains("belong")),
            "{nodes:?}: {message}"
        );
    }
    let flat = MeshData {
        points: vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]],
        nodes: vec![0, 1, 2],
        ..MeshData::default()
    };
    let message = Mesh::new(Cell::Triangle, 1, flat, CellOrdering::Sorted).expect_err("flat");
    assert!(message.to_string().contains("is degenerate"), "{message}");
}

/// Returns two cells on a facet in the plane x_last = 0: one extends to 1, the other to `apex`, above or below.
fn on_one_facet(cell: Cell, apex: f64) -> MeshData {
    let facet: &[[f64; 3]] = match cell {
        Cell::Triangle | Cell::Quadrilateral => &[[0.0; 3], [1.0, 0.0, 0.0]],
        Cell::Tetrahedron => &[[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        _ => &[[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
    };
    let last = cell.dim() - 1;
    let n = facet.len();
    let count = if cell.is_tensor() { n } else { 1 };
    let lifted = |height: f64| {
        facet.iter().take(count).map(move |point| {
            let mut point = point.map(|x| 0.2 + x);
            point[last] = height;
            point[2] *= f64::from(u8::from(cell.dim() == 3));
            point
        })
    };
    let points: Vec<[f64; 3]> =
        facet.iter().copied().chain(lifted(1.0)).chain(lifted(apex)).collect();
    let (base, first, second) = (0..n, n..n + count, n + count..n + 2 * count);
    let mut nodes: Vec<usize> = base.clone().chain(first).collect();
    // Below the facet, the cell has it in reverse orientation.
    let mut other: Vec<usize> = base.collect();
    let mut tips: Vec<usize> = second.collect();
    if apex < 0.0 {
        other.swap(n - 2, n - 1);
        if cell == Cell::Hexahedron {
            other.swap(0, 1);
            tips.swap(0, 1);
            tips.swap(2, 3);
        } else if cell.is_tensor() {
            tips.swap(0, 1);
        }
    }
    nodes.extend(other.into_iter().chain(tips));
    MeshData { points, nodes: nodes.into_iter().map(|i| i as u32).collect(), ..MeshData::default() }
}

/// Overlapping cells cover less than the sum of their sizes.
#[test]
fn overlapping_cells_are_refused() {
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        for arrange in [CellOrdering::Sorted, CellOrdering::Original] {
            let behind = Mesh::new(cell, 1, on_one_facet(cell, -1.0), arrange);
            assert!(behind.is_ok(), "{cell}: {behind:?}");
            let before = Mesh::new(cell, 1, on_one_facet(cell, 2.0), arrange);
            let message = before.expect_err("an overlap").to_string();
            for words in [
                "cell 0 with centre",
                "cell 1 with centre",
                "overlap: they lie on one side",
                "near (0.",
            ] {
                assert!(message.contains(words), "{cell}: {message}");
            }
        }
    }
    // The same cell twice.
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let parts = MeshData { points, nodes: vec![0, 1, 2, 0, 1, 2], ..MeshData::default() };
    let message =
        Mesh::new(Cell::Triangle, 1, parts, CellOrdering::Sorted).expect_err("twice").to_string();
    assert!(message.contains("overlap"), "{message}");
}

/// Two adjacent squares with separate nodes on their common side.
#[test]
fn coincident_nodes_are_noted() {
    let square = |x: f64| [[x, 0.0, 0.0], [x + 1.0, 0.0, 0.0], [x, 1.0, 0.0], [x + 1.0, 1.0, 0.0]];
    let notes = |second: f64| {
        let points = [square(0.0), square(second)].concat();
        let parts = MeshData { points, nodes: (0..8).collect(), ..MeshData::default() };
        Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Sorted)
            .expect("valid")
            .notes()
            .to_vec()
    };
    let [note] = &notes(1.0 + 1e-13)[..] else { panic!("{:?}", notes(1.0 + 1e-13)) };
    for words in ["2 nodes lie where another does", "the first at (1", "Coherence Mesh"] {
        assert!(note.contains(words), "{note}");
    }
    assert!(notes(1.0 + 1e-6).is_empty() && notes(2.0).is_empty());
    for (name, text) in
        [("box", "cells=[5,3,2];cell=tet"), ("ball", "refine=2"), ("shell", "dim=2")]
    {
        assert!(mesh(name, text).notes().is_empty(), "{name}({text})");
    }
}

#[test]
fn counts_are_known_before_a_mesh_is() {
    for (name, text) in [
        ("box", "dim=2;cells=[5,3]"),
        ("box", "dim=2;cells=[5,3];cell=tri"),
        ("box", "cells=[5,3,2]"),
        ("box", "cells=[5,3,2];cell=tet"),
        ("ball", "dim=2;refine=2"),
        ("ball", "refine=1;order=2"),
        ("ball", "refine=1;cell=tet"),
        ("shell", "refine=1;cell=tet;order=2"),
        ("shell", "dim=2;refine=0"),
        ("lshape", "dim=2;refine=2;cell=tri"),
        ("lshape", "dim=3;refine=2"),
    ] {
        let counts = counts(name, &arguments(text)).expect("counts");
        let mesh = mesh(name, text);
        assert_eq!(counts, EntityCounts::of(&mesh), "{name}({text})");
        let nodes = 4.0 * mesh.nodes().len() as f64 + 24.0 * mesh.points().len() as f64;
        assert!(counts.bytes() > nodes && counts.bytes() < 10.0 * nodes, "{name}({text})");
    }
}
