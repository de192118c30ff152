//! Rows, weak forms and energies of each region: all are converted to f0 and f1.

use super::expression::Checker;
use super::linear::{linear_in_tests, offences};
use super::names::{Block, ExprContext, blocks, subtree};
use super::{declare, shapes, sides, supports};
use crate::ast::{self, BlockRegion, FormItem, FormItemKind, RowKind, SideWord};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::differentiate::adjoint;
use crate::form::{Expr, ExprId, Row, Shape, Terminal, Type};
use crate::point::{InteriorFacets, Location, Region, Side, Space};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Creates the integrals of a form.
pub(super) fn integrals(checker: &mut Checker<'_>, form: &ast::Form) {
    if checker.form.fields.is_empty() && !has_broken(&form.items) {
        let message = format!("the form `{}` has no field", form.name.name);
        checker.report(
            Diagnostic::new(Code::NoField, message)
                .label(form.name.span, "there is nothing to solve for")
                .help("declare the unknown: `field u: scalar;`"),
        );
    }
    let mut written = RegionContents::default();
    let mut interior = Vec::new();
    region(checker, &form.items, (Region::Cells, None), &mut written);
    for (block, tags, items) in blocks(form) {
        let of = under(block.region, tags);
        let before = checker.form.integrals.len();
        region(checker, items, (of, Some(block)), &mut written);
        if block.region.is_interior() && checker.form.integrals.len() > before {
            interior.extend(physics(items).next().map(|item| (before, item.span)));
        }
    }
    if !has_broken(&form.items) && !written.broken {
        missing(checker, form, &written);
    }
    if !checker.has_errors() {
        cellwise_gradients(checker, form);
    }
    if !checker.has_errors() {
        sides::properties(checker, &interior);
    }
}

/// Checks that fields in Hcurl and Hdiv with gradients have terms between cells.
fn cellwise_gradients(checker: &mut Checker<'_>, form: &ast::Form) {
    let fields = form.items.iter().filter_map(|item| match &item.kind {
        FormItemKind::Field { name, .. } => Some(name),
        _ => None,
    });
    for (field, name) in fields.enumerate() {
        let Some(space) = checker.form.fields.get(field).map(|field| field.space) else { continue };
        let integrals = checker.form.integrals.iter();
        let rows =
            integrals.flat_map(|integral| integral.rows.iter().map(move |row| (integral, row)));
        let own = rows.filter(|(_, row)| row.field == field);
        let is_joined = own.clone().any(|(integral, _)| integral.region.is_interior());
        if !space.is_piola() || is_joined {
            continue;
        }
        let read = checker
            .form
            .terminals(&checker.form.roots())
            .any(|terminal| matches!(terminal, Terminal::FieldHessian(of, _) if of == field));
        if read || own.clone().any(|(_, row)| row.f2.is_some()) {
            let diagnostic = shapes::without_terms_between(&name.name, space, name.span);
            checker.report(diagnostic);
        }
    }
}

/// Returns the region of a block with tags.
pub(super) fn under(block: BlockRegion, tags: &[ast::Text]) -> Region {
    let names = declare::tags(tags);
    match block {
        BlockRegion::Cells => Region::CellsUnder(names),
        BlockRegion::Boundary => Region::Facets(names),
        BlockRegion::Interior if names.is_empty() => Region::Interior(InteriorFacets::All),
        BlockRegion::Interior => Region::Interior(InteriorFacets::Under(names)),
        BlockRegion::OrderedInterior => {
            let ends = [0, tags.len().saturating_sub(1)];
            let ends = ends.map(|i| tags.get(i).map_or_else(String::new, |tag| tag.text.clone()));
            Region::Interior(InteriorFacets::Between(ends))
        }
    }
}

/// Returns the rows, residuals and energies among items.
fn physics(items: &[FormItem]) -> impl Iterator<Item = &FormItem> {
    use FormItemKind::{Energy, Residual, Row};
    let is_physics =
        |item: &&FormItem| matches!(item.kind, Row { .. } | Residual { .. } | Energy { .. });
    items.iter().filter(is_physics)
}

/// The contents of the regions so far.
#[derive(Default)]
struct RegionContents {
    /// Fields that have a row.
    fields: BTreeSet<usize>,
    /// True if something is broken, so that a row may only seem to be missing.
    broken: bool,
    /// The notation of a weak form or an energy, if there is one.
    whole: Option<RegionNotation>,
}

