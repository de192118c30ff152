//! What owners of unknowns add up: batches and the unknowns of their cells → for each unknown the places of its
//! numbers in what cells store ([`Role::CellResult`]), and the launch that adds them.
//!
//! ```text
//! y_i += Σ numbers[places[k]],  k = starts[i] … starts[i + 1] − 1: in the order of the cells
//! ```
//!
//! Constrained unknowns and the cells that fill up a batch are in no list. The order depends on the mesh alone, so that
//! all runs on a device give the same bits.

use crate::algebra::vector::Precision;
use crate::device::{Array, Device, DeviceError, Kind, Layout, Module, Part};
use crate::operator::BuildError;
use crate::operator::batch::Batches;
use crate::space::discretisation::Field;
use kernels_gen::abi::{KernelAbi, Role};
use kernels_gen::dialect::c::sum::{NAME, UNKNOWNS, sum_of_cells};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The lists of one block.
struct Lists {
    starts: Array,
    places: Array,
}

/// The lists of all blocks, by their number, and the room for what their cells store.
pub(super) struct Owners {
    module: Module,
    /// Those of each block, by field.
    lists: BTreeMap<usize, BTreeMap<usize, Lists>>,
    /// For each field as large as the largest block needs. Locked from a kernel's launch to that of its sums.
    numbers: Mutex<Vec<Array>>,
    /// The groups of threads that own the unknowns of each field.
    groups: Vec<Range<usize>>,
}

/// The length of what cells store in all batches for a field, for kernels that do so.
fn stored(abi: &KernelAbi, field: usize, batches: &Batches) -> Option<usize> {
    let own = |role: Role| role == Role::CellResult(field);
    let argument = abi.arguments.iter().find(|argument| own(argument.role))?;
    Some(argument.extent * batches.len())
}

/// Whether a kernel stores what cells contribute.
fn writes_cells(abi: &KernelAbi) -> bool {
    abi.arguments.iter().any(|argument| matches!(argument.role, Role::CellResult(_)))
}

impl Owners {
    /// The lists for the kernels that store what cells contribute; nothing if there are none. Each comes with its
    /// block.
    pub(super) fn new<'a>(
        device: &dyn Device,
        precision: Precision,
        layout: &Layout,
        fields: &[Field],
        kernels: impl Iterator<Item = (&'a KernelAbi, usize, &'a Batches)>,
    ) -> Result<Option<Self>, BuildError> {
        let mut lists = BTreeMap::<usize, BTreeMap<usize, Lists>>::new();
        let mut most = vec![None; fields.len()];
        for (abi, block, batches) in kernels {
            if !writes_cells(abi) {
                continue;
            }
            let lists = lists.entry(block).or_default();
            for (number, field) in fields.iter().enumerate() {
                let Some(len) = stored(abi, number, batches) else { continue };
                most[number] = most[number].max(Some(len));
                if lists.contains_key(&number) {
                    continue;
                }
                let (starts, places) = make(field, layout.field(number), batches)?;
                let (starts, places) = (device.upload(&starts)?, device.upload(&places)?);
                lists.insert(number, Lists { starts, places });
            }
        }
        if lists.is_empty() {
            return Ok(None);
        }
        let module = device.load(&sum_of_cells(device.words(), precision))?;
        let room = |len: Option<usize>| device.zeros(Kind::from(precision), len.unwrap_or(0));
        let numbers = Mutex::new(most.into_iter().map(room).collect::<Result<_, _>>()?);
        let groups = fields.iter().enumerate().map(|(number, field)| {
            let part = layout.field(number);
            let first = part.first() / UNKNOWNS;
            first..first + part.len(field.space.n_dofs()).div_ceil(UNKNOWNS)
        });
        Ok(Some(Self { module, lists, numbers, groups: groups.collect() }))
    }

    /// Has `launch` store the numbers of a block's cells, and adds them up in `y`.
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
        for (field, (numbers, groups)) in numbers.iter().zip(&self.groups).enumerate() {
            let Some(Lists { starts, places }) = self.lists_of(block, field) else { continue };
            device.launch(kernel, groups.clone(), &[starts, places, numbers, y])?;
        }
        Ok(())
    }

    /// The lists of a block for a field.
    fn lists_of(&self, block: usize, field: usize) -> Option<&Lists> {
        self.lists.get(&block).and_then(|lists| lists.get(&field))
    }

    /// Bytes that a block streams: its lists, and its numbers to memory and back.
    pub(super) fn bytes(&self, block: usize, abi: &KernelAbi, batches: &Batches) -> usize {
        let own = (0..self.groups.len()).map(|field| {
            let lists = self.lists_of(block, field);
            let lists = lists.map_or(0, |lists| lists.starts.bytes() + lists.places.bytes());
            lists + 2 * abi.precision.bytes() * stored(abi, field, batches).unwrap_or(0)
        });
        own.sum()
    }
}

/// Where each unknown's list starts, the unknowns filled up to full groups of threads, and the lists.
fn make(field: &Field, part: &Part, batches: &Batches) -> Result<(Vec<u32>, Vec<u32>), BuildError> {
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
