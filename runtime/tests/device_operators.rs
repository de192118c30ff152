//! Operators on a device against those of the CPU: residual, action and diagonal of forms with parameters and auxiliary
//! data, on straight and curved meshes of all cells, with essential boundary conditions on some degrees of freedom.
//!
//! Kernels are compared with the reference elsewhere. These tests cover tables, classes of cells, states, constraints
//! and their rows.

#[path = "device/devices.rs"]
mod devices;
#[path = "device/matrices.rs"]
mod matrices;
#[path = "device/meshes.rs"]
mod meshes;
#[path = "device/parts.rs"]
mod parts;

use fem_dsl::point::PointForm;
use fem_dsl::program::compile as compile_form;
use fem_dsl::source::Source;
use kernels_gen::abi::{Precision, Role, Slots};
use kernels_gen::choose::PlanOverrides;
use kernels_gen::element::Lagrange;
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, Plan, Scatter, Strategy, Task};
use meshes::{WALL, adapted, boxed, made, periodic, slipping};
use parts::Part;
use runtime::algebra::vector::{Vector, epsilon};
use runtime::device::Device;
use runtime::device::opencl::OpenCl;
use runtime::kernels::compile::{
    DeviceKernels, Execution, Target, compile, compile_for_device, facts,
};
use runtime::kernels::representation::Representation;
use runtime::mesh::{Mesh, gmsh};
use runtime::operator::Operator;
use runtime::solve::{LinearOperator, NonlinearSystem};
use runtime::space::constraint::oblique::NodeConditions;
use runtime::space::discretisation::{AuxValues, Discretisation};
use std::path::Path;
use std::sync::Arc;

const SCALAR: &str = "form f { field u: scalar; param a = 2; aux c: scalar on nodes; aux d: vector on cells; \
     f0[u] = a * c * u^3 + x[0] * d[0]; f1[u] = (1 + u^2) * grad(u) + d; }";
const VECTOR: &str = "form f { field u: vector; param mu = 0.7; aux c: scalar on points; \
     f0[u] = c * u; f1[u] = 2 * mu * sym(grad(u)) + (1 + t) * tr(grad(u)) * I; }";

const MIXED: &str = "form f { field v: vector in H1(k + 1); field s: scalar; param a = 0.7; \
     f0[v] = grad(v) * v + s * grad(s); f1[v] = a * grad(v) - s * I; f0[s] = s^3 - div(v); f1[s] = (1 + s^2) * grad(s); }";

const STOKES: &str = "form f { field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = 0.7; \
     f1[u] = nu * grad(u) - p * I; f0[p] = -div(u); }";

const BOUNDARY: &str = "form f { field u: vector; param a = 0.7; f1[u] = sym(grad(u)); \
     on boundary \"x1\", \"y1\" { f0[u] = a * n + outer(n, n) * u; f1[u] = outer(u, n) + dot(u, x) * grad(u); } \
     on boundary \"y1\" { f0[u] = h * x; } }";

const JUMPS: &str = "form f { field u: vector; field p: scalar in L2(k - 1); param a = 0.7; \
     f1[u] = a * grad(u) - p * I; f0[p] = p^3 - div(u); f1[p] = u + grad(p); \
     on boundary \"x1\" { f0[u] = a * p * n; f0[p] = dot(u, n) + p^2; f1[p] = u + n; } }";
const ALONE: &str = "form f { field s: scalar; field u: vector in L2(k); param a = 0.7; \
     f0[s] = s; f0[u] = a * u + s^2 * x; f1[u] = outer(u, u) + grad(u); }";

const REGIONS: &str = "form f { field u: scalar; f0[u] = u^3; f1[u] = (1 + u^2) * grad(u); \
     on cells \"left\" { f1[u] = 3 * grad(u); f0[u] = x[0] * u; } on cells \"right\", \"left\" { f0[u] = u^2; } \
     on boundary \"x1\" { f0[u] = u; } }";

const TASKS: [Task; 3] = [Task::Residual, Task::Action, Task::Diagonal];

