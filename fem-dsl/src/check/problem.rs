//! `problem` blocks: [`ast::Problem`] → [`Problem`](crate::problem::Problem), for one space dimension.
//!
//! A problem's statements come from its block and from the command line. The latter are parsed by the same grammar and
//! replace statements with the same subject. Each statement is checked against the form in the mesh's dimension; one
//! run reports all errors.

mod adapt;
mod arguments;
mod bounds;
mod conditions;
mod effect;
mod eigen;
mod file;
mod integrands;
mod kink;
mod manufactured;
mod mesh;
mod overrides;
mod periodic;
mod report_regions;
mod report_values;
mod reports;
mod solution;
mod solver;
mod source;
mod stages;
mod states;
mod time;
mod vocabulary;

pub(crate) use conditions::unknown_tag;
pub(crate) use eigen::EigenRequest;
pub(crate) use manufactured::Solutions;
pub(crate) use mesh::{MeshChoice, mesh};
pub use overrides::Overrides;
pub(crate) use overrides::{Piece, field_piece, report_piece, solver_piece};
pub(crate) use reports::CheckedReports;
pub(crate) use solution::is_stage;
pub(crate) use stages::StagesRequest;
pub use vocabulary::{ArgumentUsage, KeywordUsage, generator_tags, keywords, measures};

use super::value;
use crate::ast::{self, ExprId, Ident, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{self, Form};
use crate::point::{Location, Shape, Space};
use crate::problem::{
    AdaptiveRefinement, Bound, COLLOCATED, Data, Dirichlet, Expression, MOST_REFINED,
    PeriodicSides, PointSource, PointState, Quadrature, SolverSettings, Stepping, ValueSource,
};
use crate::source::Span;
use std::collections::BTreeMap;

/// The largest degree of any cell.
const MAX_DEGREE: f64 = 12.0;
/// Up to this degree the message names the largest degree of the cell.
const DEGREE_OF_CELL: f64 = 32.0;

/// A statement of a problem, and its text.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) piece: &'a Piece,
    pub(crate) kind: &'a ProblemItemKind,
    pub(crate) span: Span,
}

impl<'a> Statement<'a> {
    /// Returns the statements of a block that `pieces` do not replace, and those of `pieces`.
    pub(crate) fn all(
        block: &'a Piece,
        problem: &'a ast::Problem,
        pieces: &'a [Piece],
    ) -> Vec<Self> {
        let given: Vec<Self> = pieces.iter().flat_map(Self::of_piece).collect();
        let kept = problem.items.iter().map(|item| Self {
            piece: block,
            kind: &item.kind,
            span: item.span,
        });
        let mut statements: Vec<Self> = kept
            .filter(|kept| !given.iter().any(|given| replaces(given.kind, kept.kind)))
            .collect();
        statements.extend(given);
        statements
    }

    /// Returns the statements of a text from the command line: one, or those of its real and imaginary part.
    pub(crate) fn of_piece(piece: &'a Piece) -> impl Iterator<Item = Self> {
        let items = piece.file.problems.iter().take(1).flat_map(|problem| &problem.items);
        items.map(move |item| Self { piece, kind: &item.kind, span: item.span })
    }
}

/// Returns the subject of a statement that may occur once.
fn subject(kind: &ProblemItemKind) -> Option<(&'static str, &str)> {
    Some(match kind {
        ProblemItemKind::MeshFile(_) | ProblemItemKind::MeshGenerator(_) => ("mesh", ""),
        ProblemItemKind::Setting { name, .. } => ("setting", &name.name),
        ProblemItemKind::Param { name, .. } => ("param", &name.name),
        ProblemItemKind::Aux { name, place: None | Some(ast::SupportSpec::All(_)), .. } => {
            ("aux", &name.name)
        }
        ProblemItemKind::Exact { field, .. } => ("exact", &field.name),
        ProblemItemKind::Manufactured { field, .. } => ("manufactured", &field.name),
        ProblemItemKind::Solver(_) => ("solver", ""),
        ProblemItemKind::Mean { field, .. } => ("mean", &field.name),
        ProblemItemKind::Report { name, .. } => ("report", &name.name),
        ProblemItemKind::Output { name, .. } => ("output", &name.name),
        ProblemItemKind::Initial { field, rate: false, .. } => ("initial", &field.name),
        ProblemItemKind::Initial { field, rate: true, .. } => ("initial rate", &field.name),
        ProblemItemKind::Adapt { .. } => ("adapt", ""),
        ProblemItemKind::Aux { .. }
        | ProblemItemKind::Dirichlet { .. }
        | ProblemItemKind::Bound { .. }
        | ProblemItemKind::Source { .. }
        | ProblemItemKind::Periodic { .. }
        | ProblemItemKind::Broken => return None,
    })
}

