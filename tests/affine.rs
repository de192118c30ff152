//! Affine constraints of a [`System`], u = C u + g, against explicit matrices, and against equivalent conditions.

use super::devices;
use std::sync::Arc;
use weakform::{
    ALL, AffineConstraint, Device, Error, Execution, Form, Setup, System, Vector, mesh,
};

/// A form with a symmetric Jacobian, and one without.
const FORMS: [&str; 2] = [
    "form nonlinear { field u: vector; f0[u] = dot(u, u) * u - [1, x[0]]; f1[u] = (1 + x[1]) * grad(u); }",
    "form nonlinear {
        field u: vector;
        field p: scalar;
        f0[u] = [p * u[1], 2 * u[0]] - [1, x[0]];
        f1[u] = (1 + u[0]^2) * grad(u);
        f0[p] = u[0] + 3 * p - x[1];
        f1[p] = grad(p);
    }",
];

/// Returns the CPU and all available devices.
fn places() -> Vec<Option<Arc<dyn Device>>> {
    let devices = devices::devices().into_iter().map(Some);
    std::iter::once(None).chain(devices).collect()
}

fn on(setup: Setup, device: &Option<Arc<dyn Device>>) -> Result<System, Error> {
    match device {
        Some(device) => setup.device(Arc::clone(device)).build(),
        None => setup.execution(Execution::Interpreted).build(),
    }
}

fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
}

