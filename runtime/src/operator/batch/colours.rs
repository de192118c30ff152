//! Colours of cells: a mesh and some of its cells → lists of them, in each of which no two share an unknown.
//!
//! Cells that share an unknown share a vertex, for the nodes of an edge or a face belong to its vertices' cells too.
//! A cell gets the first colour that no earlier cell at its vertices has, so that the colours depend on the order of
//! the cells alone; within a colour they keep it.

use crate::mesh::Mesh;

/// The cells by colour.
pub(super) fn colours(mesh: &Mesh, cells: impl Iterator<Item = usize>) -> Vec<Vec<u32>> {
    let mut left: Vec<u32> = cells.map(|cell| cell as u32).collect();
    // The last colour that has a cell at the vertex.
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
