//! The examples are solved by `wf run` and yield the expected results.

mod classics;
mod solids;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Runs `wf run` with `--json`; returns one value per problem.
fn run(file: &str, arguments: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["run", "--json", "--no-output"])
        .arg(examples().join(file))
        .args(arguments)
        .output()
        .expect("wf should start");
    let text = String::from_utf8(output.stdout).expect("JSON should be UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file} {arguments:?}\n{text}\n{errors}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line should be JSON")).collect()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} should be a number in {value}"))
}

/// The solution is in the space: the error is the solver's tolerance.
const SOLVED: f64 = 1e-8;

#[test]
fn poisson_on_an_unstructured_ball_is_exact_from_degree_two() {
    let errors: Vec<f64> = ["1", "2", "3"]
        .iter()
        .map(|degree| {
            let solved = run("poisson_unstructured.wf", &["--degree", degree]);
            number(&solved[0], "error_l2")
        })
        .collect();
    assert!(errors[0] > 1e-3 && errors[0] < 3e-2, "{errors:?}");
    assert!(errors[1..].iter().all(|&error| error < SOLVED), "{errors:?}");
}

#[test]
fn elasticity_reproduces_displacements_of_its_space() {
    let solved = run("elasticity.wf", &[]);
    assert_eq!(solved.len(), 2);
    for problem in &solved {
        assert!(number(problem, "error_l2") < SOLVED, "{problem}");
        assert!(number(problem, "error_h1") < 100.0 * SOLVED, "{problem}");
    }
}

#[test]
fn the_nonlinear_plate_reproduces_its_solution() {
    let solved = run("nonlinear.wf", &[]);
    assert!(number(&solved[0], "error_l2") < SOLVED, "{solved:?}");
    assert!(number(&solved[0], "iterations") >= 2.0, "{solved:?}");
}

#[test]
fn three_ways_to_say_it_are_one() {
    let solved = run("three_ways.wf", &[]);
    let errors: Vec<f64> = solved.iter().map(|problem| number(problem, "error_l2")).collect();
    assert_eq!(errors.len(), 3);
    assert!(errors[0] > 1e-7 && errors[0] < 1e-5, "{errors:?}");
    assert!(errors[1..].iter().all(|error| (error / errors[0] - 1.0).abs() < 1e-6), "{errors:?}");
}

#[test]
fn stokes_reproduces_the_flow_of_a_channel_and_of_a_basin() {
    for arguments in [&[][..], &["--degree", "3"]] {
        let solved = run("stokes.wf", arguments);
        assert_eq!(solved.len(), 2);
        for problem in &solved {
            let errors = problem["errors"].as_array().expect("an error for each field");
            assert_eq!(errors.len(), 2, "{problem}");
            for error in errors {
                assert!(number(error, "l2") < SOLVED && number(error, "h1") < SOLVED, "{error}");
            }
        }
    }
}

/// Runs a problem of this text, which must fail, and returns its message.
fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wrong.wf");
    std::fs::write(&path, text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["run", "--no-output"])
        .arg(&path)
        .output()
        .expect("wf should start");
    assert_eq!(output.status.code(), Some(1), "{text}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_mean_that_does_not_follow_is_refused() {
    let stokes = "form stokes { field u: vector; field p: scalar in H1(k - 1); \
         f1[u] = grad(u) - p * I; f0[p] = -div(u); } \
         problem a solves stokes { mesh = box(dim: 2, cells: 4); degree = 2; mean p = 0; ";
    // Free outflow at one end, which determines the pressure.
    let free = refused(&format!("{stokes} dirichlet u = [1, 0] on \"x0\", \"y0\", \"y1\"; }}"));
    assert!(free.contains("`p` is not free up to a constant"), "{free}");
    // The inflow exceeds the outflow.
    let more = refused(&format!("{stokes} dirichlet u = [x[0], 0] on all; }}"));
    assert!(more.contains("is incompatible"), "{more}");
    let poisson = "form a { field u: scalar; param f = 1; f0[u] = -f; f1[u] = grad(u); } \
         problem p solves a { mesh = box(dim: 2, cells: 4); mean u = 2; }";
    assert!(refused(poisson).contains("is incompatible"));
}

