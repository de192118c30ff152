//! Unique edges and faces of a mesh, and the cell-to-entity connectivity.
//!
//! Entities are numbered by first touch in cell order. The first cell of an entity defines its direction;
//! [`Topology::edge_reversed`] and [`Topology::face_orientation`] compare other cells with it. The work is linear:
//! an entity is compared only with those that have the same smallest vertex. The facets of lines are their vertices.

mod numbering;

use super::{Facet, MeshError};
use crate::support::parallel::*;
use kernels_gen::element::Cell;

/// Smallest number of entities per thread.
const GRAIN: usize = 1 << 12;

/// All edges, or all faces, of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entities {
    per_cell: usize,
    vertices_per_entity: usize,
    of_cell: Vec<u32>,
    vertices: Vec<u32>,
    cells: Vec<u8>,
    first: Vec<u32>,
}

impl Entities {
    /// Creates an empty list for `per_cell` entities per cell with `vertices_per_entity` vertices each.
    pub(crate) fn with(per_cell: usize, vertices_per_entity: usize) -> Self {
        Self { per_cell, vertices_per_entity, ..Self::default() }
    }

    /// Appends the next entity of a cell. A new entity comes with its vertices, in the order of its own frame.
    pub(crate) fn push(&mut self, number: u32, new: Option<impl Iterator<Item = u32>>) {
        if let Some(vertices) = new {
            self.vertices.extend(vertices);
            self.cells.push(0);
            self.first.push(self.of_cell.len() as u32);
        }
        self.of_cell.push(number);
        let cells = &mut self.cells[number as usize];
        *cells = cells.saturating_add(1);
    }

    /// Returns the number of entities in the mesh.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether the list is empty (faces of a two-dimensional mesh).
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the entities of a cell, in the order of [`Cell::entities`].
    pub fn of_cell(&self, cell: usize) -> &[u32] {
        &self.of_cell[cell * self.per_cell..(cell + 1) * self.per_cell]
    }

    /// Returns the vertices of an entity, in the order of its first cell.
    pub fn vertices(&self, entity: usize) -> &[u32] {
        let n = self.vertices_per_entity;
        &self.vertices[entity * n..(entity + 1) * n]
    }

    /// Returns the number of cells that share an entity, including those of other processes; at most 255.
    pub fn n_cells(&self, entity: usize) -> u8 {
        self.cells[entity]
    }

    /// Sets the number of cells that share an entity, including those of other processes.
    fn counted(&mut self, entity: u32, cells: u8) {
        self.cells[entity as usize] = cells;
    }

    /// Returns the first cell of an entity, and the entity's local number in it.
    pub fn first_cell(&self, entity: usize) -> (usize, usize) {
        let place = self.first[entity] as usize;
        (place / self.per_cell, place % self.per_cell)
    }

    /// Restricts the list to some cells, numbered by first touch, with new vertex numbers. Directions and cell counts
    /// are kept. Also returns the old number of each entity.
    fn of_cells(&self, cells: &[u32], vertex_number: impl Fn(u32) -> u32) -> (Entities, Vec<u32>) {
        let mut numbers = vec![u32::MAX; self.len()];
        let mut own = Entities::with(self.per_cell, self.vertices_per_entity);
        let mut which = Vec::new();
        for &cell in cells.iter().filter(|_| self.per_cell > 0) {
            for &entity in self.of_cell(cell as usize) {
                let number = &mut numbers[entity as usize];
                if *number == u32::MAX {
                    *number = which.len() as u32;
                    which.push(entity);
                    let vertices = self.vertices(entity as usize).iter();
                    own.vertices.extend(vertices.map(|&vertex| vertex_number(vertex)));
                    own.cells.push(self.n_cells(entity as usize));
                    own.first.push(own.of_cell.len() as u32);
                }
                own.of_cell.push(*number);
            }
        }
        (own, which)
    }

