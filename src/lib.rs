//! weakform: the physics of a PDE at one point → specialised finite-element kernels and their runtime.
//!
//! Write a form in [`weak_form!`], in the language of `.wf` files. It is checked at compile time and becomes a module
//! with a [`Form`]. A form on a mesh is a [`System`]: residual, Jacobian, solvers.
//!
//! ```
//! use weakform::{mesh, weak_form};
//!
//! weak_form! {
//!     /// −Δu = f
//!     form poisson {
//!         field u: scalar;
//!         param f = 4;
//!         f0[u] = -f;
//!         f1[u] = grad(u);
//!     }
//! }
//!
//! let mut system = poisson::form()
//!     .on(mesh("box(dim: 2, cells: 8)")?)
//!     .degree(2)
//!     .dirichlet("u", weakform::ALL, |x| -x[0] * x[0] - x[1] * x[1])
//!     .build()?;
//! let mut u = system.initial();
//! system.solve(&mut u)?;
//! let error = system.error_l2("u", &u, |x| -x[0] * x[0] - x[1] * x[1])?;
//! assert!(error < 1e-8);
//! # Ok::<(), weakform::Error>(())
//! ```
//!
//! The macro also accepts a whole problem, which is solved like with `wf run`:
//!
//! ```
//! weakform::weak_form! {
//!     form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
//!
//!     problem disc solves poisson {
//!         mesh = ball(dim: 2, refine: 2, order: 2);
//!         degree = 2;
//!         dirichlet u = 0 on all;
//!         exact u = (1 - dot(x, x)) / 4;
//!     }
//! }
//!
//! let solution = poisson::problem::disc().run()?;
//! let (l2, _h1) = solution.error("u").expect("the problem has an exact solution");
//! assert!(l2 < 1e-3);
//! # Ok::<(), weakform::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | content |
//! | --- | --- |
//! | `cli` (default) | the program `wf`, `direct` and `pictures`; with `default-features = false` the library compiles in less time |
//! | `direct` | the sparse direct solver; without it problems are solved iteratively, and `solver = direct` is an error |
//! | `pictures` | `Solution::picture`: solutions as PNG and SVG |
//! | `cuda`, `opencl` | kernels on GPUs |

pub mod adapt;
mod emit;
mod error;
mod export;
mod file;
mod form;
pub mod language;
pub mod layers;
pub mod meshes;
mod output;
#[cfg(feature = "pictures")]
pub mod picture;
mod problem;
pub mod processes;
pub mod render;
mod solution;
pub mod solve;
mod system;
mod threads;
pub mod verify;

pub use emit::{
    Cell, Emission, Isa, KernelInterface, Language, Precision, Scatter, Stage, Strategy, Task,
    emit, emit_program, emit_with_interfaces,
};
pub use error::{CallLanguage, Error};
pub use export::{Export, ExportError, Library, export_program};
pub use fem_dsl::point::Shape;
pub use fem_dsl::problem::{
    Formula, Mass, PeriodicMap, PeriodicSides, Quadrature, Scheme, SchemeError, SolverSettings,
    SteppingError, Trace,
};
pub use file::ProblemFile;
pub use form::Form;
pub use output::{write_solution, write_vtu, write_vtu_to};
pub use problem::{Problem, RunEvent};
pub use runtime::algebra::vector::Vector;
pub use runtime::device::{Backend, Device, DeviceAddress, DeviceError};
pub use runtime::kernels::compile::{Execution, Origin};
pub use runtime::kernels::representation::{Assembly, Representation};
pub use runtime::mesh::Mesh;
pub use runtime::operator::assemble::Csr;
pub use runtime::operator::functional::QuadratureValues;
pub use runtime::problem::{
    AdaptivityError, AssembledSystem, ConvergenceError, DataError, DerivedField, IllPosedError,
    Kernels, MatrixPencil, Mode, ReportResult, ReportValue, RunError, Seconds, SetupError, Step,
    StepKind, TimeError,
};
pub use runtime::solve::{Continue, NonlinearSystem, OperatorError, Progress, Report};
pub use runtime::space::constraint::affine::{AffineConstraint, AffineError};
pub use solution::Solution;
pub use system::{
    ALL, Boundary, Data, DataValues, FieldName, Function, Functional, Params, Setup, Snapshot,
    Steps, System, TimeIntegrator, TypedField, Value, at, mesh,
};
pub use threads::{MOST_THREADS, set_threads};

/// Opens a device with separate memory, by a part of its name or for CUDA its number; the first suitable one without a
/// name. For [`Setup::device`] and [`Problem::device`].
///
/// # Errors
///
/// This build lacks the backend (features `cuda`, `opencl`), or this machine a driver, a device, or a compiler; the
/// message says what to install.
pub fn device(backend: Backend, name: Option<&str>) -> Result<std::sync::Arc<dyn Device>, Error> {
    runtime::device::open(backend, name).map_err(|error| Error::Run(error.into()))
}

