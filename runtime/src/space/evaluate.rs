//! Evaluation of fields at reference points of a cell: degrees of freedom → physical values and exterior derivatives.
//!
//! With the tangents J_a = ∂x/∂ξ_a, the cofactors C_a = J_b × J_c (a, b, c cyclic; in the plane the third tangent is the
//! unit vector across it) and det J, functions of the reference cell become physical ones by
//!
//! ```text
//! H(curl)   u = Σ_a C_a û_a / det J   curl u = Σ_a J_a (curl û)_a / det J;  in the plane curl û / det J
//! H(div)    u = Σ_a J_a û_a / det J   div u = Σ_a ∂_a û_a / det J
//! ```
//!
//! Gradients in a cell follow by the product rule, from ∂_b J_a and ∂_b C_a.
//!
//! (P. Monk, "Finite Element Methods for Maxwell's Equations" (2003), section 3.9). The determinant has its sign, so that
//! mirrored cells need no rule of their own.

use super::Space;
use super::discretisation::Field;
use crate::mesh::Mesh;
use crate::support::parallel::*;
use fem_dsl::point::Part;
use kernels_gen::element::{
    Cell, ElementError, Lagrange, Tabulation, Whitney, WhitneyFamily, tabulate,
    tabulate_components, tabulate_seconds,
};

/// The map of a cell at a point.
#[derive(Clone, Copy, Debug)]
pub struct CellMap {
    /// The physical point.
    pub point: [f64; 3],
    /// ∂x/∂ξ_a.
    pub tangents: [[f64; 3]; 3],
    /// J_b × J_c; of H(div) in the plane, the rotated other tangent.
    pub cofactors: [[f64; 3]; 3],
    /// det J.
    pub determinant: f64,
}

impl CellMap {
    /// Returns the outward unit normal on a facet of the cell.
    pub fn normal(&self, cell: Cell, facet: usize) -> [f64; 3] {
        let outward = cell.facet_normal(facet);
        let along = [0, 1, 2].map(|c| (0..3).map(|a| outward[a] * self.cofactors[a][c]).sum());
        let factor = self.determinant.signum() / dot(&along, &along).sqrt();
        along.map(|x| factor * x)
    }
}

/// The functions of a cell's map at some reference points.
pub struct MapTable {
    dim: usize,
    geometry: Tabulation,
    /// ∂φ_i/∂ξ_a, `[axis][point · nodes + node]`.
    derivatives: Vec<Vec<f64>>,
}

impl MapTable {
    /// Tabulates the map of a mesh's cells.
    ///
    /// # Errors
    ///
    /// The geometry has no element.
    pub fn new(mesh: &Mesh, points: &[[f64; 3]]) -> Result<Self, ElementError> {
        let geometry = tabulate(Lagrange::continuous(mesh.cell(), mesh.order())?, points);
        let dim = mesh.dim();
        let along = |axis: usize| geometry.gradients.iter().skip(axis).step_by(dim).copied();
        let derivatives = (0..dim).map(|axis| along(axis).collect()).collect();
        Ok(Self { dim, geometry, derivatives })
    }

    /// Returns the number of points.
    pub fn n_points(&self) -> usize {
        self.geometry.points
    }

    /// Returns the map of a cell at a point.
    pub fn at(&self, mesh: &Mesh, cell: usize, q: usize) -> CellMap {
        let nodes = self.geometry.nodes;
        let own = q * nodes..(q + 1) * nodes;
        let tangents = [0, 1, 2].map(|axis| match axis < self.dim {
            true => mesh.place_of(cell, &self.derivatives[axis][own.clone()]),
            false => [0, 1, 2].map(|c| f64::from(u8::from(c == axis))),
        });
        let cofactors = [0, 1, 2].map(|a| cross(&tangents[(a + 1) % 3], &tangents[(a + 2) % 3]));
        let determinant = dot(&tangents[0], &cofactors[0]);
        let point = mesh.place_of(cell, &self.geometry.values[own]);
        CellMap { point, tangents, cofactors, determinant }
    }
}

