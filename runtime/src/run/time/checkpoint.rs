//! Where a run through time has come to, as a list of numbers ⇄ what its next steps depend on. Both a run that leaves a checkpoint and
//! one that begins at it forget what was made for Jacobians there, so that both go on to the same bits.

use super::super::RunError;
use super::stages::Staged;
use super::{Way, parameters_at};
use crate::time::{State, Stepper};
use crate::vector::Vector;
use fem_dsl::problem::Scheme;
use kernels_gen::abi::hash;
use std::collections::VecDeque;

/// What a list begins with: "weakform" and the version of its layout.
const MAGIC: [f64; 2] = [8_619_717.0, 1.0];
/// Whole numbers up to this are exact.
const EXACT: u64 = 1 << 52;
/// Numbers before the states.
const HEAD: usize = 10;

/// A point from which a run through time can go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Of the scheme and of the form's fields and derivatives.
    identity: f64,
    second: bool,
    /// The newest first: the state, and before it what the scheme knows of the past.
    past: Vec<Past>,
    /// The length of the next step.
    pub(super) length: f64,
    /// The largest ‖u‖, and the largest ‖R‖ that a solve began with.
    largest: [f64; 2],
    /// Solutions that were shown until then.
    pub shown: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Past {
    time: f64,
    u: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
}

impl Past {
    fn of(state: &State) -> Self {
        let a = state.a.as_ref().map_or_else(Vec::new, Vector::to_vec);
        Self { time: state.time, u: state.u.to_vec(), v: state.v.to_vec(), a }
    }

    fn state(&self, like: &Vector) -> State {
        let vector = |numbers: &[f64]| {
            let mut made = like.like();
            made.set(numbers);
            made
        };
        let a = (!self.a.is_empty()).then(|| vector(&self.a));
        State { time: self.time, u: vector(&self.u), v: vector(&self.v), a }
    }
}

/// Of a scheme, and of what a form has that its states depend on.
fn identity(scheme: Scheme, staged: &Staged<'_>) -> f64 {
    let form = staged.system().form;
    let fields: Vec<_> = form.fields.iter().map(|field| (&field.name, field.shape)).collect();
    let rates: Vec<_> = form.rates.iter().map(|rate| (rate.field, rate.order)).collect();
    (hash(&format!("{scheme:?} {fields:?} {rates:?}")) % EXACT) as f64
}

fn refused(what: &str) -> RunError {
    RunError::Setting(format!(
        "the checkpoint {what}\nhelp: restart the problem that wrote it, with its mesh, degree and scheme; or leave --restart out"
    ))
}

impl Checkpoint {
    /// t.
    pub fn time(&self) -> f64 {
        self.past[0].time
    }

    /// As a list: 10 numbers, then of each state, the newest first, t, u, u̇ and, where the form has it, ü.
    pub fn numbers(&self) -> Vec<f64> {
        let second = f64::from(u8::from(self.second));
        let size = self.past[0].u.len() as f64;
        let mut all = MAGIC.to_vec();
        all.extend([self.identity, second, size, self.past.len() as f64]);
        all.extend([self.length, self.shown as f64]);
        all.extend(self.largest);
        for Past { time, u, v, a } in &self.past {
            all.push(*time);
            [u, v, a].into_iter().for_each(|numbers| all.extend_from_slice(numbers));
        }
        all
    }

    /// From a list.
    ///
    /// # Errors
    ///
    /// One that is none of a checkpoint, or not whole.
    pub fn from_numbers(numbers: &[f64]) -> Result<Self, RunError> {
        let damaged = || RunError::Setting("the file holds no checkpoint, or a part of one".into());
        let (head, mut rest) = numbers.split_at_checked(HEAD).ok_or_else(damaged)?;
        if head[..2] != MAGIC {
            return Err(damaged());
        }
        let count = |at: usize| {
            let whole = (0.0..EXACT as f64).contains(&head[at]) && head[at].fract() == 0.0;
            if whole { Ok(head[at] as usize) } else { Err(damaged()) }
        };
        let (second, size, states) = (count(3)? == 1, count(4)?, count(5)?);
        let vectors = if second { 3 } else { 2 };
        let each = size.checked_mul(vectors).and_then(|all| all.checked_add(1));
        if states == 0 || each.and_then(|each| each.checked_mul(states)) != Some(rest.len()) {
            return Err(damaged());
        }
        let mut take = |n: usize| {
            let (own, others) = rest.split_at(n);
            rest = others;
            own.to_vec()
        };
        let mut past = Vec::with_capacity(states);
        for _ in 0..states {
            let time = take(1)[0];
            let (u, v) = (take(size), take(size));
            past.push(Past { time, u, v, a: if second { take(size) } else { Vec::new() } });
        }
        let (length, shown, largest) = (head[6], count(7)?, [head[8], head[9]]);
        Ok(Self { identity: head[2], second, past, length, largest, shown })
    }

