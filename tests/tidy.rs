//! Architecture rules checked by a program: permitted dependencies, file lengths, required headers.
//!
//! A violation names the file and the line. The rules are those of ARCHITECTURE.md; change them there first.

#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/exports.rs"]
mod exports;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/prose.rs"]
mod prose;

use std::fs;
use std::path::{Path, PathBuf};

use code::{Code, words};
use fem_dsl::codes::Code as DiagnosticCode;

/// Maximal length of a file; most have less than half of it.
const LONGEST: usize = 700;

/// Maximal length of a function; most fit on a screen.
const LONGEST_FUNCTION: usize = 100;

/// The root modules of the crate `fem-mesh`, bottom up: each imports only earlier ones.
const MESH: &[&str] = &["support", "processes", "mesh"];

/// The root modules of the runtime above them, bottom up.
const RUNTIME: &[&str] = &[
    "space", "device", "kernels", "algebra", "solve", "operator", "estimate", "files", "problem",
    "verify",
];

/// A Rust file of the workspace: its path from the root, with `/`, and its text.
struct File {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all Rust files under our source folders, in order.
fn files() -> Vec<File> {
    let folders = "src fem-dsl fem-macros kernels-gen python runtime xtask tests examples";
    let mut open: Vec<PathBuf> = folders.split(' ').map(|folder| root().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root()).expect("below the root");
                let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
                let text = fs::read_to_string(&path).expect("our files are UTF-8");
                found.push(File { path: parts.join("/"), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 20, "the files of the workspace were not found");
    found
}

/// Fails with all complaints at once.
fn report(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}:\n  {}\n", complaints.join("\n  "));
}

/// Returns the uses of `banned` names in files of `scope`, except in comments and strings.
///
/// A scope is a folder (`runtime/src/`), a file, or a stem (`runtime/src/solve` is both the file and the folder).
fn naming(scope: &[&str], except: &[&str], banned: &[&str]) -> Vec<String> {
    let within = |path: &str, scopes: &[&str]| {
        scopes.iter().any(|scope| {
            path.strip_prefix(scope).is_some_and(|rest| {
                scope.ends_with('/') || rest.is_empty() || rest == ".rs" || rest.starts_with('/')
            })
        })
    };
    let all = files();
    let chosen = all.iter().filter(|file| within(&file.path, scope) && !within(&file.path, except));
    let complaints = chosen.flat_map(|file| {
        let code = Code::new(&file.text);
        let hits = words(&code.text).filter(|(_, word)| banned.contains(word));
        hits.map(|(line, word)| format!("{}:{line} names `{word}`", file.path)).collect::<Vec<_>>()
    });
    complaints.collect()
}

/// Returns the dependencies in a crate's manifest, for builds and for tests.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(krate).join("Cargo.toml")).expect("a manifest");
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[dependencies") || line.starts_with("[target");
        } else if inside
            && let Some(name) = line.split(['.', ' ', '=']).next()
            && !name.is_empty()
            && !name.starts_with('#')
        {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn crates_depend_in_one_direction() {
    let ours = "fem-dsl fem-dsl-grammar fem-lsp kernels-gen fem-macros fem-reference fem-mesh \
                runtime fem-bench fem-mpi weakform weakform-program xtask";
    let ours: Vec<&str> = ours.split(' ').collect();
    let allowed: [(&str, &[&str]); 13] = [
        ("fem-dsl/grammar", &[]),
        ("fem-dsl", &["fem-dsl-grammar"]),
        ("fem-dsl/lsp", &["fem-dsl"]),
        ("kernels-gen", &["fem-dsl"]),
        ("fem-macros", &["fem-dsl", "kernels-gen"]),
        ("runtime/reference", &["fem-dsl", "kernels-gen"]),
        ("runtime/mesh", &["fem-dsl", "kernels-gen"]),
        ("runtime", &["fem-dsl", "kernels-gen", "fem-mesh", "fem-reference"]),
        ("runtime/mpi", &["runtime"]),
        ("runtime/bench", &["fem-dsl", "kernels-gen", "runtime"]),
        (
            "python/program",
            &["fem-bench", "fem-dsl", "fem-lsp", "fem-mpi", "kernels-gen", "runtime", "weakform"],
        ),
        ("python", &["weakform", "weakform-program"]),
        ("xtask", &[]),
    ];
    let mut complaints = Vec::new();
    for (krate, allowed) in allowed {
        for name in dependencies(krate) {
            if ours.contains(&name.as_str()) && !allowed.contains(&name.as_str()) {
                complaints.push(format!("{krate} depends on {name}"));
            }
        }
    }
    report(
        "fem-dsl ← kernels-gen ← { fem-macros, { fem-mesh, fem-reference } ← runtime ← { fem-bench, fem-mpi } } ← weakform",
        &complaints,
    );
}

#[test]
fn imports_go_one_way() {
    let all = files();
    let roots = [
        "fem-dsl/src",
        "fem-macros/src",
        "kernels-gen/src",
        "python/src",
        "runtime/bench/src",
        "runtime/mesh/src",
        "runtime/reference/src",
        "runtime/src",
        "src",
        "src/bin/wf",
    ];
    let mut complaints = Vec::new();
    for root in roots {
        let below = |file: &'_ File| {
            let path = file.path.strip_prefix(root)?.strip_prefix('/')?;
            (root != "src" || !path.starts_with("bin/")).then(|| path.to_owned())
        };
        let own: Vec<(String, &str)> =
            all.iter().filter_map(|file| Some((below(file)?, file.text.as_str()))).collect();
        assert!(own.len() > 3, "the files of {root} were not found");
        let own: Vec<(&str, &str)> =
            own.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        complaints.extend(imports::cycles(&own).iter().map(|cycle| format!("{root}: {cycle}")));
    }
    report("folders of a crate, and files of a folder, import in no circle", &complaints);
}

#[test]
fn functions_are_short() {
    let mut complaints = Vec::new();
    for file in files() {
        for function in functions::long_functions(&file.text, LONGEST_FUNCTION) {
            let functions::LongFunction { name, line, lines } = function;
            complaints.push(format!("{}:{line} {name} has {lines} lines", file.path));
        }
    }
    report("a function has at most 100 lines, except a match with an arm a line", &complaints);
}

#[test]
fn modules_of_the_runtime_stand_in_order() {
    let all = files();
    for (root, order) in [("runtime/mesh/src/", MESH), ("runtime/src/", RUNTIME)] {
        let own: Vec<(&str, &str)> = all
            .iter()
            .filter_map(|file| Some((file.path.strip_prefix(root)?, file.text.as_str())))
            .filter(|(path, _)| *path != "lib.rs")
            .collect();
        assert!(own.len() > 3, "the files of {root} were not found");
        report("each module imports only those below it", &imports::upward(&own, order));
    }
}

#[test]
fn the_compiler_crates_depend_on_no_device() {
    let banned = ["libloading", "libc", "cudarc", "ocl", "rayon", "tempfile", "annotate-snippets"];
    let mut complaints = Vec::new();
    for krate in ["fem-dsl/grammar", "fem-dsl", "kernels-gen", "runtime/reference"] {
        let found = dependencies(krate).into_iter().filter(|name| banned.contains(&name.as_str()));
        complaints.extend(found.map(|name| format!("{krate} depends on {name}")));
    }
    report("the compiler is a function from text to text", &complaints);
}

#[test]
fn the_language_knows_no_files_no_elements_and_no_targets() {
    let mut banned = vec!["fs", "net", "process", "stdin", "stdout", "println", "eprintln"];
    banned.extend(["lagrange", "Lagrange", "tabulate", "quadraturerules", "GaussLobatto"]);
    banned.extend(["cuda", "opencl", "Cuda", "OpenCl", "simd", "avx512", "nvrtc", "cudarc", "ocl"]);
    let complaints = naming(&["fem-dsl/src/"], &[], &banned);
    report("fem-dsl does no I/O and knows no element table and no target", &complaints);
}

#[test]
fn only_parse_names_pest() {
    let everywhere = ["src/", "fem-dsl/", "fem-macros/", "kernels-gen/", "runtime/"];
    let banned = ["pest", "pest_derive", "pest_consume", "fem_dsl_grammar"];
    let complaints = naming(&everywhere, &["fem-dsl/grammar/", "fem-dsl/src/parse"], &banned);
    report("pest stays behind fem-dsl/src/parse.rs", &complaints);
}

#[test]
fn the_generator_has_no_foreign_functions_and_no_device() {
    let banned =
        ["libloading", "cudarc", "ocl", "libc", "extern", "fs", "net", "process", "runtime"];
    let complaints = naming(&["kernels-gen/src/"], &[], &banned);
    report("kernels-gen has no FFI and no device", &complaints);
}

#[test]
fn strategies_and_dialects_do_not_know_each_other() {
    let mut complaints =
        naming(&["kernels-gen/src/strategy"], &[], &["dialect", "Dialect", "RustDialect"]);
    let unknown = ["strategy", "Strategy", "Elements", "PointForm", "lagrange", "tabulate"];
    complaints.extend(naming(&["kernels-gen/src/dialect"], &[], &unknown));
    report("a strategy names no dialect; a dialect no strategy, element or PointForm", &complaints);
}

#[test]
fn one_folder_names_the_library_of_factors() {
    let everywhere = ["src/", "fem-dsl/", "fem-macros/", "kernels-gen/", "runtime/", "tests/"];
    let except = ["tests/tidy", "runtime/src/algebra/factor"];
    let mut complaints = naming(&everywhere, &except, &["faer"]);
    let manifest = fs::read_to_string(root().join("runtime/Cargo.toml")).expect("a manifest");
    if !manifest.contains("\nfaer = { workspace = true, optional = true }\n") {
        complaints.push("runtime cannot do without it".to_owned());
    }
    report("the sparse factors' library can be replaced, and left out", &complaints);
}

#[test]
fn the_runtime_sees_text_and_abi_but_never_the_kernel_ir() {
    let complaints = naming(
        &["runtime/src/", "runtime/mesh/src/"],
        &[],
        &["kir", "legalise", "fem_macros", "weakform"],
    );
    report("the runtime never names kir", &complaints);
}

#[test]
fn each_gpu_library_is_named_by_one_device() {
    let everywhere = ["src/", "fem-dsl/", "fem-macros/", "kernels-gen/", "runtime/", "tests/"];
    let except = ["tests/tidy"];
    let with = |folder| [&except[..], &[folder]].concat();
    let mut complaints = naming(&everywhere, &with("runtime/src/device/cuda"), &["cudarc"]);
    complaints.extend(naming(
        &everywhere,
        &with("runtime/src/device/opencl"),
        &["clGetPlatformIDs", "cl3"],
    ));
    report("CUDA belongs to device/cuda, OpenCL to device/opencl", &complaints);
}

#[test]
fn one_file_names_mpi() {
    let everywhere =
        ["fem-dsl/", "fem-macros/", "kernels-gen/", "runtime/src/", "runtime/mesh/src/"];
    let except = ["runtime/src/device"];
    let complaints = naming(&everywhere, &except, &["mpi"]);
    report("MPI belongs to runtime/mpi", &complaints);
}

#[test]
fn libraries_of_the_system_are_loaded_or_off() {
    let mut complaints = Vec::new();
    for krate in [".", "runtime/mpi", "runtime", "tests/unit", "xtask"] {
        let manifest = fs::read_to_string(root().join(krate).join("Cargo.toml"));
        for line in manifest.expect("a manifest").lines() {
            let depends = line.starts_with("mpi = {") || line.starts_with("fem-mpi = {");
            let always = depends && line.contains("workspace") && !line.contains("optional = true");
            let by_default = line.starts_with("default =") && line.contains("mpi");
            let linked = line.starts_with("cudarc = {") && !line.contains("dynamic-loading");
            if always || by_default || linked {
                complaints.push(format!("{krate}: `{line}`"));
            }
        }
    }
    report("libraries of GPUs are loaded at run time, and MPI is a feature", &complaints);
}

#[test]
fn drawing_is_optional_and_in_one_place() {
    let libraries = ["png", "tiny_skia", "ttf_parser"];
    let everywhere = ["src/", "fem-dsl/", "fem-macros/", "kernels-gen/", "runtime/"];
    let mut complaints = naming(&everywhere, &["src/picture/page"], &libraries);
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let mut own = false;
    for line in manifest.lines() {
        own = if line.starts_with('[') { line == "[dependencies]" } else { own };
        let name = line.split(' ').next().unwrap_or_default().replace('-', "_");
        if own && libraries.contains(&name.as_str()) && !line.contains("optional = true") {
            complaints.push(format!("`{line}` is not optional"));
        }
    }
    report("without the feature `pictures`, nothing that draws is needed", &complaints);
}

#[test]
fn the_library_needs_nothing_of_the_command_line() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let list = |name: &str| -> Vec<&str> {
        let text = manifest.split(&format!("\n{name} = [")).nth(1).unwrap_or_default();
        let text = text.split(']').next().unwrap_or_default();
        text.split('"').skip(1).step_by(2).collect()
    };
    let optional: Vec<&str> =
        list("cli").iter().filter_map(|feature| feature.strip_prefix("dep:")).collect();
    let mut complaints = Vec::new();
    for (wrong, complaint) in [
        (list("default") != ["cli"], "`default` is not `cli` alone"),
        (list("required-features") != ["cli"], "the program does not require `cli` alone"),
        (!optional.contains(&"clap"), "`cli` has no clap"),
    ] {
        complaints.extend(wrong.then(|| complaint.to_owned()));
    }
    for name in &optional {
        let named = |line: &&str| {
            line.starts_with(&format!("{name} =")) && line.contains("optional = true")
        };
        if !manifest.lines().any(|line| named(&line)) {
            complaints.push(format!("`{name}` is not optional"));
        }
        // The library's name in `use`; the command line may derive its output types at their declarations.
        let word = name.replace('-', "_");
        if word != "serde" {
            complaints.extend(naming(&["src/"], &["src/bin/wf"], &[&word]));
        }
        let lower = [
            "fem-dsl/grammar",
            "fem-dsl",
            "kernels-gen",
            "fem-macros",
            "runtime/mesh",
            "runtime/reference",
            "runtime",
        ];
        let with = lower.iter().filter(|krate| dependencies(krate).iter().any(|has| has == name));
        complaints.extend(with.map(|krate| format!("{krate} depends on {name}")));
    }
    // The dependencies of the library without features. Every user compiles each additional crate.
    let kept = ["annotate-snippets", "rayon", "thiserror", "tracing"];
    let inside = manifest.split("\n[dependencies]").nth(1).unwrap_or_default();
    let inside = inside.split("[dev-dependencies]").next().unwrap_or_default();
    for line in
        inside.lines().filter(|line| line.contains("workspace") && !line.contains("optional"))
    {
        let name = line.split(['.', ' ']).next().unwrap_or_default();
        let ours = ["fem-dsl", "fem-macros", "kernels-gen", "runtime"];
        if !kept.contains(&name) && !ours.contains(&name) {
            complaints.push(format!("the library alone depends on {name}"));
        }
    }
    report("without features, no crate of the command line is needed", &complaints);
}

#[test]
fn solvers_name_no_backend() {
    let banned = ["cpu", "cuda", "opencl", "jit", "Library", "Module"];
    report("a solver knows operators and vectors", &naming(&["runtime/src/solve"], &[], &banned));
}

#[test]
fn unsafe_stays_with_the_devices() {
    let everywhere =
        ["src/", "fem-dsl/", "fem-macros/src/", "kernels-gen/", "python/", "runtime/", "xtask/"];
    let except = [
        "python/src/memory",
        "runtime/src/device",
        "runtime/mpi/src",
        "kernels-gen/src/dialect/preamble",
        "fem-macros/src/expand",
    ];
    let complaints = naming(&everywhere, &except, &["unsafe"]);
    report("`unsafe` only with devices, MPI, Python's memory, or in generated text", &complaints);
}

#[test]
fn output_does_not_depend_on_the_order_of_a_hash_table() {
    let complaints =
        naming(&["fem-dsl/src/", "kernels-gen/src/"], &[], &["HashMap", "HashSet", "RandomState"]);
    report("BTreeMap or IndexMap, so that output is reproducible to the byte", &complaints);
}

#[test]
fn nothing_is_left_undone_or_skipped() {
    let mut complaints = naming(
        &["src/", "fem-dsl/", "fem-macros/", "kernels-gen/", "runtime/", "xtask/", "tests/"],
        &["tests/tidy"],
        &["todo", "unimplemented", "ignore", "dbg"],
    );
    complaints.retain(|complaint| !complaint.contains("fem-macros/tests/ui/"));
    report("no `todo!`, no ignored test", &complaints);
}

#[test]
fn files_are_short() {
    let all = files();
    let long = all.iter().map(|file| (file, file.text.lines().count()));
    let complaints: Vec<_> = long
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(file, lines)| format!("{} has {lines} lines", file.path))
        .collect();
    report("a file is about one thing and has at most 700 lines", &complaints);
}

