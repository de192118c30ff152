//! `check`: [`ast::Form`] → [`Form`], for one space dimension.
//!
//! Names are resolved (unique in the form, no shadowing, any order, no cycles), functions are expanded, and every
//! expression gets its shape. All three notations are converted to f0 and f1. For a weak form they are its derivatives
//! by the test functions and their gradients; for an energy, its derivatives by the fields and their gradients. One run
//! reports all errors of a form; anything that depends on a broken part is silently ignored.
//!
//! A form is checked once for each dimension that is asked for ([`check_dimensions`]) and is valid for those that pass.
//! [`value`] checks the expressions of problem blocks.

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
use crate::diagnostic::{Diagnostic, relocate};
use crate::form::{Exprs, Form, Type};
use crate::source::{Shift, Source, Span};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Largest number of reported errors of a form.
const MOST_ERRORS: usize = 100;

/// Checks `form` of `file` for the space dimension `dim`. Returns a form if there are no errors.
pub fn check(
    source: &Source,
    file: &ast::File,
    form: &ast::Form,
    dim: usize,
) -> (Option<Form>, Vec<Diagnostic>) {
    let checked = check_with_types(source.slice(form.span), file, form, dim);
    (checked.form, checked.diagnostics)
}

/// The type of each parameter and `let`, by the location of its name.
type DeclaredTypes = Vec<(Span, Type)>;

/// Checks the same, and returns the types of parameters and `let`s, also of a form with errors.
fn check_with_types(text: &str, file: &ast::File, form: &ast::Form, dim: usize) -> Outcome {
    let (names, mut diagnostics) = names::resolve(file, form);
    let mut checked = Form {
        name: form.name.name.clone(),
        doc: form.doc.clone(),
        source: text.to_owned(),
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
        return Outcome { form: None, diagnostics, types };
    }
    crate::form::expect_form(&form, crate::verify::Phase::Checked);
    Outcome { form: Some(form), diagnostics, types }
}

/// The space dimensions. Messages and structs of `weak_form!` are of the first in which a form is valid.
pub const DIMENSIONS: [usize; 3] = [2, 3, 1];

/// The result of checking a form in one dimension.
#[derive(Clone, Debug)]
struct Outcome {
    form: Option<Form>,
    diagnostics: Vec<Diagnostic>,
    types: DeclaredTypes,
}

impl Outcome {
    /// Returns the same of a form at another location; `None` if it refers to another text.
    fn moved(mut self, shift: Shift) -> Option<Self> {
        if !relocate(&mut self.diagnostics, |span| shift.of(span)) {
            return None;
        }
        for (span, _) in &mut self.types {
            *span = shift.of(*span)?;
        }
        if let Some(form) = &mut self.form {
            form.exprs.move_origins(|span| shift.of(span))?;
        }
        Some(self)
    }
}

/// The input of the check of a form.
#[derive(Debug)]
struct Input {
    /// Its text.
    text: String,
    file: Arc<ast::File>,
    form: ast::Form,
}

/// The results of checking a form in each dimension. A dimension is checked when its result is first needed.
#[derive(Clone, Debug)]
pub struct Dimensions {
    input: Arc<Input>,
    /// Of two, three and one dimensions.
    outcomes: [OnceLock<Outcome>; 3],
}

/// Checks a form for one, two and three space dimensions.
pub fn check_dimensions(source: &Source, file: &ast::File, form: &ast::Form) -> Dimensions {
    Dimensions::of(source, &Arc::new(file.clone()), form)
}

impl Dimensions {
    /// Prepares the check of a form of `file`.
    pub(crate) fn of(source: &Source, file: &Arc<ast::File>, form: &ast::Form) -> Self {
        let text = source.slice(form.span).to_owned();
        let input = Arc::new(Input { text, file: file.clone(), form: form.clone() });
        Self { input, outcomes: Default::default() }
    }

    /// Returns the results for the same form at another location, in `file`.
    pub(crate) fn moved(self, shift: Shift, file: &Arc<ast::File>, form: &ast::Form) -> Self {
        let text = self.input.text.clone();
        let input = Arc::new(Input { text, file: file.clone(), form: form.clone() });
        let moved = |outcome: OnceLock<Outcome>| {
            let outcome = outcome.into_inner().and_then(|outcome| outcome.moved(shift));
            outcome.map_or_else(OnceLock::new, OnceLock::from)
        };
        Self { input, outcomes: self.outcomes.map(moved) }
    }

    fn outcome(&self, dim: usize) -> Option<&Outcome> {
        let outcome = self.outcomes.get(DIMENSIONS.iter().position(|&own| own == dim)?)?;
        let Input { text, file, form } = &*self.input;
        Some(outcome.get_or_init(|| check_with_types(text, file, form, dim)))
    }

    /// Returns the results in each dimension.
    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        DIMENSIONS.into_iter().filter_map(|dim| self.outcome(dim))
    }

    /// Returns the form in `dim` dimensions, if it is valid there.
    pub fn form(&self, dim: usize) -> Option<&Form> {
        self.outcome(dim)?.form.as_ref()
    }

    /// Returns the form in the dimensions in which it is valid, one dimension last.
    pub fn forms(&self) -> impl Iterator<Item = &Form> {
        self.outcomes().filter_map(|outcome| outcome.form.as_ref())
    }

    /// Returns the type of the parameter or `let` whose name is at `name`, with each dimension in which it has one. Of a
    /// complex one they are those of its real and its imaginary part.
    pub fn types_at(&self, name: Span) -> impl Iterator<Item = (usize, Type)> {
        DIMENSIONS.into_iter().zip(self.outcomes()).flat_map(move |(dim, outcome)| {
            let own = outcome.types.iter().filter(move |(span, _)| *span == name);
            own.map(move |(_, found)| (dim, *found))
        })
    }

    /// Returns the reason why the form is invalid in `dim` dimensions: the first error. If the form is valid in the
    /// other dimension, the primary label is the token that determines it.
    pub fn refusal(&self, dim: usize) -> Option<&Diagnostic> {
        self.outcome(dim)?.diagnostics.iter().find(|diagnostic| diagnostic.is_error())
    }

    /// Returns the diagnostics to report: only warnings if a dimension passes, otherwise the errors of the plane or of
    /// space, of which has fewer.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        let of = |dim: usize| self.outcome(dim).map_or(&[][..], |outcome| &outcome.diagnostics);
        let errors = |dim: usize| of(dim).iter().filter(|found| found.is_error()).count();
        let plane = errors(2);
        // The other dimensions only matter for a form that is invalid in the plane.
        if plane == 0 {
            return of(2);
        }
        let (plural, count) = match errors(3) {
            space if space < plane => (3, space),
            _ => (2, plane),
        };
        if count > 0 && errors(1) == 0 { of(1) } else { of(plural) }
    }
}
