//! Choices of a compiled kernel, and the case of a row of choices.

use super::between;
use super::cover::Random;
use super::launch::Shape;
use super::levels::{FIELDS, FUNCTIONS, INDICES, MAPS, OTHERS, POINTS, PRECISIONS, SHAPES, TASKS};
use super::levels::{against, cells, components, form, options, plain, rule};
use fem_dsl::point::PointForm;
use fem_dsl::testing::{Options, random_form};
use kernels_gen::abi::Indices;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::element::{Cell, Rule, default_rule};
use kernels_gen::plan::{Elements, EvenOdd, Plan, Scatter, Target};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Levels of all factors; a [`super::cover::Row`] has one index into each list, in the order of [`Choices::levels`].
pub(crate) struct Choices {
    full: bool,
    cells: Vec<(Cell, usize)>,
    isas: Vec<Isa>,
    /// Forms in two and three dimensions, for queries of support.
    plain: [Vec<PointForm>; 2],
    /// Cached elements, by cell and degree, points and form.
    elements: RefCell<BTreeMap<[usize; 3], Rc<Result<Elements, String>>>>,
}

/// Ratios of the widest vector of the instruction set to the lanes of a batch.
const WIDTHS: [usize; 3] = [1, 2, 4];

/// Numbers of batches gathered together.
const BLOCKS: [usize; 3] = [1, 4, 3];

/// Largest numbers of entries of unrolled loops.
const UNROLLS: [usize; 3] = [8, 0, 3];

/// A kernel to compile, run and compare.
pub(crate) struct Case {
    /// The seed of the form.
    pub(crate) seed: u64,
    pub(crate) form: PointForm,
    pub(crate) elements: Elements,
    pub(crate) degree: usize,
    pub(crate) rule: Rule,
    pub(crate) shape: Shape,
    pub(crate) plan: Plan,
    pub(crate) isa: Isa,
}

impl Case {
    /// Returns the case of a kernel between cells.
    pub(crate) fn between(drawn: between::Case, isa: Isa) -> Self {
        let between::Case { seed, form, elements, degree, rule, shape, plan } = drawn;
        Self { seed, form, elements, degree, rule, shape, plan, isa }
    }
}

/// A case without its form.
struct Setup {
    degree: usize,
    rule: Rule,
    shape: Shape,
    plan: Plan,
    isa: Isa,
    options: Options,
    /// Reasons against the case.
    against: Vec<String>,
}

impl Setup {
    /// Returns whether compilation takes many seconds (in full runs, many minutes). The text grows with degree and
    /// components, and with the unrolled map of curved cells at each point.
    fn is_long(&self, full: bool) -> bool {
        let (cell, dim) = (self.rule.cell(), self.rule.cell().dim());
        let components = components(&self.options);
        let most = match (dim, full) {
            (3, false) => 9,
            (3, true) => 24,
            (_, false) => 24,
            (_, true) => 32,
        };
        let written_out = self.plan.unroll >= self.rule.count();
        cell.is_tensor() && components * self.degree > most
            || dim == 3 && self.shape.order() > 1 && written_out
    }
}

impl Choices {
    /// Returns the cells and degrees of [`cells`].
    pub(crate) fn new(full: bool, isas: Vec<Isa>) -> Self {
        Self { full, cells: cells(full), isas, plain: plain(), elements: RefCell::default() }
    }

    /// Returns the number of levels of each factor.
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
            INDICES.len() + 1, // batch by batch
            UNROLLS.len(),
            BLOCKS.len(),
            2, // even-odd
            FIELDS.len(),
            2, // nonlinear, linear
            2, // auxiliary data
            2, // parameters
            2, // kinks
            OTHERS.len(),
            2, // hanging nodes
        ]
    }

    /// The factors with all combinations in full runs: cell and degree, shape, map, task, precision.
    pub(crate) const PRODUCT: [usize; 5] = [0, 2, 3, 4, 5];

    /// Reasons against a row for any form: invalid choices, plans that are rejected, and excessive cost.
    pub(crate) fn reasons(&self, row: &[usize]) -> Vec<String> {
        let setup = self.setup(row);
        let form = &self.plain[setup.rule.cell().dim() - 2][row[17]];
        let elements = Rc::clone(
            self.elements.borrow_mut().entry([row[0], row[1], row[17]]).or_insert_with(|| {
                let made = Elements::new(form, setup.rule.cell(), setup.degree, setup.rule);
                Rc::new(made.map_err(|error| error.to_string()))
            }),
        );
        let mut reasons = setup.against.clone();
        let plan = &setup.plan;
        // The first reason of a plan may hide another, which similar plans reveal.
        let direct = Plan { geometry: setup.shape.direct(), ..plan.clone() };
        let nodes = Plan { indices: Indices::Nodes, ..plan.clone() };
        let refused = |plan: &Plan| match &*elements {
            Err(error) => Some(error.clone()),
            Ok(elements) => kernels_gen::strategy::check(form, elements, plan)
                .err()
                .map(|error| error.to_string()),
        };
        if refused(plan).is_some() {
            reasons.extend([plan, &direct, &nodes].into_iter().filter_map(refused));
            reasons.sort_unstable();
            reasons.dedup();
        }
        if setup.is_long(self.full) {
            let why = if self.full { "" } else { ": left to WF_FULL=1" };
            reasons.push(format!("it takes long to compile{why}"));
        }
        reasons
    }

    /// Returns the approximate cost of a row in compilation and comparison: nodes and components.
    pub(crate) fn cost(&self, row: &[usize]) -> usize {
        let setup = self.setup(row);
        setup.degree.pow(setup.rule.cell().dim() as u32) * components(&setup.options)
    }

    /// Returns the case of a row, with a random form.
    pub(crate) fn case(&self, row: &[usize], seed: u64) -> Case {
        let setup = self.setup(row);
        let text = random_form(seed, &setup.options);
        Self::with_form(setup, seed, &text, &format!("random_{seed}"))
    }

    /// Returns the case of a row, with a form that contains every function of the language.
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

    /// Returns small rows with every combination of task, precision and instruction set.
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

    /// Returns a supported row of degree 1 or 2 with some given levels.
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
        let geometry = MAPS[map].geometry(shape);
        let in_batches = indices == INDICES.len();
        let indices = if in_batches { Indices::Batches } else { INDICES[indices] };
        let plan = Plan {
            indices,
            scatter: if in_batches { Scatter::Owner } else { Scatter::Atomic },
            linearisation,
            unroll: UNROLLS[unroll],
            block: BLOCKS[block],
            hanging: yes(18),
            even_odd: if yes(11) { EvenOdd::Never } else { EvenOdd::Always },
            ..Plan::new(Target::Vectors, task, lanes, precision, geometry)
        };
        let against = against(rule, cell, geometry, shape);
        let rule = rule.unwrap_or_else(|| default_rule(cell, degree, shape.order(), None));
        let kind = [13, 14, 15, 16].map(yes);
        let options = options(cell.dim(), FIELDS[row[12]], OTHERS[row[17]], kind);
        Setup { degree, rule, shape, plan, isa, options, against }
    }
}
