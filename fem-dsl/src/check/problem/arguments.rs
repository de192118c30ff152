//! Named arguments of generators and solvers: their names, kinds and ranges.

use super::Piece;
use crate::arena::IndexVec;
use crate::ast::{self, Expr, ExprId, ExprKind, Ident};
use crate::check::value;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::Form;
use crate::point::Shape;
use crate::problem::Argument;
pub(super) use crate::problem::keyword::{ArgumentKind, ArgumentTable, KeywordSettings};
use crate::suggestions;
use crate::terms::Field;
use std::collections::BTreeMap;

/// The label of an unknown keyword.
const NO_WORD: &str = "not one of these words";

/// Returns a typical value, for arguments whose range alone is not informative.
fn example(argument: &str) -> Option<&'static str> {
    Some(match argument {
        "rtol" => "1e-8",
        "fraction" => "0.5",
        "until" => "1e-3",
        "max_dofs" => "1e6",
        "coarsen" => "0.03",
        _ => return None,
    })
}

/// Reads one argument of a table in `dim` dimensions, without a form.
pub(super) fn read(
    piece: &Piece,
    argument: &ast::Argument,
    kind: ArgumentKind,
    dim: usize,
) -> Result<Argument, Vec<Diagnostic>> {
    read_of(&value::no_form(dim), &[], piece, argument, kind)
}

/// Reads one argument of a table, which may use the parameters of a form, in the form's dimension.
pub(super) fn read_of(
    form: &Form,
    params: &[Vec<f64>],
    piece: &Piece,
    argument: &ast::Argument,
    kind: ArgumentKind,
) -> Result<Argument, Vec<Diagnostic>> {
    let dim = form.dim;
    let expr = &piece.file.exprs[argument.value];
    if expr.kind == ExprKind::Error {
        return Err(Vec::new());
    }
    let wrong = |found: String| {
        let expected = kind.describe(dim);
        let name = &argument.name.name;
        let message = format!("`{name}` should be {expected}");
        let diagnostic = Diagnostic::new(Code::BadValue, message).label(expr.span, found);
        diagnostic
            .help_if(example(name).map(|value| format!("write `{name}: {value}`, or leave it out")))
    };
    if let ArgumentKind::Word(words) = kind {
        return match &expr.kind {
            ExprKind::Name(word) if words.contains(&word.as_str()) => {
                Ok(Argument::Word(word.clone()))
            }
            ExprKind::Name(word) => {
                let known = suggestions::argument(&argument.name.name, word);
                let diagnostic = wrong(NO_WORD.to_owned());
                let words = words.iter().copied();
                Err(vec![piece.place(diagnostic.suggest_or(word, words, known))])
            }
            _ => Err(vec![piece.place(wrong(NO_WORD.to_owned()))]),
        };
    }
    if let ArgumentKind::Call(words) = kind {
        return keyword(&form.fields, piece, argument, words);
    }
    if let ArgumentKind::Name = kind {
        return match &expr.kind {
            ExprKind::Name(name) => Ok(Argument::Word(name.clone())),
            _ => Err(vec![piece.place(wrong("not a name".to_owned()))]),
        };
    }
    let number = value::number(&piece.file, argument.value, form, params);
    let (shape, values) = number
        .map_err(|found| found.into_iter().map(|found| piece.place(found)).collect::<Vec<_>>())?;
    let (shown, value) = match shape {
        Shape::Scalar => (format!("this is {}", values[0]), Argument::Number(values[0])),
        Shape::Vector(_) => (format!("this is {values:?}"), Argument::Numbers(values)),
        Shape::Matrix(..) => return Err(vec![piece.place(wrong("this is a matrix".to_owned()))]),
    };
    if kind.takes(&value, dim) {
        return Ok(value);
    }
    let known = match &value {
        Argument::Number(number) => suggestions::argument(&argument.name.name, &number.to_string()),
        _ => None,
    };
    Err(vec![piece.place(wrong(shown).help_if(known))])
}

