//! Errors of the expression builder in the user's terms.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{BuildError, Form, Shape, Terminal, Type};
use crate::point::Space;
use crate::source::Span;

/// Returns the diagnostic of an operation at `span` on operands with these locations and types. `test_name` returns the
/// name of a field's test function.
pub(super) fn diagnose(
    form: &Form,
    test_name: impl Fn(usize) -> String,
    error: &BuildError,
    span: Span,
    operands: &[(Span, Type)],
) -> Diagnostic {
    let name = |terminal: Terminal| match terminal {
        Terminal::Test(field, _) => test_name(field),
        terminal => form.terminal_name(terminal),
    };
    let (code, message) = match error {
        BuildError::Unequal { .. } | BuildError::Product { .. } | BuildError::Rank { .. } => {
            (Code::ShapeMismatch, error.to_string())
        }
        BuildError::Contraction { .. } => (Code::WrongArgumentShape, error.to_string()),
        BuildError::Operand { operation, expected, found } => {
            (operand_code(operation, expected, *found), error.to_string())
        }
        BuildError::Index { .. } => (Code::BadIndex, error.to_string()),
        BuildError::PartialDerivative { operation, terminal } => {
            let name = name(undifferentiated(*terminal));
            let own = form.space_of(*terminal).map_or("grad", Space::derivative);
            let message = match *operation == own {
                true => format!("only sums and multiples of `{name}` have a `{own}`"),
                false => format!("of `{name}` only `{own}({name})` is a function"),
            };
            (Code::NoDerivative, message)
        }
        BuildError::HigherDerivative { terminal } => {
            let name = name(undifferentiated(*terminal));
            let order = if is_hessian(*terminal) { "third" } else { "second" };
            (Code::NoDerivative, format!("this needs a {order} derivative of `{name}`"))
        }
        BuildError::NoRate { terminal } => (
            Code::NoDerivative,
            format!("`{}` has no time derivative here", form.terminal_name(*terminal)),
        ),
        BuildError::NoGradient { terminal } => {
            (Code::NoDerivative, format!("`{}` has no gradient", form.terminal_name(*terminal)))
        }
        BuildError::GradientOfSide { terminal, side } => {
            let name = form.terminal_name(terminal.with_side(None));
            (Code::MisplacedSide, format!("a derivative of `{}({name})`", side.word()))
        }
        BuildError::SideOfSide { word, terminal } => {
            (Code::MisplacedSide, format!("`{word}` of `{}`", form.terminal_name(*terminal)))
        }
        BuildError::SideOfNormal { .. } => (Code::MisplacedSide, error.to_string()),
    };
    let mut diagnostic = Diagnostic::new(code, message).label(span, "");
    let bare = matches!(
        error,
        BuildError::HigherDerivative { .. }
            | BuildError::NoGradient { .. }
            | BuildError::PartialDerivative { .. }
            | BuildError::NoRate { .. }
            | BuildError::GradientOfSide { .. }
            | BuildError::SideOfSide { .. }
            | BuildError::SideOfNormal { .. }
    );
    if !bare {
        for (place, found) in operands {
            diagnostic = diagnostic.secondary(*place, found.to_string());
        }
    }
    let space = match error {
        BuildError::PartialDerivative { terminal, .. }
        | BuildError::HigherDerivative { terminal } => form.space_of(*terminal),
        _ => None,
    };
    diagnostic.help_if(match (space.filter(|space| space.is_piola()), error) {
        (Some(space), BuildError::PartialDerivative { operation, terminal }) => {
            Some(partial_help(space, operation, &name(undifferentiated(*terminal))))
        }
        (Some(space), BuildError::HigherDerivative { .. }) => {
            let second = if matches!(space, Space::Hdiv(_)) { "-grad(a)" } else { "curl(a)" };
            Some(format!(
                "first derivatives only: integrate by parts, so that `{second}` in `f0` becomes `a` in `f1`"
            ))
        }
        _ => help(error),
    })
}

/// Returns the diagnostic for the gradient of a field in Hcurl or Hdiv that has no terms between cells.
pub(super) fn without_terms_between(name: &str, space: Space, span: Span) -> Diagnostic {
    let (part, other) = match space {
        Space::Hdiv(_) => ("tangential", "normal"),
        _ => ("normal", "tangential"),
    };
    let message = format!("`grad({name})` leaves out the jumps of `{name}`");
    Diagnostic::new(Code::NoDerivative, message)
        .label(span, format!("in `{space}`: its {other} part alone is continuous"))
        .help(format!(
            "penalise `jump({name})`, its {part} part, in `on interior {{ residual = …; }}`, or write `{}({name})`",
            space.derivative()
        ))
}

/// Returns the remedy for a derivative that a field in Hcurl or Hdiv does not have.
fn partial_help(space: Space, operation: &str, name: &str) -> String {
    match (space, operation) {
        (Space::Hcurl(_), "div") => {
            format!("test `{name}` against `grad(psi)`, with a field `psi` in `H1(k)`")
        }
        (Space::Hdiv(_), "curl") => {
            format!(
                "let `{name}` live in `H1(k)`, or test it with the `curl` of a test function in `Hcurl(k)`"
            )
        }
        (_, "grad") => {
            format!(
                "write `{}({name})`, let `{name}` live in `H1(k)`, or penalise its jumps in `on interior {{ … }}`",
                space.derivative()
            )
        }
        _ => format!(
            "write it as a sum of multiples `s * {name}`, where s does not depend on `{name}`"
        ),
    }
}

