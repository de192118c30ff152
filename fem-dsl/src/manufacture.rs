//! `manufacture`: a form and functions u* → the form whose solution is u*, and its data.
//!
//! With f* for f at (u*, ∇u*, a, ∇a),
//!
//! ```text
//! cells            f0 − s,  s = f0* − div f1*        so that ∫ φ·(f0 − s) + ∇φ : f1 = ∮ φ·(f1* n)  at u*
//! facets of a tag  f0_tag − f0_tag*,  f1_tag − f1_tag*
//! between cells    the same, but nothing where the rows of a discontinuous field are those of its flux
//! the boundary     − f1* n                           where conditions do not constrain all of u
//! ```
//!
//! In Hcurl and Hdiv, where f1 is tested with curl φ or div φ, s is f0* + curl f1* or f0* − ∇f1*, and f1* × n or f1* n
//! take the place of f1* n on the boundary.
//!
//! The integral over the whole boundary is correct also if conditions cover a part of it: rows of constrained DoFs are
//! omitted, and the test functions of the others vanish on constrained facets.
//!
//! The divergence is computed symbolically, by the chain rule, from f1* in the form's own notation: a kernel with an
//! error in its ∇φ terms does not reproduce u*. s is data at the quadrature points of the cells, so that the kernels
//! are those of the form with one additional subtraction.

use crate::differentiate::{curl, divergence, gradient, rate, tangent};
use crate::form::{BuildError, ExprId, Exprs, Form, Integral, Row, Shape, Terminal};
use crate::interior::inconsistent;
use crate::point::scalars::Scalars;
use crate::point::{
    self, Aux, InteriorFacets, Location, NodeId, Region, Space, WHOLE_BOUNDARY, finished, scalarise,
};
use crate::problem::Expression;
use std::collections::BTreeMap;

/// A function of the coordinates, in its own arena.
#[derive(Clone, Debug)]
pub struct CoordinateFunction {
    /// The arena.
    pub exprs: Exprs,
    /// The function.
    pub value: ExprId,
}

/// A form with a manufactured solution.
#[derive(Clone, Debug)]
pub struct ManufacturedForm {
    /// The form, with auxiliary data at points for each source, after its own.
    pub form: Form,
    /// The values of that data: (index, s).
    pub sources: Vec<(usize, Expression)>,
}

/// Replacements of the terminals of a form.
struct TerminalValues {
    /// Values, gradients and, where the form reads them, second derivatives.
    fields: Vec<(ExprId, ExprId, Option<ExprId>)>,
    aux: Vec<(ExprId, Option<ExprId>)>,
    /// Time derivatives by field and order.
    rates: BTreeMap<(usize, usize), (ExprId, ExprId)>,
}

impl TerminalValues {
    fn of(&self, terminal: Terminal) -> Option<ExprId> {
        match terminal {
            Terminal::Field(i, _) => self.fields.get(i).map(|field| field.0),
            Terminal::FieldGradient(i, _) => self.fields.get(i).map(|field| field.1),
            Terminal::FieldHessian(i, _) => self.fields.get(i).and_then(|field| field.2),
            Terminal::Aux(i, _) => self.aux.get(i).map(|aux| aux.0),
            Terminal::AuxGradient(i, _) => self.aux.get(i).and_then(|aux| aux.1),
            Terminal::Rate(i, order, _) => self.rates.get(&(i, order)).map(|rate| rate.0),
            Terminal::RateGradient(i, order, _) => self.rates.get(&(i, order)).map(|rate| rate.1),
            _ => None,
        }
    }
}

