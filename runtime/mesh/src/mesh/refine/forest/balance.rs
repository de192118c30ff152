//! Balance: cells that share a face or an edge (in two dimensions an edge, in one a vertex) differ by at most one level.
//!
//! The refined cells define a forest. Let R_m be those of level m. Balance means that all neighbours of a cell of R_m
//! exist:
//!
//! ```text
//! q ∈ R_m, n meets q in a face or an edge, both of level m   ⟹   parent(n) ∈ R_(m−1)
//! ```
//!
//! The parents of a family's neighbours are neighbours of the family's parent. One pass from the finest level down
//! therefore closes R: each family requires at most 18 cells of the next coarser level, which are sorted and merged
//! with the existing ones. One traversal of R gives the leaves. Balance across corners would cost 3 % more cells and is
//! unnecessary: with faces and edges, no entity hangs on a hanging one.

use super::adjacency::{DIRECTIONS, FACES, OTHERS, TreeAdjacency};
use super::key::{CellKey, FINEST, KeyLayout};
use crate::support::parallel::*;

/// The refined cells by level, each level ascending.
pub(super) type RefinedCells = Vec<Vec<CellKey>>;

/// Returns the refined cells for given leaves.
pub(super) fn divided(layout: KeyLayout, leaves: &[CellKey]) -> RefinedCells {
    let mut levels: RefinedCells = Vec::new();
    for &leaf in leaves {
        // A cell is the first descendant of the ancestors with the same lower corner.
        let mut first = leaf;
        while first.level() > 0 && layout.child_number(first) == 0 {
            first = layout.parent(first);
            let level = first.level() as usize;
            if levels.len() <= level {
                levels.resize_with(level + 1, Vec::new);
            }
            levels[level].push(first);
        }
    }
    levels
}

/// Returns the number of leaves.
pub(super) fn count(layout: KeyLayout, n_trees: usize, divided: &RefinedCells) -> usize {
    let cells: usize = divided.iter().map(Vec::len).sum();
    n_trees + cells * (layout.children() - 1)
}

/// Returns the leaves, ascending.
pub(super) fn leaves(layout: KeyLayout, n_trees: usize, divided: &RefinedCells) -> Vec<CellKey> {
    let mut leaves = Vec::with_capacity(count(layout, n_trees, divided));
    let mut next = [0usize; FINEST as usize + 1];
    // The stack holds at most the siblings of all levels.
    let mut open = Vec::with_capacity((FINEST as usize + 1) * layout.children());
    for tree in 0..n_trees as u32 {
        open.push(CellKey::of_tree(tree));
        while let Some(key) = open.pop() {
            let level = key.level() as usize;
            let cells = divided.get(level).map_or(&[][..], Vec::as_slice);
            if cells.get(next[level]) == Some(&key) {
                next[level] += 1;
                open.extend((0..layout.children()).rev().map(|number| layout.child(key, number)));
            } else {
                leaves.push(key);
            }
        }
    }
    leaves
}

/// Refines cells until the forest is balanced; returns whether any were refined.
pub(super) fn balance(coarse: &TreeAdjacency, divided: &mut RefinedCells) -> bool {
    let layout = coarse.layout;
    let outward = outward(layout);
    let mut changed = false;
    for level in (1..divided.len()).rev() {
        let mut wanted = Vec::new();
        let mut rest = divided[level].as_slice();
        while let Some(&first) = rest.first() {
            let parent = layout.parent(first);
            let family = rest.iter().take(layout.children());
            let own = family.take_while(|&&cell| layout.parent(cell) == parent);
            let (mut directions, mut count) = (0, 0);
            for &cell in own {
                directions |= outward[layout.child_number(cell)];
                count += 1;
            }
            wanted.push(parent);
            coarse.neighbours(parent, directions, |_, near| wanted.push(near));
            rest = &rest[count..];
        }
        wanted.par_sort_unstable();
        wanted.dedup();
        changed |= merge(&mut divided[level - 1], &wanted);
    }
    changed
}

