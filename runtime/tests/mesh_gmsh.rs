//! Gmsh files: contents of real meshes, equality of formats, and no panic on broken files.

use runtime::mesh::gmsh;
use runtime::mesh::read::ReadError;
use runtime::mesh::{Cell, Mesh};
use std::f64::consts::PI;
use std::path::PathBuf;

/// Returns a file of the project's `meshes/`, or of this crate's `tests/meshes/`.
fn path(name: &str) -> PathBuf {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let own = crate_folder.join("tests/meshes").join(name);
    if own.exists() { own } else { crate_folder.join("../meshes").join(name) }
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn mesh(name: &str) -> Mesh {
    gmsh::read(&path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn message(bytes: &[u8]) -> String {
    gmsh::parse(bytes).expect_err("a broken file").to_string()
}

fn count(mesh: &Mesh, tag: &str) -> usize {
    mesh.facets_tagged(tag).unwrap_or_else(|error| panic!("{error}")).len()
}

struct Expected {
    file: &'static str,
    cell: Cell,
    order: usize,
    cells: usize,
    /// The exact area or volume, and the tolerance of the mesh's.
    size: (f64, f64),
    cell_tag: &'static str,
    tags: &'static [&'static str],
    /// True if these tags cover the whole boundary.
    covered: bool,
}

#[test]
fn real_meshes() {
    use Cell::{Hexahedron, Quadrilateral, Tetrahedron, Triangle};
    let (plate, elbow, ball) = (2.0 - 0.04 * PI, PI * 0.75, 4.0 * PI / 3.0);
    // An L of 4 × 1 × 1 and 1 × 1 × 2 with a hole of radius 0.25 along z through the foot.
    let bracket = 6.0 - PI * 0.0625;
    let inch = 36.0 - 2.0 * 2.0 / 64.0;
    let table = [
        (
            "bracket_tet.msh",
            Tetrahedron,
            1,
            3592,
            (bracket, 4e-3),
            "steel",
            &["fixed", "load", "free"][..],
        ),
        (
            "bracket_tet_v2_binary.msh",
            Tetrahedron,
            1,
            1645,
            (bracket, 1e-2),
            "steel",
            &["fixed", "load", "free"],
        ),
        (
            "bracket_tet10.msh",
            Tetrahedron,
            2,
            470,
            (bracket, 2e-3),
            "steel",
            &["fixed", "load", "free"],
        ),
        (
            "plate_hole_quad9.msh",
            Quadrilateral,
            2,
            260,
            (plate, 2e-4),
            "plate",
            &["left", "right", "hole", "rest"],
        ),
        (
            "plate_hole_quad.msh",
            Quadrilateral,
            1,
            119,
            (plate, 6e-3),
            "plate",
            &["left", "right", "hole", "rest"],
        ),
        (
            "plate_hole_tri.msh",
            Triangle,
            1,
            477,
            (plate, 6e-3),
            "plate",
            &["left", "right", "hole", "rest"],
        ),
        ("elbow_hex.msh", Hexahedron, 1, 128, (elbow, 2e-2), "pipe", &["inlet", "outlet", "wall"]),
        (
            "elbow_hex27.msh",
            Hexahedron,
            2,
            128,
            (elbow, 1e-4),
            "pipe",
            &["inlet", "outlet", "wall"],
        ),
        ("ball_hex_unstructured.msh", Hexahedron, 1, 2716, (ball, 0.1), "ball", &["surface"]),
        ("capacitor_tri.msh", Triangle, 1, 5576, (inch, 1e-9), "air", &["plus", "minus", "far"]),
        ("disc_tri_o3.msh", Triangle, 3, 0, (PI, 1e-3), "disc", &["rim"]),
        ("disc_tri_o4.msh", Triangle, 4, 0, (PI, 1e-5), "disc", &["rim"]),
        ("disc_tri_o5.msh", Triangle, 5, 0, (PI, 1e-6), "disc", &["rim"]),
        ("disc_quad_o3.msh", Quadrilateral, 3, 0, (PI, 1e-3), "disc", &["rim"]),
        ("disc_quad_o4.msh", Quadrilateral, 4, 0, (PI, 1e-5), "disc", &["rim"]),
        ("disc_quad_o5.msh", Quadrilateral, 5, 0, (PI, 1e-6), "disc", &["rim"]),
        ("cylinder_tet_o3.msh", Tetrahedron, 3, 0, (PI, 1e-2), "ball", &["surface"]),
        ("cylinder_tet_o4.msh", Tetrahedron, 4, 0, (PI, 1e-3), "ball", &["surface"]),
        ("cylinder_tet_o5.msh", Tetrahedron, 5, 0, (PI, 1e-4), "ball", &["surface"]),
        ("ring_hex_o3.msh", Hexahedron, 3, 2, (elbow, 1e-3), "pipe", &["inlet"]),
        ("ring_hex_o4.msh", Hexahedron, 4, 2, (elbow, 1e-5), "pipe", &["inlet"]),
        ("ring_hex_o5.msh", Hexahedron, 5, 1, (elbow, 1e-4), "pipe", &["inlet"]),
    ];
    for (file, cell, order, cells, size, cell_tag, tags) in table {
        let covered = tags != ["inlet"];
        check(&Expected { file, cell, order, cells, size, cell_tag, tags, covered });
    }
}

fn check(expected: &Expected) {
    let (mesh, file) = (mesh(expected.file), expected.file);
    assert_eq!((mesh.cell(), mesh.order()), (expected.cell, expected.order), "{file}");
    if expected.cells > 0 {
        assert_eq!(mesh.n_cells(), expected.cells, "{file}");
    }
    let (exact, margin) = expected.size;
    assert!((mesh.size() - exact).abs() <= margin * exact, "{file}: {} {exact}", mesh.size());
    assert_eq!(mesh.cells_tagged(expected.cell_tag).map(<[_]>::len), Ok(mesh.n_cells()), "{file}");
    assert_eq!(mesh.facet_tags().len(), expected.tags.len(), "{file}");
    let tagged: usize = expected.tags.iter().map(|tag| count(&mesh, tag)).sum();
    assert!(expected.tags.iter().all(|tag| count(&mesh, tag) > 0), "{file}");
    assert_eq!(tagged == mesh.boundary().len(), expected.covered, "{file}");
    assert!(mesh.topology().is_oriented(), "{file}: neighbours should agree");
    assert!(!mesh.notes().iter().any(|note| note.contains("where another")), "{file}: no seams");
}

#[test]
fn tags_lie_where_the_geometry_has_them() {
    let mesh = mesh("plate_hole_quad9.msh");
    for (tag, holds) in [
        ("left", (|x: [f64; 3]| x[0].abs() < 1e-12) as fn([f64; 3]) -> bool),
        ("right", |x| (x[0] - 2.0).abs() < 1e-12),
        ("hole", |x| ((x[0] - 1.0).hypot(x[1] - 0.5) - 0.2).abs() < 1e-3),
        ("rest", |x| x[1].abs() < 1e-12 || (x[1] - 1.0).abs() < 1e-12),
    ] {
        for facet in mesh.facets_tagged(tag).expect("tag") {
            for &v in mesh.cell().facets()[facet.local as usize] {
                let x = mesh.points()[mesh.vertices(facet.cell as usize)[v] as usize];
                assert!(holds(x), "{tag}: {x:?}");
            }
        }
    }
}

#[test]
fn every_format_gives_one_mesh() {
    for group in [
        &[
            "cylinder_v2_text.msh",
            "cylinder_v2_binary.msh",
            "cylinder_v4_text.msh",
            "cylinder_v4_binary.msh",
        ][..],
        &["disc_v2_text.msh", "disc_v4_binary.msh", "disc_v4_parametric.msh"],
    ] {
        let first = mesh(group[0]);
        for name in &group[1..] {
            let other = mesh(name);
            assert_eq!(first.nodes(), other.nodes(), "{name}");
            assert_eq!(first.facet_tags(), other.facet_tags(), "{name}");
            assert_eq!(first.cell_tags(), other.cell_tags(), "{name}");
            // Text has 16 digits.
            let gap = first.points().iter().flatten().zip(other.points().iter().flatten());
            assert!(gap.into_iter().all(|(a, b)| (a - b).abs() <= 4.0 * f64::EPSILON), "{name}");
        }
    }
}

#[test]
fn binary_of_the_other_byte_order() {
    let little = bytes("disc_v4_binary.msh");
    let big = swap_v4(&little);
    assert_ne!(little, big);
    assert_eq!(gmsh::parse(&little).expect("little"), gmsh::parse(&big).expect("big"));
}

/// Reverses the byte order of a 4.1 binary file.
fn swap_v4(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let find = |word: &str| {
        bytes.windows(word.len()).position(|w| w == word.as_bytes()).expect("section") + word.len()
    };
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8")) as usize;
    let i32_at = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("4"));
    let mut swap = |at: &mut usize, width: usize, times: usize| {
        for _ in 0..times {
            out[*at..*at + width].reverse();
            *at += width;
        }
    };
    swap(&mut find("4.1 1 8\n"), 4, 1);
    let mut at = find("$Entities\n");
    let counts = [0, 1, 2, 3].map(|i| u64_at(at + 8 * i));
    swap(&mut at, 8, 4);
    for (dim, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            swap(&mut at, 4, 1);
            swap(&mut at, 8, if dim == 0 { 3 } else { 6 });
            for _ in 0..if dim == 0 { 1 } else { 2 } {
                let n = u64_at(at);
                swap(&mut at, 8, 1);
                swap(&mut at, 4, n);
            }
        }
    }
    let mut at = find("$Nodes\n");
    let blocks = u64_at(at);
    swap(&mut at, 8, 4);
    for _ in 0..blocks {
        let n = u64_at(at + 12);
        swap(&mut at, 4, 3);
        swap(&mut at, 8, 1 + 4 * n);
    }
    let mut at = find("$Elements\n");
    let blocks = u64_at(at);
    swap(&mut at, 8, 4);
    for _ in 0..blocks {
        let (kind, n) = (i32_at(at + 8), u64_at(at + 12));
        let nodes = match kind {
            15 => 1,
            1 => 2,
            3 => 4,
            other => panic!("element type {other}"),
        };
        swap(&mut at, 4, 3);
        swap(&mut at, 8, 1 + n * (1 + nodes));
    }
    out
}

