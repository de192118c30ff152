//! The words that statements of a problem take, with their arguments: the tables of the checks, for editors.

use super::{adapt, eigen, mesh, periodic, reports, solver, stages, time};
use crate::problem::keyword::{ArgumentKind, ArgumentTable, KeywordSettings};

/// A word with its arguments: `ball(dim: 3)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeywordUsage {
    /// The word.
    pub word: &'static str,
    /// Its arguments.
    pub arguments: Vec<ArgumentUsage>,
    /// The words of an argument that is called by the name of a field, if the word has such arguments.
    pub of_fields: Vec<KeywordUsage>,
}

/// An argument of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentUsage {
    /// Its name.
    pub name: &'static str,
    /// Its values: "a number above 0".
    pub values: String,
    /// True if it cannot be left out.
    pub required: bool,
    /// The words among its values.
    pub words: Vec<KeywordUsage>,
}

/// Returns the words that may follow `item =` in a problem; of `adapt` its arguments alone, as one word.
pub fn keywords(item: &str) -> Vec<KeywordUsage> {
    let schemes = || {
        time::SCHEMES.iter().map(|(word, own)| {
            let mut usage = usage(word, own);
            usage.arguments.extend(arguments(time::COMMON));
            usage
        })
    };
    match item {
        "mesh" => mesh::GENERATORS
            .iter()
            .map(|generator| {
                let mut usage = usage(generator.name, generator.arguments);
                for argument in &mut usage.arguments {
                    argument.required = generator.required.contains(&argument.name);
                }
                usage
            })
            .collect(),
        "solver" => solver::SOLVERS.iter().map(|(word, own)| usage(word, own)).collect(),
        "time" => schemes().collect(),
        "eigen" => vec![usage("smallest", eigen::ARGUMENTS)],
        "stages" => vec![usage("repeat", stages::ARGUMENTS)],
        "adapt" => vec![usage("adapt", adapt::ARGUMENTS)],
        "periodic" => vec![
            usage(periodic::TRANSLATION, periodic::OF_TRANSLATION),
            usage(periodic::ROTATION, periodic::OF_ROTATION),
        ],
        "quadrature" => vec![usage(crate::problem::COLLOCATED, &[])],
        _ => Vec::new(),
    }
}

/// Returns the tags of the boundary of a generator's mesh in `dim` dimensions; none for an unknown generator.
pub fn generator_tags(generator: &str, dim: Option<usize>) -> &'static [&'static str] {
    let known = mesh::GENERATORS.iter().find(|own| own.name == generator);
    known.map_or(&[], |own| (own.tags)(dim.filter(|dim| (1..=3).contains(dim)).unwrap_or(own.dim)))
}

/// Returns the measures of reports.
pub fn measures() -> &'static [&'static str] {
    &reports::MEASURES
}

fn usage(word: &'static str, table: ArgumentTable) -> KeywordUsage {
    KeywordUsage { word, arguments: arguments(table).collect(), of_fields: Vec::new() }
}

fn arguments(table: ArgumentTable) -> impl Iterator<Item = ArgumentUsage> {
    table.iter().map(|&(name, kind)| {
        let values = match kind {
            ArgumentKind::Counts => {
                "a whole number from 1 on, or one for each direction".to_owned()
            }
            ArgumentKind::Point => "one number for each direction, in brackets".to_owned(),
            _ => kind.describe(3),
        };
        ArgumentUsage { name, values, required: false, words: words(kind) }
    })
}

/// Returns the words among the values of an argument; settings nest two deep.
fn words(kind: ArgumentKind) -> Vec<KeywordUsage> {
    match kind {
        ArgumentKind::Word(words) => words.iter().map(|word| usage(word, &[])).collect(),
        ArgumentKind::Call(calls) => calls
            .iter()
            .map(|&(word, settings)| match settings {
                KeywordSettings::These(table) => usage(word, table),
                KeywordSettings::EachField(kind) => {
                    KeywordUsage { word, arguments: Vec::new(), of_fields: words(*kind) }
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{generator_tags, keywords, measures};

    #[test]
    fn statements_have_their_words_and_arguments() {
        let words = |item| keywords(item).iter().map(|usage| usage.word).collect::<Vec<_>>();
        assert_eq!(words("mesh"), ["box", "interval", "ball", "shell", "lshape"]);
        assert!(words("solver").contains(&"newton") && words("time").contains(&"bdf"));
        assert!(words("dirichlet").is_empty());
        let boxes = keywords("mesh").swap_remove(0);
        let required = boxes.arguments.iter().filter(|argument| argument.required);
        assert_eq!(required.map(|argument| argument.name).collect::<Vec<_>>(), ["cells"]);
        let cg = keywords("solver").swap_remove(0);
        let preconditioner = cg.arguments.iter().find(|own| own.name == "preconditioner");
        let block = preconditioner.and_then(|own| own.words.iter().find(|own| own.word == "block"));
        assert_eq!(block.map(|own| own.of_fields.len()), Some(3));
        assert_eq!(generator_tags("box", Some(2)), ["x0", "x1", "y0", "y1"]);
        assert_eq!(generator_tags("box", Some(9)).len(), 6);
        assert!(generator_tags("ring", None).is_empty() && measures().contains(&"reaction"));
    }
}
