//! Orders in time: a form with time derivatives, solved by each suitable scheme with steps of three lengths → orders.
//!
//! ```text
//! ‖u_Δt − u_Δt/2‖ / ‖u_Δt/2 − u_Δt/4‖ ≈ 2^p        on one mesh, of which the error of space is no part
//! ```

use super::{Order, may_go_on};
use crate::Error;
use fem_dsl::problem::{Problem, Scheme, Stepping};
use runtime::kernels::compile::Target;
use runtime::mesh::Mesh;
use runtime::problem::{NullMonitor, Platform, Solution, run_steps};
use std::sync::Arc;

/// Number of the longest steps.
pub(super) const STEPS: usize = 12;
/// Factor by which an interval without a visible order is shortened, and the shortest interval as a fraction of the
/// whole.
const SHORTER: f64 = 4.0;
const SHORTEST: f64 = 1.0 / 2048.0;
/// Fraction of the solution below which differences are due to the solver's tolerance.
const ROUNDING: f64 = 1e-8;

/// The orders of a time integrator.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeOrders {
    /// The name of the scheme.
    pub scheme: String,
    /// The order of each field; for fields without time derivatives only differences are asserted.
    pub orders: Vec<Order>,
}

/// Returns scheme names and schemes with their theoretical orders.
fn schemes(problem: &Problem) -> Vec<(&'static str, Scheme, f64)> {
    let second = problem.form.rates.iter().any(|rate| rate.order == 2 && rate.read);
    let mut all = vec![
        ("bdf(order: 1)", Scheme::Bdf { order: 1 }, 1.0),
        ("bdf(order: 2)", Scheme::Bdf { order: 2 }, 2.0),
        ("bdf(order: 3)", Scheme::Bdf { order: 3 }, 3.0),
        ("theta(theta: 0.5)", Scheme::Theta { theta: 0.5 }, 2.0),
        ("sdirk(stages: 2)", Scheme::Sdirk { stages: 2 }, 2.0),
    ];
    let of_first = |field: usize| {
        let of = |order| {
            problem.form.rates.iter().any(|rate| (rate.field, rate.order) == (field, order))
        };
        of(1) && !of(2)
    };
    if second && !(0..problem.form.fields.len()).any(of_first) {
        all.push(("newmark()", Scheme::Newmark { beta: 0.25, gamma: 0.5 }, 2.0));
        all.push(("generalised_alpha(rho: 0.8)", Scheme::GeneralisedAlpha { rho: 0.8 }, 2.0));
    }
    all
}

/// Creates a problem for a time interval, with a solution that varies with t in proportion to its shortness.
pub(super) type IntervalProblem<'a> = dyn Fn(f64) -> Result<Problem, Error> + 'a;

/// Returns the orders of all schemes. The order is visible with short steps, Δt λ ≲ 1 for the eigenvalues λ in the
/// solution. If it is not visible, or a step is too long to be solved, the whole interval is shortened.
pub(super) fn orders(
    moving: &IntervalProblem<'_>,
    mesh: &Arc<Mesh>,
    target: &Target,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<TimeOrders>, Error> {
    let mut found = Vec::new();
    let first = moving(1.0)?;
    for (name, scheme, promised) in schemes(&first) {
        progress(name);
        let mut part = 1.0;
        let orders = loop {
            let orders = measured(&moving(part)?, scheme, promised, mesh, target);
            part /= SHORTER;
            match orders {
                Err(error) if part > SHORTEST && may_go_on(&error, mesh.cut().is_some()) => {}
                Ok(orders) if part > SHORTEST && !orders.iter().all(Order::is_of_short_steps) => {}
                orders => break orders?,
            }
        };
        found.push(TimeOrders { scheme: name.to_owned(), orders });
    }
    Ok(found)
}

/// Returns the order of each field with one scheme.
fn measured(
    problem: &Problem,
    scheme: Scheme,
    promised: f64,
    mesh: &Arc<Mesh>,
    target: &Target,
) -> Result<Vec<Order>, Error> {
    let Some(stepping) = &problem.stepping else { return Ok(Vec::new()) };
    let (mut solutions, platform) = (Vec::new(), Platform::from(*target));
    for times in [1, 2, 4] {
        let Stepping { from, to, .. } = *stepping;
        let step = Some((to - from) / (STEPS * times) as f64);
        let own = Stepping { scheme, from, to, step, tolerance: None, every: None, at: vec![to] };
        let own = Problem { stepping: Some(own), ..problem.clone() };
        solutions.push(run_steps(&own, Arc::clone(mesh), None, &platform, &mut NullMonitor)?);
    }
    let on = &solutions[0].context.on;
    // Of several processes, the lowest that has a DoF counts it.
    let sharing = on.sharing();
    let is_own = |unknown: usize| sharing.as_ref().is_none_or(|all| !all.is_of_others(unknown));
    let norm = |of: &mut dyn Iterator<Item = f64>| {
        let mut square = [of.map(|x| x * x).sum()];
        on.mesh.sum_in_all(&mut square);
        square[0].sqrt()
    };
    let orders = (0..on.fields.len()).map(|field| {
        let part = |of: &Solution| {
            let own = on.dofs_of(field).filter(|&unknown| is_own(unknown));
            own.map(|unknown| of.u[unknown]).collect()
        };
        let parts: Vec<Vec<f64>> = solutions.iter().map(part).collect();
        let difference =
            |a: usize| norm(&mut parts[a].iter().zip(&parts[a + 1]).map(|(a, b)| a - b));
        let (coarse, fine) = (difference(0), difference(1));
        let size = norm(&mut parts[2].iter().copied());
        let observed = (fine > ROUNDING * size).then(|| (coarse / fine).log2());
        let has = problem.form.rates.iter().any(|rate| rate.field == field);
        let by_differences = matches!(scheme, Scheme::Bdf { .. });
        let expected = if has || by_differences { promised } else { 0.0 };
        Order { expected, observed }
    });
    Ok(orders.collect())
}
