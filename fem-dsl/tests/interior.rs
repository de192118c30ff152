//! Integrals over facets between cells: known methods, their properties, and mistakes in them.

use super::common::{Sample, close, diagnostics, interior_forms};
use fem_dsl::differentiate::differentiate;
use fem_dsl::eval::eval;
use fem_dsl::form::Form;
use fem_dsl::interior::{component_name, conserved};
use fem_dsl::point::{InteriorFacets, Part, PointForm, Region, Side, point};
use fem_dsl::program::compile;
use fem_dsl::simplify::simplify;
use fem_dsl::source::Source;
use fem_dsl::testing::formatted;

/// Interior penalty with weights for a coefficient that jumps (Ern, Stephansen and Zunino 2009).
const SIPG: &str = "
form sipg {
    field u: scalar in L2(k); aux kappa: scalar on cells; param eta = 2;
    let q = kappa * grad(u);
    f0[u] = -1; f1[u] = q;
    on interior {
        fn harmonic(a) = 2 * inside(a) * outside(a) / (inside(a) + outside(a));
        let w = outside(kappa) / (inside(kappa) + outside(kappa));
        let flux = dot(w * inside(q) + (1 - w) * outside(q), n);
        energy = eta * harmonic(kappa) * avg(penalty(u)) / 2 * jump(u)^2 - flux * jump(u);
    }
    on boundary \"x0\", \"x1\", \"y0\", \"y1\" { energy = eta * kappa * penalty(u) / 2 * u^2 - dot(q, n) * u; }
}";

/// The same as rows.
const SIPG_ROWS: &str = "
form sipg {
    field u: scalar in L2(k); aux kappa: scalar on cells; param eta = 2;
    let q = kappa * grad(u);
    f0[u] = -1; f1[u] = q;
    on interior {
        fn harmonic(a) = 2 * inside(a) * outside(a) / (inside(a) + outside(a));
        let w = outside(kappa) / (inside(kappa) + outside(kappa));
        let tau = eta * harmonic(kappa) * avg(penalty(u));
        f0[jump(u)] = tau * jump(u) - dot(w * inside(q) + (1 - w) * outside(q), n);
        f1[inside(u)] = -w * inside(kappa) * jump(u) * n;
        f1[outside(u)] = -(1 - w) * outside(kappa) * jump(u) * n;
    }
}";

/// The same as a weak form.
const SIPG_WEAK: &str = "
form sipg {
    field u: scalar in L2(k); aux kappa: scalar on cells; param eta = 2;
    test v for u;
    residual = kappa * dot(grad(u), grad(v)) - v;
    on interior {
        fn harmonic(a) = 2 * inside(a) * outside(a) / (inside(a) + outside(a));
        let w = outside(kappa) / (inside(kappa) + outside(kappa));
        fn flux(a) = dot(w * inside(kappa * grad(a)) + (1 - w) * outside(kappa * grad(a)), n);
        residual = eta * harmonic(kappa) * avg(penalty(u)) * jump(u) * jump(v)
            - flux(u) * jump(v) - flux(v) * jump(u);
    }
}";

/// Upwind fluxes of a rotating bump.
const ROTATION: &str = "
form rotation {
    field c: scalar in L2(k); let b = [0.5 - x[1], x[0] - 0.5];
    f0[c] = dt(c); f1[c] = -c * b;
    on interior { f0[jump(c)] = dot(b, n) * avg(c) + abs(dot(b, n)) / 2 * jump(c); }
    on boundary \"x0\", \"x1\", \"y0\", \"y1\" { f0[c] = max(dot(b, n), 0) * c; }
}";

/// Shallow water with Rusanov's flux.
const SHALLOW: &str = "
form shallow {
    field w: vector(3) in L2(0); param g = 1;
    fn flux(s) = [
        [s[1], s[2]],
        [s[1]^2 / s[0] + g * s[0]^2 / 2, s[1] * s[2] / s[0]],
        [s[1] * s[2] / s[0], s[2]^2 / s[0] + g * s[0]^2 / 2]
    ];
    f0[w] = dt(w); f1[w] = -flux(w);
    on interior {
        fn speed(s) = abs(s[1] * n[0] + s[2] * n[1]) / s[0] + sqrt(g * s[0]);
        f0[jump(w)] = avg(flux(w)) * n + max(speed(inside(w)), speed(outside(w))) / 2 * jump(w);
    }
    on boundary \"x0\", \"x1\", \"y0\", \"y1\" { f0[w] = [0, g * w[0]^2 / 2 * n[0], g * w[0]^2 / 2 * n[1]]; }
}";

