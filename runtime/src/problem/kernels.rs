//! Compiles a form's kernels for the host or a device and builds the operator, whose interface hides the difference.

use super::RunError;
use super::platform::Platform;
use crate::algebra::vector::ComplexPairs;
use crate::device::Backend;
use crate::kernels::compile::prefetch::KernelRequest;
use crate::kernels::compile::{
    InterpretationReason, Origin, Target, compile_deferring, compile_for_device, facts,
};
use crate::operator::{CellIntegrals, Operator, TableCache};
use crate::space::constraint::Constraints;
use crate::space::discretisation::Discretisation;
use crate::support::timers::{in_step, step};
use fem_dsl::point::{PointForm, complex_pairs};
use kernels_gen::aot::TASKS;
use kernels_gen::plan::{Elements, Plan, Scatter, Task};
use std::sync::Arc;

/// Kernels of a solved problem.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// Backend that ran them.
    pub backend: Backend,
    /// Name of the device, if it has its own memory.
    pub device: Option<String>,
    /// `compiled` or `interpreted`.
    pub word: &'static str,
    /// Origin of the kernels.
    pub origin: Origin,
    /// The compiler at run time, `rustc 1.95.0`; `None` for other origins and on devices.
    pub compiler: Option<String>,
    /// Kernel plans.
    pub plans: Vec<Plan>,
    /// Seconds of planning, printing, compiling and loading.
    pub seconds: f64,
    /// Reasons for a fallback to the interpreter.
    pub notes: Vec<String>,
}

impl Kernels {
    /// Returns the scatter strategy; the host colours its chunks of cells.
    pub fn scatter(&self) -> Scatter {
        let plan = self.device.as_ref().and(self.plans.first());
        plan.map_or(Scatter::Coloured, |plan| plan.scatter)
    }
}

/// Compiles a form's kernels for the host or a device, and fills the operator's tables.
///
/// # Errors
///
/// Kernels that cannot be compiled, tables that cannot be filled, a device failure.
pub fn compile_operator(
    form: &PointForm,
    elements: &Elements,
    on: &Arc<Discretisation>,
    params: &[f64],
    platform: &Platform,
) -> Result<(Operator, Kernels), RunError> {
    let tasks = operator_tasks(&platform.target);
    compile_represented(form, elements, on, params, &tasks, platform)
}

/// Returns the tasks of an operator's kernels.
fn operator_tasks(target: &Target) -> Vec<Task> {
    let others = TASKS.into_iter().filter(|&task| task != Task::Action);
    others.chain(target.representation.unwrap_or_default().tasks().iter().copied()).collect()
}

/// Tasks of an operator whose kernels are compiled when they are needed first.
pub(super) const DEFERRED: &[Task] = &[Task::Diagonal];

/// Returns the kernels of [`compile_operator`]; on the host with the diagonal only if it is needed.
pub(super) fn operator_request(
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
    platform: &Platform,
    needs_diagonal: bool,
) -> KernelRequest {
    let Platform { target, device, .. } = platform.clone();
    let target = target.representing(target.representation.unwrap_or_default());
    KernelRequest {
        form: form.clone(),
        elements: elements.clone(),
        facts: facts(on),
        tasks: operator_tasks(&target),
        deferred: DEFERRED.to_vec(),
        needs_deferred: needs_diagonal,
        target,
        device,
    }
}

/// Returns the tasks of products with the Jacobian, and of its diagonal.
pub(super) fn product_tasks(target: &Target) -> Vec<Task> {
    let products = target.representation.unwrap_or_default().tasks();
    [products, DEFERRED].concat()
}

/// Compiles the kernels of some tasks, the deferred ones when they are needed, for the target's representation.
///
/// # Errors
///
/// As for [`compile_operator`].
pub(super) fn compile_represented(
    form: &PointForm,
    elements: &Elements,
    on: &Arc<Discretisation>,
    params: &[f64],
    tasks: &[Task],
    platform: &Platform,
) -> Result<(Operator, Kernels), RunError> {
    let how = platform.target.representation.unwrap_or_default();
    let platform = platform.with_target(platform.target.representing(how));
    let (tasks, table_cache) = ((tasks, DEFERRED), TableCache::default());
    let (mut operator, kernels) =
        compile_deferring_for(form, elements, on, params, tasks, &platform, table_cache)?;
    operator.represent(how)?;
    operator.set_complex_pairs(complex_pairs_on(form, on));
    Ok((operator, kernels))
}

