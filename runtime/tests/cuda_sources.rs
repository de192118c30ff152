//! CUDA sources compile for the architectures of the A100 and the H100, with NVRTC and without a GPU. Without NVRTC the
//! test is skipped; `WF_REQUIRE=nvrtc` makes that a failure.

use fem_bench::CASES;
use fem_dsl::problem::Quadrature;
use fem_dsl::program::compile as compile_form;
use fem_dsl::source::Source;
use kernels_gen::abi::Precision;
use kernels_gen::choose::{MeshFacts, PlanOverrides, choose_for_threads};
use kernels_gen::dialect::c::rows::rows_times_vector;
use kernels_gen::dialect::c::slices::slices_times_vector;
use kernels_gen::dialect::c::sum::{sum_of_cells, sum_of_cells_alone};
use kernels_gen::dialect::cuda::CUDA;
use kernels_gen::element::{Cell, Rule};
use kernels_gen::generate::{elements, generate_for_threads};
use kernels_gen::plan::{Elements, Plan, Scatter, Strategy, Task};
use runtime::device::cuda::{
    CudaError, ThreadResources, compile, compile_parts, compile_through, find_nvrtc, peer_kernels,
    resources,
};
use runtime::device::jit::{Environment, Jit};
use runtime::device::{Arithmetic, LinkedRows, RowAssignment, linked_rows};
use runtime::kernels::rates::device::rates_source;

const FORMS: [&str; 3] = [
    "form f { field u: scalar; let kappa = 1 / (0.05 + 2 * dot(x, x)); f0[u] = -sin(x[0]); f1[u] = kappa * grad(u); }",
    "form f { field u: vector; param lambda = 1; let eps = sym(grad(u)); f1[u] = lambda * tr(eps) * I + 2 * eps; }",
    "form f { field u: scalar; aux c: scalar on nodes; f0[u] = c * max(u, 0)^3; f1[u] = (1 + u^2) * grad(u); }",
];

/// Returns whether the tests can run.
fn nvrtc() -> bool {
    let required = std::env::var("WF_REQUIRE").unwrap_or_default();
    let required = required.split([' ', ',']).any(|name| name == "nvrtc");
    let found = find_nvrtc();
    assert!(found || !required, "NVRTC is required and missing: {}", CudaError::NoCompiler);
    if !found {
        eprintln!("skipped: there is no NVRTC");
    }
    found
}

#[test]
fn kernels_compile_for_every_cell_precision_and_task() {
    if !nvrtc() {
        return;
    }
    let (mut kernels, mut lines) = (0, 0);
    for (cell, degrees) in [
        (Cell::Quadrilateral, vec![1, 2]),
        (Cell::Hexahedron, vec![1, 4]),
        (Cell::Triangle, vec![1, 3]),
        (Cell::Tetrahedron, vec![1, 2]),
    ] {
        for degree in degrees {
            for (number, text) in FORMS.iter().enumerate() {
                // The scalar form has the higher degree of each cell, the others the lower.
                if (number == 0) == (degree == 1) {
                    continue;
                }
                let (program, found) = compile_form(&Source::new("form.wf", *text));
                assert!(found.iter().all(|found| !found.is_error()), "{found:?}");
                let form = program.expect("a form").point_form("f", cell.dim()).expect("a form");
                let elements = elements(&form, cell, degree, 1, None).expect("elements");
                let tasks = [Task::Residual, Task::Action, Task::Diagonal];
                let affine = !cell.is_tensor();
                // Those of vectors take a minute.
                let hanging = cell.is_tensor() && number == 2;
                let facts = MeshFacts { affine, hanging, ..MeshFacts::default() };
                let precision = if number == 1 { Precision::F32 } else { Precision::F64 };
                let wishes = PlanOverrides::default();
                let plans =
                    choose_for_threads(&form, &elements, &facts, &tasks, precision, &wishes)
                        .expect("plans");
                let of_lines = |s: Strategy| matches!(s, Strategy::ThreadPerLine { .. });
                lines += plans.iter().filter(|plan| of_lines(plan.strategy)).count();
                kernels += plans.len();
                let source =
                    generate_for_threads(&form, &elements, &plans, &CUDA).expect("a source");
                let older = number == 2 && cell.dim() == 2;
                let archs: &[&str] = if older { &["sm_80", "sm_90"] } else { &["sm_90"] };
                for arch in archs {
                    let image = compile(&source.text, arch);
                    let image = image.unwrap_or_else(|error| panic!("{cell} {degree}: {error}"));
                    assert!(image.starts_with(b"\x7fELF"), "no code for {arch}");
                }
            }
        }
    }
    assert!(kernels >= 36 && lines >= 3, "{kernels} kernels, {lines} with a thread a line");
}

