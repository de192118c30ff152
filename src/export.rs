//! `export`: text of the language → a C header for PETSc, libCEED or an own assembly, or a driver program that includes it.

use crate::Error;
use crate::emit::chosen;
use fem_dsl::differentiate::differentiate;
use fem_dsl::point::point;
use fem_dsl::problem::Quadrature;
use fem_dsl::program::Program;
use fem_dsl::simplify::simplify;
use kernels_gen::abi::Precision;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::element::Cell;
use kernels_gen::export::{
    BatchSettings, c_header, cell, check, driver, libceed_header, petsc_header,
};
use kernels_gen::generate::elements;
use runtime::kernels::compile::Target;

pub use kernels_gen::export::{ExportError, Library};

/// The header or driver to print. [`Export::new`] is the header of degree 2, in three dimensions if the form is valid
/// there, else in two, else in one.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Export {
    library: Library,
    form: Option<String>,
    dim: Option<usize>,
    cell: Option<Cell>,
    degree: usize,
    order: usize,
    quadrature: Option<Quadrature>,
    isa: Option<Isa>,
    precision: Precision,
    driver: bool,
}

impl Export {
    /// Selects the header for a library.
    pub fn new(library: Library) -> Self {
        Self {
            library,
            form: None,
            dim: None,
            cell: None,
            degree: 2,
            order: 1,
            quadrature: None,
            isa: None,
            precision: Precision::F64,
            driver: false,
        }
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

    /// Sets the cell of a header in plain C, and the dimension; the tensor cell of the dimension by default.
    pub fn cell(mut self, cell: Cell) -> Self {
        (self.cell, self.dim) = (Some(cell), Some(cell.dim()));
        self
    }

    /// Sets the degree of the map of cells of a header in plain C; 1 by default.
    pub fn order(mut self, order: usize) -> Self {
        self.order = order;
        self
    }

    /// Sets the quadrature of a header in plain C, if it is not the one that the language prescribes.
    pub fn quadrature(mut self, quadrature: impl Into<Quadrature>) -> Self {
        self.quadrature = Some(quadrature.into());
        self
    }

    /// Sets the instruction set of a header in plain C; that of this machine by default.
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// Sets the precision of a header in plain C; double by default.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Selects the driver program, which includes the header as `NAME.h`.
    pub fn driver(mut self) -> Self {
        self.driver = true;
        self
    }
}

/// Returns the header of a form for a library with its own loops over cells, or for an assembly in C, or the driver program.
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
    let Export { library, order, precision, .. } = *export;
    if export.driver {
        return Ok(driver(&form, library)?);
    }
    check(&form, library)?;
    let cell = export.cell.filter(|cell| cell.dim() == dim).unwrap_or_else(|| cell(dim));
    let elements = elements(&form, cell, export.degree, order, export.quadrature)?;
    elements.notes.iter().for_each(|note| tracing::warn!("{note}"));
    Ok(match library {
        Library::Petsc => petsc_header(&form, &elements),
        Library::LibCeed => libceed_header(&form, &elements),
        Library::C => {
            let isa = export.isa.unwrap_or_else(|| Target::native().isa);
            c_header(&form, &elements, BatchSettings { order, isa, precision })
        }
    }?)
}
