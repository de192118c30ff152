//! Grid transfers between the levels of partitioned meshes, including hanging nodes on partition boundaries.
//! The results are those of the unpartitioned mesh, and all processes that share an unknown get the same bits.
//! Prolongation and restriction are transposes of each other.

use super::{context, numbers, places, problem, random_forest, scattered, with_hanging_nodes};
use fem_dsl::problem::Problem;
use kernels_gen::abi::Precision;
use runtime::algebra::vector::Vector;
use runtime::device::{Arithmetic, Device};
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::refine::forest::Forest;
use runtime::mesh::{CoarsenedMesh, Mesh};
use runtime::operator::TableCache;
use runtime::problem::Platform;
use runtime::problem::multigrid::transfer::{
    KernelTransfer, LevelTransfer, StateInjection, TransferEnvironment,
};
use runtime::processes::ProcessGroup;
use runtime::processes::threads::each;
use runtime::solve::GridTransfer;
use runtime::space::discretisation::Discretisation;
use std::sync::Arc;

pub(super) const FORM: &str = "form one { field u: vector; f1[u] = grad(u); }
    problem p solves one {
        mesh = MESH;
        degree = 1;
        dirichlet u[0] = 1 on \"x0\";
    }";

/// Two spaces, the finer one first, and the transfer between them.
pub(super) struct Levels {
    on: [Arc<Discretisation>; 2],
    path: LevelTransfer,
    /// Vector operations on the device, for vectors in device memory.
    arithmetic: Option<Arc<Arithmetic>>,
}

fn discretised(problem: &Problem, mesh: &Arc<Mesh>, degree: usize) -> Arc<Discretisation> {
    let problem = Problem { degree, ..problem.clone() };
    context(&problem, Arc::clone(mesh)).on
}

fn place(device: Option<&Arc<dyn Device>>) -> TransferEnvironment {
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    TransferEnvironment {
        platform: Platform::new(target, device.cloned()),
        table_cache: TableCache::default(),
        fine: None,
    }
}

impl Levels {
    fn of_degrees(
        problem: &Problem,
        mesh: &Arc<Mesh>,
        degrees: [usize; 2],
        device: Option<&Arc<dyn Device>>,
    ) -> Self {
        let place = place(device);
        let on = degrees.map(|degree| discretised(problem, mesh, degree));
        let between = KernelTransfer::degrees(&on[1], &on[0], &place).expect("kernels");
        // On devices, states have the layout of the operators.
        let state = device.is_none().then(|| {
            let by = KernelTransfer::states(&on[1], &on[0], &place).expect("kernels");
            StateInjection::Interpolated(Box::new(by))
        });
        let arithmetic = |device: &Arc<dyn Device>| {
            Arithmetic::new(Arc::clone(device), Precision::F64).expect("arithmetic")
        };
        Self { on, path: LevelTransfer { between, state }, arithmetic: device.map(arithmetic) }
    }

    pub(super) fn of_meshes(problem: &Problem, mesh: &Arc<Mesh>, coarser: &CoarsenedMesh) -> Self {
        let on = [mesh, &coarser.mesh].map(|mesh| discretised(problem, mesh, 1));
        let between =
            KernelTransfer::children(&on[1], &on[0], coarser, &place(None)).expect("kernels");
        let state = Some(StateInjection::at_vertices(&on[1], &on[0], coarser));
        Self { on, path: LevelTransfer { between, state }, arithmetic: None }
    }

    /// Returns the levels of the part after `times` coarsenings and of its next coarser mesh.
    pub(super) fn below(problem: &Problem, mut part: Arc<Mesh>, times: usize) -> Self {
        for _ in 0..times {
            part = part.coarsened().expect("a coarser part").mesh;
        }
        let coarser = part.coarsened().expect("a coarser part");
        Self::of_meshes(problem, &part, &coarser)
    }

    /// Returns the values as a vector of the finer space.
    fn vector(&self, values: &[f64]) -> Vector {
        let mut vector = match &self.arithmetic {
            None => Vector::zeros(values.len(), Precision::F64),
            Some(arithmetic) => Vector::on_device(values.len(), arithmetic),
        };
        vector.set(values);
        match self.on[0].sharing() {
            Some(sharing) => vector.shared(sharing),
            None => vector,
        }
    }

