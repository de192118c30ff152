//! A checked `problem` block: form, mesh, boundary conditions, data and solver.
//!
//! Expressions are [`Expression`]s over the same scalar graph as forms, in x, t, h and the form's parameters, so that
//! one evaluator serves both.

pub(crate) mod keyword;
mod null_space;
mod periodic;
mod preconditioner;
pub mod solver;
pub mod stepping;

pub use crate::ast::{BoundSide, OutputSampling};
pub use null_space::{NullSpaceKind, Point, RigidMotion, UndeterminedField};
pub use periodic::{PeriodicMap, PeriodicSides};

use crate::point::{Degree, Graph, NodeId, NumberForms, Part, PointForm, Shape, Space};
pub use preconditioner::{BlockSettings, MultigridSettings, PreconditionerSettings, Smoother};
pub use solver::{
    Forcing, LineSearch, LinearSettings, LoadPath, Method, NewtonSettings, SolverSettings,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
pub use stepping::{Formula, Mass, Scheme, SchemeError, Stepping, SteppingError};

/// Largest quadrature degree D. It integrates a product of four functions of degree 12, the largest of any element,
/// exactly over a hexahedron whose sides have degree 5, the largest in mesh files. Most cells support far less, which
/// is reported when kernels are generated.
pub const LARGEST_QUADRATURE: u32 = 62;

/// Largest number of mesh refinements; with one more, a single refined cell has more entities than 32-bit indices can
/// number.
pub const MOST_REFINED: u32 = 14;

/// A quadrature other than the one prescribed for the degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quadrature {
    /// A degree D: ⌊D/2⌋ + 1 Gauss points per direction on tensor cells, a rule exact to degree D on simplices.
    Degree(usize),
    /// The nodes of the largest degree themselves, Gauss-Lobatto points, on tensor cells: mass matrices are diagonal.
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

/// The keyword for [`Quadrature::Collocated`].
pub(crate) const COLLOCATED: &str = "collocated";

/// A pointwise expression without fields: its components and, if it is differentiable, their gradients and time
/// derivatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Shape of the value.
    pub shape: Shape,
    /// The graph; its inputs are coordinates, time, diameter, degree and parameters.
    pub graph: Graph,
    /// One node per component, row-major.
    pub value: Vec<NodeId>,
    /// ∂value_i/∂x_j at `[i * dim + j]`.
    pub gradient: Vec<NodeId>,
    /// ∂value/∂t and ∂²value/∂t², one node per component; empty if it does not exist.
    pub rates: [Vec<NodeId>; 2],
}

/// A problem in one space dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The problem's name.
    pub name: String,
    /// The documentation comment above it.
    pub doc: String,
    /// The form to solve, checked for the mesh's dimension. Unknown numbers are parameters of it.
    pub form: PointForm,
    /// The unknown numbers, if any.
    pub numbers: Option<Numbers>,
    /// The number of refinements of its mesh.
    pub refine: usize,
    /// Degree k.
    pub degree: usize,
    /// The quadrature, if it was set.
    pub quadrature: Option<Quadrature>,
    /// The time; the start of a time-dependent problem.
    pub time: f64,
    /// The time integration, if any.
    pub stepping: Option<Stepping>,
    /// Parameter values that differ from the form's defaults: (index, components).
    pub params: Vec<(usize, Vec<f64>)>,
    /// Values of auxiliary data, in order: later ones take precedence.
    pub aux: Vec<Data>,
    /// Essential conditions, in order: later ones take precedence.
    pub dirichlet: Vec<Dirichlet>,
    /// States at points, which change when a step has converged.
    pub states: Vec<PointState>,
    /// Bounds of fields: inequalities.
    pub bounds: Vec<Bound>,
    /// Sources at points, which add up.
    pub sources: Vec<PointSource>,
    /// Parts of the boundary whose facets are identified.
    pub periodic: Vec<PeriodicSides>,
    /// Mean-value constraints for fields determined up to a constant: (field, mean of each component).
    pub mean: Vec<(usize, Vec<f64>)>,
    /// Known solutions, including manufactured ones: (field, expression).
    pub exact: Vec<(usize, Expression)>,
    /// The initial state: (field, values).
    pub initial: Vec<(usize, ValueSource)>,
    /// The initial first time derivative: (field, values).
    pub initial_rate: Vec<(usize, ValueSource)>,
    /// Adaptive mesh refinement, if any.
    pub adapt: Option<AdaptiveRefinement>,
    /// The requested eigenvalues, instead of a solution.
    pub eigen: Option<EigenProblem>,
    /// Its stages, if any.
    pub stages: Option<Stages>,
    /// The solver, where it was named.
    pub solver: Option<SolverSettings>,
    /// The reports on the solution.
    pub reports: Reports,
}

