//! Rules of the documents: short lines and sentences, links that lead somewhere, a map that states what is so.

use super::{prose, report, root};
use std::fs;

#[test]
fn lines_of_the_readme_are_short() {
    let text = fs::read_to_string(root().join("README.md")).expect("the README");
    let lines = text.lines().enumerate();
    let long = lines.filter(|(_, line)| line.chars().count() > 100);
    let mut complaints: Vec<String> =
        long.map(|(number, line)| format!("README.md:{}: {line}", number + 1)).collect();
    if text.lines().count() > 200 {
        complaints.push("README.md has more than 200 lines".to_owned());
    }
    report("README has at most 200 lines of at most 100 characters", &complaints);
}

#[test]
fn sentences_of_pages_are_short() {
    let mut pages = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    pages.extend(["CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)));
    for folder in ["docs", "docs/design", "docs/tutorial"] {
        let entries = fs::read_dir(root().join(folder)).expect("the documents").flatten();
        pages.extend(entries.map(|entry| entry.path()));
    }
    let mut complaints = Vec::new();
    for page in pages.iter().filter(|page| page.extension().is_some_and(|of| of == "md")) {
        let text = fs::read_to_string(page).expect("UTF-8");
        let average = prose::words_a_sentence(&text);
        if average > 22.0 {
            complaints.push(format!("{}: {average:.1} words a sentence", page.display()));
        }
    }
    report("sentences have at most 22 words on average", &complaints);
}

#[test]
fn the_map_says_what_is_checked() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let own = fs::read_to_string(root().join("tests/tidy.rs")).expect("this file");
    let mut complaints = Vec::new();
    if map.lines().count() > 180 {
        complaints.push("ARCHITECTURE.md has more than 180 lines".to_owned());
    }
    let is_test = |word: &str| own.contains(&format!("#[test]\nfn {word}() {{"));
    for claim in map.split("**Invariant:**").skip(1) {
        let end = claim.find("\n- ").or(claim.find("\n\n")).unwrap_or(claim.len());
        let claim = claim[..end].split("\n\n").next().unwrap_or_default();
        let named = claim.split('`').skip(1).step_by(2).filter(|word| is_test(word)).count();
        if named == 0 {
            complaints.push(format!("no test here holds:{}", claim.replace('\n', " ")));
        }
    }
    let mut pages = vec![(String::new(), map)];
    for folder in ["docs", "docs/design"] {
        for page in fs::read_dir(root().join(folder)).expect("the documents").flatten() {
            if page.path().extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(page.path()).expect("UTF-8");
                pages.push((format!("{folder}/"), text));
            }
        }
    }
    for (folder, text) in &pages {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !root().join(folder).join(link).exists() {
                complaints.push(format!("{folder} links to {link}, which is not there"));
            }
        }
        // A file may be named relative to the root, or to the folder of a crate's sources.
        let within = [
            "",
            "kernels-gen/src/",
            "runtime/src/",
            "runtime/mesh/src/",
            "fem-dsl/src/",
            "src/",
            "runtime/tests/",
        ];
        let found = |named: &str| {
            within.iter().map(|at| root().join(at).join(named)).find(|at| at.exists())
        };
        for named in text.split('`').skip(1).step_by(2).filter(|named| named.ends_with(".rs")) {
            let plain = named.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.".contains(c));
            if plain && found(named).is_none() {
                complaints.push(format!("{folder} names {named}, which is not there"));
            }
        }
        // A function is named after its file: "`file.rs`, `function`".
        let parts: Vec<&str> = text.split('`').collect();
        let is_name =
            |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
        let pairs = parts.windows(3).skip(1).step_by(2);
        for named in
            pairs.filter(|named| named[0].ends_with(".rs") && named[1] == ", " && is_name(named[2]))
        {
            let name = named[2].rsplit("::").next().unwrap_or_default();
            let code = found(named[0]).and_then(|path| fs::read_to_string(path).ok());
            if code.is_some_and(|code| !code.contains(&format!("fn {name}"))) {
                complaints
                    .push(format!("{folder} names {name} of {}, which is not there", named[0]));
            }
        }
    }
    report("ARCHITECTURE.md is a map of what is so", &complaints);
}
