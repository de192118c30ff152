//! Reports on a form's solution that are not part of a problem: `integral(u, on: "x0")`, as text → [`Reports`] with
//! this one.

use super::{Program, wrong_dimension};
use crate::check::complex::expand;
use crate::check::problem::{CheckedReports, Statement, content, report_piece};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::differentiate::differentiate;
use crate::form::Form;
use crate::measures::norms;
use crate::point::{PointForm, Shape, point, with_numbers_given};
use crate::problem::{FunctionalKind, ReportFormula, Reports};
use crate::simplify::simplify;
use std::ops::Range;

impl Program {
    /// Returns a report of a form in `dim` dimensions, for the text after the `=` of a `report`.
    ///
    /// # Errors
    ///
    /// An unknown form, one that is not valid in this dimension, or errors of the expression.
    pub fn report(&self, form: &str, dim: usize, value: &str) -> Result<Reports, Vec<Diagnostic>> {
        let named = self.form(form).ok_or_else(|| vec![self.no_form(form, None)])?;
        let checked = named.dimensions.form(dim);
        let checked = checked.ok_or_else(|| vec![wrong_dimension(named, dim, None)])?;
        let text = (checked.source.as_str(), self.source.folder());
        let piece = report_piece(text, (form, &new_name(checked)), value)?;
        let (file, _, found) = expand(&piece.file);
        if !found.is_empty() {
            return Err(found.into_iter().map(|found| piece.place(found)).collect());
        }
        let piece = piece.with(file);
        let statements: Vec<_> = Statement::of_piece(&piece).collect();
        if let [first, _, ..] = statements[..] {
            let diagnostic = Diagnostic::new(Code::ComplexValue, "this value is complex")
                .label(first.span, "two numbers")
                .help("ask for its parts: `re(…)` and `im(…)`");
            return Err(vec![piece.place(diagnostic)]);
        }
        let (content, found) = content(&statements, checked, None);
        if !found.is_empty() {
            return Err(found);
        }
        Ok(reports(content.reports, checked.fields.len()))
    }

    /// Returns a pointwise expression of a form in `dim` dimensions: a form with an additional field whose f0 it is, and its
    /// shape. The form is `None` for 0.
    ///
    /// # Errors
    ///
    /// As for [`Program::report`].
    pub fn pointwise(
        &self,
        form: &str,
        dim: usize,
        value: &str,
    ) -> Result<(Option<PointForm>, Shape), Vec<Diagnostic>> {
        // A line has values of any shape.
        let [from, to] = ["0", "1"].map(|x| vec![x; dim].join(", "));
        let line = format!("line({value}, from: [{from}], to: [{to}], points: 2)");
        let Reports { items, pointwise, .. } = self.report(form, dim, &line)?;
        let shape = items.iter().find_map(|report| match report.value {
            ReportFormula::Line { shape, .. } => Some(shape),
            ReportFormula::Value { .. } => None,
        });
        Ok((pointwise, shape.unwrap_or(Shape::Scalar)))
    }
}

/// Converts the reports of a form with `own` fields, whose forms become scalars.
pub(super) fn reports(checked: CheckedReports, own: usize) -> Reports {
    let scalars = |form: Form| point(&simplify(&differentiate(&form)));
    let CheckedReports { items, integrals, pointwise, outputs, derivation } = checked;
    let measures = items.iter().flat_map(|report| match &report.value {
        ReportFormula::Value { of, .. } => of.as_slice(),
        ReportFormula::Line { .. } => &[],
    });
    let squared: Vec<Range<usize>> = measures
        .filter_map(|measure| match measure.kind {
            FunctionalKind::Norm { first, components } => Some(first..first + components),
            _ => None,
        })
        .collect();
    let integrals = integrals.map(|form| with_numbers_given(&norms(scalars(form), own, &squared)));
    let [pointwise, derivation] =
        [pointwise, derivation].map(|form| form.map(|form| with_numbers_given(&scalars(form))));
    Reports { items, integrals, pointwise, outputs, derivation }
}

/// Returns a name that does not occur in the form's text.
fn new_name(form: &Form) -> String {
    let mut name = "value".to_owned();
    while form.source.contains(&name) {
        name.push('_');
    }
    name
}
