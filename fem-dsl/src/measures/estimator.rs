//! A form → the form whose residual supplies the values at the points for an error estimator.
//!
//! The form's own fields are followed by one of `L2(0)`, which is never integrated. The factors of its components at a
//! point are 1, and for each field u of the form, with its own Jacobian block G of gradients, of gradients and values,
//! and of values,
//!
//! ```text
//! ∇u : G ∇u,   ∇u : G u + u · G ∇u,   u · G u      shares of the energy u J u
//! G ∇u                                             the flux of the linear problem
//! G u                                              where no field of the form has a flux
//! tr G / n                                         its mean coefficient, n derivatives
//! |∇u|²
//! ```
//!
//! In Hcurl and Hdiv the exterior derivative takes the place of the gradient.
//!
//! Boundary integrals with a penalty (`hn`) have no share of the energy.

use super::{further, unused};
use crate::point::{
    Binary, Graph, Input, Integral, Node, NodeId, Number, Part, PointForm, Side, Slot, is_affine,
};
use std::ops::Range;

/// A form with the input of an error estimator, and its components among those of all fields.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimatorForm {
    /// The form.
    pub form: PointForm,
    /// The component of 1.
    pub one: usize,
    /// The components of each of its own fields.
    pub fields: Vec<EstimatorComponents>,
}

/// The components for a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimatorComponents {
    /// True if an integral over cells tests gradients of the field, so that its equation has a flux; if none does for
    /// any field, true for the fields with terms between cells.
    pub has_flux: bool,
    /// Shares of the energy: of gradients, of gradients with values, of values.
    pub energy: [usize; 3],
    /// Its mean coefficient.
    pub coefficient: usize,
    /// |∇u|².
    pub slope: usize,
    /// G ∇u, component by component, or G u if no field has a flux.
    pub tangent: Range<usize>,
}

/// Returns the form of an error estimate.
pub fn estimator_form(form: &PointForm) -> EstimatorForm {
    let mut made = form.clone();
    made.name = format!("{}_estimate", form.name);
    let tests_gradient = |field: usize| {
        let tested = |(slot, _): &(Slot, NodeId)| slot.field == field && slot.part != Part::Value;
        let mut of_cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
        of_cells.any(|integral| integral.residual.iter().any(tested))
    };
    let has_facets = |field: usize| {
        let mut of_pairs = form.integrals.iter().filter(|integral| integral.region.is_interior());
        of_pairs.any(|integral| integral.residual.iter().any(|(slot, _)| slot.field == field))
    };
    let mut flows: Vec<bool> = (0..form.fields.len()).map(tests_gradient).collect();
    if !flows.contains(&true) {
        flows = (0..form.fields.len()).map(has_facets).collect();
    }
    let has_any = flows.contains(&true);
    let one = form.rows();
    let mut next = one + 1;
    let mut take = |count: usize| {
        next += count;
        next - count..next
    };
    let shares = form.fields.iter().zip(&flows).map(|(field, &has_flux)| {
        let first = take(5).start;
        let components = field.shape.components();
        let tangent = match (has_flux, has_any) {
            (true, _) if field.space.is_piola() => take(field.space.exterior_components(form.dim)),
            (true, _) => take(components * form.dim),
            (false, true) => take(0),
            (false, false) => take(components),
        };
        let energy = [first, first + 1, first + 2];
        EstimatorComponents { has_flux, energy, coefficient: first + 3, slope: first + 4, tangent }
    });
    let fields: Vec<EstimatorComponents> = shares.collect();
    let name = unused(&made, "estimated");
    made.fields.push(further(name, next - one));
    let slope = flows.contains(&false) && has_any;
    for integral in &mut made.integrals {
        extend(form, (one, &fields, slope), integral);
    }
    EstimatorForm { form: made, one, fields }
}

