//! Fields in Hcurl and Hdiv: the three notations against each other, slots, the chain rule, conditions, and what they do
//! not have.

mod mistakes;

use super::common::{check, close, diagnostics};
use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::measures::{errors, estimator_form};
use fem_dsl::non_finite::inputs;
use fem_dsl::point::{
    Input, Integral, Node, Part, PointForm, Shape, Side, Slot, Space, block, eval, shifted,
    stationary,
};
use fem_dsl::problem::{Problem, Support, Trace};
use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use std::collections::BTreeSet;

fn program(text: &str) -> Program {
    let (program, found) = compile(&Source::new("exterior.wf", text));
    program.unwrap_or_else(|| panic!("{text}\n{found:#?}"))
}

fn form(items: &str, dim: usize) -> PointForm {
    let text = format!("form f {{ {items} }}");
    program(&text).point_form("f", dim).unwrap_or_else(|found| panic!("{text}\n{found:#?}"))
}

fn problem(items: &str, statements: &str, dim: usize) -> Problem {
    let cell = if dim == 2 { "quad" } else { "hex" };
    let text = format!(
        "form f {{ {items} }} problem p solves f {{ mesh = box(cells: 2, cell: {cell}); {statements} }}"
    );
    let made = program(&text).problem("p", dim, &Overrides::default());
    made.unwrap_or_else(|found| panic!("{text}\n{found:#?}"))
}

