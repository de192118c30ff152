//! Mixed forms of diffusion: the diagonal for the flux, and the algebraic Schur complement for the pressure
//! ([`MixedPreconditioner`]).

use super::PreconditionerBuilder;
use crate::algebra::sparse::Csr;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::problem::context::Context;
use crate::problem::multigrid::matrices::{matrix_on_device, on_device, zeros_on_device};
use crate::solve::{Approximation, DeviceCopies, DiscreteDivergence, MixedPreconditioner};
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::MixedForm;
use kernels_gen::element::{Element, LinePoints, LineTable, Whitney};

/// Builder of the preconditioner of a mixed form.
pub(super) struct MixedFields(pub(super) MixedForm);

impl PreconditionerBuilder for MixedFields {
    fn build(
        &self,
        context: &Context,
        _: &Operator,
    ) -> Result<Result<Box<dyn Approximation>, String>, RunError> {
        let made =
            divergence(&context.on, &self.0, context.form().integrals.iter().all(|i| i.linear));
        Ok(made.map(|divergence| {
            let copies = DeviceCopies {
                matrix: matrix_on_device,
                levels: on_device,
                zeros: zeros_on_device,
            };
            Box::new(MixedPreconditioner::new(divergence, copies)) as Box<dyn Approximation>
        }))
    }
}

/// Returns the element of a flux whose divergence is what the pressure has functions for.
pub(super) fn flux_element(flux: Element, pressure: Element) -> Option<Whitney> {
    let (element, nodal) = (flux.whitney()?, pressure.lagrange()?);
    let fits = nodal.degree() + 1 == element.degree() && !nodal.is_continuous();
    (fits && nodal.cell().is_tensor()).then_some(element)
}

/// Returns the divergence of the flux of a mixed form; the error is the reason why there is none.
fn divergence(
    on: &Discretisation,
    mixed: &MixedForm,
    is_linear: bool,
) -> Result<DiscreteDivergence, String> {
    let [flux, pressure] = [mixed.flux, mixed.pressure].map(|field| &on.fields[field].space);
    let element = flux_element(flux.element(), pressure.element())
        .ok_or("the pressure has another degree than the divergence of the flux")?;
    if on.mesh.hanging().is_some() {
        return Err("cells of different size meet".to_owned());
    }
    let constraints = &on.fields[mixed.flux].constraints;
    let change = change(pressure, element.degree());
    Ok(DiscreteDivergence {
        flux: on.dofs_of(mixed.flux),
        pressure: on.dofs_of(mixed.pressure),
        incidence: incidence(on.mesh.n_cells(), flux, pressure, element),
        back: change.transposed(),
        change,
        factor: mixed.factor,
        is_given: (0..flux.n_dofs()).map(|dof| constraints.is_constrained(dof)).collect(),
        is_linear,
    })
}

/// Returns the cell of each degree of freedom of a discontinuous space, and its number there.
fn places(space: &Space, n_cells: usize) -> Vec<(usize, usize)> {
    let mut places = vec![(0, 0); space.n_dofs()];
    for cell in 0..n_cells {
        let nodes = space.cell_nodes(cell).iter().enumerate();
        nodes.for_each(|(local, &node)| places[node as usize] = (cell, local));
    }
    places
}

/// Returns C: for each box of the Gauss-Lobatto grid of a cell the fluxes out of it, and into it with −1.
fn incidence(n_cells: usize, flux: &Space, pressure: &Space, element: Whitney) -> Csr {
    let (k, dim) = (element.degree(), element.cell().dim());
    let at_box = |local: usize| [0, 1, 2].map(|axis| local / k.pow(axis) % k);
    let terms: Vec<Vec<(usize, f64)>> = (0..k.pow(dim as u32))
        .map(|local| {
            let at = at_box(local);
            (0..dim)
                .flat_map(|a| [(a, 0), (a, 1)])
                .map(|(a, up)| {
                    let mut lattice = at;
                    lattice[a] += up;
                    let [n, m, _] = element.extents(a);
                    let number =
                        lattice[0] + n * (lattice[1] + m * if dim == 3 { lattice[2] } else { 0 });
                    let outward = if up == 1 { 1.0 } else { -1.0 };
                    (element.first(a) + number, outward * element.sign(a))
                })
                .collect()
        })
        .collect();
    let places = places(pressure, n_cells);
    Csr::by_rows((places.len(), flux.n_dofs()), Vec::new, |row, own: &mut Vec<(u32, f64)>, rows| {
        let (cell, local) = places[row];
        let (nodes, reversed) = (flux.cell_nodes(cell), flux.cell_signs(cell));
        own.extend(terms[local].iter().map(|&(dof, value)| {
            let is_reversed = reversed.get(dof).is_some_and(|&reversed| reversed);
            (nodes[dof], if is_reversed { -value } else { value })
        }));
        own.sort_unstable_by_key(|entry| entry.0);
        own.drain(..).for_each(|(column, value)| rows.push(column, value));
    })
}

