//! A quadrature point of a cell, or of both cells at a facet: its geometry, and the inputs of a form there.

use super::bounded::evaluate;
use super::table::BasisTable;
use super::{AuxData, BoundedValue, ElementSpace, FormInputs, NodalValues, Reference};
use fem_dsl::arena::IndexVec;
use fem_dsl::point::{Graph, Input, NodeId, Part, Side, Slot};
use kernels_gen::element::{Cell, Element, Whitney, WhitneyFamily};
use std::cell::OnceCell;

/// A point of a cell with its geometry there.
pub(super) struct Point<'t> {
    dim: usize,
    pub(super) cell: usize,
    /// Its index in the rule.
    q: usize,
    /// Tabulations of all spaces at the points of the rule.
    tables: &'t [BasisTable],
    /// The cell's diameter.
    diameter: BoundedValue,
    /// Physical coordinates.
    pub(super) x: [BoundedValue; 3],
    /// The quadrature weight times |det J|.
    measure: BoundedValue,
    /// J⁻¹: ∂ξ_k/∂x_j at `[k][j]`.
    inverse: [[BoundedValue; 3]; 3],
    /// J: ∂x_i/∂ξ_a at `[i][a]`.
    jacobian: [[BoundedValue; 3]; 3],
    /// det J.
    determinant: BoundedValue,
    /// ∂²x_l/∂ξ_a∂ξ_b at `[l][a][b]`, if the form has second derivatives.
    bends: Option<[[[BoundedValue; 3]; 3]; 3]>,
    /// The outward unit normal, on facets.
    normal: [BoundedValue; 3],
    /// The extent of the cell from the facet, 1 / |∇λ|, on facets.
    extent: BoundedValue,
    /// Cached results of [`Self::functions`]: for each space the values, the derivatives along each axis, and second
    /// derivatives along each pair of axes.
    functions: Vec<OnceCell<Vec<BoundedValue>>>,
}

impl<'t> Point<'t> {
    /// Creates point `q` of a cell with these coordinates of the geometry nodes, `[node][axis]`, from the tabulations of
    /// all spaces.
    pub(super) fn new(
        reference: &Reference,
        cell: usize,
        tables: &'t [BasisTable],
        q: usize,
        nodes: &[f64],
        weight: f64,
    ) -> Self {
        let (dim, geometry) = (reference.form.dim, &reference.geometry);
        let table = &tables[geometry.number];
        let sum = |axis: usize, part: Part| -> BoundedValue {
            let term = |i| table.entry(q, i, part) * BoundedValue::new(nodes[i * dim + axis]);
            (0..table.nodes()).map(term).sum()
        };
        let mut x = [BoundedValue::ZERO; 3];
        let mut jacobian = [[BoundedValue::ZERO; 3]; 3];
        for axis in 0..3 {
            // The remaining axes are those of the identity.
            jacobian[axis][axis] = BoundedValue { value: 1.0, scale: 0.0 };
        }
        for axis in 0..dim {
            x[axis] = sum(axis, Part::Value);
            for along in 0..dim {
                jacobian[axis][along] = sum(axis, Part::Derivative(along));
            }
        }
        let bends = reference.second.then(|| {
            let of = |l: usize, a: usize, b: usize| match l.max(a).max(b) < dim {
                true => sum(l, Part::second(a, b)),
                false => BoundedValue::ZERO,
            };
            [0, 1, 2].map(|l| [0, 1, 2].map(|a| [0, 1, 2].map(|b| of(l, a, b))))
        });
        let (determinant, inverse) = invert(&jacobian);
        // A cell may be mirrored.
        let size = if determinant.value < 0.0 { -determinant } else { determinant };
        let (measure, normal) = (BoundedValue::new(weight) * size, [BoundedValue::ZERO; 3]);
        let functions = vec![OnceCell::new(); tables.len() * (1 + dim + dim * dim)];
        let (extent, diameter) = (BoundedValue::ZERO, diameter(geometry.element, nodes));
        Self {
            dim,
            cell,
            q,
            tables,
            diameter,
            x,
            measure,
            inverse,
            jacobian,
            determinant,
            bends,
            normal,
            extent,
            functions,
        }
    }