/// Cases with long compilation whose features occur in other cases: in two dimensions, with another strategy, or
/// another scatter.
const AT_LENGTH: [&str; 25] = [
    "hexahedra, slip of degree 1",
    "hexahedra, a thread a line of degree 4",
    "hexahedra, periodic by lines of degree 3",
    "hexahedra, a vector",
    "hexahedra, a thread a cell",
    "hexahedra, boundary",
    "curved hexahedra of",
    "hexahedra, regions by lines",
    "hexahedra that hang, by lines",
    "tetrahedra, boundary",
    "hexahedra, two fields of",
    "hexahedra, discontinuous of",
    "tetrahedra, discontinuous",
    "tetrahedra, two fields",
    "hexahedra that slip and hang",
    "hexahedra that hang, two fields",
    "curved hexahedra that hang",
    "periodic hexahedra that hang",
    "hexahedra, discontinuous last",
    "hexahedra, long lines",
    "curved hexahedra, a thread a line of degree 2",
    "tetrahedra, periodic",
    "tetrahedra, regions",
    "curved hexahedra, a thread a line of degree 3",
    "hexahedra, discontinuous by lines",
];

/// A case: description, mesh, form, degree and precision.
type Case = (&'static str, Mesh, &'static str, usize, Precision);

/// Returns the devices; on PoCL without optimisation, for shorter compilation. `opencl_kernels` and all solves test
/// optimised kernels.
fn devices() -> Vec<Arc<dyn Device>> {
    let unhurried = |device: Arc<dyn Device>| match parts::is_slow(&*device) {
        true => Arc::new(OpenCl::new().expect("the same device").unoptimised()) as Arc<dyn Device>,
        _ => device,
    };
    devices::devices().into_iter().map(unhurried).collect()
}

