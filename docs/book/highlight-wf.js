// Highlights `wf` blocks. A test compares the lists of words with those of the language.
"use strict";

const WF_KEYWORDS = [
    "form", "problem", "solves", "field", "aux", "param", "state", "update", "let", "fn", "f0", "f1",
    "test", "for", "residual", "energy", "on", "in", "from", "to", "at", "by", "if", "else",
    "boundary", "cells", "interior", "points", "nodes", "all", "mesh", "refine", "degree",
    "quadrature", "dirichlet", "bound", "source", "periodic", "mean", "exact", "manufactured",
    "initial", "adapt", "eigen", "time", "mass", "solver", "stages", "report", "output",
    "discontinuous",
];
const WF_TYPES = ["scalar", "vector", "tensor", "complex", "H1", "L2", "Hcurl", "Hdiv", "R"];
const WF_LITERALS = ["x", "t", "h", "hn", "n", "k", "dim", "pi", "I", "true", "false"];
const WF_FUNCTIONS = [
    "dot", "inner", "norm", "outer", "cross", "tr", "det", "inv", "cof", "sym", "skew", "dev",
    "transpose", "grad", "dt", "div", "curl", "sqrt", "exp", "log", "sin", "cos", "tan", "asin",
    "acos", "atan", "atan2", "sinh", "cosh", "tanh", "abs", "sign", "min", "max", "jump", "avg",
    "inside", "outside", "penalty", "tangential", "table", "file", "solution", "integral", "l2",
    "minimum", "maximum", "reaction", "multiplier", "line", "re", "im", "conj",
];

function defineWf(hljs) {
    return {
        name: "weakform",
        keywords: {
            keyword: WF_KEYWORDS.join(" "),
            type: WF_TYPES.join(" "),
            literal: WF_LITERALS.join(" "),
            built_in: WF_FUNCTIONS.join(" "),
        },
        contains: [
            hljs.COMMENT("///", "$", { className: "doctag" }),
            hljs.C_LINE_COMMENT_MODE,
            hljs.COMMENT("/\\*", "\\*/", { contains: ["self"] }),
            { className: "string", begin: '"', end: '"', illegal: "\\n" },
            { className: "number", begin: "\\b\\d+(\\.\\d+)?([eE][-+]?\\d+)?\\b" },
        ],
    };
}

if (typeof module !== "undefined") {
    module.exports = { defineWf, WF_KEYWORDS, WF_TYPES, WF_LITERALS, WF_FUNCTIONS };
} else {
    hljs.registerLanguage("wf", defineWf);
    document.querySelectorAll("code.language-wf").forEach((block) => hljs.highlightBlock(block));
}