#[test]
fn groups_overlap_surfaces_look_down_and_planes_are_shifted() {
    for name in ["two_v2.msh", "two_v4.msh"] {
        let mesh = mesh(name);
        assert!((mesh.size() - 2.0).abs() < 1e-12, "{name}");
        assert_eq!(mesh.cells_tagged("all of it").map(<[_]>::len), Ok(mesh.n_cells()), "{name}");
        assert_eq!(mesh.cells_tagged("right half").map(<[_]>::len), Ok(mesh.n_cells() / 2));
        let right = mesh.cells_tagged("right half").expect("tag");
        assert!(right.iter().all(|&cell| mesh.centre(cell as usize)[0] > 1.0), "{name}");
        // Unnamed groups are identified by number; facets between two cells are listed once.
        assert_eq!(count(&mesh, "5"), 2, "{name}");
        assert_eq!(count(&mesh, "between"), 2, "{name}");
        assert!(mesh.points().iter().all(|x| x[2] == 0.0), "{name}");
    }
}

#[test]
fn wrong_files_are_explained() {
    let missing = gmsh::read(&path("no_such_file.msh")).expect_err("no file").to_string();
    assert!(missing.contains("no_such_file.msh") && missing.contains("cannot read"), "{missing}");
    let good = String::from_utf8(bytes("two_v4.msh")).expect("text");
    let v2 = String::from_utf8(bytes("two_v2.msh")).expect("text");
    let line =
        |text: &str, word: &str| 1 + text[..text.find(word).expect(word)].matches('\n').count();
    let nodes = line(&good, "$Nodes");
    let cases = [
        (
            String::new(),
            "line 1: expected $MeshFormat at the beginning of a Gmsh file, found an empty file"
                .to_owned(),
        ),
        (
            "solid cube".to_owned(),
            "line 1: expected the beginning of a section, $Name, found `solid`".to_owned(),
        ),
        ("$Nodes\n1\n".to_owned(), "found $Nodes".to_owned()),
        (good.replace("4.1 0 8", "4.0 0 8"), "line 2: Gmsh format 4.0 is not supported".to_owned()),
        (
            good.replace("4.1 0 8", "4.1 7 8"),
            "expected the file type 0 (text) or 1 (binary), found `7`".to_owned(),
        ),
        (
            good.replace("$EndNodes", "$EndNudes"),
            "expected $EndNodes, found `$EndNudes`".to_owned(),
        ),
        (good.replace("0.25\n", "0.2x5\n"), "expected a coordinate, found `0.2x5`".to_owned()),
        (good.replace("0.25\n", "nan\n"), "expected a coordinate, finite, found NaN".to_owned()),
        (
            good.replacen("$Nodes\n", "$Nodes\n99999999999 ", 1),
            format!("line {}: 99999999999 blocks of nodes are announced, but only", nodes + 1),
        ),
        (
            good.split("$Elements").next().expect("text").to_owned(),
            "the file has no $Elements section".to_owned(),
        ),
        (
            v2.replacen(" 2 2 1 ", " 6 2 1 ", 1),
            "elements of type 6 (a prism) are not there yet; for tetrahedra alone, leave `Recombine;` out".to_owned(),
        ),
        (
            v2.replacen(" 2 2 1 ", " 20 2 1 ", 1),
            "(an incomplete element) are not there yet; set Mesh.SecondOrderIncomplete = 0"
                .to_owned(),
        ),
        (v2.replacen("\"right half\"", "right half", 1), "a UTF-8 name in quotes".to_owned()),
    ];
    for (text, expected) in cases {
        let message = message(text.as_bytes());
        assert!(message.contains(&expected), "{expected}\n{message}");
    }
    // The last element refers to a missing node.
    let broken = good.replace("$EndElements", "").trim_end().to_owned();
    let (head, _) = broken.rsplit_once(' ').expect("numbers");
    let message = message(format!("{head} 777\n$EndElements\n").as_bytes());
    assert!(message.contains("uses node 777, which the file does not define"), "{message}");
}

