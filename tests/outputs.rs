//! Outputs of problems: expressions at points, as data at nodes, in each cell and on cells.

use runtime::problem::DerivedField;
use weakform::{Execution, Form, Solution};

fn solved(text: &str) -> Result<Solution, weakform::Error> {
    Form::parse(text, "f")?.problem("p")?.execution(Execution::Interpreted).run()
}

#[track_caller]
pub(crate) fn solution(text: &str) -> Solution {
    solved(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
pub(crate) fn refused(text: &str) -> String {
    solved(text).err().map(|error| error.to_string()).expect("an error")
}

#[track_caller]
fn output<'a>(solution: &'a Solution, name: &str) -> &'a DerivedField {
    solution.output(name).unwrap_or_else(|| panic!("the output {name} is missing"))
}

/// The cells that the outputs are tried on, in both dimensions.
const MESHES: [(usize, &str); 6] = [
    (2, "box(cells: [3, 2], cell: quad, deform: 0.1)"),
    (2, "box(cells: [3, 2], cell: tri, deform: 0.1)"),
    (3, "box(cells: 2, cell: hex, deform: 0.1)"),
    (3, "box(cells: 2, cell: tet)"),
    (2, "ball(dim: 2, refine: 1)"),
    (2, "box(cells: 3, cell: quad)"),
];

/// A linear displacement has constant strains: every output of them is that constant, at all points.
#[test]
fn strains_of_a_linear_displacement_are_constant_in_all_outputs() {
    for (dim, mesh) in MESHES {
        let (exact, zero) = match dim {
            2 => ("[0.1 * x[0] + 0.04 * x[1], -0.03 * x[1]]", "[0, 0]"),
            _ => ("[0.1 * x[0] + 0.04 * x[1], -0.03 * x[1], 0.05 * x[2]]", "[0, 0, 0]"),
        };
        let there = if dim == 2 { "[0.25, 0.75]" } else { "[0.25, 0.75, 0.5]" };
        let text = format!(
            "form f {{ field u: vector; let eps = sym(grad(u)); f1[u] = eps; f0[u] = {zero}; }}\n\
             problem p solves f {{ mesh = {mesh}; degree = 2; exact u = {exact}; dirichlet u on all;\n\
             output eps; output size = norm(eps) discontinuous; output growth = tr(eps) on cells;\n\
             report most = maximum(size); report there = at(eps[0, 1], {there}); }}"
        );
        let solution = solution(&text);
        let third = if dim == 2 { 0.0 } else { 0.05 };
        let size = f64::sqrt(0.01 + 0.0009 + 2.0 * 0.02 * 0.02 + third * third);
        let all = |name: &str| output(&solution, name).values.numbers().to_vec();
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        let strains = all("eps");
        for strain in strains.chunks(dim * dim) {
            assert!(close(strain[0], 0.1) && close(strain[1], 0.02), "{mesh}: {strain:?}");
            assert!(close(strain[dim + 1], -0.03), "{mesh}: {strain:?}");
        }
        assert!(!strains.is_empty() && all("size").iter().all(|&found| close(found, size)));
        let growth = all("growth");
        assert!(growth.iter().all(|&found| close(found, 0.07 + third)), "{mesh}: {growth:?}");
        let number = |name: &str| solution.report(name).and_then(|value| value.number());
        assert!(close(number("most").expect("a number"), size), "{mesh}");
        assert!(close(number("there").expect("a number"), 0.02), "{mesh}");
    }
}

/// u = |x − 1/2| on two cells has the slopes −1 and 1: their mean at the common nodes is 0, and no cell forgets its own.
#[test]
fn nodes_have_the_mean_of_their_cells_and_cells_their_own_values() {
    let text = "form f { field u: scalar; f0[u] = u - abs(x[0] - 0.5); }\n\
                problem p solves f { mesh = box(dim: 2, cells: [2, 1]);\n\
                output slope = grad(u)[0]; output own = grad(u)[0] discontinuous; output mean = grad(u)[0] on cells; }";
    let solution = solution(text);
    let mut slopes = output(&solution, "slope").values.numbers().to_vec();
    slopes.sort_by(f64::total_cmp);
    for (found, expected) in slopes.iter().zip([-1.0, -1.0, 0.0, 0.0, 1.0, 1.0]) {
        assert!((found - expected).abs() < 1e-9, "{slopes:?}");
    }
    let own = output(&solution, "own").values.numbers().to_vec();
    assert_eq!(own.iter().filter(|slope| (**slope - 1.0).abs() < 1e-9).count(), 4, "{own:?}");
    assert_eq!(own.iter().filter(|slope| (**slope + 1.0).abs() < 1e-9).count(), 4, "{own:?}");
    let mean = output(&solution, "mean").values.numbers().to_vec();
    assert!((mean[0] + 1.0).abs() < 1e-9 && (mean[1] - 1.0).abs() < 1e-9, "{mean:?}");
}

#[test]
fn files_hold_the_outputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "form f { field u: scalar; f1[u] = grad(u); }\n\
                problem p solves f { mesh = box(dim: 2, cells: 2); degree = 2; manufactured u = x[0]^2;\n\
                dirichlet u; output slope = grad(u); output area = 1 + 0 * u on cells; }";
    let path = folder.path().join("u.vtu");
    solution(text).write_vtu(&path).expect("a file");
    let bytes = std::fs::read(&path).expect("the file");
    let text = String::from_utf8_lossy(&bytes);
    let head = text.split("<AppendedData").next().expect("a header");
    let data = |name: &str| head.contains(&format!("Name=\"{name}\""));
    assert!(data("u") && data("slope") && data("area"), "{head}");
}

#[test]
fn messages_name_the_remedy() {
    let form = "form f { field u: scalar; param c = 1; let s = c * grad(u); f1[u] = s; }\n";
    let problem = |items: &str| {
        format!(
            "{form}problem p solves f {{ mesh = box(dim: 2, cells: 1); dirichlet u = 0; {items} }}"
        )
    };
    for (items, expected) in [
        ("report a = norm(s([0.5, 0.5]));", "`at(s, [0, 0])`"),
        ("output s = norm(s);", "`output s;`"),
        ("output u = 2 * u;", "cannot be an output too"),
        ("output a = integral(u);", "`report a = …;`"),
        ("output a = u; output a = 2 * u;", "given twice"),
        ("report a = at(u);", "takes 2 arguments"),
        ("report a = at(u, [0.5]);", "2 coordinates"),
        ("output a;", "unknown name `a`"),
    ] {
        let message = refused(&problem(items));
        assert!(message.contains(expected), "{items}\n{message}");
    }
}

/// Parts of complex values are outputs of their own.
#[test]
fn complex_outputs_have_two_parts() {
    let text = "form f { field u: complex scalar; test v for u; param z: complex scalar = 1 + 2 * i;\n\
                residual = (u - z * x[0]) * conj(v); }\n\
                problem p solves f { mesh = box(dim: 2, cells: 2); output slope = grad(u)[0];\n\
                output size = abs(u)^2 on cells; report there = at(slope, [0.5, 0.5]); }";
    let solution = solution(text);
    let all = |name: &str| output(&solution, name).values.numbers().to_vec();
    assert!(all("slope_re").iter().all(|value| (value - 1.0).abs() < 1e-9));
    assert!(all("slope_im").iter().all(|value| (value - 2.0).abs() < 1e-9));
    assert_eq!(all("size").len(), 4);
    let number = |name: &str| solution.report(name).and_then(|value| value.number());
    assert!((number("there_im").expect("a number") - 2.0).abs() < 1e-9);
}
