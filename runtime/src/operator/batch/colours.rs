//! Colouring of cells: partitions cells into sets without shared degrees of freedom.
//!
//! Cells that share a degree of freedom share a vertex, since the nodes of an edge or face belong to cells at its
//! vertices, too. A cell gets the first colour without an earlier cell at its vertices. Colours thus depend on the cell
//! order only, and preserve it.

use crate::mesh::Mesh;

/// Returns the cells by colour.
pub(super) fn colours(mesh: &Mesh, cells: impl Iterator<Item = usize>) -> Vec<Vec<u32>> {
    let mut left: Vec<u32> = cells.map(|cell| cell as u32).collect();
    // The last colour with a cell at the vertex.
    let connectivity = mesh.connectivity();
    let mut last = vec![u32::MAX; connectivity.n_vertices()];
    let mut colours = Vec::new();
    while !left.is_empty() {
        let colour = colours.len() as u32;
        let mut chosen = Vec::new();
        left.retain(|&cell| {
            let vertices = connectivity.vertices(cell as usize);
            let taken = vertices.iter().any(|&vertex| last[vertex as usize] == colour);
            if !taken {
                vertices.iter().for_each(|&vertex| last[vertex as usize] = colour);
                chosen.push(cell);
            }
            taken
        });
        colours.push(chosen);
    }
    colours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::batch::boxed;
    use std::collections::BTreeSet;

    #[test]
    fn cells_of_a_colour_share_no_vertex() {
        for (cell, dim, n, most) in [
            ("quad", 2.0, 9.0, 6),
            ("tri", 2.0, 7.0, 12),
            ("hex", 3.0, 6.0, 12),
            ("tet", 3.0, 4.0, 48),
        ] {
            let mesh = boxed(cell, dim, n);
            for keep in [1, 3] {
                let cells = || (0..mesh.n_cells()).filter(move |cell| cell % keep == 0);
                let found = colours(&mesh, cells());
                assert!(found.len() <= most, "{cell}: {} colours", found.len());
                for colour in &found {
                    assert!(!colour.is_empty() && colour.is_sorted());
                    let vertices = colour
                        .iter()
                        .flat_map(|&cell| mesh.vertices(cell as usize).iter().copied());
                    let each: BTreeSet<u32> = vertices.clone().collect();
                    assert_eq!(each.len(), vertices.count(), "{cell}");
                }
                let mut all: Vec<u32> = found.concat();
                all.sort_unstable();
                assert!(all.into_iter().eq(cells().map(|cell| cell as u32)), "{cell}");
            }
        }
    }
}
