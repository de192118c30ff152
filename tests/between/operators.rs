//! Operators of forms with terms between cells against operators that are known: those of continuous functions, matrices
//! by hand, eigenvalues, and identities.

use fem_dsl::testing::Random;
use kernels_gen::element::tabulate;
use rotations::rotations;
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::mesh::pairs::cell_pairs;
use runtime::mesh::{CellOrdering, MeshData};
use runtime::reference::functions;
use std::collections::BTreeSet;
use weakform::layers::{kernels_gen, runtime};
use weakform::{Cell, Csr, Execution, Form, Mesh, Setup, System, Vector, mesh};

#[path = "../../runtime/tests/random_forms/rotations.rs"]
mod rotations;

/// Interior penalty with Nitsche's terms on `on`: symmetric with theta = 1, nonsymmetric with −1.
fn penalised(space: &str, on: &str) -> String {
    format!(
        "form f {{ field u: scalar in {space}; param eta = 2; param theta = 1; f1[u] = grad(u); \
         on interior {{ \
             f0[jump(u)] = eta * avg(penalty(u)) * jump(u) - dot(avg(grad(u)), n); \
             f1[avg(u)] = -theta * jump(u) * n; \
         }} \
         on boundary {on} {{ f0[u] = eta * penalty(u) * u - dot(grad(u), n); f1[u] = -theta * u * n; }} }}"
    )
}

/// The same for continuous functions.
fn nitsche(on: &str) -> String {
    format!(
        "form f {{ field u: scalar in H1(k); param eta = 2; param theta = 1; f1[u] = grad(u); \
         on boundary {on} {{ f0[u] = eta * penalty(u) * u - dot(grad(u), n); f1[u] = -theta * u * n; }} }}"
    )
}

pub(super) fn setup(text: &str, on: Mesh, degree: usize) -> Setup {
    let form = Form::parse(text, "f").unwrap_or_else(|error| panic!("{error}\n{text}"));
    form.on(on).degree(degree).execution(Execution::Interpreted)
}

pub(super) fn built(setup: Setup) -> System {
    setup.build().unwrap_or_else(|error| panic!("{error}"))
}

fn noise(system: &System, seed: u64) -> Vector {
    let mut vector = system.vector();
    vector.set(&Random(seed).signed(system.dofs()));
    vector
}

/// Returns J(u) x.
fn applied(system: &mut System, u: &Vector, x: &Vector) -> Vec<f64> {
    let mut y = system.vector();
    system.linearise(u).expect("a linearisation");
    system.apply(x, &mut y).expect("a product");
    y.to_vec()
}

pub(super) fn residual(system: &System, u: &Vector) -> Vec<f64> {
    let mut r = system.vector();
    system.residual(u, &mut r).expect("a residual");
    r.to_vec()
}

pub(super) fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The embedding of the continuous functions of a system into the discontinuous ones of another one.
struct Embedding {
    /// For each discontinuous degree of freedom its continuous ones with their factors.
    rows: Vec<Vec<(usize, f64)>>,
}

impl Embedding {
    fn new(continuous: &System, discontinuous: &System) -> Self {
        let spaces = [continuous, discontinuous].map(|of| &of.discretisation().fields[0].space);
        let [from, to] = spaces;
        let table = tabulate(from.element(), &to.nodal().points());
        let mut rows = vec![Vec::new(); discontinuous.dofs()];
        let hanging = continuous.mesh().hanging();
        for cell in 0..continuous.mesh().n_cells() {
            let own = from.cell_nodes(cell);
            // The function of a node of the larger cell is a sum of the cell's own functions.
            let interpolated = hanging.and_then(|words| functions(from.element(), words[cell]));
            for (q, &node) in to.cell_nodes(cell).iter().enumerate() {
                let value = |i: usize| match &interpolated {
                    Some(sums) => sums[i].iter().map(|&(j, c)| c * table.value(q, j)).sum(),
                    None => table.value(q, i),
                };
                let entry = |(i, &node): (usize, &u32)| (node as usize, value(i));
                rows[node as usize] = own.iter().enumerate().map(entry).collect();
            }
        }
        Self { rows }
    }

    fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.rows.iter().map(|row| row.iter().map(|&(i, factor)| factor * x[i]).sum()).collect()
    }

    fn transposed(&self, y: &[f64], n: usize) -> Vec<f64> {
        let mut x = vec![0.0; n];
        for (row, y) in self.rows.iter().zip(y) {
            row.iter().for_each(|&(i, factor)| x[i] += factor * y);
        }
        x
    }
}

/// Returns a box whose cells are turned in all ways, on the whole of whose boundary is the tag "x0".
fn turned(cell: Cell, cells: usize) -> Mesh {
    let (dim, name) = (cell.dim(), cell.name());
    let tidy = mesh(&format!("box(dim: {dim}, cells: {cells}, cell: {name})")).expect("a box");
    let rotations = rotations(dim, true);
    let turn = |number: usize| &rotations[(7 * number + 3) % rotations.len()];
    let nodes = (0..tidy.n_cells()).flat_map(|number| {
        turn(number).iter().map(|&v| tidy.vertices(number)[v]).collect::<Vec<u32>>()
    });
    let bent = |[x, y, z]: [f64; 3]| [x + 0.1 * y * z, y - 0.2 * x + 0.1 * x * y, z + 0.1 * y];
    let points = tidy.points().iter().map(|&point| bent(point));
    let points = points.map(|[x, y, z]| [x, y, if dim == 2 { 0.0 } else { z }]).collect();
    let data = MeshData { points, nodes: nodes.collect(), ..MeshData::default() };
    let mut mesh = Mesh::new(cell, 1, data, CellOrdering::Original).expect("a mesh");
    mesh.tag_boundary("x0", |_| true);
    mesh
}

