//! Examples of textbook problems with values in closed form: rings under pressure, bimetals, periodic materials, layers.

use std::f64::consts::SQRT_2;

use super::{number, run};

/// Lamé (1852): with p = 100 and b = 2a the hoop stress is 5/3 of p at the inner radius and 2/3 at the outer one.
#[test]
fn a_thick_cylinder_has_the_stresses_of_lame() {
    let errors: Vec<f64> = ["0", "1"]
        .iter()
        .map(|refine| {
            let solved = &run("thick_cylinder.wf", &["--refine", refine])[0];
            let reports = &solved["reports"];
            let inside = number(reports, "inside") / (500.0 / 3.0) - 1.0;
            let outside = number(reports, "outside") / (200.0 / 3.0) - 1.0;
            // The volume is π (b² − a²) h.
            let volume = std::f64::consts::PI * 7500.0 * 50.0;
            assert!((number(reports, "volume") / volume - 1.0).abs() < 1e-12, "{reports}");
            inside.abs().max(outside.abs())
        })
        .collect();
    assert!(errors[0] < 5e-4 && errors[1] < errors[0] / 6.0, "{errors:?}");
}

/// Timoshenko (1925): κ = 6 (α₂ − α₁) ΔT (1 + m)² / (h (3 (1 + m)² + (1 + m n) (m² + 1 / (m n)))) with m the ratio of
/// thicknesses and n that of stiffnesses. It holds exactly for plane stress away from the ends.
#[test]
fn a_bimetal_bends_to_the_curvature_of_timoshenko() {
    let solved = &run("bimetal.wf", &[])[0];
    let (difference, warming, height, m, n) = (7e-6, 100.0, 2.0, 1.0, 2.0);
    let layers = 3.0 * (1.0_f64 + m).powi(2) + (1.0 + m * n) * (m * m + 1.0 / (m * n));
    let curvature = 6.0 * difference * warming * (1.0 + m).powi(2) / (height * layers);
    for name in ["curvature", "timoshenko"] {
        let found = number(&solved["reports"], name);
        assert!((found / curvature - 1.0).abs() < 1e-8, "{name}: {found} instead of {curvature}");
    }
}

/// Keller (1964): a checkerboard conducts as the geometric mean of its parts. A discrete solution is above that. Layers
/// conduct as the harmonic mean across, and as the arithmetic mean along.
#[test]
fn periodic_materials_have_their_known_means() {
    let solved = run("checkerboard.wf", &[]);
    let effective = number(&solved[0]["reports"], "effective");
    assert!((0.0..1e-4).contains(&(effective - 2.0)), "{effective}");
    let across = number(&solved[1]["reports"], "across");
    assert!((across - 1.6).abs() < 1e-12, "{across}");
    let turned = run("checkerboard.wf", &["--problem", "layers", "--param", "e=[0, 1]"]);
    let along = number(&turned[0]["reports"], "across");
    assert!((along - 2.5).abs() < 1e-12, "{along}");
}

/// With τ of linear elements the values at nodes of a channel are those of the exact solution (Christie, Griffiths, Mitchell
/// and Zienkiewicz 1976). Across a front at an angle Galerkin's method oscillates without bound.
#[test]
fn streamline_terms_keep_layers_within_a_cell() {
    let solved = run("supg.wf", &["--problem", "channel"]);
    let eps = 0.02_f64;
    let exact =
        |x: f64| x - (((x - 1.0) / eps).exp() - (-1.0 / eps).exp()) / (1.0 - (-1.0 / eps).exp());
    for (name, x) in [("node", 0.9), ("before", 0.8)] {
        let found = number(&solved[0]["reports"], name);
        assert!((found - exact(x)).abs() < 1e-9, "{name}: {found} instead of {}", exact(x));
    }
    let highest = |stabilised: &str| {
        let arguments = ["--problem", "skew", "--param", &format!("stabilised={stabilised}")];
        number(&run("supg.wf", &arguments)[0]["reports"], "highest")
    };
    let (with, without) = (highest("1"), highest("0"));
    assert!(with < SQRT_2 * 1.2 && without > 10.0, "{with} and {without}");
}
