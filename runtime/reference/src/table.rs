//! Full tabulation with scales: (scalar element, Rule) → φ_i(x_q), ∂φ_i/∂ξ_j(x_q) and ∂²φ_i/∂ξ_j∂ξ_k(x_q) as
//! [`BoundedValue`].
//!
//! On tensor cells a kernel may compute these numbers in other ways: by even–odd decomposition, which mixes nodes i and
//! n−1−i, and by the collocation derivative, B' = D B. The scale per direction is therefore |B_i| + |B_{n−1−i}|, and
//! Σ_q' |D_qq'| (|B_q'i| + |B_q',n−1−i|) for a derivative.

use super::BoundedValue;
use super::pairs::{FacetAxis, Placement};
use fem_dsl::point::Part;
use kernels_gen::element::{
    Element, LineBasis, LinePoints, LineTable, Rule, tabulate, tabulate_rule, tabulate_seconds,
};

/// A basis tabulated at the points of a rule.
pub(super) struct BasisTable {
    nodes: usize,
    dim: usize,
    values: Vec<BoundedValue>,
    gradients: Vec<BoundedValue>,
    /// `[pair of axes][point * nodes + node]`; empty if they are not needed.
    seconds: Vec<Vec<BoundedValue>>,
}

impl BasisTable {
    /// Tabulates at the points of a rule; `second` derivatives only if they are needed.
    pub(super) fn new(element: impl Into<Element>, rule: Rule, second: bool) -> Self {
        let element = element.into();
        let plain = tabulate_rule(element, rule);
        let mut table = Self {
            nodes: plain.nodes,
            dim: plain.dim,
            values: plain.values.iter().map(|&v| BoundedValue::new(v)).collect(),
            gradients: plain.gradients.iter().map(|&v| BoundedValue::new(v)).collect(),
            seconds: match second && element.lagrange().is_some() {
                true => tabulate_seconds(element, &rule.points())
                    .into_iter()
                    .map(|of| of.into_iter().map(BoundedValue::new).collect())
                    .collect(),
                false => Vec::new(),
            },
        };
        if let (Some(lines), Some(points)) = (element.lines(), rule.line()) {
            let along = |&line: &LineBasis| LineScales::new(line, points);
            table.widen(&lines[..plain.dim].iter().map(along).collect::<Vec<_>>());
        }
        table
    }

    /// Tabulates at the points of a facet: those with ξ₀ = 0 after rotation of the cell to this facet.
    pub(super) fn on_facet(
        element: impl Into<Element>,
        rule: Rule,
        facet: usize,
        second: bool,
    ) -> Self {
        let dim = rule.cell().dim();
        // Facet points are numbered along the other axes.
        let along = |axis: usize| (axis != facet / 2).then(|| axis - usize::from(axis > facet / 2));
        let axes = (0..dim).map(|axis| match along(axis) {
            Some(direction) => FacetAxis::Along { direction, from: 0.0, step: 1.0 },
            None => FacetAxis::Across { end: facet % 2 },
        });
        Self::at((element.into(), second), rule, &facet_points(rule, facet), axes)
    }

    /// Tabulates a cell at the points of a facet of another one.
    pub(super) fn across(
        element: impl Into<Element>,
        rule: Rule,
        placement: &Placement,
        second: bool,
    ) -> Self {
        let points = facet_points(rule, placement.from()).into_iter();
        let points: Vec<[f64; 3]> = points.map(|point| placement.image(rule, point)).collect();
        let axes = (0..rule.cell().dim()).map(|axis| placement.along(rule.cell(), axis));
        Self::at((element.into(), second), rule, &points, axes)
    }

