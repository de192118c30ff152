//! Affine constraints between arbitrary degrees of freedom: user rows are resolved to [`AffineConstraints`] with
//! dependent ones on the left only.
//!
//! ```text
//! u_i = Σ_j c_ij u_j + g_i        or as a matrix        u = C u_free + g
//! ```
//!
//! Rows may depend on degrees of freedom of other rows; such chains are resolved by substitution. A cyclic dependency
//! has no closed form; the error names its members. Terms in degrees of freedom with an essential boundary condition
//! are separate, because directions are 0 there.

use std::collections::{HashMap, HashSet};

/// Constraint u_i = Σ_j c_ij u_j + g_i. Entries are numbered as in a vector: field by field, node by node, components
/// interleaved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AffineConstraint {
    /// i.
    pub unknown: usize,
    /// (j, c_ij); terms of one unknown are added up.
    pub terms: Vec<(usize, f64)>,
    /// g_i.
    pub value: f64,
}

impl AffineConstraint {
    /// Creates the constraint u_i = 0, without terms.
    pub fn new(unknown: usize) -> Self {
        Self { unknown, terms: Vec::new(), value: 0.0 }
    }

    /// Adds the term c u_j.
    #[must_use]
    pub fn plus(mut self, coefficient: f64, unknown: usize) -> Self {
        self.terms.push((unknown, coefficient));
        self
    }

    /// Sets g.
    #[must_use]
    pub fn with_value(self, value: f64) -> Self {
        Self { value, ..self }
    }

    /// Solves Σ_j a_j u_j = b for the degree of freedom with the largest |a_j| among those that `free` allows; `None`
    /// if there is none.
    pub fn of_equation(
        terms: &[(usize, f64)],
        b: f64,
        free: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let terms = summed(terms);
        let allowed = terms.iter().filter(|(unknown, a)| *a != 0.0 && free(*unknown));
        // The first of several with the same size.
        let largest = allowed.rev().max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
        let &(unknown, pivot) = largest;
        let others = terms.iter().filter(|(other, _)| *other != unknown);
        let terms = others.map(|&(other, a)| (other, -a / pivot)).collect();
        Some(Self { unknown, terms, value: b / pivot })
    }
}

/// Returns the terms in the order of first occurrence, with equal degrees of freedom combined.
fn summed(terms: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let (mut sums, mut places) = (Vec::<(usize, f64)>::with_capacity(terms.len()), HashMap::new());
    for &(unknown, a) in terms {
        let place = *places.entry(unknown).or_insert(sums.len());
        match sums.get_mut(place) {
            Some((_, sum)) => *sum += a,
            None => sums.push((unknown, a)),
        }
    }
    sums
}

/// Error of a set of constraints. The caller supplies descriptions of degrees of freedom.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AffineError {
    /// An unknown degree of freedom.
    #[error("a constraint names unknown {unknown}, but there are {unknowns}, numbered from 0")]
    Missing {
        /// The number.
        unknown: usize,
        /// The number of degrees of freedom.
        unknowns: usize,
    },
    /// A coefficient that is not finite.
    #[error("the constraint of {place} has {value} among its numbers")]
    NotFinite {
        /// The dependent degree of freedom.
        place: String,
        /// The value.
        value: f64,
    },
    /// Two rows for one degree of freedom.
    #[error(
        "{place} is given by two constraints\nhelp: solve one of them for another of its unknowns"
    )]
    Twice {
        /// The degree of freedom.
        place: String,
    },
    /// A degree of freedom with an essential boundary condition.
    #[error(
        "{place} is given by a constraint, and by an essential condition too\n\
         help: leave out the constraint, or solve it for an unknown without a condition"
    )]
    Fixed {
        /// The degree of freedom.
        place: String,
    },
    /// A cyclic dependency.
    #[error(
        "constraints give {} by itself: {}\n\
         help: solve one of these constraints for another of its unknowns",
        .places[0], chain(.places)
    )]
    Cycle {
        /// The degrees of freedom; each depends on the next, and the last on the first.
        places: Vec<String>,
    },
}

/// Number of members of a cycle in a message.
const NAMED: usize = 6;

fn chain(places: &[String]) -> String {
    let mut named: Vec<&str> = places.iter().take(NAMED).map(String::as_str).collect();
    let left = places.len() - named.len();
    let more = format!("{left} more");
    if left > 0 {
        named.push(&more);
    }
    named.push(&places[0]);
    named.join(" → ")
}

