//! The six words of the field as kernel IR: gather, interpolate, geometry, point, integrate,
//! scatter. A strategy only arranges them.

pub(crate) mod contract;
pub(crate) mod declare;
pub(crate) mod ends;
pub(crate) mod factors;
pub(crate) mod facts;
pub(crate) mod geometry;
pub(crate) mod graph;
pub(crate) mod jacobian;
pub(crate) mod lowering;
pub(crate) mod point;
pub(crate) mod restrict;
pub(crate) mod slots;
pub(crate) mod stored;
pub(crate) mod tables;
