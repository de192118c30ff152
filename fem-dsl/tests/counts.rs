//! Operation counts and structure of the pointwise arithmetic of known forms.

use fem_dsl::arena::Id;
use fem_dsl::differentiate::differentiate;
use fem_dsl::point::{
    Integral, NodeId, OperationCount, PointForm, Slot, operation_count, point, reachable,
};
use fem_dsl::simplify::simplify;

fn pipeline(name: &str, dim: usize) -> PointForm {
    let forms = super::common::corpus();
    let form = forms
        .into_iter()
        .find(|form| form.name == name && form.dim == dim)
        .unwrap_or_else(|| panic!("{name} in {dim}D"));
    point(&simplify(&differentiate(&form)))
}

fn roots(list: &[(Slot, NodeId)]) -> Vec<NodeId> {
    list.iter().map(|(_, node)| *node).collect()
}

fn action(integral: &Integral) -> OperationCount {
    operation_count(&integral.graph, &roots(&integral.action))
}

/// Returns the operations of the action if everything that does not depend on δu is stored.
fn kept(integral: &Integral) -> usize {
    let depends = integral.depends_on_direction();
    let order = reachable(&integral.graph, &roots(&integral.action));
    let own = order.into_iter().filter(|&id| depends[id]);
    own.filter(|&id| integral.graph.nodes()[id].operands().next().is_some()).count()
}

#[test]
fn operation_counts() {
    let mut table = String::new();
    for (name, dim) in [
        ("mass", 3),
        ("laplace", 3),
        ("poisson", 3),
        ("elasticity", 2),
        ("elasticity", 3),
        ("elasticity_energy", 3),
        ("minimal_surface", 2),
        ("minimal_surface", 3),
        ("p_laplace", 3),
        ("neo_hookean_pointwise", 3),
        ("neo_hookean", 3),
        ("mooney", 3),
        ("navier_stokes", 3),
        ("reaction", 2),
    ] {
        let form = pipeline(name, dim);
        let integral = &form.integrals[0];
        let residual = operation_count(&integral.graph, &roots(&integral.residual));
        let values: Vec<NodeId> = integral.jacobian.iter().map(|entry| entry.value).collect();
        let jacobian = operation_count(&integral.graph, &values);
        table +=
            &format!("{name} {dim}D\n  residual  {residual}\n  action    {}\n", action(integral));
        table += &format!("  kept      {} operations on δu\n", kept(integral));
        table += &format!(
            "  jacobian  {jacobian}; {} entries, symmetric {}, linear {}\n",
            integral.jacobian.len(),
            integral.symmetric,
            integral.linear
        );
    }
    insta::assert_snapshot!(table);
}

#[test]
fn energies_have_symmetric_jacobians() {
    for name in ["elasticity_energy", "neo_hookean", "mooney", "rotation"] {
        for dim in [2, 3] {
            assert!(pipeline(name, dim).integrals[0].symmetric, "{name} in {dim}D");
        }
    }
    for name in ["elasticity", "minimal_surface", "p_laplace", "stokes", "neo_hookean_pointwise"] {
        assert!(pipeline(name, 3).integrals[0].symmetric, "{name}");
    }
    assert!(!pipeline("navier_stokes", 3).integrals[0].symmetric);
}

/// A material that differs from region to region keeps the symmetry of its flux, and no flux gains one.
#[test]
fn symmetry_does_not_depend_on_where_a_condition_stands() {
    let symmetric = |flux: &str| {
        let text = format!(
            "form f {{ field u: scalar; aux steel: scalar on cells; let s = dot(grad(u), grad(u)); f1[u] = {flux}; }}"
        );
        let source = fem_dsl::source::Source::new("f", text);
        let (program, found) = fem_dsl::program::compile(&source);
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", 2).expect("a form").integrals[0].symmetric
    };
    for law in ["exp(s)", "table([0, 1, 2, 4], [1, 2, 4, 5], s, outside: extend)"] {
        assert!(symmetric(&format!("(if steel > 0 {{ {law} }} else {{ 2 }}) * grad(u)")), "{law}");
        assert!(
            symmetric(&format!("if steel > 0 {{ {law} * grad(u) }} else {{ grad(u) }}")),
            "{law}"
        );
        let turned = "[grad(u)[1], grad(u)[0]]";
        assert!(
            !symmetric(&format!("if steel > 0 {{ {law} * grad(u) }} else {{ s * {turned} }}")),
            "{law}"
        );
    }
}

