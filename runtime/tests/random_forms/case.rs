//! A random form on a small mesh, with the data of its operator and of the reference.

use super::meshes::{CELLS, PERIODIC, adapted, ball, boxed, mix, noise, scrambled, tag_halves};
use fem_dsl::point::{Location, PointForm, Region, Slot};
use fem_dsl::problem::Quadrature;
use fem_dsl::source::Source;
use fem_dsl::testing::{
    Regions, random_interior, random_interior_at_points, random_interior_vectors, random_regions,
    random_second, random_vectors,
};
use kernels_gen::dialect::opencl::OPENCL;
use kernels_gen::generate::{
    elements, generate as print, generate_for_threads as print_for_threads,
};
use kernels_gen::plan::{Elements, Linearisation, Plan, Strategy, Task, has_second};
use runtime::algebra::vector::{Precision, Vector, epsilon};
use runtime::kernels::compile::{CompileError, Execution, Target, compile, facts};
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::Mesh;
use runtime::mesh::pairs::cell_pairs;
use runtime::mesh::partition::Partition;
use runtime::operator::Operator;
use runtime::operator::assemble::Csr;
use runtime::reference::{
    AuxData, BoundedValue, FormInputs, NodalValues, Reference, assert_all_close, functions,
};
use runtime::solve::{LinearOperator as _, NonlinearSystem as _};
use runtime::space::Space;
use runtime::space::discretisation::{AuxValues, Discretisation, Field};
use std::sync::Arc;
use {
    kernels_gen::choose::PlanOverrides, kernels_gen::plan::Scatter, runtime::device::Device,
    runtime::kernels::compile::compile_for_device,
};

