//! Points, weights and tables against published digits and against polynomials.

use super::*;
use quadraturerules::{Domain, QuadratureRule, single_integral_quadrature};

const EPS: f64 = f64::EPSILON;

fn families(n: usize) -> Vec<LinePoints> {
    let mut all = vec![LinePoints::Gauss(n)];
    if n >= 2 {
        all.extend([LinePoints::GaussLobatto(n), LinePoints::Equispaced(n)]);
    }
    all
}

fn published(rule: QuadratureRule, order: usize) -> Vec<(f64, f64)> {
    let (points, weights) =
        single_integral_quadrature(rule, Domain::Interval, order).expect("a published rule");
    let mut pairs: Vec<_> = weights.iter().zip(points.chunks(2)).map(|(&w, p)| (p[1], w)).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    pairs
}

#[test]
fn points_and_weights_agree_with_published_ones() {
    let check = |family: LinePoints, rule, order| {
        let published = published(rule, order);
        let (points, weights) = (family.points(), family.weights());
        assert_eq!(published.len(), points.len());
        for (i, &(point, weight)) in published.iter().enumerate() {
            // The published digits themselves carry a few roundings.
            assert!((points[i] - point).abs() <= 4.0 * EPS, "{family:?} point {i}");
            assert!((weights[i] - weight).abs() <= 4.0 * EPS, "{family:?} weight {i}");
        }
    };
    for n in 1..=21 {
        check(LinePoints::Gauss(n), QuadratureRule::GaussLegendre, n);
    }
    for n in 3..=21 {
        check(LinePoints::GaussLobatto(n), QuadratureRule::GaussLobattoLegendre, n - 2);
    }
}

#[test]
fn known_digits_are_met_to_the_last_bit() {
    assert_eq!(LinePoints::Gauss(1).points(), [0.5]);
    assert_eq!(LinePoints::GaussLobatto(2).points(), [0.0, 1.0]);
    assert_eq!(LinePoints::GaussLobatto(3).points(), [0.0, 0.5, 1.0]);
    assert_eq!(LinePoints::GaussLobatto(3).weights(), [1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0]);
    let (points, weights) = (LinePoints::Gauss(20).points(), LinePoints::Gauss(20).weights());
    assert_eq!(points[..2], [0.003_435_700_407_452_537_7, 0.018_014_036_361_043_106]);
    assert_eq!(weights[..2], [0.008_807_003_569_576_059, 0.020_300_714_900_193_47]);
    assert_eq!(LinePoints::Gauss(2).points()[1], 0.788_675_134_594_812_9);
    assert_eq!(LinePoints::Gauss(3).weights(), [5.0 / 18.0, 4.0 / 9.0, 5.0 / 18.0]);
}

#[test]
fn rules_are_exact_to_their_degree_and_no_further() {
    for n in 1..=24 {
        // The weights of many equispaced points grow and change sign.
        let stable = |f: &LinePoints| n <= 8 || !matches!(f, LinePoints::Equispaced(_));
        for family in families(n).into_iter().filter(stable) {
            let (points, weights) = (family.points(), family.weights());
            let error = |degree: usize| -> f64 {
                let sum: f64 =
                    points.iter().zip(&weights).map(|(x, w)| w * x.powi(degree as i32)).sum();
                (sum - 1.0 / (degree as f64 + 1.0)).abs()
            };
            for degree in 0..=family.exact_degree() {
                assert!(error(degree) <= 8.0 * EPS, "{family:?} degree {degree}");
            }
            if n <= 8 {
                assert!(error(family.exact_degree() + 1) > 64.0 * EPS, "{family:?}");
            }
        }
    }
}

#[test]
fn tables_are_centro_symmetric_bit_for_bit() {
    for n in 1..=14 {
        for q in 1..=16 {
            for nodes in families(n) {
                for points in families(q) {
                    let table = LineTable::new(nodes, points);
                    for a in 0..q {
                        for i in 0..n {
                            let (b, j) = (q - 1 - a, n - 1 - i);
                            assert_eq!(table.value(a, i).to_bits(), table.value(b, j).to_bits());
                            assert_eq!(table.derivative(a, i), -table.derivative(b, j));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn tables_interpolate_polynomials() {
    for n in 1..=13 {
        for q in [1, 2, n, n + 1, n + 2, 20] {
            for nodes in families(n) {
                for points in families(q) {
                    let table = LineTable::new(nodes, points);
                    let (from, to) = (nodes.points(), points.points());
                    for degree in 0..n as i32 {
                        for a in 0..q {
                            check_monomial(&table, &from, to[a], a, degree);
                        }
                    }
                }
            }
        }
    }
}

/// Compares Σ_i B\[a\]\[i\] x_i^degree and its derivative with x^degree, relative to Σ |terms|.
fn check_monomial(table: &LineTable, from: &[f64], x: f64, a: usize, degree: i32) {
    let power = |x: f64| x.powi(degree);
    let slope = if degree == 0 { 0.0 } else { f64::from(degree) * x.powi(degree - 1) };
    for (entries, want) in [(&table.values, power(x)), (&table.derivatives, slope)] {
        let row = &entries[a * from.len()..(a + 1) * from.len()];
        let terms = || row.iter().zip(from).map(|(b, &node)| b * power(node));
        let (sum, scale): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
        // A node is rounded once, so its power carries `degree` roundings.
        let bound = EPS * (scale + want.abs() + 1.0) * (8.0 + 2.0 * f64::from(degree));
        assert!((sum - want).abs() <= bound, "x = {x}, degree {degree}: {sum} for {want}");
    }
}

#[test]
fn tables_at_their_own_nodes_are_the_identity() {
    for n in 1..=13 {
        for family in families(n) {
            for table in [LineTable::new(family, family), LineTable::at(family, &family.points())] {
                for q in 0..n {
                    for i in 0..n {
                        assert_eq!(table.value(q, i), if q == i { 1.0 } else { 0.0 });
                    }
                }
            }
        }
    }
}

#[test]
fn tables_at_points_agree_with_family_tables() {
    for n in 2..=12 {
        let (nodes, points) = (LinePoints::GaussLobatto(n), LinePoints::Gauss(n + 1));
        let (table, at) = (LineTable::new(nodes, points), LineTable::at(nodes, &points.points()));
        for (a, b) in table.values.iter().zip(&at.values) {
            // The derivative is at most n², which times half a unit of the point bounds the change.
            assert!((a - b).abs() <= EPS * (n * n) as f64, "{a} {b}");
        }
    }
}
