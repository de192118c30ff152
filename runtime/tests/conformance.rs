//! All kinds of kernels against the reference, in the kir interpreter: no compiler, no GPU.
//!
//! The cases are the product of forms, cells, degrees, rules, geometries, index types, linearisations, even–odd
//! settings and precisions. Rejected plans are counted by reason. Every fifth case is run, of hexahedra every thirteenth;
//! with `WF_FULL=1` in the environment, all are.

#[path = "conformance/batches.rs"]
mod batches;
#[path = "conformance/between.rs"]
pub(crate) mod between;
#[path = "conformance/facets.rs"]
mod facets;
#[path = "conformance/forms.rs"]
mod forms;
#[path = "conformance/hanging.rs"]
pub(crate) mod hanging;
#[path = "conformance/interpreter.rs"]
pub(crate) mod interpreter;
#[path = "conformance/launch.rs"]
pub(crate) mod launch;
#[path = "conformance/pairs.rs"]
pub(crate) mod pairs;
#[path = "conformance/setting.rs"]
pub(crate) mod setting;
#[path = "conformance/vectors.rs"]
mod vectors;

use fem_dsl::point::PointForm;
use fem_dsl::source::Source;
use interpreter::Interpreted;
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, LinePoints, Rule, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, Scatter, Strategy, Target, Task,
};
use launch::{Launcher, Shape};
use setting::Setting;
use std::collections::{BTreeMap, BTreeSet};

/// The number of cells: two full batches of four and a partial one.
const CELLS: usize = 11;

/// A case of the product.
struct Case<'a> {
    form: &'a PointForm,
    degree: usize,
    rule: Rule,
    shape: Shape,
    plan: Plan,
}

/// Counts of run and rejected cases, and the largest error relative to the tolerance.
#[derive(Default)]
struct Tally {
    /// Of the selected cases, `part` out of `parts` is run; all if `parts` is 0.
    part: usize,
    parts: usize,
    met: usize,
    ran: usize,
    /// The number of run cases with hanging nodes.
    hanging: usize,
    worst: f64,
    refused: BTreeMap<String, usize>,
}

impl Tally {
    /// Runs a case if it is selected. 5 and 13 have no common factor with the lengths of the lists.
    fn sample(&mut self, case: &Case<'_>) {
        self.met += 1;
        let every = match case.rule.cell() {
            _ if std::env::var_os("WF_FULL").is_some() => 1,
            // Their kernels take the longest, and are those of quadrilaterals with one more axis.
            Cell::Hexahedron => 13,
            _ => 5,
        };
        let own = self.parts == 0 || (self.met / every) % self.parts == self.part;
        if own && self.met.is_multiple_of(every) {
            self.run(case);
        }
    }

    fn run(&mut self, case: &Case<'_>) {
        let elements = Elements::new(case.form, case.rule.cell(), case.degree, case.rule);
        let checked = elements.and_then(|elements| {
            kernels_gen::strategy::check(case.form, &elements, &case.plan).map(|()| elements)
        });
        match checked {
            Err(reason) => *self.refused.entry(reason.to_string()).or_default() += 1,
            Ok(elements) => {
                self.ran += 1;
                self.hanging += usize::from(case.plan.hanging);
                let geometry = case.plan.geometry;
                let setting =
                    Setting::new(case.form, case.degree, case.rule, case.shape, geometry, CELLS);
                let launcher = Launcher { form: case.form, elements: &elements, setting: &setting };
                let runner = Interpreted { form: case.form, elements: &elements, threads: false };
                let name = format!("{} on {}: {:?}", case.form.name, case.rule, case.plan);
                match launcher.compare(&case.plan, &runner) {
                    Err(error) => panic!("{name}: {error}"),
                    Ok(agreement) => {
                        assert!(agreement.seen > 0, "{name}: the bounds hide every entry");
                        self.worst = self.worst.max(agreement.worst);
                    }
                }
            }
        }
    }
}

fn shapes(cell: Cell) -> Vec<Shape> {
    let all = [Shape::Affine, Shape::Multilinear, Shape::Curved(2), Shape::Curved(3)];
    all.into_iter().filter(|&shape| cell.is_factorised() || shape != Shape::Multilinear).collect()
}

/// Returns the geometries that can represent a shape.
fn geometries(shape: Shape) -> Vec<Geometry> {
    match shape {
        Shape::Affine => vec![Geometry::Affine, Geometry::Corners, Geometry::Stored],
        Shape::Multilinear => {
            vec![Geometry::Vertices, Geometry::Corners, Geometry::Nodes(1), Geometry::Stored]
        }
        Shape::Curved(order) => vec![Geometry::Nodes(order), Geometry::Stored],
    }
}

