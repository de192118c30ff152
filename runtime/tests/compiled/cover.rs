//! Covering arrays: few rows that hold every required combination of choices at least once.
//!
//! A row picks one level of every factor. Rows are made one after another (D. M. Cohen, S. R. Dalal,
//! M. L. Fredman, G. C. Patton, "The AETG system", IEEE Trans. Softw. Eng. 23, 1997): the first
//! combination that is still missing is fixed, the other factors are filled in random order, each
//! with the level that brings most missing pairs, and of several such rows the best is kept.

pub(crate) use fem_dsl::testing::Random;
use std::collections::{BTreeMap, BTreeSet};

/// A level of each factor.
pub(crate) type Row = Vec<usize>;

/// Levels of some factors, in the order of the factors.
type Part = Vec<(usize, usize)>;

/// Rows tried for one combination before it counts as impossible.
const TRIES: usize = 120;
/// Rows of which the best is kept.
const CANDIDATES: usize = 12;

/// The numbers below `n` in a random order.
fn order(random: &mut Random, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// The rows, and why combinations are in none, with how many.
pub(crate) struct Cover {
    pub(crate) rows: Vec<Row>,
    pub(crate) refused: BTreeMap<String, usize>,
}

/// What is to be covered: `levels[f]` levels of factor f.
pub(crate) struct Factors<'a> {
    pub(crate) levels: &'a [usize],
    /// Factors of which every combination is required, not every pair alone.
    pub(crate) product: &'a [usize],
    /// All reasons why a row is not possible; none where it is.
    pub(crate) reasons: &'a dyn Fn(&[usize]) -> Vec<String>,
}

impl Factors<'_> {
    /// Rows that hold all required combinations that some supported row holds.
    pub(crate) fn cover(&self, random: &mut Random) -> Cover {
        let mut missing = self.pairs();
        let mut cover = Cover { rows: Vec::new(), refused: BTreeMap::new() };
        for part in self.products() {
            if !cover.rows.iter().any(|row| holds(row, &part)) {
                self.add(part, &mut missing, &mut cover, random);
            }
        }
        while let Some(pair) = missing.first().cloned() {
            missing.remove(&pair);
            self.add(pair, &mut missing, &mut cover, random);
        }
        cover
    }

    /// Adds the best row found for a combination, or the reason why there is none.
    fn add(
        &self,
        part: Part,
        missing: &mut BTreeSet<Part>,
        cover: &mut Cover,
        random: &mut Random,
    ) {
        let mut best: Option<(usize, Row)> = None;
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut found = 0;
        for number in 0..TRIES {
            // Greed may run into what is not supported again and again.
            let row = self.fill(&part, missing, number >= TRIES / 3, random);
            let against = (self.reasons)(&row);
            if against.is_empty() {
                let new = pairs_of(&row).filter(|pair| missing.contains(pair)).count();
                if best.as_ref().is_none_or(|(most, _)| new > *most) {
                    best = Some((new, row));
                }
                found += 1;
                if found == CANDIDATES {
                    break;
                }
            }
            against.into_iter().for_each(|reason| *reasons.entry(reason).or_default() += 1);
        }
        if let Some((_, row)) = best {
            for pair in pairs_of(&row) {
                missing.remove(&pair);
            }
            cover.rows.push(row);
        } else if let Some((reason, _)) =
            // What always speaks against it is the reason.
            reasons.into_iter().max_by_key(|(_, count)| *count)
        {
            *cover.refused.entry(reason).or_default() += 1;
        }
    }

    /// A row that holds `part`.
    fn fill(
        &self,
        part: &Part,
        missing: &BTreeSet<Part>,
        at_random: bool,
        random: &mut Random,
    ) -> Row {
        let mut row = vec![usize::MAX; self.levels.len()];
        for &(factor, level) in part {
            row[factor] = level;
        }
        let mut known: Vec<usize> = part.iter().map(|(factor, _)| *factor).collect();
        for factor in order(random, self.levels.len()) {
            if row[factor] != usize::MAX {
                continue;
            }
            let mut best = (0, Vec::new());
            for level in 0..self.levels[factor] {
                let pair = |&other: &usize| ordered((factor, level), (other, row[other]));
                let gain = known.iter().map(pair).filter(|pair| missing.contains(pair)).count();
                if gain > best.0 {
                    best = (gain, Vec::new());
                }
                if gain == best.0 {
                    best.1.push(level);
                }
            }
            row[factor] = if at_random {
                random.below(self.levels[factor])
            } else {
                best.1[random.below(best.1.len())]
            };
            known.push(factor);
        }
        row
    }

    fn pairs(&self) -> BTreeSet<Part> {
        let mut pairs = BTreeSet::new();
        for b in 0..self.levels.len() {
            for a in 0..b {
                for i in 0..self.levels[a] {
                    pairs.extend((0..self.levels[b]).map(|j| vec![(a, i), (b, j)]));
                }
            }
        }
        pairs
    }

    /// Every combination of the factors in `product`.
    fn products(&self) -> Vec<Part> {
        if self.product.is_empty() {
            return Vec::new();
        }
        let mut all = vec![Part::new()];
        for &factor in self.product {
            let levels = 0..self.levels[factor];
            all = all
                .iter()
                .flat_map(|part| {
                    levels.clone().map(move |level| {
                        let mut part = part.clone();
                        part.push((factor, level));
                        part
                    })
                })
                .collect();
        }
        all
    }
}

fn ordered(a: (usize, usize), b: (usize, usize)) -> Part {
    if a < b { vec![a, b] } else { vec![b, a] }
}

fn pairs_of(row: &[usize]) -> impl Iterator<Item = Part> {
    (0..row.len()).flat_map(move |b| (0..b).map(move |a| vec![(a, row[a]), (b, row[b])]))
}

fn holds(row: &[usize], part: &Part) -> bool {
    part.iter().all(|&(factor, level)| row[factor] == level)
}

#[test]
fn every_supported_combination_is_covered() {
    let levels = [4, 3, 2, 2, 5];
    // Level 3 of the first factor goes with level 0 of the second only.
    let reasons = |row: &[usize]| -> Vec<String> {
        let against = [(row[0] == 3 && row[1] != 0, "never"), (row[2] == row[3], "sometimes")];
        against.iter().filter(|(holds, _)| *holds).map(|(_, why)| (*why).to_owned()).collect()
    };
    for product in [&[][..], &[0, 1, 4]] {
        let factors = Factors { levels: &levels, product, reasons: &reasons };
        let cover = factors.cover(&mut Random(3));
        for part in factors.pairs().into_iter().chain(factors.products()) {
            let with = |levels: &[(usize, usize)]| levels.iter().all(|level| part.contains(level));
            let never = with(&[(0, 3), (1, 1)]) || with(&[(0, 3), (1, 2)]);
            let possible = !(never || with(&[(2, 0), (3, 0)]) || with(&[(2, 1), (3, 1)]));
            assert_eq!(cover.rows.iter().any(|row| holds(row, &part)), possible, "{part:?}");
        }
        assert!(cover.rows.iter().all(|row| reasons(row).is_empty()));
        let never = if product.is_empty() { 2 } else { 2 + 2 * 5 };
        let refused = [("never".to_owned(), never), ("sometimes".to_owned(), 2)];
        assert_eq!(cover.refused, BTreeMap::from(refused));
        assert!(product.len() > 2 || cover.rows.len() < 30, "{} rows", cover.rows.len());
    }
}
