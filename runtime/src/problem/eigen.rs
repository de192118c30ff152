//! Eigenvalue problem of a form: J φ = λ M φ, with the Jacobian J at the problem's initial state; yields [`Mode`]s.
//!
//! Constrained DoFs are 0 in each mode, whatever their value, since a mode is a change of the state. The method is
//! shift and invert ([`shift_invert`]) if the factors of J + σ M fit into memory. Otherwise it is LOBPCG,
//! preconditioned by multigrid or by the diagonal.

mod shifted;

use super::clock::{Clock, Phase};
use super::context::Context;
use super::derived::{self, DerivedField, with_derived};
use super::evaluation_state::EvaluationState;
use super::kernel_projection::{KernelProjection, ProjectedPreconditioner};
use super::kernels::compile_for;
use super::measure::throughput;
use super::multigrid::HierarchyInput;
use super::numerical_null_space::row_at;
use super::plan::{
    ModesPlan, PreconditionerPlan, ProblemProperties, Requirement, is_saddle, plan_modes,
};
use super::reports::{self, ReportCache, ReportResult as Reported, ranges};
use super::vector_fields::has_kernel;
use super::{Kernels, RunError, Solution};
use crate::algebra::factor::{AVAILABLE, FactorError};
use crate::algebra::linear::{Multiply, SPARSE, WHOLE};
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::{Operator, TableCache};
use crate::problem::plan::HierarchySettings;
use crate::solve::{
    self, ApproximateInverse, Continue, EigenModes, EigenSettings, LinearOperator,
    MultigridStatistics, NonlinearSystem, OperatorError, Preconditioner, Progress, Report,
    ShiftedPencil, lobpcg, shift_invert,
};
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::point::{Field, PointForm, shifted};
use fem_dsl::problem::{EigenProblem, Point, PreconditionerSettings, Problem};
use kernels_gen::plan::Task;
use shifted::{DefiniteInverse, PencilOperators};

/// Default of the relative residual,
const TOLERANCE: f64 = 1e-8;
/// but at least this multiple of eps.
const ROUNDING: f64 = 1e3;
/// Guard vectors of LOBPCG: this fraction (1/4) of the wanted modes, and at least `LEAST`.
const MORE: usize = 4;
const LEAST: usize = 3;
/// Number of degrees of freedom up to which the search space is the whole space.
const DENSE: usize = 150;
/// Block size of the Lanczos method.
const BLOCK: usize = 7;
/// σ of multigrid, relative to the largest ratio of J's diagonal to M's: levels compute in single precision.
const SINGLE: f64 = 1e-5;

/// Acceptance bound c of multigrid T as an approximation of A⁻¹: c xᵀ A x ≤ xᵀ A T A x ≤ xᵀ A x / c.
const LIKE: f64 = 1e-3;

/// An eigenpair.
#[derive(Clone, Debug)]
pub struct Mode {
    /// λ.
    pub value: f64,
    /// Relative residual, with r = J φ − λ M φ and the largest computed eigenvalue λₘ. With an approximation T of J⁻¹:
    /// √(rᵀ T r / (φᵀ M φ max(|λ|, λₘ/1000))). With the factors of J + σ M: √(rᵀ(J + σ M)⁻¹r / φᵀ(J + σ M)φ). With the
    /// diagonal or no preconditioner: ‖r‖ / (max(|λ|, λₘ/1000) ‖M φ‖).
    pub residual: f64,
    /// φ, node-major, with φᵀ M φ = 1; its largest entry is positive.
    pub u: Vec<f64>,
    /// Reports of the problem for this mode.
    pub reports: Vec<Reported>,
    /// Outputs of the problem for this mode.
    pub derived: Vec<DerivedField>,
    /// Smallest and largest nodal value of each component of each field.
    pub ranges: Vec<Vec<[f64; 2]>>,
}

