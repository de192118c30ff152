//! Residuals of fields in H(curl) and H(div), as differential forms on the reference cell.
//!
//! With û the pull-back of a test function, a kernel has r̂0 and r̂1 with f0 · v |det J| = r̂0 · û and f1 · dv |det J| =
//! r̂1 · dû, where d is curl or div:
//!
//! ```text
//! H(curl)   r̂0 = |det J| K f0     r̂1 = ± Jᵀ f1; in the plane ± f1     ρ = r̂0 + curl r̂1    δ = div r̂0
//! H(div)    r̂0 = ± Jᵀ f0          r̂1 = ± f1                           ρ = r̂0 − grad r̂1    δ = curl r̂0
//! ```
//!
//! ρ is the residual of the equation, and δ that of its gradients or curls: for v = grad ψ, or curl ψ, f1 does not
//! matter. Derivatives are those of the polynomials at the points ([`super::points`]), so that no geometry is differentiated.
//! On a facet with parameters s and t the residual is tested against û_s and û_t, or against the flux û · (∂s × ∂t):
//!
//! ```text
//! H(curl)   ρ^s = o r̂1_t,  ρ^t = −o r̂1_s; in the plane ρ^s = o r̂1     δ = r̂0 · N
//! H(div)    ρ = o r̂1      δ^s = o r̂0_t,  δ^t = −o r̂0_s; in the plane δ = −o r̂0_s
//! ```
//!
//! with o = ±1 the orientation of the frame ([`FacetFrame`](super::points::FacetFrame)). An integral over a boundary
//! facet adds g to ρ, and −∂_s g^s − ∂_t g^t, or (∂_t g, −∂_s g), to δ. Its terms on the facet's edges are left out.
//! (R. Beck, R. Hiptmair, R. Hoppe and B. Wohlmuth, "Residual based a posteriori error estimators for eddy current
//! computation", M2AN 34 (2000); D. Braess and R. Verfürth, "A posteriori error estimators for the Raviart-Thomas
//! element", SIAM J. Numer. Anal. 33 (1996).)

use super::boundary::FacetSources;
use super::cells::{CellContribution, PointReduction};
use super::points::{PointOperations, Projection};
use super::required::{FieldValues, Trace, TraceKind, VectorValues};
use crate::mesh::Facet;
use kernels_gen::element::WhitneyFamily;

/// Values of a function at the points, component by component.
type PointValues = Vec<Vec<f64>>;

/// Metric of a cell at its points, with the weights of the rule.
pub(super) struct CellMetric<'n> {
    /// w |det J|.
    pub(super) measures: &'n [f64],
    /// w |det J| Σ_i J_ia J_ib, a ≤ b.
    pub(super) products: Vec<&'n [f64]>,
}

/// Kind of a function of the reference cell, by which its norm depends on the map.
#[derive(Clone, Copy, Debug)]
enum FormKind {
    /// |det J| K v, a vector.
    Contravariant,
    /// Jᵀ v, a vector.
    Covariant,
    /// |det J| times a number.
    Density,
}

impl CellMetric<'_> {
    /// Returns the squared norm of a function over the cell, ‖v‖², with the weights of the rule.
    fn square(&self, kind: FormKind, values: &[Vec<f64>], weights: &[f64]) -> f64 {
        let dim = values.len();
        let at = |q: usize| {
            let (m, w) = (self.measures[q], weights[q]);
            let v = [0, 1, 2].map(|a| values.get(a).map_or(0.0, |values| w * values[q]));
            if let FormKind::Density = kind {
                return v[0] * v[0] / m;
            }
            let g = matrix(dim, |pair| self.products[pair][q] / m);
            match kind {
                FormKind::Covariant => quadratic(&inverse(&g), &v) * m / (w * w),
                _ => quadratic(&g, &v) / m,
            }
        };
        let is_zero = |q: usize| values.iter().all(|values| values[q] == 0.0);
        (0..weights.len()).filter(|&q| !is_zero(q)).map(at).sum()
    }
}

/// Returns a symmetric matrix from its entries a ≤ b, extended by ones on the diagonal.
fn matrix(dim: usize, entry: impl Fn(usize) -> f64) -> [[f64; 3]; 3] {
    let mut all = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let pairs = (0..dim).flat_map(|a| (a..dim).map(move |b| (a, b)));
    for (number, (a, b)) in pairs.enumerate() {
        all[a][b] = entry(number);
        all[b][a] = all[a][b];
    }
    all
}

