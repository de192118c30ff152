//! The procedural macro `weak_form!`: the language inside a Rust program.
//!
//! The body is written as in a `.wf` file. It is compiled while the program is compiled, by the
//! same parser and the same checks, and what is wrong is underlined at its tokens.
//!
//! ```
//! let source: &str = fem_macros::weak_form! {
//!     /// The Laplacian.
//!     form poisson {
//!         field u: scalar;
//!         f1[u] = grad(u);
//!     }
//! };
//! assert!(source.contains("f1[u] = grad(u);"));
//! ```

mod errors;
mod expand;
mod layout;

/// Compiles forms and problems; its value is their text, known to be right.
#[proc_macro]
pub fn weak_form(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand::expand(input.into()).into()
}
