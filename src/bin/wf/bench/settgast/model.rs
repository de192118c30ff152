//! Tables 1 to 4 by the paper's formulas, with the copy bandwidth as the only measurement: formulas → text and rows.

use fem_bench::low_order_model::{
    Caching, ELASTICITY, LAPLACE, MEMORIES, MILLION, Memory, OWN_PASSES, Operator, PASSES, Pass,
    Problem, Traffic, VECTOR_LAPLACE,
};
use runtime::kernels::rates::Rates;
use serde_json::{Value, json};

/// The problems of the tables.
const TABLES: [Problem; 2] = [LAPLACE, ELASTICITY];

/// The operators, table by table.
const OPERATORS: [(Operator, &str); 3] = [
    (Operator::Spmv, "SpMV"),
    (Operator::MatrixFree, "matrix-free"),
    (Operator::PartialAssembly, "partial assembly"),
];

/// Returns the paper's problem for one of our cases.
pub(super) fn of_case(name: &str) -> &'static Problem {
    match name {
        "BP5" => &LAPLACE,
        "BP6" => &VECTOR_LAPLACE,
        _ => &ELASTICITY,
    }
}

/// Returns the entries of a matrix with this many rows, as table 1 counts them.
pub(super) fn entries(problem: &Problem, dofs: usize) -> f64 {
    (problem.row() * dofs) as f64
}

/// Returns the bytes of a product on the box of the tables.
pub(super) fn bytes(operator: Operator, problem: &Problem, caching: Caching) -> f64 {
    Traffic::of(operator, problem, MILLION, caching).total()
}

/// Returns the operator for one of our families.
pub(super) fn operator(family: &str) -> Operator {
    match OPERATORS.iter().find(|(_, name)| *name == family) {
        Some((operator, _)) => *operator,
        None => Operator::MatrixFree,
    }
}

/// Returns the ratio of two products' times by their bytes, with perfect caching and with none.
pub(super) fn ratios(problem: &Problem, over: Operator, under: Operator) -> [f64; 2] {
    let ratio = |caching| bytes(over, problem, caching) / bytes(under, problem, caching);
    [ratio(Caching::Perfect), ratio(Caching::None)]
}

/// Returns the caching variants; caching makes no difference for a matrix.
fn cachings(operator: Operator) -> Vec<(Caching, &'static str)> {
    match operator {
        Operator::Spmv => vec![(Caching::Perfect, "-")],
        _ => vec![(Caching::Perfect, "perfect"), (Caching::None, "none")],
    }
}

/// Formats bytes as MB.
fn mega(bytes: f64) -> String {
    match bytes {
        0.0 => "-".to_owned(),
        small if small < 100e6 => format!("{:.1}", small / 1e6),
        large => format!("{:.0}", large / 1e6),
    }
}

/// Formats with two digits.
pub(super) fn digits(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let places = (1 - value.log10().floor() as i32).max(0) as usize;
    format!("{value:.places$}")
}

/// Prints the tables.
pub(super) fn text(rates: &Rates) -> String {
    let here = Memory { name: "a copy here", bandwidth: rates.copy };
    let memories: Vec<Memory> = MEMORIES.into_iter().chain([here]).collect();
    let mut text = format!(
        "\nTables 1 to 3: a product on {} hexahedra of degree 1 by the paper's counts, in MB; then ms and GDoF/s by bandwidth\n\
         table  operator          problem         caching  entries  starts     map  constants  points  coordinates  vectors   total",
        MILLION.cells()
    );
    for memory in &memories {
        let head = format!("{}, {:.0} GB/s", memory.name, memory.bandwidth / 1e9);
        text.push_str(&format!(" {head:>25}"));
    }
    text.push('\n');
    for (number, (operator, name)) in OPERATORS.into_iter().enumerate() {
        for problem in &TABLES {
            for (caching, word) in cachings(operator) {
                let traffic = Traffic::of(operator, problem, MILLION, caching);
                let [entries, starts, map, constants, points, coordinates, vectors] =
                    traffic.parts().map(mega);
                text.push_str(&format!(
                    "{:>5}  {name:<16}  {:<14}  {word:<7} {entries:>8} {starts:>7} {map:>7} {constants:>10} {points:>7} {coordinates:>12} {vectors:>8} {:>7}",
                    number + 1,
                    problem.name,
                    mega(traffic.total())
                ));
                for memory in &memories {
                    let seconds = traffic.total() / memory.bandwidth;
                    let rate = MILLION.unknowns(problem) as f64 / seconds / 1e9;
                    let both = format!("{} {:>7}", digits(seconds * 1e3), digits(rate));
                    text.push_str(&format!(" {both:>25}"));
                }
                text.push('\n');
            }
        }
    }
    text.push_str(
        "\nTable 4: passes over vectors beside the operator, MB: vectors counted once, as the paper does; read and written\n",
    );
    text.push_str(&passes("the paper's", &PASSES));
    text.push_str(&passes("ours", &OWN_PASSES));
    text
}

fn passes(whose: &str, passes: &[Pass]) -> String {
    let mut text = format!("{whose:<24}  scalar: once   moved   elasticity: once   moved\n");
    for pass in passes {
        let [scalar, vector] = TABLES.map(|problem| {
            let unknowns = MILLION.unknowns(&problem);
            [pass.touched(unknowns), pass.moved(unknowns)]
                .map(|bytes| format!("{:.1}", bytes / 1e6))
        });
        text.push_str(&format!(
            "{:<24} {:>13} {:>7} {:>18} {:>7}\n",
            pass.formula, scalar[0], scalar[1], vector[0], vector[1]
        ));
    }
    text
}

/// Returns the tables as rows.
pub(super) fn values() -> Vec<Value> {
    let mut values = Vec::new();
    for (number, (operator, name)) in OPERATORS.into_iter().enumerate() {
        for problem in &TABLES {
            for (caching, word) in cachings(operator) {
                let bytes = bytes(operator, problem, caching);
                let dofs = MILLION.unknowns(problem);
                let memories = MEMORIES.map(|Memory { name, bandwidth }| {
                    let seconds = bytes / bandwidth;
                    json!({ "name": name, "bandwidth": bandwidth, "seconds": seconds, "dofs_per_second": dofs as f64 / seconds })
                });
                values.push(json!({
                    "suite": "settgast", "row": "model", "table": number + 1, "problem": problem.name, "operator": name,
                    "caching": word, "cells": MILLION.cells(), "dofs": dofs, "bytes": bytes, "memories": memories
                }));
            }
        }
    }
    for problem in &TABLES {
        for pass in PASSES {
            let dofs = MILLION.unknowns(problem);
            values.push(json!({
                "suite": "settgast", "row": "model", "table": 4, "problem": problem.name, "pass": pass.formula,
                "cells": MILLION.cells(), "dofs": dofs, "bytes": pass.touched(dofs), "bytes_moved": pass.moved(dofs)
            }));
        }
    }
    values
}