/// Elasticity that does not lock (Hansbo and Larson 2002).
const BODY: &str = "
form body {
    field u: vector in L2(k); param mu = 1; param lambda = 1e4; param eta = 2; param load: vector(2) = [0, -1];
    let e = sym(grad(u)); let s = 2 * mu * e + lambda * tr(e) * I;
    fn stiff(j, m) = 2 * mu * dot(j, j) + lambda * dot(j, m)^2;
    energy = inner(s, e) / 2 - dot(load, u);
    on interior { energy = eta * avg(penalty(u)) / 2 * stiff(jump(u), n) - dot(avg(s) * n, jump(u)); }
    on boundary \"x0\" { energy = eta * penalty(u) / 2 * stiff(u, n) - dot(s * n, u); }
}";

fn form(text: &str) -> Form {
    super::common::check(text, 2).remove(0)
}

fn point_form(text: &str) -> PointForm {
    point(&simplify(&differentiate(&form(text))))
}

/// Returns the codes of a text's errors and warnings.
fn codes(text: &str) -> Vec<&'static str> {
    compile(&Source::new("test.wf", text)).1.iter().map(|found| found.code.id()).collect()
}

#[test]
fn known_methods_are_symmetric_consistent_and_conservative() {
    for (text, names) in [
        (SIPG, &["u"][..]),
        (SIPG_ROWS, &["u"]),
        (SIPG_WEAK, &["u"]),
        (ROTATION, &["c"]),
        (SHALLOW, &["w[0]", "w[1]", "w[2]"]),
        (BODY, &["u[0]", "u[1]"]),
    ] {
        let found = diagnostics(text, 2);
        assert!(found.is_empty(), "{text}\n{found:#?}");
        let form = form(text);
        let found: Vec<String> =
            conserved(&form).into_iter().map(|place| component_name(&form, place)).collect();
        assert_eq!(found, names, "{text}");
        formatted(text);
    }
}

#[test]
fn formatting_keeps_blocks_and_rows() {
    let text = "form f{field u:scalar in L2(k);f0[u]=u;
        on interior{f0[ jump( u ) ]=jump(u);}
        on interior \"a\" ,\"b\"{f1[avg(u)]=avg(grad(u));}
        on interior from \"a\"to \"b\" {f0[inside(u)]=outside(u);}}";
    let expected = "form f {
    field u: scalar in L2(k);
    f0[u] = u;
    on interior { f0[jump(u)] = jump(u); }
    on interior \"a\", \"b\" { f1[avg(u)] = avg(grad(u)); }
    on interior from \"a\" to \"b\" { f0[inside(u)] = outside(u); }
}
";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&formatted(text)), squeezed(expected));
    let form = form(text);
    let regions: Vec<&Region> = form.integrals.iter().map(|integral| &integral.region).collect();
    let tags = || ["a", "b"].map(str::to_owned);
    assert_eq!(
        regions[1..],
        [
            &Region::Interior(InteriorFacets::All),
            &Region::Interior(InteriorFacets::Under(tags().to_vec())),
            &Region::Interior(InteriorFacets::Between(tags())),
        ]
    );
}

#[test]
fn three_notations_give_one_operator() {
    let forms = [SIPG, SIPG_ROWS, SIPG_WEAK].map(point_form);
    let sample = Sample::new(&form(SIPG), 5);
    let values = forms.each_ref().map(|form| {
        let integral = form.integrals.iter().find(|of| of.region.is_interior()).expect("a block");
        assert!(integral.symmetric && integral.linear, "{form}");
        let values = eval(&integral.graph, |input| sample.input(&self::form(SIPG), input));
        let entries = integral.jacobian.iter();
        let entries: Vec<_> =
            entries.map(|entry| ((entry.test, entry.trial), values[entry.value])).collect();
        let rows: Vec<_> =
            integral.residual.iter().map(|(slot, node)| (*slot, values[*node])).collect();
        (entries, rows)
    });
    let [first, others @ ..] = &values;
    // 3 slots of each side as tests and trials, without pairs of gradients.
    assert_eq!(first.0.len(), 6 * 6 - 4 * 4);
    for other in others {
        for ((key, a), (same, b)) in first.0.iter().zip(&other.0) {
            assert_eq!(key, same);
            close(*a, *b, "an entry of SIPG");
        }
        for ((slot, a), (same, b)) in first.1.iter().zip(&other.1) {
            assert_eq!(slot, same);
            close(*a, *b, "a row of SIPG");
        }
    }
}

