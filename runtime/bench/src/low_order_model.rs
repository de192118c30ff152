//! The model of low-order operators: what a product with one of them moves, and the vector passes of an iteration, as counts of numbers.
//!
//! Section 4 of R. R. Settgast and others, "Performant low-order matrix-free finite element kernels on GPU architectures"
//! (2023), tables 1 to 4. A box of N hexahedra of degree 1 has n nodes, a node c components; bytes of a product are
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
//! The constants of the material are within the s numbers, so that partial assembly reads none beside them. Our own kernels are
//! counted in their text ([`super::count`]); this model stands beside them.

/// Bytes of a real.
const REAL: f64 = 8.0;
/// Bytes of a node's number, or of a column's.
const INDEX: f64 = 4.0;
/// Bytes of where a row starts.
const START: f64 = 8.0;
/// Corners of a hexahedron, and its points.
const CORNERS: f64 = 8.0;
/// Directions, and so coordinates of a node.
const DIM: usize = 3;
/// Nodes that a node of a box sees, itself among them.
const NEIGHBOURS: usize = 27;

/// Numbers of a symmetric matrix of n rows.
const fn symmetric(n: usize) -> usize {
    n * (n + 1) / 2
}

/// A form, as far as it decides what is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its name.
    pub name: &'static str,
    /// c.
    pub components: usize,
    /// b: components that a row has entries of.
    pub coupled: usize,
    /// k.
    pub constants: usize,
    /// s.
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

/// The Laplacian of each component, none of which sees another; the tables leave it out.
pub const VECTOR_LAPLACE: Problem = Problem {
    name: "vector Laplace",
    components: DIM,
    coupled: 1,
    constants: 0,
    stored: symmetric(DIM),
};

/// Isotropic elasticity: two constants a cell, or a symmetric matrix of the strains at each point.
pub const ELASTICITY: Problem = Problem {
    name: "elasticity",
    components: DIM,
    coupled: DIM,
    constants: 2,
    stored: symmetric(symmetric(DIM)),
};

impl Problem {
    /// Entries of a row, 27 b.
    pub fn row(&self) -> usize {
        NEIGHBOURS * self.coupled
    }
}

/// A box with so many cells in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Cells in each direction.
    pub side: usize,
}

/// The box of the tables.
pub const MILLION: Grid = Grid { side: 100 };

impl Grid {
    /// N.
    pub fn cells(self) -> usize {
        self.side.pow(3)
    }

    /// n.
    pub fn nodes(self) -> usize {
        (self.side + 1).pow(3)
    }

    /// c n.
    pub fn unknowns(self, problem: &Problem) -> usize {
        problem.components * self.nodes()
    }
}

/// How a product is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// With a matrix in compressed rows.
    Spmv,
    /// Cell by cell from the coordinates of the nodes.
    MatrixFree,
    /// Cell by cell from what is stored at the points.
    PartialAssembly,
}

/// How often a number of a node is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Once.
    Perfect,
    /// By each cell that has the node.
    None,
}

/// Bytes of a product, by what they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Entries of a matrix with their columns.
    pub entries: f64,
    /// Where its rows start.
    pub starts: f64,
    /// The nodes of the cells.
    pub map: f64,
    /// Constants of the cells.
    pub constants: f64,
    /// Numbers at the quadrature points.
    pub points: f64,
    /// Coordinates of the nodes.
    pub coordinates: f64,
    /// x and y.
    pub vectors: f64,
}

impl Traffic {
    /// What a product moves. A matrix is of rows, for which there is no difference in caching.
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

    /// All of it.
    pub fn total(&self) -> f64 {
        self.parts().iter().sum()
    }

    /// The parts in the order of the fields.
    pub fn parts(&self) -> [f64; 7] {
        let Self { entries, starts, map, constants, points, coordinates, vectors } = *self;
        [entries, starts, map, constants, points, coordinates, vectors]
    }
}

/// A memory by its published bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Whose.
    pub name: &'static str,
    /// Bytes a second.
    pub bandwidth: f64,
}

