//! Suitability of an explicit quadrature for a form: (`PointForm`, `Elements`, D) → remarks, or the reason for its
//! rejection.
//!
//! ```text
//! too few points    A = Σ_q w_q Bᵀ(x_q) G B(x_q), the Jacobian on the reference cell with a constant G, has a smaller
//!                   rank than the exact one: noted, with the least D that keeps the rank; the mesh and its conditions
//!                   decide whether the problem is regular
//! too low a degree  the rank is there, but a rule that is exact to degree r(test) + r(trial) would keep the order of
//!                   convergence: noted; r = k − 1 for a field that is differentiated, k for others, and on facets
//!                   one more in all
//! too many points   more than the exact integral of a product of [`FACTORS`] functions over a curved cell takes: noted
//!                   for this form's degree on cells of order 1, refused for the largest
//! ```
//!
//! The degree criterion is that of P. G. Ciarlet, "The Finite Element Method for Elliptic Problems" (1978), theorem
//! 4.1.6: 2k − 2 for operators of second order. For fields without derivatives and for traces, whose errors are
//! measured in L2, the same lemma of Bramble and Hilbert yields the degrees above.
//!
//! On tensor cells the tables of one direction decide. With n ≤ k points per direction, the product of the Legendre
//! polynomials of degree n in each direction is a function of the element. It is 0 at every point with all its first
//! derivatives, on facets ξ₀ = const of hexahedra, too. From n = k + 1 on the rule is exact for constant G.

use super::{Elements, is_derivative, largest_degree};
use crate::element::{
    Cell, Element, Rule, Tabulation, Whitney, WhitneyFamily, default_rule, tabulate,
    tabulate_components, tabulate_seconds,
};
use fem_dsl::eval::eval;
use fem_dsl::point::{Input, Integral, Part, PointForm, Region, Slot};

/// The largest number of factors of the form's degree for which a rule is exact: a cubic term with its test function.
/// For an integrand that is no polynomial, the discretisation error dominates long before.
pub const FACTORS: usize = 4;

/// Number of states at which coefficients are evaluated: some may vanish at one.
const STATES: u64 = 4;

/// Fraction of the largest pivot below which a pivot is a rounding error.
const ROUNDING: f64 = 1e-10;

/// The reason for rejecting an explicit quadrature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuadratureError {
    /// The form's operator loses rank.
    #[error(
        "quadrature {given} is too low for `{field}` of degree {degree} on a {cell}: none of its points sees some of \
         the functions that the form tells apart, and the conditions do not determine them on this mesh either"
    )]
    Low {
        /// D.
        given: usize,
        /// A field with undetected functions.
        field: String,
        /// The field's degree.
        degree: usize,
        /// The cell.
        cell: Cell,
        /// The least D that detects all functions.
        least: usize,
    },
    /// No element can use so many points.
    #[error("quadrature {given} is more than any element on a {cell} can use, which is {most}")]
    High {
        /// D.
        given: usize,
        /// The cell.
        cell: Cell,
        /// The largest D.
        most: usize,
    },
}

impl QuadratureError {
    /// Returns the bound, for a remark at the value.
    pub fn bound(&self) -> String {
        match self {
            Self::Low { least, .. } => format!("the least that will do is {least}"),
            Self::High { most, .. } => format!("the most that is of use is {most}"),
        }
    }

    /// Returns the remark if the quadrature is used nevertheless.
    pub fn note(&self) -> String {
        match self {
            Self::Low { given, field, degree, least, .. } => format!(
                "quadrature {given} integrates `{field}` of degree {degree} with reduced rank: in a cell alone some functions are not seen \
                 (hourglass modes); {least} sees all"
            ),
            Self::High { .. } => self.to_string(),
        }
    }

    /// Returns the suggested correction.
    pub fn remedy(&self) -> String {
        match self {
            Self::Low { least, .. } => format!("take {least} or more, or leave it out"),
            Self::High { most, .. } => format!("take {most} or less, or leave it out"),
        }
    }
}

