//! A checked `problem` block: what to solve, on which mesh, under which conditions.
//!
//! Expressions are [`Expression`]s over the same scalar graph as forms, in x, t, h and the form's
//! parameters, so that one evaluator serves both.

pub mod solver;
pub mod stepping;
mod unfixed;

pub use unfixed::{Freedom, Motion, Point, Unfixed};

use crate::point::{Degree, Graph, NodeId, Part, PointForm, Shape, Space};
pub use solver::{
    BlockSettings, Forcing, LineSearch, LinearSettings, Method, MultigridSettings, NewtonSettings,
    PreconditionerSettings, Smoother, SolverSettings,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
pub use stepping::{Mass, Scheme, SchemeError, Stepping, SteppingError};

/// The largest quadrature degree D that can be asked for: the exact integral of a product of four functions of degree 12,
/// the largest of any element, over a hexahedron whose sides have degree 5, as curved as meshes come. Most cells can use
/// far less, and say so when kernels are made.
pub const LARGEST_QUADRATURE: u32 = 62;

/// As often a mesh can be refined; one cell more often divided gives more than 32-bit indices can number.
pub const MOST_REFINED: u32 = 14;

/// A quadrature in the place of the one that follows from the degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quadrature {
    /// A degree D: ⌊D/2⌋ + 1 Gauss points a direction on tensor cells, a rule exact to degree D on simplices.
    Degree(usize),
    /// The nodes of the largest degree themselves, Gauss-Lobatto points, on tensor cells: masses are diagonal.
    Collocated,
}

impl From<usize> for Quadrature {
    fn from(degree: usize) -> Self {
        Self::Degree(degree)
    }
}

impl fmt::Display for Quadrature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Degree(degree) => degree.fmt(f),
            Self::Collocated => f.write_str(COLLOCATED),
        }
    }
}

impl FromStr for Quadrature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            COLLOCATED => Ok(Self::Collocated),
            _ => text.parse().map(Self::Degree).map_err(|_| {
                format!("a quadrature is a degree, a whole number, or `{COLLOCATED}`")
            }),
        }
    }
}

/// The word for [`Quadrature::Collocated`].
pub(crate) const COLLOCATED: &str = "collocated";

/// A pointwise expression without fields: its components and, where it is differentiable, their
/// gradients and time derivatives.
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
    /// ∂value/∂t and ∂²value/∂t², one node a component; empty where there is none.
    pub rates: [Vec<NodeId>; 2],
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
    /// How often each of its cells is divided.
    pub refine: usize,
    /// Degree k.
    pub degree: usize,
    /// The quadrature, where it was set.
    pub quadrature: Option<Quadrature>,
    /// Time: where it begins, of a problem that goes through it.
    pub time: f64,
    /// How it goes through time, if it does.
    pub stepping: Option<Stepping>,
    /// Parameter values that differ from the form's defaults: (index, components).
    pub params: Vec<(usize, Vec<f64>)>,
    /// Values of auxiliary data, in order: a later one holds where two are given.
    pub aux: Vec<Data>,
    /// Essential conditions, in order: a later one holds where two meet.
    pub dirichlet: Vec<Dirichlet>,
    /// Tags of the boundary whose facets are the same, by translation.
    pub periodic: Vec<[String; 2]>,
    /// Fields that conditions leave free up to a constant: (field, mean of each component).
    pub mean: Vec<(usize, Vec<f64>)>,
    /// Known solutions, manufactured ones too: (field, expression).
    pub exact: Vec<(usize, Expression)>,
    /// Where the solve begins: (field, values).
    pub initial: Vec<(usize, Values)>,
    /// The first time derivative where time begins: (field, values).
    pub initial_rate: Vec<(usize, Values)>,
    /// How the mesh follows the solution, where it does.
    pub adapt: Option<Adapt>,
    /// The eigenvalues that are asked for in the place of a solution.
    pub eigen: Option<Eigen>,
    /// The solver, where it was named.
    pub solver: Option<SolverSettings>,
    /// What is reported of the solution.
    pub reports: Reports,
}

impl Problem {
    /// Lets the paths of data and states in the text start from a folder, as that of its mesh does.
    pub fn start_paths_at(&mut self, folder: &Path) {
        let data = self.aux.iter_mut().map(|data| &mut data.value);
        let starts = self.initial.iter_mut().chain(&mut self.initial_rate);
        for values in data.chain(starts.map(|(_, values)| values)) {
            if let Values::File(stored) = values
                && std::mem::take(&mut stored.from_text)
            {
                stored.path = folder.join(&stored.path);
            }
        }
    }
}

