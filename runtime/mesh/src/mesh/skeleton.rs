//! Tagged curves and points: edges of a three-dimensional mesh, and vertices, for essential boundary conditions.
//!
//! They are stored as geometry, x(s) = Σ_i φ_i(s) x_i over the geometry nodes of an edge, not as entity numbers.
//! Refined, coarsened or distributed meshes of the same domain share them unchanged. A node of a space belongs to a
//! curve if its distance is at rounding-error level. The edges of a plane mesh are facets, which have tags of their
//! own.

use super::shape::CellShape;
use super::tree::{BoundingBox, BoundingTree};
use super::{Mesh, MeshData, Topology};
use kernels_gen::element::{Cell, Lagrange, tabulate};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Largest distance from a curve of a point on it, relative to the curve's length.
const ON_CURVE: f64 = 1e-9;

/// Largest distance between equal points, relative to the size of the coordinates.
const AT_POINT: f64 = 1e-12;

/// Iteration limit of the search for the nearest point of a curved edge.
const STEPS: usize = 20;

/// The tagged curves and points of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Skeleton {
    curves: BTreeMap<String, Vec<EdgeCurve>>,
    points: BTreeMap<String, Vec<[f64; 3]>>,
    /// The largest absolute coordinate of the mesh.
    size: f64,
}

/// The geometry nodes of an edge, from one end to the other.
type EdgeCurve = Vec<[f64; 3]>;

/// An item of the search tree.
#[derive(Clone, Copy)]
enum SearchItem<'a> {
    Curve(&'a EdgeCurve),
    Point([f64; 3]),
}

/// Search tree of the curves and points of some tags.
pub struct SkeletonIndex<'a> {
    tree: BoundingTree<SearchItem<'a>>,
    line: Option<Lagrange>,
    size: f64,
}

impl Skeleton {
    /// Returns the tagged curves and points of `parts`, and a note on those that belong to no cell.
    pub(super) fn of(
        shape: &CellShape,
        parts: &MeshData,
        topology: &Topology,
    ) -> (Option<Arc<Skeleton>>, Option<String>) {
        if parts.edges.is_empty() && parts.vertices.is_empty() {
            return (None, None);
        }
        let size = parts.points.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
        let mut skeleton = Skeleton { size, ..Skeleton::default() };
        let mut lost: BTreeMap<&str, usize> = BTreeMap::new();
        let found = edges_of_cells(shape, parts, topology);
        for (tag, edges) in &parts.edges {
            let curve = |edge: &[u32; 2]| found.get(&sorted(*edge)).cloned();
            let curves: Vec<EdgeCurve> = edges.iter().filter_map(curve).collect();
            *lost.entry(tag).or_default() += edges.len() - curves.len();
            if !curves.is_empty() {
                skeleton.curves.insert(tag.clone(), curves);
            }
        }
        for (tag, vertices) in &parts.vertices {
            let there =
                vertices.iter().filter(|&&vertex| (vertex as usize) < topology.n_vertices());
            let points: Vec<_> = there.map(|&vertex| parts.points[vertex as usize]).collect();
            *lost.entry(tag).or_default() += vertices.len() - points.len();
            if !points.is_empty() {
                skeleton.points.insert(tag.clone(), points);
            }
        }
        let count: usize = lost.values().sum();
        let note = lost.iter().find(|(_, count)| **count > 0).map(|(tag, _)| {
            format!("{count} tagged curves and points are no edge or vertex of any cell, some of \"{tag}\": conditions skip them")
        });
        (Some(Arc::new(skeleton)), note)
    }

    fn has(&self, tag: &str) -> bool {
        self.curves.contains_key(tag) || self.points.contains_key(tag)
    }

    fn tags(&self) -> impl Iterator<Item = &String> {
        self.curves.keys().chain(self.points.keys())
    }

