//! `--param load=1,2,4`, `--param load=1..10:5`: one solve of a problem for each of several values of a parameter, each
//! starting from the solution before.

use fem_dsl::check::problem::Overrides;

use crate::report::Failure;

/// Largest number of values of a sweep.
const MOST: usize = 10_000;

/// The values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sweep {
    /// The parameter.
    pub(super) name: String,
    /// Its values, expressions of the language.
    pub(super) values: Vec<String>,
}

impl Sweep {
    /// Returns the parameter with several values, if any.
    ///
    /// # Errors
    ///
    /// Several parameters have several values, or a range is invalid.
    pub(super) fn of(overrides: &Overrides) -> Result<Option<Self>, Failure> {
        let mut found: Option<Self> = None;
        for (name, text) in &overrides.params {
            let values = match range(text).map_err(Failure::input)? {
                Some(values) => values,
                None => pieces(text),
            };
            if values.len() < 2 {
                continue;
            }
            if let Some(first) = &found {
                return Err(Failure::input(format!(
                    "`{}` and `{name}` both have several values\nhelp: vary one parameter, and run once for each value of the other",
                    first.name
                )));
            }
            found = Some(Self { name: name.clone(), values });
        }
        Ok(found)
    }

    /// Returns the command line's overrides with one of the values.
    pub(super) fn overrides(&self, all: &Overrides, value: &str) -> Overrides {
        let mut own = all.clone();
        for (name, text) in &mut own.params {
            if *name == self.name {
                value.clone_into(text);
            }
        }
        own
    }
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
        let values = |text: &str| of(&[("a", text)]).expect("values").map(|sweep| sweep.values);
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
        assert!(of(&[("a", "1,2"), ("b", "3,4")]).is_err());
        assert!(of(&[("a", "1,2"), ("b", "3")]).is_ok());
    }
}