impl Problem {
    /// A problem of degree 1 with nothing but its form.
    pub fn of(form: PointForm) -> Self {
        Self {
            name: form.name.clone(),
            doc: String::new(),
            form,
            numbers: None,
            refine: 0,
            degree: 1,
            quadrature: None,
            time: 0.0,
            stepping: None,
            params: Vec::new(),
            aux: Vec::new(),
            dirichlet: Vec::new(),
            states: Vec::new(),
            bounds: Vec::new(),
            sources: Vec::new(),
            periodic: Vec::new(),
            mean: Vec::new(),
            exact: Vec::new(),
            initial: Vec::new(),
            initial_rate: Vec::new(),
            adapt: None,
            eigen: None,
            stages: None,
            solver: None,
            reports: Reports::default(),
        }
    }

    /// Makes the paths of data and states in the text relative to a folder, like that of its mesh.
    pub fn start_paths_at(&mut self, folder: &Path) {
        let data = self.aux.iter_mut().map(|data| &mut data.value);
        let starts = self.initial.iter_mut().chain(&mut self.initial_rate);
        for values in data.chain(starts.map(|(_, values)| values)) {
            if let ValueSource::File(stored) = values
                && std::mem::take(&mut stored.from_text)
            {
                stored.path = folder.join(&stored.path);
            }
        }
    }
}

/// The unknown numbers of a problem: `field c: scalar in R;`.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// Their equations.
    pub forms: NumberForms,
    /// The fields that are free up to a constant for given numbers. Their constants are unknowns next to the numbers.
    pub free: Vec<usize>,
}

/// Problems that are solved in turn, again and again, each with the latest solutions of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    /// The problems before the one that states them, which is the last stage.
    pub before: Vec<Arc<Problem>>,
    /// Largest number of steps.
    pub steps: usize,
    /// The length of a step in time, if time passes.
    pub step: Option<f64>,
    /// Relative change of all solutions in a step at which the stages end.
    pub until: Option<f64>,
}

/// Adaptive mesh refinement: the problem is solved, the error of each cell is estimated, and cells are marked and
/// refined. This is repeated until one of the limits is reached. In time, the mesh follows the solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveRefinement {
    /// Number of time steps from one mesh to the next; `None` for a problem without time.
    pub every: Option<usize>,
    /// Largest number of mesh refinements; there is one more solve. In time, those of the initial mesh.
    pub steps: usize,
    /// θ of Dörfler marking, above 0 and at most 1: the smallest set of cells with Σ_marked η² ≥ θ Σ η².
    pub fraction: f64,
    /// The target for η over ‖u‖ in the energy norm.
    pub until: Option<f64>,
    /// Largest number of DoFs of a step.
    pub max_dofs: Option<usize>,
    /// Largest share of Σ η² in coarsened cells, at most 1 together with θ; 0 disables coarsening.
    pub coarsen: f64,
    /// Largest number of divisions of a cell of the initial mesh.
    pub levels: Option<usize>,
}

/// Preconditioner of an eigenvalue problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EigenPreconditioner {
    /// A multigrid hierarchy of J.
    Multigrid,
    /// Shift and invert by factors of J + σ M.
    Direct,
    /// The diagonal of J.
    Jacobi,
    /// None.
    None,
}

impl EigenPreconditioner {
    /// The words of the language.
    pub(crate) const WORDS: &[&str] = &["multigrid", "direct", "jacobi", "none"];

    /// Reads one of [`Self::WORDS`].
    pub(crate) fn read(word: &str) -> Self {
        match word {
            "direct" => Self::Direct,
            "jacobi" => Self::Jacobi,
            "none" => Self::None,
            _ => Self::Multigrid,
        }
    }
}

/// The eigenvalue problem J φ = λ M φ, with the Jacobian J of the problem's form at its initial state.
#[derive(Clone, Debug, PartialEq)]
pub struct EigenProblem {
    /// The number of smallest λ.
    pub count: usize,
    /// The relative residual of each mode, if set.
    pub rtol: Option<f64>,
    /// Largest number of iterations.
    pub max_iterations: usize,
    /// The preconditioner, if the problem names one.
    pub preconditioner: Option<EigenPreconditioner>,
    /// M, with the fields, the data and the parameters of the problem's form, in its order.
    pub mass: PointForm,
}

