//! Solvers: the settings of weakform's own, and the interfaces for yours.
//!
//! A solver with its settings is a value. Settings left out are chosen when the solve is planned.
//!
//! ```
//! use weakform::solve::{LinearSettings, Method, MultigridSettings, PreconditionerSettings};
//! use weakform::{Form, mesh};
//!
//! let form = Form::parse("form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }", "poisson")?;
//! let mut system = form.on(mesh("box(dim: 2, cells: 8)")?).dirichlet("u", weakform::ALL, |_| 0.0).build()?;
//! let mut u = system.initial();
//! let multigrid = PreconditionerSettings::Multigrid(MultigridSettings::default());
//! let cg = LinearSettings {
//!     rtol: Some(1e-8),
//!     preconditioner: Some(multigrid),
//!     ..LinearSettings::new(Method::Cg)
//! };
//! let report = system.solve_with(&mut u, Some(&cg.into()))?;
//! assert!(report.iterations < 20);
//! # Ok::<(), weakform::Error>(())
//! ```
//!
//! A solver of your own sees an operator and vectors. This one is Richardson's iteration with Jacobi's preconditioner,
//! u ← u − ω D⁻¹ R(u), D the diagonal of the Jacobian at the start:
//!
//! ```
//! use weakform::{Form, mesh};
//!
//! let form = Form::parse("form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }", "poisson")?;
//! let mut system = form.on(mesh("box(dim: 2, cells: 4)")?).dirichlet("u", weakform::ALL, |_| 0.0).build()?;
//! let mut u = system.initial();
//! system.linearise(&u)?;
//! let (mut inverse, mut r) = (system.vector(), system.vector());
//! system.diagonal(&mut inverse)?;
//! inverse.invert();
//! system.residual(&u, &mut r)?;
//! let first = r.norm();
//! for _ in 0..50 {
//!     r.multiply(&inverse);
//!     u.axpy(-0.8, &r);
//!     system.residual(&u, &mut r)?;
//! }
//! assert!(r.norm() < 1e-3 * first);
//! # Ok::<(), weakform::Error>(())
//! ```
//!
//! [`cg()`], [`minres()`], [`gmres()`], [`fgmres()`] and [`bicgstab()`] solve with any [`LinearOperator`], and [`newton()`] with any
//! [`NonlinearSystem`], such as [`System::equations`](crate::System::equations).

pub use fem_dsl::problem::{
    BlockSettings, Forcing, LineSearch, LinearSettings, Method, MultigridSettings, NewtonSettings,
    PreconditionerSettings, Smoother, SolverSettings,
};
pub use runtime::solve::{
    CgSettings, Continue, GmresSettings, LinearOperator, LinearOptions, NewtonOptions,
    NonlinearSystem, OperatorError, Outcome, Preconditioner, Progress, Report, bicgstab, cg,
    fgmres, gmres, minres, newton, silent,
};
