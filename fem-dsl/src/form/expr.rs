//! The operations of a tensor expression. The set is closed: a pass matches all of them.

use super::ExprId;
use super::shape::Shape;
use crate::terms::{Binary, Comparison, Number, Side, Unary};

/// An input of an expression at a point. Fields, auxiliary data and parameters are identified by their index in the
/// form. An input that differs between the two cells at a facet has the side from which it is taken; without one it has
/// one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Terminal {
    /// The field u.
    Field(usize, Option<Side>),
    /// ∇u, with the derivative's index last; in Hcurl and Hdiv the exterior derivative, curl u or div u. Likewise for
    /// the gradients of the other terminals.
    FieldGradient(usize, Option<Side>),
    /// ∇∇u, with the indices of both derivatives last; in Hcurl and Hdiv the gradient ∇u in each cell. Likewise for the
    /// other terminals.
    FieldHessian(usize, Option<Side>),
    /// The test function of a field.
    Test(usize, Option<Side>),
    /// The gradient of a test function.
    TestGradient(usize, Option<Side>),
    /// The second derivatives of a test function, or its gradient in each cell.
    TestHessian(usize, Option<Side>),
    /// The direction δu.
    Direction(usize, Option<Side>),
    /// ∇δu.
    DirectionGradient(usize, Option<Side>),
    /// ∇∇δu, or the gradient in each cell.
    DirectionHessian(usize, Option<Side>),
    /// Auxiliary data.
    Aux(usize, Option<Side>),
    /// The gradient of auxiliary data on nodes.
    AuxGradient(usize, Option<Side>),
    /// A time derivative of a field, with its order. In a checked form it is one of
    /// [`Form::rates`](super::Form::rates).
    Rate(usize, usize, Option<Side>),
    /// Its gradient.
    RateGradient(usize, usize, Option<Side>),
    /// A runtime parameter.
    Param(usize),
    /// The coordinates x.
    Coordinates,
    /// The outward unit normal n.
    Normal,
    /// The time t.
    Time,
    /// The cell diameter h.
    Diameter(Option<Side>),
    /// The extent hn of the cell from the facet: 1/|∇ξ₀|, if the facet is at ξ₀ = 0.
    Extent(Option<Side>),
    /// The penalty of a field: c/hn, with c of its degree.
    Penalty(usize, Option<Side>),
    /// The degree k.
    Degree,
}

impl Terminal {
    /// Returns the side from which it is taken.
    pub fn side(self) -> Option<Side> {
        match self {
            Self::Field(_, side)
            | Self::FieldGradient(_, side)
            | Self::FieldHessian(_, side)
            | Self::Test(_, side)
            | Self::TestGradient(_, side)
            | Self::TestHessian(_, side)
            | Self::Direction(_, side)
            | Self::DirectionGradient(_, side)
            | Self::DirectionHessian(_, side)
            | Self::Aux(_, side)
            | Self::AuxGradient(_, side)
            | Self::Rate(_, _, side)
            | Self::RateGradient(_, _, side)
            | Self::Diameter(side)
            | Self::Extent(side)
            | Self::Penalty(_, side) => side,
            Self::Param(_) | Self::Coordinates | Self::Normal | Self::Time | Self::Degree => None,
        }
    }

    /// Returns the same input of a side; inputs that belong to no cell are returned as they are.
    pub fn with_side(self, side: Option<Side>) -> Self {
        match self {
            Self::Field(i, _) => Self::Field(i, side),
            Self::FieldGradient(i, _) => Self::FieldGradient(i, side),
            Self::FieldHessian(i, _) => Self::FieldHessian(i, side),
            Self::Test(i, _) => Self::Test(i, side),
            Self::TestGradient(i, _) => Self::TestGradient(i, side),
            Self::TestHessian(i, _) => Self::TestHessian(i, side),
            Self::Direction(i, _) => Self::Direction(i, side),
            Self::DirectionGradient(i, _) => Self::DirectionGradient(i, side),
            Self::DirectionHessian(i, _) => Self::DirectionHessian(i, side),
            Self::Aux(i, _) => Self::Aux(i, side),
            Self::AuxGradient(i, _) => Self::AuxGradient(i, side),
            Self::Rate(i, order, _) => Self::Rate(i, order, side),
            Self::RateGradient(i, order, _) => Self::RateGradient(i, order, side),
            Self::Diameter(_) => Self::Diameter(side),
            Self::Extent(_) => Self::Extent(side),
            Self::Penalty(i, _) => Self::Penalty(i, side),
            Self::Param(_) | Self::Coordinates | Self::Normal | Self::Time | Self::Degree => self,
        }
    }
}

