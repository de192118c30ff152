//! Profile of a run as a table.

use std::fmt::Write as _;

use runtime::support::timers::ProfileStep;

/// Steps shorter than this fraction of the total are left out of the table.
const SHORT: f64 = 1e-3;

/// Returns the table of steps: seconds with and without nested steps, share of the total, and number of occurrences.
pub(super) fn table(total: &ProfileStep) -> String {
    let mut text = format!(
        "  {:<44} {:>9} {:>9} {:>6} {:>7}\n",
        "profile", "seconds", "own", "share", "count"
    );
    rows(total, 0, total.seconds, &mut text);
    text.push('\n');
    text
}

fn rows(step: &ProfileStep, depth: usize, total: f64, text: &mut String) {
    let name = format!("{:indent$}{}", "", step.name, indent = 2 * depth);
    let (own, share) = (step.own_seconds(), 100.0 * step.seconds / total);
    let _ = writeln!(
        text,
        "    {name:<42} {:>9.3} {own:>9.3} {share:>5.1}% {:>7}",
        step.seconds, step.count
    );
    let long = |step: &&ProfileStep| step.seconds >= SHORT * total;
    step.steps.iter().filter(long).for_each(|nested| rows(nested, depth + 1, total, text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::profile_value;

    #[test]
    fn a_table_indents_nested_steps_and_leaves_out_short_ones() {
        let of = |name, seconds, steps| ProfileStep { name, count: 1, seconds, steps };
        let nested = vec![of("tables", 1.5, Vec::new()), of("nothing", 1e-9, Vec::new())];
        let total = of("total", 4.0, vec![of("set-up", 2.0, nested)]);
        let text = table(&total);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["total", "4.000", "2.000", "100.0%", "1"]);
        assert_eq!(rows[2], ["set-up", "2.000", "0.500", "50.0%", "1"]);
        assert_eq!(rows[3], ["tables", "1.500", "1.500", "37.5%", "1"]);
        assert!(rows[4].is_empty(), "{text}");
        assert_eq!(profile_value(&total)["steps"][0]["steps"][1]["step"], "nothing");
    }
}
