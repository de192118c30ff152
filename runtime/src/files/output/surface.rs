//! Visible surfaces of a solution: a field on a mesh → triangles with values at their corners, and cell edges.
//!
//! [`outside`] gives the boundary of a body, or a whole plane mesh; [`cut()`] gives the intersection of a body with a
//! plane; [`curves`] gives the values along a line. Each facet (in two dimensions, each cell) is divided into n parts per direction, to resolve curved geometry
//! and fields of high degree. Triangle corners have exact positions and values, by the bases of the geometry and the
//! field; drawings interpolate linearly between them. Facets share no points, so that discontinuities remain visible.

mod cut;
mod lattice;
mod line;
#[cfg(test)]
mod tests;

pub use cut::{Plane, cut};
pub use line::curves;

use super::sample::InterpolationRows;
use super::{CellField, OutputError, PointField, check_cells, check_points};
use crate::mesh::{Cell, Facet, Mesh};
use crate::support::parallel::*;
use kernels_gen::element::{ElementError, Lagrange};
use lattice::{PlaneLattice, edge_points};

/// Parts of a facet per degree for few facets: an eighth of a parabola looks round.
const PARTS: usize = 4;
/// The largest number of parts of a facet per direction.
const MOST_PARTS: usize = 24;

/// Selection of the displayed field and quantity.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// The field.
    pub shown: ShownField<'a>,
    /// The displayed quantity.
    pub quantity: Quantity,
    /// The displacement of the mesh.
    pub warp: Option<Warp<'a>>,
}

/// Displayed field.
#[derive(Clone, Copy, Debug)]
pub enum ShownField<'a> {
    /// A field with values at nodes.
    Points(PointField<'a>),
    /// A field with one value per cell.
    Cells(CellField<'a>),
}

/// Displayed scalar quantity of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A component; 0 for scalars.
    Component(usize),
    /// The Euclidean norm of the components.
    Magnitude,
}

/// A displacement x ↦ x + factor · u(x).
#[derive(Clone, Copy, Debug)]
pub struct Warp<'a> {
    /// u, with as many components as the mesh has dimensions.
    pub field: PointField<'a>,
    /// The factor.
    pub factor: f64,
}

/// Triangles with values, and lines on top of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triangles {
    /// The displaced points; the third coordinate is 0 in two dimensions.
    pub points: Vec<[f64; 3]>,
    /// The unit normal at each point, on either side; 0 if it has none.
    pub normals: Vec<[f64; 3]>,
    /// The values at the points.
    pub values: Vec<f64>,
    /// The points of each triangle.
    pub corners: Vec<[u32; 3]>,
    /// The edges of cells, as chains of points.
    pub edges: Vec<Vec<[f64; 3]>>,
}

/// Error of a surface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurfaceError {
    /// A field that does not match.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Geometry of an unsupported order.
    #[error(transparent)]
    Element(#[from] ElementError),
}

/// Returns the boundary of a body, or all cells of a plane mesh, in at most about `most` triangles.
///
/// # Errors
///
/// A field does not match the mesh.
pub fn outside(view: &View<'_>, most: usize) -> Result<Triangles, SurfaceError> {
    view.check()?;
    let (mesh, cell) = (view.mesh, view.mesh.cell());
    let (facets, shape) = match mesh.dim() {
        3 => (mesh.surface(), cell.facet_cell().unwrap_or(cell)),
        _ => ((0..mesh.n_cells() as u32).map(|cell| Facet { cell, local: 0 }).collect(), cell),
    };
    let parts = view.parts(facets.len() * shape.vertex_count().saturating_sub(2), most);
    let lattice = PlaneLattice::new(shape, parts);
    let sides = if mesh.dim() == 3 { cell.facets().len() } else { 1 };
    let tables: Vec<BasisTables> = (0..sides)
        .map(|local| {
            let place = |&point: &[f64; 3]| match mesh.dim() {
                3 => cell.entity_point(2, local, point),
                _ => point,
            };
            BasisTables::new(view, &lattice.points.iter().map(place).collect::<Vec<_>>())
        })
        .collect::<Result<_, _>>()?;
    let per_facet = lattice.points.len();
    let mut all = Triangles::with_points(facets.len() * per_facet);
    let rows = (all.points.par_chunks_mut(per_facet), all.normals.par_chunks_mut(per_facet));
    let rows = (rows.0, rows.1, all.values.par_chunks_mut(per_facet), facets.par_iter());
    rows.into_par_iter().with_min_len(64).each(|(points, normals, values, facet)| {
        let (cell, table) = (facet.cell as usize, &tables[usize::from(facet.local)]);
        for (row, (point, value)) in points.iter_mut().zip(values).enumerate() {
            *point = view.place(cell, table, row);
            *value = view.shown.value(view.quantity, cell, table.shown_at(row));
        }
        add_normals(points, &lattice.triangles, normals);
    });
    all.corners = (0..facets.len())
        .flat_map(|facet| {
            let start = (facet * per_facet) as u32;
            lattice.triangles.iter().map(move |corners| corners.map(|c| start + c))
        })
        .collect();
    add_edges(&mut all, view, &facets, parts)?;
    Ok(all)
}