    /// Keeps the first entity of each class, with new vertex numbers.
    fn joined(&self, classes: &[EntityClass], vertex_numbers: &[u32]) -> Entities {
        let (numbers, count) = numbers(classes);
        let (mut vertices, mut first) = (Vec::new(), Vec::with_capacity(count));
        let mut cells = vec![0u8; count];
        for (entity, class) in classes.iter().enumerate() {
            if class.first as usize == entity {
                vertices.extend(self.vertices(entity).iter().map(|&v| vertex_numbers[v as usize]));
                first.push(self.first[entity]);
            }
            let cells = &mut cells[numbers[entity] as usize];
            *cells = cells.saturating_add(self.cells[entity]);
        }
        let of_cell = self.of_cell.iter().map(|&entity| numbers[entity as usize]).collect();
        let (per_cell, vertices_per_entity) = (self.per_cell, self.vertices_per_entity);
        Entities { per_cell, vertices_per_entity, of_cell, vertices, cells, first }
    }

    fn number(locals: &[&[usize]], cells: CellVertices<'_>) -> Result<Entities, MeshError> {
        super::index(cells.len() * locals.len(), "cell entities")?;
        Ok(match locals.first().map(|local| local.len()) {
            None => Entities::default(),
            Some(2) => numbering::number::<2>(locals, cells),
            Some(3) => numbering::number::<3>(locals, cells),
            Some(_) => numbering::number::<4>(locals, cells),
        })
    }
}

/// Returns the number of each entity's class, in the order of first members, and the number of classes.
fn numbers(classes: &[EntityClass]) -> (Vec<u32>, usize) {
    let mut numbers: Vec<u32> = Vec::with_capacity(classes.len());
    let mut count = 0;
    for (entity, class) in classes.iter().enumerate() {
        let first = class.first as usize;
        // The first of a class comes before all others.
        let number = if first == entity { count } else { numbers[first] };
        count += u32::from(first == entity);
        numbers.push(number);
    }
    (numbers, count as usize)
}

/// Returns the rows of some cells in a table with `each` entries a cell.
fn of_each<T: Copy>(table: &[T], each: usize, cells: &[u32]) -> Vec<T> {
    cells.iter().flat_map(|&cell| &table[cell as usize * each..][..each]).copied().collect()
}

/// Returns the orientation code of a face ([`Topology::face_orientation`]). `place(i)` is the index, in the face's own
/// frame, of the cell's i-th vertex.
fn orientation(corners: usize, place: impl Fn(usize) -> u8) -> u8 {
    if corners == 4 {
        let origin = place(0);
        let along_a = place(1) ^ origin;
        (along_a >> 1 & 1) | (origin & 1) << 1 | (origin >> 1 & 1) << 2
    } else {
        let (p, q) = (place(0), place(1));
        2 * p + u8::from(q > (0..3).find(|&i| i != p).unwrap_or(0))
    }
}

/// The vertices of all cells.
#[derive(Clone, Copy)]
struct CellVertices<'a> {
    vertices: &'a [u32],
    per_cell: usize,
    n_vertices: usize,
}

impl<'a> CellVertices<'a> {
    fn len(&self) -> usize {
        self.vertices.len() / self.per_cell
    }

    fn of(&self, cell: usize) -> &'a [u32] {
        &self.vertices[cell * self.per_cell..(cell + 1) * self.per_cell]
    }
}

/// Equivalence class of an entity: its first member, and the index of each vertex in that member's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EntityClass {
    pub(super) first: u32,
    pub(super) place: [u8; 4],
}

/// Orientations of edges and faces in cells, `[cell][local]`, for identified entities.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EntityOrientations {
    pub(crate) edges: Vec<bool>,
    pub(crate) faces: Vec<u8>,
}

/// The numbered vertices, edges and faces of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    cell: Cell,
    n_vertices: usize,
    cell_vertices: Vec<u32>,
    edges: Entities,
    faces: Entities,
    /// The vertices of lines, as facets.
    ends: Entities,
    oriented: bool,
    /// Explicit orientations, if entities are identified: their vertices do not determine them.
    seen: Option<EntityOrientations>,
}

