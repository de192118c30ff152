//! Traces of H(curl) next to edges that hang on the boundary: the surface curl of the interpolant is that of the field.
//!
//! A facet of a child may have an edge whose integrals are interpolated from those of the parent's edge, where they
//! should be those of the field, which differ by ε_i. Then circulations along that edge are wrong, by as much as the field
//! itself where it is singular. With the potential φ of the differences, φ_{i+1} − φ_i = ε_i, which is 0 at the ends of the
//! parent's edge, the integrals across the edge change by φ of the node that they start or end at: the interpolant
//! changes by a discrete gradient.

use super::{FacetTerm, GivenTrace, ReferenceFunctional, Space, complete, of_trace};
use crate::mesh::{Facet, Mesh};
use kernels_gen::abi::hanging::upper;
use kernels_gen::element::{ElementError, Whitney, WhitneyFamily};
use std::collections::{BTreeMap, BTreeSet};

/// An edge of a child's boundary facet: along axis `along`, at the end `end` of the facet's other axis `across`.
#[derive(Clone, Copy)]
struct FacetEdge {
    facet: Facet,
    along: usize,
    across: usize,
    end: usize,
}

impl FacetEdge {
    /// Returns the local index of an integral of a component, from its indices along and across the edge.
    fn local(&self, element: Whitney, component: usize, [along, across]: [usize; 2]) -> usize {
        let side = usize::from(self.facet.local);
        let mut lattice = [0; 3];
        lattice[side / 2] = side % 2 * element.degree();
        (lattice[self.along], lattice[self.across]) = (along, across);
        let [n, m, _] = element.extents(component);
        element.first(component) + lattice[0] + n * (lattice[1] + m * lattice[2])
    }
}

/// Returns the edges of facets of hexahedra.
fn edges(facets: &[Facet]) -> impl Iterator<Item = FacetEdge> {
    facets.iter().flat_map(|&facet| {
        let normal = usize::from(facet.local) / 2;
        let axes = [(normal + 1) % 3, (normal + 2) % 3];
        [[axes[0], axes[1]], [axes[1], axes[0]]].into_iter().flat_map(move |[along, across]| {
            [0, 1].map(|end| FacetEdge { facet, along, across, end })
        })
    })
}

/// Corrects the functionals of degrees of freedom next to hanging edges. Collective.
///
/// # Errors
///
/// The geometry has no element.
pub(super) fn correct(
    mesh: &Mesh,
    space: &Space,
    facets: &[Facet],
    given: GivenTrace,
    found: &mut BTreeMap<u32, Vec<FacetTerm>>,
) -> Result<(), ElementError> {
    let element = space.whitney();
    if element.family() != WhitneyFamily::Curl || mesh.dim() != 3 || !mesh.cell().is_tensor() {
        return Ok(());
    }
    let (k, dofs, mut functionals) = (element.degree(), element.dofs(), BTreeMap::new());
    let (hangs, words) = (space.hanging_nodes(), space.hanging.as_ref());
    let (mut corrected, mut done) = (BTreeMap::new(), BTreeSet::new());
    let hanging = edges(facets).filter_map(|edge| {
        let cell = edge.facet.cell as usize;
        let first = edge.local(element, edge.along, [0, edge.end * k]);
        let word = words.filter(|_| hangs.as_ref().is_some_and(|hangs| hangs(cell, first)))?[cell];
        Some((edge, cell, word >> upper(edge.along) & 1 == 1))
    });
    for (edge, cell, is_upper) in hanging {
        let side = usize::from(edge.facet.local);
        let locals: Vec<usize> =
            (0..k).map(|i| edge.local(element, edge.along, [i, edge.end * k])).collect();
        let sign = |local: usize| if space.is_reversed(cell, local) { -1.0 } else { 1.0 };
        let node = |local: usize| space.cell_nodes(cell)[local];
        let table = element.line(edge.along, edge.along).of_parent(is_upper);
        let mut differences: Vec<Vec<FacetTerm>> = Vec::with_capacity(k);
        for (i, &local) in locals.iter().enumerate() {
            if let std::collections::btree_map::Entry::Vacant(entry) = functionals.entry(local) {
                entry.insert(ReferenceFunctional::new(mesh, element, dofs[local])?);
            }
            let own = &functionals[&local];
            let terms = own.terms(mesh, cell, false).enumerate().map(|(q, (point, weight))| {
                let normal = own.map.at(mesh, cell, q).normal(mesh.cell(), side);
                let (weight, along) = of_trace(mesh.dim(), given, &weight, &normal);
                (point, weight, along)
            });
            let mut terms: Vec<FacetTerm> = terms.collect();
            for (j, &parent) in locals.iter().enumerate() {
                let factor = -table[i * k + j] * sign(parent);
                let parents = found.get(&node(parent)).into_iter().flatten();
                terms.extend(parents.map(|term| scaled(term, factor)));
            }
            differences.push(terms);
        }
        // φ is 0 at the end that the parent's edge has, too.
        let sums: Vec<(usize, std::ops::Range<usize>, f64)> = match is_upper {
            false => (1..=k).map(|i| (i, 0..i, 1.0)).collect(),
            true => (0..k).map(|i| (i, i..k, -1.0)).collect(),
        };
        for (i, range, factor) in sums {
            let interval = edge.end * (k - 1);
            let local = edge.local(element, edge.across, [i, interval]);
            // Children that meet at a node have the same potential there.
            if !done.insert((node(local), node(locals[0]))) {
                continue;
            }
            let Some(own) = found.get(&node(local)) else { continue };
            let at_start = if edge.end == 0 { 1.0 } else { -1.0 };
            let terms = corrected.entry(node(local)).or_insert_with(|| own.clone());
            let factor = sign(local) * at_start * factor;
            let potential = differences[range].iter().flatten();
            terms.extend(potential.map(|term| scaled(term, factor)));
        }
    }
    complete(mesh, space, &mut corrected);
    found.extend(corrected);
    Ok(())
}

/// Returns a term with weights times a factor.
fn scaled((point, weight, along): &FacetTerm, factor: f64) -> FacetTerm {
    (*point, weight.map(|weight| factor * weight), factor * along)
}
