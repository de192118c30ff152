//! Search for patches: the incidence of cells → the children of each patch, and their positions in it.
//!
//! ```text
//! e' of the cell across a facet: the vertex e on an even facet, and across from its mirror image on an odd one
//! ```
//!
//! For one cell of each component, each of its 2^d corners is tried as the one that is even along all axes. A
//! breadth-first search over facets determines the even corners of all other cells. A corner is rejected if two cells
//! disagree, if an odd facet lies on the boundary, or if a patch does not close. A patch closes if child j and child j
//! ⊕ 2^A are the two sides of one facet for all j and A, with the same axes on each path over odd facets. Then 2^d
//! cells surround the patch centre as in a cube, for any structure of the mesh elsewhere. The time is proportional to
//! the number of cells.

use super::child_position::{Axes, ChildPosition};
use super::labels::TagLabels;
use super::links::{FacetLinks, NONE};
use crate::mesh::{Facet, Mesh};

/// The even corner is not known yet.
const UNKNOWN: u8 = u8::MAX;

/// Reason for a failed search, with one of the cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Refusal {
    Patches(u32),
    Tags(u32),
}

/// Patches in the order of their first cells.
pub(super) struct Patches {
    /// `[patch][child]`.
    pub(super) children: Vec<u32>,
    pub(super) places: Vec<ChildPosition>,
}

impl Patches {
    pub(super) fn find(
        mesh: &Mesh,
        links: &FacetLinks,
        labels: &TagLabels,
    ) -> Result<Self, Refusal> {
        let mut search = PatchSearch::new(mesh, links, labels);
        for cell in 0..mesh.n_cells() as u32 {
            if search.even[cell as usize] == UNKNOWN {
                search.component(cell)?;
            }
        }
        let PatchSearch { children, places, components, .. } = search;
        let patches = Self { children, places };
        Ok(if components > 1 { patches.sorted(mesh.cell().vertex_count()) } else { patches })
    }

    /// Returns the number of patches.
    pub(super) fn count(&self, each: usize) -> usize {
        self.children.len() / each
    }

    /// Returns the cell with the least number of each patch.
    pub(super) fn firsts(&self, each: usize) -> impl Iterator<Item = u32> {
        self.children.chunks_exact(each).map(|cells| cells.iter().copied().min().unwrap_or(NONE))
    }

    /// Sorts the patches of several components by their first cells.
    fn sorted(self, each: usize) -> Self {
        let firsts: Vec<u32> = self.firsts(each).collect();
        let mut order: Vec<usize> = (0..firsts.len()).collect();
        order.sort_unstable_by_key(|&patch| firsts[patch]);
        let all = |patch: &usize| patch * each..(patch + 1) * each;
        let children = order.iter().flat_map(|patch| &self.children[all(patch)]).copied();
        let places = order.iter().flat_map(|patch| &self.places[all(patch)]).copied();
        Self { children: children.collect(), places: places.collect() }
    }

    /// Returns the fine vertex at a corner of a child, in the axes of the patch.
    pub(super) fn vertex(&self, mesh: &Mesh, patch: usize, child: usize, corner: usize) -> u32 {
        let own = patch * mesh.cell().vertex_count() + child;
        mesh.vertices(self.children[own] as usize)[self.places[own].vertex(corner, mesh.dim())]
    }

    /// Returns the fine facet of a child on a facet of its patch.
    pub(super) fn facet(&self, mesh: &Mesh, patch: usize, facet: usize, child: usize) -> u32 {
        let own = patch * mesh.cell().vertex_count() + child;
        let local = self.places[own].facet(facet / 2, facet % 2, mesh.dim()) as u8;
        mesh.topology().facet_entity(Facet { cell: self.children[own], local })
    }
}

/// State of the search.
struct PatchSearch<'a> {
    mesh: &'a Mesh,
    links: &'a FacetLinks,
    labels: &'a TagLabels,
    dim: usize,
    /// For each cell, its corner that is even along all axes.
    even: Vec<u8>,
    /// For each cell, whether it belongs to a patch.
    taken: Vec<bool>,
    /// The cells of the current component.
    cells: Vec<u32>,
    components: usize,
    children: Vec<u32>,
    places: Vec<ChildPosition>,
}

impl<'a> PatchSearch<'a> {
    fn new(mesh: &'a Mesh, links: &'a FacetLinks, labels: &'a TagLabels) -> Self {
        let count = mesh.n_cells();
        Self {
            mesh,
            links,
            labels,
            dim: mesh.dim(),
            even: vec![UNKNOWN; count],
            taken: vec![false; count],
            cells: Vec::with_capacity(count),
            components: 0,
            children: Vec::with_capacity(count),
            places: Vec::with_capacity(count),
        }
    }

