//! Refinement: forests of quadrilaterals and hexahedra, bisection of simplices, and marking.

pub mod bisect;
pub mod forest;
pub mod mark;