/// Returns the value of an input, which its text determines.
fn number(input: Input) -> f64 {
    let text = format!("{input:?}");
    let hash =
        text.bytes().fold(7_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    0.3 + (hash % 1000) as f64 / 1000.0
}

/// Returns the components and parts of the test functions of a list.
fn tested<T>(rows: &[(Slot, T)]) -> Vec<(usize, usize, Part)> {
    rows.iter().map(|(slot, _)| (slot.field, slot.component, slot.part)).collect()
}

/// Checks that two forms have equal residuals, actions and Jacobians at numbers for all inputs.
fn assert_equal(one: &PointForm, other: &PointForm) {
    assert_eq!(one.integrals.len(), other.integrals.len());
    for (one, other) in one.integrals.iter().zip(&other.integrals) {
        assert_eq!((one.symmetric, one.linear), (other.symmetric, other.linear));
        let [a, b] = [one, other].map(|integral| eval(&integral.graph, number));
        for (x, y) in [(&one.residual, &other.residual), (&one.action, &other.action)] {
            assert_eq!(tested(x), tested(y));
            for ((slot, x), (_, y)) in x.iter().zip(y) {
                close(a[*x], b[*y], &format!("{slot:?}"));
            }
        }
        assert_eq!(one.jacobian.len(), other.jacobian.len());
        for (x, y) in one.jacobian.iter().zip(&other.jacobian) {
            assert_eq!((x.test, x.trial), (y.test, y.trial));
            close(a[x.value], b[y.value], &format!("{:?} {:?}", x.test, x.trial));
        }
    }
}

const VALUES_2: [Part; 1] = [Part::Exterior(0)];
const VALUES_3: [Part; 3] = [Part::Exterior(0), Part::Exterior(1), Part::Exterior(2)];

#[test]
fn three_notations_give_one_form() {
    for dim in [2, 3] {
        let curl = "field E: vector in Hcurl(k); param b = 2; aux nu: scalar on cells;";
        let rows = form(&format!("{curl} f0[E] = b * E; f1[E] = nu * curl(E);"), dim);
        let weak = form(
            &format!(
                "{curl} test F for E; residual = nu * inner(curl(E), curl(F)) + b * dot(E, F);"
            ),
            dim,
        );
        let energy = form(
            &format!("{curl} energy = nu * inner(curl(E), curl(E)) / 2 + b * dot(E, E) / 2;"),
            dim,
        );
        assert_equal(&rows, &weak);
        assert_equal(&rows, &energy);
        assert!(rows.integrals[0].symmetric && rows.integrals[0].linear);
        let div = "field u: vector in Hdiv(k); param b = 2;";
        let rows = form(&format!("{div} f0[u] = b * u; f1[u] = div(u)^3;"), dim);
        let weak = form(
            &format!("{div} test v for u; residual = div(u)^3 * div(v) + b * dot(u, v);"),
            dim,
        );
        let energy = form(&format!("{div} energy = div(u)^4 / 4 + b * dot(u, u) / 2;"), dim);
        assert_equal(&rows, &weak);
        assert_equal(&rows, &energy);
        assert!(rows.integrals[0].symmetric && !rows.integrals[0].linear);
    }
}

#[test]
fn slots_are_values_and_components_of_the_exterior_derivative() {
    for (space, dim, exterior) in [
        ("Hcurl", 2, &VALUES_2[..]),
        ("Hcurl", 3, &VALUES_3),
        ("Hdiv", 2, &VALUES_2),
        ("Hdiv", 3, &VALUES_2),
    ] {
        let derivative = if space == "Hcurl" { "curl" } else { "div" };
        let form = form(
            &format!("field a: vector in {space}(k); f0[a] = 2 * a; f1[a] = 3 * {derivative}(a);"),
            dim,
        );
        let [Integral { graph, residual, action, jacobian, .. }] = &form.integrals[..] else {
            panic!("one integral")
        };
        let values = (0..dim).map(|component| (0, component, Part::Value));
        let mut wanted: Vec<_> = values.chain(exterior.iter().map(|&part| (0, 0, part))).collect();
        wanted.sort_unstable();
        assert_eq!(tested(residual), wanted);
        assert_eq!(tested(action), wanted);
        let values = eval(graph, number);
        assert_eq!(jacobian.len(), wanted.len());
        for entry in jacobian {
            let expected = if entry.test.part == Part::Value { 2.0 } else { 3.0 };
            assert_eq!((entry.test, values[entry.value]), (entry.trial, expected));
        }
        let text = form.to_string();
        let name = match exterior.len() {
            1 => format!("{derivative}(a)"),
            _ => format!("{derivative}(a)[2]"),
        };
        assert!(text.contains(&name) && !text.contains("grad"), "{text}");
    }
    let spaces = form(
        "field a: vector in Hcurl(k + 1); field b: vector in Hdiv(2); f0[a] = a; f0[b] = b;",
        2,
    );
    let spaces: Vec<String> = spaces.fields.iter().map(|field| field.space.to_string()).collect();
    assert_eq!(spaces, ["Hcurl(k + 1)", "Hdiv(2)"]);
}

#[test]
fn derivatives_of_sums_and_multiples_follow_from_the_product_rule() {
    let of = |items: &str, dim: usize| form(&format!("{items} param b = 2; param c = 3;"), dim);
    let curl = "field E: vector in Hcurl(k); field s: scalar in H1(k); aux a: scalar on nodes in H1(k); f0[s] = s;";
    for (written, plain_2, plain_3) in [
        ("curl(b * E)", "b * curl(E)", "b * curl(E)"),
        ("curl(-E)", "-curl(E)", "-curl(E)"),
        (
            "curl(E + a * E)",
            "(1 + a) * curl(E) + grad(a)[0] * E[1] - grad(a)[1] * E[0]",
            "(1 + a) * curl(E) + cross(grad(a), E)",
        ),
        (
            "curl(s * E - E / b)",
            "(s - 1 / b) * curl(E) + grad(s)[0] * E[1] - grad(s)[1] * E[0]",
            "(s - 1 / b) * curl(E) + cross(grad(s), E)",
        ),
        (
            "curl(E / a)",
            "curl(E) / a - (grad(a)[0] * E[1] - grad(a)[1] * E[0]) / a^2",
            "curl(E) / a - cross(grad(a), E) / a^2",
        ),
        (
            "curl(if b < c { x[0] * E } else { E })",
            "if b < c { x[0] * curl(E) + E[1] } else { curl(E) }",
            "if b < c { x[0] * curl(E) + [0, -E[2], E[1]] } else { curl(E) }",
        ),
        (
            "curl(E + x[1]^2 * x)",
            "curl(E) - 2 * x[1] * x[0]",
            "curl(E) + 2 * x[1] * [x[2], 0, -x[0]]",
        ),
        ("dt(curl(b * E))", "b * curl(dt(E))", "b * curl(dt(E))"),
    ] {
        for (dim, plain) in [(2, plain_2), (3, plain_3)] {
            assert_equal(
                &of(&format!("{curl} f1[E] = {written};"), dim),
                &of(&format!("{curl} f1[E] = {plain};"), dim),
            );
        }
    }
    let div = "field u: vector in Hdiv(k); field s: scalar in H1(k); f0[s] = s;";
    for (written, plain) in [
        ("div(b * u - s * u)", "(b - s) * div(u) - dot(grad(s), u)"),
        ("div(u / (1 + x[0]))", "div(u) / (1 + x[0]) - u[0] / (1 + x[0])^2"),
        ("div(x + u)", "dim + div(u)"),
        ("div(dt(u) - u)", "dt(div(u)) - div(u)"),
    ] {
        for dim in [2, 3] {
            assert_equal(
                &of(&format!("{div} f1[u] = {written};"), dim),
                &of(&format!("{div} f1[u] = {plain};"), dim),
            );
        }
    }
    // Test functions, too.
    for dim in [2, 3] {
        assert_equal(
            &form(
                "field u: vector in Hdiv(k); test v for u; residual = div(u) * div((1 + x[0]) * v);",
                dim,
            ),
            &form(
                "field u: vector in Hdiv(k); f0[u] = div(u) * grad(x[0]); f1[u] = (1 + x[0]) * div(u);",
                dim,
            ),
        );
    }
}

#[test]
fn the_curl_of_a_number_in_the_plane_is_a_vector() {
    let made = form(
        "field s: scalar; field u: vector in Hdiv(k); f1[s] = grad(s); f0[u] = u - curl(s);",
        2,
    );
    assert_equal(
        &made,
        &form(
            "field s: scalar; field u: vector in Hdiv(k); f1[s] = grad(s);
             f0[u] = u - [grad(s)[1], -grad(s)[0]];",
            2,
        ),
    );
    let found = diagnostics("form f { field s: scalar; f0[s] = dot(curl(s), x); }", 3);
    assert_eq!(found[0].code, Code::WrongArgumentShape);
}

#[test]
fn the_tangential_part_is_orthogonal_to_the_normal() {
    for dim in [2, 3] {
        let made = |row: &str| {
            form(
                &format!(
                    "field E: vector in Hcurl(k); f1[E] = curl(E); on boundary \"a\" {{ f0[E] = {row}; }}"
                ),
                dim,
            )
        };
        assert_equal(&made("tangential(E)"), &made("E - dot(E, n) * n"));
    }
    let found = diagnostics("form f { field E: vector in Hcurl(k); f0[E] = tangential(E); }", 2);
    assert_eq!(found[0].code, Code::NotAvailableHere);
    // The name is free where a form declares it.
    let _ = form("field u: scalar; fn tangential(a) = 2 * a; f0[u] = tangential(u);", 2);
}

#[test]
fn rates_have_the_exterior_derivative_of_their_field() {
    let made = form(
        "field E: vector in Hcurl(k); f0[E] = dt(dt(E)) + dt(E); f1[E] = curl(E) + curl(dt(E));",
        3,
    );
    let read: BTreeSet<Part> = made.integrals[0]
        .graph
        .nodes()
        .iter()
        .filter_map(|node| match node {
            Node::Input(Input::Aux(slot)) => Some(slot.part),
            _ => None,
        })
        .collect();
    assert_eq!(read, VALUES_3.into_iter().chain([Part::Value]).collect());
    assert!(made.aux.iter().all(|aux| aux.location.space().is_some_and(Space::is_piola)));
}

#[test]
fn complex_fields_are_two_of_one_space() {
    for dim in [2, 3] {
        let made = form(
            "field E: complex vector in Hcurl(k); param w = 10; test v for E;
             residual = inner(curl(E), curl(v)) - w^2 * inner(E, v) + i * w * inner(curl(E), curl(v));
             on boundary \"open\" { aux g: complex vector on nodes;
                residual = -i * w * inner(tangential(E), v) - inner(g, v); }",
            dim,
        );
        assert!(made.fields.iter().all(|field| matches!(field.space, Space::Hcurl(_))));
        // Data at nodes are values in H1.
        assert!(made.aux.iter().all(|aux| matches!(aux.location.space(), Some(Space::H1(_)))));
        assert_equal(
            &made,
            &form(
                "field a: vector in Hcurl(k); field b: vector in Hcurl(k); param w = 10;
                 f0[a] = -w^2 * a; f1[a] = curl(a) - w * curl(b);
                 f0[b] = -w^2 * b; f1[b] = curl(b) + w * curl(a);
                 on boundary \"open\" { aux g: vector on nodes; aux q: vector on nodes;
                    f0[a] = w * tangential(b) - g; f0[b] = -w * tangential(a) - q; }",
                dim,
            ),
        );
    }
}