/// Meshes with the tags of the part of their boundary that has Nitsche's terms, and degrees.
fn samples() -> Vec<(Mesh, &'static str, usize)> {
    let of = |text: &str| mesh(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut periodic = of("box(dim: 2, cells: [1, 3], deform: 0.1)");
    periodic.make_periodic(&[["x0", "x1"]]).expect("sides");
    let mut all = vec![
        (periodic, "\"y0\", \"y1\"", 2),
        (of("box(dim: 2, cells: 1)"), "\"x0\", \"y1\"", 3),
        (of("box(dim: 2, cells: 4, deform: 0.1)"), "\"x0\", \"y1\"", 2),
        (of("box(dim: 2, cells: 3, cell: tri)"), "\"x0\", \"y1\"", 3),
        (of("box(dim: 3, cells: 2, deform: 0.1)"), "\"x0\", \"z1\"", 2),
        (of("box(dim: 3, cells: 2, cell: tet)"), "\"x0\", \"z1\"", 2),
        (of("ball(dim: 2, refine: 1, order: 2)"), "\"surface\"", 2),
        (of("ball(dim: 3, order: 2)"), "\"surface\"", 1),
        (of("ball(dim: 2, refine: 1, order: 2, cell: tri)"), "\"surface\"", 2),
    ];
    for (cell, cells) in [(Cell::Quadrilateral, 4), (Cell::Hexahedron, 3)] {
        all.push((turned(cell, cells), "\"x0\"", 1));
    }
    all
}

/// Returns the mesh with a part refined twice, so that nodes hang.
fn adapted(mesh: Mesh) -> Mesh {
    let mut adaptive = AdaptiveMesh::new(mesh).expect("squares or cubes");
    for _ in 0..2 {
        let mesh = adaptive.mesh().expect("a mesh");
        let middle = mesh.n_cells() / 2;
        let marked: Vec<bool> = (0..mesh.n_cells()).map(|cell| cell == middle).collect();
        adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
    }
    adaptive.mesh().expect("a mesh")
}

/// The same with cells of different size.
fn hanging() -> Vec<(Mesh, &'static str, usize)> {
    let of = |text: &str| mesh(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut periodic = of("box(dim: 2, cells: [2, 3], deform: 0.1)");
    periodic.make_periodic(&[["x0", "x1"]]).expect("sides");
    let mut all = vec![
        (periodic, "\"y0\", \"y1\"", 3),
        (of("ball(dim: 2, order: 2)"), "\"surface\"", 2),
        (of("ball(dim: 3, order: 2)"), "\"surface\"", 1),
        (turned(Cell::Quadrilateral, 3), "\"x0\"", 3),
        (turned(Cell::Hexahedron, 2), "\"x0\"", 2),
    ];
    for degree in 1..=4 {
        all.push((of("box(dim: 2, cells: 2, deform: 0.1)"), "\"x0\", \"y1\"", degree));
        all.push((of("box(dim: 3, cells: 2, deform: 0.1)"), "\"x0\", \"z1\"", degree));
    }
    let all = all.into_iter().map(|(mesh, on, degree)| (adapted(mesh), on, degree));
    all.inspect(|(mesh, ..)| assert!(mesh.hanging().is_some())).collect()
}

/// With the embedding E of the continuous functions, Eᵀ A E is the operator of the continuous form, and no E v jumps.
#[test]
fn continuous_functions_have_the_continuous_operator() {
    for (mesh, on, degree) in samples().into_iter().chain(hanging()) {
        let name = format!("{} {} of degree {degree}", mesh.n_cells(), mesh.cell());
        let mut continuous = built(setup(&nitsche(on), mesh.clone(), degree));
        let mut discontinuous = built(setup(&penalised("L2(k)", on), mesh.clone(), degree));
        let embedding = Embedding::new(&continuous, &discontinuous);
        let v = noise(&continuous, 1);
        let zero = [continuous.vector(), discontinuous.vector()];
        let mut embedded = discontinuous.vector();
        embedded.set(&embedding.apply(&v.to_vec()));
        for theta in [1.0, -1.0] {
            continuous.set_param("theta", theta).expect("a parameter");
            discontinuous.set_param("theta", theta).expect("a parameter");
            let wanted = applied(&mut continuous, &zero[0], &v);
            let found = applied(&mut discontinuous, &zero[1], &embedded);
            let found = embedding.transposed(&found, continuous.dofs());
            let apart: Vec<f64> = found.iter().zip(&wanted).map(|(a, b)| a - b).collect();
            assert!(
                norm(&apart) < 1e-13 * norm(&wanted),
                "{name}: {} {}",
                norm(&apart),
                norm(&wanted)
            );
        }
        let jumps = "form f { field u: scalar in L2(k); on interior { f0[jump(u)] = jump(u); } }";
        let mut jumps = built(setup(jumps, mesh, degree));
        let (found, other) = (applied(&mut jumps, &zero[1], &embedded), noise(&discontinuous, 2));
        let other = applied(&mut jumps, &zero[1], &other);
        assert!(norm(&found) < 1e-13 * norm(&other).max(1e-3), "{name}: {}", norm(&found));
    }
}

/// Returns the entries of a matrix row by row, with the degrees of freedom in the order of their first coordinate.
fn by_place(system: &System, matrix: &Csr) -> Vec<Vec<f64>> {
    let points = system.points("u").expect("a field");
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]));
    let dense = dense(matrix);
    order.iter().map(|&i| order.iter().map(|&j| dense[i][j]).collect()).collect()
}

pub(super) fn dense(matrix: &Csr) -> Vec<Vec<f64>> {
    let row = |i: usize| {
        let mut row = vec![0.0; matrix.size()];
        matrix.row(i).for_each(|(j, value)| row[j] += value);
        row
    };
    (0..matrix.size()).map(row).collect()
}

