//! VTU files: XML, numbers, and rejected input.

use fem_dsl::point::Shape;
use kernels_gen::element::Lagrange;
use runtime::files::output::{CellField, Output, OutputError, PointField, write_vtu};
use runtime::mesh::generate::generate;
use runtime::mesh::{Cell, Mesh};
use std::collections::BTreeMap;

use fem_dsl::problem::Argument;

fn mesh(name: &str, numbers: &[(&str, f64)], cell: &str) -> Mesh {
    let mut arguments: BTreeMap<String, Argument> =
        numbers.iter().map(|&(n, x)| (n.to_owned(), Argument::Number(x))).collect();
    arguments.insert("cell".to_owned(), Argument::Word(cell.to_owned()));
    generate(name, &arguments).expect("a mesh")
}

/// A parsed file: the header and the appended bytes.
struct Parsed {
    header: String,
    data: Vec<u8>,
}

impl Parsed {
    fn of(output: &Output<'_>) -> Parsed {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("u.vtu");
        write_vtu(&path, output).expect("written");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
        let bytes = std::fs::read(&path).expect("read");
        let mark = b"<AppendedData encoding=\"raw\">\n_";
        let start = bytes.windows(mark.len()).position(|w| w == mark).expect("data") + mark.len();
        let end = b"\n  </AppendedData>\n</VTKFile>\n";
        assert!(bytes.ends_with(end));
        Parsed {
            header: String::from_utf8(bytes[..start].to_vec()).expect("UTF-8"),
            data: bytes[start..bytes.len() - end.len()].to_vec(),
        }
    }

    fn attribute(&self, array: &str, name: &str) -> String {
        let element = self.header.split('<').find(|e| e.contains(&format!("Name=\"{array}\"")));
        let element = element.unwrap_or_else(|| panic!("{array} in {}", self.header));
        let value = element.split_once(&format!(" {name}=\"")).expect("attribute").1;
        value.split('"').next().expect("quotes").to_owned()
    }

    fn bytes(&self, array: &str) -> &[u8] {
        let offset: usize = self.attribute(array, "offset").parse().expect("a number");
        let size = u64::from_le_bytes(self.data[offset..offset + 8].try_into().expect("8 bytes"));
        &self.data[offset + 8..offset + 8 + size as usize]
    }

    fn words(&self, array: &str) -> Vec<[u8; 8]> {
        self.bytes(array).chunks_exact(8).map(|b| b.try_into().expect("8 bytes")).collect()
    }

    fn reals(&self, array: &str) -> Vec<f64> {
        self.words(array).into_iter().map(f64::from_le_bytes).collect()
    }

    fn integers(&self, array: &str) -> Vec<i64> {
        self.words(array).into_iter().map(i64::from_le_bytes).collect()
    }
}

/// Returns a discontinuous field: each cell has its own nodes, with values of a function.
fn sampled(
    mesh: &Mesh,
    element: Lagrange,
    f: impl Fn([f64; 3]) -> Vec<f64>,
) -> (Vec<u32>, Vec<f64>) {
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let table = kernels_gen::element::interpolation(geometry, &element.points());
    let mut values = Vec::new();
    for cell in 0..mesh.n_cells() {
        for row in table.chunks_exact(geometry.count()) {
            let x = [0, 1, 2].map(|c| {
                let nodes = mesh.cell_nodes(cell).iter();
                nodes.zip(row).map(|(&n, w)| w * mesh.points()[n as usize][c]).sum::<f64>()
            });
            values.extend(f(x));
        }
    }
    ((0..(mesh.n_cells() * element.count()) as u32).collect(), values)
}

#[test]
fn points_and_fields_agree_on_every_cell() {
    let polynomial = |x: [f64; 3]| 1.0 + x[0] - 2.0 * x[1] * x[2] + x[0] * x[1];
    for (name, arguments, cell) in [
        ("box", &[("cells", 2.0), ("deform", 0.1)][..], "hex"),
        ("box", &[("cells", 2.0), ("deform", 0.1), ("dim", 2.0)], "quad"),
        ("ball", &[("refine", 0.0), ("order", 3.0)], "tet"),
        ("ball", &[("refine", 0.0), ("order", 2.0), ("dim", 2.0)], "tri"),
    ] {
        let mesh = mesh(name, arguments, cell);
        // A polynomial of degree 2 in x has degree 2 g on a cell of order g.
        let degree = 2 * mesh.order();
        let element = Lagrange::discontinuous(mesh.cell(), degree).expect("an element");
        let (nodes, values) = sampled(&mesh, element, |x| vec![polynomial(x)]);
        let field =
            PointField { name: "u", shape: Shape::Scalar, element, nodes: &nodes, values: &values };
        let output = Output {
            mesh: &mesh,
            point_fields: vec![field],
            cell_fields: vec![],
            states: vec![],
            time: None,
        };
        let file = Parsed::of(&output);
        let (points, u) = (file.reals("Points"), file.reals("u"));
        assert_eq!(points.len(), 3 * u.len());
        assert_eq!(
            u.len(),
            mesh.n_cells() * Lagrange::continuous(mesh.cell(), degree).expect("element").count()
        );
        for (x, &u) in points.chunks_exact(3).zip(&u) {
            let exact = polynomial([x[0], x[1], x[2]]);
            assert!((u - exact).abs() <= 1e3 * f64::EPSILON, "{cell}: {u} {exact}");
        }
    }
}

