//! The methods of the protocol: a message → answers.

use crate::document::{Document, path_of};
use crate::position::Encoding;
use crate::reference::Reference;
use crate::wire::Message;
use crate::{
    Settings, actions, completion, diagnostics, formatting, hover, navigation, outline, tokens,
};
use fem_dsl::codes::Code;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The URI scheme of the pages of diagnostics, unless the client names a site.
const PAGES: &str = "wf-explain:";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const NOT_INITIALIZED: i64 = -32002;
const REQUEST_FAILED: i64 = -32803;

/// The reason why a request has no result.
pub(crate) enum Refusal {
    /// Parameters that the protocol does not allow.
    Params,
    /// An unknown method.
    Method,
    /// The request cannot be served, for this reason.
    Failed(String),
}

pub(crate) type Answer = Result<Value, Refusal>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
    ShutDown,
    Ended,
}

/// The state of a session.
pub(crate) struct Server {
    settings: Settings,
    reference: Reference,
    documents: BTreeMap<String, Document>,
    encoding: Encoding,
    /// The prefix of the pages of diagnostics.
    pages: String,
    /// True if the client expands snippets.
    snippets: bool,
    phase: Phase,
    was_shut_down: bool,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            reference: Reference::new(settings.reference),
            documents: BTreeMap::new(),
            encoding: Encoding::default(),
            pages: PAGES.to_owned(),
            snippets: false,
            phase: Phase::Starting,
            was_shut_down: false,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    pub(crate) fn was_shut_down(&self) -> bool {
        self.was_shut_down
    }

