//! The state of a run and the semantics of every operation and statement.

mod lanes;
mod runs;

use super::shared::SharedMemory;
use super::{Array, Fault};
use crate::kir::{
    ArgumentId, Condition, Entries, Index, IndirectIndex, Integer, IntegersId, Kernel, LocalId, Op,
    SharedId, Statement, TableId, Thread, ValueId, VarId, Write,
};
use fem_dsl::arena::Id;
use lanes::rounded;
use multiversion::multiversion;
use std::cell::RefCell;
use std::mem::replace;
use std::rc::Rc;

/// A private array: entries, lane fastest, and the set that this batch has written.
struct Private {
    values: Vec<f64>,
    written: Vec<bool>,
}

pub(super) struct Machine<'k, 'm, 'a> {
    kernel: &'k Kernel,
    arguments: &'m [Array<'a>],
    lanes: usize,
    /// Lanes that write in this batch.
    active: usize,
    /// Values, lane fastest; uniform ones are equal in all lanes.
    values: Vec<f64>,
    locals: Vec<Private>,
    /// Private arrays of integers: entries, lane fastest; `None` if this batch has not written them.
    integers: Vec<Vec<Option<i64>>>,
    /// Variables, lane fastest; uniform ones are equal in all lanes.
    vars: Vec<i64>,
    /// The active lanes at this point.
    on: Vec<bool>,
    /// True if all lanes are active.
    everywhere: bool,
    /// True if the batch of a variable is in the range; false only for some of [`Thread::Batch`].
    exists: Vec<bool>,
    /// The write positions of the lanes in a scatter, to detect duplicates.
    places: Vec<i64>,
    /// The thread in its group; `None` if lanes run in lockstep.
    thread: Option<usize>,
    /// Memory shared by the threads of a group, or by the lanes.
    shared: Rc<RefCell<SharedMemory>>,
}

impl<'k, 'm, 'a> Machine<'k, 'm, 'a> {
    pub(super) fn new(kernel: &'k Kernel, arguments: &'m [Array<'a>]) -> Self {
        let lanes = kernel.lanes;
        let mut machine = Self {
            kernel,
            arguments,
            lanes,
            active: lanes,
            values: vec![f64::NAN; kernel.values.len() * lanes],
            locals: Vec::new(),
            integers: kernel
                .integers
                .iter()
                .map(|array| vec![None; array.length * lanes])
                .collect(),
            vars: vec![0; kernel.vars.len() * lanes],
            on: vec![true; lanes],
            everywhere: true,
            exists: vec![true; kernel.vars.len()],
            places: Vec::with_capacity(lanes),
            thread: None,
            shared: Rc::new(RefCell::new(SharedMemory::new(kernel))),
        };
        for (id, value) in kernel.values.iter_enumerated() {
            if let Op::Constant(number) = value.op {
                machine.fill(id, number);
            }
        }
        for id in kernel.vars.ids() {
            if kernel.thread_of(id) == Some(Thread::Member) {
                let numbers = machine.vars[id.index() * lanes..][..lanes].iter_mut();
                numbers.zip(0..).for_each(|(number, lane)| *number = lane);
            }
        }
        for local in &kernel.locals {
            let values = vec![f64::NAN; local.length * lanes];
            machine.locals.push(Private { values, written: vec![false; local.length] });
        }
        machine
    }

    /// Creates a thread of a group.
    pub(super) fn of_group(
        kernel: &'k Kernel,
        arguments: &'m [Array<'a>],
        thread: usize,
        shared: Rc<RefCell<SharedMemory>>,
    ) -> Self {
        let mut machine = Self::new(kernel, arguments);
        (machine.thread, machine.shared) = (Some(thread), shared);
        for (id, var) in kernel.vars.iter_enumerated() {
            if let Some(rule) = var.thread() {
                machine.assign(id, kernel.of_thread(rule, thread));
            }
        }
        machine
    }

    /// Starts a batch of the group that begins at `first`; a thread without a batch before `end` does not affect global
    /// arrays.
    pub(super) fn take_up(&mut self, own: usize, first: usize, end: usize) {
        self.begin(own.min(end - 1));
        self.active = usize::from(own < end);
        let thread = self.thread.unwrap_or(0);
        for (id, var) in self.kernel.vars.iter_enumerated() {
            if let Some(rule @ Thread::Batch { .. }) = var.thread() {
                let own = first + self.kernel.of_thread(rule, thread) as usize;
                self.assign(id, own.min(end - 1) as i64);
                self.exists[id.index()] = own < end;
            }
        }
    }