fn has_broken(items: &[FormItem]) -> bool {
    items.iter().any(|item| match &item.kind {
        FormItemKind::Broken => true,
        FormItemKind::Block { items, .. } => {
            items.iter().any(|item| matches!(item.kind, FormItemKind::Broken))
        }
        _ => false,
    })
}

fn missing(checker: &mut Checker<'_>, form: &ast::Form, written: &RegionContents) {
    for (i, field) in checker.names.fields.iter().enumerate() {
        if written.fields.contains(&i) || checker.names.repeated.contains(field.name.name.as_str())
        {
            continue;
        }
        let name = &field.name.name;
        let mut diagnostic =
            Diagnostic::new(Code::MissingRow, missing_message(form, written, name))
                .label(field.name.span, "nothing determines this field");
        let test = checker.names.tests.iter().find(|(_, of)| of.name == *name);
        diagnostic = match (written.whole, test) {
            (Some(RegionNotation::Weak), Some((test, _))) => diagnostic
                .secondary(test.span, "its test function stands in no term")
                .help(format!("add the terms with `{}` to the residual", test.name)),
            (Some(RegionNotation::Weak), None) => {
                let free = ["v", "q", "w", "r", "s", "y", "z"];
                let free = free.iter().find(|free| !checker.names.entries.contains_key(*free));
                let test = free.unwrap_or(&"TEST");
                diagnostic.help(format!(
                    "declare `test {test} for {name};` and add the terms with `{test}` to the residual"
                ))
            }
            (Some(RegionNotation::Energy), _) => {
                diagnostic.help(format!("let the energy depend on `{name}`, or remove the field"))
            }
            _ => diagnostic.help(format!("write `f0[{name}] = …;` or `f1[{name}] = …;`")),
        };
        checker.report(diagnostic);
    }
}

fn missing_message(form: &ast::Form, written: &RegionContents, name: &str) -> String {
    match written.whole {
        Some(RegionNotation::Weak) => {
            format!("no term of the residual has a test function of `{name}`")
        }
        Some(RegionNotation::Energy) => format!("the energy does not depend on `{name}`"),
        _ => format!("the field `{name}` has no row in `{}`", form.name.name),
    }
}

/// The three notations of a region's physics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionNotation {
    Pointwise,
    Weak,
    Energy,
}

impl RegionNotation {
    fn name(self) -> &'static str {
        match self {
            Self::Pointwise => "pointwise rows (`f0`, `f1`)",
            Self::Weak => "a weak form (`residual`)",
            Self::Energy => "an energy (`energy`)",
        }
    }
}

/// The physics of a region so far.
#[derive(Default)]
struct RegionPhysics {
    rows: BTreeMap<(usize, Side), Row>,
    /// The locations of pointwise rows.
    spans: BTreeMap<(usize, RowKind, Option<SideWord>), Span>,
    /// The location of the residual or the energy.
    whole: Option<Span>,
    energy: Option<ExprId>,
}

fn region(
    checker: &mut Checker<'_>,
    items: &[FormItem],
    (region, block): (Region, Option<Block>),
    written: &mut RegionContents,
) {
    let mut first: Option<(RegionNotation, Span)> = None;
    let mut physics = RegionPhysics::default();
    for item in items {
        let notation = match item.kind {
            FormItemKind::Row { .. } => RegionNotation::Pointwise,
            FormItemKind::Residual { .. } => RegionNotation::Weak,
            FormItemKind::Energy { .. } => RegionNotation::Energy,
            _ => continue,
        };
        let (other, span) = *first.get_or_insert((notation, item.span));
        if other != notation {
            written.broken = true;
            let message = format!("{} beside {} in one region", notation.name(), other.name());
            checker.report(
                Diagnostic::new(Code::MixedWays, message)
                    .label(item.span, "this is one way of writing the physics")
                    .secondary(span, "this is another")
                    .help("use one of the three ways in each region"),
            );
            continue;
        }
        match item.kind {
            FormItemKind::Residual { value } | FormItemKind::Energy { value } => {
                physics.add_whole(checker, (notation, item.span), value, block, written);
            }
            _ => physics.add_row(checker, item, block, written),
        }
    }
    let RegionPhysics { rows, energy, .. } = physics;
    if rows.is_empty() && energy.is_none() {
        return;
    }
    let exprs = &checker.form.exprs;
    let nonzero = |value: Option<ExprId>| value.filter(|&value| !exprs.is_zero(value));
    let rows = rows
        .into_values()
        .map(|row| row.map(nonzero))
        .filter(|row| !row.is_empty())
        .collect::<Vec<Row>>();
    if let Some(block) = block.filter(|block| block.region.is_of_facets()) {
        data_at_points(checker, (items, block.region), &rows, energy);
    }
    let parts = supports::split(checker, items, (region, block), rows, energy);
    checker.form.integrals.extend(parts);
}

