//! `refine = N;`: uniform refinement of all cells, of generated meshes and files, and inheritance of data.

use std::path::Path;
use std::process::Command;

use runtime::mesh::{EntityCounts, gmsh};
use weakform::{Cell, Execution, Form, Mesh, Solution, mesh};

fn solved(folder: &Path, text: &str) -> Result<Solution, weakform::Error> {
    Form::parse(text, "f")?.problem("p")?.folder(folder).execution(Execution::Interpreted).run()
}

#[track_caller]
fn solution(folder: &Path, text: &str) -> Solution {
    solved(folder, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(|figure| figure.number()).expect("a number")
}

fn generated(text: &str) -> Mesh {
    mesh(text).unwrap_or_else(|error| panic!("{error}"))
}

fn npy(values: &[f64]) -> Vec<u8> {
    let header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", values.len());
    let length = (header.len() as u16).to_le_bytes();
    let numbers = values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &numbers].concat()
}

#[test]
fn a_refined_box_is_the_finer_box() {
    for (cell, sides) in
        [("quad", ""), ("tri", ""), ("hex", ""), ("quad", "periodic \"x0\" = \"x1\";")]
    {
        let of = |cells: usize, refine: usize| {
            let text = format!(
                "form f {{ field u: scalar; f0[u] = u^3 - 1 - x[0] * x[1]; f1[u] = grad(u); on boundary \"y1\" {{ f0[u] = u; }} }}
                 problem p solves f {{
                     mesh = box(cells: {cells}, to: {}, cell: {cell}); refine = {refine}; degree = 2; {sides}
                     dirichlet u = 0 on \"y0\";
                     solver = newton(rtol: 1e-13);
                     report power = integral(dot(grad(u), grad(u))); report side = integral(u, on: \"y1\");
                 }}",
                if cell == "hex" { "[1, 2, 1]" } else { "[1, 2]" }
            );
            solution(Path::new("."), &text)
        };
        let (refined, fine) =
            (of(2, if cell == "hex" { 1 } else { 2 }), of(if cell == "hex" { 4 } else { 8 }, 0));
        assert_eq!(refined.dofs(), fine.dofs());
        for name in ["power", "side"] {
            let (a, b) = (number(&refined, name), number(&fine, name));
            assert!((a - b).abs() < 1e-11 * b, "{cell} {name}: {a} and {b}");
        }
    }
}

#[test]
fn new_nodes_of_round_boundaries_lie_on_them() {
    for (cell, orders) in
        [("quad", [1, 2, 5]), ("tri", [1, 2, 4]), ("hex", [1, 2, 3]), ("tet", [1, 2, 3])]
    {
        for order in orders {
            for round in ["ball(refine: 1", "shell(refine: 1, inner: 0.4, outer: 1.5"] {
                let coarse = generated(&format!("{round}, cell: {cell}, order: {order})"));
                let counts = EntityCounts::of(&coarse);
                for times in 1..=2 {
                    let fine = coarse.clone().refined(times).expect("room");
                    assert_eq!(EntityCounts::of(&fine), counts.refined(times));
                    let boundary = fine.boundary();
                    let tagged: usize = fine.facet_tags().values().map(Vec::len).sum();
                    assert_eq!(boundary.len(), tagged);
                    let space = nodes_on_boundary(&fine);
                    for node in space {
                        let at = fine.points()[node as usize];
                        let radius = at.iter().map(|x| x * x).sum::<f64>().sqrt();
                        let off =
                            |wanted: f64| (radius - wanted).abs() < 4.0 * f64::EPSILON * wanted;
                        let all: &[f64] =
                            if round.starts_with("ball") { &[1.0] } else { &[0.4, 1.5] };
                        assert!(all.iter().any(|&wanted| off(wanted)), "{cell} {order}: {radius}");
                    }
                }
            }
        }
    }
    // Cells of the ball's shape: the volume converges with the order of the geometry.
    let off = |times| {
        let fine = generated("ball(dim: 3, refine: 1, order: 2)").refined(times).expect("room");
        (fine.size() - 4.0 / 3.0 * std::f64::consts::PI).abs()
    };
    assert!(off(1) < 0.1 * off(0) && off(2) < 0.1 * off(1), "{} {} {}", off(0), off(1), off(2));
}

#[test]
fn meshes_of_files_keep_tags_and_size() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("meshes");
    for file in [
        "plate_hole_quad.msh",
        "plate_hole_quad9.msh",
        "plate_hole_tri.msh",
        "elbow_hex.msh",
        "elbow_hex27.msh",
        "ball_hex_unstructured.msh",
        "bracket_tet.msh",
        "bracket_tet10.msh",
    ] {
        let coarse =
            gmsh::parse(&std::fs::read(folder.join(file)).expect("a file")).expect("a mesh");
        let fine = coarse.clone().refined(1).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(EntityCounts::of(&fine), EntityCounts::of(&coarse).refined(1), "{file}");
        // Children have the map of their parent.
        let (a, b) = (fine.size(), coarse.size());
        assert!((a - b).abs() < 1e-11 * b, "{file}: {a} and {b}");
        let parts = 1 << (coarse.dim() - 1);
        let sizes = |mesh: &Mesh, parts: usize| -> Vec<(String, usize)> {
            mesh.facet_tags().iter().map(|(tag, own)| (tag.clone(), own.len() * parts)).collect()
        };
        assert_eq!(sizes(&fine, 1), sizes(&coarse, parts), "{file}");
        for (tag, cells) in coarse.cell_tags() {
            assert_eq!(fine.cell_tags()[tag].len(), 2 * parts * cells.len(), "{file} {tag}");
        }
    }
}

