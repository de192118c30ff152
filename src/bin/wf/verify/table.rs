//! A verification as a table, and as JSON.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weakform::verify::{
    Degree, Findings, KernelComparison, LevelResult, Order, TimeOrders, Verdict, Verification,
};

/// Returns `holds`, or its negation.
fn word(holds: bool) -> &'static str {
    if holds { "holds" } else { "DOES NOT HOLD" }
}

/// Formats the table of a problem, verified by a number of processes.
pub(super) fn text(found: &Verification, processes: usize) -> String {
    let mut text = format!("{} ({}), {} cells\n", found.problem, found.form, found.cell.name());
    for (field, value) in &found.solution {
        let picked = if found.picked { "  (picked)" } else { "" };
        let _ = writeln!(text, "  solution    {field} = {value}{picked}");
    }
    for note in &found.notes {
        let _ = writeln!(text, "  note        {note}");
    }
    if processes > 1 {
        let _ = writeln!(text, "  processes   {processes}, each with a part of each mesh");
    }
    for Degree { degree, outcome } in &found.degrees {
        match outcome {
            Ok(findings) => block(&mut text, &found.fields, *degree, findings),
            Err(reason) => {
                let _ = writeln!(text, "  degree {degree}    left out: {reason}");
            }
        }
    }
    let failures = found.failures();
    match failures.len() {
        0 => text.push_str("  all of it holds\n\n"),
        count => {
            let _ = writeln!(
                text,
                "  {count} of it {}\n",
                if count == 1 { "does not hold" } else { "do not hold" }
            );
        }
    }
    text
}

fn block(text: &mut String, fields: &[String], degree: usize, findings: &Findings) {
    let _ = write!(text, "  degree {degree}  {:>9} {:>9}", "cells", "unknowns");
    for (number, field) in fields.iter().enumerate() {
        let norm = findings.orders.get(number).map_or("H1", |orders| orders.norm);
        let _ = write!(
            text,
            "  {:>10} {:>6} {norm:>10} {:>6}",
            format!("{field}: L2"),
            "order",
            "order"
        );
    }
    text.push('\n');
    let mut before: Option<&LevelResult> = None;
    for level in &findings.levels {
        let _ = write!(text, "            {:>9} {:>9}", level.cells, level.dofs);
        for (field, errors) in level.errors.iter().enumerate() {
            let order = |of: fn(&(f64, f64)) -> f64| -> String {
                let Some(coarse) = before else { return String::new() };
                let ratio = coarse.size / level.size;
                format!("{:.2}", (of(&coarse.errors[field]) / of(errors)).ln() / ratio.ln())
            };
            let (l2, h1) = (order(|errors| errors.0), order(|errors| errors.1));
            let _ = write!(text, "  {:>10.2e} {l2:>6} {:>10.2e} {h1:>6}", errors.0, errors.1);
        }
        let plural = if level.iterations == 1 { "" } else { "s" };
        let _ = writeln!(text, "  {}, {} iteration{plural}", level.solver, level.iterations);
        before = Some(level);
    }
    if !findings.orders.is_empty() {
        let _ = write!(text, "            {:>19}", "expected");
        for orders in &findings.orders {
            let _ = write!(
                text,
                "  {:>10} {:>6} {:>10} {:>6}",
                "", orders.l2.expected, "", orders.h1.expected
            );
        }
        let holds = findings.orders.iter().all(|orders| orders.l2.holds() && orders.h1.holds());
        let _ = writeln!(text, "  {}", word(holds));
    }
    in_time(text, findings);
    jacobian(text, findings);
    kernels(text, &findings.kernels);
    if let Some(error) = &findings.error {
        let _ = writeln!(text, "    error     {}", error.replace('\n', "\n              "));
    }
}

/// Adds a line per scheme: the order of each field.
fn in_time(text: &mut String, findings: &Findings) {
    for (number, TimeOrders { scheme, orders }) in findings.time.iter().enumerate() {
        let head = if number == 0 { "time" } else { "" };
        let orders_of = orders.iter().map(|order| match order.observed {
            Some(observed) => format!("{observed:.2}"),
            None => "rounding".to_owned(),
        });
        let observed = orders_of.collect::<Vec<_>>().join(", ");
        let holds = orders.iter().all(|order| order.holds_in_time());
        let expected = orders.iter().map(|order| order.expected).fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "    {head:<9} {scheme:<28} order {observed}, expected {expected}  {}",
            word(holds)
        );
    }
}

fn jacobian(text: &mut String, findings: &Findings) {
    if let Some(taylor) = &findings.taylor {
        let what = match (taylor.order, taylor.linear) {
            (None, true) => "R(u + w) − R(u) = J w, but for rounding".to_owned(),
            (None, false) => "no remainder above rounding".to_owned(),
            (Some(order), _) => format!("Taylor remainder of order {order:.2}"),
        };
        let _ = writeln!(text, "    jacobian  {what}  {}", word(taylor.holds()));
    }
    if let Some(signs) = findings.signs {
        let symmetric = match (findings.symmetric, signs.symmetric()) {
            (true, true) => "symmetric  holds",
            (true, false) => "symmetric  DOES NOT HOLD",
            (false, true) => "symmetric, though not by its form",
            (false, false) => "not symmetric",
        };
        let definite = match (findings.definite, signs.definite) {
            (_, None) => "",
            (true, Some(true)) => "; positive definite  holds",
            (true, Some(false)) => "; positive definite  DOES NOT HOLD",
            (false, Some(true)) => "; positive definite",
            (false, Some(false)) => "; indefinite",
        };
        let _ = writeln!(text, "              {symmetric}{definite}");
    }
}

