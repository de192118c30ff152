//! For any white space and comments between the tokens, the formatted text has the same tree with the same comments.

use fem_dsl::format::{WIDTH, tokens_and_comments};
use fem_dsl::parse::parse;
use fem_dsl::source::Source;
use fem_dsl::testing::{FieldShape, Options, Random, formatted, random_form};
use std::path::{Path, PathBuf};

/// Returns all `.wf` files below `folder`, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "wf") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the texts of our `.wf` files without syntax errors, and random forms.
fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let paths = ["examples", "tests", "fem-dsl/tests"].map(|folder| files(&root.join(folder)));
    let texts = paths.concat().into_iter().map(|path| std::fs::read_to_string(path).expect("text"));
    let good = |text: &String| parse(&Source::new("a.wf", text.as_str())).1.is_empty();
    let mut texts: Vec<String> = texts.filter(good).collect();
    assert!(texts.len() > 50, "only {} files", texts.len());
    let shapes =
        [FieldShape::Scalar, FieldShape::Vector, FieldShape::VectorOf(4), FieldShape::Tensor];
    for seed in 0..40 {
        let shape = shapes[(seed % 4) as usize];
        let options =
            Options { shape, kinks: true, depth: 2 + (seed % 5) as usize, ..Options::default() };
        texts.push(random_form(seed, &options));
    }
    texts
}

/// Returns the tree without its locations.
fn tree(text: &str) -> String {
    let (file, errors) = parse(&Source::new("a.wf", text));
    assert!(errors.is_empty(), "{text}\n{errors:#?}");
    let shown = format!("{file:?}");
    let mut rest = shown.as_str();
    let mut tree = String::new();
    while let Some(at) = rest.find("Span { start") {
        tree.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('}').expect("a span ends") + 1..];
    }
    tree + rest
}

/// Returns the same tokens and comments with other white space and, one time in `rarity`, an additional comment.
fn shaken(text: &str, random: &mut Random, rarity: usize) -> String {
    let white = [" ", "  ", "\n", "\n\n\n", "\t", "\r\n", " \n "];
    let comments = [
        "/* c */",
        "/* c */ ",
        " // c\n",
        "\n// c \n",
        "/* a\r\n  b */",
        "\n/* a */\n",
        "/* /* */ */\n",
    ];
    let mut shaken = String::new();
    for piece in tokens_and_comments(text) {
        shaken.push_str(piece);
        shaken.push_str(if piece.starts_with("//") {
            "\n"
        } else {
            white[random.below(white.len())]
        });
        while random.below(rarity) == 0 {
            shaken.push_str(comments[random.below(comments.len())]);
            shaken.push_str(white[random.below(white.len())]);
        }
    }
    shaken
}

#[test]
fn formatting_is_idempotent_and_keeps_the_tree() {
    for text in corpus() {
        assert_eq!(tree(&text), tree(&formatted(&text)), "{text}");
    }
}

#[test]
fn white_space_and_comments_can_stand_anywhere() {
    let mut random = Random(1);
    for text in corpus() {
        let text = text.replace("\r\n", "\n");
        let wanted = tree(&text);
        for rarity in [2, 5, 30, usize::MAX] {
            let shaken = shaken(&text, &mut random, rarity);
            assert_eq!(wanted, tree(&formatted(&shaken)), "{shaken}");
        }
    }
}

#[test]
fn white_space_alone_leaves_no_trace() {
    let mut random = Random(2);
    for text in corpus() {
        // The writer only chooses blank lines and comments.
        let lines = |text: &str| {
            let kept = |line: &&str| !line.is_empty();
            text.lines().filter(kept).map(|line| format!("{line}\n")).collect::<String>()
        };
        if tokens_and_comments(&text)
            .iter()
            .any(|piece| piece.starts_with("//") || piece.starts_with("/*"))
        {
            continue;
        }
        let shaken = shaken(&text, &mut random, usize::MAX);
        assert_eq!(lines(&formatted(&text)), lines(&formatted(&shaken)), "{shaken}");
    }
}

#[test]
fn lines_are_no_longer_than_the_page() {
    for text in corpus() {
        for line in formatted(&text).lines() {
            let code = line.split("//").next().unwrap_or_default().trim_end();
            assert!(code.chars().count() <= WIDTH, "{line}");
        }
    }
}