fn replaces(new: &ProblemItemKind, old: &ProblemItemKind) -> bool {
    match (new, old) {
        (ProblemItemKind::Dirichlet { .. }, ProblemItemKind::Dirichlet { .. }) => return true,
        (ProblemItemKind::Aux { name: new, .. }, ProblemItemKind::Aux { name: old, .. }) => {
            return new.name == old.name;
        }
        (
            ProblemItemKind::Manufactured { field: new, .. },
            ProblemItemKind::Exact { field: old, .. },
        ) => return new.name == old.name,
        // A manufactured solution has a source, and no obstacle.
        (ProblemItemKind::Manufactured { .. }, ProblemItemKind::Bound { .. }) => return true,
        // It has no eigenvalues, either.
        (ProblemItemKind::Manufactured { .. }, ProblemItemKind::Setting { name, .. }) => {
            return name.name == "eigen";
        }
        _ => {}
    }
    subject(new).is_some_and(|subject_of_new| subject(old) == Some(subject_of_new))
}

/// A problem without its form and mesh.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) refine: usize,
    pub(crate) degree: Option<usize>,
    pub(crate) quadrature: Option<Quadrature>,
    pub(crate) time: f64,
    pub(crate) params: Vec<(usize, Vec<f64>)>,
    pub(crate) aux: Vec<Data>,
    pub(crate) dirichlet: Vec<Dirichlet>,
    pub(crate) states: Vec<PointState>,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) sources: Vec<PointSource>,
    pub(crate) periodic: Vec<PeriodicSides>,
    pub(crate) mean: Vec<(usize, Vec<f64>)>,
    pub(crate) exact: Vec<(usize, Expression)>,
    pub(crate) initial: Vec<(usize, ValueSource)>,
    /// First values of unknown numbers.
    pub(crate) numbers: Vec<(usize, Vec<f64>)>,
    pub(crate) initial_rate: Vec<(usize, ValueSource)>,
    pub(crate) stepping: Option<Stepping>,
    /// True if there is such a statement, valid or not.
    pub(crate) timed: bool,
    pub(crate) adapt: Option<AdaptiveRefinement>,
    pub(crate) stages: Option<StagesRequest>,
    pub(crate) eigen: Option<EigenRequest>,
    /// The manufactured solution of each field, and the corresponding auxiliary data.
    pub(crate) manufactured: Option<Solutions>,
    pub(crate) solver: Option<SolverSettings>,
    pub(crate) reports: CheckedReports,
    /// True if there is a manufactured solution, valid or not.
    pub(crate) manufacturing: bool,
    /// True if some statement is unreadable.
    pub(crate) broken: bool,
    /// Warnings about statements without effect, if there are no errors.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Checks the statements of a problem, except its mesh, against its form.
