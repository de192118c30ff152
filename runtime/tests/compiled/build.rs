//! Compilation of several cases into one library, which runs them.

use super::choices::Case;
use super::launch::{Data, Launcher, Runner, companions};
use super::setting::Setting;
use kernels_gen::abi::KernelAbi;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::dialect::{GeneratedSource, Language};
use kernels_gen::generate::generate_for_vectors;
use kernels_gen::plan::{Linearisation, Plan, Task};
use rayon::prelude::*;
use runtime::device::cpu::{Argument, Buffer, Module, PlainNumber};
use runtime::device::jit::{Jit, JitOptions};
use std::collections::BTreeSet;

/// Approximate number of source bytes per compilation.
const SOURCE: usize = 600_000;

/// Guard elements after every array, which no kernel may write or use.
const GUARD: usize = 64;

/// One case in this many is optimised in full runs; otherwise the first of each cell, low and high degree, and
/// instruction set. The others test the printed code rather than the compiler's passes, in half the compilation time or
/// less.
const OPTIMISED: usize = 3;

/// Largest source size for optimisation: the compiler takes minutes for each of the largest, a day for all of them.
const LARGE: usize = 200_000;

/// The largest low degree.
const LOW: usize = 2;

/// One case in this many is also compiled as C; all in full runs.
const IN_C: usize = 3;

/// Cases of one instruction set with their source, and the source in C of some of them.
pub(crate) struct Group {
    pub(crate) isa: Isa,
    optimised: bool,
    pub(crate) cases: Vec<Case>,
    source: GeneratedSource,
    in_c: GeneratedSource,
}

/// The sources of a case.
struct Sources {
    rust: GeneratedSource,
    c: Option<GeneratedSource>,
}

impl Group {
    fn new(isa: Isa, optimised: bool) -> Self {
        let [source, in_c] = [Language::Rust, Language::C].map(GeneratedSource::empty);
        Self { isa, optimised, cases: Vec::new(), source, in_c }
    }

    /// Adds a case with its kernels.
    fn add(&mut self, case: Case, sources: Sources) {
        self.source.append(sources.rust.in_module(&format!("case_{}", case.seed)));
        if let Some(source) = sources.c {
            self.in_c.append(source);
        }
        self.cases.push(case);
    }

    /// Returns the number of kernels in the source.
    pub(crate) fn kernels(&self) -> usize {
        self.source.kernels.len()
    }

    /// Returns the number of kernels in the source in C.
    pub(crate) fn kernels_in_c(&self) -> usize {
        self.in_c.kernels.len()
    }

    /// Compiles the kernels for their instruction set.
    pub(crate) fn compile(&self, jit: &Jit) -> Result<Module, String> {
        self.compile_source(jit, &self.source)
    }

    /// Compiles the kernels in C.
    pub(crate) fn compile_c(&self, jit: &Jit) -> Result<Module, String> {
        self.compile_source(jit, &self.in_c)
    }

    fn compile_source(&self, jit: &Jit, source: &GeneratedSource) -> Result<Module, String> {
        let options = JitOptions::new(format!("conformance_{}", self.isa)).tuned_for(self.isa);
        let options = if self.optimised { options } else { options.unoptimised() };
        let loaded = jit.load(source, &options).map_err(|error| error.to_string())?;
        Ok(loaded.0)
    }
}

/// Generates the kernels of a case and those whose results it reads.
fn source(case: &Case, language: Language) -> GeneratedSource {
    let mut plans = vec![case.plan.clone()];
    let stored = case.plan.linearisation == Linearisation::Stored;
    plans.extend(
        companions(&case.form, &case.elements, &case.plan, case.shape)
            .into_iter()
            .filter(|plan| plan.task != Task::Linearise || stored),
    );
    let source = generate_for_vectors(&case.form, &case.elements, &plans, case.isa, language);
    source.unwrap_or_else(|error| panic!("{}: {error}", case.name()))
}

/// Sorts cases into groups with one instruction set and optimisation level, of limited size.
pub(crate) fn groups(cases: Vec<Case>, full: bool, has_cc: bool) -> Vec<Group> {
    let mut done = Vec::new();
    let mut met = BTreeSet::new();
    let mut open: Vec<Group> = Vec::new();
    let both = |(number, case): (usize, &Case)| {
        let also = has_cc && (full || number.is_multiple_of(IN_C));
        let c = also.then(|| source(case, Language::C));
        Sources { rust: source(case, Language::Rust), c }
    };
    let sources: Vec<Sources> = cases.par_iter().enumerate().map(both).collect();
    for (number, (case, source)) in cases.into_iter().zip(sources).enumerate() {
        let small = source.rust.text.len() <= LARGE;
        let kind = (case.rule.cell().to_string(), case.degree > LOW, case.isa);
        let chosen = small && (met.insert(kind) || full && number.is_multiple_of(OPTIMISED));
        let key = (case.isa, chosen);
        let same = |group: &Group| (group.isa, group.optimised) == key;
        let at = open.iter().position(same).unwrap_or_else(|| {
            open.push(Group::new(key.0, key.1));
            open.len() - 1
        });
        open[at].add(case, source);
        if open[at].source.text.len() > SOURCE {
            done.push(open.swap_remove(at));
        }
    }
    done.extend(open);
    done
}

/// Runner of compiled kernels in Rust, and in C if the module has them: with the same results to the bit.
pub(crate) struct Both<'m> {
    pub(crate) rust: &'m Module,
    pub(crate) c: Option<&'m Module>,
}

