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
    on_a_device: bool,
) -> Result<(), RunError> {
    if mesh.cut().is_none() {
        return Ok(());
    }
    let assembled = target.representation.is_some_and(|how| how != Representation::MatrixFree);
    let cannot: [(bool, &str, &str); 2] = [
        (on_a_device, "use GPUs", "leave --backend out, or start one process"),
        (assembled, "assemble a matrix", "leave --operator out, or start one process"),
    ];
    let refused = |what: &str, help: &str| {
        Err(RunError::Setting(format!("several processes cannot {what} yet\nhelp: {help}")))
    };
    if let Some((_, what, help)) = cannot.into_iter().find(|(is, ..)| *is) {
        return refused(what, help);
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
