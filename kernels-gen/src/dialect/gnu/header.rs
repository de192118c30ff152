//! Kernels as static functions of a header: without entry points, and with names that do not meet those of a program or
//! of another header.

use super::spelling::GnuC;
use super::{Isa, Item, body, preamble, trim_lines};
use crate::dialect::c::{declares, names};
use crate::dialect::vectors::folded;
use std::collections::BTreeSet;

/// A kernel as a static function of two numbers, `begin` and `end`, and of those of its arguments that it uses.
pub(crate) struct StaticKernel {
    /// The text.
    pub(crate) text: String,
    /// The name of the function.
    pub(crate) function: String,
    /// The positions of these arguments among those of the kernel's interface, in order.
    pub(crate) arguments: Vec<usize>,
}

/// Returns the text before kernels, whose parts may stand in several headers, and the kernels.
pub(crate) fn static_kernels(items: &[Item<'_>], isa: Isa) -> (String, Vec<StaticKernel>) {
    let body = |item: &Item<'_>| {
        let kernel = folded::<GnuC>(item.kernel);
        let (text, used) = body(item.header, &kernel, "static inline");
        let own = kernel.arguments.iter().map(|argument| used.contains(&argument.name));
        let own = own.enumerate().filter(|(_, is_used)| *is_used).map(|(at, _)| at);
        (text, own.collect())
    };
    let bodies: Vec<(String, Vec<usize>)> = items.iter().map(body).collect();
    let texts: Vec<String> = bodies.iter().map(|(text, _)| text.clone()).collect();
    let preamble = preamble(items, &texts, isa);
    let known: BTreeSet<&str> = preamble.split("\n\n").flat_map(declared).collect();
    let blocks: Vec<&str> = preamble.trim().split("\n\n").collect();
    let is_used = |block: &&&str| {
        let others = blocks.iter().filter(|other| other != block).copied();
        let mut read = others.chain(texts.iter().map(String::as_str)).flat_map(names);
        let own: Vec<&str> = declared(block).collect();
        own.is_empty() || read.any(|name| own.contains(&name))
    };
    let blocks = blocks.iter().filter(is_used).map(|block| guarded(block, &known));
    let preamble = trim_lines(&blocks.collect::<Vec<_>>().join("\n\n"));
    let kernel = |(item, (text, arguments)): (&Item<'_>, (String, Vec<usize>))| StaticKernel {
        text: trim_lines(&renamed(&text, &known)),
        function: format!("{}_run", item.kernel.name),
        arguments,
    };
    (preamble, items.iter().zip(bodies).map(kernel).collect())
}

/// Returns the functions, macros and types that a block declares; not those of the compiler.
fn declared(block: &str) -> impl Iterator<Item = &str> {
    let types = block.lines().filter_map(|line| {
        let (before, _) = line.strip_prefix("typedef ")?.split_once(" __attribute__")?;
        names(before).last()
    });
    declares(block).filter(|name| !name.starts_with("__")).chain(types)
}

/// Returns a block that is read once, with the names of a header.
fn guarded(block: &str, known: &BTreeSet<&str>) -> String {
    let text = renamed(block, known);
    match declared(block).next() {
        None => text,
        Some(name) => {
            let guard = format!("WEAKFORM_HAS_{}", name.to_ascii_uppercase());
            format!("#ifndef {guard}\n#define {guard}\n{text}\n#endif")
        }
    }
}

/// Returns a text with a prefix before the known names: `wf_`, or `WF_` before macros.
fn renamed(text: &str, known: &BTreeSet<&str>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut all, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if known.contains(word) {
            let lower = word.chars().any(|c| c.is_ascii_lowercase());
            all.push_str(if lower { "wf_" } else { "WF_" });
        }
        all.push_str(word);
        let next = after.find(is_word).unwrap_or(after.len());
        all.push_str(&after[..next]);
        rest = &after[next..];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{guarded, renamed};
    use std::collections::BTreeSet;

    #[test]
    fn names_have_a_prefix_and_blocks_a_guard() {
        let known = BTreeSet::from(["INLINE", "f64x4", "load_f64x4"]);
        let block = "INLINE f64x4 load_f64x4(const double *from)\n{\n    return load(from);\n}";
        let wanted = "WF_INLINE wf_f64x4 wf_load_f64x4(const double *from)";
        assert_eq!(renamed(block, &known).lines().next(), Some(wanted));
        let text = guarded(block, &known);
        let guard = "#ifndef WEAKFORM_HAS_LOAD_F64X4\n#define WEAKFORM_HAS_LOAD_F64X4\n";
        assert!(text.starts_with(guard) && text.ends_with("}\n#endif"), "{text}");
        assert_eq!(guarded("#include <stddef.h>", &known), "#include <stddef.h>");
    }
}