#[test]
fn refining_twice_is_refining_two_times() {
    for cell in ["quad", "hex", "tri", "tet"] {
        let coarse = generated(&format!("box(cells: 2, cell: {cell})"));
        let twice = coarse.clone().refined(1).and_then(|mesh| mesh.refined(1)).expect("room");
        let at_once = coarse.refined(2).expect("room");
        assert_eq!(EntityCounts::of(&twice), EntityCounts::of(&at_once));
    }
}

/// Data that is a linear function at nodes and at the centres of coarse cells, for each cell of a box.
#[test]
fn data_of_the_coarse_mesh_is_inherited() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, values: &[f64]| {
        std::fs::write(folder.path().join(name), npy(values)).expect("a file");
    };
    for (cell, dim, splits) in [("quad", 2, 1), ("tri", 2, 2), ("hex", 3, 1), ("tet", 3, 6)] {
        let side = |axis: usize| if axis < dim { 3 } else { 1 };
        let (mut nodes, mut cells) = (Vec::new(), Vec::new());
        for k in 0..side(2) {
            for j in 0..3 {
                for i in 0..3 {
                    nodes.push((i + 10 * j + 100 * k) as f64);
                    if i < 2 && j < 2 && (k < 2 || dim == 2) {
                        cells.extend(vec![(i + 10 * j + 100 * k) as f64; splits]);
                    }
                }
            }
        }
        write("nodes.npy", &nodes);
        write("cells.npy", &cells);
        let z = if dim == 3 { " + 100 * x[2]" } else { "" };
        let text = |refine: usize, cells: &str| {
            format!(
                "form f {{ field u: scalar; aux c: scalar on cells; aux v: scalar; f0[u] = u - c - v; }}
                 problem p solves f {{
                     mesh = box(cells: 2, to: [{}], cell: {cell}); refine = {refine}; degree = 1;
                     aux c = file(\"{cells}\"); aux v = file(\"nodes.npy\");
                     report off = maximum(abs(v - (x[0] + 10 * x[1]{z})));
                     report sum = integral(c * x[1]); report square = integral(c^2);
                 }}",
                vec!["2"; dim].join(", ")
            )
        };
        let whole = solution(folder.path(), &text(0, "cells.npy"));
        for refine in [1, 2] {
            let parts = solution(folder.path(), &text(refine, "cells.npy"));
            assert!(number(&parts, "off") < 1e-11, "{cell}: {}", number(&parts, "off"));
            // One value per child, those of a cell consecutive, is accepted as data, too.
            let each = 1 << (dim * refine);
            let own: Vec<f64> = cells.iter().flat_map(|&c| vec![c; each]).collect();
            write("parts.npy", &own);
            let given = solution(folder.path(), &text(refine, "parts.npy"));
            for name in ["sum", "square"] {
                let expected = number(&whole, name);
                for found in [number(&parts, name), number(&given, name)] {
                    assert!((found - expected).abs() < 1e-11 * expected, "{cell} {name}");
                }
            }
        }
        write("parts.npy", &[1.0; 7]);
        let error = solved(folder.path(), &text(1, "parts.npy")).map(drop).expect_err("an error");
        assert!(error.to_string().contains('7'), "{error}");
    }
}

