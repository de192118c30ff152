//! Kernels in Rust: one batch of cells in the lanes of SIMD vectors.
//!
//! A vector type `V` and a mask type `M` are a module with the functions that the kernels use. Each kernel is a module
//! with its tables, a function with typed arguments, and an `extern "C"` entry point with the calling convention of
//! [`crate::abi`].

mod isa;
mod nested;
mod statement;
mod vocabulary;

pub use isa::Isa;
pub use nested::print_nested;

use super::comment::comment;
use super::vectors::{self, Stages, scalar, trim_lines, vector};
use super::{GeneratedSource, Language, SourceFile};
use crate::abi::KernelAbi;
use crate::kir::{Element, Entries, Kernel, LocalId};
use statement::Rust;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A kernel and its header.
pub(crate) struct Item<'a> {
    /// The kernel, legalised.
    pub(crate) kernel: &'a Kernel,
    /// Its interface.
    pub(crate) abi: &'a KernelAbi,
    /// Lines of the header: the plan and its counts.
    pub(crate) header: &'a [String],
}

/// Prints kernels as one file. `title` is the form's text.
pub(crate) fn print(title: &str, items: &[Item<'_>], isa: Isa) -> GeneratedSource {
    let mut text = String::new();
    comment(&mut text, "", title);
    text.push_str("\n#![allow(unused, non_snake_case, non_upper_case_globals, clippy::all)]\n");
    let body = |item: &Item<'_>| body(item.kernel, isa, Some(&item.abi.name));
    let bodies: Vec<(&Kernel, String)> =
        items.iter().map(|item| (item.kernel, body(item))).collect();
    text.push_str(&vocabulary(&bodies, isa));
    let (mut text, mut starts) = (trim_lines(&text), Vec::new());
    for (item, (kernel, body)) in items.iter().zip(&bodies) {
        let mut own = "\n".to_owned();
        item.header.iter().for_each(|line| comment(&mut own, "", line));
        let _ = writeln!(own, "pub mod {} {{\n{body}}}", kernel.name);
        starts.push(text.len());
        text.push_str(&trim_lines(&own));
    }
    let kernels = items.iter().map(|item| item.abi.clone()).collect();
    let file = SourceFile { text, kernels, starts, language: Language::Rust };
    GeneratedSource::new(file, Some(isa))
}

/// Prints the modules of the vector types of kernels.
fn vocabulary(bodies: &[(&Kernel, String)], isa: Isa) -> String {
    let mut text = String::new();
    let kinds: BTreeSet<_> =
        bodies.iter().map(|(kernel, _)| (kernel.precision, kernel.lanes)).collect();
    for (precision, lanes) in kinds {
        let of = |kernel: &Kernel| (kernel.precision, kernel.lanes) == (precision, lanes);
        let own = bodies.iter().filter(|(kernel, _)| of(kernel));
        let bodies_of_type: Vec<&str> = own.map(|(_, body)| body.as_str()).collect();
        let called = bodies_of_type.iter().any(|kernel| vocabulary::calls(kernel));
        let words = isa.vocabulary(precision, lanes, called);
        let words = vocabulary::used(&words, &bodies_of_type.join("\n"));
        let _ = writeln!(text, "\n/// {lanes} numbers, and what is done with them.");
        let _ = writeln!(text, "mod {}x{lanes} {{", scalar(precision));
        indented(&mut text, &words);
        text.push_str("}\n");
    }
    text
}

/// Returns the names that the module of a vector type declares.
#[cfg(test)]
pub(super) fn words_of_vectors(
    isa: Isa,
    precision: crate::kir::Precision,
    lanes: usize,
) -> Vec<String> {
    vocabulary::free(&isa.vocabulary(precision, lanes, false))
}

/// Prints the contents of the module of a kernel.
fn body(kernel: &Kernel, isa: Isa, symbol: Option<&str>) -> String {
    let kernel = &vectors::folded::<Rust>(kernel);
    let mut inner = format!("use super::{}::*;\n\n", vector(kernel));
    tables(&mut inner, kernel);
    function(&mut inner, kernel, &Stages::new(kernel), isa);
    entry(&mut inner, kernel, symbol);
    let mut text = String::new();
    indented(&mut text, &inner);
    text
}

fn indented(text: &mut String, inner: &str) {
    for line in inner.lines() {
        let _ = writeln!(text, "    {line}");
    }
}

fn tables(text: &mut String, kernel: &Kernel) {
    let read = kernel.tables_read(true);
    for (_, table) in kernel.tables.iter_enumerated().filter(|(id, _)| read[*id]) {
        let name = &table.name;
        match &table.entries {
            Entries::Real(entries) => {
                let _ = write!(text, "static {name}: [T; {}] = [", entries.len());
                for (i, &entry) in entries.iter().enumerate() {
                    let space = if i % 6 == 0 { "\n    " } else { " " };
                    let _ = write!(text, "{space}{},", number(entry));
                }
            }
            Entries::Position(entries) => {
                let _ = write!(text, "static {name}: [u32; {}] = [", entries.len());
                for (i, entry) in entries.iter().enumerate() {
                    let space = if i % 16 == 0 { "\n    " } else { " " };
                    let _ = write!(text, "{space}{entry},");
                }
            }
        }
        text.push_str("\n];\n");
    }
    if read.iter().any(|read| *read) {
        text.push('\n');
    }
}

/// Returns a literal that reads back as the same number.
pub(crate) fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "T::INFINITY".to_owned() } else { "T::NEG_INFINITY".to_owned() };
    }
    format!("{value:?}")
}

