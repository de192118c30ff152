//! Safe programs must not cause undefined behaviour through kernels and devices.
//! Each test reproduces a former crash or lost update. The tests of programs that must not compile are doc tests of the
//! items themselves.
#![forbid(unsafe_code)]

use super::devices;
use devices::devices;
use fem_dsl::point::PointForm;
use kernels_gen::abi::Role;
use kernels_gen::element::{Lagrange, default_rule};
use kernels_gen::generate::{generate_for_threads, interpret};
use kernels_gen::plan::{self, Elements, Geometry, Plan, Task};
use runtime::algebra::vector::Precision;
use runtime::device::cpu::{Argument, Buffer, IndexArray, LaunchError, Module};
use runtime::device::{Array, DeviceError, ElementKind};
use runtime::kernels::compile::{CompiledKernels, Execution, Target, compile, facts};
use runtime::mesh::generate::generate;
use runtime::mesh::partition::Partition;
use runtime::operator::{BuildError, Operator};
use runtime::space::discretisation::Discretisation;
use std::sync::Arc;

const DIM: usize = 2;

fn form() -> PointForm {
    let text = "form f { field u: scalar; f0[u] = u; f1[u] = grad(u); }";
    let (program, _) = fem_dsl::program::compile(&fem_dsl::source::Source::new("f", text));
    program.and_then(|program| program.point_form("f", DIM).ok()).expect("a form")
}

fn discretisation(cells: [f64; DIM]) -> Discretisation {
    use fem_dsl::problem::Argument::{Number, Numbers};
    let arguments = [("dim", Number(DIM as f64)), ("cells", Numbers(cells.to_vec()))];
    let arguments = arguments.map(|(name, value)| (name.to_owned(), value)).into();
    let mesh = generate("box", &arguments).expect("a box");
    let element = Lagrange::continuous(mesh.cell(), 1).expect("an element");
    Discretisation::new(mesh, &[(element, 1)]).expect("a discretisation")
}

fn elements(form: &PointForm, on: &Discretisation) -> Elements {
    let rule = default_rule(on.mesh.cell(), 1, 1, None);
    Elements::new(form, on.mesh.cell(), 1, rule).expect("elements")
}

/// Returns the kernel module for the action of the form on one batch of 4 cells, its name, and the length of each
/// argument.
fn action(on: &Discretisation) -> (Module, String, Vec<(Role, usize)>) {
    let form = form();
    let plan =
        Plan::new(plan::Target::Vectors, Task::Action, 4, Precision::F64, Geometry::Vertices);
    let kernels = interpret(&form, &elements(&form, on), &[plan]).expect("a kernel");
    let abi = kernels[0].abi().clone();
    let lengths = abi.arguments.iter().map(|argument| (argument.role, argument.extent));
    (Module::interpreted(kernels), abi.name.clone(), lengths.collect())
}

/// Runs `batches` batches of the action on vectors of length 9, with `index` in every entry of the index array.
fn launch(index: u32, active: u32, batches: usize) -> Result<(), LaunchError> {
    let (module, name, lengths) = action(&discretisation([2.0; DIM]));
    let (x, mut y, active) = (vec![1.0; 9], vec![0.0; 9], [active]);
    let mut y = Some(&mut y);
    let tables: Vec<(Vec<f64>, IndexArray)> = lengths
        .iter()
        .map(|&(_, extent)| {
            let indices = IndexArray::plain(Buffer::from_slice(&vec![index; extent]));
            (vec![1.0; extent.max(1)], indices)
        })
        .collect();
    let arguments = lengths.iter().zip(&tables).map(|((role, _), (reals, indices))| match role {
        Role::Map(..) => Argument::indices(indices),
        Role::Active => Argument::read(&active),
        Role::Direction(_) => Argument::read(&x),
        Role::Result(_) => Argument::write(y.take().expect("one result")),
        _ => Argument::read(reals),
    });
    module.launch(&name, 0, batches, arguments.collect::<Vec<_>>())
}

