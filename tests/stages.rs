//! Several problems in a row: `solution(warm, "T")`, and `stages = repeat(…)`, against analytic fixed points.

use weakform::{Error, Execution, Form, Solution};

/// Solves the problem `p` of a text with the interpreter.
fn run(text: &str, form: &str) -> Result<Solution, Error> {
    Form::parse(text, form)?.problem("p")?.execution(Execution::Interpreted).run()
}

/// Returns a pair of stages: a = 1 + x + b/2, and b from a, with the fixed point a = (1 + x) 4/3, b = (1 + x) 2/3.
fn pair(of_b: &str, stages: &str) -> String {
    format!(
        "form first {{ field a: scalar; aux b: scalar; f0[a] = a - 1 - x[0] - b / 2; }}
        form second {{ field b: scalar; aux a: scalar; f0[b] = {of_b}; }}
        problem q solves first {{ mesh = box(dim: 2, cells: 2); aux b = solution(p, \"b\"); }}
        problem p solves second {{ mesh = box(dim: 2, cells: 2); aux a = solution(q, \"a\");
            stages = {stages}; exact b = 2 * (1 + x[0]) / 3; initial b = 1; }}"
    )
}

#[test]
fn stages_reach_their_fixed_point() {
    // Each step reduces the error to a quarter: 2⁻⁴⁰ after 20.
    for of_b in ["b - a / 2", "b + b^3 - a / 2 - 8 * (1 + x[0])^3 / 27 * a / (4 / 3 * (1 + x[0]))"]
    {
        let text = pair(of_b, "repeat(q, steps: 60, until: 1e-12)");
        let solution = run(&text, "second").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (l2, _) = solution.error("b").expect("an error");
        assert!(l2 < 1e-10, "{of_b}: {l2}");
    }
    let few = run(&pair("b - a / 2", "repeat(q, steps: 3)"), "second").expect("three steps");
    let (l2, _) = few.error("b").expect("an error");
    assert!(l2 > 1e-4 && l2 < 2e-2, "{l2}");
    let Err(error) = run(&pair("b - a / 2", "repeat(q, steps: 3, until: 1e-12)"), "second") else {
        panic!("three steps are too few")
    };
    assert!(error.to_string().contains("stages"), "{error}");
}

#[test]
fn solutions_are_taken_in_other_spaces_and_by_starts() {
    let text = "form heat { field T: scalar; f1[T] = grad(T); }
        form copy { field u: scalar in L2(k); aux T: scalar on nodes in H1(3); aux average: scalar on cells;
            f0[u] = u - T - average; }
        problem warm solves heat { mesh = box(dim: 2, cells: 4); degree = 2;
            dirichlet T = 0 on \"x0\"; dirichlet T = 1 on \"x1\"; }
        problem p solves copy { mesh = box(dim: 2, cells: 4); degree = 2;
            aux T = solution(warm, \"T\"); aux average = solution(warm, \"T\"); initial u = solution(warm, \"T\");
            report all = integral(u); report last = u([1, 0.5]); }";
    let solution = run(text, "copy").unwrap_or_else(|error| panic!("{error}"));
    let report = |name: &str| solution.report(name).and_then(|value| value.number());
    let all = report("all").expect("a number");
    let last = report("last").expect("a number");
    assert!((all - 1.0).abs() < 1e-9, "{all}");
    // The mean of the last cell is 7/8.
    assert!((last - 1.875).abs() < 1e-9, "{last}");
}

#[test]
fn wrong_references_are_refused_with_a_remedy() {
    let forms = "form heat { field T: scalar; aux a: scalar; f0[T] = a; f1[T] = grad(T); }";
    let refused = |problems: &str, words: &[&str]| {
        let text = format!("{forms} {problems}");
        let Err(error) = run(&text, "heat") else { panic!("solved: {text}") };
        let said = error.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}\n{text}");
    };
    let problem = |name: &str, aux: &str, cells: usize| {
        format!(
            "problem {name} solves heat {{ mesh = box(dim: 2, cells: {cells}); aux a = {aux}; dirichlet T = 0; }}"
        )
    };
    let two = |first: &str, second: &str| format!("{first} {second}");
    refused(&problem("p", "solution(q, \"T\")", 2), &["no problem `q`"]);
    refused(
        &two(&problem("q", "1", 2), &problem("p", "solution(q, \"u\")", 2)),
        &["no field `u`", "`T`"],
    );
    refused(
        &two(&problem("q", "1", 3), &problem("p", "solution(q, \"T\")", 2)),
        &["not one on the mesh", "the same `mesh`"],
    );
    refused(
        &two(&problem("q", "solution(p, \"T\")", 2), &problem("p", "solution(q, \"T\")", 2)),
        &["need each other"],
    );
}
