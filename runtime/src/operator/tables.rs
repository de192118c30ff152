//! Input tables of kernels, built from the requirements of a kernel's ABI.

use super::BuildError;
use crate::algebra::vector::{Precision, Real};
use crate::device::VectorLayout;
use crate::device::cpu::{Argument, Buffer, IndexArray, PlainNumber};
use crate::mesh::Mesh;
use crate::operator::batch::{Batches, CONSTRAINED, IndexRows};
use crate::operator::geometry;
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::parallel::*;
use fem_dsl::point::Side;
use kernels_gen::abi::hanging::{of_batch, oriented, turned};
use kernels_gen::abi::{self, Indices, Owner, Role, Slots};
use kernels_gen::plan::Geometry;
use std::borrow::Cow;

/// An array of one of the types that kernels read, in host memory.
#[derive(Clone, Debug)]
pub(super) enum HostTable {
    /// Double precision.
    F64(Buffer<f64>),
    /// Single precision.
    F32(Buffer<f32>),
    /// Indices and counts.
    U32(IndexArray),
}

impl HostTable {
    /// Creates an array of reals.
    pub(super) fn reals(values: &[f64], precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self::F64(Buffer::from_slice(values)),
            Precision::F32 => {
                Self::F32(values.iter().map(|&value| Real::from_f64(value)).collect())
            }
        }
    }

    /// Creates an array of zeros.
    pub(super) fn zeros(len: usize, precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self::F64(Buffer::zeroed(len)),
            Precision::F32 => Self::F32(Buffer::zeroed(len)),
        }
    }

    /// Returns a read argument.
    pub(super) fn read(&self) -> Argument<'_> {
        match self {
            Self::F64(buffer) => Argument::read(buffer),
            Self::F32(buffer) => Argument::read(buffer),
            Self::U32(indices) => Argument::indices(indices),
        }
    }

    /// Returns a written argument; kernels do not write indices.
    pub(super) fn write(&mut self) -> Argument<'_> {
        match self {
            Self::F64(buffer) => Argument::write(buffer),
            Self::F32(buffer) => Argument::write(buffer),
            Self::U32(indices) => Argument::indices(indices),
        }
    }

    /// Returns the numbers of an array of reals.
    pub(super) fn numbers(&self) -> Option<Cow<'_, [f64]>> {
        match self {
            Self::F64(buffer) => Some(Cow::Borrowed(buffer)),
            Self::F32(buffer) => Some(buffer.iter().copied().map(f64::from).collect()),
            Self::U32(_) => None,
        }
    }

    /// Creates an array of indices, `extent` per batch.
    pub(super) fn indices(numbers: Buffer<u32>, extent: usize, lanes: usize) -> Self {
        Self::U32(match extent % lanes {
            0 => IndexArray::new(numbers, extent / lanes, lanes),
            _ => IndexArray::plain(numbers),
        })
    }

    /// Returns the length.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::F64(buffer) => buffer.len(),
            Self::F32(buffer) => buffer.len(),
            Self::U32(buffer) => buffer.len(),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::F64(buffer) => 8 * buffer.len(),
            Self::F32(buffer) => 4 * buffer.len(),
            Self::U32(buffer) => 4 * buffer.len(),
        }
    }
}

/// Key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TableKind {
    Map(Owner, Indices),
    Lines(Owner, Indices, usize),
    Rows(Owner, Indices),
    FirstAxis(Side),
    Turns(usize),
    Signs(Owner),
    Slots(usize, Indices),
    Terms(usize),
    Targets,
    Hanging,
    Hang,
    Active,
    Geometry(Geometry),
    Coordinates,
    Axis(usize),
    Diameter,
    AuxCells(usize),
    AuxPoints(usize),
}

