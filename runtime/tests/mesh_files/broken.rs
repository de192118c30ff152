//! Rejected files: messages with position and remedy; no panic on truncated and mutated files.

use super::plain::Plain;
use super::write::{self, How, Xml};
use super::{ASCII, PARTS, cubes, meshes, parsed};

use runtime::mesh::read::{self, MeshFormat, ReadError};

fn message(format: MeshFormat, bytes: &[u8]) -> String {
    read::parse(format, bytes).expect_err("a broken file").to_string()
}

/// Regression: a hundred thousand attributes took half a minute.
#[test]
fn an_element_of_very_many_attributes_is_refused() {
    let attributes: String = (0..100_000).map(|i| format!(" a{i}=\"\"")).collect();
    let text = format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\"{attributes}></VTKFile>"
    );
    let said = message(MeshFormat::Vtu, text.as_bytes());
    assert!(
        said.contains("line 2: expected at most 256 attributes of an element, found 100001"),
        "{said}"
    );
}

#[test]
fn abaqus_files_that_are_refused_say_what_to_do() {
    let second = "*End Instance\n*Instance, name=b, part=Plate\n*End Instance\n";
    let cases = [
        (PARTS.replacen("*End Instance\n", second, 1), "line 28: an assembly of several instances"),
        (
            PARTS.replace("*Heading", "*Include, input=mesh.inp"),
            "line 1: *INCLUDE takes lines from another file",
        ),
        (PARTS.replace("*Node\n1, 0.", "*Node, system=C\n1, 0."), "line 3: cylindrical"),
        (PARTS.replace("*Node\n1, 0.", "*NGEN\n1, 0."), "line 3: *NGEN makes nodes"),
        (
            PARTS.replace("type=CPS4R", "type=C3D6"),
            "line 10: elements of type C3D6 (a prism) are not there yet; mesh",
        ),
        (
            PARTS.replace("type=CPS4R", "type=C3D5"),
            "(a pyramid) are not there yet; mesh the part with tetrahedra",
        ),
        (PARTS.replace("type=CPS4R", "type=U1"), "elements of type U1 (unknown) are not there yet"),
        (
            PARTS.replace("2, 1., 0.", "2, 1., nan"),
            "line 5: expected a coordinate, finite, found `nan`",
        ),
        (PARTS.replace("2, 1., 0.", "2, one, 0."), "line 5: expected a coordinate, found `one`"),
        (
            PARTS.replace("2, 1., 0.", "1, 1., 0."),
            "line 5: node 1 is at (1, 0, 0) here, and at (0, 0, 0) before",
        ),
        (
            PARTS.replace("20, 2, 3, 6, 5", "20, 2, 3, 6"),
            "expected 1 more nodes of a quad of order 1, found the end",
        ),
        (
            PARTS.replace("20, 2, 3, 6, 5", "20, 2, 3, 6, 5, 4"),
            "line 12: expected 4 nodes of a quad of order 1, found `4`",
        ),
        (
            PARTS.replace("20, 2, 3, 6, 5", "20, 2, 3, 6, 99"),
            "element 20 uses node 99, which the file does not define",
        ),
        (
            PARTS.replace("_Load_S2, S2", "_Load_S2, S7"),
            "expected a face of element 20, a quad of order 1, found `S7`",
        ),
        (
            PARTS.replace("_Load_S2, S2", "_Last_S2, S2"),
            "expected a number, or the name of a set that came before",
        ),
        (PARTS.replace("10, 20, 10", "10, 20, 0"), "expected a step of at least 1, found `0`"),
        (PARTS.replace("part=PLATE", "part=Plato"), "expected the name of a part, found `Plato`"),
        (
            PARTS.replace("type=CPS4R", "typ=CPS4R"),
            "line 10: expected TYPE=… behind *ELEMENT, found none",
        ),
        (
            "1, 2\n".to_owned(),
            "line 1: expected a keyword, *NODE for example, at the beginning of an Abaqus file",
        ),
        ("*Heading\n".to_owned(), "the file has no nodes behind *NODE"),
        ("*NODE\n1, 0, 0\n".to_owned(), "the file has no elements behind *ELEMENT"),
    ];
    for (text, expected) in cases {
        let message = message(MeshFormat::Abaqus, text.as_bytes());
        assert!(message.contains(expected), "{expected}\n{message}");
    }
    // Ranges up to nonexistent numbers need no memory.
    let many = PARTS.replace("1, 6, 1", "1, 18446744073709551615, 1");
    assert_eq!(parsed(MeshFormat::Abaqus, many.as_bytes()).n_cells(), 2);
}