/// Combines modes into one form on the same mesh, with fields `u_1`, `u_2`, … for each field `u`, and outputs likewise;
/// returns form, discretisation and degrees of freedom.
pub fn side_by_side(
    form: &PointForm,
    on: &Discretisation,
    modes: &[Mode],
) -> (PointForm, Discretisation, Vec<f64>) {
    let numbers = 1..=modes.len();
    let mut all = PointForm { integrals: Vec::new(), ..form.clone() };
    all.fields = numbers
        .flat_map(|number| {
            let named = move |field: &Field| Field {
                name: format!("{}_{number}", field.name),
                ..field.clone()
            };
            form.fields.iter().map(named)
        })
        .collect();
    let fields = modes.iter().flat_map(|_| on.fields.iter().cloned()).collect();
    let derived = modes.iter().zip(1..).flat_map(|(mode, number)| {
        mode.derived
            .iter()
            .cloned()
            .map(move |field| DerivedField { name: format!("{}_{number}", field.name), ..field })
    });
    let derived: Vec<DerivedField> = derived.collect();
    let (all, on) = with_derived(&all, &on.of_fields(fields), &derived);
    (all, on, modes.iter().flat_map(|mode| mode.u.iter().copied()).collect())
}

/// Result of an eigenvalue solve.
pub(super) struct EigenResult {
    pub(super) modes: Vec<Mode>,
    pub(super) report: Report,
    /// Number of preconditioner applications.
    pub(super) products: usize,
    /// Multigrid levels of the preconditioner, if it has any.
    pub(super) multigrid: Vec<MultigridStatistics>,
    pub(super) notes: Vec<String>,
}

/// A + σ B.
struct ShiftedOperator<'a> {
    a: &'a dyn LinearOperator,
    b: &'a dyn LinearOperator,
    shift: f64,
}

impl ShiftedOperator<'_> {
    fn apply_by(
        &self,
        multiply: Multiply,
        x: &Vector,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let mut of_b = y.like();
        multiply(self.b, x, &mut of_b)?;
        multiply(self.a, x, y)?;
        y.axpy(self.shift, &of_b);
        Ok(())
    }
}

impl LinearOperator for ShiftedOperator<'_> {
    fn size(&self) -> usize {
        self.a.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.apply_by(WHOLE, x, y)
    }

    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.apply_by(SPARSE, x, y)
    }
}

/// An operator whose vectors have another layout, because its kernels use another strategy: each product passes through
/// the host.
struct RelayoutOperator<'a> {
    operator: &'a dyn LinearOperator,
    like: Vector,
}

impl LinearOperator for RelayoutOperator<'_> {
    fn size(&self) -> usize {
        self.operator.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let (mut own, mut product) = (self.like.like(), self.like.like());
        own.set(&x.to_vec());
        self.operator.apply(&own, &mut product)?;
        y.set(&product.to_vec());
        Ok(())
    }
}

/// A preconditioner restricted to the M-orthogonal complement of the constants of fields with a mean-value constraint:
/// their zero eigenvalues are not computed.
struct DeflatedPreconditioner<'a> {
    inner: Preconditioner<'a>,
    /// q and M q, normalised: qᵀ M q = 1.
    constants: Vec<[Vector; 2]>,
    size: usize,
}

impl<'a> DeflatedPreconditioner<'a> {
    /// Returns `None` if no field has a mean-value constraint.
    fn new(
        operator: &Operator,
        mass: &dyn LinearOperator,
        inner: Preconditioner<'a>,
    ) -> Result<Option<Self>, OperatorError> {
        let Some(null) = operator.null_space() else { return Ok(None) };
        let (constants, size) = (Vec::new(), LinearOperator::size(operator));
        let mut own = Self { inner, constants, size };
        for constant in null.constants() {
            let (mut q, mut product) = (constant.ones.clone(), constant.ones.like());
            own.project(&mut q);
            mass.apply(&q, &mut product)?;
            let length = q.dot(&product).max(0.0).sqrt();
            if length > 0.0 {
                q.scale(1.0 / length);
                product.scale(1.0 / length);
                own.constants.push([q, product]);
            }
        }
        Ok(Some(own))
    }

