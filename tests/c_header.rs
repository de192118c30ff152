//! `wf emit --target c`: headers of all cells agree with `wf probe`, and the page on interfaces says what the source
//! says; its program runs. Needs `cc`, which `rustc` links with.

use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use weakform::{Cell, Export, Isa, Library, Precision, export_program};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn program(text: &str) -> Program {
    let (program, found) = compile(&Source::new("form", text));
    program.unwrap_or_else(|| panic!("{text}: {found:?}"))
}

/// Runs a command in a folder and returns its output.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("a command should start");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{log}");
    text
}

/// Compiles a program in C, with warnings as errors.
fn cc(folder: &Path, file: &str, flags: &[&str]) -> String {
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror"]).args(flags);
    command.args(["-ffp-contract=off", "-fno-math-errno", file, "-o", "program", "-lm"]);
    output(command.current_dir(folder));
    output(Command::new(folder.join("program")).current_dir(folder).args(["-cells", "3"]))
}

/// Two fields with data, a parameter with components, the diameter, and terms on parts of the boundary with gradients.
const FORM: &str = "form part {
    field u: vector;
    field p: scalar in L2(k - 1);
    aux a: scalar on nodes in H1(1);
    param s = 0.7;
    param g: vector = [VECTOR];
    f0[u] = a * u + h * g;
    f1[u] = s * grad(u) - p * I;
    f0[p] = div(u) + a * p;
    on boundary \"x1\" { f0[u] = a * u + dot(grad(p), n) * n + p * grad(u) * g; }
    on boundary \"x0\" { f0[p] = p * dot(u, n); }
}";

/// The driver's polynomial in the language.
fn polynomial(kind: usize, row: usize, degree: usize, dim: usize) -> String {
    let mut text = if kind == 0 || kind == 3 { "0.5" } else { "0.3" }.to_owned();
    for k in 0..dim {
        let a = 0.02 * ((3 * row + 5 * kind + 7 * k) % 9) as f64 - 0.08;
        text += &format!(" + ({a}) * x[{k}]");
        if degree > 1 {
            text += &format!(" + ({a}) * x[{k}] * x[{}]", (k + 1) % dim);
        }
    }
    text
}

/// Returns R(u)·v and v·J(u)w of `wf probe` on a box.
fn probed(folder: &Path, text: &str, cell: Cell, degree: usize) -> [f64; 2] {
    let dim = cell.dim();
    let of = |kind: usize, name: &str| {
        let rows = match name {
            "u" => 0..dim,
            "p" => dim..dim + 1,
            _ => 0..1,
        };
        let degree = [degree, degree - 1, 1][usize::from(name != "u") + usize::from(name == "a")];
        let all: Vec<String> = rows.map(|row| polynomial(kind, row, degree, dim)).collect();
        if name == "u" { format!("[{}]", all.join(", ")) } else { all[0].clone() }
    };
    let mesh = match cell {
        Cell::Interval => "interval(cells: 3)".to_owned(),
        _ => format!("box(dim: {dim}, cells: 3, cell: {cell})"),
    };
    let data = of(3, "a");
    let problem = format!(
        "problem probed solves part {{ mesh = {mesh}; degree = {degree}; quadrature = 8; aux a = {data}; }}"
    );
    fs::write(folder.join("probe.wf"), format!("{text}\n{problem}\n")).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(["probe", "probe.wf", "--json", "--interpret"]).current_dir(folder);
    for (kind, option) in ["--at", "--direction", "--test"].into_iter().enumerate() {
        for name in ["u", "p"] {
            command.arg(option).arg(format!("{name}={}", of(kind, name)));
        }
    }
    let found: serde_json::Value = serde_json::from_str(&output(&mut command)).expect("JSON");
    ["residual", "jacobian"].map(|key| found[key].as_f64().expect("a number"))
}

fn number(output: &str, name: &str, at: usize) -> f64 {
    let line = output.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().nth(at));
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{name}: {output}"))
}

/// A header on a cell: its degree, that of the map, the precision and the instruction set.
type Case = (Cell, usize, usize, Precision, Option<Isa>);

