//! What is known of a mesh and a GPU → the plans of an operator's kernels.

use super::slots::summing;
use super::{
    MeshFacts, Wishes, action_candidates, by_unknowns, cheapest, corners, over_facets,
    own_geometry, transposed,
};
use crate::abi::SHARED_BYTES;
use crate::cost::Machine;
use crate::element::{Cell, LinePoints};
use crate::kir::Precision;
use crate::lower::stored::blocks;
use crate::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
    is_flat,
};
use crate::strategy::check;
use crate::strategy::thread_per_line;
use fem_dsl::point::PointForm;

/// Threads of a group where one thread does one cell.
pub const THREADS: usize = 128;

/// The plans of the kernels that do `tasks` on a GPU, and of those that store what they read: first for cells
/// without constrained unknowns, then, where there are any, for the others. Everything is computed on the
/// fly, but for the action on curved tensor cells, where predicted times decide.
pub fn choose_for_threads(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    precision: Precision,
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let own = own_geometry(elements, facts);
    // What sums batch by batch is looked at when the threads of a group are known.
    let scatter = wishes.scatter.filter(|&scatter| scatter != Scatter::Block).unwrap_or_default();
    let components = form.fields.first().map_or(1, |field| field.shape.components());
    let base = |task: Task| {
        let stores = matches!(task, Task::Linearise | Task::Metric);
        let geometry = wishes.geometry.filter(|&wish| wish != Geometry::Stored || !stores);
        // Where fields share a vector, an index says where the numbers of a node begin.
        let tiles = wishes.tiles.unwrap_or(components > 1 || form.fields.len() > 1);
        Plan {
            tiles,
            scatter,
            edges: busy(form, elements),
            unroll: unrolled(form, elements, task),
            residency: wishes.residency.unwrap_or_else(|| cell_residency(form, elements)),
            in_order: wishes.in_order.unwrap_or_else(|| crowded(form, elements)),
            shared_bytes: wishes.shared_bytes.unwrap_or(SHARED_BYTES),
            even_odd: EvenOdd::Always,
            linearisation: match task {
                Task::Action => wishes.linearisation.unwrap_or(Linearisation::Recompute),
                _ => Linearisation::Recompute,
            },
            ..Plan::new(
                Target::Threads,
                task,
                wishes.lanes.unwrap_or(THREADS),
                precision,
                geometry.unwrap_or(own),
            )
        }
    };
    let by_lines = |plan: &Plan| {
        let wanted = wishes.strategy.is_none_or(|strategy| strategy != Strategy::CellPerLane)
            && wishes.scatter != Some(Scatter::Block);
        if wanted { lines(form, elements, plan, wishes) } else { None }
    };
    let place = |plan: Plan| {
        let line = by_lines(&plan);
        let roomy = !plan.tiles || components >= form.dim;
        let corners = || corners(&plan, elements, facts, wishes).filter(|_| roomy);
        line.or_else(corners).unwrap_or(plan)
    };
    let here = matches!(
        wishes.strategy,
        None | Some(Strategy::CellPerLane | Strategy::ThreadPerLine { .. })
    );
    let curved = matches!(own, Geometry::Nodes(_)) && elements.cell.is_tensor() && here;
    let wished = (wishes.linearisation, wishes.geometry);
    let mut plans = Vec::new();
    for &task in tasks {
        let plan = base(task);
        plans.push(match task {
            Task::Action if curved => {
                let candidates = action_candidates(&plan, wishes);
                let placed: Vec<Plan> = candidates.into_iter().map(place).collect();
                // Cells that are too large for one thread are for many.
                let by_line = |plan: &Plan| matches!(plan.strategy, Strategy::ThreadPerLine { .. });
                let lines: Vec<Plan> =
                    placed.iter().filter(|plan| by_line(plan)).cloned().collect();
                let candidates = if lines.is_empty() { placed } else { lines };
                cheapest(form, elements, candidates, &Machine::gpu(), |_| 1.0)?
            }
            Task::Action if wished == (None, None) && reads_points(form, elements) => {
                place(Plan { linearisation: Linearisation::Stored, ..plan })
            }
            _ => place(plan),
        });
    }
    let mut plans: Vec<Plan> =
        plans.into_iter().map(|plan| summing(form, elements, plan, wishes)).collect();
    for (task, reader) in stores(&plans) {
        let same = |plan: &Plan| (plan.lanes, &plan.slots) == (reader.lanes, &reader.slots);
        if !plans.iter().any(|plan| plan.task == task && same(plan)) {
            let plan = base(task);
            let line = by_lines(&plan).filter(|line| same(line));
            let Plan { lanes, scatter, slots, .. } = reader;
            plans.push(line.unwrap_or(Plan { lanes, scatter, slots, ..plan }));
        }
    }
    if facts.constrained {
        plans.extend(by_unknowns(&plans, own));
    }
    let mut plans = transposed::transpose(form, elements, plans, wishes)?;
    plans.extend(over_facets(form, facts, tasks, |task| Plan {
        linearisation: Linearisation::Recompute,
        unroll: 8,
        edges: false,
        residency: 1,
        in_order: false,
        ..base(task)
    }));
    let adds =
        |plan: &Plan| plan.integral == 0 && !matches!(plan.task, Task::Linearise | Task::Metric);
    let other = |plan: &Plan| adds(plan) && plan.scatter != Scatter::Block;
    if wishes.scatter == Some(Scatter::Block) && plans.iter().any(other) {
        return Err(PlanError::Unsupported(
            "cells sum batch by batch with 32 threads and more that have a cell each, or by thread transposition"
                .to_owned(),
        ));
    }
    for plan in &plans {
        check(form, elements, plan)?;
    }
    Ok(plans)
}

