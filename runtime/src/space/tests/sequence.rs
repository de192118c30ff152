//! Exactness of the discrete sequences H1 → H(curl) → H(div) → L2, and H1 → H(curl) → L2 in the plane, by ranks.

use super::turned;
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::space::Space;
use crate::space::evaluate::Evaluator;
use kernels_gen::element::{Cell, Element, Lagrange, Whitney, WhitneyFamily};

fn space(mesh: &Mesh, element: impl Into<Element>) -> Space {
    Space::new(mesh, &Partition::with_chunk_cells(mesh, 5), element, 1).expect("a space")
}

/// Returns the rank of a matrix, by elimination with full pivoting.
fn rank(mut rows: Vec<Vec<f64>>) -> usize {
    let mut rank = 0;
    while let Some(columns) = rows.first().map(Vec::len).filter(|_| rank < rows.len()) {
        let entries = (rank..rows.len()).flat_map(|i| (rank..columns).map(move |j| (i, j)));
        let size = |&(i, j): &(usize, usize)| rows[i][j].abs();
        let Some(best) = entries.max_by(|a, b| size(a).total_cmp(&size(b))) else { break };
        if size(&best) < 1e-8 {
            break;
        }
        rows.swap(rank, best.0);
        rows.iter_mut().for_each(|row| row.swap(rank, best.1));
        let (above, below) = rows.split_at_mut(rank + 1);
        let pivot = &above[rank];
        for row in below {
            let factor = row[rank] / pivot[rank];
            row.iter_mut().zip(pivot).skip(rank).for_each(|(x, p)| *x -= factor * p);
        }
        rank += 1;
    }
    rank
}

/// Returns the rank of the exterior derivative of a space.
fn rank_of_derivative(mesh: &Mesh, element: Whitney) -> (usize, usize) {
    let space = space(mesh, element);
    let points = Lagrange::discontinuous(mesh.cell(), element.degree()).expect("points").points();
    let evaluator = Evaluator::new(mesh, &space, &points).expect("tables");
    let of_dof = |dof: usize| -> Vec<f64> {
        let mut u = vec![0.0; space.n_dofs()];
        u[dof] = 1.0;
        (0..mesh.n_cells()).flat_map(|cell| evaluator.exterior(cell, &u)).collect()
    };
    (rank((0..space.n_dofs()).map(of_dof).collect()), space.n_dofs())
}

/// The kernel of each derivative is the range of the one before, and the last is onto: the domain is a square or a cube.
#[test]
fn sequences_are_exact() {
    let cases = [
        (Cell::Triangle, 2, 3),
        (Cell::Quadrilateral, 2, 3),
        (Cell::Tetrahedron, 1, 3),
        (Cell::Hexahedron, 1, 2),
    ];
    for (cell, n, degrees) in cases {
        let mesh = turned(cell, n, 3);
        for k in 1..=degrees {
            let whitney = |family| Whitney::new(cell, k as i64, family).expect("an element");
            let gradients = space(&mesh, Lagrange::continuous(cell, k).expect("an element"));
            let gradients = gradients.n_dofs() - 1;
            let last = Lagrange::discontinuous(cell, k - 1).expect("an element").count();
            let last = last * mesh.n_cells();
            let (curls, of_curl) = rank_of_derivative(&mesh, whitney(WhitneyFamily::Curl));
            let (divergences, of_div) = rank_of_derivative(&mesh, whitney(WhitneyFamily::Div));
            assert_eq!(divergences, last, "div on {cell}, k = {k}");
            assert_eq!(of_curl - curls, gradients, "curl on {cell}, k = {k}");
            match cell.dim() {
                2 => assert_eq!((curls, of_div - divergences), (last, gradients), "{cell}, {k}"),
                _ => assert_eq!(of_div - divergences, curls, "{cell}, k = {k}"),
            }
        }
    }
}
