//! Results of an earlier text of the same file, for parts that are the same in the next: an editor sends each change.
//!
//! The result of a form depends on its own text, that of a problem on its text and on the forms and problems whose names
//! occur in it, directly or through others. A part is the same if its text is, and if neither text has a syntax error in
//! it. Tables of other files may have changed, so that a part with one is checked again. Locations move with the parts.

use super::{CheckedForm, Program};
use crate::ast;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, relocate};
use crate::source::{Shift, Source, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The errors and warnings of a problem.
pub(super) type ProblemFindings = (Vec<Diagnostic>, Vec<Diagnostic>);

/// The locations of errors in the tree; `None` if they do not say which parts they concern.
pub(super) type SyntaxErrors = Option<Vec<Span>>;

/// Returns the locations of errors of the parser and of the stages before the check.
pub(super) fn syntax_errors(found: &[Diagnostic]) -> SyntaxErrors {
    let of_parts = |found: &Diagnostic| {
        !found.labels.is_empty() && !matches!(found.code, Code::TooManyErrors | Code::TooLarge)
    };
    let labels = found.iter().flat_map(|found| &found.labels);
    found.iter().all(of_parts).then(|| labels.map(|label| label.span).collect())
}

/// A form or problem of a text.
#[derive(Clone, Copy)]
struct Part<'a> {
    name: &'a str,
    doc: &'a str,
    span: Span,
}

/// Returns the forms and then the problems of a file.
fn parts(file: &ast::File) -> Vec<Part<'_>> {
    let forms = file.forms.iter().map(|own| (&own.name.name, &own.doc, own.span));
    let problems = file.problems.iter().map(|own| (&own.name.name, &own.doc, own.span));
    forms.chain(problems).map(|(name, doc, span)| Part { name, doc, span }).collect()
}

/// Returns the words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The results of an earlier text for the parts that are the same.
pub(super) struct Reuse {
    forms: Vec<Option<(CheckedForm, Shift)>>,
    problems: Vec<Option<ProblemFindings>>,
}

impl Reuse {
    /// Takes the results of `before` that hold for `file`, the tree of `source`.
    pub(super) fn new(
        before: &mut Program,
        source: &Source,
        file: &ast::File,
        errors: &SyntaxErrors,
    ) -> Self {
        let mut checked: Vec<_> = std::mem::take(&mut before.forms).into_iter().map(Some).collect();
        let mut found: Vec<_> = std::mem::take(&mut before.found).into_iter().map(Some).collect();
        let (old, new) = (parts(&before.written), parts(file));
        let (Some(earlier), Some(errors)) = (&before.syntax_errors, errors) else {
            return Self { forms: Vec::new(), problems: Vec::new() };
        };
        let count = before.written.forms.len();
        let is_same = |old: &Part<'_>, new: &Part<'_>| {
            let text = source.slice(new.span);
            let read = |part: &Part<'_>, errors: &[Span]| {
                !errors.iter().any(|error| error.touches(part.span))
            };
            (old.name, old.doc) == (new.name, new.doc)
                && before.source.slice(old.span) == text
                && read(old, earlier)
                && read(new, errors)
                && !text.contains("table")
        };
        // The first part of each name.
        let mut first: BTreeMap<(bool, &str), usize> = BTreeMap::new();
        for (at, part) in old.iter().enumerate() {
            first.entry((at < count, part.name)).or_insert(at);
        }
        let forms = file.forms.len();
        let earlier = |at: usize| {
            let part = new.get(at)?;
            let own = *first.get(&(at < forms, part.name))?;
            is_same(&old[own], part).then_some(own)
        };
        let same: Vec<Option<usize>> = (0..new.len()).map(earlier).collect();
        let shift = |at: usize| {
            let own = same[at]?;
            Some((own, Shift { from: old[own].span, to: new[at].span.start }))
        };
        let take = |at: usize| {
            let (own, shift) = shift(at)?;
            Some((checked.get_mut(own)?.take()?, shift))
        };
        let made = (0..forms).map(take).collect();
        // A name that is missing, or suggested, is any of the file.
        let names = |parts: &[Part<'_>]| parts.iter().map(|part| part.name.to_owned()).collect();
        let (then, now): (Vec<String>, Vec<String>) = (names(&old), names(&new));
        if forms == new.len()
            || then != now
            || count != forms
            || before.source.name() != source.name()
        {
            return Self { forms: made, problems: Vec::new() };
        }
        let uses = Uses::of(source, &new, forms);
        let shifts: Vec<Shift> = (0..new.len()).filter_map(|at| Some(shift(at)?.1)).collect();
        let problems = (forms..new.len()).map(|at| {
            let own = same[at]?;
            if !uses.all(at).into_iter().all(|used| same[used].is_some()) {
                return None;
            }
            let (mut errors, mut warnings) = found.get_mut(own - count)?.take()?;
            let to = |span: Span| shifts.iter().find_map(|shift| shift.of(span));
            let all = relocate(&mut errors, to) && relocate(&mut warnings, to);
            all.then_some((errors, warnings))
        });
        Self { forms: made, problems: problems.collect() }
    }

    /// Takes the form at an index.
    pub(super) fn form(&mut self, at: usize) -> Option<(CheckedForm, Shift)> {
        self.forms.get_mut(at)?.take()
    }

    /// Takes the findings of the problem at an index.
    pub(super) fn problem(&mut self, at: usize) -> Option<ProblemFindings> {
        self.problems.get_mut(at)?.take()
    }
}

/// The parts whose names occur in each part; of two problems either is one of the other's.
struct Uses(Vec<Vec<usize>>);

impl Uses {
    fn of(source: &Source, parts: &[Part<'_>], forms: usize) -> Self {
        let mut named: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            named.entry(part.name).or_default().push(at);
        }
        let mut all = vec![Vec::new(); parts.len()];
        for (at, part) in parts.iter().enumerate() {
            let known = words(source.slice(part.span)).filter_map(|word| named.get(word));
            for &used in known.flatten() {
                all[at].push(used);
                // The stages of one problem may refer to each other.
                if at >= forms && used >= forms {
                    all[used].push(at);
                }
            }
        }
        Self(all)
    }

    /// Returns the parts on which a part depends, itself included.
    fn all(&self, at: usize) -> BTreeSet<usize> {
        let (mut all, mut open) = (BTreeSet::new(), vec![at]);
        while let Some(at) = open.pop() {
            if all.insert(at) {
                open.extend(&self.0[at]);
            }
        }
        all
    }
}
