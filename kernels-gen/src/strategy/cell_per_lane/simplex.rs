//! Dense tables and one loop over the points: for lines, triangles and tetrahedra, and on tensor cells for elements with more
//! nodes per direction than points.
//!
//! ```text
//! u(q) = Σ_b B[q][b] u_b      r_b += B[q][b] f0 + Σ_a D[q][b][a] f1_a + …
//! ```
//!
//! A derivative that is equal at all points (degree 1) is computed before the loop. Sums over few nodes are unrolled;
//! those over more than [`WRITTEN`] are loops.

use super::column::Column;
use super::prefetch;
use crate::element::{Element, LineBasis};
use crate::kir::{Index, LocalId, ValueId};
use crate::lower::ends::squared;
use crate::lower::facts::{Quantity, QuantitySource};
use crate::lower::geometry::{
    cell_geometry, gather_corners, geometry_at, position, unread, with_outside,
};
use crate::lower::hanging::Nodes;
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::point::at_point;
use crate::lower::restrict::NodalLocation;
use crate::lower::stored::{PartValues, TestFactors};
use crate::lower::tables::{BasisValues, Tables};
use crate::plan::Task;
use fem_dsl::point::{Part, Side};

/// Largest number of nodes in unrolled sums: text and compile time grow with nodes times points.
const WRITTEN: usize = 64;

/// One evaluated quantity.
pub(super) struct EvaluatedQuantity {
    nodal: LocalId,
    tables: Tables,
    /// `[component][direction]`, if derivatives are constant.
    gradient: Option<Vec<Vec<ValueId>>>,
    /// The sums of a loop over many nodes, component by component of each part.
    sums: Option<(LocalId, Vec<Part>)>,
}

impl EvaluatedQuantity {
    /// Evaluates a quantity whose nodal values are in `nodal`.
    pub(super) fn new(s: &mut Lowering<'_>, quantity: &Quantity, nodal: LocalId) -> Self {
        let name = (quantity.name.as_str(), s.facts.side_of(quantity.source));
        let tables = Tables::with_seconds(s, name, quantity.element, quantity.second);
        let sums = (tables.nodes > WRITTEN).then(|| {
            let value = quantity.value.then_some(Part::Value);
            let of =
                |order, known| if known { Part::of_order(order, s.facts.form.dim) } else { vec![] };
            let derivatives = [of(1, quantity.gradient), of(2, quantity.second)].concat();
            let parts: Vec<Part> = value.into_iter().chain(derivatives).collect();
            let length = (parts.len() * quantity.components).max(1);
            (s.b.local(&format!("{}_sums", quantity.name), length), parts)
        });
        Self { nodal, tables, gradient: None, sums }
    }
}

