//! Nodes that lie where another does: parts of a mesh that touch and are not joined.
//!
//! Meshes of several volumes whose common faces were made twice look whole and are not: nothing flows from one to the
//! other. Such nodes lie on facets of one cell, so only those are compared. Two are in one place where they are nearer
//! than 10⁻⁸ of the mesh's diameter, which is Gmsh's own tolerance, and than 10⁻³ of its shortest edge. Where that is
//! less than coordinates can tell apart, nothing is said.

use super::Topology;
use super::near::Near;

/// As a part of the diameter of the mesh.
const OF_MESH: f64 = 1e-8;

/// As a part of the shortest edge.
const OF_EDGE: f64 = 1e-3;

/// What coordinates can tell apart, as a part of the diameter of the mesh.
const TOLD_APART: f64 = 1e-15;

/// Words of what is said, which say it of a mesh and of the one that it was refined from.
pub(super) const TOLD: &str = "where another does";

/// What is said of nodes that lie where another does, if there are any.
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

/// The vertices of all facets of exactly one cell, ascending.
fn boundary_vertices(topology: &Topology) -> Vec<u32> {
    let facets = topology.facets();
    let mut outer = vec![false; topology.n_vertices()];
    for facet in (0..facets.len()).filter(|&facet| facets.n_cells(facet) == 1) {
        facets.vertices(facet).iter().for_each(|&vertex| outer[vertex as usize] = true);
    }
    (0..).zip(outer).filter(|(_, outer)| *outer).map(|(vertex, _)| vertex).collect()
}

/// How near to each other two nodes lie in one place; none where coordinates cannot tell that.
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

/// How many of some points lie where an earlier one does, and the first of them.
fn coincident(chosen: &[u32], points: &[[f64; 3]], tolerance: f64) -> (usize, Option<u32>) {
    let mut found = (0, None);
    // One point of each place.
    let mut places = Near::new(points, tolerance);
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
