// The client of `wf lsp` for VS Code.
'use strict';

const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

/** The scheme of the pages of diagnostics, as in `wf-explain:E0201`. */
const PAGES = 'wf-explain';

let client;

function program() {
  return vscode.workspace.getConfiguration('weakform').get('path') || 'wf';
}

function start(context) {
  const server = { command: program(), args: ['lsp'], transport: TransportKind.stdio };
  client = new LanguageClient('weakform', 'weakform', { run: server, debug: server }, {
    documentSelector: [{ language: 'wf' }],
  });
  return client.start().catch((error) => {
    vscode.window.showErrorMessage(
      `weakform: \`${program()} lsp\` does not start (${error.message}). Set weakform.path to the program wf.`,
    );
  });
}

/** Quotes an argument for the shells of terminals. */
function quoted(text) {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `"${text.replace(/(["\\$`])/g, '\\$1')}"`;
}

/** Runs a subcommand on a problem of a file in the terminal. */
async function execute(subcommand, uri, problem) {
  const file = vscode.Uri.parse(uri);
  const document = await vscode.workspace.openTextDocument(file);
  if (document.isDirty && !(await document.save())) {
    return;
  }
  const settings = vscode.workspace.getConfiguration('weakform');
  const more = subcommand === 'run' ? settings.get('runArguments') : [];
  const words = [program(), subcommand, file.fsPath, '--problem', problem, ...more];
  const name = 'weakform';
  const terminal = vscode.window.terminals.find((own) => own.name === name)
    || vscode.window.createTerminal({ name });
  terminal.show(true);
  terminal.sendText(words.map(quoted).join(' '));
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('wf.run', (uri, problem) => execute('run', uri, problem)),
    vscode.commands.registerCommand('wf.verify', (uri, problem) => execute('verify', uri, problem)),
    vscode.commands.registerCommand('wf.restart', () => client && client.restart()),
    vscode.workspace.registerTextDocumentContentProvider(PAGES, {
      provideTextDocumentContent: (uri) => client.sendRequest('wf/explain', { code: uri.path }),
    }),
  );
  await start(context);
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