/// A solution on the coarse mesh is data of the fine one; a state is valid on its own mesh only.
#[test]
fn solutions_are_data_and_states() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |mesh: &str, refine: usize, more: &str| {
        format!(
            "form f {{ field u: scalar; aux c: scalar on cells; aux v: scalar; f0[u] = u - c - v; f1[u] = grad(u); }}
             problem p solves f {{ mesh = {mesh}; refine = {refine}; degree = 2; {more}
                 report whole = integral(v + c); }}"
        )
    };
    for mesh in [
        "ball(dim: 2, refine: 1)",
        "box(cells: 2, cell: tet)",
        "shell(dim: 2, refine: 1, cell: tri)",
    ] {
        let formula = "aux c = 1; aux v = 1 + x[0]^2;";
        let data = "aux c = 1; aux v = file(\"coarse.vtu\", \"u\");";
        let first = solution(folder.path(), &text(mesh, 0, formula));
        first.write_vtu(folder.path().join("coarse.vtu")).expect("a file");
        let refused =
            solved(folder.path(), &text(mesh, 1, data)).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|error| error.contains("it was written on another mesh")));
        let fine = solution(folder.path(), &text(mesh, 1, formula));
        fine.write_vtu(folder.path().join("fine.vtu")).expect("a file");
        let again = text(mesh, 1, &format!("{formula} initial u = file(\"fine.vtu\", \"u\");"));
        let again = solution(folder.path(), &again);
        let far = fine.values().iter().zip(again.values()).map(|(a, b)| (a - b).abs());
        assert!(far.fold(0.0, f64::max) < 1e-9);
    }
}

fn wf(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("wf should start");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_command_line_refines_and_says_what_does_not_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "form f { field u: scalar; f0[u] = u - 1; }
problem p solves f { mesh = box(dim: 2, cells: 3); refine = 1; }\n";
    std::fs::write(folder.path().join("a.wf"), text).expect("a file");
    let run = |more: &[&str]| {
        wf(folder.path(), &[&["run", "a.wf", "--interpret", "--no-output"], more].concat())
    };
    let (done, said) = run(&[]);
    assert!(done && said.contains("36 cells (quad)"), "{said}");
    let (done, said) = run(&["--refine", "2"]);
    assert!(done && said.contains("144 cells (quad)"), "{said}");
    let (done, said) = run(&["--refine", "14", "--dry-run"]);
    assert!(!done && said.contains("2415919104 cells") && said.contains("E0413"), "{said}");
    let (done, said) = run(&["--refine", "14"]);
    assert!(!done && said.contains("refine = 14") && said.contains("--refine"), "{said}");
    let (done, said) = run(&["--refine", "15"]);
    assert!(!done && said.contains("`refine` is a whole number from 0 to 14"), "{said}");
    let (done, said) = run(&["--refine", "3", "--dry-run"]);
    assert!(
        done && said.contains("576 cells (quad)") && said.contains("unknowns    625"),
        "{said}"
    );
    let (done, said) = wf(folder.path(), &["fmt", "--check", "a.wf"]);
    assert!(!done && said.contains("a.wf"), "{said}");
}

#[test]
fn a_cell_of_each_kind_is_divided() {
    for (cell, parts) in [
        (Cell::Triangle, 4),
        (Cell::Quadrilateral, 4),
        (Cell::Tetrahedron, 8),
        (Cell::Hexahedron, 8),
    ] {
        let coarse =
            generated(&format!("lshape(dim: {}, refine: 0, cell: {})", cell.dim(), cell.name()));
        let fine = coarse.clone().refined(1).expect("room");
        assert_eq!(fine.n_cells(), parts * coarse.n_cells());
        assert_eq!(coarse.clone().refined(0).expect("nothing to do"), coarse);
    }
}

/// Returns the geometry nodes of the facets that belong to exactly one cell.
fn nodes_on_boundary(mesh: &Mesh) -> Vec<u32> {
    use kernels_gen::element::Lagrange;
    use runtime::mesh::partition::Partition;
    use runtime::space::Space;
    let element = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let space = Space::new(mesh, &Partition::new(mesh, 1.0), element, 1).expect("a space");
    let mut nodes: Vec<u32> = Vec::new();
    for facet in mesh.boundary() {
        let own = mesh.cell_nodes(facet.cell as usize);
        let local = space.facet_nodes(usize::from(facet.local));
        nodes.extend(local.iter().map(|&local| own[local as usize]));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
