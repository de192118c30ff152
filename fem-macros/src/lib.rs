//! The procedural macro `weak_form!`: the language inside a Rust program.
//!
//! The body is written as in a `.wf` file. It is compiled while the program is compiled, by the
//! same parser and the same checks, and what is wrong is underlined at its tokens. The crate
//! `weakform` exports it and says how it is used.

mod errors;
mod expand;
mod keywords;
mod layout;
mod settings;
mod typed;

/// Compiles forms and problems; each form becomes a module.
#[proc_macro]
pub fn weak_form(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::expand(input.into()).into()
}
