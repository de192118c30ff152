//! `verify`: numerical verification of a problem's form.
//!
//! ```text
//! problem, or only its form → manufactured solution → for each degree:
//!     refinement series → errors → observed orders, k + 1 in L2 and k in H1
//!     Jacobian against differences of the residual; its symmetry, its signs
//!     kernels of every instruction set, strategy and device against the reference
//! ```

mod kernels;
mod refine;
mod solution;
mod time;
mod verifier;

use crate::{Error, threads};
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::Program;
use kernels_gen::element::Cell;
use runtime::device::Device;
use runtime::kernels::compile::Execution;
use runtime::processes::SingleProcess;
use std::path::Path;
use std::sync::Arc;
use verifier::Verifier;

pub use kernels::{KernelComparison, Verdict};
pub use runtime::processes::ProcessGroup;
pub use runtime::verify::agreement::ReferenceDistance;
pub use runtime::verify::jacobian::{SymmetryResult, TaylorResult};
pub use runtime::verify::series::LevelResult;
pub use time::TimeOrders;

/// Tolerated deficit of an observed order.
pub const TOLERANCE: f64 = 0.15;

/// Deficit of an observed order up to which costly finer meshes are tried.
const NEAR: f64 = 0.6;

/// Scope of a verification.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The degrees; 1 to 4 if empty.
    pub degrees: Vec<usize>,
    /// Levels of the refinement series, at least 2.
    pub levels: usize,
    /// Approximate limit for the number of DoFs on the finest level. If an order is not reached, up to three more
    /// levels are added, of at most 15 times as many DoFs; if it nearly is, 200 times.
    pub dofs: usize,
    /// The manufactured solution, field and text; by default the problem's, or a generated one.
    pub solution: Vec<(String, String)>,
    /// Cells of a box that replaces the problem's mesh.
    pub cell: Option<Cell>,
    /// Compiled or interpreted kernels.
    pub execution: Execution,
    /// True if kernels are compared with the reference.
    pub kernels: bool,
    /// Devices whose kernels are also compared; each of several processes has as many of the same kinds.
    pub devices: Vec<Arc<dyn Device>>,
    /// The processes that share one verification: each has a subdomain of each mesh of the series, and compares some of
    /// the kernels.
    pub group: Arc<dyn ProcessGroup>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            degrees: Vec::new(),
            levels: 3,
            dofs: 20_000,
            solution: Vec::new(),
            cell: None,
            execution: Execution::default(),
            kernels: true,
            devices: Vec::new(),
            group: Arc::new(SingleProcess),
        }
    }
}

/// The current operation, for a progress bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Its description.
    pub what: String,
    /// The completed fraction, from 0 to 1.
    pub done: f64,
}

/// The result of a verification.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The problem.
    pub problem: String,
    /// Its form.
    pub form: String,
    /// The names of its fields.
    pub fields: Vec<String>,
    /// The cells.
    pub cell: Cell,
    /// The manufactured solution, field and text.
    pub solution: Vec<(String, String)>,
    /// True for a generated solution.
    pub picked: bool,
    /// Remarks.
    pub notes: Vec<String>,
    /// The results of each degree.
    pub degrees: Vec<Degree>,
}

/// The result of one degree.
#[derive(Clone, Debug)]
pub struct Degree {
    /// k.
    pub degree: usize,
    /// The findings, or the reason why this degree is not possible for the form on these cells.
    pub outcome: Result<Findings, String>,
}

/// The findings of one degree.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The refinement series, coarse to fine.
    pub levels: Vec<LevelResult>,
    /// The orders of each field.
    pub orders: Vec<Orders>,
    /// The results of each time integrator, if the form has time derivatives.
    pub time: Vec<TimeOrders>,
    /// The test of the Jacobian.
    pub taylor: Option<TaylorResult>,
    /// Symmetry and definiteness.
    pub signs: Option<SymmetryResult>,
    /// True if the form is known to have a symmetric Jacobian.
    pub symmetric: bool,
    /// True if the problem's solver requires a positive definite Jacobian.
    pub definite: bool,
    /// Comparisons of kernels with the reference.
    pub kernels: Vec<KernelComparison>,
    /// An error, because of which results above are missing.
    pub error: Option<String>,
}

/// The orders of convergence of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orders {
    /// The order in L2.
    pub l2: Order,
    /// The order in the seminorm of H1; of fields in H(curl) and H(div) with their derivative.
    pub h1: Order,
    /// The name of the second norm.
    pub norm: &'static str,
}

/// An order of convergence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// The theoretical order.
    pub expected: f64,
    /// The order between the two finest conclusive levels; `None` if the error is at the rounding-error level.
    pub observed: Option<f64>,
}

impl Order {
    /// Returns whether the observed order is not below the expected one.
    pub fn holds(&self) -> bool {
        self.falls_short_by(TOLERANCE)
    }

    /// Returns the same for an order in time, which few steps show less accurately.
    pub fn holds_in_time(&self) -> bool {
        self.falls_short_by(2.0 * TOLERANCE)
    }

    /// Returns whether it is an asymptotic order rather than an artefact of long steps.
    fn is_of_short_steps(&self) -> bool {
        let above = self.observed.is_some_and(|order| order > self.expected + 2.0 * TOLERANCE);
        self.holds_in_time() && (!above || self.expected == 0.0)
    }