fn cases() -> Vec<Case> {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meshes").join(name);
        gmsh::read(&path).expect("a mesh")
    };
    let ball = made("ball", &[], &[("dim", 3.0), ("refine", 1.0), ("order", 2.0)]);
    let disc = made("ball", &[], &[("dim", 2.0), ("refine", 1.0), ("order", 2.0)]);
    let (double, single) = (Precision::F64, Precision::F32);
    vec![
        ("quadrilaterals", boxed("quad", 2.0, 9.0, 0.1), SCALAR, 2, double),
        ("quadrilaterals", boxed("quad", 2.0, 9.0, 0.1), VECTOR, 1, single),
        ("curved quadrilaterals", file("plate_hole_quad9.msh"), SCALAR, 2, double),
        ("triangles", boxed("tri", 2.0, 8.0, 0.0), VECTOR, 2, double),
        ("hexahedra", boxed("hex", 3.0, 5.0, 0.1), SCALAR, 1, double),
        ("hexahedra, a thread a line", boxed("hex", 3.0, 4.0, 0.1), SCALAR, 3, double),
        ("hexahedra, a thread a line", boxed("hex", 3.0, 3.0, 0.1), SCALAR, 4, double),
        ("hexahedra, a vector", boxed("hex", 3.0, 5.0, 0.1), VECTOR, 1, double),
        ("curved hexahedra", ball.clone(), SCALAR, 1, single),
        ("curved hexahedra, a thread a line", ball.clone(), SCALAR, 3, double),
        ("curved hexahedra, a thread a line", ball.clone(), VECTOR, 2, double),
        ("tetrahedra", boxed("tet", 3.0, 3.0, 0.0), SCALAR, 2, double),
        ("curved tetrahedra", file("bracket_tet10.msh"), VECTOR, 1, double),
        ("quadrilaterals, two fields", boxed("quad", 2.0, 9.0, 0.1), MIXED, 2, double),
        ("tetrahedra, two fields", boxed("tet", 3.0, 3.0, 0.0), MIXED, 1, single),
        ("hexahedra, two fields", boxed("hex", 3.0, 4.0, 0.1), MIXED, 1, double),
        ("hexahedra, two fields by lines", boxed("hex", 3.0, 4.0, 0.1), STOKES, 2, double),
        ("quadrilaterals, boundary", boxed("quad", 2.0, 9.0, 0.1), BOUNDARY, 2, double),
        ("tetrahedra, boundary", boxed("tet", 3.0, 3.0, 0.0), BOUNDARY, 2, single),
        ("hexahedra, boundary", boxed("hex", 3.0, 4.0, 0.1), BOUNDARY, 2, double),
        // Interior entries of cells are stored, and facets add to them.
        ("hexahedra, boundary by lines", boxed("hex", 3.0, 2.0, 0.1), BOUNDARY, 4, double),
        ("quadrilaterals, regions", boxed("quad", 2.0, 9.0, 0.1), REGIONS, 2, double),
        ("tetrahedra, regions", boxed("tet", 3.0, 3.0, 0.0), REGIONS, 1, double),
        ("hexahedra, regions by lines", boxed("hex", 3.0, 3.0, 0.1), REGIONS, 4, double),
        ("hexahedra, long lines", boxed("hex", 3.0, 2.0, 0.1), VECTOR, 6, single),
        ("quadrilaterals, constant in cells", boxed("quad", 2.0, 9.0, 0.1), JUMPS, 1, double),
        ("hexahedra, discontinuous", boxed("hex", 3.0, 4.0, 0.1), JUMPS, 2, double),
        ("tetrahedra, discontinuous", boxed("tet", 3.0, 3.0, 0.0), JUMPS, 2, single),
        ("triangles, discontinuous", boxed("tri", 2.0, 8.0, 0.0), ALONE, 1, double),
        ("hexahedra, discontinuous last", boxed("hex", 3.0, 4.0, 0.1), ALONE, 1, double),
        ("quadrilaterals, periodic", periodic("quad", 2.0, 9.0), SCALAR, 1, double),
        ("hexahedra, periodic by lines", periodic("hex", 3.0, 3.0), VECTOR, 3, double),
        ("hexahedra, a cell that meets itself", periodic("hex", 3.0, 1.0), VECTOR, 2, double),
        ("tetrahedra, periodic", periodic("tet", 3.0, 3.0), MIXED, 2, double),
        ("quadrilaterals that hang", adapted(boxed("quad", 2.0, 5.0, 0.1), 2), BOUNDARY, 2, double),
        (
            "quadrilaterals that hang, two fields",
            adapted(boxed("quad", 2.0, 5.0, 0.1), 1),
            MIXED,
            1,
            double,
        ),
        ("curved quadrilaterals that hang", adapted(disc.clone(), 1), SCALAR, 2, single),
        (
            "periodic quadrilaterals that hang",
            adapted(periodic("quad", 2.0, 4.0), 1),
            REGIONS,
            2,
            double,
        ),
        (
            "hexahedra that hang, two fields",
            adapted(boxed("hex", 3.0, 3.0, 0.1), 1),
            MIXED,
            1,
            double,
        ),
        (
            "hexahedra that hang, by lines",
            adapted(boxed("hex", 3.0, 2.0, 0.1), 1),
            VECTOR,
            3,
            double,
        ),
        ("curved hexahedra that hang", adapted(ball.clone(), 1), SCALAR, 2, single),
        ("periodic hexahedra that hang", adapted(periodic("hex", 3.0, 2.0), 1), REGIONS, 4, double),
        ("hexahedra that slip and hang", adapted(slipping("hex", 3.0, 2.0), 1), VECTOR, 2, double),
        ("triangles, slip", slipping("tri", 2.0, 8.0), VECTOR, 2, double),
        ("hexahedra, slip", slipping("hex", 3.0, 4.0), VECTOR, 1, double),
        ("hexahedra, slip by lines", slipping("hex", 3.0, 3.0), VECTOR, 3, single),
    ]
}

