//! Messages and texts that no client should send.

use crate::session::{Session, URI, at};
use serde_json::{Value, json};
use std::path::Path;

/// Requests about a position of a file.
const AT_POSITION: &[&str] = &[
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/completion",
    "textDocument/prepareRename",
];

/// Requests about a file.
const WHOLE: &[&str] = &[
    "textDocument/documentSymbol",
    "textDocument/codeLens",
    "textDocument/formatting",
    "textDocument/semanticTokens/full",
];

/// Asks everything about the position at the end of a text, and about the whole.
fn ask(session: &mut Session, text: &str) {
    let line = text.matches('\n').count();
    let column = text.len() - text.rfind('\n').map_or(0, |newline| newline + 1);
    let end = json!({ "line": line, "character": column });
    session.open(URI, text);
    for method in AT_POSITION {
        session.request(method, &at(&end));
    }
    let document = json!({ "textDocument": { "uri": URI } });
    for method in WHOLE {
        session.request(method, &document);
    }
    let all = json!({ "start": { "line": 0, "character": 0 }, "end": end });
    let mut params = json!({ "textDocument": { "uri": URI }, "range": all, "context": {} });
    session.request("textDocument/inlayHint", &params);
    params["context"] = json!({ "diagnostics": [] });
    session.request("textDocument/codeAction", &params);
}

#[test]
fn unfinished_text_is_harmless() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wf"))
        .collect();
    files.sort();
    assert!(files.len() > 40, "the examples were not found");
    let mut session = Session::initialized(&["utf-8"]);
    for (number, path) in files.iter().enumerate() {
        let text = std::fs::read_to_string(path).expect("an example");
        // Other places in each file, in words, strings, comments and between them.
        for part in 1..5 {
            let mut cut = (text.len() * part / 5 + 7 * number) % text.len();
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            ask(&mut session, &text[..cut]);
            // The rest without its beginning.
            ask(&mut session, &text[cut..]);
        }
    }
    let odd = [
        "",
        "\r",
        "é",
        "\"",
        "/*",
        "form",
        "form a",
        "form a {",
        "problem p solves",
        "1e",
        "\u{0}",
        "}",
        "form a { field u: scalar; f0[u] = \"𝛁",
    ];
    for text in odd {
        ask(&mut session, text);
    }
}

#[test]
fn positions_beyond_the_text_are_its_end() {
    let mut session = Session::initialized(&[]);
    session.open(URI, "form a { field u: scalar; f0[u] = u; }");
    for (line, column) in
        [(0, 4_000_000_000_u64), (9, 0), (u64::from(u32::MAX), u64::from(u32::MAX))]
    {
        for method in AT_POSITION {
            session.request(method, &at(&json!({ "line": line, "character": column })));
        }
    }
    let range =
        json!({ "start": { "line": 5, "character": 5 }, "end": { "line": 0, "character": 30 } });
    let published = session.change(URI, 2, &json!([{ "range": range, "text": "" }]));
    assert!(published["diagnostics"].as_array().is_some_and(|found| !found.is_empty()));
}

#[test]
fn broken_messages_are_answered() {
    let mut session = Session::start();
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    assert_eq!(code(&session.answer("textDocument/hover", &json!({}))), Some(-32002));
    session.send("Content-Length: 3\r\n\r\n{,}");
    let answer = session.receive().expect("an answer");
    assert_eq!((code(&answer), &answer["id"]), (Some(-32700), &Value::Null));
    session.send("Content-Length: 2\r\nContent-Type: x\r\n\r\n[]");
    assert_eq!(code(&session.receive().expect("an answer")), Some(-32600));
    session.request("initialize", &json!({ "capabilities": {} }));
    let wrong = [
        ("textDocument/hover", json!({}), -32602),
        ("textDocument/hover", at(&json!({ "line": -1, "character": 0 })), -32602),
        ("textDocument/hover", at(&json!({ "line": 0, "character": 0 })), -32602),
        ("textDocument/semanticTokens/full", Value::Null, -32602),
        ("workspace/symbol", json!({ "query": "" }), -32601),
        ("initialize", json!({}), -32600),
        ("wf/explain", json!({ "code": "E9999" }), -32803),
    ];
    for (method, params, expected) in wrong {
        assert_eq!(code(&session.answer(method, &params)), Some(expected), "{method} {params}");
    }
    // Notifications without a meaning have no answer.
    session.notify("textDocument/didOpen", &json!({ "textDocument": 3 }));
    session.notify("textDocument/didChange", &json!([]));
    session.notify("$/cancelRequest", &json!({ "id": 1 }));
    session.open(URI, "form a {}");
    let position = json!({ "line": 0, "character": 6 });
    assert_eq!(code(&session.answer("textDocument/rename", &at(&position))), Some(-32602));
    let mut rename = at(&position);
    rename["newName"] = json!("field");
    assert_eq!(code(&session.answer("textDocument/rename", &rename)), Some(-32803));
    assert!(session.request("wf/explain", &json!({ "code": "E0201" })).is_string());
    session.request("shutdown", &Value::Null);
    assert_eq!(code(&session.answer("textDocument/hover", &at(&position))), Some(-32600));
    session.notify("exit", &Value::Null);
    assert!(session.receive().is_none() && session.end().is_ok_and(|shut_down| shut_down));
}

#[test]
fn a_stream_without_messages_ends_the_session() {
    let mut session = Session::start();
    session.send("form a {}\r\n\r\n");
    assert!(session.receive().is_none());
    assert!(session.end().is_err());
    assert!(Session::start().end().is_ok_and(|shut_down| !shut_down));
}
