//! The choices that make a compiled kernel, and the case that a row of them stands for.

use super::cover::Random;
use super::launch::Shape;
use fem_dsl::point::PointForm;
use fem_dsl::source::Source;
use fem_dsl::testing::{FieldShape, Options, random_form};
use kernels_gen::abi::Indices;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::element::{Cell, LinePoints, Rule, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::lower::contract::EvenOdd;
use kernels_gen::plan::{Elements, Geometry, Linearisation, Plan, Task, largest_degree};

/// The levels of every factor; a [`super::cover::Row`] holds one index into each list, in the order
/// of [`Choices::levels`].
pub(crate) struct Choices {
    full: bool,
    cells: Vec<(Cell, usize)>,
    isas: Vec<Isa>,
    /// A form in two and in three dimensions, for asking what is supported.
    plain: [PointForm; 2],
}

/// How the points of the rule are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Points {
    /// The default: p + 1 Gauss points a direction, or exact to degree 2p.
    Default,
    /// One more a direction.
    Finer,
    /// Three more.
    Finest,
    /// p + 1 Gauss-Lobatto points a direction: the nodes.
    Collocated,
    /// p + 2 Gauss-Lobatto points a direction.
    Lobatto,
}

const POINTS: [Points; 5] =
    [Points::Default, Points::Finer, Points::Finest, Points::Collocated, Points::Lobatto];

const SHAPES: [Shape; 4] = [Shape::Affine, Shape::Multilinear, Shape::Curved(2), Shape::Curved(3)];

/// What is computed, and where the part that depends on u comes from.
const TASKS: [(Task, Linearisation); 4] = [
    (Task::Residual, Linearisation::Recompute),
    (Task::Action, Linearisation::Recompute),
    (Task::Action, Linearisation::Stored),
    (Task::Diagonal, Linearisation::Recompute),
];

const PRECISIONS: [Precision; 2] = [Precision::F64, Precision::F32];

/// The widest vector of the instruction set has so many times the lanes of a batch.
const WIDTHS: [usize; 3] = [1, 2, 4];

/// How a kernel comes to the map of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Map {
    /// From numbers of the cell.
    Direct,
    /// From the quadrature points.
    Stored,
    /// From its corners, which are gathered.
    Corners,
}

const MAPS: [Map; 3] = [Map::Direct, Map::Stored, Map::Corners];

/// Batches that are gathered together.
const BLOCKS: [usize; 3] = [1, 4, 3];

const INDICES: [Indices; 3] = [Indices::Nodes, Indices::Runs, Indices::Dofs];

/// Loops of at most so many entries are written out.
const UNROLLS: [usize; 3] = [8, 0, 3];

const FIELDS: [FieldShape; 4] =
    [FieldShape::Scalar, FieldShape::Vector, FieldShape::VectorOf(2), FieldShape::Tensor];

/// Every function and operator that random forms may lack; `s` is at most 1/2, and away from kinks.
const FUNCTIONS: &str = "form functions_NUMBER {
    field u: scalar;
    aux a: scalar on nodes;
    aux c: scalar on cells;
    param p = 1.5;
    let s = 0.5 * tanh(u + a);
    fn blend(b, d) = if b < d && !(b == p) || d >= 2 * p { b * d } else { (b - d) / p };
    f0[u] = sqrt(2 + s) + exp(s) + log(2 + s) + sin(s) + cos(u) + tan(s) + asin(s) + acos(s)
        + atan(u) + atan2(s, 2 + u^2) + sinh(s) + cosh(s) + abs(s) + sign(s) + min(s, c)
        + max(u, p) + (2 + s)^p + 2^-s + (1 + u^2)^-1.5 + u^5 + s^-2 + blend(u, a) * blend(c, u);
    f1[u] = norm(grad(u)) * grad(u) + (if u <= a || u != c { s } else { c }) * grad(a)
        + (if u > a { 1 / (3 + u) } else { exp(-c * u) }) * grad(u);
}";

/// One kernel to be compiled, run and compared.
pub(crate) struct Case {
    /// Of its form.
    pub(crate) seed: u64,
    pub(crate) form: PointForm,
    pub(crate) elements: Elements,
    pub(crate) degree: usize,
    pub(crate) rule: Rule,
    pub(crate) shape: Shape,
    pub(crate) plan: Plan,
    pub(crate) isa: Isa,
}

/// A case without its form.
struct Setup {
    degree: usize,
    rule: Rule,
    shape: Shape,
    plan: Plan,
    isa: Isa,
    options: Options,
    /// Why there is no such case.
    against: Vec<String>,
}

