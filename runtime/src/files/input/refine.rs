//! Data of a mesh on its refinement.
//!
//! Cell data is inherited. Data at geometry nodes is a function on each coarse cell, in the geometry's basis, and is
//! evaluated at the nodes of its children. These have the same degree, so nothing is lost.

use crate::mesh::Mesh;
use crate::mesh::refine::bisect::{BisectionMaps, CellPath};
use crate::mesh::refine::forest::{AffineMap, CellKey, ChildMaps, KeyLayout};
use crate::mesh::refined::{Descendants, RefinedMesh};
use fem_dsl::point::Shape;
use kernels_gen::element::{Lagrange, interpolation};
use std::collections::BTreeMap;

/// Largest number of cached tables: after many refinements a cell has as many children as the mesh has cells.
const KEPT: usize = 4096;

/// Returns the values of all children of the coarse cells.
pub(super) fn on_cells(refined: &RefinedMesh, values: &[f64], components: usize) -> Vec<f64> {
    refined.parents().flat_map(|cell| &values[cell * components..][..components]).copied().collect()
}

/// Interpolates a function given at the geometry nodes of the coarse mesh to those of the refined mesh.
pub(super) fn at_points(
    mesh: &Mesh,
    refined: &RefinedMesh,
    (from, values): (Lagrange, &[f64]),
    shape: Shape,
) -> (Lagrange, Vec<f64>) {
    let (coarse, components) = (&refined.coarse, shape.components());
    // INVARIANT: the geometry's element exists for the order of a mesh.
    let to = Lagrange::continuous(mesh.cell(), mesh.order()).unwrap_or(from);
    let (places, points) = (CellMaps::of(refined), to.points());
    let mut tables: BTreeMap<(u128, [u8; 4]), Vec<f64>> = BTreeMap::new();
    let mut all = vec![0.0; mesh.points().len() * components];
    let mut done = vec![false; mesh.points().len()];
    for cell in 0..mesh.n_cells() {
        let (parent, number) = refined.place(cell);
        let seen = refined.seen.get(cell).copied().unwrap_or([0, 1, 2, 3]);
        if tables.len() >= KEPT {
            tables.clear();
        }
        let table = tables.entry((number, seen)).or_insert_with(|| {
            let place = places.at(number).seen(mesh.cell(), seen);
            let places: Vec<[f64; 3]> = points.iter().map(|point| place.at(point)).collect();
            interpolation(from, &places)
        });
        for (weights, &node) in table.chunks_exact(from.count()).zip(mesh.cell_nodes(cell)) {
            if std::mem::replace(&mut done[node as usize], true) {
                continue;
            }
            let out = &mut all[node as usize * components..][..components];
            for (weight, &node) in weights.iter().zip(coarse.cell_nodes(parent)) {
                let value = &values[node as usize * components..][..components];
                out.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }
    (to, all)
}

/// Maps of cells into those of the coarser mesh.
enum CellMaps {
    Divided { children: ChildMaps, times: usize },
    Bisected(BisectionMaps),
    Leaves { children: ChildMaps, layout: KeyLayout },
}

impl CellMaps {
    fn of(refined: &RefinedMesh) -> Self {
        let cell = refined.coarse.cell();
        match refined.cells {
            Descendants::Uniform { times, .. } => {
                Self::Divided { children: ChildMaps::new(cell), times }
            }
            Descendants::Leaves { .. } => Self::Bisected(BisectionMaps::new(cell)),
            Descendants::Forest { layout, .. } => {
                Self::Leaves { children: ChildMaps::new(cell), layout }
            }
        }
    }

    /// Returns the map for a position number.
    fn at(&self, number: u128) -> AffineMap {
        match self {
            Self::Divided { children, times } => {
                children.descendant(&children.path(*times, number as usize))
            }
            Self::Leaves { children, layout } => {
                let path: Vec<usize> = layout.path(CellKey::of_place(number)).collect();
                children.descendant(&path)
            }
            Self::Bisected(steps) => steps.place(CellPath::from_bits(number)),
        }
    }
}
