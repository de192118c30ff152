//! MFEM's mesh files, versions 1.0 to 1.3: straight cells, and curved ones whose nodes are of a continuous space `H1`.
//!
//! Tags are the attributes of elements and of boundary elements, by number, and the names of attribute sets (version
//! 1.3). Since elements often have the same numbers, boundary attribute 1 is also `"boundary 1"`. `numbering` reproduces MFEM's order of the degrees of freedom of `H1`, in which nodes of curved cells are
//! listed. Nodes lie at the Gauss–Lobatto points; they are moved to equispaced ones, like those of other formats.
//!
//! The format is described in MFEM's documentation, "Mesh formats" and "Nodes of curved meshes".

mod numbering;

use super::ReadError;
use super::contents::{Contents, ElementBlock, ElementKind};
use super::cursor::Cursor;
use crate::mesh::{Cell, MeshError};
use kernels_gen::element::{Lagrange, interpolation};
use numbering::H1Numbering;
use std::collections::{BTreeMap, BTreeSet};

/// An element of the file: its attribute, shape and vertices.
#[derive(Clone, Debug)]
pub(super) struct MfemElement {
    attribute: u64,
    /// `None` for a point.
    cell: Option<Cell>,
    vertices: Vec<u32>,
}

/// Coordinates of the vertices, which come first, and of the other nodes of a curved mesh.
struct Nodes {
    degree: usize,
    n_vertices: usize,
    points: Vec<[f64; 3]>,
}

/// Names of attributes: of elements, of boundary elements.
type AttributeNames = [BTreeMap<u64, BTreeSet<String>>; 2];

/// Parses a file.
pub(super) fn contents(bytes: &[u8]) -> Result<Contents, ReadError> {
    let text = without_comments(bytes);
    let mut cursor = Cursor::new(&text);
    header(&mut cursor)?;
    keyword(&mut cursor, "dimension")?;
    let mark = cursor.mark();
    let dim: usize = cursor.parsed("the dimension of the mesh")?;
    if !(1..=3).contains(&dim) {
        return Err(cursor.syntax(mark, "a dimension of 1 to 3", &dim.to_string()));
    }
    let mut names = AttributeNames::default();
    let (mut cells, mut boundary) = (Vec::new(), Vec::new());
    loop {
        let mark = cursor.mark();
        match cursor.word()?.as_str() {
            "elements" => cells = elements(&mut cursor, "elements")?,
            "boundary" => boundary = elements(&mut cursor, "boundary elements")?,
            "attribute_sets" => attribute_sets(&mut cursor, &mut names[0])?,
            "bdr_attribute_sets" => attribute_sets(&mut cursor, &mut names[1])?,
            "vertices" => break,
            other => {
                let expected = "`elements`, `boundary`, `attribute_sets` or `vertices`";
                return Err(cursor.syntax(mark, expected, &format!("`{other}`")));
            }
        }
    }
    let nodes = vertices(&mut cursor, dim, &cells)?;
    build(&cells, &boundary, nodes, &names)
}

/// Replaces comments, from `#` to the end of a line, by blanks, so that positions stay.
fn without_comments(bytes: &[u8]) -> Vec<u8> {
    let mut text = bytes.to_vec();
    let mut comment = false;
    for byte in &mut text {
        comment = *byte != b'\n' && (comment || *byte == b'#');
        if comment {
            *byte = b' ';
        }
    }
    text
}

/// Reads the first line.
fn header(cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
    let mark = cursor.mark();
    let words = [cursor.word()?, cursor.word()?, cursor.word()?];
    let remedy = match [words[0].as_str(), words[1].as_str(), words[2].as_str()] {
        ["MFEM", "mesh", "v1.0" | "v1.1" | "v1.2" | "v1.3"] => return Ok(()),
        ["MFEM", "NC", "mesh"] => {
            "a nonconforming mesh; save the conforming one, and refine it here by `refine`"
        }
        ["MFEM", "INLINE", "mesh"] => {
            "a generated mesh; generate it here by `box(dim: …, cells: …)`"
        }
        ["MFEM", "NURBS", "mesh"] => {
            "a NURBS mesh; save it after `Mesh::SetCurvature(p)`, with nodes of H1"
        }
        ["MFEM", "mesh", _] => "a mesh of a version other than 1.0 to 1.3",
        _ => {
            return Err(cursor.syntax(mark, "`MFEM mesh v1.0`", &format!("`{}`", words.join(" "))));
        }
    };
    Err(cursor.unsupported(mark, remedy))
}

