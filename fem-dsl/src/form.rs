//! [`Form`]: a checked form in one space dimension, as typed tensor expressions.
//!
//! `check` creates it, [`differentiate`](crate::differentiate) adds the Jacobian's action,
//! [`simplify`](crate::simplify) simplifies it, [`point`](crate::point) converts it to scalars. On each region (the
//! cells, or facets)
//!
//! ```text
//! R(u; v) = ∫ Σ_fields  v · f0 + ∇v : f1 + ∇∇v : f2          rows
//! J(u; v, δu) = ∫ Σ_fields  v · δf0 + ∇v : δf1 + ∇∇v : δf2   action, linear in (δu, ∇δu, ∇∇δu)
//! ```
//!
//! for all three notations (pointwise, weak form, energy); in Hcurl and Hdiv curl and div take the place of ∇. Between cells the sum is over fields and sides: a trace, a
//! field on one side, is an input and a test function of its own.

mod build;
mod copy;
mod expr;
mod exprs;
mod fold;
mod formula;
mod print;
mod shape;
mod verify;

pub use build::BuildError;
pub use expr::{Expr, MatrixFunction, Terminal};
pub use exprs::{Exprs, Origin};
pub use formula::Formulas;
pub use shape::{Shape, Type};
pub(crate) use verify::expect_form;
pub use verify::verify_form;

use crate::id_type;
use crate::terms::{self, Aux, Field, Location, Param, Rate, Region, Side, Space};
use std::collections::{BTreeMap, BTreeSet};

id_type!(
    /// A tensor expression of a [`Form`]; prints as `e7`.
    ExprId, "e"
);

/// A checked form in one space dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The form's name.
    pub name: String,
    /// The documentation comment above it.
    pub doc: String,
    /// Its own source text.
    pub source: String,
    /// Space dimension, 1 to 3.
    pub dim: usize,
    /// The unknown fields, in order of declaration.
    pub fields: Vec<Field>,
    /// Auxiliary data, in order of declaration.
    pub aux: Vec<Aux>,
    /// Runtime parameters with their default values, in order of declaration.
    pub params: Vec<Param>,
    /// The time derivatives; their parameters and data follow the declared ones.
    pub rates: Vec<Rate>,
    /// The default of each parameter as an expression in constants and other parameters.
    pub defaults: Vec<ExprId>,
    /// All expressions.
    pub exprs: Exprs,
    /// User-defined names of expressions (`let`).
    pub names: BTreeMap<ExprId, String>,
    /// One integral per region, the cells first.
    pub integrals: Vec<Integral>,
}

/// The physics on one region.
#[derive(Clone, Debug, PartialEq)]
pub struct Integral {
    /// Its region.
    pub region: Region,
    /// f0, f1 and f2 of each field that has any, ordered by field and side.
    pub rows: Vec<Row>,
    /// Their derivatives in the direction δu, likewise; empty before `differentiate`.
    pub action: Vec<Row>,
    /// The energy density, if the form was given as one.
    pub energy: Option<ExprId>,
}

/// Returns the notation of a time derivative.
pub fn rate_name(field: &str, order: usize) -> String {
    if order == 1 { format!("dt({field})") } else { format!("dt(dt({field}))") }
}

/// The factors of one field's test function, its gradient (in Hcurl and Hdiv its exterior derivative) and its second
/// derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The field of the test function.
    pub field: usize,
    /// The cell of the test function; [`Side::Inside`] except between cells.
    pub side: Side,
    /// Factor of φ; `None` if zero.
    pub f0: Option<ExprId>,
    /// Factor of ∇φ, or of curl φ or div φ; `None` if zero.
    pub f1: Option<ExprId>,
    /// Factor of ∇∇φ, or in Hcurl and Hdiv of the gradient ∇φ in each cell; `None` if zero.
    pub f2: Option<ExprId>,
}

impl Row {
    /// Returns a row without factors.
    pub fn empty(field: usize, side: Side) -> Self {
        Self { field, side, f0: None, f1: None, f2: None }
    }

    /// Returns its factors that are not zero: f0, f1, f2.
    pub fn factors(self) -> impl Iterator<Item = ExprId> {
        [self.f0, self.f1, self.f2].into_iter().flatten()
    }

    /// Returns whether it has no factor.
    pub fn is_empty(self) -> bool {
        self.factors().next().is_none()
    }

    /// Returns the same row with other factors.
    pub fn map(self, mut of: impl FnMut(Option<ExprId>) -> Option<ExprId>) -> Self {
        let [f0, f1, f2] = [self.f0, self.f1, self.f2].map(&mut of);
        Self { f0, f1, f2, ..self }
    }
}