    /// Returns the same point on a facet, where the coordinate λ is 0.
    pub(super) fn on_facet(self, cell: Cell, facet: usize) -> Self {
        let mut along = [0.0; 3];
        match (cell.is_tensor(), facet) {
            (true, _) => along[facet / 2] = if facet.is_multiple_of(2) { 1.0 } else { -1.0 },
            (false, 0) => along[..self.dim].fill(-1.0),
            (false, _) => along[facet - 1] = 1.0,
        }
        let mut gradient = [BoundedValue::ZERO; 3];
        for (j, entry) in gradient.iter_mut().enumerate().take(self.dim) {
            *entry = (0..self.dim).map(|k| BoundedValue::new(along[k]) * self.inverse[k][j]).sum();
        }
        let length = gradient.iter().map(|&g| g * g).sum::<BoundedValue>().sqrt();
        let normal = gradient.map(|g| -(g / length));
        let extent = BoundedValue::new(1.0) / length;
        Self { measure: self.measure * length, normal, extent, ..self }
    }

    /// Returns the basis function φ_i, or its derivative along a physical axis: Σ_k ∂φ_i/∂ξ_k ∂ξ_k/∂x_j. Second ones
    /// are Σ_ab ∂ξ_a/∂x_j ∂ξ_b/∂x_k (∂²φ_i/∂ξ_a∂ξ_b − Σ_l ∂φ_i/∂x_l ∂²x_l/∂ξ_a∂ξ_b).
    fn basis(&self, table: &BasisTable, i: usize, part: Part) -> BoundedValue {
        match part {
            Part::Value => table.entry(self.q, i, Part::Value),
            Part::Derivative(j) => {
                let mut sum = BoundedValue::ZERO;
                for (k, inverse) in self.inverse[..self.dim].iter().enumerate() {
                    sum += table.entry(self.q, i, Part::Derivative(k)) * inverse[j];
                }
                sum
            }
            Part::Second(j, k) => {
                let bends =
                    self.bends.expect("a form with second derivatives has those of the map");
                let mut sum = BoundedValue::ZERO;
                for a in 0..self.dim {
                    for b in 0..self.dim {
                        let mut second = table.entry(self.q, i, Part::second(a, b));
                        for (l, bend) in bends[..self.dim].iter().enumerate() {
                            second =
                                second - self.basis(table, i, Part::Derivative(l)) * bend[a][b];
                        }
                        sum += self.inverse[a][j] * self.inverse[b][k] * second;
                    }
                }
                sum
            }
            Part::Exterior(_) => unreachable!("Lagrange functions have no exterior derivative"),
        }
    }

    /// Returns the functions of the referenced nodes of a cell, or their physical derivatives: φ_i, or Σ_j C_ji φ_j
    /// with hanging nodes; of vector-valued functions the component of a slot. Computed on first use.
    pub(super) fn functions(&self, space: &ElementSpace, slot: Slot) -> &[BoundedValue] {
        let (part, whitney) = (slot.part, space.element.whitney());
        let of_part = match (part, whitney.is_some()) {
            (Part::Value, true) => slot.component,
            (Part::Exterior(i), true) => self.dim + i,
            (Part::Derivative(axis), true) => self.dim + 3 + slot.component * self.dim + axis,
            (Part::Value, false) => 0,
            (Part::Derivative(axis), false) => 1 + axis,
            (Part::Second(a, b), false) => 1 + self.dim + a * self.dim + b,
            _ => unreachable!("{} has no {part:?}", space.element),
        };
        let number = space.number * (1 + self.dim + self.dim * self.dim) + of_part;
        self.functions[number].get_or_init(|| {
            if let Some(element) = whitney {
                return self.vectors(element, space, slot);
            }
            let (table, nodes) = (&self.tables[space.number], 0..space.element.count());
            let basis = nodes.map(|i| self.basis(table, i, part));
            let basis: Vec<BoundedValue> = basis.collect();
            let Some(Some(functions)) = space.functions.get(self.cell) else { return basis };
            let of = |&(j, factor): &(usize, f64)| BoundedValue::new(factor) * basis[j];
            functions.iter().map(|function| function.iter().map(of).sum()).collect()
        })
    }

