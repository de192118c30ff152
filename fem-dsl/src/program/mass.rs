//! The mass of an eigenvalue problem: `mass = inertia;` → another form of the file, with the declarations of the
//! problem's form. The default is the L2 product of the fields.
//!
//! A problem sets the parameters and the data of both. Its statements are therefore checked against its form with the
//! additional declarations of the mass.

use super::{CheckedForm, Program};
use crate::ast::{self, ExprKind, FormItem, FormItemKind, Ident, ProblemItemKind, RowKind};
use crate::check::problem::{Piece, Statement};
use crate::check::{Dimensions, check};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::differentiate::differentiate;
use crate::form::Form;
use crate::point::{PointForm, embed, point};
use crate::simplify::simplify;
use crate::source::Span;
use std::borrow::Cow;

/// The form that the statements of a problem refer to.
pub(super) struct FormWithMass<'a> {
    /// The problem's form, with the parameters and the data of its mass.
    pub(super) form: Cow<'a, CheckedForm>,
    /// The form that is its mass, and the location of its name.
    mass: Option<(&'a CheckedForm, &'a Piece, Span)>,
}

/// Returns the mass named by the statements.
fn named<'a>(statements: &[Statement<'a>]) -> Option<(&'a Piece, Span, Option<&'a str>)> {
    statements.iter().rev().find_map(|statement| match statement.kind {
        ProblemItemKind::Setting { name, value } if name.name == "mass" => {
            let expr = &statement.piece.file.exprs[*value];
            let name = match &expr.kind {
                ExprKind::Name(name) => Some(name.as_str()),
                _ => None,
            };
            Some((statement.piece, expr.span, name))
        }
        _ => None,
    })
}

/// Returns the items that declare a parameter or data of a form, including those in blocks.
fn declarations(items: &[FormItem]) -> Vec<&FormItem> {
    let mut found = Vec::new();
    for item in items {
        match &item.kind {
            FormItemKind::Aux { .. } | FormItemKind::Param { .. } => found.push(item),
            FormItemKind::Block { items, .. } => found.extend(declarations(items)),
            _ => {}
        }
    }
    found
}

fn name_of(item: &FormItem) -> &str {
    match &item.kind {
        FormItemKind::Aux { name, .. } | FormItemKind::Param { name, .. } => &name.name,
        _ => "",
    }
}

impl Program {
    /// Returns the form of a problem with the additional declarations of its mass.
    pub(super) fn joined<'a>(
        &'a self,
        form: &'a CheckedForm,
        statements: &[Statement<'a>],
    ) -> (FormWithMass<'a>, Vec<Diagnostic>) {
        let alone = FormWithMass { form: Cow::Borrowed(form), mass: None };
        let Some((piece, span, name)) = named(statements) else { return (alone, Vec::new()) };
        let found = name.and_then(|name| self.form(name));
        let Some(mass) = found else {
            let diagnostic = match name {
                Some(name) => self.no_form(name, Some(span)),
                None => Diagnostic::new(Code::BadValue, "`mass` is a form of the file")
                    .label(span, "not a form's name")
                    .help("write `mass = FORM;`, or leave it out: the L2 product is meant then"),
            };
            return (alone, vec![piece.place(diagnostic)]);
        };
        let written = |name: &str| self.piece.file.forms.iter().find(|form| form.name.name == name);
        let (Some(own), Some(other)) = (written(&form.name), written(&mass.name)) else {
            return (alone, Vec::new());
        };
        let known = declarations(&own.items);
        let is_new = |item: &&FormItem| known.iter().all(|known| name_of(known) != name_of(item));
        let more: Vec<FormItem> =
            declarations(&other.items).into_iter().filter(is_new).cloned().collect();
        let form = if more.is_empty() {
            Cow::Borrowed(form)
        } else {
            let items = own.items.iter().cloned().chain(more).collect();
            let both = ast::Form { items, ..own.clone() };
            let dimensions = Dimensions::of(&self.source, &self.piece.file, &both);
            if dimensions.forms().next().is_none() {
                let found = dimensions.diagnostics().to_vec();
                return (alone, found);
            }
            Cow::Owned(CheckedForm { dimensions, ..form.clone() })
        };
        (FormWithMass { form, mass: Some((mass, piece, span)) }, Vec::new())
    }

