//! Snippets of the items of files, forms and problems.

/// A word with the item that it begins, in the protocol's notation of placeholders.
pub(super) struct Snippet {
    pub(super) word: &'static str,
    pub(super) text: &'static str,
}

const fn snippet(word: &'static str, text: &'static str) -> Snippet {
    Snippet { word, text }
}

pub(super) const TOP_SNIPPETS: &[Snippet] = &[
    snippet("form", "form ${1:name} {\n    field ${2:u}: ${3:scalar};\n    $0\n}"),
    snippet(
        "problem",
        "problem ${1:name} solves ${2:form} {\n    mesh = ${3:box(dim: 2, cells: 8)};\n    $0\n}",
    ),
];

pub(super) const FORM_SNIPPETS: &[Snippet] = &[
    snippet("field", "field ${1:u}: ${2:scalar};"),
    snippet("aux", "aux ${1:a}: ${2:scalar} on ${3:cells};"),
    snippet("param", "param ${1:c} = ${2:1};"),
    snippet("state", "state ${1:p}: ${2:scalar} on points = ${3:0};"),
    snippet("update", "update ${1:p} = $0;"),
    snippet("let", "let ${1:s} = $0;"),
    snippet("fn", "fn ${1:f}(${2:a}) = $0;"),
    snippet("f0", "f0[${1:u}] = $0;"),
    snippet("f1", "f1[${1:u}] = $0;"),
    snippet("test", "test ${1:v} for ${2:u};"),
    snippet("residual", "residual = $0;"),
    snippet("energy", "energy = $0;"),
    snippet("on", "on boundary \"${1:tag}\" {\n    $0\n}"),
];

pub(super) const PROBLEM_SNIPPETS: &[Snippet] = &[
    snippet("mesh", "mesh = ${1:box(dim: 2, cells: 8)};"),
    snippet("refine", "refine = ${1:2};"),
    snippet("degree", "degree = ${1:2};"),
    snippet("quadrature", "quadrature = ${1:6};"),
    snippet("t", "t = ${1:0};"),
    snippet("param", "param ${1:c} = ${2:1};"),
    snippet("aux", "aux ${1:a} = $0;"),
    snippet("dirichlet", "dirichlet ${1:u} = ${2:0} on ${3:all};"),
    snippet("bound", "bound ${1:u} >= ${2:0};"),
    snippet("source", "source ${1:u} = ${2:1} at ${3:[0, 0]};"),
    snippet("periodic", "periodic \"${1:x0}\" = \"${2:x1}\";"),
    snippet("mean", "mean ${1:p} = ${2:0};"),
    snippet("exact", "exact ${1:u} = $0;"),
    snippet("manufactured", "manufactured ${1:u} = $0;"),
    snippet("initial", "initial ${1:u} = $0;"),
    snippet("adapt", "adapt(steps: ${1:6}, until: ${2:1e-3});"),
    snippet("eigen", "eigen = smallest(${1:5});"),
    snippet("time", "time = ${1:bdf(order: 2, to: 1, step: 0.01)};"),
    snippet("mass", "mass = ${1:form};"),
    snippet("stages", "stages = repeat(${1:problem}, steps: ${2:100});"),
    snippet("solver", "solver = ${1:cg(rtol: 1e-8)};"),
    snippet("report", "report ${1:name} = ${2:integral}($0);"),
    snippet("output", "output ${1:name} = $0;"),
];

#[cfg(test)]
mod tests {
    use super::{FORM_SNIPPETS, PROBLEM_SNIPPETS, Snippet};
    use fem_dsl::words;

    #[test]
    fn every_item_has_a_snippet() {
        let sorted = |words: &[&'static str]| {
            let mut words = words.to_vec();
            words.sort_unstable();
            words
        };
        let of =
            |snippets: &[Snippet]| sorted(&snippets.iter().map(|own| own.word).collect::<Vec<_>>());
        assert_eq!(of(FORM_SNIPPETS), sorted(words::FORM_ITEMS));
        assert_eq!(of(PROBLEM_SNIPPETS), sorted(words::PROBLEM_ITEMS));
    }
}