impl RegionPhysics {
    /// Adds `f0[u] = …` or `f1[u] = …`.
    fn add_row(
        &mut self,
        checker: &mut Checker<'_>,
        item: &FormItem,
        block: Option<Block>,
        written: &mut RegionContents,
    ) {
        let FormItemKind::Row { row, row_span, side, field, value: tree } = &item.kind else {
            return;
        };
        let value = checker.expression(*tree, ExprContext::region(block));
        let Some(i) = checker.field(&field.name) else {
            written.broken = true;
            return;
        };
        written.fields.insert(i);
        if checker.names.repeated.contains(field.name.as_str()) {
            return;
        }
        let word = side.map(|(word, _)| word);
        if let Some(before) = self.spans.insert((i, *row, word), item.span) {
            let tested = match word {
                Some(word) => format!("{}({})", word.name(), field.name),
                None => field.name.clone(),
            };
            let part = format!("{}[{tested}]", row_name(*row));
            report_twice(checker, &part, item.span, before);
            return;
        }
        let sides = sides::of_row(checker, (i, *row, *row_span), *side, block);
        if let (Some(value), Some(sides)) = (value, sides)
            && row_fits(checker, (i, *row), (*tree, value), *row_span)
            && sides::has_one_value(checker, (*tree, value), block)
        {
            self.add_sides(checker, (i, *row), sides, value);
        }
    }

    /// Adds the value of a row to those of its sides.
    fn add_sides(
        &mut self,
        checker: &mut Checker<'_>,
        (field, row): (usize, RowKind),
        sides: &[(Side, f64)],
        value: ExprId,
    ) {
        let exprs = &mut checker.form.exprs;
        for &(side, factor) in sides {
            let entry = self.rows.entry((field, side));
            let entry = entry.or_insert(Row::empty(field, side));
            let place = match row {
                RowKind::F0 => &mut entry.f0,
                RowKind::F1 => &mut entry.f1,
            };
            // Without a factor the expressions keep their numbers.
            let own = if factor == 1.0 {
                Ok(value)
            } else {
                let factor = exprs.constant(factor);
                exprs.mul(factor, value)
            };
            let sum = match *place {
                Some(before) => own.and_then(|own| exprs.add(before, own)),
                None => own,
            };
            *place = Some(sum.expect("values of one row should have one shape"));
        }
    }

    /// Adds the rows of a residual or an energy.
    fn add_whole(
        &mut self,
        checker: &mut Checker<'_>,
        (notation, item): (RegionNotation, Span),
        tree: ast::ExprId,
        block: Option<Block>,
        written: &mut RegionContents,
    ) {
        if let Some(before) = self.whole.replace(item) {
            let word = if notation == RegionNotation::Weak { "residual" } else { "energy" };
            report_twice(checker, &format!("`{word}`"), item, before);
            return;
        }
        let span = checker.span(tree);
        let value = checker.expression(tree, ExprContext::region(block));
        let Some(value) = value.filter(|&value| is_scalar(checker, notation, value, span)) else {
            written.broken = true;
            return;
        };
        written.whole = Some(notation);
        if !sides::has_one_value(checker, (tree, value), block) {
            written.broken = true;
            return;
        }
        let Some(rows) = derived(checker, notation, (tree, value), block) else {
            written.broken = true;
            return;
        };
        written.fields.extend(rows.iter().map(|row| row.field));
        self.rows.extend(rows.into_iter().map(|row| ((row.field, row.side), row)));
        self.energy = (notation == RegionNotation::Energy).then_some(value);
    }
}

/// Reports a part of the physics that a region has twice.
fn report_twice(checker: &mut Checker<'_>, part: &str, again: Span, before: Span) {
    checker.report(
        Diagnostic::new(Code::DuplicateRow, format!("{part} is given twice"))
            .label(again, "given again here")
            .secondary(before, "first given here")
            .help("add the two"),
    );
}

