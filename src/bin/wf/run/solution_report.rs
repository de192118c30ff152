//! Report on a solution, as text; as JSON see [`crate::summary`].

use crate::summary::{WrittenFiles, action_plan, applications, frequency, shape_word};
use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use fem_dsl::source::seen;
use runtime::problem::{ReportValue, Solution};
use runtime::solve::{MultigridStatistics, Smoother};

/// Returns the text for people.
pub(super) fn text(problem: &Problem, solution: &Solution, files: WrittenFiles<'_>) -> String {
    let form = &problem.form;
    let mesh = &solution.context.on.mesh;
    let fields: Vec<String> = form
        .fields
        .iter()
        .zip(&solution.context.elements.fields)
        .map(|(field, element)| {
            let (name, shape, degree) = (&field.name, shape_word(field.shape), element.degree());
            let of = if element.is_continuous() { "" } else { " in L2" };
            format!("{name}: {shape}{of}, degree {degree}")
        })
        .collect();
    let plan = action_plan(solution).map_or_else(
        || solution.kernels.word.to_owned(),
        |plan| {
            format!(
                "{}, {} lanes, geometry {}, unknowns by {:?}",
                solution.kernels.word, plan.lanes, plan.geometry, plan.indices
            )
        },
    );
    let report = &solution.report;
    let notes = solution.notes.iter().map(String::as_str).chain(files.note);
    let notes = notes.map(|note| format!("  note        {note}"));
    let mut lines = vec![
        format!("{} ({})", problem.name, form.name),
        format!("  mesh        {} cells ({})", solution.size[0], mesh.cell().name()),
        format!("  unknowns    {} ({})", solution.size[1], fields.join("; ")),
        format!("  quadrature  {}", solution.context.elements.rule),
        format!("  kernels     {plan}"),
        format!(
            "  solver      {}, {} iterations{}",
            report.solver,
            report.iterations,
            if solution.linear_iterations == report.iterations {
                String::new()
            } else {
                format!(" ({} linear)", solution.linear_iterations)
            }
        ),
        format!("  residual    {:.3e}", solution.residual),
    ];
    lines.splice(6..6, solution.multigrid.iter().map(|levels| multigrid(solution, levels)));
    if let Some(device) = &solution.kernels.device {
        let (backend, scatter) = (solution.kernels.backend, solution.kernels.scatter());
        lines.insert(4, format!("  device      {backend} ({device}), scatter {scatter}"));
    }
    if let Some(cut) = solution.context.on.mesh.cut() {
        let count = cut.group().size();
        lines.insert(3, format!("  processes   {count}, each with a part of the mesh"));
    }
    lines.splice(2..2, notes);
    lines.extend(modes(solution));
    for (field, l2, h1) in &solution.errors {
        let own = &form.fields[*field];
        let norm = own.space.family();
        let norm = if norm == "L2" { "H1" } else { norm };
        lines.push(format!("  error       {}: L2 {l2:.6e}, {norm} {h1:.6e}", own.name));
    }
    if let Some(energy) = solution.energy {
        lines.push(format!("  energy      {energy:.12e}"));
    }
    lines.extend(ranges(problem, solution).map(|line| format!("  range       {line}")));
    // Reports of modes are printed with the modes.
    let reports = solution.reports.iter().filter(|_| solution.modes.is_empty());
    lines.extend(reports.map(|report| {
        let file = files.lines.iter().find(|(name, _)| *name == report.name);
        let file = file.map(|(_, path)| format!(" in {}", seen(&path.display().to_string())));
        let file = file.unwrap_or_default();
        format!("  report      {} = {}{file}", report.name, figure(&report.value))
    }));
    lines.push(format!("  throughput  {:.3e} DoF/s", solution.throughput));
    let seconds = solution.seconds;
    lines.push(format!(
        "  seconds     {:.3}: mesh {:.3}, compile {:.3}, set up {:.3}, solve {:.3}, measure {:.3}, write {:.3}",
        seconds.sum(),
        seconds.mesh,
        seconds.compile,
        seconds.set_up,
        seconds.solve,
        seconds.measure,
        seconds.write
    ));
    for (what, path) in [("output", files.output), ("picture", files.picture)] {
        if let Some(path) = path {
            lines.push(format!("  {what:<10}  {}", seen(&path.display().to_string())));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the eigenvalues, the frequencies √λ / 2π, and the reports of each mode.
fn modes(solution: &Solution) -> impl Iterator<Item = String> + '_ {
    let head = (!solution.modes.is_empty())
        .then(|| "  modes       eigenvalue            √λ / 2π       residual".to_owned());
    let rows = solution.modes.iter().enumerate().flat_map(|(number, mode)| {
        let frequency = frequency(mode.value)
            .map_or_else(|| format!("{:<12}", "-"), |hertz| format!("{hertz:<12.6e}"));
        let row = format!(
            "  {:>9}   {:<20.12e}  {frequency}  {:.1e}",
            number + 1,
            mode.value,
            mode.residual
        );
        let reports = mode.reports.iter();
        let reports = reports
            .map(|report| format!("              {} = {}", report.name, figure(&report.value)));
        std::iter::once(row).chain(reports).collect::<Vec<_>>()
    });
    head.into_iter().chain(rows)
}

/// Describes the multigrid hierarchy of a preconditioner.
fn multigrid(solution: &Solution, levels: &MultigridStatistics) -> String {
    let sizes: Vec<String> = levels.levels.iter().map(|level| level.unknowns.to_string()).collect();
    let (steps, applications) = (levels.steps, applications(solution).unwrap_or_default());
    let of = levels.field.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    let smoother = match levels.smoother {
        Smoother::Chebyshev => "Chebyshev",
        Smoother::Jacobi => "Jacobi",
    };
    format!(
        "  multigrid   {of}{} levels ({} unknowns), {steps} + {steps} {smoother} steps, {} below; {applications} applications, \
         set up in {:.3} s",
        levels.levels.len(),
        sizes.join(", "),
        levels.coarsest,
        levels.seconds
    )
}

/// Returns the smallest and the largest value of each component of each field.
fn ranges<'a>(problem: &'a Problem, solution: &'a Solution) -> impl Iterator<Item = String> + 'a {
    let fields = problem.form.fields.iter().zip(&solution.ranges);
    fields.flat_map(|(field, ranges)| {
        ranges.iter().enumerate().map(|(component, [least, most])| {
            let name = match ranges.len() {
                1 => field.name.clone(),
                _ => format!("{}[{component}]", field.name),
            };
            format!("{name}: {least:.6e} to {most:.6e}")
        })
    })
}

/// Formats a report; for a line plot the number of points.
fn figure(figure: &ReportValue) -> String {
    let list = |values: &[f64]| {
        let shown: Vec<String> = values.iter().map(|value| format!("{value:.10e}")).collect();
        format!("[{}]", shown.join(", "))
    };
    match figure {
        ReportValue::Value(Shape::Scalar, values) => format!("{:.10e}", values[0]),
        ReportValue::Value(Shape::Vector(_), values) => list(values),
        ReportValue::Value(Shape::Matrix(_, columns), values) => {
            let rows: Vec<String> = values.chunks(*columns).map(list).collect();
            format!("[{}]", rows.join(", "))
        }
        ReportValue::Line(_, points) => {
            let empty = |(_, values): &&([f64; 3], Vec<f64>)| values.iter().any(|x| x.is_nan());
            match points.iter().filter(empty).count() {
                0 => format!("{} points", points.len()),
                gaps => format!("{} points, {gaps} without a value,", points.len()),
            }
        }
    }
}
