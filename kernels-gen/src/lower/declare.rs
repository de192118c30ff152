//! Declaration of a kernel's arguments, in order, with their extents.

use super::facts::QuantitySource;
use super::lowering::Lowering;
use crate::abi::{Argument, Indices, Owner, Role};
use crate::kir::Element;
use crate::plan::cell_matrix::CellMatrix;
use crate::plan::{Geometry, Linearisation, Scatter, Strategy, Task};
use fem_dsl::point::{Input, Location, Side};

impl Lowering<'_> {
    fn argument(&mut self, role: Role, name: &str, element: Element, extent: usize, written: bool) {
        if self.arguments.contains_key(&role) {
            return;
        }
        let id = self.b.argument(name, element, written);
        self.arguments.insert(role, id);
        self.abi.push(Argument { role, name: name.to_owned(), extent, written });
    }

    pub(crate) fn declare(&mut self) {
        let lanes = self.facts.plan.lanes;
        let reads_params =
            self.facts.inputs.iter().any(|input| matches!(input, Input::Param(..) | Input::Time));
        if reads_params {
            let count =
                1 + self.facts.form.params.iter().map(|p| p.shape.components()).sum::<usize>();
            self.argument(Role::Params, "params", Element::Real, count, false);
        }
        for quantity in &self.facts.quantities {
            if !quantity.source.is_position() {
                self.declare_vector(quantity.source, &quantity.name, quantity.stored);
            }
        }
        self.declare_data();
        self.declare_geometry();
        match (self.facts.plan.task, self.facts.plan.linearisation) {
            (Task::Metric, _) => {
                let x = if self.facts.needs_x { self.facts.form.dim } else { 0 };
                let numbers = 1 + self.facts.form.dim * self.facts.form.dim + x;
                let extent = numbers * self.facts.points() * lanes;
                self.argument(Role::Stored, "stored", Element::Real, extent, true);
            }
            (Task::Linearise | Task::Flux, _) | (Task::Action, Linearisation::Stored) => {
                let extent = self.facts.stored_numbers() * self.facts.points() * lanes;
                let written = self.facts.plan.task.stores();
                self.argument(Role::Stored, "stored", Element::Real, extent, written);
            }
            _ => {}
        }
        self.declare_first_axes();
        for quantity in &self.facts.quantities {
            if !quantity.source.is_position() {
                self.declare_map(quantity.source);
            }
        }
        if self.facts.anything_hangs() {
            let sides = self.facts.sides();
            self.argument(Role::Hanging, "hanging", Element::U32, sides * lanes, false);
            // Threads that share a cell read its own word.
            if self.facts.plan.strategy == Strategy::CellPerLane {
                self.argument(Role::Hang, "hang", Element::U32, sides, false);
            }
        }
        if matches!(self.facts.plan.task, Task::StoredProduct | Task::MatrixProduct) {
            for field in self.facts.trial_fields() {
                let name = self.facts.multiplied(field).name;
                let source = QuantitySource::Direction(field);
                self.declare_vector(source, &name, self.facts.stored(field));
                self.declare_map(source);
            }
        }
        if matches!(self.facts.plan.task, Task::Matrix | Task::StoredProduct) {
            self.declare_matrix();
        }
        if self.facts.plan.task.transfers() {
            let extent = self.facts.rows() * self.facts.points() * self.facts.plan.lanes;
            self.argument(Role::Targets, "targets", Element::U32, extent, false);
            let written = self.facts.plan.task == Task::Prolong;
            if written {
                self.argument(Role::Active, "active", Element::U32, 1, false);
                let active = self.arguments[&Role::Active];
                self.b.set_active(active);
            }
            self.argument(Role::Fine, "fine", Element::Real, 0, written);
        }
        self.declare_results();
    }

    /// Declares the vector of a source with so many numbers a node.
    fn declare_vector(&mut self, source: QuantitySource, name: &str, numbers: usize) {
        let extent = match self.facts.indices_of(source) {
            Indices::Batches => self.facts.span_of(source).1 * numbers * self.facts.plan.lanes,
            _ => 0,
        };
        self.argument(self.facts.role_of(source), name, Element::Real, extent, false);
    }

    /// Declares the first axes of the cells of pairs, if threads access rows of nodes.
    fn declare_first_axes(&mut self) {
        let (facts, lanes) = (self.facts, self.facts.plan.lanes);
        for (side, name) in Side::ALL.into_iter().zip(["first_axis", "outside_first_axis"]) {
            let mut traces = (0..facts.form.fields.len()).map(QuantitySource::Direction);
            if traces.any(|trace| facts.side_of(trace) == side && facts.by_rows(trace)) {
                self.argument(Role::FirstAxis(side), name, Element::U32, lanes, false);
            }
        }
    }

    /// Declares data in cells and at points, and the diameters of cells.
    fn declare_data(&mut self) {
        let lanes = self.facts.plan.lanes;
        for input in &self.facts.inputs {
            match input {
                Input::Aux(slot) => {
                    let aux = &self.facts.form.aux[slot.field];
                    let (name, components) = (aux.name.clone(), aux.shape.components());
                    let location = aux.location;
                    match location {
                        Location::Nodes(_) => {}
                        Location::Cells => {
                            let role = Role::AuxCells(slot.field);
                            self.argument(role, &name, Element::Real, components * lanes, false);
                        }
                        Location::Points => {
                            let extent = components * self.facts.points() * lanes;
                            let role = Role::AuxPoints(slot.field);
                            self.argument(role, &name, Element::Real, extent, false);
                        }
                    }
                }
                Input::Diameter(_) => {
                    let extent = self.facts.sides() * lanes;
                    self.argument(Role::Diameter, "diameter", Element::Real, extent, false);
                }
                _ => {}
            }
        }
    }

    fn declare_geometry(&mut self) {
        if self.facts.needs_geometry() && self.facts.plan.geometry == Geometry::Corners {
            if self.facts.axes() {
                for (axis, name) in self.facts.axis_names().into_iter().enumerate() {
                    self.argument(Role::Axis(axis), name, Element::Real, 0, false);
                }
            } else {
                self.argument(Role::Coordinates, "coordinates", Element::Real, 0, false);
            }
        } else if self.facts.needs_geometry() {
            let numbers = self.facts.geometry_numbers() * self.facts.plan.lanes;
            let extent = match self.facts.plan.geometry {
                Geometry::Stored => numbers * self.facts.points(),
                _ => numbers,
            };
            self.argument(Role::Geometry, "geometry", Element::Real, extent, false);
        }
    }

    fn declare_matrix(&mut self) {
        let facts = self.facts;
        let written = facts.plan.task == Task::Matrix;
        if written && facts.plan.geometry == Geometry::Corners {
            self.declare_map(QuantitySource::Direction(0));
        }
        for field in 0..facts.form.fields.len() {
            self.declare_signs(QuantitySource::Direction(field));
        }
        let matrix = CellMatrix::new(facts.form, facts.elements, facts.plan.integral);
        let extent = matrix.entries * facts.plan.lanes;
        if facts.plan.scatter == Scatter::Owner || !written {
            return self.argument(Role::CellMatrix, "matrices", Element::Real, extent, written);
        }
        self.argument(Role::Entries, "entries", Element::U32, extent, false);
        self.argument(Role::Active, "active", Element::U32, 1, false);
        let active = self.arguments[&Role::Active];
        self.b.set_active(active);
        self.argument(Role::Matrix, "matrix", Element::Real, 0, true);
    }

    fn declare_results(&mut self) {
        if !self.facts.has_result() {
            return;
        }
        let (results, lanes) = (self.facts.results(), self.facts.plan.lanes);
        let corners = self.facts.plan.geometry == Geometry::Corners;
        if self.facts.plan.scatter == Scatter::Owner {
            if corners {
                self.declare_map(QuantitySource::Direction(0));
            }
            for field in results {
                let origin = self.facts.elements.origins[field].clone();
                let (numbers, name) =
                    (origin.total * self.facts.stored(field), self.facts.of_field("cells", field));
                let role = Role::CellResult(origin.index);
                self.argument(role, &name, Element::Real, numbers * lanes, true);
                self.declare_signs(QuantitySource::Direction(field));
            }
            return;
        }
        if corners && !results.contains(&0) {
            self.declare_map(QuantitySource::Direction(0));
        }
        for &field in &results {
            if self.facts.of_pairs() && self.facts.plan.one_sided {
                self.declare_written(field);
            } else {
                self.declare_map(QuantitySource::Direction(field));
            }
        }
        self.argument(Role::Active, "active", Element::U32, 1, false);
        let active = self.arguments[&Role::Active];
        self.b.set_active(active);
        for field in results {
            let name = self.facts.of_field("result", field);
            let role = Role::Result(self.facts.field_of(field));
            self.argument(role, &name, Element::Real, 0, true);
        }
    }

    /// Declares the DoFs of a trace to which a batch of pairs adds.
    fn declare_written(&mut self, trace: usize) {
        let origin = self.facts.elements.origins[trace].clone();
        let name = format!("{}_written", origin.name);
        let (indices, numbers) = match self.facts.indices_of(QuantitySource::Direction(trace)) {
            Indices::Cells => (Indices::Cells, 1),
            _ => (Indices::Dofs, origin.total * self.facts.stored(trace)),
        };
        let role = Role::Map(Owner::Result(origin.index), indices);
        self.argument(role, &name, Element::U32, numbers * self.facts.plan.lanes, false);
        self.declare_signs(QuantitySource::Direction(trace));
        if indices == Indices::Cells {
            self.declare_turns(trace);
        }
    }

    fn declare_map(&mut self, source: QuantitySource) {
        let indices = self.facts.indices_of(source);
        if let Some(field) = self.facts.slotted(source) {
            return self.declare_slots(field, indices);
        }
        let components = match source {
            QuantitySource::Aux(i) => self.facts.form.aux[i].shape.components(),
            QuantitySource::State(f) | QuantitySource::Direction(f) => self.facts.stored(f),
            QuantitySource::Position(_) => self.facts.form.dim,
        };
        let origin =
            self.facts.origin_of(source).expect("the map of a cell should have no indices");
        let (base, nodes) = (&origin.name, origin.total);
        let (word, entries) = match indices {
            Indices::Nodes => ("nodes", nodes),
            Indices::Tiles => ("tiles", nodes),
            Indices::Runs => ("runs", self.facts.element_of(source).run_count()),
            Indices::Cells => ("cells", 1),
            Indices::Dofs => ("dofs", nodes * components),
            Indices::Batches => return self.declare_signs(source),
        };
        let name = format!("{base}_{word}");
        let entries = entries * self.facts.plan.lanes;
        self.argument(self.facts.map_of(source), &name, Element::U32, entries, false);
        if let (Indices::Cells, QuantitySource::State(field) | QuantitySource::Direction(field)) =
            (indices, source)
        {
            self.declare_turns(field);
        }
        self.declare_signs(source);
    }

    /// Declares the signs of a source's degrees of freedom, if they have any.
    fn declare_signs(&mut self, source: QuantitySource) {
        if let Some(origin) = self.facts.origin_of(source).filter(|_| self.facts.has_signs(source))
        {
            let (name, total) = (format!("{}_signs", origin.name), origin.total);
            let (owner, lanes) = (self.facts.owner_of(source), self.facts.plan.lanes);
            self.argument(Role::Signs(owner), &name, Element::Real, total * lanes, false);
        }
    }

    /// Declares the places of a trace's DoFs in the rotated cell, for kernels that address cells.
    fn declare_turns(&mut self, trace: usize) {
        if self.facts.of_pairs() {
            let name = format!("{}_turns", self.facts.form.fields[trace].name);
            let numbers = self.facts.elements.fields[trace].count() * self.facts.stored(trace);
            self.argument(Role::Turns(trace), &name, Element::U32, numbers, false);
        }
    }

    /// Declares the maps from a field's slots to DoFs and from the cells' nodes to slots.
    fn declare_slots(&mut self, field: usize, indices: Indices) {
        let name = self.facts.form.fields[field].name.clone();
        let (nodes, components) =
            (self.facts.elements.fields[field].count(), self.facts.stored(field));
        let (word, entries) = match indices {
            Indices::Dofs => ("dofs", components),
            _ => ("nodes", 1),
        };
        let slots = entries * self.facts.plan.slots[field].count;
        let (role, word) = (Role::Slots(field, indices), format!("{name}_{word}_of_slots"));
        self.argument(role, &word, Element::U32, slots, false);
        let terms = format!("{name}_terms");
        self.argument(
            Role::Terms(field),
            &terms,
            Element::U32,
            nodes * self.facts.plan.lanes,
            false,
        );
    }
}
