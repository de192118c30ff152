//! Complex numbers: values against arithmetic on complex numbers, the three notations against each other, and mistakes.

use fem_dsl::codes::Code;
use fem_dsl::point::{Input, Part, PointForm, eval};
use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use num_complex::Complex64 as C;
use std::collections::BTreeMap;

fn program(text: &str) -> Program {
    let (program, found) = compile(&Source::new("complex.wf", text));
    program.unwrap_or_else(|| panic!("{text}\n{found:#?}"))
}

/// Returns the form of a text in two dimensions.
fn form(items: &str) -> PointForm {
    let text = format!("form f {{ {items} }}");
    program(&text).point_form("f", 2).unwrap_or_else(|found| panic!("{text}\n{found:#?}"))
}

/// Returns the value of an input, which its text determines.
fn number(input: Input) -> f64 {
    let text = format!("{input:?}");
    let hash =
        text.bytes().fold(7_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    0.3 + (hash % 1000) as f64 / 1000.0
}

/// Returns f0 of both parts of the first field, component by component, at numbers for all inputs.
fn rows(form: &PointForm, values: impl Fn(Input) -> f64) -> Vec<C> {
    let integral = &form.integrals[0];
    let numbers = eval(&integral.graph, values);
    let mut rows: BTreeMap<(usize, Part), C> = BTreeMap::new();
    for (slot, node) in &integral.residual {
        let row = rows.entry((slot.component, slot.part)).or_default();
        if slot.field == 0 { row.re = numbers[*node] } else { row.im = numbers[*node] }
    }
    rows.into_values().collect()
}

/// Returns the inputs of a field, for a point where u = `u`.
fn at(u: C) -> impl Fn(Input) -> f64 {
    move |input| match input {
        Input::State(slot) if slot.part == Part::Value && slot.field < 2 => {
            if slot.field == 0 {
                u.re
            } else {
                u.im
            }
        }
        input => number(input),
    }
}

#[test]
fn functions_are_those_of_complex_numbers() {
    let i = C::i();
    let cases: &[(&str, &dyn Fn(C) -> C)] = &[
        ("u * u", &|u| u * u),
        ("u / (2 + i)", &|u| u / (2.0 + i)),
        ("2 / u", &|u| 2.0 / u),
        ("u^2", &|u| u * u),
        ("u^5 - u^0", &|u| u.powu(5) - 1.0),
        ("u^(1 / 3)", &|u| u.powf(1.0 / 3.0)),
        ("2^u", &|u| C::from(2.0).powc(u)),
        ("exp(i * u)", &|u| (i * u).exp()),
        ("log(u)", &|u| u.ln()),
        ("sqrt(u)", &|u| u.sqrt()),
        ("sin(u) + cos(u)", &|u| u.sin() + u.cos()),
        ("sinh(u) - cosh(u)", &|u| u.sinh() - u.cosh()),
        ("conj(u) * u", &|u| u.conj() * u),
        ("re(u) - i * im(u) + 0 * u", &|u| u.conj()),
        ("abs(u) + 0 * u", &|u| C::from(u.norm())),
        ("abs(u)^2 * u", &|u| u.norm_sqr() * u),
        ("norm([u, 2 * u]) * i", &|u| (5.0_f64.sqrt() * u.norm()) * i),
        ("inner([u, 1], [i, u])", &|u| u * i.conj() + u.conj()),
        ("dot([u, 1], [i, u])", &|u| u * i + u),
        ("[u, i * u][1]", &|u| i * u),
        ("outer([u, 1], [1, i])[0, 1]", &|u| u * i),
        ("tr([[u, 1], [2, i]])", &|u| u + i),
        ("if re(u) < im(u) { u } else { 3 }", &|u| if u.re < u.im { u } else { C::from(3.0) }),
        ("-u", &|u| -u),
        ("if !(re(u) < im(u)) { u } else { 3 }", &|u| if u.re < u.im { C::from(3.0) } else { u }),
        ("z * u", &|u| C::new(1.5, -0.5) * u),
        ("square(u) + square(2)", &|u| u * u + 4.0),
        ("half(u)", &|u| u * u / 2.0),
        ("q", &|u| u * u * i),
    ];
    for (text, exact) in cases {
        let form = form(&format!(
            "field u: complex scalar; param z: complex scalar = 1.5 - i / 2; let q = i * square(u); \
             fn half(a) = square(a) / 2; fn square(a) = a * a; f0[u] = {text};"
        ));
        for u in [C::new(0.7, 1.3), C::new(-0.4, 0.2), C::new(-0.3, -1.1), C::new(1.2, -0.1)] {
            let found = rows(&form, |input| match input {
                Input::Param(at, _) => [1.5, -0.5][at],
                input => at(u)(input),
            });
            let exact = exact(u);
            let found = found.first().copied().unwrap_or_default();
            assert!(
                (found - exact).norm() <= 1e-14 * (1.0 + exact.norm()),
                "{text}: {found} {exact}"
            );
        }
    }
}

/// Checks that forms have equal residuals and actions at numbers for all inputs.
fn assert_equal(one: &PointForm, other: &PointForm) {
    assert_eq!(one.integrals.len(), other.integrals.len());
    for (one, other) in one.integrals.iter().zip(&other.integrals) {
        let [a, b] = [one, other].map(|integral| eval(&integral.graph, number));
        for (x, y) in [(&one.residual, &other.residual), (&one.action, &other.action)] {
            let slots = |rows: &[(_, _)]| rows.iter().map(|(slot, _)| *slot).collect::<Vec<_>>();
            assert_eq!(slots(x), slots(y));
            for ((slot, x), (_, y)) in x.iter().zip(y) {
                assert!((a[*x] - b[*y]).abs() < 1e-12, "{slot:?}: {} {}", a[*x], b[*y]);
            }
        }
    }
}

#[test]
fn a_weak_form_is_its_rows_and_those_of_its_parts() {
    let data = "aux eps: complex scalar on cells; aux g: complex scalar; param w = 3;";
    let weak = form(&format!(
        "field u: complex scalar; {data} test v for u; \
         residual = inner(grad(u), grad(v)) - w^2 * eps * u * conj(v); \
         on boundary \"a\" {{ residual = -i * w * u * conj(v) - inner(g, v); }}"
    ));
    let rows = form(&format!(
        "field u: complex scalar; {data} f1[u] = grad(u); f0[u] = -w^2 * eps * u; \
         on boundary \"a\" {{ f0[u] = -i * w * u - g; }}"
    ));
    let parts = form(
        "field u_re: scalar; field u_im: scalar; aux eps_re: scalar on cells; aux eps_im: scalar on cells; \
         aux g_re: scalar; aux g_im: scalar; param w = 3; \
         f1[u_re] = grad(u_re); f1[u_im] = grad(u_im); \
         f0[u_re] = -w^2 * (eps_re * u_re - eps_im * u_im); f0[u_im] = -w^2 * (eps_re * u_im + eps_im * u_re); \
         on boundary \"a\" { f0[u_re] = w * u_im - g_re; f0[u_im] = -w * u_re - g_im; }",
    );
    assert_equal(&weak, &rows);
    assert_equal(&rows, &parts);
}

#[test]
fn a_real_energy_has_the_rows_of_its_parts() {
    let energy = form(
        "field u: complex vector; energy = inner(grad(u), grad(u)) / 2 + abs(u[0])^4 / 4 - re(u[1]);",
    );
    let rows = form("field u: complex vector; f1[u] = grad(u); f0[u] = [abs(u[0])^2 * u[0], -1];");
    assert_equal(&energy, &rows);
}

#[test]
fn real_fields_stand_beside_complex_ones() {
    let mixed = form(
        "field u: complex scalar; field p: scalar; test v for u; test q for p; \
         residual = inner(grad(u), grad(v)) + p * conj(v) + (dot(grad(p), grad(q)) - abs(u)^2 * q);",
    );
    let parts = form(
        "field u_re: scalar; field u_im: scalar; field p: scalar; f1[u_re] = grad(u_re); f1[u_im] = grad(u_im); \
         f0[u_re] = p; f1[p] = grad(p); f0[p] = -(u_re^2 + u_im^2);",
    );
    assert_equal(&mixed, &parts);
}

#[test]
fn the_words_are_names_in_a_form_that_declares_them() {
    let own = form(
        "field u: complex scalar; param re = 100; param i = 2; fn conj(a) = 3 * a; \
         f0[u] = re * i * conj(u);",
    );
    let other = form("field u: complex scalar; param a = 100; param b = 2; f0[u] = a * b * 3 * u;");
    assert_equal(&own, &other);
    let real = form("field u: scalar; param re = 100; let i = 2; f0[u] = re * i * u;");
    assert_eq!(real.fields.len(), 1);
}

#[test]
fn statements_of_problems_have_two_parts() {
    let text = "form f { field u: complex scalar; aux a: complex scalar; param z: complex scalar = 1; \
        f1[u] = grad(u); f0[u] = z * u - a; } \
        problem p solves f { mesh = box(dim: 2, cells: 2); param z = 2 + 3 * i; aux a = exp(i * x[0]); \
        exact u = i * x[1]; dirichlet u on \"x0\"; dirichlet u = 1 on \"x1\"; initial u = 5; \
        report mean = integral(u * i); report size = l2(u); report middle = u([0.5, 0.5]); }";
    let program = program(text);
    let overrides = fem_dsl::check::problem::Overrides {
        params: vec![("z".to_owned(), "4 - i".to_owned())],
        ..Default::default()
    };
    let [own, other] = [&Default::default(), &overrides].map(|overrides| {
        program.problem("p", 2, overrides).unwrap_or_else(|found| panic!("{found:?}"))
    });
    assert_eq!(own.params, [(0, vec![2.0]), (1, vec![3.0])]);
    assert_eq!(other.params, [(0, vec![4.0]), (1, vec![-1.0])]);
    assert_eq!(
        (own.aux.len(), own.exact.len(), own.dirichlet.len(), own.initial.len()),
        (2, 2, 4, 2)
    );
    let names: Vec<&str> = own.reports.items.iter().map(|report| report.name.as_str()).collect();
    assert_eq!(names, ["mean_re", "mean_im", "size", "middle_re", "middle_im"]);
}

#[test]
fn mistakes_say_what_to_write() {
    let cases = [
        (
            "field E: complex vector; test v for E; residual = dot(E, v);",
            Code::NotConjugated,
            "v",
            "`inner(a, v)`",
        ),
        (
            "field E: complex vector; test v for E; residual = inner(v, E);",
            Code::NotConjugated,
            "v",
            "conjugates its second argument",
        ),
        (
            "field E: complex vector; test v for E; residual = re(inner(E, v));",
            Code::NotConjugated,
            "re(inner(E, v))",
            "not on its conjugate",
        ),
        (
            "field u: complex scalar; field p: scalar; f0[u] = p; f0[p] = u;",
            Code::ComplexValue,
            "u",
            "a row of `p` is a real number",
        ),
        (
            "field u: complex scalar; field p: scalar; test v for u; test q for p; residual = u * conj(v) + u * q;",
            Code::ComplexValue,
            "u * q",
            "a real field's test function",
        ),
        ("field u: complex scalar; energy = u^2;", Code::ComplexValue, "u^2", "an energy is"),
        (
            "field u: complex scalar; f0[u] = tan(u);",
            Code::ComplexValue,
            "u",
            "an argument of `tan`",
        ),
        (
            "field u: complex scalar; f0[u] = if u < 1 { 1 } else { u };",
            Code::ComplexValue,
            "u",
            "`abs(…)`",
        ),
    ];
    for (items, code, place, part) in cases {
        let text = format!("form f {{ {items} }}");
        let (_, found) = compile(&Source::new("complex.wf", text.clone()));
        let hit = found.iter().find(|found| found.code == code);
        let hit = hit.unwrap_or_else(|| panic!("{text}\n{found:#?}"));
        let label = hit.primary().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(Source::new("", text.clone()).slice(label.span), place, "{text}");
        assert!(format!("{hit:?}").contains(part), "{text}\n{hit:#?}");
    }
}
