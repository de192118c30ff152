//! Periodic sides that are rotated: a sector of a ring against the whole ring on the same cells, under loads that are
//! symmetric under the rotation alone.

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::path::Path;
use weakform::{Error, Execution, Form, PeriodicMap, PeriodicSides, ReportValue, Solution};

type Place = [f64; 3];

/// Cells of a ring. A pie has no hole; rings in space have two layers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cells {
    Quad,
    Tri,
    Pie,
    Hex,
    Tet,
}

/// Cells along the radius, and along the arc of a sector.
const ALONG: [usize; 2] = [2, 2];

/// The corners of a quadrilateral, and of its triangles.
const SQUARE: [[usize; 2]; 4] = [[0, 0], [1, 0], [1, 1], [0, 1]];
const HALVES: [[usize; 3]; 2] = [[0, 1, 2], [0, 3, 2]];
/// Orders of the axes on the paths through the tetrahedra of a cube.
const PATHS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl Cells {
    fn dim(self) -> usize {
        if matches!(self, Self::Hex | Self::Tet) { 3 } else { 2 }
    }

    /// Returns a sector of a ring of radii 1 and 2 with `count` sectors, or the whole ring, in the format of Gmsh. The
    /// sides of a sector are "start" and "end".
    fn mesh(self, count: usize, whole: bool, to: impl Fn(Place) -> Place) -> String {
        let [across, arc] = [ALONG[0], ALONG[1] * if whole { count } else { 1 }];
        let layers = self.dim() - 2;
        let (rows, columns) = (across + 1, arc + usize::from(!whole));
        let node = |[i, j, k]: [usize; 3]| {
            let j = if self == Self::Pie && i == 0 { 0 } else { j % columns };
            (k * columns + j) * rows + i + 1
        };
        let mut nodes = Vec::new();
        for k in 0..=2 * layers {
            for j in 0..columns {
                for i in 0..rows {
                    let hole = if self == Self::Pie { 0.0 } else { 1.0 };
                    let r = hole + (2.0 - hole) * i as f64 / across as f64;
                    let angle = TAU * j as f64 / (ALONG[1] * count) as f64;
                    if hole > 0.0 || i > 0 || j == 0 {
                        let at = to([r * angle.cos(), r * angle.sin(), 0.3 * k as f64]);
                        nodes.push((node([i, j, k]), at));
                    }
                }
            }
        }
        // Facets and cells: kind, tag, nodes.
        let mut elements: Vec<(usize, usize, Vec<usize>)> = Vec::new();
        let mut side = |tag: usize, a: [usize; 2], b: [usize; 2]| {
            let at = |[i, j]: [usize; 2], k: usize| node([i, j, k]);
            for k in 0..(2 * layers).max(1) {
                let square = [at(a, k), at(b, k), at(b, k + 1), at(a, k + 1)];
                match self.dim() {
                    2 => elements.push((1, tag, square[..2].to_vec())),
                    _ if self == Self::Hex => elements.push((3, tag, square.to_vec())),
                    _ => {
                        elements.extend(HALVES.map(|own| (2, tag, own.map(|c| square[c]).to_vec())))
                    }
                }
            }
        };
        for j in 0..arc {
            side(2, [across, j], [across, j + 1]);
            if self != Self::Pie {
                side(1, [0, j], [0, j + 1]);
            }
        }
        for i in 0..across {
            if !whole {
                side(3, [i, 0], [i + 1, 0]);
                side(4, [i, arc], [i + 1, arc]);
            }
        }
        for (i, j) in (0..across).flat_map(|i| (0..arc).map(move |j| (i, j))) {
            let square = SQUARE.map(|[a, b]| [i + a, j + b]);
            let flat = square.map(|[i, j]| node([i, j, 0]));
            match self {
                Self::Quad => elements.push((3, 5, flat.to_vec())),
                Self::Pie if i == 0 => elements.push((2, 5, flat[..3].to_vec())),
                Self::Tri | Self::Pie => {
                    elements.extend(HALVES.map(|own| (2, 5, own.map(|c| flat[c]).to_vec())));
                }
                Self::Hex => elements.extend((0..2).map(|k| {
                    let plane = |k: usize| square.map(|[i, j]| node([i, j, k]));
                    (5, 5, [plane(k), plane(k + 1)].concat())
                })),
                Self::Tet => elements.extend((0..2).flat_map(|k| {
                    PATHS.map(|path| {
                        let mut at = [i, j, k];
                        let mut corners = vec![node(at)];
                        for axis in path {
                            at[axis] += 1;
                            corners.push(node(at));
                        }
                        (4, 5, corners)
                    })
                })),
            }
        }
        written(self.dim(), &nodes, &elements)
    }
}