impl Form {
    /// Returns the shape of a terminal; `None` if the form has no such field, data or parameter, or if its gradient
    /// exceeds rank 3.
    pub fn shape_of(&self, terminal: Terminal) -> Option<Shape> {
        let field = |i: usize| self.fields.get(i).map(|field| Shape::from(field.shape));
        let derivative = |shape: terms::Shape, space: Option<Space>| match space {
            Some(space) if space.is_piola() => Some(match space.exterior_components(self.dim) {
                1 => Shape::SCALAR,
                n => Shape::vector(n),
            }),
            _ => Shape::from(shape).raised(self.dim),
        };
        let of_field = |i: usize| {
            let field = self.fields.get(i)?;
            derivative(field.shape, Some(field.space))
        };
        match terminal {
            Terminal::Field(i, _) | Terminal::Test(i, _) | Terminal::Direction(i, _) => field(i),
            Terminal::Rate(i, _, _) => field(i),
            Terminal::RateGradient(i, _, _)
            | Terminal::FieldGradient(i, _)
            | Terminal::TestGradient(i, _)
            | Terminal::DirectionGradient(i, _) => of_field(i),
            Terminal::FieldHessian(i, _)
            | Terminal::TestHessian(i, _)
            | Terminal::DirectionHessian(i, _) => match self.fields.get(i)?.space.is_piola() {
                true => field(i)?.raised(self.dim),
                false => field(i)?.raised(self.dim)?.raised(self.dim),
            },
            Terminal::Aux(i, _) => self.aux.get(i).map(|aux| aux.shape.into()),
            Terminal::AuxGradient(i, _) => {
                let aux = self.aux.get(i)?;
                derivative(aux.shape, aux.location.space())
            }
            Terminal::Param(i) => self.params.get(i).map(|param| param.shape.into()),
            Terminal::Coordinates | Terminal::Normal => Some(Shape::vector(self.dim)),
            Terminal::Penalty(i, _) => field(i).map(|_| Shape::SCALAR),
            Terminal::Time | Terminal::Diameter(_) | Terminal::Extent(_) | Terminal::Degree => {
                Some(Shape::SCALAR)
            }
        }
    }

    /// Returns the space of a field's terminal, or of data on nodes.
    pub(crate) fn space_of(&self, terminal: Terminal) -> Option<Space> {
        match terminal {
            Terminal::Field(i, _)
            | Terminal::FieldGradient(i, _)
            | Terminal::FieldHessian(i, _)
            | Terminal::Test(i, _)
            | Terminal::TestGradient(i, _)
            | Terminal::TestHessian(i, _)
            | Terminal::Direction(i, _)
            | Terminal::DirectionGradient(i, _)
            | Terminal::DirectionHessian(i, _)
            | Terminal::Rate(i, ..)
            | Terminal::RateGradient(i, ..)
            | Terminal::Penalty(i, _) => self.fields.get(i).map(|field| field.space),
            Terminal::Aux(i, _) | Terminal::AuxGradient(i, _) => {
                self.aux.get(i).and_then(|aux| aux.location.space())
            }
            Terminal::Param(_)
            | Terminal::Coordinates
            | Terminal::Normal
            | Terminal::Time
            | Terminal::Diameter(_)
            | Terminal::Extent(_)
            | Terminal::Degree => None,
        }
    }

    /// Returns whether a terminal without a side has a value for each of the two cells at a facet: inputs of cells, and
    /// values that jump.
    pub fn has_two_values(&self, terminal: Terminal) -> bool {
        let jumps = |i: usize| !self.fields[i].space.is_continuous();
        terminal.side().is_none()
            && match terminal {
                Terminal::Field(i, _) | Terminal::Test(i, _) | Terminal::Direction(i, _) => {
                    jumps(i)
                }
                Terminal::Rate(i, ..) => jumps(i),
                Terminal::Aux(i, _) => match self.aux[i].location {
                    Location::Nodes(space) => !space.is_continuous(),
                    Location::Cells => true,
                    // They have none on facets.
                    Location::Points => false,
                },
                Terminal::FieldGradient(..)
                | Terminal::TestGradient(..)
                | Terminal::DirectionGradient(..)
                | Terminal::FieldHessian(..)
                | Terminal::TestHessian(..)
                | Terminal::DirectionHessian(..)
                | Terminal::RateGradient(..)
                | Terminal::AuxGradient(..)
                | Terminal::Diameter(_)
                | Terminal::Extent(_)
                | Terminal::Penalty(..) => true,
                Terminal::Param(_)
                | Terminal::Coordinates
                | Terminal::Normal
                | Terminal::Time
                | Terminal::Degree => false,
            }
    }

