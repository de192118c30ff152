//! Conversion of a setting to kernel arguments, execution, and comparison with the reference.

use super::setting::{Numbering, Setting, affine, batched, monomials};
use fem_dsl::point::{Location, PointForm};
use kernels_gen::abi::hanging::of_batch;
use kernels_gen::abi::{Indices, KernelAbi, Owner, Role, TILE, coordinate_stride, in_tiles};
use kernels_gen::element::Element;
use kernels_gen::kir::Precision;
use kernels_gen::plan::{
    Elements, Geometry, Linearisation, Plan, Strategy, Target, Task, affine_numbers, tested,
};
use runtime::device::VectorLayout;
use runtime::reference::{
    AuxData, BoundedValue, FormInputs, NodalValues, Reference, check_close, functions,
};
use std::collections::BTreeMap;

/// Shape of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Images of affine maps.
    Affine,
    /// Straight-sided tensor cells.
    Multilinear,
    /// Isoparametric of a given order.
    Curved(usize),
}

impl Shape {
    /// Returns the order of the geometry.
    pub(crate) fn order(self) -> usize {
        match self {
            Self::Affine | Self::Multilinear => 1,
            Self::Curved(order) => order,
        }
    }

    /// Returns the geometry that reads the mesh itself.
    pub(crate) fn direct(self) -> Geometry {
        match self {
            Self::Affine => Geometry::Affine,
            Self::Multilinear => Geometry::Vertices,
            Self::Curved(order) => Geometry::Nodes(order),
        }
    }
}

/// Data of an argument.
#[derive(Clone)]
pub(crate) enum Data {
    F64(Vec<f64>),
    F32(Vec<f32>),
    U32(Vec<u32>),
}

impl Data {
    fn reals(values: Vec<f64>, precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self::F64(values),
            Precision::F32 => Self::F32(values.iter().map(|&value| value as f32).collect()),
        }
    }

    fn to_reals(&self) -> Vec<f64> {
        match self {
            Self::F64(values) => values.clone(),
            Self::F32(values) => values.iter().copied().map(f64::from).collect(),
            Self::U32(_) => panic!("a kernel should write reals"),
        }
    }
}

/// Runner of kernels: an interpreter, or compiled code.
pub(crate) trait Runner {
    /// Runs all batches of a plan's kernel; arguments are in ABI order.
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String>;
}

/// The position at which a cell adds its contribution to a node.
#[derive(Clone, Copy)]
struct Pair {
    term: usize,
    slot: usize,
}

/// Agreement of a kernel with the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    /// The largest error relative to the tolerance.
    pub(crate) worst: f64,
    /// The number of entries that exceed the tolerance and so are significant.
    pub(crate) seen: usize,
}

/// A form, its elements and its data.
pub(crate) struct Launcher<'a> {
    pub(crate) form: &'a PointForm,
    pub(crate) elements: &'a Elements,
    pub(crate) setting: &'a Setting,
}

/// Returns the plans whose point data a plan's kernel requires.
pub(crate) fn companions(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    shape: Shape,
) -> Vec<Plan> {
    let plan = Plan { linearisation: Linearisation::Recompute, ..plan.clone() };
    let direct = |task: Task| {
        let own = Plan { task, geometry: shape.direct(), ..plan.clone() };
        // If the strategy does not support the geometry, one thread per cell is used, with loops: unrolling that is
        // short for a line is long for a cell.
        let unroll = plan.unroll.min(8);
        match kernels_gen::strategy::check(form, elements, &own) {
            Ok(()) => own,
            Err(_) => Plan { strategy: Strategy::CellPerLane, unroll, ..own },
        }
    };
    let mut all = Vec::new();
    if plan.geometry == Geometry::Stored {
        all.push(direct(Task::Metric));
    }
    all.push(direct(Task::Linearise));
    all
}

