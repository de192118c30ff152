//! The linear solve of a Newton step, or of a linear problem: J(u) δ = −R(u), with the solver that is wanted.

use super::direct::Direct;
use super::{
    CgSettings, GmresSettings, LinearOperator, NonlinearSystem, Observer, OperatorError, Outcome,
    Preconditioner, Report, cg, gmres, minres,
};
use crate::vector::Vector;

/// Vectors of random signs for [`positive_inverse`].
const SAMPLES: usize = 8;

/// A linear solver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InnerSolver {
    /// [`cg()`] where J is symmetric, [`gmres()`] elsewhere and from the first direction of negative curvature on.
    #[default]
    Automatic,
    /// Always [`cg()`].
    Cg,
    /// Always [`minres()`].
    Minres,
    /// Always [`gmres()`].
    Gmres,
    /// Always the factors of the assembled matrix, [`Direct`].
    Direct,
}

impl InnerSolver {
    /// The solver of this name in the language; none for `newton`, `automatic` and other words.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "cg" => Self::Cg,
            "minres" => Self::Minres,
            "gmres" => Self::Gmres,
            "direct" => Self::Direct,
            _ => return None,
        })
    }
}

/// How a linear system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// The solver.
    pub solver: InnerSolver,
    /// Iterations of a GMRES cycle.
    pub restart: usize,
    /// Whether the diagonal preconditions it.
    pub jacobi: bool,
}

impl Default for Linear {
    fn default() -> Self {
        Self { solver: InnerSolver::default(), restart: 50, jacobi: true }
    }
}

/// The linear solve of a step.
pub(super) struct Direction {
    /// δ.
    pub(super) delta: Vector,
    inverse: Vector,
    linear: Linear,
    direct: Option<Direct>,
}

impl Direction {
    pub(super) fn new(u: &Vector, linear: Linear) -> Self {
        Self { delta: u.like(), inverse: u.like(), linear, direct: None }
    }

    /// J(u) δ = `rhs`, from δ = 0.
    pub(super) fn solve(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &Vector,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        system.linearise(u)?;
        let symmetric = system.symmetric();
        if self.linear.solver == InnerSolver::Direct {
            let direct = match &mut self.direct {
                Some(direct) => direct,
                None => {
                    let missing = || OperatorError::new("this operator gives no matrix");
                    let coupling = system.coupling().ok_or_else(missing)?;
                    self.direct.insert(Direct::new(coupling))
                }
            };
            let delta = &mut self.delta;
            return direct.solve(system.jacobian(), rhs, delta, symmetric, settings, observe);
        }
        if self.linear.jacobi {
            system.diagonal(&mut self.inverse)?;
        }
        self.delta.fill(0.0);
        let jacobian = system.jacobian();
        let tries_cg = match self.linear.solver {
            InnerSolver::Automatic => symmetric,
            solver => solver == InnerSolver::Cg,
        };
        if tries_cg {
            self.inverse.invert();
            let (delta, jacobi) = (&mut self.delta, preconditioner(&self.inverse, self.linear));
            let report = cg(jacobian, rhs, delta, jacobi, settings, &mut *observe)?;
            let indefinite = matches!(report.outcome, Outcome::Indefinite { .. });
            if self.linear.solver == InnerSolver::Cg || !indefinite {
                return Ok(report);
            }
            // The next steps start with what has shown to be needed.
            self.linear.solver = InnerSolver::Gmres;
            self.delta.fill(0.0);
            if self.linear.jacobi {
                system.diagonal(&mut self.inverse)?;
            }
        }
        let jacobian = system.jacobian();
        if self.linear.jacobi {
            positive_inverse(jacobian, &mut self.inverse)?;
        }
        let (delta, jacobi) = (&mut self.delta, preconditioner(&self.inverse, self.linear));
        if self.linear.solver == InnerSolver::Minres {
            return minres(jacobian, rhs, delta, jacobi, settings, observe);
        }
        let CgSettings { rtol, atol, max_iterations } = settings;
        let settings = GmresSettings { rtol, atol, max_iterations, restart: self.linear.restart };
        gmres(jacobian, rhs, delta, jacobi, settings, observe)
    }
}

fn preconditioner(inverse: &Vector, linear: Linear) -> Preconditioner<'_> {
    match linear.jacobi {
        true => Preconditioner::Jacobi(inverse),
        false => Preconditioner::Identity,
    }
}

/// Turns the diagonal D of J into what preconditions an indefinite J: 1/|D_ii|, and where D_ii = 0, as for a pressure,
/// 1/S_ii of S = J D⁻¹ J, Schur's complement up to its sign, in the rows where D is 0.
///
/// S is not formed: for vectors z of random signs the mean of (S z)_i² is Σ_j S_ij², of which S_ii² is the largest part.
fn positive_inverse(jacobian: &dyn LinearOperator, d: &mut Vector) -> Result<(), OperatorError> {
    let diagonal = d.to_vec();
    d.invert();
    let missing: Vec<usize> = (0..diagonal.len()).filter(|&i| diagonal[i] == 0.0).collect();
    if missing.is_empty() {
        d.make_positive();
        return Ok(());
    }
    let (mut z, mut y) = (d.like(), d.like());
    let mut squares = vec![0.0; missing.len()];
    let mut state = 1u64;
    for _ in 0..SAMPLES {
        let mut signs = vec![0.0; diagonal.len()];
        for &i in &missing {
            // Knuth's generator; its high bits are the random ones.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            signs[i] = if state >> 63 == 0 { 1.0 } else { -1.0 };
        }
        z.set(&signs);
        jacobian.apply(&z, &mut y)?;
        y.multiply(d);
        jacobian.apply(&y, &mut z)?;
        let product = z.to_vec();
        squares.iter_mut().zip(&missing).for_each(|(square, &i)| *square += product[i].powi(2));
    }
    d.make_positive();
    let mut entries = d.to_vec();
    for (square, &i) in squares.iter().zip(&missing) {
        let size = (square / SAMPLES as f64).sqrt();
        if size > 0.0 && size.is_finite() {
            entries[i] = 1.0 / size;
        }
    }
    d.set(&entries);
    Ok(())
}
