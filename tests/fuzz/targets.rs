//! The fuzz targets as plain functions on bytes: for any input, a target returns, and its assertions hold.
//!
//! `tests/fuzz.rs` drives them with mutations of our own files; `cargo fuzz` drives them from `fuzz/`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use fem_dsl::check::problem::Overrides;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::differentiate::differentiate;
use fem_dsl::form::verify_form;
use fem_dsl::format::{format, same_pieces};
use fem_dsl::parse::parse as parse_source;
use fem_dsl::point::{Shape, verify_point};
use fem_dsl::problem::FileArray;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use fem_dsl::verify::Phase;
use kernels_gen::element::Lagrange;
use runtime::device::jit::{Environment, ForeignSource, Jit};
use runtime::files::input::ArrayRequest;
use runtime::mesh::Statistics;
use runtime::mesh::partition::Partition;
use runtime::mesh::read::{self, MeshFormat};
use runtime::space::Space;
use weakform::render::{Style, json, render};
use weakform::{
    Cell, Emission, Export, Isa, Language, Library, Precision, Strategy, Task, emit as emit_text,
    export_program,
};

use super::text;
use super::volume::assert_volume;

/// A target: its name and its function.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets.
pub(crate) const TARGETS: [Target; 6] = [
    ("parse", parse),
    ("check", check),
    ("emit", emit),
    ("mesh", mesh),
    ("data", data),
    ("cache", cache),
];

/// Asserts that diagnostics have locations in the text, and can be rendered.
fn shown(source: &Source, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        let of = diagnostic.source.as_deref().unwrap_or(source);
        assert!(!diagnostic.message.is_empty(), "{diagnostic:?}");
        for label in &diagnostic.labels {
            assert!(label.span.start <= label.span.end, "{diagnostic:?}");
            assert!(of.text().get(label.span.range()).is_some(), "{diagnostic:?}");
        }
    }
    assert_eq!(json(source, diagnostics).len(), diagnostics.len());
    let text = render(source, diagnostics, Style::Plain);
    assert_eq!(text.is_empty(), diagnostics.is_empty());
}

/// Tests a text → its tree, and its formatted text, which has the same tree.
pub(crate) fn parse(bytes: &[u8]) {
    let source = Source::from_bytes("input.wf", bytes);
    let (file, diagnostics) = parse_source(&source);
    shown(&source, &diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        assert!(format(&source).is_err(), "what has errors is not formatted");
        return;
    }
    let formatted = format(&source).expect("what has no errors is formatted");
    assert!(same_pieces(source.text(), &formatted), "{formatted}");
    let again = Source::new("input.wf", formatted.as_str());
    assert_eq!(format(&again).as_ref(), Ok(&formatted), "formatting is idempotent");
    let (same, diagnostics) = parse_source(&again);
    assert!(diagnostics.is_empty(), "{formatted}\n{diagnostics:#?}");
    assert_eq!(text::without_spans(&file), text::without_spans(&same), "{formatted}");
}

/// Tests a text → its forms in both dimensions up to the arithmetic at a point, and its problems.
pub(crate) fn check(bytes: &[u8]) {
    let source = Source::from_bytes("input.wf", bytes);
    let (program, diagnostics) = compile(&source);
    shown(&source, &diagnostics);
    let Some(program) = program else {
        assert!(diagnostics.iter().any(Diagnostic::is_error), "no program and no error");
        return;
    };
    for checked in program.forms() {
        for dim in [2, 3] {
            if let Some(form) = checked.dimensions.form(dim) {
                let action = differentiate(form);
                assert_eq!(verify_form(&action, Phase::Differentiated), Ok(()));
                assert!(action.to_string().contains(&checked.name));
            }
            match program.point_form(&checked.name, dim) {
                Ok(form) => assert_eq!(verify_point(&form), Ok(()), "{form}"),
                Err(found) => shown(&source, &found),
            }
        }
    }
    let names: Vec<String> = program.problems().map(|problem| problem.name.to_owned()).collect();
    for name in names {
        for dim in [2, 3] {
            if let Err(found) = program.problem(&name, dim, &Overrides::default()) {
                assert!(!found.is_empty());
                shown(&source, &found);
            }
        }
    }
}

/// Largest text for which kernels are emitted: those of large forms take long.
const MOST_EMITTED: usize = 2_000;