/// Reads a certain word.
fn keyword(cursor: &mut Cursor<'_>, expected: &str) -> Result<(), ReadError> {
    let mark = cursor.mark();
    let found = cursor.word()?;
    if found == expected {
        return Ok(());
    }
    Err(cursor.syntax(mark, &format!("`{expected}`"), &format!("`{found}`")))
}

/// Reads a count of items of at least `bytes` bytes each.
fn count(cursor: &mut Cursor<'_>, what: &'static str, bytes: usize) -> Result<usize, ReadError> {
    let mark = cursor.mark();
    let count = cursor.parsed("a count")?;
    cursor.checked(mark, what, count, bytes)
}

/// Reads elements: attribute, geometry and vertices of each.
fn elements(cursor: &mut Cursor<'_>, what: &'static str) -> Result<Vec<MfemElement>, ReadError> {
    let count = count(cursor, what, 6)?;
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        let attribute = cursor.parsed("an attribute, at least 1")?;
        let mark = cursor.mark();
        let cell = match cursor.parsed::<u8>("a geometry, 0 to 7")? {
            0 => None,
            1 => Some(Cell::Interval),
            2 => Some(Cell::Triangle),
            3 => Some(Cell::Quadrilateral),
            4 => Some(Cell::Tetrahedron),
            5 => Some(Cell::Hexahedron),
            6 | 7 => {
                let what = "a prism or a pyramid; mesh the domain with tetrahedra or hexahedra";
                return Err(cursor.unsupported(mark, what));
            }
            other => return Err(cursor.syntax(mark, "a geometry, 0 to 7", &other.to_string())),
        };
        let n = cell.map_or(1, Cell::vertex_count);
        let mark = cursor.mark();
        let mut vertices = Vec::with_capacity(n);
        for _ in 0..n {
            vertices.push(cursor.parsed("the number of a vertex")?);
        }
        if (1..n).any(|i| vertices[..i].contains(&vertices[i])) {
            let what = "an element with one vertex twice, as in a periodic mesh of few cells; read the mesh \
                        before it was made periodic, and write `periodic`";
            return Err(cursor.unsupported(mark, what));
        }
        elements.push(MfemElement { attribute, cell, vertices });
    }
    Ok(elements)
}

/// Reads named sets of attributes: names in quotes, counts, attributes.
fn attribute_sets(
    cursor: &mut Cursor<'_>,
    names: &mut BTreeMap<u64, BTreeSet<String>>,
) -> Result<(), ReadError> {
    for _ in 0..count(cursor, "attribute sets", 4)? {
        cursor.skip_blank();
        let mark = cursor.mark();
        let rest = cursor.rest();
        let end = rest.iter().skip(1).position(|&b| b == b'"').filter(|_| rest.starts_with(b"\""));
        let Some(end) = end else {
            return Err(cursor.syntax(mark, "a name in quotes", "something else"));
        };
        let name = String::from_utf8_lossy(&rest[1..=end]).into_owned();
        cursor.skip(end + 2);
        for _ in 0..count(cursor, "attributes", 2)? {
            let attribute = cursor.parsed("an attribute")?;
            names.entry(attribute).or_default().insert(name.clone());
        }
    }
    Ok(())
}

/// Reads the vertices, or the nodes of a curved mesh.
fn vertices(
    cursor: &mut Cursor<'_>,
    dim: usize,
    cells: &[MfemElement],
) -> Result<Nodes, ReadError> {
    let n_vertices = cursor.parsed::<usize>("the number of vertices")?;
    let mark = cursor.mark();
    let next = cursor.word()?;
    if next == "nodes" {
        return curved(cursor, dim, n_vertices, cells);
    }
    cursor.back(mark);
    let n = cursor.checked(mark, "vertices", n_vertices as u64, 2)?;
    let components = components(cursor)?;
    let mut points = vec![[0.0; 3]; n];
    for point in &mut points {
        for x in &mut point[..components] {
            *x = cursor.double("a coordinate")?;
        }
    }
    let mark = cursor.mark();
    cursor.skip_blank();
    if cursor.left() > 0 && cursor.word()? == "nodes" {
        return curved(cursor, dim, n, cells);
    }
    cursor.back(mark);
    Ok(Nodes { degree: 1, n_vertices, points })
}