    /// Returns the mass of the eigenvalue problem of `form`, which is `joined` in this dimension.
    ///
    /// # Errors
    ///
    /// A form that is no mass of this one.
    pub(super) fn mass_of(
        &self,
        joined: &FormWithMass<'_>,
        form: &PointForm,
        set: &[usize],
    ) -> Result<PointForm, Vec<Diagnostic>> {
        let scalars = |form: &Form| point(&simplify(&differentiate(form)));
        let Some((mass, piece, span)) = joined.mass else {
            return Ok(scalars(&self.product(form)?));
        };
        let wrong = |message: String, label: &str, help: &str| {
            let diagnostic = Diagnostic::new(Code::BadValue, message).label(span, label);
            Err(vec![piece.place(diagnostic.help(help))])
        };
        let Some(checked) = mass.dimensions.form(form.dim) else {
            return Err(vec![piece.place(super::wrong_dimension(mass, form.dim, Some(span)))]);
        };
        let own = scalars(checked);
        let same = |a: &crate::point::Field, b: &crate::point::Field| {
            (&a.name, a.shape, a.space) == (&b.name, b.shape, b.space)
        };
        let missing = |of: &PointForm, from: &PointForm| {
            let known = |field| from.fields.iter().any(|other| same(field, other));
            of.fields.iter().find(|field| !known(field)).map(|field| field.name.clone())
        };
        if let Some(field) = missing(form, &own).or_else(|| missing(&own, form)) {
            let message = format!("`{}` and `{}` have other fields", mass.name, form.name);
            let label = format!("`{field}` is not in both, with one shape and in one space");
            return wrong(message, &label, "declare the same fields in both forms");
        }
        for param in &own.params {
            let place = form.params.iter().position(|other| other.name == param.name);
            let Some(place) = place else { continue };
            let other = &form.params[place];
            if other.shape != param.shape || (other.value != param.value && !set.contains(&place)) {
                let message =
                    format!("the parameter `{}` has two meanings in this problem", param.name);
                let label = "its shape or its default is another there";
                let help = "give it the same one in both forms, or another name in one of them";
                return wrong(message, label, help);
            }
        }
        for aux in &own.aux {
            let other = form.aux.iter().find(|other| other.name == aux.name);
            if other.is_some_and(|other| (other.shape, other.location) != (aux.shape, aux.location))
            {
                let message = format!("the data `{}` is declared otherwise there", aux.name);
                return wrong(message, "of this form", "declare it alike in both forms");
            }
        }
        if own.integrals.iter().any(|integral| !integral.linear || !integral.symmetric) {
            let message = format!("`{}` is no mass", mass.name);
            let label = "its derivative depends on the fields, or is not symmetric";
            return wrong(message, label, "a mass is linear and symmetric, as `f0[u] = rho * u`");
        }
        match embed(&own, form) {
            Some(made) => Ok(made),
            None => wrong(
                format!("`{}` cannot stand beside `{}`", mass.name, form.name),
                "reads what the problem does not give",
                "declare the same data and parameters in both forms",
            ),
        }
    }

    /// Returns ∫ u·v dx of all fields of a form.
    fn product(&self, form: &PointForm) -> Result<Form, Vec<Diagnostic>> {
        let mut file = ast::File::clone(&self.piece.file);
        let written = file.forms.iter().find(|of| of.name.name == form.name).cloned();
        let Some(written) = written else { return Err(Vec::new()) };
        let mut items: Vec<FormItem> = declarations(&written.items).into_iter().cloned().collect();
        for item in &written.items {
            if let FormItemKind::Fn { .. } = &item.kind {
                items.push(item.clone());
            }
            let FormItemKind::Field { name, .. } = &item.kind else { continue };
            let Ident { name: of, span } = name.clone();
            let value = file.exprs.push(ast::Expr { kind: ExprKind::Name(of.clone()), span });
            let (row, field) = (RowKind::F0, Ident { name: of, span });
            let kind = FormItemKind::Row { row, row_span: span, side: None, field, value };
            items.push(item.clone());
            items.push(FormItem { doc: String::new(), kind, span });
        }
        let name = Ident { name: format!("{}_product", form.name), ..written.name.clone() };
        let written = ast::Form { name, items, ..written };
        let (checked, found) = check(&self.source, &file, &written, form.dim);
        checked.ok_or(found)
    }
}