/// Tests four bytes that choose a kernel, and a text → generated source that is complete, for any text.
pub(crate) fn emit(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first_chunk::<4>() else { return };
    let Ok(input) = std::str::from_utf8(bytes) else { return };
    if input.len() > MOST_EMITTED {
        return;
    }
    let [cell, degree, language, rest] = choice.map(usize::from);
    let cell = [Cell::Hexahedron, Cell::Tetrahedron, Cell::Quadrilateral, Cell::Triangle][cell % 4];
    let header = language % 5 == 4;
    let language =
        [Language::Rust, Language::Cuda, Language::OpenCl, Language::C, Language::C][language % 5];
    let task = [Task::Residual, Task::Action, Task::Diagonal][rest % 3];
    let isa = [Isa::Avx512, Isa::Avx2, Isa::Portable][rest / 3 % 3];
    let precision = [Precision::F64, Precision::F32][rest / 9 % 2];
    let strategy = [
        None,
        Some(Strategy::CellPerLane),
        Some(Strategy::ThreadPerLine { cells: 2 }),
        Some(Strategy::ThreadPerDof),
        Some(Strategy::ThreadTransposition { blocks: 1, batches: 2 }),
    ][rest / 18 % 5];
    let mut emission = Emission::new(cell, 1 + degree % 3)
        .language(language)
        .task(task)
        .isa(isa)
        .precision(precision);
    if let Some(strategy) = strategy {
        emission = emission.strategy(strategy);
    }
    let export =
        Export::new(Library::C).cell(cell).degree(1 + degree % 3).isa(isa).precision(precision);
    let emitted = || match compile(&Source::new("form", input)).0 {
        Some(program) if header => export_program(&program, &export),
        _ => emit_text(input, &emission),
    };
    match emitted() {
        Ok(source) => {
            text::balanced(&source, language != Language::Rust);
            assert_eq!(emitted().as_ref().ok(), Some(&source), "reproducible");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Tests a mesh file, Gmsh's by default → a mesh with indices in range, whose cells fill its boundary once, or an
/// error.
pub(crate) fn mesh(bytes: &[u8]) {
    let format = MeshFormat::of(Path::new(""), bytes).unwrap_or(MeshFormat::Gmsh);
    let mesh = match read::parse(format, bytes) {
        Ok(mesh) => mesh,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let points = mesh.points();
    assert!(points.iter().flatten().all(|x| x.is_finite()));
    assert!(mesh.nodes().iter().all(|&node| (node as usize) < points.len()));
    assert_eq!(mesh.nodes().len(), mesh.n_cells() * mesh.nodes_per_cell());
    for facet in mesh.facet_tags().values().flatten().chain(&mesh.boundary()) {
        assert!((facet.cell as usize) < mesh.n_cells());
    }
    assert!(mesh.cell_tags().values().flatten().all(|&cell| (cell as usize) < mesh.n_cells()));
    let statistics = Statistics::of(&mesh);
    assert!(!format!("{statistics:?}").is_empty());
    let _ = (mesh.is_affine(), mesh.mirrored());
    assert_volume(&mesh);
}

/// Tests data or a state on a mesh of four squares: as many values as the mesh needs, or an error with a message.
pub(crate) fn data(bytes: &[u8]) {
    let mesh = weakform::mesh("box(dim: 2, cells: 2)").expect("a mesh");
    for (degree, name, shape) in [(1, "a", Shape::Scalar), (2, "u", Shape::Vector(2))] {
        let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
        let partition = Partition::new(&mesh, 1.0);
        let space = Space::new(&mesh, &partition, element, shape.components()).expect("a space");
        let stored = FileArray { path: PathBuf::from("data"), array: None, from_text: false };
        let found = match ArrayRequest::new(&stored, name, shape, &mesh).read_bytes(bytes) {
            Ok(found) => found,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let cells = found.on_cells().map(|values| values.len());
        assert!(cells.is_err() || cells.is_ok_and(|count| count == 4 * shape.components()));
        let nodes = found.at_nodes(&space, &partition).map(|found| found.values.len());
        assert!(nodes.is_err() || nodes.is_ok_and(|count| count == space.n_dofs()));
    }
}

/// A cache with one entry, which is repeatedly damaged and restored.
struct Damaged {
    folder: tempfile::TempDir,
    jit: Jit,
}

/// The input of the cache entry.
const KEPT: ForeignSource<'_> = ForeignSource {
    name: "fuzzed",
    extension: "cl",
    compiler: "a compiler",
    flags: "-O2",
    source: "kernel void f() {}",
};
const BINARY: &[u8] = b"\x7fELF and so on";
const QUESTION: &str = "which version?";
const ANSWER: &str = "version 1\nof two lines";

/// Tests changes of a cache's files → the stored entry, or nothing, but never anything else.
///
/// The first byte chooses a file, the second and third its new length; positions of two bytes and new values follow.
pub(crate) fn cache(bytes: &[u8]) {
    static CACHE: OnceLock<Mutex<Damaged>> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().expect("a folder");
        let cache_dir = Some(folder.path().join("cache"));
        let jit = Jit::new(Environment { cache_dir, ..Environment::default() });
        Mutex::new(Damaged { folder, jit })
    };
    let mutex = CACHE.get_or_init(make);
    let Damaged { folder, jit } = &*mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    jit.keep(&KEPT, BINARY);
    assert_eq!(jit.recall(&KEPT).as_deref(), Some(BINARY), "an entry is mended");
    let ask = || Ok::<_, ()>(ANSWER.to_owned());
    assert_eq!(jit.remembered(QUESTION, ask).as_deref(), Ok(ANSWER));

    let mut files = files_below(folder.path());
    files.sort();
    let [choice, low, high, edits @ ..] = bytes else { return };
    let Some(file) = files.get(usize::from(*choice) % files.len().max(1)) else { return };
    let before = std::fs::read(file).expect("a file of the cache");
    let mut after = before.clone();
    after.resize(usize::from(u16::from_le_bytes([*low, *high])).min(1 << 12), b' ');
    for edit in edits.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
        if let Some(byte) = after.get_mut(at) {
            *byte = edit[2];
        }
    }
    std::fs::write(file, &after).expect("written");
    let recalled = jit.recall(&KEPT);
    assert!(recalled.is_none() || recalled.as_deref() == Some(BINARY), "foreign code is run");
    assert!(recalled.is_some() || before != after, "an unharmed entry is lost");
    assert_eq!(jit.remembered(QUESTION, ask).as_deref(), Ok(ANSWER), "a foreign answer");
}

/// Returns all files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}
