//! Integrals over facets of tensor cells, one facet per lane.
//!
//! Cells are rotated so that the facet is ξ₀ = 0. On it, with the nodes u_ijk of a line along ξ₀ at i,
//!
//! ```text
//! face_jk = Σ_i φ_i(0) u_ijk       slope_jk = Σ_i φ_i'(0) u_ijk
//! u = (B ⊗ B) face      ∂₁u = (D ⊗ B) face      ∂₂u = (B ⊗ D) face      ∂₀u = (B ⊗ B) slope
//! ```
//!
//! and second derivatives likewise from bend_jk = Σ_i φ_i''(0) u_ijk, slope and face,
//!
//! with the values B and the derivatives D of the nodes of a line at the points; the transpose maps tested values back
//! to the nodes. Continuous elements have nodes on the facet: φ_i(0) = δ_i0, so that face_jk = u_0jk. In the larger of two
//! cells the points of a line are its lower half. Between cells B is often 1, of nodes at the points: then face and slope
//! are values at the points, and D alone is applied. Simplices use the dense tables of `simplex`.

mod diagonal;
mod straight;
mod transfer;

use straight::{StraightMap, columns_at, joined};

use super::column::Column;
use super::prefetch;
use crate::element::{Element, LinePoints};
use crate::kir::build::Builder;
use crate::kir::{Index, LocalId, ValueId};
use crate::lower::contract::{Matrix, contract};
use crate::lower::facet_line::{FacetLine, times, weighted};
use crate::lower::facts::{Quantity, QuantitySource};
use crate::lower::geometry::{affine_map, geometry_at, position, with_outside};
use crate::lower::hanging::Nodes;
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::point::at_point;
use crate::lower::restrict::NodalLocation;
use crate::lower::stored::TestFactors;
use crate::plan::{Scatter, Task};
use fem_dsl::point::{Part, Side};
use std::ops::Range;

/// Values at the points of a facet, component by component.
struct FacetValues {
    value: Option<LocalId>,
    /// Derivatives in all reference directions.
    gradient: Vec<LocalId>,
    /// Second derivatives, a ≤ b in ascending order.
    second: Vec<LocalId>,
}

/// The result of a facet kernel for one field.
struct ElementVector {
    field: usize,
    /// Its components among those of all fields.
    rows: Range<usize>,
    side: Side,
    line: FacetLine,
    parts: FacetValues,
    /// The diagonal, node by node.
    diagonal: Option<LocalId>,
}

struct Facet {
    dim: usize,
    points: LinePoints,
    q: usize,
}

pub(super) fn lower(s: &mut Lowering<'_>) {
    let facet = Facet::new(s);
    let mut traces = Vec::new();
    for quantity in &s.facts.quantities {
        let line = facet.line(s, quantity.element, s.facts.side_of(quantity.source));
        let nodal = NodalLocation::of(s, quantity);
        s.b.comment(&format!("gather {}", quantity.name));
        if nodal.cells().is_some() {
            traces.push(facet.gather_cell(s, quantity, line, nodal));
            continue;
        }
        let first = facet.first(s, &line, quantity.source);
        traces.push(
            facet.gather(s, quantity, line, &mut |b, node, c| nodal.gather(b, &(&first + node), c)),
        );
    }
    if s.facts.sides() > 1 {
        prefetch::cells(s);
    }
    s.gathered();
    let (mut inputs, mut maps) = (Vec::new(), Vec::new());
    for (index, trace) in traces.into_iter().enumerate() {
        match StraightMap::new(s, index, &trace, &maps) {
            Some(map) => {
                inputs.push(FacetValues { value: None, gradient: Vec::new(), second: Vec::new() });
                maps.push(map);
            }
            None => inputs.push(facet.interpolate(s, index, trace)),
        }
    }
    let outcomes = facet.outcomes(s);
    s.b.comment("points");
    if matches!(s.facts.plan.task, Task::Diagonal | Task::Matrix) {
        let all = s.facts.plan.task == Task::Matrix;
        s.coefficients(if all { s.facts.points() } else { 1 });
    }
    facet.each_point(s, (&inputs, &maps), &outcomes);
    s.b.stage(s.facts.plan.block);
    let stores = s.facts.plan.scatter == Scatter::Owner;
    for outcome in &outcomes {
        let nodal = NodalLocation::result(s, outcome.field);
        if nodal.cells().is_some() {
            facet.integrate_cell(s, outcome, nodal);
            continue;
        }
        let first = facet.first_node(s, &outcome.line);
        facet.integrate(s, outcome, stores, &mut |b, node, c, value| {
            nodal.scatter(b, &(&first + node), c, value);
        });
    }
}