    /// Begins a batch, with all private arrays unwritten.
    fn begin(&mut self, batch: usize) {
        self.assign(self.kernel.batch(), batch as i64);
        self.locals.iter_mut().for_each(|local| local.written.fill(false));
        self.integers.iter_mut().for_each(|array| array.fill(None));
    }

    /// Sets a variable to a number in all lanes.
    fn assign(&mut self, var: VarId, number: i64) {
        self.vars[var.index() * self.lanes..][..self.lanes].fill(number);
    }

    /// Runs one batch.
    pub(super) fn batch(&mut self, batch: usize) -> Result<(), Fault> {
        let kernel = self.kernel;
        self.begin(batch);
        self.active = match kernel.active {
            Some(argument) => self.index(argument, batch as i64)? as usize,
            None => self.lanes,
        };
        if !kernel.shared.is_empty() {
            *self.shared.borrow_mut() = SharedMemory::new(kernel);
        }
        self.block(&kernel.body)
    }

    /// Runs a block. Recursive in the depth of loops, which strategies bound.
    pub(super) fn block(&mut self, body: &'k [Statement]) -> Result<(), Fault> {
        run(self, body)
    }

    /// Runs statements, and evaluates arithmetic in place: inlined, it uses the vector instructions of the caller.
    #[inline(always)]
    fn statements(&mut self, body: &'k [Statement]) -> Result<(), Fault> {
        let kernel = self.kernel;
        for statement in body {
            match statement {
                Statement::Let(id) => {
                    let op = &kernel.values[*id].op;
                    if lanes::is_arithmetic(op) {
                        let (before, rest) = self.values.split_at_mut(id.index() * self.lanes);
                        lanes::evaluate(op, kernel.precision, before, &mut rest[..self.lanes]);
                    } else {
                        self.load(*id, op)?;
                    }
                }
                Statement::When { conditions, body } => self.when(conditions, body)?,
                Statement::For { var, extent, body } => {
                    for number in 0..*extent {
                        self.assign(*var, number as i64);
                        self.block(body)?;
                    }
                }
                other => self.statement(other)?,
            }
        }
        Ok(())
    }

    /// Runs a block in the lanes that satisfy conditions.
    fn when(&mut self, conditions: &[Condition], body: &'k [Statement]) -> Result<(), Fault> {
        let mut on = self.on.clone();
        for lane in 0..self.lanes {
            for condition in conditions {
                on[lane] = on[lane] && self.is_true(condition, lane)?;
            }
        }
        if on.contains(&true) {
            let everywhere = !on.contains(&false);
            let outer = (replace(&mut self.on, on), replace(&mut self.everywhere, everywhere));
            let done = self.block(body);
            (self.on, self.everywhere) = outer;
            done?;
        }
        Ok(())
    }

    /// Returns whether a condition is true in a lane.
    fn is_true(&self, condition: &Condition, lane: usize) -> Result<bool, Fault> {
        Ok(match (condition, self.kernel.active) {
            (Condition::Active, _) => lane < self.active,
            (Condition::ActiveCell(cell), Some(active)) => {
                let count = self.index(active, self.at(&self.kernel.batch().into()))?;
                self.at(cell) < i64::from(count)
            }
            _ => condition.is_true(|var| self.var(var, lane)),
        })
    }

