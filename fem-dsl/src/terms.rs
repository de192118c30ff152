//! Components of forms and point forms: fields, data, parameters, spaces, regions and scalar functions.

/// An unknown field of the form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name in the form.
    pub name: String,
    /// Shape of a value.
    pub shape: Shape,
    /// Function space.
    pub space: Space,
    /// Tags of the cells on which it lives; none for all cells.
    pub cells: Vec<String>,
}

impl Field {
    /// Returns the cells on which it lives.
    pub fn region(&self) -> Region {
        match self.cells.is_empty() {
            true => Region::Cells,
            false => Region::CellsUnder(self.cells.clone()),
        }
    }
}

/// Data supplied at run time.
#[derive(Clone, Debug, PartialEq)]
pub struct Aux {
    /// Name in the form.
    pub name: String,
    /// Shape of a value.
    pub shape: Shape,
    /// Location of the data.
    pub location: Location,
}

/// A number, vector or matrix that may change between launches.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name in the form.
    pub name: String,
    /// Shape of the value.
    pub shape: Shape,
    /// Default value, row-major.
    pub value: Vec<f64>,
}

/// A time derivative of a form: dt(u), or dt(dt(u)).
///
/// ```text
/// ∂ᵒʳᵈᵉʳ u / ∂tᵒʳᵈᵉʳ  =  s u + r        s a parameter, r data at the nodes of u's space
/// ```
///
/// so that one kernel serves every scheme: with s = 0 the derivative is r; with the s of a scheme the Jacobian is
/// ∂F/∂u + s ∂F/∂u̇ (+ s₂ ∂F/∂ü), and r is the scheme's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The field.
    pub field: usize,
    /// 1 or 2.
    pub order: usize,
    /// s among the parameters.
    pub param: usize,
    /// r among the data.
    pub aux: usize,
    /// True if the form itself reads it: a second derivative also declares the first, for reports.
    pub read: bool,
}

/// Returns the number of declared parameters or data among `count`: those of time derivatives follow them.
pub(crate) fn written(rates: &[Rate], count: usize, place: impl Fn(&Rate) -> usize) -> usize {
    rates.iter().map(place).min().unwrap_or(count)
}

/// Location of auxiliary data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// At the nodes of a space: has a gradient.
    Nodes(Space),
    /// One value per cell.
    Cells,
    /// One value per quadrature point.
    Points,
}

impl Location {
    /// Returns the space of data at nodes.
    pub fn space(self) -> Option<Space> {
        match self {
            Self::Nodes(space) => Some(space),
            Self::Cells | Self::Points => None,
        }
    }
}

/// A finite-element space, its degree relative to the degree k chosen at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Continuous Lagrange.
    H1(Degree),
    /// Discontinuous Lagrange.
    L2(Degree),
    /// Nédélec elements of the first kind, whose tangential parts are continuous.
    Hcurl(Degree),
    /// Raviart–Thomas elements, whose normal parts are continuous.
    Hdiv(Degree),
    /// Constants: one value for the whole mesh, an unknown number.
    Number,
}

/// A polynomial degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degree {
    /// k + offset.
    Relative(i32),
    /// A fixed number.
    Fixed(usize),
}

impl Space {
    /// Returns whether its functions have one value at a facet between two cells.
    pub fn is_continuous(self) -> bool {
        matches!(self, Self::H1(_) | Self::Number)
    }

    /// Returns whether its functions are vectors mapped by a Piola transform: continuous in part, with an exterior
    /// derivative (curl or div) in the place of a gradient.
    pub fn is_piola(self) -> bool {
        matches!(self, Self::Hcurl(_) | Self::Hdiv(_))
    }

    /// Returns the number of components of the exterior derivative in `dim` dimensions: curl of a field in Hcurl, div
    /// of one in Hdiv, none elsewhere.
    pub fn exterior_components(self, dim: usize) -> usize {
        match self {
            Self::H1(_) | Self::L2(_) | Self::Number => 0,
            Self::Hcurl(_) => 2 * dim - 3,
            Self::Hdiv(_) => 1,
        }
    }

    /// Returns the function of the language that is the first derivative of its functions.
    pub fn derivative(self) -> &'static str {
        match self {
            Self::H1(_) | Self::L2(_) | Self::Number => "grad",
            Self::Hcurl(_) => "curl",
            Self::Hdiv(_) => "div",
        }
    }

    /// Returns the smallest k ≥ 1 for which this space exists: its own degree is then at least 0 in L2, and at least 1
    /// elsewhere.
    pub fn smallest_degree(self) -> usize {
        self.smallest_degree_for(i64::from(!matches!(self, Self::L2(_))))
    }

    /// Returns the smallest k ≥ 1 for which its own degree is at least `own`; 1 if it does not depend on k.
    pub(crate) fn smallest_degree_for(self, own: i64) -> usize {
        let least = match self.degree() {
            Degree::Relative(offset) => own - i64::from(offset),
            Degree::Fixed(_) => 1,
        };
        usize::try_from(least).map_or(1, |least| least.max(1))
    }

    /// Returns the name of its family in the language: `H1`.
    pub fn family(self) -> &'static str {
        match self {
            Self::H1(_) => "H1",
            Self::L2(_) => "L2",
            Self::Hcurl(_) => "Hcurl",
            Self::Hdiv(_) => "Hdiv",
            Self::Number => "R",
        }
    }

    /// Returns whether its functions are constant on the whole mesh.
    pub fn is_number(self) -> bool {
        self == Self::Number
    }

    /// Returns its degree: the largest degree of its polynomials.
    pub fn degree(self) -> Degree {
        match self {
            Self::H1(degree) | Self::L2(degree) | Self::Hcurl(degree) | Self::Hdiv(degree) => {
                degree
            }
            Self::Number => Degree::Fixed(0),
        }
    }

    /// Returns its own degree for degree `k` of the form; it is negative if the space does not exist.
    pub fn degree_at(self, k: usize) -> i64 {
        match self.degree() {
            Degree::Relative(offset) => {
                let k = i64::try_from(k).unwrap_or(i64::MAX);
                k.saturating_add(i64::from(offset))
            }
            Degree::Fixed(degree) => i64::try_from(degree).unwrap_or(i64::MAX),
        }
    }
}

