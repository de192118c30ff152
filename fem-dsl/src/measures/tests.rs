//! What the forms of errors and energies hold, whatever the form is.

use super::{energy, errors};
use crate::check::problem::Overrides;
use crate::point::verify_point;
use crate::problem::Problem;
use crate::program::compile;
use crate::source::Source;

fn problem(text: &str) -> Problem {
    let (program, found) = compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    program.problem("p", 2, &Overrides::default()).expect("a problem")
}

#[test]
fn forms_of_errors_and_energies_hold_what_forms_do() {
    for body in [
        "field u: vector; field p: scalar; f0[u] = u; f0[p] = p; f1[u] = grad(u);",
        "field u: vector; field p: scalar; energy = dot(u, u) / 2 + p^2 / 2;",
        "field u: vector; field p: scalar; param c = 2; aux a: scalar; f0[u] = a * c * u; f0[p] = p^3;",
    ] {
        let aux = if body.contains("aux") { "aux a = 1;" } else { "" };
        let problem = problem(&format!(
            "form f {{ {body} }} problem p solves f {{ mesh = box(dim: 2, cells: 1); {aux} \
             exact u = [x[0] * sin(x[1]), 1]; exact p = if x[0] > h {{ t }} else {{ 2 }}; }}"
        ));
        let made = errors(&problem.form, &problem.exact);
        verify_point(&made).expect("errors");
        assert_eq!(made.integrals[0].residual.len(), 4);
        assert_eq!(made.params.len(), problem.form.params.len() + 1);
        let made = energy(&problem.form).expect("an energy");
        verify_point(&made).expect("energy");
        assert_eq!(made.integrals[0].residual.len(), 1);
    }
}