/// Other programs read the basic types.
#[test]
fn cells_of_low_degree_have_the_basic_types() {
    for (cell, dim, types) in [
        ("hex", 3.0, [12, 29]),
        ("tet", 3.0, [10, 24]),
        ("quad", 2.0, [9, 28]),
        ("tri", 2.0, [5, 22]),
    ] {
        let mesh = mesh("box", &[("cells", 1.0), ("dim", dim)], cell);
        for (degree, kind) in [1, 2].into_iter().zip(types) {
            let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
            let nodes = vec![0; mesh.n_cells() * element.count()];
            let (name, shape, values) = ("u", Shape::Scalar, &[1.0][..]);
            let output = Output {
                mesh: &mesh,
                point_fields: vec![PointField { name, shape, element, nodes: &nodes, values }],
                cell_fields: vec![],
                states: vec![],
                time: None,
            };
            let file = Parsed::of(&output);
            assert!(
                file.header.contains("type=\"UnstructuredGrid\" version=\"1.0\""),
                "{cell} {degree}"
            );
            assert_eq!(file.bytes("types"), vec![kind; mesh.n_cells()]);
        }
    }
}

#[test]
fn continuous_fields_share_their_points() {
    for (cell, kind, count) in
        [("hex", 72, 7usize.pow(3)), ("tet", 71, 7usize.pow(3)), ("quad", 70, 49), ("tri", 69, 49)]
    {
        let dim = if count == 49 { 2.0 } else { 3.0 };
        let mesh = mesh("box", &[("cells", 2.0), ("dim", dim)], cell);
        let element = Lagrange::continuous(mesh.cell(), 3).expect("an element");
        // Constant fields, so that the node numbers do not matter.
        let nodes = vec![0; mesh.n_cells() * element.count()];
        let shape = Shape::Vector(mesh.dim());
        let matrix = Shape::Matrix(mesh.dim(), mesh.dim());
        let vector: Vec<f64> = (1..=mesh.dim()).map(|i| i as f64).collect();
        let tensor: Vec<f64> = (1..=mesh.dim() * mesh.dim()).map(|i| i as f64).collect();
        let point =
            |name, shape, values| PointField { name, shape, element, nodes: &nodes, values };
        let sizes: Vec<f64> = (0..mesh.n_cells()).map(|c| mesh.diameter(c)).collect();
        let output = Output {
            mesh: &mesh,
            point_fields: vec![point("v & \"w\"", shape, &vector), point("T", matrix, &tensor)],
            cell_fields: vec![CellField { name: "h", shape: Shape::Scalar, values: &sizes }],
            states: vec![],
            time: Some(0.25),
        };
        let file = Parsed::of(&output);
        // meshio refuses 2.2.
        let start = "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\"";
        assert!(file.header.starts_with(start));
        assert!(
            file.header.contains(&format!(
                "NumberOfPoints=\"{count}\" NumberOfCells=\"{}\"",
                mesh.n_cells()
            ))
        );
        assert!(file.header.contains("Name=\"TimeValue\""));
        assert_eq!(file.bytes("types"), vec![kind; mesh.n_cells()]);
        let offsets = file.integers("offsets");
        assert_eq!(offsets.last(), Some(&((mesh.n_cells() * element.count()) as i64)));
        let mut connectivity = file.integers("connectivity");
        assert_eq!(connectivity.len() as i64, offsets[offsets.len() - 1]);
        connectivity.sort_unstable();
        connectivity.dedup();
        assert_eq!(connectivity, (0..count as i64).collect::<Vec<_>>());
        let name = "v &amp; &quot;w&quot;";
        assert_eq!(file.attribute(name, "NumberOfComponents"), "3");
        assert_eq!(file.attribute("T", "NumberOfComponents"), "9");
        let third = if mesh.dim() == 3 { 3.0 } else { 0.0 };
        let close = |all: &[f64], expected: &[f64]| {
            all.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 64.0 * f64::EPSILON * b.abs())
        };
        assert!(file.reals(name).chunks_exact(3).all(|v| close(v, &[1.0, 2.0, third])));
        let expected = match mesh.dim() {
            2 => [1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0],
            _ => [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        };
        assert!(file.reals("T").chunks_exact(9).all(|t| close(t, &expected)));
        assert_eq!(file.reals("h"), sizes);
        // Shared points agree in all cells: the lattice of the box.
        for x in file.reals("Points") {
            assert!((x * 6.0 - (x * 6.0).round()).abs() < 64.0 * f64::EPSILON);
        }
    }
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    let mesh = mesh("box", &[("cells", 1.0)], "hex");
    let element = Lagrange::continuous(Cell::Hexahedron, 1).expect("an element");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("u.vtu");
    let write = |field: PointField<'_>| {
        write_vtu(
            &path,
            &Output {
                mesh: &mesh,
                point_fields: vec![field],
                cell_fields: vec![],
                states: vec![],
                time: None,
            },
        )
    };
    let nodes: Vec<u32> = (0..8).collect();
    let good =
        PointField { name: "u", shape: Shape::Scalar, element, nodes: &nodes, values: &[0.0; 8] };
    assert!(write(good).is_ok());
    let short = write(PointField { values: &[0.0; 7], ..good }).expect_err("too short");
    assert_eq!(short.to_string(), "the field \"u\" has 7 values, but the mesh needs 8");
    assert!(matches!(
        write(PointField { nodes: &nodes[..4], ..good }),
        Err(OutputError::Field { .. })
    ));
    let tet = Lagrange::continuous(Cell::Tetrahedron, 1).expect("an element");
    assert!(matches!(write(PointField { element: tet, ..good }), Err(OutputError::Cell { .. })));
    let nowhere = folder.path().join("no/such/folder/u.vtu");
    let output = Output {
        mesh: &mesh,
        point_fields: vec![good],
        cell_fields: vec![],
        states: vec![],
        time: None,
    };
    let message = write_vtu(&nowhere, &output).expect_err("no folder").to_string();
    assert!(message.contains("no/such/folder/u.vtu"), "{message}");
}
