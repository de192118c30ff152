//! Kernels in C with GNU vector types, for GCC and Clang: one batch of cells in the lanes of SIMD vectors.
//!
//! The names of functions end with the name of their vector type, `fma_f64x4`, so that several types can be in one file.
//! A kernel has its tables and functions with typed arguments, `NAME_run` and its stages, and an entry point `NAME` with
//! the calling convention of [`crate::abi`].

mod functions;
mod header;
mod spelling;

use super::c::names;
use super::comment::comment;
use super::fold::FoldedKernel;
use super::rust::{Isa, Item};
use super::vectors::{self, Stages, scalar, trim_lines, vector};
use super::{GeneratedSource, Language, SourceFile};
use crate::kir::{Argument, Element, Entries, Kernel, LocalId, Op, Precision, Statement};
use functions::Instance;
pub(crate) use header::{StaticKernel, static_kernels};
use spelling::{GnuC, literal_text};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The flags with which results are the same to the bit as those of the Rust kernels.
pub const FLAGS: [&str; 3] = ["-O2", "-ffp-contract=off", "-fno-math-errno"];

/// Prints kernels as one file. `title` is the form's text.
pub(crate) fn print(title: &str, items: &[Item<'_>], isa: Isa) -> GeneratedSource {
    let kernels: Vec<String> = items.iter().map(|item| kernel(item)).collect();
    let mut text = String::new();
    comment(&mut text, "", title);
    let _ = writeln!(text, "// Compile with {} and the flags of the processor.", FLAGS.join(" "));
    text.push_str(&preamble(items, &kernels, isa));
    let mut source = SourceFile { text: trim_lines(&text), ..SourceFile::empty(Language::C) };
    for (text, item) in kernels.iter().zip(items) {
        source.starts.push(source.text.len());
        source.text.push_str(&trim_lines(text));
        source.kernels.push(item.abi.clone());
    }
    GeneratedSource::new(source, Some(isa))
}

/// Returns the text before the first kernel: includes, vector types, and the functions that kernels call.
fn preamble(items: &[Item<'_>], kernels: &[String], isa: Isa) -> String {
    let mut kinds: BTreeMap<(Precision, usize), (BTreeSet<Instance>, String)> = BTreeMap::new();
    for (item, text) in items.iter().zip(kernels) {
        let kernel = item.kernel;
        let (instances, texts) = kinds.entry((kernel.precision, kernel.lanes)).or_default();
        instances.extend(functions::instances(kernel));
        texts.push_str(text);
    }
    let mut all = format!("\n{}", functions::COMMON.trim_end());
    for (&(precision, lanes), (instances, kernels)) in &kinds {
        all.push_str("\n\n");
        all.push_str(&functions::required(isa, precision, lanes));
        let text = functions::text(precision, lanes, instances);
        all.push_str(used(&text, kernels).trim_end());
    }
    all.push('\n');
    all
}

/// Returns the first block of a text (blocks are separated by empty lines), and the functions among the others that
/// `kernels` or a later retained block calls.
fn used(text: &str, kernels: &str) -> String {
    super::c::called(text, kernels)
}

/// Returns the names that the text before kernels declares.
#[cfg(test)]
pub(super) fn words(precision: Precision, lanes: usize) -> Vec<String> {
    let instances = BTreeSet::from(Instance::EXAMPLES);
    let text = functions::text(precision, lanes, &instances);
    let text = format!("{}\n\n{text}", functions::COMMON);
    text.split("\n\n").flat_map(super::c::declares).map(str::to_owned).collect()
}

/// Prints a kernel.
fn kernel(item: &Item<'_>) -> String {
    let kernel = vectors::folded::<GnuC>(item.kernel);
    let (mut text, arguments) = body(item.header, &kernel, "static");
    entry(&mut text, &kernel, &item.abi.name, &arguments);
    text
}

/// Prints a kernel without its entry point, as a function of a linkage. Returns the names of its arguments, too.
fn body(header: &[String], kernel: &FoldedKernel, linkage: &str) -> (String, Vec<String>) {
    let mut text = "\n".to_owned();
    header.iter().for_each(|line| comment(&mut text, "", line));
    tables(&mut text, kernel);
    let stages = &Stages::new(kernel);
    if stages.many {
        for number in 0..stages.bodies.len() {
            stage_function(&mut text, stages, number);
        }
    }
    let arguments = run(&mut text, stages, linkage);
    (text, arguments)
}

/// Prints the tables that a kernel reads.
fn tables(text: &mut String, kernel: &Kernel) {
    let read = kernel.tables_read(true);
    for (id, table) in kernel.tables.iter_enumerated().filter(|(id, _)| read[*id]) {
        let (scalar, entries): (_, Vec<String>) = match &table.entries {
            Entries::Real(entries) => {
                let entry = |&entry: &f64| literal_text(entry, kernel.precision);
                (spelling::scalar(kernel.precision), entries.iter().map(entry).collect())
            }
            Entries::Position(entries) => {
                ("uint32_t", entries.iter().map(ToString::to_string).collect())
            }
        };
        let name = spelling::table_name(kernel, id);
        let _ = write!(text, "static const {scalar} {name}[{}] = {{", entries.len());
        super::c::listed(text, &entries, "");
        text.push('\n');
    }
}

/// Returns an argument's declaration.
fn declaration(argument: &Argument, precision: Precision) -> String {
    let kind = match argument.element {
        Element::Real => spelling::scalar(precision),
        Element::U32 => "uint32_t",
    };
    let access = if argument.written { "" } else { "const " };
    format!("{access}{kind} *{}", argument.name)
}

/// Prints `NAME_run`, which runs the batches from `begin` to `end`. Returns the names of its arguments, which are those
/// that the kernel uses.
fn run(text: &mut String, stages: &Stages<'_>, linkage: &str) -> Vec<String> {
    let kernel = stages.kernel;
    let mut body = String::new();
    for (id, batches) in stages.outer() {
        let name = if batches > 1 { of_all(kernel, id) } else { kernel.locals[id].name.clone() };
        let length = kernel.locals[id].length * batches;
        array(&mut body, kernel, id, &name, length);
    }
    if stages.bodies.len() == 1 {
        body.push_str("    for (size_t batch = begin; batch < end; ++batch) {\n");
        stage(&mut body, stages, 0, 2);
        body.push_str("    }\n");
    } else {
        let block = kernel.block;
        let _ = writeln!(body, "    // Batches go through each stage {block} at a time.");
        let head = format!("for (size_t first = begin; first < end; first += {block}) {{");
        let _ = writeln!(body, "    {head}");
        let last = format!("first + {block} < end ? first + {block} : end");
        let _ = writeln!(body, "        const size_t last = {last};");
        for number in 0..stages.bodies.len() {
            body.push_str("        for (size_t batch = first; batch < last; ++batch) {\n");
            stage(&mut body, stages, number, 3);
            body.push_str("        }\n");
        }
        body.push_str("    }\n");
    }
    let used: BTreeSet<&str> = names(&body).collect();
    let arguments = kernel.arguments.iter().filter(|own| used.contains(own.name.as_str()));
    let declared: Vec<String> =
        arguments.clone().map(|own| declaration(own, kernel.precision)).collect();
    let name = &kernel.name;
    let _ = writeln!(text, "{linkage} void {name}_run(\n    size_t begin,\n    size_t end,");
    let _ = writeln!(text, "    {})\n{{\n{body}}}\n", declared.join(",\n    "));
    arguments.map(|own| own.name.clone()).collect()
}

/// Declares a private array. Compilers warn about one that is only written.
fn array(text: &mut String, kernel: &Kernel, id: LocalId, name: &str, length: usize) {
    let reads = |one: &Statement| match one {
        Statement::Let(value) => {
            matches!(kernel.values[*value].op, Op::LoadLocal(local, _) if local == id)
        }
        Statement::ScatterRun { run, .. } => run.locals().any(|local| local == id),
        _ => false,
    };
    let is_read = kernel.body.iter().any(|statement| statement.any(&mut |one| reads(one)));
    let unused = if is_read { "" } else { " __attribute__((unused))" };
    let _ = writeln!(text, "    {} {name}[{length}]{unused};", vector(kernel));
}

/// Returns the name of a private array that exists once for each batch of a block.
fn of_all(kernel: &Kernel, id: LocalId) -> String {
    let mut name = format!("{}_of_all", kernel.locals[id].name);
    let arguments = || kernel.arguments.iter().map(|argument| &argument.name);
    while arguments().chain(kernel.locals.iter().map(|local| &local.name)).any(|own| *own == name) {
        name.push('_');
    }
    name
}

/// Prints a stage's work for a batch, or the call of its function.
fn stage(text: &mut String, stages: &Stages<'_>, stage: usize, depth: usize) {
    let (kernel, indent) = (stages.kernel, "    ".repeat(depth));
    for id in stages.shared(stage) {
        let (kind, name, all) = (vector(kernel), &kernel.locals[id].name, of_all(kernel, id));
        if kernel.block == 1 {
            continue;
        }
        let length = kernel.locals[id].length;
        let _ =
            writeln!(text, "{indent}{kind} *const {name} = {all} + {length} * (batch - first);");
    }
    if stages.many {
        let given = stage_arguments(stages, stage).join(", ");
        let _ = writeln!(text, "{indent}{}_stage_{stage}({given});", kernel.name);
    } else {
        text.push_str(&stage_body(stages, stage, depth));
    }
}

fn stage_body(stages: &Stages<'_>, stage: usize, depth: usize) -> String {
    let mut text = String::new();
    if let Some(active) = stages.kernel.active.filter(|_| stages.writes(stage)) {
        let (indent, name) = ("    ".repeat(depth), &stages.kernel.arguments[active].name);
        let _ = writeln!(text, "{indent}const size_t active_lanes = {name}[batch];");
    }
    vectors::block::<GnuC>(&mut text, stages.kernel, stages.bodies[stage], depth);
    text
}

/// Returns the names of the arguments that a stage's function uses.
fn stage_arguments(stages: &Stages<'_>, stage: usize) -> Vec<String> {
    let body = stage_body(stages, stage, 1);
    let used: BTreeSet<&str> = names(&body).collect();
    let all = stages.arguments(stage).into_iter();
    all.filter(|name| used.contains(name.as_str())).collect()
}

/// Prints a stage of one batch as a function.
fn stage_function(text: &mut String, stages: &Stages<'_>, stage: usize) {
    let kernel = stages.kernel;
    let declared = stage_arguments(stages, stage).into_iter().map(|name| {
        match kernel.arguments.iter().find(|argument| argument.name == name) {
            Some(argument) => declaration(argument, kernel.precision),
            None if name == "batch" || name == "end" => format!("size_t {name}"),
            None => format!("{} *{name}", vector(kernel)),
        }
    });
    let declared: Vec<String> = declared.collect();
    let declared = if declared.is_empty() { "void".to_owned() } else { declared.join(",\n    ") };
    let _ = writeln!(text, "// Stage {stage} of one batch.");
    let _ = writeln!(text, "NOINLINE void {}_stage_{stage}(\n    {declared})\n{{", kernel.name);
    for id in stages.alone(stage) {
        let local = &kernel.locals[id];
        array(text, kernel, id, &local.name, local.length);
    }
    text.push_str(&stage_body(stages, stage, 1));
    text.push_str("}\n\n");
}

/// Prints the entry point.
fn entry(text: &mut String, kernel: &Kernel, symbol: &str, arguments: &[String]) {
    let _ = writeln!(
        text,
        "void {symbol}(size_t begin, size_t end, const void *const *arguments)\n{{\n    {}_run(",
        kernel.name
    );
    text.push_str("        begin,\n        end");
    for (i, argument) in kernel.arguments.iter().enumerate() {
        if arguments.contains(&argument.name) {
            let kind = match argument.element {
                Element::Real => spelling::scalar(kernel.precision),
                Element::U32 => "uint32_t",
            };
            let access = if argument.written { "" } else { "const " };
            let _ = write!(text, ",\n        ({access}{kind} *)arguments[{i}]");
        }
    }
    text.push_str(");\n}\n");
}

/// Returns the name of the vector type of a precision and a number of lanes.
fn vector_name(precision: Precision, lanes: usize) -> String {
    format!("{}x{lanes}", scalar(precision))
}
