//! Nodes of essential conditions: on facets, on tagged curves and points, or at the vertex nearest to a point.

use super::RunError;
use crate::mesh::skeleton::SkeletonIndex;
use crate::mesh::{Facet, Mesh};
use crate::processes::Reduction;
use crate::space::Space;
use fem_dsl::problem::{Dirichlet, Support};
use kernels_gen::element::{ElementError, Lagrange, tabulate};

/// Returns the facets of a support, and its nodes on this process, ascending.
pub(super) fn find(
    mesh: &Mesh,
    space: &Space,
    support: &Support,
) -> Result<(Vec<Facet>, Vec<u32>), RunError> {
    let (facets, places) = match support {
        Support::Boundary => (mesh.boundary(), None),
        Support::Tags(tags) => (mesh.sides_under(tags)?, mesh.places_under(tags)),
        Support::Vertex(to) => {
            let at = nearest_vertex(mesh, to);
            (Vec::new(), Some(SkeletonIndex::at(at, size(mesh))))
        }
    };
    let mut nodes = space.nodes_on(&facets);
    if let Some(places) = places {
        nodes.extend(nodes_at(mesh, space, &places)?);
        nodes.sort_unstable();
        nodes.dedup();
    }
    Ok((facets, nodes))
}

/// Checks that a support has normals.
pub(super) fn has_sides(mesh: &Mesh, support: &Support) -> Result<(), RunError> {
    match support {
        Support::Boundary => Ok(()),
        Support::Tags(tags) => Ok(mesh.expect_facet_tags(tags)?),
        Support::Vertex(_) => Err(RunError::Setting(
            "a single vertex has no normal: give the components of the field there".to_owned(),
        )),
    }
}

/// Returns the facets of a support of a field that has values on facets only.
///
/// # Errors
///
/// Tags that the mesh lacks, and those of curves and points.
pub(super) fn facets(mesh: &Mesh, support: &Support) -> Result<Vec<Facet>, RunError> {
    match support {
        Support::Boundary => Ok(mesh.boundary()),
        Support::Tags(tags) => {
            mesh.expect_facet_tags(tags)?;
            Ok(mesh.sides_under(tags)?)
        }
        Support::Vertex(_) => Ok(Vec::new()),
    }
}

/// Returns the nodes of a space on curves and at points, found by coordinates.
fn nodes_at(
    mesh: &Mesh,
    space: &Space,
    places: &SkeletonIndex<'_>,
) -> Result<Vec<u32>, ElementError> {
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order())?;
    let points = space.nodal().points();
    let table = tabulate(geometry, &points);
    let row = |q| (0..geometry.count()).map(|node| table.value(q, node)).collect();
    let rows: Vec<Vec<f64>> = (0..points.len()).map(row).collect();
    let mut nodes = Vec::new();
    for cell in 0..mesh.n_cells() {
        let corners = mesh.cell_nodes(cell).iter().map(|&node| mesh.points()[node as usize]);
        if places.may_be_near(corners) {
            let on = |row: &Vec<f64>| places.hold(&mesh.place_of(cell, row));
            let own = space.cell_nodes(cell).iter().zip(&rows);
            nodes.extend(own.filter(|(_, row)| on(row)).map(|(&node, _)| node));
        }
    }
    Ok(nodes)
}

/// Returns the vertex of the whole mesh nearest to a point; ties go to the lexicographically smallest coordinates.
fn nearest_vertex(mesh: &Mesh, to: &[f64; 3]) -> [f64; 3] {
    let gap = |x: &[f64; 3]| (0..3).map(|c| (x[c] - to[c]).powi(2)).sum::<f64>();
    let keyed = |x: &[f64; 3]| [gap(x), x[0], x[1], x[2]];
    let mut left: Vec<[f64; 4]> = mesh.points()[..mesh.n_vertices()].iter().map(keyed).collect();
    let mut found = [0.0; 4];
    for (key, found) in found.iter_mut().enumerate() {
        let mut least = [left.iter().map(|own| own[key]).fold(f64::INFINITY, f64::min)];
        mesh.reduce_in_all(Reduction::Least, &mut least);
        left.retain(|own| own[key] <= least[0]);
        *found = least[0];
    }
    [found[1], found[2], found[3]]
}

/// Returns the largest absolute coordinate of the whole mesh.
fn size(mesh: &Mesh) -> f64 {
    let (from, to) = mesh.bounding_box_of_all();
    from.iter().chain(&to).fold(0.0, |most, x| most.max(x.abs()))
}

/// Returns notes on point conditions moved to the nearest vertex.
pub(crate) fn notes(mesh: &Mesh, conditions: &[Dirichlet], fields: &[&str]) -> Vec<String> {
    let note = |condition: &Dirichlet| {
        let Support::Vertex(to) = &condition.support else { return None };
        let at = nearest_vertex(mesh, to);
        let distance = (0..3).map(|c| (at[c] - to[c]).powi(2)).sum::<f64>().sqrt();
        let shown = |x: &[f64; 3]| {
            let x: Vec<String> = x[..mesh.dim()].iter().map(|x| format!("{x}")).collect();
            x.join(", ")
        };
        (distance > 1e-12 * size(mesh)).then(|| {
            let field = fields[condition.field];
            format!(
                "the condition on `{field}` at [{}] holds at the nearest vertex, [{}], {distance:.3e} away",
                shown(to),
                shown(&at)
            )
        })
    };
    conditions.iter().filter_map(note).collect()
}
