//! Draws test cases: a covering array of all options, random ones, and small ones of every kind.

use super::between;
use super::choices::{Case, Choices};
use super::cover::{Factors, Random};
use super::launch::{Agreement, Launcher, Runner};
use super::setting::Setting;
use kernels_gen::plan::{Strategy, Target};
use std::collections::BTreeMap;

/// Number of kernels between cells.
const BETWEEN: usize = 18;

/// Limits of the test cases.
pub(crate) struct Limits {
    /// Includes the largest degrees.
    pub(crate) full: bool,
    /// Approximate limit of multiply-adds per thread. Larger kernels take too long to compile. `WF_WORK` overrides it.
    pub(crate) work: usize,
}

/// Returns the number in an environment variable.
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|value| value.parse().ok())
}

/// Returns the cases, and the number of refused combinations for each reason.
pub(crate) fn cases(
    limits: &Limits,
    seed: u64,
    more: usize,
) -> (Vec<Case>, BTreeMap<String, usize>) {
    let work = number("WF_WORK").map_or(limits.work, |work| work as usize);
    let choices = Choices::new(limits.full, work);
    let mut random = Random(seed);
    let levels = choices.levels();
    let reasons = |row: &[usize]| choices.reasons(row);
    let cost = |row: &[usize]| choices.cost(row);
    let factors = Factors { levels: &levels, product: &[], reasons: &reasons, cost: &cost };
    let cover = factors.cover(&mut random);
    let mut refused = cover.refused;
    let mut rows = cover.rows;
    rows.extend((0..more).map(|_| choices.row(&mut random)));
    let mut cases = Vec::new();
    for (row, seed) in rows.iter().zip(seed..) {
        match choices.case(row, seed) {
            Ok(case) => cases.push(case),
            Err(reason) => *refused.entry(reason).or_default() += 1,
        }
    }
    cases.extend(choices.small(&mut random, seed + rows.len() as u64));
    let between = between::draw(Target::Threads, |_| 1, seed, BETWEEN);
    cases.extend(between);
    (cases, refused)
}

impl Case {
    /// Returns a name with all properties of the case.
    pub(crate) fn name(&self) -> String {
        format!(
            "seed {} on {}, {:?}, degree {}, {:?}",
            self.seed, self.rule, self.shape, self.degree, self.plan
        )
    }

    /// Runs the kernels and compares their results with the reference.
    pub(crate) fn compare(&self, runner: &dyn Runner) -> Result<Agreement, String> {
        let (geometry, cells) = (self.plan.geometry, self.cells());
        let setting = Setting::new(&self.form, self.degree, self.rule, self.shape, geometry, cells);
        let launcher = Launcher { form: &self.form, elements: &self.elements, setting: &setting };
        launcher.compare(&self.plan, runner)
    }

    /// Returns a cell count with one full and one partial group. Expensive references get only the partial group.
    fn cells(&self) -> usize {
        let group = match self.plan.strategy {
            Strategy::CellPerLane | Strategy::ThreadPerDof => self.plan.lanes,
            Strategy::ThreadPerLine { cells } => cells,
            Strategy::ThreadTransposition { batches, .. } => batches * self.plan.lanes,
        };
        let most = if self.elements.cell.dim() == 3 && self.degree > 4 { 3 } else { 48 };
        let part = group.div_ceil(2).min(most);
        if most < group || group == 1 { part + 1 } else { group + part }
    }
}
