//! Coincident nodes: parts of a mesh that touch but are not connected.
//!
//! A mesh of several volumes whose common faces were meshed twice looks connected but is not. Such nodes lie on facets
//! of one cell, so only those are compared. Nodes coincide if they are closer than 10⁻⁸ of the mesh diameter (Gmsh's
//! tolerance) and 10⁻³ of the shortest edge. There is no check if this is below the resolution of the coordinates.

use super::Topology;
use super::point_hash::PointHash;

/// Tolerance relative to the diameter of the mesh.
const OF_MESH: f64 = 1e-8;

/// Tolerance relative to the shortest edge.
const OF_EDGE: f64 = 1e-3;

/// Resolution of the coordinates, relative to the diameter of the mesh.
const TOLD_APART: f64 = 1e-15;

/// Part of the note's text, by which a refined mesh recognises the note of its coarse mesh.
pub(super) const TOLD: &str = "where another does";

/// Returns a note on coincident nodes, if any.
pub(super) fn note(topology: &Topology, points: &[[f64; 3]], tolerance: f64) -> Option<String> {
    let boundary = boundary_vertices(topology);
    let (count, first) = coincident(&boundary, points, tolerance);
    let [x, y, z] = points[first? as usize];
    let (nodes, lie) = if count == 1 { ("node", "lies") } else { ("nodes", "lie") };
    Some(format!(
        "{count} {nodes} {lie} where another does, the first at ({x}, {y}, {z}): nothing joins the cells there; \
         merge them (`Coherence Mesh;` in Gmsh) unless a slit is meant"
    ))
}

/// Returns the vertices of all facets of exactly one cell, ascending.
fn boundary_vertices(topology: &Topology) -> Vec<u32> {
    let facets = topology.facets();
    let mut outer = vec![false; topology.n_vertices()];
    for facet in (0..facets.len()).filter(|&facet| facets.n_cells(facet) == 1) {
        facets.vertices(facet).iter().for_each(|&vertex| outer[vertex as usize] = true);
    }
    (0..).zip(outer).filter(|(_, outer)| *outer).map(|(vertex, _)| vertex).collect()
}

/// Returns the distance below which nodes coincide; `None` if coordinates cannot resolve it.
pub(super) fn tolerance(topology: &Topology, points: &[[f64; 3]]) -> Option<f64> {
    let distance = |a: &[f64; 3], b: &[f64; 3]| -> f64 {
        (0..3).map(|c| (a[c] - b[c]).powi(2)).sum::<f64>().sqrt()
    };
    let edges = topology.edges();
    let length = |edge: usize| {
        let ends = edges.vertices(edge);
        distance(&points[ends[0] as usize], &points[ends[1] as usize])
    };
    let shortest = (0..edges.len()).map(length).fold(f64::INFINITY, f64::min);
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in points {
        for c in 0..3 {
            (lower[c], upper[c]) = (lower[c].min(point[c]), upper[c].max(point[c]));
        }
    }
    let diameter = distance(&lower, &upper);
    let tolerance = (OF_MESH * diameter).min(OF_EDGE * shortest);
    (tolerance > TOLD_APART * diameter).then_some(tolerance)
}

/// Returns the number of points that coincide with an earlier one, and the first of them.
fn coincident(chosen: &[u32], points: &[[f64; 3]], tolerance: f64) -> (usize, Option<u32>) {
    let mut found = (0, None);
    // One point per position.
    let mut places = PointHash::new(points, tolerance);
    for &number in chosen {
        match places.find(points[number as usize]) {
            Some(_) => found = (found.0 + 1, found.1.or(Some(number))),
            None => places.insert(number),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_compared_across_the_borders_of_cubes() {
        let at = |x: f64| [x, 0.0, 0.0];
        let points = [at(0.999), at(1.001), at(3.0), at(0.999), at(-2.0), at(1.5)];
        let all: Vec<u32> = (0..6).collect();
        assert_eq!(coincident(&all, &points, 0.1), (2, Some(1)));
        assert_eq!(coincident(&all[..1], &points, 0.1), (0, None));
        assert_eq!(coincident(&all, &points, 1e-9), (1, Some(3)));
    }
}
