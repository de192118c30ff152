//! Computations with sparse matrices in device memory.

use super::kernels::MatrixKernels;
use super::lists::SummationLists;
use super::stored::{EntryOrder, StoredMatrix, VendorMatrix};
use crate::algebra::vector::{Precision, Vector};
use crate::device::acoo::{AcooAssembly, ElementPositions};
use crate::device::{Arithmetic, Device, DeviceError, Module};
use crate::operator::memory::{MemoryArray, device_array, device_array_mut};
use kernels_gen::dialect::GeneratedSource;
use kernels_gen::dialect::c::sum::{ALONE, NAME, UNKNOWNS, sum_of_cells, sum_of_cells_alone};
use kernels_gen::dialect::c::{Vocabulary, rows, slices};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Computations in device memory; kernels are loaded on demand.
pub(super) struct DeviceMatrixKernels {
    arithmetic: Arc<Arithmetic>,
    sums: OnceLock<Module>,
    sums_alone: OnceLock<Module>,
    products_by_rows: OnceLock<Module>,
    products_by_slices: OnceLock<Module>,
    /// Merges element entries into rows, if prepared.
    acoo: Option<AcooAssembly>,
}

impl DeviceMatrixKernels {
    /// Creates the computations of a device.
    pub(super) fn new(arithmetic: Arc<Arithmetic>) -> Self {
        let module = OnceLock::new;
        Self {
            arithmetic,
            sums: module(),
            sums_alone: module(),
            products_by_rows: module(),
            products_by_slices: module(),
            acoo: None,
        }
    }

    fn device(&self) -> &dyn Device {
        &**self.arithmetic.device()
    }

    /// Returns a module, loaded from its source on first use.
    fn load<'o>(
        &self,
        known: &'o OnceLock<Module>,
        source: impl FnOnce(&Vocabulary, Precision) -> GeneratedSource,
    ) -> Result<&'o Module, DeviceError> {
        if let Some(known) = known.get() {
            return Ok(known);
        }
        let (device, precision) = (self.device(), self.arithmetic.precision());
        let module = device.load(&source(device.words(), precision))?;
        Ok(known.get_or_init(|| module))
    }
}

impl MatrixKernels for DeviceMatrixKernels {
    fn sum(
        &self,
        stored: &[(&MemoryArray, &SummationLists)],
        entries: &mut MemoryArray,
    ) -> Result<(), DeviceError> {
        let (device, entries) = (self.device(), entries.device_mut()?);
        let others = self.load(&self.sums, sum_of_cells)?.kernel(NAME)?;
        let mut kernel = others;
        if !stored.is_empty() && entries.len().is_multiple_of(UNKNOWNS) {
            kernel = self.load(&self.sums_alone, sum_of_cells_alone)?.kernel(ALONE)?;
        } else {
            device.clear(entries)?;
        }
        let groups = 0..entries.len().div_ceil(UNKNOWNS);
        for (stored, lists) in stored {
            let [starts, elements] = [lists.starts.device()?, lists.elements.device()?];
            let arguments = [starts, elements, stored.device()?, entries];
            device.launch(kernel, groups.clone(), &arguments)?;
            kernel = others;
        }
        Ok(())
    }

    fn prepare_merge(
        &mut self,
        elements: &ElementPositions,
        len: usize,
    ) -> Result<(), DeviceError> {
        let (device, precision) = (self.arithmetic.device(), self.arithmetic.precision());
        let rows = len.next_multiple_of(rows::ROWS);
        self.acoo = Some(AcooAssembly::new(device, precision, elements, (len, rows))?);
        Ok(())
    }

    fn merge(
        &self,
        elements: &ElementPositions,
        first: MemoryArray,
        others: Vec<(usize, MemoryArray)>,
        _: usize,
    ) -> Result<[MemoryArray; 3], DeviceError> {
        let (Some(acoo), MemoryArray::Device(mut cells)) = (&self.acoo, first) else {
            return Err(DeviceError::Foreign);
        };
        for (first, own) in &others {
            acoo.append(own.device()?, &mut cells, *first)?;
        }
        // The last entries are the diagonals of constrained degrees of freedom.
        acoo.ones(&mut cells, elements.works.last().map_or(0, |work| work.first))?;
        drop(others);
        let made = acoo.assemble(cells)?;
        Ok([made.starts, made.columns, made.entries].map(MemoryArray::Device))
    }

    fn vendor(
        &self,
        [starts, columns, entries]: [&MemoryArray; 3],
        len: usize,
    ) -> Result<Option<VendorMatrix>, DeviceError> {
        let arrays = [starts.device()?, columns.device()?, entries.device()?];
        Ok(self.device().sparse_in_place(len, arrays)?.map(Mutex::new))
    }

    fn multiply(&self, a: &StoredMatrix, x: &Vector, y: &mut Vector) -> Result<(), DeviceError> {
        self.arithmetic.check()?;
        let (x, y) = (device_array(x)?, device_array_mut(y)?);
        if let Some(vendor) = &a.vendor {
            return vendor.lock().unwrap_or_else(PoisonError::into_inner).apply(x, y);
        }
        // Padding entries have no row.
        if y.len() > a.n_dofs {
            self.arithmetic.clear(y, y.len())?;
        }
        let (module, name, of_group) = match a.order {
            EntryOrder::Rows => {
                let module = self.load(&self.products_by_rows, rows::rows_times_vector)?;
                (module, rows::NAME, rows::ROWS)
            }
            EntryOrder::Slices => {
                let module = self.load(&self.products_by_slices, slices::slices_times_vector)?;
                (module, slices::NAME, slices::SLICES)
            }
        };
        let arrays = [a.starts.device()?, a.columns.device()?, a.entries.device()?];
        let groups = 0..(arrays[0].len() - 1).div_ceil(of_group);
        let arguments = [arrays[0], arrays[1], arrays[2], x, y];
        self.device().launch(module.kernel(name)?, groups, &arguments)
    }
}
