//! Variables derived from the thread index: definitions → values and bounds.

use super::{Entries, Index, Kernel, TableId, VarId};

/// A variable derived from the index t of a thread in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// `t / divisor mod modulus`.
    Digit {
        /// The divisor.
        divisor: usize,
        /// The modulus.
        modulus: usize,
    },
    /// t, or the index of the lane in its batch if lanes are threads.
    Member,
    /// Entry t of a table of positions.
    Listed(TableId),
    /// The batch of cell `t / divisor` of the group. Beyond the end it is the last batch, and scatters through this
    /// variable are suppressed.
    Batch {
        /// The divisor.
        divisor: usize,
    },
    /// 1 if one of these digits is 0 or the last, on the border of a cell's nodes, and 0 inside.
    Border {
        /// The digits.
        digits: [VarId; 2],
        /// The last number of a digit.
        last: usize,
    },
}

impl Kernel {
    /// Returns the value for a thread; for a batch, its position in the group.
    pub fn of_thread(&self, rule: Thread, thread: usize) -> i64 {
        match rule {
            Thread::Member => thread as i64,
            Thread::Batch { divisor } => (thread / divisor) as i64,
            Thread::Digit { divisor, modulus } => (thread / divisor % modulus) as i64,
            Thread::Border { digits, last } => {
                let rules = digits.iter().filter_map(|&digit| self.vars.get(digit)?.thread());
                let on = |digit: i64| digit == 0 || digit == last as i64;
                i64::from(rules.map(|rule| self.of_thread(rule, thread)).any(on))
            }
            Thread::Listed(table) => match &self.tables[table].entries {
                Entries::Position(entries) => entries.get(thread).map_or(0, |&at| i64::from(at)),
                Entries::Real(_) => 0,
            },
        }
    }

    /// Returns an exclusive upper bound of the values.
    pub fn thread_bound(&self, rule: Thread) -> usize {
        match rule {
            Thread::Digit { modulus, .. } => modulus,
            Thread::Member => self.members(),
            Thread::Border { .. } => 2,
            Thread::Batch { .. } => self.group,
            Thread::Listed(table) => match self.tables.get(table).map(|table| &table.entries) {
                Some(Entries::Position(entries)) => {
                    entries.iter().max().map_or(1, |&most| most as usize + 1)
                }
                _ => 1,
            },
        }
    }

    /// Returns the batch variable of an index, if it is not [`Kernel::batch`].
    pub fn batch_of(&self, index: &Index) -> Option<VarId> {
        let of_batch = |&var: &VarId| matches!(self.thread_of(var), Some(Thread::Batch { .. }));
        index.terms.iter().map(|&(var, _)| var).find(of_batch)
    }

    /// Returns the definition of a variable in terms of the thread index, if it has one.
    pub fn thread_of(&self, var: VarId) -> Option<Thread> {
        self.vars.get(var)?.thread()
    }

    /// Returns the number of concurrent threads or lanes.
    pub fn members(&self) -> usize {
        self.threads.max(self.lanes)
    }
}
