//! The facade of weakform.
