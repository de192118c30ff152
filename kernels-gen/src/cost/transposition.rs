//! The model of thread transposition: shared memory, traffic and arithmetic of a batch.
//!
//! Equations 3 to 9 of M. G. Knepley, K. Rupp, A. R. Terrel, "Finite element integration with quadrature on the GPU"
//! (2016), in which each thread owns one component and geometry is read as J⁻¹ and det J. The model serves as a
//! reference for our own kernels, which are counted in their text ([`super::count`]).

use crate::plan::{Elements, lcm};
use fem_dsl::point::{Part, PointForm};

/// The parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// d: space dimension.
    pub dim: usize,
    /// N_b: basis functions per cell.
    pub nodes: usize,
    /// N_q: quadrature points per cell.
    pub points: usize,
    /// N_comp: components.
    pub components: usize,
    /// N_bl: blocks per batch.
    pub blocks: usize,
    /// Bytes of a real.
    pub real: usize,
    /// True if f0 is present; otherwise no basis values are read and no f0 is kept.
    pub values: bool,
}

impl Model {
    /// Returns the model of a form of one field.
    pub fn new(form: &PointForm, elements: &Elements, blocks: usize, real: usize) -> Self {
        let nodes = elements.fields.iter().map(|element| element.count()).max().unwrap_or(1);
        let outputs = form.integrals.iter().flat_map(|integral| &integral.residual);
        Self {
            dim: form.dim,
            nodes,
            points: elements.rule.count(),
            components: form.fields.iter().map(|field| field.shape.components()).sum(),
            blocks,
            real,
            values: outputs.into_iter().any(|(slot, _)| slot.part == Part::Value),
        }
    }

    /// Returns N_bs: cells per block.
    pub fn block(&self) -> usize {
        lcm(self.nodes, self.points)
    }

    /// Returns N_t: threads per group.
    pub fn threads(&self) -> usize {
        self.block() * self.components * self.blocks
    }

    /// Returns N_bc: cells per batch.
    pub fn batch(&self) -> usize {
        self.block() * self.blocks
    }

    /// Returns N_bt: basis functions of all components.
    fn basis(&self) -> usize {
        self.nodes * self.components
    }

    /// Returns N_sqc: cells of which a thread evaluates one point.
    pub fn serial_points(&self) -> usize {
        self.block() / self.nodes
    }

    /// Returns N_sbc: cells of which a thread integrates one basis function.
    pub fn serial_nodes(&self) -> usize {
        self.block() / self.points
    }

    /// Returns N_tq: threads per cell that own points (section 3).
    pub fn point_threads(&self) -> usize {
        self.points * self.components
    }

    /// Returns N_bt: threads per cell that own basis functions (section 3).
    pub fn node_threads(&self) -> usize {
        self.basis()
    }

    /// Returns N_cbc = N_bl N_q: cells whose results are written at once (section 3.2).
    pub fn written_at_once(&self) -> usize {
        self.blocks * self.points
    }

    /// Returns the resident groups of threads for this many bytes of shared memory (section 3.3).
    pub fn groups(&self, shared: usize) -> usize {
        shared / self.shared_bytes()
    }

    /// Returns the reals of f0 and f1, or of f1 alone.
    fn tested(&self) -> usize {
        self.dim + usize::from(self.values)
    }

    /// Returns the bytes of shared memory per group: equation 3, or with the counts of equation 5 without f0.
    pub fn shared_bytes(&self) -> usize {
        let Self { dim, points, real, .. } = *self;
        let (threads, basis, tested) = (self.threads(), self.basis(), self.tested());
        let geometry = (dim * dim + 1) * threads;
        let tables = tested * basis * points;
        let kept = tested * threads * self.serial_points();
        real * (geometry + tables + threads * basis + kept)
    }

    /// Returns the bytes of shared memory per cell: equations 4 and 5.
    pub fn shared_bytes_per_cell(&self) -> f64 {
        self.shared_bytes() as f64 / self.batch() as f64
    }

