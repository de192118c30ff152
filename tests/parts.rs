//! Fields that live on a part of the mesh, `field u: scalar on "soft";`.

use crate::regions::{bent_layers, layers};
use std::f64::consts::PI;
use std::path::Path;
use weakform::{Error, Execution, Form, Solution};

/// The cells with y < 1/2 are "soft", the others "hard".
fn folder(n: usize, triangles: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("layers.msh"), layers(n, triangles)).expect("a mesh");
    folder
}

fn solve(folder: &Path, form: &str, problem: &str, how: Execution) -> Result<Solution, Error> {
    let text =
        format!("form f {{ {form} }} problem p solves f {{ mesh = \"layers.msh\"; {problem} }}");
    Form::parse(&text, "f")?.problem("p")?.folder(folder).execution(how).run()
}

fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(|found| found.number()).expect("a number")
}

fn close(found: f64, known: f64, what: &str) {
    assert!((found - known).abs() < 1e-9 * known.abs().max(1.0), "{what}: {found} for {known}");
}

/// Two layers of conductivities 1 and 3, thickness 1/2, and a film of conductance 2 between them.
const FILM: &str = "
    field a: scalar on \"soft\";
    field b: scalar in H1(k + 1) on \"hard\";
    param film = 2;
    f1[a] = grad(a);
    on cells \"hard\" { f1[b] = 3 * grad(b); }
    on interior from \"soft\" to \"hard\" {
        f0[a] = film * (a - outside(b));
        f0[b] = film * (outside(b) - a);
    }";

