//! What more processes would have of a problem, and what they would take, on paper: as a table, and as JSON.

use std::fmt::Write as _;

use clap::Args;
use runtime::memory::Bytes;
use runtime::scaling::{Network, Paper, Share, shares};
use serde_json::{Value, json};

use super::table::shown;
use super::{Found, Planned};
use crate::report::Failure;

/// Processes that the command line asks about.
#[derive(Args)]
pub(crate) struct Processes {
    /// Foretell what so many processes would take, each with the machine of which times are predicted: the mesh is cut as `mpirun`
    /// would have it, and counted.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    processes: Vec<u32>,

    /// With `--processes`: so many unknowns in the place of those that there are; parts grow, and their surfaces as those of solids.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = positive, requires = "processes")]
    unknowns: Vec<f64>,

    /// With `--processes`: seconds until a message is there.
    #[arg(long, value_name = "SECONDS", default_value_t = Network::USUAL.latency, value_parser = positive)]
    latency: f64,

    /// With `--processes`: bytes a second from one process to another.
    #[arg(long, value_name = "BYTES", default_value_t = Network::USUAL.bandwidth, value_parser = positive)]
    bandwidth: f64,
}

/// A number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number such as 1e9 is wanted".to_owned())?;
    let fits = number > 0.0 && number.is_finite();
    fits.then_some(number).ok_or_else(|| "a number above 0 is wanted".to_owned())
}

/// So many processes, with what each has.
struct Row {
    processes: usize,
    unknowns: f64,
    /// How many times what was counted.
    times: f64,
    shares: Vec<Share>,
}

/// What was asked, as text and as JSON; nothing where nothing was.
pub(super) fn paper(
    asked: &Processes,
    found: &Found,
    planned: &Planned<'_>,
) -> Result<Option<(String, Value)>, Failure> {
    if asked.processes.is_empty() {
        return Ok(None);
    }
    let (on, machine) = (&found.setup.on, &found.on.machine);
    let taken = &found.candidates.all[found.candidates.chosen];
    let network = Network { latency: asked.latency, bandwidth: asked.bandwidth };
    let own = on.n_dofs() as f64;
    let wanted = if asked.unknowns.is_empty() { vec![own] } else { asked.unknowns.clone() };
    let mut rows = Vec::new();
    for &processes in &asked.processes {
        let processes = processes as usize;
        let counted = shares(on, processes).map_err(|few| Failure::input(few.to_string()))?;
        rows.extend(wanted.iter().map(|&unknowns| Row {
            processes,
            unknowns,
            times: unknowns / own,
            shares: counted.clone(),
        }));
    }
    rows.sort_by(|a, b| a.unknowns.total_cmp(&b.unknowns));
    let of = |row: &Row| -> Value {
        let paper = Paper {
            shares: &row.shares,
            dim: on.mesh.dim(),
            unknowns: own,
            a_cell: taken.seconds,
            reads: machine.bandwidth,
            launch: machine.launch,
            network,
            times: row.times,
        };
        let most = |of: &dyn Fn(&Share) -> usize| row.shares.iter().map(of).max().unwrap_or(0);
        json!({
            "processes": row.processes,
            "unknowns": row.unknowns,
            "counted_unknowns": own,
            "most": {
                "cells": most(&|share| share.cells),
                "outer_cells": most(&|share| share.outer),
                "unknowns": most(&|share| share.unknowns),
                "shared_unknowns": most(&|share| share.shared),
                "sent_numbers": most(&|share| share.sent),
                "neighbours": most(&|share| share.neighbours),
            },
            "product_seconds": paper.product(),
            "efficiency": paper.efficiency(),
            "sum_seconds": paper.sum(),
            "levels": paper.levels(),
            "cycle_seconds": paper.cycle(),
            "coarsest_seconds": paper.coarsest(),
        })
    };
    let values: Vec<Value> = rows.iter().map(of).collect();
    Ok(Some((
        text(&values, planned, network),
        json!({
            "latency_seconds": network.latency,
            "bytes_per_second": network.bandwidth,
            "rows": values,
        }),
    )))
}

fn text(rows: &[Value], planned: &Planned<'_>, network: Network) -> String {
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
        let number = |name: &str| row[name].as_f64().unwrap_or_default();
        let times = number("unknowns") / number("counted_unknowns");
        let most = |name: &str| row["most"][name].as_f64().unwrap_or_default();
        let dim = planned.setup.on.mesh.dim() as f64;
        let surface = times.powf((dim - 1.0) / dim);
        let cells = most("cells") * times;
        let _ = writeln!(
            text,
            "  {:>9} {:>9.2e} {:>10.3e} {:>8.1}% {:>10} {:>9} {:>10} {:>9.1}% {:>10} {:>9} {:>10} {:>10}",
            number("processes"),
            number("unknowns"),
            cells,
            100.0 * (most("outer_cells") * surface / cells).min(1.0),
            most("neighbours"),
            Bytes(8.0 * most("sent_numbers") * surface).to_string(),
            shown(number("product_seconds")),
            100.0 * number("efficiency"),
            shown(number("sum_seconds")),
            number("levels"),
            shown(number("cycle_seconds")),
            shown(number("coarsest_seconds")),
        );
    }
    text.push_str(
        "\n  efficiency is that of a product, over one process with all of it; a cycle has 3 + 3 steps on each level in single precision,\n  \
         and the coarsest level at each process. Waiting for others and a network that is shared are not in it\n\n",
    );
    text
}
