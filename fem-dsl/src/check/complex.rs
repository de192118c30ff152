//! `expand`: a file with complex numbers → the same file in real numbers.
//!
//! A complex field E is two fields of one space, `E_re` and `E_im`; data and parameters likewise. Values are pairs of
//! expressions, of which one that is zero is left out. Nothing behind this knows of complex numbers.
//!
//! A weak form r(u; v) of complex fields is antilinear in v. Its real part for all real and imaginary parts of v is the
//! weak form of the parts: with r = Σ f conj(v) these are f₀\[E_re\] = Re f and f₀\[E_im\] = Im f, so that a linear system
//! (A + iB)(x + iy) = a + ib becomes
//!
//! ```text
//! ⎡A −B⎤ ⎡x⎤   ⎡a⎤
//! ⎣B  A⎦ ⎣y⎦ = ⎣b⎦
//! ```

mod expand;
mod items;
mod parts;

pub(crate) use expand::ComplexNames;

use crate::ast;
use crate::diagnostic::Diagnostic;
use expand::Expander;

/// Returns a file in real numbers, with what is complex in each of its forms. A file without complex declarations is
/// returned as it is.
pub(crate) fn expand(file: &ast::File) -> (ast::File, Vec<ComplexNames>, Vec<Diagnostic>) {
    let mut expander = Expander::new(file);
    let mut forms = Vec::new();
    let mut all = Vec::new();
    let mut problems = file.problems.clone();
    for form in &file.forms {
        expander.read(form);
        if !expander.names.any() {
            forms.push(form.clone());
            all.push(ComplexNames::default());
            continue;
        }
        let items = expander.form_items(&form.items);
        forms.push(ast::Form { items, ..form.clone() });
        for problem in problems.iter_mut().filter(|problem| problem.form.name == form.name.name) {
            problem.items = expander.problem_items(&problem.items);
        }
        all.push(expander.names.clone());
    }
    let Expander { exprs, diagnostics, .. } = expander;
    (ast::File { forms, problems, exprs }, all, diagnostics)
}

/// Returns statements about a problem of a form with complex names in real numbers; `None` if they stay as they are.
pub(crate) fn expand_statements(
    file: &ast::File,
    names: &ComplexNames,
) -> Option<(ast::File, Vec<Diagnostic>)> {
    if !names.any() {
        return None;
    }
    let mut expander = Expander::new(file);
    expander.names = names.clone();
    let mut problems = file.problems.clone();
    for problem in &mut problems {
        problem.items = expander.problem_items(&problem.items);
    }
    let Expander { exprs, diagnostics, .. } = expander;
    Some((ast::File { forms: file.forms.clone(), problems, exprs }, diagnostics))
}
