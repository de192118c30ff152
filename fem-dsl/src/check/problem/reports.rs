//! `report NAME = EXPR;`, arithmetic on functionals of a solution, and `output NAME = EXPR;`, expressions at points →
//! [`Reports`](crate::problem::Reports).
//!
//! A functional is a call: `integral(EXPR)`, `integral(EXPR, on: "tag")`, `minimum(EXPR)`, `maximum(EXPR)`, `l2(EXPR)`,
//! `at(EXPR, [1, 0])`, `u([1, 0])`, `reaction(u, on: "tag")` and, not within arithmetic, `line(EXPR, from: […], to: […], points: n)`. Its
//! argument may use all names of the form, including its `let`s and functions, and n on facets. The expression around
//! functionals is arithmetic on numbers, in which a functional acts as an additional parameter; a report without a
//! functional is a reference value.
//!
//! Integrands become the f0 of additional fields of `L2(0)`, one component per number, so that the kernels of a form
//! integrate them cell by cell. Pointwise expressions become such a form, too.

use super::bounds::{field_of, has_bound};
use super::integrands::Integrands;
use super::report_regions::{ReportRegion, boundary_tags, has_value_between, living, region};
use super::report_values::{expressions_at_places, has_values_everywhere, same_files, tensor};
use super::{Checker, MeshChoice, Piece, Statement, states};
use crate::ast::{self, ExprId, ExprKind, Ident, ProblemItemKind};
use crate::check::definitions::lets;
use crate::check::expression::Checker as Expressions;
use crate::check::names::{self, Block, ExprContext, subtree};
use crate::check::value;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{self, Form, Shape, Terminal};
use crate::point::{self, Param, Region};
use crate::problem::{
    DerivedQuantity, Expression, Functional, FunctionalKind, OutputSampling, Report, ReportFormula,
};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of points of a line plot.
const MOST_POINTS: f64 = 1e6;

/// A report in messages.
const REPORT: &str = "a report";

/// The names of the functionals.
pub(super) const MEASURES: [&str; 8] =
    ["integral", "minimum", "maximum", "l2", "at", "line", "reaction", "multiplier"];

/// The reports of a problem, before their forms are turned into scalars.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckedReports {
    pub(crate) items: Vec<Report>,
    pub(crate) integrals: Option<Form>,
    pub(crate) pointwise: Option<Form>,
    pub(crate) outputs: Vec<DerivedQuantity>,
    pub(crate) derivation: Option<Form>,
}

/// The call of a functional as written.
struct Call<'a> {
    id: ExprId,
    function: &'a Ident,
    arguments: &'a [ExprId],
    named: &'a [ast::Argument],
}

/// A call before the check of its expression.
enum RequestedCall {
    Integral {
        root: ExprId,
        on: Option<ReportRegion>,
    },
    Norm {
        root: ExprId,
    },
    Minimum {
        root: ExprId,
    },
    Maximum {
        root: ExprId,
    },
    Value {
        field: usize,
        at: Vec<f64>,
    },
    At {
        root: ExprId,
        at: Vec<f64>,
    },
    /// `at_points` are those of the quadrature, where states and data on points have values.
    Output {
        root: ExprId,
        at_points: bool,
    },
    Line {
        root: ExprId,
        from: Vec<f64>,
        to: Vec<f64>,
        points: usize,
    },
    Reaction {
        field: usize,
        on: Option<Vec<String>>,
        of_bounds: bool,
    },
}

impl RequestedCall {
    /// Returns its pointwise expression, and the region.
    fn root(&self) -> Option<(ExprId, Option<&ReportRegion>)> {
        match self {
            Self::Integral { root, on } => Some((*root, on.as_ref())),
            Self::Norm { root }
            | Self::Minimum { root }
            | Self::Maximum { root }
            | Self::At { root, .. }
            | Self::Output { root, .. }
            | Self::Line { root, .. } => Some((*root, None)),
            Self::Value { .. } | Self::Reaction { .. } => None,
        }
    }
}

