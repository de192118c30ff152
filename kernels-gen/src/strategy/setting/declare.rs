//! What a kernel reads and writes: its arguments, in their order, with their extents.

use super::{Setting, Source, gather_axis};
use crate::abi::{Argument, Indices, Owner, Role};
use crate::kir::Element;
use crate::plan::{Geometry, Linearisation, Scatter, Strategy, Task};
use fem_dsl::point::{Input, Location};

impl Setting<'_> {
    fn argument(&mut self, role: Role, name: &str, element: Element, extent: usize, written: bool) {
        if self.arguments.contains_key(&role) {
            return;
        }
        let id = self.b.argument(name, element, written);
        self.arguments.insert(role, id);
        self.abi.push(Argument { role, name: name.to_owned(), extent, written });
    }

    pub(super) fn declare(&mut self) {
        let lanes = self.plan.lanes;
        let reads_params =
            self.inputs.iter().any(|input| matches!(input, Input::Param(..) | Input::Time));
        if reads_params {
            let count = 1 + self.form.params.iter().map(|p| p.shape.components()).sum::<usize>();
            self.argument(Role::Params, "params", Element::Real, count, false);
        }
        for quantity in self.quantities.clone() {
            if quantity.source != Source::Position {
                let role = quantity.source.role();
                self.argument(role, &quantity.name, Element::Real, 0, false);
            }
        }
        for input in self.inputs.clone() {
            match input {
                Input::Aux(slot) => {
                    let aux = &self.form.aux[slot.field];
                    let (name, components) = (aux.name.clone(), aux.shape.components());
                    let location = aux.location;
                    match location {
                        Location::Nodes(_) => {}
                        Location::Cells => {
                            let role = Role::AuxCells(slot.field);
                            self.argument(role, &name, Element::Real, components * lanes, false);
                        }
                        Location::Points => {
                            let extent = components * self.points * lanes;
                            let role = Role::AuxPoints(slot.field);
                            self.argument(role, &name, Element::Real, extent, false);
                        }
                    }
                }
                Input::Diameter => {
                    self.argument(Role::Diameter, "diameter", Element::Real, lanes, false);
                }
                _ => {}
            }
        }
        if self.needs_geometry() && self.plan.geometry == Geometry::Corners {
            if self.axes() {
                for (axis, name) in self.axis_names().into_iter().enumerate() {
                    self.argument(Role::Axis(axis), name, Element::Real, 0, false);
                }
            } else {
                self.argument(Role::Coordinates, "coordinates", Element::Real, 0, false);
            }
        } else if self.needs_geometry() {
            let numbers = self.geometry_numbers() * lanes;
            let extent = match self.plan.geometry {
                Geometry::Stored => numbers * self.points,
                _ => numbers,
            };
            self.argument(Role::Geometry, "geometry", Element::Real, extent, false);
        }
        match (self.plan.task, self.plan.linearisation) {
            (Task::Metric, _) => {
                let x = if self.needs_x { self.form.dim } else { 0 };
                let numbers = 1 + self.form.dim * self.form.dim + x;
                let extent = numbers * self.points * lanes;
                self.argument(Role::Stored, "stored", Element::Real, extent, true);
            }
            (Task::Linearise, _) | (Task::Action, Linearisation::Stored) => {
                let extent = self.blocks.numbers * self.points * lanes;
                let written = self.plan.task == Task::Linearise;
                self.argument(Role::Stored, "stored", Element::Real, extent, written);
            }
            _ => {}
        }
        for quantity in self.quantities.clone() {
            if quantity.source != Source::Position {
                self.declare_map(quantity.source);
            }
        }
        self.declare_results();
    }

    fn declare_results(&mut self) {
        if !self.has_result() {
            return;
        }
        let (results, lanes) = (self.results(), self.plan.lanes);
        let corners = self.plan.geometry == Geometry::Corners;
        if self.plan.scatter == Scatter::Owner {
            if corners {
                self.declare_map(Source::Direction(0));
            }
            for field in results {
                let nodes = self.elements.fields[field].count();
                let (numbers, name) =
                    (nodes * self.components(field), self.of_field("cells", field));
                let role = Role::CellResult(field);
                self.argument(role, &name, Element::Real, numbers * lanes, true);
            }
            return;
        }
        if corners && !results.contains(&0) {
            self.declare_map(Source::Direction(0));
        }
        results.iter().for_each(|&field| self.declare_map(Source::Direction(field)));
        self.argument(Role::Active, "active", Element::U32, 1, false);
        let active = self.arguments[&Role::Active];
        self.b.set_active(active);
        for field in results {
            let name = self.of_field("result", field);
            self.argument(Role::Result(field), &name, Element::Real, 0, true);
        }
    }

    fn declare_map(&mut self, source: Source) {
        let owner = source.owner();
        let indices = self.indices_of(source);
        if let Some(field) = self.slotted(source) {
            return self.declare_slots(field, indices);
        }
        let (base, element, components) = match owner {
            Owner::Field(f) => {
                (&self.form.fields[f].name, self.elements.fields[f], self.components(f))
            }
            Owner::Aux(i) => {
                let aux = &self.form.aux[i];
                let element = self.elements.aux[i].expect("a nodal aux should have an element");
                (&aux.name, element, aux.shape.components())
            }
        };
        let nodes = element.count();
        let (word, entries) = match indices {
            Indices::Nodes => ("nodes", nodes),
            Indices::Tiles => ("tiles", nodes),
            Indices::Runs => ("runs", 3usize.pow(self.form.dim as u32)),
            Indices::Dofs => ("dofs", nodes * components),
        };
        let name = format!("{base}_{word}");
        let entries = entries * self.plan.lanes;
        self.argument(self.map_of(source), &name, Element::U32, entries, false);
    }

    /// What the slots of a field are for, and what they have of the cells' nodes.
    fn declare_slots(&mut self, field: usize, indices: Indices) {
        let name = self.form.fields[field].name.clone();
        let (nodes, components) = (self.elements.fields[field].count(), self.components(field));
        let (word, entries) = match indices {
            Indices::Dofs => ("dofs", components),
            _ => ("nodes", 1),
        };
        let slots = entries * self.plan.slots[field].count;
        let (role, word) = (Role::Slots(field, indices), format!("{name}_{word}_of_slots"));
        self.argument(role, &word, Element::U32, slots, false);
        let terms = format!("{name}_terms");
        self.argument(Role::Terms(field), &terms, Element::U32, nodes * self.plan.lanes, false);
    }

    /// The index array of a source.
    pub(in crate::strategy) fn map_of(&self, source: Source) -> Role {
        let (owner, indices) = (source.owner(), self.indices_of(source));
        match self.turned(source) {
            Some(axis) => Role::Lines(owner, indices, axis),
            None => Role::Map(owner, indices),
        }
    }

    /// The axis of the lines in whose order a source's index array is, where it is not in that of the nodes: the one
    /// along which threads gather, if that is not the last.
    pub(in crate::strategy) fn turned(&self, source: Source) -> Option<usize> {
        let by_lines = matches!(self.plan.strategy, Strategy::ThreadPerLine { .. });
        let (Source::State(field) | Source::Direction(field)) = source else { return None };
        let (dim, element) = (self.form.dim, self.elements.fields[field]);
        let collocated = self.elements.collocated(element);
        let axis = gather_axis(dim, collocated, self.is_flat_field(field));
        (self.plan.turned && by_lines && axis < dim - 1).then_some(axis)
    }
}
