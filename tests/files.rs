//! Data and states from files: `.npy` and `.vtu`, on meshes of all sources, in the numbering of each.

use std::fmt::Write as _;
use std::path::Path;

use fem_dsl::point::Shape;
use fem_dsl::problem::FileArray;
use kernels_gen::element::{ElementError, Lagrange};
use runtime::files::input::ArrayRequest;
use runtime::files::output::{Output, StateField, write_vtu_to};
use runtime::mesh::partition::Partition;
use runtime::space::Space;
use weakform::{Cell, Execution, Form, Solution};

/// Constructor of an element for a cell and a degree.
type Element = fn(Cell, usize) -> Result<Lagrange, ElementError>;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Returns an array of reals in NumPy's format, with this number of columns.
fn npy(values: &[f64], columns: usize) -> Vec<u8> {
    let rows = values.len() / columns;
    let shape = if columns == 1 { format!("({rows},)") } else { format!("({rows}, {columns})") };
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    let numbers = values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &numbers].concat()
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(folder.join(name), bytes).expect("a file");
}

fn solved(folder: &Path, text: &str) -> Result<Solution, weakform::Error> {
    let problem = Form::parse(text, "f")?.problem("p")?;
    problem.folder(folder).execution(Execution::Interpreted).run()
}

#[track_caller]
fn solution(folder: &Path, text: &str) -> Solution {
    solved(folder, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn refused(folder: &Path, text: &str) -> String {
    solved(folder, text).err().map(|error| error.to_string()).expect("an error")
}

fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(|figure| figure.number()).expect("a number")
}

fn bits(solution: &Solution) -> Vec<u64> {
    solution.values().iter().map(|value| value.to_bits()).collect()
}

/// Returns the reference of the data: a linear function of position.
fn linear(at: &[f64]) -> f64 {
    1.0 + at[0] + 2.0 * at[1] + at.get(2).map_or(0.0, |z| 3.0 * z)
}

/// Returns a problem with data on cells and at nodes of a mesh, whose `report`s are the distances from the linear
/// function.
fn compared(mesh: &str, dim: usize, cells: &str, nodes: &str) -> String {
    let z = if dim == 3 { " + 3 * x[2]" } else { "" };
    let function = format!("1 + x[0] + 2 * x[1]{z}");
    format!(
        "form f {{
             field u: scalar; aux c: scalar on cells; aux d: scalar on cells; aux v: scalar;
             f0[u] = u - c - d - v;
         }}
         problem p solves f {{
             mesh = {mesh}; degree = 2;
             aux d = {function}; aux c = {cells}; aux v = {nodes};
             initial u = 1;
             report cells = l2(c - d); report nodes = l2(v - ({function}));
         }}"
    )
}

/// A box is numbered along x first, then y, then z; the simplices of a square or cube are consecutive.
#[test]
fn boxes_are_numbered_along_their_axes() {
    let folder = tempfile::tempdir().expect("a folder");
    // Thirty-three cells along x need more than one brick.
    for (dim, cell, n) in [
        (2, "quad", [33, 6, 1]),
        (2, "tri", [5, 3, 1]),
        (3, "hex", [3, 5, 2]),
        (3, "tet", [2, 3, 2]),
    ] {
        let extent = |axis: usize| if axis < dim { n[axis] + 1 } else { 1 };
        let (mut nodes, mut cells) = (Vec::new(), Vec::new());
        for k in 0..extent(2) {
            for j in 0..extent(1) {
                for i in 0..extent(0) {
                    let at = [i, j, k].map(|i| i as f64);
                    nodes.push(linear(&at[..dim]));
                    if i < n[0] && j < n[1] && (k < n[2] || dim == 2) {
                        // Simplices have different centres: only the cube is compared.
                        let splits = match cell {
                            "tri" => 2,
                            "tet" => 6,
                            _ => 1,
                        };
                        let middle = at.map(|x| x + 0.5);
                        cells.extend(vec![linear(&middle[..dim]); splits]);
                    }
                }
            }
        }
        write(folder.path(), "cells.npy", npy(&cells, 1));
        write(folder.path(), "nodes.npy", npy(&nodes, 1));
        let to: Vec<String> = n[..dim].iter().map(usize::to_string).collect();
        let to = to.join(", ");
        let mesh = format!("box(dim: {dim}, cells: [{to}], to: [{to}], cell: {cell})");
        let text = compared(&mesh, dim, "file(\"cells.npy\")", "file(\"nodes.npy\")");
        let found = solution(folder.path(), &text);
        assert!(number(&found, "nodes") < 1e-11, "{cell}: {}", number(&found, "nodes"));
        // The centre of a simplex is less than half a cube from that of its cube, along each axis.
        let most = if matches!(cell, "tri" | "tet") { 3.0 * 30.0 } else { 1e-11 };
        let off = number(&found, "cells");
        assert!(off < most, "{cell}: {off}");
        if matches!(cell, "tri" | "tet") {
            let whole = text.replace("l2(c - d)", "maximum(abs(c - d))");
            assert!(number(&solution(folder.path(), &whole), "cells") < 3.1, "{cell}");
        }
    }
}