/// Returns the real and imaginary parts of all fields, if J and its conditions are complex-linear.
fn complex_pairs_on(form: &PointForm, on: &Discretisation) -> Option<ComplexPairs> {
    let pairs = complex_pairs(form).filter(|_| on.affine.is_empty())?;
    let are_alike = |&[re, im]: &[usize; 2]| {
        let [re, im] = [re, im].map(|field| &on.fields[field].constraints);
        let dofs = |constraints: &Constraints| -> Vec<usize> {
            constraints.iter().map(|(dof, _)| dof).collect()
        };
        re.oblique().is_empty()
            && im.oblique().is_empty()
            && re.len() == im.len()
            && dofs(re) == dofs(im)
    };
    let parts = pairs.iter().map(|pair| pair.map(|field| on.dofs_of(field))).collect();
    if pairs.iter().all(are_alike) { ComplexPairs::new(parts) } else { None }
}

/// Compiles kernels with tables shared from another operator on the same mesh.
pub(super) fn compile_for(
    form: &PointForm,
    elements: &Elements,
    on: &Arc<Discretisation>,
    params: &[f64],
    tasks: &[Task],
    platform: &Platform,
    table_cache: TableCache,
) -> Result<(Operator, Kernels), RunError> {
    compile_deferring_for(form, elements, on, params, (tasks, &[]), platform, table_cache)
}

fn compile_deferring_for(
    form: &PointForm,
    elements: &Elements,
    on: &Arc<Discretisation>,
    params: &[f64],
    (tasks, deferred): (&[Task], &[Task]),
    platform: &Platform,
    table_cache: TableCache,
) -> Result<(Operator, Kernels), RunError> {
    let Platform { target, device, .. } = platform;
    let symmetric = form.integrals.iter().all(|integral| integral.symmetric);
    let (facts, precision) = (facts(on), target.precision);
    let Some(device) = device.clone() else {
        let compiled = in_step("kernels", || {
            compile_deferring(form, elements, &facts, (tasks, deferred), target)
        })?;
        let (module, purposes) = (compiled.module.clone(), &compiled.kernels);
        let filling = step("tables");
        let operator = Operator::on_host_with(
            on.clone(),
            module,
            purposes,
            precision,
            params,
            symmetric,
            table_cache,
        )?;
        drop(filling);
        let kernels = Kernels {
            backend: Backend::Cpu,
            device: None,
            word: compiled.word(),
            origin: compiled.origin,
            compiler: compiled.compiler,
            notes: compiled.interpreted.iter().filter_map(InterpretationReason::note).collect(),
            plans: compiled.plans,
            seconds: compiled.seconds,
        };
        return Ok((operator, kernels));
    };
    let (backend, name) = (device.backend(), device.name());
    let wishes = &target.wishes;
    let compiled = in_step("kernels", || {
        compile_for_device(form, elements, &facts, tasks, device, precision, wishes)
    })?;
    let compiled = Arc::new(compiled);
    let operator = in_step("tables", || {
        Operator::on_device_with(on.clone(), compiled.clone(), params, symmetric, table_cache)
    })?;
    let kernels = Kernels {
        backend,
        device: Some(name),
        word: "compiled",
        notes: Vec::new(),
        compiler: None,
        origin: compiled.origin,
        plans: compiled.plans.clone(),
        seconds: compiled.seconds,
    };
    Ok((operator, kernels))
}

/// Resources for a residual on a mesh with existing operators.
pub(super) struct SharedResources<'a> {
    /// Processor and device.
    pub(super) platform: &'a Platform,
    /// Shared table cache.
    pub(super) table_cache: &'a mut TableCache,
}

/// Compiles the integrals of the fields of a form after those of a discretisation; `params` are the values of the form's
/// parameters.
///
/// # Errors
///
/// Kernels that cannot be compiled, fields that cannot be numbered.
pub(super) fn cell_integrals(
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
    params: &[f64],
    beside: SharedResources<'_>,
) -> Result<CellIntegrals, RunError> {
    let own = on.fields.len();
    let further = elements.spaces().split_off(own);
    let on = on.with_fields(form, &further)?;
    let components: Vec<usize> = further.into_iter().map(|(_, components)| components).collect();
    Ok(CellIntegrals::new(residual_of(form, elements, on, params, beside)?, own, &components))
}

/// Compiles a form's residual, without the program's linked kernels, which belong to its own forms.
pub(super) fn residual_of(
    form: &PointForm,
    elements: &Elements,
    on: Discretisation,
    params: &[f64],
    beside: SharedResources<'_>,
) -> Result<Operator, RunError> {
    let SharedResources { platform, table_cache } = beside;
    let platform = platform.with_target(Target { linked: &[], ..platform.target });
    let (on, known) = (Arc::new(on), table_cache.clone());
    let (operator, _) =
        compile_for(form, elements, &on, params, &[Task::Residual], &platform, known)?;
    table_cache.keep(operator.table_cache());
    Ok(operator)
}
