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
//! their outward normal −∇λ / |∇λ|. Over facets between cells a test or trial function is on one of two sides; the
//! measure and the normal are those of the inside. diag_i then has the terms with both functions on one side: it lacks
//! those between the sides of a node that both cells have.
//!
//! The functions of a field of H(curl) or H(div) are vectors: ∂^test φ_i is a component of the physical function, or of its
//! curl or div, by Piola's maps of the reference function. They have one degree of freedom each.
//!
//! The action uses the coefficients G instead of the form's own action graph, so that the two can be compared. Every
//! number is a [`BoundedValue`], and [`assert_close!`](crate::assert_close) is the common tolerance of the project. The
//! interface uses plain slices and no mesh.
//!
//! This is a separate crate, which tests compile with full optimisation: they spend most of their time here.

mod bounded;
mod hanging;
mod pairs;
mod point;
mod table;
#[cfg(test)]
mod tests;

pub use bounded::{BoundedValue, assert_all_close, check_close};
pub use hanging::{HangingFunctions, functions};
pub use pairs::{CellPair, Cells, find_pairs};

use fem_dsl::non_finite::PointInput;
use fem_dsl::point::{Input, Integral, Location, NodeId, PointForm, Side, Slot};
use kernels_gen::element::{Cell, Element, ElementError, Lagrange, Rule, default_rule};
use kernels_gen::plan::{Elements, PlanError, needs_bends, tested};
use pairs::Placement;
use point::{Point, Sides};
use std::collections::BTreeMap;
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
    /// True if the form needs second derivatives of functions or of the map.
    second: bool,
    /// Tabulations of all spaces at the points of the cell.
    tables: Vec<BasisTable>,
    /// The same at the points of each facet, if the form has facet integrals.
    facets: Vec<Vec<BasisTable>>,
}

/// An element.
struct ElementSpace {
    /// The index of its first tabulation; of vector-valued functions there is one for each component.
    number: usize,
    element: Element,
    /// For each cell, functions that differ from the element's own; empty if no cell has any.
    functions: Vec<Option<HangingFunctions>>,
    /// True for each function of each cell whose sign is reversed, `[cell][function]`; empty if none is.
    reversed: Vec<bool>,
}

impl ElementSpace {
    /// Returns the number of entries of a node for a field with some components.
    fn stored(&self, components: usize) -> usize {
        if self.element.whitney().is_some() { 1 } else { components }
    }