impl Topology {
    /// Combines entities that are numbered already with their orientations in the cells ([`Topology::edge_reversed`],
    /// [`Topology::face_orientation`]).
    pub(crate) fn seen(
        cell: Cell,
        (n_vertices, cell_vertices): (usize, Vec<u32>),
        edges: Entities,
        faces: Entities,
        seen: EntityOrientations,
    ) -> Self {
        let oriented = !seen.edges.contains(&true) && seen.faces.iter().all(|&face| face == 0);
        let (seen, ends) = (Some(seen), ends(cell, n_vertices, &cell_vertices));
        Topology { cell, n_vertices, cell_vertices, edges, faces, ends, oriented, seen }
    }

    /// Numbers the entities of cells, which are given by their vertices in `0..n_vertices`.
    pub fn new(
        cell: Cell,
        n_vertices: usize,
        cell_vertices: Vec<u32>,
    ) -> Result<Topology, MeshError> {
        let cells =
            CellVertices { vertices: &cell_vertices, per_cell: cell.vertex_count(), n_vertices };
        let (edges, faces) = rayon::join(
            || Entities::number(edges(cell), cells),
            || Entities::number(faces(cell), cells),
        );
        let (edges, faces) = (edges?, faces?);
        let ends = ends(cell, n_vertices, &cell_vertices);
        let (oriented, seen) = (true, None);
        let mut topology =
            Topology { cell, n_vertices, cell_vertices, edges, faces, ends, oriented, seen };
        topology.oriented = topology.all_agree();
        Ok(topology)
    }

    /// Returns the topology of some cells alone, with entities numbered by first touch. Orientations are kept, and so
    /// are cell counts, including cells outside the selection. Also returns the old numbers of vertices, edges and
    /// faces.
    pub(super) fn of_cells(&self, cells: &[u32]) -> (Topology, [Vec<u32>; 3]) {
        let mut numbers = vec![u32::MAX; self.n_vertices];
        let (mut cell_vertices, mut vertices) = (Vec::new(), Vec::new());
        for &cell in cells {
            for &vertex in self.vertices(cell as usize) {
                let number = &mut numbers[vertex as usize];
                if *number == u32::MAX {
                    *number = vertices.len() as u32;
                    vertices.push(vertex);
                }
                cell_vertices.push(*number);
            }
        }
        let number = |vertex: u32| numbers[vertex as usize];
        let (edges, of_edges) = self.edges.of_cells(cells, number);
        let (faces, of_faces) = self.faces.of_cells(cells, number);
        let (ends, _) = self.ends.of_cells(cells, number);
        let seen = self.seen.as_ref().map(|seen| EntityOrientations {
            edges: of_each(&seen.edges, self.edges.per_cell, cells),
            faces: of_each(&seen.faces, self.faces.per_cell, cells),
        });
        let (cell, n_vertices, oriented) = (self.cell, vertices.len(), self.oriented);
        let own = Topology { cell, n_vertices, cell_vertices, edges, faces, ends, oriented, seen };
        (own, [vertices, of_edges, of_faces])
    }