    /// Returns whether it is so close to the expected one that finer meshes may reach it.
    fn is_near(&self) -> bool {
        self.falls_short_by(NEAR)
    }

    /// Returns whether its deficit is at most this.
    fn falls_short_by(&self, most: f64) -> bool {
        self.observed.is_none_or(|observed| observed >= self.expected - most)
    }
}

impl Findings {
    /// Describes the failures.
    pub fn failures(&self, fields: &[String]) -> Vec<String> {
        let mut failures: Vec<String> = self.error.iter().cloned().collect();
        for (orders, name) in self.orders.iter().zip(fields) {
            for (norm, order) in [("L2", orders.l2), (orders.norm, orders.h1)] {
                if let Some(observed) = order.observed.filter(|_| !order.holds()) {
                    let expected = order.expected;
                    failures.push(format!(
                        "`{name}` converges with order {observed:.2} in {norm}, not {expected}"
                    ));
                }
            }
        }
        for TimeOrders { scheme, orders } in &self.time {
            for (order, name) in orders.iter().zip(fields) {
                if let Some(observed) = order.observed.filter(|_| !order.holds_in_time()) {
                    let expected = order.expected;
                    failures.push(format!(
                        "`{name}` has order {observed:.2} in time with {scheme}, not {expected}"
                    ));
                }
            }
        }
        if let Some(taylor) = self.taylor.as_ref().filter(|taylor| !taylor.holds()) {
            failures.push(match (taylor.linear, taylor.order) {
                (true, _) => "the form is linear, but R(u + w) − R(u) is not J w".to_owned(),
                (false, Some(order)) => {
                    format!("the Jacobian's Taylor remainder has order {order:.2}, not 2")
                }
                (false, None) => "the Jacobian's Taylor remainder has no order".to_owned(),
            });
        }
        if let Some(signs) = self.signs {
            if self.symmetric && !signs.symmetric() {
                failures.push(format!("v·Jw and w·Jv differ by {:.1e}", signs.defect));
            }
            if self.definite && signs.definite == Some(false) {
                failures.push(
                    "`cg` is named, but the Jacobian is not positive definite at the solution"
                        .to_owned(),
                );
            }
        }
        for compared in &self.kernels {
            if let Verdict::Compared(distance) = &compared.verdict
                && !distance.holds()
            {
                failures.push(format!("kernels differ from the reference: {}", compared.name));
            }
        }
        failures
    }
}

impl Verification {
    /// Describes the failures; empty if there are none.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for Degree { degree, outcome } in &self.degrees {
            let Ok(findings) = outcome else { continue };
            let found = findings.failures(&self.fields);
            failures.extend(found.into_iter().map(|found| format!("degree {degree}: {found}")));
        }
        if self.degrees.iter().all(|degree| degree.outcome.is_err()) {
            failures.push("no degree is possible".to_owned());
        }
        failures
    }
}

/// Returns whether the verification can continue after an error; with several processes, if all of them have it.
fn may_go_on(error: &Error, several: bool) -> bool {
    match error {
        Error::Run(error) => !several || error.is_of_all(),
        _ => true,
    }
}

/// Verifies a problem. The path of its mesh is relative to `folder`.
///
/// # Errors
///
/// Mistakes in the problem or in the overrides; a mesh that cannot be created. A failed verification is no error but
/// part of the [`Verification`].
pub fn verify(
    program: &Program,
    problem: &str,
    overrides: &Overrides,
    folder: &Path,
    settings: &Settings,
    observe: &mut (dyn FnMut(Progress) + Send),
) -> Result<Verification, Error> {
    threads::roomy(|| {
        let mut verifier = Verifier::new(program, problem, overrides, folder, settings)?;
        let degrees = match settings.degrees.is_empty() {
            true => (1..=4).collect(),
            false => settings.degrees.clone(),
        };
        let (mut found, count) = (Vec::new(), degrees.len() as f64);
        for (number, degree) in degrees.into_iter().enumerate() {
            let mut progress = |what: &str, part: f64| {
                let what = format!("{problem}: degree {degree}, {what}");
                observe(Progress { what, done: (number as f64 + part) / count });
            };
            found.push(Degree { degree, outcome: verifier.degree(degree, &mut progress)? });
        }
        Ok(verifier.finished(found))
    })
}

/// Returns problems for the forms of a program that has none: names, and text to be appended to it. Their meshes are
/// boxes of `cell`, or of the first cells on which a form is valid.
pub fn problems(program: &Program, cell: Option<Cell>) -> (Vec<String>, String) {
    let (mut names, mut text) = (Vec::new(), String::new());
    for checked in program.forms() {
        let cells = match cell {
            Some(cell) => vec![cell],
            None => vec![Cell::Quadrilateral, Cell::Hexahedron, Cell::Interval],
        };
        let found =
            cells.into_iter().find_map(|cell| Some((cell, checked.dimensions.form(cell.dim())?)));
        let Some((cell, form)) = found else { continue };
        let mut name = format!("verify_{}", form.name);
        while program.form(&name).is_some() {
            name.push('_');
        }
        text.push_str(&solution::problem(&name, form, cell));
        text.push('\n');
        names.push(name);
    }
    (names, text)
}
