//! `eval`: what each stage's expressions are worth at a point, slowly and obviously.
//!
//! [`eval()`] evaluates a scalar [`Graph`](crate::point::Graph) at one point, [`Batch`] at many points at once, and
//! [`tensors`] a [`Form`](crate::form::Form). Together they say what the language means; every
//! later stage is compared with them. A truth value counts as 1 or 0.

mod tensor;

pub use crate::point::{Batch, eval};
pub use tensor::{Values, tensors};