impl TableKind {
    /// Returns the same key for all tables with the same numbers: node positions do not depend on tiling.
    pub(super) fn by_place(self) -> Self {
        let plain = |indices| match indices {
            Indices::Tiles => Indices::Nodes,
            other => other,
        };
        match self {
            Self::Map(owner, indices) => Self::Map(owner, plain(indices)),
            Self::Lines(owner, indices, axis) => Self::Lines(owner, plain(indices), axis),
            Self::Rows(owner, indices) => Self::Rows(owner, plain(indices)),
            Self::Slots(field, indices) => Self::Slots(field, plain(indices)),
            other => other,
        }
    }

    /// Returns whether the table contains indices or words rather than reals.
    pub(super) fn is_of_indices(self) -> bool {
        match self {
            Self::Map(..)
            | Self::Lines(..)
            | Self::Rows(..)
            | Self::FirstAxis(_)
            | Self::Turns(_)
            | Self::Slots(..)
            | Self::Terms(_)
            | Self::Targets
            | Self::Hanging
            | Self::Hang
            | Self::Active => true,
            Self::Geometry(_)
            | Self::Signs(_)
            | Self::Coordinates
            | Self::Axis(_)
            | Self::Diameter
            | Self::AuxCells(_)
            | Self::AuxPoints(_) => false,
        }
    }

    /// Returns the table of a role; `None` for vectors, parameters and kernel outputs.
    pub(super) fn of(role: Role, geometry: Geometry) -> Option<Self> {
        match role {
            Role::Map(owner, indices) => Some(Self::Map(owner, indices)),
            Role::Lines(owner, indices, axis) => Some(Self::Lines(owner, indices, axis)),
            Role::Rows(owner, indices) => Some(Self::Rows(owner, indices)),
            Role::FirstAxis(side) => Some(Self::FirstAxis(side)),
            Role::Turns(trace) => Some(Self::Turns(trace)),
            Role::Signs(owner) => Some(Self::Signs(owner)),
            Role::Slots(field, indices) => Some(Self::Slots(field, indices)),
            Role::Terms(field) => Some(Self::Terms(field)),
            Role::Targets => Some(Self::Targets),
            Role::Hanging => Some(Self::Hanging),
            Role::Hang => Some(Self::Hang),
            Role::Active => Some(Self::Active),
            Role::Geometry => Some(Self::Geometry(geometry)),
            Role::Coordinates => Some(Self::Coordinates),
            Role::Axis(axis) => Some(Self::Axis(axis)),
            Role::Diameter => Some(Self::Diameter),
            Role::AuxCells(aux) => Some(Self::AuxCells(aux)),
            Role::AuxPoints(aux) => Some(Self::AuxPoints(aux)),
            Role::Params
            | Role::State(_)
            | Role::Direction(_)
            | Role::Result(_)
            | Role::CellResult(_)
            | Role::CellMatrix
            | Role::Matrix
            | Role::Entries
            | Role::Starts
            | Role::Places
            | Role::Fine
            | Role::AuxNodes(_)
            | Role::Stored
            | Role::Tables => None,
        }
    }
}

/// Returns the table that a kernel of [`kernels_gen::plan::Task::Metric`] computes for readers of this geometry.
pub(super) fn computed(geometry: Geometry, arguments: &[abi::Argument]) -> Option<TableKind> {
    let reads = || arguments.iter().any(|argument| argument.role == Role::Geometry);
    (geometry == Geometry::Stored && reads()).then_some(TableKind::Geometry(geometry))
}

