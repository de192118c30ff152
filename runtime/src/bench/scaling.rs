//! A product of several processes: how long it takes, how long without what they tell each other, and how long that takes by itself.
//!
//! ```text
//! product   y = A x over the cells of each, added up at unknowns of several
//! alone     the same, of which each keeps what its own cells add up to
//! messages  y ← what all that have an unknown have there
//! hidden    1 − (product − alone) / messages: how much of that is done beside cells
//! ```
//!
//! Each is a median, of the process that takes longest.

use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::solve::{LinearOperator, NonlinearSystem, OperatorError};
use std::time::Instant;

/// Seconds that are measured for each of the three, about.
const SECONDS: f64 = 0.2;
/// How often each is done at least, and at most.
const TIMES: [f64; 2] = [5.0, 400.0];
/// Parts of which medians are taken.
const PARTS: usize = 5;

/// What a product takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Product {
    /// Seconds of y = A x.
    pub seconds: f64,
    /// Seconds of it without messages.
    pub alone: f64,
    /// Seconds of messages without it.
    pub messages: f64,
    /// Bytes that a process sends for one, of the process that sends most.
    pub bytes: f64,
}

impl Product {
    /// The part of what messages take that is done beside cells; nothing where there are none.
    pub fn hidden(&self) -> Option<f64> {
        let shown = (self.seconds - self.alone) / self.messages;
        (self.messages > 0.0).then_some(1.0 - shown.clamp(0.0, 1.0))
    }
}

/// Measures products with the Jacobian at 0; all processes of a group call it.
///
/// # Errors
///
/// An operator that cannot be applied.
pub fn product(operator: &mut Operator) -> Result<Product, OperatorError> {
    let mut x = operator.initial()?;
    operator.linearise(&x)?;
    x.fill(1.0);
    let (mut y, mut own) = (x.like(), x.like().unshared());
    let sharing = x.sharing().cloned();
    let operator = &*operator;
    let seconds = median(operator, &x, &mut || operator.apply(&x, &mut y))?;
    let Some(sharing) = sharing else {
        return Ok(Product { seconds, alone: seconds, ..Product::default() });
    };
    let alone = median(operator, &x, &mut || operator.apply(&x, &mut own))?;
    let messages = median(operator, &x, &mut || {
        y.agree();
        Ok(())
    })?;
    let sent = sharing.lists(|unknown| unknown as u32).sent;
    let numbers: usize = sent.iter().map(|(_, unknowns)| unknowns.len()).sum();
    let bytes = x.largest((numbers * x.precision().bytes()) as f64);
    Ok(Product { seconds, alone, messages, bytes })
}

/// Seconds of some work, which is done as often by all processes that share vectors like one.
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
