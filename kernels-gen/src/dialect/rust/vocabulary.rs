//! The items of a vector type: the text of `V`, `M` and the functions on them, and the kernels of a file → a module. It
//! contains the items that the kernels use, directly or indirectly.

use std::collections::BTreeSet;

/// Number of lane-wise function calls above which kernels call them instead of inlining. Compilers would take minutes
/// for thousands of inlined calls; few compile quickly and run faster.
const MANY: usize = 80;

/// Returns whether a kernel calls the lane-wise functions.
pub(super) fn calls(kernel: &str) -> bool {
    kernel.matches(".map(T::").chain(kernel.matches(".zip(")).nth(MANY).is_some()
}

/// A function, a type or a constant with its comments and attributes; an `impl` is split into methods.
struct Item<'t> {
    name: &'t str,
    /// The first line of the `impl` of a method.
    of: Option<&'t str>,
    lines: Vec<&'t str>,
}

impl Item<'_> {
    /// Returns whether the item is used. A method is used only if its type is.
    fn is_used(&self, used: &BTreeSet<&str>) -> bool {
        let of =
            self.of.and_then(|line| line.strip_prefix("impl ")).and_then(|of| names(of).next());
        used.contains(self.name) && of.is_none_or(|of| used.contains(of))
    }
}

/// Returns the identifiers in a text, without its comments.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let parts =
        code.flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
    parts.filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Returns the name that a line declares, if it declares one.
fn declared(line: &str) -> Option<&str> {
    let words = ["unsafe fn ", "fn ", "struct ", "type ", "const "];
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    names(rest).next()
}

/// Returns the items of a text, in which every function ends with a brace under its first letter.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut all = Vec::new();
    let (mut before, mut of) = (Vec::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (inner, indent) = line.strip_prefix("    ").map_or((line, ""), |inner| (inner, "    "));
        if line.starts_with("impl ") {
            of = Some(line);
            before.clear();
        } else if line == "}" {
            of = None;
        } else if let Some(name) = declared(inner) {
            let mut own = std::mem::take(&mut before);
            own.push(line);
            if !(line.ends_with(';') || line.ends_with('}')) {
                let end = format!("{indent}}}");
                for line in lines.by_ref() {
                    own.push(line);
                    if line == end {
                        break;
                    }
                }
            }
            all.push(Item { name, of, lines: own });
        } else if !line.is_empty() {
            before.push(line);
        }
    }
    all
}

/// Returns the items of a text that are not methods.
#[cfg(test)]
pub(super) fn free(text: &str) -> Vec<String> {
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("use ")).collect();
    let all = text.join("\n");
    items(&all).iter().filter(|item| item.of.is_none()).map(|item| item.name.to_owned()).collect()
}

/// Returns the items of a text that `kernels` use, each made public.
pub(super) fn used(text: &str, kernels: &str) -> String {
    let (uses, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("use "));
    let rest = rest.join("\n");
    let all = items(&rest);
    let mut used: BTreeSet<&str> = names(kernels).collect();
    let mut kept = vec![false; all.len()];
    // An item may use an earlier one.
    while let Some(next) = (0..all.len()).find(|&i| !kept[i] && all[i].is_used(&used)) {
        kept[next] = true;
        used.extend(all[next].lines.iter().flat_map(|line| names(line)));
    }
    let mut out = uses.join("\n");
    let mut open = None;
    for item in all.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(item, _)| item) {
        if open != item.of {
            out.push_str(if open.is_some() { "\n}" } else { "" });
            out.push_str(&item.of.map_or_else(String::new, |of| format!("\n\n{of}")));
            open = item.of;
        }
        out.push_str(if open.is_none() { "\n" } else { "" });
        for line in &item.lines {
            let indent = line.len() - line.trim_start().len();
            let public = if declared(line.trim_start()) == Some(item.name) { "pub " } else { "" };
            out.push_str(&format!("\n{}{public}{}", &line[..indent], &line[indent..]));
        }
    }
    out.push_str(if open.is_some() { "\n}\n" } else { "\n" });
    out.trim_start_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::rust::Isa;
    use crate::kir::Precision;
    use crate::plan::{Geometry, Plan, Target, Task};

    #[test]
    fn words_include_those_that_they_use() {
        let text = "use std::arch::*;\n\ntype T = f64;\n\n/// One.\n#[derive(Clone)]\nstruct V(T);\n\nimpl V {\n    \
                    #[inline]\n    fn one() -> Self {\n        Self(1.0)\n    }\n    fn two() -> Self {\n        \
                    Self::one()\n    }\n}\n\n/// Three.\nunsafe fn three() -> V {\n    V::two()\n}\nfn four() {}\nstruct M;\nimpl M {\n    \
                    fn one() {}\n}\n";
        assert_eq!(used(text, "x"), "use std::arch::*;\n");
        let kept = used(text, "let x = three(); // four");
        let want = "use std::arch::*;\n\npub type T = f64;\n\n/// One.\n#[derive(Clone)]\npub struct V(T);\n\nimpl V {\n    \
                    #[inline]\n    pub fn one() -> Self {\n        Self(1.0)\n    }\n    pub fn two() -> Self {\n        \
                    Self::one()\n    }\n}\n\n/// Three.\npub unsafe fn three() -> V {\n    V::two()\n}\n";
        assert_eq!(kept, want);
    }

    /// Forms of a thousand terms are compiled in seconds.
    #[test]
    fn many_functions_are_calls() {
        let source = |terms: usize| {
            let sum: Vec<String> = (1..=terms).map(|i| format!("sin({i} * u)")).collect();
            let text = format!("form f {{ field u: scalar; f0[u] = {}; }}", sum.join(" + "));
            let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new("f", text));
            let form = program.and_then(|program| program.point_form("f", 2).ok()).expect("a form");
            let cell = crate::element::Cell::Quadrilateral;
            let elements = crate::generate::elements(&form, cell, 1, 1, None).expect("elements");
            let plan =
                Plan::new(Target::Vectors, Task::Residual, 8, Precision::F64, Geometry::Vertices);
            let source = crate::generate::generate(&form, &elements, &[plan], Isa::Avx512);
            source.expect("a source").text.clone()
        };
        let (few, many) = (source(3), source(100));
        let inlined = "#[inline(always)]\n        pub fn map(";
        assert!(few.contains(inlined) && !many.contains(inlined), "{few}");
        let called = "#[inline(never)]\n        #[target_feature(enable = \"avx512f,";
        assert!(many.contains(called) && !few.contains(called));
    }

    /// Every item that a kernel uses is found: each line of the text belongs to an item.
    #[test]
    fn every_line_is_a_part_of_a_word() {
        for (isa, precision) in
            Isa::ALL.into_iter().flat_map(|isa| [Precision::F64, Precision::F32].map(|p| (isa, p)))
        {
            let text = isa.vocabulary(precision, 8, false);
            let all: Vec<&str> = items(&text).iter().map(|item| item.name).collect();
            let whole = used(&text, &all.join(" "));
            let plain = |text: &str| {
                let lines = text.lines().map(|line| line.replace("pub ", ""));
                let lines = lines.filter(|line| !line.is_empty() && line != "}");
                lines.filter(|line| !line.starts_with("impl ")).collect::<Vec<_>>()
            };
            assert_eq!(plain(&whole), plain(&text), "{isa} {precision:?}");
        }
    }
}