/// Builds a table; `None` for those that a kernel computes. `slots` are those of a batch for each field.
pub(super) fn make(
    key: TableKind,
    extent: usize,
    on: &Discretisation,
    batches: &Batches,
    precision: Precision,
    layout: &VectorLayout,
    slots: &[Slots],
) -> Result<Option<HostTable>, BuildError> {
    Ok(Some(match key {
        TableKind::Turns(_) | TableKind::Rows(..) | TableKind::FirstAxis(_) => {
            return of_rotated(key, extent, on, batches, layout);
        }
        TableKind::Map(Owner::Result(trace), Indices::Cells) => {
            let (field, side) = of_side(trace, on.fields.len());
            let (space, _) = space_of(Owner::Field(field), on)?;
            let written = batches.written_cells(side, space).ok_or(BuildError::NoRuns)?;
            HostTable::indices(written, extent, batches.lanes())
        }
        TableKind::Map(Owner::Result(trace), _) => {
            let (field, side) = of_side(trace, on.fields.len());
            let (space, constraints) = space_of(Owner::Field(field), on)?;
            let constraints = constraints.ok_or(BuildError::Field { field })?;
            let written = batches.written_dofs(side, space, constraints);
            let mut map = written.ok_or(BuildError::Field { field: trace })?;
            renumber(&mut map, field, Indices::Dofs, layout);
            HostTable::indices(map, extent, batches.lanes())
        }
        TableKind::Map(owner, indices) => {
            HostTable::indices(map(owner, indices, on, batches, layout)?, extent, batches.lanes())
        }
        TableKind::Targets => return Err(BuildError::NoTargets),
        TableKind::Signs(owner) => {
            let (owner, batches) = on_side(owner, on, batches)?;
            let (space, _) = space_of(owner, on)?;
            match precision {
                Precision::F64 => HostTable::F64(batches.signs(space)),
                Precision::F32 => HostTable::F32(batches.signs(space)),
            }
        }
        TableKind::Lines(owner, indices, axis) => {
            let map = map(owner, indices, on, batches, layout)?;
            let (space, _) = space_of(owner, on)?;
            let places = places_by_lines(space.element().degree() + 1, on.mesh.dim(), axis);
            let turned = by_places(&map, &places, extent / places.len());
            HostTable::indices(turned, extent, batches.lanes())
        }
        TableKind::Slots(field, indices) => {
            let slots = slots_of(field, slots)?;
            let table = self::slots(field, indices, on, batches, layout, slots)?;
            HostTable::U32(IndexArray::plain(table))
        }
        TableKind::Terms(field) => {
            let (space, _) = space_of(Owner::Field(field), on)?;
            let number = number(field, layout);
            let terms = batches.terms(space, slots_of(field, slots)?, &number);
            HostTable::U32(IndexArray::plain(terms))
        }
        TableKind::Hanging => HostTable::U32(IndexArray::plain(hanging_words(&on.mesh, batches))),
        TableKind::Hang => {
            let (words, dim) = (hanging_words(&on.mesh, batches), on.mesh.dim());
            let of_batch = |words: &[u32]| of_batch(words.iter().copied(), dim);
            HostTable::U32(IndexArray::plain(words.chunks(batches.lanes()).map(of_batch).collect()))
        }
        TableKind::Active => {
            HostTable::U32(IndexArray::plain(Buffer::from_slice(batches.active())))
        }
        TableKind::Geometry(geometry) => {
            let (mesh, numbers) = (&on.mesh, extent / batches.lanes());
            let table =
                |batches: &Batches| geometry_of(mesh, batches, geometry, numbers, precision);
            return match batches.outside() {
                Some(outside) => Ok(both_sides(table(batches)?, table(outside)?, batches.len())),
                None => Ok(table(batches)?),
            };
        }
        TableKind::Coordinates | TableKind::Axis(_) => {
            let Some(field) = on.fields.first() else {
                return Err(BuildError::Field { field: 0 });
            };
            match precision {
                Precision::F64 => HostTable::F64(coordinates(key, &on.mesh, &field.space, layout)),
                Precision::F32 => HostTable::F32(coordinates(key, &on.mesh, &field.space, layout)),
            }
        }
        TableKind::Diameter => {
            let table = |batches: &Batches| match precision {
                Precision::F64 => HostTable::F64(geometry::diameters(&on.mesh, batches)),
                Precision::F32 => HostTable::F32(geometry::diameters(&on.mesh, batches)),
            };
            let Some(outside) = batches.outside() else { return Ok(Some(table(batches))) };
            return Ok(both_sides(Some(table(batches)), Some(table(outside)), batches.len()));
        }
        TableKind::AuxCells(_) | TableKind::AuxPoints(_) => {
            return of_aux(key, extent, on, &on.aux, batches, precision);
        }
    }))
}