    /// Returns the kind of cell.
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.cell_vertices.len() / self.cell.vertex_count()
    }

    /// Returns the number of vertices.
    pub fn n_vertices(&self) -> usize {
        self.n_vertices
    }

    /// Returns the vertices of a cell.
    pub fn vertices(&self, cell: usize) -> &[u32] {
        let n = self.cell.vertex_count();
        &self.cell_vertices[cell * n..(cell + 1) * n]
    }

    /// Returns all edges; empty in one dimension, where they are the cells.
    pub fn edges(&self) -> &Entities {
        &self.edges
    }

    /// Returns all faces of a three-dimensional mesh; empty in fewer dimensions.
    pub fn faces(&self) -> &Entities {
        &self.faces
    }

    /// Returns whether every edge and face has one direction in all its cells. Then
    /// [`edge_reversed`](Self::edge_reversed) is always false and [`face_orientation`](Self::face_orientation)
    /// always 0.
    pub fn is_oriented(&self) -> bool {
        self.oriented
    }

    /// Returns whether a cell's local edge runs against the edge's own direction.
    pub fn edge_reversed(&self, cell: usize, local: usize) -> bool {
        if let Some(seen) = &self.seen {
            return seen.edges[cell * self.edges.per_cell + local];
        }
        let edge = self.edges.of_cell(cell)[local] as usize;
        let start = self.cell.entities(1)[local][0];
        self.vertices(cell)[start] != self.edges.vertices(edge)[0]
    }

    /// Returns the orientation of a cell's local face relative to the face's own frame.
    ///
    /// Quadrilateral faces, as bits: with (a, b) the face's coordinates in this cell and (s, t) its own, first (s, t) =
    /// (b, a) if bit 0 is set, else (a, b); then s → 1 − s if bit 1 is set and t → 1 − t if bit 2 is set. Triangular
    /// faces: with p_i the face's own number of the cell's i-th vertex of it, the rank of (p₀, p₁, p₂) among the
    /// permutations in lexicographic order.
    pub fn face_orientation(&self, cell: usize, local: usize) -> u8 {
        if let Some(seen) = &self.seen {
            return seen.faces[cell * self.faces.per_cell + local];
        }
        let face = self.faces.of_cell(cell)[local] as usize;
        let own = self.faces.vertices(face);
        let vertices = self.vertices(cell);
        let here = self.cell.entities(2)[local];
        orientation(own.len(), |i| {
            let vertex = vertices[here[i]];
            own.iter().position(|&v| v == vertex).unwrap_or(0) as u8
        })
    }

    /// Returns the topology with each vertex, edge and face replaced by the first of its class.
    pub(super) fn joined(
        &self,
        vertices: &[EntityClass],
        edges: &[EntityClass],
        faces: &[EntityClass],
    ) -> Topology {
        let (vertex_numbers, n_vertices) = numbers(vertices);
        let cell_vertices =
            self.cell_vertices.iter().map(|&vertex| vertex_numbers[vertex as usize]).collect();
        let seen = EntityOrientations {
            edges: self.each_of(&self.edges, |cell, local, edge| {
                let own = u8::from(self.edge_reversed(cell, local));
                edges[edge as usize].place[usize::from(own)] != 0
            }),
            faces: self.each_of(&self.faces, |cell, local, face| {
                let own = self.faces.vertices(face as usize);
                let (all, here) = (self.vertices(cell), self.cell.entities(2)[local]);
                orientation(own.len(), |i| {
                    let at = own.iter().position(|&v| v == all[here[i]]).unwrap_or(0);
                    faces[face as usize].place[at]
                })
            }),
        };
        let edges = self.edges.joined(edges, &vertex_numbers);
        let faces = self.faces.joined(faces, &vertex_numbers);
        let joined = Topology::seen(self.cell, (n_vertices, cell_vertices), edges, faces, seen);
        match self.ends.is_empty() {
            true => joined,
            // Cells of other processes are counted.
            false => Topology { ends: self.ends.joined(vertices, &vertex_numbers), ..joined },
        }
    }

    /// Maps `of(cell, local, entity)` over all entities of all cells.
    fn each_of<T>(&self, entities: &Entities, of: impl Fn(usize, usize, u32) -> T) -> Vec<T> {
        let places = entities.of_cell.iter().enumerate();
        let each = places.map(|(place, &entity)| {
            of(place / entities.per_cell, place % entities.per_cell, entity)
        });
        each.collect()
    }

    /// Returns the number of entities of a dimension below that of cells.
    pub fn count(&self, dim: usize) -> usize {
        match dim {
            0 => self.n_vertices,
            1 => self.edges.len(),
            _ => self.faces.len(),
        }
    }

    /// Returns the entities of a cell of a dimension below its own.
    pub fn of_cell(&self, dim: usize, cell: usize) -> &[u32] {
        match dim {
            0 => self.vertices(cell),
            1 => self.edges.of_cell(cell),
            _ => self.faces.of_cell(cell),
        }
    }

    /// Returns the entities that are facets: vertices in one dimension, edges in two, faces in three.
    pub fn facets(&self) -> &Entities {
        match self.cell.dim() {
            1 => &self.ends,
            2 => &self.edges,
            _ => &self.faces,
        }
    }

    /// Returns the entity (vertex, edge or face) that is a facet of a cell; local facets are the cell's entities of one
    /// dimension less.
    pub fn facet_entity(&self, facet: Facet) -> u32 {
        self.facets().of_cell(facet.cell as usize)[facet.local as usize]
    }

    /// Adds cells of other processes to the count of a facet.
    pub(crate) fn add_to_facet(&mut self, facet: Facet, cells: u8) {
        let own = self.facets().n_cells(self.facet_entity(facet) as usize);
        self.count_facet(facet, own.saturating_add(cells));
    }

    /// Sets the number of cells of a facet, including those of other processes.
    pub(crate) fn count_facet(&mut self, facet: Facet, cells: u8) {
        let entity = self.facet_entity(facet);
        let facets = match self.cell.dim() {
            1 => &mut self.ends,
            2 => &mut self.edges,
            _ => &mut self.faces,
        };
        facets.counted(entity, cells);
    }

    /// Returns all facets of exactly one cell, in cell order.
    pub fn boundary(&self) -> Vec<Facet> {
        let facets = self.facets();
        let single = (0..facets.len()).filter(|&entity| facets.n_cells(entity) == 1);
        let mut boundary: Vec<Facet> = single
            .map(|entity| {
                let (cell, local) = facets.first_cell(entity);
                Facet { cell: cell as u32, local: local as u8 }
            })
            .collect();
        boundary.sort_unstable();
        boundary
    }

    /// Returns whether the vertices of edges and faces have the entity's own order in all cells. Two vertices determine
    /// the order of a face.
    fn all_agree(&self) -> bool {
        let lists = [(&self.edges, edges(self.cell), 1), (&self.faces, faces(self.cell), 2)];
        (0..self.n_cells()).into_par_iter().with_min_len(GRAIN).holds(|cell| {
            let vertices = self.vertices(cell);
            lists.iter().all(|(entities, locals, count)| {
                locals.iter().zip(entities.of_cell(cell)).all(|(local, &entity)| {
                    let own = entities.vertices(entity as usize);
                    own.iter().zip(*local).take(*count).all(|(&own, &v)| own == vertices[v])
                })
            })
        })
    }
}