    /// Returns the entry of a slot among those of a node.
    fn entry(&self, slot: Slot) -> usize {
        if self.element.whitney().is_some() { 0 } else { slot.component }
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
    /// The pairs of cells of each integral over facets between cells, empty for others. Trailing entries may be omitted.
    pub pairs: Vec<Vec<CellPair>>,
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
            .map(|field| Element::in_space(cell, field.space, k).map(Element::degree));
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
        let on_facets = form.integrals.iter().any(|integral| !integral.region.is_of_cells());
        let mut elements: Vec<Element> = Vec::new();
        let mut space = |element: Element| {
            let number = elements.len();
            elements.extend(scalars(element));
            ElementSpace { number, element, functions: Vec::new(), reversed: Vec::new() }
        };
        let fields = form.fields.iter().map(|field| Element::in_space(cell, field.space, k));
        let fields = fields.map(|element| element.map(&mut space)).collect::<Result<_, _>>()?;
        let aux = form.aux.iter().map(|aux| match aux.location {
            Location::Nodes(of) => Element::in_space(cell, of, k).map(Some),
            Location::Cells | Location::Points => Ok(None),
        });
        let aux = aux.map(|element| element.map(|element| element.map(&mut space)));
        let aux = aux.collect::<Result<_, _>>()?;
        let geometry = space(Lagrange::continuous(cell, g)?.into());
        let all = |table: &dyn Fn(Element) -> BasisTable| {
            elements.iter().map(|&element| table(element)).collect::<Vec<_>>()
        };
        let second = needs_bends(form);
        let facets = if on_facets { 0..cell.facets().len() } else { 0..0 };
        let facets =
            facets.map(|facet| all(&|of| BasisTable::on_facet(of, rule, facet, second))).collect();
        let tables = all(&|of| BasisTable::new(of, rule, second));
        Ok(Self { form, degree: k, rule, geometry, fields, aux, second, tables, facets })
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

    /// Sets which functions of each cell have the opposite sign in a field of H(curl) or H(div), `[cell][function]`.
    pub fn with_signs(mut self, field: usize, reversed: Vec<bool>) -> Self {
        self.fields[field].reversed = reversed;
        self
    }

    /// Sets the same for auxiliary data.
    pub fn with_data_signs(mut self, aux: usize, reversed: Vec<bool>) -> Self {
        if let Some(space) = &mut self.aux[aux] {
            space.reversed = reversed;
        }
        self
    }

    /// Returns the quadrature rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns the element of a field.
    pub fn element(&self, field: usize) -> Element {
        self.fields[field].element
    }

    /// Returns the residual R(u), of all integrals.
    pub fn residual(&self, inputs: &FormInputs) -> Vectors {
        let mut result = self.zeros(inputs);
        self.for_each_point(inputs, |integral, sides| {
            let values = sides.evaluate(self, &integral.graph, inputs);
            for &(test, node) in &integral.residual {
                self.add_tested(&mut result, inputs, sides, test, values[node]);
            }
        });
        result
    }

    /// Returns the Jacobian action J(u)w by the coefficients G. `direction` is w, one vector per field.
    pub fn action(&self, inputs: &FormInputs, direction: &[&[f64]]) -> Vectors {
        let mut result = self.zeros(inputs);
        self.for_each_point(inputs, |integral, sides| {
            let values = sides.evaluate(self, &integral.graph, inputs);
            let mut trials: Vec<(Slot, BoundedValue)> = Vec::new();
            for entry in &integral.jacobian {
                let known = trials.iter().find(|(slot, _)| *slot == entry.trial);
                let trial = known.map(|&(_, trial)| trial).unwrap_or_else(|| {
                    let field = entry.trial.field;
                    let w = NodalValues { map: inputs.state[field].map, values: direction[field] };
                    let trial = self.slot(w, entry.trial, sides);
                    trials.push((entry.trial, trial));
                    trial
                });
                let flux = values[entry.value] * trial;
                self.add_tested(&mut result, inputs, sides, entry.test, flux);
            }
        });
        result
    }

    /// Returns the diagonal of the Jacobian, without terms between both sides of a facet.
    pub fn diagonal(&self, inputs: &FormInputs) -> Vectors {
        let mut result = self.zeros(inputs);
        self.for_each_point(inputs, |integral, sides| {
            let values = sides.evaluate(self, &integral.graph, inputs);
            for entry in &integral.jacobian {
                let (test, trial) = (entry.test, entry.trial);
                let space = &self.fields[test.field];
                let of = |slot: Slot| (slot.field, space.entry(slot), slot.side);
                if of(test) != of(trial) {
                    continue;
                }
                let point = sides.on(test.side);
                let (tests, trials) = (point.functions(space, test), point.functions(space, trial));
                for (i, (&a, &b)) in tests.iter().zip(trials).enumerate() {
                    let at = self.place(inputs, point, test, i);
                    result[test.field][at] += sides.measure() * a * values[entry.value] * b;
                }
            }
        });
        result
    }

    /// Returns the Jacobian by the coefficients G as a dense matrix, the degrees of freedom field by field.
    pub fn matrix(&self, inputs: &FormInputs) -> Vec<Vec<BoundedValue>> {
        let mut first = vec![0];
        for field in &inputs.state {
            first.push(first[first.len() - 1] + field.values.len());
        }
        let n = first[inputs.state.len()];
        let mut result = vec![vec![BoundedValue::ZERO; n]; n];
        self.for_each_point(inputs, |integral, sides| {
            let values = sides.evaluate(self, &integral.graph, inputs);
            for entry in &integral.jacobian {
                let [test, trial] = [entry.test, entry.trial];
                let of = |slot: Slot| {
                    let point = sides.on(slot.side);
                    (point, point.functions(&self.fields[slot.field], slot))
                };
                let ((of_test, tests), (of_trial, trials)) = (of(test), of(trial));
                let value = sides.measure() * values[entry.value];
                for (i, &a) in tests.iter().enumerate() {
                    let row = first[test.field] + self.place(inputs, of_test, test, i);
                    for (j, &b) in trials.iter().enumerate() {
                        let at = first[trial.field] + self.place(inputs, of_trial, trial, j);
                        result[row][at] += value * a * b;
                    }
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
        self.for_each_point(inputs, |of, sides| {
            if !std::ptr::eq(of, &self.form.integrals[integral]) {
                return;
            }
            let values = sides.evaluate(self, &of.graph, inputs);
            let slots = of.residual.iter().filter(|(slot, _)| !elements.vanishes(*slot));
            let slots: Vec<(Slot, NodeId)> = slots.copied().collect();
            for &(row, part) in &parts {
                let own = slots.iter().filter(|(slot, _)| {
                    self.form.row(slot.field, slot.component) == row
                        && slot.part.order() == part.order()
                });
                let pulled = own.map(|&(slot, node)| {
                    values[node] * sides.on(slot.side).pulled(part, slot.part)
                });
                all.push(sides.measure() * pulled.sum::<BoundedValue>());
            }
        });
        Ok(all)
    }

    /// Returns the integral of the form's energy densities, if it has any.
    pub fn energy(&self, inputs: &FormInputs) -> Option<BoundedValue> {
        let mut sum = None;
        self.for_each_point(inputs, |integral, sides| {
            if let Some(node) = integral.energy {
                let density = sides.evaluate(self, &integral.graph, inputs)[node];
                *sum.get_or_insert(BoundedValue::ZERO) += sides.measure() * density;
            }
        });
        sum
    }

    /// Finds the first point at which an integral is not finite, else one at which its derivative is not. Returns the
    /// integral's number, whether it is the derivative, and all inputs of the form there.
    pub fn not_finite(&self, inputs: &FormInputs) -> Option<(usize, bool, PointInput)> {
        let [mut value, mut derivative] = [None, None];
        self.for_each_point(inputs, |integral, sides| {
            let values = sides.evaluate(self, &integral.graph, inputs);
            let finite = |node: NodeId| values[node].value.is_finite();
            let found = match () {
                () if !integral.residual.iter().all(|&(_, node)| finite(node)) => &mut value,
                () if !integral.jacobian.iter().all(|entry| finite(entry.value)) => &mut derivative,
                () => return,
            };
            let number = self.form.integrals.iter().position(|of| std::ptr::eq(of, integral));
            found.get_or_insert_with(|| {
                let read = |&input: &Input| (input, sides.read(self, inputs, input).value);
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
        self.for_each_place(inputs, |sides| {
            all.extend(sides.inside.x[..dim].iter().map(|x| x.value));
        });
        all
    }

    /// Calls `visit` for every point of every integral.
    fn for_each_point(&self, inputs: &FormInputs, mut visit: impl FnMut(&Integral, &Sides)) {
        let across = self.across(inputs);
        for (number, integral) in self.form.integrals.iter().enumerate() {
            if integral.region.is_of_cells() {
                let only = inputs.cells.get(number).and_then(Option::as_ref);
                let has = |cell: usize| {
                    only.is_none_or(|cells| cells.binary_search(&(cell as u32)).is_ok())
                };
                self.for_each_place(inputs, |sides| {
                    if has(sides.inside.cell) {
                        visit(integral, sides);
                    }
                });
                continue;
            }
            let facets = inputs.facets.get(number).map_or(&[][..], Vec::as_slice);
            let rule = self.rule.on_facet();
            for &facet in facets {
                for (q, &(_, weight)) in rule.iter().enumerate() {
                    let inside = self.on_facet(inputs, facet, &self.facets[facet.1], q, weight);
                    visit(integral, &Sides::one(inside));
                }
            }
            for pair in inputs.pairs.get(number).map_or(&[][..], Vec::as_slice) {
                let tables = |side: Side| match side == pair.points() {
                    true => &self.facets[pair.sides[side as usize].1],
                    false => &across[&pair.placement()],
                };
                for (q, &(_, weight)) in rule.iter().enumerate() {
                    let [inside, outside] = Side::ALL.map(|side| {
                        let facet = pair.sides[side as usize];
                        self.on_facet(inputs, facet, tables(side), q, weight)
                    });
                    visit(integral, &Sides::both(inside, outside, pair.points()));
                }
            }
        }
    }

    /// Tabulates all spaces of a cell for each placement of another one's facet that occurs.
    fn across(&self, inputs: &FormInputs) -> BTreeMap<Placement, Vec<BasisTable>> {
        let spaces = self.fields.iter().chain(self.aux.iter().flatten()).chain([&self.geometry]);
        let elements: Vec<Element> = spaces.flat_map(|space| scalars(space.element)).collect();
        let mut all = BTreeMap::new();
        for placement in inputs.pairs.iter().flatten().map(CellPair::placement) {
            let table = |&element: &Element| {
                BasisTable::across(element, self.rule, &placement, self.second)
            };
            all.entry(placement).or_insert_with(|| elements.iter().map(table).collect());
        }
        all
    }

    /// Returns point `q` of a facet of a cell, with the tabulations at the points of this facet.
    fn on_facet<'t>(
        &self,
        inputs: &FormInputs,
        (cell, facet): (usize, usize),
        tables: &'t [BasisTable],
        q: usize,
        weight: f64,
    ) -> Point<'t> {
        self.point(inputs, cell, tables, q, weight).on_facet(self.rule.cell(), facet)
    }

    /// Returns point `q` of a cell.
    fn point<'t>(
        &self,
        inputs: &FormInputs,
        cell: usize,
        tables: &'t [BasisTable],
        q: usize,
        weight: f64,
    ) -> Point<'t> {
        let stride = self.geometry.element.count() * self.form.dim;
        let nodes = &inputs.coordinates[cell * stride..][..stride];
        Point::new(self, cell, tables, q, nodes, weight)
    }

    fn for_each_place(&self, inputs: &FormInputs, mut visit: impl FnMut(&Sides)) {
        let weights = self.rule.weights();
        let stride = self.geometry.element.count() * self.form.dim;
        for cell in 0..inputs.coordinates.len() / stride {
            for (q, &weight) in weights.iter().enumerate() {
                let inside = self.point(inputs, cell, &self.tables, q, weight);
                visit(&Sides::one(inside));
            }
        }
    }

    /// Adds ∫ ∂^test φ_i · flux at one point.
    fn add_tested(
        &self,
        result: &mut Vectors,
        inputs: &FormInputs,
        sides: &Sides,
        test: Slot,
        flux: BoundedValue,
    ) {
        let point = sides.on(test.side);
        let functions = point.functions(&self.fields[test.field], test);
        for (i, &basis) in functions.iter().enumerate() {
            let at = self.place(inputs, point, test, i);
            result[test.field][at] += sides.measure() * basis * flux;
        }
    }

    /// Returns the index of a component of node `i` of a cell in the vector of its field.
    fn place(&self, inputs: &FormInputs, point: &Point, slot: Slot, i: usize) -> usize {
        let space = &self.fields[slot.field];
        let node = inputs.state[slot.field].map[point.cell * space.element.count() + i] as usize;
        let components = self.form.fields[slot.field].shape.components();
        node * space.stored(components) + space.entry(slot)
    }

    /// Returns a component of a nodal function of a field, or one of its physical derivatives, at a point.
    fn slot(&self, nodal: NodalValues, slot: Slot, sides: &Sides) -> BoundedValue {
        let components = self.form.fields[slot.field].shape.components();
        sides.on(slot.side).interpolate(&self.fields[slot.field], nodal, components, slot)
    }

    fn zeros(&self, inputs: &FormInputs) -> Vectors {
        inputs.state.iter().map(|field| vec![BoundedValue::ZERO; field.values.len()]).collect()
    }
}

/// Returns the scalar elements of an element: itself, or its components.
fn scalars(element: Element) -> Vec<Element> {
    match element.whitney() {
        Some(whitney) => {
            (0..whitney.cell().dim()).map(|a| Element::Component(whitney, a)).collect()
        }
        None => vec![element],
    }
}
