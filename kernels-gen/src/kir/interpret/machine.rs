//! The state of one run and the meaning of every operation and statement.

use super::{Array, Fault};
use crate::kir::{
    ArgumentId, Entries, Index, Kernel, LocalId, Op, Precision, Statement, TableId, ValueId, Write,
};
use fem_dsl::arena::Id;
use fem_dsl::arithmetic;
use fem_dsl::point::Unary;

/// A private array: entries, lane fastest, and which of them this batch has written.
struct Private {
    values: Vec<f64>,
    written: Vec<bool>,
}

pub(super) struct Machine<'k, 'm, 'a> {
    kernel: &'k Kernel,
    arguments: &'m mut [Array<'a>],
    lanes: usize,
    /// Lanes that write in this batch.
    active: usize,
    /// Values, lane fastest; uniform ones are equal in all lanes.
    values: Vec<f64>,
    locals: Vec<Private>,
    vars: Vec<i64>,
}

/// Where the lanes of an indexed access lie: `map[at · lanes + lane] · scale + offset`.
struct Indexed<'i> {
    map: ArgumentId,
    at: &'i Index,
    scale: usize,
    offset: usize,
    masked: bool,
}

/// A run of consecutive elements for each lane, and the private entries they belong to.
struct Run<'i> {
    map: ArgumentId,
    at: &'i Index,
    local: LocalId,
    positions: TableId,
    first: usize,
    length: usize,
}