pub(super) fn assembled(system: &mut System) -> Csr {
    let zero = system.vector();
    system.linearise(&zero).expect("a linearisation");
    system.matrix().expect("a matrix")
}

#[test]
fn two_squares_have_the_matrices_by_hand() {
    let upwind = "form f { field u: scalar in L2(0); f1[u] = -u * [1, 0]; \
         on interior { f0[jump(u)] = n[0] * avg(u) + abs(n[0]) / 2 * jump(u); } }";
    let penalty = "form f { field u: scalar in L2(0); param tau = 3; \
         on interior { f0[jump(u)] = tau * jump(u); } }";
    for (text, wanted) in
        [(upwind, [[1.0, 0.0], [-1.0, 0.0]]), (penalty, [[3.0, -3.0], [-3.0, 3.0]])]
    {
        let squares = mesh("box(dim: 2, cells: [2, 1], to: [2, 1])").expect("squares");
        let mut system = built(setup(text, squares, 1));
        let matrix = assembled(&mut system);
        let found = by_place(&system, &matrix);
        for (found, wanted) in found.iter().flatten().zip(wanted.iter().flatten()) {
            assert!((found - wanted).abs() < 1e-14, "{text}: {found} {wanted}");
        }
    }
}

/// Factorises a symmetric matrix as L D Lᵀ without pivoting; returns L below the diagonal of 1, and D on it.
pub(super) fn factorised(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for j in 0..n {
        let row: Vec<f64> = (0..j).map(|k| a[j][k] * a[k][k]).collect();
        a[j][j] -= dot(&a[j][..j], &row);
        for i in j + 1..n {
            a[i][j] = (a[i][j] - dot(&a[i][..j], &row)) / a[j][j];
        }
    }
    a
}

/// Solves with the factors of a symmetric matrix.
pub(super) fn solved(factors: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let (n, mut x) = (b.len(), b.to_vec());
    for i in 0..n {
        x[i] -= dot(&factors[i][..i], &x[..i]);
    }
    (0..n).for_each(|i| x[i] /= factors[i][i]);
    for i in (0..n).rev() {
        for k in 0..i {
            x[k] -= factors[i][k] * x[i];
        }
    }
    x
}

pub(super) fn product(a: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    a.iter().map(|row| dot(row, x)).collect()
}

/// Computes the least eigenvalue of a symmetric positive definite matrix relative to another one, by inverse iteration.
fn least_eigenvalue(a: &[Vec<f64>], mass: &[Vec<f64>]) -> f64 {
    let factors = factorised(a.to_vec());
    assert!((0..a.len()).all(|i| factors[i][i] > 0.0), "a matrix that is not positive definite");
    let mut x: Vec<f64> = Random(3).signed(a.len()).iter().map(|x| 1.0 + 0.1 * x).collect();
    for _ in 0..60 {
        let y = solved(&factors, &product(mass, &x));
        let size = norm(&y);
        x = y.iter().map(|y| y / size).collect();
    }
    dot(&x, &product(a, &x)) / dot(&x, &product(mass, &x))
}