/// Reports data at the points of cells that a block of facets reads.
fn data_at_points(
    checker: &mut Checker<'_>,
    (items, region): (&[FormItem], BlockRegion),
    rows: &[Row],
    energy: Option<ExprId>,
) {
    let form = &checker.form;
    let roots: Vec<ExprId> = rows.iter().flat_map(|row| row.factors()).chain(energy).collect();
    let parts = form.exprs.reachable_in_order(&roots);
    let read: BTreeSet<usize> = parts
        .into_iter()
        .filter_map(|part| match form.exprs.expr(part) {
            Expr::Terminal(Terminal::Aux(i, _)) => Some(*i),
            _ => None,
        })
        .filter(|&i| form.aux[i].location == Location::Points)
        .collect();
    let names: Vec<(String, Shape)> = read
        .into_iter()
        .map(|i| (form.aux[i].name.clone(), Shape::from(form.aux[i].shape)))
        .collect();
    for (name, shape) in names {
        let inside = |span: Span| {
            items.iter().any(|item| item.span.start <= span.start && span.end <= item.span.end)
        };
        let says = |expr: &&ast::Expr| {
            matches!(&expr.kind, ast::ExprKind::Name(said) if *said == name) && inside(expr.span)
        };
        let said = checker.file.exprs.iter().find(says).map(|expr| expr.span);
        let rows = physics(items).next();
        let (Some(span), here) = (said.or(rows.map(|item| item.span)), said.is_some()) else {
            continue;
        };
        let facets = if region.is_interior() { "facets" } else { "the boundary" };
        let message = format!("`{name}` lies at the points of cells and has no values on {facets}");
        let label = if here { "" } else { "read here, by what is defined outside the block" };
        let shape = match shape.rank() {
            0 => "scalar",
            1 => "vector",
            _ => "matrix",
        };
        checker.report(
            Diagnostic::new(Code::NotAvailableHere, message)
                .label(span, label)
                .help(format!("declare it at nodes: `aux {name}: {shape} on nodes;`")),
        );
    }
}

fn row_name(row: RowKind) -> &'static str {
    match row {
        RowKind::F0 => "f0",
        RowKind::F1 => "f1",
    }
}

/// Checks that a row's value has the shape of its test factor, and contains no test function.
fn row_fits(
    checker: &mut Checker<'_>,
    (field, row): (usize, RowKind),
    (written, value): (ast::ExprId, ExprId),
    row_span: Span,
) -> bool {
    let span = checker.span(written);
    if checker.names.fields[field].shape.is_none() {
        return false;
    }
    let terminal = match row {
        RowKind::F0 => Terminal::Field(field, None),
        RowKind::F1 => Terminal::FieldGradient(field, None),
    };
    let Some(expected) = checker.form.shape_of(terminal) else { return false };
    let found = checker.form.exprs.ty(value);
    if found != Type::Tensor(expected) {
        let name = &checker.names.fields[field].name.name;
        let of = match row {
            RowKind::F0 => name.clone(),
            RowKind::F1 => format!("{}({name})", checker.form.fields[field].space.derivative()),
        };
        let message = format!(
            "{}[{name}] must have the shape of {of}, {expected}, but this is {found}",
            row_name(row)
        );
        checker.report(
            Diagnostic::new(Code::WrongShape, message)
                .label(span, format!("this is {found}"))
                .secondary(row_span, format!("{expected} is expected"))
                .help_if(row_help(row, checker.form.fields[field].space, expected, found)),
        );
        return false;
    }
    no_tests(checker, row_name(row), (written, value))
}

fn row_help(row: RowKind, space: Space, expected: Shape, found: Type) -> Option<&'static str> {
    let Type::Tensor(found) = found else {
        return Some("`if c { 1 } else { 0 }` makes a number of a condition");
    };
    match (space, row) {
        (Space::Hcurl(_), RowKind::F1) => {
            return Some(
                "`f1` is tested against `curl(v)`: what is tested against `v` belongs into `f0`",
            );
        }
        (Space::Hdiv(_), RowKind::F1) => {
            return Some(
                "`f1` is tested against `div(v)`: what is tested against `v` belongs into `f0`",
            );
        }
        _ => {}
    }
    match (row, expected.rank(), found.rank()) {
        (RowKind::F1, _, 0) if expected.rank() == 2 => Some("perhaps `… * I` is meant"),
        (RowKind::F1, a, b) if a == b + 1 => Some("perhaps its gradient is meant"),
        (RowKind::F0, a, b) if b == a + 1 => {
            Some("what is tested against the gradient belongs into `f1`")
        }
        _ => None,
    }
}

fn is_scalar(
    checker: &mut Checker<'_>,
    notation: RegionNotation,
    value: ExprId,
    span: Span,
) -> bool {
    let found = checker.form.exprs.ty(value);
    if found == Type::Tensor(Shape::SCALAR) {
        return true;
    }
    let word = if notation == RegionNotation::Weak { "a residual" } else { "an energy" };
    checker.report(
        Diagnostic::new(Code::WrongShape, format!("{word} is a scalar, but this is {found}"))
            .label(span, format!("this is {found}"))
            .help("`dot` and `inner` contract to a scalar"),
    );
    false
}