    fn project(&self, x: &mut Vector) {
        self.constants.iter().for_each(|[q, product]| x.axpy(-x.dot(product), q));
    }
}

impl LinearOperator for DeflatedPreconditioner<'_> {
    fn size(&self) -> usize {
        self.size
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.inner.apply(x, y)?;
        self.project(y);
        Ok(())
    }
}

/// Preconditioner of LOBPCG.
enum EigenPreconditioner {
    Identity,
    Diagonal(Vector),
    /// The operator's own approximation.
    Approximation,
}

/// Solves the eigenvalue problem of a context, with an operator and an initial state.
///
/// # Errors
///
/// As for [`modes`].
pub(super) fn solve_modes(
    context: &Context,
    eigen: &EigenProblem,
    (mut operator, kernels): (Operator, Kernels),
    (u, mut notes): (Vector, Vec<String>),
    mut clock: Clock,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let found = modes(eigen, &mut operator, context, &u, observe);
    operator.finish()?;
    let found = found?;
    clock.end(Phase::Solve);
    let throughput = throughput(&operator, &u, &mut u.like())?;
    clock.end(Phase::Measure);
    notes.extend([&found.report.notes[..], &found.notes].concat());
    let (u, reports, derived, ranges) = match found.modes.first().cloned() {
        Some(first) => (first.u, first.reports, first.derived, first.ranges),
        None => (u.to_vec(), Vec::new(), Vec::new(), Vec::new()),
    };
    let on = &context.on;
    Ok(Solution {
        size: [on.mesh.cells_in_all(), on.dofs_in_all()],
        context: context.clone(),
        kernels,
        u,
        linear_iterations: found.products,
        residual: found.report.residual(),
        report: found.report,
        multigrid: found.multigrid,
        modes: found.modes,
        errors: Vec::new(),
        energy: None,
        reports,
        derived,
        ranges,
        notes,
        seconds: clock.seconds(),
        throughput,
    })
}

