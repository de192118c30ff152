//! The map from the reference cell, at a quadrature point.
//!
//! With J_ij = ∂x_i/∂ξ_j, columns a, b, c, the rows of det J · J⁻¹ are b×c, c×a, a×b. For a multilinear cell a does not
//! depend on ξ, and b and c are linear in ξ. Along a row of points in ξ, the first cofactor row and det J are therefore
//! quadratic polynomials in ξ, and the other two rows linear ones. Their coefficients are computed once per row.

use crate::kir::build::Builder;
use crate::kir::{Unary, ValueId};
use fem_dsl::point::{Input, Part, Side};
use std::collections::BTreeMap;

/// Geometry at a point: the pull-back of gradients, and the weight of the point.
#[derive(Clone, Debug)]
pub(crate) struct PointGeometry {
    /// `k[i][j]` = ∂ξ_i/∂x_j, times det J if `det` is present.
    pub(crate) k: Vec<Vec<ValueId>>,
    /// det J, if `k` contains cofactors.
    pub(crate) det: Option<ValueId>,
    /// True if `det` has the opposite sign, because two axes are exchanged in it.
    pub(crate) is_reversed: bool,
    /// The columns `[a][i]` = ∂x_i/∂ξ_a, where they are known.
    pub(crate) columns: Option<Vec<Vec<ValueId>>>,
    /// The quadrature weight, times |det J| if `k` contains the inverse.
    pub(crate) weight: ValueId,
    /// Physical coordinates, if the form needs them.
    pub(crate) x: Vec<ValueId>,
    /// The outward unit normal, on facets if the form needs it.
    pub(crate) normal: Vec<ValueId>,
    /// The inverse of the outside's map, of pairs of cells if the form needs it.
    pub(crate) outside: Vec<Vec<ValueId>>,
    /// The extents of both sides from the facet, if the form needs them.
    pub(crate) extents: [Option<ValueId>; 2],
    /// The maps of second derivatives on both sides, if the form needs them; `k` is the inverse then.
    pub(crate) second: [SecondMap; 2],
    /// The second derivatives of the maps of both sides that are not 0, if the form needs them.
    pub(crate) bends: [Bends; 2],
}

/// Second derivatives ∂²x_i/∂ξ_a∂ξ_b of a cell's map, at (a, b) with a ≤ b.
pub(crate) type Bends = BTreeMap<(usize, usize), Vec<ValueId>>;

/// Second derivatives in physical space as sums of factors and reference derivatives.
pub(crate) type SecondMap = BTreeMap<Part, Vec<(Part, ValueId)>>;

/// Computes the map of second derivatives,
///
/// ```text
/// ∂²u/∂x_i∂x_j = Σ_ab K_ai K_bj (∂²u/∂ξ_a∂ξ_b − Σ_c Γ^c_ab ∂u/∂ξ_c),      Γ^c_ab = Σ_l K_cl ∂²x_l/∂ξ_a∂ξ_b
/// ```
///
/// from the inverse K of the Jacobian; `bends` are second derivatives of x that are not 0.
pub(crate) fn second_map(b: &mut Builder, k: &[Vec<ValueId>], bends: &Bends) -> SecondMap {
    let dim = k.len();
    let symbols: BTreeMap<(usize, usize), Vec<ValueId>> = bends
        .iter()
        .map(|(&pair, x)| (pair, k.iter().map(|row| dot(b, row, x)).collect()))
        .collect();
    let mut map = SecondMap::new();
    for part in Part::of_order(2, dim) {
        let Part::Second(i, j) = part else { continue };
        let mut terms = Vec::new();
        let mut slopes = vec![None; dim];
        for of in Part::of_order(2, dim) {
            let Part::Second(a, c) = of else { continue };
            let mut factor = b.mul(k[a][i], k[c][j]);
            if a != c {
                factor = b.fma(k[c][i], k[a][j], factor);
            }
            terms.push((of, factor));
            for (slope, &symbol) in
                slopes.iter_mut().zip(symbols.get(&(a, c)).into_iter().flatten())
            {
                *slope = Some(match *slope {
                    Some(sum) => b.fma_neg(factor, symbol, sum),
                    None => {
                        let product = b.mul(factor, symbol);
                        b.unary(Unary::Neg, product)
                    }
                });
            }
        }
        let slopes = slopes.into_iter().enumerate();
        terms.extend(slopes.filter_map(|(axis, slope)| Some((Part::Derivative(axis), slope?))));
        map.insert(part, terms);
    }
    map
}

