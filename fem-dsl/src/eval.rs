//! `eval`: direct evaluation of each stage's expressions at points, simple rather than fast.
//!
//! [`eval()`] evaluates a scalar [`Graph`](crate::point::Graph) at one point, [`Batch`] at many points at once, and
//! [`tensors`] a [`Form`](crate::form::Form). Together they define the semantics of the language; every later stage is
//! compared with them. A truth value counts as 1 or 0.

mod tensor;

pub use crate::point::{Batch, eval};
pub use tensor::{TensorValues, tensors};