#[test]
fn conditions_set_the_tangential_part_or_the_normal_component() {
    let curl = "field E: vector in Hcurl(k); f1[E] = curl(E);";
    for (dim, shape) in [(2, Shape::Scalar), (3, Shape::Vector(3))] {
        let value = if dim == 2 { "x[0]" } else { "cross([0, 0, 1], x)" };
        let made = problem(
            curl,
            &format!(
                "exact E = x[0] * x; dirichlet cross(n, E) = {value} on \"x0\"; dirichlet E = 2 * x on \"x1\";
                 dirichlet E on \"y0\"; dirichlet cross(n, E) on \"y1\";"
            ),
            dim,
        );
        let found: Vec<(Trace, Shape)> =
            made.dirichlet.iter().map(|own| (own.trace, own.value.shape)).collect();
        let whole = (Trace::Whole, Shape::Vector(dim));
        assert_eq!(found, [(Trace::Tangential, shape), whole, whole, whole]);
        assert_eq!(made.dirichlet[0].support, Support::Tags(vec!["x0".to_owned()]));
        let made = problem(
            "field u: vector in Hdiv(k); f1[u] = div(u);",
            "initial u = x; dirichlet dot(u, n) = 1 on \"x0\"; dirichlet u = x on \"x1\";",
            dim,
        );
        let found: Vec<(Trace, Shape)> =
            made.dirichlet.iter().map(|own| (own.trace, own.value.shape)).collect();
        assert_eq!(found, [(Trace::Normal, Shape::Scalar), (Trace::Whole, Shape::Vector(dim))]);
        let made = problem(
            "field E: complex vector in Hcurl(k); f0[E] = i * E; f1[E] = curl(E);",
            &format!("dirichlet cross(n, E) = i * ({value});"),
            dim,
        );
        let found: Vec<(usize, Trace)> =
            made.dirichlet.iter().map(|own| (own.field, own.trace)).collect();
        assert_eq!(found, [(0, Trace::Tangential), (1, Trace::Tangential)]);
    }
}

