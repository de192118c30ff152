//! Plan selection for GPUs: properties of a mesh and a GPU → the plans of an operator's kernels.

use super::slots::summing;
use super::tuning::{HOPPER, LineSizes, Sizes};
use super::{
    MeshFacts, PlanOverrides, action_candidates, cheapest, corners, over_facets, own_geometry,
    region_by_region, supported, transposed, with_hanging_nodes,
};
use crate::abi::{SHARED_BYTES, registers};
use crate::element::LinePoints;
use crate::kir::Precision;
use crate::lower::facts::KernelFacts;
use crate::lower::stored::blocks;
use crate::plan::traces::with_traces;
use crate::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
    is_derivative, reads,
};
use crate::strategy::check;
use fem_dsl::point::{Input, PointForm, Slot};

/// Returns the plans of the kernels for `tasks` on a GPU, and of those that store their input. Plans for cells without
/// hanging nodes come first, then, if there are any, those for cells with them. Everything is computed on the fly,
/// except for the action on curved tensor cells, which the predicted times decide.
pub fn choose_for_threads(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    precision: Precision,
    overrides: &PlanOverrides,
) -> Result<Vec<Plan>, PlanError> {
    // If the cells of one kernel are coloured, those of all kernels are.
    let coloured = overrides.matrix == Some(Scatter::Coloured) && tasks.contains(&Task::Matrix);
    let overrides = &match (coloured, overrides.scatter) {
        (true, Some(Scatter::Block)) => {
            return Err(PlanError::Unsupported(
                "cells that sum batch by batch have no colours, by which their matrices are added"
                    .to_owned(),
            ));
        }
        (true, None | Some(Scatter::Atomic)) => {
            PlanOverrides { scatter: Some(Scatter::Coloured), ..*overrides }
        }
        _ => *overrides,
    };
    let plans = region_by_region(form, tasks, |form, tasks, of_facets| {
        of_region(form, elements, facts, (tasks, of_facets), precision, overrides)
    })?;
    let adds = |plan: &Plan| {
        let of_cells = form.integrals[plan.integral].region.is_of_cells();
        of_cells && !plan.task.stores() && !plan.task.is_of_matrices()
    };
    let other = |plan: &Plan| adds(plan) && plan.scatter != Scatter::Block;
    if overrides.scatter == Some(Scatter::Block) && plans.iter().any(other) {
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

/// The selection of plans for the cells and facets of a form.
struct Selection<'a> {
    form: &'a PointForm,
    elements: &'a Elements,
    facts: &'a MeshFacts,
    precision: Precision,
    overrides: &'a PlanOverrides,
    own_geometry: Geometry,
    sizes: Sizes,
}

impl Selection<'_> {
    /// Returns the components of the first field.
    fn components(&self) -> usize {
        self.form.fields.first().map_or(1, |field| field.shape.components())
    }

    /// Returns the plan of a task in which a thread owns a cell.
    fn base(&self, task: Task) -> Plan {
        let Self { overrides, sizes, .. } = self;
        let geometry =
            overrides.geometry.filter(|&wish| wish != Geometry::Stored || !task.stores());
        // If fields share a vector, an index is the offset of a node's entries.
        let shared = self.components() > 1 || self.form.fields.len() > 1;
        // Summation batch by batch is decided once the threads of a group are known.
        let scatter = overrides.scatter.filter(|&scatter| scatter != Scatter::Block);
        let matrix = task.is_of_matrices();
        Plan {
            tiles: overrides.tiles.unwrap_or(shared),
            scatter: match task {
                Task::Matrix => overrides.matrix.unwrap_or(Scatter::Owner),
                _ => scatter.unwrap_or_default(),
            },
            edges: !matrix && HOPPER.edges.at(sizes) && !self.elements.are_vector_valued(),
            signs: self.facts.signs,
            unroll: HOPPER.unroll,
            residency: match overrides.residency {
                _ if matrix => 1,
                wish => wish.unwrap_or_else(|| HOPPER.residency.at(sizes)),
            },
            in_order: !matrix && overrides.in_order.unwrap_or_else(|| HOPPER.in_order.at(sizes)),
            shared_bytes: overrides.shared_bytes.unwrap_or(SHARED_BYTES),
            even_odd: EvenOdd::Always,
            linearisation: match task {
                Task::Action => overrides.linearisation.unwrap_or(Linearisation::Recompute),
                _ => Linearisation::Recompute,
            },
            ..Plan::new(
                Target::Threads,
                task,
                overrides.lanes.unwrap_or(HOPPER.threads),
                self.precision,
                geometry.unwrap_or(self.own_geometry),
            )
        }
    }

    /// Returns the plan with a thread per line, if that is possible and wished for.
    fn by_lines(&self, plan: &Plan) -> Option<Plan> {
        let overrides = self.overrides;
        let wanted = overrides.strategy.is_none_or(|strategy| strategy != Strategy::CellPerLane)
            && overrides.scatter != Some(Scatter::Block);
        if wanted { lines(self.form, self.elements, plan, overrides) } else { None }
    }

    /// Returns the plan for pairs of cells with a thread for each point of the facet, if that is possible and wished for.
    fn pairs_by_lines(&self, plan: &Plan) -> Option<Plan> {
        let Self { form, elements, overrides, .. } = self;
        let integral = &form.integrals[plan.integral];
        let q = elements.rule.line().map(LinePoints::count)?;
        let wanted = match overrides.strategy {
            None => {
                let derivative = |slot: Slot| is_derivative(slot.part);
                let tested = integral.residual.iter().any(|(slot, _)| derivative(*slot));
                let read = reads(integral, |input| match input {
                    Input::State(slot) | Input::Direction(slot) => derivative(slot),
                    _ => false,
                });
                HOPPER.pairs.pay.at(&self.sizes.with_gradients(tested || read))
            }
            Some(strategy) => matches!(strategy, Strategy::ThreadPerLine { .. }),
        };
        if !(wanted && integral.region.is_interior()) || elements.are_vector_valued() {
            return None;
        }
        let members = q.pow(form.dim as u32 - 1);
        let cells = HOPPER.pairs.cells(members);
        let threads = cells * members;
        let fits = |&groups: &usize| registers(threads, groups) >= HOPPER.pairs.registers;
        let plan = Plan {
            strategy: Strategy::ThreadPerLine { cells },
            lanes: 1,
            geometry: match self.facts.order {
                1 => Geometry::Vertices,
                order => Geometry::Nodes(order),
            },
            residency: (1..=32).rev().find(fits).unwrap_or(1),
            ..plan.clone()
        };
        check(form, elements, &plan).is_ok().then_some(plan)
    }

    /// Returns the plan by lines, or with the geometry of corners, or the plan itself.
    fn place(&self, plan: Plan) -> Plan {
        let roomy = !plan.tiles || self.components() >= self.form.dim;
        let supported = |plan: &Plan| check(self.form, self.elements, plan).is_ok();
        let corners = || {
            let corners = corners(&plan, self.elements, self.facts, self.overrides);
            corners.filter(|plan| roomy && supported(plan))
        };
        self.by_lines(&plan).or_else(corners).unwrap_or(plan)
    }

    /// Returns the plan of a task on cells.
    fn of_task(&self, task: Task) -> Result<Plan, PlanError> {
        let Self { form, elements, overrides, .. } = self;
        let by_cells_or_lines = matches!(
            overrides.strategy,
            None | Some(Strategy::CellPerLane | Strategy::ThreadPerLine { .. })
        );
        let curved = matches!(self.own_geometry, Geometry::Nodes(_))
            && elements.cell.is_factorised()
            && by_cells_or_lines;
        let numbers = |integral| blocks(form, integral, false, |_| false, |_, _| true).numbers;
        let one_number = || {
            let scalar = !elements.are_vector_valued();
            scalar && form.integrals.iter().all(|integral| numbers(integral) == 1)
        };
        let wished = (overrides.linearisation, overrides.geometry);
        let plan = self.base(task);
        Ok(match task {
            Task::Action if curved => {
                let candidates = action_candidates(&plan, overrides);
                let candidates = supported(form, elements, candidates).into_iter();
                let placed: Vec<Plan> = candidates.map(|plan| self.place(plan)).collect();
                // Cells that are too large for one thread are shared by many.
                let by_line = |plan: &Plan| matches!(plan.strategy, Strategy::ThreadPerLine { .. });
                let lines: Vec<Plan> =
                    placed.iter().filter(|plan| by_line(plan)).cloned().collect();
                let candidates = if lines.is_empty() { placed } else { lines };
                cheapest(form, elements, candidates, &HOPPER.machine, |_| 1.0)?
            }
            Task::Action
                if wished == (None, None)
                    && HOPPER.reads_points.at(&self.sizes)
                    && one_number() =>
            {
                self.place(Plan { linearisation: Linearisation::Stored, ..plan })
            }
            // One thread owns a whole cell.
            task if task.is_of_matrices() => plan,
            // No summation here, and the values at corners are not available.
            _ if task.stores() || task.transfers() => self.by_lines(&plan).unwrap_or(plan),
            _ => self.place(plan),
        })
    }

    /// Returns plans for cells with hanging nodes. If a strategy does not support them, one thread processes a cell and
    /// reads no data stored per batch by other kernels.
    fn with_hanging_nodes(&self, plans: &[Plan]) -> Vec<Plan> {
        let alone = |plan: Plan| Plan {
            hanging: true,
            edges: false,
            indices: plan.indices,
            geometry: match plan.geometry {
                Geometry::Stored => self.own_geometry,
                other => other,
            },
            linearisation: Linearisation::Recompute,
            ..self.base(plan.task)
        };
        let supported = |plan: &Plan| check(self.form, self.elements, plan).is_ok();
        with_hanging_nodes(plans, self.own_geometry)
            .into_iter()
            .map(|plan| if supported(&plan) { plan } else { alone(plan) })
            .collect()
    }
}