/// Compiles kernels between cells: with a thread for each pair, or for each point of its facet.
#[test]
fn kernels_between_cells_compile() {
    if !nvrtc() {
        return;
    }
    let text = "form f { field u: vector(2) in L2(k); f1[u] = grad(u); \
         on interior { energy = avg(penalty(u)) * dot(jump(u), jump(u)) - dot(avg(grad(u)) * n, jump(u)); } }";
    let cases = [
        (Cell::Quadrilateral, 3, 1, false),
        (Cell::Hexahedron, 2, 2, true),
        (Cell::Hexahedron, 3, 1, true),
        (Cell::Tetrahedron, 1, 1, false),
    ];
    for (cell, degree, order, shares) in cases {
        let (program, _) = compile_form(&Source::new("form.wf", text));
        let form = program.expect("a form").point_form("f", cell.dim()).expect("a form");
        // As many points as nodes in each direction.
        let rule = Some(Quadrature::Degree(2 * degree));
        let elements = elements(&form, cell, degree, order, rule).expect("elements");
        let facts = MeshFacts { affine: !cell.is_tensor(), order, ..MeshFacts::default() };
        let (tasks, wishes) = ([Task::Residual, Task::Action], PlanOverrides::default());
        let plans = choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &wishes);
        let plans = plans.expect("plans");
        let pairs = plans.iter().filter(|plan| plan.integral == 1);
        let lines = |plan: &Plan| matches!(plan.strategy, Strategy::ThreadPerLine { .. });
        let found: Vec<bool> = pairs.map(lines).collect();
        assert_eq!(found, [shares; 2], "{cell} {degree}");
        let source = generate_for_threads(&form, &elements, &plans, &CUDA).expect("a source");
        let image = compile(&source.text, "sm_90");
        let image = image.unwrap_or_else(|error| panic!("{cell} {degree}: {error}"));
        assert!(image.starts_with(b"\x7fELF"), "{cell} {degree}");
    }
}

/// Compiles storage, scatter and products of element matrices, and the assembly of rows.
#[test]
fn element_matrices_compile() {
    if !nvrtc() {
        return;
    }
    let tasks = [Task::Matrix, Task::StoredProduct, Task::MatrixProduct];
    let cases = [
        (Cell::Hexahedron, 1, 0),
        (Cell::Hexahedron, 2, 2),
        (Cell::Quadrilateral, 2, 2),
        (Cell::Triangle, 2, 1),
        (Cell::Tetrahedron, 1, 0),
    ];
    for (cell, degree, number) in cases {
        let (program, _) = compile_form(&Source::new("form.wf", FORMS[number]));
        let form = program.expect("a form").point_form("f", cell.dim()).expect("a form");
        let elements = elements(&form, cell, degree, 1, None).expect("elements");
        let (affine, hanging) = (!cell.is_tensor(), cell == Cell::Quadrilateral);
        let facts = MeshFacts { affine, hanging, ..MeshFacts::default() };
        let scatter = if degree == 1 { Scatter::Atomic } else { Scatter::Owner };
        let wishes = PlanOverrides { matrix: Some(scatter), ..PlanOverrides::default() };
        let plans = choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &wishes);
        let source = generate_for_threads(&form, &elements, &plans.expect("plans"), &CUDA);
        let source = source.expect("a source");
        let image = compile(&source.text, "sm_90");
        let image = image.unwrap_or_else(|error| panic!("{cell} {degree}: {error}"));
        assert!(image.starts_with(b"\x7fELF"), "{cell} {degree}");
    }
}

