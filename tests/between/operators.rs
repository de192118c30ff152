//! Operators of forms with terms between cells against operators that are known: those of continuous functions, matrices
//! by hand, eigenvalues, and identities.

use fem_dsl::testing::Random;
use kernels_gen::element::tabulate;
use runtime::mesh::{CellOrdering, MeshData};
use weakform::layers::{kernels_gen, runtime};
use weakform::{Cell, Csr, Execution, Form, Mesh, Setup, System, Vector, mesh};

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
        for cell in 0..continuous.mesh().n_cells() {
            let own = from.cell_nodes(cell);
            for (q, &node) in to.cell_nodes(cell).iter().enumerate() {
                let entry = |(i, &node): (usize, &u32)| (node as usize, table.value(q, i));
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
    let rotations = rotations(dim);
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

/// Returns the orders of the vertices of a square or a cube that are its rotations.
fn rotations(dim: usize) -> Vec<Vec<usize>> {
    let orders: &[([usize; 3], u32)] = &[
        ([0, 1, 2], 0),
        ([1, 0, 2], 1),
        ([1, 2, 0], 0),
        ([2, 0, 1], 0),
        ([0, 2, 1], 1),
        ([2, 1, 0], 1),
    ];
    let mut all = Vec::new();
    for (axes, odd) in &orders[..if dim == 2 { 2 } else { 6 }] {
        for flips in (0..1usize << dim).filter(|flips| flips.count_ones() % 2 == *odd) {
            let image = |v: usize| (0..dim).fold(0, |w, a| w | (v >> a & 1) << axes[a]) ^ flips;
            all.push((0..1 << dim).map(image).collect());
        }
    }
    all
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

/// With the embedding E of the continuous functions, Eᵀ A E is the operator of the continuous form, and no E v jumps.
#[test]
fn continuous_functions_have_the_continuous_operator() {
    for (mesh, on, degree) in samples() {
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

/// Two cubes, or squares, in all positions relative to each other: a polynomial of the space with its own data leaves
/// nothing.
#[test]
fn polynomials_leave_nothing_whichever_way_two_cells_are_turned() {
    for (dim, degree) in [(2, 2), (3, 1)] {
        let cell = if dim == 2 { Cell::Quadrilateral } else { Cell::Hexahedron };
        let corner = |v: usize, from: f64| {
            [
                from + (v & 1) as f64,
                (v >> 1 & 1) as f64,
                if dim == 3 { (v >> 2) as f64 } else { 0.0 },
            ]
        };
        let count = 1 << dim;
        let mut points: Vec<[f64; 3]> = (0..count).map(|v| corner(v, 0.0)).collect();
        points.extend((0..count).filter(|v| v & 1 == 1).map(|v| corner(v, 1.0)));
        let second: Vec<u32> = (0..count)
            .map(|v| {
                let at = points.iter().position(|point| *point == corner(v, 1.0));
                at.expect("a point") as u32
            })
            .collect();
        let g = if dim == 2 { "1 + x[0] * x[1] - x[1]^2" } else { "1 + x[0] - 2 * x[1] + x[2]" };
        let slope = if dim == 2 { "[x[1], x[0] - 2 * x[1]]" } else { "[1, -2, 1]" };
        let source = if dim == 2 { "2" } else { "0" };
        let text = format!(
            "form f {{ field u: scalar in L2(k); param eta = 2; f0[u] = -{source}; f1[u] = grad(u); \
             on interior {{ f0[jump(u)] = eta * avg(penalty(u)) * jump(u) - dot(avg(grad(u)), n); f1[avg(u)] = -jump(u) * n; }} \
             on boundary \"all round\" {{ let g = {g}; f0[u] = eta * penalty(u) * (u - g) - dot({slope}, n); f1[u] = -(u - g) * n; }} }}"
        );
        for rotation in rotations(dim) {
            let nodes: Vec<u32> =
                (0..count as u32).chain(rotation.iter().map(|&v| second[v])).collect();
            let data = MeshData { points: points.clone(), nodes, ..MeshData::default() };
            let mut mesh = Mesh::new(cell, 1, data, CellOrdering::Original).expect("a mesh");
            mesh.tag_boundary("all round", |_| true);
            let system = built(setup(&text, mesh, degree));
            let u = system
                .interpolate("u", |x| match dim {
                    2 => 1.0 + x[0] * x[1] - x[1] * x[1],
                    _ => 1.0 + x[0] - 2.0 * x[1] + x[2],
                })
                .expect("a state");
            let left = norm(&residual(&system, &u));
            assert!(left < 1e-12, "{rotation:?}: {left}");
        }
    }
}
