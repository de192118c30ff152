//! Imports between the modules of a crate: the cycles among its folders ([`cycles`]), and the violations of a stated
//! order ([`upward`]).
//!
//! An import is a path through modules, in a `use` or in code; it counts for the named module and for modules whose
//! re-exports this one uses. A node is a module of the crate's root with everything below it, except that folders two
//! levels down are separate nodes.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::Code;

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// Returns cycles of imports among the folders of a crate: one complaint per cycle, with all files and lines that close
/// it.
///
/// A file is its path below the root of the crate (`lib.rs`, `device/cpu.rs`) and its text.
pub(crate) fn cycles(files: &[(&str, &str)]) -> Vec<String> {
    let imports = Imports::scan(files);
    let mut found = circles(&imports.edges(folder));
    found.extend(imports.cycles_inside_folders());
    found
}

/// Returns imports of the crate's root modules that violate `order`, bottom up: one complaint per file and line.
///
/// A root module that is not in `order` is a separate complaint.
pub(crate) fn upward(files: &[(&str, &str)], order: &[&str]) -> Vec<String> {
    let root =
        |_: &BTreeSet<Module>, module: &[String]| module.first().cloned().unwrap_or_default();
    let roots: BTreeSet<String> =
        files.iter().filter_map(|(path, _)| module_of(path).first().cloned()).collect();
    let level = |name: &str| order.iter().position(|other| *other == name);
    let unlisted = roots.iter().filter(|name| level(name).is_none());
    let mut complaints: Vec<String> =
        unlisted.map(|name| format!("the order does not list {name}")).collect();
    for ((from, to), places) in Imports::scan(files).edges(root) {
        if level(&from) < level(&to) {
            complaints.extend(places.iter().map(|place| format!("{from} → {to}: {place}")));
        }
    }
    complaints
}

/// The imports of a crate's files, without tests.
struct Imports {
    known: BTreeSet<Module>,
    scans: Vec<Scan>,
    passed: BTreeMap<Module, Module>,
}

impl Imports {
    fn scan(files: &[(&str, &str)]) -> Self {
        let known: BTreeSet<Module> = files.iter().map(|(path, _)| module_of(path)).collect();
        let of_tests =
            |path: &str| path.split('/').any(|part| part == "tests" || part == "tests.rs");
        let own = files.iter().filter(|(path, _)| !of_tests(path));
        let mut scans: Vec<Scan> = own.map(|(path, text)| Scan::new(path, text)).collect();
        let of_tests: Vec<Module> = scans.iter().flat_map(|scan| scan.tests.clone()).collect();
        scans.retain(|scan| !of_tests.iter().any(|module| scan.module.starts_with(module)));
        // If a module and another item share a name, it counts as the module's.
        let passed = scans.iter().flat_map(|scan| scan.passed.clone());
        let passed: BTreeMap<Module, Module> =
            passed.filter(|(name, _)| !known.contains(name)).collect();
        Self { known, scans, passed }
    }

    /// Returns the imports between nodes, each with its files and lines. `node` maps a module to the name of its node;
    /// the empty name is ignored.
    fn edges(
        &self,
        node: impl Fn(&BTreeSet<Module>, &[String]) -> String,
    ) -> BTreeMap<(String, String), Vec<String>> {
        let Self { known, scans, passed } = self;
        let mut edges: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for scan in scans {
            let from = node(known, &scan.module);
            if from.is_empty() {
                continue;
            }
            for (line, path) in &scan.paths {
                for path in stations(passed, path) {
                    let length = (0..=path.len()).rev().find(|&n| known.contains(&path[..n]));
                    let to = node(known, &path[..length.unwrap_or(0)]);
                    let within = |a: &str, b: &str| {
                        a.strip_prefix(b)
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                    };
                    if !(to.is_empty() || within(&from, &to) || within(&to, &from)) {
                        let place = format!("{}:{line} imports {}", scan.path, path.join("::"));
                        edges.entry((from.clone(), to)).or_default().push(place);
                    }
                }
            }
        }
        edges
    }

