//! `expand`: the macro's tokens → a module for each form.
//!
//! ```text
//! #![ahead_of_time(…)] + text ─compile→ Program ─ahead::module→ text of the kernels ─→ tokens
//! ```

use crate::errors::{errors, mistake};
use crate::layout::{Layout, layout};
use crate::settings::{Mistake, Settings, Wanted, settings};
use crate::typed::structs;
use fem_dsl::ast;
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{Argument, MeshSource, Problem};
use fem_dsl::program::{CheckedForm, Program, compile};
use fem_dsl::source::Source;
use kernels_gen::ahead::{self, Setting};
use kernels_gen::dialect::rust::{Isa, print_nested};
use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use std::collections::BTreeSet;

/// A module for each form, or one `compile_error!` for each diagnostic.
pub(crate) fn expand(tokens: TokenStream) -> TokenStream {
    let Settings { wanted, mistakes, rest } = settings(tokens);
    let layout = layout(rest);
    let source = Source::new("weak_form!", layout.text());
    let (program, diagnostics) = compile(&source);
    let right = mistakes.is_empty() && !diagnostics.iter().any(|found| found.is_error());
    let mut all = errors(&layout, &diagnostics);
    all.extend(mistakes.iter().map(mistake));
    if let Some(program) = program.filter(|_| right) {
        match kernels(&program, &wanted) {
            Ok(kernels) => {
                let value = |form: &str| embedded(&source, form, &kernels);
                let typed = |form: &str| structs(&program, form);
                return modules(&layout, program.file(), value, typed);
            }
            Err(found) => all.extend(mistake(&found)),
        }
    }
    // So that what names a form is not followed by an error of its own.
    let (file, _) = fem_dsl::parse::parse(&source);
    let nothing = |_: &str| "::core::unreachable!()".to_owned();
    all.extend(modules(&layout, &file, nothing, |_| String::new()));
    all
}

/// Tokens of text that this crate or `kernels-gen` has written.
fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| {
        let message = format!("weakform printed what is not Rust: {error}; please report this");
        mistake(&Mistake::new(message, Span::call_site()))
    })
}

fn braced(text: TokenStream) -> TokenTree {
    Group::new(Delimiter::Brace, text).into()
}

/// The compiler's lints do not look into what a macro wrote; some of Clippy's do.
const LINTS: &str = "#[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]";

/// `pub mod NAME { … }` for each form, with a function for the form and one for each problem that
/// solves it; `value` gives the form's kernels, then what makes a form of it, and `typed` the structs of what can be set.
fn modules(
    layout: &Layout,
    file: &ast::File,
    value: impl Fn(&str) -> String,
    typed: impl Fn(&str) -> String,
) -> TokenStream {
    let mut all = TokenStream::new();
    for form in file.forms.iter().filter(|form| !form.name.name.is_empty()) {
        let mut inner = tokens(&format!(
            "/// The form, with its kernels that were compiled ahead of time.\n\
             {LINTS}\npub fn form() -> ::weakform::Form {{ {} }}",
            value(&form.name.name)
        ));
        inner.extend(tokens(&typed(&form.name.name)));
        let mut problems = tokens("use ::weakform::Problem;");
        let solved = file.problems.iter().filter(|problem| problem.form.name == form.name.name);
        let mut any = false;
        for problem in solved.filter(|problem| !problem.name.name.is_empty()) {
            any = true;
            let text = Literal::string(&problem.name.name);
            let body = tokens(&format!("super::form().known_problem({text})"));
            problems.extend(item(layout, &problem.doc, "pub fn", &problem.name, body));
        }
        if any {
            inner.extend(tokens("/// The problems that solve this form.\npub mod problem"));
            inner.extend([braced(problems)]);
        }
        all.extend(item(layout, &form.doc, "pub mod", &form.name, inner));
    }
    all
}

/// `/// doc` `kind NAME { body }`, the name where the user wrote it.
fn item(
    layout: &Layout,
    doc: &str,
    kind: &str,
    name: &ast::Ident,
    body: TokenStream,
) -> TokenStream {
    let (place, _) = layout.tokens(Some(name.span));
    let text = if doc.is_empty() { &name.name } else { doc };
    let mut item = tokens(&format!("#[doc = {}] {kind}", Literal::string(text)));
    // Words of Rust are none of the language.
    item.extend([TokenTree::from(Ident::new(&name.name, place))]);
    if kind == "pub fn" {
        item.extend(tokens("() -> Problem"));
    }
    item.extend([braced(body)]);
    item
}

/// The kernels of one form.
struct Kernels {
    form: String,
    modules: Vec<Module>,
}

