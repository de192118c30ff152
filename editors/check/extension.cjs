// Loads the VS Code extension with a stand-in for the editor: its modules resolve, and it exports what the editor calls.
// Usage: node extension.cjs FOLDER
'use strict';

const Module = require('module');
const path = require('path');

const folder = path.resolve(process.argv[2]);
const editor = new Proxy({}, { get: (_, name) => (name === 'version' ? '1.91.0' : class {}) });
const load = Module._load;
Module._load = (name, ...more) => (name === 'vscode' ? editor : load(name, ...more));

const manifest = require(path.join(folder, 'package.json'));
const extension = require(path.join(folder, manifest.main));
const files = [
  ...manifest.contributes.grammars.map((own) => own.path),
  ...manifest.contributes.languages.map((own) => own.configuration),
];
for (const file of files) require(path.join(folder, file.replace(/^\.\//, '')));
if (typeof extension.activate !== 'function' || typeof extension.deactivate !== 'function') {
  throw new Error('the extension exports no activate and deactivate');
}
console.log(`VS Code: ${Object.keys(extension).join(', ')}, ${files.length} files`);