#[test]
fn a_launch_with_an_index_out_of_range_is_an_error() {
    launch(8, 4, 1).expect("the last of nine");
    for index in [9, 1 << 30, u32::MAX] {
        let refused = launch(index, 4, 1);
        let Err(LaunchError::OutOfRange { array, expected, found: 9, .. }) = &refused else {
            panic!("{index}: {refused:?}");
        };
        assert_eq!((array.as_str(), *expected), ("delta_u", index as usize + 1));
    }
    let lanes = launch(8, 5, 1);
    assert!(matches!(lanes, Err(LaunchError::OutOfRange { found: 4, .. })), "{lanes:?}");
    let behind = launch(8, 4, 2);
    assert!(matches!(behind, Err(LaunchError::NoSuchBatches { batches: 1, .. })), "{behind:?}");
}

#[test]
fn indices_that_are_lent_as_numbers_are_looked_at_when_they_meet_a_kernel() {
    let (module, name, lengths) = action(&discretisation([2.0; DIM]));
    let kernel = module.kernel(&name).expect("the kernel");
    let (x, mut y, active) = (vec![1.0; 9], vec![0.0; 9], [4_u32]);
    let mut y = Some(&mut y);
    let indices = vec![9_u32; 64];
    let reals = vec![1.0; 64];
    let arguments = lengths.iter().map(|(role, _)| match role {
        Role::Map(..) => Argument::read(&indices),
        Role::Active => Argument::read(&active),
        Role::Direction(_) => Argument::read(&x),
        Role::Result(_) => Argument::write(y.take().expect("one result")),
        _ => Argument::read(&reals),
    });
    let refused = kernel.bind(arguments.collect::<Vec<_>>()).map(|_| ());
    assert!(matches!(refused, Err(LaunchError::OutOfRange { expected: 10, .. })), "{refused:?}");
}

#[test]
fn parts_of_a_launch_that_adds_to_a_vector_do_not_run_at_once() {
    let (module, name, lengths) = action(&discretisation([2.0; DIM]));
    let kernel = module.kernel(&name).expect("the kernel");
    let (x, mut y, active) = (vec![1.0; 9], vec![0.0; 9], [4_u32, 4]);
    let mut y = Some(&mut y);
    let (indices, reals) = (vec![0_u32; 128], vec![1.0; 128]);
    let arguments = lengths.iter().map(|(role, _)| match role {
        Role::Map(..) => Argument::read(&indices),
        Role::Active => Argument::read(&active),
        Role::Direction(_) => Argument::read(&x),
        Role::Result(_) => Argument::write(y.take().expect("one result")),
        _ => Argument::read(&reals),
    });
    let mut launch = kernel.bind(arguments.collect::<Vec<_>>()).expect("they fit");
    let refused = launch.run_disjoint(&[0..1, 1..2]);
    assert!(matches!(refused, Err(LaunchError::Overlapping { .. })), "{refused:?}");
    launch.run(0..2).expect("one after another");
}

/// Returns the interpreted kernels of the form.
fn compiled(on: &Discretisation) -> CompiledKernels {
    let (form, tasks) = (form(), [Task::Residual, Task::Action]);
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    compile(&form, &elements(&form, on), &facts(on), &tasks, &target).expect("kernels")
}

/// Chunks coloured for another mesh would let threads update one entry concurrently.
#[test]
fn chunks_that_are_not_ordered_are_refused() {
    let mut on = discretisation([64.0, 64.0]);
    let kernels = compiled(&on);
    let new = |on: &Discretisation| {
        let (on, module) = (Arc::new(on.clone()), kernels.module.clone());
        Operator::on_host(on, module, &kernels.kernels, Precision::F64, &[0.0], true).map(|_| ())
    };
    new(&on).expect("an operator");
    let cells = on.partition.chunks().iter().map(|chunk| chunk.cells.len()).max();
    let other = discretisation([16.0, 256.0]).mesh;
    on.partition = Partition::with_chunk_cells(&other, cells.expect("chunks"));
    let refused = new(&on);
    assert!(matches!(refused, Err(BuildError::Unordered(_))), "{refused:?}");
}

