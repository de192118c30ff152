//! The point function: a kernel's work at one quadrature point, common to all strategies.
//!
//! ```text
//! values and reference gradients, geometry → inputs → f0, f1 or the Jacobian's coefficients → factors of test functions
//! ```
//!
//! A strategy evaluates quantities with its own algorithm, passed as [`Evaluate`].

use super::facts::QuantitySource;
use super::lowering::{Evaluate, Lowering};
use super::{pulled, transfer};
use crate::abi::Role;
use crate::kir::{Index, Unary, ValueId};
use crate::lower::jacobian::PointGeometry;
use crate::lower::stored::{PartValues, PulledBlock, TestFactors, act};
use crate::plan::{self, Linearisation, Task};
use fem_dsl::point::{Input, NodeId, Part, Slot};
use std::collections::BTreeMap;

/// Returns the factors of the test functions for each component at a point; none if the task stores instead.
pub(crate) fn at_point(
    s: &mut Lowering<'_>,
    at: &PointGeometry,
    point: &Index,
    evaluate: &mut Evaluate<'_>,
) -> Vec<TestFactors> {
    match (s.facts.plan.task, s.facts.plan.linearisation) {
        (Task::Metric, _) => {
            store_metric(s, at, point);
            Vec::new()
        }
        (Task::Linearise, _) => {
            let pulled = pulled_blocks(s, at, point, evaluate);
            let numbers = s.facts.blocks.values(&pulled);
            store_numbers(s, &numbers, point);
            Vec::new()
        }
        (Task::Action, Linearisation::Stored) => act_stored(s, point, evaluate),
        // It has no points.
        (Task::StoredProduct, _) => Vec::new(),
        (Task::Diagonal | Task::Matrix | Task::MatrixProduct, _) => {
            keep_coefficients(s, at, point, evaluate);
            Vec::new()
        }
        (Task::Flux, _) => {
            let tested = physics(s, at, point, evaluate);
            let zero = s.b.constant(0.0);
            let parts = plan::tested(s.facts.form, s.facts.elements, s.facts.plan.integral);
            let number = |&(row, part): &(usize, Part)| tested[row].part(part).unwrap_or(zero);
            let numbers: Vec<ValueId> = parts.iter().map(number).collect();
            store_numbers(s, &numbers, point);
            Vec::new()
        }
        (Task::Prolong, _) => {
            transfer::prolong(s, point, evaluate);
            Vec::new()
        }
        (Task::Restrict, _) => transfer::restrict(s, point),
        (Task::Residual | Task::Action, _) => physics(s, at, point, evaluate),
    }
}

/// Stores the pulled-back coefficients in a private array, one point after another or of this point alone
/// ([`KernelFacts::keeps_coefficients`](crate::lower::facts::KernelFacts::keeps_coefficients)).
fn keep_coefficients(
    s: &mut Lowering<'_>,
    at: &PointGeometry,
    point: &Index,
    evaluate: &mut Evaluate<'_>,
) {
    let all = s.facts.keeps_coefficients();
    let count = if all { s.facts.points() } else { 1 };
    let coefficients = s.coefficients(count);
    let pulled = pulled_blocks(s, at, point, evaluate);
    for (number, &value) in s.facts.blocks.values(&pulled).iter().enumerate() {
        let place = if all { point.clone() } else { Index::default() };
        s.b.store(coefficients, place.plus(number * count), value);
    }
}

fn store_metric(s: &mut Lowering<'_>, at: &PointGeometry, point: &Index) {
    let (k, weight) = match at.det {
        None => (at.k.clone(), at.weight),
        Some(det) => {
            let reciprocal = s.b.reciprocal(det);
            let size = s.b.unary(Unary::Abs, det);
            let k = at.k.iter().map(|row| row.iter().map(|&v| s.b.mul(v, reciprocal)).collect());
            let k = k.collect();
            (k, s.b.mul(at.weight, size))
        }
    };
    let mut numbers = vec![weight];
    numbers.extend(k.iter().flatten());
    numbers.extend(&at.x);
    store_numbers(s, &numbers, point);
}

fn store_numbers(s: &mut Lowering<'_>, numbers: &[ValueId], point: &Index) {
    let argument = s.arguments[&Role::Stored];
    for (entry, &number) in numbers.iter().enumerate() {
        let at = s.stored_index(numbers.len(), point, entry);
        s.b.store_lanes(argument, at, number);
    }
}