/// Modifies a form so that `solution`, one function per field, solves it with the data `aux`. The latter has one
/// function for each of the form's auxiliary data, constant for data on cells and at points. `constrained` is true for each
/// field with conditions on the whole boundary.
///
/// # Errors
///
/// A derivative that does not exist, or has too many indices.
pub fn manufacture(
    form: &Form,
    solution: &[CoordinateFunction],
    aux: &[CoordinateFunction],
    constrained: &[bool],
) -> Result<ManufacturedForm, BuildError> {
    let mut scratch = Form { exprs: Exprs::new(), integrals: Vec::new(), ..form.clone() };
    let values = values(&mut scratch, form, solution, aux)?;
    let mut made = ManufacturedForm { form: form.clone(), sources: Vec::new() };
    let mut fluxes = Vec::new();
    let inconsistent: Vec<usize> = inconsistent(form).into_iter().map(|(field, _)| field).collect();
    // What is left of the flux at u* is −f1* n on jumps, as integration by parts leaves f1* n; likewise −f2* n on jumps of
    // the gradient.
    let joins = |integral: &Integral, field: usize| {
        let continuous = form.fields[field].space.is_continuous();
        integral.region == Region::Interior(InteriorFacets::All)
            && (!continuous || has_second_flux(form, field))
            && !inconsistent.contains(&field)
    };
    for (at, integral) in form.integrals.iter().enumerate() {
        for (number, row) in integral.rows.iter().enumerate() {
            if joins(integral, row.field) {
                continue;
            }
            let starred = starred(&mut scratch, form, &values, *row)?;
            let subtracted = if integral.region == Region::Cells {
                // ∫ ∇φ : f1 + ∇∇φ : f2 = ∫ ∇φ : σ + ∮ ∇φ : f2 n with σ = f1 − div f2. In Hcurl and Hdiv f1 is the factor of
                // curl φ or div φ, and f2 that of ∇φ: ∫ f2 : ∇φ = −∫ φ · div f2 + ∮ φ · f2 n.
                let space = form.fields[row.field].space;
                let flux = match space.is_piola() {
                    true => starred.f1,
                    false => flux(&mut scratch, starred)?,
                };
                let mut outer = Row::empty(row.field, row.side);
                let mut along = |flux: Option<ExprId>| -> Result<Option<ExprId>, BuildError> {
                    let Some(flux) = flux else { return Ok(None) };
                    let flux = through(&mut scratch, space, flux)?;
                    Ok(Some(scratch.exprs.neg(flux)?))
                };
                outer.f0 = along(flux.filter(|_| !constrained[row.field]))?;
                if space.is_piola() {
                    let own = cellwise_flux(&mut scratch, starred.f2)?;
                    outer.f0 = sum(&mut scratch, outer.f0, own)?;
                } else {
                    outer.f1 = along(starred.f2)?;
                }
                fluxes.extend(made.copied(&scratch, outer)?);
                let source = match (space.is_piola(), flux) {
                    (true, Some(flux)) => Some(strong(&mut scratch, space, starred.f0, flux)?),
                    (true, None) => starred.f0,
                    (false, _) => minus_divergence(&mut scratch, starred.f0, flux)?,
                };
                let source = match space.is_piola() {
                    true => minus_divergence(&mut scratch, source, starred.f2)?,
                    false => source,
                };
                let data = source.filter(|&source| !scratch.exprs.is_zero(source));
                let data = data.map(|source| made.add_data(row.field, express(&scratch, source)));
                Row { f0: data, ..Row::empty(row.field, row.side) }
            } else {
                made.copied(&scratch, starred)?.unwrap_or(Row::empty(row.field, row.side))
            };
            made.subtract(at, number, subtracted)?;
        }
    }
    if !fluxes.is_empty() {
        let region = Region::Facets(vec![WHOLE_BOUNDARY.to_owned()]);
        let action = Vec::new();
        made.form.integrals.push(Integral { region, rows: fluxes, action, energy: None });
    }
    for integral in &mut made.form.integrals {
        integral.rows.retain(|row| !row.is_empty());
    }
    Ok(made)
}

/// Returns the first derivative of a function in a space.
fn derivative(scratch: &mut Form, space: Space, value: ExprId) -> Result<ExprId, BuildError> {
    match space {
        Space::H1(_) | Space::L2(_) | Space::Number => gradient(scratch, value),
        Space::Hcurl(_) => curl(scratch, value),
        Space::Hdiv(_) => divergence(scratch, value),
    }
}

/// Computes f0 + curl f1 in Hcurl, and f0 − ∇f1 in Hdiv.
fn strong(
    scratch: &mut Form,
    space: Space,
    f0: Option<ExprId>,
    f1: ExprId,
) -> Result<ExprId, BuildError> {
    let part = match space {
        Space::Hdiv(_) => {
            let slope = gradient(scratch, f1)?;
            scratch.exprs.neg(slope)?
        }
        _ => curl(scratch, f1)?,
    };
    match f0 {
        Some(f0) => scratch.exprs.add(f0, part),
        None => Ok(part),
    }
}

/// Computes the factor of φ that a flux f leaves on the boundary: f n, or f × n in Hcurl.
fn through(scratch: &mut Form, space: Space, flux: ExprId) -> Result<ExprId, BuildError> {
    let exprs = &mut scratch.exprs;
    let normal = exprs.terminal(Terminal::Normal, Shape::vector(scratch.dim));
    match space {
        Space::H1(_) | Space::L2(_) | Space::Number => exprs.dot(flux, normal),
        Space::Hdiv(_) => exprs.mul(flux, normal),
        Space::Hcurl(_) if scratch.dim == 3 => exprs.cross(flux, normal),
        Space::Hcurl(_) => {
            let (x, y) = (exprs.index(normal, &[0])?, exprs.index(normal, &[1])?);
            let components = vec![exprs.neg(y)?, x];
            let turned = exprs.literal(Shape::vector(2), components)?;
            exprs.mul(flux, turned)
        }
    }
}

