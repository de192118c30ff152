//! The words of the language: what may not be declared, and why.

/// Words of the grammar.
pub const KEYWORDS: &[&str] = &[
    "form", "problem", "solves", "field", "aux", "param", "let", "fn", "test", "for", "residual",
    "energy", "f0", "f1", "on", "in", "if", "else", "boundary", "all", "scalar", "vector",
    "tensor", "H1", "L2",
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
];

/// What data and states are read by, a word in its place only.
pub const FILE: &str = "file";

/// Words kept for later versions.
pub const LATER: &[&str] = &["jump", "avg", "normal", "interior", "mean"];

/// The strict keywords of Rust that are not words of the grammar.
pub const RUST: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "enum", "extern",
    "false", "impl", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
];

/// The words that begin an item of a form.
pub const FORM_ITEMS: &[&str] =
    &["field", "aux", "param", "let", "fn", "f0", "f1", "test", "residual", "energy", "on"];

/// The words that begin an item of a problem.
pub const PROBLEM_ITEMS: &[&str] = &[
    "mesh",
    "refine",
    "degree",
    "quadrature",
    "t",
    "param",
    "aux",
    "dirichlet",
    "periodic",
    "mean",
    "exact",
    "manufactured",
    "initial",
    "adapt",
    "eigen",
    "time",
    "mass",
    "solver",
    "report",
];

/// What a reserved word is, or nothing where the word can be declared.
pub fn reserved(word: &str) -> Option<&'static str> {
    [
        (KEYWORDS, "a word of the language"),
        (KNOWN, "a name of the language"),
        (FUNCTIONS, "a function of the language"),
        (LATER, "kept for later versions of the language"),
        (RUST, "a keyword of Rust, which the macro could not read"),
    ]
    .into_iter()
    .find(|(words, _)| words.contains(&word))
    .map(|(_, what)| what)
}