/// On 3² squares with nodes at Gauss points the least eigenvalue of the matrix is known, and that relative to the mass
/// matrix is that of the Laplacian, 2π². A penalty below λ / 2 gives negative pivots.
#[test]
fn interior_penalty_is_positive_definite_with_its_own_penalty_alone() {
    let all = "\"x0\", \"x1\", \"y0\", \"y1\"";
    let exact = 2.0 * std::f64::consts::PI.powi(2);
    for (degree, plain, relative) in
        [(1, 0.5954, 0.09), (2, 0.2431, 1e-3), (3, 0.1358, 2e-5), (4, 0.08645, 2e-7)]
    {
        let squares = || mesh("box(dim: 2, cells: 3)").expect("squares");
        let mut system = built(setup(&penalised("L2(k)", all), squares(), degree));
        let a = dense(&assembled(&mut system));
        let mass = "form f { field u: scalar in L2(k); f0[u] = u; }";
        let mass = dense(&assembled(&mut built(setup(mass, squares(), degree))));
        let unit: Vec<Vec<f64>> =
            (0..a.len()).map(|i| (0..a.len()).map(|j| f64::from(i == j)).collect()).collect();
        let least = least_eigenvalue(&a, &unit);
        assert!((least / plain - 1.0).abs() < 1e-3, "degree {degree}: {least}");
        let least = least_eigenvalue(&a, &mass);
        assert!((least / exact - 1.0).abs() < relative, "degree {degree}: {least}");
        system.set_param("eta", 0.1).expect("a parameter");
        let factors = factorised(dense(&assembled(&mut system)));
        assert!((0..a.len()).any(|i| factors[i][i] < 0.0), "degree {degree}");
    }
}

#[test]
fn interior_penalty_is_symmetric_with_theta_1_alone() {
    for (mesh, on, degree) in samples() {
        let name = format!("{} {} of degree {degree}", mesh.n_cells(), mesh.cell());
        let mut system = built(setup(&penalised("L2(k)", on), mesh, degree));
        let (zero, x, y) = (system.vector(), noise(&system, 1), noise(&system, 2));
        for theta in [1.0, -1.0] {
            system.set_param("theta", theta).expect("a parameter");
            let [ax, ay] = [&x, &y].map(|x| applied(&mut system, &zero, x));
            let difference = (dot(&x.to_vec(), &ay) - dot(&y.to_vec(), &ax)).abs();
            let size = norm(&x.to_vec()) * norm(&ay);
            assert_eq!(difference < 1e-13 * size, theta == 1.0, "{name}: {difference} of {size}");
        }
    }
}

/// Shallow water with Rusanov's flux between cells, and the flux itself on the boundary `on`.
fn shallow(on: &str) -> String {
    let boundary = match on {
        "" => String::new(),
        on => format!("on boundary {on} {{ f0[u] = flux(u) * n; }}"),
    };
    format!(
        "form f {{ field u: vector(3) in L2(k); param g = 1; \
         fn flux(s) = [[s[1], s[2]], [s[1]^2 / s[0] + g * s[0]^2 / 2, s[1] * s[2] / s[0]], [s[1] * s[2] / s[0], s[2]^2 / s[0] + g * s[0]^2 / 2]]; \
         f1[u] = -flux(u); \
         on interior {{ \
             fn speed(s) = abs(s[1] * n[0] + s[2] * n[1]) / s[0] + sqrt(g * s[0]); \
             f0[jump(u)] = avg(flux(u)) * n + max(speed(inside(u)), speed(outside(u))) / 2 * jump(u); \
         }} {boundary} }}"
    )
}

/// Returns a state without dry places, and its perturbation.
fn waves(system: &System) -> Vector {
    let mut u = system.vector();
    let noise = Random(5).signed(system.dofs());
    let entry = |(i, noise): (usize, &f64)| [2.0, 0.4, -0.3][i % 3] + 0.2 * noise;
    u.set(&noise.iter().enumerate().map(entry).collect::<Vec<f64>>());
    u
}

#[test]
fn the_jacobian_of_rusanovs_flux_is_its_derivative() {
    for cell in ["quad", "tri"] {
        let on = mesh(&format!("box(dim: 2, cells: 3, cell: {cell})")).expect("a box");
        let mut system = built(setup(&shallow("\"x0\", \"x1\", \"y0\", \"y1\""), on, 2));
        let (u, w) = (waves(&system), noise(&system, 9));
        let slope = applied(&mut system, &u, &w);
        let start = residual(&system, &u);
        let remainder = |step: f64| {
            let mut moved = system.vector();
            let (u, w) = (u.to_vec(), w.to_vec());
            moved.set(&u.iter().zip(&w).map(|(u, w)| u + step * w).collect::<Vec<f64>>());
            let end = residual(&system, &moved);
            let off = end.iter().zip(&start).zip(&slope).map(|((a, b), s)| a - b - step * s);
            norm(&off.collect::<Vec<f64>>())
        };
        let order = (remainder(1e-4) / remainder(5e-5)).log2();
        assert!((order - 2.0).abs() < 0.02, "{cell}: {order}");
    }
}

