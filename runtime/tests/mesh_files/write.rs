//! Test writers of all formats: a [`Plain`] mesh → the bytes of a file.

use std::fmt::Write as _;

use super::plain::{ABAQUS, Element, GMSH, Orders, Plain, VTK};
use runtime::mesh::Cell;

/// Returns the element type in Gmsh, VTK and Abaqus.
fn types(element: Element) -> (u8, u8, &'static str) {
    match (element.cell, element.nodes) {
        (Cell::Triangle, 3) => (2, 5, "CPS3"),
        (Cell::Triangle, 6) => (9, 22, "CPE6M"),
        (Cell::Quadrilateral, 4) => (3, 9, "CPE4R"),
        (Cell::Quadrilateral, 8) => (16, 23, "CPS8R"),
        (Cell::Quadrilateral, 9) => (10, 28, "S9R5"),
        (Cell::Tetrahedron, 4) => (4, 10, "C3D4"),
        (Cell::Tetrahedron, 10) => (11, 24, "C3D10M"),
        (Cell::Hexahedron, 8) => (5, 12, "C3D8R"),
        (Cell::Hexahedron, 20) => (17, 25, "C3D20"),
        (Cell::Hexahedron, 27) => (12, 29, "C3D27"),
        other => panic!("no type of {other:?}"),
    }
}

/// Returns the same for a facet with this number of vertices.
fn facet_types(vertices: usize) -> (u8, u8, &'static str) {
    [(1, 3, "T3D2"), (2, 5, "SFM3D3"), (3, 9, "SFM3D4R")][vertices - 2]
}

fn words(numbers: impl IntoIterator<Item = usize>, between: &str) -> String {
    let words: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
    words.join(between)
}

fn from_one(numbers: &[usize]) -> impl Iterator<Item = usize> + '_ {
    numbers.iter().map(|n| n + 1)
}

/// Writes Gmsh format 2.2, with unnamed groups.
pub(crate) fn gmsh(plain: &Plain) -> Vec<u8> {
    let mut text =
        format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n", plain.points.len());
    for (i, [x, y, z]) in plain.points.iter().enumerate() {
        let _ = writeln!(text, "{} {x} {y} {z}", i + 1);
    }
    let count = plain.n_cells() + plain.facets.len();
    let _ = write!(text, "$EndNodes\n$Elements\n{count}\n");
    for cell in 0..plain.n_cells() {
        let (tag, nodes) = (plain.tags[cell], plain.cell(cell, GMSH));
        let nodes = words(from_one(&nodes), " ");
        let _ = writeln!(text, "{} {} 2 {tag} {tag} {nodes}", cell + 1, types(plain.element).0);
    }
    for (i, (tag, facet)) in plain.facets.iter().enumerate() {
        let (number, kind) = (plain.n_cells() + i + 1, facet_types(facet.len()).0);
        let _ = writeln!(text, "{number} {kind} 2 {tag} {tag} {}", words(from_one(facet), " "));
    }
    text.push_str("$EndElements\n");
    text.into_bytes()
}

/// The arrays of VTK: connectivity, end offsets, types, tags.
pub(crate) struct Lists {
    pub(crate) connectivity: Vec<i64>,
    pub(crate) offsets: Vec<i64>,
    pub(crate) types: Vec<u8>,
    pub(crate) tags: Vec<i64>,
}

pub(crate) fn lists(plain: &Plain) -> Lists {
    let (mut connectivity, mut offsets, mut types_of, mut tags) = Default::default();
    let mut add = |nodes: &[usize], kind: u8, tag: usize| {
        let (connectivity, offsets): (&mut Vec<i64>, &mut Vec<i64>) =
            (&mut connectivity, &mut offsets);
        let (types_of, tags): (&mut Vec<u8>, &mut Vec<i64>) = (&mut types_of, &mut tags);
        connectivity.extend(nodes.iter().map(|&n| n as i64));
        offsets.push(connectivity.len() as i64);
        types_of.push(kind);
        tags.push(tag as i64);
    };
    for cell in 0..plain.n_cells() {
        add(&plain.cell(cell, VTK), types(plain.element).1, plain.tags[cell]);
    }
    for (tag, facet) in &plain.facets {
        add(facet, facet_types(facet.len()).1, *tag);
    }
    Lists { connectivity, offsets, types: types_of, tags }
}

