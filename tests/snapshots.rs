//! Results of each stage for the forms in `tests/forms`, as text in `tests/snapshots`.
//!
//! Changes of the text are visible in review. `INSTA_UPDATE=always cargo test --workspace snapshots::` accepts them.

use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use insta::{assert_snapshot, with_settings};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use weakform::{
    Cell, Emission, Export, Isa, Language, Library, Precision, Stage, Strategy, Task, emit_program,
    export_program,
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the forms of the corpus: names of the files, and the programs.
fn corpus() -> Vec<(String, Program)> {
    let entries = fs::read_dir(root().join("tests/forms")).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a form should be readable");
        let (program, found) = compile(&Source::new(name.clone(), text));
        (name, program.unwrap_or_else(|| panic!("{}: {found:?}", path.display())))
    };
    paths.into_iter().map(read).collect()
}

/// Compares texts with `tests/snapshots/FOLDER/NAME.snap`, and rejects other files there.
fn compare(folder: &str, texts: &[(String, String)]) {
    for (name, text) in texts {
        with_settings!({
            snapshot_path => Path::new("snapshots").join(folder),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            assert_snapshot!(name.as_str(), text);
        });
    }
    let known: BTreeSet<String> = texts.iter().map(|(name, _)| format!("{name}.snap")).collect();
    assert_eq!(known.len(), texts.len(), "a name stands for one text");
    let folder = root().join("tests/snapshots").join(folder);
    for entry in fs::read_dir(&folder).expect("the snapshots").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "{} belongs to no test", entry.path().display());
    }
}

/// Returns the text of every form of the corpus at a stage; in two dimensions if it is valid there.
fn stage(stage: Stage) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (file, program) in corpus() {
        for form in program.forms() {
            let plane = form.dimensions.form(2).is_some();
            let cell = if plane { Cell::Quadrilateral } else { Cell::Hexahedron };
            let emission = Emission::new(cell, 1).form(&form.name).stage(stage);
            let text = emit_program(&program, &emission).expect("every form has this stage");
            let name = if program.forms().len() == 1 {
                file.clone()
            } else {
                format!("{file}-{}", form.name)
            };
            texts.push((name, text));
        }
    }
    assert!(texts.len() >= 12, "the corpus is too small");
    texts
}

#[test]
fn forms() {
    compare("form", &stage(Stage::Simplify));
}

#[test]
fn point_forms() {
    compare("point", &stage(Stage::Point));
}