/// The Jacobian of a penalty has 2 × 2 blocks: τ [1 −1; −1 1].
#[test]
fn a_jump_couples_both_sides() {
    let form = point_form(
        "form f { field u: scalar in L2(0); f0[u] = u; on interior { f0[jump(u)] = 3 * jump(u); } }",
    );
    let integral = &form.integrals[1];
    let values = eval(&integral.graph, |_| 1.0);
    let entries: Vec<(Side, Side, f64)> = integral
        .jacobian
        .iter()
        .map(|entry| (entry.test.side, entry.trial.side, values[entry.value]))
        .collect();
    use Side::{Inside, Outside};
    let expected = [
        (Inside, Inside, 3.0),
        (Inside, Outside, -3.0),
        (Outside, Inside, -3.0),
        (Outside, Outside, 3.0),
    ];
    assert_eq!(entries, expected);
    let text = form.to_string();
    for part in ["on interior", "inside(u)", "outside(u)", "outside(test(u))"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn continuous_fields_have_one_value_and_two_gradients() {
    let form = point_form(
        "form f {
            field u: scalar; aux a: scalar; f1[u] = grad(u);
            on interior \"coil\" { f0[u] = -1 + a * u + jump(u) - jump(x[0]); }
            on interior { energy = avg(hn) / 2 * dot(jump(grad(u)), n)^2; }
        }",
    );
    let [_, load, kinks] = form.integrals.as_slice() else { panic!("three integrals") };
    let sides = |integral: &fem_dsl::point::Integral| {
        let slots = integral.residual.iter().map(|(slot, _)| (slot.side, slot.part != Part::Value));
        slots.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(sides(load).into_iter().collect::<Vec<_>>(), [(Side::Inside, false)]);
    assert_eq!(load.jacobian.len(), 1);
    let both = [(Side::Inside, true), (Side::Outside, true)];
    assert_eq!(sides(kinks).into_iter().collect::<Vec<_>>(), both);
}

#[test]
fn terms_that_depend_on_the_order_are_errors() {
    for row in [
        "f0[inside(u)] = inside(u);",
        "f0[jump(u)] = avg(u);",
        "f0[avg(u)] = jump(u);",
        "f0[jump(u)] = inside(u) - 0.9 * outside(u);",
        "f1[avg(u)] = avg(u) * n;",
        "energy = inside(u)^2;",
        "energy = jump(u);",
    ] {
        let block = |head: &str| {
            format!(
                "form f {{ field u: scalar in L2(k); f0[u] = u; on interior {head} {{ {row} }} }}"
            )
        };
        assert_eq!(codes(&block("")), ["E0311"], "{row}");
        assert_eq!(codes(&block("\"a\"")), ["E0311"], "{row}");
        assert_eq!(codes(&block("from \"a\" to \"b\"")), [""; 0], "{row}");
    }
}

#[test]
fn a_wrong_sign_is_a_warning_with_its_size() {
    let wrong = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        let found = diagnostics(&text.replace(from, to), 2);
        let [found] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!(found.code.id(), "W0302");
        found.message.clone()
    };
    let of = |size: &str| format!("differ from its flux by {size} of it");
    let message = wrong(SIPG, "- flux * jump(u)", "+ flux * jump(u)");
    assert!(message.contains(&of("2.00")), "{message}");
    let message = wrong(SIPG_ROWS, "tau * jump(u) - dot(w", "tau * jump(u) - 2 * dot(w");
    assert!(message.contains(&of("1.00")), "{message}");
    let message = wrong(SHALLOW, "avg(flux(w)) * n +", "");
    assert!(message.contains(&of("1.00")), "{message}");
    wrong(BODY, "- dot(avg(s) * n, jump(u))", "");
    wrong(ROTATION, "dot(b, n) * avg(c) +", "-dot(b, n) * avg(c) +");
    // What NIPG adds is consistent, too.
    assert!(
        diagnostics(&SIPG_WEAK.replace("- flux(v) * jump(u)", "+ flux(v) * jump(u)"), 2).is_empty()
    );
}

#[test]
fn sources_between_cells_do_not_conserve() {
    let form = form(
        "form f {
            field w: vector in L2(k); field p: scalar; f0[w] = w; f0[p] = p;
            on interior { f0[jump(w)] = jump(w); }
            on interior \"a\" { f0[avg(w)] = [0, 1]; }
        }",
    );
    let found: Vec<String> =
        conserved(&form).into_iter().map(|place| component_name(&form, place)).collect();
    assert_eq!(found, ["w[0]"]);
}

#[test]
fn names_of_facets_stay_free() {
    let text = "form f {
        field inside: scalar; param penalty = 2; param hn = 3; fn outside(a) = 2 * a;
        f0[inside] = outside(penalty * hn * inside);
    }";
    assert!(diagnostics(text, 2).is_empty());
}

#[test]
fn the_extent_is_known_on_the_boundary() {
    let form = point_form(
        "form f { field u: scalar; f1[u] = grad(u);
            on boundary \"x0\" { f0[u] = 5 * penalty(u) * inside(u) / (1 + hn); } }",
    );
    let text = form.to_string();
    assert!(text.contains("penalty_factor(u)") && text.contains("1.0 + hn"), "{text}");
}

#[test]
fn random_forms_format_and_depend_on_both_sides() {
    let mut outsides = 0;
    for (text, form) in interior_forms() {
        formatted(&text);
        let point = point(&simplify(&differentiate(&form)));
        let entries = point.integrals.iter().flat_map(|integral| &integral.jacobian);
        outsides += entries.filter(|entry| entry.test.side != entry.trial.side).count();
    }
    assert!(outsides > 500, "{outsides} entries couple the two cells");
}
