//! The suite `bp`: the bake-off problems on the CPU or on a device ([`super::device`]) → a row per problem, degree and
//! size. Each of several processes has a subdomain of the box.

use std::sync::Arc;

use fem_bench::{BenchError, BenchRow, CASES, Case, csr_seconds, measure, prepare_part};
use runtime::kernels::compile::Target;
use runtime::kernels::rates::{Rates, measure as measure_rates};
use runtime::processes::ProcessGroup;

use super::rows::{degrees, has_csr, line, say, several, value};
use super::{Arguments, device, kept, named_in, own_device, wishes};
use crate::arguments::Degrees;
use crate::console::Console;
use crate::problem::with_threads;
use crate::processes::Processes;
use crate::report::{Failure, Report};

pub(super) fn bake_off(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    let cases = named_in(&arguments.problem, &CASES, |case| case.name)?;
    if let [case, ..] = &cases[..]
        && cases.iter().all(|case| later(case, &arguments.degrees()))
    {
        return Err(Failure::input(format!(
            "the degrees of `{}` begin at {least}\nhelp: ask for --degree {least}, or more",
            case.name,
            least = case.least
        )));
    }
    let own = processes.threads(arguments.threads);
    let mut report = Report::default();
    if let Some(device) = own_device(arguments, processes, console)? {
        let done = with_threads(own, || {
            device::suite(arguments, &device, &cases, processes, &mut report, console)
        });
        return kept(report, done);
    }
    let threads: Vec<u16> = match own {
        Some(threads) => vec![threads],
        None => vec![1, std::thread::available_parallelism().map_or(1, |n| n.get() as u16)],
    };
    for threads in threads {
        let done = with_threads(Some(threads), || {
            suite(arguments, &cases, processes, &mut report, console)
        });
        report = kept(report, done)?;
    }
    Ok(report)
}

/// Returns whether all requested degrees are below those of a problem.
fn later(case: &Case, degrees: &Degrees) -> bool {
    (degrees.last as usize) < case.least
}

fn suite(
    arguments: &Arguments,
    cases: &[Case],
    processes: &Processes,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    console.progress().say("measuring this machine");
    let group = processes.group();
    // All processes are timed concurrently.
    group.meet(None);
    let rates = measure_rates()?.of_all(&**group);
    report.text.push_str(&format!(
        "{}{} threads: copy {:.1} GB/s, multiply-adds {:.1} GFLOP/s\n{:<14} {:>2} {:>9} {:>5}  {:<13} {:>8} {:>8} {:>7} {:>7} {:>6} {:>8} {:>6}\n",
        several(processes),
        rayon::current_num_threads(),
        rates.copy / 1e9,
        rates.flops / 1e9,
        "problem",
        "p",
        "unknowns",
        "lanes",
        "geometry",
        "MDoF/s",
        "GFLOP/s",
        "B/DoF",
        "F/DoF",
        "floor",
        "CSR",
        "ratio",
    ));
    for case in cases {
        let (degrees, note) = degrees(case, &arguments.degrees());
        report.text.extend(note);
        for degree in degrees {
            for dofs in arguments.sizes().each() {
                say(console, case, degree, dofs);
                let row = row(arguments, case, degree, dofs, &rates, group)?;
                report.row(&line(&row), console);
                report.json.push(value(&row));
            }
        }
    }
    Ok(())
}

fn row(
    arguments: &Arguments,
    case: &Case,
    degree: usize,
    dofs: usize,
    rates: &Rates,
    group: &Arc<dyn ProcessGroup>,
) -> Result<BenchRow, BenchError> {
    let target = Target { wishes: wishes(arguments), ..Target::native() };
    let prepared = prepare_part(case, degree, dofs, &target, group)?;
    let mut row = measure(case, &prepared, rates)?;
    if has_csr(arguments, &row) {
        row.csr_seconds = Some(csr_seconds(&prepared)?);
    }
    Ok(row)
}
