//! Mesh builders: [`Mesh::cube`], [`Mesh::ball`], [`Mesh::shell`], [`Mesh::l_shape`], [`Mesh::read`] and
//! [`Mesh::from_arrays`].

use super::generate::{GenerateError, generate};
use super::{Cell, CellOrdering, LoadError, Mesh, MeshData, MeshError, load};
use fem_dsl::problem::{Argument, MeshSource};
use std::collections::BTreeMap;
use std::path::Path;

/// Builder of a generated mesh. Arguments that a generator lacks are errors of [`MeshBuilder::build`].
///
/// ```
/// use fem_mesh::mesh::{Cell, Mesh};
///
/// let mesh = Mesh::cube(3).cells(2).cell(Cell::Tetrahedron).build()?;
/// assert_eq!(mesh.n_cells(), 48);
/// let mesh = Mesh::cube(2).cells([4, 2]).from([-1.0, 0.0]).to([1.0, 1.0]).build()?;
/// assert_eq!(mesh.n_cells(), 8);
/// let mesh = Mesh::ball(2).refine(1).order(2).build()?;
/// assert_eq!((mesh.n_cells(), mesh.order()), (20, 2));
/// # Ok::<(), fem_mesh::mesh::generate::GenerateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeshBuilder {
    generator: &'static str,
    arguments: BTreeMap<String, Argument>,
}

/// Cell counts of a box: one for all directions, or one for each.
pub trait CellCounts {
    /// Returns the counts.
    fn counts(&self) -> Vec<usize>;
}

impl CellCounts for usize {
    fn counts(&self) -> Vec<usize> {
        vec![*self]
    }
}

impl<const N: usize> CellCounts for [usize; N] {
    fn counts(&self) -> Vec<usize> {
        self.to_vec()
    }
}

impl MeshBuilder {
    fn new(generator: &'static str, dim: usize) -> Self {
        Self { generator, arguments: BTreeMap::new() }.number("dim", dim as f64)
    }

    fn with(mut self, name: &str, value: Argument) -> Self {
        self.arguments.insert(name.to_owned(), value);
        self
    }

    fn number(self, name: &str, value: f64) -> Self {
        self.with(name, Argument::Number(value))
    }

    /// Sets the number of cells along each edge of a box: `16`, or `[16, 8]`.
    pub fn cells(self, cells: impl CellCounts) -> Self {
        let counts = cells.counts().into_iter().map(|count| count as f64).collect::<Vec<_>>();
        match counts[..] {
            [count] => self.number("cells", count),
            _ => self.with("cells", Argument::Numbers(counts)),
        }
    }

    /// Sets the kind of the cells.
    pub fn cell(self, cell: Cell) -> Self {
        self.with("cell", Argument::Word(cell.name().to_owned()))
    }

    /// Sets the lower corner of a box.
    pub fn from<const N: usize>(self, corner: [f64; N]) -> Self {
        self.with("from", Argument::Numbers(corner.to_vec()))
    }

    /// Sets the upper corner of a box.
    pub fn to<const N: usize>(self, corner: [f64; N]) -> Self {
        self.with("to", Argument::Numbers(corner.to_vec()))
    }

    /// Sets the deformation of the inside of a box, relative to its size.
    pub fn deform(self, amplitude: f64) -> Self {
        self.number("deform", amplitude)
    }

    /// Sets how often the cells of a ball, a shell or an L are refined.
    pub fn refine(self, times: usize) -> Self {
        self.number("refine", times as f64)
    }

    /// Sets the degree of the geometry of a ball or a shell.
    pub fn order(self, order: usize) -> Self {
        self.number("order", order as f64)
    }

    /// Sets the inner and the outer radius of a shell.
    pub fn radii(self, inner: f64, outer: f64) -> Self {
        self.number("inner", inner).number("outer", outer)
    }

    /// Generates the mesh.
    ///
    /// # Errors
    ///
    /// Arguments that the generator lacks, values out of range.
    pub fn build(&self) -> Result<Mesh, GenerateError> {
        generate(self.generator, &self.arguments)
    }
}