/// Computes the columns of the element matrix that belong to one component.
pub(super) fn columns(s: &mut Lowering<'_>, column: &Column<'_>) {
    let facet = Facet::new(s);
    let quantity = s.facts.quantities[0].clone();
    let side = s.facts.side_of(quantity.source);
    let line = |s: &Lowering<'_>| facet.line(s, quantity.element, side);
    let own = line(s);
    let (nodes, mark) = (own.n * facet.plane(&own), s.b.mark());
    let unit = s.b.local("unit", nodes);
    repeat(s, "column", nodes, false, |s, j| {
        s.b.release(mark + 1);
        s.b.clear(unit, 0, nodes);
        let one = s.b.constant(1.0);
        s.b.store(unit, j.clone(), one);
        let trace =
            facet.gather(s, &quantity, line(s), &mut |b, node, _| b.load(unit, node.clone()));
        let inputs = [facet.interpolate(s, 0, trace)];
        let outcomes = facet.outcomes(s);
        facet.each_point(s, (&inputs, &[]), &outcomes);
        for outcome in &outcomes {
            let first = outcome.rows.start;
            facet.integrate(s, outcome, column.stores, &mut |b, i, c, value| {
                column.put(b, first + c, (i, &j), value);
            });
        }
    });
}

/// The values of a quantity on the facet, and its first and second derivatives along ξ₀ if they are needed.
struct Trace {
    line: FacetLine,
    face: LocalId,
    slope: Option<LocalId>,
    bend: Option<LocalId>,
}

impl Facet {
    fn new(s: &Lowering<'_>) -> Self {
        let points = s.facts.elements.rule.line().expect("a tensor cell should have a tensor rule");
        Self { dim: s.facts.form.dim, points, q: points.count() }
    }

    /// Returns the tables of an element in the cell on a side.
    fn line(&self, s: &Lowering<'_>, element: Element, side: Side) -> FacetLine {
        FacetLine::new(self.points, element, s.facts.plan.larger == Some(side))
    }

    /// Returns the first node of the batch among those of all.
    fn first_node(&self, s: &Lowering<'_>, line: &FacetLine) -> Index {
        Index::from(s.b.batch()).times(line.n * self.plane(line))
    }

    /// Returns the same for a source: the nodes of the maps of both sides follow one another.
    fn first(&self, s: &Lowering<'_>, line: &FacetLine, source: QuantitySource) -> Index {
        let nodes = line.n * self.plane(line);
        match source {
            QuantitySource::Position(side) => {
                let sides = Index::from(s.b.batch()).times(s.facts.sides() * nodes);
                sides.plus(side as usize * nodes)
            }
            _ => self.first_node(s, line),
        }
    }

    fn outcomes(&self, s: &mut Lowering<'_>) -> Vec<ElementVector> {
        let written = s.facts.written_rows().into_iter();
        written.map(|(field, rows)| self.outcome(s, field, rows)).collect()
    }

    /// Evaluates the point function at all points.
    fn each_point(
        &self,
        s: &mut Lowering<'_>,
        (inputs, maps): (&[FacetValues], &[StraightMap]),
        outcomes: &[ElementVector],
    ) {
        let outer = if self.dim == 3 { self.q } else { 1 };
        repeat(s, "z", outer, false, |s, z| {
            let layers: Vec<StraightMap> =
                maps.iter().map(|map| map.layer(s, self.points, &z)).collect();
            repeat(s, "y", self.q, false, |s, y| {
                let point = &z.times(self.q) + &y;
                let maps = layers.iter().map(|map| map.layer_point(s, self.points, &y)).collect();
                self.at(s, (inputs, joined(maps)), outcomes, &point, [&y, &z]);
            });
        });
    }

    /// Returns q^(d−1).
    fn count(&self) -> usize {
        self.q.pow(self.dim as u32 - 1)
    }

    /// Returns n^(d−1).
    fn plane(&self, line: &FacetLine) -> usize {
        line.n.pow(self.dim as u32 - 1)
    }