/// Resolved rows u_i = Σ_j c_ij u_j + Σ_k c_ik u_k + g_i: the u_j are free (no row, no condition), the u_k have an
/// essential boundary condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AffineConstraints {
    /// The dependent degrees of freedom, ascending.
    unknowns: Vec<u32>,
    terms: TermLists,
    fixed: TermLists,
    values: Vec<f64>,
}

/// A list per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TermLists {
    /// The start of each list, and the end of the last.
    pub starts: Vec<usize>,
    /// (index, coefficient), ascending in each list.
    pub entries: Vec<(u32, f64)>,
}

impl TermLists {
    /// Returns the list of a row.
    pub fn of(&self, row: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }

    fn close(&mut self) {
        self.starts.push(self.entries.len());
    }
}

/// Progress of the substitution of a row.
enum RowState {
    New,
    /// In progress: the next of its terms to visit.
    Open(usize),
    Closed,
}

impl AffineConstraints {
    /// Resolves rows on `n` degrees of freedom. `conditions` have essential boundary conditions; `place` describes a
    /// degree of freedom for messages.
    ///
    /// # Errors
    ///
    /// The first row that is invalid or contradicts others: see [`AffineError`].
    pub fn close(
        n: usize,
        rows: &[AffineConstraint],
        conditions: impl Iterator<Item = usize>,
        place: impl Fn(usize) -> String,
    ) -> Result<Self, AffineError> {
        let fixed: HashSet<usize> = conditions.collect();
        let mut given = HashMap::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            let named = row.terms.iter().map(|(unknown, _)| *unknown).chain([row.unknown]);
            if let Some(unknown) = named.into_iter().find(|unknown| *unknown >= n) {
                return Err(AffineError::Missing { unknown, unknowns: n });
            }
            let numbers = row.terms.iter().map(|(_, coefficient)| *coefficient).chain([row.value]);
            if let Some(value) = numbers.into_iter().find(|number| !number.is_finite()) {
                return Err(AffineError::NotFinite { place: place(row.unknown), value });
            }
            if fixed.contains(&row.unknown) {
                return Err(AffineError::Fixed { place: place(row.unknown) });
            }
            if given.insert(row.unknown, number).is_some() {
                return Err(AffineError::Twice { place: place(row.unknown) });
            }
        }
        let closed = close_chains(rows, &given).map_err(|cycle| AffineError::Cycle {
            places: cycle.into_iter().map(|number| place(rows[number].unknown)).collect(),
        })?;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|&number| rows[number].unknown);
        let empty = || TermLists { starts: vec![0], entries: Vec::new() };
        let mut affine =
            Self { unknowns: Vec::new(), terms: empty(), fixed: empty(), values: Vec::new() };
        for number in order {
            let ResolvedRow { terms, value } = &closed[number];
            affine.unknowns.push(rows[number].unknown as u32);
            affine.values.push(*value);
            for &(unknown, coefficient) in terms {
                let lists = match fixed.contains(&unknown) {
                    false => &mut affine.terms,
                    true => &mut affine.fixed,
                };
                lists.entries.push((unknown as u32, coefficient));
            }
            affine.terms.close();
            affine.fixed.close();
        }
        Ok(affine)
    }

    /// Returns the number of dependent degrees of freedom.
    pub fn len(&self) -> usize {
        self.unknowns.len()
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.unknowns.is_empty()
    }

    /// Returns the largest number of free terms of a row.
    pub fn widest(&self) -> usize {
        (0..self.len()).map(|row| self.terms.of(row).len()).max().unwrap_or(0)
    }

    /// Returns the dependent degrees of freedom, ascending.
    pub fn unknowns(&self) -> &[u32] {
        &self.unknowns
    }

    /// Returns the row of a degree of freedom, if it is dependent.
    pub fn row_of(&self, unknown: usize) -> Option<usize> {
        let unknown = u32::try_from(unknown).ok()?;
        self.unknowns.binary_search(&unknown).ok()
    }

    /// Returns a row as the equation u_i − Σ_j c_ij u_j = g_i: all degrees of freedom with their coefficients.
    pub fn equation(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let terms = self.terms.of(row).iter().chain(self.fixed.of(row));
        let terms = terms.map(|&(unknown, c)| (unknown as usize, -c));
        std::iter::once((self.unknowns[row] as usize, 1.0)).chain(terms)
    }

    /// Returns (j, c_ij) of each row, for free degrees of freedom.
    pub fn terms(&self) -> &TermLists {
        &self.terms
    }

    /// Returns (k, c_ik) of each row, for degrees of freedom with an essential boundary condition.
    pub fn fixed(&self) -> &TermLists {
        &self.fixed
    }

    /// Returns g_i of each row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Sets dependent entries, u ← C u + g.
    pub fn impose(&self, u: &mut [f64]) {
        for (row, &unknown) in self.unknowns.iter().enumerate() {
            let terms = self.terms.of(row).iter().chain(self.fixed.of(row));
            let sum: f64 = terms.map(|&(other, c)| c * u[other as usize]).sum();
            u[unknown as usize] = self.values[row] + sum;
        }
    }

    /// Returns for each free degree of freedom in any row ascending, the rows and coefficients: Cᵀ.
    pub fn transposed(&self) -> (Vec<u32>, TermLists) {
        let rows = 0..self.len();
        let entries =
            rows.flat_map(|row| self.terms.of(row).iter().map(move |&(j, c)| (j, row, c)));
        let mut entries: Vec<(u32, usize, f64)> = entries.collect();
        entries.sort_unstable_by_key(|&(unknown, row, _)| (unknown, row));
        let (mut unknowns, mut lists) =
            (Vec::new(), TermLists { starts: vec![0], entries: Vec::new() });
        for own in entries.chunk_by(|a, b| a.0 == b.0) {
            unknowns.push(own[0].0);
            lists.entries.extend(own.iter().map(|&(_, row, c)| (self.unknowns[row], c)));
            lists.close();
        }
        (unknowns, lists)
    }
}