/// The resistances 1/2, 1/2 and 1/6 in a row pass 6/7 of a difference of 1.
#[test]
fn layers_with_a_film_between_them_pass_what_their_resistances_let_through() {
    for (triangles, how) in [
        (false, Execution::Interpreted),
        (true, Execution::Interpreted),
        (false, Execution::Compiled),
    ] {
        let folder = folder(4, triangles);
        for solver in ["direct", "cg(rtol: 1e-13)", "gmres(rtol: 1e-13)"] {
            let problem = format!(
                "dirichlet a = 1 on \"bottom\"; dirichlet b = 0 on \"top\"; solver = {solver};
                 report slope = integral(grad(a)[1]);
                 report below = a([0.3, 0.5]);
                 report above = at(2 * b, [0.3, 0.5]);
                 report least = minimum(a);
                 report most = maximum(b);
                 report size = integral(1, on: \"hard\");
                 report mean = integral(b);
                 report through = reaction(b, on: \"top\");
                 output flux = -3 * grad(b) on cells;"
            );
            let found = solve(folder.path(), FILM, &problem, how).unwrap_or_else(|e| panic!("{e}"));
            let q = 6.0 / 7.0;
            for (name, known) in [
                ("slope", -q / 2.0),
                ("below", 1.0 - q / 2.0),
                ("above", q / 3.0),
                ("least", 1.0 - q / 2.0),
                ("most", q / 6.0),
                ("size", 0.5),
                ("mean", q / 24.0),
                ("through", -q),
            ] {
                close(number(&found, name), known, &format!("{name} by {solver}"));
            }
            let fluxes = found.output("flux").expect("values").values.numbers();
            let (some, none): (Vec<f64>, Vec<f64>) =
                fluxes.iter().partition(|value| value.is_finite());
            assert_eq!(some.len(), none.len(), "half of the cells have no flux");
            some.chunks(2).for_each(|flux| close(flux[1], q, "a flux"));
        }
    }
}

/// A flux of 1 from the top to the bottom: a rises to 1/2, the film adds 1/2, and b rises by 1/6 from there.
#[test]
fn a_film_alone_fixes_the_field_behind_it() {
    let folder = folder(4, false);
    let form = format!("{FILM} on boundary \"top\" {{ f0[b] = -1; }}");
    for solver in ["direct", "cg(rtol: 1e-13)"] {
        let problem = format!(
            "dirichlet a = 0 on \"bottom\"; solver = {solver};
             report below = maximum(a); report least = minimum(b); report most = maximum(b);"
        );
        let found = solve(folder.path(), &form, &problem, Execution::Interpreted);
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        for (name, known) in [("below", 0.5), ("least", 1.0), ("most", 1.0 + 1.0 / 6.0)] {
            close(number(&found, name), known, name);
        }
    }
    let problem = "dirichlet b = 0 on \"top\"; param film = 0;";
    let error = solve(folder.path(), FILM, problem, Execution::Interpreted);
    let error = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("nothing fixes `a`"), "{error}");
}

/// A field on a half is the field on a mesh of that half.
#[test]
fn a_field_on_a_part_is_that_of_the_part_alone() {
    let folder = folder(6, false);
    let rows = "f0[u] = -1; f1[u] = grad(u);";
    let problem = |place: &str| {
        format!(
            "degree = 3; dirichlet u = 0 on {place};
             report size = l2(u); report energy = integral(dot(grad(u), grad(u)));"
        )
    };
    let sides = "\"left\", \"right\", \"bottom\", \"middle\"";
    let form = format!("field u: scalar on \"soft\"; {rows}");
    let part = solve(folder.path(), &form, &problem(sides), Execution::Interpreted);
    let part = part.unwrap_or_else(|error| panic!("{error}"));
    let text = format!(
        "form f {{ field u: scalar; {rows} }}
         problem p solves f {{ mesh = box(dim: 2, cells: [6, 3], to: [1, 0.5]); {} }}",
        problem("all")
    );
    let alone = Form::parse(&text, "f").and_then(|form| form.problem("p")?.run()).expect("a half");
    for name in ["size", "energy"] {
        close(number(&part, name), number(&alone, name), name);
    }
    assert_eq!(part.dofs(), alone.dofs(), "no unknown where the field does not live");
}

/// −Δu = λ u on a half of the square, and heat that decays with the smallest λ there.
#[test]
fn modes_and_steps_in_time_are_those_of_the_part() {
    let folder = folder(8, false);
    let sides = "dirichlet u = 0 on \"left\", \"right\", \"bottom\", \"middle\";";
    let form = "field u: scalar on \"soft\"; f1[u] = grad(u);";
    let problem = format!("degree = 3; {sides} eigen = smallest(2);");
    let modes = solve(folder.path(), form, &problem, Execution::Interpreted);
    let modes = modes.unwrap_or_else(|error| panic!("{error}"));
    let known = [5.0, 8.0].map(|sum| sum * PI * PI);
    for (found, known) in modes.modes().iter().map(|mode| mode.value).zip(known) {
        assert!((found / known - 1.0).abs() < 1e-5, "{found} for {known}");
    }
    let form = "field u: scalar on \"soft\"; f0[u] = dt(u); f1[u] = grad(u);";
    let problem = format!(
        "degree = 3; {sides} initial u = sin(pi * x[0]) * sin(2 * pi * x[1]);
         time = bdf(to: 0.02, step: 0.0005, order: 3); report peak = u([0.5, 0.25]);"
    );
    let heat = solve(folder.path(), form, &problem, Execution::Interpreted);
    let heat = heat.unwrap_or_else(|error| panic!("{error}"));
    let (found, known) = (number(&heat, "peak"), (-5.0 * PI * PI * 0.02_f64).exp());
    assert!((found / known - 1.0).abs() < 1e-4, "{found} for {known}");
}

/// Projections onto each space of the language, on bent cells, reproduce what the space holds.
#[test]
fn fields_of_all_spaces_live_on_parts() {
    for triangles in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let mesh = bent_layers(4, triangles, if triangles { 0.0 } else { 0.05 });
        std::fs::write(folder.path().join("layers.msh"), mesh).expect("a mesh");
        for (field, known) in [
            ("scalar in L2(1)", "2"),
            ("vector in H1(1)", "[x[0], 1 - x[1]]"),
            ("vector in Hcurl(2)", "[1, 2]"),
            ("vector in Hdiv(2)", "[1, 2]"),
        ] {
            let form = format!(
                "field u: {field} on \"hard\"; field w: scalar; f0[u] = u - {known}; f0[w] = w - 1;"
            );
            let norm = if known == "2" {
                "(u - 2)^2".to_owned()
            } else {
                format!("dot(u - {known}, u - {known})")
            };
            let problem = format!("report off = integral({norm}); report all = integral(w);");
            let found = solve(folder.path(), &form, &problem, Execution::Interpreted);
            let found = found.unwrap_or_else(|error| panic!("{field}: {error}"));
            let off = number(&found, "off");
            assert!((0.0..1e-18).contains(&off), "{field}: {off}");
            close(number(&found, "all"), 1.0, field);
        }
    }
}

/// Interior penalties of a discontinuous field on a part are those between its own cells.
#[test]
fn facets_between_cells_are_those_of_the_part() {
    let folder = folder(6, true);
    let form = "field u: scalar in L2(2) on \"soft\";
         energy = dot(grad(u), grad(u)) / 2 - 2 * u;
         on interior {
             energy = avg(penalty(u)) * jump(u)^2 - dot(avg(grad(u)), n) * jump(u);
         }
         on boundary \"bottom\" { energy = penalty(u) * u^2 - dot(grad(u), n) * u; }";
    // u = y − y² meets u(0) = 0 and a flux of 0 at the middle, y = 1/2.
    let problem = "exact u = x[1] * (1 - x[1]);";
    let found = solve(folder.path(), form, problem, Execution::Interpreted);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let error = found.error("u").expect("an error").0;
    assert!(error < 1e-12, "{error}");
}

