//! Kernels in the C family: an abstract thread of the kernel IR is a thread of a group.
//!
//! CUDA and OpenCL differ in vocabulary only, which [`Vocabulary`] contains. A kernel takes the first batch, the end of
//! the batches and its arrays; group g processes batches from `first + g · block` on. Local arrays are private to a
//! thread, and all loops over them must be unrolled, so that the arrays become registers.

pub mod rows;
pub mod slices;
mod statement;
pub mod sum;

use super::comment::comment;
use super::{GeneratedSource, Language, SourceFile};
use crate::abi::{Argument, IndirectAccess, KernelAbi, Role, SHARED_BYTES};
use crate::kir::{Element, Entries, Kernel, Precision, Thread};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The vocabulary of a dialect.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary {
    /// The language.
    pub language: Language,
    /// Prefix of a kernel's name, with `$THREADS` for the number of threads.
    pub kernel: &'static str,
    /// Qualifier of a pointer to global memory.
    pub global: &'static str,
    /// Qualifier of an array in shared memory.
    pub shared: &'static str,
    /// Declaration of the dynamic shared memory `asked_for` of a launch; `None` if the dialect has none.
    pub asked_for: Option<&'static str>,
    /// Alternative to [`Vocabulary::kernel`] if a compiler option sets the registers of a file's kernels.
    pub by_registers: Option<&'static str>,
    /// Group barrier.
    pub barrier: &'static str,
    /// Qualifier of a constant table.
    pub constant: &'static str,
    /// Qualifier of a constant table of which threads read different entries at once; `None` if a file can initialise
    /// constant memory only.
    pub spread: Option<&'static str>,
    /// True if a kernel's tables are declared inside it, not in a namespace before it. NVRTC puts the values of a
    /// static table into instructions, which then take more registers.
    pub tables_within: bool,
    /// A fence that keeps a compiler from moving memory accesses across it.
    pub fence: &'static str,
    /// A read from constant memory that prevents a compiler from merging known values; `None` if it does not merge
    /// them.
    pub listed: Option<&'static str>,
    /// Qualifier of an unaliased pointer.
    pub restrict: &'static str,
    /// The index of the thread in its group.
    pub thread: &'static str,
    /// The index of the group.
    pub group: &'static str,
    /// The type of sizes.
    pub size: &'static str,
    /// Text before the first kernel. Placeholders: `$T` scalar type, `$U` unsigned integer of its size, `$EXCHANGE` its
    /// compare-and-exchange operation. In NVIDIA's assembly, `$P` and `$C` are letters of the type, and `$RECIPROCAL`
    /// is the function for 1/x.
    pub preamble: &'static str,
}

/// A kernel and its header.
pub(crate) struct Item<'a> {
    /// The kernel, legalised for threads.
    pub(crate) kernel: &'a Kernel,
    /// Its interface.
    pub(crate) abi: &'a KernelAbi,
    /// Lines of the header: the plan and its counts.
    pub(crate) header: &'a [String],
}

/// Prints kernels of one precision as one file. `title` is the form's text.
pub(crate) fn print(title: &str, items: &[Item<'_>], words: &Vocabulary) -> GeneratedSource {
    let own = |item: &Item<'_>| {
        let mut text = "\n".to_owned();
        kernel(&mut text, item, words);
        trimmed(&text)
    };
    let own: Vec<String> = items.iter().map(own).collect();
    let precision = items.first().map_or(Precision::F64, |item| item.kernel.precision);
    let mut head = String::new();
    comment(&mut head, "", title);
    head.push('\n');
    head.push_str(&preamble(words, precision, &own.concat()));
    let mut source = SourceFile { text: trimmed(&head), ..SourceFile::empty(words.language) };
    for (text, item) in own.iter().zip(items) {
        source.starts.push(source.text.len());
        source.text.push_str(text);
        source.kernels.push(item.abi.clone());
    }
    GeneratedSource::new(source, None)
}

