//! What owners of unknowns add up: batches and the unknowns of their cells → for each unknown the places of its
//! numbers in what cells store ([`Role::CellResult`]), and the launch that adds them.
//!
//! ```text
//! y_i += Σ numbers[places[k]],  k = starts[i] … starts[i + 1] − 1: in the order of the cells
//! ```
//!
//! Constrained unknowns and the cells that fill up a batch are in no list. The order depends on the mesh alone, so that
//! all runs on a device give the same bits.

use crate::batch::Batches;
use crate::device::{Array, Device, DeviceError, Kind, Layout, Module};
use crate::discretisation::Field;
use crate::operator::BuildError;
use crate::vector::Precision;
use kernels_gen::abi::{KernelAbi, Role};
use kernels_gen::dialect::c::sum::{NAME, UNKNOWNS, sum_of_cells};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The lists of one group of batches.
struct Lists {
    starts: Array,
    places: Array,
}

/// The lists of all groups of batches, which a key `K` names, and the room for what their cells store.
pub(super) struct Owners<K> {
    module: Module,
    lists: BTreeMap<K, Lists>,
    /// As large as the largest group needs. Locked from a kernel's launch to that of its sum.
    numbers: Mutex<Array>,
}

/// The length of what cells store in all batches, for kernels that do so.
fn stored(abi: &KernelAbi, batches: &Batches) -> Option<usize> {
    let argument = abi.arguments.iter().find(|argument| argument.role == Role::CellResult(0))?;
    Some(argument.extent * batches.len())
}

impl<K: Ord + Copy> Owners<K> {
    /// The lists for the kernels that store what cells contribute; nothing if there are none. Each comes with its
    /// group.
    pub(super) fn new<'a>(
        device: &dyn Device,
        precision: Precision,
        layout: &Layout,
        field: Option<&Field>,
        kernels: impl Iterator<Item = (&'a KernelAbi, K, &'a Batches)>,
    ) -> Result<Option<Self>, BuildError> {
        let (mut lists, mut most) = (BTreeMap::new(), None);
        for (abi, key, batches) in kernels {
            let Some(len) = stored(abi, batches) else { continue };
            most = most.max(Some(len));
            if lists.contains_key(&key) {
                continue;
            }
            let field = field.ok_or(BuildError::Field { field: 0 })?;
            let (starts, places) = make(field, layout, batches)?;
            let (starts, places) = (device.upload(&starts)?, device.upload(&places)?);
            lists.insert(key, Lists { starts, places });
        }
        let Some(len) = most else { return Ok(None) };
        let module = device.load(&sum_of_cells(device.words(), precision))?;
        let numbers = Mutex::new(device.zeros(Kind::from(precision), len)?);
        Ok(Some(Self { module, lists, numbers }))
    }

    /// Has `launch` store the numbers of a group's cells, and adds them up in `y`.
    pub(super) fn add<E: From<DeviceError>>(
        &self,
        device: &dyn Device,
        key: K,
        y: &Array,
        launch: impl FnOnce(&Array) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(Lists { starts, places }) = self.lists.get(&key) else { return Ok(()) };
        let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        launch(&numbers)?;
        let kernel = self.module.kernel(NAME).map_err(DeviceError::from)?;
        device.launch(kernel, 0..y.len().div_ceil(UNKNOWNS), &[starts, places, &numbers, y])?;
        Ok(())
    }

    /// Bytes that a group streams: its lists, and its numbers to memory and back.
    pub(super) fn bytes(&self, key: K, abi: &KernelAbi, batches: &Batches) -> usize {
        let lists = self.lists.get(&key);
        let lists = lists.map_or(0, |lists| lists.starts.bytes() + lists.places.bytes());
        lists + 2 * abi.precision.bytes() * stored(abi, batches).unwrap_or(0)
    }
}

/// Where each unknown's list starts, the unknowns filled up to full groups of threads, and the lists.
fn make(
    field: &Field,
    layout: &Layout,
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
        let batches = batches.cells().chunks(lanes).zip(batches.active()).enumerate();
        batches.flat_map(|(batch, (cells, &active))| {
            let first = batch * entries * lanes;
            cells[..active as usize]
                .iter()
                .enumerate()
                .map(move |(lane, &cell)| (cell, first + lane))
        })
    };
    let len = layout.len(space.n_dofs());
    let mut starts = vec![0_u32; len.next_multiple_of(UNKNOWNS) + 1];
    for (cell, _) in cells() {
        for &node in space.cell_nodes(cell as usize) {
            let first = node as usize * components;
            for dof in (first..first + components).filter(|&dof| !constraints.is_constrained(dof)) {
                starts[layout.place(dof) + 1] += 1;
            }
        }
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut places = vec![0_u32; starts[starts.len() - 1] as usize];
    let mut next = starts.clone();
    for (cell, place) in cells() {
        for (node, &number) in space.cell_nodes(cell as usize).iter().enumerate() {
            for c in 0..components {
                let dof = number as usize * components + c;
                if !constraints.is_constrained(dof) {
                    let next = &mut next[layout.place(dof)];
                    places[*next as usize] = (place + (node * components + c) * lanes) as u32;
                    *next += 1;
                }
            }
        }
    }
    Ok((starts, places))
}
