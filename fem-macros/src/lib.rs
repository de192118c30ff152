//! The procedural macro `weak_form!`.