/// Computes the modes at the state `u`.
///
/// # Errors
///
/// A form without such modes, operators that cannot be built or applied, a search that does not converge.
fn modes(
    eigen: &EigenProblem,
    operator: &mut Operator,
    context: &Context,
    u: &Vector,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<EigenResult, RunError> {
    refuse(context, operator)?;
    let (form, Context { on, elements, platform, .. }) = (context.form(), context);
    let (settings, params) = (&HierarchySettings::default(), &context.parameters.values);
    let mass_on = context.hierarchy(settings).restricted(&eigen.mass, on.fields.clone())?;
    let (tasks, table_cache) = ([Task::Action, Task::Diagonal], operator.table_cache());
    let (mut mass, _) =
        compile_for(&eigen.mass, elements, &mass_on, params, &tasks, platform, table_cache)?;
    // The mass is linear: the same at all states.
    mass.linearise(&mass.zeros())?;
    let alike = mass.fits(u).is_ok();
    operator.linearise(u)?;
    let least = ROUNDING * epsilon(platform.target.precision);
    let settings = EigenSettings {
        count: eigen.count,
        rtol: eigen.rtol.unwrap_or_else(|| TOLERANCE.max(least)),
        max_iterations: eigen.max_iterations,
    };
    let mut notes = Vec::new();
    let elsewhere = RelayoutOperator { operator: mass.jacobian(), like: mass.zeros() };
    let b = if alike { mass.jacobian() } else { &elsewhere };
    if free_unknowns(operator)? == 0 {
        let message = "all degrees of freedom are constrained: none is free to move";
        return Err(RunError::Setting(message.to_owned()));
    }
    let properties = ProblemProperties::of_modes(form, on, platform.device.is_some());
    let plan = plan_modes(&properties, eigen.preconditioner);
    let mut found = None;
    if plan.factors != solve::DirectFallback::First {
        with_mass_everywhere(operator, &mass, context)?;
        let made = by_lobpcg(
            (eigen, &plan),
            (operator, &mass, b),
            context,
            settings,
            &mut notes,
            observe,
        )?;
        let failed = matches!(
            made.report.outcome,
            solve::Outcome::Stagnated | solve::Outcome::IterationLimit
        );
        match failed && plan.factors != solve::DirectFallback::Never {
            true => notes.push(format!(
                "lobpcg had not converged after {} iterations; shift and invert was used instead",
                made.report.iterations
            )),
            false => found = Some(made),
        }
    }
    let found = match found {
        Some(found) => found,
        None => {
            let pencil = PencilOperators { eigen, operator, mass: &mass, b, context, u };
            by_shift(&pencil, settings, observe)?
        }
    };
    let EigenModes { values, vectors, residuals, products, mut report } = found;
    if matches!(report.outcome, solve::Outcome::Indefinite { .. }) {
        return Err(RunError::Setting(format!(
            "the mass of `{}` is not positive definite: φᵀ M φ is not above 0 for all φ\n\
             help: let `mass = FORM;` name a form with a positive term in every field, as `f0[u] = rho * u`",
            form.name
        )));
    }
    if report.outcome == solve::Outcome::Rounding {
        let left = report.residual();
        report.notes.push(format!("rounding leaves a relative residual of {left:.1e}"));
    }
    if report.outcome.is_success() && values.len() < eigen.count {
        let (asked, found) = (eigen.count, values.len());
        notes.push(match free_unknowns(operator)? {
            free if free == found => {
                format!("there are no {asked} modes, but {found} free unknowns")
            }
            free => format!(
                "there are no {asked} modes, but {found}: of {free} free unknowns the others have no mass of their own"
            ),
        });
    }
    if report.outcome == solve::Outcome::Stagnated {
        return Err(stagnated(&report));
    }
    let report = report.converged()?;
    let multigrid = operator.approximation().map(|own| own.figures()).unwrap_or_default();
    operator.precondition_by(None);
    let modes = values.into_iter().zip(residuals).zip(vectors);
    let modes = measured(modes, context, operator.table_cache(), &mut notes)?;
    notes.dedup();
    Ok(EigenResult { modes, report, products, multigrid, notes })
}

/// Rejects problems without such modes: saddle points, inhomogeneous conditions.
fn refuse(context: &Context, operator: &Operator) -> Result<(), RunError> {
    let form = context.form();
    if !AVAILABLE {
        return Err(RunError::Setting(format!("eigenvalues: {}", FactorError::Absent)));
    }
    if is_saddle(form) {
        return Err(RunError::Setting(format!(
            "`{}` is a saddle point: a field of it has no term with itself, and no smallest eigenvalue\n\
             help: ask for the eigenvalues of a form with a positive term of each field with itself",
            form.name
        )));
    }
    let mut given = operator.zeros();
    operator.impose(&mut given)?;
    if context.is_linear() && given.norm() > 0.0 {
        return Err(RunError::Setting(
            "a condition has a value other than 0, but modes are 0 where there are conditions\n\
             help: write `dirichlet u = 0 on \"tag\";`"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Returns the error of a search whose residual stagnates.
fn stagnated(report: &Report) -> RunError {
    let (solver, iterations, residual) = (report.solver, report.iterations, report.residual());
    let help = match solver {
        "lobpcg" => {
            "write `preconditioner: direct` for shift and invert, or take a coarser mesh or a lower degree so that factors fit"
        }
        _ => {
            "the factors of J + σ M have lost too many digits: take a coarser mesh, a lower degree or other units"
        }
    };
    let target = report.target;
    RunError::Setting(format!(
        "{solver} stagnated after {iterations} iterations at a relative residual of {residual:.1e}, {target:.1e} was asked for\n\
         help: {help}"
    ))
}

/// Returns random vectors that are 0 in constrained degrees of freedom.
fn random(operator: &Operator, columns: usize) -> Result<Vec<Vector>, OperatorError> {
    (1..=columns as u64).map(|seed| operator.random_direction(seed)).collect()
}

/// Counts the degrees of freedom without a condition, over all processes.
fn free_unknowns(operator: &Operator) -> Result<usize, RunError> {
    let mut free = operator.zeros();
    let x = operator.random_direction(1)?.to_vec();
    let ones = x.into_iter().map(|entry| f64::from(u8::from(entry != 0.0)));
    free.set(&ones.collect::<Vec<f64>>());
    Ok(free.dot(&free).round() as usize)
}

/// Returns the initial vectors of LOBPCG: random ones, or a basis of the whole space for small systems.
fn start(eigen: &EigenProblem, operator: &Operator) -> Result<Vec<Vector>, RunError> {
    let n = operator.zeros().entries_in_all();
    let columns = eigen.count + (eigen.count / MORE).max(LEAST);
    if n <= DENSE || n < 4 * columns {
        let mut all = Vec::new();
        // Without constants, leaving out one degree of freedom per constant gives a basis.
        let pins = pins_in_all(operator);
        for i in (0..n).filter(|i| !pins.contains(i)) {
            let mut x = operator.zeros();
            x.set_unit(i);
            let x = operator.without_conditions(x)?;
            if x.norm() > 0.0 {
                all.push(x);
            }
        }
        return Ok(all);
    }
    Ok(random(operator, columns)?)
}

/// Scales modes so that the largest entry of each is positive, and evaluates their reports.
fn measured(
    modes: impl Iterator<Item = ((f64, f64), Vector)>,
    context: &Context,
    tables: TableCache,
    notes: &mut Vec<String>,
) -> Result<Vec<Mode>, RunError> {
    let (on, reports) = (&context.on, &context.problem.reports);
    let mut cache = ReportCache::new(tables);
    let mut all = Vec::new();
    for ((value, residual), mut vector) in modes {
        let largest = vector.to_vec().iter().fold(0.0, |most: f64, &entry| {
            if entry.abs() > most.abs() * (1.0 + 1e-6) { entry } else { most }
        });
        if vector.of_largest_size(largest) < 0.0 {
            vector.scale(-1.0);
        }
        let u = vector.to_vec();
        let state = EvaluationState { vector: Some(&vector), ..EvaluationState::of(context, &u) };
        let (reports, said) = reports::report(reports, state, &context.platform, &mut cache)?;
        notes.extend(said);
        let derived = derived::derived(&context.problem.reports, state)?;
        let ranges = (0..on.fields.len()).map(|field| ranges(on, field, &u)).collect();
        all.push(Mode { value, residual, u, reports, derived, ranges });
    }
    Ok(all)
}

/// Computes modes by shift and invert.
fn by_shift(
    pencil: &PencilOperators<'_>,
    settings: EigenSettings,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<EigenModes, RunError> {
    let mut start = random(pencil.operator, BLOCK.min(settings.count + 1))?;
    let DefiniteInverse { inverse, shift } = pencil.definite(&start, settings)?;
    let (a, b) = (pencil.operator.jacobian(), pencil.b);
    let without =
        DeflatedPreconditioner::new(pencil.operator, b, Preconditioner::Operator(&*inverse))?;
    let inverse: &dyn LinearOperator = match &without {
        Some(without) => {
            start.iter_mut().for_each(|x| without.project(x));
            without
        }
        None => &*inverse,
    };
    Ok(shift_invert(ShiftedPencil { a, b, inverse, shift }, start, settings, observe)?)
}

/// Computes modes by LOBPCG.
fn by_lobpcg(
    (eigen, plan): (&EigenProblem, &ModesPlan),
    (operator, mass, b): (&mut Operator, &Operator, &dyn LinearOperator),
    context: &Context,
    settings: EigenSettings,
    notes: &mut Vec<String>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<EigenModes, RunError> {
    let mut start = start(eigen, operator)?;
    let inverse = inverse((eigen, plan), (operator, mass), context, notes)?;
    let jacobian = operator.jacobian();
    let own = NonlinearSystem::preconditioner(operator);
    let own =
        own.map(|approximation| ApproximateInverse { approximation, jacobian, symmetric: true });
    let preconditioner = match (&inverse, &own) {
        (EigenPreconditioner::Diagonal(diagonal), _) => Preconditioner::Jacobi(diagonal),
        (EigenPreconditioner::Approximation, Some(own)) => Preconditioner::Operator(own),
        _ => Preconditioner::Identity,
    };
    let without = DeflatedPreconditioner::new(operator, b, preconditioner)?;
    let preconditioner = match &without {
        Some(without) => {
            start.iter_mut().for_each(|x| without.project(x));
            Preconditioner::Operator(without)
        }
        None => preconditioner,
    };
    let projection = match has_kernel(context.form()) {
        Some(_) => KernelProjection::new(context, &eigen.mass, operator)?,
        None => None,
    };
    let inner = preconditioner;
    let projected =
        projection.as_ref().map(|projection| ProjectedPreconditioner { inner, projection });
    let preconditioner = match &projected {
        Some(projected) => {
            start.iter_mut().try_for_each(|x| projected.projection.project(x))?;
            Preconditioner::Operator(projected)
        }
        None => preconditioner,
    };
    Ok(lobpcg(operator.jacobian(), b, preconditioner, start, settings, observe)?)
}

/// Rejects a mass that is 0 in free degrees of freedom: LOBPCG divides by it.
fn with_mass_everywhere(
    operator: &Operator,
    mass: &Operator,
    context: &Context,
) -> Result<(), RunError> {
    let mut diagonal = mass.zeros();
    mass.diagonal(&mut diagonal)?;
    let free = operator.random_direction(1)?.to_vec();
    let entries = diagonal.to_vec();
    let without = (0..entries.len()).find(|&i| free[i] != 0.0 && entries[i] == 0.0);
    let at = without.map(|row| row_at(&context.on, row).map(|(_, at)| at)).transpose()?;
    let Some(at) = context.on.mesh.first_in_all(at) else { return Ok(()) };
    let at = Point(at);
    Err(RunError::Setting(format!(
        "the mass of `{}` is 0 at {at}, where no condition holds\n\
         help: write `preconditioner: direct`, which condenses parts without mass, or give the part a mass",
        context.form().name
    )))
}

/// Broadcasts the pins of rank 0, whose degrees of freedom are numbered first.
fn pins_in_all(operator: &Operator) -> Vec<usize> {
    let Some(null) = operator.null_space() else { return Vec::new() };
    let mesh = &operator.discretisation().mesh;
    let first = mesh.cut().is_none_or(|cut| cut.group().rank() == 0);
    let mut pins = vec![0.0; null.constants().len()];
    let own = null.pins().into_iter().filter(|_| first);
    pins.iter_mut().zip(own).for_each(|(pin, own)| *pin = own as f64);
    mesh.sum_in_all(&mut pins);
    pins.into_iter().map(|pin| pin as usize).collect()
}

/// Makes the approximation of J⁻¹ of a plan, or the diagonal if multigrid that is not required cannot be made.
fn inverse(
    (eigen, plan): (&EigenProblem, &ModesPlan),
    (operator, mass): (&mut Operator, &Operator),
    context: &Context,
    notes: &mut Vec<String>,
) -> Result<EigenPreconditioner, RunError> {
    let diagonal = |operator: &Operator| -> Result<EigenPreconditioner, RunError> {
        let mut diagonal = operator.zeros();
        operator.diagonal(&mut diagonal)?;
        diagonal.make_positive();
        diagonal.invert();
        Ok(EigenPreconditioner::Diagonal(diagonal))
    };
    let PreconditionerPlan { settings, requirement } = &plan.preconditioner;
    match settings {
        PreconditionerSettings::None => return Ok(EigenPreconditioner::Identity),
        PreconditionerSettings::Jacobi => return diagonal(operator),
        _ => {}
    }
    let why = match context.precondition(operator, &HierarchySettings::default())? {
        Ok(()) => match precondition(operator)? {
            Ok(()) => return Ok(EigenPreconditioner::Approximation),
            // J may be singular: try levels of J + σ M.
            Err(_) => match levels_of_shifted(eigen, operator, mass, context)? {
                Ok(()) => return Ok(EigenPreconditioner::Approximation),
                Err(why) => why,
            },
        },
        Err(unsuited) if *requirement == Requirement::Required => {
            let help = "write `preconditioner: jacobi`, or leave it out";
            return Err(RunError::Setting(format!("{unsuited}\nhelp: {help}")));
        }
        Err(unsuited) => unsuited,
    };
    operator.precondition_by(None);
    let why = why.lines().next().unwrap_or_default().to_owned();
    notes.push(format!("no multigrid: {why}; Jacobi's preconditioner is used"));
    diagonal(operator)
}

/// Returns the largest ratio of J's diagonal to M's.
fn ratio(operator: &Operator, mass: &Operator) -> Result<f64, OperatorError> {
    let (mut of_j, mut of_m) = (operator.zeros(), mass.zeros());
    operator.diagonal(&mut of_j)?;
    mass.diagonal(&mut of_m)?;
    let ratio = of_j.to_vec().into_iter().zip(of_m.to_vec()).map(|(j, m)| (j / m).abs());
    let largest = ratio.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max);
    let largest = of_j.largest(largest);
    Ok(if largest > 0.0 { largest } else { 1.0 })
}

/// Calls `then` with the multigrid problem of J + σ M.
fn with_shifted<T>(
    shift: f64,
    eigen: &EigenProblem,
    context: &Context,
    then: impl FnOnce(HierarchyInput<'_>) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let form = &shifted(context.form(), &eigen.mass, shift);
    let Problem { time, params, degree, .. } = &*context.problem;
    let parameters = &Parameters::new(&form.params, *time, params, *degree);
    let settings = HierarchySettings::default();
    let own = HierarchyInput { form, parameters, ..context.hierarchy(&settings) };
    let on = &own.restricted(form, context.on.fields.clone())?;
    then(HierarchyInput { on, ..own })
}

/// Preconditions an operator by levels of J + σ M; the inner error gives the reason if there are none.
fn levels_of_shifted(
    eigen: &EigenProblem,
    operator: &mut Operator,
    mass: &Operator,
    context: &Context,
) -> Result<Result<(), String>, RunError> {
    let shift = SINGLE * ratio(operator, mass)?;
    match with_shifted(shift, eigen, context, |of| of.approximation(operator))? {
        Ok(made) => operator.precondition_by(Some(made)),
        Err(unsuited) => return Ok(Err(unsuited.to_string())),
    }
    Ok(precondition(operator)?)
}

/// Builds levels at the operator's state; the inner error gives the reason if they are unusable. They compute in single
/// precision, and the residuals of modes are measured in their norm.
fn precondition(operator: &mut Operator) -> Result<Result<(), String>, OperatorError> {
    let why = "multigrid computes in single precision, which has too few digits for the form";
    let mut inverse = operator.zeros();
    operator.diagonal(&mut inverse)?;
    inverse.invert();
    let least = (inverse.entries_in_all() as f64).sqrt() / inverse.norm();
    if least < f64::from(f32::MIN_POSITIVE) {
        return Ok(Err(why.to_owned()));
    }
    if let Err(why) = NonlinearSystem::precondition(operator)? {
        return Ok(Err(why));
    }
    let Some(levels) = NonlinearSystem::preconditioner(operator) else { return Ok(Ok(())) };
    let x = operator.random_direction(1)?;
    let (mut r, mut z) = (x.like(), x.like());
    operator.jacobian().apply(&x, &mut r)?;
    levels.apply_inverse(operator.jacobian(), &r, &mut z)?;
    let alike = (LIKE..=1.0 / LIKE).contains(&(r.dot(&z) / x.dot(&r)));
    Ok(if alike { Ok(()) } else { Err(why.to_owned()) })
}
