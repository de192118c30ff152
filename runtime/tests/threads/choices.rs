//! The plan options of kernels for thread groups, and the test case of each row of options.

pub(crate) use super::between::Case;
use super::cover::Random;
use super::launch::{Shape, companions};
use super::levels::{FIELDS, FUNCTIONS, INDICES, MAPS, OTHERS, POINTS, PRECISIONS, SHAPES, TASKS};
use super::levels::{against, cells, components, form, options, plain, rule};
use fem_dsl::point::PointForm;
use fem_dsl::testing::{Options, random_form};
use kernels_gen::abi::{Indices, Slots};
use kernels_gen::choose;
use kernels_gen::element::{Cell, Lagrange, Rule, default_rule};
use kernels_gen::plan::{Elements, EvenOdd, Plan, Scatter, Strategy, Target, Task};

/// The levels of every factor. A [`super::cover::Row`] holds one index into each list, in the order of
/// [`Choices::levels`].
pub(crate) struct Choices {
    cells: Vec<(Cell, usize)>,
    /// Approximate limit of multiply-adds per thread. Larger kernels take too long to compile.
    most: usize,
    /// Simple forms in two and in three dimensions, for checking whether a plan is supported.
    plain: [Vec<PointForm>; 2],
}

/// Strategies, with the number of threads or lanes of a group.
const STRATEGIES: [(Strategy, usize); 7] = [
    (Strategy::CellPerLane, 8),
    (Strategy::CellPerLane, 128),
    (Strategy::ThreadPerLine { cells: 1 }, 1),
    (Strategy::ThreadPerLine { cells: 3 }, 1),
    (Strategy::ThreadPerDof, 1),
    (Strategy::ThreadTransposition { blocks: 1, batches: 2 }, 1),
    (Strategy::ThreadTransposition { blocks: 3, batches: 1 }, 1),
];

/// Returns the plan with the batch size that suits its strategy and the form.
fn with_batch(form: &PointForm, elements: &Elements, plan: &Plan, shape: Shape) -> Plan {
    let plan = &with_slots(elements, plan.clone());
    let plan = match plan.strategy {
        Strategy::ThreadTransposition { blocks, batches } => {
            let plans = [vec![plan.clone()], companions(form, elements, plan, shape)].concat();
            let cells = choose::cells_of_points(form, elements, &plans, blocks);
            choose::transposed(plan, blocks, batches, cells)
        }
        Strategy::ThreadPerDof => {
            let cells = choose::cells_of_nodes(form, elements, std::slice::from_ref(plan));
            choose::per_dof(plan, cells)
        }
        _ => plan.clone(),
    };
    with_slots(elements, plan)
}

/// Returns the plan with slots for the largest possible number of nodes of a batch, for the block scatter only.
fn with_slots(elements: &Elements, plan: Plan) -> Plan {
    if plan.scatter != Scatter::Block {
        return plan;
    }
    let slots = elements.fields.iter().zip([3, 2, 1]).map(|(element, terms)| {
        let count = element.count() * plan.lanes;
        Slots { count, terms }
    });
    let slots = slots.collect();
    Plan { slots, ..plan }
}

/// Scatter modes. Cells of the same launch share unknowns here, so coloured scatter has a test of its own.
const SCATTERS: [Scatter; 3] = [Scatter::Atomic, Scatter::Owner, Scatter::Block];

/// Unroll limits: loops of at most this many entries are unrolled.
const UNROLLS: [usize; 3] = [1 << 16, 0, 8];

/// A form whose names are keywords or built-in names in kernel languages.
const WORDS: &str = "form words_NUMBER {
    field float4: scalar;
    aux double: scalar on nodes;
    aux kernel: vector on cells;
    aux v3: scalar on points;
    param global = 0.5;
    f0[float4] = global * double * float4 + v3 * kernel[0];
    f1[float4] = (1 + double^2) * grad(float4) + float4 * kernel;
}";

/// A case without its form.
struct Setup {
    degree: usize,
    rule: Rule,
    shape: Shape,
    plan: Plan,
    options: Options,
    /// Reasons against this combination of options.
    against: Vec<String>,
}