fn agrees((cell, degree, order, precision, isa): Case) {
    let folder = tempfile::tempdir().expect("a folder");
    let vector = ["0.3", "0.4", "0.5"][..cell.dim()].join(", ");
    let text = FORM.replace("VECTOR", &vector);
    let mut export = Export::new(Library::C)
        .cell(cell)
        .degree(degree)
        .order(order)
        .quadrature(8)
        .precision(precision);
    if let Some(isa) = isa {
        export = export.isa(isa);
    }
    let program = program(&text);
    let write = |name: &str, export: &Export| {
        let text = export_program(&program, export).expect("a text");
        fs::write(folder.path().join(name), text).expect("written");
    };
    write("part.h", &export);
    write("driver.c", &export.driver());
    let flags: &[&str] = if isa.is_some() { &["-O0"] } else { &["-O0", "-march=native"] };
    let output = cc(folder.path(), "driver.c", flags);
    let wanted = probed(folder.path(), &text, cell, degree);
    let close = |found: f64, wanted: f64, what: &str| {
        let bound = if precision == Precision::F32 { 1e-4 } else { 1e-10 };
        let error = (found - wanted).abs();
        assert!(error <= bound * wanted.abs(), "{cell}, {what}: {found}, wanted {wanted}");
    };
    let own = ["R(u)·v", "v·J(u)w", "v·diag"].map(|name| number(&output, name, 0));
    close(own[0], wanted[0], "residual");
    close(own[1], wanted[1], "action");
    close(number(&output, "by matrices", 0), wanted[1], "matrices");
    close(number(&output, "by matrices", 1), own[2], "diagonal");
}

#[test]
fn headers_of_all_cells_agree_with_wf_probe() {
    let cases: [Case; 6] = [
        (Cell::Interval, 3, 1, Precision::F64, None),
        (Cell::Triangle, 2, 1, Precision::F64, Some(Isa::Portable)),
        (Cell::Quadrilateral, 3, 2, Precision::F64, None),
        (Cell::Tetrahedron, 2, 2, Precision::F64, None),
        (Cell::Hexahedron, 2, 1, Precision::F64, None),
        (Cell::Quadrilateral, 2, 1, Precision::F32, None),
    ];
    thread::scope(|scope| {
        let all: Vec<_> = cases.into_iter().map(|case| scope.spawn(move || agrees(case))).collect();
        all.into_iter().for_each(|one| one.join().expect("an agreement"));
    });
}

fn page() -> String {
    fs::read_to_string(root().join("docs/abi.md")).expect("the page")
}

/// Returns the block of a page after the first line that begins so.
fn block<'p>(page: &'p str, start: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("\n{start}\n")).unwrap_or_else(|| panic!("{start}"));
    &rest[..rest.find("\n```").expect("an end") + 1]
}

#[test]
fn the_program_of_the_page_prints_what_the_page_says() {
    let page = page();
    let folder = tempfile::tempdir().expect("a folder");
    let commands = block(&page, "```sh");
    let written = [
        ("diffusion.wf", block(&page, "```wf,file=diffusion.wf")),
        ("solve.c", block(&page, "```c,file=solve.c")),
    ];
    for (name, text) in written {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let mut found = String::new();
    for line in commands.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = match words[0] {
            "wf" => Command::new(env!("CARGO_BIN_EXE_wf")),
            "./solve" => Command::new(folder.path().join("solve")),
            other => Command::new(other),
        };
        found = output(command.args(&words[1..]).current_dir(folder.path()));
    }
    assert_eq!(found, block(&page, "```text"));
}

/// Returns a line of the source's documentation as the page has it.
fn plain(line: &str) -> String {
    let line = line.replace("[`", "`").replace("`]", "`");
    line.replace("`Role::", "`").replace("`crate::", "`")
}

#[test]
fn tables_of_the_page_are_those_of_the_source() {
    let source = fs::read_to_string(root().join("kernels-gen/src/abi.rs")).expect("the source");
    let roles: Vec<String> = source
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "))
        .map(|row| plain(&format!("| {row}")))
        .collect();
    let body = source.split_once("pub enum Indices {\n").expect("the kinds of indices").1;
    let mut indices = vec!["| indices | addressing |".to_owned(), "| --- | --- |".to_owned()];
    let mut words: Vec<String> = Vec::new();
    for line in body.lines().map(str::trim).take_while(|line| *line != "}") {
        match (line.strip_prefix("/// "), line.strip_suffix(',')) {
            (Some(text), _) => words.push(plain(text)),
            (_, Some(name)) => {
                indices.push(format!("| `{name}` | {} |", words.join(" ")));
                words.clear();
            }
            _ => panic!("{line}"),
        }
    }
    let page = page();
    for (name, table) in [("roles", roles), ("indices", indices)] {
        assert!(table.len() > 5, "{name}: {table:?}");
        let (_, rest) =
            page.split_once(&format!("<!-- {name}: kernels-gen/src/abi.rs -->\n")).expect(name);
        let found: Vec<&str> = rest.lines().take_while(|line| line.starts_with('|')).collect();
        assert_eq!(
            found,
            table,
            "docs/abi.md should have this table of {name}:\n{}",
            table.join("\n")
        );
    }
}