#[test]
fn vtk_files_that_are_refused_say_what_to_do() {
    let good = String::from_utf8(cubes(&[(12, &[0, 1, 3, 2, 4, 5, 7, 6])])).expect("text");
    let cell =
        |kind: u8, points: &[usize]| String::from_utf8(cubes(&[(kind, points)])).expect("text");
    let cases = [
        (
            cell(13, &[0, 1, 2, 4, 5, 6]),
            "line 7: cell 0 is a prism (type 13), which is not there yet; save the mesh with",
        ),
        (cell(14, &[0, 1, 3, 2, 4]), "cell 0 is a pyramid (type 14)"),
        (cell(42, &[0, 1, 2, 3]), "cell 0 is a polyhedron (type 42)"),
        (cell(99, &[0, 1]), "cell 0 is of an unknown type (type 99)"),
        (cell(12, &[0, 1, 2]), "as many points as the type has for cell 0 of type 12, found 3"),
        (
            cell(72, &[0, 1, 2]),
            "as many points as a cell of one order has for cell 0 of type 72, found 3",
        ),
        (
            cell(12, &[0, 1, 3, 2, 4, 5, 7, 77]),
            "element 0 uses node 77, which the file does not define",
        ),
        (
            good.replace("UNSTRUCTURED_GRID", "POLYDATA"),
            "line 4: a data set POLYDATA is not read: save an UNSTRUCTURED",
        ),
        (
            good.replace("POINTS 12", "POINTS 99999999999"),
            "line 5: 299999999997 coordinates are announced, but only",
        ),
        (good.replace("POINTS 12 float", "POINTS 12 string"), "arrays of type string are not read"),
        (
            good.replace("POINTS 12 float", "POINTS 12 real"),
            "expected a type of numbers, `double` for example, found `real`",
        ),
        (good.replace("ASCII", "TEXT"), "line 3: expected ASCII or BINARY, found `TEXT`"),
        (
            good.replace("1 2 1", "1 nan 1"),
            "line 5: expected finite coordinates of all points, found NaN",
        ),
        (good.replace("1 2 1", "1 x 1"), "line 6: expected 36 coordinates, found `x`"),
        (
            good.replace("CELLS 1 9", "CELLS 2 9"),
            "expected 2 cells in a list of 9 numbers, found 1",
        ),
        (good.replace("\n8 0 1", "\n9 0 1"), "expected 9 points of cell 0, found 8"),
        (
            good.replace("\n8 0 1", "\n8 0 -1"),
            "expected whole numbers from 0 as points of cells, found -1",
        ),
        (
            good.replace("CELL_TYPES 1\n12", "CELL_TYPES 2\n12 12"),
            "expected types of 1 cells, found 2",
        ),
        (good.replace("CELL_TYPES 1\n12\n", ""), "the file has no CELL_TYPES"),
        (good.replace("CELL_TYPES", "CELL_TIPES"), "expected a keyword: POINTS, CELLS"),
        ("# vtk\n".to_owned(), "expected `# vtk DataFile Version 3.0` or the like"),
    ];
    for (text, expected) in cases {
        let message = message(MeshFormat::Vtk, text.as_bytes());
        assert!(message.contains(expected), "{expected}\n{message}");
    }
    let mut tagged =
        good.clone() + "CELL_DATA 2\nSCALARS material int 1\nLOOKUP_TABLE default\n1 2\n";
    assert!(
        message(MeshFormat::Vtk, tagged.as_bytes())
            .contains("1 values of \"material\", one a cell, found 2")
    );
    // Non-integral values are no tags.
    tagged = good + "CELL_DATA 1\nSCALARS material float 1\nLOOKUP_TABLE default\n1.5\n";
    assert!(parsed(MeshFormat::Vtk, tagged.as_bytes()).cell_tags().is_empty());
}