impl Choices {
    /// Includes all cells, up to the everyday degrees or, with `full`, the largest ones. `most` limits the approximate
    /// multiply-adds per thread.
    pub(crate) fn new(full: bool, most: usize) -> Self {
        Self { cells: cells(full), most, plain: plain() }
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
            STRATEGIES.len(),
            INDICES.len(),
            UNROLLS.len(),
            2, // even-odd
            FIELDS.len(),
            2, // nonlinear, linear
            2, // auxiliary data
            2, // parameters
            2, // kinks
            SCATTERS.len(),
            2, // tiles
            OTHERS.len(),
            2, // hanging nodes
        ]
    }

    /// Returns the reasons against a row that hold for every form: invalid options, refusals of the plan, and long run
    /// times.
    pub(crate) fn reasons(&self, row: &[usize]) -> Vec<String> {
        let setup = self.setup(row);
        let mut reasons = setup.against.clone();
        if setup.work() > self.most {
            reasons.push(format!("a thread would do more than {} multiply-adds", self.most));
        }
        if !reasons.is_empty() {
            return reasons;
        }
        let form = &self.plain[setup.rule.cell().dim() - 2][row[17]];
        let elements = Elements::new(form, setup.rule.cell(), setup.degree, setup.rule);
        let plan = &setup.plan;
        // The first error of a plan may hide another one, which neighbouring plans reveal.
        let direct = Plan { geometry: setup.shape.direct(), ..plan.clone() };
        let nodes = Plan { indices: Indices::Nodes, ..plan.clone() };
        let refused = |plan: &Plan| match &elements {
            Err(error) => Some(error.to_string()),
            Ok(elements) => {
                let plan = with_batch(form, elements, plan, setup.shape);
                kernels_gen::strategy::check(form, elements, &plan)
                    .err()
                    .map(|error| error.to_string())
            }
        };
        if refused(plan).is_some() {
            reasons.extend([plan, &direct, &nodes].into_iter().filter_map(refused));
            reasons.sort_unstable();
            reasons.dedup();
        }
        reasons
    }

    /// Returns the approximate number of multiply-adds per thread of a row.
    pub(crate) fn cost(&self, row: &[usize]) -> usize {
        self.setup(row).work()
    }

    /// Returns the case of a row with a random form. Returns an error for a form that the plan refuses.
    pub(crate) fn case(&self, row: &[usize], seed: u64) -> Result<Case, String> {
        let setup = self.setup(row);
        let text = random_form(seed, &setup.options);
        setup.with_form(seed, &text, &format!("random_{seed}"))
    }

    /// Returns small cases with every function of the language, one for each task, precision and strategy.
    /// More cases use names that are keywords or built-in names in kernel languages.
    pub(crate) fn small(&self, random: &mut Random, seed: u64) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut seeds = seed..;
        let mut add = |random: &mut Random, given: &[(usize, usize)], text: &str, name: &str| {
            let seed = seeds.next().expect("a number");
            let (text, name) =
                (text.replace("NUMBER", &seed.to_string()), format!("{name}_{seed}"));
            cases.extend(
                self.case_with(random, given, |setup| setup.with_form(seed, &text, &name).ok()),
            );
        };
        for strategy in 0..STRATEGIES.len() {
            for precision in 0..PRECISIONS.len() {
                for task in 0..TASKS.len() {
                    let given = [(4, task), (5, precision), (6, strategy)];
                    add(random, &given, FUNCTIONS, "functions");
                }
                add(random, &[(5, precision), (6, strategy)], WORDS, "words");
            }
        }
        cases
    }

    /// Draws a supported row.
    pub(crate) fn row(&self, random: &mut Random) -> Vec<usize> {
        loop {
            let levels = self.levels().into_iter();
            let row: Vec<usize> = levels.map(|levels| random.below(levels)).collect();
            if self.reasons(&row).is_empty() {
                return row;
            }
        }
    }

    /// Applies `case` to random supported rows of degree 1 to 3 with some given levels, up to the first result.
    /// Returns none for combinations that are seldom or never supported.
    fn case_with(
        &self,
        random: &mut Random,
        given: &[(usize, usize)],
        case: impl Fn(Setup) -> Option<Case>,
    ) -> Option<Case> {
        let small = (0..self.cells.len()).filter(|&i| self.cells[i].1 <= 3);
        let small: Vec<usize> = small.collect();
        let rows = (0..4000).map(|_| {
            let levels = self.levels().into_iter();
            let mut row: Vec<usize> = levels.map(|levels| random.below(levels)).collect();
            row[0] = small[random.below(small.len())];
            // Forms have one field with one component.
            (row[10], row[17]) = (0, 0);
            given.iter().for_each(|&(factor, level)| row[factor] = level);
            row
        });
        let mut rows = rows.filter(|row| self.reasons(row).is_empty());
        rows.find_map(|row| case(self.setup(&row)))
    }

    fn setup(&self, row: &[usize]) -> Setup {
        let &[cell, points, shape, map, task, precision, strategy, indices, unroll, ..] = row
        else {
            panic!("a row should have a level for every factor");
        };
        let yes = |factor: usize| row[factor] == 1;
        let (cell, degree) = self.cells[cell];
        let shape = SHAPES[shape];
        let rule = rule(cell, degree, shape, POINTS[points]);
        let (task, linearisation) = TASKS[task];
        let geometry = MAPS[map].geometry(shape);
        let (strategy, lanes) = STRATEGIES[strategy];
        let plan = Plan {
            strategy,
            indices: INDICES[indices],
            linearisation,
            tiles: yes(16),
            edges: yes(9) && yes(16),
            in_order: yes(11) && yes(16),
            in_place: yes(9) != yes(12),
            stores_inside: !(yes(9) && yes(12)),
            recomputed: if yes(11) { 2 } else { usize::MAX },
            scatter: SCATTERS[row[15]],
            unroll: UNROLLS[unroll],
            hanging: yes(18),
            even_odd: if yes(9) { EvenOdd::Never } else { EvenOdd::Always },
            ..Plan::new(Target::Threads, task, lanes, PRECISIONS[precision], geometry)
        };
        let against = against(rule, cell, geometry, shape);
        let rule = rule.unwrap_or_else(|| default_rule(cell, degree, shape.order(), None));
        let kind = [11, 12, 13, 14].map(yes);
        let options = options(cell.dim(), FIELDS[row[10]], OTHERS[row[17]], kind);
        Setup { degree, rule, shape, plan, options, against }
    }
}

