//! `point`: `Form` → [`PointForm`], the interface between the language and the kernels.
//!
//! A `PointForm` is the physics at one point as pure scalar arithmetic: no tensors, no derivative nodes, no test
//! functions. With the test slots (i, ·) for φ_i, (i, j) for ∂φ_i/∂x_j and (i, jk) for ∂²φ_i/∂x_j∂x_k, and the trial
//! slots likewise for the direction δu,
//!
//! ```text
//! residual:  r[test]            f0, f1 and f2, functions of x, t, h, u, ∇u, ∇∇u, a, ∇a
//! jacobian:  G[test][trial] = ∂ r[test] / ∂ trial      (PETSc's g0, g1, g2, g3)
//! action:    s[test]        = Σ_trial G[test][trial] · δtrial, written without the sum where
//!                             the form has structure (λ tr(δε) I + 2 μ δε, say)
//! ```
//!
//! Fields in Hcurl and Hdiv have no slots (i, j): theirs are the components of curl φ, or div φ, of the whole function,
//! [`Part::Exterior`].
//!
//! Between cells each slot has a side: the traces (field, side) are inputs and test functions like fields in a cell.
//!
//! All views of one integral share one hash-consed graph, so that a common subexpression is one node.
//! [`Integral::depends_on_direction`] separates the nodes that depend on δu from those that do not.

mod affine;
mod block;
mod canonical;
mod complex_linear;
mod continuous;
mod count;
mod embed;
mod eval;
mod factor;
mod jacobian;
mod local;
mod lower;
mod magnitude;
mod mixed;
mod numbers;
mod optimise;
mod polynomial;
mod potential;
mod prepare;
mod print;
mod products;
mod pulled;
mod scalarise;
pub(crate) mod scalars;
mod shifted;
mod stationary;
mod switches;
mod traverse;
mod verify;

pub(crate) use affine::is_affine;
pub use block::{block, complement};
pub use complex_linear::complex_pairs;
pub use continuous::continuous;
pub use count::{OperationCount, operation_count};
pub use embed::embed;
pub use eval::{Batch, eval};
pub use local::{eliminated, is_read, is_symmetric_without};
pub use lower::point;
pub use magnitude::magnitude;
pub use mixed::{MixedForm, mixed};
pub use numbers::{NumberForms, number_fields, number_forms, with_numbers_given};
pub(crate) use optimise::finished;
pub use potential::{IdentityOf, identity, potential};
pub use pulled::{Piola, PulledField, pulled_back};
pub(crate) use scalarise::scalarise;
pub use shifted::shifted;
pub use stationary::{masses_follow, stationary, with_given_rates};
pub use switches::{factor_of_switches, switches};
pub use traverse::reachable;
pub use verify::verify_point;

pub use crate::terms::{
    Aux, Binary, Comparison, Degree, Field, InteriorFacets, Location, Number, Param, Rate, Region,
    Shape, Side, Space, Unary, WHOLE_BOUNDARY,
};

use crate::arena::{Id, IndexVec};
use crate::id_type;
use std::collections::BTreeMap;

id_type!(
    /// A node of a [`Graph`]; prints as `%7`.
    NodeId, "%"
);

/// The physics of a form in one space dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct PointForm {
    /// The form's name, a valid identifier.
    pub name: String,
    /// The documentation comment above the form, without the slashes.
    pub doc: String,
    /// The form's own source text, for the header of generated kernels.
    pub source: String,
    /// Space dimension, 1 to 3.
    pub dim: usize,
    /// The unknown fields, in order of declaration.
    pub fields: Vec<Field>,
    /// Auxiliary data, in order of declaration.
    pub aux: Vec<Aux>,
    /// Runtime parameters, in order of declaration; their components are contiguous in the kernel's parameter vector,
    /// after the time t at index 0.
    pub params: Vec<Param>,
    /// Its time derivatives, each with its parameter and its data among those above.
    pub rates: Vec<Rate>,
    /// One integral per region, the cells first.
    pub integrals: Vec<Integral>,
}

impl PointForm {
    /// Returns the index of a field's component among those of all fields, field by field.
    pub fn row(&self, field: usize, component: usize) -> usize {
        let before = self.fields[..field].iter().map(|field| field.shape.components());
        before.sum::<usize>() + component
    }

