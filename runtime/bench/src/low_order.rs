//! Low-order operators on boxes of hexahedra, for a case, a mesh and a [`OperatorVariant`]: products, conjugate
//! gradient iterations, and single vector passes are timed.
//!
//! ```text
//! corners, vertices        matrix-free: J from gathered corner coordinates, or from the cell's own 24 coefficients
//! stored, coefficients     partial assembly: w |det J| and J⁻¹, or the coefficients of the Jacobian, at each point
//! assembled                a matrix in compressed rows
//! ```
//!
//! After R. R. Settgast and others (2023); [`crate::low_order_model`] contains their counts. Degree 1, double
//! precision, zero boundary values.

use super::device::median;
use super::product::{Machine, held, made};
use super::{BenchError, Case, alone, form_of, input, median_seconds, mesh};
use fem_dsl::point::PointForm;
use kernels_gen::cost::count;
use kernels_gen::element::{Cell, Rule};
use kernels_gen::plan::{Elements, Geometry, Linearisation, Plan, Scatter, Task};
use kernels_gen::strategy::lower;
use runtime::algebra::vector::Vector;
use runtime::device::Device;
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::Mesh;
use runtime::operator::Operator;
use runtime::solve::{
    CgSettings, LinearOperator, NonlinearSystem, OperatorError, Preconditioner, cg, silent,
};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Problems of the suite, from [`super::CASES`]: scalar and vector Laplacian, elasticity.
pub const PROBLEMS: [&str; 3] = ["BP5", "BP6", "elasticity"];

/// Maximum number of iterations of a timed solve.
pub const ITERATIONS: usize = 50;

/// Number of timed solves, of which the fastest counts.
const SOLVES: usize = 3;

/// Seconds after which a slow solve is not repeated.
const ENOUGH: f64 = 2.0;

/// Representation of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorVariant {
    /// Matrix-free, with this geometry.
    MatrixFree(Geometry),
    /// Partial assembly of the form's own coefficients.
    Coefficients,
    /// Assembled matrix.
    Assembled,
}

impl OperatorVariant {
    /// All representations; the first one is the reference.
    pub const ALL: [Self; 5] = [
        Self::MatrixFree(Geometry::Corners),
        Self::MatrixFree(Geometry::Vertices),
        Self::MatrixFree(Geometry::Stored),
        Self::Coefficients,
        Self::Assembled,
    ];

    /// Returns the paper's name.
    pub fn family(self) -> &'static str {
        match self {
            Self::MatrixFree(Geometry::Stored) | Self::Coefficients => "partial assembly",
            Self::MatrixFree(_) => "matrix-free",
            Self::Assembled => "SpMV",
        }
    }

    fn representation(self, on_a_device: bool) -> Representation {
        match self {
            Self::Assembled => Representation::Assembled(Assembly::fitting(on_a_device)),
            _ => Representation::MatrixFree,
        }
    }

    /// Returns a machine with the kernel wishes of this representation.
    fn wished(self, machine: &Machine, matrix: Scatter) -> Machine {
        let mut machine = machine.clone();
        let wishes = match &mut machine {
            Machine::Processor(target) => &mut target.wishes,
            Machine::Device(_, wishes) => wishes,
        };
        match self {
            Self::MatrixFree(geometry) => {
                wishes.geometry = Some(geometry);
                wishes.linearisation = Some(Linearisation::Recompute);
            }
            Self::Coefficients => wishes.linearisation = Some(Linearisation::Stored),
            Self::Assembled => wishes.matrix = Some(matrix),
        }
        machine
    }
}

impl fmt::Display for OperatorVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MatrixFree(geometry) => geometry.fmt(f),
            Self::Coefficients => f.write_str("coefficients"),
            Self::Assembled => f.write_str("assembled"),
        }
    }
}

/// Vector passes of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// One kernel per operation: two products, three updates; the host waits for each product.
    Separate,
    /// Those of table 4, with one update fused with its product.
    Four,
    /// Those of [`cg()`]: both updates fused, and products without synchronisation on a device.
    Fused,
}

impl Passes {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Separate, Self::Four, Self::Fused];

    /// Returns their number, without the operator.
    pub fn count(self) -> usize {
        match self {
            Self::Separate => 5,
            Self::Four => 4,
            Self::Fused => 3,
        }
    }
}

impl fmt::Display for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Separate => "separate",
            Self::Four => "table 4",
            Self::Fused => "fused",
        })
    }
}

/// Memory traffic and operations of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProductCosts {
    /// Number of bytes.
    pub bytes: f64,
    /// Number of floating-point operations.
    pub flops: f64,
    /// Number of matrix entries, if there is a matrix.
    pub entries: usize,
}

