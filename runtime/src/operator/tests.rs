//! Operators with small handwritten kernels: argument contents, written entries, and independence of the number of
//! threads. Kernels of real forms are compared with the reference elsewhere.

use super::batch::Batches;
use super::tables::{HostTable, TableKind};
use super::*;
use crate::algebra::vector::Real;
use crate::device::{VectorLayout, jit};
use crate::mesh::{CellOrdering, Mesh, MeshData};
use kernels_gen::abi::{self, Indices, IndirectAccess, KernelAbi, Owner, Role};
use kernels_gen::element::{Cell, Lagrange};
use kernels_gen::plan::{Geometry, Target};

/// Components of the field; nodes of a biquadratic cell.
const C: usize = 2;
const N: usize = 9;

const CELLS: CellClass = CellClass::Cells(CellSubset::Regular, 0);

/// Creates a distorted grid of n × n squares.
fn grid(n: usize) -> Mesh {
    let side = n + 1;
    let mut parts = MeshData::default();
    for i in 0..side * side {
        let (x, y) = ((i % side) as f64, (i / side) as f64);
        parts.points.push([x + 0.2 * (y * 1.3).sin(), y + 0.1 * (x * 0.7).cos(), 0.0]);
    }
    for i in 0..n * n {
        let corner = (i % n + side * (i / n)) as u32;
        let side = side as u32;
        parts.nodes.extend([corner, corner + 1, corner + side, corner + side + 1]);
    }
    Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Original).expect("a valid mesh")
}

/// Returns the discretisation of all tests, with auxiliary data and conditions.
fn discretisation(n: usize) -> Discretisation {
    let mesh = grid(n);
    let element = Lagrange::continuous(Cell::Quadrilateral, 2).expect("an element");
    let mut on = Discretisation::new(mesh, &[(element, C)]).expect("a discretisation");
    let points = on.fields[0].space.points(&on.mesh, &on.partition).expect("points");
    let low: Vec<u32> = on.fields[0].space.nodes_on(&on.mesh.boundary());
    let low: Vec<u32> = low.into_iter().filter(|&i| points[i as usize][1] < 1.5).collect();
    on.fields[0].constraints.fix(&low, Some(1), &points, |x, v| v[0] = x[0]).expect("finite");
    let linear = Lagrange::continuous(Cell::Quadrilateral, 1).expect("an element");
    let space = on.aux_space(linear, 1).expect("a space");
    let values = (0..space.n_nodes()).map(|i| (i as f64).sin()).collect();
    on.aux.push(AuxValues::at_nodes(space, values));
    on.aux.push(AuxValues::on_cells((0..n * n).map(|cell| 0.1 * cell as f64).collect()));
    on.aux.push(AuxValues::at_points((0..n * n * 6).map(|i| (i as f64).cos()).collect()));
    on
}

/// Tables that devices get in parts are those that the host lists.
#[test]
fn streamed_tables_are_the_listed_ones() {
    let on = discretisation(7);
    let space = &on.fields[0].space;
    let plain = || VectorLayout::plain(C);
    let strips = [plain(), plain().in_strips(space, 3)];
    let tiles = VectorLayout::tiles(C).in_separate_strips(space, 3);
    let (field, aux) = (Owner::Field(0), Owner::Aux(0));
    let keys = [
        (TableKind::Map(field, Indices::Nodes), N),
        (TableKind::Map(field, Indices::Tiles), N),
        (TableKind::Map(aux, Indices::Nodes), 4),
        (TableKind::Lines(field, Indices::Nodes, 0), N),
        (TableKind::Lines(field, Indices::Tiles, 1), N),
    ];
    for lanes in [1, 8, 32] {
        let batches = Batches::new(&on.partition, lanes, |_| true);
        for layout in strips.iter().chain([&tiles]) {
            for (key, entries) in keys {
                let extent = entries * lanes;
                let rows = tables::rows_of(key, extent, &on, &batches, layout);
                let rows = rows.expect("a space").expect("rows of nodes");
                let mut streamed = vec![0; rows.len()];
                let half = batches.len() / 2;
                let (before, after) = streamed.split_at_mut(half * extent);
                rows.write(0, before);
                rows.write(half, after);
                let listed = tables::make(key, extent, &on, &batches, Precision::F64, layout, &[]);
                let Ok(Some(HostTable::U32(listed))) = listed else { panic!("no table {key:?}") };
                assert!(streamed[..] == listed[..], "{key:?}, {lanes} lanes");
            }
        }
    }
}

