//! Adaptive loops: solve, [estimate](crate::System::estimate), [`mark`], [`AdaptiveMesh::adapt`], [transfer](crate::System::transfer).
//!
//! ```
//! use weakform::adapt::{AdaptiveMesh, mark};
//! use weakform::{ALL, Form};
//! use weakform::meshes::Mesh;
//!
//! let text = "form f { field u: scalar; f0[u] = -exp(-50 * dot(x, x)); f1[u] = grad(u); }";
//! let form = Form::parse(text, "f")?;
//! let mut adaptive = AdaptiveMesh::new(Mesh::cube(2).cells(4).build()?)?;
//! let mut before: Option<(weakform::System, weakform::Vector)> = None;
//! for _ in 0..3 {
//!     let mut system = form.on(adaptive.mesh()?).dirichlet("u", ALL, |_| 0.0).build()?;
//!     // A nonlinear solve starts best from the last solution.
//!     let mut u = match &before {
//!         Some((old, u)) => old.transfer(u, &system)?,
//!         None => system.initial(),
//!     };
//!     system.solve(&mut u)?;
//!     let estimate = system.estimate(&u)?;
//!     let marked = mark(&estimate.squares, 0.5)?;
//!     adaptive.adapt(system.mesh(), &marked, &[])?;
//!     before = Some((system, u));
//! }
//! assert!(adaptive.n_cells() > 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use runtime::estimate::adapt::{AdaptError, AdaptationResult, AdaptiveMesh};
pub use runtime::estimate::{ErrorEstimate, EstimateError};
pub use runtime::mesh::refine::mark::{MarkError, coarsen, mark};
