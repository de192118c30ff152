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
//! In Hcurl and Hdiv the exterior derivative takes the place of the gradient. A field that has a flux there has G u and its
//! mean coefficient, too: they belong to the residual of gradients or curls, of which the exterior derivative is 0. Norms
//! of residuals in the reference cell need its metric Σ_i J_ia J_ib. Where the values of two such fields are coupled, as
//! real and imaginary parts are, sizes of their coefficients add up.
//!
//! Boundary integrals with a penalty (`hn`) have no share of the energy.

use super::further;
use crate::point::{
    Binary, Graph, Input, Integral, Node, NodeId, Number, Part, PointForm, Side, Slot, Unary,
    is_affine,
};
use std::ops::Range;

/// A form with the input of an error estimator, and its components among those of all fields.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimatorForm {
    /// The form.
    pub form: PointForm,
    /// The component of 1.
    pub one: usize,
    /// The components of the metric Σ_i J_ia J_ib, a ≤ b; none without fields in Hcurl and Hdiv.
    pub metric: Range<usize>,
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
    /// G ∇u, component by component; G u if no field has a flux, or of a field in Hcurl and Hdiv without a flux.
    pub tangent: Range<usize>,
    /// The values of a field in Hcurl or Hdiv with a flux.
    pub mass: Option<MassComponents>,
}

/// The components for the values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MassComponents {
    /// The mean coefficient.
    pub coefficient: usize,
    /// G u.
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
        let (components, is_piola) = (field.shape.components(), field.space.is_piola());
        let tangent = match (has_flux, has_any) {
            (true, _) if is_piola => take(field.space.exterior_components(form.dim)),
            (true, _) => take(components * form.dim),
            (false, true) if !is_piola => take(0),
            (false, _) => take(components),
        };
        let mass = (has_flux && is_piola)
            .then(|| MassComponents { coefficient: take(1).start, tangent: take(components) });
        let energy = [first, first + 1, first + 2];
        let (coefficient, slope) = (first + 3, first + 4);
        EstimatorComponents { has_flux, energy, coefficient, slope, tangent, mass }
    });
    let fields: Vec<EstimatorComponents> = shares.collect();
    let has_piola = form.fields.iter().any(|field| field.space.is_piola());
    let metric = take(if has_piola { form.dim * (form.dim + 1) / 2 } else { 0 });
    let name = made.unused_name("estimated");
    made.fields.push(further(name, next - one));
    let slope = flows.contains(&false) && has_any;
    for integral in &mut made.integrals {
        extend(form, (one, &metric, &fields, slope), integral);
    }
    EstimatorForm { form: made, one, metric, fields }
}

