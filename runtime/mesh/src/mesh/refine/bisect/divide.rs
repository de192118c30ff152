//! Bisection of marked cells with its closure, and its reversal.
//!
//! A split edge enters a work list. While it has leaves around it, one of them is bisected at its own refinement edge,
//! and the children enter the lists of their edges. Each bisection is found in constant time, none is redundant, and no
//! leaf has a split edge when the list is empty. The process ends: with all edges split equally often, cells conform,
//! and no further bisection is ever needed.

use super::BisectError;
use super::origins::{EdgeOrigin, FaceOrigin};
use super::path::FINEST;
use super::pool::NONE;
use super::rule::MIDDLE;
use super::tree::{BisectionTree, EdgeList, ListLink, TreeEdge, TreeFace, TreeNode};
use crate::support::memory::MemoryBudget;

/// Work counters, for bounds in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkCounters {
    /// Visits of leaves and list ends.
    pub(super) visits: usize,
    /// The number of bisections.
    pub(super) bisections: usize,
}

impl BisectionTree {
    /// Bisects the marked cells that are still leaves at their turn, and closes.
    ///
    /// # Errors
    ///
    /// Too many cells, or one that is too fine. The tree is then unchanged.
    pub(super) fn refine(&mut self, marked: &[u32]) -> Result<WorkCounters, BisectError> {
        let (mut done, mut visits) = (Vec::new(), marked.len());
        let mut bisect_all = |tree: &mut Self| {
            let mut open = Vec::new();
            for &node in marked {
                if tree.is_leaf(node) {
                    tree.check(node)?;
                    open.extend(tree.bisect(node));
                    done.push(node);
                }
            }
            while let Some(&edge) = open.last() {
                visits += 1;
                let Some(node) = tree.first_around(edge) else {
                    open.pop();
                    continue;
                };
                tree.check(node)?;
                open.extend(tree.bisect(node));
                done.push(node);
            }
            Ok(())
        };
        let outcome = bisect_all(self);
        if outcome.is_err() {
            done.iter().rev().for_each(|&node| self.join(node));
        }
        outcome.map(|()| WorkCounters { visits, bisections: done.len() })
    }

    /// Checks that a leaf can be bisected.
    fn check(&self, node: u32) -> Result<(), BisectError> {
        if u32::from(self.nodes[node].depth) == FINEST {
            return Err(BisectError::TooFine { cell: self.path(node).0 });
        }
        let (nodes, edges) = (self.nodes.numbers(), self.edges.numbers());
        let most = (nodes + 2) * self.cell.entities(1).len();
        if most.max(edges + 4) >= NONE as usize {
            return Err(BisectError::TooMany { count: self.n_leaves + 1 });
        }
        if self.nodes.is_full() {
            let what = || format!("a bisection of {} cells", self.n_leaves);
            MemoryBudget::check(what, 2.0 * self.bytes())?;
        }
        Ok(())
    }

    /// Bisects a leaf; returns its refinement edge if it was not split before.
    fn bisect(&mut self, node: u32) -> Option<u32> {
        let edge = self.divided_edge(node);
        let new = self.edges[edge].halves == NONE;
        if new {
            self.edges[edge].middle = self.vertices.one(());
            self.edges[edge].halves = self.edges.two([TreeEdge::NEW; 2]);
            self.halved[0] += 1;
        }
        self.leave(node);
        self.push(EdgeList::Divided, node, self.first_edge);
        let TreeNode { kind, depth, .. } = self.nodes[node];
        let between = self.between(node);
        let child = |(_, kind)| TreeNode {
            parent: node,
            children: NONE,
            kind,
            depth: depth + 1,
            reversed: 0,
        };
        let children = kind.children();
        let first = self.nodes.two(children.map(child));
        self.make_room(first + 1);
        self.nodes[node].children = first;
        for (child, (step, _)) in (first..).zip(children) {
            self.fill(child, node, step, between);
            self.enter(child);
        }
        self.n_leaves += 1;
        new.then_some(edge)
    }

    /// Returns the new edges from the midpoint to vertices 2 and 3, and the face between the children; reuses those of
    /// split faces.
    fn between(&mut self, node: u32) -> InnerEntities {
        if self.cell.dim() == 2 {
            return InnerEntities { spokes: [self.edges.one(TreeEdge::NEW), NONE], face: NONE };
        }
        let mut spokes = [NONE; 2];
        for (spoke, opposite) in spokes.iter_mut().zip([3, 2]) {
            let face = self.faces_of[node as usize * 4 + opposite];
            if self.faces[face].halves == NONE {
                self.faces[face].halves = self.faces.two([TreeFace::NEW; 2]);
                self.faces[face].spoke = self.edges.one(TreeEdge::NEW);
                self.halved[1] += 1;
            }
            *spoke = self.faces[face].spoke;
        }
        InnerEntities { spokes, face: self.faces.one(TreeFace::NEW) }
    }

    /// Enlarges the tables for a cell.
    fn make_room(&mut self, node: u32) {
        let n = node as usize + 1;
        let grow = |all: &mut Vec<u32>, each: usize| all.resize(all.len().max(n * each), NONE);
        grow(&mut self.vertices_of, self.cell.vertex_count());
        grow(&mut self.edges_of, self.cell.entities(1).len());
        grow(&mut self.faces_of, if self.cell.dim() == 3 { 4 } else { 0 });
        self.links.resize(self.edges_of.len(), ListLink::ALONE);
    }

