//! `wf probe` against integrals by hand, on all four cells.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FORM: &str = "form helmholtz { field u: scalar; f0[u] = u; f1[u] = grad(u); }\n";

/// `wf probe --json` of u = x and w = x against v = xy on the unit box.
fn probe(file: &Path, mesh: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["probe", "--json", "--degree", "2", "--mesh", mesh])
        .args(["--at", "u=x[0]", "--direction", "u=x[0]", "--test", "u=x[0] * x[1]"])
        .arg(file)
        .output()
        .expect("wf should start");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{mesh}: {text}");
    serde_json::from_str(&text).expect("one line of JSON")
}

/// ∫ x·xy + ∇x·∇(xy) = ∫ x²y + y = 1/6 + 1/2 on the unit square and the unit cube.
#[test]
fn polynomials_are_integrated_as_by_hand() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("helmholtz.wf");
    std::fs::write(&file, FORM).expect("the form should be written");
    for (dim, cell) in [(2, "quad"), (2, "tri"), (3, "hex"), (3, "tet")] {
        let value = probe(&file, &format!("box(dim: {dim}, cells: 3, cell: {cell})"));
        for key in ["residual", "jacobian"] {
            let found = value[key].as_f64().expect("a number");
            assert!((found - 2.0 / 3.0).abs() < 1e-12, "{cell} {key}: {found}");
        }
    }
}