    /// Returns the bytes that a batch loads and stores: equation 6.
    pub fn bytes(&self) -> usize {
        let Self { dim, points, real, .. } = *self;
        real * self.threads() * ((dim * dim + 1) + self.basis() + (dim + 1) * points)
    }

    /// Returns the floating-point operations of a batch: equation 7.
    pub fn flops(&self) -> usize {
        let Self { dim, points, components, .. } = *self;
        let basis = self.basis();
        let gradient = (2 + 2 * dim) * dim;
        let evaluate = ((2 + gradient) * basis + 2 * dim * components) * points;
        let integrate = gradient * points * basis;
        (evaluate + integrate) * self.batch()
    }

    /// Returns β, the operations per byte: equation 8.
    pub fn balance(&self) -> f64 {
        self.flops() as f64 / self.bytes() as f64
    }

    /// Returns the rate that the model predicts for a machine, in operations per second.
    pub fn flop_rate(&self, bandwidth: f64, peak: f64) -> f64 {
        (self.balance() * bandwidth).min(peak)
    }

    /// Returns the time per cell that the model predicts, in seconds.
    pub fn seconds_per_cell(&self, bandwidth: f64, peak: f64) -> f64 {
        self.flops() as f64 / self.batch() as f64 / self.flop_rate(bandwidth, peak)
    }
}

#[cfg(test)]
mod tests {
    use super::Model;

    /// Linear elements on triangles with one point, in single precision.
    const POISSON: Model =
        Model { dim: 2, nodes: 3, points: 1, components: 1, blocks: 1, real: 4, values: false };

    #[test]
    fn the_example_of_two_points_and_two_components() {
        // Figure 3.
        let model = Model { points: 2, components: 2, blocks: 2, ..POISSON };
        assert_eq!((model.threads(), model.batch(), model.block()), (24, 12, 6));
        assert_eq!((model.serial_nodes(), model.serial_points()), (3, 2));
        // Figure 1, with six threads on six cells.
        let model = Model { points: 2, ..POISSON };
        assert_eq!((model.threads(), model.serial_points(), model.serial_nodes()), (6, 2, 3));
    }

    #[test]
    fn threads_of_a_cell_in_both_phases() {
        // Figure 3: 4 threads per cell own points, 6 own basis functions, and N_bl N_q = 4 cells are written at once
        // by 24.
        let model = Model { points: 2, components: 2, blocks: 2, ..POISSON };
        assert_eq!((model.point_threads(), model.node_threads()), (4, 6));
        assert_eq!(model.written_at_once(), model.threads() / model.node_threads());
        // Section 2: LCM(N_q, N_b) N_comp threads of one block, min(N_q, N_b) of a cell with one component at worst.
        for (points, threads) in [(1, 3), (3, 3), (4, 12)] {
            let model = Model { points, ..POISSON };
            assert_eq!(model.threads(), threads);
            let least = model.point_threads().min(model.node_threads());
            assert_eq!(least, points.min(POISSON.nodes));
        }
    }

    /// Equations 6 to 8 by hand: operations and bytes per cell for the measured cases of the paper, one point per cell.
    #[test]
    fn the_balance_of_all_that_is_measured() {
        let solid = Model { dim: 3, nodes: 4, ..POISSON };
        for (model, flops, bytes) in [
            // (2 + 24) · 4 + 6 + 24 · 4 and 4 · (10 + 4 + 4).
            (solid, 206, 72),
            // (2 + 12) · 6 + 8 + 12 · 6 and 4 · 2 · (5 + 6 + 3).
            (Model { components: 2, ..POISSON }, 164, 112),
            // (2 + 24) · 12 + 18 + 24 · 12 and 4 · 3 · (10 + 12 + 4).
            (Model { components: 3, ..solid }, 618, 312),
        ] {
            let model = Model { blocks: 8, ..model };
            assert_eq!(
                (model.flops(), model.bytes()),
                (flops * model.batch(), bytes * model.batch())
            );
        }
        // Section 6 states that several components halve the balance, roughly. By its own equation they take a quarter
        // of it in the plane, and less than a third in space.
        let less = |model: Model, components: usize| {
            Model { components, ..model }.balance() / model.balance()
        };
        assert_eq!(format!("{:.2} {:.2}", less(POISSON, 2), less(solid, 3)), "0.79 0.69");
    }

