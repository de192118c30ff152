//! Rows of the suite `ljungkvist` → the paper's tables with our values, and its figures as tables.

use fem_bench::balls::{Ball, nodes};
use fem_bench::ljungkvist::{TABLE, speedup};

use super::{Costs, Row, room};
use crate::report::Failure;

pub(super) fn kind(adaptive: bool) -> &'static str {
    if adaptive { "adaptive" } else { "uniform" }
}

/// Prints a row as soon as it is measured.
pub(super) fn line(row: &Row) -> String {
    format!(
        "{}D, {}, degree {}: {} cells, {} unknowns, {:.1} million a second",
        row.dim,
        kind(row.adaptive),
        row.degree,
        row.census.cells,
        row.counted(),
        row.rate() / 1e6
    )
}

/// Prints all tables.
pub(super) fn text(rows: &[Row]) -> Result<String, Failure> {
    let parts = [
        batches(rows),
        uniform()?,
        adaptive(rows),
        sizes(rows, 2),
        sizes(rows, 3),
        degrees(rows),
        matrices(rows),
        costs(rows),
    ];
    Ok(parts.concat())
}

/// Returns the row of the largest mesh of a dimension, kind and degree.
fn largest(rows: &[Row], dim: usize, adaptive: bool, degree: usize) -> Option<&Row> {
    let own = rows.iter().filter(|row| (row.dim, row.adaptive) == (dim, adaptive));
    own.filter(|row| row.degree == degree).max_by_key(|row| row.level)
}