fn written(
    dim: usize,
    nodes: &[(usize, Place)],
    elements: &[(usize, usize, Vec<usize>)],
) -> String {
    let mut text = String::from("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n5\n");
    for (tag, name) in ["inner", "outer", "start", "end"].iter().enumerate() {
        let _ = writeln!(text, "{} {} \"{name}\"", dim - 1, tag + 1);
    }
    let _ = writeln!(text, "{dim} 5 \"body\"\n$EndPhysicalNames\n$Nodes\n{}", nodes.len());
    for (number, [x, y, z]) in nodes {
        let _ = writeln!(text, "{number} {x:?} {y:?} {z:?}");
    }
    let _ = writeln!(text, "$EndNodes\n$Elements\n{}", elements.len());
    for (number, (kind, tag, nodes)) in elements.iter().enumerate() {
        let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "{} {kind} 2 {tag} {tag} {}", number + 1, nodes.join(" "));
    }
    text + "$EndElements\n"
}

/// A form with its conditions on a ring of some sectors.
struct Case {
    cells: Cells,
    sectors: usize,
    form: &'static str,
    items: &'static str,
    /// The map of the sides.
    map: &'static str,
}

/// The axis of rings in space goes through this point along the first direction.
const CENTRE: Place = [0.5, -0.2, 0.1];

/// Radial and tangential loads whose cosines have the period of the sector, or twice that.
const LOADS: &str = "let m = sectors; let a = atan2(y[1], y[0]); let r = sqrt(y[0]^2 + y[1]^2);
    let even = [(1 + cos(m * a)) * y[0] - (0.5 + sin(m * a)) * y[1], (1 + cos(m * a)) * y[1] + (0.5 + sin(m * a)) * y[0]];
    let odd = [cos(m * a / 2) * y[0] - sin(m * a / 2) * y[1], cos(m * a / 2) * y[1] + sin(m * a / 2) * y[0]];";

/// Writes the mesh of a case into a folder, and returns its form and problem.
fn text(case: &Case, whole: bool, folder: &Path) -> String {
    let is_flat = case.cells.dim() == 2;
    let mesh = case.cells.mesh(case.sectors, whole, |[x, y, z]| match is_flat {
        true => [x, y, z],
        false => [z + CENTRE[0], x + CENTRE[1], y + CENTRE[2]],
    });
    std::fs::write(folder.join("ring.msh"), mesh).expect("a file");
    let Case { form, items, map, .. } = case;
    let arms = if is_flat { "let y = x;" } else { "let y = [x[1] + 0.2, x[2] - 0.1];" };
    let loads = format!("{arms} {}", LOADS.replace("sectors", &case.sectors.to_string()));
    let sides = if whole { String::new() } else { format!("periodic \"start\" = \"end\" {map};") };
    format!(
        "form f {{ {loads} {form} }} problem p solves f {{ mesh = \"ring.msh\"; {items} {sides} }}"
    )
}

fn run(case: &Case, whole: bool) -> Result<Solution, Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let form = Form::parse(&text(case, whole, folder.path()), "f")?;
    form.problem("p")?.folder(folder.path()).execution(Execution::Interpreted).run()
}

