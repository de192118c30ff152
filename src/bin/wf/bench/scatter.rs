//! The suite `scatter`: every scatter algorithm, by degree, on uniform and adaptive balls → rows and one table.

use std::sync::Arc;

use fem_bench::BenchError;
use fem_bench::balls::{Ball, Census, nodes, unknowns};
use fem_bench::ljungkvist::{CASE, PaperRow};
use fem_bench::product::{Machine, Product};
use kernels_gen::plan::Scatter;
use runtime::device::Device;
use runtime::kernels::compile::CompileError;
use runtime::mesh::Mesh;
use serde_json::{Value, json};

use super::{Arguments, Degrees, machine, named};
use crate::console::Console;
use crate::report::{Failure, Report};

/// Products that are timed together.
const PRODUCTS: usize = 30;

/// The scatter algorithms of a device; the first is the reference.
const WAYS: [Scatter; 4] = [Scatter::Atomic, Scatter::Coloured, Scatter::Owner, Scatter::Block];

/// A mesh at a degree.
struct Subject {
    dim: usize,
    adaptive: bool,
    degree: usize,
    mesh: Arc<Mesh>,
    census: Census,
    dofs: usize,
}

/// The measurements of one algorithm.
struct AlgorithmMeasurement {
    seconds: f64,
    /// Number of colours, or of chunks on the CPU, and the cells of the smallest and the largest.
    parts: Option<(usize, [usize; 2])>,
}

pub(super) fn suite(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let name = named(device);
    report.text.push_str(&format!(
        "{name}: million unknowns a second, with those of hanging nodes; colours (chunks on the processor) and the cells of\n\
         the smallest and the largest\n\
         d p mesh      unknowns  way          rate   of the first  colours   smallest    largest\n"
    ));
    let degrees = arguments.degree.unwrap_or(Degrees { first: 1, last: 4 });
    for dim in [2, 3] {
        for degree in degrees.first as usize..=degrees.last as usize {
            for adaptive in [false, true] {
                let subject = subject(arguments, (dim, degree, adaptive), console)?;
                measure(arguments, device, &subject, report, console)?;
            }
        }
    }
    Ok(())
}

/// Returns the largest ball with at most the requested number of DoFs.
fn subject(
    arguments: &Arguments,
    (dim, degree, adaptive): (usize, usize, bool),
    console: &Console,
) -> Result<Subject, Failure> {
    let ball = Ball::new(dim)?;
    let mut level = 0;
    while nodes(&ball.counts(level + 1), degree)? <= arguments.sizes().last {
        level += 1;
    }
    console.progress().say(format!("{dim}D, degree {degree}: a mesh"));
    let mesh = match adaptive {
        false => ball.uniform(level)?,
        true => ball.mesh(&ball.adapted(PaperRow::base(dim, level))?)?,
    };
    let (census, dofs) = (Census::of(&mesh), unknowns(&mesh, degree)?);
    Ok(Subject { dim, adaptive, degree, mesh: Arc::new(mesh), census, dofs })
}

/// Measures all algorithms on one mesh.
fn measure(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    subject: &Subject,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let ways: Vec<Option<Scatter>> = match device {
        Some(_) => WAYS.map(Some).into(),
        None => vec![None],
    };
    let mut first = None;
    for way in ways {
        let word = way.map_or_else(|| "chunks".to_owned(), |way| way.to_string());
        let Subject { dim, degree, .. } = subject;
        console.progress().say(format!("{dim}D, degree {degree}, {word}"));
        let machine = match machine(arguments, device) {
            Machine::Device(device, mut wishes) => {
                wishes.scatter = way;
                Machine::Device(device, wishes)
            }
            processor => processor,
        };
        let found = match of_way(subject, &machine, way) {
            Err(BenchError::Compile(CompileError::Plan(reason))) => Err(reason.to_string()),
            found => Ok(found?),
        };
        if let Ok(found) = &found {
            first = first.or(Some(found.seconds));
        }
        let shown = line(subject, &word, &found, first);
        report.row(&shown, console);
        report.json.push(value(subject, &word, &found, device));
    }
    Ok(())
}

fn of_way(
    subject: &Subject,
    machine: &Machine,
    way: Option<Scatter>,
) -> Result<AlgorithmMeasurement, BenchError> {
    let mut product = Product::new(&CASE, subject.degree, &subject.mesh, machine)?;
    let shares = product.shares();
    let lists = || shares.iter().map(|share| &share.sizes[..]);
    let sizes: Option<Vec<usize>> = match way {
        // Each colour of each class is a launch.
        Some(Scatter::Coloured) => Some(lists().flatten().copied().collect()),
        Some(_) => None,
        // A chunk has cells of all classes.
        None => {
            let count = lists().map(<[usize]>::len).max().unwrap_or(0);
            let of = |chunk: usize| lists().filter_map(|sizes| sizes.get(chunk)).sum();
            Some((0..count).map(of).collect())
        }
    };
    let parts = sizes.map(|mut sizes| {
        sizes.retain(|&size| size > 0);
        let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
        (sizes.len(), [least.unwrap_or(0), most.unwrap_or(0)])
    });
    Ok(AlgorithmMeasurement { seconds: product.mean_seconds(PRODUCTS)?, parts })
}

impl Subject {
    fn kind(&self) -> &'static str {
        if self.adaptive { "adaptive" } else { "uniform" }
    }

    /// Returns the DoFs including those of hanging nodes.
    fn counted(&self) -> usize {
        self.dofs + self.census.hanging(self.degree)
    }
}

fn line(
    subject: &Subject,
    word: &str,
    found: &Result<AlgorithmMeasurement, String>,
    first: Option<f64>,
) -> String {
    let Subject { dim, degree, .. } = subject;
    let start = format!("{dim} {degree} {:<8} {:>9}  {word:<8}", subject.kind(), subject.counted());
    match found {
        Err(reason) => format!("{start}  -  {reason}\n"),
        Ok(found) => {
            let rate = subject.counted() as f64 / found.seconds / 1e6;
            let ratio = first.map_or(1.0, |first| first / found.seconds);
            let parts = found.parts.map_or_else(String::new, |(count, [least, most])| {
                format!(" {count:>8} {least:>10} {most:>10}")
            });
            format!("{start} {rate:>8.1} {ratio:>14.2}{parts}\n")
        }
    }
}

fn value(
    subject: &Subject,
    word: &str,
    found: &Result<AlgorithmMeasurement, String>,
    device: Option<&Arc<dyn Device>>,
) -> Value {
    let (measured, refused) = (found.as_ref().ok(), found.as_ref().err());
    let parts = measured.and_then(|found| found.parts);
    let per_second = |count: usize| measured.map(|found| count as f64 / found.seconds);
    json!({
        "suite": "scatter",
        "dim": subject.dim,
        "mesh": subject.kind(),
        "degree": subject.degree,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "cells": subject.census.cells,
        "constrained_cells": subject.census.constrained,
        "dofs": subject.dofs,
        "dofs_with_hanging": subject.counted(),
        "scatter": word,
        "seconds": measured.map(|found| found.seconds),
        "dofs_per_second": per_second(subject.dofs),
        "dofs_with_hanging_per_second": per_second(subject.counted()),
        "parts": parts.map(|(count, _)| count),
        "smallest_part_cells": parts.map(|(_, [least, _])| least),
        "largest_part_cells": parts.map(|(_, [_, most])| most),
        "refused": refused,
    })
}
