//! `inlined`: the names of a problem's outputs in its reports and later outputs → their expressions.
//!
//! `output s = dev(sigma);` makes `s` known in the reports of the same problem: `maximum(norm(s))`. A name that the form
//! declares keeps the form's meaning. The operands of an output's expression are shared, not copied.

use super::names::{operands, subtree, with_operands};
use crate::ast::{Expr, ExprId, ExprKind, File, FormItem, FormItemKind, ProblemItemKind};
use std::collections::BTreeMap;

/// Returns the file with the expressions of outputs in place of their names.
pub(crate) fn inlined(file: &File) -> File {
    let mut made = file.clone();
    for (at, problem) in file.problems.iter().enumerate() {
        let form = file.forms.iter().find(|form| form.name.name == problem.form.name);
        let declared: Vec<&str> = form.map_or_else(Vec::new, |form| names(&form.items));
        let mut known: BTreeMap<&str, ExprId> = BTreeMap::new();
        for (item, place) in problem.items.iter().zip(0..) {
            let ProblemItemKind::Output { name, value, sampling } = &item.kind else { continue };
            let value = with_outputs(&mut made, *value, &known);
            if !declared.contains(&name.name.as_str()) {
                known.insert(&name.name, value);
            }
            let (name, sampling) = (name.clone(), *sampling);
            made.problems[at].items[place].kind = ProblemItemKind::Output { name, value, sampling };
        }
        for (item, place) in problem.items.iter().zip(0..).filter(|_| !known.is_empty()) {
            let ProblemItemKind::Report { name, value } = &item.kind else { continue };
            let value = with_outputs(&mut made, *value, &known);
            made.problems[at].items[place].kind =
                ProblemItemKind::Report { name: name.clone(), value };
        }
    }
    made
}

/// Returns an expression with those of outputs in place of their names; the same one if it has no such name.
fn with_outputs(file: &mut File, root: ExprId, known: &BTreeMap<&str, ExprId>) -> ExprId {
    let mut moved: BTreeMap<ExprId, ExprId> = BTreeMap::new();
    // Operands precede what they are part of, and new expressions follow all others.
    for id in subtree(file, root) {
        let expr = file.exprs[id].clone();
        let own = match &expr.kind {
            ExprKind::Name(name) => known.get(name.as_str()).copied(),
            kind if operands(kind).iter().any(|operand| moved.contains_key(operand)) => {
                let kind = with_operands(kind, |id| moved.get(&id).copied().unwrap_or(id));
                Some(file.exprs.push(Expr { kind, span: expr.span }))
            }
            _ => None,
        };
        moved.extend(own.map(|own| (id, own)));
    }
    moved.get(&root).copied().unwrap_or(root)
}

/// Returns the declared names of a form.
fn names(items: &[FormItem]) -> Vec<&str> {
    let mut all = Vec::new();
    for item in items {
        match &item.kind {
            FormItemKind::Field { name, .. }
            | FormItemKind::Aux { name, .. }
            | FormItemKind::Param { name, .. }
            | FormItemKind::Let { name, .. }
            | FormItemKind::Fn { name, .. }
            | FormItemKind::Test { name, .. } => all.push(name.name.as_str()),
            FormItemKind::Block { items, .. } => all.extend(names(items)),
            _ => {}
        }
    }
    all
}
