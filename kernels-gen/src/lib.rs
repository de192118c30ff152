//! From a `PointForm` to the source of a specialised finite-element kernel.
