//! Measured thresholds, one value per family of devices. For another GPU, measure again and add one more [`Gpu`].
//!
//! A threshold is a table of [`SizeRule`]s, of which the first that applies decides. Figures without a unit are billions
//! of unknowns a second at 10 million unknowns in double precision; they were measured with `wf bench`, and are
//! repeated in `docs/benchmarks.md` where they decide something else, too.

use crate::cost::Machine;
use crate::element::{Cell, LinePoints};
use crate::lower::facts::KernelFacts;
use crate::plan::{Elements, is_flat};
use fem_dsl::point::PointForm;

/// The input of the thresholds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    cell: Cell,
    /// The largest degree among the fields.
    degree: usize,
    /// Quadrature points, and those of a line; 0 without lines.
    points: usize,
    pub(super) line: usize,
    /// Components of all fields.
    components: usize,
    /// True if no gradient is read or tested, as in a mass matrix.
    flat: bool,
    /// True if the nodes of some field are the quadrature points.
    collocated: bool,
    /// True if all integrals are linear.
    linear: bool,
    /// True if functions of some field are vectors.
    vector_valued: bool,
}

impl Sizes {
    pub(super) fn new(form: &PointForm, elements: &Elements) -> Self {
        Self {
            cell: elements.cell,
            degree: elements.largest(),
            points: elements.rule.count(),
            line: elements.rule.line().map_or(0, LinePoints::count),
            components: form.rows(),
            flat: is_flat(form),
            collocated: elements.fields.iter().any(|&element| elements.collocated(element)),
            linear: form.integrals.iter().all(|integral| integral.linear),
            vector_valued: elements.are_vector_valued(),
        }
    }

    /// Returns the sizes of an integral that reads or tests gradients, or does not.
    pub(super) fn with_gradients(self, any: bool) -> Self {
        Self { flat: !any, ..self }
    }
}

/// The condition of a table row; an absent condition always applies.
#[derive(Clone, Copy)]
struct SizeRule {
    cells: &'static [Cell],
    degree: SizeRange,
    points: SizeRange,
    line: SizeRange,
    components: SizeRange,
    /// Points times components: the values that a thread with a whole cell applies.
    values: SizeRange,
    flat: Option<bool>,
    collocated: Option<bool>,
    linear: Option<bool>,
    vector_valued: Option<bool>,
}

/// A range, both ends included.
type SizeRange = (usize, usize);

const ALL: SizeRange = from(0);

/// Returns the range from a number upwards.
const fn from(least: usize) -> SizeRange {
    (least, usize::MAX)
}

const HEXAHEDRA: &[Cell] = &[Cell::Hexahedron];
const QUADRILATERALS: &[Cell] = &[Cell::Quadrilateral];
const TRIANGLES: &[Cell] = &[Cell::Triangle];
const PLANE: &[Cell] = &[Cell::Triangle, Cell::Quadrilateral];
const TETRAHEDRA: &[Cell] = &[Cell::Tetrahedron];

const ANY: SizeRule = SizeRule {
    cells: &[],
    degree: ALL,
    points: ALL,
    line: ALL,
    components: ALL,
    values: ALL,
    flat: None,
    collocated: None,
    linear: None,
    vector_valued: None,
};

const HEX: SizeRule = SizeRule { cells: HEXAHEDRA, ..ANY };
const QUAD: SizeRule = SizeRule { cells: QUADRILATERALS, ..ANY };
const TETRAHEDRON: SizeRule = SizeRule { cells: TETRAHEDRA, ..ANY };
/// Three components and more on hexahedra.
const HEX_3: SizeRule = SizeRule { components: from(3), ..HEX };
/// Functions of H(curl) on hexahedra: those of H(div) have one derivative and count as values.
const HEX_CURL: SizeRule = SizeRule { vector_valued: Some(true), ..HEX_3 };
const HEX_DEGREE_1: SizeRule = SizeRule { degree: (1, 1), ..HEX };
/// Three components of gradients on eight points.
const BUSY: SizeRule =
    SizeRule { components: (3, 3), points: (0, 8), flat: Some(false), ..HEX_DEGREE_1 };

