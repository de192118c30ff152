//! The extension module of the Python package weakform: facade of the library → Python objects.
//!
//! Classes here are thin: they check and convert arguments. Conveniences (names, keyword arguments, displays) are
//! written in Python, in `python/weakform`. Solves run on their own thread without the GIL, so that Ctrl-C ends them.

mod errors;
mod form;
mod language;
mod log;
mod memory;
mod mesh;
mod problem;
mod program;
mod settings;
mod solution;
mod steps;
mod system;
mod values;
mod vector;
mod watch;

use pyo3::prelude::*;

/// The extension module.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::form::Form;
    #[pymodule_export]
    use crate::language::File;
    #[pymodule_export]
    use crate::mesh::Mesh;
    #[pymodule_export]
    use crate::problem::{Problem, devices};
    #[pymodule_export]
    use crate::program::{main, set_threads};
    #[pymodule_export]
    use crate::solution::{Solution, measured};
    #[pymodule_export]
    use crate::steps::Steps;
    #[pymodule_export]
    use crate::system::System;
    #[pymodule_export]
    use crate::vector::Vector;
}
