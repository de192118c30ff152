//! Lays a setting out as a kernel's arguments, runs it, and compares with the reference.

use super::setting::{CELLS, Numbering, Setting};
use fem_dsl::point::{Location, PointForm};
use kernels_gen::abi::{Indices, KernelAbi, Owner, Role};
use kernels_gen::element::Cell;
use kernels_gen::kir::interpret::{Array, Interpreter};
use kernels_gen::kir::{Kernel, Precision};
use kernels_gen::plan::{Elements, Geometry, Linearisation, Plan, Task};
use runtime::reference::{AuxData, Bounded, Inputs, Nodal, Reference, assert_all_close};

/// The shape of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Images of affine maps.
    Affine,
    /// Straight-sided tensor cells.
    Multilinear,
    /// Isoparametric of an order.
    Curved(usize),
}

impl Shape {
    /// The order of the geometry.
    pub(crate) fn order(self) -> usize {
        match self {
            Self::Affine | Self::Multilinear => 1,
            Self::Curved(order) => order,
        }
    }

    /// The geometry that reads the mesh itself.
    fn direct(self) -> Geometry {
        match self {
            Self::Affine => Geometry::Affine,
            Self::Multilinear => Geometry::Vertices,
            Self::Curved(order) => Geometry::Nodes(order),
        }
    }
}

/// One argument's data.
enum Data {
    Real(Vec<f64>),
    Index(Vec<u32>),
}

/// A form, its elements and its data.
pub(crate) struct Launcher<'a> {
    pub(crate) form: &'a PointForm,
    pub(crate) elements: &'a Elements,
    pub(crate) setting: &'a Setting,
}

impl Launcher<'_> {
    /// Runs the kernel and asserts that its result is the reference's.
    pub(crate) fn compare(&self, plan: &Plan, kernel: Kernel, abi: &KernelAbi, name: &str) {
        let got = self.launch(plan, kernel, abi, name);
        let mut want = self.reference(plan);
        if plan.indices == Indices::Dofs {
            for (entry, &constrained) in want.iter_mut().zip(&self.setting.constrained) {
                if constrained {
                    *entry = Bounded::ZERO;
                }
            }
        }
        let epsilon = match plan.precision {
            Precision::F64 => f64::EPSILON,
            Precision::F32 => f64::from(f32::EPSILON),
        };
        assert_all_close(&got, &want, epsilon, name);
    }

    fn reference(&self, plan: &Plan) -> Vec<Bounded> {
        let s = self.setting;
        let order = s.shape.order();
        let reference = Reference::with_rule(self.form, s.degree, order, s.rule)
            .expect("elements that the plan supports");
        let aux = self.form.aux.iter().enumerate().map(|(i, aux)| {
            let values = &s.aux_values[i][..];
            match (aux.location, &s.aux[i]) {
                (Location::Nodes(_), Some(n)) => AuxData::Nodes(Nodal { map: &n.nodes, values }),
                (Location::Points, _) => AuxData::Points(values),
                _ => AuxData::Cells(values),
            }
        });
        let inputs = Inputs {
            coordinates: &s.coordinates,
            state: vec![Nodal { map: &s.field.nodes, values: &s.state }],
            aux: aux.collect(),
            params: &s.params,
            time: s.time,
        };
        let mut direction = s.direction.clone();
        if plan.indices == Indices::Dofs {
            for (entry, &constrained) in direction.iter_mut().zip(&s.constrained) {
                *entry = if constrained { 0.0 } else { *entry };
            }
        }
        let mut vectors = match plan.task {
            Task::Residual => reference.residual(&inputs),
            Task::Action => reference.action(&inputs, &[&direction]),
            Task::Diagonal => reference.diagonal(&inputs),
            Task::Linearise | Task::Metric => panic!("no vector comes of {:?}", plan.task),
        };
        vectors.swap_remove(0)
    }

    /// Runs a kernel and returns what it wrote.
    fn launch(&self, plan: &Plan, kernel: Kernel, abi: &KernelAbi, name: &str) -> Vec<f64> {
        let batches = CELLS.div_ceil(plan.lanes);
        let mut data: Vec<Data> = abi
            .arguments
            .iter()
            .map(|argument| self.data(plan, argument.role, argument.extent * batches))
            .collect();
        let mut singles: Vec<Vec<f32>> = data
            .iter()
            .map(|data| match data {
                Data::Real(values) => values.iter().map(|&v| v as f32).collect(),
                Data::Index(_) => Vec::new(),
            })
            .collect();
        let single = plan.precision == Precision::F32;
        let pairs = data.iter_mut().zip(&mut singles).zip(&abi.arguments);
        let arrays: Vec<Array<'_>> = pairs
            .map(|((data, singles), argument)| match (data, single, argument.written) {
                (Data::Index(values), _, _) => Array::U32(values),
                (Data::Real(values), false, false) => Array::F64(values),
                (Data::Real(values), false, true) => Array::from(&mut values[..]),
                (Data::Real(_), true, false) => Array::F32(singles),
                (Data::Real(_), true, true) => Array::from(&mut singles[..]),
            })
            .collect();
        let interpreter = Interpreter::new(kernel).expect("a verified kernel");
        if let Err(fault) = interpreter.run(0..batches, &arrays) {
            panic!("{name}: {fault}\n{}", interpreter.kernel());
        }
        let written = abi.arguments.iter().position(|argument| argument.written);
        let written = written.expect("a kernel should write something");
        match (&data[written], single) {
            (Data::Real(values), false) => values.clone(),
            _ => singles[written].iter().copied().map(f64::from).collect(),
        }
    }

    /// The data of an argument; `extent` is its length where the kernel says so.
    fn data(&self, plan: &Plan, role: Role, extent: usize) -> Data {
        let s = self.setting;
        let dim = self.form.dim;
        let lanes = plan.lanes;
        Data::Real(match role {
            Role::Params => [&[s.time], &s.params[..]].concat(),
            Role::State(_) => s.state.clone(),
            Role::Direction(_) => s.direction.clone(),
            Role::Result(_) => vec![0.0; s.state.len()],
            Role::AuxNodes(i) => s.aux_values[i].clone(),
            Role::Coordinates => panic!("gathered corners are tested on meshes"),
            Role::AuxCells(i) | Role::AuxPoints(i) => batched(lanes, &s.aux_values[i]),
            Role::Geometry => match plan.geometry {
                Geometry::Stored => self.computed(plan, Task::Metric, s.shape.direct()),
                Geometry::Affine => batched(lanes, &self.per_cell(|c| affine(s.cell, c, dim))),
                Geometry::Vertices => batched(lanes, &self.per_cell(|c| monomials(c, dim))),
                Geometry::Nodes(_) => batched(lanes, &s.coordinates),
                Geometry::Corners => Vec::new(),
            },
            Role::Diameter => batched(lanes, &self.per_cell(|c| vec![self.diameter(c)])),
            Role::Stored => match plan.task {
                Task::Action => self.computed(plan, Task::Linearise, s.shape.direct()),
                _ => vec![f64::NAN; extent],
            },
            Role::Active => {
                let batch = |b: usize| lanes.min(CELLS - b * lanes) as u32;
                return Data::Index((0..CELLS.div_ceil(lanes)).map(batch).collect());
            }
            Role::Map(owner, indices) => return Data::Index(self.map(lanes, owner, indices)),
        })
    }

    /// What another kernel of the same operator computes at the points.
    fn computed(&self, plan: &Plan, task: Task, geometry: Geometry) -> Vec<f64> {
        let linearisation = Linearisation::Recompute;
        let plan = Plan { task, geometry, linearisation, ..plan.clone() };
        let lowered = kernels_gen::strategy::lower(self.form, self.elements, &plan);
        let (kernel, abi) = lowered.expect("a plan that goes with a supported one");
        let kernel = kernels_gen::pass::legalise::legalise(kernel);
        let name = format!("{} {plan:?}", kernel.name);
        self.launch(&plan, kernel, &abi, &name)
    }

    fn per_cell(&self, numbers: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let stride = self.setting.geometry.count() * self.form.dim;
        self.setting.coordinates.chunks(stride).flat_map(numbers).collect()
    }

    fn diameter(&self, coordinates: &[f64]) -> f64 {
        let dim = self.form.dim;
        let nodes = self.setting.geometry.nodes();
        let vertices: Vec<&[f64]> = coordinates
            .chunks(dim)
            .zip(&nodes)
            .filter_map(|(x, node)| (node.dim == 0).then_some(x))
            .collect();
        let distance = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let pairs = vertices.iter().flat_map(|a| vertices.iter().map(move |b| distance(a, b)));
        pairs.fold(0.0, f64::max)
    }

    fn map(&self, lanes: usize, owner: Owner, indices: Indices) -> Vec<u32> {
        let s = self.setting;
        let (numbering, components) = match owner {
            Owner::Field(i) => (&s.field, self.form.fields[i].shape.components()),
            Owner::Aux(i) => {
                let numbering: Option<&Numbering> = s.aux[i].as_ref();
                (numbering.expect("nodal data"), self.form.aux[i].shape.components())
            }
        };
        let dof = |(node, c): (u32, usize)| {
            let place = node as usize * components + c;
            if s.constrained[place] { u32::MAX } else { place as u32 }
        };
        match indices {
            Indices::Nodes => batched(lanes, &numbering.nodes),
            Indices::Runs => {
                let starts: Vec<u32> =
                    numbering.starts.iter().map(|&start| start * components as u32).collect();
                batched(lanes, &starts)
            }
            Indices::Dofs => {
                let all = numbering.nodes.iter();
                let dofs: Vec<u32> =
                    all.flat_map(|&n| (0..components).map(move |c| (n, c))).map(dof).collect();
                batched(lanes, &dofs)
            }
        }
    }
}

