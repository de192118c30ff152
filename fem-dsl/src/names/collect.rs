//! Collector of declarations and uses: one walk over the items of a file.

use super::{Declaration, NameKind, NameTable, NameUse};
use crate::ast::{
    self, Argument, ExprId, ExprKind, FormItem, FormItemKind, Ident, NamedCall, ProblemItemKind,
};
use crate::check::subtree;
use crate::source::Span;
use crate::words;
use std::collections::BTreeMap;

/// Names of one scope, each with the index of its declaration.
type Names<'a> = BTreeMap<&'a str, usize>;

/// Arguments of calls that are words of the language.
const WORD_ARGUMENTS: &[&str] = &["formula", "mass", "preconditioner", "interpolation", "outside"];

/// Declarations and uses so far.
pub(super) struct Collector<'a> {
    file: &'a ast::File,
    table: NameTable,
    forms: Names<'a>,
    problems: Names<'a>,
    /// The names of each form.
    items: Vec<Names<'a>>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(file: &'a ast::File) -> Self {
        Self {
            file,
            table: NameTable::default(),
            forms: Names::new(),
            problems: Names::new(),
            items: Vec::new(),
        }
    }

    /// Walks over the file.
    pub(super) fn finish(mut self) -> NameTable {
        let file = self.file;
        for (at, form) in file.forms.iter().enumerate() {
            let id = self.declare(&form.name, NameKind::Form, form.span, &form.doc);
            self.of_form(id, at, Span::default());
            self.forms.entry(&form.name.name).or_insert(id);
        }
        for problem in &file.problems {
            let id = self.declare(&problem.name, NameKind::Problem, problem.span, &problem.doc);
            self.table.declarations[id].scope = Span::default();
            self.problems.entry(&problem.name.name).or_insert(id);
        }
        for (at, form) in file.forms.iter().enumerate() {
            let mut names = Names::new();
            self.declare_items(at, &form.items, form.span, &mut names);
            self.items.push(names);
        }
        for (at, form) in file.forms.iter().enumerate() {
            self.form_items(at, &form.items);
        }
        for problem in &file.problems {
            self.problem(problem);
        }
        self.table
    }

    fn declare(&mut self, name: &Ident, kind: NameKind, item: Span, doc: &str) -> usize {
        self.table.declarations.push(Declaration {
            name: name.name.clone(),
            kind,
            span: name.span,
            item,
            scope: item,
            form: None,
            doc: doc.to_owned(),
            arguments: Vec::new(),
        });
        self.table.declarations.len() - 1
    }

    fn of_form(&mut self, declaration: usize, form: usize, scope: Span) {
        let own = &mut self.table.declarations[declaration];
        (own.form, own.scope) = (Some(form), scope);
    }

    fn used(&mut self, span: Span, declaration: Option<usize>) {
        let uses = &mut self.table.uses;
        uses.extend(declaration.map(|declaration| NameUse { span, declaration }));
    }

    fn declare_items(
        &mut self,
        form: usize,
        items: &'a [FormItem],
        scope: Span,
        names: &mut Names<'a>,
    ) {
        let starts = |name: &Ident| {
            let same = |item: &FormItem| matches!(&item.kind, FormItemKind::Start { name: own, .. } if own.span == name.span);
            items.iter().any(same)
        };
        for item in items {
            let (name, kind) = match &item.kind {
                FormItemKind::Field { name, .. } => (name, NameKind::Field),
                FormItemKind::Aux { name, .. } if starts(name) => (name, NameKind::State),
                FormItemKind::Aux { name, .. } => (name, NameKind::Data),
                FormItemKind::Param { name, .. } => (name, NameKind::Param),
                FormItemKind::Let { name, .. } => (name, NameKind::Let),
                FormItemKind::Fn { name, .. } => (name, NameKind::Function),
                FormItemKind::Test { name, .. } => (name, NameKind::Test),
                FormItemKind::Block { items, .. } => {
                    // Blocks are not nested.
                    self.declare_items(form, items, item.span, names);
                    continue;
                }
                _ => continue,
            };
            if name.name.is_empty() {
                continue;
            }
            let id = self.declare(name, kind, item.span, &item.doc);
            self.of_form(id, form, scope);
            self.table.declarations[id].arguments = match &item.kind {
                FormItemKind::Fn { parameters, .. } => {
                    parameters.iter().map(|name| name.name.clone()).collect()
                }
                FormItemKind::Test { field, .. } => vec![field.name.clone()],
                _ => Vec::new(),
            };
            names.entry(&name.name).or_insert(id);
        }
    }

    fn name(&self, form: Option<usize>, name: &str) -> Option<usize> {
        self.items.get(form?)?.get(name).copied()
    }

    fn field(&mut self, form: Option<usize>, field: &Ident) {
        self.used(field.span, self.name(form, &field.name));
    }

    fn form_items(&mut self, form: usize, items: &'a [FormItem]) {
        let of = Some(form);
        for item in items {
            match &item.kind {
                FormItemKind::Fn { parameters, body, .. } => {
                    let mut own = Names::new();
                    for parameter in parameters {
                        let id = self.declare(parameter, NameKind::Argument, item.span, "");
                        self.of_form(id, form, item.span);
                        own.entry(&parameter.name).or_insert(id);
                    }
                    self.expression(of, &own, *body);
                }
                FormItemKind::Row { field, value, .. } => {
                    self.field(of, field);
                    self.value(of, *value);
                }
                FormItemKind::Test { field, .. } => self.field(of, field),
                FormItemKind::Update { name, value } => {
                    self.field(of, name);
                    self.value(of, *value);
                }
                FormItemKind::Start { value, .. }
                | FormItemKind::Param { value, .. }
                | FormItemKind::Let { value, .. }
                | FormItemKind::Residual { value }
                | FormItemKind::Energy { value } => self.value(of, *value),
                FormItemKind::Block { items, .. } => self.form_items(form, items),
                FormItemKind::Broken | FormItemKind::Field { .. } | FormItemKind::Aux { .. } => {}
            }
        }
    }

    fn problem(&mut self, problem: &'a ast::Problem) {
        let form = self.file.forms.iter().position(|form| form.name.name == problem.form.name);
        self.used(problem.form.span, self.forms.get(problem.form.name.as_str()).copied());
        // Expressions of the problem use the names of the form.
        for item in &problem.items {
            match &item.kind {
                ProblemItemKind::Broken | ProblemItemKind::MeshFile(_) => {}
                ProblemItemKind::MeshGenerator(call)
                | ProblemItemKind::Periodic { map: Some(call), .. } => {
                    self.arguments(form, &call.arguments);
                }
                ProblemItemKind::Periodic { map: None, .. } => {}
                ProblemItemKind::Solver(call) => self.solver(form, call),
                ProblemItemKind::Adapt { arguments } => self.arguments(form, arguments),
                ProblemItemKind::Setting { name, value } => self.setting(form, name, *value),
                ProblemItemKind::Param { name, value }
                | ProblemItemKind::Aux { name, value, place: None } => {
                    self.field(form, name);
                    self.data(form, *value);
                }
                ProblemItemKind::Aux { name, value, place: Some(place) } => {
                    self.field(form, name);
                    self.data(form, *value);
                    self.support(form, place);
                }
                ProblemItemKind::Dirichlet { field, component, value, place, .. } => {
                    self.field(form, field);
                    component.iter().chain(value).for_each(|value| self.value(form, *value));
                    place.iter().for_each(|place| self.support(form, place));
                }
                ProblemItemKind::Bound { field, component, value, place, .. } => {
                    self.field(form, field);
                    component.iter().chain([value]).for_each(|value| self.value(form, *value));
                    place.iter().for_each(|place| self.support(form, place));
                }
                ProblemItemKind::Source { field, component, value, place } => {
                    self.field(form, field);
                    let all = component.iter().chain([value, place]);
                    all.for_each(|value| self.value(form, *value));
                }
                ProblemItemKind::Mean { field, value }
                | ProblemItemKind::Exact { field, value }
                | ProblemItemKind::Manufactured { field, value }
                | ProblemItemKind::Initial { field, value, .. } => {
                    self.field(form, field);
                    self.data(form, *value);
                }
                ProblemItemKind::Report { name, value } => {
                    self.declare_result(form, name, NameKind::Report, item);
                    self.value(form, *value);
                }
                ProblemItemKind::Output { name, value, .. } => {
                    // `output s;` is a use of `s`.
                    if self.file.exprs[*value].span != name.span {
                        self.declare_result(form, name, NameKind::Output, item);
                    }
                    self.value(form, *value);
                }
            }
        }
    }

    /// Declares a report or an output, which no expression uses.
    fn declare_result(
        &mut self,
        form: Option<usize>,
        name: &Ident,
        kind: NameKind,
        item: &ast::ProblemItem,
    ) {
        let id = self.declare(name, kind, item.span, &item.doc);
        let own = &mut self.table.declarations[id];
        (own.form, own.scope) = (form, Span::default());
    }

    fn support(&mut self, form: Option<usize>, place: &ast::SupportSpec) {
        if let ast::SupportSpec::At(place) = place {
            self.value(form, *place);
        }
    }

    /// Reads `time = bdf(step: dt);`, `mass = inertia;`, `stages = repeat(a, b);` and plain settings.
    fn setting(&mut self, form: Option<usize>, name: &Ident, value: ExprId) {
        let expr = &self.file.exprs[value];
        match (name.name.as_str(), &expr.kind) {
            ("mass", ExprKind::Name(of)) => {
                self.used(expr.span, self.forms.get(of.as_str()).copied());
            }
            ("stages", ExprKind::Call { arguments, named, .. }) => {
                for argument in arguments {
                    let expr = &self.file.exprs[*argument];
                    if let ExprKind::Name(of) = &expr.kind {
                        self.used(expr.span, self.problems.get(of.as_str()).copied());
                    }
                }
                self.arguments(form, named);
            }
            ("time" | "eigen", ExprKind::Call { arguments, named, .. }) => {
                arguments.iter().for_each(|value| self.value(form, *value));
                self.arguments(form, named);
            }
            ("quadrature", ExprKind::Name(_)) => {}
            _ => self.value(form, value),
        }
    }

    fn arguments(&mut self, form: Option<usize>, named: &[Argument]) {
        let values = named.iter().filter(|own| !WORD_ARGUMENTS.contains(&own.name.name.as_str()));
        values.for_each(|own| self.value(form, own.value));
    }

    /// Reads the arguments of a solver, of which the load and the fields of `block` are names.
    fn solver(&mut self, form: Option<usize>, call: &NamedCall) {
        for argument in &call.arguments {
            let expr = &self.file.exprs[argument.value];
            match (argument.name.name.as_str(), &expr.kind) {
                ("load", ExprKind::Name(name)) => self.used(expr.span, self.name(form, name)),
                ("preconditioner", ExprKind::Call { function, named, .. })
                    if function.name == "block" =>
                {
                    named.iter().for_each(|own| self.field(form, &own.name));
                }
                _ => {}
            }
        }
    }

    /// Reads data, which may be a field of another problem.
    fn data(&mut self, form: Option<usize>, value: ExprId) {
        let file = self.file;
        let ExprKind::Call { function, arguments, .. } = &file.exprs[value].kind else {
            return self.value(form, value);
        };
        let [problem, field] = arguments[..] else { return self.value(form, value) };
        let (problem, field) = (&file.exprs[problem], &file.exprs[field]);
        let (ExprKind::Name(name), ExprKind::Text(text)) = (&problem.kind, &field.kind) else {
            return self.value(form, value);
        };
        if function.name != words::SOLUTION {
            return self.value(form, value);
        }
        self.used(problem.span, self.problems.get(name.as_str()).copied());
        let other = file.problems.iter().find(|own| own.name.name == *name);
        let of = other
            .and_then(|own| file.forms.iter().position(|form| form.name.name == own.form.name));
        let inner = Span { start: field.span.start + 1, end: field.span.end.saturating_sub(1) };
        self.used(inner, self.name(of, text));
    }

    fn value(&mut self, form: Option<usize>, root: ExprId) {
        self.expression(form, &Names::new(), root);
    }

    fn expression(&mut self, form: Option<usize>, own: &Names<'a>, root: ExprId) {
        for id in subtree(self.file, root) {
            let expr = &self.file.exprs[id];
            let (name, span) = match &expr.kind {
                ExprKind::Name(name) => (name, expr.span),
                ExprKind::Call { function, .. } => (&function.name, function.span),
                _ => continue,
            };
            let found = own.get(name.as_str()).copied().or_else(|| self.name(form, name));
            self.used(span, found);
        }
    }
}
