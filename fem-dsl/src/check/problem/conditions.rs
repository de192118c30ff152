//! Essential conditions: `dirichlet u[i] = EXPR on "tag";`.

use super::{Checker, MeshChoice, Piece, Statement};
use crate::ast::{
    ExprId, ExprKind, FormItemKind, Ident, NormalProduct, ProblemItemKind, RowKind, SupportSpec,
    Text,
};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{self, Terminal};
use crate::point::{Input, Node, Shape, Space};
use crate::problem::{Dirichlet, Expression, Support, Trace};
use crate::source::shortened;

pub(super) fn check(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    mesh: Option<&MeshChoice>,
) {
    let ProblemItemKind::Dirichlet { field, component, normal, value, place } = statement.kind
    else {
        return;
    };
    let piece = statement.piece;
    let support = match place {
        Some(SupportSpec::Tags(tags)) => {
            known_tags(checker, piece, tags, mesh);
            Support::Tags(tags.iter().map(|tag| tag.text.clone()).collect())
        }
        Some(SupportSpec::At(point)) => {
            let Some(point) = vertex(checker, piece, *point) else { return };
            if let Some(dot) = normal {
                let message = "a single vertex has no normal";
                let diagnostic = Diagnostic::new(Code::BadValue, message)
                    .label(dot.normal.span, "the normal of a side")
                    .help("give the field, or components of it, at the vertex");
                return checker.report(piece, diagnostic);
            }
            Support::Vertex(point)
        }
        Some(SupportSpec::All(_)) | None => Support::Boundary,
    };
    let Some(index) = checker.field(piece, field) else { return };
    if let space @ Space::L2(_) = checker.form.fields[index].space {
        let tags: Vec<&str> = match place {
            Some(SupportSpec::Tags(tags)) => tags.iter().map(|tag| tag.text.as_str()).collect(),
            _ => mesh.and_then(|mesh| mesh.tags).unwrap_or(&["tag"]).to_vec(),
        };
        return discontinuous(checker, statement, (field, space), &tags);
    }
    let (shape, space) = (checker.form.fields[index].shape, checker.form.fields[index].space);
    if space.is_piola() && !has_unknowns(checker, statement, (field, space)) {
        return;
    }
    let trace = match (component, normal) {
        (None, None) => Some(Trace::Whole),
        (Some(at), _) => component_index(checker, piece, field, *at, shape).map(Trace::Component),
        (None, Some(normal)) => of_normal(checker, piece, field, normal, shape),
    };
    let Some(trace) = trace else { return };
    let trace = match (trace, value) {
        // The known solution is a value of the field.
        (Trace::Tangential, None) => Trace::Whole,
        _ => trace,
    };
    let (expected, what) = match trace {
        Trace::Whole => (shape, format!("`{}`", field.name)),
        Trace::Component(component) => (Shape::Scalar, format!("`{}[{component}]`", field.name)),
        Trace::Normal => (Shape::Scalar, format!("`dot({}, n)`", field.name)),
        Trace::Tangential if checker.form.dim == 2 => {
            (Shape::Scalar, format!("`cross(n, {})`", field.name))
        }
        Trace::Tangential => (shape, format!("`cross(n, {})`", field.name)),
    };
    let value = match value {
        Some(value) => checker.expression(piece, *value, expected, &what),
        None => exact(checker, statement, field, index, trace),
    };
    let Some(value) = value else { return };
    if !is_of_nodes(checker, statement, &format!("the condition of `{}`", field.name), &value) {
        return;
    }
    checker.content.dirichlet.push(Dirichlet { field: index, trace, value, support });
}

/// Returns whether a field in Hcurl or Hdiv has the unknowns that a condition sets: those of its tangential part, or of
/// its normal component, on sides. Reports an error otherwise.
fn has_unknowns(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    (field, space): (&Ident, Space),
) -> bool {
    let ProblemItemKind::Dirichlet { component, normal, place, .. } = statement.kind else {
        return true;
    };
    let name = &field.name;
    let (part, own) = match space {
        Space::Hdiv(_) => ("normal component", format!("dot({name}, n)")),
        _ => ("tangential part", format!("cross(n, {name})")),
    };
    let label = match (component, normal, place) {
        (_, _, Some(SupportSpec::At(_))) => "at a vertex it has no unknowns",
        (Some(_), ..) => "one component has no unknowns of its own",
        (_, Some(product), _) if !product.cross && matches!(space, Space::Hcurl(_)) => {
            "its normal component has no unknowns there"
        }
        _ => return true,
    };
    let message = format!("a condition on `{name}` in `{space}` sets its {part} on a side");
    let help = format!(
        "write `dirichlet {own} = … on \"tag\";`, or `dirichlet {name} = F on \"tag\";`, of which the {part} is taken"
    );
    let diagnostic = Diagnostic::new(Code::BadValue, message).label(field.span, label).help(help);
    checker.report(statement.piece, diagnostic);
    false
}

