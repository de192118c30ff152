//! The verifier: invariants of every kernel between two stages.
//!
//! In both phases:
//!
//! 1. All ids exist; the batch variable does; there is at least one lane.
//! 2. The operands of a value precede it and have the right type: truth values for logical
//!    operations, reals otherwise. The branches of a select are reals.
//! 3. A constant is finite and has no `Let`; every other value has at most one, and is used after
//!    it in the same or an inner block.
//! 4. A value is varying if and only if it loads by lane, is a broadcast, or has a varying operand;
//!    the operand of a broadcast is uniform.
//! 5. Every loop has its own variable, which is not the batch and is used only inside, and
//!    runs at least once.
//! 6. An index lists its variables in ascending order without zero factors.
//! 7. Accesses to private arrays, shared arrays and tables do not depend on the batch, and stay within bounds
//!    for all values of the variables. Accesses to arguments are not negative for any batch.
//! 8. Loaded tables contain finite reals. Tables of positions stay within the private array they
//!    are used with, and one run does not contain a position twice.
//!    A table that defines a variable of the threads has an entry for each of them.
//! 9. Index maps and the counts of active lanes are `u32` and never written; loads, gathers and
//!    scatters access reals; written arrays are declared as such and are not gathered.
//!
//! 10. An integer is computed once, from available values, and used later in the same or an inner block.
//!     A loaded integer counts as 0 in bounds: it only indexes shared arrays and those of [`Op::LoadAt`], which
//!     [`interpret`](super::interpret) and launches check. Integers that differ between lanes do not index
//!     arrays with an entry per lane.
//!
//! In [`Phase::Legal`], for targets whose varying values are vectors, in addition:
//!
//! 11. All operands of a varying operation except a broadcast are varying, as is every stored value.
//! 12. No integer or condition differs between lanes; no integer is stored in an array or addresses an element.
//!
//! The rule that private entries are written before they are read depends on control flow;
//! [`interpret`](super::interpret) checks it.

mod access;
#[cfg(test)]
mod tests;
mod values;

use super::{
    Condition, Entries, Index, Integer, Kernel, LocalId, Op, Rule, Statement, TableId, Thread,
    ValueId, VarId,
};
use fem_dsl::arena::{Id, IndexVec};

/// The compilation phase of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// After a strategy: uniform and varying values mix.
    Lowered,
    /// After `legalise`, for targets with vectors.
    Legal,
}

/// A malformed kernel: a mistake of this compiler, not of its user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kernel {kernel} is malformed: {violation}; this is a bug in weakform, please report it"
)]
pub struct VerifyError {
    /// The kernel's name.
    pub kernel: String,
    /// The violation.
    pub violation: String,
}

type CheckedKernel = Result<(), String>;

/// Checks every invariant of the module's documentation; returns the first violation.
pub fn verify(kernel: &Kernel, phase: Phase) -> Result<(), VerifyError> {
    let mut verifier = Verifier {
        kernel,
        phase,
        state: kernel.values.iter().map(|_| State::Undefined).collect(),
        open: kernel
            .vars
            .iter()
            .map(|var| var.thread().map(|thread| kernel.thread_bound(thread) as i64 - 1))
            .collect(),
        depth: 0,
        used: kernel.vars.iter().map(|_| false).collect(),
    };
    verifier.kernel().map_err(|violation| VerifyError { kernel: kernel.name.clone(), violation })
}

/// The definition state of a value at a point of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Undefined,
    Defined,
    /// Its `Let` is in a block that has ended.
    Gone,
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    phase: Phase,
    state: IndexVec<ValueId, State>,
    /// The largest value of each variable in scope; none for the batch.
    open: IndexVec<VarId, Option<i64>>,
    /// The number of enclosing loops and conditions.
    depth: usize,
    /// True if a loop or another statement has defined the variable.
    used: IndexVec<VarId, bool>,
}

/// Returns `Ok` if a condition is true.
fn require(condition: bool, what: impl FnOnce() -> String) -> CheckedKernel {
    if condition { Ok(()) } else { Err(what()) }
}