impl PointGeometry {
    /// Returns the geometry at a point in a cell.
    pub(crate) fn new(
        k: Vec<Vec<ValueId>>,
        det: Option<ValueId>,
        weight: ValueId,
        x: Vec<ValueId>,
    ) -> Self {
        let (normal, outside, extents) = (Vec::new(), Vec::new(), [None; 2]);
        let (is_reversed, columns) = (false, None);
        let (second, bends) = (Default::default(), Default::default());
        Self { k, det, is_reversed, columns, weight, x, normal, outside, extents, second, bends }
    }

    /// Puts the first of the reference axes last.
    pub(crate) fn rotate(&mut self) {
        self.k.rotate_left(1);
        self.is_reversed ^= self.k.len() == 2;
        if let Some(columns) = &mut self.columns {
            columns.rotate_left(1);
        }
    }

    /// Returns an entry of the map of a side: [`Input::Inverse`], [`Input::Tangent`], [`Input::Bend`] or
    /// [`Input::Density`].
    pub(crate) fn entry(&self, b: &mut Builder, input: Input) -> ValueId {
        match input {
            Input::Inverse(side, a, i) => {
                let entry = self.of(side)[a][i];
                match self.det.filter(|_| side == Side::Inside) {
                    None => entry,
                    Some(det) => {
                        let reciprocal = b.reciprocal(det);
                        b.mul(entry, reciprocal)
                    }
                }
            }
            Input::Density(side) => match self.det.filter(|_| side == Side::Inside) {
                Some(det) => {
                    let reciprocal = b.reciprocal(det);
                    match self.is_reversed {
                        true => b.unary(Unary::Neg, reciprocal),
                        false => reciprocal,
                    }
                }
                None => determinant(b, self.of(side)),
            },
            Input::Tangent(side, a, i) => {
                let known = self.columns.as_ref().filter(|_| side == Side::Inside);
                if let Some(columns) = known {
                    return columns[a][i];
                }
                // K = adj J / det J, and J = adj K / det K; of cofactors, J = adj (adj J) / det J^(d − 2).
                let k = self.of(side);
                let entry = cofactor(b, k, a, i);
                let determinant = match self.det.filter(|_| side == Side::Inside) {
                    Some(det) if k.len() == 1 => return det,
                    Some(_) if k.len() == 2 => return entry,
                    Some(det) => det,
                    None => determinant(b, k),
                };
                let reciprocal = b.reciprocal(determinant);
                b.mul(entry, reciprocal)
            }
            Input::Bend(side, first, second, i) => {
                let known = self.bends[side as usize].get(&(first, second));
                known.map_or_else(|| b.constant(0.0), |bend| bend[i])
            }
            _ => unreachable!("only entries of the map should be asked for"),
        }
    }

    /// Returns a part in physical space as a sum of factors and reference parts, where `k` is the inverse.
    pub(crate) fn parts_of(&self, b: &mut Builder, side: Side, part: Part) -> Vec<(Part, ValueId)> {
        match part {
            Part::Value => vec![(part, b.constant(1.0))],
            Part::Derivative(axis) => {
                let rows = self.of(side).iter().enumerate();
                rows.map(|(a, row)| (Part::Derivative(a), row[axis])).collect()
            }
            Part::Second(..) => self.second[side as usize][&part].clone(),
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        }
    }