/// Returns constraints on `n` DoFs, of which those in `fixed` have conditions: short ones and one with nearly all DoFs,
/// chains, and references to fixed DoFs.
fn rows(n: usize, fixed: &[usize], seed: u64) -> Vec<AffineConstraint> {
    let mut random = numbers(seed);
    let free: Vec<usize> = (0..n).filter(|unknown| !fixed.contains(unknown)).collect();
    let (given, read) = free.split_at(free.len() / 4);
    let mut rows = Vec::new();
    for (number, &unknown) in given.iter().enumerate() {
        let mut row = AffineConstraint::new(unknown).with_value(random());
        let terms = if number == 3 { read.len() } else { number % 4 };
        for term in 0..terms {
            row = row.plus(random(), read[(term * 7 + number) % read.len()]);
        }
        // Odd-numbered ones refer to the next one, and to a condition.
        if number % 2 == 1 && number + 1 < given.len() {
            row = row.plus(random(), given[number + 1]).plus(random(), fixed[number % fixed.len()]);
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

/// Computes C and g by substitution until nothing changes, as a matrix of rows.
fn explicit(n: usize, rows: &[AffineConstraint]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let (mut c, mut g) = (vec![vec![0.0; n]; n], vec![0.0; n]);
    (0..n).for_each(|i| c[i][i] = 1.0);
    for _ in 0..=rows.len() {
        for row in rows {
            let (mut own, mut value) = (vec![0.0; n], row.value);
            for &(j, factor) in &row.terms {
                (0..n).for_each(|k| own[k] += factor * c[j][k]);
                value += factor * g[j];
            }
            (c[row.unknown], g[row.unknown]) = (own, value);
        }
    }
    (c, g)
}

fn vector(system: &System, entries: &[f64]) -> Vector {
    let mut vector = system.vector();
    vector.set(entries);
    vector
}

/// Computes y = M x.
fn times(m: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    m.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

fn transposed(m: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..m.len()).map(|j| m.iter().map(|row| row[j]).collect()).collect()
}

fn close(what: &str, found: &[f64], wanted: &[f64]) {
    let size = wanted.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for (i, (a, b)) in found.iter().zip(wanted).enumerate() {
        assert!((a - b).abs() <= 1e-12 * size, "{what}: {a} and not {b} in row {i}");
    }
}

#[test]
fn operators_are_those_of_an_explicit_matrix() -> Result<(), Error> {
    for device in places() {
        for (number, text) in FORMS.iter().enumerate() {
            let form = Form::parse(text, "nonlinear")?;
            let setup = form.on(mesh("box(dim: 2, cells: [3, 2], deform: 0.1)")?).degree(2);
            let setup = setup.dirichlet("u", ["x0"], |x| [1.0 + x[1], 2.0 - x[1]]);
            let mut system = on(setup, &device)?;
            let (n, mut random) = (system.dofs(), numbers(3));
            let [u, x] = [(); 2].map(|()| (0..n).map(|_| random()).collect::<Vec<f64>>());

            // Fixed DoFs keep their value in an initial vector, whatever it is.
            let begin = system.initial().to_vec();
            let fixed: Vec<usize> = (0..n).filter(|&i| begin[i] != 0.0).collect();
            let rows = rows(n, &fixed, number as u64 + 1);
            let (mut c, g) = explicit(n, &rows);
            let given: Vec<usize> = rows.iter().map(|row| row.unknown).collect();
            let mut state = u.clone();
            fixed.iter().for_each(|&i| state[i] = begin[i]);
            let closed: Vec<f64> = times(&c, &state).iter().zip(&g).map(|(u, g)| u + g).collect();

            // The matrix and the residual without constraints, for a state that satisfies them.
            system.linearise(&vector(&system, &closed))?;
            let mut a = vec![vec![0.0; n]; n];
            let mut y = system.vector();
            for j in 0..n {
                let unit: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
                system.apply(&vector(&system, &unit), &mut y)?;
                y.to_vec().iter().enumerate().for_each(|(i, entry)| a[i][j] = *entry);
            }
            system.residual(&vector(&system, &closed), &mut y)?;
            let r = y.to_vec();

            system.constrain(&rows)?;
            // Directions are 0 in fixed DoFs, and C has no entries for them.
            for row in &mut c {
                fixed.iter().for_each(|&j| row[j] = 0.0);
            }
            fixed.iter().for_each(|&i| c[i][i] = 1.0);
            given.iter().for_each(|&i| c[i][i] = 0.0);
            let c_t = transposed(&c);
            let product = |x: &[f64]| {
                let mut y = times(&c_t, &times(&a, &times(&c, x)));
                given.iter().for_each(|&i| y[i] = x[i]);
                y
            };
            system.linearise(&vector(&system, &state))?;
            system.apply(&vector(&system, &x), &mut y)?;
            close("C'AC x", &y.to_vec(), &product(&x));

            system.residual(&vector(&system, &state), &mut y)?;
            let mut wanted = times(&c_t, &r);
            given.iter().for_each(|&i| wanted[i] = 0.0);
            close("C'R(C u + g)", &y.to_vec(), &wanted);

            system.diagonal(&mut y)?;
            let diagonal: Vec<f64> = (0..n)
                .map(|j| {
                    let unit: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
                    product(&unit)[j]
                })
                .collect();
            close("diag C'AC", &y.to_vec(), &diagonal);

            // Again without them.
            system.constrain(&[])?;
            system.linearise(&vector(&system, &closed))?;
            system.apply(&vector(&system, &x), &mut y)?;
            close("A x", &y.to_vec(), &times(&a, &x));
        }
    }
    Ok(())
}

/// Constraints may refer to DoFs at a wall that is not aligned with an axis. The operator is the residual's derivative
/// along the free directions, and symmetric.
#[test]
fn nodes_that_slip_may_give_others() -> Result<(), Error> {
    let text = "form elastic { field u: vector; f0[u] = u - [1, x[0]]; f1[u] = 2 * sym(grad(u)) + div(u) * I; }";
    let form = Form::parse(text, "elastic")?;
    for device in places() {
        let setup = form.clone().on(mesh("ball(dim: 2, order: 2, refine: 1)")?).degree(2);
        let mut system = on(setup.dirichlet_normal("u", ALL, |_| 0.0), &device)?;
        let points = system.points("u")?;
        let radius = |node: &usize| points[*node][0].hypot(points[*node][1]);
        let nodes = 0..points.len();
        let (walls, inside): (Vec<usize>, Vec<usize>) =
            nodes.partition(|node| (radius(node) - 1.0).abs() < 1e-9);
        let oblique = |node: &&usize| points[**node][0].abs().min(points[**node][1].abs()) > 0.1;
        let walls: Vec<usize> = walls.iter().filter(oblique).copied().collect();
        assert!(walls.len() > 4);
        let pairs = inside.iter().zip(&walls).take(6).enumerate();
        let rows: Vec<AffineConstraint> = pairs
            .map(|(i, (&node, &wall))| {
                AffineConstraint::new(2 * node + i % 2).plus(0.7, 2 * wall).plus(-0.4, 2 * wall + 1)
            })
            .collect();
        // Residuals have no normal components.
        let mut random = numbers(7);
        let mut draw = || -> Result<Vec<f64>, Error> {
            let state: Vec<f64> = (0..system.dofs()).map(|_| random()).collect();
            let mut r = system.vector();
            system.residual(&vector(&system, &state), &mut r)?;
            Ok(r.to_vec())
        };
        let (x, z) = (draw()?, draw()?);
        system.constrain(&rows)?;
        let [zero, mut r, mut moved, mut y, mut w] = [(); 5].map(|()| system.vector());
        system.linearise(&zero)?;
        system.residual(&zero, &mut r)?;
        system.residual(&vector(&system, &x), &mut moved)?;
        system.apply(&vector(&system, &x), &mut y)?;
        system.apply(&vector(&system, &z), &mut w)?;
        let (y, w) = (y.to_vec(), w.to_vec());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (forth, back) = (dot(&y, &z), dot(&w, &x));
        assert!((forth - back).abs() < 1e-12 * dot(&y, &y), "{forth} and {back}");
        let mut change: Vec<f64> =
            moved.to_vec().iter().zip(r.to_vec()).map(|(a, b)| a - b).collect();
        rows.iter().for_each(|row| change[row.unknown] = x[row.unknown]);
        close("the change of R", &y, &change);
        // They are constrained by their walls.
        let error = system.constrain(&[AffineConstraint::new(2 * walls[0])]).expect_err("refused");
        assert!(error.to_string().contains("an essential condition too"), "{error}");
    }
    Ok(())
}

#[test]
fn solutions_fulfil_constraints_whatever_the_solver() -> Result<(), Error> {
    let form = Form::parse(FORMS[0], "nonlinear")?;
    for device in places() {
        let setup = form.clone().on(mesh("box(dim: 2, cells: 4)")?).degree(2);
        let setup = setup.dirichlet("u", ["x0"], |x| [x[1], 0.0]);
        let mut system = on(setup, &device)?;
        let points = system.points("u")?;
        // The right side is a plate: it moves up rigidly, and along like its lowest node. That node is linked to the
        // middle: half its displacement plus a tenth.
        let right: Vec<usize> = (0..points.len()).filter(|&node| points[node][0] == 1.0).collect();
        let middle = points.iter().position(|point| *point == [0.5, 0.5, 0.0]).expect("a node");
        let unknown = |node: usize, component: usize| 2 * node + component;
        assert_eq!(system.unknown("u", middle, 1)?, unknown(middle, 1));
        let (mut rows, first) = (Vec::new(), right[0]);
        for &node in &right[1..] {
            for component in 0..2 {
                rows.push(
                    AffineConstraint::new(unknown(node, component))
                        .plus(1.0, unknown(first, component)),
                );
            }
        }
        let linked = AffineConstraint::new(unknown(first, 0));
        rows.push(linked.plus(0.5, unknown(middle, 0)).with_value(0.1));
        system.constrain(&rows)?;
        let mut solutions = Vec::new();
        for name in ["newton", "direct", "cg"] {
            let mut u = system.initial();
            let linear = name != "newton";
            let newton = if linear { format!("newton(linear: {name})") } else { name.to_owned() };
            let newton = system.solver(&newton)?;
            system.solve_with(&mut u, Some(&newton))?;
            solutions.push(u.to_vec());
        }
        let u = &solutions[0];
        for &node in &right {
            let along = 0.5 * u[unknown(middle, 0)] + 0.1;
            assert!((u[unknown(node, 0)] - along).abs() < 1e-12);
            assert!((u[unknown(node, 1)] - u[unknown(first, 1)]).abs() < 1e-12);
        }
        for other in &solutions[1..] {
            let far = u.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far < 1e-7, "{far:e}");
        }
        // The vertical forces on the free plate are in balance; the middle bears half of the others.
        let mut r = system.vector();
        system.constrain(&[])?;
        system.residual(&vector(&system, u), &mut r)?;
        let r = r.to_vec();
        let sum = |component| right.iter().map(|&node| r[unknown(node, component)]).sum::<f64>();
        assert!(sum(1).abs() < 1e-7, "{:e}", sum(1));
        assert!((r[unknown(middle, 0)] + 0.5 * sum(0)).abs() < 1e-7);
        assert!(sum(0).abs() > 1e-3, "a force that says something");
    }
    Ok(())
}

#[test]
fn a_mean_is_a_constraint() -> Result<(), Error> {
    let text = "form heat { field u: scalar; f0[u] = 0.5 - x[0]; f1[u] = grad(u); }
        problem boxed solves heat {
            mesh = box(dim: 2, cells: 48); degree = 2; mean u = 3; solver = cg(rtol: 1e-11);
        }";
    let form = Form::parse(text, "heat")?;
    let wanted = form.clone().problem("boxed")?.run()?;
    for device in places() {
        let mut system = on(form.clone().on(mesh("box(dim: 2, cells: 48)")?).degree(2), &device)?;
        // The constant is still undetermined.
        let unfixed = system.solve(&mut system.initial()).expect_err("a constant is free");
        assert!(unfixed.to_string().contains("constant"), "{unfixed}");
        let row = system.mean("u", 0, 3.0)?;
        assert!(row.terms.len() > 1 << 13, "more than a part of a list");
        system.constrain(&[row])?;
        // Starting from 0, the constrained DoF would be some thousands, and so would the reference residual of the
        // tolerances.
        let mut u = system.interpolate("u", |_| 3.0)?;
        let cg = system.solver("cg")?;
        system.solve_with(&mut u, Some(&cg))?;
        let (u, wanted) = (u.to_vec(), wanted.values());
        let far = u.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < 1e-7, "{far:e}");
    }
    Ok(())
}

#[test]
fn sides_that_are_linked_leave_what_is_free_free() -> Result<(), Error> {
    let text =
        "form elastic { field u: vector; f0[u] = [0, x[0] - 0.5]; f1[u] = 2 * sym(grad(u)); }";
    let setup = Form::parse(text, "elastic")?.on(mesh("box(dim: 2, cells: 4)")?).degree(1);
    let mut system = setup.execution(Execution::Interpreted).build()?;
    let points = system.points("u")?;
    let find = |x: f64, y: f64| points.iter().position(|point| *point == [x, y, 0.0]);
    let mut rows = Vec::new();
    for step in 0..=4 {
        let y = f64::from(step) / 4.0;
        let (left, right) = (find(0.0, y).expect("a node"), find(1.0, y).expect("a node"));
        for component in 0..2 {
            let row = AffineConstraint::new(system.unknown("u", right, component)?);
            rows.push(row.plus(1.0, system.unknown("u", left, component)?));
        }
    }
    // No rotation is left, but both translations are.
    system.constrain(&rows)?;
    let error = system.solve(&mut system.initial()).expect_err("it is not held");
    assert!(error.to_string().contains("constant"), "{error}");
    rows.extend([system.mean("u", 0, 0.0)?, system.mean("u", 1, 0.0)?]);
    system.constrain(&rows)?;
    let mut u = system.initial();
    system.solve(&mut u)?;
    let u = u.to_vec();
    for row in &rows {
        let sum: f64 = row.terms.iter().map(|&(unknown, c)| c * u[unknown]).sum();
        assert!((u[row.unknown] - sum).abs() < 1e-10);
    }
    Ok(())
}

#[test]
fn what_is_no_constraint_is_refused_with_its_place() -> Result<(), Error> {
    let form = Form::parse(FORMS[0], "nonlinear")?;
    let setup = form.on(mesh("box(dim: 2, cells: 2)")?).degree(1);
    let setup = setup.dirichlet("u", ["x0"], |_| [0.0, 0.0]);
    let mut system = setup.execution(Execution::Interpreted).build()?;
    let points = system.points("u")?;
    let at = |x: f64, y: f64, component| {
        let node = points.iter().position(|point| *point == [x, y, 0.0]).expect("a node");
        2 * node + component
    };
    let (a, b, c) = (at(1.0, 0.0, 0), at(1.0, 0.5, 1), at(1.0, 1.0, 0));
    let circle = [
        AffineConstraint::new(a).plus(0.5, b),
        AffineConstraint::new(b).plus(1.0, c),
        AffineConstraint::new(c).plus(2.0, a),
    ];
    let error = system.constrain(&circle).expect_err("a circle").to_string();
    let named = "u[0] at (1, 0) → u[1] at (1, 0.5) → u[0] at (1, 1) → u[0] at (1, 0)";
    assert!(error.contains(named), "{error}");
    let fixed = AffineConstraint::new(at(0.0, 0.5, 1)).plus(1.0, a);
    let error = system.constrain(&[fixed]).expect_err("a condition").to_string();
    assert!(
        error.contains("u[1] at (0, 0.5) is given by a constraint, and by an essential"),
        "{error}"
    );
    let error = system.unknown("u", 100, 0).expect_err("no node").to_string();
    assert!(error.contains("`u` has no component 0 at node 100"), "{error}");
    let all = [(at(0.0, 0.0, 0), 1.0), (at(0.0, 1.0, 0), 1.0)];
    assert!(matches!(system.equation(&all, 1.0), Err(Error::NothingFree)));
    Ok(())
}
