//! Mutations of mesh files that often remain valid: numbers change, are exchanged or refer to other entities. In
//! addition, small initial files of every kind of cell.

use super::mutate::Random;

use runtime::mesh::{Cell, Mesh};

/// Returns a mesh of straight-edged cells as a file of format 2.2.
fn written(mesh: &Mesh) -> Vec<u8> {
    // Gmsh's type number of each kind, and its vertex order.
    let (kind, order): (_, &[usize]) = match mesh.cell() {
        Cell::Triangle => (2, &[0, 1, 2]),
        Cell::Quadrilateral => (3, &[0, 1, 3, 2]),
        Cell::Tetrahedron => (4, &[0, 1, 2, 3]),
        _ => (5, &[0, 1, 3, 2, 4, 5, 7, 6]),
    };
    let mirrored = mesh.mirrored();
    let mut text =
        format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n", mesh.points().len());
    for (i, [x, y, z]) in mesh.points().iter().enumerate() {
        text.push_str(&format!("{} {x} {y} {z}\n", i + 1));
    }
    text.push_str(&format!("$EndNodes\n$Elements\n{}\n", mesh.n_cells()));
    for cell in 0..mesh.n_cells() {
        let mut vertices: Vec<u32> = order.iter().map(|&v| mesh.vertices(cell)[v] + 1).collect();
        if mirrored[cell] && !mesh.cell().is_tensor() {
            vertices.swap(0, 1);
        }
        let vertices: Vec<String> = vertices.iter().map(ToString::to_string).collect();
        text.push_str(&format!("{} {kind} 2 7 1 {}\n", cell + 1, vertices.join(" ")));
    }
    text.push_str("$EndElements\n");
    text.into_bytes()
}

/// Returns small files of every kind of cell.
pub(crate) fn small() -> Vec<Vec<u8>> {
    let of = |text: &str| written(&weakform::mesh(text).expect("a mesh"));
    let boxes = [
        "box(dim: 2, cells: 2)",
        "box(dim: 2, cells: 2, cell: tri)",
        "box(dim: 3, cells: [2, 1, 1])",
        "box(dim: 3, cells: 1, cell: tet)",
    ];
    boxes.map(of).into()
}

/// Returns small files of data and states on a mesh of four squares.
pub(crate) fn data() -> Vec<Vec<u8>> {
    let text = "form f { field u: vector; aux a: scalar on cells; f0[u] = a * u - x; }
        problem p solves f { mesh = box(dim: 2, cells: 2); degree = 2; aux a = 2; }";
    let problem = weakform::Form::parse(text, "f").and_then(|form| form.problem("p"));
    let solved = problem.and_then(|p| p.execution(weakform::Execution::Interpreted).run());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("u.vtu");
    solved.and_then(|solution| solution.write_vtu(&path)).expect("a solution");
    let solution = std::fs::read(&path).expect("a file");
    let texts = ["ascii", "binary"].map(|format| {
        let (points, ends) = ("0 0 0 1 0 0 2 0 0 0 1 0 1 1 0 2 1 0 0 2 0 1 2 0 2 2 0", "4 8 12 16");
        let cells = "0 1 4 3 1 2 5 4 3 4 7 6 4 5 8 7";
        let a = if format == "ascii" { "1 2 3 4" } else { "IAAAAAAAAAAAAPA/AAAAAAAAAEAAAAAAAAAIQAAAAAAAABBA" };
        format!(
            "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"9\" NumberOfCells=\"4\">
             <Points><DataArray type=\"Float64\" NumberOfComponents=\"3\">{points}</DataArray></Points><Cells>
             <DataArray type=\"Int64\" Name=\"connectivity\">{cells}</DataArray>
             <DataArray type=\"Int64\" Name=\"offsets\">{ends}</DataArray>
             <DataArray type=\"Int64\" Name=\"types\">9 9 9 9</DataArray></Cells>
             <CellData><DataArray type=\"Float64\" Name=\"a\" format=\"{format}\">{a}</DataArray></CellData>
             </Piece></UnstructuredGrid></VTKFile>"
        )
        .into_bytes()
    });
    let npy = [(4, 1), (9, 1), (4, 2), (9, 2), (9, 0)].map(|(rows, columns)| {
        let header =
            format!("{{'descr': '<f4', 'fortran_order': True, 'shape': ({rows}, {columns}), }}\n");
        let length = (header.len() as u16).to_le_bytes();
        let numbers = vec![0x3F; 4 * rows * columns];
        [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &numbers].concat()
    });
    texts.into_iter().chain(npy).chain([solution]).collect()
}

/// Changes a few numbers of a text file, or of its bytes.
pub(crate) fn change(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        match std::str::from_utf8(bytes) {
            Ok(text) => *bytes = in_text(random, text).into_bytes(),
            Err(_) => in_bytes(random, bytes),
        }
    }
}

/// Changes a number of a text.
fn in_text(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
    // After the header.
    let start = lines.len().min(3);
    let line = start + random.below(lines.len() - start);
    let other = start + random.below(lines.len() - start);
    let (Some(own), Some(from)) = (lines.get(line).cloned(), lines.get(other).cloned()) else {
        return text.to_owned();
    };
    let at = random.below(own.len());
    let Some(word) = own.get(at) else { return text.to_owned() };
    // Numbers in Abaqus files are followed by commas.
    let (digits, comma) = word.strip_suffix(',').map_or((*word, ""), |digits| (digits, ","));
    let number: Option<f64> = digits.parse().ok();
    let new = match (random.below(8), number) {
        // The same column of another line, usually another node.
        (0..=2, _) => from.get(at).or(own.first()).copied().unwrap_or("0").to_owned(),
        (3, Some(x)) => format!("{}{comma}", -x),
        (4, Some(x)) => format!("{}{comma}", x + (random.below(2001) as f64 - 1000.0) / 1000.0),
        (5, Some(x)) => {
            format!("{}{comma}", x * (1.0 + (random.below(2001) as f64 - 1000.0) / 2000.0))
        }
        (6, Some(x)) => format!("{}{comma}", x + 1.0),
        _ => {
            // Two lines are exchanged, or one is duplicated.
            if random.below(2) == 0 {
                lines.swap(line, other);
            } else {
                lines[other] = own;
            }
            return joined(&lines);
        }
    };
    lines[line][at] = &new;
    joined(&lines)
}

fn joined(lines: &[Vec<&str>]) -> String {
    lines.iter().map(|line| line.join(" ") + "\n").collect()
}

/// Changes a number of a binary file: a double, or an index.
fn in_bytes(random: &mut Random, bytes: &mut [u8]) {
    let start = bytes.windows(6).position(|word| word == b"$Nodes").unwrap_or(0);
    let at = start + random.below(bytes.len() - start);
    if random.below(2) == 0 {
        let Some(piece) = bytes.get_mut(at..at + 8) else { return };
        let x = f64::from_le_bytes(piece.try_into().expect("eight bytes"));
        piece.copy_from_slice(&(x * (1.0 + random.below(1000) as f64 / 2000.0)).to_le_bytes());
    } else {
        let Some(piece) = bytes.get_mut(at..at + 4) else { return };
        let i = i32::from_le_bytes(piece.try_into().expect("four bytes"));
        let step = [-2, -1, 1, 2][random.below(4)];
        piece.copy_from_slice(&i.wrapping_add(step).to_le_bytes());
    }
}