    /// Returns the map of gradients on a side.
    pub(crate) fn of(&self, side: Side) -> &[Vec<ValueId>] {
        match side {
            Side::Inside => &self.k,
            Side::Outside => &self.outside,
        }
    }
}

/// Computes the cofactor of an entry of a matrix of 1 to 3 rows.
fn cofactor(b: &mut Builder, k: &[Vec<ValueId>], a: usize, i: usize) -> ValueId {
    if k.len() == 1 {
        return b.constant(1.0);
    }
    if k.len() == 2 {
        let entry = k[1 - a][1 - i];
        return if a == i { entry } else { b.unary(Unary::Neg, entry) };
    }
    let [c, d] = [(a + 1) % 3, (a + 2) % 3];
    let [l, m] = [(i + 1) % 3, (i + 2) % 3];
    let product = b.mul(k[c][l], k[d][m]);
    b.fma_neg(k[c][m], k[d][l], product)
}

/// Computes the determinant of a matrix of 1 to 3 rows.
fn determinant(b: &mut Builder, k: &[Vec<ValueId>]) -> ValueId {
    if let [row] = k {
        return row[0];
    }
    let cofactors: Vec<ValueId> = (0..k.len()).map(|i| cofactor(b, k, 0, i)).collect();
    dot(b, &k[0], &cofactors)
}

/// Computes a × b.
fn cross(b: &mut Builder, u: &[ValueId], v: &[ValueId]) -> Vec<ValueId> {
    (0..3)
        .map(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let product = b.mul(u[j], v[k]);
            b.fma_neg(u[k], v[j], product)
        })
        .collect()
}

/// Returns `onto + u × v`.
fn cross_onto(b: &mut Builder, u: &[ValueId], v: &[ValueId], onto: &[ValueId]) -> Vec<ValueId> {
    (0..3)
        .map(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let sum = b.fma(u[j], v[k], onto[i]);
            b.fma_neg(u[k], v[j], sum)
        })
        .collect()
}

fn dot(b: &mut Builder, u: &[ValueId], v: &[ValueId]) -> ValueId {
    let mut sum = b.mul(u[0], v[0]);
    for (&x, &y) in u.iter().zip(v).skip(1) {
        sum = b.fma(x, y, sum);
    }
    sum
}

/// Returns `start + factor · slope`, component by component.
fn line(b: &mut Builder, start: &[ValueId], slope: &[ValueId], factor: ValueId) -> Vec<ValueId> {
    start.iter().zip(slope).map(|(&s, &d)| b.fma(factor, d, s)).collect()
}

/// Computes cofactor rows and determinant of a Jacobian given by its columns.
pub(crate) fn cofactors(b: &mut Builder, columns: &[Vec<ValueId>]) -> (Vec<Vec<ValueId>>, ValueId) {
    cofactors_from(b, columns, 0)
}

/// Computes the same with direction `first` as the first column; the others follow cyclically.
fn cofactors_from(
    b: &mut Builder,
    columns: &[Vec<ValueId>],
    first: usize,
) -> (Vec<Vec<ValueId>>, ValueId) {
    for (place, column) in columns.iter().enumerate() {
        let direction = (first + place) % columns.len();
        named(b, column, |i| format!("J{i}{direction}"));
    }
    let (rows, det) = adjugate(b, columns);
    named_adjugate(b, &rows, det, first);
    (rows, det)
}

/// Names values by their indices.
fn named(b: &mut Builder, values: &[ValueId], name: impl Fn(usize) -> String) {
    for (number, &value) in values.iter().enumerate() {
        b.name(value, &name(number));
    }
}

fn named_adjugate(b: &mut Builder, rows: &[Vec<ValueId>], det: ValueId, first: usize) {
    for (place, row) in rows.iter().enumerate() {
        let direction = (first + place) % rows.len();
        named(b, row, |i| format!("adj{direction}{i}"));
    }
    b.name(det, "det");
}

