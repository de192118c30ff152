//! Coarser meshes for any cell type: patches of squares and cubes ([`crate::mesh::coarsening`]), families of forest
//! leaves ([`super::families`]), and recorded uniform refinement of simplices.

use super::children::ChildMaps;
use super::families::LeafCells;
use super::uniform::RefineError;
use crate::mesh::refined::Descendants;
use crate::mesh::shape::vertex_function;
use crate::mesh::{AffineMap, Cell, CoarsenedMesh, CoarseningError, Facet, Mesh};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Mesh {
    /// Returns the mesh with a quarter or an eighth of the cells of which this one is a refinement, and the position of
    /// each cell in it. With hanging nodes, complete families become one cell, and other cells are unchanged.
    /// Quadrilaterals and hexahedra may have any origin and numbering. Patches of 2^d are found from the incidence of
    /// cells, also across periodic sides. The coarser mesh keeps the common vertices, the geometry order, the tags and
    /// the periodic sides. Its cells are in the order of their first children. Triangles and tetrahedra have a coarser
    /// mesh only after [`Mesh::refined`].
    ///
    /// # Errors
    ///
    /// The reason for the absence of a coarser mesh.
    ///
    /// ```
    /// use fem_mesh::mesh::{Cell, CellOrdering, Mesh, MeshData};
    ///
    /// let parts = MeshData {
    ///     points: (0..9).map(|n| [f64::from(n % 3), f64::from(n / 3), 0.0]).collect(),
    ///     nodes: vec![0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8],
    ///     ..MeshData::default()
    /// };
    /// let coarser = Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Original)?.coarsened()?;
    /// assert_eq!(coarser.mesh.n_cells(), 1);
    /// assert_eq!(coarser.children_of(0), [0, 1, 2, 3]);
    /// assert_eq!(coarser.map(0, 1).at(&[1.0, 1.0, 0.0]), [1.0, 0.5, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn coarsened(&self) -> Result<CoarsenedMesh, CoarseningError> {
        if let Some(cut) = self.cut().filter(|cut| !cut.is_refined()) {
            return cut.coarsened();
        }
        if !self.cell().is_tensor() {
            return simplices(self);
        }
        match LeafCells::of(self) {
            Some(leaves) => leaves.coarsened(),
            None => self.of_patches(),
        }
    }
}

impl From<RefineError> for CoarseningError {
    fn from(error: RefineError) -> Self {
        match error {
            RefineError::Mesh(error) => Self::Mesh(error),
            RefineError::Periodic(error) => Self::Periodic(error),
        }
    }
}

/// Undoes one uniform refinement of triangles or tetrahedra.
fn simplices(mesh: &Mesh) -> Result<CoarsenedMesh, CoarseningError> {
    let refined = mesh.refined_from().ok_or(CoarseningError::Simplices)?;
    let Descendants::Uniform { times, numbers } = &refined.cells else {
        return Err(CoarseningError::Simplices);
    };
    let coarse = match times {
        1 => Arc::clone(&refined.coarse),
        _ => Arc::new(Mesh::clone(&refined.coarse).refined(times - 1)?),
    };
    let each = 1 << mesh.dim();
    // The cells of the coarse mesh by descendant number.
    let of = match times {
        1 => (0..coarse.n_cells() as u32).collect(),
        _ => coarse.by_descendants(),
    };
    let mut children = vec![0; numbers.len()];
    for (own, &number) in (0..).zip(numbers) {
        children[of[number as usize / each] as usize * each + number as usize % each] = own;
    }
    let kinds = ChildMaps::new(mesh.cell());
    let places = (0..children.len()).map(|place| (place % each) as u32);
    let map = |child: u32| *kinds.child(child as usize);
    let coarsened = CoarsenedMesh::with_maps(coarse, children, places, map);
    like(coarsened, mesh)
}

/// Transfers the tags and periodic sides of the finer mesh, which may have changed since its refinement.
fn like(mut coarsened: CoarsenedMesh, fine: &Mesh) -> Result<CoarsenedMesh, CoarseningError> {
    let (facets, cells) = tags(&coarsened, fine)?;
    let coarse = &coarsened.mesh;
    if *coarse.facet_tags() != facets || *coarse.cell_tags() != cells {
        coarsened.mesh = Arc::new(Mesh::clone(coarse).with_tags(facets, cells));
    }
    if coarsened.mesh.periodic_sides() != fine.periodic_sides() {
        let mut mesh = Mesh::clone(&coarsened.mesh);
        mesh.make_periodic(fine.periodic_sides())?;
        coarsened.mesh = Arc::new(mesh);
    }
    Ok(coarsened)
}

type TagMap<T> = BTreeMap<String, Vec<T>>;

/// Returns the tags of coarse facets and cells; all their parts must have them.
fn tags(
    coarsened: &CoarsenedMesh,
    fine: &Mesh,
) -> Result<(TagMap<Facet>, TagMap<u32>), CoarseningError> {
    let (mesh, each) = (&coarsened.mesh, coarsened.each());
    let mut places = vec![0u32; coarsened.children.len()];
    (0..).zip(&coarsened.children).for_each(|(place, &child)| places[child as usize] = place);
    let ends = |cell: u32| CoarseningError::Tags { at: fine.centre(cell as usize) };
    let mut cells = TagMap::new();
    for (tag, tagged) in fine.cell_tags() {
        let parents = tagged.iter().map(|&cell| (places[cell as usize] / each as u32, cell));
        cells.insert(tag.clone(), whole(parents.collect(), each).map_err(ends)?);
    }
    let mut facets = TagMap::new();
    for (tag, tagged) in fine.facet_tags() {
        let parent = |facet: &Facet| {
            let place = places[facet.cell as usize] as usize;
            let (cell, map) = (place / each, coarsened.map(place / each, place % each));
            let local = lies_on(mesh.cell(), map, usize::from(facet.local));
            let local = local.ok_or_else(|| ends(facet.cell))? as u8;
            Ok((mesh.topology().facet_entity(Facet { cell: cell as u32, local }), facet.cell))
        };
        let parents = tagged.iter().map(parent).collect::<Result<Vec<_>, CoarseningError>>()?;
        let of = |facet: u32| {
            let (cell, local) = mesh.topology().facets().first_cell(facet as usize);
            Facet { cell: cell as u32, local: local as u8 }
        };
        let whole = whole(parents, each / 2).map_err(ends)?.into_iter().map(of);
        let mut whole: Vec<Facet> = whole.collect();
        whole.sort_unstable();
        facets.insert(tag.clone(), whole);
    }
    Ok((facets, cells))
}

/// Returns the parents, each of which must occur once per part; the error is a part of another one.
fn whole(mut parents: Vec<(u32, u32)>, each: usize) -> Result<Vec<u32>, u32> {
    parents.sort_unstable();
    let same = parents.chunk_by(|a, b| a.0 == b.0);
    same.map(|parts| if parts.len() == each { Ok(parts[0].0) } else { Err(parts[0].1) }).collect()
}

/// Returns the facet of a cell that contains a facet of a child, if any.
fn lies_on(cell: Cell, map: &AffineMap, facet: usize) -> Option<usize> {
    let corners = cell.facets()[facet].iter().map(|&vertex| map.at(&cell.vertex(vertex)));
    let corners: Vec<[f64; 3]> = corners.collect();
    cell.facets().iter().position(|own| {
        let others = (0..cell.vertex_count()).filter(|vertex| !own.contains(vertex));
        // Coordinates are multiples of ½.
        others.into_iter().all(|v| corners.iter().all(|&at| vertex_function(cell, v, at) == 0.0))
    })
}
