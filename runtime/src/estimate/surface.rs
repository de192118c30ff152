//! Surface measure of facets: n ds at the points of the facet rule, for each view.
//!
//! ```text
//! n ds = ∂x/∂s × ∂x/∂t per parameter, with the frame's coordinates s, t; in the plane ∂x/∂s rotated by a right angle
//! ```
//!
//! On a facet only its own nodes contribute. The sign of the normal depends on the frame.

use super::required::TraceKind;
use crate::mesh::Mesh;
use crate::mesh::measure::largest_distance;
use crate::mesh::views::FacetViews;
use kernels_gen::element::{ElementError, Lagrange, Rule, Tabulation, tabulate};

/// Geometry of the facets of all cells.
pub(super) struct FacetGeometry<'m> {
    mesh: &'m Mesh,
    views: usize,
    /// Weights of the facet rule.
    pub(super) weights: Vec<f64>,
    /// Tangent tables of x, `[facet][view]`.
    slopes: Vec<FacetTangents>,
}

/// Metric of a facet at a point, per parameter of its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FacetMetric {
    /// |∂x/∂s × ∂x/∂t|.
    pub(super) area: f64,
    /// Scalar products of ∂x/∂s and ∂x/∂t: ss, st, tt.
    pub(super) products: [f64; 3],
}

impl FacetMetric {
    /// Number of its values.
    pub(super) const COUNT: usize = 4;

    /// Returns its values.
    pub(super) fn values(self) -> [f64; Self::COUNT] {
        let [ss, st, tt] = self.products;
        [self.area, ss, st, tt]
    }

    /// Returns the metric with some values.
    pub(super) fn of_values(values: &[f64]) -> Self {
        Self { area: values[0], products: [values[1], values[2], values[3]] }
    }

    /// Returns |r|² ds per parameter of a trace's values at a point.
    pub(super) fn square(self, kind: TraceKind, mut values: impl Iterator<Item = f64>) -> f64 {
        match kind {
            TraceKind::Value => values.map(|r| r * r).sum::<f64>() / self.area,
            TraceKind::Flux => values.map(|r| r * r).sum::<f64>() * self.area,
            TraceKind::Tangential => {
                let (s, t) = (values.next().unwrap_or(0.0), values.next().unwrap_or(0.0));
                let [ss, st, tt] = self.products;
                (s * s * ss + 2.0 * s * t * st + t * t * tt) / self.area
            }
        }
    }
}

/// Derivatives of a facet's nodal basis along the frame.
struct FacetTangents {
    /// Geometry nodes of the cell that lie on the facet.
    nodes: Vec<usize>,
    /// Derivatives along s and t, `[point][node]`.
    along: Vec<[f64; 2]>,
}

impl FacetTangents {
    fn new(
        views: &FacetViews,
        (local, view): (usize, u8),
        element: Lagrange,
        table: &Tabulation,
    ) -> Self {
        let dim = element.cell().dim();
        let places = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|[s, t]| ([0.0, s, t], 1.0));
        let frame = views.points(local, view, &places);
        let along = |tip: usize, gradient: &[f64]| {
            let axes = gradient.iter().enumerate();
            axes.map(|(a, d)| d * (frame[tip][a] - frame[0][a])).sum::<f64>()
        };
        let counts = |q: usize, node: usize| {
            let gradient = table.gradient(q, node);
            [along(1, gradient), if dim == 3 { along(2, gradient) } else { 0.0 }]
        };
        // Basis functions of nodes off the facet vanish on it.
        let normal = element.cell().facet_normal(local);
        let height = |x: &[f64; 3]| (0..3).map(|a| normal[a] * (x[a] - frame[0][a])).sum::<f64>();
        let on_facet = element.points().into_iter().enumerate();
        let on_facet = on_facet.filter(|(_, x)| height(x).abs() < 1e-9).map(|(node, _)| node);
        let nodes: Vec<usize> = on_facet.collect();
        let points = 0..table.points;
        let along = points.flat_map(|q| nodes.iter().map(move |&node| (q, node)));
        let along = along.map(|(q, node)| counts(q, node)).collect();
        Self { nodes, along }
    }
}

impl<'m> FacetGeometry<'m> {
    pub(super) fn new(
        mesh: &'m Mesh,
        rule: Rule,
        views: &FacetViews,
    ) -> Result<Self, ElementError> {
        let (cell, points) = (mesh.cell(), rule.on_facet());
        let element = Lagrange::continuous(cell, mesh.order())?;
        let count = views.count();
        let all = 0..cell.facets().len() * count;
        let slopes = all.map(|at| {
            let (local, view) = (at / count, (at % count) as u8);
            let table = tabulate(element, &views.points(local, view, &points));
            FacetTangents::new(views, (local, view), element, &table)
        });
        let slopes = slopes.collect();
        let weights = points.into_iter().map(|(_, weight)| weight).collect();
        Ok(Self { mesh, views: count, weights, slopes })
    }

    /// Returns ± n ds per parameter at a point of a view of a cell's facet.
    pub(super) fn area(&self, cell: usize, local: usize, view: u8, point: usize) -> [f64; 3] {
        cross(&self.tangents(cell, local, view, point))
    }

    /// Returns the metric at a point of a view of a cell's facet.
    pub(super) fn metric(&self, cell: usize, local: usize, view: u8, q: usize) -> FacetMetric {
        let tangents = self.tangents(cell, local, view, q);
        let dot = |i: usize, j: usize| (0..3).map(|c| tangents[i][c] * tangents[j][c]).sum();
        FacetMetric { area: length(&cross(&tangents)), products: [dot(0, 0), dot(0, 1), dot(1, 1)] }
    }

    /// Returns ∂x/∂s and ∂x/∂t; in the plane the latter is the unit vector across it, and on a line both are.
    fn tangents(&self, cell: usize, local: usize, view: u8, point: usize) -> [[f64; 3]; 2] {
        let (all, points) = (self.mesh.cell_nodes(cell), self.mesh.points());
        let FacetTangents { nodes, along } = &self.slopes[local * self.views + usize::from(view)];
        let mut tangents = [[0.0; 3]; 2];
        for (&node, slopes) in nodes.iter().zip(&along[point * nodes.len()..]) {
            let x = &points[all[node] as usize];
            for (tangent, slope) in tangents.iter_mut().zip(slopes) {
                (0..3).for_each(|c| tangent[c] += slope * x[c]);
            }
        }
        if self.mesh.dim() == 1 {
            tangents[0] = [0.0, 1.0, 0.0];
        }
        if self.mesh.dim() < 3 {
            tangents[1] = [0.0, 0.0, 1.0];
        }
        tangents
    }

    /// Returns the largest distance between two vertices of a cell's facet; the length of a line's cell.
    pub(super) fn diameter(&self, cell: usize, local: usize) -> f64 {
        let (all, points) = (self.mesh.vertices(cell), self.mesh.points());
        if self.mesh.dim() == 1 {
            return largest_distance(all.iter().map(|&v| points[v as usize]));
        }
        let own = self.mesh.cell().facets()[local].iter().map(|&v| points[all[v] as usize]);
        largest_distance(own)
    }
}

fn cross([s, t]: &[[f64; 3]; 2]) -> [f64; 3] {
    [s[1] * t[2] - s[2] * t[1], s[2] * t[0] - s[0] * t[2], s[0] * t[1] - s[1] * t[0]]
}

/// Returns the length of a vector.
pub(super) fn length(vector: &[f64; 3]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}
