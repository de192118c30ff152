//! Covering arrays: few rows that hold every required combination of choices at least once.
//!
//! A row picks one level of every factor. Rows are made one after another (D. M. Cohen, S. R. Dalal,
//! M. L. Fredman, G. C. Patton, "The AETG system", IEEE Trans. Softw. Eng. 23, 1997): the first
//! combination that is still missing is fixed, the other factors are filled in random order, each
//! with the level that brings most missing pairs, and of several such rows the best is kept, where these are as good
//! the cheapest.

pub(crate) use fem_dsl::testing::Random;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A level of each factor.
pub(crate) type Row = Vec<usize>;

/// Levels of some factors, in the order of the factors.
type Part = Vec<(usize, usize)>;

/// Rows tried for one combination before it counts as impossible.
const TRIES: usize = 120;
/// Rows that have all been refused for one reason where a combination of a product counts as impossible.
const SURE: usize = 24;
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

/// Pairs of levels of two factors that no row holds yet.
struct Missing {
    /// Where the levels of each factor begin in a row of the table, and how many levels there are.
    starts: Vec<usize>,
    count: usize,
    /// For each two levels, that of the smaller factor first, whether the pair is missing.
    table: Vec<bool>,
    /// No pair before this place is missing.
    done: usize,
}

impl Missing {
    /// All pairs.
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

    /// The first that is missing, which is so no longer.
    fn take_first(&mut self) -> Option<Part> {
        self.done += self.table[self.done..].iter().position(|&missing| missing)?;
        self.table[self.done] = false;
        let level = |place: usize| {
            let factor = self.starts.partition_point(|&start| start <= place) - 1;
            (factor, place - self.starts[factor])
        };
        Some(vec![level(self.done / self.count), level(self.done % self.count)])
    }

    /// How many a row holds.
    fn in_row(&self, row: &[usize]) -> usize {
        pairs(row.len()).filter(|&(a, b)| self.has((a, row[a]), (b, row[b]))).count()
    }

    /// Takes away those that a row holds.
    fn take_row(&mut self, row: &[usize]) {
        for (a, b) in pairs(row.len()) {
            let at = self.place((a, row[a]), (b, row[b]));
            self.table[at] = false;
        }
    }
}

/// Every two of `n` factors.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(|b| (0..b).map(move |a| (a, b)))
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
    /// What a row costs, about: of rows that bring as much, the cheapest is taken.
    pub(crate) cost: &'a dyn Fn(&[usize]) -> usize,
}

impl Factors<'_> {
    /// Rows that hold all required combinations that some supported row holds.
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

    /// Adds the best row found for a combination, or the reason why there is none.
    fn add(&self, part: Part, missing: &mut Missing, cover: &mut Cover, random: &mut Random) {
        let mut best: Option<((usize, Reverse<usize>), Row)> = None;
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut found = 0;
        // Of products most combinations are impossible.
        let many = part.len() > 2;
        for number in 0..TRIES {
            // Greed may run into what is not supported again and again.
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
            // What always speaks against it is the reason.
            reasons.into_iter().max_by_key(|(_, count)| *count)
        {
            *cover.refused.entry(reason).or_default() += 1;
        }
    }

    /// A row that holds `part`.
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