/// An output as stated: its name, its value and the points of its values.
type StatedOutput<'a> = (&'a Ident, ExprId, OutputSampling);

/// Checks all reports and outputs of a problem.
pub(super) fn check(
    checker: &mut Checker<'_>,
    statements: &[Statement<'_>],
    mesh: Option<&MeshChoice>,
) {
    let stated = statements.iter().filter_map(|statement| match statement.kind {
        ProblemItemKind::Report { name, value } => Some((statement.piece, name, *value)),
        _ => None,
    });
    let stated: Vec<(&Piece, &Ident, ExprId)> = stated.collect();
    let outputs = statements.iter().filter_map(|statement| match statement.kind {
        ProblemItemKind::Output { name, value, sampling } => {
            Some((statement.piece, (name, *value, *sampling)))
        }
        _ => None,
    });
    let outputs: Vec<(&Piece, StatedOutput<'_>)> = outputs.collect();
    let of_report = stated.first().map(|&(piece, ..)| piece);
    let piece = of_report.or(outputs.first().map(|&(piece, _)| piece));
    let states = states::written(statements, &checker.form.name)
        .filter(|(_, form)| !states::updates(form).is_empty());
    let found = match piece {
        None => states,
        Some(piece) => {
            let mut forms = piece.file.forms.iter();
            forms.find(|form| form.name.name == checker.form.name).map(|form| (piece, form))
        }
    };
    let Some((piece, written)) = found else { return };
    let mut asked = BTreeMap::new();
    let before = checker.diagnostics.len();
    for &(_, name, value) in &stated {
        new_name(checker, piece, name, REPORT);
        expressions_at_places(checker, piece, written, value);
        for call in calls(&piece.file, value, checker.form) {
            if let Some(what) = ask(checker, piece, &call, call.id == value, mesh) {
                asked.insert(call.id, what);
            }
        }
    }
    for &(_, output) in &outputs {
        if let Some(what) = ask_output(checker, piece, written, output) {
            asked.insert(output.1, what);
        }
    }
    for (_, root) in states::updates(written) {
        asked.insert(root, RequestedCall::Output { root, at_points: true });
    }
    let lines: Vec<ExprId> = asked
        .iter()
        .filter(|(_, what)| matches!(what, RequestedCall::Line { .. }))
        .map(|(&id, _)| id)
        .collect();
    same_files(checker, &stated, &lines);
    if checker.diagnostics.len() > before {
        return;
    }
    let Some(mut measured) = measure(checker, piece, written, &asked) else { return };
    let mut items = Vec::new();
    for &(_, name, value) in &stated {
        let report = match measured.lines.remove(&value) {
            Some(line) => Some(line),
            None => arithmetic(checker, piece, value, &measured.measures),
        };
        items.extend(report.map(|value| Report { name: name.name.clone(), value }));
    }
    let Measures { integrals, pointwise, derivation, mut derived, .. } = measured;
    states::store(checker, (piece, written), &derived);
    let of_output = |&(_, (name, value, sampling)): &(&Piece, StatedOutput<'_>)| {
        let (shape, first) = derived.remove(&value)?;
        Some(DerivedQuantity { name: name.name.clone(), shape, first, sampling })
    };
    let outputs = outputs.iter().filter_map(of_output).collect();
    checker.content.reports = CheckedReports { items, integrals, pointwise, outputs, derivation };
}

/// Checks the name of an output and that its value is an expression at a point.
fn ask_output(
    checker: &mut Checker<'_>,
    piece: &Piece,
    written: &ast::Form,
    (name, root, sampling): StatedOutput<'_>,
) -> Option<RequestedCall> {
    let is_itself =
        matches!(&piece.file.exprs[root].kind, ExprKind::Name(own) if *own == name.name);
    let of_form = written.items.iter().any(|item| match &item.kind {
        ast::FormItemKind::Let { name: own, .. } | ast::FormItemKind::Fn { name: own, .. } => {
            own.name == name.name
        }
        _ => false,
    });
    let before = checker.diagnostics.len();
    if of_form && !is_itself {
        let message = format!("`{}` is an expression of the form already", name.name);
        let diagnostic = Diagnostic::new(Code::DuplicateName, message)
            .label(name.span, "this name is taken")
            .help(format!(
                "write `output {};` for that expression, or choose another name",
                name.name
            ));
        checker.report(piece, diagnostic);
    } else {
        new_name(checker, piece, name, "an output");
    }
    if let Some(inner) = calls(&piece.file, root, checker.form).first() {
        let message = format!(
            "`{}` is one number, and an output has a value at each point",
            inner.function.name
        );
        let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
            .label(inner.function.span, "known only after the solve")
            .help(format!("write `report {} = …;`", name.name));
        checker.report(piece, diagnostic);
    }
    (checker.diagnostics.len() == before)
        .then_some(RequestedCall::Output { root, at_points: sampling == OutputSampling::Cells })
}

/// Checks that a report's name does not occur elsewhere in the same table, or an output's in the same file.
fn new_name(checker: &mut Checker<'_>, piece: &Piece, name: &Ident, role: &str) {
    let form = checker.form;
    let fields = form.fields.iter().map(|field| (&field.name, "a field"));
    let params = form.own_params().iter().map(|param| (&param.name, "a parameter"));
    let aux = form.own_aux().iter().map(|aux| (&aux.name, "auxiliary data"));
    let known = fields.chain(params).chain(aux).find(|(known, _)| **known == name.name);
    let message = match known {
        Some((known, what)) => {
            format!("`{known}` is {what} of the form, and cannot be {role} too")
        }
        None if role == REPORT && has_column(checker, &name.name) => {
            format!("the table of reports has a column `{}` already", name.name)
        }
        None => return,
    };
    let diagnostic = Diagnostic::new(Code::DuplicateName, message)
        .label(name.span, "this name is taken")
        .help("choose another name");
    checker.report(piece, diagnostic);
}

/// Returns whether every table of reports has a column of this name.
fn has_column(checker: &Checker<'_>, name: &str) -> bool {
    const ADAPTED: [&str; 7] =
        ["step", "cells", "dofs", "estimate", "error_l2", "error_h1", "seconds"];
    let content = &checker.content;
    content.adapt.is_some() && ADAPTED.contains(&name)
        || content.timed && ["t", "error_l2", "error_h1"].contains(&name)
        || content.eigen.is_some() && name.starts_with("eigenvalue_")
}

/// Returns the calls of functionals in an expression.
fn calls<'a>(file: &'a ast::File, root: ExprId, form: &Form) -> Vec<Call<'a>> {
    let call = |id: ExprId| match &file.exprs[id].kind {
        ExprKind::Call { function, arguments, named } => {
            let name = function.name.as_str();
            let is_field = form.fields.iter().any(|field| field.name == name);
            (MEASURES.contains(&name) || is_field).then_some(Call {
                id,
                function,
                arguments,
                named,
            })
        }
        _ => None,
    };
    subtree(file, root).into_iter().filter_map(call).collect()
}

