//! Measured thresholds, one value a family of devices: for another GPU, measure again and write one more [`Gpu`].
//!
//! A threshold is a table of [`Rule`]s, of which the first that holds decides. Figures without a unit are billions of
//! unknowns a second at 10 million unknowns in double precision; they were measured with `wf bench`, and are repeated in
//! `docs/benchmarks.md` where they decide something else, too.

use crate::cost::Machine;
use crate::element::{Cell, LinePoints};
use crate::lower::facts::Facts;
use crate::plan::{Elements, is_flat};
use fem_dsl::point::PointForm;

/// What thresholds are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    cell: Cell,
    /// The largest degree among the fields.
    degree: usize,
    /// Quadrature points, and of a line of them; 0 where there are no lines.
    points: usize,
    pub(super) line: usize,
    /// Components of all fields.
    components: usize,
    /// Whether no gradient is read or tested, as in a mass matrix.
    flat: bool,
    /// Whether the nodes of some field are the points.
    collocated: bool,
    /// Whether all integrals are linear.
    linear: bool,
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
        }
    }
}

/// When a row of a table holds; what is not said holds always.
#[derive(Clone, Copy)]
struct Rule {
    cells: &'static [Cell],
    degree: Span,
    points: Span,
    line: Span,
    components: Span,
    /// Points times components: numbers that a thread holds which does a whole cell.
    held: Span,
    flat: Option<bool>,
    collocated: Option<bool>,
    linear: Option<bool>,
}

/// From the first to the second, both included.
type Span = (usize, usize);

const ALL: Span = from(0);

/// From a number on.
const fn from(least: usize) -> Span {
    (least, usize::MAX)
}

const HEXAHEDRA: &[Cell] = &[Cell::Hexahedron];
const QUADRILATERALS: &[Cell] = &[Cell::Quadrilateral];
const TRIANGLES: &[Cell] = &[Cell::Triangle];
const PLANE: &[Cell] = &[Cell::Triangle, Cell::Quadrilateral];
const TETRAHEDRA: &[Cell] = &[Cell::Tetrahedron];

const ANY: Rule = Rule {
    cells: &[],
    degree: ALL,
    points: ALL,
    line: ALL,
    components: ALL,
    held: ALL,
    flat: None,
    collocated: None,
    linear: None,
};

const HEX: Rule = Rule { cells: HEXAHEDRA, ..ANY };
const QUAD: Rule = Rule { cells: QUADRILATERALS, ..ANY };
const TETRAHEDRON: Rule = Rule { cells: TETRAHEDRA, ..ANY };
/// Three components and more on hexahedra.
const HEX_3: Rule = Rule { components: from(3), ..HEX };
const HEX_DEGREE_1: Rule = Rule { degree: (1, 1), ..HEX };
/// Three components of gradients on eight points.
const BUSY: Rule = Rule { components: (3, 3), points: (0, 8), flat: Some(false), ..HEX_DEGREE_1 };

impl Rule {
    fn holds(&self, sizes: &Sizes) -> bool {
        let within = |span: Span, number: usize| span.0 <= number && number <= span.1;
        let is = |wanted: Option<bool>, one: bool| wanted.is_none_or(|wanted| wanted == one);
        (self.cells.is_empty() || self.cells.contains(&sizes.cell))
            && within(self.degree, sizes.degree)
            && within(self.points, sizes.points)
            && within(self.line, sizes.line)
            && within(self.components, sizes.components)
            && within(self.held, sizes.points * sizes.components)
            && is(self.flat, sizes.flat)
            && is(self.collocated, sizes.collocated)
            && is(self.linear, sizes.linear)
    }
}

/// What the first rule that holds says, or what is said last.
pub(super) struct Table<T: 'static>(&'static [(Rule, T)], T);

impl<T: Copy> Table<T> {
    pub(super) fn at(&self, sizes: &Sizes) -> T {
        let found = self.0.iter().find(|(rule, _)| rule.holds(sizes));
        found.map_or(self.1, |&(_, value)| value)
    }
}