/// Basis tables of the highest degree on tetrahedra exceed constant memory several times.
#[test]
fn large_tables_leave_the_memory_of_constants() {
    if !nvrtc() {
        return;
    }
    let facts = MeshFacts { affine: true, ..MeshFacts::default() };
    let transposition = Strategy::ThreadTransposition { blocks: 1, batches: 1 };
    for (number, strategy) in [(0, Strategy::CellPerLane), (1, transposition)] {
        let (program, _) = compile_form(&Source::new("form.wf", FORMS[number]));
        let form = program.expect("a form").point_form("f", 3).expect("a form");
        let elements = elements(&form, Cell::Tetrahedron, 4, 1, None).expect("elements");
        let wishes = PlanOverrides { strategy: Some(strategy), ..PlanOverrides::default() };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        let plans = choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &wishes);
        let plans = plans.expect("plans");
        let source = generate_for_threads(&form, &elements, &plans, &CUDA).expect("a source");
        let image = compile(&source.text, "sm_90");
        let image = image.unwrap_or_else(|error| panic!("{strategy}: {error}"));
        assert!(image.starts_with(b"\x7fELF"), "{strategy}");
        let handed: usize = source.kernels.iter().map(|abi| 8 * abi.tables.len()).sum();
        assert_eq!(handed > 64 << 10, strategy == Strategy::CellPerLane, "{handed} bytes");
    }
}

/// Registers and stack of the benchmark operators with line kernels, as a table in the build folder.
#[test]
fn lines_have_the_registers_that_they_need() {
    if !nvrtc() {
        return;
    }
    let (mut table, mut worst) = (String::new(), 0);
    let facts = MeshFacts::default();
    for case in CASES {
        for degree in [3, 7] {
            let (program, _) = compile_form(&Source::new(case.name, case.form));
            let program = program.expect("a form");
            let name = program.forms().first().expect("a form").name.clone();
            let form = program.point_form(&name, 3).expect("a form");
            let cell = Cell::Hexahedron;
            let rule = Rule::Tensor { cell, line: (case.rule)(degree) };
            let elements = Elements::new(&form, cell, degree, rule).expect("elements");
            // The shared memory of a thread group on an H100.
            let wishes =
                PlanOverrides { shared_bytes: Some(227 << 10), ..PlanOverrides::default() };
            let (tasks, precision) = ([Task::Action], Precision::F64);
            let plans = choose_for_threads(&form, &elements, &facts, &tasks, precision, &wishes);
            let plans = plans.expect("plans");
            assert!(matches!(plans[0].strategy, Strategy::ThreadPerLine { .. }), "{}", case.name);
            let source = generate_for_threads(&form, &elements, &plans, &CUDA).expect("a source");
            let taken = resources(&source, "sm_90").expect("resources");
            let abi = &source.kernels[0];
            let action = taken.iter().find(|taken| taken.kernel == abi.name);
            let Some(ThreadResources { registers, stack, .. }) = action else {
                panic!("{taken:?}")
            };
            // A multiprocessor has 65536 registers, shared by its groups in warps.
            let warps = abi.threads.div_ceil(32) * abi.residency;
            assert!(registers * 32 * warps <= 65536, "{} p = {degree}: {taken:?}", case.name);
            worst = worst.max(*stack);
            let (problem, plan, threads) = (case.name, &plans[0].strategy, abi.threads);
            table.push_str(&format!(
                "{problem:<14} p = {degree}  {plan:<22} {threads:>4} threads  {registers:>3} registers  {stack:>4} bytes\n"
            ));
        }
    }
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("registers.txt");
    std::fs::write(&file, &table).expect("a folder for results");
    println!("{table}");
    assert!(worst <= 192, "a thread a line spills {worst} bytes:\n{table}");
}

#[test]
fn operations_on_vectors_compile() {
    if !nvrtc() {
        return;
    }
    let sources = [Precision::F64, Precision::F32].map(|p| Arithmetic::source(&CUDA, p));
    let sums = [Precision::F64, Precision::F32].map(|p| sum_of_cells(&CUDA, p).into_file());
    // Tables in shared memory, and larger ones.
    let linked =
        [(Precision::F64, 64, true), (Precision::F32, 128, true), (Precision::F64, 4000, false)]
            .map(|(p, columns, dense)| {
                let rows = RowAssignment::new(columns, 8);
                let known = LinkedRows { entries: 64, lanes: 128, unknowns: 8, dense, rows };
                linked_rows(&CUDA, p, known)
            });
    let rows = [Precision::F64, Precision::F32].map(|p| rows_times_vector(&CUDA, p).into_file());
    let slices =
        [Precision::F64, Precision::F32].map(|p| slices_times_vector(&CUDA, p).into_file());
    let alone = [Precision::F64, Precision::F32].map(|p| sum_of_cells_alone(&CUDA, p).into_file());
    let all = sources.into_iter().chain(sums).chain(linked).chain(rows).chain(slices).chain(alone);
    // Each kind in both precisions, one for each architecture.
    let archs = ["sm_80", "sm_90"].into_iter().cycle();
    for (source, arch) in all.chain([rates_source(&CUDA)]).zip(archs) {
        let image = compile(&source.text, arch);
        let image = image.unwrap_or_else(|error| panic!("{error}"));
        let code = String::from_utf8_lossy(&image);
        for kernel in &source.kernels {
            assert!(code.contains(&kernel.name), "no {} in the code", kernel.name);
        }
    }
}

