//! Weights that scale residuals to the energy, from coefficients and the energy of the state.

use super::between::PairSources;
use super::boundary::FacetSources;
use super::cells::{CellContribution, CellContributions};
use super::required::{FieldValues, RequiredValues};
use super::sum;
use crate::mesh::Mesh;

/// Lower bound of a coefficient, relative to its mean.
const LEAST: f64 = 1e-8;

/// Weights of residuals.
pub(super) struct ResidualWeights {
    /// s_K, `[weight][cell]`.
    of: Vec<Vec<f64>>,
    /// ‖u‖² of each field.
    pub(super) energies: Vec<f64>,
}

impl ResidualWeights {
    pub(super) fn new(
        wanted: &RequiredValues,
        cells: &CellContributions,
        sources: &FacetSources<'_>,
        between: &PairSources,
        mesh: &Mesh,
    ) -> Self {
        let n = mesh.n_cells();
        let total = |field: usize, of: &dyn Fn(&CellContribution) -> f64| {
            in_all(mesh, (0..n).map(|cell| of(cells.share(cell, field))))
        };
        let energies = wanted.fields.iter().enumerate().map(|(field, of)| {
            let share = |part: usize| {
                let on_boundary = of.energy[part].map_or(0.0, |number| sources.sum(number));
                let mut on_facets = [on_boundary + between.energy(field, part)];
                mesh.sum_in_all(&mut on_facets);
                total(field, &|share: &CellContribution| share.energy[part]) + on_facets[0]
            };
            energy([share(0), share(1), share(2)])
        });
        let energies: Vec<f64> = energies.collect();
        let flows = || wanted.fields.iter().enumerate().filter(|(_, of)| of.has_flux);
        let any = flows().next().is_some();
        let flow: f64 = flows().map(|(field, _)| energies[field]).sum();
        let slope: f64 = flows().map(|(field, _)| total(field, &|share| share.slope)).sum();
        let mut all = vec![Vec::new(); wanted.scales];
        for (field, of) in wanted.fields.iter().enumerate() {
            let own = |cell: usize| {
                let share = cells.share(cell, field);
                [share.coefficient, share.tangent, share.energy[if of.has_flux { 0 } else { 2 }]]
            };
            let mass = of.vector.as_ref().and_then(|vector| vector.mass.as_ref());
            all[field] = match (of.has_flux, of.vector.is_some()) {
                (false, false) if any => vec![quotient(flow, slope).unwrap_or(1.0); n],
                // Without an energy of the exterior derivative, ρ is no residual of the energy.
                _ if mass.is_some() => {
                    known(mesh, own, of.coefficient).unwrap_or_else(|| vec![0.0; n])
                }
                _ => local(mesh, own).unwrap_or_else(|| vec![1.0; n]),
            };
            if let Some(mass) = mass {
                let own = |cell: usize| {
                    let share = cells.share(cell, field);
                    [share.mass[0], share.mass[1], share.energy[2]]
                };
                all[mass.scale] =
                    known(mesh, own, mass.coefficient).unwrap_or_else(|| vec![0.0; n]);
            }
        }
        let mut masses = wanted.fields.iter().filter_map(|of| of.vector.as_ref()?.mass.as_ref());
        if let Some(mass) = masses.next() {
            let fluxes = all[mass.scale].clone();
            let fields = wanted.fields.iter().enumerate().filter(|(_, of)| of.is_divergence);
            fields.for_each(|(field, _)| all[field].clone_from(&fluxes));
        }
        Self { of: all, energies }
    }

    /// Returns s_K of a weight.
    pub(super) fn of(&self, cell: usize, weight: usize) -> f64 {
        self.of[weight][cell]
    }
}

/// Sums cell values over all processes.
fn in_all(mesh: &Mesh, of: impl Iterator<Item = f64>) -> f64 {
    let mut sums = [sum(&of.collect::<Vec<f64>>())];
    mesh.sum_in_all(&mut sums);
    sums[0]
}

