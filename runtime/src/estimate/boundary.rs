//! Boundary residual of f1 · n + f0 = 0 with essential conditions and facet integrals.
//!
//! With R = ∫ f0 φ + f1 : ∇φ dx + ∫ f0_tag φ ds, the boundary residual is f1 · n + f0_tag, except for constrained φ:
//! components constrained at all nodes of a facet are excluded. If the normal component of a vector is constrained,
//! only the tangential part counts. Gradient terms of facet integrals are ignored: φ with given values on the facet may
//! have any gradient.

use super::points::PointOperations;
use super::required::RequiredValues;
use super::surface::length;
use crate::mesh::Facet;
use crate::mesh::measure::Gradients;
use crate::mesh::views::reference_normal;
use crate::space::constraint::Constraints;
use crate::space::discretisation::{Discretisation, Field};
use kernels_gen::element::{ElementError, Lagrange};
use std::collections::BTreeMap;

/// Integrands of facet integrals, in addition to the flux.
pub(super) struct FacetSources<'a> {
    on: &'a Discretisation,
    /// Number of values per facet, and weights of the points.
    numbers: usize,
    weights: &'a [f64],
    /// `[facet][number][point]`
    of: Vec<(usize, Vec<f64>)>,
}

impl<'a> FacetSources<'a> {
    pub(super) fn new(
        on: &'a Discretisation,
        wanted: &RequiredValues,
        weights: &'a [f64],
        of: Vec<(usize, Vec<f64>)>,
    ) -> Self {
        Self { on, numbers: wanted.asked.numbers, weights, of }
    }

    /// Adds an integrand at the points of a facet to a density.
    pub(super) fn add(&self, facet: Facet, number: usize, into: &mut [f64]) {
        let points = self.weights.len();
        for (integral, numbers) in &self.of {
            let Ok(at) = self.on.facets_of(*integral).binary_search(&facet) else { continue };
            let own = &numbers[(at * self.numbers + number) * points..][..points];
            let densities = own.iter().zip(self.weights);
            into.iter_mut().zip(densities).for_each(|(to, (f, w))| *to += f / w);
        }
    }

    /// Sums a value over all facets.
    pub(super) fn sum(&self, number: usize) -> f64 {
        let points = self.weights.len();
        let each = self.of.iter().flat_map(|(_, all)| all.chunks_exact(self.numbers * points));
        each.flat_map(|own| &own[number * points..][..points]).sum()
    }
}

/// Constraints on a facet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FacetConstraints {
    /// Mask of constrained components.
    pub(super) components: Vec<bool>,
    /// True if the normal component is constrained as well.
    pub(super) normal: bool,
}

/// Essential conditions of a field on facets.
pub(super) struct EssentialConditions<'a> {
    on: &'a Discretisation,
    field: &'a Field,
    /// N of nodes with oblique conditions.
    oblique: BTreeMap<u32, [[f64; 3]; 3]>,
    /// Geometry gradients at the nodes of the element.
    gradients: Gradients,
}

/// Squared share of the normal above which it counts as constrained.
const MOST: f64 = 0.9;

impl<'a> EssentialConditions<'a> {
    pub(super) fn new(on: &'a Discretisation, field: &'a Field) -> Result<Self, ElementError> {
        let geometry = Lagrange::continuous(on.mesh.cell(), on.mesh.order())?;
        let constraints: &Constraints = &field.constraints;
        let oblique = constraints.oblique().iter().map(|own| (own.node, own.normals)).collect();
        let points = match constraints.oblique() {
            [] => Vec::new(),
            _ => field.space.nodal().points(),
        };
        Ok(Self { on, field, oblique, gradients: Gradients::of_element(geometry, &points) })
    }

    /// Returns the constraints on a facet.
    pub(super) fn on(&self, facet: Facet) -> FacetConstraints {
        let (space, components) = (&self.field.space, self.field.space.components());
        let (cell, local) = (facet.cell as usize, usize::from(facet.local));
        let (own, all) = (space.facet_nodes(local), space.cell_nodes(cell));
        let given = |node: u32, c: usize| {
            self.field.constraints.is_constrained(node as usize * components + c)
        };
        // An element without facet nodes has no conditions.
        let constrained =
            |c: usize| !own.is_empty() && own.iter().all(|&at| given(all[at as usize], c));
        let components: Vec<bool> = (0..components).map(constrained).collect();
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
        FacetConstraints { components, normal }
    }

    /// Returns the normal at a node of the element.
    fn normal(&self, cell: usize, local: usize, node: usize) -> [f64; 3] {
        let (mesh, reference) = (&self.on.mesh, reference_normal(self.on.mesh.cell(), local));
        let nodes = mesh.cell_nodes(cell).iter().map(|&node| mesh.points()[node as usize]);
        let (_, cofactor) = self.gradients.cofactor(node, nodes);
        let normal = cofactor.map(|row| (0..3).map(|a| row[a] * reference[a]).sum::<f64>());
        let size = length(&normal).max(f64::MIN_POSITIVE);
        normal.map(|x| x / size)
    }
}

/// Removes the constrained part of a residual, `[component][point]`; `area` is n ds at a point.
pub(super) fn leave_free(
    constrained: &FacetConstraints,
    points: &PointOperations,
    residual: &mut [f64],
    area: impl Fn(usize) -> [f64; 3],
) {
    let count = points.on_facet;
    for (own, _) in residual
        .chunks_exact_mut(count)
        .zip(&constrained.components)
        .filter(|(_, constrained)| **constrained)
    {
        own.fill(0.0);
    }
    if !constrained.normal {
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
