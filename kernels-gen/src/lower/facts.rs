//! [`KernelFacts`]: the evaluations, reads and writes of a kernel, derived from its form, its elements and its plan
//! before code generation.

mod second;
mod source;

use crate::abi::{Indices, Role};
use crate::element::{Element, Lagrange};
use crate::limits::STORED;
use crate::lower::facet_line::FacetLine;
use crate::lower::graph::needed;
use crate::lower::stored::{Blocks, blocks};
use crate::plan::{
    Elements, Geometry, Linearisation, Plan, Scatter, Strategy, Target, Task, tested,
};
use fem_dsl::point::{
    Input, Integral, Location, Node, NodeId, Part, PointForm, Region, Side, Slot,
};
use second::{is_bent, side_of_map};
use std::collections::{BTreeMap, BTreeSet};

/// The source of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QuantitySource {
    State(usize),
    Direction(usize),
    Aux(usize),
    /// The coordinates of isoparametric geometry, of the cell on a side.
    Position(Side),
}

impl QuantitySource {
    /// Returns whether it is the map of a cell.
    pub(crate) fn is_position(self) -> bool {
        matches!(self, Self::Position(_))
    }
}

/// A nodal quantity that is evaluated at the points.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    pub(crate) source: QuantitySource,
    pub(crate) name: String,
    pub(crate) components: usize,
    /// Numbers of each degree of freedom: the components, 1 of vector-valued functions.
    pub(crate) stored: usize,
    pub(crate) element: Element,
    pub(crate) value: bool,
    pub(crate) gradient: bool,
    /// Second derivatives.
    pub(crate) second: bool,
}

/// Constant properties of a kernel during its construction.
pub(crate) struct KernelFacts<'a> {
    pub(crate) form: &'a PointForm,
    pub(crate) integral: &'a Integral,
    pub(crate) elements: &'a Elements,
    pub(crate) plan: &'a Plan,
    pub(crate) quantities: Vec<Quantity>,
    /// Outputs of the residual or action, slot by slot.
    pub(crate) outputs: Vec<(Slot, NodeId)>,
    /// The Jacobian's coefficients, for the tasks that need them.
    pub(crate) blocks: Blocks,
    pub(crate) needs_x: bool,
    /// True if the point function reads a gradient of u, δu or an auxiliary field.
    pub(crate) reads_gradients: bool,
    pub(crate) inputs: BTreeSet<Input>,
    /// The graph nodes computed at a point.
    pub(crate) needed: Vec<NodeId>,
    /// For a column of an element matrix: the trial component, among the stored ones of all fields, of an action whose
    /// coefficients the kernel itself has stored.
    pub(crate) trial: Option<usize>,
    points: usize,
}

impl<'a> KernelFacts<'a> {
    /// Returns the trip count up to which loops are unrolled, for a thread or lane per cell.
    pub(crate) fn unroll(&self) -> usize {
        let many = self.stored_numbers() > STORED;
        if many { 0 } else { self.plan.unroll }
    }

    /// Returns the values per point that the kernel stores, or reads as stored by another kernel, without geometry.
    pub(crate) fn stored_numbers(&self) -> usize {
        match (self.plan.task, self.plan.linearisation) {
            (Task::Linearise, _) | (Task::Action, Linearisation::Stored) => self.blocks.numbers,
            (Task::Flux, _) => tested(self.form, self.elements, self.plan.integral).len(),
            _ => 0,
        }
    }