#[test]
fn a_wall_radiates_what_it_gets() {
    let solved = run("radiation.wf", &[]);
    assert_eq!(solved.len(), 2);
    assert!(number(&solved[0], "iterations") >= 3.0, "{solved:?}");
    assert!(number(&solved[1], "error_l2") < SOLVED, "{solved:?}");
}

#[test]
fn a_bracket_is_pulled_by_its_end() {
    let solved = run("traction.wf", &[]);
    assert!(number(&solved[0], "iterations") > 100.0, "{solved:?}");
    let none = run("traction.wf", &["--param", "traction=[0, 0, 0]"]);
    assert!(number(&none[0], "iterations") < 1.0, "{none:?}");
}

/// The capacitor problem of A-FEM, matrix-free, assembled with all algorithms and element by element. The potentials
/// agree below 1e-10 (the paper's methods differ by 1e-5), and so does the capacitance. Up to the effect of the
/// surrounding box, it is that of Palmer's formula with a plate's thickness, 64 + (1 + ln 128π + ln(2 + √3)) / π in
/// units of ε.
#[test]
fn a_capacitor_is_the_same_by_all_operators() {
    use std::f64::consts::PI;
    let edges = 1.0 + (128.0 * PI).ln() + (2.0 + 3.0_f64.sqrt()).ln();
    let textbook = 64.0 + edges / PI;
    let ways: [&[&str]; 8] = [
        &[],
        &["--operator", "assembled"],
        &["--assembly", "acoo"],
        &["--assembly", "pattern"],
        &["--assembly", "owner"],
        &["--assembly", "coloured"],
        &["--operator", "ebe-v1"],
        &["--operator", "ebe-v2"],
    ];
    let mut first = None;
    for way in ways {
        let solved = run("capacitor.wf", way);
        let reports = &solved[0]["reports"];
        let [energy, charge] = ["from_energy", "from_charge"].map(|name| number(reports, name));
        assert!((energy / textbook - 1.0).abs() < 1e-3, "{energy} {textbook} {way:?}");
        assert!((charge / energy - 1.0).abs() < 1e-4, "{charge} {energy} {way:?}");
        let across = reports["across"].as_array().expect("a line").iter();
        let across: Vec<f64> = across.map(|point| number(point, "value")).collect();
        assert_eq!(across.len(), 101, "{reports}");
        let found = [vec![energy, charge], across].concat();
        let wanted: &Vec<f64> = first.get_or_insert_with(|| found.clone());
        for (a, b) in found.iter().zip(wanted) {
            assert!((a - b).abs() < 1e-10 * (b.abs() + 24.0), "{a} is not {b}, {way:?}");
        }
    }
}

/// −∇·(κ∇u) = 1 with κ(r) = 1/(0.05 + 2r²) has the radial solution u' = −r/(3κ), hence
/// u(0) = ∫₀¹ r (0.05 + 2r²)/3 dr = (0.025 + 0.5)/3, and energy ½a(u,u) − (f,u) = −½∫u. With
/// u(r) = (0.025 (1 − r²) + 0.5 (1 − r⁴))/3: ∫u = 4π (0.025·(1/3 − 1/5) + 0.5·(1/3 − 1/7))/3.
#[test]
fn poisson_on_the_ball_has_the_energy_of_the_radial_solution() {
    let integral =
        4.0 * std::f64::consts::PI * (0.025 * (1.0 / 3.0 - 0.2) + 0.5 * (1.0 / 3.0 - 1.0 / 7.0))
            / 3.0;
    let energies: Vec<f64> = [2, 3]
        .iter()
        .map(|refine| {
            let mesh = format!("ball(dim: 3, refine: {refine}, order: 2)");
            let solved = run("poisson.wf", &["--mesh", &mesh]);
            number(&solved[0], "energy")
        })
        .collect();
    let differences: Vec<f64> = energies.iter().map(|e| (e + 0.5 * integral).abs()).collect();
    assert!(differences[1] < 1e-3 * integral, "{energies:?} against {}", -0.5 * integral);
    assert!(differences[1] < differences[0] / 4.0, "{differences:?}");
}

