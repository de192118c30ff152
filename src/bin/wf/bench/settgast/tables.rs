//! Rows of the suite `settgast` → our traffic in comparison with tables 1 to 4, its figures as tables, and the paper's
//! claims with our results.

use fem_bench::low_order::{OperatorVariant, Passes};
use fem_bench::low_order_model::{Caching, ELASTICITY, Grid, MILLION, Operator, Traffic};

use super::model::{bytes, digits, of_case, operator, ratios};
use super::{Row, SuiteMeasurements};

/// Prints a row as soon as it is measured.
pub(super) fn line(row: &Row) -> String {
    let head = format!("{}, {} unknowns, {}", row.problem, row.dofs, row.way);
    match (&row.found, row.rate()) {
        (Err(reason), _) => format!("{head}: {}", reason.lines().next().unwrap_or_default()),
        (Ok(_), rate) => format!(
            "{head}: {} MDoF/s, {} in iterations",
            mega(rate),
            mega(row.iteration_rate(Passes::Fused))
        ),
    }
}

/// Prints all tables.
pub(super) fn text(measured: &SuiteMeasurements) -> String {
    let parts = [
        streamed(measured),
        passes(measured),
        sizes(measured, "Figures 3 and 8", "a product", &Row::rate),
        sizes(
            measured,
            "Figures 1, 4 and 5",
            "an iteration of the conjugate gradient method",
            &|row| row.iteration_rate(Passes::Fused),
        ),
        shares(measured),
        products(measured),
        roofs(measured),
        claims(measured),
        refused(measured),
    ];
    parts.concat()
}

/// Returns million DoFs per second, or a dash.
fn mega(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1}", rate / 1e6))
}

/// Returns a ratio, or a dash.
fn ratio(over: Option<f64>, under: Option<f64>) -> String {
    over.zip(under).map_or_else(|| "-".to_owned(), |(over, under)| digits(over / under))
}

/// Prints tables 1 to 3 with our kernels and matrices, on the largest meshes.
fn streamed(measured: &SuiteMeasurements) -> String {
    let mut text = "\nTables 1 to 3, ours: B an element, as the cost model counts our kernels and as our matrices have entries, beside what the\n\
                    paper counts for the same mesh with perfect caching\n\
                    problem     way           of                  ours   paper   flops an element\n"
        .to_owned();
    for (problem, dofs) in measured.largest() {
        for row in measured.at(problem, dofs) {
            let Ok(found) = &row.found else { continue };
            let own = |all: f64| all / row.cells as f64;
            let (kind, grid) = (operator(row.way.family()), Grid { side: row.side() });
            let paper = Traffic::of(kind, of_case(problem), grid, Caching::Perfect);
            let paper = own(paper.total());
            text.push_str(&format!(
                "{problem:<11} {:<13} {:<16} {:>7.1} {paper:>7.1} {:>18.0}\n",
                row.way.to_string(),
                row.way.family(),
                own(found.counted.bytes),
                own(found.counted.flops)
            ));
        }
    }
    text
}

/// Prints table 4, measured.
fn passes(measured: &SuiteMeasurements) -> String {
    let mut text = "\nTable 4, measured on the largest meshes: what is read and written; that of a long copy is 100 %, more where vectors stay in caches\n\
                    problem     unknowns   pass                          MB        ms    GB/s   of a copy\n"
        .to_owned();
    for (problem, dofs) in measured.largest() {
        let all = measured.vectors.iter().find(|all| (all.problem, all.dofs) == (problem, dofs));
        for pass in all.iter().flat_map(|all| &all.passes) {
            let moved = (8 * pass.numbers * dofs) as f64;
            let speed = moved / pass.seconds;
            text.push_str(&format!(
                "{problem:<11} {dofs:>8}   {:<25} {:>6.1} {:>9.4} {:>7.1} {:>9.0} %\n",
                pass.name,
                moved / 1e6,
                pass.seconds * 1e3,
                speed / 1e9,
                100.0 * speed / measured.rates.copy
            ));
        }
    }
    text
}