    /// Returns cycles of imports among the files and folders inside each folder; its own file, such as `mesh.rs` of
    /// `mesh`, is none of them.
    fn cycles_inside_folders(&self) -> Vec<String> {
        let above = |module: &Module| (1..module.len()).map(|n| module[..n].to_vec()).collect();
        let folders: BTreeSet<Module> =
            self.known.iter().flat_map(|module| -> Vec<Module> { above(module) }).collect();
        let inside = |folder: &Module| {
            let child = |_: &BTreeSet<Module>, module: &[String]| {
                let below = module.len() > folder.len() && module.starts_with(folder);
                if below { module[folder.len()].clone() } else { String::new() }
            };
            let named = |cycle: String| format!("{}: {cycle}", folder.join("/"));
            circles(&self.edges(child)).into_iter().map(named).collect::<Vec<_>>()
        };
        folders.iter().flat_map(inside).collect()
    }
}

/// Largest length of a chain of re-exports.
const MOST: usize = 8;

/// Returns a path, and its targets through modules that only re-export a name.
fn stations(passed: &BTreeMap<Module, Module>, path: &[String]) -> Vec<Module> {
    let mut found = vec![path.to_vec()];
    while let Some(last) = found.last()
        && let Some(length) = (1..=last.len()).find(|&n| passed.contains_key(&last[..n]))
    {
        let next = [&passed[&last[..length]][..], &last[length..]].concat();
        if found.contains(&next) || found.len() == MOST {
            break;
        }
        found.push(next);
    }
    found
}

/// Returns the strongly connected sets of nodes, each with its inner edges.
fn circles(edges: &BTreeMap<(String, String), Vec<String>>) -> Vec<String> {
    let mut reached: BTreeSet<(&str, &str)> =
        edges.keys().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let nodes: BTreeSet<&str> = reached.iter().flat_map(|&(from, to)| [from, to]).collect();
    for &middle in &nodes {
        for &from in nodes.iter().filter(|&&from| from != middle) {
            if reached.contains(&(from, middle)) {
                let further = nodes.iter().filter(|&&to| reached.contains(&(middle, to)));
                let further: Vec<_> = further.map(|&to| (from, to)).collect();
                reached.extend(further);
            }
        }
    }
    let with = |node: &str| -> Vec<&str> {
        let both = |other: &&&str| {
            reached.contains(&(node, **other)) && reached.contains(&(**other, node))
        };
        nodes.iter().filter(both).copied().collect()
    };
    let groups: BTreeSet<Vec<&str>> =
        nodes.iter().map(|node| with(node)).filter(|group| !group.is_empty()).collect();
    let shown = |group: &Vec<&str>| {
        let inside = edges.iter().filter(|((from, to), _)| {
            group.contains(&from.as_str()) && group.contains(&to.as_str())
        });
        let lines = inside.flat_map(|((from, to), places)| {
            places.iter().map(move |place| format!("\n    {from} → {to}: {place}"))
        });
        format!("{{ {} }}{}", group.join(", "), lines.collect::<String>())
    };
    groups.iter().map(shown).collect()
}

/// Returns the module of a file.
fn module_of(path: &str) -> Module {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Module = stem.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        parts.pop();
    }
    parts
}

/// Returns the folder of a module; empty for the root.
fn folder(known: &BTreeSet<Module>, module: &[String]) -> String {
    let is_folder = |path: &[String]| {
        known.iter().any(|other| other.len() > path.len() && other.starts_with(path))
    };
    let length = if module.len() >= 2 && is_folder(&module[..2]) { 2 } else { module.len().min(1) };
    module[..length].join("/")
}

/// The imports of one file.
struct Scan {
    path: String,
    module: Module,
    /// Line and path from the crate's root of each import.
    paths: Vec<(usize, Module)>,
    /// Names that `use` creates in a module, with their targets.
    passed: Vec<(Module, Module)>,
    /// Test-only modules of this file.
    tests: Vec<Module>,
}