/// The reports of a problem on its solution: `report NAME = EXPR;`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reports {
    /// The reports in order.
    pub items: Vec<Report>,
    /// The form whose kernels integrate. It has the fields, data and parameters of the problem's form, then fields of
    /// `L2(0)` whose components are tested with the integrands. Their part of its residual thus has one entry per cell.
    /// `None` without integrals.
    pub integrals: Option<PointForm>,
    /// Likewise pointwise evaluations: f0 of the additional fields.
    pub pointwise: Option<PointForm>,
    /// The outputs in order: `output NAME = EXPR;`.
    pub outputs: Vec<DerivedQuantity>,
    /// The pointwise evaluations of the outputs, likewise.
    pub derivation: Option<PointForm>,
}

/// An output: an expression at the points of a solution.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedQuantity {
    /// Its name.
    pub name: String,
    /// Shape of a value.
    pub shape: Shape,
    /// The first of its components in [`Reports::derivation`].
    pub first: usize,
    /// The points of its values.
    pub sampling: OutputSampling,
}

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ReportFormula,
}

/// The value of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportFormula {
    /// Arithmetic on functionals, which are parameters of the expression after those of the form.
    Value {
        /// The expression.
        value: Expression,
        /// The functionals.
        of: Vec<Functional>,
    },
    /// Values at equidistant points of a line, including the ends.
    Line {
        /// Shape of a value.
        shape: Shape,
        /// The first of its components in [`Reports::pointwise`].
        first: usize,
        /// Its start and end.
        ends: [[f64; 3]; 2],
        /// The number of points.
        points: usize,
    },
}

/// A functional of a solution: a number, vector or matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Functional {
    /// Its shape.
    pub shape: Shape,
    /// Its kind.
    pub kind: FunctionalKind,
}

/// The kind of a functional. `first` is the index of the first component in [`Reports::integrals`] or
/// [`Reports::pointwise`].
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionalKind {
    /// ∫ f dx over the cells, or over cells or facets with a tag.
    Integral {
        /// The first component.
        first: usize,
    },
    /// √∫ |f|² dx, whose square is integrated.
    Norm {
        /// The component with the square, which is the first of those of f.
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
    /// Σ_i R_i(u) over the degrees of freedom at their bounds: the multiplier of the inequalities.
    Multiplier {
        /// The field.
        field: usize,
        /// The tags; all nodes if absent.
        tags: Option<Vec<String>>,
    },
    /// Σ_i R_i(u) over the nodes with a tag, without conditions: the reaction of the constraints.
    Reaction {
        /// The field.
        field: usize,
        /// The tags; the whole boundary if absent.
        tags: Option<Vec<String>>,
    },
}

/// The source of a mesh.
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
    /// A list of numbers.
    Numbers(Vec<f64>),
    /// A bare keyword such as `hex` or `jacobi`, or a parameter's name.
    Word(String),
    /// A keyword with settings: `multigrid(degree: 4)`.
    Call {
        /// The keyword.
        name: String,
        /// Its settings by name.
        arguments: BTreeMap<String, Argument>,
    },
}

impl Argument {
    /// Returns its keyword, with settings or without.
    pub fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) | Self::Call { name: word, .. } => Some(word),
            Self::Number(_) | Self::Numbers(_) => None,
        }
    }

    /// Returns a setting of its keyword.
    pub fn setting(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Call { arguments, .. } => arguments.get(name),
            Self::Number(_) | Self::Numbers(_) | Self::Word(_) => None,
        }
    }
}

/// The value of auxiliary data.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The index of the auxiliary data.
    pub aux: usize,
    /// The tags of the cells with this value; all cells if absent.
    pub tags: Option<Vec<String>>,
    /// The value.
    pub value: ValueSource,
}

/// The source of values of data, or of a field at the start.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSource {
    /// A formula.
    Formula(Expression),
    /// An array of a file.
    File(FileArray),
    /// A field of another problem of the text, which is solved first.
    Solution(SolutionField),
    /// A field given by its values in each cell.
    Cells(Arc<CellField>),
}

impl ValueSource {
    /// Returns the formula, if it is one.
    pub fn formula(&self) -> Option<&Expression> {
        match self {
            Self::Formula(formula) => Some(formula),
            Self::File(_) | Self::Solution(_) | Self::Cells(_) => None,
        }
    }
}

/// A field of the solution of another problem: `solution(warm, "T")`.
#[derive(Clone, Debug, PartialEq)]
pub struct SolutionField {
    /// The name of the problem.
    pub problem: String,
    /// The name of the field.
    pub field: String,
    /// The problem, once the dimension is known.
    pub source: Option<Arc<Problem>>,
}