fn quadratic(g: &[[f64; 3]; 3], v: &[f64; 3]) -> f64 {
    let row = |a: usize| v[a] * (0..3).map(|b| g[a][b] * v[b]).sum::<f64>();
    (0..3).map(row).sum()
}

fn inverse(g: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let minor = |a: usize, b: usize| {
        let ([i, j], [k, l]) = ([(a + 1) % 3, (a + 2) % 3], [(b + 1) % 3, (b + 2) % 3]);
        g[i][k] * g[j][l] - g[i][l] * g[j][k]
    };
    let determinant: f64 = (0..3).map(|b| g[0][b] * minor(0, b)).sum();
    [0, 1, 2].map(|a| [0, 1, 2].map(|b| minor(b, a) / determinant))
}

/// Returns the curl of a vector function, or in the plane of its components, from the derivatives `slope(axis, component)`.
fn add_curl(points: &PointOperations, values: &[Vec<f64>], into: &mut [Vec<f64>]) {
    let pairs: &[(usize, usize)] =
        if points.dim() == 2 { &[(0, 1)] } else { &[(1, 2), (2, 0), (0, 1)] };
    for (&(a, b), into) in pairs.iter().zip(into) {
        points.add_derivative(a, 1.0, &values[b], into);
        points.add_derivative(b, -1.0, &values[a], into);
    }
}

impl PointReduction<'_> {
    /// Computes ‖ρ‖² and ‖δ‖² of a field; stores its traces.
    pub(super) fn vector_residual<'n>(
        &self,
        cell: usize,
        (field, vector): (&FieldValues, &VectorValues),
        part: Option<&Projection>,
        of: &impl Fn(usize) -> &'n [f64],
        (share, traces): (&mut CellContribution, &mut [f64]),
    ) {
        let points = self.points;
        let (n, dim) = (points.count, points.dim());
        let density = |place: usize, factor: f64| -> Vec<f64> {
            of(place).iter().zip(&points.weights).map(|(f, w)| factor * f / w).collect()
        };
        let value = |a: usize| {
            let place = field.components[a].value;
            place.map_or_else(|| vec![0.0; n], |place| density(place, vector.signs[a]))
        };
        let values: PointValues = (0..dim).map(value).collect();
        let exterior = vector.exterior.as_ref().filter(|_| field.has_flux);
        let exterior: Option<PointValues> =
            exterior.map(|own| own.iter().map(|&(place, factor)| density(place, factor)).collect());
        let metric = CellMetric {
            measures: of(self.wanted.one),
            products: self.wanted.metric.iter().map(|&place| of(place)).collect(),
        };
        let mut residual = values.clone();
        if let Some(flux) = &exterior {
            match vector.family {
                WhitneyFamily::Curl if dim == 2 => {
                    points.add_derivative(1, 1.0, &flux[0], &mut residual[0]);
                    points.add_derivative(0, -1.0, &flux[0], &mut residual[1]);
                }
                WhitneyFamily::Curl => add_curl(points, flux, &mut residual),
                WhitneyFamily::Div => {
                    for (axis, into) in residual.iter_mut().enumerate() {
                        points.add_derivative(axis, -1.0, &flux[0], into);
                    }
                }
            }
        }
        let (kind, other) = match vector.family {
            WhitneyFamily::Curl => (FormKind::Contravariant, FormKind::Density),
            WhitneyFamily::Div if dim == 2 => (FormKind::Covariant, FormKind::Density),
            WhitneyFamily::Div => (FormKind::Covariant, FormKind::Contravariant),
        };
        let square = |kind: FormKind, mut values: PointValues| {
            if let Some(part) = part {
                values.iter_mut().for_each(|values| part.take(dim, values));
            }
            metric.square(kind, &values, &points.weights)
        };
        share.residual = square(kind, residual);
        if vector.mass.is_none() {
            return;
        }
        let mut derived = vec![vec![0.0; n]; if let FormKind::Density = other { 1 } else { 3 }];
        match vector.family {
            WhitneyFamily::Curl => {
                for (axis, values) in values.iter().enumerate() {
                    points.add_derivative(axis, 1.0, values, &mut derived[0]);
                }
            }
            WhitneyFamily::Div => add_curl(points, &values, &mut derived),
        }
        share.derived = square(other, derived);
        let all = VectorTraces { vector, values, exterior: exterior.unwrap_or_default() };
        for (local, traces) in traces.chunks_exact_mut(self.on_facet()).enumerate() {
            let view = self.faces.view(cell, local);
            for trace in &field.traces {
                let own = &mut traces[trace.first * points.on_facet..];
                all.trace(points, (local, view), trace, own);
            }
        }
    }
}

