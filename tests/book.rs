//! The book: its files compile, its commands have known options, its links lead somewhere, and its index is complete.
//! `.ci/book` runs the blocks and compares their output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fem_dsl::program::compile;
use fem_dsl::source::Source;
use fem_dsl::words;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the Markdown files of some folders, sorted.
fn pages_of(folders: &[&str]) -> Vec<PathBuf> {
    let entries =
        folders.iter().flat_map(|folder| fs::read_dir(root().join(folder)).expect("a folder"));
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    assert!(!pages.is_empty());
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the path of a page below the root, with slashes.
fn name_of(page: &Path) -> String {
    let path = page.strip_prefix(root()).expect("a page of the repository");
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// A fenced block of a page.
struct Block {
    /// Page and line.
    place: String,
    /// The info string: language and attributes.
    info: Vec<String>,
    text: String,
}

impl Block {
    fn is(&self, kind: &str) -> bool {
        self.info[0] == kind
    }

    fn has(&self, attribute: &str) -> bool {
        self.info.iter().any(|word| word == attribute)
    }
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = read(page);
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let text = inside.map(|line| format!("{line}\n")).collect();
        let info = info.split(',').map(str::to_owned).collect();
        found.push(Block { place: format!("{}:{}", name_of(page), number + 1), info, text });
    }
    found
}

#[test]
fn files_of_the_tutorial_compile() {
    let mut pages = pages_of(&["docs/tutorial"]);
    assert_eq!(pages.len(), 10, "ten chapters");
    pages.push(root().join("docs/solvers.md"));
    for page in &pages {
        let all = blocks(page);
        let files = all.iter().filter(|block| block.is("wf") && !block.has("part"));
        for block in files {
            let (program, found) = compile(&Source::new("example", &block.text));
            let is_wrong =
                program.is_none() || found.iter().any(|diagnostic| diagnostic.is_error());
            assert_eq!(is_wrong, block.has("wrong"), "{}: {found:#?}", block.place);
        }
    }
}

/// Splits a line of a shell into commands of words; variables before a command and comments are left out.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut word, mut quote) = (vec![Vec::new()], String::new(), None);
    let mut is_word = false;
    for letter in line.chars().chain([' ']) {
        match quote {
            Some(mark) if letter == mark => quote = None,
            Some(_) => word.push(letter),
            None if letter == '\'' || letter == '"' => (quote, is_word) = (Some(letter), true),
            None if letter == '#' && !is_word => break,
            None if letter.is_whitespace() || "|;&<>".contains(letter) => {
                let command = all.last_mut().expect("a command");
                let is_variable = command.is_empty() && word.contains('=');
                // A number before a redirection is that of a stream.
                let is_stream = letter == '>' && word.chars().all(|c| c.is_ascii_digit());
                if is_word && !is_variable && !is_stream {
                    command.push(std::mem::take(&mut word));
                }
                word.clear();
                is_word = false;
                if "|;&<>".contains(letter) {
                    all.push(Vec::new());
                }
            }
            None => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    all
}

/// Returns the arguments of a command that starts `wf`, by itself, by `cargo run` or by `mpirun`.
fn arguments_of_wf(command: &[String]) -> Option<&[String]> {
    let is_wf = |word: &String| word == "wf" || word.ends_with("/wf");
    let at = match command.first()?.as_str() {
        "cargo" => command.iter().position(|word| word == "--").filter(|_| command[1] == "run")?,
        "mpirun" => command.iter().position(is_wf)?,
        _ => is_wf(&command[0]).then_some(0)?,
    };
    Some(&command[at + 1..])
}

#[test]
fn commands_of_pages_have_known_options() {
    let mut pages = pages_of(&["docs", "docs/tutorial", "docs/design"]);
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let mut tried = BTreeSet::new();
    for block in pages.iter().flat_map(|page| blocks(page)).filter(|block| block.is("sh")) {
        let text = block.text.replace("\\\n", " ");
        for command in text.lines().flat_map(commands) {
            let Some(arguments) = arguments_of_wf(&command) else { continue };
            if !tried.insert(arguments.to_vec()) {
                continue;
            }
            // `--help` is read after the arguments, whose names and values are checked until then.
            let mut wf = Command::new(env!("CARGO_BIN_EXE_wf"));
            let output = wf.args(arguments).arg("--help").output().expect("wf should start");
            let log = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: wf {arguments:?}\n{log}", block.place);
        }
    }
    assert!(tried.len() > 60, "only {} commands were found", tried.len());
    let wrong = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["run", "a.wf", "--no-such", "--help"])
        .output();
    assert!(!wrong.expect("wf should start").status.success(), "unknown options are not refused");
}

/// Returns a page without its fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut is_prose = |line: &&str| {
        let is_fence = line.starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    };
    text.lines().filter(|line| is_prose(line)).map(|line| format!("{line}\n")).collect()
}

