//! Each pass from text to text.
//!
//! A case is a file: a line `# PURPOSE`, kernels, a line `=> PASS`, and the kernels that the pass makes of them. Behind those
//! of `place` it lists where their constants are; `=> place with spread memory` is for languages that have one.

use crate::kir::read::read_all;
use crate::kir::verify::{Phase, verify};
use crate::pass::{Module, PASSES};

/// The files of a folder, which has the name of a pass.
macro_rules! cases {
    ($($pass:literal: $($name:literal)*;)*) => {
        [$($(($pass, $name, include_str!(concat!($pass, "/", $name, ".kir"))),)*)*]
    };
}

/// Folder, name and text of each case.
const CASES: [(&str, &str, &str); 17] = cases! {
    "eliminate": "unused_chain" "stores" "blocks";
    "legalise": "broadcast" "blocks" "stages" "edge" "uniform";
    "share": "atomic" "prefetch" "stages";
    "place": "small" "spread" "spread_memory" "large" "literals" "positions";
};

/// Runs the pass of a case and returns the text that should end the file.
fn outcome(name: &str, input: &str, heading: &str) -> String {
    let mut kernels = read_all(input).unwrap_or_else(|error| panic!("{name}: {error}"));
    for kernel in &kernels {
        assert_eq!(verify(kernel, Phase::Lowered), Ok(()), "{name}");
    }
    let printed: String = kernels.iter().map(ToString::to_string).collect();
    assert_eq!(printed, input, "{name}: the kernels should be written as they are printed");
    let (pass, setting) = heading.split_once(' ').unwrap_or((heading, ""));
    let pass = PASSES.iter().find(|known| known.name == pass);
    let pass = pass.unwrap_or_else(|| panic!("{name}: `{heading}` names no pass"));
    let has_spread_memory = match setting {
        "" => false,
        "with spread memory" => true,
        other => panic!("{name}: `{other}` is no setting"),
    };
    let mut module = Module { has_spread_memory, ..Module::new(&mut kernels) };
    pass.run(&mut module).unwrap_or_else(|error| panic!("{name}: {error}"));
    let constants = std::mem::take(&mut module.constants);
    let mut text: String = kernels.iter().map(ToString::to_string).collect();
    for (kernel, constants) in kernels.iter().zip(constants) {
        let (bytes, count) = (constants.bytes, constants.tables.len());
        text.push_str(&format!("# {}: {bytes} bytes of constants", kernel.name));
        if let [first, .., last] = constants.tables[..] {
            text.push_str(&format!(", {count} numbers in `tables`: {first} … {last}"));
        }
        text.push('\n');
    }
    text
}

/// Shows the lines in which two texts differ first.
fn difference(expected: &str, found: &str) -> String {
    let common = expected.lines().zip(found.lines()).take_while(|(one, other)| one == other);
    let line = common.count();
    let part = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(line).take(5).collect();
        lines.join("\n    ")
    };
    let (expected, shown) = (part(expected), part(found));
    format!("from line {} on, expected\n    {expected}\nfound\n    {shown}\nin\n{found}", line + 1)
}

#[test]
fn passes_rewrite_as_their_texts_show() {
    let mut wrong = Vec::new();
    for (folder, name, text) in CASES {
        let name = format!("pass/tests/{folder}/{name}.kir");
        let (purpose, rest) = text.split_once('\n').unwrap_or_default();
        assert!(purpose.starts_with("# "), "{name} should begin with its purpose");
        let (input, rest) = rest.split_once("=> ").expect("a line `=> PASS`");
        let (heading, expected) = rest.split_once('\n').expect("kernels after the pass");
        assert!(heading.starts_with(folder), "{name} is in the folder of another pass");
        let found = outcome(&name, input, heading);
        if found != expected {
            wrong.push(format!("{name}: {}", difference(expected, &found)));
        }
        // The kernels after a pass are read back, too.
        let kernels = found.split("# ").next().unwrap_or_default();
        let printed = read_all(kernels)
            .map(|kernels| kernels.iter().map(ToString::to_string).collect::<String>());
        assert_eq!(printed.as_deref(), Ok(kernels), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn each_pass_has_three_texts() {
    for pass in PASSES {
        let own = CASES.iter().filter(|(folder, ..)| *folder == pass.name);
        assert!(own.count() >= 3, "{} needs more texts in pass/tests/{0}", pass.name);
    }
}