/// Cases for scatter algorithms without atomic additions, each with a strategy. There are several batches per colour,
/// and several cells per thread group. Each strategy and each kind of form occurs with both.
fn scattered() -> Vec<(Case, Option<Strategy>, &'static [Scatter])> {
    const COLOURED: &[Scatter] = &[Scatter::Coloured];
    const OWNER: &[Scatter] = &[Scatter::Owner];
    const BOTH: &[Scatter] = &[Scatter::Coloured, Scatter::Owner];
    let (double, single) = (Precision::F64, Precision::F32);
    let (lane, node) = (Some(Strategy::CellPerLane), Some(Strategy::ThreadPerDof));
    let line = Some(Strategy::ThreadPerLine { cells: 0 });
    let transposition = Some(Strategy::ThreadTransposition { blocks: 1, batches: 2 });
    let quads = |cells| boxed("quad", 2.0, cells, 0.1);
    let hexes = |cells| boxed("hex", 3.0, cells, 0.1);
    let ball = made("ball", &[], &[("dim", 3.0), ("refine", 1.0), ("order", 2.0)]);
    vec![
        (("quadrilaterals", quads(40.0), VECTOR, 1, single), lane, BOTH),
        (("hexahedra, a thread a cell", hexes(6.0), SCALAR, 1, double), None, BOTH),
        (("hexahedra", hexes(4.0), VECTOR, 2, double), line, COLOURED),
        (("hexahedra", hexes(4.0), SCALAR, 2, double), node, OWNER),
        (("triangles", boxed("tri", 2.0, 8.0, 0.0), VECTOR, 2, double), transposition, BOTH),
        (("tetrahedra, Stokes", boxed("tet", 3.0, 3.0, 0.0), STOKES, 2, double), None, BOTH),
        (("hexahedra, boundary", hexes(4.0), BOUNDARY, 1, double), None, COLOURED),
        (("quadrilaterals, boundary", quads(9.0), BOUNDARY, 1, double), None, OWNER),
        (("quadrilaterals, two fields", quads(9.0), MIXED, 1, double), None, COLOURED),
        (("hexahedra, discontinuous by lines", hexes(4.0), JUMPS, 2, double), line, OWNER),
        (("quadrilaterals, discontinuous", quads(9.0), JUMPS, 2, double), line, COLOURED),
        (("hexahedra, Stokes", hexes(4.0), STOKES, 2, single), line, OWNER),
        (("quadrilaterals, regions", quads(9.0), REGIONS, 2, double), line, BOTH),
        (("quadrilaterals, two fields", quads(9.0), STOKES, 3, double), node, COLOURED),
        (("quadrilaterals that hang", adapted(quads(6.0), 1), SCALAR, 2, double), line, BOTH),
        (("hexahedra that hang", adapted(hexes(2.0), 1), STOKES, 2, double), node, OWNER),
        // Point data is stored in the batches of its readers.
        (("curved hexahedra", ball, VECTOR, 2, double), line, OWNER),
    ]
}

/// Conditions on a part of the boundary (on one component, if there are several), and auxiliary data.
fn discretise(form: &PointForm, elements: &Elements, mesh: Mesh) -> Discretisation {
    let mut on = Discretisation::new(mesh, &elements.spaces()).expect("spaces");
    for (field, components) in on.fields.iter_mut().zip(&elements.components) {
        let points = field.space.points(&on.mesh, &on.partition).expect("points");
        let boundary = field.space.nodes_on(&on.mesh.boundary());
        let part: Vec<u32> =
            boundary.into_iter().filter(|&node| points[node as usize][0] < 0.6).collect();
        let component = (*components > 1).then_some(1);
        let fixed = field.constraints.fix(&part, component, &points, |x, values| {
            values.fill(0.25 + x[1]);
        });
        fixed.expect("conditions");
        let wall = on.mesh.facet_tags().get(WALL).map_or(&[][..], Vec::as_slice);
        for node in field.space.nodes_on(wall) {
            let mut rows = NodeConditions::default();
            let own = field.constraints.is_constrained(node as usize * components + 1);
            if own {
                rows.add([0.0, 1.0, 0.0], 0.5, 0.5);
            }
            let row = if *components == 2 { [0.6, 0.8, 0.0] } else { [0.48, 0.64, 0.6] };
            rows.add(row, 0.25, 0.5);
            field.constraints.hold_rows(node, &rows);
        }
    }
    on.find_regions(form).expect("tags of the mesh");
    let numbers = |n: usize| -> Vec<f64> { (0..n).map(|i| 1.0 + (i as f64).sin()).collect() };
    let cells = on.mesh.n_cells();
    on.aux = match form.aux.len() {
        0 => Vec::new(),
        1 => vec![AuxValues::at_points(numbers(cells * elements.rule.points().len()))],
        _ => {
            let element = elements.aux[0].expect("data at nodes");
            let space = on.aux_space(element, 1).expect("a space");
            let nodes = numbers(space.n_nodes());
            let dim = on.mesh.dim();
            vec![AuxValues::at_nodes(space, nodes), AuxValues::on_cells(numbers(cells * dim))]
        }
    };
    on
}