/// Nodes and elements of a text file of Gmsh, in its order.
struct Msh {
    nodes: Vec<[f64; 3]>,
    /// The dimension of each element, and the first nodes, which are its vertices.
    elements: Vec<(usize, Vec<usize>)>,
    curved: bool,
}

/// Returns dimension and number of vertices for Gmsh's element types.
fn kind(number: usize) -> (usize, usize) {
    match number {
        15 => (0, 1),
        1 | 8 | 26 | 27 => (1, 2),
        2 | 9 | 21 | 23 => (2, 3),
        3 | 10 | 16 | 36 | 37 => (2, 4),
        4 | 11 | 29 | 30 => (3, 4),
        5 | 12 | 17 | 92 => (3, 8),
        other => panic!("elements of type {other}"),
    }
}

fn msh(text: &str) -> Msh {
    let section = |name: &str| -> Vec<Vec<f64>> {
        let (_, rest) = text.split_once(&format!("${name}\n")).expect("a section");
        let (inside, _) = rest.split_once("$End").expect("an end");
        let numbers = |line: &str| {
            line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
        };
        inside.lines().map(numbers).collect()
    };
    let (nodes, elements) = (section("Nodes"), section("Elements"));
    let mut found = Msh { nodes: Vec::new(), elements: Vec::new(), curved: false };
    let mut places = std::collections::BTreeMap::new();
    let four = text.starts_with("$MeshFormat\n4.1");
    let mut lines = nodes[1..].iter();
    while let Some(line) = lines.next() {
        if !four {
            places.insert(line[0] as usize, found.nodes.len());
            found.nodes.push([line[1], line[2], line[3]]);
            continue;
        }
        let count = line[3] as usize;
        let numbers: Vec<usize> = lines.by_ref().take(count).map(|line| line[0] as usize).collect();
        for (number, at) in numbers.into_iter().zip(lines.by_ref().take(count)) {
            places.insert(number, found.nodes.len());
            found.nodes.push([at[0], at[1], at[2]]);
        }
    }
    let mut lines = elements[1..].iter();
    while let Some(line) = lines.next() {
        let (own, first, number): (Vec<&Vec<f64>>, usize, f64) = match four {
            true => (lines.by_ref().take(line[3] as usize).collect(), 1, line[2]),
            false => (vec![line], 3 + line[2] as usize, line[1]),
        };
        let (dim, vertices) = kind(number as usize);
        found.curved |= number > 5.0 && dim > 0;
        for element in own {
            let own = &element[first..first + vertices];
            found.elements.push((dim, own.iter().map(|&node| places[&(node as usize)]).collect()));
        }
    }
    found
}

impl Msh {
    /// Returns the linear function at the centre of each element of these dimensions.
    fn cells(&self, dims: std::ops::RangeInclusive<usize>, dim: usize) -> Vec<f64> {
        let own = self.elements.iter().filter(|(of, _)| dims.contains(of));
        let centre = |(_, nodes): &(usize, Vec<usize>)| {
            let mean = |c: usize| {
                nodes.iter().map(|&n| self.nodes[n][c]).sum::<f64>() / nodes.len() as f64
            };
            linear(&[mean(0), mean(1), mean(2)][..dim])
        };
        own.map(centre).collect()
    }

    fn points(&self, dim: usize) -> Vec<f64> {
        self.nodes.iter().map(|at| linear(&at[..dim])).collect()
    }
}

