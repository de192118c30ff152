//! Conversion of file contents to a mesh: selects the cells, nodes and tags.

use super::contents::{Contents, ElementBlock, ElementKind};
use super::node_map::{DuplicateCells, NodeMap};
use super::source_order::CellElements;
use super::{ReadError, quads, serendipity};
use crate::mesh::assemble::{self, Conformity};
use crate::mesh::measure::JacobianSign;
use crate::mesh::shape::CellShape;
use crate::mesh::{Cell, CellOrdering, Mesh, MeshData};
use kernels_gen::element::{Lagrange, interpolation};
use std::collections::BTreeMap;

pub(super) fn convert(mut contents: Contents) -> Result<Mesh, ReadError> {
    let n_points = contents.points.len();
    serendipity::complete(&mut contents)?;
    let numbers = NodeMap::new(&contents.node_numbers);
    let (cell, order, mixed) = cells_of(&contents)?;
    let mut parts = match mixed {
        Some(mixed) => {
            let mut parts = quads::quadrilaterals(&contents, &numbers, n_points, order)?;
            parts.notes.push(format!(
                "the file mixes {mixed}; every quadrilateral was cut into four and every \
                 triangle into three quadrilaterals"
            ));
            parts
        }
        None => one_kind(&contents, &numbers, n_points, &CellShape::new(cell, order)?)?,
    };
    parts.notes.append(&mut contents.notes);
    if cell.dim() < 3 {
        flatten(&mut parts, cell.dim());
    }
    if cell.dim() == 1
        && parts.nodes.iter().any(|&node| parts.points[node as usize][1..] != [0.0; 2])
    {
        let found = format!("{} lines outside the x axis", parts.labels.len());
        return Err(ReadError::NoCells { found, advice: contents.no_cells.unwrap_or(".") });
    }
    let (sorted, positive) = (CellOrdering::Sorted, JacobianSign::Positive);
    let mut mesh = assemble::assemble(cell, order, parts, sorted, positive, Conformity::Unknown)?;
    mesh.equispaced = true;
    Ok(mesh)
}

/// Returns the cells, tags and nodes of a mesh of one kind of cell.
fn one_kind(
    contents: &Contents,
    numbers: &NodeMap,
    n_points: usize,
    shape: &CellShape,
) -> Result<MeshData, ReadError> {
    let cell = shape.cell;
    let mut elements = CellElements::new(contents, cell.dim());
    let (points, point_labels) = (contents.points.clone(), contents.node_numbers.clone());
    let mut parts = MeshData { points, point_labels, ..MeshData::default() };
    let mut seen = DuplicateCells::new(contents.repeats);
    for (at, block) in contents.blocks_of(cell.dim()).enumerate() {
        let mut members: Vec<u32> = Vec::with_capacity(block.numbers.len());
        for (i, (number, nodes)) in block.elements().enumerate() {
            let start = parts.nodes.len();
            for &node in nodes {
                parts.nodes.push(numbers.index(number, node)?);
            }
            let here = parts.labels.len() as u32;
            match seen.before(&parts.nodes[start..], here) {
                Some(known) => {
                    parts.nodes.truncate(start);
                    members.push(known);
                }
                None => {
                    parts.labels.push(number);
                    elements.push(at, i, number, 1);
                    members.push(here);
                }
            }
        }
        for tag in &block.tags {
            parts.cells.entry(tag.clone()).or_default().extend(&members);
        }
    }
    for block in contents.blocks_of(cell.dim() - 1).filter(|block| !block.tags.is_empty()) {
        let facets = facets(block, numbers)?;
        for tag in &block.tags {
            parts.facets.entry(tag.clone()).or_default().extend(&facets);
        }
    }
    tag_below(contents, numbers, &mut parts)?;
    if shape.element.degree() > 2 {
        move_nodes(shape, &mut parts);
    }
    let points = (0..parts.points.len() as u32).map(Some);
    parts.places = Some(elements.places(points, n_points));
    Ok(parts)
}

