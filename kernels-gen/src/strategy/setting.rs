//! What a kernel evaluates, reads and writes, worked out before any of it is written.

mod declare;

use super::geometry::Given;
use super::slots::Terms;
use crate::abi::{Argument, Indices, KernelAbi, Owner, Role};
use crate::element::Lagrange;
use crate::kir::build::Builder;
use crate::kir::{
    ArgumentId, Entries, Index, Kernel, Local, LocalId, Precision, SharedId, TableId, ValueId,
};
use crate::lower::point::{Lowered, needed};
use crate::lower::stored::{Blocks, blocks};
use crate::plan::{Elements, Geometry, Linearisation, Plan, Scatter, Strategy, Task, is_flat};
use fem_dsl::arena::IndexVec;
use fem_dsl::point::{Input, Integral, Location, Node, NodeId, Part, PointForm, Region, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// Where a quantity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    State(usize),
    Direction(usize),
    Aux(usize),
    /// The coordinates of isoparametric geometry.
    Position,
}

impl Source {
    /// Whose index array addresses it.
    pub(super) fn owner(self) -> Owner {
        match self {
            Self::State(field) | Self::Direction(field) => Owner::Field(field),
            Self::Aux(aux) => Owner::Aux(aux),
            Self::Position => unreachable!("coordinates are stored cell by cell"),
        }
    }

    /// The argument that holds it.
    pub(super) fn role(self) -> Role {
        match self {
            Self::State(field) => Role::State(field),
            Self::Direction(field) => Role::Direction(field),
            Self::Aux(aux) => Role::AuxNodes(aux),
            Self::Position => Role::Geometry,
        }
    }
}

/// Something with nodal values that is evaluated at the points.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    pub(super) source: Source,
    pub(super) name: String,
    pub(super) components: usize,
    pub(super) element: Lagrange,
    pub(super) value: bool,
    pub(super) gradient: bool,
}

/// A kernel under construction with all that is known of it.
pub(super) struct Setting<'a> {
    pub(super) form: &'a PointForm,
    pub(super) integral: &'a Integral,
    pub(super) elements: &'a Elements,
    pub(super) plan: &'a Plan,
    pub(super) b: Builder,
    pub(super) quantities: Vec<Quantity>,
    /// Residual or action, slot by slot.
    pub(super) outputs: Vec<(Slot, NodeId)>,
    /// The Jacobian's coefficients, for the tasks that need them.
    pub(super) blocks: Blocks,
    /// Nodes that are the same at all points of a cell.
    pub(super) hoisted: Lowered,
    pub(super) arguments: BTreeMap<Role, ArgumentId>,
    pub(super) needs_x: bool,
    /// Whether the point function reads a gradient of u, δu or an aux.
    pub(super) reads_gradients: bool,
    /// Private array for the coefficients of the diagonal.
    coefficients: Option<LocalId>,
    /// Values already computed at one point, by quantity, component and part.
    known: (Index, Vec<((usize, usize, Part), ValueId)>),
    abi: Vec<Argument>,
    inputs: BTreeSet<Input>,
    /// What the task computes at a point.
    needed: Vec<NodeId>,
    /// The shared arrays with the slots of vectors, results and coordinates, where cells sum first.
    pub(super) slots: BTreeMap<Role, SharedId>,
    /// The terms of these slots that are at hand, field by field.
    pub(super) terms: BTreeMap<usize, Terms>,
    /// What is stored of an affine cell, where it has been read ahead of its use.
    pub(super) affine: Option<Given>,
    /// The private array of gathered corners.
    pub(super) corners: Option<LocalId>,
    points: usize,
}

impl AsMut<Builder> for Setting<'_> {
    fn as_mut(&mut self) -> &mut Builder {
        &mut self.b
    }
}

