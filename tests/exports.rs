//! `wf emit --target petsc`, `--target libceed` and `--target c`: forms without a counterpart are refused by name, and
//! the command line prints headers and drivers. `.ci/exports` compiles and runs them with the libraries.

use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use std::path::Path;
use std::process::{Command, Output};
use weakform::{Export, ExportError, Library, export_program};

const LIBRARIES: [Library; 2] = [Library::Petsc, Library::LibCeed];

fn program(text: &str) -> Program {
    let (program, found) = compile(&Source::new("form", text));
    program.unwrap_or_else(|| panic!("{text}: {found:?}"))
}

fn header(text: &str, library: Library) -> Result<String, weakform::Error> {
    export_program(&program(text), &Export::new(library).dim(2))
}

/// The reason and the remedy.
fn refusal(text: &str, library: Library) -> (String, String) {
    match header(text, library) {
        Err(weakform::Error::Export(ExportError::Refused { reason, remedy, .. })) => {
            (reason, remedy)
        }
        other => panic!("{text} should be refused, but gives {other:?}"),
    }
}

#[test]
fn terms_without_a_counterpart_are_named() {
    let both = [
        (
            "field u: scalar in L2(k); f0[u] = u; on interior { f0[jump(u)] = jump(u); }",
            "on interior",
        ),
        ("field u: scalar; let H = grad(grad(u)); energy = inner(H, H) / 2;", "second derivatives"),
        ("field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E);", "`E` is in Hcurl(k)"),
        ("field q: vector in Hdiv(k); f0[q] = q;", "`q` is in Hdiv(k)"),
        (
            "field u: scalar; field p: scalar in R; f0[u] = u - p; f0[p] = u - 1;",
            "`p` is one number",
        ),
        ("field u: scalar on \"fluid\"; f0[u] = u;", "`u` lives on some of the cells"),
        ("field u: scalar; aux w: scalar on points; f0[u] = u - w;", "`w` is data at quadrature"),
        (
            "field u: scalar; state w: scalar on points = 0; update w = u; f0[u] = u - w;",
            "`w` is data",
        ),
        ("field u: scalar; f0[u] = h * u;", "it has `h`"),
        (
            "field u: scalar; f0[u] = u; on boundary \"a\" { f0[u] = penalty(u) * u; }",
            "`penalty(…)`",
        ),
    ];
    let petsc = [
        ("field u: scalar; f0[u] = dt(dt(u));", "dt(dt(u))"),
        ("field u: scalar; f0[u] = u; f1[u] = grad(dt(u));", "grad(dt(u))"),
    ];
    for library in LIBRARIES {
        let own = if library == Library::Petsc { &petsc[..] } else { &[] };
        for (items, name) in both.iter().chain(own) {
            let (reason, remedy) = refusal(&format!("form f {{ {items} }}"), library);
            assert!(reason.contains(name), "{items}: {reason}");
            assert!(!remedy.is_empty(), "{items}");
        }
    }
    for (items, _) in petsc {
        let header = header(&format!("form f {{ {items} }}"), Library::LibCeed).expect("a header");
        assert!(header.contains("per_dt"), "{header}");
    }
}

/// A header of kernels has more counterparts than one of the physics at a point.
#[test]
fn c_refuses_what_has_no_batches() {
    let refused = [
        (
            "field u: scalar in L2(k); f0[u] = u; on interior { f0[jump(u)] = jump(u); }",
            "on interior",
        ),
        ("field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E);", "`E` is in Hcurl(k)"),
        (
            "field u: scalar; field p: scalar in R; f0[u] = u - p; f0[p] = u - 1;",
            "`p` is one number",
        ),
    ];
    for (items, name) in refused {
        let (reason, remedy) = refusal(&format!("form f {{ {items} }}"), Library::C);
        assert!(reason.contains(name) && !remedy.is_empty(), "{items}: {reason}");
    }
    let own = "field u: scalar on \"fluid\"; aux w: scalar on points; \
               f0[u] = h * u - w + dt(dt(u)); \
               on boundary \"a\" { f0[u] = penalty(u) * u; }";
    let header = header(&format!("form f {{ {own} }}"), Library::C).expect("a header");
    for part in
        ["double diameter[f_WIDTH]", "double w[f_POINTS][f_WIDTH]", "per_dt2", "const int facet["]
    {
        assert!(header.contains(part), "{part}: {header}");
    }
}

/// With s = 0 the rate of a residual is u_t alone; a Jacobian takes the rest of it from u_t − s u.
#[test]
fn rates_are_those_of_petsc() {
    let text = "form f { field u: scalar; f0[u] = 3 * dt(u)^2; }";
    let header = header(text, Library::Petsc).expect("a header");
    let (residual, jacobian) = header.split_once("f_g0_u_u(").expect("a Jacobian");
    assert!(residual.contains("f0[0] = 3.0 * (u_t[0] * u_t[0]);"), "{residual}");
    assert!(jacobian.contains("(u_t[0] - u_tShift * u[0])"), "{jacobian}");
}

/// Names of the form are identifiers of C that do not hide the arguments of the function.
#[test]
fn names_are_safe() {
    let text = "form int { field x1: scalar; param double = 2; param constants = 3; \
                let u_x = double * constants * x1; f0[x1] = u_x * u_x; }";
    let header = header(text, Library::Petsc).expect("a header");
    for line in [
        "const PetscScalar double_ = constants[0];",
        "const PetscScalar constants_2 = constants[1];",
        "PetscErrorCode int_setup(PetscDS ds)",
    ] {
        assert!(header.contains(line), "{line}: {header}");
    }
    assert!(!header.contains("PetscScalar u_x ="), "{header}");
}

fn wf(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.current_dir(root).arg("emit").args(arguments).output().expect("wf should start")
}

#[test]
fn the_command_line_prints_headers_drivers_and_refusals() {
    for (target, function) in [
        ("petsc", "poisson_setup("),
        ("libceed", "poisson_register("),
        ("c", "poisson_residual_cells("),
    ] {
        for (option, value, contents) in
            [("--dim", Some("2"), "poisson_DIM = 2"), ("--driver", None, "#include \"poisson.h\"")]
        {
            let file = "tests/forms/poisson.wf";
            let arguments = [file, "--target", target, option].into_iter().chain(value);
            let output = wf(&arguments.collect::<Vec<_>>());
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && output.stderr.is_empty(), "{target} {option}");
            assert!(
                text.contains(contents) && text.contains(function),
                "{target} {option}: {text}"
            );
        }
    }
    let refused = wf(&["tests/forms/bending.wf", "--target", "petsc"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && text.contains("has no counterpart in PETSc"), "{text}");
    assert!(text.contains("help: "), "{text}");
    for (target, option, value) in
        [("petsc", "--isa", "avx2"), ("libceed", "--order", "2"), ("c", "--task", "residual")]
    {
        let idle = wf(&["tests/forms/poisson.wf", "--target", target, option, value]);
        let text = String::from_utf8_lossy(&idle.stderr);
        assert!(idle.status.success() && text.contains(option), "{text}");
    }
    let output =
        wf(&["tests/forms/poisson.wf", "--target", "c", "--cell", "tri", "--precision", "f32"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty());
    for part in ["poisson_VERTICES = 3", "float u[poisson_u_NODES]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
