//! Owner summation: for each degree of freedom, the list of its contributions stored by cells ([`Role::CellResult`]),
//! and the launch that sums them.
//!
//! ```text
//! y_i += Σ numbers[places[k]],  k = starts[i] … starts[i + 1] − 1: in the order of the cells
//! ```
//!
//! Both cells of a pair store theirs: fields of the outside follow those of the inside ([`kernels_gen::abi::Owner`]).
//! Constrained degrees of freedom and padding lanes have no list entries. The order depends on the mesh only, so that
//! all runs on a device give identical bits.

use crate::algebra::vector::Precision;
use crate::device::{Array, Device, DeviceError, ElementKind, FieldLayout, Module, VectorLayout};
use crate::operator::BuildError;
use crate::operator::batch::Batches;
use crate::space::discretisation::Field;
use fem_dsl::point::Side;
use kernels_gen::abi::{KernelAbi, Role};
use kernels_gen::dialect::c::sum::{NAME, UNKNOWNS, sum_of_cells};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Lists of one block.
struct BlockLists {
    starts: Array,
    places: Array,
}

/// Lists of all blocks, and the buffer of cell contributions.
pub(super) struct OwnerSums {
    module: Module,
    /// Lists by block and field, or trace.
    lists: BTreeMap<usize, BTreeMap<usize, BlockLists>>,
    /// Buffer of each field on each side, sized for the largest block. Locked from a kernel's launch to that of its sums.
    numbers: Mutex<Vec<Array>>,
    /// Thread groups of each field's degrees of freedom.
    groups: Vec<Range<usize>>,
}

/// Returns the number of contributions stored for a field in all batches, for kernels that store them.
fn stored(abi: &KernelAbi, field: usize, batches: &Batches) -> Option<usize> {
    let own = |role: Role| role == Role::CellResult(field);
    let argument = abi.arguments.iter().find(|argument| own(argument.role))?;
    Some(argument.extent * batches.len())
}

/// Returns whether a kernel stores cell contributions.
fn writes_cells(abi: &KernelAbi) -> bool {
    abi.arguments.iter().any(|argument| matches!(argument.role, Role::CellResult(_)))
}

impl OwnerSums {
    /// Builds the lists of the kernels that store cell contributions, given with their blocks; `None` without such
    /// kernels.
    pub(super) fn new<'a>(
        device: &dyn Device,
        precision: Precision,
        layout: &VectorLayout,
        fields: &[Field],
        kernels: impl Iterator<Item = (&'a KernelAbi, usize, &'a Batches)>,
    ) -> Result<Option<Self>, BuildError> {
        let mut lists = BTreeMap::<usize, BTreeMap<usize, BlockLists>>::new();
        let mut most = vec![None; 2 * fields.len()];
        for (abi, block, batches) in kernels {
            if !writes_cells(abi) {
                continue;
            }
            let lists = lists.entry(block).or_default();
            let sides = Side::ALL.into_iter().filter_map(|side| batches.on(side));
            let traces = sides.flat_map(|of| fields.iter().enumerate().map(move |own| (of, own)));
            for (number, (batches, (of_side, field))) in traces.enumerate() {
                let Some(len) = stored(abi, number, batches) else { continue };
                most[number] = most[number].max(Some(len));
                if lists.contains_key(&number) {
                    continue;
                }
                let (starts, places) = make(field, layout.field(of_side), batches)?;
                let (starts, places) = (device.upload(&starts)?, device.upload(&places)?);
                lists.insert(number, BlockLists { starts, places });
            }
        }
        if lists.is_empty() {
            return Ok(None);
        }
        let module = device.load(&sum_of_cells(device.words(), precision))?;
        let buffer =
            |len: Option<usize>| device.zeros(ElementKind::from(precision), len.unwrap_or(0));
        let numbers = Mutex::new(most.into_iter().map(buffer).collect::<Result<_, _>>()?);
        let groups = fields.iter().enumerate().map(|(number, field)| {
            let part = layout.field(number);
            let first = part.first() / UNKNOWNS;
            first..first + part.len(field.space.n_dofs()).div_ceil(UNKNOWNS)
        });
        Ok(Some(Self { module, lists, numbers, groups: groups.collect() }))
    }

    /// Makes `launch` store the contributions of a block's cells, and adds them to `y`.
    pub(super) fn add<E: From<DeviceError>>(
        &self,
        device: &dyn Device,
        block: usize,
        y: &Array,
        launch: impl FnOnce(&[Array]) -> Result<(), E>,
    ) -> Result<(), E> {
        let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        launch(&numbers)?;
        let kernel = self.module.kernel(NAME).map_err(DeviceError::from)?;
        for (trace, (numbers, groups)) in numbers.iter().zip(self.groups.iter().cycle()).enumerate()
        {
            let Some(BlockLists { starts, places }) = self.lists_of(block, trace) else { continue };
            device.launch(kernel, groups.clone(), &[starts, places, numbers, y])?;
        }
        Ok(())
    }

    /// Returns the lists of a block for a field.
    fn lists_of(&self, block: usize, field: usize) -> Option<&BlockLists> {
        self.lists.get(&block).and_then(|lists| lists.get(&field))
    }

    /// Returns the bytes that a block streams: its lists, and its contributions, written and read.
    pub(super) fn bytes(&self, block: usize, abi: &KernelAbi, batches: &Batches) -> usize {
        let own = (0..2 * self.groups.len()).map(|field| {
            let lists = self.lists_of(block, field);
            let lists = lists.map_or(0, |lists| lists.starts.bytes() + lists.places.bytes());
            lists + 2 * abi.precision.bytes() * stored(abi, field, batches).unwrap_or(0)
        });
        own.sum()
    }
}

/// Builds the offsets of each degree of freedom's list, padded to full thread groups, and the lists.
fn make(
    field: &Field,
    part: &FieldLayout,
    batches: &Batches,
) -> Result<(Vec<u32>, Vec<u32>), BuildError> {
    let (space, constraints) = (&field.space, &field.constraints);
    let (components, nodes) = (space.components(), space.nodes_per_cell());
    let (lanes, entries) = (batches.lanes(), nodes * components);
    let numbers = batches.len() * lanes * entries;
    if u32::try_from(numbers).is_err() {
        return Err(BuildError::TooManyNumbers { numbers });
    }
    let cells = || {
        batches
            .each_cell(space)
            .map(|(place, nodes)| (nodes, place / lanes * entries * lanes + place % lanes))
    };
    let len = part.first() + part.len(space.n_dofs());
    let mut starts = vec![0_u32; len.next_multiple_of(UNKNOWNS) + 1];
    for (nodes, _) in cells() {
        for &node in &nodes {
            let first = node as usize * components;
            for dof in (first..first + components).filter(|&dof| !constraints.is_constrained(dof)) {
                starts[part.place(dof) + 1] += 1;
            }
        }
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut places = vec![0_u32; starts[starts.len() - 1] as usize];
    let mut next = starts.clone();
    for (nodes, place) in cells() {
        for (node, &number) in nodes.iter().enumerate() {
            for c in 0..components {
                let dof = number as usize * components + c;
                if !constraints.is_constrained(dof) {
                    let next = &mut next[part.place(dof)];
                    places[*next as usize] = (place + (node * components + c) * lanes) as u32;
                    *next += 1;
                }
            }
        }
    }
    Ok((starts, places))
}