#[test]
fn mixed_and_missing_cells() {
    let header = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n5 2 0 0\n$EndNodes\n";
    let with = |elements: &[&str]| {
        let list = elements.join("\n");
        format!("{header}$Elements\n{}\n{list}\n$EndElements\n", elements.len())
    };
    let both = gmsh::parse(with(&["1 3 2 0 1 1 2 3 4", "2 2 2 0 1 2 5 3"]).as_bytes());
    let both = both.expect("triangles among quadrilaterals are cut");
    assert_eq!((both.cell(), both.n_cells()), (Cell::Quadrilateral, 7));
    assert!((both.size() - 1.5).abs() < 16.0 * f64::EPSILON);
    assert!(both.notes()[0].contains("1 × tri of order 1, 1 × quad of order 1"));
    let mixed = message(with(&["1 3 2 0 1 1 2 3 4", "2 9 2 0 1 2 5 3 1 1 1"]).as_bytes());
    assert!(mixed.contains("the mesh mixes 1 × tri of order 2, 1 × quad of order 1"), "{mixed}");
    let lines = gmsh::parse(with(&["1 1 2 0 1 1 2"]).as_bytes()).expect("a line");
    assert_eq!((lines.cell(), lines.n_cells()), (Cell::Interval, 1));
    // Two exchanged nodes: a bow tie, reported with the file's number and its position.
    let tie = message(with(&["42 3 2 9 1 1 2 4 3"]).as_bytes());
    assert!(
        tie.contains("element 42 of \"9\" with centre (0.500000, 0.500000, 0.000000) is inverted"),
        "{tie}"
    );
    let stray = message(with(&["1 3 2 0 1 1 2 3 4", "2 1 2 8 1 2 5"]).as_bytes());
    assert!(stray.contains("1 of the 1 facets tagged \"8\" belong to no cell"), "{stray}");
}