    /// Returns a component of the physical functions of an element of H(curl) or H(div), or of their exterior derivatives:
    /// with û = ±φ̂ e_a in the reference cell u = J⁻ᵀ û and curl u = J (∇φ̂ × e_a) / det J, or u = J û / det J and
    /// div u = ∂_a φ̂ / det J; gradients are those of the products.
    fn vectors(&self, element: Whitney, space: &ElementSpace, slot: Slot) -> Vec<BoundedValue> {
        let mut all = Vec::with_capacity(element.count());
        for a in 0..self.dim {
            let table = &self.tables[space.number + a];
            let sign = BoundedValue { value: element.sign(a), scale: 0.0 };
            let derivative = |i, axis| table.entry(self.q, i, Part::Derivative(axis));
            for i in 0..table.nodes() {
                let value = table.entry(self.q, i, Part::Value);
                let function = match (element.family(), slot.part) {
                    (WhitneyFamily::Curl, Part::Value) => self.inverse[a][slot.component] * value,
                    (WhitneyFamily::Div, Part::Value) => {
                        self.jacobian[slot.component][a] * value / self.determinant
                    }
                    (_, Part::Derivative(axis)) => {
                        let slopes = [0, 1, 2].map(|b| match b < self.dim {
                            true => derivative(i, b),
                            false => BoundedValue::ZERO,
                        });
                        self.gradient(element.family(), (slot.component, a), axis, (value, slopes))
                    }
                    (WhitneyFamily::Div, _) => derivative(i, a) / self.determinant,
                    (WhitneyFamily::Curl, Part::Exterior(_)) if self.dim == 2 => {
                        let of = derivative(i, 1 - a) / self.determinant;
                        if a == 1 { of } else { -of }
                    }
                    (WhitneyFamily::Curl, Part::Exterior(row)) => {
                        // ∇φ̂ × e_a has the components ∂_c φ̂ along b and −∂_b φ̂ along c, with a, b, c cyclic.
                        let (b, c) = ((a + 1) % 3, (a + 2) % 3);
                        let sum = self.jacobian[row][b] * derivative(i, c)
                            - self.jacobian[row][c] * derivative(i, b);
                        sum / self.determinant
                    }
                    _ => unreachable!("{element} has no {:?}", slot.part),
                };
                // On simplices each component has all functions.
                match all.get_mut(element.first(a) + i) {
                    Some(known) => *known += sign * function,
                    None => all.push(sign * function),
                }
            }
        }
        if let Some(Some(functions)) = space.functions.get(self.cell) {
            let of = |&(j, factor): &(usize, f64)| BoundedValue::new(factor) * all[j];
            all = functions.iter().map(|function| function.iter().map(of).sum()).collect();
        }
        if let Some(reversed) = space.reversed.chunks(element.count()).nth(self.cell) {
            let opposite = all.iter_mut().zip(reversed).filter(|(_, reversed)| **reversed);
            opposite.for_each(|(function, _)| *function = -*function);
        }
        all
    }

