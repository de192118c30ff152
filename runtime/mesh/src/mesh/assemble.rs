//! Conversion of [`MeshData`] to a [`Mesh`]: checks, orientation, order, numbering, tagged facets.

use super::measure::JacobianSign;
use super::orient::{self, IDENTITY};
use super::shape::CellShape;
use super::skeleton::Skeleton;
use super::source_order::{NOWHERE, SourceNumbering};
use super::{
    Cell, CellOrdering, Facet, Mesh, MeshData, MeshError, SourceOrder, Topology, cell_orientation,
    conformity, first_places, index, measure, order, seams, sides, untangle,
};
use crate::support::parallel::*;
use crate::support::timers::{in_step, step};
use std::collections::{BTreeMap, HashMap};

/// Smallest number of entries per thread.
const GRAIN: usize = 1 << 12;

/// Knowledge about the conformity of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conformity {
    /// Cells meet in whole facets by construction.
    Conforming,
    /// In addition, cells agree on the direction of edges and faces.
    Oriented,
    /// Unknown: it is checked.
    Unknown,
}

/// Builds a mesh from its parts: checks, orients and sorts the cells.
pub fn assemble(
    cell: Cell,
    geometry_order: usize,
    mut parts: MeshData,
    arrange: CellOrdering,
    sign: JacobianSign<'_>,
    joined: Conformity,
) -> Result<Mesh, MeshError> {
    let shape = CellShape::new(cell, geometry_order)?;
    check(&shape, &parts)?;
    let mut notes = std::mem::take(&mut parts.notes);
    // Generated meshes have an order of their own only if they state it.
    if parts.places.is_none() && joined == Conformity::Unknown {
        parts.places =
            Some(SourceNumbering::given(parts.nodes.len() / shape.nodes, parts.points.len()));
    }
    if joined == Conformity::Unknown {
        let turned = cell_orientation::turn_negative(&shape, &parts.points, &mut parts.nodes);
        notes.extend(cell_orientation::note(turned, parts.nodes.len() / shape.nodes));
    }
    if matches!(sign, JacobianSign::Positive)
        && let Some(done) = untangle::unfold(&shape, &mut parts)?
    {
        notes.push(format!(
            "{} curved cells folded over; {} geometry nodes inside the domain were moved",
            done.cells, done.nodes
        ));
    }
    let affine = in_step("inverted cells", || measure::check_cells(&shape, &parts, sign))?;
    let ordering = step("cell order");
    if arrange == CellOrdering::Sorted {
        orient_cells(&shape, &mut parts)?;
        sort_cells(&shape, &mut parts);
    }
    let n_vertices = number_points(&shape, &mut parts)?;
    if !cell.is_tensor() && joined != Conformity::Oriented {
        ascending_vertices(&shape, &mut parts);
    }
    drop(ordering);
    let all_vertices = shape.all_vertices(&parts.nodes);
    let topology = in_step("edges and faces", || Topology::new(cell, n_vertices, all_vertices))?;
    let checking = step("joined cells");
    check_branching(&shape, &parts, &topology)?;
    // Generators and coarsening join cells side by side.
    let tolerance = match joined {
        Conformity::Conforming => None,
        Conformity::Oriented | Conformity::Unknown => {
            sides::check_sides(&shape, &parts, &topology)?;
            seams::tolerance(&topology, &parts.points)
        }
    };
    if let Some(tolerance) = tolerance {
        if joined == Conformity::Unknown {
            conformity::check_apart(&shape, &parts, &topology, tolerance)?;
        }
        notes.extend(seams::note(&topology, &parts.points, tolerance));
    }
    drop(checking);
    let _tagging = step("tags");
    let facet_tags = find_facets(&parts, &topology)?;
    let (skeleton, lost) = Skeleton::of(&shape, &parts, &topology);
    notes.extend(lost);
    Ok(Mesh {
        cell,
        order: geometry_order,
        nodes_per_cell: shape.nodes,
        points: parts.points,
        nodes: parts.nodes,
        facet_tags,
        cell_tags: parts.cells,
        skeleton,
        notes,
        spheres: Vec::new(),
        topology,
        periodic: Vec::new(),
        joined: None,
        order_of_source: parts
            .places
            .map_or(SourceOrder::Native, |places| SourceOrder::Listed(Box::new(places))),
        equispaced: false,
        hanging: None,
        affine,
        beyond: Default::default(),
        plain: None,
        cut: None,
    })
}