impl Triangles {
    fn with_points(count: usize) -> Self {
        Self {
            points: vec![[0.0; 3]; count],
            normals: vec![[0.0; 3]; count],
            values: vec![0.0; count],
            ..Self::default()
        }
    }

    /// Returns the total area of all triangles.
    pub fn area(&self) -> f64 {
        let area = |corners: &[u32; 3]| {
            let normal = cross(corners.map(|c| self.points[c as usize]));
            0.5 * norm(normal)
        };
        self.corners.iter().map(area).sum()
    }
}

impl View<'_> {
    /// Checks that all fields match the mesh.
    fn check(&self) -> Result<(), OutputError> {
        match &self.shown {
            ShownField::Points(field) => check_points(self.mesh, field)?,
            ShownField::Cells(field) => check_cells(self.mesh, field)?,
        }
        self.warp.iter().try_for_each(|warp| check_points(self.mesh, &warp.field))
    }

    /// Returns whether positions are linear in the reference coordinates along cell edges.
    fn is_straight(&self) -> bool {
        self.mesh.order() == 1 && self.warp.is_none_or(|warp| warp.field.element.degree() == 1)
    }

    /// Returns the number of parts per direction of a cell or facet, if one part each gives `least` triangles.
    fn parts(&self, least: usize, most: usize) -> usize {
        let shown = match &self.shown {
            ShownField::Points(field) => field.element.degree(),
            ShownField::Cells(_) => 0,
        };
        let warp = self.warp.map_or(0, |warp| warp.field.element.degree());
        let degree = shown.max(warp).max(self.mesh.order());
        let wanted = match degree == 1 && !self.mesh.cell().is_tensor() {
            true => 1,
            false => (PARTS * degree).clamp(1, MOST_PARTS),
        };
        let bound = (most as f64 / least.max(1) as f64).sqrt() as usize;
        wanted.min(bound.max(1))
    }

    /// Returns the displaced position of a point of a cell.
    fn place(&self, cell: usize, tables: &BasisTables, row: usize) -> [f64; 3] {
        let mut x = self.undisplaced(cell, tables.geometry.of(row));
        if let (Some(warp), Some(rows)) = (&self.warp, &tables.warp) {
            warp.add(cell, rows.of(row), &mut x);
        }
        x
    }

    /// Returns the undisplaced position of a point of a cell, by the geometry's basis values.
    fn undisplaced(&self, cell: usize, weights: &[(usize, f64)]) -> [f64; 3] {
        let nodes = self.mesh.cell_nodes(cell);
        let mut x = [0.0; 3];
        for &(local, weight) in weights {
            let point = &self.mesh.points()[nodes[local] as usize];
            x.iter_mut().zip(point).for_each(|(sum, x)| *sum += weight * x);
        }
        x
    }
}

impl Warp<'_> {
    /// Adds the displacement at a point of a cell, unless it is not finite.
    fn add(&self, cell: usize, weights: &[(usize, f64)], x: &mut [f64; 3]) {
        let components = self.field.shape.components().min(3);
        for (component, x) in x.iter_mut().enumerate().take(components) {
            let by = self.factor * sum(&self.field, component, cell, weights);
            *x += if by.is_finite() { by } else { 0.0 };
        }
    }
}

impl ShownField<'_> {
    /// Returns the quantity at a point of a cell, by the field's basis values.
    fn value(&self, quantity: Quantity, cell: usize, weights: &[(usize, f64)]) -> f64 {
        let components = match self {
            Self::Points(field) => field.shape.components(),
            Self::Cells(field) => field.shape.components(),
        };
        let at = |component: usize| match self {
            Self::Points(field) => sum(field, component, cell, weights),
            Self::Cells(field) => field.values[cell * components + component],
        };
        match quantity {
            Quantity::Component(component) if component < components => at(component),
            Quantity::Component(_) => f64::NAN,
            Quantity::Magnitude if components == 1 => at(0),
            Quantity::Magnitude => (0..components).map(at).fold(0.0, f64::hypot),
        }
    }
}

