//! `--compare`: rows of an earlier run and of this one, matched by their identity → ratios of throughput.
//!
//! ```text
//! ratio = new / old        above 1: faster than it was
//! mean  = (∏ ratio)^(1 / rows)
//! ```

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fem_dsl::source::seen;
use runtime::support::input::read;
use serde_json::{Value, json};

use super::Suite;
use crate::report::{Failure, Report};

/// The keys that identify a row, if both rows have them; all others are measured or chosen.
const IDENTITY: [&str; 16] = [
    "problem",
    "cell",
    "dim",
    "mesh",
    "way",
    "degree",
    "level",
    "blocks",
    "batches",
    "precision",
    "backend",
    "processes",
    "threads",
    "quadrature",
    "dofs",
    "scatter",
];

/// The rows of an earlier run.
pub(super) struct PreviousRun {
    path: PathBuf,
    rows: Vec<Value>,
}

impl PreviousRun {
    /// Reads the output of `wf bench --json`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, without rows, or with a line that does not belong to this suite.
    pub(super) fn read(path: &Path, suite: Suite) -> Result<Self, Failure> {
        let named = seen(&path.display().to_string()).into_owned();
        let wanted = suite.to_possible_value().map(|value| value.get_name().to_owned());
        let wanted = wanted.unwrap_or_default();
        let refused = |error: &dyn std::fmt::Display| {
            Failure::input(format!(
                "cannot read {named}: {error}\nhelp: --compare takes what `wf bench --json` printed"
            ))
        };
        let bytes = read(path, 4.0, |bytes| bytes.trim_ascii_start().starts_with(b"{"))
            .map_err(|error| refused(&error))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| refused(&error))?;
        let mut rows = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let bad = |what: String| {
                Failure::input(format!(
                    "{named}:{}: {what}\nhelp: --compare takes what `wf bench --suite {wanted} --json` printed, one object a line",
                    number + 1
                ))
            };
            let row: Value =
                serde_json::from_str(line).map_err(|error| bad(format!("no JSON: {error}")))?;
            match (row.as_object(), row["suite"].as_str()) {
                (Some(_), Some(own)) if own == wanted => rows.push(row),
                (Some(_), Some(own)) => {
                    return Err(bad(format!("a row of the suite `{own}`, not of `{wanted}`")));
                }
                // The error that ended an earlier run.
                (Some(row), None) if row.contains_key("error") => {}
                _ => return Err(bad("no row of a suite".to_owned())),
            }
        }
        if rows.is_empty() {
            return Err(Failure::input(format!(
                "{named} has no rows\nhelp: --compare takes what `wf bench --suite {wanted} --json` printed"
            )));
        }
        Ok(Self { path: path.to_owned(), rows })
    }

    /// Adds the ratio of each row and a summary to the report.
    pub(super) fn beside(&self, mut report: Report) -> Report {
        let mut taken = vec![false; self.rows.len()];
        let mut pairs: Vec<Option<(f64, f64)>> = Vec::new();
        let mut other = None;
        for row in &mut report.json {
            let partner = rate(row).and_then(|new| {
                let is_own = |&at: &usize| !taken[at] && is_same(row, &self.rows[at]);
                let at = (0..self.rows.len()).find(is_own)?;
                let old = rate(&self.rows[at])?;
                taken[at] = true;
                if self.rows[at]["device"] != row["device"] {
                    other = other.take().or(self.rows[at]["device"].as_str().map(str::to_owned));
                }
                Some((old, new))
            });
            pairs.push(partner);
            row["ratio_to_old"] = json!(partner.map(|(old, new)| new / old));
        }
        let left = (0..self.rows.len()).filter(|&at| !taken[at] && rate(&self.rows[at]).is_some());
        let left = left.count();
        report.text.push_str(&self.text(&report.json, &pairs, left, other.as_deref()));
        report
    }

    fn text(
        &self,
        rows: &[Value],
        pairs: &[Option<(f64, f64)>],
        left: usize,
        other: Option<&str>,
    ) -> String {
        let named = seen(&self.path.display().to_string()).into_owned();
        let mut text =
            format!("\nbeside {named}: million unknowns a second, old and new, and new over old\n");
        if let Some(device) = other {
            text.push_str(&format!("old rows are of another device: {}\n", seen(device)));
        }
        let labels = labels(rows);
        let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let mut ratios: Vec<(f64, &str)> = Vec::new();
        let mut alone = 0;
        for ((label, pair), row) in labels.iter().zip(pairs).zip(rows) {
            let space = " ".repeat(width - label.chars().count());
            match pair {
                Some((old, new)) => {
                    let ratio = new / old;
                    ratios.push((ratio, label));
                    let mega = [old, new].map(|rate| rate / 1e6);
                    text.push_str(&format!(
                        "{label}{space} {:>10.2} {:>10.2} {ratio:>7.3}\n",
                        mega[0], mega[1]
                    ));
                }
                None => {
                    let why = if rate(row).is_some() { "no partner" } else { "not measured" };
                    alone += usize::from(rate(row).is_some());
                    text.push_str(&format!("{label}{space} {why}\n"));
                }
            }
        }
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let ([(worst, slow), ..], [.., (best, fast)]) = (&ratios[..], &ratios[..]) {
            let mean = mean(ratios.iter().map(|(ratio, _)| *ratio));
            text.push_str(&format!(
                "geometric mean {mean:.3} of {} rows; worst {worst:.3} ({slow}); best {best:.3} ({fast})\n",
                ratios.len()
            ));
        }
        text.push_str(&format!("without a partner: {alone} new rows, {left} old ones\n"));
        text
    }
}

