//! `wf man`: manual pages in roff, from the same arguments and texts as `--help`.

use std::fs::create_dir_all;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _};
use clap_mangen::Man;
use runtime::files::output::write_text;
use serde_json::json;

use crate::report::{Failure, Report};

/// Print the manual: a page for `wf`, and one for each command.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf man | man -l -                            reads it, all pages one after another
  wf man --output ~/.local/share/man/man1      writes wf.1, wf-run.1, …; then `man wf-run` finds them
What `--help` says is the same.")]
pub(crate) struct Arguments {
    /// Write a file for each page into this folder, which is made where there is none.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A file's name and contents.
struct Page {
    file: String,
    roff: String,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let pages = pages()?;
    match &arguments.output {
        Some(folder) => write(folder, &pages),
        None => {
            let text = pages.iter().map(|page| page.roff.as_str()).collect::<String>();
            let json: Vec<_> =
                pages.iter().map(|page| json!({ "file": page.file, "roff": page.roff })).collect();
            Ok(Report::new(text, json!({ "pages": json })))
        }
    }
}

/// Returns the page of the program, and those of its commands in order.
fn pages() -> Result<Vec<Page>, io::Error> {
    let mut command = crate::Arguments::command().disable_help_subcommand(true);
    command.build();
    let commands = command.get_subcommands().cloned();
    std::iter::once(command.clone()).chain(commands).map(page).collect()
}

fn page(command: clap::Command) -> Result<Page, io::Error> {
    let man = Man::new(command).source(concat!("weakform ", env!("CARGO_PKG_VERSION")));
    let (file, mut roff) = (man.get_filename(), Vec::new());
    man.render(&mut roff)?;
    Ok(Page { file, roff: String::from_utf8_lossy(&roff).into_owned() })
}

fn write(folder: &Path, pages: &[Page]) -> Result<Report, Failure> {
    let at = folder.display();
    create_dir_all(folder).map_err(|error| Failure::input(format!("cannot make {at}: {error}")))?;
    for page in pages {
        write_text(&folder.join(&page.file), &page.roff)?;
    }
    let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
    let text = format!("wrote {} pages into {at}\n", files.len());
    Ok(Report::new(text, json!({ "folder": at.to_string(), "files": files })))
}