/// Rows for the cells only, or for all elements of the file, in its order; at nodes also of curved cells, of any order.
#[test]
fn files_keep_the_numbering_of_their_meshes() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, dim) in [
        ("meshes/plate_hole_tri.msh", 2),
        ("meshes/cylinder_quad9.msh", 2),
        ("meshes/bracket_tet.msh", 3),
        ("runtime/tests/meshes/two_v4.msh", 2),
        ("runtime/tests/meshes/disc_quad8.msh", 2),
        ("runtime/tests/meshes/cylinder_hex20.msh", 3),
        ("runtime/tests/meshes/cylinder_v4_text.msh", 3),
        ("runtime/tests/meshes/ring_hex_o3.msh", 3),
        ("runtime/tests/meshes/disc_tri_o4.msh", 2),
    ] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(name)).expect("a mesh");
        let mesh = msh(&text);
        write(folder.path(), "part.msh", &text);
        write(folder.path(), "nodes.npy", npy(&mesh.points(dim), 1));
        for dims in [dim..=dim, 0..=dim] {
            write(folder.path(), "cells.npy", npy(&mesh.cells(dims, dim), 1));
            let text = compared("\"part.msh\"", dim, "file(\"cells.npy\")", "file(\"nodes.npy\")");
            // The coordinates of cells of order 3 and 4 have these degrees.
            let text = text.replace(
                "degree = 2",
                if name.contains("_o") { "degree = 4" } else { "degree = 2" },
            );
            let found =
                solved(folder.path(), &text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let [cells, nodes] = ["cells", "nodes"].map(|of| number(&found, of));
            assert!(nodes < 1e-9, "{name}: nodes {nodes}");
            // The image of the reference centre of a curved cell differs from the mean of its vertices.
            assert!(cells < if mesh.curved { 0.3 } else { 1e-9 }, "{name}: cells {cells}");
        }
    }
}

/// The nodes of a refined mesh have no order known to the user: a file with the same number of values must not be
/// accepted.
#[test]
fn data_at_the_nodes_of_a_refined_mesh_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "nodes.npy", npy(&[1.0; 25], 1));
    let text = "form f { field u: scalar; aux c: scalar on nodes in H1(1); f0[u] = u - c; }
        problem p solves f { mesh = box(dim: 2, cells: 2); refine = 1; degree = 1; aux c = file(\"nodes.npy\"); }";
    let said = refused(folder.path(), text);
    assert!(
        said.contains("nodes of a refined mesh have no order") && said.contains("help:"),
        "{said}"
    );
}

/// Two squares with descending numbers: data of Abaqus meshes follows the numbers.
#[test]
fn data_of_abaqus_meshes_goes_by_the_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "*NODE\n60,0,0\n50,1,0\n40,2,0\n30,0,1\n20,1,1\n10,2,1\n*ELEMENT,TYPE=CPS4\n9,60,50,20,30\n7,50,40,10,20\n";
    write(folder.path(), "part.inp", text);
    let points = [[2.0, 1.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0], [1.0, 0.0], [0.0, 0.0]];
    write(folder.path(), "nodes.npy", npy(&points.map(|at| linear(&at)), 1));
    write(folder.path(), "cells.npy", npy(&[[1.5, 0.5], [0.5, 0.5]].map(|at| linear(&at)), 1));
    let text = compared("\"part.inp\"", 2, "file(\"cells.npy\")", "file(\"nodes.npy\")");
    let found = solution(folder.path(), &text);
    assert!(number(&found, "cells") < 1e-12 && number(&found, "nodes") < 1e-12);
}

/// Returns a grid of n × n squares, or with a triangle instead of half of the last one, preceded by lines; with data.
fn vtu(n: usize, cells: &str, nodes: &str) -> String {
    let side = n + 1;
    let mut text =
        String::from("<VTKFile type=\"UnstructuredGrid\" version=\"1.0\"><UnstructuredGrid>");
    let count = n + n * n;
    let _ = write!(text, "<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{count}\">", side * side);
    let mut array = |name: &str, components: usize, numbers: String| {
        let _ = write!(
            text,
            "<DataArray type=\"Float64\" Name=\"{name}\" NumberOfComponents=\"{components}\">{numbers}</DataArray>"
        );
    };
    let points = (0..side * side).map(|i| format!("{} {} 0", i % side, i / side));
    let node = |i: usize, j: usize| j * side + i;
    let lines = (0..n).map(|i| format!("{} {}", node(i, 0), node(i + 1, 0)));
    let squares = (0..n * n).map(|c| {
        let (i, j) = (c % n, c / n);
        format!("{} {} {} {}", node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1))
    });
    let joined = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join(" ");
    array("points", 3, joined(&mut { points }));
    let points = std::mem::take(&mut text);
    let integers = |name: &str, numbers: String| {
        format!("<DataArray type=\"Int64\" Name=\"{name}\">{numbers}</DataArray>")
    };
    let ends =
        (0..count).map(|c| if c < n { 2 * (c + 1) } else { 2 * n + 4 * (c + 1 - n) }.to_string());
    let types = (0..count).map(|c| if c < n { "3" } else { "9" }.to_owned());
    let arrays = [
        integers("connectivity", joined(&mut lines.chain(squares))),
        integers("offsets", joined(&mut { ends })),
        integers("types", joined(&mut { types })),
    ];
    let (head, array) = points.split_once("<DataArray").expect("an array");
    format!(
        "{head}<Points><DataArray{array}</Points><Cells>{}</Cells><PointData>{nodes}</PointData><CellData>{cells}</CellData>\
         </Piece></UnstructuredGrid></VTKFile>",
        arrays.concat()
    )
}