/// Evaluates fields of a space at reference points of its cells.
pub struct Evaluator<'a> {
    mesh: &'a Mesh,
    space: &'a Space,
    n_points: usize,
    /// The map, for functions that it changes.
    map: Option<MapTable>,
    /// The functions of the element, or of each component of its reference functions.
    functions: Vec<Tabulation>,
    /// The second derivatives of the geometry's functions, `[pair of axes][point · nodes + node]`, for gradients.
    seconds: Vec<Vec<f64>>,
}

impl<'a> Evaluator<'a> {
    /// Tabulates the functions of a space.
    ///
    /// # Errors
    ///
    /// The geometry has no element.
    pub fn new(
        mesh: &'a Mesh,
        space: &'a Space,
        points: &[[f64; 3]],
    ) -> Result<Self, ElementError> {
        let (map, functions) = match space.element().whitney() {
            None => (None, vec![tabulate(space.element(), points)]),
            Some(element) => {
                (Some(MapTable::new(mesh, points)?), tabulate_components(element, points))
            }
        };
        Ok(Self { mesh, space, n_points: points.len(), map, functions, seconds: Vec::new() })
    }

    /// Returns the same evaluator with second derivatives of the map, for [`Evaluator::gradients`].
    ///
    /// # Errors
    ///
    /// The geometry has no element.
    pub fn with_gradients(self, points: &[[f64; 3]]) -> Result<Self, ElementError> {
        let geometry = Lagrange::continuous(self.mesh.cell(), self.mesh.order())?;
        Ok(Self { seconds: tabulate_seconds(geometry, points), ..self })
    }

    /// Returns the physical values of a field in a cell, `[point][component]`; `u` holds the degrees of freedom.
    pub fn values(&self, cell: usize, u: &[f64]) -> Vec<f64> {
        let Some((element, map)) = self.whitney() else { return self.scalars(cell, u) };
        let own = self.own(element, cell, u);
        let mut values = Vec::with_capacity(self.n_points * self.mesh.dim());
        for q in 0..self.n_points {
            let map = map.at(self.mesh, cell, q);
            let directions = match element.family() {
                WhitneyFamily::Curl => &map.cofactors,
                WhitneyFamily::Div => &map.tangents,
            };
            let mut sum = [0.0; 3];
            for (a, direction) in directions.iter().enumerate().take(self.mesh.dim()) {
                let value = self.component(element, a, q, &own, None) / map.determinant;
                (0..3).for_each(|c| sum[c] += value * direction[c]);
            }
            values.extend(&sum[..self.mesh.dim()]);
        }
        values
    }

    /// Returns the exterior derivative of a field in a cell, `[point][component]`: div u, or curl u with three components
    /// in space and one in the plane. Empty for fields that are not of H(curl) or H(div).
    pub fn exterior(&self, cell: usize, u: &[f64]) -> Vec<f64> {
        let Some((element, map)) = self.whitney() else { return Vec::new() };
        let own = self.own(element, cell, u);
        let dim = self.mesh.dim();
        let mut values = Vec::new();
        for q in 0..self.n_points {
            let map = map.at(self.mesh, cell, q);
            let derivative = |a: usize, along: usize| {
                self.component(element, a, q, &own, Some(along)) / map.determinant
            };
            match (element.family(), dim) {
                (WhitneyFamily::Div, _) => {
                    values.push((0..dim).map(|a| derivative(a, a)).sum());
                }
                (WhitneyFamily::Curl, 2) => values.push(derivative(1, 0) - derivative(0, 1)),
                (WhitneyFamily::Curl, _) => {
                    let curl = [0, 1, 2].map(|c| {
                        let (a, b) = ((c + 1) % 3, (c + 2) % 3);
                        derivative(b, a) - derivative(a, b)
                    });
                    let along =
                        |i: usize| -> f64 { (0..3).map(|c| map.tangents[c][i] * curl[c]).sum() };
                    values.extend([0, 1, 2].map(along));
                }
            }
        }
        values
    }