/// A family of processors.
pub(super) struct Processor {
    pub(super) machine: Machine,
    /// The least degree from which on unknowns that come in runs are read in runs.
    pub(super) runs: usize,
    /// Batches that are gathered, then computed, then scattered together.
    pub(super) block: Table<usize>,
    /// Loops over at most this many entries are written out.
    pub(super) unroll: usize,
}

/// A server core of 2023 with 512-bit vectors.
pub(super) const ZEN4: Processor = Processor {
    machine: Machine::SERVER_CORE,
    runs: 3,
    // Vectors on elements of degree 1 gain a fifth, everything else loses, for a block of batches takes more of the first
    // cache.
    block: Table(&[(Rule { degree: (0, 1), components: from(2), ..ANY }, 4)], 1),
    unroll: 8,
};

/// A family of GPUs.
pub(super) struct Gpu {
    pub(super) machine: Machine,
    /// Threads of a group where each does a cell.
    pub(super) threads: usize,
    /// Groups of such threads that a multiprocessor is to hold.
    pub(super) residency: Table<usize>,
    /// Whether their assembler is to keep to the order of the text.
    pub(super) in_order: Table<bool>,
    /// Whether they add to both ends of an edge at once.
    pub(super) edges: Table<bool>,
    /// Up to how many entries loops are written out in the text where a thread does a cell.
    pub(super) unroll: usize,
    /// Whether the action of a matrix without gradients reads one number from each point, not the map of the cell.
    pub(super) reads_points: Table<bool>,
    /// Whether the cells of a batch sum first, where a field is continuous.
    pub(super) sums_first: Table<bool>,
    /// Threads of a group whose cells sum first, if there is room; and below how many nothing is summed first.
    pub(super) summing: Table<usize>,
    pub(super) fewest_summing: usize,
    /// Whether threads first own points, then basis functions.
    pub(super) transposes: Table<bool>,
    /// N_cb: batches that such a group does one after another.
    pub(super) batches: usize,
    /// Cells of such a batch from which on they do well to sum first.
    pub(super) cells_summing: usize,
    pub(super) lines: Lines,
}

/// Registers that a thread with a line needs for components beyond the first, a point of its column.
#[derive(Clone, Copy)]
pub(super) enum Further {
    /// Two for each, where many threads do better than many registers.
    Two,
    /// Four for each with gradients, and one for each that is values alone.
    Four,
    /// All that there are.
    All,
}

/// Threads with a line of a tensor cell each.
pub(super) struct Lines {
    /// Whether a cell is too much for the registers of one thread, and enough for many.
    pub(super) pay: Table<bool>,
    /// Cells of a group; on quadrilaterals, threads of a group.
    pub(super) cells: Table<usize>,
    pub(super) threads: usize,
    /// The least number of points a direction from which on the even-odd decomposition pays.
    pub(super) even_odd: usize,
    /// Registers that a thread needs with one component.
    registers: Table<usize>,
    /// How many more it needs with further ones.
    further: Table<Further>,
    /// How many do where many threads hide each other's waiting, and for a diagonal, whose coefficients wait in registers.
    pub(super) most: Table<usize>,
    pub(super) diagonal: usize,
    /// Whether the assembler is to keep to the order of the text, where `components` are those with gradients.
    in_order: Table<bool>,
    /// Whether derivatives in x take the place of values, in the same way.
    in_place: Table<bool>,
    /// Whether nodes inside of cells are stored, not added to.
    pub(super) stores_inside: Table<bool>,
    /// Nodes of a line beyond which what lies inside is computed when it is needed.
    pub(super) recomputed: Table<usize>,
}