/// Prints million DoFs per second over size.
fn sizes(
    measured: &SuiteMeasurements,
    figures: &str,
    what: &str,
    rate: &dyn Fn(&Row) -> Option<f64>,
) -> String {
    let mut text = format!(
        "\n{figures}: million unknowns a second of {what}, over size\n{:<11} {:>9} {:>9}",
        "problem", "elements", "unknowns"
    );
    for way in OperatorVariant::ALL {
        text.push_str(&format!(" {:>12}", way.to_string()));
    }
    text.push_str("   matrix-free by SpMV   by partial assembly\n");
    for (problem, _) in measured.largest() {
        for dofs in measured.sizes(problem) {
            let cells = measured.at(problem, dofs).next().map_or(0, |row| row.cells);
            text.push_str(&format!("{problem:<11} {cells:>9} {dofs:>9}"));
            for way in OperatorVariant::ALL {
                let rate = measured.row(problem, dofs, way).and_then(rate);
                text.push_str(&format!(" {:>12}", mega(rate)));
            }
            let best = |family| measured.best(problem, dofs, family, rate);
            text.push_str(&format!(
                " {:>21} {:>21}\n",
                ratio(best("matrix-free"), best("SpMV")),
                ratio(best("matrix-free"), best("partial assembly"))
            ));
        }
    }
    text
}

/// Prints figure 6.
fn shares(measured: &SuiteMeasurements) -> String {
    let mut text = format!(
        "\nFigure 6: the operator's part of an iteration's time, in per cent\n{:<11} {:>9} {:>9}",
        "problem", "elements", "unknowns"
    );
    for way in OperatorVariant::ALL {
        text.push_str(&format!(" {:>12}", way.to_string()));
    }
    text.push('\n');
    for (problem, _) in measured.largest() {
        for dofs in measured.sizes(problem) {
            let cells = measured.at(problem, dofs).next().map_or(0, |row| row.cells);
            text.push_str(&format!("{problem:<11} {cells:>9} {dofs:>9}"));
            for way in OperatorVariant::ALL {
                let share = measured
                    .row(problem, dofs, way)
                    .and_then(|row| Some(100.0 * row.iteration_rate(Passes::Fused)? / row.rate()?));
                let share = share.map_or_else(|| "-".to_owned(), |share| format!("{share:.0}"));
                text.push_str(&format!(" {share:>12}"));
            }
            text.push('\n');
        }
    }
    text
}

/// Prints figure 7.
fn products(measured: &SuiteMeasurements) -> String {
    let mut text = "\nFigure 7: million unknowns a second of an iteration by its passes over vectors: one an operation, those of table 4, and\n\
                    our solver's, whose products a device does not wait for\n\
                    problem      elements  unknowns  way            separate   table 4     fused   fused by separate\n"
        .to_owned();
    for row in measured.rows.iter().filter(|row| row.iteration(Passes::Separate).is_some()) {
        let [separate, four, fused] = Passes::ALL.map(|passes| row.iteration_rate(passes));
        text.push_str(&format!(
            "{:<11} {:>9} {:>9}  {:<12} {:>10} {:>9} {:>9} {:>19}\n",
            row.problem,
            row.cells,
            row.dofs,
            row.way.to_string(),
            mega(separate),
            mega(four),
            mega(fused),
            ratio(fused, separate)
        ));
    }
    text
}