fn function(text: &mut String, kernel: &Kernel, stages: &Stages<'_>, isa: Isa) {
    if stages.many {
        for number in 0..stages.bodies.len() {
            stage_function(text, stages, number, isa);
        }
    }
    let _ = writeln!(text, "/// Runs the batches `begin..end`.");
    let _ = writeln!(text, "///");
    let _ = writeln!(text, "/// # Safety");
    let _ = writeln!(text, "/// The arrays hold what the interface says for these batches.");
    if let Some(features) = isa.features(kernel.precision, kernel.lanes) {
        let _ = writeln!(text, "#[target_feature(enable = \"{features}\")]");
    }
    let _ = writeln!(text, "pub unsafe fn run(");
    let _ = writeln!(text, "    begin: usize,\n    end: usize,");
    for argument in &kernel.arguments {
        let _ = writeln!(text, "    {}: {},", argument.name, pointer(argument));
    }
    let _ = writeln!(text, ") {{\n    unsafe {{");
    for (id, batches) in stages.outer() {
        declare(text, kernel, id, batches, "        ");
    }
    if stages.bodies.len() == 1 {
        let _ = writeln!(text, "        for batch in begin..end {{");
        stage(text, stages, 0, 3);
        text.push_str("        }\n    }\n}\n\n");
        return;
    }
    let block = kernel.block;
    let _ = writeln!(text, "        // Batches go through each stage {block} at a time.");
    let _ = writeln!(text, "        for first in (begin..end).step_by({block}) {{");
    let _ = writeln!(text, "            let last = (first + {block}).min(end);");
    for number in 0..stages.bodies.len() {
        let _ = writeln!(text, "            for batch in first..last {{");
        stage(text, stages, number, 4);
        text.push_str("            }\n");
    }
    text.push_str("        }\n    }\n}\n\n");
}

/// Prints a stage's work for a batch, or the call of its function.
fn stage(text: &mut String, stages: &Stages<'_>, stage: usize, depth: usize) {
    let indent = "    ".repeat(depth);
    for id in stages.shared(stage) {
        let (name, length) = (&stages.kernel.locals[id].name, stages.kernel.locals[id].length);
        let _ = writeln!(text, "{indent}let {name} = {name}.add({length} * (batch - first));");
    }
    if stages.many {
        let given = stages.arguments(stage).join(", ");
        let _ = writeln!(text, "{indent}stage_{stage}({given});");
    } else {
        stage_body(text, stages, stage, depth);
    }
}