/// Whether the action of a matrix without gradients is done sooner with its numbers from the points, one each, than
/// with the map of the cell: at degrees 2 and 3, where a thread has only few points to each unknown it moves.
/// Measured on an H200, a mass matrix of one component at degrees 1 to 4: 12.9, 26.9, 40.5 and 47.1 billion unknowns a
/// second with, 15.4, 23.2, 36.7 and 47.1 without; of three 19.9, 33.2, 49.3 and 55.6, without 22.7, 31.1, 49.8 and 58.0.
fn reads_points(form: &PointForm, elements: &Elements) -> bool {
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    let degrees = if components == 1 { 2..=3 } else { 2..=2 };
    let degree = elements.largest();
    let one = || {
        let numbers = |integral| blocks(form, integral, |_, _| true).numbers;
        form.integrals.iter().all(|integral| numbers(integral) == 1)
    };
    elements.cell == Cell::Hexahedron && is_flat(form) && degrees.contains(&degree) && one()
}

/// What must be stored at the points, and for which plan.
fn stores(plans: &[Plan]) -> Vec<(Task, Plan)> {
    let mut wanted = Vec::new();
    for plan in plans {
        if plan.linearisation == Linearisation::Stored {
            wanted.push((Task::Linearise, plan.clone()));
        } else if plan.geometry == Geometry::Stored {
            wanted.push((Task::Metric, plan.clone()));
        }
    }
    wanted
}

/// Groups of threads with a cell each that a processor is to hold: what a cell of degree 1 needs in
/// registers leaves room for four with one component on few points, for three where all points of a
/// hexahedron only take values, and for two else. Measured on an H200: with three, a mass matrix on 27
/// points does 12.8 billion unknowns a second, with two 10; of three components 26.9, with two 23.0.
fn cell_residency(form: &PointForm, elements: &Elements) -> usize {
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    match (elements.largest(), components) {
        (1, 1) if elements.rule.count() <= 8 => 4,
        (1, 1..=3)
            if elements.cell == Cell::Hexahedron
                && elements.rule.count() == 27
                && is_flat(form) =>
        {
            3
        }
        _ if busy(form, elements) => 3,
        (1, _) => 2,
        _ => 1,
    }
}

/// Whether a thread adds so many numbers of a small hexahedron that edges pay, which threads side by side share:
/// three components of gradients on eight points. Measured on an H200 with three groups: elasticity 23.3 billion
/// unknowns a second, node by node 22.1, and 22.4 with two groups. With one component shuffling costs more than the
/// additions that it saves.
fn busy(form: &PointForm, elements: &Elements) -> bool {
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    let small = elements.cell == Cell::Hexahedron && elements.rule.count() <= 8;
    small && elements.largest() == 1 && components == 3 && !is_flat(form)
}

/// Whether a thread certainly holds too much of a hexahedron of degree 1, so that its assembler should keep to the order of
/// the text: gradients of three components on 27 points, three Laplacians of which go from 4.2 to 6.1 billion unknowns a
/// second on an H200. With fewer points it depends on the form, and what is spilt is looked at when it is compiled.
fn crowded(form: &PointForm, elements: &Elements) -> bool {
    let many = elements.rule.count() > 8 && form.rows() >= 3;
    elements.cell == Cell::Hexahedron && elements.largest() == 1 && many && !is_flat(form)
}

