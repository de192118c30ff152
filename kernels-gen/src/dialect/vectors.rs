//! Kernels whose lanes are entries of SIMD vectors: the parts that Rust and C print alike.
//!
//! [`Spelling`] has the words of a language. The statements, the order of evaluation and the stages are the same in all
//! of them, so that kernels in two languages give the same bits.

mod statement;
mod template;

pub(super) use statement::{block, folded, infix, loops, product, scatters};
pub(super) use template::{for_each_lane, replace_marked};

use super::fold::{Expression, FoldedKernel};
use super::names::ReservedNames;
use crate::kir::{
    Binary, Comparison, Condition, Kernel, LocalId, Precision, Statement, TableId, Unary,
};

/// The type of a named quantity in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A real number, or one per lane if varying.
    Real(bool),
    /// A truth value, or one per lane if varying.
    Truth(bool),
    /// An integer, equal in all lanes.
    Integer,
}

/// A function on vectors, with the numbers that are known when the kernel is printed.
pub(super) struct Function<'f> {
    /// The name.
    pub(super) name: &'f str,
    /// The constants of this instance.
    pub(super) constants: &'f [usize],
    /// The write mode of a function that writes: true if it adds.
    pub(super) adds: Option<bool>,
}

impl<'f> Function<'f> {
    /// Returns a function without constants.
    pub(super) fn plain(name: &'f str) -> Self {
        Self { name, constants: &[], adds: None }
    }
}

/// The spelling of a language of vector kernels.
pub(super) trait Spelling {
    /// Names that kernels may not use.
    const RESERVED: &'static ReservedNames;
    /// Maximal number of statements between a value's position and the expression that contains it.
    const WITHIN: usize;

    /// Returns a number.
    fn literal(kernel: &Kernel, number: f64) -> Expression;
    /// Returns a vector with the same real number or truth value in all lanes.
    fn splat(kernel: &Kernel, is_truth: bool, of: &Expression) -> Expression;
    /// Returns a pointer to the first entry of a table.
    fn table(kernel: &Kernel, id: TableId) -> String;
    /// Returns an element of an array.
    fn element(array: &str, at: &str) -> Expression;
    /// Returns a pointer to an element of an array.
    fn address(array: &str, at: &str) -> String;
    /// Returns an element of an array of integers as an index.
    fn integer(array: &str, at: &str) -> String;
    /// Returns a statement that defines a name.
    fn define(kernel: &Kernel, kind: Kind, name: &str, value: &str) -> String;
    /// Returns the head of a loop from 0 to `extent`, with its brace.
    fn repeat(var: &str, extent: usize) -> String;
    /// Returns the head of a conditional statement, with its brace.
    fn when(condition: &str) -> String;
    /// Returns a condition on integers that are equal in all lanes.
    fn condition(condition: &Condition, name: &str, other: &str) -> String;
    /// Returns the statement that runs `call` unless the first element of an index array is masked.
    fn unless_masked(map: &str, call: &str) -> String;
    /// Returns the lesser of two integers.
    fn lesser(a: &str, b: &str) -> String;
    /// Returns a list of pointers to private arrays.
    fn pointers(kernel: &Kernel, arrays: &[&str], written: bool) -> String;
    /// Returns the call of a function on vectors.
    fn call(kernel: &Kernel, function: &Function<'_>, arguments: &[String]) -> String;
    /// Returns the statement that stores a vector to consecutive elements.
    fn store(kernel: &Kernel, value: &Expression, target: &str, at: &str) -> String;
    /// Returns the vector of consecutive elements.
    fn load(kernel: &Kernel, source: &str, at: &str) -> Expression;
    /// Returns the statement that prefetches an element, which may be out of bounds, to a level of the cache from 0 on.
    fn prefetch(kernel: &Kernel, level: usize, array: &str, at: &str) -> String;
    /// Returns `a · b + c`, or `c − a · b` if negated.
    fn fma(kernel: &Kernel, wide: bool, negated: bool, of: [&Expression; 3]) -> Expression;
    /// Returns `1 / a`.
    fn reciprocal(kernel: &Kernel, wide: bool, a: &Expression) -> Expression;
    /// Returns a function of one argument.
    fn unary(kernel: &Kernel, function: Unary, wide: bool, a: &Expression) -> Expression;
    /// Returns a function of two arguments.
    fn binary(
        kernel: &Kernel,
        function: Binary,
        wide: bool,
        a: &Expression,
        b: &Expression,
    ) -> Expression;
    /// Returns a comparison.
    fn compare(
        kernel: &Kernel,
        comparison: Comparison,
        wide: bool,
        a: &Expression,
        b: &Expression,
    ) -> Expression;
    /// Returns whether both (or either) are true.
    fn join(both: bool, wide: bool, a: &Expression, b: &Expression) -> Expression;
    /// Returns the opposite truth value.
    fn not(wide: bool, a: &Expression) -> Expression;
    /// Returns a choice by a truth value.
    fn select(
        kernel: &Kernel,
        wide: bool,
        condition: &Expression,
        yes: &Expression,
        no: &Expression,
    ) -> Expression;
}

/// Number of loops above which a kernel is printed with a function per stage. LLVM's loop passes traverse the whole
/// loop nest for each of its loops: with a single batch loop around many others they take minutes.
const LOOPS: usize = 40;

/// The stages of a kernel.
pub(super) struct Stages<'k> {
    pub(super) kernel: &'k FoldedKernel,
    pub(super) bodies: Vec<&'k [Statement]>,
    /// The private arrays in use and the stages that use them. An array shared by several stages exists once for each
    /// batch of a block.
    pub(super) users: Vec<(LocalId, Vec<usize>)>,
    /// True if each stage is a function.
    pub(super) many: bool,
}

