//! Resolver: declarations are entered, then every name is looked up at its use.

use super::facets::{available, of_facets};
use super::{
    AuxItem, Block, Definition, Entry, ExprContext, FieldItem, MOST_ERRORS, Meaning, Names,
    ParamItem, Uses, subtree,
};
use crate::ast::{self, ExprKind, FormItemKind, Ident};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use crate::suggestions;
use crate::words;

/// Largest number of parameters of a function.
const MOST_PARAMETERS: usize = 64;

/// Name resolution in progress.
pub(super) struct Resolver<'a> {
    pub(super) file: &'a ast::File,
    pub(super) names: Names<'a>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> Resolver<'a> {
    pub(super) fn declare(&mut self, items: &'a [ast::FormItem], region: Option<Block>) {
        for item in items {
            let names = &mut self.names;
            let (name, meaning) = match &item.kind {
                FormItemKind::Field { name, shape, space, tags } => {
                    if region.is_some() {
                        // Its meaning is unknown, so that its uses are not reported.
                        names.repeated.insert(&name.name);
                        let message = "a field cannot be declared in a block";
                        self.diagnostics.push(
                            Diagnostic::new(Code::NotAvailableHere, message)
                                .label(name.span, "a field belongs to the whole form")
                                .help("declare it in the form itself, or data with `aux`"),
                        );
                    }
                    names.fields.push(FieldItem { name, shape: *shape, space: *space, tags });
                    (name, Meaning::Field(names.fields.len() - 1))
                }
                FormItemKind::Aux { name, shape, place } => {
                    names.aux.push(AuxItem { name, shape: *shape, place: *place });
                    (name, Meaning::Aux(names.aux.len() - 1))
                }
                FormItemKind::Param { name, shape, value } => {
                    names.params.push(ParamItem { name, shape: *shape, value: *value });
                    (name, Meaning::Param(names.params.len() - 1))
                }
                FormItemKind::Let { name, value } => {
                    let definition = Definition { name, parameters: None, body: *value, region };
                    names.definitions.push(definition);
                    (name, Meaning::Definition(names.definitions.len() - 1))
                }
                FormItemKind::Fn { name, parameters, body } => {
                    let parameters = Some(parameters.as_slice());
                    names.definitions.push(Definition { name, parameters, body: *body, region });
                    (name, Meaning::Definition(names.definitions.len() - 1))
                }
                FormItemKind::Test { name, field } => {
                    names.tests.push((name, field));
                    (name, Meaning::Test(names.tests.len() - 1))
                }
                FormItemKind::Broken
                | FormItemKind::Start { .. }
                | FormItemKind::Update { .. }
                | FormItemKind::Row { .. }
                | FormItemKind::Residual { .. }
                | FormItemKind::Energy { .. }
                | FormItemKind::Block { .. } => continue,
            };
            self.enter(name, Entry { meaning, region, span: name.span });
        }
    }

    fn enter(&mut self, name: &'a Ident, entry: Entry) {
        if let Some(first) = self.names.entries.get(name.name.as_str()) {
            self.names.repeated.insert(&name.name);
            let message = format!("the name `{}` is declared twice", name.name);
            self.diagnostics.push(
                Diagnostic::new(Code::DuplicateName, message)
                    .label(name.span, "declared again here")
                    .secondary(first.span, "first declared here")
                    .help(if entry.region.is_some() && entry.region != first.region {
                        "names are unique within a form, its blocks included: declare it once in the form itself, or \
                         use two names"
                    } else {
                        "names are unique within a form, its blocks included"
                    }),
            );
        } else {
            self.names.entries.insert(&name.name, entry);
        }
    }

    /// Checks that the parameters of functions shadow nothing, and their number.
    pub(super) fn parameters(&mut self) {
        for definition in &mut self.names.definitions {
            let mut parameters = definition.parameters.unwrap_or_default();
            if parameters.len() > MOST_PARAMETERS {
                let message = format!("a function has at most {MOST_PARAMETERS} parameters");
                self.diagnostics.push(
                    Diagnostic::new(Code::WrongArgumentCount, message)
                        .label(definition.name.span, format!("this has {}", parameters.len()))
                        .help("put them into a vector"),
                );
                parameters = &parameters[..MOST_PARAMETERS];
                definition.parameters = Some(parameters);
            }
            for (i, parameter) in parameters.iter().enumerate() {
                let earlier = parameters[..i].iter().find(|other| other.name == parameter.name);
                let outer = self.names.entries.get(parameter.name.as_str()).map(|entry| entry.span);
                if let Some(first) = earlier.map(|other| other.span).or(outer) {
                    let message = format!("the name `{}` is declared twice", parameter.name);
                    self.diagnostics.push(
                        Diagnostic::new(Code::DuplicateName, message)
                            .label(parameter.span, "declared again here")
                            .secondary(first, "first declared here")
                            .help("nothing shadows: give the parameter another name"),
                    );
                }
            }
        }
    }

    /// Checks the names in parameters and definitions and records their uses.
    pub(super) fn bodies(&mut self, uses: &mut Uses) {
        for param in self.names.params.clone() {
            let place = ExprContext { param: true, ..ExprContext::region(None) };
            let found = self.expression(param.value, place);
            let used = found.into_iter().filter_map(|(meaning, span)| match meaning {
                Meaning::Param(i) => Some((i, span)),
                _ => None,
            });
            uses.params.push(used.collect());
        }
        for definition in self.names.definitions.clone() {
            let parameters = definition.parameters.unwrap_or_default();
            let place = ExprContext { parameters, ..ExprContext::region(definition.region) };
            let found = self.expression(definition.body, place);
            let used = found.into_iter().filter_map(|(meaning, span)| match meaning {
                Meaning::Definition(i) => Some((i, span)),
                _ => None,
            });
            uses.definitions.push(used.collect());
        }
    }

    /// Checks the names in rows, residuals and energies.
    pub(super) fn rows(&mut self, items: &'a [ast::FormItem], region: Option<Block>) {
        for item in items {
            match &item.kind {
                FormItemKind::Row { field, value, .. } => {
                    self.field(field);
                    self.expression(*value, ExprContext::region(region));
                }
                FormItemKind::Test { field, .. } => self.field(field),
                FormItemKind::Residual { value } => {
                    self.expression(
                        *value,
                        ExprContext { weak: true, ..ExprContext::region(region) },
                    );
                }
                FormItemKind::Energy { value } => {
                    self.expression(*value, ExprContext::region(region));
                }
                _ => {}
            }
        }
    }

    fn field(&mut self, name: &Ident) {
        let entry = self.names.entries.get(name.name.as_str());
        if matches!(entry, Some(Entry { meaning: Meaning::Field(_), .. })) {
            return;
        }
        let fields = self.names.fields.iter().map(|field| field.name.name.as_str());
        let diagnostic = match entry {
            Some(entry) => {
                Diagnostic::new(Code::NotAvailableHere, format!("`{}` is no field", name.name))
                    .label(name.span, "a field should stand here")
                    .secondary(entry.span, "declared here as something else")
            }
            None => Diagnostic::new(Code::UnknownName, format!("unknown field `{}`", name.name))
                .label(name.span, "no field has this name"),
        };
        self.diagnostics.push(diagnostic.suggest(&name.name, fields));
    }

    /// Checks the names of one expression; returns those that the form declares.
    pub(super) fn expression(
        &mut self,
        root: ast::ExprId,
        place: ExprContext<'a>,
    ) -> Vec<(Meaning, Span)> {
        let mut used = Vec::new();
        let nodes = subtree(self.file, root);
        let paths = self.paths(&nodes);
        for id in nodes {
            let expr = &self.file.exprs[id];
            // Messages are only composed below the error limit.
            let quiet = self.diagnostics.len() >= MOST_ERRORS;
            if let ExprKind::Name(name) | ExprKind::Call { function: Ident { name, .. }, .. } =
                &expr.kind
                && (self.names.repeated.contains(name.as_str())
                    || self.names.unknown.contains(name))
                && !place.parameters.iter().any(|parameter| parameter.name == *name)
            {
                // It has been reported as ambiguous.
                self.names.broken.insert(id);
                continue;
            }
            let resolved = match &expr.kind {
                ExprKind::Name(name) if quiet => self.quiet(name, place),
                ExprKind::Name(name) => self.name(name, expr.span, place).map_err(Some),
                ExprKind::Call { function, .. }
                    if quiet && self.names.built_in(&function.name).is_none() =>
                {
                    self.quiet(&function.name, place)
                }
                ExprKind::Call { named, .. } if !named.is_empty() => {
                    Err(Some(Box::new(named_argument(&named[0]))))
                }
                ExprKind::Text(_) if paths.contains(&id) => Err(None),
                ExprKind::Text(_) => Err(Some(Box::new(misplaced_string(expr.span)))),
                ExprKind::Interior(..) => Err(Some(Box::new(misplaced_interior(expr.span)))),
                ExprKind::Call { function, arguments, .. } => {
                    self.call(function, arguments.len(), place).map_err(Some)
                }
                _ => continue,
            };
            match resolved {
                Ok(meaning) => used.extend(meaning.map(|meaning| (meaning, expr.span))),
                Err(diagnostic) => {
                    self.names.broken.insert(id);
                    if let Some(Code::UnknownName) = diagnostic.as_ref().map(|found| found.code)
                        && let ExprKind::Name(name)
                        | ExprKind::Call { function: Ident { name, .. }, .. } = &expr.kind
                    {
                        self.names.unknown.insert(name.clone());
                    }
                    self.diagnostics.extend(diagnostic.map(|diagnostic| *diagnostic));
                }
            }
        }
        used
    }

    /// Returns the arguments of `file`, unless the form declares that name: the call is wrong rather than its
    /// arguments.
    fn paths(&self, nodes: &[ast::ExprId]) -> Vec<ast::ExprId> {
        if self.names.entries.contains_key(words::FILE) {
            return Vec::new();
        }
        let calls = nodes.iter().filter_map(|&id| match &self.file.exprs[id].kind {
            ExprKind::Call { function, arguments, .. } if function.name == words::FILE => {
                Some(arguments.as_slice())
            }
            _ => None,
        });
        calls.flatten().copied().collect()
    }

    /// Returns the meaning of a name, without a diagnostic if it has none.
    fn quiet(
        &self,
        name: &str,
        place: ExprContext<'a>,
    ) -> Result<Option<Meaning>, Option<Box<Diagnostic>>> {
        let known = self.names.is_known(name)
            || place.parameters.iter().any(|parameter| parameter.name == name);
        match self.names.entries.get(name) {
            Some(entry) => Ok(Some(entry.meaning)),
            None if known => Ok(None),
            None => Err(None),
        }
    }

    fn name(
        &self,
        name: &str,
        span: Span,
        place: ExprContext<'a>,
    ) -> Result<Option<Meaning>, Box<Diagnostic>> {
        if place.parameters.iter().any(|parameter| parameter.name == name) {
            return Ok(None);
        }
        if self.names.is_known(name) {
            return known(name, span, place).map(|()| None);
        }
        if self.names.built_in(name).is_some() {
            let message = format!("`{name}` is a function and needs arguments");
            return Err(Box::new(
                Diagnostic::new(Code::NotAFunction, message).label(span, "used as a value here"),
            ));
        }
        let entry = self.entry(name, span, place)?;
        if let Meaning::Definition(i) = entry.meaning
            && self.names.definitions[i].parameters.is_some()
        {
            let message = format!("`{name}` is a function and needs arguments");
            return Err(Box::new(
                Diagnostic::new(Code::NotAFunction, message)
                    .label(span, "used as a value here")
                    .secondary(entry.span, "declared as a function here"),
            ));
        }
        Ok(Some(entry.meaning))
    }

    fn call(
        &self,
        function: &Ident,
        given: usize,
        place: ExprContext<'a>,
    ) -> Result<Option<Meaning>, Box<Diagnostic>> {
        let (name, span) = (function.name.as_str(), function.span);
        let count = |wanted: usize| {
            let plural = if wanted == 1 { "" } else { "s" };
            let message = format!("`{name}` takes {wanted} argument{plural}, but this has {given}");
            Diagnostic::new(Code::WrongArgumentCount, message).label(span, "in this call")
        };
        if let Some(wanted) = self.names.built_in(name) {
            if wanted != given {
                return Err(Box::new(count(wanted)));
            }
            return available(name, span, place).map(|()| None);
        }
        let is_value = self.names.is_known(name)
            || place.parameters.iter().any(|parameter| parameter.name == name);
        if is_value {
            let message = format!("`{name}` is no function");
            return Err(Box::new(
                Diagnostic::new(Code::NotAFunction, message).label(span, "called here"),
            ));
        }
        if words::LATER.contains(&name) {
            return Err(Box::new(later_word(name, span)));
        }
        if name == words::FILE && !self.names.entries.contains_key(name) {
            return Err(Box::new(misplaced_file(span)));
        }
        if !self.names.entries.contains_key(name) {
            let message = format!("unknown function `{name}`");
            let declared = self.visible(place).filter(|(_, function)| *function);
            let diagnostic = Diagnostic::new(Code::UnknownName, message)
                .label(span, "no function has this name");
            let meant = nearest(name, declared.map(|(name, _)| name)).is_some();
            return Err(Box::new(match suggestions::function(name).filter(|_| !meant) {
                Some(help) => diagnostic.help(help),
                None => diagnostic.suggest(name, self.functions(place)),
            }));
        }
        let entry = self.entry(name, span, place)?;
        let definition = match entry.meaning {
            Meaning::Definition(i) => self.names.definitions.get(i),
            _ => None,
        };
        match definition.and_then(|definition| definition.parameters) {
            Some(parameters) if parameters.len() == given => Ok(Some(entry.meaning)),
            Some(parameters) => {
                Err(Box::new(count(parameters.len()).secondary(entry.span, "declared here")))
            }
            None => Err(Box::new(
                Diagnostic::new(Code::NotAFunction, format!("`{name}` is no function"))
                    .label(span, "called here")
                    .secondary(entry.span, "declared here as a value"),
            )),
        }
    }

    /// Returns the declaration of a name that may be used at `place`.
    fn entry(
        &self,
        name: &str,
        span: Span,
        place: ExprContext<'a>,
    ) -> Result<Entry, Box<Diagnostic>> {
        let Some(&entry) = self.names.entries.get(name) else {
            if words::LATER.contains(&name) {
                return Err(Box::new(later_word(name, span)));
            }
            let message = format!("unknown name `{name}`");
            // The imaginary unit is one letter from the unit matrix.
            let found = nearest(name, self.values(place)).filter(|_| name != "i");
            let known = suggestions::value(name, !place.param).filter(|_| found.is_none());
            let help = found.map(|found| format!("did you mean `{found}`?"));
            let help = help.or(known.map(str::to_owned));
            return Err(Box::new(
                Diagnostic::new(Code::UnknownName, message)
                    .label(span, "not declared in this form")
                    .help_if(help.or_else(|| self.test_help(name, place))),
            ));
        };
        if entry.region.is_some() && entry.region != place.region {
            let message = format!("`{name}` belongs to a block and is not known here");
            return Err(Box::new(
                Diagnostic::new(Code::NotAvailableHere, message)
                    .label(span, "used outside its block")
                    .secondary(entry.span, "declared here")
                    .help("declare it in the form itself to use it everywhere"),
            ));
        }
        if place.param && !matches!(entry.meaning, Meaning::Param(_)) {
            let message = format!("a parameter cannot be computed from `{name}`");
            let (label, help) = match entry.meaning {
                Meaning::Definition(_) => (
                    "may differ from point to point",
                    format!("declare `param {name} = …;`, or use numbers, `pi`, `dim`"),
                ),
                _ => (
                    "differs from point to point",
                    "use numbers, `pi`, `dim` and other parameters".to_owned(),
                ),
            };
            return Err(Box::new(
                Diagnostic::new(Code::NotAvailableHere, message)
                    .label(span, label)
                    .secondary(entry.span, "declared here")
                    .help(help),
            ));
        }
        Ok(entry)
    }

    /// Returns help for an unknown name in a weak form, which may be an undeclared test function.
    fn test_help(&self, name: &str, place: ExprContext<'a>) -> Option<String> {
        let tested =
            |field: &Ident| self.names.tests.iter().any(|(_, tested)| tested.name == field.name);
        let field = self.names.fields.iter().find(|field| !tested(field.name))?;
        let help = format!("declare a test function: `test {name} for {};`", field.name.name);
        place.weak.then_some(help)
    }

    fn visible(&self, place: ExprContext<'a>) -> impl Iterator<Item = (&'a str, bool)> {
        let visible = move |entry: &Entry| {
            (entry.region.is_none() || entry.region == place.region)
                && (!place.param || matches!(entry.meaning, Meaning::Param(_)))
        };
        self.names.entries.iter().filter(move |(_, entry)| visible(entry)).map(|(&name, entry)| {
            let function = matches!(entry.meaning, Meaning::Definition(i)
                if self.names.definitions[i].parameters.is_some());
            (name, function)
        })
    }

    fn values(&self, place: ExprContext<'a>) -> impl Iterator<Item = &'a str> {
        let declared = self.visible(place).filter(|(_, function)| !function).map(|(name, _)| name);
        let parameters = place.parameters.iter().map(|parameter| parameter.name.as_str());
        let known = words::KNOWN.iter().copied().filter(move |name| match *name {
            "pi" | "dim" | "I" => true,
            "n" => place.is_of_facets(),
            _ => !place.param,
        });
        let extent = place.is_of_facets().then_some(words::EXTENT);
        declared.chain(parameters).chain(known).chain(extent)
    }

    fn functions(&self, place: ExprContext<'a>) -> impl Iterator<Item = &'a str> {
        let declared = self.visible(place).filter(|(_, function)| *function).map(|(name, _)| name);
        let facets = place.is_of_facets().then_some(words::FACET_FUNCTIONS);
        declared.chain(words::FUNCTIONS.iter().chain(facets.into_iter().flatten()).copied())
    }
}

/// Returns the diagnostic for a string outside of a function that takes one.
fn misplaced_string(span: Span) -> Diagnostic {
    Diagnostic::new(Code::NotAvailableHere, "a string is no value here")
        .label(span, "a string")
        .help("strings are tags and files: `on: \"tag\"` in a report's `integral`")
}

/// Returns the diagnostic for facets that stand in the place of a value.
fn misplaced_interior(span: Span) -> Diagnostic {
    Diagnostic::new(Code::NotAvailableHere, "`interior` is no value")
        .label(span, "the facets between cells")
        .help("write `on: interior` in a report's `integral`")
}

/// Returns the diagnostic for a file that cannot define a value.
fn misplaced_file(span: Span) -> Diagnostic {
    let message =
        "`file` gives the whole value of `aux` or `initial` in a problem, and nothing else";
    Diagnostic::new(Code::MisplacedFile, message).label(span, "no file can stand here").help(
        "declare data in the form, `aux a: scalar on cells;`, give it in the problem, `aux a = file(\"a.npy\");`, and \
         compute with `a`",
    )
}

/// Returns the diagnostic for a named argument of a function that has none.
fn named_argument(argument: &ast::Argument) -> Diagnostic {
    let message = format!("no argument is called `{}` here", argument.name.name);
    Diagnostic::new(Code::BadArgument, message)
        .label(argument.name.span, "an argument with a name")
        .help("measures of a `report` have such arguments: `integral(f, on: \"tag\")`")
}

/// Checks that a known name has a value at `place`.
fn known(name: &str, span: Span, place: ExprContext<'_>) -> Result<(), Box<Diagnostic>> {
    let settled = place.settled && matches!(name, "t" | "k");
    if place.param && !settled && !matches!(name, "pi" | "dim" | "I") {
        let message = format!("a parameter cannot be computed from `{name}`");
        return Err(Box::new(
            Diagnostic::new(Code::NotAvailableHere, message)
                .label(span, "not known when parameters are set")
                .help("use numbers, `pi`, `dim` and other parameters"),
        ));
    }
    if name == "n" && !place.is_of_facets() {
        return Err(Box::new(
            Diagnostic::new(Code::NotAvailableHere, "`n` is the normal of a facet")
                .label(span, "there is no normal inside a cell")
                .help("use it, and what is computed from it, in an `on boundary` or `on interior` block"),
        ));
    }
    if name == words::EXTENT && !place.is_of_facets() {
        return Err(Box::new(of_facets("`hn` is the extent of a cell from a facet", span)));
    }
    Ok(())
}

/// Returns the diagnostic for a word reserved for later versions.
fn later_word(name: &str, span: Span) -> Diagnostic {
    let help = match name {
        "normal" => "the outward unit normal of a boundary facet is `n`",
        "mean" => "`mean p = 0;` belongs into a problem",
        _ => suggestions::BETWEEN_CELLS,
    };
    Diagnostic::new(Code::LaterWord, format!("`{name}` comes later"))
        .label(span, "kept for later versions of the language")
        .help(help)
}
