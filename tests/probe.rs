//! `wf probe` in comparison with manual integrals, on all four cells, affine and curved.
//!
//! On boxes of affine cells everything is a polynomial, and the reference integrates monomials over the unit box. On
//! curved cells a polynomial of degree m in x is in the space of degree k if k ≥ m · (order of the geometry). The
//! reference integrates over the boundary only, by the divergence theorem ([`boundary`]).

#[path = "probe/affine.rs"]
mod affine;
#[path = "probe/boundary.rs"]
mod boundary;
#[path = "probe/curved.rs"]
mod curved;
#[path = "probe/flags.rs"]
mod flags;
#[path = "probe/polynomial.rs"]
mod polynomial;
#[path = "probe/taylor.rs"]
mod taylor;

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// The cells, with their dimension.
const CELLS: [(usize, &str); 4] = [(2, "quad"), (2, "tri"), (3, "hex"), (3, "tet")];

/// A form in its own file, ready to be probed.
struct Probed {
    folder: TempDir,
}

impl Probed {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("form.wf"), text).expect("the form should be written");
        Self { folder }
    }

    /// Runs `wf probe --json` with these arguments.
    fn probe<A: AsRef<str>>(&self, arguments: &[A]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.args(["probe", "--json", "form.wf"]).current_dir(self.folder.path());
        command.args(arguments.iter().map(AsRef::as_ref)).env_remove("WF_DUMP_DIR");
        let output = command.output().expect("wf should start");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let shown: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        assert!(output.status.success(), "{shown:?}: {text}");
        serde_json::from_str(&text).expect("one line of JSON")
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} should be a number in {value}"))
}

/// Asserts agreement to 1e-12, relative to the larger of 1 and the reference.
fn assert_by_hand(found: f64, hand: f64, what: &str) {
    let bound = 1e-12 * hand.abs().max(1.0);
    assert!((found - hand).abs() <= bound, "{what}: {found:e}, by hand {hand:e}");
}
