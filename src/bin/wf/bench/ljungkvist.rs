//! The suite `ljungkvist`: balls, uniform and adaptive, size by size and degree by degree → rows, and the paper's
//! tables and figures.

mod figures;
mod tables;

use std::sync::Arc;

use fem_bench::balls::{Ball, Census, nodes, unknowns};
use fem_bench::kronbichler::{MATRIX, entries};
use fem_bench::ljungkvist::{CASE, PRODUCTS, PaperRow, TABLE, speedup};
use fem_bench::product::Product;
use runtime::device::Device;
use runtime::mesh::Mesh;
use runtime::operator::CellSubset;
use runtime::support::memory::{Bytes, MemoryBudget};
use serde_json::{Value, json};

use super::kronbichler::refused;
use super::{Arguments, CSR_ENTRIES, machine, named};
use crate::console::Console;
use crate::report::{Failure, Report};

pub(super) use figures::draw;

/// The smallest measured size as a fraction of N, for `--dofs N` without a second end.
const SMALLEST: f64 = 1e-2;

/// The smallest measured number of DoFs without `--dofs`.
const LEAST: f64 = 1e4;

/// One mesh at one degree.
struct Row {
    dim: usize,
    adaptive: bool,
    degree: usize,
    level: usize,
    census: Census,
    /// DoFs of the linear system.
    dofs: usize,
    seconds: f64,
    /// Cells per batch, for cells without and with hanging nodes.
    batches: [Option<usize>; 2],
    /// The cost of its cells, for the largest adaptive meshes.
    costs: Option<Costs>,
    /// Bytes stored for the matrix-free product.
    bytes: usize,
    /// The same with a sparse matrix after elimination of the hanging nodes, or the reason for its absence.
    matrix: Result<SparseProduct, String>,
}

/// A product with a sparse matrix.
struct SparseProduct {
    seconds: f64,
    bytes: usize,
    entries: usize,
    /// Seconds of assembly.
    assembly: f64,
}

/// Seconds and number of the cells without and with hanging nodes.
struct Costs {
    free: (usize, f64),
    hanging: (usize, f64),
}

impl Row {
    /// Returns the DoFs as counted in the paper, including those of hanging nodes.
    fn counted(&self) -> usize {
        self.dofs + self.census.hanging(self.degree)
    }

    /// Returns those DoFs per second.
    fn rate(&self) -> f64 {
        self.counted() as f64 / self.seconds
    }

    /// Returns the bytes per DoF of the linear system.
    fn per_dof(&self, bytes: usize) -> f64 {
        bytes as f64 / self.dofs as f64
    }

    /// Returns the speed-up of the matrix-free product over the matrix.
    fn speedup(&self) -> Option<f64> {
        self.matrix.as_ref().ok().map(|matrix| matrix.seconds / self.seconds)
    }

    /// Returns the share of DoFs of hanging nodes.
    fn hanging(&self) -> f64 {
        self.census.hanging(self.degree) as f64 / self.counted() as f64
    }

    /// Returns the share of cells with hanging nodes.
    fn constrained(&self) -> f64 {
        self.census.constrained as f64 / self.census.cells as f64
    }

    /// Returns the row of the paper's tables for this mesh.
    fn line(&self) -> Option<&'static PaperRow> {
        let is_own = |line: &&PaperRow| (line.dim, line.degree) == (self.dim, self.degree);
        TABLE.iter().find(is_own).filter(|line| line.level == self.level)
    }
}

impl Costs {
    /// Returns the seconds per cell without, and per cell with hanging nodes.
    fn each(&self) -> [f64; 2] {
        [self.free, self.hanging].map(|(count, seconds)| seconds / count.max(1) as f64)
    }

    fn ratio(&self) -> f64 {
        let [free, hanging] = self.each();
        hanging / free
    }
}

/// The meshes of one dimension and kind, and the measured sizes.
struct Series<'a> {
    arguments: &'a Arguments,
    ball: Ball,
    dim: usize,
    /// Smallest and largest number of DoFs.
    sizes: [f64; 2],
}

pub(super) fn suite(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let name = named(device);
    let threads = rayon::current_num_threads();
    report.text.push_str(&format!("{name}, {threads} threads of the processor\n"));
    let mut rows = Vec::new();
    let done = rows_of(arguments, device, console, &mut rows, report);
    report.text.push_str(&tables::text(&rows)?);
    done
}