impl Setup {
    /// Returns the case with a form. Groups without room for their cells get fewer cells.
    fn with_form(self, seed: u64, text: &str, name: &str) -> Result<Case, String> {
        let Self { degree, rule, shape, mut plan, .. } = self;
        let form = form(text, name, rule.cell().dim());
        let elements = Elements::new(&form, rule.cell(), degree, rule);
        let elements = elements.map_err(|error| error.to_string())?;
        plan = with_batch(&form, &elements, &plan, shape);
        while let Err(error) = kernels_gen::strategy::check(&form, &elements, &plan) {
            plan.strategy = match plan.strategy {
                Strategy::ThreadPerLine { cells } if cells > 1 => {
                    Strategy::ThreadPerLine { cells: cells - 1 }
                }
                Strategy::ThreadTransposition { blocks, batches } if blocks > 1 => {
                    Strategy::ThreadTransposition { blocks: blocks - 1, batches }
                }
                _ => return Err(error.to_string()),
            };
            plan = with_batch(&form, &elements, &plan, shape);
        }
        Ok(Case { seed, form, elements, degree, rule, shape, plan })
    }

    /// Returns the approximate number of multiply-adds per thread for interpolation and integration.
    fn work(&self) -> usize {
        let (cell, dim) = (self.rule.cell(), self.rule.cell().dim());
        let components = components(&self.options);
        let aux = if self.options.aux { 1 + dim } else { 0 };
        let curved = if self.shape.order() > 1 { dim } else { 0 };
        let points = self.rule.count();
        let one = match self.rule.line() {
            Some(line) => (dim + 1) * points * line.count(),
            None => {
                let nodes = Lagrange::continuous(cell, self.degree).map_or(0, Lagrange::count);
                (dim + 1) * points * nodes
            }
        };
        let both = one * (2 * components + aux + curved);
        match (self.plan.strategy, self.plan.task) {
            (Strategy::ThreadPerLine { .. }, _) => {
                let line = self.rule.line().map_or(1, |line| line.count());
                both / (line * line)
            }
            (Strategy::ThreadPerDof, _) => both / points,
            (Strategy::ThreadTransposition { .. }, _) => {
                let nodes = Lagrange::continuous(cell, self.degree).map_or(1, Lagrange::count);
                (dim + 1) * (points + nodes) * (2 * components + aux + curved)
            }
            // The diagonal takes one evaluation per coefficient.
            (Strategy::CellPerLane, Task::Diagonal) => both * (dim + 1),
            (Strategy::CellPerLane, _) => both,
        }
    }
}