/// Returns the plans of the form's single cell integral and of its facet integrals.
fn of_region(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    (tasks, of_facets): (&[Task], &[Task]),
    precision: Precision,
    overrides: &PlanOverrides,
) -> Result<Vec<Plan>, PlanError> {
    let own_geometry = own_geometry(form, elements, facts);
    let sizes = Sizes::new(form, elements);
    let selection = Selection { form, elements, facts, precision, overrides, own_geometry, sizes };
    let sum = |plan: Plan| {
        let adds = !plan.task.stores() && !plan.task.is_of_matrices();
        if adds && !elements.are_vector_valued() {
            summing(form, elements, plan, overrides)
        } else {
            plan
        }
    };
    let of_task = |&task: &Task| selection.of_task(task).map(sum);
    let mut plans = tasks.iter().map(of_task).collect::<Result<Vec<Plan>, PlanError>>()?;
    for (task, reader) in readers(&plans) {
        let same = |plan: &Plan| (plan.lanes, &plan.slots) == (reader.lanes, &reader.slots);
        if !plans.iter().any(|plan| plan.task == task && same(plan)) {
            let plan = selection.base(task);
            let line = selection.by_lines(&plan).filter(|line| same(line));
            let Plan { lanes, scatter, slots, .. } = reader;
            plans.push(line.unwrap_or(Plan { lanes, scatter, slots, ..plan }));
        }
    }
    let hanging = facts.hanging.then(|| selection.with_hanging_nodes(&plans));
    plans.extend(hanging.into_iter().flatten());
    // Data stored for other kernels than these has its own batches.
    let separate = |plan: &Plan| plan.task == Task::Flux || plan.task.is_of_matrices();
    let (separate, plans): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(separate);
    // Vector-valued functions of tensor cells have a thread for each cell.
    let mut plans = match elements.are_vector_valued() && elements.cell.is_tensor() {
        true => plans,
        false => transposed::transpose(form, elements, plans, overrides)?,
    };
    plans.extend(separate);
    let facets = over_facets(form, elements, facts, of_facets, |task| Plan {
        linearisation: Linearisation::Recompute,
        edges: false,
        residency: 1,
        in_order: false,
        ..selection.base(task)
    });
    let share = |plan: Plan| selection.pairs_by_lines(&plan).unwrap_or(plan);
    plans.extend(facets.into_iter().map(share));
    Ok(plans)
}