    /// Checks y · P x = x · Pᵀ y and returns y + P x, Pᵀ y and the injected state y. The finer space has `y`, the
    /// coarser `x`, with 0 in constrained degrees of freedom.
    fn found(&self, y: &[f64], x: &[f64]) -> [Vec<f64>; 3] {
        let (fine, mut coarse) = (self.vector(y), self.path.between.vector());
        let mut x = x.to_vec();
        self.on[1].conditions().for_each(|(dof, _)| x[dof] = 0.0);
        coarse.set(&x);
        let (mut sum, mut prolonged) = (fine.clone(), fine.like());
        let (mut restricted, mut state) = (coarse.like(), coarse.like());
        self.path.prolong(&coarse, &mut sum).expect("P");
        self.path.prolong(&coarse, &mut prolonged).expect("P");
        self.path.restrict(&fine, &mut restricted).expect("P transposed");
        self.path.inject(&fine, &mut state).expect("a state");
        let (one, other) = (fine.dot(&prolonged), coarse.dot(&restricted));
        let scale = (fine.dot(&fine) * prolonged.dot(&prolonged)).sqrt();
        assert!(scale > 0.0 && (one - other).abs() < 1e-12 * scale, "{one} and {other}");
        [sum, restricted, state].map(|vector| vector.to_vec())
    }
}

/// Compares the transfers of every process with those of the unpartitioned mesh.
#[track_caller]
pub(super) fn compare(
    name: &str,
    whole: &Levels,
    size: usize,
    part: impl Fn(&Arc<dyn ProcessGroup>) -> Levels + Sync,
) {
    let all = [0, 1].map(|level| numbers(whole.on[level].n_dofs(), 0.3));
    let known = whole.found(&all[0], &all[1]);
    let parts = each(size, |group| {
        let part = part(&group);
        let places = [0, 1].map(|level| places(&part.on[level], &whole.on[level]));
        let own = |level: usize| -> Vec<f64> {
            places[level].iter().map(|&place| all[level][place]).collect()
        };
        let [sum, restricted, state] = part.found(&own(0), &own(1));
        let [fine, coarse] = places;
        [(sum, fine), (restricted, coarse.clone()), (state, coarse)]
    });
    let mut seen = known.each_ref().map(|all| vec![None; all.len()]);
    for (which, (found, places)) in parts.iter().flat_map(|part| part.iter().enumerate()) {
        for (&value, &place) in found.iter().zip(places) {
            let expected = known[which][place];
            let off = (value - expected).abs();
            assert!(off < 1e-12, "{name}, {size} parts, {which}: {value}, not {expected}");
            let bits = *seen[which][place].get_or_insert(value.to_bits());
            assert_eq!(bits, value.to_bits(), "{name}, {size} parts, {which}, unknown {place}");
        }
    }
    assert!(seen.iter().flatten().all(Option::is_some), "{name}: an unknown is nowhere");
}

/// Meshes are divided among two and three processes, into connected pieces or at random.
#[test]
fn transfers_between_degrees_are_those_of_the_whole() {
    let meshes = [
        ("box(dim: 2, cells: 3)", [2, 1]),
        ("box(dim: 2, cells: 3)", [4, 2]),
        ("box(dim: 3, cells: 2)", [2, 1]),
        ("box(dim: 3, cells: 2)", [4, 2]),
    ];
    for (mesh, degrees) in meshes {
        let (problem, coarse) = problem(&FORM.replace("MESH", mesh));
        let name = format!("{mesh}, degrees {degrees:?}");
        let whole = Arc::new(with_hanging_nodes(coarse));
        let all = Levels::of_degrees(&problem, &whole, degrees, None);
        for size in [2, 3] {
            compare(&name, &all, size, |group| {
                Levels::of_degrees(&problem, &Arc::clone(&whole).part(group), degrees, None)
            });
        }
        let ranks = scattered(whole.n_cells(), 3, 1 + degrees[0] as u64);
        compare(&name, &all, 3, |group| {
            Levels::of_degrees(&problem, &whole.part_by(ranks.clone(), group), degrees, None)
        });
    }
}

