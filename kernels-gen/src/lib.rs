//! From a `PointForm` to the source of a specialised finite-element kernel.

<<<<<<< HEAD
pub mod abi;
pub mod kir;
=======
pub mod element;
>>>>>>> ab30ae6 (Finite elements: cells, rules, Lagrange nodes and their tables)
