//! Format of VTU files: XML header and appended data.

use super::sample::SamplePoints;
use super::{Output, StateField, Writer};
use crate::files::input::state;
use crate::mesh::vtk_order;
use fem_dsl::point::Shape;
use kernels_gen::element::Lagrange;
use std::fmt::Write as _;
use std::io::{Result, Write};

/// The version of the format, see [the module](super).
const VERSION: &str = "1.0";

/// An array of numbers.
struct VtuArray {
    name: String,
    components: usize,
    numbers: ArrayNumbers,
}

enum ArrayNumbers {
    Bytes(Vec<u8>),
    /// Integers, unsigned or in two's complement.
    Integers(Vec<u64>),
    Reals(Vec<f64>),
}

impl VtuArray {
    fn bytes(&self) -> u64 {
        8 * match &self.numbers {
            ArrayNumbers::Bytes(all) => return all.len() as u64,
            ArrayNumbers::Integers(all) => all.len() as u64,
            ArrayNumbers::Reals(all) => all.len() as u64,
        }
    }

    fn kind(&self) -> &'static str {
        match self.numbers {
            ArrayNumbers::Bytes(_) => "UInt8",
            ArrayNumbers::Integers(_) => "Int64",
            ArrayNumbers::Reals(_) => "Float64",
        }
    }

    /// Writes the size in bytes, then the numbers, little-endian.
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        out.write_all(&self.bytes().to_le_bytes())?;
        match &self.numbers {
            ArrayNumbers::Bytes(all) => out.write_all(all),
            ArrayNumbers::Integers(all) => {
                all.iter().try_for_each(|n| out.write_all(&n.to_le_bytes()))
            }
            ArrayNumbers::Reals(all) => {
                all.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))
            }
        }
    }
}

/// VTU files, and PVTU files that list them.
pub(super) struct VtuWriter;

impl Writer for VtuWriter {
    fn extension(&self) -> &'static str {
        "vtu"
    }

    fn write(&self, output: &Output<'_>, out: &mut dyn Write) -> Result<()> {
        VtuFile::new(output).write(out)
    }

    fn index_extension(&self) -> &'static str {
        "pvtu"
    }

    fn index(&self, output: &Output<'_>, names: &[String]) -> String {
        VtuFile::new(output).in_pieces(names)
    }
}

/// A file that is ready to be written.
struct VtuFile {
    n_points: usize,
    n_cells: usize,
    time: Option<f64>,
    states: Vec<VtuArray>,
    points: VtuArray,
    cells: [VtuArray; 3],
    point_data: Vec<VtuArray>,
    cell_data: Vec<VtuArray>,
}

impl VtuFile {
    fn new(output: &Output<'_>) -> VtuFile {
        let mesh = output.mesh;
        let points = SamplePoints::new(output);
        let coordinates: Vec<f64> = mesh.points().iter().flatten().copied().collect();
        // INVARIANT: the geometry's element exists for the order of a mesh.
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
        let array = |name: &str, components, numbers| VtuArray {
            name: name.to_owned(),
            components,
            numbers,
        };
        let offsets = (1..=n_cells as u64).map(|c| c * per_cell).collect();
        let types = vec![vtk_order::cell_type(mesh.cell(), points.degree); n_cells];
        VtuFile {
            n_points: points.count,
            n_cells,
            time: output.time,
            states: states(output),
            points: array("Points", 3, ArrayNumbers::Reals(positions)),
            cells: [
                array("connectivity", 1, ArrayNumbers::Integers(points.connectivity(mesh))),
                array("offsets", 1, ArrayNumbers::Integers(offsets)),
                array("types", 1, ArrayNumbers::Bytes(types)),
            ],
            point_data,
            cell_data,
        }
    }

    fn write(&self, out: &mut dyn Write) -> Result<()> {
        out.write_all(self.header().as_bytes())?;
        self.arrays().try_for_each(|array| array.write(out))?;
        out.write_all(b"\n  </AppendedData>\n</VTKFile>\n")
    }

