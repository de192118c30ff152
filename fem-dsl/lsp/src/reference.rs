//! The tables of the language's reference, by the word that a row defines.

use std::collections::BTreeMap;

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// The heading of its section.
    section: &'static str,
    /// The row as text.
    text: String,
}

/// The rows of the reference.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    rows: Vec<Row>,
    /// The rows of each word at the beginning of the code in their first cells: `dot` of `dot(a, b)`.
    words: BTreeMap<&'static str, Vec<usize>>,
}

impl Reference {
    /// Reads the tables of a page in Markdown.
    pub(crate) fn new(page: &'static str) -> Self {
        let (mut section, mut header) = ("", Vec::new());
        let (mut rows, mut in_table) = (Vec::new(), false);
        let mut words: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = heading;
            }
            let Some(row) = line.strip_prefix("| ") else {
                in_table = false;
                continue;
            };
            let cells = cells(row);
            if row.starts_with("---") {
                continue;
            }
            if !in_table {
                (in_table, header) = (true, cells);
                continue;
            }
            let first: &'static str = cells[0];
            for word in codes(first).filter_map(first_word) {
                let known = words.entry(word).or_default();
                // Once, whatever the number of its uses in the cell.
                if known.last() != Some(&rows.len()) {
                    known.push(rows.len());
                }
            }
            let rest = header.iter().zip(&cells).skip(1).filter(|(_, cell)| !cell.is_empty());
            let rest: Vec<String> = match cells.len() {
                2 => rest.map(|(_, cell)| (*cell).to_owned()).collect(),
                _ => rest
                    .map(|(name, cell)| match name.is_empty() {
                        true => (*cell).to_owned(),
                        false => format!("{name}: {cell}"),
                    })
                    .collect(),
            };
            let text = format!("{first}  \n{}", rest.join("  \n")).replace("\\|", "|");
            rows.push(Row { section, text });
        }
        Self { rows, words }
    }

    /// Returns the rows about a word in the sections whose headings begin with one of `sections`.
    pub(crate) fn about(&self, word: &str, sections: &[&str]) -> Option<String> {
        let placed = |row: &&Row| sections.iter().any(|own| row.section.starts_with(own));
        let rows = self.words.get(word)?.iter().map(|&at| &self.rows[at]).filter(placed);
        let texts: Vec<&str> = rows.map(|row| row.text.as_str()).take(MOST_ROWS).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// The largest number of shown rows about one word.
const MOST_ROWS: usize = 4;

/// Returns the cells of a row without its first bar.
fn cells(row: &'static str) -> Vec<&'static str> {
    let row = row.trim_end().trim_end_matches('|');
    let (mut cells, mut start) = (Vec::new(), 0);
    for (at, _) in row.match_indices('|').filter(|(at, _)| !row[..*at].ends_with('\\')) {
        cells.push(row[start..at].trim());
        start = at + 1;
    }
    cells.push(row[start..].trim());
    cells
}

/// Returns the texts between backquotes.
fn codes(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('`').skip(1).step_by(2)
}

fn first_word(code: &'static str) -> Option<&'static str> {
    let end = code.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(code.len());
    Some(&code[..end]).filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::Reference;

    #[test]
    fn rows_are_found_by_their_words() {
        let page = "## Expressions\n\n| function | takes | gives |\n| --- | --- | --- |\n\
                    | `dot(a, b)` | vectors | a \\| b |\n| `asin(a)`, `acos(a)` | number | inverses |\n\
                    ## Forms\n\n| item | meaning |\n| --- | --- |\n| `field u: scalar;` | unknown |\n";
        let reference = Reference::new(page);
        let about = |word, section| reference.about(word, &[section]);
        assert_eq!(
            about("dot", "Expr"),
            Some("`dot(a, b)`  \ntakes: vectors  \ngives: a | b".into())
        );
        assert_eq!(about("field", "Forms"), Some("`field u: scalar;`  \nunknown".into()));
        assert!(about("acos", "Expressions").is_some() && about("acos", "Forms").is_none());
        assert!(about("function", "Expressions").is_none());
    }
}
