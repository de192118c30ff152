//! `wf emit`: every stage has output, and the source is one file that `rustc` or `cc` compiles separately.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn form(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/forms").join(name)
}

fn emit(name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.arg("emit").arg(form(name)).args(arguments).output().expect("wf should start")
}

fn text(name: &str, arguments: &[&str]) -> String {
    let output = emit(name, arguments);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {log}");
    String::from_utf8(output.stdout).expect("text")
}

/// Compiles a file without a project: no edition, no flags except for warnings.
fn compiles(source: &Path) {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc)
        .args(["--crate-type", "lib", "-Dwarnings", "--out-dir"])
        .arg(source.parent().expect("a folder"))
        .arg(source)
        .output()
        .expect("rustc should start");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && log.is_empty(), "{}: {log}", source.display());
}

/// Compiles all tasks and precisions on one cell.
fn sources_compile(cell: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let isas = if cfg!(target_arch = "x86_64") {
        &["avx512", "avx2", "portable"][..]
    } else {
        &["portable"]
    };
    for precision in ["f64", "f32"] {
        for (task, isa) in ["residual", "jacobian", "diagonal"].iter().zip(isas.iter().cycle()) {
            let file = folder.path().join(format!("{cell}_{precision}_{task}.rs"));
            let path = file.to_str().expect("a name");
            let said = text(
                "poisson.wf",
                &["--target", "rust", "--cell", cell, "--degree", "2", "--task", task]
                    .iter()
                    .chain(&["--precision", precision, "--isa", isa, "--output", path])
                    .copied()
                    .collect::<Vec<_>>(),
            );
            assert_eq!(said.trim(), path);
            compiles(&file);
            let source = std::fs::read_to_string(&file).expect("the source");
            let word = if *task == "jacobian" { "action" } else { task };
            assert!(source.contains(&format!("pub mod poisson_{word}_{cell}_2")), "{source}");
            assert!(source.contains(&format!("type T = {precision};")));
            // It contains its description: the form, the plan, the counts.
            for part in ["// form poisson {", "do not edit", "flops", "geometry: "] {
                assert!(source.contains(part), "{part}: {source}");
            }
        }
    }
}

/// `rustc` has the C compiler as its linker.
#[test]
fn sources_in_c_compile_without_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let x86: &[(&str, &str, &str, &[&str])] = &[
        ("hex", "f64", "avx512", &["-mavx512f", "-mavx512dq", "-mavx512vl", "-mfma"]),
        ("tri", "f32", "avx2", &["-mavx2", "-mfma", "-mbmi2"]),
        ("quad", "f64", "portable", &[]),
    ];
    let here = if cfg!(target_arch = "x86_64") { x86 } else { &x86[2..] };
    for (cell, precision, isa, flags) in here {
        let file = folder.path().join(format!("{cell}.c"));
        let path = file.to_str().expect("a name");
        let setting = ["--cell", cell, "--precision", precision, "--isa", isa, "--output", path];
        text("poisson.wf", &[&["--target", "gnu"][..], &setting].concat());
        let output = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", "-c", path])
            .args(["-ffp-contract=off", "-fno-math-errno", "-o"])
            .arg(file.with_extension("o"))
            .args(*flags)
            .output()
            .expect("cc should start");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && log.is_empty(), "{path}: {log}");
    }
}

#[test]
fn sources_on_triangles_compile_alone() {
    sources_compile("tri");
}

#[test]
fn sources_on_tetrahedra_compile_alone() {
    sources_compile("tet");
}

#[test]
fn sources_on_quadrilaterals_compile_alone() {
    sources_compile("quad");
}

#[test]
fn sources_on_hexahedra_compile_alone() {
    sources_compile("hex");
}

#[test]
fn all_kernels_of_a_form_make_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kernels.rs");
    let source = text("elasticity_constant.wf", &["--cell", "quad", "--degree", "3"]);
    for task in ["residual", "action", "diagonal"] {
        assert!(source.contains(&format!("pub mod elasticity_{task}_quad_3")), "{task}");
    }
    std::fs::write(&file, source).expect("written");
    compiles(&file);
}

/// Degrees of freedom of a facet belong to two cells, which may see it with opposite orientations.
#[test]
fn kernels_of_vector_spaces_read_signs_and_compile() {
    let folder = tempfile::tempdir().expect("a folder");
    let (form, file) = (folder.path().join("mixed.wf"), folder.path().join("kernels.rs"));
    let darcy = "form mixed {
            field u: vector in Hdiv(k); field p: scalar in L2(k);
            f0[u] = u; f1[u] = -p; f0[p] = -div(u);
        }";
    std::fs::write(&form, darcy).expect("written");
    let form = form.to_str().expect("text");
    for cell in ["tri", "tet", "quad", "hex"] {
        for target in ["rust", "gnu", "cuda", "opencl"] {
            let source = text(form, &["--cell", cell, "--degree", "1", "--target", target]);
            assert!(source.contains("u_signs"), "{target} on {cell}");
            if target == "rust" {
                std::fs::write(&file, source).expect("written");
                compiles(&file);
            }
        }
    }
}

