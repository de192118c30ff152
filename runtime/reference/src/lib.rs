//! Reference implementation: residual, Jacobian action and diagonal of a form by full tabulation in f64.
//!
//! The definition, with quadrature points q, weights w_q, J = ∂x/∂ξ, and ∇ = J⁻ᵀ ∂_ξ:
//!
//! ```text
//! R_i(u)     = Σ_cells Σ_q w_q |det J|  Σ_test  ∂^test φ_i · r[test](u, ∇u, …)
//! (J(u)w)_i  = Σ_cells Σ_q w_q |det J|  Σ_test Σ_trial  ∂^test φ_i · G[test][trial] · ∂^trial w
//! diag_i     = Σ_cells Σ_q w_q |det J|  Σ_test Σ_trial  ∂^test φ_i · G[test][trial] · ∂^trial φ_i
//! ```
//!
//! and likewise over facets, where a reference or barycentric coordinate λ is 0. Their measure is w_q |det J| |∇λ| and
//! their outward normal −∇λ / |∇λ|.
//!
//! The action uses the coefficients G instead of the form's own action graph, so that the two can be compared. Every
//! number is a [`BoundedValue`], and [`assert_close!`](crate::assert_close) is the common tolerance of the project. The
//! interface uses plain slices and no mesh.
//!
//! This is a separate crate, which tests compile with full optimisation: they spend most of their time here.

mod bounded;
mod hanging;
mod point;
mod table;
#[cfg(test)]
mod tests;

pub use bounded::{BoundedValue, assert_all_close, check_close};
pub use hanging::{HangingFunctions, functions};

use fem_dsl::non_finite::PointInput;
use fem_dsl::point::{Input, Integral, Location, NodeId, Part, PointForm, Slot};
use kernels_gen::element::{Cell, ElementError, Lagrange, Rule, default_rule};
use kernels_gen::plan::{Elements, PlanError, tested};
use point::{Cursor, Point};
use table::BasisTable;

/// A form with its elements and its quadrature rule.
pub struct Reference<'a> {
    form: &'a PointForm,
    degree: usize,
    rule: Rule,
    geometry: ElementSpace,
    fields: Vec<ElementSpace>,
    /// `None` for data on cells and points.
    aux: Vec<Option<ElementSpace>>,
}

/// An element with its tabulation at the points of the rule.
struct ElementSpace {
    /// Its index among the spaces of the form: fields first, then data.
    number: usize,
    element: Lagrange,
    table: BasisTable,
    /// Tabulations at the points of each facet, if the form has facet integrals.
    facets: Vec<BasisTable>,
    /// For each cell, functions that differ from the element's own; empty if no cell has any.
    functions: Vec<Option<HangingFunctions>>,
}

impl ElementSpace {
    fn new(number: usize, element: Lagrange, rule: Rule, on_facets: bool) -> Self {
        let facets = if on_facets { 0..rule.cell().facets().len() } else { 0..0 };
        let facets = facets.map(|facet| BasisTable::on_facet(element, rule, facet)).collect();
        let table = BasisTable::new(element, rule);
        Self { number, element, table, facets, functions: Vec::new() }
    }

    /// Returns the tabulation at the current cell or facet.
    fn at(&self, cursor: Cursor) -> &BasisTable {
        cursor.facet.map_or(&self.table, |facet| &self.facets[facet])
    }
}

/// Nodal values.
#[derive(Clone, Copy, Debug)]
pub struct NodalValues<'a> {
    /// The number of each node of each cell: `[cell][node]`.
    pub map: &'a [u32],
    /// Node-major, components interleaved.
    pub values: &'a [f64],
}

