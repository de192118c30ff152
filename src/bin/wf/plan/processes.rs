//! Predicted partition and times of a problem on more processes: as a table, and as JSON.

use std::fmt::Write as _;

use clap::Args;
use runtime::problem::scaling::{Network, PerformanceModel, ProcessShare, shares};
use runtime::support::memory::Bytes;
use serde_json::{Value, json};

use super::ProblemCandidates;
use super::table::shown;
use crate::report::Failure;

/// Processes that the command line asks about.
#[derive(Args)]
pub(crate) struct ProcessArguments {
    /// Foretell what so many processes would take, each with the machine of which times are predicted: the mesh is cut as `mpirun`
    /// would have it, and counted.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    processes: Vec<u32>,

    /// With `--processes`: so many unknowns in the place of those that there are; parts grow, and their surfaces as those of solids.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = positive, requires = "processes")]
    unknowns: Vec<f64>,

    /// With `--processes`: seconds until a message is there.
    #[arg(long, value_name = "SECONDS", default_value_t = Network::USUAL.latency, value_parser = positive, requires = "processes")]
    latency: f64,

    /// With `--processes`: bytes a second from one process to another.
    #[arg(long, value_name = "BYTES", default_value_t = Network::USUAL.bandwidth, value_parser = positive, requires = "processes")]
    bandwidth: f64,
}

/// Parses a positive number.
fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number such as 1e9 is wanted".to_owned())?;
    let fits = number > 0.0 && number.is_finite();
    fits.then_some(number).ok_or_else(|| "a number above 0 is wanted".to_owned())
}

/// Returns the requested prediction, as text and as JSON; `None` without a request.
pub(super) fn paper(
    asked: &ProcessArguments,
    planned: &ProblemCandidates<'_>,
    ranks: impl Fn(usize) -> Result<Vec<u32>, Failure>,
) -> Result<Option<(String, Value)>, Failure> {
    if asked.processes.is_empty() {
        return Ok(None);
    }
    let (on, machine) = (&planned.context.on, &planned.on.machine);
    let taken = &planned.candidates.all[planned.candidates.chosen];
    let network = Network { latency: asked.latency, bandwidth: asked.bandwidth };
    let own = on.n_dofs() as f64;
    let counted = asked.processes.iter().map(|&processes| {
        let processes = processes as usize;
        Ok(shares(on, &ranks(processes)?, processes))
    });
    let counted: Vec<Vec<ProcessShare>> = counted.collect::<Result<_, Failure>>()?;
    let wanted = if asked.unknowns.is_empty() { &[own][..] } else { &asked.unknowns };
    let of = |&unknowns: &f64| {
        counted.iter().map(move |shares| PerformanceModel {
            shares,
            dim: on.mesh.dim(),
            unknowns: own,
            a_cell: taken.seconds,
            reads: machine.bandwidth,
            launch: machine.launch,
            network,
            times: unknowns / own,
        })
    };
    let rows: Vec<PerformanceModel<'_>> = wanted.iter().flat_map(of).collect();
    let value = json!({
        "latency_seconds": network.latency,
        "bytes_per_second": network.bandwidth,
        "counted_unknowns": own,
        "rows": rows.iter().map(value).collect::<Vec<_>>(),
    });
    Ok(Some((text(&rows, planned, network), value)))
}

fn value(row: &PerformanceModel<'_>) -> Value {
    let most = row.most();
    json!({
        "processes": row.shares.len(),
        "unknowns": row.unknowns * row.times,
        "most": {
            "cells": most.cells,
            "outer_cells": most.outer,
            "unknowns": most.unknowns,
            "sent_bytes": most.sent,
            "neighbours": most.neighbours,
        },
        "product_seconds": row.product(),
        "efficiency": row.efficiency(),
        "sum_seconds": row.sum(),
        "levels": row.levels(),
        "cycle_seconds": row.cycle(),
        "coarsest_seconds": row.coarsest(),
    })
}

fn text(
    rows: &[PerformanceModel<'_>],
    planned: &ProblemCandidates<'_>,
    network: Network,
) -> String {
    let mut text = format!(
        "on paper: processes with {} each, messages {} and {:.1} GB/s (`--latency`, `--bandwidth`); the most that any has\n\n",
        planned.on.name,
        shown(network.latency),
        network.bandwidth / 1e9,
    );
    let _ = writeln!(
        text,
        "  {:>9} {:>9} {:>10} {:>9} {:>10} {:>9} {:>10} {:>10} {:>10} {:>9} {:>10} {:>10}",
        "processes",
        "unknowns",
        "cells",
        "at cuts",
        "neighbours",
        "sent",
        "product",
        "efficiency",
        "sum",
        "levels",
        "cycle",
        "coarsest"
    );
    for row in rows {
        let most = row.most();
        let _ = writeln!(
            text,
            "  {:>9} {:>9.2e} {:>10.3e} {:>8.1}% {:>10} {:>9} {:>10} {:>9.1}% {:>10} {:>9} {:>10} {:>10}",
            row.shares.len(),
            row.unknowns * row.times,
            most.cells,
            100.0 * most.outer / most.cells,
            most.neighbours,
            Bytes(most.sent).to_string(),
            shown(row.product()),
            100.0 * row.efficiency(),
            shown(row.sum()),
            row.levels(),
            shown(row.cycle()),
            shown(row.coarsest()),
        );
    }
    text.push_str(
        "\n  efficiency is that of a product, over one process with all of it; inner cells hide messages, but not the copies to and from them.\n  \
         A cycle has 3 + 3 steps on each level in single precision,\n  \
         and the coarsest level at each process. Waiting for others and a network that is shared are not in it\n\n",
    );
    text
}
