//! What the builder of expressions refuses, told in the user's terms.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{BuildError, Form, Shape, Terminal, Type};
use crate::source::Span;

/// A diagnostic for an operation at `span` on operands with these places and types.
pub(super) fn diagnose(
    form: &Form,
    error: &BuildError,
    span: Span,
    operands: &[(Span, Type)],
) -> Diagnostic {
    let (code, message) = match error {
        BuildError::Unequal { .. } | BuildError::Product { .. } | BuildError::Rank { .. } => {
            (Code::ShapeMismatch, error.to_string())
        }
        BuildError::Contraction { .. } => (Code::WrongArgumentShape, error.to_string()),
        BuildError::Operand { operation, expected, found } => {
            (operand_code(operation, expected, *found), error.to_string())
        }
        BuildError::Index { .. } => (Code::BadIndex, error.to_string()),
        BuildError::SecondDerivative { terminal } => {
            let message = format!(
                "this needs a second derivative of `{}`",
                form.terminal_name(undifferentiated(*terminal))
            );
            (Code::NoDerivative, message)
        }
        BuildError::NoGradient { terminal } => {
            (Code::NoDerivative, format!("`{}` has no gradient", form.terminal_name(*terminal)))
        }
    };
    let mut diagnostic = Diagnostic::new(code, message).label(span, "");
    if !matches!(error, BuildError::SecondDerivative { .. } | BuildError::NoGradient { .. }) {
        for (place, found) in operands {
            diagnostic = diagnostic.secondary(*place, found.to_string());
        }
    }
    match error {
        BuildError::Product { left, right } => diagnostic.help(product_help(*left, *right)),
        BuildError::SecondDerivative { .. } => {
            diagnostic.help("first derivatives only: integrate by parts, which is what `f1` is for")
        }
        BuildError::NoGradient { terminal: Terminal::Aux(_) } => {
            diagnostic.help("only `aux … on nodes` has a gradient")
        }
        BuildError::Index { shape, .. } => diagnostic.help(index_help(*shape)),
        BuildError::Operand { operation: "/", .. } => {
            diagnostic.help("divide by one number: a component, a `norm`, a `det`")
        }
        _ => diagnostic,
    }
}

fn operand_code(operation: &str, expected: &str, found: Type) -> Code {
    if expected == "a condition" || found == Type::Truth {
        Code::NotACondition
    } else if operation.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Code::WrongArgumentShape
    } else {
        Code::ShapeMismatch
    }
}

fn undifferentiated(terminal: Terminal) -> Terminal {
    match terminal {
        Terminal::FieldGradient(i) => Terminal::Field(i),
        Terminal::TestGradient(i) => Terminal::Test(i),
        Terminal::DirectionGradient(i) => Terminal::Direction(i),
        Terminal::AuxGradient(i) => Terminal::Aux(i),
        other => other,
    }
}

fn product_help(left: Shape, right: Shape) -> &'static str {
    match (left.rank(), right.rank()) {
        (1, 1) if left == right => {
            "`dot(a, b)` is the scalar product, `outer(a, b)` the matrix of all products"
        }
        (1, 1) => "`outer(a, b)` is the matrix of all products",
        (1, 2) if left.extent(0) == right.extent(0) => {
            "`dot(a, B)` is the vector times the matrix, as is `transpose(B) * a`"
        }
        (2, 2) if left == right => {
            "`inner(A, B)` is the sum of all products, `A * transpose(B)` the matrix product"
        }
        (2, 1 | 2) if left.extent(0) == right.extent(0) => "perhaps `transpose(A) * …` is meant",
        _ => "`dot` contracts the last index of one with the first of the other",
    }
}

fn index_help(shape: Shape) -> String {
    match shape.rank() {
        0 => "a scalar has no components: leave the index out".to_owned(),
        1 => format!("one index, from 0 to {}", shape.extent(0) - 1),
        rank => {
            let ranges: Vec<String> =
                shape.extents().iter().map(|extent| format!("0 to {}", extent - 1)).collect();
            format!("{rank} indices, from {}", ranges.join(" and from "))
        }
    }
}
