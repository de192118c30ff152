//! Traffic model of low-order operators: values moved by one operator application and by the vector passes of an
//! iteration.
//!
//! Section 4 of R. R. Settgast and others, "Performant low-order matrix-free finite element kernels on GPU
//! architectures" (2023), tables 1 to 4. A box of N hexahedra of degree 1 has n nodes of c components; one application
//! moves the bytes
//!
//! ```text
//! SpMV               (8 + 4) 27 b · c n  +  8 c n  +  16 c n       entries of b components with columns, starts of rows, x and y
//! matrix-free        4 · 8 N  +  8 k N  +  8 · 3 m  +  8 · 3 c m   map, k constants, coordinates, x read and y read and written
//! partial assembly   4 · 8 N  +  8 s · 8 N  +  8 · 3 c m           map, s numbers at each of 8 points, x and y
//!
//! m = n where each node is read once, 8 N where each cell reads its own
//! seconds = bytes / bandwidth,   unknowns a second = c n / seconds
//! ```
//!
//! The material constants are contained in the s values, so that partial assembly reads none separately. The model
//! serves as a reference for our own kernels, which are counted in their text ([`super::count`]).

/// Bytes of a real.
const REAL: f64 = 8.0;
/// Bytes of a node or column index.
const INDEX: f64 = 4.0;
/// Bytes of a row offset.
const START: f64 = 8.0;
/// Corners of a hexahedron, and its quadrature points.
const CORNERS: f64 = 8.0;
/// Space dimension, and coordinates per node.
const DIM: usize = 3;
/// Nodes coupled to a node of a box, including itself.
const NEIGHBOURS: usize = 27;

/// Returns the entries of a symmetric matrix of n rows.
const fn symmetric(n: usize) -> usize {
    n * (n + 1) / 2
}

/// The properties of a form that determine its traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its name.
    pub name: &'static str,
    /// c: components per node.
    pub components: usize,
    /// b: components coupled in a row.
    pub coupled: usize,
    /// k: constants per cell.
    pub constants: usize,
    /// s: stored values per quadrature point.
    pub stored: usize,
}

/// The scalar Laplacian: a symmetric matrix at each point.
pub const LAPLACE: Problem = Problem {
    name: "scalar Laplace",
    components: 1,
    coupled: 1,
    constants: 0,
    stored: symmetric(DIM),
};

/// The uncoupled Laplacian of each component; the tables do not include it.
pub const VECTOR_LAPLACE: Problem = Problem {
    name: "vector Laplace",
    components: DIM,
    coupled: 1,
    constants: 0,
    stored: symmetric(DIM),
};

/// Isotropic elasticity: two constants per cell, or a symmetric matrix of the strains at each point.
pub const ELASTICITY: Problem = Problem {
    name: "elasticity",
    components: DIM,
    coupled: DIM,
    constants: 2,
    stored: symmetric(symmetric(DIM)),
};

impl Problem {
    /// Returns the entries per row, 27 b.
    pub fn row(&self) -> usize {
        NEIGHBOURS * self.coupled
    }
}

/// A cube with this many cells in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Cells in each direction.
    pub side: usize,
}

/// The grid of the tables.
pub const MILLION: Grid = Grid { side: 100 };

impl Grid {
    /// Returns the number of cells, N.
    pub fn cells(self) -> usize {
        self.side.pow(3)
    }

    /// Returns the number of nodes, n.
    pub fn nodes(self) -> usize {
        (self.side + 1).pow(3)
    }

    /// Returns the number of DoFs, c n.
    pub fn unknowns(self, problem: &Problem) -> usize {
        problem.components * self.nodes()
    }
}

/// The operator evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Product with a matrix in compressed sparse rows (CSR).
    Spmv,
    /// Cell by cell from the coordinates of the nodes.
    MatrixFree,
    /// Cell by cell from data stored at the quadrature points.
    PartialAssembly,
}

/// The caching of nodal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Each value is read once.
    Perfect,
    /// Each cell reads the values of its nodes.
    None,
}

/// Bytes of one operator application, by kind of data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Entries of a matrix with their columns.
    pub entries: f64,
    /// Row offsets.
    pub starts: f64,
    /// The nodes of the cells.
    pub map: f64,
    /// Constants of the cells.
    pub constants: f64,
    /// Values at the quadrature points.
    pub points: f64,
    /// Coordinates of the nodes.
    pub coordinates: f64,
    /// x and y.
    pub vectors: f64,
}

