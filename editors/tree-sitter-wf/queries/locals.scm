(form) @local.scope
(function) @local.scope
(field name: (identifier) @local.definition)
(aux name: (identifier) @local.definition)
(state name: (identifier) @local.definition)
(param name: (identifier) @local.definition)
(let name: (identifier) @local.definition)
(test name: (identifier) @local.definition)
(parameters (identifier) @local.definition)
(identifier) @local.reference
