//! A discontinuous pressure (`L2`) with a continuous velocity whose own row has no gradient, as in Darcy's equations.
//! The pair controls the divergence of the velocity but not its derivatives, so that the velocity oscillates.
//!
//! Stokes' equations bound ‖∇u‖, and `H1(k)` with `L2(k − 2)` is inf-sup stable in that norm. Darcy's equations only
//! bound ‖u‖: the pair would have to be stable in H(div), where each velocity orthogonal to the discrete pressures must
//! be divergence-free.

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::differentiate::differentiate;
use crate::form::Form;
use crate::point::{Part, PointForm, Space, point};
use crate::simplify::simplify;

/// Returns a warning if a form without errors has such a pair.
pub(crate) fn darcy(written: &ast::Form, form: &Form) -> Option<Diagnostic> {
    let spaces = || form.fields.iter().map(|field| field.space);
    if !spaces().any(|space| matches!(space, Space::L2(_)))
        || !spaces().any(|space| matches!(space, Space::H1(_)))
    {
        return None;
    }
    let form = point(&simplify(&differentiate(form)));
    let (pressure, velocity) = pair(&form)?;
    let [p, u] = [pressure, velocity].map(|field| &form.fields[field]);
    let declared = |wanted: &str| {
        written.items.iter().find_map(|item| match &item.kind {
            ast::FormItemKind::Field { name, .. } if name.name == wanted => Some(name.span),
            _ => None,
        })
    };
    let message = format!(
        "`{}` in `{}` and `{}` in `{}` oscillate: the row of `{}` has no gradient of `{}`",
        p.name, p.space, u.name, u.space, u.name, u.name
    );
    let help = format!(
        "let `{}` be the only unknown, in `H1(k)`, with the flux as its `f1`: a flux in `L2(k - 1)` beside it is \
         κ∇{} (`examples/discontinuous.wf`)",
        p.name, p.name
    );
    let diagnostic = Diagnostic::warning(Code::UnstableForDarcy, message)
        .label(declared(&p.name)?, "holds the divergence alone")
        .secondary(declared(&u.name)?, "nothing bounds its derivatives")
        .help(help);
    Some(diagnostic)
}

/// Returns a discontinuous field without a term with itself, and a continuous vector field coupled to it. The coupling
/// has one first derivative, as in ∫ p div u. The vector field has a term with itself, without a product of its
/// derivatives.
fn pair(form: &PointForm) -> Option<(usize, usize)> {
    let cells = || form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    let derived = |part: Part| usize::from(part != Part::Value);
    let derivatives = |test: usize, trial: usize| -> Vec<usize> {
        let entries = cells().flat_map(|integral| &integral.jacobian);
        let own = entries.filter(|entry| (entry.test.field, entry.trial.field) == (test, trial));
        own.map(|entry| derived(entry.test.part) + derived(entry.trial.part)).collect()
    };
    let fields = || form.fields.iter().enumerate();
    let pressures = fields()
        .filter(|(p, field)| matches!(field.space, Space::L2(_)) && derivatives(*p, *p).is_empty());
    let velocities = |p: usize| {
        fields().find(|(v, field)| {
            let shared = [derivatives(p, *v), derivatives(*v, p)].concat();
            matches!(field.space, Space::H1(_))
                && field.shape.components() >= form.dim
                && !shared.is_empty()
                && shared.iter().all(|&count| count == 1)
                && !derivatives(*v, *v).is_empty()
                && !derivatives(*v, *v).contains(&2)
        })
    };
    pressures.into_iter().find_map(|(p, _)| velocities(p).map(|(v, _)| (p, v)))
}
