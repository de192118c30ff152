//! `generate`: (`PointForm`, `Elements`, plans) → `GeneratedSource`, through every stage of this crate; or, with
//! [`interpret`], → kernels that run without a compiler.

use crate::abi::{Argument, KernelAbi, Role};
use crate::cost::count;
use crate::dialect::rust::{Isa, Item, print};
use crate::dialect::{GeneratedSource, Language, c, gnu};
use crate::element::{Cell, LinePoints, Rule, default_rule};
use crate::interpreted::InterpretedKernel;
use crate::kir::{Entries, Kernel, Op, Precision};
use crate::pass::{Constants, for_threads, for_vectors};
use crate::plan::rule::{QuadratureError, judge, largest_quadrature};
use crate::plan::traces::with_traces;
use crate::plan::{Elements, Linearisation, Plan, PlanError, Scatter, Strategy};
use crate::strategy::lower;
use fem_dsl::point::PointForm;
use fem_dsl::problem::Quadrature;

/// Returns the elements of a form at degree `k` on cells of geometry order `order`, with the rule that the language
/// prescribes or with an explicit `quadrature`. [`Elements::notes`] contains remarks on the rule, and
/// [`Elements::lost`] tests it for rank deficiency in a cell.
///
/// # Errors
///
/// Unsupported cells and degrees, and a quadrature of too many points.
pub fn elements(
    form: &PointForm,
    cell: Cell,
    degree: usize,
    order: usize,
    quadrature: Option<Quadrature>,
) -> Result<Elements, PlanError> {
    if let Some(Quadrature::Degree(given)) = quadrature {
        let most = largest_quadrature(cell, order);
        if given > most {
            return Err(QuadratureError::High { given, cell, most }.into());
        }
    }
    let provisional = default_rule(cell, 1, 1, None);
    let degrees = Elements::new(form, cell, degree, provisional)?;
    let rule = match quadrature {
        None => default_rule(cell, degrees.largest(), order, None),
        Some(Quadrature::Degree(given)) => {
            default_rule(cell, degrees.largest(), order, Some(given))
        }
        Some(Quadrature::Collocated) => at_nodes(cell, degrees.largest())?,
    };
    let mut elements = Elements { rule, ..degrees };
    if let Some(Quadrature::Degree(given)) = quadrature {
        match judge(form, &elements, order, given) {
            Ok(notes) => elements.notes = notes,
            Err(low @ QuadratureError::Low { .. }) => {
                elements.notes = vec![low.note()];
                elements.lost = Some(low);
            }
            Err(high) => return Err(high.into()),
        }
    }
    Ok(elements)
}

/// Returns the rule whose points are the nodes of a degree.
fn at_nodes(cell: Cell, degree: usize) -> Result<Rule, PlanError> {
    if !cell.is_tensor() {
        let text = format!(
            "no quadrature is known that has the nodes of a {cell} as its points with positive weights: leave `quadrature = collocated` out, or \
             use quadrilaterals or hexahedra"
        );
        return Err(PlanError::Unsupported(text));
    }
    Ok(Rule::Tensor { cell, line: LinePoints::GaussLobatto(degree.max(1) + 1) })
}

/// Generates the source of the kernels of `plans` in Rust, one each, in their order.
pub fn generate(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    isa: Isa,
) -> Result<GeneratedSource, PlanError> {
    generate_for_vectors(form, elements, plans, isa, Language::Rust)
}

/// Generates the source of the kernels of `plans`, one each, in their order, in a language whose lanes are entries of
/// vectors.
///
/// # Panics
///
/// Panics if the language has no vectors.
pub fn generate_for_vectors(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    isa: Isa,
    language: Language,
) -> Result<GeneratedSource, PlanError> {
    if plans.iter().any(|plan| plan.scatter == Scatter::Block) {
        let text = "lanes of a processor add to their nodes one after another";
        return Err(PlanError::Unsupported(text.to_owned()));
    }
    let kernels = lowered_for_vectors(form, elements, plans)?;
    let items: Vec<Item<'_>> = kernels.iter().map(item).collect();
    Ok(match language {
        Language::Rust => print(&title(form, &isa.to_string()), &items, isa),
        Language::C => gnu::print(&title(form, &format!("C with {isa}")), &items, isa),
        Language::Cuda | Language::OpenCl => panic!("{language} has threads instead of vectors"),
    })
}