/// A resolved row.
#[derive(Clone, Debug, Default)]
struct ResolvedRow {
    /// Ascending, one term per degree of freedom.
    terms: Vec<(usize, f64)>,
    value: f64,
}

/// Substitutes rows into each other, depth first without recursion: chains may be as long as a mesh.
///
/// # Errors
///
/// The rows of a cycle, each of which depends on the next.
fn close_chains(
    rows: &[AffineConstraint],
    given: &HashMap<usize, usize>,
) -> Result<Vec<ResolvedRow>, Vec<usize>> {
    let mut states: Vec<RowState> = rows.iter().map(|_| RowState::New).collect();
    let mut closed = vec![ResolvedRow::default(); rows.len()];
    let mut path = Vec::new();
    for first in 0..rows.len() {
        path.push(first);
        while let Some(&number) = path.last() {
            let from = match states[number] {
                RowState::Closed => {
                    path.pop();
                    continue;
                }
                RowState::New => 0,
                RowState::Open(next) => next,
            };
            let terms = &rows[number].terms[from..];
            let reads =
                terms.iter().position(|(unknown, c)| *c != 0.0 && given.contains_key(unknown));
            let Some(at) = reads else {
                closed[number] = inserted(&rows[number], given, &closed);
                states[number] = RowState::Closed;
                path.pop();
                continue;
            };
            states[number] = RowState::Open(from + at + 1);
            let next = given[&terms[at].0];
            match states[next] {
                RowState::New => path.push(next),
                RowState::Closed => {}
                RowState::Open(_) => {
                    let start = path.iter().position(|&open| open == next).unwrap_or(0);
                    return Err(path.split_off(start));
                }
            }
        }
    }
    Ok(closed)
}