/// Returns the reference gradient of a component.
fn reference_gradient(
    s: &mut Lowering<'_>,
    quantity: usize,
    component: usize,
    evaluate: &mut Evaluate<'_>,
) -> Vec<ValueId> {
    let dim = s.facts.elements.cell.dim();
    let element = s.facts.quantities[quantity].element;
    (0..dim)
        .map(|a| match element.is_differentiated(component, a) {
            true => evaluate(s, quantity, component, Part::Derivative(a)),
            false => s.b.constant(0.0),
        })
        .collect()
}

/// Returns the second derivatives of a component in the reference cell.
fn reference_second(
    s: &mut Lowering<'_>,
    quantity: usize,
    component: usize,
    evaluate: &mut Evaluate<'_>,
) -> Vec<ValueId> {
    let parts = Part::of_order(2, s.facts.elements.cell.dim()).into_iter();
    parts.map(|part| evaluate(s, quantity, component, part)).collect()
}

fn act_stored(
    s: &mut Lowering<'_>,
    point: &Index,
    evaluate: &mut Evaluate<'_>,
) -> Vec<TestFactors> {
    let numbers = s.facts.blocks.numbers;
    let blocks = &s.facts.blocks;
    let own = s.facts.trial.map(|_| s.coefficients(s.facts.points()));
    let read = |s: &mut Lowering<'_>, number: usize| match own {
        Some(own) => s.b.load(own, point.plus(number * s.facts.points())),
        None => {
            let at = s.stored_index(numbers, point, number);
            s.b.load_lanes(s.arguments[&Role::Stored], at)
        }
    };
    let loaded: Vec<PulledBlock> = (0..blocks.blocks.len())
        .map(|block| {
            let is_read = blocks.pairs.iter().any(|pair| pair.2 == block);
            match is_read && !blocks.blocks[block].0.is_pulled() {
                true => blocks.reread(block, |number| read(s, number)),
                false => PulledBlock::default(),
            }
        })
        .collect();
    // Several blocks that are pulled back already have the same values.
    let mut values = BTreeMap::new();
    for &(_, _, block) in &blocks.pairs {
        for (_, index) in blocks.pulled_entries(block) {
            values.entry(index.number).or_insert_with(|| read(s, index.number));
        }
    }
    let mut inputs = Vec::new();
    for field in 0..s.facts.form.fields.len() {
        let quantity = s.facts.quantity(QuantitySource::Direction(field));
        for component in 0..s.facts.components(field) {
            let row = s.facts.row(field, component);
            let read = s.facts.trial.is_none_or(|trial| trial == s.facts.stored_row(row));
            let is_alone = s.facts.trial.is_some() && s.facts.stored(field) > 1;
            let component = if is_alone { 0 } else { component };
            let Some(q) = quantity.filter(|_| read) else {
                inputs.push((None, Vec::new(), Vec::new()));
                continue;
            };
            let own = &s.facts.quantities[q];
            let value = own.value.then(|| evaluate(s, q, component, Part::Value));
            let gradient = match own.gradient {
                true => reference_gradient(s, q, component, evaluate),
                false => Vec::new(),
            };
            let second = match own.second {
                true => reference_second(s, q, component, evaluate),
                false => Vec::new(),
            };
            inputs.push((value, gradient, second));
        }
    }
    let mut tested = vec![TestFactors::default(); s.facts.rows()];
    let inputs: Vec<PartValues<'_>> = inputs
        .iter()
        .map(|(value, gradient, second)| PartValues { value: *value, gradient, second })
        .collect();
    for &(test, trial, block) in &blocks.pairs {
        act(&mut s.b, &loaded[block], inputs[trial], &mut tested[test]);
    }
    pulled::act(&mut s.b, (blocks, s.facts.form.dim), &values, &inputs, &mut tested);
    tested
}

/// The factors at a point that depend on the representation of its geometry.
struct Factors {
    /// Multiplies Σ_a K_aj ∂u/∂ξ_a.
    gradient: Option<ValueId>,
    /// Multiplies the factor of a test value.
    value: ValueId,
    /// Multiplies Σ_j K_aj f1_j.
    flux: ValueId,
}

