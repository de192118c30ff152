//! Fields on a part of the mesh: their rows over all cells are over the cells on which they live, and a region reads
//! them only there.

use super::expression::Checker;
use super::names::Block;
use crate::ast::{self, FormItem};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{ExprId, Form, Integral, Row, Terminal};
use crate::point::{InteriorFacets, Region, Side};
use crate::source::Span;

/// Returns the integrals of a region: one for each set of cells on which fields of its rows live.
pub(super) fn split(
    checker: &mut Checker<'_>,
    items: &[FormItem],
    (region, block): (Region, Option<Block>),
    rows: Vec<Row>,
    energy: Option<ExprId>,
) -> Vec<Integral> {
    let mut parts: Vec<(Region, Vec<Row>)> = Vec::new();
    for row in rows {
        let own = of_field(&checker.form, &region, row.field);
        match parts.iter_mut().find(|(region, _)| *region == own) {
            Some((_, rows)) => rows.push(row),
            None => parts.push((own, vec![row])),
        }
    }
    if parts.is_empty() {
        parts.push((region, Vec::new()));
    }
    // The cells of all fields come first.
    parts.sort_by_key(|(region, _)| matches!(region, Region::CellsUnder(_)));
    for (region, rows) in &parts {
        check(checker, items, (region, block), rows, energy);
    }
    let of_part = |(region, rows)| Integral { region, rows, action: Vec::new(), energy };
    parts.into_iter().map(of_part).collect()
}

/// Returns the part of a region on which a field lives, if its cells are all cells.
fn of_field(form: &Form, region: &Region, field: usize) -> Region {
    let cells = &form.fields[field].cells;
    match region {
        Region::Cells if !cells.is_empty() => Region::CellsUnder(cells.clone()),
        Region::Interior(InteriorFacets::All) if !cells.is_empty() => {
            Region::Interior(InteriorFacets::Within(cells.clone()))
        }
        _ => region.clone(),
    }
}

/// Returns whether a field on cells with these tags has a value, or derivatives, on a side of a region. Facets of the
/// boundary are looked up in the mesh.
pub(crate) fn is_on(region: &Region, side: Option<Side>, cells: &[String], value: bool) -> bool {
    let all = |tags: &[String]| tags.iter().all(|tag| cells.contains(tag));
    let [inside, outside] = match region {
        _ if cells.is_empty() => return true,
        Region::Cells => return false,
        Region::Facets(_) => return true,
        Region::CellsUnder(tags) => return all(tags),
        Region::Interior(InteriorFacets::All | InteriorFacets::Under(_)) => return false,
        Region::Interior(InteriorFacets::Within(tags)) => return all(tags),
        Region::Interior(InteriorFacets::Between(ends)) => {
            [0, 1].map(|end| cells.contains(&ends[end]))
        }
    };
    match side {
        // Values of continuous fields are those of both cells.
        None if value => inside || outside,
        None => inside && outside,
        Some(Side::Inside) => inside,
        Some(Side::Outside) => outside,
    }
}

/// Returns the cells on which all fields of an expression live; `None` if no tag names some.
pub(crate) fn cells_of(form: &Form, value: ExprId) -> Option<Region> {
    let roots = [value];
    let fields = form.terminals(&roots).filter_map(|terminal| match terminal {
        Terminal::Field(field, _)
        | Terminal::FieldGradient(field, _)
        | Terminal::FieldHessian(field, _)
        | Terminal::Rate(field, ..)
        | Terminal::RateGradient(field, ..) => Some(field),
        _ => None,
    });
    let mut common: Option<Vec<String>> = None;
    for cells in fields.map(|field| &form.fields[field].cells).filter(|cells| !cells.is_empty()) {
        common = Some(match common {
            None => cells.clone(),
            Some(common) => common.into_iter().filter(|tag| cells.contains(tag)).collect(),
        });
    }
    match common {
        None => Some(Region::Cells),
        Some(common) => (!common.is_empty()).then_some(Region::CellsUnder(common)),
    }
}

/// Reports what a region reads or tests where it does not live.
fn check(
    checker: &mut Checker<'_>,
    items: &[FormItem],
    (region, block): (&Region, Option<Block>),
    rows: &[Row],
    energy: Option<ExprId>,
) {
    let form = &checker.form;
    if form.fields.iter().all(|field| field.cells.is_empty()) {
        return;
    }
    let is_on = |field: usize, side, value| is_on(region, side, &form.fields[field].cells, value);
    let tested = rows.iter().find(|row| {
        let value = row.f1.is_none() && row.f2.is_none();
        let is_one = value && form.fields[row.field].space.is_continuous();
        !is_on(row.field, Some(row.side).filter(|_| !is_one), value)
    });
    let roots: Vec<ExprId> = rows.iter().flat_map(|row| row.factors()).chain(energy).collect();
    let read = form.terminals(&roots).find_map(|terminal| {
        let (field, value) = match terminal {
            Terminal::Field(field, _) | Terminal::Rate(field, ..) => (field, true),
            Terminal::FieldGradient(field, _)
            | Terminal::FieldHessian(field, _)
            | Terminal::RateGradient(field, ..) => (field, false),
            _ => return None,
        };
        (!is_on(field, terminal.side(), value)).then_some(field)
    });
    let found = tested.map(|row| (row.field, "tests")).or(read.map(|field| (field, "reads")));
    let Some((field, what)) = found else { return };
    let (name, cells) = (form.fields[field].name.clone(), form.fields[field].cells.clone());
    let place = match region {
        Region::Cells => "all cells".to_owned(),
        Region::CellsUnder(tags) => format!("the cells {}", quoted(tags)),
        region => format!("`{region}`"),
    };
    let inside = |span: Span| {
        items.iter().any(|item| {
            !matches!(item.kind, ast::FormItemKind::Block { .. })
                && item.span.start <= span.start
                && span.end <= item.span.end
        })
    };
    let names = |expr: &&ast::Expr| {
        matches!(&expr.kind, ast::ExprKind::Name(said) if *said == name) && inside(expr.span)
    };
    let declared = checker.names.fields[field].name.span;
    let span = checker.file.exprs.iter().find(names).map(|expr| expr.span);
    let message = format!("{place} {what} `{name}`, which lives on {}", quoted(&cells));
    let mut diagnostic = Diagnostic::new(Code::NotAvailableHere, message);
    diagnostic = match span {
        Some(span) => diagnostic
            .label(span, "it has no value in all of these cells")
            .secondary(declared, "its cells are named here"),
        None => diagnostic.label(declared, "its cells are named here"),
    };
    checker.report(diagnostic.help(match block.is_some_and(|block| block.region.is_interior()) {
        true => format!(
            "name the cells of both sides, `on interior from \"a\" to \"b\" {{ … }}`, or \
             `inside`, `outside` of which one is in {}",
            quoted(&cells)
        ),
        false => format!("write the term in a block, `on cells {} {{ … }}`", quoted(&cells)),
    }));
}

/// Returns tags as the language writes them.
fn quoted(tags: &[String]) -> String {
    let tags: Vec<String> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
    tags.join(", ")
}