    /// Derives the properties of a kernel.
    pub(crate) fn new(form: &'a PointForm, elements: &'a Elements, plan: &'a Plan) -> Self {
        let integral = &form.integrals[plan.integral];
        let mut outputs = match (plan.task, plan.linearisation) {
            (Task::Residual | Task::Flux, _) => integral.residual.clone(),
            (Task::Action, Linearisation::Recompute) => integral.action.clone(),
            // Prolongation reads the direction; restriction tests, whatever it reads.
            (Task::Prolong | Task::Restrict, _) => integral.action.clone(),
            _ => Vec::new(),
        };
        outputs.retain(|(slot, _)| !elements.vanishes(*slot));
        let own = |slot: Slot| match elements.fields[slot.field].whitney() {
            Some(_) => (slot.field, 0),
            None => (slot.field, slot.component),
        };
        let counts = |test, trial| !elements.vanishes(test) && !elements.vanishes(trial);
        let bent = is_bent(elements, plan);
        let is_referenced = |field: usize| elements.fields[field].is_referenced();
        let blocks = blocks(form, integral, bent, is_referenced, |test, trial| match plan.task {
            _ if !counts(test, trial) => false,
            Task::Diagonal => own(test) == own(trial),
            Task::Linearise | Task::Action => true,
            Task::Matrix | Task::StoredProduct | Task::MatrixProduct => true,
            Task::Residual | Task::Metric | Task::Flux | Task::Prolong | Task::Restrict => false,
        });
        let nodes: Vec<NodeId> = match (plan.task, plan.linearisation) {
            (Task::Linearise | Task::Diagonal | Task::Matrix | Task::MatrixProduct, _) => {
                blocks.nodes()
            }
            (Task::Restrict, _) => Vec::new(),
            _ => outputs.iter().map(|(_, node)| *node).collect(),
        };
        let mut inputs = inputs_of(integral, &nodes);
        inputs.retain(|input| !elements.is_zero(*input));
        let needs_x = match plan.task {
            Task::Metric => crate::plan::reads_coordinates(form),
            _ => inputs.iter().any(|input| matches!(input, Input::Coordinate(_))),
        };
        let mut facts = Self {
            form,
            integral,
            elements,
            plan,
            quantities: Vec::new(),
            outputs,
            blocks,
            needs_x,
            reads_gradients: inputs.iter().any(|input| match input {
                Input::State(slot) | Input::Direction(slot) | Input::Aux(slot) => {
                    slot.part != Part::Value
                }
                _ => false,
            }),
            inputs,
            needed: nodes,
            trial: None,
            points: match integral.region {
                Region::Cells | Region::CellsUnder(_) => elements.rule.count(),
                Region::Facets(_) | Region::Interior(_) => elements.rule.on_facet().len(),
            },
        };
        facts.find_quantities();
        facts
    }

    /// Returns whether the integral is over pairs of cells, whose fields are traces ([`crate::plan::traces`]).
    pub(crate) fn of_pairs(&self) -> bool {
        self.integral.region.is_interior()
    }

    /// Returns the number of sides.
    pub(crate) fn sides(&self) -> usize {
        if self.of_pairs() { 2 } else { 1 }
    }

    /// Returns whether the map of the outside is needed at the points: gradients of its traces, or its extent.
    pub(crate) fn needs_outside(&self) -> bool {
        let gradient = |slot: &Slot, source: QuantitySource| {
            slot.part != Part::Value && self.side_of(source) == Side::Outside
        };
        let read = self.inputs.iter().any(|input| match input {
            Input::State(slot) => gradient(slot, QuantitySource::State(slot.field)),
            Input::Direction(slot) => gradient(slot, QuantitySource::Direction(slot.field)),
            Input::Aux(slot) => gradient(slot, QuantitySource::Aux(slot.field)),
            Input::Extent(side) => *side == Side::Outside,
            other => side_of_map(*other) == Some(Side::Outside),
        });
        let rows = self.rows();
        let outside = |row: usize| self.side_of_row(row) == Side::Outside;
        let tested = (0..rows).any(|row| outside(row) && self.tested(row).1);
        let blocks = self.blocks.pairs.iter().any(|&(test, trial, block)| {
            let block = &self.blocks.blocks[block].0;
            let (of_test, of_trial) = (outside(test), outside(trial));
            let [derived_test, derived_trial] = [0, 1].map(|at| block.derived(at));
            of_test && derived_test || of_trial && derived_trial
        });
        self.of_pairs() && (read || tested || blocks)
    }

    /// Returns the plan of the coefficients of an element matrix.
    pub(crate) fn plan_of_matrix(&self) -> Plan {
        Plan { task: Task::Matrix, ..self.plan.clone() }
    }