/// Returns the dimension, the cell type and the numbers of cells of a case.
fn kind(seed: u64) -> (usize, (&'static str, [f64; 3])) {
    let (cell, counts) = CELLS[mix(seed, 1) as usize % CELLS.len()];
    (if matches!(cell, "quad" | "tri") { 2 } else { 3 }, (cell, counts))
}

/// Returns whether the cells of a case are quadrilaterals or hexahedra.
pub(crate) fn is_tensor(seed: u64) -> bool {
    matches!(kind(seed).1.0, "quad" | "hex")
}

/// Returns whether the cells of a case are in the plane.
pub(crate) fn is_planar(seed: u64) -> bool {
    kind(seed).0 == 2
}

/// A form with its discretisation.
pub(crate) struct Case {
    seed: u64,
    regions: Regions,
    is_between: bool,
    precision: Precision,
    pub(crate) form: PointForm,
    pub(crate) elements: Elements,
    on: Arc<Discretisation>,
    strategy: Option<Strategy>,
    /// The time, followed by the parameters.
    params: Vec<f64>,
    state: Vec<f64>,
    /// Direction of the derivatives, 0 at constrained unknowns.
    direction: Vec<f64>,
}

impl Case {
    /// Creates a form with integrals over cells and the boundary.
    pub(crate) fn new(seed: u64) -> Self {
        let (dim, _) = kind(seed);
        Self::of(seed, "random", random_regions(seed, dim))
    }

    /// Creates a form with integrals between cells.
    pub(crate) fn between(seed: u64) -> Self {
        let (dim, _) = kind(seed);
        let text = random_interior(seed, dim);
        Self::of(seed, "interior", Regions { text, smooth: true, energy: false })
    }

    /// Creates a form with integrals between cells whose nodes are quadrature points, on a device by groups of threads.
    pub(crate) fn at_points(seed: u64) -> Self {
        let (dim, _) = kind(seed);
        let text = random_interior_at_points(seed, dim);
        let case = Self::of(seed, "interior", Regions { text, smooth: true, energy: false });
        Self { strategy: Some(Strategy::ThreadPerLine { cells: 1 }), ..case }
    }

    /// Creates a form with second derivatives.
    pub(crate) fn second(seed: u64) -> Self {
        let (dim, _) = kind(seed);
        let text = random_second(seed, dim);
        Self::of(seed, "second", Regions { text, smooth: true, energy: false })
    }

    /// Creates a form with fields in Hcurl and Hdiv.
    pub(crate) fn vectors(seed: u64) -> Self {
        let (dim, _) = kind(seed);
        let text = random_vectors(seed, dim);
        Self::of(seed, "vectors", Regions { text, smooth: true, energy: false })
    }

    /// Creates a form with integrals between cells of a field in Hcurl or Hdiv.
    pub(crate) fn vectors_between(seed: u64) -> Self {
        let (dim, _) = kind(seed);
        let text = random_interior_vectors(seed, dim);
        Self::of(seed, "interior", Regions { text, smooth: true, energy: false })
    }

    fn of(seed: u64, prefix: &str, regions: Regions) -> Self {
        let (dim, (cell, counts)) = kind(seed);
        let (program, found) =
            fem_dsl::program::compile(&Source::new("random.wf", regions.text.as_str()));
        let program = program.unwrap_or_else(|| panic!("{}\n{found:?}", regions.text));
        let form = program.point_form(&format!("{prefix}_{seed}"), dim);
        let form = form.unwrap_or_else(|found| panic!("{}\n{found:?}", regions.text));
        let is_between = form.integrals.iter().any(|integral| integral.region.is_interior());
        let second = form.integrals.iter().any(has_second);
        // A ball has no sides of a box.
        let has_sides = form.integrals.iter().any(|of| matches!(of.region, Region::Facets(_)));
        let may_curve = (is_between || second) && (dim == 2 || !second) && !has_sides;
        let is_curved = may_curve && mix(seed, 9).is_multiple_of(2 * dim as u64 - 1);
        let is_mapped = form.fields.iter().any(|field| field.space.is_piola());
        let mut mesh = match (is_between || second || is_mapped, is_curved) {
            (_, true) => ball(cell, 2 + mix(seed, 10) as usize % (4 - dim)),
            (true, _) => scrambled(&boxed(cell, &counts[..dim]), seed),
            (false, _) => boxed(cell, &counts[..dim]),
        };
        tag_halves(&mut mesh);
        // With one cell between periodic sides, some derivatives are 0 up to rounding. A non-smooth form may depend on
        // their sign.
        // Faces of tetrahedra in Hcurl need one frame.
        let may_be_periodic = regions.smooth && !is_curved && !(is_mapped && cell == "tet");
        let which = if may_be_periodic { mix(seed, 6) as usize % PERIODIC.len() } else { 0 };
        mesh.make_periodic(PERIODIC[which]).expect("sides of the box");
        // Every fourth; most of those with terms between cells. Second derivatives of continuous fields need nodes that
        // do not hang.
        let continuous = form.fields.iter().any(|field| field.space.is_continuous());
        let is_costly = is_curved && dim == 3;
        let hanging = !(is_costly || second && continuous);
        let may_hang = mesh.cell().is_tensor() && hanging;
        let hangs = mix(seed, 20) % 4 < if is_between { 3 } else { 1 };
        if may_hang && hangs {
            mesh = adapted(mesh, seed);
        }
        let spaces = form.fields.iter().map(|field| field.space);
        let nodal = form.aux.iter().filter_map(|aux| match aux.location {
            Location::Nodes(space) => Some(space),
            Location::Cells | Location::Points => None,
        });
        let least = spaces.chain(nodal).map(|space| space.smallest_degree()).max().unwrap_or(1);
        let least = if second { least.max(2) } else { least };
        let more = if is_costly { 1 } else { [3, 2][dim - 2] };
        let degree = least + mix(seed, 2) as usize % more * usize::from(least < 2);
        let with = |rule| {
            let elements = elements(&form, mesh.cell(), degree, mesh.order(), rule);
            elements.expect("supported degrees")
        };
        let mut elements = with(None);
        if is_curved && mix(seed, 12).is_multiple_of(2) {
            // As many points as nodes in each direction.
            elements = with(Some(Quadrature::Degree(2 * elements.largest())));
        }
        let on = discretise(&form, &elements, mesh, seed);
        let n = on.n_dofs();
        let amplitude = 0.8 / elements.largest().max(1) as f64;
        let scaled = |seed: u64| noise(n, seed).into_iter().map(|v| amplitude * v).collect();
        let (state, mut direction): (Vec<f64>, Vec<f64>) = (scaled(seed + 1), scaled(seed + 2));
        on.conditions().for_each(|(dof, _)| direction[dof] = 0.0);
        let own = form.params.iter().flat_map(|param| param.value.clone());
        let params = [0.625].into_iter().chain(own).collect();
        let strategy = match mix(seed, 3) % 6 {
            0 => Some(Strategy::ThreadPerLine { cells: 1 }),
            1 => Some(Strategy::ThreadPerDof),
            2 => Some(Strategy::ThreadTransposition { blocks: 1, batches: 1 }),
            _ => None,
        };
        let on = Arc::new(on);
        let is_single = is_between && mix(seed, 8).is_multiple_of(5);
        let precision = if is_single { Precision::F32 } else { Precision::F64 };
        Self {
            seed,
            regions,
            is_between,
            precision,
            form,
            elements,
            on,
            strategy,
            params,
            state,
            direction,
        }
    }

    /// Returns whether the matrix has few entries, in double precision.
    pub(crate) fn has_small_matrix(&self) -> bool {
        self.precision == Precision::F64 && self.on.n_dofs() <= 60
    }

    /// Returns whether some pair of cells sees its facet in different orientations.
    pub(crate) fn is_turned(&self) -> bool {
        cell_pairs(&self.on.mesh).iter().any(|pair| pair.orientations != [0, 0])
    }

    /// Returns whether the cells are curved, in space.
    pub(crate) fn is_curved_in_space(&self) -> bool {
        self.on.mesh.order() > 1 && self.on.mesh.dim() == 3
    }

    /// Returns whether some pair of cells has a larger one.
    pub(crate) fn hangs(&self) -> bool {
        cell_pairs(&self.on.mesh).iter().any(|pair| pair.larger.is_some())
    }

    /// Returns whether an integral between cells has terms of continuous fields.
    pub(crate) fn joins_continuous(&self) -> bool {
        let is_continuous = |slot: &Slot| self.form.fields[slot.field].space.is_continuous();
        let mut between = self.form.integrals.iter().filter(|of| of.region.is_interior());
        between.any(|integral| integral.residual.iter().any(|(slot, _)| is_continuous(slot)))
    }

    fn name(&self) -> String {
        let (mesh, k) = (&self.on.mesh, self.elements.degree);
        let how = self.strategy.map_or(String::new(), |strategy| format!(" by {strategy}"));
        let (cells, as_what) = (mesh.n_cells(), self.representation());
        format!("k = {k} on {cells} {} cells{how}, {as_what}\n{}", mesh.cell(), self.regions.text)
    }

    /// Returns the operator and whether any of its kernels is for thread groups, of those between cells if there are any.
    /// The source text of half of them is generated too.
    pub(crate) fn operator(&self) -> (Operator, bool) {
        let mut target = Target::native();
        target.execution = Execution::Interpreted;
        let stored = mix(self.seed, 4).is_multiple_of(4);
        let how = if stored { Linearisation::Stored } else { Linearisation::Recompute };
        target.wishes.linearisation = Some(how);
        target.wishes.lanes = [None, Some(2), Some(4)][mix(self.seed, 5) as usize % 3];
        target.wishes.block = self.is_between.then_some(1 + mix(self.seed, 7) as usize % 3);
        target.precision = self.precision;
        let representation = self.representation();
        target.wishes.matrix = Some(representation.scatter());
        let mut tasks = vec![Task::Residual, Task::Action, Task::Diagonal];
        tasks.extend(representation.tasks().iter().filter(|&&task| task != Task::Action));
        let made =
            |target: &Target| compile(&self.form, &self.elements, &facts(&self.on), &tasks, target);
        let mut threads = target;
        threads.wishes.strategy = self.strategy;
        threads.wishes.lanes = None;
        threads.wishes.shared_bytes = Some(200 << 10);
        // An unsupported combination of form and strategy is a plan error.
        let compiled = match self.strategy.map(|_| made(&threads)) {
            None | Some(Err(CompileError::Plan(_))) => made(&target),
            Some(found) => found,
        };
        let compiled = compiled.unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
        let interior = |plan: &Plan| self.form.integrals[plan.integral].region.is_interior();
        let counts = |plan: &Plan| !self.is_between || interior(plan);
        let shared = |plan: &Plan| plan.strategy != Strategy::CellPerLane && counts(plan);
        let by_threads = compiled.plans.iter().any(shared);
        let (form, elements, plans) = (&self.form, &self.elements, &compiled.plans);
        // Printing takes as long as the rest; `compiled`, `threads` and `names` print others.
        if (self.seed / 4).is_multiple_of(2) {
            use kernels_gen::plan::Target::{Threads, Vectors};
            let printed = match plans[0].target {
                Vectors => print(form, elements, plans, target.isa),
                Threads => print_for_threads(form, elements, plans, &OPENCL),
            };
            assert!(printed.is_ok(), "{printed:?}, {}", self.name());
        }
        let (on, params) = (self.on.clone(), &self.params);
        let operator = Operator::on_host(on, module, kernels, self.precision, params, false);
        let mut operator = operator.unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let represented = operator.represent(representation);
        represented.unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        (operator, by_threads)
    }

    /// Returns an operator with a device's kernels.
    pub(crate) fn on_device(
        &self,
        device: &Arc<dyn Device>,
        scatter: Scatter,
        strategy: Option<Strategy>,
    ) -> Operator {
        let wishes = PlanOverrides { scatter: Some(scatter), strategy, ..PlanOverrides::default() };
        let tasks = [Task::Residual, Task::Action, Task::Diagonal];
        let (facts, device) = (facts(&self.on), Arc::clone(device));
        let (form, elements, precision) = (&self.form, &self.elements, self.precision);
        let made = compile_for_device(form, elements, &facts, &tasks, device, precision, &wishes);
        let made = made.unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let operator = Operator::on_device(self.on.clone(), Arc::new(made), &self.params, false);
        operator.unwrap_or_else(|error| panic!("{error}, {}", self.name()))
    }

    /// Returns the representation of the Jacobian.
    fn representation(&self) -> Representation {
        let assembled = Representation::Assembled;
        let all = [
            Representation::Stored,
            Representation::Recomputed,
            assembled(Assembly::Owner),
            assembled(Assembly::Pattern),
            assembled(Assembly::Coloured),
            assembled(Assembly::Acoo),
        ];
        let chosen = all.get(mix(self.seed, 30) as usize % 12).copied().unwrap_or_default();
        match self.precision {
            Precision::F64 => chosen,
            Precision::F32 => Representation::default(),
        }
    }

    /// Compares residual, action and diagonal of the operator with the reference.
    pub(crate) fn compare(&self, operator: &mut Operator) {
        let want = self.reference(&self.state, |reference, inputs, directions| {
            [
                reference.residual(inputs).concat(),
                reference.action(inputs, directions).concat(),
                reference.diagonal(inputs).concat(),
            ]
        });
        let [state, direction] = [&self.state, &self.direction].map(|entries| {
            let mut vector = operator.vector();
            vector.set(entries);
            vector
        });
        let mut out = state.like();
        out.fill(7.0);
        operator
            .residual(&state, &mut out)
            .unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let residual = out.to_vec();
        operator.linearise(&state).unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        operator
            .apply(&direction, &mut out)
            .unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let action = out.to_vec();
        operator.diagonal(&mut out).unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let tasks = ["residual", "action", "diagonal"];
        let rows = [0.0, 0.0, 1.0];
        for (i, got) in [residual, action, out.to_vec()].into_iter().enumerate() {
            let mut want = want[i].clone();
            self.on.conditions().for_each(|(dof, _)| want[dof] = BoundedValue::new(rows[i]));
            let context = format!("{}, {}", tasks[i], self.name());
            // Nested functions exceed the bound of the reference by a small factor in one of some thousand forms.
            assert_all_close(&got, &want, 4.0 * epsilon(self.precision), &context);
        }
    }

    /// Compares the entries of the operator's matrix with those of the reference.
    pub(crate) fn compare_matrix(&self, operator: &mut Operator) {
        let state = Vector::from_slice(&self.state, Precision::F64);
        operator.linearise(&state).unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let matrix = Csr::of(operator).unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let mut fixed = vec![false; matrix.size()];
        self.on.conditions().for_each(|(dof, _)| fixed[dof] = true);
        let mut want = self.reference(&self.state, |reference, inputs, _| reference.matrix(inputs));
        for (i, row) in want.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate().filter(|(j, _)| fixed[i] || fixed[*j]) {
                *entry = BoundedValue::new(f64::from(u8::from(i == j)));
            }
            let mut got = vec![0.0; row.len()];
            matrix.row(i).for_each(|(j, entry)| got[j] += entry);
            let context = format!("row {i} of the matrix, {}", self.name());
            assert_all_close(&got, row, 4.0 * f64::EPSILON, &context);
        }
    }

    /// Calls `what` with the reference, its inputs at a state, and the direction.
    fn reference<T>(
        &self,
        state: &[f64],
        what: impl FnOnce(&Reference<'_>, &FormInputs<'_>, &[&[f64]]) -> T,
    ) -> T {
        let (on, rule) = (&self.on, self.elements.rule);
        let reference =
            Reference::with_rule(&self.form, self.elements.degree, on.mesh.order(), rule);
        let mut reference = reference.expect("supported elements");
        let mesh = &on.mesh;
        for (number, field) in on.fields.iter().enumerate() {
            let words = mesh.hanging().unwrap_or_default().iter();
            let of_cells = words.map(|&word| functions(field.space.element(), word)).collect();
            reference = reference.with_functions(number, of_cells);
            reference = reference.with_signs(number, field.space.signs().to_vec());
        }
        let dim = mesh.dim();
        let nodes = mesh.nodes().iter();
        let coordinates: Vec<f64> =
            nodes.flat_map(|&node| mesh.points()[node as usize][..dim].to_vec()).collect();
        let part = |all: &'_ [f64], field: usize| all[on.dofs_of(field)].to_vec();
        let fields = 0..on.fields.len();
        let states: Vec<Vec<f64>> = fields.clone().map(|field| part(state, field)).collect();
        let aux = on.aux.iter().map(|aux| match aux {
            AuxValues::Nodes(space, values) => {
                AuxData::Nodes(NodalValues { map: space.nodes(), values })
            }
            AuxValues::Cells(values) => AuxData::Cells(values),
            AuxValues::Points(values) => AuxData::Points(values),
        });
        let own = on.fields.iter().zip(&states);
        let inputs = FormInputs {
            coordinates: &coordinates,
            state: own.map(|(on, values)| NodalValues { map: on.space.nodes(), values }).collect(),
            aux: aux.collect(),
            params: &self.params[1..],
            time: self.params[0],
            facets: on.numbered_facets(),
            pairs: on.matched_pairs(&self.form).expect("tags of the mesh"),
            cells: on.cells.clone(),
        };
        let directions: Vec<Vec<f64>> = fields.map(|field| part(&self.direction, field)).collect();
        let directions: Vec<&[f64]> = directions.iter().map(Vec::as_slice).collect();
        what(&reference, &inputs, &directions)
    }

    fn moved(&self, step: f64) -> Vec<f64> {
        self.state.iter().zip(&self.direction).map(|(u, w)| u + step * w).collect()
    }

    /// Compares the action with differences of the residual for a smooth form. Returns whether it did.
    pub(crate) fn taylor(&self, operator: &mut Operator) -> bool {
        if !self.regions.smooth || self.precision != Precision::F64 {
            return false;
        }
        let residual = |operator: &Operator, state: &[f64]| {
            let state = Vector::from_slice(state, Precision::F64);
            let mut out = state.like();
            operator
                .residual(&state, &mut out)
                .unwrap_or_else(|error| panic!("{error}, {}", self.name()));
            out.to_vec()
        };
        operator
            .linearise(&Vector::from_slice(&self.state, Precision::F64))
            .unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let mut out = operator.vector();
        operator
            .apply(&Vector::from_slice(&self.direction, Precision::F64), &mut out)
            .unwrap_or_else(|error| panic!("{error}, {}", self.name()));
        let action = out.to_vec();
        let size = norm(&action) + norm(&residual(operator, &self.state));
        self.second_order("R against J", size, |step| {
            let (ahead, behind) = (self.moved(step), self.moved(-step));
            let (ahead, behind) = (residual(operator, &ahead), residual(operator, &behind));
            let slope = ahead.iter().zip(&behind).map(|(a, b)| (a - b) / (2.0 * step));
            let wrong: Vec<f64> = slope.zip(&action).map(|(slope, exact)| slope - exact).collect();
            norm(&wrong)
        });
        true
    }

    /// Compares the residual with differences of the energy for a form that has one. Returns whether it did.
    pub(crate) fn energy(&self) -> bool {
        if !(self.regions.energy && self.regions.smooth) {
            return false;
        }
        let energy = |state: &[f64]| {
            let found = self.reference(state, |reference, inputs, _| reference.energy(inputs));
            found.expect("an energy").value
        };
        let residual =
            self.reference(&self.state, |reference, inputs, _| reference.residual(inputs));
        let pairs = residual.iter().flatten().zip(&self.direction);
        let exact: f64 = pairs.clone().map(|(r, w)| r.value * w).sum();
        let size = energy(&self.state).abs() + pairs.map(|(r, w)| (r.value * w).abs()).sum::<f64>();
        self.second_order("E against R", size, |step| {
            let slope = (energy(&self.moved(step)) - energy(&self.moved(-step))) / (2.0 * step);
            (slope - exact).abs()
        });
        true
    }

    /// Checks second-order convergence: two halvings of a short enough step leave a sixteenth of the error, up to
    /// rounding. An eighth is accepted, and steep forms get shorter steps: a sine of s needs h < 1 / |s'|, as small as 10⁻⁹.
    fn second_order(&self, what: &str, size: f64, error: impl Fn(f64) -> f64) {
        let mut errors = Vec::new();
        for halvings in (6..=36).step_by(2) {
            let (before, now) = (errors.last().copied(), error(0.5_f64.powi(halvings)));
            if now <= ROUNDING * size || before.is_some_and(|before: f64| now <= before / 8.0) {
                return;
            }
            errors.push(now);
        }
        panic!("{what}: {errors:?} of {size}, {}", self.name());
    }
}

