//! Compilation of a form on elements and a mesh to executable kernels.
//!
//! One call selects the plans, prints the source and compiles it. Kernels compiled into the program are used without
//! compilation. Without a compiler, the same kernels are interpreted: slower, with equal results.

mod ahead_of_time;
pub(crate) mod prefetch;
mod spills;
pub mod tuning;

use crate::device::cpu::{LinkedKernels, Machine, Module};
use crate::device::jit::{Compiler, CompilerError, Jit, JitError, JitOptions, warn_once};
use crate::device::{self, Device, DeviceError};
use crate::kernels::purpose::{CellClass, CellKernel, CellSubset};
use crate::kernels::rates::named;
use crate::kernels::representation::Representation;
use crate::space::discretisation::Discretisation;
use crate::support::timers::KernelBuildGuard;
use fem_dsl::point::PointForm;
use kernels_gen::abi::{KernelAbi, Precision};
use kernels_gen::choose::{MeshFacts, PlanOverrides, choose, choose_for_threads};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::dialect::{GeneratedSource, Language, SourceFile};
use kernels_gen::generate::{generate_for_threads, generate_for_vectors, interpret};
use kernels_gen::interpreted::LANES;
use kernels_gen::plan::cell_matrix::CellMatrix;
use kernels_gen::plan::turns::{FacetPairs, of_pair};
use kernels_gen::plan::{Elements, Plan, PlanError, Task};
use spills::SpillAttempts;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Execution mode of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// Compiled with a usable compiler, else interpreted, with a warning. A whole solve that is predicted to end before
    /// a compiler would is interpreted.
    #[default]
    Automatic,
    /// Compiled; an error without a compiler.
    Compiled,
    /// Interpreted: slow.
    Interpreted,
}

/// Reason for interpretation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterpretationReason {
    /// The caller requested it.
    Requested,
    /// No usable compiler.
    NoCompiler(CompilerError),
}

impl InterpretationReason {
    /// Returns a note for the user, unless it was requested.
    pub fn note(&self) -> Option<String> {
        (*self != Self::Requested).then(|| self.to_string())
    }
}

/// Formats one line, with the remedy.
impl fmt::Display for InterpretationReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => write!(f, "kernels are interpreted, as asked"),
            Self::NoCompiler(error) => {
                let text = error.to_string();
                let (what, help) =
                    text.split_once("\nhelp: ").unwrap_or((&text, "install Rust, gcc or clang"));
                let what = what.replace('\n', "; ");
                write!(f, "kernels are interpreted, right but far slower: {what} (help: {help})")
            }
        }
    }
}

/// Target of the compilation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The instruction set.
    pub isa: Isa,
    /// Precision of vectors and arithmetic.
    pub precision: Precision,
    /// Forced choices.
    pub wishes: PlanOverrides,
    /// The execution mode.
    pub execution: Execution,
    /// Kernels compiled into the program.
    pub linked: &'static [LinkedKernels],
    /// The representation of the Jacobian; `None` to choose it for the solver.
    pub representation: Option<Representation>,
}

impl Target {
    /// Returns the settings for this machine, in double precision, without forced choices.
    pub fn native() -> Self {
        let isa = Machine::detect().simd.isa();
        let (wishes, execution) = (PlanOverrides::default(), Execution::default());
        let (precision, representation) = (Precision::F64, None);
        Self { isa, precision, wishes, execution, linked: &[], representation }
    }

    /// Sets the representation of the Jacobian.
    #[must_use]
    pub fn representing(mut self, how: Representation) -> Self {
        self.representation = Some(how);
        self.wishes.matrix = Some(how.scatter());
        self
    }

    /// Returns the reason for interpretation, if kernels are interpreted.
    fn interpreted(&self) -> Option<InterpretationReason> {
        match self.execution {
            Execution::Compiled => None,
            Execution::Interpreted => Some(InterpretationReason::Requested),
            Execution::Automatic => match Jit::global().compiler() {
                Ok(_) => None,
                Err(error) => Some(InterpretationReason::NoCompiler(error.clone())),
            },
        }
    }
}

/// Error of kernel compilation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// No possible plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A compiler error.
    #[error(transparent)]
    Jit(#[from] JitError),
    /// An error of the device or its compiler.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A kernel that is not compiled into the program, without a compiler.
    #[error(
        "`{kernel}` was not compiled ahead of time, and {compiler}\n\
         help: or add `{setting}` to the macro's `#![ahead_of_time(…)]`, or have kernels interpreted"
    )]
    NotAhead {
        /// The kernel.
        kernel: String,
        /// The missing setting of the macro.
        setting: String,
        /// The reason against compilation at run time.
        compiler: CompilerError,
    },
}