    /// Returns the gradient of a field in a cell, `[point][component · dim + axis]`. Empty for fields that are not of H(curl)
    /// or H(div), and without [`Evaluator::with_gradients`].
    pub fn gradients(&self, cell: usize, u: &[f64]) -> Vec<f64> {
        let Some((element, map)) = self.whitney().filter(|_| !self.seconds.is_empty()) else {
            return Vec::new();
        };
        let (own, dim) = (self.own(element, cell, u), self.mesh.dim());
        let mut gradients = Vec::with_capacity(self.n_points * dim * dim);
        for q in 0..self.n_points {
            let map = map.at(self.mesh, cell, q);
            let inverse = map.cofactors.map(|row| row.map(|x| x / map.determinant));
            let bends = self.bends(cell, q);
            // ∂_b J_a, and ∂_b K_a = −Σ_c (K_a · ∂_b J_c) K_c
            let slope = |a: usize, b: usize| -> [f64; 3] {
                let bend = |a: usize| bends[a.min(b)][a.max(b)];
                match element.family() {
                    WhitneyFamily::Curl => (0..dim).fold([0.0; 3], |sum, c| {
                        let symbol = dot(&inverse[a], &bend(c));
                        [0, 1, 2].map(|i| sum[i] - symbol * inverse[c][i])
                    }),
                    WhitneyFamily::Div => {
                        let growth: f64 = (0..dim).map(|c| dot(&inverse[c], &bend(c))).sum();
                        let (own, tangent) = (bend(a), map.tangents[a]);
                        [0, 1, 2].map(|i| (own[i] - growth * tangent[i]) / map.determinant)
                    }
                }
            };
            let mut along = [[0.0; 3]; 3];
            for (a, b) in (0..dim).flat_map(|a| (0..dim).map(move |b| (a, b))) {
                let direction = match element.family() {
                    WhitneyFamily::Curl => inverse[a],
                    WhitneyFamily::Div => map.tangents[a].map(|x| x / map.determinant),
                };
                let value = self.component(element, a, q, &own, None);
                let derivative = self.component(element, a, q, &own, Some(b));
                let slope = slope(a, b);
                (0..dim).for_each(|i| along[b][i] += derivative * direction[i] + value * slope[i]);
            }
            for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
                gradients.push((0..dim).map(|b| inverse[b][j] * along[b][i]).sum());
            }
        }
        gradients
    }

    /// Returns ∂²x/∂ξ_a∂ξ_b at a point of a cell, at `[a][b]` with a ≤ b.
    fn bends(&self, cell: usize, q: usize) -> [[[f64; 3]; 3]; 3] {
        let nodes = self.mesh.cell_nodes(cell).len();
        let mut bends = [[[0.0; 3]; 3]; 3];
        for (part, table) in Part::of_order(2, self.mesh.dim()).into_iter().zip(&self.seconds) {
            if let Part::Second(a, b) = part {
                bends[a][b] = self.mesh.place_of(cell, &table[q * nodes..(q + 1) * nodes]);
            }
        }
        bends
    }

    /// Returns the element and the map of fields of H(curl) and H(div).
    fn whitney(&self) -> Option<(Whitney, &MapTable)> {
        self.space.element().whitney().zip(self.map.as_ref())
    }

    /// Returns the degrees of freedom of a cell, with the signs that the cell sees.
    fn own(&self, element: Whitney, cell: usize, u: &[f64]) -> Vec<f64> {
        let signs = self.space.cell_signs(cell);
        let signs = (0..element.count()).map(|i| signs.get(i).is_some_and(|&reversed| reversed));
        let nodes = self.space.cell_nodes(cell).iter().map(|&node| u[node as usize]);
        nodes.zip(signs).map(|(value, reversed)| if reversed { -value } else { value }).collect()
    }

    /// Returns a component of the reference function at a point, or its derivative along an axis.
    fn component(
        &self,
        element: Whitney,
        a: usize,
        q: usize,
        own: &[f64],
        along: Option<usize>,
    ) -> f64 {
        let table = &self.functions[a];
        let own = &own[element.first(a)..][..table.nodes];
        let function = |i: usize| match along {
            None => table.value(q, i),
            Some(axis) => table.gradient(q, i)[axis],
        };
        let sum: f64 = own.iter().enumerate().map(|(i, value)| value * function(i)).sum();
        element.sign(a) * sum
    }

    /// Returns the values of a field whose components are scalars.
    fn scalars(&self, cell: usize, u: &[f64]) -> Vec<f64> {
        let (table, components) = (&self.functions[0], self.space.components());
        let mut values = vec![0.0; self.n_points * components];
        for (q, row) in values.chunks_exact_mut(components).enumerate() {
            for (i, &node) in self.space.cell_nodes(cell).iter().enumerate() {
                let own = &u[node as usize * components..][..components];
                row.iter_mut().zip(own).for_each(|(sum, value)| *sum += table.value(q, i) * value);
            }
        }
        values
    }
}

