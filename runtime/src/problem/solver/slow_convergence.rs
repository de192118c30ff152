//! Diagnosis of slow multigrid convergence from the form and the mesh, with a remedy.

use super::super::plan::is_saddle;
use super::Context;
use crate::algebra::vector::Vector;
use crate::mesh::Mesh;
use crate::operator::functional::extrema;
use crate::problem::RunError;
use crate::processes::Reduction;
use crate::solve::Report;
use crate::support::parallel::*;
use fem_dsl::point::{Input, NodeId, Part, complex_pairs, eval};

/// Iteration counts considered slow: with multigrid, and for a saddle point with a mass as Schur complement.
const MANY: [usize; 2] = [30, 100];
/// Aspect ratio of stretched cells. At degree 2 on 64² cells, CG takes 6, 9, 20, 30 and 49 iterations for ratios of 1,
/// 2, 4, 6 and 10.
const STRETCHED: f64 = 4.0;
/// Coefficient variation in space, and between directions, considered a cause.
const VARIES: f64 = 100.0;
const DIRECTED: f64 = 10.0;
/// Maximum number of cells for checking variable coefficients, which are interpreted.
const LOOKED_AT: usize = 100_000;
/// Fraction of cells that makes stretching a cause.
const SHARE: f64 = 0.1;

/// Returns a note on a slow multigrid solve, or on one that dropped its levels, if a cause is found; `u` is any state.
pub(super) fn diagnose(
    context: &Context,
    u: &Vector,
    report: &Report,
    kept: bool,
) -> Result<Option<String>, RunError> {
    if kept && report.iterations < MANY[usize::from(is_saddle(context.form()))] {
        return Ok(None);
    }
    let mut reasons = Vec::new();
    let stretch = exceeded(&context.on.mesh, SHARE);
    if stretch > STRETCHED {
        reasons.push(format!(
            "a tenth of the cells or more are {stretch:.0} times as long as wide, across which multigrid smooths poorly: divide them along their long \
             sides"
        ));
    }
    if !context.properties().is_symmetric && complex_pairs(context.form()).is_none() {
        reasons.push(
            "the form is not symmetric, and multigrid suits it only where its symmetric part dominates in a cell (for convection by b with the \
             diffusion κ: |b| h < 2 κ): use smaller cells, or stabilise it"
                .to_owned(),
        );
    }
    reasons.extend(coefficients(context, &u.to_vec())?);
    if reasons.is_empty() {
        return Ok(None);
    }
    let what = match kept {
        true => format!("{} iterations are many for multigrid", report.iterations),
        false => "multigrid failed".to_owned(),
    };
    let direct = match report.solver {
        "direct" => "",
        _ => "; `solver = direct;` does without, where memory allows",
    };
    Ok(Some(format!("{what}: {}{direct}", reasons.join("; "))))
}

/// Describes gradient coefficients that vary in space or with direction beyond the limits.
fn coefficients(context: &Context, u: &[f64]) -> Result<Vec<String>, RunError> {
    let (Context { on, parameters, .. }, form) = (context, context.form());
    let mut found = Vec::new();
    for integral in form.integrals.iter().filter(|integral| integral.region.is_of_cells()) {
        let entries = integral.jacobian.iter().filter_map(|entry| match entry.trial.part {
            Part::Derivative(axis) if entry.test == entry.trial => {
                Some((entry.trial.field, axis, entry.value))
            }
            _ => None,
        });
        let entries: Vec<(usize, usize, NodeId)> = entries.collect();
        let roots: Vec<NodeId> = entries.iter().map(|(.., root)| *root).collect();
        let fixed = integral
            .depends_on(|input| !matches!(input, Input::Param(..) | Input::Time | Input::Degree));
        let ranges: Vec<[f64; 2]> = if roots.iter().all(|&root| !fixed[root]) {
            let all = eval(&integral.graph, |input| parameters.constant(input).unwrap_or(0.0));
            roots.iter().map(|&root| [all[root].abs(); 2]).collect()
        } else if on.mesh.cells_in_all() <= LOOKED_AT {
            let own = extrema(on, (integral, &roots), u, parameters)?;
            let mut least: Vec<f64> = own.iter().map(|of| of.least.0).collect();
            let mut most: Vec<f64> = own.iter().map(|of| of.most.0).collect();
            on.mesh.reduce_in_all(Reduction::Least, &mut least);
            on.mesh.reduce_in_all(Reduction::Largest, &mut most);
            let size = |(least, most): (f64, f64)| {
                let of = [least.abs(), most.abs()];
                [of[0].min(of[1]), of[0].max(of[1])]
            };
            least.into_iter().zip(most).map(size).collect()
        } else {
            continue;
        };
        let entries: Vec<(usize, usize, [f64; 2])> = entries
            .into_iter()
            .zip(ranges)
            .map(|((field, axis, _), of)| (field, axis, of))
            .collect();
        for (number, field) in form.fields.iter().enumerate() {
            let own = || entries.iter().filter(|(of, ..)| *of == number);
            let name = &field.name;
            let varies = own().map(|(.., [least, most])| most / least).fold(1.0, f64::max);
            if varies > VARIES {
                found.push(format!(
                    "the coefficient of grad({name}) varies by a factor of {varies:.0e}, and multigrid corrects poorly across jumps"
                ));
            }
            let along = |axis: usize| {
                own()
                    .filter(|(_, of, _)| *of == axis)
                    .map(|(.., [_, most])| *most)
                    .fold(0.0, f64::max)
            };
            let sizes: Vec<f64> = (0..on.mesh.dim()).map(along).collect();
            let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
            let ratio = sizes.iter().copied().fold(0.0, f64::max) / least;
            if own().next().is_some() && ratio > DIRECTED {
                found.push(format!(
                    "the coefficient of grad({name}) differs by a factor of {ratio:.0e} between directions, and multigrid smooths poorly across the \
                     small ones: use cells that are longer along the large ones"
                ));
            }
        }
    }
    Ok(found)
}

/// Returns the [`Mesh::stretch`] that a fraction of the cells exceed; 1 for a subdomain without cells.
fn exceeded(mesh: &Mesh, share: f64) -> f64 {
    let cells = (0..mesh.n_cells()).into_par_iter().with_min_len(1024);
    let mut all: Vec<f64> = cells.map(|cell| mesh.stretch(cell)).listed();
    let place = ((1.0 - share) * all.len() as f64) as usize;
    let Some(last) = all.len().checked_sub(1) else { return 1.0 };
    *all.select_nth_unstable_by(place.min(last), f64::total_cmp).1
}
