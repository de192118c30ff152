//! Sum of the subdomain matrices of all processes on rank 0, in the numbering of the whole mesh.
//!
//! ```text
//! A_ij = Σ of the local entries, in rank order
//! ```
//!
//! Ranks send their entries to rank 0 one after another, in pieces. No message exceeds the 32-bit counts of MPI, and
//! rank 0 buffers one piece only.

use super::Csr;
use super::pattern::transposed;
use crate::processes::{Parcel, ProcessGroup, any};
use crate::support::memory::{InsufficientMemory, MemoryBudget};

/// Number of entries per message: row, column and value each, 96 MiB.
const PIECE: usize = 1 << 22;

/// Bytes per entry on rank 0: as received, sorted by rows, and summed.
const BYTES: f64 = 16.0 + 12.0 + 12.0;

/// An entry of the whole matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MatrixEntry {
    row: u32,
    column: u32,
    value: f64,
}

impl Csr {
    /// Returns the sum of the matrices of all processes, with n rows, on rank 0; `None` on the others. `places` maps
    /// local rows and columns to the whole numbering. Exact zeros are removed. Collective.
    ///
    /// # Errors
    ///
    /// On rank 0, more entries than fit into memory; the other ranks return no error in this case.
    pub(crate) fn gathered(
        &self,
        places: &[usize],
        n: usize,
        group: &dyn ProcessGroup,
    ) -> Result<Option<Self>, InsufficientMemory> {
        let counts: Vec<usize> = group
            .gather(&(self.values.len() as u64).to_le_bytes())
            .into_iter()
            .map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes) as usize)
            .collect();
        let (is_root, all) = (group.rank() == 0, counts.iter().sum::<usize>());
        let budget = match is_root {
            true => MemoryBudget::check(
                || format!("the matrix at the first process, of {all} entries of all"),
                BYTES * all as f64,
            ),
            false => Ok(()),
        };
        if any(group, budget.is_err()) {
            return budget.map(|()| None);
        }
        let own = |row: usize| {
            self.row(row).map(move |(column, value)| MatrixEntry {
                row: places[row] as u32,
                column: places[column] as u32,
                value,
            })
        };
        let mut own = (0..self.size()).flat_map(own);
        let mut entries = Vec::new();
        if is_root {
            entries.reserve_exact(all);
            entries.extend(own.by_ref());
        }
        for (rank, &count) in counts.iter().enumerate().skip(1) {
            for start in (0..count).step_by(PIECE) {
                let length = PIECE.min(count - start);
                let mut parcels = Vec::new();
                if group.rank() == rank {
                    let sent = own.by_ref().take(length).flat_map(MatrixEntry::numbers).collect();
                    parcels.push(Parcel { with: 0, sent, received: Vec::new() });
                } else if is_root {
                    let received = vec![0.0; 3 * length];
                    parcels.push(Parcel { with: rank, sent: Vec::new(), received });
                }
                group.exchange(&mut parcels, &mut || ());
                if is_root {
                    let received = parcels.iter().flat_map(|parcel| parcel.received.chunks(3));
                    entries.extend(received.map(MatrixEntry::of_numbers));
                }
            }
        }
        Ok(is_root.then(|| summed(n, entries)))
    }
}

impl MatrixEntry {
    fn numbers(self) -> [f64; 3] {
        [self.row.into(), self.column.into(), self.value]
    }

    fn of_numbers(numbers: &[f64]) -> Self {
        Self { row: numbers[0] as u32, column: numbers[1] as u32, value: numbers[2] }
    }
}

/// Builds a matrix of n rows; duplicate entries are summed in order.
fn summed(n: usize, entries: Vec<MatrixEntry>) -> Csr {
    let by_row = entries.iter().map(|entry| (entry.column, entry.row as usize, entry.value));
    let (starts, columns, values) = transposed(n, by_row);
    drop(entries);
    Csr::by_rows((n, n), Vec::new, |row, of_row: &mut Vec<(u32, f64)>, rows| {
        let range = starts[row]..starts[row + 1];
        of_row.clear();
        of_row.extend(columns[range.clone()].iter().copied().zip(values[range].iter().copied()));
        of_row.sort_by_key(|(column, _)| *column);
        for same in of_row.chunk_by(|a, b| a.0 == b.0) {
            let sum: f64 = same.iter().map(|(_, value)| value).sum();
            if sum != 0.0 {
                rows.push(same[0].0, sum);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::threads::each;

    /// Two of three processes have a part; one entry belongs to both, another one cancels.
    #[test]
    fn parts_add_up_at_the_first_process() {
        let found = each(3, |group| {
            let (starts, columns, values, places) = match group.rank() {
                // Rows 2 and 0 of the whole.
                0 => (vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0], vec![2, 0]),
                1 => (vec![0], vec![], vec![], vec![]),
                // Rows 2, 1 and 0.
                _ => {
                    (vec![0, 3, 3, 4], vec![0, 1, 2, 2], vec![0.5, 4.0, -2.0, 0.25], vec![2, 1, 0])
                }
            };
            Csr::square(starts, columns, values).gathered(&places, 4, &*group)
        });
        let whole = Csr::square(vec![0, 1, 1, 3, 3], vec![0, 1, 2], vec![3.25, 4.0, 1.5]);
        assert_eq!(found, [Ok(Some(whole)), Ok(None), Ok(None)]);
    }
}