/// Returns the residual R(u), the action J(u) w and the diagonal of J(u).
fn results(system: &mut dyn NonlinearSystem, state: &Vector, direction: &Vector) -> [Vec<f64>; 3] {
    let [mut residual, mut action, mut diagonal] = [state.like(), state.like(), state.like()];
    // Old contents must not matter: 1, also in padding.
    [&mut residual, &mut action, &mut diagonal].into_iter().for_each(Vector::make_positive);
    system.residual(state, &mut residual).expect("R");
    system.linearise(state).expect("J");
    system.jacobian().apply(direction, &mut action).expect("J w");
    system.diagonal(&mut diagonal).expect("the diagonal");
    [residual, action, diagonal].map(|vector| {
        let (norm, numbers) = (vector.norm(), vector.to_vec());
        let own = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
        assert!((norm - own).abs() <= 1e-5 * own, "{norm} is not {own}");
        numbers
    })
}

fn values(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed) % 1009) as f64 / 1009.0 - 0.5).collect()
}

/// Input of a computation.
struct Setting {
    name: String,
    form: PointForm,
    elements: Elements,
    on: Arc<Discretisation>,
    precision: Precision,
    params: [f64; 2],
}

impl Setting {
    fn new((name, mesh, text, degree, precision): Case) -> Self {
        let (program, diagnostics) = compile_form(&Source::new("form.wf", text));
        assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:?}");
        let form = program.expect("a form").point_form("f", mesh.dim()).expect("a point form");
        // The rule of straight cells, for which the bound below was set; `conformance` has the default rule, with
        // bounds of its terms.
        let rule = (name == "curved quadrilaterals").then(|| (2 * degree).into());
        let elements = elements(&form, mesh.cell(), degree, mesh.order(), rule).expect("elements");
        let on = Arc::new(discretise(&form, &elements, mesh));
        let name = format!("{name} of degree {degree}");
        Self { name, form, elements, on, precision, params: [0.3, 1.7] }
    }

    /// Returns whether PoCL compiles the case for ten or twenty seconds; variants of it are tested.
    fn takes_long(&self, device: &Arc<dyn Device>) -> bool {
        AT_LENGTH.iter().any(|long| self.name.starts_with(long)) && parts::is_slow(&**device)
    }

    /// Returns the CPU results, by interpreted kernels.
    fn on_the_processor(&self) -> [Vec<f64>; 3] {
        let Self { form, elements, on, precision, params, .. } = self;
        let execution = Execution::Interpreted;
        let target = Target { precision: *precision, execution, ..Target::native() };
        let compiled = compile(form, elements, &facts(on), &TASKS, &target).expect("kernels");
        let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
        let operator = Operator::on_host(on.clone(), module, kernels, *precision, params, false);
        let mut operator = operator.expect("an operator");
        let n = on.n_dofs();
        let state = Vector::from_slice(&values(n, 1), *precision);
        let direction = Vector::from_slice(&values(n, 500), *precision);
        results(&mut operator, &state, &direction)
    }

    /// Returns the kernels of a device.
    fn compiled(&self, device: &Arc<dyn Device>, wishes: &PlanOverrides) -> DeviceKernels {
        self.compiled_for(&TASKS, device, wishes)
    }

    fn compiled_for(
        &self,
        tasks: &[Task],
        device: &Arc<dyn Device>,
        wishes: &PlanOverrides,
    ) -> DeviceKernels {
        let Self { form, elements, on, precision, .. } = self;
        let (device, facts) = (Arc::clone(device), facts(on));
        let compiled =
            compile_for_device(form, elements, &facts, tasks, device, *precision, wishes);
        compiled.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns the results of a device, computed twice.
    fn on_a_device(&self, device: &Arc<dyn Device>, wishes: &PlanOverrides) -> [[Vec<f64>; 3]; 2] {
        self.with(self.compiled(device, wishes), wishes)
    }

    /// Returns an operator with a device's kernels.
    fn operator(&self, compiled: DeviceKernels) -> Operator {
        let Self { on, params, .. } = self;
        let wrong = vec![0.5; params.len()];
        let operator = Operator::on_device(on.clone(), Arc::new(compiled), &wrong, false);
        let mut operator = operator.expect("an operator");
        operator.set_params(params).expect("other parameters");
        operator
    }

    /// Returns the state, and the direction of the Jacobian.
    fn vectors(&self, operator: &Operator) -> [Vector; 2] {
        [1, 500].map(|seed| {
            let mut vector = operator.vector();
            vector.set(&values(self.on.n_dofs(), seed));
            vector
        })
    }

    /// Returns the results of a device's kernels, computed twice.
    fn with(&self, compiled: DeviceKernels, wishes: &PlanOverrides) -> [[Vec<f64>; 3]; 2] {
        let Self { on, precision, .. } = self;
        if let Some(scatter) = wishes.scatter {
            // Facets add one by one, even if cells sum first.
            let is = |plan: &Plan| plan.scatter == scatter || plan.integral > 0;
            assert!(compiled.plans.iter().all(is), "{scatter}");
        }
        let mut operator = self.operator(compiled);
        let [state, direction] = self.vectors(&operator);
        let found = [(); 2].map(|()| results(&mut operator, &state, &direction));
        operator.finish().expect("no failure");
        let mut initial = operator.vector();
        operator.impose(&mut initial).expect("values of conditions");
        let initial = initial.to_vec();
        let mut wanted = Vector::zeros(on.n_dofs(), *precision);
        on.conditions().for_each(|(dof, value)| wanted.set_entry(dof, value));
        for (number, field) in on.fields.iter().enumerate() {
            let (start, components) = (on.dofs_of(number).start, field.space.components());
            for oblique in field.constraints.oblique() {
                let first = start + oblique.node as usize * components;
                let values = oblique.value.iter().take(components).enumerate();
                let values =
                    values.filter(|(c, _)| !field.constraints.is_constrained(first - start + c));
                values.for_each(|(c, &value)| wanted.set_entry(first + c, value));
            }
        }
        for (found, wanted) in initial.iter().zip(wanted.to_vec()) {
            // For conditions on combinations, the device computes the components.
            assert!((found - wanted).abs() <= 2.0 * epsilon(*precision) * wanted.abs());
        }
        found
    }

    /// Asserts that both agree, and that rows of constrained degrees of freedom are those of the identity.
    fn compare(&self, found: &[Vec<f64>; 3], wanted: &[Vec<f64>; 3], what: &str) {
        for ((task, found), wanted) in TASKS.into_iter().zip(found).zip(wanted) {
            self.compare_one(task, found, wanted, what);
        }
    }

    fn compare_one(&self, task: Task, found: &[f64], wanted: &[f64], what: &str) {
        let (name, on, precision) = (&self.name, &self.on, self.precision);
        let fixed: Vec<usize> = on.conditions().map(|(dof, _)| dof).collect();
        assert!(!fixed.is_empty() && fixed.len() < on.n_dofs() / 2, "{name}");
        let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let bound = 200.0 * epsilon(precision) * most;
        let worst = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
        // A NaN is the largest error.
        let worst = worst.fold(0.0, |most: f64, next| if next <= most { most } else { next });
        assert!(worst <= bound && most > 0.0, "{name}, {task:?} on {what}: {worst:e} of {most:e}");
        let direction = Vector::from_slice(&values(on.n_dofs(), 500), precision);
        for &dof in &fixed {
            let row = match task {
                Task::Residual => 0.0,
                Task::Action => direction.get(dof),
                _ => 1.0,
            };
            assert_eq!(found[dof], row, "row {dof} of {task:?}");
        }
    }
}

