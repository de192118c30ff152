//! One physics as rows, as a weak form and as an energy: equal kernels, in the kernel IR and, except for comments, in
//! every language.

use fem_dsl::program::compile;
use fem_dsl::source::Source;
use weakform::{Cell, Emission, Isa, Language, Precision, Stage, Task, emit_program};

/// The declarations of a form, then each notation.
struct Physics {
    name: &'static str,
    declarations: &'static str,
    ways: [&'static str; 3],
}

const DIFFUSION: Physics = Physics {
    name: "diffusion",
    declarations: "field u: scalar; param f = 2; let kappa = 1 / (0.05 + 2 * dot(x, x));",
    ways: [
        "f0[u] = -f; f1[u] = kappa * grad(u);",
        "test v for u; residual = kappa * dot(grad(u), grad(v)) - f * v;",
        "energy = kappa * dot(grad(u), grad(u)) / 2 - f * u;",
    ],
};

const ELASTICITY: Physics = Physics {
    name: "elasticity",
    declarations: "field u: vector; aux lambda: scalar on cells; aux mu: scalar on cells;
        param g: vector = [0, 1]; let eps = sym(grad(u));",
    ways: [
        "f0[u] = -g; f1[u] = lambda * tr(eps) * I + 2 * mu * eps;",
        "test v for u; residual = lambda * div(u) * div(v) + 2 * mu * inner(eps, sym(grad(v))) - dot(g, v);",
        "energy = lambda / 2 * tr(eps)^2 + mu * inner(eps, eps) - dot(g, u);",
    ],
};

const P_LAPLACIAN: Physics = Physics {
    name: "p_laplacian",
    declarations: "field u: scalar; param f = 1; let p = 3.5; let s = 0.01 + dot(grad(u), grad(u));",
    ways: [
        "f0[u] = -f; f1[u] = s^(p / 2 - 1) * grad(u);",
        "test v for u; residual = s^(p / 2 - 1) * dot(grad(u), grad(v)) - f * v;",
        "energy = s^(p / 2) / p - f * u;",
    ],
};

const NEO_HOOKEAN: Physics = Physics {
    name: "neo_hookean",
    declarations: "field u: vector; param mu = 1; param lambda = 10; let F = I + grad(u); let J = det(F);",
    ways: [
        "f1[u] = mu * F + (lambda * log(J) / J - mu / J) * cof(F);",
        "test v for u; residual = inner(mu * F + (lambda * log(J) / J - mu / J) * cof(F), grad(v));",
        "energy = mu / 2 * (inner(F, F) - dim - 2 * log(J)) + lambda / 2 * log(J)^2;",
    ],
};

/// On the boundary, too, with the normal, the field and its gradient.
const RADIATION: Physics = Physics {
    name: "radiation",
    declarations: "field T: scalar; param c = 0.5;",
    ways: [
        "f1[T] = grad(T); on boundary \"x1\" { f0[T] = c * (T^4 - x[0]) + dot(grad(T), n); f1[T] = T * n; }",
        "test v for T; residual = dot(grad(T), grad(v));
         on boundary \"x1\" {
             test w for T; residual = (c * (T^4 - x[0]) + dot(grad(T), n)) * w + T * dot(n, grad(w));
         }",
        "energy = dot(grad(T), grad(T)) / 2;
         on boundary \"x1\" { energy = c * (T^5 / 5 - x[0] * T) + T * dot(grad(T), n); }",
    ],
};

const MAGNETIC: Physics = Physics {
    name: "magnetic",
    declarations: "field A: vector in Hcurl(k); aux nu: scalar on cells; let J = [x[1], x[0]^2];",
    ways: [
        "f0[A] = A - J; f1[A] = nu * curl(A);",
        "test v for A; residual = nu * curl(A) * curl(v) + dot(A - J, v);",
        "energy = nu * curl(A)^2 / 2 + dot(A, A) / 2 - dot(J, A);",
    ],
};