/// Reads the arguments of a call.
fn ask(
    checker: &mut Checker<'_>,
    piece: &Piece,
    call: &Call<'_>,
    alone: bool,
    mesh: Option<&MeshChoice>,
) -> Option<RequestedCall> {
    let (form, name) = (checker.form, call.function.name.as_str());
    let field = form.fields.iter().position(|field| field.name == name);
    let takes: &[&str] = match (field, name) {
        (None, "integral" | "reaction" | "multiplier") => &["on"],
        (None, "line") => &["from", "to", "points"],
        _ => &[],
    };
    let count = if field.is_none() && name == "at" { 2 } else { 1 };
    arguments(checker, piece, call, (count, takes))?;
    let root = call.arguments[0];
    if let Some(inner) = calls(&piece.file, root, form).first() {
        let message = format!("`{}` stands inside of `{name}`", inner.function.name);
        let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
            .label(inner.function.span, "this is one number, known only after the solve")
            .secondary(call.function.span, "this goes over points of the mesh")
            .help("report both, and calculate with the two numbers");
        checker.report(piece, diagnostic);
        return None;
    }
    if let Some(field) = field {
        return Some(RequestedCall::Value { field, at: place(checker, piece, root)? });
    }
    if count == 2 {
        let at = place(checker, piece, call.arguments[1])?;
        return Some(RequestedCall::At { root, at });
    }
    let argument = |wanted: &str| call.named.iter().find(|given| given.name.name == wanted);
    let on = match argument("on") {
        Some(given) => Some(region(checker, piece, given, mesh)?),
        None => None,
    };
    Some(match name {
        "integral" => RequestedCall::Integral { root, on },
        "l2" => RequestedCall::Norm { root },
        "minimum" => RequestedCall::Minimum { root },
        "maximum" => RequestedCall::Maximum { root },
        "reaction" | "multiplier" => {
            let field = field_of(checker, piece, (name, root))?;
            let on = match (argument("on"), on) {
                (Some(given), Some(on)) => Some(boundary_tags(checker, (piece, given), on)?),
                _ => None,
            };
            let of_bounds = name == "multiplier";
            if of_bounds && !has_bound(checker, piece, (field, root)) {
                return None;
            }
            RequestedCall::Reaction { field, on, of_bounds }
        }
        _ => {
            if !alone {
                let message = "a line is a table of values, with which there is no arithmetic";
                let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
                    .label(piece.file.exprs[call.id].span, "part of something else")
                    .help("let it stand alone: `report cut = line(u, from: […], to: […]);`");
                checker.report(piece, diagnostic);
                return None;
            }
            let end = |checker: &mut Checker<'_>, name: &str| match argument(name) {
                Some(given) => place(checker, piece, given.value),
                None => {
                    missing(checker, piece, call, name);
                    None
                }
            };
            let (from, to) = (end(checker, "from"), end(checker, "to"));
            let points = match argument("points") {
                Some(given) => checker.whole(piece, given.value, "points", 2.0, MOST_POINTS)?,
                None => 101,
            };
            RequestedCall::Line { root, from: from?, to: to?, points }
        }
    })
}