/// The inside of a module: kernels for one instruction set and one dimension.
struct Module {
    isa: Isa,
    dim: usize,
    text: String,
}

/// The kernels of all forms for all that is wanted.
fn kernels(program: &Program, wanted: &[Wanted]) -> Result<Vec<Kernels>, Mistake> {
    for wanted in wanted {
        let dim = wanted.cell.dim();
        if !program.forms().iter().any(|form| form.dimensions.form(dim).is_some()) {
            let message =
                format!("no form here holds in the {dim} dimensions of a {}", wanted.cell);
            return Err(Mistake::new(message, wanted.span));
        }
    }
    program.forms().iter().map(|form| kernels_of(program, form, wanted)).collect()
}

fn kernels_of(
    program: &Program,
    checked: &CheckedForm,
    wanted: &[Wanted],
) -> Result<Kernels, Mistake> {
    let mut modules = Vec::new();
    for dim in [2, 3] {
        let wanted: Vec<&Wanted> = wanted.iter().filter(|w| w.cell.dim() == dim).collect();
        let Ok(form) = program.point_form(&checked.name, dim) else { continue };
        for isa in Isa::ALL.into_iter().filter(|_| !wanted.is_empty()) {
            let mut made = Vec::new();
            for wanted in &wanted {
                for setting in settings_of(program, checked, wanted) {
                    let found = ahead::kernels(&form, setting, isa)
                        .map_err(|error| Mistake::new(error.to_string(), wanted.span))?;
                    made.extend(found);
                }
            }
            modules.push(Module { isa, dim, text: print_nested(&made, isa) });
        }
    }
    Ok(Kernels { form: checked.name.clone(), modules })
}

/// The settings that one item of the attribute stands for: unless it names them, geometry of order
/// 1 and 2, the language's quadrature, and what problems of this degree say otherwise.
fn settings_of<'a>(
    program: &'a Program,
    form: &'a CheckedForm,
    wanted: &'a Wanted,
) -> impl Iterator<Item = Setting> {
    let &Wanted { cell, degree, order, quadrature, .. } = wanted;
    let problems = program.problems().filter(|head| head.form == form.name);
    let problems = problems
        .filter_map(|head| program.problem(head.name, cell.dim(), &Overrides::default()).ok());
    let problems: Vec<Problem> = problems.filter(|problem| problem.degree == degree).collect();
    let orders: BTreeSet<usize> = match order {
        Some(order) => [order].into(),
        None => [1, 2].into_iter().chain(problems.iter().filter_map(order_of)).collect(),
    };
    let quadratures: BTreeSet<Option<usize>> = match quadrature {
        Some(degree) => [Some(degree)].into(),
        None => [None].into_iter().chain(problems.iter().map(|p| p.quadrature)).collect(),
    };
    orders.into_iter().flat_map(move |order| {
        let settings = quadratures.clone().into_iter();
        settings.map(move |quadrature| Setting { cell, degree, order, quadrature })
    })
}

/// The geometry's order, where the mesh is generated with one.
fn order_of(problem: &Problem) -> Option<usize> {
    match &problem.mesh {
        MeshSource::Generator { arguments, .. } => match arguments.get("order") {
            Some(Argument::Number(order)) if *order >= 1.0 => Some(*order as usize),
            _ => None,
        },
        MeshSource::File(_) => None,
    }
}

/// What a form's function consists of: its kernels as modules, and a static with all of it.
fn embedded(source: &Source, form: &str, kernels: &[Kernels]) -> String {
    let mut modules = String::new();
    let mut linked = String::new();
    let found = kernels.iter().filter(|kernels| kernels.form == form);
    for Module { isa, dim, text } in found.flat_map(|kernels| &kernels.modules) {
        let (cfg, variant) = match isa {
            Isa::Avx512 => ("#[cfg(target_arch = \"x86_64\")]\n", "Avx512"),
            Isa::Avx2 => ("#[cfg(target_arch = \"x86_64\")]\n", "Avx2"),
            Isa::Portable => ("", "Portable"),
        };
        let name = format!("{isa}_{dim}d");
        modules.push_str(&format!("{cfg}mod {name} {{\n{text}}}\n"));
        linked.push_str(&format!(
            "{cfg}unsafe {{ ::weakform::embedded::Linked::new(\
             ::weakform::embedded::Isa::{variant}, {name}::KERNELS) }},\n"
        ));
    }
    format!(
        "{modules}\n\
         static FORM: ::weakform::embedded::Embedded = ::weakform::embedded::Embedded::new(\
         {}, {}, &[\n{linked}]);\nFORM.form()",
        Literal::string(source.text()),
        Literal::string(form),
    )
}

#[cfg(test)]
mod tests;