/// Adds the factors of the additional field in an integral.
fn extend(
    form: &PointForm,
    (one, metric, fields, slope): (usize, &Range<usize>, &[EstimatorComponents], bool),
    own: &mut Integral,
) {
    let mut tested =
        SumBuilder { graph: std::mem::take(&mut own.graph), first: one, rows: Vec::new() };
    let of_cells = own.region.is_of_cells();
    if of_cells {
        let unit = tested.graph.intern(Node::Constant(Number::new(1.0)));
        tested.add(one, unit);
        tested.add_metric(metric, form.dim);
    }
    // Penalties on the boundary grow with refinement: they are no part of the energy of a solution.
    let penalises =
        |node: &Node| matches!(node, Node::Input(Input::Extent(_) | Input::PenaltyFactor(_)));
    let on_boundary = !of_cells && !own.region.is_interior();
    let counts = !(on_boundary && tested.graph.nodes().iter().any(penalises));
    for (field, shares) in fields.iter().enumerate() {
        let (first, mass) = (shares.coefficient, shares.mass.as_ref());
        let mut flux = MeanCoefficient::new(first, shares.tangent.clone());
        let mut values =
            mass.map(|mass| MeanCoefficient::new(mass.coefficient, mass.tangent.clone()));
        for entry in own.jacobian.iter().filter(|entry| entry.test.field == field && counts) {
            let (test, mut trial, mut value) = (entry.test, entry.trial, entry.value);
            if of_cells && mass.is_some() && is_size(form, test, trial) {
                (trial, value) = (test, tested.size(value));
            }
            if trial.field != field {
                continue;
            }
            let derived = [test, trial].into_iter().filter(|slot| slot.part != Part::Value);
            let derived = derived.count();
            let (u, v) = (tested.state(trial), tested.state(test));
            let product = tested.product(value, u);
            let energy = tested.product(product, v);
            tested.add(shares.energy[2 - derived], energy);
            let wanted = if shares.has_flux { 2 } else { 0 };
            let mean = match derived {
                _ if !of_cells => None,
                own if own == wanted => Some(&mut flux),
                0 => values.as_mut(),
                _ => None,
            };
            let place = match test.part {
                Part::Value => test.component,
                Part::Derivative(axis) => test.component * form.dim + axis,
                // Kernels that store the values at the points have none.
                Part::Second(..) => continue,
                Part::Exterior(i) => i,
            };
            if let Some(mean) = mean {
                mean.add(&mut tested, place, product, (test == trial).then_some(value));
            }
        }
        [Some(flux), values].into_iter().flatten().for_each(|mean| mean.end(&mut tested));
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

/// Returns whether the size of an entry counts as one of the test's field alone: of two fields of one space whose values
/// are coupled, as the real and the imaginary part of −ω²ε + iωσ.
fn is_size(form: &PointForm, test: Slot, trial: Slot) -> bool {
    let of_values = |a: Slot, b: Slot| {
        (a.part, b.part) == (Part::Value, Part::Value) && a.component == b.component
    };
    let is_partner = |other: usize| {
        other != test.field && form.fields[other].space == form.fields[test.field].space
    };
    let couples = |integral: &Integral| {
        let mut entries = integral.jacobian.iter();
        let of_cells = integral.region.is_of_cells();
        of_cells
            && entries.any(|entry| {
                let (a, b) = (entry.test, entry.trial);
                a.field == test.field && is_partner(b.field) && of_values(a, b)
            })
    };
    of_values(test, trial)
        && (trial.field == test.field || is_partner(trial.field))
        && form.integrals.iter().any(couples)
}

/// A mean coefficient and its flux under construction.
struct MeanCoefficient {
    coefficient: usize,
    tangent: Range<usize>,
    is_known: bool,
}

impl MeanCoefficient {
    fn new(coefficient: usize, tangent: Range<usize>) -> Self {
        Self { coefficient, tangent, is_known: false }
    }

    /// Adds a term of the flux, and the entry of G if it is on the diagonal.
    fn add(&mut self, to: &mut SumBuilder, place: usize, flux: NodeId, entry: Option<NodeId>) {
        if self.tangent.is_empty() {
            return;
        }
        to.add(self.tangent.start + place, flux);
        if let Some(entry) = entry {
            self.is_known = true;
            to.add(self.coefficient, entry);
        }
    }

    /// Divides the trace by its number of entries.
    fn end(self, to: &mut SumBuilder) {
        if self.is_known {
            let n = to.graph.intern(Node::Constant(Number::new(self.tangent.len() as f64)));
            to.divide(self.coefficient, n);
        }
    }
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

    fn size(&mut self, value: NodeId) -> NodeId {
        self.graph.intern(Node::Unary(Unary::Abs, value))
    }

    fn add(&mut self, row: usize, term: NodeId) {
        match self.rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => *sum = self.graph.intern(Node::Binary(Binary::Add, *sum, term)),
            None => self.rows.push((row, term)),
        }
    }

    /// Adds the components of Σ_i J_ia J_ib, a ≤ b.
    fn add_metric(&mut self, rows: &Range<usize>, dim: usize) {
        let pairs = (0..dim).flat_map(|a| (a..dim).map(move |b| (a, b)));
        for (row, (a, b)) in rows.clone().zip(pairs) {
            for i in 0..dim {
                let [a, b] = [a, b].map(|axis| {
                    self.graph.intern(Node::Input(Input::Tangent(Side::Inside, axis, i)))
                });
                let term = self.product(a, b);
                self.add(row, term);
            }
        }
    }

    fn divide(&mut self, row: usize, by: NodeId) {
        for (_, sum) in self.rows.iter_mut().filter(|(known, _)| *known == row) {
            *sum = self.graph.intern(Node::Binary(Binary::Div, *sum, by));
        }
    }
}