fn array(name: &str, components: usize, values: &[f64]) -> String {
    let values: Vec<String> = values.iter().map(f64::to_string).collect();
    format!(
        "<DataArray type=\"Float64\" Name=\"{name}\" NumberOfComponents=\"{components}\">{}</DataArray>",
        values.join(" ")
    )
}

/// Data in the mesh's own file, or in another of the same grid, also for a generated box; plane vectors have a third
/// component in it.
#[test]
fn data_of_vtk_files_is_found_by_its_name_and_its_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let n = 3;
    let side = n + 1;
    let places = (0..side * side).map(|i| [(i % side) as f64, (i / side) as f64]);
    let nodes: Vec<f64> = places.clone().map(|at| linear(&at)).collect();
    let flow: Vec<f64> = places.flat_map(|at| [at[1], -at[0], 0.0]).collect();
    let centres = (0..n * n).map(|c| [(c % n) as f64 + 0.5, (c / n) as f64 + 0.5]);
    let cells: Vec<f64> =
        vec![f64::NAN; n].into_iter().chain(centres.map(|at| linear(&at))).collect();
    let text = vtu(n, &array("c", 1, &cells), &(array("v", 1, &nodes) + &array("wind", 3, &flow)));
    write(folder.path(), "grid.vtu", text);
    for mesh in ["\"grid.vtu\"", "box(dim: 2, cells: 3, to: [3, 3])"] {
        let own = mesh.starts_with('"');
        let text = compared(mesh, 2, "file(\"grid.vtu\")", "file(\"grid.vtu\", \"v\")")
            .replace("field u: scalar;", "field u: scalar; aux w: vector;")
            .replace("- v;", "- v + dot(w, x);")
            .replace("initial", "aux w = file(\"grid.vtu\", \"wind\"); initial")
            .replace("report cells", "report wind = l2(w - [x[1], -x[0]]); report cells");
        if !own {
            // The file also has lines, which a box does not have.
            let said = refused(folder.path(), &text);
            assert!(said.contains("it has values for 12 cells, but the mesh has 9"), "{said}");
            continue;
        }
        let found = solution(folder.path(), &text);
        for of in ["cells", "nodes", "wind"] {
            assert!(number(&found, of) < 1e-12, "{of}: {}", number(&found, of));
        }
    }
    let moved = "box(dim: 2, cells: 3, to: [3, 2])";
    let text = compared(moved, 2, "2", "file(\"grid.vtu\", \"v\")");
    let said = refused(folder.path(), &text);
    assert!(said.contains("another mesh with as many nodes: number "), "{said}");
}

/// Parts of a divided cell, in mixed triangles and quadrilaterals, have its value; new nodes have none.
#[test]
fn pieces_of_a_cell_have_its_data() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        folder.path(),
        "mixed.msh",
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n5 2 0 0\n$EndNodes\n\
         $Elements\n2\n1 2 2 0 1 2 5 3\n2 3 2 0 1 1 2 3 4\n$EndElements\n",
    );
    write(folder.path(), "cells.npy", npy(&[4.0, 10.0], 1));
    let text = compared("\"mixed.msh\"", 2, "file(\"cells.npy\")", "1")
        .replace("l2(c - d)", "integral(c)");
    let found = solution(folder.path(), &text);
    assert!((number(&found, "cells") - 12.0).abs() < 1e-12);
    write(folder.path(), "nodes.npy", npy(&[0.0; 5], 1));
    let said = refused(folder.path(), &text.replace("aux v = 1", "aux v = file(\"nodes.npy\")"));
    assert!(said.contains("nodes that its file lacks"), "{said}");
}