impl<'k> Verifier<'k> {
    fn kernel(&mut self) -> CheckedKernel {
        require(self.kernel.lanes > 0, || "it has no lanes".to_owned())?;
        require(!self.kernel.vars.is_empty(), || "it has no batch variable".to_owned())?;
        for (id, value) in self.kernel.values.iter_enumerated() {
            self.value(id, value)?;
            if matches!(value.op, Op::Constant(_)) {
                self.state[id] = State::Defined;
            }
        }
        if let Some(active) = self.kernel.active {
            self.counts(active)?;
        }
        for var in &self.kernel.vars {
            if let Some(Thread::Listed(table)) = var.thread() {
                let length = match &self.table(table)?.entries {
                    Entries::Position(entries) => entries.len(),
                    Entries::Real(_) => 0,
                };
                let enough = length == self.kernel.threads;
                require(enough, || format!("{table} should have one position a thread"))?;
            }
            if let Some(Thread::Border { digits, last }) = var.thread() {
                let fits = |&digit: &VarId| match self.kernel.thread_of(digit)? {
                    rule @ (Thread::Digit { .. } | Thread::Listed(_) | Thread::Member) => {
                        Some(self.kernel.thread_bound(rule) <= last + 1)
                    }
                    Thread::Border { .. } | Thread::Batch { .. } => None,
                };
                let fit = last > 0 && digits.iter().all(|digit| fits(digit) == Some(true));
                require(fit, || format!("{} needs digits that go up to {last}", var.name))?;
            }
        }
        self.block(&self.kernel.body)
    }

    /// Visits a block. The recursion is as deep as the loop nest, which strategies bound.
    fn block(&mut self, body: &'k [Statement]) -> CheckedKernel {
        let (mut own, mut computed) = (Vec::new(), Vec::new());
        for statement in body {
            match statement {
                Statement::Let(id) => {
                    self.definition(*id)?;
                    own.push(*id);
                }
                Statement::For { var, extent, body } => self.repeat(*var, *extent, body)?,
                Statement::When { conditions, body } => self.when(conditions, body)?,
                Statement::Set(var) => {
                    self.set(*var)?;
                    computed.push(*var);
                }
                Statement::Barrier => {
                    require(self.depth == 0, || "a barrier stands inside".to_owned())?;
                }
                Statement::Stage => {
                    require(self.depth == 0, || "a stage ends in a loop".to_owned())?;
                    for id in own.drain(..) {
                        self.state[id] = State::Gone;
                    }
                    for var in computed.drain(..) {
                        self.open[var] = None;
                    }
                }
                other => self.statement(other)?,
            }
        }
        for id in own {
            self.state[id] = State::Gone;
        }
        for var in computed {
            self.open[var] = None;
        }
        Ok(())
    }

    fn definition(&mut self, id: ValueId) -> CheckedKernel {
        let value = self.kernel.values.get(id).ok_or_else(|| format!("{id} does not exist"))?;
        require(!matches!(value.op, Op::Constant(_)), || "a constant has a let".to_owned())?;
        require(self.state[id] == State::Undefined, || {
            format!("{} has two lets", self.kernel.label(id))
        })?;
        for operand in value.op.operands() {
            self.usable(operand)?;
        }
        self.loads(&value.op)?;
        self.state[id] = State::Defined;
        Ok(())
    }

    fn repeat(&mut self, var: VarId, extent: usize, body: &'k [Statement]) -> CheckedKernel {
        let rule = self.kernel.vars.get(var).map(|var| &var.rule);
        let known = rule == Some(&Rule::Counted) && var != self.kernel.batch();
        require(known, || format!("{var} is no loop variable"))?;
        require(!self.used[var], || format!("{var} belongs to two loops"))?;
        require(extent > 0, || format!("the loop over {var} never runs"))?;
        self.used[var] = true;
        self.open[var] = Some(extent as i64 - 1);
        self.depth += 1;
        self.block(body)?;
        self.depth -= 1;
        self.open[var] = None;
        Ok(())
    }

    /// Checks a conditional block, with the bounds of its variables.
    fn when(&mut self, conditions: &[Condition], body: &'k [Statement]) -> CheckedKernel {
        let outer = self.open.clone();
        require(!conditions.is_empty(), || "nothing is a condition".to_owned())?;
        for condition in conditions {
            self.condition(condition)?;
            if let Condition::Below(var, bound) = *condition {
                require(bound > 0, || format!("nobody has {var} below 0"))?;
                self.open[var] = self.open[var].map(|open| open.min(bound as i64 - 1));
            }
        }
        self.depth += 1;
        self.block(body)?;
        self.depth -= 1;
        self.open = outer;
        Ok(())
    }

    fn condition(&self, condition: &Condition) -> CheckedKernel {
        let mut differs = condition.vars().next().is_none();
        for var in condition.vars() {
            require(self.is_open(var), || format!("{var} is a condition outside its block"))?;
            differs |= self.kernel.differs(var) || self.kernel.thread_of(var).is_some();
        }
        if let Condition::ActiveCell(cell) = condition {
            let known = self.kernel.active.is_some();
            require(known, || "nothing says which cells write".to_owned())?;
            self.positive(cell, "the batch")?;
        }
        let fine = self.phase == Phase::Lowered || !differs;
        require(fine, || format!("lanes of a vector differ in {condition:?}"))
    }

