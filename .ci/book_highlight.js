// Highlights every example with the book's own highlight.js: `node .ci/book_highlight.js BOOK`.
"use strict";
const fs = require("fs");
const path = require("path");

const book = process.argv[2];
const file = fs.readdirSync(book).find((name) => /^highlight.*\.js$/.test(name));
const source = fs.readFileSync(path.join(book, file), "utf8");
const hljs = new Function(`${source}; return hljs;`)();
const wf = require("../docs/book/highlight-wf.js");
hljs.registerLanguage("wf", wf.defineWf);

const folder = path.join(__dirname, "../examples");
const examples = fs.readdirSync(folder).filter((name) => name.endsWith(".wf"));
for (const name of examples) {
    const text = fs.readFileSync(path.join(folder, name), "utf8");
    const { value, illegal } = hljs.highlight("wf", text);
    for (const part of ['keyword">form<', 'keyword">problem<', 'type">', 'number">', "hljs-doctag"]) {
        if (illegal || !value.includes(part)) {
            console.error(`${name}: nothing is marked as ${part}`);
            process.exitCode = 1;
        }
    }
}
console.log(`${examples.length} examples highlighted`);
