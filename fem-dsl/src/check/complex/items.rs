//! The items of forms and problems: one that is complex becomes one for its real and one for its imaginary part.

use super::expand::{ComplexNames, Expander, LetKind, part_names};
use super::parts::{Tests, Value};
use crate::ast::{
    self, Argument, ExprId, ExprKind, FormItem, FormItemKind, Ident, NamedCall, ProblemItem,
    ProblemItemKind, ShapeSpec,
};
use crate::check::names::{order, subtree};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use std::collections::BTreeMap;

/// Returns the items of a form and of its blocks.
fn all_items(form: &ast::Form) -> impl Iterator<Item = &FormItem> {
    form.items.iter().flat_map(|item| match &item.kind {
        FormItemKind::Block { items, .. } => items.iter(),
        _ => std::slice::from_ref(item).iter(),
    })
}

fn is_complex(shape: &Option<ShapeSpec>) -> bool {
    shape.is_some_and(|shape| shape.complex)
}

/// Returns the same names with other text.
fn renamed(name: &Ident, parts: [String; 2]) -> [Ident; 2] {
    parts.map(|part| Ident { name: part, span: name.span })
}

impl<'a> Expander<'a> {
    /// Finds what of a form is complex. Definitions are visited behind those that they use; what is defined by itself is
    /// left to name resolution.
    pub(super) fn read(&mut self, form: &'a ast::Form) {
        let mut names = ComplexNames::default();
        self.functions.clear();
        let mut defined: Vec<(&Ident, ExprId)> = Vec::new();
        for item in all_items(form) {
            let name = match &item.kind {
                FormItemKind::Field { name, shape, .. } => {
                    if is_complex(shape) {
                        names.fields.insert(name.name.clone());
                    }
                    name
                }
                FormItemKind::Aux { name, shape, .. } => {
                    if is_complex(shape) {
                        names.data.insert(name.name.clone());
                    }
                    name
                }
                FormItemKind::Param { name, shape, value } => {
                    if is_complex(shape) {
                        names.data.insert(name.name.clone());
                    }
                    defined.push((name, *value));
                    name
                }
                FormItemKind::Let { name, value } => {
                    defined.push((name, *value));
                    name
                }
                FormItemKind::Fn { name, parameters, body } => {
                    self.functions.insert(&name.name, (parameters, *body));
                    defined.push((name, *body));
                    name
                }
                FormItemKind::Test { name, .. } => name,
                _ => continue,
            };
            names.declared.insert(name.name.clone());
        }
        for item in all_items(form) {
            if let FormItemKind::Test { name, field } = &item.kind {
                names.tests.insert(name.name.clone(), names.fields.contains(&field.name));
            }
        }
        self.names = names;
        if self.names.any() {
            self.definitions(form, &defined);
        }
    }