/// A field on the cells of a mesh, with values of its own in each.
#[derive(Clone, Debug, PartialEq)]
pub struct CellField {
    /// Its origin, in messages.
    pub origin: String,
    /// True if it is continuous.
    pub continuous: bool,
    /// Degree of its polynomials.
    pub degree: usize,
    /// Number of components.
    pub components: usize,
    /// Values at the nodes of the cells, `[cell][node][component]`.
    pub values: Vec<f64>,
}

/// An array of a file: `file("data.vtu", "kappa")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileArray {
    /// The file.
    pub path: PathBuf,
    /// The name of the array, if present.
    pub array: Option<String>,
    /// True if the path is relative to the folder of the `.wf` file; one from the command line is relative to the
    /// current folder.
    pub from_text: bool,
}

/// The constrained trace of an essential condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// All components; in Hcurl the tangential part, in Hdiv the normal component.
    Whole,
    /// One component; of no field in Hcurl or Hdiv.
    Component(usize),
    /// u·n, with the outer normal n; of no field in Hcurl.
    Normal,
    /// n × u, in the plane the number n₀ u₁ − n₁ u₀; of fields in Hcurl only.
    Tangential,
}

/// A source at a point a: v δ(x − a) on the right-hand side of the equations of a field, so that R_i loses v φ_i(a).
#[derive(Clone, Debug, PartialEq)]
pub struct PointSource {
    /// The field.
    pub field: usize,
    /// The component; all if absent.
    pub component: Option<usize>,
    /// v, evaluated at a.
    pub value: Expression,
    /// a.
    pub place: [f64; 3],
}

/// An essential condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Dirichlet {
    /// The field.
    pub field: usize,
    /// The constrained trace.
    pub trace: Trace,
    /// The value; its shape is the field's, or scalar for a component, u·n, or n × u in the plane. For u·n it may be a
    /// field's value, whose normal component is used.
    pub value: Expression,
    /// Its support.
    pub support: Support,
}

/// A state at points: data that a converged step replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointState {
    /// The data.
    pub aux: usize,
    /// The first component of its next value in [`Reports::derivation`].
    pub first: usize,
}

/// An inequality for the values of a field at nodes: u ≥ ψ or u ≤ ψ.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The field, in H1.
    pub field: usize,
    /// The component, of fields with several.
    pub component: usize,
    /// The side on which the field lies.
    pub side: BoundSide,
    /// ψ, a number.
    pub value: Expression,
    /// The tags of its part of the boundary; all nodes if absent.
    pub tags: Option<Vec<String>>,
}

/// The support of an essential condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Support {
    /// All facets that belong to exactly one cell.
    Boundary,
    /// The sides with one of these tags; the curves and points of a tag without sides.
    Tags(Vec<String>),
    /// The vertex nearest to a point.
    Vertex([f64; 3]),
}

impl Support {
    /// Returns the tags of the support.
    pub fn tags(&self) -> &[String] {
        match self {
            Self::Tags(tags) => tags,
            Self::Boundary | Self::Vertex(_) => &[],
        }
    }
}

/// Two fields of a saddle point whose spaces are not inf-sup stable: the field without a term with itself (a pressure) has
/// too many degrees of freedom for the other (a velocity) to control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnstablePair {
    /// The field without a term with itself.
    pub field: String,
    /// The field that should control it.
    pub partner: String,
    /// The degrees of both.
    pub degrees: [i64; 2],
    /// A stable space for the first.
    suited: String,
}

impl fmt::Display for UnstablePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { field, partner, .. }, [degree, other]) = (self, self.degrees);
        write!(
            f,
            "`{field}` and `{partner}` are not inf-sup stable (the Ladyzhenskaya–Babuška–Brezzi condition): `{field}` has \
             no term with itself, and its degree {degree} is not below the degree {other} of `{partner}`"
        )
    }
}

impl UnstablePair {
    /// Returns the suggested correction.
    pub fn remedy(&self) -> String {
        let Self { field, partner, suited, .. } = self;
        format!(
            "let `{field}` live {suited} (Taylor and Hood's elements), or give the form a term in `{field}` and its test \
             function that makes up for it beside `{partner}`"
        )
    }
}

/// Returns a pair of fields of a form at degree `k` that is known not to be inf-sup stable. The first has no term with
/// itself, and a degree not below that of the second, a continuous vector field. They are coupled only through one
/// first derivative, as in ∫ p div v.
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
            let (field, partner) = (field.name.clone(), other.name.clone());
            return Some(UnstablePair { field, partner, degrees, suited });
        }
    }
    None
}
