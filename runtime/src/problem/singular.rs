//! A matrix without factors: what it says of the form, and what helps.

use std::fmt;

/// A matrix that is singular to working precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Singular {
    /// The field, and where it has several its component, in which the null vector is largest.
    pub place: String,
    /// The field alone.
    pub name: String,
    /// About the matrix's condition number; infinite where a pivot is 0.
    pub condition: f64,
    /// Whether a condition holds some of the field.
    pub held: bool,
    /// Whether nothing holds the field and the form reads no value of it: then nothing fixes it.
    pub free: bool,
}

impl fmt::Display for Singular {
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

impl Singular {
    /// What helps.
    pub fn remedy(&self) -> String {
        let Self { name, .. } = self;
        if self.free {
            return format!(
                "add `dirichlet {name} = …;` or `mean {name} = 0;`, or give the form a term that fixes it"
            );
        }
        // Rounding alone does not bring a matrix without a null vector here.
        if self.condition < 0.1 / f64::EPSILON {
            return UNITS.to_owned();
        }
        let fixed = match self.held {
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

/// What is done about large condition numbers.
const UNITS: &str = "take units in which the mesh is about 1 long and the coefficients are near 1, or a coarser mesh and a \
                     lower degree";