/// Returns the geometric mean, (∏ ratio)^(1 / n).
fn mean(ratios: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = ratios.len() as f64;
    (ratios.map(f64::ln).sum::<f64>() / n).exp()
}

/// Returns the DoFs per second of a row; `None` without a measurement.
fn rate(row: &Value) -> Option<f64> {
    let number = |key: &str| row[key].as_f64().filter(|&number| number > 0.0 && number.is_finite());
    number("dofs_per_second").or_else(|| Some(number("dofs")? / number("product")?))
}

/// Returns whether rows have the same identity: all keys that both have are equal.
fn is_same(a: &Value, b: &Value) -> bool {
    let said = |row: &Value, key: &str| row.get(key).filter(|value| !value.is_null()).cloned();
    keys(a).all(|key| match (said(a, key), said(b, key)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    })
}

/// Returns the identifying keys of a suite: scatter algorithms are requested in only one suite, and numbers of threads
/// are chosen in another.
fn keys(row: &Value) -> impl Iterator<Item = &'static str> {
    let suite = row["suite"].as_str().unwrap_or_default().to_owned();
    IDENTITY.into_iter().filter(move |&key| match key {
        "scatter" => suite == "scatter",
        "threads" => suite != "transposition",
        _ => true,
    })
}

/// Returns a label for each row from the keys in which rows differ.
fn labels(rows: &[Value]) -> Vec<String> {
    let differs = |key: &str| rows.iter().any(|row| row[key] != rows[0][key]);
    let label = |row: &Value| {
        let own = keys(row).filter(|key| !row[key].is_null());
        let words = own.filter(|&key| matches!(key, "problem" | "dofs") || differs(key));
        let words = words.map(|key| match &row[key] {
            Value::String(word) => word.clone(),
            number => format!("{key} {number}"),
        });
        words.collect::<Vec<_>>().join(", ")
    };
    rows.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(problem: &str, degree: u64, rate: f64) -> Value {
        json!({ "suite": "bp", "problem": problem, "degree": degree, "threads": 1, "dofs_per_second": rate })
    }

    fn report(rows: Vec<Value>) -> Report {
        let mut report = Report::default();
        report.json = rows;
        report
    }

    fn old(rows: Vec<Value>) -> PreviousRun {
        PreviousRun { path: "old.json".into(), rows }
    }

    #[test]
    fn rows_are_matched_by_what_they_are_of() {
        let old = old(vec![row("BP1", 2, 2e6), row("BP1", 1, 1e6), row("BP9", 1, 1e6)]);
        let done =
            old.beside(report(vec![row("BP1", 1, 4e6), row("BP1", 2, 2e6), row("BP2", 1, 1e6)]));
        let ratios: Vec<&Value> = done.json.iter().map(|row| &row["ratio_to_old"]).collect();
        assert_eq!(ratios, [&json!(4.0), &json!(1.0), &Value::Null]);
        for text in [
            "geometric mean 2.000 of 2 rows",
            "worst 1.000 (BP1, degree 2)",
            "best 4.000 (BP1, degree 1)",
            "BP2, degree 1 no partner",
            "without a partner: 1 new rows, 1 old ones",
        ] {
            assert!(done.text.contains(text), "{text}: {}", done.text);
        }
    }

    #[test]
    fn what_was_not_measured_has_no_ratio() {
        let refused =
            json!({ "suite": "afem", "cell": "tri", "way": "ebe-v1", "error": "no plan" });
        let timed = |seconds: f64| json!({ "suite": "afem", "cell": "tri", "way": "acoo", "dofs": 100, "product": seconds });
        let done = old(vec![refused.clone(), timed(2.0)]).beside(report(vec![refused, timed(1.0)]));
        assert_eq!(done.json[0]["ratio_to_old"], Value::Null);
        assert_eq!(done.json[1]["ratio_to_old"], json!(2.0));
        assert!(done.text.contains("without a partner: 0 new rows, 0 old ones"), "{}", done.text);
    }

    #[test]
    fn rows_that_are_alike_are_taken_one_by_one() {
        let old = old(vec![row("BP1", 1, 1e6), row("BP1", 1, 2e6)]);
        let done = old.beside(report(vec![row("BP1", 1, 2e6), row("BP1", 1, 2e6)]));
        let ratios: Vec<&Value> = done.json.iter().map(|row| &row["ratio_to_old"]).collect();
        assert_eq!(ratios, [&json!(2.0), &json!(1.0)]);
    }
}