/// Measures all meshes, and keeps the measurements made before a failure.
fn rows_of(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    console: &Console,
    rows: &mut Vec<Row>,
    report: &mut Report,
) -> Result<(), Failure> {
    let sizes = match arguments.dofs {
        None => [LEAST, f64::INFINITY],
        Some(sizes) if sizes.first < sizes.last => [sizes.first, sizes.last],
        Some(sizes) => [SMALLEST * sizes.last, sizes.last],
    };
    for dim in [2, 3] {
        let series = Series { arguments, ball: Ball::new(dim)?, dim, sizes };
        for adaptive in [false, true] {
            let most = series.degrees().filter_map(|degree| series.largest(degree)).max();
            for level in 0..=most.unwrap_or(0) {
                let degrees: Vec<usize> =
                    series.degrees().filter(|&degree| series.has(degree, level)).collect();
                if degrees.is_empty() {
                    continue;
                }
                let mesh = Arc::new(series.mesh(adaptive, level, console)?);
                let census = Census::of(&mesh);
                for degree in degrees {
                    let shown = (adaptive, degree, level);
                    let row = series.row(&mesh, &census, shown, device, console)?;
                    report.row(&format!("{}\n", tables::line(&row)), console);
                    report.json.push(value(&row, device));
                    rows.push(row);
                }
            }
        }
    }
    Ok(())
}

impl Series<'_> {
    fn degrees(&self) -> impl Iterator<Item = usize> {
        let degrees = self.arguments.degree.unwrap_or(super::Degrees { first: 1, last: 4 });
        degrees.first as usize..=degrees.last as usize
    }

    /// Returns the DoFs of the uniform mesh of a level.
    fn unknowns(&self, degree: usize, level: usize) -> f64 {
        let counts = self.ball.counts(level);
        nodes(&counts, degree).unwrap_or(f64::INFINITY)
    }

    /// Returns the largest level that is measured at a degree: at most the paper's.
    fn largest(&self, degree: usize) -> Option<usize> {
        let most = PaperRow::of(self.dim, degree)?.level;
        (0..=most).rev().find(|&level| {
            self.unknowns(degree, level) <= self.sizes[1] && self.fits(degree, level)
        })
    }

    /// Returns whether a level is measured at a degree.
    fn has(&self, degree: usize, level: usize) -> bool {
        let largest = self.largest(degree);
        // On lower levels, adaptive meshes contain cells that are not refined at all.
        let is_large = level >= 4 - self.dim && self.unknowns(degree, level) >= self.sizes[0];
        largest.is_some_and(|largest| level == largest || (level < largest && is_large))
    }

    /// Returns whether a mesh and the data at its points fit into memory.
    fn fits(&self, degree: usize, level: usize) -> bool {
        let cells = self.ball.counts(level).cells() as f64;
        let points = (degree as f64 + 1.0).powi(self.dim as i32);
        let bytes = cells * (MESH * 2f64.powi(self.dim as i32) + POINT * points);
        MemoryBudget::now().is_none_or(|room| bytes <= room.bytes)
    }

    fn mesh(&self, adaptive: bool, level: usize, console: &Console) -> Result<Mesh, Failure> {
        let (dim, progress) = (self.dim, console.progress());
        if !adaptive {
            let cells = self.ball.counts(level).cells();
            progress.say(format!("{dim}D, uniform: a mesh of {cells} cells"));
            return Ok(self.ball.uniform(level)?);
        }
        progress.say(format!("{dim}D, adaptive: refining level {level}"));
        let forest = self.ball.adapted(PaperRow::base(dim, level))?;
        progress.say(format!("{dim}D, adaptive: a mesh of {} cells", forest.n_leaves()));
        Ok(self.ball.mesh(&forest)?)
    }

    /// Measures a mesh at a degree.
    fn row(
        &self,
        mesh: &Arc<Mesh>,
        census: &Census,
        (adaptive, degree, level): (bool, usize, usize),
        device: Option<&Arc<dyn Device>>,
        console: &Console,
    ) -> Result<Row, Failure> {
        let dofs = unknowns(mesh, degree)?;
        let kind = tables::kind(adaptive);
        console.progress().say(format!("{}D, {kind}, degree {degree}, {dofs} unknowns", self.dim));
        let machine = machine(self.arguments, device);
        let mut product = Product::new(&CASE, degree, mesh, &machine)?;
        let seconds = product.mean_seconds(PRODUCTS)?;
        let lanes = |hanging| product.plan(hanging).map(|plan| plan.lanes);
        let batches = [lanes(false), lanes(true)];
        let bytes = product.bytes();
        let wanted = adaptive && census.constrained > 0 && Some(level) == self.largest(degree);
        let costs = if wanted { Some(costs(&mut product)?) } else { None };
        drop(product);
        let matrix = self.matrix(mesh, (degree, dofs), device, console)?;
        let (dim, census) = (self.dim, census.clone());
        let row = Row {
            dim,
            adaptive,
            degree,
            level,
            census,
            dofs,
            seconds,
            batches,
            costs,
            bytes,
            matrix,
        };
        Ok(row)
    }

    /// Measures the product with the sparse matrix, unless that is too large.
    fn matrix(
        &self,
        mesh: &Arc<Mesh>,
        (degree, dofs): (usize, usize),
        device: Option<&Arc<dyn Device>>,
        console: &Console,
    ) -> Result<Result<SparseProduct, String>, Failure> {
        if self.arguments.no_csr {
            return Ok(Err("left out".to_owned()));
        }
        let wanted = entries(self.dim, degree, 1, dofs as f64);
        if wanted > CSR_ENTRIES {
            return Ok(Err(format!("{wanted:.1e} entries are more than are assembled")));
        }
        console
            .progress()
            .say(format!("{}D, degree {degree}, {dofs} unknowns: a matrix", self.dim));
        let machine = machine(self.arguments, device);
        let measured = || {
            let mut product = Product::of(&CASE, degree, mesh, MATRIX, &machine)?;
            let assembly = product.linearise_seconds()?;
            let seconds = product.mean_seconds(PRODUCTS)?;
            let (bytes, entries) = (product.bytes(), product.entries());
            Ok(SparseProduct { seconds, bytes, entries, assembly })
        };
        Ok(refused(measured())?)
    }
}