/// Returns the largest useful D for fields of degree `k` on cells of geometry order `order`: it integrates a product of
/// [`FACTORS`] functions exactly over a curved cell.
pub const fn most_useful(cell: Cell, k: usize, order: usize) -> usize {
    let dim = cell.dim();
    // The degree of det J, per direction or in total.
    let map = if cell.is_tensor() { dim * order - 1 } else { dim * (order - 1) };
    FACTORS * k + map
}

/// Returns the largest supported D.
pub fn largest_quadrature(cell: Cell, order: usize) -> usize {
    most_useful(cell, largest_degree(cell), order.max(1))
}

/// Returns remarks on the explicit quadrature `given`, which `elements` use.
///
/// # Errors
///
/// It has too few points, or too many.
pub fn judge(
    form: &PointForm,
    elements: &Elements,
    order: usize,
    given: usize,
) -> Result<Vec<String>, QuadratureError> {
    let cell = elements.cell;
    let most = largest_quadrature(cell, order);
    if given > most {
        return Err(QuadratureError::High { given, cell, most });
    }
    let lost = if cell.is_tensor() {
        on_lines(form, elements, given)
    } else {
        on_simplices(form, elements, given)
    };
    if let Some((field, least)) = lost {
        let (name, element) = (&form.fields[field].name, elements.fields[field]);
        let (field, degree) = (name.clone(), element.degree());
        return Err(QuadratureError::Low { given, field, degree, cell, least });
    }
    let aux = elements.aux.iter().flatten();
    let degrees = elements.fields.iter().chain(aux).map(|element| element.degree());
    let k = degrees.max().unwrap_or(1).max(1);
    let useful = most_useful(cell, k, order.max(1));
    let wanted = keeps_order(form, elements);
    // On cells of higher order gradients are rational functions, for which more points always improve accuracy.
    Ok(if given > useful && order <= 1 {
        let points = elements.rule.count();
        vec![format!(
            "quadrature {given} takes {points} points a cell; degree {k} has no use for more than {useful}, \
             except where coefficients or data are no polynomials"
        )]
    } else if !cell.is_tensor() && given < wanted {
        vec![format!(
            "quadrature {given} costs order of convergence: with these elements it takes {wanted} to keep it"
        )]
    } else {
        Vec::new()
    })
}

/// Returns the entries of an integral's Jacobian, without those that are 0 because a field is constant in each cell.
fn pairs<'a>(
    elements: &'a Elements,
    integral: &'a Integral,
) -> impl Iterator<Item = (Slot, Slot)> + 'a {
    let entries = integral.jacobian.iter().map(|entry| (entry.test, entry.trial));
    entries.filter(|&(test, trial)| !elements.vanishes(test) && !elements.vanishes(trial))
}

/// Returns the field of highest degree with undetected functions and the least D, on tensor cells.
fn on_lines(form: &PointForm, elements: &Elements, given: usize) -> Option<(usize, usize)> {
    let entries = form.integrals.iter().flat_map(|integral| pairs(elements, integral));
    let fields = entries.flat_map(|(test, trial)| [test.field, trial.field]);
    let degree = |field: &usize| elements.fields[*field].degree();
    let field = fields.max_by_key(degree)?;
    let (points, k) = (given / 2 + 1, degree(&field));
    (points <= k).then_some((field, 2 * k))
}

/// Returns a field with undetected functions and the least D, on simplices.
fn on_simplices(form: &PointForm, elements: &Elements, given: usize) -> Option<(usize, usize)> {
    // Exact for constant coefficients.
    let exact = 2 * elements.largest();
    if given >= exact {
        return None;
    }
    let operators = operators(form, elements, exact);
    let field = operators.iter().find_map(|operator| operator.lost(elements, given))?;
    let keeps = |degree: &usize| {
        operators.iter().all(|operator| operator.lost(elements, *degree).is_none())
    };
    Some((field, (given + 1..exact).find(keeps).unwrap_or(exact)))
}