/// Returns a point of the mesh; a number in one dimension may stand without brackets.
pub(super) fn vertex(checker: &mut Checker<'_>, piece: &Piece, at: ExprId) -> Option<[f64; 3]> {
    let (found, values) = checker.number(piece, at)?;
    let dim = checker.form.dim;
    if found == Shape::Vector(dim) || dim == 1 && found == Shape::Scalar {
        let mut point = [0.0; 3];
        point[..dim].copy_from_slice(&values);
        return Some(point);
    }
    let found = form::Shape::from(found);
    let s = if dim == 1 { "" } else { "s" };
    let message = format!("a point of this mesh has {dim} coordinate{s}, but this is {found}");
    let zeros = vec!["0"; dim].join(", ");
    let diagnostic = Diagnostic::new(Code::WrongShape, message)
        .label(piece.file.exprs[at].span, format!("this is {found}"))
        .help(format!("write `at [{zeros}]`"));
    checker.report(piece, diagnostic);
    None
}

/// Returns whether an expression is single-valued at nodes, that is independent of the cell diameter; reports an error
/// otherwise.
pub(super) fn is_of_nodes(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    what: &str,
    value: &Expression,
) -> bool {
    if !value.graph.nodes().iter().any(|node| matches!(node, Node::Input(Input::Diameter(_)))) {
        return true;
    }
    let diagnostic = Diagnostic::new(Code::NotAvailableHere, format!("{what} asks for `h`"))
        .label(statement.span, "several cells meet at a node, each with a diameter of its own")
        .help("use x, t, k, dim, pi, I and the form's parameters");
    checker.report(statement.piece, diagnostic);
    false
}

/// Reports a condition on a field whose DoFs are all inside of cells.
fn discontinuous(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    (field, space): (&Ident, Space),
    tags: &[&str],
) {
    let tags: Vec<String> = tags.iter().map(|tag| format!("\"{}\"", shortened(tag))).collect();
    let tags = tags.join(", ");
    let name = &field.name;
    let message = format!("`{name}` lives in `{space}`, which has no unknowns on the boundary");
    let diagnostic = Diagnostic::new(Code::ConditionInL2, message)
        .label(field.span, "discontinuous: each of its unknowns lies inside of a cell")
        .note("a discontinuous field takes its values on the boundary weakly, by a term of the form")
        .help(match weakly(checker, statement.piece, name, &tags) {
            Some(block) => format!("write that term, with the value in the place of g: `{block}`"),
            None if energy_has_gradient(checker, name) => format!(
                "write that term, with the value in the place of g, and the derivative of the energy by `grad({name})` in the \
                 place of q: `on boundary {tags} {{ {} }}`",
                of_energy(checker, name)
            ),
            None => format!(
                "write that term as `on boundary {tags} {{ f0[{name}] = …; }}`, or let the field live in `H1(k)`"
            ),
        });
    checker.report(statement.piece, diagnostic);
}

/// Returns whether the energy of the cells depends on the gradient of a field.
fn energy_has_gradient(checker: &Checker<'_>, name: &str) -> bool {
    let form = checker.form;
    let field = form.fields.iter().position(|field| field.name == name);
    let of_cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    let roots: Vec<form::ExprId> = of_cells.filter_map(|integral| integral.energy).collect();
    form.terminals(&roots)
        .any(|terminal| matches!(terminal, Terminal::FieldGradient(of, _) if Some(of) == field))
}

/// Returns Nitsche's terms of a field on the boundary as an energy.
fn of_energy(checker: &Checker<'_>, name: &str) -> String {
    let field = checker.form.fields.iter().find(|field| field.name == name);
    let (square, flux) = match field.map(|field| field.shape) {
        Some(Shape::Vector(_)) => {
            (format!("dot({name} - g, {name} - g)"), format!("dot(q * n, {name} - g)"))
        }
        _ => (format!("({name} - g)^2"), format!("dot(q, n) * ({name} - g)")),
    };
    format!("energy = 10 * penalty({name}) / 2 * {square} - {flux};")
}