    /// Of what takes steps, where it is; what does so forgets all that a run which begins there would not know.
    pub(super) fn leave(
        way: &mut Way,
        (scheme, length, shown): (Scheme, f64, usize),
        staged: &mut Staged<'_>,
    ) -> Result<Self, RunError> {
        let (past, largest): (Vec<Past>, f64) = match &*way {
            Way::Implicit(stepper) => (stepper.past().map(Past::of).collect(), stepper.largest()),
            Way::Explicit(explicit) => (vec![Past::of(explicit.state())], 0.0),
        };
        let second = !past[0].a.is_empty();
        let largest = [largest, staged.largest()];
        let identity = identity(scheme, staged);
        let left = Self { identity, second, past, length, largest, shown };
        forget(way, scheme, staged)?;
        Ok(left)
    }

    /// What takes steps, as it goes on.
    ///
    /// # Errors
    ///
    /// A checkpoint of another problem, scheme or mesh.
    pub(super) fn resume(
        &self,
        scheme: Scheme,
        like: &Vector,
        staged: &mut Staged<'_>,
    ) -> Result<Way, RunError> {
        let own = like.len();
        let size = self.past[0].u.len();
        if size != own {
            return Err(refused(&format!("has {size} unknowns, where the problem has {own}")));
        }
        if self.identity != identity(scheme, staged) {
            return Err(refused("is of another scheme, or of a form with other fields"));
        }
        let mut past: VecDeque<State> = self.past.iter().map(|past| past.state(like)).collect();
        let [largest, begun] = self.largest;
        staged.set_largest(begun);
        let mut way = match scheme {
            Scheme::RungeKutta { .. } | Scheme::Leapfrog { .. } => {
                let Some(state) = past.pop_front() else { unreachable!("there is one state") };
                at(staged, state.time);
                Way::new(scheme, state, None, staged)?
            }
            scheme => Way::Implicit(Stepper::resume(scheme, self.second, past, largest)),
        };
        if let Way::Explicit(explicit) = &mut way {
            explicit.quieten(staged)?;
        }
        Ok(way)
    }
}

/// Parameters as before a step from a time.
fn at(staged: &mut Staged<'_>, time: f64) {
    let form = staged.system().form;
    parameters_at(form, staged.parameters_mut(), time, [0.0; 2]);
}

/// Leaves nothing that was made for earlier steps.
fn forget(way: &mut Way, scheme: Scheme, staged: &mut Staged<'_>) -> Result<(), RunError> {
    staged.forget();
    if let Way::Explicit(explicit) = way {
        let state = explicit.state().clone();
        at(staged, state.time);
        *way = Way::new(scheme, state, None, staged)?;
        if let Way::Explicit(explicit) = way {
            explicit.quieten(staged)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_checkpoint_again_or_none() {
        let past = |time: f64| Past { time, u: vec![time, 1.0], v: vec![2.0, 3.0], a: Vec::new() };
        let (length, largest) = (0.125, [4.0, 0.0]);
        let past = vec![past(0.5), past(0.25)];
        let left = Checkpoint { identity: 7.0, second: false, past, length, largest, shown: 3 };
        let numbers = left.numbers();
        assert_eq!(Checkpoint::from_numbers(&numbers).expect("whole"), left);
        for cut in 0..numbers.len() {
            assert!(Checkpoint::from_numbers(&numbers[..cut]).is_err(), "{cut}");
        }
        let mut other = numbers.clone();
        other[5] = 1e300;
        assert!(Checkpoint::from_numbers(&other).is_err());
    }
}