    /// Tabulates at points of a facet, which lie so along the axes of a tensor cell.
    fn at(
        (element, second): (Element, bool),
        rule: Rule,
        points: &[[f64; 3]],
        axes: impl Iterator<Item = FacetAxis>,
    ) -> Self {
        let plain = tabulate(element, points);
        // Functions of nodes off the facet vanish up to the rounding of sums as large as those of other nodes.
        let largest = |of: &[f64]| of.iter().fold(0.0, |most: f64, entry| most.max(entry.abs()));
        let wide = |of: &[f64]| {
            let least = if element.cell().is_tensor() { 0.0 } else { largest(of) };
            of.iter().map(|&entry| BoundedValue::with_scale(entry, least)).collect()
        };
        let mut table = Self {
            nodes: plain.nodes,
            dim: plain.dim,
            values: wide(&plain.values),
            gradients: wide(&plain.gradients),
            seconds: match second && element.lagrange().is_some() {
                true => tabulate_seconds(element, points).iter().map(|of| wide(of)).collect(),
                false => Vec::new(),
            },
        };
        if let (Some(lines), Some(points)) = (element.lines(), rule.line()) {
            let own = axes.zip(lines);
            let lines = own.map(|(axis, line)| LineScales::on_facet(line, points, axis)).collect();
            table.widen_on_facet(lines);
        }
        table
    }

    /// Returns the value φ_i(x_q), or a derivative along reference axes.
    #[inline]
    pub(super) fn entry(&self, q: usize, i: usize, part: Part) -> BoundedValue {
        match part {
            Part::Value => self.values[q * self.nodes + i],
            Part::Derivative(axis) => self.gradients[(q * self.nodes + i) * self.dim + axis],
            Part::Second(a, b) => {
                // Pairs a ≤ b in ascending order.
                let pair = a * self.dim + b - a * (a + 1) / 2;
                self.seconds[pair][q * self.nodes + i]
            }
            Part::Exterior(_) => unreachable!("Lagrange functions have no exterior derivative"),
        }
    }

    /// Returns the number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Sets the scale of every entry to the product over directions.
    fn widen(&mut self, lines: &[LineScales]) {
        let (nodes, dim) = (self.nodes, self.dim);
        for (at, value) in self.values.iter_mut().enumerate() {
            let (q, i) = (at / nodes, at % nodes);
            let scale = |part| product(lines, q, i, part);
            *value = BoundedValue::with_scale(value.value, scale(Part::Value));
            for axis in 0..dim {
                let gradient = &mut self.gradients[at * dim + axis];
                *gradient = BoundedValue::with_scale(gradient.value, scale(Part::Derivative(axis)));
            }
            for (of, part) in self.seconds.iter_mut().zip(Part::of_order(2, dim)) {
                of[at] = BoundedValue::with_scale(of[at].value, scale(part));
            }
        }
    }
}

impl BasisTable {
    /// Does the same on a facet, whose points are numbered along fewer directions.
    fn widen_on_facet(&mut self, lines: Vec<(LineScales, Option<usize>)>) {
        let (count, dim) = (self.nodes, self.dim);
        let digit = |number: usize, base: usize, at: usize| number / base.pow(at as u32) % base;
        let scale = |q: usize, i: usize, part: Part| -> f64 {
            let mut rest = i;
            let factor = |(axis, (line, direction)): (usize, &(LineScales, Option<usize>))| {
                let point = direction.map_or(0, |direction| digit(q, line.points, direction));
                let at = point * line.nodes + rest % line.nodes;
                rest /= line.nodes;
                line.of_order(part.along(axis))[at]
            };
            lines.iter().enumerate().map(factor).product()
        };
        for (at, value) in self.values.iter_mut().enumerate() {
            let (q, i) = (at / count, at % count);
            *value = BoundedValue::with_scale(value.value, scale(q, i, Part::Value));
            for along in 0..dim {
                let gradient = &mut self.gradients[at * dim + along];
                let scale = scale(q, i, Part::Derivative(along));
                *gradient = BoundedValue::with_scale(gradient.value, scale);
            }
            for (of, part) in self.seconds.iter_mut().zip(Part::of_order(2, dim)) {
                of[at] = BoundedValue::with_scale(of[at].value, scale(q, i, part));
            }
        }
    }
}

