; Comments and literals.
(line_comment) @comment
(block_comment) @comment
(documentation) @comment.documentation
(number) @number
(integer) @number
(string) @string
(boolean) @boolean

; Names.
(identifier) @variable
(form name: (identifier) @type)
(problem name: (identifier) @module)
(problem form: (identifier) @type)
(function name: (identifier) @function)
(parameters (identifier) @variable.parameter)
(call function: (identifier) @function.call)
(label) @property
(keyword_call word: (identifier) @function)
((identifier) @constant.builtin
  (#any-of? @constant.builtin "x" "t" "h" "n" "hn" "k" "dim" "pi" "I" "i"))
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin
    "dot" "inner" "norm" "outer" "cross" "tr" "det" "inv" "cof" "sym" "skew" "dev" "transpose"
    "grad" "dt" "div" "curl" "sqrt" "exp" "log" "sin" "cos" "tan" "asin" "acos" "atan" "atan2"
    "sinh" "cosh" "tanh" "abs" "sign" "min" "max" "jump" "avg" "inside" "outside" "penalty"
    "tangential" "re" "im" "conj" "table" "file" "solution"
    "integral" "minimum" "maximum" "l2" "at" "line" "reaction" "multiplier"))

; Words.
["form" "problem" "solves"] @keyword
["field" "aux" "state" "update" "param" "let" "fn" "test" "for" "residual" "energy" "f0" "f1"] @keyword
["on" "in" "at" "by" "from" "to" "all" "boundary" "interior" "cells" "nodes" "points"] @keyword
["mesh" "degree" "quadrature" "refine" "eigen" "mass" "stages" "time" "t" "dirichlet" "bound"
  "source" "periodic" "exact" "manufactured" "mean" "initial" "adapt" "solver" "report" "output"
  "discontinuous"] @keyword
["if" "else"] @keyword.conditional
["scalar" "vector" "tensor" "complex"] @type.builtin
(family) @type.builtin
["inside" "outside" "jump" "avg" "dot" "cross" "dt"] @function.builtin
"k" @constant.builtin

; Signs.
["+" "-" "*" "/" "^" "<" "<=" ">" ">=" "==" "!=" "&&" "||" "!" "="] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":"] @punctuation.delimiter