impl SizeRule {
    fn applies(&self, sizes: &Sizes) -> bool {
        let within = |span: SizeRange, number: usize| span.0 <= number && number <= span.1;
        let is = |wanted: Option<bool>, one: bool| wanted.is_none_or(|wanted| wanted == one);
        (self.cells.is_empty() || self.cells.contains(&sizes.cell))
            && within(self.degree, sizes.degree)
            && within(self.points, sizes.points)
            && within(self.line, sizes.line)
            && within(self.components, sizes.components)
            && within(self.values, sizes.points * sizes.components)
            && is(self.flat, sizes.flat)
            && is(self.collocated, sizes.collocated)
            && is(self.linear, sizes.linear)
            && is(self.vector_valued, sizes.vector_valued)
    }
}

/// Rules with their values, and the value if no rule matches.
pub(super) struct RuleTable<T: 'static>(&'static [(SizeRule, T)], T);

impl<T: Copy> RuleTable<T> {
    pub(super) fn at(&self, sizes: &Sizes) -> T {
        let found = self.0.iter().find(|(rule, _)| rule.applies(sizes));
        found.map_or(self.1, |&(_, value)| value)
    }
}

/// A family of CPUs.
pub(super) struct Processor {
    pub(super) machine: Machine,
    /// The least degree at which DoFs in runs are read as runs.
    pub(super) runs: usize,
    /// Batches that are gathered, then computed, then scattered together.
    pub(super) block: RuleTable<usize>,
    /// The trip count up to which loops are unrolled.
    pub(super) unroll: usize,
}

/// A server core of 2023 with 512-bit vectors.
pub(super) const ZEN4: Processor = Processor {
    machine: Machine::SERVER_CORE,
    runs: 3,
    // Vectors on elements of degree 1 gain a fifth; everything else loses, because a block of batches takes more of the
    // first-level cache.
    block: RuleTable(&[(SizeRule { degree: (0, 1), components: from(2), ..ANY }, 4)], 1),
    unroll: 8,
};

/// A family of GPUs.
pub(super) struct Gpu {
    pub(super) machine: Machine,
    /// Threads per group, for a cell per thread.
    pub(super) threads: usize,
    /// Resident groups per multiprocessor, for a cell per thread.
    pub(super) residency: RuleTable<usize>,
    /// True if the assembler keeps the order of the source.
    pub(super) in_order: RuleTable<bool>,
    /// True if both ends of an edge are added at once.
    pub(super) edges: RuleTable<bool>,
    /// The largest trip count of loops that are unrolled in the text, for a cell per thread.
    pub(super) unroll: usize,
    /// True if the action of a matrix without gradients reads one value at each point instead of the map of the cell.
    pub(super) reads_points: RuleTable<bool>,
    /// True if the cells of a batch sum first, for continuous fields.
    pub(super) sums_first: RuleTable<bool>,
    /// Threads per group whose cells sum first, if it fits; and the least number below which nothing is summed first.
    pub(super) summing: RuleTable<usize>,
    pub(super) fewest_summing: usize,
    /// True if threads first own points, then basis functions.
    pub(super) transposes: RuleTable<bool>,
    /// N_cb: batches that such a group processes one after another.
    pub(super) batches: usize,
    /// The least number of cells per batch for which summing first pays.
    pub(super) cells_summing: usize,
    pub(super) lines: LineThresholds,
    pub(super) pairs: PairThresholds,
}

/// Thresholds for pairs of cells, with a thread for each point of the facet.
pub(super) struct PairThresholds {
    /// True if a pair occupies many threads: by the points of a line, components, and whether gradients are read or
    /// tested.
    pub(super) pay: RuleTable<bool>,
    /// The most threads per group.
    pub(super) threads: usize,
    /// Registers that a thread needs.
    pub(super) registers: usize,
}

impl PairThresholds {
    /// Returns the number of pairs per group that fills its warps best, each with `members` threads.
    pub(super) fn cells(&self, members: usize) -> usize {
        let filled = |cells: &usize| {
            let threads = cells * members;
            (100 * threads / threads.next_multiple_of(32), std::cmp::Reverse(*cells))
        };
        (1..=(self.threads / members).max(1)).max_by_key(filled).unwrap_or(1)
    }
}