fn adjugate(b: &mut Builder, columns: &[Vec<ValueId>]) -> (Vec<Vec<ValueId>>, ValueId) {
    if let [u] = columns {
        return (vec![vec![b.constant(1.0)]], u[0]);
    }
    if let [u, v] = columns {
        let minus_v0 = b.unary(Unary::Neg, v[0]);
        let minus_u1 = b.unary(Unary::Neg, u[1]);
        let product = b.mul(u[0], v[1]);
        let det = b.fma_neg(u[1], v[0], product);
        return (vec![vec![v[1], minus_v0], vec![minus_u1, u[0]]], det);
    }
    let first = cross(b, &columns[1], &columns[2]);
    let second = cross(b, &columns[2], &columns[0]);
    let third = cross(b, &columns[0], &columns[1]);
    let det = dot(b, &columns[0], &first);
    (vec![first, second, third], det)
}

/// Computes the inverse and |det J| from the columns of J, for cells with constant J.
pub(crate) fn inverse(b: &mut Builder, columns: &[Vec<ValueId>]) -> (Vec<Vec<ValueId>>, ValueId) {
    let (k, det) = cofactors(b, columns);
    let reciprocal = b.reciprocal(det);
    let scaled = |row: &Vec<ValueId>| row.iter().map(|&v| b.mul(v, reciprocal)).collect();
    let k: Vec<Vec<ValueId>> = k.iter().map(scaled).collect();
    for (a, row) in k.iter().enumerate() {
        named(b, row, |i| format!("K{a}{i}"));
    }
    let size = b.unary(Unary::Abs, det);
    (k, size)
}

/// Coefficients of a multilinear cell that are constant along a row of points.
pub(crate) struct MultilinearRow {
    a: Vec<ValueId>,
    b: [Vec<ValueId>; 2],
    c: Option<[Vec<ValueId>; 2]>,
    x: Vec<ValueId>,
    polynomials: Option<Polynomials>,
    /// The direction of the row in the reference cell; the others follow cyclically.
    first: usize,
}

/// Coefficients in ξ along a row.
struct Polynomials {
    first: [Vec<ValueId>; 3],
    second: [Vec<ValueId>; 2],
    third: [Vec<ValueId>; 2],
    det: [ValueId; 3],
}

/// Coefficients of a trilinear cell that are constant on a layer of points.
pub(crate) struct MultilinearLayer {
    /// Modes of the map, restricted to the layer: `modes[m][i]`, m = 0 … 3 for 1, ξ, η, ξη.
    modes: [Vec<ValueId>; 4],
    /// ∂x/∂ζ: modes 1, ξ, η, ξη; none in 2D.
    up: Option<[Vec<ValueId>; 4]>,
}

/// Computes the layer at `zeta`; `mode(b, m, i)` is component i of the coefficient of the monomial with bits m (1 for
/// ξ, 2 for η, 4 for ζ).
pub(crate) fn multilinear_layer(
    b: &mut Builder,
    dim: usize,
    zeta: Option<ValueId>,
    mut mode: impl FnMut(&mut Builder, usize, usize) -> ValueId,
) -> MultilinearLayer {
    let mut all =
        |b: &mut Builder, m: usize| -> Vec<ValueId> { (0..dim).map(|i| mode(b, m, i)).collect() };
    let Some(zeta) = zeta else {
        return MultilinearLayer { modes: [0, 1, 2, 3].map(|m| all(b, m)), up: None };
    };
    let up = [4, 5, 6, 7].map(|m| all(b, m));
    let modes = [0, 1, 2, 3].map(|m| {
        let flat = all(b, m);
        line(b, &flat, &up[m], zeta)
    });
    MultilinearLayer { modes, up: Some(up) }
}

