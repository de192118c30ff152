//! Unusable meshes: missing, damaged, of unknown format, with inverted cells, without a requested tag.

use std::path::Path;

use super::gallery::{Said, Stand, at, said};

const ITEMS: &str = "mesh = \"part.msh\"; dirichlet u = 0;";
const PLACE: (&str, u64, u64) = ("a.wf", 2, 29);

fn mesh(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("meshes").join(name);
    std::fs::read(path).expect("a mesh of the project")
}

/// Returns a problem on a mesh with this content.
fn stand(content: impl AsRef<[u8]>) -> Stand {
    let stand = Stand::problem(ITEMS);
    stand.write("part.msh", content);
    stand
}

/// Returns a file of format 2.2 with one cell.
fn one_cell(kind: u32, points: &[[f64; 3]], nodes: &[u32]) -> String {
    let mut text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n", points.len());
    for (i, [x, y, z]) in points.iter().enumerate() {
        text.push_str(&format!("{} {x} {y} {z}\n", i + 1));
    }
    let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    let element = format!("42 {kind} 2 0 1 {}", nodes.join(" "));
    text.push_str(&format!("$EndNodes\n$Elements\n1\n{element}\n$EndElements\n"));
    text
}

#[test]
fn a_mesh_that_is_not_there() {
    let words = &["part.msh", "No such file", "from the folder of the `.wf` file"];
    Stand::problem(ITEMS).refuses_run(&[], at("E0413", PLACE, words));
    let folder = Stand::problem(ITEMS);
    std::fs::create_dir(folder.path("part.msh")).expect("a folder");
    folder.refuses_run(&[], at("E0413", PLACE, &["part.msh", "that you may read"]));
}

#[test]
fn meshes_that_are_damaged() {
    let text = mesh("plate_hole_quad.msh");
    let binary = mesh("bracket_tet_v2_binary.msh");
    let replaced = String::from_utf8(text.clone()).expect("a text file").replacen("0.", "zero.", 1);
    let truncated: &[&str] = &["line 249", "the end of the file", "help: the file is damaged"];
    let cases: [(&[u8], &[&str]); 6] = [
        (&text[..3000], truncated),
        (&binary[..40_000], &["byte", "the file is damaged"]),
        (replaced.as_bytes(), &["line ", "`zero.", "save it again"]),
        (b"", &["$MeshFormat", "empty"]),
        (b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", &["expected"]),
        (b"$MeshFormat\n3 0 8\n$EndMeshFormat\n", &["format 3 is not supported", "msh41"]),
    ];
    for (content, words) in cases {
        stand(content).refuses_run(&[], at("E0413", PLACE, words));
    }
}

/// The contents of the file, rather than its name, determine its expected format.
#[test]
fn meshes_of_other_formats_that_are_damaged() {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests/meshes").join(name);
        std::fs::read(path).expect("a mesh of the tests")
    };
    let (vtu, vtk, inp) = (
        file("disc_quad8_zlib_big.vtu"),
        file("disc_quad8_text.vtk"),
        String::from_utf8(file("disc_quad8.inp")).expect("a text file"),
    );
    let prism = inp.replace("CPS8", "C3D6").into_bytes();
    let include = inp.replace("*NODE", "*INCLUDE, INPUT=nodes.inp\n*NODE").into_bytes();
    let cases: [(&[u8], &[&str]); 6] = [
        (&vtu[..3000], &["byte", "no VTU mesh"]),
        (&vtk[..2000], &["line ", "found", "no legacy VTK mesh"]),
        (
            &inp.as_bytes()[..2200],
            &["line ", "more nodes of a quad of 8 nodes", "mend the file there"],
        ),
        (&prism, &["elements of type C3D6 (a prism)", "tetrahedra alone or hexahedra alone"]),
        (&include, &["line 3: *INCLUDE takes lines from another file", "copy them to here"]),
        (
            b"<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\"/>",
            &["type PolyData", "Append Datasets"],
        ),
    ];
    for (content, words) in cases {
        stand(content).refuses_run(&[], at("E0413", PLACE, words));
    }
    let other = Stand::problem("mesh = \"part.stl\"; dirichlet u = 0;");
    other.write("part.stl", "solid cube");
    let words = &[
        "expected a mesh of Gmsh (.msh), VTK (.vtu, or legacy .vtk), Abaqus (.inp) or MFEM (.mesh)",
        "-save -o part.msh",
    ];
    other.refuses_run(&[], at("E0413", PLACE, words));
}