/// Returns the sum of the magnitudes of the smallest and largest values of all fields.
fn extent(fields: &Value) -> f64 {
    match fields {
        Value::Number(number) => number.as_f64().expect("a number").abs(),
        Value::Array(all) => all.iter().map(extent).sum(),
        Value::Object(all) => all.values().map(extent).sum(),
        _ => 0.0,
    }
}

/// With multigrid, each linear example takes at most a third of the iterations with the diagonal, to the same solution.
#[test]
fn levels_take_a_third_of_the_iterations() {
    let by = |file: &str, preconditioner: &str| {
        let solver = format!("cg(rtol: 1e-10, preconditioner: {preconditioner})");
        run(file, &["--solver", &solver])
    };
    let mut first = Vec::new();
    for file in
        ["poisson.wf", "poisson_unstructured.wf", "traction.wf", "capacitor.wf", "elasticity.wf"]
    {
        let (levels, diagonal) = (by(file, "multigrid"), by(file, "jacobi"));
        assert_eq!(levels.len(), diagonal.len());
        for (levels, diagonal) in levels.iter().zip(&diagonal) {
            let [few, many] = [levels, diagonal].map(|solved| number(solved, "iterations"));
            assert!(3.0 * few <= many, "{file}: {few} and {many}");
            assert!(levels["multigrid"]["levels"].as_array().is_some(), "{levels}");
            assert!(number(levels, "applications") > few, "{levels}");
            let [own, other] = [levels, diagonal].map(|solved| extent(&solved["fields"]));
            assert!((own - other).abs() <= 1e-7 * other, "{file}: {own} and {other}");
        }
        first = levels;
    }
    // Two identical runs agree bit for bit.
    let second = by("elasticity.wf", "multigrid");
    assert_eq!(first.len(), second.len());
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first["fields"], second["fields"]);
        assert_eq!(first["residual"], second["residual"]);
    }
}

#[test]
fn the_bracket_vibrates() {
    let found = run("vibration.wf", &[]);
    let values: Vec<f64> = found[0]["eigenvalues"]
        .as_array()
        .expect("eigenvalues")
        .iter()
        .map(|value| value.as_f64().expect("a number"))
        .collect();
    assert_eq!(values.len(), 5);
    assert!(values.is_sorted(), "{values:?}");
    // By LOBPCG with the diagonal, by shift-and-invert, and from a mesh refined once, which is softer.
    assert!((values[0] / 3.319_425_955e4 - 1.0).abs() < 1e-6, "{values:?}");
    let softer = run("vibration.wf", &["--refine", "1"]);
    let first = softer[0]["eigenvalues"][0].as_f64().expect("a number");
    assert!(first < values[0] && first > 0.95 * values[0], "{first} beside {values:?}");
    assert_eq!(softer[0]["solver"], "lanczos");
}

/// NAFEMS FV12 and FV16: the closed-form solutions of thin plates, approximated by degree 3 within two per cent on 16
/// cells.
#[test]
fn plates_of_nafems_vibrate() {
    let published: [&[f64]; 2] = [
        &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.622, 2.360, 2.922, 4.233, 4.233, 7.416],
        &[0.421, 1.029, 2.582, 3.306, 3.753, 6.555],
    ];
    let found = run("plates.wf", &["--degree", "3"]);
    for (found, published) in found.iter().zip(published) {
        let values = found["eigenvalues"].as_array().expect("eigenvalues");
        assert_eq!(values.len(), published.len());
        for (value, known) in values.iter().zip(published) {
            let omega = value.as_f64().expect("a number").max(0.0).sqrt();
            let hertz = omega / (2.0 * std::f64::consts::PI);
            let bound = if *known == 0.0 { 1e-2 } else { 0.02 * known };
            assert!((hertz - known).abs() < bound, "{hertz} beside {known}");
        }
    }
}