/// An H200.
pub(super) const HOPPER: Gpu = Gpu {
    machine: Machine::H200,
    threads: 128,
    // What a cell of degree 1 needs in registers leaves room for four groups with one component on few points, for three
    // where all points of a hexahedron only take values, and for two else. With three, a mass matrix on 27 points does
    // 12.8, with two 10; of three components 26.9, with two 23.0.
    residency: Table(
        &[
            (Rule { degree: (1, 1), components: (0, 1), points: (0, 8), ..ANY }, 4),
            (Rule { components: (0, 3), points: (27, 27), flat: Some(true), ..HEX_DEGREE_1 }, 3),
            (BUSY, 3),
            (Rule { degree: (1, 1), ..ANY }, 2),
        ],
        1,
    ),
    // A thread certainly holds too much: three Laplacians of degree 1 on 27 points go from 4.2 to 6.1. With fewer points it
    // depends on the form, and what is spilt is looked at when it is compiled.
    in_order: Table(
        &[(Rule { points: from(9), components: from(3), flat: Some(false), ..HEX_DEGREE_1 }, true)],
        false,
    ),
    // With three groups elasticity does 23.3, node by node 22.1, and 22.4 with two groups. With one component shuffling
    // costs more than the additions that it saves.
    edges: Table(&[(BUSY, true)], false),
    // Written out by the compiler, loops over private arrays run as fast as those in the text, degree 1 of BP4 2 % faster.
    unroll: 8,
    // At degrees 2 and 3, where a thread has only few points to each unknown it moves. A mass matrix of one component at
    // degrees 1 to 4: 12.9, 26.9, 40.5 and 47.1 with, 15.4, 23.2, 36.7 and 47.1 without; of three 19.9, 33.2, 49.3 and
    // 55.6, without 22.7, 31.1, 49.8 and 58.0.
    reads_points: Table(
        &[
            (Rule { degree: (2, 3), components: (1, 1), flat: Some(true), ..HEX }, true),
            (Rule { degree: (2, 2), flat: Some(true), ..HEX }, true),
        ],
        false,
    ),
    // On triangles and tetrahedra, many of which share a node. With and without, Laplacians and elasticity: on triangles of
    // degrees 1 to 3 37, 49 and 57 against 28, 27 and 31, and 49, 56 and 61 against 30, 29 and 32, of degree 4 38 against
    // 33; on tetrahedra of degrees 1 to 3 9.1, 21.6 and 12.6 against 5.1, 10.2 and 11.5, and 13.9, 25.2 and 5.0 against 6.0,
    // 11.1 and 5.1. A hexahedron of degree 1 finds most of its neighbours' nodes in the nearest cache, and adds along
    // edges: 21.9 against 23.6 with three components, 12.5 against 18.2 with one.
    sums_first: Table(
        &[
            (Rule { cells: TRIANGLES, ..ANY }, true),
            (Rule { degree: (0, 2), ..TETRAHEDRON }, true),
            (Rule { degree: (3, 3), components: (1, 1), ..TETRAHEDRON }, true),
        ],
        false,
    ),
    // Triangles of degree 1 with 256 and 128 threads a group: 37.3 and 32.2; of degree 2 with 256, 128 and 64 44.0, 51.7
    // and 48.8; tetrahedra of degrees 1 and 2 with 128 and 64 9.0, 20.2 and 6.5, 21.6.
    summing: Table(
        &[
            (Rule { cells: PLANE, degree: (1, 1), ..ANY }, 256),
            (Rule { cells: PLANE, ..ANY }, 128),
            (Rule { degree: (1, 1), ..ANY }, 128),
        ],
        64,
    ),
    fewest_summing: 32,
    // By threads with a cell each and by transposition: the Laplacian on tetrahedra of degrees 2 to 4 9.5, 7.9 and 1.4
    // against 5.7, 2.2 and 1.8, of three components 9.7, 1.7 and 0.6 against 3.1, 1.7 and 1.2, Stokes of degrees 2 and 3
    // 9.1 and 1.9 against 2.8 and 1.6; on triangles of degrees 2 to 4 26 to 31 against 10 to 24.
    transposes: Table(&[(Rule { degree: from(4), ..TETRAHEDRON }, true)], false),
    // Their number matters little (Knepley, Rupp and Terrel, table 2), and one leaves the most groups to hide each other's
    // waiting.
    batches: 1,
    // Several for each thread if need be. Poisson on triangles with 96 threads: 30.7 with 192 cells, 24.2 with 96; on
    // tetrahedra with 64 threads 6.6 with 128 cells, 5.2 with 64.
    cells_summing: 128,
    lines: Lines {
        // Two nodes a direction fill too few lines; with three, registers hold two components of a hexahedron. By lines and
        // by threads with a cell each: two fields, three, and Stokes on 27 points 17, 18 and 25 against 18, 12 and 12, one
        // field and two on 64 points 39 and 27 against 37 and 6. On quadrilaterals one thread does linear forms better for
        // as long as its loops are written out: Stokes of degrees 2 to 4 64, 72 and 68 against 47, 53 and 56, vectors of
        // degrees 2 and 3 67 and 75 against 57 and 67; but a neo-Hookean solid of degrees 3 and 4 40 and 34 against 48 and
        // 42.
        pay: Table(
            &[
                (Rule { degree: (0, 1), ..ANY }, false),
                (Rule { held: (0, HELD), linear: Some(true), ..QUAD }, false),
                (Rule { line: from(3), ..QUAD }, true),
                (Rule { line: (0, 3), components: (0, 2), ..HEX }, false),
                (Rule { line: from(3), ..HEX }, true),
            ],
            false,
        ),
        // Groups of 64 to 130 threads, or 245; about as many as fill their warps.
        cells: Table(
            &[
                (Rule { line: (0, 3), collocated: Some(true), ..ANY }, 8),
                (Rule { line: (0, 3), ..ANY }, 14),
                (Rule { line: (4, 4), flat: Some(true), ..ANY }, 6),
                (Rule { line: (4, 4), ..ANY }, 4),
                (Rule { line: (5, 5), ..ANY }, 5),
                (Rule { line: (7, 7), collocated: Some(false), ..ANY }, 5),
                (Rule { line: (6, 7), ..ANY }, 3),
            ],
            1,
        ),
        threads: 128,
        even_odd: 5,
        // About 64 registers where there are no gradients, 80 up to 6 points a direction, more above, and 2 for each point
        // of its column and each further component, of the fields or of a curved map.
        registers: Table(
            &[
                (Rule { flat: Some(true), line: (4, 4), ..ANY }, 56),
                (Rule { flat: Some(true), ..ANY }, 64),
                (Rule { line: (9, 9), collocated: Some(false), ..ANY }, 88),
                (Rule { line: (7, 7), collocated: Some(true), ..ANY }, 96),
                (Rule { line: from(8), ..ANY }, 96),
            ],
            80,
        ),
        // Where three components and more have gradients, a few threads with many registers do better than many with few,
        // and 4 are counted, for values alone beside them one, and on 8 points all that there are: three Laplacians on 4
        // points 45.0 with 128 registers and 37.2 with 96, on 7 points 50.8 with 168 and 45.0 with 128, elasticity on 7
        // points 41.0 and 36.9, and on 8 points, where two whole warps are a cell, 45.4 with 255, 37.0 with 168 and 38.5
        // with 128.
        further: Table(
            &[
                (Rule { line: (8, 8), ..HEX_3 }, Further::All),
                (Rule { line: (0, 3), collocated: Some(true), ..HEX_3 }, Further::Two),
                (HEX_3, Further::Four),
            ],
            Further::Two,
        ),
        most: Table(&[(Rule { line: (8, 8), ..ANY }, ALL_REGISTERS)], 168),
        diagonal: 168,
        // Where so much is held at once that another order only moves it to memory and back. In order and else: BP3 on 7
        // points 27.8 and 26.4; three Laplacians on 9 points 31.1 and 29.3, on 10 32.1 and 30.7, elasticity on 9 37.8 and
        // 35.7. On up to 6 points, and on 8, where threads have 255 registers, order costs three components 4 to 9 %.
        in_order: Table(
            &[
                (Rule { collocated: Some(true), ..ANY }, false),
                (Rule { line: (7, 7), components: from(1), ..HEX }, true),
                (Rule { line: from(9), ..HEX_3 }, true),
            ],
            false,
        ),
        // A third less of shared memory has more groups of threads on a multiprocessor. With and without: three Laplacians
        // of degrees 3 and 4 23.6 and 24.8 against 20.6 and 23.5, BP6 of degrees 5 and 8 53.0 and 56.2 against 50.9 and
        // 43.0, elasticity of degrees 4, 5, 6 and 8 42.9, 42.4, 41.4 and 42.1 against 38.8, 39.7, 39.9 and 38.8. On 4 and
        // 8 points it loses 12 to 43 %, with one component it gains nothing.
        in_place: Table(
            &[(Rule { line: (5, 7), ..HEX_3 }, true), (Rule { line: (9, 9), ..HEX_3 }, true)],
            false,
        ),
        // With and without: mass matrices of degrees 3, 6 and 8 41.6, 73.4 and 78.3 against 40.6, 68.5 and 70.5;
        // Laplacians on Gauss-Lobatto points of degrees 5 and 7 49.4 and 65.1 against 48.4 and 60.7; but of degree 3 39.3
        // against 39.6, and on Gauss points of degrees 2 and 3 12.5 and 18.9 against 12.6 and 19.1.
        stores_inside: Table(
            &[
                (Rule { degree: from(4), ..ANY }, true),
                (Rule { components: from(2), ..ANY }, true),
                (Rule { flat: Some(true), ..ANY }, true),
            ],
            false,
        ),
        // Laplacians on Gauss-Lobatto points of degrees 5 and 8, and of three components of degrees 3, 6 and 8, recompute
        // with 47.7, 55.7, 46.8, 55.2 and 65.3, and otherwise do 49.4, 54.3, 46.9, 52.8 and 62.0.
        recomputed: Table(&[(Rule { components: from(2), ..ANY }, 6)], 7),
    },
};