/// Builds a table of rotated cells; `None` for other keys.
fn of_rotated(
    key: TableKind,
    extent: usize,
    on: &Discretisation,
    batches: &Batches,
    layout: &VectorLayout,
) -> Result<Option<HostTable>, BuildError> {
    Ok(Some(match key {
        TableKind::Turns(trace) => {
            let (owner, batches) = on_side(Owner::Field(trace), on, batches)?;
            let (space, _) = space_of(owner, on)?;
            HostTable::U32(IndexArray::plain(batches.places(space)))
        }
        TableKind::Rows(..) => {
            let rows = rows_of(key, extent, on, batches, layout)?;
            let rows = rows.expect("rows of nodes should be written on demand");
            let mut table = Buffer::zeroed(rows.len());
            rows.write(0, &mut table);
            HostTable::indices(table, extent, batches.lanes())
        }
        TableKind::FirstAxis(side) => {
            let axes = batches.on(side).map(|batches| batches.first_axes(on.mesh.cell()));
            let axes = axes.ok_or(BuildError::Field { field: 0 })?;
            HostTable::U32(IndexArray::plain(axes))
        }
        _ => return Ok(None),
    }))
}

/// Builds the table of auxiliary data on cells or points; `None` for other keys.
pub(super) fn of_aux(
    key: TableKind,
    extent: usize,
    on: &Discretisation,
    values: &[AuxValues],
    batches: &Batches,
    precision: Precision,
) -> Result<Option<HostTable>, BuildError> {
    let mut batches = batches;
    let (aux, numbers, expected): (usize, Option<(&[f64], &[f64])>, _) = match key {
        TableKind::AuxCells(trace) => {
            let (aux, side) = of_side(trace, values.len());
            batches = batches.on(side).unwrap_or(batches);
            match values.get(aux) {
                Some(AuxValues::Cells(numbers)) => (aux, Some((numbers, numbers.beyond())), ""),
                _ => (aux, None, "one value a cell"),
            }
        }
        TableKind::AuxPoints(aux) => match values.get(aux) {
            Some(AuxValues::Points(numbers)) => (aux, Some((numbers, &[])), ""),
            _ => (aux, None, "one value a quadrature point"),
        },
        _ => return Ok(None),
    };
    let numbers = numbers.ok_or(BuildError::Aux { aux, expected })?;
    rows(numbers, aux, extent, on, batches, precision).map(Some)
}

/// Returns the index of a field or of data among those of a form, and the side of a trace; `count` is their number.
/// Traces of the outside follow those of the inside ([`Owner`]).
fn of_side(trace: usize, count: usize) -> (usize, Side) {
    match trace.checked_sub(count) {
        None => (trace, Side::Inside),
        Some(outside) => (outside, Side::Outside),
    }
}

/// Returns the owner of a table among the form's fields and data, and the batches of the cells on its side.
fn on_side<'a>(
    owner: Owner,
    on: &Discretisation,
    batches: &'a Batches,
) -> Result<(Owner, &'a Batches), BuildError> {
    let (own, side, error) = match owner {
        Owner::Field(trace) | Owner::Result(trace) => {
            let (field, side) = of_side(trace, on.fields.len());
            (Owner::Field(field), side, BuildError::Field { field: trace })
        }
        Owner::Aux(trace) => {
            let (aux, side) = of_side(trace, on.aux.len());
            (Owner::Aux(aux), side, BuildError::Aux { aux: trace, expected: "values at nodes" })
        }
    };
    Ok((own, batches.on(side).ok_or(error)?))
}

/// Builds the geometry table of some cells.
fn geometry_of(
    mesh: &Mesh,
    batches: &Batches,
    geometry: Geometry,
    numbers: usize,
    precision: Precision,
) -> Result<Option<HostTable>, BuildError> {
    Ok(match precision {
        Precision::F64 => geometry::table(mesh, batches, geometry, numbers)?.map(HostTable::F64),
        Precision::F32 => geometry::table(mesh, batches, geometry, numbers)?.map(HostTable::F32),
    })
}