#[test]
fn linear_forms_are_known() {
    for name in ["poisson", "elasticity", "stokes", "mass", "elasticity_energy"] {
        assert!(pipeline(name, 2).integrals.iter().all(|integral| integral.linear), "{name}");
    }
    for name in ["minimal_surface", "neo_hookean", "navier_stokes", "reaction"] {
        assert!(!pipeline(name, 2).integrals[0].linear, "{name}");
    }
}

#[test]
fn zeros_are_structural() {
    // λ tr(ε) I + 2 μ ε couples ∂u_i/∂x_j with itself, with ∂u_j/∂x_i, and diagonals with all.
    assert_eq!(pipeline("elasticity", 3).integrals[0].jacobian.len(), 9 + 6 + 6);
    assert_eq!(pipeline("laplace", 3).integrals[0].jacobian.len(), 3);
    assert_eq!(pipeline("stokes", 2).integrals[0].jacobian.len(), 4 + 2 + 2);
}

#[test]
fn names_of_the_user_reach_the_graph() {
    let form = pipeline("poisson", 3);
    let names: Vec<&str> = form.integrals[0].names.values().map(String::as_str).collect();
    assert_eq!(names, ["kappa"]);
    let form = pipeline("neo_hookean", 2);
    let names: Vec<&str> = form.integrals[0].names.values().map(String::as_str).collect();
    assert!(names.contains(&"J") && names.contains(&"F_0_0"), "{names:?}");
}

#[test]
fn everything_in_a_graph_is_used() {
    for form in super::common::corpus() {
        for integral in &point(&simplify(&differentiate(&form))).integrals {
            let mut all = roots(&integral.residual);
            all.extend(roots(&integral.action));
            all.extend(integral.jacobian.iter().map(|entry| entry.value));
            all.extend(integral.energy);
            let used = reachable(&integral.graph, &all);
            assert_eq!(used.len(), integral.graph.nodes().len(), "{}", form.name);
            assert!(used.iter().enumerate().all(|(i, id)| id.index() == i));
        }
    }
}

#[test]
fn stages_have_a_text() {
    let forms = super::common::corpus();
    let mut text = String::new();
    for (name, dim) in [("poisson", 2), ("elasticity", 2)] {
        let form = forms.iter().find(|form| form.name == name && form.dim == dim);
        let form = simplify(&differentiate(form.expect("the corpus has it")));
        text += &format!("{form}\n{}\n", point(&form));
    }
    insta::assert_snapshot!(text);
}

/// Returns the sizes of a form after each stage: expressions, nodes of the scalar graph, operations of the Jacobian.
fn sizes(text: &str) -> [usize; 3] {
    let source = fem_dsl::source::Source::new("f", format!("form f {{ field u: scalar; {text} }}"));
    let (program, found) = fem_dsl::program::compile(&source);
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    let form = program.form("f").and_then(|form| form.dimensions.form(2)).expect("the form");
    let form = simplify(&differentiate(form));
    let point = point(&form);
    let integral = &point.integrals[0];
    let values: Vec<NodeId> = integral.jacobian.iter().map(|entry| entry.value).collect();
    let jacobian = operation_count(&integral.graph, &values).total();
    [form.exprs.nodes().len(), integral.graph.nodes().len(), jacobian]
}

/// Twice the terms take twice the work at each stage: an energy of a thousand terms took three quarters of a minute.
#[test]
fn operations_grow_with_the_terms_of_a_form() {
    let energy = |count: usize| {
        let term =
            |i: usize| format!("{i} * (u^2 + {i} * u) * exp(-{i}e-3 * u) * dot(grad(u), grad(u))");
        let terms: Vec<String> = (1..=count).map(term).collect();
        format!("energy = {};", terms.join(" + "))
    };
    let tower = |count: usize| format!("f0[u] = {};", vec!["u"; count].join("^"));
    let cases: [(&str, [String; 2]); 2] =
        [("energy", [energy(32), energy(64)]), ("tower", [tower(125), tower(250)])];
    for (name, [half, whole]) in cases {
        let (half, whole) = (sizes(&half), sizes(&whole));
        for (half, whole) in half.into_iter().zip(whole) {
            assert!(whole * 10 < half * 22, "{name}: {half} grows to {whole}");
        }
    }
}
