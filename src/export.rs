//! `export`: text of the language → a C header for PETSc or libCEED, or a driver program that includes it.

use crate::Error;
use crate::emit::chosen;
use fem_dsl::differentiate::differentiate;
use fem_dsl::point::point;
use fem_dsl::program::Program;
use fem_dsl::simplify::simplify;
use kernels_gen::export::{cell, driver, header};
use kernels_gen::generate::elements;

pub use kernels_gen::export::{ExportError, Library};

/// The header or driver to print. [`Export::new`] is the header of degree 2, in three dimensions if the form is valid
/// there, else in two, else in one.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Export {
    library: Library,
    form: Option<String>,
    dim: Option<usize>,
    degree: usize,
    driver: bool,
}

impl Export {
    /// Selects the header for a library.
    pub fn new(library: Library) -> Self {
        Self { library, form: None, dim: None, degree: 2, driver: false }
    }

    /// Sets the form; required if the text has several.
    pub fn form(mut self, name: impl Into<String>) -> Self {
        self.form = Some(name.into());
        self
    }

    /// Sets the dimension.
    pub fn dim(mut self, dim: usize) -> Self {
        self.dim = Some(dim);
        self
    }

    /// Sets the degree k.
    pub fn degree(mut self, degree: usize) -> Self {
        self.degree = degree;
        self
    }

    /// Selects the driver program, which includes the header as `NAME.h`.
    pub fn driver(mut self) -> Self {
        self.driver = true;
        self
    }
}

/// Returns the header of a form for a library with its own loops over cells, or the driver program.
///
/// ```
/// use fem_dsl::program::compile;
/// use fem_dsl::source::Source;
/// use weakform::{Export, Library, export_program};
///
/// let (program, _) = compile(&Source::new("mass", "form mass { field u: scalar; f0[u] = u; }"));
/// let header = export_program(&program.expect("a form"), &Export::new(Library::Petsc))?;
/// assert!(header.contains("f0[0] = u[0];"));
/// # Ok::<(), weakform::Error>(())
/// ```
///
/// # Errors
///
/// An unknown form or dimension, and terms without a counterpart in the library.
pub fn export_program(program: &Program, export: &Export) -> Result<String, Error> {
    let checked = chosen(program, export.form.as_deref())?;
    let is_valid = |dim: &usize| checked.dimensions.form(*dim).is_some();
    let dim = export.dim.or_else(|| [3, 2, 1].into_iter().find(is_valid)).unwrap_or(3);
    let rejected = |found| Error::language(program.source(), found);
    let Some(form) = checked.dimensions.form(dim) else {
        // The error contains the token that determines the other dimension.
        program.point_form(&checked.name, dim).map_err(rejected)?;
        return Err(Error::unknown("form", &checked.name, []));
    };
    // With its unknown numbers, which are refused; `Program::point_form` has them as parameters.
    let form = point(&simplify(&differentiate(form)));
    let text = match export.driver {
        true => driver(&form, export.library),
        false => {
            kernels_gen::export::check(&form, export.library)?;
            let elements = elements(&form, cell(dim), export.degree, 1, None)?;
            header(&form, &elements, export.library)
        }
    };
    Ok(text?)
}
