//! Functionals of a discrete solution by the interpreter: errors against a known solution, and energy.
//!
//! ```text
//! error_l2² = ∫ |u_h − u|² dx          error_h1² = error_l2² + ∫ |∇u_h − ∇u|² dx
//! energy    = ∫₀¹ R(s u)·u ds           for symmetric forms; for linear ones ½ uᵀJu + R(0)·u
//! ```
//!
//! Elements are fully tabulated and forms interpreted: simple reference code for one evaluation on a mesh of moderate
//! size. Large meshes use kernels (`run/assess`), which are tested against this module.

mod pointwise;
mod second;

pub(crate) use pointwise::living_cells;
pub use pointwise::{
    Extrema, QuadratureValues, extrema, field_at, values_at, values_at_quadrature, values_in_cells,
};

use crate::algebra::vector::root_of_squares;
use crate::space::Space;
use crate::space::discretisation::{AuxValues, Discretisation, Field};
use crate::space::evaluate::Evaluator;
use crate::support::expression::{Parameters, evaluate};
use crate::support::parallel::*;
use fem_dsl::eval::Batch;
use fem_dsl::point::{Input, Integral, Node, NodeId, Part, Slot, reachable};
use fem_dsl::problem::Expression;
use kernels_gen::element::{
    ElementError, Lagrange, LinePoints, Rule, Tabulation, WhitneyFamily, default_rule, tabulate,
};
use second::{SecondTables, is_second, reads_second};
use std::borrow::Cow;

/// Number of cells evaluated together; sums are formed block by block, in order.
const BLOCK: usize = 32;

/// A nodal quantity at the points of a block of cells.
struct PointValues {
    /// `[component][point]`.
    value: Vec<Vec<f64>>,
    /// `[component · dim + direction][point]`, in physical space; `[component][point]` of the exterior derivative of
    /// vector-valued functions.
    gradient: Vec<Vec<f64>>,
    /// `[component · pairs + pair][point]`, in physical space, the pairs of axes a ≤ b in ascending order; of vector-valued
    /// functions the gradient, `[component · dim + direction][point]`. Empty if they are not evaluated.
    second: Vec<Vec<f64>>,
    /// True of vector-valued functions.
    is_vector: bool,
}

/// The points of a block of cells.
struct PointBlock {
    cells: Vec<usize>,
    points_per_cell: usize,
    weight: Vec<f64>,
    x: Vec<[f64; 3]>,
    quantities: Vec<PointValues>,
}

/// A nodal quantity: its space and its values; without values it is not evaluated.
type NodalQuantity<'a> = (Cow<'a, Space>, Cow<'a, [f64]>);

/// The tables of the map of a cell and of nodal quantities at some points.
struct PointTables<'a> {
    geometry: Tabulation,
    quantities: Vec<QuantityTable<'a>>,
    second: Option<SecondTables>,
}

/// The functions of a nodal quantity at some points.
enum QuantityTable<'a> {
    Scalar(Tabulation),
    Vector(Evaluator<'a>),
}

impl<'a> PointTables<'a> {
    /// Tabulates at points of the reference cell; `second` derivatives only if they are needed.
    fn new(
        on: &'a Discretisation,
        points: &[[f64; 3]],
        nodal: &'a [NodalQuantity<'_>],
        second: bool,
    ) -> Result<Self, ElementError> {
        let geometry = Lagrange::continuous(on.mesh.cell(), on.mesh.order())?;
        let of = |(space, _): &'a NodalQuantity<'_>| match space.element().whitney() {
            Some(_) => {
                let evaluator = Evaluator::new(&on.mesh, space, points)?;
                let evaluator = match second {
                    true => evaluator.with_gradients(points)?,
                    false => evaluator,
                };
                Ok(QuantityTable::Vector(evaluator))
            }
            None => Ok(QuantityTable::Scalar(tabulate(space.element(), points))),
        };
        Ok(Self {
            geometry: tabulate(geometry, points),
            quantities: nodal.iter().map(of).collect::<Result<_, _>>()?,
            second: second.then(|| SecondTables::new(geometry, nodal, points)),
        })
    }
}

