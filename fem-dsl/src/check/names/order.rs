//! The order of definitions, and their cycles.

use super::MOST_ERRORS;
use crate::ast::Ident;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// Returns the items in dependency order. A cycle is reported once, and omitted with everything that depends on it.
pub(super) fn order(
    uses: &[Vec<(usize, Span)>],
    idents: &[&Ident],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
        Cyclic,
    }
    let mut states = vec![State::New; uses.len()];
    let mut order = Vec::new();
    for start in 0..uses.len() {
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open;
        // The path from `start`, each with the number of its visited uses.
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some(&mut (item, ref mut next)) = path.last_mut() {
            let Some(&(used, span)) = uses[item].get(*next) else {
                path.pop();
                if states[item] == State::Open {
                    states[item] = State::Done;
                    order.push(item);
                } else if let Some(&(user, _)) = path.last() {
                    states[user] = State::Cyclic;
                }
                continue;
            };
            *next += 1;
            match states[used] {
                State::New => {
                    states[used] = State::Open;
                    path.push((used, 0));
                }
                State::Done => {}
                State::Open => {
                    if diagnostics.len() < MOST_ERRORS {
                        diagnostics.push(cycle(&path, used, span, idents));
                    }
                    states[item] = State::Cyclic;
                }
                State::Cyclic => {
                    // Already reported if `used` is still on the path.
                    states[item] = State::Cyclic;
                }
            }
        }
    }
    order
}

fn cycle(path: &[(usize, usize)], used: usize, span: Span, idents: &[&Ident]) -> Diagnostic {
    let from = path.iter().position(|&(item, _)| item == used).unwrap_or(0);
    let mut chain: Vec<&str> =
        path[from..].iter().map(|&(item, _)| idents[item].name.as_str()).collect();
    let name = &idents[used].name;
    chain.push(name);
    let diagnostic = Diagnostic::new(Code::Cycle, format!("`{name}` is defined by itself"))
        .label(span, "used here")
        .secondary(idents[used].span, "while it is being defined here");
    if chain.len() > 2 && chain.len() <= 12 {
        return diagnostic.note(format!("the circle is {}", chain.join(" → ")));
    }
    diagnostic
}