/// Adds one line for all kernels that agree, one for each that does not, and one for all unavailable ones.
fn kernels(text: &mut String, all: &[KernelComparison]) {
    if all.is_empty() {
        return;
    }
    let (mut agree, mut differ) = (Vec::new(), Vec::new());
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut most: f64 = 0.0;
    for KernelComparison { name, verdict } in all {
        match verdict {
            Verdict::Compared(distance) => {
                let worst = distance.worst.iter().copied().fold(0.0, f64::max);
                if distance.holds() {
                    agree.push(name.clone());
                    most = most.max(worst);
                } else {
                    differ.push(format!("{name}: {worst:.1e} times the rounding that is allowed"));
                }
            }
            Verdict::Refused(reason) => {
                missing.entry(reason.replace('\n', " ")).or_default().push(name.clone());
            }
        }
    }
    let mut title = "kernels";
    let mut line = |what: String| {
        for part in wrapped(&what) {
            let _ = writeln!(text, "    {title:<9} {part}");
            title = "";
        }
    };
    if !agree.is_empty() {
        let percent = (100.0 * most).ceil();
        let names = agree.join(", ");
        line(format!(
            "{names}: at most {percent} % of the rounding that is allowed  {}",
            word(true)
        ));
    }
    for name in differ {
        line(format!("{name}  {}", word(false)));
    }
    for (reason, names) in missing {
        line(format!("not {}: {reason}", names.join(", ")));
    }
}

/// Wraps words to the width of a screen.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let Some(last) = lines.last_mut() else { continue };
        if !last.is_empty() && last.chars().count() + word.chars().count() > 100 {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// Returns the verification as JSON.
pub(super) fn value(found: &Verification, processes: usize) -> Value {
    let degrees = found.degrees.iter().map(|degree| match &degree.outcome {
        Ok(findings) => findings_value(&found.fields, degree.degree, findings),
        Err(reason) => json!({ "degree": degree.degree, "left_out": reason }),
    });
    let solution: serde_json::Map<String, Value> =
        found.solution.iter().map(|(field, text)| (field.clone(), json!(text))).collect();
    let failures = found.failures();
    json!({
        "problem": found.problem,
        "form": found.form,
        "cell": found.cell.name(),
        "solution": solution,
        "picked": found.picked,
        "notes": found.notes,
        "processes": processes,
        "degrees": degrees.collect::<Vec<_>>(),
        "failures": failures,
        "holds": failures.is_empty(),
    })
}

fn findings_value(fields: &[String], degree: usize, findings: &Findings) -> Value {
    let levels = findings.levels.iter().map(|level| {
        let errors = level.errors.iter().zip(fields);
        let errors = errors.map(|((l2, h1), field)| json!({ "field": field, "l2": l2, "h1": h1 }));
        json!({
            "cells": level.cells,
            "dofs": level.dofs,
            "errors": errors.collect::<Vec<_>>(),
            "solver": level.solver,
            "iterations": level.iterations,
            "seconds": level.seconds,
        })
    });
    let order = |order: Order| {
        json!({
            "expected": order.expected, "observed": order.observed, "holds": order.holds(),
        })
    };
    let orders = findings.orders.iter().zip(fields).map(
        |(orders, field)| json!({ "field": field, "l2": order(orders.l2), "h1": order(orders.h1) }),
    );
    let taylor = findings.taylor.as_ref().map(
        |taylor| json!({ "order": taylor.order, "linear": taylor.linear, "holds": taylor.holds() }),
    );
    let signs = findings.signs.map(|signs| {
        json!({
            "symmetry_defect": signs.defect,
            "symmetric": signs.symmetric(),
            "symmetry_claimed": findings.symmetric,
            "definite": signs.definite,
            "definiteness_claimed": findings.definite,
        })
    });
    let kernels = findings.kernels.iter().map(|compared| match &compared.verdict {
        Verdict::Compared(distance) => json!({
            "kernels": compared.name,
            "residual": distance.worst[0],
            "action": distance.worst[1],
            "diagonal": distance.worst[2],
            "holds": distance.holds(),
        }),
        Verdict::Refused(reason) => json!({ "kernels": compared.name, "refused": reason }),
    });
    json!({
        "degree": degree,
        "levels": levels.collect::<Vec<_>>(),
        "orders": orders.collect::<Vec<_>>(),
        "time": findings.time.iter().map(|own| json!({
            "scheme": own.scheme,
            "orders": own.orders.iter().zip(fields).map(|(of, field)| json!({
                "field": field, "expected": of.expected, "observed": of.observed, "holds": of.holds_in_time(),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "taylor": taylor,
        "jacobian": signs,
        "kernels": kernels.collect::<Vec<_>>(),
        "error": findings.error,
    })
}
