// Copies the parts of the extension that other folders have: the TextMate grammar and the licences.
'use strict';

const fs = require('fs');
const path = require('path');

const root = path.join(__dirname, '..', '..');
fs.copyFileSync(path.join(root, 'editors', 'wf.tmLanguage.json'), path.join(__dirname, 'wf.tmLanguage.json'));
for (const licence of ['LICENSE-MIT', 'LICENSE-APACHE']) {
  fs.copyFileSync(path.join(root, licence), path.join(__dirname, licence));
}