/// Those of the tables: the V100 with 16 GB, the A100 with 80 GB for PCIe, and one of the two dies of an MI250X, with which alone the
/// printed times agree.
pub const MEMORIES: [Memory; 3] = [
    Memory { name: "V100", bandwidth: 900e9 },
    Memory { name: "A100", bandwidth: 1935e9 },
    Memory { name: "MI250X, one die", bandwidth: 3276.8e9 / 2.0 },
];

/// A pass over vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// What it does.
    pub formula: &'static str,
    /// Vectors that it reads.
    pub reads: usize,
    /// Vectors that it writes, all of which it reads too.
    pub writes: usize,
}

/// The passes of an iteration of the conjugate gradient method beside the operator, as table 4 fuses them.
pub const PASSES: [Pass; 4] = [
    Pass { formula: "p·q", reads: 2, writes: 0 },
    Pass { formula: "x += a p", reads: 2, writes: 1 },
    Pass { formula: "r -= a q, r·r", reads: 2, writes: 1 },
    Pass { formula: "p = r + b p", reads: 2, writes: 1 },
];

/// The passes of our own solver: both updates in one.
pub const OWN_PASSES: [Pass; 3] = [
    Pass { formula: "p·q", reads: 2, writes: 0 },
    Pass { formula: "x += a p, r -= a q, r·r", reads: 4, writes: 2 },
    Pass { formula: "p = r + b p", reads: 2, writes: 1 },
];

impl Pass {
    /// Bytes of the vectors, each counted once, as table 4 does.
    pub fn touched(&self, unknowns: usize) -> f64 {
        REAL * (self.reads * unknowns) as f64
    }

    /// Bytes that are read and written.
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

    /// A number with so many significant digits, as text that can be compared.
    fn shown(value: f64, figures: usize) -> String {
        let digits = format!("{value:.*e}", figures - 1);
        digits.parse::<f64>().expect("a number").to_string()
    }

    /// Milliseconds and billion unknowns a second, with the two digits that the tables have.
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
        // The matrix of elasticity is printed as its 3,004 MB of entries. That of Laplace is printed as 343 MB, which is neither its
        // entries (334) nor those with the starts of rows (342), but the printed total without the printed vectors.
        assert_eq!(parts.map(|parts| mega(parts.entries)), [334.0, 3004.0]);
        assert_eq!(parts.map(|parts| mega(parts.vectors)), [16.0, 49.0]);
        // Both totals have 8 bytes a row for where it starts: 3,004 + 49 alone were 3,053.
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
        // What follows from 81.5 MB; printed are 0.090, 0.042 and 0.049 ms and 11, 25 and 21, which follow from the 81 MB to which
        // the total is rounded in print.
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
            // A row of 16 MB of constants is printed for elasticity, and left out of both totals and of all that follows from
            // them: with it they were 1,466 and 1,968.
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
        // Printed for each pass, also for the three that write, in contrast to the x and y of tables 2 and 3, which count y twice.
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
            // The worst of matrix-free products is before the best of partial assembly.
            let best = total(PartialAssembly, problem, Perfect);
            assert!(total(MatrixFree, problem, None) < best, "{}", problem.name);
        }
        // It is said to be before the matrix, too. That is so of elasticity; of Laplace the matrix moves less (2.6 of table 1 and 2.2 of
        // table 2 say the same).
        assert!(total(MatrixFree, &ELASTICITY, None) < total(Spmv, &ELASTICITY, None));
        assert!(total(MatrixFree, &LAPLACE, None) > total(Spmv, &LAPLACE, None));
        // A full order of magnitude before partial assembly, for elasticity with perfect caching: 9.9.
        let ratio = |caching| {
            total(PartialAssembly, &ELASTICITY, caching) / total(MatrixFree, &ELASTICITY, caching)
        };
        assert_eq!(shown(ratio(Perfect), 2), "9.9");
        // A vector problem moves less for an unknown.
        let each = |problem| total(MatrixFree, problem, Perfect) / MILLION.unknowns(problem) as f64;
        assert!(each(&VECTOR_LAPLACE) < each(&ELASTICITY) && each(&ELASTICITY) < each(&LAPLACE));
    }
}
