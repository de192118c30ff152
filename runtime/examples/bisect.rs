//! Speed of bisection, on one thread: `cargo run --release -p weakform-runtime --example bisect [LEAVES]`.
//!
//! A square of 32 × 32 and a cube of 8 × 8 × 8 cells, divided into simplices, are refined near a sphere, round by round;
//! a row is a round: the share of its bisections that closing asked for, and millions of new cells a second; then what it
//! takes to take the round back and to do it again, and to make a mesh of the leaves, by all cells.

use fem_dsl::problem::Argument;
use runtime::mesh::Mesh;
use runtime::mesh::generate::generate;
use runtime::mesh::refine::bisect::{BisectError, Bisection};
use std::collections::BTreeMap;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let most = std::env::args().nth(1).map_or(Ok(2_000_000), |count| count.parse::<usize>())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for (cell, dim, cells) in [("tri", 2.0, 32.0), ("tet", 3.0, 8.0)] {
        let arguments = BTreeMap::from([
            ("cells".to_owned(), Argument::Number(cells)),
            ("dim".to_owned(), Argument::Number(dim)),
            ("cell".to_owned(), Argument::Word(cell.to_owned())),
        ]);
        let mesh = generate("box", &arguments)?;
        println!(
            "{cell}: leaves   closing %   million new cells a second: refine  coarsen  again   mesh"
        );
        let mut bisection = Bisection::new(&mesh)?;
        while bisection.n_leaves() < most {
            pool.install(|| round(&mut bisection, &mesh))?;
        }
    }
    Ok(())
}

/// Bisects what the sphere goes through, and says how fast.
fn round(bisection: &mut Bisection, mesh: &Mesh) -> Result<(), BisectError> {
    let (before, meets) = (bisection.n_leaves(), near(bisection, mesh));
    let timed = |work: &mut dyn FnMut() -> Result<usize, BisectError>| {
        let start = Instant::now();
        let count = work()?;
        Ok::<_, BisectError>((count, start.elapsed().as_secs_f64()))
    };
    let (done, refine) = timed(&mut || bisection.refine(|leaf| meets[leaf]))?;
    let after = bisection.n_leaves();
    let (taken, coarsen) = timed(&mut || Ok(bisection.coarsen(|_| true)))?;
    if bisection.n_leaves() == before {
        // Only then it is the same again.
        let (_, again) = timed(&mut || bisection.refine(|leaf| meets[leaf]))?;
        let (_, made) = timed(&mut || Ok(bisection.mesh(mesh)?.n_cells()))?;
        let marked = meets.iter().filter(|meets| **meets).count();
        let speed = |count: usize, seconds: f64| count as f64 / seconds / 1e6;
        println!(
            "{after:12} {:11.1} {:37.2} {:8.2} {:6.2} {:6.2}",
            100.0 * (done - marked) as f64 / done as f64,
            speed(done, refine),
            speed(taken, coarsen),
            speed(done, again),
            speed(after, made)
        );
    }
    Ok(())
}

/// The leaves that are nearer to a sphere than a part of their own width.
fn near(bisection: &Bisection, mesh: &Mesh) -> Vec<bool> {
    let dim = mesh.dim();
    let of = |leaf: usize| {
        let (cell, place) = bisection.place(leaf);
        let corner = |vertex: usize| {
            let mut at = mesh.points()[mesh.vertices(cell)[0] as usize];
            let origin = at;
            let s = place.at(&mesh.cell().vertex(vertex));
            for axis in 0..dim {
                let tip = mesh.points()[mesh.vertices(cell)[axis + 1] as usize];
                (0..3).for_each(|c| at[c] += s[axis] * (tip[c] - origin[c]));
            }
            at.iter().take(dim).map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>().sqrt() - 0.35
        };
        let off: Vec<f64> = (0..=dim).map(corner).collect();
        off.iter().any(|x| *x > 0.0) && off.iter().any(|x| *x <= 0.0)
    };
    (0..bisection.n_leaves()).map(of).collect()
}