/// Returns Nitsche's terms of a field on the boundary as text, if its form has an `f1` of it.
fn weakly(checker: &Checker<'_>, piece: &Piece, name: &str, tags: &str) -> Option<String> {
    let form = checker.form;
    let written = piece.file.forms.iter().find(|of| of.name.name == form.name)?;
    let value = written.items.iter().find_map(|item| match &item.kind {
        FormItemKind::Row { row: RowKind::F1, field, value, .. } if field.name == name => {
            Some(*value)
        }
        _ => None,
    })?;
    let span = piece.file.exprs[value].span;
    let start = written.span.start;
    let range = (span.start.checked_sub(start)? as usize)..(span.end.checked_sub(start)? as usize);
    let flux = form.source.get(range).filter(|text| !text.contains('\n'))?;
    let flux = match form.fields.iter().find(|field| field.name == name)?.shape {
        Shape::Scalar => format!("dot({flux}, n)"),
        Shape::Vector(_) => format!("({flux}) * n"),
        Shape::Matrix(..) => return None,
    };
    Some(format!(
        "on boundary {tags} {{ f0[{name}] = 10 * penalty({name}) * ({name} - g) - {flux}; }}"
    ))
}

/// Checks `mean p = 0;` for a field without other conditions.
pub(super) fn check_mean(checker: &mut Checker<'_>, statement: Statement<'_>) {
    let (ProblemItemKind::Mean { field, value }, piece) = (statement.kind, statement.piece) else {
        return;
    };
    let Some(index) = checker.field(piece, field) else { return };
    let space = checker.form.fields[index].space;
    if space.is_piola() {
        let message = format!("`mean` does not apply to `{}` in `{space}`", field.name);
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(statement.span, "not free up to a constant")
            .help("leave it out: `mean` is for fields in `H1` and `L2`");
        return checker.report(piece, diagnostic);
    }
    let Some((found, values)) = checker.number(piece, *value) else { return };
    let expected = checker.form.fields[index].shape;
    if found != expected {
        let (found, expected) = (form::Shape::from(found), form::Shape::from(expected));
        let message = format!("the mean of `{}` is {expected}, but this is {found}", field.name);
        let diagnostic = Diagnostic::new(Code::WrongShape, message)
            .label(piece.file.exprs[*value].span, format!("this is {found}"))
            .help_if(super::shape_help(found, expected));
        return checker.report(piece, diagnostic);
    }
    if checker.content.dirichlet.iter().any(|condition| condition.field == index) {
        let message = format!("`{}` has a condition, so its mean follows", field.name);
        let diagnostic = Diagnostic::new(Code::MeanOfFixed, message)
            .label(statement.span, "the mean of what is fixed already")
            .help("leave it out, or the condition");
        return checker.report(piece, diagnostic);
    }
    if checker.form.rates.iter().any(|rate| rate.field == index) {
        let message = format!("`{}` has a time derivative, so its mean follows", field.name);
        let diagnostic = Diagnostic::new(Code::MeanOfFixed, message)
            .label(statement.span, "the mean of what its equation fixes already")
            .help(format!("leave it out, and give `initial {}` that mean", field.name));
        return checker.report(piece, diagnostic);
    }
    checker.content.mean.push((index, values));
}

/// Reports tags that a generator's mesh does not have.
pub(super) fn known_tags(
    checker: &mut Checker<'_>,
    piece: &Piece,
    tags: &[Text],
    mesh: Option<&MeshChoice>,
) {
    let Some(known) = mesh.and_then(|mesh| mesh.tags) else { return };
    for tag in tags.iter().filter(|tag| !known.contains(&tag.text.as_str())) {
        checker.report(piece, unknown_tag("boundary", tag, known));
    }
}

/// Returns the error for a mesh with the tags `known` that lacks one, of the boundary or of cells.
pub(crate) fn unknown_tag(of: &str, tag: &Text, known: &[&str]) -> Diagnostic {
    let list: Vec<String> = known.iter().map(|tag| format!("\"{}\"", shortened(tag))).collect();
    let note = match list.is_empty() {
        true if of == "boundary" => "the mesh names no part of its boundary".to_owned(),
        true => "the mesh names no part of its cells".to_owned(),
        false => format!("its tags are {}", list.join(", ")),
    };
    Diagnostic::new(Code::BadValue, format!("the mesh has no {of} \"{}\"", shortened(&tag.text)))
        .label(tag.span, "no such tag")
        .note(note)
        .suggest(&tag.text, known.iter().copied())
}

