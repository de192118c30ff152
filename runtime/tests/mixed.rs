//! Operators with several fields and boundary integrals against the reference: spaces of different degrees in one
//! vector, with conditions on each, on all cells; and their assembled matrices.

use fem_dsl::point::{Part, PointForm};
use fem_dsl::problem::Argument;
use fem_dsl::source::Source;
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, Linearisation, Task, tested};
use runtime::algebra::vector::{Precision, Vector};
use runtime::kernels::compile::{Execution, Target, compile, facts};
use runtime::mesh::generate::generate;
use runtime::operator::assemble::Csr;
use runtime::operator::{BuildError, FluxSelection, Operator};
use runtime::reference::{BoundedValue, FormInputs, NodalValues, Reference, assert_all_close};
use runtime::solve::{LinearOperator as _, NonlinearSystem as _};
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeMap;
use std::sync::Arc;

const STOKES: &str = "form f {
    field u: vector in H1(k);
    field p: scalar in H1(k - 1);
    param nu = 0.8;
    f1[u] = nu * grad(u) - p * I;
    f0[p] = -div(u);
}";

const FLOW: &str = "form f {
    field s: scalar;
    field v: vector in H1(k + 1);
    param a = 0.7;
    f0[v] = grad(v) * v + s * grad(s);
    f1[v] = a * grad(v) - s * I;
    f0[s] = s^3 - dot(v, v);
    f1[s] = (1 + s^2) * grad(s);
}";

/// Boundary integrals with values and gradients, the normal, coordinates and the diameter; one tag in two blocks, and
/// two tags in one.
const ROBIN: &str = "form f {
    field u: scalar;
    param a = 0.7;
    f1[u] = grad(u);
    on boundary \"x1\" { f0[u] = a * (u^3 - x[0]) + h; }
    on boundary \"x0\", \"y1\" { f0[u] = u * dot(n, grad(u)); f1[u] = 0.3 * u * n + grad(u); }
    on boundary \"y1\" { f0[u] = dot(n, x); }
}";

const TRACTION: &str = "form f {
    field u: vector;
    field p: scalar in H1(k + 1);
    param a = 0.7;
    f0[u] = u;
    f1[u] = sym(grad(u)) - p * I;
    f0[p] = div(u) + p;
    on boundary \"y0\" {
        let pressure = a * (1 + p);
        f0[u] = pressure * n + outer(n, n) * u;
        f1[u] = outer(u, n);
    }
    on boundary \"x1\" { f0[p] = dot(u, n); f1[p] = p * n; }
}";

/// Discontinuous fields, one of them constant in each cell at degree 1, also on the boundary.
const JUMPS: &str = "form f {
    field u: vector;
    field p: scalar in L2(k - 1);
    field s: vector(2) in L2(k);
    param a = 0.7;
    f1[u] = a * grad(u) - p * I;
    f0[p] = p^3 - div(u);
    f1[p] = u + grad(p);
    f0[s] = [s[0]^3 + p, s[1] - dot(u, u)];
    f1[s] = outer(s, u) + s[0] * grad(s);
    on boundary \"x1\" { f0[u] = a * p * n + s[0] * u; f0[p] = dot(u, n) + p^2; f1[p] = (1 + s[1]) * n; }
    on boundary \"y0\", \"x0\" { f0[s] = grad(s) * n + [p, a] / 2; f1[s] = outer(s, n) + grad(s) / (2 + p^2); }
}";

/// A single discontinuous field.
const ALONE: &str = "form f {
    field u: scalar in L2(k);
    param a = 0.7;
    f0[u] = u^3 - a * x[0];
    f1[u] = 0.1 * (1 + u^2) * grad(u);
    on boundary \"x1\" { f0[u] = u * dot(n, grad(u)) / h; f1[u] = 0.3 * u * n + grad(u); }
}";

struct Case {
    name: String,
    form: PointForm,
    elements: Elements,
    on: Arc<Discretisation>,
}