#[test]
fn a_tetrahedron_that_turns_the_other_way_is_turned() {
    let text = String::from_utf8(bytes("bracket_tet.msh")).expect("text");
    // Exchange two nodes of the last element.
    let (head, tail) = text.split_once("$EndElements").expect("elements");
    let (head, last) = head.trim_end().rsplit_once('\n').expect("lines");
    let words: Vec<&str> = last.split_whitespace().collect();
    let swapped = format!("{} {} {} {} {}", words[0], words[2], words[1], words[3], words[4]);
    let turned = format!("{head}\n{swapped}\n$EndElements{tail}");
    let turned = gmsh::parse(turned.as_bytes()).expect("a mesh");
    assert!((turned.size() - mesh("bracket_tet.msh").size()).abs() < 1e-12);
    assert!(turned.notes()[0].contains("1 of ") && turned.notes()[0].contains("opposite sense"));
}

#[test]
fn truncated_files_are_errors() {
    for name in ["two_v2.msh", "two_v4.msh", "disc_v4_binary.msh", "bracket_tet_v2_binary.msh"] {
        let all = bytes(name);
        let end = all.iter().rposition(|b| !b.is_ascii_whitespace()).expect("text") + 1;
        let step = (all.len() / 700).max(1);
        for length in (0..end).step_by(step).chain(end.saturating_sub(40)..end) {
            match gmsh::parse(&all[..length]) {
                Ok(_) => panic!("{name}: {length} of {} bytes are read as a mesh", all.len()),
                Err(ReadError::Mesh(error)) => panic!("{name} at {length}: {error}"),
                Err(_) => {}
            }
        }
    }
}

