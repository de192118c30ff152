//! The eigenvalue problem of a form: J φ = λ M φ, with the Jacobian J at the problem's start → [`Mode`]s.
//!
//! Unknowns with a condition are 0 in each mode, whatever the condition's value: a mode is a change of the state. J is
//! preconditioned as in a solve, by factors where these are cheap, else by levels, else by its diagonal. Where J is singular (a body
//! that nothing holds moves without energy) its factors are those of J + σ M with a small σ.

use super::kernels::compile_for;
use super::multigrid::{Asked, Problem as OfLevels};
use super::reports::{self, Outcome as Reported, State, ranges};
use super::solver::{Levels, System, UNKNOWN_DATA, is_saddle};
use super::{RunError, factors};
use crate::discretisation::Discretisation;
use crate::expression::Parameters;
use crate::factor::{AVAILABLE, Analysis, FactorError, Factors};
use crate::operator::Operator;
use crate::processes::any;
use crate::solve::{
    self, Continue, EigenSettings, Figures, LinearOperator, Modes, NonlinearSystem, OperatorError,
    Preconditioner, Progress, Report, lobpcg,
};
use crate::vector::{Vector, epsilon, noise};
use fem_dsl::point::{Field, PointForm, shifted};
use fem_dsl::problem::{Eigen, Problem};
use kernels_gen::plan::Task;

/// The relative residual that is aimed at where none is given,
const TOLERANCE: f64 = 1e-8;
/// but no less than so many eps.
const ROUNDING: f64 = 1e3;
/// Vectors beside those that are asked for: as a part of these, and at least.
const MORE: usize = 4;
const LEAST: usize = 3;
/// Unknowns up to which all of them span the space that is searched.
const DENSE: usize = 150;
/// σ as a part of the largest ratio of J's diagonal to M's: far above rounding, far below the eigenvalues that are looked for.
const SHIFT: f64 = 1e-8;
/// The same on levels, which compute in single precision.
const SINGLE: f64 = 1e-5;

/// An eigenvalue with its mode.
#[derive(Clone, Debug)]
pub struct Mode {
    /// λ.
    pub value: f64,
    /// ‖J φ − λ M φ‖ over max(|λ|, λₘ/1000) ‖M φ‖, with the largest λₘ of those that were iterated.
    pub residual: f64,
    /// φ, node-major, with φᵀ M φ = 1; its largest entry is positive.
    pub u: Vec<f64>,
    /// What the problem reports of it.
    pub reports: Vec<Reported>,
    /// The smallest and the largest value at its nodes of each component of each field.
    pub ranges: Vec<Vec<[f64; 2]>>,
}

/// Modes beside each other as fields of one form: `u_1`, `u_2` and so on for each field `u`, on the same mesh, and their unknowns.
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
    (all, on.of_fields(fields), modes.iter().flat_map(|mode| mode.u.iter().copied()).collect())
}

/// What a search has found.
pub(super) struct Found {
    pub(super) modes: Vec<Mode>,
    pub(super) report: Report,
    /// Vectors that were preconditioned.
    pub(super) products: usize,
    /// The levels that preconditioned it, if any did.
    pub(super) multigrid: Vec<Figures>,
    pub(super) notes: Vec<String>,
}

/// A + σ B.
struct Sum<'a> {
    a: &'a dyn LinearOperator,
    b: &'a dyn LinearOperator,
    shift: f64,
}

impl LinearOperator for Sum<'_> {
    fn size(&self) -> usize {
        self.a.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut of_b = y.like();
        self.b.apply(x, &mut of_b)?;
        self.a.apply(x, y)?;
        y.axpy(self.shift, &of_b);
        Ok(())
    }
}

/// An operator whose vectors lie otherwise, as kernels of another strategy have them: each product goes through the host.
struct Elsewhere<'a> {
    operator: &'a dyn LinearOperator,
    like: Vector,
}

impl LinearOperator for Elsewhere<'_> {
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

/// (L Lᵀ)⁻¹.
struct ByFactors {
    factors: Factors,
    size: usize,
}

impl LinearOperator for ByFactors {
    fn size(&self) -> usize {
        self.size
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut numbers = x.to_vec();
        self.factors.solve(&mut numbers);
        y.set(&numbers);
        Ok(())
    }
}

/// A preconditioner in what is M-orthogonal to the constants up to which fields are free: modes with the eigenvalue 0, which are
/// not looked for where a field has a mean.
struct WithoutConstants<'a> {
    inner: Preconditioner<'a>,
    /// q and M q, with qᵀ M q = 1.
    constants: Vec<[Vector; 2]>,
    size: usize,
}

