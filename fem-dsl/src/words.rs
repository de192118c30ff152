//! Reserved words of the language, with their meanings.

/// Keywords of the grammar that cannot be names: those of expressions, and those that separate items after an error.
pub const KEYWORDS: &[&str] = &[
    "form", "problem", "field", "aux", "param", "let", "fn", "f0", "f1", "on", "in", "if", "else",
    "true", "false",
];

/// Names that have a value everywhere.
pub const KNOWN: &[&str] = &["x", "t", "h", "n", "k", "dim", "pi", "I"];

/// Functions.
pub const FUNCTIONS: &[&str] = &[
    "dot",
    "inner",
    "norm",
    "outer",
    "cross",
    "tr",
    "det",
    "inv",
    "cof",
    "sym",
    "skew",
    "dev",
    "transpose",
    "grad",
    "dt",
    "div",
    "curl",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "abs",
    "sign",
    "min",
    "max",
    "jump",
    "avg",
];

/// The extent of a cell from a facet, unless a form declares the name itself.
pub const EXTENT: &str = "hn";

/// Functions of facets, unless a form declares the names itself.
pub const FACET_FUNCTIONS: &[&str] = &["inside", "outside", "penalty", "tangential"];

/// The function that reads data and states, a keyword in this context only.
pub const FILE: &str = "file";

/// The function whose value is a field of another problem.
pub const SOLUTION: &str = "solution";

/// Words reserved for later versions.
pub const LATER: &[&str] = &["normal", "interior", "mean"];

/// The strict keywords of Rust that the language does not reserve: valid names in a `.wf` file, but not for the items
/// of the macro.
pub const RUST: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "enum", "extern", "for",
    "impl", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "type", "unsafe", "use", "where", "while",
];

/// Shapes of fields and data.
pub const SHAPES: &[&str] = &["scalar", "vector", "tensor", "complex"];

/// Families of spaces.
pub const SPACES: &[&str] = &["H1", "L2", "Hcurl", "Hdiv", "R"];

/// Words inside of items, reserved in their place only.
pub const CONNECTIVES: &[&str] = &[
    "solves",
    "for",
    "on",
    "in",
    "at",
    "by",
    "from",
    "to",
    "all",
    "boundary",
    "interior",
    "cells",
    "nodes",
    "points",
    "discontinuous",
];

/// The keywords that begin an item of a form.
pub const FORM_ITEMS: &[&str] = &[
    "field", "aux", "param", "state", "update", "let", "fn", "f0", "f1", "test", "residual",
    "energy", "on",
];

/// The keywords that begin an item of a problem.
pub const PROBLEM_ITEMS: &[&str] = &[
    "mesh",
    "refine",
    "degree",
    "quadrature",
    "t",
    "param",
    "aux",
    "dirichlet",
    "bound",
    "source",
    "periodic",
    "mean",
    "exact",
    "manufactured",
    "initial",
    "adapt",
    "eigen",
    "time",
    "mass",
    "stages",
    "solver",
    "report",
    "output",
];

/// Returns the meaning of a reserved word; `None` if it can be declared.
pub fn reserved(word: &str) -> Option<&'static str> {
    if let Some(meaning) = meaning(word) {
        return Some(meaning);
    }
    [
        (KEYWORDS, "a word of the language"),
        (FUNCTIONS, "a function of the language"),
        (LATER, "kept for later versions of the language"),
    ]
    .into_iter()
    .find(|(words, _)| words.contains(&word))
    .map(|(_, what)| what)
}

/// Returns the meaning of a name of the language.
fn meaning(name: &str) -> Option<&'static str> {
    Some(match name {
        "x" => "the coordinates",
        "t" => "the time",
        "h" => "the diameter of the cell",
        "n" => "the outward unit normal of the boundary",
        "k" => "the degree of the problem's spaces",
        "dim" => "the dimension of the mesh",
        "pi" => "the number π",
        "I" => "the unit matrix",
        _ => return None,
    })
}

/// Returns a valid name similar to a reserved one.
pub fn alternative(word: &str) -> String {
    match word {
        "x" => "position".to_owned(),
        "t" => "thickness".to_owned(),
        "h" => "height".to_owned(),
        "n" => "count".to_owned(),
        "k" => "kappa".to_owned(),
        "I" => "identity".to_owned(),
        _ => format!("{}_", word.to_ascii_lowercase()),
    }
}