/// Bytes of a mesh per corner of each cell during its generation, and bytes of kernel data per point.
const MESH: f64 = 120.0;
const POINT: f64 = 80.0;

/// Measures the cost of cells without and with hanging nodes.
fn costs(product: &mut Product) -> Result<Costs, Failure> {
    let shares = product.shares();
    let mut cost = |parts: &[CellSubset]| -> Result<(usize, f64), Failure> {
        let own = shares.iter().filter(|share| share.is_of(parts));
        Ok((own.map(|share| share.count()).sum(), product.seconds_of(parts)?))
    };
    Ok(Costs { free: cost(&[CellSubset::Regular])?, hanging: cost(&[CellSubset::Hanging])? })
}

fn value(row: &Row, device: Option<&Arc<dyn Device>>) -> Value {
    let costs = row.costs.as_ref();
    let each = costs.map(Costs::each);
    let matrix = row.matrix.as_ref().ok();
    let paper = row.line().map(|line| if row.adaptive { line.adaptive } else { line.uniform });
    json!({
        "suite": "ljungkvist",
        "dim": row.dim,
        "mesh": tables::kind(row.adaptive),
        "degree": row.degree,
        "level": row.level,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "cells": row.census.cells,
        "constrained_cells": row.census.constrained,
        "dofs": row.dofs,
        "dofs_with_hanging": row.counted(),
        "hanging_fraction": row.hanging(),
        "seconds": row.seconds,
        "dofs_per_second": row.dofs as f64 / row.seconds,
        "dofs_with_hanging_per_second": row.rate(),
        "cells_per_batch": row.batches[0],
        "hanging_cells_per_batch": row.batches[1],
        "bytes_per_dof": row.per_dof(row.bytes),
        "csr_seconds": matrix.map(|matrix| matrix.seconds),
        "csr_dofs_with_hanging_per_second": matrix.map(|matrix| row.counted() as f64 / matrix.seconds),
        "csr_bytes_per_dof": matrix.map(|matrix| row.per_dof(matrix.bytes)),
        "csr_entries": matrix.map(|matrix| matrix.entries),
        "csr_assembly_seconds": matrix.map(|matrix| matrix.assembly),
        "csr_refused": row.matrix.as_ref().err(),
        "speedup": row.speedup(),
        "paper_speedup": speedup(row.dim, row.degree, row.adaptive),
        "paper_cells": paper.map(|paper| paper[0]),
        "paper_dofs": paper.map(|paper| paper[1]),
        "free_cells": costs.map(|costs| costs.free.0),
        "free_cell_seconds": each.map(|each| each[0]),
        "hanging_cell_seconds": each.map(|each| each[1]),
        "cost_ratio": costs.map(Costs::ratio),
    })
}

/// Returns a remark on measurements omitted for lack of memory.
fn room() -> Option<String> {
    MemoryBudget::now().map(|room| format!("{} ({})", Bytes(room.bytes), room.bound))
}