/// Regions may have files of their own; rows elsewhere do not matter.
#[test]
fn a_region_takes_its_rows_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let squares = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n2 1 \"steel\"\n2 2 \"glue\"\n$EndPhysicalNames\n\
        $Nodes\n6\n1 0 0 0\n2 1 0 0\n3 2 0 0\n4 0 1 0\n5 1 1 0\n6 2 1 0\n$EndNodes\n\
        $Elements\n2\n1 3 2 2 1 2 3 6 5\n2 3 2 1 1 1 2 5 4\n$EndElements\n";
    write(folder.path(), "two.msh", squares);
    write(folder.path(), "steel.npy", npy(&[f64::NAN, 7.0], 1));
    let text =
        compared("\"two.msh\"", 2, "5 on \"glue\"; aux c = file(\"steel.npy\") on \"steel\"", "1")
            .replace("l2(c - d)", "integral(c * x[0])");
    let found = solution(folder.path(), &text);
    assert!((number(&found, "cells") - (7.0 * 0.5 + 5.0 * 1.5)).abs() < 1e-12);
    let said = refused(
        folder.path(),
        &text.replace("\"steel\"", "\"glue\"").replace("5 on", "5; aux c = 6 on"),
    );
    assert!(said.contains("`aux c` is NaN at (1.5, 0.5, 0)"), "{said}");
}

/// The output of a solution is data of its mesh, whose cells and nodes are not ordered along the axes there.
#[test]
fn solutions_are_data_in_their_own_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let function = "1 + x[0] + 2 * x[1]";
    for cell in ["quad", "tri"] {
        let mesh = format!("box(dim: 2, cells: [34, 7], cell: {cell})");
        let text = format!(
            "form f {{ field c: scalar in L2(0); aux v: scalar on nodes in H1(1); aux e: scalar on cells;
                 f0[c] = c - v + 0 * e; }}
             problem p solves f {{ mesh = {mesh}; aux v = {function}; aux e = {function}; }}"
        );
        let first = solution(folder.path(), &text);
        first.write_vtu(folder.path().join("u.vtu")).expect("a file");
        // A field of degree 0, data on cells, data at nodes.
        for name in ["c", "e"] {
            let cells = format!("file(\"u.vtu\", \"{name}\")");
            let found = solution(folder.path(), &compared(&mesh, 2, &cells, "file(\"u.vtu\")"));
            for of in ["cells", "nodes"] {
                assert!(number(&found, of) < 1e-9, "{cell} {name} {of}: {}", number(&found, of));
            }
        }
    }
}

/// A state written in one numbering of the nodes is read back bit for bit in another.
#[test]
fn states_are_read_back_to_the_bit_in_any_numbering() {
    let cases: [(&str, Element, usize, usize); 4] = [
        ("box(dim: 2, cells: 60, cell: tri)", Lagrange::continuous, 3, 1),
        ("box(dim: 2, cells: 50)", Lagrange::discontinuous, 1, 2),
        ("ball(dim: 2, refine: 5, order: 2)", Lagrange::continuous, 2, 2),
        ("shell(dim: 3, refine: 2, cell: hex)", Lagrange::discontinuous, 0, 1),
    ];
    for (text, element, degree, components) in cases {
        let mesh = weakform::mesh(text).expect("a mesh");
        let element = element(mesh.cell(), degree).expect("an element");
        let numbered = |unknowns: f64| {
            let partition = Partition::new(&mesh, unknowns);
            let space = Space::new(&mesh, &partition, element, components).expect("a space");
            (space, partition)
        };
        let ((space, _), (other, partition)) = (numbered(1.0), numbered(500.0));
        assert!(degree == 0 || space.nodes() != other.nodes(), "{text}: one numbering");
        // All bits of the numbers differ.
        let value = |i: usize| (i as f64 + 0.1).sin() * 10f64.powi(i as i32 % 40 - 20);
        let values: Vec<f64> = (0..space.n_dofs()).map(value).collect();
        let states = vec![StateField { name: "u & v", space: &space, values: &values }];
        let (point_fields, cell_fields) = (vec![], vec![]);
        let output = Output { mesh: &mesh, point_fields, cell_fields, states, time: Some(0.5) };
        let mut bytes = Vec::new();
        write_vtu_to(&mut bytes, &output).expect("written");
        let stored =
            FileArray { path: "u.vtu".into(), array: Some("u & v".to_owned()), from_text: false };
        let shape = if components == 1 { Shape::Scalar } else { Shape::Vector(components) };
        let found =
            ArrayRequest::new(&stored, "w", shape, &mesh).read_bytes(&bytes).expect("a file");
        let found = found.at_nodes(&other, &partition).expect("a state");
        assert_eq!(found.note, None);
        for (own, read) in space.nodes().iter().zip(other.nodes()) {
            for c in 0..components {
                let [own, read] = [own, read].map(|&node| node as usize * components + c);
                assert_eq!(values[own].to_bits(), found.values[read].to_bits(), "{text}");
            }
        }
    }
}

