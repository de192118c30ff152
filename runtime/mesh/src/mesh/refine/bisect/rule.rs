//! Bisection rule: the kind of a simplex → the vertices and kinds of its children.
//!
//! Edge 01 is split; child 0 keeps vertex 0 and child 1 vertex 1. In a triangle, vertex 2 is the newest vertex, so each
//! child splits the edge opposite the new vertex m. Each face of a tetrahedron has a marked edge, which is the first
//! edge of the face to be split. Edge 01 is that of both its faces. The kind gives the marked edges of the faces
//! opposite vertices 0 and 1, and so the children's refinement edges:
//!
//! | kind | marked | children |
//! | --- | --- | --- |
//! | planar | 12, 02 | flagged (0, 2, 3, m), (2, 1, 3, m) |
//! | flagged | 12, 02 | adjacent (0, 2, 3, m), (2, 1, m, 3) |
//! | adjacent | 13, 02 | planar (0, 2, 3, m), (3, 1, 2, m) |
//! | mixed | 23, 02 | planar (0, 2, 3, m), (2, 3, 1, m) |
//! | opposite | 23, 23 | planar (2, 3, 0, m), (3, 2, 1, m) |
//!
//! A child splits the marked edge of the face that it inherits whole. The remainder of a split face has its mark
//! opposite m. So has the face between the children, except for flagged tetrahedra, where it is the edge from m to the
//! refinement vertex of both children. The last two kinds occur only in an initial mesh (Arnold, Mukherjee and Pouly,
//! "Locally adapted tetrahedral meshes using bisection", SIAM J. Sci. Comput. 22, 2000). The vertex order of the
//! children makes the traversal a space-filling curve, Sierpiński's for triangles.

use crate::mesh::Cell;
use crate::mesh::refine::forest::{AffineMap, ChildMaps};

/// The midpoint of the split edge, in the vertices of a child.
pub(super) const MIDDLE: usize = 4;

/// Kind of a simplex, which determines its bisection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SimplexKind {
    Triangle,
    Planar,
    Flagged,
    Adjacent,
    Mixed,
    Opposite,
}

impl SimplexKind {
    pub(super) const ALL: [Self; 6] =
        [Self::Triangle, Self::Planar, Self::Flagged, Self::Adjacent, Self::Mixed, Self::Opposite];

    /// Returns the children: indices into [`vertices`], and kinds.
    pub(super) fn children(self) -> [(usize, Self); 2] {
        match self {
            Self::Triangle => [(0, Self::Triangle), (1, Self::Triangle)],
            Self::Planar => [(0, Self::Flagged), (1, Self::Flagged)],
            Self::Flagged => [(0, Self::Adjacent), (2, Self::Adjacent)],
            Self::Adjacent => [(0, Self::Planar), (3, Self::Planar)],
            Self::Mixed => [(0, Self::Planar), (4, Self::Planar)],
            Self::Opposite => [(5, Self::Planar), (6, Self::Planar)],
        }
    }
}

type VertexTable = &'static [&'static [usize]];

const TRIANGLES: VertexTable = &[&[0, 2, MIDDLE], &[2, 1, MIDDLE]];

const TETRAHEDRA: VertexTable = &[
    &[0, 2, 3, MIDDLE],
    &[2, 1, 3, MIDDLE],
    &[2, 1, MIDDLE, 3],
    &[3, 1, 2, MIDDLE],
    &[2, 3, 1, MIDDLE],
    &[2, 3, 0, MIDDLE],
    &[3, 2, 1, MIDDLE],
];

/// Returns the vertices of all child types, in terms of their parents' vertices.
pub(super) fn vertices(cell: Cell) -> VertexTable {
    if cell.dim() == 2 { TRIANGLES } else { TETRAHEDRA }
}