/// The tests of a crate are modules of its `all.rs`, or programs that its `Cargo.toml` names.
#[test]
fn every_test_is_run() {
    let all = files();
    let text = |path: &str| fs::read_to_string(root().join(path)).unwrap_or_default();
    let mut complaints = Vec::new();
    for folder in ["", "fem-dsl/", "runtime/"] {
        let (tests, modules) = (format!("{folder}tests/"), text(&format!("{folder}tests/all.rs")));
        let manifest = text(&format!("{folder}Cargo.toml"));
        let names = all.iter().filter_map(|file| file.path.strip_prefix(tests.as_str()));
        for name in names.filter_map(|name| name.strip_suffix(".rs")).filter(|n| !n.contains('/')) {
            let module = modules.lines().any(|line| line == format!("mod {name};"));
            let program = manifest.contains(&format!("path = \"tests/{name}.rs\""));
            if module == program {
                complaints.push(format!("{tests}{name}.rs"));
            }
        }
    }
    report("a file of tests is a module of `all.rs`, or a program, and not both", &complaints);
}

#[test]
fn every_file_says_what_it_is_about() {
    // The inputs of compile-fail tests and the preambles of generated sources are not our modules.
    let exempt = |path: &str| path.contains("/ui/") || path.contains("/preamble/");
    let complaints: Vec<_> = files()
        .into_iter()
        .filter(|file| !exempt(&file.path) && !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    report("a file begins with `//!`", &complaints);
}

#[test]
fn no_file_names_a_place_of_somebodys_machine() {
    // Composed here, so that this file does not contain them.
    let places = ["home", "Users", "root", "tmp"].map(|folder| format!("/{folder}/"));
    let mut complaints = Vec::new();
    for file in files() {
        for (number, line) in file.text.lines().enumerate() {
            if places.iter().any(|place| line.contains(place.as_str())) {
                complaints.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    report("no paths of a machine", &complaints);
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let mut complaints = Vec::new();
    for code in DiagnosticCode::ALL {
        let (id, page) = (code.id(), code.page());
        if !page.starts_with(&format!("# {id}: ")) {
            complaints.push(format!("{id}.md does not begin with `# {id}: title`"));
        }
        if !page.contains("```") || page.lines().count() < 5 {
            complaints.push(format!("{id}.md shows no example"));
        }
    }
    let pages = fs::read_dir(root().join("fem-dsl/src/codes")).expect("the pages");
    for page in pages.flatten() {
        let name = page.file_name().to_string_lossy().into_owned();
        let known = |code: &DiagnosticCode| name == format!("{}.md", code.id());
        if !DiagnosticCode::ALL.iter().any(known) {
            complaints.push(format!("{name} belongs to no code"));
        }
    }
    report("`wf explain` knows every code", &complaints);
}

/// `embedded` is for the macro.
#[test]
fn what_signatures_name_is_exported() {
    let files = files();
    let of_library = |file: &&File| file.path.starts_with("src/") && !file.path.contains("/bin/");
    let below = files.iter().filter(of_library).map(|file| {
        let text = file.text.as_str();
        (file.path.strip_prefix("src/").unwrap_or(&file.path), text)
    });
    let mut complaints = exports::missing(&below.collect::<Vec<_>>());
    complaints.retain(|complaint| !complaint.ends_with("Linked"));
    report("what a public signature of weakform names is exported by it", &complaints);
}

/// `cargo xtask gallery` writes the page.
#[test]
fn every_example_stands_in_the_gallery() {
    let page = fs::read_to_string(root().join("docs/gallery.md")).expect("the gallery");
    let mut complaints = Vec::new();
    for example in fs::read_dir(root().join("examples")).expect("the examples").flatten() {
        let path = example.path();
        if path.extension().is_none_or(|extension| extension != "wf") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let head = format!("\n## [{name}](../examples/{name}.wf)\n");
        let Some(entry) = page.split(&head).nth(1) else {
            complaints.push(format!("{name}.wf is missing"));
            continue;
        };
        let entry = entry.split("\n## ").next().unwrap_or_default();
        let picture = root().join(format!("docs/gallery/{name}.png"));
        match fs::metadata(picture) {
            Ok(file) if file.len() < 60_000 => {}
            Ok(file) => complaints.push(format!("{name}.png has {} bytes", file.len())),
            Err(_) => complaints.push(format!("{name}.wf has no picture")),
        }
        let text = fs::read_to_string(&path).expect("an example");
        let shown = entry.split("```").nth(1).unwrap_or_default().lines().skip(1);
        for line in shown.filter(|line| !text.lines().any(|own| own == *line)) {
            complaints.push(format!("{name}.wf no longer says `{line}`"));
        }
    }
    report("docs/gallery.md shows every example as it is", &complaints);
}

/// For each invariant, the architecture document names the tests of this file that check it; it stays short, and its
/// links are valid.
#[test]
fn documentation_begins_with_a_noun_or_a_verb() {
    let clauses = ["What", "Where", "How", "Whether", "That", "Why", "Which", "Who"];
    let mut found = Vec::new();
    for file in files() {
        for (number, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let text = line.strip_prefix("///").or(line.strip_prefix("//!")).unwrap_or_default();
            let first = text.split_whitespace().next().unwrap_or_default();
            if clauses.contains(&first) {
                found.push(format!("{}:{}: {}", file.path, number + 1, text.trim()));
            }
        }
    }
    report("no line of documentation begins with a relative clause", &found);
}

#[test]
fn types_are_named_by_nouns() {
    let mut complaints = Vec::new();
    for file in files().iter().filter(|file| !file.path.contains("tests")) {
        let code = Code::new(&file.text);
        let all: Vec<(usize, &str)> = words(&code.text).collect();
        for pair in all.windows(2) {
            let (keyword, (line, name)) = (pair[0].1, pair[1]);
            let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
            if is_type && prose::is_no_noun(name) {
                complaints.push(format!("{}:{line} names a type `{name}`", file.path));
            }
        }
    }
    report("no type is named by a preposition, an adverb or a bare participle", &complaints);
}
