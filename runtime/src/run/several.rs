//! What several processes cannot do together yet, each with its error: rather none than a wrong number.

use super::RunError;
use crate::assembly::Representation;
use crate::compile::Target;
use crate::mesh::Mesh;
use fem_dsl::problem::{Argument, Problem};

/// Whether a problem can be solved on a mesh that is cut; where it is not cut, it can.
///
/// # Errors
///
/// What cannot be done, with what can be done instead.
pub(super) fn check_several(
    problem: &Problem,
    mesh: &Mesh,
    target: &Target,
) -> Result<(), RunError> {
    if mesh.cut().is_none() {
        return Ok(());
    }
    let assembled = target.representation.is_some_and(|how| how != Representation::MatrixFree);
    let refused = |what: &str, help: &str| {
        Err(RunError::Setting(format!("several processes cannot {what} yet\nhelp: {help}")))
    };
    if assembled {
        return refused("assemble a matrix", "leave --operator out, or start one process");
    }
    if problem.eigen.as_ref().is_some_and(|own| own.preconditioner.as_deref() == Some("direct")) {
        return refused("solve by factors", "leave `preconditioner` out, or start one process");
    }
    let Some(solver) = &problem.solver else { return Ok(()) };
    let word = |key: &str| match solver.arguments.get(key) {
        Some(Argument::Word(word) | Argument::Made { name: word, .. }) => word.as_str(),
        _ => "",
    };
    match word("preconditioner") {
        by @ "algebraic" => refused(
            &format!("precondition by `{by}`"),
            "write `preconditioner: jacobi`, leave it out, or start one process",
        ),
        _ => Ok(()),
    }
}
