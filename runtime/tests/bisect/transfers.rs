//! Transfer between meshes of one bisection preserves polynomials.

use super::grow;
use super::meshes::{Random, all};
use kernels_gen::element::{Lagrange, interpolation};
use runtime::mesh::Mesh;
use runtime::mesh::refine::bisect::{BisectError, Bisection, BisectionTransfer, CellSource};
use runtime::mesh::refine::forest::refined;

/// Returns a polynomial of the element's degree, with terms of bounded sum.
fn polynomial(degree: usize, at: [f64; 3]) -> f64 {
    let linear = 0.5 + 0.25 * at[0] - 0.75 * at[1] + 0.5 * at[2];
    linear.powi(degree as i32) + at[0] - 0.5 * at[1]
}

/// Returns the point of a straight cell with given reference coordinates.
fn place(mesh: &Mesh, cell: usize, at: &[f64; 3]) -> [f64; 3] {
    let corner = |v: usize| mesh.points()[mesh.vertices(cell)[v] as usize];
    let along = |c: usize| {
        let sides = (0..mesh.dim()).map(|axis| at[axis] * (corner(axis + 1)[c] - corner(0)[c]));
        corner(0)[c] + sides.sum::<f64>()
    };
    [0, 1, 2].map(along)
}

/// Returns the nodal values of each cell.
fn values(mesh: &Mesh, element: Lagrange) -> Vec<Vec<f64>> {
    let (points, degree) = (element.points(), element.degree());
    let of =
        |cell: usize| points.iter().map(|at| polynomial(degree, place(mesh, cell, at))).collect();
    (0..mesh.n_cells()).map(of).collect()
}

fn near(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e3 * f64::EPSILON * scale
}

/// Checks the transfer between all cells of two meshes, in both containment directions.
fn check(from: &Mesh, to: &Mesh, name: &str) -> [usize; 3] {
    let degree = 2;
    let element = Lagrange::continuous(from.cell(), degree).expect("an element");
    let transfer =
        BisectionTransfer::new(from, to).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(transfer.n_cells(), to.n_cells());
    let points = element.points();
    let (here, there) = (values(from, element), values(to, element));
    let size = from.points().iter().flatten().fold(1.0, |most: f64, x| most.max(x.abs()));
    let scale = (3.0 * size).powi(degree as i32);
    let (mut next, mut counts) = (0, [0; 3]);
    for cell in 0..to.n_cells() {
        match transfer.source(cell) {
            CellSource::Contained { cell: source, place: map } => {
                let places: Vec<[f64; 3]> = points.iter().map(|at| map.at(at)).collect();
                let weights = interpolation(element, &places);
                for (row, expected) in weights.chunks_exact(element.count()).zip(&there[cell]) {
                    let found: f64 = row.iter().zip(&here[source]).map(|(a, b)| a * b).sum();
                    assert!(near(found, *expected, scale), "{name}: {found} and {expected}");
                }
                let whole = to.vertices(cell).iter().all(|&own| {
                    let at = to.points()[own as usize];
                    from.vertices(source).iter().any(|&v| from.points()[v as usize] == at)
                });
                counts[usize::from(!whole)] += 1;
                next = source;
            }
            CellSource::Union { cells } => {
                assert!(cells.len() > 1 && cells.start >= next, "{name}");
                let mut size = 0.0;
                for part in cells.clone() {
                    let map = transfer.part(cell, part);
                    for at in &points {
                        let (a, b) = (place(from, part, at), place(to, cell, &map.at(at)));
                        assert!((0..3).all(|c| near(a[c], b[c], scale)), "{name}: {a:?} and {b:?}");
                    }
                    let [x, y, z] = map.axes();
                    let cross = |i: usize| {
                        y[(i + 1) % 3] * z[(i + 2) % 3] - y[(i + 2) % 3] * z[(i + 1) % 3]
                    };
                    size += (0..3).map(|i| x[i] * cross(i)).sum::<f64>().abs();
                }
                // Dyadic numbers: the sum is exact.
                assert_eq!(size, 1.0, "{name}");
                next = cells.end - 1;
                counts[2] += 1;
            }
        }
    }
    counts
}

#[test]
fn polynomials_stay_what_they_are() {
    let mut random = Random(9);
    let mut counts = [0; 3];
    for (name, mesh) in
        all(&mut random).into_iter().filter(|(_, mesh)| mesh.n_cells() < 600 && mesh.order() == 1)
    {
        let mut bisection = Bisection::new(&mesh).expect("simplices");
        grow(&mut bisection, &mut random, 3);
        let first = bisection.mesh(&mesh).expect("room");
        let count = bisection.n_leaves();
        let marked: Vec<bool> = (0..count).map(|_| random.below(8) > 0).collect();
        bisection.coarsen(|leaf| marked[leaf]);
        grow(&mut bisection, &mut random, 2);
        let second = bisection.mesh(&mesh).expect("room");
        for (from, to) in [(&first, &second), (&second, &first), (&mesh, &first), (&first, &mesh)] {
            let found = check(from, to, &name);
            (0..3).for_each(|kind| counts[kind] += found[kind]);
        }
        assert_eq!(check(&mesh, &mesh, &name), [mesh.n_cells(), 0, 0]);
    }
    assert!(counts.iter().all(|&count| count > 1000), "{counts:?}");
}

#[test]
fn meshes_of_other_bisections_have_no_transfer() {
    let mut random = Random(10);
    let meshes: Vec<Mesh> = all(&mut random).into_iter().skip(5).map(|(_, mesh)| mesh).collect();
    let [a, b] = [&meshes[2], &meshes[1]];
    assert_eq!(BisectionTransfer::new(a, b).err(), Some(BisectError::Unrelated));
    let mut bisection = Bisection::new(a).expect("simplices");
    bisection.refine(|_| true).expect("few leaves");
    let fine = bisection.mesh(a).expect("room");
    assert_eq!(BisectionTransfer::new(b, &fine).err(), Some(BisectError::Unrelated));
    let red = refined(a.clone(), 1).expect("room");
    assert_eq!(BisectionTransfer::new(&red, &fine).err(), Some(BisectError::Unrelated));
    // A bisected mesh can be an initial mesh.
    let mut again = Bisection::new(&fine).expect("simplices");
    again.refine(|leaf| leaf % 3 == 0).expect("few leaves");
    let finer = again.mesh(&fine).expect("room");
    assert!(BisectionTransfer::new(&fine, &finer).is_ok());
    assert_eq!(BisectionTransfer::new(a, &finer).err(), Some(BisectError::Unrelated));
}
