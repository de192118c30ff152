// The TextMate grammar on files: every character has a scope of its own, and comments, strings, numbers and words that
// begin items have theirs. Usage: node textmate.mjs GRAMMAR FILE…
import fs from 'node:fs';
import { createRequire } from 'node:module';
import textmate from 'vscode-textmate';
import oniguruma from 'vscode-oniguruma';

const require = createRequire(import.meta.url);
const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));

const [path, ...files] = process.argv.slice(2);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(path, 'utf8'), path),
});
const grammar = await registry.loadGrammar('source.wf');

/** Words that begin items, wherever they begin a line. */
const ITEM = /^\s*(form|problem|field|aux|param|state|update|let|fn|f0|f1|test|residual|energy|on|mesh|refine|degree|quadrature|dirichlet|bound|source|periodic|mean|exact|manufactured|initial|adapt|eigen|time|mass|stages|solver|report|output)\b(?=\s*[\w\["=(])/;

let [lines, tokens, mistakes] = [0, 0, 0];
for (const file of files) {
  let stack = textmate.INITIAL;
  let depth = 0;
  // True where the code so far ended an item.
  let begins = true;
  fs.readFileSync(file, 'utf8').split('\n').forEach((line, index) => {
    const found = grammar.tokenizeLine(line, stack);
    stack = found.ruleStack;
    lines += 1;
    tokens += found.tokens.length;
    const scopes = (at) =>
      found.tokens.find((own) => own.startIndex <= at && at < own.endIndex).scopes.join(' ');
    const expect = (at, scope, what) => {
      if (!scopes(at).includes(scope)) {
        mistakes += 1;
        console.error(`${file}:${index + 1}:${at + 1}: ${what} has ${scopes(at)}`);
      }
    };
    // Kinds of characters, found without the grammar: comment, string or code.
    const kinds = [];
    let string = false;
    for (let at = 0; at < line.length; at += 1) {
      const two = line.slice(at, at + 2);
      if (!string && depth === 0 && two === '//') {
        while (kinds.length < line.length) kinds.push('comment');
        break;
      }
      if (!string && two === '/*') {
        depth += 1;
        kinds.push('comment', 'comment');
        at += 1;
      } else if (depth > 0 && two === '*/') {
        depth -= 1;
        kinds.push('comment', 'comment');
        at += 1;
      } else if (depth > 0) {
        kinds.push('comment');
      } else {
        if (line[at] === '"') string = !string;
        kinds.push(string || line[at] === '"' ? 'string' : 'code');
      }
    }
    for (let at = 0; at < line.length; at += 1) {
      if (/\s/.test(line[at])) continue;
      if (scopes(at) === 'source.wf') expect(at, ' ', `\`${line[at]}\``);
      if (kinds[at] === 'comment') expect(at, 'comment', 'a comment');
      else if (kinds[at] === 'string') expect(at, 'string', 'a string');
      else if (/comment|string/.test(scopes(at))) expect(at, 'no comment', 'code');
    }
    for (const number of line.matchAll(/(?<![A-Za-z0-9_.])\d+(\.\d+)?([eE][+-]?\d+)?/g)) {
      if (kinds[number.index] === 'code') expect(number.index, 'constant.numeric', 'a number');
    }
    const item = ITEM.exec(line);
    const at = item ? line.indexOf(item[1]) : -1;
    if (item && begins && kinds[at] === 'code') {
      expect(at, 'keyword', `\`${item[1]}\``);
    }
    const code = [...line].filter((_, own) => kinds[own] === 'code').join('').trim();
    if (code !== '') begins = /[;{}]$/.test(code);
  });
}

console.log(`TextMate: ${files.length} files, ${lines} lines, ${tokens} tokens, ${mistakes} mistakes`);
process.exit(mistakes > 0 || files.length === 0 ? 1 : 0);