/// Returns the degree of exactness that keeps the order of convergence.
fn keeps_order(form: &PointForm, elements: &Elements) -> usize {
    let all = || form.integrals.iter().flat_map(|integral| pairs(elements, integral));
    let reach = |field: usize| {
        let differentiated = all().any(|(test, trial)| {
            [test, trial].iter().any(|slot| slot.field == field && is_derivative(slot.part))
        });
        elements.fields[field].degree().saturating_sub(usize::from(differentiated))
    };
    let reaches: Vec<usize> = (0..elements.fields.len()).map(reach).collect();
    let of_integral = |integral: &Integral| {
        let sums = pairs(elements, integral).map(|(a, b)| reaches[a.field] + reaches[b.field]);
        let wanted = sums.max()?;
        Some(match (&integral.region, elements.cell) {
            (Region::Cells | Region::CellsUnder(_), _) => wanted,
            // On an edge n points are exact to the odd degree 2n − 1.
            (Region::Facets(_) | Region::Interior(_), Cell::Triangle) => (wanted + 1) & !1,
            (Region::Facets(_) | Region::Interior(_), _) => wanted + 1,
        })
    };
    form.integrals.iter().filter_map(of_integral).max().unwrap_or(0)
}

/// An integral with sample values of its coefficients.
#[derive(Clone)]
struct Sample {
    on_facet: bool,
    entries: Vec<(Slot, Slot, f64)>,
}

/// The integrals of a cell: those over cells, or these and one over a facet.
struct Operator {
    samples: Vec<Sample>,
    exact: Matrix,
    rank: usize,
}

/// Returns the operator of every cell, and that of a cell with each kind of facet.
fn operators(form: &PointForm, elements: &Elements, exact: usize) -> Vec<Operator> {
    let (cells, facets): (Vec<&Integral>, Vec<&Integral>) =
        form.integrals.iter().partition(|integral| integral.region.is_of_cells());
    let beside = facets.iter().map(|&facet| cells.iter().copied().chain([facet]).collect());
    let sets = std::iter::once(cells.clone()).chain(beside);
    sets.map(|integrals: Vec<&Integral>| Operator::new(elements, &integrals, exact)).collect()
}

impl Operator {
    /// Uses the sample values with the highest exact rank.
    fn new(elements: &Elements, integrals: &[&Integral], exact: usize) -> Self {
        let made = (0..STATES).map(|state| {
            let sampled = integrals.iter().map(|integral| sample(elements, integral, state));
            let mut samples: Vec<Sample> = sampled.collect();
            balance(&mut samples);
            let exact = Matrix::new(elements, &samples, exact);
            let rank = exact.rank(0..exact.size);
            Self { samples, exact, rank }
        });
        let best = made.reduce(|best, next| if next.rank > best.rank { next } else { best });
        best.unwrap_or_else(|| Self {
            samples: Vec::new(),
            exact: Matrix::new(elements, &[], exact),
            rank: 0,
        })
    }

    /// Returns a field with functions that the rule for `degree` does not detect.
    fn lost(&self, elements: &Elements, degree: usize) -> Option<usize> {
        let matrix = Matrix::new(elements, &self.samples, degree);
        if matrix.rank(0..matrix.size) >= self.rank {
            return None;
        }
        let own = |&field: &usize| {
            let columns = columns(elements, field);
            matrix.rank(columns.clone()) < self.exact.rank(columns)
        };
        let largest = || (0..elements.fields.len()).max_by_key(|&f| elements.fields[f].degree());
        (0..elements.fields.len()).find(own).or_else(largest)
    }
}