fn components(cursor: &mut Cursor<'_>) -> Result<usize, ReadError> {
    let mark = cursor.mark();
    let components = cursor.parsed("the number of coordinates, 1 to 3")?;
    if (1..=3).contains(&components) {
        return Ok(components);
    }
    Err(cursor.syntax(mark, "1 to 3 coordinates", &components.to_string()))
}

/// Reads a grid function of a continuous space.
fn curved(
    cursor: &mut Cursor<'_>,
    dim: usize,
    n_vertices: usize,
    cells: &[MfemElement],
) -> Result<Nodes, ReadError> {
    keyword(cursor, "FiniteElementSpace")?;
    keyword(cursor, "FiniteElementCollection:")?;
    let mark = cursor.mark();
    let collection = cursor.word()?;
    let of_h1 = collection.strip_prefix(&format!("H1_{dim}D_P")).and_then(|p| p.parse().ok());
    let degree = match collection.as_str() {
        "Linear" => 1,
        "Quadratic" => 2,
        _ => of_h1.filter(|p| (1..=12).contains(p)).ok_or_else(|| {
            let what = format!(
                "nodes of the space `{collection}`; save the mesh after `Mesh::SetCurvature(p, false)`, with \
                 nodes of H1 and a degree of 1 to 12"
            );
            cursor.unsupported(mark, what)
        })?,
    };
    keyword(cursor, "VDim:")?;
    let components = components(cursor)?;
    keyword(cursor, "Ordering:")?;
    let by_nodes = cursor.parsed::<u8>("an ordering, 0 or 1")? == 0;
    let mark = cursor.mark();
    cursor.checked(mark, "vertices", n_vertices as u64, 2 * components)?;
    let n = H1Numbering::new(degree, n_vertices, cells).count();
    let n = cursor.checked(mark, "nodes", n as u64, 2 * components)?;
    let mut points = vec![[0.0; 3]; n];
    let places: Vec<(usize, usize)> = if by_nodes {
        (0..components).flat_map(|c| (0..n).map(move |i| (i, c))).collect()
    } else {
        (0..n).flat_map(|i| (0..components).map(move |c| (i, c))).collect()
    };
    for (i, c) in places {
        points[i][c] = cursor.double("a coordinate")?;
    }
    Ok(Nodes { degree, n_vertices, points })
}

/// Returns the contents: nodes, and blocks of elements of one kind and attribute.
fn build(
    cells: &[MfemElement],
    boundary: &[MfemElement],
    nodes: Nodes,
    names: &AttributeNames,
) -> Result<Contents, ReadError> {
    let Nodes { degree, n_vertices, points } = nodes;
    let mut contents = Contents::default();
    let numbering = H1Numbering::new(degree, n_vertices, cells);
    let mut moved = points.clone();
    let mut converters: Vec<ToEquispaced> = Vec::new();
    for (number, element) in cells.iter().enumerate() {
        let unknown = element.vertices.iter().find(|&&vertex| vertex as usize >= n_vertices);
        if let Some(&vertex) = unknown {
            let (element, node) = (number as u64, u64::from(vertex));
            return Err(ReadError::UnknownNode { element, node });
        }
        let Some(cell) = element.cell else { continue };
        let kind = ElementKind::Cell(cell, degree);
        let own = numbering.nodes(number, element, &kind.lattice()?);
        if degree > 2 {
            let known = converters.iter().position(|converter| converter.cell == cell);
            if known.is_none() {
                converters.push(ToEquispaced::new(cell, degree)?);
            }
            converters[known.unwrap_or(converters.len() - 1)].apply(&own, &points, &mut moved);
        }
        push(&mut contents.blocks, kind, tags(&names[0], element.attribute), number as u64, own);
    }
    contents.node_numbers = (0..moved.len() as u64).collect();
    contents.points = moved;
    for (number, element) in boundary.iter().enumerate() {
        let kind = element.cell.map_or(ElementKind::Point, |cell| ElementKind::Cell(cell, 1));
        let order = vertex_order(element.cell);
        let own = order.iter().map(|&v| u64::from(element.vertices[v])).collect();
        let mut tags = tags(&names[1], element.attribute);
        tags.insert(format!("boundary {}", element.attribute));
        push(&mut contents.blocks, kind, tags, number as u64, own);
    }
    Ok(contents)
}

