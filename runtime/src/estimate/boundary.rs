//! The boundary: essential conditions and integrals over facets → the residual of f1 · n + f0 = 0.
//!
//! With R = ∫ f0 φ + f1 : ∇φ dx + ∫ f0_tag φ ds, what φ tests on a facet of the boundary is f1 · n + f0_tag, but where φ is
//! held at 0: components that are given at all nodes of a facet count for nothing, and where the normal component of a vector is
//! given only the tangential part counts. What an integral over facets tests against gradients has no place in it: against φ
//! with the same values on the facet it may be anything.

use super::points::Points;
use super::surface::length;
use super::views::reference_normal;
use super::wanted::Wanted;
use crate::mesh::Facet;
use crate::mesh::measure::Gradients;
use crate::space::constraint::Constraints;
use crate::space::discretisation::{Discretisation, Field};
use kernels_gen::element::{ElementError, Lagrange};
use std::collections::BTreeMap;

/// What is tested on facets beside the flux, for each integral over facets.
pub(super) struct Sources<'a> {
    on: &'a Discretisation,
    /// Numbers and points of a facet, and the weights of these.
    numbers: usize,
    weights: &'a [f64],
    /// `[facet][number][point]`
    of: Vec<(usize, Vec<f64>)>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(
        on: &'a Discretisation,
        wanted: &Wanted,
        weights: &'a [f64],
        of: Vec<(usize, Vec<f64>)>,
    ) -> Self {
        Self { on, numbers: wanted.asked.numbers, weights, of }
    }

    /// Adds what stands against a number at the points of a facet to a density.
    pub(super) fn add(&self, facet: Facet, number: usize, into: &mut [f64]) {
        let points = self.weights.len();
        for (integral, numbers) in &self.of {
            let Ok(at) = self.on.facets_of(*integral).binary_search(&facet) else { continue };
            let own = &numbers[(at * self.numbers + number) * points..][..points];
            let densities = own.iter().zip(self.weights);
            into.iter_mut().zip(densities).for_each(|(to, (f, w))| *to += f / w);
        }
    }

    /// The sum of a number over all facets.
    pub(super) fn sum(&self, number: usize) -> f64 {
        let points = self.weights.len();
        let each = self.of.iter().flat_map(|(_, all)| all.chunks_exact(self.numbers * points));
        each.flat_map(|own| &own[number * points..][..points]).sum()
    }
}

/// What conditions hold on a facet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Held {
    /// Component by component.
    pub(super) components: Vec<bool>,
    /// Of what is left, the normal part.
    pub(super) normal: bool,
}

/// What holds a field on facets.
pub(super) struct Conditions<'a> {
    on: &'a Discretisation,
    field: &'a Field,
    /// N of nodes with conditions on combinations of components.
    oblique: BTreeMap<u32, [[f64; 3]; 3]>,
    /// The geometry's gradients at the nodes of the element.
    gradients: Gradients,
}

/// A direction is held where this much of it lies in what is given, squared.
const MOST: f64 = 0.9;

impl<'a> Conditions<'a> {
    pub(super) fn new(on: &'a Discretisation, field: &'a Field) -> Result<Self, ElementError> {
        let geometry = Lagrange::continuous(on.mesh.cell(), on.mesh.order())?;
        let constraints: &Constraints = &field.constraints;
        let oblique = constraints.oblique().iter().map(|own| (own.node, own.given)).collect();
        let points = match constraints.oblique() {
            [] => Vec::new(),
            _ => field.space.element().points(),
        };
        Ok(Self { on, field, oblique, gradients: Gradients::of_element(geometry, &points) })
    }

    /// What is held on a facet.
    pub(super) fn on(&self, facet: Facet) -> Held {
        let (space, components) = (&self.field.space, self.field.space.components());
        let (cell, local) = (facet.cell as usize, usize::from(facet.local));
        let (own, all) = (space.facet_nodes(local), space.cell_nodes(cell));
        let given = |node: u32, c: usize| {
            self.field.constraints.is_constrained(node as usize * components + c)
        };
        // An element without nodes there has no conditions.
        let held = |c: usize| !own.is_empty() && own.iter().all(|&at| given(all[at as usize], c));
        let components: Vec<bool> = (0..components).map(held).collect();
        let dim = self.on.mesh.dim();
        let normal = !self.oblique.is_empty() && components.len() == dim && {
            own.iter().all(|&at| {
                let node = all[at as usize];
                let n = self.normal(cell, local, at as usize);
                let oblique = self.oblique.get(&node);
                let share = |c: usize| {
                    let component = if given(node, c) { n[c] * n[c] } else { 0.0 };
                    let row = oblique.map_or(0.0, |given| (0..3).map(|d| given[c][d] * n[d]).sum());
                    component + n[c] * row
                };
                (0..dim).map(share).sum::<f64>() > MOST
            })
        };
        Held { components, normal }
    }

    /// The normal at a node of the element.
    fn normal(&self, cell: usize, local: usize, node: usize) -> [f64; 3] {
        let (mesh, reference) = (&self.on.mesh, reference_normal(self.on.mesh.cell(), local));
        let nodes = mesh.cell_nodes(cell).iter().map(|&node| mesh.points()[node as usize]);
        let (_, cofactor) = self.gradients.cofactor(node, nodes);
        let normal = cofactor.map(|row| (0..3).map(|a| row[a] * reference[a]).sum::<f64>());
        let size = length(&normal).max(f64::MIN_POSITIVE);
        normal.map(|x| x / size)
    }
}

/// Takes the part that conditions hold out of a residual, `[component][point]`; `area` gives n ds at a point.
pub(super) fn leave_free(
    held: &Held,
    points: &Points,
    residual: &mut [f64],
    area: impl Fn(usize) -> [f64; 3],
) {
    let count = points.on_facet;
    for (own, _) in
        residual.chunks_exact_mut(count).zip(&held.components).filter(|(_, held)| **held)
    {
        own.fill(0.0);
    }
    if !held.normal {
        return;
    }
    let components = residual.len() / count;
    for q in 0..count {
        let vector = area(q);
        let square = vector.iter().map(|x| x * x).sum::<f64>().max(f64::MIN_POSITIVE);
        let along: f64 = (0..components).map(|c| residual[c * count + q] * vector[c]).sum();
        (0..components).for_each(|c| residual[c * count + q] -= along / square * vector[c]);
    }
}