#[test]
fn interior_penalty_reproduces_layers_of_different_coefficients() {
    let solved = run("interior_penalty.wf", &[]);
    assert!(number(&solved[0], "error_l2") < SOLVED, "{solved:?}");
    assert!(number(&solved[0]["reports"], "jumps") < SOLVED, "{solved:?}");
    assert!(number(&solved[1], "iterations") > 1.0, "{solved:?}");
}

#[test]
fn layers_are_resolved_without_oscillations() {
    let solved = run("continuous_penalty.wf", &[]);
    // Without diffusion u = min(x, 2 y) / 2.
    let [lowest, highest] = ["lowest", "highest"].map(|name| number(&solved[0]["reports"], name));
    assert!(lowest > -1e-3 && (0.49..0.53).contains(&highest), "{lowest} {highest}");
}

#[test]
fn a_lossy_cylinder_absorbs_waves() {
    let solved = run("scattering.wf", &[]);
    // 5.594 on cells half as wide.
    let absorbed = number(&solved[0]["reports"], "absorbed");
    assert!((5.5..5.8).contains(&absorbed), "{absorbed}");
}

#[test]
fn the_flow_around_a_lens_conserves_mass_in_each_cell() {
    let solved = run("darcy.wf", &[]);
    let of = |name: &str| number(&solved[0]["reports"], name);
    assert!((of("inflow") / of("outflow") - 1.0).abs() < SOLVED, "{solved:?}");
    assert!((0.3..0.4).contains(&of("inflow")) && of("sources") < 1e-20, "{solved:?}");
}

/// A force of 10⁶ that a pressure balances does not change the flow under a lid, and leaves water at rest.
#[test]
fn a_flow_in_hdiv_ignores_balanced_forces() {
    let solved = run("stokes_hdiv.wf", &[]);
    let of = |number_of: usize, name: &str| number(&solved[number_of]["reports"], name);
    assert!(of(0, "sources") < 1e-10 && of(1, "size") < 1e-10, "{solved:?}");
    let light = run("stokes_hdiv.wf", &["--problem", "lid", "--param", "weight=0"]);
    let energy = number(&light[0]["reports"], "energy");
    assert!((of(0, "energy") / energy - 1.0).abs() < SOLVED, "{solved:?} {energy}");
}

/// The flow between wells of radius r: π/4 / (ln(√2/r) − ln K) up to terms of order r².
#[test]
fn a_five_spot_produces_what_is_injected() {
    let solved = run("five_spot.wf", &[]);
    let of = |name: &str| number(&solved[0]["reports"], name);
    let expected = std::f64::consts::FRAC_PI_4
        / ((std::f64::consts::SQRT_2 / 0.02).ln() - 1.854_074_677_301_37_f64.ln());
    assert!((of("produced") / expected - 1.0).abs() < 2e-5, "{solved:?}");
    assert!((of("injected") / of("produced") - 1.0).abs() < SOLVED, "{solved:?}");
    assert!(of("sources") < 1e-20, "{solved:?}");
}

#[test]
fn a_waveguide_without_losses_reflects_or_transmits() {
    let solved = run("waveguide.wf", &[]);
    let [reflected, transmitted] =
        ["reflected", "transmitted"].map(|name| number(&solved[0]["reports"], name));
    assert!((reflected + transmitted - 1.0).abs() < SOLVED, "{reflected} {transmitted}");
    assert!((0.2..0.5).contains(&reflected), "{reflected}");
}

/// The eigenvalues of Dauge's benchmark; the mode that is singular at the corner converges with the order 4/3.
#[test]
fn a_resonator_with_a_corner_has_its_eigenvalues() {
    let found = run("resonator.wf", &[]);
    let values = found[0]["eigenvalues"].as_array().expect("eigenvalues");
    let pi = std::f64::consts::PI;
    let known = [1.475_621_82, 3.534_031_37, pi * pi, pi * pi, 11.389_479_4];
    assert_eq!(values.len(), known.len());
    let bounds = [2e-3, 1e-5, 1e-6, 1e-6, 1e-6];
    for ((value, known), bound) in values.iter().zip(known).zip(bounds) {
        let value = value.as_f64().expect("a number");
        assert!((value / known - 1.0).abs() < bound, "{value} beside {known}");
    }
}