/// Builder of a mesh from arrays, with tags.
///
/// ```
/// use fem_mesh::mesh::{Cell, Mesh};
///
/// let points = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]];
/// let mesh = Mesh::from_arrays(Cell::Triangle, points, vec![0, 1, 2, 1, 3, 2])
///     .facets("left", &[[0, 2]])
///     .cells("lower", &[0])
///     .build()?;
/// assert_eq!((mesh.n_cells(), mesh.facet_tags()["left"].len()), (2, 1));
/// # Ok::<(), fem_mesh::mesh::MeshError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArrayMeshBuilder {
    cell: Cell,
    order: usize,
    parts: MeshData,
}

impl ArrayMeshBuilder {
    /// Sets the degree of the geometry, of which `cells` has all Lagrange nodes.
    pub fn order(mut self, order: usize) -> Self {
        self.order = order;
        self
    }

    /// Tags facets by their vertices, in any order.
    pub fn facets<const N: usize>(mut self, tag: &str, facets: &[[u32; N]]) -> Self {
        let padded = facets.iter().map(|facet| {
            let mut all = [u32::MAX; 4];
            all.iter_mut().zip(facet).for_each(|(all, &point)| *all = point);
            all
        });
        self.parts.facets.entry(tag.to_owned()).or_default().extend(padded);
        self
    }

    /// Tags cells by their numbers.
    pub fn cells(mut self, tag: &str, cells: &[u32]) -> Self {
        self.parts.cells.entry(tag.to_owned()).or_default().extend(cells);
        self
    }

    /// Tags edges of a three-dimensional mesh by their end points, for essential conditions.
    pub fn edges(mut self, tag: &str, edges: &[[u32; 2]]) -> Self {
        self.parts.edges.entry(tag.to_owned()).or_default().extend(edges);
        self
    }

    /// Tags vertices, for essential conditions.
    pub fn vertices(mut self, tag: &str, vertices: &[u32]) -> Self {
        self.parts.vertices.entry(tag.to_owned()).or_default().extend(vertices);
        self
    }

    /// Builds the mesh. Its cells are sorted along a space-filling curve.
    ///
    /// # Errors
    ///
    /// Arrays that are no mesh: missing points, folded or disconnected cells, tags of entities that do not exist.
    pub fn build(self) -> Result<Mesh, MeshError> {
        Mesh::new(self.cell, self.order, self.parts, CellOrdering::Sorted)
    }
}

impl Mesh {
    /// Starts a box of quadrilaterals or hexahedra, by default the unit square or cube.
    pub fn cube(dim: usize) -> MeshBuilder {
        MeshBuilder::new("box", dim)
    }

    /// Starts the unit ball about the origin.
    pub fn ball(dim: usize) -> MeshBuilder {
        MeshBuilder::new("ball", dim)
    }

    /// Starts a shell between two spheres about the origin.
    pub fn shell(dim: usize) -> MeshBuilder {
        MeshBuilder::new("shell", dim)
    }

    /// Starts the L-shaped domain [−1, 1]^d without [0, 1]^d.
    pub fn l_shape(dim: usize) -> MeshBuilder {
        MeshBuilder::new("lshape", dim)
    }

    /// Reads a file of Gmsh, VTK, Abaqus or MFEM.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no such mesh.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref().to_string_lossy().into_owned();
        load(&MeshSource::File(path), Path::new(""))
    }

    /// Starts a mesh of arrays: coordinates, whose third is 0 in two dimensions, and the points of each cell in the order of
    /// its Lagrange nodes.
    pub fn from_arrays(cell: Cell, points: Vec<[f64; 3]>, cells: Vec<u32>) -> ArrayMeshBuilder {
        let parts = MeshData { points, nodes: cells, ..MeshData::default() };
        ArrayMeshBuilder { cell, order: 1, parts }
    }
}
