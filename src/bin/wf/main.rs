//! `wf`: the command line of weakform, one file per subcommand.
//!
//! A subcommand takes its arguments and returns a [`Report`] or a [`Failure`]. Only this file prints them: as text or,
//! with `--json`, as one JSON object per line on standard output and nothing else. The exit status is 0, 1 for bad
//! input, and 2 for bad usage.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "doc comments on arguments are help, with `x[0]`"
)]

mod arguments;
mod assemble;
mod attribution;
mod bench;
mod check;
mod completions;
mod console;
mod doctor;
mod emit;
mod explain;
mod fmt;
#[cfg(feature = "lsp")]
mod lsp;
mod man;
mod new;
mod outputs;
mod picture;
mod plan;
mod probe;
mod problem;
mod processes;
mod progress;
mod report;
mod residual;
mod run;
#[cfg(unix)]
mod signals;
pub mod summary;
mod tune;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};

use console::{Console, listen};
use processes::Processes;
use report::{Failure, Report};

/// Compile the physics of a PDE at one point to fast finite-element kernels, and run them.
#[derive(Parser)]
#[command(name = "wf", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  wf new beam          writes beam.wf, a commented file to start from
  wf doctor            what this machine has, what is missing, and how to get it
  wf explain E0203     what an error means, with an example put right
  wf explain language  the reference of the language

`wf COMMAND --help` shows the examples of each command.
Work that takes long says every ten seconds on standard error what it is at; on a terminal there is a bar.
Set WF_LOG to error, warn, info or debug to hear more or less there.")]
struct Arguments {
    /// Print JSON on standard output, and nothing else there.
    #[arg(long, global = true)]
    json: bool,

    /// Do not say on standard error what is being done; warnings and errors are said.
    #[arg(long, short, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Assemble(assemble::Arguments),
    Bench(bench::Arguments),
    Check(check::Arguments),
    Completions(completions::Arguments),
    Doctor(doctor::Arguments),
    Emit(emit::Arguments),
    Explain(explain::Arguments),
    Fmt(fmt::Arguments),
    #[cfg(feature = "lsp")]
    Lsp(lsp::Arguments),
    Man(man::Arguments),
    New(new::Arguments),
    Plan(plan::Arguments),
    Probe(probe::Arguments),
    Residual(residual::Arguments),
    Run(Box<run::Arguments>),
    Tune(tune::Arguments),
    Verify(verify::Arguments),
}

impl Command {
    /// Returns the number of devices for concurrent use.
    fn devices(&self) -> usize {
        match self {
            Self::Run(arguments) => arguments.devices.len(),
            _ => 0,
        }
    }

    fn execute(&self, processes: &Processes, console: &Console) -> Result<Report, Failure> {
        let together = matches!(
            self,
            Self::Assemble(_) | Self::Bench(_) | Self::Probe(_) | Self::Run(_) | Self::Verify(_)
        );
        processes.check(together)?;
        match self {
            Self::Assemble(arguments) => assemble::execute(arguments, processes, console),
            Self::Bench(arguments) => bench::execute(arguments, processes, console),
            Self::Check(arguments) => check::execute(arguments, console),
            Self::Completions(arguments) => completions::execute(arguments),
            Self::Doctor(arguments) => doctor::execute(arguments, console),
            Self::Emit(arguments) => emit::execute(arguments, console),
            Self::Explain(arguments) => explain::execute(arguments),
            Self::Fmt(arguments) => fmt::execute(arguments),
            #[cfg(feature = "lsp")]
            Self::Lsp(arguments) => lsp::execute(arguments),
            Self::Man(arguments) => man::execute(arguments),
            Self::New(arguments) => new::execute(arguments),
            Self::Plan(arguments) => plan::execute(arguments, console),
            Self::Probe(arguments) => probe::execute(arguments, processes, console),
            Self::Residual(arguments) => residual::execute(arguments, console),
            Self::Run(arguments) => run::execute(arguments, processes, console),
            Self::Tune(arguments) => tune::execute(arguments, console),
            Self::Verify(arguments) => verify::execute(arguments, processes, console),
        }
    }
}

/// Runs `wf` with the arguments of this process.
pub fn main() -> ExitCode {
    run_with(std::env::args_os().collect())
}

/// Runs `wf` with arguments, of which the first is the name of the program. Another program that contains `wf` calls
/// it.
pub fn run_with(arguments: Vec<OsString>) -> ExitCode {
    let processes = Processes::open();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(_) if !processes.speaks() => return ExitCode::from(2),
        Err(error) => return report::usage(&error),
    };
    let console = Arc::new(match processes.speaks() {
        true => Console::new(arguments.json, arguments.quiet),
        false => Console::silent(arguments.json),
    });
    listen(&console);
    #[cfg(unix)]
    if let Err(error) = signals::listen() {
        tracing::warn!("signals are not heard: {error}; one that ends wf leaves temporary files");
    }
    let work = |processes: &Processes, console: &Console| {
        processes.finish(arguments.command.execute(processes, console), console)
    };
    match arguments.command.devices() {
        count if count > 1 && !processes.are_several() => {
            let in_thread = |processes: &Processes| match processes.speaks() {
                true => work(processes, &console),
                false => work(processes, &Console::silent(arguments.json)),
            };
            Processes::in_threads(count, in_thread).swap_remove(0)
        }
        _ => work(&processes, &console),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, CommandFactory as _};

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_in_its_help() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("wf "), "`wf {} --help` has no example", command.get_name());
        }
    }

    #[test]
    fn commands_parse_their_examples() {
        parses::<assemble::Arguments>("assemble a.wf --degree 2 -o folder");
        parses::<check::Arguments>("check a.wf b.wf");
        parses::<completions::Arguments>("completions zsh");
        parses::<fmt::Arguments>("fmt - a.wf --check");
        parses::<man::Arguments>("man --output man1");
        parses::<new::Arguments>("new beam --from elasticity");
        parses::<emit::Arguments>("emit a.wf --target rust --stage point --cell hex --degree 2");
        parses::<plan::Arguments>("plan a.wf --measure --roofline a.svg --task residual");
        parses::<tune::Arguments>("tune a.wf --seconds 30 --backend cuda");
        parses::<run::Arguments>("run a.wf --mesh box(dim:3,cells:4) --param f=2 --no-output");
        parses::<probe::Arguments>(
            "probe a.wf --degree 2 --at u=x[0] --direction u=1 --test u=x[1]",
        );
        parses::<verify::Arguments>(
            "verify a.wf --degree 1..3 --cell tri --cell quad --solution u=sin(x[0]) --plot a.svg",
        );
        parses::<residual::Arguments>("residual folder --solution x.npy --at-most 1e-8");
        parses::<bench::Arguments>("bench --suite bp --backend cpu --degree 1..8 --threads 2");
    }

    fn parses<A: Args>(line: &str) {
        let command = A::augment_args(clap::Command::new("wf"));
        command.clone().debug_assert();
        let matches = command.try_get_matches_from(line.split(' '));
        let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(A::from_arg_matches(&matches).is_ok(), "{line}");
    }
}