/// Generates kernels of `plans` as static functions of a header in C, one each, in their order: the text before them, the
/// functions, and their interfaces.
pub(crate) fn generate_static(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    isa: Isa,
) -> Result<(String, Vec<(gnu::StaticKernel, KernelAbi)>), PlanError> {
    let kernels = lowered_for_vectors(form, elements, plans)?;
    let items: Vec<Item<'_>> = kernels.iter().map(item).collect();
    let (preamble, functions) = gnu::static_kernels(&items, isa);
    Ok((preamble, functions.into_iter().zip(kernels.into_iter().map(|own| own.1)).collect()))
}

/// Generates the source of the kernels of `plans` in a language whose lanes are threads of a group.
pub fn generate_for_threads(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    words: &c::Vocabulary,
) -> Result<GeneratedSource, PlanError> {
    let (mut kernels, mut notes) = (Vec::new(), Vec::new());
    for (kernel, abi, header) in lowered(form, elements, plans)? {
        // Without threads in the strategy, each lane is one.
        let threads = if kernel.threads > 0 { kernel.threads } else { abi.lanes };
        notes.push((KernelAbi { threads, ..abi }, header));
        kernels.push(kernel);
    }
    let placed = for_threads(&mut kernels, words.spread.is_some())?;
    for ((abi, _), Constants { bytes, tables }) in notes.iter_mut().zip(placed) {
        abi.constant_bytes = bytes;
        if !tables.is_empty() {
            let (role, name, extent) = (Role::Tables, "tables".to_owned(), tables.len());
            abi.arguments.push(Argument { role, name, extent, written: false });
            abi.tables = tables;
        }
    }
    let items = kernels.iter().zip(&notes);
    let items: Vec<c::Item<'_>> =
        items.map(|(kernel, (abi, header))| c::Item { kernel, abi, header }).collect();
    Ok(c::print(&title(form, &words.language.to_string()), &items, words))
}

type LoweredKernel = (Kernel, KernelAbi, Vec<String>);

/// Returns each plan's kernel, its interface and the lines of its header.
fn lowered(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
) -> Result<Vec<LoweredKernel>, PlanError> {
    let kernel = |plan: &Plan| {
        let (kernel, abi) = lower(form, elements, plan)?;
        check_range(&kernel)?;
        let header = header(form, elements, plan, &kernel, &abi);
        Ok((kernel, abi, header))
    };
    plans.iter().map(kernel).collect()
}

/// Returns the same in operations of languages with vectors.
fn lowered_for_vectors(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
) -> Result<Vec<LoweredKernel>, PlanError> {
    let legal = |(kernel, abi, header): LoweredKernel| Ok((for_vectors(kernel)?, abi, header));
    lowered(form, elements, plans)?.into_iter().map(legal).collect()
}

/// Returns a kernel as printers take it.
fn item((kernel, abi, header): &LoweredKernel) -> Item<'_> {
    Item { kernel, abi, header }
}

/// Returns the numbers of a kernel: constants and entries of tables.
fn numbers(kernel: &Kernel) -> impl Iterator<Item = f64> + '_ {
    let constants = kernel.values.iter().filter_map(|value| match value.op {
        Op::Constant(number) => Some(number),
        _ => None,
    });
    let entries = kernel.tables.iter().flat_map(|table| match &table.entries {
        Entries::Real(entries) => entries.as_slice(),
        Entries::Position(_) => &[],
    });
    constants.chain(entries.copied())
}

/// Rejects numbers of kernels in single precision that underflow to 0.
///
/// # Errors
///
/// [`PlanError::Unsupported`] with the first such number.
pub fn check_underflow(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
) -> Result<(), PlanError> {
    for plan in plans.iter().filter(|plan| plan.precision == Precision::F32) {
        let (kernel, _) = lower(form, elements, plan)?;
        let vanishes = |&number: &f64| number != 0.0 && number as f32 == 0.0;
        if let Some(number) = numbers(&kernel).find(vanishes) {
            return Err(PlanError::Unsupported(format!(
                "the number {number:e} is 0 in single precision, whose least is {:e}\n\
                 help: choose units in which numbers are larger, or take double precision",
                f32::from_bits(1)
            )));
        }
    }
    Ok(())
}