/// Functions of one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatrixFunction {
    /// Σ_i A_ii
    Trace,
    /// The determinant (1×1 to 3×3).
    Determinant,
    /// A⁻¹ (1×1 to 3×3).
    Inverse,
    /// cof A = det A · A⁻ᵀ, as a polynomial: finite also for singular A (1×1 to 3×3).
    Cofactor,
    /// (A + Aᵀ)/2
    Sym,
    /// (A − Aᵀ)/2
    Skew,
    /// A − tr A/n · I
    Dev,
    /// Aᵀ
    Transpose,
}

impl MatrixFunction {
    /// Returns the name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "tr",
            Self::Determinant => "det",
            Self::Inverse => "inv",
            Self::Cofactor => "cof",
            Self::Sym => "sym",
            Self::Skew => "skew",
            Self::Dev => "dev",
            Self::Transpose => "transpose",
        }
    }
}

/// One operation on tensors; operands have smaller ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    /// A number.
    Constant(Number),
    /// A tensor of zeros, rank 1 and up.
    Zero(Shape),
    /// The n × n identity.
    Identity(usize),
    /// An input at the point.
    Terminal(Terminal),
    /// A tensor from its scalar components, row-major.
    Literal(Shape, Box<[ExprId]>),
    /// One component, by its row-major index.
    Component(ExprId, usize),
    /// −a
    Neg(ExprId),
    /// a + b
    Add(ExprId, ExprId),
    /// a − b
    Sub(ExprId, ExprId),
    /// s · a, with a scalar s first.
    Mul(ExprId, ExprId),
    /// a / s, with a scalar s.
    Div(ExprId, ExprId),
    /// Contracts the last index of one (rank 1 or 2) with the first of the other.
    Dot(ExprId, ExprId),
    /// Full contraction of equal shapes.
    Inner(ExprId, ExprId),
    /// √inner(a, a); its derivative at 0 is 0.
    Norm(ExprId),
    /// a_i b_j of two vectors.
    Outer(ExprId, ExprId),
    /// a × b of two 3-vectors.
    Cross(ExprId, ExprId),
    /// ε_ikl ε_jmn A_km B_ln of two 3×3 matrices: the derivative of cof at A in the direction B.
    TensorCross(ExprId, ExprId),
    /// A function of a matrix.
    Matrix(MatrixFunction, ExprId),
    /// A scalar function (never [`Unary::Neg`]).
    Unary(Unary, ExprId),
    /// A scalar function of two ([`Binary::Pow`], `Atan2`, `Min`, `Max` only).
    Binary(Binary, ExprId, ExprId),
    /// An integer power of a scalar.
    Powi(ExprId, i32),
    /// A comparison of scalars.
    Compare(Comparison, ExprId, ExprId),
    /// Both.
    And(ExprId, ExprId),
    /// Either.
    Or(ExprId, ExprId),
    /// The opposite.
    Not(ExprId),
    /// `.1` if the condition `.0` is true, else `.2`.
    Select(ExprId, ExprId, ExprId),
}

impl Expr {
    /// Returns the operands, in order.
    pub fn operands(&self) -> Vec<ExprId> {
        let mut all = Vec::new();
        self.for_operands(&mut |operand| all.push(operand));
        all
    }

    /// Visits the operands, in order.
    pub(crate) fn for_operands(&self, each: &mut dyn FnMut(ExprId)) {
        match self {
            Self::Constant(_) | Self::Zero(_) | Self::Identity(_) | Self::Terminal(_) => {}
            Self::Literal(_, components) => components.iter().for_each(|&a| each(a)),
            Self::Component(a, _)
            | Self::Neg(a)
            | Self::Norm(a)
            | Self::Matrix(_, a)
            | Self::Unary(_, a)
            | Self::Powi(a, _)
            | Self::Not(a) => each(*a),
            Self::Add(a, b)
            | Self::Sub(a, b)
            | Self::Mul(a, b)
            | Self::Div(a, b)
            | Self::Dot(a, b)
            | Self::Inner(a, b)
            | Self::Outer(a, b)
            | Self::Cross(a, b)
            | Self::TensorCross(a, b)
            | Self::Binary(_, a, b)
            | Self::Compare(_, a, b)
            | Self::And(a, b)
            | Self::Or(a, b) => {
                each(*a);
                each(*b);
            }
            Self::Select(a, b, c) => {
                each(*a);
                each(*b);
                each(*c);
            }
        }
    }
}