/// Timing of iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterations {
    /// Seconds per iteration.
    pub seconds: f64,
    /// Number of iterations.
    pub count: usize,
    /// Ratio of the last residual to the first.
    pub residual: f64,
}

/// A timed vector pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedPass {
    /// Its formula.
    pub name: &'static str,
    /// Numbers read and written per degree of freedom.
    pub numbers: usize,
    /// True for the passes of table 4; the others are those of our own solver.
    pub of_table: bool,
    /// Seconds.
    pub seconds: f64,
}

/// Returns a case of degree 1 on hexahedra.
fn discrete(case: &Case) -> Result<(PointForm, Elements), BenchError> {
    let cell = Cell::Hexahedron;
    let form = form_of(case.name, case.form, cell.dim())?;
    let rule = Rule::Tensor { cell, line: (case.rule)(1) };
    let elements = Elements::new(&form, cell, 1, rule)?;
    Ok((form, elements))
}

/// Builds the deformed box on which a case has at least `dofs` degrees of freedom.
///
/// # Errors
///
/// More entities than indices can address.
pub fn grid(case: &Case, dofs: usize) -> Result<Arc<Mesh>, BenchError> {
    let (_, elements) = discrete(case)?;
    mesh(&elements, dofs, &alone())
}

/// A linear system in one representation.
pub struct TimedSystem {
    operator: Operator,
    device: Option<Arc<dyn Device>>,
    counted: ProductCosts,
    /// Input of products.
    x: Vector,
    /// A x, the right-hand side of solves.
    b: Vector,
    y: Vector,
}

impl TimedSystem {
    /// Compiles a case of degree 1, and computes its stored data or matrix.
    ///
    /// # Errors
    ///
    /// No plan, insufficient memory, a compiler or device failure.
    pub fn new(
        case: &Case,
        mesh: &Arc<Mesh>,
        way: OperatorVariant,
        machine: &Machine,
    ) -> Result<Self, BenchError> {
        let (form, elements) = discrete(case)?;
        let on = Arc::new(held(mesh, &elements)?);
        let device = match machine {
            Machine::Processor(_) => None,
            Machine::Device(device, _) => Some(Arc::clone(device)),
        };
        let how = way.representation(device.is_some());
        let machine = way.wished(machine, how.scatter());
        let (mut operator, plans) = made(&form, &elements, on, (how, how.tasks()), &machine)?;
        operator.represent(how)?;
        let state = operator.vector();
        operator.linearise(&state)?;
        let (mut x, mut b, y) = (operator.vector(), operator.vector(), operator.vector());
        let on = operator.discretisation();
        let mut values = input(on.n_dofs());
        for (field, range) in on.fields.iter().zip(on.ranges()) {
            for (dof, _) in field.constraints.iter() {
                values[range.start + dof] = 0.0;
            }
        }
        x.set(&values);
        operator.apply(&x, &mut b)?;
        operator.finish()?;
        let counted = match way {
            OperatorVariant::Assembled => of_matrix(operator.matrix_size().entries, on.n_dofs()),
            _ => of_kernel(case, &form, &elements, &plans, on.mesh.n_cells())?,
        };
        Ok(Self { operator, device, counted, x, b, y })
    }

    /// Returns the number of degrees of freedom, boundary included.
    pub fn dofs(&self) -> usize {
        self.operator.discretisation().n_dofs()
    }

    /// Returns the memory traffic and operations of a product.
    pub fn counted(&self) -> ProductCosts {
        self.counted
    }

    /// Returns A x for [`input`] with zero boundary values.
    pub fn result(&self) -> Vec<f64> {
        self.b.to_vec()
    }

    /// Returns the median time of vector operations.
    fn time(
        device: Option<&Arc<dyn Device>>,
        mut work: impl FnMut() -> Result<(), OperatorError>,
    ) -> Result<f64, BenchError> {
        match device {
            Some(device) => median(&**device, 3, || Ok(work()?)),
            None => Ok(median_seconds(work)?),
        }
    }

