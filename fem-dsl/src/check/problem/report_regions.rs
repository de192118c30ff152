//! Regions of reported integrals, `on: "tag"` and `on: interior`, and values of integrands between cells.

use super::conditions::known_tags;
use super::{Checker, MeshChoice, Piece};
use crate::ast::{self, BlockRegion, ExprId, ExprKind};
use crate::check::expression::Checker as Expressions;
use crate::check::names::Block;
use crate::check::{regions, sides, supports};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{self, Form, Integral, Row};
use crate::interior::asymmetric;
use crate::point::{self, Degree, Field, InteriorFacets, Region, Side, Space};

/// The facets of an integral.
pub(super) struct ReportRegion {
    pub(super) block: BlockRegion,
    pub(super) region: Region,
}

/// Returns the cells on which all fields of an expression live; none of no cell are reported.
pub(super) fn living(
    expressions: &mut Expressions<'_>,
    root: ExprId,
    value: form::ExprId,
) -> Option<Region> {
    let region = supports::cells_of(&expressions.form, value);
    if region.is_none() {
        let span = expressions.span(root);
        let message = "no cells are named in which all fields of this expression live";
        expressions.report(
            Diagnostic::new(Code::NotAvailableHere, message)
                .label(span, "its fields live in different cells")
                .help("integrate each where its fields live, and add the integrals"),
        );
    }
    region
}

/// Reads `on: "tag"` or `on: interior`.
pub(super) fn region(
    checker: &mut Checker<'_>,
    piece: &Piece,
    argument: &ast::Argument,
    mesh: Option<&MeshChoice>,
) -> Option<ReportRegion> {
    let expr = &piece.file.exprs[argument.value];
    let (block, tags) = match &expr.kind {
        ExprKind::Text(text) => {
            let tag = ast::Text { text: text.clone(), span: expr.span };
            let before = checker.diagnostics.len();
            known_tags(checker, piece, std::slice::from_ref(&tag), mesh);
            if checker.diagnostics.len() > before {
                return None;
            }
            (BlockRegion::Boundary, vec![tag])
        }
        ExprKind::Interior(block, tags) => (*block, tags.clone()),
        _ => {
            let diagnostic = Diagnostic::new(Code::BadValue, "`on` is a tag of the mesh")
                .label(expr.span, "not a string")
                .help("write `on: \"tag\"`, or `on: interior` for all facets between cells");
            checker.report(piece, diagnostic);
            return None;
        }
    };
    Some(ReportRegion { block, region: regions::under(block, &tags) })
}

/// Returns the tags of a part of the boundary.
pub(super) fn boundary_tags(
    checker: &mut Checker<'_>,
    (piece, argument): (&Piece, &ast::Argument),
    on: ReportRegion,
) -> Option<Vec<String>> {
    if let Region::Facets(tags) = on.region {
        return Some(tags);
    }
    let message = "a reaction is that of a condition, and none is between cells";
    let diagnostic = Diagnostic::new(Code::BadValue, message)
        .label(piece.file.exprs[argument.value].span, "not a tag")
        .help("write `on: \"tag\"`");
    checker.report(piece, diagnostic);
    None
}

/// Checks that an integrand has one value, between cells also if these are exchanged.
pub(super) fn has_value_between(
    expressions: &mut Expressions<'_>,
    (root, value): (ExprId, form::ExprId),
    on: &ReportRegion,
) -> bool {
    let block = Block { number: usize::MAX, region: on.block };
    if !sides::has_one_value(expressions, (root, value), Some(block)) {
        return false;
    }
    if !on.block.is_interior() {
        return true;
    }
    let mut form = expressions.form.clone();
    let shape = form.exprs.shape(value).to_point().unwrap_or(point::Shape::Scalar);
    let (field, space) = (form.fields.len(), Space::L2(Degree::Fixed(0)));
    form.fields.push(Field { name: "report".to_owned(), shape, space, cells: Vec::new() });
    let Some(rows) = tested(&mut form, &on.region, field, value) else { return true };
    let integral = Integral { region: on.region.clone(), rows, action: Vec::new(), energy: None };
    if asymmetric(&form, &integral).is_none() {
        return true;
    }
    let message = "the integrand depends on which of the two cells comes first";
    let span = expressions.span(root);
    expressions.report(
        Diagnostic::new(Code::DependsOnOrder, message)
            .label(span, "another value if the cells are exchanged and `n` is reversed")
            .help("take `abs(jump(u))`, `jump(u)^2`, `dot(jump(q), n)` or `avg(u)`")
            .help("between two regions write `on: interior from \"a\" to \"b\"`: the inside is tagged a"),
    );
    false
}

/// Returns the rows of an integrand: of the cell, or half of each of the two cells, so that exchanging them exchanges the
/// rows.
pub(super) fn tested(
    form: &mut Form,
    region: &Region,
    field: usize,
    value: form::ExprId,
) -> Option<Vec<Row>> {
    let row = |side, value| Row { f0: Some(value), ..Row::empty(field, side) };
    match region {
        Region::Interior(
            InteriorFacets::All | InteriorFacets::Under(_) | InteriorFacets::Within(_),
        ) => {
            let half = form.exprs.constant(0.5);
            let value = form.exprs.mul(half, value).ok()?;
            Some(Side::ALL.map(|side| row(side, value)).into())
        }
        _ => Some(vec![row(Side::Inside, value)]),
    }
}
