//! Table cache of operators on one mesh ([`TableCache`]): batches of cells, tables of kernels, and device layouts.
//!
//! Tables are shared if key, length, batches and slots are equal, as well as the space of their degrees of freedom and
//! its layout. Batches are cheap compared with tables: they are rebuilt and compared entry by entry. Sharing thus
//! depends on contents only. Tables that depend on conditions are never cached.

use super::memory::MemoryArray;
use super::tables::TableKind;
use crate::algebra::vector::Precision;
use crate::device::{self, Arithmetic, Device, DeviceError, VectorLayout};
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::operator::batch::Batches;
use crate::space::Space;
use crate::space::discretisation::{AuxValues, Discretisation, Field};
use kernels_gen::abi::{Indices, Owner, Slots};
use kernels_gen::plan::Geometry;
use std::sync::Arc;

/// Batches, tables and layouts shared by operators on one mesh, for one device or the host and one precision.
#[derive(Clone, Default)]
pub struct TableCache {
    of: Option<CacheScope>,
    /// Chunks of a device.
    pub(super) partition: Option<Arc<Partition>>,
    /// Device layout of each space.
    places: Vec<(Arc<Space>, device::FieldLayout)>,
    /// Nodal data arrays, by identity of their values.
    data: Vec<(Arc<Vec<f64>>, Arc<MemoryArray>)>,
    /// Vector arithmetic of the first operator on a device.
    arithmetic: Option<Arc<Arithmetic>>,
    racks: Vec<BatchTables>,
}

/// Scope of a cache.
#[derive(Clone)]
struct CacheScope {
    mesh: Arc<Mesh>,
    precision: Precision,
    device: Option<Arc<dyn Device>>,
}

/// Tables of some batches.
#[derive(Clone)]
struct BatchTables {
    batches: Arc<Batches>,
    slots: Vec<Slots>,
    tables: Vec<(TableKey, Arc<MemoryArray>)>,
}

/// Cache key of a table, within its batches.
#[derive(Clone)]
pub(super) struct TableKey {
    key: TableKind,
    extent: usize,
    space: Option<Arc<Space>>,
    /// Device layout of the space, if it is not the natural order.
    places: Option<device::FieldLayout>,
    /// Values of the table.
    data: Option<Arc<Vec<f64>>>,
}

impl TableKey {
    /// Returns the cache key of a table; `None` if it may not be cached.
    pub(super) fn new(
        key: TableKind,
        extent: usize,
        on: &Discretisation,
        layout: &VectorLayout,
    ) -> Option<Self> {
        let own = Self { key: key.by_place(), extent, space: None, places: None, data: None };
        let of_field = |field: usize| {
            let space = Some(Arc::clone(&on.fields.get(field)?.space));
            let places = (!layout.is_plain()).then(|| layout.field(field).clone());
            Some(Self { space, places, ..own.clone() })
        };
        match key {
            // They depend on conditions, or on a rule.
            TableKind::Map(_, Indices::Dofs)
            | TableKind::Map(Owner::Result(_), _)
            | TableKind::Lines(Owner::Result(_), ..)
            | TableKind::Lines(_, Indices::Dofs, _)
            | TableKind::Rows(..)
            | TableKind::Slots(_, Indices::Dofs)
            | TableKind::Targets
            | TableKind::Geometry(Geometry::Stored) => None,
            TableKind::Turns(trace) => of_field(trace % on.fields.len().max(1)),
            TableKind::Signs(_) => None,
            TableKind::Map(Owner::Field(field), _)
            | TableKind::Lines(Owner::Field(field), ..)
            | TableKind::Slots(field, _)
            | TableKind::Terms(field) => of_field(field),
            TableKind::Coordinates | TableKind::Axis(_) => of_field(0),
            TableKind::Map(Owner::Aux(aux), _) | TableKind::Lines(Owner::Aux(aux), ..) => {
                let AuxValues::Nodes(space, _) = on.aux.get(aux)? else { return None };
                Some(Self { space: Some(Arc::clone(space)), ..own })
            }
            TableKind::AuxCells(aux) | TableKind::AuxPoints(aux) => {
                let data = match on.aux.get(aux)? {
                    AuxValues::Nodes(_, data) | AuxValues::Points(data) => data,
                    AuxValues::Cells(data) => data.shared(),
                };
                Some(Self { data: Some(Arc::clone(data)), ..own })
            }
            TableKind::Hanging
            | TableKind::Hang
            | TableKind::Active
            | TableKind::FirstAxis(_)
            | TableKind::Geometry(_)
            | TableKind::Diameter => Some(own),
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.key, self.extent) == (other.key, other.extent)
            && both(&self.space, &other.space, Arc::ptr_eq)
            && both(&self.places, &other.places, device::FieldLayout::agrees)
            && both(&self.data, &other.data, Arc::ptr_eq)
    }
}