pub(super) fn lower(s: &mut Lowering<'_>) {
    let mut evaluated = Vec::new();
    for quantity in &s.facts.quantities {
        let length = quantity.stored * quantity.element.count();
        let nodal = s.b.local(&format!("{}_nodal", quantity.name), length);
        gather(s, quantity, nodal);
        if s.facts.hangs(quantity.source, quantity.element) {
            let side = s.facts.side_of(quantity.source);
            nodes(s, quantity.element, nodal, (quantity.components, side)).resolve(s, false);
        }
        evaluated.push(EvaluatedQuantity::new(s, quantity, nodal));
    }
    gather_corners(s);
    prefetch::cells(s);
    prefetch::nodes(s);
    s.gathered();
    for (quantity, evaluated) in s.facts.quantities.iter().zip(&mut evaluated) {
        evaluated.gradient = constant_gradient(s, quantity, evaluated.nodal, &evaluated.tables);
    }
    let mut results = Vec::new();
    for field in s.facts.results() {
        let (components, tables) = (s.facts.stored(field), result_tables(s, field));
        let name = s.facts.of_field("r_nodal", field);
        let nodal = s.b.local(&name, components * tables.nodes);
        s.b.clear(nodal, 0, components * tables.nodes);
        results.push(ElementVector { field, nodal, tables });
    }
    let cell = cell_geometry(s);
    let points = s.facts.points();
    s.b.comment("points");
    let keeps = s.facts.keeps_coefficients();
    if s.facts.plan.task == Task::Diagonal {
        s.coefficients(if keeps { points } else { 1 });
    }
    repeat(s, "q", points, false, |s, point| {
        prefetch::points(s, &point, 1);
        let at = geometry_at(
            s,
            &point,
            |_| cell.affine(),
            |s, i, part| {
                let x = position(s);
                value_at(s, &evaluated[x], x, i, part, &point)
            },
        );
        let mut evaluate = |s: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
            value_at(s, &evaluated[quantity], quantity, c, part, &point)
        };
        let at = with_outside(s, at, &mut evaluate);
        let tested = at_point(s, &at, &point, &mut evaluate);
        for result in &results {
            if s.facts.plan.task == Task::Diagonal {
                if !keeps {
                    diagonal(s, result, &point);
                }
            } else {
                let tested = &tested[s.facts.rows_of(result.field)];
                integrate(s, result.nodal, &result.tables, tested, &point);
            }
        }
    });
    if !results.is_empty() {
        s.b.stage(s.facts.plan.block);
    }
    for result in &results {
        match s.facts.plan.task {
            Task::Diagonal if keeps => diagonal_of_parents(s, result),
            Task::Diagonal => {}
            _ => resolve_back(s, result.field, (result.nodal, s.facts.components(result.field))),
        }
        scatter(s, result);
    }
}

/// Returns the nodes of a private array, which may hang.
fn nodes(
    s: &Lowering<'_>,
    element: Element,
    array: LocalId,
    (components, side): (usize, Side),
) -> Nodes {
    let lines = element.lines().expect("nodes should hang on tensor cells only");
    let [n, m, _] = lines.map(LineBasis::count);
    let (dim, length, strides) = (s.facts.form.dim, element.count(), [1, n, n * m]);
    Nodes { array, lines, components, dim, strides, length, side }
}

/// Adds the results of a field's hanging nodes to those of their parents.
fn resolve_back(s: &mut Lowering<'_>, field: usize, (nodal, components): (LocalId, usize)) {
    if s.facts.result_hangs(field) {
        let element = s.facts.elements.fields[field];
        let side = s.facts.side_of(QuantitySource::Direction(field));
        s.comment_on("hanging nodes back", field);
        nodes(s, element, nodal, (components, side)).resolve(s, true);
    }
}

/// A function of the degrees of freedom that a cell with hanging nodes references: a combination of the cell's own.
struct ParentFunction {
    /// Its values at the cell's nodes.
    unit: LocalId,
    nodes: Nodes,
    /// Its value and derivatives at a point.
    sums: LocalId,
    /// True if nodes of its element may hang; else it is the cell's own.
    hangs: bool,
}

impl ParentFunction {
    fn new(s: &mut Lowering<'_>, element: Element, name: &str, side: Side) -> Self {
        let unit = s.b.local(&format!("{name}_unit"), element.count());
        let sums = s.b.local(&format!("{name}_unit_sums"), 1 + s.facts.form.dim);
        let hangs = element.is_continuous();
        Self { unit, nodes: nodes(s, element, unit, (1, side)), sums, hangs }
    }

    /// Becomes the function of a degree of freedom.
    fn set(&self, s: &mut Lowering<'_>, node: &Index) {
        s.b.clear(self.unit, 0, self.nodes.length);
        let one = s.b.constant(1.0);
        s.b.store(self.unit, node.clone(), one);
        if self.hangs {
            self.nodes.resolve(s, false);
        }
    }

