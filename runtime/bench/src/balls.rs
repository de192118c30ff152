//! Meshes of Ljungkvist's benchmark: balls refined uniformly, or adaptively near spheres.
//!
//! A ball of 5 quadrilaterals or 7 hexahedra is refined `level` times. Cells near one of the [`SHELLS`] are then
//! refined [`DEEPER`] more times, with further cells for balance:
//!
//! ```text
//! | |m − c| − r |  ≤  w + ρ / 4        m: mean of the corners, ρ: largest distance of a corner from m
//! ```
//!
//! This rule is our own, since the paper states only the sizes of its meshes; it is the same in both dimensions, except
//! for the number of levels.

use super::BenchError;
use fem_dsl::problem::Argument;
use kernels_gen::element::{Cell, Lagrange};
use runtime::mesh::hanging::bits;
use runtime::mesh::refine::forest::Forest;
use runtime::mesh::{EntityCounts, Mesh, generate};
use runtime::space::Space;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A sphere near which cells are refined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shell {
    /// Its centre; the third coordinate is ignored in two dimensions.
    pub centre: [f64; 3],
    /// Its radius.
    pub radius: f64,
}

/// The spheres, which are not concentric.
pub const SHELLS: [Shell; 2] = [
    Shell { centre: [0.1, 0.0, 0.1], radius: 0.2 },
    Shell { centre: [-0.07, 0.07, 0.0], radius: 0.7 },
];

/// w, half the thickness of a shell.
pub const HALF_THICKNESS: f64 = 0.015;

/// Number of additional refinements near a shell, in two and in three dimensions.
pub const DEEPER: [usize; 2] = [4, 2];

/// A ball that can be refined.
#[derive(Clone, Debug)]
pub struct Ball {
    coarse: Arc<Mesh>,
}

impl Ball {
    /// Creates a ball in two or three dimensions.
    ///
    /// # Errors
    ///
    /// Another dimension.
    pub fn new(dim: usize) -> Result<Self, BenchError> {
        let number = |name: &str, value: usize| (name.to_owned(), Argument::Number(value as f64));
        let arguments = BTreeMap::from([number("dim", dim), number("refine", 0)]);
        Ok(Self { coarse: Arc::new(generate::generate("ball", &arguments)?) })
    }

    /// Returns the entity counts after uniform refinements, without building the mesh.
    pub fn counts(&self, level: usize) -> EntityCounts {
        EntityCounts::of(&self.coarse).refined(level)
    }

    /// Builds the ball after uniform refinements.
    ///
    /// # Errors
    ///
    /// More entities than indices can address or memory can hold.
    pub fn uniform(&self, level: usize) -> Result<Mesh, BenchError> {
        Ok(Mesh::clone(&self.coarse).refined(level)?)
    }

    /// Builds the forest after uniform refinements and those near the shells.
    ///
    /// # Errors
    ///
    /// More cells than indices can address.
    pub fn adapted(&self, level: usize) -> Result<Forest, BenchError> {
        let mut forest = Forest::new(&self.coarse)?;
        for _ in 0..level {
            forest.refine(|_| true)?;
        }
        for _ in 0..DEEPER[self.coarse.dim() - 2] {
            let mut near = vec![false; forest.n_leaves()];
            forest.visit(&self.coarse, |leaf, corners| near[leaf] = is_near(corners))?;
            forest.refine(|leaf| near[leaf])?;
            forest.balance()?;
        }
        Ok(forest)
    }

    /// Builds the mesh of a forest of this ball.
    ///
    /// # Errors
    ///
    /// More entities than indices can address.
    pub fn mesh(&self, forest: &Forest) -> Result<Mesh, BenchError> {
        Ok(forest.mesh(&self.coarse)?)
    }
}

/// Returns whether a cell with these corners is near a shell.
fn is_near(corners: &[[f64; 3]]) -> bool {
    let sum = |axis: usize| corners.iter().map(|corner| corner[axis]).sum::<f64>();
    let middle = [0, 1, 2].map(|axis| sum(axis) / corners.len() as f64);
    let reach = corners.iter().map(|corner| distance(corner, &middle)).fold(0.0, f64::max);
    // In two dimensions the circle is the sphere's intersection with the plane of all corners.
    let flat = corners.iter().all(|corner| corner[2] == 0.0);
    SHELLS.iter().any(|shell| {
        let [x, y, z] = shell.centre;
        let from = distance(&middle, &[x, y, if flat { 0.0 } else { z }]);
        (from - shell.radius).abs() <= HALF_THICKNESS + reach / 4.0
    })
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// Counts of a mesh, for any degree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// Number of cells.
    pub cells: usize,
    /// Number of cells with a hanging face or edge.
    pub constrained: usize,
    /// Number of divided edges of undivided cells.
    pub edges: usize,
    /// Number of divided faces of undivided cells; 0 in two dimensions.
    pub faces: usize,
}

impl Census {
    /// Counts the hanging entities of a mesh.
    pub fn of(mesh: &Mesh) -> Self {
        let words = mesh.hanging().unwrap_or(&[]);
        let hang = |dim: usize| if dim < mesh.dim() { divided(mesh, dim, words) } else { 0 };
        Self {
            cells: mesh.n_cells(),
            constrained: words.iter().filter(|&&word| word != 0).count(),
            edges: hang(1),
            faces: hang(2),
        }
    }

    /// Returns the number of nodes of degree p inside divided edges and faces. A cell with its own nodes there
    /// interpolates them from others.
    ///
    /// ```text
    /// edges · (2 p − 1) + faces · (2 p − 1)²
    /// ```
    pub fn hanging(&self, degree: usize) -> usize {
        let inside = 2 * degree - 1;
        self.edges * inside + self.faces * inside * inside
    }
}

/// Returns the number of degrees of freedom of degree p on a mesh, without interpolated nodes.
///
/// # Errors
///
/// No element of this degree.
pub fn unknowns(mesh: &Mesh, degree: usize) -> Result<usize, BenchError> {
    Ok(Space::count(mesh, Lagrange::continuous(mesh.cell(), degree)?))
}

/// Returns the number of nodes of degree p for entity counts.
///
/// # Errors
///
/// No element of this degree.
pub fn nodes(counts: &EntityCounts, degree: usize) -> Result<f64, BenchError> {
    Ok(counts.nodes(Lagrange::continuous(counts.cell, degree)?))
}

/// Counts the distinct entities of a dimension that replace hanging ones of cells.
fn divided(mesh: &Mesh, dim: usize, words: &[u32]) -> usize {
    let topology = mesh.connectivity();
    let entities = if dim == 1 { topology.edges() } else { topology.faces() };
    let own: Vec<u32> = bits_of(mesh.cell(), dim);
    let mut seen = vec![false; entities.len()];
    for (cell, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        let all = entities.of_cell(cell).iter().zip(&own);
        all.filter(|(_, bits)| word & **bits != 0).for_each(|(&e, _)| seen[e as usize] = true);
    }
    seen.into_iter().filter(|&seen| seen).count()
}

/// Returns, for each edge or face of a cell, the bits of a hanging-node word that mark it as hanging.
fn bits_of(cell: Cell, dim: usize) -> Vec<u32> {
    let of = |vertices: &&[usize]| {
        let along = vertices.iter().fold(0, |bits, v| bits | (v ^ vertices[0]));
        let end = |axis: usize| (along >> axis & 1 == 0).then_some(vertices[0] >> axis & 1);
        bits([0, 1, 2].map(end), cell.dim())
    };
    cell.entities(dim).iter().map(of).collect()
}