/// Origin of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled into the program.
    AheadOfTime,
    /// Found in the cache.
    Cache,
    /// Compiled in this call.
    Compiler,
    /// Interpreted.
    Interpreter,
}

/// Compiled kernels with their plans and source.
#[derive(Debug)]
pub struct CompiledKernels {
    /// The plans, in source order.
    pub plans: Vec<Plan>,
    /// The source; empty text for ahead-of-time and interpreted kernels.
    pub source: SourceFile,
    /// The origin of the kernels.
    pub origin: Origin,
    /// The executable kernels.
    pub module: Arc<Module>,
    /// The reason for interpretation; `None` if compiled.
    pub interpreted: Option<InterpretationReason>,
    /// The compiler at run time, for reports: `rustc 1.95.0`; `None` without one.
    pub compiler: Option<String>,
    /// The purpose of each kernel.
    pub kernels: Vec<CellKernel>,
    /// Seconds for planning, printing, compiling and loading.
    pub seconds: f64,
}

impl CompiledKernels {
    /// Returns `compiled` or `interpreted`, for messages.
    pub fn word(&self) -> &'static str {
        if self.interpreted.is_some() { "interpreted" } else { "compiled" }
    }
}

/// Returns the facets of the pairs of simplices of all integrals; `None` without such integrals.
fn facet_pairs(on: &Discretisation) -> Option<FacetPairs> {
    let cell = on.mesh.cell();
    if cell.is_tensor() || on.pairs.iter().all(Option::is_none) {
        return None;
    }
    let mut found = FacetPairs::default();
    for pair in on.pairs.iter().flatten().flatten() {
        found.insert(of_pair(cell, pair.sides.map(|side| side.local), pair.orientations));
    }
    (found != FacetPairs::default()).then_some(found)
}

/// Returns the properties of a discretisation that affect plans.
pub fn facts(on: &Discretisation) -> MeshFacts {
    MeshFacts {
        affine: on.mesh.is_affine(),
        order: on.mesh.order(),
        runs: on.fields.iter().all(|field| field.space.runs().is_some()),
        signs: on.fields.iter().any(|field| field.space.has_signs()),
        periodic: on.mesh.is_periodic(),
        hanging: on.mesh.hanging().is_some(),
        pairs: facet_pairs(on),
    }
}

/// Compiles or interprets the kernels of some tasks, depending on the target.
pub fn compile(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    target: &Target,
) -> Result<CompiledKernels, CompileError> {
    compile_deferring(form, elements, facts, (tasks, &[]), target)
}

/// The same; kernels of the `deferred` ones among the tasks are compiled when one of them is needed first.
pub(crate) fn compile_deferring(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    (tasks, deferred): (&[Task], &[Task]),
    target: &Target,
) -> Result<CompiledKernels, CompileError> {
    let _making = KernelBuildGuard::begin();
    let start = Instant::now();
    let ExecutableKernels { plans, source, module, origin, interpreted } =
        make(form, elements, facts, (tasks, deferred), target)?;
    let kernels = purposes(form, elements, &plans, &source);
    let seconds = start.elapsed().as_secs_f64();
    let module = Arc::new(module);
    let by_compiler = matches!(origin, Origin::Cache | Origin::Compiler);
    let compiler = Jit::global().compiler().ok().filter(|_| by_compiler).map(Compiler::title);
    Ok(CompiledKernels { plans, source, origin, module, interpreted, compiler, kernels, seconds })
}

/// Returns the purpose of each kernel.
fn purposes(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    source: &SourceFile,
) -> Vec<CellKernel> {
    let purpose = |(plan, abi): (&Plan, &KernelAbi)| CellKernel {
        task: plan.task,
        class: match (form.integrals[plan.integral].region.is_of_cells(), plan.larger) {
            (false, None) => match plan.facet {
                None => CellClass::Facets(plan.integral),
                Some(facet) => CellClass::FacetsAt(facet, plan.integral),
            },
            (false, Some(larger)) => CellClass::HangingFacets(larger, plan.integral),
            (true, _) if plan.hanging => CellClass::Cells(CellSubset::Hanging, plan.integral),
            (true, _) => CellClass::Cells(CellSubset::Regular, plan.integral),
        },
        name: abi.name.clone(),
        geometry: plan.geometry,
        target: plan.target,
        matrix: plan.task.is_of_matrices().then(|| CellMatrix::of(form, elements, plan.integral)),
    };
    plans.iter().zip(&source.kernels).map(purpose).collect()
}

