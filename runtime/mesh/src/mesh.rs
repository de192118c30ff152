//! Meshes: one kind of cell, straight or curved, with tagged facets and tagged cells.
//!
//! [`MeshData`] is the input (points, connectivity and tags from a generator or a file), [`Mesh`] the result. Its
//! constructor turns mirrored cells and rejects folded or degenerate ones. It orients neighbouring cells so that they
//! agree on the direction of shared edges and faces, where possible ([`mod@orient`]). Cells follow a space-filling
//! curve ([`mod@order`]). Points are numbered by first touch, vertices first; edges and faces are numbered last
//! ([`topology`]).
//!
//! Reference cells, their vertices and their facets are those of [`kernels_gen::element`]. The geometry of order g maps
//! a reference point ξ to x(ξ) = Σ_i φ_i(ξ) x_i with the Lagrange basis of degree g on that module's nodes.

pub mod generate;
pub mod initial;
pub mod locate;
pub mod nodes;
pub mod order;
pub mod orient;
pub mod pairs;
pub mod partition;
pub mod periodic;
pub mod read;
pub mod refine;
pub mod side_map;
pub mod topology;

mod affine;
pub mod assemble;
mod build;
mod cell_orientation;
pub(crate) mod coarsening;
mod conformity;
mod counts;
mod data_rows;
pub mod distributed;
mod error;
mod first_places;
pub mod hanging;
pub(crate) mod key;
pub mod measure;
mod point_hash;
pub(crate) mod recursive;
pub mod refined;
mod seams;
pub(crate) mod shape;
mod sides;
pub mod skeleton;
pub mod source_order;
mod statistics;
mod stretch;
mod tree;
mod untangle;
pub mod views;
pub mod vtk_order;

pub use affine::AffineMap;
pub use build::{ArrayMeshBuilder, CellCounts, MeshBuilder};
pub use coarsening::{CoarsenedMesh, CoarseningError};
pub use counts::EntityCounts;
pub use error::{CellName, MeshError, NodeName};
pub use kernels_gen::element::Cell;
pub use read::gmsh;
pub use source_order::SourceNumbering;
pub use statistics::{Statistics, TagCount};
pub use topology::{Entities, Topology};

use fem_dsl::problem::MeshSource;
use read::{MeshFormat, ReadError};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

/// One facet of one cell; `local` is an index into [`Cell::facets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Facet {
    /// The cell.
    pub cell: u32,
    /// The facet's number within the cell.
    pub local: u8,
}

/// Unchecked input of a mesh, from a generator, a file or user code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshData {
    /// Coordinates; those beyond the dimension are 0.
    pub points: Vec<[f64; 3]>,
    /// Connectivity, `[cell][geometry node]`, in the order of the cell's Lagrange nodes.
    pub nodes: Vec<u32>,
    /// Tagged facets: the vertices' points in any order, padded with `u32::MAX`.
    pub facets: BTreeMap<String, Vec<[u32; 4]>>,
    /// Tagged cells.
    pub cells: BTreeMap<String, Vec<u32>>,
    /// Tagged edges of a three-dimensional mesh by their end points; for essential boundary conditions.
    pub edges: BTreeMap<String, Vec<[u32; 2]>>,
    /// Tagged vertices; for essential boundary conditions.
    pub vertices: BTreeMap<String, Vec<u32>>,
    /// The source's own cell numbers, for messages; empty if it has none.
    pub labels: Vec<u64>,
    /// The source's own point numbers, for messages; empty if it has none.
    pub point_labels: Vec<u64>,
    /// Indices of cells and points in the source, if they differ from those in this mesh.
    pub places: Option<SourceNumbering>,
    /// Changes made to the input so far; shown by [`Mesh::notes`].
    pub notes: Vec<String>,
}

/// Numbering of cells in [`Mesh::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellOrdering {
    /// Orient neighbouring cells alike and sort the cells along a space-filling curve.
    Sorted,
    /// Keep the cell order, and the local numbering of quadrilaterals and hexahedra that are not mirrored.
    Original,
}