/// Returns sample coefficients of an integral at a generic state.
fn sample(elements: &Elements, integral: &Integral, state: u64) -> Sample {
    // Multiples of the golden ratio, so that no two inputs are equal by accident; gradients stay small, so that I +
    // grad(u) is far from singular.
    let mut number = state * 1000;
    let mut next = || {
        number += 1;
        (number as f64 * 0.618_033_988_749_895).fract()
    };
    let values = eval(&integral.graph, |input| match input {
        Input::State(slot) if is_derivative(slot.part) => 0.2 * next() - 0.1,
        _ => 0.5 + next(),
    });
    let entries = integral.jacobian.iter().map(|entry| {
        let value = values[entry.value];
        // Without a value at this state, it has one elsewhere.
        let value = if value.is_finite() { value } else { 0.5 + next() };
        (entry.test, entry.trial, value)
    });
    let seen = |(test, trial, _): &(Slot, Slot, f64)| {
        !elements.vanishes(*test) && !elements.vanishes(*trial)
    };
    Sample { on_facet: !integral.region.is_of_cells(), entries: entries.filter(seen).collect() }
}

/// Scales values and derivatives of each field to equal size, as tests and as trials: a coefficient of 10¹¹ would hide
/// others in rounding errors.
fn balance(samples: &mut [Sample]) {
    const ROUNDS: usize = 8;
    let kind = |slot: Slot| 3 * slot.field + slot.part.order();
    let all = || samples.iter().flat_map(|sample| &sample.entries);
    let count = all().map(|(test, trial, _)| kind(*test).max(kind(*trial)) + 1).max().unwrap_or(0);
    let mut largest = vec![0.0_f64; count * count];
    for &(test, trial, value) in all() {
        let largest = &mut largest[kind(test) * count + kind(trial)];
        *largest = largest.max(value.abs());
    }
    let (mut rows, mut columns) = (vec![1.0; count], vec![1.0; count]);
    let inverse = |most: f64| if most > 0.0 { 1.0 / most } else { 1.0 };
    for _ in 0..ROUNDS {
        for (i, row) in rows.iter_mut().enumerate() {
            let entries = (0..count).map(|j| largest[i * count + j] * columns[j]);
            *row = inverse(entries.fold(0.0, f64::max));
        }
        for (j, column) in columns.iter_mut().enumerate() {
            let entries = (0..count).map(|i| largest[i * count + j] * rows[i]);
            *column = inverse(entries.fold(0.0, f64::max));
        }
    }
    for (test, trial, value) in samples.iter_mut().flat_map(|sample| &mut sample.entries) {
        *value *= rows[kind(*test)] * columns[kind(*trial)];
    }
}

/// Returns the DoFs of a field among those of the cell.
fn columns(elements: &Elements, field: usize) -> std::ops::Range<usize> {
    let unknowns = |field: usize| elements.fields[field].count() * elements.components[field];
    let begin: usize = (0..field).map(unknowns).sum();
    begin..begin + unknowns(field)
}

/// Returns the table of an element, or those of the components of its functions.
fn tables_of(element: Element, points: &[[f64; 3]]) -> Vec<Tabulation> {
    match element.whitney() {
        Some(vectors) => tabulate_components(vectors, points),
        None => vec![tabulate(element, points)],
    }
}

/// Returns the derivatives in a component of the exterior derivative: component, axis and sign of each.
fn exterior(element: Element, component: usize) -> Vec<(usize, usize, f64)> {
    let dim = element.cell().dim();
    let (a, b) = if dim == 2 { (0, 1) } else { ((component + 1) % 3, (component + 2) % 3) };
    match element.whitney().map(Whitney::family) {
        Some(WhitneyFamily::Div) => (0..dim).map(|a| (a, a, 1.0)).collect(),
        _ => vec![(b, a, 1.0), (a, b, -1.0)],
    }
}

/// A square matrix, row by row.
struct Matrix {
    size: usize,
    entries: Vec<f64>,
}