/// Returns whether both are `None`, or both are equal.
fn both<T>(own: &Option<T>, other: &Option<T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (own, other) {
        (Some(own), Some(other)) => same(own, other),
        (own, other) => own.is_none() && other.is_none(),
    }
}

impl TableCache {
    /// Returns whether the cache can serve operators on a mesh, in a precision, on a device or the host.
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

    /// Returns the cache if it can serve them, otherwise an empty one.
    pub(super) fn suiting(
        self,
        mesh: &Arc<Mesh>,
        precision: Precision,
        device: Option<&Arc<dyn Device>>,
    ) -> Self {
        let own = if self.suits(mesh, precision, device) { self } else { Self::default() };
        let of = CacheScope { mesh: Arc::clone(mesh), precision, device: device.cloned() };
        Self { of: Some(of), ..own }
    }

    /// Returns the part that is independent of the precision: batches, indices and device layouts.
    pub(crate) fn without_reals(self) -> Self {
        let indices = |rack: BatchTables| BatchTables {
            tables: rack.tables.into_iter().filter(|(made, _)| made.key.is_of_indices()).collect(),
            ..rack
        };
        let racks = self.racks.into_iter().map(indices).collect();
        Self { of: None, data: Vec::new(), arithmetic: None, racks, ..self }
    }

    /// Returns the number of tables.
    pub fn tables(&self) -> usize {
        self.racks.iter().map(|rack| rack.tables.len()).sum()
    }

    /// Replaces the cache by an operator's extended one, if it has the same scope.
    pub(crate) fn keep(&mut self, other: Self) {
        let suits = |of: &CacheScope| self.suits(&of.mesh, of.precision, of.device.as_ref());
        if other.of.as_ref().is_some_and(suits) {
            *self = other;
        }
    }

    /// Returns the device layout of a field, if it is known.
    pub(super) fn places(&self, field: &Field) -> Option<&device::FieldLayout> {
        let known = self.places.iter().find(|(space, _)| Arc::ptr_eq(space, &field.space));
        known.map(|(_, places)| places)
    }

    /// Stores the device layouts of some fields.
    pub(super) fn keep_places(&mut self, fields: &[Field], layout: &VectorLayout) {
        for (number, field) in fields.iter().enumerate() {
            if self.places(field).is_none() {
                self.places.push((Arc::clone(&field.space), layout.field(number).clone()));
            }
        }
    }

    /// Returns the vector arithmetic for a layout: that of the first operator if the layouts agree, so that vectors are
    /// interchangeable; otherwise a new one, which is stored if there is none yet.
    pub(super) fn arithmetic(
        &mut self,
        device: &Arc<dyn Device>,
        precision: Precision,
        layout: &VectorLayout,
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

    /// Returns an array with nodal data, created if there is none.
    pub(super) fn data<E>(
        &mut self,
        numbers: &Arc<Vec<f64>>,
        make: impl FnOnce(&[f64]) -> Result<MemoryArray, E>,
    ) -> Result<Arc<MemoryArray>, E> {
        if let Some((_, known)) = self.data.iter().find(|(own, _)| Arc::ptr_eq(own, numbers)) {
            return Ok(Arc::clone(known));
        }
        let array = Arc::new(make(numbers)?);
        self.data.push((Arc::clone(numbers), Arc::clone(&array)));
        Ok(array)
    }

    /// Drops everything that depends on data, which will be replaced.
    pub(super) fn forget_data(&mut self) {
        self.data.clear();
        let tables = self.racks.iter_mut().map(|rack| &mut rack.tables);
        tables.for_each(|tables| tables.retain(|(made, _)| made.data.is_none()));
    }

    /// Finds or adds batches; returns their index and the shared batches.
    pub(super) fn rack(&mut self, batches: Batches, slots: &[Slots]) -> (usize, Arc<Batches>) {
        let same = |rack: &BatchTables| rack.slots == slots && *rack.batches == batches;
        let known = self.racks.iter().position(same).unwrap_or_else(|| {
            let (batches, slots) = (Arc::new(batches), slots.to_vec());
            self.racks.push(BatchTables { batches, slots, tables: Vec::new() });
            self.racks.len() - 1
        });
        (known, Arc::clone(&self.racks[known].batches))
    }

    /// Returns a cached table of some batches.
    pub(super) fn table(&self, rack: usize, made: &TableKey) -> Option<Arc<MemoryArray>> {
        let tables = &self.racks.get(rack)?.tables;
        tables.iter().find(|(known, _)| known.is(made)).map(|(_, table)| Arc::clone(table))
    }

    /// Stores a table of some batches.
    pub(super) fn keep_table(&mut self, rack: usize, made: TableKey, table: &Arc<MemoryArray>) {
        if let Some(rack) = self.racks.get_mut(rack) {
            rack.tables.push((made, Arc::clone(table)));
        }
    }
}
