//! The size of `penalty`: c / hn, and the smallest factors of it with which interior penalty is coercive.
//!
//! ```text
//! λ = max over u of Σ_F hn ∫_F (∂u/∂n)² / ∫_K |∇u|²        λ / 2 < η c between cells, λ < η c on the boundary
//! ```

use super::operators::{
    assembled, built, dense, dot, factorised, norm, product, residual, setup, solved,
};
use fem_dsl::testing::Random;
use runtime::mesh::{CellOrdering, MeshData};
use weakform::layers::runtime;
use weakform::{Cell, Mesh, mesh};

/// Σ_F hn (∂u/∂n)² over the facets of each cell.
const FLUXES: &str = "form f { field u: scalar in L2(k); \
    on interior { energy = (inside(hn) * dot(inside(grad(u)), n)^2 + outside(hn) * dot(outside(grad(u)), n)^2) / 2; } \
    on boundary \"all round\" { energy = hn * dot(grad(u), n)^2 / 2; } }";

/// |∇u|² in each cell.
const GRADIENTS: &str = "form f { field u: scalar in L2(k); energy = dot(grad(u), grad(u)) / 2; }";

/// `penalty` less c / hn, on both sides of each facet.
const REST: &str = "form f { field u: scalar in L2(k); param c = 0; \
    on interior { f0[inside(u)] = inside(penalty(u)) - c / inside(hn); f0[outside(u)] = outside(penalty(u)) - c / outside(hn); } \
    on boundary \"all round\" { f0[u] = penalty(u) - c / hn; } }";

/// Returns the largest λ of the cells of a mesh.
fn largest(on: &Mesh, degree: usize) -> f64 {
    let [fluxes, gradients] = [FLUXES, GRADIENTS].map(|text| {
        let mut system = built(setup(text, on.clone(), degree));
        let matrix = dense(&assembled(&mut system));
        // Both are 0 for constants: one node of each cell is left out.
        let nodes = matrix.len() / on.n_cells();
        let is_left = |i: &usize| !i.is_multiple_of(nodes);
        let left = || (0..matrix.len()).filter(is_left);
        left().map(|i| left().map(|j| matrix[i][j]).collect()).collect::<Vec<Vec<f64>>>()
    });
    let factors = factorised(gradients.clone());
    let mut x = Random(7).signed(fluxes.len());
    for _ in 0..400 {
        let y = solved(&factors, &product(&fluxes, &x));
        let size = norm(&y);
        x = y.iter().map(|y| y / size).collect();
    }
    dot(&x, &product(&fluxes, &x)) / dot(&x, &product(&gradients, &x))
}

/// Returns a square sheared by 45°.
fn sheared() -> Mesh {
    let points = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]].map(|[x, y]| [x, y, 0.0]);
    let data = MeshData { points: points.into(), nodes: vec![0, 1, 2, 3], ..MeshData::default() };
    Mesh::new(Cell::Quadrilateral, 1, data, CellOrdering::Original).expect("a mesh")
}

/// λ is p (p + 1) on boxes; 2 c is larger everywhere.
#[test]
fn twice_the_penalty_is_above_the_smallest_coercive_one() {
    let boxed = |text: &str| mesh(text).expect("a box");
    for (name, mut on, wanted) in [
        ("squares", boxed("box(dim: 2, cells: [2, 1])"), [2.0, 6.0, 12.0, 20.0]),
        ("cubes", boxed("box(dim: 3, cells: [2, 1, 1])"), [2.0, 6.0, 12.0, 20.0]),
        ("triangles", boxed("box(dim: 2, cells: 1, cell: tri)"), [4.0, 8.6, 15.6, 25.3]),
        ("tetrahedra", boxed("box(dim: 3, cells: 1, cell: tet)"), [6.0, 11.3, 19.6, 29.4]),
        ("sheared", sheared(), [5.0, 12.5, 23.3, 37.3]),
    ] {
        on.tag_boundary("all round", |_| true);
        let (dim, cell) = (on.dim(), on.cell());
        for (degree, wanted) in (1..).zip(wanted) {
            if name == "cubes" && degree > 3 {
                continue;
            }
            let found = largest(&on, degree);
            assert!((found - wanted).abs() < 0.051, "{name} of degree {degree}: {found}");
            let p = degree as f64;
            let c = if cell.is_tensor() { (p + 1.0).powi(2) } else { (p + 1.0) * (p + dim as f64) };
            assert!(found < 2.0 * c, "{name} of degree {degree}: {found} {c}");
            let mut system = built(setup(REST, on.clone(), degree));
            let zero = system.vector();
            let size = norm(&residual(&system, &zero));
            system.set_param("c", c).expect("a parameter");
            let left = norm(&residual(&system, &zero));
            assert!(left < 1e-13 * size, "{name} of degree {degree}: {left} of {size}");
        }
    }
}
