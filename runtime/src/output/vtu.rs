//! The VTU file: its XML header and the numbers appended to it.

use super::Output;
use super::sample::Points;
use crate::mesh::{Cell, vtk_order};
use fem_dsl::point::Shape;
use kernels_gen::element::Lagrange;
use std::fmt::Write as _;
use std::io::{Result, Write};

/// One array of numbers.
struct Array {
    name: String,
    components: usize,
    numbers: Numbers,
}

enum Numbers {
    Bytes(Vec<u8>),
    Integers(Vec<u64>),
    Reals(Vec<f64>),
}

impl Array {
    fn bytes(&self) -> u64 {
        8 * match &self.numbers {
            Numbers::Bytes(all) => return all.len() as u64,
            Numbers::Integers(all) => all.len() as u64,
            Numbers::Reals(all) => all.len() as u64,
        }
    }

    fn kind(&self) -> &'static str {
        match self.numbers {
            Numbers::Bytes(_) => "UInt8",
            Numbers::Integers(_) => "Int64",
            Numbers::Reals(_) => "Float64",
        }
    }

    /// The size in bytes and then the numbers, little-endian.
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        out.write_all(&self.bytes().to_le_bytes())?;
        match &self.numbers {
            Numbers::Bytes(all) => out.write_all(all),
            Numbers::Integers(all) => all.iter().try_for_each(|n| out.write_all(&n.to_le_bytes())),
            Numbers::Reals(all) => all.iter().try_for_each(|x| out.write_all(&x.to_le_bytes())),
        }
    }
}

/// A file ready to be written.
pub(super) struct File {
    n_points: usize,
    n_cells: usize,
    time: Option<f64>,
    /// The version of the format.
    version: &'static str,
    points: Array,
    cells: [Array; 3],
    point_data: Vec<Array>,
    cell_data: Vec<Array>,
}

impl File {
    pub(super) fn new(output: &Output<'_>) -> File {
        let mesh = output.mesh;
        let points = Points::new(output);
        let coordinates: Vec<f64> = mesh.points().iter().flatten().copied().collect();
        // INVARIANT: a mesh has an order that its geometry's element exists for.
        let positions = match Lagrange::continuous(mesh.cell(), mesh.order()) {
            Ok(geometry) => points.values(geometry, mesh.nodes(), &coordinates, 3),
            Err(_) => Vec::new(),
        };
        let point_data = output
            .point_fields
            .iter()
            .map(|field| {
                let n = field.shape.components();
                let values = points.values(field.element, field.nodes, field.values, n);
                padded(field.name, field.shape, mesh.dim(), values)
            })
            .collect();
        let cell_data = output
            .cell_fields
            .iter()
            .map(|field| padded(field.name, field.shape, mesh.dim(), field.values.to_vec()))
            .collect();
        let n_cells = mesh.n_cells();
        let per_cell = points.per_cell as u64;
        let array =
            |name: &str, components, numbers| Array { name: name.to_owned(), components, numbers };
        let offsets = (1..=n_cells as u64).map(|c| c * per_cell).collect();
        let types = vec![vtk_order::cell_type(mesh.cell()); n_cells];
        File {
            n_points: points.count,
            n_cells,
            time: output.time,
            // More programs read 1.0, but there the nodes of hexahedra are in an older order.
            version: if mesh.cell() == Cell::Hexahedron { "2.2" } else { "1.0" },
            points: array("Points", 3, Numbers::Reals(positions)),
            cells: [
                array("connectivity", 1, Numbers::Integers(points.connectivity(mesh))),
                array("offsets", 1, Numbers::Integers(offsets)),
                array("types", 1, Numbers::Bytes(types)),
            ],
            point_data,
            cell_data,
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        out.write_all(self.header().as_bytes())?;
        self.arrays().try_for_each(|array| array.write(out))?;
        out.write_all(b"\n  </AppendedData>\n</VTKFile>\n")
    }

    /// All arrays in the order in which they are appended.
    fn arrays(&self) -> impl Iterator<Item = &Array> {
        let data = self.point_data.iter().chain(&self.cell_data);
        std::iter::once(&self.points).chain(&self.cells).chain(data)
    }

    fn header(&self) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"UnstructuredGrid\" version=\"{}\" byte_order=\"LittleEndian\" \
             header_type=\"UInt64\">\n  <UnstructuredGrid>\n",
            self.version
        );
        if let Some(time) = self.time {
            let _ = writeln!(
                text,
                "    <FieldData>\n      <DataArray type=\"Float64\" Name=\"TimeValue\" \
                 NumberOfTuples=\"1\" format=\"ascii\">{time:e}</DataArray>\n    </FieldData>"
            );
        }
        let _ = writeln!(
            text,
            "    <Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">",
            self.n_points, self.n_cells
        );
        let mut offset = 0;
        let mut section = |name: &str, arrays: &[&Array]| {
            let _ = writeln!(text, "      <{name}>");
            for array in arrays {
                let _ = writeln!(
                    text,
                    "        <DataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\" \
                     format=\"appended\" offset=\"{offset}\"/>",
                    array.kind(),
                    escaped(&array.name),
                    array.components
                );
                offset += 8 + array.bytes();
            }
            let _ = writeln!(text, "      </{name}>");
        };
        section("Points", &[&self.points]);
        section("Cells", &self.cells.each_ref());
        section("PointData", &self.point_data.iter().collect::<Vec<_>>());
        section("CellData", &self.cell_data.iter().collect::<Vec<_>>());
        text.push_str("    </Piece>\n  </UnstructuredGrid>\n  <AppendedData encoding=\"raw\">\n_");
        text
    }
}

/// An array in which vectors and matrices of a plane have a third direction, as VTK has them.
fn padded(name: &str, shape: Shape, dim: usize, values: Vec<f64>) -> Array {
    let name = name.to_owned();
    let (rows, columns) = match shape {
        Shape::Vector(n) if n == dim => (n, 1),
        Shape::Matrix(rows, columns) if rows == dim && columns == dim => (rows, columns),
        _ => {
            return Array { name, components: shape.components(), numbers: Numbers::Reals(values) };
        }
    };
    if dim == 3 {
        return Array { name, components: rows * columns, numbers: Numbers::Reals(values) };
    }
    let wide = if columns == 1 { 1 } else { 3 };
    let mut all = Vec::with_capacity(values.len() / (rows * columns) * 3 * wide);
    for value in values.chunks_exact(rows * columns) {
        for row in 0..3 {
            for column in 0..wide {
                let inside = row < rows && column < columns;
                all.push(if inside { value[row * columns + column] } else { 0.0 });
            }
        }
    }
    Array { name, components: 3 * wide, numbers: Numbers::Reals(all) }
}

/// Text for an XML attribute.
fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            c if c.is_control() => result.push(' '),
            c => result.push(c),
        }
    }
    result
}