/// Returns the suggested correction.
fn help(error: &BuildError) -> Option<String> {
    let help = match error {
        BuildError::Product { left, right } => product_help(*left, *right),
        BuildError::HigherDerivative { terminal: Terminal::AuxGradient(..) } => {
            "first derivatives only: give the gradient as data of its own, `aux g: vector;`"
        }
        BuildError::HigherDerivative { terminal: Terminal::RateGradient(..) } => {
            "first derivatives only: let a field be the rate, `f0[v] = v - dt(u);`"
        }
        BuildError::HigherDerivative { .. } => {
            "first and second derivatives only: integrate by parts, so that `-div(a)` in `f0[u]` becomes `f1[u] = a;`"
        }
        BuildError::NoRate { terminal: Terminal::Rate(..) | Terminal::RateGradient(..) } => {
            "first and second derivatives only: let a field be the first, `f0[v] = v - dt(u);`"
        }
        BuildError::NoRate { terminal: Terminal::Aux(..) | Terminal::AuxGradient(..) } => {
            "what data does in time is not known: give its derivative as data of its own"
        }
        BuildError::NoRate { terminal: Terminal::Field(..) } => {
            "an unknown number has no equation of its own in time: let its row hold at each time"
        }
        BuildError::NoRate { .. } => "write `dt(u) * v`: test functions do not depend on time",
        BuildError::NoGradient { terminal: Terminal::Aux(..) } => {
            "only `aux … on nodes` has a gradient"
        }
        BuildError::GradientOfSide { .. } => {
            "derivatives are taken in a cell: `jump(grad(u))` instead of `grad(jump(u))`"
        }
        BuildError::SideOfSide { .. } => {
            "one word for each value: `inside(a) * outside(b)`; it goes down to fields and data"
        }
        BuildError::SideOfNormal { .. } => {
            "write `n`: it points from the inside to the outside; `-n` is the outer normal of the outside"
        }
        BuildError::Index { shape, .. } => return Some(index_help(*shape)),
        BuildError::Operand { operation: "/", found: Type::Tensor(_), .. } => {
            "divide by one number: a component, a `norm`, a `det`"
        }
        BuildError::Operand { operation, expected, found } => {
            return operand_help(operation, expected, *found).map(str::to_owned);
        }
        BuildError::Contraction { left, right, .. } if left.is_scalar() && right.is_scalar() => {
            "numbers are multiplied with `*`"
        }
        BuildError::Unequal { operation, left, right } => unequal_help(operation, *left, *right)?,
        _ => return None,
    };
    Some(help.to_owned())
}

fn operand_help(operation: &str, expected: &str, found: Type) -> Option<&'static str> {
    let Type::Tensor(shape) = found else {
        return Some("`if c { 1 } else { 0 }` makes a number of a condition");
    };
    Some(match (operation, shape.rank()) {
        _ if expected == "a condition" => "compare it with something: `u > 0`",
        ("<" | "<=" | ">" | ">=" | "==" | "!=", _) => "compare components, or the `norm`",
        ("penalty", _) => "a side is taken of the penalty: `inside(penalty(u))`",
        ("outer", 0) => "numbers are multiplied with `*`",
        ("div", 0) => "perhaps `grad` is meant",
        ("tangential", 0) => "a number has no direction: it is its own value on the facet",
        ("tr" | "det" | "inv" | "cof" | "sym" | "skew" | "dev", 1) => {
            "perhaps its gradient is meant"
        }
        ("^", 1) => "the square of its length is `dot(a, a)`",
        _ if expected == "a scalar" && shape.rank() == 1 => "take a component, or the `norm`",
        _ if expected == "a scalar" => "take a component, the `tr`, the `det` or the `norm`",
        _ => return None,
    })
}

fn unequal_help(operation: &str, left: Type, right: Type) -> Option<&'static str> {
    let (Type::Tensor(left), Type::Tensor(right)) = (left, right) else {
        return Some("`if c { 1 } else { 0 }` makes a number of a condition");
    };
    let (scalar, other) = if left.is_scalar() { (left, right) } else { (right, left) };
    Some(match (operation, scalar.is_scalar()) {
        ("+" | "-", true) if other.square().is_some() => "perhaps `… * I` is meant",
        ("if", true) => "a zero of the other's shape is `0 * …`",
        _ => return None,
    })
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

fn is_hessian(terminal: Terminal) -> bool {
    matches!(
        terminal,
        Terminal::FieldHessian(..) | Terminal::TestHessian(..) | Terminal::DirectionHessian(..)
    )
}

fn undifferentiated(terminal: Terminal) -> Terminal {
    match terminal {
        Terminal::FieldGradient(i, side) | Terminal::FieldHessian(i, side) => {
            Terminal::Field(i, side)
        }
        Terminal::TestGradient(i, side) | Terminal::TestHessian(i, side) => Terminal::Test(i, side),
        Terminal::DirectionGradient(i, side) | Terminal::DirectionHessian(i, side) => {
            Terminal::Direction(i, side)
        }
        Terminal::AuxGradient(i, side) => Terminal::Aux(i, side),
        Terminal::RateGradient(i, order, side) => Terminal::Rate(i, order, side),
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
