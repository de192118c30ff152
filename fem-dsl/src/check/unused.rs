//! Unused names of a form: declared with `param`, `aux`, `let` or `fn`, and needed by neither a row nor a problem,
//! directly or indirectly.

use super::names::subtree;
use crate::ast::{
    ExprId, ExprKind, File, Form, FormItem, FormItemKind, Ident, Problem, ProblemItemKind,
};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the names in an expression.
pub(crate) fn names(file: &File, root: ExprId) -> impl Iterator<Item = &str> {
    subtree(file, root).into_iter().filter_map(|id| match &file.exprs[id].kind {
        ExprKind::Name(name) => Some(name.as_str()),
        ExprKind::Call { function, .. } => Some(function.name.as_str()),
        _ => None,
    })
}

/// Returns the expressions of a problem that may use a parameter of its form.
pub(crate) fn expressions(problem: &Problem) -> impl Iterator<Item = ExprId> {
    let arguments = |item: &ProblemItemKind| match item {
        ProblemItemKind::Adapt { arguments } => arguments.iter().map(|given| given.value).collect(),
        _ => Vec::new(),
    };
    let of_adapt = problem.items.iter().flat_map(move |item| arguments(&item.kind));
    let values = problem.items.iter().filter_map(|item| match &item.kind {
        ProblemItemKind::Setting { value, .. }
        | ProblemItemKind::Param { value, .. }
        | ProblemItemKind::Aux { value, .. }
        | ProblemItemKind::Mean { value, .. }
        | ProblemItemKind::Source { value, .. }
        | ProblemItemKind::Report { value, .. }
        | ProblemItemKind::Output { value, .. }
        | ProblemItemKind::Initial { value, .. }
        | ProblemItemKind::Exact { value, .. }
        | ProblemItemKind::Bound { value, .. }
        | ProblemItemKind::Manufactured { value, .. } => Some(*value),
        ProblemItemKind::Dirichlet { value, .. } => *value,
        // Their arguments are keywords and numbers. A load parameter has no effect on its own.
        ProblemItemKind::MeshFile(_)
        | ProblemItemKind::MeshGenerator(_)
        | ProblemItemKind::Periodic { .. }
        | ProblemItemKind::Adapt { .. }
        | ProblemItemKind::Solver(_)
        | ProblemItemKind::Broken => None,
    });
    values.chain(of_adapt)
}

/// Returns a warning for each name of a form without errors that neither the form nor `others`, its problems, need.
pub(crate) fn unused(file: &File, form: &Form, others: &BTreeSet<String>) -> Vec<Diagnostic> {
    let mut declared = BTreeMap::new();
    let mut open: Vec<&str> = others.iter().map(String::as_str).collect();
    read(file, &form.items, &mut declared, &mut open);
    let mut used = BTreeSet::new();
    while let Some(name) = open.pop() {
        if used.insert(name)
            && let Some(Declaration { value: Some(value), .. }) = declared.get(name)
        {
            open.extend(names(file, *value));
        }
    }
    let unused =
        || declared.values().filter(|declared| !used.contains(declared.name.name.as_str()));
    let warning = |declared: &Declaration<'_>| {
        let Ident { name, span } = declared.name;
        let user = unused().find(|other| {
            other.value.is_some_and(|value| names(file, value).any(|used| used == name))
        });
        let label = match user {
            Some(user) => format!("only `{}` uses it, which nothing uses", user.name.name),
            None => "nothing uses it".to_owned(),
        };
        let message = format!("the {} `{name}` is never used", declared.kind);
        Diagnostic::warning(Code::UnusedName, message)
            .label(*span, label)
            .help(format!("remove it, or use it in what `{}` integrates", form.name.name))
    };
    unused().map(warning).collect()
}

/// A declaration that must be used.
struct Declaration<'a> {
    name: &'a Ident,
    kind: &'static str,
    /// The expression that defines it.
    value: Option<ExprId>,
}

/// Collects the declarations among the items, and the names that their rows use.
fn read<'a>(
    file: &'a File,
    items: &'a [FormItem],
    declared: &mut BTreeMap<&'a str, Declaration<'a>>,
    used: &mut Vec<&'a str>,
) {
    for item in items {
        let (name, kind, value) = match &item.kind {
            FormItemKind::Aux { name, .. } => (name, "auxiliary data", None),
            FormItemKind::Param { name, value, .. } => (name, "parameter", Some(*value)),
            FormItemKind::Let { name, value } => (name, "expression", Some(*value)),
            FormItemKind::Fn { name, body, .. } => (name, "function", Some(*body)),
            FormItemKind::Row { value, .. }
            | FormItemKind::Start { value, .. }
            | FormItemKind::Update { value, .. }
            | FormItemKind::Residual { value }
            | FormItemKind::Energy { value } => {
                used.extend(names(file, *value));
                continue;
            }
            FormItemKind::Block { items, .. } => {
                // Blocks are not nested.
                read(file, items, declared, used);
                continue;
            }
            FormItemKind::Field { .. } | FormItemKind::Test { .. } | FormItemKind::Broken => {
                continue;
            }
        };
        declared.insert(&name.name, Declaration { name, kind, value });
    }
}
