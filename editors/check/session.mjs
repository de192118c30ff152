// One session with `wf lsp`, by vscode-jsonrpc: answers have the types of the protocol, and come in time.
// Usage: node session.mjs WF EXAMPLE
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import rpc from 'vscode-jsonrpc/node';
import * as types from 'vscode-languageserver-types';

const [program, example] = process.argv.slice(2);
const text = fs.readFileSync(example, 'utf8');

/**
 * Limits of medians in milliseconds: 50 for an example, and four times the targets of 20 and 10 for a file of up to 1000 lines. Time
 * grows at most in proportion to the length of the file. A form is checked as a whole, so that one of 1000 lines has no target.
 */
const LIMITS = {
  example: 50, change: 80, hover: 40, completion: 40, rename: 40, formatting: 80,
  'change in 1000 lines': 80, 'change in 4000 lines': 320, 'change in a form of 1000 lines': 320,
};
const REPEATED = 9;

const server = spawn(program, ['lsp'], { stdio: ['pipe', 'pipe', 'inherit'] });
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(server.stdout),
  new rpc.StreamMessageWriter(server.stdin),
);
const published = [];
let waiting = null;
connection.onNotification('textDocument/publishDiagnostics', (params) => {
  if (waiting) waiting(params);
  else published.push(params);
  waiting = null;
});
connection.listen();

const failures = [];
function expect(condition, what) {
  if (!condition) failures.push(what);
}
function every(list, is, what) {
  expect(Array.isArray(list) && list.length > 0 && list.every((own) => is(own)), what);
}
function diagnostics() {
  return published.length > 0
    ? Promise.resolve(published.shift())
    : new Promise((resolve) => { waiting = resolve; });
}

async function change(uri, version, text) {
  await connection.sendNotification('textDocument/didChange', {
    textDocument: { uri, version },
    contentChanges: text,
  });
  return diagnostics();
}

/** Returns the position after a text. */
function after(source, part) {
  const before = source.slice(0, source.indexOf(part) + part.length).split('\n');
  return types.Position.create(before.length - 1, before[before.length - 1].length);
}

const median = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
const medians = {};
async function timed(name, action) {
  const times = [];
  let last;
  for (let round = 0; round < REPEATED; round += 1) {
    const start = performance.now();
    last = await action(round);
    times.push(performance.now() - start);
  }
  medians[name] = median(times);
  expect(medians[name] <= LIMITS[name], `${name}: ${medians[name].toFixed(1)} ms, the limit is ${LIMITS[name]}`);
  return last;
}

const capabilities = {
  general: { positionEncodings: ['utf-16'] },
  textDocument: { completion: { completionItem: { snippetSupport: true } } },
};
const answer = await connection.sendRequest('initialize', { processId: process.pid, rootUri: null, capabilities });
expect(answer.capabilities.positionEncoding === 'utf-16', 'the encoding of the client');
await connection.sendNotification('initialized', {});

// The example: opened without a finding, broken, completed, renamed, formatted.
const uri = 'file:///tmp/example.wf';
const textDocument = { uri };
async function open(uri, text) {
  await connection.sendNotification('textDocument/didOpen', {
    textDocument: { uri, languageId: 'wf', version: 1, text },
  });
  return diagnostics();
}
expect((await open(uri, text)).diagnostics.length === 0, 'the example has no finding');
const broken = text.replace('grad(u);', 'grad(v);');
const found = await timed('example', (round) =>
  change(uri, 2 + round, [{ text: round % 2 === 0 ? broken : text }]));
every(found.diagnostics, types.Diagnostic.is, 'diagnostics of the broken example');
expect(found.diagnostics[0].code === 'E0201', 'the code of the broken example');
const range = types.Range.create(0, 0, 1000, 0);
const context = { diagnostics: found.diagnostics };
const actions = await connection.sendRequest('textDocument/codeAction', { textDocument, range, context });
expect(Array.isArray(actions) && actions.every((own) => types.CodeAction.is(own)), 'code actions');

const unfinished = text.replace('grad(u);', 'grad(');
await change(uri, 20, [{ text: unfinished }]);
const position = after(unfinished, 'grad(');
const completed = await connection.sendRequest('textDocument/completion', { textDocument, position });
every(completed.items, (own) => types.TextEdit.is(own.textEdit) && own.label && own.kind > 0, 'completions');
expect(completed.items.some((own) => own.label === 'u'), 'the name of the field is completed');

const spaced = text.replace('grad(u);', 'grad(  u );');
await change(uri, 21, [{ text: spaced }]);
const options = { tabSize: 4, insertSpaces: true };
const edits = await connection.sendRequest('textDocument/formatting', { textDocument, options });
every(edits, types.TextEdit.is, 'edits of formatting');
await change(uri, 22, edits.map((own) => ({ range: own.range, text: own.newText })));
const none = await connection.sendRequest('textDocument/formatting', { textDocument, options });
expect(Array.isArray(none) && none.length === 0, 'a formatted file stays');

