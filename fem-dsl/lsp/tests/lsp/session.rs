//! A client of the server, over pipes.

use fem_dsl::source::TableFolder;
use fem_lsp::{Settings, serve};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::thread::JoinHandle;

/// The name of the file of most sessions.
pub(crate) const URI: &str = "file:///forms/a.wf";

/// A running server.
pub(crate) struct Session {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    server: Option<JoinHandle<std::io::Result<bool>>>,
    /// Notifications that came before an answer.
    pub(crate) pending: VecDeque<Value>,
    next: u64,
}

fn tables(folder: &Path) -> TableFolder {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    TableFolder { path: folder.to_owned(), read }
}

impl Session {
    /// Starts a server without a word.
    pub(crate) fn start() -> Self {
        let (from_client, input) = pipe().expect("a pipe");
        let (output, to_client) = pipe().expect("a pipe");
        let reference = include_str!("../../../../docs/language.md");
        let settings = Settings { reference, tables };
        let server = std::thread::spawn(move || serve(settings, from_client, to_client));
        let (input, server) = (Some(input), Some(server));
        Self { input, output: BufReader::new(output), server, pending: VecDeque::new(), next: 1 }
    }

    /// Starts a session of a client with these encodings, which takes snippets.
    pub(crate) fn initialized(encodings: &[&str]) -> Self {
        let mut session = Self::start();
        let completion = json!({ "completionItem": { "snippetSupport": true } });
        session.request(
            "initialize",
            &json!({ "capabilities": {
                "general": { "positionEncodings": encodings },
                "textDocument": { "completion": completion },
            } }),
        );
        session.notify("initialized", &json!({}));
        session
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the session runs");
        input.write_all(text.as_bytes()).expect("the server reads");
    }

    fn message(&mut self, message: &Value) {
        let text = message.to_string();
        self.send(&format!("Content-Length: {}\r\n\r\n{text}", text.len()));
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.message(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Returns the next message of the server; `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("a header") == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some((_, number)) => length = number.parse().expect("a length"),
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("a message");
        Some(serde_json::from_slice(&text).expect("JSON"))
    }

    /// Sends a request and returns its answer.
    pub(crate) fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.message(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive().expect("an answer");
            if message.get("id") == Some(&json!(id)) {
                return message;
            }
            self.pending.push_back(message);
        }
    }

    /// Sends a request that must succeed, and returns its result.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].clone()
    }

    /// Opens a file, and returns its diagnostics.
    pub(crate) fn open(&mut self, uri: &str, text: &str) -> Value {
        let document = json!({ "uri": uri, "languageId": "wf", "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }));
        self.published()
    }

    /// Changes a file, and returns its diagnostics.
    pub(crate) fn change(&mut self, uri: &str, version: u64, changes: &Value) -> Value {
        let document = json!({ "uri": uri, "version": version });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.notify("textDocument/didChange", &params);
        self.published()
    }

    /// Returns the next diagnostics.
    pub(crate) fn published(&mut self) -> Value {
        let message = self.pending.pop_front().or_else(|| self.receive()).expect("diagnostics");
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        message["params"].clone()
    }

    /// Ends the input, and returns the result of the server.
    pub(crate) fn end(mut self) -> std::io::Result<bool> {
        self.input = None;
        let server = self.server.take().expect("it ends once");
        server.join().expect("the server does not panic")
    }
}

/// Returns a text without its mark `|`, and the position of the mark, in bytes.
pub(crate) fn marked(text: &str) -> (String, Value) {
    let at = text.find('|').expect("a mark");
    let before = &text[..at];
    let line = before.matches('\n').count();
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
    (text.replacen('|', "", 1), json!({ "line": line, "character": column }))
}

/// Returns the parameters of a request about a position.
pub(crate) fn at(position: &Value) -> Value {
    json!({ "textDocument": { "uri": URI }, "position": position })
}
