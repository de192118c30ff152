//! A form → the fields that are local to cells, which are eliminated before a linear solve (static condensation).
//!
//! Fields in L2 are not coupled between cells, except by integrals over facets between them. A field whose equation has a term in its own value over all cells has
//! its own block in each cell, which is usually regular.

use super::{Coefficient, Part, PointForm, Region, Slot, Space};

/// Returns the indices of the eliminated fields.
pub fn eliminated(form: &PointForm) -> Vec<usize> {
    let own = |field: usize, term: &Coefficient| {
        let is_value = |slot: Slot| slot.field == field && slot.part == Part::Value;
        is_value(term.test) && is_value(term.trial)
    };
    let everywhere = || form.integrals.iter().filter(|of| of.region == Region::Cells);
    let has_own = |field: usize| everywhere().any(|of| of.jacobian.iter().any(|t| own(field, t)));
    let interior = || form.integrals.iter().filter(|of| of.region.is_interior());
    let joined = |field: usize| {
        let terms = || interior().flat_map(|of| &of.jacobian);
        terms().any(|term| term.test.field == field || term.trial.field == field)
    };
    let is_local =
        |field: &usize| matches!(form.fields[*field].space, Space::L2(_)) && !joined(*field);
    let found: Vec<usize> =
        (0..form.fields.len()).filter(is_local).filter(|&field| has_own(field)).collect();
    let stays = |field: &usize| !found.contains(field);
    let with_itself = |field: usize| {
        let entries = form.integrals.iter().flat_map(|of| &of.jacobian);
        entries.into_iter().any(|t| t.test.field == field && t.trial.field == field)
    };
    let mut others = (0..form.fields.len()).filter(stays).peekable();
    // The remaining system must not be empty, and its diagonal must approximate that of the Schur complement.
    let fits = others.peek().is_some() && (!is_read(form, &found) || others.all(with_itself));
    if fits { found } else { Vec::new() }
}

/// Returns whether the equations of other fields contain eliminated ones.
pub fn is_read(form: &PointForm, eliminated: &[usize]) -> bool {
    let local = |field: usize| eliminated.contains(&field);
    let reads = |term: &Coefficient| !local(term.test.field) && local(term.trial.field);
    form.integrals.iter().any(|of| of.jacobian.iter().any(reads))
}

/// Returns whether the Jacobian is symmetric after elimination of fields.
pub fn is_symmetric_without(form: &PointForm, eliminated: &[usize]) -> bool {
    if form.integrals.iter().all(|of| of.symmetric) {
        return true;
    }
    if eliminated.is_empty() || is_read(form, eliminated) {
        return false;
    }
    let stays = |term: &&Coefficient| {
        !eliminated.contains(&term.test.field) && !eliminated.contains(&term.trial.field)
    };
    form.integrals.iter().all(|of| {
        let own = || of.jacobian.iter().filter(stays);
        own().all(|a| own().any(|b| (a.test, a.trial) == (b.trial, b.test) && a.value == b.value))
    })
}

#[cfg(test)]
mod tests {
    use super::{eliminated, is_read, is_symmetric_without};
    use crate::point::PointForm;
    use crate::program::compile;
    use crate::source::Source;

    fn form(items: &str) -> PointForm {
        let text = format!("form f {{ field u: scalar; {items} }}");
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", 2).expect("a form")
    }

    #[test]
    fn fields_in_l2_with_a_term_in_their_own_value_are_local() {
        let post = form("field s: vector in L2; f1[u] = grad(u); f0[s] = s - grad(u);");
        assert_eq!(eliminated(&post), [1]);
        assert!(!is_read(&post, &[1]) && is_symmetric_without(&post, &[1]));
        let read = form("field s: vector in L2; f1[u] = grad(u) - s; f0[s] = 2 * s - grad(u);");
        assert_eq!(eliminated(&read), [1]);
        assert!(is_read(&read, &[1]));
        let joined = form(
            "field s: vector in L2; f1[u] = grad(u); f0[s] = s - grad(u);
            on interior { f0[jump(s)] = jump(s); }",
        );
        assert!(eliminated(&joined).is_empty());
        // The remaining system would have no diagonal.
        let mixed = form("field s: vector in L2; f1[u] = -s; f0[s] = s - grad(u);");
        assert!(eliminated(&mixed).is_empty());
        let pressure =
            form("field p: scalar in L2; f1[u] = grad(u) - [p, p]; f0[p] = -grad(u)[0];");
        assert!(eliminated(&pressure).is_empty());
    }
}
