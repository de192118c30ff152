//! Finite-element primitives in kernel IR, which strategies combine: the properties of a kernel ([`facts`]) and the
//! kernel under construction ([`lowering`]), with its arguments ([`declare`]).
//!
//! | primitive | modules |
//! | --- | --- |
//! | gather and scatter | [`restrict`]; [`slots`], if the cells of a batch sum first |
//! | interpolate and integrate | [`contract`] and [`factors`] (tensor products), [`tables`] (dense ones) |
//! | hanging nodes | [`hanging`] |
//! | geometry | [`geometry`] (the source of a cell's map), [`jacobian`] (its formulas) |
//! | a finer space | [`transfer`] |
//! | point function | [`point`]; [`graph`] (a `PointForm`'s operations), [`stored`] (coefficients of the Jacobian) |
//! | contributions to basis functions | [`ends`] |

pub(crate) mod contract;
pub(crate) mod declare;
pub(crate) mod ends;
pub(crate) mod facet_line;
pub(crate) mod factors;
pub(crate) mod facts;
pub(crate) mod geometry;
pub(crate) mod graph;
pub(crate) mod hanging;
pub(crate) mod jacobian;
pub(crate) mod lowering;
pub(crate) mod point;
pub(crate) mod pulled;
pub(crate) mod restrict;
pub(crate) mod slots;
pub(crate) mod stored;
pub(crate) mod tables;
pub(crate) mod transfer;