/// Kernels loaded on a device, with their plans and source.
#[derive(Debug)]
pub struct DeviceKernels {
    /// The device.
    pub device: Arc<dyn Device>,
    /// The precision of vectors and arithmetic.
    pub precision: Precision,
    /// The plans, in source order.
    pub plans: Vec<Plan>,
    /// The source.
    pub source: SourceFile,
    /// The origin: cached or compiled.
    pub origin: Origin,
    /// Seconds for planning, printing, compiling and loading.
    pub seconds: f64,
    module: device::Module,
    purposes: Vec<CellKernel>,
}

impl DeviceKernels {
    /// Returns the kernels with their purposes.
    pub fn kernels(&self) -> impl Iterator<Item = (&CellKernel, &device::Kernel)> {
        self.purposes.iter().zip(&self.module.kernels)
    }

    /// Returns the kernel with an index.
    pub(crate) fn kernel(&self, number: usize) -> Option<&device::Kernel> {
        self.module.kernels.get(number)
    }
}

/// Compiles the kernels of some tasks for a device, in one source. On register spills other plans are tried
/// (`compile/spills`), except for choices in `wishes`.
pub fn compile_for_device(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    device: Arc<dyn Device>,
    precision: Precision,
    wishes: &PlanOverrides,
) -> Result<DeviceKernels, CompileError> {
    let _making = KernelBuildGuard::begin();
    let start = Instant::now();
    let (mut plans, wishes) =
        plan_for_device(form, elements, facts, tasks, &*device, precision, wishes)?;
    let mut spills = SpillAttempts::new(&plans, &wishes);
    let mut cached = true;
    let (source, module) = loop {
        let source = generate_for_threads(form, elements, &plans, device.words())?;
        let module = device.load(&source)?;
        cached &= module.cached;
        let kernels = source.kernels.iter().zip(&module.kernels);
        let kernels: Vec<(usize, usize)> =
            kernels.map(|(abi, kernel)| (abi.threads, kernel.spilt())).collect();
        if !spills.less(&mut plans, &kernels) {
            break (source, module);
        }
    };
    let origin = if cached { Origin::Cache } else { Origin::Compiler };
    let purposes = purposes(form, elements, &plans, &source);
    let (seconds, source) = (start.elapsed().as_secs_f64(), source.into_file());
    Ok(DeviceKernels { device, precision, plans, source, origin, seconds, module, purposes })
}

/// Returns the plans of kernels for a device, and the choices of its machine.
fn plan_for_device(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    device: &dyn Device,
    precision: Precision,
    wishes: &PlanOverrides,
) -> Result<(Vec<Plan>, PlanOverrides), PlanError> {
    let shared_bytes = Some(wishes.shared_bytes.unwrap_or_else(|| device.shared_bytes()));
    let wishes = PlanOverrides { shared_bytes, ..*wishes };
    let plans = tuning::planned(
        (form, elements, facts),
        tasks,
        (precision, &device.name()),
        &wishes,
        |tasks, wishes| choose_for_threads(form, elements, facts, tasks, precision, wishes),
    )?;
    Ok((plans, wishes))
}

/// Executable kernels.
struct ExecutableKernels {
    plans: Vec<Plan>,
    source: SourceFile,
    module: Module,
    origin: Origin,
    interpreted: Option<InterpretationReason>,
}