    /// Returns the smallest degree k for which all spaces of the form exist, and second derivatives of fields that occur
    /// are not all 0: 2 for Taylor–Hood elements.
    pub fn smallest_degree(&self) -> usize {
        let spaces = self.spaces().map(|(_, space)| space.smallest_degree());
        let twice = self.bent_fields().map(|field| field.space.smallest_degree_for(2));
        spaces.chain(twice).max().unwrap_or(1)
    }

    /// Returns the fields whose second derivatives occur, which need degree 2.
    pub(crate) fn bent_fields(&self) -> impl Iterator<Item = &Field> {
        let rows = self.integrals.iter().flat_map(|integral| &integral.rows);
        let tested = rows.filter(|row| row.f2.is_some()).map(|row| row.field);
        let roots = self.roots();
        let read = self.terminals(&roots).filter_map(|terminal| match terminal {
            Terminal::FieldHessian(field, _) => Some(field),
            _ => None,
        });
        let all: BTreeSet<usize> = tested.chain(read).collect();
        all.into_iter().map(|field| &self.fields[field]).filter(|field| !field.space.is_piola())
    }

    /// Returns whether a terminal is the gradient of a field in Hcurl or Hdiv, which exists in each cell alone.
    pub(crate) fn is_cellwise_gradient(&self, terminal: Terminal) -> bool {
        matches!(
            terminal,
            Terminal::FieldHessian(..) | Terminal::TestHessian(..) | Terminal::DirectionHessian(..)
        ) && self.space_of(terminal).is_some_and(Space::is_piola)
    }

    /// Returns the spaces of the fields and of the nodal data, with their names.
    pub fn spaces(&self) -> impl Iterator<Item = (&str, Space)> {
        let fields = self.fields.iter().map(|field| (field.name.as_str(), field.space));
        let aux = self.aux.iter();
        let aux = aux.filter_map(|aux| Some((aux.name.as_str(), aux.location.space()?)));
        fields.chain(aux)
    }

    /// Returns the declared parameters, without those of time derivatives, which have no accessible names.
    pub fn own_params(&self) -> &[Param] {
        &self.params[..terms::written(&self.rates, self.params.len(), |rate| rate.param)]
    }

    /// Returns the declared auxiliary data, without that of time derivatives and sources, which has no accessible
    /// names.
    pub fn own_aux(&self) -> &[Aux] {
        &self.aux[..terms::written(&self.rates, self.aux.len(), |rate| rate.aux)]
    }

    /// Returns a time derivative of a field.
    pub fn rate(&self, field: usize, order: usize) -> Option<&Rate> {
        self.rates.iter().find(|rate| (rate.field, rate.order) == (field, order))
    }

    /// Returns the terminals on which expressions depend.
    pub fn terminals(&self, roots: &[ExprId]) -> impl Iterator<Item = Terminal> {
        self.exprs.reachable_in_order(roots).into_iter().filter_map(|id| {
            match self.exprs.expr(id) {
                Expr::Terminal(terminal) => Some(*terminal),
                _ => None,
            }
        })
    }

    /// Declares the time derivatives of the form, with their parameters and data.
    pub(crate) fn declare_rates(&mut self) {
        let mut read: BTreeSet<(usize, usize)> = BTreeSet::new();
        for terminal in self.terminals(&self.roots()) {
            if let Terminal::Rate(field, order, _) | Terminal::RateGradient(field, order, _) =
                terminal
            {
                read.insert((field, order));
            }
        }
        let velocities = read.iter().map(|&(field, _)| (field, 1));
        let all: BTreeSet<(usize, usize)> = velocities.chain(read.iter().copied()).collect();
        for (field, order) in all {
            let known = self.rates.iter().find(|rate| rate.order == order);
            let param = known.map(|rate| rate.param).unwrap_or_else(|| {
                let name = if order == 1 { "per_dt" } else { "per_dt2" };
                let name = self.unused(name.to_owned());
                let (shape, value) = (terms::Shape::Scalar, vec![0.0]);
                self.params.push(Param { name, shape, value });
                self.defaults.push(self.exprs.constant(0.0));
                self.params.len() - 1
            });
            let Field { ref name, shape, space, .. } = self.fields[field];
            let name = self.unused(format!("{}{name}", "dt_".repeat(order)));
            self.aux.push(Aux { name, shape, location: Location::Nodes(space) });
            let (aux, read) = (self.aux.len() - 1, read.contains(&(field, order)));
            self.rates.push(Rate { field, order, param, aux, read });
        }
    }

    /// Returns the root expressions of the form.
    pub fn roots(&self) -> Vec<ExprId> {
        let rows = self.integrals.iter().flat_map(|integral| {
            let rows = integral.rows.iter().chain(&integral.action);
            rows.flat_map(|row| row.factors()).chain(integral.energy)
        });
        rows.chain(self.defaults.iter().copied()).collect()
    }
}
