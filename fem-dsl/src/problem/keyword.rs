//! Keywords with settings: the kinds of their arguments, [`ArgumentKind`], and their text, [`KeywordCall`].

use super::Argument;
use std::fmt;

/// The arguments of a function or keyword.
pub(crate) type ArgumentTable = &'static [(&'static str, ArgumentKind)];

/// The kind of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentKind {
    /// An integer in a range.
    Whole(u32, u32),
    /// A number.
    Number,
    /// A positive number.
    Positive,
    /// A nonnegative number.
    NotNegative,
    /// A fraction from 0 to below 1.
    Part,
    /// A fraction above 0, up to 1.
    Share,
    /// A positive integer, or one per direction.
    Counts,
    /// One number per direction.
    Point,
    /// A number, or a list in brackets.
    Numbers,
    /// One of these keywords.
    Word(&'static [&'static str]),
    /// Any name.
    Name,
    /// One of these keywords, optionally with settings in parentheses.
    Call(&'static [(&'static str, KeywordSettings)]),
}

/// The settings of a keyword.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeywordSettings {
    /// These.
    These(ArgumentTable),
    /// One per field of the form, of this kind.
    EachField(&'static ArgumentKind),
}

/// A keyword without settings.
pub(crate) const PLAIN: KeywordSettings = KeywordSettings::These(&[]);

impl ArgumentKind {
    /// Describes it in a message, in `dim` dimensions.
    pub(crate) fn describe(self, dim: usize) -> String {
        match self {
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number => "a number".to_owned(),
            Self::Positive => "a number above 0".to_owned(),
            Self::NotNegative => "a number from 0 on".to_owned(),
            Self::Part => "a number from 0 on and below 1".to_owned(),
            Self::Share => "a number above 0 and at most 1".to_owned(),
            Self::Counts => format!("a whole number from 1 on, or {dim} of them in brackets"),
            Self::Point => format!("{dim} numbers in brackets"),
            Self::Numbers => "numbers in brackets".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(" or ")
            }
            Self::Name => "a name".to_owned(),
            Self::Call(words) => {
                let words: Vec<String> =
                    words.iter().map(|(word, _)| format!("`{word}`")).collect();
                words.join(" or ")
            }
        }
    }

    /// Returns whether an argument is of this kind.
    pub(crate) fn takes(self, argument: &Argument, dim: usize) -> bool {
        let whole = |x: f64, least: u32, most: u32| {
            x.fract() == 0.0 && (f64::from(least)..=f64::from(most)).contains(&x)
        };
        match (self, argument) {
            (Self::Whole(least, most), Argument::Number(x)) => whole(*x, least, most),
            (Self::Number | Self::Numbers, Argument::Number(_))
            | (Self::Numbers, Argument::Numbers(_)) => true,
            (Self::Positive, Argument::Number(x)) => *x > 0.0,
            (Self::NotNegative, Argument::Number(x)) => *x >= 0.0,
            (Self::Part, Argument::Number(x)) => (0.0..1.0).contains(x),
            (Self::Share, Argument::Number(x)) => *x > 0.0 && *x <= 1.0,
            (Self::Counts, Argument::Number(x)) => whole(*x, 1, u32::MAX),
            (Self::Counts, Argument::Numbers(all)) => {
                all.len() == dim && all.iter().all(|x| whole(*x, 1, u32::MAX))
            }
            (Self::Point, Argument::Numbers(all)) => all.len() == dim,
            (Self::Word(words), Argument::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

/// A word with its settings, in the order in which they are given.
pub(super) struct KeywordCall {
    word: &'static str,
    settings: Vec<(String, String)>,
}

impl KeywordCall {
    pub(super) fn new(word: &'static str) -> Self {
        Self { word, settings: Vec::new() }
    }

    pub(super) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        self.settings.extend(value.map(|value| (name.to_owned(), value.to_string())));
        self
    }

    pub(super) fn number(self, name: &str, value: Option<f64>) -> Self {
        self.with(name, value.map(|value| format!("{value:?}")))
    }
}

impl fmt::Display for KeywordCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)?;
        if self.settings.is_empty() {
            return Ok(());
        }
        let settings = self.settings.iter().map(|(name, value)| format!("{name}: {value}"));
        write!(f, "({})", settings.collect::<Vec<_>>().join(", "))
    }
}