#[test]
fn xml_files_that_are_refused_say_what_to_do() {
    let (_, mesh, nodes) = meshes().swap_remove(1);
    let plain = Plain::new(&mesh, nodes);
    let of = |xml: Xml| String::from_utf8_lossy(&write::vtu(&plain, xml, "tag")).into_owned();
    let good = of(ASCII);
    let binary = of(Xml { how: How::Binary, ..ASCII });
    let appended = of(Xml { how: How::AppendedBase64, ..ASCII });
    let big = of(Xml { how: How::AppendedBase64, zlib: true, ..ASCII });
    let first = |text: &str, from: &str| text.split(from).next().expect("text").to_owned();
    let cases = [
        (
            good.replace("\"UnstructuredGrid\"", "\"PolyData\""),
            "line 2: a file of type PolyData is not read: save an unstr",
        ),
        (
            good.replace("\"UnstructuredGrid\"", "\"PUnstructuredGrid\""),
            "names parts of a mesh in other files",
        ),
        (good.replace("VTKFile", "KML"), "line 2: expected the element VTKFile, found `KML`"),
        (
            good.replace("byte_order=\"Lit", "byte_order=\"Let"),
            "expected the byte order LittleEndian or BigEndian",
        ),
        (
            good.replace("UInt32", "UInt16"),
            "expected the type of headers UInt32 or UInt64, found `UInt16`",
        ),
        (
            big.replace("vtkZLib", "vtkLZ4"),
            "data compressed by vtkLZ4DataCompressor are not read: save them compressed by zl",
        ),
        (
            good.replace("<Piece", "<!-- --><Piece NumberOfPoints=\"1\"/><Piece"),
            "a mesh in several pieces is not read",
        ),
        (
            good.replace("NumberOfCells=\"", "NumberOfCells=\"9"),
            "as many numbers as NumberOfCells=",
        ),
        (
            good.replace("NumberOfPoints=\"", "NumberOfPoints=\"9"),
            "line 6: expected as many numbers as NumberOfPoints=",
        ),
        (
            good.replace("Name=\"types\"", "Name=\"kinds\""),
            "the file has no array \"types\" in its <Cells>",
        ),
        (good.replace("Points>", "Point>"), "the file has no element <Points>"),
        (good.replace("</Cells>", ""), "expected an XML file, found"),
        (
            good.replace("ascii", "hex"),
            "expected the format ascii, binary or appended, found `hex`",
        ),
        (
            good.replace("Float64", "Float16"),
            "expected a type of numbers, Float64 for example, found `Float16`",
        ),
        (
            good.replacen("\n0 0 0 ", "\nnan 0 0 ", 1),
            "line 6: expected finite coordinates, found NaN",
        ),
        (
            good.replacen("\n0 0 0 ", "\nO 0 0 ", 1),
            "line 6: expected numbers of type Float64, found `O`",
        ),
        (
            good.replace("Components=\"3\"", "Components=\"2\""),
            "line 6: expected 3 components, found `2`",
        ),
        (binary.replacen("AAAA", "A?AA", 1), "line 6: expected a letter of base64, found `?`"),
        (first(&appended, "\n  _") + "_////", "byte "),
        (
            first(&appended, "\n  _") + "-AAA",
            "expected `_`, with which appended data begin, found `-`",
        ),
        (first(&appended, "<Appended") + "</VTKFile>", "the file has no element <AppendedData>"),
        (appended.replace("offset=\"0\"", "offset=\"-1\""), "expected an offset up to"),
        (appended.replace("offset=\"0\"", "offset=\"99999\""), "expected an offset up to"),
    ];
    for (text, expected) in cases {
        let message = message(MeshFormat::Vtu, text.as_bytes());
        assert!(message.contains(expected), "{expected}\n{message}");
    }
    let mut bytes = write::vtu(&plain, Xml { how: How::AppendedRaw, ..ASCII }, "tag");
    let start = bytes
        .iter()
        .rposition(|&b| b == b'_')
        .map_or(0, |_| bytes.windows(2).position(|pair| pair == b" _").expect("the data") + 2);
    bytes[start..start + 4].fill(0xFF);
    let found = message(MeshFormat::Vtu, &bytes);
    assert!(
        found.starts_with(&format!("byte {start}: 4294967295 bytes of an array are announced")),
        "{found}"
    );
}

