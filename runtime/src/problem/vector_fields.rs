//! Checks of problems with fields of H(curl) and H(div): combinations that are not implemented for them.

use super::RunError;
use fem_dsl::point::{Location, Part, PointForm, Slot};
use fem_dsl::problem::{EigenPreconditioner, Problem};

/// Returns whether a form has such a field.
pub(super) fn has_vector_functions(form: &PointForm) -> bool {
    form.fields.iter().any(|field| field.space.is_piola())
}

/// Returns the index of such a field of which only the exterior derivative occurs: gradients, or curls, are then the kernel
/// of the Jacobian.
pub(super) fn has_kernel(form: &PointForm) -> Option<usize> {
    let occurs = |field: usize| {
        let of_value = |slot: Slot| slot.field == field && !matches!(slot.part, Part::Exterior(_));
        form.integrals.iter().any(|integral| {
            let mut entries = integral.jacobian.iter();
            entries.any(|entry| of_value(entry.test) || of_value(entry.trial))
        })
    };
    (0..form.fields.len()).find(|&field| form.fields[field].space.is_piola() && !occurs(field))
}

/// Checks that a problem asks of such fields only what they have.
///
/// # Errors
///
/// The first combination that is not implemented, with a remedy.
pub(super) fn check(problem: &Problem) -> Result<(), RunError> {
    let form = &problem.form;
    let on_fields = form.fields.iter().find(|field| field.space.is_piola());
    let refused = |name: &str, what: &str, help: &str| {
        Err(RunError::Setting(format!("`{name}` is in H(curl) or H(div): {what}\nhelp: {help}")))
    };
    let with_others = |_: &usize| form.fields.len() > 1;
    if let Some(field) = has_kernel(form).filter(with_others) {
        let name = &form.fields[field].name;
        if problem.eigen.is_some() {
            return refused(
                name,
                "the eigenvalue 0 belongs to all its gradients or curls, which are kept out for a single field alone",
                "ask for the eigenvalues of a form of this field",
            );
        }
        tracing::warn!(
            "of `{name}` the derivative alone occurs, which leaves gradients or curls open: solves need a right-hand side \
             without them, to rounding; a small term, `1e-6 * {name}` in `f0[{name}]`, gives them a size"
        );
    }
    let is_direct = problem
        .eigen
        .as_ref()
        .is_some_and(|eigen| eigen.preconditioner == Some(EigenPreconditioner::Direct));
    if let Some(field) = has_kernel(form).filter(|_| is_direct) {
        return refused(
            &form.fields[field].name,
            "shift and invert finds the eigenvalue 0 of all its gradients or curls",
            "write `preconditioner: multigrid`, or leave it out",
        );
    }
    let is_interior = form.integrals.iter().any(|integral| integral.region.is_interior());
    if let Some(field) = on_fields.filter(|_| is_interior && problem.adapt.is_some()) {
        return refused(
            &field.name,
            "error estimates of terms between cells are not implemented for it",
            "refine the whole mesh with `refine`",
        );
    }
    let follows = problem.adapt.is_some() && problem.stepping.is_some();
    if let Some(field) = on_fields.filter(|_| follows) {
        return refused(
            &field.name,
            "steady gradients or curls have no residual, so that a mesh that follows it through time would lose them",
            "leave `adapt` out, and refine the whole mesh with `refine`",
        );
    }
    let is_vector = |location| matches!(location, Location::Nodes(space) if space.is_piola());
    if let Some(data) = form.aux.iter().find(|data| is_interior && is_vector(data.location)) {
        return refused(
            &data.name,
            "data of these spaces has no values on facets between cells",
            "declare it `on nodes in L2(k)`, or leave these terms out",
        );
    }
    let starts = problem.initial.iter().chain(&problem.initial_rate);
    for (field, value) in starts {
        let own = &form.fields[*field];
        if own.space.is_piola() && value.formula().is_none() {
            return refused(
                &own.name,
                "files hold values at nodes, which it does not have",
                "state the initial value as a formula, or go on from a checkpoint with `--restart`",
            );
        }
    }
    for data in &problem.aux {
        let own = &form.aux[data.aux];
        if is_vector(own.location) && (data.value.formula().is_none() || data.tags.is_some()) {
            return refused(
                &own.name,
                "its data is one formula on the whole mesh",
                "declare the data `on points` or `on cells`",
            );
        }
    }
    Ok(())
}