/// Adds the factors of the additional field in an integral.
fn extend(
    form: &PointForm,
    (one, fields, slope): (usize, &[EstimatorComponents], bool),
    own: &mut Integral,
) {
    let mut tested =
        SumBuilder { graph: std::mem::take(&mut own.graph), first: one, rows: Vec::new() };
    let of_cells = own.region.is_of_cells();
    if of_cells {
        let unit = tested.graph.intern(Node::Constant(Number::new(1.0)));
        tested.add(one, unit);
    }
    // Penalties on the boundary grow with refinement: they are no part of the energy of a solution.
    let penalises =
        |node: &Node| matches!(node, Node::Input(Input::Extent(_) | Input::PenaltyFactor(_)));
    let on_boundary = !of_cells && !own.region.is_interior();
    let counts = !(on_boundary && tested.graph.nodes().iter().any(penalises));
    for (field, shares) in fields.iter().enumerate() {
        let mut traced = 0;
        for entry in own.jacobian.iter() {
            let (test, trial) = (entry.test, entry.trial);
            if (test.field, trial.field) != (field, field) || !counts {
                continue;
            }
            let derived = [test, trial].into_iter().filter(|slot| slot.part != Part::Value);
            let derived = derived.count();
            let (u, v) = (tested.state(trial), tested.state(test));
            let flux = tested.product(entry.value, u);
            let energy = tested.product(flux, v);
            tested.add(shares.energy[2 - derived], energy);
            let wanted = if shares.has_flux { 2 } else { 0 };
            if derived != wanted || !of_cells || shares.tangent.is_empty() {
                continue;
            }
            let place = match test.part {
                Part::Value => test.component,
                Part::Derivative(axis) => test.component * form.dim + axis,
                // Kernels that store the values at the points have none.
                Part::Second(..) => continue,
                Part::Exterior(i) => i,
            };
            tested.add(shares.tangent.start + place, flux);
            if test == trial {
                traced += 1;
                tested.add(shares.coefficient, entry.value);
            }
        }
        if traced > 0 {
            let n = tested.graph.intern(Node::Constant(Number::new(shares.tangent.len() as f64)));
            tested.divide(shares.coefficient, n);
        }
        let own = &form.fields[field];
        let components = if slope && of_cells { own.shape.components() } else { 0 };
        let parts = (0..components).flat_map(|component| {
            let parts = Part::of_component(own.space, component, form.dim).into_iter().skip(1);
            parts.map(move |part| (component, part))
        });
        for (component, part) in parts {
            let u = tested.state(Slot { field, side: Side::Inside, component, part });
            let square = tested.product(u, u);
            tested.add(shares.slope, square);
        }
    }
    let SumBuilder { graph, mut rows, first } = tested;
    rows.sort_unstable();
    own.graph = graph;
    own.residual.extend(rows.into_iter().map(|(row, node)| {
        (
            Slot {
                field: form.fields.len(),
                side: Side::Inside,
                component: row - first,
                part: Part::Value,
            },
            node,
        )
    }));
    (own.action, own.jacobian, own.energy) = (Vec::new(), Vec::new(), None);
    own.symmetric = true;
    own.linear = is_affine(&own.graph, &own.residual, &own.jacobian);
}

/// Sums under construction.
struct SumBuilder {
    graph: Graph,
    /// The first row.
    first: usize,
    rows: Vec<(usize, NodeId)>,
}

impl SumBuilder {
    fn state(&mut self, slot: Slot) -> NodeId {
        self.graph.intern(Node::Input(Input::State(slot)))
    }

    fn product(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.graph.intern(Node::Binary(Binary::Mul, a, b))
    }

    fn add(&mut self, row: usize, term: NodeId) {
        match self.rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => *sum = self.graph.intern(Node::Binary(Binary::Add, *sum, term)),
            None => self.rows.push((row, term)),
        }
    }

    fn divide(&mut self, row: usize, by: NodeId) {
        for (_, sum) in self.rows.iter_mut().filter(|(known, _)| *known == row) {
            *sum = self.graph.intern(Node::Binary(Binary::Div, *sum, by));
        }
    }
}