fn check(shape: &CellShape, parts: &MeshData) -> Result<(), MeshError> {
    if parts.nodes.is_empty() {
        return Err(MeshError::Empty);
    }
    if !parts.nodes.len().is_multiple_of(shape.nodes) {
        return Err(MeshError::Connectivity { found: parts.nodes.len(), per_cell: shape.nodes });
    }
    index(parts.points.len(), "points")?;
    index(parts.nodes.len(), "cell nodes")?;
    let (n_points, n_cells) = (parts.points.len(), parts.nodes.len() / shape.nodes);
    let outside = |(i, &node): (usize, &u32)| (node as usize >= n_points).then_some((i, node));
    if let Some((i, index)) = parts.nodes.par_iter().enumerate().first(outside) {
        let place = format!("cell {}", i / shape.nodes);
        return Err(MeshError::OutOfRange { place, what: "point", index, count: n_points });
    }
    for (tag, cells) in &parts.cells {
        if let Some(&index) = cells.iter().find(|&&c| c as usize >= n_cells) {
            let place = format!("the cell tag \"{tag}\"");
            return Err(MeshError::OutOfRange { place, what: "cell", index, count: n_cells });
        }
    }
    for (tag, facets) in &parts.facets {
        let points = facets.iter().flatten().copied();
        if let Some(index) = points.filter(|&p| p != u32::MAX).find(|&p| p as usize >= n_points) {
            let place = format!("the boundary tag \"{tag}\"");
            return Err(MeshError::OutOfRange { place, what: "point", index, count: n_points });
        }
    }
    let below = parts.edges.iter().map(|(tag, edges)| (tag, edges.as_flattened()));
    let below = below.chain(parts.vertices.iter().map(|(tag, vertices)| (tag, &vertices[..])));
    for (tag, points) in below {
        if let Some(&index) = points.iter().find(|&&p| p as usize >= n_points) {
            let place = format!("the tag \"{tag}\"");
            return Err(MeshError::OutOfRange { place, what: "point", index, count: n_points });
        }
    }
    check_points(shape, parts)?;
    check_repeated(shape, parts)
}

fn check_points(shape: &CellShape, parts: &MeshData) -> Result<(), MeshError> {
    let dim = shape.cell.dim();
    let bad = |&node: &u32| {
        let at = parts.points[node as usize];
        let problem = match at.iter().any(|x| !x.is_finite()) {
            true => "is not finite",
            false if dim == 2 && at[2] != 0.0 => {
                "lies outside the plane z = 0 of a two-dimensional mesh"
            }
            false if dim == 1 && at[1..] != [0.0; 2] => {
                "lies outside the axis y = z = 0 of a one-dimensional mesh"
            }
            false => return None,
        };
        Some(MeshError::Point { point: node as usize, at, problem })
    };
    parts.nodes.par_iter().first(bad).map_or(Ok(()), Err)
}

fn check_repeated(shape: &CellShape, parts: &MeshData) -> Result<(), MeshError> {
    let repeated = |(cell, nodes): (usize, &[u32])| {
        let mut vertices = [u32::MAX; 8];
        for (slot, vertex) in vertices.iter_mut().zip(shape.vertices(nodes)) {
            *slot = vertex;
        }
        vertices.sort_unstable();
        let twice = vertices.windows(2).find(|w| w[0] == w[1] && w[0] != u32::MAX)?;
        Some((cell, twice[0]))
    };
    let cells = parts.nodes.par_chunks_exact(shape.nodes).enumerate();
    match cells.first(repeated) {
        None => Ok(()),
        Some((cell, point)) => Err(MeshError::Repeated { cell: shape.name(parts, cell), point }),
    }
}