pub(super) fn component_index(
    checker: &mut Checker<'_>,
    piece: &Piece,
    field: &Ident,
    at: ExprId,
    shape: Shape,
) -> Option<usize> {
    let expr = &piece.file.exprs[at];
    let (label, note) = match (&expr.kind, shape) {
        (ExprKind::Error, _) => return None,
        (ExprKind::Number(number), Shape::Vector(n)) => {
            if number.fract() == 0.0 && *number < n as f64 {
                return Some(*number as usize);
            }
            ("out of range", format!("its components are 0 to {}", n - 1))
        }
        (_, Shape::Vector(n)) => {
            ("not a whole number", format!("its components are 0 to {}", n - 1))
        }
        (_, Shape::Scalar | Shape::Matrix(..)) => (
            "only vectors have components here",
            format!("`{}` is {}", field.name, form::Shape::from(shape)),
        ),
    };
    let help = match shape {
        Shape::Scalar => Some("leave the index out"),
        Shape::Vector(_) => None,
        Shape::Matrix(..) => Some("leave the index out and give the whole matrix"),
    };
    let diagnostic =
        Diagnostic::new(Code::BadIndex, format!("`{}` has no such component", field.name))
            .label(expr.span, label)
            .note(note)
            .help_if(help);
    checker.report(piece, diagnostic);
    None
}

/// Checks a condition on the normal component of a field, which has one component per direction.
fn of_normal(
    checker: &mut Checker<'_>,
    piece: &Piece,
    field: &Ident,
    NormalProduct { cross, normal }: &NormalProduct,
    shape: Shape,
) -> Option<Trace> {
    let dim = checker.form.dim;
    let space = checker.form.fields.iter().find(|of| of.name == field.name)?.space;
    if *cross && !matches!(space, Space::Hcurl(_)) {
        let message =
            format!("`{}` in `{space}` has no condition on its tangential part", field.name);
        let help = match space {
            Space::Hdiv(_) => format!("write `dirichlet dot({}, n) = 0 on \"tag\";`", field.name),
            _ => "give its components, or let it live in `Hcurl(k)`".to_owned(),
        };
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(field.span, "only of fields in Hcurl")
            .help(help);
        checker.report(piece, diagnostic);
        return None;
    }
    if normal.name != "n" {
        let message = "a condition gives a field, a component of it, or its product with `n`";
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(normal.span, "not the normal `n`")
            .help(match cross {
                true => format!("write `dirichlet cross(n, {}) = 0 on \"tag\";`", field.name),
                false => format!("write `dirichlet dot({}, n) = 0 on \"tag\";`", field.name),
            });
        checker.report(piece, diagnostic);
        return None;
    }
    if *cross {
        return Some(Trace::Tangential);
    }
    if shape == Shape::Vector(dim) {
        return Some(Trace::Normal);
    }
    let message = format!("`{}` has no normal component", field.name);
    let is = form::Shape::from(shape);
    let diagnostic = Diagnostic::new(Code::WrongShape, message)
        .label(field.span, format!("this is {is}"))
        .note(format!("`n` is a vector of {dim} components on this mesh"))
        .help_if(
            (shape == Shape::Scalar).then(|| format!("write `dirichlet {} = 0;`", field.name)),
        );
    checker.report(piece, diagnostic);
    None
}

/// Returns the value of the known solution.
fn exact(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    field: &Ident,
    index: usize,
    trace: Trace,
) -> Option<Expression> {
    let known = checker.content.exact.iter().find(|(of, _)| *of == index);
    let Some((_, solution)) = known else {
        if checker.content.broken || checker.content.manufacturing {
            // The known solution may be unreadable, and a missing one is reported elsewhere.
            return None;
        }
        let message = format!("this condition on `{}` has no value", field.name);
        let diagnostic = Diagnostic::new(Code::NoKnownSolution, message)
            .label(statement.span, "neither `= VALUE` nor a known solution to take it from")
            .help(format!("write `dirichlet {0} = 0;`, or add `exact {0} = …;`", field.name));
        checker.report(statement.piece, diagnostic);
        return None;
    };
    let Trace::Component(component) = trace else { return Some(solution.clone()) };
    let dim = checker.form.dim;
    let gradient = solution.gradient.get(component * dim..(component + 1) * dim);
    let one = |of: &Vec<_>| of.get(component).copied().into_iter().collect();
    Some(Expression {
        shape: Shape::Scalar,
        graph: solution.graph.clone(),
        value: one(&solution.value),
        rates: solution.rates.each_ref().map(one),
        gradient: gradient.map(<[_]>::to_vec).unwrap_or_default(),
    })
}