/// Returns the factor of a cell's contributions: a mixture of all kernel inputs.
fn factor(on: &Discretisation, params: &[f64], cell: usize) -> f64 {
    let metric = on.mesh.points()[on.mesh.vertices(cell)[0] as usize][0] + on.mesh.diameter(cell);
    let [AuxValues::Nodes(space, nodes), AuxValues::Cells(cells), AuxValues::Points(points)] =
        &on.aux[..]
    else {
        panic!("three kinds of aux");
    };
    let sum: f64 = space.cell_nodes(cell).iter().map(|&i| nodes[i as usize]).sum();
    metric + sum + cells[cell] + points[cell * 6 + 5] + params[1]
}

/// Computes y_i = Σ_cells factor · Σ_j (1 + δ_ij) f(x_j), component by component.
fn expected(on: &Discretisation, params: &[f64], x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for cell in 0..on.mesh.n_cells() {
        let factor = factor(on, params, cell);
        for c in 0..C {
            let dofs: Vec<usize> =
                on.fields[0].space.cell_nodes(cell).iter().map(|&i| i as usize * C + c).collect();
            let sum: f64 = dofs.iter().map(|&i| f(x[i])).sum();
            for &i in &dofs {
                y[i] += factor * (sum + f(x[i]));
            }
        }
    }
    y
}

/// Returns the source of the kernels.
fn source(real: &str, lanes: usize) -> String {
    let index = "2 * map.add((b * 9 + i) * W + l).read() + c as u32";
    format!(
        r#"
mod cells {{
    type R = {real};
    const W: usize = {lanes};
    unsafe fn spread(begin: usize, end: usize, map: *const u32, active: *const u32, y: *mut R,
                     read: impl Fn(usize, usize, usize) -> R, factor: impl Fn(usize, usize) -> R) {{
        unsafe {{ for b in begin..end {{ for l in 0..active.add(b).read() as usize {{ for c in 0..2 {{
            let mut sum = 0.0;
            for i in 0..9 {{ sum += read(b, l, i * 2 + c); }}
            for i in 0..9 {{
                let dof = {index};
                *y.add(dof as usize) += factor(b, l) * (sum + read(b, l, i * 2 + c));
            }}
        }} }} }} }}
    }}
    #[unsafe(no_mangle)] pub unsafe extern "C" fn metric_cells(begin: usize, end: usize, a: *const *const u8) {{
        unsafe {{
            let (geometry, h, stored) = (*a as *const R, *a.add(1) as *const R, *a.add(2) as *mut R);
            for b in begin..end {{ for l in 0..W {{
                stored.add(b * W + l).write(geometry.add(b * 8 * W + l).read() + h.add(b * W + l).read());
            }} }}
        }}
    }}
    unsafe fn mixed(a: *const *const u8) -> impl Fn(usize, usize) -> R {{
        unsafe {{
            let (params, metric, nodes, map) = (*a as *const R, *a.add(1) as *const R, *a.add(2) as *const R, *a.add(3) as *const u32);
            let (cells, points) = (*a.add(4) as *const R, *a.add(5) as *const R);
            move |b, l| {{
                let mut sum = 0.0;
                for i in 0..4 {{ sum += nodes.add(map.add((b * 4 + i) * W + l).read() as usize).read(); }}
                metric.add(b * W + l).read() + sum + cells.add(b * W + l).read()
                    + points.add((b * 6 + 5) * W + l).read() + params.add(1).read()
            }}
        }}
    }}
    #[unsafe(no_mangle)] pub unsafe extern "C" fn residual_cells(begin: usize, end: usize, a: *const *const u8) {{
        unsafe {{
            let (u, map, active, y) = (*a.add(6) as *const R, *a.add(7) as *const u32, *a.add(8) as *const u32, *a.add(9) as *mut R);
            spread(begin, end, map, active, y, |b, l, d| {{
                let x = u.add(map.add((b * 9 + d / 2) * W + l).read() as usize * 2 + d % 2).read();
                x * x
            }}, mixed(a));
        }}
    }}
    #[unsafe(no_mangle)] pub unsafe extern "C" fn linearise_cells(begin: usize, end: usize, a: *const *const u8) {{
        unsafe {{
            let (u, nodes, stored) = (*a as *const R, *a.add(1) as *const u32, *a.add(2) as *mut R);
            for b in begin..end {{ for d in 0..18 {{ for l in 0..W {{
                let x = u.add(nodes.add((b * 9 + d / 2) * W + l).read() as usize * 2 + d % 2).read();
                stored.add((b * 18 + d) * W + l).write(2.0 * x);
            }} }} }}
        }}
    }}
    #[unsafe(no_mangle)] pub unsafe extern "C" fn action_cells(begin: usize, end: usize, a: *const *const u8) {{
        unsafe {{
            let (x, map, active, y, stored) = (*a.add(6) as *const R, *a.add(7) as *const u32, *a.add(8) as *const u32, *a.add(9) as *mut R, *a.add(10) as *const R);
            spread(begin, end, map, active, y, |b, l, d| {{
                let (i, c) = (d / 2, d % 2);
                let dof = {index};
                stored.add((b * 18 + d) * W + l).read() * x.add(dof as usize).read()
            }}, mixed(a));
        }}
    }}
}}
"#
    )
}