/// How a mesh follows the solution: it is solved, the error of each cell is estimated, cells are marked and refined, and it
/// is solved again, until one of the limits is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adapt {
    /// How often the mesh is refined at most; there is one solve more.
    pub steps: usize,
    /// θ of Dörfler's marking, above 0 and at most 1: the fewest cells are marked with Σ_marked η² ≥ θ Σ η².
    pub fraction: f64,
    /// What is aimed at: η over ‖u‖ in the energy norm.
    pub until: Option<f64>,
    /// The most unknowns that a step may have.
    pub max_dofs: Option<usize>,
    /// The share of Σ η² that the cells which are made coarser hold at most, together with θ at most 1; none are at 0.
    pub coarsen: f64,
}

/// The eigenvalue problem J φ = λ M φ, with the Jacobian J of the problem's form at its start.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigen {
    /// How many of the smallest λ.
    pub count: usize,
    /// The relative residual of each mode, where it is given.
    pub rtol: Option<f64>,
    /// Iterations after which it ends.
    pub max_iterations: usize,
    /// `multigrid`, `direct`, `jacobi` or `none`; what fits without it.
    pub preconditioner: Option<String>,
    /// M, with the fields, the data and the parameters of the problem's form, in its order.
    pub mass: PointForm,
}

/// What a problem reports of its solution: `report NAME = EXPR;`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reports {
    /// The reports in order.
    pub items: Vec<Report>,
    /// The form whose kernels integrate: the fields, data and parameters of the problem's form, then fields of `L2(0)`
    /// whose components are tested with what is integrated, so that their part of its residual has one number a cell.
    /// None where nothing is integrated.
    pub integrals: Option<PointForm>,
    /// Likewise what is evaluated point by point: f0 of the further fields.
    pub pointwise: Option<PointForm>,
}

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub value: Reported,
}

/// What is reported.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// Arithmetic on measures: they are parameters of the expression, behind those of the form.
    Value {
        /// The expression.
        value: Expression,
        /// The measures.
        of: Vec<Measure>,
    },
    /// Values at equidistant points of a line, the ends among them.
    Line {
        /// Shape of a value.
        shape: Shape,
        /// The first of its components in [`Reports::pointwise`].
        first: usize,
        /// Where it begins and ends.
        ends: [[f64; 3]; 2],
        /// How many points.
        points: usize,
    },
}

/// A number, vector or matrix that is measured of a solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its shape.
    pub shape: Shape,
    /// What is measured.
    pub kind: Measured,
}

/// What is measured of a solution. `first` is the number of the first component in [`Reports::integrals`] or
/// [`Reports::pointwise`].
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// ∫ f dx over the cells, or over cells or facets with a tag.
    Integral {
        /// The first component.
        first: usize,
    },
    /// √∫ |f|² dx, of which the square is integrated.
    Norm {
        /// The component with the square, the first of those of f.
        first: usize,
        /// The components of f.
        components: usize,
    },
    /// The smallest value at the points of the cells.
    Minimum {
        /// The component.
        first: usize,
    },
    /// The largest.
    Maximum {
        /// The component.
        first: usize,
    },
    /// The value at a point.
    Value {
        /// The first component.
        first: usize,
        /// The point.
        at: [f64; 3],
    },
    /// Σ_i R_i(u) over the nodes with a tag, conditions left out: what holds the field there.
    Reaction {
        /// The field.
        field: usize,
        /// The tags; the whole boundary without them.
        tags: Option<Vec<String>>,
    },
}

/// Where a mesh comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshSource {
    /// A mesh file; the path as written, relative to the `.wf` file.
    File(String),
    /// A generator with its named arguments.
    Generator {
        /// `box`, `ball`, `shell`, `lshape`.
        name: String,
        /// Arguments by name.
        arguments: BTreeMap<String, Argument>,
    },
}

/// A named argument of a generator.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A number.
    Number(f64),
    /// Several numbers.
    Numbers(Vec<f64>),
    /// A bare word such as `hex` or `jacobi`, or a parameter's name.
    Word(String),
    /// A word with settings of its own: `multigrid(degree: 4)`.
    Made {
        /// The word.
        name: String,
        /// Its settings by name.
        arguments: BTreeMap<String, Argument>,
    },
}

impl Argument {
    /// The word that it is, with settings or without.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) | Self::Made { name: word, .. } => Some(word),
            Self::Number(_) | Self::Numbers(_) => None,
        }
    }

    /// A setting of the word that it is.
    pub fn setting(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Made { arguments, .. } => arguments.get(name),
            Self::Number(_) | Self::Numbers(_) | Self::Word(_) => None,
        }
    }
}

/// The value of auxiliary data.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Which of the form's.
    pub aux: usize,
    /// The tags of the cells that have this value; all of them without.
    pub tags: Option<Vec<String>>,
    /// The value.
    pub value: Values,
}