/// Relation between the order of a mesh and that of its source.
#[derive(Clone, Debug, Default, PartialEq)]
enum SourceOrder {
    /// The mesh's own order.
    #[default]
    Native,
    /// A grid of squares or cubes.
    Grid([usize; 3]),
    /// The mesh's own order, for the patches of a grid.
    CoarseGrid(Box<coarsening::GridPlaces>),
    Listed(Box<SourceNumbering>),
    /// The order of a coarser mesh that was refined.
    Refined(Box<refined::RefinedMesh>),
}

/// A mesh of one kind of cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    cell: Cell,
    order: usize,
    points: Vec<[f64; 3]>,
    nodes: Vec<u32>,
    nodes_per_cell: usize,
    facet_tags: BTreeMap<String, Vec<Facet>>,
    cell_tags: BTreeMap<String, Vec<u32>>,
    /// Tagged curves and points.
    skeleton: Option<std::sync::Arc<skeleton::Skeleton>>,
    topology: Topology,
    /// Pairs of periodic sides; `joined` is the topology with their entities identified.
    periodic: Vec<periodic::PeriodicSides>,
    joined: Option<Box<Topology>>,
    notes: Vec<String>,
    /// Tags whose facets lie on spheres about the origin, with the radii.
    spheres: Vec<(String, f64)>,
    order_of_source: SourceOrder,
    equispaced: bool,
    hanging: Option<hanging::HangingEntities>,
    affine: measure::Affinity,
    beyond: pairs::KnownCellsBeyond,
    /// Undistorted coordinates of a generated mesh; refinement repeats the generator's map.
    plain: Option<Box<generate::ComputationalPoints>>,
    /// The partition, if other processes have further cells.
    cut: Option<std::sync::Arc<distributed::PartInterface>>,
}

/// Error of [`load`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(ReadError),
    /// The file is wrong.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Its format, if known.
        format: Option<MeshFormat>,
        /// The error of the reader.
        error: ReadError,
    },
    /// The generator or its arguments are wrong.
    #[error(transparent)]
    Generate(#[from] generate::GenerateError),
    /// The mesh cannot be refined.
    #[error("with `refine = {times}`: {error}")]
    Refine {
        /// The requested number of refinements.
        times: usize,
        /// The cause.
        error: Box<periodic::PeriodicError>,
    },
}

/// Reads or generates the mesh of a problem. Relative paths start at `base`, the folder of the problem file.
pub fn load(source: &MeshSource, base: &Path) -> Result<Mesh, LoadError> {
    match source {
        MeshSource::Generator { name, arguments } => Ok(generate::generate(name, arguments)?),
        MeshSource::File(file) => {
            let path = base.join(file);
            of_bytes(&path, &bytes_of(&path)?)
        }
    }
}

/// Adds path and format to an error of a reader.
fn wrong(path: &Path, format: Option<MeshFormat>, error: ReadError) -> LoadError {
    match error {
        open @ ReadError::Open { .. } => LoadError::Open(open),
        error => LoadError::File { path: path.display().to_string(), format, error },
    }
}

/// Reads the bytes of a mesh file.
pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, LoadError> {
    read::bytes(path).map_err(|error| wrong(path, None, error))
}

/// Parses the bytes of the mesh file `path`.
pub(crate) fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Mesh, LoadError> {
    let format = MeshFormat::of(path, bytes).ok_or_else(|| wrong(path, None, ReadError::Format))?;
    read::parse(format, bytes).map_err(|error| wrong(path, Some(format), error))
}

/// Returns a checked 32-bit index.
pub(crate) fn index(count: usize, what: &'static str) -> Result<u32, MeshError> {
    // The largest value is kept free: it marks "none".
    u32::try_from(count).ok().filter(|&n| n < u32::MAX).ok_or(MeshError::TooLarge { what, count })
}

