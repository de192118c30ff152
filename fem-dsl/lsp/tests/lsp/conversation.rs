//! Recorded conversations.

use crate::session::{Session, URI, at, marked};
use serde_json::{Value, json};
use std::fmt::Write as _;

const TEXT: &str = "\
/// Heat in a plate, −∇·(κ∇u) = f.
form heat {
    field u: scalar in H1(k);
    /// The source.
    param f = 2;
    aux kappa: scalar on cells;
    let flux = kappa * grad(u);
    fn cube(a) = a^3;
    f0[u] = cube(u) - f; // é 𝛁 u
    f1[u] = flux;
    on boundary \"x0\" {
        f0[u] = u;
    }
}

problem plate solves heat {
    mesh = box(dim: 2, cells: 4);
    aux kappa = 1;
    param f = 3;
    dirichlet u = 0 on \"x1\";
    solver = newton(rtol: 1e-8);
    report out = integral(dot(flux, n), on: \"x0\");
}
";

/// A conversation with its record.
struct Recorded {
    session: Session,
    record: String,
}

impl Recorded {
    /// Sends a request at the first place of `mark` in the text, and records the answer.
    fn ask(&mut self, method: &str, mark: &str) {
        let (_, position) = marked(&TEXT.replacen(&mark.replace('|', ""), mark, 1));
        self.request(method, mark, &at(&position));
    }

    fn request(&mut self, method: &str, about: &str, params: &Value) {
        let result = self.session.request(method, params);
        self.note(&format!("{method} {about}"), &result);
    }

    fn note(&mut self, title: &str, value: &Value) {
        let text = lines(value);
        writeln!(self.record, "## {title}\n{text}\n").expect("a string takes all text");
    }
}

/// Returns a value with one entry of its list on each line.
fn lines(value: &Value) -> String {
    let list = value.as_array().or_else(|| value.get("diagnostics")?.as_array());
    match list {
        Some(list) if !list.is_empty() => list.iter().map(short).collect::<Vec<_>>().join("\n"),
        _ => short(value),
    }
}

/// Returns JSON with ranges as `line:column-line:column`, and texts of several lines as they are.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => format!("«{text}»"),
        Value::Object(map) if map.len() == 2 && map.contains_key("character") => {
            format!("{}:{}", map["line"], map["character"])
        }
        Value::Object(map) if map.len() == 2 && map.contains_key("end") => {
            format!("{}-{}", short(&map["start"]), short(&map["end"]))
        }
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| format!("{name}: {}", short(value)));
            let mut entries: Vec<String> = entries.collect();
            entries.sort();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(short).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn a_session_is_answered_as_recorded() {
    let mut session = Session::start();
    let capabilities = json!({ "general": { "positionEncodings": ["utf-16", "utf-8"] } });
    let answer = session.request("initialize", &json!({ "capabilities": capabilities }));
    let mut recorded = Recorded { session, record: String::new() };
    recorded.note("initialize", &answer["capabilities"]);
    let published = recorded.session.open(URI, TEXT);
    recorded.note("open", &published);
    for place in [
        "form he|at",
        "let fl|ux",
        "param |f = 2",
        "field |u",
        "fn cu|be",
        "cube(|u)",
        "problem pl|ate",
        "gr|ad(u)",
        "scal|ar in",
        "|field u",
        "mesh = b|ox",
        "newton(rt|ol",
        "dirich|let",
        "report o|ut",
        "integ|ral",
        "dot(flux, |n)",
    ] {
        recorded.ask("textDocument/hover", place);
    }
    for place in ["= flu|x;", "cube(a) = a|^3", "solves hea|t", "param f| = 3", "mesh| ="] {
        recorded.ask("textDocument/definition", place);
        recorded.ask("textDocument/references", place);
    }
    recorded.ask("textDocument/documentHighlight", "let flux| =");
    recorded.ask("textDocument/prepareRename", "let flux| =");
    let whole = json!({ "textDocument": { "uri": URI } });
    recorded.request("textDocument/documentSymbol", "", &whole);
    recorded.request("textDocument/codeLens", "", &whole);
    recorded.request("textDocument/formatting", "of a formatted file", &whole);
    let start = json!({ "line": 0, "character": 0 });
    let all = json!({ "start": start, "end": { "line": 99, "character": 0 } });
    let params = json!({ "textDocument": { "uri": URI }, "range": all });
    recorded.request("textDocument/inlayHint", "", &params);
    insta::assert_snapshot!("session", recorded.record);
}