/// The rate of smooth solutions, N^(−k/2), at degree 2; on uniform meshes it is 1/3.
#[test]
fn the_field_at_an_edge_of_metal_is_refined_where_it_is_singular() {
    let found = run("adaptive_corner.wf", &[]);
    let steps = found[0]["steps"].as_array().expect("steps");
    let [middle, last] = [&steps[steps.len() - 6], &steps[steps.len() - 1]];
    let of = |key: &str| (number(last, key) / number(middle, key)).ln();
    let rate = -of("error_h1") / of("dofs");
    assert!((0.9..1.3).contains(&rate), "{rate}: {steps:?}");
    assert!(number(last, "estimate") < 2e-3, "{last}");
}

#[test]
fn a_coil_makes_a_field_along_its_axis() {
    let solved = run("coil.wf", &[]);
    let reports = &solved[0]["reports"];
    let field: Vec<f64> = (0..3).map(|c| reports["core"][c].as_f64().expect("a number")).collect();
    assert!(field[2] > 0.0 && number(reports, "energy") > 0.0, "{solved:?}");
    assert!(field[0].abs().max(field[1].abs()) < 1e-6 * field[2], "{field:?}");
    assert!(number(&solved[0], "iterations") < 15.0, "{solved:?}");
}

#[test]
fn a_bump_comes_around_as_it_left() {
    let solved = run("rotation.wf", &[]);
    // Its norm is 0.125.
    assert!(number(&solved[0], "error_l2") < 5e-4, "{solved:?}");
    let mass = number(&solved[0]["reports"], "mass");
    assert!((mass * 100.0 / std::f64::consts::PI - 1.0).abs() < 1e-3, "{mass}");
}

#[test]
fn a_vortex_keeps_its_shape() {
    let solved = run("euler.wf", &["--interpret"]);
    let errors = solved[0]["errors"].as_array().expect("an error for each field");
    for (error, most) in errors.iter().zip([2.5e-3, 8e-3, 1.3e-2]) {
        assert!(number(error, "l2") < most, "{error}");
    }
    assert_eq!(errors.len(), 3);
    let mass = number(&solved[0]["reports"], "mass");
    assert!((mass - 98.241_743_72).abs() < 1e-7, "{mass}");
}

#[test]
fn a_dam_breaks_as_stoker_computed() {
    let solved = run("shallow_water.wf", &[]);
    // The root of 2 (√2 − √h) = (h − 1) √((1 + 1/h) / 2) is the depth behind the front.
    let depth = number(&solved[0]["reports"], "front");
    assert!((depth - 1.4538).abs() < 3e-3, "{depth}");
    for (solved, volume) in solved.iter().zip([7.5e-3, 1.0 + 284.0 / 2304.0]) {
        let found = number(&solved["reports"], "volume");
        assert!((found - volume).abs() < 1e-12, "{found}");
    }
}

/// Timoshenko and Woinowsky-Krieger, "Theory of Plates and Shells", tables 8 and 35, with more digits.
#[test]
fn plates_bend_as_published() {
    let solved = run("plate.wf", &[]);
    for (solved, published) in solved.iter().zip([0.001_265_32, 0.004_062_35]) {
        let found = number(&solved["reports"], "middle");
        assert!((found / published - 1.0).abs() < 3e-5, "{found} {published}");
    }
    assert_eq!(solved.len(), 2);
}

#[test]
fn a_nearly_incompressible_beam_does_not_lock() {
    let tip = |value: &Value| value["reports"]["tip"][1].as_f64().expect("a displacement");
    let solved = run("locking.wf", &[]);
    let finer = run("locking.wf", &["--problem", "beam", "--degree", "3"]);
    let [locked, beam, known] = [&solved[0], &solved[1], &finer[0]].map(tip);
    assert!((beam / known - 1.0).abs() < 0.2, "{beam} {known}");
    assert!(locked / known < 0.2, "{locked} {known}");
}