/// Encoding of the arrays of an XML file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Xml {
    pub(crate) how: How,
    pub(crate) big: bool,
    /// Bytes per header integer.
    pub(crate) header: usize,
    pub(crate) zlib: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    Ascii,
    Binary,
    /// Header and numbers in one base64 text, as some programs write them.
    Together,
    AppendedRaw,
    AppendedBase64,
}

enum Array<'a> {
    Reals(Vec<f64>),
    Integers(&'a [i64]),
    Bytes(&'a [u8]),
}

impl Array<'_> {
    fn kind(&self) -> &'static str {
        match self {
            Array::Reals(_) => "Float64",
            Array::Integers(_) => "Int64",
            Array::Bytes(_) => "UInt8",
        }
    }

    fn text(&self) -> String {
        let words: Vec<String> = match self {
            Array::Reals(all) => all.iter().map(ToString::to_string).collect(),
            Array::Integers(all) => all.iter().map(ToString::to_string).collect(),
            Array::Bytes(all) => all.iter().map(ToString::to_string).collect(),
        };
        words.join(" ")
    }

    fn bytes(&self, big: bool) -> Vec<u8> {
        let of = |bytes: [u8; 8]| {
            let mut bytes = bytes;
            if big {
                bytes.reverse();
            }
            bytes
        };
        match self {
            Array::Reals(all) => all.iter().flat_map(|x| of(x.to_le_bytes())).collect(),
            Array::Integers(all) => all.iter().flat_map(|n| of(n.to_le_bytes())).collect(),
            Array::Bytes(all) => all.to_vec(),
        }
    }
}

/// Returns a header and the bytes after it.
fn packed(bytes: &[u8], xml: Xml) -> (Vec<u8>, Vec<u8>) {
    let number = |n: usize| {
        let mut bytes = n.to_le_bytes()[..xml.header].to_vec();
        if xml.big {
            bytes.reverse();
        }
        bytes
    };
    if !xml.zlib {
        return (number(bytes.len()), bytes.to_vec());
    }
    // Small blocks, so that there are several.
    const BLOCK: usize = 200;
    let blocks: Vec<Vec<u8>> = bytes
        .chunks(BLOCK)
        .map(|block| miniz_oxide::deflate::compress_to_vec_zlib(block, 6))
        .collect();
    let mut header = [blocks.len(), BLOCK, bytes.len() % BLOCK].map(number).concat();
    blocks.iter().for_each(|block| header.extend(number(block.len())));
    (header, blocks.concat())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0, |all, &b| all << 8 | u32::from(b)) << (8 * (3 - three.len()));
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize] as char;
            text.push(if i <= three.len() { letter } else { '=' });
        }
    }
    text
}

