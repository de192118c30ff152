//! A pressure of `L2` and a continuous velocity whose own row has no gradient, as in Darcy's equations: the pair holds the
//! divergence of the velocity, and nothing holds its derivatives, so that it oscillates.
//!
//! Stokes' equations bound ‖∇u‖, and `H1(k)` beside `L2(k − 2)` is inf-sup stable in that norm. Darcy's bound ‖u‖ alone: the
//! pair would have to be stable in H(div), where the divergence of each velocity that the pressure does not see is 0.

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::differentiate::differentiate;
use crate::form::Form;
use crate::point::{Part, PointForm, Space, point};
use crate::simplify::simplify;

/// A warning for a form without errors that has such a pair.
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

/// A discontinuous field without a term with itself and a continuous vector field that it meets through one first
/// derivative, as in ∫ p div u, where the latter has no product of derivatives with itself.
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