    /// Fills the tables of a child from its parent.
    fn fill(&mut self, child: u32, parent: u32, step: usize, between: InnerEntities) {
        let parts = &self.parts[step];
        let (edge_01, before) = (self.divided_edge(parent), self.nodes[parent].reversed);
        let is_reversed = |edge: usize| before >> edge & 1 == 1;
        let TreeEdge { middle, halves, .. } = self.edges[edge_01];
        // The half of an edge or face that belongs to the child.
        let half = u32::from(is_reversed(self.first_edge)) ^ parts.end as u32;
        let (n, from) = (parts.vertices.len(), parent as usize * parts.vertices.len());
        for (place, &vertex) in parts.vertices.iter().enumerate() {
            let is_new = vertex == MIDDLE;
            let own = if is_new { middle } else { self.vertices_of[from + vertex] };
            self.vertices_of[child as usize * n + place] = own;
        }
        let (n, mut reversed) = (parts.edges.len(), 0);
        for (place, of) in parts.edges.iter().enumerate() {
            let (edge, against) = match *of {
                EdgeOrigin::Whole { edge, turned } => {
                    (self.edges_of[parent as usize * n + edge], turned != is_reversed(edge))
                }
                EdgeOrigin::Half { turned } => {
                    (halves + half, turned != is_reversed(self.first_edge))
                }
                EdgeOrigin::Spoke { to, turned } => (between.spokes[to - 2], turned),
            };
            self.edges_of[child as usize * n + place] = edge;
            reversed |= u8::from(against) << place;
        }
        self.nodes[child].reversed = reversed;
        for (place, of) in parts.faces.iter().enumerate() {
            self.faces_of[child as usize * 4 + place] = match *of {
                FaceOrigin::Whole(face) => self.faces_of[parent as usize * 4 + face],
                FaceOrigin::Half(face) => {
                    self.faces[self.faces_of[parent as usize * 4 + face]].halves + half
                }
                FaceOrigin::Interior => between.face,
            };
        }
    }

    /// Undoes the bisection of a cell whose children are leaves. All cells bisected at the same edge must be joined
    /// before the next bisection.
    pub(super) fn join(&mut self, node: u32) {
        let (first, edge) = (self.nodes[node].children, self.divided_edge(node));
        self.leave(first);
        self.leave(first + 1);
        self.remove(EdgeList::Divided, node, self.first_edge);
        self.free_between(node);
        self.nodes.free_two(first);
        self.nodes[node].children = NONE;
        self.enter(node);
        self.n_leaves -= 1;
        let TreeEdge { middle, halves, divided, .. } = self.edges[edge];
        if divided == NONE {
            self.vertices.free_one(middle);
            self.edges.free_two(halves);
            (self.edges[edge].middle, self.edges[edge].halves) = (NONE, NONE);
            self.halved[0] -= 1;
        }
    }

    /// Releases the entities created by [`between`](Self::between).
    fn free_between(&mut self, node: u32) {
        let child = self.nodes[node].children as usize;
        let parts = &self.parts[self.nodes[node].kind.children()[0].0];
        if self.cell.dim() == 2 {
            let is_spoke = |of: &EdgeOrigin| matches!(of, EdgeOrigin::Spoke { .. });
            let spoke = parts.edges.iter().position(is_spoke);
            self.edges.free_one(self.edges_of[child * 3 + spoke.unwrap_or_default()]);
            return;
        }
        let between = parts.faces.iter().position(|face| *face == FaceOrigin::Interior);
        self.faces.free_one(self.faces_of[child * 4 + between.unwrap_or_default()]);
        for opposite in [2, 3] {
            let face = self.faces_of[node as usize * 4 + opposite];
            let TreeFace { halves, spoke } = self.faces[face];
            if halves != NONE {
                self.faces.free_two(halves);
                self.edges.free_one(spoke);
                self.faces[face] = TreeFace::NEW;
                self.halved[1] -= 1;
            }
        }
    }
}

/// Entities that a bisection creates in addition to halves.
#[derive(Clone, Copy)]
struct InnerEntities {
    spokes: [u32; 2],
    face: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::generate::generate;
    use fem_dsl::problem::Argument;
    use std::collections::BTreeMap;

    /// Linear time, by counting: each visit bisects a leaf or closes an edge that a bisection opened.
    #[test]
    fn nothing_is_looked_at_in_vain() {
        for (cell, dim) in [("tri", 2.0), ("tet", 3.0)] {
            let arguments = BTreeMap::from([
                ("cells".to_owned(), Argument::Number(3.0)),
                ("dim".to_owned(), Argument::Number(dim)),
                ("cell".to_owned(), Argument::Word(cell.to_owned())),
            ]);
            let mesh = generate("box", &arguments).expect("a box");
            let mut tree = BisectionTree::new(&mesh);
            let (mut marked, mut bisections) = (0, 0);
            for _ in 0..30 {
                // A leaf at a corner and one in the middle of the traversal.
                let mut leaves = Vec::new();
                for root in 0..tree.n_roots as u32 {
                    tree.walk(root, |leaf| leaves.push(leaf));
                }
                let chosen = [leaves[0], leaves[leaves.len() / 2]];
                let visits = tree.refine(&chosen).expect("few leaves");
                assert!(visits.visits <= 2 * visits.bisections + chosen.len(), "{visits:?}");
                marked += chosen.len();
                bisections += visits.bisections;
            }
            assert_eq!(tree.n_leaves, tree.n_roots + bisections);
            // A bound of the closure over all rounds, for any depth.
            assert!(bisections < 20 * marked, "{cell}: {bisections} for {marked}");
        }
    }
}