impl Factors {
    /// Computes the factors. `merged`: the point function is linear in the gradient of the direction and yields fluxes
    /// only, so that both factors 1/det J merge into one.
    fn new(s: &mut Lowering<'_>, at: &PointGeometry, merged: bool) -> Self {
        let Some(det) = at.det else {
            return Self { gradient: None, value: at.weight, flux: at.weight };
        };
        let size = s.b.unary(Unary::Abs, det);
        if merged {
            let flux = s.b.quotient(at.weight, size);
            s.b.name(flux, "w_over_det");
            return Self { gradient: None, value: flux, flux };
        }
        let value = s.b.mul(at.weight, size);
        let reciprocal = s.b.reciprocal(det);
        let flux = s.b.mul(value, reciprocal);
        s.b.name(value, "w_det");
        s.b.name(reciprocal, "one_over_det");
        s.b.name(flux, "w_sign");
        Self { gradient: Some(reciprocal), value, flux }
    }
}

/// Supplies an input of the point function.
fn supply(
    s: &mut Lowering<'_>,
    at: &PointGeometry,
    point: &Index,
    gradient_factor: Option<ValueId>,
    gradients: &mut BTreeMap<(usize, usize), Vec<ValueId>>,
    evaluate: &mut Evaluate<'_>,
    input: Input,
) -> ValueId {
    if s.facts.elements.is_zero(input) {
        return s.b.constant(0.0);
    }
    let (source, slot) = match input {
        Input::State(slot) => (QuantitySource::State(slot.field), slot),
        Input::Direction(slot) => (QuantitySource::Direction(slot.field), slot),
        Input::Aux(slot) => (QuantitySource::Aux(slot.field), slot),
        Input::Coordinate(axis) => return at.x[axis],
        Input::Normal(axis) => return at.normal[axis],
        Input::Inverse(..) | Input::Tangent(..) | Input::Bend(..) | Input::Density(_) => {
            return at.entry(&mut s.b, input);
        }
        Input::Extent(side) => {
            return at.extents[side as usize].expect("an extent should be there where it is read");
        }
        _ => unreachable!("what is constant on a cell should have been lowered before"),
    };
    let Some(quantity) = s.facts.quantity(source) else {
        // Auxiliary data at points.
        let components = s.facts.form.aux[slot.field].shape.components();
        let role = Role::AuxPoints(slot.field);
        let argument = s.arguments[&role];
        let at = s.point_index(components, point, slot.component);
        return s.b.load_lanes(argument, at);
    };
    match slot.part {
        Part::Value => evaluate(s, quantity, slot.component, Part::Value),
        // Along an axis of the reference cell.
        Part::Derivative(_) if s.facts.quantities[quantity].element.is_referenced() => {
            evaluate(s, quantity, slot.component, slot.part)
        }
        Part::Derivative(axis) => {
            let key = (quantity, slot.component);
            let gradient = match gradients.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let gradient = reference_gradient(s, quantity, slot.component, evaluate);
                    gradients.insert(key, gradient.clone());
                    gradient
                }
            };
            let k = at.of(s.facts.side_of(source));
            let mut sum = s.b.mul(k[0][axis], gradient[0]);
            for (a, &derivative) in gradient.iter().enumerate().skip(1) {
                sum = s.b.fma(k[a][axis], derivative, sum);
            }
            let own = &s.facts.quantities[quantity];
            let component =
                if own.components == 1 { String::new() } else { slot.component.to_string() };
            let name = format!("d{}{component}_d{}", own.name, ["x", "y", "z"][axis]);
            match (gradient_factor, at.det) {
                (Some(factor), _) => {
                    let gradient = s.b.mul(sum, factor);
                    s.b.name(gradient, &name)
                }
                // A value scaled by the adjugate.
                (None, Some(_)) => s.b.name(sum, &format!("det_{name}")),
                (None, None) => s.b.name(sum, &name),
            }
        }
        Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        Part::Second(i, j) => {
            let terms = at.parts_of(&mut s.b, s.facts.side_of(source), slot.part);
            let mut sum = None;
            for (part, factor) in terms {
                let derivative = evaluate(s, quantity, slot.component, part);
                sum = Some(match sum {
                    Some(sum) => s.b.fma(factor, derivative, sum),
                    None => s.b.mul(factor, derivative),
                });
            }
            let own = &s.facts.quantities[quantity];
            let component =
                if own.components == 1 { String::new() } else { slot.component.to_string() };
            let axes = ["x", "y", "z"];
            let name = format!("d{}{component}_d{}{}", own.name, axes[i], axes[j]);
            let second = sum.expect("a second derivative should have terms");
            s.b.name(second, &name)
        }
    }
}