/// Numbers that a thread holds, points times components, up to which its loops over a cell are written out.
const HELD: usize = 128;

/// What a thread may have at most.
const ALL_REGISTERS: usize = 255;

/// What lines need to know of a plan: sizes whose components are those with gradients in what it computes.
pub(super) struct Sloped {
    sizes: Sizes,
    /// Components of the fields that are values alone.
    values: usize,
    /// Components of a curved map.
    map: usize,
}

impl Sloped {
    pub(super) fn new(sizes: &Sizes, facts: &Facts<'_>) -> Self {
        let fields = 0..facts.form.fields.len();
        let (flat, sloped): (Vec<usize>, Vec<usize>) =
            fields.partition(|&field| facts.is_flat_field(field));
        let sum = |of: Vec<usize>| of.into_iter().map(|field| facts.components(field)).sum();
        Self {
            sizes: Sizes { components: sum(sloped), flat: facts.is_flat(), ..*sizes },
            values: sum(flat),
            map: if facts.is_curved() { facts.form.dim } else { 0 },
        }
    }
}

impl Lines {
    /// Registers that a thread needs.
    pub(super) fn registers(&self, of: &Sloped) -> usize {
        let Sloped { sizes, values, map } = of;
        let (q, sloped) = (sizes.line, sizes.components);
        let further = match self.further.at(sizes) {
            Further::Two => 2 * q * (sloped + values - 1),
            Further::Four => 4 * q * (sloped - 1) + q * values,
            Further::All => ALL_REGISTERS,
        };
        (self.registers.at(sizes) + further + 2 * q * map).min(self.most.at(sizes))
    }

    /// Whether the assembler keeps to the order of the text, and whether derivatives in x take the place of values.
    pub(super) fn in_order_in_place(&self, of: &Sloped) -> (bool, bool) {
        (self.in_order.at(&of.sizes), self.in_place.at(&of.sizes))
    }
}