fn stage_body(text: &mut String, stages: &Stages<'_>, stage: usize, depth: usize) {
    if stages.writes(stage) {
        active(text, stages.kernel, &"    ".repeat(depth));
    }
    vectors::block::<Rust>(text, stages.kernel, stages.bodies[stage], depth);
}

/// Prints a stage of one batch as a function.
fn stage_function(text: &mut String, stages: &Stages<'_>, stage: usize, isa: Isa) {
    let kernel = stages.kernel;
    let _ = writeln!(text, "/// Stage {stage} of one batch.");
    text.push_str("#[inline(never)]\n");
    if let Some(features) = isa.features(kernel.precision, kernel.lanes) {
        let _ = writeln!(text, "#[target_feature(enable = \"{features}\")]");
    }
    let _ = writeln!(text, "unsafe fn stage_{stage}(\n    batch: usize,\n    end: usize,");
    for argument in &kernel.arguments {
        let _ = writeln!(text, "    {}: {},", argument.name, pointer(argument));
    }
    for id in stages.shared(stage) {
        let _ = writeln!(text, "    {}: *mut V,", kernel.locals[id].name);
    }
    let _ = writeln!(text, ") {{\n    unsafe {{");
    for id in stages.alone(stage) {
        declare(text, kernel, id, 1, "        ");
    }
    stage_body(text, stages, stage, 2);
    text.push_str("    }\n}\n\n");
}

/// Declares a private array, once for each of `batches` batches.
fn declare(text: &mut String, kernel: &Kernel, id: LocalId, batches: usize, indent: &str) {
    let local = &kernel.locals[id];
    let (name, length) = (&local.name, local.length * batches);
    let _ = writeln!(
        text,
        "{indent}let mut {name} = core::mem::MaybeUninit::<[V; {length}]>::uninit();"
    );
    let _ = writeln!(text, "{indent}let {name} = {name}.as_mut_ptr().cast::<V>();");
}

/// Prints the number of lanes that write.
fn active(text: &mut String, kernel: &Kernel, indent: &str) {
    if let Some(active) = kernel.active {
        let name = &kernel.arguments[active].name;
        let _ = writeln!(text, "{indent}let active_lanes = *{name}.add(batch) as usize;");
    }
}

fn pointer(argument: &crate::kir::Argument) -> &'static str {
    match (argument.element, argument.written) {
        (Element::Real, false) => "*const T",
        (Element::Real, true) => "*mut T",
        (Element::U32, false) => "*const u32",
        (Element::U32, true) => "*mut u32",
    }
}

/// Prints the entry point, with its own symbol if it is exported.
fn entry(text: &mut String, kernel: &Kernel, symbol: Option<&str>) {
    let _ = writeln!(text, "/// The same, one pointer an argument.");
    let _ = writeln!(text, "///");
    let _ = writeln!(text, "/// # Safety");
    let _ = writeln!(text, "/// As for `run`.");
    if let Some(symbol) = symbol {
        let _ = writeln!(text, "#[unsafe(export_name = \"{symbol}\")]");
    }
    let _ = writeln!(
        text,
        "pub unsafe extern \"C\" fn entry(begin: usize, end: usize, arguments: *const *const u8) {{"
    );
    let _ = writeln!(text, "    unsafe {{\n        run(\n            begin,\n            end,");
    for (i, argument) in kernel.arguments.iter().enumerate() {
        let mutable = if argument.written { ".cast_mut()" } else { "" };
        let _ = writeln!(text, "            (*arguments.add({i})){mutable}.cast(),");
    }
    text.push_str("        )\n    }\n}\n");
}