impl<'a> WithoutConstants<'a> {
    /// None where no field has a mean.
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

impl LinearOperator for WithoutConstants<'_> {
    fn size(&self) -> usize {
        self.size
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.inner.apply(x, y)?;
        self.project(y);
        Ok(())
    }
}

/// What approximates J⁻¹.
enum Inverse {
    Nothing,
    Diagonal(Vector),
    Factors(ByFactors),
    /// What the operator has.
    Approximation,
}

/// Finds the modes at the state `u`.
///
/// # Errors
///
/// What has no such modes, operators that cannot be made or applied, a search that does not converge.
pub(super) fn modes(
    problem: &Problem,
    eigen: &Eigen,
    operator: &mut Operator,
    system: System<'_>,
    u: &Vector,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Found, RunError> {
    let Some(Levels { elements, target, device }) = system.levels else {
        return Err(RunError::Setting("eigenvalues need the problem's elements".to_owned()));
    };
    refuse(system, operator)?;
    let (form, on, parameters) = (system.form, system.on, system.parameters);
    let prescribed = system.prescribed;
    let asked = &Asked::default();
    let of = OfLevels { form, elements, on, parameters, prescribed, target, device, asked };
    let mass_on = of.restricted(&eigen.mass, on.fields.clone())?;
    let (tasks, shelf) = ([Task::Action, Task::Diagonal], operator.shelf());
    let (mut mass, _) = compile_for(
        &eigen.mass,
        elements,
        &mass_on,
        &parameters.values,
        &tasks,
        target,
        device.cloned(),
        shelf,
    )?;
    // It is linear, and the same at all states.
    mass.linearise(&mass.zeros())?;
    let alike = mass.fits(u).is_ok();
    operator.linearise(u)?;
    let mut notes = Vec::new();
    let mut start = start(eigen, operator, &mut notes)?;
    let inverse = inverse((problem, eigen), (operator, &mass), system, u, &mut notes)?;
    let precision = target.precision;
    let least = ROUNDING * epsilon(precision);
    let settings = EigenSettings {
        count: eigen.count,
        rtol: eigen.rtol.unwrap_or_else(|| TOLERANCE.max(least)),
        max_iterations: eigen.max_iterations,
    };
    let Modes { values, vectors, residuals, products, mut report } = {
        let preconditioner = match &inverse {
            Inverse::Nothing => Preconditioner::Identity,
            Inverse::Diagonal(diagonal) => Preconditioner::Jacobi(diagonal),
            Inverse::Factors(factors) => Preconditioner::Operator(factors),
            Inverse::Approximation => match NonlinearSystem::preconditioner(operator) {
                Some(levels) => Preconditioner::Operator(levels),
                None => Preconditioner::Identity,
            },
        };
        let elsewhere = Elsewhere { operator: mass.jacobian(), like: mass.zeros() };
        let b = if alike { mass.jacobian() } else { &elsewhere };
        let without = WithoutConstants::new(operator, b, preconditioner)?;
        let preconditioner = match &without {
            Some(without) => {
                start.iter_mut().for_each(|x| without.project(x));
                Preconditioner::Operator(without)
            }
            None => preconditioner,
        };
        lobpcg(operator.jacobian(), b, preconditioner, start, settings, observe)?
    };
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
    let report = report.converged()?;
    let multigrid = operator.approximation().map(|own| own.figures()).unwrap_or_default();
    operator.precondition_by(None);
    let mut modes = Vec::new();
    let mut shelf = operator.shelf();
    for ((value, residual), mut vector) in values.into_iter().zip(residuals).zip(vectors) {
        let numbers = vector.to_vec();
        let largest = numbers.iter().fold(0.0, |most: f64, &entry| {
            if entry.abs() > most.abs() * (1.0 + 1e-6) { entry } else { most }
        });
        let largest = vector.of_largest_size(largest);
        if largest < 0.0 {
            vector.scale(-1.0);
        }
        let u = vector.to_vec();
        let of = State { form, on, elements, parameters, u: &u, vector: Some(&vector), load: None };
        let (reports, said) = reports::report(&problem.reports, of, target, device, &mut shelf)?;
        notes.extend(said);
        let ranges = (0..on.fields.len()).map(|field| ranges(on, field, &u)).collect();
        modes.push(Mode { value, residual, u, reports, ranges });
    }
    notes.dedup();
    Ok(Found { modes, report, products, multigrid, notes })
}

/// Refuses what has no such modes.
fn refuse(system: System<'_>, operator: &Operator) -> Result<(), RunError> {
    let form = system.form;
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
    if system.is_linear() && given.norm() > 0.0 {
        return Err(RunError::Setting(
            "a condition has a value other than 0, but modes are 0 where there are conditions\n\
             help: write `dirichlet u = 0 on \"tag\";`"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The vectors that the search begins with: noise, or all unknowns where there are few.
fn start(
    eigen: &Eigen,
    operator: &Operator,
    notes: &mut Vec<String>,
) -> Result<Vec<Vector>, RunError> {
    let mut given = operator.zeros();
    operator.impose(&mut given)?;
    let free = |mut x: Vector| -> Result<Vector, OperatorError> {
        operator.impose(&mut x)?;
        x.axpy(-1.0, &given);
        Ok(x)
    };
    let n = given.entries_in_all();
    let columns = eigen.count + (eigen.count / MORE).max(LEAST);
    if n <= DENSE || n < 4 * columns {
        let mut all = Vec::new();
        // With all constants, one unknown each less spans what is left.
        let pins = pins_in_all(operator);
        for i in (0..n).filter(|i| !pins.contains(i)) {
            let mut x = given.like();
            x.set_unit(i);
            let x = free(x)?;
            if x.norm() > 0.0 {
                all.push(x);
            }
        }
        if all.len() < eigen.count {
            let (found, asked) = (all.len(), eigen.count);
            if found == 0 {
                let message = "all unknowns have conditions, and none is left to move";
                return Err(RunError::Setting(message.to_owned()));
            }
            notes.push(format!("there are no {asked} modes, but {found} free unknowns"));
        }
        return Ok(all);
    }
    let own = operator.discretisation().mesh.cut().map_or(0, |cut| cut.group().rank() as u64);
    let vectors = (1..=columns as u64).map(|seed| {
        let mut x = given.like();
        x.set(&noise(x.len(), seed + 1000 * own));
        x.agree();
        free(x)
    });
    Ok(vectors.collect::<Result<_, _>>()?)
}

/// The pins of the first process, whose unknowns are counted first, at all of them.
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

/// What approximates J⁻¹: as the problem says, or what fits.
fn inverse(
    (problem, eigen): (&Problem, &Eigen),
    (operator, mass): (&mut Operator, &Operator),
    system: System<'_>,
    u: &Vector,
    notes: &mut Vec<String>,
) -> Result<Inverse, RunError> {
    let diagonal = |operator: &Operator| -> Result<Inverse, RunError> {
        let mut diagonal = operator.zeros();
        operator.diagonal(&mut diagonal)?;
        diagonal.make_positive();
        diagonal.invert();
        Ok(Inverse::Diagonal(diagonal))
    };
    let by_factors = |operator: &mut Operator| match system.on.mesh.cut() {
        None => factorised(operator, mass),
        Some(_) => factorised_at_each((problem, eigen), (operator, mass), system, u),
    };
    match eigen.preconditioner.as_deref() {
        Some("none") => return Ok(Inverse::Nothing),
        Some("jacobi") => return diagonal(operator),
        Some("direct") => return by_factors(operator),
        Some(_) => {}
        None => {
            let facts = factors::Facts { linear: true, saddle: false, device: false };
            if factors::unasked(system.on, facts) == solve::Factors::First {
                return by_factors(operator);
            }
        }
    }
    let asked = eigen.preconditioner.is_some();
    let why = match system.make_levels(operator, &Asked::default())? {
        Ok(()) => match NonlinearSystem::precondition(operator)? {
            Ok(()) => return Ok(Inverse::Approximation),
            // J may be singular.
            Err(_) => match levels_of_shifted(problem, eigen, operator, mass, system)? {
                Ok(()) => return Ok(Inverse::Approximation),
                Err(why) => why,
            },
        },
        Err(unsuited) if asked => {
            let help = "write `preconditioner: jacobi`, or leave it out";
            return Err(RunError::Setting(format!("{unsuited}\nhelp: {help}")));
        }
        Err(unsuited) => unsuited.to_string(),
    };
    operator.precondition_by(None);
    let why = why.lines().next().unwrap_or_default().to_owned();
    notes.push(format!("no multigrid: {why}; the diagonal preconditions"));
    diagonal(operator)
}

/// A shift σ, that part of the largest ratio of the diagonals, for which J + σ M is definite where J is semidefinite, and changes little but the eigenvalue 0.
fn shift(part: f64, operator: &Operator, mass: &Operator) -> Result<f64, OperatorError> {
    let (mut of_j, mut of_m) = (operator.zeros(), mass.zeros());
    operator.diagonal(&mut of_j)?;
    mass.diagonal(&mut of_m)?;
    let ratio = of_j.to_vec().into_iter().zip(of_m.to_vec()).map(|(j, m)| (j / m).abs());
    let largest = ratio.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max);
    let largest = of_j.largest(largest);
    Ok(if largest > 0.0 { part * largest } else { part })
}

/// What becomes of the problem of J + σ M, with this part of the largest ratio of the diagonals for σ.
fn with_shifted<T>(
    part: f64,
    (problem, eigen): (&Problem, &Eigen),
    (operator, mass): (&Operator, &Operator),
    system: System<'_>,
    then: impl FnOnce(OfLevels<'_>) -> Result<T, RunError>,
) -> Result<Option<T>, RunError> {
    let Some(Levels { elements, target, device }) = system.levels else { return Ok(None) };
    let form = shifted(system.form, &eigen.mass, shift(part, operator, mass)?);
    let params = &problem.params;
    let parameters = &Parameters::new(&form.params, problem.time, params, problem.degree);
    let prescribed = system.prescribed;
    let (on, asked) = (system.on, &Asked::default());
    let own = OfLevels { form: &form, elements, on, parameters, prescribed, target, device, asked };
    let on = &own.restricted(&form, system.on.fields.clone())?;
    then(OfLevels { on, ..own }).map(Some)
}

/// Gives an operator the levels of J + σ M; within, why there are none.
fn levels_of_shifted(
    problem: &Problem,
    eigen: &Eigen,
    operator: &mut Operator,
    mass: &Operator,
    system: System<'_>,
) -> Result<Result<(), String>, RunError> {
    let made = with_shifted(SINGLE, (problem, eigen), (operator, mass), system, |of| {
        of.approximation(operator)
    })?;
    match made {
        Some(Ok(made)) => operator.precondition_by(Some(made)),
        Some(Err(unsuited)) => return Ok(Err(unsuited.to_string())),
        None => return Ok(Err("the problem's elements are not known".to_owned())),
    }
    Ok(NonlinearSystem::precondition(operator)?)
}

/// Gives the operator of several processes the factors of J, or of J + σ M where it is singular, of the whole at each.
fn factorised_at_each(
    of: (&Problem, &Eigen),
    (operator, mass): (&mut Operator, &Operator),
    system: System<'_>,
    u: &Vector,
) -> Result<Inverse, RunError> {
    let unknown = || RunError::Setting(UNKNOWN_DATA.to_owned());
    let mut made = system.at_each()?.ok_or_else(unknown)?;
    let taken = made.take(u)?;
    // Devices add up in an order of their own: what one finds all do.
    let shift = matches!(taken, Err(FactorError::Singular { .. })) || made.is_near_singular();
    if any(&**made.group(), shift) {
        let shifted = with_shifted(SHIFT, of, (operator, mass), system, |of| of.at_each())?;
        made = shifted.flatten().ok_or_else(unknown)?;
        made.take(u)?.map_err(|error| OperatorError::new(error.to_string()))?;
    } else {
        taken.map_err(|error| OperatorError::new(error.to_string()))?;
    }
    operator.precondition_by(Some(Box::new(made)));
    Ok(Inverse::Approximation)
}

/// The factors of J, or of J + σ M where it is singular.
fn factorised(operator: &Operator, mass: &Operator) -> Result<Inverse, RunError> {
    let missing = || OperatorError::new("the matrix is too dense for `direct`");
    let coupling = NonlinearSystem::coupling(operator).ok_or_else(missing)?;
    let (like, mut analysis) = (operator.zeros(), Analysis::default());
    let by = |factors| Inverse::Factors(ByFactors { factors, size: like.len() });
    let own = coupling.matrix(operator.jacobian(), &like)?;
    match analysis.factorise(&own, true) {
        Ok(factors) if !factors.is_near_singular() => return Ok(by(factors)),
        Ok(_) | Err(FactorError::Singular { .. }) => {}
        Err(error) => return Err(OperatorError::new(error.to_string()).into()),
    }
    let elsewhere = Elsewhere { operator: mass.jacobian(), like: mass.zeros() };
    let (a, b) = (operator.jacobian(), &elsewhere as &dyn LinearOperator);
    let shifted = Sum { a, b, shift: shift(SHIFT, operator, mass)? };
    let matrix = coupling.matrix(&shifted, &like)?;
    let factors = analysis.factorise(&matrix, true);
    let factors = factors.map_err(|error| OperatorError::new(error.to_string()))?;
    Ok(by(factors))
}
