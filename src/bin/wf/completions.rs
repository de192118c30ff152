//! `wf completions`: scripts with which a shell completes `wf`'s commands, options and their values.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::report::{Failure, Report};

/// Print the script with which a shell completes `wf`.
#[derive(Args)]
#[command(after_help = "\
The script goes where the shell looks for such scripts:
  bash        wf completions bash > ~/.local/share/bash-completion/completions/wf
  zsh         wf completions zsh > ~/.zfunc/_wf
              with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc
  fish        wf completions fish > ~/.config/fish/completions/wf.fish
  powershell  wf completions powershell >> $PROFILE
  elvish      wf completions elvish >> ~/.config/elvish/rc.elv
Make the folder first where there is none, and start a new shell afterwards.")]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut crate::Arguments::command(), "wf", &mut script);
    let script = String::from_utf8(script)?;
    let json = json!({ "shell": arguments.shell.to_string(), "script": script });
    Ok(Report::new(script, json))
}