/// Registers per point of its column that a thread with a line needs for each component beyond the first.
#[derive(Clone, Copy)]
pub(super) enum ExtraRegisters {
    /// Two for each, if many threads are better than many registers.
    Two,
    /// Four for each with gradients, and one for each with values only.
    Four,
    /// All available registers.
    All,
}

/// Thresholds for threads with a line of a tensor cell each.
pub(super) struct LineThresholds {
    /// True if a cell exceeds the registers of one thread and occupies many.
    pub(super) pay: RuleTable<bool>,
    /// Cells per group; on quadrilaterals, threads per group.
    pub(super) cells: RuleTable<usize>,
    pub(super) threads: usize,
    /// The least number of points per direction for which the even-odd decomposition pays.
    pub(super) even_odd: usize,
    /// Registers that a thread needs with one component.
    registers: RuleTable<usize>,
    /// Additional registers for further components.
    further: RuleTable<ExtraRegisters>,
    /// Register limits: `most` where many threads hide each other's latency, and `diagonal` for a diagonal, whose
    /// coefficients stay in registers.
    pub(super) most: RuleTable<usize>,
    pub(super) diagonal: usize,
    /// True if the assembler keeps the order of the source; `components` counts those with gradients.
    in_order: RuleTable<bool>,
    /// True if derivatives in x overwrite values; `components` as above.
    in_place: RuleTable<bool>,
    /// True if results at nodes inside of cells are stored instead of added.
    pub(super) stores_inside: RuleTable<bool>,
    /// Nodes per line above which interior values are recomputed when they are needed.
    pub(super) recomputed: RuleTable<usize>,
}