pub(crate) fn content(
    statements: &[Statement<'_>],
    form: &Form,
    mesh: Option<&MeshChoice>,
) -> (Content, Vec<Diagnostic>) {
    let mut checker = Checker {
        form,
        content: Content::default(),
        given: BTreeMap::new(),
        params: form.param_values(&BTreeMap::new()),
        diagnostics: Vec::new(),
    };
    checker.repeated(statements);
    // Conditions may refer to solutions, and everything to parameters, in any order.
    for &statement in statements {
        checker.setting(statement, mesh);
    }
    for &statement in statements {
        checker.known(statement);
    }
    manufactured::check(&mut checker, statements);
    for &statement in statements {
        conditions::check(&mut checker, statement, mesh);
    }
    for &statement in statements {
        conditions::check_mean(&mut checker, statement);
        source::check(&mut checker, statement);
        periodic::check(&mut checker, statement, mesh);
    }
    periodic::check_conditions(&mut checker, statements);
    adapt::check(&mut checker, statements);
    eigen::check(&mut checker, statements);
    time::check(&mut checker, statements);
    states::check(&mut checker, statements);
    bounds::check(&mut checker, statements, mesh);
    stages::check(&mut checker, statements);
    checker.settle_params(statements);
    reports::check(&mut checker, statements, mesh);
    let Checker { mut content, params, diagnostics, .. } = checker;
    if diagnostics.is_empty() {
        content.warnings = effect::without_effect(statements, form, &content, &params);
        content.warnings.extend(kink::kinks(statements, form, &content, &params, mesh));
    }
    (content, diagnostics)
}

/// Returns help for a value with one component instead of several.
fn shape_help(found: form::Shape, expected: form::Shape) -> Option<String> {
    let row = |n: usize| format!("[{}]", vec!["0"; n].join(", "));
    let zeros = match *expected.extents() {
        [n @ 1..=6] => row(n),
        [rows @ 1..=3, columns @ 1..=3] => format!("[{}]", vec![row(columns); rows].join(", ")),
        _ => return None,
    };
    found.is_scalar().then(|| format!("write all components: `{zeros}`"))
}

/// The state of checking one problem.
struct Checker<'a> {
    form: &'a Form,
    content: Content,
    /// Parameters set by the problem.
    given: BTreeMap<usize, Vec<f64>>,
    /// The values of all parameters so far.
    params: Vec<Vec<f64>>,
    diagnostics: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn report(&mut self, piece: &Piece, diagnostic: Diagnostic) {
        self.diagnostics.push(piece.place(diagnostic));
    }

    /// Reports statements that occur twice but may occur once.
    fn repeated(&mut self, statements: &[Statement<'_>]) {
        let mut seen: BTreeMap<(&str, &str), Span> = BTreeMap::new();
        for statement in statements {
            let Some(subject) = subject(statement.kind) else { continue };
            let Some(&first) = seen.get(&subject) else {
                seen.insert(subject, statement.span);
                continue;
            };
            let (kind, name) = subject;
            let what = match kind {
                "setting" => format!("`{name}`"),
                _ if name.is_empty() => format!("`{kind}`"),
                _ => format!("`{kind} {name}`"),
            };
            let diagnostic = Diagnostic::new(Code::DuplicateItem, format!("{what} is given twice"))
                .label(statement.span, "given again")
                .secondary(first, "given first")
                .help("remove one of them");
            self.report(statement.piece, diagnostic);
        }
    }

    fn setting(&mut self, statement: Statement<'_>, mesh: Option<&MeshChoice>) {
        let piece = statement.piece;
        match statement.kind {
            ProblemItemKind::Broken => self.content.broken = true,
            ProblemItemKind::Setting { name, value } => match name.name.as_str() {
                "refine" => {
                    let most = f64::from(MOST_REFINED);
                    let times = self.whole(piece, *value, "refine", 0.0, most);
                    self.content.refine = times.unwrap_or(0);
                }
                "degree" => self.degree(piece, *value, mesh),
                "quadrature" if arguments::word(&piece.file.exprs, *value) == Some(COLLOCATED) => {
                    self.content.quadrature = Some(Quadrature::Collocated);
                }
                "quadrature" => {
                    // The bound of the cells is reported once these are known.
                    let most = f64::from(u16::MAX);
                    let degree = self.whole(piece, *value, "quadrature", 0.0, most);
                    self.content.quadrature = degree.map(Quadrature::Degree);
                }
                // Read once the parameters, or the other forms, are known.
                "eigen" | "mass" | "stages" | "time" => {}
                _ => {
                    if let Some(time) = self.scalar(piece, *value, "t") {
                        self.content.time = time;
                    }
                }
            },
            ProblemItemKind::Param { name, value } => self.param(piece, name, *value),
            ProblemItemKind::Solver(named) => {
                let (solver, diagnostics) = solver::check(piece, named, self.form);
                self.content.solver = solver;
                self.diagnostics.extend(diagnostics);
            }
            _ => {}
        }
    }

    /// Checks a degree that the form's spaces admit.
    fn degree(&mut self, piece: &Piece, value: ExprId, mesh: Option<&MeshChoice>) {
        let largest = mesh.and_then(MeshChoice::largest_degree);
        let said = largest.map_or(MAX_DEGREE, |(_, most)| most as f64);
        let taken = (DEGREE_OF_CELL, format!("to {said}"));
        self.content.degree = self.whole_of(piece, value, "degree", 1.0, taken);
        let (Some(degree), form) = (self.content.degree, self.form) else { return };
        if let Some((cell, most)) = largest
            && let Some((name, space)) =
                form.spaces().find(|(_, space)| space.degree_at(degree) > most)
        {
            let high = space.degree_at(degree);
            let message = format!(
                "`{name}` would have degree {high} on a {cell}: supported are degrees 1 to {most}"
            );
            let diagnostic = Diagnostic::new(Code::BadDegree, message)
                .label(piece.file.exprs[value].span, format!("the degree is {degree}"));
            return self.report(piece, diagnostic);
        }
        let small = form.spaces().find(|(_, space)| degree < space.smallest_degree());
        let mut bent = form.bent_fields();
        let bent = bent.find(|field| degree < field.space.smallest_degree_for(2));
        let label = match (small, bent) {
            (Some((name, space)), _) => format!("too small for `{name}` in `{space}`"),
            (None, Some(field)) => {
                format!("too small for second derivatives of `{}` in `{}`", field.name, field.space)
            }
            (None, None) => return,
        };
        let least = form.smallest_degree();
        let message = format!("the form `{}` needs degree {least} or more", form.name);
        let diagnostic = Diagnostic::new(Code::BadDegree, message)
            .label(piece.file.exprs[value].span, label)
            .help(format!("write `degree = {least};`"));
        self.report(piece, diagnostic);
    }

    /// Returns a scalar value.
    fn scalar(&mut self, piece: &Piece, value: ExprId, what: &str) -> Option<f64> {
        let (shape, values) = self.number(piece, value)?;
        if shape == Shape::Scalar {
            return values.first().copied();
        }
        let span = piece.file.exprs[value].span;
        let message = format!("`{what}` is a number, but this is {}", form::Shape::from(shape));
        self.report(piece, Diagnostic::new(Code::BadValue, message).label(span, "not a number"));
        None
    }

    fn whole(
        &mut self,
        piece: &Piece,
        value: ExprId,
        what: &str,
        least: f64,
        most: f64,
    ) -> Option<usize> {
        self.whole_of(piece, value, what, least, (most, format!("to {most}")))
    }

    /// Returns the same with the end of the range as text.
    fn whole_of(
        &mut self,
        piece: &Piece,
        value: ExprId,
        what: &str,
        least: f64,
        (most, end): (f64, String),
    ) -> Option<usize> {
        let number = self.scalar(piece, value, what)?;
        if number.fract() == 0.0 && (least..=most).contains(&number) {
            return Some(number as usize);
        }
        let span = piece.file.exprs[value].span;
        let unbounded = most == f64::from(u16::MAX) && number <= most;
        let end = if unbounded { "on".to_owned() } else { end };
        let message = format!("`{what}` is a whole number from {least} {end}");
        self.report(
            piece,
            Diagnostic::new(Code::BadValue, message).label(span, format!("this is {number}")),
        );
        None
    }

    fn number(&mut self, piece: &Piece, value: ExprId) -> Option<(Shape, Vec<f64>)> {
        match value::number(&piece.file, value, self.form, &self.params) {
            Ok(number) => Some(number),
            Err(diagnostics) => {
                self.diagnostics.extend(diagnostics.into_iter().map(|found| piece.place(found)));
                None
            }
        }
    }

    /// Returns a function of the coordinates with the shape of `what`.
    fn expression(
        &mut self,
        piece: &Piece,
        value: ExprId,
        expected: Shape,
        what: &str,
    ) -> Option<Expression> {
        let expression = match value::expression(&piece.file, value, self.form) {
            Ok(expression) => expression,
            Err(diagnostics) => {
                self.diagnostics.extend(diagnostics.into_iter().map(|found| piece.place(found)));
                return None;
            }
        };
        if expression.shape == expected {
            return Some(expression);
        }
        let (found, expected) = (form::Shape::from(expression.shape), form::Shape::from(expected));
        let diagnostic =
            Diagnostic::new(Code::WrongShape, format!("{what} is {expected}, but this is {found}"))
                .label(piece.file.exprs[value].span, format!("this is {found}"))
                .help_if(shape_help(found, expected));
        self.report(piece, diagnostic);
        None
    }

    /// Returns the index of `name` among `names`; reports an unknown name.
    fn find<'n>(
        &mut self,
        piece: &Piece,
        name: &Ident,
        what: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<usize> {
        let found = names.clone().position(|known| known == name.name);
        if found.is_none() {
            let message = format!("the form `{}` has no {what} `{}`", self.form.name, name.name);
            let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
            let note = if list.is_empty() {
                format!("it has no {what} at all")
            } else {
                format!("it has {}", list.join(", "))
            };
            let diagnostic = Diagnostic::new(Code::NotInForm, message)
                .label(name.span, "not in the form")
                .note(note)
                .suggest(&name.name, names);
            self.report(piece, diagnostic);
        }
        found
    }

    /// Returns the index of a field or an unknown number.
    fn unknown(&mut self, piece: &Piece, name: &Ident) -> Option<usize> {
        let form = self.form;
        self.find(piece, name, "field", form.fields.iter().map(|field| field.name.as_str()))
    }

    /// Returns the index of a field; reports an unknown number, which no point of the mesh has.
    fn field(&mut self, piece: &Piece, name: &Ident) -> Option<usize> {
        let index = self.unknown(piece, name)?;
        if !self.form.fields[index].space.is_number() {
            return Some(index);
        }
        let message = format!("`{}` is one number for the whole mesh", name.name);
        let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
            .label(name.span, "its row in the form determines it")
            .help(format!(
                "give it a first value, `initial {} = 0;`, or read it in a `report`",
                name.name
            ));
        self.report(piece, diagnostic);
        None
    }

    /// Reads the first value of an unknown number.
    fn first_value(&mut self, piece: &Piece, (name, index): (&Ident, usize), value: ExprId) {
        let Some((found, values)) = self.number(piece, value) else { return };
        let expected = self.form.fields[index].shape;
        if found == expected {
            return self.content.numbers.push((index, values));
        }
        let (found, expected) = (form::Shape::from(found), form::Shape::from(expected));
        let message = format!("`{}` is {expected}, but this is {found}", name.name);
        let diagnostic = Diagnostic::new(Code::WrongShape, message)
            .label(piece.file.exprs[value].span, format!("this is {found}"))
            .help_if(shape_help(found, expected));
        self.report(piece, diagnostic);
    }

    fn param(&mut self, piece: &Piece, name: &Ident, value: ExprId) {
        let form = self.form;
        let names = form.own_params().iter().map(|param| param.name.as_str());
        let index = self.find(piece, name, "parameter", names);
        let number = self.number(piece, value);
        let (Some(index), Some((shape, values))) = (index, number) else { return };
        let expected = form.params[index].shape;
        if shape != expected {
            let (found, expected) = (form::Shape::from(shape), form::Shape::from(expected));
            let message =
                format!("the parameter `{}` is {expected}, but this is {found}", name.name);
            let diagnostic = Diagnostic::new(Code::WrongShape, message)
                .label(piece.file.exprs[value].span, format!("this is {found}"))
                .help_if(shape_help(found, expected));
            return self.report(piece, diagnostic);
        }
        self.given.insert(index, values);
        self.params = form.param_values(&self.given);
    }

    /// Checks auxiliary data and known solutions.
    fn known(&mut self, statement: Statement<'_>) {
        let (piece, form) = (statement.piece, self.form);
        match statement.kind {
            ProblemItemKind::Aux { name, value, place } => {
                let names = form.own_aux().iter().map(|aux| aux.name.as_str());
                let Some(index) = self.find(piece, name, "auxiliary data", names) else { return };
                let what = format!("`{}`", name.name);
                let tags = match place {
                    Some(ast::SupportSpec::Tags(tags)) => {
                        self.in_regions(piece, name, index);
                        Some(tags.iter().map(|tag| tag.text.clone()).collect())
                    }
                    Some(ast::SupportSpec::All(_) | ast::SupportSpec::At(_)) | None => None,
                };
                let calls = (file::call(&piece.file, *value), solution::call(&piece.file, *value));
                let value = match calls {
                    (Some(call), _) => file::of_aux(self, piece, call, &form.aux[index]),
                    (None, Some(call)) => solution::of_aux(self, piece, call, &form.aux[index]),
                    (None, None) => self
                        .expression(piece, *value, form.aux[index].shape, &what)
                        .map(ValueSource::Formula),
                };
                self.content.aux.extend(value.map(|value| Data { aux: index, tags, value }));
            }
            ProblemItemKind::Exact { field, value } => {
                let Some(index) = self.field(piece, field) else { return };
                let what = format!("`{}`", field.name);
                let value = self.expression(piece, *value, form.fields[index].shape, &what);
                // A condition that takes its value from here is not wrong itself.
                self.content.broken |= value.is_none();
                self.content.exact.extend(value.map(|value| (index, value)));
            }
            ProblemItemKind::Initial { field, rate, value } => {
                let Some(index) = self.unknown(piece, field) else { return };
                if form.fields[index].space.is_number() && !rate {
                    return self.first_value(piece, (field, index), *value);
                }
                if *rate && !form.rates.iter().any(|own| (own.field, own.order) == (index, 2)) {
                    let message = format!("the form has no `dt(dt({}))`", field.name);
                    let diagnostic = Diagnostic::new(Code::BadArgument, message)
                        .label(field.span, "its first derivative follows from its equation")
                        .help("leave this out");
                    return self.report(piece, diagnostic);
                }
                let given = match file::call(&piece.file, *value) {
                    Some(call) => Some(file::array(self, piece, call).map(ValueSource::File)),
                    None => solution::call(&piece.file, *value)
                        .map(|call| solution::field(self, piece, call)),
                };
                if let Some(value) = given {
                    let starts = match rate {
                        true => &mut self.content.initial_rate,
                        false => &mut self.content.initial,
                    };
                    starts.extend(value.map(|value| (index, value)));
                    return;
                }
                let what = format!("`{}`", field.name);
                let value = self.expression(piece, *value, form.fields[index].shape, &what);
                let what = format!("the start of `{}`", field.name);
                let value =
                    value.filter(|value| conditions::is_of_nodes(self, statement, &what, value));
                let starts = match rate {
                    true => &mut self.content.initial_rate,
                    false => &mut self.content.initial,
                };
                starts.extend(value.map(|value| (index, ValueSource::Formula(value))));
            }
            _ => {}
        }
    }

    /// Checks that data with different values in different regions can jump between them.
    fn in_regions(&mut self, piece: &Piece, name: &Ident, aux: usize) {
        let Location::Nodes(space @ Space::H1(_)) = self.form.aux[aux].location else { return };
        let name_of = &name.name;
        let message = format!(
            "`{name_of}` lives in `{space}`, where it cannot jump from a region to the next"
        );
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(name.span, "continuous: a node between two regions has one value")
            .help(format!(
                "declare it as `aux {name_of}: … on cells;`, or `on nodes in L2(k)` where it varies inside of them"
            ));
        self.report(piece, diagnostic);
    }

    /// Collects the parameters whose value differs from the form's default, including dependent ones.
    fn settle_params(&mut self, statements: &[Statement<'_>]) {
        let changed = self.params.iter().zip(&self.form.params).enumerate();
        self.content.params = changed
            .filter(|(_, (value, param))| **value != param.value)
            .map(|(index, (value, _))| (index, value.clone()))
            .collect();
        let broken =
            self.content.params.iter().find(|(_, value)| !value.iter().all(|x| x.is_finite()));
        let Some((index, value)) = broken else { return };
        let shown: Vec<String> = value.iter().map(f64::to_string).collect();
        let name = &self.form.params[*index].name;
        let message =
            format!("the parameter `{name}` follows from others, and is {}", shown.join(", "));
        let mut diagnostic = Diagnostic::new(Code::NotFinite, message)
            .help(format!("choose other values, or give `{name}` one of its own"));
        let last = statements.iter().rev().find_map(|statement| match statement.kind {
            ProblemItemKind::Param { value, .. } => Some((statement.piece, *value)),
            _ => None,
        });
        if let Some((piece, value)) = last {
            diagnostic = diagnostic.label(piece.file.exprs[value].span, "with this value");
            diagnostic = piece.place(diagnostic);
        }
        self.diagnostics.push(diagnostic);
    }
}