/// Rounding error of a difference over 2⁻¹⁶, relative to its terms.
const ROUNDING: f64 = 1e-10;

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Returns the discretisation with its data, and in some cases Dirichlet conditions on a part of the boundary.
fn discretise(form: &PointForm, elements: &Elements, mesh: Mesh, seed: u64) -> Discretisation {
    let mut on = Discretisation::new(mesh, &elements.spaces()).expect("spaces");
    if form.integrals.iter().any(|integral| integral.region.is_interior()) {
        // Pairs of cells in several chunks.
        on.partition = Partition::with_chunk_cells(&on.mesh, 1 + mix(seed, 21) as usize % 4);
        for (field, &(element, components)) in on.fields.iter_mut().zip(&elements.spaces()) {
            let space = Space::new(&on.mesh, &on.partition, element, components).expect("a space");
            *field = Field::new(Arc::new(space));
        }
    }
    for (number, field) in on.fields.iter_mut().enumerate() {
        if !mix(seed, 10 + number as u64).is_multiple_of(3) {
            continue;
        }
        let points = field.space.points(&on.mesh, &on.partition).expect("points");
        let nodes = field.space.nodes_on(&on.mesh.boundary());
        let nodes: Vec<u32> =
            nodes.into_iter().filter(|&node| points[node as usize][0] < 0.5).collect();
        let value = |x: &[f64; 3], row: &mut [f64]| row.fill(x[1]);
        field.constraints.fix(&nodes, None, &points, value).expect("finite values");
    }
    on.find_regions(form).expect("tags of the box");
    let mut all = Vec::new();
    for (number, aux) in form.aux.iter().enumerate() {
        let components = aux.shape.components();
        let data = |places: usize, amplitude: f64| -> Vec<f64> {
            let values = noise(places * components, seed ^ (number as u64 + 77)).into_iter();
            values.map(|value| 1.2 + amplitude * value).collect()
        };
        let cells = on.mesh.n_cells();
        all.push(match aux.location {
            Location::Nodes(_) => {
                let element = elements.element_of_aux(number).expect("data at nodes");
                let space = on.aux_space(element, components).expect("a space");
                let values = data(space.n_nodes(), 0.5 / element.degree().max(1) as f64);
                AuxValues::at_nodes(space, values)
            }
            Location::Cells => AuxValues::on_cells(data(cells, 0.7)),
            Location::Points => AuxValues::at_points(data(cells * elements.rule.count(), 0.7)),
        });
    }
    on.aux = all;
    on
}