#[test]
fn transfers_of_any_parts_of_random_forests_are_those_of_the_whole() {
    for seed in 0..8 {
        let mesh = ["box(dim: 2, cells: 3)", "box(dim: 3, cells: 2)"][seed as usize % 2];
        let (problem, coarse) = problem(&FORM.replace("MESH", mesh));
        let whole = Arc::new(random_forest(coarse, seed));
        let all = Levels::of_degrees(&problem, &whole, [2, 1], None);
        let size = 2 + seed as usize % 3;
        let ranks = scattered(whole.n_cells(), size, seed);
        compare(&format!("{mesh}, {seed}"), &all, size, |group| {
            Levels::of_degrees(&problem, &whole.part_by(ranks.clone(), group), [2, 1], None)
        });
    }
}

/// Partitions of a forest follow its coarsest mesh with enough cells, so that each part has coarser levels.
#[test]
fn transfers_between_forests_are_those_of_the_whole() {
    for (mesh, seed) in [("box(dim: 2, cells: 8)", 1), ("box(dim: 3, cells: 4)", 2)] {
        let (problem, coarse) = problem(&FORM.replace("MESH", mesh));
        for size in [2, 3] {
            let whole = Arc::new(random_forest(coarse.clone(), seed));
            let (mut fine, mut times) = (Arc::clone(&whole), 0);
            let part = |group: &Arc<dyn ProcessGroup>| Arc::clone(&whole).part(group);
            // Each process coarsens its part as often as possible.
            let depths = each(size, |group| {
                let mut part = part(&group);
                let mut depth = 0;
                while let Ok(coarser) = part.coarsened() {
                    (part, depth) = (coarser.mesh, depth + 1);
                }
                depth
            });
            assert!(depths.iter().all(|&depth| depth == depths[0] && depth > 0), "{depths:?}");
            while times < depths[0] {
                let coarser = fine.coarsened().expect("a coarser forest");
                let all = Levels::of_meshes(&problem, &fine, &coarser);
                compare(&format!("{mesh}, {times}"), &all, size, |group| {
                    Levels::below(&problem, part(group), times)
                });
                (fine, times) = (coarser.mesh, times + 1);
            }
        }
    }
}

/// A part that its processes have refined has the coarser meshes of this refinement, down to the partitioned mesh.
#[test]
fn transfers_between_refined_parts_are_those_of_the_whole() {
    for (mesh, size) in [
        ("box(dim: 2, cells: 5, deform: 0.1)", 3),
        ("box(dim: 3, cells: 3)", 2),
        ("box(dim: 3, cells: 2, cell: tet)", 3),
    ] {
        let (problem, base) = problem(&FORM.replace("MESH", mesh));
        let mut base = Arc::new(base);
        if base.cell().is_tensor() {
            // The cells get the order of a forest's cells.
            base = Arc::new(Forest::new(&base).and_then(|own| own.mesh(&base)).expect("a mesh"));
        }
        let whole = match base.cell().is_tensor() {
            false => Mesh::clone(&base).refined(2).expect("a finer mesh"),
            true => {
                let mut forest = Forest::new(&base).expect("a forest");
                (0..2).for_each(|_| assert!(forest.refine(|_| true).is_ok()));
                forest.mesh(&base).expect("a finer mesh")
            }
        };
        let part = |group: &Arc<dyn ProcessGroup>| {
            let part = Arc::unwrap_or_clone(Arc::clone(&base).part(group));
            Arc::new(part.refined(2).expect("a finer part"))
        };
        let mut fine = Arc::new(whole);
        for times in 0..2 {
            let coarser = fine.coarsened().expect("a coarser mesh");
            let all = Levels::of_meshes(&problem, &fine, &coarser);
            compare(&format!("{mesh}, {times}"), &all, size, |group| {
                Levels::below(&problem, part(group), times)
            });
            fine = coarser.mesh;
        }
    }
}

#[test]
fn transfers_on_devices_are_those_of_the_whole() {
    for device in crate::devices::devices() {
        let (problem, coarse) = problem(&FORM.replace("MESH", "box(dim: 2, cells: 3)"));
        let whole = Arc::new(with_hanging_nodes(coarse));
        let mut all = Levels::of_degrees(&problem, &whole, [2, 1], None);
        all.path.state = None;
        let ranks = scattered(whole.n_cells(), 3, 3);
        compare(&device.name(), &all, 3, |group| {
            let part = whole.part_by(ranks.clone(), group);
            Levels::of_degrees(&problem, &part, [2, 1], Some(&device))
        });
    }
}
