//! Manufactured solutions: sources against manual derivatives, and the resulting forms.

use fem_dsl::check::problem::Overrides;
use fem_dsl::eval::eval;
use fem_dsl::point::{Input, Location, Part, Region, Shape, WHOLE_BOUNDARY};
use fem_dsl::problem::{Data, Problem, ValueSource};
use fem_dsl::program::compile;
use fem_dsl::source::Source;

fn problem(text: &str, dim: usize) -> Problem {
    let source = Source::new("forms", text);
    let (program, diagnostics) = compile(&source);
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let name = program.problems().next().expect("a problem").name;
    program.problem(name, dim, &Overrides::default()).unwrap_or_else(|found| panic!("{found:?}"))
}

const X: [f64; 3] = [0.3, 0.7, 0.2];
const N: [f64; 3] = [0.6, -0.8, 0.0];

fn at(source: &ValueSource) -> Vec<f64> {
    let expression = source.formula().expect("sources are formulas");
    let values = eval(&expression.graph, |input| match input {
        Input::Coordinate(axis) => X[axis],
        Input::Normal(axis) => N[axis],
        Input::Time => 0.25,
        Input::Degree => 2.0,
        Input::Param(..) => 3.0,
        other => panic!("{other:?} is not known without a mesh"),
    });
    expression.value.iter().map(|&node| values[node]).collect()
}

fn close(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{found:?} and {wanted:?}");
    }
}

#[test]
fn sources_equal_those_by_hand() {
    let [x, y, _] = X;
    // −∇·((1 + u²)∇u) + c u for u = sin x · e^y, with u_x = cos x e^y, u_y = u, Δu = 0.
    let made = problem(
        "form a { field u: scalar; param c = 3; f0[u] = c * u; f1[u] = (1 + u^2) * grad(u); }
         problem p solves a {
             mesh = ball(dim: 2); manufactured u = sin(x[0]) * exp(x[1]); dirichlet u;
         }",
        2,
    );
    let (u, ux, uy) = (x.sin() * y.exp(), x.cos() * y.exp(), x.sin() * y.exp());
    let [Data { aux: index, value: source, .. }] = &made.aux[..] else { panic!("one source") };
    close(&at(source), &[3.0 * u - 2.0 * u * (ux * ux + uy * uy)]);
    assert_eq!(made.form.integrals.len(), 1);
    assert_eq!(made.form.aux[*index].location, Location::Points);
    assert_eq!(made.exact.len(), 1);
    assert!(!made.form.integrals[0].linear);

    // −∇·(2 sym ∇u + (∇·u) I) for u = (x y², x² y): sym ∇u = [[y², 2xy], [2xy, x²]].
    let made = problem(
        "form a { field u: vector; f1[u] = 2 * sym(grad(u)) + div(u) * I; }
         problem p solves a {
             mesh = ball(dim: 2); manufactured u = [x[0] * x[1]^2, x[0]^2 * x[1]]; dirichlet u;
         }",
        2,
    );
    // ∂x(2y² + y² + x²) + ∂y(4xy) = 2x + 4x; likewise 4y + 2y.
    close(&at(&made.aux[0].value), &[-6.0 * x, -6.0 * y]);
    assert_eq!(made.form.aux[0].shape, Shape::Vector(2));
    assert!(made.form.integrals[0].symmetric && made.form.integrals[0].linear);
}

/// Returns a form's residual at a point of the boundary for the state `u`.
fn residual(made: &Problem, integral: usize, u: &[f64]) -> Vec<f64> {
    let integral = &made.form.integrals[integral];
    let values = eval(&integral.graph, |input| match input {
        Input::Coordinate(axis) => X[axis],
        Input::Normal(axis) => N[axis],
        Input::Param(..) => 3.0,
        Input::State(slot) if slot.part == Part::Value => u[slot.component],
        Input::Direction(_) => 0.0,
        other => panic!("{other:?} is not known"),
    });
    integral.residual.iter().map(|&(_, node)| values[node]).collect()
}

#[test]
fn the_flux_is_subtracted_where_a_field_is_not_constrained() {
    let [x, y, _] = X;
    let text = |condition: &str| {
        format!(
            "form a {{
                 field u: scalar; param c = 3; f1[u] = (1 + u^2) * grad(u);
                 on boundary \"surface\" {{ f0[u] = c * u^4; }}
             }}
             problem p solves a {{
                 mesh = ball(dim: 2); manufactured u = sin(x[0]) * exp(x[1]); {condition}
             }}"
        )
    };
    let (u, ux, uy) = (x.sin() * y.exp(), x.cos() * y.exp(), x.sin() * y.exp());
    for condition in ["", "dirichlet u on \"surface\";"] {
        let made = problem(&text(condition), 2);
        let [_, tagged, whole] = &made.form.integrals[..] else { panic!("three integrals") };
        assert_eq!(whole.region, Region::Facets(vec![WHOLE_BOUNDARY.to_owned()]));
        assert!(whole.jacobian.is_empty() && !tagged.jacobian.is_empty());
        close(&residual(&made, 2, &[]), &[-(1.0 + u * u) * (ux * N[0] + uy * N[1])]);
        // The terms of a tag vanish at the solution and keep their derivative.
        close(&residual(&made, 1, &[u]), &[0.0]);
        close(&residual(&made, 1, &[u + 1.0]), &[3.0 * ((u + 1.0).powi(4) - u.powi(4))]);
    }
    assert_eq!(problem(&text("dirichlet u;"), 2).form.integrals.len(), 2);
}