/// The plan with a thread a line, where that is possible and has more than a few lines a cell.
fn lines(form: &PointForm, elements: &Elements, plan: &Plan, wishes: &Wishes) -> Option<Plan> {
    let q = elements.rule.line().map(LinePoints::count)?;
    let degree = elements.largest();
    // What is symmetric about the middle pays from five points on.
    let even_odd = if q >= 5 { EvenOdd::Always } else { EvenOdd::Never };
    let line = |cells: usize| {
        let strategy = Strategy::ThreadPerLine { cells };
        let unroll = 1 << 16;
        let plan = Plan { strategy, lanes: 1, even_odd, unroll, ..plan.clone() };
        let residency = || thread_per_line::residency(form, elements, &plan, cells);
        let residency = wishes.residency.unwrap_or_else(residency);
        let in_order = || thread_per_line::in_order(form, elements, &plan);
        let in_order = wishes.in_order.unwrap_or_else(in_order);
        let in_place = || thread_per_line::in_place(form, elements, &plan);
        let in_place = wishes.in_place.unwrap_or_else(in_place);
        Plan { residency, in_order, in_place, ..plan }
    };
    let forced = matches!(wishes.strategy, Some(Strategy::ThreadPerLine { .. }));
    let many = degree >= 2 && (fills(form, elements, q) || (forced && q >= 3));
    // As many cells a group as the shared memory holds that every device has; if not even one, then one in as much as
    // this device has, and at last one with derivatives in the place of values.
    let most = wishes.cells.unwrap_or_else(|| thread_per_line::cells(form, elements));
    let usual = plan.shared_bytes.min(SHARED_BYTES);
    let usual = |cells: usize| Plan { shared_bytes: usual, ..line(cells) };
    let last = [line(1), Plan { in_place: true, ..line(1) }];
    let mut plans = (1..=most).rev().map(usual).chain(last);
    plans.find(|plan| many && check(form, elements, plan).is_ok())
}

/// Whether a cell is too much for the registers of one thread, and enough for many. Two nodes a direction fill too few
/// lines; with three, registers hold two components of a hexahedron. Measured on an H200, in billions of unknowns a
/// second, by lines and by threads with a cell each: two fields, three, and Stokes on 27 points 17, 18 and 25 against 18,
/// 12 and 12, one field and two on 64 points 39 and 27 against 37 and 6. On quadrilaterals one thread does linear
/// forms better for as long as its loops are written out: Stokes of degrees 2 to 4 64, 72 and 68 against 47, 53 and 56,
/// vectors of degrees 2 and 3 67 and 75 against 57 and 67; but a neo-Hookean solid of degrees 3 and 4 40 and 34 against
/// 48 and 42.
fn fills(form: &PointForm, elements: &Elements, q: usize) -> bool {
    match form.dim {
        2 => {
            let linear = form.integrals.iter().all(|integral| integral.linear);
            q >= 3 && !(linear && elements.rule.count() * form.rows() <= WRITTEN_OUT)
        }
        _ => q >= if form.rows() <= 2 { 4 } else { 3 },
    }
}

/// Points times components up to which a thread's loops over a cell are written out.
const WRITTEN_OUT: usize = 128;

