//! Mesh files of VTK, Abaqus and MFEM: the same mesh as from Gmsh files, serendipity elements, and no panic on broken files.

#[path = "mesh_files/broken.rs"]
mod broken;
#[path = "mesh_files/mfem.rs"]
mod mfem;
#[path = "mesh_files/plain.rs"]
mod plain;
#[path = "mesh_files/write.rs"]
mod write;

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::path::PathBuf;

use fem_dsl::problem::Argument;
use plain::Plain;
use runtime::files::output::{Output, write_vtu_to};
use runtime::mesh::read::{self, MeshFormat};
use runtime::mesh::{Cell, Mesh, generate};
use write::{How, Xml};

const ASCII: Xml = Xml { how: How::Ascii, big: false, header: 4, zlib: false };

fn parsed(format: MeshFormat, bytes: &[u8]) -> Mesh {
    read::parse(format, bytes).unwrap_or_else(|error| panic!("{format}: {error}"))
}

fn generated(name: &str, arguments: &[(&str, Argument)]) -> Mesh {
    let arguments: BTreeMap<String, Argument> =
        arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    generate::generate(name, &arguments).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns small meshes of every cell type: name, mesh, and number of nodes per element.
fn meshes() -> Vec<(&'static str, Mesh, usize)> {
    let number = Argument::Number;
    let word = |text: &str| Argument::Word(text.to_owned());
    let small = |dim: f64, cell: &str| {
        let cells = if dim == 2.0 { 3.0 } else { 2.0 };
        let deform = if cell == "tri" || cell == "tet" { 0.0 } else { 0.1 };
        let arguments = [
            ("dim", number(dim)),
            ("cells", number(cells)),
            ("cell", word(cell)),
            ("deform", number(deform)),
        ];
        generated("box", &arguments)
    };
    let round = |dim: f64, cell: &str| {
        let arguments = [
            ("dim", number(dim)),
            ("refine", number(0.0)),
            ("order", number(2.0)),
            ("cell", word(cell)),
        ];
        generated("ball", &arguments)
    };
    vec![
        ("tri3", small(2.0, "tri"), 3),
        ("quad4", small(2.0, "quad"), 4),
        ("tet4", small(3.0, "tet"), 4),
        ("hex8", small(3.0, "hex"), 8),
        ("tri6", round(2.0, "tri"), 6),
        ("quad8", round(2.0, "quad"), 8),
        ("quad9", round(2.0, "quad"), 9),
        ("tet10", round(3.0, "tet"), 10),
        ("hex20", round(3.0, "hex"), 20),
        ("hex27", round(3.0, "hex"), 27),
    ]
}

/// Asserts equal cells, points, tags and numbering.
fn same(name: &str, first: &Mesh, second: &Mesh) {
    assert_eq!((first.cell(), first.order()), (second.cell(), second.order()), "{name}");
    assert_eq!(first.nodes(), second.nodes(), "{name}");
    assert_eq!(first.cell_tags(), second.cell_tags(), "{name}");
    let mut tags = second.facet_tags().clone();
    tags.remove("all");
    assert_eq!(first.facet_tags(), &tags, "{name}");
    assert_eq!(first.points(), second.points(), "{name}");
}

#[test]
fn all_formats_give_the_mesh_that_gmsh_gives() {
    for (name, mesh, nodes) in meshes() {
        let plain = Plain::new(&mesh, nodes);
        let gmsh = parsed(MeshFormat::Gmsh, &write::gmsh(&plain));
        assert_eq!((gmsh.cell(), gmsh.order()), (mesh.cell(), mesh.order()), "{name}");
        assert_eq!(gmsh.n_cells(), mesh.n_cells(), "{name}");
        assert_eq!(gmsh.cell_tags().keys().collect::<Vec<_>>(), ["1", "2"], "{name}");
        assert_eq!(gmsh.facet_tags().keys().collect::<Vec<_>>(), ["3", "4"], "{name}");
        let tagged: usize = gmsh.facet_tags().values().map(Vec::len).sum();
        assert_eq!(tagged, mesh.boundary().len(), "{name}");
        let rounding = 64.0 * f64::EPSILON * mesh.size();
        if !matches!(nodes, 8 | 20) || name == "hex8" {
            assert!((gmsh.size() - mesh.size()).abs() <= rounding, "{name}: {}", gmsh.size());
        }
        let vtu = parsed(MeshFormat::Vtu, &write::vtu(&plain, ASCII, "gmsh:physical"));
        same(name, &gmsh, &vtu);
        assert_eq!(vtu.notes(), ["tags are the values of the cell data \"gmsh:physical\""]);
        for (binary, five) in [(false, false), (true, false), (false, true), (true, true)] {
            let vtk = parsed(MeshFormat::Vtk, &write::vtk(&plain, binary, five));
            same(&format!("{name}, binary {binary}, five {five}"), &gmsh, &vtk);
        }
        for faces in [false, true] {
            let inp = parsed(MeshFormat::Abaqus, &write::inp(&plain, faces));
            // The set of all nodes tags the whole boundary.
            assert_eq!(
                inp.facets_tagged("all").map(<[_]>::len),
                Ok(mesh.boundary().len()),
                "{name}"
            );
            same(&format!("{name} of Abaqus, faces {faces}"), &gmsh, &inp);
        }
    }
}

#[test]
fn arrays_of_xml_are_read_however_they_are_written() {
    let (_, mesh, nodes) = meshes().swap_remove(5);
    let plain = Plain::new(&mesh, nodes);
    let ascii = parsed(MeshFormat::Vtu, &write::vtu(&plain, ASCII, "CellEntityIds"));
    for how in [How::Binary, How::Together, How::AppendedRaw, How::AppendedBase64] {
        for (big, header, zlib) in
            [(false, 4, false), (true, 8, false), (false, 8, true), (true, 4, true)]
        {
            // No program writes compressed data in one piece; the reader accepts it.
            let xml = Xml { how, big, header, zlib };
            let other = parsed(MeshFormat::Vtu, &write::vtu(&plain, xml, "CellEntityIds"));
            assert_eq!(ascii, other, "{xml:?}");
        }
    }
}

/// The output of this program for ParaView is readable, with the same cells and points.
#[test]
fn our_own_output_is_read_back() {
    for (name, mesh, _) in meshes() {
        let (time, point_fields, cell_fields) = (Some(1.0), Vec::new(), Vec::new());
        let output = Output { mesh: &mesh, time, point_fields, cell_fields, states: vec![] };
        let mut bytes = Vec::new();
        write_vtu_to(&mut bytes, &output).unwrap_or_else(|error| panic!("{name}: {error}"));
        let back = parsed(MeshFormat::Vtu, &bytes);
        assert_eq!((back.cell(), back.order()), (mesh.cell(), mesh.order()), "{name}");
        assert_eq!(
            (back.n_cells(), back.n_vertices()),
            (mesh.n_cells(), mesh.n_vertices()),
            "{name}"
        );
        assert_eq!(back.points().len(), mesh.points().len(), "{name}");
        assert_eq!(back.boundary().len(), mesh.boundary().len(), "{name}");
        let rounding = 256.0 * f64::EPSILON * mesh.size();
        assert!(
            (back.size() - mesh.size()).abs() <= rounding,
            "{name}: {} {}",
            back.size(),
            mesh.size()
        );
    }
}

/// Returns a file of `tests/meshes`.
fn mesh(name: &str) -> Mesh {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/meshes").join(name);
    read::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A disc and a cylinder, written by Gmsh 4.15 in Gmsh, VTK and Abaqus formats, and by VTK 9.7 and meshio 5.3.
#[test]
fn files_of_other_programs_are_what_gmsh_has() {
    for (reference, others) in [
        (
            "disc_quad8.msh",
            &[
                "disc_quad8_zlib_big.vtu",
                "disc_quad8_text.vtu",
                "disc_quad8_binary.vtk",
                "disc_quad8_text.vtk",
                "disc_quad8.inp",
            ][..],
        ),
        ("cylinder_hex20.msh", &["cylinder_hex20.vtu", "cylinder_hex20.vtk", "cylinder_hex20.inp"]),
    ] {
        let expected = mesh(reference);
        for name in others {
            let found = mesh(name);
            assert_eq!((found.cell(), found.order()), (expected.cell(), 2), "{name}");
            assert_eq!(found.n_cells(), expected.n_cells(), "{name}");
            assert_eq!(found.points().len(), expected.points().len(), "{name}");
            let gap = (found.size() - expected.size()).abs();
            // Some programs write ten digits.
            assert!(gap <= 1e-9 * expected.size(), "{name}: {gap}");
            let (body, rim) = if name.ends_with(".inp") { ("body", "rim") } else { ("7", "9") };
            assert_eq!(found.cells_tagged(body).map(<[_]>::len), Ok(expected.n_cells()), "{name}");
            let boundary = found.facets_tagged(rim).map(<[_]>::len);
            assert_eq!(boundary, Ok(expected.boundary().len()), "{name}");
        }
    }
    let whole = mesh("cylinder_hex27.inp");
    assert_eq!((whole.cell(), whole.order()), (Cell::Hexahedron, 2));
    assert!((whole.size() - PI).abs() < 1e-2 * PI, "{}", whole.size());
}

/// A midpoint moved outwards by d adds 2 d / 3 to the area of a serendipity square, and d / 3 to the volume of a cube.
#[test]
fn serendipity_elements_have_the_map_of_their_functions() {
    let square = "0 0 0|1 0 0|1 1 0|0 1 0|0.5 -0.3 0|1 0.5 0|0.5 1 0|0 0.5 0";
    let cube = "0 0 0|1 0 0|1 1 0|0 1 0|0 0 1|1 0 1|1 1 1|0 1 1|0.5 -0.3 0|1 0.5 0|0.5 1 0|0 0.5 0|\
                0.5 0 1|1 0.5 1|0.5 1 1|0 0.5 1|0 0 0.5|1 0 0.5|1 1 0.5|0 1 0.5";
    for (points, kind, size) in [(square, "CPS8", 1.2), (cube, "C3D20R", 1.1)] {
        let count = points.split('|').count();
        let mut text = "*NODE\n".to_owned();
        for (i, point) in points.split('|').enumerate() {
            text.push_str(&format!("{}, {}\n", i + 1, point.replace(' ', ", ")));
        }
        let nodes: Vec<String> = (1..=count).map(|n| n.to_string()).collect();
        text.push_str(&format!("*ELEMENT, TYPE={kind}\n7, {}\n", nodes.join(", ")));
        let mesh = parsed(MeshFormat::Abaqus, text.as_bytes());
        assert_eq!((mesh.order(), mesh.n_cells()), (2, 1));
        assert!((mesh.size() - size).abs() <= 64.0 * f64::EPSILON, "{kind}: {}", mesh.size());
    }
}

/// Two cubes with 20 nodes share all nodes of their common face, including its centre, also with a complete neighbour.
#[test]
fn completed_faces_are_shared() {
    for other in ["C3D20", "C3D27"] {
        let mut text = "*NODE\n".to_owned();
        for i in 0..45 {
            let bulge = if i == 22 { 0.25 } else { 0.0 };
            let x = [(i % 5) as f64 + bulge, (i / 5 % 3) as f64, (i / 15) as f64];
            text.push_str(&format!("{}, {}, {}, {}\n", i + 1, x[0], x[1], x[2]));
        }
        let corners =
            "000 200 220 020 002 202 222 022 100 210 120 010 102 212 122 012 001 201 221 021";
        let rest = " 111 110 112 101 211 121 011";
        for (cell, kind) in ["C3D20", other].into_iter().enumerate() {
            let sites = corners.to_owned() + if kind == "C3D27" { rest } else { "" };
            let number = |site: &str| {
                let [i, j, k] = [0, 1, 2].map(|c| usize::from(site.as_bytes()[c] - b'0'));
                (1 + i + 2 * cell + 5 * j + 15 * k).to_string()
            };
            let nodes: Vec<String> = sites.split(' ').map(number).collect();
            let nodes =
                nodes.chunks(12).map(|line| line.join(", ")).collect::<Vec<_>>().join(",\n");
            text.push_str(&format!(
                "*ELEMENT, TYPE={kind}, ELSET=E{cell}\n{}, {nodes}\n",
                cell + 1
            ));
        }
        let mesh = parsed(MeshFormat::Abaqus, text.as_bytes());
        assert_eq!((mesh.n_cells(), mesh.points().len()), (2, 45), "{other}");
        assert_eq!(mesh.boundary().len(), 10, "{other}");
        // The face centre is that of the complete cell, if there is one.
        let middle = mesh.points().contains(&[2.25, 1.0, 1.0]);
        assert_eq!(middle, other == "C3D27", "{other}");
        assert!((mesh.size() - 16.0).abs() <= 64.0 * f64::EPSILON, "{other}");
    }
}

const POINTS: &str = "# vtk DataFile Version 2.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 12 float\n\
    0 0 0 1 0 0 0 1 0 1 1 0 0 0 1 1 0 1 0 1 1 1 1 1 0 2 0 1 2 0 0 2 1 1 2 1\n";

/// Returns a legacy file with the points of two cubes and these cells: type and points.
fn cubes(cells: &[(u8, &[usize])]) -> Vec<u8> {
    let mut text = POINTS.to_owned();
    let size: usize = cells.iter().map(|(_, points)| 1 + points.len()).sum();
    text.push_str(&format!("CELLS {} {size}\n", cells.len()));
    for (_, points) in cells {
        let words: Vec<String> = points.iter().map(ToString::to_string).collect();
        text.push_str(&format!("{} {}\n", points.len(), words.join(" ")));
    }
    let types: Vec<String> = cells.iter().map(|(kind, _)| kind.to_string()).collect();
    text.push_str(&format!("CELL_TYPES {}\n{}\n", cells.len(), types.join("\n")));
    text.into_bytes()
}

#[test]
fn voxels_pixels_polygons_and_lines_are_what_they_look_like() {
    let mesh = parsed(
        MeshFormat::Vtk,
        &cubes(&[
            (11, &[0, 1, 2, 3, 4, 5, 6, 7]),
            (12, &[2, 3, 9, 8, 6, 7, 11, 10]),
            (1, &[0]),
            (3, &[0, 1]),
        ]),
    );
    assert_eq!((mesh.cell(), mesh.n_cells(), mesh.size()), (Cell::Hexahedron, 2, 2.0));
    assert!(mesh.notes().is_empty() && mesh.cell_tags().is_empty());
    let mut plane = cubes(&[(8, &[0, 1, 2, 3]), (7, &[2, 3, 9, 8]), (4, &[0, 1, 3, 9])]);
    plane.extend(b"CELL_DATA 3\nSCALARS material int\nLOOKUP_TABLE default\n-1 4 9\n");
    let mesh = parsed(MeshFormat::Vtk, &plane);
    assert_eq!((mesh.cell(), mesh.n_cells(), mesh.size()), (Cell::Quadrilateral, 2, 2.0));
    assert_eq!(mesh.cell_tags().keys().collect::<Vec<_>>(), ["-1", "4"]);
    assert_eq!(mesh.facets_tagged("9").map(<[_]>::len), Ok(3));
}

#[test]
fn mixed_planes_are_cut_in_all_formats() {
    // A square and two triangles, with the last edge tagged.
    let cells: &[(u8, &[usize])] =
        &[(9, &[0, 1, 3, 2]), (5, &[2, 3, 9]), (5, &[2, 9, 8]), (3, &[8, 9])];
    let mut vtk = cubes(cells);
    vtk.extend(b"CELL_DATA 4\nFIELD f 1\ntag 1 4 int\n1 2 2 3\n");
    let vtk = parsed(MeshFormat::Vtk, &vtk);
    let inp = "*NODE\n1,0,0\n2,1,0\n3,0,1\n4,1,1\n5,0,2\n6,1,2\n*ELEMENT,TYPE=CPS4,ELSET=1\n1,1,2,4,3\n\
        *ELEMENT,TYPE=CPS3,ELSET=2\n2,3,4,6\n3,3,6,5\n*SURFACE,NAME=3\n3,S2\n";
    let inp = parsed(MeshFormat::Abaqus, inp.as_bytes());
    for mesh in [vtk, inp] {
        assert_eq!((mesh.cell(), mesh.n_cells()), (Cell::Quadrilateral, 10));
        assert!((mesh.size() - 2.0).abs() <= 16.0 * f64::EPSILON);
        assert_eq!(mesh.cells_tagged("2").map(<[_]>::len), Ok(6));
        assert_eq!(mesh.facets_tagged("3").map(<[_]>::len), Ok(2));
        assert!(mesh.notes()[0].contains("1 × quad of order 1"), "{:?}", mesh.notes());
    }
}

/// Before VTK 9 two edges of Lagrange hexahedra were exchanged; the file version distinguishes the orders.
#[test]
fn lagrange_hexahedra_of_old_files_have_the_old_order() {
    let (name, mesh, nodes) = meshes().swap_remove(9);
    let plain = Plain::new(&mesh, nodes);
    let expected = parsed(MeshFormat::Gmsh, &write::gmsh(&plain));
    let text = String::from_utf8(write::vtu(&plain, ASCII, "tag")).expect("text");
    let types = |text: &str| {
        let (head, tail) = text.split_once("Name=\"types\"").expect("types");
        let (own, rest) = tail.split_once("</DataArray>").expect("an end");
        format!("{head}Name=\"types\"{}</DataArray>{rest}", own.replace("29", "72"))
    };
    same(name, &expected, &parsed(MeshFormat::Vtu, types(&text).as_bytes()));
    // The same numbers in version 1.0 are other cells, which fold.
    let old = types(&text).replace("version=\"2.2\"", "version=\"1.0\"");
    assert!(read::parse(MeshFormat::Vtu, old.as_bytes()).is_err());
}

const PARTS: &str = "*Heading\n*Part, name=Plate\n*Node\n1, 0., 0.\n2, 1., 0.\n3, 2., 0.\n4, 0., 1.\n5, 1., 1.\n6, 2., 1.\n\
    *Element, type=CPS4R\n10, 1, 2, 5, 4\n20, 2, 3, 6, 5\n*Nset, nset=Set-1, generate\n1, 6, 1\n\
    *Elset, elset=Set-1, generate\n10, 20, 10\n*Elset, elset=\"left half\"\n10\n** a section\n\
    *Solid Section, elset=Set-1, material=Steel\n,\n*End Part\n*Assembly, name=Assembly\n\
    *Instance, name=Plate-1, part=PLATE\n1., 0., 0.\n0., 0., 0., 0., 0., 1., 90.\n*End Instance\n\
    *Node\n1, 5., 5., 0.\n*Nset, nset=\"reference point\"\n1,\n*Nset, nset=Set-1, instance=Plate-1\n1, 4\n\
    *Nset, nset=middle, instance=Plate-1\n2, 5\n*Nset, nset=corner\nPlate-1.3,\n\
    *Elset, elset=_Load_S2, internal, instance=Plate-1\n20\n*Surface, type=ELEMENT, name=Load\n_Load_S2, S2\n\
    *Surface, type=NODE, name=held\nSet-1, 1.\n*Surface, type=ELEMENT, name=free\nPlate-1.\"left half\"\n\
    *Surface, type=ELEMENT, name=top\nPlate-1.Set-1, S3\n*End Assembly\n*Material, name=Steel\n*Elastic\n210e9, 0.3\n\
    *Step\n*Boundary\nSet-1, 1, 2\n*End Step\n";

#[test]
fn assemblies_of_one_instance_are_placed_and_their_sets_are_tags() {
    let mesh = parsed(MeshFormat::Abaqus, PARTS.as_bytes());
    assert!(mesh.n_cells() == 2 && (mesh.size() - 2.0).abs() <= 16.0 * f64::EPSILON);
    // Translated by one along x, then rotated by 90°.
    assert_eq!(mesh.bounding_box(), ([-1.0, 1.0, 0.0], [0.0, 3.0, 0.0]));
    let count = |tag: &str| mesh.facets_tagged(tag).unwrap_or_else(|error| panic!("{error}")).len();
    assert_eq!(mesh.cell_tags().keys().collect::<Vec<_>>(), ["Set-1", "left half"]);
    assert_eq!((count("Load"), count("held"), count("top"), count("Set-1")), (1, 1, 2, 1));
    // The part's set of all nodes tags the whole boundary; that of the middle tags the facet between the cells.
    assert_eq!((count("Plate-1.Set-1"), count("middle")), (6, 1));
    let notes = mesh.notes().join("; ");
    assert!(
        notes.contains("surfaces that name no faces of cells (S1, S2 and so on) give no tag: free"),
        "{notes}"
    );
    // A set without a complete facet tags points.
    assert_eq!(
        mesh.point_tags().map(|(tag, count)| (&**tag, count)).collect::<Vec<_>>(),
        [("corner", 1)]
    );
    assert_eq!(mesh.facet_tags().len(), 6, "{:?}", mesh.facet_tags().keys());
}