/// The kernels, as described by the generator.
fn kernels(lanes: usize, precision: Precision) -> (Vec<KernelAbi>, Vec<CellKernel>) {
    let map = (Role::Map(Owner::Field(0), Indices::Nodes), N);
    let mixed = [
        (Role::Params, 0),
        (Role::Geometry, 1),
        (Role::AuxNodes(0), 0),
        (Role::Map(Owner::Aux(0), Indices::Nodes), 4),
        (Role::AuxCells(1), 1),
        (Role::AuxPoints(2), 6),
    ];
    let active = (Role::Active, 0);
    let list = |tail: &[(Role, usize)]| [&mixed[..], tail].concat();
    let described = [
        (
            Task::Metric,
            Geometry::Vertices,
            vec![(Role::Geometry, 8), (Role::Diameter, 1), (Role::Stored, 1)],
        ),
        (
            Task::Residual,
            Geometry::Stored,
            list(&[(Role::State(0), 0), map, active, (Role::Result(0), 0)]),
        ),
        (Task::Linearise, Geometry::Vertices, vec![(Role::State(0), 0), map, (Role::Stored, 18)]),
        (
            Task::Action,
            Geometry::Stored,
            list(&[(Role::Direction(0), 0), map, active, (Role::Result(0), 0), (Role::Stored, 18)]),
        ),
    ];
    let mut abis = Vec::new();
    let mut uses = Vec::new();
    for (task, geometry, arguments) in described {
        let name = format!("{}_cells", task.word());
        let stores = matches!(task, Task::Metric | Task::Linearise);
        let argument = |(role, numbers): (Role, usize)| abi::Argument {
            role,
            name: format!("{role:?}"),
            extent: match role {
                Role::Params => 2,
                Role::Active => 1,
                _ => numbers * lanes,
            },
            written: matches!(role, Role::Result(_)) || (role == Role::Stored && stores),
        };
        // Results are written through the last index array of the field.
        let last = |wanted: Role| arguments.iter().rposition(|(role, _)| *role == wanted);
        let reaches = last(Role::Result(0)).zip(last(map.0)).map(|(array, map)| IndirectAccess {
            map,
            array,
            scale: C,
            last: C as i64 - 1,
            masked: false,
            part: None,
        });
        let reaches = reaches.into_iter().collect();
        let arguments = arguments.into_iter().map(argument).collect();
        abis.push(KernelAbi {
            threads: 1,
            reaches,
            ..KernelAbi::by_hand(name.clone(), precision, lanes, arguments)
        });
        uses.push(CellKernel {
            task,
            class: CELLS,
            name,
            geometry,
            target: Target::Vectors,
            matrix: None,
        });
    }
    (abis, uses)
}

const PARAMS: [f64; 2] = [0.0, 0.75];

