//! Dense tables, one loop over the points: triangles and tetrahedra, and on tensor cells whatever
//! has more nodes a direction than there are points.
//!
//! ```text
//! u(q) = Σ_b B[q][b] u_b      r_b += B[q][b] f0 + Σ_a D[q][b][a] f1_a
//! ```
//!
//! A derivative that is the same at all points (degree 1) is taken before the loop.

use super::prefetch;
use crate::element::{Lagrange, tabulate};
use crate::kir::{Entries, Index, LocalId, TableId, ValueId};
use crate::lower::facts::Quantity;
use crate::lower::geometry::{
    CellGeometry, cell_geometry, curved, gather_corners, given, on_facet, position,
    reference_point, weight,
};
use crate::lower::jacobian::AtPoint;
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::point::at_point;
use crate::lower::restrict::Nodal;
use crate::lower::stored::{Block, Tested};
use crate::plan::Task;
use fem_dsl::point::Part;

/// Tables of one element: `[point · nodes + node]`.
pub(super) struct Tables {
    pub(super) nodes: usize,
    value: TableId,
    derivatives: Vec<TableId>,
    /// The derivatives at any point, where they are the same at all.
    constant: Option<Vec<Vec<f64>>>,
}

pub(super) fn tables(s: &mut Lowering<'_>, name: &str, element: Lagrange) -> Tables {
    let points = s.facts.rule_points();
    let tabulation = tabulate(element, &points);
    let nodes = element.count();
    let dim = s.facts.form.dim;
    let flat = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..points.len())
            .flat_map(|q| (0..nodes).map(move |b| (q, b)))
            .map(|(q, b)| entry(q, b))
            .collect()
    };
    let value = flat(&|q, b| tabulation.value(q, b));
    let value = s.b.table(&format!("{name}_values"), Entries::Real(value));
    let gradients: Vec<Vec<f64>> =
        (0..dim).map(|a| flat(&|q, b| tabulation.gradient(q, b)[a])).collect();
    let same = element.degree() <= 1 && !s.facts.elements.cell.is_tensor();
    let constant = same.then(|| gradients.iter().map(|table| table[..nodes].to_vec()).collect());
    let derivatives = gradients
        .into_iter()
        .enumerate()
        .map(|(a, table)| s.b.table(&format!("{name}_d{a}"), Entries::Real(table)))
        .collect();
    Tables { nodes, value, derivatives, constant }
}

/// One evaluated quantity.
pub(super) struct Evaluated {
    pub(super) nodal: LocalId,
    pub(super) tables: Tables,
    /// `[component][direction]` where derivatives are constant.
    pub(super) gradient: Option<Vec<Vec<ValueId>>>,
}

pub(super) fn lower(s: &mut Lowering<'_>) {
    let mut evaluated = Vec::new();
    for quantity in &s.facts.quantities {
        let tables = tables(s, &quantity.name, quantity.element);
        let nodal =
            s.b.local(&format!("{}_nodal", quantity.name), quantity.components * tables.nodes);
        gather(s, &quantity, nodal);
        evaluated.push(Evaluated { nodal, tables, gradient: None });
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
        let (components, element) = (s.facts.components(field), s.facts.elements.fields[field]);
        let tables = tables(s, &s.facts.form.fields[field].name.clone(), element);
        let name = s.facts.of_field("r_nodal", field);
        let nodal = s.b.local(&name, components * tables.nodes);
        let zero = s.b.constant(0.0);
        s.b.repeat("b", components * tables.nodes, false, |b, i| b.store(nodal, i, zero));
        results.push(Outcome { field, nodal, tables });
    }
    let cell = cell_geometry(s);
    let points = s.facts.points();
    s.b.comment("points");
    if s.facts.plan.task == Task::Diagonal {
        s.coefficients(1);
    }
    repeat(s, "q", points, false, |s, point| {
        prefetch::points(s, &point, 1);
        let at = geometry(s, &cell, &evaluated, &point);
        let mut evaluate = |s: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
            value_at(s, &evaluated[quantity], quantity, c, part, &point)
        };
        let tested = at_point(s, &at, &point, &mut evaluate);
        for result in &results {
            if s.facts.plan.task == Task::Diagonal {
                diagonal(s, result, &point);
            } else {
                let tested = &tested[s.facts.rows_of(result.field)];
                integrate(s, result.nodal, &result.tables, tested, &point);
            }
        }
    });
    if !results.is_empty() {
        s.b.stage(s.facts.plan.block);
    }
    results.iter().for_each(|result| scatter(s, result));
}

/// What is summed over the points for one field.
struct Outcome {
    field: usize,
    nodal: LocalId,
    tables: Tables,
}

fn gather(s: &mut Lowering<'_>, quantity: &Quantity, local: LocalId) {
    let nodes = quantity.element.count();
    let batch = Index::from(s.b.batch());
    s.b.comment(&format!("gather {}", quantity.name));
    let nodal = Nodal::of(s, quantity);
    s.b.repeat("a", nodes, false, |b, a| {
        for c in 0..quantity.components {
            let value = nodal.gather(b, &(&batch.times(nodes) + &a), c);
            b.store(local, a.plus(c * nodes), value);
        }
    });
}

fn scatter(s: &mut Lowering<'_>, result: &Outcome) {
    let (components, local, nodes) =
        (s.facts.components(result.field), result.nodal, result.tables.nodes);
    let batch = Index::from(s.b.batch());
    let nodal = Nodal::result(s, result.field);
    s.comment_on("scatter", result.field);
    s.b.repeat("a", nodes, false, |b, a| {
        for c in 0..components {
            let value = b.load(local, a.plus(c * nodes));
            nodal.scatter(b, &(&batch.times(nodes) + &a), c, value);
        }
    });
}