/// The assembler must also support reading and writing a word atomically.
#[test]
fn what_gpus_write_into_each_others_memory_compiles() {
    if !nvrtc() {
        return;
    }
    for arch in ["sm_80", "sm_90"] {
        let image = compile(&peer_kernels().text, arch).unwrap_or_else(|error| panic!("{error}"));
        let code = String::from_utf8_lossy(&image);
        for name in ["peers_exchange", "peers_sum", "peers_meet_f64", "peers_meet_f32"] {
            assert!(code.contains(name), "no {name} in the code");
        }
    }
}

/// Returns a compiler with its own cache folder.
fn jit_in(folder: &tempfile::TempDir) -> Jit {
    Jit::new(Environment { cache_dir: Some(folder.path().to_owned()), ..Environment::default() })
}

#[test]
fn what_was_compiled_is_found_again_at_once() {
    if !nvrtc() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let jit = || jit_in(&folder);
    let source = Arithmetic::source(&CUDA, Precision::F64);
    let (image, cached) = compile_through(&jit(), &source, "sm_90").expect("an image");
    assert!(!cached);
    let begin = std::time::Instant::now();
    let (again, cached) = compile_through(&jit(), &source, "sm_90").expect("an image");
    let seconds = begin.elapsed().as_secs_f64();
    assert!(cached && again == image && seconds < 0.1, "{seconds} s");
    let (_, cached) = compile_through(&jit(), &source, "sm_80").expect("an image");
    assert!(!cached, "another architecture is another image");
}

#[test]
fn kernels_of_a_source_are_compiled_and_kept_one_by_one() {
    if !nvrtc() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let jit = jit_in(&folder);
    let source = |text: &str, degree: usize, tasks: &[Task]| {
        let (program, _) = compile_form(&Source::new("form.wf", text));
        let form = program.expect("a form").point_form("f", 2).expect("a form");
        let elements = elements(&form, Cell::Quadrilateral, degree, 1, None).expect("elements");
        let facts = MeshFacts::default();
        let (precision, wishes) = (Precision::F64, PlanOverrides::default());
        let plans = choose_for_threads(&form, &elements, &facts, tasks, precision, &wishes);
        generate_for_threads(&form, &elements, &plans.expect("plans"), &CUDA).expect("a source")
    };
    let all = source(FORMS[0], 2, &[Task::Residual, Task::Action, Task::Diagonal]);
    let parts = all.parts();
    assert_eq!(parts.len(), 3);
    let (images, cached) = compile_parts(&jit, &parts, "sm_90").expect("images");
    assert!(!cached);
    for (part, image) in parts.iter().zip(&images) {
        let code = String::from_utf8_lossy(image);
        let has = |name: &str| code.contains(&format!(".text.{name}\0"));
        for abi in &all.kernels {
            assert_eq!(has(&abi.name), abi.name == part.kernels[0].name, "{}", abi.name);
        }
    }
    let (again, cached) = compile_parts(&jit, &parts, "sm_90").expect("images");
    assert!(cached && again == images);
    // Only unknown parts are compiled.
    let (some, cached) = compile_parts(&jit, &parts[2..], "sm_90").expect("images");
    assert!(cached && some == images[2..]);
    let other = source(FORMS[0], 3, &[Task::Residual]).parts().swap_remove(0);
    let both = [parts[0].clone(), other.clone()];
    let (two, cached) = compile_parts(&jit, &both, "sm_90").expect("images");
    assert!(!cached && two[0] == images[0] && two.len() == 2);
    let mut wrong = parts[1].clone();
    wrong.text.push_str("nonsense");
    let error = compile_parts(&jit, &[other, wrong], "sm_90").expect_err("an error");
    assert!(error.to_string().contains("nonsense"), "{error}");
}

#[test]
fn what_does_not_compile_shows_the_log_and_the_source() {
    if !nvrtc() {
        return;
    }
    let error = compile("extern \"C\" __global__ void f() { nonsense(); }", "sm_90");
    let text = error.expect_err("an error").to_string();
    assert!(text.contains("nonsense") && text.contains(".cu"), "{text}");
}