/// Returns the tags of an attribute: its number, and the names of sets that contain it.
fn tags(names: &BTreeMap<u64, BTreeSet<String>>, attribute: u64) -> BTreeSet<String> {
    let mut tags = names.get(&attribute).cloned().unwrap_or_default();
    tags.insert(attribute.to_string());
    tags
}

/// Adds an element to the last block, if it has the same kind and tags, else to a new one.
fn push(
    blocks: &mut Vec<ElementBlock>,
    kind: ElementKind,
    tags: BTreeSet<String>,
    number: u64,
    nodes: Vec<u64>,
) {
    match blocks.last_mut().filter(|block| block.kind == kind && block.tags == tags) {
        Some(block) => {
            block.numbers.push(number);
            block.nodes.extend(nodes);
        }
        None => blocks.push(ElementBlock { kind, tags, numbers: vec![number], nodes }),
    }
}

/// Returns the file's position of each vertex of the reference cell: those of quadrilaterals go round.
fn vertex_order(cell: Option<Cell>) -> &'static [usize] {
    match cell {
        None => &[0],
        Some(Cell::Quadrilateral) => &[0, 1, 3, 2],
        Some(Cell::Hexahedron) => &[0, 1, 3, 2, 4, 5, 7, 6],
        Some(cell) => &[0, 1, 2, 3][..cell.vertex_count()],
    }
}

/// Matrix from the coordinates of MFEM's nodes of a cell to those of equispaced nodes.
struct ToEquispaced {
    cell: Cell,
    rows: Vec<Vec<f64>>,
}

impl ToEquispaced {
    fn new(cell: Cell, degree: usize) -> Result<Self, MeshError> {
        let expected = "orders are 1 to 12, on simplices 1 to 8";
        let failed = |_| MeshError::Unsupported { cell, order: degree, expected };
        let line = Lagrange::continuous(Cell::Interval, degree).map_err(failed)?;
        let mut gauss_lobatto: Vec<f64> = line.points().iter().map(|point| point[0]).collect();
        gauss_lobatto.sort_by(f64::total_cmp);
        let lattice = ElementKind::Cell(cell, degree).lattice()?;
        let theirs: Vec<[f64; 3]> =
            lattice.iter().map(|&p| node_point(cell, &gauss_lobatto, p)).collect();
        let element = Lagrange::equispaced(cell, degree).map_err(failed)?;
        let n = lattice.len();
        let matrix = interpolation(element, &theirs);
        Ok(Self { cell, rows: inverse(matrix.chunks_exact(n).map(<[f64]>::to_vec).collect()) })
    }

    fn apply(&self, own: &[u64], points: &[[f64; 3]], moved: &mut [[f64; 3]]) {
        for (&node, row) in own.iter().zip(&self.rows) {
            let mut sum = [0.0; 3];
            for (weight, &from) in row.iter().zip(own) {
                for c in 0..3 {
                    sum[c] += weight * points[from as usize][c];
                }
            }
            moved[node as usize] = sum;
        }
    }
}

/// Returns the reference point of an H1 node. On simplices the Gauss–Lobatto points of all barycentric coordinates are
/// divided by their sum.
fn node_point(cell: Cell, gauss_lobatto: &[f64], lattice: [usize; 3]) -> [f64; 3] {
    let point = lattice.map(|i| gauss_lobatto[i]);
    if cell.is_tensor() {
        return point;
    }
    let last = gauss_lobatto.len() - 1 - lattice.iter().sum::<usize>();
    let sum = point[..cell.dim()].iter().sum::<f64>() + gauss_lobatto[last];
    point.map(|x| x / sum)
}

/// Inverts a matrix by elimination with pivots in each column.
fn inverse(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| if i == j { 1.0 } else { 0.0 }));
    }
    for column in 0..n {
        let largest =
            (column..n).max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs()));
        a.swap(column, largest.unwrap_or(column));
        let pivot = a[column][column];
        a[column].iter_mut().for_each(|x| *x /= pivot);
        let own = a[column].clone();
        for (_, row) in a.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = row[column];
            row.iter_mut().zip(&own).for_each(|(x, y)| *x -= factor * y);
        }
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}