/// Returns for each child the directions in which its neighbours are neighbours of its parent.
fn outward(layout: KeyLayout) -> Vec<u32> {
    let dim = layout.children().ilog2() as usize;
    let of = |number: usize| {
        let side = |axis: usize| number >> axis & 1;
        let faces = (0..dim).map(|axis| 1 << (2 * axis + side(axis)));
        let edge = |axis: usize| {
            let [first, second] = OTHERS[axis];
            1 << (FACES + 4 * axis + side(first) + 2 * side(second))
        };
        let edges = (0..if dim == 3 { 3 } else { 0 }).map(edge);
        faces.chain(edges).fold(0, |all: u32, bit: u32| all | bit)
    };
    (0..layout.children()).map(of).collect()
}

/// Merges sorted keys; returns whether any were new.
fn merge(keys: &mut Vec<CellKey>, others: &[CellKey]) -> bool {
    let mut new = Vec::new();
    let mut at = 0;
    for &other in others {
        while at < keys.len() && keys[at] < other {
            at += 1;
        }
        if keys.get(at) != Some(&other) {
            new.push(other);
        }
    }
    if new.is_empty() {
        return false;
    }
    let mut merged = Vec::with_capacity(keys.len() + new.len());
    let mut new = new.into_iter().peekable();
    for &key in keys.iter() {
        while let Some(first) = new.next_if(|&first| first < key) {
            merged.push(first);
        }
        merged.push(key);
    }
    merged.extend(new);
    *keys = merged;
    true
}

/// Returns the hanging mask of each leaf ([`super::HangingMask`]); `divided` must be balanced.
pub(super) fn masks(
    coarse: &TreeAdjacency,
    divided: &RefinedCells,
    leaves: &[CellKey],
) -> Vec<u16> {
    let (layout, mut masks) = (coarse.layout, vec![0; leaves.len()]);
    let all = match layout.children() {
        // Points do not hang.
        2 => return masks,
        4 => (1 << 4) - 1,
        _ => (1u32 << DIRECTIONS) - 1,
    };
    // For each refined cell, the faces and edges with a leaf of its own level.
    let beside: Vec<Vec<u32>> = divided
        .iter()
        .map(|cells| {
            let of = |&cell: &CellKey| {
                let mut coarser = 0;
                coarse.neighbours(cell, all, |direction, near| {
                    coarser |= u32::from(cells.binary_search(&near).is_err()) << direction;
                });
                coarser
            };
            cells.par_iter().with_min_len(1024).map(of).listed()
        })
        .collect();
    // The index after the refined cell that contains the current leaf, by level.
    let mut inside = [0usize; FINEST as usize + 1];
    for (mask, &leaf) in masks.iter_mut().zip(leaves) {
        let mut first = leaf;
        while first.level() > 0 && layout.child_number(first) == 0 {
            first = layout.parent(first);
            inside[first.level() as usize] += 1;
        }
        if leaf.level() > 0 {
            let parent = leaf.level() as usize - 1;
            *mask = mask_of(layout, layout.child_number(leaf), beside[parent][inside[parent] - 1]);
        }
    }
    masks
}

/// Returns the mask of a child whose parent has leaf neighbours in the directions `coarser`.
fn mask_of(layout: KeyLayout, number: usize, coarser: u32) -> u16 {
    let side = |axis: usize| number >> axis & 1;
    let dim = layout.children().ilog2() as usize;
    let mut mask = 0;
    for axis in 0..dim {
        mask |= (coarser >> (2 * axis + side(axis)) & 1) << (3 + axis);
    }
    for axis in 0..if dim == 3 { 3 } else { 0 } {
        let [first, second] = OTHERS[axis];
        let hangs = coarser >> (FACES + 4 * axis + side(first) + 2 * side(second)) & 1 == 1;
        let in_face = mask >> (3 + first) & 1 == 1 || mask >> (3 + second) & 1 == 1;
        mask |= u32::from(hangs && !in_face) << (6 + axis);
    }
    // Without hanging entities the mask does not depend on the child.
    if mask == 0 { 0 } else { mask as u16 | number as u16 }
}
