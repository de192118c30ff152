//! What was written, as plain data: the output of `parse`, the input of `check`.
//!
//! Syntax only. Expressions lie in one arena a file, operands before their users, so that a pass
//! over them is a loop. Where the text of an expression was broken there is [`ExprKind::Error`]:
//! it has been reported, so later stages pass over it in silence.

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

/// A name where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// A string where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text between the quotes.
    pub text: String,
    /// Its place, quotes included.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its place, without brackets around it.
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
    /// `[a, b, c]`; a matrix is an array of arrays.
    Array(Vec<ExprId>),
    /// `f(a, b, on: "inlet")`.
    Call {
        /// The function's name.
        function: Ident,
        /// Its arguments without a name.
        arguments: Vec<ExprId>,
        /// Those with one, which stand behind them.
        named: Vec<Argument>,
    },
    /// `a[i, j]`.
    Index {
        /// What is indexed.
        base: ExprId,
        /// The indices.
        indices: Vec<ExprId>,
    },
    /// `-a` or `!a`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operator's place.
        op_span: Span,
        /// The operand.
        operand: ExprId,
    },
    /// `a + b` and so on.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The operator's place.
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
        /// Where it holds.
        then: ExprId,
        /// Where it does not.
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
    /// As it is written.
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
    /// From `form` to `}`.
    pub span: Span,
}

/// An item of a form or of a boundary block.
#[derive(Clone, Debug, PartialEq)]
pub struct FormItem {
    /// The documentation comment, without the slashes.
    pub doc: String,
    /// What it is.
    pub kind: FormItemKind,
    /// From its first word to its `;` or `}`.
    pub span: Span,
}

/// The items of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormItemKind {
    /// A broken item of which nothing is known; already reported. Checks that something is
    /// missing keep silent where there is one.
    Broken,
    /// `field u: SHAPE in SPACE;`
    Field {
        /// Name.
        name: Ident,
        /// Shape; none where it was broken.
        shape: Option<ShapeSpec>,
        /// Space, where it is given.
        space: Option<SpaceSpec>,
    },
    /// `aux a: SHAPE on PLACE;`
    Aux {
        /// Name.
        name: Ident,
        /// Shape; none where it was broken.
        shape: Option<ShapeSpec>,
        /// Where the data lives, where it is given.
        place: Option<PlaceSpec>,
    },
    /// `param c: SHAPE = EXPR;`
    Param {
        /// Name.
        name: Ident,
        /// Shape, where it is given.
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
    /// `f0[u] = EXPR;` or `f1[u] = EXPR;`
    Row {
        /// Which of the two, at the place of the word.
        row: Row,
        /// The place of `f0` or `f1`.
        row_span: Span,
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
    /// `on boundary "a", "b" { … }`, `on cells "a" { … }`; no block among its items.
    Block {
        /// Whether it is of facets of the boundary, not of cells.
        of_facets: bool,
        /// The tags.
        tags: Vec<Text>,
        /// The items.
        items: Vec<FormItem>,
    },
}

/// What a row is tested against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Row {
    /// φ
    F0,
    /// ∇φ
    F1,
}

/// A shape as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeSpec {
    /// What it is.
    pub kind: ShapeKind,
    /// Its place.
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
    /// The degree, where it is given.
    pub degree: Option<DegreeSpec>,
    /// Its place.
    pub span: Span,
}

/// Families of finite elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Continuous Lagrange.
    H1,
    /// Discontinuous Lagrange.
    L2,
}

/// A degree as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DegreeSpec {
    /// `k`, `k - 1`, `k + 1`
    Relative(i32),
    /// `2`
    Fixed(usize),
}

/// Where auxiliary data lives, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceSpec {
    /// What it is.
    pub kind: PlaceKind,
    /// Its place in the text.
    pub span: Span,
}

/// The places of auxiliary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
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
    /// The form that it solves.
    pub form: Ident,
    /// Its items in order.
    pub items: Vec<ProblemItem>,
    /// From `problem` to `}`.
    pub span: Span,
}

/// An item of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct ProblemItem {
    /// The documentation comment, without the slashes.
    pub doc: String,
    /// What it is.
    pub kind: ProblemItemKind,
    /// From its first word to its `;`.
    pub span: Span,
}

/// The items of a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum ProblemItemKind {
    /// A broken item of which nothing is known; already reported. Checks that something is
    /// missing keep silent where there is one.
    Broken,
    /// `mesh = "part.msh";`
    MeshFile(Text),
    /// `mesh = GENERATOR(name: value, …);`
    MeshGenerator(Named),
    /// `refine = N;` `degree = k;` `quadrature = D;` `t = 0;`
    Setting {
        /// Which.
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
        /// On which cells; on all where it is left out.
        place: Option<Place>,
    },
    /// `dirichlet u[i] = EXPR on "tag";` or `dirichlet dot(u, n) = EXPR on "tag";`
    Dirichlet {
        /// The field.
        field: Ident,
        /// One component, where it is given.
        component: Option<ExprId>,
        /// What the field is multiplied with, where only its normal component is given.
        normal: Option<Ident>,
        /// Value; the known solution's where it is left out.
        value: Option<ExprId>,
        /// Where; everywhere where it is left out.
        place: Option<Place>,
    },
    /// `periodic "left" = "right";`
    Periodic {
        /// The tags.
        sides: [Text; 2],
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
        /// Whether it is of the time derivative.
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
    Solver(Named),
    /// `report drag = EXPR;`
    Report {
        /// What it is called.
        name: Ident,
        /// Value: arithmetic on numbers that are known of a solution.
        value: ExprId,
    },
}

/// A word with named arguments: `ball(dim: 3)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The word.
    pub name: Ident,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The place of it all.
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

/// Where a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `on all`
    All(Span),
    /// `on "a", "b"`
    Tags(Vec<Text>),
    /// `at [x, y]`
    At(ExprId),
}