impl Traffic {
    /// Returns the traffic of one application. Caching makes no difference for a sparse matrix.
    pub fn of(operator: Operator, problem: &Problem, grid: Grid, caching: Caching) -> Self {
        let (cells, nodes) = (grid.cells() as f64, grid.nodes() as f64);
        let (components, dim) = (problem.components as f64, DIM as f64);
        let unknowns = components * nodes;
        let read = match caching {
            Caching::Perfect => nodes,
            Caching::None => CORNERS * cells,
        };
        // x is read, y read and written.
        let by_cell = Self {
            map: INDEX * CORNERS * cells,
            vectors: 3.0 * REAL * components * read,
            ..Self::default()
        };
        match operator {
            Operator::Spmv => Self {
                entries: (REAL + INDEX) * problem.row() as f64 * unknowns,
                starts: START * unknowns,
                vectors: 2.0 * REAL * unknowns,
                ..Self::default()
            },
            Operator::MatrixFree => Self {
                constants: REAL * problem.constants as f64 * cells,
                coordinates: REAL * dim * read,
                ..by_cell
            },
            Operator::PartialAssembly => {
                Self { points: REAL * problem.stored as f64 * CORNERS * cells, ..by_cell }
            }
        }
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> f64 {
        self.parts().iter().sum()
    }

    /// Returns the parts in the order of the fields.
    pub fn parts(&self) -> [f64; 7] {
        let Self { entries, starts, map, constants, points, coordinates, vectors } = *self;
        [entries, starts, map, constants, points, coordinates, vectors]
    }
}

/// A memory by its published bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// The name of the device.
    pub name: &'static str,
    /// Bytes per second.
    pub bandwidth: f64,
}

/// The memories of the tables: the V100 with 16 GB, the A100 with 80 GB for PCIe, and one of the two dies of an MI250X.
/// The printed times agree with one die only.
pub const MEMORIES: [Memory; 3] = [
    Memory { name: "V100", bandwidth: 900e9 },
    Memory { name: "A100", bandwidth: 1935e9 },
    Memory { name: "MI250X, one die", bandwidth: 3276.8e9 / 2.0 },
];

/// A pass over vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The operation.
    pub formula: &'static str,
    /// Vectors read.
    pub reads: usize,
    /// Vectors written, all of which are also read.
    pub writes: usize,
}

/// The vector passes of a conjugate gradient iteration apart from the operator, fused as in table 4.
pub const PASSES: [Pass; 4] = [
    Pass { formula: "p·q", reads: 2, writes: 0 },
    Pass { formula: "x += a p", reads: 2, writes: 1 },
    Pass { formula: "r -= a q, r·r", reads: 2, writes: 1 },
    Pass { formula: "p = r + b p", reads: 2, writes: 1 },
];

/// The passes of our own solver: both updates in one pass.
pub const OWN_PASSES: [Pass; 3] = [
    Pass { formula: "p·q", reads: 2, writes: 0 },
    Pass { formula: "x += a p, r -= a q, r·r", reads: 4, writes: 2 },
    Pass { formula: "p = r + b p", reads: 2, writes: 1 },
];

impl Pass {
    /// Returns the bytes of the vectors, each counted once, as in table 4.
    pub fn touched(&self, unknowns: usize) -> f64 {
        REAL * (self.reads * unknowns) as f64
    }

