//! Parallel products: total time, time without messages, and time of the messages alone.
//!
//! ```text
//! product   y = A x over the cells of each process, with interface sums
//! alone     the same without interface sums
//! messages  interface exchange of y
//! hidden    1 − (product − alone) / messages: fraction of the exchange overlapped with cells
//! ```
//!
//! Each is the median time of the slowest process.

use runtime::algebra::vector::Vector;
use runtime::operator::Operator;
use runtime::solve::{LinearOperator, NonlinearSystem, OperatorError};
use std::time::Instant;

/// Approximate seconds of each of the three measurements.
const SECONDS: f64 = 0.2;
/// Minimum and maximum number of repetitions.
const TIMES: [f64; 2] = [5.0, 400.0];
/// Number of samples for the median.
const PARTS: usize = 5;

/// Timing of a product.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProductTimes {
    /// Seconds of y = A x.
    pub seconds: f64,
    /// Seconds without messages.
    pub alone: f64,
    /// Seconds of the messages alone.
    pub messages: f64,
    /// Bytes sent by a process, maximum over all.
    pub bytes: f64,
}

impl ProductTimes {
    /// Returns the fraction of the message time overlapped with cells; `None` without messages.
    pub fn hidden(&self) -> Option<f64> {
        let shown = (self.seconds - self.alone) / self.messages;
        (self.messages > 0.0).then_some(1.0 - shown.clamp(0.0, 1.0))
    }
}

/// Measures products with the Jacobian at 0. Collective.
///
/// # Errors
///
/// An operator that cannot be applied.
pub fn product(operator: &mut Operator) -> Result<ProductTimes, OperatorError> {
    let mut x = operator.initial()?;
    operator.linearise(&x)?;
    x.fill(1.0);
    let (mut y, mut own) = (x.like(), x.like().unshared());
    let sharing = x.sharing().cloned();
    let operator = &*operator;
    let seconds = median(operator, &x, &mut || operator.apply(&x, &mut y))?;
    let Some(sharing) = sharing else {
        return Ok(ProductTimes { seconds, alone: seconds, ..ProductTimes::default() });
    };
    let alone = median(operator, &x, &mut || operator.apply(&x, &mut own))?;
    let messages = median(operator, &x, &mut || {
        y.synchronise();
        Ok(())
    })?;
    let sent = sharing.lists(|unknown| unknown as u32).sent;
    let numbers: usize = sent.iter().map(|(_, unknowns)| unknowns.len()).sum();
    let bytes = x.largest((numbers * x.precision().bytes()) as f64);
    Ok(ProductTimes { seconds, alone, messages, bytes })
}

/// Returns the median seconds of some work, repeated equally often by all processes of vectors like `like`.
pub(super) fn median(
    operator: &Operator,
    like: &Vector,
    work: &mut dyn FnMut() -> Result<(), OperatorError>,
) -> Result<f64, OperatorError> {
    let mut timed = |times: usize| {
        like.largest(0.0);
        let start = Instant::now();
        (0..times).try_for_each(|_| work())?;
        operator.finish()?;
        Ok::<f64, OperatorError>(like.largest(start.elapsed().as_secs_f64() / times as f64))
    };
    timed(3)?;
    let one = timed(3)?;
    let times = (SECONDS / PARTS as f64 / one).clamp(TIMES[0] / PARTS as f64, TIMES[1]);
    let mut all = Vec::with_capacity(PARTS);
    for _ in 0..PARTS {
        all.push(timed(times.ceil() as usize)?);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[PARTS / 2])
}