fn missing(checker: &mut Checker<'_>, piece: &Piece, call: &Call<'_>, name: &str) {
    let message = format!("`{}` lacks the argument `{name}`", call.function.name);
    let help = "write `line(u, from: [0, 0], to: [1, 0], points: 101)`";
    let diagnostic =
        Diagnostic::new(Code::BadArgument, message).label(call.function.span, "here").help(help);
    checker.report(piece, diagnostic);
}

/// Reads some unnamed arguments, and named ones from this list.
fn arguments(
    checker: &mut Checker<'_>,
    piece: &Piece,
    call: &Call<'_>,
    (count, takes): (usize, &[&str]),
) -> Option<()> {
    let name = &call.function.name;
    let before = checker.diagnostics.len();
    if call.arguments.len() != count {
        let (given, plural) = (call.arguments.len(), if count == 1 { "" } else { "s" });
        let message =
            format!("`{name}` takes {count} argument{plural} without a name, but this has {given}");
        let diagnostic = Diagnostic::new(Code::WrongArgumentCount, message)
            .label(call.function.span, "in this call");
        checker.report(piece, diagnostic);
    }
    let mut seen = BTreeSet::new();
    for argument in call.named {
        let given = argument.name.name.as_str();
        let message = match (takes.contains(&given), seen.insert(given)) {
            (true, true) => continue,
            (true, false) => format!("the argument `{given}` is given twice"),
            (false, _) => format!("`{name}` has no argument `{given}`"),
        };
        let list: Vec<String> = takes.iter().map(|name| format!("`{name}`")).collect();
        let note = match list.is_empty() {
            true => "it takes none with a name".to_owned(),
            false => format!("it takes {}", list.join(", ")),
        };
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(argument.name.span, "not here")
            .note(note)
            .suggest(given, takes.iter().copied());
        checker.report(piece, diagnostic);
    }
    (checker.diagnostics.len() == before).then_some(())
}

