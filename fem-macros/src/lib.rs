//! The procedural macro `weak_form!`: the language inside a Rust program.
//!
//! The body has the syntax of a `.wf` file. It is compiled at compile time of the program, by the same parser and with
//! the same checks, and errors are underlined at their tokens. The crate `weakform` exports the macro and documents its
//! use.

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
