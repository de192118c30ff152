//! The builder of tensor expressions: every operation computes its shape or returns an error.

use super::expr::{Expr, MatrixFunction, Terminal};
use super::print::{comparison_sign, unary_word};
use super::shape::{Shape, Type};
use super::{ExprId, Exprs, fold};
use crate::terms::{Binary, Comparison, Side, Unary};
use thiserror::Error;

/// An operation that does not apply to its operands.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Operands of different shapes that should have equal ones.
    #[error("`{operation}` needs operands of one shape, but these are {left} and {right}")]
    Unequal {
        /// The operation, as written.
        operation: &'static str,
        /// Left operand.
        left: Type,
        /// Right operand.
        right: Type,
    },
    /// A product without a unique meaning.
    #[error("`*` does not multiply {left} by {right}")]
    Product {
        /// Left operand.
        left: Shape,
        /// Right operand.
        right: Shape,
    },
    /// A contraction with different extents.
    #[error("`{operation}` does not contract {left} with {right}")]
    Contraction {
        /// The operation, as written.
        operation: &'static str,
        /// Left operand.
        left: Shape,
        /// Right operand.
        right: Shape,
    },
    /// An operand of the wrong kind.
    #[error("`{operation}` needs {expected}, but this is {found}")]
    Operand {
        /// The operation, as written.
        operation: &'static str,
        /// The expected kind.
        expected: &'static str,
        /// The kind found.
        found: Type,
    },
    /// An index outside the shape, or too few or too many indices.
    #[error("{shape} has no component [{}]", list(indices))]
    Index {
        /// The shape.
        shape: Shape,
        /// The indices, as written.
        indices: Vec<usize>,
    },
    /// A result with more than three indices.
    #[error("`{operation}` would give a tensor with more than {} indices", Shape::MAX_RANK)]
    Rank {
        /// The operation, as written.
        operation: &'static str,
    },
    /// A third derivative of a field, or a second one of other inputs.
    #[error("this needs a derivative of higher order")]
    HigherDerivative {
        /// The terminal.
        terminal: Terminal,
    },
    /// A derivative that functions in Hcurl or Hdiv have in each cell alone, or not at all.
    #[error("`{operation}` of a field that has no such derivative")]
    PartialDerivative {
        /// The operation, as written.
        operation: &'static str,
        /// The terminal.
        terminal: Terminal,
    },
    /// A time derivative beyond the second, or of a terminal without one.
    #[error("this has no time derivative")]
    NoRate {
        /// The terminal.
        terminal: Terminal,
    },
    /// The gradient of a value that has been taken from one side of a facet.
    #[error("a gradient is taken before a side")]
    GradientOfSide {
        /// The terminal.
        terminal: Terminal,
        /// Its side.
        side: Side,
    },
    /// A side of a value that has been taken from a side.
    #[error("`{word}` of a value that has a side")]
    SideOfSide {
        /// The word.
        word: &'static str,
        /// The terminal with a side.
        terminal: Terminal,
    },
    /// A side of the normal.
    #[error("`n` is one vector on both sides")]
    SideOfNormal {
        /// The word.
        word: &'static str,
    },
    /// The gradient of data that is only defined at points, or of a direction.
    #[error("this has no gradient")]
    NoGradient {
        /// The terminal.
        terminal: Terminal,
    },
}