    /// Returns the median time of y = A x.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn product_seconds(&mut self) -> Result<f64, BenchError> {
        let Self { operator, device, x, y, .. } = self;
        Self::time(device.as_ref(), || operator.apply(x, y))
    }

    /// Times iterations for A x = b from 0, including the first residual; the fastest of some solves, after one
    /// warm-up.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn iterate(&self, passes: Passes, most: usize) -> Result<Iterations, BenchError> {
        let once = || match passes {
            Passes::Fused => self.solve(most),
            Passes::Separate | Passes::Four => self.by_hand(passes, most),
        };
        once()?;
        let begin = Instant::now();
        let mut best = once()?;
        for _ in 1..SOLVES {
            if begin.elapsed().as_secs_f64() > ENOUGH {
                break;
            }
            let next = once()?;
            if next.seconds < best.seconds {
                best = next;
            }
        }
        Ok(best)
    }

    /// Runs [`cg()`].
    fn solve(&self, most: usize) -> Result<Iterations, BenchError> {
        let mut x = self.operator.vector();
        let settings = CgSettings { rtol: 0.0, max_iterations: most, ..CgSettings::default() };
        let none = Preconditioner::Identity;
        let start = Instant::now();
        let report = cg(&self.operator, &self.b, &mut x, none, settings, &mut silent)?;
        self.operator.finish()?;
        let seconds = start.elapsed().as_secs_f64();
        let residual = |at: Option<&f64>| at.copied().unwrap_or(0.0);
        Ok(Iterations {
            seconds: seconds / report.iterations.max(1) as f64,
            count: report.iterations,
            residual: residual(report.history.last()) / residual(report.history.first()),
        })
    }

    /// Runs the same method with separate passes, or those of table 4.
    fn by_hand(&self, passes: Passes, most: usize) -> Result<Iterations, BenchError> {
        let mut x = self.operator.vector();
        let (mut r, mut q) = (x.like(), x.like());
        let start = Instant::now();
        self.operator.apply(&x, &mut q)?;
        r.copy_from(&self.b);
        r.axpy(-1.0, &q);
        let mut p = r.clone();
        let first = r.dot(&r);
        let (mut square, mut count) = (first, 0);
        // Below this the residual is rounding error.
        while count < most && square > f64::EPSILON.powi(2) * first {
            self.operator.apply(&p, &mut q)?;
            let alpha = square / p.dot(&q);
            x.axpy(alpha, &p);
            let next = match passes {
                Passes::Separate => {
                    r.axpy(-alpha, &q);
                    r.dot(&r)
                }
                Passes::Four | Passes::Fused => r.axpy_dot(-alpha, &q).value(),
            };
            p.axpby(1.0, &r, next / square);
            square = next;
            count += 1;
        }
        self.operator.finish()?;
        let seconds = start.elapsed().as_secs_f64() / count.max(1) as f64;
        Ok(Iterations { seconds, count, residual: (square / first).sqrt() })
    }

    /// Returns the time of each pass over vectors of this size.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn passes(&mut self) -> Result<Vec<TimedPass>, BenchError> {
        let (mut p, q) = (self.x.clone(), self.b.clone());
        let (mut x, mut r) = (p.like(), q.clone());
        let device = self.device.as_ref();
        // Small alternating steps keep all numbers in range.
        let (mut sign, small) = (1.0, 1e-3);
        let mut step = || {
            sign = -sign;
            sign * small
        };
        let mut timed = Vec::new();
        let mut note = |name, numbers, of_table, seconds| {
            timed.push(TimedPass { name, numbers, of_table, seconds });
        };
        let mut sum = 0.0;
        note(
            "p·q",
            2,
            true,
            Self::time(device, || {
                sum += p.dot(&q);
                Ok(())
            })?,
        );
        note(
            "x += a p",
            3,
            true,
            Self::time(device, || {
                x.axpy(step(), &p);
                Ok(())
            })?,
        );
        note(
            "r -= a q, r·r",
            3,
            true,
            Self::time(device, || {
                sum += r.axpy_dot(step(), &q).value();
                Ok(())
            })?,
        );
        note(
            "p = r + b p",
            3,
            true,
            Self::time(device, || {
                p.axpby(1.0, &r, small);
                Ok(())
            })?,
        );
        note(
            "p·q, not waited for",
            2,
            false,
            Self::time(device, || {
                std::hint::black_box(p.dot_later(&q));
                Ok(())
            })?,
        );
        let curvature = p.dot_later(&p);
        note(
            "x += a p, r -= a q, r·r",
            6,
            false,
            Self::time(device, || {
                std::hint::black_box(x.step(step(), &curvature, &p, &mut r, &q, None));
                Ok(())
            })?,
        );
        std::hint::black_box(sum);
        self.operator.finish()?;
        Ok(timed)
    }
}

/// Counts a product with a matrix: entries with columns, row offsets, x read and y written.
fn of_matrix(entries: usize, dofs: usize) -> ProductCosts {
    let (entry, start, vectors) = (8 + 4, 4, 2 * 8);
    let bytes = entry * entries + start * (dofs + 1) + vectors * dofs;
    ProductCosts { bytes: bytes as f64, flops: 2.0 * entries as f64, entries }
}