    fn statement(&mut self, statement: &'k Statement) -> Result<(), Fault> {
        match statement {
            Statement::StoreLocal(local, index, value) => {
                let entry = self.local_entry(*local, self.at(index))?;
                let private = &mut self.locals[local.index()];
                let from = &self.values[value.index() * self.lanes..][..self.lanes];
                let to = &mut private.values[entry * self.lanes..][..self.lanes];
                if self.everywhere {
                    lanes::copy(from, to);
                    private.written[entry] = true;
                } else {
                    let lanes = to.iter_mut().zip(from).zip(&self.on);
                    lanes.filter(|(_, on)| **on).for_each(|((to, from), _)| *to = *from);
                }
                Ok(())
            }
            Statement::StoreShared(shared, index, value) => {
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    let number = self.value(*value, lane);
                    self.shared(*shared, self.at_lane(index, lane), lane, Some(number))?;
                }
                Ok(())
            }
            Statement::Set(var) => self.set(*var),
            Statement::StoreInteger(array, index, var) => {
                let first = self.integer_entry(*array, self.at(index))?;
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    self.integers[array.index()][first + lane] = Some(self.var(*var, lane));
                }
                Ok(())
            }
            Statement::StoreAt { target, var, scale, offset, value, write } => {
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    let place = self.var(*var, lane) * *scale as i64 + *offset as i64;
                    self.put(*target, place, self.value(*value, lane), *write)?;
                }
                Ok(())
            }
            Statement::StoreLanes(argument, index, value) => {
                let first = self.at(index) * self.lanes as i64;
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    let number = self.value(*value, lane);
                    self.write(*argument, first + lane as i64, number)?;
                }
                Ok(())
            }
            Statement::Scatter { target, to, value, write } => {
                self.scatter(*target, to, *value, *write)
            }
            Statement::ScatterEdge { target, map, at, scale, values } => {
                for &(offset, ends) in values {
                    for (at, value) in at.iter().cloned().zip(ends) {
                        let (map, scale, masked) = (*map, *scale, false);
                        let to = IndirectIndex { map, at, scale, offset, masked };
                        self.scatter(*target, &to, value, Write::Atomic)?;
                    }
                }
                Ok(())
            }
            Statement::GatherRun { source, run } => self.gather_run(*source, run),
            Statement::ScatterRun { target, run, write } => self.scatter_run(*target, run, *write),
            Statement::Barrier if self.thread.is_none() => {
                self.shared.borrow_mut().meet();
                Ok(())
            }
            // Values, loops and conditions are for `block`, threads for `threads`; the others have no effect.
            Statement::Let(_)
            | Statement::For { .. }
            | Statement::When { .. }
            | Statement::Barrier
            | Statement::Fence
            | Statement::Recompute(_)
            | Statement::Prefetch(..)
            | Statement::PrefetchIndexed { .. }
            | Statement::Stage
            | Statement::Comment(_) => Ok(()),
        }
    }

    /// Reads a value from memory in all active lanes.
    fn load(&mut self, id: ValueId, op: &'k Op) -> Result<(), Fault> {
        match op {
            Op::LoadLocal(local, index) => self.load_local(id, *local, index),
            Op::LoadShared(shared, index) => {
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    let number = self.shared(*shared, self.at_lane(index, lane), lane, None)?;
                    self.values[id.index() * self.lanes + lane] = number;
                }
                Ok(())
            }
            Op::LoadAt { source, var, scale, offset, masked } => {
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    let place = self.element(self.var(*var, lane), (*scale, *offset), *masked);
                    let number = place.map_or(Ok(0.0), |place| self.read(*source, place))?;
                    self.values[id.index() * self.lanes + lane] = number;
                }
                Ok(())
            }
            Op::LoadTable(table, index) => {
                let number = self.load_table(*table, self.at(index))?;
                self.fill(id, number);
                Ok(())
            }
            Op::LoadUniform(argument, index) => {
                let number = self.read(*argument, self.at(index))?;
                self.fill(id, number);
                Ok(())
            }
            Op::LoadLanes(argument, index) => self.load_lanes(id, *argument, index),
            Op::Flag { masks, at, bit } => {
                for lane in 0..self.lanes {
                    if !self.on[lane] {
                        continue;
                    }
                    let place = self.at(at) * self.lanes as i64 + lane as i64;
                    let mask = self.index(*masks, place)?;
                    self.values[id.index() * self.lanes + lane] = f64::from(mask >> bit & 1);
                }
                Ok(())
            }
            Op::Gather { source, from } => self.gather(id, *source, from),
            // Arithmetic is evaluated by `statements`; constants were set once.
            _ => Ok(()),
        }
    }

    /// Reads or writes an entry of a shared array, as this thread, or as one of the lanes if these share the array.
    fn shared(
        &self,
        id: SharedId,
        entry: i64,
        lane: usize,
        stored: Option<f64>,
    ) -> Result<f64, Fault> {
        let name = &self.kernel.shared[id].name;
        let array = || name.clone();
        let member = self.thread.unwrap_or(lane);
        let slots = &mut self.shared.borrow_mut().slots[id.index()];
        let place = within(name, entry, slots.len())?;
        let slot = &mut slots[place];
        let fine = match stored {
            Some(number) => {
                let fine = slot.write(member);
                slot.value = Some(number);
                fine
            }
            None => slot.read(member),
        };
        match slot.value {
            _ if !fine => Err(Fault::Race { array: array(), index: entry }),
            Some(number) => Ok(number),
            None => Err(Fault::Unwritten { array: array(), index: entry }),
        }
    }

    fn load_local(&mut self, id: ValueId, local: LocalId, index: &Index) -> Result<(), Fault> {
        let entry = self.written_entry(local, self.at(index))?;
        let from = &self.locals[local.index()].values[entry * self.lanes..][..self.lanes];
        lanes::copy(from, &mut self.values[id.index() * self.lanes..][..self.lanes]);
        Ok(())
    }

    fn load_lanes(&mut self, id: ValueId, from: ArgumentId, index: &Index) -> Result<(), Fault> {
        let first = self.at(index) * self.lanes as i64;
        let out = &mut self.values[id.index() * self.lanes..][..self.lanes];
        let array = self.arguments[from.index()];
        if usize::try_from(first).is_ok_and(|first| array.reals(first, out)) {
            return Ok(());
        }
        Err(self.beyond(from, first.max(array.len() as i64)))
    }

    fn gather(
        &mut self,
        id: ValueId,
        source: ArgumentId,
        indexed: &IndirectIndex,
    ) -> Result<(), Fault> {
        let first = self.at(&indexed.at) * self.lanes as i64;
        for lane in 0..self.lanes {
            if !self.on[lane] {
                continue;
            }
            self.values[id.index() * self.lanes + lane] =
                match self.place(indexed, first + lane as i64)? {
                    Some(place) => self.read(source, place)?,
                    None => 0.0,
                };
        }
        Ok(())
    }

    fn scatter(
        &mut self,
        target: ArgumentId,
        indexed: &IndirectIndex,
        value: ValueId,
        write: Write,
    ) -> Result<(), Fault> {
        self.places.clear();
        let write = match write {
            Write::Inside(border) if self.var(border, 0) == 0 => Write::Exclusive,
            Write::Inside(_) => Write::Atomic,
            write => write,
        };
        let first = self.at(&indexed.at) * self.lanes as i64;
        let active = match self.kernel.batch_of(&indexed.at) {
            Some(var) => usize::from(self.exists[var.index()]),
            None => self.active,
        };
        for lane in 0..active.min(self.lanes) {
            if !self.on[lane] {
                continue;
            }
            let Some(place) = self.place(indexed, first + lane as i64)? else { continue };
            if write == Write::Exclusive {
                if self.places.contains(&place) {
                    return Err(Fault::Race { array: self.argument(target), index: place });
                }
                self.places.push(place);
            }
            let number = self.value(value, lane);
            self.put(target, place, number, write)?;
        }
        Ok(())
    }

    /// Adds or stores one element.
    fn put(&self, target: ArgumentId, place: i64, number: f64, write: Write) -> Result<(), Fault> {
        let number = match write {
            Write::LaneSerial | Write::Atomic | Write::Alone | Write::Inside(_) => {
                rounded(self.kernel.precision, self.read(target, place)? + number)
            }
            Write::Exclusive => number,
        };
        self.write(target, place, number)
    }

    /// Returns the element at an entry of an index array; `None` if masked.
    fn place(&self, indexed: &IndirectIndex, entry: i64) -> Result<Option<i64>, Fault> {
        let number = i64::from(self.index(indexed.map, entry)?);
        Ok(self.element(number, (indexed.scale, indexed.offset), indexed.masked))
    }

    /// Returns the element at an index; `None` if masked.
    fn element(&self, number: i64, (scale, offset): (usize, usize), masked: bool) -> Option<i64> {
        let nothing = masked && number == i64::from(u32::MAX);
        (!nothing).then_some(number * scale as i64 + offset as i64)
    }

    /// Computes an integer.
    fn set(&mut self, var: VarId) -> Result<(), Fault> {
        let kernel = self.kernel;
        for lane in 0..self.lanes {
            if !self.on[lane] {
                continue;
            }
            self.vars[var.index() * self.lanes + lane] = match kernel.integer(var) {
                Some(Integer::Element(map, at)) => {
                    i64::from(self.index(*map, self.at_lane(at, lane))?)
                }
                Some(Integer::Entry(array, at)) => {
                    let (array, index) = (*array, self.at(at));
                    let entry = self.integer_entry(array, index)? + lane;
                    self.integers[array.index()][entry].ok_or_else(|| {
                        let array = kernel.integers[array].name.clone();
                        Fault::Unwritten { array, index }
                    })?
                }
                Some(&Integer::Rest(of, by)) => self.var(of, lane) % by as i64,
                None => unreachable!("a verified kernel should compute integers only"),
            };
        }
        Ok(())
    }

    /// Returns the position of the first lane's integer of an entry of a private array.
    fn integer_entry(&self, id: IntegersId, index: i64) -> Result<usize, Fault> {
        let array = &self.kernel.integers[id];
        Ok(within(&array.name, index, array.length)? * self.lanes)
    }

    /// Returns the value of an affine index that is equal in all lanes.
    fn at(&self, index: &Index) -> i64 {
        self.at_lane(index, 0)
    }

    fn at_lane(&self, index: &Index, lane: usize) -> i64 {
        let term = |&(var, factor): &(VarId, i64)| factor * self.var(var, lane);
        index.constant + index.terms.iter().map(term).sum::<i64>()
    }

    fn var(&self, id: VarId, lane: usize) -> i64 {
        self.vars[id.index() * self.lanes + lane]
    }

    fn value(&self, id: ValueId, lane: usize) -> f64 {
        self.values[id.index() * self.lanes + lane]
    }

    /// Sets a value to a number in all lanes.
    fn fill(&mut self, id: ValueId, number: f64) {
        let number = rounded(self.kernel.precision, number);
        self.values[id.index() * self.lanes..][..self.lanes].fill(number);
    }

    fn argument(&self, argument: ArgumentId) -> String {
        self.kernel.arguments[argument].name.clone()
    }

    fn beyond(&self, argument: ArgumentId, index: i64) -> Fault {
        let length = self.arguments[argument.index()].len();
        Fault::OutOfBounds { array: self.argument(argument), index, length }
    }

    fn read(&self, argument: ArgumentId, index: i64) -> Result<f64, Fault> {
        let array = &self.arguments[argument.index()];
        let number = usize::try_from(index).ok().and_then(|index| array.real(index));
        number.ok_or_else(|| self.beyond(argument, index))
    }

    fn index(&self, argument: ArgumentId, index: i64) -> Result<u32, Fault> {
        let array = &self.arguments[argument.index()];
        let number = usize::try_from(index).ok().and_then(|index| array.index(index));
        number.ok_or_else(|| self.beyond(argument, index))
    }

    fn write(&self, argument: ArgumentId, index: i64, number: f64) -> Result<(), Fault> {
        let array = &self.arguments[argument.index()];
        let done = usize::try_from(index).is_ok_and(|index| array.set(index, number));
        if done { Ok(()) } else { Err(self.beyond(argument, index)) }
    }

    fn local_entry(&self, local: LocalId, index: i64) -> Result<usize, Fault> {
        let array = &self.kernel.locals[local];
        within(&array.name, index, array.length)
    }

    /// Returns the position of an entry that this batch has written.
    fn written_entry(&self, local: LocalId, index: i64) -> Result<usize, Fault> {
        let entry = self.local_entry(local, index)?;
        if !self.locals[local.index()].written[entry] {
            let array = self.kernel.locals[local].name.clone();
            return Err(Fault::Unwritten { array, index });
        }
        Ok(entry)
    }

    fn load_table(&self, table: TableId, index: i64) -> Result<f64, Fault> {
        let table = &self.kernel.tables[table];
        match &table.entries {
            Entries::Real(entries) => Ok(entries[within(&table.name, index, entries.len())?]),
            Entries::Position(_) => unreachable!("a verified kernel should load from real tables"),
        }
    }
}

/// Runs a block by the vector instructions of this processor.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn run<'k>(machine: &mut Machine<'k, '_, '_>, body: &'k [Statement]) -> Result<(), Fault> {
    machine.statements(body)?;
    Ok(())
}

/// Returns an index after a bounds check.
fn within(array: &str, index: i64, length: usize) -> Result<usize, Fault> {
    let entry = usize::try_from(index).ok().filter(|&entry| entry < length);
    entry.ok_or_else(|| Fault::OutOfBounds { array: array.to_owned(), index, length })
}