/// Joins the entries of each batch on both sides.
fn joined<T: PlainNumber>(inside: &[T], outside: &[T], batches: usize) -> Buffer<T> {
    let each = (inside.len() / batches.max(1)).max(1);
    let pairs = inside.chunks(each).zip(outside.chunks(each));
    pairs.flat_map(|(inside, outside)| inside.iter().chain(outside)).copied().collect()
}

/// Joins tables of both sides of pairs of cells batch by batch.
fn both_sides(
    inside: Option<HostTable>,
    outside: Option<HostTable>,
    batches: usize,
) -> Option<HostTable> {
    match (inside?, outside?) {
        (HostTable::F64(a), HostTable::F64(b)) => Some(HostTable::F64(joined(&a, &b, batches))),
        (HostTable::F32(a), HostTable::F32(b)) => Some(HostTable::F32(joined(&a, &b, batches))),
        _ => None,
    }
}

/// Returns the rows of a table of nodes or transfer targets, which are not listed in host memory; `None` for other
/// tables.
pub(super) fn rows_of<'a>(
    key: TableKind,
    extent: usize,
    on: &'a Discretisation,
    batches: &'a Batches,
    layout: &'a VectorLayout,
) -> Result<Option<IndexRows<'a>>, BuildError> {
    Ok(match key {
        TableKind::Map(Owner::Result(_), _) => None,
        TableKind::Map(owner, Indices::Nodes | Indices::Tiles) => {
            let (owner, batches) = on_side(owner, on, batches)?;
            let (space, _) = space_of(owner, on)?;
            let places = (0..space.nodes_per_cell()).collect();
            Some(node_rows(owner, (space, places), batches, layout))
        }
        TableKind::Lines(owner, Indices::Nodes | Indices::Tiles, axis) => {
            let (owner, batches) = on_side(owner, on, batches)?;
            let (space, _) = space_of(owner, on)?;
            let places = places_by_lines(space.element().degree() + 1, on.mesh.dim(), axis);
            Some(node_rows(owner, (space, places), batches, layout))
        }
        TableKind::Rows(owner, Indices::Nodes | Indices::Tiles) => {
            let (owner, batches) = on_side(owner, on, batches)?;
            let Owner::Field(field) = owner else { return Ok(None) };
            let (space, _) = space_of(owner, on)?;
            let number = number(field, layout);
            Some(batches.rows_along_first_axes(space, move |node| number(node) as u32))
        }
        TableKind::Targets => Some(targets(extent, on, batches)?),
        _ => None,
    })
}

/// Returns the rows of the nodes of a space, at places in a row.
fn node_rows<'a>(
    owner: Owner,
    (space, places): (&'a Space, Vec<usize>),
    batches: &'a Batches,
    layout: &'a VectorLayout,
) -> IndexRows<'a> {
    // Field nodes have device numbers, nodes of auxiliary data do not.
    match owner {
        Owner::Field(field) => {
            let number = number(field, layout);
            batches.node_rows(space, places, move |node| number(node) as u32)
        }
        Owner::Aux(_) | Owner::Result(_) => batches.node_rows(space, places, |node| node),
    }
}

/// Returns the degrees of freedom of a finer space at the points of the cells.
fn targets<'a>(
    extent: usize,
    on: &'a Discretisation,
    batches: &'a Batches,
) -> Result<IndexRows<'a>, BuildError> {
    let (lanes, all) = (batches.lanes(), on.mesh.n_cells());
    let Some(targets) = on.targets.as_ref().filter(|own| own.of_cell * lanes == extent) else {
        return Err(BuildError::NoTargets);
    };
    if targets.rows.n_cells() != all {
        return Err(BuildError::NoTargets);
    }
    Ok(batches.cell_rows(targets.of_cell, |cell, row| targets.rows.row(cell, row)))
}

