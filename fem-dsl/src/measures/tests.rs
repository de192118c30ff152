//! Properties of the forms of errors and energies, for any form.

use super::{EstimatorForm, energy, errors, estimator_form};
use crate::check::problem::Overrides;
use crate::eval::eval;
use crate::point::{Input, Part, verify_point};
use crate::problem::Problem;
use crate::program::compile;
use crate::source::Source;

fn problem(text: &str) -> Problem {
    let (program, found) = compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    program.problem("p", 2, &Overrides::default()).expect("a problem")
}

#[test]
fn forms_of_errors_and_energies_are_valid() {
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

/// Returns the factor of each component of the additional field of an integral, for given u, ∂u/∂x and ∂u/∂y of the
/// fields' components.
fn tested(of: &EstimatorForm, integral: usize, state: &[[f64; 3]]) -> Vec<f64> {
    let integral = &of.form.integrals[integral];
    let values = eval(&integral.graph, |input| match input {
        Input::State(slot) => {
            let part = match slot.part {
                Part::Value => 0,
                Part::Derivative(axis) | Part::Exterior(axis) => 1 + axis,
                Part::Second(..) => unreachable!("a form of first derivatives"),
            };
            state[of.form.row(slot.field, slot.component)][part]
        }
        _ => 0.5,
    });
    let mut rows = vec![0.0; of.form.rows()];
    for (slot, node) in &integral.residual {
        rows[of.form.row(slot.field, slot.component)] += values[*node];
    }
    rows
}

fn estimated_form(body: &str) -> EstimatorForm {
    let problem = problem(&format!(
        "form f {{ {body} }} problem p solves f {{ mesh = box(dim: 2, cells: 1); }}"
    ));
    let made = estimator_form(&problem.form);
    verify_point(&made.form).expect("a form");
    made
}

#[test]
fn shares_of_the_energy_are_those_of_the_jacobian() {
    // J: 2 ∇u·∇v + (∂u/∂x) v + 3 u v over cells, 5 u v over the boundary.
    let made = estimated_form(
        "field u: scalar; f1[u] = 2 * grad(u); f0[u] = grad(u)[0] + 3 * u; on boundary \"x0\" { f0[u] = 5 * u; }",
    );
    let rows = tested(&made, 0, &[[2.0, 3.0, -1.0]]);
    let own = &made.fields[0];
    assert!(own.has_flux);
    assert_eq!(own.energy.map(|row| rows[row]), [20.0, 6.0, 12.0]);
    assert_eq!((rows[made.one], rows[own.coefficient]), (1.0, 2.0));
    assert_eq!(rows[own.tangent.clone()], [6.0, -2.0]);
    let rows = tested(&made, 1, &[[2.0, 3.0, -1.0]]);
    assert_eq!(own.energy.map(|row| rows[row]), [0.0, 0.0, 20.0]);
    assert_eq!((rows[made.one], rows[own.coefficient]), (0.0, 0.0));
}

#[test]
fn nonlinear_forms_have_the_energy_of_their_jacobian() {
    // G = (1 + u²) on gradients, 2 u ∂u of a gradient with the value.
    let made = estimated_form("field u: scalar; f1[u] = (1 + u^2) * grad(u);");
    let rows = tested(&made, 0, &[[2.0, 3.0, -1.0]]);
    assert_eq!(made.fields[0].energy.map(|row| rows[row]), [50.0, 80.0, 0.0]);
    assert_eq!(rows[made.fields[0].coefficient], 5.0);
}

#[test]
fn several_fields_have_their_own_blocks() {
    let made = estimated_form(
        "field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = 3; f1[u] = nu * grad(u) - p * I; f0[p] = -div(u);",
    );
    let rows = tested(&made, 0, &[[9.0, 1.0, 2.0], [9.0, 3.0, 4.0], [7.0, 5.0, 6.0]]);
    let [u, p] = &made.fields[..] else { panic!("two fields") };
    assert!(u.has_flux && !p.has_flux && p.tangent.is_empty());
    assert_eq!(rows[u.slope], 30.0);
    // All inputs except the state are one half.
    assert_eq!(u.energy.map(|row| rows[row]), [15.0, 0.0, 0.0]);
    assert_eq!(rows[u.tangent.clone()], [0.5, 1.0, 1.5, 2.0]);
    assert_eq!(rows[u.coefficient], 0.5);
    assert_eq!(p.energy.map(|row| rows[row]), [0.0; 3]);
}

#[test]
fn a_projection_has_the_tangent_of_values() {
    let made = estimated_form("field u: scalar; f0[u] = 4 * u - x[0];");
    let rows = tested(&made, 0, &[[2.0, 3.0, -1.0]]);
    let own = &made.fields[0];
    assert_eq!(
        (rows[own.tangent.start], rows[own.coefficient], rows[own.energy[2]]),
        (8.0, 4.0, 16.0)
    );
    assert_eq!(own.tangent.len(), 1);
}

#[test]
fn vector_fields_have_the_tangents_of_values_and_of_the_exterior_derivative() {
    let made = estimated_form(
        "field E: vector in Hcurl(k); f1[E] = 3 * curl(E); f0[E] = 2 * E; on boundary \"x0\" { f0[E] = 5 * E; }",
    );
    let rows = tested(&made, 0, &[[4.0, 2.0, 9.0], [1.0, 9.0, 9.0]]);
    let own = &made.fields[0];
    let mass = own.mass.as_ref().expect("values");
    assert_eq!(own.energy.map(|row| rows[row]), [12.0, 0.0, 34.0]);
    assert_eq!((rows[own.coefficient], &rows[own.tangent.clone()]), (3.0, &[6.0][..]));
    assert_eq!((rows[mass.coefficient], &rows[mass.tangent.clone()]), (2.0, &[8.0, 2.0][..]));
    // Tangents of the map are one half.
    assert_eq!(rows[made.metric.clone()], [0.5, 0.5, 0.5]);
    let rows = tested(&made, 1, &[[4.0, 2.0, 9.0], [1.0, 9.0, 9.0]]);
    assert_eq!(own.energy.map(|row| rows[row]), [0.0, 0.0, 85.0]);
    assert_eq!((rows[mass.coefficient], &rows[made.metric.clone()]), (0.0, &[0.0, 0.0, 0.0][..]));
    // Eddy currents: the size of −ω² + iωσ is 4 + 6.
    let made = estimated_form(
        "field E: complex vector in Hcurl(k); test v for E;
            residual = inner(curl(E), curl(v)) + (6 * i - 4) * inner(E, v);",
    );
    let rows = tested(&made, 0, &[[1.0, 2.0, 9.0], [2.0, 9.0, 9.0], [3.0, 4.0, 9.0], [0.0; 3]]);
    for (own, curl, square) in [(&made.fields[0], 4.0, 5.0), (&made.fields[1], 16.0, 9.0)] {
        assert_eq!(own.energy.map(|row| rows[row]), [curl, 0.0, 10.0 * square]);
        assert_eq!(rows[own.mass.as_ref().expect("values").coefficient], 10.0);
    }
    // A flux without an energy of its own, and values alone.
    let made = estimated_form(
        "field u: vector in Hdiv(k); field p: scalar in L2(k - 1); f0[u] = u; f1[u] = -p; f0[p] = div(u);",
    );
    let rows = tested(&made, 0, &[[4.0, 2.0, 9.0], [1.0, 9.0, 9.0], [7.0, 9.0, 9.0]]);
    let [u, p] = &made.fields[..] else { panic!("two fields") };
    assert!(u.has_flux && !p.has_flux && p.mass.is_none());
    assert_eq!((rows[u.coefficient], rows[u.slope]), (0.0, 4.0));
    assert_eq!(rows[u.mass.as_ref().expect("values").coefficient], 1.0);
    let made = estimated_form("field u: vector in Hdiv(k); f0[u] = 4 * u;");
    assert!(made.fields[0].mass.is_none() && made.fields[0].tangent.len() == 2);
}