/// Writes an XML file.
pub(crate) fn vtu(plain: &Plain, xml: Xml, name: &str) -> Vec<u8> {
    let lists = lists(plain);
    let (order, header) =
        (if xml.big { "BigEndian" } else { "LittleEndian" }, format!("UInt{}", 8 * xml.header));
    let compressor = if xml.zlib { " compressor=\"vtkZLibDataCompressor\"" } else { "" };
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"2.2\" byte_order=\"{order}\" \
         header_type=\"{header}\"{compressor}>\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n",
        plain.points.len(),
        lists.offsets.len()
    );
    let mut appended = Vec::new();
    let mut array = |text: &mut String, name: &str, components: usize, array: &Array<'_>| {
        let kind = array.kind();
        let _ = write!(
            text,
            "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" "
        );
        let (head, body) = packed(&array.bytes(xml.big), xml);
        let _ = match xml.how {
            How::Ascii => writeln!(text, "format=\"ascii\">\n{}\n</DataArray>", array.text()),
            How::Binary => {
                let (head, body) = (base64(&head), base64(&body));
                writeln!(text, "format=\"binary\">\n  {head}{body}\n</DataArray>")
            }
            How::Together => {
                let all = base64(&[head, body].concat());
                writeln!(text, "format=\"binary\">{all}</DataArray>")
            }
            How::AppendedRaw | How::AppendedBase64 => {
                let offset = appended.len();
                if xml.how == How::AppendedRaw {
                    appended.extend([head, body].concat());
                } else {
                    appended.extend((base64(&head) + &base64(&body)).into_bytes());
                }
                writeln!(text, "format=\"appended\" offset=\"{offset}\"/>")
            }
        };
    };
    text.push_str("<Points>\n");
    array(&mut text, "Points", 3, &Array::Reals(plain.points.iter().flatten().copied().collect()));
    text.push_str("</Points>\n<Cells>\n");
    array(&mut text, "connectivity", 1, &Array::Integers(&lists.connectivity));
    array(&mut text, "offsets", 1, &Array::Integers(&lists.offsets));
    array(&mut text, "types", 1, &Array::Bytes(&lists.types));
    text.push_str("</Cells>\n<CellData>\n");
    let quality: Vec<f64> = lists.tags.iter().map(|&tag| tag as f64 / 3.0).collect();
    array(&mut text, "quality", 1, &Array::Reals(quality));
    array(&mut text, name, 1, &Array::Integers(&lists.tags));
    text.push_str("</CellData>\n</Piece>\n</UnstructuredGrid>\n");
    let mut bytes = text.into_bytes();
    if matches!(xml.how, How::AppendedRaw | How::AppendedBase64) {
        let encoding = if xml.how == How::AppendedRaw { "raw" } else { "base64" };
        bytes.extend(format!("<AppendedData encoding=\"{encoding}\">\n  _").into_bytes());
        bytes.extend(appended);
        bytes.extend(b"\n</AppendedData>\n");
    }
    bytes.extend(b"</VTKFile>\n");
    bytes
}

/// Writes a legacy file, in either form of the cells.
pub(crate) fn vtk(plain: &Plain, binary: bool, five: bool) -> Vec<u8> {
    let lists = lists(plain);
    let mut out = Vec::new();
    let how = if binary { "BINARY" } else { "ASCII" };
    let version = if five { "5.1" } else { "3.0" };
    let n = lists.offsets.len();
    let line = |out: &mut Vec<u8>, text: String| out.extend(format!("{text}\n").into_bytes());
    let integers = |out: &mut Vec<u8>, all: &[i64], wide: bool| {
        match (binary, wide) {
            (true, true) => out.extend(all.iter().flat_map(|n| n.to_be_bytes())),
            (true, false) => out.extend(all.iter().flat_map(|&n| (n as i32).to_be_bytes())),
            _ => all.iter().for_each(|n| out.extend(format!("{n} ").into_bytes())),
        }
        out.push(b'\n');
    };
    line(
        &mut out,
        format!("# vtk DataFile Version {version}\na test\n{how}\nDATASET UNSTRUCTURED_GRID"),
    );
    line(&mut out, format!("POINTS {} double", plain.points.len()));
    for x in plain.points.iter().flatten() {
        match binary {
            true => out.extend(x.to_be_bytes()),
            false => out.extend(format!("{x} ").into_bytes()),
        }
    }
    if five {
        line(
            &mut out,
            format!("\nCELLS {} {}\nOFFSETS vtktypeint64", n + 1, lists.connectivity.len()),
        );
        integers(&mut out, &[&[0], &lists.offsets[..]].concat(), true);
        line(&mut out, "CONNECTIVITY vtktypeint64".to_owned());
        integers(&mut out, &lists.connectivity, true);
    } else {
        line(&mut out, format!("\nCELLS {n} {}", n + lists.connectivity.len()));
        let mut all = Vec::new();
        let mut start = 0;
        for &end in &lists.offsets {
            all.push(end - start);
            all.extend(&lists.connectivity[start as usize..end as usize]);
            start = end;
        }
        integers(&mut out, &all, false);
    }
    line(&mut out, format!("CELL_TYPES {n}"));
    let types: Vec<i64> = lists.types.iter().map(|&kind| i64::from(kind)).collect();
    integers(&mut out, &types, false);
    line(
        &mut out,
        format!("POINT_DATA {}\nSCALARS height double\nLOOKUP_TABLE default", plain.points.len()),
    );
    for [_, _, z] in &plain.points {
        match binary {
            true => out.extend(z.to_be_bytes()),
            false => out.extend(format!("{z} ").into_bytes()),
        }
    }
    line(&mut out, format!("\nCELL_DATA {n}\nFIELD FieldData 1\ngmsh%3aphysical 1 {n} int"));
    integers(&mut out, &lists.tags, false);
    line(&mut out, "METADATA\nINFORMATION 0\n".to_owned());
    out
}

