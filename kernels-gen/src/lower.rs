//! The words of the field as kernel IR, which strategies arrange: what is known of a kernel ([`facts`]) and the kernel that
//! is being written ([`lowering`]), with its arguments ([`declare`]).
//!
//! | word | modules |
//! | --- | --- |
//! | gather and scatter | [`restrict`]; [`slots`], where the cells of a batch sum first |
//! | interpolate and integrate | [`contract`] and [`factors`] (tensor products), [`tables`] (dense ones) |
//! | what hangs | [`hanging`] |
//! | geometry | [`geometry`] (where the map of a cell comes from), [`jacobian`] (its formulas) |
//! | a finer space | [`transfer`] |
//! | point | [`point`]; [`graph`] (a `PointForm`'s operations), [`stored`] (coefficients of the Jacobian) |
//! | what each basis function gets | [`ends`] |

pub(crate) mod contract;
pub(crate) mod declare;
pub(crate) mod ends;
pub(crate) mod factors;
pub(crate) mod facts;
pub(crate) mod geometry;
pub(crate) mod graph;
pub(crate) mod hanging;
pub(crate) mod jacobian;
pub(crate) mod lowering;
pub(crate) mod point;
pub(crate) mod restrict;
pub(crate) mod slots;
pub(crate) mod stored;
pub(crate) mod tables;
pub(crate) mod transfer;