impl<'a> Setting<'a> {
    pub(super) fn new(form: &'a PointForm, elements: &'a Elements, plan: &'a Plan) -> Self {
        let integral = &form.integrals[plan.integral];
        let mut outputs = match (plan.task, plan.linearisation) {
            (Task::Residual, _) => integral.residual.clone(),
            (Task::Action, Linearisation::Recompute) => integral.action.clone(),
            _ => Vec::new(),
        };
        outputs.retain(|(slot, _)| !elements.vanishes(*slot));
        let own = |slot: Slot| (slot.field, slot.component);
        let counts = |test, trial| !elements.vanishes(test) && !elements.vanishes(trial);
        let blocks = blocks(form, integral, |test, trial| match plan.task {
            _ if !counts(test, trial) => false,
            Task::Diagonal => own(test) == own(trial),
            Task::Linearise | Task::Action => true,
            Task::Residual | Task::Metric => false,
        });
        let nodes: Vec<NodeId> = match (plan.task, plan.linearisation) {
            (Task::Linearise | Task::Diagonal, _) => blocks.nodes(),
            _ => outputs.iter().map(|(_, node)| *node).collect(),
        };
        let mut inputs = inputs_of(integral, &nodes);
        inputs.retain(|input| !elements.is_zero(*input));
        let needs_x = match plan.task {
            Task::Metric => crate::plan::reads_coordinates(form),
            _ => inputs.iter().any(|input| matches!(input, Input::Coordinate(_))),
        };
        let name = kernel_name(form, elements, plan);
        let mut setting = Self {
            form,
            integral,
            elements,
            plan,
            b: Builder::new(&name, plan.precision, plan.lanes),
            quantities: Vec::new(),
            outputs,
            blocks,
            hoisted: Lowered::new(&integral.graph),
            arguments: BTreeMap::new(),
            needs_x,
            reads_gradients: inputs.iter().any(|input| match input {
                Input::State(slot) | Input::Direction(slot) | Input::Aux(slot) => {
                    slot.part != Part::Value
                }
                _ => false,
            }),
            coefficients: None,
            known: (Index::default(), Vec::new()),
            abi: Vec::new(),
            inputs,
            needed: Vec::new(),
            slots: BTreeMap::new(),
            terms: BTreeMap::new(),
            affine: None,
            corners: None,
            points: match integral.region {
                Region::Cells => elements.rule.count(),
                Region::Facets(_) => elements.rule.on_facet().len(),
            },
        };
        setting.find_quantities();
        setting.declare();
        setting.needed = nodes;
        setting
    }

    /// The arguments so far, in order.
    pub(super) fn declared(&self) -> &[Argument] {
        &self.abi
    }

    /// Whether the integral is one over facets, which are ξ₀ = 0 of their cells.
    pub(super) fn on_facets(&self) -> bool {
        self.integral.region != Region::Cells
    }

    /// Whether the point function reads the normal.
    pub(super) fn reads_normal(&self) -> bool {
        self.inputs.iter().any(|input| matches!(input, Input::Normal(_)))
    }

    fn rule(&self) -> Vec<([f64; 3], f64)> {
        let rule = self.elements.rule;
        if self.on_facets() { rule.on_facet() } else { rule.points_and_weights() }
    }

    /// The quadrature points.
    pub(super) fn rule_points(&self) -> Vec<[f64; 3]> {
        self.rule().into_iter().map(|(point, _)| point).collect()
    }

    /// Their weights.
    pub(super) fn rule_weights(&self) -> Vec<f64> {
        self.rule().into_iter().map(|(_, weight)| weight).collect()
    }

    /// The number of quadrature points.
    pub(super) fn points(&self) -> usize {
        self.points
    }

    /// A table that is read by points, which are the threads' own where they share a cell.
    pub(super) fn point_table(&mut self, name: &str, entries: Entries) -> TableId {
        if self.b.has_threads() {
            self.b.spread_table(name, entries)
        } else {
            self.b.table(name, entries)
        }
    }

    /// The components of a field.
    pub(super) fn components(&self, field: usize) -> usize {
        self.form.fields[field].shape.components()
    }

    /// The number of a field's component among those of all fields, one field after another.
    pub(super) fn row(&self, field: usize, component: usize) -> usize {
        self.form.row(field, component)
    }

    /// The numbers of a field's components.
    pub(super) fn rows_of(&self, field: usize) -> std::ops::Range<usize> {
        self.row(field, 0)..self.row(field + 1, 0)
    }

    /// How many components all fields have.
    pub(super) fn rows(&self) -> usize {
        self.form.rows()
    }

    /// The fields that the task has a result for. What is stored cell by cell has an entry for each unknown.
    pub(super) fn results(&self) -> Vec<usize> {
        let fields = 0..self.form.fields.len();
        let all = fields.len() == 1 || self.plan.scatter == Scatter::Owner;
        let written = |field: &usize| all || self.rows_of(*field).any(|row| self.is_tested(row));
        fields.filter(|_| self.has_result()).filter(written).collect()
    }