/// A linear congruential generator, with equal mutations in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides as u64) as usize
    }
}

#[test]
fn mutated_files_never_panic() {
    let words: [&[u8]; 9] = [
        b"-1",
        b"0",
        b"99999999999999999999",
        b"4294967296",
        b"1e999",
        b"nan",
        b"$EndNodes",
        b"\0\xff",
        b"",
    ];
    let mut dice = Dice(2026);
    let (mut fine, mut refused) = (0, 0);
    for name in [
        "two_v2.msh",
        "two_v4.msh",
        "disc_v4_binary.msh",
        "disc_v4_parametric.msh",
        "disc_v2_text.msh",
    ] {
        let original = bytes(name);
        for _ in 0..400 {
            let mut all = original.clone();
            for _ in 0..1 + dice.roll(3) {
                let at = dice.roll(all.len());
                match dice.roll(4) {
                    0 => all[at] = dice.roll(256) as u8,
                    1 => all[at] ^= 1 << dice.roll(8),
                    2 => {
                        let end = (at + dice.roll(20)).min(all.len());
                        all.drain(at..end);
                    }
                    _ => {
                        let end = (at + dice.roll(4)).min(all.len());
                        all.splice(at..end, words[dice.roll(words.len())].iter().copied());
                    }
                }
                if all.is_empty() {
                    break;
                }
            }
            match gmsh::parse(&all) {
                Ok(mesh) => {
                    assert!(mesh.size().is_finite());
                    fine += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(fine > 0 && refused > fine, "{fine} {refused}");
}

#[test]
fn folded_cells_are_unfolded_inside_a_boundary_that_stays() {
    // Gmsh itself reports seven folded cells among 470.
    let mesh = mesh("bracket_tet10.msh");
    assert_eq!(mesh.notes().len(), 1);
    assert!(mesh.notes()[0].starts_with("7 curved cells folded over;"), "{:?}", mesh.notes());
    // ∫ det J depends on the boundary only; Gmsh's own nodes give this volume.
    assert!((mesh.size() - BRACKET_VOLUME).abs() < 1e-12 * BRACKET_VOLUME, "{:.17}", mesh.size());
}

/// The signed integral ∫ det J over the cells of the file, including folded ones.
const BRACKET_VOLUME: f64 = 5.804_583_937_391_937_5;

/// Returns a file in format 2.2 with cells of one kind.
fn of_cells(kind: u32, points: &[[f64; 3]], cells: &[&[u32]]) -> String {
    let mut text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n", points.len());
    for (i, [x, y, z]) in points.iter().enumerate() {
        // Numbers with gaps, to identify those of the file in messages.
        text.push_str(&format!("{} {x} {y} {z}\n", 10 * (i + 1)));
    }
    text.push_str(&format!("$EndNodes\n$Elements\n{}\n", cells.len()));
    for (i, nodes) in cells.iter().enumerate() {
        let nodes: Vec<String> = nodes.iter().map(|node| (10 * node).to_string()).collect();
        text.push_str(&format!("{} {kind} 2 0 1 {}\n", i + 1, nodes.join(" ")));
    }
    text + "$EndElements\n"
}

/// Returns a 9-node square, a 6-node triangle and a 10-node tetrahedron. The midpoints of the first edge, or of all
/// edges at the first vertex, are moved to this fraction of the edge.
fn with_middle_nodes_at(part: f64, all: bool) -> [(u32, Vec<[f64; 3]>); 3] {
    let other = if all { part } else { 0.5 };
    let quad = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [part, 0.0], [1.0, 0.5]];
    let quad = quad.into_iter().chain([[0.5, 1.0], [0.0, other], [0.5, 0.5]]);
    let tri = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [part, 0.0], [0.5, 0.5], [0.0, other]];
    let flat = |[x, y]: [f64; 2]| [x, y, 0.0];
    let corners = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let middles = [[part, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, other, 0.0], [0.0, 0.0, other]];
    let tet = [&corners[..], &middles, &[[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]].concat();
    [(10, quad.map(flat).collect()), (9, tri.into_iter().map(flat).collect()), (11, tet)]
}

/// Edges that run backwards near a vertex fold the boundary, which no interior node can repair.
#[test]
fn cells_whose_edges_run_backwards_are_inverted() {
    for (part, all) in [(0.05, false), (0.2, false), (0.2, true), (0.249, false)] {
        for (kind, points) in with_middle_nodes_at(part, all) {
            let dim = if kind == 11 { 3 } else { 2 };
            let nodes: Vec<u32> = (1..=points.len() as u32).collect();
            for points in [points.clone(), turned(&points, dim)] {
                let said = message(of_cells(kind, &points, &[&nodes]).as_bytes());
                assert!(said.contains("inverted in a part of it"), "{kind} {part} {all}: {said}");
            }
        }
    }
}

/// Here det J is 0 at the vertex only.
#[test]
fn quarter_point_elements_are_taken_as_they_are() {
    for all in [false, true] {
        for (kind, points) in with_middle_nodes_at(0.25, all) {
            let dim = if kind == 11 { 3 } else { 2 };
            let nodes: Vec<u32> = (1..=points.len() as u32).collect();
            for points in [points.clone(), turned(&points, dim)] {
                let mesh = gmsh::parse(of_cells(kind, &points, &[&nodes]).as_bytes());
                let mesh = mesh.unwrap_or_else(|error| panic!("{kind} {all}: {error}"));
                assert!(mesh.notes().is_empty(), "{kind} {all}: {:?}", mesh.notes());
            }
        }
    }
}

/// Rotates and translates points, so that nothing is exact.
fn turned(points: &[[f64; 3]], dim: usize) -> Vec<[f64; 3]> {
    let rotate = |[x, y]: [f64; 2], angle: f64| {
        [angle.cos() * x - angle.sin() * y, angle.sin() * x + angle.cos() * y]
    };
    let place = |&[x, y, z]: &[f64; 3]| {
        let [x, y] = rotate([x, y], 0.7);
        let [y, z] = if dim == 3 { rotate([y, z], 0.4) } else { [y, z] };
        [x / 3.0 + 0.1, y / 3.0 - 7.0, if dim == 3 { z / 3.0 } else { 0.0 }]
    };
    points.iter().map(place).collect()
}

/// Nonconforming cells: kind, points, cells, and the hanging node.
type Hanging = (u32, Vec<[f64; 3]>, Vec<Vec<u32>>, u64);

fn hanging() -> [Hanging; 6] {
    let square = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
    let right = [[1.0, 0.5, 0.0], [2.0, 0.0, 0.0], [2.0, 0.5, 0.0], [2.0, 1.0, 0.0]];
    let flat = [&square[..], &right].concat();
    let quads = vec![vec![1, 2, 3, 4], vec![2, 6, 7, 5], vec![5, 7, 8, 3]];
    let triangles = [[1, 2, 3], [1, 3, 4], [2, 6, 5], [5, 6, 8], [5, 8, 3]];
    // The same as prisms of hexahedra, with a copy of the node above it.
    let above = flat.iter().map(|&[x, y, _]| [x, y, 1.0]);
    let thick = [&flat[..], &above.collect::<Vec<_>>()].concat();
    let up = |cell: &Vec<u32>| -> Vec<u32> {
        cell.iter().copied().chain(cell.iter().map(|node| node + 8)).collect()
    };
    let hexes = quads.iter().map(up).collect();
    // Two tetrahedra; one has a vertex at the midpoint of an edge or face of the other.
    let corner = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let tets = |at: [f64; 3]| [&corner[..], &[at, [0.2, 0.2, -1.0], [0.6, -1.0, -0.5]]].concat();
    let below = vec![vec![1, 2, 3, 4], vec![1, 6, 5, 7]];
    // A quadratic edge whose midpoint is a vertex of two others.
    let curved = vec![
        [0.0, 0.0, 0.0],
        [2.0, 0.0, 0.0],
        [0.0, 2.0, 0.0],
        [1.0, -0.1, 0.0],
        [1.0, 1.0, 0.0],
        [0.0, 1.0, 0.0],
        [1.0, -2.0, 0.0],
        [0.5, -0.075, 0.0],
        [1.0, -1.0, 0.0],
        [0.5, -1.0, 0.0],
    ];
    [
        (3, flat.clone(), quads, 50),
        (2, flat, triangles.iter().map(|cell| cell.to_vec()).collect(), 50),
        (5, thick, hexes, 50),
        (4, tets([0.5, 0.0, 0.0]), below.clone(), 50),
        (4, tets([0.3, 0.3, 0.0]), below, 50),
        (9, curved, vec![vec![1, 2, 3, 4, 5, 6], vec![1, 7, 4, 10, 9, 8]], 40),
    ]
}

#[test]
fn a_node_inside_a_facet_of_another_cell_is_named() {
    for (kind, points, cells, node) in hanging() {
        let dim = if matches!(kind, 4 | 5) { 3 } else { 2 };
        for points in [points.clone(), turned(&points, dim)] {
            let cells: Vec<&[u32]> = cells.iter().map(Vec::as_slice).collect();
            let said = message(of_cells(kind, &points, &cells).as_bytes());
            let at = points[node as usize / 10 - 1].map(|x| format!("{x:.6}")).join(", ");
            let hangs = said.contains("lies inside a facet of element 1 ");
            // Of two hanging nodes, one below the other, either may be named.
            let named = said.contains(&format!("node {node} at ({at})")) || kind == 5;
            assert!(hangs && named, "{kind}: {said}");
        }
    }
}

#[test]
fn cells_inside_others_are_named() {
    let square = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
    let loose = [[0.2, 0.1, 0.0], [0.7, 0.1, 0.0], [0.5, 0.2, 0.0]];
    let points = [&square[..], &loose].concat();
    let cells: [&[u32]; 3] = [&[1, 2, 3], &[1, 3, 4], &[5, 6, 7]];
    let said = message(of_cells(2, &points, &cells).as_bytes());
    for words in ["element 3 with", "element 1 with", "overlap", "inside of both"] {
        assert!(said.contains(words), "{said}");
    }
    // A cell twice with separate nodes; and an adjacent cell that overlaps it.
    let corner = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let beside = corner.map(|[x, y, z]| [x + 0.2, y + 0.1, z - 0.9]);
    for other in [corner, beside] {
        for points in [[corner, other].concat(), turned(&[corner, other].concat(), 3)] {
            let said = message(of_cells(4, &points, &[&[1, 2, 3, 4], &[5, 6, 7, 8]]).as_bytes());
            assert!(said.contains("overlap") && said.contains("inside of both"), "{said}");
        }
    }
}

/// Coincident nodes do not connect cells; they are valid for a slit.
#[test]
fn bodies_that_touch_in_their_nodes_are_taken() {
    let points: Vec<[f64; 3]> = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        .into_iter()
        .chain([[1.0, 0.0], [2.0, 0.0], [2.0, 1.0], [1.0, 1.0]])
        .map(|[x, y]| [x, y, 0.0])
        .collect();
    for points in [points.clone(), turned(&points, 2)] {
        let mesh = gmsh::parse(of_cells(3, &points, &[&[1, 2, 3, 4], &[5, 6, 7, 8]]).as_bytes());
        let mesh = mesh.unwrap_or_else(|error| panic!("{error}"));
        assert!(mesh.notes().iter().any(|note| note.contains("2 nodes lie where another does")));
    }
}

#[test]
fn a_node_in_two_places_is_an_error_with_its_line() {
    let points = [[0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 0.0]];
    let text = of_cells(2, &points, &[&[1, 2, 3], &[1, 3, 4]]);
    let twice = text.replace("\n50 0 2 0\n", "\n40 0 2 0\n");
    assert_eq!(
        message(twice.as_bytes()),
        "line 10: node 40 is at (0, 2, 0) here, and at (0, 1, 0) before"
    );
    // An equal duplicate is accepted.
    let same = text.replace("\n50 0 2 0\n", "\n40 0 1 0\n");
    assert!(gmsh::parse(same.as_bytes()).is_ok());
}

/// An integral over a facet with cells on both sides would be ambiguous.
#[test]
fn facets_between_cells_are_none_of_a_boundary() {
    let points = [[0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
    let text = of_cells(2, &points, &[&[1, 2, 3], &[1, 3, 4]])
        .replace("$Elements\n2\n", "$Elements\n4\n3 1 2 7 1 10 30\n4 1 2 7 2 10 20\n");
    let mesh = gmsh::parse(text.as_bytes()).expect("a mesh");
    let tag = "7".to_owned();
    assert_eq!(mesh.facets_under([&tag]).map(|facets| facets.len()), Ok(2));
    let said = mesh.outer_facets_under([&tag]).expect_err("one inside").to_string();
    for words in ["1 of the 2 facets tagged \"7\"", "inside the domain", "(0.500000, 0.500000"] {
        assert!(said.contains(words), "{said}");
    }
}