/// Returns the vertices of lines as facets, with their numbers; none of other cells.
fn ends(cell: Cell, n_vertices: usize, cell_vertices: &[u32]) -> Entities {
    if cell.dim() > 1 {
        return Entities::default();
    }
    let mut ends = Entities {
        of_cell: cell_vertices.to_vec(),
        vertices: (0..n_vertices as u32).collect(),
        cells: vec![0; n_vertices],
        first: vec![u32::MAX; n_vertices],
        ..Entities::with(cell.vertex_count(), 1)
    };
    for (place, &vertex) in cell_vertices.iter().enumerate() {
        let (cells, first) = (&mut ends.cells[vertex as usize], &mut ends.first[vertex as usize]);
        *cells = cells.saturating_add(1);
        *first = (*first).min(place as u32);
    }
    ends
}

/// Returns the local edges of a cell of two or three dimensions; none of a line.
fn edges(cell: Cell) -> &'static [&'static [usize]] {
    if cell.dim() > 1 { cell.entities(1) } else { &[] }
}

/// Returns the local faces of a three-dimensional cell; none in fewer dimensions.
fn faces(cell: Cell) -> &'static [&'static [usize]] {
    if cell.dim() == 3 { cell.entities(2) } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_at_a_vertex_of_many_cells_are_found() {
        // A fan around vertex 0, and around the last vertex.
        let n = 40 * numbering::FULL;
        for centre in [0, n] {
            let rim = |i: usize| (i % n + usize::from(centre == 0)) as u32;
            let cells = (0..n).flat_map(|i| [centre as u32, rim(i), rim(i + 1)]).collect();
            let fan = Topology::new(Cell::Triangle, n + 1, cells).expect("a topology");
            assert_eq!(fan.edges().len(), 2 * n);
            let shared = (0..2 * n).filter(|&edge| fan.edges().n_cells(edge) == 2).count();
            assert_eq!((shared, fan.boundary().len()), (n, n));
        }
    }
}
