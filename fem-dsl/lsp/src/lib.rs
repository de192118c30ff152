//! The language server of weakform, for editors: diagnostics, formatting, hover, navigation, completion and more.
//!
//! [`serve`] reads messages from one stream and answers on another. It is synchronous: a file is parsed as a whole at each
//! change, and the forms and problems that it concerns are checked. Several changes that arrive together are checked
//! once. The crate reads no files: the program passes the language's reference and the reader of tables ([`Settings`]).
//!
//! Stages: `wire` (messages), `server` (methods), `document` (text and analysis), then one file per feature; `context`
//! finds the place of the cursor in unfinished text, `reference` the rows of the language's tables.

mod actions;
mod completion;
mod context;
mod diagnostics;
mod document;
mod formatting;
mod hover;
mod navigation;
mod outline;
mod position;
mod reference;
mod server;
mod shapes;
mod tokens;
mod wire;

use fem_dsl::source::TableFolder;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// The parts of the program that the server needs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The reference of the language, as Markdown.
    pub reference: &'static str,
    /// Returns the folder of the tables of a file, `table("data.csv", a)`.
    pub tables: fn(&Path) -> TableFolder,
}

/// Answers the messages of a client until it ends the session. Returns whether it ended it by `shutdown` and `exit`.
///
/// # Errors
///
/// A broken stream, or a header without a usable length.
pub fn serve(settings: Settings, input: impl Read, mut output: impl Write) -> io::Result<bool> {
    let mut input = BufReader::new(input);
    let mut server = server::Server::new(settings);
    while let Some(message) = wire::read(&mut input)? {
        for answer in server.receive(message) {
            wire::write(&mut output, &answer)?;
        }
        if server.has_ended() {
            break;
        }
        // Changes that are already here come first.
        if input.buffer().is_empty() {
            for notification in server.publish() {
                wire::write(&mut output, &notification)?;
            }
        }
    }
    Ok(server.was_shut_down())
}