/// Excessive nesting is rejected or ignored, without stack overflow.
#[test]
fn elements_of_xml_may_nest_deeply() {
    let head = "<VTKFile type=\"UnstructuredGrid\">";
    for (open, close) in
        [("<a>", "</a>"), ("<UnstructuredGrid>", "</UnstructuredGrid>"), ("<a>", "")]
    {
        let text = format!("{head}{}{}</VTKFile>", open.repeat(100_000), close.repeat(100_000));
        assert!(!message(MeshFormat::Vtu, text.as_bytes()).is_empty());
    }
    let laughs = "<!DOCTYPE a [<!ENTITY b \"ha\"><!ENTITY c \"&b;&b;\">]><VTKFile>&c;</VTKFile>";
    assert!(message(MeshFormat::Vtu, laughs.as_bytes()).contains("expected an XML file"));
}

/// Returns small files of all formats, text and binary.
fn files() -> Vec<(MeshFormat, Vec<u8>)> {
    let mut files = vec![(MeshFormat::Abaqus, PARTS.as_bytes().to_vec())];
    for (_, mesh, nodes) in meshes().into_iter().filter(|(_, _, nodes)| matches!(nodes, 3 | 4 | 8))
    {
        let plain = Plain::new(&mesh, nodes);
        for (how, zlib) in [
            (How::Ascii, false),
            (How::Binary, false),
            (How::AppendedRaw, false),
            (How::AppendedRaw, true),
            (How::AppendedBase64, true),
        ] {
            files.push((MeshFormat::Vtu, write::vtu(&plain, Xml { how, zlib, ..ASCII }, "tag")));
        }
        files.push((MeshFormat::Vtk, write::vtk(&plain, false, false)));
        files.push((MeshFormat::Vtk, write::vtk(&plain, true, true)));
        files.push((MeshFormat::Abaqus, write::inp(&plain, true)));
    }
    files
}

/// Truncated XML and legacy files lack announced data; any beginning of an Abaqus file may be valid.
#[test]
fn truncated_files_are_errors() {
    for (format, all) in files() {
        let step = (all.len() / 200).max(1);
        for length in (0..all.len() - 1).step_by(step) {
            match read::parse(format, &all[..length]) {
                Err(ReadError::Mesh(error)) if format != MeshFormat::Abaqus => {
                    panic!("{format} at {length}: {error}")
                }
                Ok(_) if format == MeshFormat::Vtu && !tail(&all[length..]) => {
                    panic!("{format}: {length} of {} bytes are read as a mesh", all.len())
                }
                _ => {}
            }
        }
    }
}

/// Returns whether only the end tags after appended data are missing.
fn tail(rest: &[u8]) -> bool {
    String::from_utf8_lossy(rest).trim_start().len() < 40
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
    let words: [&[u8]; 12] = [
        b"-1",
        b"0",
        b"99999999999999999999",
        b"4294967296",
        b"1e999",
        b"nan",
        b"*NODE\n",
        b"\0\xff",
        b"",
        b"\"",
        b"CELLS ",
        b"\n",
    ];
    let mut dice = Dice(2027);
    let files = files();
    let (mut fine, mut refused) = (0, 0);
    for _ in 0..1500 {
        let (format, mut bytes) = files[dice.roll(files.len())].clone();
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(bytes.len());
            match dice.roll(3) {
                0 => bytes[at] = dice.roll(256) as u8,
                1 => {
                    let end = (at + dice.roll(8)).min(bytes.len());
                    let word = words[dice.roll(words.len())];
                    bytes.splice(at..end, word.iter().copied());
                }
                _ => {
                    let from = dice.roll(bytes.len());
                    bytes[at] = bytes[from];
                }
            }
        }
        match read::parse(format, &bytes) {
            Ok(mesh) => {
                assert!(mesh.points().iter().flatten().all(|x| x.is_finite()));
                fine += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(fine > 50 && refused > 200, "{fine} {refused}");
}
