//! The generator of the parser: grammar.js, evaluated by Node.js, → parser.c → a library.

use std::path::Path;

fn main() {
    let grammar = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", grammar.join("grammar.js").display());
    let mut remarks = Vec::new();
    tree_sitter_generate::generate_parser_in_directory(
        &grammar,
        Some(&out),
        Some(grammar.join("grammar.js")),
        15,
        None,
        Some("node"),
        true,
        tree_sitter_generate::OptLevel::default(),
        &mut remarks,
    )
    .expect("a grammar without conflicts");
    cc::Build::new().include(&out).file(out.join("parser.c")).warnings(false).compile("wf");
}