/// What gives values to data, or to a field at the start.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// A formula.
    Formula(Expression),
    /// An array of a file.
    File(Stored),
}

impl Values {
    /// The formula that it is.
    pub fn formula(&self) -> Option<&Expression> {
        match self {
            Self::Formula(formula) => Some(formula),
            Self::File(_) => None,
        }
    }
}

/// An array of a file: `file("data.vtu", "kappa")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The file.
    pub path: PathBuf,
    /// The name of the array, where it is given.
    pub array: Option<String>,
    /// Whether the path starts from the folder of the `.wf` file: that of the command line starts from the current one.
    pub from_text: bool,
}

/// What an essential condition gives of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// All of its components.
    Whole,
    /// One of them.
    Component(usize),
    /// u·n, with the outer normal n.
    Normal,
}

/// An essential condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Dirichlet {
    /// The field.
    pub field: usize,
    /// What of it is given.
    pub trace: Trace,
    /// The value; its shape is the field's, or scalar where a component or u·n is given. Of u·n it may be a field's value,
    /// of which the normal component is meant.
    pub value: Expression,
    /// Where it holds.
    pub support: Support,
}

/// The support of an essential condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Support {
    /// All facets of exactly one cell.
    Boundary,
    /// The sides with one of these tags; the curves and points of a tag that no side has.
    Tags(Vec<String>),
    /// The vertex nearest to a point.
    Vertex([f64; 3]),
}

impl Support {
    /// The tags that it names.
    pub fn tags(&self) -> &[String] {
        match self {
            Self::Tags(tags) => tags,
            Self::Boundary | Self::Vertex(_) => &[],
        }
    }
}

/// Two fields whose spaces are not inf-sup stable: of a saddle point, with as many unknowns in the one that has no term with
/// itself (a pressure) as the other (a velocity) can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnstablePair {
    /// The field without a term with itself.
    pub field: String,
    /// The field that should hold it.
    pub held_by: String,
    /// The degrees of both.
    pub degrees: [i64; 2],
    /// A space in which the first would be held.
    suited: String,
}

impl fmt::Display for UnstablePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { field, held_by, .. }, [degree, other]) = (self, self.degrees);
        write!(
            f,
            "`{field}` and `{held_by}` are not inf-sup stable (the Ladyzhenskaya–Babuška–Brezzi condition): `{field}` has \
             no term with itself, and its degree {degree} is not below the degree {other} of `{held_by}`"
        )
    }
}

impl UnstablePair {
    /// What to do.
    pub fn remedy(&self) -> String {
        let Self { field, held_by, suited, .. } = self;
        format!(
            "let `{field}` live {suited} (Taylor and Hood's elements), or give the form a term in `{field}` and its test \
             function that makes up for it beside `{held_by}`"
        )
    }
}

/// A pair of fields of a form at degree `k` that is known not to be inf-sup stable: one without any term with itself, a
/// continuous vector field that it meets only through one first derivative, as ∫ p div v does, and no lower degree.
pub fn unstable(form: &PointForm, k: usize) -> Option<UnstablePair> {
    let entries = || form.integrals.iter().flat_map(|integral| &integral.jacobian);
    let derivatives = |part: Part| usize::from(part != Part::Value);
    for (p, field) in form.fields.iter().enumerate() {
        if entries().any(|entry| (entry.test.field, entry.trial.field) == (p, p)) {
            continue;
        }
        for (v, other) in form.fields.iter().enumerate() {
            let Space::H1(of) = other.space else { continue };
            let degrees = [field.space.degree_at(k), other.space.degree_at(k)];
            let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
            let mut shared = cells.flat_map(|integral| &integral.jacobian).filter(|entry| {
                let fields = (entry.test.field, entry.trial.field);
                fields == (p, v) || fields == (v, p)
            });
            let mut once = shared.clone().peekable();
            let meets = once.peek().is_some()
                && shared
                    .all(|entry| derivatives(entry.test.part) + derivatives(entry.trial.part) == 1);
            if v == p || !meets || other.shape.components() < form.dim || degrees[0] < degrees[1] {
                continue;
            }
            let suited = match of {
                Degree::Relative(offset) => {
                    let space = Space::H1(Degree::Relative(offset - 1));
                    format!("in `{space}`, from degree {} on", space.smallest_degree())
                }
                Degree::Fixed(0 | 1) => {
                    format!("in `H1(1)`, beside `{}` in `H1(2)`", other.name)
                }
                Degree::Fixed(degree) => format!("in `H1({})`", degree - 1),
            };
            let (field, held_by) = (field.name.clone(), other.name.clone());
            return Some(UnstablePair { field, held_by, degrees, suited });
        }
    }
    None
}