#[test]
fn each_stage_shows_what_it_made() {
    for (stage, parts) in [
        ("parse", ["Form {", "kappa"]),
        ("check", ["form poisson", "kappa"]),
        ("differentiate", ["form poisson", "kappa"]),
        ("simplify", ["form poisson", "kappa"]),
        ("point", ["residual", "action"]),
        ("plan", ["poisson_action_hex_2", "flops"]),
        ("lower", ["kernel poisson_action_hex_2", "gather u"]),
        ("legalise", ["kernel poisson_action_hex_2", "gather u"]),
        ("print", ["pub mod poisson_action_hex_2", "pub unsafe fn run("]),
    ] {
        let shown = text("poisson.wf", &["--stage", stage]);
        for part in parts {
            assert!(shown.contains(part), "{stage} without {part:?}:\n{shown}");
        }
        let json = text("poisson.wf", &["--stage", stage, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["stage"], stage);
        assert_eq!(json["text"], shown);
    }
    // A degree that does not show in the form's text shows in the kernels.
    assert_ne!(
        text("poisson.wf", &["--stage", "lower"]),
        text("poisson.wf", &["--stage", "legalise"])
    );
}

#[test]
fn tables_that_a_launch_hands_over_follow_the_source() {
    let arguments = ["--target", "opencl", "--cell", "tet", "--degree", "4", "--task", "jacobian"];
    let text = text("poisson.wf", &arguments);
    assert!(text.contains("tables["), "no table is read from an argument");
    let (_, behind) = text.rsplit_once("\n// The ").expect("the numbers of a kernel");
    let (head, numbers) = behind.split_once(":\n").expect("a list");
    let (count, name) = head.split_once(" numbers of `tables` for ").expect("a head");
    assert!(text.contains(&format!(" {name}(")), "{name} is no kernel");
    let found = numbers.replace("//", "").replace('\n', " ");
    let found = found.split(',').map(str::trim).filter(|number| !number.is_empty());
    let found: Vec<f64> = found.map(|number| number.parse().expect("a number")).collect();
    assert_eq!(Ok(found.len()), count.parse(), "{head}");
    assert!(found.len() > 1000 && found.iter().all(|number| number.is_finite()));
}

#[test]
fn the_same_text_each_time() {
    let once = text("nonlinear_diffusion.wf", &["--cell", "tet", "--degree", "2"]);
    assert_eq!(once, text("nonlinear_diffusion.wf", &["--cell", "tet", "--degree", "2"]));
}

#[test]
fn results_are_written_as_asked() {
    for (scatter, expected) in [
        ("atomic", "atomic_add(&result["),
        ("coloured", "] += "),
        ("owner", "cells[("),
        ("block", "sums["),
    ] {
        let arguments =
            ["--target", "cuda", "--cell", "tet", "--degree", "1", "--scatter", scatter];
        let text = text("poisson.wf", &[&arguments[..], &["--task", "jacobian"]].concat());
        assert!(text.contains(expected), "{scatter}: {text}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    for (name, arguments, code, expected) in [
        ("poisson.wf", ["--stage", "kernel"], 2, "the stages are parse, check, differentiate"),
        ("poisson.wf", ["--form", "poison"], 1, "did you mean `poisson`?"),
        ("three_ways.wf", ["--stage", "point"], 1, "there are several forms: a, b, c"),
        ("poisson.wf", ["--degree", "13"], 1, "degrees 1 to 12"),
        ("stokes.wf", ["--degree", "1"], 1, "`p` would have degree 0"),
        ("poisson.wf", ["--scatter", "block"], 1, "--scatter is for kernels of GPUs"),
        ("poisson.wf", ["--isa", "sse"], 2, "expected avx512, avx2 or portable"),
    ] {
        let output = emit(name, &arguments);
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {log}");
        assert!(log.contains(expected), "{arguments:?}: {log}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn numbers_beyond_single_precision_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("large.wf");
    let text = "form large { field u: scalar; f1[u] = 1e300 * grad(u); }";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("a name");
    for target in ["rust", "cuda", "opencl"] {
        let run = |precision: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
            let arguments = ["emit", file, "--cell", "quad", "--target", target, "--precision"];
            command.args(arguments).arg(precision).output().expect("wf should start")
        };
        let output = run("f32");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{target}");
        assert!(said.contains("1e300 is beyond the range of single precision"), "{said}");
        assert!(said.contains("help: "), "{said}");
        assert!(run("f64").status.success(), "{target}");
    }
}

#[test]
fn numbers_that_vanish_in_single_precision_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("small.wf");
    let text = "form small { field u: scalar; f0[u] = u - 1e-60; f1[u] = grad(u); }";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("a name");
    for target in ["rust", "cuda", "opencl"] {
        let run = |precision: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
            let arguments = ["emit", file, "--cell", "quad", "--target", target, "--precision"];
            command.args(arguments).arg(precision).output().expect("wf should start")
        };
        let output = run("f32");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{target}");
        assert!(said.contains("1e-60 is 0 in single precision"), "{said}");
        assert!(said.contains("help: "), "{said}");
        assert!(run("f64").status.success(), "{target}");
    }
}
