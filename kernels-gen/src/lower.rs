//! The six words of the field as kernel IR: gather, interpolate, geometry, point, integrate,
//! scatter. A strategy only arranges them.

pub mod contract;
pub mod geometry;
pub mod point;
pub mod stored;