/// Reads a point: as many numbers as there are dimensions.
fn place(checker: &mut Checker<'_>, piece: &Piece, value: ExprId) -> Option<Vec<f64>> {
    let (shape, values) = checker.number(piece, value)?;
    let dim = checker.form.dim;
    if shape == point::Shape::Vector(dim) {
        return Some(values);
    }
    let message = format!("a point has {dim} coordinates, but this is {}", Shape::from(shape));
    let example = vec!["0"; dim].join(", ");
    let diagnostic = Diagnostic::new(Code::WrongShape, message)
        .label(piece.file.exprs[value].span, "not a point")
        .help(format!("write `[{example}]`"));
    checker.report(piece, diagnostic);
    None
}

/// The functionals, by their calls.
#[derive(Default)]
struct Measures {
    measures: BTreeMap<ExprId, Functional>,
    lines: BTreeMap<ExprId, ReportFormula>,
    integrals: Option<Form>,
    pointwise: Option<Form>,
    /// The shape and the first component of each output, by its value.
    derived: BTreeMap<ExprId, (point::Shape, usize)>,
    derivation: Option<Form>,
}

/// The expressions of all calls, by their form.
#[derive(Default)]
struct CallExpressions {
    integrals: Integrands,
    pointwise: Integrands,
    outputs: Integrands,
}

/// Checks the expressions inside the functionals, and creates the forms that contain them.
fn measure(
    checker: &mut Checker<'_>,
    piece: &Piece,
    written: &ast::Form,
    asked: &BTreeMap<ExprId, RequestedCall>,
) -> Option<Measures> {
    let form = checker.form;
    let place_of = |asked: &RequestedCall| {
        let region = asked.root().and_then(|(_, on)| on).map(|on| on.block);
        // None of the form's own blocks, so that their names are unknown.
        ExprContext::region(region.map(|region| Block { number: usize::MAX, region }))
    };
    let (mut names, _) = names::resolve(&piece.file, written);
    let mut found = Vec::new();
    for asked in asked.values() {
        let Some((root, _)) = asked.root() else { continue };
        let more;
        (names, more) = names::resolve_expression(&piece.file, root, names, place_of(asked));
        found.extend(more);
    }
    let mut own = value::no_form(form.dim);
    own.fields.clone_from(&form.fields);
    own.aux.clone_from(&form.aux);
    own.params.clone_from(&form.params);
    own.rates.clone_from(&form.rates);
    own.name.clone_from(&form.name);
    own.defaults = form.params.iter().map(|param| default(&mut own, param)).collect();
    let mut expressions = Expressions::new(&piece.file, &names, own, found);
    expressions.cellwise = names::blocks(written).any(|(block, ..)| block.region.is_interior());
    lets(&mut expressions);
    let mut sums = CallExpressions::default();
    let mut measured = Measures::default();
    for (&id, asked) in asked {
        let root = match asked.root() {
            None => None,
            Some((root, on)) => {
                let value = expressions.expression(root, place_of(asked));
                let somewhere = !matches!(
                    asked,
                    RequestedCall::Integral { .. }
                        | RequestedCall::Norm { .. }
                        | RequestedCall::Output { at_points: true, .. }
                );
                let value = value.and_then(|value| tensor(&mut expressions, root, value));
                let value = value.filter(|&value| {
                    on.is_none_or(|on| has_value_between(&mut expressions, (root, value), on))
                });
                let Some(value) = value.filter(|&value| {
                    !somewhere || has_values_everywhere(&mut expressions, root, value)
                }) else {
                    continue;
                };
                Some((root, value, on))
            }
        };
        let measure = taken(&mut expressions, &mut sums, asked, root);
        match measure {
            Some(CallResult::Functional(measure)) => drop(measured.measures.insert(id, measure)),
            Some(CallResult::Line(line)) => drop(measured.lines.insert(id, line)),
            Some(CallResult::Output(shape, first)) => {
                measured.derived.insert(id, (shape, first));
            }
            None => {}
        }
    }
    let (own, found) = expressions.finish();
    if !found.is_empty() {
        checker.diagnostics.extend(found.into_iter().map(|found| piece.place(found)));
        return None;
    }
    measured.integrals = sums.integrals.into_form(own.clone(), "integrals");
    measured.pointwise = sums.pointwise.into_form(own.clone(), "points");
    measured.derivation = sums.outputs.into_form(own, "outputs");
    Some(measured)
}