/// Auxiliary data, by [`Location`].
#[derive(Clone, Copy, Debug)]
pub enum AuxData<'a> {
    /// At nodes.
    Nodes(NodalValues<'a>),
    /// `[cell][component]`
    Cells(&'a [f64]),
    /// `[cell][point][component]`
    Points(&'a [f64]),
}

/// Inputs of a form.
#[derive(Clone, Debug)]
pub struct FormInputs<'a> {
    /// Coordinates of the geometry's nodes: `[cell][node][axis]`.
    pub coordinates: &'a [f64],
    /// The state of each field.
    pub state: Vec<NodalValues<'a>>,
    /// All auxiliary data.
    pub aux: Vec<AuxData<'a>>,
    /// The components of all parameters, in order.
    pub params: &'a [f64],
    /// The time.
    pub time: f64,
    /// The facets of each integral, as cell and local facet; empty for integrals over cells.
    pub facets: Vec<Vec<(usize, usize)>>,
    /// The cells of each integral; `None` for all cells. Trailing entries may be omitted.
    pub cells: Vec<Option<Vec<u32>>>,
}

/// One vector per field, node-major, components interleaved.
pub type Vectors = Vec<Vec<BoundedValue>>;

impl<'a> Reference<'a> {
    /// Creates the form at degree `k` on cells of geometry order `g`, with the language's default rule or the rule of a
    /// given quadrature degree.
    pub fn new(
        form: &'a PointForm,
        cell: Cell,
        k: usize,
        g: usize,
        quadrature: Option<usize>,
    ) -> Result<Self, ElementError> {
        let degrees = form
            .fields
            .iter()
            .map(|field| Lagrange::in_space(cell, field.space, k).map(Lagrange::degree));
        let largest = degrees.collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or(k);
        Self::with_rule(form, k, g, default_rule(cell, largest, g, quadrature))
    }

    /// Creates the form at degree `k` on cells of geometry order `g`, with a given rule.
    pub fn with_rule(
        form: &'a PointForm,
        k: usize,
        g: usize,
        rule: Rule,
    ) -> Result<Self, ElementError> {
        let cell = rule.cell();
        assert_eq!(cell.dim(), form.dim, "the form should have the dimension of its cells");
        let interior = form.integrals.iter().any(|integral| integral.region.is_interior());
        assert!(!interior, "facets between cells should have been refused");
        let on_facets = form.integrals.iter().any(|integral| !integral.region.is_of_cells());
        let space = |number, element| ElementSpace::new(number, element, rule, on_facets);
        let spaces = |(number, element): (usize, Result<Lagrange, ElementError>)| {
            element.map(|element| space(number, element))
        };
        let fields = form.fields.iter().map(|field| Lagrange::in_space(cell, field.space, k));
        let aux = form.aux.iter().map(|aux| match aux.location {
            Location::Nodes(of) => Lagrange::in_space(cell, of, k).map(Some),
            Location::Cells | Location::Points => Ok(None),
        });
        Ok(Self {
            form,
            degree: k,
            rule,
            geometry: space(0, Lagrange::continuous(cell, g)?),
            fields: fields.enumerate().map(spaces).collect::<Result<_, _>>()?,
            aux: aux
                .zip(form.fields.len()..)
                .map(|(element, number)| Ok(element?.map(|element| space(number, element))))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Sets the functions of cells with hanging nodes in a field: for each cell those of its referenced nodes, if they
    /// differ from the element's own.
    pub fn with_functions(
        mut self,
        field: usize,
        functions: Vec<Option<HangingFunctions>>,
    ) -> Self {
        self.fields[field].functions = functions;
        self
    }

    /// Returns the quadrature rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns the element of a field.
    pub fn element(&self, field: usize) -> Lagrange {
        self.fields[field].element
    }

    /// Returns the residual R(u), of all integrals.
    pub fn residual(&self, inputs: &FormInputs) -> Vectors {
        let mut result = self.zeros(inputs);
        self.for_each_point(inputs, |integral, cursor, point| {
            let values = point.evaluate(self, &integral.graph, inputs, cursor);
            for &(test, node) in &integral.residual {
                self.add_tested(&mut result, inputs, cursor, point, test, values[node]);
            }
        });
        result
    }

    /// Returns the Jacobian action J(u)w by the coefficients G. `direction` is w, one vector per field.
    pub fn action(&self, inputs: &FormInputs, direction: &[&[f64]]) -> Vectors {
        let mut result = self.zeros(inputs);
        self.for_each_point(inputs, |integral, cursor, point| {
            let values = point.evaluate(self, &integral.graph, inputs, cursor);
            let mut trials: Vec<(Slot, BoundedValue)> = Vec::new();
            for entry in &integral.jacobian {
                let known = trials.iter().find(|(slot, _)| *slot == entry.trial);
                let trial = known.map(|&(_, trial)| trial).unwrap_or_else(|| {
                    let field = entry.trial.field;
                    let w = NodalValues { map: inputs.state[field].map, values: direction[field] };
                    let trial = self.slot(&self.fields[field], w, entry.trial, cursor, point);
                    trials.push((entry.trial, trial));
                    trial
                });
                let flux = values[entry.value] * trial;
                self.add_tested(&mut result, inputs, cursor, point, entry.test, flux);
            }
        });
        result
    }

    /// Returns the diagonal of the Jacobian.
    pub fn diagonal(&self, inputs: &FormInputs) -> Vectors {
        let mut result = self.zeros(inputs);
        self.for_each_point(inputs, |integral, cursor, point| {
            let values = point.evaluate(self, &integral.graph, inputs, cursor);
            for entry in &integral.jacobian {
                let (test, trial) = (entry.test, entry.trial);
                if (test.field, test.component) != (trial.field, trial.component) {
                    continue;
                }
                let space = &self.fields[test.field];
                let tests = point.functions(space, cursor, test.part);
                let trials = point.functions(space, cursor, trial.part);
                for (i, (&a, &b)) in tests.iter().zip(trials).enumerate() {
                    let at = self.place(inputs, cursor, test, i);
                    result[test.field][at] += point.measure * a * values[entry.value] * b;
                }
            }
        });
        result
    }

    /// Returns the tested quantities of an integral of the residual at its points, `[cell][point][number]` or
    /// `[facet][point][number]`. They are those of [`tested`], w |det J| f0 and w |det J| J⁻¹ f1, in the axes of the
    /// cell, on facets, too.
    pub fn flux(
        &self,
        inputs: &FormInputs,
        integral: usize,
    ) -> Result<Vec<BoundedValue>, PlanError> {
        let elements = Elements::new(self.form, self.rule.cell(), self.degree, self.rule)?;
        let (parts, mut all) = (tested(self.form, &elements, integral), Vec::new());
        self.for_each_point(inputs, |of, cursor, point| {
            if !std::ptr::eq(of, &self.form.integrals[integral]) {
                return;
            }
            let values = point.evaluate(self, &of.graph, inputs, cursor);
            let slots = of.residual.iter().filter(|(slot, _)| !elements.vanishes(*slot));
            let slots: Vec<(Slot, NodeId)> = slots.copied().collect();
            for &(row, part) in &parts {
                let own = slots.iter().filter(|(slot, _)| {
                    self.form.row(slot.field, slot.component) == row
                        && derivative(slot.part).is_some() == derivative(part).is_some()
                });
                let pulled = own.map(|&(slot, node)| values[node] * point.pulled(part, slot.part));
                all.push(point.measure * pulled.sum::<BoundedValue>());
            }
        });
        Ok(all)
    }

    /// Returns the integral of the form's energy density over the cells, if it has one.
    pub fn energy(&self, inputs: &FormInputs) -> Option<BoundedValue> {
        let mut sum = None;
        self.for_each_point(inputs, |integral, cursor, point| {
            if let Some(node) = integral.energy {
                let density = point.evaluate(self, &integral.graph, inputs, cursor)[node];
                *sum.get_or_insert(BoundedValue::ZERO) += point.measure * density;
            }
        });
        sum
    }

    /// Finds the first point at which an integral is not finite, else one at which its derivative is not. Returns the
    /// integral's number, whether it is the derivative, and all inputs of the form there.
    pub fn not_finite(&self, inputs: &FormInputs) -> Option<(usize, bool, PointInput)> {
        let [mut value, mut derivative] = [None, None];
        self.for_each_point(inputs, |integral, cursor, point| {
            let values = point.evaluate(self, &integral.graph, inputs, cursor);
            let finite = |node: NodeId| values[node].value.is_finite();
            let found = match () {
                () if !integral.residual.iter().all(|&(_, node)| finite(node)) => &mut value,
                () if !integral.jacobian.iter().all(|entry| finite(entry.value)) => &mut derivative,
                () => return,
            };
            let number = self.form.integrals.iter().position(|of| std::ptr::eq(of, integral));
            found.get_or_insert_with(|| {
                let read = |&input: &Input| (input, point.read(self, inputs, cursor, input).value);
                let wanted = fem_dsl::non_finite::inputs(self.form, &integral.region);
                (number.unwrap_or(0), wanted.iter().map(read).collect::<PointInput>())
            });
        });
        let (derived, found) = match (value, derivative) {
            (Some(found), _) => (false, found),
            (None, found) => (true, found?),
        };
        Some((found.0, derived, found.1))
    }

    /// Returns the physical coordinates of the quadrature points: `[cell][point][axis]`.
    pub fn coordinates(&self, inputs: &FormInputs) -> Vec<f64> {
        let mut all = Vec::new();
        let dim = self.form.dim;
        self.for_each_place(inputs, |_, point| {
            all.extend(point.x[..dim].iter().map(|x| x.value));
        });
        all
    }

    /// Calls `visit` for every point of every integral.
    fn for_each_point(
        &self,
        inputs: &FormInputs,
        mut visit: impl FnMut(&Integral, Cursor, &Point),
    ) {
        for (number, integral) in self.form.integrals.iter().enumerate() {
            if integral.region.is_of_cells() {
                let only = inputs.cells.get(number).and_then(Option::as_ref);
                let has = |cell: usize| {
                    only.is_none_or(|cells| cells.binary_search(&(cell as u32)).is_ok())
                };
                self.for_each_place(inputs, |cursor, point| {
                    if has(cursor.cell) {
                        visit(integral, cursor, point);
                    }
                });
                continue;
            }
            let facets = inputs.facets.get(number).map_or(&[][..], Vec::as_slice);
            for &facet in facets {
                self.on_facet(inputs, facet, |cursor, point| visit(integral, cursor, point));
            }
        }
    }

    /// Calls `visit` for every point of a facet of a cell.
    fn on_facet(
        &self,
        inputs: &FormInputs,
        (cell, facet): (usize, usize),
        mut visit: impl FnMut(Cursor, &Point),
    ) {
        let stride = self.geometry.element.count() * self.form.dim;
        let nodes = &inputs.coordinates[cell * stride..][..stride];
        let diameter = point::diameter(self.geometry.element, nodes);
        for (q, (_, weight)) in self.rule.on_facet().into_iter().enumerate() {
            let table = &self.geometry.facets[facet];
            let place = Point::new(table, self.sizes(), q, nodes, weight);
            let place = place.on_facet(self.rule.cell(), facet);
            visit(Cursor { cell, point: q, facet: Some(facet), diameter }, &place);
        }
    }

    fn for_each_place(&self, inputs: &FormInputs, mut visit: impl FnMut(Cursor, &Point)) {
        let weights = self.rule.weights();
        let stride = self.geometry.element.count() * self.form.dim;
        for (cell, nodes) in inputs.coordinates.chunks(stride).enumerate() {
            let diameter = point::diameter(self.geometry.element, nodes);
            for (q, &weight) in weights.iter().enumerate() {
                let place = Point::new(&self.geometry.table, self.sizes(), q, nodes, weight);
                visit(Cursor { cell, point: q, facet: None, diameter }, &place);
            }
        }
    }

    /// Adds ∫ ∂^test φ_i · flux at one point.
    fn add_tested(
        &self,
        result: &mut Vectors,
        inputs: &FormInputs,
        cursor: Cursor,
        point: &Point,
        test: Slot,
        flux: BoundedValue,
    ) {
        let functions = point.functions(&self.fields[test.field], cursor, test.part);
        for (i, &basis) in functions.iter().enumerate() {
            let at = self.place(inputs, cursor, test, i);
            result[test.field][at] += point.measure * basis * flux;
        }
    }

    /// Returns the index of a component of node `i` of a cell in the vector of its field.
    fn place(&self, inputs: &FormInputs, cursor: Cursor, slot: Slot, i: usize) -> usize {
        let nodes = self.fields[slot.field].element.count();
        let node = inputs.state[slot.field].map[cursor.cell * nodes + i] as usize;
        node * self.form.fields[slot.field].shape.components() + slot.component
    }

    /// Returns a component of a nodal function, or one of its physical derivatives, at a point. The slot's field
    /// determines the number of components.
    fn slot(
        &self,
        space: &ElementSpace,
        nodal: NodalValues,
        slot: Slot,
        cursor: Cursor,
        point: &Point,
    ) -> BoundedValue {
        let components = self.form.fields[slot.field].shape.components();
        point.interpolate(space, nodal, components, slot, cursor)
    }

    /// Returns the dimension, and the number of spaces.
    fn sizes(&self) -> (usize, usize) {
        (self.form.dim, self.fields.len() + self.aux.len())
    }

    fn zeros(&self, inputs: &FormInputs) -> Vectors {
        inputs.state.iter().map(|field| vec![BoundedValue::ZERO; field.values.len()]).collect()
    }
}

/// Returns the axis of a derivative, or `None` for a value.
fn derivative(part: Part) -> Option<usize> {
    match part {
        Part::Value => None,
        Part::Derivative(axis) => Some(axis),
    }
}
