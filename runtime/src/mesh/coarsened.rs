//! Coarser meshes: a mesh of quadrilaterals or hexahedra whose cells are, 2^d at a time, the children of larger ones → the mesh
//! of those, wherever it is from.
//!
//! In such a mesh every vertex is even or odd along each axis of a cell: a corner of a larger cell is even along all, the middle of
//! one is odd along all. One cell whose even corner is known decides on its neighbours, since facets are shared and cells on both
//! sides of one are mirror images; so a cell is asked for each of its corners, and the others follow until one contradicts.
//! The boundary must be even, and around each vertex that is odd along all axes there must be 2^d cells.

use super::{Arrange, Cell, Facet, Mesh, MeshError, Parts, periodic::PeriodicError};
use std::collections::BTreeMap;

/// No cell.
const NONE: u32 = u32::MAX;
/// No corner yet.
const OPEN: u8 = u8::MAX;

/// Why a mesh has no coarser one.
#[derive(Debug, thiserror::Error)]
pub enum NotCoarser {
    /// Triangles and tetrahedra.
    #[error("only quadrilaterals and hexahedra are looked at")]
    Simplices,
    /// Nodes hang.
    #[error("nodes of the mesh hang")]
    Hanging,
    /// Its cells are not the children of others.
    #[error("the cells are not the children of larger ones")]
    NoChildren,
    /// A tag that ends inside of a larger cell or facet.
    #[error("the tag \"{tag}\" ends inside of what would be one")]
    Tag {
        /// The tag.
        tag: String,
    },
    /// Larger cells that are inverted or degenerate.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// Periodic sides that do not match any more.
    #[error(transparent)]
    Periodic(#[from] PeriodicError),
}

/// A coarser mesh, and what its cells were made of.
#[derive(Clone, Debug)]
pub struct Coarsened {
    /// The mesh.
    pub mesh: Mesh,
    /// For each of its cells the 2^d children, at the place whose bits say in which halves of the axes it lies.
    pub children: Vec<u32>,
    /// For each child which of its own vertices lies at each corner, in the order of the axes of the coarser cell.
    pub corners: Vec<[u8; 8]>,
}

/// The cells of a mesh, and who is beside whom.
struct Cells<'a> {
    mesh: &'a Mesh,
    dim: usize,
    /// `[cell][facet]`.
    beside: Vec<u32>,
}