impl Mesh {
    /// Checks, arranges and numbers a mesh with one kind of cell and geometry of order `order`. Cells may have either
    /// orientation.
    pub fn new(
        cell: Cell,
        order: usize,
        parts: MeshData,
        arrange: CellOrdering,
    ) -> Result<Mesh, MeshError> {
        let (sign, joined) = (measure::JacobianSign::Positive, assemble::Conformity::Unknown);
        assemble::assemble(cell, order, parts, arrange, sign, joined)
    }

    /// Returns the dimension, 1 to 3.
    pub fn dim(&self) -> usize {
        self.cell.dim()
    }

    /// Returns the kind of cell.
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Returns the order g of the geometry: 1 for straight cells.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.topology.n_cells()
    }

    /// Returns the number of vertices.
    pub fn n_vertices(&self) -> usize {
        self.topology.n_vertices()
    }

    /// Returns the coordinates of all geometry nodes. The first [`n_vertices`](Self::n_vertices) of them are the
    /// vertices; coordinates beyond the dimension are 0.
    pub fn points(&self) -> &[[f64; 3]] {
        &self.points
    }

    /// Returns the connectivity, `[cell][geometry node]`.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns the number of geometry nodes of a cell.
    pub fn nodes_per_cell(&self) -> usize {
        self.nodes_per_cell
    }

    /// Returns the geometry nodes of a cell, indices into [`points`](Self::points).
    pub fn cell_nodes(&self, cell: usize) -> &[u32] {
        &self.nodes[cell * self.nodes_per_cell..(cell + 1) * self.nodes_per_cell]
    }

    /// Returns Σ_i values_i x_i over the geometry nodes of a cell.
    pub fn place_of(&self, cell: usize, values: &[f64]) -> [f64; 3] {
        let mut x = [0.0; 3];
        for (&node, &value) in self.cell_nodes(cell).iter().zip(values) {
            let point = &self.points[node as usize];
            x[0] += value * point[0];
            x[1] += value * point[1];
            x[2] += value * point[2];
        }
        x
    }

    /// Returns the vertices of a cell, indices into [`points`](Self::points).
    pub fn vertices(&self, cell: usize) -> &[u32] {
        self.topology.vertices(cell)
    }

    /// Returns the numbered edges and faces.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Changes that made the input usable, one sentence each, for reports.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns all facets of exactly one cell, except periodic ones: the tag `all` of the language.
    pub fn boundary(&self) -> Vec<Facet> {
        self.connectivity().boundary()
    }

    /// Returns the mean of a facet's vertices.
    fn middle(&self, facet: Facet) -> [f64; 3] {
        let vertices = self.facet_vertices(facet);
        let sum = vertices.iter().fold([0.0; 3], |sum, &vertex| {
            let at = self.points[vertex as usize];
            [0, 1, 2].map(|c| sum[c] + at[c])
        });
        sum.map(|x| x / vertices.len() as f64)
    }

    /// Returns the vertices of a facet, in the order of its cell.
    fn facet_vertices(&self, facet: Facet) -> Vec<u32> {
        let all = self.vertices(facet.cell as usize);
        self.cell.facets()[usize::from(facet.local)].iter().map(|&vertex| all[vertex]).collect()
    }

    /// Adds a tag to all boundary facets whose vertices satisfy `holds`. Returns their number.
    pub fn tag_boundary(&mut self, tag: &str, holds: impl Fn(&[[f64; 3]]) -> bool) -> usize {
        self.tag_facets(tag, &self.boundary(), holds)
    }

    /// Adds a tag to those of some facets whose vertices satisfy `holds`. Returns their number.
    pub(crate) fn tag_facets(
        &mut self,
        tag: &str,
        facets: &[Facet],
        holds: impl Fn(&[[f64; 3]]) -> bool,
    ) -> usize {
        let mut found = facets.to_vec();
        found.retain(|facet| {
            let own = self.facet_vertices(*facet).into_iter();
            let vertices: Vec<[f64; 3]> = own.map(|v| self.points[v as usize]).collect();
            holds(&vertices)
        });
        let count = found.len();
        let facets = self.facet_tags.entry(tag.to_owned()).or_default();
        facets.extend(found);
        facets.sort_unstable();
        facets.dedup();
        count
    }

    /// Adds a tag to all cells whose centre satisfies `holds`. Returns their number.
    pub fn tag_cells(&mut self, tag: &str, holds: impl Fn(&[f64; 3]) -> bool) -> usize {
        let found = (0..self.n_cells()).filter(|&cell| holds(&self.centre(cell)));
        let found: Vec<u32> = found.map(|cell| cell as u32).collect();
        let count = found.len();
        let cells = self.cell_tags.entry(tag.to_owned()).or_default();
        cells.extend(found);
        cells.sort_unstable();
        cells.dedup();
        count
    }

    /// Adds a tag to all facets that have the tag `other`.
    pub fn tag_like(&mut self, other: &str, tag: &str) {
        let found = self.facet_tags.get(other).cloned().unwrap_or_default();
        let facets = self.facet_tags.entry(tag.to_owned()).or_default();
        facets.extend(found);
        facets.sort_unstable();
        facets.dedup();
    }

    /// Returns the facets of each tag, in cell order. A tagged facet between two cells is listed once, for the first of
    /// them.
    pub fn facet_tags(&self) -> &BTreeMap<String, Vec<Facet>> {
        &self.facet_tags
    }

    /// Returns the cells of each tag, ascending.
    pub fn cell_tags(&self) -> &BTreeMap<String, Vec<u32>> {
        &self.cell_tags
    }

    /// Returns the union of the facets of some tags, in cell order, without duplicates.
    ///
    /// # Errors
    ///
    /// Tags without facets.
    pub fn facets_under<'t>(
        &self,
        tags: impl IntoIterator<Item = &'t String>,
    ) -> Result<Vec<Facet>, MeshError> {
        let tags: Vec<&String> = tags.into_iter().collect();
        self.expect_facet_tags(tags.iter().copied())?;
        let mut facets = Vec::new();
        for tag in tags {
            facets.extend_from_slice(self.facets_tagged(tag)?);
        }
        facets.sort_unstable();
        facets.dedup();
        Ok(facets)
    }

    /// Like [`facets_under`](Self::facets_under), but rejects facets between two cells: a boundary integral needs one
    /// side.
    ///
    /// # Errors
    ///
    /// Tags without facets, or the first tag with facets inside the domain.
    pub fn outer_facets_under<'t>(
        &self,
        tags: impl IntoIterator<Item = &'t String> + Clone,
    ) -> Result<Vec<Facet>, MeshError> {
        let facets = self.facets_under(tags.clone())?;
        for tag in tags {
            let tagged = self.facets_tagged(tag)?;
            let mut inner = tagged.iter().filter(|facet| !self.is_outer(**facet));
            if let Some(&first) = inner.next() {
                return Err(MeshError::Inner {
                    tag: tag.clone(),
                    count: tagged.len(),
                    inner: 1 + inner.count(),
                    at: self.middle(first),
                });
            }
        }
        Ok(facets)
    }

    /// Returns the facets of those tags that mark facets; the other tags must mark curves or points.
    ///
    /// # Errors
    ///
    /// Tags of neither facets nor curves nor points.
    pub fn sides_under(&self, tags: &[String]) -> Result<Vec<Facet>, MeshError> {
        self.expect_condition_tags(tags)?;
        self.facets_under(tags.iter().filter(|tag| !self.is_below_sides(tag)))
    }

    /// Checks that every tag marks facets, curves or points.
    ///
    /// # Errors
    ///
    /// The unknown tags, each once.
    pub fn expect_condition_tags<'t>(
        &self,
        tags: impl IntoIterator<Item = &'t String>,
    ) -> Result<(), MeshError> {
        let known = |tag: &String| self.facet_tags.contains_key(tag) || self.is_below_sides(tag);
        let mut unknown: Vec<&str> = Vec::new();
        for tag in tags {
            if !known(tag) && !unknown.contains(&tag.as_str()) {
                unknown.push(tag);
            }
        }
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(unknown_tags("boundary", &unknown, self.condition_tags())),
        }
    }

    /// Checks that every tag marks facets.
    ///
    /// # Errors
    ///
    /// The unknown tags, each once, or the first tag of curves or points only.
    pub fn expect_facet_tags<'t>(
        &self,
        tags: impl IntoIterator<Item = &'t String>,
    ) -> Result<(), MeshError> {
        let mut unknown: Vec<&str> = Vec::new();
        for tag in tags {
            if self.is_below_sides(tag) {
                return Err(MeshError::NoSide { tag: tag.clone() });
            }
            if !self.facet_tags.contains_key(tag) && !unknown.contains(&tag.as_str()) {
                unknown.push(tag);
            }
        }
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(unknown_tags("boundary", &unknown, self.condition_tags())),
        }
    }

    /// Returns the facets of a tag.
    pub fn facets_tagged(&self, tag: &str) -> Result<&[Facet], MeshError> {
        self.facet_tags
            .get(tag)
            .map(Vec::as_slice)
            .ok_or_else(|| unknown_tags("boundary", &[tag], self.facet_tags.keys()))
    }

    /// Returns the union of the cells of some tags, ascending, without duplicates.
    ///
    /// # Errors
    ///
    /// Tags without cells.
    pub fn cells_under<'t>(
        &self,
        tags: impl IntoIterator<Item = &'t String>,
    ) -> Result<Vec<u32>, MeshError> {
        let (mut cells, mut unknown) = (Vec::new(), Vec::new());
        for tag in tags {
            match self.cell_tags.get(tag) {
                Some(tagged) => cells.extend_from_slice(tagged),
                None if unknown.contains(&tag.as_str()) => {}
                None => unknown.push(tag.as_str()),
            }
        }
        if !unknown.is_empty() {
            return Err(unknown_tags("cell", &unknown, self.cell_tags.keys()));
        }
        cells.sort_unstable();
        cells.dedup();
        Ok(cells)
    }

    /// Returns the cells of a tag.
    pub fn cells_tagged(&self, tag: &str) -> Result<&[u32], MeshError> {
        self.cell_tags
            .get(tag)
            .map(Vec::as_slice)
            .ok_or_else(|| unknown_tags("cell", &[tag], self.cell_tags.keys()))
    }
}