#[test]
fn heat_crosses_a_contact_by_its_resistance() {
    let solved = run("contact.wf", &[]);
    let flux = number(&solved[0]["reports"], "flux");
    // Between that of the resistance everywhere and that without any.
    assert!(flux > 1.0 / 1.5 && flux < 1.0, "{flux}");
    assert!(number(&solved[1], "error_l2") < SOLVED, "{solved:?}");
    assert!((number(&solved[1]["reports"], "jump") - 1.0 / 3.0).abs() < SOLVED, "{solved:?}");
}

/// Kirsch's stresses at the hole: 3 along the tension, −1 across it (Kirsch 1898).
#[test]
fn the_stress_at_a_hole_is_three_times_the_tension() {
    let solved = run("kirsch.wf", &[]);
    let reports = &solved[0]["reports"];
    assert!((number(reports, "concentration") - 3.0).abs() < 5e-3, "{reports}");
    assert!((number(reports, "side") + 1.0).abs() < 5e-3, "{reports}");
    assert!((number(reports, "peak") - 3.0).abs() < 5e-3, "{reports}");
}

/// Far from the inlet a channel with a constant flux at both walls has the Nusselt number 140/17 (Shah and London 1978).
#[test]
fn a_channel_between_heated_plates_has_its_nusselt_number() {
    let solved = run("conjugate.wf", &[]);
    let reports = &solved[0]["reports"];
    assert!((number(reports, "nusselt") / (140.0 / 17.0) - 1.0).abs() < 1e-3, "{reports}");
    // The velocity lives in the fluid, the temperature everywhere.
    assert_eq!(solved[0]["dofs"], 5796);
}

/// A table of Brauer's formula gives its flux: the limb between air and steel (Brauer 1975).
#[test]
fn a_table_of_steel_gives_the_flux_of_its_formula() {
    let solved = run("steel.wf", &[]);
    let [table, formula] = [0, 1].map(|at| number(&solved[at]["reports"], "flux"));
    assert!((table / formula - 1.0).abs() < 1e-4, "{table} {formula}");
    let [table, formula] = [0, 1].map(|at| number(&solved[at]["reports"], "largest"));
    assert!((table / formula - 1.0).abs() < 1e-3, "{table} {formula}");
}

/// A cube of metal walls has the eigenvalues π² (l² + m² + n²): one of the numbers may be 0, and two modes have none.
#[test]
fn a_cube_has_its_eigenvalues() {
    let found = run("cube.wf", &[]);
    let values = found[0]["eigenvalues"].as_array().expect("eigenvalues");
    let known = [2, 2, 2, 3, 3, 5, 5, 5, 5, 5, 5];
    assert_eq!(values.len(), known.len());
    for (value, known) in values.iter().zip(known) {
        let ratio = value.as_f64().expect("a number") / std::f64::consts::PI.powi(2);
        let bound = if known < 5 { 1e-5 } else { 2e-4 };
        assert!((ratio / f64::from(known) - 1.0).abs() < bound, "{ratio} instead of {known}");
    }
}

/// The field in a conductor of the sides a and b is 1 − Σ 16 κ² / (π² m n (κ² + λ)) sin sin, with κ² = iω, odd m and n and
/// λ = (mπ/a)² + (nπ/b)². Its integral gives the losses, ω/2 times its negative imaginary part.
#[test]
fn eddy_currents_heat_a_plate_as_the_series_says() {
    let pi = std::f64::consts::PI;
    let (a, b, omega) = (4.0, 1.0, 32.0);
    let odd = || (0..200).map(|i| f64::from(2 * i + 1));
    let term = |(m, n): (f64, f64)| {
        let lambda = (m * pi / a).powi(2) + (n * pi / b).powi(2);
        // The imaginary part of iω / (iω + λ).
        omega * lambda / (omega * omega + lambda * lambda) / (m * n).powi(2)
    };
    let sum: f64 = odd().flat_map(|m| odd().map(move |n| (m, n))).map(term).sum();
    let expected = omega / 2.0 * 64.0 * a * b / pi.powi(4) * sum;
    let found = run("eddy_plate.wf", &[]);
    let losses = number(&found[0]["reports"], "losses");
    assert!((losses / expected - 1.0).abs() < 1e-5, "{losses} instead of {expected}");
    assert!(number(&found[0], "iterations") < 40.0, "{}", found[0]);
    assert_eq!(found[0]["solver"], "fgmres", "{}", found[0]);
}

