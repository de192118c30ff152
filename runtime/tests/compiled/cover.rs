//! Covering arrays: a small number of rows that contain every required combination of choices.
//!
//! A row selects one level of every factor. Rows are created one by one (D. M. Cohen, S. R. Dalal, M. L. Fredman, G. C.
//! Patton, "The AETG system", IEEE Trans. Softw. Eng. 23, 1997). The first missing combination is fixed, and the other
//! factors are filled in random order, each with the level that adds most missing pairs. Of several such rows the best
//! is kept, the cheapest among equals.

pub(crate) use fem_dsl::testing::Random;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One level per factor.
pub(crate) type Row = Vec<usize>;

/// Levels of some factors, in factor order.
type Part = Vec<(usize, usize)>;

/// Number of attempts for a combination before it counts as impossible.
const TRIES: usize = 120;
/// Number of rows rejected for the same reason before a combination of a product counts as impossible.
const SURE: usize = 24;
/// Number of candidate rows.
const CANDIDATES: usize = 12;

/// Returns a random permutation of the numbers below `n`.
fn order(random: &mut Random, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// Pairs of levels that no row contains yet.
struct Missing {
    /// The first index of each factor's levels in the table, and the total number of levels.
    starts: Vec<usize>,
    count: usize,
    /// For each pair of levels, the smaller factor first, whether it is missing.
    table: Vec<bool>,
    /// No pair before this index is missing.
    done: usize,
}

impl Missing {
    /// Creates the list of all pairs.
    fn new(levels: &[usize]) -> Self {
        let starts = (0..levels.len()).map(|factor| levels[..factor].iter().sum()).collect();
        let count = levels.iter().sum();
        let mut missing = Self { starts, count, table: vec![false; count * count], done: 0 };
        for (a, b) in pairs(levels.len()) {
            for (i, j) in (0..levels[a]).flat_map(|i| (0..levels[b]).map(move |j| (i, j))) {
                let at = missing.place((a, i), (b, j));
                missing.table[at] = true;
            }
        }
        missing
    }

    fn place(&self, one: (usize, usize), other: (usize, usize)) -> usize {
        let (one, other) = if one.0 < other.0 { (one, other) } else { (other, one) };
        (self.starts[one.0] + one.1) * self.count + self.starts[other.0] + other.1
    }

    fn has(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        self.table[self.place(one, other)]
    }

    /// Removes and returns the first missing pair.
    fn take_first(&mut self) -> Option<Part> {
        self.done += self.table[self.done..].iter().position(|&missing| missing)?;
        self.table[self.done] = false;
        let level = |place: usize| {
            let factor = self.starts.partition_point(|&start| start <= place) - 1;
            (factor, place - self.starts[factor])
        };
        Some(vec![level(self.done / self.count), level(self.done % self.count)])
    }

    /// Returns the number of missing pairs in a row.
    fn in_row(&self, row: &[usize]) -> usize {
        pairs(row.len()).filter(|&(a, b)| self.has((a, row[a]), (b, row[b]))).count()
    }

    /// Removes the pairs of a row.
    fn take_row(&mut self, row: &[usize]) {
        for (a, b) in pairs(row.len()) {
            let at = self.place((a, row[a]), (b, row[b]));
            self.table[at] = false;
        }
    }
}

/// Returns all pairs of `n` factors.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(|b| (0..b).map(move |a| (a, b)))
}

/// The rows, and the number of uncovered combinations by reason.
pub(crate) struct Cover {
    pub(crate) rows: Vec<Row>,
    pub(crate) refused: BTreeMap<String, usize>,
}

/// Definition of a covering array: `levels[f]` levels of factor f.
pub(crate) struct Factors<'a> {
    pub(crate) levels: &'a [usize],
    /// Factors whose combinations are all required, not only pairs.
    pub(crate) product: &'a [usize],
    /// The reasons against a row; empty for a supported row.
    pub(crate) reasons: &'a dyn Fn(&[usize]) -> Vec<String>,
    /// The approximate cost of a row; of equally good rows the cheapest is selected.
    pub(crate) cost: &'a dyn Fn(&[usize]) -> usize,
}

impl Factors<'_> {
    /// Creates rows that contain all required combinations of supported rows.
    pub(crate) fn cover(&self, random: &mut Random) -> Cover {
        let mut missing = Missing::new(self.levels);
        let mut cover = Cover { rows: Vec::new(), refused: BTreeMap::new() };
        for part in self.products() {
            if !cover.rows.iter().any(|row| holds(row, &part)) {
                self.add(part, &mut missing, &mut cover, random);
            }
        }
        while let Some(pair) = missing.take_first() {
            self.add(pair, &mut missing, &mut cover, random);
        }
        cover
    }

    /// Adds the best row found for a combination, or the reason against it.
    fn add(&self, part: Part, missing: &mut Missing, cover: &mut Cover, random: &mut Random) {
        let mut best: Option<((usize, Reverse<usize>), Row)> = None;
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut found = 0;
        // Most combinations of products are impossible.
        let many = part.len() > 2;
        for number in 0..TRIES {
            // The greedy choice may repeatedly lead to unsupported rows.
            let at_random = number >= TRIES / 3 || many && number >= SURE / 3 && found == 0;
            let row = self.fill(&part, missing, at_random, random);
            let against = (self.reasons)(&row);
            if against.is_empty() {
                let worth = (missing.in_row(&row), Reverse((self.cost)(&row)));
                if best.as_ref().is_none_or(|(most, _)| worth > *most) {
                    best = Some((worth, row));
                }
                found += 1;
                if found == CANDIDATES {
                    break;
                }
            }
            against.into_iter().for_each(|reason| *reasons.entry(reason).or_default() += 1);
            if many && number + 1 == SURE && reasons.values().any(|&count| count == SURE) {
                break;
            }
        }
        if let Some((_, row)) = best {
            missing.take_row(&row);
            cover.rows.push(row);
        } else if let Some((reason, _)) =
            // The most frequent reason is reported.
            reasons.into_iter().max_by_key(|(_, count)| *count)
        {
            *cover.refused.entry(reason).or_default() += 1;
        }
    }

    /// Creates a row that contains `part`.
    fn fill(&self, part: &Part, missing: &Missing, at_random: bool, random: &mut Random) -> Row {
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
                let new = |&&other: &&usize| missing.has((factor, level), (other, row[other]));
                let gain = known.iter().filter(new).count();
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

    /// Returns all combinations of the factors in `product`.
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

fn holds(row: &[usize], part: &Part) -> bool {
    part.iter().all(|&(factor, level)| row[factor] == level)
}

#[test]
fn every_supported_combination_is_covered() {
    let levels = [4, 3, 2, 2, 5];
    // Level 3 of the first factor requires level 0 of the second.
    let reasons = |row: &[usize]| -> Vec<String> {
        let against = [(row[0] == 3 && row[1] != 0, "never"), (row[2] == row[3], "sometimes")];
        against.iter().filter(|(holds, _)| *holds).map(|(_, why)| (*why).to_owned()).collect()
    };
    for product in [&[][..], &[0, 1, 4]] {
        let cost = |row: &[usize]| row[4];
        let factors = Factors { levels: &levels, product, reasons: &reasons, cost: &cost };
        let cover = factors.cover(&mut Random(3));
        let mut all = Missing::new(&levels);
        let every = std::iter::from_fn(|| all.take_first());
        for part in every.chain(factors.products()) {
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