/// Computes −f2 n, which the factor f2 of a gradient in each cell leaves on the boundary.
fn cellwise_flux(scratch: &mut Form, flux: Option<ExprId>) -> Result<Option<ExprId>, BuildError> {
    let Some(flux) = flux else { return Ok(None) };
    let exprs = &mut scratch.exprs;
    let normal = exprs.terminal(Terminal::Normal, Shape::vector(scratch.dim));
    let through = exprs.dot(flux, normal)?;
    Ok(Some(exprs.neg(through)?))
}

fn sum(
    scratch: &mut Form,
    a: Option<ExprId>,
    b: Option<ExprId>,
) -> Result<Option<ExprId>, BuildError> {
    match (a, b) {
        (Some(a), Some(b)) => scratch.exprs.add(a, b).map(Some),
        (a, b) => Ok(a.or(b)),
    }
}

/// Returns whether the cells of a form test second derivatives of a field.
fn has_second_flux(form: &Form, field: usize) -> bool {
    let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    cells.flat_map(|integral| &integral.rows).any(|row| row.field == field && row.f2.is_some())
}

/// Computes u*, ∇u*, ∇∇u*, a and ∇a.
fn values(
    scratch: &mut Form,
    form: &Form,
    solution: &[CoordinateFunction],
    aux: &[CoordinateFunction],
) -> Result<TerminalValues, BuildError> {
    let copied = |scratch: &mut Form, known: &CoordinateFunction| {
        Ok(scratch.exprs.replaced(&known.exprs, &[known.value], |_| None)?[0])
    };
    let mut values = TerminalValues { fields: Vec::new(), aux: Vec::new(), rates: BTreeMap::new() };
    for known in solution {
        let value = copied(scratch, known)?;
        let slope = derivative(scratch, form.fields[values.fields.len()].space, value)?;
        let second = form.terminals(&form.roots()).any(
            |terminal| matches!(terminal, Terminal::FieldHessian(i, _) if i == values.fields.len()),
        );
        let base = match form.fields[values.fields.len()].space.is_piola() {
            true => value,
            false => slope,
        };
        let second = if second { Some(gradient(scratch, base)?) } else { None };
        values.fields.push((value, slope, second));
    }
    for (known, location) in aux.iter().zip(scratch.aux.clone()) {
        let value = copied(scratch, known)?;
        let slope = match location.location {
            Location::Nodes(_) => Some(gradient(scratch, value)?),
            Location::Cells | Location::Points => None,
        };
        values.aux.push((value, slope));
    }
    for of in scratch.rates.clone() {
        let mut value = values.fields[of.field].0;
        for _ in 0..of.order {
            value = rate(scratch, value)?;
        }
        let slope = derivative(scratch, form.fields[of.field].space, value)?;
        values.rates.insert((of.field, of.order), (value, slope));
    }
    Ok(values)
}

/// Evaluates a row at the solution.
fn starred(
    scratch: &mut Form,
    form: &Form,
    values: &TerminalValues,
    row: Row,
) -> Result<Row, BuildError> {
    let roots: Vec<ExprId> = row.factors().collect();
    let mut found =
        scratch.exprs.replaced(&form.exprs, &roots, |terminal| values.of(terminal))?.into_iter();
    Ok(row.map(|value| value.and_then(|_| found.next())))
}

/// Computes f1* − div f2*.
fn flux(scratch: &mut Form, row: Row) -> Result<Option<ExprId>, BuildError> {
    minus_divergence(scratch, row.f1, row.f2)
}

/// Computes a − div b without zeros; the last index of b is the derivative's.
fn minus_divergence(
    scratch: &mut Form,
    a: Option<ExprId>,
    b: Option<ExprId>,
) -> Result<Option<ExprId>, BuildError> {
    let mut sum = a;
    let Some(flux) = b else { return Ok(sum) };
    let dim = scratch.dim;
    let extents = scratch.exprs.shape(flux).extents();
    let Some(shape) = Shape::of(&extents[..extents.len() - 1]) else { return Ok(sum) };
    for j in 0..dim {
        let axis = |exprs: &mut Exprs| {
            let components = (0..dim).map(|i| exprs.constant(if i == j { 1.0 } else { 0.0 }));
            let components = components.collect();
            exprs.literal(Shape::vector(dim), components)
        };
        let derivative = tangent(&mut scratch.exprs, &[flux], |exprs, terminal| match terminal {
            Terminal::Coordinates => axis(exprs).map(Some),
            _ => Ok(None),
        })?;
        let Some(derivative) = derivative[0] else { continue };
        let components =
            (0..shape.components()).map(|i| scratch.exprs.component(derivative, i * dim + j));
        let components = components.collect();
        let part = scratch.exprs.literal(shape, components)?;
        sum = Some(match sum {
            Some(sum) => scratch.exprs.sub(sum, part)?,
            None => scratch.exprs.neg(part)?,
        });
    }
    Ok(sum)
}