    /// Checks the computation of an integer.
    fn set(&mut self, var: VarId) -> CheckedKernel {
        let kernel = self.kernel;
        let integer = kernel.integer(var).ok_or_else(|| format!("{var} is not computed"))?;
        require(!self.used[var], || format!("{var} is computed twice"))?;
        match integer {
            Integer::Element(map, at) => self.elements(*map, at)?,
            Integer::Entry(array, at) => self.integers(*array, at)?,
            &Integer::Rest(of, by) => {
                require(by > 0, || format!("{var} is what is left of a division by 0"))?;
                require(self.is_open(of), || format!("{of} is used outside its block"))?;
            }
        }
        let fine = self.phase == Phase::Lowered || !kernel.differs(var);
        require(fine, || format!("{var} differs between the lanes of a vector"))?;
        self.used[var] = true;
        self.open[var] = Some(kernel.top_of(integer, |of| self.open[of].unwrap_or(0)));
        Ok(())
    }

    /// Returns whether a variable other than the batch has a value at this point.
    fn is_open(&self, var: VarId) -> bool {
        self.open.get(var).copied().flatten().is_some()
    }

    /// Requires that a value may be used.
    fn usable(&self, id: ValueId) -> CheckedKernel {
        match self.state.get(id) {
            Some(State::Defined) => Ok(()),
            Some(State::Undefined) => {
                Err(format!("{} is used before its let", self.kernel.label(id)))
            }
            Some(State::Gone) => {
                Err(format!("{} is used outside its block", self.kernel.label(id)))
            }
            None => Err(format!("{id} does not exist")),
        }
    }

    /// Requires that a stored real may be used, and is varying if necessary.
    fn stored(&self, id: ValueId) -> CheckedKernel {
        self.usable(id)?;
        let value = &self.kernel.values[id];
        let label = || self.kernel.label(id);
        require(!self.is_truth(id), || format!("the truth value {} is stored", label()))?;
        let wide = self.phase == Phase::Lowered || value.varying;
        require(wide, || format!("the uniform {} is stored as it is", label()))
    }

    /// Returns the smallest and the largest value of an index over the variables, and the batch's factor.
    fn range(&self, index: &Index) -> Result<(i64, i64, i64), String> {
        let sorted = index.terms.windows(2).all(|pair| pair[0].0 < pair[1].0);
        require(sorted, || format!("an index is not sorted: {index:?}"))?;
        for &(var, factor) in &index.terms {
            require(factor != 0, || format!("an index has a zero factor: {index:?}"))?;
            let known = var == self.kernel.batch() || self.is_open(var);
            require(known, || format!("{var} is used outside its loop"))?;
            let bounded = factor > 0 || !self.kernel.is_loaded(var);
            require(bounded, || format!("{var} was loaded and is subtracted"))?;
        }
        Ok(self.kernel.range(index, |var| self.open[var].unwrap_or(0)))
    }

    /// Requires that an index stays within an array of known length; loaded parts are not checked.
    fn within(&self, index: &Index, length: usize, array: &str) -> CheckedKernel {
        let (low, high, batch) = self.range(index)?;
        require(batch == 0, || format!("the index of {array} depends on the batch"))?;
        require(low >= 0 && high < length as i64, || {
            format!("{array}[{low} to {high}] is out of bounds: it has {length} entries")
        })
    }

    /// Requires the same for an array with an entry per lane, or with entries common to all.
    fn within_own(&self, index: &Index, length: usize, array: &str) -> CheckedKernel {
        self.within(index, length, array)?;
        self.together(index, array)
    }

    /// Requires that no part of an index is loaded or differs between lanes.
    fn together(&self, index: &Index, array: &str) -> CheckedKernel {
        let mut vars = index.terms.iter().map(|&(var, _)| var);
        let apart = vars.find(|&var| self.kernel.is_loaded(var) || self.kernel.differs(var));
        apart.map_or(Ok(()), |var| Err(format!("{array} is accessed by {var}, a lane's own")))
    }

    /// Requires that an index into an argument is not negative.
    fn positive(&self, index: &Index, array: &str) -> CheckedKernel {
        let (low, _, batch) = self.range(index)?;
        require(low >= 0 && batch >= 0, || format!("{array} is accessed at a negative index"))?;
        self.together(index, array)
    }

    fn local(&self, id: LocalId, index: &Index) -> CheckedKernel {
        let local = self.kernel.locals.get(id).ok_or_else(|| format!("{id} does not exist"))?;
        self.within_own(index, local.length, &local.name)
    }

    fn table(&self, id: TableId) -> Result<&'k super::Table, String> {
        self.kernel.tables.get(id).ok_or_else(|| format!("{id} does not exist"))
    }
}

/// Returns whether `operand` precedes `value`.
fn precedes(operand: ValueId, value: ValueId) -> bool {
    operand.index() < value.index()
}