impl<'k, 'm, 'a> Machine<'k, 'm, 'a> {
    pub(super) fn new(kernel: &'k Kernel, arguments: &'m mut [Array<'a>]) -> Self {
        let lanes = kernel.lanes;
        let mut machine = Self {
            kernel,
            arguments,
            lanes,
            active: lanes,
            values: vec![f64::NAN; kernel.values.len() * lanes],
            locals: Vec::new(),
            vars: vec![0; kernel.vars.len()],
        };
        for (id, value) in kernel.values.iter_enumerated() {
            if let Op::Constant(number) = value.op {
                let number = machine.rounded(number);
                machine.fill(id, |_| number);
            }
        }
        for local in &kernel.locals {
            let values = vec![f64::NAN; local.length * lanes];
            machine.locals.push(Private { values, written: vec![false; local.length] });
        }
        machine
    }

    /// Runs one batch.
    pub(super) fn batch(&mut self, batch: usize) -> Result<(), Fault> {
        let kernel = self.kernel;
        self.vars[kernel.batch().index()] = batch as i64;
        self.active = match kernel.active {
            Some(argument) => self.index(argument, batch as i64)? as usize,
            None => self.lanes,
        };
        for local in &mut self.locals {
            local.written.fill(false);
        }
        self.block(&kernel.body)
    }

    /// Runs a block. Recursive in the depth of loops, which strategies bound.
    fn block(&mut self, body: &'k [Statement]) -> Result<(), Fault> {
        for statement in body {
            match statement {
                Statement::For { var, extent, body } => {
                    for number in 0..*extent {
                        self.vars[var.index()] = number as i64;
                        self.block(body)?;
                    }
                }
                other => self.statement(other)?,
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'k Statement) -> Result<(), Fault> {
        match statement {
            Statement::Let(value) => self.define(*value),
            Statement::StoreLocal(local, index, value) => {
                for lane in 0..self.lanes {
                    let number = self.value(*value, lane);
                    self.store_local(*local, self.at(index), lane, number)?;
                }
                Ok(())
            }
            Statement::StoreLanes(argument, index, value) => {
                for lane in 0..self.lanes {
                    let number = self.value(*value, lane);
                    self.write(*argument, self.contiguous(index, lane), number)?;
                }
                Ok(())
            }
            Statement::Scatter { target, map, at, scale, offset, masked, value, write } => {
                let (scale, offset, masked) = (*scale, *offset, *masked);
                let indexed = Indexed { map: *map, at, scale, offset, masked };
                self.scatter(*target, &indexed, *value, *write)
            }
            Statement::GatherRun { source, map, at, local, positions, first, length } => {
                let (local, positions) = (*local, *positions);
                let (map, first, length) = (*map, *first, *length);
                self.gather_run(*source, &Run { map, at, local, positions, first, length })
            }
            Statement::ScatterRun { target, map, at, local, positions, first, length, write } => {
                let (local, positions) = (*local, *positions);
                let (map, first, length) = (*map, *first, *length);
                let run = Run { map, at, local, positions, first, length };
                self.scatter_run(*target, &run, *write)
            }
            // Loops are run by `block`; prefetches and comments have no effect.
            Statement::For { .. } | Statement::Prefetch(..) | Statement::Comment(_) => Ok(()),
        }
    }

    /// Evaluates a value in all lanes.
    fn define(&mut self, id: ValueId) -> Result<(), Fault> {
        for lane in 0..self.lanes {
            let number = self.evaluate(&self.kernel.values[id].op, lane)?;
            let number = self.rounded(number);
            self.values[id.index() * self.lanes + lane] = number;
        }
        Ok(())
    }

    fn evaluate(&self, op: &Op, lane: usize) -> Result<f64, Fault> {
        let value = |id: ValueId| self.value(id, lane);
        let truth = |holds: bool| f64::from(u8::from(holds));
        Ok(match op {
            Op::Constant(number) => *number,
            Op::Unary(function, a) => arithmetic::unary(*function, value(*a)),
            Op::Binary(function, a, b) => arithmetic::binary(*function, value(*a), value(*b)),
            Op::Fma(a, b, c) => self.fma(value(*a), value(*b), value(*c)),
            Op::FmaNeg(a, b, c) => {
                self.fma(arithmetic::unary(Unary::Neg, value(*a)), value(*b), value(*c))
            }
            Op::Reciprocal(a) => 1.0 / value(*a),
            Op::Compare(comparison, a, b) => {
                truth(arithmetic::compare(*comparison, value(*a), value(*b)))
            }
            Op::And(a, b) => truth(value(*a) != 0.0 && value(*b) != 0.0),
            Op::Or(a, b) => truth(value(*a) != 0.0 || value(*b) != 0.0),
            Op::Not(a) => truth(value(*a) == 0.0),
            Op::Select(condition, a, b) => value(if value(*condition) == 0.0 { *b } else { *a }),
            Op::Broadcast(a) => value(*a),
            Op::LoadLocal(local, index) => self.load_local(*local, self.at(index), lane)?,
            Op::LoadTable(table, index) => self.load_table(*table, self.at(index))?,
            Op::LoadUniform(argument, index) => self.read(*argument, self.at(index))?,
            Op::LoadLanes(argument, index) => self.read(*argument, self.contiguous(index, lane))?,
            Op::Gather { source, map, at, scale, offset, masked } => {
                let (map, scale, offset, masked) = (*map, *scale, *offset, *masked);
                match self.place(&Indexed { map, at, scale, offset, masked }, lane)? {
                    Some(place) => self.read(*source, place)?,
                    None => 0.0,
                }
            }
        })
    }

    fn scatter(
        &mut self,
        target: ArgumentId,
        indexed: &Indexed<'_>,
        value: ValueId,
        write: Write,
    ) -> Result<(), Fault> {
        let mut places = Vec::new();
        for lane in 0..self.active.min(self.lanes) {
            let Some(place) = self.place(indexed, lane)? else { continue };
            if write == Write::Exclusive && places.contains(&place) {
                return Err(Fault::Race { array: self.argument(target), index: place });
            }
            places.push(place);
            let number = self.value(value, lane);
            self.put(target, place, number, write)?;
        }
        Ok(())
    }

    fn gather_run(&mut self, source: ArgumentId, run: &Run<'_>) -> Result<(), Fault> {
        for lane in 0..self.lanes {
            let start = self.index(run.map, self.contiguous(run.at, lane))?;
            for j in 0..run.length {
                let number = self.read(source, i64::from(start) + j as i64)?;
                let position = self.position(run.positions, run.first + j)?;
                self.store_local(run.local, position, lane, number)?;
            }
        }
        Ok(())
    }

    fn scatter_run(
        &mut self,
        target: ArgumentId,
        run: &Run<'_>,
        write: Write,
    ) -> Result<(), Fault> {
        let mut starts: Vec<i64> = Vec::new();
        for lane in 0..self.active.min(self.lanes) {
            let start = i64::from(self.index(run.map, self.contiguous(run.at, lane))?);
            let near = |&&other: &&i64| (other - start).unsigned_abs() < run.length as u64;
            if let (Write::Exclusive, Some(&other)) = (write, starts.iter().find(near)) {
                let index = start.max(other);
                return Err(Fault::Race { array: self.argument(target), index });
            }
            starts.push(start);
            for j in 0..run.length {
                let position = self.position(run.positions, run.first + j)?;
                let number = self.load_local(run.local, position, lane)?;
                self.put(target, start + j as i64, number, write)?;
            }
        }
        Ok(())
    }

    /// Adds or stores one element.
    fn put(
        &mut self,
        target: ArgumentId,
        place: i64,
        number: f64,
        write: Write,
    ) -> Result<(), Fault> {
        let number = match write {
            Write::LaneSerial => self.rounded(self.read(target, place)? + number),
            Write::Exclusive => number,
        };
        self.write(target, place, number)
    }

    /// The element that a lane of an indexed access means; `None` where it is masked.
    fn place(&self, indexed: &Indexed<'_>, lane: usize) -> Result<Option<i64>, Fault> {
        let number = self.index(indexed.map, self.contiguous(indexed.at, lane))?;
        if indexed.masked && number == u32::MAX {
            return Ok(None);
        }
        Ok(Some(i64::from(number) * indexed.scale as i64 + indexed.offset as i64))
    }

    /// The value of an affine index.
    fn at(&self, index: &Index) -> i64 {
        let term = |&(var, factor): &(_, i64)| factor * self.vars[Id::index(var)];
        index.constant + index.terms.iter().map(term).sum::<i64>()
    }

    /// The element of a lane in an access that is contiguous over the lanes.
    fn contiguous(&self, index: &Index, lane: usize) -> i64 {
        self.at(index) * self.lanes as i64 + lane as i64
    }

    fn value(&self, id: ValueId, lane: usize) -> f64 {
        self.values[id.index() * self.lanes + lane]
    }

    fn fill(&mut self, id: ValueId, number: impl Fn(usize) -> f64) {
        for lane in 0..self.lanes {
            self.values[id.index() * self.lanes + lane] = number(lane);
        }
    }

    /// Rounds to the kernel's precision. For + − · / and √ of singles, computing in double and
    /// rounding once more gives the correctly rounded single.
    fn rounded(&self, number: f64) -> f64 {
        match self.kernel.precision {
            Precision::F64 => number,
            Precision::F32 => f64::from(number as f32),
        }
    }

    fn fma(&self, a: f64, b: f64, c: f64) -> f64 {
        match self.kernel.precision {
            Precision::F64 => a.mul_add(b, c),
            Precision::F32 => f64::from((a as f32).mul_add(b as f32, c as f32)),
        }
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

    fn write(&mut self, argument: ArgumentId, index: i64, number: f64) -> Result<(), Fault> {
        let array = &mut self.arguments[argument.index()];
        let done = usize::try_from(index).is_ok_and(|index| array.set(index, number));
        if done { Ok(()) } else { Err(self.beyond(argument, index)) }
    }

    fn local_entry(&self, local: LocalId, index: i64) -> Result<usize, Fault> {
        let length = self.kernel.locals[local].length;
        match usize::try_from(index) {
            Ok(entry) if entry < length => Ok(entry),
            _ => {
                let array = self.kernel.locals[local].name.clone();
                Err(Fault::OutOfBounds { array, index, length })
            }
        }
    }

    fn load_local(&self, local: LocalId, index: i64, lane: usize) -> Result<f64, Fault> {
        let entry = self.local_entry(local, index)?;
        let private = &self.locals[local.index()];
        if !private.written[entry] {
            let array = self.kernel.locals[local].name.clone();
            return Err(Fault::Unwritten { array, index });
        }
        Ok(private.values[entry * self.lanes + lane])
    }

    fn store_local(
        &mut self,
        local: LocalId,
        index: i64,
        lane: usize,
        number: f64,
    ) -> Result<(), Fault> {
        let entry = self.local_entry(local, index)?;
        let private = &mut self.locals[local.index()];
        private.values[entry * self.lanes + lane] = number;
        private.written[entry] = true;
        Ok(())
    }

    fn table_entry<T: Copy>(&self, table: TableId, entries: &[T], index: i64) -> Result<T, Fault> {
        let entry = usize::try_from(index).ok().and_then(|entry| entries.get(entry));
        entry.copied().ok_or_else(|| {
            let array = self.kernel.tables[table].name.clone();
            Fault::OutOfBounds { array, index, length: entries.len() }
        })
    }

    fn load_table(&self, table: TableId, index: i64) -> Result<f64, Fault> {
        match &self.kernel.tables[table].entries {
            Entries::Real(entries) => self.table_entry(table, entries, index),
            Entries::Position(_) => unreachable!("a verified kernel should load from real tables"),
        }
    }

    fn position(&self, table: TableId, entry: usize) -> Result<i64, Fault> {
        match &self.kernel.tables[table].entries {
            Entries::Position(entries) => {
                self.table_entry(table, entries, entry as i64).map(i64::from)
            }
            Entries::Real(_) => unreachable!("a verified kernel's runs should list positions"),
        }
    }
}