/// Returns the part of a test for this process.
fn part(test: &str, devices: &[Arc<dyn Device>]) -> Option<Part> {
    parts::part(test, devices.iter().map(Arc::as_ref))
}

/// Returns the cases of a part.
fn own<T>(part: Part, cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().enumerate().filter_map(move |(i, case)| part.has(i).then_some(case))
}

#[test]
fn operators_agree_with_the_processors() {
    let devices = devices();
    if devices.is_empty() {
        return;
    }
    let Some(part) = part("operators_agree_with_the_processors", &devices) else { return };
    for case in own(part, cases()) {
        let setting = Setting::new(case);
        let wanted = setting.on_the_processor();
        for device in &devices {
            if setting.takes_long(device) {
                continue;
            }
            let [found, _] = setting.on_a_device(device, &PlanOverrides::default());
            setting.compare(&found, &wanted, &format!("{device:?}"));
        }
    }
}

#[test]
fn without_atomic_additions_results_are_the_same_and_so_are_their_bits() {
    let devices = devices();
    if devices.is_empty() {
        return;
    }
    let Some(part) =
        part("without_atomic_additions_results_are_the_same_and_so_are_their_bits", &devices)
    else {
        return;
    };
    for (number, (case, strategy, ways)) in own(part, scattered().into_iter().enumerate()) {
        let setting = Setting::new(case);
        let wanted = setting.on_the_processor();
        for device in &devices {
            if setting.takes_long(device) {
                continue;
            }
            // Only one of both if compilation takes seconds.
            let slow = parts::is_slow(&**device);
            let ways = if slow { &ways[number % ways.len()..][..1] } else { ways };
            for &scatter in ways {
                let wishes =
                    PlanOverrides { scatter: Some(scatter), strategy, ..PlanOverrides::default() };
                let [found, again] = setting.on_a_device(device, &wishes);
                setting.compare(&found, &wanted, &format!("{device:?}, {scatter}"));
                // No bit may depend on the order of threads.
                assert!(found == again, "{}, {scatter} on {device:?}", setting.name);
            }
        }
    }
}

