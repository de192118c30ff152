//! Unusable data and states from files: missing, damaged, of another mesh, with other components.

use super::gallery::{Stand, at};

const FORM: &str = "form p { field u: vector; aux kappa: scalar on cells; aux v: scalar; f0[u] = u * v; f1[u] = kappa * grad(u); }\n";

/// Returns a problem that takes its data from `data`, a file with this content.
fn stand(data: &str, content: impl AsRef<[u8]>) -> Stand {
    let stand = Stand::with(format!(
        "{FORM}problem q solves p {{ mesh = box(dim: 2, cells: 2); {data}; }}\n"
    ));
    stand.write("data", content);
    stand
}

const CELLS: &str = "aux v = 1; aux kappa = file(\"data\")";

fn npy(kind: &str, shape: &str, bytes: usize) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &vec![0; bytes]].concat()
}

#[test]
fn a_file_that_is_not_there() {
    let gone = Stand::with(format!(
        "{FORM}problem q solves p {{ mesh = box(dim: 2, cells: 2); aux v = 1; aux kappa = file(\"away.npy\"); }}\n"
    ));
    let place = gone.place("file(");
    let words = &["away.npy", "No such file", "from the folder of the `.wf` file"];
    gone.refuses_run(&[], at("E0419", place, words));
    std::fs::create_dir(gone.path("away.npy")).expect("a folder");
    gone.refuses_run(&[], at("E0419", place, &["away.npy", "it is no file"]));
    let given = ["--aux", "kappa=file(\"none.vtu\", \"k\")"];
    gone.refuses_run(&given, at("E0419", ("--aux", 1, 9), &["none.vtu", "No such file"]));
}

#[test]
fn files_that_hold_no_data_for_the_mesh() {
    let place = stand(CELLS, "").place("file(");
    let whole = npy("<f8", "(4,)", 32);
    let cases: [(Vec<u8>, &[&str]); 10] = [
        (Vec::new(), &["neither a `.vtu` of VTK nor a `.npy` of NumPy"]),
        (b"1 2 3 4".to_vec(), &["neither a `.vtu`", "numpy.save"]),
        (whole[..20].to_vec(), &["header is damaged: the file ends in it"]),
        (whole[..whole.len() - 1].to_vec(), &["announces 32 bytes of numbers, but 31 follow"]),
        (npy("<f8", "(5,)", 40), &["values for 5 cells, but the mesh has 4"]),
        (npy("<f8", "(4, 3)", 96), &["a value has 3 components there, but 1 here"]),
        (npy("<f8", "(2, 2, 1)", 32), &["its shape is (2, 2, 1)", "one or two dimensions"]),
        (npy("<c16", "(4,)", 64), &["of type '<c16'", "astype(float)"]),
        (
            b"<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid>".to_vec(),
            &["expected an XML file"],
        ),
        (
            b"<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid/></VTKFile>".to_vec(),
            &["the file has no element <Piece>"],
        ),
    ];
    for (content, words) in cases {
        stand(CELLS, content).refuses_run(&[], at("E0419", place, words));
    }
    let nodes = "aux kappa = 1; aux v = file(\"data\")";
    let text = stand(nodes, npy("<f8", "(4,)", 32));
    text.refuses_run(
        &[],
        at("E0419", text.place("file("), &["values for 4 nodes, but the mesh has 9"]),
    );
    let curved = Stand::with(format!(
        "{FORM}problem q solves p {{ mesh = ball(dim: 2, refine: 0, order: 2); {nodes}; }}\n"
    ));
    curved.write("data", npy("<f8", "(4,)", 32));
    let words = &[
        "a generated mesh of order 2 has no numbering of its nodes",
        "help: give this data on cells",
    ];
    curved.refuses_run(&[], at("E0419", curved.place("file("), words));
}

#[test]
fn values_that_are_no_numbers() {
    let place = stand(CELLS, "").place("file(");
    let mut content = npy("<f8", "(4,)", 32);
    let end = content.len();
    content[end - 8..].copy_from_slice(&f64::NAN.to_le_bytes());
    stand(CELLS, content)
        .refuses_run(&[], at("E0307", place, &["`aux kappa` is NaN at (0.75, 0.75, 0)"]));
    let start = "aux v = 1; aux kappa = 1; initial u = file(\"data\")";
    let mut content = npy("<f8", "(9, 2)", 144);
    let end = content.len();
    content[end - 8..].copy_from_slice(&f64::INFINITY.to_le_bytes());
    let text = stand(start, content);
    text.refuses_run(&[], at("E0307", text.place("file("), &["`initial u` is inf at (1, 1, 0)"]));
}

/// The available arrays, and a state on another mesh.
#[test]
fn solutions_that_are_of_something_else() {
    let maker = Stand::with(format!(
        "{FORM}problem q solves p {{ mesh = box(dim: 2, cells: 3); aux v = 1; aux kappa = 1; }}\n"
    ));
    let made = maker.output(&["run", "a.wf", "--interpret", "-o", "data.vtu"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let solution = std::fs::read(maker.path("data.vtu")).expect("a solution");
    let state = "aux v = 1; aux kappa = 1; initial u = file(\"data\")";
    let text = stand(state, &solution);
    let words: &[&str] = &[
        "9 cells and 16 vertices, of order 1 there, 4 cells and 9 vertices",
        "on the mesh of the file",
    ];
    text.refuses_run(&[], at("E0419", text.place("file("), words));
    let named = "aux v = 1; aux kappa = file(\"data\", \"wind\")";
    let text = stand(named, &solution);
    let words: &[&str] =
        &["no array \"wind\" on cells", "the field \"u\"", "\"v\" at points", "\"kappa\" on cells"];
    text.refuses_run(&[], at("E0419", text.place("file("), words));
    // Any truncation is detected.
    for part in [3, 30, 60, 90, 97] {
        let text = stand(state, &solution[..solution.len() * part / 100]);
        text.refuses_run(&[], at("E0419", text.place("file("), &[]));
    }
}
