//! Named node sets as tags. A set tags the facets whose vertices it contains; sets without such facets tag edges (in
//! three dimensions) and points.
//!
//! The nodes of a surface may also contain all vertices of an interior facet, at a corner. Interior facets therefore
//! count only if the set has no boundary facets: then it is an interface.

use super::contents::{Contents, ElementBlock, ElementKind};
use crate::mesh::{Cell, MeshError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A set of node numbers.
#[derive(Debug)]
pub(super) struct NodeSet {
    pub(super) name: String,
    pub(super) nodes: Vec<u64>,
}

/// A facet as ascending vertices, padded with `u64::MAX`.
type FacetKey = [u64; 4];

/// Adds the tagged facets, or edges and points, as blocks.
pub(super) fn tag(contents: &mut Contents, sets: &[NodeSet]) -> Result<(), MeshError> {
    let dim = contents.dim();
    if dim == 0 || sets.is_empty() {
        return Ok(());
    }
    // The sets of each node, ascending.
    let mut of: HashMap<u64, Vec<u32>> = HashMap::new();
    for (index, set) in (0..).zip(sets) {
        for &node in &set.nodes {
            let own = of.entry(node).or_default();
            if own.last() != Some(&index) {
                own.push(index);
            }
        }
    }
    let found = entities(contents, dim - 1, &of)?;
    // Facets of one cell first, then those between two.
    let mut members: Vec<[Vec<FacetKey>; 2]> = vec![Default::default(); sets.len()];
    for (facet, (cells, own)) in found {
        for set in own {
            members[set as usize][usize::from(cells > 1)].push(facet);
        }
    }
    let mut below = HashSet::new();
    for ((index, set), [outer, inner]) in (0..).zip(sets).zip(members) {
        let mut facets = if outer.is_empty() { inner } else { outer };
        facets.sort_unstable();
        if facets.is_empty() {
            below.insert(index);
        }
        for vertices in 1..=4 {
            let some: Vec<FacetKey> =
                facets.iter().copied().filter(|f| count(f) == vertices).collect();
            if !some.is_empty() {
                contents.blocks.push(block(&set.name, vertices, &some));
            }
        }
    }
    of.values_mut().for_each(|own| own.retain(|set| below.contains(set)));
    of.retain(|_, own| !own.is_empty());
    tag_below(contents, sets, &of)
}

/// Adds edges and points for sets without facets.
fn tag_below(
    contents: &mut Contents,
    sets: &[NodeSet],
    of: &HashMap<u64, Vec<u32>>,
) -> Result<(), MeshError> {
    if contents.dim() == 3 && !of.is_empty() {
        let mut edges: BTreeMap<u32, Vec<FacetKey>> = BTreeMap::new();
        for (edge, (_, own)) in entities(contents, 1, of)? {
            own.into_iter().for_each(|set| edges.entry(set).or_default().push(edge));
        }
        for (set, mut edges) in edges {
            edges.sort_unstable();
            contents.blocks.push(block(&sets[set as usize].name, 2, &edges));
        }
    }
    let mut points: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (&node, own) in of {
        own.iter().for_each(|&set| points.entry(set).or_default().push(node));
    }
    for (set, mut nodes) in points {
        nodes.sort_unstable();
        contents.blocks.push(ElementBlock {
            kind: ElementKind::Point,
            tags: BTreeSet::from([sets[set as usize].name.clone()]),
            numbers: vec![0; nodes.len()],
            nodes,
        });
    }
    Ok(())
}

/// Facets or edges of cells with all vertices in a set: the number of cells, and the sets.
fn entities(
    contents: &Contents,
    dim: usize,
    of: &HashMap<u64, Vec<u32>>,
) -> Result<HashMap<FacetKey, (u32, Vec<u32>)>, MeshError> {
    let mut found: HashMap<FacetKey, (u32, Vec<u32>)> = HashMap::new();
    for block in contents.blocks_of(contents.dim()) {
        let (ElementKind::Cell(cell, _) | ElementKind::Serendipity(cell)) = block.kind else {
            continue;
        };
        let vertices = block.kind.vertices()?;
        for (_, nodes) in block.elements() {
            for facet in cell.entities(dim) {
                let all = facet.iter().map(|&v| nodes[vertices[v]]);
                let own = common(all.clone().map(|node| of.get(&node)));
                if !own.is_empty() {
                    let mut key = [u64::MAX; 4];
                    key.iter_mut().zip(all).for_each(|(slot, node)| *slot = node);
                    key.sort_unstable();
                    found.entry(key).or_insert((0, own)).0 += 1;
                }
            }
        }
    }
    Ok(found)
}

/// Returns the intersection of ascending lists.
fn common<'a>(mut lists: impl Iterator<Item = Option<&'a Vec<u32>>>) -> Vec<u32> {
    let Some(Some(first)) = lists.next() else { return Vec::new() };
    let mut all = first.clone();
    for list in lists {
        let Some(list) = list else { return Vec::new() };
        all.retain(|set| list.binary_search(set).is_ok());
    }
    all
}

fn count(facet: &FacetKey) -> usize {
    facet.iter().filter(|&&node| node != u64::MAX).count()
}

/// Facets with `vertices` vertices as a block, in any vertex order.
fn block(name: &str, vertices: usize, facets: &[FacetKey]) -> ElementBlock {
    let cells = [Cell::Interval, Cell::Triangle, Cell::Quadrilateral];
    let cell = vertices.checked_sub(2).map(|at| ElementKind::Cell(cells[at], 1));
    ElementBlock {
        kind: cell.unwrap_or(ElementKind::Point),
        tags: BTreeSet::from([name.to_owned()]),
        numbers: vec![0; facets.len()],
        nodes: facets.iter().flat_map(|facet| &facet[..vertices]).copied().collect(),
    }
}