    /// Finds the patches of a connected component.
    fn component(&mut self, first: u32) -> Result<(), Refusal> {
        self.components += 1;
        let refusal = match self.tried(first) {
            Ok(()) => return Ok(()),
            Err(refusal @ Refusal::Patches(_)) => return Err(refusal),
            Err(refusal) => refusal,
        };
        // The error names tags if there are patches without them.
        let none = TagLabels::none();
        let links = FacetLinks::new(self.mesh, &none);
        PatchSearch::new(self.mesh, &links, &none).tried(first).and(Err(refusal))
    }

    /// Tries all corners of a cell.
    fn tried(&mut self, first: u32) -> Result<(), Refusal> {
        let mut refused = Refusal::Patches(first);
        for corner in 0..1 << self.dim {
            let before = self.children.len();
            let done = self.walk(first, corner).and_then(|()| self.gather());
            let Err(refusal) = done else { return Ok(()) };
            if matches!(refusal, Refusal::Tags(_)) || matches!(refused, Refusal::Patches(_)) {
                refused = refusal;
            }
            for &cell in &self.cells {
                self.even[cell as usize] = UNKNOWN;
                self.taken[cell as usize] = false;
            }
            self.children.truncate(before);
            self.places.truncate(before);
        }
        Err(refused)
    }

    /// Determines the even corners of the component, given that of its first cell.
    fn walk(&mut self, first: u32, corner: u8) -> Result<(), Refusal> {
        self.cells.clear();
        self.cells.push(first);
        self.even[first as usize] = corner;
        let mut next = 0;
        while let Some(&cell) = self.cells.get(next) {
            next += 1;
            let even = self.even[cell as usize];
            for facet in 0..2 * self.dim {
                let is_odd = usize::from(even >> (facet / 2) & 1) != facet % 2;
                if is_odd && self.links.is_outer(cell, facet) {
                    return Err(Refusal::Patches(cell));
                }
                if is_odd && self.links.is_bound(cell, facet) {
                    return Err(Refusal::Tags(cell));
                }
                let Some(link) = self.links.across(cell, facet) else { continue };
                let there = link.even(even, facet, self.dim);
                let known = &mut self.even[link.cell as usize];
                if *known == UNKNOWN {
                    *known = there;
                    self.cells.push(link.cell);
                } else if *known != there {
                    return Err(Refusal::Patches(cell));
                }
            }
        }
        Ok(())
    }

    /// Collects the patches of a component, in cell order.
    fn gather(&mut self) -> Result<(), Refusal> {
        let all = self.cells.len() == self.taken.len();
        if !all {
            self.cells.sort_unstable();
        }
        for place in 0..self.cells.len() {
            let cell = if all { place as u32 } else { self.cells[place] };
            if !self.taken[cell as usize] {
                self.patch(cell)?;
            }
        }
        Ok(())
    }

    /// Collects the patch of its first cell.
    fn patch(&mut self, first: u32) -> Result<(), Refusal> {
        let corner = usize::from(self.even[first as usize]);
        let mut cells = [NONE; 8];
        let mut axes: [Axes; 8] = [[0, 1, 2]; 8];
        let (mut queue, mut count, mut next) = ([corner; 8], 1, 0);
        cells[corner] = first;
        self.taken[first as usize] = true;
        while next < count {
            let child = queue[next];
            next += 1;
            let (cell, own) = (cells[child], axes[child]);
            let even = self.even[cell as usize];
            for axis in 0..self.dim {
                let facet = 2 * axis + usize::from(even >> axis & 1 == 0);
                let refusal = Refusal::Patches(cell);
                let link = self.links.across(cell, facet).ok_or(refusal)?;
                let (other, there) = (child ^ 1 << own[axis], link.axes(own, facet, self.dim));
                if cells[other] != NONE {
                    if cells[other] != link.cell || axes[other] != there {
                        return Err(refusal);
                    }
                    continue;
                }
                if std::mem::replace(&mut self.taken[link.cell as usize], true) {
                    return Err(refusal);
                }
                (cells[other], axes[other]) = (link.cell, there);
                queue[count] = other;
                count += 1;
            }
        }
        self.finish(cells, axes)
    }

    /// Stores a complete patch.
    fn finish(&mut self, cells: [u32; 8], axes: [Axes; 8]) -> Result<(), Refusal> {
        let each = 1 << self.dim;
        for (child, (&cell, &axes)) in cells.iter().zip(&axes).enumerate().take(each) {
            let even = self.even[cell as usize];
            self.children.push(cell);
            self.places.push(ChildPosition::new(child, axes, even, self.dim));
        }
        if !self.labels.has_facets() {
            return Ok(());
        }
        let start = self.children.len() - each;
        for (facet, corners) in self.mesh.cell().facets().iter().enumerate() {
            let set = |child: usize| {
                let local = self.places[start + child].facet(facet / 2, facet % 2, self.dim) as u8;
                let cell = self.children[start + child];
                self.labels.facet(self.mesh.topology().facet_entity(Facet { cell, local }))
            };
            let first = set(corners[0]);
            if corners.iter().any(|&child| set(child) != first) {
                return Err(Refusal::Tags(cells[corners[0]]));
            }
        }
        Ok(())
    }
}