const X: [f64; 3] = [0.3, 0.7, 0.2];
const N: [f64; 3] = [0.6, -0.8, 0.5];

/// Evaluates the sources of a manufactured problem, and the residual of the boundary at its solution, at X and N.
fn manufactured(made: &Problem) -> (Vec<f64>, Vec<f64>) {
    let of = |input: Input| match input {
        Input::Coordinate(axis) => X[axis],
        Input::Normal(axis) => N[axis],
        other => panic!("{other:?} is not known"),
    };
    let source = made.aux[0].value.formula().expect("a formula");
    let values = eval(&source.graph, of);
    let source = source.value.iter().map(|&node| values[node]).collect();
    let boundary = made.form.integrals.iter().filter(|own| !own.region.is_of_cells());
    let boundary = boundary.flat_map(|own| {
        let values = eval(&own.graph, of);
        own.residual.iter().map(|(_, node)| values[*node]).collect::<Vec<f64>>()
    });
    (source, boundary.collect())
}

fn all_close(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{found:?} {wanted:?}");
    found.iter().zip(wanted).for_each(|(a, b)| close(*a, *b, "a component"));
}

#[test]
fn sources_are_the_strong_form() {
    let [x, y, z] = X;
    // curl [y², x³] = 3x² − 2y; [∂₁, −∂₀] of (1 + x) times that.
    let rows = "field E: vector in Hcurl(k); f0[E] = 2 * E; f1[E] = (1 + x[0]) * curl(E);";
    let made = problem(rows, "manufactured E = [x[1]^2, x[0]^3]; dirichlet E on \"x0\";", 2);
    let flux = (1.0 + x) * (3.0 * x * x - 2.0 * y);
    let (source, boundary) = manufactured(&made);
    let slope = 3.0 * x * x - 2.0 * y + (1.0 + x) * 6.0 * x;
    all_close(&source, &[2.0 * y * y - 2.0 * (1.0 + x), 2.0 * x.powi(3) - slope]);
    // φ·f0 = −f (n₀ φ₁ − n₁ φ₀)
    all_close(&boundary, &[flux * N[1], -flux * N[0]]);
    // curl [yz, 0, x²] = [0, y − 2x, −z]; its curl: [−0, 0, −2] − …
    let made = problem(
        "field E: vector in Hcurl(k); f1[E] = curl(E);",
        "manufactured E = [x[1] * x[2], 0, x[0]^2]; dirichlet E on \"x0\";",
        3,
    );
    let curl = [0.0, y - 2.0 * x, -z];
    let (source, boundary) = manufactured(&made);
    all_close(&source, &[0.0, 0.0, -2.0]);
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    all_close(&boundary, &cross(N, curl));
    // −∇ of div [x² y, y²] = 2xy + 2y.
    let made = problem(
        "field u: vector in Hdiv(k); f0[u] = u; f1[u] = div(u);",
        "manufactured u = [x[0]^2 * x[1], x[1]^2];",
        2,
    );
    let (source, boundary) = manufactured(&made);
    all_close(&source, &[x * x * y - 2.0 * y, y * y - 2.0 * x - 2.0]);
    let flux = 2.0 * x * y + 2.0 * y;
    all_close(&boundary, &[-flux * N[0], -flux * N[1]]);
    // A condition on all of the boundary leaves no flux.
    let made = problem(rows, "manufactured E = [x[1]^2, x[0]^3]; dirichlet E;", 2);
    assert_eq!(made.form.integrals.len(), 1);
    assert!(made.form.integrals[0].symmetric && made.form.integrals[0].linear);
}

