//! The suite `afem`: every algorithm of assembling Poisson's matrix, and of applying it, by cell and degree → rows and
//! one table.

use std::sync::Arc;

use fem_bench::BenchError;
use fem_bench::assembly::{Measurement, WAYS, measured};
use fem_dsl::problem::Argument;
use runtime::device::Device;
use runtime::kernels::compile::CompileError;
use runtime::kernels::representation::Representation;
use runtime::mesh::Mesh;
use runtime::mesh::generate::generate;
use serde_json::{Value, json};

use super::{Arguments, Degrees, machine, named};
use crate::console::Console;
use crate::report::{Failure, Report};

/// The cells: their names and their dimension.
const CELLS: [(&str, i32); 4] = [("tri", 2), ("quad", 2), ("tet", 3), ("hex", 3)];

/// A mesh at a degree.
struct Subject {
    cell: &'static str,
    degree: usize,
    mesh: Arc<Mesh>,
}

pub(super) fn suite(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let name = named(device);
    report.text.push_str(&format!(
        "{name}: seconds to find places (set up), to assemble or to make the element matrices, and of a product; million cells\n\
         assembled a second; entries of the matrix a cell; difference of the product from the matrix-free one\n\
         cell p     cells  unknowns  way                    set up   assembly  Mcells/s    product  entries  difference\n"
    ));
    let degrees = arguments.degree.unwrap_or(Degrees { first: 1, last: 1 });
    for (cell, dim) in CELLS {
        for degree in degrees.first as usize..=degrees.last as usize {
            let subject = subject(arguments, (cell, dim, degree), console)?;
            measure(arguments, device, &subject, report, console)?;
        }
    }
    Ok(())
}

/// Returns the smallest box with at least the requested number of DoFs.
fn subject(
    arguments: &Arguments,
    (cell, dim, degree): (&'static str, i32, usize),
    console: &Console,
) -> Result<Subject, Failure> {
    console.progress().say(format!("{cell}, degree {degree}: a mesh"));
    let a_side = (arguments.sizes().last.powf(1.0 / f64::from(dim)) - 1.0) / degree as f64;
    let numbers = [("dim", f64::from(dim)), ("cells", a_side.ceil().max(1.0)), ("deform", 0.1)];
    // Deformed simplices are affine like all simplices; their boxes are not.
    let numbers =
        numbers.iter().filter(|(name, _)| *name != "deform" || matches!(cell, "quad" | "hex"));
    let numbers = numbers.map(|&(name, value)| (name.to_owned(), Argument::Number(value)));
    let word = ("cell".to_owned(), Argument::Word(cell.to_owned()));
    let mesh = generate("box", &numbers.chain([word]).collect()).map_err(BenchError::from)?;
    Ok(Subject { cell, degree, mesh: Arc::new(mesh) })
}

/// Measures all algorithms on one mesh.
fn measure(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    subject: &Subject,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let mut first: Option<Vec<f64>> = None;
    for how in WAYS {
        let Subject { cell, degree, mesh } = subject;
        let word = word(how);
        console.progress().say(format!("{cell}, degree {degree}, {word}"));
        let found = match measured(mesh, *degree, how, &machine(arguments, device)) {
            Err(BenchError::Compile(CompileError::Plan(reason))) => Err(reason.to_string()),
            Err(BenchError::Build(reason)) => Err(reason.to_string()),
            found => Ok(found?),
        };
        let difference = found.as_ref().ok().map(|found| {
            let wanted = first.get_or_insert_with(|| found.result.clone());
            let norm = |values: &mut dyn Iterator<Item = f64>| {
                values.map(|value| value * value).sum::<f64>().sqrt()
            };
            let left = norm(&mut found.result.iter().zip(&*wanted).map(|(a, b)| a - b));
            left / norm(&mut wanted.iter().copied())
        });
        let shown = line(subject, &word, &found, difference);
        report.row(&shown, console);
        report.json.push(value(subject, &word, &found, difference, device));
    }
    Ok(())
}

fn word(how: Representation) -> String {
    match how {
        Representation::Assembled(assembly) => format!("assembled, {assembly}"),
        how => how.to_string(),
    }
}

fn line(
    subject: &Subject,
    word: &str,
    found: &Result<Measurement, String>,
    difference: Option<f64>,
) -> String {
    let Subject { cell, degree, mesh } = subject;
    let cells = mesh.n_cells();
    let head = format!("{cell:<4} {degree} {cells:>9}");
    let Ok(Measurement { dofs, set_up, assembly, product, size, .. }) = found else {
        let why = found.as_ref().err().map(String::as_str).unwrap_or_default();
        return format!(
            "{head}            {word:<21} {}\n",
            why.lines().next().unwrap_or_default()
        );
    };
    let (seconds, rate) = match assembly {
        Some(seconds) => (format!("{seconds:.3e}"), format!("{:.1}", cells as f64 / seconds / 1e6)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let entries = match size.entries {
        0 => "-".to_owned(),
        entries => format!("{:.1}", entries as f64 / cells as f64),
    };
    let difference = difference.unwrap_or_default();
    format!(
        "{head} {dofs:>9}  {word:<21} {set_up:.2e} {seconds:>10} {rate:>9} {product:>10.3e} {entries:>8} {difference:>11.1e}\n"
    )
}

fn value(
    subject: &Subject,
    word: &str,
    found: &Result<Measurement, String>,
    difference: Option<f64>,
    device: Option<&Arc<dyn Device>>,
) -> Value {
    let Subject { cell, degree, mesh } = subject;
    let cells = mesh.n_cells();
    let (on, threads) = (named(device), rayon::current_num_threads());
    let backend = device.map_or("cpu", |device| device.backend().word());
    match found {
        Err(why) => json!({
            "suite": "afem", "backend": backend, "device": on, "threads": threads, "cell": cell, "degree": degree, "cells": cells, "way": word, "error": why
        }),
        Ok(Measurement { dofs, set_up, assembly, product, size, .. }) => json!({
            "suite": "afem", "backend": backend, "device": on, "threads": threads, "cell": cell, "degree": degree, "cells": cells, "dofs": dofs, "way": word,
            "set_up": set_up, "assembly": assembly, "product": product, "elements": size.elements,
            "entries": size.entries, "difference": difference
        }),
    }
}