/// Returns the dimensions and degrees that were measured.
fn measured(rows: &[Row]) -> Vec<(usize, usize)> {
    let mut all: Vec<_> = rows.iter().map(|row| (row.dim, row.degree)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns a number, or a dash.
fn shown<T: ToString>(number: Option<T>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Prints table 1.
fn batches(rows: &[Row]) -> String {
    let mut text = "\nTable 1: cells of a group of threads, or of a batch\n\
                    d p   paper   ours   ours, hanging\n"
        .to_owned();
    for (dim, degree) in measured(rows) {
        let own = |adaptive, class: usize| largest(rows, dim, adaptive, degree)?.batches[class];
        let known = TABLE.iter().find(|line| (line.dim, line.degree) == (dim, degree));
        text.push_str(&format!(
            "{dim} {degree} {:>7} {:>6} {:>15}\n",
            shown(known.map(|line| line.block)),
            shown(own(false, 0)),
            shown(own(true, 1)),
        ));
    }
    text
}

/// Prints table 2a, which needs no mesh.
fn uniform() -> Result<String, Failure> {
    let mut text = "\nTable 2a: uniform meshes\n\
                    d p    paper: cells    unknowns     ours: cells    unknowns\n"
        .to_owned();
    for line in &TABLE {
        let counts = Ball::new(line.dim)?.counts(line.level);
        let [cells, dofs] = line.uniform;
        text.push_str(&format!(
            "{} {} {cells:>15} {dofs:>11} {:>15} {:>11}\n",
            line.dim,
            line.degree,
            counts.cells(),
            nodes(&counts, line.degree)?,
        ));
    }
    Ok(text)
}

/// Prints table 2b, with the paper's figures for meshes of equal size.
fn adaptive(rows: &[Row]) -> String {
    let mut text = "\nTable 2b: adaptive meshes, unknowns with those of hanging nodes\n\
                    d p    paper: cells    unknowns   % HN     ours: cells    unknowns   % HN   cells off\n"
        .to_owned();
    let mut smaller = false;
    for (dim, degree) in measured(rows) {
        let Some(row) = largest(rows, dim, true, degree) else { continue };
        let (cells, paper) = (row.census.cells, row.line());
        smaller |= paper.is_none();
        let off = paper.map(|line| 100.0 * (cells as f64 / line.adaptive[0] as f64 - 1.0));
        text.push_str(&format!(
            "{dim} {degree} {:>15} {:>11} {:>6} {cells:>15} {:>11} {:>6.2} {:>11}\n",
            shown(paper.map(|line| line.adaptive[0])),
            shown(paper.map(|line| line.adaptive[1])),
            shown(paper.map(|line| line.hanging)),
            row.counted(),
            100.0 * row.hanging(),
            shown(off.map(|off| format!("{off:+.1} %"))),
        ));
    }
    if smaller {
        let bound = room().unwrap_or_else(|| "unknown".to_owned());
        text.push_str(&format!(
            "- where the mesh is not the paper's: more --dofs, a degree of 1 to 4, or more memory than {bound}\n"
        ));
    }
    text
}

/// Prints figures 4 and 5, and the same for adaptive meshes.
fn sizes(rows: &[Row], dim: usize) -> String {
    let mut text = format!(
        "\nFigure {}: {dim}D, million unknowns a second over size; a level's adaptive mesh beside its uniform one\n\
         p level    uniform: unknowns    rate    adaptive: unknowns    rate   overhead\n",
        dim + 2
    );
    let own =
        |adaptive: bool| rows.iter().filter(move |row| (row.dim, row.adaptive) == (dim, adaptive));
    let mut uniform: Vec<&Row> = own(false).collect();
    uniform.sort_by_key(|row| (row.degree, row.level));
    for row in uniform {
        let beside = own(true).find(|other| (other.degree, other.level) == (row.degree, row.level));
        text.push_str(&format!(
            "{} {:>5} {:>20} {:>7.1} {:>21} {:>7} {:>10}\n",
            row.degree,
            row.level,
            row.counted(),
            row.rate() / 1e6,
            shown(beside.map(Row::counted)),
            shown(beside.map(|row| format!("{:.1}", row.rate() / 1e6))),
            shown(beside.map(|beside| overhead(row, beside))),
        ));
    }
    text
}

/// Returns the additional time per DoF in comparison with the uniform mesh.
fn overhead(uniform: &Row, adaptive: &Row) -> String {
    format!("{:+.0} %", 100.0 * (uniform.rate() / adaptive.rate() - 1.0))
}

/// Prints figures 6 and 7.
fn degrees(rows: &[Row]) -> String {
    let mut text = "\nFigures 6 and 7: million unknowns a second on the largest meshes; the paper's overhead is 10 to 40 %\n\
                    d p   uniform   adaptive   overhead   of unknowns without hanging ones\n"
        .to_owned();
    for (dim, degree) in measured(rows) {
        let [uniform, adaptive] =
            [false, true].map(|adaptive| largest(rows, dim, adaptive, degree));
        let (Some(uniform), Some(adaptive)) = (uniform, adaptive) else { continue };
        text.push_str(&format!(
            "{dim} {degree} {:>9.1} {:>10.1} {:>10} {:>34.1}\n",
            uniform.rate() / 1e6,
            adaptive.rate() / 1e6,
            overhead(uniform, adaptive),
            adaptive.dofs as f64 / adaptive.seconds / 1e6,
        ));
    }
    text
}

/// Prints the sparse matrix of figures 4 to 7: for each degree the largest meshes with a matrix.
fn matrices(rows: &[Row]) -> String {
    let mut text = "\nFigures 4 to 7: million unknowns a second matrix-free and with a sparse matrix (hanging nodes eliminated), bytes an\n\
                    unknown, milliseconds of assembling; how many times as fast as it, beside the paper's (K40, cuSPARSE)\n\
                    d p mesh      unknowns      free    matrix  B free  B matrix   assembly   ratio   paper\n"
        .to_owned();
    let before = text.len();
    for (dim, degree) in measured(rows) {
        for adaptive in [false, true] {
            let own = rows.iter().filter(|row| (row.dim, row.adaptive) == (dim, adaptive));
            let own = own.filter(|row| row.degree == degree && row.matrix.is_ok());
            let Some(row) = own.max_by_key(|row| row.level) else { continue };
            let Ok(matrix) = &row.matrix else { continue };
            let paper = speedup(dim, degree, adaptive);
            text.push_str(&format!(
                "{dim} {degree} {:<8} {:>9} {:>9.1} {:>9.1} {:>7.1} {:>9.1} {:>10.2} {:>7.2}   {}\n",
                kind(adaptive),
                row.counted(),
                row.rate() / 1e6,
                row.counted() as f64 / matrix.seconds / 1e6,
                row.per_dof(row.bytes),
                row.per_dof(matrix.bytes),
                1e3 * matrix.assembly,
                matrix.seconds / row.seconds,
                paper.map_or_else(|| "-".to_owned(), |[least, most]| match least == most {
                    true => format!("{least}"),
                    false => format!("{least} to {most}"),
                }),
            ));
        }
    }
    if text.len() == before { String::new() } else { text }
}

/// Prints the cost per cell.
fn costs(rows: &[Row]) -> String {
    let mut text = "\nNanoseconds of a cell on the largest adaptive meshes: kernels of a class alone, and a constrained cell as what\n\
                    all cells take beyond those of the uniform mesh\n\
                    d p   constrained cells   free   constrained   ratio   by subtraction\n"
        .to_owned();
    for (dim, degree) in measured(rows) {
        let [uniform, adaptive] =
            [false, true].map(|adaptive| largest(rows, dim, adaptive, degree));
        let (Some(uniform), Some(row)) = (uniform, adaptive) else { continue };
        let Some(costs) = &row.costs else { continue };
        let [free, hanging] = costs.each().map(|seconds| 1e9 * seconds);
        text.push_str(&format!(
            "{dim} {degree} {:>17.1} % {free:>6.2} {hanging:>13.2} {:>7.2} {:>16.2}\n",
            100.0 * row.constrained(),
            Costs::ratio(costs),
            subtracted(uniform, row),
        ));
    }
    text
}

/// Returns the cost of a constrained cell in cells of the uniform mesh: (T − free · t) / (constrained · t).
fn subtracted(uniform: &Row, adaptive: &Row) -> f64 {
    let each = uniform.seconds / uniform.census.cells as f64;
    let constrained = adaptive.census.constrained as f64;
    let free = adaptive.census.cells as f64 - constrained;
    (adaptive.seconds - free * each) / (constrained * each)
}
