//! A solve by levels that took many iterations → why, as far as a form and a mesh can tell, and what helps.

use super::{System, is_saddle};
use crate::mesh::Mesh;
use crate::parallel::*;
use crate::solve::Report;

/// Iterations that are many for a solve by levels, and for one of a saddle point, where a mass stands for a Schur complement.
const MANY: [usize; 2] = [30, 100];
/// Cells so many times as long as wide are stretched: at degree 2 in the plane 64² cells take CG 6, 9, 20, 30 and 49 iterations where they are 1, 2, 4,
/// 6 and 10 times as long as wide.
const STRETCHED: f64 = 4.0;
/// The share of cells that are enough to be the reason.
const SHARE: f64 = 0.1;

/// What should be known of a solve by levels, if it took long, or did not keep them.
pub(super) fn told(system: System<'_>, report: &Report, kept: bool) -> Option<String> {
    if kept && report.iterations < MANY[usize::from(is_saddle(system.form))] {
        return None;
    }
    let mut reasons = Vec::new();
    let stretch = exceeded(&system.on.mesh, SHARE);
    if stretch > STRETCHED {
        reasons.push(format!(
            "a tenth of the cells or more are {stretch:.0} times as long as wide, across which levels smooth badly: divide them along their long \
             sides"
        ));
    }
    if !system.symmetric() {
        reasons.push(
            "the form is not symmetric, and levels fit it only as far as its symmetric part rules inside a cell (for convection by b with the \
             diffusion κ: |b| h < 2 κ): use smaller cells, or stabilise it"
                .to_owned(),
        );
    }
    let what = match kept {
        true => format!("{} iterations are many for multigrid", report.iterations),
        false => "multigrid did not serve".to_owned(),
    };
    let why = match reasons.is_empty() {
        true => {
            "a coefficient that jumps or depends on the direction is a likely reason".to_owned()
        }
        false => reasons.join("; "),
    };
    let direct = match report.solver {
        "direct" => "",
        _ => "; `solver = direct;` does without, where memory allows",
    };
    Some(format!("{what}: {why}{direct}"))
}

/// What a share of the cells exceed in [`Mesh::stretch`].
fn exceeded(mesh: &Mesh, share: f64) -> f64 {
    let cells = (0..mesh.n_cells()).into_par_iter().with_min_len(1024);
    let mut all: Vec<f64> = cells.map(|cell| mesh.stretch(cell)).listed();
    let place = ((1.0 - share) * all.len() as f64) as usize;
    let last = all.len() - 1;
    *all.select_nth_unstable_by(place.min(last), f64::total_cmp).1
}
