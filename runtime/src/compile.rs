//! `compile`: a form with its elements, and what is known of the mesh → kernels that can be launched.
//!
//! The choice of plans, the source and its compilation in one call.

use crate::device::cpu::{Machine, Module, Simd};
use crate::discretisation::Discretisation;
use crate::jit::{self, JitError};
use crate::operator::{CellKernel, Class};
use crate::vector::Precision;
use fem_dsl::point::PointForm;
use kernels_gen::abi::Indices;
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::generate::generate;
use kernels_gen::plan::choose::{MeshFacts, Wishes, choose};
use kernels_gen::plan::{Elements, Plan, PlanError, Task};
use std::sync::Arc;
use std::time::Instant;

/// For what kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The instruction set.
    pub isa: Isa,
    /// Precision of vectors and arithmetic.
    pub precision: Precision,
    /// What is forced.
    pub wishes: Wishes,
}

impl Target {
    /// This machine, in double precision, with nothing forced.
    pub fn native() -> Self {
        let isa = match Machine::detect().simd {
            Simd::Avx512 => Isa::Avx512,
            Simd::Avx2Fma => Isa::Avx2,
            Simd::Sse2 | Simd::Neon | Simd::Scalar => Isa::Portable,
        };
        Self { isa, precision: Precision::F64, wishes: Wishes::default() }
    }
}

/// Why there are no kernels.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// No plan is possible.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The compiler failed.
    #[error(transparent)]
    Jit(#[from] JitError),
}

/// Kernels with all that led to them.
#[derive(Debug)]
pub struct Compiled {
    /// The plans, in the order of the source's kernels.
    pub plans: Vec<Plan>,
    /// The source.
    pub source: SourceFile,
    /// The loaded kernels.
    pub module: Arc<Module>,
    /// What each kernel is for.
    pub kernels: Vec<CellKernel>,
    /// Seconds for planning, printing, compiling and loading.
    pub seconds: f64,
}

/// What a plan needs to know of a discretisation.
pub fn facts(on: &Discretisation) -> MeshFacts {
    MeshFacts {
        affine: on.mesh.is_affine(),
        order: on.mesh.order(),
        runs: on.fields.iter().all(|field| field.space.runs().is_some()),
        constrained: on.fields.iter().any(|field| !field.constraints.is_empty()),
    }
}

/// Compiles the kernels for some tasks.
pub fn compile(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    target: &Target,
) -> Result<Compiled, CompileError> {
    let start = Instant::now();
    let plans = choose(form, elements, facts, tasks, target.isa, target.precision, &target.wishes)?;
    let source = generate(form, elements, &plans, target.isa)?;
    let options = jit::Options { name: form.name.clone(), ..jit::Options::default() };
    let library = jit::compile(&source.text, &options)?;
    let module = Module::new(library, &source.kernels).map_err(JitError::Load)?;
    let kernels = plans
        .iter()
        .zip(&source.kernels)
        .map(|(plan, abi)| CellKernel {
            task: plan.task,
            class: match (plan.indices, facts.constrained) {
                (Indices::Dofs, _) => Class::Constrained,
                (_, true) => Class::Free,
                (_, false) => Class::All,
            },
            name: abi.name.clone(),
            geometry: plan.geometry,
        })
        .collect();
    let seconds = start.elapsed().as_secs_f64();
    Ok(Compiled { plans, source, module: Arc::new(module), kernels, seconds })
}
