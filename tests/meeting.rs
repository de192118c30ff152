//! Conditions with different values in common nodes: the later one takes precedence, with a remark, in all front ends.

use weakform::{Error, Execution, Form, mesh};

/// Returns the remarks on conditions of a problem with these statements, for a form of a vector and a scalar.
fn notes(statements: &str) -> Vec<String> {
    let text = format!(
        "form f {{
            field u: vector;
            field s: scalar;
            f0[u] = u;
            f1[u] = grad(u);
            f0[s] = s;
            f1[s] = grad(s);
        }}
        problem p solves f {{ {statements} }}"
    );
    let problem = Form::parse(&text, "f").expect("a form").problem("p").expect("a problem");
    let solution = problem.execution(Execution::Interpreted).run();
    let solution = solution.unwrap_or_else(|error| panic!("{error}"));
    solution.notes().iter().filter(|note| note.contains("condition")).cloned().collect()
}

const BOX: &str = "mesh = box(dim: 2, cells: 3); degree = 2;";

#[test]
fn the_order_of_conditions_in_a_corner_is_noted() {
    let walls = "dirichlet u = [0, 0] on \"x0\", \"x1\", \"y0\";";
    let lid = "dirichlet u = [1, 0] on \"y1\";";
    let found = notes(&format!("{BOX} {lid} {walls}"));
    let [note] = &found[..] else { panic!("{found:?}") };
    for part in
        ["`u` on \"y1\"", "in 2 nodes, such as (0, 1, 0)", "on \"x0\", \"x1\", \"y0\", holds there"]
    {
        assert!(note.contains(part), "{note}");
    }
    let found = notes(&format!("{BOX} {walls} {lid}"));
    assert!(found.len() == 1 && found[0].contains("on \"y1\", holds there"), "{found:?}");
    // A lid after the whole boundary meets the walls in its corners only.
    let found = notes(&format!("{BOX} dirichlet u = [0, 0]; {lid}"));
    assert!(found.len() == 1 && found[0].contains("in 2 nodes"), "{found:?}");
    // One component, a normal component.
    let found = notes(&format!("{BOX} dirichlet u[0] = 1 on \"y1\"; {walls}"));
    assert!(found.len() == 1 && found[0].contains("`u[0]` on \"y1\""), "{found:?}");
    let inlet = "dirichlet u = [1, 0.5] on \"x0\"; dirichlet dot(u, n) = 0 on \"y0\";";
    let found = notes(&format!("{BOX} {inlet}"));
    assert!(found.len() == 1 && found[0].contains("`dot(u, n)` on \"y0\""), "{found:?}");
    // A normal component and one along an axis, on one side.
    let [normal, along] = ["dirichlet dot(u, n) = 0 on \"x0\";", "dirichlet u[0] = 1 on \"x0\";"];
    for (first, last, holds) in [(normal, along, "`u[0]` on"), (along, normal, "`dot(u, n)` on")] {
        let found = notes(&format!("{BOX} {first} {last}"));
        assert!(found.len() == 1 && found[0].contains("in 7 nodes"), "{found:?}");
        assert!(found[0].contains(holds), "{found:?}");
    }
}

#[test]
fn continuous_data_gives_no_note() {
    for statements in [
        "dirichlet u = [16 * x[0]^2 * (1 - x[0])^2, 0] on \"y1\"; dirichlet u = [0, 0] on \"x0\", \"x1\", \"y0\";",
        "dirichlet u = [sin(3 * pi * x[0]), 0] on \"y1\"; dirichlet u = [0, 0] on \"x0\", \"x1\";",
        "dirichlet u[0] = 1 on \"x0\"; dirichlet u[1] = 2 on \"y0\"; dirichlet s = 3;",
        "dirichlet u = [1, 0] on \"x0\"; dirichlet dot(u, n) = 0 on \"y0\", \"y1\";",
        "dirichlet dot(u, n) = 0 on \"x0\"; dirichlet dot(u, n) = 1 on \"y0\";",
        "dirichlet dot(u, n) = 1 on \"x0\"; dirichlet u[0] = -1 on \"x0\"; dirichlet u[1] = 5 on \"x0\";",
    ] {
        assert_eq!(notes(&format!("{BOX} {statements}")), [""; 0], "{statements}");
    }
    // On a curved wall.
    let shell = "mesh = shell(dim: 2, refine: 1, order: 2); degree = 2;
        dirichlet dot(u, n) = 0 on \"outer\"; dirichlet u = [x[1], -x[0]] on \"inner\";";
    assert_eq!(notes(shell), [""; 0]);
}

#[test]
fn conditions_that_differ_later_in_time_are_noted() {
    let text = "form f { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }
        problem p solves f {
            mesh = box(dim: 2, cells: 2);
            dirichlet u = 0 on \"x0\";
            dirichlet u = t on \"y0\";
            time = theta(to: 1, step: 0.5);
        }";
    let problem = Form::parse(text, "f").expect("a form").problem("p").expect("a problem");
    let solution = problem.execution(Execution::Interpreted).run().expect("a solution");
    let found = solution.notes().iter().filter(|note| note.contains("meet with different values"));
    assert_eq!(found.count(), 1, "{:?}", solution.notes());
}

#[test]
fn a_condition_that_differs_on_both_images_of_a_periodic_node_is_noted() {
    let statements = |value: &str| {
        format!(
            "{BOX} periodic \"x0\" = \"x1\"; dirichlet s = {value} on \"y0\"; dirichlet s = 0 on \"y1\";"
        )
    };
    let found = notes(&statements("x[0]"));
    let [note] = &found[..] else { panic!("{found:?}") };
    assert!(note.contains("`s` on \"y0\"") && note.contains("in 1 node"), "{note}");
    assert!(note.contains("(0, 0, 0)") && note.contains("(1, 0, 0)"), "{note}");
    assert_eq!(notes(&statements("sin(2 * pi * x[0])")), [""; 0]);
}

#[test]
fn a_system_from_rust_has_the_same_notes() -> Result<(), Error> {
    let form = Form::parse("form f { field u: scalar; f1[u] = grad(u); }", "f")?;
    let setup = || Ok::<_, Error>(form.clone().on(mesh("box(dim: 2, cells: 2)")?));
    let build = |value: f64| {
        let setup = setup()?.dirichlet("u", "x0", |_| 0.0).dirichlet("u", "y0", move |_| value);
        setup.execution(Execution::Interpreted).build()
    };
    let found = build(1.0)?;
    let [note] = found.notes() else { panic!("{:?}", found.notes()) };
    assert!(note.contains("in 1 node, such as (0, 0, 0)"), "{note}");
    assert_eq!(build(0.0)?.notes(), [""; 0]);
    Ok(())
}