fn list(indices: &[usize]) -> String {
    indices.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

type BuildResult = Result<ExprId, BuildError>;

/// The largest matrix with `det`, `inv` and `cof`.
const LARGEST_DETERMINANT: usize = 3;

impl Exprs {
    fn tensor(&self, operation: &'static str, expected: &'static str, a: ExprId) -> ShapeResult {
        match self.ty(a) {
            Type::Tensor(shape) => Ok(shape),
            Type::Truth => Err(BuildError::Operand { operation, expected, found: Type::Truth }),
        }
    }

    fn scalar(&self, operation: &'static str, a: ExprId) -> Result<(), BuildError> {
        match self.ty(a) {
            Type::Tensor(Shape::SCALAR) => Ok(()),
            found => Err(BuildError::Operand { operation, expected: "a scalar", found }),
        }
    }

    fn truth(&self, operation: &'static str, a: ExprId) -> Result<(), BuildError> {
        match self.ty(a) {
            Type::Truth => Ok(()),
            found => Err(BuildError::Operand { operation, expected: "a condition", found }),
        }
    }

    fn equal(&self, operation: &'static str, a: ExprId, b: ExprId) -> ShapeResult {
        match (self.ty(a), self.ty(b)) {
            (Type::Tensor(left), Type::Tensor(right)) if left == right => Ok(left),
            (left, right) => Err(BuildError::Unequal { operation, left, right }),
        }
    }

    /// Returns a finite constant.
    pub fn constant(&mut self, value: f64) -> ExprId {
        fold::constant(self, value)
    }

    /// Returns zeros of a shape.
    pub fn zero(&mut self, shape: Shape) -> ExprId {
        fold::zero(self, shape)
    }

    /// Returns the n × n identity.
    pub fn identity(&mut self, n: usize) -> ExprId {
        self.intern(Expr::Identity(n), Type::Tensor(Shape::matrix(n, n)))
    }

    /// Returns a terminal; `shape` is that of [`Form::shape_of`](super::Form::shape_of).
    pub fn terminal(&mut self, terminal: Terminal, shape: Shape) -> ExprId {
        self.intern(Expr::Terminal(terminal), Type::Tensor(shape))
    }

    /// Returns a tensor from scalar components, row-major.
    pub fn literal(&mut self, shape: Shape, components: Vec<ExprId>) -> BuildResult {
        for &component in &components {
            self.scalar("[ ]", component)?;
        }
        debug_assert_eq!(components.len(), shape.components(), "one item a component");
        Ok(fold::literal(self, shape, components))
    }

    /// Returns the component with these indices.
    pub fn index(&mut self, a: ExprId, indices: &[usize]) -> BuildResult {
        let shape = self.tensor("[ ]", "a vector or matrix", a)?;
        match shape.flat(indices) {
            Some(flat) => Ok(fold::component(self, a, flat)),
            None => Err(BuildError::Index { shape, indices: indices.to_vec() }),
        }
    }

    /// Returns the component at a row-major index inside the shape.
    pub fn component(&mut self, a: ExprId, flat: usize) -> ExprId {
        debug_assert!(flat < self.shape(a).components(), "the place should be in the shape");
        fold::component(self, a, flat)
    }

    /// Returns all components, row-major.
    pub fn components(&mut self, a: ExprId) -> Vec<ExprId> {
        (0..self.shape(a).components()).map(|flat| fold::component(self, a, flat)).collect()
    }

    /// Returns −a.
    pub fn neg(&mut self, a: ExprId) -> BuildResult {
        self.tensor("-", "a number, vector or matrix", a)?;
        Ok(fold::neg(self, a))
    }

    /// Returns a + b.
    pub fn add(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.equal("+", a, b)?;
        Ok(fold::add(self, a, b))
    }

    /// Returns a − b.
    pub fn sub(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.equal("-", a, b)?;
        Ok(fold::sub(self, a, b))
    }

    /// Returns a * b as the language defines it: one is a scalar, or a matrix times a vector or matrix.
    pub fn mul(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        let left = self.tensor("*", "a number, vector or matrix", a)?;
        let right = self.tensor("*", "a number, vector or matrix", b)?;
        match (left.rank(), right.rank()) {
            (0, _) => Ok(fold::mul(self, a, b)),
            (_, 0) => Ok(fold::mul(self, b, a)),
            (2, 1 | 2) if left.extent(1) == right.extent(0) => self.dot(a, b),
            _ => Err(BuildError::Product { left, right }),
        }
    }

    /// Returns a / b with a scalar b.
    pub fn div(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.tensor("/", "a number, vector or matrix", a)?;
        self.scalar("/", b)?;
        Ok(fold::div(self, a, b))
    }

    /// Returns a ^ b of scalars; an integer constant exponent is repeated multiplication.
    pub fn pow(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.scalar("^", a)?;
        self.scalar("^", b)?;
        Ok(fold::pow(self, a, b))
    }

    /// Contracts the last index of a with the first of b.
    pub fn dot(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        let left = self.tensor("dot", "a vector or matrix", a)?;
        let right = self.tensor("dot", "a vector or matrix", b)?;
        let (p, q) = (left.rank(), right.rank());
        if p == 0 || q == 0 || left.extent(p - 1) != right.extent(0) {
            return Err(BuildError::Contraction { operation: "dot", left, right });
        }
        let extents = [&left.extents()[..p - 1], &right.extents()[1..]].concat();
        let shape = Shape::of(&extents).ok_or(BuildError::Rank { operation: "dot" })?;
        if p <= 2 && q <= 2 {
            return Ok(fold::dot(self, a, b, shape));
        }
        let (n, columns) = (right.extent(0), right.components() / right.extent(0));
        let components = (0..shape.components()).map(|flat| {
            let (row, column) = (flat / columns, flat % columns);
            let terms = (0..n).map(|i| (row * n + i, i * columns + column));
            terms.fold(fold::constant(self, 0.0), |sum, (i, j)| {
                let (x, y) = (fold::component(self, a, i), fold::component(self, b, j));
                let product = fold::mul(self, x, y);
                fold::add(self, sum, product)
            })
        });
        let components = components.collect();
        Ok(fold::literal(self, shape, components))
    }

    /// Returns the full contraction of equal shapes.
    pub fn inner(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.equal("inner", a, b)?;
        Ok(fold::inner(self, a, b))
    }

    /// Returns √inner(a, a).
    pub fn norm(&mut self, a: ExprId) -> BuildResult {
        self.tensor("norm", "a number, vector or matrix", a)?;
        Ok(fold::norm(self, a))
    }

    /// Returns a_i b_j, also for tensors up to a rank of 3.
    pub fn outer(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        let left = self.tensor("outer", "vectors", a)?;
        let right = self.tensor("outer", "vectors", b)?;
        if left.is_scalar() || right.is_scalar() {
            let found = Type::Tensor(Shape::SCALAR);
            return Err(BuildError::Operand { operation: "outer", expected: "vectors", found });
        }
        let shape = Shape::of(&[left.extents(), right.extents()].concat())
            .ok_or(BuildError::Rank { operation: "outer" })?;
        if shape.rank() == 2 {
            return Ok(fold::outer(self, a, b));
        }
        let (x, y) = (self.components(a), self.components(b));
        let pairs = x.iter().flat_map(|&x| y.iter().map(move |&y| (x, y)));
        let components = pairs.map(|(x, y)| fold::mul(self, x, y)).collect();
        Ok(fold::literal(self, shape, components))
    }

    /// Returns a × b of 3-vectors.
    pub fn cross(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        for operand in [a, b] {
            let found = self.ty(operand);
            if found != Type::Tensor(Shape::vector(3)) {
                let expected = "vectors of 3";
                return Err(BuildError::Operand { operation: "cross", expected, found });
            }
        }
        Ok(fold::cross(self, a, b))
    }

    /// Returns ε_ikl ε_jmn A_km B_ln of 3×3 matrices.
    pub fn tensor_cross(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        let shape = self.equal("tensor_cross", a, b)?;
        if shape.square() != Some(3) {
            let (operation, expected) = ("tensor_cross", "3×3 matrices");
            return Err(BuildError::Operand { operation, expected, found: Type::Tensor(shape) });
        }
        Ok(fold::tensor_cross(self, a, b))
    }

    /// Returns a function of a matrix.
    pub fn matrix(&mut self, function: MatrixFunction, a: ExprId) -> BuildResult {
        let operation = function.name();
        let shape = self.tensor(operation, "a matrix", a)?;
        let (expected, fits) = match function {
            MatrixFunction::Transpose => ("a matrix", shape.rank() == 2),
            MatrixFunction::Trace
            | MatrixFunction::Sym
            | MatrixFunction::Skew
            | MatrixFunction::Dev => ("a square matrix", shape.square().is_some()),
            MatrixFunction::Determinant | MatrixFunction::Inverse | MatrixFunction::Cofactor => {
                let fits = shape.square().is_some_and(|n| n <= LARGEST_DETERMINANT);
                ("a square matrix of at most 3×3", fits)
            }
        };
        if !fits {
            return Err(BuildError::Operand { operation, expected, found: Type::Tensor(shape) });
        }
        Ok(fold::matrix(self, function, a))
    }

    /// Returns a scalar function of one argument.
    pub fn unary(&mut self, function: Unary, a: ExprId) -> BuildResult {
        self.scalar(unary_word(function), a)?;
        Ok(fold::unary(self, function, a))
    }

    /// Returns a scalar function of two arguments.
    pub fn binary(&mut self, function: Binary, a: ExprId, b: ExprId) -> BuildResult {
        let operation = match function {
            Binary::Add => return self.add(a, b),
            Binary::Sub => return self.sub(a, b),
            Binary::Mul => return self.mul(a, b),
            Binary::Div => return self.div(a, b),
            Binary::Pow => return self.pow(a, b),
            Binary::Atan2 => "atan2",
            Binary::Min => "min",
            Binary::Max => "max",
        };
        self.scalar(operation, a)?;
        self.scalar(operation, b)?;
        Ok(fold::binary(self, function, a, b))
    }

    /// Returns a comparison of scalars.
    pub fn compare(&mut self, comparison: Comparison, a: ExprId, b: ExprId) -> BuildResult {
        self.scalar(comparison_sign(comparison), a)?;
        self.scalar(comparison_sign(comparison), b)?;
        Ok(self.intern(Expr::Compare(comparison, a, b), Type::Truth))
    }

    /// Returns both conditions.
    pub fn and(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.truth("&&", a)?;
        self.truth("&&", b)?;
        Ok(fold::and(self, a, b))
    }

    /// Returns either condition.
    pub fn or(&mut self, a: ExprId, b: ExprId) -> BuildResult {
        self.truth("||", a)?;
        self.truth("||", b)?;
        Ok(fold::or(self, a, b))
    }

    /// Returns the opposite condition.
    pub fn not(&mut self, a: ExprId) -> BuildResult {
        self.truth("!", a)?;
        Ok(fold::not(self, a))
    }

    /// Returns `if condition { a } else { b }`
    pub fn select(&mut self, condition: ExprId, a: ExprId, b: ExprId) -> BuildResult {
        self.truth("if", condition)?;
        self.equal("if", a, b)?;
        Ok(fold::select(self, condition, a, b))
    }
}

type ShapeResult = Result<Shape, BuildError>;