fn make(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    (tasks, deferred): (&[Task], &[Task]),
    target: &Target,
) -> Result<ExecutableKernels, CompileError> {
    let Target { isa, precision, mut wishes, .. } = *target;
    if target.execution != Execution::Interpreted && !isa.runs_on(Machine::detect().simd.isa()) {
        return Err(JitError::OtherProcessor { isa }.into());
    }
    // The CPU operator always colours chunks of cells.
    wishes.scatter = None;
    let mut missing = None;
    if !target.linked.is_empty() && target.execution != Execution::Interpreted {
        let plans = choose(form, elements, facts, tasks, isa, precision, &wishes)?;
        match ahead_of_time::find(form, elements, &plans, target)? {
            Ok((source, module)) => {
                let origin = Origin::AheadOfTime;
                return Ok(ExecutableKernels { plans, source, module, origin, interpreted: None });
            }
            Err(kernel) => missing = Some(kernel),
        }
    }
    let mut interpreted = target.interpreted();
    if interpreted.is_none() {
        let made = make_compiled(form, elements, facts, (tasks, deferred), target);
        match made {
            // A compiler that does not respond, or whose output is unusable.
            Err(CompileError::Jit(JitError::Compiler(error)))
                if target.execution == Execution::Automatic =>
            {
                interpreted = Some(InterpretationReason::NoCompiler(error));
            }
            made => return made,
        }
    }
    if let (Some(kernel), Some(InterpretationReason::NoCompiler(compiler))) =
        (missing, &interpreted)
    {
        let (setting, compiler) = (ahead_of_time::setting(elements, facts), compiler.clone());
        return Err(CompileError::NotAhead { kernel, setting, compiler });
    }
    if let Some(why @ InterpretationReason::NoCompiler(_)) = &interpreted {
        warn_once(&why.to_string());
    }
    wishes.lanes = wishes.lanes.or(Some(LANES));
    if wishes.strategy.is_some() {
        // GPU kernels without a GPU, on host vectors.
        wishes.tiles = Some(false);
        let mut plans = choose_for_threads(form, elements, facts, tasks, precision, &wishes)?;
        plans.iter_mut().for_each(|plan| plan.one_sided = true);
        return made_interpreted(form, elements, plans, interpreted);
    }
    let plans = choose(form, elements, facts, tasks, isa, precision, &wishes)?;
    made_interpreted(form, elements, plans, interpreted)
}

/// Builds interpreted kernels without source text.
fn made_interpreted(
    form: &PointForm,
    elements: &Elements,
    plans: Vec<Plan>,
    interpreted: Option<InterpretationReason>,
) -> Result<ExecutableKernels, CompileError> {
    let kernels = interpret(form, elements, &plans)?;
    let mut source = SourceFile::empty(Language::Rust);
    source.kernels.extend(kernels.iter().map(|kernel| kernel.abi().clone()));
    let (module, origin) = (Module::interpreted(kernels), Origin::Interpreter);
    Ok(ExecutableKernels { plans, source, module, origin, interpreted })
}

fn make_compiled(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    (tasks, deferred): (&[Task], &[Task]),
    target: &Target,
) -> Result<ExecutableKernels, CompileError> {
    let (plans, source) = planned_source(form, elements, facts, tasks, target)?;
    let options = JitOptions::new(form.name.as_str());
    let is_deferred = |at: usize| deferred.contains(&plans[at].task);
    let (now, later) = match source.separate(is_deferred) {
        Some([now, later]) => (Cow::Owned(now), Some(later)),
        None => (Cow::Borrowed(&source), None),
    };
    let (mut module, cached) = Jit::global().load(&now, &options)?;
    if let Some(later) = later {
        let plans: Vec<Plan> =
            plans.iter().filter(|plan| deferred.contains(&plan.task)).cloned().collect();
        let (form, elements, execution) = (form.clone(), elements.clone(), target.execution);
        module.defer(later.kernels.clone(), move || {
            let _making = KernelBuildGuard::begin();
            match Jit::global().load(&later, &options) {
                Ok((module, _)) => Ok(module),
                Err(JitError::Compiler(error)) if execution == Execution::Automatic => {
                    warn_once(&InterpretationReason::NoCompiler(error).to_string());
                    let kernels = interpret(&form, &elements, &plans);
                    Ok(Module::interpreted(kernels.map_err(|error| error.to_string())?))
                }
                Err(error) => Err(error.to_string()),
            }
        });
    }
    let origin = if cached { Origin::Cache } else { Origin::Compiler };
    Ok(ExecutableKernels { plans, source: source.into_file(), module, origin, interpreted: None })
}

/// Returns the plans of kernels for this processor, and their source.
fn planned_source(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    target: &Target,
) -> Result<(Vec<Plan>, GeneratedSource), PlanError> {
    let Target { isa, precision, mut wishes, .. } = *target;
    // The CPU operator always colours chunks of cells.
    wishes.scatter = None;
    wishes.machine = wishes.machine.or_else(tuning::measured);
    let plans = tuning::planned(
        (form, elements, facts),
        tasks,
        (precision, &named()),
        &wishes,
        |tasks, wishes| choose(form, elements, facts, tasks, isa, precision, wishes),
    )?;
    let language = Jit::global().language();
    let source = generate_for_vectors(form, elements, &plans, isa, language)?;
    Ok((plans, source))
}