/// Returns the hanging-node word of each lane's cell, rotated for its facet.
fn hanging(mesh: &Mesh, batches: &Batches) -> Buffer<u32> {
    let lanes = batches.cells().iter().enumerate();
    let word = |(lane, &cell): (usize, &u32)| {
        let own = mesh.hanging_word(cell as usize);
        let Some(local) = batches.local(lane) else { return own };
        let rotated = turned(own, usize::from(local), mesh.dim());
        oriented(rotated, mesh.cell(), batches.orientation(lane))
    };
    lanes.map(word).collect()
}

/// Returns the same for the cells of all lanes, `[batch][side][lane]`.
fn hanging_words(mesh: &Mesh, batches: &Batches) -> Buffer<u32> {
    let inside = hanging(mesh, batches);
    match batches.outside() {
        Some(outside) => joined(&inside, &hanging(mesh, outside), batches.len()),
        None => inside,
    }
}

/// Returns the coordinates of the nodes of a space of degree 1, in the layout of its degrees of freedom.
fn coordinates<T: Real>(
    key: TableKind,
    mesh: &Mesh,
    space: &Space,
    layout: &VectorLayout,
) -> Buffer<T> {
    let own = layout.field(0);
    if let TableKind::Axis(axis) = key {
        return geometry::coordinates_along(mesh, space, axis, |node| own.number(node));
    }
    if own.is_tiled() {
        return geometry::coordinates_in_tiles(mesh, space, layout);
    }
    geometry::coordinates(mesh, space, |node| own.number(node))
}

/// Returns the space of a quantity, and its constraints if it is a field.
fn space_of(
    owner: Owner,
    on: &Discretisation,
) -> Result<(&Space, Option<&Constraints>), BuildError> {
    match owner {
        Owner::Field(field) | Owner::Result(field) => match on.fields.get(field) {
            Some(field) => Ok((&field.space, Some(&field.constraints))),
            None => Err(BuildError::Field { field }),
        },
        Owner::Aux(aux) => match on.aux.get(aux) {
            Some(AuxValues::Nodes(space, _)) => Ok((space, None)),
            _ => Err(BuildError::Aux { aux, expected: "values at nodes" }),
        },
    }
}

/// Builds an index array.
fn map(
    owner: Owner,
    indices: Indices,
    on: &Discretisation,
    batches: &Batches,
    layout: &VectorLayout,
) -> Result<Buffer<u32>, BuildError> {
    let (owner, batches) = on_side(owner, on, batches)?;
    let (space, constraints) = space_of(owner, on)?;
    let mut map = match (indices, constraints) {
        (Indices::Nodes | Indices::Tiles, _) => batches.nodes(space),
        (Indices::Runs, _) => batches.runs(space).ok_or(BuildError::NoRuns)?,
        (Indices::Cells, _) => batches.starts(space).ok_or(BuildError::NoRuns)?,
        (Indices::Dofs, Some(constraints)) => batches.dofs(space, constraints),
        (Indices::Dofs, None) | (Indices::Batches, _) => return Err(BuildError::NoRuns),
    };
    // Field nodes have device numbers, nodes of auxiliary data do not.
    if let Owner::Field(field) = owner {
        renumber(&mut map, field, indices, layout);
    }
    Ok(map)
}

/// Converts nodes or degrees of freedom of a field to device positions.
fn renumber(map: &mut [u32], field: usize, indices: Indices, layout: &VectorLayout) {
    if layout.is_plain() {
        return;
    }
    let own = layout.field(field);
    let number: &(dyn Fn(usize) -> usize + Sync) = match indices {
        Indices::Nodes | Indices::Tiles => &|node| own.index(node),
        Indices::Dofs => &|dof| own.place(dof),
        // Runs require the natural order.
        Indices::Runs | Indices::Cells | Indices::Batches => return,
    };
    map.par_chunks_mut(4096).each(|part| {
        let numbers = part.iter_mut().filter(|number| **number != CONSTRAINED);
        numbers.for_each(|own| *own = number(*own as usize) as u32);
    });
}

/// Returns the device number of a node of a field.
fn number(field: usize, layout: &VectorLayout) -> impl Fn(u32) -> usize + Sync + use<'_> {
    let own = (!layout.is_plain()).then(|| layout.field(field));
    move |node| own.map_or(node as usize, |own| own.index(node as usize))
}

