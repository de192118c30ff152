//! The syntax tree, as plain data: the output of `parse`, the input of `check`.
//!
//! It contains syntax only. The expressions of a file are in one arena, operands before their users, so that a pass
//! over them is a loop. A broken expression is an [`ExprKind::Error`]: it has been reported, so that later stages
//! ignore it.

pub use crate::source::Span;

use crate::arena::IndexVec;
use crate::id_type;

id_type!(
    /// An expression of a [`File`].
    ExprId, "e"
);

/// A file, or the body of the macro.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// Forms in order.
    pub forms: Vec<Form>,
    /// Problems in order.
    pub problems: Vec<Problem>,
    /// All expressions, operands first.
    pub exprs: IndexVec<ExprId, Expr>,
}

/// A name with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Its location.
    pub span: Span,
}

/// A string with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text between the quotes.
    pub text: String,
    /// Its location, including quotes.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its location, without brackets around it.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A broken expression; already reported.
    Error,
    /// A number, finite and not negative.
    Number(f64),
    /// A name.
    Name(String),
    /// `"inlet"`, an argument of some functions.
    Text(String),
    /// `interior from "a" to "b"`, an argument of some functions.
    Interior(BlockRegion, Vec<Text>),
    /// `[a, b, c]`; a matrix is an array of arrays.
    Array(Vec<ExprId>),
    /// `f(a, b, on: "inlet")`.
    Call {
        /// The function's name.
        function: Ident,
        /// Its arguments without a name.
        arguments: Vec<ExprId>,
        /// The named ones, which follow.
        named: Vec<Argument>,
    },
    /// `a[i, j]`.
    Index {
        /// The indexed expression.
        base: ExprId,
        /// The indices.
        indices: Vec<ExprId>,
    },
    /// `-a` or `!a`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operator's location.
        op_span: Span,
        /// The operand.
        operand: ExprId,
    },
    /// `a + b` and so on.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The operator's location.
        op_span: Span,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// `if c { a } else { b }`.
    If {
        /// The condition.
        condition: ExprId,
        /// The value if it is true.
        then: ExprId,
        /// The value if it is false.
        otherwise: ExprId,
    },
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `^`
    Pow,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `&&`
    And,
    /// `||`
    Or,
}

impl BinaryOp {
    /// Returns its text.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Pow => "^",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::And => "&&",
            Self::Or => "||",
        }
    }
}

/// `form NAME { … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The documentation comment, without the slashes.
    pub doc: String,
    /// Its name.
    pub name: Ident,
    /// Its items in order.
    pub items: Vec<FormItem>,
    /// The span from `form` to `}`.
    pub span: Span,
}

/// An item of a form or of a boundary block.
#[derive(Clone, Debug, PartialEq)]
pub struct FormItem {
    /// The documentation comment, without the slashes.
    pub doc: String,
    /// Its kind.
    pub kind: FormItemKind,
    /// The span from its first word to its `;` or `}`.
    pub span: Span,
}

/// The items of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormItemKind {
    /// A broken item of unknown kind; already reported. In its presence, checks for missing items are suppressed.
    Broken,
    /// `field u: SHAPE in SPACE on "a", "b";`
    Field {
        /// Name.
        name: Ident,
        /// Shape; `None` if broken.
        shape: Option<ShapeSpec>,
        /// Space, if present.
        space: Option<SpaceSpec>,
        /// Tags of its cells; none for all cells.
        tags: Vec<Text>,
    },
    /// `aux a: SHAPE on PLACE;`
    Aux {
        /// Name.
        name: Ident,
        /// Shape; `None` if broken.
        shape: Option<ShapeSpec>,
        /// Location of the data, if present.
        place: Option<LocationSpec>,
    },
    /// The start of `state p: SHAPE on points = EXPR;`, after its declaration as data.
    Start {
        /// The state.
        name: Ident,
        /// Its initial value.
        value: ExprId,
    },
    /// `update p = EXPR;`
    Update {
        /// The state.
        name: Ident,
        /// Its value when a step has converged.
        value: ExprId,
    },
    /// `param c: SHAPE = EXPR;`
    Param {
        /// Name.
        name: Ident,
        /// Shape, if present.
        shape: Option<ShapeSpec>,
        /// Default value.
        value: ExprId,
    },
    /// `let a = EXPR;`
    Let {
        /// Name.
        name: Ident,
        /// Value.
        value: ExprId,
    },
    /// `fn f(a, b) = EXPR;`
    Fn {
        /// Name.
        name: Ident,
        /// Names of the arguments.
        parameters: Vec<Ident>,
        /// Value.
        body: ExprId,
    },
    /// `f0[u] = EXPR;` or `f1[u] = EXPR;`, between cells also `f0[jump(u)] = EXPR;` and so on.
    Row {
        /// The kind of row.
        row: RowKind,
        /// The location of `f0` or `f1`.
        row_span: Span,
        /// The word around the field, if present.
        side: Option<(SideWord, Span)>,
        /// The field.
        field: Ident,
        /// Value.
        value: ExprId,
    },
    /// `test v for u;`
    Test {
        /// Name.
        name: Ident,
        /// The field.
        field: Ident,
    },
    /// `residual = EXPR;`
    Residual {
        /// Value.
        value: ExprId,
    },
    /// `energy = EXPR;`
    Energy {
        /// Value.
        value: ExprId,
    },
    /// `on boundary "a", "b" { … }`, `on cells "a" { … }`, `on interior { … }`; blocks are not nested.
    Block {
        /// Its kind of region.
        region: BlockRegion,
        /// The tags; of an ordered interior two, else of an interior perhaps none.
        tags: Vec<Text>,
        /// The items.
        items: Vec<FormItem>,
    },
}

