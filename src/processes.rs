//! Several processes: each has a part of the mesh and its unknowns, and all call the same methods in the same order.
//!
//! ```
//! use weakform::processes::each;
//!
//! weakform::weak_form! {
//!     form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
//!
//!     problem square solves poisson {
//!         mesh = box(dim: 2, cells: 8);
//!         dirichlet u = 0;
//!     }
//! }
//!
//! // Two threads act as two processes; under `mpirun` the group is that of `open()` (feature `mpi`).
//! let energies = each(2, |group| {
//!     let solution = poisson::problem::square().processes(group).run().expect("a solution");
//!     solution.energy().expect("an energy")
//! });
//! assert_eq!(energies[0], energies[1]);
//! ```

#[cfg(feature = "mpi")]
pub use fem_mpi::{MpiEnvironment, open};
pub use runtime::processes::threads::each;
pub use runtime::processes::{ProcessGroup, SingleProcess};