    fn is_tested(&self, row: usize) -> bool {
        match self.plan.task {
            Task::Diagonal => self.blocks.pairs.iter().any(|(test, _, _)| *test == row),
            _ => self.tested(row) != (false, false),
        }
    }

    /// The quantity with this source, if it is evaluated.
    pub(super) fn quantity(&self, source: Source) -> Option<usize> {
        self.quantities.iter().position(|quantity| quantity.source == source)
    }

    /// Whether geometry is read at all.
    pub(super) fn needs_geometry(&self) -> bool {
        self.plan.task != Task::Action || self.plan.linearisation == Linearisation::Recompute
    }

    /// Whether gathered coordinates lie axis by axis.
    pub(super) fn axes(&self) -> bool {
        self.plan.axes && !self.plan.tiles
    }

    fn axis_names(&self) -> Vec<&'static str> {
        ["coordinates_x", "coordinates_y", "coordinates_z"][..self.form.dim].to_vec()
    }

    /// Whether the task writes a vector, or what is added up to one.
    pub(super) fn has_result(&self) -> bool {
        matches!(self.plan.task, Task::Residual | Task::Action | Task::Diagonal)
    }

    /// Numbers a cell of the geometry argument, or a point where it is stored.
    pub(super) fn geometry_numbers(&self) -> usize {
        let dim = self.form.dim;
        match self.plan.geometry {
            Geometry::Affine => crate::plan::affine_numbers(self.form),
            Geometry::Vertices => dim << dim,
            Geometry::Corners => 0,
            Geometry::Nodes(order) => dim * geometry_element(self.elements, order).count(),
            Geometry::Stored => {
                let x = if crate::plan::reads_coordinates(self.form) { dim } else { 0 };
                1 + dim * dim + x
            }
        }
    }

    /// Whether both factors 1 / det J of a flux meet in one; see `point::Factors`.
    pub(super) fn merged(&self) -> bool {
        self.plan.task == Task::Action
            && self.outputs.iter().all(|(slot, _)| slot.part != Part::Value)
            && self.inputs.iter().all(|input| match input {
                Input::Direction(slot) => slot.part != Part::Value,
                Input::State(slot) | Input::Aux(slot) => slot.part == Part::Value,
                _ => true,
            })
    }

    /// How the unknowns of a source are addressed.
    pub(super) fn indices_of(&self, source: Source) -> Indices {
        match (source, self.plan.indices) {
            (Source::Aux(_), _) => Indices::Nodes,
            (Source::State(_), Indices::Dofs) | (_, Indices::Nodes) => self.by_node(),
            (_, indices) => indices,
        }
    }

    /// How the unknowns of a field are addressed node by node.
    pub(super) fn by_node(&self) -> Indices {
        if self.plan.tiles { Indices::Tiles } else { Indices::Nodes }
    }

    /// Where a number of this batch lies in a `[batch][point][number]` array.
    pub(super) fn given_at(&self, numbers: usize, point: &Index, number: usize) -> Index {
        let batch = Index::from(self.b.batch()).times(self.points * numbers);
        (&batch + &point.times(numbers)).plus(number)
    }

    /// The same where kernels store at the points.
    pub(super) fn stored_at(&self, numbers: usize, point: &Index, number: usize) -> Index {
        if !self.plan.points_last {
            return self.given_at(numbers, point, number);
        }
        let batch = Index::from(self.b.batch()).times(self.points * numbers);
        (&batch + point).plus(number * self.points)
    }

    /// Whether any output is tested against the value, or the gradient, of a component, given by its row.
    pub(super) fn tested(&self, row: usize) -> (bool, bool) {
        if self.plan.task == Task::Action && self.plan.linearisation == Linearisation::Stored {
            let mut tested = (false, false);
            for &(test, _, block) in &self.blocks.pairs {
                if test == row {
                    let block = &self.blocks.blocks[block].0;
                    tested.0 |= block.vv.is_some() || !block.vg.is_empty();
                    tested.1 |= !block.gg.is_empty() || !block.gv.is_empty();
                }
            }
            return tested;
        }
        let is_own = |slot: &Slot| self.row(slot.field, slot.component) == row;
        let own = self.outputs.iter().filter(|(slot, _)| is_own(slot));
        own.fold((false, false), |tested, (slot, _)| match slot.part {
            Part::Value => (true, tested.1),
            Part::Derivative(_) => (tested.0, true),
        })
    }

    /// The private array of the Jacobian's coefficients: number `i` of point `q` at
    /// `i · points + q`.
    pub(super) fn coefficients(&mut self, points: usize) -> LocalId {
        let length = self.blocks.numbers * points;
        *self.coefficients.get_or_insert_with(|| self.b.local("coefficients", length))
    }

    /// What has been computed at this point; forgotten where the point is another.
    pub(super) fn at_this_point(
        &mut self,
        point: &Index,
    ) -> &mut Vec<((usize, usize, Part), ValueId)> {
        if self.known.0 != *point {
            self.known = (point.clone(), Vec::new());
        }
        &mut self.known.1
    }

    /// Forgets what has been computed: what follows is another cell's.
    pub(super) fn forget(&mut self) {
        self.known = (Index::default(), Vec::new());
        self.corners = None;
    }

    fn find_quantities(&mut self) {
        let mut found = BTreeMap::<Source, (bool, bool)>::new();
        for input in &self.inputs {
            let (source, slot) = match input {
                Input::State(slot) => (Source::State(slot.field), slot),
                Input::Direction(slot) => (Source::Direction(slot.field), slot),
                Input::Aux(slot) => match self.form.aux[slot.field].location {
                    Location::Nodes(_) => (Source::Aux(slot.field), slot),
                    Location::Cells | Location::Points => continue,
                },
                _ => continue,
            };
            let entry = found.entry(source).or_default();
            match slot.part {
                Part::Value => entry.0 = true,
                Part::Derivative(_) => entry.1 = true,
            }
        }
        if self.plan.task == Task::Action && self.plan.linearisation == Linearisation::Stored {
            for field in 0..self.form.fields.len() {
                let own = self.rows_of(field);
                let pairs = self.blocks.pairs.iter().filter(|(_, trial, _)| own.contains(trial));
                let blocks = pairs.map(|&(_, _, block)| &self.blocks.blocks[block].0);
                let parts = blocks.fold((false, false), |parts, block| {
                    (
                        parts.0 || block.vv.is_some() || !block.gv.is_empty(),
                        parts.1 || !block.gg.is_empty() || !block.vg.is_empty(),
                    )
                });
                if parts != (false, false) {
                    found.insert(Source::Direction(field), parts);
                }
            }
        } else if let Geometry::Nodes(order) = self.plan.geometry {
            self.quantities.push(Quantity {
                source: Source::Position,
                name: "x".to_owned(),
                components: self.form.dim,
                element: geometry_element(self.elements, order),
                value: self.needs_x,
                gradient: true,
            });
        }
        for (source, (value, gradient)) in found {
            let (name, shape, element) = match source {
                Source::State(f) => (
                    self.form.fields[f].name.clone(),
                    self.form.fields[f].shape,
                    self.elements.fields[f],
                ),
                Source::Direction(f) => (
                    format!("delta_{}", self.form.fields[f].name),
                    self.form.fields[f].shape,
                    self.elements.fields[f],
                ),
                Source::Aux(i) => {
                    let element = self.elements.aux[i].expect("a nodal aux should have an element");
                    (self.form.aux[i].name.clone(), self.form.aux[i].shape, element)
                }
                Source::Position => continue,
            };
            let components = shape.components();
            self.quantities.push(Quantity { source, name, components, element, value, gradient });
        }
    }

    /// The name of what a field has for itself: a word, and where there are several fields whose it is.
    pub(super) fn of_field(&self, word: &str, field: usize) -> String {
        match self.form.fields.as_slice() {
            [_] => word.to_owned(),
            fields => format!("{word}_{}", fields[field].name),
        }
    }

    /// A comment on what is done for a field.
    pub(super) fn comment_on(&mut self, what: &str, field: usize) {
        match self.form.fields.as_slice() {
            [_] => self.b.comment(what),
            fields => self.b.comment(&format!("{what} {}", fields[field].name)),
        }
    }

    /// Whether values alone are evaluated and tested, as in a mass matrix.
    pub(super) fn is_flat(&self) -> bool {
        let tested = (0..self.rows()).any(|row| self.tested(row).1);
        !tested && self.quantities.iter().all(|quantity| !quantity.gradient)
    }

    /// The same of one field: neither its state nor its direction has a gradient that is read, and none is tested.
    pub(super) fn is_flat_field(&self, field: usize) -> bool {
        let own = [Source::State(field), Source::Direction(field)];
        let own = own.into_iter().filter_map(|source| self.quantity(source));
        let mut read = own.map(|own| self.quantities[own].gradient);
        !read.any(|gradient| gradient) && !self.rows_of(field).any(|row| self.tested(row).1)
    }

    /// Ends the stage of gathering, and computes what is the same at all points.
    pub(super) fn gathered(&mut self) {
        self.b.stage(self.plan.block);
        self.hoist();
    }

    /// Computes what is the same at all points of a cell.
    pub(super) fn hoist(&mut self) {
        let nodes = &self.needed.clone();
        let form = self.form;
        let integral = self.integral;
        let moving = integral.depends_on(|input| match input {
            Input::State(_) | Input::Direction(_) | Input::Coordinate(_) | Input::Normal(_) => true,
            Input::Aux(slot) => form.aux[slot.field].location != Location::Cells,
            Input::Param(..) | Input::Time | Input::Diameter | Input::Degree => false,
        });
        let still: IndexVec<NodeId, bool> = moving.iter().map(|moves| !moves).collect();
        let mut hoisted = self.hoisted.clone();
        hoisted.lower(self, &integral.graph, nodes, Some(&still), |s: &mut Self, input| {
            s.constant_on_cell(input)
        });
        self.hoisted = hoisted;
    }

    fn constant_on_cell(&mut self, input: Input) -> ValueId {
        let batch = Index::from(self.b.batch());
        match input {
            Input::Time => {
                let value = self.b.load_uniform(self.arguments[&Role::Params], Index::from(0));
                self.b.name(value, "t")
            }
            Input::Param(param, component) => {
                let before = &self.form.params[..param];
                let offset = 1 + before.iter().map(|p| p.shape.components()).sum::<usize>();
                let index = Index::from(offset + component);
                let value = self.b.load_uniform(self.arguments[&Role::Params], index);
                self.b.name(value, &self.form.params[param].name)
            }
            Input::Degree => self.b.constant(self.elements.degree as f64),
            Input::Diameter => {
                let value = self.b.load_lanes(self.arguments[&Role::Diameter], batch);
                self.b.name(value, "h")
            }
            Input::Aux(slot) => {
                let aux = &self.form.aux[slot.field];
                let index = batch.times(aux.shape.components()).plus(slot.component);
                let argument = self.arguments[&Role::AuxCells(slot.field)];
                let value = self.b.load_lanes(argument, index);
                self.b.name(value, &aux.name)
            }
            Input::State(_) | Input::Direction(_) | Input::Coordinate(_) | Input::Normal(_) => {
                unreachable!("this input varies over a cell")
            }
        }
    }

    /// Bytes of the shared arrays that have been declared.
    pub(super) fn shared_bytes(&self) -> usize {
        shared_bytes(self.b.shared_arrays(), self.plan.precision)
    }

    /// Whether a thread with a line of nodes stores what lies inside its cell: nothing else adds to it, where all cells
    /// are one kernel's or another's and a vector has one field. Vectors need not be cleared there. Measured on an H200
    /// with 10 million unknowns, in billions a second with and without: mass matrices of degrees 3, 6 and 8 41.6, 73.4 and
    /// 78.3 against 40.6, 68.5 and 70.5; Laplacians on Gauss-Lobatto points of degrees 5 and 7 49.4 and 65.1 against 48.4
    /// and 60.7; but of degree 3 39.3 against 39.6, and on Gauss points of degrees 2 and 3 12.5 and 18.9 against 12.6 and
    /// 19.1.
    pub(super) fn stores_inside(&self, field: usize) -> bool {
        let element = self.elements.fields[field];
        let alone = self.plan.scatter == Scatter::Atomic && self.form.fields.len() == 1;
        let pays = element.degree() > 3 || self.form.rows() > 1 || is_flat(self.form);
        alone && !self.on_facets() && element.is_continuous() && element.degree() > 1 && pays
    }

    /// Whether a thread computes what lies inside its cell when its line of so many nodes is done, rather than keep
    /// it in a register: where lines are long. Laplacians on Gauss-Lobatto points of degrees 5 and 8, and of three
    /// components of degrees 3, 6 and 8, do so with 47.7, 55.7, 46.8, 55.2 and 65.3 billion unknowns a second, and
    /// otherwise with 49.4, 54.3, 46.9, 52.8 and 62.0.
    pub(super) fn recomputes_border(&self, nodes: usize) -> bool {
        nodes > if self.form.rows() > 1 { 6 } else { 7 }
    }

    /// The kernel and its interface; its hash and what it reaches are found by [`super::lower`].
    pub(super) fn finish(self) -> (Kernel, KernelAbi) {
        let lines = matches!(self.plan.strategy, Strategy::ThreadPerLine { .. });
        let stores_inside = lines && self.has_result() && self.stores_inside(0);
        let kernel = self.b.finish();
        let entries: usize = kernel.locals.iter().map(|local| local.length).sum();
        let abi = KernelAbi {
            name: kernel.name.clone(),
            lanes: self.plan.lanes,
            threads: kernel.threads.max(1),
            group: kernel.group * kernel.series,
            residency: self.plan.residency,
            in_order: self.plan.in_order,
            slots: self.plan.slots.clone(),
            stores_inside,
            precision: kernel.precision,
            arguments: self.abi,
            reaches: Vec::new(),
            tables: Vec::new(),
            constant_bytes: 0,
            private_bytes: entries * kernel.lanes * kernel.precision.bytes(),
            shared_bytes: shared_bytes(kernel.shared.iter(), kernel.precision),
            hash: 0,
        };
        (kernel, abi)
    }
}

