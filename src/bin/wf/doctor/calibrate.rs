//! `wf doctor --calibrate`: the rates of this machine, measured once and stored for the cost model.

use std::fmt::Write as _;

use runtime::device::{Backend, open};
use runtime::kernels::rates::device;
use runtime::kernels::rates::stored_rates;
use runtime::kernels::rates::{Rates, measure, named};
use serde_json::{Value, json};

use crate::console::{Console, Warning};
use crate::problem::with_threads;
use crate::report::{Failure, Report};

/// Measures the CPU, with one thread and with all, and the available devices.
pub(super) fn calibrate(console: &Console) -> Result<Report, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u16);
    let mut threads = vec![1, cores];
    threads.dedup();
    let mut report = Report::default();
    for threads in threads {
        console.progress().say(format!("measuring the processor, {threads} threads"));
        match with_threads(Some(threads), measure)? {
            Ok(rates) => keep(&mut report, &named(), usize::from(threads), &rates)?,
            // A machine with GPUs may have no compiler.
            Err(error) => {
                console.warn(Warning::new(format!("the processor is not measured: {error}")));
                break;
            }
        }
    }
    for backend in [Backend::Cuda, Backend::OpenCl] {
        let Ok(found) = open(backend, None) else { continue };
        console.progress().say(format!("measuring {}", found.name()));
        let rates = device::rates(&*found)
            .map_err(|error| Failure::input(format!("{}: {error}", found.name())))?;
        keep(&mut report, &found.name(), 0, &rates)?;
    }
    Ok(report)
}

fn keep(report: &mut Report, name: &str, threads: usize, rates: &Rates) -> Result<(), Failure> {
    let folder = stored_rates::keep(name, threads, rates).map_err(Failure::input)?;
    let with = match threads {
        0 => String::new(),
        1 => ", 1 thread".to_owned(),
        _ => format!(", {threads} threads"),
    };
    let giga = |rate: f64| rate / 1e9;
    let mut line = |what: &str, text: String| {
        let _ = writeln!(report.text, "  {what:<14} {text}");
    };
    line("machine", format!("{name}{with}"));
    line("copy", format!("{:.1} GB/s", giga(rates.copy)));
    if threads > 0 {
        line("read", format!("{:.1} GB/s", giga(rates.read)));
    }
    line("multiply-adds", format!("{:.1} GFLOP/s", giga(rates.flops)));
    line("divisions", format!("{:.2} billion a second", giga(rates.divisions)));
    if rates.shared.is_finite() {
        line("shared reads", format!("{:.0} billion numbers a second", giga(rates.shared)));
    }
    line("additions", format!("{:.2} billion a second", giga(rates.additions)));
    line("launch", format!("{:.2} us", 1e6 * rates.launch));
    line("kept in", format!("{folder}\n"));
    report.json.push(value(name, threads, rates));
    Ok(())
}

fn value(name: &str, threads: usize, rates: &Rates) -> Value {
    json!({
        "machine": name,
        "threads": threads,
        "copy_bytes_per_second": rates.copy,
        "read_bytes_per_second": rates.read,
        "flops_per_second": rates.flops,
        "divisions_per_second": rates.divisions,
        "shared_reads_per_second": rates.shared,
        "additions_per_second": rates.additions,
        "launch_seconds": rates.launch,
    })
}