impl Runner for Both<'_> {
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String> {
        let before = data.to_vec();
        Compiled(self.rust).run(plan, abi, batches, data)?;
        let Some(c) = self.c.filter(|module| module.kernel(&abi.name).is_ok()) else {
            return Ok(());
        };
        let mut in_c = before;
        let of_c = |error: String| format!("in C: {error}");
        Compiled(c).run(plan, abi, batches, &mut in_c).map_err(of_c)?;
        for ((ours, theirs), argument) in data.iter().zip(&in_c).zip(&abi.arguments) {
            if let Some((at, rust, c)) = first_difference(ours, theirs) {
                let name = &argument.name;
                return Err(format!("{name}[{at}] is {rust:e} in Rust and {c:e} in C"));
            }
        }
        Ok(())
    }
}

/// Returns the first entry of which the bits differ, and its values; all NaN are equal.
fn first_difference(a: &Data, b: &Data) -> Option<(usize, f64, f64)> {
    let reals = |data: &Data| -> Vec<f64> {
        match data {
            Data::F64(values) => values.clone(),
            Data::F32(values) => values.iter().copied().map(f64::from).collect(),
            Data::U32(values) => values.iter().copied().map(f64::from).collect(),
        }
    };
    let (a, b) = (reals(a), reals(b));
    let differs =
        |&at: &usize| a[at].to_bits() != b[at].to_bits() && !(a[at].is_nan() && b[at].is_nan());
    (0..a.len()).find(differs).map(|at| (at, a[at], b[at]))
}

/// Runner of compiled kernels.
pub(crate) struct Compiled<'m>(pub(crate) &'m Module);

impl Runner for Compiled<'_> {
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String> {
        let mut guarded: Vec<Guarded> = data.iter().map(Guarded::new).collect();
        let arguments: Vec<Argument<'_>> = guarded
            .iter_mut()
            .zip(&abi.arguments)
            .map(|(data, argument)| data.lend(argument.written))
            .collect();
        let kernel = self.0.kernel(&abi.name).map_err(|error| error.to_string())?;
        if kernel.abi() != abi {
            return Err(format!("{:?}: the compiled kernel has another interface", plan.task));
        }
        let launched = kernel.bind(arguments).and_then(|mut launch| launch.run(0..batches));
        launched.map_err(|error| error.to_string())?;
        for ((data, guarded), argument) in data.iter_mut().zip(&guarded).zip(&abi.arguments) {
            guarded.give_back(data).map_err(|what| format!("`{}` {what}", argument.name))?;
        }
        Ok(())
    }
}

/// Kernel data with a guard after it.
enum Guarded {
    F64(Buffer<f64>),
    F32(Buffer<f32>),
    U32(Buffer<u32>),
}

fn guarded<T: PlainNumber>(values: &[T], guard: T) -> Buffer<T> {
    Buffer::from_fn(values.len() + GUARD, |i| values.get(i).copied().unwrap_or(guard))
}

impl Guarded {
    fn new(data: &Data) -> Self {
        match data {
            Data::F64(values) => Self::F64(guarded(values, f64::NAN)),
            Data::F32(values) => Self::F32(guarded(values, f32::NAN)),
            Data::U32(values) => Self::U32(guarded(values, 0)),
        }
    }

    fn lend(&mut self, written: bool) -> Argument<'_> {
        match (self, written) {
            (Self::F64(buffer), false) => Argument::read(buffer),
            (Self::F64(buffer), true) => Argument::write(buffer),
            (Self::F32(buffer), false) => Argument::read(buffer),
            (Self::F32(buffer), true) => Argument::write(buffer),
            (Self::U32(buffer), _) => Argument::read(buffer),
        }
    }

    /// Copies data back; an error if a kernel wrote to the guard.
    fn give_back(&self, data: &mut Data) -> Result<(), String> {
        let whole = match (self, data) {
            (Self::F64(buffer), Data::F64(values)) => {
                let (inside, guard) = buffer.split_at(values.len());
                values.copy_from_slice(inside);
                guard.iter().all(|value| value.is_nan())
            }
            (Self::F32(buffer), Data::F32(values)) => {
                let (inside, guard) = buffer.split_at(values.len());
                values.copy_from_slice(inside);
                guard.iter().all(|value| value.is_nan())
            }
            _ => true,
        };
        if whole { Ok(()) } else { Err("is written behind its end".to_owned()) }
    }
}

impl Case {
    /// Returns a unique description of the case.
    pub(crate) fn name(&self) -> String {
        format!(
            "seed {} on {}, {:?}, degree {}, {:?}, {}",
            self.seed, self.rule, self.shape, self.degree, self.plan, self.isa
        )
    }

    /// Runs the case's kernels and compares the results.
    pub(crate) fn compare(&self, both: &Both<'_>) -> Result<super::launch::Agreement, String> {
        let (geometry, cells) = (self.plan.geometry, self.cells());
        let setting = Setting::new(&self.form, self.degree, self.rule, self.shape, geometry, cells);
        let launcher = Launcher { form: &self.form, elements: &self.elements, setting: &setting };
        launcher.compare(&self.plan, both)
    }

    /// Returns a full batch and a partial one; only the partial one if the reference is expensive.
    fn cells(&self) -> usize {
        let lanes = self.plan.lanes;
        let most = if self.elements.cell.dim() == 3 && self.degree > 4 { 3 } else { 48 };
        let part = lanes.div_ceil(2).min(most);
        if most < lanes || lanes == 1 { part + 1 } else { lanes + part }
    }
}
