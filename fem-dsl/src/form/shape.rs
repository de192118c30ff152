//! Shapes of tensor expressions, up to rank 3 (the gradient of a `tensor` field), and their types.

use crate::terms;
use std::fmt;

/// The shape of a tensor expression: the extent of each of its 0 to 3 indices. Components are
/// counted row-major, the last index fastest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    rank: u8,
    extents: [u32; Self::MAX_RANK],
}

impl Shape {
    /// The largest rank that an expression may have.
    pub const MAX_RANK: usize = 3;
    /// A scalar.
    pub const SCALAR: Self = Self { rank: 0, extents: [0; Self::MAX_RANK] };

    /// Returns the shape of n components.
    pub fn vector(n: usize) -> Self {
        Self::SCALAR.raised(n).expect("a vector should have rank 1")
    }

    /// Returns the shape of rows × columns components.
    pub fn matrix(rows: usize, columns: usize) -> Self {
        Self::vector(rows).raised(columns).expect("a matrix should have rank 2")
    }

    /// Returns this shape with one more index of extent `n` at the end; `None` beyond rank 3.
    pub fn raised(self, n: usize) -> Option<Self> {
        let rank = usize::from(self.rank);
        let mut extents = self.extents;
        *extents.get_mut(rank)? = u32::try_from(n).ok()?;
        Some(Self { rank: self.rank + 1, extents })
    }

    /// Returns the shape with these extents; `None` beyond rank 3.
    pub fn of(extents: &[usize]) -> Option<Self> {
        extents.iter().try_fold(Self::SCALAR, |shape, &n| shape.raised(n))
    }

    /// Returns the number of indices.
    pub fn rank(self) -> usize {
        usize::from(self.rank)
    }

    /// Returns the extent of index `axis`.
    pub fn extent(self, axis: usize) -> usize {
        self.extents[..self.rank()][axis] as usize
    }

    /// Returns the extents of all indices.
    pub fn extents(self) -> Vec<usize> {
        (0..self.rank()).map(|axis| self.extent(axis)).collect()
    }

    /// Returns the number of components.
    pub fn components(self) -> usize {
        (0..self.rank()).map(|axis| self.extent(axis)).product()
    }

    /// Returns whether this is a scalar.
    pub fn is_scalar(self) -> bool {
        self.rank == 0
    }

    /// Returns the size n of an n × n matrix.
    pub fn square(self) -> Option<usize> {
        (self.rank == 2 && self.extents[0] == self.extents[1]).then(|| self.extent(0))
    }

    /// Returns the row-major index of the component with these indices; `None` if they are out of range.
    pub fn flat(self, indices: &[usize]) -> Option<usize> {
        if indices.len() != self.rank() {
            return None;
        }
        indices.iter().enumerate().try_fold(0, |flat, (axis, &i)| {
            (i < self.extent(axis)).then(|| flat * self.extent(axis) + i)
        })
    }

    /// Returns the shape in a `PointForm`; `None` at rank 3.
    pub fn to_point(self) -> Option<terms::Shape> {
        match self.rank {
            0 => Some(terms::Shape::Scalar),
            1 => Some(terms::Shape::Vector(self.extent(0))),
            2 => Some(terms::Shape::Matrix(self.extent(0), self.extent(1))),
            _ => None,
        }
    }
}

impl From<terms::Shape> for Shape {
    fn from(shape: terms::Shape) -> Self {
        match shape {
            terms::Shape::Scalar => Self::SCALAR,
            terms::Shape::Vector(n) => Self::vector(n),
            terms::Shape::Matrix(rows, columns) => Self::matrix(rows, columns),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            0 => f.write_str("a scalar"),
            1 => write!(f, "a vector of {}", self.extents[0]),
            2 => write!(f, "a {}×{} matrix", self.extents[0], self.extents[1]),
            _ => {
                let [a, b, c] = self.extents;
                write!(f, "a {a}×{b}×{c} tensor")
            }
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.extents())
    }
}

/// The type of an expression's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// True or false: the value of a comparison.
    Truth,
    /// Numbers.
    Tensor(Shape),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth => f.write_str("a condition"),
            Self::Tensor(shape) => shape.fmt(f),
        }
    }
}