/// Returns θ / κ_K of all cells, from κ_K, ∫ |G ∇u|² and ∫ ∇u : G ∇u; `None` without a coefficient.
fn local(mesh: &Mesh, of: impl Fn(usize) -> [f64; 3]) -> Option<Vec<f64>> {
    let n = mesh.n_cells();
    let sizes: Vec<f64> = (0..n).map(|cell| of(cell)[0].abs()).collect();
    let mean = in_all(mesh, sizes.iter().copied()) / mesh.cells_in_all().max(1) as f64;
    if mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let size = |cell: usize| sizes[cell].max(LEAST * mean);
    let energy = in_all(mesh, (0..n).map(|cell| of(cell)[2]));
    let fluxes = in_all(mesh, (0..n).map(|cell| of(cell)[1] / size(cell)));
    let theta = quotient(energy.abs(), fluxes).unwrap_or(1.0);
    Some((0..n).map(|cell| theta / size(cell)).collect())
}

/// Returns the same with 0 for the cells without a coefficient: there the residual is none of the energy.
fn known(
    mesh: &Mesh,
    of: impl Fn(usize) -> [f64; 3],
    coefficient: Option<usize>,
) -> Option<Vec<f64>> {
    coefficient?;
    let mut all = local(mesh, &of)?;
    let without = all.iter_mut().enumerate().filter(|(cell, _)| of(*cell)[0] == 0.0);
    without.for_each(|(_, scale)| *scale = 0.0);
    Some(all)
}

fn quotient(a: f64, b: f64) -> Option<f64> {
    Some(a / b).filter(|quotient| quotient.is_finite() && *quotient > 0.0)
}

/// Computes ‖u‖² from the shares of u · J u: gradient, mixed and value terms.
///
/// Mixed terms cancel for convection. If gradient and value terms have opposite signs, as in the Helmholtz equation,
/// the sum is no square, and their absolute values are added. The negative of an energy is treated alike.
fn energy([gradients, mixed, values]: [f64; 3]) -> f64 {
    let own = gradients.abs() + values.abs();
    if gradients * values < 0.0 {
        return own;
    }
    let sign = if gradients + values < 0.0 { -1.0 } else { 1.0 };
    let whole = own + sign * mixed;
    if whole > 0.0 { whole } else { own }
}

/// Returns the weight of ‖f0 − div σ‖² in a cell of a diameter and dimension.
///
/// Consider a smooth solution on a cube of side h. Along each axis, the derivative e' of its error is a multiple of the
/// Legendre polynomial of degree p. The derivative of that satisfies ‖e''‖² = 2 p (p + 1) (2p + 1) / h² · ‖e'‖². For
/// even p the residual alone represents the error, and jumps are of higher order. For odd p either represents all of
/// it, and each counts half.
pub(super) fn residual(of: &FieldValues, diameter: f64, dim: usize) -> f64 {
    if !of.has_flux && !of.is_divergence {
        return 1.0;
    }
    let (p, h) = (of.degree.max(1) as f64, side(diameter, dim));
    let part = if of.degree.is_multiple_of(2) { 1.0 } else { 0.5 };
    part * h * h / (2.0 * p * (p + 1.0) * (2.0 * p + 1.0))
}

/// Returns the weight of ∫ [σ · n]² ds, or of other traces, on a facet of a diameter, in a mesh of a dimension: half of h / 4 (2p + 1), the
/// ratio for the jumps of the same errors at odd p.
pub(super) fn jump(of: &FieldValues, diameter: f64, dim: usize) -> f64 {
    side(diameter, dim - 1) / (8.0 * (2.0 * of.degree.max(1) as f64 + 1.0))
}

/// Weight of ∫ (σ · n + f0)² ds on a facet without a neighbour, relative to jumps: the residual belongs to one side and
/// would be half of a jump, half of which belongs to a cell.
pub(super) const ALONE: f64 = 2.0;

/// Returns the side of a cube of a diameter.
fn side(diameter: f64, dim: usize) -> f64 {
    diameter / (dim.max(1) as f64).sqrt()
}