fn rules(cell: Cell, degree: usize, shape: Shape) -> Vec<Rule> {
    if !cell.is_tensor() {
        return vec![default_rule(cell, degree, shape.order(), None)];
    }
    [
        LinePoints::Gauss(degree + 1),
        LinePoints::Gauss(degree + 2),
        LinePoints::GaussLobatto(degree + 1),
    ]
    .map(|line| Rule::Tensor { cell, line })
    .to_vec()
}

const TASKS: [Task; 4] = [Task::Residual, Task::Action, Task::Diagonal, Task::Flux];

fn plans(shape: Shape) -> Vec<Plan> {
    let mut plans = Vec::new();
    for geometry in geometries(shape) {
        for indices in [Indices::Nodes, Indices::Runs, Indices::Dofs] {
            for task in TASKS {
                for linearisation in [Linearisation::Recompute, Linearisation::Stored] {
                    let mut plan = Plan::new(Target::Vectors, task, 4, Precision::F64, geometry);
                    plan.indices = indices;
                    plan.linearisation = linearisation;
                    if linearisation == Linearisation::Recompute || task == Task::Action {
                        plans.push(plan);
                    }
                }
            }
        }
    }
    plans
}

/// Returns whether cells with this plan may have hanging nodes.
fn hangs(plan: &Plan, cell: Cell) -> bool {
    cell.is_factorised() && plan.geometry != Geometry::Corners
}

/// Runs a part of the cases of a cell, to share the work among processors.
fn all_of(cell: Cell, degrees: &[usize], part: usize, parts: usize) {
    let mut tally = Tally { part, parts, ..Tally::default() };
    // Cycles through the less important settings.
    let mut turn = 0;
    for form in forms::all(cell.dim()) {
        for &degree in degrees {
            for shape in shapes(cell) {
                for rule in rules(cell, degree, shape) {
                    for mut plan in plans(shape) {
                        turn += 1;
                        plan.lanes = [4, 8, 2][turn % 3];
                        plan.even_odd = [EvenOdd::Always, EvenOdd::Never][turn / 3 % 2];
                        plan.unroll = [0, 4, 64][turn / 7 % 3];
                        plan.block = [1, 3][turn / 5 % 2];
                        if turn % 11 == 0 {
                            plan.precision = Precision::F32;
                        }
                        plan.hanging = turn % 2 == 1 && hangs(&plan, cell);
                        tally.sample(&Case { form: &form, degree, rule, shape, plan });
                    }
                }
            }
        }
    }
    let (ran, worst) = (tally.ran, 100.0 * tally.worst);
    println!("{cell}: {ran} kernels, {worst:.0} % of the bound; refused: {:#?}", tally.refused);
    assert!(tally.ran * parts >= 100, "{cell}: only {} kernels ran", tally.ran);
    assert!(!cell.is_factorised() || tally.hanging * 4 >= tally.ran, "{cell}: {}", tally.hanging);
}

#[test]
fn lines() {
    all_of(Cell::Interval, &[1, 2, 5], 0, 1);
}

#[test]
fn triangles() {
    all_of(Cell::Triangle, &[1, 2, 3], 0, 1);
}

#[test]
fn quadrilaterals() {
    all_of(Cell::Quadrilateral, &[1, 2, 3], 0, 1);
}

#[test]
fn tetrahedra() {
    all_of(Cell::Tetrahedron, &[1, 2], 0, 1);
}

#[test]
fn a_third_of_hexahedra() {
    all_of(Cell::Hexahedron, &[1, 2], 0, 3);
}

#[test]
fn another_third_of_hexahedra() {
    all_of(Cell::Hexahedron, &[1, 2], 1, 3);
}

#[test]
fn hexahedra_that_are_left() {
    all_of(Cell::Hexahedron, &[1, 2], 2, 3);
}

/// With fewer points than nodes per direction, the collocation derivative is not available, and kernels use another
/// algorithm.
#[test]
fn reduced_quadrature() {
    let mut tally = Tally::default();
    for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
        for form in forms::all(cell.dim()) {
            for (degree, points) in [(1, 1), (2, 1), (2, 2)] {
                for shape in shapes(cell) {
                    for (turn, mut plan) in plans(shape).into_iter().enumerate() {
                        plan.hanging = turn % 2 == 1 && hangs(&plan, cell);
                        let line = LinePoints::Gauss(points);
                        let rule = Rule::Tensor { cell, line };
                        tally.sample(&Case { form: &form, degree, rule, shape, plan });
                    }
                }
            }
        }
    }
    assert!(tally.ran >= 200, "only {} kernels ran", tally.ran);
}