impl Launcher<'_> {
    /// Runs the kernel and compares its result with the reference.
    pub(crate) fn compare(&self, plan: &Plan, runner: &dyn Runner) -> Result<Agreement, String> {
        let got = match self.setting.connected {
            Some(_) => {
                let pairs = self.setting.pairs(plan);
                let setting = &self.setting.of_pairs(self.elements, &pairs);
                Launcher { setting, ..*self }.launch(plan, runner)
            }
            None => self.launch(plan, runner),
        };
        self.agreement(plan, got?, None)
    }

    /// Compares the result of a kernel over cells, or over facets of cells, with the reference.
    pub(crate) fn agreement(
        &self,
        plan: &Plan,
        got: Vec<f64>,
        facets: Option<&[(usize, usize)]>,
    ) -> Result<Agreement, String> {
        self.agreement_with(plan, got, &self.wanted(plan, facets))
    }

    /// Returns the same with a known reference result, which is equal for all strategies and precisions.
    pub(crate) fn agreement_with(
        &self,
        plan: &Plan,
        mut got: Vec<f64>,
        want: &[BoundedValue],
    ) -> Result<Agreement, String> {
        if plan.task == Task::Flux {
            got = self.cell_by_cell(plan, &got);
        }
        agreement(&got, want, runtime::algebra::vector::epsilon(plan.precision))
    }

    /// Returns the expected result of a kernel.
    pub(crate) fn wanted(
        &self,
        plan: &Plan,
        facets: Option<&[(usize, usize)]>,
    ) -> Vec<BoundedValue> {
        let mut want = self.reference(plan, facets);
        if plan.task != Task::Flux && plan.indices == Indices::Dofs {
            let constrained = self.setting.fields.iter().flat_map(|field| &field.constrained);
            for (entry, &constrained) in want.iter_mut().zip(constrained) {
                if constrained {
                    *entry = BoundedValue::ZERO;
                }
            }
        }
        want
    }

    /// Returns the result of the reference, field by field.
    fn reference(&self, plan: &Plan, facets: Option<&[(usize, usize)]>) -> Vec<BoundedValue> {
        let s = self.setting;
        let order = s.shape.order();
        let mut reference = Reference::with_rule(self.form, s.degree, order, s.rule)
            .expect("elements that the plan supports");
        for (field, &element) in self.elements.fields.iter().enumerate().filter(|_| plan.hanging) {
            let words = s.hanging.iter();
            let functions = words.map(|&word| functions(element, word)).collect();
            reference = reference.with_functions(field, functions);
        }
        for (field, own) in s.fields.iter().enumerate() {
            reference = reference.with_signs(field, own.numbering.reversed.clone());
        }
        for (aux, own) in s.aux.iter().enumerate() {
            let reversed = own.as_ref().map_or_else(Vec::new, |own| own.reversed.clone());
            reference = reference.with_data_signs(aux, reversed);
        }
        let aux = self.form.aux.iter().enumerate().map(|(i, aux)| {
            let values = &s.aux_values[i][..];
            match (aux.location, &s.aux[i]) {
                (Location::Nodes(_), Some(n)) => {
                    AuxData::Nodes(NodalValues { map: &n.nodes, values })
                }
                (Location::Points, _) => AuxData::Points(values),
                _ => AuxData::Cells(values),
            }
        });
        let inputs = FormInputs {
            coordinates: &s.coordinates,
            state: s
                .fields
                .iter()
                .map(|field| NodalValues { map: &field.numbering.nodes, values: &field.state })
                .collect(),
            aux: aux.collect(),
            params: &s.params,
            time: s.time,
            facets: facets.into_iter().map(<[_]>::to_vec).collect(),
            pairs: vec![s.pairs(plan).into_iter().map(|(pair, _)| pair).collect()],
            cells: Vec::new(),
        };
        let mut directions: Vec<Vec<f64>> =
            s.fields.iter().map(|field| field.direction.clone()).collect();
        if plan.indices == Indices::Dofs {
            for (direction, field) in directions.iter_mut().zip(&s.fields) {
                for (entry, &constrained) in direction.iter_mut().zip(&field.constrained) {
                    *entry = if constrained { 0.0 } else { *entry };
                }
            }
        }
        let directions: Vec<&[f64]> = directions.iter().map(Vec::as_slice).collect();
        let vectors = match plan.task {
            Task::Residual => reference.residual(&inputs),
            Task::Action => reference.action(&inputs, &directions),
            Task::Diagonal => reference.diagonal(&inputs),
            Task::Flux => {
                let flux = reference.flux(&inputs, plan.integral);
                return flux.expect("elements that the plan supports");
            }
            Task::Linearise
            | Task::Metric
            | Task::Matrix
            | Task::StoredProduct
            | Task::MatrixProduct
            | Task::Prolong
            | Task::Restrict => panic!("no vector comes of {:?}", plan.task),
        };
        vectors.concat()
    }

    /// Runs a kernel and returns its output, field by field.
    pub(crate) fn launch(&self, plan: &Plan, runner: &dyn Runner) -> Result<Vec<f64>, String> {
        let lowered = kernels_gen::strategy::lower(self.form, self.elements, plan);
        let (_, abi) = lowered.map_err(|error| error.to_string())?;
        let batches = self.setting.cells.div_ceil(plan.lanes);
        let mut data = Vec::new();
        for argument in &abi.arguments {
            data.push(self.data(plan, argument.role, argument.extent * batches, runner)?);
        }
        runner.run(plan, &abi, batches, &mut data)?;
        let written = |role: Role| {
            let at = abi.arguments.iter().position(|argument| argument.role == role)?;
            abi.arguments[at].written.then(|| data[at].to_reals())
        };
        if let Some(stored) = written(Role::Stored).or_else(|| written(Role::CellMatrix)) {
            return Ok(stored);
        }
        let mut all = Vec::new();
        for (number, field) in self.setting.fields.iter().enumerate() {
            let traces = [number, number + self.setting.fields.len()];
            let added = traces.into_iter().filter_map(|trace| {
                let numbers = written(Role::CellResult(trace))?;
                Some(self.added_up(plan, trace, &numbers))
            });
            let sum = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
            let added = added.reduce(sum);
            let own = written(Role::Result(number));
            let own =
                own.map(|numbers| self.layout(plan, number).collect(&numbers, field.state.len()));
            // A field with structurally zero rows is not written.
            all.extend(added.or(own).unwrap_or_else(|| vec![0.0; field.state.len()]));
        }
        Ok(all)
    }

    /// Returns the stored point data of batches, `[cell][point][number]`.
    fn cell_by_cell(&self, plan: &Plan, stored: &[f64]) -> Vec<f64> {
        let (points, lanes) = (self.setting.rule.count(), plan.lanes);
        let numbers = tested(self.form, self.elements, plan.integral).len();
        let place = |cell: usize, point: usize, number: usize| {
            let of_cell = match plan.target {
                Target::Vectors => point * numbers + number,
                Target::Threads => number * points + point,
            };
            (cell / lanes * points * numbers + of_cell) * lanes + cell % lanes
        };
        let each = (0..self.setting.cells * points * numbers)
            .map(|at| place(at / numbers / points, at / numbers % points, at % numbers));
        each.map(|at| stored[at]).collect()
    }

    /// Returns the index of a field or of data, of which there are `count`, and the cells on its side: traces of the
    /// outside follow those of the inside.
    fn of_trace(&self, trace: usize, count: usize) -> (usize, &Setting) {
        match trace.checked_sub(count) {
            None => (trace, self.setting),
            Some(own) => (own, self.setting.outside.as_deref().expect("cells on the outside")),
        }
    }

    /// Returns the numbers of both sides of pairs, or of all cells: `[batch][side][number][lane]`.
    fn both_sides<T: Copy>(&self, lanes: usize, numbers: impl Fn(&Setting) -> Vec<T>) -> Vec<T> {
        let of = |setting: &Setting| batched(setting.cells, lanes, &numbers(setting));
        let (inside, batches) = (of(self.setting), self.setting.cells.div_ceil(lanes));
        let Some(outside) = self.setting.outside.as_deref().map(of) else { return inside };
        let each = inside.len() / batches;
        let pairs = inside.chunks(each).zip(outside.chunks(each));
        pairs.flat_map(|(inside, outside)| [inside, outside].concat()).collect()
    }

    /// Returns the layout of a field in the vectors of a plan's kernel.
    fn layout(&self, plan: &Plan, trace: usize) -> VectorLayout {
        let field = trace % self.form.fields.len();
        let components = self.elements.components[field];
        if plan.tiles { VectorLayout::tiles(components) } else { VectorLayout::plain(components) }
    }

    /// Returns the sums of stored contributions for all unconstrained degrees of freedom of a field.
    fn added_up(&self, plan: &Plan, trace: usize, stored: &[f64]) -> Vec<f64> {
        let indices = if plan.indices == Indices::Dofs { Indices::Dofs } else { Indices::Nodes };
        let field = trace % self.form.fields.len();
        let components = self.elements.components[field];
        let map = self.map(plan, Owner::Field(trace), indices, &VectorLayout::plain(components));
        let each = if indices == Indices::Dofs { 1 } else { components };
        let mut sums = vec![0.0; self.setting.fields[field].state.len()];
        let entries = map.len() / self.setting.cells.div_ceil(plan.lanes) / plan.lanes;
        for (at, &number) in map.iter().enumerate() {
            let (entry, lane) = (at / plan.lanes % entries, at % plan.lanes);
            let batch = at / plan.lanes / entries;
            if batch * plan.lanes + lane >= self.setting.cells || number == u32::MAX {
                continue;
            }
            for c in 0..each {
                let place = ((batch * entries + entry) * each + c) * plan.lanes + lane;
                sums[number as usize * each + c] += stored[place];
            }
        }
        sums
    }

    /// Returns the data of an argument; `extent` is its length if the kernel specifies it.
    fn data(
        &self,
        plan: &Plan,
        role: Role,
        extent: usize,
        runner: &dyn Runner,
    ) -> Result<Data, String> {
        let s = self.setting;
        let dim = self.form.dim;
        let lanes = plan.lanes;
        let batched = |values: &[f64]| batched(s.cells, lanes, values);
        let layout_of = |owner: Owner| match owner {
            Owner::Field(field) | Owner::Result(field) => self.layout(plan, field),
            Owner::Aux(trace) => {
                VectorLayout::plain(self.components_of_data(trace % self.form.aux.len()))
            }
        };
        let numbers = match role {
            Role::Params => [&[s.time], &s.params[..]].concat(),
            Role::State(_) | Role::Direction(_) | Role::AuxNodes(_) => self.vector(plan, role),
            Role::Result(f) => vec![0.0; self.layout(plan, f).len(s.fields[f].state.len())],
            Role::CellResult(_) | Role::CellMatrix => vec![f64::NAN; extent],
            Role::Tables => panic!("a kernel brings its tables along"),
            Role::Starts | Role::Places | Role::Fine | Role::Targets => {
                panic!("no kernel of a cell reads {role:?}")
            }
            Role::Matrix | Role::Entries => {
                panic!("operators make {role:?}: see `random_forms`")
            }
            Role::Turns(_) | Role::Rows(..) | Role::FirstAxis(_) => {
                return Ok(Data::U32(self.of_rotated(plan, role, layout_of)));
            }
            Role::Signs(Owner::Field(trace) | Owner::Result(trace)) => {
                let (field, setting) = self.of_trace(trace, self.form.fields.len());
                batched(&setting.fields[field].numbering.signs())
            }
            Role::Signs(Owner::Aux(trace)) => {
                let (aux, setting) = self.of_trace(trace, self.form.aux.len());
                batched(&setting.aux[aux].as_ref().map_or_else(Vec::new, Numbering::signs))
            }
            Role::AuxCells(trace) | Role::AuxPoints(trace) => {
                let (aux, setting) = self.of_trace(trace, self.form.aux.len());
                batched(&setting.aux_values[aux])
            }
            Role::Geometry => match plan.geometry {
                Geometry::Stored => self.computed(plan, Task::Metric, runner)?,
                Geometry::Affine => {
                    let x = affine_numbers(self.form) > dim * dim;
                    batched(&s.per_cell(|c| affine(s.cell, c, dim, x)))
                }
                Geometry::Vertices => self.both_sides(lanes, |s| s.per_cell(|c| monomials(c, dim))),
                Geometry::Nodes(_) => self.both_sides(lanes, |s| s.coordinates.clone()),
                Geometry::Corners => panic!("corners have an argument of their own"),
            },
            Role::Coordinates => self.corners(plan),
            Role::Axis(axis) => {
                let numbering = &s.fields[0].numbering;
                let mut all = vec![f64::NAN; numbering.count];
                for (&node, x) in numbering.nodes.iter().zip(s.coordinates.chunks(dim)) {
                    all[node as usize] = x[axis];
                }
                all
            }
            Role::Diameter => self.both_sides(lanes, |s| s.per_cell(|c| vec![s.diameter(c)])),
            Role::Stored => match plan.task {
                Task::Action => self.computed(plan, Task::Linearise, runner)?,
                _ => vec![f64::NAN; extent],
            },
            Role::Hanging => {
                return Ok(Data::U32(self.both_sides(lanes, |s| s.hanging.clone())));
            }
            Role::Hang => {
                let words = self.both_sides(lanes, |s| s.hanging.clone());
                let of_batch = |words: &[u32]| of_batch(words.iter().copied(), dim);
                return Ok(Data::U32(words.chunks(lanes).map(of_batch).collect()));
            }
            Role::Active => {
                let batch = |b: usize| lanes.min(s.cells - b * lanes) as u32;
                return Ok(Data::U32((0..s.cells.div_ceil(lanes)).map(batch).collect()));
            }
            Role::Lines(owner, indices, axis) => {
                let map = self.map(plan, owner, indices, &layout_of(owner));
                return Ok(Data::U32(self.by_lines(&map, lanes, owner, axis)));
            }
            Role::Slots(field, indices) => {
                let layout = self.layout(plan, field);
                let map = self.map(plan, Owner::Field(field), indices, &layout);
                return Ok(Data::U32(self.slots(plan, field, &map)));
            }
            Role::Terms(field) => {
                return Ok(Data::U32(self.terms(plan, field)));
            }
            Role::Map(owner, indices) => {
                return Ok(Data::U32(self.map(plan, owner, indices, &layout_of(owner))));
            }
        };
        Ok(Data::reals(numbers, plan.precision))
    }

    /// Returns a vector that a kernel reads, or its entries cell by cell.
    fn vector(&self, plan: &Plan, role: Role) -> Vec<f64> {
        let s = self.setting;
        let own = |f: usize| Some(&s.fields[f].numbering);
        let (numbering, vector) = match role {
            Role::State(f) => (own(f), self.layout(plan, f).spread(&s.fields[f].state)),
            Role::Direction(f) => (own(f), self.layout(plan, f).spread(&s.fields[f].direction)),
            Role::AuxNodes(i) => (s.aux[i].as_ref(), s.aux_values[i].clone()),
            _ => panic!("{role:?} is no vector"),
        };
        match numbering.filter(|_| plan.indices == Indices::Batches) {
            Some(own) => batched(s.cells, plan.lanes, &own.of_cells(&vector)),
            None => vector,
        }
    }

    /// Returns the data of an argument about rotated cells.
    fn of_rotated(
        &self,
        plan: &Plan,
        role: Role,
        layout_of: impl Fn(Owner) -> VectorLayout,
    ) -> Vec<u32> {
        let fields = self.form.fields.len();
        match role {
            Role::Turns(trace) => {
                let (field, setting) = self.of_trace(trace, fields);
                let components = self.form.fields[field].shape.components();
                setting.places(self.elements.fields[field], components, plan.lanes)
            }
            Role::Rows(owner @ Owner::Field(trace), indices) => {
                let map = self.map(plan, owner, indices, &layout_of(owner));
                let (field, setting) = self.of_trace(trace, fields);
                setting.rows(self.elements.fields[field], &map)
            }
            Role::FirstAxis(side) => {
                let (_, setting) = self.of_trace(side as usize, 1);
                batched(setting.cells, plan.lanes, &setting.first_axes())
            }
            _ => panic!("{role:?} is not about rotated cells"),
        }
    }

    /// Returns the position for each node of each cell, `[cell][node]`: pair k of a node in a batch is term k mod V of
    /// the node's slot ⌊k / V⌋.
    fn pairs(&self, plan: &Plan, field: usize) -> Vec<Pair> {
        let (s, slots) = (self.setting, plan.slots[field]);
        let nodes = &s.fields[field].numbering.nodes;
        let batch = nodes.len() / s.cells * plan.lanes;
        let mut all = Vec::new();
        for nodes in nodes.chunks(batch) {
            // The number of pairs of each node, and its last slot.
            let mut seen = BTreeMap::<u32, (usize, usize)>::new();
            let mut used = 0;
            for &node in nodes {
                let (count, slot) = seen.entry(node).or_insert((0, 0));
                let term = *count % slots.terms;
                if term == 0 {
                    (*slot, used) = (used, used + 1);
                }
                *count += 1;
                all.push(Pair { term, slot: *slot });
            }
            assert!(used <= slots.count, "{used} slots for the nodes of field {field}");
        }
        all
    }

    /// Returns the same positions, `[batch][node][lane]`, as one number: term · stride + slot.
    fn terms(&self, plan: &Plan, field: usize) -> Vec<u32> {
        let stride = plan.slots[field].stride();
        let pairs = self.pairs(plan, field).into_iter();
        let terms: Vec<u32> = pairs.map(|pair| (pair.term * stride + pair.slot) as u32).collect();
        batched(self.setting.cells, plan.lanes, &terms)
    }

    /// Returns the entries of a field's index array, `[batch][node · each + component][lane]`, by slots:
    /// `[batch][component][slot]`.
    fn slots(&self, plan: &Plan, field: usize, map: &[u32]) -> Vec<u32> {
        let (cells, lanes, count) = (self.setting.cells, plan.lanes, plan.slots[field].count);
        let (pairs, batches) = (self.pairs(plan, field), cells.div_ceil(lanes));
        let nodes = pairs.len() / cells;
        let each = map.len() / (batches * lanes * nodes);
        let mut slots = vec![u32::MAX; batches * each * count];
        for (number, pair) in pairs.iter().enumerate() {
            let (cell, node) = (number / nodes, number % nodes);
            let (batch, lane) = (cell / lanes, cell % lanes);
            for c in 0..each {
                let entry = map[((batch * nodes + node) * each + c) * lanes + lane];
                slots[(batch * each + c) * count + pair.slot] = entry;
            }
        }
        slots
    }

    /// Returns a field's index array with the digit of an axis moved to the front of the node number.
    fn by_lines(&self, map: &[u32], lanes: usize, owner: Owner, axis: usize) -> Vec<u32> {
        let element = match owner {
            Owner::Field(field) | Owner::Result(field) => self.elements.fields[field],
            Owner::Aux(aux) => self.elements.aux[aux].expect("nodal data"),
        };
        let (n, dim) = (element.degree() + 1, self.form.dim);
        let nodes = n.pow(dim as u32);
        let each = map.len() / self.setting.cells.div_ceil(lanes) / nodes;
        let node_of = |place: usize| {
            let mut digits: Vec<usize> =
                (0..dim).map(|digit| place / n.pow(digit as u32) % n).collect();
            let front = digits.remove(dim - 1);
            digits.insert(axis, front);
            digits.iter().rev().fold(0, |node, digit| node * n + digit)
        };
        let cells = map.chunks(nodes * each);
        let entry = |cell: &[u32], place: usize| cell[node_of(place) * each..][..each].to_vec();
        cells
            .flat_map(|cell| (0..nodes).flat_map(|place| entry(cell, place)).collect::<Vec<_>>())
            .collect()
    }

    /// Returns the point data computed by another kernel of the same operator.
    fn computed(&self, plan: &Plan, task: Task, runner: &dyn Runner) -> Result<Vec<f64>, String> {
        let mut all = companions(self.form, self.elements, plan, self.setting.shape).into_iter();
        let plan = all.find(|plan| plan.task == task).expect("a companion");
        self.launch(&plan, runner)
    }

    /// Returns the coordinates at the nodes of the first field, which has degree 1.
    fn corners(&self, plan: &Plan) -> Vec<f64> {
        let (s, dim) = (self.setting, self.form.dim);
        if plan.tiles {
            let components = self.form.fields[0].shape.components();
            let length = self.layout(plan, 0).len(s.fields[0].state.len());
            let mut all = vec![f64::NAN; length];
            for (&node, x) in s.fields[0].numbering.nodes.iter().zip(s.coordinates.chunks(dim)) {
                for (i, &x) in x.iter().enumerate() {
                    all[in_tiles(node as usize, components) + i * TILE] = x;
                }
            }
            return all;
        }
        let stride = coordinate_stride(dim);
        let numbering = &s.fields[0].numbering;
        let mut all = vec![f64::NAN; numbering.count * stride];
        for (&node, x) in numbering.nodes.iter().zip(s.coordinates.chunks(dim)) {
            all[node as usize * stride..][..dim].copy_from_slice(x);
        }
        all
    }

    /// Returns the entries of a node of data.
    fn components_of_data(&self, aux: usize) -> usize {
        match self.elements.aux[aux].and_then(Element::whitney) {
            Some(_) => 1,
            None => self.form.aux[aux].shape.components(),
        }
    }

    fn map(&self, plan: &Plan, owner: Owner, indices: Indices, layout: &VectorLayout) -> Vec<u32> {
        let (fields, aux) = (&self.form.fields, &self.form.aux);
        // A kernel that reads all degrees of freedom writes them, too.
        let constrained = match owner {
            Owner::Result(_) => plan.indices == Indices::Dofs,
            Owner::Field(_) => true,
            Owner::Aux(_) => false,
        };
        let (own, s, components) = match owner {
            Owner::Field(trace) | Owner::Result(trace) => {
                let (field, s) = self.of_trace(trace, fields.len());
                (field, s, self.elements.components[field])
            }
            Owner::Aux(trace) => {
                let (own, s) = self.of_trace(trace, aux.len());
                (own, s, self.components_of_data(own))
            }
        };
        let numbering = match owner {
            Owner::Field(_) | Owner::Result(_) => &s.fields[own].numbering,
            Owner::Aux(_) => s.aux[own].as_ref().expect("nodal data"),
        };
        let dof = |(node, c): (u32, usize)| {
            let place = node as usize * components + c;
            let fixed = constrained && s.fields[own].constrained[place];
            if fixed { u32::MAX } else { layout.place(place) as u32 }
        };
        let batched = |values: &[u32]| batched(s.cells, plan.lanes, values);
        match indices {
            Indices::Nodes => batched(&numbering.nodes),
            Indices::Tiles => {
                let place = |&node: &u32| in_tiles(node as usize, components) as u32;
                batched(&numbering.nodes.iter().map(place).collect::<Vec<u32>>())
            }
            Indices::Runs => {
                let starts: Vec<u32> =
                    numbering.starts.iter().map(|&start| start * components as u32).collect();
                batched(&starts)
            }
            Indices::Cells => {
                let cells = numbering.nodes.chunks(numbering.nodes.len() / s.cells);
                let first =
                    |nodes: &[u32]| nodes.iter().min().map_or(0, |node| node * components as u32);
                batched(&cells.map(first).collect::<Vec<u32>>())
            }
            Indices::Batches => panic!("a kernel of batches has no map"),
            Indices::Dofs => {
                let all = numbering.nodes.iter();
                let dofs: Vec<u32> =
                    all.flat_map(|&n| (0..components).map(move |c| (n, c))).map(dof).collect();
                batched(&dofs)
            }
        }
    }
}