const FLUX: Physics = Physics {
    name: "flux",
    declarations: "field u: vector in Hdiv(k); aux a: scalar on cells; param f = 1;",
    ways: [
        "f0[u] = a * u; f1[u] = div(u) - f;",
        "test v for u; residual = (div(u) - f) * div(v) + a * dot(u, v);",
        "energy = (div(u) - f)^2 / 2 + a * dot(u, u) / 2;",
    ],
};

/// Returns the forms in the three notations; all have one name, and so do the kernels.
fn texts(physics: &Physics) -> [String; 3] {
    let Physics { name, declarations, ways } = physics;
    ways.map(|way| format!("form {name} {{ {declarations} {way} }}"))
}

fn emitted(text: &str, emission: &Emission) -> String {
    let (program, found) = compile(&Source::new("f", text));
    let program = program.unwrap_or_else(|| panic!("{text}\n{found:?}"));
    emit_program(&program, emission).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Returns the text without comments, which contain the form.
fn stripped(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// Returns the first difference of two texts.
fn difference(a: &str, b: &str) -> Option<String> {
    let pair = a.lines().zip(b.lines()).enumerate().find(|(_, (a, b))| a != b);
    match pair {
        Some((line, (a, b))) => Some(format!("line {line}:\n  {a}\n  {b}")),
        None if a.lines().count() != b.lines().count() => Some("one is longer".to_owned()),
        None => None,
    }
}

/// Asserts that all kernels of a physics are equal in its three notations.
fn same(physics: &Physics, cell: Cell, degree: usize, tasks: &[Task]) {
    let texts = texts(physics);
    for &task in tasks {
        let emission = Emission::new(cell, degree).task(task);
        let cpu = emission.clone().isa(Isa::Avx2);
        let single = emission.clone().precision(Precision::F32);
        for (what, emission) in [
            ("kir", cpu.clone().stage(Stage::Lower)),
            ("legal kir", cpu.clone().stage(Stage::Legalise)),
            ("Rust", cpu),
            ("CUDA", emission.language(Language::Cuda)),
            ("OpenCL", single.language(Language::OpenCl)),
        ] {
            let [rows, weak, energy] =
                texts.each_ref().map(|text| stripped(&emitted(text, &emission)));
            assert!(rows.lines().count() > 20, "{what} of {}: {rows}", physics.name);
            for (way, other) in [("weak form", &weak), ("energy", &energy)] {
                let context =
                    format!("{} on {cell}{degree}, {what}, {}", physics.name, task.word());
                assert_eq!(difference(&rows, other), None, "{context}: rows, then the {way}");
            }
        }
    }
}

const ALL: [Task; 3] = [Task::Residual, Task::Action, Task::Diagonal];

#[test]
fn diffusion() {
    same(&DIFFUSION, Cell::Quadrilateral, 2, &ALL);
    same(&DIFFUSION, Cell::Tetrahedron, 1, &ALL);
}

#[test]
fn elasticity() {
    same(&ELASTICITY, Cell::Quadrilateral, 1, &ALL);
    same(&ELASTICITY, Cell::Triangle, 2, &ALL);
}

#[test]
fn p_laplacian() {
    same(&P_LAPLACIAN, Cell::Quadrilateral, 1, &ALL);
    same(&P_LAPLACIAN, Cell::Hexahedron, 2, &ALL);
}

/// The derivative is that of the residual as written, so that its quotients by J may be combined differently; the
/// residuals are equal.
#[test]
fn neo_hookean() {
    same(&NEO_HOOKEAN, Cell::Triangle, 1, &[Task::Residual]);
    same(&NEO_HOOKEAN, Cell::Hexahedron, 1, &[Task::Residual]);
}

#[test]
fn radiation_through_the_boundary() {
    same(&RADIATION, Cell::Quadrilateral, 2, &ALL);
    same(&RADIATION, Cell::Tetrahedron, 1, &ALL);
}

#[test]
fn vector_potentials_and_fluxes() {
    same(&MAGNETIC, Cell::Quadrilateral, 2, &ALL);
    same(&FLUX, Cell::Hexahedron, 1, &ALL);
}