/// Bytes that a group's shared arrays take, each aligned to two numbers.
fn shared_bytes<'a>(arrays: impl Iterator<Item = &'a Local>, precision: Precision) -> usize {
    arrays.map(|array| array.length.next_multiple_of(2)).sum::<usize>() * precision.bytes()
}

/// A loop whose body writes through the whole setting.
pub(super) fn repeat(
    s: &mut Setting<'_>,
    name: &str,
    extent: usize,
    unroll: bool,
    mut body: impl FnMut(&mut Setting<'_>, Index),
) {
    if unroll || extent == 1 {
        for number in 0..extent {
            body(s, Index::from(number));
        }
        return;
    }
    let var = s.b.open_loop(name);
    body(s, Index::from(var));
    s.b.close_loop(var, extent);
}

/// The continuous element of the map of a cell: of degree 1, its nodes are the corners.
pub(super) fn geometry_element(elements: &Elements, order: usize) -> Lagrange {
    Lagrange::continuous(elements.cell, order).expect("a mesh should have checked its degree")
}

fn kernel_name(form: &PointForm, elements: &Elements, plan: &Plan) -> String {
    let word = match plan.indices {
        Indices::Nodes => "nodes",
        Indices::Tiles => "tiles",
        Indices::Runs => "runs",
        Indices::Dofs => "dofs",
    };
    let stored = match plan.linearisation {
        Linearisation::Recompute => "",
        Linearisation::Stored => "_stored",
    };
    let region = match plan.integral {
        0 => String::new(),
        number => format!("_facets{number}"),
    };
    let (name, task, cell) = (&form.name, plan.task.word(), elements.cell);
    format!("{name}_{task}{region}{stored}_{cell}_{}_{word}", elements.degree)
}

fn inputs_of(integral: &Integral, nodes: &[NodeId]) -> BTreeSet<Input> {
    let needed = needed(&integral.graph, nodes);
    let graph = integral.graph.nodes();
    graph
        .iter_enumerated()
        .filter(|(id, _)| needed[*id])
        .filter_map(|(_, node)| match node {
            Node::Input(input) => Some(*input),
            _ => None,
        })
        .collect()
}

/// The axis along which a thread with a line of a cell gathers and scatters: the last where its first contraction is
/// along that one; the one before where the points are the nodes (`collocated`), or where values alone are evaluated
/// (`flat`), which leaves out the contraction along the last.
pub(super) fn gather_axis(dim: usize, collocated: bool, flat: bool) -> usize {
    if collocated == flat { dim - 1 } else { dim - 2 }
}
