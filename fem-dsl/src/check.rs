//! `check`: [`ast::Form`] → [`Form`], for one space dimension.
//!
//! Names are resolved (unique in the form, no shadowing, any order, no cycles), functions are
//! expanded, every expression gets its shape, and all three ways of writing end as f0 and f1:
//! those of a weak form are its derivatives by the tests and their gradients, those of an energy
//! its derivatives by the fields and theirs. All errors of a form come out of one run; what rests
//! on something broken is passed over in silence.
//!
//! A form is checked once for each dimension ([`check_dimensions`]) and is good for those that
//! pass. [`value`] checks the expressions of problem blocks.

pub(crate) mod darcy;
mod declare;
mod definitions;
mod expression;
mod functions;
mod linear;
mod names;
pub mod problem;
mod regions;
mod shapes;
pub(crate) mod uncoupled;
pub(crate) mod unused;
pub mod value;

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{Exprs, Form};
use crate::source::Source;
use std::collections::BTreeMap;

/// After so many errors of one form the others are not shown.
const MOST_ERRORS: usize = 100;

/// Checks `form` of `file` for the space dimension `dim`. There is a form where there is no error.
pub fn check(
    source: &Source,
    file: &ast::File,
    form: &ast::Form,
    dim: usize,
) -> (Option<Form>, Vec<Diagnostic>) {
    let (names, mut diagnostics) = names::resolve(file, form);
    let mut checked = Form {
        name: form.name.name.clone(),
        doc: form.doc.clone(),
        source: source.slice(form.span).to_owned(),
        dim,
        fields: Vec::new(),
        aux: Vec::new(),
        params: Vec::new(),
        rates: Vec::new(),
        defaults: Vec::new(),
        exprs: Exprs::new(),
        names: BTreeMap::new(),
        integrals: Vec::new(),
    };
    declare::fields_and_aux(&mut checked, &names, &mut diagnostics);
    let mut checker = expression::Checker::new(file, &names, checked, diagnostics);
    definitions::params(&mut checker);
    definitions::lets(&mut checker);
    regions::integrals(&mut checker, form);
    let (mut form, mut diagnostics) = checker.finish();
    form.declare_rates();
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary().map(|label| label.span));
    let failed = diagnostics.iter().any(Diagnostic::is_error);
    if diagnostics.len() > MOST_ERRORS {
        diagnostics.truncate(MOST_ERRORS);
        let message = format!("more than {MOST_ERRORS} errors; the others are not shown");
        diagnostics.push(Diagnostic::new(Code::TooManyErrors, message));
    }
    if failed {
        return (None, diagnostics);
    }
    crate::form::expect_form(&form, crate::verify::Phase::Checked);
    (Some(form), diagnostics)
}

/// A form in the dimensions for which it holds.
#[derive(Clone, Debug)]
pub struct Dimensions {
    outcomes: [(Option<Form>, Vec<Diagnostic>); 2],
}

/// Checks a form for two and for three space dimensions.
pub fn check_dimensions(source: &Source, file: &ast::File, form: &ast::Form) -> Dimensions {
    Dimensions { outcomes: [2, 3].map(|dim| check(source, file, form, dim)) }
}

impl Dimensions {
    fn outcome(&self, dim: usize) -> Option<&(Option<Form>, Vec<Diagnostic>)> {
        self.outcomes.get(dim.checked_sub(2)?)
    }

    /// The form in `dim` dimensions, where it holds.
    pub fn form(&self, dim: usize) -> Option<&Form> {
        self.outcome(dim)?.0.as_ref()
    }

    /// The form in the dimensions for which it holds.
    pub fn forms(&self) -> impl Iterator<Item = &Form> {
        self.outcomes.iter().filter_map(|(form, _)| form.as_ref())
    }

    /// Why the form does not hold in `dim` dimensions: the first error, whose primary label is
    /// the token that fixes the other dimension where the form holds there.
    pub fn refusal(&self, dim: usize) -> Option<&Diagnostic> {
        self.outcome(dim)?.1.iter().find(|diagnostic| diagnostic.is_error())
    }

    /// What is to be shown: nothing but warnings where one dimension passes, otherwise the errors
    /// of the dimension that has fewer.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        let [two, three] = &self.outcomes;
        let errors = |outcome: &(Option<Form>, Vec<Diagnostic>)| {
            outcome.1.iter().filter(|diagnostic| diagnostic.is_error()).count()
        };
        if errors(three) < errors(two) { &three.1 } else { &two.1 }
    }
}
