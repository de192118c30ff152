//! Every rule against the integrals of monomials.

use super::*;

const EPS: f64 = f64::EPSILON;

fn factorial(n: usize) -> f64 {
    (1..=n).map(|i| i as f64).product()
}

/// Returns ∫ x^a y^b z^c over the reference cell.
fn monomial_integral(cell: Cell, exponents: [usize; 3]) -> f64 {
    if cell.is_tensor() {
        exponents[..cell.dim()].iter().map(|&e| 1.0 / (e as f64 + 1.0)).product()
    } else {
        let total: usize = exponents.iter().sum();
        exponents.iter().map(|&e| factorial(e)).product::<f64>() / factorial(total + cell.dim())
    }
}

/// Returns the error of the rule on a monomial, relative to the integral.
fn error(rule: &[([f64; 3], f64)], cell: Cell, exponents: [usize; 3]) -> f64 {
    let power = |p: &[f64; 3]| -> f64 { (0..3).map(|c| p[c].powi(exponents[c] as i32)).product() };
    let sum: f64 = rule.iter().map(|(p, w)| w * power(p)).sum();
    let want = monomial_integral(cell, exponents);
    (sum - want).abs() / want
}

fn exponents(dim: usize, degree: usize) -> impl Iterator<Item = [usize; 3]> {
    let z_range = if dim == 3 { 0..=degree } else { 0..=0 };
    z_range.flat_map(move |c| (0..=degree - c).map(move |b| [degree - b - c, b, c]))
}

#[test]
fn simplex_rules_are_exact_to_their_degree() {
    for (cell, top) in [(Cell::Triangle, 36), (Cell::Tetrahedron, 20)] {
        for degree in 0..=top {
            let rule = Rule::Simplex { cell, degree }.points_and_weights();
            for total in 0..=degree {
                for e in exponents(cell.dim(), total) {
                    // Points are rounded once, so that a power of them loses up to `total` roundings.
                    let bound = EPS * (64.0 + 16.0 * total as f64);
                    let error = error(&rule, cell, e);
                    assert!(error <= bound, "{cell} {degree} {e:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn simplex_rules_are_exact_to_their_degree_only() {
    // A table shifted by one entry would be detected; degree 3 of the triangle is the rule of degree 4.
    for (cell, degree) in [(Cell::Triangle, 2), (Cell::Triangle, 8), (Cell::Tetrahedron, 5)] {
        let rule = Rule::Simplex { cell, degree }.points_and_weights();
        let worst =
            exponents(cell.dim(), degree + 1).map(|e| error(&rule, cell, e)).fold(0.0, f64::max);
        assert!(worst > 1024.0 * EPS, "{cell} {degree}");
    }
}

#[test]
fn tensor_rules_are_exact_to_their_degree() {
    for cell in [Cell::Interval, Cell::Quadrilateral, Cell::Hexahedron] {
        for n in 2..=6 {
            for line in [LinePoints::Gauss(n), LinePoints::GaussLobatto(n)] {
                let rule = Rule::Tensor { cell, line };
                assert_eq!(rule.count(), rule.points().len());
                let rule = rule.points_and_weights();
                let top = line.exact_degree();
                for a in 0..=top {
                    let mut e = [a, (a + 1) % (top + 1), top - a];
                    e[cell.dim()..].fill(0);
                    let error = error(&rule, cell, e);
                    assert!(error <= 128.0 * EPS, "{cell} {line:?} {e:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn points_lie_inside_and_weights_are_positive() {
    for (cell, top) in [(Cell::Triangle, 36), (Cell::Tetrahedron, 20)] {
        for degree in 0..=top {
            for (point, weight) in (Rule::Simplex { cell, degree }).points_and_weights() {
                assert!(weight > 0.0);
                assert!(point[..cell.dim()].iter().all(|&x| x > 0.0));
                assert!(point.iter().sum::<f64>() < 1.0, "{cell} {degree} {point:?}");
            }
        }
    }
}

#[test]
fn x_is_fastest() {
    let rule = Rule::Tensor { cell: Cell::Hexahedron, line: LinePoints::Gauss(3) };
    let (points, x) = (rule.points(), LinePoints::Gauss(3).points());
    assert_eq!(points[1], [x[1], x[0], x[0]]);
    assert_eq!(points[9], [x[0], x[0], x[1]]);
}

#[test]
fn the_default_rule_is_the_language_s() {
    let text = |cell, k, g, d| default_rule(cell, k, g, d).to_string();
    assert_eq!(
        text(Cell::Hexahedron, 2, 1, None),
        "Gauss 3 × 3 × 3, exact to degree 5 in each direction"
    );
    assert_eq!(
        text(Cell::Quadrilateral, 2, 2, Some(8)),
        "Gauss 5 × 5, exact to degree 9 in each direction"
    );
    // Curved cells need more points.
    assert_eq!(
        default_rule(Cell::Quadrilateral, 2, 2, None).line().map(LinePoints::count),
        Some(4)
    );
    assert_eq!(default_rule(Cell::Hexahedron, 1, 4, None).line().map(LinePoints::count), Some(4));
    assert_eq!(text(Cell::Triangle, 1, 1, None), "Xiao-Gimbutas, 3 points, exact to degree 2");
    assert_eq!(
        default_rule(Cell::Tetrahedron, 2, 2, None),
        Rule::Simplex { cell: Cell::Tetrahedron, degree: 5 }
    );
    assert_eq!(
        default_rule(Cell::Tetrahedron, 2, 2, Some(7)),
        Rule::Simplex { cell: Cell::Tetrahedron, degree: 7 }
    );
    assert_eq!(
        text(Cell::Tetrahedron, 8, 1, None),
        "collapsed Gauss-Jacobi, 729 points, exact to degree 16"
    );
}