/// Functions of a cell whose traces are needed.
struct VectorTraces<'a> {
    vector: &'a VectorValues,
    values: PointValues,
    exterior: PointValues,
}

impl VectorTraces<'_> {
    /// Computes a trace on a facet, `[component][point]`.
    fn trace(
        &self,
        points: &PointOperations,
        (local, view): (usize, u8),
        trace: &Trace,
        into: &mut [f64],
    ) {
        let (frame, count) = (points.frame(local, view), points.on_facet);
        let is_flux = trace.scale < self.vector.mass.as_ref().map_or(0, |mass| mass.scale);
        let from = if is_flux { &self.exterior } else { &self.values };
        if from.is_empty() {
            return;
        }
        if let (WhitneyFamily::Curl, false) = (self.vector.family, is_flux) {
            points.through(local, view, &self.values.concat(), &mut into[..count]);
            return;
        }
        let at_facet: PointValues =
            from.iter().map(|values| points.at_facet(local, view, values)).collect();
        // A number, or the component along a parameter.
        let of = |axis: usize, factor: f64| -> Vec<f64> {
            let tangent = &frame.tangents[axis];
            let sum = |q: usize| -> f64 {
                at_facet.iter().zip(tangent).map(|(values, s)| s * values[q]).sum()
            };
            (0..count).map(|q| factor * sum(q)).collect()
        };
        let o = frame.orientation;
        let components = match (at_facet.len(), trace.kind) {
            (1, _) => vec![at_facet[0].iter().map(|value| o * value).collect()],
            (_, TraceKind::Tangential) => vec![of(1, o), of(0, -o)],
            (_, TraceKind::Value | TraceKind::Flux) => vec![of(0, -o)],
        };
        for (into, values) in into.chunks_exact_mut(count).zip(components) {
            into.copy_from_slice(&values);
        }
    }
}

/// Adds the integrands of facet integrals on a boundary facet to a trace of a field, `[component][point]`.
pub(super) fn add_sources(
    (field, vector): (&FieldValues, &VectorValues),
    trace: &Trace,
    facet: Facet,
    (sources, points): (&FacetSources<'_>, &PointOperations),
    into: &mut [f64],
) {
    let count = points.on_facet;
    let given = |a: usize| {
        let mut values = vec![0.0; count];
        let place = field.components[a].value;
        place.iter().for_each(|&number| sources.add(facet, number, &mut values));
        values.iter_mut().for_each(|value| *value *= vector.signs[a]);
        values
    };
    let dim = points.dim();
    let mut add = |component: usize, factor: f64, values: &[f64]| {
        let own = into[component * count..][..count].iter_mut();
        own.zip(values).for_each(|(to, value)| *to += factor * value);
    };
    let is_flux = vector.mass.as_ref().is_none_or(|mass| trace.scale != mass.scale);
    match (vector.family, is_flux) {
        (WhitneyFamily::Curl, true) => (1..dim).for_each(|a| add(a - 1, 1.0, &given(a))),
        (WhitneyFamily::Curl, false) => {
            (1..dim).for_each(|a| add(0, -1.0, &points.along_facet(a - 1, &given(a))));
        }
        (WhitneyFamily::Div, true) => add(0, 1.0, &given(0)),
        (WhitneyFamily::Div, false) if dim == 2 => {
            add(0, -1.0, &points.along_facet(0, &given(0)));
        }
        (WhitneyFamily::Div, false) => {
            let given = given(0);
            add(0, 1.0, &points.along_facet(1, &given));
            add(1, -1.0, &points.along_facet(0, &given));
        }
    }
}
