//! `--param load=1,2,4`, `--param load=1..10:5`: one solve of a problem for each of several values of a parameter, or for
//! each combination of those of several, each starting from the solution before.

use fem_dsl::check::problem::Overrides;

use crate::report::Failure;

/// Largest number of values of a sweep.
const MOST: usize = 10_000;

/// The parameters with several values, and those of each solve.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sweep {
    /// Names and values, expressions of the language: the values of the last parameter change fastest.
    pub(super) rows: Vec<Vec<(String, String)>>,
}

impl Sweep {
    /// Returns all combinations of the values of parameters with several, if any.
    ///
    /// # Errors
    ///
    /// An invalid range, too many combinations.
    pub(super) fn of(overrides: &Overrides) -> Result<Option<Self>, Failure> {
        let mut rows: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (name, text) in &overrides.params {
            let values = match range(text).map_err(Failure::input)? {
                Some(values) => values,
                None => pieces(text),
            };
            if values.len() < 2 {
                continue;
            }
            if rows.len() * values.len() > MOST {
                return Err(Failure::input(format!(
                    "the values of the parameters have more than {MOST} combinations\nhelp: give `{name}` fewer"
                )));
            }
            let with = |row: Vec<(String, String)>| {
                let more = |value: &String| [&row[..], &[(name.clone(), value.clone())]].concat();
                values.iter().map(more).collect::<Vec<_>>()
            };
            rows = rows.into_iter().flat_map(with).collect();
        }
        Ok((rows.len() > 1).then_some(Self { rows }))
    }

    /// Returns the command line's overrides with the values of one solve.
    pub(super) fn overrides(all: &Overrides, row: &[(String, String)]) -> Overrides {
        let mut own = all.clone();
        for (name, text) in &mut own.params {
            if let Some((_, value)) = row.iter().find(|(of, _)| of == name) {
                value.clone_into(text);
            }
        }
        own
    }
}

/// Returns the values of a solve as text: `a = 1, b = 2`.
pub(super) fn shown(row: &[(String, String)]) -> String {
    let values: Vec<String> = row.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    values.join(", ")
}

/// Splits a text at commas outside of brackets.
fn pieces(text: &str) -> Vec<String> {
    let (mut depth, mut parts) = (0_i32, vec![String::new()]);
    for character in text.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(character);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// Returns the values of `FIRST..LAST:COUNT`, both ends included; `None` if a text is no range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((first, rest)) = text.split_once("..") else { return Ok(None) };
    let wrong = || {
        format!(
            "`{text}` is no range\nhelp: write FIRST..LAST:COUNT, as 1..10:5 for five values from 1 to 10, both included"
        )
    };
    let (last, count) = rest.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    let count = count.trim().parse::<usize>().ok().filter(|count| (2..=MOST).contains(count));
    let (Some(first), Some(last), Some(count)) = (number(first), number(last), count) else {
        return Err(wrong());
    };
    let at = |i: usize| {
        let s = i as f64 / (count - 1) as f64;
        let value = if i + 1 == count { last } else { first + s * (last - first) };
        format!("{value:?}")
    };
    Ok(Some((0..count).map(at).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(&str, &str)]) -> Result<Option<Sweep>, Failure> {
        let params = values.iter().map(|&(name, text)| (name.to_owned(), text.to_owned()));
        Sweep::of(&Overrides { params: params.collect(), ..Overrides::default() })
    }

    #[test]
    fn lists_and_ranges_are_values_and_brackets_hold_one() {
        let values = |text: &str| -> Option<Vec<String>> {
            let rows = of(&[("a", text)]).expect("values")?.rows;
            Some(rows.into_iter().map(|row| row[0].1.clone()).collect())
        };
        let list = |values: &[&str]| Some(values.iter().map(|&value| value.to_owned()).collect());
        assert_eq!(values("1,2, 4"), list(&["1", "2", "4"]));
        assert_eq!(values("1..10:4"), list(&["1.0", "4.0", "7.0", "10.0"]));
        assert_eq!(values("-1..1:3"), list(&["-1.0", "0.0", "1.0"]));
        assert_eq!(values("[1, 2], [3, 4]"), list(&["[1, 2]", "[3, 4]"]));
        assert_eq!(values("min(1, 2)"), None);
        assert_eq!(values("3"), None);
        for wrong in ["1..2", "1..2:1", "a..2:3", "1..2:x", "1..1e999:3"] {
            assert!(of(&[("a", wrong)]).is_err(), "{wrong}");
        }
        let both = of(&[("a", "1,2"), ("b", "3"), ("c", "4,5")]).expect("values").expect("several");
        let both: Vec<String> = both.rows.iter().map(|row| shown(row)).collect();
        assert_eq!(both, ["a = 1, c = 4", "a = 1, c = 5", "a = 2, c = 4", "a = 2, c = 5"]);
        assert!(of(&[("a", "0..1:200"), ("b", "0..1:200")]).is_err());
    }
}