/// Returns the only kind of cell of the highest dimension; or quadrilaterals, with a description of the cells mixed
/// with them.
fn cells_of(contents: &Contents) -> Result<(Cell, usize, Option<String>), ReadError> {
    let mut counts: BTreeMap<ElementKind, usize> = BTreeMap::new();
    for block in contents.blocks.iter().filter(|block| !block.numbers.is_empty()) {
        *counts.entry(block.kind).or_default() += block.numbers.len();
    }
    let list = |counts: &BTreeMap<ElementKind, usize>| {
        let all: Vec<String> =
            counts.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        if all.is_empty() { "no elements".to_owned() } else { all.join(", ") }
    };
    let dim = counts.keys().map(|kind| kind.dim()).max().unwrap_or(0);
    if dim == 0 {
        let advice = contents.no_cells.unwrap_or(".");
        let found = list(&counts);
        return Err(ReadError::NoCells { found, advice });
    }
    counts.retain(|kind, _| kind.dim() == dim);
    let kinds: Vec<ElementKind> = counts.keys().copied().collect();
    match kinds[..] {
        [ElementKind::Cell(cell, order)] => Ok((cell, order, None)),
        [
            ElementKind::Cell(Cell::Triangle, order),
            ElementKind::Cell(Cell::Quadrilateral, other),
        ] if order == other => Ok((Cell::Quadrilateral, order, Some(list(&counts)))),
        _ => Err(ReadError::Mixed(list(&counts))),
    }
}

/// Adds tagged curves (in three dimensions) and points. Elements with undefined nodes are skipped.
fn tag_below(
    contents: &Contents,
    numbers: &NodeMap,
    parts: &mut MeshData,
) -> Result<(), ReadError> {
    let below = (0..contents.dim() - 1).flat_map(|dim| contents.blocks_of(dim));
    for block in below.filter(|block| !block.tags.is_empty()) {
        let vertices = block.kind.vertices()?;
        for (number, nodes) in block.elements() {
            let ends = vertices.iter().map(|&vertex| numbers.index(number, nodes[vertex]));
            let Ok(ends) = ends.collect::<Result<Vec<u32>, _>>() else { continue };
            for tag in &block.tags {
                match ends[..] {
                    [point] => parts.vertices.entry(tag.clone()).or_default().push(point),
                    [a, b] => parts.edges.entry(tag.clone()).or_default().push([a, b]),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

fn facets(block: &ElementBlock, numbers: &NodeMap) -> Result<Vec<[u32; 4]>, ReadError> {
    let vertices = block.kind.vertices()?;
    let mut facets = Vec::with_capacity(block.numbers.len());
    for (number, nodes) in block.elements() {
        let mut facet = [u32::MAX; 4];
        for (slot, &vertex) in facet.iter_mut().zip(&vertices) {
            *slot = numbers.index(number, nodes[vertex])?;
        }
        facets.push(facet);
    }
    Ok(facets)
}

/// Moves a mesh in a plane z = constant, up to rounding, to z = 0; likewise y of a line of one dimension.
fn flatten(parts: &mut MeshData, dim: usize) {
    let mut lower = [f64::INFINITY; 3];
    let mut upper = [f64::NEG_INFINITY; 3];
    for &node in &parts.nodes {
        for c in 0..3 {
            lower[c] = lower[c].min(parts.points[node as usize][c]);
            upper[c] = upper[c].max(parts.points[node as usize][c]);
        }
    }
    let extent = (0..dim).map(|c| upper[c] - lower[c]).fold(0.0, f64::max);
    for c in (dim..3).filter(|&c| upper[c] - lower[c] <= 1e-12 * extent) {
        parts.points.iter_mut().for_each(|point| point[c] = 0.0);
    }
}

/// Moves the nodes from equispaced points of each cell to the Lagrange points, on the same polynomial.
fn move_nodes(shape: &CellShape, parts: &mut MeshData) {
    let degree = shape.element.degree();
    let Ok(theirs) = Lagrange::equispaced(shape.cell, degree) else { return };
    let matrix = interpolation(theirs, &shape.coordinates);
    let mut moved = parts.points.clone();
    for nodes in parts.nodes.chunks_exact(shape.nodes) {
        for (node, row) in nodes.iter().zip(matrix.chunks_exact(shape.nodes)) {
            let mut point = [0.0; 3];
            for (weight, &from) in row.iter().zip(nodes) {
                for c in 0..3 {
                    point[c] += weight * parts.points[from as usize][c];
                }
            }
            moved[*node as usize] = point;
        }
        for &v in &shape.vertex_nodes {
            moved[nodes[v] as usize] = parts.points[nodes[v] as usize];
        }
    }
    parts.points = moved;
}