/// The kinds of region of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRegion {
    /// `on cells`
    Cells,
    /// `on boundary`
    Boundary,
    /// `on interior`
    Interior,
    /// `on interior from "a" to "b"`
    OrderedInterior,
}

impl BlockRegion {
    /// Returns whether it consists of facets, which have a normal.
    pub const fn is_of_facets(self) -> bool {
        !matches!(self, Self::Cells)
    }

    /// Returns whether it consists of facets between two cells.
    pub const fn is_interior(self) -> bool {
        matches!(self, Self::Interior | Self::OrderedInterior)
    }
}

/// The words that take a value from one or both of the two cells at a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SideWord {
    /// `inside(e)`
    Inside,
    /// `outside(e)`
    Outside,
    /// `jump(e)`: inside(e) − outside(e)
    Jump,
    /// `avg(e)`: (inside(e) + outside(e)) / 2
    Average,
}

impl SideWord {
    /// All words.
    pub const ALL: [Self; 4] = [Self::Inside, Self::Outside, Self::Jump, Self::Average];

    /// Returns the word as written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Outside => "outside",
            Self::Jump => "jump",
            Self::Average => "avg",
        }
    }

    /// Returns the word with this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.name() == name)
    }
}

/// The test factor of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKind {
    /// φ
    F0,
    /// ∇φ
    F1,
}

/// A shape as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeSpec {
    /// Its kind.
    pub kind: ShapeKind,
    /// True for complex numbers.
    pub complex: bool,
    /// Its location.
    pub span: Span,
}

/// The shapes that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeKind {
    /// `scalar`
    Scalar,
    /// `vector`, or `vector(n)`
    Vector(Option<usize>),
    /// `tensor`
    Tensor,
}

/// A space as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceSpec {
    /// The family.
    pub family: Family,
    /// The degree, if present.
    pub degree: Option<DegreeSpec>,
    /// Its location.
    pub span: Span,
}

/// Families of finite elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Continuous Lagrange.
    H1,
    /// Discontinuous Lagrange.
    L2,
    /// Nédélec elements.
    Hcurl,
    /// Raviart–Thomas elements.
    Hdiv,
    /// Unknown numbers.
    R,
}

/// A product of a field with the normal.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalProduct {
    /// True for `cross(n, u)`, false for `dot(u, n)`.
    pub cross: bool,
    /// The factor in the place of `n`.
    pub normal: Ident,
}

/// A degree as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegreeSpec {
    /// `k`, `k - 1`, `k + 1`
    Relative(i32),
    /// `2`
    Fixed(usize),
}

/// The location of auxiliary data as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationSpec {
    /// Its kind.
    pub kind: LocationKind,
    /// Its location in the text.
    pub span: Span,
}

/// The locations of auxiliary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    /// `on nodes`, `on nodes in SPACE`
    Nodes(Option<SpaceSpec>),
    /// `on cells`
    Cells,
    /// `on points`
    Points,
}

/// `problem NAME solves FORM { … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The documentation comment, without the slashes.
    pub doc: String,
    /// Its name.
    pub name: Ident,
    /// The form to solve.
    pub form: Ident,
    /// Its items in order.
    pub items: Vec<ProblemItem>,
    /// The span from `problem` to `}`.
    pub span: Span,
}

/// An item of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct ProblemItem {
    /// The documentation comment, without the slashes.
    pub doc: String,
    /// Its kind.
    pub kind: ProblemItemKind,
    /// The span from its first word to its `;`.
    pub span: Span,
}