    /// Answers one message.
    pub(crate) fn receive(&mut self, message: Message) -> Vec<Value> {
        let message = match message {
            Ok(message) => message,
            Err(error) => return vec![failure(&Value::Null, PARSE_ERROR, &error.to_string())],
        };
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // The answer to a request that was never made, or no message at all.
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            return match is_answer {
                true => Vec::new(),
                false => vec![failure(
                    &id.unwrap_or_default(),
                    INVALID_REQUEST,
                    "a message has a method",
                )],
            };
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        let Some(id) = id else { return self.notified(method, params) };
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(method, params)));
        vec![match answer {
            Ok(Ok(result)) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Ok(Err((code, message))) => failure(&id, code, &message),
            Err(_) => failure(&id, INTERNAL_ERROR, "a defect of the server; please report it"),
        }]
    }

    /// Returns the diagnostics of changed files.
    pub(crate) fn publish(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        for document in self.documents.values_mut().filter(|document| document.unpublished) {
            document.update();
            document.unpublished = false;
            messages.push(diagnostics::publish(document, &self.pages));
        }
        messages
    }

    fn notified(&mut self, method: &str, params: &Value) -> Vec<Value> {
        match method {
            "exit" => self.phase = Phase::Ended,
            _ if self.phase != Phase::Running => {}
            // A client that sends a broken notification gets no answer to it.
            "textDocument/didOpen" => drop(self.open(params)),
            "textDocument/didChange" => drop(self.change(params)),
            "textDocument/didClose" => {
                let uri = text_at(params, "/textDocument/uri").unwrap_or_default();
                if self.documents.remove(uri).is_some() {
                    return vec![diagnostics::cleared(uri)];
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn open(&mut self, params: &Value) -> Option<()> {
        let uri = text_at(params, "/textDocument/uri")?;
        let text = text_at(params, "/textDocument/text")?;
        let version = params.pointer("/textDocument/version").cloned().unwrap_or_default();
        let path = path_of(uri);
        let folder = path.as_deref().and_then(|path| path.parent()).map(self.settings.tables);
        let document = Document::new(uri, version, text, self.encoding, folder);
        self.documents.insert(uri.to_owned(), document);
        Some(())
    }

    fn change(&mut self, params: &Value) -> Option<()> {
        let document = self.documents.get_mut(text_at(params, "/textDocument/uri")?)?;
        for change in params.get("contentChanges")?.as_array()? {
            document.change(change)?;
        }
        document.version = params.pointer("/textDocument/version").cloned().unwrap_or_default();
        Some(())
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        match (self.phase, method) {
            (Phase::Starting, "initialize") => Ok(self.initialize(params)),
            (Phase::Starting, _) => {
                Err((NOT_INITIALIZED, "the session begins with `initialize`".to_owned()))
            }
            (Phase::Running, "shutdown") => {
                (self.phase, self.was_shut_down) = (Phase::ShutDown, true);
                Ok(Value::Null)
            }
            (Phase::Running, "initialize") | (Phase::ShutDown | Phase::Ended, _) => {
                Err((INVALID_REQUEST, format!("`{method}` is not possible any more")))
            }
            (Phase::Running, _) => self.request(method, params).map_err(|refusal| match refusal {
                Refusal::Params => {
                    (INVALID_PARAMS, format!("the parameters of `{method}` are not usable"))
                }
                Refusal::Method => (UNKNOWN_METHOD, format!("there is no method `{method}`")),
                Refusal::Failed(reason) => (REQUEST_FAILED, reason),
            }),
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.phase = Phase::Running;
        let offered = params.pointer("/capabilities/general/positionEncodings");
        let offered = offered.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let offered: Vec<&str> = offered.iter().filter_map(Value::as_str).collect();
        self.encoding = Encoding::of_client(&offered);
        if let Some(pages) = text_at(params, "/initializationOptions/pages") {
            pages.clone_into(&mut self.pages);
        }
        let completion = "/capabilities/textDocument/completion/completionItem/snippetSupport";
        self.snippets = params.pointer(completion).and_then(Value::as_bool).unwrap_or(false);
        let version = env!("CARGO_PKG_VERSION");
        json!({
            "serverInfo": { "name": "wf", "version": version },
            "capabilities": {
                "positionEncoding": self.encoding.name(),
                "textDocumentSync": { "openClose": true, "change": 2 },
                "hoverProvider": true,
                "definitionProvider": true,
                "referencesProvider": true,
                "documentHighlightProvider": true,
                "documentSymbolProvider": true,
                "completionProvider": { "triggerCharacters": ["\"", "[", "(", ","] },
                "renameProvider": { "prepareProvider": true },
                "documentFormattingProvider": true,
                "inlayHintProvider": true,
                "semanticTokensProvider": { "legend": tokens::legend(), "full": true },
                "codeLensProvider": {},
                "codeActionProvider": { "codeActionKinds": ["quickfix"] },
            },
        })
    }

    /// Answers a request about an open file, or the pages.
    fn request(&mut self, method: &str, params: &Value) -> Answer {
        if method == "wf/explain" {
            return explain(params);
        }
        let document = text_at(params, "/textDocument/uri").and_then(|uri| {
            let document = self.documents.get_mut(uri)?;
            document.update();
            Some(&*document)
        });
        let whole: Option<fn(&Document) -> Value> = match method {
            "textDocument/documentSymbol" => Some(outline::symbols),
            "textDocument/codeLens" => Some(outline::lenses),
            "textDocument/formatting" => Some(formatting::edits),
            "textDocument/semanticTokens/full" => Some(tokens::tokens),
            _ => None,
        };
        if let Some(whole) = whole {
            return document.map(whole).ok_or(Refusal::Params);
        }
        let document = document.ok_or(match method {
            _ if method.starts_with("textDocument/") => Refusal::Params,
            _ => Refusal::Method,
        })?;
        match method {
            "textDocument/inlayHint" => {
                let span = params.get("range").and_then(|range| document.span(range));
                return span.map(|span| outline::hints(document, span)).ok_or(Refusal::Params);
            }
            "textDocument/codeAction" => {
                let span = params.get("range").and_then(|range| document.span(range));
                let span = span.ok_or(Refusal::Params)?;
                return Ok(actions::actions(document, span, &self.pages));
            }
            _ => {}
        }
        let offset = params.get("position").and_then(|position| document.offset(position));
        let offset = offset.ok_or(match method {
            "textDocument/hover"
            | "textDocument/definition"
            | "textDocument/references"
            | "textDocument/documentHighlight"
            | "textDocument/completion"
            | "textDocument/prepareRename"
            | "textDocument/rename" => Refusal::Params,
            _ => Refusal::Method,
        })?;
        match method {
            "textDocument/hover" => Ok(hover::hover(document, &self.reference, offset)),
            "textDocument/definition" => Ok(navigation::definition(document, offset)),
            "textDocument/references" => {
                let declared = params.pointer("/context/includeDeclaration");
                let declared = declared.and_then(Value::as_bool).unwrap_or(true);
                Ok(navigation::references(document, offset, declared))
            }
            "textDocument/documentHighlight" => Ok(navigation::highlights(document, offset)),
            "textDocument/completion" => {
                Ok(completion::complete(document, &self.reference, offset, self.snippets))
            }
            "textDocument/prepareRename" => Ok(navigation::prepare_rename(document, offset)),
            "textDocument/rename" => {
                let name = params.get("newName").and_then(Value::as_str).ok_or(Refusal::Params)?;
                navigation::rename(document, offset, name).map_err(Refusal::Failed)
            }
            _ => Err(Refusal::Method),
        }
    }
}

/// Returns the page of a code, for clients that show pages themselves.
fn explain(params: &Value) -> Answer {
    let wanted = params.get("code").and_then(Value::as_str).ok_or(Refusal::Params)?;
    let code = Code::ALL.iter().find(|code| code.id() == wanted);
    let code = code.ok_or_else(|| Refusal::Failed(format!("there is no code `{wanted}`")))?;
    Ok(json!(code.page()))
}

/// Returns a text in a message.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