/// A field, or its exterior derivative, interpolated in each cell separately.
#[derive(Clone, Debug, PartialEq)]
pub struct CellwiseField {
    /// The element of each component.
    pub element: Lagrange,
    /// The nodes of all cells, `[cell][local node]`.
    pub nodes: Vec<u32>,
    /// The number of components.
    pub components: usize,
    /// The values, node-major with interleaved components.
    pub values: Vec<f64>,
}

/// Interpolates a field of H(curl) or H(div) and its exterior derivative in each cell, for output.
///
/// # Errors
///
/// The geometry has no element.
pub fn cellwise(mesh: &Mesh, space: &Space, u: &[f64]) -> Result<[CellwiseField; 2], ElementError> {
    let element = Lagrange::discontinuous(mesh.cell(), space.element().degree().max(mesh.order()))?;
    let evaluator = Evaluator::new(mesh, space, &element.points())?;
    let count = mesh.n_cells() * element.count();
    let field = |of: &(dyn Fn(usize) -> Vec<f64> + Sync)| {
        let values = (0..mesh.n_cells()).into_par_iter().map(of).listed().concat();
        let components = values.len() / count.max(1);
        CellwiseField { element, nodes: (0..count as u32).collect(), components, values }
    };
    Ok([field(&|cell| evaluator.values(cell, u)), field(&|cell| evaluator.exterior(cell, u))])
}

/// Interpolates a nodal field in each cell separately, for output of one that does not live on all cells; NaN in the
/// others. `u` are the values of [`Space::resolved`].
///
/// # Errors
///
/// An element that does not exist.
pub fn in_living_cells(
    field: &Field,
    (space, u): (&Space, &[f64]),
) -> Result<CellwiseField, ElementError> {
    let (nodal, components) = (space.nodal(), space.components());
    let element = Lagrange::discontinuous(nodal.cell(), nodal.degree())?;
    let table = tabulate(nodal, &element.points());
    let (count, per_cell) = (element.count(), space.nodes_per_cell());
    let cells = space.nodes().len() / per_cell.max(1);
    let mut values = vec![f64::NAN; cells * count * components];
    for (cell, own) in values.chunks_exact_mut(count * components).enumerate() {
        if !field.lives_on(cell) {
            continue;
        }
        for (at, value) in own.iter_mut().enumerate() {
            let (point, component) = (at / components, at % components);
            let nodes = space.cell_nodes(cell).iter().enumerate();
            let terms = nodes.map(|(local, &node)| {
                table.value(point, local) * u[node as usize * components + component]
            });
            *value = terms.sum();
        }
    }
    let nodes = (0..(cells * count) as u32).collect();
    Ok(CellwiseField { element, nodes, components, values })
}

impl CellwiseField {
    /// The same with NaN where a field does not live.
    #[must_use]
    pub fn of_living_cells(mut self, field: &Field) -> Self {
        let each = self.element.count() * self.components;
        let cells = self.values.chunks_exact_mut(each.max(1)).enumerate();
        cells.filter(|(cell, _)| !field.lives_on(*cell)).for_each(|(_, own)| own.fill(f64::NAN));
        self
    }
}

pub(super) fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    let minor = |i: usize, j: usize| a[i] * b[j] - a[j] * b[i];
    [minor(1, 2), minor(2, 0), minor(0, 1)]
}