/// Returns the text without trailing spaces.
fn trimmed(text: &str) -> String {
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Prints a hand-written kernel for groups of `threads` in the vocabulary of a dialect. Its placeholders are `$KERNEL`,
/// `$NAME`, `$SIZE`, `$GLOBAL`, `$SHARED`, `$BARRIER`, `$RESTRICT`, `$GROUP`, `$THREADS`, `$THREAD`, and those of
/// `further`.
fn by_hand(
    text: &str,
    (name, threads): (&str, usize),
    further: &[(&str, usize)],
    words: &Vocabulary,
    precision: Precision,
    (arguments, reaches): (Vec<Argument>, Vec<IndirectAccess>),
) -> GeneratedSource {
    let (kernel, count) = (words.kernel.replace("$GROUPS", "1"), threads.to_string());
    let thread = format!("({})", words.thread);
    let marks = [
        ("$KERNEL", kernel.as_str()),
        ("$NAME", name),
        ("$SIZE", words.size),
        ("$GLOBAL", words.global),
        ("$SHARED", words.shared),
        ("$BARRIER", words.barrier),
        ("$RESTRICT", words.restrict),
        ("$GROUP", words.group),
        ("$THREADS", &count),
        ("$THREAD", &thread),
    ];
    let own = marks.into_iter().fold(text.to_owned(), |own, (mark, word)| own.replace(mark, word));
    let number =
        |own: String, &(mark, number): &(&str, usize)| own.replace(mark, &number.to_string());
    let own = further.iter().fold(own, number);
    let head = format!("{}\n", preamble(words, precision, &own));
    let abi = KernelAbi {
        reaches,
        hash: crate::abi::hash(text),
        ..KernelAbi::by_hand(name, precision, threads, arguments)
    };
    let (starts, kernels, language) = (vec![head.len()], vec![abi], words.language);
    GeneratedSource::new(SourceFile { text: head + &own, language, kernels, starts }, None)
}

/// Returns an argument of such a kernel; only results are written.
fn argument(role: Role, name: &str, extent: usize) -> Argument {
    let written = matches!(role, Role::Result(_));
    Argument { role, name: name.to_owned(), extent, written }
}

/// Returns hand-written kernels after the types and helper functions that they call.
pub fn with_preamble(words: &Vocabulary, precision: Precision, kernels: &str) -> String {
    format!("{}\n{kernels}", preamble(words, precision, kernels))
}

/// Returns the text before the first kernel: types, and the helper functions that kernels call.
fn preamble(words: &Vocabulary, precision: Precision, kernels: &str) -> String {
    let words_of_type = match precision {
        Precision::F64 => {
            let reciprocal = include_str!("preamble/reciprocal_f64.c");
            ["double", "ulong", "atom_cmpxchg", "f64", "d", reciprocal]
        }
        Precision::F32 => {
            let reciprocal = include_str!("preamble/reciprocal_f32.c");
            ["float", "uint", "atomic_cmpxchg", "f32", "f", reciprocal]
        }
    };
    let marks = ["$T", "$U", "$EXCHANGE", "$P", "$C", "$RECIPROCAL"];
    let marks = marks.into_iter().zip(words_of_type);
    let all = marks.fold(words.preamble.to_owned(), |text, (mark, word)| text.replace(mark, word));
    called(&all, kernels)
}

/// Returns the first block of a text (blocks are separated by empty lines) and the blocks whose declarations `kernels`
/// or a later retained block refers to.
pub(super) fn called(text: &str, kernels: &str) -> String {
    let blocks: Vec<&str> = text.trim_end().split("\n\n").collect();
    let mut used: BTreeSet<&str> = names(kernels).collect();
    let mut kept = Vec::new();
    for (number, block) in blocks.iter().enumerate().rev() {
        if number == 0 || declares(block).any(|name| used.contains(name)) {
            used.extend(names(block));
            kept.push(*block);
        }
    }
    kept.reverse();
    kept.join("\n\n") + "\n"
}

/// Returns the identifiers in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|name| !name.is_empty())
}

/// Returns the functions and macros that a block declares.
pub(super) fn declares(block: &str) -> impl Iterator<Item = &str> {
    block.lines().filter_map(|line| {
        if let Some(rest) = line.strip_prefix("#define ") {
            return names(rest).next();
        }
        let own = line.strip_prefix("INLINE ").or_else(|| line.strip_prefix("NOINLINE "));
        let (before, _) = own?.split_once('(')?;
        names(before).last()
    })
}

