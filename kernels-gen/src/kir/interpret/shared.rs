//! The shared memory of a group of threads, which detects races.
//!
//! Each shared entry records its readers and writers since the last barrier. Accesses by two threads, at least one of them
//! a write, are a race in any order of execution.

use crate::kir::{Kernel, Local};

/// The threads that have accessed an entry since the last barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TouchedElements {
    #[default]
    Nobody,
    One(usize),
    Several,
}

impl TouchedElements {
    /// Returns whether a thread other than `thread` has.
    fn by_another(self, thread: usize) -> bool {
        match self {
            Self::Nobody => false,
            Self::One(one) => one != thread,
            Self::Several => true,
        }
    }

    fn add(&mut self, thread: usize) {
        *self = match *self {
            Self::Nobody => Self::One(thread),
            Self::One(one) if one == thread => Self::One(one),
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

/// An entry of a shared array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The last value written.
    pub(super) value: Option<f64>,
    readers: TouchedElements,
    writers: TouchedElements,
}

impl Slot {
    /// Records a read; returns whether it is free of races.
    pub(super) fn read(&mut self, thread: usize) -> bool {
        self.readers.add(thread);
        !self.writers.by_another(thread)
    }

    /// Records a write; returns whether it is free of races.
    pub(super) fn write(&mut self, thread: usize) -> bool {
        self.writers.add(thread);
        !self.writers.by_another(thread) && !self.readers.by_another(thread)
    }
}

/// The shared arrays of a group.
#[derive(Debug)]
pub(super) struct SharedMemory {
    /// `[array][entry]`.
    pub(super) slots: Vec<Vec<Slot>>,
}

impl SharedMemory {
    /// Returns unwritten arrays.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let empty = |array: &Local| vec![Slot::default(); array.length];
        Self { slots: kernel.shared.iter().map(empty).collect() }
    }

    /// Clears the access records at a barrier.
    pub(super) fn meet(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            (slot.readers, slot.writers) = (TouchedElements::Nobody, TouchedElements::Nobody);
        }
    }
}
