//! Range checks of solver settings.

use super::OperatorError;

fn refuse(name: &str, value: impl std::fmt::Display, range: &str) -> OperatorError {
    OperatorError::new(format!("the setting `{name}` is {value}\nhelp: it should be {range}"))
}

/// Checks 0 ≤ rtol < 1 and 0 ≤ atol < ∞.
///
/// # Errors
///
/// A tolerance is out of range.
pub(super) fn tolerances(rtol: f64, atol: f64) -> Result<(), OperatorError> {
    if !(0.0..1.0).contains(&rtol) {
        return Err(refuse("rtol", rtol, "from 0 on and below 1, such as 1e-8"));
    }
    if !(0.0..f64::INFINITY).contains(&atol) {
        return Err(refuse("atol", atol, "a finite number from 0 on"));
    }
    Ok(())
}

/// Checks a number of iterations.
///
/// # Errors
///
/// The number is 0.
pub(super) fn at_least_one(name: &str, value: usize) -> Result<(), OperatorError> {
    if value == 0 { Err(refuse(name, value, "a whole number from 1 on")) } else { Ok(()) }
}

/// Checks a factor of norms: 0 < value < 1.
///
/// # Errors
///
/// The factor is out of range.
pub(super) fn part(name: &str, value: f64) -> Result<(), OperatorError> {
    let inside = value > 0.0 && value < 1.0;
    if inside { Ok(()) } else { Err(refuse(name, value, "above 0 and below 1")) }
}

/// Checks another range.
///
/// # Errors
///
/// `holds` is false.
pub(super) fn require(
    holds: bool,
    name: &str,
    value: f64,
    range: &str,
) -> Result<(), OperatorError> {
    if holds { Ok(()) } else { Err(refuse(name, value, range)) }
}