/// Compiles forms and problems together with your program, and generates a module for each form.
///
/// The body is text of the language, as in a `.wf` file; mistakes are underlined at their tokens. The macro is an item.
/// Each form becomes a module of its name with a function `form`, which returns the [`Form`]. Each problem becomes a
/// function of its name in the module `problem` next to it, which returns the [`Problem`].
///
/// # Checked values
///
/// Next to `form` there is a struct `Params` of the form's parameters, with the form's own values as its default, and a
/// struct `Aux` of its auxiliary data. For a form that is valid in both two and three dimensions, structs that depend
/// on the dimension are `Params<2>`, `Params<3>`.
///
/// ```
/// use weakform::{ALL, at, mesh, weak_form};
///
/// weak_form! {
///     form darcy {
///         field p: scalar;
///         param f = 1;
///         param wind: vector = x0 * [1, 0];
///         param x0 = 2;
///         aux kappa: scalar on cells;
///         f0[p] = dot(wind, grad(p)) - f;
///         f1[p] = kappa * grad(p);
///     }
/// }
///
/// let params = darcy::Params { f: 3.0, ..Default::default() };
/// assert_eq!(params.wind, [2.0, 0.0]);
/// let mut system = darcy::form()
///     .on(mesh("box(dim: 2, cells: 4)")?)
///     .params(params)
///     .data(darcy::Aux { kappa: at(|x| 1.0 + x[0]) })
///     .dirichlet("p", ALL, |_| 0.0)
///     .build()?;
/// let mut p = system.initial();
/// system.solve(&mut p)?;
/// system.set_params(&darcy::Params { wind: [0.0, 0.0], ..params })?;
/// # Ok::<(), weakform::Error>(())
/// ```
///
/// In addition there is a module `field` with a type for each field, `darcy::field::p`, which can replace its name
/// ([`Setup::dirichlet`], [`System::error_l2`]), and modules `param` and `aux` with the names of parameters and data as
/// text, `darcy::aux::kappa` for [`System::set_aux`].
///
/// An unknown name is not a member of the struct, and a value of another shape has another type:
///
/// ```compile_fail,E0560
/// weakform::weak_form! { form a { field u: scalar; param kappa = 1; f0[u] = kappa * u; } }
/// let params = a::Params { kapa: 2.0 };
/// ```
///
/// ```compile_fail,E0308
/// weakform::weak_form! { form a { field u: scalar; param kappa = 1; f0[u] = kappa * u; } }
/// let params = a::Params { kappa: [2.0, 3.0] };
/// ```
///
/// ```compile_fail,E0063
/// weakform::weak_form! { form a { field u: scalar; aux b: scalar; aux c: scalar; f0[u] = b * u + c; } }
/// let data = a::Aux { b: weakform::at(|x| x[0]) };
/// ```
///
/// # Warnings and names
///
/// Valid but probably unintended text (an unused parameter, conditions that later ones replace) causes a warning at its
/// token. The compiler shows it as the use of a deprecated constant, whose name is the code; `#![allow(deprecated)]` in
/// a module around the macro silences it.
///
/// Pass the name of this crate to the macro if it is a dependency of another name, or re-exported:
///
/// ```
/// extern crate weakform as wf;
///
/// wf::weak_form! {
///     #![crate = wf]
///     form mass { field u: scalar; f0[u] = u; }
/// }
///
/// assert_eq!(mass::form().name(), "mass");
/// ```
///
/// # Ahead of time
///
/// By default kernels are compiled at run time, by `rustc`, for the actual mesh. With the attribute `ahead_of_time` the
/// macro expands to the same kernels for the given cells and degrees, for each instruction set of the target, in double
/// precision; the CPU determines which of them run. Such a program needs no compiler:
///
/// ```
/// weakform::weak_form! {
///     #![ahead_of_time(tri(1, order = 1))]
///
///     form helmholtz { field u: scalar; f0[u] = u - 1; f1[u] = grad(u); }
/// }
///
/// let system = helmholtz::form().on(weakform::mesh("box(dim: 2, cells: 2, cell: tri)")?).build()?;
/// assert_eq!(system.origin(), weakform::Origin::AheadOfTime);
/// # Ok::<(), weakform::Error>(())
/// ```
///
/// `hex(1, 2)` means degrees 1 and 2, on straight and on quadratic geometry, with the language's quadrature.
/// `order = 1` and `quadrature = 6` restrict it to one geometry or another rule. Missing kernels are compiled at run
/// time, which is logged (`tracing`, level `info`); without a compiler it is an error that names the entry to add.
///
/// Optimise a program that contains kernels: without `--release` they are slow.
pub use fem_macros::weak_form;

/// The examples of `docs/library.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryPage;

/// The examples of the tutorial.
#[cfg(doctest)]
#[doc = include_str!("../docs/tutorial/10-python-and-rust.md")]
struct Tutorial;

/// Items used by the expansion of [`weak_form!`]. Not for use by hand.
#[doc(hidden)]
pub mod embedded {
    pub use crate::form::EmbeddedKernels;
    pub use kernels_gen::dialect::rust::Isa;
    pub use runtime::device::cpu::LinkedKernels;
}

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