/// Cells that sum batch by batch: full batches, batches that end early for lack of slots, and several batches per
/// thread group.
#[test]
fn batches_sum_before_they_add() {
    let (double, single) = (Precision::F64, Precision::F32);
    let ball = made("ball", &[], &[("dim", 3.0), ("refine", 1.0), ("order", 2.0)]);
    let tets = || boxed("tet", 3.0, 5.0, 0.0);
    let (lane, few) = (Some(Strategy::CellPerLane), Some(Slots { count: 32, terms: 3 }));
    let transposition = Some(Strategy::ThreadTransposition { blocks: 1, batches: 2 });
    let several = Some(Strategy::ThreadTransposition { blocks: 2, batches: 1 });
    let cases: [(Case, Option<Strategy>, Option<Slots>); 8] = [
        (("tetrahedra", tets(), SCALAR, 1, double), None, None),
        (("tetrahedra", tets(), VECTOR, 1, double), None, few),
        (("tetrahedra", tets(), VECTOR, 1, single), transposition, None),
        (("triangles", boxed("tri", 2.0, 20.0, 0.0), SCALAR, 1, double), several, few),
        (
            ("hexahedra, a thread a cell", boxed("hex", 3.0, 5.0, 0.1), VECTOR, 1, double),
            lane,
            None,
        ),
        (("curved hexahedra", ball, SCALAR, 1, double), lane, few),
        (
            ("quadrilaterals, two fields", boxed("quad", 2.0, 9.0, 0.1), MIXED, 1, double),
            lane,
            None,
        ),
        (
            ("tetrahedra with a boundary", boxed("tet", 3.0, 3.0, 0.0), BOUNDARY, 1, double),
            None,
            None,
        ),
    ];
    let devices = devices();
    if devices.is_empty() {
        return;
    }
    let Some(part) = part("batches_sum_before_they_add", &devices) else { return };
    for (case, strategy, slots) in own(part, cases) {
        let setting = Setting::new(case);
        let wanted = setting.on_the_processor();
        for device in &devices {
            // Compilation takes half a minute on PoCL; the next case covers this strategy with slots.
            let again = strategy == transposition && parts::is_slow(&**device);
            if again || setting.takes_long(device) {
                continue;
            }
            let scatter = Some(Scatter::Block);
            let wishes = PlanOverrides { scatter, strategy, slots, ..PlanOverrides::default() };
            let [found, _] = setting.on_a_device(device, &wishes);
            setting.compare(&found, &wanted, &format!("{device:?}, {strategy:?}, {slots:?}"));
        }
    }
}