/// The same launches on devices with a memory of their own.
#[test]
fn devices_refuse_indices_out_of_range() {
    let (form, on) = (form(), discretisation([2.0; DIM]));
    for device in devices() {
        let plan =
            Plan::new(plan::Target::Threads, Task::Action, 32, Precision::F64, Geometry::Vertices);
        let elements = elements(&form, &on);
        let source = generate_for_threads(&form, &elements, &[plan], device.words());
        let module = device.load(&source.expect("a source")).expect("a module");
        let kernel = &module.kernels[0];
        let launch = |index: u32, batches: usize, change: bool, twice: bool| {
            let real = |len: usize| device.upload(&vec![1.0; len]).expect("numbers");
            let (x, y) = (real(9), real(9));
            let given = kernel.abi().arguments.iter().map(|argument| match argument.role {
                Role::Map(..) => {
                    let indices = vec![index; argument.extent];
                    let mut array = device.upload(&indices).expect("indices");
                    if change {
                        device.write(&mut array, 0, &[0; 4]).expect("another index");
                    }
                    array
                }
                Role::Active => device.upload(&[32_u32]).expect("a count"),
                _ => real(argument.extent.max(1)),
            });
            let given: Vec<Array> = given.collect();
            let pairs = given.iter().zip(&kernel.abi().arguments);
            let arrays = pairs.map(|(array, argument)| match argument.role {
                Role::Direction(_) if twice => &y,
                Role::Direction(_) => &x,
                Role::Result(_) => &y,
                _ => array,
            });
            match device.launch(kernel, 0..batches, &arrays.collect::<Vec<_>>()) {
                Err(DeviceError::Launch(error)) => Err(error),
                other => {
                    other.expect("a device that works");
                    Ok(())
                }
            }
        };
        launch(8, 1, false, false).expect("the last of nine");
        let beyond = launch(9, 1, false, false);
        assert!(matches!(beyond, Err(LaunchError::OutOfRange { found: 9, .. })), "{beyond:?}");
        let changed = launch(8, 1, true, false);
        assert!(matches!(changed, Err(LaunchError::UnknownIndices { .. })), "{changed:?}");
        let twice = launch(8, 1, false, true);
        assert!(matches!(twice, Err(LaunchError::Aliased { .. })), "{twice:?}");
        // The second count is so large that its product with the rows of a batch overflows to a small number.
        for batches in [2, usize::MAX / 8 + 2] {
            let behind = launch(8, batches, false, false);
            assert!(matches!(behind, Err(LaunchError::TooShort { .. })), "{behind:?}");
        }
    }
}

#[test]
fn arrays_of_another_device_are_refused() {
    for (here, there) in devices().iter().zip(devices()) {
        let mut other = there.zeros(ElementKind::F64, 4).expect("zeros");
        let foreign = here.clear(&mut other);
        assert!(matches!(foreign, Err(DeviceError::Foreign)), "{foreign:?}");
    }
}

#[test]
fn sparse_matrices_are_checked() {
    for device in devices() {
        let sparse = |starts: &[usize], columns: &[u32], values: usize| {
            device.sparse(starts, columns, &vec![1.0; values]).map(|_| ())
        };
        assert!(sparse(&[0, 1, 2], &[0, 1], 2).is_ok());
        let wrong: [(&[usize], &[u32], usize); 6] = [
            (&[0, 1, 2], &[0, 2], 2),
            (&[0, 1, 2], &[0, u32::MAX], 2),
            (&[0, 1, 2], &[0, 1], 1),
            (&[0, 3, 2], &[0, 1], 2),
            (&[0, 1, 3], &[0, 1], 2),
            (&[1, 1, 2], &[0, 1], 2),
        ];
        for (starts, columns, values) in wrong {
            let refused = sparse(starts, columns, values);
            let mismatch = matches!(refused, Err(DeviceError::Mismatch { .. }));
            assert!(mismatch, "{starts:?} {columns:?}: {refused:?}");
        }
    }
}