/// An H200.
pub(super) const HOPPER: Gpu = Gpu {
    machine: Machine::H200,
    threads: 128,
    // The registers of a cell of degree 1 allow four groups with one component on few points. They allow three where
    // all points of a hexahedron only need values, and two otherwise. A mass matrix on 27 points reaches 12.8 with
    // three, 10 with two; with three components 26.9, with two groups 23.0.
    residency: RuleTable(
        &[
            (SizeRule { degree: (1, 1), components: (0, 1), points: (0, 8), ..ANY }, 4),
            (
                SizeRule { components: (0, 3), points: (27, 27), flat: Some(true), ..HEX_DEGREE_1 },
                3,
            ),
            (BUSY, 3),
            (SizeRule { degree: (1, 1), ..ANY }, 2),
        ],
        1,
    ),
    // These certainly exceed a thread's registers: three Laplacians of degree 1 on 27 points go from 4.2 to 6.1. With
    // fewer points it depends on the form, and spills are examined at compile time.
    in_order: RuleTable(
        &[(
            SizeRule { points: from(9), components: from(3), flat: Some(false), ..HEX_DEGREE_1 },
            true,
        )],
        false,
    ),
    // With three groups elasticity reaches 23.3, node by node 22.1, and 22.4 with two groups. With one component
    // shuffles cost more than the additions they save.
    edges: RuleTable(&[(BUSY, true)], false),
    // Loops over private arrays unrolled by the compiler run as fast as those unrolled in the text; degree 1 of BP4 is
    // 2 % faster.
    unroll: 8,
    // At degrees 2 and 3, where a thread has few points per DoF. A mass matrix of one component at degrees 1 to 4:
    // 12.9, 26.9, 40.5 and 47.1 with, 15.4, 23.2, 36.7 and 47.1 without; of three 19.9, 33.2, 49.3 and 55.6 with, 22.7,
    // 31.1, 49.8 and 58.0 without.
    reads_points: RuleTable(
        &[
            (SizeRule { degree: (2, 3), components: (1, 1), flat: Some(true), ..HEX }, true),
            (SizeRule { degree: (2, 2), flat: Some(true), ..HEX }, true),
        ],
        false,
    ),
    // On triangles and tetrahedra, many of which share a node. With and without, Laplacians and elasticity: on
    // triangles of degrees 1 to 3 37, 49 and 57 against 28, 27 and 31, and 49, 56 and 61 against 30, 29 and 32. Of
    // degree 4 38 against 33. On tetrahedra of degrees 1 to 3 9.1, 21.6 and 12.6 against 5.1, 10.2 and 11.5, and 13.9,
    // 25.2 and 5.0 against 6.0, 11.1 and 5.1. A hexahedron of degree 1 finds most of its neighbours' nodes in the
    // first-level cache, and adds along edges: 21.9 against 23.6 with three components, 12.5 against 18.2 with one.
    sums_first: RuleTable(
        &[
            (SizeRule { cells: TRIANGLES, ..ANY }, true),
            (SizeRule { degree: (0, 2), ..TETRAHEDRON }, true),
            (SizeRule { degree: (3, 3), components: (1, 1), ..TETRAHEDRON }, true),
        ],
        false,
    ),
    // Triangles of degree 1 with 256 and 128 threads per group: 37.3 and 32.2; of degree 2 with 256, 128 and 64 44.0,
    // 51.7 and 48.8; tetrahedra of degrees 1 and 2 with 128 and 64 9.0, 20.2 and 6.5, 21.6.
    summing: RuleTable(
        &[
            (SizeRule { cells: PLANE, degree: (1, 1), ..ANY }, 256),
            (SizeRule { cells: PLANE, ..ANY }, 128),
            (SizeRule { degree: (1, 1), ..ANY }, 128),
        ],
        64,
    ),
    fewest_summing: 32,
    // By threads with a cell each and by transposition: the Laplacian on tetrahedra of degrees 2 to 4 9.5, 7.9 and 1.4
    // against 5.7, 2.2 and 1.8. Of three components 9.7, 1.7 and 0.6 against 3.1, 1.7 and 1.2. Stokes of degrees 2 and
    // 3 9.1 and 1.9 against 2.8 and 1.6. On triangles of degrees 2 to 4 26 to 31 against 10 to 24.
    transposes: RuleTable(&[(SizeRule { degree: from(4), ..TETRAHEDRON }, true)], false),
    // The number matters little (Knepley, Rupp and Terrel, table 2); with one, the most groups hide each other's
    // latency.
    batches: 1,
    // Several per thread if necessary. Poisson on triangles with 96 threads: 30.7 with 192 cells, 24.2 with 96; on
    // tetrahedra with 64 threads 6.6 with 128 cells, 5.2 with 64.
    cells_summing: 128,
    // Action of interior penalty and of advection, residual of the Euler equations, by points and by a thread per pair:
    // of degree 1 8.0, 13 and 18 against 11, 19 and 26; of degree 2 13, 20 and 23 against 8.4, 20 and 14; of degree 3
    // 21, 26 and 30 against 4.7, 12 and 9.3. Interior penalty of degree 3 in the plane 16 against 21.
    pairs: PairThresholds {
        pay: RuleTable(
            &[
                (SizeRule { line: (0, 2), ..ANY }, false),
                (QUAD, false),
                (SizeRule { line: (3, 3), components: (0, 1), flat: Some(true), ..ANY }, false),
            ],
            true,
        ),
        threads: 128,
        registers: 96,
    },
    lines: LineThresholds {
        // Two nodes per direction fill too few lines; with three, registers hold two components of a hexahedron. By
        // lines and by a thread per cell: two fields, three, and Stokes on 27 points 17, 18 and 25 against 18, 12
        // and 12. One field and two on 64 points 39 and 27 against 37 and 6. On quadrilaterals one thread is better for
        // linear forms as long as its loops are unrolled. Stokes of degrees 2 to 4 64, 72 and 68 against 47, 53 and 56,
        // vectors of degrees 2 and 3 67 and 75 against 57 and 67. It is not for a neo-Hookean solid: of degrees 3 and 4
        // 40 and 34 against 48 and 42.
        pay: RuleTable(
            &[
                (SizeRule { degree: (0, 1), ..ANY }, false),
                (SizeRule { values: (0, UNROLLED_VALUES), linear: Some(true), ..QUAD }, false),
                (SizeRule { line: from(3), ..QUAD }, true),
                (SizeRule { line: (0, 3), components: (0, 2), ..HEX }, false),
                (SizeRule { line: from(3), ..HEX }, true),
            ],
            false,
        ),
        // Groups of 64 to 130 threads, or 245; roughly as many as fill their warps. Curl·curl and mass of degrees 6 and 7
        // with one cell 34.8 and 38.9, with more 33.1 and 35.3.
        cells: RuleTable(
            &[
                (SizeRule { line: (7, 8), ..HEX_CURL }, 1),
                (SizeRule { line: (0, 3), collocated: Some(true), ..ANY }, 8),
                (SizeRule { line: (0, 3), ..ANY }, 14),
                (SizeRule { line: (4, 4), flat: Some(true), ..ANY }, 6),
                (SizeRule { line: (4, 4), ..ANY }, 4),
                (SizeRule { line: (5, 5), ..ANY }, 5),
                (SizeRule { line: (7, 7), collocated: Some(false), ..ANY }, 5),
                (SizeRule { line: (6, 7), ..ANY }, 3),
            ],
            1,
        ),
        threads: 128,
        even_odd: 5,
        // About 64 registers without gradients, 80 up to 6 points per direction, more above. In addition, 2 for each
        // point of its column and each further component, of the fields or of a curved map.
        registers: RuleTable(
            &[
                (SizeRule { flat: Some(true), line: (4, 4), ..ANY }, 56),
                (SizeRule { flat: Some(true), ..ANY }, 64),
                (SizeRule { line: (9, 9), collocated: Some(false), ..ANY }, 88),
                (SizeRule { line: (7, 7), collocated: Some(true), ..ANY }, 96),
                (SizeRule { line: from(8), ..ANY }, 96),
            ],
            80,
        ),
        // For three components and more with gradients, few threads with many registers are better than many with few.
        // Then 4 registers are counted, 1 for additional values without gradients, and on 8 points all available. Three
        // Laplacians on 4 points 45.0 with 128 registers and 37.2 with 96, on 7 points 50.8 with 168 and 45.0 with 128.
        // Elasticity on 7 points 41.0 and 36.9; on 8 points, where a cell is two whole warps, 45.4 with 255, 37.0 with
        // 168 and 38.5 with 128.
        // Curl·curl and mass of degrees 5 to 7 with 168 registers 35.5, 34.8 and 38.8, with 128 and 146, or 255, 34.3, 33.0
        // and 35.3.
        further: RuleTable(
            &[
                (SizeRule { line: (6, 8), ..HEX_CURL }, ExtraRegisters::All),
                (SizeRule { line: (8, 8), ..HEX_3 }, ExtraRegisters::All),
                (SizeRule { line: (0, 3), collocated: Some(true), ..HEX_3 }, ExtraRegisters::Two),
                (HEX_3, ExtraRegisters::Four),
            ],
            ExtraRegisters::Two,
        ),
        most: RuleTable(&[(HEX_CURL, 168), (SizeRule { line: (8, 8), ..ANY }, ALL_REGISTERS)], 168),
        diagonal: 168,
        // For kernels with so many live values that another order only spills them. In order and otherwise: BP3 on 7
        // points 27.8 and 26.4; three Laplacians on 9 points 31.1 and 29.3, on 10 32.1 and 30.7, elasticity on 9 37.8
        // and 35.7. On up to 6 points, and on 8, where threads have 255 registers, order costs three components 4 to 9
        // %. Curl·curl and mass of degrees 6 and 8 28.2 and 28.6 in order, 33.0 and 32.9 otherwise.
        in_order: RuleTable(
            &[
                (HEX_CURL, false),
                (SizeRule { collocated: Some(true), ..ANY }, false),
                (SizeRule { line: (7, 7), components: from(1), ..HEX }, true),
                (SizeRule { line: from(9), ..HEX_3 }, true),
            ],
            false,
        ),
        // A third less shared memory allows more groups of threads per multiprocessor. With and without: three
        // Laplacians of degrees 3 and 4 23.6 and 24.8 against 20.6 and 23.5, BP6 of degrees 5 and 8 53.0 and 56.2
        // against 50.9 and 43.0, elasticity of degrees 4, 5, 6 and 8 42.9, 42.4, 41.4 and 42.1 against 38.8, 39.7, 39.9
        // and 38.8. On 4 and 8 points it loses 12 to 43 %; with one component it gains nothing. Curl·curl and mass of
        // degrees 5, 6 and 8 27.6, 30.4 and 27.7 against 34.1, 33.0 and 32.9 without, of degree 4 33.3 against 32.1.
        in_place: RuleTable(
            &[
                (SizeRule { line: from(6), ..HEX_CURL }, false),
                (SizeRule { line: (5, 7), ..HEX_3 }, true),
                (SizeRule { line: (9, 9), ..HEX_3 }, true),
            ],
            false,
        ),
        // With and without: mass matrices of degrees 3, 6 and 8 41.6, 73.4 and 78.3 against 40.6, 68.5 and 70.5.
        // Laplacians on Gauss-Lobatto points of degrees 5 and 7 49.4 and 65.1 against 48.4 and 60.7, but of degree 3
        // 39.3 against 39.6. On Gauss points of degrees 2 and 3 12.5 and 18.9 against 12.6 and 19.1.
        stores_inside: RuleTable(
            &[
                (SizeRule { degree: from(4), ..ANY }, true),
                (SizeRule { components: from(2), ..ANY }, true),
                (SizeRule { flat: Some(true), ..ANY }, true),
            ],
            false,
        ),
        // Laplacians on Gauss-Lobatto points of degrees 5 and 8, and of three components of degrees 3, 6 and 8:
        // recomputed, 47.7, 55.7, 46.8, 55.2 and 65.3; otherwise 49.4, 54.3, 46.9, 52.8 and 62.0.
        recomputed: RuleTable(&[(SizeRule { components: from(2), ..ANY }, 6)], 7),
    },
};