    /// Returns the wish, or a longer name, that no field, data or parameter has.
    pub(crate) fn unused_name(&self, wish: &str) -> String {
        let fields = self.fields.iter().map(|field| &field.name);
        let aux = self.aux.iter().map(|aux| &aux.name);
        let params = self.params.iter().map(|param| &param.name);
        let known: Vec<&String> = fields.chain(aux).chain(params).collect();
        let mut name = wish.to_owned();
        while known.contains(&&name) {
            name.push('_');
        }
        name
    }

    /// Returns the declared parameters, without those of time derivatives, which have no accessible names.
    pub fn own_params(&self) -> &[Param] {
        &self.params[..crate::terms::written(&self.rates, self.params.len(), |rate| rate.param)]
    }

    /// Returns the declared auxiliary data, without that of time derivatives and sources, which has no accessible
    /// names.
    pub fn own_aux(&self) -> &[Aux] {
        &self.aux[..crate::terms::written(&self.rates, self.aux.len(), |rate| rate.aux)]
    }

    /// Returns the number of components of all fields.
    pub fn rows(&self) -> usize {
        self.row(self.fields.len(), 0)
    }
}

/// The value of a component, or one of its derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The value.
    Value,
    /// The derivative ∂/∂x_j in physical space.
    Derivative(usize),
    /// The second derivative ∂²/∂x_i∂x_j, i ≤ j.
    Second(usize, usize),
    /// A component of the exterior derivative in physical space, with component 0 of the slot: curl of a field in
    /// Hcurl (one component in the plane), div of one in Hdiv.
    Exterior(usize),
}

impl Part {
    /// Returns the second derivative along two axes, in any order.
    pub fn second(i: usize, j: usize) -> Self {
        Self::Second(i.min(j), i.max(j))
    }

    /// Returns the number of derivatives.
    pub fn order(self) -> usize {
        match self {
            Self::Value => 0,
            Self::Derivative(_) | Self::Exterior(_) => 1,
            Self::Second(..) => 2,
        }
    }

    /// Returns the number of derivatives along an axis; none for an exterior derivative, which has no axis.
    pub fn along(self, axis: usize) -> usize {
        match self {
            Self::Value | Self::Exterior(_) => 0,
            Self::Derivative(j) => usize::from(j == axis),
            Self::Second(i, j) => usize::from(i == axis) + usize::from(j == axis),
        }
    }

    /// Returns the parts up to order 1 that a component has in a space.
    pub fn of_component(space: Space, component: usize, dim: usize) -> Vec<Self> {
        let derivatives: Vec<Self> = match space.is_piola() {
            false => (0..dim).map(Self::Derivative).collect(),
            true if component > 0 => Vec::new(),
            true => (0..space.exterior_components(dim)).map(Self::Exterior).collect(),
        };
        [Self::Value].into_iter().chain(derivatives).collect()
    }

    /// Returns the distinct parts of an order.
    pub fn of_order(order: usize, dim: usize) -> Vec<Self> {
        match order {
            0 => vec![Self::Value],
            1 => (0..dim).map(Self::Derivative).collect(),
            _ => (0..dim).flat_map(|i| (i..dim).map(move |j| Self::Second(i, j))).collect(),
        }
    }

    /// Returns the component and the part at a row-major index of a tensor whose last indices are those of the
    /// derivatives, for functions in a space, if in any.
    pub fn of_flat(space: Option<Space>, flat: usize, order: usize, dim: usize) -> (usize, Self) {
        match order {
            0 => (flat, Self::Value),
            1 if space.is_some_and(Space::is_piola) => (0, Self::Exterior(flat)),
            1 => (flat / dim, Self::Derivative(flat % dim)),
            // In Hcurl and Hdiv the gradient follows the exterior derivative.
            _ if space.is_some_and(Space::is_piola) => (flat / dim, Self::Derivative(flat % dim)),
            _ => (flat / (dim * dim), Self::second(flat / dim % dim, flat % dim)),
        }
    }
}

