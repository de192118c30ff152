//! From [`Parts`] to a [`Mesh`]: check, orient, sort, number, find the tagged facets.

use super::orient::{self, IDENTITY, Renumbering};
use super::{
    Arrange, Cell, CellName, Facet, Mesh, MeshError, Parts, Topology, index, measure, order, unfold,
};
use kernels_gen::element::Lagrange;
use std::collections::{BTreeMap, HashMap};

/// The highest order of geometry that a mesh may have.
pub(crate) const MAX_ORDER: usize = 12;

/// Which sign the Jacobian determinants should have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign<'a> {
    /// Positive, as the usual numbering of vertices has it.
    Positive,
    /// Negative in the cells marked here.
    Negative(&'a [bool]),
}

pub(crate) fn assemble(
    cell: Cell,
    geometry_order: usize,
    mut parts: Parts,
    arrange: Arrange,
    sign: Sign<'_>,
) -> Result<Mesh, MeshError> {
    let shape = Shape::new(cell, geometry_order)?;
    check(&shape, &parts)?;
    let mut notes = std::mem::take(&mut parts.notes);
    if matches!(sign, Sign::Positive)
        && let Some(done) = unfold::unfold(&shape, &mut parts)?
    {
        notes.push(format!(
            "{} curved cells folded over; {} geometry nodes inside the domain were moved",
            done.cells, done.nodes
        ));
    }
    measure::check_cells(&shape, &parts, sign)?;
    if arrange == Arrange::Sorted {
        orient_cells(&shape, &mut parts)?;
        sort_cells(&shape, &mut parts);
    }
    let n_vertices = number_points(&shape, &mut parts)?;
    if !cell.is_tensor() {
        ascending_vertices(&shape, &mut parts);
    }
    let topology = Topology::new(cell, n_vertices, shape.all_vertices(&parts.nodes))?;
    check_branching(&shape, &parts, &topology)?;
    let facet_tags = find_facets(&parts, &topology)?;
    Ok(Mesh {
        cell,
        order: geometry_order,
        nodes_per_cell: shape.nodes,
        points: parts.points,
        nodes: parts.nodes,
        facet_tags,
        cell_tags: parts.cells,
        notes,
        topology,
    })
}

/// What all cells of a mesh have in common.
pub(crate) struct Shape {
    pub(crate) cell: Cell,
    pub(crate) element: Lagrange,
    /// Geometry nodes a cell.
    pub(crate) nodes: usize,
    /// Which geometry node each vertex is.
    pub(crate) vertex_nodes: Vec<usize>,
    /// The geometry nodes on each facet, its edges and vertices included.
    pub(crate) facet_nodes: Vec<Vec<usize>>,
    /// Reference coordinates of the geometry nodes.
    pub(crate) coordinates: Vec<[f64; 3]>,
}

impl Shape {
    pub(crate) fn new(cell: Cell, order: usize) -> Result<Shape, MeshError> {
        let unsupported = |expected| MeshError::Unsupported { cell, order, expected };
        if !Cell::ALL.contains(&cell) {
            return Err(unsupported("cells are tri, quad, tet or hex"));
        }
        if order == 0 || order > MAX_ORDER {
            return Err(unsupported("orders are 1 to 12, on simplices 1 to 8"));
        }
        let element = Lagrange::continuous(cell, order)
            .map_err(|_| unsupported("orders are 1 to 12, on simplices 1 to 8"))?;
        let coordinates = element.points();
        let vertex_nodes =
            (0..cell.vertex_count()).map(|v| nearest(&coordinates, cell.vertex(v))).collect();
        let facet_nodes = facet_nodes(cell, element);
        let nodes = coordinates.len();
        Ok(Shape { cell, element, nodes, vertex_nodes, facet_nodes, coordinates })
    }

    /// The points of a lattice with so many steps a direction.
    pub(crate) fn lattice_points(&self, steps: usize) -> Vec<[f64; 3]> {
        let dim = self.cell.dim();
        let n = steps + 1;
        let mut points = Vec::new();
        for i in 0..n.pow(dim as u32) {
            let place = [i % n, i / n % n, i / n / n % n];
            if self.cell.is_tensor() || place.iter().sum::<usize>() <= steps {
                points.push(place.map(|p| p as f64 / steps as f64));
            }
        }
        points
    }