/// Returns the agreement of two vectors, or the entry with the largest error.
fn agreement(got: &[f64], want: &[BoundedValue], epsilon: f64) -> Result<Agreement, String> {
    assert_eq!(got.len(), want.len());
    let ratio = |got: f64, want: &BoundedValue| match (got - want.value).abs() {
        0.0 => 0.0,
        // A NaN is the largest error.
        error => (error / want.tolerance(epsilon)).min(f64::INFINITY),
    };
    let ratios = got.iter().zip(want).map(|(&got, want)| ratio(got, want));
    let (at, worst) = ratios.enumerate().fold(
        (0, 0.0),
        |most: (usize, f64), next| {
            if next.1 > most.1 { next } else { most }
        },
    );
    let wrong: Vec<usize> =
        (0..got.len()).filter(|&i| check_close(got[i], want[i], epsilon).is_err()).collect();
    if let Some(&first) = wrong.first() {
        let at = if wrong.contains(&at) { at } else { first };
        let what = check_close(got[at], want[at], epsilon).expect_err("a wrong entry");
        return Err(format!(
            "{} of {} entries are wrong; entry {at}: {what}",
            wrong.len(),
            got.len()
        ));
    }
    let seen = want.iter().filter(|want| want.value.abs() > want.tolerance(epsilon)).count();
    Ok(Agreement { worst, seen })
}