impl std::fmt::Display for Space {
    /// Prints the notation of the language: `H1(k - 1)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let family = self.family();
        match self.degree() {
            _ if self.is_number() => f.write_str(family),
            Degree::Fixed(degree) => write!(f, "{family}({degree})"),
            Degree::Relative(0) => write!(f, "{family}(k)"),
            Degree::Relative(offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{family}(k {sign} {})", offset.unsigned_abs())
            }
        }
    }
}

/// The shape of a tensor expression; components are stored row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// A scalar.
    Scalar,
    /// n components.
    Vector(usize),
    /// rows × columns components.
    Matrix(usize, usize),
}

impl Shape {
    /// Returns the number of components.
    pub fn components(self) -> usize {
        match self {
            Self::Scalar => 1,
            Self::Vector(n) => n,
            Self::Matrix(rows, columns) => rows * columns,
        }
    }
}

/// The tag of all facets that belong to exactly one cell. No string of the language contains it.
pub const WHOLE_BOUNDARY: &str = "the whole\nboundary";

/// The region of an integral.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    /// All cells.
    Cells,
    /// The cells with one of these tags.
    CellsUnder(Vec<String>),
    /// The facets of the boundary with one of these tags.
    Facets(Vec<String>),
    /// Facets between two cells, each once.
    Interior(InteriorFacets),
}

/// A set of facets between two cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InteriorFacets {
    /// All of them. Either cell may be the inside.
    All,
    /// Those with one of these tags. Either cell may be the inside.
    Under(Vec<String>),
    /// Those between a cell with the first tag, the inside, and one with the second.
    Between([String; 2]),
    /// Those between two cells with one of these tags each. Either cell may be the inside.
    Within(Vec<String>),
}

impl Region {
    /// Returns whether it consists of cells rather than facets.
    pub fn is_of_cells(&self) -> bool {
        matches!(self, Self::Cells | Self::CellsUnder(_))
    }

    /// Returns whether it consists of facets between two cells.
    pub fn is_interior(&self) -> bool {
        matches!(self, Self::Interior(_))
    }
}

impl std::fmt::Display for Region {
    /// Prints the notation of the language: `interior from "a" to "b"`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cells => f.write_str("cells"),
            Self::CellsUnder(tags) => write!(f, "cells {tags:?}"),
            Self::Facets(tags) => write!(f, "boundary {tags:?}"),
            Self::Interior(InteriorFacets::All) => f.write_str("interior"),
            Self::Interior(InteriorFacets::Under(tags)) => write!(f, "interior {tags:?}"),
            Self::Interior(InteriorFacets::Between([from, to])) => {
                write!(f, "interior from {from:?} to {to:?}")
            }
            Self::Interior(InteriorFacets::Within(tags)) => write!(f, "interior within {tags:?}"),
        }
    }
}

/// The cell from which a value at a facet is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The cell whose outward normal is n; on cells and on the boundary the only one.
    #[default]
    Inside,
    /// The cell to which n points.
    Outside,
}

impl Side {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::Inside, Self::Outside];

    /// Returns the word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Outside => "outside",
        }
    }

    /// Returns the other side.
    pub fn other(self) -> Self {
        match self {
            Self::Inside => Self::Outside,
            Self::Outside => Self::Inside,
        }
    }
}

/// Scalar functions of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unary {
    /// −a
    Neg,
    /// √a
    Sqrt,
    /// eᵃ
    Exp,
    /// Natural logarithm.
    Log,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Arc sine.
    Asin,
    /// Arc cosine.
    Acos,
    /// Arc tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// |a|
    Abs,
    /// −1, 0 or 1.
    Sign,
}

/// Scalar functions of two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binary {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a · b
    Mul,
    /// a / b
    Div,
    /// aᵇ for a > 0.
    Pow,
    /// atan2(a, b)
    Atan2,
    /// The smaller; the first on a tie.
    Min,
    /// The larger; the first on a tie.
    Max,
}

/// Comparisons; their value is a truth value, the operand of selections and logic only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// a < b
    Lt,
    /// a ≤ b
    Le,
    /// a > b
    Gt,
    /// a ≥ b
    Ge,
    /// a = b
    Eq,
    /// a ≠ b
    Ne,
}

/// A number that can be hashed and ordered: its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Number(u64);

impl Number {
    /// Wraps a finite number; −0 becomes 0, so that equal numbers are equal nodes.
    pub fn new(value: f64) -> Self {
        Self((if value == 0.0 { 0.0 } else { value }).to_bits())
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl std::fmt::Debug for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.get())
    }
}