/// Up to how many entries loops are written out where a thread does a cell, so that arrays become registers. A large
/// cell, or a diagonal of degree 3 and more, needs so many that none of it would stay there, and written out it
/// compiles for minutes: it is computed in loops.
fn unrolled(form: &PointForm, elements: &Elements, task: Task) -> usize {
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    let largest = elements.largest();
    let diagonal = task == Task::Diagonal && elements.cell.is_tensor() && largest >= 3;
    if diagonal || elements.rule.count() * components > WRITTEN_OUT { 8 } else { 1 << 16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Rule;
    use fem_dsl::source::Source;

    const FORMS: [&str; 4] = [
        "form f { field u: scalar; f0[u] = u; }",
        "form f { field u: scalar; f1[u] = grad(u); }",
        "form f { field u: vector; f0[u] = 3 * u; f1[u] = sym(grad(u)) + tr(grad(u)) * I; }",
        "form f { field u: scalar; aux a: scalar on nodes; f0[u] = u^3 + x[0]; f1[u] = (a + u^2) * grad(u); }",
    ];

    fn form(text: &str, dim: usize) -> PointForm {
        let (program, found) = fem_dsl::program::compile(&Source::new("f", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", dim).expect("a form")
    }

    /// Elements on q = p + 1 + `more` Gauss points a direction, or on the nodes.
    fn on(form: &PointForm, degree: usize, more: Option<usize>) -> Elements {
        let cell = if form.dim == 3 { Cell::Hexahedron } else { Cell::Quadrilateral };
        let line = match more {
            Some(more) => LinePoints::Gauss(degree + 1 + more),
            None => LinePoints::GaussLobatto(degree + 1),
        };
        Elements::new(form, cell, degree, Rule::Tensor { cell, line }).expect("elements")
    }

    #[test]
    fn a_diagonal_fits_where_the_action_does() {
        let strategies = [
            (Strategy::ThreadPerLine { cells: 1 }, 1),
            (Strategy::ThreadPerLine { cells: 3 }, 1),
            (Strategy::ThreadPerDof, 1),
            (Strategy::ThreadPerDof, 3),
        ];
        let (mut seen, mut beyond) = (0, 0);
        for (text, dim) in FORMS.iter().flat_map(|text| [(text, 2), (text, 3)]) {
            let form = form(text, dim);
            for degree in [1, 2, 4, 6, 8] {
                for more in [Some(0), Some(1), None] {
                    let elements = on(&form, degree, more);
                    for geometry in [Geometry::Vertices, Geometry::Nodes(2), Geometry::Stored] {
                        for (strategy, lanes) in strategies {
                            let plan = |task: Task| Plan {
                                strategy,
                                ..Plan::new(Target::Threads, task, lanes, Precision::F64, geometry)
                            };
                            if check(&form, &elements, &plan(Task::Action)).is_err() {
                                beyond += 1;
                                continue;
                            }
                            let diagonal = check(&form, &elements, &plan(Task::Diagonal));
                            assert_eq!(diagonal, Ok(()), "{text} {elements:?} {strategy:?}");
                            seen += 1;
                        }
                    }
                }
            }
        }
        assert!(seen > 500 && beyond > 50, "{seen} {beyond}");
    }

    /// Stokes by Taylor and Hood, of which a thread holds quadrilaterals, and two scalar fields of which it holds
    /// hexahedra of degree 2.
    #[test]
    fn several_fields_have_lines_where_one_has() {
        let facts = MeshFacts { affine: false, order: 1, runs: false, constrained: true };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        for (text, degrees) in [
            (
                "form f { field u: vector; field p: scalar in H1(k - 1); f1[u] = grad(u) - p * I; f0[p] = -div(u); }",
                2..=6,
            ),
            (
                "form f { field u: scalar; field v: scalar; f0[v] = u; f1[u] = grad(v); f0[u] = v^3; f1[v] = grad(u); }",
                1..=5,
            ),
        ] {
            for (dim, degree) in degrees.flat_map(|degree| [(2, degree), (3, degree)]) {
                let form = form(text, dim);
                let elements = on(&form, degree, Some(0));
                let plans = choose_for_threads(
                    &form,
                    &elements,
                    &facts,
                    &tasks,
                    Precision::F64,
                    &Wishes::default(),
                );
                let plans = plans.expect("plans");
                assert_eq!(plans.len(), 6, "{plans:?}");
                for plan in plans {
                    let lines = matches!(plan.strategy, Strategy::ThreadPerLine { .. });
                    let (rows, many) = (form.rows(), elements.rule.count() * form.rows() > 128);
                    let wanted = match (dim, rows) {
                        (2, 2) => degree >= 2,
                        (2, _) => many,
                        _ => degree >= 6_usize.div_ceil(rows),
                    };
                    assert_eq!(lines, wanted, "{text} degree {degree}: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn simplices_sum_batch_by_batch() {
        let facts = MeshFacts { affine: false, order: 1, runs: false, constrained: true };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        let forms = [(FORMS[1], 2, 4), (FORMS[1], 3, 3), (FORMS[2], 2, 4), (FORMS[2], 3, 2)];
        for (text, dim, most) in forms {
            let form = form(text, dim);
            let cell = if dim == 2 { Cell::Triangle } else { Cell::Tetrahedron };
            for degree in 1..=4 {
                let elements = crate::generate::elements(&form, cell, degree, 1, None);
                let elements = elements.expect("elements");
                let choose = |wishes: &Wishes| {
                    choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, wishes)
                };
                for plan in choose(&Wishes::default()).expect("plans") {
                    let sums = plan.scatter == Scatter::Block;
                    assert_eq!(sums, degree <= most, "{text} degree {degree}: {plan:?}");
                    // Every node of a cell may have a slot of its own.
                    let nodes = elements.fields[0].count();
                    assert!(plan.slots.iter().all(|slots| slots.count >= nodes), "{plan:?}");
                    assert_eq!(plan.slots.len(), usize::from(sums));
                }
                let atomic = Wishes { scatter: Some(Scatter::Atomic), ..Wishes::default() };
                let plans = choose(&atomic).expect("plans");
                assert!(plans.iter().all(|plan| plan.scatter == Scatter::Atomic));
                // What stores for others has their batches.
                let stored = Wishes { geometry: Some(Geometry::Stored), ..Wishes::default() };
                let plans = choose(&stored).expect("plans");
                let metric = plans.iter().filter(|plan| plan.task == Task::Metric);
                let batches = |plan: &Plan| (plan.lanes, plan.slots.clone());
                let metric: Vec<_> = metric.map(batches).collect();
                assert!(plans.iter().all(|plan| metric.contains(&batches(plan))), "{plans:?}");
            }
        }
    }

    #[test]
    fn what_has_no_room_takes_the_place_of_values() {
        let facts = MeshFacts { affine: false, order: 1, runs: false, constrained: false };
        let tasks = [Task::Residual, Task::Action];
        let text = "form f { field u: vector; f1[u] = (1 + u[0]^2) * grad(u); }";
        let form = form(text, 3);
        let mut seen = Vec::new();
        for degree in 6..=9 {
            let elements = on(&form, degree, None);
            for bytes in [SHARED_BYTES, 227 << 10] {
                let wishes = Wishes { shared_bytes: Some(bytes), ..Wishes::default() };
                let plans =
                    choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &wishes);
                for plan in plans.expect("plans") {
                    let lines = matches!(plan.strategy, Strategy::ThreadPerLine { .. });
                    seen.push((degree, plan.task == Task::Action, bytes, lines, plan.in_place));
                }
            }
        }
        let in_place = |degree: usize| {
            let found = seen.iter().filter(|case| case.0 == degree && case.4);
            found.map(|case| (case.1, case.2)).collect::<Vec<_>>()
        };
        // The action reads the state, too; in 48 KiB it has no room on 8 points and more.
        let beyond = |case: &(usize, bool, usize, bool, bool)| case.1 && case.2 == SHARED_BYTES;
        assert!(seen.iter().all(|case| case.3 != (beyond(case) && case.0 > 6)), "{seen:?}");
        // On 7 and 9 points it is faster, wherever there is room.
        let (usual, more) = (SHARED_BYTES, 227 << 10);
        assert_eq!(in_place(6), [(false, usual), (true, usual), (false, more), (true, more)]);
        assert_eq!(in_place(7), []);
        assert_eq!(in_place(8), [(false, usual), (false, more), (true, more)]);
        assert_eq!(in_place(9), [(false, usual)]);
    }

    #[test]
    fn mass_matrices_of_low_degree_read_their_points() {
        let facts = MeshFacts { affine: false, order: 1, runs: false, constrained: false };
        let tasks = [Task::Residual, Task::Action];
        for (text, degree, stored) in [
            (FORMS[0], 1, false),
            (FORMS[0], 2, true),
            (FORMS[0], 3, true),
            (FORMS[0], 4, false),
            (FORMS[1], 2, false),
            ("form f { field u: vector; f0[u] = u; }", 2, true),
            ("form f { field u: vector; f0[u] = u; }", 3, false),
            ("form f { field u: vector; f0[u] = u[0] * u; }", 2, false),
        ] {
            let form = form(text, 3);
            let elements = on(&form, degree, Some(1));
            let choose = |wishes: &Wishes| {
                choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, wishes)
                    .expect("plans")
            };
            let plans = choose(&Wishes::default());
            let linearisation =
                if stored { Linearisation::Stored } else { Linearisation::Recompute };
            assert_eq!(plans[1].linearisation, linearisation, "{text}, degree {degree}");
            assert_eq!(plans.iter().any(|plan| plan.task == Task::Linearise), stored);
            let fly = Wishes { geometry: Some(Geometry::Vertices), ..Wishes::default() };
            assert_eq!(choose(&fly)[1].linearisation, Linearisation::Recompute);
        }
    }

    #[test]
    fn what_is_stored_on_curved_cells_has_the_batches_of_its_readers() {
        let facts = MeshFacts { affine: false, order: 2, runs: false, constrained: true };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        let mut stored = 0;
        for (text, degree) in
            FORMS.iter().flat_map(|text| (1..=5).map(move |degree| (text, degree)))
        {
            let form = form(text, 3);
            let elements = on(&form, degree, Some(1));
            let wishes = Wishes { shared_bytes: Some(220 << 10), ..Wishes::default() };
            let plans =
                choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &wishes);
            let plans = plans.expect("plans");
            for (task, reader) in stores(&plans) {
                stored += 1;
                let found = plans.iter().any(|plan| {
                    (plan.task, plan.lanes, plan.indices) == (task, reader.lanes, reader.indices)
                });
                assert!(found, "{text}, degree {degree}: {reader:?}");
            }
        }
        assert!(stored > 0, "something should be stored");
    }
}