    /// Finds the parameters, expressions and functions that depend on something complex.
    fn definitions(&mut self, form: &'a ast::Form, defined: &[(&Ident, ExprId)]) {
        let file = self.file;
        let at: BTreeMap<&str, usize> =
            defined.iter().enumerate().map(|(at, (name, _))| (name.name.as_str(), at)).collect();
        let used = |&(_, root): &(&Ident, ExprId)| {
            let names =
                subtree(file, root).into_iter().filter_map(|id| match &file.exprs[id].kind {
                    ExprKind::Name(name) | ExprKind::Call { function: Ident { name, .. }, .. } => {
                        Some((*at.get(name.as_str())?, file.exprs[id].span))
                    }
                    _ => None,
                });
            names.collect::<Vec<(usize, Span)>>()
        };
        let uses: Vec<Vec<(usize, Span)>> = defined.iter().map(used).collect();
        let idents: Vec<&Ident> = defined.iter().map(|(name, _)| *name).collect();
        // Cycles are reported by name resolution.
        let sound = order(&uses, &idents, &mut Vec::new());
        let is_sound = |name: &str| at.get(name).is_some_and(|at| sound.contains(at));
        self.functions.retain(|name, _| is_sound(name));
        let kinds: BTreeMap<&str, &FormItemKind> = all_items(form)
            .filter_map(|item| match &item.kind {
                FormItemKind::Param { name, .. }
                | FormItemKind::Let { name, .. }
                | FormItemKind::Fn { name, .. } => Some((name.name.as_str(), &item.kind)),
                _ => None,
            })
            .collect();
        for at in sound {
            let (name, root) = defined[at];
            let touches = subtree(file, root).into_iter().any(|id| match &file.exprs[id].kind {
                ExprKind::Name(name) | ExprKind::Call { function: Ident { name, .. }, .. } => {
                    self.names.touches(name)
                }
                _ => false,
            });
            match kinds.get(name.name.as_str()) {
                Some(FormItemKind::Fn { .. }) if touches => {
                    self.names.functions.insert(name.name.clone());
                }
                Some(FormItemKind::Param { shape: None, .. })
                    if touches && !self.value(root).is_real() =>
                {
                    self.names.data.insert(name.name.clone());
                }
                Some(FormItemKind::Let { .. }) => {
                    let value = self.value(root);
                    if touches || value.tests != Tests::NONE {
                        let kind = LetKind { is_complex: !value.is_real(), tests: value.tests };
                        self.names.lets.insert(name.name.clone(), kind);
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the items of a form or of a block in parts.
    pub(super) fn form_items(&mut self, items: &[FormItem]) -> Vec<FormItem> {
        let mut all = Vec::new();
        for item in items {
            let kinds = match &item.kind {
                FormItemKind::Block { region, tags, items } => {
                    let (region, tags) = (*region, tags.clone());
                    vec![FormItemKind::Block { region, tags, items: self.form_items(items) }]
                }
                kind => self.form_item(kind),
            };
            let with = |kind| FormItem { doc: item.doc.clone(), kind, span: item.span };
            all.extend(kinds.into_iter().map(with));
        }
        all
    }

    fn form_item(&mut self, kind: &FormItemKind) -> Vec<FormItemKind> {
        let real_shape =
            |shape: &Option<ShapeSpec>| shape.map(|shape| ShapeSpec { complex: false, ..shape });
        let is_part = |expander: &Self, name: &Ident| {
            expander.names.fields.contains(&name.name) || expander.names.data.contains(&name.name)
        };
        match kind {
            FormItemKind::Field { name, shape, space, tags } if is_part(self, name) => {
                let field = |name| FormItemKind::Field {
                    name,
                    shape: real_shape(shape),
                    space: *space,
                    tags: tags.clone(),
                };
                renamed(name, part_names(&name.name)).map(field).into()
            }
            FormItemKind::Aux { name, shape, place } if is_part(self, name) => {
                let aux =
                    |name| FormItemKind::Aux { name, shape: real_shape(shape), place: *place };
                renamed(name, part_names(&name.name)).map(aux).into()
            }
            FormItemKind::Param { name, shape, value } if is_part(self, name) => {
                let values = self.both(*value);
                let shape = real_shape(shape);
                let param = |(name, value)| FormItemKind::Param { name, shape, value };
                renamed(name, part_names(&name.name)).into_iter().zip(values).map(param).collect()
            }
            FormItemKind::Param { name, shape, value } => {
                let value = self.real(*value, &format!("the parameter `{}`", name.name));
                vec![FormItemKind::Param { name: name.clone(), shape: *shape, value }]
            }
            FormItemKind::Let { name, value: root } => {
                let value = self.value(*root);
                let span = self.span(*root);
                if value.is_real() {
                    let value = self.parts(span).whole(value.re, None);
                    return vec![FormItemKind::Let { name: name.clone(), value }];
                }
                let values = self.parts(span).both(value);
                let part = |(name, value)| FormItemKind::Let { name, value };
                renamed(name, part_names(&name.name)).into_iter().zip(values).map(part).collect()
            }
            FormItemKind::Test { name, field } if self.names.fields.contains(&field.name) => {
                let fields = renamed(field, part_names(&field.name));
                let test = |(name, field)| FormItemKind::Test { name, field };
                renamed(name, part_names(&name.name)).into_iter().zip(fields).map(test).collect()
            }
            FormItemKind::Row { row, row_span, side, field, value } => {
                let row_of = |(field, value)| {
                    let (row, row_span, side) = (*row, *row_span, *side);
                    FormItemKind::Row { row, row_span, side, field, value }
                };
                if !self.names.fields.contains(&field.name) {
                    let what = format!("a row of `{}`", field.name);
                    return vec![row_of((field.clone(), self.real(*value, &what)))];
                }
                let values = self.both(*value);
                let fields = renamed(field, part_names(&field.name));
                fields.into_iter().zip(values).map(row_of).collect()
            }
            FormItemKind::Start { name, value } => {
                let (name, value) = (name.clone(), self.real(*value, "a state"));
                vec![FormItemKind::Start { name, value }]
            }
            FormItemKind::Update { name, value } => {
                let (name, value) = (name.clone(), self.real(*value, "a state"));
                vec![FormItemKind::Update { name, value }]
            }
            FormItemKind::Residual { value } => {
                vec![FormItemKind::Residual { value: self.residual(*value) }]
            }
            FormItemKind::Energy { value } => {
                vec![FormItemKind::Energy { value: self.real(*value, "an energy") }]
            }
            FormItemKind::Fn { body, .. } => {
                // It is expanded where it is called; what is not called is checked here.
                self.value(*body);
                match &kind {
                    FormItemKind::Fn { name, .. } if self.names.functions.contains(&name.name) => {
                        Vec::new()
                    }
                    kind => vec![(*kind).clone()],
                }
            }
            kind => vec![kind.clone()],
        }
    }

    fn both(&mut self, root: ExprId) -> [ExprId; 2] {
        let value = self.value(root);
        self.parts(self.span(root)).both(value)
    }

    /// Returns the real part of a weak form, which has the real parts of the equations tested by real numbers and their
    /// imaginary parts by imaginary ones: (f₀ + i f₁)(v₀ − i v₁) → f₀ v₀ + f₁ v₁.
    fn residual(&mut self, root: ExprId) -> ExprId {
        let value = self.value(root);
        if value.tests.contains(Tests::PLAIN) {
            let inner = self.innermost(root, Tests::PLAIN);
            let text = match &self.file.exprs[inner].kind {
                ExprKind::Name(name) => name.clone(),
                _ => "v".to_owned(),
            };
            let message = "the test function of a complex field is not conjugated";
            let diagnostic = Diagnostic::new(Code::NotConjugated, message)
                .label(self.span(inner), "the residual depends on this, and not on its conjugate")
                .help(format!(
                    "write `inner(a, {text})`, which conjugates its second argument, or `a * conj({text})`"
                ));
            self.diagnostics.push(diagnostic);
        }
        if value.tests.contains(Tests::REAL_TIMES_COMPLEX) {
            let inner = self.innermost(root, Tests::REAL_TIMES_COMPLEX);
            self.not_real(inner, "the factor of a real field's test function");
        }
        let Value { re, im, .. } = value;
        self.parts(self.span(root)).whole(re, im)
    }

    /// Returns the items of a problem in parts.
    pub(super) fn problem_items(&mut self, items: &[ProblemItem]) -> Vec<ProblemItem> {
        let mut all = Vec::new();
        for item in items {
            let kinds = self.problem_item(&item.kind);
            let with = |kind| ProblemItem { doc: item.doc.clone(), kind, span: item.span };
            all.extend(kinds.into_iter().map(with));
        }
        all
    }

    /// Returns names and values of the parts of an item; one if its name is real.
    fn named_parts(&mut self, name: &Ident, value: ExprId) -> Vec<(Ident, ExprId)> {
        if !self.names.fields.contains(&name.name) && !self.names.data.contains(&name.name) {
            return vec![(name.clone(), self.real(value, &format!("`{}`", name.name)))];
        }
        let names = renamed(name, part_names(&name.name));
        if let ExprKind::Call { function, .. } = &self.file.exprs[value].kind
            && function.name == crate::words::FILE
        {
            let message = format!("`{}` is complex, and files hold real numbers", name.name);
            let diagnostic = Diagnostic::new(Code::ComplexValue, message)
                .label(self.span(value), "no parts are known")
                .help(
                    "declare two real data, `a` and `b`, each with its file, and write `a + i * b`",
                );
            self.diagnostics.push(diagnostic);
            let error = self.parts(self.span(value)).push(ExprKind::Error);
            return names.into_iter().map(|name| (name, error)).collect();
        }
        let values = self.both(value);
        names.into_iter().zip(values).collect()
    }

    fn problem_item(&mut self, kind: &ProblemItemKind) -> Vec<ProblemItemKind> {
        type Kind = ProblemItemKind;
        match kind {
            Kind::Param { name, value } => {
                let parts = self.named_parts(name, *value).into_iter();
                parts.map(|(name, value)| Kind::Param { name, value }).collect()
            }
            Kind::Aux { name, value, place } => {
                let parts = self.named_parts(name, *value).into_iter();
                parts.map(|(name, value)| Kind::Aux { name, value, place: place.clone() }).collect()
            }
            Kind::Mean { field, value } => {
                let parts = self.named_parts(field, *value).into_iter();
                parts.map(|(field, value)| Kind::Mean { field, value }).collect()
            }
            Kind::Source { field, component, value, place } => {
                let source = |(field, value)| Kind::Source {
                    field,
                    component: *component,
                    value,
                    place: *place,
                };
                self.named_parts(field, *value).into_iter().map(source).collect()
            }
            Kind::Exact { field, value } => {
                let parts = self.named_parts(field, *value).into_iter();
                parts.map(|(field, value)| Kind::Exact { field, value }).collect()
            }
            Kind::Manufactured { field, value } => {
                let parts = self.named_parts(field, *value).into_iter();
                parts.map(|(field, value)| Kind::Manufactured { field, value }).collect()
            }
            Kind::Initial { rate, field, value } => {
                let parts = self.named_parts(field, *value).into_iter();
                parts.map(|(field, value)| Kind::Initial { rate: *rate, field, value }).collect()
            }
            Kind::Dirichlet { field, component, normal, value, place } => {
                let parts = match value {
                    Some(value) => self.named_parts(field, *value),
                    None if self.names.fields.contains(&field.name) => Vec::new(),
                    None => return vec![kind.clone()],
                };
                let condition = |(field, value)| {
                    let (component, normal, place) = (*component, normal.clone(), place.clone());
                    Kind::Dirichlet { field, component, normal, value, place }
                };
                if parts.is_empty() {
                    let fields = renamed(field, part_names(&field.name));
                    return fields.map(|field| condition((field, None))).into();
                }
                parts.into_iter().map(|(field, value)| condition((field, Some(value)))).collect()
            }
            Kind::Bound { field, component, normal, side, value, place } => {
                let what = format!("the bound of `{}`", field.name);
                let value = self.real(*value, &what);
                let (field, component, place) = (field.clone(), *component, place.clone());
                let normal = normal.clone();
                vec![Kind::Bound { field, component, normal, side: *side, value, place }]
            }
            Kind::Report { name, value: root } => {
                let value = self.value(*root);
                if value.is_real() {
                    let value = self.parts(self.span(*root)).whole(value.re, None);
                    return vec![Kind::Report { name: name.clone(), value }];
                }
                let values = self.both(*root);
                let report = |(name, value)| Kind::Report { name, value };
                renamed(name, part_names(&name.name)).into_iter().zip(values).map(report).collect()
            }
            Kind::Output { name, value: root, sampling } => {
                let (sampling, value) = (*sampling, self.value(*root));
                if value.is_real() {
                    let value = self.parts(self.span(*root)).whole(value.re, None);
                    return vec![Kind::Output { name: name.clone(), value, sampling }];
                }
                let values = self.both(*root);
                let output = |(name, value)| Kind::Output { name, value, sampling };
                renamed(name, part_names(&name.name)).into_iter().zip(values).map(output).collect()
            }
            Kind::Setting { name, value } => {
                let value = self.real(*value, &format!("`{}`", name.name));
                vec![Kind::Setting { name: name.clone(), value }]
            }
            Kind::Solver(NamedCall { name, arguments, span }) => {
                let arguments = arguments.iter().flat_map(|argument| self.argument(argument));
                let arguments = arguments.collect();
                vec![Kind::Solver(NamedCall { name: name.clone(), arguments, span: *span })]
            }
            kind => vec![kind.clone()],
        }
    }

    /// Returns the arguments of a solver with settings for each part of a complex field.
    fn argument(&mut self, argument: &Argument) -> Vec<Argument> {
        if !self.names.fields.contains(&argument.name.name) {
            let value = self.settings(argument.value);
            return vec![Argument { name: argument.name.clone(), value }];
        }
        let names = renamed(&argument.name, part_names(&argument.name.name));
        names.map(|name| Argument { name, value: argument.value }).into()
    }

    /// Returns the call of an argument with settings for each field: `preconditioner: blocks(E: jacobi)`.
    fn settings(&mut self, value: ExprId) -> ExprId {
        let ExprKind::Call { function, arguments, named } = &self.file.exprs[value].kind else {
            return value;
        };
        if !named.iter().any(|argument| self.names.fields.contains(&argument.name.name)) {
            return value;
        }
        let named = named.iter().flat_map(|argument| {
            if !self.names.fields.contains(&argument.name.name) {
                return vec![argument.clone()];
            }
            let names = renamed(&argument.name, part_names(&argument.name.name));
            names.map(|name| Argument { name, value: argument.value }).into()
        });
        let kind = ExprKind::Call {
            function: function.clone(),
            arguments: arguments.clone(),
            named: named.collect(),
        };
        self.parts(self.span(value)).push(kind)
    }
}