/// The items of a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum ProblemItemKind {
    /// A broken item of unknown kind; already reported. In its presence, checks for missing items are suppressed.
    Broken,
    /// `mesh = "part.msh";`
    MeshFile(Text),
    /// `mesh = GENERATOR(name: value, …);`
    MeshGenerator(NamedCall),
    /// `refine = N;` `degree = k;` `quadrature = D;` `t = 0;`
    Setting {
        /// The name of the setting.
        name: Ident,
        /// Value.
        value: ExprId,
    },
    /// `param c = EXPR;`
    Param {
        /// The parameter.
        name: Ident,
        /// Value.
        value: ExprId,
    },
    /// `aux a = EXPR on "tag";`
    Aux {
        /// The auxiliary data.
        name: Ident,
        /// Value.
        value: ExprId,
        /// The cells; all if absent.
        place: Option<SupportSpec>,
    },
    /// `dirichlet u[i] = EXPR on "tag";`, `dirichlet dot(u, n) = …;` or `dirichlet cross(n, u) = …;`
    Dirichlet {
        /// The field.
        field: Ident,
        /// The component, if present.
        component: Option<ExprId>,
        /// The product, for a condition on the normal component or the tangential part.
        normal: Option<NormalProduct>,
        /// Value; that of the known solution if absent.
        value: Option<ExprId>,
        /// The part of the boundary; all of it if absent.
        place: Option<SupportSpec>,
    },
    /// `bound u[i] >= EXPR on "tag";` or `<=`
    Bound {
        /// The field.
        field: Ident,
        /// The component, if present.
        component: Option<ExprId>,
        /// The product, for a bound of the normal component.
        normal: Option<NormalProduct>,
        /// The side of the values of the field.
        side: BoundSide,
        /// Value.
        value: ExprId,
        /// The part of the boundary; all nodes of the field if absent.
        place: Option<SupportSpec>,
    },
    /// `source u[i] = EXPR at [x, y];`
    Source {
        /// The field.
        field: Ident,
        /// The component, if present.
        component: Option<ExprId>,
        /// Value.
        value: ExprId,
        /// The place.
        place: ExprId,
    },
    /// `periodic "left" = "right";`, `periodic "left" = "right" by rotation(about: [0, 0]);`
    Periodic {
        /// The tags.
        sides: [Text; 2],
        /// The map of one to the other; `None` for a translation.
        map: Option<NamedCall>,
    },
    /// `mean p = 0;`
    Mean {
        /// The field.
        field: Ident,
        /// Value.
        value: ExprId,
    },
    /// `exact u = EXPR;`
    Exact {
        /// The field.
        field: Ident,
        /// Value.
        value: ExprId,
    },
    /// `initial u = EXPR;`, or `initial dt(u) = EXPR;`
    Initial {
        /// True for a time derivative.
        rate: bool,
        /// The field.
        field: Ident,
        /// Value.
        value: ExprId,
    },
    /// `manufactured u = EXPR;`
    Manufactured {
        /// The field.
        field: Ident,
        /// Value.
        value: ExprId,
    },
    /// `adapt(steps: 6, fraction: 0.3);`
    Adapt {
        /// Its arguments.
        arguments: Vec<Argument>,
    },
    /// `solver = cg(rtol: 1e-10);`
    Solver(NamedCall),
    /// `report drag = EXPR;`
    Report {
        /// The name of the report.
        name: Ident,
        /// Value: arithmetic on functionals of a solution.
        value: ExprId,
    },
    /// `output vonMises = EXPR;`, or `output sigma;` of an expression of the form
    Output {
        /// The name of the array.
        name: Ident,
        /// Value: an expression at a point; the name if it is that of an expression of the form.
        value: ExprId,
        /// The points of its values.
        sampling: OutputSampling,
    },
}

/// The side of a bound on which a field lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundSide {
    /// `>=`
    #[default]
    Above,
    /// `<=`
    Below,
}

/// Points of the values of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputSampling {
    /// The nodes, with the mean of their cells.
    #[default]
    Nodes,
    /// The nodes of each cell: `discontinuous`.
    Discontinuous,
    /// Means over the cells: `on cells`.
    Cells,
}

/// A word with named arguments: `ball(dim: 3)`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCall {
    /// The word.
    pub name: Ident,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The span of the whole.
    pub span: Span,
}

/// `name: EXPR`; a bare word such as `hex` is a [`ExprKind::Name`].
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub value: ExprId,
}

/// The support of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SupportSpec {
    /// `on all`
    All(Span),
    /// `on "a", "b"`
    Tags(Vec<Text>),
    /// `at [x, y]`
    At(ExprId),
}