/// `[cell][value]` → `[batch][value][lane]`; the last cell is repeated.
fn batched<T: Copy>(lanes: usize, values: &[T]) -> Vec<T> {
    let stride = values.len() / CELLS;
    let mut all = Vec::new();
    for batch in 0..CELLS.div_ceil(lanes) {
        for value in 0..stride {
            for lane in 0..lanes {
                let cell = (batch * lanes + lane).min(CELLS - 1);
                all.push(values[cell * stride + value]);
            }
        }
    }
    all
}

/// x_0 and the constant J, row-major, from the vertices of a cell.
fn affine(cell: Cell, coordinates: &[f64], dim: usize) -> Vec<f64> {
    let tip = |axis: usize| if cell.is_tensor() { 1 << axis } else { axis + 1 };
    let mut numbers = coordinates[..dim].to_vec();
    for i in 0..dim {
        numbers.extend((0..dim).map(|axis| coordinates[tip(axis) * dim + i] - coordinates[i]));
    }
    numbers
}

/// The coefficients of the multilinear map, by monomial, from the vertices of a tensor cell.
fn monomials(coordinates: &[f64], dim: usize) -> Vec<f64> {
    let coefficient = |m: usize, i: usize| -> f64 {
        (0..1usize << dim)
            .filter(|vertex| vertex & !m == 0)
            .map(|vertex| {
                let sign = if (m ^ vertex).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                sign * coordinates[vertex * dim + i]
            })
            .sum()
    };
    (0..1usize << dim)
        .flat_map(|m| (0..dim).map(move |i| (m, i)))
        .map(|(m, i)| coefficient(m, i))
        .collect()
}