fn numbers(solution: &Solution, name: &str) -> Vec<f64> {
    match solution.report(name) {
        Some(ReportValue::Value(_, values)) => values.clone(),
        found => found.and_then(ReportValue::number).into_iter().collect(),
    }
}

/// Asserts that the value at a point is that of the ring, and that the integral over the sector is its share.
fn compare(case: &Case) {
    let [sector, ring] = [false, true].map(|whole| {
        run(case, whole).unwrap_or_else(|error| panic!("{:?} {}: {error}", case.cells, case.form))
    });
    let (own, expected) = (numbers(&sector, "there"), numbers(&ring, "there"));
    let size = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    assert!(size > 1e-3 && !own.is_empty(), "{} {expected:?}", case.form);
    let close = own.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-7 * size);
    assert!(close, "{:?} {}: {own:?}, and not {expected:?}", case.cells, case.form);
    let [part, all] = [&sector, &ring].map(|of| numbers(of, "sum")[0]);
    let share = all / case.sectors as f64;
    assert!((part / share - 1.0).abs() < 1e-7, "{:?} {}: {part} {share}", case.cells, case.form);
}

fn compare_all(cases: &[Case]) {
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || compare(case));
        }
    });
}

const ELASTIC: &str =
    "field u: vector; f0[u] = u - even; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I;";

#[test]
fn vectors_in_a_sector_are_those_of_the_ring() {
    let case =
        |cells, sectors, form, items| Case { cells, sectors, form, items, map: "by rotation" };
    let anti = |form, items| Case {
        map: "by rotation(about: [0, 0], factor: -1)",
        ..case(Cells::Quad, 6, form, items)
    };
    compare_all(&[
        case(Cells::Quad, 6, ELASTIC, "degree = 3; report there = u([1.2, 0.3]); report sum = integral(dot(u, u));"),
        case(Cells::Tri, 4, ELASTIC, "degree = 2; report there = u([1.2, 0.3]); report sum = integral(dot(u, u));"),
        // The centre depends on itself.
        case(Cells::Pie, 5, ELASTIC, "degree = 2; report there = u([1.2, 0.3]); report sum = integral(dot(u, u));"),
        // Conditions on components and on normals at both sides.
        case(
            Cells::Quad,
            5,
            "field u: vector; f0[u] = -even; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I;",
            "degree = 2; dirichlet dot(u, n) = 0 on \"outer\"; dirichlet u = 0.1 * [-x[1], x[0]] on \"inner\";
             report there = u([1.2, 0.3]); report sum = integral(dot(u, u));",
        ),
        case(
            Cells::Quad,
            4,
            "field u: vector in H1(k); field p: scalar in H1(k - 1); f0[u] = -even; f1[u] = grad(u) - p * I; f0[p] = div(u);",
            "degree = 2; dirichlet u = [0, 0] on \"inner\", \"outer\"; mean p = 0;
             report there = u([1.2, 0.3]); report sum = integral(dot(u, u) + p^2);",
        ),
        case(
            Cells::Tri,
            6,
            "field u: vector; f0[u] = dt(u) + dot(u, u) * u - even; f1[u] = grad(u);",
            "degree = 2; time = bdf(order: 2, to: 0.2, step: 0.1); report there = u([1.2, 0.3]);
             report sum = integral(dot(u, u));",
        ),
        case(
            Cells::Quad,
            6,
            "field s: tensor; f0[s] = s - outer(even, even);",
            "degree = 2; report there = at(s[0, 1], [1.2, 0.3]); report sum = integral(inner(s, s));",
        ),
        anti(
            "field u: vector; f0[u] = u - odd; f1[u] = grad(u);",
            "degree = 2; report there = u([1.2, 0.3]); report sum = integral(dot(u, u));",
        ),
        anti(
            "field v: scalar; f0[v] = v - odd[0] * y[0] - odd[1] * y[1]; f1[v] = grad(v);",
            "degree = 3; report there = v([1.2, 0.3]); report sum = integral(v^2);",
        ),
    ]);
}

