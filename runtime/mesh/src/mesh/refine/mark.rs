//! Marking: selects the cells to refine or coarsen from squared error indicators.
//!
//! ```text
//! mark      the fewest cells with  Σ_marked η² ≥ θ Σ η²    (W. Dörfler, SIAM Journal on Numerical Analysis 33 (1996))
//! coarsen   the most cells with    Σ_marked η² ≤ share · Σ η²
//! ```
//!
//! Both select cells from one end of their sorted order, without sorting. Partitioning at the median halves the list of
//! open cells each time, which takes linear time (C.-M. Pfeiler and D. Praetorius, Mathematics of Computation 89
//! (2020)).
//!
//! Marks must not depend on rounding errors, which differ between machines. Squares are compared with [`BITS`] bits,
//! rounded to nearest; round numbers lie in the middle of the rounding intervals. Ties are broken by cell number. A sum
//! reaches its goal if it misses it by less than the fraction [`SLACK`].

use std::cmp::Ordering;

/// Significant bits of a square: rounding changes it by at most 10⁻⁶. A perturbation of 10⁻¹³ changes a comparison once
/// in ten million cells.
const BITS: u32 = 20;

/// Fraction of a goal that rounding errors may take.
const SLACK: f64 = 1e-10;

/// Error of the marking.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MarkError {
    /// A square that is negative or not finite.
    #[error("the square of cell {cell} is {value}, which is no square")]
    NoSquare {
        /// The cell.
        cell: usize,
        /// Its square.
        value: f64,
    },
    /// All squares are 0.
    #[error(
        "there is nothing to mark: no cell has an error\nhelp: stop here; the solution is exact up to rounding"
    )]
    Nothing,
    /// A fraction that is out of range.
    #[error(
        "a part of {part} of the squares cannot be marked\nhelp: take a number above 0 and at most 1"
    )]
    Part {
        /// The fraction.
        part: f64,
    },
}

/// Returns the smallest set of cells with at least `fraction` of the sum of squares.
///
/// # Errors
///
/// The fraction is not in (0, 1], a square is invalid, or all are 0.
pub fn mark(squares: &[f64], fraction: f64) -> Result<Vec<bool>, MarkError> {
    if !(fraction > 0.0 && fraction <= 1.0) {
        return Err(MarkError::Part { part: fraction });
    }
    let (squares, total) = rounded(squares)?;
    if total == 0.0 {
        return Err(MarkError::Nothing);
    }
    let goal = fraction * total * (1.0 - SLACK);
    let largest_first = |a: &usize, b: &usize| squares[*b].total_cmp(&squares[*a]).then(a.cmp(b));
    let mut marked = vec![false; squares.len()];
    let found = first(&squares, |sum| sum >= goal, largest_first);
    found.taken.into_iter().chain(found.next).for_each(|cell| marked[cell] = true);
    Ok(marked)
}

/// Returns the largest set of cells with at most `share` of the sum of squares; all cells if all squares are 0. The
/// caller has to find complete families among them.
///
/// # Errors
///
/// The share is not in [0, 1], or a square is invalid.
pub fn coarsen(squares: &[f64], share: f64) -> Result<Vec<bool>, MarkError> {
    if !(0.0..=1.0).contains(&share) {
        return Err(MarkError::Part { part: share });
    }
    let (squares, total) = rounded(squares)?;
    let most = share * total * (1.0 + SLACK);
    let smallest_first = |a: &usize, b: &usize| squares[*a].total_cmp(&squares[*b]).then(a.cmp(b));
    let mut marked = vec![false; squares.len()];
    let found = first(&squares, |sum| sum > most, smallest_first);
    found.taken.into_iter().for_each(|cell| marked[cell] = true);
    Ok(marked)
}

/// Returns the rounded squares and their sum.
fn rounded(squares: &[f64]) -> Result<(Vec<f64>, f64), MarkError> {
    let unusable = |square: &f64| !(square.is_finite() && *square >= 0.0);
    if let Some(cell) = squares.iter().position(unusable) {
        return Err(MarkError::NoSquare { cell, value: squares[cell] });
    }
    // Scale by a power of two, in two steps: sums neither overflow nor underflow, and scaling is exact.
    let largest = squares.iter().fold(0.0f64, |most, square| most.max(*square));
    let power = if largest > 0.0 { -largest.log2().floor() as i32 } else { 0 };
    let steps = [power / 2, power - power / 2].map(|power| 2f64.powi(power));
    let rest = f64::MANTISSA_DIGITS - BITS;
    let near = |square: &f64| {
        let half = 1u64 << (rest - 1);
        f64::from_bits(((square * steps[0] * steps[1]).to_bits() + half) >> rest << rest)
    };
    let scaled: Vec<f64> = squares.iter().map(near).collect();
    let total = scaled.iter().sum();
    Ok((scaled, total))
}

/// The position in an order at which a sum satisfies a condition.
struct SelectedPrefix {
    /// The cells before it, unordered.
    taken: Vec<usize>,
    /// The cell at which it does, if any.
    next: Option<usize>,
}

