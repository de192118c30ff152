//! Formulas of a form are its rows in the language: parsed again they have the same values.

use crate::common::CORPUS;
use fem_dsl::ast::{self, FormItemKind};
use fem_dsl::check::check_dimensions;
use fem_dsl::differentiate::differentiate;
use fem_dsl::eval::tensors;
use fem_dsl::form::{Form, Shape, Terminal};
use fem_dsl::parse::parse;
use fem_dsl::simplify::simplify;
use fem_dsl::source::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Returns the declarations of a form with the printed rows in the place of its own.
fn reprinted(source: &Source, form: &ast::Form, derived: &Form) -> String {
    let mut text = format!("form {} {{\n", form.name.name);
    let mut blocks = BTreeMap::new();
    let mut last = None;
    let mut declarations = |items: &[ast::FormItem], text: &mut String| {
        for item in items {
            let kept = matches!(
                item.kind,
                FormItemKind::Field { .. }
                    | FormItemKind::Aux { .. }
                    | FormItemKind::Param { .. }
                    | FormItemKind::Let { .. }
                    | FormItemKind::Fn { .. }
                    | FormItemKind::Test { .. }
                    | FormItemKind::Update { .. }
            );
            // A state is two items of one text.
            if kept && last.replace(item.span) != Some(item.span) {
                writeln!(text, "{}", source.slice(item.span)).expect("a string takes all text");
            }
        }
    };
    declarations(&form.items, &mut text);
    for item in &form.items {
        if let FormItemKind::Block { items, .. } = &item.kind {
            let head = source.slice(item.span).split('{').next().unwrap_or_default();
            let head = head.trim_start_matches("on").trim().to_owned();
            declarations(items, blocks.entry(head).or_insert_with(String::new));
        }
    }
    for own in derived.formulas() {
        let region = own.region.replace(['[', ']'], "");
        let text = match region == "cells" {
            true => &mut text,
            false => blocks.entry(region).or_default(),
        };
        // Values of the action depend on δu, directly or by names.
        let mut of_action = vec!["δ".to_owned()];
        for line in &own.shared {
            let (name, value) = line.split_once(" = ").expect("a name and its value");
            let words = |text: &str| -> Vec<String> {
                let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                parts.map(str::to_owned).collect()
            };
            match value.contains('δ') || words(value).iter().any(|word| of_action.contains(word)) {
                true => of_action.push(name.to_owned()),
                false => writeln!(text, "let {line};").expect("a string takes all text"),
            }
        }
        for line in &own.rows {
            writeln!(text, "{line};").expect("a string takes all text");
        }
    }
    for (head, items) in blocks {
        writeln!(text, "on {head} {{\n{items}}}").expect("a string takes all text");
    }
    text + "}\n"
}

/// Returns the value of each row and of each row of the action by region, field and factor, for values of terminals
/// that depend on nothing but their names.
fn values(form: &Form) -> BTreeMap<String, Vec<f64>> {
    let terminal = |terminal: Terminal| {
        let name = form.terminal_name(terminal);
        let seed = name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        let count = form.shape_of(terminal).map_or(1, Shape::components);
        (0..count).map(|i| 1.0 + 0.4 * f64::sin(f64::from(seed % 997) + 1.3 * i as f64)).collect()
    };
    let mut all = BTreeMap::new();
    for integral in &form.integrals {
        for (mark, rows) in [("", &integral.rows), ("δ", &integral.action)] {
            for row in rows {
                for (factor, value) in [row.f0, row.f1, row.f2].into_iter().enumerate() {
                    let Some(value) = value else { continue };
                    let found = tensors(&form.exprs, &[value], terminal)[&value].clone();
                    let place = format!(
                        "{}: {mark}f{factor}[{} {:?}]",
                        integral.region, row.field, row.side
                    );
                    all.insert(place, found);
                }
            }
        }
    }
    all
}

#[test]
fn formulas_parse_to_the_form_again() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = vec![("corpus.wf".to_owned(), CORPUS.to_owned())];
    for folder in ["examples", "tests/forms"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "wf") {
                let name = path.display().to_string();
                texts.push((name, std::fs::read_to_string(path).expect("a file")));
            }
        }
    }
    let (mut compared, mut left_out) = (0, Vec::new());
    for (name, text) in texts {
        let source = Source::new(name, text);
        let (file, errors) = parse(&source);
        if !errors.is_empty() {
            // Tables in files are not read here.
            continue;
        }
        for form in &file.forms {
            let dimensions = check_dimensions(&source, &file, form);
            // Complex forms are checked in real numbers only.
            let Some(checked) = dimensions.forms().next() else { continue };
            let derived = simplify(&differentiate(checked));
            let title = format!("{} of {}", form.name.name, source.name());
            let text = reprinted(&source, form, &derived);
            // The factor of second derivatives has no row in the language. A field on a part of the mesh has one side.
            let partial = derived.fields.iter().any(|field| !field.cells.is_empty());
            if partial && text.contains("interior")
                || text.contains("f2[")
                || text.contains("tensor_cross(")
            {
                left_out.push(title);
                continue;
            }
            let again = Source::new("again.wf", text);
            let (file, errors) = parse(&again);
            assert!(errors.is_empty(), "{title}: {errors:#?}\n{}", again.text());
            let dimensions = check_dimensions(&again, &file, &file.forms[0]);
            let found = dimensions.form(derived.dim);
            let found = found.unwrap_or_else(|| {
                panic!("{title}: {:#?}\n{}", dimensions.diagnostics(), again.text())
            });
            let (expected, found) = (values(&derived), values(&simplify(&differentiate(found))));
            assert_eq!(
                expected.keys().collect::<Vec<_>>(),
                found.keys().collect::<Vec<_>>(),
                "{title}\n{}",
                again.text()
            );
            for ((place, expected), found) in expected.iter().zip(found.values()) {
                for (a, b) in expected.iter().zip(found) {
                    let close =
                        (a - b).abs() <= 1e-12 * a.abs().max(1.0) || a.is_nan() && b.is_nan();
                    assert!(
                        close && expected.len() == found.len(),
                        "{title}, {place}: {a} and {b}\n{}",
                        again.text()
                    );
                }
            }
            compared += 1;
        }
    }
    assert!(
        compared > 60 && left_out.len() < 10,
        "{compared} forms were compared, not {left_out:?}"
    );
}