/// Computes the row at `eta` in direction `first` of the reference cell. `points` is the number of points to be
/// evaluated: from five on, polynomials pay.
pub(crate) fn multilinear_row(
    b: &mut Builder,
    layer: &MultilinearLayer,
    eta: ValueId,
    points: usize,
    needs_x: bool,
    first: usize,
) -> MultilinearRow {
    let [constant, xi, along_eta, both] = &layer.modes;
    let a = line(b, xi, both, eta);
    let columns_b = [along_eta.clone(), both.clone()];
    let c = layer.up.as_ref().map(|[up, up_xi, up_eta, up_both]| {
        [line(b, up, up_eta, eta), line(b, up_xi, up_both, eta)]
    });
    let x = if needs_x { line(b, constant, along_eta, eta) } else { Vec::new() };
    let polynomials = c.as_ref().filter(|_| points >= 5).map(|c| {
        let along = [
            cross(b, &columns_b[0], &c[0]),
            {
                let part = cross(b, &columns_b[0], &c[1]);
                cross_onto(b, &columns_b[1], &c[0], &part)
            },
            cross(b, &columns_b[1], &c[1]),
        ];
        Polynomials {
            det: [0, 1, 2].map(|power| dot(b, &a, &along[power])),
            first: along,
            second: [cross(b, &c[0], &a), cross(b, &c[1], &a)],
            third: [cross(b, &a, &columns_b[0]), cross(b, &a, &columns_b[1])],
        }
    });
    MultilinearRow { a, b: columns_b, c, x, polynomials, first }
}

/// Computes the point at `xi` of a row.
pub(crate) fn multilinear_point(
    b: &mut Builder,
    row: &MultilinearRow,
    xi: ValueId,
    weight: ValueId,
) -> PointGeometry {
    let x = if row.x.is_empty() { Vec::new() } else { line(b, &row.x, &row.a, xi) };
    named(b, &x, |i| format!("x{i}"));
    let mut columns = vec![row.a.clone(), line(b, &row.b[0], &row.b[1], xi)];
    if let Some([start, slope]) = &row.c {
        columns.push(line(b, start, slope, xi));
    }
    if let Some(Polynomials { first, second, third, det }) = &row.polynomials {
        let rising = line(b, &first[1], &first[2], xi);
        let k = vec![
            line(b, &first[0], &rising, xi),
            line(b, &second[0], &second[1], xi),
            line(b, &third[0], &third[1], xi),
        ];
        let rising = b.fma(xi, det[2], det[1]);
        let det = b.fma(xi, rising, det[0]);
        named_adjugate(b, &k, det, row.first);
        let columns = Some(columns);
        return PointGeometry { columns, ..PointGeometry::new(k, Some(det), weight, x) };
    }
    let (k, det) = cofactors_from(b, &columns, row.first);
    let columns = Some(columns);
    PointGeometry { columns, ..PointGeometry::new(k, Some(det), weight, x) }
}

/// Factors that turn cofactor rows and a bare weight into K and ω.
pub(super) struct Scales {
    pub(super) value_value: ValueId,
    pub(super) gradient_value: ValueId,
    pub(super) gradient_gradient: ValueId,
}

impl Scales {
    pub(super) fn new(b: &mut Builder, at: &PointGeometry) -> Self {
        let Some(det) = at.det else {
            let weight = at.weight;
            return Self { value_value: weight, gradient_value: weight, gradient_gradient: weight };
        };
        let reciprocal = b.reciprocal(det);
        let size = b.unary(Unary::Abs, det);
        let value_value = b.mul(at.weight, size);
        let gradient_value = b.mul(value_value, reciprocal);
        let gradient_gradient = b.mul(gradient_value, reciprocal);
        Self { value_value, gradient_value, gradient_gradient }
    }
}

/// Returns the map of derivatives along reference axes to themselves.
pub(super) fn identity(b: &mut Builder, dim: usize) -> Vec<Vec<ValueId>> {
    let [zero, one] = [0.0, 1.0].map(|entry| b.constant(entry));
    (0..dim).map(|a| (0..dim).map(|i| if a == i { one } else { zero }).collect()).collect()
}