/// Returns the first cells of an order until their sum satisfies `there`, and the cell with which it does.
fn first(
    squares: &[f64],
    there: impl Fn(f64) -> bool,
    order: impl Fn(&usize, &usize) -> Ordering,
) -> SelectedPrefix {
    let mut cells: Vec<usize> = (0..squares.len()).collect();
    let (mut open, mut sum) = (0..cells.len(), 0.0);
    while open.len() > 1 {
        let middle = open.len() / 2;
        let own = &mut cells[open.clone()];
        own.select_nth_unstable_by(middle, &order);
        let before: f64 = own[..middle].iter().map(|&cell| squares[cell]).sum();
        if there(sum + before) {
            open.end = open.start + middle;
        } else {
            sum += before;
            open.start += middle;
        }
    }
    let last = cells.get(open.start).copied().filter(|_| !open.is_empty());
    let next = last.filter(|&cell| there(sum + squares[cell]));
    let end = open.start + usize::from(last.is_some() && next.is_none());
    cells.truncate(end);
    SelectedPrefix { taken: cells, next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fem_dsl::testing::Random;
    use std::cell::Cell;

    fn count(marked: &[bool]) -> usize {
        marked.iter().filter(|marked| **marked).count()
    }

    /// Squares with many ties, some zeros, and some very small values.
    fn squares(random: &mut Random, n: usize) -> Vec<f64> {
        let square = |random: &mut Random| match random.below(4) {
            0 => 0.0,
            1 => [1.0, 0.25, 3.0][random.below(3)],
            2 => random.unit(),
            _ => 1e-9 * random.unit(),
        };
        (0..n).map(|_| square(random)).collect()
    }

    #[test]
    fn no_smaller_set_has_as_much_and_no_larger_one_as_little() {
        let mut random = Random(11);
        let mut seen = 0;
        for round in 0..400 {
            let all = squares(&mut random, 1 + round % 11);
            let total: f64 = all.iter().sum();
            let part = [0.1, 0.3, 0.5, 0.9, 1.0][random.below(5)];
            let sum = |set: usize| -> f64 {
                (0..all.len()).filter(|i| set >> i & 1 == 1).map(|i| all[i]).sum()
            };
            // Squares are compared to a relative 10⁻⁶.
            let near = 1e-5 * total;
            let sets = || 0..1usize << all.len();
            if total == 0.0 {
                assert_eq!(mark(&all, part), Err(MarkError::Nothing));
                assert_eq!(coarsen(&all, part).map(|all| count(&all)), Ok(all.len()));
                continue;
            }
            seen += 1;
            let marked = mark(&all, part).expect("marks");
            let has: f64 = all.iter().zip(&marked).filter(|(_, m)| **m).map(|(s, _)| s).sum();
            assert!(has >= part * total - near, "{all:?} {part}");
            let fewer = sets().filter(|set| (set.count_ones() as usize) < count(&marked));
            assert!(fewer.clone().all(|set| sum(set) < part * total + near), "{all:?} {part}");
            let small = coarsen(&all, part).expect("marks");
            let has: f64 = all.iter().zip(&small).filter(|(_, m)| **m).map(|(s, _)| s).sum();
            assert!(has <= part * total + near, "{all:?} {part}");
            let more = sets().filter(|set| set.count_ones() as usize > count(&small));
            assert!(more.clone().all(|set| sum(set) > part * total - near), "{all:?} {part}");
        }
        assert!(seen > 300, "{seen}");
    }

    #[test]
    fn equals_go_by_their_numbers_and_thirds_are_thirds() {
        let marked = mark(&[1.0; 10], 0.3).expect("marks");
        assert_eq!(marked, [[true; 3].as_slice(), &[false; 7]].concat());
        let small = coarsen(&[2.0, 1.0, 1.0, 1.0, 1.0], 1.0 / 3.0).expect("marks");
        assert_eq!(small, [false, true, true, false, false]);
    }

    #[test]
    fn rounding_moves_no_marks() {
        let mut random = Random(5);
        let values = squares(&mut random, 4000);
        for part in [0.2, 0.5, 0.8] {
            let marked = mark(&values, part).expect("marks");
            let small = coarsen(&values, part / 10.0).expect("marks");
            for _ in 0..20 {
                let moved = values.iter().map(|square| square * (1.0 + 1e-13 * random.unit()));
                let moved: Vec<f64> = moved.collect();
                assert_eq!(mark(&moved, part).expect("marks"), marked);
                assert_eq!(coarsen(&moved, part / 10.0).expect("marks"), small);
            }
        }
    }

    #[test]
    fn what_is_no_square_is_named() {
        let error = mark(&[1.0, f64::NAN], 0.5).expect_err("no square");
        assert!(error.to_string().contains("cell 1"), "{error}");
        assert!(coarsen(&[1.0, 2.0, -1.0], 0.5).is_err());
        assert!(mark(&[f64::INFINITY], 0.5).is_err());
        assert_eq!(mark(&[1.0], 0.0), Err(MarkError::Part { part: 0.0 }));
        assert!(coarsen(&[1.0], f64::NAN).is_err());
        assert_eq!(mark(&[0.0; 3], 0.5), Err(MarkError::Nothing));
        assert_eq!(mark(&[], 0.5), Err(MarkError::Nothing));
        assert_eq!(coarsen(&[], 0.5), Ok(Vec::new()));
        // Sums of these would overflow, and their squares underflow.
        assert_eq!(mark(&[f64::MAX; 4], 0.5).map(|marked| count(&marked)), Ok(2));
        assert_eq!(mark(&[5e-324; 4], 0.5).map(|marked| count(&marked)), Ok(2));
    }

    #[test]
    fn it_takes_linear_time() {
        let mut random = Random(3);
        let comparisons = |random: &mut Random, n: usize| {
            let values: Vec<f64> = (0..n).map(|_| random.unit()).collect();
            let (compared, total) = (Cell::new(0usize), values.iter().sum::<f64>());
            let order = |a: &usize, b: &usize| {
                compared.set(compared.get() + 1);
                values[*b].total_cmp(&values[*a]).then(a.cmp(b))
            };
            first(&values, |sum| sum >= 0.4 * total, order);
            compared.get()
        };
        for n in [1000, 10_000, 100_000] {
            let found = comparisons(&mut random, n);
            // Sorting would take n log₂ n comparisons: 17 n for the last case.
            assert!(found < 9 * n, "{found} comparisons of {n}");
        }
    }
}