/// Returns the points of a facet in the coordinates of its cell.
fn facet_points(rule: Rule, facet: usize) -> Vec<[f64; 3]> {
    let (cell, dim) = (rule.cell(), rule.cell().dim());
    let turned = |[_, y, z]: [f64; 3]| -> [f64; 3] {
        if cell.is_tensor() {
            let mut rest = [y, z].into_iter();
            let mut point = [0.0; 3];
            for (axis, entry) in point[..dim].iter_mut().enumerate() {
                let end = (facet % 2) as f64;
                *entry = if axis == facet / 2 { end } else { rest.next().unwrap_or(0.0) };
            }
            return point;
        }
        let mut weights = [1.0 - y - z, 0.0, y, z];
        weights.swap(1, facet);
        [weights[1], weights[2], weights[3]]
    };
    rule.on_facet().into_iter().map(|(point, _)| turned(point)).collect()
}

/// Scales of the table of an interval.
struct LineScales {
    points: usize,
    nodes: usize,
    values: Vec<f64>,
    derivatives: Vec<f64>,
    seconds: Vec<f64>,
}

impl LineScales {
    /// Returns the scales of values or of derivatives, by their order.
    fn of_order(&self, order: usize) -> &[f64] {
        [&self.values, &self.derivatives, &self.seconds][order]
    }

    fn new(line: LineBasis, points: LinePoints) -> Self {
        Self::of(&line.table(points), points, 1.0)
    }

    /// Returns the scales along an axis, and the direction of the facet in which points differ along it.
    fn on_facet(line: LineBasis, points: LinePoints, axis: FacetAxis) -> (Self, Option<usize>) {
        match axis {
            FacetAxis::Across { end } => {
                // Across the facet every node has one factor.
                let table = line.table_at(&[end as f64]);
                let sizes = |of: &[f64]| of.iter().map(|entry| entry.abs()).collect();
                let (values, derivatives) = (sizes(&table.values), sizes(&table.derivatives));
                let seconds = sizes(&table.seconds);
                (Self { points: 1, nodes: table.nodes, values, derivatives, seconds }, None)
            }
            FacetAxis::Along { direction, from, step } => {
                let places: Vec<f64> = points.points().iter().map(|s| from + step * s).collect();
                let table = line.table_at(&places);
                (Self::of(&table, points, step.abs()), Some(direction))
            }
        }
    }

    /// Returns the scales of a table at points of a family, or at their images in an interval of another length.
    fn of(table: &LineTable, points: LinePoints, length: f64) -> Self {
        let collocation = LineTable::new(points, points);
        let (q, n) = (table.points, table.nodes);
        let folded = |values: &[f64], p: usize, i: usize| {
            values[p * n + i].abs() + values[p * n + n - 1 - i].abs()
        };
        let value = |at: usize| folded(&table.values, at / n, at % n);
        let derivative = |at: usize| {
            let (p, i) = (at / n, at % n);
            let through: f64 = (0..q)
                .map(|r| collocation.derivative(p, r).abs() / length * folded(&table.values, r, i))
                .sum();
            through.max(folded(&table.derivatives, p, i))
        };
        Self {
            points: q,
            nodes: n,
            values: (0..q * n).map(value).collect(),
            derivatives: (0..q * n).map(derivative).collect(),
            seconds: (0..q * n).map(|at| folded(&table.seconds, at / n, at % n)).collect(),
        }
    }
}

/// Returns the scale of function `i` at point `q`, the product over directions.
fn product(lines: &[LineScales], q: usize, i: usize, part: Part) -> f64 {
    let (mut point, mut function) = (q, i);
    let factor = |(axis, line): (usize, &LineScales)| {
        let at = point % line.points * line.nodes + function % line.nodes;
        (point, function) = (point / line.points, function / line.nodes);
        line.of_order(part.along(axis))[at]
    };
    lines.iter().enumerate().map(factor).product()
}