/// Returns the permutations of the vertices of a simplex, in lexicographic order.
pub(super) fn orders(cell: Cell) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..cell.vertex_count() {
        let longer = |order: Vec<usize>| {
            let left: Vec<usize> =
                (0..cell.vertex_count()).filter(|vertex| !order.contains(vertex)).collect();
            left.into_iter().map(move |vertex| [&order[..], &[vertex]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// Returns the local number of the edge or face with these vertices.
pub(super) fn local(cell: Cell, vertices: &[usize]) -> usize {
    let has = |own: &&[usize]| vertices.iter().all(|vertex| own.contains(vertex));
    // INVARIANT: any two vertices of a simplex form an edge, any three a face.
    cell.entities(vertices.len() - 1).iter().position(has).unwrap_or_default()
}

/// Returns the permutation ([`orders`]) and the kind of an initial cell: the largest edge of the cell, and of each
/// face, is marked. `size` gives the size of an edge; no two are equal.
pub(super) fn root<S: Ord>(cell: Cell, size: impl Fn(usize, usize) -> S) -> (usize, SimplexKind) {
    let largest = |vertices: &[usize]| {
        let edges =
            cell.entities(1).iter().filter(|edge| edge.iter().all(|v| vertices.contains(v)));
        edges.max_by_key(|edge| size(edge[0], edge[1])).map(|edge| [edge[0], edge[1]])
    };
    let fits = |order: &Vec<usize>| {
        let is = |vertices: &[usize], a: usize, b: usize| {
            let found = largest(vertices);
            found == Some([order[a], order[b]]) || found == Some([order[b], order[a]])
        };
        if !is(order, 0, 1) {
            return None;
        }
        if cell.dim() == 2 {
            return Some(SimplexKind::Triangle);
        }
        let opposite = [[order[1], order[2], order[3]], [order[0], order[2], order[3]]];
        let marked = |marks: [[usize; 2]; 2]| {
            opposite.iter().zip(marks).all(|(face, [a, b])| is(face, a, b))
        };
        match () {
            () if marked([[1, 2], [0, 2]]) => Some(SimplexKind::Planar),
            () if marked([[1, 3], [0, 2]]) => Some(SimplexKind::Adjacent),
            () if marked([[2, 3], [0, 2]]) => Some(SimplexKind::Mixed),
            () if marked([[2, 3], [2, 3]]) => Some(SimplexKind::Opposite),
            () => None,
        }
    };
    let orders = orders(cell);
    let found = orders.iter().enumerate().find_map(|(number, order)| Some((number, fits(order)?)));
    // INVARIANT: in some vertex order, the marks of any cell are those of a kind.
    found.unwrap_or((0, if cell.dim() == 2 { SimplexKind::Triangle } else { SimplexKind::Planar }))
}

/// Returns the maps of all child types into their parents, followed by those of vertex permutations.
pub(super) fn steps(cell: Cell) -> ChildMaps {
    let place = |vertex: usize| match vertex {
        MIDDLE => {
            let (a, b) = (cell.vertex(0), cell.vertex(1));
            [0, 1, 2].map(|c| (a[c] + b[c]) / 2.0)
        }
        vertex => cell.vertex(vertex),
    };
    let placed = |own: &[usize]| own.iter().map(|&vertex| place(vertex)).collect::<Vec<_>>();
    let children = vertices(cell).iter().map(|own| placed(own));
    ChildMaps::with_vertices(cell, children.chain(orders(cell).iter().map(|order| placed(order))))
}

/// [`steps`], and their composition along a path.
#[derive(Clone, Debug)]
pub struct BisectionMaps {
    cell: Cell,
    maps: ChildMaps,
}

impl BisectionMaps {
    /// Returns the maps of a triangle's or tetrahedron's bisections.
    pub fn new(cell: Cell) -> Self {
        Self { cell, maps: steps(cell) }
    }

    /// Returns the maps.
    pub(super) fn maps(&self) -> &ChildMaps {
        &self.maps
    }

    /// Returns the step of a vertex permutation ([`orders`]).
    pub(super) fn to_order(&self, order: usize) -> usize {
        vertices(self.cell).len() + order
    }

    /// Returns the composition of some steps.
    pub(super) fn place_of(&self, steps: impl Iterator<Item = usize>) -> AffineMap {
        steps.fold(AffineMap::IDENTITY, |place, step| place.of(self.maps.child(step)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::CellPath;
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the vertices of all descendants of one depth of an initial cell, in traversal order.
    fn descendants(cell: Cell, kind: SimplexKind, depth: u32) -> Vec<Vec<[f64; 3]>> {
        let first = [[0.0, 0.0, 0.0], [1.1, 0.1, 0.0], [0.2, 0.9, 0.1], [0.3, 0.2, 1.3]];
        let (steps, mut paths) = (BisectionMaps::new(cell), vec![CellPath::new(0, kind)]);
        for _ in 0..depth {
            paths = paths.iter().flat_map(|path| [path.child(0), path.child(1)]).collect();
        }
        let corners = |path: CellPath| {
            let place = steps.place(path);
            let corner = |vertex: usize| {
                let s = place.at(&cell.vertex(vertex));
                let weights = [1.0 - s[0] - s[1] - s[2], s[0], s[1], s[2]];
                [0, 1, 2].map(|c| (0..4).map(|v| weights[v] * first[v][c]).sum::<f64>())
            };
            (0..cell.vertex_count()).map(corner).collect()
        };
        paths.into_iter().map(corners).collect()
    }

    /// Returns the similarity class: the sorted squared edge lengths, scaled by the expected size.
    fn shape(cell: Cell, corners: &[[f64; 3]], depth: u32) -> Vec<i64> {
        let scale = (2.0 * f64::from(depth) / cell.dim() as f64).exp2();
        let square = |edge: &&[usize]| {
            let (a, b) = (corners[edge[0]], corners[edge[1]]);
            let square: f64 = (0..3).map(|c| (a[c] - b[c]).powi(2)).sum();
            (scale * square * 1e6).round() as i64
        };
        let mut squares: Vec<i64> = cell.entities(1).iter().map(square).collect();
        squares.sort_unstable();
        squares
    }

    #[test]
    fn descendants_keep_to_few_shapes() {
        for (kind, count) in [
            (SimplexKind::Triangle, 4),
            (SimplexKind::Planar, 36),
            (SimplexKind::Flagged, 36),
            (SimplexKind::Adjacent, 36),
            (SimplexKind::Mixed, 69),
            (SimplexKind::Opposite, 70),
        ] {
            let cell =
                if kind == SimplexKind::Triangle { Cell::Triangle } else { Cell::Tetrahedron };
            let mut shapes = BTreeSet::new();
            for depth in 0..12 {
                let all = descendants(cell, kind, depth);
                shapes.extend(all.iter().map(|corners| shape(cell, corners, depth)));
            }
            assert_eq!(shapes.len(), count, "{kind:?}");
        }
    }

    #[test]
    fn a_walk_goes_from_facet_to_facet() {
        for kind in SimplexKind::ALL {
            let cell =
                if kind == SimplexKind::Triangle { Cell::Triangle } else { Cell::Tetrahedron };
            let all = descendants(cell, kind, 10);
            let common = |two: &&[Vec<[f64; 3]>]| {
                let near = |a: &[f64; 3], b: &[f64; 3]| (0..3).all(|c| (a[c] - b[c]).abs() < 1e-9);
                let is_in = |at: &&[f64; 3]| two[1].iter().any(|other| near(at, other));
                two[0].iter().filter(is_in).count() == cell.dim()
            };
            let steps = all.windows(2).filter(common).count();
            let most = if kind == SimplexKind::Triangle { 1.0 } else { 0.84 };
            assert!(steps as f64 >= most * (all.len() - 1) as f64, "{kind:?}: {steps}");
        }
    }

    #[test]
    fn children_fill_their_parent_and_have_its_marks() {
        for cell in [Cell::Triangle, Cell::Tetrahedron] {
            for own in vertices(cell) {
                let kept = own.iter().filter(|&&vertex| vertex != MIDDLE);
                assert_eq!(kept.count(), cell.dim());
                assert!(own.contains(&0) != own.contains(&1));
            }
        }
        // The marked edge of each face, by kind.
        let marks = |kind: SimplexKind| match kind {
            SimplexKind::Planar | SimplexKind::Flagged => [[1, 2], [0, 2]],
            SimplexKind::Adjacent => [[1, 3], [0, 2]],
            SimplexKind::Mixed => [[2, 3], [0, 2]],
            SimplexKind::Triangle | SimplexKind::Opposite => [[2, 3], [2, 3]],
        };
        let sorted = |mut edge: [usize; 2]| {
            edge.sort_unstable();
            edge
        };
        for kind in SimplexKind::ALL.into_iter().filter(|kind| *kind != SimplexKind::Triangle) {
            for (end, (child, next)) in kind.children().into_iter().enumerate() {
                let own = vertices(Cell::Tetrahedron)[child];
                let at = |edge: [usize; 2]| sorted(edge.map(|vertex| own[vertex]));
                // The mark of the child's face with these vertices of the parent.
                let marked = |face: [usize; 3]| {
                    let left = (0..4).find(|&v| !face.contains(&own[v])).unwrap_or(4);
                    if left > 1 { at([0, 1]) } else { at(marks(next)[left]) }
                };
                let whole = [end, 2, 3];
                assert_eq!(marked(whole), sorted(marks(kind)[1 - end]), "{kind:?} {end}");
                assert_eq!(at([0, 1]), marked(whole), "{kind:?} {end}");
                for other in [2, 3] {
                    assert_eq!(
                        marked([end, other, MIDDLE]),
                        sorted([end, other]),
                        "{kind:?} {end}"
                    );
                }
                let common = kind.children().map(|(child, _)| {
                    let own = vertices(Cell::Tetrahedron)[child];
                    sorted([own[0], own[1]])
                });
                let both = common[0].into_iter().find(|v| common[1].contains(v)).unwrap_or(4);
                let expected = if kind == SimplexKind::Flagged { [both, MIDDLE] } else { [2, 3] };
                assert_eq!(marked([2, 3, MIDDLE]), expected, "{kind:?} {end}");
            }
        }
    }
}