    /// Returns the bytes read and written.
    pub fn moved(&self, unknowns: usize) -> f64 {
        REAL * ((self.reads + self.writes) * unknowns) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: [Problem; 2] = [LAPLACE, ELASTICITY];

    fn total(operator: Operator, problem: &Problem, caching: Caching) -> f64 {
        Traffic::of(operator, problem, MILLION, caching).total()
    }

    /// Formats a number with the given significant digits, for comparison.
    fn shown(value: f64, figures: usize) -> String {
        let digits = format!("{value:.*e}", figures - 1);
        digits.parse::<f64>().expect("a number").to_string()
    }

    /// Returns milliseconds and billions of DoFs per second, with the two digits of the tables.
    fn timed(bytes: f64, problem: &Problem, memory: &Memory) -> [String; 2] {
        let seconds = bytes / memory.bandwidth;
        let rate = MILLION.unknowns(problem) as f64 / seconds;
        [shown(seconds * 1e3, 2), shown(rate / 1e9, 2)]
    }

    /// Compares the times and rates of the three memories.
    fn compare(bytes: f64, problem: &Problem, times: [f64; 3], rates: [f64; 3]) {
        for ((memory, time), rate) in MEMORIES.iter().zip(times).zip(rates) {
            let wanted = [time, rate].map(|number| number.to_string());
            assert_eq!(timed(bytes, problem, memory), wanted, "{} {}", problem.name, memory.name);
        }
    }

    fn mega(bytes: f64) -> f64 {
        (bytes / 1e6).round()
    }

    #[test]
    fn table_1() {
        assert_eq!((MILLION.cells(), MILLION.nodes()), (1_000_000, 1_030_301));
        assert_eq!(TABLES.map(|problem| MILLION.unknowns(&problem)), [1_030_301, 3_090_903]);
        let parts = TABLES.map(|p| Traffic::of(Operator::Spmv, &p, MILLION, Caching::Perfect));
        for (problem, parts) in TABLES.iter().zip(&parts) {
            assert_eq!(problem.row(), if problem.components == 1 { 27 } else { 81 });
            assert_eq!(*parts, Traffic::of(Operator::Spmv, problem, MILLION, Caching::None));
        }
        // The elasticity matrix is printed as its 3,004 MB of entries. The Laplace matrix is printed as 343 MB, which
        // is neither its entries (334) nor entries and row offsets (342), but the printed total minus the printed
        // vectors.
        assert_eq!(parts.map(|parts| mega(parts.entries)), [334.0, 3004.0]);
        assert_eq!(parts.map(|parts| mega(parts.vectors)), [16.0, 49.0]);
        // Both totals include 8 bytes per row for the offset: 3,004 + 49 alone is 3,053.
        assert_eq!(parts.map(|parts| mega(parts.total())), [359.0, 3079.0]);
        compare(parts[0].total(), &LAPLACE, [0.40, 0.19, 0.22], [2.6, 5.6, 4.7]);
        compare(parts[1].total(), &ELASTICITY, [3.4, 1.6, 1.9], [0.90, 1.9, 1.6]);
    }

    #[test]
    fn table_2() {
        let of = |problem: Problem, caching| {
            Traffic::of(Operator::MatrixFree, &problem, MILLION, caching)
        };
        for caching in [Caching::Perfect, Caching::None] {
            let parts = TABLES.map(|problem| of(problem, caching));
            assert_eq!(parts.map(|parts| mega(parts.map)), [32.0, 32.0]);
            assert_eq!(parts.map(|parts| mega(parts.constants)), [0.0, 16.0]);
            assert_eq!(parts.map(|parts| parts.points), [0.0, 0.0]);
            let (coordinates, vectors, totals) = match caching {
                Caching::Perfect => (25.0, [25.0, 74.0], [81.0, 147.0]),
                Caching::None => (192.0, [192.0, 576.0], [416.0, 816.0]),
            };
            assert_eq!(parts.map(|parts| mega(parts.coordinates)), [coordinates; 2]);
            assert_eq!(parts.map(|parts| mega(parts.vectors)), vectors);
            assert_eq!(parts.map(|parts| mega(parts.total())), totals);
        }
        // Values for 81.5 MB. The paper prints 0.090, 0.042 and 0.049 ms and 11, 25 and 21, which follow from the
        // rounded total of 81 MB.
        let best = of(LAPLACE, Caching::Perfect).total();
        compare(best, &LAPLACE, [0.091, 0.042, 0.050], [11.0, 24.0, 21.0]);
        compare(81e6, &LAPLACE, [0.090, 0.042, 0.049], [11.0, 25.0, 21.0]);
        // 416 MB take the A100 0.21499 ms, printed as 0.22.
        let worst = of(LAPLACE, Caching::None).total();
        compare(worst, &LAPLACE, [0.46, 0.21, 0.25], [2.2, 4.8, 4.1]);
        let best = of(ELASTICITY, Caching::Perfect).total();
        compare(best, &ELASTICITY, [0.16, 0.076, 0.090], [19.0, 41.0, 34.0]);
        let worst = of(ELASTICITY, Caching::None).total();
        compare(worst, &ELASTICITY, [0.91, 0.42, 0.50], [3.4, 7.3, 6.2]);
    }

    #[test]
    fn table_3() {
        assert_eq!(TABLES.map(|problem| problem.stored), [6, 21]);
        let of = |problem: Problem, caching| {
            Traffic::of(Operator::PartialAssembly, &problem, MILLION, caching)
        };
        for caching in [Caching::Perfect, Caching::None] {
            let parts = TABLES.map(|problem| of(problem, caching));
            assert_eq!(parts.map(|parts| mega(parts.map)), [32.0, 32.0]);
            assert_eq!(parts.map(|parts| mega(parts.points)), [384.0, 1344.0]);
            assert_eq!(parts.map(|parts| parts.coordinates), [0.0, 0.0]);
            let (vectors, totals) = match caching {
                Caching::Perfect => ([25.0, 74.0], [441.0, 1450.0]),
                Caching::None => ([192.0, 576.0], [608.0, 1952.0]),
            };
            assert_eq!(parts.map(|parts| mega(parts.vectors)), vectors);
            // For elasticity the paper prints a row of 16 MB of constants, but omits it in both totals and in all
            // derived values. With it, they would be 1,466 and 1,968.
            assert_eq!(parts.map(|parts| mega(parts.total())), totals);
        }
        let [best, worst] = [Caching::Perfect, Caching::None].map(|c| of(LAPLACE, c).total());
        compare(best, &LAPLACE, [0.49, 0.23, 0.27], [2.1, 4.5, 3.8]);
        compare(worst, &LAPLACE, [0.68, 0.31, 0.37], [1.5, 3.3, 2.8]);
        let [best, worst] = [Caching::Perfect, Caching::None].map(|c| of(ELASTICITY, c).total());
        compare(best, &ELASTICITY, [1.6, 0.75, 0.89], [1.9, 4.1, 3.5]);
        compare(worst, &ELASTICITY, [2.2, 1.0, 1.2], [1.4, 3.1, 2.6]);
    }

    #[test]
    fn table_4() {
        // Printed for each pass, also for the three that write. The x and y of tables 2 and 3, in contrast, count y
        // twice.
        for pass in PASSES {
            let megabytes = TABLES.map(|p| pass.touched(MILLION.unknowns(&p)) / 1e6);
            assert_eq!(megabytes.map(|value| shown(value, 3)), ["16.5", "49.5"], "{pass:?}");
        }
        let moved = PASSES.map(|pass| shown(pass.moved(MILLION.unknowns(&LAPLACE)) / 1e6, 3));
        assert_eq!(moved, ["16.5", "24.7", "24.7", "24.7"]);
        let all = |passes: &[Pass]| passes.iter().map(|pass| pass.moved(1)).sum::<f64>();
        assert_eq!((all(&PASSES), all(&OWN_PASSES)), (88.0, 88.0));
    }

    #[test]
    fn what_the_text_says_of_the_tables() {
        use Caching::{None, Perfect};
        use Operator::{MatrixFree, PartialAssembly, Spmv};
        for problem in &TABLES {
            // The worst matrix-free product precedes the best partial assembly.
            let best = total(PartialAssembly, problem, Perfect);
            assert!(total(MatrixFree, problem, None) < best, "{}", problem.name);
        }
        // The paper claims that it also beats the matrix. This holds for elasticity; for Laplace the matrix moves less
        // (2.6 in table 1 and 2.2 in table 2 agree).
        assert!(total(MatrixFree, &ELASTICITY, None) < total(Spmv, &ELASTICITY, None));
        assert!(total(MatrixFree, &LAPLACE, None) > total(Spmv, &LAPLACE, None));
        // A full order of magnitude better than partial assembly, for elasticity with perfect caching: 9.9.
        let ratio = |caching| {
            total(PartialAssembly, &ELASTICITY, caching) / total(MatrixFree, &ELASTICITY, caching)
        };
        assert_eq!(shown(ratio(Perfect), 2), "9.9");
        // A vector problem moves less per DoF.
        let each = |problem| total(MatrixFree, problem, Perfect) / MILLION.unknowns(problem) as f64;
        assert!(each(&VECTOR_LAPLACE) < each(&ELASTICITY) && each(&ELASTICITY) < each(&LAPLACE));
    }
}