fn no_tests(
    checker: &mut Checker<'_>,
    place: &str,
    (written, value): (ast::ExprId, ExprId),
) -> bool {
    let test = terminals(checker, value).find_map(|terminal| match terminal {
        Terminal::Test(i, _) | Terminal::TestGradient(i, _) | Terminal::TestHessian(i, _) => {
            Some(i)
        }
        _ => None,
    });
    let Some(field) = test else { return true };
    let name = checker.test_name(field);
    let message = format!("`{place}` cannot contain the test function `{name}`");
    // Its location, unless it comes with a name for a larger expression.
    let file = checker.file;
    let here = subtree(file, written)
        .into_iter()
        .find(|&id| matches!(&file.exprs[id].kind, ast::ExprKind::Name(found) if *found == name));
    let diagnostic = Diagnostic::new(Code::NotAvailableHere, message);
    let diagnostic = match here {
        Some(id) => diagnostic.label(checker.span(id), "a test function"),
        None => diagnostic.label(checker.span(written), format!("`{name}` is in this")),
    };
    checker.report(diagnostic.help("test functions are for `residual = …;`"));
    false
}

/// Checks that an energy has no time derivatives.
fn no_rates(checker: &mut Checker<'_>, (written, value): (ast::ExprId, ExprId)) -> bool {
    let rate = terminals(checker, value)
        .find(|terminal| matches!(terminal, Terminal::Rate(..) | Terminal::RateGradient(..)));
    let Some(rate) = rate else { return true };
    let message = format!("an energy cannot contain `{}`", checker.form.terminal_name(rate));
    let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
        .label(checker.span(written), "a time derivative is in this")
        .help("write the rows, `f0[u] = dt(u);`, or a weak form, `residual = dt(u) * v;`");
    checker.report(diagnostic);
    false
}

fn terminals(checker: &Checker<'_>, value: ExprId) -> impl Iterator<Item = Terminal> {
    let exprs = &checker.form.exprs;
    exprs.reachable_in_order(&[value]).into_iter().filter_map(|id| match exprs.expr(id) {
        Expr::Terminal(terminal) => Some(*terminal),
        _ => None,
    })
}

/// Computes f0, f1 and f2 of a weak form or an energy.
fn derived(
    checker: &mut Checker<'_>,
    notation: RegionNotation,
    (written, value): (ast::ExprId, ExprId),
    block: Option<Block>,
) -> Option<Vec<Row>> {
    let span = checker.span(written);
    if notation == RegionNotation::Energy && !no_tests(checker, "energy", (written, value)) {
        return None;
    }
    if notation == RegionNotation::Energy && !no_rates(checker, (written, value)) {
        return None;
    }
    if notation == RegionNotation::Weak && !linear_in_tests(&checker.form.exprs, value) {
        for diagnostic in offences(checker, written, block) {
            checker.report(diagnostic);
        }
        return None;
    }
    let wanted = |terminal: Terminal| match notation {
        RegionNotation::Weak => matches!(
            terminal,
            Terminal::Test(..) | Terminal::TestGradient(..) | Terminal::TestHessian(..)
        ),
        _ => matches!(
            terminal,
            Terminal::Field(..) | Terminal::FieldGradient(..) | Terminal::FieldHessian(..)
        ),
    };
    let parts = match adjoint(&mut checker.form.exprs, value, wanted) {
        Ok(parts) => parts,
        Err(error) => {
            checker.report_build(&error, span);
            return None;
        }
    };
    let mut rows: BTreeMap<(usize, Side), Row> = BTreeMap::new();
    for (terminal, part) in parts {
        let (Terminal::Field(field, side)
        | Terminal::Test(field, side)
        | Terminal::FieldGradient(field, side)
        | Terminal::TestGradient(field, side)
        | Terminal::FieldHessian(field, side)
        | Terminal::TestHessian(field, side)) = terminal
        else {
            continue;
        };
        // Values in continuous spaces count as those of the inside.
        let side = side.unwrap_or_default();
        let row = rows.entry((field, side)).or_insert(Row::empty(field, side));
        match terminal {
            Terminal::Field(..) | Terminal::Test(..) => row.f0 = Some(part),
            Terminal::FieldHessian(..) | Terminal::TestHessian(..) => row.f2 = Some(part),
            _ => row.f1 = Some(part),
        }
    }
    Some(rows.into_values().collect())
}
