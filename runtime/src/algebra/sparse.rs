//! Sparse matrices and patterns of host memory.
//!
//! | type | contents | invariants |
//! | --- | --- | --- |
//! | [`SparsityPattern`] | the columns of each row | as many starts as rows and one; starts ascend from 0 to the number of columns |
//! | [`Csr`] | a matrix by rows, square or rectangular | those of a pattern; columns ascend within a row, below `width`; a value each |
//! | [`Csc`] | a square matrix by columns | those of [`Csr`], of the transpose |
//! | [`Slices`] | positions of rows in slices of 32 | each slice has the length of its longest row; at most 1.5 times the entries |
//!
//! The matrix of an operator, in host or device memory, has the order of [`Csr`] or of [`Slices`]: `StoredMatrix` of the
//! operators. [`products`] multiplies matrices, [`gather`] sums those of several processes.

mod csr;
mod gather;
mod pattern;
pub(crate) mod products;
mod slices;

pub use csr::{Csc, Csr};
pub(crate) use csr::{RowBuilder, dot};
pub use pattern::SparsityPattern;
pub(crate) use pattern::{NOWHERE, together};
pub(crate) use slices::{Slices, row_in_slices};