/// One scalar slot of a field: a component's value or one of its physical derivatives. A test slot is the test factor
/// of a residual entry; a trial slot is the variable of a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// Index into [`PointForm::fields`] (or [`PointForm::aux`] in [`Input::Aux`]).
    pub field: usize,
    /// The cell from which it is taken; with the field it names a trace. [`Side::Inside`] except between cells, and there
    /// for values in continuous spaces.
    pub side: Side,
    /// Component, row-major in the field's shape.
    pub component: usize,
    /// Value or derivative.
    pub part: Part,
}

/// An input of a kernel at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Input {
    /// The state u.
    State(Slot),
    /// The direction δu of a Jacobian action.
    Direction(Slot),
    /// Auxiliary data; `Slot::field` indexes [`PointForm::aux`].
    Aux(Slot),
    /// Component of a runtime parameter: (index into [`PointForm::params`], component).
    Param(usize, usize),
    /// A physical coordinate.
    Coordinate(usize),
    /// A component of the outward unit normal of the inside (facets only).
    Normal(usize),
    /// The time t.
    Time,
    /// The diameter h of a cell.
    Diameter(Side),
    /// The extent 1/|∇ξ₀| of a cell from the facet at ξ₀ = 0 (facets only).
    Extent(Side),
    /// The factor c of a field's penalty c/hn, known when the kernel is planned: (p + 1)² on tensor cells,
    /// (p + 1)(p + dim) on simplices, p the degree of the field.
    PenaltyFactor(usize),
    /// The degree k, known when the kernel is planned.
    Degree,
    /// The entry ∂ξ_a/∂x_i, at (a, i), of the inverse of a cell's map. No form reads it: kernels that pull Piola fields
    /// back do.
    Inverse(Side, usize, usize),
    /// The entry ∂x_i/∂ξ_a, at (a, i), of the Jacobian matrix of a cell's map. No form reads it, like
    /// [`Input::Inverse`].
    Tangent(Side, usize, usize),
    /// The second derivative ∂²x_i/∂ξ_a∂ξ_b of a cell's map, at (a, b, i) with a ≤ b. No form reads it, like
    /// [`Input::Inverse`].
    Bend(Side, usize, usize, usize),
    /// The signed 1 / det J of a cell's map. No form reads it, like [`Input::Inverse`].
    Density(Side),
}

/// One scalar operation; operands have smaller ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// A constant.
    Constant(Number),
    /// An input from the kernel.
    Input(Input),
    /// A function of one argument.
    Unary(Unary, NodeId),
    /// A function of two arguments.
    Binary(Binary, NodeId, NodeId),
    /// Repeated multiplication: an integer power, correct for negative bases.
    Powi(NodeId, i32),
    /// A truth value.
    Compare(Comparison, NodeId, NodeId),
    /// Both truth values.
    And(NodeId, NodeId),
    /// Either truth value.
    Or(NodeId, NodeId),
    /// The opposite truth value.
    Not(NodeId),
    /// `.1` if the truth value `.0` is true, else `.2`.
    Select(NodeId, NodeId, NodeId),
}

impl Node {
    /// Returns the operands, in order.
    pub fn operands(self) -> impl Iterator<Item = NodeId> {
        let (a, b, c) = match self {
            Self::Constant(_) | Self::Input(_) => (None, None, None),
            Self::Unary(_, a) | Self::Powi(a, _) | Self::Not(a) => (Some(a), None, None),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::And(a, b) | Self::Or(a, b) => {
                (Some(a), Some(b), None)
            }
            Self::Select(a, b, c) => (Some(a), Some(b), Some(c)),
        };
        [a, b, c].into_iter().flatten()
    }
}

/// A hash-consed graph of scalar operations: equal nodes have equal ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    nodes: IndexVec<NodeId, Node>,
    inputs: BTreeMap<Input, NodeId>,
    others: BTreeMap<u128, NodeId>,
}

impl Graph {
    /// Returns an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the id of `node`, which is appended if it is new. Does not fold.
    pub fn intern(&mut self, node: Node) -> NodeId {
        let known = match node {
            Node::Input(input) => self.inputs.get(&input),
            _ => self.others.get(&key(node)),
        };
        if let Some(&id) = known {
            return id;
        }
        debug_assert!(
            node.operands().all(|operand| operand.index() < self.nodes.len()),
            "operands should precede their node"
        );
        let id = self.nodes.push(node);
        match node {
            Node::Input(input) => self.inputs.insert(input, id),
            _ => self.others.insert(key(node), id),
        };
        id
    }

