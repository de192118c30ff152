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

/// Pairs of levels of two factors that no row holds yet. Levels are numbered through all factors.
struct Missing {
    /// The number of the first level of each factor.
    starts: Vec<usize>,
    /// Words of 64 bits that hold a bit for each level.
    words: usize,
    /// For each level, with which others it is missing: both ways.
    bits: Vec<u64>,
    /// No pair of a level before this one is missing.
    done: usize,
}

impl Missing {
    /// All pairs.
    fn new(levels: &[usize]) -> Self {
        let starts: Vec<usize> =
            (0..levels.len()).map(|factor| levels[..factor].iter().sum()).collect();
        let count: usize = levels.iter().sum();
        let words = count.div_ceil(64);
        let mut missing = Self { starts, words, bits: vec![0; count * words], done: 0 };
        for factor in 0..levels.len() {
            for level in 0..levels[factor] {
                let others = (0..levels.len()).filter(|&other| other != factor);
                for (other, of) in others.map(|other| (other, levels[other])) {
                    (0..of).for_each(|of| missing.mark((factor, level), (other, of), true));
                }
            }
        }
        missing
    }

    fn number(&self, (factor, level): (usize, usize)) -> usize {
        self.starts[factor] + level
    }

    /// What is missing with a level.
    fn with(&self, level: usize) -> &[u64] {
        &self.bits[level * self.words..][..self.words]
    }

    fn mark(&mut self, one: (usize, usize), other: (usize, usize), missing: bool) {
        let [one, other] = [one, other].map(|level| self.number(level));
        for (of, with) in [(one, other), (other, one)] {
            let word = &mut self.bits[of * self.words + with / 64];
            *word = *word & !(1 << (with % 64)) | u64::from(missing) << (with % 64);
        }
    }

    /// No levels.
    fn none(&self) -> Vec<u64> {
        vec![0; self.words]
    }

    fn choose(&self, chosen: &mut [u64], level: (usize, usize)) {
        let number = self.number(level);
        chosen[number / 64] |= 1 << (number % 64);
    }

    /// With how many of the chosen levels a level is missing.
    fn among(&self, level: (usize, usize), chosen: &[u64]) -> usize {
        let missing = self.with(self.number(level)).iter().zip(chosen);
        missing.map(|(missing, chosen)| (missing & chosen).count_ones() as usize).sum()
    }

    /// The first that is missing, which is so no longer.
    fn take_first(&mut self) -> Option<Part> {
        while self.with(self.done).iter().all(|word| *word == 0) {
            self.done += 1;
            if self.done * self.words == self.bits.len() {
                self.done -= 1;
                return None;
            }
        }
        let bits = self.with(self.done).iter().enumerate();
        let (at, word) = bits.clone().find(|(_, word)| **word != 0)?;
        let level = |number: usize| {
            let factor = self.starts.partition_point(|&start| start <= number) - 1;
            (factor, number - self.starts[factor])
        };
        let pair = [level(self.done), level(at * 64 + word.trailing_zeros() as usize)];
        self.mark(pair[0], pair[1], false);
        Some(pair.to_vec())
    }

    /// How many a row holds.
    fn in_row(&self, row: &[usize]) -> usize {
        let mut chosen = self.none();
        row.iter().copied().enumerate().for_each(|level| self.choose(&mut chosen, level));
        let twice: usize =
            row.iter().copied().enumerate().map(|level| self.among(level, &chosen)).sum();
        twice / 2
    }

    /// Takes away those that a row holds.
    fn take_row(&mut self, row: &[usize]) {
        for (a, b) in pairs(row.len()) {
            self.mark((a, row[a]), (b, row[b]), false);
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
        let mut known = missing.none();
        part.iter().for_each(|&level| missing.choose(&mut known, level));
        for factor in order(random, self.levels.len()) {
            if row[factor] != usize::MAX {
                continue;
            }
            let mut best = (0, Vec::new());
            for level in 0..self.levels[factor] {
                let gain = missing.among((factor, level), &known);
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
            missing.choose(&mut known, (factor, row[factor]));
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