impl Cells<'_> {
    fn new(mesh: &Mesh) -> Cells<'_> {
        let (topology, dim) = (mesh.connectivity(), mesh.dim());
        let facets = topology.facets();
        let mut first = vec![NONE; facets.len()];
        let mut beside = vec![NONE; mesh.n_cells() * 2 * dim];
        for cell in 0..mesh.n_cells() {
            for (local, &facet) in facets.of_cell(cell).iter().enumerate() {
                let place = (cell * 2 * dim + local) as u32;
                match first[facet as usize] {
                    NONE => first[facet as usize] = place,
                    other => {
                        beside[place as usize] = other / (2 * dim) as u32;
                        beside[other as usize] = cell as u32;
                    }
                }
            }
        }
        Cells { mesh, dim, beside }
    }

    fn beside(&self, cell: usize, facet: usize) -> Option<usize> {
        let other = self.beside[cell * 2 * self.dim + facet];
        (other != NONE).then_some(other as usize)
    }

    fn vertices(&self, cell: usize) -> &[u32] {
        self.mesh.connectivity().vertices(cell)
    }

    /// The vertex of a cell with this number; none where it has it twice, or not.
    fn local(&self, cell: usize, vertex: u32) -> Option<usize> {
        let mut found = (0..1 << self.dim).filter(|&local| self.vertices(cell)[local] == vertex);
        let one = found.next();
        one.filter(|_| found.next().is_none())
    }

    /// The axis of the facet that one cell has in common with the vertices of another, and which side of it.
    fn facet_of(&self, cell: usize, vertices: &[u32]) -> Option<(usize, usize)> {
        let mut both = (usize::MAX, 0);
        for &vertex in vertices {
            let local = self.local(cell, vertex)?;
            both = (both.0 & local, both.1 | local);
        }
        let axis = (0..self.dim).find(|axis| (both.0 ^ both.1) >> axis & 1 == 0)?;
        Some((axis, both.0 >> axis & 1))
    }

    /// The vertices of a facet.
    fn of_facet(&self, cell: usize, facet: usize) -> Vec<u32> {
        let (axis, side) = (facet / 2, facet % 2);
        let own = (0..1 << self.dim).filter(|local: &usize| local >> axis & 1 == side);
        own.map(|local| self.vertices(cell)[local]).collect()
    }

    /// The even corner of the cell beside another one, whose even corner is known.
    fn corner_beside(&self, cell: usize, even: usize, facet: usize, other: usize) -> Option<usize> {
        let (axis, side) = (facet / 2, facet % 2);
        let (own, bit) = (even >> axis & 1, 1 << axis);
        let there = self.vertices(cell)[even & !bit | side << axis];
        let local = self.local(other, there)?;
        let (normal, at) = self.facet_of(other, &self.of_facet(cell, facet))?;
        // The facet is even for both, or odd for both.
        let end = if side == own { at } else { 1 - at };
        Some(local & !(1 << normal) | end << normal)
    }

    /// Gives a cell and all that are joined to it their even corners; whether none contradicts.
    fn spread(&self, first: usize, even: usize, corners: &mut [u8], seen: &mut Vec<usize>) -> bool {
        seen.clear();
        seen.push(first);
        corners[first] = even as u8;
        let mut next = 0;
        while let Some(&cell) = seen.get(next) {
            next += 1;
            let even = usize::from(corners[cell]);
            for facet in 0..2 * self.dim {
                let Some(other) = self.beside(cell, facet) else {
                    if even >> (facet / 2) & 1 != facet % 2 {
                        return false;
                    }
                    continue;
                };
                let Some(own) = self.corner_beside(cell, even, facet, other) else { return false };
                match corners[other] {
                    OPEN => {
                        corners[other] = own as u8;
                        seen.push(other);
                    }
                    known if usize::from(known) != own => return false,
                    _ => {}
                }
            }
        }
        true
    }

    /// The even corner of every cell.
    fn corners(&self) -> Option<Vec<u8>> {
        let mut corners = vec![OPEN; self.mesh.n_cells()];
        let mut seen = Vec::new();
        for first in 0..corners.len() {
            if corners[first] != OPEN {
                continue;
            }
            let found = (0..1 << self.dim).any(|even| {
                let fits = self.spread(first, even, &mut corners, &mut seen);
                if !fits {
                    seen.iter().for_each(|&cell| corners[cell] = OPEN);
                }
                fits
            });
            if !found {
                return None;
            }
        }
        Some(corners)
    }

    /// The children of the larger cell of which `first` is one, with their corners in its axes.
    fn children(&self, first: usize, even: usize) -> Option<Vec<(u32, [u8; 8])>> {
        let all = 1 << self.dim;
        let mut found: Vec<Option<(u32, [u8; 8])>> = vec![None; all];
        let mut own = [0; 8];
        own.iter_mut().enumerate().take(all).for_each(|(k, corner)| *corner = k as u8);
        // Its even corner is the one of the larger cell in whose half it lies.
        found[even] = Some((first as u32, own));
        // Each differs from one before along an axis.
        for step in 1..all {
            let place = even ^ step;
            let axis = step.trailing_zeros() as usize;
            let (before, corners) = found[place ^ 1 << axis]?;
            let (before, inner) = (before as usize, place >> axis & 1);
            // The corners of the facet between both, and the axis of the one before.
            let end = usize::from(corners[inner << axis]);
            let own = (end ^ usize::from(corners[(1 - inner) << axis])).trailing_zeros() as usize;
            let cell = self.beside(before, 2 * own + (end >> own & 1))?;
            let mut there = [0; 8];
            let mut both = (usize::MAX, 0);
            for k in (0..all).filter(|k| k >> axis & 1 == 1 - inner) {
                let vertex = self.vertices(before)[usize::from(corners[k ^ 1 << axis])];
                let local = self.local(cell, vertex)?;
                both = (both.0 & local, both.1 | local);
                there[k] = local as u8;
            }
            let normal = (0..self.dim).find(|axis| (both.0 ^ both.1) >> axis & 1 == 0)?;
            for k in (0..all).filter(|k| k >> axis & 1 == inner) {
                there[k] = there[k ^ 1 << axis] ^ 1 << normal;
            }
            found[place] = Some((cell as u32, there));
        }
        found.into_iter().collect()
    }
}