impl Setup {
    /// Whether compilers take many seconds: text grows with degree and components, and where the
    /// map of a curved cell is written out for each point.
    fn is_long(&self) -> bool {
        let (cell, dim) = (self.rule.cell(), self.rule.cell().dim());
        let components = match self.options.shape {
            FieldShape::Scalar => 1,
            FieldShape::Vector => dim,
            FieldShape::VectorOf(n) => n,
            FieldShape::Tensor => dim * dim,
        };
        let most = if dim == 3 { 9 } else { 24 };
        let written_out = self.plan.unroll >= self.rule.count();
        cell.is_tensor() && components * self.degree > most
            || dim == 3 && self.shape.order() > 1 && written_out
    }
}

impl Choices {
    /// Degrees up to the largest that each cell has, or up to 8 on tensor cells.
    pub(crate) fn new(full: bool, isas: Vec<Isa>) -> Self {
        let cells = [Cell::Triangle, Cell::Quadrilateral, Cell::Tetrahedron, Cell::Hexahedron];
        let cells = cells.into_iter().flat_map(|cell| {
            let most = if full { largest_degree(cell) } else { largest_degree(cell).min(8) };
            (1..=most).map(move |degree| (cell, degree))
        });
        let plain =
            [2, 3].map(|dim| form("form plain { field u: scalar; f0[u] = u; }", "plain", dim));
        Self { full, cells: cells.collect(), isas, plain }
    }

    /// How many levels each factor has.
    pub(crate) fn levels(&self) -> Vec<usize> {
        vec![
            self.cells.len(),
            POINTS.len(),
            SHAPES.len(),
            MAPS.len(),
            TASKS.len(),
            PRECISIONS.len(),
            self.isas.len(),
            WIDTHS.len(),
            INDICES.len(),
            UNROLLS.len(),
            BLOCKS.len(),
            2, // even-odd
            2, // prefetch
            FIELDS.len(),
            2, // nonlinear, linear
            2, // auxiliary data
            2, // parameters
            2, // kinks
        ]
    }

    /// The factors of which every combination is run where all is run: cell and degree, shape,
    /// map, task, precision.
    pub(crate) const PRODUCT: [usize; 5] = [0, 2, 3, 4, 5];

    /// Why a row is not run, whatever the form: what is no choice at all, what the plan refuses, and
    /// what would take long.
    pub(crate) fn reasons(&self, row: &[usize]) -> Vec<String> {
        let setup = self.setup(row);
        let form = &self.plain[setup.rule.cell().dim() - 2];
        let elements = Elements::new(form, setup.rule.cell(), setup.degree, setup.rule);
        let mut reasons = setup.against.clone();
        let plan = &setup.plan;
        // The first reason of a plan may hide another, which its neighbours show.
        let direct = Plan { geometry: setup.shape.direct(), ..plan.clone() };
        let nodes = Plan { indices: Indices::Nodes, ..plan.clone() };
        let refused = |plan: &Plan| match &elements {
            Err(error) => Some(error.to_string()),
            Ok(elements) => plan.check(form, elements).err().map(|error| error.to_string()),
        };
        if refused(plan).is_some() {
            reasons.extend([plan, &direct, &nodes].into_iter().filter_map(refused));
            reasons.sort_unstable();
            reasons.dedup();
        }
        if !self.full && setup.is_long() {
            reasons.push("it takes long to compile: left to WF_FULL=1".to_owned());
        }
        reasons
    }

    /// The case of a row, with a random form.
    pub(crate) fn case(&self, row: &[usize], seed: u64) -> Case {
        let setup = self.setup(row);
        let text = random_form(seed, &setup.options);
        Self::with_form(setup, seed, &text, &format!("random_{seed}"))
    }

    /// The case of a row, with a form that holds every function of the language.
    pub(crate) fn functions(&self, row: &[usize], seed: u64) -> Case {
        let text = FUNCTIONS.replace("NUMBER", &seed.to_string());
        Self::with_form(self.setup(row), seed, &text, &format!("functions_{seed}"))
    }

    fn with_form(setup: Setup, seed: u64, text: &str, name: &str) -> Case {
        let Setup { degree, rule, shape, plan, isa, .. } = setup;
        let form = form(text, name, rule.cell().dim());
        let elements = Elements::new(&form, rule.cell(), degree, rule).expect("a supported row");
        Case { seed, form, elements, degree, rule, shape, plan, isa }
    }

    /// A supported row of a small case.
    pub(crate) fn small(&self, random: &mut Random) -> Vec<usize> {
        self.small_with(random, &[])
    }

    /// Small rows with every combination of task, precision and instruction set.
    pub(crate) fn small_product(&self, random: &mut Random) -> Vec<Vec<usize>> {
        let mut rows = Vec::new();
        for task in 0..TASKS.len() {
            for precision in 0..PRECISIONS.len() {
                for isa in 0..self.isas.len() {
                    rows.push(self.small_with(random, &[(4, task), (5, precision), (6, isa)]));
                }
            }
        }
        rows
    }