impl Matrix {
    /// Computes Σ_q w_q Bᵀ G B on the reference cell, with the rule for `degree`.
    fn new(elements: &Elements, samples: &[Sample], degree: usize) -> Self {
        let size =
            elements.fields.len().checked_sub(1).map_or(0, |last| columns(elements, last).end);
        let mut entries = vec![0.0; size * size];
        let rule: Rule = default_rule(elements.cell, 1, 1, Some(degree));
        for sample in samples {
            let rule = if sample.on_facet { rule.on_facet() } else { rule.points_and_weights() };
            let points: Vec<[f64; 3]> = rule.iter().map(|(point, _)| *point).collect();
            let tables: Vec<_> =
                elements.fields.iter().map(|&element| tables_of(element, &points)).collect();
            let twice = |&(test, trial, _): &(Slot, Slot, f64)| {
                test.part.order() == 2 || trial.part.order() == 2
            };
            let seconds: Vec<_> = match sample.entries.iter().any(twice) {
                true => elements.fields.iter().map(|&of| tabulate_seconds(of, &points)).collect(),
                false => Vec::new(),
            };
            let at = |slot: Slot, q: usize| -> (usize, Vec<f64>) {
                let (all, start) = (&tables[slot.field], columns(elements, slot.field).start);
                let table = all.get(slot.component).unwrap_or(&all[0]);
                // Of vector-valued functions all components have the same unknowns.
                let is_vector = elements.fields[slot.field].whitney().is_some();
                let first = start + if is_vector { 0 } else { slot.component * table.nodes };
                let of_node = |i: usize| match slot.part {
                    Part::Value => table.value(q, i),
                    Part::Derivative(j) => table.gradient(q, i)[j],
                    Part::Second(..) => {
                        let second = Part::of_order(2, elements.cell.dim());
                        let at = second.iter().position(|&part| part == slot.part);
                        let at = at.expect("a part of the cell's dimension");
                        seconds[slot.field][at][q * table.nodes + i]
                    }
                    Part::Exterior(c) => exterior(elements.fields[slot.field], c)
                        .into_iter()
                        .map(|(a, axis, sign)| sign * all[a].gradient(q, i)[axis])
                        .sum(),
                };
                (first, (0..table.nodes).map(of_node).collect())
            };
            for (q, (_, weight)) in rule.iter().enumerate() {
                for &(test, trial, coefficient) in &sample.entries {
                    let ((row, tests), (column, trials)) = (at(test, q), at(trial, q));
                    for (i, test) in tests.iter().enumerate() {
                        let start = (row + i) * size + column;
                        let line = &mut entries[start..start + trials.len()];
                        let factor = weight * coefficient * test;
                        line.iter_mut().zip(&trials).for_each(|(to, trial)| *to += factor * trial);
                    }
                }
            }
        }
        Self { size, entries }
    }

    /// Returns the rank of some of its columns, by elimination with complete pivoting.
    fn rank(&self, columns: std::ops::Range<usize>) -> usize {
        let mut rows: Vec<Vec<f64>> = (0..self.size)
            .map(|i| self.entries[i * self.size..(i + 1) * self.size][columns.clone()].to_vec())
            .collect();
        let mut first = None;
        for rank in 0..columns.len().min(self.size) {
            let places = rows[rank..].iter().enumerate().flat_map(|(i, row)| {
                row[rank..].iter().enumerate().map(move |(j, value)| (value.abs(), i, j))
            });
            let best =
                places.fold((0.0, 0, 0), |best, next| if next.0 > best.0 { next } else { best });
            let (pivot, i, j) = (best.0, rank + best.1, rank + best.2);
            if pivot <= ROUNDING * *first.get_or_insert(pivot) {
                return rank;
            }
            rows.swap(rank, i);
            rows.iter_mut().for_each(|row| row.swap(rank, j));
            let (done, rest) = rows.split_at_mut(rank + 1);
            let pivots = &done[rank];
            for row in rest {
                let factor = row[rank] / pivots[rank];
                for (to, value) in row[rank..].iter_mut().zip(&pivots[rank..]) {
                    *to -= factor * value;
                }
            }
        }
        columns.len().min(self.size)
    }
}

#[cfg(test)]
mod tests;
