//! Prolongation from a coarser mesh, of which another one is the refinement: the coarse function at the nodes of the finer
//! mesh.

use crate::mesh::CoarsenedMesh;
use crate::space::discretisation::Discretisation;
use kernels_gen::element::tabulate;

/// Interpolates the vector `u` on the coarser mesh at the nodes of the finer one. `None` if elements differ or are not
/// nodal, if fields live on parts of the mesh, or if nodes of the finer mesh hang. Collective on distributed meshes.
pub fn prolong(
    (coarse, u): (&Discretisation, &[f64]),
    cells: &CoarsenedMesh,
    fine: &Discretisation,
) -> Option<Vec<f64>> {
    if coarse.fields.len() != fine.fields.len() || coarse.mesh.n_cells() != cells.mesh.n_cells() {
        return None;
    }
    let mut all = vec![0.0; fine.n_dofs()];
    for (number, (old, new)) in coarse.fields.iter().zip(&fine.fields).enumerate() {
        let is_part = old.support.is_some() || new.support.is_some();
        let (old, new) = (&*old.space, &*new.space);
        let alike = (old.element(), old.components()) == (new.element(), new.components());
        if is_part || !alike || new.element().whitney().is_some() || new.hanging.is_some() {
            return None;
        }
        let (space, values) = old.resolved(&u[coarse.dofs_of(number)]);
        let (points, components) = (new.nodal().points(), new.components());
        let tables = cells.maps.iter().map(|map| {
            let places: Vec<[f64; 3]> = points.iter().map(|point| map.at(point)).collect();
            tabulate(new.nodal(), &places)
        });
        let tables: Vec<_> = tables.collect();
        let into = &mut all[fine.dofs_of(number)];
        let mut local = vec![0.0; points.len() * components];
        for cell in 0..cells.mesh.n_cells() {
            for (row, &node) in local.chunks_exact_mut(components).zip(space.cell_nodes(cell)) {
                row.copy_from_slice(&values[node as usize * components..][..components]);
            }
            for (child, &own) in cells.children_of(cell).iter().enumerate() {
                let table = &tables[usize::from(cells.places[cell * cells.each() + child])];
                for (place, &node) in new.cell_nodes(own as usize).iter().enumerate() {
                    for c in 0..components {
                        let terms = local.iter().skip(c).step_by(components).enumerate();
                        into[node as usize * components + c] =
                            terms.map(|(i, value)| table.value(place, i) * value).sum();
                    }
                }
            }
        }
    }
    // Rounding differs between the cells of different processes.
    if let Some(sharing) = fine.sharing() {
        sharing.synchronise(&mut all);
    }
    Some(all)
}