impl Mesh {
    /// The mesh whose cells have this one's as their children.
    ///
    /// Curved cells become cells of order 2, whose nodes are vertices of this mesh, or straight ones where those fold over. What is
    /// tagged is tagged there.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn coarsened(&self) -> Result<Coarsened, NotCoarser> {
        if !self.cell().is_tensor() {
            return Err(NotCoarser::Simplices);
        }
        if self.hanging().is_some() {
            return Err(NotCoarser::Hanging);
        }
        let (cells, all) = (Cells::new(self), 1 << self.dim());
        if !self.n_cells().is_multiple_of(all) || self.n_cells() == 0 {
            return Err(NotCoarser::NoChildren);
        }
        let even = cells.corners().ok_or(NotCoarser::NoChildren)?;
        let mut taken = vec![false; self.n_cells()];
        let (mut children, mut corners) = (Vec::new(), Vec::new());
        for first in 0..self.n_cells() {
            if taken[first] {
                continue;
            }
            let own =
                cells.children(first, usize::from(even[first])).ok_or(NotCoarser::NoChildren)?;
            for (cell, at) in own {
                if std::mem::replace(&mut taken[cell as usize], true) {
                    return Err(NotCoarser::NoChildren);
                }
                children.push(cell);
                corners.push(at);
            }
        }
        let made = Made { of: self, dim: self.dim(), children: &children, corners: &corners };
        // Where large cells fold over, straight ones need not.
        let mesh = match made.mesh(self.order().min(2)) {
            Err(NotCoarser::Mesh(_)) if self.order() > 1 => made.mesh(1)?,
            made => made?,
        };
        Ok(Coarsened { mesh, children, corners })
    }
}

/// Larger cells that are to become a mesh.
struct Made<'a> {
    of: &'a Mesh,
    dim: usize,
    children: &'a [u32],
    corners: &'a [[u8; 8]],
}

