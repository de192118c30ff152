//! Meshes for comparisons of operators on devices with those on CPUs.

use fem_dsl::problem::Argument;
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::mesh::Mesh;
use runtime::mesh::generate::generate;
use std::collections::BTreeMap;

/// The tag of nodes with a condition on a combination of components.
pub(crate) const WALL: &str = "wall";

/// Generates a mesh.
pub(crate) fn made(name: &str, words: &[(&str, &str)], numbers: &[(&str, f64)]) -> Mesh {
    let words = words.iter().map(|&(key, word)| (key, Argument::Word(word.to_owned())));
    let numbers = numbers.iter().map(|&(key, value)| (key, Argument::Number(value)));
    let arguments: BTreeMap<_, _> =
        words.chain(numbers).map(|(key, value)| (key.to_owned(), value)).collect();
    generate(name, &arguments).expect("a mesh")
}

/// Returns a box with cells tagged `left` and `right`.
pub(crate) fn boxed(cell: &str, dim: f64, cells: f64, deform: f64) -> Mesh {
    let numbers = [("dim", dim), ("cells", cells), ("deform", deform)];
    let mut mesh = made("box", &[("cell", cell)], &numbers);
    mesh.tag_cells("left", |x| x[0] + 0.3 * x[1] < 0.6);
    mesh.tag_cells("right", |x| x[0] > 0.5);
    mesh
}

/// Returns a box whose second pair of sides is periodic.
pub(crate) fn periodic(cell: &str, dim: f64, cells: f64) -> Mesh {
    let mut mesh = boxed(cell, dim, cells, 0.1);
    mesh.make_periodic(&[["y0", "y1"]]).expect("sides");
    mesh
}

/// Refines cells near a corner repeatedly, so that nodes hang.
pub(crate) fn adapted(mesh: Mesh, times: usize) -> Mesh {
    let mut adaptive = AdaptiveMesh::new(mesh).expect("squares or cubes");
    for _ in 0..times {
        let mesh = adaptive.mesh().expect("a mesh");
        let near = |cell: usize| {
            let corner = mesh.points()[mesh.vertices(cell)[0] as usize];
            corner.iter().map(|x| x * x).sum::<f64>() < 0.2
        };
        let marked: Vec<bool> = (0..mesh.n_cells()).map(near).collect();
        adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
    }
    adaptive.mesh().expect("a mesh")
}

/// Returns a box whose last side is an oblique wall.
pub(crate) fn slipping(cell: &str, dim: f64, cells: f64) -> Mesh {
    let mut mesh = boxed(cell, dim, cells, 0.1);
    mesh.tag_like("x1", WALL);
    mesh
}
