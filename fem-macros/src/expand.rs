//! `expand`: the macro's tokens → an expression.

use crate::errors::errors;
use crate::layout::layout;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use proc_macro2::{Literal, TokenStream, TokenTree};

/// The text of the forms as a string, or one `compile_error!` for each diagnostic.
pub(crate) fn expand(tokens: TokenStream) -> TokenStream {
    let layout = layout(tokens);
    let source = Source::new("weak_form!", layout.text());
    let (program, diagnostics) = compile(&source);
    let fails = program.is_none() || diagnostics.iter().any(|found| found.is_error());
    if fails {
        return errors(&layout, &diagnostics);
    }
    TokenTree::from(Literal::string(source.text())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        expand(text.parse().expect("the text should be tokens of Rust")).to_string()
    }

    #[test]
    fn a_right_form_becomes_its_text() {
        let text = expanded("form a { field u: scalar; f0[u] = -u^2; }");
        assert!(text.starts_with('"') && text.contains("field u: scalar;"), "{text}");
    }

    #[test]
    fn each_error_becomes_a_compile_error() {
        let text = expanded("form a { field u: scalar; f0[u] = alpha + beta * ; f1[u] = gama; }");
        assert_eq!(text.matches("compile_error").count(), 2, "{text}");
        let text = expanded("form a { field u: scalar; f0[u] = alpha + beta; }");
        assert_eq!(text.matches("compile_error").count(), 2, "{text}");
        assert!(text.contains("unknown name `alpha` [E0201]"), "{text}");
    }

    #[test]
    fn what_comes_later_is_an_error() {
        let text = expanded("form a { field u: scalar in L2(k); f0[u] = u; }");
        assert!(text.contains("[E0909]"), "{text}");
    }
}