/// Substitutes resolved rows into a row.
fn inserted(
    row: &AffineConstraint,
    given: &HashMap<usize, usize>,
    closed: &[ResolvedRow],
) -> ResolvedRow {
    let (mut terms, mut value) = (Vec::with_capacity(row.terms.len()), row.value);
    for &(unknown, c) in &row.terms {
        match given.get(&unknown) {
            None => terms.push((unknown, c)),
            Some(&other) if c != 0.0 => {
                let other = &closed[other];
                value += c * other.value;
                terms.extend(other.terms.iter().map(|&(unknown, own)| (unknown, c * own)));
            }
            Some(_) => {}
        }
    }
    // Stable, so that sums follow the order of the terms.
    terms.sort_by_key(|(unknown, _)| *unknown);
    let sums = terms.chunk_by(|a, b| a.0 == b.0);
    let sums = sums.map(|own| (own[0].0, own.iter().map(|(_, c)| c).sum::<f64>()));
    ResolvedRow { terms: sums.filter(|(_, c)| *c != 0.0).collect(), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(
        rows: &[AffineConstraint],
        conditions: &[usize],
    ) -> Result<AffineConstraints, AffineError> {
        AffineConstraints::close(10, rows, conditions.iter().copied(), |unknown| {
            format!("u{unknown}")
        })
    }

    #[test]
    fn chains_are_inserted_whatever_their_order() {
        // u1 = 2 u2 + 1, u2 = ½ u3 − u4 + 3, u3 = 4 u5: u1 = 4 u5 − 2 u4 + 7.
        let rows = [
            AffineConstraint::new(1).plus(2.0, 2).with_value(1.0),
            AffineConstraint::new(3).plus(4.0, 5),
            AffineConstraint::new(2).plus(0.5, 3).plus(-1.0, 4).with_value(3.0),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let rows = order.map(|at| rows[at].clone());
            let affine = close(&rows, &[4]).expect("no cycle");
            assert_eq!(affine.unknowns(), [1, 2, 3]);
            assert_eq!(affine.terms().of(0), [(5, 4.0)]);
            assert_eq!(affine.terms().of(1), [(5, 2.0)]);
            assert_eq!(affine.terms().of(2), [(5, 4.0)]);
            // u4 has a condition.
            assert_eq!(affine.fixed().of(0), [(4, -2.0)]);
            assert_eq!(affine.values(), [7.0, 3.0, 0.0]);
            let mut u = [0.0, -1.0, -1.0, -1.0, 10.0, 1.0, 0.0, 0.0, 0.0, 0.0];
            affine.impose(&mut u);
            assert_eq!(u[1..4], [4.0 - 20.0 + 7.0, 2.0 - 10.0 + 3.0, 4.0]);
            let (read, rows) = affine.transposed();
            assert_eq!(read, [5]);
            assert_eq!(rows.of(0), [(1, 4.0), (2, 2.0), (3, 4.0)]);
        }
    }

    #[test]
    fn terms_of_an_unknown_add_up() {
        let rows = [
            AffineConstraint::new(0).plus(1.0, 5).plus(2.0, 5).plus(1.0, 1),
            AffineConstraint::new(1).plus(-3.0, 5).plus(1.0, 6),
        ];
        let affine = close(&rows, &[]).expect("no cycle");
        assert_eq!(affine.terms().of(0), [(6, 1.0)]);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let n = 200_000;
        let rows: Vec<AffineConstraint> =
            (0..n).map(|i| AffineConstraint::new(i).plus(1.0, i + 1).with_value(1.0)).collect();
        let affine = AffineConstraints::close(n + 1, &rows, std::iter::empty(), |_| String::new());
        let affine = affine.expect("no cycle");
        assert_eq!(affine.terms().of(0), [(n as u32, 1.0)]);
        assert_eq!(affine.values()[0], n as f64);
    }

    #[test]
    fn cycles_are_named_in_their_order() {
        let rows = [
            AffineConstraint::new(7).plus(1.0, 1),
            AffineConstraint::new(1).plus(0.5, 8).plus(1.0, 2),
            AffineConstraint::new(2).plus(1.0, 3),
            AffineConstraint::new(3).plus(0.25, 1),
        ];
        let error = close(&rows, &[]).expect_err("a cycle");
        let places = ["u1", "u2", "u3"].map(str::to_owned).into();
        assert_eq!(error, AffineError::Cycle { places });
        assert!(error.to_string().contains("u1 → u2 → u3 → u1"), "{error}");
        let itself = close(&[AffineConstraint::new(4).plus(2.0, 4)], &[]).expect_err("itself");
        assert!(itself.to_string().contains("u4 → u4"), "{itself}");
        // A zero term is ignored.
        assert!(close(&[AffineConstraint::new(4).plus(0.0, 4)], &[]).is_ok());
    }

    #[test]
    fn what_is_no_constraint_is_refused() {
        let one = || AffineConstraint::new(1).plus(1.0, 2);
        let refused = |rows: &[AffineConstraint], conditions: &[usize]| {
            close(rows, conditions).expect_err("refused").to_string()
        };
        assert!(refused(&[one(), one()], &[]).contains("u1 is given by two constraints"));
        assert!(refused(&[one()], &[1]).contains("an essential condition too"));
        assert!(refused(&[one().with_value(f64::NAN)], &[]).contains("u1 has NaN"));
        assert!(refused(&[one().plus(1.0, 10)], &[]).contains("unknown 10, but there are 10"));
    }

    #[test]
    fn equations_are_solved_for_the_largest_that_is_free() {
        let terms = [(0, 2.0), (1, -8.0), (2, 4.0), (3, 4.0)];
        let row = AffineConstraint::of_equation(&terms, 2.0, |unknown| unknown != 1)
            .expect("one is free");
        assert_eq!(
            row,
            AffineConstraint {
                unknown: 2,
                terms: vec![(0, -0.5), (1, 2.0), (3, -1.0)],
                value: 0.5
            }
        );
        assert!(AffineConstraint::of_equation(&terms, 2.0, |_| false).is_none());
    }
}