    /// The vertices of a cell, given its nodes.
    pub(super) fn vertices<'a>(&'a self, nodes: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        self.vertex_nodes.iter().map(|&i| nodes[i])
    }

    pub(crate) fn all_vertices(&self, nodes: &[u32]) -> Vec<u32> {
        nodes.chunks_exact(self.nodes).flat_map(|cell| self.vertices(cell)).collect()
    }

    /// The mean of a cell's vertices.
    pub(super) fn centre(&self, points: &[[f64; 3]], nodes: &[u32]) -> [f64; 3] {
        let mut centre = [0.0; 3];
        for vertex in self.vertices(nodes) {
            for (sum, x) in centre.iter_mut().zip(points[vertex as usize]) {
                *sum += x;
            }
        }
        centre.map(|sum| sum / self.vertex_nodes.len() as f64)
    }

    /// How a message names a cell.
    pub(super) fn name(&self, parts: &Parts, cell: usize) -> CellName {
        let holds = |cells: &[u32]| cells.contains(&(cell as u32));
        CellName {
            number: parts.labels.get(cell).copied().unwrap_or(cell as u64),
            labelled: !parts.labels.is_empty(),
            tags: parts.cells.iter().filter(|t| holds(t.1)).map(|t| t.0.clone()).collect(),
            centre: self
                .centre(&parts.points, &parts.nodes[cell * self.nodes..(cell + 1) * self.nodes]),
        }
    }

    /// New local node → old local node when the vertices are renumbered.
    ///
    /// A symmetry of the reference cell maps its node set onto itself; the new node at ξ is the
    /// old node at Σ_v λ_v(ξ) X_renumbering(v), with λ the (multi)linear functions of the vertices.
    pub(super) fn renumbered_nodes(&self, renumbering: &Renumbering) -> Vec<usize> {
        let cell = self.cell;
        self.coordinates
            .iter()
            .map(|&at| {
                let mut image = [0.0; 3];
                for v in 0..cell.vertex_count() {
                    let (weight, vertex) =
                        (vertex_function(cell, v, at), cell.vertex(renumbering[v] as usize));
                    for c in 0..3 {
                        image[c] += weight * vertex[c];
                    }
                }
                nearest(&self.coordinates, image)
            })
            .collect()
    }
}

fn facet_nodes(cell: Cell, element: Lagrange) -> Vec<Vec<usize>> {
    let nodes = element.nodes();
    cell.facets()
        .iter()
        .map(|facet| {
            let inside = |&i: &usize| {
                cell.entities(nodes[i].dim)[nodes[i].entity].iter().all(|v| facet.contains(v))
            };
            (0..nodes.len()).filter(inside).collect()
        })
        .collect()
}

/// The (multi)linear function that is 1 at a vertex and 0 at the others.
pub(crate) fn vertex_function(cell: Cell, vertex: usize, at: [f64; 3]) -> f64 {
    let corner = cell.vertex(vertex);
    if cell.is_tensor() {
        (0..cell.dim()).map(|a| if corner[a] > 0.5 { at[a] } else { 1.0 - at[a] }).product()
    } else if vertex == 0 {
        1.0 - at.iter().sum::<f64>()
    } else {
        at[vertex - 1]
    }
}

/// The point nearest to `to`.
fn nearest(points: &[[f64; 3]], to: [f64; 3]) -> usize {
    let distance = |p: &[f64; 3]| -> f64 { (0..3).map(|c| (p[c] - to[c]).powi(2)).sum() };
    (0..points.len())
        .min_by(|&a, &b| distance(&points[a]).total_cmp(&distance(&points[b])))
        .unwrap_or(0)
}