/// The element's own number, its position, and the remedy.
#[test]
fn inverted_cells_are_named_with_their_place() {
    let square = [[2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [3.0, 1.0, 0.0], [2.0, 1.0, 0.0]];
    let bow = one_cell(3, &square, &[1, 3, 2, 4]);
    let words = &["element 42 with centre (2.5", "is inverted", "mend the mesh there"];
    stand(bow).refuses_run(&[], at("E0413", PLACE, words));
    let mut flat = square;
    (flat[2][1], flat[3][1]) = (0.0, 0.0);
    let words = &["element 42 with centre (2.5", "is degenerate"];
    stand(one_cell(3, &flat, &[1, 2, 3, 4])).refuses_run(&[], at("E0413", PLACE, words));
}

#[test]
fn tags_that_a_file_does_not_have() {
    let words: &[&str] = &[
        "no boundary \"rigth\"",
        "its tags are \"hole\", \"left\", \"rest\", \"right\"",
        "did you mean `right`?",
    ];
    let stand = Stand::problem("mesh = \"part.msh\"; dirichlet u = 0 on \"left\", \"rigth\";");
    stand.write("part.msh", mesh("plate_hole_quad.msh"));
    stand.refuses_run(&[], at("E0405", ("a.wf", 2, 68), words));
    // A probe ignores conditions.
    let output = stand.output(&["probe", "a.wf", "--interpret", "--at", "u=1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Tags of the form's boundary blocks have locations like those of conditions, and one run reports all.
#[test]
fn all_tags_that_a_file_does_not_have_are_underlined_in_one_run() {
    let stand = Stand::with(
        "form p { field u: scalar; f1[u] = grad(u); on boundary \"hola\" { f0[u] = u; } }\n\
         problem q solves p { mesh = \"part.msh\"; dirichlet u = 0 on \"rigth\"; dirichlet u = 1 on \"lft\"; }",
    );
    stand.write("part.msh", mesh("plate_hole_quad.msh"));
    let words: &[&str] = &[
        "a.wf:1:56",
        "a.wf:2:60",
        "a.wf:2:88",
        "did you mean `hole`?",
        "did you mean `right`?",
        "did you mean `left`?",
        "its tags are \"hole\", \"left\", \"rest\", \"right\"",
    ];
    stand.refuses_run(&[], at("E0405", ("a.wf", 1, 56), words));
}

#[test]
fn generators_that_cannot() {
    let cases: [(&str, &[&str]); 5] = [
        ("box(dim: 2, cells: 100000)", &["more than 32-bit indices"]),
        ("ball(dim: 3, refine: 14)", &["more than 32-bit indices"]),
        ("shell(dim: 3, inner: 2, outer: 1)", &["greater than the inner one"]),
        ("box(dim: 2, cells: 1, from: [0, 0], to: [0, 1])", &["less than"]),
        ("box(dim: 2, cells: 1, deform: 3)", &["`deform`", "0.25"]),
    ];
    let stand = Stand::problem(ITEMS);
    for (mesh, words) in cases {
        let said = Said { code: Some("E0413"), place: Some(("--mesh", 1, 1)), words };
        stand.refuses_run(&["--mesh", mesh], said);
    }
}

/// Two triangles on one side of an edge: the measure would be 1 for a covered area of 0.75.
#[test]
fn overlapping_cells_are_named_with_their_place() {
    let text = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 1 1 0\n$EndNodes\n\
                $Elements\n2\n7 2 2 0 1 1 2 3\n9 2 2 0 1 1 2 4\n$EndElements\n";
    let words = &[
        "element 7 with centre",
        "element 9 with centre",
        "overlap",
        "near (0.500000, 0.000000",
        "two in each",
    ];
    let stand = stand(text);
    stand.refuses_run(&[], at("E0413", PLACE, words));
    stand.refuses(&["check", "a.wf"], at("E0413", PLACE, words));
}

/// Two squares with duplicate nodes on their common side.
#[test]
fn nodes_that_are_not_merged_are_noted() {
    let text = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n8\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n5 1 0 0\n6 2 0 0\n\
                7 2 1 0\n8 1 1 0\n$EndNodes\n$Elements\n2\n1 3 2 0 1 1 2 3 4\n2 3 2 0 1 5 6 7 8\n$EndElements\n";
    let stand = stand(text);
    let note = "2 nodes lie where another does, the first at (1, ";
    for arguments in [&["run", "a.wf", "--interpret", "--no-output"][..], &["check", "a.wf"]] {
        let output = stand.output(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains(note), "{said}");
        let output = stand.output(&[arguments, &["--json"]].concat());
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let notes = value["notes"].as_array().expect("notes");
        assert!(
            notes.iter().any(|said| said.as_str().is_some_and(|said| said.contains(note))),
            "{value}"
        );
    }
}

/// Returns the unit square of two triangles with additional nodes and elements: facets of group 7, named "mid".
fn square(name: &str, nodes: &[&str], elements: &[&str]) -> String {
    let own = ["10 0 0 0", "20 1 0 0", "30 1 1 0", "40 0 1 0"];
    let triangles = ["1 2 2 1 1 10 20 30", "2 2 2 1 1 10 30 40"];
    let list = |own: &[&str], more: &[&str]| {
        format!("{}\n{}\n", own.len() + more.len(), [own, more].concat().join("\n"))
    };
    format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n1 7 \"{name}\"\n$EndPhysicalNames\n\
         $Nodes\n{}$EndNodes\n$Elements\n{}$EndElements\n",
        list(&own, nodes),
        list(&triangles, elements)
    )
}

/// A node in the middle of another cell's side: both sides would count as boundary.
#[test]
fn nodes_inside_facets_of_other_cells_are_named_with_their_place() {
    let nodes = ["50 1 0.5 0", "60 2 0 0", "70 2 1 0"];
    let elements = ["3 2 2 1 1 20 60 50", "4 2 2 1 1 50 60 70", "5 2 2 1 1 50 70 30"];
    let stand = stand(square("mid", &nodes, &elements));
    let words = &[
        "node 50 at (1.000000, 0.500000, 0.000000)",
        "inside a facet of element 1",
        "make the mesh conforming",
    ];
    stand.refuses_run(&[], at("E0413", PLACE, words));
    stand.refuses(&["check", "a.wf"], at("E0413", PLACE, words));
}

/// A triangle over two others, without common nodes.
#[test]
fn cells_inside_others_are_named_with_their_place() {
    let nodes = ["50 0.2 0.1 0", "60 0.7 0.1 0", "70 0.5 0.2 0"];
    let stand = stand(square("mid", &nodes, &["3 2 2 1 1 50 60 70"]));
    let words = &["element 3 of \"1\"", "element 1 of \"1\"", "overlap", "mend the mesh there"];
    stand.refuses_run(&[], at("E0413", PLACE, words));
}

#[test]
fn a_node_in_two_places_is_named_with_its_line() {
    let stand = stand(square("mid", &["40 0 2 0"], &[]));
    let words = &["line 14: node 40 is at (0, 2, 0) here", "a number of its own"];
    stand.refuses_run(&[], at("E0413", PLACE, words));
}

/// An integral over facets between two cells would be ambiguous; a condition on them is valid.
#[test]
fn boundaries_between_cells_are_not_integrated_over() {
    let text = "form p { field u: scalar; f0[u] = u - 1; f1[u] = grad(u); on boundary \"mid\" { f0[u] = -1; } }\n\
                problem q solves p { mesh = \"part.msh\"; }\n";
    let stand = Stand::with(text);
    let mesh = square("mid", &[], &["3 1 2 7 1 10 30"]);
    stand.write("part.msh", &mesh);
    let words =
        &["the 1 facets tagged \"mid\"", "inside the domain", "(0.500000, 0.500000", "`dirichlet`"];
    stand.refuses_run(&[], at("E0413", super::gallery::place(text, "\"mid\""), words));
    let held = Stand::problem("mesh = \"part.msh\"; dirichlet u = 0 on \"mid\";");
    held.write("part.msh", mesh);
    let output = held.output(&["run", "a.wf", "--interpret", "--no-output"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Over interior facets, single-valued expressions have an integral; a gradient and `n` have none.
#[test]
fn reports_are_integrated_over_facets_inside_where_both_sides_agree() {
    let problem = |report: &str| {
        format!(
            "mesh = \"part.msh\"; dirichlet u = x[0] + 2 * x[1]; report r = integral({report}, on: \"mid\");"
        )
    };
    let stand = |report: &str| {
        let stand = Stand::problem(&problem(report));
        stand.write("part.msh", square("mid", &[], &["3 1 2 7 1 10 30"]));
        stand
    };
    let output = stand("1 + u").output(&["run", "a.wf", "--interpret", "--no-output", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // The mean of u along the diagonal is 1.5.
    let found = value["reports"]["r"].as_f64().unwrap_or_else(|| panic!("{value}"));
    assert!((found - 2.5 * 2.0_f64.sqrt()).abs() < 1e-9, "{found}");
    let place = ("a.wf", 2, 9);
    for sided in ["dot(grad(u), n)", "grad(u)[0]"] {
        let words =
            &["the 1 facets tagged \"mid\"", "inside the domain", "the same from both sides"];
        stand(sided).refuses_run(&[], at("E0413", place, words));
    }
}

/// Cells and a side with one tag: only `n` implies that the sides are integrated over.
#[test]
fn an_integral_over_a_tag_of_cells_and_of_facets_is_refused() {
    let stand = |report: &str| {
        let stand = Stand::problem(&format!(
            "mesh = \"part.msh\"; dirichlet u = 0 on \"mid\"; report r = integral({report}, on: \"1\");"
        ));
        let sides = ["3 1 2 1 1 10 20", "4 1 2 7 1 30 40"];
        stand.write("part.msh", square("mid", &[], &sides));
        stand
    };
    let words = &["\"1\" is a tag of cells and of facets", "give them different names in the mesh"];
    stand("1").refuses_run(&[], said(words));
    let output = stand("n[1]").output(&["run", "a.wf", "--interpret", "--no-output", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["reports"]["r"], -1.0, "{value}");
}

/// The message was `error: ` and nothing else, and `wf check` called the file good.
#[test]
fn tags_of_cells_that_a_mesh_lacks_are_named_with_their_place() {
    let form = "form p { field u: scalar; aux c: scalar on cells; f0[u] = c * u - 1; on cells \"left\" { f0[u] = -1; } }\n";
    let words = &["the mesh has no tag of cells \"left\"", "its tags are \"1\""];
    let text = format!("{form}problem q solves p {{ mesh = \"part.msh\"; aux c = 1; }}\n");
    let stand = Stand::with(&text);
    stand.write("part.msh", square("mid", &[], &[]));
    let place = super::gallery::place(&text, "\"left\"");
    stand.refuses_run(&[], at("E0405", place, words));
    stand.refuses(&["check", "a.wf"], at("E0405", place, words));
    let text = "form p { field u: scalar; f0[u] = u - 1; }\n\
                problem q solves p { mesh = \"part.msh\"; dirichlet u = 0 on \"rim\"; }\n";
    let stand = Stand::with(text);
    stand.write("part.msh", square("mid", &[], &["3 1 2 7 1 10 20"]));
    let place = super::gallery::place(text, "\"rim\"");
    stand.refuses(&["check", "a.wf"], at("E0405", place, &["no boundary \"rim\""]));
}

/// Names of mesh tags are displayed without control sequences.
#[test]
fn names_that_cannot_be_read_are_shown_readably() {
    let long = "x".repeat(100_000);
    for (name, shown) in [("a\u{1b}[31mb\u{202e}", "\"a\u{fffd}[31mb\u{fffd}\""), (&long, "xxx…\"")]
    {
        let stand = Stand::problem("mesh = \"part.msh\"; dirichlet u = 0 on \"mid\";");
        stand.write("part.msh", square(name, &[], &["3 1 2 7 1 10 20"]));
        let output = stand.output(&["run", "a.wf", "--interpret"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(shown) && !said.contains('\u{1b}') && said.len() < 2000, "{said}");
    }
    let stand = Stand::problem("mesh = \"\"; dirichlet u = 0;");
    std::fs::rename(stand.path("a.wf"), stand.path("b\u{1b}[31m.wf")).expect("renamed");
    let output = stand.output(&["run", "b\u{1b}[31m.wf", "--interpret", "--output", "c\u{1b}.vtu"]);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("b\u{fffd}[31m.wf") && !said.contains('\u{1b}'), "{said}");
}

/// An integral over a tag has one meaning, independent of other reports.
#[test]
fn a_tag_of_cells_and_of_facets_alike_is_no_place_of_an_integral() {
    let both = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n1 1 \"t\"\n2 2 \"t\"\n$EndPhysicalNames\n\
                $Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n\
                $Elements\n3\n1 1 2 1 1 1 2\n2 2 2 2 1 1 2 3\n3 2 2 2 1 1 3 4\n$EndElements\n";
    let integral = "report a = integral(1, on: \"t\");";
    for other in ["", "report b = integral(n[0], on: \"t\");"] {
        let stand = Stand::problem(&format!("{ITEMS} {other} {integral}"));
        stand.write("part.msh", both);
        let words = ["\"t\" is a tag of cells and of facets", "give them different names"];
        stand.refuses_run(&["--no-output"], said(&words));
    }
}

/// Such a box has no floating-point coordinates for its cells, independent of `deform`.
#[test]
fn boxes_whose_coordinates_overflow_or_coincide_do_not_blame_deform() {
    for (arguments, words) in [
        ("from: [-1e308, 0], to: [1e308, 1]", "coordinates overflow in x"),
        ("from: [1, 0], to: [1.0000000000000002, 1]", "neighbouring nodes coincide in x"),
        ("to: [1, 1e30]", "degenerate"),
        ("to: [1e300, 1e300]", "too large for numbers to hold"),
    ] {
        let stand =
            Stand::problem(&format!("mesh = box(dim: 2, cells: 2, {arguments}); dirichlet u = 0;"));
        stand.refuses_run(&[], at("E0413", PLACE, &[words]));
        let output = stand.output(&["run", "a.wf", "--interpret"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("deform"), "{said}");
    }
}

/// A 9-node square whose lower side is reversed near its first node.
#[test]
fn a_side_that_runs_backwards_is_a_fold_of_the_boundary() {
    let points = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.05, 0.0], [1.0, 0.5]];
    let points = points.into_iter().chain([[0.5, 1.0], [0.0, 0.5], [0.5, 0.5]]);
    let points: Vec<[f64; 3]> = points.map(|[x, y]| [x, y, 0.0]).collect();
    let nodes: Vec<u32> = (1..=9).collect();
    let stand = stand(one_cell(10, &points, &nodes));
    stand.refuses_run(&[], at("E0413", PLACE, &["element 42", "inverted in a part of it"]));
}
