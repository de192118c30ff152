//! Fields and auxiliary data: shapes and spaces.

use super::names::Names;
use crate::ast::{DegreeSpec, Family, Ident, LocationKind, ShapeKind, ShapeSpec, SpaceSpec, Text};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::Form;
use crate::point::{Aux, Degree, Field, Location, Shape, Space};
use crate::source::Span;

/// Largest number of components of a vector.
pub(super) const MOST_COMPONENTS: usize = 64;

/// Declares the fields and the auxiliary data. A broken declaration gets a placeholder, so that indices equal those of
/// the declarations; it is never used because of the error.
pub(super) fn fields_and_aux(
    form: &mut Form,
    names: &Names<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for item in &names.fields {
        let shape = item.shape.and_then(|spec| shape(spec, form.dim, diagnostics));
        let space = item.space.and_then(|spec| space(spec, diagnostics));
        let space = space.filter(|space| {
            !space.is_piola() || form.dim > 1 || {
                let spec = item.space.map_or(item.name.span, |spec| spec.span);
                diagnostics.push(piola_on_line(&item.name.name, *space, spec));
                false
            }
        });
        let is_piola = space.is_some_and(Space::is_piola);
        if let Some(number) = form.fields.last().filter(|last| last.space.is_number())
            && !space.is_some_and(Space::is_number)
        {
            diagnostics.push(after_a_number(item.name, &number.name));
        }
        if let (true, Some(spec), Some(space)) = (is_piola, item.shape, item.space)
            && spec.kind != ShapeKind::Vector(None)
        {
            diagnostics.push(not_a_vector(&item.name.name, spec, space));
        }
        let mut cells = tags(item.tags);
        if let (true, Some(tag)) = (space.is_some_and(Space::is_number), item.tags.first()) {
            let message = format!("`{}` has one value for the whole mesh", item.name.name);
            let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
                .label(tag.span, "a number lives on no part of the mesh")
                .help("leave the tags out, and write its row in a block, `on cells \"a\" { … }`");
            diagnostics.push(diagnostic);
            cells.clear();
        }
        let unread = if is_piola { Shape::Vector(form.dim) } else { Shape::Scalar };
        form.fields.push(Field {
            name: item.name.name.clone(),
            shape: shape.filter(|_| !is_piola).unwrap_or(unread),
            space: space.unwrap_or(Space::H1(Degree::Relative(0))),
            cells,
        });
    }
    // Data at nodes are values: in Hcurl and Hdiv unknowns are none.
    let first = match form.fields.first().map(|field| field.space) {
        Some(Space::Hcurl(degree) | Space::Hdiv(degree)) => Space::H1(degree),
        Some(space) if !space.is_number() => space,
        Some(_) | None => Space::H1(Degree::Relative(0)),
    };
    for item in &names.aux {
        let shape = item.shape.and_then(|spec| shape(spec, form.dim, diagnostics));
        let location = match item.place.map(|place| place.kind) {
            Some(LocationKind::Cells) => Location::Cells,
            Some(LocationKind::Points) => Location::Points,
            Some(LocationKind::Nodes(Some(spec))) => {
                let found = space(spec, diagnostics);
                if found.is_some_and(Space::is_piola) {
                    diagnostics.push(data_in_piola(&item.name.name, spec));
                }
                if found.is_some_and(Space::is_number) {
                    diagnostics.push(data_of_one_number(&item.name.name, spec));
                }
                let usable = |space: &Space| !space.is_piola() && !space.is_number();
                Location::Nodes(found.filter(usable).unwrap_or(first))
            }
            Some(LocationKind::Nodes(None)) | None => Location::Nodes(first),
        };
        let shape = shape.unwrap_or(Shape::Scalar);
        form.aux.push(Aux { name: item.name.name.clone(), shape, location });
    }
}