impl Made<'_> {
    fn mesh(&self, order: usize) -> Result<Mesh, NotCoarser> {
        let (of, all) = (self.of, 1 << self.dim);
        let per_axis: usize = order + 1;
        let mut numbers = vec![NONE; of.n_vertices()];
        let mut parts = Parts::default();
        for cell in 0..self.children.len() / all {
            for node in 0..per_axis.pow(self.dim as u32) {
                let vertex = self.vertex_at(cell, node, order);
                let number = &mut numbers[vertex as usize];
                if *number == NONE {
                    *number = parts.points.len() as u32;
                    parts.points.push(of.points()[vertex as usize]);
                }
                parts.nodes.push(*number);
            }
        }
        self.tag_cells(&mut parts)?;
        self.tag_facets(&mut parts, &numbers)?;
        let mut mesh = Mesh::new(of.cell(), order, parts, Arrange::AsGiven)?;
        if of.is_periodic() {
            mesh.make_periodic(of.periodic_sides())?;
        }
        Ok(mesh)
    }

    /// The vertex at a node of a larger cell: its corners, or all 3^d.
    fn vertex_at(&self, cell: usize, node: usize, order: usize) -> u32 {
        let (mut child, mut corner, mut rest) = (0, 0, node);
        for axis in 0..self.dim {
            let at = 2 / order * (rest % (order + 1));
            rest /= order + 1;
            child |= usize::from(at == 2) << axis;
            corner |= usize::from(at > 0) << axis;
        }
        // In the middle the lower child has its upper corner there.
        let place = (cell << self.dim) + child;
        let local = self.corners[place][corner];
        self.of.vertices(self.children[place] as usize)[usize::from(local)]
    }

    fn tag_cells(&self, parts: &mut Parts) -> Result<(), NotCoarser> {
        let all = 1 << self.dim;
        for (tag, cells) in self.of.cell_tags() {
            let mut tagged = vec![false; self.of.n_cells()];
            cells.iter().for_each(|&cell| tagged[cell as usize] = true);
            let mut own = Vec::new();
            for (cell, children) in self.children.chunks_exact(all).enumerate() {
                let count = children.iter().filter(|&&child| tagged[child as usize]).count();
                match count {
                    0 => {}
                    count if count == all => own.push(cell as u32),
                    _ => return Err(NotCoarser::Tag { tag: tag.clone() }),
                }
            }
            parts.cells.insert(tag.clone(), own);
        }
        Ok(())
    }

    fn tag_facets(&self, parts: &mut Parts, numbers: &[u32]) -> Result<(), NotCoarser> {
        let mut place_of = vec![0; self.children.len()];
        for (place, &child) in self.children.iter().enumerate() {
            place_of[child as usize] = place;
        }
        for (tag, facets) in self.of.facet_tags() {
            let wrong = || NotCoarser::Tag { tag: tag.clone() };
            let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for &Facet { cell, local } in facets {
                let place = place_of[cell as usize];
                let (axis, side) = self.aligned(place, usize::from(local));
                if place >> axis & 1 != side {
                    return Err(wrong());
                }
                *counts.entry((place >> self.dim, 2 * axis + side)).or_default() += 1;
            }
            let mut own = Vec::new();
            for ((cell, facet), count) in counts {
                if count != 1 << (self.dim - 1) {
                    return Err(wrong());
                }
                own.push(self.facet(cell, facet, numbers));
            }
            parts.facets.insert(tag.clone(), own);
        }
        Ok(())
    }

    /// The axis of a larger cell, and the side, to which a facet of a child belongs.
    fn aligned(&self, place: usize, local: usize) -> (usize, usize) {
        let corners = &self.corners[place];
        let along = |axis: usize| (corners[0] ^ corners[1 << axis]).trailing_zeros() as usize;
        let axis = (0..self.dim).find(|&axis| along(axis) == local / 2).unwrap_or(0);
        let turned = usize::from(corners[0]) >> (local / 2) & 1;
        (axis, (local % 2) ^ turned)
    }

    /// The points of a facet of a larger cell.
    fn facet(&self, cell: usize, facet: usize, numbers: &[u32]) -> [u32; 4] {
        let (axis, side) = (facet / 2, facet % 2);
        let mut points = [NONE; 4];
        let corners = (0..1usize << self.dim).filter(|corner| corner >> axis & 1 == side);
        for (point, corner) in points.iter_mut().zip(corners) {
            *point = numbers[self.vertex_at(cell, corner, 1) as usize];
        }
        points
    }
}

impl Coarsened {
    /// For a number at each node of the finer mesh's cells, `[cell][node]` in the lexicographic order of n nodes a direction, those
    /// of each coarser cell: `[cell][node]` with 2 n − 1 nodes a direction.
    pub fn joined(&self, nodes: &[u32], n: usize) -> Vec<u32> {
        let dim = self.mesh.dim();
        let (all, each, wide) = (1 << dim, n.pow(dim as u32), 2 * n - 1);
        let mut joined = vec![NONE; self.mesh.n_cells() * wide.pow(dim as u32)];
        for (cell, own) in joined.chunks_exact_mut(wide.pow(dim as u32)).enumerate() {
            for half in 0..all {
                let place = cell * all + half;
                let (child, corners) = (self.children[place] as usize, &self.corners[place]);
                let nodes = &nodes[child * each..(child + 1) * each];
                // Where a step along an axis of the coarser cell leads.
                let steps = [0, 1, 2].map(|axis: usize| {
                    if axis >= dim {
                        return (0, 0);
                    }
                    let along = (corners[0] ^ corners[1 << axis]).trailing_zeros() as usize;
                    let back = corners[0] >> along & 1 == 1;
                    (n.pow(along as u32), if back { n - 1 } else { 0 })
                });
                for at in 0..each {
                    let (mut from, mut to, mut rest, mut stride) = (0, 0, at, 1);
                    for (axis, (step, last)) in steps.iter().enumerate().take(dim) {
                        let i = rest % n;
                        rest /= n;
                        from += step * last.abs_diff(i);
                        to += stride * (i + (half >> axis & 1) * (n - 1));
                        stride *= wide;
                    }
                    own[to] = nodes[from];
                }
            }
        }
        joined
    }

    /// The kind of its cells.
    pub fn cell(&self) -> Cell {
        self.mesh.cell()
    }
}

#[cfg(test)]
mod tests;
