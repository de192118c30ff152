//! `wf lsp`: the language server, for editors.

use std::io;

use clap::Args;
use fem_lsp::{Settings, serve};
use runtime::files::input::tables_in;
use weakform::language;

use crate::report::{Failure, Report};

/// Serve an editor: errors while you type, formatting, hover, completion, renaming and more.
#[derive(Args)]
#[command(after_help = "\
An editor starts it and speaks the Language Server Protocol on standard input and output:
  Neovim 0.11   vim.lsp.config.wf = { cmd = { 'wf', 'lsp' }, filetypes = { 'wf' } }; vim.lsp.enable('wf')
  Helix         [language-server.wf] with command = \"wf\" and args = [\"lsp\"] in languages.toml
  VS Code       the extension in the folder editors/vscode
docs/editors.md has these and others whole.")]
pub(crate) struct Arguments {
    /// Some editors add the option; there is no other transport.
    #[arg(long = "stdio", hide = true)]
    _stdio: bool,
}

pub(crate) fn execute(_: &Arguments) -> Result<Report, Failure> {
    let settings = Settings { reference: language::PAGE, tables: tables_in };
    let ended = serve(settings, io::stdin().lock(), io::stdout().lock()).map_err(|error| {
        Failure::input(format!(
            "the session with the editor broke off: {error}\n\
             help: `wf lsp` is started by an editor; see docs/editors.md"
        ))
    })?;
    match ended {
        true => Ok(Report::default()),
        false => Err(Failure::input(
            "the editor ended the session without `shutdown`\n\
             help: `wf lsp` is started by an editor; see docs/editors.md",
        )),
    }
}
