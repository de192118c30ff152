//! Singular matrices: diagnosis and remedy.

use std::fmt;

/// A matrix that is singular to working precision.
#[derive(Clone, Debug, PartialEq)]
pub struct SingularMatrix {
    /// The field, or its component, in which the null vector is largest.
    pub place: String,
    /// Name of the field.
    pub name: String,
    /// Estimate of the condition number; infinite for a zero pivot.
    pub condition: f64,
    /// True if some degrees of freedom of the field are constrained.
    pub is_constrained: bool,
    /// True if no condition constrains the field and the form does not depend on its value.
    pub free: bool,
}

impl fmt::Display for SingularMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, condition, .. } = self;
        if self.free {
            return write!(
                f,
                "the matrix is singular: nothing fixes {place}, up to a constant or another null vector"
            );
        }
        write!(f, "the matrix is singular to working precision, most at {place}")?;
        match condition.is_finite() {
            true => write!(f, ": its condition number is about {condition:.0e}"),
            false => write!(f, ": the factors have a pivot that is 0"),
        }
    }
}

impl SingularMatrix {
    /// Returns the help text.
    pub fn remedy(&self) -> String {
        let Self { name, .. } = self;
        if self.free {
            return format!(
                "add `dirichlet {name} = …;` or `mean {name} = 0;`, or give the form a term that fixes it"
            );
        }
        // A condition number below 1/eps means that rounding error, not a null vector, caused the failure.
        if self.condition < 0.1 / f64::EPSILON {
            return UNITS.to_owned();
        }
        let fixed = match self.is_constrained {
            true => {
                "whether the equations leave part of it free beside its conditions, or say the same twice"
            }
            false => {
                "whether the equations leave it free, or say the same twice, and `dirichlet` or `mean` should fix it"
            }
        };
        format!("look {fixed}; if they do not: {UNITS}")
    }
}

/// Remedy for large condition numbers.
const UNITS: &str = "take units in which the mesh is about 1 long and the coefficients are near 1, or a coarser mesh and a \
                     lower degree";