    /// Returns the plan of the columns of an element matrix.
    pub(crate) fn plan_of_columns(&self) -> Plan {
        let (task, linearisation) = (Task::Action, Linearisation::Stored);
        Plan { task, linearisation, scatter: Scatter::Atomic, ..self.plan.clone() }
    }

    /// Returns the properties of the columns of an element matrix, one per trial component with coefficients. They are
    /// actions that take their coefficients from the kernel of `self`.
    pub(crate) fn columns<'c>(&'c self, plan: &'c Plan) -> Vec<KernelFacts<'c>> {
        let column = |trial: usize| {
            let mut blocks = self.blocks.clone();
            blocks.pairs.retain(|pair| self.stored_row(pair.1) == trial);
            let mut column = KernelFacts {
                form: self.form,
                integral: self.integral,
                elements: self.elements,
                plan,
                quantities: Vec::new(),
                outputs: Vec::new(),
                blocks,
                needs_x: false,
                reads_gradients: false,
                inputs: BTreeSet::new(),
                needed: Vec::new(),
                trial: Some(trial),
                points: self.points,
            };
            column.find_quantities();
            for own in &mut column.quantities {
                (own.components, own.stored) = (own.components / own.stored, 1);
            }
            column
        };
        let columns = (0..self.elements.components.iter().sum()).map(column);
        columns.filter(|column| !column.blocks.pairs.is_empty()).collect()
    }

    /// Returns the components that a kernel writes, field by field; in a column of an element matrix only the coupled
    /// ones, as ranges.
    pub(crate) fn written_rows(&self) -> Vec<(usize, std::ops::Range<usize>)> {
        let fields = self.results().into_iter();
        if self.trial.is_none() {
            return fields.map(|field| (field, self.rows_of(field))).collect();
        }
        let mut ranges: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
        for field in fields {
            // A degree of freedom contributes to all components of a vector-valued function.
            if self.stored(field) < self.components(field) {
                let mut own = self.rows_of(field);
                ranges.extend(
                    own.any(|row| self.is_tested(row)).then(|| (field, self.rows_of(field))),
                );
                continue;
            }
            for row in self.rows_of(field).filter(|&row| self.is_tested(row)) {
                match ranges.last_mut() {
                    Some((of, range)) if *of == field && range.end == row => range.end = row + 1,
                    _ => ranges.push((field, row..row + 1)),
                }
            }
        }
        ranges
    }

    /// Returns whether the integral is over facets, which are ξ₀ = 0 of their cells.
    pub(crate) fn on_facets(&self) -> bool {
        !self.integral.region.is_of_cells()
    }

    /// Returns whether the point function reads the normal.
    pub(crate) fn reads_normal(&self) -> bool {
        self.inputs.iter().any(|input| matches!(input, Input::Normal(_)))
    }

    /// Returns whether the point function reads the extent of the cell from the facet.
    pub(crate) fn reads_extent(&self) -> bool {
        self.inputs.iter().any(|input| matches!(input, Input::Extent(_)))
    }

    fn rule(&self) -> Vec<([f64; 3], f64)> {
        let rule = self.elements.rule;
        if self.on_facets() { rule.on_facet() } else { rule.points_and_weights() }
    }

    /// Returns the quadrature points.
    pub(crate) fn rule_points(&self) -> Vec<[f64; 3]> {
        self.rule().into_iter().map(|(point, _)| point).collect()
    }

    /// Returns the quadrature weights, relative to the map of the inside.
    pub(crate) fn rule_weights(&self) -> Vec<f64> {
        // A facet that is part of the inside's is half as long in each direction.
        let scale = match self.plan.larger {
            Some(Side::Inside) => 0.5_f64.powi(self.form.dim as i32 - 1),
            Some(Side::Outside) | None => 1.0,
        };
        self.rule().into_iter().map(|(_, weight)| scale * weight).collect()
    }

    /// Returns the number of quadrature points.
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// Returns the components of a field.
    pub(crate) fn components(&self, field: usize) -> usize {
        self.form.fields[field].shape.components()
    }

