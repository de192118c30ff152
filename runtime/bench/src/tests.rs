//! Counts of the papers, our mesh rule compared with them, alternative counts of hanging nodes, and products by parts.

use super::assembly::{CellCounts, PAPER_BYTES, measured};
use super::balls::{Ball, Census, nodes, unknowns};
use super::kronbichler::{self, MATRIX};
use super::ljungkvist::{
    CASE, PaperRow, TABLE, element_matrix, free_bytes, matrix_bytes, speedup, stored, vectors,
};
use super::product::{Machine, Product};
use fem_dsl::problem::Argument;
use runtime::assert_close;
use runtime::kernels::compile::{Execution, Target};
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::generate::generate;
use runtime::operator::CellSubset;
use runtime::reference::BoundedValue;
use std::collections::BTreeMap;
use std::sync::Arc;

fn interpreted() -> Machine {
    Machine::Processor(Target { execution: Execution::Interpreted, ..Target::native() })
}

#[test]
fn the_uniform_meshes_are_the_papers() {
    for line in &TABLE {
        let counts = Ball::new(line.dim).expect("a ball").counts(line.level);
        let dofs = nodes(&counts, line.degree).expect("an element");
        assert_eq!([counts.cells(), dofs as u64], line.uniform, "{line:?}");
    }
}

/// The two meshes with 18 and 5 million cells are compared by the program only.
#[test]
fn the_adaptive_meshes_have_about_as_many_cells() {
    let mut done = Vec::new();
    for line in TABLE.iter().filter(|line| line.adaptive[0] < 1_500_000) {
        if done.contains(&(line.dim, line.level)) {
            continue;
        }
        done.push((line.dim, line.level));
        let ball = Ball::new(line.dim).expect("a ball");
        let forest = ball.adapted(PaperRow::base(line.dim, line.level)).expect("a forest");
        let off = forest.n_leaves() as f64 / line.adaptive[0] as f64 - 1.0;
        assert!(off.abs() <= 0.1, "{line:?}: {} cells", forest.n_leaves());
    }
    assert_eq!(done.len(), 3);
}