    /// Returns the trace of a quantity; `value` supplies the values at the nodes of the cell.
    fn gather(
        &self,
        s: &mut Lowering<'_>,
        quantity: &Quantity,
        line: FacetLine,
        value: &mut dyn FnMut(&mut Builder, &Index, usize) -> ValueId,
    ) -> Trace {
        let (n, plane, components) = (line.n, self.plane(&line), quantity.components);
        let name = &quantity.name;
        let face = s.b.local(&format!("{name}_face"), components * plane);
        let slope =
            quantity.gradient.then(|| s.b.local(&format!("{name}_slope"), components * plane));
        let bend = quantity.second.then(|| s.b.local(&format!("{name}_bend"), components * plane));
        let resolved = s.facts.hangs(quantity.source, quantity.element).then(|| {
            let nodes = self.nodes(s, name, &line, (components, s.facts.side_of(quantity.source)));
            s.b.repeat("a", nodes.length, false, |b, a| {
                for c in 0..components {
                    let value = value(b, &a, c);
                    b.store(nodes.array, a.plus(c * nodes.length), value);
                }
            });
            nodes.resolve(s, false);
            nodes
        });
        s.b.repeat("a", plane, false, |b, a| {
            let start = a.times(n);
            for c in 0..components {
                let count = if slope.or(bend).is_some() { n } else { line.reach() };
                let value = |i: usize| match &resolved {
                    Some(nodes) => b.load(nodes.array, start.plus(c * nodes.length + i)),
                    None => value(b, &start.plus(i), c),
                };
                let values: Vec<ValueId> = (0..count).map(value).collect();
                let trace = weighted(b, &line.ends, &values);
                b.store(face, a.plus(c * plane), trace);
                if let Some(slope) = slope {
                    let derivative = weighted(b, &line.slopes, &values);
                    b.store(slope, a.plus(c * plane), derivative);
                }
                if let Some(bend) = bend {
                    let derivative = weighted(b, &line.bends, &values);
                    b.store(bend, a.plus(c * plane), derivative);
                }
            }
        });
        Trace { line, face, slope, bend }
    }

    /// Allocates a private array of the nodes of a cell, which may hang.
    fn nodes(
        &self,
        s: &mut Lowering<'_>,
        name: &str,
        line: &FacetLine,
        (components, side): (usize, Side),
    ) -> Nodes {
        let (n, length) = (line.n, line.n * self.plane(line));
        let array = s.b.local(&format!("{name}_nodes"), components * length);
        let strides = [1, n, n * n];
        let lines = [line.nodes.into(); 3];
        Nodes { array, lines, components, dim: self.dim, strides, length, side }
    }

