//! Names of the language as names of Rust. The macro generates items for forms, problems, fields, parameters and data,
//! and an item cannot have a Rust keyword as its name.

use fem_dsl::ast::{self, FormItemKind};
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::words::{RUST, alternative};
use proc_macro2::{Ident, Span};

/// Reports each name of an item that is a Rust keyword.
pub(crate) fn keywords(file: &ast::File) -> Vec<Diagnostic> {
    let forms = file.forms.iter().map(|form| &form.name);
    let problems = file.problems.iter().map(|problem| &problem.name);
    let items = file.forms.iter().flat_map(|form| &form.items).flat_map(declared);
    let names = forms.chain(problems).chain(items);
    let reserved = names.filter(|name| RUST.contains(&name.name.as_str()));
    let one = |name: &ast::Ident| {
        let message =
            format!("`{}` is a keyword of Rust, and no item can have this name", name.name);
        Diagnostic::new(Code::ReservedWord, message)
            .label(name.span, "the macro makes an item of this")
            .help(format!("choose another name, such as `{}`", alternative(&name.name)))
    };
    reserved.map(one).collect()
}

/// Returns the names of fields, parameters and data that an item declares.
fn declared(item: &ast::FormItem) -> Vec<&ast::Ident> {
    match &item.kind {
        FormItemKind::Field { name, .. }
        | FormItemKind::Param { name, .. }
        | FormItemKind::Aux { name, .. } => vec![name],
        FormItemKind::Block { items, .. } => items.iter().flat_map(declared).collect(),
        _ => Vec::new(),
    }
}

/// Returns a name as an identifier: words reserved by Rust become raw identifiers, and a keyword, which [`keywords`]
/// reports, is replaced by another name.
pub(crate) fn ident(name: &str, span: Span) -> Ident {
    if RUST.contains(&name) {
        return Ident::new(&alternative(name), span);
    }
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, span),
        Err(_) => Ident::new_raw(name, span),
    }
}