/// Another degree is interpolated with a remark; another mesh, or another number of components, is an error.
#[test]
fn states_of_other_spaces_are_interpolated_and_of_other_meshes_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |mesh: &str, degree: usize, more: &str| {
        format!(
            "form f {{ field u: scalar; aux a: scalar in H1(2); f0[u] = u^3 + u - a; f1[u] = grad(u) / 100; }}
             problem p solves f {{ mesh = {mesh}; degree = {degree}; {more} report off = l2(u - a); }}"
        )
        .replace("scalar in H1(2)", "scalar on nodes in H1(2)")
    };
    let mesh = "box(dim: 2, cells: 3)";
    let first = solution(folder.path(), &text(mesh, 2, "aux a = x[0];"));
    first.write_vtu(folder.path().join("u.vtu")).expect("a file");
    // Data from a field of the same element is that field.
    let same = solution(folder.path(), &text(mesh, 2, "aux a = file(\"u.vtu\", \"u\");"));
    let values = |solution: &Solution| -> Vec<u64> {
        solution.inner().context.on.aux[0].numbers().iter().map(|value| value.to_bits()).collect()
    };
    assert_eq!(values(&same), bits(&first));
    for (degree, loses) in [(3, false), (1, true)] {
        let start = "aux a = x[0]; initial u = file(\"u.vtu\");";
        let notes = solution(folder.path(), &text(mesh, degree, start)).notes().join("; ");
        let said = format!("`initial u` was of degree 2 and is interpolated to degree {degree}");
        assert!(
            notes.contains(&said) && notes.contains("leaves something out") == loses,
            "{notes}"
        );
    }
    for (other, said) in [
        (
            "box(dim: 2, cells: 4)",
            "9 cells and 16 vertices, of order 1 there, 16 cells and 25 vertices, of order 1 here",
        ),
        (
            "box(dim: 2, cells: 3, to: [1, 2])",
            "another mesh of as many cells (9) and vertices (16)",
        ),
    ] {
        let found =
            refused(folder.path(), &text(other, 2, "aux a = 1; initial u = file(\"u.vtu\");"));
        assert!(found.contains(said), "{found}");
    }
    let vectors = text(mesh, 2, "aux a = 1; initial u = file(\"u.vtu\");")
        .replace("u: scalar", "u: vector")
        .replace("u^3 + u - a", "u")
        .replace("l2(u - a)", "l2(u * a)");
    let found = refused(folder.path(), &vectors);
    assert!(found.contains("a value has 1 components there, but 2 here"), "{found}");
}

/// Cell and nodal data from files on multigrid levels, including a coarser mesh: at most a third of the iterations with
/// the diagonal, to the same solution.
#[test]
fn levels_take_the_means_of_data_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let n = 34;
    let number = |i: usize| 0.5 + (i * 7919 % 101) as f64 / 50.0;
    write(folder.path(), "cells.npy", npy(&(0..n * n).map(number).collect::<Vec<_>>(), 1));
    let nodes = (n + 1) * (n + 1);
    write(folder.path(), "nodes.npy", npy(&(0..nodes).map(number).collect::<Vec<_>>(), 1));
    let by = |what: &str| {
        let text = format!(
            "form f {{ field u: scalar; aux kappa: scalar on cells; aux c: scalar; f0[u] = c * u - 1; f1[u] = kappa * grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: {n}); degree = 2; aux kappa = file(\"cells.npy\"); aux c = file(\"nodes.npy\");
             dirichlet u = 0 on \"x0\"; solver = cg(preconditioner: {what}, rtol: 1e-9); }}"
        );
        solution(folder.path(), &text)
    };
    let (levels, jacobi) = (by("multigrid"), by("jacobi"));
    let sizes: Vec<usize> =
        levels.inner().multigrid[0].levels.iter().map(|level| level.unknowns).collect();
    assert_eq!(sizes, [69 * 69, 35 * 35, 18 * 18]);
    let (few, many) = (levels.iterations(), jacobi.iterations());
    assert!(3 * few <= many, "{few} of {many}");
    let apart =
        levels.values().iter().zip(jacobi.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-7, "{apart}");
}