fn check(shape: &Shape, parts: &Parts) -> Result<(), MeshError> {
    if parts.nodes.is_empty() {
        return Err(MeshError::Empty);
    }
    if !parts.nodes.len().is_multiple_of(shape.nodes) {
        return Err(MeshError::Connectivity { found: parts.nodes.len(), per_cell: shape.nodes });
    }
    index(parts.points.len(), "points")?;
    index(parts.nodes.len(), "cell nodes")?;
    let (n_points, n_cells) = (parts.points.len(), parts.nodes.len() / shape.nodes);
    for (i, &node) in parts.nodes.iter().enumerate() {
        if node as usize >= n_points {
            let place = format!("cell {}", i / shape.nodes);
            let (what, count) = ("point", n_points);
            return Err(MeshError::OutOfRange { place, what, index: node, count });
        }
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
    check_points(shape, parts)?;
    check_repeated(shape, parts)
}

fn check_points(shape: &Shape, parts: &Parts) -> Result<(), MeshError> {
    for &node in &parts.nodes {
        let (point, at) = (node as usize, parts.points[node as usize]);
        if at.iter().any(|x| !x.is_finite()) {
            return Err(MeshError::Point { point, at, problem: "is not finite" });
        }
        if shape.cell.dim() == 2 && at[2] != 0.0 {
            let problem = "lies outside the plane z = 0 of a two-dimensional mesh";
            return Err(MeshError::Point { point, at, problem });
        }
    }
    Ok(())
}

fn check_repeated(shape: &Shape, parts: &Parts) -> Result<(), MeshError> {
    for (cell, nodes) in parts.nodes.chunks_exact(shape.nodes).enumerate() {
        let mut vertices = [u32::MAX; 8];
        for (slot, vertex) in vertices.iter_mut().zip(shape.vertices(nodes)) {
            *slot = vertex;
        }
        vertices.sort_unstable();
        let twice = vertices.windows(2).find(|w| w[0] == w[1] && w[0] != u32::MAX);
        if let Some(twice) = twice {
            let cell = shape.name(parts, cell);
            return Err(MeshError::Repeated { cell, point: twice[0] });
        }
    }
    Ok(())
}

fn orient_cells(shape: &Shape, parts: &mut Parts) -> Result<(), MeshError> {
    if !shape.cell.is_tensor() {
        return Ok(());
    }
    let vertices = shape.all_vertices(&parts.nodes);
    if let Some(all) = orient::orient(shape.cell, parts.points.len(), &vertices)? {
        renumber(shape, &mut parts.nodes, |cell, _| all[cell]);
    }
    Ok(())
}

/// Renumbers each cell as `of(cell number, its vertices)` says.
pub(crate) fn renumber(
    shape: &Shape,
    nodes: &mut [u32],
    of: impl Fn(usize, &[u32]) -> Renumbering,
) {
    let mut known: HashMap<Renumbering, Vec<usize>> = HashMap::new();
    let (mut old, mut vertices) = (Vec::new(), Vec::new());
    for (cell, nodes) in nodes.chunks_exact_mut(shape.nodes).enumerate() {
        vertices.clear();
        vertices.extend(shape.vertices(nodes));
        let renumbering = of(cell, &vertices);
        if renumbering == IDENTITY {
            continue;
        }
        let map = known.entry(renumbering).or_insert_with_key(|key| shape.renumbered_nodes(key));
        old.clear();
        old.extend_from_slice(nodes);
        for (new, &from) in nodes.iter_mut().zip(map.iter()) {
            *new = old[from];
        }
    }
}

fn sort_cells(shape: &Shape, parts: &mut Parts) {
    let centres: Vec<[f64; 3]> = parts
        .nodes
        .chunks_exact(shape.nodes)
        .map(|nodes| shape.centre(&parts.points, nodes))
        .collect();
    let order = order::hilbert_order(shape.cell.dim(), &centres);
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
fn number_points(shape: &Shape, parts: &mut Parts) -> Result<usize, MeshError> {
    let mut number = vec![u32::MAX; parts.points.len()];
    let mut points = Vec::with_capacity(parts.points.len());
    let mut touch = |node: u32| {
        let slot = &mut number[node as usize];
        if *slot == u32::MAX {
            *slot = points.len() as u32;
            points.push(parts.points[node as usize]);
        }
        points.len()
    };
    let mut n_vertices = 0;
    for nodes in parts.nodes.chunks_exact(shape.nodes) {
        for vertex in shape.vertices(nodes) {
            n_vertices = touch(vertex);
        }
    }
    for &node in &parts.nodes {
        touch(node);
    }
    for node in &mut parts.nodes {
        *node = number[*node as usize];
    }
    renumber_facets(parts, &number)?;
    parts.points = points;
    Ok(n_vertices)
}

fn renumber_facets(parts: &mut Parts, number: &[u32]) -> Result<(), MeshError> {
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
fn ascending_vertices(shape: &Shape, parts: &mut Parts) {
    renumber(shape, &mut parts.nodes, |_, vertices| {
        let mut result = IDENTITY;
        result[..vertices.len()].sort_by_key(|&v| vertices[v as usize]);
        result
    });
}

fn check_branching(shape: &Shape, parts: &Parts, topology: &Topology) -> Result<(), MeshError> {
    let facets = topology.facets();
    for facet in 0..facets.len() {
        let count = facets.n_cells(facet);
        if count > 2 {
            let cell = shape.name(parts, facets.first_cell(facet).0);
            return Err(MeshError::Branching { cell, count });
        }
    }
    Ok(())
}

/// Finds the cell and local number of every tagged facet.
fn find_facets(
    parts: &Parts,
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
