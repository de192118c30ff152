//! Sources at points: a problem on its spaces → the load of its operator.
//!
//! The nearest process finds the cell of a point, the one of least rank if several do. Where cells meet, the first of
//! them has the source: continuous functions have one value there.

use super::{RunError, shown};
use crate::mesh::locate::{LocatedPoint, Locator};
use crate::operator::point_loads::{PointLoad, PointLoads};
use crate::processes::Reduction;
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::problem::{PointSource, Problem};
use kernels_gen::element::tabulate;

/// Distance from the mesh, relative to its size, from which a warning tells it.
const BESIDE: f64 = 1e-9;

/// Returns the sources of a problem; `None` if it has none. Collective.
///
/// # Errors
///
/// A point outside of the mesh, a value that is not finite.
pub(super) fn point_loads(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
) -> Result<Option<PointLoads>, RunError> {
    if problem.sources.is_empty() {
        return Ok(None);
    }
    let locator = Locator::new(&on.mesh)?;
    let mut loads = Vec::with_capacity(problem.sources.len());
    for source in &problem.sources {
        let name = &problem.form.fields[source.field].name;
        let own = located(on, &locator, name, source.place)?;
        let entries = entries(on, source, own)?;
        loads.push(PointLoad { value: source.value.clone(), place: source.place, entries });
    }
    let all = PointLoads::new(loads, parameters.clone());
    let mut load = vec![0.0; on.n_dofs()];
    all.add_to(&mut load);
    if load.iter().any(|entry| !entry.is_finite()) {
        let text =
            "a source at a point is not finite\nhelp: look for a division by zero in its value";
        return Err(RunError::Setting(text.to_owned()));
    }
    Ok(Some(all))
}

/// Returns the load vector of a problem's sources; `None` if it has none. Collective.
///
/// # Errors
///
/// As for [`point_loads`].
pub(super) fn load(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
) -> Result<Option<Vec<f64>>, RunError> {
    let loads = point_loads(problem, on, parameters)?;
    Ok(loads.map(|loads| {
        let mut load = vec![0.0; on.n_dofs()];
        loads.add_to(&mut load);
        load
    }))
}

/// Locates a point; `Some` on the process that has its source.
fn located(
    on: &Discretisation,
    locator: &Locator<'_>,
    name: &str,
    place: [f64; 3],
) -> Result<Option<LocatedPoint>, RunError> {
    let (mesh, found) = (&on.mesh, locator.find(&place));
    let distance = found.map_or(f64::INFINITY, |found| found.distance);
    let mut least = [distance];
    mesh.reduce_in_all(Reduction::Least, &mut least);
    let [least] = least;
    if least.is_infinite() {
        return Err(RunError::Setting(format!(
            "the source of `{name}` at {} lies outside of the mesh\nhelp: name a place inside",
            shown(&place)
        )));
    }
    if least > BESIDE * mesh.size().powf(1.0 / mesh.dim() as f64) {
        tracing::warn!(
            "the source of `{name}` at {} lies {least:.1e} beside the mesh, and acts at its nearest point",
            shown(&place)
        );
    }
    let rank = mesh.cut().map_or(0.0, |cut| cut.group().rank() as f64);
    let mut first = [if distance <= least { rank } else { f64::INFINITY }];
    mesh.reduce_in_all(Reduction::Least, &mut first);
    Ok(found.filter(|_| first == [rank]))
}

/// Returns the degrees of freedom of a source with component and weight; `own` is its point on this process.
fn entries(
    on: &Discretisation,
    source: &PointSource,
    own: Option<LocatedPoint>,
) -> Result<Vec<(usize, usize, f64)>, RunError> {
    let space = &on.fields[source.field].space;
    let (components, start) = (space.components(), on.dofs_of(source.field).start);
    let wanted = match source.component {
        Some(component) => component..component + 1,
        None => 0..components,
    };
    let mut all = vec![0.0; on.n_dofs()];
    if let Some(LocatedPoint { cell, xi, .. }) = own {
        let mut weights = tabulate(space.element(), &[xi]).values;
        space.resolve_back(cell, 1, &mut weights);
        for (&node, weight) in space.cell_nodes(cell).iter().zip(weights) {
            for component in wanted.clone() {
                // Nodes of periodic sides may occur twice.
                all[start + node as usize * components + component] += weight;
            }
        }
    }
    if let Some(sharing) = on.sharing() {
        sharing.sum(&mut all);
    }
    let entry =
        |(dof, weight): (usize, f64)| (dof, (dof - start) % components - wanted.start, weight);
    let nonzero = all.into_iter().enumerate().filter(|(_, weight)| *weight != 0.0);
    Ok(nonzero.map(entry).collect())
}