const at = after(text, 'field u');
const symbols = await connection.sendRequest('textDocument/documentSymbol', { textDocument });
every(symbols, types.DocumentSymbol.is, 'symbols');
const lenses = await connection.sendRequest('textDocument/codeLens', { textDocument });
every(lenses, types.CodeLens.is, 'code lenses');
const hover = await connection.sendRequest('textDocument/hover', { textDocument, position: at });
expect(types.Hover.is(hover) && hover.contents.value.includes('field u'), 'hover');
const definition = await connection.sendRequest('textDocument/definition', { textDocument, position: at });
expect(types.Location.is(definition), 'definition');
const references = await connection.sendRequest('textDocument/references', {
  textDocument, position: at, context: { includeDeclaration: true },
});
every(references, types.Location.is, 'references');
const highlights = await connection.sendRequest('textDocument/documentHighlight', { textDocument, position: at });
every(highlights, (own) => types.Range.is(own.range), 'highlights');
const hints = await connection.sendRequest('textDocument/inlayHint', { textDocument, range });
every(hints, types.InlayHint.is, 'hints');
const semantic = await connection.sendRequest('textDocument/semanticTokens/full', { textDocument });
expect(types.SemanticTokens.is(semantic) && semantic.data.length % 5 === 0, 'semantic tokens');
const page = await connection.sendRequest('wf/explain', { code: 'E0201' });
expect(typeof page === 'string' && page.includes('E0201'), 'the page of a code');

// Forms of a hundred lines, or of others.
function forms(count, lets = 92) {
  const lines = [];
  for (let form = 0; form < count; form += 1) {
    lines.push(`/// Form ${form}.`, `form long${form} {`, '    field u: vector;', '    param mu = 1;');
    for (let item = 0; item < lets; item += 1) {
      const before = item === 0 ? 'mu * grad(u)' : `sym(s${item - 1}) + ${item} * grad(u)`;
      lines.push(`    let s${item} = ${before};`);
    }
    lines.push('    f0[u] = u;', `    f1[u] = s${lets - 1};`, '}', '');
  }
  return lines.join('\n');
}
const long = forms(2);
const longUri = 'file:///tmp/long.wf';
const longDocument = { uri: longUri };
const opened = await open(longUri, long);
expect(opened.diagnostics.length === 0, `the long file has no finding: ${JSON.stringify(opened.diagnostics[0])}`);
const end = after(long, 'f1[u] = s9');
await timed('change', (round) => change(longUri, 2 + round, [
  { range: types.Range.create(end, types.Position.create(end.line, end.character + 1)), text: `${round % 2}` },
]));
const middle = after(long, 'let s50');
await timed('hover', () => connection.sendRequest('textDocument/hover', { textDocument: longDocument, position: middle }));
await timed('completion', () => connection.sendRequest('textDocument/completion', { textDocument: longDocument, position: end }));
const renamed = await timed('rename', () => connection.sendRequest('textDocument/rename', {
  textDocument: longDocument, position: middle, newName: 'strain',
}));
expect(types.WorkspaceEdit.is(renamed) && renamed.changes[longUri].length === 2, 'edits of renaming');
for (const [name, text] of [
  ['change in 1000 lines', forms(10)],
  ['change in 4000 lines', forms(40)],
  ['change in a form of 1000 lines', forms(1, 992)],
]) {
  const uri = `file:///tmp/${name.replaceAll(' ', '_')}.wf`;
  await open(uri, text);
  const end = after(text, 'f0[u] = u');
  let last = null;
  await timed(name, async (round) => {
    const range = types.Range.create(end, types.Position.create(end.line, end.character + (last ?? '').length));
    last = round % 2 === 0 ? ' + v' : '';
    const found = await change(uri, 2 + round, [{ range, text: last }]);
    expect(found.diagnostics.length === (round + 1) % 2, `findings of a ${name}`);
  });
  await connection.sendNotification('textDocument/didClose', { textDocument: { uri } });
  await diagnostics();
}
await change(longUri, 50, [{ text: long }]);
await timed('formatting', () => connection.sendRequest('textDocument/formatting', { textDocument: longDocument, options }));

await connection.sendRequest('shutdown');
await connection.sendNotification('exit');
const status = await new Promise((resolve) => { server.on('exit', resolve); });
expect(status === 0, `the server ends with ${status}`);
const shown = Object.entries(medians).map(([name, time]) => `${name} ${time.toFixed(1)} ms`).join(', ');
console.log(`session: ${shown}`);
for (const failure of failures) console.error(`session: wrong: ${failure}`);
process.exit(failures.length > 0 ? 1 : 0);
