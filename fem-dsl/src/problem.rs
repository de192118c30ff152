//! A checked `problem` block: what to solve, on which mesh, under which conditions.
//!
//! Expressions are [`Expression`]s over the same scalar graph as forms, in x, t, h and the form's
//! parameters, so that one evaluator serves both.

use crate::point::{Graph, NodeId, Part, PointForm, Shape, Space};
use std::collections::BTreeMap;
use std::fmt;

/// A pointwise expression without fields: its components and, where it is differentiable, their
/// gradients.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Shape of the value.
    pub shape: Shape,
    /// The graph; its inputs are coordinates, time, diameter, degree and parameters.
    pub graph: Graph,
    /// One node a component, row-major.
    pub value: Vec<NodeId>,
    /// ∂value_i/∂x_j at `[i * dim + j]`.
    pub gradient: Vec<NodeId>,
}

/// A problem in one space dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The problem's name.
    pub name: String,
    /// The documentation comment above it.
    pub doc: String,
    /// The form that it solves, checked for the mesh's dimension.
    pub form: PointForm,
    /// The mesh.
    pub mesh: MeshSource,
    /// Degree k.
    pub degree: usize,
    /// Quadrature degree D, where it was set.
    pub quadrature: Option<usize>,
    /// Time.
    pub time: f64,
    /// Parameter values that differ from the form's defaults: (index, components).
    pub params: Vec<(usize, Vec<f64>)>,
    /// Values of auxiliary data: (index, expression).
    pub aux: Vec<(usize, Expression)>,
    /// Essential conditions, in order: a later one holds where two meet.
    pub dirichlet: Vec<Dirichlet>,
    /// Fields that conditions leave free up to a constant: (field, mean of each component).
    pub mean: Vec<(usize, Vec<f64>)>,
    /// Known solutions, manufactured ones too: (field, expression).
    pub exact: Vec<(usize, Expression)>,
    /// The solver, where it was named.
    pub solver: Option<Solver>,
}

/// Where a mesh comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshSource {
    /// A Gmsh file; the path as written, relative to the `.wf` file.
    File(String),
    /// A generator with its named arguments.
    Generator {
        /// `box`, `ball`, `shell`, `lshape`.
        name: String,
        /// Arguments by name.
        arguments: BTreeMap<String, Argument>,
    },
}

/// A named argument of a generator or a solver.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A number.
    Number(f64),
    /// Several numbers.
    Numbers(Vec<f64>),
    /// A bare word such as `hex` or `jacobi`, or a parameter's name.
    Word(String),
}

impl Argument {
    /// The word that it is.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Number(_) | Self::Numbers(_) => None,
        }
    }
}

/// An essential condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Dirichlet {
    /// The field.
    pub field: usize,
    /// One component, or the whole field.
    pub component: Option<usize>,
    /// The value; its shape is the field's, or scalar where a component is named.
    pub value: Expression,
    /// The tags, or all facets of exactly one cell.
    pub tags: Option<Vec<String>>,
}

/// A solver with its named settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Solver {
    /// `cg`, `minres`, `gmres`, `direct` or `newton`.
    pub name: String,
    /// Settings by name.
    pub arguments: BTreeMap<String, Argument>,
}

/// A field, or one component of it, that neither a condition nor a term of the form fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfixed {
    /// The field.
    pub field: String,
    /// The component, where the field has several.
    pub component: Option<usize>,
    /// Whether the field is discontinuous, so that each cell has a constant of its own.
    pub discontinuous: bool,
}

impl fmt::Display for Unfixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing fixes ")?;
        match self.component {
            Some(component) => write!(f, "component {component} of `{}`", self.field)?,
            None => write!(f, "`{}`", self.field)?,
        }
        let whole = if self.discontinuous { " in each cell" } else { "" };
        write!(f, ": its solution is known up to a constant{whole}")
    }
}

impl Unfixed {
    /// What to do.
    pub fn remedy(&self) -> String {
        if self.discontinuous {
            return format!(
                "let the form have a term in `{0}` itself, or `{0}` live in `H1(k)`",
                self.field
            );
        }
        format!("add `dirichlet {0} = …;` or `mean {0} = 0;`", self.field)
    }
}

/// Why a linear system with this form cannot have one solution; `held` says which component of
/// which field a condition holds.
pub fn unfixed(form: &PointForm, held: impl Fn(usize, usize) -> bool) -> Option<Unfixed> {
    for (index, field) in form.fields.iter().enumerate() {
        let components = field.shape.components();
        for component in 0..components {
            let determined =
                form.integrals.iter().flat_map(|integral| &integral.jacobian).any(|entry| {
                    let trial = entry.trial;
                    (trial.field, trial.component, trial.part) == (index, component, Part::Value)
                });
            let discontinuous = matches!(field.space, Space::L2(_));
            if !determined && (discontinuous || !held(index, component)) {
                let component = (components > 1).then_some(component);
                return Some(Unfixed { field: field.name.clone(), component, discontinuous });
            }
        }
    }
    None
}

impl Problem {
    /// Why a linear system with this problem cannot have one solution.
    pub fn unfixed(&self) -> Option<Unfixed> {
        unfixed(&self.form, |field, component| {
            let conditions = self.dirichlet.iter().any(|condition| {
                let whole = condition.component.is_none();
                condition.field == field && (whole || condition.component == Some(component))
            });
            conditions || self.mean.iter().any(|(of, _)| *of == field)
        })
    }
}