/// With f1 = −F and the flux F · n on all facets nothing is left of a constant state where the rule integrates the
/// normals of curved cells exactly.
#[test]
fn constant_states_stay_on_curved_cells() {
    for (text, degree, quadrature, is_exact) in [
        ("ball(dim: 2, refine: 1, order: 2)", 1, None, true),
        ("ball(dim: 2, refine: 1, order: 3)", 1, None, true),
        ("ball(dim: 2, refine: 1, order: 3, cell: tri)", 1, None, true),
        ("ball(dim: 2, refine: 1, order: 4)", 1, Some(9), true),
        ("ball(dim: 3, order: 2)", 2, None, true),
        ("ball(dim: 3, order: 2)", 1, Some(5), true),
        ("ball(dim: 3, order: 3)", 1, None, false),
        ("ball(dim: 3, order: 3)", 1, Some(7), true),
    ] {
        let on = mesh(text).expect("a ball");
        let b = if on.dim() == 2 { "[1, 0.5]" } else { "[1, 0.5, -0.25]" };
        let text = format!(
            "form f {{ field u: scalar in L2(k); let b = {b}; f1[u] = -u * b; \
             on interior {{ f0[jump(u)] = dot(b, n) * avg(u) + abs(dot(b, n)) / 2 * jump(u); }} \
             on boundary \"surface\" {{ f0[u] = dot(b, n) * u; }} }}"
        );
        let mut setup = setup(&text, on, degree);
        if let Some(quadrature) = quadrature {
            setup = setup.quadrature(quadrature);
        }
        let system = built(setup);
        let mut u = system.vector();
        u.fill(1.0);
        let left = residual(&system, &u).iter().fold(0.0_f64, |most, r| most.max(r.abs()));
        assert_eq!(left < 1e-14, is_exact, "{text} of degree {degree}, {quadrature:?}: {left}");
    }
}

/// The sum of the rows of a conserved component is 0 around a periodic box, for any state.
#[test]
fn rows_of_conserved_components_cancel() {
    for (text, sides) in [
        ("box(dim: 2, cells: 4, deform: 0.1)", 2),
        ("box(dim: 2, cells: 4, cell: tri)", 2),
        ("box(dim: 2, cells: [1, 2])", 2),
    ] {
        let mut on = mesh(text).expect("a box");
        on.make_periodic(&[["x0", "x1"], ["y0", "y1"]][..sides]).expect("sides");
        let system = built(setup(&shallow(""), on, 2));
        let r = residual(&system, &waves(&system));
        for component in 0..3 {
            let own = || r.iter().skip(component).step_by(3);
            let (sum, size): (f64, f64) = (own().sum(), own().map(|r| r.abs()).sum());
            assert!(sum.abs() < 4.0 * f64::EPSILON * size.max(1.0), "{text}: {sum} of {size}");
        }
    }
}

/// Sum of monomials: factors with their exponents.
struct Polynomial(Vec<(f64, [i32; 3])>);

impl Polynomial {
    /// Returns a polynomial with all monomials up to a degree.
    fn new(dim: usize, degree: i32) -> Self {
        let all = 0..=degree;
        let exponents = all.clone().flat_map(|a| {
            let all = all.clone();
            all.clone().flat_map(move |b| all.clone().map(move |c| [a, b, c]))
        });
        let own = exponents
            .filter(|own| own.iter().sum::<i32>() <= degree && own[dim..] == [0; 3][dim..]);
        Self((0..).zip(own).map(|(i, own)| (f64::from(i * 7 % 5) - 1.75, own)).collect())
    }