/// Returns the anchors of a page: its headings in lower case without punctuation, with hyphens for blanks.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim();
        // Of a link its text.
        let plain =
            heading.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
        let first = heading.split("](").next().unwrap_or_default();
        let plain: String = std::iter::once(first).chain(plain.skip(1)).collect();
        let kept = plain.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    headings.map(slug).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages = pages_of(&[".", "docs", "docs/tutorial", "docs/design", "meshes"]);
    pages.retain(|page| !page.ends_with("CHANGELOG.md"));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in &pages {
        let text = prose(&read(page));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().expect("a folder").join(path),
            };
            if !target.exists() {
                wrong.push(format!("{} links to {link}, which is not there", name_of(page)));
            } else if !anchor.is_empty() && !anchors(&read(&target)).contains(anchor) {
                wrong.push(format!("{} links to {link}: no such heading", name_of(page)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "only {count} links were found");
    assert!(anchors("## [heat](../a.md)\n### Two words, `code`\n").contains("two-words-code"));
    assert!(anchors("## [heat](../a.md)\n").contains("heat"));
}

#[test]
fn the_index_of_the_book_names_every_page_once() {
    let docs = root().join("docs");
    let index = read(&docs.join("SUMMARY.md"));
    let links = index.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut named: Vec<String> = links.map(str::to_owned).collect();
    let pages = pages_of(&["docs", "docs/tutorial", "docs/design"]);
    let name = |page: &PathBuf| name_of(page).trim_start_matches("docs/").to_owned();
    let mut there: Vec<String> =
        pages.iter().map(name).filter(|page| page != "SUMMARY.md").collect();
    named.sort();
    there.sort();
    assert_eq!(named, there);
}

#[test]
fn highlighted_words_are_those_of_the_language() {
    let script = read(&root().join("docs/book/highlight-wf.js"));
    let list = |name: &str| -> BTreeSet<String> {
        let start = script.split(&format!("const {name} = [")).nth(1).expect("a list");
        let list = start.split(']').next().unwrap_or_default();
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let keywords = list("WF_KEYWORDS");
    let (functions, literals) = (list("WF_FUNCTIONS"), list("WF_LITERALS"));
    let all: BTreeSet<&String> = keywords.iter().chain(&functions).chain(&literals).collect();
    assert_eq!(all.len(), keywords.len() + functions.len() + literals.len(), "a word of two lists");
    let missing = |words: &[&'static str], list: &BTreeSet<String>| -> Vec<&'static str> {
        words.iter().copied().filter(|word| !list.contains(*word)).collect()
    };
    let items = [words::FORM_ITEMS, words::PROBLEM_ITEMS, words::KEYWORDS].concat();
    let items: Vec<&str> =
        items.into_iter().filter(|word| !["t", "true", "false"].contains(word)).collect();
    let none: [&str; 0] = [];
    assert_eq!(missing(&items, &keywords), none);
    assert_eq!(missing(words::FUNCTIONS, &functions), none);
    assert_eq!(missing(words::FACET_FUNCTIONS, &functions), none);
    assert_eq!(missing(words::KNOWN, &literals), none);
}