fn unknown_tags<'a>(
    kind: &'static str,
    unknown: &[&str],
    all: impl Iterator<Item = &'a String>,
) -> MeshError {
    let available: Vec<String> = all.cloned().collect();
    let nearest = |tag| nearest_name(tag, available.iter().map(String::as_str));
    let tags = unknown.iter().map(|&tag| (tag.to_owned(), nearest(tag))).collect();
    MeshError::UnknownTags { kind, tags, available }
}

/// Returns the most similar name, for suggestions; at most a third of its letters may differ from `word`.
pub(crate) fn nearest_name<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let distance = |name: &str| strsim::damerau_levenshtein(name, word);
    let likeness = |name: &str| strsim::jaro_winkler(name, word);
    names
        .filter(|name| distance(name) <= name.chars().count().div_ceil(3))
        .min_by(|a, b| distance(a).cmp(&distance(b)).then(likeness(b).total_cmp(&likeness(a))))
        .map(str::to_owned)
}

/// Reads a mesh of the folder `meshes`, for tests.
#[cfg(test)]
pub fn stored(name: &str) -> Mesh {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = package.ancestors().map(|above| above.join("meshes")).find(|at| at.is_dir());
    gmsh::read(&folder.expect("the meshes").join(format!("{name}.msh"))).expect("a mesh")
}