    fn derivative(&self, axis: usize) -> Self {
        let of = |&(factor, mut own): &(f64, [i32; 3])| {
            own[axis] -= 1;
            (own[axis] >= 0).then_some((factor * f64::from(own[axis] + 1), own))
        };
        Self(self.0.iter().filter_map(of).collect())
    }

    fn value(&self, x: &[f64; 3]) -> f64 {
        let power = |own: &[i32; 3]| (0..3).map(|i| x[i].powi(own[i])).product::<f64>();
        self.0.iter().map(|(factor, own)| factor * power(own)).sum()
    }

    /// Returns the polynomial in the language.
    fn text(&self) -> String {
        let power = |(i, &exponent): (usize, &i32)| match exponent {
            0 => String::new(),
            _ => format!(" * x[{i}]^{exponent}"),
        };
        let term = |(factor, own): &(f64, [i32; 3])| {
            format!("({factor}{})", own.iter().enumerate().map(power).collect::<String>())
        };
        let terms: Vec<String> = self.0.iter().map(term).collect();
        if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
    }
}

/// Returns all orders of some numbers.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else { return vec![Vec::new()] };
    let with_last = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    };
    permutations(last).into_iter().flat_map(with_last).collect()
}

/// Returns orders of all vertices, and the vertices of the cells, for all positions of two cells at a facet. Vertices of
/// simplices are sorted by their numbers, so that these are all that matters.
fn positions(cell: Cell, second: &[usize], count: usize) -> Vec<(Vec<usize>, [Vec<usize>; 2])> {
    let first: Vec<usize> = (0..cell.vertex_count()).collect();
    let (cells, unchanged) = ([first, second.to_vec()], (0..count).collect::<Vec<usize>>());
    if !cell.is_tensor() {
        return permutations(count).into_iter().map(|numbers| (numbers, cells.clone())).collect();
    }
    let turned = |cell: &[usize], turn: &[usize]| turn.iter().map(|&v| cell[v]).collect();
    let turns = rotations(cell.dim(), true);
    let pairs = turns.iter().flat_map(|a| turns.iter().map(move |b| [a, b]));
    pairs.map(|[a, b]| (unchanged.clone(), [turned(&cells[0], a), turned(&cells[1], b)])).collect()
}

