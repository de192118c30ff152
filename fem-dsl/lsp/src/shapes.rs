//! Shapes of declared names, in the notation of the language.

use crate::document::Document;
use fem_dsl::ast::{DegreeSpec, Family, FormItem, FormItemKind, ShapeKind, ShapeSpec, SpaceSpec};
use fem_dsl::form::{Shape, Type};
use fem_dsl::names::{Declaration, NameKind};
use fem_dsl::program::CheckedForm;

/// Returns a shape as written.
pub(crate) fn written(spec: ShapeSpec) -> String {
    let shape = match spec.kind {
        ShapeKind::Scalar => "scalar".to_owned(),
        ShapeKind::Vector(None) => "vector".to_owned(),
        ShapeKind::Vector(Some(n)) => format!("vector({n})"),
        ShapeKind::Tensor => "tensor".to_owned(),
    };
    if spec.complex { format!("complex {shape}") } else { shape }
}

/// Returns a space as written.
pub(crate) fn space(spec: SpaceSpec) -> String {
    let family = match spec.family {
        Family::H1 => "H1",
        Family::L2 => "L2",
        Family::Hcurl => "Hcurl",
        Family::Hdiv => "Hdiv",
        Family::R => "R",
    };
    match spec.degree {
        None => family.to_owned(),
        Some(DegreeSpec::Fixed(degree)) => format!("{family}({degree})"),
        Some(DegreeSpec::Relative(0)) => format!("{family}(k)"),
        Some(DegreeSpec::Relative(offset)) => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{family}(k {sign} {})", offset.unsigned_abs())
        }
    }
}

/// Returns the shape that the types in several dimensions have in common.
fn common(types: &[(usize, Type)]) -> Option<String> {
    let &(_, first) = types.first()?;
    let Type::Tensor(shape) = first else { return Some("condition".to_owned()) };
    let every = |test: &dyn Fn(usize, Shape) -> bool| {
        types.iter().all(|(dim, own)| matches!(own, Type::Tensor(shape) if test(*dim, *shape)))
    };
    let extents = shape.extents();
    Some(match extents[..] {
        [] => "scalar".to_owned(),
        [_] if every(&|dim, shape| shape.extents() == [dim]) => "vector".to_owned(),
        [n] => format!("vector({n})"),
        [_, _] if every(&|dim, shape| shape.extents() == [dim, dim]) => "tensor".to_owned(),
        _ => extents.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
    })
}

/// Returns the checked form of a declaration.
pub(crate) fn form_of<'a>(document: &'a Document, own: &Declaration) -> Option<&'a CheckedForm> {
    document.analysis.program.forms().get(own.form?)
}

/// Returns the item of a declaration in a form.
pub(crate) fn item_of<'a>(document: &'a Document, own: &Declaration) -> Option<&'a FormItem> {
    let form = document.file().forms.get(own.form?)?;
    let blocks = form.items.iter().flat_map(|item| match &item.kind {
        FormItemKind::Block { items, .. } => items.as_slice(),
        _ => std::slice::from_ref(item),
    });
    // A state is two items of one span; its declaration is the first.
    blocks.into_iter().find(|item| item.span == own.item)
}

/// Returns the shape of a declared name, if it has one.
pub(crate) fn shape_of(document: &Document, own: &Declaration) -> Option<String> {
    match own.kind {
        NameKind::Field | NameKind::Data | NameKind::State => match &item_of(document, own)?.kind {
            FormItemKind::Field { shape, .. } | FormItemKind::Aux { shape, .. } => {
                shape.map(written)
            }
            _ => None,
        },
        NameKind::Test => {
            let field = own.arguments.first()?;
            let names = document.analysis.names().declarations();
            let field = names.iter().find(|other| {
                other.kind == NameKind::Field && other.form == own.form && other.name == *field
            });
            shape_of_field(document, field?)
        }
        NameKind::Param | NameKind::Let => {
            let types = form_of(document, own)?.dimensions.types_at(own.span);
            let mut one: Vec<(usize, Type)> = Vec::new();
            let mut complex = false;
            for (dim, found) in types {
                match one.iter().any(|(known, _)| *known == dim) {
                    true => complex = true,
                    false => one.push((dim, found)),
                }
            }
            let shape = common(&one)?;
            Some(if complex { format!("complex {shape}") } else { shape })
        }
        _ => None,
    }
}

fn shape_of_field(document: &Document, field: &Declaration) -> Option<String> {
    match &item_of(document, field)?.kind {
        FormItemKind::Field { shape, .. } => shape.map(written),
        _ => None,
    }
}