fn orient_cells(shape: &CellShape, parts: &mut MeshData) -> Result<(), MeshError> {
    if !shape.cell.is_tensor() {
        return Ok(());
    }
    let vertices = shape.all_vertices(&parts.nodes);
    if let Some(all) = orient::orient(shape.cell, parts.points.len(), &vertices)? {
        shape.renumber(&mut parts.nodes, |cell, _| all[cell]);
    }
    Ok(())
}

fn sort_cells(shape: &CellShape, parts: &mut MeshData) {
    let centres: Vec<[f64; 3]> = parts
        .nodes
        .chunks_exact(shape.nodes)
        .map(|nodes| shape.centre(&parts.points, nodes))
        .collect();
    let order = order::hilbert_order(shape.cell.dim(), &centres);
    let order = order::chain_order(shape.cell, &shape.all_vertices(&parts.nodes), order);
    let mut nodes = Vec::with_capacity(parts.nodes.len());
    let mut new_number = vec![0u32; order.len()];
    for (new, &old) in order.iter().enumerate() {
        let start = old as usize * shape.nodes;
        nodes.extend_from_slice(&parts.nodes[start..start + shape.nodes]);
        new_number[old as usize] = new as u32;
    }
    parts.nodes = nodes;
    if !parts.labels.is_empty() {
        parts.labels = order.iter().map(|&old| parts.labels[old as usize]).collect();
    }
    if let Some(places) = &mut parts.places {
        places.cells = order.iter().map(|&old| places.cells[old as usize]).collect();
    }
    for cells in parts.cells.values_mut() {
        for cell in cells.iter_mut() {
            *cell = new_number[*cell as usize];
        }
        cells.sort_unstable();
        cells.dedup();
    }
}

/// Numbers the points by first touch, vertices before other nodes, and drops unused ones.
/// Returns the number of vertices.
fn number_points(shape: &CellShape, parts: &mut MeshData) -> Result<usize, MeshError> {
    let (each, n_points) = (shape.nodes, parts.points.len());
    let (n_cells, corners) = (parts.nodes.len() / each, shape.cell.vertex_count());
    let vertex = |cell: usize, local| Some(shape.vertex(&parts.nodes[cell * each..], local));
    let (mut number, firsts) = first_places::numbers(n_points, [n_cells, corners], vertex);
    let point = |node: Option<u32>| node.map_or([0.0; 3], |node| parts.points[node as usize]);
    let mut points = firsts.listed(1, |place, own| {
        own[0] = point(vertex(place / corners, place % corners));
    });
    let n_vertices = points.len();
    if each > corners {
        let other = |cell: usize, local| {
            let node = parts.nodes[cell * each + local];
            Some(node).filter(|&node| number[node as usize] == NOWHERE)
        };
        let (others, firsts) = first_places::numbers(n_points, [n_cells, each], other);
        points.append(&mut firsts.listed(1, |place, own| {
            own[0] = point(other(place / each, place % each));
        }));
        let new = number.par_iter_mut().zip(&others).filter(|(_, other)| **other != NOWHERE);
        new.for_each(|(number, other)| *number = n_vertices as u32 + other);
    }
    parts.nodes.par_iter_mut().with_min_len(GRAIN).each(|node| *node = number[*node as usize]);
    renumber_facets(parts, &number)?;
    let edges = parts.edges.values_mut().flatten().flatten();
    for point in edges.chain(parts.vertices.values_mut().flatten()) {
        *point = number[*point as usize];
    }
    if !parts.point_labels.is_empty() {
        let mut labels = vec![0; points.len()];
        for (&new, &label) in number.iter().zip(&parts.point_labels) {
            if let Some(slot) = labels.get_mut(new as usize) {
                *slot = label;
            }
        }
        parts.point_labels = labels;
    }
    if let Some(places) = &mut parts.places {
        let mut moved = vec![NOWHERE; points.len()];
        for (&new, &place) in number.iter().zip(&places.points) {
            if let Some(slot) = moved.get_mut(new as usize) {
                *slot = place;
            }
        }
        places.points = moved;
    }
    parts.points = points;
    Ok(n_vertices)
}

