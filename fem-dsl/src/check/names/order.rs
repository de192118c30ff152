//! The order of definitions, and their cycles.

use super::MOST_ERRORS;
use crate::ast::Ident;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// Returns the items in dependency order. A cycle is reported once, and omitted with everything that depends on it.
pub(in crate::check) fn order(
    uses: &[Vec<(usize, Span)>],
    idents: &[&Ident],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done,
        Cyclic,
    }
    let mut states = vec![VisitState::New; uses.len()];
    let mut order = Vec::new();
    for start in 0..uses.len() {
        if states[start] != VisitState::New {
            continue;
        }
        states[start] = VisitState::Open;
        // The path from `start`, each with the number of its visited uses.
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some(&mut (item, ref mut next)) = path.last_mut() {
            let Some(&(used, span)) = uses[item].get(*next) else {
                path.pop();
                if states[item] == VisitState::Open {
                    states[item] = VisitState::Done;
                    order.push(item);
                } else if let Some(&(user, _)) = path.last() {
                    states[user] = VisitState::Cyclic;
                }
                continue;
            };
            *next += 1;
            match states[used] {
                VisitState::New => {
                    states[used] = VisitState::Open;
                    path.push((used, 0));
                }
                VisitState::Done => {}
                VisitState::Open => {
                    if diagnostics.len() < MOST_ERRORS {
                        diagnostics.push(cycle(&path, used, span, idents));
                    }
                    states[item] = VisitState::Cyclic;
                }
                VisitState::Cyclic => {
                    // Already reported if `used` is still on the path.
                    states[item] = VisitState::Cyclic;
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