fn constant_gradient(
    s: &mut Lowering<'_>,
    quantity: &Quantity,
    nodal: LocalId,
    tables: &Tables,
) -> Option<Vec<Vec<ValueId>>> {
    let constant = tables.constant.as_ref().filter(|_| quantity.gradient)?;
    let gradient = (0..quantity.components).map(|c| {
        constant
            .iter()
            .map(|table| {
                let zero = s.b.constant(0.0);
                table.iter().enumerate().fold(zero, |sum, (node, &entry)| {
                    let factor = s.b.constant(entry);
                    if entry == 0.0 {
                        return sum;
                    }
                    let value = s.b.load(nodal, Index::from(c * tables.nodes + node));
                    s.b.fma(factor, value, sum)
                })
            })
            .collect()
    });
    Some(gradient.collect())
}

pub(super) fn value_at(
    s: &mut Lowering<'_>,
    evaluated: &Evaluated,
    quantity: usize,
    c: usize,
    part: Part,
    point: &Index,
) -> ValueId {
    let table = match (part, &evaluated.gradient) {
        (Part::Derivative(a), Some(gradient)) => return gradient[c][a],
        (Part::Derivative(a), None) => evaluated.tables.derivatives[a],
        (Part::Value, _) => evaluated.tables.value,
    };
    // A quantity's value may be asked for at one point by several outputs.
    let key = (quantity, c, part);
    if let Some(&(_, value)) = s.at_this_point(point).iter().find(|(known, _)| *known == key) {
        return value;
    }
    let nodes = evaluated.tables.nodes;
    let zero = s.b.constant(0.0);
    let value = (0..nodes).fold(zero, |sum, node| {
        let factor = s.b.load_table(table, point.times(nodes).plus(node));
        let value = s.b.load(evaluated.nodal, Index::from(c * nodes + node));
        s.b.fma(factor, value, sum)
    });
    s.at_this_point(point).push((key, value));
    value
}

fn geometry(
    s: &mut Lowering<'_>,
    cell: &CellGeometry,
    evaluated: &[Evaluated],
    point: &Index,
) -> AtPoint {
    if let Some(known) = given(s, point) {
        return known;
    }
    let weight = weight(s, point);
    if let CellGeometry::Affine(map) = cell {
        return map.at(s, weight, |s| reference_point(s, point));
    }
    let x = position(s);
    let at = curved(s, weight, |s, i, part| value_at(s, &evaluated[x], x, i, part, point));
    if s.facts.on_facets() { on_facet(s, at) } else { at }
}

/// Tests what one point has against every node.
pub(super) fn integrate(
    s: &mut Lowering<'_>,
    nodal: LocalId,
    tables: &Tables,
    tested: &[Tested],
    point: &Index,
) {
    for (c, tested) in tested.iter().enumerate() {
        if tested.value.is_none() && tested.gradient.is_empty() {
            continue;
        }
        for node in 0..tables.nodes {
            let place = Index::from(c * tables.nodes + node);
            let entry = point.times(tables.nodes).plus(node);
            let mut sum = s.b.load(nodal, place.clone());
            if let Some(value) = tested.value {
                let factor = s.b.load_table(tables.value, entry.clone());
                sum = s.b.fma(factor, value, sum);
            }
            for (a, &flux) in tested.gradient.iter().enumerate() {
                let factor = derivative(s, tables, a, node, &entry);
                sum = s.b.fma(factor, flux, sum);
            }
            s.b.store(nodal, place, sum);
        }
    }
}

fn derivative(
    s: &mut Lowering<'_>,
    tables: &Tables,
    a: usize,
    node: usize,
    entry: &Index,
) -> ValueId {
    match &tables.constant {
        Some(constant) => s.b.constant(constant[a][node]),
        None => s.b.load_table(tables.derivatives[a], entry.clone()),
    }
}

/// r_b += Σ coefficients · φ_b φ_b, with the coefficients of this point.
fn diagonal(s: &mut Lowering<'_>, result: &Outcome, point: &Index) {
    let dim = s.facts.form.dim;
    let coefficients = s.coefficients(1);
    let (blocks, rows) = (&s.facts.blocks, s.facts.rows_of(result.field));
    let Outcome { nodal, tables, .. } = result;
    for &(row, _, block) in &blocks.pairs {
        if !rows.contains(&row) {
            continue;
        }
        let component = row - rows.start;
        let (block, first): &(Block, usize) = &blocks.blocks[block];
        let numbers: Vec<ValueId> = (0..block.numbers(dim))
            .map(|i| s.b.load(coefficients, Index::from(first + i)))
            .collect();
        let mut next = numbers.iter().copied();
        let pulled = blocks.from_numbers(block, || next.next().expect("numbers should suffice"));
        for node in 0..tables.nodes {
            let entry = point.times(tables.nodes).plus(node);
            let value = s.b.load_table(tables.value, entry.clone());
            let gradient: Vec<ValueId> =
                (0..dim).map(|a| derivative(s, tables, a, node, &entry)).collect();
            let mut tested = Tested::default();
            crate::lower::stored::act(&mut s.b, &pulled, Some(value), &gradient, &mut tested);
            let place = Index::from(component * tables.nodes + node);
            let mut sum = s.b.load(*nodal, place.clone());
            if let Some(flux) = tested.value {
                sum = s.b.fma(value, flux, sum);
            }
            for (&g, &flux) in gradient.iter().zip(&tested.gradient) {
                sum = s.b.fma(g, flux, sum);
            }
            s.b.store(*nodal, place, sum);
        }
    }
}