    /// Returns the text of a `.pvtu` file with the same arrays, which lists files as pieces.
    fn in_pieces(&self, names: &[String]) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"PUnstructuredGrid\" version=\"{VERSION}\" byte_order=\"LittleEndian\" \
             header_type=\"UInt64\">\n  <PUnstructuredGrid GhostLevel=\"0\">\n"
        );
        let mut section = |name: &str, arrays: &mut dyn Iterator<Item = &VtuArray>| {
            let _ = writeln!(text, "    <P{name}>");
            for array in arrays {
                let _ = writeln!(
                    text,
                    "      <PDataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\"/>",
                    array.kind(),
                    escaped(&array.name),
                    array.components
                );
            }
            let _ = writeln!(text, "    </P{name}>");
        };
        section("Points", &mut std::iter::once(&self.points));
        section("PointData", &mut self.point_data.iter());
        section("CellData", &mut self.cell_data.iter());
        for name in names {
            let _ = writeln!(text, "    <Piece Source=\"{}\"/>", escaped(name));
        }
        text.push_str("  </PUnstructuredGrid>\n</VTKFile>\n");
        text
    }

    /// Returns all arrays in appended order.
    fn arrays(&self) -> impl Iterator<Item = &VtuArray> {
        let data = self.point_data.iter().chain(&self.cell_data);
        self.states.iter().chain(std::iter::once(&self.points)).chain(&self.cells).chain(data)
    }

    /// Writes the field data; returns the number of its appended bytes.
    fn field_data(&self, text: &mut String) -> u64 {
        if self.time.is_none() && self.states.is_empty() {
            return 0;
        }
        text.push_str("    <FieldData>\n");
        if let Some(time) = self.time {
            let _ = writeln!(
                text,
                "      <DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" \
                 format=\"ascii\">{time:e}</DataArray>"
            );
        }
        let mut offset = 0;
        for array in &self.states {
            let _ = writeln!(
                text,
                "      <DataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\" \
                 NumberOfTuples=\"{}\" format=\"appended\" offset=\"{offset}\"/>",
                array.kind(),
                escaped(&array.name),
                array.components,
                array.bytes() / 8 / array.components.max(1) as u64
            );
            offset += 8 + array.bytes();
        }
        text.push_str("    </FieldData>\n");
        offset
    }

    fn header(&self) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"UnstructuredGrid\" version=\"{VERSION}\" byte_order=\"LittleEndian\" \
             header_type=\"UInt64\">\n  <UnstructuredGrid>\n"
        );
        let mut offset = self.field_data(&mut text);
        let _ = writeln!(
            text,
            "    <Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">",
            self.n_points, self.n_cells
        );
        let mut section = |name: &str, arrays: &[&VtuArray]| {
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

/// Returns the coefficients of fields, and the description of their spaces.
fn states(output: &Output<'_>) -> Vec<VtuArray> {
    if output.states.is_empty() {
        return Vec::new();
    }
    let whole = |name: String, numbers: &[i64]| {
        let numbers = ArrayNumbers::Integers(numbers.iter().map(|&n| n as u64).collect());
        VtuArray { name, components: 1, numbers }
    };
    let mut arrays = vec![whole(state::mesh_name(), &state::of_mesh(output.mesh))];
    for &StateField { name, space, values } in &output.states {
        let [of_space, coefficients] = state::names(name);
        arrays.push(whole(of_space, &state::of_space(space)));
        let components = space.components();
        let own = |node: u32| &values[node as usize * components..][..components];
        let all = state::order(space).into_iter().flat_map(own).copied().collect();
        arrays.push(VtuArray { name: coefficients, components, numbers: ArrayNumbers::Reals(all) });
    }
    arrays
}

/// Returns an array whose vectors and matrices are padded to three dimensions, as VTK requires.
fn padded(name: &str, shape: Shape, dim: usize, values: Vec<f64>) -> VtuArray {
    let name = name.to_owned();
    let (rows, columns) = match shape {
        Shape::Vector(n) if n == dim => (n, 1),
        Shape::Matrix(rows, columns) if rows == dim && columns == dim => (rows, columns),
        _ => {
            return VtuArray {
                name,
                components: shape.components(),
                numbers: ArrayNumbers::Reals(values),
            };
        }
    };
    if dim == 3 {
        return VtuArray { name, components: rows * columns, numbers: ArrayNumbers::Reals(values) };
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
    VtuArray { name, components: 3 * wide, numbers: ArrayNumbers::Reals(all) }
}

/// Escapes an XML attribute.
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