    /// Returns ∂_j of component i of the physical function of φ̂ e_a, by the product rule:
    ///
    /// ```text
    /// ∂_b (K_ai φ̂) = K_ai ∂_b φ̂ − Σ_lc K_al ∂_bc x_l K_ci φ̂
    /// ∂_b (J_ia φ̂ / D) = (J_ia ∂_b φ̂ + ∂_ab x_i φ̂ − J_ia φ̂ ∂_b D / D) / D,      ∂_b D = D Σ_lc K_cl ∂_bc x_l,   D = det J
    /// ```
    fn gradient(
        &self,
        family: WhitneyFamily,
        (i, a): (usize, usize),
        j: usize,
        (value, slopes): (BoundedValue, [BoundedValue; 3]),
    ) -> BoundedValue {
        let bends =
            self.bends.expect("a form with such gradients has second derivatives of the map");
        let all = || (0..self.dim).flat_map(|l| (0..self.dim).map(move |c| (l, c)));
        let along = |b: usize| -> BoundedValue {
            match family {
                WhitneyFamily::Curl => {
                    let term = |(l, c): (usize, usize)| {
                        self.inverse[a][l] * bends[l][b][c] * self.inverse[c][i] * value
                    };
                    self.inverse[a][i] * slopes[b] - all().map(term).sum::<BoundedValue>()
                }
                WhitneyFamily::Div => {
                    let term = |(l, c): (usize, usize)| self.inverse[c][l] * bends[l][b][c];
                    let growth: BoundedValue = all().map(term).sum();
                    let own = self.jacobian[i][a] * slopes[b] + bends[i][a][b] * value;
                    (own - self.jacobian[i][a] * value * growth) / self.determinant
                }
            }
        };
        (0..self.dim).map(|b| self.inverse[b][j] * along(b)).sum()
    }

    /// Returns the pull-back factor from a physical to a reference axis, ∂ξ_a/∂x_j; 1 for values.
    pub(super) fn pulled(&self, to: Part, from: Part) -> BoundedValue {
        match (to, from) {
            (Part::Derivative(a), Part::Derivative(j)) => self.inverse[a][j],
            _ => BoundedValue { value: 1.0, scale: 0.0 },
        }
    }

    /// Returns a component of a nodal function, or one of its physical derivatives.
    pub(super) fn interpolate(
        &self,
        space: &ElementSpace,
        nodal: NodalValues,
        components: usize,
        slot: Slot,
    ) -> BoundedValue {
        let nodes = space.element.count();
        let map = &nodal.map[self.cell * nodes..(self.cell + 1) * nodes];
        let (stored, entry) = (space.stored(components), space.entry(slot));
        let value = |&node: &u32| nodal.values[node as usize * stored + entry];
        let functions = self.functions(space, slot);
        let terms = functions.iter().zip(map);
        terms.map(|(&function, node)| function * BoundedValue::new(value(node))).sum()
    }

    fn aux(&self, reference: &Reference, inputs: &FormInputs, slot: Slot) -> BoundedValue {
        let components = reference.form.aux[slot.field].shape.components();
        match (inputs.aux[slot.field], &reference.aux[slot.field]) {
            (AuxData::Nodes(nodal), Some(space)) => {
                self.interpolate(space, nodal, components, slot)
            }
            (AuxData::Cells(values), None) => {
                BoundedValue::new(values[self.cell * components + slot.component])
            }
            (AuxData::Points(values), None) => {
                let point = self.cell * reference.rule.count() + self.q;
                BoundedValue::new(values[point * components + slot.component])
            }
            _ => panic!("auxiliary data {} should lie where the form says", slot.field),
        }
    }
}

/// A point of a cell, or the same point of a facet in both of its cells.
pub(super) struct Sides<'t> {
    /// The point in the cell, or in the one from which the facet is seen.
    pub(super) inside: Point<'t>,
    /// The point in the other cell, on facets between cells.
    outside: Option<Point<'t>>,
    /// The quadrature weight times the measure.
    measure: BoundedValue,
}

impl<'t> Sides<'t> {
    /// Creates a point of one cell.
    pub(super) fn one(inside: Point<'t>) -> Self {
        Self { measure: inside.measure, inside, outside: None }
    }

    /// Creates a point of both cells of a pair, with the measure in one of them.
    pub(super) fn both(inside: Point<'t>, outside: Point<'t>, measured: Side) -> Self {
        let measure = match measured {
            Side::Inside => inside.measure,
            Side::Outside => outside.measure,
        };
        Self { inside, outside: Some(outside), measure }
    }