    /// A supported row of degree 1 or 2 with some levels given.
    fn small_with(&self, random: &mut Random, given: &[(usize, usize)]) -> Vec<usize> {
        let small = (0..self.cells.len()).filter(|&i| self.cells[i].1 <= 2);
        let small: Vec<usize> = small.collect();
        loop {
            let levels = self.levels().into_iter();
            let mut row: Vec<usize> = levels.map(|levels| random.below(levels)).collect();
            row[0] = small[random.below(small.len())];
            given.iter().for_each(|&(factor, level)| row[factor] = level);
            if self.reasons(&row).is_empty() {
                return row;
            }
        }
    }

    fn setup(&self, row: &[usize]) -> Setup {
        let &[cell, points, shape, map, task, precision, isa, width, indices, unroll, block, ..] =
            row
        else {
            panic!("a row should have a level for every factor");
        };
        let yes = |factor: usize| row[factor] == 1;
        let (cell, degree) = self.cells[cell];
        let shape = SHAPES[shape];
        let rule = rule(cell, degree, shape, POINTS[points]);
        let (task, linearisation) = TASKS[task];
        let (precision, isa) = (PRECISIONS[precision], self.isas[isa]);
        let lanes = (isa.widest(precision) / WIDTHS[width]).max(1);
        let geometry = match MAPS[map] {
            Map::Direct => shape.direct(),
            Map::Stored => Geometry::Stored,
            Map::Corners => Geometry::Corners,
        };
        let plan = Plan {
            indices: INDICES[indices],
            linearisation,
            unroll: UNROLLS[unroll],
            block: BLOCKS[block],
            even_odd: if yes(11) { EvenOdd::Never } else { EvenOdd::Always },
            prefetch: yes(12),
            ..Plan::new(task, lanes, precision, geometry)
        };
        let straight = shape == Shape::Multilinear && !cell.is_tensor();
        let against = [
            (rule.is_none(), "Gauss-Lobatto points need a tensor cell"),
            (
                geometry == Geometry::Corners && shape.order() > 1,
                "a curved cell is not its corners",
            ),
            (straight, "a simplex with straight sides is affine: that shape stands for it"),
        ];
        let against =
            against.into_iter().filter(|(holds, _)| *holds).map(|(_, why)| why.to_owned());
        let against = against.collect();
        let rule = rule.unwrap_or_else(|| default_rule(cell, degree, shape.order(), None));
        let options = options(cell.dim(), FIELDS[row[13]], [14, 15, 16, 17].map(yes));
        Setup { degree, rule, shape, plan, isa, options, against }
    }
}

/// The more components, the smaller the expressions, so that compilers take seconds and not minutes.
fn options(dim: usize, shape: FieldShape, [linear, aux, params, kinks]: [bool; 4]) -> Options {
    let depth = match (shape, dim) {
        (FieldShape::Scalar, 2) => 3,
        (FieldShape::Scalar, _) => 2,
        (FieldShape::Tensor, 3) => 0,
        _ => 1,
    };
    let shape = match shape {
        FieldShape::VectorOf(_) => FieldShape::VectorOf(5 - dim),
        other => other,
    };
    Options { dim, shape, linear, aux, params, kinks, depth }
}

/// None where there are no such points.
fn rule(cell: Cell, degree: usize, shape: Shape, points: Points) -> Option<Rule> {
    if cell.is_tensor() {
        let line = match points {
            Points::Default => LinePoints::Gauss(degree + 1),
            Points::Finer => LinePoints::Gauss(degree + 2),
            Points::Finest => LinePoints::Gauss(degree + 4),
            Points::Collocated => LinePoints::GaussLobatto(degree + 1),
            Points::Lobatto => LinePoints::GaussLobatto(degree + 2),
        };
        return Some(Rule::Tensor { cell, line });
    }
    let more = match points {
        Points::Default => 0,
        Points::Finer => 1,
        Points::Finest => 5,
        Points::Collocated | Points::Lobatto => return None,
    };
    match default_rule(cell, degree, shape.order(), None) {
        Rule::Simplex { cell, degree } => Some(Rule::Simplex { cell, degree: degree + more }),
        other => Some(other),
    }
}

/// A form of a text.
fn form(text: &str, name: &str, dim: usize) -> PointForm {
    let (program, found) = fem_dsl::program::compile(&Source::new(name, text));
    let program = program.unwrap_or_else(|| panic!("{text}\n{found:?}"));
    program.point_form(name, dim).unwrap_or_else(|found| panic!("{text}\n{found:?}"))
}
