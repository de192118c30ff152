//! Generated Rust compiles, for every task, cell and way of addressing.

use fem_dsl::point::{
    Binary, Coefficient, Degree, Field, Graph, Input, Integral, Node, Param, Part, PointForm,
    Region, Shape, Slot, Space,
};
use kernels_gen::abi::Indices;
use kernels_gen::dialect::rust::{Isa, Item, print};
use kernels_gen::element::{Cell, LinePoints, Rule, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::pass::legalise::legalise;
use kernels_gen::plan::{Elements, Geometry, Plan, Task};
use kernels_gen::strategy::lower;

fn poisson(dim: usize) -> PointForm {
    let mut graph = Graph::new();
    let mut residual = Vec::new();
    let mut action = Vec::new();
    let mut jacobian = Vec::new();
    let kappa = graph.intern(Node::Input(Input::Param(0, 0)));
    for j in 0..dim {
        let slot = Slot { field: 0, component: 0, part: Part::Derivative(j) };
        let u = graph.intern(Node::Input(Input::State(slot)));
        let d = graph.intern(Node::Input(Input::Direction(slot)));
        residual.push((slot, graph.intern(Node::Binary(Binary::Mul, kappa, u))));
        action.push((slot, graph.intern(Node::Binary(Binary::Mul, kappa, d))));
        jacobian.push(Coefficient { test: slot, trial: slot, value: kappa });
    }
    PointForm {
        name: "poisson".into(),
        doc: String::new(),
        source: "form poisson".into(),
        dim,
        fields: vec![Field {
            name: "u".into(),
            shape: Shape::Scalar,
            space: Space::H1(Degree::Relative(0)),
        }],
        aux: vec![],
        params: vec![Param { name: "kappa".into(), shape: Shape::Scalar, value: vec![1.0] }],
        integrals: vec![Integral {
            region: Region::Cells,
            graph,
            residual,
            action,
            jacobian,
            symmetric: true,
            linear: true,
            energy: None,
            names: Default::default(),
        }],
    }
}

#[test]
fn text() {
    let form = poisson(3);
    let rule = Rule::Tensor { cell: Cell::Hexahedron, line: LinePoints::GaussLobatto(5) };
    let elements = Elements::new(&form, Cell::Hexahedron, 4, rule).unwrap();
    let mut plan = Plan::new(Task::Action, 8, Precision::F64, Geometry::Vertices);
    plan.indices = Indices::Runs;
    let (kernel, abi) = lower(&form, &elements, &plan).unwrap();
    println!("{kernel}");
    let kernel = legalise(kernel);
    let file = print("form", &[Item { kernel: &kernel, abi: &abi, header: &[] }], Isa::Avx512);
    std::fs::write("/tmp/k.rs", &file.text).unwrap();
    let _ = default_rule(Cell::Hexahedron, 1, 1, None);
}