    /// Returns the point in the cell on a side.
    pub(super) fn on(&self, side: Side) -> &Point<'t> {
        match (side, &self.outside) {
            (Side::Inside, _) => &self.inside,
            (Side::Outside, outside) => {
                outside.as_ref().expect("an integral over facets between cells should have pairs")
            }
        }
    }

    /// Returns the quadrature weight times the measure at the point.
    pub(super) fn measure(&self) -> BoundedValue {
        self.measure
    }

    /// Evaluates every node of a graph at this point.
    pub(super) fn evaluate(
        &self,
        reference: &Reference,
        graph: &Graph,
        inputs: &FormInputs,
    ) -> IndexVec<NodeId, BoundedValue> {
        evaluate(graph, |input| self.read(reference, inputs, input))
    }

    /// Evaluates an input of the form at this point.
    pub(super) fn read(
        &self,
        reference: &Reference,
        inputs: &FormInputs,
        input: Input,
    ) -> BoundedValue {
        let form = reference.form;
        match input {
            Input::State(slot) => reference.slot(inputs.state[slot.field], slot, self),
            // The action is formed from the coefficients, which do not depend on the direction.
            Input::Direction(_) => BoundedValue::ZERO,
            Input::Aux(slot) => self.on(slot.side).aux(reference, inputs, slot),
            Input::Param(index, component) => {
                let before: usize =
                    form.params[..index].iter().map(|param| param.shape.components()).sum();
                BoundedValue::new(inputs.params[before + component])
            }
            Input::Coordinate(axis) => self.inside.x[axis],
            Input::Normal(axis) => self.inside.normal[axis],
            Input::Time => BoundedValue::new(inputs.time),
            Input::Diameter(side) => self.on(side).diameter,
            Input::Extent(side) => self.on(side).extent,
            Input::PenaltyFactor(field) => {
                BoundedValue::new(reference.fields[field].element.penalty_factor())
            }
            Input::Degree => BoundedValue::new(reference.degree as f64),
            Input::Inverse(..) | Input::Tangent(..) | Input::Bend(..) | Input::Density(_) => {
                unreachable!("only the pull-back of kernels reads the map of a cell")
            }
        }
    }
}

/// Returns the determinant and the inverse by cofactors.
fn invert(a: &[[BoundedValue; 3]; 3]) -> (BoundedValue, [[BoundedValue; 3]; 3]) {
    let next = |i: usize| (i + 1) % 3;
    let cofactor = |i: usize, j: usize| {
        let (k, l, m, n) = (next(i), next(next(i)), next(j), next(next(j)));
        a[k][m] * a[l][n] - a[k][n] * a[l][m]
    };
    let determinant: BoundedValue = (0..3).map(|j| a[0][j] * cofactor(0, j)).sum();
    let mut inverse = [[BoundedValue::ZERO; 3]; 3];
    for i in 0..3 {
        for j in 0..3 {
            inverse[j][i] = cofactor(i, j) / determinant;
        }
    }
    (determinant, inverse)
}

/// Returns the cell diameter h: the largest distance between two vertices.
fn diameter(element: Element, coordinates: &[f64]) -> BoundedValue {
    let dim = element.cell().dim();
    let owners = element.owner_dims();
    let vertices: Vec<&[f64]> = (0..owners.len())
        .filter(|&i| owners[i] == 0)
        .map(|i| &coordinates[i * dim..(i + 1) * dim])
        .collect();
    let mut largest = BoundedValue::ZERO;
    for (a, from) in vertices.iter().enumerate() {
        for to in &vertices[..a] {
            let difference = |c: usize| BoundedValue::new(from[c]) - BoundedValue::new(to[c]);
            let square: BoundedValue = (0..dim).map(|c| difference(c) * difference(c)).sum();
            if square.value > largest.value {
                largest = square;
            }
        }
    }
    largest.sqrt()
}