/// Reads one of several keywords, with its settings; `fields` are those of the form.
pub(super) fn keyword(
    fields: &[Field],
    piece: &Piece,
    argument: &ast::Argument,
    words: &'static [(&'static str, KeywordSettings)],
) -> Result<Argument, Vec<Diagnostic>> {
    let expr = &piece.file.exprs[argument.value];
    let wrong = || {
        let (name, expected) = (&argument.name.name, ArgumentKind::Call(words).describe(0));
        Diagnostic::new(Code::BadValue, format!("`{name}` should be {expected}"))
            .label(expr.span, NO_WORD)
    };
    let (owner, unnamed, named) = match &expr.kind {
        ExprKind::Error => return Err(Vec::new()),
        ExprKind::Name(name) => (Ident { name: name.clone(), span: expr.span }, &[][..], &[][..]),
        ExprKind::Call { function, arguments, named } => {
            (function.clone(), &arguments[..], &named[..])
        }
        _ => return Err(vec![piece.place(wrong())]),
    };
    let name = owner.name.as_str();
    let Some((_, settings)) = words.iter().find(|(known, _)| *known == name) else {
        let known = suggestions::argument(&argument.name.name, name);
        let words = words.iter().map(|(word, _)| *word);
        return Err(vec![piece.place(wrong().suggest_or(name, words, known))]);
    };
    if let Some(&first) = unnamed.first() {
        let message = format!("the settings of `{name}` have names");
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(piece.file.exprs[first].span, "this has none");
        return Err(vec![piece.place(diagnostic)]);
    }
    let of_fields: Vec<(&str, ArgumentKind)>;
    let table = match *settings {
        KeywordSettings::These(table) => table,
        KeywordSettings::EachField(kind) => {
            of_fields = fields.iter().map(|field| (field.name.as_str(), *kind)).collect();
            &of_fields
        }
    };
    let (known, mut wrong) = known(piece, &owner, named, table);
    let mut values = BTreeMap::new();
    for (argument, kind) in known {
        let value = match kind {
            ArgumentKind::Call(words) => keyword(fields, piece, argument, words),
            kind => read(piece, argument, kind, 3),
        };
        match value {
            Ok(value) => drop(values.insert(argument.name.name.clone(), value)),
            Err(found) => wrong.extend(found),
        }
    }
    match (wrong.is_empty(), values.is_empty()) {
        (true, true) => Ok(Argument::Word(owner.name)),
        (true, false) => Ok(Argument::Call { name: owner.name, arguments: values }),
        (false, _) => Err(wrong),
    }
}

/// Finds each argument in the table; unknown and repeated ones are reported.
pub(super) fn known<'a>(
    piece: &Piece,
    owner: &Ident,
    arguments: &'a [ast::Argument],
    table: &[(&str, ArgumentKind)],
) -> (Vec<(&'a ast::Argument, ArgumentKind)>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut diagnostics = Vec::new();
    let mut seen = BTreeMap::new();
    for argument in arguments {
        let name = argument.name.name.as_str();
        let Some(&(_, kind)) = table.iter().find(|(known, _)| *known == name) else {
            let list: Vec<String> = table.iter().map(|(name, _)| format!("`{name}`")).collect();
            let takes = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
            let message = format!("`{}` has no argument `{name}`", owner.name);
            let diagnostic = Diagnostic::new(Code::BadArgument, message)
                .label(argument.name.span, "no such argument")
                .note(format!("it takes {takes}"))
                .suggest_or(
                    name,
                    table.iter().map(|(name, _)| *name),
                    suggestions::argument_name(&owner.name, name),
                );
            diagnostics.push(piece.place(diagnostic));
            continue;
        };
        if let Some(first) = seen.insert(name, argument.name.span) {
            let diagnostic =
                Diagnostic::new(Code::BadArgument, format!("the argument `{name}` is given twice"))
                    .label(argument.name.span, "given again")
                    .secondary(first, "given first");
            diagnostics.push(piece.place(diagnostic));
            continue;
        }
        found.push((argument, kind));
    }
    (found, diagnostics)
}

/// Returns the keyword of an argument, if it is one.
pub(super) fn word(exprs: &IndexVec<ExprId, Expr>, value: ExprId) -> Option<&str> {
    match &exprs[value].kind {
        ExprKind::Name(word) => Some(word),
        _ => None,
    }
}
