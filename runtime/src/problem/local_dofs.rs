//! Cell-local degrees of freedom ([`LocalDofs`]) of a form, for static condensation.

use crate::solve::LocalDofs;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::{Coefficient, PointForm, Slot, eliminated, is_read, is_symmetric_without};

/// Returns the degrees of freedom to eliminate, if there are any.
pub(super) fn local(form: &PointForm, on: &Discretisation) -> Option<LocalDofs> {
    let fields = eliminated(form);
    if fields.is_empty() {
        return None;
    }
    // Local indices of a cell: by field and node, components innermost.
    let mut kinds = Vec::new();
    let mut kind_of = Vec::new();
    let mut node_of = Vec::new();
    for &field in &fields {
        let space = &on.fields[field].space;
        let first = kinds.len();
        kinds.extend((0..space.components()).map(|component| (field, component)));
        for node in 0..space.element().count() {
            for component in 0..space.components() {
                kind_of.push(first + component);
                node_of.push(node);
            }
        }
    }
    let coupled = |a: usize, b: usize| {
        let is = |slot: Slot, kind: usize| (slot.field, slot.component) == kinds[kind];
        let term = |term: &Coefficient| is(term.test, a) && is(term.trial, b);
        a == b || form.integrals.iter().any(|of| of.jacobian.iter().any(term))
    };
    // Directly or indirectly coupled components form a cluster.
    let mut cluster_of: Vec<usize> = (0..kinds.len()).collect();
    for a in 0..kinds.len() {
        for b in 0..a {
            if coupled(a, b) || coupled(b, a) {
                let (from, to) = (cluster_of[a], cluster_of[b]);
                cluster_of.iter_mut().filter(|own| **own == from).for_each(|own| *own = to);
            }
        }
    }
    let mut names = cluster_of.clone();
    names.sort_unstable();
    names.dedup();
    let places = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..kind_of.len()).filter(|&place| wanted(place)).collect()
    };
    let clusters: Vec<Vec<usize>> =
        names.iter().map(|&name| places(&|place| cluster_of[kind_of[place]] == name)).collect();
    // Each product probes one index of each cluster.
    let longest = clusters.iter().map(Vec::len).max().unwrap_or(0);
    let products = (0..longest)
        .map(|at| clusters.iter().filter_map(|cluster| cluster.get(at).copied()).collect())
        .collect();
    let mut dofs = Vec::with_capacity(on.mesh.n_cells() * kind_of.len());
    for cell in 0..on.mesh.n_cells() {
        for &field in &fields {
            let (space, start) = (&on.fields[field].space, on.dofs_of(field).start);
            for &node in space.cell_nodes(cell) {
                let first = start + node as usize * space.components();
                dofs.extend((first..first + space.components()).map(|dof| dof as u32));
            }
        }
    }
    Some(LocalDofs {
        dofs,
        of_cell: kind_of.len(),
        clusters,
        products,
        colours: Vec::new(),
        is_read: is_read(form, &fields),
        symmetric: is_symmetric_without(form, &fields),
    })
}
