//! Nodes on periodic sides that are not identical, because vectors are rotated from one side to the other, or because
//! values change their sign ([`NodeImages`]).
//!
//! ```text
//! u_b = s R u_a        b the image of a, R the rotation of the sides, s = ±1
//! S_b = s R S_a Rᵀ     for tensors
//! ```

use super::Space;
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::mesh::periodic::{PeriodicError, PeriodicSides};
use crate::mesh::side_map::SideMap;
use fem_dsl::point::Shape;
use kernels_gen::element::ElementError;
use std::collections::BTreeMap;

const IDENTITY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Two nodes, and the map of values at the first to those at the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// The nodes; both are one on the axis of a rotation.
    pub nodes: [u32; 2],
    /// The number of the map.
    pub map: usize,
}

/// Nodes on periodic sides of a space and their images.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeImages {
    /// The rotation of each pair of sides, and the factor of its values.
    maps: Vec<([[f64; 3]; 3], f64)>,
    /// Classes of nodes that depend on each other, with their links.
    classes: Vec<Vec<NodeLink>>,
}

/// Error of the search for images.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ImageError {
    /// Sides that are no images of each other.
    #[error(transparent)]
    Periodic(#[from] PeriodicError),
    /// An element without points.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A node without an image.
    #[error("the node of \"{tag}\" at ({}, {}, {}) has no image on \"{other}\"", .at[0], .at[1], .at[2])]
    Alone {
        /// The tag.
        tag: String,
        /// The tag of the other side.
        other: String,
        /// The point.
        at: [f64; 3],
    },
}

impl NodeImages {
    /// Finds the images of the nodes of a space; `None` if nodes on periodic sides are identical.
    ///
    /// # Errors
    ///
    /// Sides that are no images of each other.
    pub fn find(
        mesh: &Mesh,
        partition: &Partition,
        space: &Space,
    ) -> Result<Option<Self>, ImageError> {
        if Space::is_identified(mesh, space.element(), space.components()) {
            return Ok(None);
        }
        let (mut maps, mut links) = (Vec::new(), Vec::new());
        for pair in mesh.periodic_sides() {
            let map = mesh.map_of_sides(pair)?;
            links.extend(of_pair(mesh, partition, space, pair, &map, maps.len())?);
            maps.push((*map.rotation(), pair.factor));
        }
        Ok(Some(Self { maps, classes: classes(space.n_nodes(), links) }))
    }

    /// Returns the classes of nodes that depend on each other, as their links.
    pub fn classes(&self) -> &[Vec<NodeLink>] {
        &self.classes
    }

    /// Returns the nodes of each class with the rotation that takes the frame of its first node to theirs.
    pub fn turns(&self) -> impl Iterator<Item = BTreeMap<u32, [[f64; 3]; 3]>> {
        self.classes.iter().map(|class| {
            let first = class.iter().flat_map(|link| link.nodes).min().unwrap_or(0);
            let mut turns = BTreeMap::from([(first, IDENTITY)]);
            // A class is connected: each pass over its links reaches more nodes, until all have a rotation.
            loop {
                let known = turns.len();
                for NodeLink { nodes: [from, to], map } in class {
                    let rotation = &self.maps[*map].0;
                    match (turns.get(from).copied(), turns.get(to).copied()) {
                        (Some(turn), None) => {
                            turns.insert(*to, product(rotation, &turn));
                        }
                        (None, Some(turn)) => {
                            turns.insert(*from, product(&transposed(rotation), &turn));
                        }
                        _ => {}
                    }
                }
                if turns.len() == known {
                    return turns;
                }
            }
        })
    }

    /// Returns the matrix of a map for a field of this shape, row by row. Vectors and tensors in the dimension of the mesh
    /// are rotated; components of others are equal but for the factor.
    pub fn matrix(&self, map: usize, shape: Shape, dim: usize) -> Vec<f64> {
        let ([first, second, third], factor) = self.maps[map];
        let rotation = [first, second, third];
        let n = shape.components();
        let entry = |i: usize, j: usize| match shape {
            Shape::Vector(size) if size == dim => rotation[i][j],
            Shape::Matrix(rows, columns) if (rows, columns) == (dim, dim) => {
                rotation[i / dim][j / dim] * rotation[i % dim][j % dim]
            }
            _ => f64::from(u8::from(i == j)),
        };
        (0..n * n).map(|at| factor * entry(at / n, at % n)).collect()
    }
}

/// Returns R a.
pub(crate) fn turned(rotation: &[[f64; 3]; 3], a: &[f64; 3]) -> [f64; 3] {
    rotation.map(|row| (0..3).map(|c| row[c] * a[c]).sum())
}

/// Returns Rᵀ a.
pub(crate) fn turned_back(rotation: &[[f64; 3]; 3], a: &[f64; 3]) -> [f64; 3] {
    turned(&transposed(rotation), a)
}

fn transposed(rotation: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| rotation[j][i]))
}

/// Returns the rotation by b, and then by a.
fn product(a: &[[f64; 3]; 3], b: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let b = transposed(b);
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[j][k]).sum()))
}

/// Returns the links of the nodes of a pair of sides.
fn of_pair(
    mesh: &Mesh,
    partition: &Partition,
    space: &Space,
    pair: &PeriodicSides,
    map: &SideMap,
    number: usize,
) -> Result<Vec<NodeLink>, ImageError> {
    let on = |tag: &String| -> Result<(Vec<u32>, Vec<[f64; 3]>), ImageError> {
        let facets = mesh.outer_facets_under([tag]).map_err(PeriodicError::Mesh)?;
        let nodes = space.nodes_on(&facets);
        let points = space.points_at(mesh, partition, &nodes)?;
        Ok((nodes, points))
    };
    let [tag, other] = &pair.tags;
    let ((from, starts), (to, ends)) = (on(tag)?, on(other)?);
    let images = map.images(&starts, &ends);
    let link = |(at, image): (usize, Option<u32>)| match image {
        Some(image) => Ok(NodeLink { nodes: [from[at], to[image as usize]], map: number }),
        None => Err(ImageError::Alone { tag: tag.clone(), other: other.clone(), at: starts[at] }),
    };
    images.into_iter().enumerate().map(link).collect()
}

/// Groups links by the nodes that they connect.
fn classes(nodes: usize, links: Vec<NodeLink>) -> Vec<Vec<NodeLink>> {
    let mut first: Vec<u32> = (0..nodes as u32).collect();
    let root = |first: &[u32], mut node: u32| {
        while first[node as usize] != node {
            node = first[node as usize];
        }
        node
    };
    for link in &links {
        let [a, b] = link.nodes.map(|node| root(&first, node));
        first[a.max(b) as usize] = a.min(b);
    }
    let mut keyed: Vec<(u32, NodeLink)> =
        links.into_iter().map(|link| (root(&first, link.nodes[0]), link)).collect();
    keyed.sort_by_key(|(root, _)| *root);
    let of_class = |own: &[(u32, NodeLink)]| own.iter().map(|(_, link)| *link).collect();
    keyed.chunk_by(|a, b| a.0 == b.0).map(of_class).collect()
}