fn kernel(text: &mut String, item: &Item<'_>, words: &Vocabulary) {
    let kernel = &statement::folded(item.kernel, words);
    item.header.iter().for_each(|line| comment(text, "", line));
    let beside = !words.tables_within && kernel.tables_read(false).iter().any(|read| *read);
    if beside {
        let _ = writeln!(text, "namespace {}_ {{", kernel.name);
        tables(text, kernel, words);
    }
    let count = kernel.threads.max(kernel.lanes).to_string();
    let size = words.size;
    let _ = writeln!(
        text,
        "{} {}(",
        words
            .by_registers
            .unwrap_or(words.kernel)
            .replace("$THREADS", &count)
            .replace("$GROUPS", &item.abi.residency.to_string()),
        kernel.name
    );
    let _ = write!(text, "    const {size} first,\n    const {size} end");
    for argument in &kernel.arguments {
        let scalar = match argument.element {
            Element::Real => "T",
            Element::U32 => "uint32",
        };
        let access = if argument.written { "" } else { "const " };
        let (global, restrict) = (words.global, words.restrict);
        let _ = write!(text, ",\n    {global}{access}{scalar}* {restrict} {}", argument.name);
    }
    text.push_str(")\n{\n");
    if words.tables_within {
        tables(text, kernel, words);
    }
    if kernel.threads == 0 {
        let _ = writeln!(text, "    const int lane = {};", words.thread);
        let _ = writeln!(text, "    const {size} batch = first + {};", words.group);
        text.push_str("    if (batch >= end) return;\n");
        if let Some(active) = kernel.active {
            let name = &kernel.arguments[active].name;
            let _ = writeln!(text, "    const bool writes = lane < (int){name}[batch];");
        }
        shared(text, kernel, words);
    } else {
        threads(text, kernel, words);
    }
    for (id, local) in kernel.locals.iter_enumerated() {
        if kernel.uses_local(&kernel.body, id) {
            let _ =
                writeln!(text, "    T {}[{}];", statement::local_name(kernel, id), local.length);
        }
    }
    for (id, array) in kernel.integers.iter_enumerated() {
        let name = statement::integers_name(kernel, id);
        let _ = writeln!(text, "    uint32 {name}[{}];", array.length);
    }
    if kernel.series > 1 {
        text.push_str("    #pragma unroll 1\n");
        let _ = writeln!(text, "    for (int turn = 0; turn < {}; ++turn) {{", kernel.series);
        own_batch(text, kernel, words, 2);
        statement::block(text, kernel, words, &kernel.body, 2);
        text.push_str("    }\n");
    } else {
        if kernel.threads > 0 {
            own_batch(text, kernel, words, 1);
        }
        statement::block(text, kernel, words, &kernel.body, 1);
    }
    text.push_str("}\n");
    if beside {
        text.push_str("}\n");
    }
}

/// Prints the tables that a kernel reads.
fn tables(text: &mut String, kernel: &Kernel, words: &Vocabulary) {
    let read = kernel.tables_read(false);
    for (id, table) in kernel.tables.iter_enumerated() {
        if !read[id] {
            continue;
        }
        let name = statement::table_name(kernel, id);
        let (scalar, entries): (_, Vec<String>) = match &table.entries {
            Entries::Real(entries) => {
                ("T", entries.iter().map(|&entry| number(entry, kernel.precision)).collect())
            }
            Entries::Position(entries) => {
                ("int", entries.iter().map(ToString::to_string).collect())
            }
        };
        let before = words.spread.filter(|_| table.spread).unwrap_or(words.constant);
        let indent = if words.tables_within { "    " } else { "" };
        let _ = write!(text, "{indent}{before} {scalar} {name}[{}] = {{", entries.len());
        listed(text, &entries, indent);
    }
}

/// Prints the entries of a table after its opening brace, in lines of a hundred characters.
pub(super) fn listed(text: &mut String, entries: &[String], indent: &str) {
    let mut column = 100;
    for entry in entries {
        column += entry.len() + 2;
        if column > 100 {
            let _ = write!(text, "\n{indent}   ");
            column = indent.len() + 4 + entry.len() + 2;
        }
        let _ = write!(text, " {entry},");
    }
    let _ = writeln!(text, "\n{indent}}};");
}