/// States at points of other cells stay as they are: u = t at the points of its cells, step by step.
#[test]
fn states_change_where_the_fields_of_their_updates_live() {
    let folder = folder(4, false);
    let form = "field u: scalar on \"soft\"; state p: scalar on points = 1;
         update p = p + u; f0[u] = u - t;";
    let problem = "time = theta(theta: 1, to: 1, step: 0.25); report before = integral(p);";
    let found = solve(folder.path(), form, problem, Execution::Interpreted);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    // Before the last of the steps to 1/4, 1/2, 3/4 and 1.
    close(number(&found, "before"), 1.0 + 0.5 * 1.5, "the state");
}

/// Several processes, whose parts of the mesh need not have cells of each field, find what one finds.
#[test]
fn processes_find_what_one_finds() {
    let folder = folder(8, false);
    let problem = "degree = 2; dirichlet a = 1 on \"bottom\"; dirichlet b = 0 on \"top\";
         solver = cg(rtol: 1e-12); report mean = integral(b); report low = minimum(a);
         report inside = at(b, [0.9, 0.5]);";
    let text =
        format!("form f {{ {FILM} }} problem p solves f {{ mesh = \"layers.msh\"; {problem} }}");
    let q = 6.0 / 7.0;
    for count in [2, 3] {
        let all = weakform::processes::each(count, |group| {
            let problem = Form::parse(&text, "f")?.problem("p")?.folder(folder.path());
            let found = problem.execution(Execution::Interpreted).processes(group).run()?;
            let known = [("mean", q / 24.0), ("low", 1.0 - q / 2.0), ("inside", q / 6.0)];
            known.iter().for_each(|(name, known)| close(number(&found, name), *known, name));
            Ok::<_, Error>(found.dofs())
        });
        for found in all {
            assert!(found.unwrap_or_else(|error| panic!("{error}")) > 0);
        }
    }
}

#[test]
fn devices_find_what_the_processor_finds() {
    let folder = folder(8, false);
    let problem = "degree = 2; dirichlet a = 1 on \"bottom\"; dirichlet b = 0 on \"top\";
         solver = cg(rtol: 1e-12); report mean = integral(b);";
    let text =
        format!("form f {{ {FILM} }} problem p solves f {{ mesh = \"layers.msh\"; {problem} }}");
    for device in super::devices::devices() {
        let problem = Form::parse(&text, "f").and_then(|form| form.problem("p"));
        let found = problem.expect("a problem").folder(folder.path()).device(device).run();
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        close(number(&found, "mean"), 6.0 / 7.0 / 24.0, "mean");
    }
}

#[test]
fn what_reads_a_field_elsewhere_is_refused_with_a_remedy() {
    let folder = folder(4, false);
    let fields = "field a: scalar on \"soft\"; field w: scalar; f0[a] = a - 1;";
    let run = |form: &str, problem: &str| {
        let found = solve(folder.path(), form, problem, Execution::Interpreted);
        found.err().unwrap_or_else(|| panic!("{form} {problem}")).to_string()
    };
    for (rows, words) in [
        ("f0[w] = w - a;", ["all cells reads `a`", "on cells \"soft\""]),
        ("f0[w] = w; on cells \"hard\" { f0[w] = a; }", ["\"hard\" reads `a`", "\"soft\""]),
        ("f0[w] = w; on cells \"hard\" { f0[a] = 1; }", ["\"hard\" tests `a`", "\"soft\""]),
        (
            "f0[w] = w; on interior from \"soft\" to \"hard\" { f0[w] = dot(outside(grad(a)), n); }",
            ["reads `a`", "`inside`, `outside`"],
        ),
        ("f0[w] = w; on boundary \"top\" { f0[w] = a; }", ["\"top\"", "name a part"]),
    ] {
        let said = run(&format!("{fields} {rows}"), "");
        words.iter().for_each(|words| assert!(said.contains(words), "{words}: {said}"));
    }
    let form = format!("{fields} f0[w] = w;");
    for (problem, words) in [
        ("adapt(steps: 1);", ["`adapt`", "refine = 1"]),
        ("report r = integral(a, on: \"hard\");", ["\"hard\"", "lives on"]),
    ] {
        let said = run(&form, problem);
        words.iter().for_each(|words| assert!(said.contains(words), "{words}: {said}"));
    }
    let said = run("field a: scalar on \"soft\"; f1[a] = grad(a);", "");
    assert!(said.contains("nothing fixes `a`"), "{said}");
    let number = "field a: scalar; field c: scalar in R on \"soft\"; f0[a] = a - c; f0[c] = a - 1;";
    let said = run(number, "");
    assert!(said.contains("one value for the whole mesh"), "{said}");
    let said = run("field a: scalar on \"clay\"; f0[a] = a;", "");
    assert!(said.contains("\"clay\"") && said.contains("\"soft\""), "{said}");
}