    /// Returns the numbers of each degree of freedom of a field: its components, 1 of vector-valued functions.
    pub(crate) fn stored(&self, field: usize) -> usize {
        self.elements.components[field]
    }

    /// Returns the indices of a field's components among the stored ones of all fields.
    pub(crate) fn stored_rows_of(&self, field: usize) -> std::ops::Range<usize> {
        let first = self.elements.components[..field].iter().sum();
        first..first + self.stored(field)
    }

    /// Returns the index of a component, given by its row, among the stored ones of all fields.
    pub(crate) fn stored_row(&self, row: usize) -> usize {
        let field = self.field_of_row(row);
        let own = self.stored_rows_of(field);
        (own.start + row - self.row(field, 0)).min(own.end - 1)
    }

    /// Returns the index of a field's component among those of all fields, field by field.
    pub(crate) fn row(&self, field: usize, component: usize) -> usize {
        self.form.row(field, component)
    }

    /// Returns the indices of a field's components.
    pub(crate) fn rows_of(&self, field: usize) -> std::ops::Range<usize> {
        self.row(field, 0)..self.row(field + 1, 0)
    }

    /// Returns the field of a component, given by its row.
    pub(crate) fn field_of_row(&self, row: usize) -> usize {
        let fields = 0..self.form.fields.len();
        fields.rev().find(|&field| self.row(field, 0) <= row).unwrap_or(0)
    }

    /// Returns the number of components of all fields.
    pub(crate) fn rows(&self) -> usize {
        self.form.rows()
    }

    /// Returns the fields for which the task has a result. Results per cell have an entry for each DoF.
    pub(crate) fn results(&self) -> Vec<usize> {
        let fields = 0..self.form.fields.len();
        let all = fields.len() == 1 || self.plan.scatter == Scatter::Owner;
        let written = |field: &usize| all || self.rows_of(*field).any(|row| self.is_tested(row));
        fields.filter(|_| self.has_result()).filter(written).collect()
    }

    fn is_tested(&self, row: usize) -> bool {
        match self.plan.task {
            Task::Diagonal | Task::StoredProduct | Task::MatrixProduct => {
                self.blocks.pairs.iter().any(|(test, _, _)| *test == row)
            }
            _ => self.tested(row) != (false, false) || self.tests_second(row),
        }
    }

    /// Returns the quantity with this source, if it is evaluated.
    pub(crate) fn quantity(&self, source: QuantitySource) -> Option<usize> {
        self.quantities.iter().position(|quantity| quantity.source == source)
    }

    /// Returns whether any geometry is read.
    pub(crate) fn needs_geometry(&self) -> bool {
        match self.plan.task {
            Task::Action => self.plan.linearisation == Linearisation::Recompute,
            Task::StoredProduct | Task::Prolong | Task::Restrict => false,
            _ => true,
        }
    }

    /// Returns whether gathered coordinates are stored axis by axis.
    pub(crate) fn axes(&self) -> bool {
        self.plan.target == Target::Threads && !self.plan.tiles
    }

