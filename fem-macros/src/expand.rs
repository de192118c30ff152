//! `expand`: the macro's tokens → a module for each form.
//!
//! ```text
//! #![ahead_of_time(…)] + text ─compile→ Program ─aot::module→ text of the kernels ─→ tokens
//! ```

use crate::errors::{errors, warnings};
use crate::keywords::{ident, keywords};
use crate::layout::{Layout, layout};
use crate::settings::{KernelRequest, Settings, settings};
use crate::typed::{names, structs};
use fem_dsl::ast;
use fem_dsl::check::DIMENSIONS;
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{Argument, MeshSource, Quadrature};
use fem_dsl::program::{CheckedForm, Program, compile};
use fem_dsl::source::Source;
use kernels_gen::aot::{self, Setting};
use kernels_gen::dialect::rust::{Isa, print_nested};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use std::collections::BTreeSet;
use syn::Error;

/// Returns a module for each form with the warnings of its text, or one `compile_error!` for each mistake.
pub(crate) fn expand(tokens: TokenStream) -> TokenStream {
    let Settings { wanted, facade, mistakes, rest } = settings(tokens);
    let made = expand_requests(&wanted, &mistakes, rest);
    match facade {
        Some(path) => renamed(made, &path),
        None => made,
    }
}

/// Returns the tokens with another path instead of each `::weakform`.
fn renamed(tokens: TokenStream, path: &TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(sign)) if sign.as_char() == ':');
    let (mut all, mut at) = (TokenStream::new(), 0);
    while let Some(token) = tokens.get(at) {
        let named =
            matches!(tokens.get(at + 2), Some(TokenTree::Ident(name)) if name == "weakform");
        if named && is_colon(Some(token)) && is_colon(tokens.get(at + 1)) {
            all.extend(path.clone());
            at += 3;
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                let mut own = Group::new(group.delimiter(), renamed(group.stream(), path));
                own.set_span(group.span());
                all.extend([TokenTree::Group(own)]);
            }
            token => all.extend([token.clone()]),
        }
        at += 1;
    }
    all
}

fn expand_requests(wanted: &[KernelRequest], mistakes: &[Error], rest: TokenStream) -> TokenStream {
    let layout = layout(rest);
    let source = Source::new("weak_form!", layout.text());
    let (program, mut diagnostics) = compile(&source);
    let (file, _) = fem_dsl::parse::parse(&source);
    diagnostics.extend(keywords(&file));
    let right = mistakes.is_empty() && !diagnostics.iter().any(|found| found.is_error());
    let mut all = errors(&layout, &diagnostics);
    all.extend(mistakes.iter().map(Error::to_compile_error));
    if let Some(program) = program.filter(|_| right) {
        match kernels(&program, wanted) {
            Ok(kernels) => {
                let value = |form: &str| embedded(&source, form, &kernels);
                let typed = |form: &ast::Form| structs(&program, &form.name.name);
                let made = modules(&layout, program.file(), value, typed);
                let made = made.unwrap_or_else(|error| error.to_compile_error());
                all.extend(warnings(&layout, &diagnostics));
                all.extend(made);
                return all;
            }
            Err(found) => all.extend(found.to_compile_error()),
        }
    }
    // Prevents consequential errors at the uses of a form.
    let nothing = |_: &str| Ok(quote!(::core::unreachable!()));
    let made = modules(&layout, &file, nothing, names);
    all.extend(made.unwrap_or_else(|error| error.to_compile_error()));
    all
}

/// Returns `pub mod NAME { … }` for each form, with a function for the form and one for each problem that solves it.
/// `value` returns the form's kernels and the expression that creates it, and `typed` the structs of its parameters and
/// data.
fn modules(
    layout: &Layout,
    file: &ast::File,
    value: impl Fn(&str) -> Result<TokenStream, Error>,
    typed: impl Fn(&ast::Form) -> TokenStream,
) -> Result<TokenStream, Error> {
    let mut all = TokenStream::new();
    for form in file.forms.iter().filter(|form| !form.name.name.is_empty()) {
        let (value, typed) = (value(&form.name.name)?, typed(form));
        let (doc, name) = named(layout, &form.doc, &form.name);
        let solved = file.problems.iter().filter(|problem| problem.form.name == form.name.name);
        let solved = solved.filter(|problem| !problem.name.name.is_empty());
        let problems: Vec<TokenStream> = solved
            .map(|problem| {
                let (doc, name) = named(layout, &problem.doc, &problem.name);
                let text = &problem.name.name;
                quote! {
                    #[doc = #doc]
                    pub fn #name() -> Problem { super::form().known_problem(#text) }
                }
            })
            .collect();
        let problems = (!problems.is_empty()).then(|| {
            quote! {
                /// The problems that solve this form.
                pub mod problem {
                    use ::weakform::Problem;
                    #(#problems)*
                }
            }
        });
        all.extend(quote! {
            #[doc = #doc]
            pub mod #name {
                /// The form, with its kernels that were compiled ahead of time.
                // The compiler's lints do not look into what a macro wrote; some of Clippy's do.
                #[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
                pub fn form() -> ::weakform::Form { #value }
                #typed
                #problems
            }
        });
    }
    Ok(all)
}