#[test]
fn sectors_in_space_turn_about_any_axis() {
    // Rules on tetrahedra, which need not be symmetric, are exact for these loads.
    let form = "field u: vector; f0[u] = u - [1 + y[0]^3 - 3 * y[0] * y[1]^2, y[0] - y[1] / 2, y[1] + y[0] / 2];
        f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I;";
    let items = "degree = 1; quadrature = 6; report there = u([0.8, 1, 0.4]); report sum = integral(dot(u, u));";
    let map = "by rotation(about: [0, -0.2, 0.1], axis: [2, 0, 0])";
    let case = |cells, sectors| Case { cells, sectors, form, items, map };
    compare_all(&[case(Cells::Hex, 3), case(Cells::Tet, 3)]);
}

#[test]
fn identical_degrees_of_freedom_need_no_constraints() {
    let case = |cells, form, items| Case {
        cells,
        sectors: 6,
        form,
        items,
        map: "by rotation(about: [0, 0])",
    };
    let scalar = "field v: scalar; f0[v] = v - (1 + cos(m * a) + sin(m * a)) * r; f1[v] = grad(v);";
    let plain = "degree = 3; report there = v([1.2, 0.3]); report sum = integral(v^2);";
    let multigrid = "degree = 3; refine = 2; solver = cg(preconditioner: multigrid);
        report there = v([1.2, 0.3]); report sum = integral(v^2);";
    let vectors = "degree = 2; report there = u([1.2, 0.3]); report sum = integral(dot(u, u));";
    compare_all(&[
        case(Cells::Quad, scalar, multigrid),
        case(Cells::Tri, scalar, plain),
        case(
            Cells::Quad,
            "field u: vector in Hcurl(k); f0[u] = u - even; f1[u] = curl(u);",
            vectors,
        ),
        case(
            Cells::Tri,
            "field u: vector in Hcurl(k); f0[u] = u - even; f1[u] = curl(u);",
            vectors,
        ),
        case(Cells::Quad, "field u: vector in Hdiv(k); f0[u] = u - even; f1[u] = div(u);", vectors),
    ]);
}

#[test]
fn rotations_that_are_not_supported_have_a_remedy() {
    let refused_as = |form, items, map, expected: &[&str]| {
        let case = Case { cells: Cells::Quad, sectors: 6, form, items, map };
        let error = run(&case, false).expect_err("an error").to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    };
    let scalar = "field v: scalar; f0[v] = v - r; f1[v] = grad(v);";
    let jumps = "field v: scalar in L2(k); f0[v] = v - r; on interior { f0[jump(v)] = jump(v); }";
    refused_as(jumps, "", "by rotation", &["terms between cells", "help: mesh the whole domain"]);
    refused_as(
        scalar,
        "adapt(steps: 1);",
        "by rotation",
        &["error estimates", "leave out `adapt`"],
    );
    refused_as(
        "field u: vector in Hcurl(k); f0[u] = u - even; f1[u] = curl(u);",
        "",
        "by rotation(factor: -1)",
        &["antiperiodic", "mesh two sectors"],
    );
    let vector = "field u: vector; f0[u] = u - even; f1[u] = grad(u);";
    refused_as(vector, "eigen = smallest(1);", "by rotation", &["modes", "mesh the whole domain"]);
    refused_as(
        "field u: vector; f0[u] = dt(u) - even; f1[u] = grad(u);",
        "time = rk(to: 1, step: 0.1, mass: consistent);",
        "by rotation",
        &["constraints between both sides", "take an implicit scheme"],
    );
    refused_as(
        vector,
        "solver = cg(preconditioner: multigrid);",
        "by rotation",
        &["multigrid does not support constraints", "write `preconditioner: jacobi`"],
    );
    refused_as(scalar, "", "", &["by rotation(about: …)"]);
    refused_as(scalar, "", "by rotation(about: [1.5, 0])", &["lies on the axis"]);
    refused_as(scalar, "", "by rotation(about: [0.1, 0])", &["has no partner"]);
    refused_as(scalar, "", "by rotation(factor: 2)", &["`factor` should be 1 or -1"]);
    refused_as(scalar, "", "by reflection", &["`reflection` is no map of sides"]);
}