/// MFEM's example 36: the exact solution with the contact radius 0.348982574111686. The whole force is that of the
/// outer flux, 2π · 0.340129705945858.
#[test]
fn a_membrane_on_a_ball_converges_to_the_exact_contact() {
    let solved = [&[][..], &["--refine", "1"]].map(|more| run("obstacle.wf", more)[0].clone());
    let errors = solved.each_ref().map(|found| number(found, "error_l2"));
    assert!(errors[0] < 6e-4 && errors[0] / errors[1] > 3.0, "{errors:?}");
    for (found, bound) in solved.iter().zip([2e-3, 7e-4]) {
        let [force, law] = ["force", "law"].map(|name| number(&found["reports"], name));
        assert!((force / law - 1.0).abs() < bound, "{force} {law}");
    }
}

/// The fold of Bratu's equation on a square is known to be at 6.808124; that on a disc and both branches are known exactly.
#[test]
fn a_fuel_ignites_on_both_branches() {
    let solved = run("bratu.wf", &[]);
    let notes = solved[0]["notes"].to_string();
    let fold = notes.split("lambda = ").nth(1).and_then(|rest| rest.get(..8)).expect("a fold");
    let fold: f64 = fold.parse().expect("a number");
    assert!((fold - 6.808124).abs() < 3e-6, "{notes}");
    // Chebyshev collocation of degree 28, with the value at the centre as the parameter.
    let hot = number(&solved[0]["reports"], "peak");
    assert!((hot - 2.845_944_9).abs() < 3e-6, "{hot}");
    let [peak, law] = ["peak", "law"].map(|name| number(&solved[1]["reports"], name));
    assert!((peak / law - 1.0).abs() < 1e-8, "{peak} {law}");
    let cold = run("bratu.wf", &["--problem", "disc", "--solver", "newton"]);
    let expected = 2.0 * (4.0 - 8.0_f64.sqrt()).ln();
    let peak = number(&cold[0]["reports"], "peak");
    assert!((peak / expected - 1.0).abs() < 1e-7, "{peak} {expected}");
}
/// The front moves, and the mesh with it: with a smaller error than on a uniform mesh of more unknowns.
#[test]
fn the_mesh_follows_the_front() {
    let folder = tempfile::tempdir().expect("a folder");
    let solved = |cells: &str, adapt: &str| {
        let text = std::fs::read_to_string(examples().join("front.wf")).expect("a file");
        let text = text.replace("to: 1.1", "to: 0.74").replace("cells: 6", cells);
        let file = folder.path().join("front.wf");
        std::fs::write(&file, text.replace("adapt(every: 8, levels: 4);", adapt)).expect("a file");
        run(&file.to_string_lossy(), &[]).remove(0)
    };
    let followed = solved("cells: 6", "adapt(every: 8, levels: 4);");
    let uniform = solved("cells: 40", "");
    let steps = followed["steps"].as_array().expect("a list");
    let most = steps.iter().map(|step| number(step, "dofs")).fold(0.0, f64::max);
    assert!(steps.len() == 2 && most < number(&uniform, "dofs"), "{most}: {}", uniform["dofs"]);
    for name in ["error_l2", "error_h1"] {
        let [found, known] = [&followed, &uniform].map(|value| number(value, name));
        assert!(found < 0.5 * known, "{name}: {found} and {known}");
    }
}

/// The film is a part of a sphere: the height follows from its volume, and the pressure from the height.
#[test]
fn the_film_has_the_pressure_of_its_sphere() {
    let solved =
        &run("film.wf", &["--degree", "4", "--mesh", "ball(dim: 2, refine: 1, order: 4)"])[0];
    let report = |name: &str| number(&solved["reports"], name);
    let h = report("top");
    let volume = std::f64::consts::PI * h * (3.0 + h * h) / 6.0;
    assert!((volume - 0.85).abs() < 1e-5, "{solved}");
    assert!((report("pressure") - 4.0 * h / (1.0 + h * h)).abs() < 1e-4, "{solved}");
    // The area of the mesh differs from π.
    assert!((report("volume") - 0.85).abs() < 1e-7, "{solved}");
}

