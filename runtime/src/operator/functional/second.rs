//! Second derivatives of nodal quantities at points of cells.
//!
//! ```text
//! ∂²u/∂x_i∂x_j = Σ_ab K_ai K_bj (∂²u/∂ξ_a∂ξ_b − Σ_l ∂u/∂x_l ∂²x_l/∂ξ_a∂ξ_b),      K = ∂ξ/∂x
//! ```

use super::NodalQuantity;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::{Input, Integral, Node, NodeId, Part, Slot, reachable};
use kernels_gen::element::{Lagrange, tabulate_seconds};

/// Second derivatives of basis functions at points: `[pair of axes][point · nodes + node]`.
type Seconds = Vec<Vec<f64>>;

/// Tables of second derivatives of the map of a cell and of nodal quantities.
pub(super) struct SecondTables {
    geometry: Seconds,
    quantities: Vec<Seconds>,
}

/// Returns whether a slot is a second derivative, or a gradient of a vector-valued function, which depends on those of the
/// map.
pub(super) fn is_second(on: &Discretisation, slot: Slot) -> bool {
    let is_vector = || on.fields.get(slot.field)?.space.element().whitney();
    match slot.part {
        Part::Derivative(_) => is_vector().is_some(),
        part => part.order() == 2,
    }
}

/// Returns whether some nodes of an integral's graph read second derivatives, or gradients of vector-valued functions.
pub(super) fn reads_second(on: &Discretisation, (integral, roots): (&Integral, &[NodeId])) -> bool {
    reachable(&integral.graph, roots).into_iter().any(|id| match integral.graph.nodes()[id] {
        Node::Input(Input::State(slot)) => is_second(on, slot),
        _ => false,
    })
}

impl SecondTables {
    pub(super) fn new(
        geometry: Lagrange,
        nodal: &[NodalQuantity<'_>],
        points: &[[f64; 3]],
    ) -> Self {
        // Vector-valued functions have no second derivatives.
        let of = |(space, _): &NodalQuantity<'_>| match space.element().whitney() {
            Some(_) => Seconds::new(),
            None => tabulate_seconds(space.element(), points),
        };
        Self {
            geometry: tabulate_seconds(geometry, points),
            quantities: nodal.iter().map(of).collect(),
        }
    }

    /// Returns the second derivatives of the map at a point of a cell, `[pair][component]`.
    pub(super) fn bends(&self, on: &Discretisation, cell: usize, q: usize) -> Vec<[f64; 3]> {
        let nodes = on.mesh.cell_nodes(cell);
        let of = |table: &Vec<f64>| {
            let mut bend = [0.0; 3];
            for (local, &node) in nodes.iter().enumerate() {
                let (factor, point) =
                    (table[q * nodes.len() + local], on.mesh.points()[node as usize]);
                bend.iter_mut().zip(point).for_each(|(bend, x)| *bend += factor * x);
            }
            bend
        };
        self.geometry.iter().map(of).collect()
    }

    /// Returns the second derivatives of a component at a point of a cell, a ≤ b in ascending order, from its values at
    /// the nodes and its gradient in physical space.
    pub(super) fn of_component(
        &self,
        quantity: usize,
        q: usize,
        values: &[f64],
        gradient: &[f64],
        (inverse, bends): (&[[f64; 3]; 3], &[[f64; 3]]),
    ) -> Vec<f64> {
        let dim = gradient.len();
        let reference: Vec<f64> = self.quantities[quantity]
            .iter()
            .zip(bends)
            .map(|(table, bend)| {
                let own = &table[q * values.len()..];
                let second: f64 = own.iter().zip(values).map(|(factor, u)| factor * u).sum();
                second - gradient.iter().zip(bend).map(|(slope, x)| slope * x).sum::<f64>()
            })
            .collect();
        let parts = Part::of_order(2, dim);
        let at = |a: usize, b: usize| {
            let pair = parts.iter().position(|&part| part == Part::second(a, b));
            reference[pair.expect("a pair of axes")]
        };
        let of = |part: &Part| {
            let Part::Second(i, j) = *part else { return 0.0 };
            let pairs = (0..dim).flat_map(|a| (0..dim).map(move |b| (a, b)));
            pairs.map(|(a, b)| inverse[a][i] * inverse[b][j] * at(a, b)).sum()
        };
        parts.iter().map(of).collect()
    }
}