fn renumber_facets(parts: &mut MeshData, number: &[u32]) -> Result<(), MeshError> {
    let points = &parts.points;
    let used =
        |facet: &[u32; 4]| facet.iter().all(|&p| p == u32::MAX || number[p as usize] != u32::MAX);
    for (tag, facets) in &mut parts.facets {
        let count = facets.len();
        if let Some(first) = facets.iter().find(|facet| !used(facet)) {
            return Err(MeshError::LostFacet {
                tag: tag.clone(),
                count,
                lost: facets.iter().filter(|facet| !used(facet)).count(),
                at: facet_centre(points, first),
            });
        }
        for facet in facets {
            for point in facet.iter_mut().filter(|p| **p != u32::MAX) {
                *point = number[*point as usize];
            }
            facet.sort_unstable();
        }
    }
    Ok(())
}

fn facet_centre(points: &[[f64; 3]], facet: &[u32; 4]) -> [f64; 3] {
    let vertices: Vec<u32> = facet.iter().copied().filter(|&p| p != u32::MAX).collect();
    let mean = |c: usize| {
        vertices.iter().map(|&p| points[p as usize][c]).sum::<f64>() / vertices.len() as f64
    };
    [mean(0), mean(1), mean(2)]
}

/// Sorts the vertices of each simplex, so that edges and faces ascend in all their cells.
fn ascending_vertices(shape: &CellShape, parts: &mut MeshData) {
    shape.renumber(&mut parts.nodes, |_, vertices| {
        let mut result = IDENTITY;
        result[..vertices.len()].sort_by_key(|&v| vertices[v as usize]);
        result
    });
}

fn check_branching(
    shape: &CellShape,
    parts: &MeshData,
    topology: &Topology,
) -> Result<(), MeshError> {
    let facets = topology.facets();
    let branching = |facet| (facets.n_cells(facet) > 2).then_some(facet);
    let all = (0..facets.len()).into_par_iter().with_min_len(GRAIN);
    all.first(branching).map_or(Ok(()), |facet| {
        let cell = shape.name(parts, facets.first_cell(facet).0);
        Err(MeshError::Branching { cell, count: facets.n_cells(facet) })
    })
}

/// Finds the cell and local number of every tagged facet.
fn find_facets(
    parts: &MeshData,
    topology: &Topology,
) -> Result<BTreeMap<String, Vec<Facet>>, MeshError> {
    let mut wanted: HashMap<[u32; 4], Option<Facet>> = HashMap::new();
    let mut near = vec![false; topology.n_vertices()];
    for facet in parts.facets.values().flatten() {
        wanted.insert(*facet, None);
        for &point in facet {
            if let Some(flag) = near.get_mut(point as usize) {
                *flag = true;
            }
        }
    }
    let facets = topology.facets();
    for entity in 0..facets.len() {
        let vertices = facets.vertices(entity);
        if vertices.iter().all(|&v| near[v as usize]) {
            let mut key = [u32::MAX; 4];
            key[..vertices.len()].copy_from_slice(vertices);
            key.sort_unstable();
            if let Some(found) = wanted.get_mut(&key) {
                let (cell, local) = facets.first_cell(entity);
                *found = Some(Facet { cell: cell as u32, local: local as u8 });
            }
        }
    }
    let mut tags = BTreeMap::new();
    for (tag, keys) in &parts.facets {
        let mut found: Vec<Facet> = keys.iter().filter_map(|key| wanted[key]).collect();
        if found.len() < keys.len() {
            let missing = keys.iter().find(|key| wanted[*key].is_none()).unwrap_or(&[u32::MAX; 4]);
            return Err(MeshError::LostFacet {
                tag: tag.clone(),
                count: keys.len(),
                lost: keys.len() - found.len(),
                at: facet_centre(&parts.points, missing),
            });
        }
        found.sort_unstable();
        found.dedup();
        tags.insert(tag.clone(), found);
    }
    Ok(tags)
}
