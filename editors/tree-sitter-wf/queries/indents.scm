[(form) (problem) (region) (arguments) (array) (settings)] @indent
["}" ")" "]"] @outdent