    pub(crate) fn axis_names(&self) -> Vec<&'static str> {
        ["coordinates_x", "coordinates_y", "coordinates_z"][..self.form.dim].to_vec()
    }

    /// Returns whether the task writes a vector, or contributions to one.
    pub(crate) fn has_result(&self) -> bool {
        match self.plan.task {
            Task::Residual | Task::Action | Task::Diagonal => true,
            Task::StoredProduct | Task::MatrixProduct | Task::Restrict => true,
            Task::Linearise | Task::Metric | Task::Flux | Task::Matrix | Task::Prolong => false,
        }
    }

    /// Returns the fields whose basis functions have columns in the element matrices.
    pub(crate) fn trial_fields(&self) -> Vec<usize> {
        let coupled = |field: &usize| {
            let own = self.rows_of(*field);
            self.blocks.pairs.iter().any(|pair| own.contains(&pair.1))
        };
        (0..self.form.fields.len()).filter(coupled).collect()
    }

    /// Returns the DoFs of a field that element matrices multiply.
    pub(crate) fn multiplied(&self, field: usize) -> Quantity {
        let name = format!("delta_{}", self.form.fields[field].name);
        let (components, element) = (self.stored(field), self.elements.fields[field]);
        let source = QuantitySource::Direction(field);
        let (value, gradient, second) = (true, false, false);
        Quantity { source, name, components, stored: components, element, value, gradient, second }
    }

    /// Returns the values of the geometry argument per cell, or per point if it is stored there.
    pub(crate) fn geometry_numbers(&self) -> usize {
        let dim = self.form.dim;
        match self.plan.geometry {
            Geometry::Affine => crate::plan::affine_numbers(self.form),
            Geometry::Vertices => self.sides() * (dim << dim),
            Geometry::Corners => 0,
            Geometry::Nodes(order) => {
                self.sides() * dim * geometry_element(self.elements, order).count()
            }
            Geometry::Stored => {
                let x = if crate::plan::reads_coordinates(self.form) { dim } else { 0 };
                1 + dim * dim + x
            }
        }
    }

    /// Returns whether both factors 1 / det J of a flux merge into one; see `point::Factors`. Components of vector-valued
    /// functions have those of their maps in the point function.
    pub(crate) fn merged(&self) -> bool {
        self.plan.task == Task::Action
            && !self.elements.are_vector_valued()
            && self.outputs.iter().all(|(slot, _)| slot.part != Part::Value)
            && self.inputs.iter().all(|input| match input {
                Input::Direction(slot) => slot.part != Part::Value,
                Input::State(slot) | Input::Aux(slot) => slot.part == Part::Value,
                _ => true,
            })
    }

    /// Returns the addressing of a source's DoFs.
    pub(crate) fn indices_of(&self, source: QuantitySource) -> Indices {
        match (source, self.plan.indices) {
            (_, Indices::Batches) => Indices::Batches,
            (QuantitySource::Aux(_), _) => Indices::Nodes,
            (QuantitySource::State(_), Indices::Dofs) | (_, Indices::Nodes) => self.by_node(),
            (QuantitySource::State(field) | QuantitySource::Direction(field), Indices::Cells)
                if self.elements.fields[field].is_continuous() =>
            {
                self.by_node()
            }
            (_, indices) => indices,
        }
    }

    /// Returns the node-by-node addressing of a field's DoFs.
    pub(crate) fn by_node(&self) -> Indices {
        if self.plan.tiles { Indices::Tiles } else { Indices::Nodes }
    }

    /// Returns whether any output is tested against the value, or the gradient, of a component, given by its row. A
    /// second derivative on a bent cell contains the gradient.
    pub(crate) fn tested(&self, row: usize) -> (bool, bool) {
        if matches!(self.plan.task, Task::Flux | Task::Prolong) {
            return (false, false);
        }
        if self.plan.task == Task::Action && self.plan.linearisation == Linearisation::Stored {
            let mut tested = (false, false);
            for &(test, _, block) in &self.blocks.pairs {
                if test == row {
                    let block = &self.blocks.blocks[block].0;
                    let parts = block.parts(0, self.is_bent());
                    tested = (tested.0 || parts[0], tested.1 || parts[1]);
                }
            }
            return tested;
        }
        let is_own = |slot: &Slot| self.row(slot.field, slot.component) == row;
        let own = self.outputs.iter().filter(|(slot, _)| is_own(slot));
        own.fold((false, false), |tested, (slot, _)| match slot.part {
            Part::Value => (true, tested.1),
            Part::Derivative(_) => (tested.0, true),
            Part::Second(..) => (tested.0, tested.1 || self.is_bent()),
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        })
    }

    /// Returns the name of a per-field item: a word, followed by the field if there are several.
    pub(crate) fn of_field(&self, word: &str, field: usize) -> String {
        match self.form.fields.as_slice() {
            [_] => word.to_owned(),
            fields => format!("{word}_{}", fields[field].name),
        }
    }

    /// Returns whether only values are evaluated and tested, as in a mass matrix.
    pub(crate) fn is_flat(&self) -> bool {
        let tested = (0..self.rows()).any(|row| self.tested(row).1 || self.tests_second(row));
        !tested && self.quantities.iter().all(|quantity| !quantity.gradient)
    }

    /// Returns the same for one field: no gradient of its state or direction is read, and none is tested.
    pub(crate) fn is_flat_field(&self, field: usize) -> bool {
        let own = [QuantitySource::State(field), QuantitySource::Direction(field)];
        let own = own.into_iter().filter_map(|source| self.quantity(source));
        let mut read = own.map(|own| self.quantities[own].gradient);
        !read.any(|gradient| gradient) && !self.rows_of(field).any(|row| self.tested(row).1)
    }

    /// Returns whether the integral is the form's only cell integral and covers all cells. Inside of a cell only facet
    /// integrals then add to its results, at a later time.
    pub(crate) fn is_whole(&self) -> bool {
        let over_cells =
            self.form.integrals.iter().filter(|integral| integral.region.is_of_cells());
        self.integral.region == Region::Cells && over_cells.count() == 1
    }

    /// Returns whether a thread with a line of nodes stores results inside its cell, if the plan requests it. No other
    /// contribution exists there: every cell belongs to exactly one kernel, and a vector has one field. Interior
    /// entries need not be cleared.
    pub(crate) fn stores_inside(&self, field: usize) -> bool {
        let element = self.elements.fields[field];
        let alone = self.plan.scatter == Scatter::Atomic && self.form.fields.len() == 1;
        self.plan.stores_inside
            && self.is_whole()
            && alone
            && element.is_continuous()
            && element.degree() > 1
    }

    /// Returns whether the map of a cell is evaluated as a quantity.
    pub(crate) fn is_curved(&self) -> bool {
        self.quantity(QuantitySource::Position(Side::Inside)).is_some()
    }

    fn find_quantities(&mut self) {
        let mut found = BTreeMap::<QuantitySource, [bool; 3]>::new();
        for input in &self.inputs {
            let (source, slot) = match input {
                Input::State(slot) => (QuantitySource::State(slot.field), slot),
                Input::Direction(slot) => (QuantitySource::Direction(slot.field), slot),
                Input::Aux(slot) => match self.form.aux[slot.field].location {
                    Location::Nodes(_) => (QuantitySource::Aux(slot.field), slot),
                    Location::Cells | Location::Points => continue,
                },
                _ => continue,
            };
            let entry = found.entry(source).or_default();
            entry[slot.part.order()] = true;
            entry[1] |= slot.part.order() == 2 && self.is_bent();
        }
        if self.plan.task == Task::Action && self.plan.linearisation == Linearisation::Stored {
            for field in 0..self.form.fields.len() {
                let own = self.rows_of(field);
                let pairs = self.blocks.pairs.iter().filter(|(_, trial, _)| own.contains(trial));
                let blocks = pairs.map(|&(_, _, block)| &self.blocks.blocks[block].0);
                let parts = blocks.fold([false; 3], |parts, block| {
                    let own = block.parts(1, self.is_bent());
                    [0, 1, 2].map(|order| parts[order] || own[order])
                });
                if parts != [false; 3] {
                    found.insert(QuantitySource::Direction(field), parts);
                }
            }
        } else if let (Geometry::Nodes(order), true) = (self.plan.geometry, self.needs_geometry()) {
            let outside = self.needs_outside().then_some(Side::Outside);
            for side in [Some(Side::Inside), outside].into_iter().flatten() {
                let inside = side == Side::Inside;
                self.quantities.push(Quantity {
                    source: QuantitySource::Position(side),
                    name: if inside { "x" } else { "outside_x" }.to_owned(),
                    components: self.form.dim,
                    stored: self.form.dim,
                    element: geometry_element(self.elements, order).into(),
                    value: self.needs_x && inside,
                    gradient: true,
                    second: self.is_bent() && self.needs_bends(side),
                });
            }
        }
        for (source, [value, gradient, second]) in found {
            let (name, shape, element) = match source {
                QuantitySource::State(f) => (
                    self.form.fields[f].name.clone(),
                    self.form.fields[f].shape,
                    self.elements.fields[f],
                ),
                QuantitySource::Direction(f) => (
                    format!("delta_{}", self.form.fields[f].name),
                    self.form.fields[f].shape,
                    self.elements.fields[f],
                ),
                QuantitySource::Aux(i) => {
                    let element = self.elements.aux[i].expect("a nodal aux should have an element");
                    (self.form.aux[i].name.clone(), self.form.aux[i].shape, element)
                }
                QuantitySource::Position(_) => continue,
            };
            let components = shape.components();
            let stored = if element.whitney().is_some() { 1 } else { components };
            let own =
                Quantity { source, name, components, stored, element, value, gradient, second };
            self.quantities.push(own);
        }
    }

    /// Returns whether the cells of a batch sum first.
    pub(crate) fn sums_first(&self) -> bool {
        let planned = self.plan.scatter == Scatter::Block && !self.plan.slots.is_empty();
        planned && self.has_result() && !self.on_facets()
    }

    /// Returns the field whose slots contain a source, if its values are read from slots.
    pub(crate) fn slotted(&self, source: QuantitySource) -> Option<usize> {
        match source {
            QuantitySource::State(field) | QuantitySource::Direction(field)
                if self.sums_first() =>
            {
                Some(field)
            }
            _ => None,
        }
    }

    /// Returns whether the coordinates of corners are read from slots, those of the first field.
    pub(crate) fn has_corners(&self) -> bool {
        self.plan.geometry == Geometry::Corners && self.needs_geometry()
    }

    /// Returns the index array of a source.
    pub(crate) fn map_of(&self, source: QuantitySource) -> Role {
        let (owner, indices) = (self.owner_of(source), self.indices_of(source));
        match self.slowest_axis(source) {
            _ if self.by_rows(source) => Role::Rows(owner, indices),
            Some(axis) => Role::Lines(owner, indices, axis),
            None => Role::Map(owner, indices),
        }
    }

    /// Returns whether the threads of a pair of cells access whole lines of a trace through [`Role::Rows`]: unless only
    /// values of nodes on the facet are read and tested.
    pub(crate) fn by_rows(&self, source: QuantitySource) -> bool {
        let by_lines = matches!(self.plan.strategy, Strategy::ThreadPerLine { .. });
        let (QuantitySource::State(trace) | QuantitySource::Direction(trace)) = source else {
            return false;
        };
        let line = || {
            let points = self.elements.rule.line()?;
            Some(FacetLine::new(points, self.elements.fields[trace], false))
        };
        let whole = || !self.is_flat_field(trace) || line().is_some_and(|line| line.reach() > 1);
        by_lines && self.of_pairs() && whole()
    }

    /// Returns the slowest axis of a source's index array, if it differs from the node order. It is the axis along
    /// which threads gather, unless that is the last.
    pub(crate) fn slowest_axis(&self, source: QuantitySource) -> Option<usize> {
        let by_lines = matches!(self.plan.strategy, Strategy::ThreadPerLine { .. });
        let (QuantitySource::State(field) | QuantitySource::Direction(field)) = source else {
            return None;
        };
        let (dim, element) = (self.form.dim, self.elements.fields[field]);
        let collocated = self.elements.collocated(element);
        if element.is_referenced() || self.hangs(source, element) {
            return None;
        }
        let axis = match self.of_pairs() {
            true => 0,
            false => gather_axis(dim, collocated, self.is_flat_field(field)),
        };
        (by_lines && axis < dim - 1).then_some(axis)
    }
}

/// Returns the continuous element of the map of a cell: of degree 1, its nodes are the corners.
pub(crate) fn geometry_element(elements: &Elements, order: usize) -> Lagrange {
    Lagrange::continuous(elements.cell, order).expect("a mesh should have checked its degree")
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

/// Returns the axis along which a thread with a line of a cell gathers and scatters. It is the last if the first
/// contraction is along it. It is the one before if the points are the nodes (`collocated`), or if only values are
/// evaluated (`flat`). The latter omits the contraction along the last.
pub(crate) fn gather_axis(dim: usize, collocated: bool, flat: bool) -> usize {
    if collocated == flat { dim - 1 } else { dim.saturating_sub(2) }
}