/// Returns pairs of cells at a facet, in all positions, with their numbers; no others meet at facets. Vertices of simplices
/// are numbered as they come: smaller cells at each of them come first.
fn glued(cell: Cell) -> (Mesh, Vec<usize>) {
    let (dim, first) = (cell.dim(), cell.vertices());
    let beside = |&[x, y, z]: &[f64; 3]| [if cell.is_tensor() { x + 1.0 } else { -x }, y, z];
    let second: Vec<[f64; 3]> = first.iter().map(beside).collect();
    let mut places = first.clone();
    places.extend(second.iter().filter(|point| !first.contains(point)));
    let number = |point: &[f64; 3]| places.iter().position(|place| place == point);
    let second: Vec<usize> = second.iter().filter_map(number).collect();
    let all = positions(cell, &second, places.len());
    // Affine, with no edge along an axis; the pairs have their places in a square.
    let side = (all.len() as f64).sqrt().ceil();
    let bent = |[x, y, z]: [f64; 3], pair: usize| {
        let z = if dim == 2 { 0.0 } else { 1.1 * z - 0.2 * x + 0.15 * y };
        let [i, j] = [pair as f64 % side, (pair as f64 / side).floor()];
        let place = [x + 0.3 * y - 0.1 * z + 4.0 * i, 0.9 * y - 0.2 * x + 0.25 * z + 4.0 * j, z];
        place.map(|x| x / (4.0 * side))
    };
    // A cell at a vertex, away from the middle.
    let outer = |[x, y, z]: [f64; 3], axis: usize| {
        let mut end = [1.2 * x, 1.2 * y - 0.05, 1.2 * z - 0.05];
        end[axis] += 0.02;
        end
    };
    let (mut points, mut nodes, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (pair, (order, cells)) in all.iter().enumerate() {
        let from = points.len();
        points.extend(places.iter().map(|&place| bent(place, pair)));
        for &vertex in order.iter().filter(|_| !cell.is_tensor()) {
            nodes.push((from + vertex) as u32);
            nodes.extend((points.len() as u32..).take(dim));
            points.extend((0..dim).map(|axis| bent(outer(places[vertex], axis), pair)));
        }
        let count = nodes.len() / cell.vertex_count();
        own.extend([count, count + 1]);
        nodes.extend(cells.iter().flatten().map(|&v| (from + v) as u32));
    }
    let data = MeshData { points, nodes, ..MeshData::default() };
    let mut mesh = Mesh::new(cell, 1, data, CellOrdering::Original).expect("a mesh");
    mesh.tag_boundary("all round", |_| true);
    (mesh, own)
}

/// Two cells in all positions relative to each other, with all orientations of their facet: a polynomial of the space
/// with its own data leaves nothing.
#[test]
fn polynomials_leave_nothing_whichever_way_two_cells_are_turned() {
    for (cell, views, degrees) in [
        (Cell::Triangle, 1, 1..=4),
        (Cell::Quadrilateral, 2, 1..=4),
        (Cell::Tetrahedron, 2, 1..=3),
        (Cell::Hexahedron, 8, 1..=2),
    ] {
        let (dim, (mesh, own)) = (cell.dim(), glued(cell));
        let pairs = cell_pairs(&mesh);
        let met = pairs.iter().flat_map(|pair| pair.sides.map(|side| side.cell as usize));
        assert_eq!(met.collect::<BTreeSet<_>>(), own.iter().copied().collect(), "{cell}");
        let seen: BTreeSet<_> = pairs.iter().map(|pair| pair.orientations).collect();
        let facets: BTreeSet<_> =
            pairs.iter().map(|pair| pair.sides.map(|side| side.local)).collect();
        assert_eq!((seen.len(), facets.len()), (views, cell.facets().len().pow(2)), "{cell}");
        for degree in degrees {
            let g = Polynomial::new(dim, degree);
            let slopes: Vec<Polynomial> = (0..dim).map(|axis| g.derivative(axis)).collect();
            let source = (0..dim).map(|axis| slopes[axis].derivative(axis).text());
            let source = source.collect::<Vec<_>>().join(" + ");
            let slope = slopes.iter().map(Polynomial::text).collect::<Vec<_>>().join(", ");
            let text = format!(
                "form f {{ field u: scalar in L2(k); param eta = 2; f0[u] = {source}; f1[u] = grad(u); \
                 on interior {{ f0[jump(u)] = eta * avg(penalty(u)) * jump(u) - dot(avg(grad(u)), n); f1[avg(u)] = -jump(u) * n; }} \
                 on boundary \"all round\" {{ let g = {}; f0[u] = eta * penalty(u) * (u - g) - dot([{slope}], n); f1[u] = -(u - g) * n; }} }}",
                g.text()
            );
            let system = built(setup(&text, mesh.clone(), degree as usize));
            // Beside it that of another polynomial.
            let [left, other] = [0.0, 1.0].map(|more| {
                let u = system.interpolate("u", |x| g.value(x) + more * x[0]).expect("a state");
                let (r, space) = (residual(&system, &u), &system.discretisation().fields[0].space);
                let rows = own.iter().flat_map(|&cell| space.cell_nodes(cell));
                rows.fold(0.0_f64, |most, &row| most.max(r[row as usize].abs()))
            });
            assert!(left < 1e-11 * other, "{cell}, degree {degree}: {left} of {other}");
        }
    }
}