#[test]
fn errors_measure_the_value_and_the_exterior_derivative() {
    let [x, y, _] = X;
    for (items, of_exact) in [
        ("field a: vector in Hcurl(k); f1[a] = curl(a);", 3.0 * x * x - 2.0 * y),
        ("field a: vector in Hdiv(k); f1[a] = div(a);", 0.0),
    ] {
        let made = problem(items, "exact a = [x[1]^2, x[0]^3];", 2);
        let measured = errors(&made.form, &made.exact);
        let values = eval(&measured.integrals[0].graph, |input| match input {
            Input::Coordinate(axis) => X[axis],
            Input::State(slot) => match slot.part {
                Part::Value => 0.5 + slot.component as f64,
                Part::Exterior(0) => 2.0,
                part => panic!("{part:?}"),
            },
            _ => 1.0,
        });
        let found: Vec<f64> =
            measured.integrals[0].residual.iter().map(|(_, node)| values[*node]).collect();
        let value = (0.5 - y * y).powi(2) + (1.5 - x.powi(3)).powi(2);
        all_close(&found, &[value, (2.0 - of_exact).powi(2)]);
    }
}

#[test]
fn forms_are_printed_with_their_derivative() {
    let made = check("form f { field E: vector in Hcurl(k); f1[E] = curl(E) + curl(dt(E)); }", 3);
    let text = made[0].to_string();
    for part in ["field E: [3] in Hcurl(k)", " = curl(E)\n", " = curl(dt(E))\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn forms_made_of_others_keep_the_exterior_derivative() {
    let parts = |form: &PointForm| -> Vec<(Part, Part)> {
        let entries = form.integrals.iter().flat_map(|integral| &integral.jacobian);
        let all: BTreeSet<_> = entries.map(|entry| (entry.test.part, entry.trial.part)).collect();
        all.into_iter().collect()
    };
    let (value, exterior) = (Part::Value, Part::Exterior(0));
    // The default mass is the L2 product.
    let made = problem(
        "field E: vector in Hcurl(k); f1[E] = curl(E);",
        "dirichlet E = [0, 0]; eigen = smallest(2);",
        2,
    );
    let mass = made.eigen.expect("eigenvalues").mass;
    assert_eq!(
        (parts(&made.form), parts(&mass)),
        (vec![(exterior, exterior)], vec![(value, value)])
    );
    let sum = shifted(&made.form, &mass, 2.0);
    assert_eq!(parts(&sum), [(value, value), (exterior, exterior)]);
    assert!(sum.integrals.iter().all(|integral| integral.symmetric && integral.linear));
    // The block of a velocity, and the form without its rates.
    let made = form(
        "field u: vector in Hdiv(k); field p: scalar in L2(k - 1); param b = 2;
         f0[u] = b * u + dt(u); f1[u] = div(u) - p; f0[p] = -div(u);",
        3,
    );
    let own = block(&made, 0).expect("a block");
    assert_eq!(parts(&own), [(value, value), (exterior, exterior)]);
    assert_eq!(block(&made, 1), None);
    assert_eq!(
        parts(&stationary(&made)),
        [(value, value), (value, exterior), (exterior, value), (exterior, exterior)]
    );
    assert!(made.integrals[0].symmetric && made.integrals[0].linear);
}

#[test]
fn estimates_have_the_flux_of_the_exterior_derivative() {
    for (dim, components) in [(2, 1), (3, 3)] {
        let made = form("field E: vector in Hcurl(k); f0[E] = E; f1[E] = 3 * curl(E);", dim);
        let estimate = estimator_form(&made);
        let [own] = &estimate.fields[..] else { panic!("one field") };
        assert!(own.has_flux && own.tangent.len() == components);
        let integral = &estimate.form.integrals[0];
        let values = eval(&integral.graph, number);
        for (i, row) in own.tangent.clone().enumerate() {
            let tested = integral
                .residual
                .iter()
                .find(|(slot, _)| slot.field == 1 && estimate.form.row(1, slot.component) == row);
            let (_, node) = tested.expect("a flux");
            let slot = Slot { field: 0, side: Side::Inside, component: 0, part: Part::Exterior(i) };
            close(values[*node], 3.0 * number(Input::State(slot)), "a flux");
        }
    }
}

#[test]
fn inputs_of_a_point_are_those_that_a_form_may_read() {
    let made = form(
        "field E: vector in Hcurl(k); field u: vector in Hdiv(k); f0[E] = dt(E); f0[u] = u;",
        3,
    );
    let all = inputs(&made, &made.integrals[0].region);
    let of = |field: usize| -> Vec<(usize, Part)> {
        let slots = all.iter().filter_map(|input| match input {
            Input::State(slot) if slot.field == field => Some((slot.component, slot.part)),
            _ => None,
        });
        slots.collect()
    };
    assert_eq!(of(0).iter().filter(|(_, part)| *part == Part::Value).count(), 3);
    assert_eq!(of(0).len(), 6);
    assert_eq!(of(1).len(), 4);
    let read = made.integrals[0].graph.nodes().iter().filter_map(|node| match node {
        Node::Input(input) if !matches!(input, Input::Direction(_)) => Some(*input),
        _ => None,
    });
    for input in read {
        assert!(all.contains(&input), "{input:?}");
    }
}
