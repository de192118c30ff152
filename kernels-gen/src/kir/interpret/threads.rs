//! Groups of threads: from barrier to barrier, one thread after another.
//!
//! A correct kernel gives the same result for every order of its threads between two barriers: [`SharedMemory`] detects
//! races.

use super::machine::Machine;
use super::shared::SharedMemory;
use super::{Array, Fault};
use crate::kir::{Kernel, Statement};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Runs the groups of a range of batches.
pub(super) fn run(
    kernel: &Kernel,
    batches: Range<usize>,
    arguments: &[Array<'_>],
) -> Result<(), Fault> {
    let shared = Rc::new(RefCell::new(SharedMemory::new(kernel)));
    let mut threads: Vec<Machine<'_, '_, '_>> = (0..kernel.threads)
        .map(|thread| Machine::of_group(kernel, arguments, thread, Rc::clone(&shared)))
        .collect();
    let share = kernel.threads / kernel.group;
    for (turn, first) in batches.clone().step_by(kernel.group).enumerate() {
        // The next turn of the same group sees the data of this one, and may race with it.
        if turn.is_multiple_of(kernel.series) {
            *shared.borrow_mut() = SharedMemory::new(kernel);
        }
        for (thread, machine) in threads.iter_mut().enumerate() {
            let own = first + thread / share;
            machine.take_up(own, first, batches.end);
        }
        let phases = kernel.body.split(|statement| matches!(statement, Statement::Barrier));
        for (number, phase) in phases.enumerate() {
            if number > 0 {
                shared.borrow_mut().meet();
            }
            for machine in &mut threads {
                machine.block(phase)?;
            }
        }
    }
    Ok(())
}