/// Returns the documentation of an item, and its name with the user's span.
fn named<'a>(layout: &Layout, doc: &'a str, name: &'a ast::Ident) -> (&'a str, Ident) {
    let (place, _) = layout.tokens(Some(name.span));
    (if doc.is_empty() { &name.name } else { doc }, ident(&name.name, place))
}

/// The kernels of one form.
struct Kernels {
    form: String,
    modules: Vec<Module>,
}

/// The contents of a module: kernels for one instruction set and one dimension.
struct Module {
    isa: Isa,
    dim: usize,
    text: String,
}

/// Generates the kernels of all forms for all requested settings.
fn kernels(program: &Program, wanted: &[KernelRequest]) -> Result<Vec<Kernels>, Error> {
    for wanted in wanted {
        let dim = wanted.cell.dim();
        if !program.forms().iter().any(|form| form.dimensions.form(dim).is_some()) {
            let message =
                format!("no form here holds in the {dim} dimensions of a {}", wanted.cell);
            return Err(Error::new(wanted.span, message));
        }
    }
    program.forms().iter().map(|form| kernels_of(program, form, wanted)).collect()
}

fn kernels_of(
    program: &Program,
    checked: &CheckedForm,
    wanted: &[KernelRequest],
) -> Result<Kernels, Error> {
    let mut modules = Vec::new();
    for dim in DIMENSIONS {
        let wanted: Vec<&KernelRequest> = wanted.iter().filter(|w| w.cell.dim() == dim).collect();
        let Ok(form) = program.point_form(&checked.name, dim) else { continue };
        for isa in Isa::ALL.into_iter().filter(|_| !wanted.is_empty()) {
            let mut made = Vec::new();
            for wanted in &wanted {
                for setting in settings_of(program, checked, wanted) {
                    let found = aot::kernels(&form, setting, isa)
                        .map_err(|error| Error::new(wanted.span, error))?;
                    made.extend(found);
                }
            }
            modules.push(Module { isa, dim, text: print_nested(&made, isa) });
        }
    }
    Ok(Kernels { form: checked.name.clone(), modules })
}

/// Returns the settings for one item of the attribute. By default they are geometry of order 1 and 2, and the
/// quadratures of the language and of the problems of this degree.
fn settings_of<'a>(
    program: &'a Program,
    form: &'a CheckedForm,
    wanted: &'a KernelRequest,
) -> impl Iterator<Item = Setting> {
    let &KernelRequest { cell, degree, order, quadrature, .. } = wanted;
    let problems = program.problems().filter(|head| head.form == form.name);
    let defaults = Overrides::default();
    let problems = problems.filter_map(|head| {
        let problem = program.problem(head.name, cell.dim(), &defaults).ok()?;
        Some((problem, program.mesh(head.name, &defaults).ok()?.0))
    });
    let problems: Vec<_> = problems.filter(|(problem, _)| problem.degree == degree).collect();
    let orders: BTreeSet<usize> = match order {
        Some(order) => [order].into(),
        None => [1, 2]
            .into_iter()
            .chain(problems.iter().filter_map(|(_, mesh)| order_of(mesh)))
            .collect(),
    };
    let quadratures: BTreeSet<Option<Quadrature>> = match quadrature {
        Some(named) => [Some(named)].into(),
        None => [None]
            .into_iter()
            .chain(problems.iter().map(|(problem, _)| problem.quadrature))
            .collect(),
    };
    orders.into_iter().flat_map(move |order| {
        let settings = quadratures.clone().into_iter();
        settings.map(move |quadrature| Setting { cell, degree, order, quadrature })
    })
}

/// Returns the geometry's order, if the mesh generator sets one.
fn order_of(mesh: &MeshSource) -> Option<usize> {
    match mesh {
        MeshSource::Generator { arguments, .. } => match arguments.get("order") {
            Some(Argument::Number(order)) if *order >= 1.0 => Some(*order as usize),
            _ => None,
        },
        MeshSource::File(_) => None,
    }
}

/// Returns the parts of a form's function: its kernels as modules, and a static with all of it.
fn embedded(source: &Source, form: &str, kernels: &[Kernels]) -> Result<TokenStream, Error> {
    let (mut modules, mut linked) = (TokenStream::new(), TokenStream::new());
    let found = kernels.iter().filter(|kernels| kernels.form == form);
    for Module { isa, dim, text } in found.flat_map(|kernels| &kernels.modules) {
        let cfg = match isa {
            Isa::Avx512 | Isa::Avx2 => quote!(#[cfg(target_arch = "x86_64")]),
            Isa::Portable => TokenStream::new(),
        };
        let (name, variant) = (format_ident!("{isa}_{dim}d"), format_ident!("{isa:?}"));
        let inner: TokenStream = text.parse().map_err(|error| {
            let message = "weakform printed what is not Rust";
            Error::new(Span::call_site(), format!("{message}: {error}; please report this"))
        })?;
        modules.extend(quote!(#cfg mod #name { #inner }));
        linked.extend(quote! {
            #cfg
            unsafe {
                ::weakform::embedded::LinkedKernels::new(
                    ::weakform::embedded::Isa::#variant,
                    #name::KERNELS,
                )
            },
        });
    }
    let text = source.text();
    Ok(quote! {
        #modules
        static FORM: ::weakform::embedded::EmbeddedKernels =
            ::weakform::embedded::EmbeddedKernels::new(#text, #form, &[#linked]);
        FORM.form()
    })
}

#[cfg(test)]
mod tests;
