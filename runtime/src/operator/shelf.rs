//! What operators on one mesh have in common: batches of cells, tables that kernels read, where unknowns lie on a device →
//! [`Shelf`], from which the next operator takes what it would have made of the same.
//!
//! A table is the same where its key, its length, its batches and slots are, the space of its unknowns and their places.
//! Batches cost little beside tables: they are made, and compared number by number. So what is shared follows from what it is
//! made of, whoever asks. Tables that heed conditions are never kept.

use super::engine::Array;
use super::tables::Key;
use super::{Class, Part};
use crate::algebra::vector::Precision;
use crate::device::{self, Arithmetic, Device, DeviceError, Layout};
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::operator::batch::Batches;
use crate::space::Space;
use crate::space::discretisation::{AuxValues, Discretisation, Field};
use kernels_gen::abi::{Indices, Owner, Slots};
use kernels_gen::plan::Geometry;
use std::sync::Arc;

/// Batches, tables and orders that operators on one mesh share, all in one place and one precision.
#[derive(Clone, Default)]
pub struct Shelf {
    of: Option<Of>,
    /// A device's chunks.
    pub(super) partition: Option<Arc<Partition>>,
    /// Where the unknowns of each space lie on a device.
    places: Vec<(Arc<Space>, device::Part)>,
    /// The part that each cell was of for the first operator.
    parts: Option<Arc<[Part]>>,
    /// Data at nodes, by its numbers.
    data: Vec<(Arc<Vec<f64>>, Arc<Array>)>,
    /// What the first operator's vectors need of a device.
    arithmetic: Option<Arc<Arithmetic>>,
    racks: Vec<Rack>,
}

/// What everything on a shelf is made for.
#[derive(Clone)]
struct Of {
    mesh: Arc<Mesh>,
    precision: Precision,
    device: Option<Arc<dyn Device>>,
}

/// The tables of some batches.
#[derive(Clone)]
struct Rack {
    batches: Arc<Batches>,
    slots: Vec<Slots>,
    tables: Vec<(Made, Arc<Array>)>,
}

/// What else a table is made of.
#[derive(Clone)]
pub(super) struct Made {
    key: Key,
    extent: usize,
    space: Option<Arc<Space>>,
    /// Where the unknowns of the space lie, if not in their own order.
    places: Option<device::Part>,
    /// The numbers that it holds.
    data: Option<Arc<Vec<f64>>>,
}

impl Made {
    /// What a table is made of beside its batches; none where it may not be kept.
    pub(super) fn new(
        key: Key,
        extent: usize,
        on: &Discretisation,
        layout: &Layout,
    ) -> Option<Self> {
        let own = Self { key: key.by_place(), extent, space: None, places: None, data: None };
        let of_field = |field: usize| {
            let space = Some(Arc::clone(&on.fields.get(field)?.space));
            let places = (!layout.is_plain()).then(|| layout.field(field).clone());
            Some(Self { space, places, ..own.clone() })
        };
        match key {
            // They heed conditions, or are of a rule.
            Key::Map(_, Indices::Dofs)
            | Key::Lines(_, Indices::Dofs, _)
            | Key::Slots(_, Indices::Dofs)
            | Key::Targets
            | Key::Geometry(Geometry::Stored) => None,
            Key::Map(Owner::Field(field), _)
            | Key::Lines(Owner::Field(field), ..)
            | Key::Slots(field, _)
            | Key::Terms(field) => of_field(field),
            Key::Coordinates | Key::Axis(_) => of_field(0),
            Key::Map(Owner::Aux(aux), _) | Key::Lines(Owner::Aux(aux), ..) => {
                let AuxValues::Nodes(space, _) = on.aux.get(aux)? else { return None };
                Some(Self { space: Some(Arc::clone(space)), ..own })
            }
            Key::AuxCells(aux) | Key::AuxPoints(aux) => {
                let (AuxValues::Nodes(_, data) | AuxValues::Cells(data) | AuxValues::Points(data)) =
                    on.aux.get(aux)?;
                Some(Self { data: Some(Arc::clone(data)), ..own })
            }
            Key::Hanging | Key::Hang | Key::Active | Key::Geometry(_) | Key::Diameter => Some(own),
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.key, self.extent) == (other.key, other.extent)
            && both(&self.space, &other.space, Arc::ptr_eq)
            && both(&self.places, &other.places, device::Part::agrees)
            && both(&self.data, &other.data, Arc::ptr_eq)
    }
}

/// Whether there is none of something, or two that are the same.
fn both<T>(own: &Option<T>, other: &Option<T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (own, other) {
        (Some(own), Some(other)) => same(own, other),
        (own, other) => own.is_none() && other.is_none(),
    }
}

impl Shelf {
    /// Whether it has, or can have, something for operators on a mesh, in a precision, on a device or the processor.
    fn suits(
        &self,
        mesh: &Arc<Mesh>,
        precision: Precision,
        device: Option<&Arc<dyn Device>>,
    ) -> bool {
        self.of.as_ref().is_none_or(|of| {
            let device = both(&of.device.as_ref(), &device, |own, other| Arc::ptr_eq(own, other));
            device && of.precision == precision && Arc::ptr_eq(&of.mesh, mesh)
        })
    }

    /// The same where it suits; else an empty one that does.
    pub(super) fn suiting(
        self,
        mesh: &Arc<Mesh>,
        precision: Precision,
        device: Option<&Arc<dyn Device>>,
    ) -> Self {
        let own = if self.suits(mesh, precision, device) { self } else { Self::default() };
        let of = Of { mesh: Arc::clone(mesh), precision, device: device.cloned() };
        Self { of: Some(of), ..own }
    }

