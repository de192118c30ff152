//! Aspect ratio of cells.
//!
//! ```text
//! max |e| · max |g|      edges e; gradients g of the linear functions 0 on a face, 1 on the opposite one (or vertex)
//! ```
//!
//! 1/|g| is the height over a face: the result is the longest edge divided by the smallest height. Quadrilaterals and
//! hexahedra are replaced by an affine cell, with the mean of the edges along each axis.

use super::Mesh;

type Vec3 = [f64; 3];

impl Mesh {
    /// Returns the aspect ratio of a cell: 1 for squares and cubes, 1.15 and 1.22 for regular triangles and tetrahedra.
    pub fn stretch(&self, cell: usize) -> f64 {
        let (dim, tensor) = (self.dim(), self.cell().is_tensor());
        let vertices = self.vertices(cell);
        let edge = |from: usize, to: usize| {
            let [from, to] = [from, to].map(|v| self.points()[vertices[v] as usize]);
            minus(to, from)
        };
        let axis = |a: usize| match tensor {
            true => mean((0..1 << dim).filter(|v| v >> a & 1 == 0).map(|v| edge(v, v | 1 << a))),
            false => edge(0, a + 1),
        };
        let mut columns: [Vec3; 3] = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        (0..dim).for_each(|a| columns[a] = axis(a));
        let [a, b, c] = columns;
        let rows = [cross(b, c), cross(c, a), cross(a, b)];
        let determinant = dot(a, rows[0]);
        let (mut edges, mut gradients) = (columns[..dim].to_vec(), rows[..dim].to_vec());
        if !tensor {
            for i in 1..=dim {
                edges.extend((1..i).map(|j| edge(i, j)));
            }
            // The sum of the barycentric coordinates is 1.
            let others = gradients.iter().fold([0.0; 3], |sum, g| minus(sum, *g));
            gradients.push(others);
        }
        let longest = |all: &[Vec3]| all.iter().map(|x| dot(*x, *x)).fold(0.0, f64::max).sqrt();
        longest(&edges) * longest(&gradients) / determinant.abs()
    }
}

fn minus(a: Vec3, b: Vec3) -> Vec3 {
    [0, 1, 2].map(|c| a[c] - b[c])
}

fn mean(all: impl Iterator<Item = Vec3>) -> Vec3 {
    let (mut sum, mut count) = ([0.0; 3], 0.0);
    for x in all {
        sum = [0, 1, 2].map(|c| sum[c] + x[c]);
        count += 1.0;
    }
    sum.map(|x| x / count)
}

fn cross(x: Vec3, y: Vec3) -> Vec3 {
    [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
}

fn dot(x: Vec3, y: Vec3) -> f64 {
    x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
}

#[cfg(test)]
mod tests {
    use crate::mesh::{Cell, CellOrdering, Mesh, MeshData};

    fn stretch(cell: Cell, points: &[[f64; 3]]) -> f64 {
        let nodes = (0..points.len() as u32).collect();
        let parts = MeshData { points: points.to_vec(), nodes, ..MeshData::default() };
        Mesh::new(cell, 1, parts, CellOrdering::Original).expect("a mesh").stretch(0)
    }

    #[test]
    fn cells_are_as_long_as_they_look() {
        let corner =
            |n: u32, size: [f64; 3]| [0, 1, 2].map(|a| if n >> a & 1 == 1 { size[a] } else { 0.0 });
        let boxed = |dim: u32, size: [f64; 3]| -> Vec<[f64; 3]> {
            (0..1 << dim).map(|n| corner(n, size)).collect()
        };
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found}");
        near(stretch(Cell::Quadrilateral, &boxed(2, [2.0, 2.0, 0.0])), 1.0);
        near(stretch(Cell::Quadrilateral, &boxed(2, [1.0, 10.0, 0.0])), 10.0);
        near(stretch(Cell::Hexahedron, &boxed(3, [3.0, 0.5, 1.0])), 6.0);
        let height = 0.75f64.sqrt();
        near(
            stretch(Cell::Triangle, &[[0.0; 3], [1.0, 0.0, 0.0], [0.5, height, 0.0]]),
            1.0 / height,
        );
        let regular = [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]];
        near(stretch(Cell::Tetrahedron, &regular), 1.5f64.sqrt());
        // The longest edge need not touch the first vertex, nor the smallest height a face there.
        near(stretch(Cell::Triangle, &[[0.0, 0.1, 0.0], [-5.0, 0.0, 0.0], [5.0, 0.0, 0.0]]), 100.0);
    }
}
