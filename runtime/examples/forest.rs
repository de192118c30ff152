//! Speed of refinement, balance and hanging nodes of forests, on one thread:
//! `cargo run --release -p weakform-runtime --example forest [LEAVES]`.
//!
//! A box of 8 × 8 × 8 hexahedra is refined where a sphere goes through it, level by level; a row is what the last level
//! takes, in millions of its cells a second. Twice the cells should take twice the time.

use fem_dsl::problem::Argument;
use kernels_gen::element::Lagrange;
use runtime::mesh::Mesh;
use runtime::mesh::generate::generate;
use runtime::mesh::refine::forest::{Forest, ForestError};
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Measurements of one level.
struct Row {
    leaves: usize,
    hanging: usize,
    refine: f64,
    balance: f64,
    masks: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let most = std::env::args().nth(1).map_or(Ok(4_000_000), |count| count.parse::<usize>())?;
    let arguments = BTreeMap::from([("cells".to_owned(), Argument::Number(8.0))]);
    let mesh = generate("box", &arguments)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    println!("    leaves   hang %   million cells a second: refine  balance  both  masks");
    let mut forest = Forest::new(&mesh)?;
    while forest.n_leaves() < most {
        let row = pool.install(|| level(&mut forest))?;
        let speed = |seconds: f64| row.leaves as f64 / seconds / 1e6;
        println!(
            "{:10} {:8.1} {:31.1} {:8.1} {:5.1} {:6.1}",
            row.leaves,
            100.0 * row.hanging as f64 / row.leaves as f64,
            speed(row.refine),
            speed(row.balance),
            speed(row.refine + row.balance),
            speed(row.masks)
        );
    }
    // A forest that was never balanced before.
    let mut forest = Forest::new(&mesh)?;
    while forest.n_leaves() < most / 2 {
        let meets = near(&forest, 0.3);
        if forest.refine(|leaf| meets[leaf])? == 0 {
            break;
        }
    }
    let before = forest.n_leaves();
    let start = Instant::now();
    pool.install(|| forest.balance())?;
    let (after, seconds) = (forest.n_leaves(), start.elapsed().as_secs_f64());
    println!("balance of {before} leaves, {after} then: {:.1}", after as f64 / seconds / 1e6);
    numbering(&mesh, most / 8, &pool)?;
    let start = Instant::now();
    let fine = pool.install(|| mesh.refined(4))?;
    let (cells, seconds) = (fine.n_cells(), start.elapsed().as_secs_f64());
    println!("a mesh of {cells} cells, refined 4 times: {:.2}", cells as f64 / seconds / 1e6);
    Ok(())
}

/// Refines where the sphere goes through, and balances.
fn level(forest: &mut Forest) -> Result<Row, ForestError> {
    let meets = near(forest, 1.0);
    let start = Instant::now();
    forest.refine(|leaf| meets[leaf])?;
    let refine = start.elapsed().as_secs_f64();
    let start = Instant::now();
    forest.balance()?;
    let balance = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let masks = forest.masks();
    let seconds = start.elapsed().as_secs_f64();
    let hanging = masks.iter().filter(|mask| !mask.is_free()).count();
    Ok(Row { leaves: forest.n_leaves(), hanging, refine, balance, masks: seconds })
}

/// Measures the construction of a mesh of leaves and the numbering of its degrees of freedom.
fn numbering(
    mesh: &Mesh,
    most: usize,
    pool: &rayon::ThreadPool,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut forest, coarse) = (Forest::new(mesh)?, Arc::new(mesh.clone()));
    while forest.n_leaves() < most {
        level(&mut forest)?;
    }
    let start = Instant::now();
    let fine = Arc::new(pool.install(|| forest.mesh(&coarse))?);
    let (cells, seconds) = (fine.n_cells(), start.elapsed().as_secs_f64());
    println!(
        "a mesh of {cells} leaves: {:.2} million cells a second",
        cells as f64 / seconds / 1e6
    );
    for degree in 1..=2 {
        let element = Lagrange::continuous(fine.cell(), degree)?;
        let start = Instant::now();
        let on = pool.install(|| Discretisation::new(Arc::clone(&fine), &[(element, 1)]))?;
        let seconds = start.elapsed().as_secs_f64();
        let (unknowns, speed) = (on.n_dofs(), cells as f64 / seconds / 1e6);
        println!("{unknowns} unknowns of degree {degree}: {speed:.2} million cells a second");
    }
    Ok(())
}

/// The leaves that are nearer to a sphere than a part of their own width.
fn near(forest: &Forest, width: f64) -> Vec<bool> {
    forest
        .leaves()
        .iter()
        .map(|&leaf| {
            let unit = 1.0 / (8.0 * f64::from(1u32 << 30));
            let size = 0.125 / f64::from(1u32 << leaf.level());
            let tree = leaf.tree() as usize;
            let first = mesh_corner(tree);
            let corner = forest.corner(leaf);
            let centre = [0, 1, 2].map(|c| first[c] + f64::from(corner[c]) * unit + size / 2.0);
            let radius = centre.iter().map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>().sqrt();
            (radius - 0.35).abs() < width * size
        })
        .collect()
}

/// The corner of a tree: where the sphere goes through does not matter much, so that the order of cells is left aside.
fn mesh_corner(tree: usize) -> [f64; 3] {
    [tree % 8, tree / 8 % 8, tree / 64].map(|at| at as f64 / 8.0)
}
