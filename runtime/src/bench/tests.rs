//! The paper's counts, our rule beside them, what hangs counted another way, and products part by part.

use super::balls::{Ball, Census, nodes, unknowns};
use super::ljungkvist::{CASE, Line, TABLE};
use super::product::{Machine, Product};
use crate::assert_close;
use crate::compile::{Execution, Target};
use crate::operator::Part;
use crate::reference::Bounded;
use std::sync::Arc;

#[test]
fn the_uniform_meshes_are_the_papers() {
    for line in &TABLE {
        let counts = Ball::new(line.dim).expect("a ball").counts(line.level);
        let dofs = nodes(&counts, line.degree).expect("an element");
        assert_eq!([counts.cells(), dofs as u64], line.uniform, "{line:?}");
    }
}

/// The two that have 18 and 5 million cells are compared by the program alone.
#[test]
fn the_adaptive_meshes_have_about_as_many_cells() {
    let mut done = Vec::new();
    for line in TABLE.iter().filter(|line| line.adaptive[0] < 1_500_000) {
        if done.contains(&(line.dim, line.level)) {
            continue;
        }
        done.push((line.dim, line.level));
        let ball = Ball::new(line.dim).expect("a ball");
        let forest = ball.adapted(Line::base(line.dim, line.level)).expect("a forest");
        let off = forest.n_leaves() as f64 / line.adaptive[0] as f64 - 1.0;
        assert!(off.abs() <= 0.1, "{line:?}: {} cells", forest.n_leaves());
    }
    assert_eq!(done.len(), 3);
}

/// Of degree 1 an interpolated node is a vertex that a cell has of its own, and is no unknown.
#[test]
fn what_hangs_is_counted_as_cells_have_it() {
    for (dim, level) in [(2, 5), (3, 3)] {
        let ball = Ball::new(dim).expect("a ball");
        let mesh = ball.mesh(&ball.adapted(Line::base(dim, level)).expect("a forest"));
        let mesh = mesh.expect("a mesh");
        let census = Census::of(&mesh);
        assert!(census.constrained > 0 && census.constrained < census.cells);
        assert_eq!(unknowns(&mesh, 1).expect("an element") + census.hanging(1), mesh.n_vertices());
    }
    let uniform = Ball::new(2).and_then(|ball| ball.uniform(3)).expect("a mesh");
    assert_eq!(Census::of(&uniform).hanging(3), 0);
}

#[test]
fn the_parts_of_a_product_add_up() {
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    let machine = Machine::Processor(target);
    for (dim, level) in [(2, 4), (3, 2)] {
        let ball = Ball::new(dim).expect("a ball");
        let mesh = ball.mesh(&ball.adapted(Line::base(dim, level)).expect("a forest"));
        let mesh = Arc::new(mesh.expect("a mesh"));
        let mut product = Product::new(&CASE, 2, &mesh, &machine).expect("a product");
        let shares = product.shares();
        let count: usize = shares.iter().map(|share| share.count()).sum();
        assert_eq!(count, mesh.n_cells());
        let hanging = shares.iter().filter(|share| share.is_of(&[Part::Hanging]));
        assert_eq!(
            hanging.map(|share| share.count()).sum::<usize>(),
            Census::of(&mesh).constrained
        );
        let lists: [&[Part]; 3] =
            [&[Part::Free, Part::All], &[Part::Constrained], &[Part::Hanging]];
        let constraints = &product.discretisation().fields[0].constraints;
        let free = (0..constraints.n_free() + constraints.len())
            .filter(|&unknown| !constraints.is_constrained(unknown));
        let free: Vec<usize> = free.collect();
        let [whole, sum] = product.results(&lists).expect("results");
        let [_, nothing] = product.results(&[&[]]).expect("results");
        for unknown in free {
            // The sum of a row's terms is less: κ is at most 20, an entry of x a half, and a node has few cells.
            let expected = Bounded::with_scale(sum[unknown], 1e3);
            assert_close!(whole[unknown], expected, f64::EPSILON, "{unknown}");
            assert_eq!(nothing[unknown], 0.0);
        }
    }
}