impl<'k> Stages<'k> {
    pub(super) fn new(kernel: &'k FoldedKernel) -> Self {
        let stages = kernel.body.split(|statement| matches!(statement, Statement::Stage));
        let bodies: Vec<&[Statement]> = stages.collect();
        let users = |id| {
            let uses = |&stage: &usize| kernel.uses_local(bodies[stage], id);
            (0..bodies.len()).filter(uses).collect::<Vec<usize>>()
        };
        let users = kernel.locals.ids().map(|id| (id, users(id)));
        let users = users.filter(|(_, users)| !users.is_empty()).collect();
        Self { kernel, bodies, users, many: loops(&kernel.body) > LOOPS }
    }

    /// Returns the arrays that a stage shares with others.
    pub(super) fn shared(&self, stage: usize) -> impl Iterator<Item = LocalId> {
        let shared = self.users.iter().filter(|(_, users)| users.len() > 1);
        shared.filter(move |(_, users)| users.contains(&stage)).map(|(id, _)| *id)
    }

    /// Returns the arrays of one stage alone.
    pub(super) fn alone(&self, stage: usize) -> impl Iterator<Item = LocalId> {
        let alone = self.users.iter().filter(move |(_, users)| users.as_slice() == [stage]);
        alone.map(|(id, _)| *id)
    }

    /// Returns the arrays that are declared outside of the stages, each with the number of batches that it is for.
    pub(super) fn outer(&self) -> impl Iterator<Item = (LocalId, usize)> {
        self.users.iter().filter_map(|(id, users)| match users.as_slice() {
            [_] if self.many => None,
            [_] => Some((*id, 1)),
            _ => Some((*id, self.kernel.block)),
        })
    }

    /// Returns whether a stage needs the number of lanes that write.
    pub(super) fn writes(&self, stage: usize) -> bool {
        self.bodies.len() == 1 || self.bodies[stage].iter().any(scatters)
    }

    /// Returns the names of the arguments of a stage's function.
    pub(super) fn arguments(&self, stage: usize) -> Vec<String> {
        let arguments = self.kernel.arguments.iter().map(|argument| argument.name.clone());
        let shared = self.shared(stage).map(|id| self.kernel.locals[id].name.clone());
        ["batch", "end"].map(str::to_owned).into_iter().chain(arguments).chain(shared).collect()
    }
}

/// Returns the text without spaces at the ends of lines.
pub(super) fn trim_lines(text: &str) -> String {
    let mut trimmed = String::with_capacity(text.len());
    for line in text.lines() {
        trimmed.push_str(line.trim_end());
        trimmed.push('\n');
    }
    trimmed
}

/// Returns the scalar type of a precision.
pub(super) fn scalar(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => "f64",
        Precision::F32 => "f32",
    }
}

/// Returns the name of a kernel's vector type.
pub(super) fn vector(kernel: &Kernel) -> String {
    format!("{}x{}", scalar(kernel.precision), kernel.lanes)
}