#[test]
fn processes_share_scalars_and_refuse_vectors() {
    let case =
        |form, items| Case { cells: Cells::Quad, sectors: 6, form, items, map: "by rotation" };
    let scalar = "field v: scalar; f0[v] = v - (1 + cos(m * a) + sin(m * a)) * r; f1[v] = grad(v);";
    let items = "degree = 2; solver = cg(rtol: 1e-13); report sum = integral(v^2);";
    let folder = tempfile::tempdir().expect("a folder");
    let scalar = case(scalar, items);
    let alone = numbers(&run(&scalar, false).expect("a solution"), "sum");
    let of_scalar = text(&scalar, false, folder.path());
    let of_vector = text(&case(ELASTIC, "degree = 2;"), false, folder.path());
    let both = weakform::processes::each(2, |group| {
        let run = |text: &str| {
            let problem = Form::parse(text, "f")?.problem("p")?.folder(folder.path());
            problem.execution(Execution::Interpreted).processes(group.clone()).run()
        };
        (run(&of_scalar).map(|found| numbers(&found, "sum")), run(&of_vector).err())
    });
    for (sum, refused) in both {
        let sum = sum.unwrap_or_else(|error| panic!("{error}"));
        assert!((sum[0] / alone[0] - 1.0).abs() < 1e-10, "{sum:?} {alone:?}");
        let refused = refused.expect("a refusal").to_string();
        assert!(refused.contains("help: run it in one process"), "{refused}");
    }
}

#[test]
fn devices_turn_vectors_as_the_processor_does() {
    let items = "degree = 2; solver = cg(rtol: 1e-13, preconditioner: jacobi); report sum = integral(dot(u, u));";
    let case = Case { cells: Cells::Quad, sectors: 6, form: ELASTIC, items, map: "by rotation" };
    let alone = numbers(&run(&case, false).expect("a solution"), "sum");
    let folder = tempfile::tempdir().expect("a folder");
    let text = text(&case, false, folder.path());
    for device in super::devices::devices() {
        let problem = Form::parse(&text, "f").and_then(|form| form.problem("p"));
        let found = problem.expect("a problem").folder(folder.path()).device(device).run();
        let sum = numbers(&found.unwrap_or_else(|error| panic!("{error}")), "sum");
        assert!((sum[0] / alone[0] - 1.0).abs() < 1e-10, "{sum:?} {alone:?}");
    }
}

/// A system on a mesh whose sides are rotated has the constraints of a problem.
#[test]
fn a_system_turns_vectors_too() {
    let case =
        Case { cells: Cells::Quad, sectors: 6, form: ELASTIC, items: "", map: "by rotation" };
    let folder = tempfile::tempdir().expect("a folder");
    let text = text(&case, false, folder.path());
    let form = Form::parse(&text, "f").expect("a form");
    let problem = form.problem("p").expect("a problem").folder(folder.path());
    let expected = problem.execution(Execution::Interpreted).run().expect("a solution");
    let (system, _) = expected.system().expect("a system");
    let mut mesh = system.mesh().clone();
    mesh.make_periodic::<PeriodicSides>(&[]).expect("no sides");
    let map = PeriodicMap::Rotation { about: [0.0; 3], axis: [0.0, 0.0, 1.0] };
    let sides = PeriodicSides { map, ..PeriodicSides::from(["start", "end"]) };
    mesh.make_periodic(&[sides]).expect("sides that fit");
    let mut system = form.on(mesh).execution(Execution::Interpreted).build().expect("a system");
    let mut u = system.initial();
    system.solve(&mut u).expect("a solution");
    let same = u.to_vec().iter().zip(expected.values()).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(same && u.to_vec().len() == expected.values().len());
}