/// Returns the default of a parameter as constants.
fn default(form: &mut Form, param: &Param) -> form::ExprId {
    let values = param.value.iter().map(|&value| form.exprs.constant(value)).collect();
    let built = form.exprs.literal(param.shape.into(), values);
    built.unwrap_or_else(|_| form.exprs.constant(0.0))
}

/// The result of a call.
enum CallResult {
    Functional(Functional),
    Line(ReportFormula),
    Output(point::Shape, usize),
}

/// Adds the expression of a call to its form.
fn taken(
    expressions: &mut Expressions<'_>,
    CallExpressions { integrals, pointwise, outputs }: &mut CallExpressions,
    asked: &RequestedCall,
    root: Option<(ExprId, form::ExprId, Option<&ReportRegion>)>,
) -> Option<CallResult> {
    let shape_of = |expressions: &Expressions<'_>, value: form::ExprId| {
        let shape = expressions.form.exprs.shape(value);
        shape.to_point().unwrap_or(point::Shape::Scalar)
    };
    let measure = |shape: point::Shape, kind: FunctionalKind| {
        CallResult::Functional(Functional { shape, kind })
    };
    Some(match (asked, root) {
        (RequestedCall::Integral { .. }, Some((root, value, on))) => {
            let shape = shape_of(expressions, value);
            let region = match on {
                Some(on) => on.region.clone(),
                None => living(expressions, root, value)?,
            };
            let first = integrals.add(&mut expressions.form, region, value);
            measure(shape, FunctionalKind::Integral { first })
        }
        (RequestedCall::Norm { .. }, Some((root, value, _))) => {
            let components = shape_of(expressions, value).components();
            let region = living(expressions, root, value)?;
            let first = integrals.add(&mut expressions.form, region, value);
            measure(point::Shape::Scalar, FunctionalKind::Norm { first, components })
        }
        (RequestedCall::Minimum { .. } | RequestedCall::Maximum { .. }, Some((root, value, _))) => {
            let shape = expressions.form.exprs.shape(value);
            if !shape.is_scalar() {
                let span = expressions.span(root);
                let message = format!("only numbers have an order, but this is {shape}");
                expressions.report(
                    Diagnostic::new(Code::WrongShape, message)
                        .label(span, format!("this is {shape}"))
                        .help("take a component, or `norm(…)`"),
                );
                return None;
            }
            let first = pointwise.add(&mut expressions.form, Region::Cells, value);
            let least = matches!(asked, RequestedCall::Minimum { .. });
            let kind = if least {
                FunctionalKind::Minimum { first }
            } else {
                FunctionalKind::Maximum { first }
            };
            measure(point::Shape::Scalar, kind)
        }
        (RequestedCall::Line { from, to, points, .. }, Some((_, value, _))) => {
            let shape = shape_of(expressions, value);
            let first = pointwise.add(&mut expressions.form, Region::Cells, value);
            let ends = [from, to].map(|end| padded(end));
            CallResult::Line(ReportFormula::Line { shape, first, ends, points: *points })
        }
        (RequestedCall::At { at, .. }, Some((_, value, _))) => {
            let shape = shape_of(expressions, value);
            let first = pointwise.add(&mut expressions.form, Region::Cells, value);
            measure(shape, FunctionalKind::Value { first, at: padded(at) })
        }
        (RequestedCall::Output { .. }, Some((_, value, _))) => {
            let shape = shape_of(expressions, value);
            let first = outputs.add(&mut expressions.form, Region::Cells, value);
            CallResult::Output(shape, first)
        }
        (RequestedCall::Value { field, at }, _) => {
            let shape = expressions.form.fields[*field].shape;
            let terminal = Terminal::Field(*field, None);
            let value = expressions.form.exprs.terminal(terminal, shape.into());
            let first = pointwise.add(&mut expressions.form, Region::Cells, value);
            measure(shape, FunctionalKind::Value { first, at: padded(at) })
        }
        (RequestedCall::Reaction { field, on, of_bounds }, _) => {
            let (field, tags) = (*field, on.clone());
            let shape = expressions.form.fields[field].shape;
            measure(
                shape,
                match of_bounds {
                    true => FunctionalKind::Multiplier { field, tags },
                    false => FunctionalKind::Reaction { field, tags },
                },
            )
        }
        _ => return None,
    })
}