    /// Returns its value and derivatives at a point.
    fn at(&self, s: &mut Lowering<'_>, tables: &Tables, point: &Index) -> (ValueId, Vec<ValueId>) {
        let dim = s.facts.form.dim;
        let parts: Vec<Part> =
            [Part::Value].into_iter().chain((0..dim).map(Part::Derivative)).collect();
        s.b.clear(self.sums, 0, parts.len());
        repeat(s, "b", tables.nodes, false, |s, node| {
            let value = s.b.load(self.unit, node.clone());
            for (number, &part) in parts.iter().enumerate() {
                let factor = tables.basis(s, (0, part), &node, point);
                let sum = s.b.load(self.sums, Index::from(number));
                let sum = s.b.fma(factor, value, sum);
                s.b.store(self.sums, Index::from(number), sum);
            }
        });
        let mut load = |number: usize| s.b.load(self.sums, Index::from(number));
        (load(0), (1..=dim).map(load).collect())
    }
}

/// Computes r_b = Σ coefficients · φ_b φ_b with the functions of parents, from the coefficients at all points.
fn diagonal_of_parents(s: &mut Lowering<'_>, result: &ElementVector) {
    let ElementVector { field, nodal, tables } = result;
    let (facts, points) = (s.facts, s.facts.points());
    let coefficients = s.coefficients(points);
    let (element, side) =
        (facts.elements.fields[*field], facts.side_of(QuantitySource::Direction(*field)));
    s.comment_on("diagonal of", *field);
    let function = ParentFunction::new(s, element, &facts.of_field("r", *field), side);
    repeat(s, "a", tables.nodes, false, |s, of| {
        function.set(s, &of);
        repeat(s, "q", points, false, |s, point| {
            let (value, gradient) = function.at(s, tables, &point);
            let own = PartValues { value: Some(value), gradient: &gradient, second: &[] };
            let rows = facts.rows_of(*field);
            for &(row, _, block) in facts.blocks.pairs.iter().filter(|p| rows.contains(&p.0)) {
                let read = |number: usize| s.b.load(coefficients, point.plus(number * points));
                let pulled = facts.blocks.reread(block, read);
                let place = of.plus((row - rows.start) * tables.nodes);
                let sum = s.b.load(*nodal, place.clone());
                let sum = squared(&mut s.b, &pulled, [own; 2], sum);
                s.b.store(*nodal, place, sum);
            }
        });
    });
}

/// Computes the columns of the element matrix that belong to one component, with its basis functions from tables.
pub(super) fn columns(s: &mut Lowering<'_>, column: &Column<'_>) {
    let Quantity { name, element, second, source, .. } = s.facts.quantities[0].clone();
    let side = s.facts.side_of(source);
    let of_trial = Tables::with_seconds(s, (&name, side), element, second);
    let mut results = Vec::new();
    for (field, rows) in s.facts.written_rows() {
        let tables = result_tables(s, field);
        let components = if tables.are_vectors() { 1 } else { rows.len() };
        let nodal = s.b.local(&s.facts.of_field("r_nodal", field), components * tables.nodes);
        results.push((field, rows, nodal, tables));
    }
    let small = of_trial.nodes * s.facts.points() <= s.facts.unroll();
    let of_parent =
        s.facts.hangs(source, element).then(|| ParentFunction::new(s, element, &name, side));
    repeat(s, "j", of_trial.nodes, small, |s, j| {
        s.forget();
        if let Some(function) = &of_parent {
            function.set(s, &j);
        }
        for (_, rows, nodal, tables) in &results {
            let components = if tables.are_vectors() { 1 } else { rows.len() };
            s.b.clear(*nodal, 0, components * tables.nodes);
        }
        repeat(s, "q", s.facts.points(), false, |s, point| {
            let at = unread(s);
            let known = of_parent.as_ref().map(|function| function.at(s, &of_trial, &point));
            let mut evaluate = |s: &mut Lowering<'_>, _: usize, c: usize, part: Part| match &known {
                Some((value, gradient)) => match part {
                    Part::Derivative(axis) => gradient[axis],
                    _ => *value,
                },
                None => of_trial.basis(s, (c, part), &j, &point),
            };
            let tested = at_point(s, &at, &point, &mut evaluate);
            for (_, rows, nodal, tables) in &results {
                integrate(s, *nodal, tables, &tested[rows.clone()], &point);
            }
        });
        for (field, rows, nodal, tables) in &results {
            resolve_back(s, *field, (*nodal, rows.len()));
            let mut stored: Vec<usize> = rows.clone().map(|row| s.facts.stored_row(row)).collect();
            stored.dedup();
            s.b.repeat("i", tables.nodes, small, |b, i| {
                for (c, &row) in stored.iter().enumerate() {
                    let value = b.load(*nodal, tables.place(&i, c));
                    column.put(b, row, (&i, &j), value);
                }
            });
        }
    });
}

