//! `check`: [`ast::Form`] → [`Form`], for one space dimension.
//!
//! Names are resolved (unique in the form, no shadowing, any order, no cycles), functions are expanded, and every
//! expression gets its shape. All three notations are converted to f0 and f1. For a weak form they are its derivatives
//! by the test functions and their gradients; for an energy, its derivatives by the fields and their gradients. One run
//! reports all errors of a form; anything that depends on a broken part is silently ignored.
//!
//! A form is checked once for each dimension ([`check_dimensions`]) and is valid for those that pass. [`value`] checks
//! the expressions of problem blocks.

pub(crate) mod complex;
pub(crate) mod darcy;
mod declare;
mod definitions;
mod expression;
mod functions;
mod linear;
mod names;
pub(crate) mod outputs;
pub mod problem;
mod regions;
mod shapes;
mod side_words;
mod sides;
pub(crate) mod strong;
pub(crate) mod supports;
pub(crate) mod uncoupled;
pub(crate) mod unused;
pub mod value;

pub(crate) use names::subtree;

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{Exprs, Form, Type};
use crate::source::{Source, Span};
use std::collections::BTreeMap;

/// Largest number of reported errors of a form.
const MOST_ERRORS: usize = 100;

/// Checks `form` of `file` for the space dimension `dim`. Returns a form if there are no errors.
pub fn check(
    source: &Source,
    file: &ast::File,
    form: &ast::Form,
    dim: usize,
) -> (Option<Form>, Vec<Diagnostic>) {
    let (form, diagnostics, _) = check_with_types(source, file, form, dim);
    (form, diagnostics)
}

/// The type of each parameter and `let`, by the location of its name.
type DeclaredTypes = Vec<(Span, Type)>;

/// Checks the same, and returns the types of parameters and `let`s, also of a form with errors.
fn check_with_types(
    source: &Source,
    file: &ast::File,
    form: &ast::Form,
    dim: usize,
) -> (Option<Form>, Vec<Diagnostic>, DeclaredTypes) {
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
    checker.cellwise = names::blocks(form).any(|(block, ..)| block.region.is_interior());
    definitions::params(&mut checker);
    definitions::lets(&mut checker);
    regions::integrals(&mut checker, form);
    let types = checker.types();
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
        return (None, diagnostics, types);
    }
    crate::form::expect_form(&form, crate::verify::Phase::Checked);
    (Some(form), diagnostics, types)
}

/// The space dimensions. Messages and structs of `weak_form!` are of the first in which a form is valid.
pub const DIMENSIONS: [usize; 3] = [2, 3, 1];

/// The results of checking a form in each dimension.
#[derive(Clone, Debug)]
pub struct Dimensions {
    /// Of two, three and one dimensions.
    outcomes: [(Option<Form>, Vec<Diagnostic>); 3],
    types: [DeclaredTypes; 3],
}

/// Checks a form for one, two and three space dimensions.
pub fn check_dimensions(source: &Source, file: &ast::File, form: &ast::Form) -> Dimensions {
    let checked = DIMENSIONS.map(|dim| check_with_types(source, file, form, dim));
    let types = checked.each_ref().map(|(_, _, types)| types.clone());
    Dimensions { outcomes: checked.map(|(form, found, _)| (form, found)), types }
}

impl Dimensions {
    fn outcome(&self, dim: usize) -> Option<&(Option<Form>, Vec<Diagnostic>)> {
        self.outcomes.get(DIMENSIONS.iter().position(|&own| own == dim)?)
    }

    /// Returns the form in `dim` dimensions, if it is valid there.
    pub fn form(&self, dim: usize) -> Option<&Form> {
        self.outcome(dim)?.0.as_ref()
    }

    /// Returns the form in the dimensions in which it is valid, one dimension last.
    pub fn forms(&self) -> impl Iterator<Item = &Form> {
        self.outcomes.iter().filter_map(|(form, _)| form.as_ref())
    }

    /// Returns the type of the parameter or `let` whose name is at `name`, with each dimension in which it has one. Of a
    /// complex one they are those of its real and its imaginary part.
    pub fn types_at(&self, name: Span) -> impl Iterator<Item = (usize, Type)> {
        let of = DIMENSIONS.iter().zip(&self.types);
        of.flat_map(move |(dim, types)| {
            types.iter().filter(move |(span, _)| *span == name).map(|(_, found)| (*dim, *found))
        })
    }

    /// Returns the reason why the form is invalid in `dim` dimensions: the first error. If the form is valid in the
    /// other dimension, the primary label is the token that determines it.
    pub fn refusal(&self, dim: usize) -> Option<&Diagnostic> {
        self.outcome(dim)?.1.iter().find(|diagnostic| diagnostic.is_error())
    }

    /// Returns the diagnostics to report: only warnings if a dimension passes, otherwise the errors of the plane or of
    /// space, of which has fewer.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        let [two, three, line] = &self.outcomes;
        let errors = |outcome: &(Option<Form>, Vec<Diagnostic>)| {
            outcome.1.iter().filter(|diagnostic| diagnostic.is_error()).count()
        };
        let plural = if errors(three) < errors(two) { three } else { two };
        if errors(line) == 0 && errors(plural) > 0 { &line.1 } else { &plural.1 }
    }
}