/// Sums over many nodes are loops, whose text does not grow with points and components.
#[test]
fn sums_over_many_nodes_are_loops() {
    let (quad, hex) = (forms::nonlinear_diffusion(2), forms::poisson(3));
    let mut tally = Tally::default();
    for (form, cell, orders) in
        [(&quad, Cell::Quadrilateral, [8, 9]), (&hex, Cell::Hexahedron, [4, 5])]
    {
        for (order, task) in orders.into_iter().flat_map(|order| TASKS.map(|task| (order, task))) {
            let (geometry, shape) = (Geometry::Nodes(order), Shape::Curved(order));
            let mut plan = Plan::new(Target::Vectors, task, 4, Precision::F64, geometry);
            (plan.unroll, plan.indices) = (8, Indices::Nodes);
            let rule = default_rule(cell, 1, 1, None);
            tally.run(&Case { form, degree: 1, rule, shape, plan: plan.clone() });
            let elements = Elements::new(form, cell, 1, rule).expect("elements");
            // Rejected plans are already counted.
            if let Ok((kernel, _)) = kernels_gen::strategy::lower(form, &elements, &plan) {
                assert!(kernel.values.len() < 6000, "{cell}, {order}: {}", kernel.values.len());
            }
        }
    }
    // Test functions also have more nodes than points.
    let line = LinePoints::Gauss(2);
    let rule = Rule::Tensor { cell: Cell::Quadrilateral, line };
    for task in TASKS {
        let mut plan = Plan::new(Target::Vectors, task, 4, Precision::F64, Geometry::Vertices);
        plan.indices = Indices::Nodes;
        tally.run(&Case { form: &quad, degree: 8, rule, shape: Shape::Multilinear, plan });
    }
    assert!(tally.ran >= 4 * TASKS.len(), "{:#?}", tally.refused);
}

#[test]
fn high_degrees() {
    let quad = forms::nonlinear_diffusion(2);
    let hex = forms::poisson(3);
    let mut tally = Tally::default();
    for (form, cell, degrees) in
        [(&quad, Cell::Quadrilateral, 4..=12), (&hex, Cell::Hexahedron, 3..=5)]
    {
        for degree in degrees {
            for task in TASKS {
                let rule = default_rule(cell, degree, 1, None);
                let mut plan =
                    Plan::new(Target::Vectors, task, 4, Precision::F64, Geometry::Vertices);
                plan.indices = Indices::Runs;
                let hanging = Plan { hanging: true, indices: Indices::Dofs, ..plan.clone() };
                for plan in [plan, hanging] {
                    tally.run(&Case { form, degree, rule, shape: Shape::Multilinear, plan });
                }
            }
        }
    }
    assert_eq!(tally.ran, 2 * TASKS.len() * 12, "{:#?}", tally.refused);
}

