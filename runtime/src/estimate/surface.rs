//! The measure of facets: the map of a cell and a view of one of its facets → ds at the points of the rule for facets.
//!
//! ```text
//! ds = |cof(J) N| a parameter, with N the normal of the reference cell's facet, as long as that is beside its parameters
//! ```

use super::views::{Views, reference_normal};
use crate::mesh::Mesh;
use crate::mesh::measure::Gradients;
use kernels_gen::element::{ElementError, Lagrange, Rule};

/// What is known of the facets of all cells.
pub(super) struct Surface<'m> {
    mesh: &'m Mesh,
    views: usize,
    /// The weights of the rule for facets.
    pub(super) weights: Vec<f64>,
    normals: Vec<[f64; 3]>,
    /// The geometry's gradients at the points, `[facet][view]`.
    gradients: Vec<Gradients>,
}

impl<'m> Surface<'m> {
    pub(super) fn new(mesh: &'m Mesh, rule: Rule, views: &Views) -> Result<Self, ElementError> {
        let (cell, points) = (mesh.cell(), rule.on_facet());
        let element = Lagrange::continuous(cell, mesh.order())?;
        let (locals, count) = (0..cell.facets().len(), views.count());
        let all = locals.clone().flat_map(|local| (0..count).map(move |view| (local, view)));
        let at = |(local, view): (usize, usize)| {
            Gradients::of_element(element, &views.points(local, view as u8, &points))
        };
        let gradients = all.map(at).collect();
        let normals = locals.map(|local| reference_normal(cell, local)).collect();
        let weights = points.into_iter().map(|(_, weight)| weight).collect();
        Ok(Self { mesh, views: count, weights, normals, gradients })
    }

    /// n ds, as long as ds a parameter, at a point of a view of a cell's facet.
    pub(super) fn area(&self, cell: usize, local: usize, view: u8, point: usize) -> [f64; 3] {
        let points = self.mesh.points();
        let nodes = self.mesh.cell_nodes(cell).iter().map(|&node| points[node as usize]);
        let gradients = &self.gradients[local * self.views + usize::from(view)];
        let (det, cofactor) = gradients.cofactor(point, nodes);
        let sign = if det < 0.0 { -1.0 } else { 1.0 };
        let normal = &self.normals[local];
        cofactor.map(|row| sign * (0..3).map(|a| row[a] * normal[a]).sum::<f64>())
    }

    /// The largest distance of two vertices of a cell's facet.
    pub(super) fn diameter(&self, cell: usize, local: usize) -> f64 {
        let (all, points) = (self.mesh.vertices(cell), self.mesh.points());
        let own = self.mesh.cell().facets()[local].iter().map(|&v| points[all[v] as usize]);
        crate::mesh::measure::largest_distance(own)
    }
}

/// The length of a vector.
pub(super) fn length(vector: &[f64; 3]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}