fn result_tables(s: &mut Lowering<'_>, field: usize) -> Tables {
    let (element, facts) = (s.facts.elements.fields[field], s.facts);
    let rows = || facts.rows_of(field);
    let second = rows().any(|row| facts.tests_second(row))
        || facts.plan.task == Task::Diagonal && facts.blocks.has_second();
    let side = facts.side_of(QuantitySource::State(field));
    Tables::with_seconds(s, (&facts.form.fields[field].name, side), element, second)
}

/// The sums over the points for one field.
struct ElementVector {
    field: usize,
    nodal: LocalId,
    tables: Tables,
}

fn gather(s: &mut Lowering<'_>, quantity: &Quantity, local: LocalId) {
    let nodes = quantity.element.count();
    let batch = Index::from(s.b.batch());
    s.b.comment(&format!("gather {}", quantity.name));
    let nodal = NodalLocation::of(s, quantity);
    let sides = s.facts.sides();
    s.b.repeat("a", nodes, false, |b, a| {
        let node = match quantity.source {
            // The maps of both sides follow one another.
            QuantitySource::Position(side) => {
                &batch.times(sides * nodes).plus(side as usize * nodes) + &a
            }
            _ => nodal.node(b, &a),
        };
        for c in 0..quantity.stored {
            let value = nodal.gather(b, &node, c);
            b.store(local, a.plus(c * nodes), value);
        }
    });
}

fn scatter(s: &mut Lowering<'_>, result: &ElementVector) {
    let (components, local, nodes) =
        (s.facts.stored(result.field), result.nodal, result.tables.nodes);
    let nodal = NodalLocation::result(s, result.field);
    s.comment_on("scatter", result.field);
    s.b.repeat("a", nodes, false, |b, a| {
        let node = nodal.node(b, &a);
        for c in 0..components {
            let value = b.load(local, a.plus(c * nodes));
            nodal.scatter(b, &node, c, value);
        }
    });
}

fn constant_gradient(
    s: &mut Lowering<'_>,
    quantity: &Quantity,
    nodal: LocalId,
    tables: &Tables,
) -> Option<Vec<Vec<ValueId>>> {
    let component = |c: usize| {
        let place = |node: usize| tables.place(&Index::from(node), c);
        tables.constant_gradient(s, c, |s, node| s.b.load(nodal, place(node)))
    };
    (0..quantity.components).filter(|_| quantity.gradient).map(component).collect()
}

pub(super) fn value_at(
    s: &mut Lowering<'_>,
    evaluated: &EvaluatedQuantity,
    quantity: usize,
    c: usize,
    part: Part,
    point: &Index,
) -> ValueId {
    if let (Part::Derivative(a), Some(gradient)) = (part, &evaluated.gradient) {
        return gradient[c][a];
    }
    // Several outputs may need a quantity's value at one point.
    let key = (quantity, c, part);
    if let Some(&(_, value)) = s.at_this_point(point).iter().find(|(known, _)| *known == key) {
        return value;
    }
    if let Some((sums, parts)) = &evaluated.sums {
        return looped(s, evaluated, (*sums, parts), quantity, point)
            .into_iter()
            .find_map(|(known, value)| (known == key).then_some(value))
            .expect("a part should be one that is evaluated");
    }
    let (tables, zero) = (&evaluated.tables, s.b.constant(0.0));
    let value = (0..tables.nodes).fold(zero, |sum, node| {
        let node = Index::from(node);
        let factor = tables.basis(s, (c, part), &node, point);
        let value = s.b.load(evaluated.nodal, tables.place(&node, c));
        s.b.fma(factor, value, sum)
    });
    s.at_this_point(point).push((key, value));
    value
}

