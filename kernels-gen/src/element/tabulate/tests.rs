//! Tabulations against polynomials that the element must reproduce.

use super::*;
use crate::element::Lagrange;
use crate::element::{Cell, LinePoints};

const EPS: f64 = f64::EPSILON;

fn elements() -> Vec<Lagrange> {
    let mut all = Vec::new();
    for cell in Cell::ALL {
        for degree in 0..=6 {
            all.extend(Lagrange::continuous(cell, degree));
            all.extend(Lagrange::equispaced(cell, degree));
            all.extend(Lagrange::discontinuous(cell, degree));
        }
    }
    all
}

fn some_rule(cell: Cell, degree: usize) -> Rule {
    if cell.is_tensor() {
        Rule::Tensor { cell, line: LinePoints::Gauss(degree + 2) }
    } else {
        Rule::Simplex { cell, degree: 2 * degree + 1 }
    }
}

#[test]
fn a_basis_function_is_one_at_its_node_and_zero_at_the_others() {
    for element in elements() {
        let table = tabulate(element, &element.points());
        for q in 0..table.points {
            for i in 0..table.nodes {
                let want = if q == i { 1.0 } else { 0.0 };
                let error = (table.value(q, i) - want).abs();
                assert!(error <= EPS, "{element} {q} {i}: {error}");
            }
        }
    }
}

/// Exponents of the monomials that an element reproduces.
fn monomials(cell: Cell, degree: usize) -> Vec<[i32; 3]> {
    let top = |axis: usize| if axis < cell.dim() { degree } else { 0 };
    let mut all = Vec::new();
    for a in 0..=top(0) {
        for b in 0..=top(1) {
            for c in 0..=top(2) {
                if cell.is_tensor() || a + b + c <= degree {
                    all.push([a as i32, b as i32, c as i32]);
                }
            }
        }
    }
    all
}

fn monomial(e: [i32; 3], x: [f64; 3]) -> f64 {
    (0..3).map(|c| x[c].powi(e[c])).product()
}

fn derivative(e: [i32; 3], x: [f64; 3], axis: usize) -> f64 {
    if e[axis] == 0 {
        return 0.0;
    }
    let mut less = e;
    less[axis] -= 1;
    f64::from(e[axis]) * monomial(less, x)
}

#[test]
fn polynomials_and_their_gradients_are_reproduced() {
    for element in elements() {
        let (cell, degree) = (element.cell(), element.degree());
        // A sample of the points.
        let all = some_rule(cell, degree).points();
        let points: Vec<[f64; 3]> = all.iter().copied().step_by(1 + all.len() / 40).collect();
        let table = tabulate(element, &points);
        let nodes = element.points();
        for e in monomials(cell, degree) {
            let at_nodes: Vec<f64> = nodes.iter().map(|&x| monomial(e, x)).collect();
            let check = |entry: &dyn Fn(usize) -> f64, want: f64| {
                let terms = || at_nodes.iter().enumerate().map(|(i, u)| entry(i) * u);
                let (sum, scale): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
                // Every node, power and product is rounded.
                let bound = EPS * (8.0 + 4.0 * degree as f64) * (scale + want.abs() + 1.0);
                assert!((sum - want).abs() <= bound, "{element} {e:?}: {sum} for {want}");
            };
            for (q, &x) in points.iter().enumerate() {
                check(&|i| table.value(q, i), monomial(e, x));
                for axis in 0..cell.dim() {
                    check(&|i| table.gradient(q, i)[axis], derivative(e, x, axis));
                }
            }
        }
    }
}

#[test]
fn linear_simplices_have_exact_constant_gradients() {
    for cell in [Cell::Triangle, Cell::Tetrahedron] {
        let element = Lagrange::continuous(cell, 1).expect("degree 1");
        let table = tabulate(element, &[[0.2, 0.3, 0.1]]);
        assert_eq!(table.gradient(0, 0), &[-1.0; 3][..cell.dim()]);
        assert_eq!(table.gradient(0, 2), &[0.0, 1.0, 0.0][..cell.dim()]);
    }
}

#[test]
fn rule_tables_and_point_tables_agree() {
    for element in elements().into_iter().filter(|e| e.cell().is_tensor()) {
        let rule = some_rule(element.cell(), element.degree());
        let (a, b) = (tabulate_rule(element, rule), tabulate(element, &rule.points()));
        // A point moves by at most half a unit in the last place; Markov's inequality bounds the resulting change.
        let p = element.degree() as f64 + 1.0;
        for (x, y) in a.values.iter().zip(&b.values) {
            assert!((x - y).abs() <= 8.0 * EPS * p * p, "{element} {x} {y}");
        }
        for (x, y) in a.gradients.iter().zip(&b.gradients) {
            assert!((x - y).abs() <= 8.0 * EPS * p * p * p * p, "{element} {x} {y}");
        }
    }
}

#[test]
fn changing_the_nodes_and_back_is_the_identity() {
    for cell in Cell::ALL {
        for degree in 1..=6 {
            let ours = Lagrange::continuous(cell, degree).expect("a supported degree");
            let theirs = Lagrange::equispaced(cell, degree).expect("a supported degree");
            let to = interpolation(theirs, &ours.points());
            let from = interpolation(ours, &theirs.points());
            let n = ours.count();
            for i in 0..n {
                for j in 0..n {
                    let terms = || (0..n).map(|k| to[i * n + k] * from[k * n + j]);
                    let (sum, scale): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
                    let want = if i == j { 1.0 } else { 0.0 };
                    let bound = 64.0 * EPS * (scale + want + 1.0);
                    assert!((sum - want).abs() <= bound, "{cell} {degree} {i} {j}");
                }
            }
        }
    }
}

#[test]
fn warped_nodes_have_a_smaller_lebesgue_constant() {
    for (cell, degree) in [(Cell::Triangle, 4), (Cell::Triangle, 8), (Cell::Tetrahedron, 6)] {
        let points = some_rule(cell, 10).points();
        let constant = |element: Lagrange| {
            let table = tabulate(element, &points);
            let norm = |q: usize| (0..table.nodes).map(|i| table.value(q, i).abs()).sum::<f64>();
            (0..table.points).map(norm).fold(0.0, f64::max)
        };
        let ours = constant(Lagrange::continuous(cell, degree).expect("a supported degree"));
        let theirs = constant(Lagrange::equispaced(cell, degree).expect("a supported degree"));
        assert!(1.2 < ours && ours < 0.9 * theirs, "{cell} {degree}: {ours} and {theirs}");
    }
}