/// Lines of all degrees, and pairs of them.
#[test]
fn lines_of_all_degrees_and_pairs() {
    let form = forms::nonlinear_diffusion(1);
    let mut tally = Tally::default();
    for degree in 1..=12 {
        for task in TASKS {
            let rule = default_rule(Cell::Interval, degree, 1, None);
            let plan = Plan::new(Target::Vectors, task, 4, Precision::F64, Geometry::Affine);
            tally.run(&Case { form: &form, degree, rule, shape: Shape::Affine, plan });
        }
    }
    assert_eq!(tally.ran, TASKS.len() * 12, "{:#?}", tally.refused);
    let text = "form pairs {
        field u: scalar in L2(k);
        f0[u] = u;
        on interior {
            f0[jump(u)] = n[0] * avg(u^2) + avg(penalty(u)) * jump(u) - dot(avg(h * grad(u)), n);
            f1[avg(u)] = -jump(u) * n;
        }
    }";
    let (program, found) = fem_dsl::program::compile(&Source::new("pairs", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    let mut form = program.point_form("pairs", 1).expect("a form of lines");
    // The reference evaluates all integrals of a form.
    form.integrals.retain(|integral| integral.region.is_interior());
    let mut ran = 0;
    for (degree, shape) in [(1, Shape::Affine), (2, Shape::Curved(2)), (4, Shape::Affine)] {
        let rule = default_rule(Cell::Interval, degree, shape.order(), None);
        let geometry = Geometry::Nodes(shape.order());
        let elements = Elements::new(&form, Cell::Interval, degree, rule).expect("elements");
        let setting = Setting::new(&form, degree, rule, shape, geometry, CELLS);
        let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
        for task in [Task::Residual, Task::Action, Task::Diagonal] {
            for target in [Target::Vectors, Target::Threads] {
                let scatter = Scatter::Atomic;
                let own = Plan::new(target, task, 4, Precision::F64, geometry);
                let plan = Plan { scatter, ..own };
                let runner = Interpreted {
                    form: &form,
                    elements: &elements,
                    threads: target == Target::Threads,
                };
                let agreement = launcher.compare(&plan, &runner);
                let agreement = agreement.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
                assert!(agreement.seen > 0, "{plan:?}");
                ran += 1;
            }
        }
    }
    assert_eq!(ran, 18);
}

#[test]
fn all_that_hangs_of_quadrilaterals() {
    let form = forms::nonlinear_diffusion(2);
    let how = (Target::Vectors, Strategy::CellPerLane, 8);
    assert_eq!(hanging::all_that_hangs(&form, Cell::Quadrilateral, &[how]), [8 * 6]);
}

#[test]
fn all_that_hangs_of_hexahedra() {
    let form = forms::nonlinear_diffusion(3);
    let how = (Target::Vectors, Strategy::CellPerLane, 8);
    assert!(hanging::all_that_hangs(&form, Cell::Hexahedron, &[how])[0] >= 2 * 6);
}

/// Facets of cells with all hanging words, with values and gradients, for vectors and for threads.
#[test]
fn facets_of_cells_that_hang() {
    for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
        let form = forms::on_boundary(cell.dim());
        for target in [Target::Vectors, Target::Threads] {
            facets::facets_that_hang(&form, cell, target);
        }
    }
}

/// The same of forms with a field in Hcurl or Hdiv.
#[test]
fn pairs_of_cells_with_vectors() {
    let lanes = |precision| if precision == Precision::F32 { 8 } else { 4 };
    let mut larger = 0;
    for drawn in between::draw(Target::Vectors, lanes, between::VECTORS, 24) {
        let between::Case { form, elements, degree, rule, shape, plan, .. } = &drawn;
        let setting = Setting::new(form, *degree, *rule, *shape, plan.geometry, CELLS);
        let launcher = Launcher { form, elements, setting: &setting };
        let agreement = launcher.compare(plan, &Interpreted { form, elements, threads: false });
        let name = format!("seed {} on {rule}, {shape:?}: {plan:?}", drawn.seed);
        let agreement = agreement.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(agreement.seen > 0 || plan.precision == Precision::F32, "{name}");
        larger += usize::from(plan.larger.is_some());
    }
    assert!(larger > 0);
}

/// Random kernels between cells, with all orientations of the facet.
#[test]
fn pairs_of_cells() {
    let lanes = |precision| if precision == Precision::F32 { 8 } else { 4 };
    let (mut cells, mut larger, mut hanging) = (0, 0, 0);
    let mut orientations = BTreeMap::<String, BTreeSet<u8>>::new();
    for drawn in between::draw(Target::Vectors, lanes, 1, 80) {
        let between::Case { form, elements, degree, rule, shape, plan, .. } = &drawn;
        let setting = Setting::new(form, *degree, *rule, *shape, plan.geometry, CELLS);
        let launcher = Launcher { form, elements, setting: &setting };
        let name = format!("seed {} on {rule}, {shape:?}: {plan:?}", drawn.seed);
        let agreement = launcher.compare(plan, &Interpreted { form, elements, threads: false });
        let agreement = agreement.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(agreement.seen > 0 || plan.precision == Precision::F32, "{name}");
        cells += usize::from(plan.indices == Indices::Cells);
        larger += usize::from(plan.larger.is_some());
        hanging += usize::from(plan.hanging);
        let seen = orientations.entry(rule.cell().to_string()).or_default();
        seen.extend(setting.pairs(plan).iter().map(|(_, turns)| turns[1].2));
    }
    println!("{cells} of whole cells, {larger} of two sizes, {hanging} hanging, {orientations:?}");
    assert!(cells > 8 && larger > 10 && hanging > 10);
    assert!(
        orientations
            .iter()
            .all(|(cell, seen)| { seen.len() == cell.parse().map_or(0, Cell::facet_orientations) })
    );
}
