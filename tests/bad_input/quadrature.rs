//! Explicit quadrature: too few points for the form on this mesh, too many for anything, and cases with a remark only.

use serde_json::Value;
use weakform::{Error, Form, mesh};

use super::gallery::{FORM, Stand, at};

const PLATE: &str = "mesh = box(dim: 2, cells: 2); degree = 2; quadrature = 1; dirichlet u = 0;";

/// Heat in a plate with one point per cell was 0 everywhere, without a message.
#[test]
fn too_low_is_refused() {
    let stand = Stand::problem(PLATE);
    let low = |given: &str| format!("quadrature {given} is too low for `u` of degree 2");
    let one = [&*low("1"), "take 4 or more"];
    stand.refuses_run(&[], at("E0405", stand.place("1; dirichlet"), &one));
    stand.refuses_run(&["--quadrature", "0"], at("E0405", ("--quadrature", 1, 1), &[&low("0")]));
    let verify = ["verify", "a.wf", "--degree", "2", "--interpret"];
    let failed = stand.output(&verify);
    let text = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && text.contains(one[0]), "{text}");
    let right = ["run", "a.wf", "--interpret", "--no-output", "--quadrature", "4"];
    let output = stand.output(&right);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn too_high_is_refused() {
    let stand = Stand::problem(PLATE);
    let option = ("--quadrature", 1, 1);
    stand.refuses_run(&["--quadrature", "50"], at("E0405", option, &["take 49 or less"]));
    let emit = ["emit", "a.wf", "--cell", "tet", "--quadrature", "1000"];
    stand.refuses(&emit, at("E0405", option, &["can use, which is 16", "take 16 or less"]));
    let set_up = |quadrature: usize| {
        let form = Form::parse(FORM, "p").expect("a form");
        let on = form.on(mesh("box(dim: 2, cells: 1)").expect("a mesh"));
        on.degree(2).quadrature(quadrature).execution(weakform::Execution::Interpreted).build()
    };
    match set_up(usize::MAX) {
        Err(error @ Error::Run(_) | error @ Error::Plan(_)) => {
            assert!(error.to_string().contains("take 49 or less"), "{error}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("such a quadrature should be refused"),
    }
    let noted = set_up(11).expect("allowed");
    assert!(noted.notes().iter().any(|note| note.contains("no use")), "{:?}", noted.notes());
    assert!(set_up(9).expect("allowed").notes().is_empty());
}

#[test]
fn what_is_only_worth_a_note() {
    let stand = Stand::problem(PLATE);
    let run = |more: &[&str]| {
        let basic = ["run", "a.wf", "--interpret", "--no-output", "--json"];
        let output = stand.output(&[&basic[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (value["notes"].to_string(), said)
    };
    let triangles = ["--mesh", "box(dim: 2, cells: 2, cell: tri)"];
    let cases: [(&[&str], &str); 3] = [
        (&["--quadrature", "12"], "degree 2 has no use for more than 9"),
        (&["--quadrature", "3", "--degree", "3"], "costs order of convergence"),
        (&["--quadrature", "2"], ""),
    ];
    for (number, (arguments, words)) in cases.into_iter().enumerate() {
        let mesh = if number == 0 { &[][..] } else { &triangles[..] };
        let (notes, warned) = run(&[arguments, mesh].concat());
        if words.is_empty() {
            assert!(notes == "[]" && !warned.contains("quadrature"), "{notes}\n{warned}");
        } else {
            assert!(notes.contains(words) && warned.contains(words), "{notes}\n{warned}");
        }
    }
    let emit = stand.output(&["emit", "a.wf", "--cell", "quad", "--quadrature", "12"]);
    let warned = String::from_utf8_lossy(&emit.stderr);
    assert!(emit.status.success() && warned.contains("no use for more than 9"), "{warned}");
}

/// Four points per square of degree 2 and one of degree 1 miss some functions of a single cell; the conditions
/// determine them.
#[test]
fn reduced_integration_is_judged_on_the_mesh_with_its_conditions() {
    let run = |text: &str, quadrature: &str| {
        let stand = Stand::problem(text);
        let arguments = ["run", "a.wf", "--interpret", "--no-output", "--json", "--quadrature"];
        stand.output(&[&arguments[..], &[quadrature]].concat())
    };
    let plate = "mesh = box(dim: 2, cells: 4); degree = 2; dirichlet u = 0;";
    let coarse = "mesh = box(dim: 2, cells: 4); degree = 1; dirichlet u = 0 on \"x0\";";
    for (text, quadrature, least) in [(plate, "3", "4 sees all"), (coarse, "1", "2 sees all")] {
        let output = run(text, quadrature);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(least), "{said}");
    }
}