impl Form {
    /// Returns an unused name.
    pub(crate) fn unused(&self, wish: String) -> String {
        let mut name = wish;
        let taken = |name: &str| {
            self.fields.iter().any(|field| field.name == name)
                || self.aux.iter().any(|aux| aux.name == name)
                || self.params.iter().any(|param| param.name == name)
                || self.names.values().any(|known| known == name)
        };
        while taken(&name) {
            name.push('_');
        }
        name
    }
}

impl ManufacturedForm {
    /// Copies a row without fields to the form's expressions; `None` if it is zero.
    fn copied(&mut self, scratch: &Form, row: Row) -> Result<Option<Row>, BuildError> {
        let mut copy = |value: Option<ExprId>| {
            let value = value.filter(|&value| !scratch.exprs.is_zero(value));
            let copy = |value| self.form.exprs.replaced(&scratch.exprs, &[value], |_| None);
            value.map(copy).transpose().map(|copies| copies.map(|copies| copies[0]))
        };
        let row = Row { f0: copy(row.f0)?, f1: copy(row.f1)?, f2: copy(row.f2)?, ..row };
        Ok((!row.is_empty()).then_some(row))
    }

    /// Adds auxiliary data at points for a source; returns its expression.
    fn add_data(&mut self, field: usize, source: Expression) -> ExprId {
        let form = &mut self.form;
        let name = form.unused(format!("source_{}", form.fields[field].name));
        let (index, shape) = (form.aux.len(), form.fields[field].shape);
        form.aux.push(Aux { name, shape, location: Location::Points });
        self.sources.push((index, source));
        form.exprs.terminal(Terminal::Aux(index, None), shape.into())
    }

    /// Subtracts from a row, and the corresponding term from the energy.
    fn subtract(&mut self, at: usize, number: usize, what: Row) -> Result<(), BuildError> {
        let [shape, slope, second] = [
            Terminal::Field(what.field, None),
            Terminal::FieldGradient(what.field, None),
            Terminal::FieldHessian(what.field, None),
        ]
        .map(|terminal| self.form.shape_of(terminal));
        let Form { exprs, integrals, fields, .. } = &mut self.form;
        let integral = &mut integrals[at];
        let row = &mut integral.rows[number];
        let of_side = |one: bool| (integral.region.is_interior() && !one).then_some(what.side);
        let field = [
            Terminal::Field(what.field, of_side(fields[what.field].space.is_continuous())),
            Terminal::FieldGradient(what.field, of_side(false)),
            Terminal::FieldHessian(what.field, of_side(false)),
        ];
        let parts = [
            (&mut row.f0, what.f0, shape),
            (&mut row.f1, what.f1, slope),
            (&mut row.f2, what.f2, second),
        ];
        for ((value, subtracted, shape), terminal) in parts.into_iter().zip(field) {
            let (Some(subtracted), Some(shape)) = (subtracted, shape) else { continue };
            let difference = match *value {
                Some(value) => exprs.sub(value, subtracted)?,
                None => exprs.neg(subtracted)?,
            };
            *value = Some(difference).filter(|&value| !exprs.is_zero(value));
            if let Some(energy) = integral.energy {
                let field = exprs.terminal(terminal, shape);
                let work = exprs.inner(subtracted, field)?;
                integral.energy = Some(exprs.sub(energy, work)?);
            }
        }
        Ok(())
    }
}

/// Converts an expression without fields to scalars.
fn express(form: &Form, value: ExprId) -> Expression {
    let mut scalars = Scalars::default();
    let nodes = scalarise(&mut scalars, form, &[value]);
    let roots: Vec<NodeId> = nodes[&value].clone();
    let (graph, value_nodes) = finished(&scalars, &roots);
    let shape = form.exprs.shape(value).to_point().unwrap_or(point::Shape::Scalar);
    Expression { shape, graph, value: value_nodes, gradient: Vec::new(), rates: Default::default() }
}
