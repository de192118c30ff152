//! Rules of prose: lengths of sentences, and names of types.

/// Returns the average number of words a sentence of a Markdown text, without code, tables and headings.
pub(crate) fn words_a_sentence(text: &str) -> f64 {
    let (mut fenced, mut prose) = (false, String::new());
    for line in text.lines() {
        let start = line.trim_start();
        fenced ^= start.starts_with("```");
        let is_prose =
            !fenced && !start.starts_with(['`', '|', '#', '<']) && !line.starts_with("    ");
        // A list item or an empty line ends a sentence.
        if start.is_empty() || start.starts_with("- ") {
            prose.push_str(". ");
        }
        if is_prose {
            prose.push_str(start);
            prose.push(' ');
        }
    }
    let ends = ["? ", "! "].iter().fold(prose, |prose, end| prose.replace(end, ". "));
    let sentences: Vec<usize> = ends
        .split(". ")
        .map(|sentence| sentence.split_whitespace().count())
        .filter(|&words| words > 1)
        .collect();
    sentences.iter().sum::<usize>() as f64 / sentences.len().max(1) as f64
}

/// Prepositions, adverbs, pronouns and irregular participles.
const NO_NOUNS: &[&str] = &[
    "Above",
    "Across",
    "Again",
    "Alike",
    "Alone",
    "Along",
    "Apart",
    "Around",
    "At",
    "Begun",
    "Behind",
    "Below",
    "Beside",
    "Between",
    "Beyond",
    "By",
    "Chosen",
    "Cut",
    "Dealt",
    "Elsewhere",
    "Found",
    "From",
    "Given",
    "Held",
    "Here",
    "How",
    "In",
    "Inside",
    "Kept",
    "Known",
    "Left",
    "Lent",
    "Made",
    "Meant",
    "Met",
    "Of",
    "On",
    "Outside",
    "Over",
    "Own",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Taken",
    "There",
    "To",
    "Together",
    "Told",
    "Toward",
    "Under",
    "What",
    "When",
    "Where",
    "Why",
    "With",
    "Within",
    "Without",
];

/// Words with the ending of a participle that are nouns or adjectives of the field.
const NOUNS: &[&str] = &["Embed", "Need", "Seed", "Speed"];

/// Returns whether the name of a type is a preposition, an adverb or a bare participle: one word without a noun.
pub(crate) fn is_no_noun(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let is_participle = name.ends_with("ed") && !NOUNS.contains(&name);
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && is_one_word
        && (is_participle || NO_NOUNS.contains(&name))
}

#[test]
fn participles_are_no_nouns() {
    assert!(["Of", "Given", "Reached", "Elsewhere"].iter().all(|name| is_no_noun(name)));
    assert!(["Mesh", "ReducedMesh", "Speed", "OfMesh", "T"].iter().all(|name| !is_no_noun(name)));
}

#[test]
fn words_of_sentences_are_counted() {
    let text = "# A heading\n\nOne two three. Four five six seven!\n\n```\ncode is no prose\n```\n\n| a | table |\n";
    assert_eq!(words_a_sentence(text), 3.5);
}