fn operator(n: usize, precision: Precision) -> Operator {
    let real = crate::algebra::vector::name(precision);
    let text = source(real, 4);
    let options = jit::JitOptions::new("operator_test");
    let library = jit::compile(&text, &options).expect("the kernels compile");
    let (abis, uses) = kernels(4, precision);
    let module = Module::new(library, &abis).expect("the kernels are there");
    Operator::on_host(
        Arc::new(discretisation(n)),
        Arc::new(module),
        &uses,
        precision,
        &PARAMS,
        true,
    )
    .expect("an operator")
}

fn sample(n: usize) -> Vec<f64> {
    (0..n).map(|i| (0.37 * i as f64).sin() + 0.1).collect()
}

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "entry {i}: {a} instead of {b}");
    }
}

fn check<T: Real>(tolerance: f64) {
    let precision = T::PRECISION;
    let mut operator = operator(20, precision);
    let on = operator.blocks.on.clone();
    let constraints = &on.fields[0].constraints;
    assert!(on.partition.colours().len() > 1 && !constraints.is_empty());
    let values = sample(on.n_dofs());
    let u = Vector::from_slice(&values, precision);

    // Previous contents of the result must not matter.
    let mut r = operator.vector();
    r.fill(f64::NAN);
    operator.residual(&u, &mut r).expect("a residual");
    let mut wanted = expected(&on, &PARAMS, &values, |x| x * x);
    constraints.iter().for_each(|(dof, _)| wanted[dof] = 0.0);
    assert_near(&r.to_vec(), &wanted, tolerance);

    operator.linearise(&u).expect("a linearisation");
    let direction: Vec<f64> = values.iter().map(|x| 1.0 - x).collect();
    let x = Vector::from_slice(&direction, precision);
    let mut y = operator.vector();
    y.fill(f64::NAN);
    operator.apply(&x, &mut y).expect("an action");
    let mut inner: Vec<f64> = direction.iter().zip(&values).map(|(d, u)| 2.0 * u * d).collect();
    constraints.iter().for_each(|(dof, _)| inner[dof] = 0.0);
    let mut wanted = expected(&on, &PARAMS, &inner, |x| x);
    constraints.iter().for_each(|(dof, _)| wanted[dof] = direction[dof]);
    assert_near(&y.to_vec(), &wanted, tolerance);

    operator.set_params(&[0.0, -2.0]).expect("as many parameters");
    operator.residual(&u, &mut r).expect("a residual");
    let mut wanted = expected(&on, &[0.0, -2.0], &values, |x| x * x);
    constraints.iter().for_each(|(dof, _)| wanted[dof] = 0.0);
    assert_near(&r.to_vec(), &wanted, tolerance);
}

#[test]
fn kernels_get_what_their_abi_names() {
    check::<f64>(1e-12);
}

#[test]
fn kernels_get_what_their_abi_names_in_single_precision() {
    check::<f32>(1e-4);
}

#[test]
fn results_are_the_same_bits_on_any_number_of_threads() {
    let operator = operator(40, Precision::F64);
    let u = Vector::from_slice(&sample(operator.n()), Precision::F64);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let mut r = operator.vector();
            operator.residual(&u, &mut r).expect("a residual");
            r.to_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>()
        })
    };
    let once = run(1);
    for threads in [2, 4, 7] {
        for _ in 0..3 {
            assert_eq!(run(threads), once);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let operator = operator(3, Precision::F64);
    let mut y = operator.vector();
    let message = |result: Result<(), OperatorError>| result.expect_err("refused").to_string();
    let short = Vector::zeros(5, Precision::F64);
    assert!(message(operator.apply(&short, &mut y)).contains("5 entries"));
    let single = Vector::zeros(operator.n(), Precision::F32);
    assert!(message(operator.apply(&single, &mut y)).contains("f32"));
    let x = operator.vector();
    assert!(message(operator.diagonal(&mut y)).contains("no diagonal kernel"));
    assert!(operator.apply(&x, &mut y).is_ok(), "an unlinearised action reads zeros");
    assert!(operator.has(Task::Residual) && !operator.has(Task::Diagonal));
    assert!(operator.table_bytes(Task::Residual) > 0);
}