/// Returns the kernels of one form of the corpus.
fn kernel(file: &str, emission: &Emission) -> String {
    let all = corpus();
    let (_, program) = all.iter().find(|(name, _)| name == file).expect("a form of the corpus");
    emit_program(program, emission).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn kernels() {
    use Cell::{Quadrilateral, Triangle};
    let cases = [
        ("poisson", Triangle, Task::Action, Isa::Avx2),
        ("poisson", Quadrilateral, Task::Residual, Isa::Avx512),
        ("elasticity_constant", Triangle, Task::Action, Isa::Avx512),
    ];
    let texts = cases.map(|(form, cell, task, isa)| {
        let emission = Emission::new(cell, 1).task(task).isa(isa).stage(Stage::Legalise);
        (format!("{form}-{cell}1-{}", task.word()), kernel(form, &emission))
    });
    compare("kir", &texts);
}

#[test]
fn sources() {
    use Cell::{Quadrilateral, Tetrahedron, Triangle};
    let cases = [
        ("poisson", Quadrilateral, 1, Task::Residual, Isa::Avx2, Precision::F64),
        ("elasticity_constant", Triangle, 1, Task::Action, Isa::Avx512, Precision::F64),
        ("minimal_surface", Triangle, 1, Task::Diagonal, Isa::Avx2, Precision::F32),
        ("mass", Tetrahedron, 1, Task::Action, Isa::Portable, Precision::F64),
        // Two fields; and a term on the boundary.
        ("stokes", Triangle, 2, Task::Action, Isa::Avx512, Precision::F64),
        ("elasticity", Tetrahedron, 1, Task::Residual, Isa::Avx2, Precision::F64),
    ];
    let texts = cases.map(|(form, cell, degree, task, isa, precision)| {
        let emission = Emission::new(cell, degree).task(task).isa(isa).precision(precision);
        (format!("{form}-{cell}{degree}-{}-{isa}", task.word()), kernel(form, &emission))
    });
    let hanging = Emission::new(Quadrilateral, 2).task(Task::Action).isa(Isa::Avx2).hanging();
    let hanging = ("mass-quad2-action-avx2-hanging".to_owned(), kernel("mass", &hanging));
    compare("rust", &[&texts[..], &[hanging]].concat());
}

#[test]
fn headers() {
    use Library::{LibCeed, Petsc};
    // Data on cells, a parameter with components and a term on the boundary; two fields; data on nodes.
    let cases = [
        ("elasticity", Petsc, 3, "petsc"),
        ("stokes", Petsc, 2, "petsc"),
        ("elasticity", LibCeed, 3, "libceed"),
        ("nonlinear_diffusion", LibCeed, 2, "libceed"),
    ];
    let all = corpus();
    let texts = cases.map(|(form, library, dim, name)| {
        let (_, program) = all.iter().find(|(file, _)| file == form).expect("a form of the corpus");
        let text = export_program(program, &Export::new(library).dim(dim));
        (format!("{form}-{name}"), text.unwrap_or_else(|error| panic!("{form}: {error}")))
    });
    let (_, poisson) =
        all.iter().find(|(file, _)| file == "poisson").expect("a form of the corpus");
    let export = Export::new(Library::C).cell(Cell::Triangle).degree(1).isa(Isa::Avx2);
    let text = export_program(poisson, &export).expect("a header");
    compare("export", &[&texts[..], &[("poisson-c".to_owned(), text)]].concat());
}

#[test]
fn sources_for_threads() {
    use Cell::{Hexahedron, Quadrilateral, Tetrahedron, Triangle};
    let cases = [
        ("poisson", Triangle, Task::Residual, "thread_transposition", Precision::F64),
        ("mass", Quadrilateral, Task::Action, "thread_per_dof", Precision::F64),
        ("elasticity_constant", Tetrahedron, Task::Action, "thread_transposition", Precision::F32),
        ("stokes", Quadrilateral, Task::Action, "cell_per_lane", Precision::F64),
        ("stokes", Quadrilateral, Task::Action, "thread_per_line", Precision::F64),
        ("mass", Hexahedron, Task::Action, "thread_per_line", Precision::F64),
        ("elasticity", Hexahedron, Task::Residual, "cell_per_lane", Precision::F32),
    ];
    let mut texts = BTreeMap::<String, Vec<(String, String)>>::new();
    for (form, cell, task, strategy, precision) in cases {
        // Double precision tests CUDA, single precision OpenCL.
        let (language, degree) = match precision {
            Precision::F64 => (Language::Cuda, 2),
            Precision::F32 => (Language::OpenCl, 1),
        };
        let parsed: Strategy = strategy.parse().expect("a strategy");
        let emission = Emission::new(cell, degree).task(task).precision(precision);
        let text = kernel(form, &emission.language(language).strategy(parsed));
        let name = format!("{form}-{cell}{degree}-{}-{strategy}", task.word());
        texts.entry(language.to_string().to_lowercase()).or_default().push((name, text));
    }
    let emission = Emission::new(Hexahedron, 2).task(Task::Action).hanging();
    let line = Strategy::ThreadPerLine { cells: 2 };
    let hanging = [(Language::Cuda, line), (Language::OpenCl, Strategy::ThreadPerDof)];
    for (language, strategy) in hanging {
        let text = kernel("mass", &emission.clone().language(language).strategy(strategy));
        let name = format!("mass-hex2-action-{strategy}-hanging");
        texts.entry(language.to_string().to_lowercase()).or_default().push((name, text));
    }
    for (folder, texts) in &texts {
        compare(folder, texts);
    }
}

/// Returns the number of lines of `new` that are not lines of `old`.
fn changed_lines(old: &str, new: &str) -> usize {
    let mut counts = BTreeMap::<&str, isize>::new();
    new.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    old.lines().for_each(|line| *counts.entry(line).or_default() -= 1);
    counts.into_values().map(|count| count.max(0).unsigned_abs()).sum()
}

/// Labels count values through sections: an operation that is added to a coefficient leaves the labels of other sections.
#[test]
fn a_changed_coefficient_changes_few_lines() {
    use Cell::{Hexahedron, Quadrilateral, Tetrahedron};
    let changes = [
        ("poisson", "2 * dot(x, x)", "2 * dot(x, x) + dot(x, x)^2", Quadrilateral, 1),
        ("nonlinear_diffusion", "1 + s^2", "1 + s^2 + s^4", Hexahedron, 2),
        ("elasticity", "2 * mu * eps", "2 * mu * (1 + mu) * eps", Tetrahedron, 2),
    ];
    for (name, coefficient, other, cell, degree) in changes {
        let path = root().join("tests/forms").join(name).with_extension("wf");
        let text = fs::read_to_string(path).expect("a form of the corpus");
        let changed = text.replace(coefficient, other);
        assert_ne!(changed, text, "{name} has the coefficient {coefficient}");
        let programs = [text, changed].map(|text| {
            let (program, found) = compile(&Source::new(name, text));
            program.unwrap_or_else(|| panic!("{name}: {found:?}"))
        });
        let emission = Emission::new(cell, degree).task(Task::Residual).isa(Isa::Avx2);
        let emissions = [
            emission.clone(),
            emission.clone().language(Language::Cuda),
            emission.stage(Stage::Legalise),
        ];
        for emission in emissions {
            let texts = [0, 1].map(|i| emit_program(&programs[i], &emission).expect("a kernel"));
            let count = changed_lines(&texts[0], &texts[1]);
            assert!((1..=30).contains(&count), "{name}: {count} changed lines: {}", texts[1]);
        }
    }
}