/// An interpolated node of degree 1 is a vertex of a cell that is no degree of freedom.
#[test]
fn what_hangs_is_counted_as_cells_have_it() {
    for (dim, level) in [(2, 5), (3, 3)] {
        let ball = Ball::new(dim).expect("a ball");
        let mesh = ball.mesh(&ball.adapted(PaperRow::base(dim, level)).expect("a forest"));
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
    let machine = interpreted();
    for (dim, level) in [(2, 4), (3, 2)] {
        let ball = Ball::new(dim).expect("a ball");
        let mesh = ball.mesh(&ball.adapted(PaperRow::base(dim, level)).expect("a forest"));
        let mesh = Arc::new(mesh.expect("a mesh"));
        let mut product = Product::new(&CASE, 2, &mesh, &machine).expect("a product");
        let shares = product.shares();
        let count: usize = shares.iter().map(|share| share.count()).sum();
        assert_eq!(count, mesh.n_cells());
        let hanging = shares.iter().filter(|share| share.is_of(&[CellSubset::Hanging]));
        assert_eq!(
            hanging.map(|share| share.count()).sum::<usize>(),
            Census::of(&mesh).constrained
        );
        let lists: [&[CellSubset]; 2] = [&[CellSubset::Regular], &[CellSubset::Hanging]];
        let constraints = &product.discretisation().fields[0].constraints;
        let free = (0..constraints.n_free() + constraints.len())
            .filter(|&unknown| !constraints.is_constrained(unknown));
        let free: Vec<usize> = free.collect();
        let [whole, sum] = product.results(&lists).expect("results");
        let [_, nothing] = product.results(&[&[]]).expect("results");
        for unknown in free {
            // The sum of a row's terms is smaller: κ is at most 20, an entry of x a half, and a node has few cells.
            let expected = BoundedValue::with_scale(sum[unknown], 1e3);
            assert_close!(whole[unknown], expected, f64::EPSILON, "{unknown}");
            assert_eq!(nothing[unknown], 0.0);
        }
    }
}

/// Ljungkvist, section 2.1: point data is smaller than a cell's matrix from degree 2. Section 4: vectors are 2 to 20 %
/// of it; the largest share, at degree 4 in the plane, is 21 %.
#[test]
fn points_take_less_than_element_matrices() {
    let mut shares = Vec::new();
    for dim in [2, 3] {
        for degree in 1..=4 {
            assert_eq!(stored(dim, degree) < element_matrix(dim, degree), degree > 1);
            shares.push((100.0 * vectors(dim, degree)).round() as u32);
        }
    }
    assert_eq!((shares.iter().min(), shares.iter().max()), (Some(&2), Some(&21)));
}

/// Section 5: at degree 4 in 3D the memory traffic is 13 times smaller than with a matrix.
#[test]
fn a_product_of_degree_4_goes_through_13_times_less_memory() {
    assert_eq!(format!("{:.0}", matrix_bytes(3, 4) / free_bytes(3, 4)), "13");
    // Also if y is read before it is written.
    assert_eq!(format!("{:.0}", (matrix_bytes(3, 4) + 8.0) / (free_bytes(3, 4) + 8.0)), "13");
}

/// Section 5: matrices of the largest meshes fit up to degree 2 in 2D and degree 1 in 3D, assuming that 12 GB (the
/// K40's) hold them twice. Section 6: matrix-free problems are 4 and 8 times larger, one uniform refinement.
#[test]
fn matrices_fit_as_the_paper_says() {
    let fits = |line: &PaperRow, level: usize| {
        let counts = Ball::new(line.dim).expect("a ball").counts(level);
        let dofs = nodes(&counts, line.degree).expect("an element");
        (2.0 * dofs * (matrix_bytes(line.dim, line.degree) - 16.0) <= 12e9, dofs)
    };
    for line in &TABLE {
        let wanted = line.degree <= if line.dim == 2 { 2 } else { 1 };
        let (whole, dofs) = fits(line, line.level);
        assert_eq!(whole, wanted, "{line:?}");
        if !whole {
            let (smaller, fewer) = fits(line, line.level - 1);
            let times = (dofs / fewer).round();
            assert_eq!((smaller, times), (true, if line.dim == 2 { 4.0 } else { 8.0 }), "{line:?}");
        }
        // Reported for degrees from which the matrix is slower.
        assert_eq!(speedup(line.dim, line.degree, false).is_some(), line.degree >= 2);
        assert_eq!(speedup(line.dim, line.degree, true).is_some(), line.degree + line.dim >= 5);
    }
}

/// A-FEM, section V: 192 bytes per triangle at the peak, 72 of a triangle's matrix between EbE-V1 and EbE-V2, and 27 %
/// more than EbE-V1. Ours are fewer.
#[test]
fn bytes_a_triangle_are_those_of_the_paper() {
    let counts = CellCounts::TRIANGLES;
    let [recomputed, stored, own] = PAPER_BYTES.map(f64::from);
    assert_eq!((counts.paper_bytes(), counts.stored_bytes()), (own, stored - recomputed));
    assert_eq!(format!("{:.0} %", 100.0 * (own / stored - 1.0)), "27 %");
    assert_eq!(counts.acoo_bytes(), 142.0);
}

/// n² squares with two triangles each have (n + 1)² vertices and 3 n² + 2 n edges; a row has an entry for its vertex
/// and for each edge. Figure 10: memory is proportional to the number of triangles.
#[test]
fn matrices_of_triangles_have_seven_entries_a_row() {
    let n = 6;
    let word = ("cell".to_owned(), Argument::Word("tri".to_owned()));
    let number = |name: &str, value: usize| (name.to_owned(), Argument::Number(value as f64));
    let arguments = BTreeMap::from([number("dim", 2), number("cells", n), word]);
    let mesh = Arc::new(generate("box", &arguments).expect("a mesh"));
    let entries = (n + 1) * (n + 1) + 2 * (3 * n * n + 2 * n);
    // Lists omit couplings of the 4 n boundary vertices (section IV.B). There are (n − 1)² other vertices, connected
    // along both sides and the diagonal of squares.
    let m = n - 1;
    let merged = m * m + 2 * (2 * m * (m - 1) + (m - 1) * (m - 1)) + 4 * n;
    for assembly in Assembly::ALL {
        let how = Representation::Assembled(assembly);
        let found = measured(&mesh, 1, how, &interpreted()).expect("a matrix");
        let wanted = if assembly == Assembly::Acoo { merged } else { entries };
        assert_eq!(found.size.entries, wanted, "{assembly}");
        assert!(found.size.elements >= 9 * 2 * n * n, "{assembly}");
    }
    let of = |n: f64| CellCounts {
        unknowns: 3.0,
        rows: (n + 1.0).powi(2) / (2.0 * n * n),
        entries: (7.0 * n * n + 6.0 * n + 1.0) / (2.0 * n * n),
    };
    assert_eq!(format!("{:.0}", of(1e3).paper_bytes()), PAPER_BYTES[2].to_string());
}

/// Kronbichler and Kormann, section 1: entries per row grow as p^d. On a line of n cells they are n (p − 1) (p + 1) of
/// interior nodes, (n − 1) (2 p + 1) between cells and 2 (p + 1) at the ends.
#[test]
fn matrices_have_the_entries_that_are_foretold() {
    let line = |cells: f64, p: f64| {
        cells * (p - 1.0) * (p + 1.0) + (cells - 1.0) * (2.0 * p + 1.0) + 2.0 * (p + 1.0)
    };
    for problem in &kronbichler::PROBLEMS {
        let (dim, components) = (problem.dim, problem.components);
        let mesh = problem.mesh(2, 60).expect("a mesh");
        let a_side = (mesh.n_cells() as f64).powf(1.0 / dim as f64).round();
        let mut products = Vec::new();
        for how in [Representation::MatrixFree, MATRIX] {
            let mut product =
                Product::of(&problem.case, 2, &mesh, how, &interpreted()).expect("a product");
            product.set_state(|x| x[0] * x[1]).expect("a state");
            product.linearise().expect("a derivative");
            products.push((product.result().expect("a product"), product.entries()));
        }
        let [(free, 0), (matrix, entries)] = &products[..] else { panic!("{products:?}") };
        let wanted = line(a_side, 2.0).powi(dim as i32) * (components * components) as f64;
        assert_eq!(*entries as f64, wanted, "{}", problem.case.name);
        // Entries of x are at most a half, coefficients at most 10, and a row has fewer than 400 terms.
        for (a, b) in free.iter().zip(matrix) {
            assert_close!(
                *a,
                BoundedValue::with_scale(*b, 1e4),
                f64::EPSILON,
                "{}",
                problem.case.name
            );
        }
        // With many cells the surface of a box becomes negligible.
        let (many, p) = (1e6, 5.0);
        let mean = line(many, p) / (many * p + 1.0);
        let foretold = kronbichler::entries(dim, 5, components, 1.0) / components as f64;
        assert_eq!(format!("{:.3}", mean.powi(dim as i32)), format!("{foretold:.3}"));
    }
}