    /// What it has for operators in another precision too: batches, indices, and where unknowns lie on a device.
    pub(crate) fn without_reals(self) -> Self {
        let indices = |rack: Rack| Rack {
            tables: rack.tables.into_iter().filter(|(made, _)| made.key.is_of_indices()).collect(),
            ..rack
        };
        let racks = self.racks.into_iter().map(indices).collect();
        Self { of: None, data: Vec::new(), arithmetic: None, racks, ..self }
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        self.racks.iter().map(|rack| rack.tables.len()).sum()
    }

    /// Takes what an operator has more, where that is of its kind.
    pub(crate) fn keep(&mut self, other: Self) {
        let suits = |of: &Of| self.suits(&of.mesh, of.precision, of.device.as_ref());
        if other.of.as_ref().is_some_and(suits) {
            *self = other;
        }
    }

    /// Where the unknowns of a field are known to lie on a device.
    pub(super) fn places(&self, field: &Field) -> Option<&device::Part> {
        let known = self.places.iter().find(|(space, _)| Arc::ptr_eq(space, &field.space));
        known.map(|(_, places)| places)
    }

    /// Remembers where the unknowns of some fields lie.
    pub(super) fn keep_places(&mut self, fields: &[Field], layout: &Layout) {
        for (number, field) in fields.iter().enumerate() {
            if self.places(field).is_none() {
                self.places.push((Arc::clone(&field.space), layout.field(number).clone()));
            }
        }
    }

    /// What vectors with a layout need of a device: that of the first operator where its unknowns lie alike, so that one takes the
    /// other's vectors, else another, which is remembered where there is none yet.
    pub(super) fn arithmetic(
        &mut self,
        device: &Arc<dyn Device>,
        precision: Precision,
        layout: &Layout,
    ) -> Result<Arc<Arithmetic>, DeviceError> {
        if let Some(known) = &self.arithmetic
            && Arc::ptr_eq(known.device(), device)
            && known.precision() == precision
            && known.layout().agrees(layout)
        {
            return Ok(Arc::clone(known));
        }
        let made = Arithmetic::with_layout(Arc::clone(device), precision, layout.clone())?;
        self.arithmetic.get_or_insert_with(|| Arc::clone(&made));
        Ok(made)
    }

    /// Remembers of which part each cell is.
    pub(super) fn keep_parts(&mut self, parts: &Arc<[Part]>) {
        self.parts.get_or_insert_with(|| Arc::clone(parts));
    }

    /// The classes that together have the cells of one, as they were parted for the first operator, and the parts; none
    /// where that knew of no conditions. Sums over cells must not mind another order.
    pub(super) fn parted(&self, class: Class) -> Option<(Vec<Class>, Arc<[Part]>)> {
        let parts = self.parts.as_ref().filter(|parts| parts.contains(&Part::Constrained))?;
        match class {
            Class::Cells(Part::All | Part::Free, integral) => {
                let classes =
                    [Part::Free, Part::Constrained].map(|part| Class::Cells(part, integral));
                Some((classes.into(), Arc::clone(parts)))
            }
            Class::Cells(Part::Constrained | Part::Hanging, _) | Class::Facets(_) => None,
        }
    }

    /// An array with data at nodes, which is made where there is none.
    pub(super) fn data<E>(
        &mut self,
        numbers: &Arc<Vec<f64>>,
        make: impl FnOnce(&[f64]) -> Result<Array, E>,
    ) -> Result<Arc<Array>, E> {
        if let Some((_, known)) = self.data.iter().find(|(own, _)| Arc::ptr_eq(own, numbers)) {
            return Ok(Arc::clone(known));
        }
        let array = Arc::new(make(numbers)?);
        self.data.push((Arc::clone(numbers), Arc::clone(&array)));
        Ok(array)
    }

    /// Keeps nothing that holds data, which is to be replaced.
    pub(super) fn forget_data(&mut self) {
        self.data.clear();
        let tables = self.racks.iter_mut().map(|rack| &mut rack.tables);
        tables.for_each(|tables| tables.retain(|(made, _)| made.data.is_none()));
    }

    /// The number of the rack of some batches, and the batches, which may have been made before.
    pub(super) fn rack(&mut self, batches: Batches, slots: &[Slots]) -> (usize, Arc<Batches>) {
        let same = |rack: &Rack| rack.slots == slots && *rack.batches == batches;
        let known = self.racks.iter().position(same).unwrap_or_else(|| {
            let (batches, slots) = (Arc::new(batches), slots.to_vec());
            self.racks.push(Rack { batches, slots, tables: Vec::new() });
            self.racks.len() - 1
        });
        (known, Arc::clone(&self.racks[known].batches))
    }

    /// A table of the batches of a rack.
    pub(super) fn table(&self, rack: usize, made: &Made) -> Option<Arc<Array>> {
        let tables = &self.racks.get(rack)?.tables;
        tables.iter().find(|(known, _)| known.is(made)).map(|(_, table)| Arc::clone(table))
    }

    /// Keeps a table of the batches of a rack.
    pub(super) fn keep_table(&mut self, rack: usize, made: Made, table: &Arc<Array>) {
        if let Some(rack) = self.racks.get_mut(rack) {
            rack.tables.push((made, Arc::clone(table)));
        }
    }
}