/// Values per thread, points times components, up to which its loops over a cell are unrolled.
const UNROLLED_VALUES: usize = 128;

/// The register limit per thread.
const ALL_REGISTERS: usize = 255;

/// The input of the thresholds for lines: sizes whose components are those with gradients.
pub(super) struct LineSizes {
    sizes: Sizes,
    /// Components of the fields without gradients.
    values: usize,
    /// Components of a curved map.
    map: usize,
}

impl LineSizes {
    pub(super) fn new(sizes: &Sizes, facts: &KernelFacts<'_>) -> Self {
        let fields = 0..facts.form.fields.len();
        // A component of H(div) has one derivative. With as many groups as for values alone, div·div and mass of degrees 2,
        // 3 and 4 at ten million unknowns reach 33.8, 42.8 and 44.2 GDoF/s on an H200, with fewer 30.6, 36.4 and 39.2.
        let is_flat = |&field: &usize| {
            let element = facts.elements.fields[field];
            let derived = (0..facts.form.dim).filter(|&axis| element.is_differentiated(0, axis));
            facts.is_flat_field(field) || derived.count() < 2
        };
        let (flat, sloped): (Vec<usize>, Vec<usize>) = fields.partition(is_flat);
        let sum = |of: Vec<usize>| of.into_iter().map(|field| facts.components(field)).sum();
        Self {
            sizes: Sizes { components: sum(sloped), flat: facts.is_flat(), ..*sizes },
            values: sum(flat),
            map: if facts.is_curved() { facts.form.dim } else { 0 },
        }
    }
}

impl LineThresholds {
    /// Returns the registers that a thread needs.
    pub(super) fn registers(&self, of: &LineSizes) -> usize {
        let LineSizes { sizes, values, map } = of;
        let (q, sloped) = (sizes.line, sizes.components);
        let further = match self.further.at(sizes) {
            ExtraRegisters::Two => 2 * q * (sloped + values - 1),
            ExtraRegisters::Four => 4 * q * (sloped - 1) + q * values,
            ExtraRegisters::All => ALL_REGISTERS,
        };
        (self.registers.at(sizes) + further + 2 * q * map).min(self.most.at(sizes))
    }

    /// Returns whether the assembler keeps the order of the source, and whether derivatives in x overwrite values.
    pub(super) fn in_order_in_place(&self, of: &LineSizes) -> (bool, bool) {
        (self.in_order.at(&of.sizes), self.in_place.at(&of.sizes))
    }
}