/// Returns the slots of a batch for a field.
fn slots_of(field: usize, slots: &[Slots]) -> Result<Slots, BuildError> {
    slots.get(field).copied().ok_or(BuildError::NoSlots { field })
}

/// Builds the index array of the slots of a field ([`Role::Slots`]), like [`map`].
fn slots(
    field: usize,
    indices: Indices,
    on: &Discretisation,
    batches: &Batches,
    layout: &VectorLayout,
    slots: Slots,
) -> Result<Buffer<u32>, BuildError> {
    let (space, constraints) = space_of(Owner::Field(field), on)?;
    let number = number(field, layout);
    let mut table = match (indices, constraints) {
        (Indices::Nodes | Indices::Tiles, _) => batches.slot_nodes(space, slots, &number),
        (Indices::Dofs, Some(constraints)) => batches.slot_dofs(space, constraints, slots, &number),
        (Indices::Runs | Indices::Cells | Indices::Batches, _) | (Indices::Dofs, None) => {
            return Err(BuildError::NoRuns);
        }
    };
    renumber(&mut table, field, indices, layout);
    Ok(table)
}

/// Returns the place of each node of a tensor cell in line order along an axis: nodes that differ only along it are
/// farthest apart. `n` is the number of nodes per direction.
fn places_by_lines(n: usize, dim: usize, axis: usize) -> Vec<usize> {
    let (nodes, inner) = (n.pow(dim as u32), n.pow(axis as u32));
    let place = |node: usize| {
        // Digits below the axis, of the axis, above it.
        let (below, at, above) = (node % inner, node / inner % n, node / (inner * n));
        at * (nodes / n) + above * inner + below
    };
    (0..nodes).map(place).collect()
}

/// Moves the nodes of each batch to their places; a node has `each` entries.
fn by_places(map: &[u32], places: &[usize], each: usize) -> Buffer<u32> {
    let mut moved: Buffer<u32> = Buffer::zeroed(map.len());
    if map.is_empty() {
        return moved;
    }
    let extent = places.len() * each;
    let batches = moved.par_chunks_mut(extent).zip(map.par_chunks(extent));
    batches.with_min_len(64).each(|(moved, batch)| {
        for (&place, entries) in places.iter().zip(batch.chunks(each)) {
            moved[place * each..][..each].copy_from_slice(entries);
        }
    });
    moved
}

/// Builds a table of values of the cells of a mesh and beyond; `extent` numbers per batch.
fn rows(
    (values, beyond): (&[f64], &[f64]),
    aux: usize,
    extent: usize,
    on: &Discretisation,
    batches: &Batches,
    precision: Precision,
) -> Result<HostTable, BuildError> {
    let entries = extent / batches.lanes();
    let expected = entries * on.mesh.n_cells();
    if values.len() != expected {
        return Err(BuildError::AuxLength { aux, expected, found: values.len() });
    }
    let last = batches.cells().iter().max().map_or(0, |&cell| cell as usize + 1);
    let (wanted, known) = (last * entries, expected + beyond.len());
    if wanted > known {
        return Err(BuildError::AuxLength { aux, expected: wanted, found: known });
    }
    fn rows<'v, T: Real + PlainNumber>(
        batches: &Batches,
        entries: usize,
        values: impl Fn(usize) -> &'v [f64] + Sync,
    ) -> Buffer<T> {
        batches.table(entries, |cell, row| {
            for (entry, &value) in row.iter_mut().zip(values(cell)) {
                *entry = T::from_f64(value);
            }
        })
    }
    let of_cell = |cell: usize| {
        let first = cell * entries;
        values
            .get(first..)
            .filter(|own| !own.is_empty())
            .unwrap_or_else(|| &beyond[first - expected..])
    };
    Ok(match precision {
        Precision::F64 => HostTable::F64(rows(batches, entries, of_cell)),
        Precision::F32 => HostTable::F32(rows(batches, entries, of_cell)),
    })
}