/// Returns Σ_i w_i u_i of a component.
fn sum(field: &PointField<'_>, component: usize, cell: usize, weights: &[(usize, f64)]) -> f64 {
    let (nodes, components) = (field.element.count(), field.shape.components());
    let nodes = &field.nodes[cell * nodes..][..nodes];
    let value = |local: usize| field.values[nodes[local] as usize * components + component];
    weights.iter().map(|&(local, weight)| weight * value(local)).sum()
}

/// Tables of all bases at the same points.
struct BasisTables {
    geometry: InterpolationRows,
    shown: Option<InterpolationRows>,
    warp: Option<InterpolationRows>,
}

impl BasisTables {
    fn new(view: &View<'_>, points: &[[f64; 3]]) -> Result<Self, ElementError> {
        let shown = match &view.shown {
            ShownField::Points(field) => Some(InterpolationRows::new(field.element, points)),
            ShownField::Cells(_) => None,
        };
        let warp = view.warp.map(|warp| InterpolationRows::new(warp.field.element, points));
        let geometry = Lagrange::continuous(view.mesh.cell(), view.mesh.order())?;
        Ok(Self { geometry: InterpolationRows::new(geometry, points), shown, warp })
    }

    fn shown_at(&self, row: usize) -> &[(usize, f64)] {
        self.shown.as_ref().map_or(&[], |rows| rows.of(row))
    }
}

/// Adds the edges of all facets, or of all cells in two dimensions, without duplicates.
fn add_edges(
    all: &mut Triangles,
    view: &View<'_>,
    facets: &[Facet],
    parts: usize,
) -> Result<(), ElementError> {
    let (mesh, cell) = (view.mesh, view.mesh.cell());
    let points = edge_points(if view.is_straight() { 1 } else { parts });
    let locals = cell.entities(1);
    let tables: Vec<BasisTables> = (0..locals.len())
        .map(|edge| {
            let place = |&s: &f64| cell.entity_point(1, edge, [s, 0.0, 0.0]);
            BasisTables::new(view, &points.iter().map(place).collect::<Vec<_>>())
        })
        .collect::<Result<_, _>>()?;
    let of_facet: Vec<Vec<usize>> = match mesh.dim() {
        3 => cell.facets().iter().map(|facet| edges_within(cell, facet)).collect(),
        _ => vec![(0..locals.len()).collect()],
    };
    let mut seen = vec![false; mesh.topology().edges().len()];
    for facet in facets {
        let of_cell = mesh.topology().edges().of_cell(facet.cell as usize);
        for &local in &of_facet[usize::from(facet.local)] {
            if !std::mem::replace(&mut seen[of_cell[local] as usize], true) {
                let place = |row| view.place(facet.cell as usize, &tables[local], row);
                all.edges.push((0..points.len()).map(place).collect());
            }
        }
    }
    Ok(())
}

/// Returns the local edges of a facet.
fn edges_within(cell: Cell, facet: &[usize]) -> Vec<usize> {
    let edges = cell.entities(1).iter().enumerate();
    edges.filter(|(_, edge)| edge.iter().all(|v| facet.contains(v))).map(|(e, _)| e).collect()
}

/// Adds the unit normals at the points of a smooth part: the area-weighted mean of the adjacent triangles.
fn add_normals(points: &[[f64; 3]], triangles: &[[u32; 3]], normals: &mut [[f64; 3]]) {
    for corners in triangles {
        let normal = cross(corners.map(|c| points[c as usize]));
        for &corner in corners {
            let sum = &mut normals[corner as usize];
            *sum = [0, 1, 2].map(|c| sum[c] + normal[c]);
        }
    }
    for normal in normals {
        let length = norm(*normal);
        *normal = if length > 0.0 { normal.map(|n| n / length) } else { [0.0; 3] };
    }
}

/// Returns the vector product (b − a) × (c − a).
fn cross([a, b, c]: [[f64; 3]; 3]) -> [f64; 3] {
    let (u, v) = ([0, 1, 2].map(|i| b[i] - a[i]), [0, 1, 2].map(|i| c[i] - a[i]));
    [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
}

fn norm(v: [f64; 3]) -> f64 {
    v[0].hypot(v[1]).hypot(v[2])
}