/// Returns the storing tasks with the plans that read their results at the points.
fn readers(plans: &[Plan]) -> Vec<(Task, Plan)> {
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

/// Returns the plan with a thread per line, if it is possible and there are more than a few lines per cell.
fn lines(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    overrides: &PlanOverrides,
) -> Option<Plan> {
    let (q, dim) = (elements.rule.line().map(LinePoints::count)?, form.dim);
    let (lines, sizes) = (&HOPPER.lines, Sizes::new(form, elements));
    let even_odd = if q >= lines.even_odd { EvenOdd::Always } else { EvenOdd::Never };
    let (own, split) = with_traces(form, elements, plan);
    let sloped = LineSizes::new(&sizes, &KernelFacts::new(&own, &split, plan));
    let (in_order, in_place) = lines.in_order_in_place(&sloped);
    let wanted = match plan.task {
        Task::Diagonal => lines.diagonal,
        _ => lines.registers(&sloped),
    };
    let line = |cells: usize| {
        let strategy = Strategy::ThreadPerLine { cells };
        let unroll = 1 << 16;
        let plan = Plan { strategy, lanes: 1, even_odd, unroll, ..plan.clone() };
        let threads = cells * q.pow(dim as u32 - 1);
        let residency =
            || (1..=32).rev().find(|&groups| registers(threads, groups) >= wanted).unwrap_or(1);
        Plan {
            residency: overrides.residency.unwrap_or_else(residency),
            in_order: overrides.in_order.unwrap_or(in_order),
            in_place: overrides.in_place.unwrap_or(in_place),
            stores_inside: lines.stores_inside.at(&sizes),
            recomputed: lines.recomputed.at(&sizes),
            ..plan
        }
    };
    let forced = matches!(overrides.strategy, Some(Strategy::ThreadPerLine { .. }));
    let many = lines.pay.at(&sizes) || (forced && elements.largest() >= 2 && q >= 3);
    // As many cells per group as fit into the shared memory that every device has. If not even one fits: one in the
    // shared memory of this device, and finally one with derivatives that overwrite values.
    let most = overrides.cells.unwrap_or(if dim == 2 {
        (lines.threads / q).max(1)
    } else {
        lines.cells.at(&sizes)
    });
    let usual = plan.shared_bytes.min(SHARED_BYTES);
    let usual = |cells: usize| Plan { shared_bytes: usual, ..line(cells) };
    let last = [line(1), Plan { in_place: true, ..line(1) }];
    let mut plans = (1..=most).rev().map(usual).chain(last);
    plans.find(|plan| many && check(form, elements, plan).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Indices;
    use crate::element::{Cell, Rule};
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

    /// Elements on q = p + 1 + `more` Gauss points per direction, or on the nodes.
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

    /// Taylor–Hood Stokes, of which a thread holds quadrilaterals, and two scalar fields, of which it holds hexahedra
    /// of degree 2.
    #[test]
    fn several_fields_have_lines_where_one_has() {
        let facts = MeshFacts::default();
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
                    &PlanOverrides::default(),
                );
                let plans = plans.expect("plans");
                assert_eq!(plans.len(), 3, "{plans:?}");
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
    fn hanging_cells_keep_the_strategy_of_free_ones() {
        let facts = MeshFacts { hanging: true, ..MeshFacts::default() };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        for (text, dim) in FORMS.iter().flat_map(|text| [(text, 2), (text, 3)]) {
            for degree in [1, 2, 4, 7] {
                let form = form(text, dim);
                let elements = on(&form, degree, Some(0));
                let overrides = PlanOverrides::default();
                let plans = choose_for_threads(
                    &form,
                    &elements,
                    &facts,
                    &tasks,
                    Precision::F64,
                    &overrides,
                )
                .expect("supported");
                for task in tasks {
                    let of = |hanging: bool| {
                        let same = |plan: &&Plan| plan.task == task && plan.hanging == hanging;
                        plans.iter().find(same).expect("a plan of each part")
                    };
                    let (free, hanging) = (of(false), of(true));
                    assert_eq!(hanging.indices, Indices::Dofs);
                    assert!(check(&form, &elements, hanging).is_ok());
                    // Diagonals use one thread per cell.
                    let wanted = match task {
                        Task::Diagonal => Strategy::CellPerLane,
                        _ => free.strategy,
                    };
                    assert_eq!(hanging.strategy, wanted, "{text} {dim} {degree} {task:?}");
                }
            }
        }
    }

    #[test]
    fn simplices_sum_batch_by_batch() {
        let facts = MeshFacts::default();
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        let forms = [(FORMS[1], 2, 4), (FORMS[1], 3, 3), (FORMS[2], 2, 4), (FORMS[2], 3, 2)];
        for (text, dim, most) in forms {
            let form = form(text, dim);
            let cell = if dim == 2 { Cell::Triangle } else { Cell::Tetrahedron };
            for degree in 1..=4 {
                let elements = crate::generate::elements(&form, cell, degree, 1, None);
                let elements = elements.expect("elements");
                let choose = |overrides: &PlanOverrides| {
                    choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, overrides)
                };
                for plan in choose(&PlanOverrides::default()).expect("plans") {
                    let sums = plan.scatter == Scatter::Block;
                    assert_eq!(sums, degree <= most, "{text} degree {degree}: {plan:?}");
                    // Every node of a cell may have its own slot.
                    let nodes = elements.fields[0].count();
                    assert!(plan.slots.iter().all(|slots| slots.count >= nodes), "{plan:?}");
                    assert_eq!(plan.slots.len(), usize::from(sums));
                }
                let atomic =
                    PlanOverrides { scatter: Some(Scatter::Atomic), ..PlanOverrides::default() };
                let plans = choose(&atomic).expect("plans");
                assert!(plans.iter().all(|plan| plan.scatter == Scatter::Atomic));
                // A kernel that stores data for others uses their batches.
                let stored =
                    PlanOverrides { geometry: Some(Geometry::Stored), ..PlanOverrides::default() };
                let plans = choose(&stored).expect("plans");
                let metric = plans.iter().filter(|plan| plan.task == Task::Metric);
                let batches = |plan: &Plan| (plan.lanes, plan.slots.clone());
                let metric: Vec<_> = metric.map(batches).collect();
                assert!(plans.iter().all(|plan| metric.contains(&batches(plan))), "{plans:?}");
            }
        }
    }

    #[test]
    fn data_beyond_the_budget_replaces_values() {
        let facts = MeshFacts::default();
        let tasks = [Task::Residual, Task::Action];
        let text = "form f { field u: vector; f1[u] = (1 + u[0]^2) * grad(u); }";
        let form = form(text, 3);
        let mut seen = Vec::new();
        for degree in 6..=9 {
            let elements = on(&form, degree, None);
            for bytes in [SHARED_BYTES, 227 << 10] {
                let overrides =
                    PlanOverrides { shared_bytes: Some(bytes), ..PlanOverrides::default() };
                let plans = choose_for_threads(
                    &form,
                    &elements,
                    &facts,
                    &tasks,
                    Precision::F64,
                    &overrides,
                );
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
        // The action also reads the state, which exceeds 48 KiB on 8 points and more.
        let beyond = |case: &(usize, bool, usize, bool, bool)| case.1 && case.2 == SHARED_BYTES;
        assert!(seen.iter().all(|case| case.3 != (beyond(case) && case.0 > 6)), "{seen:?}");
        // On 7 and 9 points it is faster if it fits.
        let (usual, more) = (SHARED_BYTES, 227 << 10);
        assert_eq!(in_place(6), [(false, usual), (true, usual), (false, more), (true, more)]);
        assert_eq!(in_place(7), []);
        assert_eq!(in_place(8), [(false, usual), (false, more), (true, more)]);
        assert_eq!(in_place(9), [(false, usual)]);
    }

    #[test]
    fn mass_matrices_of_low_degree_read_their_points() {
        let facts = MeshFacts::default();
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
            let choose = |overrides: &PlanOverrides| {
                choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, overrides)
                    .expect("plans")
            };
            let plans = choose(&PlanOverrides::default());
            let linearisation =
                if stored { Linearisation::Stored } else { Linearisation::Recompute };
            assert_eq!(plans[1].linearisation, linearisation, "{text}, degree {degree}");
            assert_eq!(plans.iter().any(|plan| plan.task == Task::Linearise), stored);
            let fly =
                PlanOverrides { geometry: Some(Geometry::Vertices), ..PlanOverrides::default() };
            assert_eq!(choose(&fly)[1].linearisation, Linearisation::Recompute);
        }
    }

    #[test]
    fn stored_data_of_curved_cells_has_the_batches_of_its_readers() {
        let facts = MeshFacts { order: 2, ..MeshFacts::default() };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        let mut stored = 0;
        for (text, degree) in
            FORMS.iter().flat_map(|text| (1..=5).map(move |degree| (text, degree)))
        {
            let form = form(text, 3);
            let elements = on(&form, degree, Some(1));
            let overrides =
                PlanOverrides { shared_bytes: Some(220 << 10), ..PlanOverrides::default() };
            let plans =
                choose_for_threads(&form, &elements, &facts, &tasks, Precision::F64, &overrides);
            let plans = plans.expect("plans");
            for (task, reader) in readers(&plans) {
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