#[test]
fn data_is_part_of_the_source() {
    let [x, y, _] = X;
    // −∇·(q r ∇u), q = x y at nodes and r = 2 on cells, u = x²: −2 (y · 2x + x y · 2).
    let made = problem(
        "form a {
             field u: scalar; aux q: scalar; aux r: scalar on cells; let source_u = q * r;
             f1[u] = source_u * grad(u);
         }
         problem p solves a {
             mesh = ball(dim: 2); aux q = x[0] * x[1]; aux r = 2; manufactured u = x[0]^2; dirichlet u;
         }",
        2,
    );
    let Data { aux: index, value: source, .. } = made.aux.last().expect("a source");
    close(&at(source), &[-2.0 * (y * 2.0 * x + x * y * 2.0)]);
    assert_eq!(*index, 2);
    let names: Vec<&str> = made.form.aux.iter().map(|aux| aux.name.as_str()).collect();
    assert_eq!(names[..2], ["q", "r"]);
    assert!(names[2] != "source_u" && names[2].starts_with("source_u"), "{names:?}");
}

#[test]
fn three_notations_have_one_source() {
    let ways = [
        "f0[u] = u^3; f1[u] = grad(u);",
        "test v for u; residual = dot(grad(u), grad(v)) + u^3 * v;",
        "energy = dot(grad(u), grad(u)) / 2 + u^4 / 4;",
    ];
    let sources = ways.map(|way| {
        let text = format!(
            "form a {{ field u: scalar; {way} }}
             problem p solves a {{
                 mesh = ball(dim: 3); manufactured u = sin(x[0] + 2 * x[1] * t) + x[2]; dirichlet u;
             }}"
        );
        let made = problem(&text, 3);
        (at(&made.aux[0].value), made.form.integrals[0].residual.len())
    });
    let inner: f64 = X[0] + 0.5 * X[1];
    let u = inner.sin() + X[2];
    for (source, slots) in &sources {
        close(source, &[u.powi(3) + 1.25 * inner.sin()]);
        assert_eq!(*slots, 4);
    }
}

#[test]
fn exact_solutions_need_no_source() {
    let made = problem(
        "form a { field u: scalar; f1[u] = grad(u); }
         problem p solves a { mesh = ball(dim: 2); manufactured u = x[0] - 2 * x[1]; dirichlet u; }",
        2,
    );
    assert!(made.form.aux.is_empty() && made.aux.is_empty());
}

/// Between cells the rows of a consistent method vanish at a solution that does not jump; loads are subtracted.
#[test]
fn consistent_terms_between_cells_are_left_as_they_are() {
    let text = |terms: &str| {
        format!(
            "form a {{
                field u: scalar in L2(k);
                f0[u] = u; f1[u] = (1 + u^2) * grad(u);
                on interior {{ f0[jump(u)] = avg(penalty(u)) * jump(u) - dot(avg((1 + u^2) * grad(u)), n); {terms} }}
                on interior \"sheet\" {{ f0[avg(u)] = u_sheet * avg(u); param u_sheet = 3; }}
            }}
            problem p solves a {{ mesh = \"sheet.msh\"; manufactured u = x[0]^2; }}"
        )
    };
    let made = problem(&text(""), 2);
    let [_, joined, sheet, whole] = &made.form.integrals[..] else { panic!("{}", made.form) };
    assert!(
        joined.region.is_interior()
            && whole.region == Region::Facets(vec![WHOLE_BOUNDARY.to_owned()])
    );
    let at = |integral: &fem_dsl::point::Integral, u: f64| {
        let values = eval(&integral.graph, |input| match input {
            Input::State(slot) => match slot.part {
                Part::Value => u,
                Part::Derivative(0) => 2.0 * X[0],
                Part::Derivative(_) | Part::Second(..) | Part::Exterior(_) => 0.0,
            },
            Input::Coordinate(axis) => X[axis],
            Input::Normal(axis) => N[axis],
            Input::Param(..) => 3.0,
            _ => 1.0,
        });
        integral.residual.iter().map(|(_, node)| values[*node]).collect::<Vec<f64>>()
    };
    let u = X[0] * X[0];
    let flux = (1.0 + u * u) * 2.0 * X[0] * N[0];
    close(&at(joined, u), &[-flux, flux]);
    close(&at(sheet, u), &[0.0, 0.0]);
    close(&at(sheet, 1.0), &[1.5 * (1.0 - u); 2]);
    close(&at(whole, u), &[-flux]);
    // Without the terms of the flux there is no source.
    let source = Source::new("forms", text("f0[avg(u)] = -1;"));
    let found = compile(&source).1;
    assert!(found.iter().any(|found| found.code.id() == "E0414"), "{found:?}");
}
