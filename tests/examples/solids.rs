//! Solids that yield, creep, touch and spin.

use super::{number, run};

/// Hertz's pressure under a cylinder. Contact alone carries the weight.
#[test]
fn a_cylinder_is_carried_by_its_contact() {
    let solved = run("hertz.wf", &[]);
    let of = |name: &str| number(&solved[0]["reports"], name);
    assert!((of("force") / of("law") - 1.0).abs() < 1e-5, "{}", solved[0]["reports"]);
    assert!((of("pressed") / of("peak") - 1.0).abs() < 0.05, "{}", solved[0]["reports"]);
    let steps = solved[0]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 11);
}

/// Hill's solution of a pipe, with the plastic radius c from the pressure. It takes plastic strains as large against
/// elastic ones. Unloading a plate changes no plastic strain until it yields the other way round.
#[test]
fn a_pipe_yields_as_hill_says() {
    let (pressure, yields) = (0.18, 0.24 * 2.0 / 3.0_f64.sqrt());
    let of = |c: f64| yields * ((c / 100.0).ln() + (1.0 - (c / 200.0).powi(2)) / 2.0);
    let (mut low, mut high) = (100.0, 200.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        (low, high) = if of(middle) < pressure { (middle, high) } else { (low, middle) };
    }
    let expected = yields * low * low * (1.0 - 0.3 * 0.3) / (210.0 * 200.0);
    let solved = run("plasticity.wf", &[]);
    let outside = number(&solved[1]["reports"], "outside");
    assert!((outside / expected - 1.0).abs() < 0.01, "{outside} instead of {expected}");
    let steps = solved[0]["steps"].as_array().expect("steps");
    let slipped: Vec<f64> = steps.iter().map(|step| number(&step["reports"], "slipped")).collect();
    assert!(slipped[4] == 0.0 && slipped[10] > 3e-3, "{slipped:?}");
    let kept = |own: &f64| (own / slipped[10] - 1.0).abs() < 1e-12;
    assert!(slipped[11..=15].iter().all(kept), "{slipped:?}");
    assert!(slipped[20] > slipped[10], "{slipped:?}");
}

/// The stress of backward Euler after n steps is μ + μ' / (1 + Δt / τ)ⁿ, in the limit μ + μ' exp(−t / τ).
#[test]
fn a_sheared_solid_relaxes_as_its_equation_says() {
    let solved = run("creep.wf", &["--problem", "held"]);
    let steps = solved[0]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 21);
    for (n, step) in steps.iter().enumerate().skip(1) {
        let [stress, law] = ["stress", "law"].map(|name| number(&step["reports"], name));
        let expected = 0.1 * (1.0 + 2.0 * 1.1_f64.powi(-(n as i32)));
        assert!((stress - expected).abs() < 1e-12, "{n}: {stress} {expected}");
        assert!((stress / law - 1.0).abs() < 0.03, "{n}: {stress} {law}");
    }
}

/// Ferrite.jl tests its tutorial on plasticity with this largest displacement, on the same mesh in the same steps.
#[test]
fn the_cantilever_bends_as_published() {
    let solved = &run("cantilever.wf", &[])[0];
    let [peak, published] = ["peak", "published"].map(|name| number(&solved["reports"], name));
    assert!((peak / published - 1.0).abs() < 1e-8, "{peak} {published}");
}

/// A sixth of a ring that spins in plane stress has the displacement of the whole, which is known.
#[test]
fn a_sixth_of_the_wheel_spins_as_the_whole() {
    let solved = run("wheel.wf", &[]);
    assert!(number(&solved[0], "error_l2") < 1e-5, "{}", solved[0]);
    let rim = number(&solved[0]["reports"], "rim");
    let law = 0.7 * 3.3 / 8.0 * (1.09 - 1.3 / 3.3 + 1.3 / 0.7 * 0.09);
    assert!((rim / law - 1.0).abs() < 1e-4, "{rim} {law}");
}