impl Scan {
    fn new(path: &str, text: &str) -> Self {
        let code = Code::new(text);
        let tokens = tokens(&code.text);
        let module = module_of(path);
        let mut scan = Self {
            path: path.to_owned(),
            module: module.clone(),
            paths: Vec::new(),
            passed: Vec::new(),
            tests: Vec::new(),
        };
        // The open modules, the innermost last, with the brace depth at which each closes.
        let mut open: Vec<(Module, usize)> = vec![(module, 0)];
        let (mut depth, mut at) = (0_usize, 0);
        while at < tokens.len() {
            let token = tokens[at].1;
            let here = open.last().map(|(module, _)| module.clone()).unwrap_or_default();
            let word = |offset: usize| tokens.get(at + offset).map_or("", |&(_, token)| token);
            match token {
                "#" if is_of_tests(&tokens[at..]) => {
                    let item = item_of(&tokens, at);
                    for pair in tokens[at..item].windows(2).filter(|pair| pair[0].1 == "mod") {
                        scan.tests.push([&here[..], &[pair[1].1.to_owned()]].concat());
                    }
                    at = item;
                    continue;
                }
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if open.len() > 1 && open.last().is_some_and(|(_, closes)| *closes == depth) {
                        open.pop();
                    }
                }
                "mod" if word(2) == "{" => {
                    open.push(([&here[..], &[word(1).to_owned()]].concat(), depth));
                }
                _ if token == "use" || begins_path(&tokens, at) => {
                    let is_use = token == "use";
                    let (base, next) = base(&tokens, at + usize::from(is_use), &here);
                    let mut found = Vec::new();
                    at = tree(&tokens, next, &base, &mut found);
                    for Leaf { line, path, name } in found {
                        if let Some(name) = name.filter(|_| is_use) {
                            scan.passed.push(([&here[..], &[name]].concat(), path.clone()));
                        }
                        scan.paths.push((line, path));
                    }
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        scan
    }
}

/// Returns names, `::` and all other characters, each with its line.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if part(first) {
                rest.find(|c| !part(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            found.push((number + 1, &rest[..length]));
            rest = rest[length..].trim_start();
        }
    }
    found
}

/// Returns whether a path through modules begins at `at`: a lower-case letter, and a continuation.
fn begins_path(tokens: &[(usize, &str)], at: usize) -> bool {
    let small = tokens[at].1.starts_with(|c: char| c.is_lowercase() || c == '_');
    let follows = at > 0 && matches!(tokens[at - 1].1, "::" | "$");
    small && !follows && tokens.get(at + 1).is_some_and(|&(_, token)| token == "::")
}

/// Returns the module in which the path at `at` begins, and the position of its rest.
fn base(tokens: &[(usize, &str)], mut at: usize, here: &[String]) -> (Module, usize) {
    let mut module = here.to_vec();
    while let Some(&(_, part @ ("crate" | "super" | "self"))) = tokens.get(at)
        && tokens.get(at + 1).is_some_and(|&(_, token)| token == "::")
    {
        match part {
            "crate" => module.clear(),
            "super" => drop(module.pop()),
            _ => {}
        }
        at += 2;
    }
    (module, at)
}

/// One path of a tree, and its name in the `use`.
struct Leaf {
    line: usize,
    path: Module,
    name: Option<String>,
}

/// Adds all paths of the tree at `at` (`a::{b, c::*}`) below `base`, and returns the position after it.
fn tree(tokens: &[(usize, &str)], mut at: usize, base: &[String], found: &mut Vec<Leaf>) -> usize {
    let mut path = base.to_vec();
    let token = |at: usize| tokens.get(at).map_or("", |&(_, token)| token);
    while let Some(&(line, part)) = tokens.get(at) {
        if part == "{" {
            at += 1;
            while !matches!(token(at), "" | "}") {
                at = if token(at) == "," { at + 1 } else { tree(tokens, at, &path, found) };
            }
            return at + 1;
        }
        if part != "self" && part != "*" {
            path.push(part.to_owned());
        }
        at += 1;
        // `a::<T>` is a name with types, not a longer path.
        if token(at) != "::" || token(at + 1) == "<" {
            let mut name = path.last().cloned().filter(|_| part != "*");
            if token(at) == "as" {
                name = Some(token(at + 1).to_owned());
                at += 2;
            }
            found.push(Leaf { line, path, name });
            break;
        }
        at += 1;
    }
    at
}

/// Returns whether these tokens begin with a test-only attribute.
fn is_of_tests(tokens: &[(usize, &str)]) -> bool {
    let mut words = tokens.iter().map(|&(_, token)| token);
    let cfg = words.next() == Some("#") && words.next() == Some("[") && words.next() == Some("cfg");
    let inside: Vec<&str> = words.take_while(|&token| token != "]").collect();
    cfg && inside.contains(&"test") && !inside.contains(&"not") && !inside.contains(&"any")
}

/// Returns the end of the item with the attribute at `at`.
fn item_of(tokens: &[(usize, &str)], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(&(_, token)) = tokens.get(at) {
        at += 1;
        match token {
            "{" | "(" | "[" => depth += 1,
            // The enclosing item closes: it was a field or an arm of a `match`.
            "}" | ")" | "]" if depth == 0 => return at - 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && token == "}" {
                    // A `use` ends after its braces.
                    return at + usize::from(tokens.get(at).is_some_and(|&(_, t)| t == ";"));
                }
            }
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

#[test]
fn a_circle_of_folders_is_found_with_its_lines() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use c::Thing;"),
        ("a.rs", "use std::fmt;\nuse crate::b::{Other, inner::More};\nfn f() {}"),
        ("b.rs", "mod inner;\nfn f() -> u8 { super::c::f() }"),
        ("b/inner.rs", "use super::f;"),
        ("c.rs", "fn f() { crate::a::f::<u8>() }"),
    ];
    let found = cycles(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = [
        "{ a, b, c }",
        "\n    a → b: a.rs:2 imports b::Other",
        "\n    a → b: a.rs:2 imports b::inner::More",
        "\n    b → c: b.rs:2 imports c::f",
        "\n    c → a: c.rs:1 imports a::f",
    ];
    assert_eq!(found[0], expected.concat());
    // One of the edges through a re-export of the root.
    let mut passed = files;
    passed[2].1 = "use crate::Thing;";
    assert!(cycles(&passed)[0].contains("b → c: b.rs:1 imports c::Thing"));
    // Another through an imported module.
    passed[2].1 = "use crate::c as other;\nmod inner;\nfn f() { other::f() }";
    assert!(cycles(&passed)[0].contains("b → c: b.rs:3 imports c::f"));
    // Without one of the edges there is no cycle.
    let mut broken = files;
    broken[4].1 = "// crate::a::f\nconst TEXT: &str = \"crate::a\";\npub(crate) fn f() {}";
    assert_eq!(cycles(&broken), [""; 0]);
}

#[test]
fn folders_below_folders_are_nodes_and_tests_do_not_count() {
    let mut files = [
        ("device.rs", "pub use self::cpu::load::f;\n#[cfg(test)]\nmod samples;"),
        ("device/samples.rs", "use crate::run::f;"),
        ("device/cpu.rs", "use super::{Device, cuda::g as h};"),
        ("device/cpu/load.rs", "#[cfg(test)]\nmod tests {\n  use crate::run::f;\n}\nfn f() {}"),
        ("device/cpu/tests.rs", "use crate::run::f;"),
        ("device/cuda.rs", "mod own { fn f() { super::super::Device } }"),
        ("device/cuda/load.rs", ""),
        ("run.rs", "use crate::device::{cpu::load::f, cuda};"),
    ];
    assert_eq!(cycles(&files), [""; 0]);
    files[5].1 = "mod own { fn f() { super::super::cpu::load::f() } }";
    let found = cycles(&files);
    // Among all folders, and inside `device`.
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("{ device/cpu, device/cuda }"), "{found:?}");
    assert!(found[1].starts_with("device: { cpu, cuda }"), "{found:?}");
    assert!(found[0].contains("device/cuda.rs:1 imports device::cpu::load::f"), "{found:?}");
    // A folder's own name for it hides nothing.
    files[5].1 = "use super::f;";
    assert!(cycles(&files)[0].contains("device/cuda.rs:1 imports device::cpu::load::f"));
}

#[test]
fn files_of_a_folder_import_in_no_circle() {
    let mut files = [
        ("mesh.rs", "mod grid;\nmod map;\nfn f() { grid::g() }"),
        ("mesh/grid.rs", "use super::map::Map;\nfn g() { super::f() }"),
        ("mesh/map.rs", "pub(super) struct Map;"),
    ];
    assert_eq!(cycles(&files), [""; 0]);
    files[2].1 = "use super::grid::g;\npub(super) struct Map;";
    let found = cycles(&files);
    let expected = [
        "mesh: { grid, map }",
        "\n    grid → map: mesh/grid.rs:1 imports mesh::map::Map",
        "\n    map → grid: mesh/map.rs:1 imports mesh::grid::g",
    ];
    assert_eq!(found, [expected.concat()]);
}