    fn places<'a>(&'a self, tags: &[&String]) -> SkeletonIndex<'a> {
        let mut items = Vec::new();
        for curve in tags.iter().filter_map(|tag| self.curves.get(*tag)).flatten() {
            let length = distance(&curve[0], &curve[curve.len() - 1]);
            // A curved edge extends beyond the box of its nodes.
            let margin = length * if curve.len() > 2 { 0.2 } else { ON_CURVE };
            items.push((
                BoundingBox::of(curve.iter().copied()).grown(margin),
                SearchItem::Curve(curve),
            ));
        }
        for &point in tags.iter().filter_map(|tag| self.points.get(*tag)).flatten() {
            let bounds = BoundingBox::of([point].into_iter()).grown(AT_POINT * self.size);
            items.push((bounds, SearchItem::Point(point)));
        }
        let nodes = self.curves.values().flatten().next().map_or(2, Vec::len);
        let line = Lagrange::continuous(Cell::Interval, nodes - 1).ok();
        SkeletonIndex { tree: BoundingTree::new(items), line, size: self.size }
    }
}

impl SkeletonIndex<'_> {
    /// Returns a single point of a mesh with coordinates of the given size.
    pub fn at(point: [f64; 3], size: f64) -> Self {
        let bounds = BoundingBox::of([point].into_iter()).grown(AT_POINT * size);
        Self { tree: BoundingTree::new(vec![(bounds, SearchItem::Point(point))]), line: None, size }
    }

    /// Returns whether some curve or point may lie in the bounding box of some points.
    pub fn may_be_near(&self, points: impl Iterator<Item = [f64; 3]>) -> bool {
        let bounds = BoundingBox::of(points);
        let size = distance(&bounds.lower, &bounds.upper);
        self.tree.find(&bounds.grown(0.2 * size), &mut |_| true).is_some()
    }

    /// Returns whether a point lies on one of the curves or at one of the points.
    pub fn hold(&self, x: &[f64; 3]) -> bool {
        let rounding = AT_POINT * self.size;
        let bounds = BoundingBox::of([*x].into_iter()).grown(rounding);
        let holds = |item: &SearchItem<'_>| match item {
            SearchItem::Point(point) => distance(point, x) <= rounding,
            SearchItem::Curve(curve) => {
                let length = distance(&curve[0], &curve[curve.len() - 1]);
                self.gap(curve, x) <= ON_CURVE * length + rounding
            }
        };
        self.tree.find(&bounds, &mut |item| holds(item)).is_some()
    }

    /// Returns the distance of a point from an edge, by the Gauss–Newton method from its projection on the chord.
    fn gap(&self, curve: &EdgeCurve, x: &[f64; 3]) -> f64 {
        let Some(line) = self.line else { return f64::INFINITY };
        let (a, b) = (curve[0], curve[curve.len() - 1]);
        let mut s = along(&[0, 1, 2].map(|c| b[c] - a[c]), &[0, 1, 2].map(|c| x[c] - a[c]));
        for _ in 0..STEPS {
            s = s.clamp(0.0, 1.0);
            let table = tabulate(line, &[[s, 0.0, 0.0]]);
            let (mut place, mut tangent) = ([0.0; 3], [0.0; 3]);
            for (i, node) in curve.iter().enumerate() {
                for c in 0..3 {
                    place[c] += table.value(0, i) * node[c];
                    tangent[c] += table.gradient(0, i)[0] * node[c];
                }
            }
            let step = along(&tangent, &[0, 1, 2].map(|c| x[c] - place[c]));
            if step.abs() <= 1e-14 || curve.len() == 2 || (s + step).clamp(0.0, 1.0) == s {
                return distance(&place, x);
            }
            s += step;
        }
        f64::INFINITY
    }
}

/// Returns (a · b) / (a · a).
fn along(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let dot = |b: &[f64; 3]| -> f64 { (0..3).map(|c| a[c] * b[c]).sum() };
    dot(b) / dot(a)
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|c| (a[c] - b[c]).powi(2)).sum::<f64>().sqrt()
}

fn sorted([a, b]: [u32; 2]) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