    fn interpolate(&self, s: &mut Lowering<'_>, index: usize, trace: Trace) -> FacetValues {
        let Trace { line, face, slope, bend } = trace;
        let quantity = &s.facts.quantities[index];
        let (name, components) = (&quantity.name, quantity.components);
        s.b.comment(&format!("interpolate {name}"));
        let room = |s: &mut Lowering<'_>, what: &str| {
            s.b.local(&format!("{name}_{what}"), components * self.count())
        };
        let mut parts = FacetValues { value: None, gradient: Vec::new(), second: Vec::new() };
        for (a, c) in axis_pairs(if quantity.second { self.dim } else { 0 }) {
            let from = [Some(face), slope, bend][usize::from(a == 0) + usize::from(c == 0)];
            let from = from.expect("second derivatives should come with first ones on facets");
            let to = room(s, &format!("d{a}{c}"));
            let part = Part::Second(a, c);
            let matrix = |along: usize| line.of_order(part.along(along + 1));
            self.product(s, components, (from, to), matrix, false);
            parts.second.push(to);
        }
        if self.is_at_points(s, &line) {
            parts.value = quantity.value.then_some(face);
            let Some(slope) = slope else { return parts };
            parts.gradient.push(slope);
            for axis in 1..self.dim {
                let to = room(s, ["x", "y", "z"][axis]);
                self.along(s, components, (face, to), axis - 1, &line.derivatives, false);
                parts.gradient.push(to);
            }
            return parts;
        }
        if quantity.value {
            let value = room(s, "q");
            self.product(s, components, (face, value), |_| &line.values, false);
            parts.value = Some(value);
        }
        let Some(slope) = slope else { return parts };
        for axis in 0..self.dim {
            let to = room(s, ["x", "y", "z"][axis]);
            let from = if axis == 0 { slope } else { face };
            let matrix = |along: usize| {
                if along + 1 == axis { &line.derivatives } else { &line.values }
            };
            self.product(s, components, (from, to), matrix, false);
            parts.gradient.push(to);
        }
        parts
    }

    /// Returns whether the nodes of a line are its points, between cells.
    fn is_at_points(&self, s: &Lowering<'_>, line: &FacetLine) -> bool {
        s.facts.sides() > 1 && line.values.is_identity()
    }

    /// Applies a square matrix along one axis of the facet.
    fn along(
        &self,
        s: &mut Lowering<'_>,
        components: usize,
        (from, to): (LocalId, LocalId),
        axis: usize,
        matrix: &Matrix,
        add: bool,
    ) {
        let (n, even_odd) = (matrix.rows, s.facts.plan.even_odd);
        let (stride, between) = if axis == 0 { (1, n) } else { (n, 1) };
        let lines = if self.dim == 3 { n } else { 1 };
        for c in 0..components {
            repeat(s, "l", lines, false, |s, l| {
                let start = l.times(between).plus(c * n * lines);
                let input = s.b.load_line(from, &start, stride, n);
                let onto = add.then(|| s.b.load_line(to, &start, stride, n));
                let output = contract(&mut s.b, matrix, &input, onto.as_deref(), even_odd);
                s.b.store_line(to, &start, stride, &output);
            });
        }
    }

    /// Applies a matrix along each axis of the facet; `matrix` selects that of an axis.
    fn product<'m>(
        &self,
        s: &mut Lowering<'_>,
        components: usize,
        (from, to): (LocalId, LocalId),
        matrix: impl Fn(usize) -> &'m Matrix,
        add: bool,
    ) {
        let even_odd = s.facts.plan.even_odd;
        let first = matrix(0);
        let (rows, columns) = (first.rows, first.columns);
        if self.dim == 2 {
            for c in 0..components {
                let (start, end) = (Index::from(c * columns), Index::from(c * rows));
                let input = s.b.load_line(from, &start, 1, columns);
                let onto = add.then(|| s.b.load_line(to, &end, 1, rows));
                let output = contract(&mut s.b, first, &input, onto.as_deref(), even_odd);
                s.b.store_line(to, &end, 1, &output);
            }
            return;
        }
        let second = matrix(1);
        let half = s.b.local("half", rows * columns);
        for c in 0..components {
            let (start, end) = (c * columns * columns, c * rows * rows);
            repeat(s, "j", columns, false, |s, j| {
                let input = s.b.load_line(from, &j.times(columns).plus(start), 1, columns);
                let output = contract(&mut s.b, first, &input, None, even_odd);
                s.b.store_line(half, &j.times(rows), 1, &output);
            });
            repeat(s, "i", rows, false, |s, i| {
                let input = s.b.load_line(half, &i, rows, columns);
                let place = i.plus(end);
                let onto = add.then(|| s.b.load_line(to, &place, rows, rows));
                let output = contract(&mut s.b, second, &input, onto.as_deref(), even_odd);
                s.b.store_line(to, &place, rows, &output);
            });
        }
    }

    fn outcome(&self, s: &mut Lowering<'_>, field: usize, rows: Range<usize>) -> ElementVector {
        let side = s.facts.side_of(QuantitySource::Direction(field));
        let line = self.line(s, s.facts.elements.fields[field], side);
        let (components, nodes) = (rows.len(), line.n * self.plane(&line));
        let mut parts = FacetValues { value: None, gradient: Vec::new(), second: Vec::new() };
        if s.facts.plan.task == Task::Diagonal {
            let name = s.facts.of_field("r_nodal", field);
            // Hanging nodes are summed after the others.
            let sums = if s.facts.result_hangs(field) { 2 } else { 1 };
            let diagonal = s.b.local(&name, sums * components * nodes);
            s.b.clear(diagonal, 0, sums * components * nodes);
            return ElementVector { field, rows, side, line, parts, diagonal: Some(diagonal) };
        }
        let of_rows: Vec<(bool, bool)> = rows.clone().map(|row| s.facts.tested(row)).collect();
        let any = |part: fn(&(bool, bool)) -> bool| of_rows.iter().any(part);
        // Between cells, what every point stores needs no zeros.
        let pairs = s.facts.sides() > 1;
        let all = |part: fn(&(bool, bool)) -> bool| pairs && of_rows.iter().all(part);
        let room = |s: &mut Lowering<'_>, what: &str, is_stored: bool| {
            let name = s.facts.of_field(what, field);
            let local = s.b.local(&name, components * self.count());
            if !is_stored {
                s.b.clear(local, 0, components * self.count());
            }
            local
        };
        parts.value = any(|own| own.0).then(|| room(s, "r_q", all(|own| own.0)));
        if any(|own| own.1) {
            let names = ["r_x", "r_y", "r_z"];
            parts.gradient =
                names[..self.dim].iter().map(|w| room(s, w, all(|own| own.1))).collect();
        }
        if rows.clone().any(|row| s.facts.tests_second(row)) {
            let parts_of = axis_pairs(self.dim).into_iter();
            parts.second = parts_of.map(|(a, b)| room(s, &format!("r_d{a}{b}"), false)).collect();
        }
        ElementVector { field, rows, side, line, parts, diagonal: None }
    }

    /// Evaluates the point function at one point.
    fn at(
        &self,
        s: &mut Lowering<'_>,
        (inputs, maps): (&[FacetValues], Vec<StraightMap>),
        outcomes: &[ElementVector],
        point: &Index,
        line: [&Index; 2],
    ) {
        let value = |s: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
            if let Some(known) = columns_at(&maps, quantity, c, part) {
                return known;
            }
            let parts = &inputs[quantity];
            let local = match part {
                Part::Value => parts.value.expect("a value should be evaluated where it is needed"),
                Part::Derivative(axis) => parts.gradient[axis],
                Part::Second(a, b) => {
                    let at = axis_pairs(self.dim).iter().position(|&pair| pair == (a, b));
                    parts.second[at.expect("a part of the cell's dimension")]
                }
                Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
            };
            s.b.load(local, point.plus(c * self.count()))
        };
        let at = geometry_at(s, point, affine_map, |s, i, part| {
            let x = position(s);
            value(s, x, i, part)
        });
        let at = with_outside(s, at, &value);
        let mut evaluate = |s: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
            value(s, quantity, c, part)
        };
        let tested = at_point(s, &at, point, &mut evaluate);
        for outcome in outcomes {
            match outcome.diagonal {
                Some(nodal) => {
                    self.diagonal(s, outcome, nodal, line);
                    if s.facts.result_hangs(outcome.field) {
                        self.hanging_diagonal(s, outcome, nodal, line);
                    }
                }
                None => self.keep(s, outcome, &tested[outcome.rows.clone()], point),
            }
        }
    }

    /// Stores the tested values of a point.
    fn keep(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        tested: &[TestFactors],
        point: &Index,
    ) {
        for (c, tested) in tested.iter().enumerate() {
            let place = point.plus(c * self.count());
            if let (Some(local), Some(value)) = (outcome.parts.value, tested.value) {
                s.b.store(local, place.clone(), value);
            }
            let FacetValues { gradient, second, .. } = &outcome.parts;
            let gradient = gradient.iter().zip(&tested.gradient);
            for (&local, &flux) in gradient.chain(second.iter().zip(&tested.second)) {
                s.b.store(local, place.clone(), flux);
            }
        }
    }

    /// Integrates back to values, slopes and second derivatives along ξ₀ on the facet.
    fn onto_facet(&self, s: &mut Lowering<'_>, outcome: &ElementVector) -> [Option<LocalId>; 3] {
        let ElementVector { field, rows, line, parts, diagonal, .. } = outcome;
        let (components, plane) = (rows.len(), self.plane(line));
        let (mut face, mut slope, mut bend) = (None, None, None);
        if diagonal.is_none() && self.is_at_points(s, line) {
            s.comment_on("integrate", *field);
            let derivatives = line.derivatives.transposed();
            (face, slope) = (parts.value, parts.gradient.first().copied());
            for (axis, &flux) in parts.gradient.iter().enumerate().skip(1) {
                let onto = face.unwrap_or_else(|| {
                    let name = s.facts.of_field("r_face", *field);
                    s.b.local(&name, components * plane)
                });
                let add = face.is_some();
                self.along(s, components, (flux, onto), axis - 1, &derivatives, add);
                face = Some(onto);
            }
        } else if diagonal.is_none() {
            s.comment_on("integrate", *field);
            let (values, derivatives) = (line.values.transposed(), line.derivatives.transposed());
            let room = |s: &mut Lowering<'_>, what: &str| {
                let name = s.facts.of_field(what, *field);
                s.b.local(&name, components * plane)
            };
            let onto = room(s, "r_face");
            let mut any = false;
            if let Some(value) = parts.value {
                self.product(s, components, (value, onto), |_| &values, false);
                any = true;
            }
            for (axis, &flux) in parts.gradient.iter().enumerate() {
                let matrix = |along: usize| if along + 1 == axis { &derivatives } else { &values };
                if axis == 0 {
                    let to = room(s, "r_slope");
                    self.product(s, components, (flux, to), matrix, false);
                    slope = Some(to);
                } else {
                    self.product(s, components, (flux, onto), matrix, any);
                    any = true;
                }
            }
            // A field that is constant in each cell may have no test function.
            face = any.then_some(onto);
        }
        self.integrate_second(s, outcome, [&mut face, &mut slope, &mut bend]);
        [face, slope, bend]
    }

    /// Integrates back to the nodes and passes their results to `put`: of all nodes if each has its own entry
    /// (`stores`).
    fn integrate(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        stores: bool,
        put: &mut dyn FnMut(&mut Builder, &Index, usize, ValueId),
    ) {
        let ElementVector { field, rows, side, line, diagonal, .. } = outcome;
        let (components, plane, n) = (rows.len(), self.plane(line), line.n);
        let [face, slope, bend] = self.onto_facet(s, outcome);
        let hangs = s.facts.result_hangs(*field);
        if let Some(array) = diagonal.filter(|_| hangs) {
            self.take_hanging(s, outcome, array);
        }
        let resolved = (hangs && diagonal.is_none()).then(|| {
            let name = s.facts.of_field("r", *field);
            self.nodes(s, &name, line, (components, *side))
        });
        s.comment_on("scatter", *field);
        // Without gradients only nodes with a value on the facet have contributions.
        let all = slope.or(bend).is_some() || diagonal.is_some() || stores || hangs;
        let reach = if all { n } else { line.reach() };
        s.b.repeat("a", plane, false, |b, a| {
            for i in 0..reach {
                let node = a.times(n).plus(i);
                for c in 0..components {
                    let own = a.plus(c * plane);
                    let mut value = match (face, diagonal) {
                        (_, Some(all)) => b.load(*all, a.times(n).plus(c * n * plane + i)),
                        (Some(face), _) if line.ends[i] != 0.0 => {
                            let flux = b.load(face, own.clone());
                            times(b, line.ends[i], flux)
                        }
                        _ => b.constant(0.0),
                    };
                    for (factors, local) in [(&line.slopes, slope), (&line.bends, bend)] {
                        let Some(local) = local else { continue };
                        let (factor, flux) = (b.constant(factors[i]), b.load(local, own.clone()));
                        value = b.fma(factor, flux, value);
                    }
                    match resolved {
                        Some(nodes) => {
                            let place = a.times(n).plus(c * nodes.length + i);
                            b.store(nodes.array, place, value);
                        }
                        None => put(b, &node, c, value),
                    }
                }
            }
        });
        let Some(nodes) = resolved else { return };
        nodes.resolve(s, true);
        s.b.repeat("a", nodes.length, false, |b, a| {
            for c in 0..components {
                let value = b.load(nodes.array, a.plus(c * nodes.length));
                put(b, &a, c, value);
            }
        });
    }

    /// Integrates what is tested with second derivatives: onto the arrays of values, slopes and second derivatives along
    /// ξ₀ on the facet.
    fn integrate_second(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        [face, slope, bend]: [&mut Option<LocalId>; 3],
    ) {
        let ElementVector { field, rows, line, parts, .. } = outcome;
        let (components, plane) = (rows.len(), self.plane(line));
        for ((a, c), &flux) in axis_pairs(self.dim).into_iter().zip(&parts.second) {
            let order = usize::from(a == 0) + usize::from(c == 0);
            let (place, word) = match order {
                0 => (&mut *face, "r_face"),
                1 => (&mut *slope, "r_slope"),
                _ => (&mut *bend, "r_bend"),
            };
            let add = place.is_some();
            let to = *place.get_or_insert_with(|| {
                let name = s.facts.of_field(word, *field);
                s.b.local(&name, components * plane)
            });
            let part = Part::Second(a, c);
            let matrices = [1, 2].map(|axis| line.of_order(part.along(axis)).transposed());
            self.product(s, components, (flux, to), |along| &matrices[along], add);
        }
    }
}

/// Returns the pairs a ≤ b of axes, in ascending order.
fn axis_pairs(dim: usize) -> Vec<(usize, usize)> {
    (0..dim).flat_map(|a| (a..dim).map(move |b| (a, b))).collect()
}