/// Prints figures 2 and 9: the roof is the copy bandwidth times operations per byte, or the rate of multiply-adds.
fn roofs(measured: &SuiteMeasurements) -> String {
    let mut text = "\nFigures 2 and 9: products under the roof of a copy's bandwidth and of multiply-adds, both as measured, on the largest\n\
                    meshes; bytes and operations as the cost model counts them, so that more than a copy is the work of caches, whose hit rates\n\
                    are not measured; the paper has about 40 % of both for scalar Laplace (MI250X)\n\
                    problem     way           flop/B     GB/s   of a copy   GFLOP/s   of multiply-adds   of the roof\n"
        .to_owned();
    let rates = &measured.rates;
    for (problem, dofs) in measured.largest() {
        for row in measured.at(problem, dofs) {
            let Ok(found) = &row.found else { continue };
            let (bytes, flops) = (found.counted.bytes, found.counted.flops);
            let [speed, work] = [bytes, flops].map(|all| all / found.seconds);
            let roof = rates.flops.min(rates.copy * flops / bytes);
            text.push_str(&format!(
                "{problem:<11} {:<13} {:>6.2} {:>8.1} {:>9.0} % {:>9.1} {:>16.0} % {:>11.0} %\n",
                row.way.to_string(),
                flops / bytes,
                speed / 1e9,
                100.0 * speed / rates.copy,
                work / 1e9,
                100.0 * work / rates.flops,
                100.0 * work / roof
            ));
        }
    }
    text
}

/// Prints the ratios claimed in the paper, and ours.
fn claims(measured: &SuiteMeasurements) -> String {
    let mut text = "\nThe paper's claims beside ours, on the largest meshes\n".to_owned();
    let mut say = |what: &str, paper: &str, ours: &str| {
        text.push_str(&format!("{what:<78} {paper:>22} {ours:>10}\n"));
    };
    say("", "paper", "ours");
    for (problem, dofs) in measured.largest() {
        let name = of_case(problem).name;
        let best = |family| measured.best(problem, dofs, family, Row::rate);
        let iteration = |row: &Row| row.iteration_rate(Passes::Fused);
        for (operator, family) in
            [(Operator::Spmv, "SpMV"), (Operator::PartialAssembly, "partial assembly")]
        {
            let [perfect, none] =
                ratios(of_case(problem), operator, Operator::MatrixFree).map(digits);
            let what = format!("{name}: matrix-free by {family} by bytes, perfect caching to none");
            say(&what, &format!("{perfect} to {none}"), &ratio(best("matrix-free"), best(family)));
        }
        let spmv = bytes(Operator::Spmv, of_case(problem), Caching::Perfect);
        let bound = MILLION.unknowns(of_case(problem)) as f64 / spmv * measured.rates.copy;
        let what = format!("{name}: a matrix-free product by the bound of SpMV (figures 3 and 8)");
        say(&what, "> 1", &ratio(best("matrix-free"), Some(bound)));
        let solve = |family| measured.best(problem, dofs, family, iteration);
        let what = format!("{name}: matrix-free iterations by those with the matrix");
        say(&what, "-", &ratio(solve("matrix-free"), solve("SpMV")));
        let rates = measured
            .sizes(problem)
            .into_iter()
            .map(|dofs| measured.best(problem, dofs, "matrix-free", Row::rate));
        let peak = rates.flatten().max_by(f64::total_cmp);
        let what = format!("{name}: the largest mesh's product by the fastest of all sizes");
        let paper = if *of_case(problem) == ELASTICITY { "1 from 1e6 elements on" } else { "-" };
        say(&what, paper, &ratio(best("matrix-free"), peak));
    }
    let sizes = measured.largest();
    let iterations = |problem: &str| {
        let (_, dofs) = *sizes.iter().find(|(known, _)| *known == problem)?;
        measured.best(problem, dofs, "matrix-free", |row| row.iteration_rate(Passes::Fused))
    };
    let what = "iterations of the vector Laplacian by those of the scalar one (figures 1 and 4)";
    say(what, "> 1", &ratio(iterations("BP6"), iterations("BP5")));
    let what = "iterations of elasticity by those of the vector Laplacian (figures 4 and 5)";
    say(what, "about 1", &ratio(iterations("elasticity"), iterations("BP6")));
    text
}

/// Prints the reasons for dashes.
fn refused(measured: &SuiteMeasurements) -> String {
    let reasons = measured.rows.iter().filter_map(|row| {
        let reason = row.found.as_ref().err()?;
        Some(format!("{}, {} unknowns, {}: {reason}\n", row.problem, row.dofs, row.way))
    });
    let reasons: String = reasons.collect();
    if reasons.is_empty() { reasons } else { format!("\nNot measured\n{reasons}") }
}