/// Prints the thread indices of a group and its shared arrays.
fn threads(text: &mut String, kernel: &Kernel, words: &Vocabulary) {
    let _ = writeln!(text, "    const int thread = {};", words.thread);
    for (id, var) in kernel.vars.iter_enumerated() {
        let name = statement::var_name(kernel, id);
        match var.thread() {
            Some(Thread::Digit { divisor, modulus }) => {
                let digit = match divisor {
                    1 => "thread".to_owned(),
                    _ => format!("thread / {divisor}"),
                };
                // Also printed if it is the identity: compilers infer the range of the digit from it.
                let _ = writeln!(text, "    const int {name} = {digit} % {modulus};");
            }
            Some(Thread::Listed(table)) => {
                let table = statement::table_name(kernel, table);
                let _ = writeln!(text, "    const int {name} = {table}[thread];");
            }
            Some(Thread::Border { .. }) if statement::recomputes(&kernel.body, id) => {
                let _ = writeln!(text, "    bool {name};");
            }
            Some(Thread::Border { digits, last }) => {
                let digit = |digit| statement::var_name(kernel, digit).to_owned();
                let on = statement::on_border(digits.map(digit), last);
                let _ = writeln!(text, "    const bool {name} = {on};");
            }
            Some(Thread::Batch { .. } | Thread::Member) | None => {}
        }
    }
    shared(text, kernel, words);
}

/// Prints the shared arrays of a group separately. They are parts of one array if they exceed the memory of every
/// device and the launch has to request it.
fn shared(text: &mut String, kernel: &Kernel, words: &Vocabulary) {
    // Each begins at an even offset.
    let even = kernel.shared.iter().map(|array| array.length.next_multiple_of(2));
    let large = even.sum::<usize>() * kernel.precision.bytes() > SHARED_BYTES;
    if let Some(asked_for) = words.asked_for.filter(|_| large) {
        let _ = writeln!(text, "    {asked_for}");
    }
    let mut first = 0;
    for (id, array) in kernel.shared.iter_enumerated() {
        let name = statement::shared_name(kernel, id);
        let _ = match words.asked_for {
            Some(_) if large => writeln!(text, "    T* const {name} = asked_for + {first};"),
            _ => writeln!(text, "    {} T {name}[{}];", words.shared, array.length),
        };
        first += array.length.next_multiple_of(2);
    }
}

/// Prints the thread's batch, clamped to the last one. A group without any batch returns as a whole, so that in all
/// others every thread reaches the barriers.
fn own_batch(text: &mut String, kernel: &Kernel, words: &Vocabulary, depth: usize) {
    let (size, group, indent) = (words.size, kernel.group, "    ".repeat(depth));
    let mut turn = format!("({size}){}", words.group);
    if kernel.series > 1 {
        turn = format!("({turn} * {} + turn)", kernel.series);
        let _ = writeln!(text, "{indent}if (first + {turn} * {group} >= end) break;");
    }
    let share = kernel.threads / group;
    let _ =
        writeln!(text, "{indent}const {size} own = first + {turn} * {group} + thread / {share};");
    let _ = writeln!(text, "{indent}const bool writes = own < end;");
    let _ = writeln!(text, "{indent}const {size} batch = writes ? own : end - 1;");
    for (id, var) in kernel.vars.iter_enumerated() {
        let Some(Thread::Batch { divisor }) = var.thread() else { continue };
        let name = statement::var_name(kernel, id);
        let of = format!("first + {turn} * {group} + thread / {divisor}");
        let _ = writeln!(text, "{indent}const {size} own_{name} = {of};");
        let _ = writeln!(text, "{indent}const bool writes_{name} = own_{name} < end;");
        let last = format!("writes_{name} ? own_{name} : end - 1");
        let _ = writeln!(text, "{indent}const {size} {name} = {last};");
    }
}

/// Returns a literal that reads back as the same number.
pub(crate) fn number(value: f64, precision: Precision) -> String {
    let suffix = if precision == Precision::F32 { "f" } else { "" };
    if value.is_infinite() {
        return if value > 0.0 { "(T)INFINITY".to_owned() } else { "(T)-INFINITY".to_owned() };
    }
    // A double that is no float does not compile as one: it is rounded as the kernel rounds it.
    match precision {
        Precision::F64 => format!("{value:?}"),
        Precision::F32 => format!("{:?}{suffix}", value as f32),
    }
}