/// Tables that exceed constant memory are passed as arguments.
#[test]
fn large_tables_may_lie_elsewhere() {
    let tetrahedra = || boxed("tet", 3.0, 2.0, 0.0);
    let transposition = Strategy::ThreadTransposition { blocks: 1, batches: 1 };
    let cases: [(Case, Strategy); 2] = [
        (("tetrahedra", tetrahedra(), SCALAR, 4, Precision::F32), transposition),
        (("tetrahedra", tetrahedra(), SCALAR, 4, Precision::F64), Strategy::CellPerLane),
    ];
    let devices = devices();
    if devices.is_empty() {
        return;
    }
    let Some(part) = part("large_tables_may_lie_elsewhere", &devices) else { return };
    for (case, strategy) in own(part, cases) {
        let setting = Setting::new(case);
        let wanted = setting.on_the_processor();
        for device in &devices {
            let wishes = PlanOverrides { strategy: Some(strategy), ..PlanOverrides::default() };
            let compiled = setting.compiled(device, &wishes);
            // CUDA stores tables read at divergent positions in separate memory.
            let others = device.words().spread.is_some() && strategy == transposition;
            let handed = compiled.kernels().any(|(_, kernel)| {
                kernel.abi().arguments.iter().any(|argument| argument.role == Role::Tables)
            });
            assert_eq!(handed, !others, "{strategy:?} on {device:?}");
            let [found, _] = setting.with(compiled, &wishes);
            setting.compare(&found, &wanted, &format!("{device:?}, {strategy:?}"));
        }
    }
}

#[test]
fn nodes_inside_of_cells_may_have_conditions() {
    let mesh = boxed("hex", 3.0, 2.0, 0.1);
    let mut setting = Setting::new(("hexahedra", mesh, VECTOR, 4, Precision::F64));
    let on = Arc::get_mut(&mut setting.on).expect("nobody else has it");
    let field = &mut on.fields[0];
    let points = field.space.points(&on.mesh, &on.partition).expect("points");
    let inside = field.space.nodal().nodes().iter().rposition(|node| node.dim == 3);
    let cell = field.space.nodes().chunks(125).next_back().expect("a cell");
    let inside = cell[inside.expect("a node inside")];
    field
        .constraints
        .fix(&[inside], Some(2), &points, |_, values| values.fill(0.5))
        .expect("a node");
    let wanted = setting.on_the_processor();
    for device in &devices() {
        for found in setting.on_a_device(device, &PlanOverrides::default()) {
            setting.compare(&found, &wanted, &format!("{device:?}"));
        }
    }
}

#[test]
fn vectors_of_another_place_are_refused() {
    for device in devices() {
        let (program, _) = compile_form(&Source::new(
            "form.wf",
            "form f { field u: scalar; f0[u] = u; f1[u] = grad(u); }",
        ));
        let mesh = made("box", &[], &[("dim", 2.0), ("cells", 3.0)]);
        let form = program.expect("a form").point_form("f", 2).expect("a point form");
        let elements = elements(&form, mesh.cell(), 1, 1, None).expect("elements");
        let element = Lagrange::continuous(mesh.cell(), 1).expect("an element");
        let on = Arc::new(Discretisation::new(mesh, &[(element, 1)]).expect("a space"));
        let (tasks, wishes) = ([Task::Action], PlanOverrides::default());
        let precision = Precision::F64;
        let compiled =
            compile_for_device(&form, &elements, &facts(&on), &tasks, device, precision, &wishes);
        let compiled = Arc::new(compiled.expect("kernels"));
        let operator = Operator::on_device(on.clone(), compiled, &[0.0], true);
        let operator = operator.expect("an operator");
        let (host, here) = (Vector::zeros(16, precision), operator.vector());
        let mut short = Vector::on_device(15, operator.arithmetic().expect("a device"));
        // It is a valid vector, in its own order.
        let numbers: Vec<f64> = (0..15).map(f64::from).collect();
        short.set(&numbers);
        assert_eq!((short.to_vec(), short.get(7)), (numbers, 7.0));
        let mut y = operator.vector();
        for wrong in [&host, &short] {
            let error = LinearOperator::apply(&operator, wrong, &mut y).expect_err("refused");
            assert!(error.to_string().contains("does not fit"), "{error}");
        }
        LinearOperator::apply(&operator, &here, &mut y).expect("fits");
        let error = operator.residual(&here, &mut y).expect_err("no kernel");
        assert!(error.to_string().contains("no residual kernel for 9 of the cells"), "{error}");
    }
}