/// Returns the declared shape.
pub(super) fn shape(
    spec: ShapeSpec,
    dim: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Shape> {
    debug_assert!(!spec.complex, "complex numbers should have been expanded");
    match spec.kind {
        ShapeKind::Scalar => Some(Shape::Scalar),
        ShapeKind::Vector(None) => Some(Shape::Vector(dim)),
        ShapeKind::Tensor => Some(Shape::Matrix(dim, dim)),
        ShapeKind::Vector(Some(n)) if (1..=MOST_COMPONENTS).contains(&n) => Some(Shape::Vector(n)),
        ShapeKind::Vector(Some(n)) => {
            let message = format!("a vector has 1 to {MOST_COMPONENTS} components, not {n}");
            let diagnostic = Diagnostic::new(Code::BadComponentCount, message);
            diagnostics.push(diagnostic.label(spec.span, "out of range"));
            None
        }
    }
}

fn space(spec: SpaceSpec, diagnostics: &mut Vec<Diagnostic>) -> Option<Space> {
    let degree = match spec.degree {
        None => Degree::Relative(0),
        Some(DegreeSpec::Relative(offset)) => Degree::Relative(offset),
        Some(DegreeSpec::Fixed(degree)) => Degree::Fixed(degree),
    };
    match (spec.family, degree) {
        (Family::H1, Degree::Fixed(0)) => {
            diagnostics.push(
                Diagnostic::new(Code::BadDegree, "a continuous space has degree 1 or more")
                    .label(spec.span, "degree 0")
                    .help("constants in each cell are `L2(0)`, or `aux … on cells` for data"),
            );
            None
        }
        (Family::Hcurl | Family::Hdiv, Degree::Fixed(0)) => {
            let message = "`Hcurl` and `Hdiv` have degree 1 or more";
            diagnostics.push(
                Diagnostic::new(Code::BadDegree, message)
                    .label(spec.span, "degree 0")
                    .help("the degree is the largest of its polynomials: the lowest order is 1"),
            );
            None
        }
        (Family::H1, degree) => Some(Space::H1(degree)),
        (Family::L2, degree) => Some(Space::L2(degree)),
        (Family::Hcurl, degree) => Some(Space::Hcurl(degree)),
        (Family::Hdiv, degree) => Some(Space::Hdiv(degree)),
        (Family::R, _) if spec.degree.is_none() => Some(Space::Number),
        (Family::R, _) => {
            let message = "a number has no degree";
            diagnostics.push(
                Diagnostic::new(Code::BadDegree, message)
                    .label(spec.span, "one value for the whole mesh")
                    .help("write `R`"),
            );
            None
        }
    }
}

/// Returns the notation of a space.
fn notation(spec: SpaceSpec) -> String {
    space(spec, &mut Vec::new()).map_or_else(String::new, |space| space.to_string())
}

/// Returns the diagnostic for a field in Hcurl or Hdiv that is no vector.
fn not_a_vector(name: &str, spec: ShapeSpec, space: SpaceSpec) -> Diagnostic {
    let message = format!("a field in `{}` is a `vector`", notation(space));
    Diagnostic::new(Code::WrongShape, message)
        .label(spec.span, "another shape")
        .secondary(space.span, "vectors with one component per direction")
        .help(format!("write `field {name}: vector in {};`", notation(space)))
}

/// Returns the diagnostic for a field in Hcurl or Hdiv in one dimension.
fn piola_on_line(name: &str, space: Space, span: Span) -> Diagnostic {
    let message =
        format!("`{space}` needs two or three dimensions; a line has `H1(k)` and `L2(k)`");
    Diagnostic::new(Code::NotAvailableHere, message)
        .label(span, "a line has neither tangents nor fluxes")
        .help(format!("write `field {name}: vector in H1(k);`"))
}

/// Returns the diagnostic for data in Hcurl or Hdiv.
fn data_in_piola(name: &str, spec: SpaceSpec) -> Diagnostic {
    let message = format!("data in `{}` is not supported yet", notation(spec));
    Diagnostic::new(Code::NotAvailableHere, message)
        .label(spec.span, "only fields live in this space")
        .help(format!("write `aux {name}: vector on points;`, or `on nodes` for values in `H1(k)`"))
}

/// Returns the diagnostic for data that is one number.
fn data_of_one_number(name: &str, spec: SpaceSpec) -> Diagnostic {
    Diagnostic::new(Code::NotAvailableHere, "data in `R` is one number")
        .label(spec.span, "one value for the whole mesh")
        .help(format!("write `param {name} = 0;`"))
}

/// Returns the diagnostic for a field declared after an unknown number.
fn after_a_number(name: &Ident, number: &str) -> Diagnostic {
    let message = format!("the field `{}` follows the unknown number `{number}`", name.name);
    Diagnostic::new(Code::NotAvailableHere, message)
        .label(name.span, "declared after a number")
        .help(format!("declare `{number}` after all fields"))
}

/// Returns tags without repetition.
pub(super) fn tags(tags: &[Text]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for tag in tags {
        if !names.contains(&tag.text) {
            names.push(tag.text.clone());
        }
    }
    names
}