/// Rejects finite numbers that overflow in single precision.
fn check_range(kernel: &Kernel) -> Result<(), PlanError> {
    if kernel.precision != Precision::F32 {
        return Ok(());
    }
    match numbers(kernel).find(|&number| exceeds_single(number)) {
        None => Ok(()),
        Some(number) => Err(PlanError::Unsupported(format!(
            "the number {number:e} is beyond the range of single precision, {:e}\n\
             help: choose units in which numbers are smaller, or take double precision",
            f32::MAX
        ))),
    }
}

/// Returns whether a finite number overflows in single precision.
pub fn exceeds_single(number: f64) -> bool {
    number.is_finite() && (number as f32).is_infinite()
}

fn title(form: &PointForm, target: &str) -> String {
    format!(
        "{}\n\nGenerated by weakform {} for {target}; do not edit.",
        form.source.trim_end(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Returns the kernels of `plans`, one each, in their order, for the interpreter.
pub fn interpret(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
) -> Result<Vec<InterpretedKernel>, PlanError> {
    let lowered = plans.iter().map(|plan| lower(form, elements, plan));
    lowered
        .map(|lowered| lowered.and_then(|(kernel, abi)| Ok(InterpretedKernel::new(kernel, abi)?)))
        .collect()
}

/// Returns the interfaces of the kernels of `plans`, in their order; their hashes identify the kernels.
pub fn interfaces(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
) -> Result<Vec<KernelAbi>, PlanError> {
    plans.iter().map(|plan| Ok(lower(form, elements, plan)?.1)).collect()
}

/// Describes a plan and its cost, as in the source's header.
pub fn describe(form: &PointForm, elements: &Elements, plan: &Plan) -> Result<String, PlanError> {
    let (kernel, abi) = lower(form, elements, plan)?;
    let mut text = format!("{}\n", abi.name);
    for line in header(form, elements, plan, &kernel, &abi) {
        text.push_str(&format!("  {line}\n"));
    }
    Ok(text)
}

fn header(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    kernel: &Kernel,
    abi: &KernelAbi,
) -> Vec<String> {
    let region = &form.integrals[plan.integral].region;
    let (of_cells, of_pairs) = (region.is_of_cells(), region.is_interior());
    let (traces, of_traces) = with_traces(form, elements, plan);
    let cost = count(kernel, abi, &of_traces);
    let hash = abi.hash;
    let linearisation = match plan.linearisation {
        Linearisation::Recompute => "recomputed",
        Linearisation::Stored => "stored",
    };
    let scatter = match plan.scatter {
        Scatter::Atomic => String::new(),
        other => format!("; scatter: {other}"),
    };
    // The rule of facets is that of cells in one dimension less.
    let (of, lanes) = match (of_cells, of_pairs) {
        (true, _) => ("", "cells"),
        (_, true) => ("facets between ", "pairs"),
        _ => ("facets of ", "facets"),
    };
    let mut lines = vec![
        format!(
            "{}, {of}{} cells of degree {}, {}; {} {lanes} a batch",
            plan.task.word(),
            elements.cell,
            elements.degree,
            elements.rule,
            plan.lanes
        ),
        format!(
            "geometry: {}; coefficients: {linearisation}; unknowns by {:?}{scatter}; hash {hash:016x}",
            plan.geometry, plan.indices
        ),
        format!(
            "a cell: {:.0} flops, {:.0} bytes, {:.0} private accesses",
            cost.flops(),
            cost.bytes.total(),
            cost.private_accesses
        ),
    ];
    if kernel.threads > 0 {
        let numbers: usize = kernel.shared.iter().map(|array| array.length).sum();
        let (threads, bytes) = (kernel.threads, numbers * kernel.precision.bytes());
        let sizes = match plan.strategy {
            Strategy::ThreadTransposition { blocks, batches } => {
                format!(", N_bl = {blocks}, N_cb = {batches}")
            }
            Strategy::ThreadPerLine { .. } if plan.in_place => {
                ", derivatives in x in the place of values".to_owned()
            }
            _ => String::new(),
        };
        if abi.stores_inside {
            lines
                .push("stores results at nodes inside of cells, and adds to all others".to_owned());
        }
        lines.push(format!(
            "{}: {threads} threads and {bytes} bytes of shared memory a group{sizes}",
            plan.strategy
        ));
    }
    if plan.in_order {
        lines.push("to be assembled about in this order: it spills less so".to_owned());
    }
    // Interfaces name the form's fields, those of pairs their traces.
    let named = if of_pairs { &*traces } else { form };
    lines.extend(abi.interface(named).iter().map(ToString::to_string));
    lines
}