fn padded(point: &[f64]) -> [f64; 3] {
    let mut x = [0.0; 3];
    x.iter_mut().zip(point).for_each(|(x, value)| *x = *value);
    x
}

/// Returns the diagnostic for a name that depends on the point, outside of a functional.
fn around(found: Diagnostic) -> Diagnostic {
    let Some(label) = found.primary().filter(|_| found.code == Code::NotAvailableHere) else {
        return found;
    };
    let Some(name) = found.message.split('`').nth(1) else { return found };
    if found.message.contains("a string") {
        return found;
    }
    Diagnostic::new(Code::NotAvailableHere, format!("`{name}` differs from point to point"))
        .label(label.span, "this stands inside of no measure")
        .help(format!("write `integral({name})`, `maximum({name})` or another measure of it"))
}

/// Checks the arithmetic around the functionals.
fn arithmetic(
    checker: &mut Checker<'_>,
    piece: &Piece,
    root: ExprId,
    measures: &BTreeMap<ExprId, Functional>,
) -> Option<ReportFormula> {
    // Each functional is an additional parameter, whose name cannot occur in text.
    let mut file = ast::File { exprs: piece.file.exprs.clone(), ..ast::File::default() };
    let mut form = value::no_form(checker.form.dim);
    form.name.clone_from(&checker.form.name);
    form.aux.clone_from(&checker.form.aux);
    form.params.clone_from(&checker.form.params);
    for field in &checker.form.fields {
        // The numbers are parameters once they are known.
        if field.space.is_number() {
            let (name, value) = (field.name.clone(), vec![0.0; field.shape.components()]);
            form.params.push(Param { name, shape: field.shape, value });
        } else {
            form.fields.push(field.clone());
        }
    }
    let mut of = Vec::new();
    for (&id, measure) in measures.range(..=root) {
        if !subtree(&piece.file, root).contains(&id) {
            continue;
        }
        let name = format!("measure {}", of.len());
        file.exprs[id].kind = ExprKind::Name(name.clone());
        let value = vec![0.0; measure.shape.components()];
        form.params.push(Param { name, shape: measure.shape, value });
        of.push(measure.clone());
    }
    let found = value::of_numbers(&file, root, &form);
    let value: Expression = match found {
        Ok(value) => value,
        Err(found) => {
            let found = found.into_iter().map(|found| piece.place(around(found)));
            checker.diagnostics.extend(found);
            return None;
        }
    };
    Some(ReportFormula::Value { value, of })
}