    /// Returns the nodes, operands first.
    pub fn nodes(&self) -> &IndexVec<NodeId, Node> {
        &self.nodes
    }
}

/// Returns a node as one number, which is faster to compare: kind and function, the first operand, and two others or a
/// number. Inputs, which are few, have none.
fn key(node: Node) -> u128 {
    let pack = |kind: u128, function: u128, [a, b, c]: [Option<NodeId>; 3]| {
        let of = |id: Option<NodeId>| id.map_or(0, |id| id.index() as u128);
        kind << 112 | function << 96 | of(a) << 64 | of(b) << 32 | of(c)
    };
    match node {
        Node::Constant(number) => u128::from(number.get().to_bits()),
        Node::Input(_) => u128::MAX,
        Node::Unary(function, a) => pack(1, function as u128, [Some(a), None, None]),
        Node::Binary(function, a, b) => pack(2, function as u128, [Some(a), Some(b), None]),
        Node::Powi(a, n) => pack(3, 0, [Some(a), None, None]) | u128::from(n.cast_unsigned()),
        Node::Compare(comparison, a, b) => pack(4, comparison as u128, [Some(a), Some(b), None]),
        Node::And(a, b) => pack(5, 0, [Some(a), Some(b), None]),
        Node::Or(a, b) => pack(6, 0, [Some(a), Some(b), None]),
        Node::Not(a) => pack(7, 0, [Some(a), None, None]),
        Node::Select(a, b, c) => pack(8, 0, [Some(a), Some(b), Some(c)]),
    }
}

/// One entry of the derivative: ∂ r[test] / ∂ trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficient {
    /// Row.
    pub test: Slot,
    /// Column.
    pub trial: Slot,
    /// Its value, free of [`Input::Direction`].
    pub value: NodeId,
}

/// The physics on one region. Absent slots are structurally zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Integral {
    /// Its region.
    pub region: Region,
    /// The graph that all views share.
    pub graph: Graph,
    /// r[test], sorted by slot.
    pub residual: Vec<(Slot, NodeId)>,
    /// s[test] of the Jacobian's action, sorted by slot.
    pub action: Vec<(Slot, NodeId)>,
    /// `G[test][trial]`, sorted by (test, trial).
    pub jacobian: Vec<Coefficient>,
    /// True if `G[a][b]` and `G[b][a]` are the same nodes for all slots.
    pub symmetric: bool,
    /// True if the residual is affine in u: G is free of [`Input::State`], and no condition depends on u.
    pub linear: bool,
    /// The energy density, if the form was given as one.
    pub energy: Option<NodeId>,
    /// User-defined names of nodes (`kappa`, `eps_0_1`), for generated source; valid identifiers.
    pub names: BTreeMap<NodeId, String>,
}

impl Integral {
    /// An integral whose residual does not depend on the fields of its rows.
    pub fn of_residual(region: Region, graph: Graph, residual: Vec<(Slot, NodeId)>) -> Self {
        Self {
            region,
            graph,
            residual,
            action: Vec::new(),
            jacobian: Vec::new(),
            symmetric: true,
            linear: true,
            energy: None,
            names: BTreeMap::new(),
        }
    }

    /// Returns, for every node, whether it depends on an input that satisfies `select`.
    pub fn depends_on(&self, select: impl Fn(Input) -> bool) -> IndexVec<NodeId, bool> {
        let mut depends = IndexVec::<NodeId, bool>::new();
        for node in &self.graph.nodes {
            let own = matches!(node, Node::Input(input) if select(*input));
            let value = own || node.operands().any(|operand| depends[operand]);
            depends.push(value);
        }
        depends
    }

    /// Returns, for every node, whether it depends on δu.
    pub fn depends_on_direction(&self) -> IndexVec<NodeId, bool> {
        self.depends_on(|input| matches!(input, Input::Direction(_)))
    }
}
