(form "form" @context name: (identifier) @name) @item
(problem "problem" @context name: (identifier) @name) @item
(field "field" @context name: (identifier) @name) @item
(aux "aux" @context name: (identifier) @name) @item
(param "param" @context name: (identifier) @name) @item
(let "let" @context name: (identifier) @name) @item
(function "fn" @context name: (identifier) @name) @item
(report "report" @context name: (identifier) @name) @item