/// Returns the curves of all tagged edges that belong to a cell.
fn edges_of_cells(
    shape: &CellShape,
    parts: &MeshData,
    topology: &Topology,
) -> HashMap<[u32; 2], EdgeCurve> {
    let mut wanted: HashMap<[u32; 2], Option<EdgeCurve>> = HashMap::new();
    let mut near = vec![false; topology.n_vertices()];
    for edge in parts.edges.values().flatten() {
        wanted.insert(sorted(*edge), None);
        for &end in edge {
            if let Some(near) = near.get_mut(end as usize) {
                *near = true;
            }
        }
    }
    if wanted.is_empty() {
        return HashMap::new();
    }
    let locals = shape.cell.entities(1);
    let on_edge: Vec<Vec<usize>> = locals.iter().map(|edge| nodes_on(shape, edge)).collect();
    for (cell, nodes) in parts.nodes.chunks_exact(shape.nodes).enumerate() {
        let vertices = topology.vertices(cell);
        for (edge, own) in locals.iter().zip(&on_edge) {
            let ends = [vertices[edge[0]], vertices[edge[1]]];
            if !ends.iter().all(|&end| near[end as usize]) {
                continue;
            }
            if let Some(curve @ None) = wanted.get_mut(&sorted(ends)) {
                *curve = Some(own.iter().map(|&i| parts.points[nodes[i] as usize]).collect());
            }
        }
    }
    wanted.into_iter().filter_map(|(edge, curve)| Some((edge, curve?))).collect()
}

/// Returns the geometry nodes of a local edge, from its first vertex to its second.
fn nodes_on(shape: &CellShape, edge: &[usize]) -> Vec<usize> {
    let [a, b] = [edge[0], edge[1]].map(|vertex| shape.cell.vertex(vertex));
    let direction = [0, 1, 2].map(|c| b[c] - a[c]);
    let from = |x: &[f64; 3]| [0, 1, 2].map(|c| x[c] - a[c]);
    let mut on: Vec<(f64, usize)> = Vec::new();
    for (i, x) in shape.coordinates.iter().enumerate() {
        let s = along(&direction, &from(x));
        if distance(&from(x), &direction.map(|d| s * d)) < 1e-9 {
            on.push((s, i));
        }
    }
    on.sort_by(|one, other| one.0.total_cmp(&other.0));
    on.into_iter().map(|(_, i)| i).collect()
}

impl Mesh {
    /// Returns the curve tags of a three-dimensional mesh, with the number of edges of each.
    pub fn curve_tags(&self) -> impl Iterator<Item = (&String, usize)> {
        let curves = self.skeleton.iter().flat_map(|skeleton| &skeleton.curves);
        curves.map(|(tag, curves)| (tag, curves.len()))
    }

    /// Returns the point tags, with the number of points of each.
    pub fn point_tags(&self) -> impl Iterator<Item = (&String, usize)> {
        let points = self.skeleton.iter().flat_map(|skeleton| &skeleton.points);
        points.map(|(tag, points)| (tag, points.len()))
    }

    /// Returns all tags that an essential boundary condition can name.
    pub(super) fn condition_tags(&self) -> impl Iterator<Item = &String> {
        let skeleton = self.skeleton.iter().flat_map(|skeleton| skeleton.tags());
        self.facet_tags.keys().chain(skeleton)
    }

    /// Returns whether a tag marks curves or points but no facets.
    pub(crate) fn is_below_sides(&self, tag: &str) -> bool {
        !self.facet_tags.contains_key(tag)
            && self.skeleton.as_ref().is_some_and(|skeleton| skeleton.has(tag))
    }

    /// Returns the curves and points of those tags that mark no facets; `None` if there are none.
    pub fn places_under(&self, tags: &[String]) -> Option<SkeletonIndex<'_>> {
        let below: Vec<&String> = tags.iter().filter(|tag| self.is_below_sides(tag)).collect();
        let skeleton = self.skeleton.as_ref().filter(|_| !below.is_empty())?;
        Some(skeleton.places(&below))
    }
}