#[test]
fn mistakes_have_places_and_fixes() {
    let mut session = Session::initialized(&["utf-8"]);
    let text = "form a {\n    field u: scalar\n    param kapa = 1;\n    let idle = 2;\n    f0[u] = kappa * trace(u) +;\n    f0[u] = 1;\n}\n";
    let published = session.open(URI, text);
    let mut recorded = Recorded { session, record: String::new() };
    recorded.note("open", &published);
    let start = json!({ "line": 0, "character": 0 });
    let all = json!({ "start": start, "end": { "line": 99, "character": 0 } });
    let params = json!({ "textDocument": { "uri": URI }, "range": all, "context": {} });
    recorded.request("textDocument/codeAction", "", &params);
    // Without the error of syntax, the file is formatted, and the names are checked.
    let text = "form a {\n    field u: vector;\n  param kapa=1;\n    let idle = 2;\n    f1[u] = kappa * trace(grad(u)) * I;\n}\n";
    let published = recorded.session.change(URI, 2, &json!([{ "text": text }]));
    recorded.note("change", &published);
    recorded.request("textDocument/codeAction", "", &params);
    recorded.request("textDocument/formatting", "", &params);
    // One name is mended, so that warnings are reported.
    let at =
        json!({ "start": { "line": 4, "character": 12 }, "end": { "line": 4, "character": 26 } });
    let change = json!([{ "range": at, "text": "kapa * tr(" }, { "range": { "start": start, "end": start }, "text": "// Two edits.\n" }]);
    let published = recorded.session.change(URI, 3, &change);
    recorded.note("change", &published);
    recorded.request("textDocument/codeAction", "", &params);
    recorded.session.notify("textDocument/didClose", &json!({ "textDocument": { "uri": URI } }));
    let published = recorded.session.published();
    recorded.note("close", &published);
    insta::assert_snapshot!("mistakes", recorded.record);
}

#[test]
fn edits_apply_in_the_unit_of_the_client() {
    // The comment before the renamed name has two bytes, and then four bytes that are two units.
    let text = "form a { field u: scalar; /* é𝛁 */ f0[u] = u; }";
    for (encodings, column) in [(&["utf-8"][..], 47), (&[], 44), (&["utf-32"], 43)] {
        let mut session = Session::initialized(encodings);
        session.open(URI, text);
        let mut params = at(&json!({ "line": 0, "character": column }));
        params["newName"] = json!("T");
        let edit = session.request("textDocument/rename", &params);
        let edits = edit["changes"][URI].as_array().expect("edits");
        assert_eq!(edits.len(), 3, "{encodings:?} {edit}");
        // Applied from the end, as changes of the file, they rename it.
        let changes = edits.iter().rev();
        let changes: Vec<Value> = changes
            .map(|edit| json!({ "range": edit["range"], "text": edit["newText"] }))
            .collect();
        session.change(URI, 2, &json!(changes));
        let document = json!({ "textDocument": { "uri": URI } });
        let symbols = session.request("textDocument/documentSymbol", &document);
        assert_eq!(symbols[0]["children"][0]["name"], "T", "{encodings:?}");
        assert_eq!(symbols[0]["children"][1]["name"], "f0[T]", "{encodings:?}");
    }
}

#[test]
fn tokens_are_classified() {
    let mut session = Session::initialized(&["utf-16"]);
    let text = "/* é\n𝛁 */ form a { field u: scalar in H1; param c = 1; f0[u] = c * sin(x[0]) * u; }\nproblem p solves a { mesh = box(cells: 2); }";
    session.open(URI, text);
    let document = json!({ "textDocument": { "uri": URI } });
    let found = session.request("textDocument/semanticTokens/full", &document);
    let data: Vec<usize> = found["data"]
        .as_array()
        .expect("numbers")
        .iter()
        .filter_map(Value::as_u64)
        .map(|n| n as usize)
        .collect();
    let types = [
        "comment",
        "keyword",
        "number",
        "string",
        "operator",
        "function",
        "variable",
        "parameter",
        "property",
        "type",
        "class",
        "namespace",
    ];
    let (mut line, mut column) = (0, 0);
    let mut shown = Vec::new();
    for token in data.chunks(5) {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        let units: Vec<u16> = text.lines().nth(line).expect("a line").encode_utf16().collect();
        let word = String::from_utf16_lossy(&units[column..column + token[2]]);
        shown.push(format!("{word}/{}", types[token[3]]));
    }
    let expected = "/* é/comment 𝛁 *//comment form/keyword a/class field/keyword u/variable scalar/type in/keyword H1/type \
                    param/keyword c/variable =/operator 1/number f0/keyword u/variable =/operator c/variable */operator \
                    sin/function x/variable 0/number */operator u/variable problem/keyword p/namespace solves/keyword \
                    a/class mesh/keyword =/operator box/function cells/property 2/number";
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn several_changes_are_checked_once() {
    let mut session = Session::initialized(&["utf-8"]);
    session.open(URI, "form a {}");
    // One write of several messages: only the last text has diagnostics.
    let mut burst = String::new();
    for version in 2..6 {
        let document = json!({ "uri": URI, "version": version });
        let change = json!([{ "text": format!("form a {{ field u{version}: scalar; }}") }]);
        let params = json!({ "textDocument": document, "contentChanges": change });
        let text =
            json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": params })
                .to_string();
        write!(burst, "Content-Length: {}\r\n\r\n{text}", text.len())
            .expect("a string takes all text");
    }
    session.send(&burst);
    let published = session.published();
    assert_eq!(published["version"], 5, "{published}");
}