/// The temperature is that of the first problem, and strains the plate without stress.
#[test]
fn the_heated_plate_expands_without_stress() {
    let solved = run("thermal.wf", &[]);
    assert_eq!(solved.len(), 2);
    assert!(number(&solved[1], "error_l2") < SOLVED, "{solved:?}");
    // Alone it solves the first problem, too.
    let alone = run("thermal.wf", &["--problem", "plate", "--degree", "3"]);
    assert!(number(&alone[0], "error_l2") < SOLVED, "{alone:?}");
}

/// Ghia, Ghia and Shin (1982), tables I and II at Re = 100; the projection has an error of first order in the step.
#[test]
fn chorins_projection_finds_the_steady_flow_of_the_cavity() {
    let solved = run("projection.wf", &[]);
    assert_eq!(solved.len(), 1, "stages are no problems of their own");
    let at = |name: &str, component: usize| {
        let values = &solved[0]["reports"][name];
        values[component].as_f64().unwrap_or_else(|| panic!("{name} in {}", solved[0]))
    };
    let known = [
        ("middle", 0, -0.20581),
        ("lower", 0, -0.21090),
        ("middle", 1, 0.05454),
        ("right", 1, -0.24533),
    ];
    for (name, component, known) in known {
        let found = at(name, component);
        assert!((found - known).abs() < 0.01, "{name}: {found} instead of {known}");
    }
}

/// The estimate ends below 1e-3, and the layer of width 0.01 is resolved; the eigenvalues of the string are k².
#[test]
fn lines_resolve_layers_and_vibrate() {
    let solved = run("line.wf", &[]);
    assert!(number(&solved[0], "error_l2") < 1e-5, "{}", solved[0]);
    assert!(number(&solved[0], "error_h1") < 0.01, "{}", solved[0]);
    let values = solved[1]["eigenvalues"].as_array().expect("eigenvalues");
    for (k, value) in [1.0, 4.0, 9.0, 16.0].into_iter().zip(values) {
        let found = value["value"].as_f64().or(value.as_f64()).expect("a number");
        assert!((found / k - 1.0).abs() < 1e-8, "{value}, not {k}");
    }
}

/// The plate against Navier's double series, the string against Green's function.
#[test]
fn loads_at_points_bend_as_their_series() {
    let solved = run("points.wf", &[]);
    let odd = || (1..400).step_by(2).map(f64::from);
    let terms = odd().flat_map(|m| odd().map(move |n| (m * m + n * n).powi(-2)));
    let series = 4.0 / std::f64::consts::PI.powi(4) * terms.sum::<f64>();
    let middle = number(&solved[0]["reports"], "middle");
    assert!((middle / series - 1.0).abs() < 2e-3, "{middle}, not {series}");
    let green = |x: f64, at: f64| x.min(at) * (1.0 - x.max(at));
    let [node, left] = ["node", "left"].map(|name| number(&solved[1]["reports"], name));
    let x = 4.0 / 7.0;
    assert!((node - green(x, 0.3) - 2.0 * green(x, 0.85)).abs() < 1e-10, "{node}");
    assert!((left + 0.7 + 2.0 * 0.15).abs() < 1e-10, "{left}");
}

/// The ground holds the force of the flow on the wall; the flow is mirrored about the wall, and p with the opposite sign.
#[test]
fn the_wall_carries_the_flow() {
    let solved = &run("fluid_structure.wf", &["--refine", "1"])[0];
    let vector = |name: &str| {
        let own = solved["reports"][name].as_array().expect("a vector");
        own.iter().map(|value| value.as_f64().expect("a number")).collect::<Vec<f64>>()
    };
    let (force, ground) = (vector("force"), vector("ground"));
    assert!(force[0] < -2.5 && (ground[0] / force[0] - 1.0).abs() < 0.1, "{force:?} {ground:?}");
    assert!(force[1].abs() + ground[1].abs() < 1e-9, "{force:?} {ground:?}");
}
