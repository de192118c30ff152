//! Diagnostics → `compile_error!`, each spanning the first to the last token that it concerns. Warnings become the use
//! of a deprecated constant, at the first of these tokens, because stable compilers accept no warnings from macros.

use crate::layout::Layout;
use fem_dsl::diagnostic::Diagnostic;
use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};

/// Returns one `compile_error!` per error. The compiler underlines the range between the spans of an invocation's path
/// and body.
pub(crate) fn errors(layout: &Layout, diagnostics: &[Diagnostic]) -> TokenStream {
    let mut all = TokenStream::new();
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
        let place = diagnostic.primary().map(|label| label.span);
        let (first, last) = layout.tokens(place);
        all.extend(compile_error(&message(layout, diagnostic), first, last));
    }
    all
}

/// Returns one item per warning: the compiler prints the note of the deprecated constant, whose name is the code.
pub(crate) fn warnings(layout: &Layout, diagnostics: &[Diagnostic]) -> TokenStream {
    let mut all = TokenStream::new();
    for diagnostic in diagnostics.iter().filter(|diagnostic| !diagnostic.is_error()) {
        let place = diagnostic.primary().map(|label| label.span);
        let (first, _) = layout.tokens(place);
        let message = message(layout, diagnostic);
        let name = Ident::new(diagnostic.code.id(), Span::call_site());
        let used = Ident::new(diagnostic.code.id(), Span::call_site().located_at(first));
        all.extend(quote! {
            const _: () = {
                #[deprecated(note = #message)]
                const #name: u8 = 0;
                let _ = #used;
            };
        });
    }
    all
}

/// Returns the message, including all parts for which the compiler has no place.
fn message(layout: &Layout, diagnostic: &Diagnostic) -> String {
    let mut text = format!("{} [{}]", diagnostic.message, diagnostic.code);
    for label in &diagnostic.labels {
        if label.text.is_empty() {
            continue;
        }
        if label.primary {
            text.push_str(&format!("\n  {}", label.text));
        } else {
            let token = layout.text().get(label.span.range()).unwrap_or_default();
            let shown: String = token.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("\n  `{shown}`: {}", label.text));
        }
    }
    for note in &diagnostic.notes {
        text.push_str(&format!("\nnote: {note}"));
    }
    for help in &diagnostic.help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    text
}

/// Returns `::core::compile_error! { "message" }`.
fn compile_error(message: &str, first: Span, last: Span) -> TokenStream {
    let mut literal = Literal::string(message);
    literal.set_span(last);
    let mut body = Group::new(Delimiter::Brace, literal.into_token_stream());
    body.set_span(last);
    quote_spanned! { first => ::core::compile_error! #body }
}
