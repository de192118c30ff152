//! `file("data.vtu", "kappa")`: data and states from a file. It is the whole value of `aux` or `initial`; the contents
//! of the file are checked during the setup of the problem.

use super::{Checker, Piece};
use crate::ast::{self, Expr, ExprId, ExprKind, Ident};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::point::{Aux, Location};
use crate::problem::{FileArray, ValueSource};
use crate::words;
use std::path::PathBuf;

/// A call that is the whole value of data, of `file` or of `solution`.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) function: &'a Ident,
    pub(super) arguments: &'a [ExprId],
    named: &'a [ast::Argument],
}

/// Returns the call of `file` in an expression.
pub(super) fn call(file: &ast::File, value: ExprId) -> Option<Call<'_>> {
    Call::of(words::FILE, file, value)
}

impl<'a> Call<'a> {
    /// Returns the call of a function in an expression.
    pub(super) fn of(word: &str, file: &'a ast::File, value: ExprId) -> Option<Self> {
        match &file.exprs[value].kind {
            ExprKind::Call { function, arguments, named } if function.name == word => {
                Some(Call { function, arguments, named })
            }
            _ => None,
        }
    }

    /// Refuses arguments with names.
    pub(super) fn without_names(self, usage: &str) -> Result<(), Box<Diagnostic>> {
        let Some(argument) = self.named.first() else { return Ok(()) };
        let message = format!("`{}` has no argument `{}`", self.function.name, argument.name.name);
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(argument.name.span, "an argument with a name");
        Err(Box::new(diagnostic.help(usage)))
    }
}

/// Checks data from a file, at nodes or on cells.
pub(super) fn of_aux(
    checker: &mut Checker<'_>,
    piece: &Piece,
    call: Call<'_>,
    aux: &Aux,
) -> Option<ValueSource> {
    let array = array(checker, piece, call)?;
    if aux.location != Location::Points {
        return Some(ValueSource::File(array));
    }
    let name = &aux.name;
    let message = format!("`{name}` lies at the quadrature points, for which no file has values");
    let diagnostic = Diagnostic::new(Code::MisplacedFile, message)
        .label(call.function.span, "files have values at nodes or on cells")
        .help(format!(
            "declare it as `aux {name}: … on cells;` or `on nodes`, or give it a formula"
        ));
    checker.report(piece, diagnostic);
    None
}

/// Returns the array of a call.
pub(super) fn array(checker: &mut Checker<'_>, piece: &Piece, call: Call<'_>) -> Option<FileArray> {
    match checked(piece, call) {
        Ok(found) => found,
        Err(diagnostic) => {
            checker.report(piece, *diagnostic);
            None
        }
    }
}

/// Returns `None` for broken text, which is already reported.
fn checked(piece: &Piece, call: Call<'_>) -> Result<Option<FileArray>, Box<Diagnostic>> {
    let usage = "write `file(\"data.vtu\", \"name of the array\")` or `file(\"data.npy\")`";
    call.without_names(usage)?;
    let (path, array) = match *call.arguments {
        [path] => (path, None),
        [path, array] => (path, Some(array)),
        _ => {
            let message =
                format!("`file` takes 1 or 2 arguments, but this has {}", call.arguments.len());
            let diagnostic = Diagnostic::new(Code::WrongArgumentCount, message)
                .label(call.function.span, "in this call");
            return Err(Box::new(diagnostic.help(usage)));
        }
    };
    let text = |id: ExprId, what: &str| match &piece.file.exprs[id] {
        Expr { kind: ExprKind::Text(text), .. } if !text.is_empty() => Ok(Some(text)),
        Expr { kind: ExprKind::Error, .. } => Ok(None),
        Expr { span, .. } => {
            let diagnostic =
                Diagnostic::new(Code::BadArgument, format!("{what} is a text in double quotes"))
                    .label(*span, "no such text");
            Err(Box::new(diagnostic.help(usage)))
        }
    };
    let name = array.map(|array| text(array, "the name of an array")).transpose()?;
    let Some(path) = text(path, "the path of a file")? else { return Ok(None) };
    if let Some(array) = array
        && path.to_ascii_lowercase().ends_with(".npy")
    {
        let diagnostic =
            Diagnostic::new(Code::BadArgument, "a `.npy` file holds one array, which has no name")
                .label(piece.file.exprs[array].span, "the name of an array")
                .help("leave the name out");
        return Err(Box::new(diagnostic));
    }
    let array = name.map(|name| name.cloned());
    if array == Some(None) {
        return Ok(None);
    }
    let from_text = piece.is_of_file();
    Ok(Some(FileArray { path: PathBuf::from(path), array: array.flatten(), from_text }))
}