/// Computes `count` integrals over all cells with a rule; `integrand` returns the sums of a block, with `second`
/// derivatives if they are needed.
fn integrate(
    on: &Discretisation,
    (rule, count, second): (Rule, usize, bool),
    nodal: &[NodalQuantity<'_>],
    integrand: impl Fn(&PointBlock) -> Vec<f64> + Sync,
) -> Result<Vec<f64>, ElementError> {
    let tables = PointTables::new(on, &rule.points(), nodal, second)?;
    let sums = block_by_block(on, &tables, &rule.weights(), nodal, integrand);
    // A process may have no cells.
    let mut total = vec![0.0; count];
    for sum in sums {
        total.iter_mut().zip(sum).for_each(|(total, part)| *total += part);
    }
    on.mesh.sum_in_all(&mut total);
    Ok(total)
}

/// Evaluates each block of cells, in order, at the points of tables.
fn block_by_block<T: Send>(
    on: &Discretisation,
    tables: &PointTables<'_>,
    weights: &[f64],
    nodal: &[NodalQuantity<'_>],
    work: impl Fn(&PointBlock) -> T + Sync,
) -> Vec<T> {
    let cells: Vec<usize> = (0..on.mesh.n_cells()).collect();
    let blocks = cells.par_chunks(BLOCK);
    blocks.map(|cells| work(&block(on, cells, weights, nodal, tables))).listed()
}

/// Returns the fields and nodal auxiliary data, and the index of each datum among them.
fn all_nodal<'a>(
    on: &'a Discretisation,
    u: &'a [f64],
) -> (Vec<NodalQuantity<'a>>, Vec<Option<usize>>) {
    let own = |(number, field): (usize, &'a Field)| field.space.resolved(&u[on.dofs_of(number)]);
    let mut nodal: Vec<NodalQuantity<'a>> = on.fields.iter().enumerate().map(own).collect();
    let mut place = vec![None; on.aux.len()];
    for (index, aux) in on.aux.iter().enumerate() {
        if let AuxValues::Nodes(space, values) = aux {
            place[index] = Some(nodal.len());
            nodal.push((Cow::Borrowed(space), Cow::Borrowed(values)));
        }
    }
    (nodal, place)
}

/// The same quantities, of which those that some nodes of an integral's graph do not read have no values.
fn read_by<'a>(
    (integral, roots): (&Integral, &[NodeId]),
    on: &'a Discretisation,
    u: &'a [f64],
) -> (Vec<NodalQuantity<'a>>, Vec<Option<usize>>) {
    let (mut nodal, place) = all_nodal(on, u);
    let mut is_read = vec![false; nodal.len()];
    for id in reachable(&integral.graph, roots) {
        let quantity = match integral.graph.nodes()[id] {
            Node::Input(Input::State(slot)) => Some(slot.field),
            Node::Input(Input::Aux(slot)) => place[slot.field],
            _ => None,
        };
        quantity.into_iter().for_each(|number| is_read[number] = true);
    }
    let unread = nodal.iter_mut().zip(is_read).filter(|(_, is_read)| !is_read);
    unread.for_each(|((_, values), _)| *values = Cow::Borrowed(&[]));
    (nodal, place)
}

fn block(
    on: &Discretisation,
    cells: &[usize],
    weights: &[f64],
    nodal: &[NodalQuantity<'_>],
    PointTables { geometry, quantities: tables, second }: &PointTables<'_>,
) -> PointBlock {
    let dim = on.mesh.dim();
    let count = cells.len() * weights.len();
    let pairs = if second.is_some() { dim * (dim + 1) / 2 } else { 0 };
    let mut block = PointBlock {
        cells: cells.to_vec(),
        points_per_cell: weights.len(),
        weight: Vec::with_capacity(count),
        x: Vec::with_capacity(count),
        quantities: nodal
            .iter()
            .map(|(space, _)| PointValues {
                value: vec![Vec::with_capacity(count); space.value_components()],
                gradient: vec![Vec::with_capacity(count); derivatives(space)],
                second: match space.element().whitney().filter(|_| second.is_some()) {
                    Some(_) => vec![Vec::with_capacity(count); dim * dim],
                    None => vec![Vec::with_capacity(count); space.components() * pairs],
                },
                is_vector: space.element().whitney().is_some(),
            })
            .collect(),
    };
    let vectors = block.quantities.iter_mut().zip(nodal).zip(tables);
    for ((quantity, (_, values)), table) in vectors {
        if let (QuantityTable::Vector(evaluator), false) = (table, values.is_empty()) {
            cells.iter().for_each(|&cell| quantity.push_vectors(evaluator, cell, values));
        }
    }
    let is_affine = on.mesh.is_affine();
    for &cell in cells {
        let first = map(on, cell, 0, geometry);
        for (q, &weight) in weights.iter().enumerate() {
            let (x, inverse, det) = match is_affine {
                true => (place(on, cell, q, geometry), first.1, first.2),
                false => map(on, cell, q, geometry),
            };
            block.weight.push(weight * det.abs());
            block.x.push(x);
            let bends = second.as_ref().map(|second| second.bends(on, cell, q));
            for (number, ((quantity, (space, values)), table)) in
                block.quantities.iter_mut().zip(nodal).zip(tables).enumerate()
            {
                let QuantityTable::Scalar(table) = table else { continue };
                let components = if values.is_empty() { 0 } else { space.components() };
                for c in 0..components {
                    let (mut value, mut reference) = (0.0, [0.0; 3]);
                    for (local, &node) in space.cell_nodes(cell).iter().enumerate() {
                        let u = values[node as usize * components + c];
                        value += table.value(q, local) * u;
                        for (sum, d) in reference.iter_mut().zip(table.gradient(q, local)) {
                            *sum += d * u;
                        }
                    }
                    quantity.value[c].push(value);
                    for j in 0..dim {
                        let derivative = (0..dim).map(|a| inverse[a][j] * reference[a]).sum();
                        quantity.gradient[c * dim + j].push(derivative);
                    }
                    if let (Some(second), Some(bends)) = (second, &bends) {
                        let nodes = space.cell_nodes(cell).iter();
                        let own: Vec<f64> =
                            nodes.map(|&node| values[node as usize * components + c]).collect();
                        let slopes = &quantity.gradient[c * dim..(c + 1) * dim];
                        let slopes: Vec<f64> =
                            slopes.iter().filter_map(|row| row.last().copied()).collect();
                        let map = (&inverse, &bends[..]);
                        let found = second.of_component(number, q, &own, &slopes, map);
                        let rows = quantity.second[c * pairs..].iter_mut();
                        rows.zip(found).for_each(|(row, value)| row.push(value));
                    }
                }
            }
        }
    }
    block
}

impl PointBlock {
    /// Returns whether a field lives on the cell of a point.
    fn lives(&self, field: &Field, point: usize) -> bool {
        field.lives_on(self.cells[point / self.points_per_cell])
    }
}

impl PointValues {
    /// Appends the values and exterior derivatives of a field of H(curl) or H(div) at the points of a cell.
    fn push_vectors(&mut self, evaluator: &Evaluator<'_>, cell: usize, u: &[f64]) {
        let parts = [
            (&mut self.value, evaluator.values(cell, u)),
            (&mut self.gradient, evaluator.exterior(cell, u)),
            (&mut self.second, evaluator.gradients(cell, u)),
        ];
        for (rows, values) in parts {
            let count = rows.len();
            for (c, row) in rows.iter_mut().enumerate() {
                row.extend(values.iter().skip(c).step_by(count));
            }
        }
    }
}

/// Returns the number of first derivatives of a field: of its components, or those that its curl or divergence consists of.
fn derivatives(space: &Space) -> usize {
    let dim = space.element().cell().dim();
    match space.element().whitney().map(|element| (element.family(), dim)) {
        None => space.components() * dim,
        Some((WhitneyFamily::Curl, 3)) => 3,
        Some(_) => 1,
    }
}

/// Returns the curl or divergence of a vector in the order of [`derivatives`], from its gradient
/// `[component][direction]`; the gradient itself for other fields.
fn exterior(space: &Space, gradient: &[f64]) -> Vec<f64> {
    let dim = space.element().cell().dim();
    let of = |component: usize, direction: usize| gradient[component * dim + direction];
    let curl = |(a, b): (usize, usize)| of(b, a) - of(a, b);
    match space.element().whitney().map(|element| (element.family(), dim)) {
        _ if gradient.is_empty() => Vec::new(),
        None => gradient.to_vec(),
        Some((WhitneyFamily::Div, _)) => vec![(0..dim).map(|a| of(a, a)).sum()],
        Some((WhitneyFamily::Curl, 2)) => vec![curl((0, 1))],
        Some((WhitneyFamily::Curl, _)) => [(1, 2), (2, 0), (0, 1)].map(curl).to_vec(),
    }
}

/// Returns x at a point of a cell.
fn place(on: &Discretisation, cell: usize, q: usize, geometry: &Tabulation) -> [f64; 3] {
    let mut x = [0.0; 3];
    for (local, &node) in on.mesh.cell_nodes(cell).iter().enumerate() {
        let (value, point) = (geometry.value(q, local), on.mesh.points()[node as usize]);
        x.iter_mut().zip(point).for_each(|(x, own)| *x += value * own);
    }
    x
}

/// Returns x, ∂ξ_a/∂x_j and det J at a point of a cell.
fn map(
    on: &Discretisation,
    cell: usize,
    q: usize,
    geometry: &Tabulation,
) -> ([f64; 3], [[f64; 3]; 3], f64) {
    let dim = on.mesh.dim();
    let mut x = [0.0; 3];
    let mut j = [[0.0; 3]; 3];
    for (local, &node) in on.mesh.cell_nodes(cell).iter().enumerate() {
        let point = on.mesh.points()[node as usize];
        for i in 0..dim {
            x[i] += geometry.value(q, local) * point[i];
            for (a, d) in geometry.gradient(q, local).iter().enumerate() {
                j[i][a] += d * point[i];
            }
        }
    }
    let mut inverse = [[0.0; 3]; 3];
    if dim == 1 {
        inverse[0][0] = 1.0 / j[0][0];
        return (x, inverse, j[0][0]);
    }
    if dim == 2 {
        let det = j[0][0] * j[1][1] - j[0][1] * j[1][0];
        inverse[0] = [j[1][1] / det, -j[0][1] / det, 0.0];
        inverse[1] = [-j[1][0] / det, j[0][0] / det, 0.0];
        return (x, inverse, det);
    }
    let cofactor = |a: usize, i: usize| {
        let (b, c) = ((a + 1) % 3, (a + 2) % 3);
        let (k, l) = ((i + 1) % 3, (i + 2) % 3);
        j[k][b] * j[l][c] - j[k][c] * j[l][b]
    };
    let det = (0..3).map(|i| j[i][0] * cofactor(0, i)).sum::<f64>();
    for (a, row) in inverse.iter_mut().enumerate() {
        for (i, entry) in row.iter_mut().enumerate() {
            *entry = cofactor(a, i) / det;
        }
    }
    (x, inverse, det)
}

/// Returns a rule with two more points per direction than the solution needs, on simplices four more degrees.
pub(crate) fn fine_rule(on: &Discretisation) -> Rule {
    let degree = on.fields.iter().map(|field| field.space.element().degree()).max().unwrap_or(1);
    let cell = on.mesh.cell();
    match default_rule(cell, degree, on.mesh.order(), None) {
        Rule::Tensor { line, .. } => {
            Rule::Tensor { cell, line: LinePoints::Gauss(line.count() + 2) }
        }
        Rule::Simplex { degree, .. } => Rule::Simplex { cell, degree: degree + 4 },
        nodes @ Rule::Nodes(_) => nodes,
    }
}

/// Returns the rule of errors, energies and reports: two more points per direction than the solution needs, or the
/// problem's rule if its degree of exactness is higher.
pub fn measuring_rule(on: &Discretisation, asked: Rule) -> Rule {
    let own = fine_rule(on);
    if exactness(asked) > exactness(own) { asked } else { own }
}

/// Returns the degree of exactness of a rule, per direction or in total.
fn exactness(rule: Rule) -> usize {
    match rule {
        Rule::Tensor { line: LinePoints::Gauss(n), .. } => 2 * n - 1,
        Rule::Tensor { line: LinePoints::GaussLobatto(n), .. } => (2 * n).saturating_sub(3),
        Rule::Tensor { line, .. } => line.count() - 1,
        Rule::Simplex { degree, .. } => degree,
        Rule::Nodes(_) => 0,
    }
}

/// Returns the rule of integrands with the form's data: data at quadrature points exists there only.
pub(crate) fn rule_of_data(on: &Discretisation, asked: Rule) -> Rule {
    let at_points = on.aux.iter().any(|aux| matches!(aux, AuxValues::Points(_)));
    if at_points { asked } else { measuring_rule(on, asked) }
}

/// Computes the mean of each component of a field, (1/|Ω|) ∫ u dx.
pub fn mean(on: &Discretisation, field: usize, u: &[f64]) -> Result<Vec<f64>, ElementError> {
    let space = &on.fields[field].space;
    let (own, count) = (space.resolved(&u[on.dofs_of(field)]), space.components() + 1);
    let sums = integrate(on, (fine_rule(on), count, false), &[own], |block| {
        let components = block.quantities[0].value.iter();
        let lives =
            |point: usize| on.fields[field].lives_on(block.cells[point / block.points_per_cell]);
        let weights = block.weight.iter().enumerate();
        let weights = weights.map(|(point, w)| if lives(point) { *w } else { 0.0 });
        let weights: Vec<f64> = weights.collect();
        let sum = |row: &Vec<f64>| row.iter().zip(&weights).map(|(u, w)| u * w).sum();
        components.map(sum).chain([weights.iter().sum()]).collect()
    })?;
    let (volume, sums) = sums.split_last().map_or((1.0, &[][..]), |(last, sums)| (*last, sums));
    Ok(sums.iter().map(|sum| sum / volume).collect())
}

/// Computes ∫ φ_i dx for each node of a field.
pub fn weights(on: &Discretisation, field: usize) -> Result<Vec<f64>, ElementError> {
    let space = &on.fields[field].space;
    let (cell, degree) = (on.mesh.cell(), space.element().degree());
    let rule = if cell.is_tensor() {
        Rule::Tensor { cell, line: LinePoints::Gauss(degree + on.mesh.order()) }
    } else {
        Rule::Simplex { cell, degree: degree + cell.dim() * (on.mesh.order() - 1) }
    };
    let (points, weights) = (rule.points(), rule.weights());
    let geometry = tabulate(Lagrange::continuous(cell, on.mesh.order())?, &points);
    let table = tabulate(space.element(), &points);
    let count = space.nodes_per_cell();
    // Adds the integrals with some weights, which include det J.
    let add = |own: &mut [f64], weight_of: &dyn Fn(usize) -> f64| {
        for q in 0..weights.len() {
            let weight = weight_of(q);
            let values = own.iter_mut().enumerate();
            values.for_each(|(local, sum)| *sum += weight * table.value(q, local));
        }
    };
    let mut of_reference = vec![0.0; count];
    add(&mut of_reference, &|q| weights[q]);
    let is_affine = on.mesh.is_affine();
    let of_cell = |(cell, own): (usize, &mut [f64])| {
        if !on.fields[field].lives_on(cell) {
            return;
        }
        let det = |q: usize| map(on, cell, q, &geometry).2.abs();
        if is_affine {
            let det = det(0);
            own.iter_mut().zip(&of_reference).for_each(|(own, integral)| *own = det * integral);
        } else {
            own.fill(0.0);
            add(own, &|q| weights[q] * det(q));
        }
        space.resolve_back(cell, 1, own);
    };
    let mut of_cells = vec![0.0; on.mesh.n_cells() * count];
    of_cells.par_chunks_mut(count).with_min_len(64).enumerate().each(of_cell);
    let mut all = vec![0.0; space.n_nodes()];
    for (&node, part) in space.nodes().iter().zip(of_cells) {
        all[node as usize] += part;
    }
    if let Some(cut) = on.mesh.cut() {
        space.sharing(cut.group()).sum(&mut all);
    }
    Ok(all)
}

/// Computes the L2 and H1 errors of a field against a known solution; of vector-valued functions the errors in L2 and
/// in H(curl) or H(div).
pub fn errors(
    on: &Discretisation,
    (field, rule): (usize, Rule),
    u: &[f64],
    exact: &Expression,
    parameters: &Parameters,
) -> Result<(f64, f64), ElementError> {
    let roots: Vec<_> = exact.value.iter().chain(&exact.gradient).copied().collect();
    let (space, values) = (&on.fields[field].space, exact.value.len());
    let [l2, seminorm] = norms(on, (field, rule), u, values, |block| {
        let diameter = |point: usize| on.mesh.diameter(block.cells[point / block.points_per_cell]);
        let known = evaluate(exact, &roots, &block.x, parameters, diameter);
        compared(space, values, known, roots.len())
    })?;
    Ok((l2, l2.hypot(seminorm)))
}

/// Computes the errors of a field against functions: in L2 against `exact`, which writes the field's components at a
/// point, and in H1 if `gradient` writes their derivatives, `[component][direction]`.
pub fn errors_of(
    on: &Discretisation,
    (field, rule): (usize, Rule),
    u: &[f64],
    exact: impl Fn(&[f64; 3], &mut [f64]) + Sync,
    gradient: Option<&(dyn Fn(&[f64; 3], &mut [f64]) + Sync)>,
) -> Result<(f64, f64), ElementError> {
    let space = &on.fields[field].space;
    let components = space.value_components();
    let entries = components * gradient.map_or(1, |_| 1 + on.mesh.dim());
    let [l2, seminorm] = norms(on, (field, rule), u, components, |block| {
        let mut known = vec![0.0; block.x.len() * entries];
        for (x, row) in block.x.iter().zip(known.chunks_mut(entries)) {
            let (values, derivatives) = row.split_at_mut(components);
            exact(x, values);
            gradient.iter().for_each(|gradient| gradient(x, derivatives));
        }
        compared(space, components, known, entries)
    })?;
    Ok((l2, l2.hypot(seminorm)))
}

/// Returns known values and gradients, `[point][entry]`, as those derivatives that a space has.
fn compared(space: &Space, values: usize, known: Vec<f64>, entries: usize) -> Vec<f64> {
    if space.element().whitney().is_none() {
        return known;
    }
    let row = |row: &[f64]| [&row[..values], &exterior(space, &row[values..])].concat();
    known.chunks_exact(entries.max(1)).flat_map(row).collect()
}

/// Returns the square roots of [`squares`], without underflow or overflow.
fn norms(
    on: &Discretisation,
    of: (usize, Rule),
    u: &[f64],
    values: usize,
    known: impl Fn(&PointBlock) -> Vec<f64> + Sync,
) -> Result<[f64; 2], ElementError> {
    let plain = squares(on, of, u, values, 1.0, &known)?;
    let mut norms = [0.0; 2];
    for (at, norm) in norms.iter_mut().enumerate() {
        let scaled = |factor| Ok(squares(on, of, u, values, factor, &known)?[at]);
        *norm = root_of_squares(plain[at], scaled)?;
    }
    Ok(norms)
}

/// Computes ∫ |u_h − u|² and, if `known` contains gradients after the `values` components, ∫ |∇u_h − ∇u|², of
/// differences scaled by `factor`; `known` is `[point][entry]`.
fn squares(
    on: &Discretisation,
    (field, rule): (usize, Rule),
    u: &[f64],
    values: usize,
    factor: f64,
    known: impl Fn(&PointBlock) -> Vec<f64> + Sync,
) -> Result<[f64; 2], ElementError> {
    let own = on.fields[field].space.resolved(&u[on.dofs_of(field)]);
    let sums = integrate(on, (rule, 2, false), &[own], |block| {
        let known = known(block);
        let entries = known.len() / block.weight.len().max(1);
        let computed = &block.quantities[0];
        let rows: Vec<&Vec<f64>> =
            computed.value.iter().chain(&computed.gradient).take(entries).collect();
        let mut sums = vec![0.0; 2];
        let points = block.weight.iter().enumerate();
        for (point, weight) in points.filter(|(point, _)| block.lives(&on.fields[field], *point)) {
            for (at, row) in rows.iter().enumerate() {
                let difference = factor * (row[point] - known[point * entries + at]);
                sums[usize::from(at >= values)] += weight * difference * difference;
            }
        }
        sums
    })?;
    Ok([sums.first().copied().unwrap_or(0.0), sums.get(1).copied().unwrap_or(0.0)])
}

/// Returns the number of Gauss points along the ray from 0 to a state; a linear residual needs one.
pub(crate) fn points_of_ray(integral: &Integral) -> usize {
    if integral.linear { 1 } else { 12 }
}

/// Computes the energy of a symmetric form at a state minus that at 0: from its density if it has one, otherwise from
/// its residual.
pub fn energy<'a>(
    on: &'a Discretisation,
    integral: &Integral,
    rule: Rule,
    u: &'a [f64],
    parameters: &Parameters,
) -> Result<f64, ElementError> {
    let (nodal, place) = all_nodal(on, u);
    // Along the ray from 0 to u.
    let ray = LinePoints::Gauss(points_of_ray(integral));
    let along: Vec<(f64, f64)> = ray.points().into_iter().zip(ray.weights()).collect();
    let roots: Vec<_> = match integral.energy {
        Some(density) => vec![density],
        None => integral.residual.iter().map(|(_, node)| *node).collect(),
    };
    let tests_second = integral.residual.iter().any(|(slot, _)| is_second(on, *slot));
    let second = reads_second(on, (integral, &roots)) || integral.energy.is_none() && tests_second;
    // The cells of the form's only integral.
    let is_in = |cell: &usize| {
        on.cells_of(0).is_none_or(|cells| cells.binary_search(&(*cell as u32)).is_ok())
    };
    let sums = integrate(on, (rule, 1, second), &nodal, |block| {
        let mut batch = Batch::new(&integral.graph, &roots);
        let mut sum = 0.0;
        let points = block.points_per_cell;
        let of_cells = block.weight.iter().enumerate();
        let of_cells = of_cells.filter(|(point, _)| is_in(&block.cells[point / points]));
        let weights: Vec<(usize, f64)> = of_cells.map(|(point, &weight)| (point, weight)).collect();
        if let Some(density) = integral.energy {
            // The ray may pass through states without a density.
            for (s, sign) in [(1.0, 1.0), (0.0, -1.0)] {
                batch.run(block.weight.len(), |input, row| {
                    fill(on, block, &place, parameters, input, s, row);
                });
                let density = batch.values(density);
                sum += sign * weights.iter().map(|&(point, w)| density[point] * w).sum::<f64>();
            }
            return vec![sum];
        }
        for &(s, weight_s) in &along {
            batch.run(block.weight.len(), |input, row| {
                fill(on, block, &place, parameters, input, s, row);
            });
            for (slot, node) in &integral.residual {
                let tested = part(&block.quantities[slot.field], on.mesh.dim(), *slot);
                let values = batch.values(*node);
                let product = |&(point, w): &(usize, f64)| values[point] * tested[point] * w;
                sum += weight_s * weights.iter().map(product).sum::<f64>();
            }
        }
        vec![sum]
    })?;
    Ok(sums.first().copied().unwrap_or(0.0))
}

/// Returns one slot of an evaluated quantity.
fn part(quantity: &PointValues, dim: usize, slot: Slot) -> &[f64] {
    match slot.part {
        Part::Value => &quantity.value[slot.component],
        Part::Derivative(j) if quantity.is_vector => &quantity.second[slot.component * dim + j],
        Part::Derivative(j) => &quantity.gradient[slot.component * dim + j],
        Part::Second(..) => {
            let parts = Part::of_order(2, dim);
            let at = parts.iter().position(|&part| part == slot.part);
            let at = at.expect("a part of the mesh's dimension");
            &quantity.second[slot.component * parts.len() + at]
        }
        Part::Exterior(i) => &quantity.gradient[i],
    }
}

fn fill(
    on: &Discretisation,
    block: &PointBlock,
    place: &[Option<usize>],
    parameters: &Parameters,
    input: Input,
    s: f64,
    row: &mut [f64],
) {
    let dim = on.mesh.dim();
    let cell = |point: usize| block.cells[point / block.points_per_cell];
    match input {
        Input::State(slot) => {
            let values = part(&block.quantities[slot.field], dim, slot);
            row.iter_mut().zip(values).for_each(|(row, value)| *row = s * value);
            // It has no value elsewhere.
            if let Some(support) = on.fields.get(slot.field).and_then(|own| own.support.as_ref()) {
                let rows = row.iter_mut().enumerate();
                rows.filter(|(point, _)| !support.cells[cell(*point)])
                    .for_each(|(_, row)| *row = f64::NAN);
            }
        }
        Input::Aux(slot) => match (&on.aux[slot.field], place[slot.field]) {
            (_, Some(at)) => row.copy_from_slice(part(&block.quantities[at], dim, slot)),
            (AuxValues::Cells(values), None) => {
                let components = values.len() / on.mesh.n_cells().max(1);
                row.iter_mut().enumerate().for_each(|(point, row)| {
                    *row = values[cell(point) * components + slot.component];
                });
            }
            (AuxValues::Points(values), None) => {
                let components = values.len() / (on.mesh.n_cells() * block.points_per_cell).max(1);
                row.iter_mut().enumerate().for_each(|(point, row)| {
                    let q = point % block.points_per_cell;
                    let at = cell(point) * block.points_per_cell + q;
                    *row = values[at * components + slot.component];
                });
            }
            (AuxValues::Nodes(..), None) => row.fill(f64::NAN),
        },
        Input::Coordinate(axis) => {
            row.iter_mut().zip(&block.x).for_each(|(row, x)| *row = x[axis]);
        }
        Input::Diameter(_) => {
            row.iter_mut()
                .enumerate()
                .for_each(|(point, row)| *row = on.mesh.diameter(cell(point)));
        }
        input => row.fill(parameters.constant(input).unwrap_or(f64::NAN)),
    }
}