    #[test]
    fn the_balance_of_poisson_on_triangles() {
        // Equation 9: 41/22 operations per byte. Equation 7 with its parentheses counts (2 + 6 · 2) · 3 + 4 + 6 · 2 · 3
        // = 82 operations, equation 6 4 · (5 + 3 + 3) = 44 bytes.
        let per_cell = |all: usize| all / POISSON.batch();
        assert_eq!((per_cell(POISSON.flops()), per_cell(POISSON.bytes())), (82, 44));
        assert!((POISSON.balance() - 41.0 / 22.0).abs() < 1e-15);
        // It does not depend on the number of blocks.
        assert!((Model { blocks: 32, ..POISSON }.balance() - 41.0 / 22.0).abs() < 1e-15);
    }

    #[test]
    fn shared_memory() {
        // Equation 3, term by term, with f0: d = 3, N_b = 4, N_q = 4, N_comp = 3, N_bl = 2.
        let model =
            Model { dim: 3, nodes: 4, points: 4, components: 3, blocks: 2, real: 4, values: true };
        let (threads, basis) = (24, 12);
        let want = 4 * (10 * threads + 4 * basis * 4 + threads * basis + 4 * threads);
        assert_eq!(model.shared_bytes(), want);
        // Equation 4, with LCM(N_b, N_q) = N_b in this case, so that N_sqc is 1 and the bound is not reached.
        let own = 4.0 * 3.0 * (10.0 + 4.0 * 4.0 / (4.0 * 2.0) * 4.0 + 12.0 + 4.0);
        assert!((model.shared_bytes_per_cell() - own).abs() < 1e-12, "{own}");
        let bound = 4.0 * 3.0 * (10.0 + 4.0 * 4.0 / 2.0 + 12.0 + 4.0 * 4.0);
        assert!(model.shared_bytes_per_cell() <= bound);
        // Equation 5 for Poisson, with LCM(N_b, N_q) = N_b N_q, for which it is exact.
        for blocks in [1, 4, 32] {
            let model = Model { blocks, ..POISSON };
            let exact = 4.0 * (5.0 + 2.0 / blocks as f64 + 3.0 + 2.0);
            assert!((model.shared_bytes_per_cell() - exact).abs() < 1e-12);
        }
        // About 5 KB for a batch of 32 blocks of Poisson: the paper rounds up the bytes of 96 cells.
        let bytes = Model { blocks: 32, ..POISSON }.shared_bytes();
        assert!((3 << 10..5 << 10).contains(&bytes), "{bytes}");
        // A multiprocessor with 48 KB holds 9 groups of 5 KB, as in section 3.3; with the bytes of equation 5 it
        // holds 12.
        let model = Model { blocks: 32, ..POISSON };
        assert_eq!(((48 << 10) / (5 << 10), model.groups(48 << 10), bytes), (9, 12, 3864));
    }

    #[test]
    fn doubles_halve_the_balance() {
        let double = Model { real: 8, ..POISSON };
        assert!((POISSON.balance() / double.balance() - 2.0).abs() < 1e-15);
        // Bound by memory: 150 GB/s are 2 · 150 Gflop/s.
        let rate = POISSON.flop_rate(150e9, 1581e9);
        assert!((rate - 41.0 / 22.0 * 150e9).abs() < 1.0);
        let seconds = POISSON.seconds_per_cell(150e9, 1581e9);
        assert!((seconds - 44.0 / 150e9).abs() < 1e-20);
        assert!((POISSON.flop_rate(1e15, 1581e9) - 1581e9).abs() < 1.0);
    }
}