impl Case {
    fn new(text: &str, cell: &str, degree: usize, constrained: bool) -> Self {
        let dim = if matches!(cell, "quad" | "tri") { 2 } else { 3 };
        let (program, found) = fem_dsl::program::compile(&Source::new("f", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let form = program.point_form("f", dim).expect("a form");
        let number = Argument::Number;
        let mut arguments = BTreeMap::from([
            ("dim".to_owned(), number(dim as f64)),
            ("cells".to_owned(), number(if dim == 2 { 3.0 } else { 2.0 })),
            ("cell".to_owned(), Argument::Word(cell.to_owned())),
        ]);
        if matches!(cell, "quad" | "hex") {
            arguments.insert("deform".to_owned(), number(0.1));
        }
        let mesh = generate("box", &arguments).expect("a box");
        let elements = elements(&form, mesh.cell(), degree, 1, None).expect("elements");
        let mut on = Discretisation::new(mesh, &elements.spaces()).expect("spaces");
        if constrained {
            for field in &mut on.fields {
                let points = field.space.points(&on.mesh, &on.partition).expect("points");
                let nodes = field.space.nodes_on(&on.mesh.boundary());
                let nodes: Vec<u32> =
                    nodes.into_iter().filter(|&node| points[node as usize][0] < 0.4).collect();
                let value = |x: &[f64; 3], row: &mut [f64]| row.fill(x[1]);
                field.constraints.fix(&nodes, None, &points, value).expect("finite values");
            }
        }
        on.find_regions(&form).expect("tags of the box");
        let name = format!("{}{degree} {}", on.mesh.cell(), form.fields[0].name);
        Self { name, form, elements, on: Arc::new(on) }
    }

    fn operator(&self, how: Execution, linearisation: Option<Linearisation>) -> Operator {
        let mut target = Target::native();
        target.execution = how;
        target.wishes.linearisation = linearisation;
        let tasks = [Task::Residual, Task::Action, Task::Diagonal, Task::Flux];
        let compiled = compile(&self.form, &self.elements, &facts(&self.on), &tasks, &target);
        let compiled = compiled.expect("kernels");
        let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
        let params = [0.0, self.form.params[0].value[0]];
        Operator::on_host(self.on.clone(), module, kernels, Precision::F64, &params, false)
            .expect("an operator")
    }

    /// Compares operators with several linearisations with the reference.
    fn compare(&self, how: Execution, linearisations: &[Option<Linearisation>]) {
        let n = self.on.n_dofs();
        let (u, w) = (values(n, 0.3), values(n, 0.9));
        let want = self.reference(&u, &w);
        let state = Vector::from_slice(&u, Precision::F64);
        let direction = Vector::from_slice(&w, Precision::F64);
        for &linearisation in linearisations {
            let mut operator = self.operator(how, linearisation);
            let mut out = state.like();
            out.fill(7.0);
            let check = |out: &Vector, at: usize, task: &str| {
                let context = format!("{task} of {}, {how:?}, {linearisation:?}", self.name);
                assert_all_close(&out.to_vec(), &want[at], f64::EPSILON, &context);
            };
            operator.residual(&state, &mut out).expect("R");
            check(&out, 0, "residual");
            operator.linearise(&state).expect("J");
            operator.apply(&direction, &mut out).expect("J w");
            check(&out, 1, "action");
            operator.diagonal(&mut out).expect("the diagonal");
            check(&out, 2, "diagonal");
            self.compare_fluxes(&operator, &state);
        }
    }

    /// Compares the tested point quantities of the operator with the reference.
    fn compare_fluxes(&self, operator: &Operator, state: &Vector) {
        let tested = |integral: usize| tested(&self.form, &self.elements, integral);
        let integrals = 0..self.form.integrals.len();
        let mut parts: Vec<_> = integrals.clone().flat_map(tested).collect();
        parts.sort_unstable();
        parts.dedup();
        let place = |part| parts.binary_search(&part).expect("a part");
        let places: Vec<Vec<usize>> =
            integrals.map(|integral| tested(integral).into_iter().map(place).collect()).collect();
        let asked = FluxSelection { numbers: parts.len(), places, once: Vec::new() };
        let (rule, all) = (self.elements.rule, &asked.places);
        let wanted = |integral: usize| {
            self.reference_with(&state.to_vec(), |reference, inputs| {
                reference.flux(inputs, integral).expect("numbers")
            })
        };
        // The requested numbers as `[item][number][point]`.
        let spread = |want: &[BoundedValue], places: &[usize], points: usize| {
            let mut spread = vec![BoundedValue::ZERO; want.len() / places.len() * parts.len()];
            for (at, &number) in want.iter().enumerate() {
                let (item, rest) = (at / (places.len() * points), at % (places.len() * points));
                let (point, number_at) = (rest / places.len(), rest % places.len());
                spread[(item * parts.len() + places[number_at]) * points + point] = number;
            }
            spread
        };
        let points = rule.count();
        let want = spread(&wanted(0), &all[0], points);
        let mut got = vec![f64::NAN; want.len()];
        let each = parts.len() * points;
        let done = operator.fluxes(state, &asked, 5, |cells, numbers| {
            got[cells.start * each..cells.end * each].copy_from_slice(numbers);
            Ok::<_, BuildError>(())
        });
        done.expect("numbers");
        assert_all_close(&got, &want, f64::EPSILON, &format!("flux of {}", self.name));
        for integral in 1..all.len() {
            let got = operator.fluxes_on_facets(state, &asked, integral).expect("numbers");
            let points = rule.on_facet().len();
            let want = spread(&wanted(integral), &all[integral], points);
            // Derivatives of the reference refer to the axes of the original cell, not of the rotated one.
            let values =
                (0..got.len()).filter(|at| parts[at / points % parts.len()].1 == Part::Value);
            let (got, want): (Vec<f64>, Vec<BoundedValue>) =
                values.map(|at| (got[at], want[at])).unzip();
            assert!(got.iter().any(|number| *number != 0.0));
            let name = format!("flux of integral {integral} of {}", self.name);
            assert_all_close(&got, &want, f64::EPSILON, &name);
        }
    }

    /// Evaluates the reference at a state.
    fn reference_with<T>(
        &self,
        u: &[f64],
        of: impl FnOnce(&Reference<'_>, &FormInputs<'_>) -> T,
    ) -> T {
        let (on, rule) = (&self.on, self.elements.rule);
        let reference = Reference::with_rule(&self.form, self.elements.degree, 1, rule);
        let reference = reference.expect("supported elements");
        let mesh = &on.mesh;
        let dim = mesh.dim();
        let coordinates: Vec<f64> = (0..mesh.n_cells())
            .flat_map(|cell| mesh.cell_nodes(cell).to_vec())
            .flat_map(|node| mesh.points()[node as usize][..dim].to_vec())
            .collect();
        let maps: Vec<Vec<u32>> =
            on.fields.iter().map(|field| field.space.nodes().to_vec()).collect();
        let part = |all: &'_ [f64], field: usize| all[on.dofs_of(field)].to_vec();
        let states: Vec<Vec<f64>> = (0..maps.len()).map(|field| part(u, field)).collect();
        let inputs = FormInputs {
            coordinates: &coordinates,
            state: maps
                .iter()
                .zip(&states)
                .map(|(map, values)| NodalValues { map, values })
                .collect(),
            aux: Vec::new(),
            params: &self.form.params[0].value,
            time: 0.0,
            facets: on.numbered_facets(),
            pairs: on.matched_pairs(&self.form).expect("tags of the mesh"),
            cells: on.cells.clone(),
        };
        of(&reference, &inputs)
    }

    /// Returns the residual R(u), the action J(u) w and the diagonal, with the rows of constraints.
    fn reference(&self, u: &[f64], w: &[f64]) -> [Vec<BoundedValue>; 3] {
        let on = &self.on;
        let part = |all: &'_ [f64], field: usize| all[on.dofs_of(field)].to_vec();
        let fields = on.fields.len();
        let mut free = w.to_vec();
        on.conditions().for_each(|(dof, _)| free[dof] = 0.0);
        let directions: Vec<Vec<f64>> = (0..fields).map(|field| part(&free, field)).collect();
        let directions: Vec<&[f64]> = directions.iter().map(Vec::as_slice).collect();
        let mut all = self.reference_with(u, |reference, inputs| {
            [
                reference.residual(inputs).concat(),
                reference.action(inputs, &directions).concat(),
                reference.diagonal(inputs).concat(),
            ]
        });
        for (dof, _) in on.conditions() {
            let rows = [0.0, w[dof], 1.0];
            all.iter_mut().zip(rows).for_each(|(all, row)| all[dof] = BoundedValue::new(row));
        }
        all
    }
}

fn values(n: usize, factor: f64) -> Vec<f64> {
    (0..n).map(|i| 0.6 * (i as f64 * factor).cos()).collect()
}

#[test]
fn operators_agree_with_the_reference() {
    let mut compared = 0;
    let forms = [
        (STOKES, 2),
        (STOKES, 3),
        (FLOW, 1),
        (FLOW, 2),
        (ROBIN, 1),
        (ROBIN, 2),
        (ROBIN, 4),
        (TRACTION, 1),
        (TRACTION, 2),
        (JUMPS, 1),
        (JUMPS, 2),
        (ALONE, 1),
        (ALONE, 3),
    ];
    for (number, (text, degree)) in forms.into_iter().enumerate() {
        for (turn, cell) in ["tri", "quad", "tet", "hex"].into_iter().enumerate() {
            // Each form on two cells, and half of the forms on each cell.
            let constrained = (number + turn).is_multiple_of(2);
            let case = Case::new(text, cell, degree, constrained);
            let both = [Linearisation::Recompute, Linearisation::Stored].map(Some);
            case.compare(Execution::Interpreted, &both);
            compared += both.len();
        }
    }
    assert_eq!(compared, 13 * 4 * 2);
}

#[test]
fn compiled_operators_agree_with_the_reference() {
    let cases = [
        (STOKES, "tet", 2),
        (ROBIN, "hex", 2),
        (TRACTION, "quad", 1),
        (JUMPS, "tri", 1),
        (ALONE, "quad", 2),
    ];
    // Interpreted kernels run each form with and without conditions.
    for (number, (text, cell, degree)) in cases.into_iter().enumerate() {
        let constrained = number % 2 == 1;
        Case::new(text, cell, degree, constrained).compare(Execution::Automatic, &[None]);
    }
}

#[test]
fn matrices_do_what_operators_do() {
    for (text, cell, degree) in [
        (STOKES, "tri", 2),
        (STOKES, "hex", 3),
        (FLOW, "quad", 2),
        (FLOW, "tet", 1),
        (ROBIN, "hex", 2),
        (ROBIN, "tri", 3),
        (TRACTION, "quad", 3),
        (TRACTION, "tet", 1),
        (JUMPS, "hex", 1),
        (JUMPS, "tri", 2),
        (ALONE, "tet", 2),
    ] {
        for constrained in [false, true] {
            let case = Case::new(text, cell, degree, constrained);
            let mut operator = case.operator(Execution::Interpreted, None);
            let n = case.on.n_dofs();
            let state = Vector::from_slice(&values(n, 0.3), Precision::F64);
            operator.linearise(&state).expect("a linearisation");
            let matrix = Csr::assemble(&operator).expect("a matrix");
            let x = values(n, 0.9);
            let mut product = vec![0.0; n];
            matrix.apply(&x, &mut product);
            let want = &case.reference(&state.to_vec(), &x)[1];
            assert_all_close(&product, want, f64::EPSILON, &case.name);
        }
    }
}