/// Returns G⁻¹: with the weights w_i of the Gauss points, its entry in one dimension is ∫ ℓ_i / w_i over interval m.
fn change(pressure: &Space, k: usize) -> Csr {
    let (points, ends) = (LinePoints::Gauss(k), LinePoints::GaussLobatto(k + 1).points());
    let (weights, at) = (points.weights(), points.points());
    let line = |m: usize, i: usize| -> f64 {
        let length = ends[m + 1] - ends[m];
        let inside: Vec<f64> = at.iter().map(|x| ends[m] + length * x).collect();
        let table = LineTable::at(points, &inside);
        let integral: f64 = (0..k).map(|q| weights[q] * table.value(q, i)).sum();
        length * integral / weights[i]
    };
    let lines: Vec<f64> = (0..k * k).map(|at| line(at / k, at % k)).collect();
    let element = pressure.nodal();
    let (dim, count) = (element.cell().dim(), element.count());
    let entry = |row: usize, column: usize| -> f64 {
        let digit = |number: usize, axis: u32| number / k.pow(axis) % k;
        (0..dim as u32).map(|axis| lines[digit(row, axis) * k + digit(column, axis)]).product()
    };
    let entries: Vec<f64> = (0..count * count).map(|at| entry(at / count, at % count)).collect();
    let places = places(pressure, pressure.nodes().len() / count);
    let n = places.len();
    Csr::by_rows((n, n), Vec::new, |row, own: &mut Vec<(u32, f64)>, rows| {
        let (cell, local) = places[row];
        let nodes = pressure.cell_nodes(cell).iter();
        own.extend(nodes.zip(&entries[local * count..]).map(|(&node, &entry)| (node, entry)));
        own.sort_unstable_by_key(|entry| entry.0);
        own.drain(..).for_each(|(column, value)| rows.push(column, value));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::testing::problem;
    use fem_dsl::point;
    use kernels_gen::element::tabulate;

    /// B of the nodal basis is G C: checked on the divergence of each flux, at the nodes of the pressure.
    #[test]
    fn nodal_divergence_is_the_change_of_basis_of_incidence() {
        for (mesh, k) in [
            ("box(dim: 2, cells: 2, deform: 0.1)", 1),
            ("box(dim: 2, cells: 2, deform: 0.1)", 4),
            ("box(dim: 3, cells: 2, deform: 0.1)", 2),
        ] {
            let text = format!(
                "form f {{ field u: vector in Hdiv(k); field p: scalar in L2(k - 1);
                   f0[u] = u; f1[u] = -p; f0[p] = -div(u); }}
                 problem p solves f {{ mesh = {mesh}; degree = {k}; }}"
            );
            let context = problem(&text);
            let on = &context.on;
            let mixed = point::mixed(context.form()).expect("a mixed form");
            let made = divergence(on, &mixed, true).expect("a divergence");
            let element = on.fields[0].space.element().whitney().expect("vectors");
            let (cell, nodal) = (element.cell(), on.fields[1].space.nodal());
            let points = nodal.points();
            let (dim, weights) = (cell.dim(), LinePoints::Gauss(k).weights());
            let (flux, dofs) = (&on.fields[0].space, element.dofs());
            for own in 0..on.mesh.n_cells() {
                for (local, &dof) in flux.cell_nodes(own).iter().enumerate() {
                    let reversed = flux.cell_signs(own).get(local) == Some(&true);
                    let sign = if reversed { -1.0 } else { 1.0 };
                    let a = dofs[local].component;
                    let component = Element::Component(element, a);
                    let table = tabulate(component, &points);
                    let mut tested = vec![0.0; made.pressure.len()];
                    for (i, &node) in on.fields[1].space.cell_nodes(own).iter().enumerate() {
                        let weight: f64 =
                            (0..dim as u32).map(|axis| weights[i / k.pow(axis) % k]).product();
                        let slope = table.gradient(i, local - element.first(a))[a];
                        tested[node as usize] = sign * weight * element.sign(a) * slope;
                    }
                    let mut boxes = vec![0.0; tested.len()];
                    made.change.apply(&tested, &mut boxes);
                    for &node in on.fields[1].space.cell_nodes(own) {
                        let row = made.incidence.row(node as usize);
                        let wanted: f64 =
                            row.filter(|(column, _)| *column == dof as usize).map(|(_, v)| v).sum();
                        assert!((boxes[node as usize] - wanted).abs() < 1e-11, "{cell} {k}");
                    }
                }
            }
        }
    }
}