/// Computes all parts of a quantity at a point in one loop over its nodes.
fn looped(
    s: &mut Lowering<'_>,
    evaluated: &EvaluatedQuantity,
    (sums, parts): (LocalId, &[Part]),
    quantity: usize,
    point: &Index,
) -> Vec<((usize, usize, Part), ValueId)> {
    let (tables, components) = (&evaluated.tables, s.facts.quantities[quantity].components);
    let entries: Vec<(usize, usize, Part)> =
        (0..components).flat_map(|c| parts.iter().map(move |&part| (quantity, c, part))).collect();
    s.b.clear(sums, 0, entries.len());
    repeat(s, "a", tables.nodes, false, |s, node| {
        let mut factors: Vec<ValueId> = Vec::new();
        for c in 0..components {
            if c == 0 || tables.are_vectors() {
                let of = |&part: &Part| tables.basis(s, (c, part), &node, point);
                factors = parts.iter().map(of).collect();
            }
            let value = s.b.load(evaluated.nodal, tables.place(&node, c));
            for (number, &factor) in factors.iter().enumerate() {
                let place = Index::from(c * parts.len() + number);
                let sum = s.b.load(sums, place.clone());
                let sum = s.b.fma(factor, value, sum);
                s.b.store(sums, place, sum);
            }
        }
    });
    let load = |(number, key)| (key, s.b.load(sums, Index::from(number)));
    let found: Vec<_> = entries.into_iter().enumerate().map(load).collect();
    s.at_this_point(point).extend(found.iter().copied());
    found
}

/// Adds the contributions of one point to every node.
pub(super) fn integrate(
    s: &mut Lowering<'_>,
    nodal: LocalId,
    tables: &Tables,
    tested: &[TestFactors],
    point: &Index,
) {
    for (c, tested) in tested.iter().enumerate() {
        if tested.value.is_none() && tested.gradient.is_empty() && tested.second.is_empty() {
            continue;
        }
        repeat(s, "a", tables.nodes, tables.nodes <= WRITTEN, |s, node| {
            let place = tables.place(&node, c);
            let sum = s.b.load(nodal, place.clone());
            let sum = tested.against(s, sum, |s, part| tables.basis(s, (c, part), &node, point));
            s.b.store(nodal, place, sum);
        });
    }
}

/// Adds r_b += Σ coefficients · φ_b φ_b, with the coefficients of this point.
fn diagonal(s: &mut Lowering<'_>, result: &ElementVector, point: &Index) {
    let facts = s.facts;
    let (coefficients, rows) = (s.coefficients(1), facts.rows_of(result.field));
    let ElementVector { nodal, tables, .. } = result;
    for &(row, trial, block) in facts.blocks.pairs.iter().filter(|pair| rows.contains(&pair.0)) {
        let pulled =
            facts.blocks.reread(block, |number| s.b.load(coefficients, Index::from(number)));
        repeat(s, "a", tables.nodes, tables.nodes <= WRITTEN, |s, of| {
            let [test, trial] = [row, trial].map(|row| row - rows.start);
            let tested = BasisValues::new(s, tables, test, &of, point);
            let tried = (test != trial).then(|| BasisValues::new(s, tables, trial, &of, point));
            let place = tables.place(&of, test);
            let sum = s.b.load(*nodal, place.clone());
            let values = [&tested, tried.as_ref().unwrap_or(&tested)].map(BasisValues::parts);
            let sum = squared(&mut s.b, &pulled, values, sum);
            s.b.store(*nodal, place, sum);
        });
    }
}