/// Counts a product by kernels, by the cost model for cells without constrained degrees of freedom.
fn of_kernel(
    case: &Case,
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    cells: usize,
) -> Result<ProductCosts, BenchError> {
    let plan = plans.iter().find(|plan| plan.task == Task::Action);
    let (kernel, abi) = lower(form, elements, plan.ok_or(BenchError::Form(case.name))?)?;
    let cost = count(&kernel, &abi, elements);
    let cells = cells as f64;
    Ok(ProductCosts { bytes: cost.bytes.total() * cells, flops: cost.flops() * cells, entries: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CASES;
    use crate::low_order_model::{
        Caching, ELASTICITY, Grid, LAPLACE, Operator as Kind, Problem, Traffic, VECTOR_LAPLACE,
    };
    use kernels_gen::abi::coordinate_stride;
    use runtime::assert_close;
    use runtime::kernels::compile::{Execution, Target};
    use runtime::reference::BoundedValue;

    /// Builds a case in one representation, on the box with 5 cells in each direction.
    fn system(name: &str, components: usize, way: OperatorVariant) -> TimedSystem {
        let target = Target { execution: Execution::Interpreted, ..Target::native() };
        let case = CASES.iter().find(|case| case.name == name).expect("a case");
        let mesh = grid(case, components * 200).expect("a mesh");
        assert_eq!(mesh.n_cells(), 5usize.pow(3));
        TimedSystem::new(case, &mesh, way, &Machine::Processor(target)).expect("a system")
    }

    /// All representations are the same operator, and all passes the same method.
    #[test]
    fn ways_and_passes_agree() {
        const FEW: usize = 8;
        for name in PROBLEMS {
            let components = if name == "BP5" { 1 } else { 3 };
            let mut first: Option<(Vec<f64>, f64)> = None;
            for way in OperatorVariant::ALL {
                let system = system(name, components, way);
                assert_eq!(system.dofs(), components * 6usize.pow(3));
                let residuals = Passes::ALL.map(|passes| {
                    let found = system.iterate(passes, FEW).expect("iterations");
                    assert_eq!(found.count, FEW, "{name}, {way}, {passes}");
                    found.residual
                });
                let (wanted, residual) =
                    first.get_or_insert_with(|| (system.result(), residuals[0]));
                assert!((1e-6..0.9).contains(residual), "{name}: {residual}");
                // Each iteration rounds sums with as many terms as there are degrees of freedom.
                let wanted_residual =
                    BoundedValue::with_scale(*residual, (FEW * wanted.len()) as f64);
                for residual in residuals {
                    assert_close!(residual, wanted_residual, f64::EPSILON, "{name}, {way}");
                }
                for (own, wanted) in system.result().into_iter().zip(&*wanted) {
                    // A row has 81 terms of at most 1.
                    let wanted = BoundedValue::with_scale(*wanted, 81.0);
                    assert_close!(own, wanted, f64::EPSILON, "{name}, {way}");
                }
            }
        }
    }

    /// Kernels, by the cost model, and matrices have the paper's counts, except for known additional data.
    #[test]
    fn what_our_kernels_stream() {
        // The cost model assigns one node to a cell: as for a box without a surface.
        let model = |kind, problem: &Problem| {
            let grid = Grid { side: 1 << 16 };
            Traffic::of(kind, problem, grid, Caching::Perfect).total() / grid.cells() as f64
        };
        for (name, problem) in PROBLEMS.into_iter().zip([LAPLACE, VECTOR_LAPLACE, ELASTICITY]) {
            let free = model(Kind::MatrixFree, &problem);
            let stored = model(Kind::PartialAssembly, &problem);
            let more = |numbers: usize| 8.0 * numbers as f64;
            // Coordinates are padded, and constants belong to the form, not to the cell.
            let padded = free + more(coordinate_stride(3)) - more(3 + problem.constants);
            // 24 coefficients of the cell in place of 3 coordinates of a node.
            let vertices = free + more(24) - more(3 + problem.constants);
            // 1 + 9 numbers of the map at each point, for every form.
            let metric = stored + 8.0 * (more(10) - more(problem.stored));
            // Pulled back to the reference cell, the coefficients of elasticity lack the symmetries of the strains.
            let numbers = if problem.coupled == 1 { 6 } else { 72 };
            let coefficients = stored + 8.0 * (more(numbers) - more(problem.stored));
            let wanted = [padded, vertices, metric, coefficients];
            for (way, wanted) in OperatorVariant::ALL.into_iter().zip(wanted) {
                let system = system(name, problem.components, way);
                let own = system.counted().bytes / 5f64.powi(3);
                // Batch padding adds less than a byte.
                assert!((0.0..1.0).contains(&(own - wanted)), "{name}, {way}: {own} and {wanted}");
            }
            // One row per degree of freedom, shorter on the surface: 3 · 6 − 2 pairs of nodes in each direction.
            let entries =
                system(name, problem.components, OperatorVariant::Assembled).counted().entries;
            let blocks = problem.components * problem.coupled;
            assert_eq!(entries, (3 * 6 - 2usize).pow(3) * blocks, "{name}");
        }
    }
}