/// Writes an Abaqus input file. Facets are surfaces of faces, or elements in sets.
pub(crate) fn inp(plain: &Plain, faces: bool) -> Vec<u8> {
    let mut text = "*Heading\n a test\n** nodes\n*NODE, NSET=all\n".to_owned();
    for (i, [x, y, z]) in plain.points.iter().enumerate() {
        let _ = writeln!(text, "{}, {x}, {y}, {z}", i + 1);
    }
    let element = |text: &mut String, number: usize, nodes: &[usize]| {
        // Lines of at most 16 numbers, continued after a comma.
        let all: Vec<usize> = [number].into_iter().chain(from_one(nodes)).collect();
        let lines: Vec<String> =
            all.chunks(16).map(|line| words(line.iter().copied(), ", ")).collect();
        let _ = writeln!(text, "{}", lines.join(",\n   "));
    };
    for tag in [1, 2] {
        let _ = writeln!(text, "*Element, type={}, ELSET={tag}", types(plain.element).2);
        for cell in (0..plain.n_cells()).filter(|&cell| plain.tags[cell] == tag) {
            element(&mut text, cell + 1, &plain.cell(cell, ABAQUS));
        }
    }
    for tag in [3, 4] {
        let own: Vec<&Vec<usize>> =
            plain.facets.iter().filter(|(own, _)| *own == tag).map(|(_, facet)| facet).collect();
        if faces {
            let _ = writeln!(text, "*surface, name={tag}, type=element");
            for facet in own {
                let (cell, label) = face(plain, facet);
                let _ = writeln!(text, "{}, {label}", cell + 1);
            }
        } else {
            let _ = writeln!(text, "*ELEMENT, TYPE={}, ELSET={tag}", facet_types(own[0].len()).2);
            for (i, facet) in own.into_iter().enumerate() {
                element(&mut text, 100_000 * tag + i, facet);
            }
        }
    }
    text.into_bytes()
}

/// The Abaqus faces by the first nodes of an element, from 1.
const FACES: &[(Cell, &[&[usize]])] = &[
    (Cell::Triangle, &[&[1, 2], &[2, 3], &[3, 1]]),
    (Cell::Quadrilateral, &[&[1, 2], &[2, 3], &[3, 4], &[4, 1]]),
    (Cell::Tetrahedron, &[&[1, 2, 3], &[1, 4, 2], &[2, 4, 3], &[3, 4, 1]]),
    (
        Cell::Hexahedron,
        &[&[1, 2, 3, 4], &[5, 8, 7, 6], &[1, 5, 6, 2], &[2, 6, 7, 3], &[3, 7, 8, 4], &[4, 8, 5, 1]],
    ),
];

/// Returns the cell and the face of a facet.
fn face(plain: &Plain, facet: &[usize]) -> (usize, String) {
    let orders: Orders = ABAQUS;
    let (_, faces) = FACES.iter().find(|(cell, _)| *cell == plain.element.cell).expect("faces");
    for cell in 0..plain.n_cells() {
        let nodes = plain.cell(cell, orders);
        for (i, face) in faces.iter().enumerate() {
            if face.iter().all(|&v| facet.contains(&nodes[v - 1])) {
                return (cell, format!("S{}", i + 1));
            }
        }
    }
    panic!("no face {facet:?}")
}
