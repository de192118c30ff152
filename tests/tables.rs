//! `table(…)`: values, slopes and ends against SciPy's `PchipInterpolator`, in forms, problems and files.

use super::outputs::{refused, solution};
use weakform::Solution;

#[track_caller]
fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(|figure| figure.number()).expect("a number")
}

const DATA: &str = "[0, 0.5, 1, 2, 3.5, 4], [0, 0.2, 1, 4, 4, 2.5]";

/// Place, value, slope: SciPy 1.17, `PchipInterpolator`.
const CUBIC: [[f64; 3]; 8] = [
    [0.1, 0.010560000000000003, 0.20480000000000004],
    [0.25, 0.060000000000000005, 0.44000000000000006],
    [0.75, 0.5138317757009345, 1.7353271028037383],
    [1.3, 1.944747663551402, 3.921308411214954],
    [1.9, 3.934168224299066, 1.2768224299065452],
    [2.7, 4.0, 0.0],
    [3.6, 3.904, -1.8300000000000014],
    [3.9, 2.8960000000000004, -4.080000000000001],
];

/// Values and the derivative that the language takes of them, on a line of a form whose solution is x.
#[test]
fn cubic_tables_are_those_of_fritsch_and_butland() {
    let at = |name: &str, value: &str| {
        let one = |(number, [place, ..]): (usize, &[f64; 3])| {
            format!("report {name}{number} = at({value}, [{place}, 0.5]);")
        };
        CUBIC.iter().enumerate().map(one).collect::<String>()
    };
    let text = format!(
        "form f {{ field u: scalar; let y = table({DATA}, x[0]); f0[u] = u - x[0]; }}\n\
         problem p solves f {{ mesh = box(dim: 2, cells: [4, 1], to: [4, 1]); {} {} }}",
        at("y", "y"),
        at("slope", "grad(y)[0]"),
    );
    let solution = solution(&text);
    for (number_of, [place, value, slope]) in CUBIC.into_iter().enumerate() {
        let found = number(&solution, &format!("y{number_of}"));
        assert!((found - value).abs() < 1e-12, "at {place}: {found} for {value}");
        let found = number(&solution, &format!("slope{number_of}"));
        assert!((found - slope).abs() < 1e-12, "at {place}: {found} for {slope}");
    }
}

#[test]
fn tables_are_linear_and_go_on_as_they_are_asked_to() {
    let text = format!(
        "form f {{ field u: scalar; f0[u] = u - x[0]; fn y(a) = table({DATA}, a, interpolation: linear);\n\
         fn held(a) = table({DATA}, a, outside: hold); fn far(a) = table({DATA}, a, outside: extend);\n\
         fn ray(a) = table([1, 2], [3, 5], a, interpolation: linear, outside: extend); }}\n\
         problem p solves f {{ mesh = box(dim: 2, cells: 1);\n\
         report middle = at(y(x[0] + 1), [0.5, 0.5]); report first = at(y(x[0]), [0, 0]);\n\
         report last = at(y(4 * x[0]), [1, 0]); report below = at(held(x[0] - 9), [0.5, 0.5]);\n\
         report above = at(held(x[0] + 9), [0.5, 0.5]); report under = at(far(x[0] - 2), [1, 0.5]);\n\
         report over = at(far(x[0] + 4), [1, 0.5]); report ray = at(ray(x[0] - 2), [1, 0.5]); }}"
    );
    let solution = solution(&text);
    for (name, expected) in [
        ("middle", 2.5),
        ("first", 0.0),
        ("last", 2.5),
        ("below", 0.0),
        ("above", 2.5),
        // The slopes of the ends are 0 and −3.75.
        ("under", 0.0),
        ("over", 2.5 - 3.75),
        ("ray", -1.0),
    ] {
        let found = number(&solution, name);
        assert!((found - expected).abs() < 1e-12, "{name}: {found} for {expected}");
    }
}

/// −(ν(u′²) u′)′ = 0 between two values: Newton's method has the exact derivative of the table.
#[test]
fn newton_converges_as_fast_as_with_a_formula() {
    let text = "form f { field u: scalar; let s = dot(grad(u), grad(u));\n\
                f1[u] = table([0, 0.5, 1, 2, 4, 9], [1, 1.1, 1.5, 3, 8, 20], s, outside: extend) * grad(u); f0[u] = -x[0]; }\n\
                problem p solves f { mesh = box(dim: 2, cells: [6, 1]); degree = 2;\n\
                dirichlet u = 0 on \"x0\"; dirichlet u = 1 on \"x1\"; initial u = x[0]; solver = newton(rtol: 1e-12); }";
    let solution = solution(text);
    assert!(solution.iterations() <= 8, "{}", solution.iterations());
}

#[test]
fn files_have_two_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data.csv");
    let text = |path: &str| {
        format!(
            "form f {{ field u: scalar; f0[u] = u - table(\"{path}\", 3 * x[0], interpolation: linear); }}\n\
             problem p solves f {{ mesh = box(dim: 2, cells: 3); report there = u([1, 0]); }}"
        )
    };
    let name = path.display().to_string();
    for content in
        ["# x y\nx; y\n0; 1\n1; 2\n\n3; -4\n", "0 1\r\n1\t2\r\n3 -4", "0,1,9\n1,2,9\n3,-4,9\n"]
    {
        std::fs::write(&path, content).expect("a file");
        let found = number(&solution(&text(&name)), "there");
        assert!((found + 4.0).abs() < 1e-9, "{content:?}: {found}");
    }
    std::fs::write(&path, "0,1\n1,x\n").expect("a file");
    let message = refused(&text(&name));
    assert!(message.contains("line 2 has no two numbers"), "{message}");
    let message = refused(&text("no-such-file.csv"));
    assert!(message.contains("cannot read the table \"no-such-file.csv\""), "{message}");
}

#[test]
fn mistakes_are_reported_in_their_place() {
    let with = |call: &str| {
        format!(
            "form f {{ field u: scalar; f0[u] = u - {call}; }}\n\
             problem p solves f {{ mesh = box(dim: 2, cells: 1); }}"
        )
    };
    for (call, expected) in [
        ("table(x[0])", "takes 2 or 3 arguments"),
        ("table([0, 1], [0], x[0])", "2 places have 1 values"),
        ("table([0], [0], x[0])", "2 to 1000 rows"),
        ("table([0, 1, 1], [0, 1, 2], x[0])", "1 follows 1"),
        ("table([0, u], [0, 1], x[0])", "are numbers"),
        ("table(0, 1, x[0])", "are numbers"),
        ("table([0, 1], x[0])", "places and values, or a file"),
        ("table([0, 1], [0, 1], x[0], outside: nan)", "`error`, `hold` or `extend`"),
        ("table([0, 1], [0, 1], x[0], interpolation: spline)", "`cubic` or `linear`"),
        ("table([0, 1], [0, 1], x[0], method: linear)", "no argument `method`"),
        ("table([0, 1], [0, 1], x)", "vector"),
    ] {
        let message = refused(&with(call));
        assert!(message.contains(expected), "{call}\n{message}");
    }
    // Outside of the table there is no value.
    let message = refused(&with("table([0, 0.5], [0, 1], x[0])"));
    assert!(message.contains("log"), "{message}");
    // A form's own function of that name is that.
    let own = "form f { field u: scalar; fn table(a) = 2 * a; f0[u] = u - table(x[0]); }\n\
               problem p solves f { mesh = box(dim: 2, cells: 1); report there = u([1, 0]); }";
    assert!((number(&solution(own), "there") - 2.0).abs() < 1e-9);
}
