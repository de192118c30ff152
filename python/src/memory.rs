//! Memory that Python and this library share: NumPy views and DLPack capsules. The only `unsafe` of the package.

pub(crate) mod capsule;
pub(crate) mod views;
