//! Statistics of a mesh for reports.

use super::{Cell, Mesh};

/// Counts and sizes of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The dimension.
    pub dim: usize,
    /// The kind of cell: `tri`, `quad`, `tet`, `hex`.
    pub cell: &'static str,
    /// The order of the geometry.
    pub order: usize,
    /// True if all cells are affine.
    pub affine: bool,
    /// The number of cells.
    pub cells: usize,
    /// The number of vertices.
    pub vertices: usize,
    /// The number of facets of exactly one cell.
    pub boundary_facets: usize,
    /// The number of facets of each boundary tag.
    pub boundary_tags: Vec<TagCount>,
    /// The number of cells of each cell tag.
    pub cell_tags: Vec<TagCount>,
    /// The number of edges of each curve tag, in three dimensions.
    pub curve_tags: Vec<TagCount>,
    /// The number of points of each point tag.
    pub point_tags: Vec<TagCount>,
    /// The smallest cell diameter.
    pub h_min: f64,
    /// The largest cell diameter.
    pub h_max: f64,
    /// Area or volume.
    pub size: f64,
    /// The corners of the smallest box around the mesh, `dim` coordinates each.
    pub bounding_box: [Vec<f64>; 2],
    /// Changes that made a file usable.
    pub notes: Vec<String>,
}

/// The number of entities with a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag.
    pub tag: String,
    /// The number of entities.
    pub count: usize,
}

impl Statistics {
    /// Counts and measures a mesh.
    pub fn of(mesh: &Mesh) -> Statistics {
        let (mut h_min, mut h_max) = (f64::INFINITY, 0.0f64);
        for cell in 0..mesh.n_cells() {
            let h = mesh.diameter(cell);
            (h_min, h_max) = (h_min.min(h), h_max.max(h));
        }
        let cell: Cell = mesh.cell();
        let (lower, upper) = mesh.bounding_box();
        Statistics {
            dim: mesh.dim(),
            cell: cell.name(),
            order: mesh.order(),
            affine: mesh.is_affine(),
            cells: mesh.n_cells(),
            vertices: mesh.n_vertices(),
            boundary_facets: mesh.boundary().len(),
            boundary_tags: count(mesh.facet_tags().iter().map(|(t, f)| (t, f.len()))),
            cell_tags: count(mesh.cell_tags().iter().map(|(t, c)| (t, c.len()))),
            curve_tags: count(mesh.curve_tags()),
            point_tags: count(mesh.point_tags()),
            h_min,
            h_max,
            size: mesh.size(),
            bounding_box: [lower[..mesh.dim()].to_vec(), upper[..mesh.dim()].to_vec()],
            notes: mesh.notes().to_vec(),
        }
    }
}

fn count<'a>(tags: impl Iterator<Item = (&'a String, usize)>) -> Vec<TagCount> {
    tags.map(|(tag, count)| TagCount { tag: tag.clone(), count }).collect()
}