/// Lowers the graph nodes `outputs` at the point.
fn lower_graph(
    s: &mut Lowering<'_>,
    at: &PointGeometry,
    point: &Index,
    gradient_factor: Option<ValueId>,
    outputs: &[NodeId],
    evaluate: &mut Evaluate<'_>,
) -> crate::lower::graph::LoweredValues {
    let mut lowered = s.hoisted.clone();
    let mut gradients = BTreeMap::new();
    let integral = s.facts.integral;
    lowered.lower(s, &integral.graph, outputs, None, |s, input| {
        supply(s, at, point, gradient_factor, &mut gradients, evaluate, input)
    });
    s.name_nodes(&lowered);
    lowered
}

pub(crate) fn pulled_blocks(
    s: &mut Lowering<'_>,
    at: &PointGeometry,
    point: &Index,
    evaluate: &mut Evaluate<'_>,
) -> Vec<PulledBlock> {
    let nodes = s.facts.blocks.nodes();
    let factor = at.det.filter(|_| s.facts.reads_gradients).map(|det| s.b.reciprocal(det));
    let lowered = lower_graph(s, at, point, factor, &nodes, evaluate);
    s.b.comment("pulled back");
    let blocks = &s.facts.blocks;
    blocks.blocks.iter().map(|(block, _)| blocks.pull(&mut s.b, block, at, &lowered)).collect()
}

fn physics(
    s: &mut Lowering<'_>,
    at: &PointGeometry,
    point: &Index,
    evaluate: &mut Evaluate<'_>,
) -> Vec<TestFactors> {
    let dim = s.facts.elements.cell.dim();
    let merged = s.facts.merged();
    let factors = Factors::new(s, at, merged);
    let outputs = &s.facts.outputs;
    let nodes: Vec<_> = outputs.iter().map(|(_, node)| *node).collect();
    let lowered = lower_graph(s, at, point, factors.gradient, &nodes, evaluate);
    s.b.comment("factors of the test functions");
    let mut tested = vec![TestFactors::default(); s.facts.rows()];
    let mut fluxes = vec![Vec::<(usize, ValueId)>::new(); tested.len()];
    let mut seconds = Vec::new();
    for &(Slot { field, component, part, .. }, node) in outputs {
        let value = lowered.get(node).expect("an output should be lowered");
        let row = s.facts.row(field, component);
        match part {
            Part::Value => tested[row].value = Some(s.b.mul(value, factors.value)),
            Part::Derivative(_) if s.facts.elements.fields[field].is_referenced() => {
                let term = (value, factors.value);
                tested[row].add(&mut s.b, dim, part, term);
            }
            Part::Derivative(axis) => {
                let flux = s.b.mul(value, factors.flux);
                fluxes[row].push((axis, flux));
            }
            Part::Second(..) => {
                let flux = s.b.mul(value, factors.flux);
                seconds.push((row, part, flux));
            }
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        }
    }
    for (row, flux) in fluxes.iter().enumerate() {
        if let [(first_axis, first), rest @ ..] = flux.as_slice() {
            let k = at.of(s.facts.side_of_row(row));
            tested[row].gradient = (0..dim)
                .map(|a| {
                    let start = s.b.mul(k[a][*first_axis], *first);
                    rest.iter().fold(start, |sum, &(axis, f)| s.b.fma(k[a][axis], f, sum))
                })
                .collect();
        }
    }
    for (row, part, flux) in seconds {
        for (of, factor) in at.parts_of(&mut s.b, s.facts.side_of_row(row), part) {
            tested[row].add(&mut s.b, dim, of, (factor, flux));
        }
    }
    tested
}

/// The value and derivatives of a quantity at a point.
pub(crate) struct PointValues {
    /// The parts of a component, in the order of `values`.
    pub(crate) parts: Vec<Part>,
    /// `[component][part]`
    pub(crate) values: Vec<ValueId>,
    /// `[component][axis]`, if derivatives are equal at all points.
    pub(crate) slopes: Vec<Vec<ValueId>>,
}

impl PointValues {
    pub(crate) fn get(&self, c: usize, part: Part) -> ValueId {
        if let (Part::Derivative(a), Some(slopes)) = (part, self.slopes.get(c)) {
            return slopes[a];
        }
        let at = self.parts.iter().position(|&known| known == part);
        self.values[c * self.parts.len() + at.expect("the part should have been asked for")]
    }
}
